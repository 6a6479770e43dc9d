/* Image ports through the door: a chain from image to image gives what the host evaluator gives for the same tensors, in every format, at
   several sizes with one pipeline, under the validation layers; filtered ones for the tensors that exact filtering makes of the image. The
   scopes of the edges are given by the test and recorded by the library. */
#include "tests/tap.h"
#include "tests/unit/vk_host.h"
#include "tools/host/host.h"

enum { MAX_WIDTH = 40, MAX_HEIGHT = 24, MAX_TEXELS = MAX_WIDTH * MAX_HEIGHT };

/* A 3x3 blur of what is bright, added, tone mapped and laid out as the port says. */
static const char chain[] = "symbols { h: min=1 max=24 multiple_of=1 hint=24, w: min=1 max=40 multiple_of=1 hint=40 }\n"
                            "graph @chain(%x: f32[1,3,h,w]) {\n"
                            "  %k: f32[3,1,3,3] = const normal seed=5 scale=0.25\n"
                            "  %bright = max %x, 0.25\n"
                            "  %soft = conv %bright, %k, pads=[1,1,1,1], groups=3\n"
                            "  %sum = add %x, %soft\n"
                            "  %low = max %sum, 0.0\n"
                            "  %tone = min %low, 1.0\n"
                            "  return y=%tone\n"
                            "}\n";
static const char mask[] = "symbols { h: min=1 max=24 multiple_of=1 hint=24, w: min=1 max=40 multiple_of=1 hint=40 }\n"
                           "graph @mask(%x: f32[h,w,4], %gain: f32[]) {\n"
                           "  %g: f32[h,w,4] = broadcast %gain, axes=[], shape=[h,w,4]\n"
                           "  %scaled = mul %x, %g\n"
                           "  %luma: f32[h,w] = reduce.max %scaled, axes=[2]\n"
                           "  %low = max %luma, 0.0\n"
                           "  %y = min %low, 1.0\n"
                           "  return y=%y\n"
                           "}\n";

static const char part[] = "symbols { h: min=1 max=24 multiple_of=1 hint=24, w: min=1 max=40 multiple_of=1 hint=40,\n"
                           "  x.x: min=0 max=39 multiple_of=1 hint=0, x.y: min=0 max=23 multiple_of=1 hint=0,\n"
                           "  y.x: min=0 max=39 multiple_of=1 hint=0, y.y: min=0 max=23 multiple_of=1 hint=0 }\n"
                           "graph @part(%x: f32[1,3,h,w]) {\n"
                           "  %k: f32[3,1,3,3] = const normal seed=5 scale=0.25\n"
                           "  %soft = conv %x, %k, pads=[1,1,1,1], groups=3\n"
                           "  %low = max %soft, 0.0\n"
                           "  %y = min %low, 1.0\n"
                           "  return y=%y\n"
                           "}\n";

typedef struct image_case {
  const char *name, *text;
  uint32_t in_layout, out_layout, in_channels, out_channels;
  VkFormat in, out;
  bool with_value;
  float step;             /* how coarse the output's format is; of filtered ones, what the device's filter may be off by */
  uint32_t width, height; /* of a filtered input; 0: it is not */
} image_case;
// clang-format off
static const image_case cases[] = {
    {"rgba32f to rgba32f", chain, SNT_IMAGE_CHW, SNT_IMAGE_CHW, 3, 3, VK_FORMAT_R32G32B32A32_SFLOAT, VK_FORMAT_R32G32B32A32_SFLOAT, false, 1e-5f, 0, 0},
    {"rgba16f to rgba8", chain, SNT_IMAGE_CHW, SNT_IMAGE_CHW, 3, 3, VK_FORMAT_R16G16B16A16_SFLOAT, VK_FORMAT_R8G8B8A8_UNORM, false, 0.6f / 255, 0, 0},
    {"rgba8 to rgba16f", chain, SNT_IMAGE_CHW, SNT_IMAGE_CHW, 3, 3, VK_FORMAT_R8G8B8A8_UNORM, VK_FORMAT_R16G16B16A16_SFLOAT, false, 2e-3f, 0, 0},
    {"rgba32f to r32f", mask, SNT_IMAGE_HWC, SNT_IMAGE_HW, 4, 1, VK_FORMAT_R32G32B32A32_SFLOAT, VK_FORMAT_R32_SFLOAT, true, 1e-5f, 0, 0},
    {"part of an image to part of an image", part, SNT_IMAGE_CHW, SNT_IMAGE_CHW, 3, 3, VK_FORMAT_R32G32B32A32_SFLOAT, VK_FORMAT_R32G32B32A32_SFLOAT, false, 1e-5f, 0, 0},
    {"filtered, larger and smaller", chain, SNT_IMAGE_CHW, SNT_IMAGE_CHW, 3, 3, VK_FORMAT_R8G8B8A8_UNORM, VK_FORMAT_R32G32B32A32_SFLOAT, false, 0.016f, 23, 17},
    {"filtered, wider and flatter", mask, SNT_IMAGE_HWC, SNT_IMAGE_HW, 4, 1, VK_FORMAT_R16G16B16A16_SFLOAT, VK_FORMAT_R32_SFLOAT, true, 0.016f, 7, 30},
    {"rgba8 to r8", mask, SNT_IMAGE_HWC, SNT_IMAGE_HW, 4, 1, VK_FORMAT_R8G8B8A8_UNORM, VK_FORMAT_R8_UNORM, true, 0.6f / 255, 0, 0},
};
// clang-format on

typedef struct image_test {
  vk_host host;
  const image_case *c;
  snt_context *context;
  snt_device *device;
  snt_profile *profile;
  snt_graph *graph;
  snt_program *program, *plain; /* with image ports; with tensors, for the host evaluator */
  snt_exec *exec;
  snt_binding *binding;
  vk_host_buffer memory[8], upload, download;
  snt_vk_memory_need needs[8];
  snt_vk_range ranges[8];
  uint32_t need_count, values;
  vk_host_image x, y;
  float in[MAX_TEXELS * 4], expected[MAX_TEXELS * 4], got[MAX_TEXELS * 4]; /* tensors */
  snt_diag diag;
} image_test;

static bool good(image_test *t, snt_result r, const char *what) {
  return tap_result(r == SNT_OK, __FILE__, __LINE__, "%s (%d %s)", what, r, r == SNT_OK ? "" : t->diag.text);
}

/* height, width and, where the ports are parts of images, where those begin */
static uint32_t symbol_count(const image_test *t) { return t->c->text == part ? 6 : 2; }
static uint32_t begin(const image_test *t, const int64_t *size, uint32_t symbol) { return t->c->text == part ? (uint32_t)size[symbol] : 0; }

/* ---- texels ---- */

static float half_to_float(uint16_t h) {
  const float m = (float)(h & 1023);
  const int e = h >> 10 & 31;
  const float v = e ? ldexpf(1 + m / 1024, e - 15) : ldexpf(m / 1024, -14);
  return h >> 15 ? -v : v;
}
static uint16_t float_to_half(float v) { /* exact values only */
  int e;
  const float m = frexpf(v < 0 ? -v : v, &e);
  return v == 0 ? 0 : (uint16_t)((v < 0 ? 0x8000 : 0) | (e + 14) << 10 | (int)((m * 2 - 1) * 1024));
}

static uint32_t channels_of(VkFormat f) { return f == VK_FORMAT_R32_SFLOAT || f == VK_FORMAT_R8_UNORM ? 1 : 4; }
static void put_channel(VkFormat f, void *at, uint32_t i, float v) {
  if (f == VK_FORMAT_R8G8B8A8_UNORM || f == VK_FORMAT_R8_UNORM) ((uint8_t *)at)[i] = (uint8_t)(v * 255 + 0.5f);
  else if (f == VK_FORMAT_R16G16B16A16_SFLOAT) ((uint16_t *)at)[i] = float_to_half(v);
  else ((float *)at)[i] = v;
}
static float get_channel(VkFormat f, const void *at, uint32_t i) {
  if (f == VK_FORMAT_R8G8B8A8_UNORM || f == VK_FORMAT_R8_UNORM) return (float)((const uint8_t *)at)[i] / 255;
  if (f == VK_FORMAT_R16G16B16A16_SFLOAT) return half_to_float(((const uint16_t *)at)[i]);
  return ((const float *)at)[i];
}

static size_t element(uint32_t layout, uint32_t channels, const int64_t *size, uint32_t c, uint32_t y, uint32_t x) {
  const size_t h = (size_t)size[0], w = (size_t)size[1];
  return layout == SNT_IMAGE_CHW ? ((size_t)c * h + y) * w + x : ((size_t)y * w + x) * channels + c;
}

/* Multiples of 1/255 for rgba8, of 1/64 else: exact in the image's format. */
static void fill_input(image_test *t, const int64_t *size) {
  const image_case *c = t->c;
  const uint32_t texel_channels = channels_of(c->in);
  for (uint32_t i = 0; i < MAX_TEXELS * texel_channels; i++) put_channel(c->in, t->upload.mapped, i, 1); /* around the part */
  for (uint32_t y = 0; y < size[0]; y++)
    for (uint32_t x = 0; x < size[1]; x++)
      for (uint32_t i = 0; i < texel_channels; i++) {
        const uint32_t n = (x * 37 + y * 101 + i * 59) % 255;
        const float v = c->in == VK_FORMAT_R8G8B8A8_UNORM ? (float)n / 255 : (float)((int)(n % 128) - 48) / 64;
        put_channel(c->in, t->upload.mapped, ((y + begin(t, size, 3)) * t->x.width + x + begin(t, size, 2)) * texel_channels + i, v);
        if (i < c->in_channels) t->in[element(c->in_layout, c->in_channels, size, i, y, x)] = v;
      }
}

/* Texels between whole coordinates, those at the border going on: what a sampler gives, without its rounding. */
static float filtered_at(const image_test *t, double x, double y, uint32_t channel) {
  const double left = floor(x), top = floor(y);
  double sum = 0;
  for (int i = 0; i < 4; i++) {
    const double column = fmin(fmax(left + (i & 1), 0), t->x.width - 1.0), row = fmin(fmax(top + (i >> 1), 0), t->x.height - 1.0);
    const double weight = (i & 1 ? x - left : 1 - x + left) * (i >> 1 ? y - top : 1 - y + top);
    sum += weight *
           get_channel(t->c->in, t->upload.mapped, ((uint32_t)row * t->x.width + (uint32_t)column) * channels_of(t->c->in) + channel);
  }
  return (float)sum;
}

static void fill_filtered(image_test *t, const int64_t *size) {
  const image_case *c = t->c;
  const int64_t whole[6] = {c->height, c->width, 0, 0, 0, 0};
  fill_input(t, whole);
  for (uint32_t y = 0; y < size[0]; y++)
    for (uint32_t x = 0; x < size[1]; x++)
      for (uint32_t i = 0; i < c->in_channels; i++)
        t->in[element(c->in_layout, c->in_channels, size, i, y, x)] = filtered_at(t, (x + 0.5) * c->width / (double)size[1] - 0.5,
                                                                                  (y + 0.5) * c->height / (double)size[0] - 0.5, i);
}

/* ---- programs and resources ---- */

static bool compile(image_test *t) {
  const snt_image_port images[] = {{"x", t->c->in_layout, t->c->width ? SNT_IMAGE_FILTERED : 0}, {"y", t->c->out_layout, 0}};
  const snt_compile_info info = {.head = SNT_HEAD(compile_info), .image_count = 2, .images = images};
  snt_result r = snt_graph_create(t->context, &t->graph);
  if (r == SNT_OK) r = snt_graph_parse(t->graph, t->c->text, strlen(t->c->text), NULL, &t->diag);
  if (r == SNT_OK) r = snt_device_profile(t->device, &t->profile);
  if (r == SNT_OK) r = snt_compile(t->graph, t->profile, &info, &t->program, &t->diag);
  if (r == SNT_OK) r = snt_compile(t->graph, t->profile, NULL, &t->plain, &t->diag);
  return good(t, r, "compiled with image ports");
}

static bool make_exec(image_test *t) {
  const uint32_t last = snt_program_port_count(t->program) - 1;
  const snt_vk_port_format formats[] = {{0, t->c->in}, {last, t->c->out}};
  const snt_vk_exec_info own = {
      .head = SNT_HEAD(vk_exec_info), .flags = SNT_VK_EDGE_BARRIERS, .port_format_count = 2, .port_formats = formats};
  snt_exec_info info = {.head = SNT_HEAD(exec_info)};
  info.head.next = &own;
  snt_result r = snt_exec_create(t->device, t->program, &info, &t->exec, &t->diag);
  if (r == SNT_OK) r = snt_exec_prepare(t->exec, &t->diag);
  return good(t, r, "pipelines for its formats");
}

static bool make_resources(image_test *t) {
  static const int64_t most[] = {MAX_HEIGHT, MAX_WIDTH, 39, 23, 39, 23};
  bool ok = true;
  t->need_count = 8;
  for (int i = 0; i < 8; i++) t->needs[i].head = (snt_out_head)SNT_HEAD(vk_memory_need);
  const snt_result r = snt_vk_exec_memory(t->exec, most, symbol_count(t), &t->need_count, 0, t->needs);
  if (!good(t, r, "memory needs")) return false;
  for (uint32_t i = 0; ok && i < t->need_count; i++) {
    ok = vk_host_buffer_create(&t->host, t->needs[i].size, t->needs[i].usage, &t->memory[i]);
    t->ranges[i] = (snt_vk_range){t->memory[i].buffer, 0, t->needs[i].size};
    if (t->needs[i].memory_class == SNT_MEM_VALUES) t->values = i;
  }
  ok = ok && vk_host_buffer_create(&t->host, MAX_TEXELS * 16, VK_BUFFER_USAGE_TRANSFER_SRC_BIT, &t->upload);
  ok = ok && vk_host_buffer_create(&t->host, MAX_TEXELS * 16, VK_BUFFER_USAGE_TRANSFER_DST_BIT, &t->download);
  ok = ok && vk_host_image_create(&t->host, t->c->in, t->c->width ? t->c->width : MAX_WIDTH, t->c->height ? t->c->height : MAX_HEIGHT,
                                  VK_IMAGE_USAGE_SAMPLED_BIT, &t->x);
  ok = ok && vk_host_image_create(&t->host, t->c->out, MAX_WIDTH, MAX_HEIGHT, VK_IMAGE_USAGE_STORAGE_BIT, &t->y);
  return tap_result(ok, __FILE__, __LINE__, "the application's memory and images");
}

static bool make_binding(image_test *t) {
  static const int64_t most[] = {MAX_HEIGHT, MAX_WIDTH, 39, 23, 39, 23};
  const snt_vk_sync copies = {VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_READ_BIT};
  const snt_vk_binding_info info = {.head = SNT_HEAD(vk_binding_info),
                                    .max_symbols = most,
                                    .symbol_count = symbol_count(t),
                                    .slot_count = 1,
                                    .memory_count = t->need_count,
                                    .memory = t->ranges};
  const uint32_t last = snt_program_port_count(t->program) - 1;
  const snt_vk_bind binds[] = {{.port = 0, .view = t->x.view, .layout = VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL},
                               {.port = last, .view = t->y.view, .layout = VK_IMAGE_LAYOUT_GENERAL, .after = copies}};
  snt_result r = snt_vk_binding_create(t->exec, &info, &t->binding, &t->diag);
  if (r == SNT_OK) r = snt_vk_binding_set(t->binding, 0, 2, 0, binds, &t->diag);
  return good(t, r, "bound");
}

/* Constants at once, by the mapped pointers. */
static bool upload_constants(image_test *t) {
  void *mapped[1] = {NULL};
  snt_vk_init_info info = {.head = SNT_HEAD(vk_init_info), .constant = t->ranges, .constant_mapped = mapped};
  uint64_t next = 0;
  if (t->need_count && t->needs[0].memory_class == SNT_MEM_CONSTANT) info.constant_count = 1, mapped[0] = t->memory[0].mapped;
  const snt_result r = snt_vk_record_init(t->exec, VK_NULL_HANDLE, &info, &next, &t->diag);
  return good(t, r, "constants written on unified memory") && next == SNT_VK_INIT_DONE;
}

/* ---- a frame ---- */

static bool expect(image_test *t, const int64_t *size, float gain) {
  const snt_open_info open = {.head = SNT_HEAD(open_info), .selector = "host"};
  snt_device *host = NULL;
  snt_exec *exec = NULL;
  const uint32_t last = snt_program_port_count(t->plain) - 1;
  const snt_argument arguments[] = {
      {0, 0, NULL, 0, t->in, sizeof t->in}, {last, 0, NULL, 0, t->expected, sizeof t->expected}, {1, 0, NULL, 0, &gain, sizeof gain}};
  const snt_run_info run = {.head = SNT_HEAD(run_info),
                            .argument_count = t->c->with_value ? 3 : 2,
                            .arguments = arguments,
                            .symbols = size,
                            .symbol_count = symbol_count(t)};
  snt_result r = snt_device_open(t->context, &open, &host, &t->diag);
  if (r == SNT_OK) r = snt_exec_create(host, t->plain, NULL, &exec, &t->diag);
  if (r == SNT_OK) r = snt_run(exec, &run, &t->diag);
  snt_exec_destroy(exec);
  snt_device_destroy(host);
  return r == SNT_OK;
}

static void run_frame(image_test *t, const int64_t *size) {
  const float gain = 1.5f;
  const snt_vk_record_info info = {.head = SNT_HEAD(vk_record_info),
                                   .symbols = size,
                                   .symbol_count = symbol_count(t),
                                   .values = t->c->with_value ? &gain : NULL,
                                   .values_size = sizeof gain,
                                   .values_mapped = t->c->with_value ? t->memory[t->values].mapped : NULL};
  if (t->c->width) fill_filtered(t, size);
  else fill_input(t, size);
  vk_host_begin(&t->host);
  vk_host_transition(&t->host, &t->x, VK_IMAGE_LAYOUT_UNDEFINED, VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL);
  vk_host_copy_image(&t->host, &t->x, VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL, &t->upload, true);
  vk_host_transition(&t->host, &t->x, VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL, VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL);
  vk_host_transition(&t->host, &t->y, VK_IMAGE_LAYOUT_UNDEFINED, VK_IMAGE_LAYOUT_GENERAL);
  const snt_result r = snt_vk_record(t->binding, t->host.commands, &info, &t->diag);
  vk_host_copy_image(&t->host, &t->y, VK_IMAGE_LAYOUT_GENERAL, &t->download, false); /* behind our edge barrier */
  vk_host_submit_wait(&t->host);
  if (!good(t, r, "a frame is recorded")) return;
  if (!tap_result(expect(t, size, gain), __FILE__, __LINE__, "the host evaluator: %s", t->diag.text)) return;
  float worst = 0;
  const uint32_t texel_channels = channels_of(t->c->out);
  bool alpha = true;
  for (uint32_t y = 0; y < size[0]; y++)
    for (uint32_t x = 0; x < size[1]; x++)
      for (uint32_t i = 0; i < texel_channels; i++) {
        const float v = get_channel(t->c->out, t->download.mapped,
                                    ((y + begin(t, size, 5)) * t->y.width + x + begin(t, size, 4)) * texel_channels + i);
        if (i >= t->c->out_channels) alpha = alpha && v == (i == 3);
        else worst = fmaxf(worst, fabsf(v - t->expected[element(t->c->out_layout, t->c->out_channels, size, i, y, x)]));
      }
  tap_result(worst <= t->c->step && alpha, __FILE__, __LINE__, "%d x %d texels are the evaluator's within %g (%g)", (int)size[1],
             (int)size[0], t->c->step, worst);
}

static void close_case(image_test *t) {
  snt_binding_destroy(t->binding);
  snt_exec_destroy(t->exec);
  snt_program_destroy(t->program);
  snt_program_destroy(t->plain);
  snt_graph_destroy(t->graph);
  snt_profile_destroy(t->profile);
  snt_device_destroy(t->device);
  snt_context_destroy(t->context);
  for (uint32_t i = 0; i < t->need_count && i < 8; i++) vk_host_buffer_destroy(&t->host, &t->memory[i]);
  if (t->upload.buffer) vk_host_buffer_destroy(&t->host, &t->upload);
  if (t->download.buffer) vk_host_buffer_destroy(&t->host, &t->download);
  if (t->x.image) vk_host_image_destroy(&t->host, &t->x);
  if (t->y.image) vk_host_image_destroy(&t->host, &t->y);
}

static void test_case(const char *part, const image_case *c) {
  static const int64_t sizes[][6] = {{24, 40, 0, 0, 0, 0}, {1, 1, 39, 23, 5, 7}, {17, 23, 3, 5, 11, 2}, {8, 16, 0, 9, 20, 0}};
  static image_test t;
  char why[120];
  memset(&t, 0, sizeof t);
  t.c = c;
  t.diag.head = (snt_out_head)SNT_HEAD(diag);
  if (!vk_host_open(&t.host, part, true, why, sizeof why)) {
    tap_skip("%s", why);
    return;
  }
  tap_diag("%s: %s", t.host.properties.deviceName, c->name);
  snt_result r = snt_context_create(NULL, &t.context);
  if (r == SNT_OK) r = vk_host_attach(&t.host, t.context, 0, &t.device, &t.diag);
  const bool ok = good(&t, r, "attached") && compile(&t) && make_exec(&t) && make_resources(&t) && upload_constants(&t) && make_binding(&t);
  for (uint32_t i = 0; ok && i < 4; i++) run_frame(&t, sizes[i]);
  close_case(&t);
  tap_result(!t.host.messages, __FILE__, __LINE__, "the validation layers say nothing%s%s", t.host.messages ? ": " : "",
             t.host.first_message);
  vk_host_close(&t.host);
}

/* What cannot be filtered is refused by name when it is compiled. */
static void test_refused(void) {
  static const struct {
    const char *text;
    snt_image_port image;
    snt_result expected;
  } refused[] = {
      {chain, {"y", SNT_IMAGE_CHW, SNT_IMAGE_FILTERED}, SNT_E_ARG},
      {chain, {"x", SNT_IMAGE_CHW, 2}, SNT_E_ARG},
      {part, {"x", SNT_IMAGE_CHW, SNT_IMAGE_FILTERED}, SNT_E_ARG},
      {"graph @whole(%x: u32[3,8,8]) {\n %y = mul %x, 3\n return y=%y\n}\n", {"x", SNT_IMAGE_CHW, SNT_IMAGE_FILTERED}, SNT_E_ARG}};
  for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
    const snt_compile_info info = {.head = SNT_HEAD(compile_info), .image_count = 1, .images = &refused[i].image};
    snt_context *context = NULL;
    snt_graph *graph = NULL;
    snt_profile *profile = NULL;
    snt_program *program = NULL;
    snt_diag diag = {.head = SNT_HEAD(diag)};
    snt_result r = snt_context_create(NULL, &context);
    if (r == SNT_OK) r = snt_graph_create(context, &graph);
    if (r == SNT_OK) r = snt_graph_parse(graph, refused[i].text, strlen(refused[i].text), NULL, &diag);
    if (r == SNT_OK) r = snt_profile_builtin(context, "dgpu", &profile);
    if (r == SNT_OK) r = snt_compile(graph, profile, &info, &program, &diag);
    tap_result(r == refused[i].expected && !program, __FILE__, __LINE__, "refused: %s (%d)", diag.text, r);
    snt_profile_destroy(profile);
    snt_graph_destroy(graph);
    snt_context_destroy(context);
  }
}

VK_HOST_LEAKS

int main(void) {
  host_prepare_drivers(NULL);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    test_case("llvmpipe", &cases[i]);
    test_case("SwiftShader", &cases[i]);
  }
  test_refused();
  return tap_done();
}
