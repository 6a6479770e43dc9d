/* The Vulkan backend's own: entry points, objects. Vulkan 1.1, compute queue, no link to any vk* symbol. */
#ifndef RUNTIME_RT_VULKAN_H
#define RUNTIME_RT_VULKAN_H
#define VK_NO_PROTOTYPES
#include "runtime/rt_common.h"
#include <vulkan/vulkan_core.h>

/* Entry points by how they are looked up. */
#define VK_GLOBAL_FUNCTIONS(F) F(vkCreateInstance) F(vkEnumerateInstanceVersion) F(vkEnumerateInstanceLayerProperties)
// clang-format off
#define VK_INSTANCE_FUNCTIONS(F)                                                                                            \
  F(vkDestroyInstance) F(vkEnumeratePhysicalDevices) F(vkGetPhysicalDeviceProperties2) F(vkGetPhysicalDeviceFeatures2)       \
  F(vkGetPhysicalDeviceQueueFamilyProperties) F(vkGetPhysicalDeviceMemoryProperties) F(vkEnumerateDeviceExtensionProperties) \
  F(vkCreateDevice) F(vkGetDeviceProcAddr)
#define VK_DEVICE_FUNCTIONS(F)                                                                                           \
  F(vkDestroyDevice) F(vkGetDeviceQueue) F(vkDeviceWaitIdle) F(vkQueueSubmit) F(vkCreateBuffer) F(vkDestroyBuffer)        \
  F(vkGetBufferMemoryRequirements) F(vkAllocateMemory) F(vkFreeMemory) F(vkBindBufferMemory) F(vkMapMemory)               \
  F(vkCreateBufferView) F(vkDestroyBufferView) F(vkCreateImage) F(vkDestroyImage) F(vkGetImageMemoryRequirements) F(vkBindImageMemory) F(vkCreateImageView) F(vkDestroyImageView) F(vkCmdCopyBufferToImage) F(vkCmdCopyImageToBuffer) F(vkCreateShaderModule) F(vkDestroyShaderModule)                           \
  F(vkCreatePipelineCache) F(vkDestroyPipelineCache) F(vkGetPipelineCacheData) F(vkCreateComputePipelines)                \
  F(vkDestroyPipeline) F(vkCreatePipelineLayout) F(vkDestroyPipelineLayout) F(vkCreateDescriptorSetLayout)                \
  F(vkDestroyDescriptorSetLayout) F(vkCreateDescriptorPool) F(vkDestroyDescriptorPool) F(vkResetDescriptorPool)           \
  F(vkAllocateDescriptorSets) F(vkUpdateDescriptorSets) F(vkCreateCommandPool) F(vkDestroyCommandPool)                    \
  F(vkAllocateCommandBuffers) F(vkBeginCommandBuffer) F(vkEndCommandBuffer) F(vkCreateFence) F(vkDestroyFence)            \
  F(vkResetFences) F(vkWaitForFences) F(vkGetFenceStatus) F(vkCreateQueryPool) F(vkDestroyQueryPool)                      \
  F(vkGetQueryPoolResults) F(vkCmdBindPipeline) F(vkCmdBindDescriptorSets) F(vkCmdPushConstants) F(vkCmdDispatch)         \
  F(vkCmdPipelineBarrier) F(vkCmdCopyBuffer) F(vkCmdResetQueryPool) F(vkCmdWriteTimestamp)
// clang-format on

typedef struct vk_api {
#define VK_MEMBER(name) PFN_##name name;
  VK_GLOBAL_FUNCTIONS(VK_MEMBER)
  VK_INSTANCE_FUNCTIONS(VK_MEMBER)
  VK_DEVICE_FUNCTIONS(VK_MEMBER)
#undef VK_MEMBER
} vk_api;

enum { VK_VALIDATE = 1, VK_VALIDATE_GPU = 2 }; /* selector suffixes "+validate" and "+validate-gpu" */

typedef struct vk_messages {
  rt_lock lock;
  uint32_t count;
  char first[200];
} vk_messages; /* of the validation layers: errors only */

typedef struct vk_instance {
  void *library;
  VkInstance handle;
  VkDebugUtilsMessengerEXT messenger;
  PFN_vkDestroyDebugUtilsMessengerEXT destroy_messenger;
  vk_messages messages;
  uint32_t version;
  PFN_vkGetInstanceProcAddr get;
  vk_api api; /* device functions too, once a device is made */
} vk_instance;

/* VK_KHR_cooperative_matrix, which headers before 1.3.255 lack: its two structs and its function. */
#define VK_UNITS_EXTENSION "VK_KHR_cooperative_matrix"
#define VK_UNITS_FEATURES ((VkStructureType)1000506000)
#define VK_UNITS_PROPERTIES ((VkStructureType)1000506001)
typedef struct vk_units_features {
  VkStructureType type;
  void *next;
  VkBool32 cooperative_matrix, robust_buffer_access;
} vk_units_features;
typedef struct vk_units_properties {
  VkStructureType type;
  void *next;
  uint32_t m, n, k, a, b, c, result;
  VkBool32 saturating;
  uint32_t scope;
} vk_units_properties;
typedef VkResult(VKAPI_PTR *vk_get_units)(VkPhysicalDevice, uint32_t *, vk_units_properties *);

/* What a physical device offers, and the chain that asks for it: filled by queries, handed to vkCreateDevice as it is. */
typedef struct vk_features {
  VkPhysicalDeviceFeatures2 core;
  VkPhysicalDevice16BitStorageFeatures storage16;
  VkPhysicalDevice8BitStorageFeatures storage8;
  VkPhysicalDeviceShaderFloat16Int8Features small;
  VkPhysicalDeviceSubgroupSizeControlFeatures subgroup_size;
  VkPhysicalDeviceShaderSubgroupExtendedTypesFeatures subgroup_types;
  VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR executables;
  VkPhysicalDeviceVulkanMemoryModelFeatures memory_model; /* what modules with matrices are in */
  vk_units_features units;
  VkPhysicalDeviceShaderIntegerDotProductFeatures dots;
  const char *extensions[12];
  uint32_t extension_count;
  bool float_controls; /* modules may ask how floats are handled: version 1.2 or an extension, which has no feature */
} vk_features;

typedef struct vk_device {
  rt_device base;
  vk_instance *instance;
  VkPhysicalDevice physical;
  VkDevice handle;
  VkQueue queue;
  rt_lock queue_lock; /* all streams submit to the one queue */
  uint32_t family, flags;
  bool unified; /* kernels use host-visible memory: no staging */
  bool timestamps;
  double timestamp_ns;
  uint64_t timestamp_mask;
  uint32_t max_texels, next_serial;
  VkDeviceSize max_allocation;
  vk_features features;
  PFN_vkGetPipelineExecutablePropertiesKHR executables; /* null: the device keeps no statistics */
  PFN_vkGetPipelineExecutableStatisticsKHR statistics;
} vk_device;

typedef struct vk_memory {
  VkBuffer buffer;
  VkDeviceMemory memory;
  void *host;
  VkDeviceSize bytes;
} vk_memory;
typedef struct vk_view {
  uint64_t offset, bytes;
  uint32_t kind;
  VkBufferView handle;
} vk_view;
typedef struct vk_buffer {
  rt_buffer base;
  vk_memory memory;
  uint32_t serial; /* never used twice: keys of descriptor sets */
  rt_lock lock;    /* of the views */
  vk_view *views;
  uint32_t view_count, view_capacity;
  VkImage image; /* an image in place of a buffer: rows of texels, in the GENERAL layout once `general` */
  VkImageView image_view;
  uint32_t width, height, texel_bytes;
  bool general;
} vk_buffer;

typedef struct vk_pipeline {
  rt_pipeline base;
  VkDescriptorSetLayout set_layout;
  VkPipelineLayout layout;
  VkPipelineCache cache;
  VkPipeline handle;
  uint32_t binding_count, block_bytes, serial;
  bool report; /* built with statistics */
  uint8_t kinds[64];
} vk_pipeline;
enum { VK_MAX_BINDINGS = 64 };

/* One recording: a command buffer with its fence and queries, used again when the device and the event are done with it. */
/* A dispatch as it is recorded; two that are the same byte by byte record the same commands. */
typedef struct vk_call {
  const vk_pipeline *pipeline;
  uint64_t serial; /* the pipeline's: an address may come back */
  VkDescriptorSet set;
  uint32_t barrier, launches, word_count, grid[3];
  uint32_t words[RT_MAX_BLOCK_WORDS];
} vk_call;
typedef struct vk_calls {
  vk_call *at;
  uint32_t count, capacity;
} vk_calls;
typedef struct vk_batch vk_batch;
struct vk_batch {
  vk_batch *next;
  vk_calls calls; /* what `commands` holds, where that may be submitted again */
  VkCommandBuffer commands;
  VkFence fence;
  VkQueryPool queries;
  uint32_t query_capacity, timed_count;
  bool pending, held; /* submitted and not known to be over; an event points here */
  uint64_t *ticks;    /* [query_capacity] */
};

/* Descriptor sets by what they bind, so that a set is written once and then only looked up. */
typedef struct vk_set {
  uint64_t hash;
  uint32_t key, key_words;
  VkDescriptorSet handle;
} vk_set; /* key: first word in `keys` */
typedef struct vk_sets {
  vk_set *at;
  uint32_t count, capacity;
  uint64_t *keys;
  uint32_t key_count, key_capacity;
  VkDescriptorPool *pools;
  uint32_t pool_count, pool_capacity, pool_used; /* pools before pool_used are full */
} vk_sets;

typedef struct vk_stream {
  rt_stream base;
  VkCommandPool pool;
  vk_batch *pending, **pending_tail, *idle; /* oldest first; of the idle ones the latest */
  vk_calls calls;                           /* of the submission at hand */
  vk_sets sets;
  vk_memory staging;
} vk_stream;
typedef struct vk_event {
  rt_event base;
  vk_batch *batch;
  uint32_t host_count;
  uint64_t *host_ns;
} vk_event;

static inline const vk_api *vk_of(const rt_device *device) { return &((const vk_device *)device)->instance->api; }

/* vulkan/instance.c */
snt_result vk_instance_open(const snt_host_alloc *, uint32_t flags, vk_instance **out, snt_diag *);
void vk_instance_close(const snt_host_alloc *, vk_instance *);
bool vk_load_device_functions(vk_instance *, VkDevice);
void vk_load_statistics(vk_device *); /* where the device keeps them */
bool vk_has_extension(const vk_api *, const snt_host_alloc *, VkPhysicalDevice, const char *name);
snt_result vk_fail(vk_device *, VkResult, const char *stage, const char *what, snt_diag *);
/* A validation message since the last call makes any result a failure. */
snt_result vk_judge(vk_device *, snt_result, snt_diag *);
/* vulkan/profile.c */
void vk_query_features(const vk_api *, const snt_host_alloc *, VkPhysicalDevice, bool for_layers, vk_features *);
snt_result vk_query_profile(vk_device *, const char *base, snt_diag *);
/* What a profile needs to know of a device, whoever opened it. */
typedef struct vk_facts {
  const vk_features *features; /* enabled ones */
  const VkPhysicalDeviceSubgroupProperties *subgroups;
  const VkPhysicalDeviceLimits *limits;
  const VkPhysicalDeviceSubgroupSizeControlProperties *sizes; /* of subgroups; one where the device was made without their control */
  VkDeviceSize max_allocation;
  bool cpu, fast_dots; /* fast_dots: products of words of bytes are enabled, and instructions of the device */
  kir_mma mma[KIR_MMA_TYPES];
  const VkPhysicalDeviceFloatControlsProperties *float_controls; /* null: modules may ask for none */
} vk_facts;
snt_result vk_fill_profile(const vk_facts *, const char *base, cost_profile *, snt_diag *);
const char *vk_profile_name(const char *device, const char *driver, VkPhysicalDeviceType);
/* vulkan/units.c: the products of matrix units, of a device that has VK_UNITS_EXTENSION. out: KIR_MMA_TYPES rows. */
void vk_query_units(PFN_vkGetInstanceProcAddr, VkInstance, const snt_host_alloc *, VkPhysicalDevice, kir_mma *out);
/* vulkan/memory.c */
snt_result vk_memory_create(vk_device *, VkDeviceSize bytes, VkBufferUsageFlags, bool for_host, vk_memory *out, snt_diag *);
void vk_memory_destroy(vk_device *, vk_memory *);
snt_result vk_buffer_create(rt_device *, uint64_t bytes, rt_buffer **out, snt_diag *);
void vk_buffer_destroy(rt_buffer *);
uint64_t vk_slot_bytes(const vk_device *, uint32_t kind); /* most of a binding: the storage range, or as many texels as a view may have */
VkResult vk_buffer_view(vk_buffer *, uint64_t offset, uint64_t bytes, uint32_t kind, VkBufferView *out);
bool vk_choose_type(const vk_device *, uint32_t allowed, bool for_host, uint32_t *out);
enum { VK_STAGING_BYTES = 8 << 20 };
snt_result vk_ensure_staging(vk_stream *, snt_diag *);
/* vulkan/copy.c */
snt_result vk_upload(rt_stream *, rt_buffer *, uint64_t offset, const void *src, uint64_t bytes, snt_diag *);
snt_result vk_download(rt_stream *, rt_buffer *, uint64_t offset, void *dst, uint64_t bytes, snt_diag *);
/* vulkan/image.c */
snt_result vk_image_create(rt_device *, const char *format, uint32_t width, uint32_t height, rt_buffer **out, snt_diag *);
snt_result vk_image_copy(vk_stream *, vk_buffer *, uint64_t offset, char *host, uint64_t bytes, bool up, snt_diag *);
/* vulkan/pipeline.c */
VkDescriptorType vk_descriptor_type(uint8_t slot_kind);
snt_result vk_pipeline_create(rt_device *, const rt_code *, const void *cached, size_t cached_bytes, rt_pipeline **out, snt_diag *);
snt_result vk_pipeline_binary(rt_pipeline *, void *dst, size_t *size);
void vk_pipeline_destroy(rt_pipeline *);
void vk_pipeline_report(const rt_pipeline *, rt_report *out);
/* vulkan/sets.c */
snt_result vk_find_set(vk_stream *, const rt_dispatch *, VkDescriptorSet *out, snt_diag *);
void vk_forget_sets(vk_stream *, bool destroy); /* only when nothing is pending */
bool vk_sets_crowded(const vk_stream *);
/* vulkan/batch.c */
snt_result vk_batch_begin(vk_stream *, uint32_t timed_count, vk_batch **out, snt_diag *);
vk_batch *vk_batch_again(vk_stream *, snt_diag *); /* an idle one that holds stream->calls, ready to be submitted; null: none does */
void vk_batch_keep(vk_stream *, vk_batch *);       /* it holds stream->calls: may serve again */
void vk_batches_forget(vk_stream *);               /* their sets are gone: none serves again */
snt_result vk_batch_end(vk_stream *, vk_batch *, snt_diag *); /* of the recording */
snt_result vk_batch_submit(vk_stream *, vk_batch *, snt_diag *);
void vk_batch_drop(vk_stream *, vk_batch *);                                          /* not submitted after all */
snt_result vk_batch_finish(vk_stream *, vk_batch *, uint64_t timeout_ns, snt_diag *); /* SNT_NOT_READY on timeout */
void vk_batch_release(vk_stream *, vk_batch *);                                       /* the event is gone */
void vk_batches_destroy(vk_stream *);
/* vulkan/stream.c */
snt_result vk_stream_create(rt_device *, rt_stream **out, snt_diag *);
void vk_stream_destroy(rt_stream *);
snt_result vk_submit(rt_stream *, uint32_t count, const rt_dispatch *, bool timed, rt_event **event, snt_diag *);
snt_result vk_wait(rt_stream *, snt_diag *);
snt_result vk_event_wait(rt_event *, uint64_t timeout_ns);
snt_result vk_event_timings(rt_event *, uint32_t *count, uint64_t *ns);
void vk_event_destroy(rt_event *);
#endif
