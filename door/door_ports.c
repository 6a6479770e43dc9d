/* What the host is told of ports and descriptors. */
#include "door/door.h"

static bool has_symbol(const snt_exec *x, const char *port, const char *suffix) {
  const expr_pool *pool = door_plan(x)->pool;
  const size_t length = strlen(port);
  for (uint32_t i = 0; i < pool->symbols.count; i++)
    if (!strncmp(pool->symbols.at[i].name, port, length) && !strcmp(pool->symbols.at[i].name + length, suffix)) return true;
  return false;
}

snt_result snt_vk_exec_ports(const snt_exec *x, uint32_t *count, uint32_t stride, snt_vk_port *out) {
  if (!x || !x->door || !count || api_is_short(stride, sizeof *out)) return SNT_E_ARG;
  const uint32_t room = *count, have = x->program->port_count;
  *count = have;
  for (uint32_t i = 0; out && i < have && i < room; i++) {
    const door_port *p = &x->door->ports[i];
    snt_vk_port *to = (snt_vk_port *)(uintptr_t)door_at(out, stride, sizeof *out, i);
    snt_port plain = {{0}, "", 0, {0, 0, {0}}};
    (void)snt_program_port(x->program, i, &plain);
    const snt_out_head head = to->head;
    *to = (snt_vk_port){
        .head = head, .name = plain.name, .kind = p->kind, .tensor = plain.tensor, .stage = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT};
    to->access = p->access;
    switch (p->kind) {
    case SNT_VK_PORT_SAMPLED:
      to->image_usage = VK_IMAGE_USAGE_SAMPLED_BIT;
      to->layouts[0] = VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL, to->layouts[1] = VK_IMAGE_LAYOUT_GENERAL;
      to->layouts[2] = VK_IMAGE_LAYOUT_DEPTH_STENCIL_READ_ONLY_OPTIMAL;
      to->layout_count = 3;
      break;
    case SNT_VK_PORT_STORAGE:
      to->image_usage = VK_IMAGE_USAGE_STORAGE_BIT;
      to->layouts[0] = VK_IMAGE_LAYOUT_GENERAL;
      to->layout_count = 1;
      break;
    case SNT_VK_PORT_BUFFER:
      to->buffer_usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT;
      if (x->door->addresses) to->buffer_usage |= VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT;
      if (p->texels != VK_FORMAT_UNDEFINED) to->buffer_usage |= VK_BUFFER_USAGE_UNIFORM_TEXEL_BUFFER_BIT;
      break;
    default: break;
    }
    to->format = p->format != VK_FORMAT_UNDEFINED ? p->format : p->texels;
    to->value_offset = p->value_offset;
    to->value_size = p->value_size;
    to->channels = door_image_channels(x, i);
    to->filtered = p->filtered;
    to->origin = door_image_channels(x, i) && has_symbol(x, plain.name, ".x") && has_symbol(x, plain.name, ".y");
  }
  return out && room >= have ? SNT_OK : have ? SNT_INCOMPLETE : SNT_OK;
}

uint32_t door_count_descriptors(const snt_exec *x, VkDescriptorPoolSize sizes[DOOR_DESCRIPTOR_TYPES], uint32_t slots) {
  static const VkDescriptorType types[DOOR_DESCRIPTOR_TYPES] = {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER,
                                                                VK_DESCRIPTOR_TYPE_SAMPLED_IMAGE, VK_DESCRIPTOR_TYPE_STORAGE_IMAGE,
                                                                VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER};
  uint32_t count = 0;
  for (uint32_t t = 0; t < DOOR_DESCRIPTOR_TYPES; t++) {
    uint32_t n = 0;
    for (uint32_t s = 0; s < x->door->set_count; s++) {
      const uint32_t k = door_step_of(x, s)->kernel;
      for (uint32_t i = 0; !x->door->kernels[k].pushed && i < door_step_of(x, s)->binding_count; i++)
        n += !door_address_at(x, k, i) && door_descriptor_type(x->program->kernels[k].kinds[i]) == types[t];
    }
    if (n) sizes[count++] = (VkDescriptorPoolSize){types[t], n * slots};
  }
  return count;
}

uint32_t door_count_sets(const snt_exec *x) {
  uint32_t count = 0;
  for (uint32_t s = 0; s < x->door->set_count; s++) {
    const door_kernel *k = &x->door->kernels[door_step_of(x, s)->kernel];
    count += k->descriptors && !k->pushed;
  }
  return count;
}

snt_result snt_vk_descriptor_need(const snt_exec *x, uint32_t slot_count, uint32_t *count, VkDescriptorPoolSize *out, uint32_t *sets) {
  if (!x || !x->door || !count || !slot_count) return SNT_E_ARG;
  VkDescriptorPoolSize sizes[DOOR_DESCRIPTOR_TYPES];
  const uint32_t room = *count;
  *count = door_count_descriptors(x, sizes, slot_count);
  if (sets) *sets = door_count_sets(x) * slot_count;
  for (uint32_t i = 0; out && i < *count && i < room; i++) out[i] = sizes[i];
  return (out && room >= *count) || !*count ? SNT_OK : SNT_INCOMPLETE;
}

uint32_t door_image_channels(const snt_exec *x, uint32_t port) {
  const plan_buffer *b = &door_plan(x)->buffers.at[x->door->ports[port].buffer];
  int64_t channels = 1;
  if (!b->image) return 0;
  if (b->image == PLAN_IMAGE_CHW) (void)expr_is_const(door_plan(x)->pool, b->dims[b->rank - 3], &channels);
  if (b->image == PLAN_IMAGE_HWC) (void)expr_is_const(door_plan(x)->pool, b->dims[b->rank - 1], &channels);
  return (uint32_t)channels;
}
