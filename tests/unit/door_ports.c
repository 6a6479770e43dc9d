/* What the door tells a host of image ports, and what it says where a format, a view, a layout or a range is wrong; uploads into mapped memory and states
   that begin with zeros; calls that are given nothing, or an exec that is not the door's. The device is only a table of functions. */
#include "tests/tap.h"
#include "tests/unit/vk_app.h"

/* Images in all three layouts, a value, weights, a state. The parts of x begin at symbols of their own. */
static const char text[] = "symbols { h: min=8 max=24 multiple_of=8 hint=24, w: min=1 max=40 multiple_of=1 hint=40,\n"
                           "  x.x: min=0 max=39 multiple_of=1 hint=0, x.y: min=0 max=23 multiple_of=1 hint=0 }\n"
                           "graph @ports(%x: f32[1,3,h,w], %z: f32[h,w,4], %gain: f32[], state %s: f32[h,w]) {\n"
                           "  %k: f32[3,3,7,7] = const normal seed=5 scale=0.25\n"
                           "  %soft = conv %x, %k, pads=[3,3,3,3]\n"
                           "  %g: f32[h,w,4] = broadcast %gain, axes=[], shape=[h,w,4]\n"
                           "  %scaled = mul %z, %g\n"
                           "  %luma: f32[h,w] = reduce.max %scaled, axes=[2]\n"
                           "  %next = add %s, %luma\n"
                           "  update %s, %next\n"
                           "  return y=%soft, m=%luma\n"
                           "}\n";
enum { X, Z, GAIN, S, Y, M, PORTS, ROOM = 1 << 19 };
static const char *const names[PORTS] = {"x", "z", "gain", "s", "y", "m"};
static const int64_t most[] = {24, 40, 0, 0};

typedef struct ports_app {
  vk_app t;
  uint32_t port[PORTS];
  snt_vk_port_format formats[PORTS];
  snt_vk_exec_info door;
} ports_app;

static snt_result compile_ports(ports_app *a) {
  static const snt_image_port images[] = {
      {"x", SNT_IMAGE_CHW, 0}, {"z", SNT_IMAGE_HWC, SNT_IMAGE_FILTERED}, {"y", SNT_IMAGE_CHW, 0}, {"m", SNT_IMAGE_HW, 0}};
  const snt_compile_info info = {.head = SNT_HEAD(compile_info), .image_count = 4, .images = images};
  snt_graph *graph = NULL;
  snt_profile *profile = NULL;
  snt_result r = vk_app_attach(&a->t);
  if (r == SNT_OK) r = snt_graph_create(a->t.context, &graph);
  if (r == SNT_OK) r = snt_graph_parse(graph, text, strlen(text), NULL, &a->t.diag);
  if (r == SNT_OK) r = snt_device_profile(a->t.device, &profile);
  if (r == SNT_OK) r = snt_compile(graph, profile, &info, &a->t.program, &a->t.diag);
  for (uint32_t i = 0; r == SNT_OK && i < PORTS; i++) r = snt_program_find_port(a->t.program, names[i], &a->port[i]);
  snt_profile_destroy(profile);
  snt_graph_destroy(graph);
  return r;
}

/* Formats that are right; a test spoils one. */
static void fill_formats(ports_app *a) {
  a->formats[0] = (snt_vk_port_format){a->port[Y], VK_FORMAT_R8G8B8A8_UNORM};
  a->formats[1] = (snt_vk_port_format){a->port[M], VK_FORMAT_R32_SFLOAT};
  a->formats[2] = (snt_vk_port_format){a->port[X], VK_FORMAT_R16G16B16A16_SFLOAT};
  a->door = (snt_vk_exec_info){.head = SNT_HEAD(vk_exec_info), .port_format_count = 3, .port_formats = a->formats};
}

static snt_result make_exec(ports_app *a, const snt_head *chain, snt_exec **out) {
  snt_exec_info info = {.head = SNT_HEAD(exec_info)};
  info.head.next = chain;
  return snt_exec_create(a->t.device, a->t.program, &info, out, &a->t.diag);
}

static void refuse_exec(ports_app *a, const snt_head *chain, snt_result expected, const char *says, const char *spoilt, int line) {
  snt_exec *made = NULL;
  const int64_t alive = fake.alive;
  const long long bytes = atomic_load(&vk_app_heap.bytes);
  const snt_result r = make_exec(a, chain, &made);
  const bool none = !made, left = fake.alive != alive || atomic_load(&vk_app_heap.bytes) != bytes;
  snt_exec_destroy(made);
  tap_result(r == expected && none && !left && strstr(a->t.diag.text, says), __FILE__, line, "exec: %s: %d, %s", spoilt, r,
             r == SNT_OK ? "taken" : a->t.diag.text);
}
#define REFUSED(expected, says, ...)                                               \
  do {                                                                             \
    fill_formats(a);                                                               \
    __VA_ARGS__;                                                                   \
    refuse_exec(a, &a->door.head, SNT_E_##expected, says, #__VA_ARGS__, __LINE__); \
  } while (0)

static void test_formats(ports_app *a) {
  static const snt_vk_exec_info second = {.head = SNT_HEAD(vk_exec_info)};
  static const snt_diag foreign = {.head = SNT_HEAD(diag)};
  REFUSED(ARG, "the format of image port y is not declared", a->formats[0].port = a->port[X]);
  REFUSED(ARG, "a format for port 99", a->formats[1].port = 99);
  REFUSED(ARG, "a format for port", a->door.port_format_stride = 4);
  REFUSED(ARG, "no port formats", a->door.port_formats = NULL);
  REFUSED(ARG, "port gain is no image", a->formats[2].port = a->port[GAIN]);
  REFUSED(ARG, "port s is no image", a->formats[2].port = a->port[S]);
  REFUSED(UNSUPPORTED, "port y: format 1 is not known", a->formats[0].format = VK_FORMAT_R4G4_UNORM_PACK8);
  REFUSED(UNSUPPORTED, "port x: format 98 does not hold its elements", a->formats[2].format = VK_FORMAT_R32_UINT);
  REFUSED(UNSUPPORTED, "storage of format 9 needs shaderStorageImageExtendedFormats", a->formats[1].format = VK_FORMAT_R8_UNORM);
  REFUSED(UNSUPPORTED, "storage of format 44 needs shaderStorageImageWriteWithoutFormat", a->formats[0].format = VK_FORMAT_B8G8R8A8_UNORM);
  REFUSED(ARG, "", a->door.flags = 1u << 30);
  REFUSED(UNSUPPORTED, "without VK_KHR_push_descriptor", a->door.flags = SNT_VK_PUSH_DESCRIPTORS);
  REFUSED(LIMIT, "1 are allowed", a->door.max_dispatch_ns = 1);
  REFUSED(STRUCT, "in the chain", a->door.head.next = &second.head);
  REFUSED(STRUCT, "in the chain", a->door.head.type = foreign.head.type);
  REFUSED(STRUCT, "", a->door.head.size -= 8);
}

/* Of each port: its kind, what its image is used as, how many layouts it may be in, its channels, whether symbols say where it begins. */
static void test_list(ports_app *a) {
  static const struct {
    uint32_t kind, usage, layouts, channels, origin;
    VkImageLayout best;
    VkFormat format;
  } wanted[PORTS] = {
      [X] = {SNT_VK_PORT_SAMPLED, VK_IMAGE_USAGE_SAMPLED_BIT, 3, 3, 1, VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL,
             VK_FORMAT_R16G16B16A16_SFLOAT},
      [Z] = {SNT_VK_PORT_SAMPLED, VK_IMAGE_USAGE_SAMPLED_BIT, 3, 4, 0, VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL, VK_FORMAT_UNDEFINED},
      [GAIN] = {SNT_VK_PORT_VALUE, 0, 0, 0, 0, VK_IMAGE_LAYOUT_UNDEFINED, VK_FORMAT_UNDEFINED},
      [S] = {SNT_VK_PORT_STATE, 0, 0, 0, 0, VK_IMAGE_LAYOUT_UNDEFINED, VK_FORMAT_UNDEFINED},
      [Y] = {SNT_VK_PORT_STORAGE, VK_IMAGE_USAGE_STORAGE_BIT, 1, 3, 0, VK_IMAGE_LAYOUT_GENERAL, VK_FORMAT_R8G8B8A8_UNORM},
      [M] = {SNT_VK_PORT_STORAGE, VK_IMAGE_USAGE_STORAGE_BIT, 1, 1, 0, VK_IMAGE_LAYOUT_GENERAL, VK_FORMAT_R32_SFLOAT},
  };
  snt_vk_port ports[PORTS];
  uint32_t count = PORTS;
  for (int i = 0; i < PORTS; i++) ports[i].head = (snt_out_head)SNT_HEAD(vk_port);
  const snt_result r = snt_vk_exec_ports(a->t.exec, &count, 0, ports);
  tap_result(r == SNT_OK && count == PORTS, __FILE__, __LINE__, "ports: %d, %u of them", r, count);
  for (int i = 0; r == SNT_OK && i < PORTS; i++) {
    const snt_vk_port *p = &ports[a->port[i]];
    tap_result(!strcmp(p->name, names[i]) && p->kind == wanted[i].kind && p->image_usage == wanted[i].usage &&
                   p->layout_count == wanted[i].layouts && p->layouts[0] == wanted[i].best && p->channels == wanted[i].channels &&
                   p->origin == wanted[i].origin && p->format == wanted[i].format && p->filtered == (i == Z),
               __FILE__, __LINE__, "port %s: kind %u, usage %u, %u layouts, %u channels, origin %u, format %d", p->name, p->kind,
               p->image_usage, p->layout_count, p->channels, p->origin, (int)p->format);
  }
  count = 2;
  tap_result(snt_vk_exec_ports(a->t.exec, &count, 0, ports) == SNT_INCOMPLETE && count == PORTS, __FILE__, __LINE__,
             "a short list says so");
}

static VkImageView view_of(uintptr_t n) {
  VkImageView view;
  memcpy(&view, &n, sizeof view);
  return view;
}

static snt_result set_image(ports_app *a, int port, uintptr_t view, VkImageLayout layout) {
  const snt_vk_bind bind = {.port = a->port[port], .view = view_of(view), .layout = layout};
  return snt_vk_binding_set(a->t.binding, 0, 1, 0, &bind, &a->t.diag);
}

static void test_images(ports_app *a) {
  static const struct {
    int port;
    VkImageLayout layout;
    bool taken;
  } rows[] = {{X, VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL, true},        {X, VK_IMAGE_LAYOUT_GENERAL, true},
              {X, VK_IMAGE_LAYOUT_DEPTH_STENCIL_READ_ONLY_OPTIMAL, true}, {X, VK_IMAGE_LAYOUT_UNDEFINED, false},
              {X, VK_IMAGE_LAYOUT_TRANSFER_DST_OPTIMAL, false},           {Y, VK_IMAGE_LAYOUT_GENERAL, true},
              {Y, VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL, false},       {Y, VK_IMAGE_LAYOUT_DEPTH_STENCIL_READ_ONLY_OPTIMAL, false}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const snt_result r = set_image(a, rows[i].port, 7, rows[i].layout);
    tap_result(rows[i].taken ? r == SNT_OK : r == SNT_E_ARG && strstr(a->t.diag.text, "is not one it can be read or written in"), __FILE__,
               __LINE__, "port %s in layout %d: %d", names[rows[i].port], (int)rows[i].layout, r);
  }
  tap_result(set_image(a, X, 0, VK_IMAGE_LAYOUT_GENERAL) == SNT_E_ARG && strstr(a->t.diag.text, "port x is an image: a view is needed"),
             __FILE__, __LINE__, "no view: %s", a->t.diag.text);
}

/* Symbols are also of their multiple. */
static void test_multiple(ports_app *a) {
  static const int64_t odd[] = {12, 40, 0, 0};
  uint32_t steps = 0;
  tap_result(snt_vk_step_count(a->t.exec, odd, 4, &steps) == SNT_E_SHAPE, __FILE__, __LINE__, "h = 12 is no multiple of 8");
  tap_result(snt_vk_step_count(a->t.exec, most, 4, &steps) == SNT_OK && steps, __FILE__, __LINE__, "h = 24 is: %u steps", steps);
}

static const snt_vk_description *described(ports_app *a, void *storage) {
  const snt_vk_describe_info info = {
      .head = SNT_HEAD(vk_describe_info), .max_symbols = most, .symbols = most, .symbol_count = sizeof most / sizeof *most};
  const snt_vk_description *out = NULL;
  size_t size = ROOM;
  const snt_result r = snt_vk_describe(a->t.exec, &info, storage, &size, &out, &a->t.diag);
  tap_result(r == SNT_OK, __FILE__, __LINE__, "described: %s", r == SNT_OK ? "yes" : a->t.diag.text);
  return out;
}

/* How many storage images of a format the modules declare: OpTypeImage, whose eighth operand it is. */
static uint32_t count_images(const snt_vk_description *d, uint32_t format) {
  enum { HEADER = 5, TYPE_IMAGE = 25, SAMPLED_AT = 7, FORMAT_AT = 8, STORAGE = 2 };
  uint32_t count = 0;
  for (uint32_t p = 0; p < d->pipeline_count; p++) {
    const uint32_t *words = d->pipelines[p].spirv;
    for (size_t at = HEADER; at < d->pipelines[p].spirv_size / 4; at += words[at] >> 16)
      count += (words[at] & 0xffff) == TYPE_IMAGE && words[at + SAMPLED_AT] == STORAGE && words[at + FORMAT_AT] == format;
  }
  return count;
}

/* What is described of the modules is what a job gives the driver: with the formats that were declared. */
static void test_described(ports_app *a, const snt_vk_description *d) {
  enum { RGBA8 = 4, R32F = 3 };
  (void)a;
  tap_result(count_images(d, RGBA8) == 1 && count_images(d, R32F) == 1, __FILE__, __LINE__, "modules write %u images of rgba8, %u of r32f",
             count_images(d, RGBA8), count_images(d, R32F));
}

/* ---- formats beyond those that every device stores ---- */

static uint32_t declares(const snt_vk_description *d, uint32_t capability) {
  enum { HEADER = 5, CAPABILITY = 2 << 16 | 17 };
  uint32_t count = 0;
  for (uint32_t p = 0; p < d->pipeline_count; p++)
    for (size_t at = HEADER; d->pipelines[p].spirv[at] == CAPABILITY; at += 2) count += d->pipelines[p].spirv[at + 1] == capability;
  return count;
}

static void test_features(void) {
  enum { EXTENDED = 49, WITHOUT = 56, R8 = 15 };
  static const struct {
    const char *what;
    VkPhysicalDeviceFeatures features;
    VkFormat format;
    uint32_t capability, word;
    bool taken;
  } rows[] = {
      {"r8 by its format", {.shaderStorageImageExtendedFormats = VK_TRUE}, VK_FORMAT_R8_UNORM, EXTENDED, R8, true},
      {"r8 without a format", {.shaderStorageImageWriteWithoutFormat = VK_TRUE}, VK_FORMAT_R8_UNORM, WITHOUT, 0, true},
      {"bgra, which has none", {.shaderStorageImageWriteWithoutFormat = VK_TRUE}, VK_FORMAT_B8G8R8A8_UNORM, WITHOUT, 0, true},
      {"bgra where formats are needed", {.shaderStorageImageExtendedFormats = VK_TRUE}, VK_FORMAT_B8G8R8A8_UNORM, 0, 0, false},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    static ports_app a;
    static char storage[ROOM] __attribute__((aligned(16)));
    const VkDeviceCreateInfo made = {.pEnabledFeatures = &rows[i].features};
    vk_app_path.created_with = &made;
    vk_app_finish(&a.t);
    snt_result r = compile_ports(&a);
    fill_formats(&a);
    a.formats[0].format = rows[i].format;
    if (r == SNT_OK) r = make_exec(&a, &a.door.head, &a.t.exec);
    tap_result(rows[i].taken ? r == SNT_OK : r == SNT_E_UNSUPPORTED, __FILE__, __LINE__, "%s: %s", rows[i].what,
               r == SNT_OK ? "taken" : a.t.diag.text);
    const snt_vk_description *d = r == SNT_OK ? described(&a, storage) : NULL;
    if (d)
      tap_result(declares(d, rows[i].capability) == 1 && declares(d, EXTENDED) + declares(d, WITHOUT) == 1 &&
                     count_images(d, rows[i].word) == 1,
                 __FILE__, __LINE__, "%s: one module needs capability %u", rows[i].what, rows[i].capability);
    vk_app_finish(&a.t);
    vk_app_path.created_with = NULL;
  }
}

/* ---- the upload ---- */

typedef struct upload {
  snt_vk_range constant, state;
  void *mapped;
  snt_vk_init_info info;
} upload;

static void fill_upload(ports_app *a, upload *u, void *memory) {
  *u = (upload){.mapped = memory};
  for (uint32_t i = 0; i < a->t.need_count; i++) {
    if (a->t.needs[i].memory_class == SNT_MEM_CONSTANT) u->constant = a->t.ranges[i];
    if (a->t.needs[i].memory_class == SNT_MEM_STATE) u->state = a->t.ranges[i];
  }
  u->info = (snt_vk_init_info){.head = SNT_HEAD(vk_init_info), .constant_count = 1, .constant = &u->constant, .state_count = 1};
  u->info.state = &u->state, u->info.constant_mapped = &u->mapped;
}

static void test_upload(ports_app *a, const snt_vk_description *d) {
  static char memory[1 << 16];
  upload u;
  uint64_t next = 0;
  fill_upload(a, &u, memory);
  memset(memory, 0x5a, sizeof memory);
  vk_fake_forget_calls();
  const snt_result r = snt_vk_record_init(a->t.exec, vk_app_commands(), &u.info, &next, &a->t.diag);
  bool same = d->init_count != 0;
  for (uint32_t i = 0; i < d->init_count; i++) same = same && !memcmp(memory + d->init[i].offset, d->init[i].data, d->init[i].size);
  tap_result(r == SNT_OK && next == SNT_VK_INIT_DONE && same, __FILE__, __LINE__, "%u constants lie in mapped memory: %d", d->init_count,
             r);
  tap_result(vk_fake_calls("vkCmdFillBuffer") == 1 && vk_fake_all_calls() == 1, __FILE__, __LINE__, "the state is filled with zeros");
  u.state.size -= 2;
  tap_result(snt_vk_record_init(a->t.exec, vk_app_commands(), &u.info, &next, &a->t.diag) == SNT_E_ARG &&
                 strstr(a->t.diag.text, "STATE range 0 is not in whole words"),
             __FILE__, __LINE__, "a state of half words: %s", a->t.diag.text);
  fill_upload(a, &u, NULL);
  tap_result(snt_vk_record_init(a->t.exec, vk_app_commands(), &u.info, &next, &a->t.diag) == SNT_E_ARG &&
                 strstr(a->t.diag.text, "CONSTANT range 0 is too small, or nowhere"),
             __FILE__, __LINE__, "constants that are mapped nowhere: %s", a->t.diag.text);
  u.info.constant_mapped = NULL, u.info.staging = (snt_vk_range){vk_app_buffer(400), 0, sizeof memory}, u.info.staging_mapped = memory;
  u.constant.buffer = VK_NULL_HANDLE;
  tap_result(snt_vk_record_init(a->t.exec, vk_app_commands(), &u.info, &next, &a->t.diag) == SNT_E_ARG &&
                 strstr(a->t.diag.text, "CONSTANT range 0 is too small, or nowhere"),
             __FILE__, __LINE__, "constants that are copied into no buffer: %s", a->t.diag.text);
}

/* ---- nothing, and what is not the door's ---- */

static void test_nothing(const snt_exec *x, const char *what) {
  const snt_vk_binding_info binding = {.head = SNT_HEAD(vk_binding_info), .slot_count = 1};
  const snt_vk_init_info init = {.head = SNT_HEAD(vk_init_info)};
  const snt_vk_describe_info describe = {.head = SNT_HEAD(vk_describe_info)};
  VkDescriptorPoolSize sizes[8];
  snt_vk_memory_need need = {.head = SNT_HEAD(vk_memory_need)};
  snt_vk_port port = {.head = SNT_HEAD(vk_port)};
  snt_vk_state state = {.head = SNT_HEAD(vk_state)};
  snt_binding *made = NULL;
  uint64_t next;
  uint32_t count = 1, sets;
  size_t size = 0;
  VkDeviceSize bytes;
#define NOTHING(call) tap_result((call) == SNT_E_ARG, __FILE__, __LINE__, "%s: %s", what, #call)
  NOTHING(snt_vk_binding_create(x, &binding, &made, NULL));
  NOTHING(snt_vk_record_init(x, vk_app_commands(), &init, &next, NULL));
  NOTHING(snt_vk_describe(x, &describe, NULL, &size, NULL, NULL));
  NOTHING(snt_vk_exec_ports(x, &count, 0, &port));
  NOTHING(snt_vk_exec_memory(x, NULL, 0, &count, 0, &need));
  NOTHING(snt_vk_exec_states(x, NULL, 0, &count, 0, &state));
  NOTHING(snt_vk_descriptor_need(x, 1, &count, sizes, &sets));
  NOTHING(snt_vk_port_bytes(x, 0, NULL, 0, &bytes));
  NOTHING(snt_vk_step_count(x, NULL, 0, &count));
}

static void test_without_places(ports_app *a) {
  const snt_exec *x = a->t.exec;
  const snt_vk_binding_info binding = {.head = SNT_HEAD(vk_binding_info), .slot_count = 1};
  const snt_vk_init_info init = {.head = SNT_HEAD(vk_init_info)};
  const snt_vk_describe_info describe = {.head = SNT_HEAD(vk_describe_info)};
  const snt_vk_caps caps = {.head = SNT_HEAD(vk_caps)};
  VkPhysicalDeviceProperties2 properties = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};
  const snt_vk_caps planned = {.head = SNT_HEAD(vk_caps), .properties = &properties};
  const snt_vk_attach_info attach = {.head = SNT_HEAD(vk_attach_info),
                                     .instance = (VkInstance)(uintptr_t)1,
                                     .physical_device = (VkPhysicalDevice)(uintptr_t)2,
                                     .device = (VkDevice)(uintptr_t)3,
                                     .get_instance_proc = vk_fake_get};
  const char *what = "nowhere to put it";
  snt_device *device = NULL;
  snt_binding *made = NULL;
  uint64_t next;
  size_t size = 0;
  NOTHING(snt_vk_binding_create(x, NULL, &made, NULL));
  NOTHING(snt_vk_binding_create(x, &binding, NULL, NULL));
  NOTHING(snt_vk_record(a->t.binding, vk_app_commands(), NULL, NULL));
  NOTHING(snt_vk_record_init(x, vk_app_commands(), NULL, &next, NULL));
  NOTHING(snt_vk_record_init(x, vk_app_commands(), &init, NULL, NULL));
  NOTHING(snt_vk_describe(x, NULL, NULL, &size, NULL, NULL));
  NOTHING(snt_vk_describe(x, &describe, NULL, NULL, NULL, NULL));
  NOTHING(snt_vk_exec_memory(x, most, 4, NULL, 0, NULL));
  NOTHING(snt_vk_exec_states(x, most, 4, NULL, 0, NULL));
  NOTHING(snt_vk_descriptor_need(x, 1, NULL, NULL, NULL));
  NOTHING(snt_vk_descriptor_need(x, 0, &(uint32_t){1}, NULL, NULL));
  NOTHING(snt_vk_step_count(x, most, 4, NULL));
  vk_fake_properties(&properties);
  NOTHING(snt_vk_plan(NULL, &planned, &device, NULL));
  NOTHING(snt_vk_plan(a->t.context, &planned, NULL, NULL));
  NOTHING(snt_vk_plan(a->t.context, NULL, &device, NULL));
  NOTHING(snt_vk_plan(a->t.context, &caps, &device, NULL)); /* no properties */
  NOTHING(snt_vk_attach(a->t.context, NULL, &device, NULL));
  NOTHING(snt_vk_attach(NULL, &attach, &device, NULL));
  NOTHING(snt_vk_attach(a->t.context, &attach, NULL, NULL));
  NOTHING(snt_vk_attach(a->t.context, &(snt_vk_attach_info){.head = SNT_HEAD(vk_attach_info)}, &device, NULL));
  tap_result(!device && !made, __FILE__, __LINE__, "and nothing is made");
}

/* An exec on a device of our own. */
static void test_own(ports_app *a) {
  static const char own[] = "graph @own(%x: f32[4]) {\n  %y = add %x, %x\n  return y=%y\n}\n";
  const snt_open_info open = {.head = SNT_HEAD(open_info), .selector = "interp"};
  snt_device *device = NULL;
  snt_graph *graph = NULL;
  snt_profile *profile = NULL;
  snt_program *program = NULL;
  snt_exec *x = NULL;
  snt_result r = snt_device_open(a->t.context, &open, &device, &a->t.diag);
  if (r == SNT_OK) r = snt_device_profile(device, &profile);
  if (r == SNT_OK) r = snt_graph_create(a->t.context, &graph);
  if (r == SNT_OK) r = snt_graph_parse(graph, own, strlen(own), NULL, &a->t.diag);
  if (r == SNT_OK) r = snt_compile(graph, profile, NULL, &program, &a->t.diag);
  if (r == SNT_OK) r = snt_exec_create(device, program, NULL, &x, &a->t.diag);
  tap_result(r == SNT_OK, __FILE__, __LINE__, "an exec on a device of our own: %s", r == SNT_OK ? "made" : a->t.diag.text);
  if (x) test_nothing(x, "an exec that is not the door's");
  tap_result(snt_vk_device_notify_lost(device) == SNT_E_ARG, __FILE__, __LINE__, "a device that is not the door's is not lost by it");
  snt_exec_destroy(x);
  snt_program_destroy(program);
  snt_profile_destroy(profile);
  snt_graph_destroy(graph);
  snt_device_destroy(device);
}

static snt_result bind_ports(ports_app *a) {
  vk_app *t = &a->t;
  for (int i = 0; i < 8; i++) t->needs[i].head = (snt_out_head)SNT_HEAD(vk_memory_need);
  t->need_count = 8;
  snt_result r = snt_vk_exec_memory(t->exec, most, 4, &t->need_count, 0, t->needs);
  for (uint32_t i = 0; i < t->need_count; i++) t->ranges[i] = (snt_vk_range){vk_app_buffer(100 + i), 0, t->needs[i].size};
  const snt_vk_binding_info info = {.head = SNT_HEAD(vk_binding_info),
                                    .max_symbols = most,
                                    .symbol_count = 4,
                                    .slot_count = 1,
                                    .memory_count = t->need_count,
                                    .memory = t->ranges};
  return r == SNT_OK ? snt_vk_binding_create(t->exec, &info, &t->binding, &t->diag) : r;
}

int main(void) {
  static ports_app a;
  static char storage[ROOM] __attribute__((aligned(16)));
  vk_app_finish(&a.t);
  vk_fake_reset();
  snt_result r = compile_ports(&a);
  tap_result(r == SNT_OK, __FILE__, __LINE__, "a program of images: %s", r == SNT_OK ? "compiled" : a.t.diag.text);
  if (r == SNT_OK) test_formats(&a);
  fill_formats(&a);
  if (r == SNT_OK) r = make_exec(&a, &a.door.head, &a.t.exec);
  if (r == SNT_OK) r = bind_ports(&a);
  tap_result(r == SNT_OK, __FILE__, __LINE__, "its exec and binding: %s", r == SNT_OK ? "made" : a.t.diag.text);
  if (r != SNT_OK) return tap_done();
  test_list(&a);
  test_images(&a);
  test_multiple(&a);
  const snt_vk_description *d = described(&a, storage);
  if (d) test_described(&a, d), test_upload(&a, d);
  test_nothing(NULL, "no exec");
  test_without_places(&a);
  test_own(&a);
  vk_app_finish(&a.t);
  test_features();
  tap_result(!fake.alive && !atomic_load(&vk_app_heap.bytes), __FILE__, __LINE__, "everything is given back");
  return tap_done();
}
