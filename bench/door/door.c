/* What the Vulkan door costs the host's CPU: attach, load, exec, binding, setting a slot, recording. Recording is measured against a table of vkCmd* that
   do nothing, so that what is left is the library's own share; everything else on the device that is here. Prints a table in Markdown.
     door [DEVICE-PART] [MODEL.snt]..      for example `door llvmpipe examples/encoder_layer.snt` */
#include "tests/unit/vk_host.h"
#include "tools/host/host.h"
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 15, RECORDINGS = 2000, MOST_NEEDS = 16, MOST_PORTS = 64, MOST_SYMBOLS = 16 };

static double now_ns(void) {
  struct timespec t;
  return timespec_get(&t, TIME_UTC) ? (double)t.tv_sec * 1e9 + (double)t.tv_nsec : 0;
}

/* ---- memory that is counted ---- */
static atomic_llong taken;
static void *SNT_CALL acquire(void *user, size_t size, size_t align, uint32_t scope) {
  (void)user, (void)scope;
  atomic_fetch_add(&taken, 1);
  return aligned_alloc(align < 16 ? 16 : align, (size + align + 15) / (align < 16 ? 16 : align) * (align < 16 ? 16 : align));
}
static void SNT_CALL release(void *user, void *at, size_t size, size_t align) {
  (void)user, (void)size, (void)align;
  free(at);
}

/* ---- a Vulkan whose commands do nothing ---- */
static PFN_vkGetInstanceProcAddr real;
static PFN_vkGetDeviceProcAddr real_device;
static uint64_t commands;
static void VKAPI_PTR no_pipeline(VkCommandBuffer c, VkPipelineBindPoint p, VkPipeline h) { (void)c, (void)p, (void)h, commands++; }
static void VKAPI_PTR no_sets(VkCommandBuffer c, VkPipelineBindPoint p, VkPipelineLayout l, uint32_t f, uint32_t n,
                              const VkDescriptorSet *s, uint32_t d, const uint32_t *o) {
  (void)c, (void)p, (void)l, (void)f, (void)n, (void)s, (void)d, (void)o, commands++;
}
static void VKAPI_PTR no_push(VkCommandBuffer c, VkPipelineLayout l, VkShaderStageFlags s, uint32_t o, uint32_t n, const void *v) {
  (void)c, (void)l, (void)s, (void)o, (void)n, (void)v, commands++;
}
static void VKAPI_PTR no_dispatch(VkCommandBuffer c, uint32_t x, uint32_t y, uint32_t z) { (void)c, (void)x, (void)y, (void)z, commands++; }
static void VKAPI_PTR no_barrier(VkCommandBuffer c, VkPipelineStageFlags f, VkPipelineStageFlags t, VkDependencyFlags d, uint32_t m,
                                 const VkMemoryBarrier *mb, uint32_t b, const VkBufferMemoryBarrier *bb, uint32_t i,
                                 const VkImageMemoryBarrier *ib) {
  (void)c, (void)f, (void)t, (void)d, (void)m, (void)mb, (void)b, (void)bb, (void)i, (void)ib, commands++;
}

static void VKAPI_PTR no_pushed_sets(VkCommandBuffer c, VkPipelineBindPoint p, VkPipelineLayout l, uint32_t s, uint32_t n,
                                     const VkWriteDescriptorSet *w) {
  (void)c, (void)p, (void)l, (void)s, (void)n, (void)w, commands++;
}

static PFN_vkVoidFunction VKAPI_PTR device_proc(VkDevice device, const char *name) {
  static const struct {
    const char *name;
    PFN_vkVoidFunction at;
  } quiet[] = {{"vkCmdBindPipeline", (PFN_vkVoidFunction)no_pipeline}, {"vkCmdBindDescriptorSets", (PFN_vkVoidFunction)no_sets},
               {"vkCmdPushConstants", (PFN_vkVoidFunction)no_push},    {"vkCmdPushDescriptorSetKHR", (PFN_vkVoidFunction)no_pushed_sets},
               {"vkCmdDispatch", (PFN_vkVoidFunction)no_dispatch},     {"vkCmdPipelineBarrier", (PFN_vkVoidFunction)no_barrier}};
  for (size_t i = 0; i < sizeof quiet / sizeof *quiet; i++)
    if (!strcmp(quiet[i].name, name)) return quiet[i].at;
  return real_device(device, name);
}
static PFN_vkVoidFunction VKAPI_PTR instance_proc(VkInstance instance, const char *name) {
  return strcmp(name, "vkGetDeviceProcAddr") ? real(instance, name) : (PFN_vkVoidFunction)device_proc;
}

/* ---- one model ---- */
/* How the kernels are cut, and how resources reach them. */
typedef struct variant {
  const char *name;
  uint32_t compile_flags, attach_flags, exec_flags;
  uint64_t needs; /* features */
} variant;
static const variant variants[] = {
    {"fused", 0, 0, 0, 0},
    {"a kernel a node", SNT_COMPILE_UNFUSED_NODES, 0, 0, 0},
    {"a kernel a node, pushed", SNT_COMPILE_UNFUSED_NODES, 0, SNT_VK_PUSH_DESCRIPTORS, SNT_VK_FEATURE_PUSH_DESCRIPTORS},
    {"a kernel a node, by address", SNT_COMPILE_UNFUSED_NODES, SNT_VK_ADDRESSES, 0, SNT_VK_FEATURE_BUFFER_ADDRESS},
};
typedef struct run {
  vk_host host;
  snt_context *context;
  snt_device *device;
  snt_program *program;
  snt_exec *exec;
  snt_binding *binding;
  void *blob;
  size_t blob_bytes;
  int64_t symbols[MOST_SYMBOLS];
  uint32_t symbol_count, need_count;
  snt_vk_memory_need needs[MOST_NEEDS];
  vk_host_buffer memory[MOST_NEEDS], ports[MOST_PORTS];
  VkBufferView views[MOST_PORTS];
  snt_vk_range ranges[MOST_NEEDS];
  const variant *variant;
  snt_diag diag;
} run;
typedef struct costs {
  double attach, load, exec, jobs, binding, set, record_same, record_new, record_driver;
  long long record_allocations;
  uint32_t steps;
  uint64_t commands;
} costs;

static void must(const run *r, snt_result result, const char *what) {
  if (result == SNT_OK) return;
  fprintf(stderr, "door: %s: %s: %s\n", what, snt_result_text(result), r->diag.text);
  exit(1);
}
static void least(double *to, double ns) {
  if (*to == 0 || ns < *to) *to = ns;
}

static void make_blob(run *r, const char *path) {
  void *text = NULL;
  size_t size = 0;
  snt_graph *g = NULL;
  snt_profile *p = NULL;
  snt_program *made = NULL;
  must(r, host_read_file(path, &text, &size, &r->diag), path);
  must(r, vk_host_attach(&r->host, r->context, r->variant->attach_flags, &r->device, &r->diag), "attach");
  must(r, snt_graph_create(r->context, &g), "graph");
  must(r, snt_graph_parse(g, text, size, NULL, &r->diag), path);
  must(r, snt_device_profile(r->device, &p), "profile");
  const snt_compile_info info = {.head = SNT_HEAD(compile_info), .flags = r->variant->compile_flags};
  must(r, snt_compile(g, p, &info, &made, &r->diag), "compile");
  if (snt_program_save(made, NULL, &r->blob_bytes) != SNT_INCOMPLETE && !r->blob_bytes) exit(1);
  r->blob = malloc(r->blob_bytes);
  must(r, snt_program_save(made, r->blob, &r->blob_bytes), "save");
  snt_program_destroy(made);
  snt_profile_destroy(p);
  snt_graph_destroy(g);
  snt_device_destroy(r->device);
  free(text);
}

static void start(run *r, costs *c, bool first) {
  const snt_vk_exec_info own = {.head = SNT_HEAD(vk_exec_info), .flags = r->variant->exec_flags};
  snt_exec_info info = {.head = SNT_HEAD(exec_info)};
  info.head.next = &own;
  double at = now_ns();
  must(r, vk_host_attach(&r->host, r->context, r->variant->attach_flags, &r->device, &r->diag), "attach");
  least(&c->attach, now_ns() - at);
  at = now_ns();
  must(r, snt_program_load(r->context, r->blob, r->blob_bytes, &r->program, &r->diag), "load");
  least(&c->load, now_ns() - at);
  at = now_ns();
  must(r, snt_exec_create(r->device, r->program, &info, &r->exec, &r->diag), "exec");
  least(&c->exec, now_ns() - at);
  if (!first) return;
  at = now_ns();
  for (uint32_t i = 0; i < snt_exec_job_count(r->exec); i++) must(r, snt_exec_run_job(r->exec, i, &r->diag), "job");
  least(&c->jobs, now_ns() - at);
}

static void stop(run *r) {
  snt_exec_destroy(r->exec);
  snt_program_destroy(r->program);
  snt_device_destroy(r->device);
}

static void make_memory(run *r) {
  r->symbol_count = snt_program_symbol_count(r->program);
  for (uint32_t i = 0; i < r->symbol_count && i < MOST_SYMBOLS; i++) {
    snt_symbol s;
    must(r, snt_program_symbol(r->program, i, &s), "symbol");
    r->symbols[i] = s.hint ? s.hint : s.min;
  }
  r->need_count = MOST_NEEDS;
  for (int i = 0; i < MOST_NEEDS; i++) r->needs[i].head = (snt_out_head)SNT_HEAD(vk_memory_need);
  must(r, snt_vk_exec_memory(r->exec, r->symbols, r->symbol_count, &r->need_count, sizeof *r->needs, r->needs), "memory");
  for (uint32_t i = 0; i < r->need_count; i++) {
    const VkDeviceSize bytes = r->needs[i].size; /* one slot */
    if (!vk_host_buffer_create(&r->host, bytes, r->needs[i].usage, &r->memory[i])) exit(1);
    r->ranges[i] = (snt_vk_range){r->memory[i].buffer, 0, bytes};
  }
}

static uint32_t make_ports(run *r, snt_vk_bind *binds) {
  static snt_vk_port ports[MOST_PORTS];
  uint32_t count = MOST_PORTS, used = 0;
  for (int i = 0; i < MOST_PORTS; i++) ports[i].head = (snt_out_head)SNT_HEAD(vk_port);
  must(r, snt_vk_exec_ports(r->exec, &count, sizeof *ports, ports), "ports");
  for (uint32_t i = 0; i < count; i++) {
    VkDeviceSize bytes = 0;
    if (ports[i].kind != SNT_VK_PORT_BUFFER) continue;
    must(r, snt_vk_port_bytes(r->exec, i, r->symbols, r->symbol_count, &bytes), "port");
    if (!vk_host_buffer_create(&r->host, bytes, ports[i].buffer_usage, &r->ports[i])) exit(1);
    const VkBufferViewCreateInfo view = {
        .sType = VK_STRUCTURE_TYPE_BUFFER_VIEW_CREATE_INFO, .buffer = r->ports[i].buffer, .format = ports[i].format, .range = bytes};
    if (ports[i].format != VK_FORMAT_UNDEFINED) r->host.vkCreateBufferView(r->host.device, &view, NULL, &r->views[i]);
    binds[used++] = (snt_vk_bind){.port = i, .range = {r->ports[i].buffer, 0, bytes}, .buffer_view = r->views[i]};
  }
  return used;
}

static void record(run *r, VkCommandBuffer commands_to, const int64_t *symbols) {
  const snt_vk_record_info info = {.head = SNT_HEAD(vk_record_info), .symbols = symbols, .symbol_count = r->symbol_count};
  must(r, snt_vk_record(r->binding, commands_to, &info, &r->diag), "record");
}

static void drop_binding(run *r) {
  snt_binding_destroy(r->binding);
  for (uint32_t i = 0; i < MOST_PORTS; i++) {
    if (r->views[i]) r->host.vkDestroyBufferView(r->host.device, r->views[i], NULL);
    if (r->ports[i].buffer) vk_host_buffer_destroy(&r->host, &r->ports[i]);
    r->views[i] = VK_NULL_HANDLE, r->ports[i] = (vk_host_buffer){.mapped = NULL};
  }
  for (uint32_t i = 0; i < r->need_count; i++) vk_host_buffer_destroy(&r->host, &r->memory[i]);
}

/* With commands that do nothing, or with the driver's. */
static void measure_records(run *r, costs *c, bool quiet) {
  static snt_vk_bind binds[MOST_PORTS];
  int64_t others[MOST_SYMBOLS];
  make_memory(r);
  const uint32_t used = make_ports(r, binds);
  const snt_vk_binding_info info = {.head = SNT_HEAD(vk_binding_info),
                                    .max_symbols = r->symbols,
                                    .symbol_count = r->symbol_count,
                                    .slot_count = 1,
                                    .memory_count = r->need_count,
                                    .memory = r->ranges};
  double at = now_ns();
  must(r, snt_vk_binding_create(r->exec, &info, &r->binding, &r->diag), "binding");
  if (quiet) least(&c->binding, now_ns() - at);
  at = now_ns();
  must(r, snt_vk_binding_set(r->binding, 0, used, sizeof *binds, binds, &r->diag), "set");
  if (quiet) least(&c->set, now_ns() - at);
  c->steps = snt_exec_step_count(r->exec);
  memcpy(others, r->symbols, sizeof others);
  for (int round = 0; round < ROUNDS; round++) {
    const int many = quiet ? RECORDINGS : 20;
    if (!vk_host_begin(&r->host)) exit(1);
    record(r, r->host.commands, r->symbols);
    const long long before = atomic_load(&taken);
    commands = 0;
    at = now_ns();
    for (int i = 0; i < many; i++) record(r, r->host.commands, r->symbols);
    least(quiet ? &c->record_same : &c->record_driver, (now_ns() - at) / many / c->steps);
    c->commands = quiet ? commands / (uint64_t)many : c->commands;
    at = now_ns();
    for (int i = 0; quiet && r->symbol_count && i < many; i++) {
      others[0] = r->symbols[0] - (i & 1);
      record(r, r->host.commands, others);
    }
    if (quiet && r->symbol_count) least(&c->record_new, (now_ns() - at) / many / c->steps);
    c->record_allocations += atomic_load(&taken) - before;
    r->host.vkEndCommandBuffer(r->host.commands);
  }
  drop_binding(r);
}

static void measure(run *r, const char *path, const variant *v) {
  costs c = {0};
  r->variant = v;
  if ((r->host.enabled & v->needs) != v->needs) return;
  make_blob(r, path);
  for (int round = 0; round < ROUNDS; round++) {
    start(r, &c, false);
    stop(r);
  }
  for (int quiet = 1; quiet >= 0; quiet--) {
    if (quiet) r->host.get = instance_proc;
    start(r, &c, true);
    measure_records(r, &c, quiet);
    stop(r);
    r->host.get = real;
  }
  char new_symbols[24] = "-";
  if (c.record_new > 0) snprintf(new_symbols, sizeof new_symbols, "%.0f", c.record_new);
  printf("| %s, %s | %u | %.1f | %.3f | %.3f | %.3f | %.1f | %.1f | %.1f | %.0f | %s | %.0f | %lld |\n",
         strrchr(path, '/') ? strrchr(path, '/') + 1 : path, v->name, c.steps, (double)c.commands / c.steps, c.attach / 1e6, c.load / 1e6,
         c.exec / 1e6, c.jobs / 1e6, c.binding / 1e3, c.set / 1e3, c.record_same, new_symbols, c.record_driver, c.record_allocations);
  free(r->blob);
}

int main(int argc, char **argv) {
  static run r;
  char why[200];
  const snt_context_info info = {.head = SNT_HEAD(context_info), .abi_version = SNT_ABI_VERSION, .alloc = {NULL, acquire, release}};
  setenv("VK_LOADER_LAYERS_DISABLE", "~all~", 0);
  if (!vk_host_open(&r.host, argc > 1 ? argv[1] : "llvmpipe", true, why, sizeof why)) {
    fprintf(stderr, "door: %s\n", why);
    return 1;
  }
  real = r.host.get;
  real_device = (PFN_vkGetDeviceProcAddr)real(r.host.instance, "vkGetDeviceProcAddr");
  r.diag.head = (snt_out_head)SNT_HEAD(diag);
  must(&r, snt_context_create(&info, &r.context), "context");
  printf("%s%s\n\n", r.host.properties.deviceName, r.host.validated ? ", WITH VALIDATION LAYERS" : "");
  printf("| model | dispatches | commands each | attach ms | load ms | exec ms | pipelines ms | binding us | set us | record ns | new "
         "symbols ns | with the driver ns | allocations |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|\n");
  for (int i = 2; i < argc; i++)
    for (size_t v = 0; v < sizeof variants / sizeof *variants; v++) measure(&r, argv[i], &variants[v]);
  snt_context_destroy(r.context);
  vk_host_close(&r.host);
  return 0;
}
