/* Every device that this machine has, through the vtable alone: copies, dispatches, folded grids, offsets, streams, times, mistakes, and what
   is left over. A device that is missing is named and skipped. */
#include "runtime/rt_common.h"
#include "runtime/targets.h"
#include "tests/tap.h"
#include "tests/unit/rt_kernels.h"
#include "tools/host/host.h"
#include <dlfcn.h>

/* ---- an allocator that counts ---- */

typedef struct counter {
  uint64_t calls;
  int64_t live;
} counter;

static void *count_acquire(void *user, size_t size, size_t align, uint32_t scope) {
  counter *c = user;
  (void)scope;
  __atomic_add_fetch(&c->calls, 1, __ATOMIC_RELAXED);
  __atomic_add_fetch(&c->live, (int64_t)size, __ATOMIC_RELAXED);
  return aligned_alloc(align, (size + align - 1) / align * align + (size ? 0 : align));
}

static void count_release(void *user, void *ptr, size_t size, size_t align) {
  counter *c = user;
  (void)align;
  if (!ptr) return;
  __atomic_sub_fetch(&c->live, (int64_t)size, __ATOMIC_RELAXED);
  free(ptr);
}

/* ---- a device under test ---- */

typedef struct fixture {
  rt_device *device;
  const rt_vtable *v;
  rt_stream *stream;
  rt_pipeline *pipeline;
  const char *selector;
  test_code code;
  counter *counter;
} fixture;

static rt_buffer *make_buffer(fixture *f, uint64_t bytes) {
  rt_buffer *buffer = NULL;
  snt_diag diag = {0};
  if (f->v->buffer_create(f->device, bytes, &buffer, &diag) != SNT_OK) tap_diag("buffer of %llu: %s", (unsigned long long)bytes, diag.text);
  return buffer;
}

static bool put(fixture *f, rt_buffer *buffer, uint64_t offset, const void *data, uint64_t bytes) {
  return f->v->upload(f->stream, buffer, offset, data, bytes, NULL) == SNT_OK;
}

static bool fetch(fixture *f, rt_buffer *buffer, uint64_t offset, void *data, uint64_t bytes) {
  return f->v->download(f->stream, buffer, offset, data, bytes, NULL) == SNT_OK;
}

typedef struct scale_call {
  struct rt_bound bindings[2];
  uint32_t block[2];
  rt_dispatch dispatch;
} scale_call;

typedef struct place {
  rt_buffer *buffer;
  uint64_t offset;
} place;

static void set_scale(scale_call *call, fixture *f, place x, place y, uint32_t n, float a) {
  call->bindings[0] = (struct rt_bound){x.buffer, x.offset, 4 * (uint64_t)n, KIR_READ};
  call->bindings[1] = (struct rt_bound){y.buffer, y.offset, 4 * (uint64_t)n, KIR_WRITE};
  call->block[0] = n;
  memcpy(&call->block[1], &a, sizeof a);
  call->dispatch = (rt_dispatch){.pipeline = f->pipeline,
                                 .groups = (n + 63) / 64,
                                 .binding_count = 2,
                                 .bindings = call->bindings,
                                 .block = call->block,
                                 .block_bytes = 8,
                                 .barrier = true};
}

static void fill_ramp(float *at, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) at[i] = (float)(i % 97) - 40;
}

/* All values are small integers: equal to the bit on every device. */
static uint32_t count_wrong(const float *x, const float *y, uint32_t n, float a) {
  uint32_t wrong = 0;
  for (uint32_t i = 0; i < n; i++) wrong += y[i] != a * x[i] + (float)i;
  return wrong;
}

/* ---- the checks ---- */

static void check_copies(fixture *f) {
  static const uint64_t sizes[] = {1, 3, 255, 4097, 70001};
  unsigned char out[70001], back[70001];
  for (size_t i = 0; i < sizeof out; i++) out[i] = (unsigned char)(i * 7 + i / 251);
  for (uint32_t i = 0; i < IR_COUNT(sizes); i++) {
    uint64_t size = sizes[i];
    rt_buffer *buffer = make_buffer(f, size);
    memset(back, 0, sizeof back);
    bool ok = buffer && put(f, buffer, 0, out, size) && fetch(f, buffer, 0, back, size) && memcmp(out, back, size) == 0;
    uint64_t half = size / 2;
    ok = ok && put(f, buffer, half, out + 1, size - half) && fetch(f, buffer, 0, back, size);
    ok = ok && memcmp(back, out, half) == 0 && memcmp(back + half, out + 1, size - half) == 0;
    tap_ok(ok, "%s: %llu bytes there and back, whole and from the middle", f->selector, (unsigned long long)size);
    if (ok && i == 2) {
      tap_is_int(f->v->upload(f->stream, buffer, 250, out, 10, NULL), SNT_E_ARG, "%s: a copy past the end is refused", f->selector);
      tap_is_int(f->v->download(f->stream, buffer, UINT64_MAX, back, 2, NULL), SNT_E_ARG, "%s: an offset that overflows is refused",
                 f->selector);
      tap_is_int(f->v->upload(f->stream, buffer, size, out, 0, NULL), SNT_OK, "%s: nothing at the end is a copy", f->selector);
    }
    f->v->buffer_destroy(buffer);
  }
}

enum { N = 1000 };

static void check_dispatch(fixture *f) {
  float x[N], y[N + 1], guard = 12345;
  rt_buffer *bx = make_buffer(f, sizeof x), *by = make_buffer(f, sizeof y);
  scale_call call;
  snt_diag diag = {0};
  fill_ramp(x, N);
  for (uint32_t i = 0; i <= N; i++) y[i] = guard;
  put(f, bx, 0, x, sizeof x), put(f, by, 0, y, sizeof y);
  set_scale(&call, f, (place){bx, 0}, (place){by, 0}, N, 3);
  snt_result result = f->v->submit(f->stream, 1, &call.dispatch, false, NULL, &diag);
  if (!tap_is_int(result, SNT_OK, "%s: a dispatch", f->selector)) tap_diag("%s", diag.text);
  tap_is_int(f->v->wait(f->stream, NULL), SNT_OK, "%s: and the wait for it", f->selector);
  fetch(f, by, 0, y, sizeof y);
  tap_is_int(count_wrong(x, y, N, 3), 0, "%s: all of its values", f->selector);
  tap_ok(y[N] == guard, "%s: and nothing behind them", f->selector);
  call.dispatch.groups = 0;
  tap_is_int(f->v->submit(f->stream, 1, &call.dispatch, false, NULL, NULL), SNT_OK, "%s: no groups are nothing to do", f->selector);
  f->v->buffer_destroy(bx), f->v->buffer_destroy(by);
}

/* The device's limit is taken down so that 16 groups need two rows, and too many fit nowhere. */
static void check_folding(fixture *f) {
  float x[N], y[N];
  rt_buffer *bx = make_buffer(f, sizeof x), *by = make_buffer(f, sizeof y);
  uint32_t limit[3];
  scale_call call;
  fill_ramp(x, N);
  memset(y, 0, sizeof y);
  put(f, bx, 0, x, sizeof x), put(f, by, 0, y, sizeof y);
  memcpy(limit, f->device->profile.max_grid, sizeof limit);
  f->device->profile.max_grid[0] = 3, f->device->profile.max_grid[1] = 2, f->device->profile.max_grid[2] = 4;
  set_scale(&call, f, (place){bx, 0}, (place){by, 0}, N, 5);
  bool ok = f->v->submit(f->stream, 1, &call.dispatch, false, NULL, NULL) == SNT_OK && fetch(f, by, 0, y, sizeof y);
  tap_ok(ok && count_wrong(x, y, N, 5) == 0, "%s: a grid folded over three axes", f->selector);
  call.dispatch.groups = 25;
  tap_is_int(f->v->submit(f->stream, 1, &call.dispatch, false, NULL, NULL), SNT_E_LIMIT, "%s: more groups than the grid holds",
             f->selector);
  memcpy(f->device->profile.max_grid, limit, sizeof limit);
  f->v->buffer_destroy(bx), f->v->buffer_destroy(by);
}

/* Two kernels in one arena of memory, the second reading what the first wrote; guard words between. */
static void check_chain(fixture *f) {
  enum { COUNT = 513 };
  uint32_t align = f->device->profile.offset_align, part = (4 * COUNT + 64 + align - 1) / align * align;
  float *arena = calloc(3, part), *back = calloc(3, part), twice[COUNT];
  rt_buffer *buffer = make_buffer(f, 3 * (uint64_t)part);
  scale_call calls[2];
  rt_dispatch both[2];
  rt_event *event = NULL;
  for (uint32_t i = 0; i < 3 * part / 4; i++) arena[i] = -777;
  fill_ramp(arena, COUNT);
  put(f, buffer, 0, arena, 3 * (uint64_t)part);
  set_scale(&calls[0], f, (place){buffer, 0}, (place){buffer, part}, COUNT, 2);
  set_scale(&calls[1], f, (place){buffer, part}, (place){buffer, 2 * (uint64_t)part}, COUNT, 3);
  both[0] = calls[0].dispatch, both[1] = calls[1].dispatch;
  snt_diag diag = {0};
  uint64_t begin = rt_clock_ns();
  snt_result result = f->v->submit(f->stream, 2, both, true, &event, &diag);
  if (!tap_is_int(result, SNT_OK, "%s: two dispatches, timed", f->selector)) tap_diag("%s", diag.text);
  if (result == SNT_OK) {
    snt_result asked = f->v->event_wait(event, 0);
    tap_ok(asked == SNT_OK || asked == SNT_NOT_READY, "%s: an event can be asked", f->selector);
    tap_is_int(f->v->event_wait(event, UINT64_MAX), SNT_OK, "%s: and waited for", f->selector);
    uint64_t passed = rt_clock_ns() - begin, ns[2] = {0, 0};
    tap_is_int(f->v->event_wait(event, 1000), SNT_OK, "%s: and is over then", f->selector);
    uint32_t count = 0;
    tap_is_int(f->v->event_timings(event, &count, NULL), SNT_OK, "%s: its times can be counted", f->selector);
    tap_is_int(count, 2, "%s: one a dispatch", f->selector);
    count = 2;
    tap_is_int(f->v->event_timings(event, &count, ns), SNT_OK, "%s: its times", f->selector);
    tap_ok(ns[0] > 0 && ns[1] > 0 && ns[0] + ns[1] <= passed + passed / 2, "%s: %llu and %llu ns of %llu", f->selector,
           (unsigned long long)ns[0], (unsigned long long)ns[1], (unsigned long long)passed);
    f->v->event_destroy(event);
  }
  fetch(f, buffer, 0, back, 3 * (uint64_t)part);
  uint32_t wrong = 0, words = part / 4;
  for (uint32_t i = 0; i < COUNT; i++) twice[i] = 2 * arena[i] + (float)i, wrong += back[words + i] != twice[i];
  wrong += count_wrong(twice, back + 2 * words, COUNT, 3);
  for (uint32_t k = 0; k < 3; k++) {
    for (uint32_t i = COUNT; i < words; i++) wrong += back[k * words + i] != -777;
  }
  tap_is_int(wrong, 0, "%s: a chain in one buffer, guard words whole", f->selector);
  free(arena), free(back);
  f->v->buffer_destroy(buffer);
}

static void check_streams(fixture *f) {
  enum { ROUNDS = 20 };
  float x[N], y[2][N];
  rt_stream *second = NULL;
  rt_buffer *bx = make_buffer(f, sizeof x), *by[2] = {make_buffer(f, sizeof y[0]), make_buffer(f, sizeof y[1])};
  scale_call calls[2];
  fill_ramp(x, N);
  put(f, bx, 0, x, sizeof x);
  bool ok = f->v->wait(f->stream, NULL) == SNT_OK && f->v->stream_create(f->device, &second, NULL) == SNT_OK;
  rt_stream *streams[2] = {f->stream, second};
  for (int round = 0; ok && round < ROUNDS; round++) {
    for (int s = 0; s < 2; s++) {
      set_scale(&calls[s], f, (place){bx, 0}, (place){by[s], 0}, N, (float)(round + s));
      ok = ok && f->v->submit(streams[s], 1, &calls[s].dispatch, false, NULL, NULL) == SNT_OK;
    }
  }
  for (int s = 0; ok && s < 2; s++) {
    ok = f->v->download(streams[s], by[s], 0, y[s], sizeof y[s], NULL) == SNT_OK && count_wrong(x, y[s], N, (float)(ROUNDS - 1 + s)) == 0;
  }
  tap_ok(ok, "%s: two streams beside each other", f->selector);
  f->v->stream_destroy(second);
  f->v->buffer_destroy(bx), f->v->buffer_destroy(by[0]), f->v->buffer_destroy(by[1]);
}

static void check_mistakes(fixture *f) {
  float x[N] = {0};
  rt_buffer *buffer = make_buffer(f, sizeof x), *huge = NULL;
  rt_pipeline *pipeline = NULL;
  scale_call call;
  snt_diag diag = {0};
  set_scale(&call, f, (place){buffer, 0}, (place){buffer, 0}, 4, 1);
  call.dispatch.binding_count = 1;
  tap_is_int(f->v->submit(f->stream, 1, &call.dispatch, false, NULL, &diag), SNT_E_ARG, "%s: a missing binding (%s)", f->selector,
             diag.text);
  call.dispatch.binding_count = 2;
  call.bindings[0].bytes = sizeof x + 4;
  tap_is_int(f->v->submit(f->stream, 1, &call.dispatch, false, NULL, &diag), SNT_E_ARG, "%s: a binding past the end (%s)", f->selector,
             diag.text);
  call.bindings[0].bytes = 16, call.bindings[0].offset = 4;
  tap_is_int(f->v->submit(f->stream, 1, &call.dispatch, false, NULL, &diag), SNT_E_ARG, "%s: an unaligned binding (%s)", f->selector,
             diag.text);
  call.bindings[0].buffer = NULL, call.bindings[0].offset = 0;
  tap_is_int(f->v->submit(f->stream, 1, &call.dispatch, false, NULL, &diag), SNT_E_ARG, "%s: nothing bound (%s)", f->selector, diag.text);
  rt_event *event = NULL;
  tap_is_int(f->v->submit(f->stream, 1, &call.dispatch, true, &event, NULL), SNT_E_ARG, "%s: and with an event", f->selector);
  tap_ok(event == NULL, "%s: which is not made", f->selector);
  rt_code broken = f->code.code;
  broken.kernel = NULL, broken.data = test_code_broken(f->device->target), broken.size = strlen(broken.data);
  snt_result result = f->v->pipeline_create(f->device, &broken, NULL, 0, &pipeline, &diag);
  tap_ok(result < 0 && pipeline == NULL, "%s: code that does not compile is refused", f->selector);
  tap_ok(strlen(diag.text) > 10 && (f->device->target & (SNT_TARGET_SPIRV | SNT_TARGET_HOST) || strstr(diag.text, "undeclared_name")),
         "%s: in the compiler's words: %s", f->selector, diag.text);
  result = f->v->buffer_create(f->device, (uint64_t)1 << 62, &huge, &diag);
  tap_is_int(result, SNT_E_DEVICE_MEM, "%s: a buffer of 2^62 bytes (%s)", f->selector, diag.text);
  rt_buffer *empty = make_buffer(f, 0); /* a guard may load the first vector of it */
  tap_ok(empty && empty->bytes >= 16 * sizeof(double), "%s: a buffer of no bytes has room for a vector", f->selector);
  f->v->buffer_destroy(empty);
  const double nothing = 0;
  if (f->v->buffer_over)
    tap_is_int(f->v->buffer_over(f->device, &nothing, 0, &empty, NULL), SNT_E_UNSUPPORTED, "%s: which memory of the host has not",
               f->selector);
  f->v->buffer_destroy(buffer);
}

static void check_binary(fixture *f) {
  size_t size = 0;
  snt_result result = f->v->pipeline_binary(f->pipeline, NULL, &size);
  if (result == SNT_E_UNSUPPORTED) {
    tap_skip("%s: the driver gives no binaries", f->selector);
    return;
  }
  void *binary = malloc(size + 1);
  size_t small = size ? size - 1 : 0;
  rt_pipeline *again = NULL, *kept = f->pipeline;
  tap_ok(result == SNT_OK && size > 0, "%s: a binary of %zu bytes", f->selector, size);
  tap_is_int(f->v->pipeline_binary(f->pipeline, binary, &small), SNT_INCOMPLETE, "%s: does not fit in one less", f->selector);
  result = f->v->pipeline_binary(f->pipeline, binary, &size);
  if (result == SNT_OK) result = f->v->pipeline_create(f->device, &f->code.code, binary, size, &again, NULL);
  if (tap_is_int(result, SNT_OK, "%s: makes the pipeline again", f->selector)) {
    f->pipeline = again;
    tap_ok(again->from_binary && !kept->from_binary, "%s: of the binary", f->selector);
    check_dispatch(f);
    f->pipeline = kept;
  }
  f->v->pipeline_destroy(again);
  free(binary);
}

/* The same kernel as kernel IR, through the passes and the device's generator. */
static void check_generated(fixture *f) {
  const codegen_target *generator = rt_codegen(f->device->target);
  test_code source;
  const char *why;
  snt_diag diag = {0};
  codegen_code code = {0};
  rt_pipeline *kept = f->pipeline;
  test_code_make(&source, SNT_TARGET_HOST, false, &why);
  kir_kernel legal;
  kir_init(&legal, &source.arena, "scale");
  snt_result result = kir_run_passes(source.code.kernel, &legal, &f->device->profile.caps, NULL, NULL, &diag);
  if (result == SNT_OK) result = generator->emit(&legal, &f->device->profile.caps, &source.arena, &code, &diag);
  if (!tap_is_int(result, SNT_OK, "%s: the %s generator takes the kernel", f->selector, generator->name))
    tap_diag("%s: %s", diag.stage, diag.text);
  if (result == SNT_OK) {
    const rt_code rt = {.data = code.data,
                        .size = code.size,
                        .entry = "scale",
                        .kernel = &legal,
                        .items = {legal.items[0], legal.items[1], legal.items[2]},
                        .binding_count = 2,
                        .block_bytes = kir_block_bytes(&legal)};
    result = f->v->pipeline_create(f->device, &rt, NULL, 0, &f->pipeline, &diag);
    if (tap_is_int(result, SNT_OK, "%s: its code makes a pipeline", f->selector)) {
      check_dispatch(f);
      check_folding(f);
      f->v->pipeline_destroy(f->pipeline);
    } else {
      tap_diag("%s", diag.text);
    }
  }
  f->pipeline = kept;
  ir_arena_free(&source.arena);
}

/* After the first rounds, submitting takes no memory of ours, and what it costs is printed. */
static void check_steady(fixture *f) {
  enum { CHAIN = 50, ROUNDS = 4 };
  float x[64];
  rt_buffer *bx = make_buffer(f, sizeof x), *by = make_buffer(f, sizeof x);
  scale_call call;
  rt_dispatch chain[CHAIN];
  uint64_t best = UINT64_MAX, best_host = UINT64_MAX, calls = 0;
  bool ok = true;
  fill_ramp(x, 64);
  put(f, bx, 0, x, sizeof x);
  set_scale(&call, f, (place){bx, 0}, (place){by, 0}, 64, 1);
  for (int i = 0; i < CHAIN; i++) chain[i] = call.dispatch;
  for (int round = 0; round < ROUNDS; round++) {
    if (round == 1) calls = f->counter->calls;
    uint64_t begin = rt_clock_ns();
    ok = ok && f->v->submit(f->stream, CHAIN, chain, false, NULL, NULL) == SNT_OK;
    uint64_t submitted = rt_clock_ns();
    ok = ok && f->v->wait(f->stream, NULL) == SNT_OK;
    uint64_t end = rt_clock_ns();
    if (end - begin < best) best = end - begin;
    if (submitted - begin < best_host) best_host = submitted - begin;
  }
  tap_ok(ok, "%s: chains of %d", f->selector, CHAIN);
  if (f->device->target != SNT_TARGET_HOST) tap_is_int(f->counter->calls - calls, 0, "%s: take no memory after the first", f->selector);
  tap_diag("%s: %.2f us a dispatch in a chain, %.2f us of it in submit", f->selector, (double)best / CHAIN / 1e3,
           (double)best_host / CHAIN / 1e3);
  f->v->buffer_destroy(bx), f->v->buffer_destroy(by);
}

/* The layers must be heard: a chain without the barrier that its dependence needs is an error then. */
static void check_validation(fixture *f) {
  float x[N] = {0};
  rt_buffer *a = make_buffer(f, sizeof x), *b = make_buffer(f, sizeof x), *c = make_buffer(f, sizeof x);
  scale_call calls[2];
  snt_diag diag = {0};
  set_scale(&calls[0], f, (place){a, 0}, (place){b, 0}, N, 2);
  set_scale(&calls[1], f, (place){b, 0}, (place){c, 0}, N, 2);
  rt_dispatch both[2] = {calls[0].dispatch, calls[1].dispatch};
  tap_is_int(f->v->submit(f->stream, 2, both, false, NULL, &diag), SNT_OK, "%s: with its barrier a chain is clean", f->selector);
  both[1].barrier = false;
  snt_result result = f->v->submit(f->stream, 2, both, false, NULL, &diag);
  tap_ok(result == SNT_E_BACKEND && strstr(diag.text, "HAZARD"), "%s: without it, not: %s", f->selector, diag.text);
  f->v->wait(f->stream, NULL);
  f->v->buffer_destroy(a), f->v->buffer_destroy(b), f->v->buffer_destroy(c);
}

static void check_profile(const fixture *f) {
  const cost_profile *p = &f->device->profile;
  tap_ok(p->max_bindings >= 4 && p->max_items >= 64 && p->max_buffer_bytes >= 1 << 20 && p->offset_align >= 4 && p->max_grid[0] > 1,
         "%s: limits: %u bindings, %u items, %llu bytes a buffer, %u apart", f->selector, p->max_bindings, p->max_items,
         (unsigned long long)p->max_buffer_bytes, p->offset_align);
  tap_ok(p->name[0] && f->device->name[0] && f->device->driver[0], "%s: is %s (%s), profile %s", f->selector, f->device->name,
         f->device->driver, p->name);
  tap_diag("%s: lanes %g, subgroups %u-%u, f16 %d/%d, int8 %d, int64 %d, f64 %d, fma %d, exact division %d, local %llu, texels %llu",
           f->selector, p->lanes, p->subgroup_min, p->subgroup_max, p->caps.f16_arithmetic, p->caps.f16_storage, p->caps.int8_storage,
           p->caps.int64, p->caps.f64, p->caps.fma_fused, p->caps.exact_div, (unsigned long long)p->max_local_bytes,
           (unsigned long long)p->max_texels);
}

static void run_checks(fixture *f) {
  snt_diag diag = {0};
  check_profile(f);
  tap_is_int(f->v->stream_create(f->device, &f->stream, &diag), SNT_OK, "%s: a stream", f->selector);
  uint64_t begin = rt_clock_ns();
  snt_result result = f->v->pipeline_create(f->device, &f->code.code, NULL, 0, &f->pipeline, &diag);
  if (!tap_is_int(result, SNT_OK, "%s: a pipeline, in %.1f ms", f->selector, (double)(rt_clock_ns() - begin) / 1e6))
    tap_diag("%s", diag.text);
  if (result == SNT_OK) {
    check_copies(f);
    check_dispatch(f);
    check_folding(f);
    check_chain(f);
    check_streams(f);
    check_mistakes(f);
    check_binary(f);
    check_steady(f);
    check_generated(f);
    if (strstr(f->selector, "+validate")) check_validation(f);
  }
  f->v->pipeline_destroy(f->pipeline);
  f->v->stream_destroy(f->stream);
}

static void check_device(const char *selector, bool texel) {
  counter count = {0};
  const snt_host_alloc alloc = {&count, count_acquire, count_release};
  const snt_backend *hook = host_cuda_text();
  const rt_hooks hooks = {1, &hook};
  char label[80];
  snprintf(label, sizeof label, "%s%s", selector, texel ? " texel" : "");
  fixture f = {.selector = label, .counter = &count};
  snt_diag diag = {0};
  const char *why = "";
  snt_result result = rt_open_device(&alloc, &hooks, selector, &f.device, &diag);
  if (result == SNT_E_UNSUPPORTED) {
    tap_skip("%s: %s", label, diag.text);
  } else if (tap_is_int(result, SNT_OK, "%s: opens (%s)", label, diag.text)) {
    f.v = f.device->v;
    if (test_code_make(&f.code, f.device->target, texel, &why)) run_checks(&f);
    else tap_skip("%s: %s", label, why);
    test_code_free(&f.code);
    rt_close_device(f.device);
  }
  tap_is_int(count.live, 0, "%s: nothing is left over", label);
}

static void check_selectors(void) {
  static const char *const none[] = {"opencl:no-such-device", "vulkan:999", "cuda:77", "interp:3", "abacus", "cuda-text:1"};
  const snt_backend *hook = host_cuda_text();
  const rt_hooks hooks = {1, &hook};
  for (uint32_t i = 0; i < IR_COUNT(none); i++) {
    rt_device *device = NULL;
    snt_diag diag = {0};
    tap_is_int(rt_open_device(NULL, &hooks, none[i], &device, &diag), strcmp(none[i], "abacus") ? SNT_E_UNSUPPORTED : SNT_E_ARG, "%s: %s",
               none[i], diag.text);
  }
}

/* Loaded to the end, so that a leak checker can tell whose the leaks are: the layers have some of their own. */
static void pin_layers(void) {
  static const char *const names[] = {"libVkLayer_khronos_validation.so", NULL};
  for (const char *const *name = names; *name; name++) dlopen(*name, RTLD_NOW | RTLD_NODELETE);
}

static bool wanted(int argc, char **argv, const char *selector) {
  for (int i = 1; i < argc; i++) {
    if (strstr(selector, argv[i])) return true;
  }
  return argc < 2;
}

/* Arguments: parts of selectors; none: all. */
int main(int argc, char **argv) {
  static const struct {
    const char *selector;
    bool texel;
  } extra[] = {{"opencl:pocl", false},
               {"opencl:rusticl", false},
               {"opencl:oclgrind", false},
               {"vulkan:llvmpipe", false},
               {"vulkan:llvmpipe", true},
               {"vulkan:llvmpipe+validate", false},
               {"vulkan:llvmpipe+validate", true},
               {"vulkan:swiftshader", false},
               {"vulkan:swiftshader+validate", true},
               {"cuda:0", false},
               {"interp", false},
               {"cuda-text", false}};
  rt_device_desc found[32];
  uint32_t count = 0;
  host_prepare_drivers(NULL);
  pin_layers();
  const snt_backend *hook = host_cuda_text();
  const rt_hooks hooks = {1, &hook};
  tap_is_int(rt_list_devices(NULL, &hooks, &count, found, IR_COUNT(found)), SNT_OK, "devices are listed");
  uint32_t counted = 0;
  tap_is_int(rt_list_devices(NULL, &hooks, &counted, NULL, 0), SNT_OK, "and counted");
  tap_is_int(counted, count, "the same number");
  for (uint32_t i = 0; i < count; i++)
    tap_diag("%s: %s, %s, profile %s", found[i].selector, found[i].name, found[i].driver, found[i].profile);
  check_selectors();
  for (uint32_t i = 0; i < IR_COUNT(extra); i++) {
    if (wanted(argc, argv, extra[i].selector)) check_device(extra[i].selector, extra[i].texel);
  }
  for (uint32_t i = 0; i < count; i++) { /* what this machine has beyond the usual */
    bool known = false;
    for (uint32_t j = 0; j < IR_COUNT(extra); j++) known = known || strcmp(found[i].selector, extra[j].selector) == 0;
    if (!known && wanted(argc, argv, found[i].selector)) check_device(found[i].selector, false);
  }
  return tap_done();
}
