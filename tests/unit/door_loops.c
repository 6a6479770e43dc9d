/* Programs that repeat steps, at the Vulkan door: one binding is recorded with different numbers of trips, whole and step by step, on this machine's
   drivers under the validation layers, by sets, pushed descriptors and addresses. Results are the host evaluator's; describe says what record does. */
#include "tests/tap.h"
#include "tests/unit/vk_host.h"
#include "tools/host/host.h"

enum { MAX_SYMBOLS = 2, MAX_RUNS = 6, MAX_PORTS = 6, MAX_NEEDS = 8, BYTES = 64 << 10, SLOTS = 2 };

typedef struct loop_case {
  const char *name, *text;
  uint32_t symbol_count;
  int64_t most[MAX_SYMBOLS];
  uint32_t run_count;
  int64_t runs[MAX_RUNS][MAX_SYMBOLS];
} loop_case;
// clang-format off
#define SYMBOLS "symbols { n: min=0 max=40 multiple_of=1 hint=9, m: min=1 max=80 multiple_of=1 hint=64 }\n"
static const loop_case cases[] = {
    {"a fixed number of trips, and pairs that they turn",
     "graph @g(%x: f32[3,24], %w: f32[24,24]) {\n"
     " %h: f32[3,24] = repeat trips=7 (%s: f32[3,24] = %x) {\n  %p = matmul %s, %w\n  %t = tanh %p\n  yield %t\n }\n return h=%h\n}\n",
     0, {0}, 1, {{0}}},
    {"trips by a symbol, none of them too",
     SYMBOLS "graph @g(%x: f32[m,24], %w: f32[24,24]) {\n"
     " %h: f32[m,24] = repeat trips=n (%s: f32[m,24] = %x) {\n  %p = matmul %s, %w\n  %t = tanh %p\n  yield %t\n }\n return h=%h\n}\n",
     2, {11, 40}, 6, {{11, 40}, {10, 40}, {0, 40}, {1, 3}, {2, 3}, {11, 39}}},
    {"a loop in a loop, each with pairs of its own",
     SYMBOLS "graph @g(%x: f32[m]) {\n %k: i32[] = const 3\n %r: f32[m], %c: i32[] = repeat trips=n (%a: f32[m] = %x, %e: i32[] = %k) {\n"
     "  %b: f32[m], %d: f32[m] = repeat trips=3 (%p: f32[m] = %a, %q: f32[m] = %x) {\n   %s = reduce.sum %p, axes=[0], keep\n   %sb: f32[m] = broadcast %s\n"
     "   %t = mul %sb, 0.01\n   %v = add %q, %t\n   yield %v, %p\n  }\n  %w = add %b, %d\n  %w2 = mul %w, 0.25\n  %e2 = mul %e, 2\n  yield %w2, %e2\n }\n"
     " %z = mul %r, %x\n return r=%r, z=%z, c=%c\n}\n",
     2, {9, 70}, 5, {{9, 70}, {0, 5}, {1, 1}, {2, 37}, {8, 70}}},
    {"an end by the data, which may come before the trips' own",
     SYMBOLS "graph @g(%x: f32[m,24], %w: f32[24,24]) {\n %g0: bool[] = const true\n %c0: i32[] = const 0\n"
     " %h: f32[m,24], _, %k: i32[] = repeat trips=n while=1 (%s: f32[m,24] = %x, %f: bool[] = %g0, %c: i32[] = %c0) {\n  %p = matmul %s, %w\n  %t = tanh %p\n"
     "  %v = add %t, %s\n  %a = reduce.max %v, axes=[0,1]\n  %l = lt %a, 6.0\n  %d = add %c, 1\n  yield %v, %l, %d\n }\n return h=%h, k=%k\n}\n",
     2, {11, 40}, 5, {{11, 40}, {10, 40}, {0, 40}, {1, 3}, {2, 3}}},
    {"a state that trips begin with and leave",
     "symbols { n: min=0 max=40 multiple_of=1 hint=9 }\n"
     "graph @g(%w: f32[24,24], state %total: f32[3,24]) {\n"
     " %h: f32[3,24] = repeat trips=n (%s: f32[3,24] = %total) {\n  %p = matmul %s, %w\n  %t = tanh %p\n  %v = add %t, 0.125\n  yield %v\n }\n"
     " update %total, %h\n %y = mul %h, 2\n return y=%y\n}\n",
     1, {9}, 5, {{5}, {0}, {4}, {9}, {1}}},
    /* rows of bytes are also read backwards: where they are stored wider for the product, that alone would need no pair */
    {"products of bytes",
     SYMBOLS "graph @g(%x: f32[m,64], %w: f32[64,64]) {\n %xs = mul %x, 100\n %a: i8[m,64] = cast %xs, dtype=i8\n %ws = mul %w, 100\n %b = cast %ws, dtype=i8\n"
     " %r: i8[m,64] = repeat trips=n (%s: i8[m,64] = %a) {\n  %p = matmul_integer %s, %b\n  %f = cast %p, dtype=f32\n  %g = mul %f, 0.001\n  %v = cast %g, dtype=i8\n"
     "  %z = slice %s, starts=[0,63], sizes=[m,64], steps=[1,-1]\n  %u = max %v, %z\n  yield %u\n }\n %h = cast %r, dtype=f32\n return h=%h\n}\n",
     2, {5, 80}, 4, {{5, 80}, {1, 64}, {2, 3}, {0, 9}}},
    {"products of bytes and constant ones",
     SYMBOLS "graph @g(%x: f32[m,64]) {\n %xs = mul %x, 100\n %xa = abs %xs\n %a: u8[m,64] = cast %xa, dtype=u8\n"
     " %r: u8[m,64] = repeat trips=n (%s: u8[m,64] = %a) {\n  %b: i8[64,64] = const normal seed=3 scale=40\n  %p = matmul_integer %s, %b\n"
     "  %f = cast %p, dtype=f32\n  %g = mul %f, 0.01\n  %e = abs %g\n  %v = cast %e, dtype=u8\n"
     "  %z = slice %s, starts=[0,63], sizes=[m,64], steps=[1,-1]\n  %u = max %v, %z\n  yield %u\n }\n %h = cast %r, dtype=f32\n return h=%h\n}\n",
     2, {5, 80}, 4, {{5, 80}, {1, 64}, {2, 3}, {0, 9}}},
};
// clang-format on
typedef struct path_case {
  const char *part, *what;
  uint32_t attach_flags, exec_flags;
  uint64_t needs;
  const char *profile; /* of the programs; null: the device's own */
  bool whole;          /* loops may become one kernel; else launches cost nothing, so that all are kernels a trip */
} path_case;
/* lavapipe's, from Mesa 25.1 on, used as a GPU would use its own */
static const char units[] =
    "base = dgpu\nname = units\ntarget = spirv\nsubgroup_min = 8\nsubgroup_max = 8\ncaps.subgroup_size = 8\ncaps.mma.i8 = 8x8x8\n";
/* a GPU that is fast at them, of what lavapipe has, too */
static const char dots[] =
    "base = dgpu\nname = dots\ntarget = spirv\nsubgroup_min = 8\nsubgroup_max = 8\ncaps.subgroup_size = 8\ncaps.dot4 = 1\n";
static const path_case paths[] = {
    {"llvmpipe", "sets", 0, 0, 0, NULL, false},
    {"llvmpipe", "loops in one kernel", 0, 0, 0, NULL, true},
    {"llvmpipe", "pushed descriptors", 0, SNT_VK_PUSH_DESCRIPTORS, SNT_VK_FEATURE_PUSH_DESCRIPTORS, NULL, false},
    {"llvmpipe", "addresses", SNT_VK_ADDRESSES, 0, SNT_VK_FEATURE_BUFFER_ADDRESS, NULL, false},
    {"llvmpipe", "sets, with matrix units", 0, 0,
     SNT_VK_FEATURE_FULL_SUBGROUPS | SNT_VK_FEATURE_INT8 | SNT_VK_FEATURE_STORAGE8 | SNT_VK_FEATURE_MEMORY_MODEL |
         SNT_VK_FEATURE_COOPERATIVE_MATRIX,
     units, false},
    {"llvmpipe", "sets, with integer dot products", 0, 0,
     SNT_VK_FEATURE_STORAGE8 | SNT_VK_FEATURE_INT8 | SNT_VK_FEATURE_STORAGE16 | SNT_VK_FEATURE_INTEGER_DOT_PRODUCT, dots, false},
    {"SwiftShader", "sets", 0, 0, 0, NULL, false},
    {"SwiftShader", "loops in one kernel", 0, 0, 0, NULL, true},
};

typedef struct loop_test {
  vk_host host;
  const loop_case *c;
  const path_case *path;
  snt_context *context;
  snt_device *device, *evaluator;
  snt_program *program;
  snt_exec *exec, *expected;
  snt_binding *binding;
  snt_vk_memory_need needs[MAX_NEEDS];
  vk_host_buffer memory[MAX_NEEDS], ports[MAX_PORTS];
  VkBufferView views[MAX_PORTS];
  uint32_t need_count, port_count;
  snt_port port[MAX_PORTS];
  char result[MAX_PORTS][BYTES];
  snt_diag diag;
} loop_test;

static bool fine(loop_test *t, snt_result r, const char *what) {
  return tap_result(r == SNT_OK, __FILE__, __LINE__, "%s: %s%s", t->c->name, what, r == SNT_OK ? "" : t->diag.text);
}

/* ---- making ---- */

/* The path's, or the device's own; whose launches cost nothing where loops shall be loops. */
static snt_result make_profile(loop_test *t, snt_profile **profile) {
  char text[1 << 14];
  size_t length = sizeof text - 64;
  snt_result r = SNT_OK;
  if (t->path->profile) length = (size_t)snprintf(text, length, "%s", t->path->profile);
  else r = snt_device_profile(t->device, profile);
  if (r != SNT_OK || t->path->whole) return r;
  if (!t->path->profile) {
    r = snt_profile_print(*profile, text, &length);
    snt_profile_destroy(*profile);
    *profile = NULL;
    length = strlen(text);
  }
  length += (size_t)snprintf(text + length, 32, "launch_ns = 0 ns\n");
  return r == SNT_OK ? snt_profile_parse(t->context, text, length, profile, &t->diag) : r;
}

static snt_result make_program(loop_test *t) {
  const snt_vk_exec_info own = {.head = SNT_HEAD(vk_exec_info), .flags = t->path->exec_flags};
  const snt_open_info open = {.head = SNT_HEAD(open_info), .selector = "host"};
  snt_exec_info info = {.head = SNT_HEAD(exec_info)};
  snt_graph *graph = NULL;
  snt_profile *profile = NULL;
  info.head.next = &own;
  snt_result r = snt_context_create(NULL, &t->context);
  if (r == SNT_OK) r = vk_host_attach(&t->host, t->context, SNT_VK_ATTACH_VALIDATE | t->path->attach_flags, &t->device, &t->diag);
  if (r == SNT_OK) r = snt_graph_create(t->context, &graph);
  if (r == SNT_OK) r = snt_graph_parse(graph, t->c->text, strlen(t->c->text), NULL, &t->diag);
  if (r == SNT_OK) r = make_profile(t, &profile);
  if (r == SNT_OK) r = snt_compile(graph, profile, NULL, &t->program, &t->diag);
  if (r == SNT_OK) r = snt_exec_create(t->device, t->program, &info, &t->exec, &t->diag);
  if (r == SNT_OK) r = snt_exec_prepare(t->exec, &t->diag);
  if (r == SNT_OK) r = snt_device_open(t->context, &open, &t->evaluator, &t->diag);
  if (r == SNT_OK) r = snt_exec_create(t->evaluator, t->program, NULL, &t->expected, &t->diag);
  snt_profile_destroy(profile);
  snt_graph_destroy(graph);
  return r;
}

static snt_result make_port(loop_test *t, uint32_t i, const snt_vk_port *port, snt_vk_bind *bind) {
  const VkBufferViewCreateInfo view = {.sType = VK_STRUCTURE_TYPE_BUFFER_VIEW_CREATE_INFO, .format = port->format, .range = BYTES};
  VkBufferViewCreateInfo own = view;
  if (!vk_host_buffer_create(&t->host, BYTES, port->buffer_usage, &t->ports[i])) return SNT_E_DEVICE_MEM;
  own.buffer = t->ports[i].buffer;
  if (port->format != VK_FORMAT_UNDEFINED && t->host.vkCreateBufferView(t->host.device, &own, NULL, &t->views[i]) != VK_SUCCESS)
    return SNT_E_BACKEND;
  for (int k = 0; k < BYTES / 4; k++) ((float *)t->ports[i].mapped)[k] = (float)((k * 37 + (int)i) % 101) / 200 - 0.25f;
  *bind = (snt_vk_bind){.port = i, .range = {t->ports[i].buffer, 0, BYTES}, .buffer_view = t->views[i]};
  return snt_program_port(t->program, i, &t->port[i]);
}

static snt_result make_binding(loop_test *t) {
  snt_vk_port ports[MAX_PORTS];
  snt_vk_bind binds[MAX_PORTS];
  snt_vk_range ranges[MAX_NEEDS];
  const snt_vk_binding_info info = {.head = SNT_HEAD(vk_binding_info),
                                    .max_symbols = t->c->most,
                                    .symbol_count = t->c->symbol_count,
                                    .slot_count = SLOTS,
                                    .memory_count = MAX_NEEDS,
                                    .memory = ranges};
  t->port_count = MAX_PORTS, t->need_count = MAX_NEEDS;
  for (int i = 0; i < MAX_PORTS; i++) ports[i].head = (snt_out_head)SNT_HEAD(vk_port);
  for (int i = 0; i < MAX_NEEDS; i++) t->needs[i].head = (snt_out_head)SNT_HEAD(vk_memory_need);
  snt_result r = snt_vk_exec_ports(t->exec, &t->port_count, sizeof *ports, ports);
  if (r == SNT_OK) r = snt_vk_exec_memory(t->exec, t->c->most, t->c->symbol_count, &t->need_count, 0, t->needs);
  for (uint32_t i = 0; r == SNT_OK && i < t->need_count; i++) {
    const VkDeviceSize bytes = t->needs[i].size * (t->needs[i].per_slot ? SLOTS : 1);
    if (!vk_host_buffer_create(&t->host, bytes, t->needs[i].usage, &t->memory[i])) return SNT_E_DEVICE_MEM;
    memset(t->memory[i].mapped, t->needs[i].memory_class == SNT_MEM_STATE ? 0 : 0xee, bytes);
    ranges[i] = (snt_vk_range){t->memory[i].buffer, 0, bytes};
  }
  uint32_t bound = 0; /* a state is among the memory */
  for (uint32_t i = 0; r == SNT_OK && i < t->port_count; i++)
    r = ports[i].kind == SNT_VK_PORT_STATE ? snt_program_port(t->program, i, &t->port[i]) : make_port(t, i, &ports[i], &binds[bound++]);
  if (r == SNT_OK) r = snt_vk_binding_create(t->exec, &info, &t->binding, &t->diag);
  for (uint32_t s = 0; r == SNT_OK && s < SLOTS; s++) r = snt_vk_binding_set(t->binding, s, bound, 0, binds, &t->diag);
  if (r != SNT_OK) return r;
  snt_vk_init_info init = {.head = SNT_HEAD(vk_init_info)}; /* constants, where there are any, are mapped */
  void *mapped[MAX_NEEDS];
  for (uint32_t i = 0; i < t->need_count; i++)
    if (t->needs[i].memory_class == SNT_MEM_CONSTANT) mapped[init.constant_count++] = t->memory[i].mapped;
  init.constant = ranges, init.constant_mapped = mapped;
  uint64_t next;
  return snt_vk_record_init(t->exec, VK_NULL_HANDLE, &init, &next, &t->diag);
}

/* ---- running ---- */

static snt_result evaluate(loop_test *t, const int64_t *symbols) {
  snt_argument arguments[MAX_PORTS];
  uint32_t count = 0; /* each exec keeps its own states */
  for (uint32_t i = 0; i < t->port_count; i++) {
    const bool reads = t->port[i].kind == SNT_PORT_INPUT;
    if (t->port[i].kind != SNT_PORT_STATE)
      arguments[count++] = (snt_argument){i, 0, NULL, 0, reads ? t->ports[i].mapped : t->result[i], BYTES};
  }
  const snt_run_info run = {
      .head = SNT_HEAD(run_info), .argument_count = count, .arguments = arguments, .symbols = symbols, .symbol_count = t->c->symbol_count};
  return snt_run(t->expected, &run, &t->diag);
}

static bool compare(loop_test *t, const int64_t *symbols) {
  for (uint32_t i = 0; i < t->port_count; i++) {
    VkDeviceSize bytes = 0;
    const float *is = t->ports[i].mapped, *wanted = (const float *)(const void *)t->result[i];
    if (t->port[i].kind != SNT_PORT_OUTPUT || snt_vk_port_bytes(t->exec, i, symbols, t->c->symbol_count, &bytes) != SNT_OK) continue;
    uint64_t count = 1; /* the bytes are rounded up */
    for (uint32_t k = 0; k < t->port[i].tensor.rank; k++) {
      const int64_t d = t->port[i].tensor.dims[k];
      count *= d >= 0 ? (uint64_t)d : (uint64_t)symbols[1];
    }
    for (uint64_t k = 0; k < count; k++)
      if (t->port[i].tensor.dtype == SNT_F32 ? !(fabsf(is[k] - wanted[k]) <= 1e-5f * (1 + fabsf(wanted[k])))
                                             : memcmp(&is[k], &wanted[k], 4) != 0)
        return tap_diag("%s[%d] is %g, not %g", t->port[i].name, (int)k, is[k], wanted[k]), false;
  }
  return true;
}

/* In one call, or in one for each step of each trip. */
static snt_result record(loop_test *t, const int64_t *symbols, uint32_t slot, bool by_steps) {
  uint32_t steps = 0;
  snt_vk_record_info info = {.head = SNT_HEAD(vk_record_info), .slot = slot, .symbols = symbols, .symbol_count = t->c->symbol_count};
  snt_result r = snt_vk_step_count(t->exec, symbols, t->c->symbol_count, &steps);
  if (!by_steps) return r == SNT_OK ? snt_vk_record(t->binding, t->host.commands, &info, &t->diag) : r;
  info.step_count = 1;
  for (info.first_step = 0; r == SNT_OK && info.first_step < steps; info.first_step++)
    r = snt_vk_record(t->binding, t->host.commands, &info, &t->diag);
  info.step_count = 2, info.first_step--;
  if (r == SNT_OK && steps && snt_vk_record(t->binding, t->host.commands, &info, &t->diag) != SNT_E_ARG) return SNT_E_INTERNAL;
  return r;
}

static void run(loop_test *t, uint32_t number, bool by_steps) {
  const int64_t *symbols = t->c->runs[number];
  const uint32_t slot = number % SLOTS;
  for (uint32_t i = 0; i < t->port_count; i++)
    if (t->port[i].kind == SNT_PORT_OUTPUT) memset(t->ports[i].mapped, 0xff, BYTES), memset(t->result[i], 0xff, BYTES);
  snt_result r = evaluate(t, symbols);
  vk_host_begin(&t->host);
  if (r == SNT_OK) r = record(t, symbols, slot, by_steps);
  vk_host_submit_wait(&t->host);
  snt_vk_binding_retire(t->binding, slot);
  tap_result(r == SNT_OK && compare(t, symbols), __FILE__, __LINE__, "%s: %d %d%s %s", t->c->name, (int)symbols[0], (int)symbols[1],
             by_steps ? ", step by step" : "", r == SNT_OK ? "" : t->diag.text);
}

/* Trips as record has them: as many dispatches, with barriers between them, and every resource a range of ours. */
static void test_describe(loop_test *t) {
  static _Alignas(16) char storage[1 << 20];
  size_t size = sizeof storage;
  uint32_t steps = 0;
  const snt_vk_description *d = NULL;
  const snt_vk_describe_info info = {
      .head = SNT_HEAD(vk_describe_info), .max_symbols = t->c->most, .symbols = t->c->most, .symbol_count = t->c->symbol_count};
  (void)snt_vk_step_count(t->exec, t->c->most, t->c->symbol_count, &steps);
  if (!fine(t, snt_vk_describe(t->exec, &info, storage, &size, &d, &t->diag), "described")) return;
  bool ok = d->dispatch_count && d->dispatch_count <= steps && (steps > snt_exec_step_count(t->exec) || t->path->whole),
       turned = t->path->whole;
  for (uint32_t i = 0; i < d->dispatch_count; i++)
    for (uint32_t k = 0; k < i; k++)
      turned |= d->dispatches[i].step == d->dispatches[k].step &&
                memcmp(&d->resources[d->dispatches[i].resource_first], &d->resources[d->dispatches[k].resource_first],
                       d->dispatches[i].resource_count * sizeof *d->resources) != 0;
  for (uint32_t i = 0; i < d->resource_count; i++)
    ok = ok && d->resources[i].index < (d->resources[i].is_port ? t->port_count : t->need_count);
  tap_result(ok && turned, __FILE__, __LINE__, "%u dispatches of %u steps%s", d->dispatch_count, steps,
             t->path->whole ? "" : ", their pairs turned");
}

static void close_test(loop_test *t) {
  snt_binding_destroy(t->binding);
  snt_exec_destroy(t->exec);
  snt_exec_destroy(t->expected);
  snt_program_destroy(t->program);
  snt_device_destroy(t->device);
  snt_device_destroy(t->evaluator);
  snt_context_destroy(t->context);
  for (int i = 0; i < MAX_PORTS; i++) {
    if (t->views[i]) t->host.vkDestroyBufferView(t->host.device, t->views[i], NULL);
    if (t->ports[i].buffer) vk_host_buffer_destroy(&t->host, &t->ports[i]);
  }
  for (int i = 0; i < MAX_NEEDS; i++)
    if (t->memory[i].buffer) vk_host_buffer_destroy(&t->host, &t->memory[i]);
  tap_result(!t->host.messages, __FILE__, __LINE__, "the validation layers say nothing%s%s", t->host.messages ? ": " : "",
             t->host.first_message);
  vk_host_close(&t->host);
}

static void test_case(const loop_case *c, const path_case *path) {
  static loop_test t;
  char why[120];
  memset(&t, 0, sizeof t);
  t.c = c, t.path = path;
  t.diag.head = (snt_out_head)SNT_HEAD(diag);
  vk_host_looks = path->needs ? VK_HOST_LOOKS_BEYOND_SETS : VK_HOST_LOOKS;
  if (!vk_host_open(&t.host, path->part, path->needs != 0, why, sizeof why)) {
    tap_skip("%s", why);
    return;
  }
  if ((t.host.enabled & path->needs) != path->needs) {
    tap_skip("%s: no %s", path->part, path->what);
    vk_host_close(&t.host);
    return;
  }
  tap_diag("%s, %s", path->part, path->what);
  if (t.host.unseen[0]) tap_skip("%s", t.host.unseen);
  if (fine(&t, make_program(&t), "program ") && fine(&t, make_binding(&t), "binding ")) {
    test_describe(&t);
    for (uint32_t i = 0; i < c->run_count; i++) run(&t, i, false);
    for (uint32_t i = 0; i < c->run_count; i++) run(&t, i, true);
  }
  close_test(&t);
}

/* What the host has not enabled is not there, whatever the device can. */
static void test_lacking(void) {
  static const path_case without = {
      "llvmpipe", "sets", 0, 0, 0, "base = dgpu\nname = dots\ntarget = spirv\ncaps.int8_storage = 0\ncaps.dot4 = 1\n", false};
  static loop_test t;
  char why[120];
  t.c = &cases[sizeof cases / sizeof *cases - 1], t.path = &without;
  t.diag.head = (snt_out_head)SNT_HEAD(diag);
  vk_host_looks = VK_HOST_LOOKS;
  if (!vk_host_open(&t.host, "llvmpipe", false, why, sizeof why)) {
    tap_skip("%s", why);
    return;
  }
  const snt_result r = make_program(&t);
  tap_result(r == SNT_E_UNSUPPORTED && strstr(t.diag.text, "shaderIntegerDotProduct"), __FILE__, __LINE__, "refused: %s", t.diag.text);
  close_test(&t);
}

/* Trips that grow as a symbol shrinks: more than the binding was made for are refused. */
static void test_refused(void) {
  static const loop_case shrinking = {
      "fewer trips for more",
      "symbols { n: min=1 max=10 multiple_of=1 hint=9 }\ngraph @g(%x: f32[3,24], %w: f32[24,24], %y: f32[n]) {\n"
      " %h: f32[3,24] = repeat trips=12-n (%s: f32[3,24] = %x) {\n  %p = matmul %s, %w\n  %t = tanh %p\n  yield %t\n }\n"
      " %z = mul %y, 2.0\n return h=%h, z=%z\n}\n",
      1,
      {9},
      2,
      {{9}, {8}}};
  static loop_test t;
  char why[120];
  t.c = &shrinking, t.path = &paths[0];
  t.diag.head = (snt_out_head)SNT_HEAD(diag);
  vk_host_looks = VK_HOST_LOOKS;
  if (!vk_host_open(&t.host, "llvmpipe", false, why, sizeof why)) {
    tap_skip("%s", why);
    return;
  }
  if (fine(&t, make_program(&t), "program ") && fine(&t, make_binding(&t), "binding ")) {
    vk_host_begin(&t.host);
    const snt_result first = record(&t, shrinking.runs[0], 0, false), more = record(&t, shrinking.runs[1], 1, false);
    vk_host_submit_wait(&t.host);
    tap_result(first == SNT_OK && more == SNT_E_LIMIT, __FILE__, __LINE__, "refused: %s", t.diag.text);
  }
  close_test(&t);
}

VK_HOST_LEAKS

int main(void) {
  setenv("VK_LAYER_GPUAV_BUFFER_ADDRESS_OOB", "0", 0); /* in these programs layers 1.4.363 end in a fault in their table of ranges */
  host_prepare_drivers(NULL);
  for (size_t p = 0; p < sizeof paths / sizeof *paths; p++)
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) test_case(&cases[i], &paths[p]);
  test_refused();
  test_lacking();
  return tap_done();
}
