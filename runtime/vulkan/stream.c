/* Vulkan streams: dispatches are checked and recorded into a batch, then submitted; what was recorded before is submitted as it is. Barriers
   only where the plan has a dependence. Times are timestamps behind each dispatch, or the host's clock around single ones. */
#include "runtime/rt_vulkan.h"

snt_result vk_stream_create(rt_device *base, rt_stream **out, snt_diag *diag) {
  vk_device *device = (vk_device *)base;
  if (base->lost) return SNT_E_DEVICE_LOST;
  vk_stream *stream = rt_take(base->alloc, sizeof *stream);
  if (!stream) return ir_fail(diag, SNT_E_HOST_MEM, "stream", 0, "out of memory");
  stream->base = (rt_stream){.v = base->v, .device = base};
  stream->pending_tail = &stream->pending;
  const VkCommandPoolCreateInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                        .flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
                                        .queueFamilyIndex = device->family};
  VkResult code = device->instance->api.vkCreateCommandPool(device->handle, &info, NULL, &stream->pool);
  if (code != VK_SUCCESS) {
    rt_give(base->alloc, stream, sizeof *stream);
    return vk_fail(device, code, "stream", "vkCreateCommandPool", diag);
  }
  *out = &stream->base;
  return SNT_OK;
}

snt_result vk_wait(rt_stream *base, snt_diag *diag) {
  vk_stream *stream = (vk_stream *)base;
  if (base->device->lost) return SNT_E_DEVICE_LOST;
  while (stream->pending) SNT_TRY(vk_batch_finish(stream, stream->pending, UINT64_MAX, diag));
  return vk_judge((vk_device *)base->device, SNT_OK, diag);
}

void vk_stream_destroy(rt_stream *base) {
  if (!base) return;
  vk_stream *stream = (vk_stream *)base;
  vk_device *device = (vk_device *)base->device;
  vk_batches_destroy(stream);
  vk_forget_sets(stream, true);
  if (stream->staging.buffer) vk_memory_destroy(device, &stream->staging);
  rt_give(base->device->alloc, stream->calls.at, stream->calls.capacity * sizeof *stream->calls.at);
  device->instance->api.vkDestroyCommandPool(device->handle, stream->pool, NULL);
  rt_give(base->device->alloc, stream, sizeof *stream);
}

/* ---- recording ---- */

static void record_barrier(const vk_api *api, VkCommandBuffer commands) {
  const VkMemoryBarrier barrier = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                                   .srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT,
                                   .dstAccessMask = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT};
  api->vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, 0, 1, &barrier, 0, NULL,
                            0, NULL);
}

static snt_result check_image(const rt_dispatch *dispatch, uint32_t slot, snt_diag *diag) {
  const uint8_t kind = ((const vk_pipeline *)dispatch->pipeline)->kinds[slot];
  const vk_buffer *buffer = (const vk_buffer *)dispatch->bindings[slot].buffer;
  if (rt_slot_is_image(kind) != (buffer->image != VK_NULL_HANDLE))
    return ir_fail(diag, SNT_E_ARG, "submit", 0, "slot %u is %s", slot, rt_slot_is_image(kind) ? "an image" : "no image");
  if (buffer->image && !buffer->general) return ir_fail(diag, SNT_E_ORDER, "submit", 0, "nothing was put into the image of slot %u", slot);
  return SNT_OK;
}

static snt_result check_ranges(const vk_device *device, const rt_dispatch *dispatch, snt_diag *diag) {
  for (uint32_t slot = 0; slot < dispatch->binding_count; slot++) {
    SNT_TRY(check_image(dispatch, slot, diag));
    if (((const vk_buffer *)dispatch->bindings[slot].buffer)->image) continue;
    const uint64_t most = vk_slot_bytes(device, ((const vk_pipeline *)dispatch->pipeline)->kinds[slot]);
    if (dispatch->bindings[slot].bytes <= most) continue;
    return ir_fail(diag, SNT_E_LIMIT, "submit", 0, "slot %u has %llu bytes, a binding may have %llu", slot,
                   (unsigned long long)dispatch->bindings[slot].bytes, (unsigned long long)most);
  }
  return SNT_OK;
}

/* Checks a dispatch and says what is recorded for it; all bytes of a call are set, because calls are compared so. */
static snt_result describe_one(vk_stream *stream, const rt_dispatch *dispatch, vk_call *call, snt_diag *diag) {
  vk_device *device = (vk_device *)stream->base.device;
  const vk_pipeline *pipeline = (const vk_pipeline *)dispatch->pipeline;
  rt_shape shape;
  SNT_TRY(rt_check_dispatch(&device->base, dispatch, pipeline->binding_count, diag));
  SNT_TRY(check_ranges(device, dispatch, diag));
  if (dispatch->block_bytes != pipeline->block_bytes) {
    return ir_fail(diag, SNT_E_ARG, "submit", 0, "%u bytes of scalars for a kernel with %u", dispatch->block_bytes, pipeline->block_bytes);
  }
  memset(call, 0, sizeof *call);
  call->barrier = dispatch->barrier;
  if (dispatch->groups == 0) return SNT_OK;
  SNT_TRY(rt_dispatch_shape(&device->base, dispatch, &shape, diag));
  call->pipeline = pipeline, call->serial = pipeline->serial;
  call->launches = 1, call->word_count = shape.word_count;
  memcpy(call->grid, shape.grid, sizeof call->grid);
  memcpy(call->words, shape.words, shape.word_count * sizeof *shape.words);
  return vk_find_set(stream, dispatch, &call->set, diag);
}

static snt_result describe_all(vk_stream *stream, uint32_t count, const rt_dispatch *dispatches, snt_diag *diag) {
  vk_calls *calls = &stream->calls;
  calls->count = 0;
  if (!rt_grow(stream->base.device->alloc, (void **)&calls->at, &calls->capacity, count, sizeof *calls->at))
    return ir_fail(diag, SNT_E_HOST_MEM, "submit", 0, "out of memory");
  for (uint32_t i = 0; i < count; i++) SNT_TRY(describe_one(stream, &dispatches[i], &calls->at[i], diag));
  calls->count = count;
  return SNT_OK;
}

static void record_all(vk_stream *stream, vk_batch *batch) {
  const vk_api *api = vk_of(stream->base.device);
  const VkPipelineBindPoint point = VK_PIPELINE_BIND_POINT_COMPUTE;
  for (uint32_t i = 0; i < stream->calls.count; i++) {
    const vk_call *c = &stream->calls.at[i];
    if (c->barrier) record_barrier(api, batch->commands);
    if (c->launches) {
      api->vkCmdBindPipeline(batch->commands, point, c->pipeline->handle);
      api->vkCmdBindDescriptorSets(batch->commands, point, c->pipeline->layout, 0, 1, &c->set, 0, NULL);
      api->vkCmdPushConstants(batch->commands, c->pipeline->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, 4 * c->word_count, c->words);
      api->vkCmdDispatch(batch->commands, c->grid[0], c->grid[1], c->grid[2]);
    }
    if (batch->timed_count) api->vkCmdWriteTimestamp(batch->commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, batch->queries, i + 1);
  }
}

static snt_result record_batch(vk_stream *stream, bool timed, vk_batch **out, snt_diag *diag) {
  SNT_TRY(vk_batch_begin(stream, timed ? stream->calls.count : 0, out, diag));
  record_all(stream, *out);
  SNT_TRY(vk_batch_end(stream, *out, diag));
  if (!timed) vk_batch_keep(stream, *out);
  return SNT_OK;
}

static snt_result submit_batch(vk_stream *stream, uint32_t count, const rt_dispatch *dispatches, bool timed, vk_batch **out,
                               snt_diag *diag) {
  if (vk_sets_crowded(stream)) {
    SNT_TRY(vk_wait(&stream->base, diag));
    vk_forget_sets(stream, false);
  }
  SNT_TRY(describe_all(stream, count, dispatches, diag));
  vk_batch *batch = timed ? NULL : vk_batch_again(stream, diag);
  if (!batch) SNT_TRY(record_batch(stream, timed, &batch, diag));
  SNT_TRY(vk_batch_submit(stream, batch, diag));
  *out = batch;
  return SNT_OK;
}

/* ---- events ---- */

void vk_event_destroy(rt_event *base) {
  if (!base) return;
  vk_event *event = (vk_event *)base;
  const snt_host_alloc *alloc = base->stream->device->alloc;
  if (event->batch) vk_batch_release((vk_stream *)base->stream, event->batch);
  rt_give(alloc, event->host_ns, event->host_count * sizeof *event->host_ns);
  rt_give(alloc, event, sizeof *event);
}

static snt_result event_create(vk_stream *stream, uint32_t host_count, vk_event **out, snt_diag *diag) {
  const snt_host_alloc *alloc = stream->base.device->alloc;
  vk_event *event = rt_take(alloc, sizeof *event);
  uint64_t *ns = host_count ? rt_take(alloc, host_count * sizeof *ns) : NULL;
  if (!event || (host_count && !ns)) {
    rt_give(alloc, event, sizeof *event);
    rt_give(alloc, ns, host_count * sizeof *ns);
    return ir_fail(diag, SNT_E_HOST_MEM, "submit", 0, "out of memory");
  }
  *event = (vk_event){.base = {.v = stream->base.v, .stream = &stream->base}, .host_count = host_count, .host_ns = ns};
  *out = event;
  return SNT_OK;
}

/* A queue without timestamps: one at a time, by the host's clock. */
static snt_result submit_by_clock(vk_stream *stream, uint32_t count, const rt_dispatch *dispatches, vk_event *event, snt_diag *diag) {
  for (uint32_t i = 0; i < count; i++) {
    vk_batch *batch;
    uint64_t begin = rt_clock_ns();
    SNT_TRY(submit_batch(stream, 1, &dispatches[i], false, &batch, diag));
    SNT_TRY(vk_batch_finish(stream, batch, UINT64_MAX, diag));
    event->host_ns[i] = rt_clock_ns() - begin;
  }
  return SNT_OK;
}

snt_result vk_submit(rt_stream *base, uint32_t count, const rt_dispatch *dispatches, bool timed, rt_event **out, snt_diag *diag) {
  vk_stream *stream = (vk_stream *)base;
  vk_device *device = (vk_device *)base->device;
  if (base->device->lost) return SNT_E_DEVICE_LOST;
  bool by_clock = out && timed && !device->timestamps;
  vk_event *event = NULL;
  vk_batch *batch = NULL;
  if (out) SNT_TRY(event_create(stream, by_clock ? count : 0, &event, diag));
  snt_result result = by_clock ? submit_by_clock(stream, count, dispatches, event, diag)
                               : submit_batch(stream, count, dispatches, out && timed && count, &batch, diag);
  result = vk_judge(device, result, diag);
  if (event && batch) event->batch = batch, batch->held = true;
  if (result != SNT_OK) vk_event_destroy(event ? &event->base : NULL);
  else if (out) *out = &event->base;
  return result;
}

snt_result vk_event_wait(rt_event *base, uint64_t timeout_ns) {
  vk_event *event = (vk_event *)base;
  if (base->stream->device->lost) return SNT_E_DEVICE_LOST;
  return event->batch ? vk_batch_finish((vk_stream *)base->stream, event->batch, timeout_ns, NULL) : SNT_OK;
}

snt_result vk_event_timings(rt_event *base, uint32_t *count, uint64_t *ns) {
  vk_event *event = (vk_event *)base;
  vk_device *device = (vk_device *)base->stream->device;
  vk_batch *batch = event->batch;
  SNT_TRY(vk_event_wait(base, UINT64_MAX));
  if (!batch || !batch->timed_count) return rt_copy_timings(event->host_ns, event->host_count, count, ns);
  uint32_t queries = batch->timed_count + 1, room = *count;
  uint64_t *ticks = batch->ticks;
  VkResult code = device->instance->api.vkGetQueryPoolResults(device->handle, batch->queries, 0, queries, queries * sizeof *ticks, ticks,
                                                              sizeof *ticks, VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT);
  if (code != VK_SUCCESS) return vk_fail(device, code, "wait", "vkGetQueryPoolResults", NULL);
  *count = batch->timed_count;
  if (!ns) return SNT_OK;
  for (uint32_t i = 0; i < batch->timed_count && i < room; i++) {
    uint64_t passed = (ticks[i + 1] - ticks[i]) & device->timestamp_mask;
    ns[i] = (uint64_t)((double)passed * device->timestamp_ns);
  }
  return room < batch->timed_count ? SNT_INCOMPLETE : SNT_OK;
}
