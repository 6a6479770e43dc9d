/* An exec at the door: ports with their formats, descriptor set and pipeline layouts, and pipelines as jobs. */
#include "door/door.h"
#include <stdio.h>

/* ---- ports ---- */

static void find_port_slots(const snt_exec *x, uint32_t buffer, door_port *port) {
  for (uint32_t s = 0; s < x->door->set_count; s++)
    for (uint32_t i = 0; i < door_step_of(x, s)->binding_count; i++) {
      const plan_binding *b = &door_step_of(x, s)->bindings[i];
      const uint8_t kind = x->program->kernels[door_step_of(x, s)->kernel].kinds[i];
      if (door_bound_buffer(x, s, i) != buffer) continue;
      if (b->access & KIR_READ) port->access |= VK_ACCESS_SHADER_READ_BIT;
      if (b->access & KIR_WRITE) port->access |= VK_ACCESS_SHADER_WRITE_BIT;
      port->filtered |= kind == RT_SLOT_IMAGE_SAMPLE;
      if (kind == RT_SLOT_IMAGE_STORE) port->kind = SNT_VK_PORT_STORAGE;
      else if (rt_slot_is_image(kind)) port->kind = SNT_VK_PORT_SAMPLED;
      else if (rt_slot_is_texel(kind)) port->texels = door_texel_format(kind);
    }
}

/* Inputs of rank 0 are values: a struct of the host's, copied to a host-visible range. */
static void place_value(const snt_exec *x, door_port *port) {
  const uint32_t bytes = ir_dtypes[door_plan(x)->buffers.at[port->buffer].dtype].bytes;
  const VkDeviceSize align = x->device->profile.offset_align > 16 ? x->device->profile.offset_align : 16;
  door_exec *d = x->door;
  port->kind = SNT_VK_PORT_VALUE;
  port->value_size = bytes;
  port->value_offset = (d->values_bytes + bytes - 1) / bytes * bytes;
  d->values_bytes = port->value_offset + bytes;
  port->value_at = d->values_stride;
  d->values_stride += (uint32_t)align;
}

static snt_result check_format(const snt_exec *x, uint32_t number, const door_port *port, snt_diag *diag) {
  snt_port public_port = {{0}, "", 0, {0, 0, {0}}};
  (void)snt_program_port(x->program, number, &public_port);
  const char *name = public_port.name;
  const uint64_t features = door_of(x)->features;
  if (port->kind == SNT_VK_PORT_SAMPLED && port->format == VK_FORMAT_UNDEFINED) return SNT_OK;
  if (port->kind != SNT_VK_PORT_SAMPLED && port->kind != SNT_VK_PORT_STORAGE)
    return port->format == VK_FORMAT_UNDEFINED ? SNT_OK : ir_fail(diag, SNT_E_ARG, "exec", 0, "port %s is no image", name);
  if (port->format == VK_FORMAT_UNDEFINED)
    return ir_fail(diag, SNT_E_ARG, "exec", 0, "the format of image port %s is not declared (snt_vk_exec_info)", name);
  const door_format *f = door_format_of(port->format);
  if (!f) return ir_fail(diag, SNT_E_UNSUPPORTED, "exec", 0, "port %s: format %d is not known", name, (int)port->format);
  if (f->as_float != (ir_dtypes[public_port.tensor.dtype].is_float != 0))
    return ir_fail(diag, SNT_E_UNSUPPORTED, "exec", 0, "port %s: format %d does not hold its elements", name, (int)port->format);
  if (port->kind == SNT_VK_PORT_SAMPLED || f->basic || features & SNT_VK_FEATURE_IMAGE_WITHOUT_FORMAT) return SNT_OK;
  if (f->spirv && features & SNT_VK_FEATURE_IMAGE_FORMATS) return SNT_OK;
  return ir_fail(diag, SNT_E_UNSUPPORTED, "exec", 0, "port %s: storage of format %d needs shaderStorageImage%s", name, (int)port->format,
                 f->spirv ? "ExtendedFormats" : "WriteWithoutFormat");
}

static snt_result make_ports(snt_exec *x, const snt_vk_exec_info *info, snt_diag *diag) {
  door_exec *d = x->door;
  const ir_plan *p = door_plan(x);
  for (uint32_t b = 0; b < p->buffers.count; b++) d->port_of[b] = UINT32_MAX;
  for (uint32_t i = 0; i < x->program->port_count; i++) {
    door_port *port = &d->ports[i];
    port->buffer = x->program->ports[i];
    port->kind = SNT_VK_PORT_BUFFER;
    const plan_buffer *b = &p->buffers.at[port->buffer];
    find_port_slots(x, port->buffer, port);
    d->port_of[port->buffer] = i;
    if (b->kind == PLAN_STATE) port->kind = SNT_VK_PORT_STATE, d->port_of[port->buffer] = UINT32_MAX;
    else if (b->kind == PLAN_INPUT && !b->rank && port->kind == SNT_VK_PORT_BUFFER) place_value(x, port);
  }
  for (uint32_t i = 0; info && i < info->port_format_count; i++) {
    const snt_vk_port_format *f = door_at(info->port_formats, info->port_format_stride, sizeof *f, i);
    if (f->port >= x->program->port_count || api_is_short(info->port_format_stride, sizeof *f))
      return ir_fail(diag, SNT_E_ARG, "exec", 0, "a format for port %u: there is none", f->port);
    d->ports[f->port].format = f->format;
  }
  for (uint32_t i = 0; i < x->program->port_count; i++) SNT_TRY(check_format(x, i, &d->ports[i], diag));
  return SNT_OK;
}

/* ---- making ---- */

enum { EXEC_FLAGS = SNT_VK_CACHED_ONLY | SNT_VK_PUSH_DESCRIPTORS | SNT_VK_EDGE_BARRIERS };

static snt_result read_chain(const snt_exec_info *info, const snt_vk_exec_info **out, snt_diag *diag) {
  *out = NULL;
  for (const snt_head *h = info ? info->head.next : NULL; h; h = h->next) {
    if (h->type != SNT_TYPE_vk_exec_info || *out)
      return ir_fail(diag, SNT_E_STRUCT, "exec", 0, "a struct of type %u in the chain", h->type);
    const snt_vk_exec_info *own = (const snt_vk_exec_info *)(const void *)h;
    SNT_TRY(api_check_chained(h, SNT_TYPE_vk_exec_info, sizeof *own, diag));
    SNT_TRY(api_check_flags(own->flags, EXEC_FLAGS, "exec", diag));
    if (own->port_format_count && !own->port_formats) return ir_fail(diag, SNT_E_ARG, "exec", 0, "no port formats");
    *out = own;
  }
  return SNT_OK;
}

static snt_result check_steps(const snt_exec *x, const snt_vk_exec_info *info, snt_diag *diag) {
  const ir_plan *p = door_plan(x);
  for (uint32_t s = 0; s < p->steps.count; s++) {
    const plan_step *step = &p->steps.at[s];
    if (info && info->max_dispatch_ns && step->est_ns > (double)info->max_dispatch_ns)
      return ir_fail(diag, SNT_E_LIMIT, "exec", 0, "%s is estimated at %.0f ns; %llu are allowed", step->name, step->est_ns,
                     (unsigned long long)info->max_dispatch_ns);
    for (uint32_t i = 0; i < step->binding_count; i++) {
      int64_t offset;
      if (!expr_is_const(p->pool, step->bindings[i].offset, &offset) || offset)
        return ir_fail(diag, SNT_E_UNSUPPORTED, "exec", 0, "%s binds a part of a buffer that moves", step->name);
    }
  }
  for (uint32_t k = 0; k < p->kernels.count; k++) {
    SNT_TRY(door_check_capabilities(x, k, diag));
    const char *name = p->kernels.at[k].kernel->name;
    const uint32_t sub = x->program->kernels[k].sub, pushed = door_push_bytes(x, k);
    const door_limits *l = &door_of(x)->limits;
    const cost_profile *have = &x->device->profile;
    if (!cost_has_subgroup(have, sub))
      return ir_fail(diag, SNT_E_UNSUPPORTED, "exec", 0, "%s needs subgroups of %u; the device has %u to %u%s", name, sub,
                     have->subgroup_min, have->subgroup_max, cost_asks_subgroup(have) ? "" : ", of which none can be asked for");
    if (pushed > l->core.maxPushConstantsSize) return ir_fail(diag, SNT_E_LIMIT, "exec", 0, "%s has %u bytes of scalars", name, pushed);
    if (pushed > sizeof((door_launch *)0)->push)
      return ir_fail(diag, SNT_E_BAD_BLOB, "exec", 0, "%s has %u bytes of addresses and scalars", name, pushed);
  }
  return SNT_OK;
}

void door_name_object(const snt_exec *x, VkObjectType type, uint64_t handle, const char *step, const char *what) {
  const door_device *d = door_of(x);
  char text[200];
  if (!d->vk.vkSetDebugUtilsObjectNameEXT) return;
  snprintf(text, sizeof text, "%.40s/%.60s/%.60s%s", d->name, door_plan(x)->title ? door_plan(x)->title : "", step, what);
  const VkDebugUtilsObjectNameInfoEXT info = {
      .sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_OBJECT_NAME_INFO_EXT, .objectType = type, .objectHandle = handle, .pObjectName = text};
  (void)d->vk.vkSetDebugUtilsObjectNameEXT(d->handle, &info);
}

static snt_result make_sampler(snt_exec *x, snt_diag *diag) {
  const door_device *d = door_of(x);
  const VkSamplerCreateInfo info = {.sType = VK_STRUCTURE_TYPE_SAMPLER_CREATE_INFO,
                                    .magFilter = VK_FILTER_LINEAR,
                                    .minFilter = VK_FILTER_LINEAR,
                                    .addressModeU = VK_SAMPLER_ADDRESS_MODE_CLAMP_TO_EDGE,
                                    .addressModeV = VK_SAMPLER_ADDRESS_MODE_CLAMP_TO_EDGE,
                                    .addressModeW = VK_SAMPLER_ADDRESS_MODE_CLAMP_TO_EDGE};
  bool wanted = false;
  for (uint32_t i = 0; i < x->program->port_count; i++) wanted |= x->door->ports[i].filtered;
  if (!wanted || !d->handle) return SNT_OK;
  const VkResult code = d->vk.vkCreateSampler(d->handle, &info, d->allocation, &x->door->sampler);
  return code == VK_SUCCESS ? SNT_OK : door_fail(x, code, "exec", "vkCreateSampler", diag);
}

static snt_result make_layouts(snt_exec *x, snt_diag *diag) {
  const door_device *d = door_of(x);
  SNT_TRY(make_sampler(x, diag));
  for (uint32_t k = 0; d->handle && k < door_plan(x)->kernels.count; k++) {
    door_kernel *kernel = &x->door->kernels[k];
    const char *name = door_plan(x)->kernels.at[k].kernel->name;
    VkDescriptorSetLayoutBinding bindings[API_MAX_BINDINGS];
    uint32_t count = 0;
    for (uint32_t i = 0; i < x->program->kernels[k].binding_count; i++)
      if (!door_address_at(x, k, i)) door_slot_binding(x, k, i, &bindings[count++]);
    const VkDescriptorSetLayoutCreateInfo set = {.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
                                                 .flags = kernel->pushed ? VK_DESCRIPTOR_SET_LAYOUT_CREATE_PUSH_DESCRIPTOR_BIT_KHR : 0,
                                                 .bindingCount = count,
                                                 .pBindings = bindings};
    VkResult code = count ? d->vk.vkCreateDescriptorSetLayout(d->handle, &set, d->allocation, &kernel->set_layout) : VK_SUCCESS;
    if (code != VK_SUCCESS) return door_fail(x, code, "exec", "vkCreateDescriptorSetLayout", diag);
    if (count) door_name_object(x, VK_OBJECT_TYPE_DESCRIPTOR_SET_LAYOUT, (uint64_t)kernel->set_layout, name, " set layout");
    const VkPushConstantRange push = {.stageFlags = VK_SHADER_STAGE_COMPUTE_BIT, .size = door_push_bytes(x, k)};
    const VkPipelineLayoutCreateInfo layout = {.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
                                               .setLayoutCount = count != 0,
                                               .pSetLayouts = &kernel->set_layout,
                                               .pushConstantRangeCount = 1,
                                               .pPushConstantRanges = &push};
    code = d->vk.vkCreatePipelineLayout(d->handle, &layout, d->allocation, &kernel->layout);
    if (code != VK_SUCCESS) return door_fail(x, code, "exec", "vkCreatePipelineLayout", diag);
    door_name_object(x, VK_OBJECT_TYPE_PIPELINE_LAYOUT, (uint64_t)kernel->layout, name, " layout");
  }
  return SNT_OK;
}

/* How each kernel's resources will reach it. */
static snt_result choose_paths(snt_exec *x, snt_diag *diag) {
  door_exec *d = x->door;
  const door_device *device = door_of(x);
  const bool push = d->flags & SNT_VK_PUSH_DESCRIPTORS;
  if (push && device->handle && !(device->features & SNT_VK_FEATURE_PUSH_DESCRIPTORS))
    return ir_fail(diag, SNT_E_UNSUPPORTED, "exec", 0, "SNT_VK_PUSH_DESCRIPTORS: the device was created without VK_KHR_push_descriptor");
  for (uint32_t k = 0; k < door_plan(x)->kernels.count; k++) {
    const api_kernel *kernel = &x->program->kernels[k];
    uint32_t count = 0;
    for (uint32_t i = 0; i < kernel->binding_count; i++) count += kernel->kinds[i] != RT_SLOT_ADDRESS;
    d->kernels[k].descriptors = count;
    d->kernels[k].pushed = push && count && count <= device->limits.max_push_descriptors;
    d->pushes |= d->kernels[k].pushed;
    d->addresses |= count < kernel->binding_count;
  }
  return SNT_OK;
}

snt_result door_exec_create(snt_exec *x, const snt_exec_info *info, snt_diag *diag) {
  snt_context *c = x->device->context;
  const ir_plan *p = door_plan(x);
  const snt_vk_exec_info *own;
  SNT_TRY(read_chain(info, &own, diag));
  if (atomic_load(&door_of(x)->lost)) return ir_fail(diag, SNT_E_DEVICE_LOST, "exec", 0, "the device is lost");
  if (!(x->door = api_take(c, sizeof *x->door))) return ir_no_memory(diag, "exec");
  door_exec *d = x->door;
  d->flags = own ? own->flags : 0;
  d->kernels = api_take(c, p->kernels.count * sizeof *d->kernels);
  d->ports = api_take(c, x->program->port_count * sizeof *d->ports);
  d->port_of = api_take(c, p->buffers.count * sizeof *d->port_of);
  if (!d->kernels || !d->ports || !d->port_of) return ir_no_memory(diag, "exec");
  for (uint32_t b = 0; b < p->buffers.count; b++)
    d->has_scratch_or_state |= p->buffers.at[b].kind == PLAN_SCRATCH || p->buffers.at[b].kind == PLAN_STATE;
  SNT_TRY(check_steps(x, own, diag));
  SNT_TRY(door_make_sets(x, diag));
  SNT_TRY(choose_paths(x, diag));
  SNT_TRY(make_ports(x, own, diag));
  return make_layouts(x, diag);
}

void door_exec_destroy(snt_exec *x) {
  snt_context *c = x->device->context;
  const door_device *d = door_of(x);
  door_exec *e = x->door;
  const uint32_t count = door_plan(x)->kernels.count;
  for (uint32_t k = 0; d->handle && e->kernels && k < count; k++) {
    const door_kernel *kernel = &e->kernels[k];
    if (kernel->pipeline) d->vk.vkDestroyPipeline(d->handle, kernel->pipeline, d->allocation);
    if (kernel->layout) d->vk.vkDestroyPipelineLayout(d->handle, kernel->layout, d->allocation);
    if (kernel->set_layout) d->vk.vkDestroyDescriptorSetLayout(d->handle, kernel->set_layout, d->allocation);
  }
  if (e->sampler) d->vk.vkDestroySampler(d->handle, e->sampler, d->allocation);
  api_give(c, e->kernels, count * sizeof *e->kernels);
  api_give(c, e->ports, x->program->port_count * sizeof *e->ports);
  api_give(c, e->port_of, door_plan(x)->buffers.count * sizeof *e->port_of);
  door_give_sets(x);
  api_give(c, e, sizeof *e);
}

/* ---- jobs ---- */

bool door_kernel_formats(const snt_exec *x, uint32_t kernel, VkFormat formats[API_MAX_BINDINGS]) {
  bool any = false;
  for (uint32_t i = 0; i < API_MAX_BINDINGS; i++) formats[i] = VK_FORMAT_UNDEFINED;
  for (uint32_t s = 0; s < x->door->set_count; s++) {
    if (door_step_of(x, s)->kernel != kernel) continue;
    for (uint32_t i = 0; i < door_step_of(x, s)->binding_count; i++) {
      const uint32_t port = x->door->port_of[door_bound_buffer(x, s, i)];
      if (x->program->kernels[kernel].kinds[i] != RT_SLOT_IMAGE_STORE || port == UINT32_MAX) continue;
      formats[i] = x->door->ports[port].format;
      any = true;
    }
  }
  return any;
}

static snt_result create_pipeline(snt_exec *x, uint32_t kernel, VkShaderModule module, snt_diag *diag) {
  const door_device *d = door_of(x);
  const uint32_t sub = x->program->kernels[kernel].sub;
  const VkPipelineShaderStageRequiredSubgroupSizeCreateInfo size = {
      .sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO, .requiredSubgroupSize = sub};
  const bool fixed = sub && sub != ~0u, sized = fixed && d->limits.sizes.minSubgroupSize != d->limits.sizes.maxSubgroupSize;
  const bool full = fixed && d->features & SNT_VK_FEATURE_FULL_SUBGROUPS && x->program->kernels[kernel].items[0] % sub == 0;
  const VkComputePipelineCreateInfo info = {
      .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
      .flags = x->door->flags & SNT_VK_CACHED_ONLY ? VK_PIPELINE_CREATE_FAIL_ON_PIPELINE_COMPILE_REQUIRED_BIT : 0,
      .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                .pNext = sized ? &size : NULL,
                .flags = full ? VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT : 0,
                .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                .module = module,
                .pName = "main"},
      .layout = x->door->kernels[kernel].layout};
  VkPipeline pipeline = VK_NULL_HANDLE;
  const VkResult code = d->vk.vkCreateComputePipelines(d->handle, d->cache, 1, &info, d->allocation, &pipeline);
  if (code != VK_SUCCESS) return door_fail(x, code, "job", "vkCreateComputePipelines", diag);
  x->door->kernels[kernel].pipeline = pipeline;
  return SNT_OK;
}

snt_result door_job_build(snt_exec *x, uint32_t kernel, snt_diag *diag) {
  const door_device *d = door_of(x);
  const codegen_code *code = &x->program->kernels[kernel].code[x->target].code;
  const char *name = door_plan(x)->kernels.at[kernel].kernel->name;
  VkFormat formats[API_MAX_BINDINGS];
  uint32_t *patched = NULL;
  size_t bytes = code->size;
  SNT_TRY(door_check_lost(x, "job", diag));
  if (x->door->flags & SNT_VK_CACHED_ONLY && !(d->features & SNT_VK_FEATURE_PIPELINE_CACHE_CONTROL))
    return ir_fail(diag, SNT_E_WOULD_COMPILE, "job", 0, "%s: without pipelineCreationCacheControl nothing says that it would not compile",
                   name);
  if (door_kernel_formats(x, kernel, formats)) SNT_TRY(door_patch_module(x, kernel, formats, &patched, &bytes, diag));
  const VkShaderModuleCreateInfo info = {.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
                                         .codeSize = bytes,
                                         .pCode = patched ? patched : (const uint32_t *)(const void *)code->data};
  VkShaderModule module = VK_NULL_HANDLE;
  const VkResult result = d->vk.vkCreateShaderModule(d->handle, &info, d->allocation, &module);
  snt_result r = result == VK_SUCCESS ? create_pipeline(x, kernel, module, diag)
                                      : door_fail(x, result, "job", "vkCreateShaderModule", diag);
  if (module) d->vk.vkDestroyShaderModule(d->handle, module, d->allocation);
  api_give(x->device->context, patched, bytes);
  if (r == SNT_OK) door_name_object(x, VK_OBJECT_TYPE_PIPELINE, (uint64_t)x->door->kernels[kernel].pipeline, name, "");
  return r;
}
