/* Attaching to the host's device, or planning for one that is only described. In: what the device was created with. Out: an snt_device whose
   profile and limits are what was enabled, never what merely exists. Nothing is created on the device. */
#include "door/door.h"
#include "runtime/rt_common.h"
#include "runtime/rt_vulkan.h"

/* ---- a device ---- */

static void close_device(snt_device *d) { api_give(d->context, d->door_data, sizeof *d->door_data); }

static snt_device *new_device(snt_context *c, snt_diag *diag) {
  snt_device *d = api_take(c, sizeof *d);
  door_device *door = api_take(c, sizeof *door);
  if (!d || !door) {
    api_give(c, d, sizeof *d);
    api_give(c, door, sizeof *door);
    ir_no_memory(diag, "attach");
    return NULL;
  }
  atomic_init(&d->uses, 1);
  atomic_init(&door->lost, false);
  d->context = c;
  d->door = &door_vtable;
  d->door_data = door;
  api_context_hold(c);
  return d;
}

static void read_properties(const VkPhysicalDeviceProperties2 *properties, uint64_t features, door_limits *out) {
  out->core = properties->properties.limits;
  out->max_allocation = (VkDeviceSize)1 << 30; /* what Vulkan 1.1 promises */
  for (const VkBaseInStructure *s = properties->pNext; s; s = s->pNext) {
    const void *block = s;
    if (s->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES) {
      out->subgroups = *(const VkPhysicalDeviceSubgroupProperties *)block;
      out->subgroups.pNext = NULL;
    } else if (s->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES) {
      out->max_allocation = ((const VkPhysicalDeviceMaintenance3Properties *)block)->maxMemoryAllocationSize;
    } else if (s->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES && features & SNT_VK_FEATURE_SUBGROUP_SIZE) {
      out->sizes = *(const VkPhysicalDeviceSubgroupSizeControlProperties *)block;
      out->sizes.pNext = NULL;
    } else if (s->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FLOAT_CONTROLS_PROPERTIES && features & SNT_VK_FEATURE_FLOAT_CONTROLS) {
      out->float_controls = *(const VkPhysicalDeviceFloatControlsProperties *)block;
      out->float_controls.pNext = NULL;
    } else if (s->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_PROPERTIES &&
               features & SNT_VK_FEATURE_INTEGER_DOT_PRODUCT) {
      const VkPhysicalDeviceShaderIntegerDotProductProperties *dots = block;
      out->fast_dots = dots->integerDotProduct4x8BitPackedMixedSignednessAccelerated;
    } else if (s->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PUSH_DESCRIPTOR_PROPERTIES_KHR && features & SNT_VK_FEATURE_PUSH_DESCRIPTORS) {
      out->max_push_descriptors = ((const VkPhysicalDevicePushDescriptorPropertiesKHR *)block)->maxPushDescriptors;
    }
  }
  if (!out->sizes.minSubgroupSize) out->sizes.minSubgroupSize = out->sizes.maxSubgroupSize = out->subgroups.subgroupSize;
}

/* What SPIRV-Cross translates to MSL and to HLSL (tests/portable.t reads this line). */
static const char portable[] = "texel=0,subgroups=0,f64=0,int64=0,f16=0,int8=0,int16=0,dot4=0";

/* Programs for this device are to reach buffers by their addresses. */
static snt_result take_addresses(snt_device *d, snt_diag *diag) {
  const door_device *door = d->door_data;
  if (!(door->flags & SNT_VK_ADDRESSES)) return SNT_OK;
  if (!(door->features & SNT_VK_FEATURE_BUFFER_ADDRESS))
    return ir_fail(diag, SNT_E_UNSUPPORTED, "attach", 0, "SNT_VK_ADDRESSES: the device was created without bufferDeviceAddress");
  if (door->flags & SNT_VK_PORTABLE) return ir_fail(diag, SNT_E_ARG, "attach", 0, "addresses are not portable: HLSL has none");
  d->profile.caps.address = true;
  return SNT_OK;
}

/* The profile and the public info from the properties and what is enabled. */
static snt_result describe(snt_device *d, const VkPhysicalDeviceProperties2 *properties, const char *driver, const kir_mma *units,
                           snt_diag *diag) {
  door_device *door = d->door_data;
  const VkPhysicalDeviceProperties *plain = &properties->properties;
  vk_features features;
  if (plain->apiVersion && plain->apiVersion < VK_API_VERSION_1_1)
    return ir_fail(diag, SNT_E_UNSUPPORTED, "attach", 0, "%s has no Vulkan 1.1", plain->deviceName);
  read_properties(properties, door->features, &door->limits);
  door_fill_features(door->features, &features);
  const door_limits *l = &door->limits;
  vk_facts facts = {.features = &features,
                    .subgroups = &l->subgroups,
                    .limits = &l->core,
                    .sizes = &l->sizes,
                    .max_allocation = l->max_allocation,
                    .cpu = plain->deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU,
                    .fast_dots = l->fast_dots,
                    .float_controls = &l->float_controls};
  if (units) memcpy(facts.mma, units, sizeof facts.mma);
  const char *base = vk_profile_name(plain->deviceName, driver, plain->deviceType);
  SNT_TRY(vk_fill_profile(&facts, base, &d->profile, diag));
  if (door->flags & SNT_VK_PORTABLE) SNT_TRY(cost_profile_mask(&d->profile, portable, diag));
  SNT_TRY(take_addresses(d, diag));
  snt_device_info *info = &d->info;
  rt_copy_text(info->selector, sizeof info->selector, door->handle ? "vulkan:host" : "vulkan:planned");
  rt_copy_text(info->name, sizeof info->name, plain->deviceName);
  rt_copy_text(info->driver, sizeof info->driver, driver);
  rt_copy_text(info->profile, sizeof info->profile, d->profile.name);
  info->api = SNT_TARGET_SPIRV;
  info->device_class = (uint32_t)plain->deviceType;
  info->id[0] = (uint64_t)plain->vendorID << 32 | plain->deviceID;
  info->id[1] = plain->driverVersion;
  return SNT_OK;
}

/* ---- attach ---- */

static bool named(uint32_t count, const char *const *names, const char *wanted) {
  for (uint32_t i = 0; names && i < count; i++)
    if (!strcmp(names[i], wanted)) return true;
  return false;
}

/* Only what is enabled is asked for: a driver may answer with a function that must not be called. */
static snt_result load_functions(door_device *d, PFN_vkGetDeviceProcAddr get, bool debug, snt_diag *diag) {
  static const struct {
    uint32_t feature; /* that it belongs to; 0: always there */
    uint16_t offset;
    bool debug;
  } table[] = {
#define DOOR_ROW(name) {0, offsetof(door_vk, name), false},
#define DOOR_DEBUG_ROW(name) {0, offsetof(door_vk, name), true},
#define DOOR_PUSH_ROW(name) {SNT_VK_FEATURE_PUSH_DESCRIPTORS, offsetof(door_vk, name), false},
#define DOOR_ADDRESS_ROW(name) {SNT_VK_FEATURE_BUFFER_ADDRESS, offsetof(door_vk, name), false},
      DOOR_FUNCTIONS(DOOR_ROW) DOOR_DEBUG_FUNCTIONS(DOOR_DEBUG_ROW) DOOR_PUSH_FUNCTIONS(DOOR_PUSH_ROW)
          DOOR_ADDRESS_FUNCTIONS(DOOR_ADDRESS_ROW)
#undef DOOR_ROW
#undef DOOR_DEBUG_ROW
#undef DOOR_PUSH_ROW
#undef DOOR_ADDRESS_ROW
  };
#define DOOR_NAME(name) #name "\0"
  static const char names[] = DOOR_FUNCTIONS(DOOR_NAME) DOOR_DEBUG_FUNCTIONS(DOOR_NAME) DOOR_PUSH_FUNCTIONS(DOOR_NAME)
      DOOR_ADDRESS_FUNCTIONS(DOOR_NAME); /* in the order of the table */
#undef DOOR_NAME
  const char *name = names;
  for (uint32_t i = 0; i < IR_COUNT(table); i++, name += strlen(name) + 1) {
    if ((table[i].debug && !debug) || (table[i].feature && !(d->features & table[i].feature))) continue;
    const bool is_extension = table[i].feature == SNT_VK_FEATURE_BUFFER_ADDRESS && d->api_version < VK_API_VERSION_1_2;
    const PFN_vkVoidFunction f = get(d->handle, is_extension ? "vkGetBufferDeviceAddressKHR" : name);
    if (!f && !table[i].debug) return ir_fail(diag, SNT_E_UNSUPPORTED, "attach", 0, "the loader has no %s", name);
    memcpy((char *)&d->vk + table[i].offset, &f, sizeof f);
  }
  return SNT_OK;
}

static snt_result query_host(snt_device *device, const snt_vk_attach_info *info, snt_diag *diag) {
  door_device *d = device->door_data;
  const PFN_vkGetInstanceProcAddr get = info->get_instance_proc;
  const PFN_vkGetPhysicalDeviceProperties2 properties = (PFN_vkGetPhysicalDeviceProperties2)get(info->instance,
                                                                                                "vkGetPhysicalDeviceProperties2");
  const PFN_vkGetDeviceProcAddr device_proc = (PFN_vkGetDeviceProcAddr)get(info->instance, "vkGetDeviceProcAddr");
  if (!properties || !device_proc) return ir_fail(diag, SNT_E_UNSUPPORTED, "attach", 0, "the instance has no functions of Vulkan 1.1");
  const bool debug = named(info->instance_extension_count, info->instance_extensions, VK_EXT_DEBUG_UTILS_EXTENSION_NAME);
  SNT_TRY(load_functions(d, device_proc, debug, diag));
  VkPhysicalDeviceSubgroupSizeControlProperties sizes = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES};
  VkPhysicalDeviceSubgroupProperties subgroups = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES};
  VkPhysicalDeviceMaintenance3Properties sizes3 = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES,
                                                   .pNext = &subgroups};
  VkPhysicalDeviceProperties2 all = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = &sizes3};
  VkPhysicalDevicePushDescriptorPropertiesKHR push = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PUSH_DESCRIPTOR_PROPERTIES_KHR,
                                                      .pNext = &sizes3};
  if (d->features & SNT_VK_FEATURE_SUBGROUP_SIZE) subgroups.pNext = &sizes;
  VkPhysicalDeviceFloatControlsProperties controls = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FLOAT_CONTROLS_PROPERTIES,
                                                      .pNext = &sizes3};
  if (d->features & SNT_VK_FEATURE_PUSH_DESCRIPTORS) all.pNext = &push;
  if (d->features & SNT_VK_FEATURE_FLOAT_CONTROLS) controls.pNext = all.pNext, all.pNext = &controls;
  VkPhysicalDeviceShaderIntegerDotProductProperties dots;
  dots.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_PROPERTIES;
  if (d->features & SNT_VK_FEATURE_INTEGER_DOT_PRODUCT) dots.pNext = all.pNext, all.pNext = &dots;
  properties(info->physical_device, &all);
  kir_mma units[KIR_MMA_TYPES] = {{0, 0, 0}};
  if (d->features & SNT_VK_FEATURE_COOPERATIVE_MATRIX)
    vk_query_units(get, info->instance, &device->context->alloc, info->physical_device, units);
  return describe(device, &all, "", units, diag);
}

enum { ATTACH_FLAGS = SNT_VK_ATTACH_VALIDATE | SNT_VK_CACHE_EXTERNALLY_SYNCED | SNT_VK_PORTABLE | SNT_VK_ADDRESSES };

snt_result snt_vk_attach(snt_context *c, const snt_vk_attach_info *info, snt_device **out, snt_diag *diag) {
  if (!c || !info || !out) return ir_fail(diag, SNT_E_ARG, "attach", 0, "a context, the host's device and a place for ours are needed");
  SNT_TRY(api_check_whole(&info->head, SNT_TYPE_vk_attach_info, sizeof *info, diag));
  if (!info->instance || !info->physical_device || !info->device || !info->get_instance_proc)
    return ir_fail(diag, SNT_E_ARG, "attach", 0, "instance, physical device, device and vkGetInstanceProcAddr are needed");
  SNT_TRY(api_check_flags(info->flags, ATTACH_FLAGS, "attach", diag));
  if (info->api_version && info->api_version < VK_API_VERSION_1_1)
    return ir_fail(diag, SNT_E_UNSUPPORTED, "attach", 0, "Vulkan 1.1 is needed; the application uses %u.%u",
                   VK_API_VERSION_MAJOR(info->api_version), VK_API_VERSION_MINOR(info->api_version));
  snt_device *device = new_device(c, diag);
  if (!device) return SNT_E_HOST_MEM;
  door_device *d = device->door_data;
  d->handle = info->device;
  d->cache = info->pipeline_cache;
  d->flags = info->flags;
  d->api_version = info->api_version ? info->api_version : VK_API_VERSION_1_1;
  if (info->vk_alloc) d->callbacks = *info->vk_alloc, d->allocation = &d->callbacks;
  const VkDeviceCreateInfo *made = info->created_with;
  if (made) d->features = door_features_of_chain(made->pEnabledFeatures, made->pNext);
  d->features |= door_features_of_extensions(d->api_version, made ? made->enabledExtensionCount : 0,
                                             made ? made->ppEnabledExtensionNames : NULL);
  rt_copy_text(d->name, sizeof d->name, info->debug_name ? info->debug_name : "sinter");
  const snt_result r = query_host(device, info, diag);
  if (r != SNT_OK) snt_device_destroy(device);
  else *out = device;
  return r;
}

snt_result snt_vk_plan(snt_context *c, const snt_vk_caps *caps, snt_device **out, snt_diag *diag) {
  if (!c || !caps || !out) return ir_fail(diag, SNT_E_ARG, "plan", 0, "a context, the device's numbers and a place for it are needed");
  SNT_TRY(api_check_whole(&caps->head, SNT_TYPE_vk_caps, sizeof *caps, diag));
  if (!caps->properties) return ir_fail(diag, SNT_E_ARG, "plan", 0, "the device's properties are needed");
  SNT_TRY(api_check_flags(caps->flags, SNT_VK_PORTABLE | SNT_VK_ADDRESSES, "plan", diag));
  snt_device *device = new_device(c, diag);
  if (!device) return SNT_E_HOST_MEM;
  door_device *d = device->door_data;
  d->flags = caps->flags;
  d->api_version = caps->api_version ? caps->api_version : VK_API_VERSION_1_1;
  if (caps->features) d->features = door_features_of_chain(NULL, caps->features);
  d->features |= door_features_of_extensions(d->api_version, 0, NULL);
  const snt_result r = describe(device, caps->properties, "", NULL, diag);
  if (r != SNT_OK) snt_device_destroy(device);
  else *out = device;
  return r;
}

snt_result snt_vk_device_notify_lost(snt_device *d) {
  if (!d || !d->door) return SNT_E_ARG;
  atomic_store(&d->door_data->lost, true);
  return SNT_OK;
}

const api_door door_vtable = {close_device, door_exec_create, door_exec_destroy, door_job_build};
