/* Streams, events and buffers of devices that run a dispatch to its end before they answer. In: dispatches, checked here.
   Out: `run` of the device is called once for each that has groups, in order. */
#include "runtime/rt_sync.h"

enum { SYNC_ALIGN = 256 };
typedef struct sync_event {
  rt_event base;
  uint32_t count;
  uint64_t *ns;
} sync_event;

/* ---- buffers ---- */

static snt_result take_memory(rt_sync_device *device, rt_sync_buffer *buffer, snt_diag *diag) {
  if (device->create) return device->create(device, buffer->base.bytes, &buffer->handle, diag);
  const snt_host_alloc *alloc = device->base.alloc;
  buffer->base.host = alloc->acquire(alloc->user, buffer->base.bytes, SYNC_ALIGN, 0);
  if (buffer->base.host) return SNT_OK;
  return ir_fail(diag, SNT_E_DEVICE_MEM, "buffer", 0, "no memory for %llu bytes", (unsigned long long)buffer->base.bytes);
}

snt_result rt_sync_buffer_create(rt_device *base, uint64_t bytes, rt_buffer **out, snt_diag *diag) {
  rt_sync_device *device = (rt_sync_device *)base;
  if (bytes > base->profile.max_buffer_bytes || bytes > SIZE_MAX / 2) {
    return ir_fail(diag, SNT_E_DEVICE_MEM, "buffer", 0, "%llu bytes are more than a buffer may have", (unsigned long long)bytes);
  }
  rt_sync_buffer *buffer = rt_take(base->alloc, sizeof *buffer);
  if (!buffer) return ir_fail(diag, SNT_E_HOST_MEM, "buffer", 0, "out of memory");
  buffer->base = (rt_buffer){.v = base->v, .device = base, .bytes = bytes ? bytes : RT_EMPTY_BYTES};
  snt_result result = take_memory(device, buffer, diag);
  if (result != SNT_OK) {
    rt_give(base->alloc, buffer, sizeof *buffer);
    return result;
  }
  *out = &buffer->base;
  return SNT_OK;
}

void rt_sync_buffer_destroy(rt_buffer *base) {
  if (!base) return;
  rt_sync_buffer *buffer = (rt_sync_buffer *)base;
  rt_sync_device *device = (rt_sync_device *)base->device;
  const snt_host_alloc *alloc = base->device->alloc;
  if (device->create) device->destroy(device, buffer->handle);
  else alloc->release(alloc->user, base->host, base->bytes, SYNC_ALIGN);
  rt_give(alloc, buffer, sizeof *buffer);
}

static snt_result copy_bytes(rt_buffer *buffer, uint64_t offset, void *host, uint64_t bytes, bool to_device, snt_diag *diag) {
  SNT_TRY(rt_check_range(buffer, offset, bytes, diag));
  rt_sync_device *device = (rt_sync_device *)buffer->device;
  if (device->create) return device->copy(device, ((rt_sync_buffer *)buffer)->handle, offset, host, bytes, to_device, diag);
  if (bytes == 0) return SNT_OK;
  if (to_device) memcpy((char *)buffer->host + offset, host, bytes);
  else memcpy(host, (const char *)buffer->host + offset, bytes);
  return SNT_OK;
}

snt_result rt_sync_upload(rt_stream *stream, rt_buffer *buffer, uint64_t offset, const void *src, uint64_t bytes, snt_diag *diag) {
  (void)stream;
  return copy_bytes(buffer, offset, (void *)(uintptr_t)src, bytes, true, diag); /* the copy only reads it in this direction */
}

snt_result rt_sync_download(rt_stream *stream, rt_buffer *buffer, uint64_t offset, void *dst, uint64_t bytes, snt_diag *diag) {
  (void)stream;
  return copy_bytes(buffer, offset, dst, bytes, false, diag);
}

/* ---- streams ---- */

snt_result rt_sync_stream_create(rt_device *device, rt_stream **out, snt_diag *diag) {
  rt_stream *stream = rt_take(device->alloc, sizeof *stream);
  if (!stream) return ir_fail(diag, SNT_E_HOST_MEM, "stream", 0, "out of memory");
  *stream = (rt_stream){.v = device->v, .device = device};
  *out = stream;
  return SNT_OK;
}

void rt_sync_stream_destroy(rt_stream *stream) {
  if (stream) rt_give(stream->device->alloc, stream, sizeof *stream);
}

snt_result rt_sync_wait(rt_stream *stream, snt_diag *diag) {
  (void)diag;
  return stream->device->lost ? SNT_E_DEVICE_LOST : SNT_OK;
}

static snt_result event_create(rt_stream *stream, uint32_t count, sync_event **out, snt_diag *diag) {
  const snt_host_alloc *alloc = stream->device->alloc;
  sync_event *event = rt_take(alloc, sizeof *event);
  uint64_t *ns = count ? rt_take(alloc, count * sizeof *ns) : NULL;
  if (!event || (count && !ns)) {
    rt_give(alloc, event, sizeof *event);
    rt_give(alloc, ns, count * sizeof *ns);
    return ir_fail(diag, SNT_E_HOST_MEM, "submit", 0, "out of memory");
  }
  *event = (sync_event){.base = {.v = stream->v, .stream = stream}, .count = count, .ns = ns};
  *out = event;
  return SNT_OK;
}

static snt_result run_one(rt_sync_device *device, const rt_dispatch *dispatch, uint64_t *ns, snt_diag *diag) {
  rt_sync_pipeline *pipeline = (rt_sync_pipeline *)dispatch->pipeline;
  rt_shape shape;
  SNT_TRY(rt_check_dispatch(&device->base, dispatch, pipeline->binding_count, diag));
  if (dispatch->groups == 0) return SNT_OK;
  SNT_TRY(rt_dispatch_shape(&device->base, dispatch, &shape, diag));
  uint64_t begin = rt_clock_ns(), known = 0;
  SNT_TRY(device->run(device, pipeline, dispatch, &shape, &known, diag));
  *ns = known ? known : rt_clock_ns() - begin;
  return SNT_OK;
}

snt_result rt_sync_submit(rt_stream *stream, uint32_t count, const rt_dispatch *dispatches, bool timed, rt_event **out, snt_diag *diag) {
  sync_event *event = NULL;
  if (stream->device->lost) return SNT_E_DEVICE_LOST;
  if (out) SNT_TRY(event_create(stream, timed ? count : 0, &event, diag));
  snt_result result = SNT_OK;
  for (uint32_t i = 0; i < count && result == SNT_OK; i++) {
    uint64_t ns = 0;
    result = run_one((rt_sync_device *)stream->device, &dispatches[i], &ns, diag);
    if (event && timed) event->ns[i] = ns;
  }
  if (result != SNT_OK) rt_sync_event_destroy(event ? &event->base : NULL);
  else if (out) *out = &event->base;
  return result;
}

/* ---- events: over when they are made ---- */

snt_result rt_sync_event_wait(rt_event *event, uint64_t timeout_ns) {
  (void)timeout_ns;
  return event->stream->device->lost ? SNT_E_DEVICE_LOST : SNT_OK;
}

snt_result rt_sync_event_timings(rt_event *base, uint32_t *count, uint64_t *ns) {
  const sync_event *event = (const sync_event *)base;
  return rt_copy_timings(event->ns, event->count, count, ns);
}

void rt_sync_event_destroy(rt_event *base) {
  if (!base) return;
  sync_event *event = (sync_event *)base;
  const snt_host_alloc *alloc = base->stream->device->alloc;
  rt_give(alloc, event->ns, event->count * sizeof *event->ns);
  rt_give(alloc, event, sizeof *event);
}

snt_result rt_sync_no_binary(rt_pipeline *pipeline, void *dst, size_t *size) {
  (void)pipeline, (void)dst, (void)size;
  return SNT_E_UNSUPPORTED;
}
