/* Copies between the host and buffers of OpenCL, in the stream's order, over on return, so that the caller's memory is free again. */
#include "runtime/rt_opencl.h"

snt_result ocl_upload(rt_stream *base, rt_buffer *buffer, uint64_t offset, const void *src, uint64_t bytes, snt_diag *diag) {
  ocl_device *device = (ocl_device *)base->device;
  if (device->base.lost) return SNT_E_DEVICE_LOST;
  SNT_TRY(rt_check_range(buffer, offset, bytes, diag));
  if (bytes == 0) return SNT_OK;
  if (buffer->host) {
    SNT_TRY(ocl_wait(base, diag));
    memcpy((char *)buffer->host + offset, src, bytes);
    return SNT_OK;
  }
  cl_int code = device->api.clEnqueueWriteBuffer(((ocl_stream *)base)->queue, ((ocl_buffer *)buffer)->mem, CL_TRUE, offset, bytes, src, 0,
                                                 NULL, NULL);
  return code == CL_SUCCESS ? SNT_OK : ocl_fail(device, code, "upload", "clEnqueueWriteBuffer", diag);
}

snt_result ocl_download(rt_stream *base, rt_buffer *buffer, uint64_t offset, void *dst, uint64_t bytes, snt_diag *diag) {
  ocl_device *device = (ocl_device *)base->device;
  if (device->base.lost) return SNT_E_DEVICE_LOST;
  SNT_TRY(rt_check_range(buffer, offset, bytes, diag));
  if (bytes == 0) return SNT_OK;
  if (buffer->host) {
    SNT_TRY(ocl_wait(base, diag));
    memcpy(dst, (const char *)buffer->host + offset, bytes);
    return SNT_OK;
  }
  cl_int code = device->api.clEnqueueReadBuffer(((ocl_stream *)base)->queue, ((ocl_buffer *)buffer)->mem, CL_TRUE, offset, bytes, dst, 0,
                                                NULL, NULL);
  return code == CL_SUCCESS ? SNT_OK : ocl_fail(device, code, "download", "clEnqueueReadBuffer", diag);
}
