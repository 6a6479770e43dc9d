/* What stands around every call of CUDA: the context that it is made in, and what its error means. */
#include "runtime/rt_cuda.h"

snt_result cuda_fail(cuda_device *device, CUresult code, const char *stage, const char *what, snt_diag *diag) {
  switch (code) {
  case CUDA_ERROR_OUT_OF_MEMORY: return rt_fail_native(diag, SNT_E_DEVICE_MEM, code, stage, what);
  case CUDA_ERROR_ILLEGAL_ADDRESS: /* the context is unusable after these */
  case CUDA_ERROR_LAUNCH_TIMEOUT:
  case CUDA_ERROR_LAUNCH_FAILED: device->base.lost = true; return rt_fail_native(diag, SNT_E_DEVICE_LOST, code, stage, what);
  default: return rt_fail_native(diag, SNT_E_BACKEND, code, stage, what);
  }
}

bool cuda_enter(cuda_device *device) { return device->api.cuCtxPushCurrent_v2(device->context) == CUDA_SUCCESS; }

void cuda_leave(cuda_device *device) {
  CUcontext popped;
  device->api.cuCtxPopCurrent_v2(&popped);
}
