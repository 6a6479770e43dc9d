/* sinter calibrate: measures a profile of the device at hand and writes it as text: what was measured with its noise and how, what the driver answers,
   and what stays from the built-in profile of its family. The conditions stand at the head. */
#include "tools/sinter/calibrate.h"
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { CALIBRATE_SECONDS = 100, CALIBRATE_BLOCKS = 32, CALIBRATE_BLOCKS_QUICK = 16 };

static const double MOST_NOISE = 0.5; /* of a number: beyond it the built-in one is better */

double calibrate_fact(const char *profile, const char *key) {
  const size_t length = strlen(key);
  for (const char *at = profile; at && *at; at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL)
    if (!strncmp(at, key, length) && !strncmp(at + length, " = ", 3)) return strtod(at + length + 3, NULL);
  return 0;
}

void calibrate_found(calibration *c, const char *key, double value, double noise, const char *how, ...) {
  finding f = {.value = value, .noise = noise};
  if (c->count == CALIBRATE_MAX || !(value > 0) || !isfinite(value) || !(noise <= MOST_NOISE)) {
    c->skipped++;
    return;
  }
  snprintf(f.key, sizeof f.key, "%s", key);
  va_list list;
  va_start(list, how);
  (void)vsnprintf(f.how, sizeof f.how, how, list);
  va_end(list);
  if (noise > c->noise) c->noise = noise;
  c->findings[c->count++] = f;
  if (!c->session.options.quiet) fprintf(stderr, "%-24s %10.5g  +- %4.1f %%  %s\n", f.key, f.value, 100 * f.noise, f.how);
}

static void read_facts(calibration *c, const char *profile) {
  calibration_facts *f = &c->facts;
  const struct {
    const char *key;
    double *to, least;
  } facts[] = {
      {"units", &f->units, 1},
      {"lanes", &f->lanes, 1},
      {"ghz", &f->ghz, 0.01},
      {"fma_per_cycle", &f->fma_per_cycle, 0.01},
      {"l1_bytes", &f->l1_bytes, 8192},
      {"l2_bytes", &f->l2_bytes, 65536},
      {"l3_bytes", &f->l3_bytes, 0},
      {"stream_store_factor", &f->stream_store_factor, 0},
      {"stream_threshold", &f->stream_threshold, 0},
      {"max_buffer_bytes", &f->max_buffer_bytes, 0},
      {"caps.f64", &f->f64, 0},
      {"caps.f16_storage", &f->f16, 0},
      {"discrete", &f->discrete, 0},
  };
  for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) *facts[i].to = fmax(calibrate_fact(profile, facts[i].key), facts[i].least);
}

static bool begins(const char *line, const char *prefix) { return !strncmp(line, prefix, strlen(prefix)); }

static const char *origin_of(const char *line) {
  static const char *const queried[] = {"max_", "caps.", "subgroup_", "offset_align", "units", "lanes", "registers", "target"};
  for (size_t i = 0; i < sizeof queried / sizeof *queried; i++)
    if (begins(line, queried[i])) return "the driver's answer, or its family's";
  return "built-in, not measured";
}

static const finding *find(const calibration *c, const char *line, size_t length) {
  const finding *found = NULL; /* the last one of a key */
  for (uint32_t i = 0; i < c->count; i++)
    if (strlen(c->findings[i].key) == length && !memcmp(c->findings[i].key, line, length)) found = &c->findings[i];
  return found;
}

static void write_found(FILE *out, const finding *f, const char *unit) {
  fprintf(out, "%s = %.5g%s%.*s # measured, +-%.1f %%: %s\n", f->key, f->value, *unit ? " " : "", (int)strcspn(unit, "\n"), unit,
          100 * f->noise, f->how);
}

/* A line of the device's profile: its number replaced where one was measured. */
static void write_line(const calibration *c, FILE *out, const char *line, size_t length) {
  const size_t key = strcspn(line, " \n");
  const finding *f = find(c, line, key);
  if (begins(line, "cycles.")) return; /* those that were measured follow in a block */
  if (!f) {
    fprintf(out, "%.*s # %s\n", (int)length, line, origin_of(line));
    return;
  }
  const char *value = line + key + 3, *unit = value + strcspn(value, " \n");
  write_found(out, f, *unit == ' ' ? unit + 1 : "");
}

static void write_head(const calibration *c, FILE *out, const snt_device_info *info, const double load[2], double seconds) {
  char date[32] = "";
  const time_t now = time(NULL);
  struct tm utc;
  if (gmtime_r(&now, &utc)) (void)strftime(date, sizeof date, "%Y-%m-%d %H:%M UTC", &utc);
  fprintf(out, "# Measured by sinter %s calibrate%s on %s in %.0f s.\n# device: %s: %s\n# driver: %s\n", SNT_VERSION_TEXT,
          c->quick ? " --quick" : "", date, seconds, info->selector, info->name, info->driver);
  fprintf(out, "# load average before and after: %.2f, %.2f; least times of 4 to %u blocks A B B A; largest noise of a number: %.1f %%\n",
          load[0], load[1], c->blocks, 100 * c->noise);
  fprintf(out, "# clock: %s%s\n", c->processor_time ? "processor time of the process over the units, launches by the wall" : "wall",
          c->cover.exec ? ", behind work that covers the handing over" : "");
  fprintf(out, "# built on profile %s; numbers that could not be measured here: %u\n", info->profile, c->skipped);
}

static void put_profile(const calibration *c, FILE *out, const char *profile, const double load[2], double seconds) {
  snt_device_info info = {.head = {SNT_TYPE_device_info, sizeof info, NULL}};
  (void)snt_device_get_info(c->session.device, &info);
  write_head(c, out, &info, load, seconds);
  for (const char *at = profile; *at;) {
    const size_t length = strcspn(at, "\n");
    write_line(c, out, at, length);
    at += length + (at[length] == '\n');
  }
  for (uint32_t i = 0; i < c->count; i++)
    if (begins(c->findings[i].key, "cycles.")) write_found(out, &c->findings[i], "");
}

static const char *path_of(const calibration *c) { return c->session.options.out ? c->session.options.out : "-"; }

static snt_result write_profile(calibration *c, const char *profile, const double load[2], double seconds) {
  host_output out;
  const snt_result r = host_begin_file(&out, path_of(c), &c->session.diag);
  if (r == SNT_OK) put_profile(c, out.file, profile, load, seconds);
  return host_end_file(&out, r, &c->session.diag);
}

static double load_now(void) {
  double load = 0;
  return getloadavg(&load, 1) == 1 ? load : 0;
}

static snt_result calibrate(calibration *c) {
  char *profile;
  snt_result r = tool_profile_text(c->session.profile, &profile);
  if (r != SNT_OK) return r;
  double load[2] = {load_now(), 0};
  const double start = calibrate_now_ms();
  read_facts(c, profile);
  c->quick = c->session.options.quick;
  c->processor_time = c->session.options.processor_time;
  c->blocks = c->quick ? CALIBRATE_BLOCKS_QUICK : CALIBRATE_BLOCKS;
  c->sample_ns = c->quick ? 5e5 : 1.5e6;
  c->deadline_ms = start + (c->session.options.timeout ? c->session.options.timeout : CALIBRATE_SECONDS) * 1e3;
  r = snt_stream_create(c->session.device, &c->stream, &c->session.diag);
  if (r == SNT_OK) {
    c->small = c->quick && calibrate_slow(c);
    calibrate_memory(c);
    calibrate_compute(c);
    load[1] = load_now();
    r = c->count ? write_profile(c, profile, load, (calibrate_now_ms() - start) / 1e3)
                 : host_fail(&c->session.diag, c->full ? SNT_E_HOST_MEM : SNT_E_UNSUPPORTED, "calibrate",
                             "nothing could be measured on this device");
  }
  probe_free(&c->cover);
  snt_stream_destroy(c->stream);
  free(profile);
  return r;
}

int command_calibrate(const tool_options *options) {
  calibration *c = calloc(1, sizeof *c);
  if (!c) return fprintf(stderr, "sinter: calibrate: out of memory\n"), EXIT_FAILED;
  snt_result r = tool_open(&c->session, options, true);
  c->session.options.quiet |= !options->out; /* the text goes to stdout: progress only beside a file */
  if (r == SNT_OK) r = host_can_write(path_of(c), &c->session.diag);
  if (r == SNT_OK) r = calibrate(c);
  const int code = r == SNT_OK ? EXIT_GOOD : tool_fail(&c->session, r);
  tool_close(&c->session);
  free(c);
  return code;
}
