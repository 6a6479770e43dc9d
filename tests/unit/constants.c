/* Constants that a compile only describes are jobs of an exec, behind its pipelines: on any thread, in any order, again after a failure; made once for all
   execs of a program. Two products with weights, on every device that is here, against the reference. */
#include "api/handles.h"
#include "tests/tap.h"
#include "tests/unit/api_support.h"
#include "tools/host/host.h"
#include <float.h>
#include <math.h>
#include <pthread.h>
#include <string.h>

enum { DEPTH = 256, WIDTH = 320 };
static float weights[2][DEPTH * WIDTH];
static const int64_t rows[] = {20};

static void fill_weights(void) {
  uint32_t state = 1;
  for (uint32_t i = 0; i < 2 * DEPTH * WIDTH; i++) {
    state = state * 1664525u + 1013904223u;
    weights[i / (DEPTH * WIDTH)][i % (DEPTH * WIDTH)] = ((float)(state >> 8) / (1 << 24) - 0.5f) / 8;
  }
}

static snt_value product(snt_graph *g, snt_value x, uint32_t which, int64_t depth, int64_t width) {
  const snt_tensor type = {SNT_F32, 2, {depth, width}};
  const snt_value args[] = {x, snt_graph_constant(g, &type, weights[which])};
  return snt_graph_op(g, "matmul", args, 2, NULL);
}

static void build(snt_graph *g) {
  const snt_symbol n = {"n", 1, 64, 1, 20};
  const snt_tensor type = {SNT_F32, 2, {-(int64_t)snt_graph_symbol(g, &n) - 1, DEPTH}};
  const snt_value inner = product(g, snt_graph_input(g, "x", &type), 0, DEPTH, WIDTH), positive = snt_graph_op(g, "relu", &inner, 1, NULL);
  snt_graph_output(g, "y", product(g, positive, 1, WIDTH, DEPTH));
}

typedef struct bench {
  api_memory *memory;
  snt_device *device;
  snt_graph *graph;
  snt_program *program;
  snt_exec *first, *second;
} bench;

static bool set_up(bench *b, snt_context *c, const char *selector, snt_diag *diag) {
  const snt_open_info open = {.head = SNT_HEAD(open_info), .selector = selector};
  snt_profile *profile = NULL;
  snt_result r = snt_device_open(c, &open, &b->device, diag);
  if (r == SNT_OK) r = snt_device_profile(b->device, &profile);
  if (r == SNT_OK) r = snt_graph_create(c, &b->graph);
  if (r == SNT_OK) build(b->graph);
  if (r == SNT_OK) r = snt_compile(b->graph, profile, NULL, &b->program, diag);
  if (r == SNT_OK) r = snt_exec_create(b->device, b->program, NULL, &b->first, diag);
  snt_profile_destroy(profile);
  return tap_is_int(r, SNT_OK, "%s: compiled (%s: %s)", selector, diag->stage, diag->text);
}

static void drop(bench *b) {
  snt_exec_destroy(b->first);
  snt_program_destroy(b->program);
  snt_graph_destroy(b->graph);
  snt_device_destroy(b->device);
  *b = (bench){.memory = b->memory};
}

/* Behind all pipelines, without code; how many. */
static uint32_t count_constants(const snt_exec *x, const char *selector) {
  uint32_t count = 0;
  bool right = true;
  for (uint32_t i = 0; i < snt_exec_job_count(x); i++) {
    snt_job job = {.head = SNT_HEAD(job)};
    snt_report said;
    right &= snt_exec_job(x, i, &job) == SNT_OK && job.name && job.name[0] && job.state == SNT_JOB_WAITING;
    if (job.kind == SNT_JOB_PIPELINE) right &= !count && job.code_bytes > 0;
    else right &= job.kind == SNT_JOB_CONSTANT && !job.code_bytes && snt_exec_report(x, i, &said) == SNT_E_ARG;
    count += job.kind == SNT_JOB_CONSTANT;
  }
  tap_ok(right, "%s: %u jobs, of which the last %u make constants and have no code", selector, snt_exec_job_count(x), count);
  return count;
}

/* A device of which one upload fails, and that reads no memory of the host's, so that each constant is uploaded. */
static struct {
  rt_vtable table;
  const rt_vtable *own;
  uint32_t uploads, fail_at; /* from 1; 0: none */
} failing;

static snt_result upload(rt_stream *stream, rt_buffer *to, uint64_t offset, const void *data, uint64_t bytes, snt_diag *diag) {
  if (++failing.uploads == failing.fail_at) return ir_fail(diag, SNT_E_DEVICE_MEM, "upload", 0, "as the test wants it");
  return failing.own->upload(stream, to, offset, data, bytes, diag);
}

static void fail_uploads(rt_device *rt) {
  failing.own = rt->v, failing.table = *rt->v;
  failing.table.upload = upload, failing.table.buffer_over = NULL;
  rt->v = &failing.table;
}

/* The job that brings the constants, again until no upload fails: none of what a failure left behind passes for a constant. */
static bool bring_again(bench *b, uint32_t count) {
  const uint32_t all = snt_exec_job_count(b->first);
  rt_device *rt = b->device->rt;
  bool right = true;
  for (uint32_t i = all - count; i + 1 < all && right; i++) right = snt_exec_run_job(b->first, i, NULL) == SNT_OK;
  fail_uploads(rt);
  uint32_t failures = 0;
  for (snt_result r = SNT_E_DEVICE_MEM; right && r != SNT_OK; failures += r != SNT_OK) {
    failing.uploads = 0, failing.fail_at = failures + 1;
    r = snt_exec_run_job(b->first, all - 1, NULL);
    right = r == SNT_OK || (r == SNT_E_DEVICE_MEM && failures < all);
  }
  rt->v = failing.own;
  return right && failures >= count;
}

/* Again until none of its calls for memory fails: the last of all brings the constants to the device, and any of that may fail, too. */
static bool make_one(bench *b, uint32_t number, uint32_t *failures) {
  enum { MOST = 100 };
  for (long long n = 1; n <= MOST; n++) {
    snt_job job = {.head = SNT_HEAD(job)};
    b->memory->fail_at = atomic_load(&b->memory->calls) + n;
    const snt_result r = snt_exec_run_job(b->first, number, NULL);
    b->memory->fail_at = 0;
    if (snt_exec_job(b->first, number, &job) != SNT_OK || job.state != (r == SNT_OK ? SNT_JOB_DONE : SNT_JOB_FAILED)) return false;
    if (r == SNT_OK) return n > 1;
    if (r != SNT_E_HOST_MEM && r != SNT_E_DEVICE_MEM) return false;
    *failures += 1;
  }
  return false;
}

static bool make_again(bench *b, uint32_t count, uint32_t *failures) {
  const uint32_t all = snt_exec_job_count(b->first);
  bool right = true;
  for (uint32_t i = all; i-- > all - count && right;) right = make_one(b, i, failures);
  return right;
}

static void *run_jobs(void *exec) {
  for (uint32_t i = 0; i < snt_exec_job_count(exec); i++)
    if (snt_exec_run_job(exec, i, NULL) < 0) return exec;
  return NULL;
}

static bool run_on_threads(snt_exec *x) {
  pthread_t threads[3];
  void *failed[3] = {NULL, NULL, NULL};
  for (int i = 0; i < 3; i++) pthread_create(&threads[i], NULL, run_jobs, x);
  for (int i = 0; i < 3; i++) pthread_join(threads[i], &failed[i]);
  return !failed[0] && !failed[1] && !failed[2];
}

static void check_answer(bench *b, snt_exec *x, const char *what, const char *selector) {
  snt_diag diag = {.head = SNT_HEAD(diag)};
  api_tensors tensors;
  const bool made = api_make_tensors(b->program, rows, 7, &tensors);
  const snt_result r = made ? api_run_once(b->device, x, &tensors, API_HOST_MEMORY, NULL, &diag) : SNT_E_INTERNAL;
  const double ratio = r == SNT_OK ? api_ratio(b->graph, rows, &tensors) : -1;
  if (!tap_ok(ratio >= 0 && ratio <= 1, "%s, %s: error/bound %.3f", selector, what, ratio)) tap_diag("%s: %s", diag.stage, diag.text);
  api_free_tensors(&tensors);
}

static uint32_t run_device(const char *selector) {
  snt_diag diag = {.head = SNT_HEAD(diag)};
  api_memory memory = {0};
  snt_context *c = api_context(&memory);
  bench b = {.memory = &memory};
  uint32_t count = 0;
  if (set_up(&b, c, selector, &diag)) {
    count = count_constants(b.first, selector);
    uint32_t failures = 0;
    const bool right = !count || make_again(&b, count, &failures);
    if (count) tap_ok(right && failures >= count, "%s: last to first, after %u failures", selector, failures);
    check_answer(&b, b.first, "what was left is run with the first run", selector);
    tap_is_int(snt_exec_create(b.device, b.program, NULL, &b.second, &diag), SNT_OK, "%s: another exec of the program", selector);
    tap_is_int((int)count_constants(b.second, selector), 0, "%s: its constants are made", selector);
    snt_exec_destroy(b.second);
    drop(&b);
    if (set_up(&b, c, selector, &diag)) {
      tap_ok(run_on_threads(b.first), "%s: three threads, each through all jobs", selector);
      check_answer(&b, b.first, "from three threads", selector);
    }
    drop(&b);
    if (count && set_up(&b, c, selector, &diag)) {
      tap_ok(bring_again(&b, count), "%s: brought to the device after each upload has failed", selector);
      check_answer(&b, b.first, "after uploads that failed", selector);
    }
  }
  drop(&b);
  snt_context_destroy(c);
  tap_is_int(atomic_load(&memory.live), 0, "%s: nothing is kept", selector);
  return count;
}

/* ---- denormals ---- */

/* y = x w, and what else is read of w where there is an `other`; of 64 x 64, some elements of it denormals. */
static void build_small(snt_graph *g, const float *w, const char *other) {
  const snt_tensor type = {SNT_F32, 2, {64, 64}};
  const snt_value args[] = {snt_graph_input(g, "x", &type), snt_graph_constant(g, &type, w)};
  snt_graph_output(g, "y", snt_graph_op(g, "matmul", args, 2, NULL));
  if (*other) snt_graph_output(g, "z", snt_graph_op(g, other, args, 2, NULL));
}

static uint32_t denormals_of(const snt_program *p) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < p->plan.buffers.count; i++) {
    const plan_buffer *b = &p->plan.buffers.at[i];
    const bool read = b->kind == PLAN_CONSTANT && b->dtype == SNT_F32 && b->first_step != UINT32_MAX;
    const float *at = read ? api_constant(p, i) : NULL;
    uint64_t bytes = 0;
    if (at) plan_logical_bytes(&p->plan, b, NULL, &bytes);
    for (uint64_t e = 0; e < bytes / sizeof *at; e++) count += at[e] != 0 && fabsf(at[e]) < FLT_MIN;
  }
  return count;
}

/* Where they are slow, and sums of products alone read them, a device gets zeros; what the caller gave is not touched. */
static void test_denormals(void) {
  enum { SIZE = 64 * 64, EACH = 15, SMALL = SIZE / EACH + 1 };
  static const struct {
    const char *profile, *other;
    uint32_t mode, count;
  } rows_of[] = {{"lavapipe", "", SNT_NUMERICS_DEFAULT, 0},        {"lavapipe", "", SNT_NUMERICS_FAST, 0},
                 {"lavapipe", "", SNT_NUMERICS_STRICT, SMALL},     {"lavapipe", "", SNT_NUMERICS_REPRODUCIBLE, SMALL},
                 {"lavapipe", "div", SNT_NUMERICS_DEFAULT, SMALL}, {"rusticl", "", SNT_NUMERICS_DEFAULT, 0},
                 {"swiftshader", "", SNT_NUMERICS_DEFAULT, SMALL}, {"dgpu", "", SNT_NUMERICS_DEFAULT, SMALL}};
  static float w[SIZE], kept[SIZE];
  for (uint32_t i = 0; i < SIZE; i++) w[i] = kept[i] = i % EACH ? 0.5f : i % 2 ? -0x1p-149f : 0x1.fffffcp-127f;
  for (uint32_t i = 0; i < IR_COUNT(rows_of); i++) {
    const snt_compile_info info = {.head = SNT_HEAD(compile_info), .numerics = rows_of[i].mode};
    api_memory memory = {0};
    snt_context *c = api_context(&memory);
    snt_diag diag = {.head = SNT_HEAD(diag)};
    snt_graph *g = NULL;
    snt_profile *profile = NULL;
    snt_program *p = NULL;
    snt_result r = snt_graph_create(c, &g);
    if (r == SNT_OK) build_small(g, w, rows_of[i].other);
    if (r == SNT_OK) r = snt_profile_builtin(c, rows_of[i].profile, &profile);
    if (r == SNT_OK) r = snt_compile(g, profile, &info, &p, &diag);
    const uint32_t count = r == SNT_OK ? denormals_of(p) : UINT32_MAX;
    tap_ok(count == rows_of[i].count && !memcmp(w, kept, sizeof w), "%s, mode %u, %s: %u denormals of %u", rows_of[i].profile,
           rows_of[i].mode, *rows_of[i].other ? rows_of[i].other : "a product alone", count, rows_of[i].count);
    snt_program_destroy(p);
    snt_profile_destroy(profile);
    snt_graph_destroy(g);
    snt_context_destroy(c);
    if (atomic_load(&memory.live)) tap_ok(false, "nothing is kept");
  }
}

int main(void) {
  snt_context *c = NULL;
  api_devices devices;
  host_prepare_drivers(NULL);
  fill_weights();
  test_denormals();
  if (!tap_is_int(snt_context_create(NULL, &c), SNT_OK, "a context")) return tap_done();
  api_find_devices(c, &devices);
  snt_context_destroy(c);
  for (uint32_t i = 0; i < devices.count; i++) {
    const char *selector = devices.selector[i];
    const bool host = !strcmp(selector, "host");
    tap_ok((run_device(selector) > 0) != host, "%s: %s", selector,
           host ? "constants are read as the graph has them" : "weights are described");
  }
  return tap_done();
}
