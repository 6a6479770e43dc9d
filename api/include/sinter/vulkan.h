/* The Vulkan door: fused programs inside a frame that the host owns. The host has the instance, the device, the queues, the memory and the
   command buffers; Sinter appends dispatches to them, or only describes them. C99, C++11; include volk.h or your own Vulkan headers first if you use them.

   What this library never does, here: allocate device memory, submit, wait, create a queue, a fence or a thread, transition an image layout, transfer
   a queue family, link a vk* symbol (every entry point comes from the host), read the environment, print, abort.
   What a call does is said beside it. Structs and arrays given are read during the call and copied where they are needed later (the handles
   in them are borrowed); sizes are bytes, offsets count from the start of what they are an offset of. `record` and `binding_set` take no
   lock and no memory; `record` calls only
     vkCmdBindPipeline, vkCmdBindDescriptorSets, vkCmdPushConstants, vkCmdDispatch, vkCmdPipelineBarrier,
     and on request vkCmdWriteTimestamp, vkCmdBegin/EndDebugUtilsLabelEXT, and vkCmdPushDescriptorSetKHR in place of vkCmdBindDescriptorSets.
   After `record` these are undefined: the compute pipeline, compute descriptor set 0, all push constants. Nothing else.

   Baseline: Vulkan 1.1 with no extension and no feature. More is used only when `created_with` says that the host enabled it.

   Threads: contexts, programs, devices and ready execs may be used concurrently. Different slots of a binding may be set and recorded
   concurrently, into different command buffers; one slot is one thread's at a time. Children keep their parents alive, destruction may come in
   any order and never waits: what the GPU still uses is the host's to know. */
#ifndef SINTER_VULKAN_H
#define SINTER_VULKAN_H
#if !defined(VULKAN_CORE_H_)
#include <vulkan/vulkan_core.h>
#endif
#include "sinter.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef struct snt_binding snt_binding; /* the resources of an exec by slot, one slot a frame in flight */

// clang-format off
enum {
  SNT_TYPE_vk_wishlist = 512, SNT_TYPE_vk_attach_info, SNT_TYPE_vk_caps, SNT_TYPE_vk_exec_info, SNT_TYPE_vk_memory_need, SNT_TYPE_vk_port,
  SNT_TYPE_vk_init_info, SNT_TYPE_vk_binding_info, SNT_TYPE_vk_record_info, SNT_TYPE_vk_description,
  SNT_TYPE_vk_describe_info, SNT_TYPE_vk_state
};
// clang-format on

/* ---- 1. before vkCreateDevice: what would help. Nothing is needed. ---- */
enum {
  SNT_VK_FEATURE_STORAGE16 = 1 << 0, /* storageBuffer16BitAccess */
  SNT_VK_FEATURE_STORAGE8 = 1 << 1,  /* storageBuffer8BitAccess */
  SNT_VK_FEATURE_FLOAT16 = 1 << 2,   /* shaderFloat16 */
  SNT_VK_FEATURE_INT8 = 1 << 3,      /* shaderInt8 */
  SNT_VK_FEATURE_INT16 = 1 << 4,
  SNT_VK_FEATURE_INT64 = 1 << 5,
  SNT_VK_FEATURE_FLOAT64 = 1 << 6,
  SNT_VK_FEATURE_SUBGROUP_TYPES = 1 << 7,          /* shaderSubgroupExtendedTypes */
  SNT_VK_FEATURE_SUBGROUP_SIZE = 1 << 8,           /* subgroupSizeControl: kernels name one of several sizes */
  SNT_VK_FEATURE_IMAGE_FORMATS = 1 << 9,           /* shaderStorageImageExtendedFormats */
  SNT_VK_FEATURE_IMAGE_WITHOUT_FORMAT = 1 << 10,   /* shaderStorageImageWriteWithoutFormat */
  SNT_VK_FEATURE_PIPELINE_CACHE_CONTROL = 1 << 11, /* pipelineCreationCacheControl: SNT_VK_CACHED_ONLY asks the driver */
  SNT_VK_FEATURE_BUFFER_ADDRESS = 1 << 12,         /* bufferDeviceAddress: for SNT_VK_ADDRESSES */
  SNT_VK_FEATURE_PUSH_DESCRIPTORS = 1 << 13,   /* the extension VK_KHR_push_descriptor, which has no feature: for SNT_VK_PUSH_DESCRIPTORS */
  SNT_VK_FEATURE_MEMORY_MODEL = 1 << 14,       /* vulkanMemoryModel, not without MEMORY_MODEL_DEVICE: for COOPERATIVE_MATRIX */
  SNT_VK_FEATURE_COOPERATIVE_MATRIX = 1 << 15, /* VK_KHR_cooperative_matrix: products of 16-bit floats and of bytes on matrix units */
  SNT_VK_FEATURE_FULL_SUBGROUPS = 1 << 16,     /* computeFullSubgroups: kernels name a size at all; for COOPERATIVE_MATRIX */
  SNT_VK_FEATURE_MEMORY_MODEL_DEVICE = 1 << 17, /* vulkanMemoryModelDeviceScope: atomics need it where vulkanMemoryModel is enabled */
  SNT_VK_FEATURE_FLOAT_CONTROLS =
      1 << 18, /* Vulkan 1.2 or VK_KHR_shader_float_controls, which has no feature: STRICT keeps the sign of zeros by it */
  SNT_VK_FEATURE_INTEGER_DOT_PRODUCT =
      1 << 19 /* shaderIntegerDotProduct: products of bytes, where the device's properties say that they are fast */
};
typedef struct snt_vk_wishlist {
  snt_out_head head;
  uint32_t min_api_version; /* VK_API_VERSION_1_1 */
  uint32_t extension_count; /* of the device, all optional: those whose features are below and that its version lacks in core */
  const char *extensions[16];
  uint64_t features; /* SNT_VK_FEATURE_*: what the device has and programs can use */
} snt_vk_wishlist;
SNT_API snt_result SNT_CALL snt_vk_query_wishlist(PFN_vkGetInstanceProcAddr, VkInstance, VkPhysicalDevice, snt_vk_wishlist *out);
/* Sets wished features in the structs that are in the host's chain already (their own or VkPhysicalDeviceVulkan1xFeatures); adds no struct, clears
   nothing. `granted` (optional): which are on now. The structs must be those that the device and its enabled extensions know. */
SNT_API snt_result SNT_CALL snt_vk_merge_features(uint64_t wish, VkPhysicalDeviceFeatures2 *chain, uint64_t *granted);

/* ---- 2. the host's device, or one that is only described ---- */
enum {
  SNT_VK_ATTACH_VALIDATE = 1, /* check what costs time to check: overlapping memory ranges, view and layout of every image, slots in use */
  SNT_VK_CACHE_EXTERNALLY_SYNCED = 2, /* `pipeline_cache` was created so: the host runs one job at a time */
  SNT_VK_ADDRESSES =
      8, /* programs compiled for this device reach buffers by their addresses, which stand in the push constants: no descriptors for
                           buffers. Every buffer given has usage SHADER_DEVICE_ADDRESS, its memory the allocation flag. Needs bufferDeviceAddress */
  SNT_VK_PORTABLE = 4 /* keep to what SPIRV-Cross translates to MSL and HLSL (shader model 6.0): narrow types lie in words, no subgroups */
};
typedef struct snt_vk_attach_info { /* copied; the handles are borrowed until the last child is destroyed */
  snt_head head;
  VkInstance instance;
  VkPhysicalDevice physical_device;
  VkDevice device;
  PFN_vkGetInstanceProcAddr get_instance_proc; /* the only way to Vulkan: a layer or a recorder may stand behind it */
  uint32_t api_version;                        /* what the application uses (VkApplicationInfo), not the header's; 0: 1.1 */
  const VkDeviceCreateInfo *created_with;      /* as the device was created: Vulkan has no query for what was enabled. Null: the baseline */
  uint32_t instance_extension_count;
  const char *const *instance_extensions; /* VK_EXT_debug_utils here: objects are named `<debug_name>/<program>/<step>` */
  VkPipelineCache pipeline_cache;         /* may be null */
  const VkAllocationCallbacks *vk_alloc;  /* may be null */
  const char *debug_name;                 /* may be null: "sinter" */
  uint32_t flags;
} snt_vk_attach_info;
/* Queries the physical device and looks up entry points; creates nothing. The device is used with snt_device_get_info, snt_device_profile,
   snt_exec_create and the functions below; snt_buffer_create, snt_stream_create, snt_submit and snt_run answer SNT_E_UNSUPPORTED. */
SNT_API snt_result SNT_CALL snt_vk_attach(snt_context *, const snt_vk_attach_info *, snt_device **out, snt_diag *);
typedef struct
    snt_vk_caps { /* a device by its numbers. Known chains: subgroup, maintenance 3, subgroup size control, integer dot product; feature structs */
  snt_head head;
  uint32_t api_version;
  const VkPhysicalDeviceProperties2 *properties;
  const VkPhysicalDeviceFeatures2 *features; /* null: none */
  uint32_t flags;                            /* SNT_VK_PORTABLE, SNT_VK_ADDRESSES */
} snt_vk_caps;
/* A device that is not here: programs compile for its profile, execs describe themselves (9.); jobs answer SNT_E_UNSUPPORTED. */
SNT_API snt_result SNT_CALL snt_vk_plan(snt_context *, const snt_vk_caps *, snt_device **out, snt_diag *);
/* A library that never submits learns of a loss from its own vkCreate* calls or from here. It is final: every call that would touch the device
   answers SNT_E_DEVICE_LOST from then on; destruction works. */
SNT_API snt_result SNT_CALL snt_vk_device_notify_lost(snt_device *);

/* ---- 3. pipelines: chained to snt_exec_info. snt_exec_create makes the layouts; jobs (snt_exec_run_job, any host thread) the pipelines ---- */
enum {
  SNT_VK_CACHED_ONLY =
      1, /* a pipeline that the cache does not hold is SNT_E_WOULD_COMPILE, and so is every one without the feature for it */
  SNT_VK_PUSH_DESCRIPTORS =
      4, /* `record` pushes descriptors: no pool and no sets (kernels with more than maxPushDescriptors keep theirs), and a slot
                                  may be set again as soon as it is recorded. SNT_E_UNSUPPORTED where VK_KHR_push_descriptor is not enabled */
  SNT_VK_EDGE_BARRIERS = 2 /* `record` makes the barriers to the host's work from the scopes given at bind and record; without it none */
};
typedef struct snt_vk_port_format {
  uint32_t port;
  VkFormat format; /* of the view. Needed for storage images, checked for sampled ones */
} snt_vk_port_format;
typedef struct snt_vk_exec_info {
  snt_head head;
  uint32_t flags;
  uint32_t port_format_count, port_format_stride;
  const snt_vk_port_format *port_formats;
  uint64_t max_dispatch_ns; /* not 0: a program with a dispatch estimated above it is SNT_E_LIMIT (watchdogs) */
} snt_vk_exec_info;

/* ---- 4. memory: needs out, ranges in ---- */
enum { SNT_MEM_CONSTANT = 0, SNT_MEM_STATE, SNT_MEM_SCRATCH, SNT_MEM_VALUES, SNT_MEM_STAGING };
typedef struct snt_vk_memory_need {
  snt_out_head head;
  uint32_t memory_class, chunk;
  uint32_t per_slot;            /* the range holds slot_count times `size` */
  VkDeviceSize size, alignment; /* size: a multiple of the alignment; never above maxStorageBufferRange or maxMemoryAllocationSize */
  VkBufferUsageFlags usage;
  VkMemoryPropertyFlags required, preferred;
} snt_vk_memory_need;
/* For symbols up to `max_symbols`. In this order: CONSTANT, STATE, SCRATCH chunks, VALUES, STAGING (a suggestion; any size will do).
   CONSTANT is filled once by record_init. STATE lives from run to run. SCRATCH is undefined between runs: it may be aliased with other
   memory and shared by slots, programs and frames that do not overlap in time. VALUES is host-visible and coherent. */
SNT_API snt_result SNT_CALL snt_vk_exec_memory(const snt_exec *, const int64_t *max_symbols, uint32_t symbol_count, uint32_t *count,
                                               uint32_t stride, snt_vk_memory_need *out);
/* The states of a program, each with its place in the ranges of STATE. Hot reload: the new program's exec is made beside the old one's; a
   state of the new whose key a state of the old has is the same one (the same name, element type and extents for these symbols), and
   carries over by a copy of `size` bytes (vkCmdCopyBuffer: STATE has both usages), between the old program's last run and the new one's
   first. A state with another key, or none, begins as record_init leaves it. Both lists are asked with the bindings' maximal symbols; where
   a state's extents are symbols, what it holds is right for the symbols that it was written with. Not in libsinter-runtime, which has no
   room for it. */
typedef struct snt_vk_state {
  snt_out_head head;
  const char *name;          /* of the port */
  uint32_t port, memory;     /* memory: an entry of snt_vk_exec_memory's list */
  VkDeviceSize offset, size; /* within that range */
  uint64_t key;
} snt_vk_state;
SNT_API snt_result SNT_CALL snt_vk_exec_states(const snt_exec *, const int64_t *max_symbols, uint32_t symbol_count, uint32_t *count,
                                               uint32_t stride, snt_vk_state *out);
typedef struct snt_vk_range {
  VkBuffer buffer;
  VkDeviceSize offset, size;
} snt_vk_range;
typedef struct snt_vk_sync {
  VkPipelineStageFlags stage;
  VkAccessFlags access;
} snt_vk_sync; /* zero: the host did it, or nothing to do */

/* ---- 5. ports: numbered as the program's; what must hold before, and does after ---- */
enum { SNT_VK_PORT_BUFFER = 1, SNT_VK_PORT_SAMPLED, SNT_VK_PORT_STORAGE, SNT_VK_PORT_VALUE, SNT_VK_PORT_STATE };
typedef struct snt_vk_port {
  snt_out_head head;
  const char *name;
  uint32_t kind;
  snt_tensor tensor;
  VkPipelineStageFlags stage; /* COMPUTE_SHADER */
  VkAccessFlags access;       /* of our dispatches: the host's barrier before goes to it, the one after comes from it */
  uint32_t layout_count;      /* images: legal layouts, the best first */
  VkImageLayout layouts[4];
  VkImageUsageFlags image_usage; /* images: VK_IMAGE_USAGE_SAMPLED or STORAGE */
  uint32_t channels;             /* images: channels of the tensor; others are ignored, or written as 0 0 0 1 */
  VkFormat format;               /* images: as declared; buffers: of the texel view that `buffer_view` must be, UNDEFINED: none */
  VkBufferUsageFlags buffer_usage;
  uint32_t value_offset, value_size; /* VALUE: in snt_vk_record_info.values */
  uint32_t origin;                   /* images: 1 where the symbols NAME.x and NAME.y say which part of the image it is */
  uint32_t
      filtered; /* images: 1 where they are read through a sampler of ours; the format's optimal tiling has SAMPLED_IMAGE_FILTER_LINEAR */
} snt_vk_port;
SNT_API snt_result SNT_CALL snt_vk_exec_ports(const snt_exec *, uint32_t *count, uint32_t stride, snt_vk_port *out);
/* Bytes that a buffer port's range needs for given symbols: a multiple of 16; of a port without elements 128, which kernels may read and do not use. */
SNT_API snt_result SNT_CALL snt_vk_port_bytes(const snt_exec *, uint32_t port, const int64_t *symbols, uint32_t symbol_count,
                                              VkDeviceSize *out);

/* ---- 6. one-time upload: copies only, in as many calls as the staging range makes it; never submitted here ---- */
enum { SNT_VK_INIT_BARRIER = 1 /* the last call ends with a barrier from TRANSFER to our reads, for a queue that has compute */ };
typedef struct snt_vk_init_info {
  snt_head head;
  uint32_t flags;
  uint32_t constant_count, constant_stride; /* the ranges of the CONSTANT chunks, in order */
  const snt_vk_range *constant;
  uint32_t state_count, state_stride; /* of the STATE chunks: cleared to zero by vkCmdFillBuffer; 0: left alone */
  const snt_vk_range *state;
  snt_vk_range staging;         /* at least 16 bytes, its contents the library's until the command buffer has run */
  void *staging_mapped;         /* its first byte. The host flushes it where it is not coherent */
  void *const *constant_mapped; /* instead of staging, on unified memory: the first byte of each CONSTANT range; filled at once */
  uint64_t cursor;              /* 0, then what the call before returned */
} snt_vk_init_info;
#define SNT_VK_INIT_DONE UINT64_MAX
/* Records vkCmdCopyBuffer and vkCmdFillBuffer: any queue will do. Each call needs its own staging contents until its commands have run. Of
   a program compiled here the first use may make constants, in the context's memory; of a loaded one it takes none. */
SNT_API snt_result SNT_CALL snt_vk_record_init(const snt_exec *, VkCommandBuffer, const snt_vk_init_info *, uint64_t *next_cursor,
                                               snt_diag *);

/* ---- 7. bindings ---- */
typedef struct snt_vk_bind {
  uint32_t port, reserved;   /* reserved: 0 */
  snt_vk_range range;        /* buffer ports: offset a multiple of minStorageBufferOffsetAlignment */
  VkImageView view;          /* image ports: 2D, one mip, one layer, no swizzle for storage */
  VkImageLayout layout;      /* the layout it is in when our work runs */
  VkBufferView buffer_view;  /* buffer ports with a texel format: of this range */
  snt_vk_sync before, after; /* EDGE_BARRIERS: who wrote or read it before our work, who will after */
} snt_vk_bind;
typedef struct snt_vk_binding_info {
  snt_head head;
  const int64_t *max_symbols;
  uint32_t symbol_count, slot_count;
  VkDescriptorPool
      pool; /* null: one of exactly the right size is made here. The host's must have room (snt_vk_descriptor_need); the sets stay in it */
  uint32_t memory_count, memory_stride;
  const snt_vk_range *memory; /* as snt_vk_exec_memory lists them; STAGING may be left out */
} snt_vk_binding_info;
SNT_API snt_result SNT_CALL snt_vk_descriptor_need(const snt_exec *, uint32_t slot_count, uint32_t *count, VkDescriptorPoolSize *out,
                                                   uint32_t *sets);
/* Calls vkAllocateDescriptorSets (and vkCreateDescriptorPool, vkCreateBufferView where needed) once, here. */
SNT_API snt_result SNT_CALL snt_vk_binding_create(const snt_exec *, const snt_vk_binding_info *, snt_binding **out, snt_diag *);
/* Some or all ports of a slot that is not pending on the GPU: vkUpdateDescriptorSets. Takes no memory. Ports that are not named keep their resource. */
SNT_API snt_result SNT_CALL snt_vk_binding_set(snt_binding *, uint32_t slot, uint32_t count, uint32_t stride, const snt_vk_bind *,
                                               snt_diag *);
/* With SNT_VK_ATTACH_VALIDATE a recorded slot counts as pending until the host says here that its fence has passed; setting it before is SNT_E_ORDER. */
SNT_API snt_result SNT_CALL snt_vk_binding_retire(snt_binding *, uint32_t slot);
SNT_API void SNT_CALL snt_binding_destroy(snt_binding *); /* when its work is over */

/* ---- 8. record ---- */
enum { SNT_VK_RECORD_LABELS = 1 /* a debug label around each step */ };
typedef struct snt_vk_record_info {
  snt_head head;
  uint32_t flags, slot;
  uint32_t first_step,
      step_count; /* a slice of the run's steps (snt_vk_step_count); count 0: all the rest. Slices of one run follow each other on one queue */
  const int64_t *symbols; /* any values up to the binding's maximum: another resolution, another part of an image costs nothing */
  uint32_t symbol_count;
  const void *values; /* VALUE ports, each at its value_offset: copied to the slot's part of the VALUES range */
  size_t values_size;
  void *values_mapped; /* first byte of the whole VALUES range */
  /* Not null: as many queries as steps are recorded, and one more, from first_query on, reset by the host; written at BOTTOM_OF_PIPE before the first step and
     behind each, in the device's ticks. */
  VkQueryPool timestamps;
  uint32_t first_query;
  snt_vk_sync memory_before, memory_after; /* EDGE_BARRIERS: for STATE, SCRATCH and what is aliased with it */
  void *user;
  void(SNT_CALL *on_step)(void *user, VkCommandBuffer, uint32_t step,
                          uint32_t begin); /* around each step (snt_exec_step's number): breadcrumbs, profilers */
} snt_vk_record_info;
/* Steps of a run with these symbols: snt_exec_step_count, but a step of a loop (`repeat`) counts once a trip. Trips depend on symbols alone; a binding has
   room for those at its maximal symbols. */
SNT_API snt_result SNT_CALL snt_vk_step_count(const snt_exec *, const int64_t *symbols, uint32_t symbol_count, uint32_t *out);
/* Into a command buffer in the recording state, outside a render pass, of a family with compute. Everything is checked before the first vkCmd*:
   after an error nothing was recorded. Between our own dispatches one global memory barrier where one reads what another wrote, no other.
   The recording may be submitted again; simultaneously only if the program has neither SCRATCH nor STATE. */
SNT_API snt_result SNT_CALL snt_vk_record(const snt_binding *, VkCommandBuffer, const snt_vk_record_info *, snt_diag *);

/* ---- 9. describe: the same as plain data, with no Vulkan call, also for a planned device ---- */
typedef struct snt_vk_pipeline_desc {
  const uint32_t *spirv;
  size_t spirv_size; /* bytes */
  const char *entry;
  uint32_t required_subgroup_size; /* 0: any */
  uint32_t binding_count;          /* of set 0 */
  const VkDescriptorSetLayoutBinding
      *bindings; /* COMBINED_IMAGE_SAMPLER: linear, clamped to the edge; of a planned device without pImmutableSamplers */
  uint32_t push_size;
  uint8_t key[32];
} snt_vk_pipeline_desc;
typedef struct snt_vk_resource_ref { /* number i of a dispatch is for binding i of set 0, or for an address among the push constants */
  uint32_t is_port;                  /* `index` is a port, else an entry of snt_vk_exec_memory's list */
  uint32_t index;
  VkDeviceSize offset, size; /* buffers: within the range */
  VkDescriptorType type;
  VkAccessFlags access;
  uint32_t
      address_at; /* not 0: there is no such binding; at this byte of the push constants the host puts the address of range + offset, 8 bytes */
} snt_vk_resource_ref;
typedef struct snt_vk_dispatch_desc {
  const char *name;
  uint32_t step, pipeline, groups[3];
  uint32_t resource_first, resource_count;
  uint32_t barrier; /* reads or overwrites what an earlier dispatch of this list wrote, or overwrites what one reads */
  const void *push;
  uint32_t push_size;
  uint64_t est_ns, bytes_read, bytes_written;
} snt_vk_dispatch_desc;
typedef struct snt_vk_copy_desc { /* init: bytes of the program to be put into a CONSTANT range */
  uint32_t memory;
  VkDeviceSize offset, size;
  const void *data;
} snt_vk_copy_desc;
typedef struct snt_vk_description {
  snt_out_head head;
  uint32_t pipeline_count, dispatch_count, resource_count, init_count;
  const snt_vk_pipeline_desc *pipelines;
  const snt_vk_dispatch_desc *dispatches;
  const snt_vk_resource_ref *resources;
  const snt_vk_copy_desc *init;
} snt_vk_description;
typedef struct snt_vk_describe_info {
  snt_head head;
  const int64_t *max_symbols; /* lay out the memory, as in 4. */
  const int64_t *symbols;     /* of the run */
  uint32_t symbol_count;
} snt_vk_describe_info;
/* Into `storage` (two calls: SNT_INCOMPLETE gives the size; aligned to 16); names, code and constants point into the program. */
SNT_API snt_result SNT_CALL snt_vk_describe(const snt_exec *, const snt_vk_describe_info *, void *storage, size_t *storage_size,
                                            const snt_vk_description **out, snt_diag *);

#ifdef __cplusplus
}
#endif
#endif
