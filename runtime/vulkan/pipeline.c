/* Vulkan compute pipelines: SPIR-V words in; descriptor set 0 has a binding a slot (storage or uniform texel buffer), push constants carry
   the scalar block and the number of groups. The pipeline cache object is the binary for the file cache. */
#include "runtime/rt_vulkan.h"

VkDescriptorType vk_descriptor_type(uint8_t kind) {
  switch (kind) {
  case RT_SLOT_STORAGE: return VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
  case RT_SLOT_IMAGE_FETCH: return VK_DESCRIPTOR_TYPE_SAMPLED_IMAGE;
  case RT_SLOT_IMAGE_SAMPLE: return VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER;
  case RT_SLOT_IMAGE_STORE: return VK_DESCRIPTOR_TYPE_STORAGE_IMAGE;
  default: return VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER;
  }
}

static VkResult create_layouts(vk_device *device, vk_pipeline *pipeline) {
  const vk_api *api = &device->instance->api;
  VkDescriptorSetLayoutBinding bindings[VK_MAX_BINDINGS];
  for (uint32_t slot = 0; slot < pipeline->binding_count; slot++) {
    bindings[slot] = (VkDescriptorSetLayoutBinding){.binding = slot,
                                                    .descriptorType = vk_descriptor_type(pipeline->kinds[slot]),
                                                    .descriptorCount = 1,
                                                    .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT};
  }
  const VkDescriptorSetLayoutCreateInfo set = {
      .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO, .bindingCount = pipeline->binding_count, .pBindings = bindings};
  VkResult code = api->vkCreateDescriptorSetLayout(device->handle, &set, NULL, &pipeline->set_layout);
  if (code != VK_SUCCESS) return code;
  const VkPushConstantRange push = {.stageFlags = VK_SHADER_STAGE_COMPUTE_BIT, .size = pipeline->block_bytes + 4};
  const VkPipelineLayoutCreateInfo layout = {.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
                                             .setLayoutCount = 1,
                                             .pSetLayouts = &pipeline->set_layout,
                                             .pushConstantRangeCount = 1,
                                             .pPushConstantRanges = &push};
  return api->vkCreatePipelineLayout(device->handle, &layout, NULL, &pipeline->layout);
}

/* A size is asked for only where the device could choose another. */
static snt_result required_subgroup(const vk_device *device, const rt_code *code, uint32_t *out, snt_diag *diag) {
  uint32_t wanted = code->kernel ? code->kernel->sub : code->sub;
  const cost_profile *profile = &device->base.profile;
  *out = 0;
  if (wanted == 0 || wanted == ~0u) return SNT_OK;
  if (!cost_has_subgroup(profile, wanted))
    return ir_fail(diag, SNT_E_UNSUPPORTED, "pipeline", 0, "subgroups of %u on a device with %u to %u%s", wanted, profile->subgroup_min,
                   profile->subgroup_max, cost_asks_subgroup(profile) ? "" : ", of which none can be asked for");
  if (profile->subgroup_min != profile->subgroup_max) *out = wanted;
  return SNT_OK;
}

/* A profile that was forced may promise more than the device has. */
static snt_result has_units(const vk_device *device, const rt_code *code, snt_diag *diag) {
  const char *needs = code->kernel ? code->kernel->needs : NULL;
  if (!needs || !*needs || kir_mma_has(&device->base.profile.caps, needs)) return SNT_OK;
  return ir_fail(diag, SNT_E_UNSUPPORTED, "pipeline", 0, "kernel %s needs %s, which %s has not", code->kernel->name, needs,
                 device->base.name);
}

/* A kernel that names the size of its subgroups has whole ones. */
static bool wants_full(const vk_device *device, const rt_code *code) {
  const uint32_t sub = code->kernel ? code->kernel->sub : code->sub, items = code->kernel ? code->kernel->items[0] : code->items[0];
  return device->features.subgroup_size.computeFullSubgroups && sub && sub != ~0u && items % sub == 0;
}

static VkResult create_pipeline(vk_device *device, vk_pipeline *pipeline, VkShaderModule module, uint32_t subgroup, bool full,
                                bool report) {
  const VkPipelineShaderStageRequiredSubgroupSizeCreateInfo size = {
      .sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO, .requiredSubgroupSize = subgroup};
  const VkComputePipelineCreateInfo info = {
      .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
      .flags = report && device->statistics ? VK_PIPELINE_CREATE_CAPTURE_STATISTICS_BIT_KHR : 0,
      .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                .pNext = subgroup ? &size : NULL,
                .flags = full ? VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT : 0,
                .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                .module = module,
                .pName = "main"},
      .layout = pipeline->layout,
  };
  return device->instance->api.vkCreateComputePipelines(device->handle, pipeline->cache, 1, &info, NULL, &pipeline->handle);
}

/* A cache the driver does not like is an empty one. */
static VkResult create_cache(vk_device *device, vk_pipeline *pipeline, const void *cached, size_t cached_bytes) {
  const vk_api *api = &device->instance->api;
  VkPipelineCacheCreateInfo info = {
      .sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO, .initialDataSize = cached ? cached_bytes : 0, .pInitialData = cached};
  pipeline->base.from_binary = cached && api->vkCreatePipelineCache(device->handle, &info, NULL, &pipeline->cache) == VK_SUCCESS;
  if (pipeline->base.from_binary) return VK_SUCCESS;
  info.initialDataSize = 0;
  return api->vkCreatePipelineCache(device->handle, &info, NULL, &pipeline->cache);
}

static snt_result build(vk_device *device, vk_pipeline *pipeline, const rt_code *code, const void *cached, size_t cached_bytes,
                        snt_diag *diag) {
  const vk_api *api = &device->instance->api;
  const VkShaderModuleCreateInfo info = {.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO, .codeSize = code->size, .pCode = code->data};
  uint32_t subgroup;
  VkShaderModule module;
  SNT_TRY(required_subgroup(device, code, &subgroup, diag));
  SNT_TRY(has_units(device, code, diag));
  VkResult result = create_layouts(device, pipeline);
  if (result == VK_SUCCESS) result = create_cache(device, pipeline, cached, cached_bytes);
  if (result != VK_SUCCESS) return vk_fail(device, result, "pipeline", "vkCreatePipelineLayout", diag);
  result = api->vkCreateShaderModule(device->handle, &info, NULL, &module);
  if (result != VK_SUCCESS) return vk_fail(device, result, "pipeline", "vkCreateShaderModule", diag);
  result = create_pipeline(device, pipeline, module, subgroup, wants_full(device, code), code->report);
  api->vkDestroyShaderModule(device->handle, module, NULL);
  return result == VK_SUCCESS ? SNT_OK : vk_fail(device, result, "pipeline", "vkCreateComputePipelines", diag);
}

/* Drivers crash on what is not SPIR-V, so the header is looked at first. */
static snt_result check_code(const vk_device *device, const rt_code *code, snt_diag *diag) {
  enum { MAGIC = 0x07230203, HEADER_WORDS = 5 };
  const uint32_t *words = code->data;
  if (!words || code->size < 4 * HEADER_WORDS || code->size % 4 != 0 || (uintptr_t)words % 4 != 0 || words[0] != MAGIC) {
    return ir_fail(diag, SNT_E_BACKEND, "pipeline", 0, "%zu bytes that are not a SPIR-V module", code->size);
  }
  if (code->binding_count > VK_MAX_BINDINGS) return ir_fail(diag, SNT_E_LIMIT, "pipeline", 0, "%u bindings", code->binding_count);
  if (code->block_bytes > device->base.profile.max_scalar_bytes) {
    return ir_fail(diag, SNT_E_LIMIT, "pipeline", 0, "%u bytes of scalars, %u fit", code->block_bytes,
                   device->base.profile.max_scalar_bytes);
  }
  return SNT_OK;
}

snt_result vk_pipeline_create(rt_device *base, const rt_code *code, const void *cached, size_t cached_bytes, rt_pipeline **out,
                              snt_diag *diag) {
  vk_device *device = (vk_device *)base;
  if (base->lost) return SNT_E_DEVICE_LOST;
  SNT_TRY(check_code(device, code, diag));
  vk_pipeline *pipeline = rt_take(base->alloc, sizeof *pipeline);
  if (!pipeline) return ir_fail(diag, SNT_E_HOST_MEM, "pipeline", 0, "out of memory");
  pipeline->base = (rt_pipeline){.v = base->v, .device = base};
  pipeline->binding_count = code->binding_count, pipeline->block_bytes = code->block_bytes;
  pipeline->report = code->report && device->statistics;
  if (code->kernel) rt_slot_kinds(code->kernel, code->binding_count, pipeline->kinds);
  else if (code->slot_kinds) memcpy(pipeline->kinds, code->slot_kinds, code->binding_count);
  for (uint32_t slot = 0; slot < code->binding_count; slot++)
    if (pipeline->kinds[slot] == RT_SLOT_IMAGE_SAMPLE) {
      rt_give(base->alloc, pipeline, sizeof *pipeline);
      return ir_fail(diag, SNT_E_UNSUPPORTED, "pipeline", 0, "slot %u is an image with a sampler", slot);
    }
  rt_lock_take(&device->queue_lock);
  pipeline->serial = ++device->next_serial;
  rt_lock_give(&device->queue_lock);
  snt_result result = vk_judge(device, build(device, pipeline, code, cached, cached_bytes, diag), diag);
  if (result != SNT_OK) vk_pipeline_destroy(&pipeline->base);
  else *out = &pipeline->base;
  return result;
}

snt_result vk_pipeline_binary(rt_pipeline *base, void *dst, size_t *size) {
  const vk_pipeline *pipeline = (const vk_pipeline *)base;
  const vk_device *device = (const vk_device *)base->device;
  VkResult code = device->instance->api.vkGetPipelineCacheData(device->handle, pipeline->cache, size, dst);
  if (code == VK_INCOMPLETE) return SNT_INCOMPLETE;
  return code == VK_SUCCESS ? SNT_OK : SNT_E_BACKEND;
}

void vk_pipeline_destroy(rt_pipeline *base) {
  if (!base) return;
  vk_pipeline *pipeline = (vk_pipeline *)base;
  const vk_device *device = (const vk_device *)base->device;
  const vk_api *api = &device->instance->api;
  api->vkDestroyPipeline(device->handle, pipeline->handle, NULL);
  api->vkDestroyPipelineCache(device->handle, pipeline->cache, NULL);
  api->vkDestroyPipelineLayout(device->handle, pipeline->layout, NULL);
  api->vkDestroyDescriptorSetLayout(device->handle, pipeline->set_layout, NULL);
  rt_give(base->device->alloc, pipeline, sizeof *pipeline);
}
