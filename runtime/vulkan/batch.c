/* Recordings of a stream: command buffer, fence and queries, made once and used again when the device is done with them and no event
   looks at them. In steady state nothing is created, and a submission like one before is not even recorded: its commands are submitted again.
   The list of pending ones is in submission order. */
#include "runtime/rt_vulkan.h"

enum { MAX_PENDING = 64, MAX_KEPT = 4 }; /* kept: idle recordings that stay for what comes again */

static void destroy_batch(vk_stream *stream, vk_batch *batch) {
  vk_device *device = (vk_device *)stream->base.device;
  const vk_api *api = &device->instance->api;
  api->vkDestroyFence(device->handle, batch->fence, NULL);
  api->vkDestroyQueryPool(device->handle, batch->queries, NULL); /* the command buffer goes with its pool */
  rt_give(device->base.alloc, batch->ticks, batch->query_capacity * sizeof *batch->ticks);
  rt_give(device->base.alloc, batch->calls.at, batch->calls.capacity * sizeof *batch->calls.at);
  rt_give(device->base.alloc, batch, sizeof *batch);
}

static snt_result create_batch(vk_stream *stream, vk_batch **out, snt_diag *diag) {
  vk_device *device = (vk_device *)stream->base.device;
  const vk_api *api = &device->instance->api;
  vk_batch *batch = rt_take(device->base.alloc, sizeof *batch);
  if (!batch) return ir_fail(diag, SNT_E_HOST_MEM, "submit", 0, "out of memory");
  const VkCommandBufferAllocateInfo commands = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                                .commandPool = stream->pool,
                                                .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                                .commandBufferCount = 1};
  const VkFenceCreateInfo fence = {.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
  VkResult code = api->vkAllocateCommandBuffers(device->handle, &commands, &batch->commands);
  if (code == VK_SUCCESS) code = api->vkCreateFence(device->handle, &fence, NULL, &batch->fence);
  if (code != VK_SUCCESS) {
    destroy_batch(stream, batch);
    return vk_fail(device, code, "submit", "vkAllocateCommandBuffers", diag);
  }
  *out = batch;
  return SNT_OK;
}

static snt_result ensure_queries(vk_stream *stream, vk_batch *batch, uint32_t count, snt_diag *diag) {
  vk_device *device = (vk_device *)stream->base.device;
  const vk_api *api = &device->instance->api;
  if (count <= batch->query_capacity) return SNT_OK;
  api->vkDestroyQueryPool(device->handle, batch->queries, NULL);
  batch->queries = VK_NULL_HANDLE;
  rt_give(device->base.alloc, batch->ticks, batch->query_capacity * sizeof *batch->ticks);
  batch->query_capacity = 0;
  uint32_t rounded = (count + 63) / 64 * 64;
  batch->ticks = rt_take(device->base.alloc, rounded * sizeof *batch->ticks);
  if (!batch->ticks) return ir_fail(diag, SNT_E_HOST_MEM, "submit", 0, "out of memory");
  batch->query_capacity = rounded;
  const VkQueryPoolCreateInfo info = {
      .sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO, .queryType = VK_QUERY_TYPE_TIMESTAMP, .queryCount = rounded};
  VkResult code = api->vkCreateQueryPool(device->handle, &info, NULL, &batch->queries);
  return code == VK_SUCCESS ? SNT_OK : vk_fail(device, code, "submit", "vkCreateQueryPool", diag);
}

/* ---- lists ---- */

static void push_idle(vk_stream *stream, vk_batch *batch) {
  batch->next = stream->idle;
  stream->idle = batch;
}

static void pop_pending(vk_stream *stream) {
  vk_batch *batch = stream->pending;
  stream->pending = batch->next;
  if (!stream->pending) stream->pending_tail = &stream->pending;
  batch->pending = false;
  if (!batch->held) push_idle(stream, batch);
}

/* Waits for the oldest; SNT_NOT_READY when it is not over in time. */
static snt_result finish_oldest(vk_stream *stream, uint64_t timeout_ns, snt_diag *diag) {
  vk_device *device = (vk_device *)stream->base.device;
  VkResult code = device->instance->api.vkWaitForFences(device->handle, 1, &stream->pending->fence, VK_TRUE, timeout_ns);
  if (code == VK_TIMEOUT) return SNT_NOT_READY;
  if (code != VK_SUCCESS) return vk_fail(device, code, "wait", "vkWaitForFences", diag);
  pop_pending(stream);
  return SNT_OK;
}

static snt_result reap(vk_stream *stream, snt_diag *diag) {
  uint32_t pending = 0;
  for (const vk_batch *batch = stream->pending; batch; batch = batch->next) pending++;
  while (stream->pending) {
    snt_result result = finish_oldest(stream, pending >= MAX_PENDING ? UINT64_MAX : 0, diag);
    if (result == SNT_NOT_READY) return SNT_OK;
    if (result != SNT_OK) return result;
    pending--;
  }
  return SNT_OK;
}

/* ---- recording ---- */

/* What came before in the queue, and what the host wrote, is seen by what follows. */
static void begin_barrier(const vk_api *api, VkCommandBuffer commands) {
  const VkMemoryBarrier barrier = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                                   .srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT | VK_ACCESS_HOST_WRITE_BIT,
                                   .dstAccessMask = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_READ_BIT |
                                                    VK_ACCESS_TRANSFER_WRITE_BIT};
  const VkPipelineStageFlags device = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
  api->vkCmdPipelineBarrier(commands, device | VK_PIPELINE_STAGE_HOST_BIT, device, 0, 1, &barrier, 0, NULL, 0, NULL);
}

static void end_barrier(const vk_api *api, VkCommandBuffer commands) {
  const VkMemoryBarrier barrier = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                                   .srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT,
                                   .dstAccessMask = VK_ACCESS_HOST_READ_BIT | VK_ACCESS_HOST_WRITE_BIT};
  api->vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_HOST_BIT, 0,
                            1, &barrier, 0, NULL, 0, NULL);
}

/* The link to an idle batch whose recording nobody will want again: one that holds none, else the oldest. Null while more may be made. */
static vk_batch **choose_idle(vk_stream *stream) {
  vk_batch **chosen = NULL;
  uint32_t kept = 0;
  for (vk_batch **link = &stream->idle; *link; link = &(*link)->next, kept++) {
    if (!(*link)->calls.count) return link;
    chosen = link;
  }
  return kept < MAX_KEPT ? NULL : chosen;
}

snt_result vk_batch_begin(vk_stream *stream, uint32_t timed_count, vk_batch **out, snt_diag *diag) {
  vk_device *device = (vk_device *)stream->base.device;
  const vk_api *api = &device->instance->api;
  SNT_TRY(reap(stream, diag));
  vk_batch **link = choose_idle(stream);
  if (!link) {
    vk_batch *fresh = NULL;
    SNT_TRY(create_batch(stream, &fresh, diag));
    push_idle(stream, fresh);
    link = &stream->idle;
  }
  vk_batch *batch = *link;
  if (timed_count) SNT_TRY(ensure_queries(stream, batch, timed_count + 1, diag));
  batch->calls.count = 0;
  const VkCommandBufferBeginInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  VkResult code = api->vkBeginCommandBuffer(batch->commands, &info);
  if (code != VK_SUCCESS) return vk_fail(device, code, "submit", "vkBeginCommandBuffer", diag);
  *link = batch->next;
  batch->next = NULL, batch->timed_count = timed_count;
  begin_barrier(api, batch->commands);
  if (timed_count) {
    api->vkCmdResetQueryPool(batch->commands, batch->queries, 0, timed_count + 1);
    api->vkCmdWriteTimestamp(batch->commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, batch->queries, 0);
  }
  *out = batch;
  return SNT_OK;
}

static bool holds(const vk_batch *batch, const vk_calls *calls) {
  return batch->calls.count == calls->count && !memcmp(batch->calls.at, calls->at, calls->count * sizeof *calls->at);
}

vk_batch *vk_batch_again(vk_stream *stream, snt_diag *diag) {
  if (!stream->calls.count || reap(stream, diag) != SNT_OK) return NULL;
  for (vk_batch **link = &stream->idle; *link; link = &(*link)->next) {
    vk_batch *batch = *link;
    if (!holds(batch, &stream->calls)) continue;
    *link = batch->next;
    batch->next = NULL, batch->timed_count = 0;
    return batch;
  }
  return NULL;
}

/* Without memory for it the batch is recorded anew each time. */
void vk_batch_keep(vk_stream *stream, vk_batch *batch) {
  const snt_host_alloc *alloc = stream->base.device->alloc;
  const vk_calls *calls = &stream->calls;
  if (!calls->count || !rt_grow(alloc, (void **)&batch->calls.at, &batch->calls.capacity, calls->count, sizeof *calls->at)) return;
  memcpy(batch->calls.at, calls->at, calls->count * sizeof *calls->at);
  batch->calls.count = calls->count;
}

void vk_batches_forget(vk_stream *stream) {
  for (vk_batch *batch = stream->idle; batch; batch = batch->next) batch->calls.count = 0;
  for (vk_batch *batch = stream->pending; batch; batch = batch->next) batch->calls.count = 0;
}

void vk_batch_drop(vk_stream *stream, vk_batch *batch) {
  vk_of(stream->base.device)->vkEndCommandBuffer(batch->commands);
  push_idle(stream, batch);
}

static VkResult queue_submit(vk_device *device, const vk_batch *batch) {
  const VkSubmitInfo info = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO, .commandBufferCount = 1, .pCommandBuffers = &batch->commands};
  rt_lock_take(&device->queue_lock);
  VkResult code = device->instance->api.vkQueueSubmit(device->queue, 1, &info, batch->fence);
  rt_lock_give(&device->queue_lock);
  return code;
}

snt_result vk_batch_end(vk_stream *stream, vk_batch *batch, snt_diag *diag) {
  vk_device *device = (vk_device *)stream->base.device;
  const vk_api *api = &device->instance->api;
  end_barrier(api, batch->commands);
  VkResult code = api->vkEndCommandBuffer(batch->commands);
  if (code == VK_SUCCESS) return SNT_OK;
  push_idle(stream, batch);
  return vk_fail(device, code, "submit", "vkEndCommandBuffer", diag);
}

snt_result vk_batch_submit(vk_stream *stream, vk_batch *batch, snt_diag *diag) {
  vk_device *device = (vk_device *)stream->base.device;
  VkResult code = device->instance->api.vkResetFences(device->handle, 1, &batch->fence);
  if (code == VK_SUCCESS) code = queue_submit(device, batch);
  if (code != VK_SUCCESS) {
    batch->calls.count = 0;
    push_idle(stream, batch);
    return vk_fail(device, code, "submit", "vkQueueSubmit", diag);
  }
  batch->pending = true;
  *stream->pending_tail = batch;
  stream->pending_tail = &batch->next;
  return SNT_OK;
}

/* ---- the end ---- */

snt_result vk_batch_finish(vk_stream *stream, vk_batch *batch, uint64_t timeout_ns, snt_diag *diag) {
  uint64_t begin = timeout_ns == UINT64_MAX ? 0 : rt_clock_ns();
  while (batch->pending) {
    uint64_t left = UINT64_MAX;
    if (timeout_ns != UINT64_MAX) {
      uint64_t spent = rt_clock_ns() - begin;
      left = spent < timeout_ns ? timeout_ns - spent : 0;
    }
    SNT_TRY(finish_oldest(stream, left, diag));
  }
  return SNT_OK;
}

void vk_batch_release(vk_stream *stream, vk_batch *batch) {
  batch->held = false;
  if (!batch->pending) push_idle(stream, batch);
}

/* Also when the device is lost, or thought to be: the driver answers then, and nothing is destroyed under running work. */
void vk_batches_destroy(vk_stream *stream) {
  const vk_device *device = (const vk_device *)stream->base.device;
  for (const vk_batch *batch = stream->pending; batch; batch = batch->next) {
    device->instance->api.vkWaitForFences(device->handle, 1, &batch->fence, VK_TRUE, UINT64_MAX);
  }
  for (vk_batch *lists[] = {stream->pending, stream->idle}, **list = lists; list < lists + 2; list++) {
    for (vk_batch *batch = *list; batch;) {
      vk_batch *next = batch->next;
      destroy_batch(stream, batch);
      batch = next;
    }
  }
  stream->pending = stream->idle = NULL;
}
