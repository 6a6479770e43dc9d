/* What a host orders its own work by: the barriers at both edges of a run (SNT_VK_EDGE_BARRIERS), and what describe says of each dispatch's resources: which
   port or memory, how many bytes, read or written. The device is only a table of functions. */
#include "tests/tap.h"
#include "tests/unit/vk_app.h"

enum { N = 1234, ROW = 64 * 4 };

/* ---- barriers to the host's work ---- */

static const snt_vk_sync uploaded = {VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_WRITE_BIT},
                         drawn = {VK_PIPELINE_STAGE_FRAGMENT_SHADER_BIT, VK_ACCESS_SHADER_READ_BIT},
                         cleared = {VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_WRITE_BIT},
                         copied = {VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, VK_ACCESS_MEMORY_READ_BIT};
static const VkAccessFlags both = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT;

static snt_result bind_scopes(vk_app *t, snt_vk_sync before, snt_vk_sync after) {
  uint32_t x = 0, u = 0;
  (void)snt_program_find_port(t->program, "x", &x);
  (void)snt_program_find_port(t->program, "u", &u);
  const snt_vk_bind binds[] = {{.port = x, .range = {vk_app_buffer(200), 0, VK_APP_MOST * ROW}, .before = before},
                               {.port = u, .range = {vk_app_buffer(300), 0, VK_APP_MOST * ROW}, .after = after}};
  return snt_vk_binding_set(t->binding, 0, 2, 0, binds, &t->diag);
}

typedef struct slice {
  uint32_t first, count;
  bool before, after; /* an edge is in it */
} slice;

/* What was recorded of a slice: a barrier of the host's stages ahead of its first dispatch, one behind its last, or neither. */
static void check_slice(vk_app *t, const slice *s, snt_vk_sync before, snt_vk_sync after, bool memory) {
  const int64_t n = N;
  const float k = 2;
  const snt_vk_record_info info = {.head = SNT_HEAD(vk_record_info),
                                   .first_step = s->first,
                                   .step_count = s->count,
                                   .symbols = &n,
                                   .symbol_count = 1,
                                   .values = &k,
                                   .values_size = sizeof k,
                                   .values_mapped = t->values,
                                   .memory_before = memory ? before : (snt_vk_sync){0},
                                   .memory_after = memory ? after : (snt_vk_sync){0}};
  vk_fake_forget_calls();
  const snt_result r = snt_vk_record(t->binding, vk_app_commands(), &info, &t->diag);
  uint32_t ahead = 0, behind = 0, own = 0;
  for (uint32_t i = 0; i < fake.barrier_count; i++) {
    const vk_fake_barrier *b = &fake.barriers[i];
    ahead += b->from == before.stage && b->made == before.access && b->to == VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT && b->seen == both &&
             !b->behind;
    behind += b->from == VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT && b->made == VK_ACCESS_SHADER_WRITE_BIT && b->to == after.stage &&
              b->seen == after.access && b->behind == fake.dispatch_count;
    own += b->from == VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT && b->to == VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT;
  }
  tap_result(r == SNT_OK && fake.dispatch_count && ahead == s->before && behind == s->after && ahead + behind + own == fake.barrier_count,
             __FILE__, __LINE__, "steps %u and %u on, scopes of %s: %u barriers ahead, %u behind, %u of %u our own", s->first, s->count,
             memory ? "memory" : "ports", ahead, behind, own, fake.barrier_count);
}

static void test_edges(void) {
  static vk_app t;
  vk_app_finish(&t);
  vk_fake_reset();
  fake.logging = true;
  vk_app_path.exec_flags = SNT_VK_EDGE_BARRIERS;
  uint32_t steps = 0;
  const int64_t n = N;
  const bool whole = vk_app_whole(&t) == SNT_OK && snt_vk_step_count(t.exec, &n, 1, &steps) == SNT_OK;
  tap_result(whole && steps >= 3, __FILE__, __LINE__, "a run of %u steps: %s", steps, t.diag.text);
  const slice slices[] = {{0, 0, true, true}, {0, 1, true, false}, {1, 1, false, false}, {2, 0, false, true}, {2, steps - 2, false, true}};
  for (size_t i = 0; whole && i < sizeof slices / sizeof *slices; i++) {
    tap_result(bind_scopes(&t, uploaded, drawn) == SNT_OK, __FILE__, __LINE__, "scopes of ports: %s", t.diag.text);
    check_slice(&t, &slices[i], uploaded, drawn, false);
    tap_result(bind_scopes(&t, (snt_vk_sync){0}, (snt_vk_sync){0}) == SNT_OK, __FILE__, __LINE__, "no scopes of ports: %s", t.diag.text);
    check_slice(&t, &slices[i], cleared, copied, true);
  }
  vk_app_finish(&t);
  memset(&vk_app_path, 0, sizeof vk_app_path);
}

/* ---- resources of a description ---- */

/* What a run does to memory `index` or port `index`, by the dispatches so far. */
typedef struct seen {
  VkAccessFlags access;
  bool written_first;
} seen;

static bool in_memory(const vk_app *t, const snt_vk_resource_ref *r, seen *memory) {
  if (r->index >= t->need_count || !r->size || r->offset + r->size > t->needs[r->index].size) return false;
  seen *s = &memory[r->index];
  if (!s->access) s->written_first = !(r->access & VK_ACCESS_SHADER_READ_BIT);
  s->access |= r->access;
  return true;
}

/* Ports are ranges of the run's extents, memory lies within what was asked for; `addresses`: each buffer's place among the constants is its own. */
static bool right_dispatch(const vk_app *t, const snt_vk_description *d, const snt_vk_dispatch_desc *a, bool addresses, seen *ports,
                           seen *memory) {
  uint32_t bound = 0;
  for (uint32_t i = 0; i < a->resource_count; i++) {
    const snt_vk_resource_ref *r = &d->resources[a->resource_first + i];
    bound += !r->address_at;
    if (addresses != (r->address_at != 0) || r->address_at + 8 * addresses > a->push_size) return false;
    for (uint32_t k = 0; addresses && k < i; k++)
      if (d->resources[a->resource_first + k].address_at == r->address_at) return false;
    if (!(r->access & both) || (r->access & ~both)) return false;
    if (!r->is_port && !in_memory(t, r, memory)) return false;
    if (r->is_port && (r->size != N * ROW || r->offset)) return false;
    if (r->is_port) ports[r->index].access |= r->access;
  }
  return bound == d->pipelines[a->pipeline].binding_count;
}

static void test_resources(const char *path, bool addresses) {
  static vk_app t;
  static _Alignas(16) char storage[1 << 16];
  static const int64_t most = VK_APP_MOST;
  const int64_t n = N;
  const snt_vk_describe_info info = {.head = SNT_HEAD(vk_describe_info), .max_symbols = &most, .symbols = &n, .symbol_count = 1};
  const snt_vk_description *d = NULL;
  size_t size = sizeof storage;
  seen ports[8] = {{0}}, memory[8] = {{0}};
  vk_app_finish(&t);
  vk_fake_reset();
  bool right = vk_app_whole(&t) == SNT_OK && snt_vk_describe(t.exec, &info, storage, &size, &d, &t.diag) == SNT_OK;
  for (uint32_t i = 0; right && i < d->dispatch_count; i++) right = right_dispatch(&t, d, &d->dispatches[i], addresses, ports, memory);
  tap_result(right, __FILE__, __LINE__, "%s: every resource is a port's range or one of the memory asked for: %s", path, t.diag.text);
  uint32_t x = 0, u = 0;
  (void)snt_program_find_port(t.program, "x", &x);
  (void)snt_program_find_port(t.program, "u", &u);
  tap_result(ports[x].access == VK_ACCESS_SHADER_READ_BIT && ports[u].access & VK_ACCESS_SHADER_WRITE_BIT, __FILE__, __LINE__,
             "%s: x is read alone, u is written", path);
  for (uint32_t i = 0; right && i < t.need_count; i++) {
    static const VkAccessFlags expected[] = {[SNT_MEM_CONSTANT] = VK_ACCESS_SHADER_READ_BIT,
                                             [SNT_MEM_STATE] = both,
                                             [SNT_MEM_SCRATCH] = both,
                                             [SNT_MEM_VALUES] = VK_ACCESS_SHADER_READ_BIT,
                                             [SNT_MEM_STAGING] = 0};
    const uint32_t class = t.needs[i].memory_class;
    tap_result(memory[i].access == expected[class] && (class != SNT_MEM_SCRATCH || memory[i].written_first), __FILE__, __LINE__,
               "%s: memory of class %u: access %u%s", path, class, memory[i].access, memory[i].written_first ? ", written first" : "");
  }
  vk_app_finish(&t);
}

static const VkPhysicalDeviceBufferDeviceAddressFeatures address_features = {
    .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_BUFFER_DEVICE_ADDRESS_FEATURES, .bufferDeviceAddress = VK_TRUE};
static const VkDeviceCreateInfo with_addresses = {.pNext = &address_features};

int main(void) {
  test_edges();
  test_resources("descriptors", false);
  vk_app_path.created_with = &with_addresses, vk_app_path.attach_flags = SNT_VK_ADDRESSES;
  test_resources("addresses", true);
  return tap_done();
}
