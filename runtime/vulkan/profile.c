/* What a Vulkan device is: the optional features it has (queried, then enabled as they are), its limits, and the built-in profile it
   starts from. Nothing is assumed that was not asked. */
#include "runtime/rt_vulkan.h"

enum { VK_SCALAR_BYTES = 128 };

static const struct {
  const char *part, *profile;
} profiles[] = {
    {"llvmpipe", "lavapipe"},
    {"swiftshader", "swiftshader"},
    {"mali", "mobile"},
    {"adreno", "mobile"},
};

const char *vk_profile_name(const char *device, const char *driver, VkPhysicalDeviceType type) {
  for (uint32_t i = 0; i < IR_COUNT(profiles); i++) {
    if (rt_contains(device, profiles[i].part) || rt_contains(driver, profiles[i].part)) return profiles[i].profile;
  }
  switch (type) {
  case VK_PHYSICAL_DEVICE_TYPE_CPU: return "lavapipe";
  case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU: return "igpu";
  default: return rt_profile_of(device, "dgpu");
  }
}

/* ---- features ---- */

/* Puts a feature struct in the chain if the device has it, by core version or by extension, and asks for the extension where it must. */
static void add_feature(vk_features *features, void *feature, bool core, bool has_extension, const char *extension) {
  if (!core && !has_extension) return;
  VkBaseOutStructure *link = feature;
  link->pNext = features->core.pNext;
  features->core.pNext = feature;
  if (!core) features->extensions[features->extension_count++] = extension;
}

void vk_query_features(const vk_api *api, const snt_host_alloc *alloc, VkPhysicalDevice physical, bool for_layers, vk_features *out) {
  *out = (vk_features){
      .core = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2},
      .storage16 = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES},
      .storage8 = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_8BIT_STORAGE_FEATURES},
      .small = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES},
      .subgroup_size = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES},
      .subgroup_types = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_SUBGROUP_EXTENDED_TYPES_FEATURES},
      .memory_model = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_MEMORY_MODEL_FEATURES},
      .units = {.type = VK_UNITS_FEATURES},
      .dots = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES},
      .executables = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR},
  };
  VkPhysicalDeviceProperties2 properties = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};
  api->vkGetPhysicalDeviceProperties2(physical, &properties);
  uint32_t loader = VK_API_VERSION_1_1, device = properties.properties.apiVersion;
  api->vkEnumerateInstanceVersion(&loader);
  uint32_t version = loader < VK_API_VERSION_1_3 ? VK_API_VERSION_1_1 : device; /* what the instance was created for */
  bool is12 = version >= VK_API_VERSION_1_2, is13 = version >= VK_API_VERSION_1_3;
#define VK_HAS(name) vk_has_extension(api, alloc, physical, name)
  add_feature(out, &out->storage16, true, true, NULL);
  add_feature(out, &out->storage8, is12, VK_HAS(VK_KHR_8BIT_STORAGE_EXTENSION_NAME), VK_KHR_8BIT_STORAGE_EXTENSION_NAME);
  add_feature(out, &out->small, is12, VK_HAS(VK_KHR_SHADER_FLOAT16_INT8_EXTENSION_NAME), VK_KHR_SHADER_FLOAT16_INT8_EXTENSION_NAME);
  add_feature(out, &out->subgroup_size, is13, VK_HAS(VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME),
              VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME);
  add_feature(out, &out->subgroup_types, is12, VK_HAS(VK_KHR_SHADER_SUBGROUP_EXTENDED_TYPES_EXTENSION_NAME),
              VK_KHR_SHADER_SUBGROUP_EXTENDED_TYPES_EXTENSION_NAME);
  add_feature(out, &out->executables, false, VK_HAS(VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME),
              VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME);
  add_feature(out, &out->memory_model, is12, VK_HAS(VK_KHR_VULKAN_MEMORY_MODEL_EXTENSION_NAME), VK_KHR_VULKAN_MEMORY_MODEL_EXTENSION_NAME);
  add_feature(out, &out->dots, is13, VK_HAS(VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME),
              VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME);
  add_feature(out, &out->units, false, VK_HAS(VK_UNITS_EXTENSION), VK_UNITS_EXTENSION);
  out->float_controls = is12 || VK_HAS(VK_KHR_SHADER_FLOAT_CONTROLS_EXTENSION_NAME);
  if (out->float_controls && !is12) out->extensions[out->extension_count++] = VK_KHR_SHADER_FLOAT_CONTROLS_EXTENSION_NAME;
#undef VK_HAS
  api->vkGetPhysicalDeviceFeatures2(physical, &out->core);
  out->units.robust_buffer_access = false; /* fragments are of local memory */
  /* The memory model is for matrices alone: where it is on, atomics need the scope of a device. */
  VkPhysicalDeviceVulkanMemoryModelFeatures *model = &out->memory_model;
  const bool whole = out->units.cooperative_matrix && model->vulkanMemoryModel && model->vulkanMemoryModelDeviceScope;
  model->vulkanMemoryModel = model->vulkanMemoryModelDeviceScope = whole;
  model->vulkanMemoryModelAvailabilityVisibilityChains = false;
  const VkPhysicalDeviceFeatures had = out->core.features;
  out->core.features = (VkPhysicalDeviceFeatures){
      .robustBufferAccess = had.robustBufferAccess, /* reads outside a buffer are harmless, so kernels need not guard them */
      .shaderInt16 = had.shaderInt16,
      .shaderInt64 = had.shaderInt64,
      .shaderFloat64 = had.shaderFloat64,
      .vertexPipelineStoresAndAtomics = for_layers && had.vertexPipelineStoresAndAtomics, /* asked for by GPU-assisted validation */
      .fragmentStoresAndAtomics = for_layers && had.fragmentStoresAndAtomics,
  };
}

/* ---- the profile ---- */

/* Modules with matrices are in the Vulkan memory model, are run by whole subgroups, and have local arrays of what the matrices are of. */
static void take_units(const vk_facts *facts, kir_caps *caps) {
  const bool on = facts->features->units.cooperative_matrix && facts->features->memory_model.vulkanMemoryModel &&
                  facts->features->subgroup_size.computeFullSubgroups;
  memset(caps->mma, 0, sizeof caps->mma);
  if (on && caps->f16_storage) caps->mma[KIR_MMA_F16] = facts->mma[KIR_MMA_F16];
  if (on && caps->int8_storage) caps->mma[KIR_MMA_I8] = facts->mma[KIR_MMA_I8], caps->mma[KIR_MMA_U8] = facts->mma[KIR_MMA_U8];
}

static uint8_t widths(VkBool32 has16, VkBool32 has32, VkBool32 has64) { return (has16 ? 16 : 0) | (has32 ? 32 : 0) | (has64 ? 64 : 0); }

/* Widths that a device does not control apart are asked for together or not at all. */
static uint8_t together(uint8_t has, VkShaderFloatControlsIndependence apart) {
  const uint8_t others = 16 | 64, all = 32 | others;
  if (apart == VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_ALL || has == all) return has;
  return apart == VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_32_BIT_ONLY ? has & 32 : 0;
}

static kir_float_controls take_float_controls(const VkPhysicalDeviceFloatControlsProperties *p) {
  if (!p) return (kir_float_controls){0, 0, 0};
  return (kir_float_controls){
      .signed_zero = widths(p->shaderSignedZeroInfNanPreserveFloat16, p->shaderSignedZeroInfNanPreserveFloat32,
                            p->shaderSignedZeroInfNanPreserveFloat64),
      .denormals = together(widths(p->shaderDenormPreserveFloat16, p->shaderDenormPreserveFloat32, p->shaderDenormPreserveFloat64),
                            p->denormBehaviorIndependence),
      .round_even = together(widths(p->shaderRoundingModeRTEFloat16, p->shaderRoundingModeRTEFloat32, p->shaderRoundingModeRTEFloat64),
                             p->roundingModeIndependence)};
}

static void query_caps(const vk_features *features, const VkPhysicalDeviceSubgroupProperties *subgroups, bool cpu, kir_caps *caps) {
  const VkPhysicalDeviceFeatures *core = &features->core.features;
  const VkSubgroupFeatureFlags arithmetic = VK_SUBGROUP_FEATURE_ARITHMETIC_BIT | VK_SUBGROUP_FEATURE_SHUFFLE_BIT;
  bool storage16 = features->storage16.storageBuffer16BitAccess, storage8 = features->storage8.storageBuffer8BitAccess;
  caps->target = "spirv";
  caps->max_lanes = 4, caps->vector_memory = 16;
  caps->f16_arithmetic = features->small.shaderFloat16;
  caps->f16_storage = storage16 && features->small.shaderFloat16;
  caps->int16_storage = caps->bf16_storage = storage16 && core->shaderInt16;
  caps->int8_storage = storage8 && features->small.shaderInt8;
  caps->int64 = core->shaderInt64;
  caps->f64 = core->shaderFloat64;
  caps->subgroups = (subgroups->supportedStages & VK_SHADER_STAGE_COMPUTE_BIT) &&
                    (subgroups->supportedOperations & VK_SUBGROUP_FEATURE_BASIC_BIT);
  caps->subgroup_arithmetic = caps->subgroups && (subgroups->supportedOperations & arithmetic) == arithmetic;
  /* 2.5 ULP is all that Vulkan promises; how a processor divides its driver's profile knows. */
  if (!cpu) caps->exact_div = caps->exact_sqrt = false;
  caps->prefetch = caps->stream = caps->async_copy = caps->atomics_f32 = caps->keeps_math = false;
  caps->texel = caps->images = caps->nan_unsafe = true;
  caps->oob_zero = core->robustBufferAccess; /* outside: zero or something else of the buffer; whoever reads there selects afterwards */
}

static uint32_t larger(uint64_t a, uint64_t b) { return (uint32_t)(a > b ? a : b); }
static uint64_t smaller_bytes(uint64_t a, uint64_t b) { return a < b ? a : b; }
static uint32_t smaller(uint64_t a, uint64_t b) { return (uint32_t)(a < b ? a : b); }

static void fill_limits(const vk_facts *facts, cost_profile *profile) {
  const VkPhysicalDeviceLimits *limits = facts->limits;
  uint32_t align = larger(limits->minStorageBufferOffsetAlignment, limits->minTexelBufferOffsetAlignment);
  uint32_t bindings = smaller(limits->maxPerStageDescriptorStorageBuffers, limits->maxPerStageResources);
  profile->max_bindings = smaller(bindings, VK_MAX_BINDINGS);
  profile->max_scalar_bytes = smaller(limits->maxPushConstantsSize - 4, VK_SCALAR_BYTES); /* the group count comes behind */
  profile->caps.push_bytes = profile->max_scalar_bytes;
  profile->max_items = smaller(limits->maxComputeWorkGroupInvocations, limits->maxComputeWorkGroupSize[0]);
  profile->max_local_bytes = limits->maxComputeSharedMemorySize;
  profile->max_buffer_bytes = smaller_bytes(limits->maxStorageBufferRange, facts->max_allocation);
  profile->max_texels = limits->maxTexelBufferElements;
  profile->offset_align = align > 16 ? align : 16;
  for (int axis = 0; axis < 3; axis++) profile->max_grid[axis] = limits->maxComputeWorkGroupCount[axis];
}

/* The size that kernels may name: subgroups of it are had whole, and where sizes vary it is that of pipelines that name none, which can be asked for. */
static uint8_t named_subgroup(const vk_facts *facts, uint32_t items) {
  const VkPhysicalDeviceSubgroupSizeControlProperties *sizes = facts->sizes;
  const uint32_t size = facts->subgroups->subgroupSize;
  const bool sure = sizes->minSubgroupSize == sizes->maxSubgroupSize || (sizes->requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT &&
                                                                         (uint64_t)size * sizes->maxComputeWorkgroupSubgroups >= items);
  return facts->features->subgroup_size.computeFullSubgroups && sure ? (uint8_t)size : 0;
}

snt_result vk_fill_profile(const vk_facts *facts, const char *base, cost_profile *profile, snt_diag *diag) {
  SNT_TRY(rt_base_profile(profile, base, diag));
  rt_copy_text(profile->target, sizeof profile->target, "spirv");
  query_caps(facts->features, facts->subgroups, facts->cpu, &profile->caps);
  take_units(facts, &profile->caps);
  profile->caps.dot4 = facts->fast_dots;
  profile->caps.float_controls = take_float_controls(facts->float_controls);
  fill_limits(facts, profile);
  profile->subgroup_min = facts->sizes->minSubgroupSize, profile->subgroup_max = facts->sizes->maxSubgroupSize;
  profile->subgroup_asked = (facts->sizes->requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0;
  profile->caps.subgroup_size = named_subgroup(facts, profile->max_items);
  if (facts->cpu && profile->simd == COST_SIMD_LANES) profile->lanes = profile->subgroup_max; /* work-items are its SIMD lanes */
  return SNT_OK;
}

snt_result vk_query_profile(vk_device *device, const char *base, snt_diag *diag) {
  const vk_api *api = &device->instance->api;
  VkPhysicalDeviceSubgroupSizeControlProperties sizes = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES};
  VkPhysicalDeviceSubgroupProperties subgroups = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES};
  VkPhysicalDeviceProperties2 properties = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = &subgroups};
  VkPhysicalDeviceFloatControlsProperties controls = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FLOAT_CONTROLS_PROPERTIES,
                                                      .pNext = &subgroups};
  if (device->features.subgroup_size.subgroupSizeControl) subgroups.pNext = &sizes;
  if (device->features.float_controls) properties.pNext = &controls;
  VkPhysicalDeviceShaderIntegerDotProductProperties dots = {
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_PROPERTIES, .pNext = properties.pNext};
  if (device->features.dots.shaderIntegerDotProduct) properties.pNext = &dots;
  api->vkGetPhysicalDeviceProperties2(device->physical, &properties);
  if (!device->features.subgroup_size.subgroupSizeControl) sizes.minSubgroupSize = sizes.maxSubgroupSize = subgroups.subgroupSize;
  vk_facts facts = {.features = &device->features,
                    .subgroups = &subgroups,
                    .limits = &properties.properties.limits,
                    .sizes = &sizes,
                    .max_allocation = device->max_allocation,
                    .cpu = device->base.cpu,
                    .fast_dots = dots.integerDotProduct4x8BitPackedMixedSignednessAccelerated,
                    .float_controls = device->features.float_controls ? &controls : NULL};
  if (device->features.units.cooperative_matrix) /* loaders have the function also where the driver lacks it, and then call nothing */
    vk_query_units(device->instance->get, device->instance->handle, device->base.alloc, device->physical, facts.mma);
  return vk_fill_profile(&facts, base, &device->base.profile, diag);
}
