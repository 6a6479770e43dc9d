/* The door against a device that is only a table of functions: which entry points it asks for, which it calls when, that recording takes no
   memory, that describe says what record does, that every call may fail, and how long a dispatch takes to record. */
#include "tests/tap.h"
#include "tests/unit/vk_app.h"
#include <pthread.h>
#include <time.h>

enum { THREADS = 8 };

/* ---- which calls, when ---- */

/* Everything that was called since the last look is in the list. */
static void only(const char *what, const char *const *names, size_t count) {
  uint32_t listed = 0;
  for (size_t i = 0; i < count; i++) {
    listed += vk_fake_calls(names[i]);
    if (!vk_fake_calls(names[i])) tap_result(false, __FILE__, __LINE__, "%s: %s was not called", what, names[i]);
  }
  tap_result(listed == vk_fake_all_calls(), __FILE__, __LINE__, "%s: %u calls, all of them stated", what, listed);
  vk_fake_forget_calls();
}
#define ONLY(what, ...)                              \
  do {                                               \
    static const char *const list[] = {__VA_ARGS__}; \
    only(what, list, sizeof list / sizeof *list);    \
  } while (0)

static const char *const stated[] = {"vkGetPhysicalDeviceProperties2",
                                     "vkGetDeviceProcAddr",
                                     "vkCreateShaderModule",
                                     "vkDestroyShaderModule",
                                     "vkCreateDescriptorSetLayout",
                                     "vkDestroyDescriptorSetLayout",
                                     "vkCreatePipelineLayout",
                                     "vkDestroyPipelineLayout",
                                     "vkCreateComputePipelines",
                                     "vkDestroyPipeline",
                                     "vkCreateDescriptorPool",
                                     "vkDestroyDescriptorPool",
                                     "vkAllocateDescriptorSets",
                                     "vkUpdateDescriptorSets",
                                     "vkCreateSampler",
                                     "vkDestroySampler",
                                     "vkCreateBufferView",
                                     "vkDestroyBufferView",
                                     "vkCmdBindPipeline",
                                     "vkCmdBindDescriptorSets",
                                     "vkCmdPushConstants",
                                     "vkCmdDispatch",
                                     "vkCmdPipelineBarrier",
                                     "vkCmdCopyBuffer",
                                     "vkCmdFillBuffer",
                                     "vkCmdWriteTimestamp"};

static void test_calls(void) {
  static vk_app t;
  vk_app_finish(&t);
  vk_fake_reset();
  fake.logging = true;
  tap_result(vk_app_attach(&t) == SNT_OK, __FILE__, __LINE__, "attached to the least Vulkan 1.1");
  uint32_t foreign = 0;
  for (uint32_t i = 0; i < fake.asked_count; i++) {
    bool known = false;
    for (size_t k = 0; k < sizeof stated / sizeof *stated; k++) known = known || !strcmp(stated[k], fake.asked[i]);
    if (!known) foreign++, tap_diag("asked for %s", fake.asked[i]);
  }
  tap_result(!foreign, __FILE__, __LINE__, "it asks for %u entry points: none submits, waits or allocates memory", fake.asked_count);
  tap_result(!vk_fake_all_calls() && !fake.alive, __FILE__, __LINE__, "attaching makes nothing");
  tap_result(vk_app_compile(&t, t.device, &t.program) == SNT_OK, __FILE__, __LINE__, "compiled: %s", t.diag.text);
  tap_result(!vk_fake_all_calls(), __FILE__, __LINE__, "compiling calls no Vulkan");
  tap_result(snt_exec_create(t.device, t.program, NULL, &t.exec, &t.diag) == SNT_OK, __FILE__, __LINE__, "exec: %s", t.diag.text);
  ONLY("exec", "vkCreateDescriptorSetLayout", "vkCreatePipelineLayout");
  tap_result(vk_app_run_jobs(&t) == SNT_OK, __FILE__, __LINE__, "jobs");
  ONLY("jobs", "vkCreateShaderModule", "vkCreateComputePipelines", "vkDestroyShaderModule");
  tap_result(vk_app_bind(&t) == SNT_OK, __FILE__, __LINE__, "binding: %s", t.diag.text);
  ONLY("binding", "vkCreateDescriptorPool", "vkAllocateDescriptorSets", "vkUpdateDescriptorSets");
  long long taken = atomic_load(&vk_app_heap.calls);
  bool ok = true;
  for (uint32_t s = 0; s < VK_APP_SLOTS; s++) ok = ok && vk_app_set_slot(&t, s) == SNT_OK;
  tap_result(ok && atomic_load(&vk_app_heap.calls) == taken, __FILE__, __LINE__, "setting slots takes no memory");
  ONLY("setting slots", "vkUpdateDescriptorSets");
  ok = vk_app_record(&t, 0, 100, &t.diag) == SNT_OK && vk_app_record(&t, 0, 4000, &t.diag) == SNT_OK;
  tap_result(ok && atomic_load(&vk_app_heap.calls) == taken, __FILE__, __LINE__, "recording takes no memory");
  ONLY("recording", "vkCmdBindPipeline", "vkCmdBindDescriptorSets", "vkCmdPushConstants", "vkCmdDispatch", "vkCmdPipelineBarrier");
  for (int i = 0; ok && i < 10000; i++) {
    const uint32_t slot = (uint32_t)i % VK_APP_SLOTS;
    ok = vk_app_set_slot(&t, slot) == SNT_OK && vk_app_record(&t, slot, 1 + i % VK_APP_MOST, &t.diag) == SNT_OK;
  }
  tap_result(ok && atomic_load(&vk_app_heap.calls) == taken, __FILE__, __LINE__, "ten thousand frames take no memory");
  vk_app_finish(&t);
  tap_result(!fake.alive && !atomic_load(&vk_app_heap.bytes), __FILE__, __LINE__, "everything is given back (%d objects, %d bytes left)",
             (int)fake.alive, (int)atomic_load(&vk_app_heap.bytes));
}

/* The paths that a host may have enabled: other calls, still all of them stated, and no memory. */
static void test_path(const char *name, void (*check)(vk_app *)) {
  static vk_app t;
  vk_app_finish(&t);
  vk_fake_reset();
  fake.logging = true;
  tap_result(vk_app_whole(&t) == SNT_OK, __FILE__, __LINE__, "%s: %s", name, t.diag.text);
  vk_fake_forget_calls();
  const long long taken = atomic_load(&vk_app_heap.calls);
  check(&t);
  tap_result(atomic_load(&vk_app_heap.calls) == taken, __FILE__, __LINE__, "%s: setting and recording take no memory", name);
  vk_app_finish(&t);
  tap_result(!fake.alive && !atomic_load(&vk_app_heap.bytes), __FILE__, __LINE__, "%s: everything is given back", name);
}

static void check_pushed(vk_app *t) {
  tap_result(vk_app_set_slot(t, 0) == SNT_OK && !vk_fake_all_calls(), __FILE__, __LINE__, "setting a slot that is pushed calls nothing");
  tap_result(vk_app_record(t, 0, 100, &t->diag) == SNT_OK && vk_app_set_slot(t, 0) == SNT_OK, __FILE__, __LINE__,
             "recorded, and set again at once");
  ONLY("recording", "vkCmdBindPipeline", "vkCmdPushDescriptorSetKHR", "vkCmdPushConstants", "vkCmdDispatch", "vkCmdPipelineBarrier");
}

/* The fake's address of buffer n is n << 32: those of slot 2 stand among the constants of some dispatch. */
static void check_addressed(vk_app *t) {
  tap_result(vk_app_set_slot(t, 2) == SNT_OK, __FILE__, __LINE__, "set: %s", t->diag.text);
  ONLY("setting a slot", "vkGetBufferDeviceAddressKHR");
  tap_result(vk_app_record(t, 2, 100, &t->diag) == SNT_OK, __FILE__, __LINE__, "recorded: %s", t->diag.text);
  uint32_t x = 0, u = 0;
  for (uint32_t i = 0; i < fake.dispatch_count; i++)
    for (uint32_t w = 1; w < fake.dispatches[i].push_words; w += 2) {
      x += fake.dispatches[i].push[w] == 202 && !fake.dispatches[i].push[w - 1];
      u += fake.dispatches[i].push[w] == 302 && !fake.dispatches[i].push[w - 1];
    }
  tap_result(x == 1 && u == 1, __FILE__, __LINE__, "each port's address goes to the one dispatch that uses it (%u, %u)", x, u);
  ONLY("recording", "vkCmdBindPipeline", "vkCmdPushConstants", "vkCmdDispatch", "vkCmdPipelineBarrier");
  const snt_vk_bind odd = {.port = 0, .range = {vk_app_buffer(7), 8, VK_APP_MOST * 64 * 4}};
  tap_result(snt_vk_binding_set(t->binding, 2, 1, 0, &odd, &t->diag) == SNT_E_ARG, __FILE__, __LINE__, "refused: %s", t->diag.text);
}

/* Descriptors that are pushed; addresses of buffers. */
static const char *const push_extension[] = {VK_KHR_PUSH_DESCRIPTOR_EXTENSION_NAME};
static const VkPhysicalDeviceBufferDeviceAddressFeatures address_features = {
    .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_BUFFER_DEVICE_ADDRESS_FEATURES, .bufferDeviceAddress = VK_TRUE};
static const VkDeviceCreateInfo with_push = {.enabledExtensionCount = 1, .ppEnabledExtensionNames = push_extension};
static const VkDeviceCreateInfo with_addresses = {.pNext = &address_features};

static void test_failures(void);
static void measure(const char *what);
static void test_paths(void) {
  vk_app_path.created_with = &with_push, vk_app_path.exec_flags = SNT_VK_PUSH_DESCRIPTORS;
  test_path("descriptors are pushed", check_pushed);
  test_failures();
  measure("descriptors are pushed");
  vk_app_path.created_with = &with_addresses, vk_app_path.exec_flags = 0, vk_app_path.attach_flags = SNT_VK_ADDRESSES;
  test_path("addresses of buffers", check_addressed);
  test_failures();
  measure("addresses of buffers");
  memset(&vk_app_path, 0, sizeof vk_app_path);
}

/* ---- describe says what record does ---- */

static snt_result plan(vk_app *t, snt_device **device, snt_program **program, snt_exec **exec) {
  VkPhysicalDeviceSubgroupProperties subgroups = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES};
  VkPhysicalDeviceMaintenance3Properties sizes = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES, .pNext = &subgroups};
  VkPhysicalDeviceProperties2 properties = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = &sizes};
  vk_fake_properties(&properties);
  const snt_vk_caps caps = {.head = SNT_HEAD(vk_caps), .properties = &properties};
  snt_result r = snt_vk_plan(t->context, &caps, device, &t->diag);
  if (r == SNT_OK) r = vk_app_compile(t, *device, program);
  if (r == SNT_OK) r = snt_exec_create(*device, *program, NULL, exec, &t->diag);
  return r;
}

static void test_describe(void) {
  static vk_app t;
  static const int64_t most = VK_APP_MOST;
  const int64_t n = 1234;
  const snt_vk_describe_info info = {.head = SNT_HEAD(vk_describe_info), .max_symbols = &most, .symbols = &n, .symbol_count = 1};
  snt_device *device = NULL;
  snt_program *program = NULL;
  snt_exec *exec = NULL;
  const snt_vk_description *d = NULL;
  size_t size = 0;
  vk_app_finish(&t);
  vk_fake_reset();
  tap_result(vk_app_whole(&t) == SNT_OK, __FILE__, __LINE__, "an application: %s", t.diag.text);
  vk_fake_forget_calls();
  fake.logging = true;
  (void)vk_app_record(&t, 3, n, &t.diag);
  tap_result(plan(&t, &device, &program, &exec) == SNT_OK, __FILE__, __LINE__, "the same device, only planned: %s", t.diag.text);
  const uint32_t before = vk_fake_all_calls();
  const snt_result asked = snt_vk_describe(exec, &info, NULL, &size, NULL, &t.diag);
  tap_result(asked == SNT_INCOMPLETE && size, __FILE__, __LINE__, "%zu bytes of description", size);
  void *storage = aligned_alloc(16, (size + 15) / 16 * 16);
  const snt_result r = snt_vk_describe(exec, &info, storage, &size, &d, &t.diag);
  tap_result(r == SNT_OK && vk_fake_all_calls() == before, __FILE__, __LINE__, "described without a Vulkan call");
  bool same = r == SNT_OK && d->dispatch_count == fake.dispatch_count;
  for (uint32_t i = 0; same && i < d->dispatch_count; i++) {
    const snt_vk_dispatch_desc *a = &d->dispatches[i];
    const vk_fake_dispatch *b = &fake.dispatches[i];
    same = !memcmp(a->groups, b->grid, sizeof b->grid) && a->push_size == b->push_words * 4 && !memcmp(a->push, b->push, a->push_size) &&
           a->barrier == b->barriers && a->pipeline < d->pipeline_count && a->resource_first + a->resource_count <= d->resource_count;
  }
  tap_result(same, __FILE__, __LINE__, "the same %u dispatches, constants and barriers as recorded", fake.dispatch_count);
  tap_result(r == SNT_OK && d->init_count == 1 && d->init[0].size == 64 * 64 * 4 && d->init[0].data, __FILE__, __LINE__,
             "the weights are an upload of the description");
  tap_result(snt_exec_run_job(exec, 0, &t.diag) == SNT_E_UNSUPPORTED, __FILE__, __LINE__, "a planned device makes no pipelines: %s",
             t.diag.text);
  free(storage);
  snt_exec_destroy(exec);
  snt_program_destroy(program);
  snt_device_destroy(device);
  vk_app_finish(&t);
}

/* ---- every call fails once ---- */

static void test_failures(void) {
  static const struct {
    VkResult code;
    snt_result expected;
  } kinds[] = {{VK_ERROR_OUT_OF_DEVICE_MEMORY, SNT_E_DEVICE_MEM}, {VK_ERROR_DEVICE_LOST, SNT_E_DEVICE_LOST}};
  static vk_app t;
  vk_app_finish(&t);
  vk_fake_reset();
  (void)vk_app_whole(&t);
  const uint32_t calls = fake.fallible;
  vk_app_finish(&t);
  for (int k = 0; k < 2; k++) {
    uint32_t wrong = 0;
    for (uint32_t at = 1; at <= calls; at++) {
      vk_fake_reset();
      fake.fail_at = at, fake.fail_with = kinds[k].code;
      const snt_result r = vk_app_whole(&t);
      if (r != kinds[k].expected && !wrong++) tap_diag("call %u: %d", at, r);
      vk_app_finish(&t);
      if ((fake.alive || atomic_load(&vk_app_heap.bytes)) && !wrong++)
        tap_diag("call %u: %d objects, %d bytes left", at, (int)fake.alive, (int)atomic_load(&vk_app_heap.bytes));
    }
    tap_result(!wrong, __FILE__, __LINE__, "each of %u Vulkan calls fails with %d: the right result, nothing left", calls,
               (int)kinds[k].code);
  }
  /* A job that failed is run again. */
  vk_fake_reset();
  fake.fail_at = 0;
  snt_result r = vk_app_attach(&t);
  if (r == SNT_OK) r = vk_app_compile(&t, t.device, &t.program);
  if (r == SNT_OK) r = vk_app_exec(&t);
  fake.fail_at = fake.fallible + 1, fake.fail_with = VK_ERROR_OUT_OF_DEVICE_MEMORY;
  const snt_result first = snt_exec_run_job(t.exec, 0, &t.diag), second = snt_exec_run_job(t.exec, 0, &t.diag);
  tap_result(r == SNT_OK && first == SNT_E_DEVICE_MEM && second == SNT_OK, __FILE__, __LINE__, "a failed job is run again");
  vk_app_finish(&t);
}

/* A bit that has no meaning yet is refused by every call, and so is a struct that ends before its last field; nothing is called or left. */
static void test_unknown_bits(void) {
  enum { UNKNOWN = 1 << 30 };
  static const char *const calls[] = {"attach", "plan", "exec", "init", "record"};
  static vk_app t;
  snt_device *planned = NULL;
  uint64_t next = 0;
  vk_app_finish(&t);
  vk_fake_reset();
  snt_result r[5] = {SNT_OK};
  vk_app_path.attach_flags = UNKNOWN;
  r[0] = vk_app_attach(&t);
  vk_app_path.attach_flags = 0;
  vk_app_finish(&t);
  (void)vk_app_whole(&t);
  VkPhysicalDeviceProperties2 properties = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};
  r[1] = snt_vk_plan(t.context, &(snt_vk_caps){.head = SNT_HEAD(vk_caps), .properties = &properties, .flags = UNKNOWN}, &planned, &t.diag);
  snt_exec *own = t.exec;
  vk_app_path.exec_flags = UNKNOWN;
  r[2] = vk_app_exec(&t);
  vk_app_path.exec_flags = 0;
  t.exec = own;
  vk_fake_forget_calls();
  snt_vk_init_info init = {.head = SNT_HEAD(vk_init_info), .flags = UNKNOWN};
  snt_vk_record_info info = {.head = SNT_HEAD(vk_record_info), .flags = UNKNOWN};
  r[3] = snt_vk_record_init(t.exec, vk_app_commands(), &init, &next, &t.diag);
  r[4] = snt_vk_record(t.binding, vk_app_commands(), &info, &t.diag);
  for (int i = 0; i < 5; i++) tap_result(r[i] == SNT_E_ARG, __FILE__, __LINE__, "%s refuses unknown bits: %d", calls[i], r[i]);
  init.flags = info.flags = 0;
  init.head.size -= 8, info.head.size -= 8;
  r[3] = snt_vk_record_init(t.exec, vk_app_commands(), &init, &next, &t.diag);
  r[4] = snt_vk_record(t.binding, vk_app_commands(), &info, &t.diag);
  for (int i = 3; i < 5; i++) tap_result(r[i] == SNT_E_STRUCT, __FILE__, __LINE__, "%s refuses a struct cut short: %d", calls[i], r[i]);
  tap_result(!vk_fake_all_calls(), __FILE__, __LINE__, "and no call was made");
  vk_app_finish(&t);
}

/* SNT_VK_CACHED_ONLY: without the feature for it no driver is asked; with it, the driver's answer is passed on, and the job may be run again. */
static void test_cached_only(void) {
  static const VkPhysicalDevicePipelineCreationCacheControlFeatures control = {
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_CREATION_CACHE_CONTROL_FEATURES, .pipelineCreationCacheControl = VK_TRUE};
  static const VkDeviceCreateInfo with_control = {.pNext = &control};
  static vk_app t;
  vk_app_path.exec_flags = SNT_VK_CACHED_ONLY;
  for (int with = 0; with < 2; with++) {
    vk_app_finish(&t);
    vk_fake_reset();
    vk_app_path.created_with = with ? &with_control : NULL;
    snt_result r = vk_app_attach(&t);
    if (r == SNT_OK) r = vk_app_compile(&t, t.device, &t.program);
    if (r == SNT_OK) r = vk_app_exec(&t);
    vk_fake_forget_calls();
    fake.fail_at = fake.fallible + 2, fake.fail_with = VK_PIPELINE_COMPILE_REQUIRED; /* the module is made, the pipeline is not */
    const snt_result cold = snt_exec_run_job(t.exec, 0, &t.diag), warm = snt_exec_run_job(t.exec, 0, &t.diag);
    tap_result(r == SNT_OK && cold == SNT_E_WOULD_COMPILE && warm == (with ? SNT_OK : SNT_E_WOULD_COMPILE), __FILE__, __LINE__,
               "%s: %d, %d: %s", with ? "a driver that would compile says so" : "without the feature every job would compile", cold, warm,
               t.diag.text);
    tap_result(with || !vk_fake_all_calls(), __FILE__, __LINE__, "and the driver is asked only with the feature");
  }
  vk_app_finish(&t);
  memset(&vk_app_path, 0, sizeof vk_app_path);
}

static bool is_named(VkObjectType type, const char *name) {
  char text[sizeof *fake.named];
  bool found = false;
  snprintf(text, sizeof text, "%d %s", (int)type, name);
  for (uint32_t i = 0; i < fake.named_count; i++) found |= !strcmp(fake.named[i], text);
  return found;
}

/* With debug_utils each object has the name <debug_name>/<program>/<step>; without it nothing is asked for and nothing named. */
static void test_names(void) {
  static const char *const what[] = {"", " layout", " set layout", " set"};
  static vk_app t;
  for (uint32_t with = 0; with < 2; with++) {
    vk_app_finish(&t);
    vk_fake_reset();
    vk_app_path.instance_extension_count = with;
    const snt_result r = vk_app_whole(&t);
    uint32_t steps = r == SNT_OK ? snt_exec_step_count(t.exec) : 0, right = 0;
    for (uint32_t s = 0; s < steps; s++) {
      snt_step step = {.head = SNT_HEAD(step)};
      char name[4][100];
      (void)snt_exec_step(t.exec, s, &step);
      for (int i = 0; i < 4; i++) snprintf(name[i], sizeof name[i], "game/calls/%s%s", step.name, what[i]);
      right += is_named(VK_OBJECT_TYPE_PIPELINE, name[0]) && is_named(VK_OBJECT_TYPE_PIPELINE_LAYOUT, name[1]) &&
               is_named(VK_OBJECT_TYPE_DESCRIPTOR_SET_LAYOUT, name[2]) && is_named(VK_OBJECT_TYPE_DESCRIPTOR_SET, name[3]);
    }
    tap_result(steps && (with ? right == steps : !fake.named_count), __FILE__, __LINE__, "%u of %u steps have named objects: %s", right,
               steps, fake.named_count ? fake.named[0] : "none");
  }
  vk_app_finish(&t);
  memset(&vk_app_path, 0, sizeof vk_app_path);
}

/* Watchdogs: what the host allows a dispatch is held against the estimate, when the exec is made. */
static void test_watchdog(void) {
  static vk_app t;
  snt_result r[2];
  for (int i = 0; i < 2; i++) {
    vk_app_finish(&t);
    vk_fake_reset();
    vk_app_path.max_dispatch_ns = i ? UINT64_C(3600000000000) : 1;
    r[i] = vk_app_attach(&t);
    if (r[i] == SNT_OK) r[i] = vk_app_compile(&t, t.device, &t.program);
    if (r[i] == SNT_OK) r[i] = vk_app_exec(&t);
    tap_diag("%s", t.diag.text);
  }
  tap_result(r[0] == SNT_E_LIMIT && r[1] == SNT_OK, __FILE__, __LINE__, "a dispatch of more than a nanosecond is refused, of an hour not");
  vk_app_finish(&t);
  memset(&vk_app_path, 0, sizeof vk_app_path);
}

/* Memory of the host runs out at each of its calls, from attaching on; what the compiler takes is others' test. */
static void test_host_memory(void) {
  static vk_app t;
  static char blob[1 << 20];
  size_t size = sizeof blob;
  vk_app_finish(&t);
  vk_fake_reset();
  (void)vk_app_attach(&t);
  (void)vk_app_compile(&t, t.device, &t.program);
  const snt_result saved = snt_program_save(t.program, blob, &size);
  vk_app_finish(&t);
  uint32_t wrong = 0, at = 0;
  snt_result r = SNT_E_HOST_MEM;
  while (saved == SNT_OK && r != SNT_OK && at < 5000) {
    vk_fake_reset();
    atomic_store(&vk_app_heap.calls, 0);
    atomic_store(&vk_app_heap.fail_at, ++at);
    r = vk_app_attach(&t);
    if (r == SNT_OK) r = snt_program_load(t.context, blob, size, &t.program, &t.diag);
    if (r == SNT_OK) r = snt_exec_create(t.device, t.program, NULL, &t.exec, &t.diag);
    if (r == SNT_OK) r = vk_app_run_jobs(&t);
    if (r == SNT_OK) r = vk_app_bind(&t);
    if (r != SNT_OK && r != SNT_E_HOST_MEM && !wrong++) tap_diag("allocation %u: %d", at, r);
    vk_app_finish(&t);
    if ((fake.alive || atomic_load(&vk_app_heap.bytes)) && !wrong++) tap_diag("allocation %u: something is left", at);
  }
  atomic_store(&vk_app_heap.fail_at, 0);
  tap_result(saved == SNT_OK && r == SNT_OK && !wrong, __FILE__, __LINE__, "each of %u allocations fails: a result, nothing left", at - 1);
}

/* ---- threads: each records its own slot ---- */

typedef struct recorder {
  vk_app *t;
  uint32_t slot, failed;
} recorder;
static void *record_slot(void *user) {
  recorder *r = user;
  snt_diag diag = {.head = SNT_HEAD(diag)};
  for (int i = 0; i < 2000; i++) {
    if (i % 7 == 0 && vk_app_set_slot(r->t, r->slot) != SNT_OK) r->failed++;
    if (vk_app_record(r->t, r->slot, 1 + (i * 13 + (int)r->slot) % VK_APP_MOST, &diag) != SNT_OK) r->failed++;
  }
  return NULL;
}

static void test_threads(void) {
  static vk_app t;
  recorder recorders[THREADS];
  pthread_t threads[THREADS];
  vk_app_finish(&t);
  vk_fake_reset();
  (void)vk_app_whole(&t);
  uint32_t failed = 0, started = 0;
  for (uint32_t i = 0; i < THREADS; i++) {
    recorders[i] = (recorder){&t, i, 0};
    started += !pthread_create(&threads[i], NULL, record_slot, &recorders[i]);
  }
  for (uint32_t i = 0; i < started; i++) pthread_join(threads[i], NULL), failed += recorders[i].failed;
  tap_result(started == THREADS && !failed, __FILE__, __LINE__, "%d threads set and record %d slots of one binding", THREADS, VK_APP_SLOTS);
  vk_app_finish(&t);
}

/* ---- cost ---- */

static double now_ns(void) {
  struct timespec t;
  return timespec_get(&t, TIME_UTC) ? (double)t.tv_sec * 1e9 + (double)t.tv_nsec : 0;
}

static void measure(const char *what) {
  static vk_app t;
  vk_app_finish(&t);
  vk_fake_reset();
  (void)vk_app_whole(&t);
  fake.asked_count = 0; /* the table's own counting is left out */
  const uint32_t steps = snt_exec_step_count(t.exec);
  double same = 1e30, other = 1e30;
  for (int round = 0; round < 20; round++) {
    double start = now_ns();
    for (int i = 0; i < 1000; i++) (void)vk_app_record(&t, 0, 777, &t.diag);
    same = fmin(same, (now_ns() - start) / 1000 / steps);
    start = now_ns();
    for (int i = 0; i < 1000; i++) (void)vk_app_record(&t, 0, 1 + i, &t.diag);
    other = fmin(other, (now_ns() - start) / 1000 / steps);
  }
  tap_diag("%s: record: %.0f ns a dispatch, %.0f when the symbols changed, %u dispatches", what, same, other, steps);
  tap_result(same < 5000, __FILE__, __LINE__, "recording a dispatch is a matter of nanoseconds");
  vk_app_finish(&t);
}

int main(void) {
  test_calls();
  test_describe();
  test_failures();
  test_unknown_bits();
  test_cached_only();
  test_names();
  test_watchdog();
  test_host_memory();
  test_threads();
  measure("sets");
  test_paths();
  return tap_done();
}
