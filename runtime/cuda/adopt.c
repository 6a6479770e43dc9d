/* The host's own CUDA objects as a backend's: context, stream, memory. In: handles that the host keeps valid. Out: objects that borrow them. */
#include "runtime/rt_cuda.h"

snt_result cuda_adopt_device(const snt_host_alloc *alloc, const cuda_adoption *from, rt_device **out, snt_diag *diag) {
  cuda_device *device = rt_take(alloc, sizeof *device);
  if (!device) return ir_fail(diag, SNT_E_HOST_MEM, "attach", 0, "out of memory");
  device->base = (rt_device){.v = &rt_cuda, .alloc = alloc, .target = SNT_TARGET_CUDA};
  device->adopted = true;
  device->context = from->context;
  device->user = from->user;
  device->get_proc = from->get_proc;
  snt_result r = cuda_load_from(device, diag);
  if (r == SNT_OK) r = cuda_start_adopted(device, diag);
  if (r != SNT_OK) rt_cuda.close(&device->base);
  else *out = &device->base;
  return r;
}

snt_result cuda_adopt_stream(rt_device *base, CUstream handle, rt_stream **out) {
  cuda_stream *stream = rt_take(base->alloc, sizeof *stream);
  if (!stream) return SNT_E_HOST_MEM;
  *stream = (cuda_stream){.base = {.v = base->v, .device = base}, .handle = handle, .adopted = true};
  *out = &stream->base;
  return SNT_OK;
}

snt_result cuda_adopt_buffer(rt_device *base, uint64_t address, uint64_t bytes, rt_buffer **out) {
  cuda_buffer *buffer = rt_take(base->alloc, sizeof *buffer);
  if (!buffer) return SNT_E_HOST_MEM;
  *buffer = (cuda_buffer){.base = {.v = base->v, .device = base, .bytes = bytes}, .address = address, .adopted = true};
  *out = &buffer->base;
  return SNT_OK;
}
