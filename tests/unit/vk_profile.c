/* What the Vulkan runtime makes of a device's facts, row by row, each of a device that has everything but one thing: features asked for by version or by
   extension, what kernels may use, limits, subgroups, matrix units, float controls, the built-in profile it begins from, and kinds of memory. No driver. */
#include "runtime/rt_vulkan.h"
#include "tests/tap.h"
#include <sinter/sinter.h>

/* ---- a profile of facts ---- */

typedef struct whole {
  vk_features features;
  VkPhysicalDeviceSubgroupProperties subgroups;
  VkPhysicalDeviceLimits limits;
  VkPhysicalDeviceSubgroupSizeControlProperties sizes;
  VkPhysicalDeviceFloatControlsProperties controls;
  vk_facts facts;
  cost_profile p;
} whole;

static void set_everything(whole *w) {
  *w = (whole){0};
  w->features.core.features = (VkPhysicalDeviceFeatures){.robustBufferAccess = 1, .shaderInt16 = 1, .shaderInt64 = 1, .shaderFloat64 = 1};
  w->features.storage16.storageBuffer16BitAccess = w->features.storage8.storageBuffer8BitAccess = 1;
  w->features.small.shaderFloat16 = w->features.small.shaderInt8 = 1;
  w->features.subgroup_size.computeFullSubgroups = w->features.subgroup_size.subgroupSizeControl = 1;
  w->features.memory_model.vulkanMemoryModel = w->features.units.cooperative_matrix = 1;
  w->subgroups = (VkPhysicalDeviceSubgroupProperties){
      .subgroupSize = 32,
      .supportedStages = VK_SHADER_STAGE_COMPUTE_BIT,
      .supportedOperations = VK_SUBGROUP_FEATURE_BASIC_BIT | VK_SUBGROUP_FEATURE_ARITHMETIC_BIT | VK_SUBGROUP_FEATURE_SHUFFLE_BIT};
  w->limits = (VkPhysicalDeviceLimits){.maxPerStageDescriptorStorageBuffers = 1000,
                                       .maxPerStageResources = 1000,
                                       .maxPushConstantsSize = 256,
                                       .maxComputeWorkGroupInvocations = 1024,
                                       .maxComputeWorkGroupSize = {1024, 1024, 64},
                                       .maxComputeWorkGroupCount = {65535, 65535, 65535},
                                       .maxComputeSharedMemorySize = 49152,
                                       .maxStorageBufferRange = 0xffffffff,
                                       .maxTexelBufferElements = 1 << 27,
                                       .minStorageBufferOffsetAlignment = 16,
                                       .minTexelBufferOffsetAlignment = 16};
  w->sizes = (VkPhysicalDeviceSubgroupSizeControlProperties){.minSubgroupSize = 32,
                                                             .maxSubgroupSize = 32,
                                                             .requiredSubgroupSizeStages = VK_SHADER_STAGE_COMPUTE_BIT,
                                                             .maxComputeWorkgroupSubgroups = 32};
  w->controls = (VkPhysicalDeviceFloatControlsProperties){.denormBehaviorIndependence = VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_ALL,
                                                          .roundingModeIndependence = VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_ALL,
                                                          .shaderSignedZeroInfNanPreserveFloat32 = 1,
                                                          .shaderDenormPreserveFloat16 = 1,
                                                          .shaderDenormPreserveFloat32 = 1,
                                                          .shaderRoundingModeRTEFloat16 = 1,
                                                          .shaderRoundingModeRTEFloat32 = 1,
                                                          .shaderRoundingModeRTEFloat64 = 1};
  w->facts = (vk_facts){.features = &w->features,
                        .subgroups = &w->subgroups,
                        .limits = &w->limits,
                        .sizes = &w->sizes,
                        .max_allocation = (VkDeviceSize)1 << 32,
                        .fast_dots = true,
                        .mma = {[KIR_MMA_F16] = {16, 16, 16}, [KIR_MMA_I8] = {16, 16, 32}, [KIR_MMA_U8] = {16, 16, 32}},
                        .float_controls = &w->controls};
}

/* A device that has everything but what `change` takes: `holds` of its profile, w.p, and its c.caps. */
#define ROW(base, change, holds)                                                                                                    \
  do {                                                                                                                              \
    static whole w;                                                                                                                 \
    set_everything(&w);                                                                                                             \
    change;                                                                                                                         \
    snt_diag diag = {.head = SNT_HEAD(diag)};                                                                                       \
    const snt_result r = vk_fill_profile(&w.facts, base, &w.p, &diag);                                                              \
    const kir_caps *c = &w.p.caps;                                                                                                  \
    tap_result(r == SNT_OK && (holds) && c->max_lanes == 4, __FILE__, __LINE__, "%s, %s: %s %s", base, #change, #holds, diag.text); \
  } while (0)

static void test_caps(void) {
  ROW("dgpu", (void)0, c->f16_arithmetic && c->f16_storage && c->bf16_storage && c->int16_storage && c->int8_storage && c->int64 && c->f64);
  ROW("dgpu", (void)0,
      c->subgroups && c->subgroup_arithmetic && c->subgroup_size == 32 && c->oob_zero && c->dot4 && !c->exact_div && !c->atomics_f32);
  ROW("dgpu", w.features.storage16.storageBuffer16BitAccess = 0,
      c->f16_arithmetic && !c->f16_storage && !c->bf16_storage && !c->int16_storage);
  ROW("dgpu", w.features.small.shaderFloat16 = 0, !c->f16_arithmetic && !c->f16_storage && c->int16_storage && c->bf16_storage);
  ROW("dgpu", w.features.core.features.shaderInt16 = 0, c->f16_storage && !c->int16_storage && !c->bf16_storage);
  ROW("dgpu", w.features.storage8.storageBuffer8BitAccess = 0, !c->int8_storage && c->int16_storage);
  ROW("dgpu", w.features.small.shaderInt8 = 0, !c->int8_storage && c->f16_storage);
  ROW("dgpu", w.features.core.features.shaderInt64 = 0, !c->int64 && c->f64);
  ROW("dgpu", w.features.core.features.shaderFloat64 = 0, c->int64 && !c->f64);
  ROW("dgpu", w.features.core.features.robustBufferAccess = 0, !c->oob_zero);
  ROW("dgpu", w.facts.fast_dots = false, !c->dot4);
  ROW("lavapipe", w.facts.cpu = true, c->exact_div && c->exact_sqrt); /* a processor's, whose driver is known */
  ROW("lavapipe", w.facts.cpu = false, !c->exact_div && !c->exact_sqrt);
  ROW("swiftshader", w.facts.cpu = true, !c->exact_div && !c->exact_sqrt);
}

static void test_subgroups(void) {
  ROW("dgpu", w.subgroups.supportedStages = VK_SHADER_STAGE_FRAGMENT_BIT, !c->subgroups && !c->subgroup_arithmetic);
  ROW("dgpu", w.subgroups.supportedOperations = VK_SUBGROUP_FEATURE_ARITHMETIC_BIT, !c->subgroups && !c->subgroup_arithmetic);
  ROW("dgpu", w.subgroups.supportedOperations = VK_SUBGROUP_FEATURE_BASIC_BIT | VK_SUBGROUP_FEATURE_SHUFFLE_BIT,
      c->subgroups && !c->subgroup_arithmetic);
  ROW("dgpu", w.features.subgroup_size.computeFullSubgroups = 0, c->subgroups && !c->subgroup_size && !c->mma[KIR_MMA_F16].m);
  ROW("dgpu", w.sizes.minSubgroupSize = 16,
      w.p.subgroup_min == 16 && w.p.subgroup_max == 32 && w.p.subgroup_asked && c->subgroup_size == 32);
  ROW("dgpu", (w.sizes.minSubgroupSize = 16, w.sizes.requiredSubgroupSizeStages = 0), !w.p.subgroup_asked && !c->subgroup_size);
  ROW("dgpu", (w.sizes.minSubgroupSize = 16, w.sizes.maxComputeWorkgroupSubgroups = 31), w.p.subgroup_asked && !c->subgroup_size);
  ROW("dgpu", w.sizes.requiredSubgroupSizeStages = 0, c->subgroup_size == 32);
  ROW("lavapipe", (w.facts.cpu = true, w.sizes.maxSubgroupSize = 8), w.p.lanes == 8);
  ROW("lavapipe", w.sizes.maxSubgroupSize = 5, w.p.lanes != 5);
  ROW("pocl", (w.facts.cpu = true, w.sizes.maxSubgroupSize = 5), w.p.lanes != 5);
}

static void test_units(void) {
  ROW("dgpu", (void)0, c->mma[KIR_MMA_F16].k == 16 && c->mma[KIR_MMA_I8].k == 32 && c->mma[KIR_MMA_U8].k == 32 && !c->mma[KIR_MMA_BF16].m);
  ROW("dgpu", w.features.units.cooperative_matrix = 0, !c->mma[KIR_MMA_F16].m && !c->mma[KIR_MMA_I8].m && !c->mma[KIR_MMA_U8].m);
  ROW("dgpu", w.features.memory_model.vulkanMemoryModel = 0, !c->mma[KIR_MMA_F16].m && !c->mma[KIR_MMA_I8].m);
  ROW("dgpu", w.features.storage16.storageBuffer16BitAccess = 0, !c->mma[KIR_MMA_F16].m && c->mma[KIR_MMA_I8].m);
  ROW("dgpu", w.features.storage8.storageBuffer8BitAccess = 0, c->mma[KIR_MMA_F16].m && !c->mma[KIR_MMA_I8].m && !c->mma[KIR_MMA_U8].m);
}

static void test_float_controls(void) {
  enum { ALL = 16 | 32 | 64 };
  ROW("dgpu", (void)0,
      c->float_controls.signed_zero == 32 && c->float_controls.denormals == (16 | 32) && c->float_controls.round_even == ALL);
  ROW("dgpu", w.facts.float_controls = NULL,
      !c->float_controls.signed_zero && !c->float_controls.denormals && !c->float_controls.round_even);
  ROW("dgpu", w.controls.denormBehaviorIndependence = VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_32_BIT_ONLY, c->float_controls.denormals == 32);
  ROW("dgpu", w.controls.denormBehaviorIndependence = VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_NONE, c->float_controls.denormals == 0);
  ROW("dgpu", w.controls.roundingModeIndependence = VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_NONE, c->float_controls.round_even == ALL);
}

static void test_limits(void) {
  ROW("dgpu", (void)0, w.p.max_bindings == VK_MAX_BINDINGS && w.p.max_scalar_bytes == 128 && c->push_bytes == 128 && w.p.max_items == 1024);
  ROW("dgpu", (void)0,
      w.p.max_local_bytes == 49152 && w.p.max_buffer_bytes == 0xffffffff && w.p.max_texels == 1 << 27 && w.p.offset_align == 16);
  ROW("dgpu", w.limits.maxPerStageDescriptorStorageBuffers = 4, w.p.max_bindings == 4);
  ROW("dgpu", w.limits.maxPerStageResources = 7, w.p.max_bindings == 7);
  ROW("dgpu", w.limits.maxPushConstantsSize = 128, w.p.max_scalar_bytes == 124 && c->push_bytes == 124);
  ROW("dgpu", w.limits.maxComputeWorkGroupSize[0] = 128, w.p.max_items == 128);
  ROW("dgpu", w.limits.maxComputeWorkGroupInvocations = 256, w.p.max_items == 256);
  ROW("dgpu", w.facts.max_allocation = 1 << 30, w.p.max_buffer_bytes == 1 << 30);
  ROW("dgpu", w.limits.minStorageBufferOffsetAlignment = 256, w.p.offset_align == 256);
  ROW("dgpu", w.limits.minTexelBufferOffsetAlignment = 64, w.p.offset_align == 64);
  ROW("dgpu", w.limits.minStorageBufferOffsetAlignment = w.limits.minTexelBufferOffsetAlignment = 4, w.p.offset_align == 16);
  ROW("dgpu", w.limits.maxComputeWorkGroupCount[1] = 99, w.p.max_grid[0] == 65535 && w.p.max_grid[1] == 99 && w.p.max_grid[2] == 65535);
}

static void test_names(void) {
  static const struct {
    const char *device, *driver;
    VkPhysicalDeviceType type;
    const char *profile;
  } rows[] = {{"llvmpipe (LLVM 15.0.6, 256 bits)", "Mesa", VK_PHYSICAL_DEVICE_TYPE_CPU, "lavapipe"},
              {"SwiftShader Device", "SwiftShader driver", VK_PHYSICAL_DEVICE_TYPE_CPU, "swiftshader"},
              {"another CPU", "", VK_PHYSICAL_DEVICE_TYPE_CPU, "lavapipe"},
              {"NVIDIA H100 80GB HBM3", "NVIDIA", VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU, "h100"},
              {"NVIDIA H200", "NVIDIA", VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU, "h200"},
              {"Mali-G715", "", VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU, "mobile"},
              {"an unknown name", "Qualcomm Adreno driver", VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU, "mobile"},
              {"Intel(R) UHD", "", VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU, "igpu"},
              {"AMD Radeon", "radv", VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU, "dgpu"},
              {"", "", VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU, "dgpu"}};
  for (size_t i = 0; i < IR_COUNT(rows); i++) {
    const char *name = vk_profile_name(rows[i].device, rows[i].driver, rows[i].type);
    tap_result(!strcmp(name, rows[i].profile), __FILE__, __LINE__, "\"%s\" of \"%s\" begins from %s", rows[i].device, rows[i].driver, name);
  }
}

/* ---- features by version and by extension ---- */

static struct {
  uint32_t loader, version;
  bool extensions, refuses; /* it lists all that are asked about; none is */
} fake;
static const char *const known[] = {VK_KHR_8BIT_STORAGE_EXTENSION_NAME,
                                    VK_KHR_SHADER_FLOAT16_INT8_EXTENSION_NAME,
                                    VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME,
                                    VK_KHR_SHADER_SUBGROUP_EXTENDED_TYPES_EXTENSION_NAME,
                                    VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME,
                                    VK_KHR_VULKAN_MEMORY_MODEL_EXTENSION_NAME,
                                    VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME,
                                    VK_UNITS_EXTENSION,
                                    VK_KHR_SHADER_FLOAT_CONTROLS_EXTENSION_NAME};

static VKAPI_ATTR void VKAPI_CALL get_properties(VkPhysicalDevice d, VkPhysicalDeviceProperties2 *p) {
  (void)d;
  p->properties.apiVersion = fake.version;
}
static VKAPI_ATTR VkResult VKAPI_CALL get_version(uint32_t *version) {
  *version = fake.loader;
  return VK_SUCCESS;
}
static VKAPI_ATTR VkResult VKAPI_CALL get_extensions(VkPhysicalDevice d, const char *layer, uint32_t *count, VkExtensionProperties *out) {
  (void)d, (void)layer;
  if (fake.refuses) return VK_ERROR_OUT_OF_HOST_MEMORY;
  *count = fake.extensions ? IR_COUNT(known) : 0;
  for (uint32_t i = 0; out && i < *count; i++) strcpy(out[i].extensionName, known[i]);
  return VK_SUCCESS;
}
/* Every feature of every struct in the chain is there. */
static VKAPI_ATTR void VKAPI_CALL get_features(VkPhysicalDevice d, VkPhysicalDeviceFeatures2 *f) {
  (void)d;
  VkBool32 *core = (VkBool32 *)(void *)&f->features;
  for (size_t i = 0; i < sizeof f->features / sizeof *core; i++) core[i] = VK_TRUE;
  for (VkBaseOutStructure *s = f->pNext; s; s = s->pNext) {
    void *at = s;
    switch ((int)s->sType) {
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES:
      ((VkPhysicalDevice16BitStorageFeatures *)at)->storageBuffer16BitAccess = 1;
      break;
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_8BIT_STORAGE_FEATURES:
      ((VkPhysicalDevice8BitStorageFeatures *)at)->storageBuffer8BitAccess = 1;
      break;
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_MEMORY_MODEL_FEATURES: {
      VkPhysicalDeviceVulkanMemoryModelFeatures *m = at;
      m->vulkanMemoryModel = m->vulkanMemoryModelDeviceScope = m->vulkanMemoryModelAvailabilityVisibilityChains = 1;
      break;
    }
    case VK_UNITS_FEATURES: ((vk_units_features *)at)->cooperative_matrix = ((vk_units_features *)at)->robust_buffer_access = 1; break;
    default: break;
    }
  }
}

static void query(uint32_t loader, uint32_t version, bool extensions, bool for_layers, vk_features *out) {
  static const vk_api api = {.vkGetPhysicalDeviceProperties2 = get_properties,
                             .vkEnumerateInstanceVersion = get_version,
                             .vkEnumerateDeviceExtensionProperties = get_extensions,
                             .vkGetPhysicalDeviceFeatures2 = get_features};
  fake.loader = loader, fake.version = version, fake.extensions = extensions;
  vk_query_features(&api, ir_host_malloc(), VK_NULL_HANDLE, for_layers, out);
}

static bool asks_for(const vk_features *f, const char *name) {
  for (uint32_t i = 0; i < f->extension_count; i++)
    if (!strcmp(f->extensions[i], name)) return true;
  return false;
}

static void test_features(void) {
  const uint32_t v11 = VK_API_VERSION_1_1, v12 = VK_API_VERSION_1_2, v13 = VK_API_VERSION_1_3;
  static vk_features f;
  query(v13, v11, false, false, &f);
  tap_result(f.storage16.storageBuffer16BitAccess && !f.storage8.storageBuffer8BitAccess && !f.units.cooperative_matrix &&
                 !f.extension_count && !f.float_controls,
             __FILE__, __LINE__, "1.1 without extensions has 16 bits alone");
  query(v13, v11, true, false, &f);
  tap_result(f.storage8.storageBuffer8BitAccess && f.units.cooperative_matrix && f.float_controls && f.extension_count == IR_COUNT(known),
             __FILE__, __LINE__, "1.1 with all extensions asks for each (%u)", f.extension_count);
  query(v13, v12, true, false, &f);
  tap_result(f.storage8.storageBuffer8BitAccess && f.float_controls && !asks_for(&f, VK_KHR_8BIT_STORAGE_EXTENSION_NAME) &&
                 !asks_for(&f, VK_KHR_SHADER_FLOAT_CONTROLS_EXTENSION_NAME) && asks_for(&f, VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME) &&
                 asks_for(&f, VK_UNITS_EXTENSION),
             __FILE__, __LINE__, "1.2 has its own and asks for those of 1.3 (%u)", f.extension_count);
  query(v13, v13, false, false, &f);
  tap_result(f.storage8.storageBuffer8BitAccess && f.float_controls && !f.extension_count, __FILE__, __LINE__, "1.3 asks for none");
  query(v11, v13, false, false, &f);
  tap_result(!f.storage8.storageBuffer8BitAccess && !f.float_controls, __FILE__, __LINE__, "a loader of 1.1 makes it one of 1.1");
  fake.refuses = true;
  query(v13, v11, true, false, &f);
  tap_result(!f.extension_count && f.storage16.storageBuffer16BitAccess, __FILE__, __LINE__, "a driver that lists no extensions has none");
  fake.refuses = false;
}

static void test_enabled(void) {
  const uint32_t v13 = VK_API_VERSION_1_3;
  static vk_features f;
  query(v13, v13, true, false, &f);
  const VkPhysicalDeviceFeatures *c = &f.core.features;
  tap_result(c->robustBufferAccess && c->shaderInt16 && c->shaderInt64 && c->shaderFloat64 && !c->geometryShader &&
                 !c->fragmentStoresAndAtomics && !c->vertexPipelineStoresAndAtomics,
             __FILE__, __LINE__, "of core features those alone that kernels use");
  tap_result(f.memory_model.vulkanMemoryModel && f.memory_model.vulkanMemoryModelDeviceScope &&
                 !f.memory_model.vulkanMemoryModelAvailabilityVisibilityChains && !f.units.robust_buffer_access,
             __FILE__, __LINE__, "the memory model beside matrices");
  query(v13, v13, false, false, &f);
  tap_result(!f.memory_model.vulkanMemoryModel && !f.memory_model.vulkanMemoryModelDeviceScope, __FILE__, __LINE__, "and not without them");
  query(v13, v13, false, true, &f);
  tap_result(c->fragmentStoresAndAtomics && c->vertexPipelineStoresAndAtomics, __FILE__, __LINE__,
             "for the validation layers what they ask for");
}

/* ---- kinds of memory ---- */

enum { LOCAL = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT, HOST = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT };
enum { CACHED = HOST | VK_MEMORY_PROPERTY_HOST_CACHED_BIT };
static VkPhysicalDeviceMemoryProperties kinds;
static VKAPI_ATTR void VKAPI_CALL get_memory(VkPhysicalDevice d, VkPhysicalDeviceMemoryProperties *p) {
  (void)d;
  *p = kinds;
}

static void test_memory(void) {
  static const struct {
    VkMemoryPropertyFlags types[3];
    uint32_t allowed;
    bool for_host;
    int chosen; /* -1: none */
  } rows[] = {
      {{HOST, LOCAL, CACHED}, 7, false, 1},          {{HOST, LOCAL, CACHED}, 7, true, 2}, {{HOST, LOCAL, CACHED | LOCAL}, 7, true, 2},
      {{CACHED, LOCAL, CACHED | LOCAL}, 7, true, 2}, {{HOST, LOCAL, 0}, 7, true, 0},      {{HOST, LOCAL, CACHED}, 5, false, 0},
      {{HOST, LOCAL, CACHED}, 2, true, -1},          {{LOCAL, HOST, CACHED}, 6, true, 2}, {{LOCAL, HOST, CACHED}, 3, true, 1},
      {{HOST, LOCAL, CACHED}, 8, false, -1}};
  static vk_instance instance = {.api = {.vkGetPhysicalDeviceMemoryProperties = get_memory}};
  static vk_device device = {.instance = &instance};
  for (size_t i = 0; i < IR_COUNT(rows); i++) {
    uint32_t type = 99;
    kinds.memoryTypeCount = 3;
    for (int k = 0; k < 3; k++) kinds.memoryTypes[k].propertyFlags = rows[i].types[k];
    const bool found = vk_choose_type(&device, rows[i].allowed, rows[i].for_host, &type);
    tap_result(found == (rows[i].chosen >= 0) && (!found || (int)type == rows[i].chosen), __FILE__, __LINE__,
               "of %u %u %u, %u allowed, %s: %d", rows[i].types[0], rows[i].types[1], rows[i].types[2], rows[i].allowed,
               rows[i].for_host ? "for the host" : "for kernels", found ? (int)type : -1);
  }
}

/* ---- products of matrix units ---- */

enum { F16 = 0, F32 = 1, I8 = 3, I32 = 5, U8 = 7, U32 = 9, SUBGROUP = 3, WORKGROUP = 2 }; /* of VkComponentTypeKHR and VkScopeKHR */
static struct {
  vk_units_properties rows[8];
  uint32_t count, listed; /* how often it was asked */
  VkResult answer;
} units;
static VKAPI_ATTR VkResult VKAPI_CALL list_units(VkPhysicalDevice d, uint32_t *count, vk_units_properties *out) {
  (void)d;
  units.listed++;
  if (!out) *count = units.count;
  for (uint32_t i = 0; out && i < *count; i++) {
    if (out[i].type != VK_UNITS_PROPERTIES) return VK_ERROR_UNKNOWN;
    out[i] = units.rows[i];
  }
  return out || units.answer != VK_ERROR_UNKNOWN ? units.answer : VK_SUCCESS;
}
static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL get_list(VkInstance i, const char *name) {
  (void)i;
  return strcmp(name, "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR") == 0 ? (PFN_vkVoidFunction)list_units : NULL;
}
static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL get_nothing(VkInstance i, const char *name) {
  (void)i, (void)name;
  return NULL;
}

static bool is_size(kir_mma m, int a, int b, int c) { return m.m == a && m.n == b && m.k == c; }

static void test_products(void) {
  static const vk_units_properties rows[] = {
      {.m = 16, .n = 8, .k = 8, .a = F16, .b = F16, .c = F32, .result = F32, .scope = SUBGROUP},
      {.m = 16, .n = 8, .k = 16, .a = F16, .b = F16, .c = F32, .result = F32, .scope = SUBGROUP},
      {.m = 16, .n = 16, .k = 16, .a = F16, .b = F16, .c = F16, .result = F16, .scope = SUBGROUP},
      {.m = 64, .n = 64, .k = 16, .a = F16, .b = F16, .c = F32, .result = F32, .scope = WORKGROUP},
      {.m = 255, .n = 8, .k = 16, .a = F16, .b = F16, .c = F32, .result = F32, .scope = SUBGROUP},
      {.m = 16, .n = 16, .k = 32, .a = I8, .b = I8, .c = I32, .result = I32, .saturating = 1, .scope = SUBGROUP},
      {.m = 16, .n = 8, .k = 32, .a = U8, .b = U8, .c = U32, .result = U32, .scope = SUBGROUP},
      {.m = 16, .n = 8, .k = 32, .a = I8, .b = U8, .c = I32, .result = I32, .scope = SUBGROUP}};
  kir_mma out[KIR_MMA_TYPES];
  memcpy(units.rows, rows, sizeof rows);
  units.count = IR_COUNT(rows);
  vk_query_units(get_list, NULL, ir_host_malloc(), VK_NULL_HANDLE, out);
  tap_result(is_size(out[KIR_MMA_F16], 16, 8, 16), __FILE__, __LINE__, "of f16 the largest of a subgroup, in f32: %u x %u x %u",
             out[KIR_MMA_F16].m, out[KIR_MMA_F16].n, out[KIR_MMA_F16].k);
  tap_result(is_size(out[KIR_MMA_U8], 16, 8, 32) && !out[KIR_MMA_I8].m && !out[KIR_MMA_BF16].m, __FILE__, __LINE__,
             "none that saturates, none of two types");
  static const struct {
    uint32_t count, asked;
    VkResult answer;
    const char *what;
  } none[] = {{0, 1, VK_SUCCESS, "a driver lists none"},
              {8, 1, VK_ERROR_OUT_OF_HOST_MEMORY, "it fails"},
              {257, 1, VK_SUCCESS, "it lists more than anybody has"},
              {8, 2, VK_ERROR_UNKNOWN, "it fails the second time"}};
  for (size_t i = 0; i < IR_COUNT(none); i++) {
    units.count = none[i].count, units.answer = none[i].answer, units.listed = 0;
    memset(out, 1, sizeof out);
    vk_query_units(get_list, NULL, ir_host_malloc(), VK_NULL_HANDLE, out);
    tap_result(!out[KIR_MMA_F16].m && !out[KIR_MMA_U8].m && units.listed == none[i].asked, __FILE__, __LINE__, "no product where %s",
               none[i].what);
  }
  memset(out, 1, sizeof out);
  vk_query_units(get_nothing, NULL, ir_host_malloc(), VK_NULL_HANDLE, out);
  tap_result(!out[KIR_MMA_F16].m, __FILE__, __LINE__, "no product where a loader has no such function");
}

int main(void) {
  test_caps();
  test_subgroups();
  test_units();
  test_float_controls();
  test_limits();
  test_names();
  test_features();
  test_enabled();
  test_memory();
  test_products();
  return tap_done();
}
