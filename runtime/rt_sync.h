/* Devices that are done when submit returns, with host memory for buffers unless the device has its own: streams, events, copies.
   A backend embeds rt_sync_device first, sets `run`, and takes the vtable functions of RT_SYNC_FUNCTIONS. */
#ifndef RUNTIME_RT_SYNC_H
#define RUNTIME_RT_SYNC_H
#include "runtime/rt_common.h"

typedef struct rt_sync_buffer {
  rt_buffer base;
  void *handle;
} rt_sync_buffer; /* handle: of the device's own memory */
typedef struct rt_sync_pipeline {
  rt_pipeline base;
  uint32_t binding_count;
} rt_sync_pipeline;
typedef struct rt_sync_device rt_sync_device;
struct rt_sync_device {
  rt_device base;
  snt_result (*run)(rt_sync_device *, rt_sync_pipeline *, const rt_dispatch *, const rt_shape *, uint64_t *ns, snt_diag *);
  snt_result (*create)(rt_sync_device *, uint64_t bytes, void **out_handle, snt_diag *); /* null: host memory; else all three */
  void (*destroy)(rt_sync_device *, void *handle);
  snt_result (*copy)(rt_sync_device *, void *handle, uint64_t offset, void *host, uint64_t bytes, uint32_t to_device, snt_diag *);
};

snt_result rt_sync_buffer_create(rt_device *, uint64_t bytes, rt_buffer **out, snt_diag *);
void rt_sync_buffer_destroy(rt_buffer *);
snt_result rt_sync_stream_create(rt_device *, rt_stream **out, snt_diag *);
void rt_sync_stream_destroy(rt_stream *);
snt_result rt_sync_upload(rt_stream *, rt_buffer *, uint64_t offset, const void *src, uint64_t bytes, snt_diag *);
snt_result rt_sync_download(rt_stream *, rt_buffer *, uint64_t offset, void *dst, uint64_t bytes, snt_diag *);
snt_result rt_sync_submit(rt_stream *, uint32_t count, const rt_dispatch *, bool timed, rt_event **event, snt_diag *);
snt_result rt_sync_wait(rt_stream *, snt_diag *);
snt_result rt_sync_event_wait(rt_event *, uint64_t timeout_ns);
snt_result rt_sync_event_timings(rt_event *, uint32_t *count, uint64_t *ns);
void rt_sync_event_destroy(rt_event *);
snt_result rt_sync_no_binary(rt_pipeline *, void *dst, size_t *size);

#define RT_SYNC_FUNCTIONS                                                                                                 \
  .buffer_create = rt_sync_buffer_create, .buffer_destroy = rt_sync_buffer_destroy, .pipeline_binary = rt_sync_no_binary, \
  .stream_create = rt_sync_stream_create, .stream_destroy = rt_sync_stream_destroy, .upload = rt_sync_upload,             \
  .download = rt_sync_download, .submit = rt_sync_submit, .wait = rt_sync_wait, .event_wait = rt_sync_event_wait,         \
  .event_timings = rt_sync_event_timings, .event_destroy = rt_sync_event_destroy
#endif
