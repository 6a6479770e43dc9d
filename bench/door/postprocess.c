/* The post-process of examples/postprocess.snt from image to image at 1080p inside a host's command buffer: fused, a kernel a node, and by hand in
   three passes of GLSL (threshold and blur along rows; blur down, bloom, tone curve and gamma; sharpening), as an engine's programmer would write it.
   In: a device's name, rounds. Out: milliseconds and ratios of interleaved runs, and how far the three pictures differ. Needs glslangValidator. */
#include "tests/unit/vk_host.h"
#include "tools/host/host.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WIDTH = 1920, HEIGHT = 1080, PASSES = 3, MOST_NEEDS = 16, SAMPLED = 0, STORED = 1 };

// clang-format off
#define FUNCTIONS(F)                                                                                                                      \
  F(vkCreateShaderModule) F(vkCreateDescriptorSetLayout) F(vkCreatePipelineLayout) F(vkCreateComputePipelines) F(vkCreateDescriptorPool)   \
  F(vkAllocateDescriptorSets) F(vkUpdateDescriptorSets) F(vkCmdBindPipeline) F(vkCmdBindDescriptorSets) F(vkCmdDispatch)                   \
  F(vkDestroyShaderModule) F(vkDestroyDescriptorSetLayout) F(vkDestroyPipelineLayout) F(vkDestroyPipeline) F(vkDestroyDescriptorPool)
// clang-format on
static struct {
#define MEMBER(name) PFN_##name name;
  FUNCTIONS(MEMBER)
#undef MEMBER
} vk;

static const char head[] = "#version 450\n"
                           "#extension GL_EXT_samplerless_texture_functions : require\n"
                           "layout(local_size_x = 16, local_size_y = 8) in;\n"
                           "layout(set = 0, binding = 0) uniform texture2D from;\n"
                           "layout(set = 0, binding = 1, FORMAT) uniform writeonly image2D to;\n"
                           "layout(set = 0, binding = 2) uniform texture2D lit;\n"
                           "const float taps[9] = float[](0.027630551, 0.066282245, 0.123831533, 0.180173828, 0.204163685, 0.180173828,\n"
                           "                              0.123831533, 0.066282245, 0.027630551);\n"
                           "const ivec2 size = ivec2(1920, 1080);\n"
                           "vec3 at(ivec2 p) { return texelFetch(from, p, 0).rgb; }\n"
                           "bool inside(ivec2 p) { return all(greaterThanEqual(p, ivec2(0))) && all(lessThan(p, size)); }\n"
                           "void main() {\n"
                           "  const ivec2 p = ivec2(gl_GlobalInvocationID.xy);\n"
                           "  if (!inside(p)) return;\n"
                           "  vec3 c = vec3(0);\n";
static const struct {
  const char *format, *body;
} passes[PASSES] = {
    {"rgba16f", "  for (int i = 0; i < 9; i++) {\n"
                "    const ivec2 q = p + ivec2(i - 4, 0);\n"
                "    if (inside(q)) c += taps[i] * max(at(q) - 0.8, 0.0);\n"
                "  }\n"
                "  imageStore(to, p, vec4(c, 1));\n}\n"},
    {"rgba16f", "  for (int i = 0; i < 9; i++) {\n"
                "    const ivec2 q = p + ivec2(0, i - 4);\n"
                "    if (inside(q)) c += taps[i] * at(q);\n"
                "  }\n"
                "  c = texelFetch(lit, p, 0).rgb + 0.6 * c;\n"
                "  c = c * (c * 2.51 + 0.03) / (c * (c * 2.43 + 0.59) + 0.14);\n"
                "  imageStore(to, p, vec4(sqrt(clamp(c, 0.0, 1.0)), 1));\n}\n"},
    {"rgba8", "  c = 5 * at(p);\n"
              "  const ivec2 around[4] = ivec2[](ivec2(1, 0), ivec2(-1, 0), ivec2(0, 1), ivec2(0, -1));\n"
              "  for (int i = 0; i < 4; i++) if (inside(p + around[i])) c -= at(p + around[i]);\n"
              "  imageStore(to, p, vec4(clamp(c, 0.0, 1.0), 1));\n}\n"},
};

typedef struct sinter_way {
  snt_program *program;
  snt_exec *exec;
  snt_binding *binding;
  vk_host_buffer memory[MOST_NEEDS];
  uint32_t need_count, kernels;
} sinter_way;
typedef struct hand_way {
  VkDescriptorSetLayout set_layout;
  VkPipelineLayout layout;
  VkDescriptorPool pool;
  VkPipeline pipelines[PASSES];
  VkDescriptorSet sets[PASSES];
  vk_host_image between[2];
} hand_way;
typedef struct bench {
  vk_host host;
  snt_context *context;
  snt_device *device;
  vk_host_image x, y;
  vk_host_buffer upload, download;
  sinter_way fused, nodes;
  hand_way hand;
  snt_diag diag;
} bench;

static const int64_t size_of_frame[] = {HEIGHT, WIDTH};

static void must(bool fine, const char *what, const snt_diag *diag) {
  if (fine) return;
  fprintf(stderr, "postprocess: %s%s%s\n", what, diag ? ": " : "", diag ? diag->text : "");
  exit(1);
}

typedef struct cost {
  double wall, processor; /* ms; the processor's of all threads: what a driver that is a program takes, whatever else runs */
} cost;
static double ms_of(clockid_t clock) {
  struct timespec t;
  return clock_gettime(clock, &t) ? 0 : (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* ---- Sinter's two ways ---- */

static void compile_way(bench *b, sinter_way *w, uint32_t flags, const char *path) {
  const snt_image_port images[] = {{"x", SNT_IMAGE_CHW, 0}, {"y", SNT_IMAGE_CHW, 0}};
  const snt_compile_info info = {.head = SNT_HEAD(compile_info), .flags = flags, .image_count = 2, .images = images};
  const snt_vk_port_format formats[] = {{0, VK_FORMAT_R16G16B16A16_SFLOAT}, {1, VK_FORMAT_R8G8B8A8_UNORM}};
  const snt_vk_exec_info door = {.head = SNT_HEAD(vk_exec_info), .port_format_count = 2, .port_formats = formats};
  snt_exec_info exec = {.head = SNT_HEAD(exec_info)};
  snt_graph *graph = NULL;
  snt_profile *profile = NULL;
  void *text = NULL;
  size_t size = 0;
  exec.head.next = &door;
  must(host_read_file(path, &text, &size, &b->diag) == SNT_OK, path, &b->diag);
  snt_result r = snt_graph_create(b->context, &graph);
  if (r == SNT_OK) r = snt_graph_parse(graph, text, size, NULL, &b->diag);
  if (r == SNT_OK) r = snt_device_profile(b->device, &profile);
  if (r == SNT_OK) r = snt_compile(graph, profile, &info, &w->program, &b->diag);
  if (r == SNT_OK) r = snt_exec_create(b->device, w->program, &exec, &w->exec, &b->diag);
  if (r == SNT_OK) r = snt_exec_prepare(w->exec, &b->diag);
  must(r == SNT_OK, "compile", &b->diag);
  w->kernels = snt_exec_step_count(w->exec);
  snt_profile_destroy(profile);
  snt_graph_destroy(graph);
  free(text);
}

static void bind_way(bench *b, sinter_way *w) {
  snt_vk_memory_need needs[MOST_NEEDS];
  snt_vk_range ranges[MOST_NEEDS];
  void *mapped[MOST_NEEDS];
  uint64_t next = 0;
  w->need_count = MOST_NEEDS;
  for (int i = 0; i < MOST_NEEDS; i++) needs[i].head = (snt_out_head)SNT_HEAD(vk_memory_need);
  must(snt_vk_exec_memory(w->exec, size_of_frame, 2, &w->need_count, sizeof *needs, needs) == SNT_OK, "memory", NULL);
  uint32_t constants = 0;
  for (uint32_t i = 0; i < w->need_count; i++) {
    must(vk_host_buffer_create(&b->host, needs[i].size, needs[i].usage, &w->memory[i]), "a buffer", NULL);
    ranges[i] = (snt_vk_range){w->memory[i].buffer, 0, needs[i].size};
    mapped[i] = w->memory[i].mapped;
    constants += needs[i].memory_class == SNT_MEM_CONSTANT;
  }
  const snt_vk_init_info init = {
      .head = SNT_HEAD(vk_init_info), .constant_count = constants, .constant = ranges, .constant_mapped = mapped};
  must(snt_vk_record_init(w->exec, VK_NULL_HANDLE, &init, &next, &b->diag) == SNT_OK, "constants", &b->diag);
  const snt_vk_binding_info info = {.head = SNT_HEAD(vk_binding_info),
                                    .max_symbols = size_of_frame,
                                    .symbol_count = 2,
                                    .slot_count = 1,
                                    .memory_count = w->need_count,
                                    .memory = ranges};
  const snt_vk_bind binds[] = {{.port = 0, .view = b->x.view, .layout = VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL},
                               {.port = 1, .view = b->y.view, .layout = VK_IMAGE_LAYOUT_GENERAL}};
  must(snt_vk_binding_create(w->exec, &info, &w->binding, &b->diag) == SNT_OK, "binding", &b->diag);
  must(snt_vk_binding_set(w->binding, 0, 2, 0, binds, &b->diag) == SNT_OK, "images", &b->diag);
}

/* A slice of its steps; no steps: all. */
static void record_way(bench *b, sinter_way *w, uint32_t first, uint32_t count) {
  const snt_vk_record_info info = {
      .head = SNT_HEAD(vk_record_info), .first_step = first, .step_count = count, .symbols = size_of_frame, .symbol_count = 2};
  must(snt_vk_record(w->binding, b->host.commands, &info, &b->diag) == SNT_OK, "record", &b->diag);
}

static void drop_way(bench *b, sinter_way *w) {
  snt_binding_destroy(w->binding);
  snt_exec_destroy(w->exec);
  snt_program_destroy(w->program);
  for (uint32_t i = 0; i < w->need_count; i++) vk_host_buffer_destroy(&b->host, &w->memory[i]);
}

/* ---- by hand ---- */

static void make_pass(bench *b, uint32_t i) {
  char source[4096], format[24];
  host_glsl glsl = {NULL};
  const uint32_t *words = NULL;
  size_t bytes = 0;
  snprintf(format, sizeof format, "%s", passes[i].format);
  const char *hole = strstr(head, "FORMAT");
  const int length = snprintf(source, sizeof source, "%.*s%s%s%s", (int)(hole - head), head, format, hole + strlen("FORMAT"),
                              passes[i].body);
  must(host_glsl_compile(&glsl, "postprocess", source, (size_t)length, &words, &bytes, &b->diag) == SNT_OK, "GLSL", &b->diag);
  const VkShaderModuleCreateInfo info = {.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO, .codeSize = bytes, .pCode = words};
  VkShaderModule module;
  must(vk.vkCreateShaderModule(b->host.device, &info, NULL, &module) == VK_SUCCESS, "a module", NULL);
  const VkComputePipelineCreateInfo pipeline = {.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
                                                .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                                                          .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                                                          .module = module,
                                                          .pName = "main"},
                                                .layout = b->hand.layout};
  must(vk.vkCreateComputePipelines(b->host.device, VK_NULL_HANDLE, 1, &pipeline, NULL, &b->hand.pipelines[i]) == VK_SUCCESS, "a pipeline",
       NULL);
  vk.vkDestroyShaderModule(b->host.device, module, NULL);
  host_glsl_free(&glsl);
}

static void write_set(bench *b, uint32_t pass, const vk_host_image *from, const vk_host_image *to) {
  const VkDescriptorImageInfo images[] = {{.imageView = from->view, .imageLayout = VK_IMAGE_LAYOUT_GENERAL},
                                          {.imageView = to->view, .imageLayout = VK_IMAGE_LAYOUT_GENERAL},
                                          {.imageView = b->x.view, .imageLayout = VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL}};
  VkWriteDescriptorSet writes[3];
  for (uint32_t i = 0; i < 3; i++) {
    writes[i] = (VkWriteDescriptorSet){.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                                       .dstSet = b->hand.sets[pass],
                                       .dstBinding = i,
                                       .descriptorCount = 1,
                                       .descriptorType = i == STORED ? VK_DESCRIPTOR_TYPE_STORAGE_IMAGE : VK_DESCRIPTOR_TYPE_SAMPLED_IMAGE,
                                       .pImageInfo = from == &b->x && i == SAMPLED ? &images[2] : &images[i]};
  }
  vk.vkUpdateDescriptorSets(b->host.device, 3, writes, 0, NULL);
}

static void make_hand(bench *b) {
  hand_way *h = &b->hand;
  VkDescriptorSetLayoutBinding bindings[3];
  for (uint32_t i = 0; i < 3; i++)
    bindings[i] = (VkDescriptorSetLayoutBinding){i, i == STORED ? VK_DESCRIPTOR_TYPE_STORAGE_IMAGE : VK_DESCRIPTOR_TYPE_SAMPLED_IMAGE, 1,
                                                 VK_SHADER_STAGE_COMPUTE_BIT, NULL};
  const VkDescriptorSetLayoutCreateInfo set = {
      .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO, .bindingCount = 3, .pBindings = bindings};
  must(vk.vkCreateDescriptorSetLayout(b->host.device, &set, NULL, &h->set_layout) == VK_SUCCESS, "a set layout", NULL);
  const VkPipelineLayoutCreateInfo layout = {
      .sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO, .setLayoutCount = 1, .pSetLayouts = &h->set_layout};
  must(vk.vkCreatePipelineLayout(b->host.device, &layout, NULL, &h->layout) == VK_SUCCESS, "a pipeline layout", NULL);
  const VkDescriptorPoolSize sizes[] = {{VK_DESCRIPTOR_TYPE_SAMPLED_IMAGE, 2 * PASSES}, {VK_DESCRIPTOR_TYPE_STORAGE_IMAGE, PASSES}};
  const VkDescriptorPoolCreateInfo pool = {
      .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO, .maxSets = PASSES, .poolSizeCount = 2, .pPoolSizes = sizes};
  must(vk.vkCreateDescriptorPool(b->host.device, &pool, NULL, &h->pool) == VK_SUCCESS, "a pool", NULL);
  for (uint32_t i = 0; i < PASSES; i++) {
    const VkDescriptorSetAllocateInfo one = {.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
                                             .descriptorPool = h->pool,
                                             .descriptorSetCount = 1,
                                             .pSetLayouts = &h->set_layout};
    must(vk.vkAllocateDescriptorSets(b->host.device, &one, &h->sets[i]) == VK_SUCCESS, "a set", NULL);
    make_pass(b, i);
  }
  for (int i = 0; i < 2; i++)
    must(vk_host_image_create(&b->host, VK_FORMAT_R16G16B16A16_SFLOAT, WIDTH, HEIGHT,
                              VK_IMAGE_USAGE_SAMPLED_BIT | VK_IMAGE_USAGE_STORAGE_BIT, &h->between[i]),
         "an image", NULL);
  write_set(b, 0, &b->x, &h->between[0]);
  write_set(b, 1, &h->between[0], &h->between[1]);
  write_set(b, 2, &h->between[1], &b->y);
}

static void record_hand(bench *b) {
  const VkMemoryBarrier barrier = {
      .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER, .srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT, .dstAccessMask = VK_ACCESS_SHADER_READ_BIT};
  VkCommandBuffer c = b->host.commands;
  for (uint32_t i = 0; i < PASSES; i++) {
    if (i)
      b->host.vkCmdPipelineBarrier(c, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, 0, 1, &barrier, 0, NULL,
                                   0, NULL);
    vk.vkCmdBindPipeline(c, VK_PIPELINE_BIND_POINT_COMPUTE, b->hand.pipelines[i]);
    vk.vkCmdBindDescriptorSets(c, VK_PIPELINE_BIND_POINT_COMPUTE, b->hand.layout, 0, 1, &b->hand.sets[i], 0, NULL);
    vk.vkCmdDispatch(c, (WIDTH + 15) / 16, (HEIGHT + 7) / 8, 1);
  }
}

static void drop_hand(bench *b) {
  const VkDevice d = b->host.device;
  for (uint32_t i = 0; i < PASSES; i++) vk.vkDestroyPipeline(d, b->hand.pipelines[i], NULL);
  for (int i = 0; i < 2; i++) vk_host_image_destroy(&b->host, &b->hand.between[i]);
  vk.vkDestroyDescriptorPool(d, b->hand.pool, NULL);
  vk.vkDestroyPipelineLayout(d, b->hand.layout, NULL);
  vk.vkDestroyDescriptorSetLayout(d, b->hand.set_layout, NULL);
}

/* ---- frames ---- */

/* v / 64 as an f16, for v below 512 */
static uint16_t sixty_fourths(uint32_t v) {
  uint32_t top = 0;
  while (v >> (top + 1)) top++;
  return v ? (uint16_t)((top + 9) << 10 | (v << (10 - top) & 0x3ff)) : 0;
}

static void make_images(bench *b) {
  must(vk_host_image_create(&b->host, VK_FORMAT_R16G16B16A16_SFLOAT, WIDTH, HEIGHT, VK_IMAGE_USAGE_SAMPLED_BIT, &b->x) &&
           vk_host_image_create(&b->host, VK_FORMAT_R8G8B8A8_UNORM, WIDTH, HEIGHT, VK_IMAGE_USAGE_STORAGE_BIT, &b->y) &&
           vk_host_buffer_create(&b->host, WIDTH * HEIGHT * 8, VK_BUFFER_USAGE_TRANSFER_SRC_BIT, &b->upload) &&
           vk_host_buffer_create(&b->host, WIDTH * HEIGHT * 4, VK_BUFFER_USAGE_TRANSFER_DST_BIT, &b->download),
       "images", NULL);
  uint16_t *texel = b->upload.mapped; /* smooth light from 0 to 2 with bright spots */
  for (uint32_t i = 0; i < WIDTH * HEIGHT * 4; i++) {
    const uint32_t column = i / 4 % WIDTH, row = i / 4 / WIDTH, v = (column / 15 + row / 9 + 37 * (i % 4)) % 128;
    texel[i] = sixty_fourths(column % 97 < 3 && row % 61 < 3 ? 256 : v);
  }
  vk_host_begin(&b->host);
  vk_host_transition(&b->host, &b->x, VK_IMAGE_LAYOUT_UNDEFINED, VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL);
  vk_host_copy_image(&b->host, &b->x, VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL, &b->upload, true);
  vk_host_transition(&b->host, &b->x, VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL, VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL);
  must(vk_host_submit_wait(&b->host), "upload", NULL);
}

enum { FUSED, NODES, HAND, WAYS };
static const char *const names[WAYS] = {"fused", "a kernel a node", "GLSL by hand"};

static cost submit(bench *b) {
  const cost start = {ms_of(CLOCK_MONOTONIC), ms_of(CLOCK_PROCESS_CPUTIME_ID)};
  must(vk_host_submit_wait(&b->host), "submit", NULL);
  return (cost){ms_of(CLOCK_MONOTONIC) - start.wall, ms_of(CLOCK_PROCESS_CPUTIME_ID) - start.processor};
}

/* Each kernel of the fused program by itself, in the order that they run in. */
static void time_steps(bench *b, int rounds) {
  for (uint32_t step = 0; step < b->fused.kernels; step++) {
    double least = 0;
    for (int round = 0; round < rounds; round++) {
      vk_host_begin(&b->host);
      record_way(b, &b->fused, step, 1);
      const cost took = submit(b);
      if (!round || took.processor < least) least = took.processor;
    }
    printf("fused kernel %u   %28.1f of processor time\n", step, least);
  }
}

static cost frame(bench *b, int way, uint8_t *picture) {
  vk_host_begin(&b->host);
  vk_host_transition(&b->host, &b->y, VK_IMAGE_LAYOUT_UNDEFINED, VK_IMAGE_LAYOUT_GENERAL);
  for (int i = 0; way == HAND && i < 2; i++)
    vk_host_transition(&b->host, &b->hand.between[i], VK_IMAGE_LAYOUT_UNDEFINED, VK_IMAGE_LAYOUT_GENERAL);
  if (way == HAND) record_hand(b);
  else record_way(b, way == FUSED ? &b->fused : &b->nodes, 0, 0);
  const cost took = submit(b);
  if (!picture) return took;
  vk_host_begin(&b->host);
  vk_host_transition(&b->host, &b->y, VK_IMAGE_LAYOUT_GENERAL, VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL);
  vk_host_copy_image(&b->host, &b->y, VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL, &b->download, false);
  must(vk_host_submit_wait(&b->host), "download", NULL);
  memcpy(picture, b->download.mapped, WIDTH * HEIGHT * 4);
  return took;
}

static uint32_t worst_of(const uint8_t *a, const uint8_t *b) {
  uint32_t worst = 0;
  for (uint32_t i = 0; i < WIDTH * HEIGHT * 4; i++) {
    const uint32_t d = (uint32_t)abs(a[i] - b[i]);
    if (i % 4 != 3 && d > worst) worst = d;
  }
  return worst;
}

static void run(bench *b, int rounds) {
  static uint8_t pictures[WAYS][WIDTH * HEIGHT * 4];
  cost best[WAYS] = {{0, 0}};
  for (int way = 0; way < WAYS; way++) frame(b, way, pictures[way]);
  for (int round = 0; round < rounds; round++)
    for (int i = 0; i < WAYS; i++) {
      const int way = round & 1 ? WAYS - 1 - i : i;
      const cost took = frame(b, way, NULL);
      if (!best[way].wall || took.wall < best[way].wall) best[way].wall = took.wall;
      if (!best[way].processor || took.processor < best[way].processor) best[way].processor = took.processor;
    }
  printf("%s, %d x %d, rgba16f to rgba8, best of %d\n", b->host.properties.deviceName, WIDTH, HEIGHT, rounds);
  const uint32_t kernels[WAYS] = {b->fused.kernels, b->nodes.kernels, PASSES};
  for (int way = 0; way < WAYS; way++)
    printf("%-16s %2u kernels  %8.1f ms, %8.1f of processor time; fused takes %.2f, %.2f times less\n", names[way], kernels[way],
           best[way].wall, best[way].processor, best[way].wall / best[FUSED].wall, best[way].processor / best[FUSED].processor);
  time_steps(b, rounds);
  printf("levels of 255 apart: a kernel a node %u, by hand %u\n", worst_of(pictures[FUSED], pictures[NODES]),
         worst_of(pictures[FUSED], pictures[HAND]));
}

int main(int argc, char **argv) {
  static bench b;
  char why[200];
  const char *model = argc > 3 ? argv[3] : "examples/postprocess.snt";
  setenv("VK_LOADER_LAYERS_DISABLE", "~all~", 0);
  host_prepare_drivers(NULL);
  must(host_glsl_found(), "glslangValidator is not on the PATH", NULL);
  must(vk_host_open(&b.host, argc > 1 ? argv[1] : "llvmpipe", true, why, sizeof why), "no such device", NULL);
#define LOAD(name) must((vk.name = (PFN_##name)b.host.get(b.host.instance, #name)) != NULL, #name, NULL);
  FUNCTIONS(LOAD)
#undef LOAD
  b.diag.head = (snt_out_head)SNT_HEAD(diag);
  must(snt_context_create(NULL, &b.context) == SNT_OK, "context", NULL);
  must(vk_host_attach(&b.host, b.context, 0, &b.device, &b.diag) == SNT_OK, "attach", &b.diag);
  make_images(&b);
  compile_way(&b, &b.fused, 0, model);
  compile_way(&b, &b.nodes, SNT_COMPILE_UNFUSED_NODES, model);
  bind_way(&b, &b.fused);
  bind_way(&b, &b.nodes);
  make_hand(&b);
  run(&b, argc > 2 ? atoi(argv[2]) : 5);
  drop_hand(&b);
  drop_way(&b, &b.fused);
  drop_way(&b, &b.nodes);
  snt_device_destroy(b.device);
  snt_context_destroy(b.context);
  vk_host_image_destroy(&b.host, &b.x);
  vk_host_image_destroy(&b.host, &b.y);
  vk_host_buffer_destroy(&b.host, &b.upload);
  vk_host_buffer_destroy(&b.host, &b.download);
  vk_host_close(&b.host);
  return 0;
}
