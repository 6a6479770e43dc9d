/* Images of a Vulkan device that Sinter opened: rt_buffers of rows of texels, kept in the GENERAL layout; copies go through the stream's staging
   buffer, whole rows at a time. A first upload takes an image out of its undefined layout. */
#include "runtime/rt_vulkan.h"

// clang-format off
static const struct image_format { const char *name; VkFormat format; uint32_t bytes; } formats[] = {
    {"rgba32f", VK_FORMAT_R32G32B32A32_SFLOAT, 16}, {"rgba16f", VK_FORMAT_R16G16B16A16_SFLOAT, 8}, {"r32f", VK_FORMAT_R32_SFLOAT, 4},
    {"rgba8", VK_FORMAT_R8G8B8A8_UNORM, 4}, {"rgba32ui", VK_FORMAT_R32G32B32A32_UINT, 16}, {"rgba32i", VK_FORMAT_R32G32B32A32_SINT, 16},
    {"r32ui", VK_FORMAT_R32_UINT, 4},
};
// clang-format on

static VkResult make(vk_device *device, vk_buffer *b, VkFormat format) {
  const vk_api *api = &device->instance->api;
  const VkImageCreateInfo info = {.sType = VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO,
                                  .imageType = VK_IMAGE_TYPE_2D,
                                  .format = format,
                                  .extent = {b->width, b->height, 1},
                                  .mipLevels = 1,
                                  .arrayLayers = 1,
                                  .samples = VK_SAMPLE_COUNT_1_BIT,
                                  .tiling = VK_IMAGE_TILING_OPTIMAL,
                                  .usage = VK_IMAGE_USAGE_SAMPLED_BIT | VK_IMAGE_USAGE_STORAGE_BIT | VK_IMAGE_USAGE_TRANSFER_SRC_BIT |
                                           VK_IMAGE_USAGE_TRANSFER_DST_BIT};
  VkMemoryRequirements needs;
  VkMemoryAllocateInfo memory = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};
  VkResult code = api->vkCreateImage(device->handle, &info, NULL, &b->image);
  if (code != VK_SUCCESS) return code;
  api->vkGetImageMemoryRequirements(device->handle, b->image, &needs);
  memory.allocationSize = needs.size;
  if (!vk_choose_type(device, needs.memoryTypeBits, false, &memory.memoryTypeIndex)) return VK_ERROR_OUT_OF_DEVICE_MEMORY;
  code = api->vkAllocateMemory(device->handle, &memory, NULL, &b->memory.memory);
  if (code == VK_SUCCESS) code = api->vkBindImageMemory(device->handle, b->image, b->memory.memory, 0);
  const VkImageViewCreateInfo view = {.sType = VK_STRUCTURE_TYPE_IMAGE_VIEW_CREATE_INFO,
                                      .image = b->image,
                                      .viewType = VK_IMAGE_VIEW_TYPE_2D,
                                      .format = format,
                                      .subresourceRange = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1}};
  return code == VK_SUCCESS ? api->vkCreateImageView(device->handle, &view, NULL, &b->image_view) : code;
}

snt_result vk_image_create(rt_device *base, const char *format, uint32_t width, uint32_t height, rt_buffer **out, snt_diag *diag) {
  vk_device *device = (vk_device *)base;
  const struct image_format *f = NULL;
  for (uint32_t i = 0; i < IR_COUNT(formats); i++)
    if (!strcmp(formats[i].name, format)) f = &formats[i];
  if (base->lost) return SNT_E_DEVICE_LOST;
  if (!f || !width || !height) return ir_fail(diag, SNT_E_UNSUPPORTED, "image", 0, "an image of format %s", format);
  vk_buffer *b = rt_take(base->alloc, sizeof *b);
  if (!b) return ir_fail(diag, SNT_E_HOST_MEM, "image", 0, "out of memory");
  b->base = (rt_buffer){.v = base->v, .device = base, .bytes = (uint64_t)width * height * f->bytes};
  b->width = width, b->height = height, b->texel_bytes = f->bytes;
  rt_lock_init(&b->lock);
  rt_lock_take(&device->queue_lock);
  b->serial = ++device->next_serial;
  rt_lock_give(&device->queue_lock);
  const VkResult code = make(device, b, f->format);
  const snt_result r = vk_judge(device, code == VK_SUCCESS ? SNT_OK : vk_fail(device, code, "image", "vkCreateImage", diag), diag);
  if (r != SNT_OK) vk_buffer_destroy(&b->base);
  else *out = &b->base;
  return r;
}

static void to_general(const vk_api *api, VkCommandBuffer commands, vk_buffer *b) {
  const VkImageMemoryBarrier barrier = {.sType = VK_STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER,
                                        .dstAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT | VK_ACCESS_TRANSFER_READ_BIT,
                                        .oldLayout = VK_IMAGE_LAYOUT_UNDEFINED,
                                        .newLayout = VK_IMAGE_LAYOUT_GENERAL,
                                        .srcQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED,
                                        .dstQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED,
                                        .image = b->image,
                                        .subresourceRange = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1}};
  api->vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT, 0, 0, NULL, 0, NULL, 1, &barrier);
  b->general = true;
}

static snt_result copy_rows(vk_stream *stream, vk_buffer *b, uint32_t first, uint32_t rows, bool up, snt_diag *diag) {
  const vk_api *api = vk_of(stream->base.device);
  const VkBufferImageCopy region = {
      .imageSubresource = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, 1}, .imageOffset = {0, (int32_t)first, 0}, .imageExtent = {b->width, rows, 1}};
  vk_batch *batch;
  SNT_TRY(vk_batch_begin(stream, 0, &batch, diag));
  if (!b->general) to_general(api, batch->commands, b);
  if (up) api->vkCmdCopyBufferToImage(batch->commands, stream->staging.buffer, b->image, VK_IMAGE_LAYOUT_GENERAL, 1, &region);
  else api->vkCmdCopyImageToBuffer(batch->commands, b->image, VK_IMAGE_LAYOUT_GENERAL, stream->staging.buffer, 1, &region);
  SNT_TRY(vk_batch_end(stream, batch, diag));
  SNT_TRY(vk_batch_submit(stream, batch, diag));
  return vk_wait(&stream->base, diag);
}

snt_result vk_image_copy(vk_stream *stream, vk_buffer *b, uint64_t offset, char *host, uint64_t bytes, bool up, snt_diag *diag) {
  const uint64_t row = (uint64_t)b->width * b->texel_bytes;
  if (offset % row || bytes % row)
    return ir_fail(diag, SNT_E_ARG, "image", 0, "images are copied in whole rows of %llu bytes", (unsigned long long)row);
  SNT_TRY(vk_ensure_staging(stream, diag));
  const uint64_t most = stream->staging.bytes / row;
  if (!most) return ir_fail(diag, SNT_E_LIMIT, "image", 0, "a row of %llu bytes", (unsigned long long)row);
  for (uint64_t done = 0; done < bytes / row;) {
    const uint64_t left = bytes / row - done, rows = left < most ? left : most;
    if (up) memcpy(stream->staging.host, host + done * row, rows * row);
    SNT_TRY(copy_rows(stream, b, (uint32_t)(offset / row + done), (uint32_t)rows, up, diag));
    if (!up) memcpy(host + done * row, stream->staging.host, rows * row);
    done += rows;
  }
  return SNT_OK;
}
