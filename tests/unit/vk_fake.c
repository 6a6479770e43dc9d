/* The fake device; see the header. */
#include "tests/unit/vk_fake.h"
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

vk_fake fake;
static atomic_llong next_handle;
static bool counting = true;

static void note(const char *name) {
  if (!counting) return;
  for (uint32_t i = 0; i < fake.asked_count; i++)
    if (!strcmp(fake.asked[i], name)) __atomic_fetch_add(&fake.calls[i], 1, __ATOMIC_RELAXED);
}

static VkResult made(const char *name, void *handle, VkResult (*unused)(void)) {
  (void)unused;
  note(name);
  if (__atomic_add_fetch(&fake.fallible, 1, __ATOMIC_RELAXED) == fake.fail_at) return fake.fail_with;
  const long long h = atomic_fetch_add(&next_handle, 1) + 1;
  memcpy(handle, &h, sizeof h);
  __atomic_fetch_add(&fake.alive, 1, __ATOMIC_RELAXED);
  return VK_SUCCESS;
}
static void gone(const char *name, unsigned long long handle) {
  note(name);
  if (handle) __atomic_fetch_sub(&fake.alive, 1, __ATOMIC_RELAXED);
}

#define MAKE(name, Info, Handle)                                                                                          \
  static VKAPI_ATTR VkResult VKAPI_CALL name(VkDevice d, const Info *info, const VkAllocationCallbacks *a, Handle *out) { \
    (void)d, (void)info, (void)a;                                                                                         \
    return made(#name, out, NULL);                                                                                        \
  }
#define DROP(name, Handle)                                                                       \
  static VKAPI_ATTR void VKAPI_CALL name(VkDevice d, Handle h, const VkAllocationCallbacks *a) { \
    (void)d, (void)a;                                                                            \
    unsigned long long number = 0;                                                               \
    memcpy(&number, &h, sizeof h);                                                               \
    gone(#name, number);                                                                         \
  }
MAKE(vkCreateShaderModule, VkShaderModuleCreateInfo, VkShaderModule)
MAKE(vkCreateDescriptorSetLayout, VkDescriptorSetLayoutCreateInfo, VkDescriptorSetLayout)
MAKE(vkCreatePipelineLayout, VkPipelineLayoutCreateInfo, VkPipelineLayout)
MAKE(vkCreateDescriptorPool, VkDescriptorPoolCreateInfo, VkDescriptorPool)
MAKE(vkCreateSampler, VkSamplerCreateInfo, VkSampler)
MAKE(vkCreateBufferView, VkBufferViewCreateInfo, VkBufferView)
DROP(vkDestroyShaderModule, VkShaderModule)
DROP(vkDestroyDescriptorSetLayout, VkDescriptorSetLayout)
DROP(vkDestroyPipelineLayout, VkPipelineLayout)
DROP(vkDestroyDescriptorPool, VkDescriptorPool)
DROP(vkDestroySampler, VkSampler)
DROP(vkDestroyBufferView, VkBufferView)
DROP(vkDestroyPipeline, VkPipeline)

static VKAPI_ATTR VkResult VKAPI_CALL vkCreateComputePipelines(VkDevice d, VkPipelineCache cache, uint32_t count,
                                                               const VkComputePipelineCreateInfo *info, const VkAllocationCallbacks *a,
                                                               VkPipeline *out) {
  (void)d, (void)cache, (void)count, (void)info, (void)a;
  return made("vkCreateComputePipelines", out, NULL);
}
static VKAPI_ATTR VkResult VKAPI_CALL vkAllocateDescriptorSets(VkDevice d, const VkDescriptorSetAllocateInfo *info, VkDescriptorSet *out) {
  (void)d, (void)info;
  const VkResult r = made("vkAllocateDescriptorSets", out, NULL);
  if (r == VK_SUCCESS) __atomic_fetch_sub(&fake.alive, 1, __ATOMIC_RELAXED); /* they go with their pool */
  return r;
}
static VKAPI_ATTR void VKAPI_CALL vkUpdateDescriptorSets(VkDevice d, uint32_t n, const VkWriteDescriptorSet *w, uint32_t m,
                                                         const VkCopyDescriptorSet *c) {
  (void)d, (void)n, (void)w, (void)m, (void)c;
  note("vkUpdateDescriptorSets");
}

/* ---- commands ---- */

static VKAPI_ATTR void VKAPI_CALL vkCmdBindPipeline(VkCommandBuffer b, VkPipelineBindPoint p, VkPipeline h) {
  (void)b, (void)p, (void)h;
  note("vkCmdBindPipeline");
}
static VKAPI_ATTR void VKAPI_CALL vkCmdBindDescriptorSets(VkCommandBuffer b, VkPipelineBindPoint p, VkPipelineLayout l, uint32_t first,
                                                          uint32_t n, const VkDescriptorSet *s, uint32_t m, const uint32_t *o) {
  (void)b, (void)p, (void)l, (void)first, (void)n, (void)s, (void)m, (void)o;
  note("vkCmdBindDescriptorSets");
}
static VKAPI_ATTR void VKAPI_CALL vkCmdPushConstants(VkCommandBuffer b, VkPipelineLayout l, VkShaderStageFlags s, uint32_t offset,
                                                     uint32_t size, const void *data) {
  (void)b, (void)l, (void)s, (void)offset;
  note("vkCmdPushConstants");
  if (!fake.logging || fake.dispatch_count == FAKE_MAX_DISPATCHES) return;
  memcpy(fake.dispatches[fake.dispatch_count].push, data, size);
  fake.dispatches[fake.dispatch_count].push_words = size / 4;
}
static VKAPI_ATTR void VKAPI_CALL vkCmdDispatch(VkCommandBuffer b, uint32_t x, uint32_t y, uint32_t z) {
  (void)b;
  note("vkCmdDispatch");
  if (!fake.logging || fake.dispatch_count == FAKE_MAX_DISPATCHES) return;
  vk_fake_dispatch *d = &fake.dispatches[fake.dispatch_count++];
  d->grid[0] = x, d->grid[1] = y, d->grid[2] = z;
}
static VKAPI_ATTR void VKAPI_CALL vkCmdPipelineBarrier(VkCommandBuffer c, VkPipelineStageFlags s, VkPipelineStageFlags t,
                                                       VkDependencyFlags f, uint32_t m, const VkMemoryBarrier *mb, uint32_t n,
                                                       const VkBufferMemoryBarrier *bb, uint32_t i, const VkImageMemoryBarrier *ib) {
  (void)c, (void)f, (void)bb, (void)ib;
  note(n || i ? "vkCmdPipelineBarrier with resources" : "vkCmdPipelineBarrier");
  if (fake.logging && m && fake.barrier_count < FAKE_MAX_DISPATCHES)
    fake.barriers[fake.barrier_count++] = (vk_fake_barrier){s, t, mb->srcAccessMask, mb->dstAccessMask, fake.dispatch_count};
  if (fake.logging && fake.dispatch_count < FAKE_MAX_DISPATCHES) fake.dispatches[fake.dispatch_count].barriers++;
}
static VKAPI_ATTR void VKAPI_CALL vkCmdCopyBuffer(VkCommandBuffer b, VkBuffer s, VkBuffer d, uint32_t n, const VkBufferCopy *r) {
  (void)b, (void)s;
  note("vkCmdCopyBuffer");
  for (uint32_t i = 0; fake.logging && i < n && fake.copy_count < FAKE_MAX_DISPATCHES; i++)
    fake.copies[fake.copy_count] = r[i], fake.copied_to[fake.copy_count++] = d;
}
static VKAPI_ATTR void VKAPI_CALL vkCmdFillBuffer(VkCommandBuffer b, VkBuffer d, VkDeviceSize o, VkDeviceSize n, uint32_t v) {
  (void)b, (void)d, (void)o, (void)n, (void)v;
  note("vkCmdFillBuffer");
}
static VKAPI_ATTR void VKAPI_CALL vkCmdWriteTimestamp(VkCommandBuffer b, VkPipelineStageFlagBits s, VkQueryPool p, uint32_t q) {
  (void)b, (void)s, (void)p, (void)q;
  note("vkCmdWriteTimestamp");
}

static VKAPI_ATTR void VKAPI_CALL vkCmdPushDescriptorSetKHR(VkCommandBuffer b, VkPipelineBindPoint p, VkPipelineLayout l, uint32_t set,
                                                            uint32_t n, const VkWriteDescriptorSet *w) {
  (void)b, (void)p, (void)l, (void)set, (void)n, (void)w;
  note("vkCmdPushDescriptorSetKHR");
}
static VKAPI_ATTR VkDeviceAddress VKAPI_CALL vkGetBufferDeviceAddressKHR(VkDevice d, const VkBufferDeviceAddressInfo *info) {
  VkDeviceAddress number = 0;
  (void)d;
  note("vkGetBufferDeviceAddressKHR");
  memcpy(&number, &info->buffer, sizeof info->buffer);
  return number << 32;
}

static VKAPI_ATTR VkResult VKAPI_CALL vkSetDebugUtilsObjectNameEXT(VkDevice d, const VkDebugUtilsObjectNameInfoEXT *info) {
  (void)d;
  note("vkSetDebugUtilsObjectNameEXT");
  if (fake.named_count < FAKE_MAX_NAMED)
    snprintf(fake.named[fake.named_count++], sizeof *fake.named, "%d %s", (int)info->objectType, info->pObjectName);
  return VK_SUCCESS;
}

/* ---- the physical device ---- */

void vk_fake_properties(VkPhysicalDeviceProperties2 *out) {
  VkPhysicalDeviceProperties *p = &out->properties;
  *p = (VkPhysicalDeviceProperties){.apiVersion = VK_API_VERSION_1_1, .deviceType = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU};
  strcpy(p->deviceName, "the least Vulkan 1.1");
  p->limits = (VkPhysicalDeviceLimits){.maxPerStageDescriptorStorageBuffers = 4,
                                       .maxPerStageResources = 128,
                                       .maxPushConstantsSize = 128,
                                       .maxComputeWorkGroupInvocations = 128,
                                       .maxComputeWorkGroupSize = {128, 128, 64},
                                       .maxComputeWorkGroupCount = {65535, 65535, 65535},
                                       .maxComputeSharedMemorySize = 16384,
                                       .maxStorageBufferRange = fake.most_range ? fake.most_range : 1 << 27,
                                       .maxTexelBufferElements = 65536,
                                       .minStorageBufferOffsetAlignment = 256,
                                       .minTexelBufferOffsetAlignment = 256};
  for (VkBaseOutStructure *s = out->pNext; s; s = s->pNext) {
    void *block = s;
    if (s->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES)
      ((VkPhysicalDeviceMaintenance3Properties *)block)->maxMemoryAllocationSize = 1 << 30;
    if (s->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PUSH_DESCRIPTOR_PROPERTIES_KHR)
      ((VkPhysicalDevicePushDescriptorPropertiesKHR *)block)->maxPushDescriptors = 32;
    if (s->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_PROPERTIES) {
      VkPhysicalDeviceShaderIntegerDotProductProperties *dots = block;
      dots->integerDotProduct4x8BitPackedMixedSignednessAccelerated = !fake.slow_dots;
    }
    if (s->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES) {
      VkPhysicalDeviceSubgroupProperties *g = block;
      g->subgroupSize = 1;
      g->supportedStages = VK_SHADER_STAGE_COMPUTE_BIT;
      g->supportedOperations = VK_SUBGROUP_FEATURE_BASIC_BIT;
    }
  }
}
static VKAPI_ATTR void VKAPI_CALL vkGetPhysicalDeviceProperties2(VkPhysicalDevice p, VkPhysicalDeviceProperties2 *out) {
  (void)p;
  vk_fake_properties(out);
}

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL vkGetDeviceProcAddr(VkDevice d, const char *name) {
  (void)d;
  return vk_fake_get(VK_NULL_HANDLE, name);
}

#define ROW(name) \
  { #name, (PFN_vkVoidFunction)name }
static const struct {
  const char *name;
  PFN_vkVoidFunction function;
} table[] = {ROW(vkGetPhysicalDeviceProperties2),
             ROW(vkGetDeviceProcAddr),
             ROW(vkCreateShaderModule),
             ROW(vkDestroyShaderModule),
             ROW(vkCreateDescriptorSetLayout),
             ROW(vkDestroyDescriptorSetLayout),
             ROW(vkCreatePipelineLayout),
             ROW(vkDestroyPipelineLayout),
             ROW(vkCreateComputePipelines),
             ROW(vkDestroyPipeline),
             ROW(vkCreateDescriptorPool),
             ROW(vkDestroyDescriptorPool),
             ROW(vkAllocateDescriptorSets),
             ROW(vkUpdateDescriptorSets),
             ROW(vkCreateSampler),
             ROW(vkDestroySampler),
             ROW(vkCreateBufferView),
             ROW(vkDestroyBufferView),
             ROW(vkCmdBindPipeline),
             ROW(vkCmdBindDescriptorSets),
             ROW(vkCmdPushConstants),
             ROW(vkCmdDispatch),
             ROW(vkCmdPipelineBarrier),
             ROW(vkCmdCopyBuffer),
             ROW(vkCmdFillBuffer),
             ROW(vkCmdWriteTimestamp),
             ROW(vkCmdPushDescriptorSetKHR),
             ROW(vkGetBufferDeviceAddressKHR),
             ROW(vkSetDebugUtilsObjectNameEXT)};

PFN_vkVoidFunction VKAPI_PTR vk_fake_get(VkInstance instance, const char *name) {
  (void)instance;
  bool known = false;
  for (uint32_t i = 0; i < fake.asked_count; i++) known = known || !strcmp(fake.asked[i], name);
  if (!known && fake.asked_count < FAKE_MAX_NAMES) fake.asked[fake.asked_count++] = name;
  for (size_t i = 0; i < sizeof table / sizeof *table; i++)
    if (!strcmp(table[i].name, name)) return table[i].function;
  return NULL;
}

void vk_fake_reset(void) {
  memset(&fake, 0, sizeof fake);
  counting = true;
}
void vk_fake_forget_calls(void) {
  memset(fake.calls, 0, sizeof fake.calls);
  fake.dispatch_count = fake.barrier_count = fake.copy_count = 0;
  memset(fake.dispatches, 0, sizeof fake.dispatches);
}
uint32_t vk_fake_calls(const char *name) {
  for (uint32_t i = 0; i < fake.asked_count; i++)
    if (!strcmp(fake.asked[i], name)) return fake.calls[i];
  return 0;
}
uint32_t vk_fake_all_calls(void) {
  uint32_t sum = 0;
  for (uint32_t i = 0; i < fake.asked_count; i++) sum += fake.calls[i];
  return sum;
}
