/* What is asked of an OpenCL driver of our own (opencl_fake.h) in place of the library that the loader would find: the n-th call that can fail does, for every
   n and every kind of error, as each family of drivers. What must hold: a call that matters gives its own result, others change nothing, nothing is left
   over, a lost device stays lost. And what is known to be wrong with each family of drivers (runtime/opencl/device.c) is seen in what is asked of the driver. */
#include "runtime/rt_opencl.h"
#include "runtime/targets.h"
#include "tests/tap.h"
#include "tests/unit/opencl_fake.h"
#include "tests/unit/rt_kernels.h"
#include "tests/unit/rt_life.h"
#include <pthread.h>

/* ---- the loader: these three in place of runtime/rt_loader.c ---- */

void *rt_library_open(const char *const *names) { return strstr(*names, "OpenCL") || strstr(*names, "oclgrind") ? &opencl_fake : NULL; }
void rt_library_close(void *library) { (void)library; }
const char *rt_library_symbols(void *library, const char *names, void *table) {
  (void)library;
  for (char *at = table; *names; names = rt_next_name(names), at += sizeof(opencl_fake_function)) {
    const opencl_fake_function found = opencl_fake_find(names);
    memcpy(at, &found, sizeof found);
  }
  return NULL;
}

/* ---- a life of a device ---- */

static struct { int64_t live; } ours;
static void *count_acquire(void *user, size_t size, size_t align, uint32_t scope) {
  (void)user, (void)scope, ours.live += (int64_t)size;
  return aligned_alloc(align, (size + align - 1) / align * align + (size ? 0 : align));
}
static void count_release(void *user, void *at, size_t size, size_t align) {
  (void)user, (void)align;
  if (at) ours.live -= (int64_t)size;
  free(at);
}

static snt_result use(rt_life *t, rt_device *device, const rt_code *code) {
  static uint8_t binary[16];
  t->turns = 1, t->wait_ns = 1000, t->binary = binary, t->binary_size = sizeof binary;
  SNT_TRY(rt_life_use(t, device, code));
  return t->result[0] == 2 && t->result[63] == 63 ? SNT_OK : SNT_E_INTERNAL;
}

static bool never_opened;
static snt_result live(const rt_code *code, snt_result *after) {
  const snt_host_alloc alloc = {NULL, count_acquire, count_release};
  rt_device *device = NULL;
  rt_life t = {0};
  *after = SNT_E_DEVICE_LOST;
  const snt_result opened = rt_open_device(&alloc, NULL, "opencl:0", &device, NULL);
  if ((never_opened = opened != SNT_OK)) return opened;
  memset(opencl_fake_called + 1, 0, sizeof opencl_fake_called - sizeof *opencl_fake_called);
  const snt_result result = use(&t, device, code);
  *after = rt_life_ask(device);
  rt_life_free(&t, device);
  rt_close_device(device);
  return result;
}

// clang-format off
static const struct { cl_int code; snt_result result; } errors[] = {
    {CL_DEVICE_NOT_AVAILABLE, SNT_E_DEVICE_LOST}, {CL_OUT_OF_RESOURCES, SNT_E_DEVICE_MEM}, {CL_OUT_OF_HOST_MEMORY, SNT_E_HOST_MEM},
    {CL_INVALID_OPERATION, SNT_E_BACKEND}};
// clang-format on

static void fail_each(const rt_code *code, const char *platform, bool cpu) {
  uint32_t tries = 0, wrong = 0, left = 0, revived = 0;
  bool told[OPENCL_FAKE_MUST] = {false};
  memset(opencl_fake_called, 0, sizeof opencl_fake_called);
  snt_result after;
  opencl_fake.platform = platform, opencl_fake.cpu = cpu, opencl_fake.fail_at = 0, opencl_fake.calls = 0;
  opencl_fake.early = !strcmp(platform, "rusticl"), opencl_fake.misused = opencl_fake.hasty = 0;
  tap_is_int(live(code, &after), SNT_OK, "%s: nothing fails, and the kernel's numbers come out", platform);
  tap_is_int(opencl_fake.hasty, 0, "%s: nothing goes that a command needs", platform);
  const uint32_t calls = opencl_fake.calls;
  for (uint32_t e = 0; e < IR_COUNT(errors); e++) {
    for (uint32_t n = 1; n <= calls; n++, tries++) {
      opencl_fake.fail_at = n, opencl_fake.fail_with = errors[e].code, opencl_fake.calls = 0, opencl_fake.failed = "none", ours.live = 0;
      opencl_fake.alive = 0;
      const snt_result got = live(code, &after);
      const bool right = got == SNT_OK || got == errors[e].result || (never_opened && (got == SNT_E_UNSUPPORTED || got == SNT_E_BACKEND));
      const bool lost = got == SNT_E_DEVICE_LOST, stays = !lost || after == SNT_E_DEVICE_LOST;
      wrong += !right, left += opencl_fake.alive != 0 || ours.live != 0, revived += !stays;
      if (!right || !stays || opencl_fake.alive || ours.live)
        tap_diag("call %u, %s, gives %d: result %d, then %d; %lld objects and %lld bytes left", n, opencl_fake.failed + 1, errors[e].code,
                 got, after, (long long)opencl_fake.alive, (long long)ours.live);
      for (uint32_t k = 0; k < OPENCL_FAKE_MUST; k++)
        told[k] |= got == errors[e].result && !strcmp(opencl_fake.failed + 1, opencl_fake_must[k]);
    }
  }
  tap_ok(calls > 60 && wrong == 0, "%s: each of %u calls fails with each of %u errors, and the result says which", platform, calls,
         IR_COUNT(errors));
  tap_is_int(left, 0, "%s: nothing is left in the driver or of our own after %u lives", platform, tries);
  tap_is_int(opencl_fake.misused, 0, "%s: nothing is used that is gone, of another kind or not set, whatever fails", platform);
  tap_is_int(revived, 0, "%s: a lost device stays lost", platform);
  for (uint32_t k = 0; k < OPENCL_FAKE_MUST; k++)
    if (opencl_fake_called[k] && !told[k]) tap_ok(false, "%s: a failing %s is told", platform, opencl_fake_must[k]);
}

/* ---- what is known to be wrong with a family, by what is asked of its driver ---- */

typedef struct habits {
  const char *platform, *selector;
  bool cpu, mapped, understates, early, warms, unoptimised, alone, late, whole;
} habits;
static const habits known[] = {
    {"Portable Computing Language", "opencl:pocl", .cpu = true, .mapped = true, .warms = true, .late = true, .whole = true}, /* 3.1 */
    {"rusticl", "opencl:rusticl", .cpu = true, .understates = true, .early = true},   /* Mesa 22.3.6 */
    {"Oclgrind", "opencl:oclgrind", .cpu = true, .unoptimised = true, .alone = true}, /* 21.10 */
    {"some other driver", "opencl:0", .cpu = false},
};

typedef struct builder {
  rt_device *device;
  const rt_code *code;
} builder;
static void *build_one(void *user) {
  const builder *b = user;
  rt_pipeline *none = NULL;
  return (void *)(intptr_t)(b->device->v->pipeline_create(b->device, b->code, NULL, 0, &none, NULL) == SNT_OK);
}

static void check_binaries(rt_device *device, const habits *h, const rt_code *code, rt_pipeline *pipeline) {
  static const char *const binaries[2] = {"1234/program.b56", "1234/program.bc5"};
  for (uint32_t whole = 0; whole < 2; whole++) {
    char binary[16];
    size_t size = sizeof binary;
    const bool taken = whole || !h->whole;
    rt_pipeline *again = NULL;
    opencl_fake.binary = binaries[whole], opencl_fake.from_binary = 0;
    tap_is_int(device->v->pipeline_binary(pipeline, binary, &size), taken ? SNT_OK : SNT_E_BACKEND, "%s: %s", h->selector,
               whole ? "a whole binary is handed out" : "a binary that lacks a part is none");
    tap_is_int(device->v->pipeline_create(device, code, binaries[whole], sizeof binary, &again, NULL), SNT_OK, "and built");
    tap_ok(again && again->from_binary == taken && opencl_fake.from_binary == taken, "from it, or from its text");
    device->v->pipeline_destroy(again);
  }
  opencl_fake.binary = NULL;
}

static void check_habits(const habits *h, const rt_code *code) {
  rt_device *device = NULL;
  rt_stream *stream = NULL;
  rt_pipeline *pipeline = NULL, *wide = NULL;
  rt_buffer *buffer = NULL;
  rt_life t = {0};
  pthread_t threads[4];
  opencl_fake.platform = h->platform, opencl_fake.cpu = h->cpu, opencl_fake.fail_at = 0, opencl_fake.group_size = 256;
  if (!tap_ok(rt_open_device(NULL, NULL, h->selector, &device, NULL) == SNT_OK, "%s opens", h->selector)) return;
  const rt_vtable *v = device->v;
  const int64_t before = opencl_fake.alive;
  v->stream_create(device, &stream, NULL);
  tap_is_int(opencl_fake.alive - before, h->early ? 2 : 1, "%s: a stream has a word to read only where finishing does not wait",
             h->selector);
  opencl_fake.launches = 0;
  v->pipeline_create(device, code, NULL, 0, &pipeline, NULL);
  tap_is_int(opencl_fake.launches, h->warms, "%s: an empty launch only where the first one compiles", h->selector);
  tap_is_int(strstr(opencl_fake.options, "-cl-opt-disable") != NULL, h->unoptimised, "%s: the optimiser is off only where it harms",
             h->selector);
  check_binaries(device, h, code, pipeline);
  v->buffer_create(device, 64, &buffer, NULL);
  tap_is_int((opencl_fake.flags & CL_MEM_ALLOC_HOST_PTR) != 0, h->mapped, "%s: memory that may stay mapped is asked for where it may",
             h->selector);
  tap_is_int(buffer && buffer->host, h->mapped, "%s: buffers stay mapped only where they may", h->selector);
  tap_is_int(device->late_binaries, h->late, "%s: binaries are asked for late only where that compiles again", h->selector);
  opencl_fake.group_size = 16;
  tap_is_int(v->pipeline_create(device, code, NULL, 0, &wide, NULL), h->understates ? SNT_OK : SNT_E_LIMIT,
             "%s: a group size too small is believed unless the driver understates it", h->selector);
  opencl_fake.group_size = 256, opencl_fake.markers = 0;
  tap_is_int(use(&t, device, code), SNT_OK, "%s: a kernel runs", h->selector);
  if (h->early) tap_is_int(opencl_fake.markers, 0, "%s: no marker is trusted where they do not wait", h->selector);
  opencl_fake.group_size = 0, opencl_fake.most_builders = 0;
  builder b = {device, code};
  for (uint32_t i = 0; i < IR_COUNT(threads); i++) pthread_create(&threads[i], NULL, build_one, &b);
  for (uint32_t i = 0; i < IR_COUNT(threads); i++) pthread_join(threads[i], NULL);
  opencl_fake.group_size = 256;
  if (h->alone) tap_is_int(opencl_fake.most_builders, 1, "%s: one thread builds at a time", h->selector);
  rt_life_free(&t, device);
  v->buffer_destroy(buffer);
  v->pipeline_destroy(pipeline), v->pipeline_destroy(wide);
  v->stream_destroy(stream);
  rt_close_device(device);
  tap_is_int(opencl_fake.alive - before, -1, "%s: nothing is left, nor is its context", h->selector);
}

/* Drivers that take the flag for times and answer 0, or 1 ns. */
static void check_times(void) {
  for (cl_ulong ns = 0; ns < 3; ns++) {
    rt_device *device = NULL;
    opencl_fake.ends_ns = 1000 + (ns < 2 ? ns : 8000);
    if (!tap_ok(rt_open_device(NULL, NULL, "opencl:0", &device, NULL) == SNT_OK, "a device whose copies take %u ns opens",
                (unsigned)(opencl_fake.ends_ns - 1000)))
      return;
    tap_is_int(((ocl_device *)device)->profiling, ns == 2, "its times are believed only where they can be true");
    rt_close_device(device);
  }
}

/* What a text asks for in its first line is added to the device's options, whether it is built or a binary of it. */
static void check_options(const rt_code *code) {
  static const struct {
    const char *text, *options;
  } rows[] = {
      {"// -cl-denorms-are-zero\nkernel", "-cl-std=CL1.2 -cl-denorms-are-zero"}, {"kernel", "-cl-std=CL1.2"}, {"// -cl", "-cl-std=CL1.2"}};
  rt_device *device = NULL;
  opencl_fake.platform = "some other driver", opencl_fake.cpu = false;
  if (!tap_ok(rt_open_device(NULL, NULL, "opencl:0", &device, NULL) == SNT_OK, "a device whose options are looked at opens")) return;
  for (uint32_t i = 0; i < 2 * IR_COUNT(rows); i++) {
    rt_code asks = *code;
    rt_pipeline *pipeline = NULL;
    const bool cached = i % 2;
    asks.data = rows[i / 2].text, asks.size = strlen(rows[i / 2].text);
    opencl_fake.options[0] = 0;
    tap_is_int(device->v->pipeline_create(device, &asks, cached ? "a binary" : NULL, cached ? 8 : 0, &pipeline, NULL), SNT_OK,
               "a text of %u bytes is built%s", (unsigned)asks.size, cached ? " from its binary" : "");
    tap_ok(!strcmp(opencl_fake.options, rows[i / 2].options), "with options of its own: %s", opencl_fake.options);
    device->v->pipeline_destroy(pipeline);
  }
  rt_close_device(device);
}

/* Products of bytes are the language's where the driver says that they are fast, and that the language has them. */
static void check_dots(const rt_code *code) {
  static const struct {
    const char *selector, *platform, *version, *options;
    bool has, fast;
  } rows[] = {
      {"opencl:0", "some other driver", "OpenCL 3.0 x", "-cl-std=CL3.0 -DSNT_DOT4=32", true, true},
      {"opencl:0", "some other driver", "OpenCL 3.0 x", "-cl-std=CL1.2", true, false},
      {"opencl:0", "some other driver", "OpenCL 3.0 x", "-cl-std=CL1.2", false, true},
      {"opencl:0", "some other driver", "OpenCL 2.1 x", "-cl-std=CL1.2", true, true},
      {"opencl:pocl", "Portable Computing Language", "OpenCL 3.0 x", "-cl-std=CL1.2 -cl-fp32-correctly-rounded-divide-sqrt", true,
       true}, /* has assembly of its own */
  };
  for (uint32_t i = 0; i < IR_COUNT(rows); i++) {
    rt_device *device = NULL;
    rt_pipeline *pipeline = NULL;
    opencl_fake.platform = rows[i].platform, opencl_fake.version = rows[i].version, opencl_fake.dots = rows[i].has,
    opencl_fake.fast_dots = rows[i].fast;
    opencl_fake.cpu = !strcmp(rows[i].selector, "opencl:pocl");
    if (!tap_ok(rt_open_device(NULL, NULL, rows[i].selector, &device, NULL) == SNT_OK, "%s of %s opens", rows[i].selector, rows[i].version))
      return;
    device->v->pipeline_create(device, code, NULL, 0, &pipeline, NULL);
    tap_is_text(opencl_fake.options, rows[i].options, "what it is built with");
    tap_is_int(device->profile.caps.dot4, strstr(rows[i].options, "DOT4") != NULL, "and compiled for");
    device->v->pipeline_destroy(pipeline);
    rt_close_device(device);
  }
}

/* Where the driver lists a device that runs kernels on the thread that enqueues them: kernels made for it go there, and a stream that turns to its other queue
   waits for the one before. */
static void check_near(const rt_code *code) {
  rt_device *device = NULL;
  rt_stream *stream = NULL;
  rt_pipeline *pipelines[2] = {NULL, NULL};
  rt_buffer *buffer = NULL;
  rt_code made = *code;
  uint32_t block[2] = {0}, listed = 0;
  rt_device_desc all[2];
  opencl_fake.platform = "Portable Computing Language", opencl_fake.cpu = true, opencl_fake.near = true;
  rt_opencl.enumerate(NULL, &listed, all, 2);
  tap_is_int(listed, 1, "a device near to another is none of its own");
  if (!tap_ok(rt_open_device(NULL, NULL, "opencl:pocl", &device, NULL) == SNT_OK && device->near, "and is known to that")) return;
  const rt_vtable *v = device->v;
  v->stream_create(device, &stream, NULL);
  v->buffer_create(device, 64, &buffer, NULL);
  for (uint32_t near = 0; near < 2; near++) {
    made.near = near;
    v->pipeline_create(device, &made, NULL, 0, &pipelines[near], NULL);
  }
  struct rt_bound bindings[2] = {{buffer, 0, 64, KIR_READ}, {buffer, 0, 64, KIR_WRITE}};
  static const struct {
    bool near;
    uint32_t waits;
  } rows[] = {{true, 0}, {true, 0}, {false, 1}, {false, 0}, {true, 1}};
  for (uint32_t i = 0; i < IR_COUNT(rows); i++) {
    const rt_dispatch dispatch = {
        .pipeline = pipelines[rows[i].near], .groups = 1, .binding_count = 2, .bindings = bindings, .block = block, .block_bytes = 8};
    opencl_fake.finishes = 0;
    tap_ok(v->submit(stream, 1, &dispatch, false, NULL, NULL) == SNT_OK && opencl_fake.was_near == rows[i].near &&
               opencl_fake.finishes == rows[i].waits,
           "launch %u goes to its queue behind %u waits", i, rows[i].waits);
  }
  v->buffer_destroy(buffer);
  v->pipeline_destroy(pipelines[0]), v->pipeline_destroy(pipelines[1]);
  v->stream_destroy(stream);
  rt_close_device(device);
}

/* A device that has a profile of its own begins from it, without what the language lacks. */
static void check_known(void) {
  rt_device *device = NULL;
  opencl_fake.platform = "NVIDIA CUDA", opencl_fake.cpu = false, opencl_fake.name = "NVIDIA H200";
  if (!tap_ok(rt_open_device(NULL, NULL, "opencl:nvidia", &device, NULL) == SNT_OK, "a device of a known name opens")) return;
  const cost_profile *p = &device->profile;
  tap_ok(!strcmp(p->name, "h200") && p->dram_gbs > 4000, "and begins from its profile: %s, %.0f GB/s", p->name, p->dram_gbs);
  tap_ok(p->caps.max_lanes == 4 && !p->caps.subgroups && !p->caps.mma[KIR_MMA_F16].m, "with vectors, without what the language lacks");
  rt_close_device(device);
  opencl_fake.platform = "rusticl", opencl_fake.cpu = true, opencl_fake.name = NULL;
  if (!tap_ok(rt_open_device(NULL, NULL, "opencl:rusticl", &device, NULL) == SNT_OK, "one of a family opens")) return;
  tap_is_int(device->profile.caps.max_lanes, 1, "and its profile has scalars alone where that says so");
  rt_close_device(device);
}

/* The first device of a family has its name, the others their numbers. */
static void check_selectors(void) {
  const snt_host_alloc alloc = {NULL, count_acquire, count_release};
  rt_device_desc all[2];
  uint32_t listed = 0;
  opencl_fake.platform = "rusticl", opencl_fake.cpu = true, opencl_fake.near = true, ours.live = 0;
  tap_ok(rt_opencl.enumerate(&alloc, &listed, all, 2) == SNT_OK && ours.live == 0, "two devices of a family");
  tap_ok(listed == 2 && !strcmp(all[0].selector, "opencl:rusticl") && !strcmp(all[1].selector, "opencl:1"), "are told apart");
  opencl_fake.near = false;
}

/* Each part of a buffer that kernels are given is an object that is made once, however many there are. */
static void check_parts(const rt_code *code) {
  enum { PARTS = 100, STEP = 1024 };
  rt_device *device = NULL;
  rt_stream *stream = NULL;
  rt_pipeline *pipeline = NULL;
  rt_buffer *x = NULL, *y = NULL;
  const uint32_t block[2] = {0};
  const int64_t start = opencl_fake.alive;
  opencl_fake.platform = "some other driver", opencl_fake.cpu = false;
  if (!tap_ok(rt_open_device(NULL, NULL, "opencl:0", &device, NULL) == SNT_OK, "a device opens")) return;
  const rt_vtable *v = device->v;
  v->stream_create(device, &stream, NULL);
  v->pipeline_create(device, code, NULL, 0, &pipeline, NULL);
  v->buffer_create(device, 64, &x, NULL);
  v->buffer_create(device, PARTS * STEP, &y, NULL);
  const int64_t before = opencl_fake.alive;
  for (uint32_t round = 0; round < 2; round++) {
    uint32_t failed = 0;
    for (uint32_t i = 0; i < PARTS; i++) {
      struct rt_bound bindings[2] = {{x, 0, 64, KIR_READ}, {y, (uint64_t)i * STEP, 64, KIR_WRITE}};
      const rt_dispatch dispatch = {
          .pipeline = pipeline, .groups = 1, .binding_count = 2, .bindings = bindings, .block = block, .block_bytes = 8};
      failed += v->submit(stream, 1, &dispatch, false, NULL, NULL) != SNT_OK;
    }
    failed += v->wait(stream, NULL) != SNT_OK;
    tap_ok(!failed && opencl_fake.alive - before == PARTS, "round %u: %lld objects are made for %d parts", round,
           (long long)(opencl_fake.alive - before), PARTS);
  }
  v->buffer_destroy(x), v->buffer_destroy(y);
  v->pipeline_destroy(pipeline);
  v->stream_destroy(stream);
  rt_close_device(device);
  tap_is_int(opencl_fake.alive, start, "and are gone with it");
}

/* A stream that goes waits for its commands, so that buffers and kernels may go behind it; one that goes before is seen by the driver of our own. */
static void check_going(const rt_code *code, const char *platform, bool stream_first) {
  rt_device *device = NULL;
  rt_stream *stream = NULL;
  rt_pipeline *pipeline = NULL;
  rt_buffer *x = NULL;
  const uint32_t block[2] = {0};
  opencl_fake.platform = platform, opencl_fake.cpu = opencl_fake.early = !strcmp(platform, "rusticl"), opencl_fake.hasty = 0;
  const char *selector = opencl_fake.early ? "opencl:rusticl" : "opencl:0";
  if (!tap_ok(rt_open_device(NULL, NULL, selector, &device, NULL) == SNT_OK, "%s opens", platform)) return;
  const rt_vtable *v = device->v;
  v->stream_create(device, &stream, NULL);
  v->pipeline_create(device, code, NULL, 0, &pipeline, NULL);
  v->buffer_create(device, 64, &x, NULL);
  struct rt_bound bindings[2] = {{x, 0, 64, KIR_READ}, {x, 0, 64, KIR_WRITE}};
  const rt_dispatch dispatch = {
      .pipeline = pipeline, .groups = 1, .binding_count = 2, .bindings = bindings, .block = block, .block_bytes = 8};
  const bool sent = v->submit(stream, 1, &dispatch, false, NULL, NULL) == SNT_OK;
  if (stream_first) v->stream_destroy(stream);
  v->buffer_destroy(x);
  v->pipeline_destroy(pipeline);
  if (!stream_first) v->stream_destroy(stream);
  rt_close_device(device);
  tap_ok(sent && opencl_fake.hasty == (stream_first ? 0 : 3), "%s: %s", platform,
         stream_first ? "what goes behind its stream is needed no more"
                      : "a buffer, a kernel and its program that go before their stream are seen");
}

int main(void) {
  test_code code;
  const char *why = "";
  if (!test_code_make(&code, SNT_TARGET_OPENCL, false, &why)) return tap_skip_all(why);
  fail_each(&code.code, "Portable Computing Language", true);
  check_near(&code.code);
  fail_each(&code.code, "Portable Computing Language", true); /* with two queues a stream */
  opencl_fake.near = false;
  fail_each(&code.code, "rusticl", true);
  fail_each(&code.code, "some other driver", false);
  for (uint32_t i = 0; i < IR_COUNT(known); i++) check_habits(&known[i], &code.code);
  check_known();
  check_selectors();
  check_parts(&code.code);
  for (uint32_t first = 0; first < 2; first++) {
    check_going(&code.code, "some other driver", first);
    check_going(&code.code, "rusticl", first);
  }
  opencl_fake.early = false;
  check_times();
  check_options(&code.code);
  check_dots(&code.code);
  test_code_free(&code);
  opencl_fake_forget();
  return tap_done();
}
