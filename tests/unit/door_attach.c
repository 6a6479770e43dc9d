/* What a host is told that attaches wrongly, plans a device that is none, or makes an exec of a program that wants what its device was not created with;
   what it may wish for; and the memory of states that no single range holds. The device is only a table of functions. */
#include "tests/tap.h"
#include "tests/unit/vk_app.h"

static snt_context *context;
static snt_diag diag;

/* ---- attaching ---- */

/* The loader of a host that lacks one entry point. */
static const char *hidden = "";
static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL get_of_device(VkDevice d, const char *name) {
  (void)d;
  return strcmp(name, hidden) ? vk_fake_get(VK_NULL_HANDLE, name) : NULL;
}
static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL get_of_instance(VkInstance instance, const char *name) {
  if (!strcmp(name, hidden)) return NULL;
  return strcmp(name, "vkGetDeviceProcAddr") ? vk_fake_get(instance, name) : (PFN_vkVoidFunction)get_of_device;
}

static const VkPhysicalDeviceBufferDeviceAddressFeatures addresses = {
    .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_BUFFER_DEVICE_ADDRESS_FEATURES, .bufferDeviceAddress = VK_TRUE};
static const VkDeviceCreateInfo with_addresses = {.pNext = &addresses};

static snt_vk_attach_info right(void) {
  return (snt_vk_attach_info){.head = SNT_HEAD(vk_attach_info),
                              .instance = (VkInstance)(uintptr_t)1,
                              .physical_device = (VkPhysicalDevice)(uintptr_t)2,
                              .device = (VkDevice)(uintptr_t)3,
                              .get_instance_proc = get_of_instance};
}

static void refuse(const snt_vk_attach_info *info, snt_result expected, const char *says, const char *spoilt, int line) {
  snt_device *device = NULL;
  const long long bytes = atomic_load(&vk_app_heap.bytes);
  diag.text[0] = 0;
  const snt_result r = snt_vk_attach(context, info, &device, &diag);
  const bool none = !device;
  snt_device_destroy(device);
  tap_result(r == expected && none && strstr(diag.text, says) && atomic_load(&vk_app_heap.bytes) == bytes, __FILE__, line,
             "attach: %s: %d, %s", spoilt, r, diag.text);
}
#define REFUSED(expected, says, ...)                               \
  do {                                                             \
    snt_vk_attach_info info = right();                             \
    __VA_ARGS__;                                                   \
    refuse(&info, SNT_E_##expected, says, #__VA_ARGS__, __LINE__); \
  } while (0)

static void test_attach(void) {
  static const char needed[] = "instance, physical device, device and vkGetInstanceProcAddr are needed";
  REFUSED(ARG, needed, info.instance = VK_NULL_HANDLE);
  REFUSED(ARG, needed, info.physical_device = VK_NULL_HANDLE);
  REFUSED(ARG, needed, info.device = VK_NULL_HANDLE);
  REFUSED(ARG, needed, info.get_instance_proc = NULL);
  REFUSED(STRUCT, "", info.head.size -= 8);
  REFUSED(ARG, "", info.flags = 1u << 30);
  REFUSED(UNSUPPORTED, "Vulkan 1.1 is needed; the application uses 1.0", info.api_version = VK_API_VERSION_1_0);
  REFUSED(UNSUPPORTED, "without bufferDeviceAddress", info.flags = SNT_VK_ADDRESSES);
  REFUSED(ARG, "addresses are not portable", info.created_with = &with_addresses, info.flags = SNT_VK_ADDRESSES | SNT_VK_PORTABLE);
  snt_device *device = NULL;
  const snt_vk_attach_info info = right();
  tap_result(snt_vk_attach(context, &info, &device, &diag) == SNT_OK && device, __FILE__, __LINE__, "attach: what is right is taken");
  snt_device_destroy(device);
}

/* Every entry point that was asked for is needed, and named where it is missing; but those that only name objects. */
static void test_loader(void) {
  const uint32_t count = fake.asked_count;
  for (uint32_t i = 0; i < count; i++) {
    const bool first = !strcmp(fake.asked[i], "vkGetPhysicalDeviceProperties2") || !strcmp(fake.asked[i], "vkGetDeviceProcAddr");
    char says[96];
    snprintf(says, sizeof says, first ? "the instance has no functions of Vulkan 1.1" : "the loader has no %s", fake.asked[i]);
    hidden = fake.asked[i];
    const snt_vk_attach_info info = right();
    refuse(&info, SNT_E_UNSUPPORTED, says, hidden, __LINE__);
  }
  hidden = "";
  tap_result(count > 20, __FILE__, __LINE__, "%u entry points were hidden in turn", count);
}

/* ---- planning ---- */

static snt_result plan(uint32_t version, const void *features, uint32_t flags, snt_device **out) {
  VkPhysicalDeviceProperties2 properties = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};
  const VkPhysicalDeviceFeatures2 all = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, .pNext = (void *)(uintptr_t)features};
  vk_fake_properties(&properties);
  properties.properties.apiVersion = version;
  const snt_vk_caps caps = {.head = SNT_HEAD(vk_caps), .properties = &properties, .features = &all, .flags = flags};
  return snt_vk_plan(context, &caps, out, &diag);
}

static void test_plan(void) {
  static const snt_vk_caps shorter = {.head = {SNT_TYPE_vk_caps, sizeof shorter - 8, NULL}};
  snt_device *device = NULL;
  tap_result(plan(VK_API_VERSION_1_0, NULL, 0, &device) == SNT_E_UNSUPPORTED && !device && strstr(diag.text, "has no Vulkan 1.1"), __FILE__,
             __LINE__, "a device of Vulkan 1.0: %s", diag.text);
  tap_result(snt_vk_plan(context, &shorter, &device, &diag) == SNT_E_STRUCT && !device, __FILE__, __LINE__, "a struct that is too short");
  tap_result(plan(VK_API_VERSION_1_1, NULL, SNT_VK_ATTACH_VALIDATE, &device) == SNT_E_ARG && !device, __FILE__, __LINE__,
             "a flag of attaching");
  tap_result(plan(VK_API_VERSION_1_1, NULL, SNT_VK_ADDRESSES, &device) == SNT_E_UNSUPPORTED && !device, __FILE__, __LINE__,
             "addresses that were not enabled: %s", diag.text);
}

/* ---- programs for another device ---- */

static snt_result compile(snt_device *device, const char *text, snt_program **out) {
  snt_graph *graph = NULL;
  snt_profile *profile = NULL;
  snt_result r = snt_graph_create(context, &graph);
  if (r == SNT_OK) r = snt_graph_parse(graph, text, strlen(text), NULL, &diag);
  if (r == SNT_OK) r = snt_device_profile(device, &profile);
  if (r == SNT_OK) r = snt_compile(graph, profile, NULL, out, &diag);
  snt_profile_destroy(profile);
  snt_graph_destroy(graph);
  return r;
}

static const char halves[] = "graph @halves(%x: f16[4096]) {\n  %y = add %x, %x\n  return y=%y\n}\n";
static const char bytes_text[] = "graph @bytes(%x: i8[4096]) {\n  %y = add %x, %x\n  return y=%y\n}\n";
static const char plain[] = "graph @plain(%x: f32[4096]) {\n  %y = add %x, %x\n  return y=%y\n}\n";

/* Compiled for a device that was created with a feature, refused by name on one that was not. */
static void test_features(void) {
  static VkPhysicalDevice16BitStorageFeatures storage16 = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES,
                                                           .storageBuffer16BitAccess = VK_TRUE};
  static VkPhysicalDevice8BitStorageFeatures storage8 = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_8BIT_STORAGE_FEATURES,
                                                         .storageBuffer8BitAccess = VK_TRUE};
  static VkPhysicalDeviceShaderFloat16Int8Features small = {
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_FLOAT16_INT8_FEATURES, .shaderFloat16 = VK_TRUE, .shaderInt8 = VK_TRUE};
  static const struct {
    const char *what, *text, *says;
    const void *features;
    uint32_t flags;
  } rows[] = {{"halves", halves, "which the device lacks", &storage16, 0},
              {"bytes", bytes_text, "which the device lacks", &storage8, 0},
              {"addresses", plain, "which the device lacks", &addresses, SNT_VK_ADDRESSES},
              {"nothing more", plain, "", NULL, 0},
              {"halves of a portable device, which lie in words", halves, "", &storage16, SNT_VK_PORTABLE}};
  storage8.pNext = &small, storage16.pNext = &small;
  snt_device *least = NULL;
  if (!tap_result(plan(VK_API_VERSION_1_1, NULL, 0, &least) == SNT_OK, __FILE__, __LINE__, "the least device")) return;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    snt_device *device = NULL;
    snt_program *program = NULL;
    snt_exec *own = NULL, *foreign = NULL;
    snt_result r = plan(VK_API_VERSION_1_1, rows[i].features, rows[i].flags, &device);
    if (r == SNT_OK) r = compile(device, rows[i].text, &program);
    if (r == SNT_OK) r = snt_exec_create(device, program, NULL, &own, &diag);
    tap_result(r == SNT_OK, __FILE__, __LINE__, "a program of %s: %s", rows[i].what, r == SNT_OK ? "taken by its device" : diag.text);
    if (r == SNT_OK) r = snt_exec_create(least, program, NULL, &foreign, &diag);
    tap_result(*rows[i].says ? r == SNT_E_UNSUPPORTED && !foreign && strstr(diag.text, rows[i].says) : r == SNT_OK, __FILE__, __LINE__,
               "and %s", r == SNT_OK ? "by the least" : diag.text);
    snt_exec_destroy(foreign);
    snt_exec_destroy(own);
    snt_program_destroy(program);
    snt_device_destroy(device);
  }
  snt_device_destroy(least);
}

/* ---- memory in several ranges ---- */

/* `count` states of 16 KiB a column; a range has 128 MiB. */
static snt_result states_exec(snt_device *device, uint32_t count, uint32_t columns, snt_program **program, snt_exec **exec) {
  static char text[16384];
  size_t at = (size_t)snprintf(text, sizeof text, "graph @states(%%x: f32[4096,%u]", columns);
  for (uint32_t i = 0; i < count; i++) at += (size_t)snprintf(text + at, sizeof text - at, ", state %%s%u: f32[4096,%u]", i, columns);
  at += (size_t)snprintf(text + at, sizeof text - at, ") {\n");
  for (uint32_t i = 0; i < count; i++)
    at += (size_t)snprintf(text + at, sizeof text - at, "  %%n%u = add %%s%u, %%x\n  update %%s%u, %%n%u\n", i, i, i, i);
  (void)snprintf(text + at, sizeof text - at, "  return y=%%n0\n}\n");
  const snt_result r = compile(device, text, program);
  return r == SNT_OK ? snt_exec_create(device, *program, NULL, exec, &diag) : r;
}

static void test_chunks(void) {
  static const struct {
    uint32_t states, columns, ranges;
  } rows[] = {{1, 4096, 1}, {2, 4096, 1}, {3, 4096, 2}, {5, 4096, 3}, {3, 8192, 3}, {65, 8192, 0}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    snt_vk_memory_need needs[32];
    snt_device *device = NULL;
    snt_program *program = NULL;
    snt_exec *exec = NULL;
    uint32_t count = 32, ranges = 0;
    bool fine = true;
    for (int k = 0; k < 32; k++) needs[k].head = (snt_out_head)SNT_HEAD(vk_memory_need);
    snt_result r = plan(VK_API_VERSION_1_1, NULL, 0, &device);
    if (r == SNT_OK) r = states_exec(device, rows[i].states, rows[i].columns, &program, &exec);
    tap_result(r == SNT_OK, __FILE__, __LINE__, "%u states of %u MiB: %s", rows[i].states, rows[i].columns / 64,
               r == SNT_OK ? "an exec" : diag.text);
    if (r == SNT_OK) r = snt_vk_exec_memory(exec, NULL, 0, &count, 0, needs);
    for (uint32_t k = 0; r == SNT_OK && k < count; k++) {
      if (needs[k].memory_class != SNT_MEM_STATE) continue;
      fine = fine && needs[k].chunk == ranges++ && needs[k].size <= 1 << 27 && needs[k].alignment >= 256 && !needs[k].per_slot;
      fine = fine && needs[k].usage & VK_BUFFER_USAGE_TRANSFER_SRC_BIT && needs[k].usage & VK_BUFFER_USAGE_TRANSFER_DST_BIT;
    }
    if (rows[i].ranges) tap_result(r == SNT_OK && fine && ranges == rows[i].ranges, __FILE__, __LINE__, "in %u ranges", ranges);
    else tap_result(r == SNT_E_LIMIT, __FILE__, __LINE__, "more ranges than a binding holds: %d", r);
    snt_exec_destroy(exec);
    snt_program_destroy(program);
    snt_device_destroy(device);
  }
}

/* ---- what a host may wish for ---- */

static uint32_t version;
static VkResult listing, counting;
static VKAPI_ATTR void VKAPI_CALL get_features(VkPhysicalDevice p, VkPhysicalDeviceFeatures2 *out) {
  (void)p;
  out->features.shaderInt64 = VK_TRUE;
  for (VkBaseOutStructure *s = out->pNext; s; s = s->pNext) {
    void *block = s;
    if (s->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_BUFFER_DEVICE_ADDRESS_FEATURES)
      ((VkPhysicalDeviceBufferDeviceAddressFeatures *)block)->bufferDeviceAddress = VK_TRUE;
    if (s->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_8BIT_STORAGE_FEATURES)
      ((VkPhysicalDevice8BitStorageFeatures *)block)->storageBuffer8BitAccess = VK_TRUE;
  }
}
static VKAPI_ATTR void VKAPI_CALL get_properties(VkPhysicalDevice p, VkPhysicalDeviceProperties *out) {
  (void)p;
  *out = (VkPhysicalDeviceProperties){.apiVersion = version};
}
/* One extension with a feature, one without, and one that nobody knows. */
static VKAPI_ATTR VkResult VKAPI_CALL get_extensions(VkPhysicalDevice p, const char *layer, uint32_t *count, VkExtensionProperties *out) {
  static const char *const all[] = {VK_KHR_BUFFER_DEVICE_ADDRESS_EXTENSION_NAME, VK_KHR_PUSH_DESCRIPTOR_EXTENSION_NAME, "VK_nobody_knows"};
  (void)p, (void)layer;
  if (!out) return *count = 3, counting;
  for (uint32_t i = 0; i < 3 && i < *count; i++) strcpy(out[i].extensionName, all[i]);
  return listing;
}
static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL get_wishes(VkInstance instance, const char *name) {
  (void)instance;
  if (!strcmp(name, hidden)) return NULL;
  if (!strcmp(name, "vkGetPhysicalDeviceFeatures2")) return (PFN_vkVoidFunction)get_features;
  if (!strcmp(name, "vkGetPhysicalDeviceProperties")) return (PFN_vkVoidFunction)get_properties;
  return !strcmp(name, "vkEnumerateDeviceExtensionProperties") ? (PFN_vkVoidFunction)get_extensions : NULL;
}

static snt_result wish_for(snt_vk_wishlist *out) {
  *out = (snt_vk_wishlist){.head = SNT_HEAD(vk_wishlist)};
  return snt_vk_query_wishlist(get_wishes, (VkInstance)(uintptr_t)1, (VkPhysicalDevice)(uintptr_t)2, out);
}

static void test_wishes(void) {
  static const char *const entries[] = {"vkGetPhysicalDeviceFeatures2", "vkGetPhysicalDeviceProperties",
                                        "vkEnumerateDeviceExtensionProperties"};
  const uint64_t eight = SNT_VK_FEATURE_STORAGE8, address = SNT_VK_FEATURE_BUFFER_ADDRESS, push = SNT_VK_FEATURE_PUSH_DESCRIPTORS;
  snt_vk_wishlist wish;
  version = VK_API_VERSION_1_1, counting = listing = VK_SUCCESS;
  snt_result r = wish_for(&wish);
  tap_result(r == SNT_OK && wish.features == (address | push | SNT_VK_FEATURE_INT64) && wish.extension_count == 2, __FILE__, __LINE__,
             "1.1 with two extensions: features %llx, %u extensions", (unsigned long long)wish.features, wish.extension_count);
  version = VK_API_VERSION_1_2;
  r = wish_for(&wish);
  tap_result(r == SNT_OK && wish.features == (address | push | eight | SNT_VK_FEATURE_INT64 | SNT_VK_FEATURE_FLOAT_CONTROLS), __FILE__,
             __LINE__, "1.2 has bytes and float controls itself: features %llx", (unsigned long long)wish.features);
  listing = VK_INCOMPLETE;
  tap_result(wish_for(&wish) == SNT_OK && wish.features, __FILE__, __LINE__, "a list that grew meanwhile will do");
  listing = VK_ERROR_OUT_OF_HOST_MEMORY;
  tap_result(wish_for(&wish) == SNT_E_BACKEND && !(wish.features & eight), __FILE__, __LINE__, "a list that cannot be had is an error");
  listing = VK_SUCCESS, counting = VK_ERROR_OUT_OF_HOST_MEMORY;
  tap_result(wish_for(&wish) == SNT_E_BACKEND, __FILE__, __LINE__, "one that cannot be counted, too");
  counting = VK_SUCCESS, version = VK_API_VERSION_1_0;
  tap_result(wish_for(&wish) == SNT_E_UNSUPPORTED, __FILE__, __LINE__, "Vulkan 1.0 is not enough");
  version = VK_API_VERSION_1_1;
  for (size_t i = 0; i < sizeof entries / sizeof *entries; i++) {
    hidden = entries[i];
    tap_result(wish_for(&wish) == SNT_E_UNSUPPORTED, __FILE__, __LINE__, "an instance without %s", hidden);
  }
  hidden = "";
}

static void test_wrong_wishes(void) {
  const VkInstance instance = (VkInstance)(uintptr_t)1;
  const VkPhysicalDevice physical = (VkPhysicalDevice)(uintptr_t)2;
  snt_vk_wishlist wish = {.head = SNT_HEAD(vk_wishlist)};
#define WRONG(expected, call) tap_result((call) == SNT_E_##expected, __FILE__, __LINE__, "%s", #call)
  WRONG(ARG, snt_vk_query_wishlist(NULL, instance, physical, &wish));
  WRONG(ARG, snt_vk_query_wishlist(get_wishes, VK_NULL_HANDLE, physical, &wish));
  WRONG(ARG, snt_vk_query_wishlist(get_wishes, instance, VK_NULL_HANDLE, &wish));
  WRONG(ARG, snt_vk_query_wishlist(get_wishes, instance, physical, NULL));
  wish.head.size -= 8;
  WRONG(STRUCT, snt_vk_query_wishlist(get_wishes, instance, physical, &wish));
  wish.head = (snt_out_head)SNT_HEAD(vk_port);
  WRONG(STRUCT, snt_vk_query_wishlist(get_wishes, instance, physical, &wish));
  wish.head = (snt_out_head)SNT_HEAD(vk_wishlist);
  wish.head.next = &wish.head;
  WRONG(STRUCT, snt_vk_query_wishlist(get_wishes, instance, physical, &wish));
  WRONG(ARG, snt_vk_merge_features(~0ull, NULL, NULL));
}

int main(void) {
  static vk_app t;
  vk_app_finish(&t);
  vk_fake_reset();
  diag.head = (snt_out_head)SNT_HEAD(diag);
  if (!tap_result(vk_app_attach(&t) == SNT_OK, __FILE__, __LINE__, "a context: %s", t.diag.text)) return tap_done();
  context = t.context;
  test_loader();
  test_attach();
  test_plan();
  test_features();
  test_chunks();
  test_wishes();
  test_wrong_wishes();
  vk_app_finish(&t);
  tap_result(!fake.alive && !atomic_load(&vk_app_heap.bytes), __FILE__, __LINE__, "everything is given back");
  return tap_done();
}
