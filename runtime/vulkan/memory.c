/* Vulkan memory: one VkBuffer and one allocation a buffer. Where host and device share memory it stays mapped (rt_buffer.host) and copies
   are memcpy; elsewhere they go through the stream's staging buffer. Texel views of ranges are made once. */
#include "runtime/rt_vulkan.h"

enum { VK_BUFFER_ROUND = 64 };

/* ---- allocation ---- */

static bool pick_type(const vk_device *device, uint32_t allowed, VkMemoryPropertyFlags wanted, uint32_t *out) {
  VkPhysicalDeviceMemoryProperties memory;
  device->instance->api.vkGetPhysicalDeviceMemoryProperties(device->physical, &memory);
  for (uint32_t i = 0; i < memory.memoryTypeCount; i++) {
    if ((allowed >> i & 1) && (memory.memoryTypes[i].propertyFlags & wanted) == wanted) {
      *out = i;
      return true;
    }
  }
  return false;
}

/* Best first; the last of each list is what Vulkan guarantees to exist. */
bool vk_choose_type(const vk_device *device, uint32_t allowed, bool for_host, uint32_t *out) {
  const VkMemoryPropertyFlags host = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT,
                              cached = host | VK_MEMORY_PROPERTY_HOST_CACHED_BIT, local = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
  if (for_host)
    return pick_type(device, allowed, cached | local, out) || pick_type(device, allowed, cached, out) ||
           pick_type(device, allowed, host, out);
  return pick_type(device, allowed, local, out) || pick_type(device, allowed, 0, out);
}

void vk_memory_destroy(vk_device *device, vk_memory *memory) {
  const vk_api *api = &device->instance->api;
  api->vkDestroyBuffer(device->handle, memory->buffer, NULL);
  api->vkFreeMemory(device->handle, memory->memory, NULL); /* unmaps */
  *memory = (vk_memory){0};
}

static VkResult bind_memory(vk_device *device, bool for_host, vk_memory *memory) {
  const vk_api *api = &device->instance->api;
  VkMemoryRequirements needs;
  VkMemoryAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};
  api->vkGetBufferMemoryRequirements(device->handle, memory->buffer, &needs);
  info.allocationSize = needs.size;
  if (!vk_choose_type(device, needs.memoryTypeBits, for_host, &info.memoryTypeIndex)) return VK_ERROR_OUT_OF_DEVICE_MEMORY;
  VkResult code = api->vkAllocateMemory(device->handle, &info, NULL, &memory->memory);
  if (code == VK_SUCCESS) code = api->vkBindBufferMemory(device->handle, memory->buffer, memory->memory, 0);
  if (code == VK_SUCCESS && for_host) code = api->vkMapMemory(device->handle, memory->memory, 0, VK_WHOLE_SIZE, 0, &memory->host);
  return code;
}

snt_result vk_memory_create(vk_device *device, VkDeviceSize bytes, VkBufferUsageFlags usage, bool for_host, vk_memory *out,
                            snt_diag *diag) {
  if (bytes > device->max_allocation) {
    return ir_fail(diag, SNT_E_DEVICE_MEM, "buffer", 0, "%llu bytes, the device allows %llu", (unsigned long long)bytes,
                   (unsigned long long)device->max_allocation);
  }
  const VkBufferCreateInfo info = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO, .size = bytes, .usage = usage};
  vk_memory memory = {.bytes = bytes};
  VkResult code = device->instance->api.vkCreateBuffer(device->handle, &info, NULL, &memory.buffer);
  if (code == VK_SUCCESS) code = bind_memory(device, for_host, &memory);
  if (code != VK_SUCCESS) {
    vk_memory_destroy(device, &memory);
    return vk_fail(device, code, "buffer", "vkAllocateMemory", diag);
  }
  *out = memory;
  return SNT_OK;
}

/* ---- buffers ---- */

snt_result vk_buffer_create(rt_device *base, uint64_t bytes, rt_buffer **out, snt_diag *diag) {
  vk_device *device = (vk_device *)base;
  const VkBufferUsageFlags usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_UNIFORM_TEXEL_BUFFER_BIT |
                                   VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT;
  if (base->lost) return SNT_E_DEVICE_LOST;
  if (bytes > UINT64_MAX / 2) return ir_fail(diag, SNT_E_DEVICE_MEM, "buffer", 0, "%llu bytes", (unsigned long long)bytes);
  vk_buffer *buffer = rt_take(base->alloc, sizeof *buffer);
  if (!buffer) return ir_fail(diag, SNT_E_HOST_MEM, "buffer", 0, "out of memory");
  buffer->base = (rt_buffer){.v = base->v, .device = base, .bytes = bytes ? bytes : RT_EMPTY_BYTES};
  rt_lock_init(&buffer->lock);
  uint64_t rounded = (buffer->base.bytes + VK_BUFFER_ROUND - 1) / VK_BUFFER_ROUND *
                     VK_BUFFER_ROUND; /* a last, part-filled texel is inside */
  snt_result result = vk_memory_create(device, rounded, usage, device->unified, &buffer->memory, diag);
  if (result != SNT_OK) {
    rt_lock_drop(&buffer->lock);
    rt_give(base->alloc, buffer, sizeof *buffer);
    return vk_judge(device, result, diag);
  }
  buffer->base.host = buffer->memory.host;
  rt_lock_take(&device->queue_lock);
  buffer->serial = ++device->next_serial;
  rt_lock_give(&device->queue_lock);
  *out = &buffer->base;
  return SNT_OK;
}

void vk_buffer_destroy(rt_buffer *base) {
  if (!base) return;
  vk_buffer *buffer = (vk_buffer *)base;
  vk_device *device = (vk_device *)base->device;
  for (uint32_t i = 0; i < buffer->view_count; i++)
    device->instance->api.vkDestroyBufferView(device->handle, buffer->views[i].handle, NULL);
  device->instance->api.vkDestroyImageView(device->handle, buffer->image_view, NULL);
  device->instance->api.vkDestroyImage(device->handle, buffer->image, NULL);
  vk_memory_destroy(device, &buffer->memory);
  rt_lock_drop(&buffer->lock);
  rt_give(base->device->alloc, buffer->views, buffer->view_capacity * sizeof *buffer->views);
  rt_give(base->device->alloc, buffer, sizeof *buffer);
}

/* ---- texel views ---- */

static const struct {
  VkFormat format;
  uint32_t bytes;
} texels[RT_SLOT_COUNT] = {
    [RT_SLOT_F32X4] = {VK_FORMAT_R32G32B32A32_SFLOAT, 16}, [RT_SLOT_F32] = {VK_FORMAT_R32_SFLOAT, 4},
    [RT_SLOT_U32X4] = {VK_FORMAT_R32G32B32A32_UINT, 16},   [RT_SLOT_U32] = {VK_FORMAT_R32_UINT, 4},
    [RT_SLOT_I32X4] = {VK_FORMAT_R32G32B32A32_SINT, 16},   [RT_SLOT_I32] = {VK_FORMAT_R32_SINT, 4},
    [RT_SLOT_F16X4] = {VK_FORMAT_R16G16B16A16_SFLOAT, 8},  [RT_SLOT_U8X4] = {VK_FORMAT_R8G8B8A8_UINT, 4},
};

uint64_t vk_slot_bytes(const vk_device *device, uint32_t kind) {
  const uint32_t texel = kind < IR_COUNT(texels) ? texels[kind].bytes : 0;
  return texel ? (uint64_t)device->max_texels * texel : device->base.profile.max_buffer_bytes;
}

static VkResult make_view(vk_device *device, vk_buffer *buffer, uint64_t offset, uint64_t bytes, uint32_t kind, VkBufferView *out) {
  uint32_t texel = texels[kind].bytes;
  uint64_t range = (bytes + texel - 1) / texel * texel;
  if (range == 0) range = texel;
  if (range / texel > device->max_texels) return VK_ERROR_OUT_OF_DEVICE_MEMORY;
  const VkBufferViewCreateInfo info = {.sType = VK_STRUCTURE_TYPE_BUFFER_VIEW_CREATE_INFO,
                                       .buffer = buffer->memory.buffer,
                                       .format = texels[kind].format,
                                       .offset = offset,
                                       .range = range};
  VkResult code = device->instance->api.vkCreateBufferView(device->handle, &info, NULL, out);
  if (code != VK_SUCCESS) return code;
  if (!rt_grow(device->base.alloc, (void **)&buffer->views, &buffer->view_capacity, buffer->view_count + 1, sizeof *buffer->views)) {
    device->instance->api.vkDestroyBufferView(device->handle, *out, NULL);
    return VK_ERROR_OUT_OF_HOST_MEMORY;
  }
  buffer->views[buffer->view_count++] = (vk_view){offset, bytes, kind, *out};
  return VK_SUCCESS;
}

VkResult vk_buffer_view(vk_buffer *buffer, uint64_t offset, uint64_t bytes, uint32_t kind, VkBufferView *out) {
  VkResult code = VK_SUCCESS;
  bool found = false;
  rt_lock_take(&buffer->lock);
  for (uint32_t i = 0; i < buffer->view_count && !found; i++) {
    const vk_view *view = &buffer->views[i];
    found = view->offset == offset && view->bytes == bytes && view->kind == kind;
    if (found) *out = view->handle;
  }
  if (!found) code = make_view((vk_device *)buffer->base.device, buffer, offset, bytes, kind, out);
  rt_lock_give(&buffer->lock);
  return code;
}

snt_result vk_ensure_staging(vk_stream *stream, snt_diag *diag) {
  const VkBufferUsageFlags usage = VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT;
  if (stream->staging.buffer) return SNT_OK;
  return vk_memory_create((vk_device *)stream->base.device, VK_STAGING_BYTES, usage, true, &stream->staging, diag);
}
