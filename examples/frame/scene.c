/* The scene: one render pass with one full-screen triangle. The pass leaves its target readable by compute shaders, so that what follows in the
   frame needs no barrier of its own. */
#include "examples/frame/frame.h"
#include "examples/frame/scene_spv.h"

typedef struct scene_constants {
  float width, height, time;
} scene_constants;

static bool make_pass(gpu *g, scene *s) {
  const VkAttachmentDescription target = {.format = VK_FORMAT_R16G16B16A16_SFLOAT,
                                          .samples = VK_SAMPLE_COUNT_1_BIT,
                                          .loadOp = VK_ATTACHMENT_LOAD_OP_DONT_CARE,
                                          .storeOp = VK_ATTACHMENT_STORE_OP_STORE,
                                          .stencilLoadOp = VK_ATTACHMENT_LOAD_OP_DONT_CARE,
                                          .stencilStoreOp = VK_ATTACHMENT_STORE_OP_DONT_CARE,
                                          .initialLayout = VK_IMAGE_LAYOUT_UNDEFINED,
                                          .finalLayout = VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL};
  const VkAttachmentReference color = {0, VK_IMAGE_LAYOUT_COLOR_ATTACHMENT_OPTIMAL};
  const VkSubpassDescription subpass = {
      .pipelineBindPoint = VK_PIPELINE_BIND_POINT_GRAPHICS, .colorAttachmentCount = 1, .pColorAttachments = &color};
  const VkSubpassDependency edges[] = {{.srcSubpass = VK_SUBPASS_EXTERNAL,
                                        .srcStageMask = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                                        .dstStageMask = VK_PIPELINE_STAGE_COLOR_ATTACHMENT_OUTPUT_BIT,
                                        .dstAccessMask = VK_ACCESS_COLOR_ATTACHMENT_WRITE_BIT},
                                       {.dstSubpass = VK_SUBPASS_EXTERNAL,
                                        .srcStageMask = VK_PIPELINE_STAGE_COLOR_ATTACHMENT_OUTPUT_BIT,
                                        .dstStageMask = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                                        .srcAccessMask = VK_ACCESS_COLOR_ATTACHMENT_WRITE_BIT,
                                        .dstAccessMask = VK_ACCESS_SHADER_READ_BIT}};
  const VkRenderPassCreateInfo info = {.sType = VK_STRUCTURE_TYPE_RENDER_PASS_CREATE_INFO,
                                       .attachmentCount = 1,
                                       .pAttachments = &target,
                                       .subpassCount = 1,
                                       .pSubpasses = &subpass,
                                       .dependencyCount = 2,
                                       .pDependencies = edges};
  return gpu_check(g->vkCreateRenderPass(g->device, &info, NULL, &s->pass), "vkCreateRenderPass");
}

static bool make_module(gpu *g, const uint32_t *words, size_t bytes, VkShaderModule *out) {
  const VkShaderModuleCreateInfo info = {.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO, .codeSize = bytes, .pCode = words};
  return gpu_check(g->vkCreateShaderModule(g->device, &info, NULL, out), "vkCreateShaderModule");
}

static bool make_pipeline(gpu *g, scene *s, VkShaderModule vertex, VkShaderModule fragment) {
  static const VkDynamicState changing[] = {VK_DYNAMIC_STATE_VIEWPORT, VK_DYNAMIC_STATE_SCISSOR};
  const VkPipelineShaderStageCreateInfo stages[] = {{.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                                                     .stage = VK_SHADER_STAGE_VERTEX_BIT,
                                                     .module = vertex,
                                                     .pName = "main"},
                                                    {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                                                     .stage = VK_SHADER_STAGE_FRAGMENT_BIT,
                                                     .module = fragment,
                                                     .pName = "main"}};
  const VkPipelineVertexInputStateCreateInfo vertices = {.sType = VK_STRUCTURE_TYPE_PIPELINE_VERTEX_INPUT_STATE_CREATE_INFO};
  const VkPipelineInputAssemblyStateCreateInfo assembly = {.sType = VK_STRUCTURE_TYPE_PIPELINE_INPUT_ASSEMBLY_STATE_CREATE_INFO,
                                                           .topology = VK_PRIMITIVE_TOPOLOGY_TRIANGLE_LIST};
  const VkPipelineViewportStateCreateInfo viewport = {
      .sType = VK_STRUCTURE_TYPE_PIPELINE_VIEWPORT_STATE_CREATE_INFO, .viewportCount = 1, .scissorCount = 1};
  const VkPipelineRasterizationStateCreateInfo raster = {.sType = VK_STRUCTURE_TYPE_PIPELINE_RASTERIZATION_STATE_CREATE_INFO,
                                                         .lineWidth = 1};
  const VkPipelineMultisampleStateCreateInfo samples = {.sType = VK_STRUCTURE_TYPE_PIPELINE_MULTISAMPLE_STATE_CREATE_INFO,
                                                        .rasterizationSamples = VK_SAMPLE_COUNT_1_BIT};
  const VkPipelineColorBlendAttachmentState plain = {.colorWriteMask = 15};
  const VkPipelineColorBlendStateCreateInfo blend = {
      .sType = VK_STRUCTURE_TYPE_PIPELINE_COLOR_BLEND_STATE_CREATE_INFO, .attachmentCount = 1, .pAttachments = &plain};
  const VkPipelineDynamicStateCreateInfo dynamic = {
      .sType = VK_STRUCTURE_TYPE_PIPELINE_DYNAMIC_STATE_CREATE_INFO, .dynamicStateCount = 2, .pDynamicStates = changing};
  const VkPushConstantRange push = {VK_SHADER_STAGE_FRAGMENT_BIT, 0, sizeof(scene_constants)};
  const VkPipelineLayoutCreateInfo layout = {
      .sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO, .pushConstantRangeCount = 1, .pPushConstantRanges = &push};
  if (!gpu_check(g->vkCreatePipelineLayout(g->device, &layout, NULL, &s->layout), "vkCreatePipelineLayout")) return false;
  const VkGraphicsPipelineCreateInfo info = {.sType = VK_STRUCTURE_TYPE_GRAPHICS_PIPELINE_CREATE_INFO,
                                             .stageCount = 2,
                                             .pStages = stages,
                                             .pVertexInputState = &vertices,
                                             .pInputAssemblyState = &assembly,
                                             .pViewportState = &viewport,
                                             .pRasterizationState = &raster,
                                             .pMultisampleState = &samples,
                                             .pColorBlendState = &blend,
                                             .pDynamicState = &dynamic,
                                             .layout = s->layout,
                                             .renderPass = s->pass};
  return gpu_check(g->vkCreateGraphicsPipelines(g->device, VK_NULL_HANDLE, 1, &info, NULL, &s->pipeline), "vkCreateGraphicsPipelines");
}

bool scene_create(gpu *g, scene *s) {
  VkShaderModule vertex = VK_NULL_HANDLE, fragment = VK_NULL_HANDLE;
  *s = (scene){0};
  const bool ok = make_pass(g, s) && make_module(g, scene_vert, sizeof scene_vert, &vertex) &&
                  make_module(g, scene_frag, sizeof scene_frag, &fragment) && make_pipeline(g, s, vertex, fragment);
  g->vkDestroyShaderModule(g->device, vertex, NULL);
  g->vkDestroyShaderModule(g->device, fragment, NULL);
  return ok;
}

void scene_destroy(gpu *g, scene *s) {
  g->vkDestroyPipeline(g->device, s->pipeline, NULL);
  g->vkDestroyPipelineLayout(g->device, s->layout, NULL);
  g->vkDestroyRenderPass(g->device, s->pass, NULL);
}

bool scene_target(gpu *g, const scene *s, const gpu_image *image, VkFramebuffer *out) {
  const VkFramebufferCreateInfo info = {.sType = VK_STRUCTURE_TYPE_FRAMEBUFFER_CREATE_INFO,
                                        .renderPass = s->pass,
                                        .attachmentCount = 1,
                                        .pAttachments = &image->view,
                                        .width = MAX_WIDTH,
                                        .height = MAX_HEIGHT,
                                        .layers = 1};
  return gpu_check(g->vkCreateFramebuffer(g->device, &info, NULL, out), "vkCreateFramebuffer");
}

void scene_draw(gpu *g, const scene *s, VkCommandBuffer commands, VkFramebuffer target, uint32_t width, uint32_t height, float time) {
  const VkRect2D area = {{0, 0}, {width, height}};
  const VkViewport viewport = {0, 0, (float)width, (float)height, 0, 1};
  const scene_constants constants = {(float)width, (float)height, time};
  const VkRenderPassBeginInfo info = {
      .sType = VK_STRUCTURE_TYPE_RENDER_PASS_BEGIN_INFO, .renderPass = s->pass, .framebuffer = target, .renderArea = area};
  g->vkCmdBeginRenderPass(commands, &info, VK_SUBPASS_CONTENTS_INLINE);
  g->vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_GRAPHICS, s->pipeline);
  g->vkCmdSetViewport(commands, 0, 1, &viewport);
  g->vkCmdSetScissor(commands, 0, 1, &area);
  g->vkCmdPushConstants(commands, s->layout, VK_SHADER_STAGE_FRAGMENT_BIT, 0, sizeof constants, &constants);
  g->vkCmdDraw(commands, 3, 1, 0, 0);
  g->vkCmdEndRenderPass(commands);
}
