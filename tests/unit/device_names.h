/* Devices that a unit program goes through unasked, and what its arguments may name: parts of these selectors, or the whole one of another device. */
#ifndef TESTS_UNIT_DEVICE_NAMES_H
#define TESTS_UNIT_DEVICE_NAMES_H
#include "ir/base.h"
#include <string.h>

static const char *const device_names[] = {"opencl:pocl", "opencl:rusticl", "vulkan:llvmpipe", "vulkan:swiftshader", "cuda-text", "cuda:0"};

/* A device that nobody has looked at yet. */
static inline bool device_is_another(const char *argument) {
  for (uint32_t i = 0; i < IR_COUNT(device_names); i++) {
    if (strstr(device_names[i], argument)) return false;
  }
  return strchr(argument, ':') != NULL;
}
#endif
