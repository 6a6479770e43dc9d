/* The Vulkan door on this machine's drivers, under the validation layers: a program's results through an application's own device, queue,
   memory and command buffers are those of the host evaluator; slots, slices, symbols, timestamps, and what is refused. */
#include "tests/tap.h"
#include "tests/unit/vk_host.h"
#include "tools/host/host.h"

static const char model[] = "symbols { n: min=1 max=300 multiple_of=1 hint=100 }\n"
                            "graph @mixed(%x: f32[n,24], %k: f32[]) {\n"
                            "  %w: f32[24,16] = const normal seed=3 scale=0.25\n"
                            "  %p: f32[n,16] = matmul %x, %w\n"
                            "  %kk: f32[n,16] = broadcast %k, axes=[], shape=[n,16]\n"
                            "  %q = mul %p, %kk\n"
                            "  %y: f32[n,16] = softmax %q, axis=1\n"
                            "  %z: f32[24,n] = transpose %x, perm=[1,0]\n"
                            "  return y=%y, z=%z\n"
                            "}\n";

enum { MAX_N = 300, COLUMNS = 24, OUT = 16, SLOTS = 3 };

/* How resources reach the kernels. */
typedef struct door_case {
  const char *part, *what;
  bool with_features;
  uint32_t attach_flags, exec_flags;
  uint64_t needs; /* features without which there is no such path */
} door_case;
// clang-format off
static const door_case cases[] = {
    {"llvmpipe", "the baseline", false, 0, 0, 0},
    {"llvmpipe", "with features", true, 0, 0, 0},
    {"llvmpipe", "descriptors are pushed", true, 0, SNT_VK_PUSH_DESCRIPTORS, SNT_VK_FEATURE_PUSH_DESCRIPTORS},
    {"llvmpipe", "addresses of buffers", true, SNT_VK_ADDRESSES, 0, SNT_VK_FEATURE_BUFFER_ADDRESS},
    {"llvmpipe", "addresses, the rest is pushed", true, SNT_VK_ADDRESSES, SNT_VK_PUSH_DESCRIPTORS, SNT_VK_FEATURE_BUFFER_ADDRESS | SNT_VK_FEATURE_PUSH_DESCRIPTORS},
    {"SwiftShader", "with features", true, 0, 0, 0},
    {"SwiftShader", "descriptors are pushed", true, 0, SNT_VK_PUSH_DESCRIPTORS, SNT_VK_FEATURE_PUSH_DESCRIPTORS},
    {"SwiftShader", "addresses of buffers", true, SNT_VK_ADDRESSES, 0, SNT_VK_FEATURE_BUFFER_ADDRESS},
};
// clang-format on
typedef struct door_test {
  vk_host host;
  snt_context *context;
  snt_device *device;
  snt_profile *profile;
  snt_graph *graph;
  snt_program *program;
  snt_exec *exec;
  snt_binding *binding;
  VkBufferView x_views[SLOTS]; /* where the program reads x through texels */
  vk_host_buffer memory[8], x[SLOTS], y[SLOTS], z[SLOTS];
  snt_vk_memory_need needs[8];
  snt_vk_range ranges[8];
  uint32_t need_count, values;
  const door_case *c;
  float expected_y[MAX_N * OUT], expected_z[MAX_N * COLUMNS], input[MAX_N * COLUMNS];
  snt_diag diag;
} door_test;

static bool good(door_test *t, snt_result r, const char *what) {
  return tap_result(r == SNT_OK, __FILE__, __LINE__, "%s (%d %s)", what, r, r == SNT_OK ? "" : t->diag.text);
}

static uint32_t port_of(door_test *t, const char *name) {
  uint32_t port = 0;
  (void)snt_program_find_port(t->program, name, &port);
  return port;
}

static bool compile(door_test *t) {
  const snt_vk_exec_info own = {.head = SNT_HEAD(vk_exec_info), .flags = t->c->exec_flags};
  snt_exec_info info = {.head = SNT_HEAD(exec_info)};
  info.head.next = &own;
  snt_result r = snt_graph_create(t->context, &t->graph);
  if (r == SNT_OK) r = snt_graph_parse(t->graph, model, strlen(model), NULL, &t->diag);
  if (r == SNT_OK) r = snt_device_profile(t->device, &t->profile);
  if (r == SNT_OK) r = snt_compile(t->graph, t->profile, NULL, &t->program, &t->diag);
  if (r == SNT_OK) r = snt_exec_create(t->device, t->program, &info, &t->exec, &t->diag);
  return good(t, r, "a program is compiled for the attached device");
}

static VkBufferUsageFlags usage_of(door_test *t, const char *name) {
  snt_vk_port ports[8];
  uint32_t count = 8;
  for (int i = 0; i < 8; i++) ports[i].head = (snt_out_head)SNT_HEAD(vk_port);
  return snt_vk_exec_ports(t->exec, &count, sizeof *ports, ports) == SNT_OK ? ports[port_of(t, name)].buffer_usage : 0;
}

/* The port says which view it wants of its range. */
static bool make_view(door_test *t, uint32_t slot) {
  snt_vk_port ports[8];
  uint32_t count = 8;
  for (int i = 0; i < 8; i++) ports[i].head = (snt_out_head)SNT_HEAD(vk_port);
  if (snt_vk_exec_ports(t->exec, &count, sizeof *ports, ports) != SNT_OK) return false;
  const snt_vk_port *x = &ports[port_of(t, "x")];
  const VkBufferViewCreateInfo info = {
      .sType = VK_STRUCTURE_TYPE_BUFFER_VIEW_CREATE_INFO, .buffer = t->x[slot].buffer, .format = x->format, .range = t->x[slot].bytes};
  return x->format == VK_FORMAT_UNDEFINED || t->host.vkCreateBufferView(t->host.device, &info, NULL, &t->x_views[slot]) == VK_SUCCESS;
}

static bool make_memory(door_test *t) {
  const int64_t most = MAX_N;
  t->need_count = 8;
  for (int i = 0; i < 8; i++) t->needs[i].head = (snt_out_head)SNT_HEAD(vk_memory_need);
  snt_result r = snt_vk_exec_memory(t->exec, &most, 1, &t->need_count, sizeof *t->needs, t->needs);
  if (!good(t, r, "memory needs")) return false;
  bool ok = true;
  for (uint32_t i = 0; ok && i < t->need_count; i++) {
    const VkDeviceSize bytes = t->needs[i].size * (t->needs[i].per_slot ? SLOTS : 1);
    ok = vk_host_buffer_create(&t->host, bytes, t->needs[i].usage, &t->memory[i]);
    t->ranges[i] = (snt_vk_range){t->memory[i].buffer, 0, bytes};
    if (t->needs[i].memory_class == SNT_MEM_VALUES) t->values = i;
    memset(t->memory[i].mapped, 0xee, bytes);
  }
  for (int s = 0; ok && s < SLOTS; s++) {
    ok = vk_host_buffer_create(&t->host, sizeof t->input, usage_of(t, "x"), &t->x[s]) && make_view(t, (uint32_t)s) &&
         vk_host_buffer_create(&t->host, sizeof t->expected_y, usage_of(t, "y"), &t->y[s]) &&
         vk_host_buffer_create(&t->host, sizeof t->expected_z, usage_of(t, "z"), &t->z[s]);
  }
  return tap_result(ok, __FILE__, __LINE__, "the application allocates what is needed");
}

static uint32_t of_class(const door_test *t, uint32_t class) {
  for (uint32_t i = 0; i < t->need_count; i++)
    if (t->needs[i].memory_class == class) return i;
  return 0;
}

/* Staging of 200 bytes: many calls, one submission each. */
static bool upload(door_test *t) {
  snt_vk_init_info info = {.head = SNT_HEAD(vk_init_info),
                           .flags = SNT_VK_INIT_BARRIER,
                           .constant_count = 1,
                           .constant = &t->ranges[of_class(t, SNT_MEM_CONSTANT)],
                           .staging = {t->memory[of_class(t, SNT_MEM_STAGING)].buffer, 64, 200},
                           .staging_mapped = (char *)t->memory[of_class(t, SNT_MEM_STAGING)].mapped + 64};
  uint32_t calls = 0;
  snt_result r = SNT_OK;
  while (r == SNT_OK && info.cursor != SNT_VK_INIT_DONE && calls < 100) {
    uint64_t next = 0;
    vk_host_begin(&t->host);
    r = snt_vk_record_init(t->exec, t->host.commands, &info, &next, &t->diag);
    vk_host_submit_wait(&t->host);
    info.cursor = next;
    calls++;
  }
  tap_result(calls == (24 * 16 * 4 + 199) / 200, __FILE__, __LINE__, "weights go up in pieces of the staging range: %u calls", calls);
  return good(t, r, "upload");
}

static snt_result bind_slot(door_test *t, uint32_t slot) {
  const snt_vk_bind binds[] = {
      {.port = port_of(t, "x"), .range = {t->x[slot].buffer, 0, t->x[slot].bytes}, .buffer_view = t->x_views[slot]},
      {.port = port_of(t, "y"), .range = {t->y[slot].buffer, 0, t->y[slot].bytes}},
      {.port = port_of(t, "z"), .range = {t->z[slot].buffer, 0, t->z[slot].bytes}}};
  return snt_vk_binding_set(t->binding, slot, 3, sizeof *binds, binds, &t->diag);
}

static bool make_binding(door_test *t) {
  static const int64_t most = MAX_N;
  const snt_vk_binding_info info = {.head = SNT_HEAD(vk_binding_info),
                                    .max_symbols = &most,
                                    .symbol_count = 1,
                                    .slot_count = SLOTS,
                                    .memory_count = t->need_count,
                                    .memory = t->ranges};
  snt_result r = snt_vk_binding_create(t->exec, &info, &t->binding, &t->diag);
  for (uint32_t s = 0; r == SNT_OK && s < SLOTS; s++) r = bind_slot(t, s);
  return good(t, r, "a binding of three slots");
}

static void expect(door_test *t, int64_t n, float k) {
  snt_device *host = NULL;
  snt_exec *exec = NULL;
  const snt_open_info open = {.head = SNT_HEAD(open_info), .selector = "host"};
  for (int i = 0; i < MAX_N * COLUMNS; i++) t->input[i] = (float)((i * 37) % 101) / 50 - 1;
  const snt_argument arguments[] = {{port_of(t, "x"), 0, NULL, 0, t->input, sizeof t->input},
                                    {port_of(t, "k"), 0, NULL, 0, &k, sizeof k},
                                    {port_of(t, "y"), 0, NULL, 0, t->expected_y, sizeof t->expected_y},
                                    {port_of(t, "z"), 0, NULL, 0, t->expected_z, sizeof t->expected_z}};
  const snt_run_info run = {.head = SNT_HEAD(run_info), .argument_count = 4, .arguments = arguments, .symbols = &n, .symbol_count = 1};
  snt_result r = snt_device_open(t->context, &open, &host, &t->diag);
  if (r == SNT_OK) r = snt_exec_create(host, t->program, NULL, &exec, &t->diag);
  if (r == SNT_OK) r = snt_run(exec, &run, &t->diag);
  if (r != SNT_OK) good(t, r, "the host evaluator");
  snt_exec_destroy(exec);
  snt_device_destroy(host);
}

static bool compare(door_test *t, uint32_t slot, int64_t n) {
  const float *y = t->y[slot].mapped, *z = t->z[slot].mapped;
  for (int64_t i = 0; i < n * OUT; i++)
    if (!(fabsf(y[i] - t->expected_y[i]) <= 1e-5f)) return tap_diag("y[%d] is %g, not %g", (int)i, y[i], t->expected_y[i]), false;
  for (int64_t i = 0; i < n * COLUMNS; i++)
    if (z[i] != t->expected_z[i]) return tap_diag("z[%d] is %g, not %g", (int)i, z[i], t->expected_z[i]), false;
  return true;
}

static snt_vk_record_info frame(door_test *t, uint32_t slot, const int64_t *n, const float *k) {
  return (snt_vk_record_info){.head = SNT_HEAD(vk_record_info),
                              .slot = slot,
                              .symbols = n,
                              .symbol_count = 1,
                              .values = k,
                              .values_size = sizeof *k,
                              .values_mapped = t->memory[t->values].mapped};
}

static void test_frames(door_test *t) {
  static const int64_t sizes[] = {300, 1, 77, 128, 77};
  for (uint32_t i = 0; i < 5; i++) {
    const uint32_t slot = i % SLOTS;
    const float k = 0.5f + (float)i;
    const snt_vk_record_info info = frame(t, slot, &sizes[i], &k);
    expect(t, sizes[i], k);
    memcpy(t->x[slot].mapped, t->input, sizeof t->input);
    memset(t->y[slot].mapped, 0xff, t->y[slot].bytes);
    vk_host_begin(&t->host);
    const snt_result r = snt_vk_record(t->binding, t->host.commands, &info, &t->diag);
    tap_result(r == SNT_OK, __FILE__, __LINE__, "frame %u is recorded with n = %d (%s)", i, (int)sizes[i], r == SNT_OK ? "" : t->diag.text);
    vk_host_submit_wait(&t->host);
    snt_vk_binding_retire(t->binding, slot);
    tap_result(compare(t, slot, sizes[i]), __FILE__, __LINE__, "and gives what the host evaluator gives");
  }
}

static void SNT_CALL note_step(void *user, VkCommandBuffer commands, uint32_t step, uint32_t begin) {
  uint32_t *seen = user;
  (void)commands;
  seen[begin] += step + 1;
}

/* Each step a slice of its own, with timestamps. */
static void test_slices(door_test *t) {
  const int64_t n = 200;
  const float k = 2;
  const uint32_t steps = snt_exec_step_count(t->exec);
  const VkQueryPoolCreateInfo pool_info = {
      .sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO, .queryType = VK_QUERY_TYPE_TIMESTAMP, .queryCount = 64};
  VkQueryPool pool;
  uint64_t ticks[64] = {0};
  uint32_t seen[2] = {0, 0};
  expect(t, n, k);
  memcpy(t->x[1].mapped, t->input, sizeof t->input);
  memset(t->y[1].mapped, 0xff, t->y[1].bytes);
  t->host.vkCreateQueryPool(t->host.device, &pool_info, NULL, &pool);
  vk_host_begin(&t->host);
  t->host.vkCmdResetQueryPool(t->host.commands, pool, 0, 64);
  snt_result r = SNT_OK;
  for (uint32_t s = 0; r == SNT_OK && s < steps; s++) {
    snt_vk_record_info info = frame(t, 1, &n, &k);
    info.flags = SNT_VK_RECORD_LABELS;
    info.first_step = s, info.step_count = 1;
    info.timestamps = pool, info.first_query = 2 * s;
    info.user = seen, info.on_step = note_step;
    r = snt_vk_record(t->binding, t->host.commands, &info, &t->diag);
  }
  vk_host_submit_wait(&t->host);
  snt_vk_binding_retire(t->binding, 1);
  good(t, r, "a run in slices of one step");
  tap_result(compare(t, 1, n), __FILE__, __LINE__, "the slices together give the same");
  tap_result(seen[0] == seen[1] && seen[0] == steps * (steps + 1) / 2, __FILE__, __LINE__, "on_step is called before and after each step");
  t->host.vkGetQueryPoolResults(t->host.device, pool, 0, 2 * steps, sizeof ticks, ticks, sizeof *ticks,
                                VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT);
  bool ordered = true;
  for (uint32_t i = 1; i < 2 * steps; i++) ordered = ordered && ticks[i] >= ticks[i - 1];
  tap_result(ordered, __FILE__, __LINE__, "timestamps stand around the steps");
  t->host.vkDestroyQueryPool(t->host.device, pool, NULL);
}

/* ---- what is refused, and that nothing was recorded then ---- */

static void refused(door_test *t, const snt_vk_record_info *info, snt_result expected, const char *what) {
  t->diag.text[0] = 0;
  const snt_result r = snt_vk_record(t->binding, t->host.commands, info, &t->diag);
  tap_result(r == expected && t->diag.text[0], __FILE__, __LINE__, "refused: %s: %s", what, t->diag.text);
}

static void test_refusals(door_test *t) {
  const int64_t n = 10, zero = 0, more = 301;
  const float k = 1;
  vk_host_begin(&t->host);
  snt_vk_record_info info = frame(t, SLOTS, &n, &k);
  refused(t, &info, SNT_E_ARG, "a slot that is not there");
  info = frame(t, 0, &zero, &k);
  refused(t, &info, SNT_E_SHAPE, "a symbol below its range");
  info = frame(t, 0, &more, &k);
  refused(t, &info, SNT_E_SHAPE, "a symbol above its range");
  info = frame(t, 0, &n, &k);
  info.values_size = 2;
  refused(t, &info, SNT_E_ARG, "too few bytes of values");
  info = frame(t, 0, &n, &k);
  info.symbol_count = 0;
  refused(t, &info, SNT_E_ARG, "no symbols");
  info = frame(t, 0, &n, &k);
  info.step_count = 100;
  refused(t, &info, SNT_E_ARG, "more steps than there are");
  info = frame(t, 0, &n, &k);
  info.memory_before.stage = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT;
  refused(t, &info, SNT_E_ARG, "scopes without SNT_VK_EDGE_BARRIERS");
  const snt_vk_bind small = {.port = port_of(t, "x"), .range = {t->x[0].buffer, 0, 64}, .buffer_view = t->x_views[0]};
  good(t, snt_vk_binding_set(t->binding, 0, 1, 0, &small, &t->diag), "a small range is bound");
  info = frame(t, 0, &n, &k);
  refused(t, &info, SNT_E_ARG, "a range that is too small for the symbols");
  good(t, bind_slot(t, 0), "bound again");
  info = frame(t, 0, &n, &k);
  good(t, snt_vk_record(t->binding, t->host.commands, &info, &t->diag), "the same is recorded");
  uint32_t sizes = 0, sets = 0;
  (void)snt_vk_descriptor_need(t->exec, SLOTS, &sizes, NULL, &sets);
  tap_result(bind_slot(t, 0) == (sets ? SNT_E_ORDER : SNT_OK), __FILE__, __LINE__, "a pending slot is set only where it has no sets: %s",
             t->diag.text);
  vk_host_submit_wait(&t->host);
  snt_vk_binding_retire(t->binding, 0);
  const snt_vk_bind odd[] = {{.port = port_of(t, "x"), .range = {t->x[0].buffer, 4, 400}},
                             {.port = port_of(t, "k"), .range = {t->x[0].buffer, 0, 400}},
                             {.port = 99, .range = {t->x[0].buffer, 0, 400}},
                             {.port = port_of(t, "x"), .reserved = 1, .range = {t->x[0].buffer, 0, 400}, .buffer_view = t->x_views[0]},
                             {.port = port_of(t, "x"), .range = {t->memory[0].buffer, 0, 400}, .buffer_view = t->x_views[0]}};
  for (int i = 0; i < 5; i++)
    tap_result(snt_vk_binding_set(t->binding, 0, 1, 0, &odd[i], &t->diag) == SNT_E_ARG, __FILE__, __LINE__, "bind refused: %s",
               t->diag.text);
}

static void test_lost(door_test *t) {
  const int64_t n = 10;
  const float k = 1;
  const snt_vk_record_info info = frame(t, 0, &n, &k);
  good(t, snt_vk_device_notify_lost(t->device), "the host says that the device is lost");
  vk_host_begin(&t->host);
  refused(t, &info, SNT_E_DEVICE_LOST, "record on a lost device");
  tap_result(bind_slot(t, 0) == SNT_E_DEVICE_LOST, __FILE__, __LINE__, "so is binding");
  vk_host_submit_wait(&t->host);
}

static void close_test(door_test *t) {
  snt_binding_destroy(t->binding);
  snt_exec_destroy(t->exec);
  snt_program_destroy(t->program);
  snt_graph_destroy(t->graph);
  snt_profile_destroy(t->profile);
  snt_device_destroy(t->device);
  snt_context_destroy(t->context);
  for (uint32_t i = 0; i < t->need_count && i < 8; i++) vk_host_buffer_destroy(&t->host, &t->memory[i]);
  for (int s = 0; s < SLOTS; s++) {
    if (t->x_views[s]) t->host.vkDestroyBufferView(t->host.device, t->x_views[s], NULL);
    if (t->x[s].buffer) vk_host_buffer_destroy(&t->host, &t->x[s]);
    if (t->y[s].buffer) vk_host_buffer_destroy(&t->host, &t->y[s]);
    if (t->z[s].buffer) vk_host_buffer_destroy(&t->host, &t->z[s]);
  }
}

/* The paths that were asked for are those that are taken. */
static void test_path(door_test *t) {
  uint32_t sizes = 8, sets = 0, views = 0, buffers = 0;
  VkDescriptorPoolSize pool[8];
  (void)snt_vk_descriptor_need(t->exec, 1, &sizes, pool, &sets);
  for (uint32_t i = 0; i < sizes; i++) {
    if (pool[i].type == VK_DESCRIPTOR_TYPE_STORAGE_BUFFER) buffers += pool[i].descriptorCount;
    else views += pool[i].descriptorCount;
  }
  const bool pushed = t->c->exec_flags & SNT_VK_PUSH_DESCRIPTORS, addressed = t->c->attach_flags & SNT_VK_ADDRESSES;
  const bool usage = usage_of(t, "y") & VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT;
  tap_result(pushed      ? !sets
             : addressed ? !buffers
                         : sets && buffers,
             __FILE__, __LINE__, "%u sets of %u buffers and %u views", sets, buffers, views);
  tap_result(usage == addressed, __FILE__, __LINE__, "buffers are used by their addresses only where that was asked for");
}

/* What was not enabled is refused by name. */
static void test_not_enabled(door_test *t) {
  const snt_vk_exec_info own = {.head = SNT_HEAD(vk_exec_info), .flags = SNT_VK_PUSH_DESCRIPTORS};
  snt_exec_info info = {.head = SNT_HEAD(exec_info)};
  snt_exec *exec = NULL;
  snt_device *device = NULL;
  info.head.next = &own;
  if (t->host.enabled & SNT_VK_FEATURE_PUSH_DESCRIPTORS) return;
  snt_result r = snt_exec_create(t->device, t->program, &info, &exec, &t->diag);
  tap_result(r == SNT_E_UNSUPPORTED && !exec, __FILE__, __LINE__, "refused: %s", t->diag.text);
  if (t->host.enabled & SNT_VK_FEATURE_BUFFER_ADDRESS) return;
  r = vk_host_attach(&t->host, t->context, SNT_VK_ADDRESSES, &device, &t->diag);
  tap_result(r == SNT_E_UNSUPPORTED && !device, __FILE__, __LINE__, "refused: %s", t->diag.text);
}

/* A start with the pipelines of the one before: nothing is compiled. */
static void test_cache(door_test *t) {
  const snt_vk_exec_info own = {.head = SNT_HEAD(vk_exec_info), .flags = SNT_VK_CACHED_ONLY | t->c->exec_flags};
  const VkPipelineCacheCreateInfo made = {.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO};
  snt_exec_info info = {.head = SNT_HEAD(exec_info)};
  snt_result r[3] = {SNT_OK, SNT_OK, SNT_OK};
  info.head.next = &own;
  if (t->host.vkCreatePipelineCache(t->host.device, &made, NULL, &t->host.cache) != VK_SUCCESS) return;
  for (int start = 0; start < 3; start++) { /* cold; compiling; warm */
    snt_device *device = NULL;
    snt_exec *exec = NULL;
    r[start] = vk_host_attach(&t->host, t->context, t->c->attach_flags, &device, &t->diag);
    if (r[start] == SNT_OK) r[start] = snt_exec_create(device, t->program, start == 1 ? NULL : &info, &exec, &t->diag);
    for (uint32_t i = 0; r[start] == SNT_OK && i < snt_exec_job_count(exec); i++) r[start] = snt_exec_run_job(exec, i, &t->diag);
    snt_exec_destroy(exec);
    snt_device_destroy(device);
  }
  t->host.vkDestroyPipelineCache(t->host.device, t->host.cache, NULL);
  t->host.cache = VK_NULL_HANDLE;
  tap_result(r[0] == SNT_E_WOULD_COMPILE && r[1] == SNT_OK, __FILE__, __LINE__, "an empty cache answers that it would compile (%d, %d)",
             r[0], r[1]);
  const bool has_feature = t->host.enabled & SNT_VK_FEATURE_PIPELINE_CACHE_CONTROL;
  if (has_feature && r[2] == SNT_E_WOULD_COMPILE) tap_skip("%s keeps no pipelines in its cache", t->host.properties.deviceName);
  else tap_result(r[2] == (has_feature ? SNT_OK : SNT_E_WOULD_COMPILE), __FILE__, __LINE__, "the second start compiles nothing (%d)", r[2]);
}

static void test_device(const door_case *c) {
  static door_test t;
  char why[120];
  memset(&t, 0, sizeof t);
  t.c = c;
  t.diag.head = (snt_out_head)SNT_HEAD(diag);
  vk_host_looks = c->needs ? VK_HOST_LOOKS_BEYOND_SETS : VK_HOST_LOOKS;
  if (!vk_host_open(&t.host, c->part, c->with_features, why, sizeof why)) {
    tap_skip("%s", why);
    return;
  }
  if ((t.host.enabled & c->needs) != c->needs) {
    tap_skip("%s: %s has no such path", c->part, c->what);
    vk_host_close(&t.host);
    return;
  }
  tap_diag("%s, %s%s", t.host.properties.deviceName, c->what, t.host.validated ? ", validated" : "");
  if (t.host.unseen[0]) tap_skip("%s", t.host.unseen);
  snt_result r = snt_context_create(NULL, &t.context);
  if (r == SNT_OK) r = vk_host_attach(&t.host, t.context, SNT_VK_ATTACH_VALIDATE | c->attach_flags, &t.device, &t.diag);
  bool ok = good(&t, r, "attached") && compile(&t);
  if (ok) {
    good(&t, snt_exec_prepare(t.exec, &t.diag), "every job makes its pipeline");
    test_path(&t);
    test_not_enabled(&t);
    if (!c->needs) test_cache(&t);
    ok = make_memory(&t) && upload(&t) && make_binding(&t);
  }
  if (ok) {
    test_frames(&t);
    test_slices(&t);
    test_refusals(&t);
    test_lost(&t);
  }
  close_test(&t);
  tap_result(!t.host.messages, __FILE__, __LINE__, "the validation layers say nothing%s%s", t.host.messages ? ": " : "",
             t.host.first_message);
  vk_host_close(&t.host);
}

VK_HOST_LEAKS

int main(void) {
  host_prepare_drivers(NULL);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) test_device(&cases[i]);
  return tap_done();
}
