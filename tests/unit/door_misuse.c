/* What each call of the door says to a host that gives it something wrong: the result, words that name what is wrong, nothing made and no command recorded,
   with a diagnosis and without. The device is only a table of functions. */
#include "tests/tap.h"
#include "tests/unit/vk_app.h"

/* Arguments of every call, all of them right. A test spoils one. */
typedef struct requests {
  vk_app *t;
  const snt_exec *exec;
  snt_binding *bound;
  VkCommandBuffer commands;
  int64_t most, n;
  uint32_t slot, bind_count, stride, ports[4], constant; /* ports: x, k, s, u; constant: its place among the ranges */
  snt_vk_range ranges[8];
  snt_vk_bind binds[2];
  snt_vk_binding_info binding;
  snt_vk_record_info record;
  snt_vk_init_info init;
  snt_vk_describe_info describe;
  char *storage;
  size_t storage_size;
  float k;
  char staged[64];
} requests;
typedef snt_result (*door_call)(requests *, snt_diag *);

static snt_result create(requests *q, snt_diag *diag) {
  snt_binding *made = NULL;
  const snt_result r = snt_vk_binding_create(q->exec, &q->binding, &made, diag);
  const bool none = !made;
  snt_binding_destroy(made);
  return r != SNT_OK && !none ? SNT_E_INTERNAL : r;
}
static snt_result set(requests *q, snt_diag *diag) {
  return snt_vk_binding_set(q->bound, q->slot, q->bind_count, q->stride, q->bind_count ? q->binds : NULL, diag);
}
static snt_result record(requests *q, snt_diag *diag) { return snt_vk_record(q->bound, q->commands, &q->record, diag); }
static snt_result init(requests *q, snt_diag *diag) {
  uint64_t next = 0;
  return snt_vk_record_init(q->exec, q->commands, &q->init, &next, diag);
}
static snt_result describe(requests *q, snt_diag *diag) {
  const snt_vk_description *out = NULL;
  size_t size = q->storage_size;
  return snt_vk_describe(q->exec, &q->describe, q->storage, &size, &out, diag);
}

static void fill_binds(requests *q) {
  q->binds[0] = (snt_vk_bind){.port = q->ports[0], .range = {vk_app_buffer(200), 0, VK_APP_MOST * 64 * 4}};
  q->binds[1] = (snt_vk_bind){.port = q->ports[3], .range = {vk_app_buffer(300), 0, VK_APP_MOST * 64 * 4}};
}

/* Infos point into the struct itself, so it is filled where it stays. */
static void fill(requests *q, vk_app *t) {
  static const char *const names[] = {"x", "k", "s", "u"};
  static char storage[1 << 18] __attribute__((aligned(16)));
  *q = (requests){
      .t = t, .exec = t->exec, .bound = t->binding, .commands = vk_app_commands(), .most = VK_APP_MOST, .n = 100, .bind_count = 2, .k = 2};
  for (int i = 0; i < 4; i++) (void)snt_program_find_port(t->program, names[i], &q->ports[i]);
  memcpy(q->ranges, t->ranges, sizeof q->ranges);
  while (q->constant < t->need_count && t->needs[q->constant].memory_class != SNT_MEM_CONSTANT) q->constant++;
  fill_binds(q);
  q->storage = storage, q->storage_size = sizeof storage;
  q->binding = (snt_vk_binding_info){
      .head = SNT_HEAD(vk_binding_info), .max_symbols = &q->most, .symbol_count = 1, .slot_count = VK_APP_SLOTS};
  q->binding.memory_count = t->need_count, q->binding.memory = q->ranges;
  q->record = (snt_vk_record_info){.head = SNT_HEAD(vk_record_info), .symbols = &q->n, .symbol_count = 1, .values = &q->k};
  q->record.values_size = sizeof q->k, q->record.values_mapped = t->values;
  q->init = (snt_vk_init_info){.head = SNT_HEAD(vk_init_info), .constant_count = 1, .constant = &q->ranges[q->constant]};
  q->init.staging = (snt_vk_range){vk_app_buffer(400), 0, sizeof q->staged}, q->init.staging_mapped = q->staged;
  q->describe = (snt_vk_describe_info){.head = SNT_HEAD(vk_describe_info), .max_symbols = &q->most, .symbols = &q->n, .symbol_count = 1};
}

static void refuse(requests *q, door_call call, snt_result expected, const char *says, const char *spoilt, int line) {
  snt_diag diag = {.head = SNT_HEAD(diag)};
  const int64_t alive = fake.alive;
  const long long bytes = atomic_load(&vk_app_heap.bytes);
  fake.dispatch_count = 0;
  const snt_result r = call(q, &diag), bare = call(q, NULL);
  const bool left = fake.alive != alive || atomic_load(&vk_app_heap.bytes) != bytes || fake.dispatch_count;
  tap_result(r == expected && bare == expected && strstr(diag.text, says) && !left, __FILE__, line, "%s: %d, %s%s", spoilt, r, diag.text,
             left ? "; something is left" : "");
}
#define REFUSED(call, expected, says, ...)                               \
  do {                                                                   \
    static requests q;                                                   \
    fill(&q, t);                                                         \
    __VA_ARGS__;                                                         \
    refuse(&q, call, expected, says, #call ": " #__VA_ARGS__, __LINE__); \
  } while (0)

static void test_right(vk_app *t) {
  static const struct {
    const char *name;
    door_call call;
  } calls[] = {{"create", create}, {"set", set}, {"record", record}, {"init", init}, {"describe", describe}};
  static requests q;
  for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
    fill(&q, t);
    const snt_result r = calls[i].call(&q, &t->diag);
    tap_result(r == SNT_OK, __FILE__, __LINE__, "%s takes what is right: %s", calls[i].name, r == SNT_OK ? "yes" : t->diag.text);
  }
}

static void test_create(vk_app *t) {
  REFUSED(create, SNT_E_ARG, "an exec of an attached device", q.exec = NULL);
  REFUSED(create, SNT_E_STRUCT, "", q.binding.head.size -= 8);
  REFUSED(create, SNT_E_ARG, "0 slots", q.binding.slot_count = 0);
  REFUSED(create, SNT_E_ARG, "257 slots", q.binding.slot_count = 257);
  REFUSED(create, SNT_E_ARG, "0 symbols given; the program has 1", q.binding.symbol_count = 0);
  REFUSED(create, SNT_E_ARG, "symbols given", q.binding.max_symbols = NULL);
  REFUSED(create, SNT_E_SHAPE, "n = 4097 is outside its range 1 to 4096", q.most = 4097);
  REFUSED(create, SNT_E_ARG, "0 memory ranges are given", q.binding.memory_count = 0);
  REFUSED(create, SNT_E_ARG, "memory ranges are given", q.binding.memory = NULL);
  REFUSED(create, SNT_E_ARG, "in whole rows", q.binding.memory_stride = 8);
  REFUSED(create, SNT_E_ARG, "needs a buffer", q.ranges[0].buffer = VK_NULL_HANDLE);
  REFUSED(create, SNT_E_ARG, "needs a buffer with", q.ranges[0].size -= 4);
  REFUSED(create, SNT_E_ARG, "at a multiple of", q.ranges[0].offset = 4);
}

static void test_set(vk_app *t) {
  REFUSED(set, SNT_E_ARG, "a binding and resources are needed", q.bound = NULL);
  REFUSED(set, SNT_E_ARG, "in whole rows", q.stride = 8);
  REFUSED(set, SNT_E_ARG, "slot 8 of 8", q.slot = VK_APP_SLOTS);
  REFUSED(set, SNT_E_ARG, "no port 99", q.binds[1].port = 99);
  REFUSED(set, SNT_E_ARG, "reserved is not 0", q.binds[1].reserved = 1);
  REFUSED(set, SNT_E_ARG, "port k is a value or a state", q.binds[1].port = q.ports[1]);
  REFUSED(set, SNT_E_ARG, "port s is a value or a state", q.binds[1].port = q.ports[2]);
  REFUSED(set, SNT_E_ARG, "port x: an access without a stage", q.binds[0].before.access = VK_ACCESS_SHADER_WRITE_BIT);
  REFUSED(set, SNT_E_ARG, "port u: an access without a stage", q.binds[1].after.access = VK_ACCESS_SHADER_READ_BIT);
  REFUSED(set, SNT_E_ARG, "port x is a buffer: a range is needed", q.binds[0].range.buffer = VK_NULL_HANDLE);
  REFUSED(set, SNT_E_ARG, "port x is a buffer: a range is needed", q.binds[0].range.size = 0);
  REFUSED(set, SNT_E_ARG, "port x: 1048576 bytes at 4; whole words at a multiple of 256", q.binds[0].range.offset = 4);
  REFUSED(set, SNT_E_ARG, "whole words", q.binds[0].range.size -= 2);
  tap_result(snt_vk_binding_set(t->binding, 0, 1, 0, NULL, NULL) == SNT_E_ARG, __FILE__, __LINE__, "set: no resources");
  tap_result(snt_vk_binding_retire(NULL, 0) == SNT_E_ARG, __FILE__, __LINE__, "retire: no binding");
  tap_result(snt_vk_binding_retire(t->binding, VK_APP_SLOTS) == SNT_E_ARG, __FILE__, __LINE__, "retire: no such slot");
}

static void test_record(vk_app *t) {
  REFUSED(record, SNT_E_ARG, "a binding and what to record are needed", q.bound = NULL);
  REFUSED(record, SNT_E_STRUCT, "", q.record.head.size -= 8);
  REFUSED(record, SNT_E_ARG, "no command buffer", q.commands = NULL);
  REFUSED(record, SNT_E_ARG, "slot 8 of 8", q.record.slot = VK_APP_SLOTS);
  REFUSED(record, SNT_E_ARG, "0 symbols given", q.record.symbol_count = 0);
  REFUSED(record, SNT_E_ARG, "no symbols", q.record.symbols = NULL);
  REFUSED(record, SNT_E_SHAPE, "n = 0 is outside its range", q.n = 0);
  REFUSED(record, SNT_E_ARG, "3 bytes of values; the ports take 4", q.record.values_size = 3);
  REFUSED(record, SNT_E_ARG, "without the mapped VALUES range", q.record.values_mapped = NULL);
  REFUSED(record, SNT_E_ARG, "steps 99 and on", q.record.first_step = 99);
  REFUSED(record, SNT_E_ARG, "99 of them", q.record.step_count = 99);
  REFUSED(record, SNT_E_ARG, "without SNT_VK_EDGE_BARRIERS", q.record.memory_after.stage = VK_PIPELINE_STAGE_TRANSFER_BIT);
}

static void test_init(vk_app *t) {
  const snt_vk_range odd = {vk_app_buffer(500), 2, 64};
  uint64_t next;
  REFUSED(init, SNT_E_ARG, "an exec of an attached device", q.exec = NULL);
  REFUSED(init, SNT_E_STRUCT, "", q.init.head.size -= 8);
  REFUSED(init, SNT_E_ORDER, "it is done already", q.init.cursor = SNT_VK_INIT_DONE);
  REFUSED(init, SNT_E_ARG, "no CONSTANT ranges", q.init.constant = NULL);
  REFUSED(init, SNT_E_ARG, "no CONSTANT ranges in whole rows", q.init.constant_stride = 8);
  REFUSED(init, SNT_E_ARG, "0 CONSTANT ranges are too few", q.init.constant_count = 0);
  REFUSED(init, SNT_E_ARG, "CONSTANT range 0 is too small", q.ranges[q.constant].size -= 256);
  REFUSED(init, SNT_E_ARG, "a mapped staging range of 16 bytes", q.init.staging.buffer = VK_NULL_HANDLE);
  REFUSED(init, SNT_E_ARG, "a mapped staging range of 16 bytes", q.init.staging_mapped = NULL);
  REFUSED(init, SNT_E_ARG, "a mapped staging range of 16 bytes", q.init.staging.size = 15);
  REFUSED(init, SNT_E_ARG, "a command buffer is needed", q.commands = NULL);
  REFUSED(init, SNT_E_ARG, "no STATE ranges", q.init.state_count = 1);
  REFUSED(init, SNT_E_ARG, "no STATE ranges in whole rows", q.init.state = &odd, q.init.state_count = 1, q.init.state_stride = 8);
  REFUSED(init, SNT_E_ARG, "STATE range 0 is not in whole words", q.init.state = &odd, q.init.state_count = 1);
  tap_result(snt_vk_record_init(t->exec, vk_app_commands(), NULL, &next, NULL) == SNT_E_ARG, __FILE__, __LINE__, "init: no ranges");
}

static void test_describe(vk_app *t) {
  REFUSED(describe, SNT_E_ARG, "an exec of an attached or planned device", q.exec = NULL);
  REFUSED(describe, SNT_E_STRUCT, "", q.describe.head.size -= 8);
  REFUSED(describe, SNT_E_ARG, "0 symbols given", q.describe.symbol_count = 0);
  REFUSED(describe, SNT_E_ARG, "symbols given", q.describe.symbols = NULL);
  REFUSED(describe, SNT_E_SHAPE, "n = 5000", q.most = 5000);
  REFUSED(describe, SNT_E_SHAPE, "n = 5000", q.n = 5000);
  REFUSED(describe, SNT_INCOMPLETE, "", q.storage_size = 16);
  REFUSED(describe, SNT_E_ARG, "begins at no multiple of 16", q.storage += 8);
}

/* A binding of few symbols, whose ports are set too small and then not at all. */
static void test_unset(vk_app *t) {
  static requests q;
  snt_binding *made = NULL;
  fill(&q, t);
  q.most = 50;
  const snt_result r = snt_vk_binding_create(q.exec, &q.binding, &made, &t->diag);
  tap_result(r == SNT_OK, __FILE__, __LINE__, "a binding of 50: %s", r == SNT_OK ? "made" : t->diag.text);
  q.bound = made;
  refuse(&q, record, SNT_E_ARG, "n = 100 is above the binding's maximum of 50", "record: n = 100", __LINE__);
  q.n = 50;
  refuse(&q, record, SNT_E_ORDER, "nothing is bound to port x", "record: before anything is bound", __LINE__);
  q.binds[0].range.size = 1024;
  tap_result(set(&q, &t->diag) == SNT_OK, __FILE__, __LINE__, "a short range is bound");
  refuse(&q, record, SNT_E_ARG, "port x needs 12800 bytes; 1024 are bound", "record: with a short range", __LINE__);
  snt_binding_destroy(made);
}

/* Calls that have no diagnosis, or another kind of output. */
static void test_lists(vk_app *t) {
  static const int64_t most = VK_APP_MOST, above = VK_APP_MOST + 1;
  uint32_t count = 0, steps = 0;
  VkDeviceSize bytes;
  tap_result(snt_vk_exec_ports(NULL, &count, 0, NULL) == SNT_E_ARG, __FILE__, __LINE__, "ports: no exec");
  tap_result(snt_vk_exec_ports(t->exec, NULL, 0, NULL) == SNT_E_ARG, __FILE__, __LINE__, "ports: no count");
  tap_result(snt_vk_exec_memory(NULL, &most, 1, &count, 0, NULL) == SNT_E_ARG, __FILE__, __LINE__, "memory: no exec");
  tap_result(snt_vk_exec_memory(t->exec, &most, 0, &count, 0, NULL) == SNT_E_ARG, __FILE__, __LINE__, "memory: no symbols");
  tap_result(snt_vk_exec_memory(t->exec, &above, 1, &count, 0, NULL) == SNT_E_SHAPE, __FILE__, __LINE__, "memory: n too large");
  tap_result(snt_vk_port_bytes(t->exec, 99, &most, 1, &bytes) == SNT_E_ARG, __FILE__, __LINE__, "port bytes: no such port");
  tap_result(snt_vk_port_bytes(t->exec, 0, &above, 1, &bytes) == SNT_E_SHAPE, __FILE__, __LINE__, "port bytes: n too large");
  tap_result(snt_vk_port_bytes(t->exec, 0, &most, 1, NULL) == SNT_E_ARG, __FILE__, __LINE__, "port bytes: nowhere to put them");
  tap_result(snt_vk_step_count(NULL, &most, 1, &steps) == SNT_E_ARG, __FILE__, __LINE__, "step count: no exec");
  tap_result(snt_vk_step_count(t->exec, &above, 1, &steps) == SNT_E_SHAPE, __FILE__, __LINE__, "step count: n too large");
  tap_result(snt_exec_run_job(t->exec, 99, NULL) == SNT_E_ARG, __FILE__, __LINE__, "job: no such job");
  tap_result(snt_vk_device_notify_lost(NULL) == SNT_E_ARG, __FILE__, __LINE__, "lost: no device");
}

/* Memory that overlaps: only a device that was attached to be looked after says so. */
static void test_overlap(vk_app *t) {
  REFUSED(create, SNT_E_ARG, " overlaps ", q.ranges[1] = q.ranges[0], q.ranges[1].size = q.ranges[0].size = (VkDeviceSize)1 << 30);
  REFUSED(set, SNT_E_ARG, "port u overlaps memory range 0", q.binds[1].range.buffer = q.ranges[0].buffer);
}

/* A slot counts as pending from its recording until its fence has passed. */
static void test_pending(vk_app *t) {
  REFUSED(set, SNT_E_ARG, "slot 8 of 8", q.slot = VK_APP_SLOTS);
  tap_result(vk_app_record(t, 1, 100, &t->diag) == SNT_OK, __FILE__, __LINE__, "slot 1 is recorded");
  REFUSED(set, SNT_E_ORDER, "slot 1 is pending", q.slot = 1);
  tap_result(vk_app_set_slot(t, 2) == SNT_OK, __FILE__, __LINE__, "slot 2, which is not, is set");
  tap_result(snt_vk_binding_retire(t->binding, 1) == SNT_OK && vk_app_set_slot(t, 1) == SNT_OK, __FILE__, __LINE__,
             "slot 1, when it has retired: %s", t->diag.text);
}

static void test_before_jobs(vk_app *t) {
  snt_result r = vk_app_attach(t);
  if (r == SNT_OK) r = vk_app_compile(t, t->device, &t->program);
  if (r == SNT_OK) r = vk_app_exec(t);
  if (r == SNT_OK) r = vk_app_bind(t);
  if (r == SNT_OK) r = vk_app_set_slot(t, 0);
  tap_result(r == SNT_OK, __FILE__, __LINE__, "an application whose jobs have not run: %s", t->diag.text);
  REFUSED(record, SNT_E_ORDER, "has no pipeline yet: its job is to be run", (void)q.slot);
}

static void test_lost(vk_app *t) {
  tap_result(snt_vk_device_notify_lost(t->device) == SNT_OK, __FILE__, __LINE__, "the device is lost");
  REFUSED(create, SNT_E_DEVICE_LOST, "vulkan:host is lost", (void)q.slot);
  REFUSED(set, SNT_E_DEVICE_LOST, "vulkan:host is lost", (void)q.slot);
  REFUSED(record, SNT_E_DEVICE_LOST, "vulkan:host is lost", (void)q.slot);
  REFUSED(init, SNT_E_DEVICE_LOST, "vulkan:host is lost", (void)q.slot);
  snt_exec *own = t->exec;
  const snt_result r = vk_app_exec(t);
  tap_result(r == SNT_E_DEVICE_LOST && t->exec == own, __FILE__, __LINE__, "exec: %d, %s", r, t->diag.text);
}

static void with_app(bool looked_after, void (*const *tests)(vk_app *), size_t count) {
  static vk_app t;
  vk_app_finish(&t);
  vk_fake_reset();
  vk_app_path.attach_flags = looked_after ? SNT_VK_ATTACH_VALIDATE : 0;
  const snt_result r = vk_app_whole(&t);
  tap_result(r == SNT_OK, __FILE__, __LINE__, "an application: %s", r == SNT_OK ? "made" : t.diag.text);
  fake.logging = true;
  (void)snt_vk_binding_retire(t.binding, 0);
  for (size_t i = 0; i < count; i++) tests[i](&t);
  vk_app_finish(&t);
  tap_result(!fake.alive && !atomic_load(&vk_app_heap.bytes), __FILE__, __LINE__, "everything is given back");
}

int main(void) {
  static void (*const plain[])(vk_app *) = {test_right,    test_create, test_set,   test_record, test_init,
                                            test_describe, test_unset,  test_lists, test_lost};
  static void (*const looked_after[])(vk_app *) = {test_overlap, test_pending};
  static vk_app unbuilt;
  with_app(false, plain, sizeof plain / sizeof *plain);
  with_app(true, looked_after, sizeof looked_after / sizeof *looked_after);
  vk_app_path.attach_flags = 0;
  vk_app_finish(&unbuilt);
  vk_fake_reset();
  test_before_jobs(&unbuilt);
  vk_app_finish(&unbuilt);
  return tap_done();
}
