/* The public API end to end on every device that is here: graphs built call by call, one program for many sizes, buffers and host memory, states,
   jobs on two threads; each result against the reference's bound. Then every kind of wrong use: its result code and a text that says what. */
#include "tests/tap.h"
#include "tests/unit/api_support.h"
#include "tools/host/host.h"
#include <pthread.h>

typedef struct bench {
  snt_context *context;
  snt_device *device;
  snt_graph *graph;
  snt_program *program;
  snt_exec *exec;
  snt_diag diag;
} bench;

static bool set_up(bench *b, snt_context *c, const char *selector, const api_model *m) {
  memset(b, 0, sizeof *b);
  b->context = c;
  b->diag.head = (snt_out_head)SNT_HEAD(diag);
  const snt_open_info open = {.head = SNT_HEAD(open_info), .selector = selector};
  snt_profile *profile = NULL;
  snt_result r = snt_device_open(c, &open, &b->device, &b->diag);
  if (r == SNT_OK) r = snt_device_profile(b->device, &profile);
  if (r == SNT_OK) r = snt_graph_create(c, &b->graph);
  if (r == SNT_OK) m->build(b->graph);
  if (r == SNT_OK) r = snt_compile(b->graph, profile, NULL, &b->program, &b->diag);
  if (r == SNT_OK) r = snt_exec_create(b->device, b->program, NULL, &b->exec, &b->diag);
  snt_profile_destroy(profile);
  return tap_ok(r == SNT_OK, "%s on %s: built, compiled, ready (%s: %s)", m->name, selector, b->diag.stage, b->diag.text);
}

/* In the wrong order, which must not matter. */
static void tear_down(bench *b) {
  snt_device_destroy(b->device);
  snt_program_destroy(b->program);
  snt_graph_destroy(b->graph);
  snt_exec_destroy(b->exec);
}

/* ---- right use ---- */

/* The steps of a run by its symbols: in range, in order but for loops, and as many when asked again with room for them. */
static void count_steps(bench *b, const char *selector, const api_model *m, const int64_t *sizes) {
  const snt_run_info info = {.head = SNT_HEAD(run_info), .symbols = sizes, .symbol_count = m->symbol_count};
  uint32_t steps[256], count = 0, few = 1, again = 256;
  const bool host = !strcmp(selector, "host"), known = snt_exec_steps_taken(b->exec, &info, &count, NULL) == SNT_OK && count <= 256;
  bool right = known && (count > 0) == !host && snt_exec_steps_taken(b->exec, &info, &again, steps) == SNT_OK && again == count;
  for (uint32_t i = 0; right && i < count; i++) {
    right = steps[i] < snt_exec_step_count(b->exec);
    if (i && strcmp(m->name, "loop")) right &= steps[i] > steps[i - 1];
  }
  tap_ok(right, "%s on %s, sizes %lld %lld: %u of %u steps run", m->name, selector, (long long)sizes[0], (long long)sizes[1], count,
         snt_exec_step_count(b->exec));
  if (count > 1) tap_is_int(snt_exec_steps_taken(b->exec, &info, &few, steps), SNT_INCOMPLETE, "and no room for all of them");
}

static void run_sizes(bench *b, const char *selector, const api_model *m) {
  for (uint32_t i = 0; i < m->size_count; i++)
    for (int way = API_HOST_MEMORY; way <= API_BUFFERS; way++) {
      api_tensors tensors;
      uint64_t least = 0;
      snt_exec_reset_states(b->exec, NULL);
      const bool made = api_make_tensors(b->program, m->sizes[i], 3 + i, &tensors);
      const snt_result r = made ? api_run_once(b->device, b->exec, &tensors, (api_way)way, &least, &b->diag) : SNT_E_INTERNAL;
      const double ratio = r == SNT_OK ? api_ratio(b->graph, m->sizes[i], &tensors) : -1;
      if (!tap_ok(ratio >= 0 && ratio <= 1, "%s on %s, %s, sizes %lld %lld: error/bound %.3f", m->name, selector,
                  way == API_BUFFERS ? "buffers" : "host memory", (long long)m->sizes[i][0], (long long)m->sizes[i][1], ratio))
        tap_diag("result %d, %s: %s", r, b->diag.stage, b->diag.text);
      if (way == API_BUFFERS)
        tap_ok(least > 0, "%s on %s: every step took time (%llu ns at least)", m->name, selector, (unsigned long long)least);
      api_free_tensors(&tensors);
      if (way == API_BUFFERS) count_steps(b, selector, m, m->sizes[i]);
    }
}

/* mean = (sum of all x so far) / 8. */
static void run_states(bench *b, const char *selector) {
  float x[100], y[100], worst = 0;
  snt_argument arguments[2] = {{0, 0, NULL, 0, x, sizeof x}, {0, 0, NULL, 0, y, sizeof y}};
  tap_ok(snt_program_find_port(b->program, "x", &arguments[0].port) == SNT_OK &&
             snt_program_find_port(b->program, "mean", &arguments[1].port) == SNT_OK,
         "ports by name");
  const snt_run_info info = {.head = SNT_HEAD(run_info), .argument_count = 2, .arguments = arguments};
  for (int turn = 0; turn < 3; turn++) {
    for (int run = 1; run <= 8; run++) {
      for (int i = 0; i < 100; i++) x[i] = (float)(i * run);
      if (snt_run(b->exec, &info, &b->diag) != SNT_OK) worst = INFINITY;
      for (int i = 0; i < 100; i++) worst = fmaxf(worst, fabsf(y[i] - (float)(i * run * (run + 1) / 2) / 8));
    }
    tap_ok(worst == 0, "state on %s: 8 runs add up, turn %d", selector, turn);
    tap_is_int(snt_exec_reset_states(b->exec, &b->diag), SNT_OK, "state on %s: set to zero", selector);
  }
}

static void *run_jobs(void *exec) {
  snt_diag diag = {.head = SNT_HEAD(diag)};
  for (uint32_t i = 0; i < snt_exec_job_count(exec); i++)
    if (snt_exec_run_job(exec, i, &diag) < 0) return exec; /* SNT_NOT_READY: the other thread is at it */
  return NULL;
}

/* Two threads, each through all jobs: two may meet at one. */
static void run_threads(bench *b, const char *selector) {
  pthread_t threads[2];
  void *failed[2] = {NULL, NULL};
  for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, run_jobs, b->exec);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], &failed[i]);
  tap_ok(!failed[0] && !failed[1], "jobs on %s: done on two threads at once", selector);
  for (uint32_t i = 0; i < snt_exec_job_count(b->exec); i++) {
    snt_job job = {.head = SNT_HEAD(job)};
    tap_ok(snt_exec_job(b->exec, i, &job) == SNT_OK && job.state == SNT_JOB_DONE && job.name && job.code_bytes, "jobs on %s: %s is done",
           selector, job.name ? job.name : "?");
  }
  for (uint32_t i = 0; i < snt_exec_step_count(b->exec); i++) {
    snt_step step = {.head = SNT_HEAD(step)};
    tap_ok(snt_exec_step(b->exec, i, &step) == SNT_OK && step.name && step.kind, "steps on %s: %s", selector, step.name ? step.name : "?");
  }
}

static void run_device(snt_context *c, const char *selector) {
  for (uint32_t i = 0; i < api_model_count; i++) {
    const api_model *m = &api_models[i];
    bench b;
    if (set_up(&b, c, selector, m)) {
      if (i == 0) run_threads(&b, selector);
      run_sizes(&b, selector, m);
      if (!strcmp(m->name, "state")) snt_exec_reset_states(b.exec, NULL), run_states(&b, selector);
    }
    tear_down(&b);
  }
}

/* ---- wrong use ---- */

static void expect(snt_result got, snt_result want, const snt_diag *diag, const char *what) {
  if (!tap_ok(got == want && diag->result == want && diag->text[0], "%s: %s, \"%s\"", what, snt_result_text(want), diag->text))
    tap_diag("got %d, want %d, diag %d", got, want, diag->result);
}
#define EXPECT(want, what, ...) (memset(&diag, 0, sizeof diag), expect((__VA_ARGS__), (want), &diag, (what)))

static void refuse_short_rows(bench *b, snt_run_info info) {
  snt_diag diag = {0};
  info.argument_stride = sizeof(snt_argument) - 1;
  EXPECT(SNT_E_ARG, "rows of arguments that are too short", snt_run(b->exec, &info, &diag));
}

/* Of one argument of host memory: where else it might be said to lie. */
static void wrong_memory(bench *b, const snt_run_info *info, snt_argument *one, snt_buffer *near, snt_buffer *far) {
  snt_diag diag;
  const snt_argument good = *one;
  one->bytes = good.bytes - 1;
  EXPECT(SNT_E_ARG, "too little host memory", snt_run(b->exec, info, &diag));
  *one = (snt_argument){1, 0, near, 1024, NULL, 0};
  EXPECT(SNT_E_ARG, "too little of a buffer", snt_run(b->exec, info, &diag));
  one->offset = UINT64_MAX;
  EXPECT(SNT_E_ARG, "an offset past the end", snt_run(b->exec, info, &diag));
  one->offset = 4;
  EXPECT(SNT_E_ARG, "a misaligned offset", snt_run(b->exec, info, &diag));
  *one = (snt_argument){1, 0, far, 0, NULL, 0};
  EXPECT(SNT_E_ARG, "a buffer of another device", snt_run(b->exec, info, &diag));
  *one = (snt_argument){1, 0, NULL, 0, NULL, 0};
  EXPECT(SNT_E_ARG, "neither buffer nor memory", snt_run(b->exec, info, &diag));
  *one = (snt_argument){1, 0, near, 0, good.host, good.bytes};
  EXPECT(SNT_E_ARG, "both buffer and memory", snt_run(b->exec, info, &diag));
  *one = good;
}

static void wrong_arguments(bench *b, bench *other) {
  snt_diag diag;
  static float x[64 * 32], z[64 * 32];
  int64_t n = 64;
  snt_argument a[3] = {{0, 0, NULL, 0, x, sizeof x}, {1, 0, NULL, 0, x, sizeof x}, {2, 0, NULL, 0, z, sizeof z}};
  snt_run_info info = {.head = SNT_HEAD(run_info), .argument_count = 3, .arguments = a, .symbols = &n, .symbol_count = 1};
  snt_stream *stream = NULL, *far_stream = NULL;
  snt_buffer *near = NULL, *far = NULL;
  tap_ok(snt_stream_create(b->device, &stream, NULL) == SNT_OK && snt_stream_create(other->device, &far_stream, NULL) == SNT_OK, "streams");
  tap_ok(snt_buffer_create(b->device, sizeof x + 512, &near, NULL) == SNT_OK &&
             snt_buffer_create(other->device, sizeof x, &far, NULL) == SNT_OK,
         "buffers");
  EXPECT(SNT_E_ARG, "no exec", snt_run(NULL, &info, &diag));
  EXPECT(SNT_E_ARG, "no run info", snt_run(b->exec, NULL, &diag));
  refuse_short_rows(b, info);
  const snt_run_info nothing = {.head = SNT_HEAD(run_info)};
  uint32_t count = 0;
  tap_is_int(snt_exec_steps_taken(b->exec, &nothing, &count, NULL), SNT_E_ARG, "steps without symbols");
  tap_is_int(snt_exec_steps_taken(b->exec, &info, NULL, NULL), SNT_E_ARG, "steps without a place for their number");
  EXPECT(SNT_E_ARG, "a stream of another device", snt_submit(b->exec, far_stream, &info, NULL, &diag));
  EXPECT(SNT_E_ARG, "host memory in a submission", snt_submit(b->exec, stream, &info, NULL, &diag));
  a[2].port = 9;
  EXPECT(SNT_E_ARG, "a port that is not there", snt_run(b->exec, &info, &diag));
  a[2].port = 2, a[2].reserved = 1;
  EXPECT(SNT_E_ARG, "something in a field that a later version may give a meaning", snt_run(b->exec, &info, &diag));
  a[2].reserved = 0;
  info.argument_count = 2;
  EXPECT(SNT_E_ARG, "an argument missing", snt_run(b->exec, &info, &diag));
  info.argument_count = 3;
  wrong_memory(b, &info, &a[1], near, far);
  n = 5000;
  EXPECT(SNT_E_SHAPE, "a symbol out of its range", snt_run(b->exec, &info, &diag));
  n = 64;
  info.symbol_count = 0;
  EXPECT(SNT_E_ARG, "a symbol missing", snt_run(b->exec, &info, &diag));
  info.symbol_count = 1;
  info.arguments = NULL;
  EXPECT(SNT_E_ARG, "no arguments", snt_run(b->exec, &info, &diag));
  info.arguments = a;
  EXPECT(SNT_E_ARG, "an upload past the end", snt_buffer_upload(stream, near, 4096, x, sizeof x, &diag));
  EXPECT(SNT_E_ARG, "a download into nothing", snt_buffer_download(stream, near, 0, NULL, 16, &diag));
  EXPECT(SNT_E_ARG, "an upload to another device", snt_buffer_upload(stream, far, 0, x, 16, &diag));
  tap_is_int(snt_run(b->exec, &info, &diag), SNT_OK, "after all that it runs: %s", diag.text);
  tap_ok(z[0] == fmaxf(tanhf(x[0]), -0.25f), "and is right");
  snt_buffer_destroy(near);
  snt_buffer_destroy(far);
  snt_stream_destroy(stream);
  snt_stream_destroy(far_stream);
}

typedef struct longer_run_info {
  snt_run_info known;
  uint64_t later;
} longer_run_info;

static void wrong_structs(bench *b) {
  snt_diag diag;
  static float x[32], z[32];
  const int64_t n = 1;
  const snt_argument a[3] = {{0, 0, NULL, 0, x, sizeof x}, {1, 0, NULL, 0, x, sizeof x}, {2, 0, NULL, 0, z, sizeof z}};
  longer_run_info info = {.known = {.head = SNT_HEAD(run_info), .argument_count = 3, .arguments = a, .symbols = &n, .symbol_count = 1}};
  info.known.head.size = sizeof info;
  tap_is_int(snt_run(b->exec, &info.known, NULL), SNT_OK, "a larger struct, the rest zero");
  info.later = 1;
  EXPECT(SNT_E_STRUCT, "a larger struct that uses the rest", snt_run(b->exec, &info.known, &diag));
  info.later = 0;
  const snt_head unknown = {999, sizeof unknown, NULL};
  info.known.head.next = &unknown;
  EXPECT(SNT_E_STRUCT, "an unknown struct in the chain", snt_run(b->exec, &info.known, &diag));
  info.known.head.next = NULL;
  info.known.head.type = SNT_TYPE_job;
  EXPECT(SNT_E_STRUCT, "a struct of another type", snt_run(b->exec, &info.known, &diag));
  info.known.head.type = SNT_TYPE_run_info;
  info.known.head.size = 4;
  EXPECT(SNT_E_STRUCT, "a struct of no size", snt_run(b->exec, &info.known, &diag));
  info.known.head.size = sizeof info.known - 8;
  EXPECT(SNT_E_STRUCT, "a struct cut short", snt_run(b->exec, &info.known, &diag));
  snt_context *c = NULL;
  const snt_context_info odd = {.head = SNT_HEAD(context_info), .flags = 4};
  tap_is_int(snt_context_create(&odd, &c), SNT_E_ARG, "unknown bits of a context");
  const snt_compile_info later = {.head = {SNT_TYPE_compile_info, sizeof later, &unknown}};
  snt_profile *profile = NULL;
  snt_program *p = NULL;
  snt_profile_builtin(b->context, "pocl", &profile);
  EXPECT(SNT_E_STRUCT, "an unknown struct for snt_compile", snt_compile(b->graph, profile, &later, &p, &diag));
  snt_profile_destroy(profile);
}

static void wrong_graphs(bench *b) {
  static const struct {
    const char *op, *attributes;
    uint32_t count;
    snt_result want;
  } calls[] = {
      {"no.such.op", NULL, 1, SNT_E_PARSE},     {"add", NULL, 1, SNT_E_PARSE},      {"reduce.sum", "axes=[7]", 1, SNT_E_SHAPE},
      {"softmax", "axis=zero", 1, SNT_E_PARSE}, {"tanh", "; evil", 1, SNT_E_PARSE},
  };
  snt_diag diag;
  const snt_tensor t = {SNT_F32, 1, {8}};
  for (uint32_t i = 0; i < sizeof calls / sizeof *calls; i++) {
    snt_graph *g = NULL;
    snt_graph_create(b->context, &g);
    const snt_value x = snt_graph_input(g, "x", &t);
    tap_is_int(snt_graph_op(g, calls[i].op, &x, calls[i].count, calls[i].attributes), 0, "%s gives no value", calls[i].op);
    memset(&diag, 0, sizeof diag);
    const snt_result r = snt_graph_verify(g, &diag);
    tap_ok(r < 0 && diag.result == r && diag.text[0], "%s: the mistake is kept: %s, \"%s\"", calls[i].op, snt_result_text(r), diag.text);
    snt_graph_destroy(g);
  }
  static const snt_symbol symbols[] = {{NULL, 1, 2, 1, 1}, {"two words", 1, 2, 1, 1}, {"", 1, 2, 1, 1},
                                       {"n", 3, 2, 1, 1},  {"n", -1, 2, 1, 1},        {"n", 1, 2, -4, 1}};
  for (uint32_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
    snt_graph *g = NULL;
    snt_graph_create(b->context, &g);
    tap_is_int(snt_graph_symbol(g, &symbols[i]), UINT32_MAX, "symbol %u is refused", i);
    EXPECT(SNT_E_ARG, "a wrong symbol", snt_graph_verify(g, &diag));
    snt_graph_destroy(g);
  }
}

static void wrong_opens(bench *b) {
  snt_diag diag;
  snt_device *d = NULL;
  snt_profile *profile = NULL;
  const snt_open_info nobody = {.head = SNT_HEAD(open_info), .selector = "opencl:nobody"},
                      unmasked = {.head = SNT_HEAD(open_info), .selector = "host", .mask = "legs=4"};
  memset(&diag, 0, sizeof diag);
  tap_ok(snt_device_open(b->context, &nobody, &d, &diag) < 0 && diag.text[0] && !d, "a device that is not there: %s", diag.text);
  memset(&diag, 0, sizeof diag);
  tap_ok(snt_device_open(b->context, &unmasked, &d, &diag) < 0 && diag.text[0] && !d, "a mask of nothing: %s", diag.text);
  tap_is_int(snt_profile_builtin(b->context, "abacus", &profile), SNT_E_UNSUPPORTED, "a profile that is not there");
  EXPECT(SNT_E_PARSE, "a profile that is no text", snt_profile_parse(b->context, "launch = soon", 13, &profile, &diag));
  EXPECT(SNT_E_ARG, "no device for an exec", snt_exec_create(NULL, b->program, NULL, &b->exec, &diag));
  EXPECT(SNT_E_DEVICE_MEM, "a buffer of 2^60 bytes", snt_buffer_create(b->device, (uint64_t)1 << 60, &(snt_buffer *){NULL}, &diag));
  EXPECT(SNT_E_ARG, "no job", snt_exec_run_job(b->exec, 1000, &diag));
  tap_is_int(snt_context_create(NULL, NULL), SNT_E_ARG, "no place for a context");
  snt_context_destroy(NULL);
  snt_device_destroy(NULL);
  snt_program_destroy(NULL);
  snt_exec_destroy(NULL);
  snt_event_destroy(NULL);
  snt_graph_destroy(NULL);
}

int main(void) {
  api_memory memory = {0, 0, 0};
  api_devices devices;
  bench good, other;
  host_prepare_drivers(NULL);
  snt_context *c = api_context(&memory);
  api_find_devices(c, &devices);
  for (uint32_t i = 0; i < devices.count; i++)
    if (!strstr(devices.selector[i], "oclgrind") && !strstr(devices.selector[i], "cuda-text")) run_device(c, devices.selector[i]);
  if (devices.count < 3) tap_skip("no device of a driver here");
  if (set_up(&good, c, "interp", api_model_named("chain")) && set_up(&other, c, "host", api_model_named("chain"))) {
    wrong_arguments(&good, &other);
    wrong_structs(&good);
    wrong_graphs(&good);
    wrong_opens(&good);
  }
  tear_down(&good);
  tear_down(&other);
  snt_context_destroy(c);
  tap_is_int(atomic_load(&memory.live), 0, "all memory is given back");
  return tap_done();
}
