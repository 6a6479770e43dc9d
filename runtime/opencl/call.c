/* What calls of OpenCL have in common: what their errors mean, and facts that are one number. */
#include "runtime/rt_opencl.h"

snt_result ocl_fail(ocl_device *device, cl_int code, const char *stage, const char *what, snt_diag *diag) {
  switch (code) {
  case CL_DEVICE_NOT_AVAILABLE: device->base.lost = true; return rt_fail_native(diag, SNT_E_DEVICE_LOST, code, stage, what);
  case CL_OUT_OF_HOST_MEMORY: return rt_fail_native(diag, SNT_E_HOST_MEM, code, stage, what);
  case CL_MEM_OBJECT_ALLOCATION_FAILURE:
  case CL_INVALID_BUFFER_SIZE:
  case CL_OUT_OF_RESOURCES: return rt_fail_native(diag, SNT_E_DEVICE_MEM, code, stage, what);
  default: return rt_fail_native(diag, SNT_E_BACKEND, code, stage, what);
  }
}

uint64_t ocl_query_uint(const ocl_api *api, cl_device_id id, cl_device_info what, size_t size) {
  uint64_t value = 0; /* little-endian: the low bytes of a smaller answer */
  if (api->clGetDeviceInfo(id, what, size, &value, NULL) != CL_SUCCESS) return 0;
  return value;
}
