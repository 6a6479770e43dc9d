/* What every call of the door checks, and what an error of Vulkan means. */
#include "door/door.h"
#include "runtime/rt_common.h"

snt_result door_fail(const snt_exec *x, VkResult code, const char *stage, const char *what, snt_diag *diag) {
  static const struct {
    VkResult code;
    snt_result result;
  } known[] = {{VK_ERROR_DEVICE_LOST, SNT_E_DEVICE_LOST},          {VK_ERROR_OUT_OF_HOST_MEMORY, SNT_E_HOST_MEM},
               {VK_ERROR_OUT_OF_DEVICE_MEMORY, SNT_E_DEVICE_MEM},  {VK_ERROR_TOO_MANY_OBJECTS, SNT_E_DEVICE_MEM},
               {VK_ERROR_OUT_OF_POOL_MEMORY, SNT_E_DEVICE_MEM},    {VK_ERROR_FRAGMENTED_POOL, SNT_E_DEVICE_MEM},
               {VK_PIPELINE_COMPILE_REQUIRED, SNT_E_WOULD_COMPILE}};
  snt_result result = SNT_E_BACKEND;
  for (uint32_t i = 0; i < IR_COUNT(known); i++)
    if (known[i].code == code) result = known[i].result;
  if (code == VK_ERROR_DEVICE_LOST) atomic_store(&door_of(x)->lost, true);
  return rt_fail_native(diag, result, code, stage, what);
}

snt_result door_check_lost(const snt_exec *x, const char *stage, snt_diag *diag) {
  const door_device *d = door_of(x);
  if (atomic_load_explicit(&((door_device *)(uintptr_t)d)->lost, memory_order_relaxed))
    return ir_fail(diag, SNT_E_DEVICE_LOST, stage, 0, "%s is lost", x->device->info.selector);
  if (!d->handle) return ir_fail(diag, SNT_E_UNSUPPORTED, stage, 0, "%s is only planned", x->device->info.selector);
  return SNT_OK;
}
