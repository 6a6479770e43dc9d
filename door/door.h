/* The Vulkan door's own: a device that the host made, an exec's pipelines and memory layout, the slots of a binding.
   Nothing here allocates device memory, submits or waits. Hot calls (record, binding_set) take neither memory nor a lock. */
#ifndef DOOR_DOOR_H
#define DOOR_DOOR_H
#define VK_NO_PROTOTYPES
#include "api/handles.h"
#include <vulkan/vulkan_core.h>

#include <sinter/vulkan.h>

/* ---- entry points: those of the device, all taken when it is attached ---- */
// clang-format off
#define DOOR_FUNCTIONS(F)                                                                                           \
  F(vkCreateShaderModule) F(vkDestroyShaderModule) F(vkCreateDescriptorSetLayout) F(vkDestroyDescriptorSetLayout)  \
  F(vkCreatePipelineLayout) F(vkDestroyPipelineLayout) F(vkCreateComputePipelines) F(vkDestroyPipeline)            \
  F(vkCreateDescriptorPool) F(vkDestroyDescriptorPool) F(vkAllocateDescriptorSets) F(vkUpdateDescriptorSets)       \
  F(vkCreateSampler) F(vkDestroySampler) F(vkCreateBufferView) F(vkDestroyBufferView) F(vkCmdBindPipeline) F(vkCmdBindDescriptorSets)                      \
  F(vkCmdPushConstants) F(vkCmdDispatch) F(vkCmdPipelineBarrier) F(vkCmdCopyBuffer) F(vkCmdFillBuffer)              \
  F(vkCmdWriteTimestamp)
#define DOOR_PUSH_FUNCTIONS(F) F(vkCmdPushDescriptorSetKHR)
#define DOOR_ADDRESS_FUNCTIONS(F) F(vkGetBufferDeviceAddress)
#define DOOR_DEBUG_FUNCTIONS(F) F(vkSetDebugUtilsObjectNameEXT) F(vkCmdBeginDebugUtilsLabelEXT) F(vkCmdEndDebugUtilsLabelEXT)
// clang-format on
typedef struct door_vk {
#define DOOR_MEMBER(name) PFN_##name name;
  DOOR_FUNCTIONS(DOOR_MEMBER)
  /* null: not enabled */
  DOOR_DEBUG_FUNCTIONS(DOOR_MEMBER) DOOR_PUSH_FUNCTIONS(DOOR_MEMBER) DOOR_ADDRESS_FUNCTIONS(DOOR_MEMBER)
#undef DOOR_MEMBER
} door_vk;

typedef struct door_limits {
  VkPhysicalDeviceLimits core;
  VkPhysicalDeviceSubgroupProperties subgroups;
  VkPhysicalDeviceSubgroupSizeControlProperties sizes; /* of subgroups: one, where their control is not enabled */
  uint32_t max_push_descriptors;                       /* 0: they are not enabled */
  VkDeviceSize max_allocation;
  bool fast_dots;                                         /* products of words of bytes are enabled, and instructions of the device */
  VkPhysicalDeviceFloatControlsProperties float_controls; /* nothing: modules may not ask for them */
} door_limits;

typedef struct door_device {
  VkDevice handle; /* null: only planned */
  VkPipelineCache cache;
  const VkAllocationCallbacks *allocation; /* null or &callbacks */
  uint64_t features;                       /* SNT_VK_FEATURE_*: enabled */
  uint32_t flags, api_version;
  atomic_bool lost;
  VkAllocationCallbacks callbacks;
  door_vk vk;
  char name[64];
  door_limits limits;
} door_device;

enum { DOOR_MAX_NEEDS = 64, DOOR_STAGING_BYTES = 4 << 20 };

/* Where each plan buffer lies, for one set of maximal symbols. */
typedef struct door_place {
  uint32_t need; /* entry of `needs`; UINT32_MAX: a port, or not used */
  VkDeviceSize offset, size;
} door_place;
typedef struct door_layout {
  door_place *places; /* [plan buffers] */
  snt_vk_memory_need needs[DOOR_MAX_NEEDS];
  uint32_t need_count; /* without staging */
} door_layout;

typedef struct door_kernel {
  VkDescriptorSetLayout set_layout;
  VkPipelineLayout layout;
  VkPipeline pipeline;
  uint32_t descriptors; /* slots that one is bound for: all but those with an address in the push block */
  bool pushed;          /* by vkCmdPushDescriptorSetKHR: there is no set */
} door_kernel;

typedef struct door_port {
  uint32_t kind, buffer; /* SNT_VK_PORT_*, plan buffer */
  VkFormat format;
  uint32_t value_offset, value_size, value_at; /* VALUE: in the host's struct and in the device's range */
  VkFormat texels;                             /* of the view that a texel slot wants */
  bool filtered;
  VkAccessFlags access;
} door_port;

/* What a step binds. In a loop a slot may stand for two buffers that the trips write in turn (plan_binding.swap): a step has a set of resources for
   each way in which its pairs can lie, so that what a trip needs is there before anybody knows how many trips there are. */
enum { DOOR_MAX_SWAPS = 4 };
typedef struct door_step {
  uint32_t first_set, swap_count; /* 1 << swap_count sets; bit i of a set's number among them: swaps[i] holds */
  ir_expr swaps[DOOR_MAX_SWAPS];  /* different ones */
} door_step;
typedef struct door_set {
  uint32_t step, turned; /* plan step; that number */
} door_set;
typedef struct door_exec {
  uint32_t flags;
  door_step *steps; /* [plan steps] */
  door_set *sets;
  uint32_t set_count;
  door_kernel *kernels;                         /* [plan kernels] */
  door_port *ports;                             /* [program ports] */
  uint32_t *port_of;                            /* plan buffer -> port; UINT32_MAX: none */
  VkSampler sampler;                            /* of filtered images; null: there are none */
  uint32_t values_bytes;                        /* of the host's struct */
  uint32_t values_stride;                       /* of the device's range, a slot */
  bool has_scratch_or_state, pushes, addresses; /* some kernel does */
} door_exec;

/* What a slot's descriptor needs to be written again. */
typedef struct door_slot_port {
  snt_vk_bind bind;
  bool set;
} door_slot_port;
/* A dispatch as it is recorded: evaluated once for a slot's symbols, kept until they change. The steps of a loop have one for each trip. */
typedef struct door_launch {
  bool runs, barrier;
  uint32_t step, set;
  uint32_t grid[3], push_bytes, push[33];
} door_launch;
typedef union door_resource {
  VkDescriptorBufferInfo buffer;
  VkDescriptorImageInfo image;
  VkBufferView view;
} door_resource;
typedef struct door_slot {
  VkDescriptorSet *sets; /* [sets]; null: pushed, or nothing to bind */
  door_slot_port *ports; /* [program ports] */
  door_launch *launches; /* [launch_room], of `symbols`; good when `known` */
  uint32_t launch_count;
  int64_t *symbols, *variables; /* the second: the numbers of trips, while launches are evaluated */
  VkWriteDescriptorSet *writes; /* [view_count] what is pushed, a set's from its first_view on; null: nothing is */
  door_resource *resources;     /* beside `writes` */
  VkDeviceAddress *addresses;   /* [view_count], null: none are wanted */
  bool known;
  atomic_bool pending; /* VALIDATE: recorded, and not retired */
} door_slot;
struct snt_binding {
  snt_exec *exec;
  VkDescriptorPool pool; /* ours; null: the host's */
  int64_t *max_symbols;
  snt_vk_range *memory; /* [need_count] */
  VkBufferView *views;  /* of texel slots that read our own memory; [bindings of all sets], mostly null */
  uint32_t slot_count, view_count, launch_room, variable_count;
  door_slot *slots;
  uint32_t *first_view; /* [sets]: of its slots in `views` */
  /* what the slots point into, one array each */
  VkDescriptorSet *sets;
  door_slot_port *ports;
  door_launch *launches;
  int64_t *symbols; /* those of a slot, then its variables */
  VkWriteDescriptorSet *writes;
  door_resource *resources;
  VkDeviceAddress *addresses;
  door_layout layout;
};

extern const api_door door_vtable;
static inline door_device *door_of(const snt_exec *x) { return x->device->door_data; }
static inline const ir_plan *door_plan(const snt_exec *x) { return &x->program->plan; }

/* door_check.c */
snt_result door_fail(const snt_exec *, VkResult, const char *stage, const char *what, snt_diag *);
snt_result door_check_lost(const snt_exec *, const char *stage, snt_diag *);
static inline const void *door_at(const void *array, uint32_t stride, size_t size, uint32_t i) {
  return (const char *)array + (size_t)i * (stride ? stride : size);
}

/* door_features.c */
uint64_t door_features_of_chain(const VkPhysicalDeviceFeatures *core, const void *chain);         /* which are on */
uint64_t door_features_of_extensions(uint32_t version, uint32_t count, const char *const *names); /* those that have no feature */
void door_fill_features(uint64_t enabled, void *vk_features_out);                                 /* as the profile's query wants them */
/* door_format.c */
typedef struct door_format {
  VkFormat format;
  uint8_t spirv; /* SPIR-V's number, 0: none */
  bool basic;    /* a storage image of it needs no feature */
  bool as_float; /* channels are read as f32 */
  uint8_t channels;
} door_format;
const door_format *door_format_of(VkFormat); /* null: not known */
/* A copy of the module with the storage formats of `formats[binding]` (UNDEFINED: as it is), from the context's memory. */
snt_result door_patch_module(const snt_exec *, uint32_t kernel, const VkFormat *formats, uint32_t **words, size_t *bytes, snt_diag *);
snt_result door_check_capabilities(const snt_exec *, uint32_t kernel, snt_diag *);
/* door_slots.c */
void door_slot_binding(const snt_exec *, uint32_t kernel, uint32_t slot, VkDescriptorSetLayoutBinding *out);
VkDescriptorType door_descriptor_type(uint8_t slot_kind);
VkFormat door_texel_format(uint8_t slot_kind);
uint32_t door_push_bytes(const snt_exec *, uint32_t kernel);
uint32_t door_address_at(const snt_exec *, uint32_t kernel, uint32_t slot); /* byte of the push block; 0: the slot has a descriptor */
/* door_exec.c */
bool door_kernel_formats(const snt_exec *, uint32_t kernel, VkFormat formats[API_MAX_BINDINGS]); /* true: some are to be patched */
snt_result door_exec_create(snt_exec *, const snt_exec_info *, snt_diag *);
void door_exec_destroy(snt_exec *);
snt_result door_job_build(snt_exec *, uint32_t job, snt_diag *); /* job numbers are kernel numbers */
/* door_steps.c */
snt_result door_make_sets(snt_exec *, snt_diag *);
void door_give_sets(snt_exec *);
uint32_t door_bound_buffer(const snt_exec *, uint32_t set, uint32_t slot); /* plan buffer */
static inline const plan_step *door_step_of(const snt_exec *x, uint32_t set) { return &door_plan(x)->steps.at[x->door->sets[set].step]; }
/* The launches of a run, in order, those of steps that are left out among them. */
typedef struct door_run {
  const snt_exec *x;
  expr_values at;
  const char *stage;
  void *user;
  snt_result (*put)(void *user, const door_launch *); /* its addresses are zero */
  snt_diag *diag;
  uint32_t choice;
  bool owed; /* a step with a barrier was left out */
} door_run;
snt_result door_walk(door_run *, int64_t *variables); /* those of `at`, written */
snt_result door_count_launches(const snt_exec *, const int64_t *symbols, const char *stage, uint32_t *out, snt_diag *);
/* door_memory.c */
snt_result door_make_layout(const snt_exec *, const int64_t *max_symbols, door_layout *out, snt_diag *); /* `places` is given */
bool door_port_bytes(const snt_exec *, uint32_t port, const int64_t *symbols, VkDeviceSize *out);
/* door_ports.c */
enum { DOOR_DESCRIPTOR_TYPES = 5 };
uint32_t door_count_descriptors(const snt_exec *, VkDescriptorPoolSize sizes[DOOR_DESCRIPTOR_TYPES], uint32_t slots);
uint32_t door_count_sets(const snt_exec *);                    /* of one slot */
uint32_t door_image_channels(const snt_exec *, uint32_t port); /* 0: no image */
/* door_binding.c */
const char *door_port_name(const snt_exec *, uint32_t port);
/* `<debug_name>/<program>/<step>` and what it is of the step, where the host's instance has names for objects. */
void door_name_object(const snt_exec *, VkObjectType, uint64_t handle, const char *step, const char *what);
#endif
