/* Runs of the same case on several devices, held against each other: of three devices or more that ran it, one that alone fails, that alone
   passes, whose error is far above all others', or that alone has other bits where all must have the same (REPRODUCIBLE; the runs may be of
   several machines). Whoever stands alone is the odd one; where all fail, what they share is: the reference, or what is before the
   generators; with the same bits the reference stands alone. */
#include "conformance/page.h"
#include <stdlib.h>
#include <string.h>

enum { LEAST_VOTES = 3 };
static const double far_above = 8, worth_telling = 0.25; /* times the next error; of the bound */

typedef struct ballot {
  const char *id; /* in the run's text, not terminated */
  uint32_t length, run;
  bool passed;
  double ratio;
  uint64_t bits; /* 0: not told */
} ballot;

static int by_case(const void *a, const void *b) {
  const ballot *x = a, *y = b;
  const int order = memcmp(x->id, y->id, x->length < y->length ? x->length : y->length);
  if (order) return order;
  if (x->length != y->length) return x->length < y->length ? -1 : 1;
  return x->run < y->run ? -1 : x->run > y->run;
}

static bool same_case(const ballot *a, const ballot *b) { return a->length == b->length && !memcmp(a->id, b->id, a->length); }

/* A line that says how a case went; skipped and excused ones have no voice. */
static bool read_ballot(const char *line, uint32_t run, ballot *out) {
  static const char key[] = "\"id\": \"";
  char result[16], ratio[32], bits[20];
  const char *id = strstr(line, key);
  if (!id || !conform_field(line, "result", result, sizeof result)) return false;
  id += sizeof key - 1;
  *out = (ballot){
      .id = id, .length = (uint32_t)strcspn(id, "\""), .run = run, .passed = !strcmp(result, conform_result_names[CONFORM_PASS])};
  out->ratio = conform_field(line, "ratio", ratio, sizeof ratio) ? atof(ratio) : 0;
  out->bits = conform_field(line, "bits", bits, sizeof bits) ? strtoull(bits, NULL, 16) : 0;
  return strcmp(result, conform_result_names[CONFORM_SKIP]) != 0 && strcmp(result, conform_result_names[CONFORM_EXCUSED]) != 0;
}

static uint32_t read_ballots(const conform_page *p, ballot *out) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < p->run_count; i++) {
    for (char *line = p->runs[i].text, *next; *line; line = next) {
      next = line + strcspn(line, "\n");
      const char end = *next;
      *next = 0;
      count += read_ballot(line, i, &out[count]);
      *next = end;
      next += end != 0;
    }
  }
  return count;
}

/* Did all but `one` make the same bits? */
static bool are_alike(const ballot *b, uint32_t count, uint32_t one) {
  const uint64_t bits = b[one == 0].bits;
  for (uint32_t i = 0; i < count; i++)
    if (i != one && b[i].bits != bits) return false;
  return bits != 0;
}

/* Who made other bits than all others did; `count`: nobody. */
static uint32_t find_other_bits(const ballot *b, uint32_t count) {
  uint32_t i = 0;
  while (i < count && !(b[i].bits && b[i].bits != b[i == 0].bits && are_alike(b, count, i))) i++;
  return i;
}

static bool wants_same_bits(const ballot *b) {
  static const char path[] = ".same";
  return b->length >= sizeof path && !memcmp(b->id + b->length - (sizeof path - 1), path, sizeof path - 1);
}

/* The ballots of one case. */
static bool judge(const ballot *b, uint32_t count, page_vote *out) {
  uint32_t passed = 0, alone = 0, worst = 0;
  double next = 0;
  for (uint32_t i = 0; i < count; i++) passed += b[i].passed;
  *out = (page_vote){.id = b->id, .length = b->length, .voices = count, .odd = b->run, .kind = VOTE_ALL_FAIL};
  out->alike = are_alike(b, count, count);
  if (!passed) return true;
  if (passed == 1 || passed == count - 1) {
    while (b[alone].passed != (passed == 1)) alone++;
    out->alike = are_alike(b, count, alone);
    out->odd = b[alone].run, out->kind = passed == 1 ? VOTE_PASSES_ALONE : VOTE_FAILS_ALONE;
    return true;
  }
  if (passed < count) return false;
  const uint32_t other = wants_same_bits(b) ? find_other_bits(b, count) : count;
  if (other < count) {
    out->odd = b[other].run, out->kind = VOTE_OTHER_BITS;
    return true;
  }
  for (uint32_t i = 1; i < count; i++) worst = b[i].ratio > b[worst].ratio ? i : worst;
  for (uint32_t i = 0; i < count; i++) next = i != worst && b[i].ratio > next ? b[i].ratio : next;
  out->odd = b[worst].run, out->kind = VOTE_FAR_ABOVE, out->ratio = b[worst].ratio, out->next = next;
  return b[worst].ratio >= worth_telling && b[worst].ratio > far_above * next;
}

page_vote *conform_vote(const conform_page *p, uint32_t *count) {
  uint32_t cases = 0, n = 0;
  for (uint32_t i = 0; i < p->run_count; i++) cases += p->runs[i].cases;
  ballot *ballots = malloc((cases + 1) * sizeof *ballots);
  page_vote *votes = malloc((cases + 1) * sizeof *votes);
  *count = 0;
  if (ballots && votes) n = read_ballots(p, ballots);
  if (n) qsort(ballots, n, sizeof *ballots, by_case);
  for (uint32_t i = 0, next; i < n; i = next) {
    for (next = i + 1; next < n && same_case(&ballots[i], &ballots[next]) && ballots[next].run != ballots[next - 1].run;) next++;
    if (next - i >= LEAST_VOTES) *count += judge(&ballots[i], next - i, &votes[*count]);
  }
  free(ballots);
  return votes;
}
