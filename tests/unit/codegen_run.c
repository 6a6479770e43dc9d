/* The code generators on every device that is here: a kernel of each operation on each type, compiled for the device and run, against the
   interpreter on the kernel as it was before the passes. Arguments: parts of selectors to run alone. */
#include "runtime/targets.h"
#include "tests/tap.h"
#include "tests/unit/codegen_support.h"
#include "tools/host/host.h"

enum { BUFFERS = 4, OUT = 3, MAX_LANES = 16 };
typedef struct run { rt_device *device; const char *selector; codegen_cases cases; uint8_t *data[BUFFERS]; uint64_t bytes[BUFFERS]; uint32_t *expected; ir_arena arena; } run;

/* ---- inputs: every corner that an operation has, then ordinary numbers; no denormal, which some devices flush ---- */
static const double float_corners[] = {0, -0.0, 1, -1, 0.5, 1.5, -1.5, 2.5, 3e9, -3e9, 2147483648.0, 4294967296.0, 1e30, -1e30, INFINITY, -INFINITY, NAN, 65504, 65520, 127.5, 255.5};
static const int64_t int_corners[] = {0, 1, -1, 2, 7, -7, 31, 32, 33, 127, 128, 255, 256, 65535, 65536, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, 0x5a5a5a5a};

static void fill(run *r, uint32_t buffer, int32_t base, uint32_t count) {
  uint32_t state = buffer + 1;
  for (uint32_t i = 0; i < count; i++) {
    const uint32_t corner = (i * (2 * buffer + 1) + buffer * 5) % 40;
    const double x = (double)kernel_number(&state);
    if (ir_dtypes[base].is_float) ir_dtype_store(base, r->data[buffer], i, corner < IR_COUNT(float_corners) ? float_corners[corner] : x * 1000);
    else ir_dtype_store_int(base, r->data[buffer], i, corner < IR_COUNT(int_corners) ? int_corners[corner] : (int64_t)(x * 1e6));
  }
}

static bool prepare(run *r, int32_t base, uint32_t lanes) {
  snt_diag diag = {0};
  kir_interp_buffer buffers[BUFFERS];
  codegen_cases_make(&r->cases, &r->arena, base, lanes);
  if (r->cases.kernel.failed) return tap_ok(false, "the kernel of %s x%u: %s", ir_dtypes[base].name, lanes, r->cases.kernel.first_error.text);
  for (uint32_t b = 0; b < BUFFERS; b++) {
    r->bytes[b] = b == OUT ? 256ull * CODEGEN_CASE_ITEMS * lanes * 4 : (uint64_t)CODEGEN_CASE_ITEMS * lanes * ir_dtypes[base].bytes;
    r->data[b] = ir_arena_take(&r->arena, r->bytes[b], 64);
    if (b != OUT) fill(r, b, base, CODEGEN_CASE_ITEMS * lanes);
    buffers[b] = (kir_interp_buffer){r->data[b], r->bytes[b]};
  }
  const kir_interp_info info = {.kernel = &r->cases.kernel, .groups = 1, .buffer_count = BUFFERS, .buffers = buffers};
  kir_interp_stats stats;
  if (kir_interp_run(&info, NULL, &stats, &diag) != SNT_OK) return tap_ok(false, "%s x%u on the interpreter: %s", ir_dtypes[base].name, lanes, diag.text);
  r->expected = ir_arena_take(&r->arena, r->bytes[OUT], 64);
  memcpy(r->expected, r->data[OUT], r->bytes[OUT]);
  memset(r->data[OUT], 0xcd, r->bytes[OUT]);
  return true;
}

/* Binds the buffers by slot, dispatches one group, and brings the output back. */
static snt_result dispatch(run *r, rt_pipeline *pipeline, snt_diag *diag) {
  const rt_vtable *v = r->device->v;
  rt_stream *stream = NULL;
  rt_buffer *buffers[BUFFERS] = {NULL};
  struct rt_bound bound[BUFFERS];
  snt_result result = v->stream_create(r->device, &stream, diag);
  for (uint32_t b = 0; b < BUFFERS && result == SNT_OK; b++) {
    result = v->buffer_create(r->device, r->bytes[b], &buffers[b], diag);
    if (result == SNT_OK) result = v->upload(stream, buffers[b], 0, r->data[b], r->bytes[b], diag);
    bound[b] = (struct rt_bound){buffers[b], 0, r->bytes[b], b == OUT ? KIR_WRITE : KIR_READ};
  }
  const rt_dispatch one = {.pipeline = pipeline, .groups = 1, .binding_count = BUFFERS, .bindings = bound, .barrier = true};
  if (result == SNT_OK) result = v->submit(stream, 1, &one, false, NULL, diag);
  if (result == SNT_OK) result = v->wait(stream, diag);
  if (result == SNT_OK) result = v->download(stream, buffers[OUT], 0, r->data[OUT], r->bytes[OUT], diag);
  for (uint32_t b = 0; b < BUFFERS; b++)
    if (buffers[b]) v->buffer_destroy(buffers[b]);
  if (stream) v->stream_destroy(stream);
  return result;
}

static snt_result execute(run *r, const codegen_target *target, snt_diag *diag) {
  kir_kernel legal;
  codegen_code code;
  rt_pipeline *pipeline = NULL;
  const kir_caps *caps = &r->device->profile.caps;
  kir_init(&legal, &r->arena, "cases");
  SNT_TRY(kir_run_passes(&r->cases.kernel, &legal, caps, NULL, NULL, diag));
  SNT_TRY(target->emit(&legal, caps, &r->arena, &code, diag));
  const rt_code given = {.data = code.data, .size = code.size, .entry = target->bit == SNT_TARGET_SPIRV ? "main" : legal.name, .kernel = &legal,
                         .items = {legal.items[0], legal.items[1], legal.items[2]}, .binding_count = kir_binding_count(&legal),
                         .block_bytes = kir_block_bytes(&legal)};
  SNT_TRY(r->device->v->pipeline_create(r->device, &given, NULL, 0, &pipeline, diag));
  const snt_result result = dispatch(r, pipeline, diag);
  r->device->v->pipeline_destroy(pipeline);
  return result;
}

/* Vulkan leaves the rounding of a conversion from integer to float to the device: one unit in the last place. */
static bool same(const run *r, const char *name, uint32_t got, uint32_t want) {
  if (got == want) return true;
  return r->device->target == SNT_TARGET_SPIRV && !strncmp(name, "cast to f32", 11) && got - want + 1 <= 2;
}

static void compare(run *r, int32_t base, uint32_t lanes) {
  const uint32_t *got = (const uint32_t *)(const void *)r->data[OUT], each = CODEGEN_CASE_ITEMS * lanes;
  uint32_t wrong = 0;
  for (uint32_t n = 0; n < r->cases.count; n++) {
    uint32_t bad = 0, first = 0;
    for (uint32_t i = 0; i < each; i++)
      if (!same(r, r->cases.names[n], got[n * each + i], r->expected[n * each + i]) && !bad++) first = i;
    if (!bad) continue;
    wrong++;
    const size_t at = (size_t)first * ir_dtypes[base].bytes;
    uint64_t a = 0, b = 0;
    memcpy(&a, r->data[0] + at, ir_dtypes[base].bytes), memcpy(&b, r->data[1] + at, ir_dtypes[base].bytes);
    tap_diag("%s: %u of %u elements differ; element %u of a=0x%llx b=0x%llx gives 0x%x, want 0x%x", r->cases.names[n], bad, each, first,
             (unsigned long long)a, (unsigned long long)b, got[n * each + first], r->expected[n * each + first]);
  }
  tap_is_int(wrong, 0, "%s: %u cases on %s x%u", r->selector, r->cases.count, ir_dtypes[base].name, lanes);
}

static void check_type(run *r, const codegen_target *target, int32_t base, uint32_t lanes) {
  snt_diag diag = {0};
  ir_arena_init(&r->arena, NULL);
  if (prepare(r, base, lanes)) {
    const snt_result result = execute(r, target, &diag);
    if (result == SNT_E_UNSUPPORTED) tap_skip("%s, %s x%u: %s", r->selector, ir_dtypes[base].name, lanes, diag.text);
    else if (result != SNT_OK) tap_ok(false, "%s, %s x%u: %s: %s", r->selector, ir_dtypes[base].name, lanes, diag.stage, diag.text);
    else compare(r, base, lanes);
  }
  ir_arena_free(&r->arena);
}

static void check_device(const char *selector) {
  static run r;
  static const struct { int32_t base; uint32_t lanes; } shapes[] = {{SNT_F32, 1}, {SNT_F32, 4}, {SNT_F32, 8}, {SNT_I32, 1}, {SNT_I32, 4}, {SNT_U32, 1},
                                                                    {SNT_U32, 2}, {SNT_U32, 8}, {SNT_I64, 1}, {SNT_U64, 1}, {SNT_F64, 1}, {SNT_F64, 2}};
  snt_diag diag = {0};
  const snt_backend *hook = host_cuda_text();
  const rt_hooks hooks = {1, &hook};
  r = (run){.selector = selector};
  if (rt_open_device(NULL, &hooks, selector, &r.device, &diag) != SNT_OK) {
    tap_skip("%s: %s", selector, diag.text);
    return;
  }
  const codegen_target *target = rt_codegen(r.device->target);
  if (!target) tap_skip("%s takes no generated code", selector);
  for (uint32_t i = 0; i < IR_COUNT(shapes) && target; i++) check_type(&r, target, shapes[i].base, shapes[i].lanes);
  rt_close_device(r.device);
}

int main(int argc, char **argv) {
  static const char *const selectors[] = {"opencl:pocl", "opencl:rusticl", "vulkan:llvmpipe", "vulkan:swiftshader", "cuda-text", "cuda:0"};
  host_prepare_drivers();
  for (uint32_t i = 0; i < IR_COUNT(selectors); i++) {
    bool wanted = argc < 2;
    for (int n = 1; n < argc; n++) wanted |= strstr(selectors[i], argv[n]) != NULL;
    if (wanted) check_device(selectors[i]);
  }
  return tap_done();
}
