/* CUDA memory: one allocation a buffer; copies in the stream's order, over on return. */
#include "runtime/rt_cuda.h"

snt_result cuda_buffer_create(rt_device *base, uint64_t bytes, rt_buffer **out, snt_diag *diag) {
  cuda_device *device = (cuda_device *)base;
  if (base->lost) return SNT_E_DEVICE_LOST;
  cuda_buffer *buffer = rt_take(base->alloc, sizeof *buffer);
  if (!buffer) return ir_fail(diag, SNT_E_HOST_MEM, "buffer", 0, "out of memory");
  buffer->base = (rt_buffer){.v = base->v, .device = base, .bytes = bytes ? bytes : RT_EMPTY_BYTES};
  CUresult code = CUDA_ERROR_OUT_OF_MEMORY;
  if (bytes <= base->profile.max_buffer_bytes && cuda_enter(device)) {
    code = device->api.cuMemAlloc_v2(&buffer->address, buffer->base.bytes);
    cuda_leave(device);
  }
  if (code != CUDA_SUCCESS) {
    rt_give(base->alloc, buffer, sizeof *buffer);
    return cuda_fail(device, code, "buffer", "cuMemAlloc", diag);
  }
  *out = &buffer->base;
  return SNT_OK;
}

void cuda_buffer_destroy(rt_buffer *base) {
  if (!base) return;
  cuda_device *device = (cuda_device *)base->device;
  if (!((cuda_buffer *)base)->adopted && cuda_enter(device)) {
    device->api.cuMemFree_v2(((cuda_buffer *)base)->address);
    cuda_leave(device);
  }
  rt_give(base->device->alloc, base, sizeof(cuda_buffer));
}

static snt_result copy(rt_stream *base, rt_buffer *buffer, uint64_t offset, void *host, uint64_t bytes, bool up, snt_diag *diag) {
  cuda_device *device = (cuda_device *)base->device;
  CUstream stream = ((cuda_stream *)base)->handle;
  if (device->base.lost) return SNT_E_DEVICE_LOST;
  SNT_TRY(rt_check_range(buffer, offset, bytes, diag));
  if (bytes == 0) return SNT_OK;
  CUdeviceptr address = ((cuda_buffer *)buffer)->address + offset;
  if (!cuda_enter(device)) return ir_fail(diag, SNT_E_BACKEND, "copy", 0, "the context cannot be made current");
  CUresult code = up ? device->api.cuMemcpyHtoDAsync_v2(address, host, bytes, stream)
                     : device->api.cuMemcpyDtoHAsync_v2(host, address, bytes, stream);
  if (code == CUDA_SUCCESS) code = device->api.cuStreamSynchronize(stream);
  cuda_leave(device);
  return code == CUDA_SUCCESS ? SNT_OK : cuda_fail(device, code, "copy", up ? "cuMemcpyHtoDAsync" : "cuMemcpyDtoHAsync", diag);
}

snt_result cuda_upload(rt_stream *stream, rt_buffer *buffer, uint64_t offset, const void *src, uint64_t bytes, snt_diag *diag) {
  return copy(stream, buffer, offset, (void *)(uintptr_t)src, bytes, true, diag); /* only read in this direction */
}

snt_result cuda_download(rt_stream *stream, rt_buffer *buffer, uint64_t offset, void *dst, uint64_t bytes, snt_diag *diag) {
  return copy(stream, buffer, offset, dst, bytes, false, diag);
}
