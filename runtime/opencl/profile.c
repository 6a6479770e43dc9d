/* What an OpenCL device is: its family's built-in profile, with the limits and abilities that the driver answers. */
#include "runtime/rt_opencl.h"
#include <stdio.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

/* AArch64 has multiply-adds and 32 vector registers in its base (Arm ARM, A1.4), of which PoCL 3.1 says nothing: it looks for the names of x86's features. */
#if defined(__aarch64__)
enum { OCL_CPU_HAS_FMA = 1, OCL_FEW_REGISTERS = 32 };
#else
enum { OCL_CPU_HAS_FMA = 0, OCL_FEW_REGISTERS = 16 };
#endif
enum { OCL_SCALAR_BYTES = 128 };

static bool has_extension(const ocl_device *device, const char *extensions, const char *name) {
  size_t length = strlen(name);
  (void)device;
  for (const char *at = strstr(extensions, name); at; at = strstr(at + length, name)) {
    bool begins = at == extensions || at[-1] == ' ', ends = at[length] == ' ' || at[length] == 0;
    if (begins && ends) return true;
  }
  return false;
}

static void query_caps(const ocl_device *device, const char *extensions, bool cpu, kir_caps *caps) {
  uint64_t floats = ocl_query_uint(&device->api, device->id, CL_DEVICE_SINGLE_FP_CONFIG, sizeof(cl_device_fp_config));
  caps->target = "opencl";
  caps->f16_arithmetic = has_extension(device, extensions, "cl_khr_fp16");
  caps->f64 = has_extension(device, extensions, "cl_khr_fp64");
  caps->int64 = true; /* the full profile has it; 64-bit embedded devices are not supported */
  /* fma() rounds once everywhere, but without an instruction it is a hundred integer operations */
  caps->fma_fused = (floats & CL_FP_FMA) != 0 || (cpu && OCL_CPU_HAS_FMA);
  caps->fma_fast = caps->fma_fused;
  caps->exact_div = caps->exact_sqrt = cpu && (floats & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT);
  caps->subgroups = caps->subgroup_arithmetic = false; /* not in OpenCL C 1.2 */
  caps->texel = caps->oob_zero = caps->atomics_f32 = caps->async_copy = false;
  memset(caps->mma, 0, sizeof caps->mma);
  caps->subgroup_size = 0;
  caps->aligned_vectors = caps->nan_unsafe = false;
  caps->narrow_local = true;
  caps->dot4 = false;
  caps->push_bytes = OCL_SCALAR_BYTES;
}

static void query_limits(const ocl_device *device, cost_profile *profile) {
  const ocl_api *api = &device->api;
  uint64_t parameters = ocl_query_uint(api, device->id, CL_DEVICE_MAX_PARAMETER_SIZE, sizeof(size_t));
  uint64_t align_bits = ocl_query_uint(api, device->id, CL_DEVICE_MEM_BASE_ADDR_ALIGN, sizeof(cl_uint));
  uint64_t local = ocl_query_uint(api, device->id, CL_DEVICE_LOCAL_MEM_SIZE, sizeof(cl_ulong));
  profile->max_scalar_bytes = OCL_SCALAR_BYTES;
  profile->max_bindings = parameters > OCL_SCALAR_BYTES + 12 ? (uint32_t)(parameters - OCL_SCALAR_BYTES - 4) / 8 : 1;
  if (profile->max_bindings > 64) profile->max_bindings = 64;
  profile->max_items = (uint32_t)ocl_query_uint(api, device->id, CL_DEVICE_MAX_WORK_GROUP_SIZE, sizeof(size_t));
  profile->max_local_bytes = local;
  profile->max_buffer_bytes = ocl_query_uint(api, device->id, CL_DEVICE_MAX_MEM_ALLOC_SIZE, sizeof(cl_ulong));
  profile->offset_align = align_bits / 8 > 16 ? (uint32_t)(align_bits / 8) : 16;
  profile->max_texels = 0;
  profile->subgroup_min = profile->subgroup_max = 1;
  profile->units = (double)ocl_query_uint(api, device->id, CL_DEVICE_MAX_COMPUTE_UNITS, sizeof(cl_uint));
  for (int axis = 0; axis < 3; axis++) profile->max_grid[axis] = INT32_MAX;
}

/* Bits of the vectors whose products of bytes are one instruction (Intel SDM, CPUID leaf 7: ECX bit 11 is AVX512_VNNI, EAX bit 4 of subleaf 1
   AVX-VNNI), or OCL_DOT4_PAIRS (EBX bit 5: AVX2); 0: none are, or the driver compiles for vectors of another width. */
static uint32_t dot4_bits(uint64_t native) {
#if defined(__x86_64__)
  unsigned a, b, c, d;
  if (native >= 16) return __get_cpuid_count(7, 0, &a, &b, &c, &d) && c >> 11 & 1 ? 512 : 0;
  if (native == 8 && __get_cpuid_count(7, 1, &a, &b, &c, &d) && a >> 4 & 1) return 256;
  if (native == 8) return __get_cpuid_count(7, 0, &a, &b, &c, &d) && b >> 5 & 1 ? OCL_DOT4_PAIRS : 0;
#endif
  return (void)native, 0;
}

/* Products of a word's bytes by a function that is one instruction of the device: cl_khr_integer_dot_product, in OpenCL C 3.0. */
static bool has_fast_dots(const ocl_device *device, const char *extensions) {
  const ocl_api *api = &device->api;
  cl_device_integer_dot_product_acceleration_properties_khr fast = {0};
  char version[16] = ""; /* "OpenCL 3.0 ..." */
  if (device->family->assembles || !has_extension(device, extensions, "cl_khr_integer_dot_product")) return false;
  api->clGetDeviceInfo(device->id, CL_DEVICE_VERSION, sizeof version - 1, version, NULL);
  const cl_int code = api->clGetDeviceInfo(device->id, CL_DEVICE_INTEGER_DOT_PRODUCT_ACCELERATION_PROPERTIES_4x8BIT_PACKED_KHR, sizeof fast,
                                           &fast, NULL);
  return code == CL_SUCCESS && fast.mixed_signedness_accelerated && strstr(version, "OpenCL 3");
}

/* Lanes of f32 that a port takes at once where that is less than the vectors have; 0: it is not known to be (AMD APM 3, CPUID 8000_001A EAX: bit 2
   FP256, bit 3 FP512, the width of the data path). */
static double port_lanes(uint64_t native) {
#if defined(__x86_64__)
  unsigned a, b, c, d;
  if (native >= 16 && __get_cpuid(0x8000001a, &a, &b, &c, &d) && (a >> 2 & 3) == 1) return 8;
#endif
  return (void)native, 0;
}

/* Bytes of a unit's second cache (Intel SDM, CPUID leaf 4; AMD APM 3, leaf 8000_001D, the same fields: EAX bits 7:5 are the level, the others one less than the
   ways, partitions, bytes of a line and sets); 0: it is not known. */
static double second_cache(void) {
#if defined(__x86_64__)
  unsigned a, b, c, d;
  for (unsigned leaf = 4; leaf; leaf = leaf == 4 ? 0x8000001d : 0)
    if (__get_cpuid_count(leaf, 2, &a, &b, &c, &d) && (a >> 5 & 7) == 2)
      return ((b >> 22) + 1.) * ((b >> 12 & 1023) + 1) * ((b & 4095) + 1) * (c + 1.);
#endif
  return 0;
}

/* The explicit class forms vectors itself, so the native width is the tile's unit, and AVX-512 doubles the register file too. */
static void query_vectors(ocl_device *device, cost_profile *profile) {
  uint64_t native = ocl_query_uint(&device->api, device->id, CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT, sizeof(cl_uint));
  if (profile->simd != COST_SIMD_EXPLICIT || native < 4) return;
  profile->port_lanes = port_lanes(native);
  profile->second_bytes = second_cache();
  cost_profile_widen(profile, (double)native);
  profile->registers = native >= 16 ? 32 : OCL_FEW_REGISTERS;
  device->dot4 = device->family->assembles ? dot4_bits(native) : 0;
  profile->caps.dot4 = device->dot4 != 0;
  if (device->dot4 == OCL_DOT4_PAIRS) profile->dot4_steps = 2.5; /* five operations of four ports, beside two of multiply-adds */
}

/* A core of Intel's holds a fill buffer for each streaming store until memory has the line, so few cores write more with plain stores to lines fetched
   ahead: two of Cascade Lake 134 MB in 5.6 ms, streaming 6.2 to 6.7. Where more cores share the memory, the third stream that plain stores read costs
   more (J. McCalpin, "Notes on non-temporal (aka streaming) stores", 2018). Two of Zen 3 stream 1.2 times as fast. Lines far apart, as of a transpose, no
   fetching ahead helps: there streaming is four times as fast (4096 x 4096). */
static void query_stores(const ocl_device *device, cost_profile *profile) {
  enum { FEW = 4 };
  char vendor[64] = ""; /* the number is Intel's for every processor in PoCL 3.1 */
  device->api.clGetDeviceInfo(device->id, CL_DEVICE_VENDOR, sizeof vendor - 1, vendor, NULL);
  if (profile->units <= FEW && strstr(vendor, "Intel")) profile->plain_runs = 1;
}

snt_result ocl_query_profile(ocl_device *device, snt_diag *diag) {
  cost_profile *profile = &device->base.profile;
  const ocl_api *api = &device->api;
  size_t size = 0;
  SNT_TRY(rt_base_profile(profile, rt_profile_of(device->base.name, device->family->profile), diag));
  if (!strcmp(profile->target, "cuda")) profile->caps.max_lanes = 4; /* scalars are of that language, not of the device */
  cl_int code = api->clGetDeviceInfo(device->id, CL_DEVICE_EXTENSIONS, 0, NULL, &size);
  if (code != CL_SUCCESS) return ocl_fail(device, code, "open", "clGetDeviceInfo", diag);
  char *extensions = rt_take(device->base.alloc, size + 1);
  if (!extensions) return ir_fail(diag, SNT_E_HOST_MEM, "open", 0, "out of memory");
  api->clGetDeviceInfo(device->id, CL_DEVICE_EXTENSIONS, size, extensions, NULL);
  bool cpu = ocl_query_uint(api, device->id, CL_DEVICE_TYPE, sizeof(cl_device_type)) & CL_DEVICE_TYPE_CPU;
  rt_copy_text(profile->target, sizeof profile->target, "opencl");
  query_caps(device, extensions, cpu, &profile->caps);
  query_limits(device, profile);
  if (!profile->max_items || !profile->max_buffer_bytes) {
    rt_give(device->base.alloc, extensions, size + 1);
    return ir_fail(diag, SNT_E_BACKEND, "open", 0, "the driver does not answer what a group and a buffer may hold");
  }
  query_vectors(device, profile);
  if (has_fast_dots(device, extensions)) device->dot4 = OCL_DOT4_WORD, profile->caps.dot4 = true;
  if (cpu) query_stores(device, profile);
  rt_give(device->base.alloc, extensions, size + 1);
  char dot4[24] = "", *driver = device->base.driver;
  const size_t named = strlen(driver);
  if (device->dot4) snprintf(dot4, sizeof dot4, " -DSNT_DOT4=%u", device->dot4);
  if (device->dot4 > OCL_DOT4_WORD) /* also for the cache: a binary for this processor is none for all that have the driver */
    snprintf(driver + named, sizeof device->base.driver - named, ", VNNI %u", device->dot4);
  snprintf(device->build_options, sizeof device->build_options, "-cl-std=CL%s%s%s%s", device->dot4 == OCL_DOT4_WORD ? "3.0" : "1.2",
           profile->caps.exact_div ? " -cl-fp32-correctly-rounded-divide-sqrt" : "", device->family->unoptimised ? " -cl-opt-disable" : "",
           dot4);
  return SNT_OK;
}
