/* Paths that software devices take only when told to: memory that the host does not see, queues without timestamps, more ranges than the
   caches hold, more work in flight than there are batches. */
#include "runtime/rt_opencl.h"
#include "runtime/rt_vulkan.h"
#include "runtime/targets.h"
#include "tests/tap.h"
#include "tests/unit/rt_kernels.h"
#include "tools/host/host.h"
#include <dlfcn.h>

typedef struct bench {
  rt_device *device;
  const rt_vtable *v;
  rt_stream *stream;
  rt_pipeline *pipeline;
  test_code code;
} bench;

static bool bench_open(bench *b, const char *selector, bool texel) {
  snt_diag diag = {0};
  const char *why = "";
  memset(b, 0, sizeof *b);
  if (rt_open_device(NULL, NULL, selector, &b->device, &diag) != SNT_OK) {
    tap_skip("%s: %s", selector, diag.text);
    return false;
  }
  b->v = b->device->v;
  if (!test_code_make(&b->code, b->device->target, texel, &why)) {
    tap_skip("%s: %s", selector, why);
    rt_close_device(b->device);
    return false;
  }
  snt_result result = b->v->stream_create(b->device, &b->stream, &diag);
  if (result == SNT_OK) result = b->v->pipeline_create(b->device, &b->code.code, NULL, 0, &b->pipeline, &diag);
  return tap_is_int(result, SNT_OK, "%s: stream and pipeline %s", selector, diag.text);
}

static void bench_close(bench *b) {
  b->v->pipeline_destroy(b->pipeline);
  b->v->stream_destroy(b->stream);
  rt_close_device(b->device);
  test_code_free(&b->code);
}

typedef struct call {
  struct rt_bound bindings[2];
  uint32_t block[2];
  rt_dispatch dispatch;
} call;

/* Reads x from its start, writes y from `offset`. */
static void set_call(call *c, bench *b, rt_buffer *x, rt_buffer *y, uint64_t offset, uint32_t n, float a) {
  c->bindings[0] = (struct rt_bound){x, 0, 4 * (uint64_t)n, KIR_READ};
  c->bindings[1] = (struct rt_bound){y, offset, 4 * (uint64_t)n, KIR_WRITE};
  c->block[0] = n;
  memcpy(&c->block[1], &a, sizeof a);
  c->dispatch = (rt_dispatch){.pipeline = b->pipeline,
                              .groups = (n + 63) / 64,
                              .binding_count = 2,
                              .bindings = c->bindings,
                              .block = c->block,
                              .block_bytes = 8,
                              .barrier = true};
}

/* ---- memory that the host does not see: more than one staging buffer's worth, at odd offsets ---- */

static void check_staging(void) {
  enum { N = 5000001 }; /* 20 MB */
  bench b;
  if (!bench_open(&b, "vulkan:llvmpipe+validate", false)) return;
  ((vk_device *)b.device)->unified = false;
  float *x = malloc(4 * (size_t)N), *y = malloc(4 * (size_t)N);
  rt_buffer *bx = NULL, *by = NULL;
  snt_diag diag = {0};
  bool ok = b.v->buffer_create(b.device, 4 * (uint64_t)N, &bx, NULL) == SNT_OK &&
            b.v->buffer_create(b.device, 4 * (uint64_t)N, &by, NULL) == SNT_OK;
  tap_ok(ok && !bx->host && !by->host, "staging: buffers without a host address");
  for (uint32_t i = 0; i < N; i++) x[i] = (float)(i % 1001), y[i] = 0;
  call c;
  set_call(&c, &b, bx, by, 0, N, 2);
  ok = b.v->upload(b.stream, bx, 0, x, 4 * (uint64_t)N, &diag) == SNT_OK;
  ok = ok && b.v->submit(b.stream, 1, &c.dispatch, false, NULL, &diag) == SNT_OK;
  ok = ok && b.v->download(b.stream, by, 0, y, 4 * (uint64_t)N, &diag) == SNT_OK;
  uint32_t wrong = 0;
  for (uint32_t i = 0; i < N; i++) wrong += y[i] != 2 * x[i] + (float)i;
  if (!tap_ok(ok && wrong == 0, "staging: 20 MB up, through a kernel and down: %u wrong", wrong)) tap_diag("%s", diag.text);
  unsigned char odd[7] = {1, 2, 3, 4, 5, 6, 7}, back[9] = {0};
  ok = b.v->upload(b.stream, bx, 4097, odd, sizeof odd, &diag) == SNT_OK &&
       b.v->download(b.stream, bx, 4096, back, sizeof back, &diag) == SNT_OK;
  tap_ok(ok && memcmp(back + 1, odd, sizeof odd) == 0 && back[0] == ((unsigned char *)x)[4096], "staging: seven bytes at an odd place %s",
         diag.text);
  b.v->buffer_destroy(bx), b.v->buffer_destroy(by);
  free(x), free(y);
  bench_close(&b);
}

/* ---- no timestamps: the host's clock ---- */

static void check_clock(const char *selector) {
  bench b;
  if (!bench_open(&b, selector, false)) return;
  if (b.device->target == SNT_TARGET_SPIRV) ((vk_device *)b.device)->timestamps = false;
  else ((ocl_device *)b.device)->profiling = false;
  rt_buffer *buffer[2] = {NULL, NULL};
  call c;
  rt_event *event = NULL;
  uint64_t ns[3] = {0};
  uint32_t count = 3;
  b.v->buffer_create(b.device, 4096, &buffer[0], NULL), b.v->buffer_create(b.device, 4096, &buffer[1], NULL);
  set_call(&c, &b, buffer[0], buffer[1], 0, 1024, 1);
  const rt_dispatch three[3] = {c.dispatch, c.dispatch, c.dispatch};
  snt_result result = b.v->submit(b.stream, 3, three, true, &event, NULL);
  if (result == SNT_OK) result = b.v->event_timings(event, &count, ns);
  tap_ok(result == SNT_OK && count == 3 && ns[0] && ns[1] && ns[2], "%s: three times by the host's clock: %llu %llu %llu ns", selector,
         (unsigned long long)ns[0], (unsigned long long)ns[1], (unsigned long long)ns[2]);
  count = 1;
  tap_is_int(b.v->event_timings(event, &count, ns), SNT_INCOMPLETE, "%s: of which only one may be wanted", selector);
  b.v->event_destroy(event);
  b.v->buffer_destroy(buffer[0]), b.v->buffer_destroy(buffer[1]);
  bench_close(&b);
}

/* ---- more ranges than the caches of slices and descriptor sets hold ---- */

static void check_ranges(const char *selector, bool texel, uint32_t rounds) {
  enum { N = 16 };
  bench b;
  if (!bench_open(&b, selector, texel)) return;
  uint32_t align = b.device->profile.offset_align < 64 ? 64 : b.device->profile.offset_align, wrong = 0;
  uint64_t bytes = (uint64_t)align * (rounds + 1) + 64;
  float x[N] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3}, y[N];
  rt_buffer *bx = NULL, *by = NULL;
  snt_result result = b.v->buffer_create(b.device, sizeof x, &bx, NULL);
  if (result == SNT_OK) result = b.v->buffer_create(b.device, bytes, &by, NULL);
  if (result == SNT_OK) result = b.v->upload(b.stream, bx, 0, x, sizeof x, NULL);
  for (uint32_t i = 0; result == SNT_OK && i < rounds; i++) {
    call c;
    set_call(&c, &b, bx, by, (uint64_t)align * i, N, (float)(i % 50));
    result = b.v->submit(b.stream, 1, &c.dispatch, false, NULL, NULL);
  }
  if (result == SNT_OK) result = b.v->wait(b.stream, NULL);
  for (uint32_t i = 0; result == SNT_OK && i < rounds; i += 1 + rounds / 700) {
    result = b.v->download(b.stream, by, (uint64_t)align * i, y, sizeof y, NULL);
    for (uint32_t j = 0; j < N; j++) wrong += y[j] != (float)(i % 50) * x[j] + (float)j;
  }
  tap_ok(result == SNT_OK && wrong == 0, "%s: %u ranges of one buffer, each submitted alone (%u wrong)", selector, rounds, wrong);
  b.v->buffer_destroy(bx), b.v->buffer_destroy(by);
  bench_close(&b);
}

/* Events kept while their stream goes on: their batches may not be used again. */
static void check_kept_events(const char *selector) {
  enum { EVENTS = 100 };
  bench b;
  if (!bench_open(&b, selector, false)) return;
  rt_buffer *buffer[2] = {NULL, NULL};
  rt_event *events[EVENTS] = {NULL};
  call c;
  snt_result result = SNT_OK;
  uint32_t timed = 0;
  b.v->buffer_create(b.device, 4096, &buffer[0], NULL), b.v->buffer_create(b.device, 4096, &buffer[1], NULL);
  set_call(&c, &b, buffer[0], buffer[1], 0, 1024, 1);
  for (int i = 0; i < EVENTS && result == SNT_OK; i++) result = b.v->submit(b.stream, 1, &c.dispatch, true, &events[i], NULL);
  tap_is_int(result, SNT_OK, "%s: a hundred events", selector);
  for (int i = EVENTS - 1; i >= 0; i--) {
    uint32_t count = 1;
    uint64_t ns = 0;
    timed += events[i] && b.v->event_timings(events[i], &count, &ns) == SNT_OK && count == 1 && ns > 0;
    b.v->event_destroy(events[i]);
  }
  tap_is_int(timed, EVENTS, "%s: have their times, the last one first", selector);
  b.v->buffer_destroy(buffer[0]), b.v->buffer_destroy(buffer[1]);
  bench_close(&b);
}

static void check_subgroups(void) {
  bench b;
  if (!bench_open(&b, "vulkan:llvmpipe", false)) return;
  rt_code code = b.code.code;
  rt_pipeline *pipeline = NULL;
  snt_diag diag = {0};
  code.sub = b.device->profile.subgroup_max;
  tap_is_int(b.v->pipeline_create(b.device, &code, NULL, 0, &pipeline, &diag), SNT_OK, "subgroups of the device's size %s", diag.text);
  b.v->pipeline_destroy(pipeline);
  pipeline = NULL, code.sub = 128;
  tap_is_int(b.v->pipeline_create(b.device, &code, NULL, 0, &pipeline, &diag), SNT_E_UNSUPPORTED, "subgroups of 128: %s", diag.text);
  code.sub = 0, code.block_bytes = 252;
  tap_is_int(b.v->pipeline_create(b.device, &code, NULL, 0, &pipeline, &diag), SNT_E_LIMIT, "scalars beyond the push constants: %s",
             diag.text);
  bench_close(&b);
}

int main(void) {
  host_prepare_drivers();
  dlopen("libVkLayer_khronos_validation.so", RTLD_NOW | RTLD_NODELETE); /* so that the leak checker can name it */
  check_staging();
  check_clock("vulkan:llvmpipe");
  check_clock("opencl:pocl");
  check_ranges("vulkan:llvmpipe", false, 9000);
  check_ranges("vulkan:llvmpipe+validate", true, 600);
  check_ranges("opencl:pocl", false, 5000);
  check_kept_events("vulkan:llvmpipe+validate");
  check_kept_events("opencl:pocl");
  check_subgroups();
  return tap_done();
}
