/* Submissions: runs (files of JSON lines) in one file with their checksums, and the check of one: every byte is what was packed, and cases drawn from
   the passed ones of each run whose device is here pass again, with the same error where the driver is the same. */
#include "conformance/conform.h"
#include "ir/base.h"
#include "tools/host/host.h"
#include <stdlib.h>
#include <string.h>

enum { HEX = 65 };

static void checksum(const char *data, size_t size, char out[HEX]) {
  uint8_t digest[32];
  ir_sha256 sha;
  ir_sha256_init(&sha);
  ir_sha256_add(&sha, data, size);
  ir_sha256_end(&sha, digest);
  for (int i = 0; i < 32; i++) snprintf(out + 2 * (size_t)i, 3, "%02x", digest[i]);
}

/* Of the lines of cases that passed the next one from here on, with its id; null: there is none. */
static const char *next_passed(const char *line, char id[CONFORM_ID]) {
  char result[16];
  for (; *line; line += strcspn(line, "\n"), line += *line == '\n')
    if (conform_field(line, "id", id, CONFORM_ID) && conform_field(line, "result", result, sizeof result) && !strcmp(result, "pass"))
      return line;
  return NULL;
}

/* Who verifies a run has nothing but its ids. */
static snt_result check_ids(const char *path, const char *run, snt_diag *diag) {
  char id[CONFORM_ID];
  conform_case c;
  for (const char *line = run; (line = next_passed(line, id)); line += strcspn(line, "\n"))
    if (!conform_case_of_id(id, &c))
      return host_fail(diag, SNT_E_ARG, "pack", "%s: %s is no case that an id alone makes again: a graph's of --graph, or of another suite",
                       path, id);
  return SNT_OK;
}

static void pack_run(ir_text *text, uint32_t number, const conform_lines *run) {
  char sum[HEX];
  checksum(run->text, run->size, sum);
  ir_text_format(text, "{\"run\": %u, \"bytes\": %zu, \"sha256\": \"%s\"}\n", number, run->size, sum);
  ir_text_put(text, run->text, run->size);
}

snt_result conform_pack(uint32_t count, char *const *paths, const char *out, snt_diag *diag) {
  enum { MOST = 64 }; /* of one file */
  ir_arena arena;
  ir_text runs, text;
  uint32_t total = 0, found;
  conform_lines lines[MOST];
  snt_result r = SNT_OK;
  ir_arena_init(&arena, NULL);
  ir_text_init(&runs, &arena);
  ir_text_init(&text, &arena);
  for (uint32_t i = 0; r == SNT_OK && i < count; i++) {
    r = conform_read_lines(paths[i], lines, MOST, &found, diag);
    for (uint32_t k = 0; r == SNT_OK && k < found; k++) r = check_ids(paths[i], lines[k].text, diag);
    for (uint32_t k = 0; k < found; k++) pack_run(&runs, ++total, &lines[k]);
    conform_free_lines(lines, found);
  }
  ir_text_format(&text, "{\"submission\": 1, \"suite\": \"%s\", \"runs\": %u}\n", SNT_VERSION_TEXT, total);
  ir_text_put(&text, runs.at, runs.length);
  if (r == SNT_OK && (runs.failed || text.failed)) r = host_fail(diag, SNT_E_HOST_MEM, "pack", "out of memory");
  if (r == SNT_OK) r = host_write_file(out, text.at, text.length, diag);
  ir_arena_free(&arena);
  return r;
}

/* ---- checking ---- */

typedef struct drawn {
  char id[CONFORM_ID], ratio[32];
} drawn;
typedef struct verification {
  const char *path, *run; /* the lines of one run */
  drawn *cases;
  uint32_t count, number, failed;
  uint64_t seed;
  char device[64], driver[128];
  bool same_driver;
} verification;

static uint64_t random_next(uint64_t *state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return *state >> 33;
}

/* A uniform sample of the run's passed cases, in one walk over the lines. */
static void draw(verification *v, uint32_t wanted, uint64_t state) {
  uint64_t passed = 0;
  v->count = 0;
  drawn d;
  for (const char *line = v->run; (line = next_passed(line, d.id)); line += strcspn(line, "\n")) {
    d.ratio[0] = 0;
    (void)conform_field(line, "ratio", d.ratio, sizeof d.ratio);
    const uint64_t at = passed++ < wanted ? passed - 1 : random_next(&state) % passed;
    if (at < wanted) v->cases[at] = d;
    if (v->count < wanted && at < wanted && passed <= wanted) v->count++;
  }
}

static bool find_cases(verification *v, conform_list *out) {
  out->count = 0;
  out->at = malloc((v->count + 1) * sizeof *out->at);
  for (uint32_t i = 0; out->at && i < v->count; i++) out->count += conform_case_of_id(v->cases[i].id, &out->at[out->count]);
  return out->at && out->count == v->count;
}

static void hear_device(void *user, const snt_device_info *info, const char *profile) {
  (void)profile;
  verification *v = user;
  v->same_driver = !strcmp(v->driver, info->driver);
  printf("# %s: %s; driver %s%s\n", info->selector, info->name, info->driver,
         v->same_driver ? "" : ", another than was packed: errors may differ");
}

static void hear_case(void *user, const conform_case *c, const conform_verdict *verdict) {
  verification *v = user;
  char id[CONFORM_ID], ratio[32];
  const drawn *was = NULL;
  conform_case_id(c, id);
  for (uint32_t i = 0; i < v->count; i++)
    if (!strcmp(v->cases[i].id, id)) was = &v->cases[i];
  snprintf(ratio, sizeof ratio, "%.6g", verdict->ratio);
  const bool good = was && verdict->result == CONFORM_PASS && (!v->same_driver || !strcmp(was->ratio, ratio));
  v->failed += !good;
  printf("%sok %u - %s %s\n", good ? "" : "not ", ++v->number, v->device, id);
  if (!good) printf("# now %s, error / bound %s; packed: pass, %s\n", conform_result_names[verdict->result], ratio, was ? was->ratio : "");
}

static snt_result verify_run(verification *v, uint32_t wanted, uint64_t draw_seed, snt_diag *diag) {
  char seed[32] = "1";
  conform_list list = {.count = 0};
  if (!conform_field(v->run, "device", v->device, sizeof v->device) || !conform_field(v->run, "driver", v->driver, sizeof v->driver) ||
      !conform_field(v->run, "seed", seed, sizeof seed))
    return host_fail(diag, SNT_E_PARSE, "verify", "%s: a run that does not name its device, driver and seed", v->path);
  draw(v, wanted, draw_seed);
  if (!find_cases(v, &list)) {
    free(list.at);
    return host_fail(diag, SNT_E_PARSE, "verify", "%s: the run of %s has cases that this suite has not", v->path, v->device);
  }
  const conform_run run = {.selector = v->device,
                           .list = &list,
                           .jobs = 2,
                           .shards = 1,
                           .case_seconds = 60,
                           .compile_seconds = 300,
                           .seed = strtoull(seed, NULL, 10),
                           .user = v,
                           .device = hear_device,
                           .done = hear_case};
  if (list.count && conform_run_all(&run, diag) == UINT32_MAX) printf("ok %u - %s # SKIP %s\n", ++v->number, v->device, diag->text);
  free(list.at);
  return SNT_OK;
}

/* The next run of a submission: its lines end with a zero byte in place; `at` moves behind it. */
static snt_result next_run(const char *path, char **at, char *end, char **run, char *kept, snt_diag *diag) {
  char bytes[32], wanted[HEX], found[HEX];
  char *line = *at;
  if (!conform_field(line, "bytes", bytes, sizeof bytes) || !conform_field(line, "sha256", wanted, sizeof wanted))
    return host_fail(diag, SNT_E_PARSE, "verify", "%s: a run without its checksum", path);
  char *lines = strchr(line, '\n');
  const size_t size = strtoull(bytes, NULL, 10);
  if (!lines || size > (size_t)(end - lines - 1)) return host_fail(diag, SNT_E_PARSE, "verify", "%s: cut short", path);
  checksum(lines + 1, size, found);
  if (strcmp(found, wanted)) return host_fail(diag, SNT_E_PARSE, "verify", "%s: a run is not what was packed: its checksum differs", path);
  *run = lines + 1;
  *at = lines + 1 + size;
  *kept = **at;
  **at = 0;
  return SNT_OK;
}

int conform_verify(const char *path, uint32_t wanted, uint64_t seed, snt_diag *diag) {
  void *data;
  size_t size;
  char version[32], count[16];
  verification v = {.path = path, .cases = calloc(wanted, sizeof *v.cases)};
  if (host_read_file(path, &data, &size, diag) != SNT_OK) return free(v.cases), 1;
  char *at = data, *end = at + size, *run = at, kept = 0;
  snt_result r = SNT_OK;
  if (!conform_field(data, "submission", version, sizeof version) || !conform_field(data, "runs", count, sizeof count))
    r = host_fail(diag, SNT_E_PARSE, "verify", "%s: not a submission", path);
  else at += strcspn(at, "\n") + (strchr(at, '\n') != NULL);
  if (r == SNT_OK && !v.cases) r = host_fail(diag, SNT_E_HOST_MEM, "verify", "out of memory");
  if (r == SNT_OK) printf("TAP version 13\n");
  for (long left = r == SNT_OK ? strtol(count, NULL, 10) : 0; r == SNT_OK && left > 0; left--) {
    r = next_run(path, &at, end, &run, &kept, diag);
    v.run = run;
    if (r == SNT_OK) r = verify_run(&v, wanted, seed, diag), *at = kept;
  }
  if (r == SNT_OK && at != end) r = host_fail(diag, SNT_E_PARSE, "verify", "%s: more than its runs", path);
  if (r == SNT_OK) printf("1..%u\n", v.number);
  free(v.cases);
  free(data);
  return r != SNT_OK || v.failed || !v.number;
}
