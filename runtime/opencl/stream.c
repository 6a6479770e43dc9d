/* OpenCL streams: an in-order queue each, and another where kernels may run near. A launch sets the kernel's arguments under its lock and
   enqueues; nothing is allocated here unless the caller asks for an event. Times come from the driver's profile, or from the host's clock
   around each launch. */
#include "runtime/rt_opencl.h"

static void release_queues(ocl_stream *stream) {
  const ocl_api *api = &((ocl_device *)stream->base.device)->api;
  for (int i = 0; i < 2; i++)
    if (stream->queues[i]) api->clReleaseCommandQueue(stream->queues[i]);
}

snt_result ocl_stream_create(rt_device *base, rt_stream **out, snt_diag *diag) {
  ocl_device *device = (ocl_device *)base;
  if (base->lost) return SNT_E_DEVICE_LOST;
  ocl_stream *stream = rt_take(base->alloc, sizeof *stream);
  if (!stream) return ir_fail(diag, SNT_E_HOST_MEM, "stream", 0, "out of memory");
  stream->base = (rt_stream){.v = base->v, .device = base};
  cl_int code = CL_SUCCESS;
  const cl_device_id ids[] = {device->id, device->near};
  for (int i = 0; i < 2 && ids[i] && code == CL_SUCCESS; i++)
    stream->queues[i] = device->api.clCreateCommandQueue(device->context, ids[i], device->profiling ? CL_QUEUE_PROFILING_ENABLE : 0, &code);
  stream->queue = stream->queues[0];
  if (code == CL_SUCCESS && device->family->finishes_early) {
    stream->word = device->api.clCreateBuffer(device->context, CL_MEM_READ_WRITE, sizeof stream->sink, NULL, &code);
  }
  if (code != CL_SUCCESS) {
    release_queues(stream);
    rt_give(base->alloc, stream, sizeof *stream);
    return ocl_fail(device, code, "stream", "clCreateCommandQueue", diag);
  }
  *out = &stream->base;
  return SNT_OK;
}

static cl_int finish(ocl_stream *stream) {
  const ocl_api *api = &((ocl_device *)stream->base.device)->api;
  if (!stream->busy) return CL_SUCCESS;
  stream->busy = false;
  if (!stream->word) return api->clFinish(stream->queue);
  return api->clEnqueueReadBuffer(stream->queue, stream->word, CL_TRUE, 0, sizeof stream->sink, &stream->sink, 0, NULL, NULL);
}

/* An event behind all that was enqueued. */
static cl_int enqueue_marker(ocl_stream *stream, cl_event *event) {
  const ocl_api *api = &((ocl_device *)stream->base.device)->api;
  stream->busy = true;
  if (!stream->word) return api->clEnqueueMarkerWithWaitList(stream->queue, 0, NULL, event);
  return api->clEnqueueReadBuffer(stream->queue, stream->word, CL_FALSE, 0, sizeof stream->sink, &stream->sink, 0, NULL, event);
}

void ocl_stream_destroy(rt_stream *base) {
  if (!base) return;
  ocl_stream *stream = (ocl_stream *)base;
  const ocl_api *api = &((ocl_device *)base->device)->api;
  if (!stream->adopted) finish(stream);
  if (stream->word) api->clReleaseMemObject(stream->word);
  release_queues(stream);
  rt_give(base->device->alloc, stream, sizeof *stream);
}

snt_result ocl_wait(rt_stream *base, snt_diag *diag) {
  ocl_device *device = (ocl_device *)base->device;
  if (device->base.lost) return SNT_E_DEVICE_LOST;
  cl_int code = finish((ocl_stream *)base);
  return code == CL_SUCCESS ? SNT_OK : ocl_fail(device, code, "wait", "clFinish", diag);
}

/* ---- launches ---- */

typedef struct transients {
  uint32_t count;
  cl_mem at[64];
} transients;

static cl_int set_arguments(const ocl_api *api, ocl_pipeline *pipeline, const rt_dispatch *dispatch, const rt_shape *shape,
                            transients *drop) {
  for (uint32_t slot = 0; slot < dispatch->binding_count; slot++) {
    const struct rt_bound *bound = &dispatch->bindings[slot];
    bool transient;
    cl_mem mem;
    cl_int code = ocl_buffer_slice((ocl_buffer *)bound->buffer, bound->offset, bound->bytes, &mem, &transient);
    if (code != CL_SUCCESS) return code;
    if (transient && drop->count < IR_COUNT(drop->at)) drop->at[drop->count++] = mem;
    code = api->clSetKernelArg(pipeline->kernel, slot, sizeof mem, &mem);
    if (code != CL_SUCCESS) return code;
  }
  for (uint32_t i = 0; i < shape->word_count; i++) {
    cl_int code = api->clSetKernelArg(pipeline->kernel, dispatch->binding_count + i, sizeof shape->words[i], &shape->words[i]);
    if (code != CL_SUCCESS) return code;
  }
  return CL_SUCCESS;
}

/* To the queue that a kernel is for. What went to the other one is over first: an event of that one is not always waited for. */
static cl_int turn_to(ocl_stream *stream, const ocl_pipeline *pipeline) {
  const ocl_device *device = (const ocl_device *)stream->base.device;
  const cl_command_queue queue = stream->queues[device->near && pipeline->id == device->near];
  const cl_int code = queue == stream->queue ? CL_SUCCESS : finish(stream);
  if (code == CL_SUCCESS) stream->queue = queue;
  return code;
}

static cl_int launch(ocl_stream *stream, ocl_pipeline *pipeline, const rt_dispatch *dispatch, const rt_shape *shape, cl_event *event) {
  const ocl_api *api = &((ocl_device *)stream->base.device)->api;
  size_t global[3], local[3];
  transients drop;
  drop.count = 0;
  for (int axis = 0; axis < 3; axis++) {
    local[axis] = pipeline->items[axis];
    global[axis] = local[axis] * shape->grid[axis];
  }
  cl_int code = turn_to(stream, pipeline);
  if (code != CL_SUCCESS) return code;
  stream->busy = true;
  rt_lock_take(&pipeline->lock);
  code = set_arguments(api, pipeline, dispatch, shape, &drop);
  const cl_event *waits = stream->wait_count ? stream->waits : NULL;
  if (code == CL_SUCCESS)
    code = api->clEnqueueNDRangeKernel(stream->queue, pipeline->kernel, 3, NULL, global, local, stream->wait_count, waits, event);
  if (code == CL_SUCCESS) stream->wait_count = 0;
  rt_lock_give(&pipeline->lock);
  for (uint32_t i = 0; i < drop.count; i++) api->clReleaseMemObject(drop.at[i]);
  return code;
}

static snt_result submit_one(ocl_stream *stream, const rt_dispatch *dispatch, cl_event *event, uint64_t *host_ns, snt_diag *diag) {
  ocl_device *device = (ocl_device *)stream->base.device;
  ocl_pipeline *pipeline = (ocl_pipeline *)dispatch->pipeline;
  rt_shape shape;
  SNT_TRY(rt_check_dispatch(&device->base, dispatch, pipeline->binding_count, diag));
  if (dispatch->groups == 0) return SNT_OK;
  SNT_TRY(rt_dispatch_shape(&device->base, dispatch, &shape, diag));
  uint64_t begin = host_ns ? rt_clock_ns() : 0;
  cl_int code = launch(stream, pipeline, dispatch, &shape, event);
  if (code != CL_SUCCESS) return ocl_fail(device, code, "submit", "clEnqueueNDRangeKernel", diag);
  if (!host_ns) return SNT_OK;
  SNT_TRY(ocl_wait(&stream->base, diag));
  *host_ns = rt_clock_ns() - begin;
  return SNT_OK;
}

snt_result ocl_submit_one(ocl_stream *stream, const rt_dispatch *dispatch, cl_event *event, snt_diag *diag) {
  return submit_one(stream, dispatch, event, NULL, diag);
}

/* ---- events ---- */

void ocl_event_destroy(rt_event *base) {
  if (!base) return;
  ocl_event *event = (ocl_event *)base;
  const ocl_api *api = &((ocl_device *)base->stream->device)->api;
  const snt_host_alloc *alloc = base->stream->device->alloc;
  for (uint32_t i = 0; event->events && i < event->count; i++) {
    if (event->events[i]) api->clReleaseEvent(event->events[i]);
  }
  if (event->last) api->clReleaseEvent(event->last);
  rt_give(alloc, event->events, event->count * sizeof *event->events);
  rt_give(alloc, event->ns, event->count * sizeof *event->ns);
  rt_give(alloc, event, sizeof *event);
}

static snt_result event_create(ocl_stream *stream, uint32_t timed_count, ocl_event **out, snt_diag *diag) {
  const snt_host_alloc *alloc = stream->base.device->alloc;
  bool profiling = ((ocl_device *)stream->base.device)->profiling;
  ocl_event *event = rt_take(alloc, sizeof *event);
  if (!event) return ir_fail(diag, SNT_E_HOST_MEM, "submit", 0, "out of memory");
  *event = (ocl_event){.base = {.v = stream->base.v, .stream = &stream->base}, .count = timed_count};
  if (timed_count) event->ns = rt_take(alloc, timed_count * sizeof *event->ns);
  if (timed_count && profiling) event->events = rt_take(alloc, timed_count * sizeof *event->events);
  if (timed_count && (!event->ns || (profiling && !event->events))) {
    ocl_event_destroy(&event->base);
    return ir_fail(diag, SNT_E_HOST_MEM, "submit", 0, "out of memory");
  }
  *out = event;
  return SNT_OK;
}

static snt_result submit_all(ocl_stream *stream, uint32_t count, const rt_dispatch *dispatches, bool timed, ocl_event *event,
                             snt_diag *diag) {
  ocl_device *device = (ocl_device *)stream->base.device;
  for (uint32_t i = 0; i < count; i++) {
    cl_event *each = event && event->events ? &event->events[i] : NULL;
    uint64_t *ns = event && timed && !event->events ? &event->ns[i] : NULL;
    SNT_TRY(submit_one(stream, &dispatches[i], each, ns, diag));
  }
  cl_int code = CL_SUCCESS;
  if (event) code = enqueue_marker(stream, &event->last);
  if (code == CL_SUCCESS) code = device->api.clFlush(stream->queue);
  return code == CL_SUCCESS ? SNT_OK : ocl_fail(device, code, "submit", "clFlush", diag);
}

snt_result ocl_submit(rt_stream *base, uint32_t count, const rt_dispatch *dispatches, bool timed, rt_event **out, snt_diag *diag) {
  ocl_stream *stream = (ocl_stream *)base;
  ocl_event *event = NULL;
  if (base->device->lost) return SNT_E_DEVICE_LOST;
  if (out) SNT_TRY(event_create(stream, timed ? count : 0, &event, diag));
  snt_result result = submit_all(stream, count, dispatches, timed, event, diag);
  if (result != SNT_OK) {
    ocl_wait(base, NULL); /* what was enqueued before the mistake */
    ocl_event_destroy(event ? &event->base : NULL);
  } else if (out) {
    *out = &event->base;
  }
  return result;
}

static snt_result event_state(ocl_device *device, cl_event event) {
  cl_int status = CL_COMPLETE;
  const cl_int code = device->api.clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL);
  if (code != CL_SUCCESS || status < 0) return ocl_fail(device, code != CL_SUCCESS ? code : status, "wait", "clGetEventInfo", NULL);
  return status == CL_COMPLETE ? SNT_OK : SNT_NOT_READY;
}

/* OpenCL cannot wait for a time: a wait without end is the driver's, a bounded one looks again at growing distances. */
snt_result ocl_event_wait(rt_event *base, uint64_t timeout_ns) {
  ocl_event *event = (ocl_event *)base;
  ocl_device *device = (ocl_device *)base->stream->device;
  if (device->base.lost) return SNT_E_DEVICE_LOST;
  if (timeout_ns == UINT64_MAX) {
    cl_int code = device->api.clWaitForEvents(1, &event->last);
    return code == CL_SUCCESS ? SNT_OK : ocl_fail(device, code, "wait", "clWaitForEvents", NULL);
  }
  uint64_t begin = rt_clock_ns(), pause = 2000;
  for (;;) {
    snt_result state = event_state(device, event->last);
    if (state != SNT_NOT_READY || rt_clock_ns() - begin >= timeout_ns) return state;
    rt_sleep_ns(pause);
    if (pause < 500000) pause *= 2;
  }
}

static uint64_t profiled_ns(const ocl_api *api, cl_event event) {
  cl_ulong begin = 0, end = 0;
  if (api->clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_START, sizeof begin, &begin, NULL) != CL_SUCCESS) return 0;
  if (api->clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof end, &end, NULL) != CL_SUCCESS) return 0;
  return end > begin ? end - begin : 0;
}

snt_result ocl_event_timings(rt_event *base, uint32_t *count, uint64_t *ns) {
  ocl_event *event = (ocl_event *)base;
  const ocl_api *api = &((ocl_device *)base->stream->device)->api;
  SNT_TRY(ocl_event_wait(base, UINT64_MAX));
  for (uint32_t i = 0; event->events && i < event->count; i++) {
    if (event->events[i]) event->ns[i] = profiled_ns(api, event->events[i]);
  }
  return rt_copy_timings(event->ns, event->count, count, ns);
}

/* Asked by doing: some drivers take the flag and answer 0, or 1 ns for everything. No device copies 256 KiB in half a microsecond. */
bool ocl_probe_profiling(ocl_device *device) {
  enum { BYTES = 256 << 10, SHORTEST_NS = 500 };
  const ocl_api *api = &device->api;
  cl_int code = CL_SUCCESS;
  uint64_t ns = 0;
  cl_event event = NULL;
  void *zeros = rt_take(device->base.alloc, BYTES);
  cl_command_queue queue = api->clCreateCommandQueue(device->context, device->id, CL_QUEUE_PROFILING_ENABLE, &code);
  cl_mem mem = api->clCreateBuffer(device->context, CL_MEM_READ_WRITE, BYTES, NULL, &code);
  bool made = zeros && queue && mem;
  if (made && api->clEnqueueWriteBuffer(queue, mem, CL_TRUE, 0, BYTES, zeros, 0, NULL, &event) == CL_SUCCESS) {
    ns = profiled_ns(api, event);
    api->clReleaseEvent(event);
  }
  if (mem) api->clReleaseMemObject(mem);
  if (queue) api->clReleaseCommandQueue(queue);
  rt_give(device->base.alloc, zeros, BYTES);
  return ns >= SHORTEST_NS;
}
