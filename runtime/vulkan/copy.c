/* Copies between the host and buffers of Vulkan, in the stream's order, over on return: as memory where it is shared, else by a staging buffer. */
#include "runtime/rt_vulkan.h"

static snt_result copy_staged(vk_stream *stream, vk_buffer *buffer, uint64_t offset, uint64_t bytes, bool up, snt_diag *diag) {
  vk_device *device = (vk_device *)stream->base.device;
  const vk_api *api = &device->instance->api;
  vk_batch *batch;
  SNT_TRY(vk_batch_begin(stream, 0, &batch, diag));
  const VkBufferCopy region = {.srcOffset = up ? 0 : offset, .dstOffset = up ? offset : 0, .size = bytes};
  VkBuffer from = up ? stream->staging.buffer : buffer->memory.buffer, to = up ? buffer->memory.buffer : stream->staging.buffer;
  api->vkCmdCopyBuffer(batch->commands, from, to, 1, &region);
  SNT_TRY(vk_batch_end(stream, batch, diag));
  SNT_TRY(vk_batch_submit(stream, batch, diag));
  return vk_wait(&stream->base, diag);
}

static snt_result copy_by_staging(vk_stream *stream, vk_buffer *buffer, uint64_t offset, char *host, uint64_t bytes, bool up,
                                  snt_diag *diag) {
  SNT_TRY(vk_ensure_staging(stream, diag));
  for (uint64_t done = 0; done < bytes;) {
    uint64_t part = bytes - done < VK_STAGING_BYTES ? bytes - done : VK_STAGING_BYTES;
    if (up) memcpy(stream->staging.host, host + done, part);
    SNT_TRY(copy_staged(stream, buffer, offset + done, part, up, diag));
    if (!up) memcpy(host + done, stream->staging.host, part);
    done += part;
  }
  return SNT_OK;
}

static snt_result copy(rt_stream *base, rt_buffer *buffer, uint64_t offset, char *host, uint64_t bytes, bool up, snt_diag *diag) {
  if (base->device->lost) return SNT_E_DEVICE_LOST;
  SNT_TRY(rt_check_range(buffer, offset, bytes, diag));
  SNT_TRY(vk_wait(base, diag)); /* earlier kernels of this stream, also when memory is shared */
  if (bytes == 0) return SNT_OK;
  if (((vk_buffer *)buffer)->image) return vk_image_copy((vk_stream *)base, (vk_buffer *)buffer, offset, host, bytes, up, diag);
  if (!buffer->host) return copy_by_staging((vk_stream *)base, (vk_buffer *)buffer, offset, host, bytes, up, diag);
  if (up) memcpy((char *)buffer->host + offset, host, bytes);
  else memcpy(host, (const char *)buffer->host + offset, bytes);
  return SNT_OK;
}

snt_result vk_upload(rt_stream *stream, rt_buffer *buffer, uint64_t offset, const void *src, uint64_t bytes, snt_diag *diag) {
  return copy(stream, buffer, offset, (char *)(uintptr_t)src, bytes, true, diag); /* only read in this direction */
}

snt_result vk_download(rt_stream *stream, rt_buffer *buffer, uint64_t offset, void *dst, uint64_t bytes, snt_diag *diag) {
  return copy(stream, buffer, offset, dst, bytes, false, diag);
}
