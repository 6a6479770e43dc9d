/* What a Vulkan driver says of a pipeline that it built (VK_KHR_pipeline_executable_properties). The names of statistics are each driver's own. */
#include "runtime/rt_vulkan.h"

typedef enum { REPORT_REGISTERS, REPORT_ITEM_BYTES, REPORT_SUBGROUP_BYTES } vk_statistic;
static const struct {
  const char *name;
  vk_statistic is;
} statistics[] = {
    {"Register Count", REPORT_REGISTERS},
    {"Local Memory Size", REPORT_ITEM_BYTES}, /* NVIDIA's driver, as its users print it */
    {"VGPRs", REPORT_REGISTERS},
    {"Scratch size", REPORT_SUBGROUP_BYTES}, /* Mesa, RADV: shader_stats.xml */
    {"GRF registers", REPORT_REGISTERS},
    {"Scratch Memory Size", REPORT_SUBGROUP_BYTES},  /* Mesa, ANV: of a hardware thread */
    {"Scratch memory usage", REPORT_SUBGROUP_BYTES}, /* AMD's own driver */
};

void vk_load_statistics(vk_device *device) {
  const PFN_vkGetDeviceProcAddr get = device->instance->api.vkGetDeviceProcAddr;
  device->executables = (PFN_vkGetPipelineExecutablePropertiesKHR)get(device->handle, "vkGetPipelineExecutablePropertiesKHR");
  device->statistics = (PFN_vkGetPipelineExecutableStatisticsKHR)get(device->handle, "vkGetPipelineExecutableStatisticsKHR");
  if (!device->executables) device->statistics = NULL;
}

static uint64_t value_of(const VkPipelineExecutableStatisticKHR *s) {
  switch (s->format) {
  case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_UINT64_KHR: return s->value.u64;
  case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_INT64_KHR: return s->value.i64 > 0 ? (uint64_t)s->value.i64 : 0;
  default: return 0;
  }
}

static void raise_to(uint32_t *most, uint64_t value) {
  const uint32_t kept = value < UINT32_MAX ? (uint32_t)value : UINT32_MAX - 1;
  if (*most == UINT32_MAX || *most < kept) *most = kept;
}

static void hear(const VkPipelineExecutableStatisticKHR *s, uint32_t subgroup, rt_report *out) {
  for (uint32_t i = 0; i < IR_COUNT(statistics); i++) {
    if (strcmp(s->name, statistics[i].name)) continue;
    const uint64_t value = value_of(s), items = subgroup ? subgroup : 1;
    if (statistics[i].is == REPORT_REGISTERS) raise_to(&out->registers, value);
    else raise_to(&out->private_bytes, statistics[i].is == REPORT_SUBGROUP_BYTES ? (value + items - 1) / items : value);
  }
}

/* The worst of the executables: some drivers make one for each width that a subgroup may have. */
void vk_pipeline_report(const rt_pipeline *base, rt_report *out) {
  enum { EXECUTABLES = 4, STATISTICS = 64 };
  const vk_pipeline *pipeline = (const vk_pipeline *)base;
  const vk_device *device = (const vk_device *)base->device;
  VkPipelineExecutablePropertiesKHR executables[EXECUTABLES];
  uint32_t count = EXECUTABLES;
  *out = (rt_report){UINT32_MAX, UINT32_MAX};
  if (!pipeline->report) return;
  const VkPipelineInfoKHR info = {.sType = VK_STRUCTURE_TYPE_PIPELINE_INFO_KHR, .pipeline = pipeline->handle};
  for (uint32_t i = 0; i < EXECUTABLES; i++)
    executables[i] = (VkPipelineExecutablePropertiesKHR){.sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_PROPERTIES_KHR};
  if (device->executables(device->handle, &info, &count, executables) < 0) return;
  VkPipelineExecutableStatisticKHR *said = rt_take(device->base.alloc, STATISTICS * sizeof *said);
  for (uint32_t e = 0; said && e < count; e++) {
    const VkPipelineExecutableInfoKHR which = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INFO_KHR, .pipeline = pipeline->handle, .executableIndex = e};
    uint32_t have = STATISTICS;
    for (uint32_t i = 0; i < STATISTICS; i++)
      said[i] = (VkPipelineExecutableStatisticKHR){.sType = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_STATISTIC_KHR};
    if (device->statistics(device->handle, &which, &have, said) < 0) continue;
    for (uint32_t i = 0; i < have; i++) hear(&said[i], executables[e].subgroupSize, out);
  }
  rt_give(device->base.alloc, said, STATISTICS * sizeof *said);
}
