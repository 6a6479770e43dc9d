/* CUDA streams: launches in order, so barriers cost nothing. Parameters: a pointer a slot, then the scalar block with the group count as
   one struct by value. Timed dispatches have events between them, taken from the stream's pool. */
#include "runtime/rt_cuda.h"

snt_result cuda_stream_create(rt_device *base, rt_stream **out, snt_diag *diag) {
  cuda_device *device = (cuda_device *)base;
  if (base->lost) return SNT_E_DEVICE_LOST;
  cuda_stream *stream = rt_take(base->alloc, sizeof *stream);
  if (!stream) return ir_fail(diag, SNT_E_HOST_MEM, "stream", 0, "out of memory");
  stream->base = (rt_stream){.v = base->v, .device = base};
  CUresult code = CUDA_ERROR_NOT_READY;
  if (cuda_enter(device)) {
    code = device->api.cuStreamCreate(&stream->handle, CU_STREAM_NON_BLOCKING);
    cuda_leave(device);
  }
  if (code != CUDA_SUCCESS) {
    rt_give(base->alloc, stream, sizeof *stream);
    return cuda_fail(device, code, "stream", "cuStreamCreate", diag);
  }
  *out = &stream->base;
  return SNT_OK;
}

void cuda_stream_destroy(rt_stream *base) {
  if (!base) return;
  cuda_stream *stream = (cuda_stream *)base;
  cuda_device *device = (cuda_device *)base->device;
  if (cuda_enter(device)) {
    if (!stream->adopted) device->api.cuStreamSynchronize(stream->handle);
    for (uint32_t i = 0; i < stream->pool_count; i++) device->api.cuEventDestroy_v2(stream->pool[i]);
    if (!stream->adopted) device->api.cuStreamDestroy_v2(stream->handle);
    cuda_leave(device);
  }
  rt_give(base->device->alloc, stream->pool, stream->pool_capacity * sizeof *stream->pool);
  rt_give(base->device->alloc, stream, sizeof *stream);
}

snt_result cuda_wait(rt_stream *base, snt_diag *diag) {
  cuda_device *device = (cuda_device *)base->device;
  if (device->base.lost) return SNT_E_DEVICE_LOST;
  if (!cuda_enter(device)) return ir_fail(diag, SNT_E_BACKEND, "wait", 0, "the context cannot be made current");
  CUresult code = device->api.cuStreamSynchronize(((cuda_stream *)base)->handle);
  cuda_leave(device);
  return code == CUDA_SUCCESS ? SNT_OK : cuda_fail(device, code, "wait", "cuStreamSynchronize", diag);
}

/* ---- events ---- */

static CUresult take_mark(cuda_stream *stream, CUevent *out) {
  cuda_device *device = (cuda_device *)stream->base.device;
  if (stream->pool_count == 0) return device->api.cuEventCreate(out, CU_EVENT_DEFAULT);
  *out = stream->pool[--stream->pool_count];
  return CUDA_SUCCESS;
}

static void give_mark(cuda_stream *stream, CUevent mark) {
  cuda_device *device = (cuda_device *)stream->base.device;
  bool room = rt_grow(device->base.alloc, (void **)&stream->pool, &stream->pool_capacity, stream->pool_count + 1, sizeof *stream->pool);
  if (room) stream->pool[stream->pool_count++] = mark;
  else device->api.cuEventDestroy_v2(mark);
}

static uint32_t mark_count(const cuda_event *event) { return event->timed ? event->count + 1 : 1; }

static void drop_event(cuda_event *event) {
  const snt_host_alloc *alloc = event->base.stream->device->alloc;
  for (uint32_t i = 0; event->marks && i < mark_count(event); i++) {
    if (event->marks[i]) give_mark((cuda_stream *)event->base.stream, event->marks[i]);
  }
  rt_give(alloc, event->marks, mark_count(event) * sizeof *event->marks);
  rt_give(alloc, event, sizeof *event);
}

void cuda_event_destroy(rt_event *base) {
  if (!base) return;
  cuda_device *device = (cuda_device *)base->stream->device;
  bool entered = cuda_enter(device);
  drop_event((cuda_event *)base);
  if (entered) cuda_leave(device);
}

static snt_result create_event(cuda_stream *stream, uint32_t count, bool timed, cuda_event **out, snt_diag *diag) {
  cuda_device *device = (cuda_device *)stream->base.device;
  cuda_event *event = rt_take(device->base.alloc, sizeof *event);
  if (!event) return ir_fail(diag, SNT_E_HOST_MEM, "submit", 0, "out of memory");
  *event = (cuda_event){.base = {.v = stream->base.v, .stream = &stream->base}, .count = count, .timed = timed};
  event->marks = rt_take(device->base.alloc, mark_count(event) * sizeof *event->marks);
  CUresult code = event->marks ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
  for (uint32_t i = 0; i < mark_count(event) && code == CUDA_SUCCESS; i++) code = take_mark(stream, &event->marks[i]);
  if (code != CUDA_SUCCESS) {
    drop_event(event);
    return cuda_fail(device, code, "submit", "cuEventCreate", diag);
  }
  *out = event;
  return SNT_OK;
}

/* ---- launches: with the context current ---- */

static snt_result launch(cuda_stream *stream, const rt_dispatch *dispatch, snt_diag *diag) {
  cuda_device *device = (cuda_device *)stream->base.device;
  const cuda_pipeline *pipeline = (const cuda_pipeline *)dispatch->pipeline;
  CUdeviceptr addresses[CUDA_MAX_BINDINGS];
  void *parameters[CUDA_MAX_BINDINGS + 1];
  rt_shape shape;
  SNT_TRY(rt_check_dispatch(&device->base, dispatch, pipeline->binding_count, diag));
  if (dispatch->block_bytes != pipeline->block_bytes) {
    return ir_fail(diag, SNT_E_ARG, "submit", 0, "%u bytes of scalars for a kernel with %u", dispatch->block_bytes, pipeline->block_bytes);
  }
  if (dispatch->groups == 0) return SNT_OK;
  SNT_TRY(rt_dispatch_shape(&device->base, dispatch, &shape, diag));
  for (uint32_t slot = 0; slot < dispatch->binding_count; slot++) {
    addresses[slot] = ((const cuda_buffer *)dispatch->bindings[slot].buffer)->address + dispatch->bindings[slot].offset;
    parameters[slot] = &addresses[slot];
  }
  parameters[dispatch->binding_count] = shape.words;
  CUresult code = device->api.cuLaunchKernel(pipeline->function, shape.grid[0], shape.grid[1], shape.grid[2], pipeline->items[0],
                                             pipeline->items[1], pipeline->items[2], pipeline->local_bytes, stream->handle, parameters,
                                             NULL);
  return code == CUDA_SUCCESS ? SNT_OK : cuda_fail(device, code, "submit", "cuLaunchKernel", diag);
}

static snt_result submit_all(cuda_stream *stream, uint32_t count, const rt_dispatch *dispatches, cuda_event *event, snt_diag *diag) {
  cuda_device *device = (cuda_device *)stream->base.device;
  CUresult code = CUDA_SUCCESS;
  if (event && event->timed) code = device->api.cuEventRecord(event->marks[0], stream->handle);
  for (uint32_t i = 0; i < count && code == CUDA_SUCCESS; i++) {
    SNT_TRY(launch(stream, &dispatches[i], diag));
    if (event && event->timed) code = device->api.cuEventRecord(event->marks[i + 1], stream->handle);
  }
  if (event && !event->timed && code == CUDA_SUCCESS) code = device->api.cuEventRecord(event->marks[0], stream->handle);
  return code == CUDA_SUCCESS ? SNT_OK : cuda_fail(device, code, "submit", "cuEventRecord", diag);
}

snt_result cuda_submit(rt_stream *base, uint32_t count, const rt_dispatch *dispatches, bool timed, rt_event **out, snt_diag *diag) {
  cuda_stream *stream = (cuda_stream *)base;
  cuda_device *device = (cuda_device *)base->device;
  cuda_event *event = NULL;
  if (base->device->lost) return SNT_E_DEVICE_LOST;
  if (!cuda_enter(device)) return ir_fail(diag, SNT_E_BACKEND, "submit", 0, "the context cannot be made current");
  snt_result result = out ? create_event(stream, count, timed, &event, diag) : SNT_OK;
  if (result == SNT_OK) result = submit_all(stream, count, dispatches, event, diag);
  if (result != SNT_OK && event) drop_event(event);
  else if (result == SNT_OK && out) *out = &event->base;
  cuda_leave(device);
  return result;
}

static snt_result wait_mark(cuda_device *device, CUevent mark, uint64_t timeout_ns) {
  if (timeout_ns == UINT64_MAX) {
    CUresult code = device->api.cuEventSynchronize(mark);
    return code == CUDA_SUCCESS ? SNT_OK : cuda_fail(device, code, "wait", "cuEventSynchronize", NULL);
  }
  for (uint64_t begin = rt_clock_ns(), pause = 2000;; pause = pause < 500000 ? 2 * pause : pause) {
    CUresult code = device->api.cuEventQuery(mark);
    if (code == CUDA_SUCCESS) return SNT_OK;
    if (code != CUDA_ERROR_NOT_READY) return cuda_fail(device, code, "wait", "cuEventQuery", NULL);
    if (rt_clock_ns() - begin >= timeout_ns) return SNT_NOT_READY;
    rt_sleep_ns(pause);
  }
}

snt_result cuda_event_wait(rt_event *base, uint64_t timeout_ns) {
  cuda_event *event = (cuda_event *)base;
  cuda_device *device = (cuda_device *)base->stream->device;
  if (device->base.lost) return SNT_E_DEVICE_LOST;
  if (!cuda_enter(device)) return SNT_E_BACKEND;
  snt_result result = wait_mark(device, event->marks[mark_count(event) - 1], timeout_ns);
  cuda_leave(device);
  return result;
}

snt_result cuda_event_timings(rt_event *base, uint32_t *count, uint64_t *ns) {
  cuda_event *event = (cuda_event *)base;
  cuda_device *device = (cuda_device *)base->stream->device;
  uint32_t have = event->timed ? event->count : 0, room = *count;
  SNT_TRY(cuda_event_wait(base, UINT64_MAX));
  *count = have;
  if (!ns) return SNT_OK;
  if (!cuda_enter(device)) return SNT_E_BACKEND;
  for (uint32_t i = 0; i < have && i < room; i++) {
    float ms = 0;
    CUresult code = device->api.cuEventElapsedTime(&ms, event->marks[i], event->marks[i + 1]);
    ns[i] = code == CUDA_SUCCESS && ms > 0 ? (uint64_t)(ms * 1e6f) : 0;
  }
  cuda_leave(device);
  return room < have ? SNT_INCOMPLETE : SNT_OK;
}
