/* The features that programs can use: where each stands in Vulkan's structs, which extension brings it, and the two questions about them. */
#include "door/door.h"
#include "runtime/rt_vulkan.h"

/* Tables without pointers: libsinter-runtime has little room. */
enum {
  NO_EXTENSION,
  STORAGE_8BIT,
  FLOAT16_INT8,
  SUBGROUP_TYPES,
  SUBGROUP_SIZES,
  CACHE_CONTROL,
  ADDRESSES,
  MODEL,
  UNITS,
  PUSHED,
  CONTROLS,
  DOTS
};
static const char *const extensions[] = {
    [STORAGE_8BIT] = VK_KHR_8BIT_STORAGE_EXTENSION_NAME,
    [FLOAT16_INT8] = VK_KHR_SHADER_FLOAT16_INT8_EXTENSION_NAME,
    [SUBGROUP_TYPES] = VK_KHR_SHADER_SUBGROUP_EXTENDED_TYPES_EXTENSION_NAME,
    [SUBGROUP_SIZES] = VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME,
    [CACHE_CONTROL] = VK_EXT_PIPELINE_CREATION_CACHE_CONTROL_EXTENSION_NAME,
    [ADDRESSES] = VK_KHR_BUFFER_DEVICE_ADDRESS_EXTENSION_NAME,
    [MODEL] = VK_KHR_VULKAN_MEMORY_MODEL_EXTENSION_NAME,
    [UNITS] = VK_UNITS_EXTENSION,
    [PUSHED] = VK_KHR_PUSH_DESCRIPTOR_EXTENSION_NAME,
    [DOTS] = VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME,
    [CONTROLS] = VK_KHR_SHADER_FLOAT_CONTROLS_EXTENSION_NAME,
};
enum { NEVER = 255, NOT_CORE = UINT16_MAX };
typedef struct feature_row {
  uint32_t bit, types[2]; /* SNT_VK_FEATURE_; its own struct, and that of the version that took it in (0: none) */
  uint16_t core, at[2];   /* where it stands in VkPhysicalDeviceFeatures (NOT_CORE), in the two structs */
  uint8_t since;          /* version 1.since has it without an extension */
  uint8_t extension;
} feature_row;

static bool has_version(uint32_t version, uint8_t since) { return since != NEVER && version >= VK_MAKE_API_VERSION(0, 1, since, 0); }

#define CORE(bit, name) \
  { SNT_VK_FEATURE_##bit, {0, 0}, offsetof(VkPhysicalDeviceFeatures, name), {0, 0}, 0, NO_EXTENSION }
/* A flag of a feature struct of its own, which version 1.`minor` took in. */
#define OWN(bit, TYPE, T, name, minor, extension)                                                                                       \
  {                                                                                                                                     \
    SNT_VK_FEATURE_##bit,                                                                                                               \
        {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_##TYPE##_FEATURES, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_##minor##_FEATURES}, NOT_CORE, \
        {offsetof(VkPhysicalDevice##T##Features, name), offsetof(VkPhysicalDeviceVulkan1##minor##Features, name)}, minor, extension     \
  }
// clang-format off
static const feature_row rows[] = {
    OWN(STORAGE16, 16BIT_STORAGE, 16BitStorage, storageBuffer16BitAccess, 1, NO_EXTENSION),
    OWN(STORAGE8, 8BIT_STORAGE, 8BitStorage, storageBuffer8BitAccess, 2, STORAGE_8BIT),
    OWN(FLOAT16, SHADER_FLOAT16_INT8, ShaderFloat16Int8, shaderFloat16, 2, FLOAT16_INT8),
    OWN(INT8, SHADER_FLOAT16_INT8, ShaderFloat16Int8, shaderInt8, 2, FLOAT16_INT8),
    OWN(SUBGROUP_TYPES, SHADER_SUBGROUP_EXTENDED_TYPES, ShaderSubgroupExtendedTypes, shaderSubgroupExtendedTypes, 2, SUBGROUP_TYPES),
    OWN(SUBGROUP_SIZE, SUBGROUP_SIZE_CONTROL, SubgroupSizeControl, subgroupSizeControl, 3, SUBGROUP_SIZES),
    OWN(FULL_SUBGROUPS, SUBGROUP_SIZE_CONTROL, SubgroupSizeControl, computeFullSubgroups, 3, SUBGROUP_SIZES),
    OWN(PIPELINE_CACHE_CONTROL, PIPELINE_CREATION_CACHE_CONTROL, PipelineCreationCacheControl, pipelineCreationCacheControl, 3, CACHE_CONTROL),
    OWN(BUFFER_ADDRESS, BUFFER_DEVICE_ADDRESS, BufferDeviceAddress, bufferDeviceAddress, 2, ADDRESSES),
    OWN(MEMORY_MODEL, VULKAN_MEMORY_MODEL, VulkanMemoryModel, vulkanMemoryModel, 2, MODEL),
    OWN(MEMORY_MODEL_DEVICE, VULKAN_MEMORY_MODEL, VulkanMemoryModel, vulkanMemoryModelDeviceScope, 2, MODEL),
    OWN(INTEGER_DOT_PRODUCT, SHADER_INTEGER_DOT_PRODUCT, ShaderIntegerDotProduct, shaderIntegerDotProduct, 3, DOTS),
    {SNT_VK_FEATURE_COOPERATIVE_MATRIX, {VK_UNITS_FEATURES, 0}, NOT_CORE, {offsetof(vk_units_features, cooperative_matrix), 0}, NEVER, UNITS},
    CORE(INT16, shaderInt16),
    CORE(INT64, shaderInt64),
    CORE(FLOAT64, shaderFloat64),
    CORE(IMAGE_FORMATS, shaderStorageImageExtendedFormats),
    CORE(IMAGE_WITHOUT_FORMAT, shaderStorageImageWriteWithoutFormat),
};
// clang-format on

/* What an extension brings without a feature. */
static const struct {
  uint32_t bit;
  uint8_t since, extension;
} plain_rows[] = {{SNT_VK_FEATURE_PUSH_DESCRIPTORS, NEVER, PUSHED}, {SNT_VK_FEATURE_FLOAT_CONTROLS, 2, CONTROLS}};

static VkBool32 *flag_in(const void *block, size_t offset) { return (VkBool32 *)(uintptr_t)((const char *)block + offset); }

/* The flag's place in a chain; null: its struct is not there. */
static VkBool32 *find_flag(const feature_row *row, const VkPhysicalDeviceFeatures *core, const void *chain) {
  if (row->core != NOT_CORE && core) return flag_in(core, row->core);
  for (const VkBaseInStructure *s = chain; s; s = s->pNext) {
    if (row->core != NOT_CORE && s->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2)
      return flag_in(&((const VkPhysicalDeviceFeatures2 *)(const void *)s)->features, row->core);
    for (uint32_t i = 0; i < IR_COUNT(row->types); i++)
      if (row->types[i] && (uint32_t)s->sType == row->types[i]) return flag_in(s, row->at[i]);
  }
  return NULL;
}

uint64_t door_features_of_chain(const VkPhysicalDeviceFeatures *core, const void *chain) {
  uint64_t on = 0;
  for (uint32_t i = 0; i < IR_COUNT(rows); i++) {
    const VkBool32 *flag = find_flag(&rows[i], core, chain);
    if (flag && *flag) on |= rows[i].bit;
  }
  return on;
}

uint64_t door_features_of_extensions(uint32_t version, uint32_t count, const char *const *names) {
  uint64_t on = 0;
  for (uint32_t r = 0; r < IR_COUNT(plain_rows); r++) {
    if (has_version(version, plain_rows[r].since)) on |= plain_rows[r].bit;
    for (uint32_t i = 0; names && i < count; i++)
      if (!strcmp(names[i], extensions[plain_rows[r].extension])) on |= plain_rows[r].bit;
  }
  return on;
}

void door_fill_features(uint64_t on, void *to) {
  vk_features *f = to;
  *f = (vk_features){.storage16.storageBuffer16BitAccess = (on & SNT_VK_FEATURE_STORAGE16) != 0,
                     .storage8.storageBuffer8BitAccess = (on & SNT_VK_FEATURE_STORAGE8) != 0,
                     .small.shaderFloat16 = (on & SNT_VK_FEATURE_FLOAT16) != 0,
                     .small.shaderInt8 = (on & SNT_VK_FEATURE_INT8) != 0,
                     .subgroup_size.subgroupSizeControl = (on & SNT_VK_FEATURE_SUBGROUP_SIZE) != 0,
                     .subgroup_size.computeFullSubgroups = (on & SNT_VK_FEATURE_FULL_SUBGROUPS) != 0,
                     .memory_model.vulkanMemoryModel = (on & SNT_VK_FEATURE_MEMORY_MODEL) != 0,
                     .units.cooperative_matrix = (on & SNT_VK_FEATURE_COOPERATIVE_MATRIX) != 0,
                     .subgroup_types.shaderSubgroupExtendedTypes = (on & SNT_VK_FEATURE_SUBGROUP_TYPES) != 0};
  f->float_controls = (on & SNT_VK_FEATURE_FLOAT_CONTROLS) != 0;
  f->core.features.shaderInt16 = (on & SNT_VK_FEATURE_INT16) != 0;
  f->core.features.shaderInt64 = (on & SNT_VK_FEATURE_INT64) != 0;
  f->core.features.shaderFloat64 = (on & SNT_VK_FEATURE_FLOAT64) != 0;
}

/* ---- the public two ---- */

snt_result snt_vk_merge_features(uint64_t wish, VkPhysicalDeviceFeatures2 *chain, uint64_t *granted) {
  if (!chain) return SNT_E_ARG;
  for (uint32_t i = 0; i < IR_COUNT(rows); i++) {
    VkBool32 *flag = find_flag(&rows[i], NULL, chain);
    if (flag && wish & rows[i].bit) *flag = VK_TRUE;
  }
  if (granted) *granted = door_features_of_chain(NULL, chain) & wish;
  return SNT_OK;
}

enum { MAX_EXTENSIONS = 512 };
typedef struct wisher {
  VkExtensionProperties *extensions;
  uint32_t count;
} wisher;

static bool has_extension(const wisher *w, uint8_t which) {
  const char *name = extensions[which];
  for (uint32_t i = 0; name && i < w->count; i++)
    if (!strcmp(w->extensions[i].extensionName, name)) return true;
  return false;
}

static void wish_extension(snt_vk_wishlist *out, uint8_t which) {
  const char *name = extensions[which];
  for (uint32_t i = 0; i < out->extension_count; i++)
    if (!strcmp(out->extensions[i], name)) return;
  if (out->extension_count < IR_COUNT(out->extensions)) out->extensions[out->extension_count++] = name;
}

/* What matrix units need beside types and whole subgroups, which are of use alone: all of it, or there is no use for any. */
static const uint64_t matrices = SNT_VK_FEATURE_COOPERATIVE_MATRIX | SNT_VK_FEATURE_MEMORY_MODEL | SNT_VK_FEATURE_MEMORY_MODEL_DEVICE;

/* The structs of the extensions and versions that the device has; others must not be in the chain. */
typedef struct own_features {
  VkPhysicalDevice16BitStorageFeatures storage16;
  VkPhysicalDevice8BitStorageFeatures storage8;
  VkPhysicalDeviceShaderFloat16Int8Features small;
  VkPhysicalDeviceShaderSubgroupExtendedTypesFeatures types;
  VkPhysicalDeviceSubgroupSizeControlFeatures size;
  VkPhysicalDevicePipelineCreationCacheControlFeatures cache;
  VkPhysicalDeviceBufferDeviceAddressFeatures address;
  VkPhysicalDeviceVulkanMemoryModelFeatures model;
  VkPhysicalDeviceShaderIntegerDotProductFeatures dots;
  vk_units_features units;
} own_features;
static const struct {
  uint32_t type;
  uint16_t at;
} structs[] = {
    {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES, offsetof(own_features, storage16)},
    {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_8BIT_STORAGE_FEATURES, offsetof(own_features, storage8)},
    {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES, offsetof(own_features, small)},
    {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_SUBGROUP_EXTENDED_TYPES_FEATURES, offsetof(own_features, types)},
    {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES, offsetof(own_features, size)},
    {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_CREATION_CACHE_CONTROL_FEATURES, offsetof(own_features, cache)},
    {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_BUFFER_DEVICE_ADDRESS_FEATURES, offsetof(own_features, address)},
    {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_MEMORY_MODEL_FEATURES, offsetof(own_features, model)},
    {VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_FEATURES, offsetof(own_features, dots)},
    {VK_UNITS_FEATURES, offsetof(own_features, units)},
};

static uint64_t query_features(PFN_vkGetPhysicalDeviceFeatures2 query, VkPhysicalDevice physical, const wisher *w, uint32_t version) {
  own_features own;
  VkPhysicalDeviceFeatures2 features = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};
  memset(&own, 0, sizeof own);
  for (uint32_t s = 0; s < IR_COUNT(structs); s++)
    for (uint32_t i = 0; i < IR_COUNT(rows); i++) {
      if (rows[i].types[0] != structs[s].type) continue;
      if (!has_version(version, rows[i].since) && !has_extension(w, rows[i].extension)) break;
      VkBaseOutStructure *link = (VkBaseOutStructure *)(void *)((char *)&own + structs[s].at);
      link->sType = (VkStructureType)structs[s].type;
      link->pNext = features.pNext;
      features.pNext = link;
      break;
    }
  query(physical, &features);
  const uint64_t has = door_features_of_chain(NULL, &features);
  const bool whole = !(~has & (matrices | SNT_VK_FEATURE_FULL_SUBGROUPS));
  return whole ? has : has & ~matrices;
}

snt_result snt_vk_query_wishlist(PFN_vkGetInstanceProcAddr get, VkInstance instance, VkPhysicalDevice physical, snt_vk_wishlist *out) {
  if (!get || !instance || !physical || !out) return SNT_E_ARG;
  if (out->head.type != SNT_TYPE_vk_wishlist || out->head.size < sizeof *out || out->head.next) return SNT_E_STRUCT;
  const PFN_vkGetPhysicalDeviceFeatures2 features = (PFN_vkGetPhysicalDeviceFeatures2)get(instance, "vkGetPhysicalDeviceFeatures2");
  const PFN_vkGetPhysicalDeviceProperties properties = (PFN_vkGetPhysicalDeviceProperties)get(instance, "vkGetPhysicalDeviceProperties");
  const PFN_vkEnumerateDeviceExtensionProperties list = (PFN_vkEnumerateDeviceExtensionProperties)get(
      instance, "vkEnumerateDeviceExtensionProperties");
  if (!features || !properties || !list) return SNT_E_UNSUPPORTED;
  VkPhysicalDeviceProperties plain;
  wisher w = {NULL, 0};
  properties(physical, &plain);
  if (plain.apiVersion < VK_API_VERSION_1_1) return SNT_E_UNSUPPORTED;
  const snt_host_alloc *alloc = ir_host_malloc(); /* there is no context yet; given back below */
  uint32_t room = 0;
  if (list(physical, NULL, &room, NULL) != VK_SUCCESS) return SNT_E_BACKEND;
  if (room > MAX_EXTENSIONS) room = MAX_EXTENSIONS;
  const size_t bytes = (room + 1) * sizeof *w.extensions;
  w.extensions = alloc->acquire(alloc->user, bytes, 16, 0);
  if (!w.extensions) return SNT_E_HOST_MEM;
  w.count = room;
  const VkResult code = list(physical, NULL, &w.count, w.extensions);
  const snt_out_head head = out->head;
  *out = (snt_vk_wishlist){.head = head, .min_api_version = VK_API_VERSION_1_1};
  if (code == VK_SUCCESS || code == VK_INCOMPLETE) out->features = query_features(features, physical, &w, plain.apiVersion);
  for (uint32_t i = 0; i < IR_COUNT(rows); i++)
    if (out->features & rows[i].bit && has_extension(&w, rows[i].extension)) wish_extension(out, rows[i].extension);
  for (uint32_t r = 0; r < IR_COUNT(plain_rows); r++) {
    const bool extension = has_extension(&w, plain_rows[r].extension);
    if (extension || has_version(plain.apiVersion, plain_rows[r].since)) out->features |= plain_rows[r].bit;
    if (extension) wish_extension(out, plain_rows[r].extension);
  }
  alloc->release(alloc->user, w.extensions, bytes, 16);
  return code == VK_SUCCESS || code == VK_INCOMPLETE ? SNT_OK : SNT_E_BACKEND;
}
