/* The host's own OpenCL objects as a backend's: context, queue, memory. In: handles that the host keeps valid. Out: objects that hold a
   reference each. Enqueueing takes no memory and does not wait. */
#include "runtime/rt_opencl.h"

static snt_result fill_api(ocl_device *d, const ocl_adoption *from, snt_diag *diag) {
  if (!from->get_proc) return ocl_load(&d->api, false, diag);
  const char *missing = rt_find_all(from->get_proc, from->user, ocl_symbols, &d->api.clGetPlatformIDs);
  return missing ? ir_fail(diag, SNT_E_UNSUPPORTED, "attach", 0, "the host's OpenCL has no %s", missing) : SNT_OK;
}

static bool in_context(const ocl_api *api, cl_context context, cl_device_id device) {
  cl_device_id all[64];
  size_t bytes = 0;
  if (api->clGetContextInfo(context, CL_CONTEXT_DEVICES, sizeof all, all, &bytes) != CL_SUCCESS) return false;
  for (size_t i = 0; i < bytes / sizeof *all; i++)
    if (all[i] == device) return true;
  return false;
}

static snt_result adopt_into(ocl_device *d, const ocl_adoption *from, snt_diag *diag) {
  SNT_TRY(fill_api(d, from, diag));
  if (!in_context(&d->api, from->context, from->device))
    return ir_fail(diag, SNT_E_ARG, "attach", 0, "the device is none of the context's");
  ocl_found found = {.device = from->device};
  char platform[128] = "";
  const bool cpu = ocl_query_uint(&d->api, from->device, CL_DEVICE_TYPE, sizeof(cl_device_type)) & CL_DEVICE_TYPE_CPU;
  d->api.clGetDeviceInfo(from->device, CL_DEVICE_PLATFORM, sizeof found.platform, &found.platform, NULL);
  d->api.clGetPlatformInfo(found.platform, CL_PLATFORM_NAME, sizeof platform, platform, NULL);
  found.family = ocl_family_of(platform, cpu);
  ocl_describe(&d->api, &found, 0, true);
  ocl_take_found(d, &found);
  rt_copy_text(d->base.selector, sizeof d->base.selector, "opencl:host");
  const cl_int code = d->api.clRetainContext(from->context);
  if (code != CL_SUCCESS) return ocl_fail(d, code, "attach", "clRetainContext", diag);
  d->context = from->context;
  SNT_TRY(ocl_query_profile(d, diag));
  d->profiling = ocl_probe_profiling(d);
  return SNT_OK;
}

snt_result ocl_adopt_device(const snt_host_alloc *alloc, const ocl_adoption *from, rt_device **out, snt_diag *diag) {
  ocl_device *d = ocl_take_device(alloc);
  if (!d) return ir_fail(diag, SNT_E_HOST_MEM, "attach", 0, "out of memory");
  const snt_result r = adopt_into(d, from, diag);
  if (r != SNT_OK) rt_opencl.close(&d->base);
  else *out = &d->base;
  return r;
}

snt_result ocl_adopt_queue(rt_device *base, cl_command_queue queue, rt_stream **out, snt_diag *diag) {
  ocl_device *d = (ocl_device *)base;
  cl_context context = NULL;
  cl_device_id device = NULL;
  cl_command_queue_properties properties = 0;
  cl_int code = d->api.clGetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof context, &context, NULL);
  if (code == CL_SUCCESS) code = d->api.clGetCommandQueueInfo(queue, CL_QUEUE_DEVICE, sizeof device, &device, NULL);
  if (code == CL_SUCCESS) code = d->api.clGetCommandQueueInfo(queue, CL_QUEUE_PROPERTIES, sizeof properties, &properties, NULL);
  if (code != CL_SUCCESS) return ocl_fail(d, code, "stream", "clGetCommandQueueInfo", diag);
  if (context != d->context || device != d->id) return ir_fail(diag, SNT_E_ARG, "stream", 0, "the queue is of another context or device");
  if (properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE)
    return ir_fail(diag, SNT_E_UNSUPPORTED, "stream", 0, "the queue runs out of order");
  ocl_stream *stream = rt_take(base->alloc, sizeof *stream);
  if (!stream) return ir_fail(diag, SNT_E_HOST_MEM, "stream", 0, "out of memory");
  *stream = (ocl_stream){.base = {.v = base->v, .device = base}, .queue = queue, .queues = {queue}, .adopted = true};
  code = d->api.clRetainCommandQueue(queue);
  if (code != CL_SUCCESS) {
    rt_give(base->alloc, stream, sizeof *stream);
    return ocl_fail(d, code, "stream", "clRetainCommandQueue", diag);
  }
  *out = &stream->base;
  return SNT_OK;
}

snt_result ocl_adopt_buffer(rt_device *base, cl_mem mem, rt_buffer **out, snt_diag *diag) {
  ocl_device *d = (ocl_device *)base;
  cl_context context = NULL;
  cl_mem_object_type type = 0;
  size_t bytes = 0;
  cl_int code = d->api.clGetMemObjectInfo(mem, CL_MEM_TYPE, sizeof type, &type, NULL);
  if (code == CL_SUCCESS) code = d->api.clGetMemObjectInfo(mem, CL_MEM_CONTEXT, sizeof context, &context, NULL);
  if (code == CL_SUCCESS) code = d->api.clGetMemObjectInfo(mem, CL_MEM_SIZE, sizeof bytes, &bytes, NULL);
  if (code != CL_SUCCESS) return ocl_fail(d, code, "buffer", "clGetMemObjectInfo", diag);
  if (context != d->context || type != CL_MEM_OBJECT_BUFFER)
    return ir_fail(diag, SNT_E_ARG, "buffer", 0, "the memory object is of another context, or no buffer");
  ocl_buffer *buffer = rt_take(base->alloc, sizeof *buffer);
  if (!buffer) return ir_fail(diag, SNT_E_HOST_MEM, "buffer", 0, "out of memory");
  buffer->base = (rt_buffer){.v = base->v, .device = base, .bytes = bytes};
  buffer->whole = true;
  rt_lock_init(&buffer->lock);
  code = d->api.clRetainMemObject(mem);
  if (code == CL_SUCCESS) buffer->mem = mem;
  if (code != CL_SUCCESS) {
    ocl_buffer_destroy(&buffer->base);
    return ocl_fail(d, code, "buffer", "clRetainMemObject", diag);
  }
  *out = &buffer->base;
  return SNT_OK;
}

/* On a queue in order the first kernel's wait is everyone's, and the last kernel's event says that all are over. */
snt_result ocl_enqueue(rt_stream *base, uint32_t count, const rt_dispatch *dispatches, const ocl_edges *edges, snt_diag *diag) {
  ocl_stream *stream = (ocl_stream *)base;
  ocl_device *d = (ocl_device *)base->device;
  cl_int code = CL_SUCCESS;
  uint32_t last = UINT32_MAX;
  if (base->device->lost) return SNT_E_DEVICE_LOST;
  for (uint32_t i = 0; i < count; i++)
    if (dispatches[i].groups) last = i;
  stream->wait_count = edges->wait_count, stream->waits = edges->waits;
  for (uint32_t i = 0; last != UINT32_MAX && i <= last; i++) {
    const snt_result r = ocl_submit_one(stream, &dispatches[i], i == last ? edges->event : NULL, diag);
    if (r != SNT_OK) {
      stream->wait_count = 0;
      return r;
    }
  }
  if (last == UINT32_MAX && (edges->event || edges->wait_count))
    code = d->api.clEnqueueMarkerWithWaitList(stream->queue, edges->wait_count, edges->wait_count ? edges->waits : NULL, edges->event);
  stream->wait_count = 0;
  if (code == CL_SUCCESS) code = d->api.clFlush(stream->queue);
  return code == CL_SUCCESS ? SNT_OK : ocl_fail(d, code, "submit", "clFlush", diag);
}
