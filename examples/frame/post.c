/* The post-process: a graph of tensor operators from image to image, compiled for the renderer's device, its memory from the renderer's
   allocator, recorded into the renderer's frame. This file is all that Sinter asks of an engine. */
#include "examples/frame/frame.h"
#include <stdio.h>
#include <string.h>

/* Exposure; what is brighter than white is blurred and added (bloom); the ACES curve (Narkowicz 2016); gamma 2; a little sharpening. */
#define TAPS "0.0276, 0.0663, 0.1238, 0.1802, 0.2042, 0.1802, 0.1238, 0.0663, 0.0276"
#define EDGES "0.0, -0.15, 0.0, -0.15, 1.6, -0.15, 0.0, -0.15, 0.0"
static const char graph_text[] = "symbols { h: min=8 max=2160 multiple_of=1 hint=1080, w: min=8 max=3840 multiple_of=1 hint=1920 }\n"
                                 "graph @post(%lit: f32[1,3,h,w], %exposure: f32[]) {\n"
                                 "  %across: f32[3,1,1,9] = const [" TAPS ", " TAPS ", " TAPS "]\n"
                                 "  %down: f32[3,1,9,1] = const [" TAPS ", " TAPS ", " TAPS "]\n"
                                 "  %edges: f32[3,1,3,3] = const [" EDGES ", " EDGES ", " EDGES "]\n"
                                 "  %e: f32[1,3,h,w] = broadcast %exposure, axes=[], shape=[1,3,h,w]\n"
                                 "  %exposed = mul %lit, %e\n"
                                 "  %over = sub %exposed, 1.0\n"
                                 "  %bright = max %over, 0.0\n"
                                 "  %some = min %bright, 8.0\n"
                                 "  %blur_x = conv %some, %across, pads=[0,4,0,4], groups=3\n"
                                 "  %blur_y = conv %blur_x, %down, pads=[4,0,4,0], groups=3\n"
                                 "  %glow = mul %blur_y, 0.35\n"
                                 "  %c = add %exposed, %glow\n"
                                 "  %n1 = mul %c, 2.51\n"
                                 "  %n2 = add %n1, 0.03\n"
                                 "  %num = mul %c, %n2\n"
                                 "  %d1 = mul %c, 2.43\n"
                                 "  %d2 = add %d1, 0.59\n"
                                 "  %d3 = mul %c, %d2\n"
                                 "  %den = add %d3, 0.14\n"
                                 "  %ratio = div %num, %den\n"
                                 "  %low = max %ratio, 0.0\n"
                                 "  %tone = min %low, 1.0\n"
                                 "  %gamma = sqrt %tone\n"
                                 "  %round = pad_edge %gamma, pads=[0,0,1,1,0,0,1,1]\n"
                                 "  %sharp = conv %round, %edges, groups=3\n"
                                 "  %floor = max %sharp, 0.0\n"
                                 "  %shown = min %floor, 1.0\n"
                                 "  return shown=%shown\n"
                                 "}\n";

static bool check(snt_result r, const snt_diag *diag, const char *what) {
  if (r != SNT_OK) fprintf(stderr, "frame: %s: %s: %s\n", what, snt_result_text(r), diag->text);
  return r == SNT_OK;
}

/* ---- once: attach, compile, pipelines ---- */

static bool attach(gpu *g, post *p) {
  snt_diag diag = {.head = SNT_HEAD(diag)};
  const snt_vk_attach_info info = {.head = SNT_HEAD(vk_attach_info),
                                   .instance = g->instance,
                                   .physical_device = g->physical,
                                   .device = g->device,
                                   .get_instance_proc = g->get,
                                   .api_version = VK_API_VERSION_1_1,
                                   .created_with = &g->created_with,
                                   .debug_name = "frame"};
  return check(snt_context_create(NULL, &p->context), &diag, "context") &&
         check(snt_vk_attach(p->context, &info, &p->device, &diag), &diag, "attach");
}

/* In a game this is a saved program (`sinter compile -o post.sntp`): then no compiler runs here. */
static bool compile(post *p) {
  static const snt_image_port images[] = {{"lit", SNT_IMAGE_CHW, 0}, {"shown", SNT_IMAGE_CHW, 0}};
  static const snt_compile_info info = {.head = SNT_HEAD(compile_info), .image_count = 2, .images = images};
  snt_diag diag = {.head = SNT_HEAD(diag)};
  snt_graph *graph = NULL;
  snt_profile *profile = NULL;
  snt_result r = snt_graph_create(p->context, &graph);
  if (r == SNT_OK) r = snt_graph_parse(graph, graph_text, strlen(graph_text), NULL, &diag);
  if (r == SNT_OK) r = snt_device_profile(p->device, &profile);
  if (r == SNT_OK) r = snt_compile(graph, profile, &info, &p->program, &diag);
  if (r == SNT_OK) r = snt_program_find_port(p->program, "lit", &p->in);
  if (r == SNT_OK) r = snt_program_find_port(p->program, "shown", &p->out);
  snt_profile_destroy(profile);
  snt_graph_destroy(graph);
  return check(r, &diag, "compile");
}

/* An engine gives the jobs to its own threads; here they run one after the other. */
static bool make_pipelines(post *p) {
  snt_diag diag = {.head = SNT_HEAD(diag)};
  const snt_vk_port_format formats[] = {{p->in, VK_FORMAT_R16G16B16A16_SFLOAT}, {p->out, VK_FORMAT_R8G8B8A8_UNORM}};
  const snt_vk_exec_info door = {
      .head = SNT_HEAD(vk_exec_info), .flags = SNT_VK_EDGE_BARRIERS, .port_format_count = 2, .port_formats = formats};
  snt_exec_info info = {.head = SNT_HEAD(exec_info)};
  info.head.next = &door;
  if (!check(snt_exec_create(p->device, p->program, &info, &p->exec, &diag), &diag, "exec")) return false;
  for (uint32_t i = 0; i < snt_exec_job_count(p->exec); i++)
    if (!check(snt_exec_run_job(p->exec, i, &diag), &diag, "job")) return false;
  return true;
}

/* ---- memory: what is needed comes from the renderer's allocator ---- */

static bool make_memory(gpu *g, post *p, VkCommandBuffer commands) {
  static const int64_t most[] = {MAX_HEIGHT, MAX_WIDTH};
  snt_diag diag = {.head = SNT_HEAD(diag)};
  snt_vk_memory_need needs[MAX_RANGES];
  snt_vk_range ranges[MAX_RANGES];
  gpu_buffer *staging = NULL;
  p->memory_count = MAX_RANGES;
  for (uint32_t i = 0; i < MAX_RANGES; i++) needs[i].head = (snt_out_head)SNT_HEAD(vk_memory_need);
  if (!check(snt_vk_exec_memory(p->exec, most, 2, &p->memory_count, 0, needs), &diag, "memory")) return false;
  snt_vk_init_info init = {.head = SNT_HEAD(vk_init_info), .flags = SNT_VK_INIT_BARRIER, .constant = ranges};
  for (uint32_t i = 0; i < p->memory_count; i++) {
    const VkDeviceSize bytes = needs[i].size * (needs[i].per_slot ? FRAMES_IN_FLIGHT : 1);
    if (!gpu_buffer_create(g, bytes, needs[i].usage, needs[i].required, &p->memory[i])) return false;
    ranges[i] = (snt_vk_range){p->memory[i].buffer, 0, bytes};
    init.constant_count += needs[i].memory_class == SNT_MEM_CONSTANT;
    if (needs[i].memory_class == SNT_MEM_VALUES) p->values = p->memory[i].mapped;
    if (needs[i].memory_class == SNT_MEM_STAGING) staging = &p->memory[i];
  }
  if (staging) init.staging = (snt_vk_range){staging->buffer, 0, staging->bytes}, init.staging_mapped = staging->mapped;
  uint64_t next = 0; /* the weights of this program fit one call; a large one would be uploaded over some frames */
  if (!check(snt_vk_record_init(p->exec, commands, &init, &next, &diag), &diag, "upload") || next != SNT_VK_INIT_DONE) return false;
  const snt_vk_binding_info info = {.head = SNT_HEAD(vk_binding_info),
                                    .max_symbols = most,
                                    .symbol_count = 2,
                                    .slot_count = FRAMES_IN_FLIGHT,
                                    .memory_count = p->memory_count,
                                    .memory = ranges};
  return check(snt_vk_binding_create(p->exec, &info, &p->binding, &diag), &diag, "binding");
}

static bool bind(post *p, const gpu_image *lit, const gpu_image *shown) {
  const snt_vk_sync read_back = {VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_READ_BIT};
  snt_diag diag = {.head = SNT_HEAD(diag)};
  for (uint32_t slot = 0; slot < FRAMES_IN_FLIGHT; slot++) {
    const snt_vk_bind binds[] = {{.port = p->in, .view = lit[slot].view, .layout = VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL},
                                 {.port = p->out, .view = shown[slot].view, .layout = VK_IMAGE_LAYOUT_GENERAL, .after = read_back}};
    if (!check(snt_vk_binding_set(p->binding, slot, 2, sizeof *binds, binds, &diag), &diag, "bind")) return false;
  }
  return true;
}

bool post_create(gpu *g, const gpu_image *lit, const gpu_image *shown, VkCommandBuffer for_upload, post *p) {
  *p = (post){0};
  return attach(g, p) && compile(p) && make_pipelines(p) && make_memory(g, p, for_upload) && bind(p, lit, shown);
}

/* ---- every frame ---- */

/* The frames share the scratch memory: the frame before may still write it, so its compute work comes first. */
bool post_record(post *p, VkCommandBuffer commands, uint32_t slot, uint32_t width, uint32_t height, float exposure) {
  const int64_t symbols[] = {height, width}; /* another resolution costs nothing */
  const snt_vk_record_info info = {.head = SNT_HEAD(vk_record_info),
                                   .slot = slot,
                                   .symbols = symbols,
                                   .symbol_count = 2,
                                   .values = &exposure,
                                   .values_size = sizeof exposure,
                                   .values_mapped = p->values,
                                   .memory_before = {VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_ACCESS_SHADER_WRITE_BIT}};
  snt_diag diag = {.head = SNT_HEAD(diag)};
  return check(snt_vk_record(p->binding, commands, &info, &diag), &diag, "record");
}

void post_destroy(gpu *g, post *p) {
  snt_binding_destroy(p->binding);
  snt_exec_destroy(p->exec);
  snt_program_destroy(p->program);
  snt_device_destroy(p->device);
  snt_context_destroy(p->context);
  for (uint32_t i = 0; i < p->memory_count && i < MAX_RANGES; i++)
    if (p->memory[i].buffer) g->vkDestroyBuffer(g->device, p->memory[i].buffer, NULL);
}
