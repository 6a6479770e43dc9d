/* See vk_app.h. */
#include "tests/unit/vk_app.h"
#include <stdlib.h>
#include <string.h>

static const char model[] = "symbols { n: min=1 max=4096 multiple_of=1 hint=512 }\n"
                            "graph @calls(%x: f32[n,64], %k: f32[], state %s: f32[n,64]) {\n"
                            "  %w: f32[64,64] = const normal seed=3 scale=0.125\n"
                            "  %p: f32[n,64] = matmul %x, %w\n"
                            "  %kk: f32[n,64] = broadcast %k, axes=[], shape=[n,64]\n"
                            "  %q = mul %p, %kk\n"
                            "  %y: f32[n,64] = softmax %q, axis=1\n"
                            "  %t: f32[64,n] = transpose %y, perm=[1,0]\n"
                            "  %u: f32[64,n] = softmax %t, axis=1\n"
                            "  %next = add %s, %y\n"
                            "  update %s, %next\n"
                            "  return u=%u\n"
                            "}\n";

/* ---- memory that is counted, and may run out ---- */

vk_app_memory vk_app_heap;
static void *SNT_CALL heap_acquire(void *user, size_t size, size_t align, uint32_t scope) {
  (void)user, (void)align, (void)scope;
  if (atomic_fetch_add(&vk_app_heap.calls, 1) + 1 == atomic_load(&vk_app_heap.fail_at)) return NULL;
  void *p = align <= 16 ? malloc(size) : aligned_alloc(align, (size + align - 1) / align * align);
  if (p) atomic_fetch_add(&vk_app_heap.bytes, (long long)size);
  return p;
}
static void SNT_CALL heap_release(void *user, void *p, size_t size, size_t align) {
  (void)user, (void)align;
  if (p) atomic_fetch_sub(&vk_app_heap.bytes, (long long)size);
  free(p);
}

VkBuffer vk_app_buffer(uintptr_t n) {
  VkBuffer b;
  memset(&b, 0, sizeof b);
  memcpy(&b, &n, sizeof n);
  return b;
}
VkCommandBuffer vk_app_commands(void) { return (VkCommandBuffer)(uintptr_t)4096; }

/* ---- its steps ---- */

vk_app_paths vk_app_path;
static const char *const debug_extension[] = {VK_EXT_DEBUG_UTILS_EXTENSION_NAME};

snt_result vk_app_attach(vk_app *t) {
  const snt_context_info context = {.head = SNT_HEAD(context_info), .alloc = {NULL, heap_acquire, heap_release}};
  const snt_vk_attach_info info = {.head = SNT_HEAD(vk_attach_info),
                                   .instance = (VkInstance)(uintptr_t)1,
                                   .physical_device = (VkPhysicalDevice)(uintptr_t)2,
                                   .device = (VkDevice)(uintptr_t)3,
                                   .get_instance_proc = vk_fake_get,
                                   .created_with = vk_app_path.created_with,
                                   .instance_extension_count = vk_app_path.instance_extension_count,
                                   .instance_extensions = debug_extension,
                                   .debug_name = "game",
                                   .flags = vk_app_path.attach_flags};
  const snt_result r = snt_context_create(&context, &t->context);
  return r == SNT_OK ? snt_vk_attach(t->context, &info, &t->device, &t->diag) : r;
}

snt_result vk_app_compile(vk_app *t, snt_device *device, snt_program **out) {
  snt_graph *graph = NULL;
  snt_profile *profile = NULL;
  snt_result r = snt_graph_create(t->context, &graph);
  if (r == SNT_OK) r = snt_graph_parse(graph, model, strlen(model), NULL, &t->diag);
  if (r == SNT_OK) r = snt_device_profile(device, &profile);
  if (r == SNT_OK) r = snt_compile(graph, profile, NULL, out, &t->diag);
  snt_profile_destroy(profile);
  snt_graph_destroy(graph);
  return r;
}

snt_result vk_app_exec(vk_app *t) {
  const snt_vk_exec_info own = {
      .head = SNT_HEAD(vk_exec_info), .flags = vk_app_path.exec_flags, .max_dispatch_ns = vk_app_path.max_dispatch_ns};
  snt_exec_info info = {.head = SNT_HEAD(exec_info)};
  info.head.next = &own;
  return snt_exec_create(t->device, t->program, &info, &t->exec, &t->diag);
}

snt_result vk_app_run_jobs(vk_app *t) {
  for (uint32_t i = 0; i < snt_exec_job_count(t->exec); i++) {
    const snt_result r = snt_exec_run_job(t->exec, i, &t->diag);
    if (r != SNT_OK) return r;
  }
  return SNT_OK;
}

snt_result vk_app_bind(vk_app *t) {
  static const int64_t most = VK_APP_MOST;
  for (int i = 0; i < 8; i++) t->needs[i].head = (snt_out_head)SNT_HEAD(vk_memory_need);
  t->need_count = 8;
  snt_result r = snt_vk_exec_memory(t->exec, &most, 1, &t->need_count, 0, t->needs);
  for (uint32_t i = 0; i < t->need_count; i++)
    t->ranges[i] = (snt_vk_range){vk_app_buffer(100 + i), 0, t->needs[i].size * (t->needs[i].per_slot ? VK_APP_SLOTS : 1)};
  const snt_vk_binding_info info = {.head = SNT_HEAD(vk_binding_info),
                                    .max_symbols = &most,
                                    .symbol_count = 1,
                                    .slot_count = VK_APP_SLOTS,
                                    .memory_count = t->need_count,
                                    .memory = t->ranges};
  return r == SNT_OK ? snt_vk_binding_create(t->exec, &info, &t->binding, &t->diag) : r;
}

snt_result vk_app_set_slot(vk_app *t, uint32_t slot) {
  uint32_t x = 0, u = 0;
  (void)snt_program_find_port(t->program, "x", &x);
  (void)snt_program_find_port(t->program, "u", &u);
  const snt_vk_bind binds[] = {{.port = x, .range = {vk_app_buffer(200 + slot), 0, VK_APP_MOST * 64 * 4}},
                               {.port = u, .range = {vk_app_buffer(300 + slot), 0, VK_APP_MOST * 64 * 4}}};
  return snt_vk_binding_set(t->binding, slot, 2, 0, binds, &t->diag);
}

snt_result vk_app_record(vk_app *t, uint32_t slot, int64_t n, snt_diag *diag) {
  const float k = 2;
  const snt_vk_record_info info = {.head = SNT_HEAD(vk_record_info),
                                   .slot = slot,
                                   .symbols = &n,
                                   .symbol_count = 1,
                                   .values = &k,
                                   .values_size = sizeof k,
                                   .values_mapped = t->values};
  return snt_vk_record(t->binding, vk_app_commands(), &info, diag);
}

void vk_app_finish(vk_app *t) {
  snt_binding_destroy(t->binding);
  snt_exec_destroy(t->exec);
  snt_program_destroy(t->program);
  snt_device_destroy(t->device);
  snt_context_destroy(t->context);
  memset(t, 0, sizeof *t);
  t->diag.head = (snt_out_head)SNT_HEAD(diag);
}

snt_result vk_app_whole(vk_app *t) {
  snt_result r = vk_app_attach(t);
  if (r == SNT_OK) r = vk_app_compile(t, t->device, &t->program);
  if (r == SNT_OK) r = vk_app_exec(t);
  if (r == SNT_OK) r = vk_app_run_jobs(t);
  if (r == SNT_OK) r = vk_app_bind(t);
  for (uint32_t s = 0; r == SNT_OK && s < VK_APP_SLOTS; s++) r = vk_app_set_slot(t, s);
  if (r == SNT_OK) r = vk_app_record(t, 0, 100, &t->diag);
  return r;
}
