/* Steps that one launch goes through (api/exec_chain.c, codegen_opencl/chain.c): the bits of a launch a step, whatever the plan; which steps go together; what
   is run again, with other symbols, with steps that have nothing to do, and what events tell. Run from the project's root. */
#include "tests/tap.h"
#include "tests/unit/api_support.h"
#include "tools/host/host.h"
#include "api/exec.h"
#include <pthread.h>
#include <stdlib.h>

enum { LAYERS = 12, RUNS = 40 };

/* Layers like each other, of four kernels each when nothing is fused, between a softmax and a sum of what two branches give. */
static void write_layers(char *text, size_t size) {
  size_t used = (size_t)snprintf(
      text, size,
      "symbols { n: min=1 max=64 }\ngraph @layers(%%x: f32[n,48]) {\n  %%w: f32[48,48] = const normal seed=3 scale=0.2\n"
      "  %%h0 = softmax %%x\n");
  for (int i = 0; i < LAYERS; i++)
    used += (size_t)snprintf(text + used, size - used,
                             "  %%m%d = matmul %%h%d, %%w\n  %%t%d = tanh %%m%d\n  %%a%d = add %%t%d, %%h%d\n  %%h%d = mul %%a%d, 0.5\n", i,
                             i, i, i, i, i, i, i + 1, i);
  snprintf(text + used, size - used,
           "  %%p = exp %%x\n  %%q = add %%p, %%h%d\n  %%s = reduce.sum %%q, axes=[1]\n  return y=%%q, s=%%s\n}\n", LAYERS);
}

/* Layers of more kinds of kernels than a chain has where nothing says that they follow once more. */
static const char *const kinds[] = {"matmul %%%c%d, %%w", "tanh %%%c%d",  "add %%%c%d, %%x",  "mul %%%c%d, 0.5",
                                    "sigmoid %%%c%d",     "neg %%%c%d",   "abs %%%c%d",       "sin %%%c%d",
                                    "cos %%%c%d",         "floor %%%c%d", "max %%%c%d, 0.25", "min %%%c%d, 0.5"};
enum { KINDS = sizeof kinds / sizeof *kinds, LONG_LAYERS = 5 };
static void write_long_layers(char *text, size_t size) {
  size_t used = (size_t)snprintf(text, size,
                                 "graph @long(%%x: f32[16,48]) {\n  %%w: f32[48,48] = const normal seed=3 scale=0.2\n  %%a0 = exp %%x\n");
  for (int i = 0; i < LONG_LAYERS * KINDS; i++) {
    used += (size_t)snprintf(text + used, size - used, "  %%a%d = ", i + 1);
    used += (size_t)snprintf(text + used, size - used, kinds[i % KINDS], 'a', i);
    used += (size_t)snprintf(text + used, size - used, "\n");
  }
  snprintf(text + used, size - used, "  return y=%%a%d\n}\n", LONG_LAYERS * KINDS);
}

/* Recurrences: trips that are divided among launches, in a loop around another, and as many trips as there are rows. */
static const char loops[] =
    "symbols { n: min=1 max=64 }\n"
    "graph @loops(%x: f32[n,48]) {\n"
    "  %w: f32[48,48] = const normal seed=3 scale=0.2\n"
    "  %a: f32[n,48], _ = repeat trips=12 (%s0: f32[n,48] = %x, %i0: i32[] = 0:i32) {\n"
    "    %m0 = matmul %s0, %w\n    %t0 = tanh %m0\n    %u0 = add %t0, %x\n    %j0 = add %i0, 1\n    yield %u0, %j0\n  }\n"
    "  %b: f32[n,48], _ = repeat trips=3 (%s1: f32[n,48] = %a, %i1: i32[] = 0:i32) {\n"
    "    %c: f32[n,48], _ = repeat trips=4 (%s2: f32[n,48] = %s1, %i2: i32[] = %i1) {\n"
    "      %m2 = matmul %s2, %w\n      %t2 = tanh %m2\n      %j2 = add %i2, 1\n      yield %t2, %j2\n    }\n"
    "    %d1 = softmax %c\n    %e1 = add %d1, %s1\n    %j1 = add %i1, 1\n    yield %e1, %j1\n  }\n"
    "  %y: f32[n,48], _ = repeat trips=n (%s3: f32[n,48] = %b, %i3: i32[] = 0:i32) {\n"
    "    %m3 = matmul %s3, %w\n    %t3 = tanh %m3\n    %j3 = add %i3, 1\n    yield %t3, %j3\n  }\n"
    "  return y=%y, a=%a, b=%b\n}\n";

/* A state in two halves that are written in turn, and four inputs: one launch binds eight of 96. */
static const char row[] =
    "graph @row(%x: f32[1,512], %a: f32[1,512], %b: f32[1,512], %c: f32[1,512]) {\n  %w: f32[512,512] = const normal seed=3 scale=0.05\n"
    "  %y: f32[1,512] = repeat trips=16 (%s: f32[1,512] = %x) {\n"
    "    %m = matmul %s, %w\n    %p = mul %m, %a\n    %q = add %p, %b\n    %t = tanh %q\n    %u = mul %t, %c\n    yield %u\n  }\n"
    "  return y=%y\n}\n";

typedef struct bench {
  snt_context *context;
  snt_device *device;
  snt_program *program;
  snt_exec *apart, *together;
} bench;

static bool open_bench(snt_context *context, const char *selector, const char *text, uint32_t flags, bench *b) {
  const snt_open_info open = {.head = SNT_HEAD(open_info), .selector = selector};
  const snt_compile_info info = {.head = SNT_HEAD(compile_info), .flags = flags};
  const snt_exec_info apart = {.head = SNT_HEAD(exec_info), .flags = SNT_EXEC_APART};
  snt_graph *graph = NULL;
  snt_profile *profile = NULL;
  snt_diag diag = {.head = SNT_HEAD(diag)};
  *b = (bench){.context = context};
  if (snt_device_open(context, &open, &b->device, NULL) != SNT_OK) return false;
  snt_result r = snt_graph_create(context, &graph);
  if (r == SNT_OK) r = snt_graph_parse(graph, text, strlen(text), NULL, &diag);
  if (r == SNT_OK) r = snt_device_profile(b->device, &profile);
  if (r == SNT_OK) r = snt_compile(graph, profile, &info, &b->program, &diag);
  if (r == SNT_OK) r = snt_exec_create(b->device, b->program, &apart, &b->apart, &diag);
  if (r == SNT_OK) r = snt_exec_create(b->device, b->program, NULL, &b->together, &diag);
  if (r == SNT_OK) r = snt_exec_prepare(b->apart, &diag);
  if (r == SNT_OK) r = snt_exec_prepare(b->together, &diag);
  tap_ok(r == SNT_OK, "%s: %u kernels, apart and together %s", selector, r == SNT_OK ? snt_program_kernel_count(b->program) : 0, diag.text);
  snt_profile_destroy(profile);
  snt_graph_destroy(graph);
  return r == SNT_OK;
}

static void close_bench(bench *b) {
  snt_exec_destroy(b->together);
  snt_exec_destroy(b->apart);
  snt_program_destroy(b->program);
  snt_device_destroy(b->device);
}

static bool same_outputs(const api_tensors *a, const api_tensors *b) {
  bool same = true;
  for (uint32_t i = 0; i < a->count; i++)
    if (a->at[i].port.kind == SNT_PORT_OUTPUT) same &= !memcmp(a->at[i].data, b->at[i].data, a->at[i].bytes);
  return same;
}

/* `runs` runs of an exec with n rows that differ from what it gave apart. */
static uint32_t count_other(bench *b, snt_exec *exec, int64_t rows, uint32_t runs) {
  api_tensors want, got;
  uint32_t other = 0;
  bool good = api_make_tensors(b->program, &rows, 5, &want) &&
              api_run_once(b->device, b->apart, &want, API_HOST_MEMORY, NULL, NULL) == SNT_OK;
  for (uint32_t run = 0; good && run < runs; run++) {
    good = api_make_tensors(b->program, &rows, 5, &got) && api_run_once(b->device, exec, &got, API_HOST_MEMORY, NULL, NULL) == SNT_OK;
    other += good && !same_outputs(&want, &got);
    api_free_tensors(&got);
  }
  api_free_tensors(&want);
  return good ? other : UINT32_MAX;
}

static void check_jobs(const bench *b, const char *selector) {
  const uint32_t few = snt_exec_job_count(b->together), steps = snt_exec_step_count(b->together);
  bool known = true, named = true;
  for (uint32_t i = 0; i < steps; i++) {
    snt_step step = {.head = SNT_HEAD(step)};
    known &= snt_exec_step(b->together, i, &step) == SNT_OK && step.job < few;
  }
  for (uint32_t i = 0; i < few; i++) {
    snt_job job = {.head = SNT_HEAD(job)};
    named &= snt_exec_job(b->together, i, &job) == SNT_OK && strstr(job.name, " to ") && job.code_bytes > 0;
  }
  tap_ok(b->together->chain_count > 1 && few < b->together->chain_count,
         "%s: %u steps in %u launches of %u codes: layers like each other share theirs", selector, steps, b->together->chain_count, few);
  tap_ok(known && named, "%s: every step knows its job, every job its name", selector);
  tap_ok(!b->apart->chain_count && snt_exec_job_count(b->apart) > 2 * few, "%s: apart, a job for each kernel that is like no other: %u",
         selector, snt_exec_job_count(b->apart));
}

static void check_times(bench *b, const char *selector) {
  const int64_t rows = 64;
  const snt_run_info info = {.head = SNT_HEAD(run_info), .symbols = &rows, .symbol_count = 1};
  uint32_t steps = 0;
  uint64_t least = 1;
  api_tensors t;
  (void)snt_exec_steps_taken(b->together, &info, &steps, NULL);
  tap_ok(api_make_tensors(b->program, &rows, 5, &t) && api_run_once(b->device, b->together, &t, API_BUFFERS, &least, NULL) == SNT_OK &&
             least == 0 && steps > 40,
         "%s: a time for each of %u steps, 0 where it is in another's", selector, steps);
  tap_ok(api_run_once(b->device, b->apart, &t, API_BUFFERS, &least, NULL) == SNT_OK && least > 0, "%s: apart none is 0", selector);
  api_free_tensors(&t);
}

static void *run_beside(void *user) {
  bench *b = user;
  snt_exec *own = NULL;
  uint32_t other = UINT32_MAX;
  if (snt_exec_create(b->device, b->program, NULL, &own, NULL) == SNT_OK) other = count_other(b, own, 33, RUNS);
  snt_exec_destroy(own);
  return (void *)(uintptr_t)other;
}

static void check_bits(bench *b, const char *selector) {
  static const int64_t rows[] = {64, 1, 7, 64};
  for (uint32_t i = 0; i < sizeof rows / sizeof *rows; i++)
    tap_is_int(count_other(b, b->together, rows[i], RUNS), 0, "%s: %lld rows, %d runs: the bits of a launch a step", selector,
               (long long)rows[i], RUNS);
}

static void check_loops(snt_context *context, const char *selector) {
  uint32_t trips[2] = {0}, open = 0;
  bench b;
  if (!open_bench(context, selector, loops, SNT_COMPILE_UNFUSED, &b)) return;
  for (uint32_t i = 0; i < b.together->chain_count; i++) {
    const exec_chain *c = &b.together->chains[i];
    const uint32_t steps = (c->end - c->first) * c->trips;
    tap_ok(steps >= 2 && steps <= b.device->profile.launch_steps, "%s: %u steps of %u trips", selector, c->end - c->first, c->trips);
    for (uint32_t k = 0; k < 2; k++) trips[k] += c->trips > 1 && (k ? 4 : 12) % c->trips == 0;
    open += c->trips == 1;
  }
  tap_ok(trips[0] >= 2 && trips[1] && open, "%s: trips of a known number go together, of an open one each is a launch", selector);
  check_bits(&b, selector);
  check_times(&b, selector);
  close_bench(&b);
}

static void check_slots(snt_context *context, const char *selector) {
  uint32_t trips = 0, slots = 0;
  bench b;
  if (!open_bench(context, selector, row, 0, &b)) return;
  for (uint32_t i = 0; i < b.together->chain_count; i++)
    if (b.together->chains[i].trips > trips) trips = b.together->chains[i].trips, slots = b.together->chains[i].binding_count;
  tap_ok(trips == 16 && slots == 9, "%s: what trips have in common is bound once: %u trips, %u slots", selector, trips, slots);
  tap_is_int(count_other(&b, b.together, 0, 2), 0, "%s: they give the bits of a launch a step", selector);
  close_bench(&b);
}

static void check_long_layers(snt_context *context, const char *selector) {
  static char text[8192];
  bench b;
  write_long_layers(text, sizeof text);
  if (!open_bench(context, selector, text, SNT_COMPILE_UNFUSED, &b)) return;
  const uint32_t few = snt_exec_job_count(b.together);
  uint32_t whole = 0;
  for (uint32_t i = 0; i < b.together->chain_count; i++) whole += b.together->chains[i].end - b.together->chains[i].first == KINDS;
  tap_ok(whole >= LONG_LAYERS - 1 && few <= 3, "%s: layers of %d kinds are a launch each: %u of %u, %u codes", selector, KINDS, whole,
         b.together->chain_count, few);
  tap_is_int(count_other(&b, b.together, 0, 2), 0, "%s: they give the bits of a launch a step", selector);
  close_bench(&b);
}

static void check_device(snt_context *context, const char *selector) {
  static char text[8192];
  bench b;
  write_layers(text, sizeof text);
  if (!open_bench(context, selector, text, SNT_COMPILE_UNFUSED, &b)) {
    tap_skip("%s is not here", selector);
    return;
  }
  check_jobs(&b, selector);
  check_bits(&b, selector);
  check_times(&b, selector);
  pthread_t thread;
  bench second = b;
  second.apart = NULL;
  const snt_exec_info apart = {.head = SNT_HEAD(exec_info), .flags = SNT_EXEC_APART};
  const bool began = snt_exec_create(b.device, b.program, &apart, &second.apart, NULL) == SNT_OK &&
                     !pthread_create(&thread, NULL, run_beside, &second);
  const uint32_t here = count_other(&b, b.together, 50, RUNS);
  void *there = (void *)(uintptr_t)UINT32_MAX;
  if (began) pthread_join(thread, &there);
  tap_ok(!here && !there, "%s: two execs on two threads, beside each other", selector);
  snt_exec_destroy(second.apart);
  close_bench(&b);
  check_loops(context, selector);
  check_slots(context, selector);
  check_long_layers(context, selector);
}

int main(void) {
  api_memory memory = {0};
  setenv("POCL_DEVICES", "pthread", 0); /* several threads: no run is short enough for one (api/exec_near.c) */
  host_prepare_drivers(NULL);
  snt_context *context = api_context(&memory);
  check_device(context, "opencl:pocl");
  snt_context_destroy(context);
  tap_is_int(atomic_load(&memory.live), 0, "no memory is left");
  return tap_done();
}
