/* The slots of a kernel: descriptors, and the push block, which has the addresses of buffers behind its scalars. */
#include "door/door.h"

VkDescriptorType door_descriptor_type(uint8_t kind) {
  switch (kind) {
  case RT_SLOT_ADDRESS: /* what it would be */
  case RT_SLOT_STORAGE: return VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
  case RT_SLOT_IMAGE_FETCH: return VK_DESCRIPTOR_TYPE_SAMPLED_IMAGE;
  case RT_SLOT_IMAGE_SAMPLE: return VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER;
  case RT_SLOT_IMAGE_STORE: return VK_DESCRIPTOR_TYPE_STORAGE_IMAGE;
  default: return VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER;
  }
}

VkFormat door_texel_format(uint8_t kind) {
  static const VkFormat texels[RT_SLOT_COUNT] = {
      [RT_SLOT_F32X4] = VK_FORMAT_R32G32B32A32_SFLOAT, [RT_SLOT_F32] = VK_FORMAT_R32_SFLOAT,
      [RT_SLOT_U32X4] = VK_FORMAT_R32G32B32A32_UINT,   [RT_SLOT_U32] = VK_FORMAT_R32_UINT,
      [RT_SLOT_I32X4] = VK_FORMAT_R32G32B32A32_SINT,   [RT_SLOT_I32] = VK_FORMAT_R32_SINT,
      [RT_SLOT_F16X4] = VK_FORMAT_R16G16B16A16_SFLOAT, [RT_SLOT_U8X4] = VK_FORMAT_R8G8B8A8_UINT,
  };
  return texels[kind];
}

void door_slot_binding(const snt_exec *x, uint32_t kernel, uint32_t slot, VkDescriptorSetLayoutBinding *out) {
  *out = (VkDescriptorSetLayoutBinding){.binding = slot,
                                        .descriptorType = door_descriptor_type(x->program->kernels[kernel].kinds[slot]),
                                        .descriptorCount = 1,
                                        .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT};
  if (x->door->sampler && out->descriptorType == VK_DESCRIPTOR_TYPE_COMBINED_IMAGE_SAMPLER) out->pImmutableSamplers = &x->door->sampler;
}

/* As kir_address_at lays them out: behind the group count, in the order of the slots. */
static uint32_t first_address(const api_kernel *k) { return (k->block_bytes + 4 + 7) / 8 * 8; }

static uint32_t addresses_before(const api_kernel *k, uint32_t slot) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < slot; i++) count += k->kinds[i] == RT_SLOT_ADDRESS;
  return count;
}

uint32_t door_address_at(const snt_exec *x, uint32_t kernel, uint32_t slot) {
  const api_kernel *k = &x->program->kernels[kernel];
  return k->kinds[slot] == RT_SLOT_ADDRESS ? first_address(k) + 8 * addresses_before(k, slot) : 0;
}

uint32_t door_push_bytes(const snt_exec *x, uint32_t kernel) {
  const api_kernel *k = &x->program->kernels[kernel];
  const uint32_t count = addresses_before(k, k->binding_count);
  return count ? first_address(k) + 8 * count : k->block_bytes + 4;
}
