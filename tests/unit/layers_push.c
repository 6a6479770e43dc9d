/* What the validation layers do to pushed descriptors and to addresses of buffers, without a library: a dispatch that stores to a buffer, plain and under
   GPU-assisted checks. It is right when nobody watches. Layers that call the pushed descriptor uninitialised
   leave its store out: then it is theirs, and the tests of the door that push descriptors go without those checks (vk_host_looks). An address
   is right here; layers that complained of it would have to say that it is out of bounds. */
#include "tests/tap.h"
#include "tests/unit/vk_host.h"
#include "tools/host/host.h"

enum { ELEMENTS = 256, BASE = 1000 };
typedef struct way {
  const char *name;
  uint64_t needs;
  const char *complaint, *source;
} way;
// clang-format off
static const way ways[] = {
    {"a pushed descriptor", SNT_VK_FEATURE_PUSH_DESCRIPTORS, "uninitialized",
     "#version 450\n"
     "layout(local_size_x = 64) in;\n"
     "layout(set = 0, binding = 0) buffer B { uint to[]; };\n"
     "layout(push_constant) uniform P { uvec2 unused; uint base; };\n"
     "void main() { to[gl_GlobalInvocationID.x] = base + gl_GlobalInvocationID.x; }\n"},
    {"an address", SNT_VK_FEATURE_BUFFER_ADDRESS, "out of bounds",
     "#version 450\n"
     "#extension GL_EXT_buffer_reference : require\n"
     "layout(local_size_x = 64) in;\n"
     "layout(buffer_reference, std430) buffer B { uint to[]; };\n"
     "layout(push_constant) uniform P { B b; uint base; };\n"
     "void main() { b.to[gl_GlobalInvocationID.x] = base + gl_GlobalInvocationID.x; }\n"},
};
// clang-format on
typedef struct pushed {
  VkDeviceAddress address;
  uint32_t base;
} pushed;

// clang-format off
#define FUNCTIONS(F)                                                                                                                     \
  F(vkCreateShaderModule) F(vkCreateDescriptorSetLayout) F(vkCreatePipelineLayout) F(vkCreateComputePipelines) F(vkCmdBindPipeline)       \
  F(vkCmdPushDescriptorSetKHR) F(vkCmdPushConstants) F(vkCmdDispatch) F(vkDestroyShaderModule) F(vkDestroyDescriptorSetLayout)            \
  F(vkDestroyPipelineLayout) F(vkDestroyPipeline) F(vkGetBufferDeviceAddressKHR)
// clang-format on
typedef struct functions {
#define MEMBER(name) PFN_##name name;
  FUNCTIONS(MEMBER)
#undef MEMBER
} functions;

/* Those of the ways that the device has: a null one is not called. */
static void load(const vk_host *h, functions *vk) {
  const PFN_vkGetDeviceProcAddr get = (PFN_vkGetDeviceProcAddr)h->get(h->instance, "vkGetDeviceProcAddr");
#define LOAD(name) vk->name = (PFN_##name)get(h->device, #name);
  FUNCTIONS(LOAD)
#undef LOAD
}

/* Elements that are not what the dispatch stores; ELEMENTS + 1: it could not be made. */
static uint32_t wrong_elements(vk_host *h, const functions *vk, const way *w, const uint32_t *words, size_t bytes) {
  const bool address = w->needs == SNT_VK_FEATURE_BUFFER_ADDRESS;
  const VkShaderModuleCreateInfo code = {.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO, .codeSize = bytes, .pCode = words};
  const VkDescriptorSetLayoutBinding binding = {
      .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, .descriptorCount = 1, .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT};
  const VkDescriptorSetLayoutCreateInfo set = {.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
                                               .flags = address ? 0 : VK_DESCRIPTOR_SET_LAYOUT_CREATE_PUSH_DESCRIPTOR_BIT_KHR,
                                               .bindingCount = address ? 0 : 1,
                                               .pBindings = &binding};
  const VkPushConstantRange range = {VK_SHADER_STAGE_COMPUTE_BIT, 0, 12};
  pushed push = {0, BASE};
  VkShaderModule module = VK_NULL_HANDLE;
  VkDescriptorSetLayout set_layout = VK_NULL_HANDLE;
  VkPipelineLayout layout = VK_NULL_HANDLE;
  VkPipeline pipeline = VK_NULL_HANDLE;
  vk_host_buffer to;
  uint32_t wrong = ELEMENTS + 1;
  if (!vk_host_buffer_create(h, ELEMENTS * 4,
                             VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | (address ? VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT : 0u), &to))
    return wrong;
  memset(to.mapped, 0xee, ELEMENTS * 4);
  VkResult r = vk->vkCreateShaderModule(h->device, &code, NULL, &module);
  if (r == VK_SUCCESS) r = vk->vkCreateDescriptorSetLayout(h->device, &set, NULL, &set_layout);
  const VkPipelineLayoutCreateInfo whole = {.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
                                            .setLayoutCount = 1,
                                            .pSetLayouts = &set_layout,
                                            .pushConstantRangeCount = 1,
                                            .pPushConstantRanges = &range};
  if (r == VK_SUCCESS) r = vk->vkCreatePipelineLayout(h->device, &whole, NULL, &layout);
  const VkComputePipelineCreateInfo made = {.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
                                            .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                                                      .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                                                      .module = module,
                                                      .pName = "main"},
                                            .layout = layout};
  if (r == VK_SUCCESS) r = vk->vkCreateComputePipelines(h->device, VK_NULL_HANDLE, 1, &made, NULL, &pipeline);
  if (r == VK_SUCCESS && vk_host_begin(h)) {
    const VkDescriptorBufferInfo buffer = {to.buffer, 0, ELEMENTS * 4};
    const VkWriteDescriptorSet write = {.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                                        .descriptorCount = 1,
                                        .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                        .pBufferInfo = &buffer};
    vk->vkCmdBindPipeline(h->commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline);
    const VkBufferDeviceAddressInfo where = {.sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO, .buffer = to.buffer};
    if (address) push.address = vk->vkGetBufferDeviceAddressKHR(h->device, &where);
    else vk->vkCmdPushDescriptorSetKHR(h->commands, VK_PIPELINE_BIND_POINT_COMPUTE, layout, 0, 1, &write);
    vk->vkCmdPushConstants(h->commands, layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, 12, &push);
    vk->vkCmdDispatch(h->commands, ELEMENTS / 64, 1, 1);
    if (vk_host_submit_wait(h)) wrong = 0;
    for (uint32_t i = 0; i < ELEMENTS && wrong <= ELEMENTS; i++) wrong += ((const uint32_t *)to.mapped)[i] != BASE + i;
  }
  vk->vkDestroyPipeline(h->device, pipeline, NULL);
  vk->vkDestroyPipelineLayout(h->device, layout, NULL);
  vk->vkDestroyDescriptorSetLayout(h->device, set_layout, NULL);
  vk->vkDestroyShaderModule(h->device, module, NULL);
  vk_host_buffer_destroy(h, &to);
  return wrong;
}

static void test_watched(const way *w, bool watched, const uint32_t *words, size_t bytes) {
  static vk_host host;
  functions vk;
  char why[120];
  memset(&host, 0, sizeof host);
  vk_host_looks = watched ? VK_HOST_LOOKS : VK_HOST_LOOKS_AWAY;
  if (!vk_host_open(&host, "llvmpipe", true, why, sizeof why)) {
    tap_skip("%s", why);
    return;
  }
  load(&host, &vk);
  if (!(host.enabled & w->needs)) tap_skip("llvmpipe has no way of %s", w->name);
  else {
    const uint32_t wrong = wrong_elements(&host, &vk, w, words, bytes);
    if (watched && host.messages && wrong)
      tap_result(strstr(host.first_message, w->complaint) != NULL, __FILE__, __LINE__, "%s: the layers leave out %u stores: %s", w->name,
                 wrong, host.first_message);
    else
      tap_result(!wrong && !host.messages, __FILE__, __LINE__, "%s: %u elements are wrong %s", w->name, wrong,
                 watched ? "when the layers watch" : "plain");
  }
  vk_host_close(&host);
}

static void test_way(const way *w) {
  host_glsl glsl = {NULL};
  snt_diag diag = {.head = SNT_HEAD(diag)};
  const uint32_t *words = NULL;
  size_t bytes = 0;
  if (!host_glsl_found() || host_glsl_compile(&glsl, w->name, w->source, strlen(w->source), &words, &bytes, &diag) != SNT_OK)
    tap_skip("no GLSL compiler: %s", diag.text);
  else
    for (int watched = 0; watched < 2; watched++) test_watched(w, watched, words, bytes);
  host_glsl_free(&glsl);
}

VK_HOST_LEAKS

int main(void) {
  host_prepare_drivers(NULL);
  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) test_way(&ways[i]);
  return tap_done();
}
