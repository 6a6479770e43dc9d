/* OpenCL memory: one cl_mem a buffer; ranges of it as cached sub-buffers, since a kernel argument has no offset.
   Drivers that keep a mapped buffer in place give its address to the host for good (rt_buffer.host). */
#include "runtime/rt_opencl.h"

enum { OCL_MAX_SLICES = 4096 };

/* ---- slices ---- */

static uint32_t slice_place(const ocl_buffer *buffer, uint64_t offset, uint64_t bytes) {
  const uint64_t key[2] = {offset, bytes};
  uint32_t mask = buffer->slice_capacity - 1, at = (uint32_t)ir_hash64(0, key, sizeof key) & mask;
  while (buffer->slices[at].mem && (buffer->slices[at].offset != offset || buffer->slices[at].bytes != bytes)) at = (at + 1) & mask;
  return at;
}

static bool grow_slices(ocl_buffer *buffer) {
  const snt_host_alloc *alloc = buffer->base.device->alloc;
  ocl_slice *old = buffer->slices;
  uint32_t old_capacity = buffer->slice_capacity, capacity = old_capacity ? 2 * old_capacity : 16;
  ocl_slice *fresh = rt_take(alloc, capacity * sizeof *fresh);
  if (!fresh) return false;
  buffer->slices = fresh, buffer->slice_capacity = capacity;
  for (uint32_t i = 0; i < old_capacity; i++) {
    if (old[i].mem) fresh[slice_place(buffer, old[i].offset, old[i].bytes)] = old[i];
  }
  rt_give(alloc, old, old_capacity * sizeof *old);
  return true;
}

static cl_int make_slice(ocl_buffer *buffer, uint64_t offset, uint64_t bytes, cl_mem *out) {
  const ocl_device *device = (const ocl_device *)buffer->base.device;
  const cl_buffer_region region = {.origin = offset, .size = bytes};
  cl_int code = CL_SUCCESS;
  *out = device->api.clCreateSubBuffer(buffer->mem, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &code);
  return code;
}

/* Bounded, and never dropped while the buffer lives: another stream may be about to launch with one. */
static cl_int cached_slice(ocl_buffer *buffer, uint64_t offset, uint64_t bytes, cl_mem *out, bool *transient) {
  if (buffer->slice_capacity) {
    uint32_t at = slice_place(buffer, offset, bytes);
    if ((*out = buffer->slices[at].mem)) return CL_SUCCESS;
  }
  cl_int code = make_slice(buffer, offset, bytes, out);
  if (code != CL_SUCCESS) return code;
  bool room = buffer->slice_count < OCL_MAX_SLICES;
  if (room && 4 * (buffer->slice_count + 1) > 3 * buffer->slice_capacity) room = grow_slices(buffer);
  if (!room) {
    *transient = true;
    return CL_SUCCESS;
  }
  buffer->slices[slice_place(buffer, offset, bytes)] = (ocl_slice){offset, bytes, *out};
  buffer->slice_count++;
  return CL_SUCCESS;
}

cl_int ocl_buffer_slice(ocl_buffer *buffer, uint64_t offset, uint64_t bytes, cl_mem *out, bool *transient) {
  *transient = false;
  *out = buffer->mem;
  if (bytes == 0 || (offset == 0 && (buffer->whole || bytes == buffer->base.bytes))) return CL_SUCCESS;
  rt_lock_take(&buffer->lock);
  cl_int code = cached_slice(buffer, offset, bytes, out, transient);
  rt_lock_give(&buffer->lock);
  return code;
}

/* ---- buffers ---- */

static cl_int map_for_good(ocl_device *device, ocl_buffer *buffer) {
  cl_int code = CL_SUCCESS;
  buffer->map_queue = device->api.clCreateCommandQueue(device->context, device->id, 0, &code);
  if (code != CL_SUCCESS) return code;
  buffer->base.host = device->api.clEnqueueMapBuffer(buffer->map_queue, buffer->mem, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0,
                                                     buffer->base.bytes, 0, NULL, NULL, &code);
  return code;
}

static snt_result create_buffer(rt_device *base, uint64_t bytes, const void *over, rt_buffer **out, snt_diag *diag) {
  ocl_device *device = (ocl_device *)base;
  if (base->lost) return SNT_E_DEVICE_LOST;
  if (bytes > base->profile.max_buffer_bytes) {
    return ir_fail(diag, SNT_E_DEVICE_MEM, "buffer", 0, "%llu bytes, the device allows %llu", (unsigned long long)bytes,
                   (unsigned long long)base->profile.max_buffer_bytes);
  }
  ocl_buffer *buffer = rt_take(base->alloc, sizeof *buffer);
  if (!buffer) return ir_fail(diag, SNT_E_HOST_MEM, "buffer", 0, "out of memory");
  buffer->base = (rt_buffer){.v = base->v, .device = base, .bytes = bytes ? bytes : RT_EMPTY_BYTES};
  rt_lock_init(&buffer->lock);
  cl_int code = CL_SUCCESS;
  const bool mapped = device->family->host_mapped && !over;
  const cl_mem_flags flags = over ? CL_MEM_READ_ONLY | CL_MEM_USE_HOST_PTR : CL_MEM_READ_WRITE | (mapped ? CL_MEM_ALLOC_HOST_PTR : 0);
  buffer->mem = device->api.clCreateBuffer(device->context, flags, buffer->base.bytes, (void *)(uintptr_t)over, &code);
  if (code == CL_SUCCESS && mapped) code = map_for_good(device, buffer);
  if (code != CL_SUCCESS) {
    ocl_buffer_destroy(&buffer->base);
    return ocl_fail(device, code, "buffer", "clCreateBuffer", diag);
  }
  *out = &buffer->base;
  return SNT_OK;
}

snt_result ocl_buffer_create(rt_device *base, uint64_t bytes, rt_buffer **out, snt_diag *diag) {
  return create_buffer(base, bytes, NULL, out, diag);
}

snt_result ocl_buffer_over(rt_device *base, const void *data, uint64_t bytes, rt_buffer **out, snt_diag *diag) {
  if (!bytes || !((const ocl_device *)base)->family->host_mapped)
    return SNT_E_UNSUPPORTED; /* nothing lies there, not even what a guard may load; or the driver would copy, and copy again */
  return create_buffer(base, bytes, data, out, diag);
}

void ocl_buffer_destroy(rt_buffer *base) {
  if (!base) return;
  ocl_buffer *buffer = (ocl_buffer *)base;
  const ocl_api *api = &((ocl_device *)base->device)->api;
  const snt_host_alloc *alloc = base->device->alloc;
  for (uint32_t i = 0; i < buffer->slice_capacity; i++) {
    if (buffer->slices[i].mem) api->clReleaseMemObject(buffer->slices[i].mem);
  }
  if (base->host) {
    api->clEnqueueUnmapMemObject(buffer->map_queue, buffer->mem, base->host, 0, NULL, NULL);
    api->clFinish(buffer->map_queue);
  }
  if (buffer->map_queue) api->clReleaseCommandQueue(buffer->map_queue);
  if (buffer->mem) api->clReleaseMemObject(buffer->mem);
  rt_lock_drop(&buffer->lock);
  rt_give(alloc, buffer->slices, buffer->slice_capacity * sizeof *buffer->slices);
  rt_give(alloc, buffer, sizeof *buffer);
}
