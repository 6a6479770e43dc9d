/* The code generators on every device that is here: a kernel of each operation on each type, compiled for the device and run, against the
   interpreter on the kernel as it was before the passes; and random kernels. Arguments: parts of selectors, and the seed of one random
   kernel, to run alone. */
#include "runtime/rt_opencl.h"
#include "runtime/rt_vulkan.h"
#include "runtime/targets.h"
#include "tests/tap.h"
#include "tests/unit/codegen_support.h"
#include "tests/unit/device_names.h"
#include "tests/unit/kernel_random.h"
#include "tools/host/host.h"
#include <stdio.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

enum { BUFFERS = 4, OUT = 3, MAX_LANES = 16 };
typedef struct run {
  rt_device *device;
  const char *selector;
  codegen_cases cases;
  uint8_t *data[BUFFERS];
  uint64_t bytes[BUFFERS];
  uint32_t *expected;
  ir_arena arena;
} run;

/* ---- inputs: every corner that an operation has, then ordinary numbers; no denormal, which some devices flush ---- */
static const double float_corners[] = {0,    -0.0,  1,        -1,        0.5, 1.5,   -1.5,  2.5,   3e9,  -3e9, 2147483648.0, 4294967296.0,
                                       1e30, -1e30, INFINITY, -INFINITY, NAN, 65504, 65520, 127.5, 255.5};
static const int64_t int_corners[] = {0,   1,   -1,  2,     7,     -7,        31,        32,        33,        127,
                                      128, 255, 256, 65535, 65536, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, 0x5a5a5a5a};

static void fill(run *r, uint32_t buffer, int32_t base, uint32_t count) {
  uint32_t state = buffer + 1;
  for (uint32_t i = 0; i < count; i++) {
    const uint32_t corner = (i * (2 * buffer + 1) + buffer * 5) % 40;
    const double x = (double)kernel_number(&state);
    if (ir_dtypes[base].is_float)
      ir_dtype_store(base, r->data[buffer], i, corner < IR_COUNT(float_corners) ? float_corners[corner] : x * 1000);
    else ir_dtype_store_int(base, r->data[buffer], i, corner < IR_COUNT(int_corners) ? int_corners[corner] : (int64_t)(x * 1e6));
  }
}

static bool prepare(run *r, int32_t base, uint32_t lanes) {
  snt_diag diag = {0};
  kir_interp_buffer buffers[BUFFERS];
  codegen_cases_make(&r->cases, &r->arena, base, lanes);
  if (r->cases.kernel.failed)
    return tap_ok(false, "the kernel of %s x%u: %s", ir_dtypes[base].name, lanes, r->cases.kernel.first_error.text);
  for (uint32_t b = 0; b < BUFFERS; b++) {
    r->bytes[b] = b == OUT ? 256ull * CODEGEN_CASE_ITEMS * lanes * 4 : (uint64_t)CODEGEN_CASE_ITEMS * lanes * ir_dtypes[base].bytes;
    r->data[b] = ir_arena_take(&r->arena, r->bytes[b], 64);
    if (b != OUT) fill(r, b, base, CODEGEN_CASE_ITEMS * lanes);
    buffers[b] = (kir_interp_buffer){r->data[b], r->bytes[b]};
  }
  const kir_interp_info info = {.kernel = &r->cases.kernel, .groups = 1, .buffer_count = BUFFERS, .buffers = buffers};
  kir_interp_stats stats;
  if (kir_interp_run(&info, NULL, &stats, &diag) != SNT_OK)
    return tap_ok(false, "%s x%u on the interpreter: %s", ir_dtypes[base].name, lanes, diag.text);
  r->expected = ir_arena_take(&r->arena, r->bytes[OUT], 64);
  memcpy(r->expected, r->data[OUT], r->bytes[OUT]);
  memset(r->data[OUT], 0xcd, r->bytes[OUT]);
  return true;
}

static void compare(run *r, int32_t base, uint32_t lanes) {
  const uint32_t *got = (const uint32_t *)(const void *)r->data[OUT], each = CODEGEN_CASE_ITEMS * lanes;
  uint32_t wrong = 0;
  for (uint32_t n = 0; n < r->cases.count; n++) {
    uint32_t bad = 0, first = 0;
    for (uint32_t i = 0; i < each; i++)
      if (got[n * each + i] != r->expected[n * each + i] && !bad++) first = i;
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

static void check_type(run *r, int32_t base, uint32_t lanes) {
  snt_diag diag = {0};
  ir_arena_init(&r->arena, NULL);
  if (prepare(r, base, lanes)) {
    codegen_dispatch d = {.kernel = &r->cases.kernel, .groups = 1, .count = BUFFERS};
    memcpy(d.data, r->data, sizeof r->data), memcpy(d.bytes, r->bytes, sizeof r->bytes);
    const snt_result result = codegen_run_on(r->device, &d, &r->arena, NULL, &diag);
    if (result == SNT_E_UNSUPPORTED) tap_skip("%s, %s x%u: %s", r->selector, ir_dtypes[base].name, lanes, diag.text);
    else if (result != SNT_OK) tap_ok(false, "%s, %s x%u: %s: %s", r->selector, ir_dtypes[base].name, lanes, diag.stage, diag.text);
    else compare(r, base, lanes);
  }
  ir_arena_free(&r->arena);
}

/* ---- random kernels: bit for bit, on devices that round and keep denormals as the interpreter does ---- */
static bool run_seed(run *r, uint64_t seed, bool show) {
  static random_buffers before, after;
  kir_kernel k;
  codegen_code code = {0};
  snt_diag diag = {0};
  char why[160] = "";
  ir_arena_init(&r->arena, NULL);
  kir_init(&k, &r->arena, "random_kernel");
  random_kernel(&k, seed, false);
  snt_result result = random_run(&k, &before, &diag);
  codegen_dispatch d = {.kernel = &k, .groups = RANDOM_GROUPS, .count = RANDOM_BUFFERS, .block = random_block};
  random_inputs(&after);
  for (uint32_t b = 0; b < RANDOM_BUFFERS; b++) d.data[b] = after.data[b], d.bytes[b] = random_bytes(b);
  if (result == SNT_OK) result = codegen_run_on(r->device, &d, &r->arena, &code, &diag);
  const bool good = result == SNT_OK && random_same(&before, &after, why, sizeof why);
  if (!good) tap_diag("%s, seed %llu: %s %s %s", r->selector, (unsigned long long)seed, diag.stage, diag.text, why);
  if (!good && show) tap_diag_text(kernel_print(&k));
  if (!good && show && code.data && r->device->target != SNT_TARGET_SPIRV) tap_diag_text(code.data);
  ir_arena_free(&r->arena);
  return good;
}

static void check_random(run *r, uint64_t seed) {
  enum { SEEDS = 12 };
  uint32_t failed = 0;
  kir_caps *caps = &r->device->profile.caps;
  if (!caps->exact_div && r->device->cpu) caps->exact_div = caps->exact_sqrt = true; /* not promised, but what its instructions do */
  if (!caps->exact_div) {
    tap_skip("%s: random kernels need exact division", r->selector);
    return;
  }
  if (seed) failed = !run_seed(r, seed, true);
  for (uint64_t s = 1; s <= SEEDS && !seed && failed < 3; s++) failed += !run_seed(r, s, false);
  tap_is_int(failed, 0, "%s: random kernels give the interpreter's bits", r->selector);
  if (r->device->target != SNT_TARGET_SPIRV || seed) return;
  for (uint64_t s = SEEDS + 1; s <= 2 * SEEDS && failed < 3; s++) {
    cost_profile_mask(&r->device->profile, "vulkan11-min", NULL);
    failed += !run_seed(r, s, false);
  }
  tap_is_int(failed, 0, "%s: and with no more than every Vulkan 1.1 device has", r->selector);
}

/* ---- the kernels of tests/golden/codegen: workspaces, offsets, subgroups, barriers, texels, atomics; small whole numbers, so that no order
   of summation shows ---- */
static uint64_t elements(const kir_kernel *k, const kir_memory *m, const uint32_t *block, uint64_t groups) {
  uint64_t n = 1;
  if (m->size_scalar) return (m->dims[1] ? m->dims[1] : 1) * block[k->scalars.at[m->size_scalar - 1].offset / 4];
  for (uint32_t i = 0; i < m->rank; i++) n *= m->dims[i];
  return m->space == KIR_SCRATCH ? n * groups : n;
}

static void fill_whole(uint8_t *data, uint64_t bytes, int32_t base) {
  for (uint64_t i = 0; i < bytes / ir_dtypes[base].bytes; i++)
    if (ir_dtypes[base].is_float) ir_dtype_store(base, data, i, (double)(i * 7 % 31) - 15);
    else ir_dtype_store_int(base, data, i, (int64_t)(i * 7 % 31));
}

enum { IMAGE_WIDTH = 35, IMAGE_HEIGHT = 8 };

/* The same texels for the device and for the interpreter: every byte pattern of small channels, halves of whole numbers otherwise. */
static kir_interp_image image_of(run *r, const kir_memory *m, uint8_t **data, uint8_t **copy, uint64_t *bytes) {
  const bool bytewise = !strcmp(m->format, "rgba8"), half = !strcmp(m->format, "rgba16f");
  const kir_interp_image image = {.width = IMAGE_WIDTH,
                                  .height = IMAGE_HEIGHT,
                                  .channels = 4,
                                  .dtype = bytewise ? SNT_U8
                                           : half   ? SNT_F16
                                                    : SNT_F32};
  const uint64_t count = (uint64_t)IMAGE_WIDTH * IMAGE_HEIGHT * 4;
  *bytes = count * ir_dtypes[image.dtype].bytes;
  *data = ir_arena_take(&r->arena, *bytes, 64), *copy = ir_arena_take(&r->arena, *bytes, 64);
  for (uint64_t i = 0; i < count; i++)
    if (bytewise) (*data)[i] = (uint8_t)(i * 7);
    else ir_dtype_store(image.dtype, *data, i, (double)(i % 64) / 2);
  memcpy(*copy, *data, *bytes);
  kir_interp_image out = image;
  out.data = *copy;
  return out;
}

/* Conversions to a format round to nearest here; Vulkan allows either neighbour. */
static bool same_image(const kir_interp_image *image, const uint8_t *got) {
  const uint64_t count = (uint64_t)image->width * image->height * image->channels;
  for (uint64_t i = 0; i < count; i++) {
    const double a = image->dtype == SNT_U8 ? ((const uint8_t *)image->data)[i] : ir_dtype_load(image->dtype, image->data, i),
                 b = image->dtype == SNT_U8 ? got[i] : ir_dtype_load(image->dtype, got, i);
    const double room = image->dtype == SNT_U8 ? 1 : image->dtype == SNT_F16 ? fabs(a) / 1024 + 1e-7 : 0;
    if (!(fabs(a - b) <= room)) return false;
  }
  return true;
}

static bool run_kernel(run *r, const kir_kernel *k, uint32_t *wrong, snt_diag *diag) {
  enum { GROUPS = 4 };
  const int64_t most = k->scalars.count ? k->scalars.at[0].max : 0;
  const uint32_t block[2] = {most && most < 3000 ? (uint32_t)most : 3000, 0x40400000}; /* a length, and 3.0f */
  codegen_dispatch d = {.kernel = k, .groups = GROUPS, .count = kir_binding_count(k), .block = block};
  kir_interp_buffer buffers[16] = {{0}};
  kir_interp_image images[16] = {{0}};
  uint8_t *copy[16];
  for (uint32_t i = 0; i < k->memories.count; i++) {
    const kir_memory *m = &k->memories.at[i];
    const uint32_t b = kir_binding(k, i);
    if (m->space == KIR_IMAGE) {
      d.images[b] = (codegen_image){m->format, IMAGE_WIDTH, IMAGE_HEIGHT};
      images[b] = image_of(r, m, &d.data[b], &copy[b], &d.bytes[b]);
      buffers[b] = (kir_interp_buffer){copy[b], d.bytes[b]};
      continue;
    }
    if (b == ~0u) continue;
    d.bytes[b] = (elements(k, m, block, GROUPS) + (m->offset_scalar ? block[0] : 0)) * ir_dtypes[m->type.base].bytes * m->type.lanes;
    d.data[b] = ir_arena_take(&r->arena, d.bytes[b], 64), copy[b] = ir_arena_take(&r->arena, d.bytes[b], 64);
    fill_whole(d.data[b], d.bytes[b], m->type.base);
    memcpy(copy[b], d.data[b], d.bytes[b]);
    buffers[b] = (kir_interp_buffer){copy[b], d.bytes[b]};
  }
  const kir_interp_info info = {.kernel = k,
                                .groups = GROUPS,
                                .buffer_count = d.count,
                                .buffers = buffers,
                                .images = images,
                                .scalars = block,
                                .scalar_bytes = sizeof block};
  kir_interp_stats stats;
  if (kir_interp_run(&info, NULL, &stats, diag) != SNT_OK || codegen_run_on(r->device, &d, &r->arena, NULL, diag) != SNT_OK) return false;
  for (uint32_t i = 0; i < k->memories.count; i++) {
    const uint32_t b = kir_binding(k, i);
    if (k->memories.at[i].space == KIR_IMAGE && k->memories.at[i].access & KIR_WRITE) *wrong += !same_image(&images[b], d.data[b]);
    if (k->memories.at[i].space == KIR_GLOBAL) *wrong += memcmp(copy[b], d.data[b], d.bytes[b]) != 0;
  }
  return true;
}

static void check_kernels(run *r) {
  static const char *const names[] = {"scale", "row_sum", "control", "halves", "arrays", "subgroup", "texel", "image"};
  for (uint32_t i = 0; i < IR_COUNT(names); i++) {
    char path[64];
    size_t length;
    uint32_t wrong = 0;
    kir_kernel k;
    snt_diag diag = {0};
    ir_arena_init(&r->arena, NULL);
    snprintf(path, sizeof path, "tests/golden/codegen/%s.txt", names[i]);
    char *file = kernel_read_file(&r->arena, path, &length), *end = file ? strstr(file, "\n==== opencl") : NULL;
    if (end) end[1] = 0;
    if (!tap_ok(file && kernel_from_text(&k, &r->arena, file + strlen("==== kernel\n")), "%s is a kernel", path)) continue;
    if (run_kernel(r, &k, &wrong, &diag)) tap_is_int(wrong, 0, "%s: kernel %s gives the interpreter's bits", r->selector, names[i]);
    else if (diag.result == SNT_E_UNSUPPORTED) tap_skip("%s, kernel %s: %s", r->selector, names[i], diag.text);
    else tap_ok(false, "%s, kernel %s: %s: %s", r->selector, names[i], diag.stage, diag.text);
    ir_arena_free(&r->arena);
  }
}

/* ---- products of bytes: the instruction of each width of vectors that this processor has, and none of them ---- */
static bool has_dot4(uint32_t bits) {
#if defined(__x86_64__)
  unsigned a, b, c, d;
  if (bits == 512) return __get_cpuid_count(7, 0, &a, &b, &c, &d) && c >> 11 & 1;
  if (bits == 256) return __get_cpuid_count(7, 1, &a, &b, &c, &d) && a >> 4 & 1;
  if (bits == OCL_DOT4_PAIRS) return __get_cpuid_count(7, 0, &a, &b, &c, &d) && b >> 5 & 1;
#endif
  return bits == 0 || bits == OCL_DOT4_WORD;
}

/* What cl_khr_integer_dot_product has, for a driver without: of unsigned bytes and signed ones. */
#define DOT_BYTE(byte) "(int)((a)>>" #byte "&255)*((int)((b)<<(24-" #byte "))>>24)"
#define DOT_WORD " -Ddot_4x8packed_us_int(a,b)=(" DOT_BYTE(0) "+" DOT_BYTE(8) "+" DOT_BYTE(16) "+" DOT_BYTE(24) ")"

static void check_opencl_products(run *r) {
  static const uint32_t forms[] = {0, OCL_DOT4_PAIRS, OCL_DOT4_WORD, 256, 512}, lanes[] = {1, 2, 4, 8, 16};
  const char *selector = r->selector;
  ocl_device *device = (ocl_device *)r->device;
  char name[64];
  if (!device->family->assembles) return;
  r->selector = name;
  for (uint32_t i = 0; i < IR_COUNT(forms); i++) {
    snprintf(name, sizeof name, "%s, products of bytes by %u bits", selector, forms[i]);
    if (!has_dot4(forms[i])) {
      tap_skip("%s: this processor has no instruction for them", name);
      continue;
    }
    const bool word = forms[i] == OCL_DOT4_WORD;
    const int length = snprintf(device->build_options, sizeof device->build_options, "-cl-std=CL%s%s", word ? "3.0" : "1.2",
                                word ? DOT_WORD : "");
    if (forms[i]) snprintf(device->build_options + length, sizeof device->build_options - (size_t)length, " -DSNT_DOT4=%u", forms[i]);
    for (uint32_t n = 0; n < IR_COUNT(lanes); n++) check_type(r, SNT_I32, lanes[n]);
  }
  r->selector = selector;
}

/* By the instruction of SPIR-V, which a driver has whether or not the device is fast at it. */
static void check_vulkan_products(run *r) {
  static const uint32_t lanes[] = {1, 2, 4};
  const char *selector = r->selector;
  char name[64];
  if (!((const vk_device *)r->device)->features.dots.shaderIntegerDotProduct) {
    tap_skip("%s has no integer dot products", selector);
    return;
  }
  r->selector = name;
  snprintf(name, sizeof name, "%s, integer dot products", selector);
  for (uint32_t n = 0; n < IR_COUNT(lanes); n++) check_type(r, SNT_I32, lanes[n]);
  r->selector = selector;
}

static void check_products(run *r) {
  r->device->profile.caps.dot4 = true;
  if (r->device->target == SNT_TARGET_OPENCL) check_opencl_products(r);
  else if (r->device->target == SNT_TARGET_SPIRV) check_vulkan_products(r);
}

static void check_device(const char *selector, uint64_t seed) {
  static run r;
  static const struct {
    int32_t base;
    uint32_t lanes;
  } shapes[] = {{SNT_F32, 1}, {SNT_F32, 4}, {SNT_F32, 8}, {SNT_I32, 1}, {SNT_I32, 4}, {SNT_U32, 1},
                {SNT_U32, 2}, {SNT_U32, 8}, {SNT_I64, 1}, {SNT_U64, 1}, {SNT_F64, 1}, {SNT_F64, 2}};
  snt_diag diag = {0};
  const snt_backend *hook = host_cuda_text();
  const rt_hooks hooks = {1, &hook};
  r = (run){.selector = selector};
  if (rt_open_device(NULL, &hooks, selector, &r.device, &diag) != SNT_OK) {
    tap_skip("%s: %s", selector, diag.text);
    return;
  }
  for (uint32_t i = 0; i < IR_COUNT(shapes) && !seed; i++) check_type(&r, shapes[i].base, shapes[i].lanes);
  if (!seed) check_kernels(&r);
  check_random(&r, seed);
  if (!seed) check_products(&r);
  rt_close_device(r.device);
}

/* Arguments: parts of selectors, or another device's whole one, or a seed; none: all. */
int main(int argc, char **argv) {
  uint64_t seed = 0;
  bool named = false;
  for (int n = 1; n < argc; n++) {
    if (strtoull(argv[n], NULL, 0)) seed = strtoull(argv[n], NULL, 0);
    else named = true;
  }
  host_prepare_drivers(NULL);
  for (uint32_t i = 0; i < IR_COUNT(device_names); i++) {
    bool wanted = !named;
    for (int n = 1; n < argc; n++) wanted |= strstr(device_names[i], argv[n]) != NULL;
    if (wanted) check_device(device_names[i], seed);
  }
  for (int n = 1; n < argc; n++) {
    if (device_is_another(argv[n])) check_device(argv[n], seed);
  }
  return tap_done();
}
