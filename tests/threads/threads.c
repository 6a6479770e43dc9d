/* Eight threads at the door of a saved program, for a build with ThreadSanitizer (tests/threads.t): they make its pipelines together, make bindings of
   their own, and set and record different slots of one binding and of their own ones at a time. The device is tests/unit/vk_fake.c. */
#include "tests/unit/vk_fake.h"
#include <pthread.h>
#include <sinter/vulkan.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 8, ROUNDS = 2000, MOST = 4096, MOST_NEEDS = 16, MOST_BLOB = 1 << 22 };

static snt_context *context;
static snt_device *device;
static snt_program *program;
static snt_exec *exec;
static snt_binding *shared;
static char values[THREADS * 4096];
static atomic_uint wrong;
static pthread_barrier_t gate;
static uint32_t exec_flags, attach_flags;
static VkDeviceCreateInfo created_with;

static void check(snt_result r, const char *what) {
  if (r == SNT_OK) return;
  atomic_fetch_add(&wrong, 1);
  fprintf(stderr, "%s: %s\n", what, snt_result_text(r));
}

static VkBuffer some_buffer(uintptr_t n) {
  VkBuffer b;
  memset(&b, 0, sizeof b);
  memcpy(&b, &n, sizeof n);
  return b;
}

static snt_binding *make_binding(uintptr_t first, uint32_t slots) {
  static const int64_t most = MOST;
  snt_vk_memory_need needs[MOST_NEEDS];
  snt_vk_range ranges[MOST_NEEDS];
  snt_binding *binding = NULL;
  uint32_t count = MOST_NEEDS;
  for (int i = 0; i < MOST_NEEDS; i++) needs[i].head = (snt_out_head)SNT_HEAD(vk_memory_need);
  check(snt_vk_exec_memory(exec, &most, 1, &count, 0, needs), "memory");
  for (uint32_t i = 0; i < count; i++)
    ranges[i] = (snt_vk_range){some_buffer(first + i), 0, needs[i].size * (needs[i].per_slot ? slots : 1)};
  const snt_vk_binding_info info = {.head = SNT_HEAD(vk_binding_info),
                                    .max_symbols = &most,
                                    .symbol_count = 1,
                                    .slot_count = slots,
                                    .memory_count = count,
                                    .memory = ranges};
  check(snt_vk_binding_create(exec, &info, &binding, NULL), "binding");
  return binding;
}

static void frame(snt_binding *binding, uint32_t slot, uint32_t round, char *mapped) {
  const float k = (float)round;
  const int64_t n = 1 + (round * 13 + slot) % MOST;
  snt_vk_bind binds[2];
  uint32_t x = 0, u = 0;
  check(snt_program_find_port(program, "x", &x), "x");
  check(snt_program_find_port(program, "u", &u), "u");
  binds[0] = (snt_vk_bind){.port = x, .range = {some_buffer(200 + slot + round % 3), 0, MOST * 64 * 4}};
  binds[1] = (snt_vk_bind){.port = u, .range = {some_buffer(300 + slot + round % 3), 0, MOST * 64 * 4}};
  if (round % 5 == 0) check(snt_vk_binding_set(binding, slot, 2, 0, binds, NULL), "set");
  const snt_vk_record_info info = {.head = SNT_HEAD(vk_record_info),
                                   .slot = slot,
                                   .symbols = &n,
                                   .symbol_count = 1,
                                   .values = &k,
                                   .values_size = sizeof k,
                                   .values_mapped = mapped};
  check(snt_vk_record(binding, (VkCommandBuffer)(uintptr_t)(4096 + slot), &info, NULL), "record");
  check(snt_vk_binding_retire(binding, slot), "retire");
}

static void *work(void *user) {
  const uint32_t me = *(const uint32_t *)user;
  char own_values[4096];
  for (uint32_t job = me; job < snt_exec_job_count(exec); job += THREADS) check(snt_exec_run_job(exec, job, NULL), "job");
  pthread_barrier_wait(&gate); /* an exec is ready when its jobs are done */
  snt_binding *own = make_binding(1000 + 100 * me, 1);
  for (uint32_t round = 0; own && round < ROUNDS; round++) {
    frame(shared, me, round, values);
    if (round % 4 == 0) frame(own, 0, round / 4 * 5, own_values);
  }
  snt_binding_destroy(own);
  return NULL;
}

static void attach(const void *blob, size_t size) {
  const snt_vk_attach_info info = {.head = SNT_HEAD(vk_attach_info),
                                   .instance = (VkInstance)(uintptr_t)1,
                                   .physical_device = (VkPhysicalDevice)(uintptr_t)2,
                                   .device = (VkDevice)(uintptr_t)3,
                                   .get_instance_proc = vk_fake_get,
                                   .created_with = &created_with,
                                   .flags = attach_flags};
  const snt_vk_exec_info own = {.head = SNT_HEAD(vk_exec_info), .flags = exec_flags};
  snt_exec_info exec_info = {.head = SNT_HEAD(exec_info)};
  exec_info.head.next = &own;
  check(snt_context_create(NULL, &context), "context");
  check(snt_vk_attach(context, &info, &device, NULL), "attach");
  check(snt_program_load(context, blob, size, &program, NULL), "load");
  if (program) check(snt_exec_create(device, program, &exec_info, &exec, NULL), "exec");
}

int main(int argc, char **argv) {
  static const char *const push[] = {VK_KHR_PUSH_DESCRIPTOR_EXTENSION_NAME};
  static uint64_t blob[MOST_BLOB / 8];
  pthread_t threads[THREADS];
  uint32_t numbers[THREADS], started = 0;
  FILE *file = argc > 1 ? fopen(argv[1], "rb") : NULL;
  const size_t size = file ? fread(blob, 1, sizeof blob, file) : 0;
  if (file) fclose(file);
  attach_flags = SNT_VK_ATTACH_VALIDATE;
  if (argc > 2 && !strcmp(argv[2], "push")) {
    exec_flags = SNT_VK_PUSH_DESCRIPTORS;
    created_with = (VkDeviceCreateInfo){.enabledExtensionCount = 1, .ppEnabledExtensionNames = push};
  }
  vk_fake_reset();
  attach(blob, size);
  if (exec && !pthread_barrier_init(&gate, NULL, THREADS)) {
    shared = make_binding(100, THREADS);
    for (uint32_t i = 0; i < THREADS; i++) {
      numbers[i] = i;
      started += !pthread_create(&threads[i], NULL, work, &numbers[i]);
    }
    for (uint32_t i = 0; i < started; i++) pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&gate);
  }
  snt_binding_destroy(shared);
  snt_exec_destroy(exec);
  snt_program_destroy(program);
  snt_device_destroy(device);
  snt_context_destroy(context);
  printf("%u threads, %u dispatches, %u errors, %d objects left\n", started, vk_fake_calls("vkCmdDispatch"), atomic_load(&wrong),
         (int)fake.alive);
  return started == THREADS && !atomic_load(&wrong) && !fake.alive ? 0 : 1;
}
