/* Copies between the host and buffers of OpenCL, in the stream's order, over on return, so that the caller's memory is free again. */
#include "runtime/rt_opencl.h"

static snt_result copy(rt_stream *base, rt_buffer *buffer, uint64_t offset, void *host, uint64_t bytes, bool up, snt_diag *diag) {
  ocl_device *device = (ocl_device *)base->device;
  const cl_command_queue queue = ((ocl_stream *)base)->queue;
  const cl_mem mem = ((ocl_buffer *)buffer)->mem;
  if (device->base.lost) return SNT_E_DEVICE_LOST;
  SNT_TRY(rt_check_range(buffer, offset, bytes, diag));
  if (bytes == 0) return SNT_OK;
  if (buffer->host) {
    SNT_TRY(ocl_wait(base, diag));
    if (up) memcpy((char *)buffer->host + offset, host, bytes);
    else memcpy(host, (const char *)buffer->host + offset, bytes);
    return SNT_OK;
  }
  const cl_int code = up ? device->api.clEnqueueWriteBuffer(queue, mem, CL_TRUE, offset, bytes, host, 0, NULL, NULL)
                         : device->api.clEnqueueReadBuffer(queue, mem, CL_TRUE, offset, bytes, host, 0, NULL, NULL);
  if (code == CL_SUCCESS) return SNT_OK;
  return up ? ocl_fail(device, code, "upload", "clEnqueueWriteBuffer", diag)
            : ocl_fail(device, code, "download", "clEnqueueReadBuffer", diag);
}

snt_result ocl_upload(rt_stream *stream, rt_buffer *buffer, uint64_t offset, const void *src, uint64_t bytes, snt_diag *diag) {
  return copy(stream, buffer, offset, (void *)(uintptr_t)src, bytes, true, diag); /* only read in this direction */
}

snt_result ocl_download(rt_stream *stream, rt_buffer *buffer, uint64_t offset, void *dst, uint64_t bytes, snt_diag *diag) {
  return copy(stream, buffer, offset, dst, bytes, false, diag);
}
