/* Test output: TAP version 13, one line per check, the plan at the end. For programs of one thread; a failed check prints where it
   stands and what it saw, and the run goes on. `return tap_done();` ends main. */
#ifndef TESTS_TAP_H
#define TESTS_TAP_H
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__GNUC__)
#define TAP_PRINTF(a, b) __attribute__((format(printf, a, b), unused))
#define TAP_UNUSED __attribute__((unused))
#else
#define TAP_PRINTF(a, b)
#define TAP_UNUSED
#endif

static struct {
  unsigned run, failed, planned;
  bool begun;
} tap;

TAP_UNUSED static void tap_begin(void) {
  if (tap.begun) return;
  tap.begun = true;
  setvbuf(stdout, NULL, _IOLBF, 0); /* what was checked before a crash must be seen */
  printf("TAP version 13\n");
}

/* Optional: says up front how many checks will run; tap_done then compares. */
TAP_UNUSED static void tap_plan(unsigned count) {
  tap_begin();
  tap.planned = count;
  printf("1..%u\n", count);
}

TAP_PRINTF(1, 2) static void tap_diag(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  tap_begin();
  printf("# ");
  vprintf(format, arguments);
  printf("\n");
  va_end(arguments);
}

/* Text of many lines, each as a comment. */
TAP_UNUSED static void tap_diag_text(const char *text) {
  tap_begin();
  while (*text) {
    size_t length = strcspn(text, "\n");
    printf("# %.*s\n", (int)length, text);
    text += length + (text[length] == '\n');
  }
}

TAP_PRINTF(4, 0) static bool tap_result_v(bool passed, const char *file, int line, const char *format, va_list arguments) {
  char name[512];
  vsnprintf(name, sizeof name, format, arguments);
  for (char *c = name; *c; c++) {
    if (*c == '\n' || *c == '#') *c = ' '; /* both end a TAP description */
  }
  tap_begin();
  tap.run++;
  printf("%sok %u - %s\n", passed ? "" : "not ", tap.run, name);
  if (!passed) {
    tap.failed++;
    printf("#   failed at %s:%d\n", file, line);
  }
  return passed;
}

TAP_PRINTF(4, 5) static bool tap_result(bool passed, const char *file, int line, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  tap_result_v(passed, file, line, format, arguments);
  va_end(arguments);
  return passed;
}

TAP_PRINTF(5, 6) static bool tap_int_(int64_t got, int64_t want, const char *file, int line, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  if (!tap_result_v(got == want, file, line, format, arguments)) tap_diag("  got %lld, want %lld", (long long)got, (long long)want);
  va_end(arguments);
  return got == want;
}

TAP_UNUSED static void tap_diag_first_difference(const char *got, const char *want) {
  size_t at = 0, line_start = 0;
  unsigned line = 1;
  for (; got[at] && got[at] == want[at]; at++) {
    if (got[at] == '\n') line++, line_start = at + 1;
  }
  tap_diag("  first difference in line %u, column %zu", line, at - line_start + 1);
  tap_diag("  got:  %.*s", (int)strcspn(got + line_start, "\n"), got + line_start);
  tap_diag("  want: %.*s", (int)strcspn(want + line_start, "\n"), want + line_start);
}

TAP_PRINTF(5, 6) static bool tap_text_(const char *got, const char *want, const char *file, int line, const char *format, ...) {
  bool same = got && want && strcmp(got, want) == 0;
  va_list arguments;
  va_start(arguments, format);
  if (!tap_result_v(same, file, line, format, arguments)) {
    if (got && want) tap_diag_first_difference(got, want);
    else tap_diag("  got %s, want %s", got ? got : "(null)", want ? want : "(null)");
  }
  va_end(arguments);
  return same;
}

/* Equal within an absolute `bound`; NaN equals NaN, an infinity only itself. */
TAP_PRINTF(6, 7)
static bool tap_near_(double got, double want, double bound, const char *file, int line, const char *format, ...) {
  bool same = (isnan(got) && isnan(want)) || got == want || fabs(got - want) <= bound;
  va_list arguments;
  va_start(arguments, format);
  if (!tap_result_v(same, file, line, format, arguments))
    tap_diag("  got %.17g (%a), want %.17g (%a), bound %g", got, got, want, want, bound);
  va_end(arguments);
  return same;
}

TAP_PRINTF(6, 7)
static bool tap_bytes_(const void *got, const void *want, size_t size, const char *file, int line, const char *format, ...) {
  const unsigned char *a = (const unsigned char *)got, *b = (const unsigned char *)want;
  size_t at = 0;
  while (at < size && a[at] == b[at]) at++;
  va_list arguments;
  va_start(arguments, format);
  if (!tap_result_v(at == size, file, line, format, arguments))
    tap_diag("  byte %zu of %zu: got 0x%02x, want 0x%02x", at, size, a[at], b[at]);
  va_end(arguments);
  return at == size;
}

/* The last arguments are a printf format and its values: the name of the check. Each answers whether it passed. */
#define tap_ok(condition, ...) tap_result((condition), __FILE__, __LINE__, __VA_ARGS__)
#define tap_is_int(got, want, ...) tap_int_((int64_t)(got), (int64_t)(want), __FILE__, __LINE__, __VA_ARGS__)
#define tap_is_text(got, want, ...) tap_text_((got), (want), __FILE__, __LINE__, __VA_ARGS__)
#define tap_is_near(got, want, bound, ...) tap_near_((got), (want), (bound), __FILE__, __LINE__, __VA_ARGS__)
#define tap_is_bytes(got, want, size, ...) tap_bytes_((got), (want), (size), __FILE__, __LINE__, __VA_ARGS__)

/* A check that cannot run here, said aloud: counts as passed. */
TAP_PRINTF(1, 2) static void tap_skip(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  tap_begin();
  printf("ok %u # SKIP ", ++tap.run);
  vprintf(format, arguments);
  printf("\n");
  va_end(arguments);
}

/* The whole program cannot run here: call instead of any check, then return 0. */
TAP_UNUSED static int tap_skip_all(const char *why) {
  printf("TAP version 13\n1..0 # SKIP %s\n", why);
  return 0;
}

/* Nothing after this can be checked: the harness stops the run. */
TAP_UNUSED static void tap_bail_out(const char *why) {
  printf("Bail out! %s\n", why);
  exit(255);
}

/* Prints the plan and gives main's exit status. A program that checked nothing fails. */
TAP_UNUSED static int tap_done(void) {
  tap_begin();
  if (tap.planned == 0) printf("1..%u\n", tap.run);
  if (tap.failed) tap_diag("%u of %u checks failed", tap.failed, tap.run);
  if (tap.planned && tap.planned != tap.run) tap_diag("planned %u checks, ran %u", tap.planned, tap.run);
  return tap.failed || tap.run == 0 || (tap.planned && tap.planned != tap.run);
}

#endif
