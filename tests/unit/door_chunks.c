/* Memory of a program in more ranges than one, on a device whose ranges are small: what is asked for, that constants go where describe says they lie, by a
   staging range of any size or straight into mapped memory, and that what is refused has recorded nothing. The device is only a table of functions. */
#include "tests/tap.h"
#include "tests/unit/vk_app.h"

enum { WEIGHTS = 4, WEIGHT = 64 * 64 * 4, LIMIT = 2 * WEIGHT + 8192, ROOM = 1 << 16, OURS = 900, NEEDS = 16 };

static const char text[] = "graph @chunks(%x: f32[16,64], state %s: f32[16,64]) {\n"
                           "  %a: f32[64,64] = const normal seed=3 scale=0.125\n"
                           "  %b: f32[64,64] = const normal seed=4 scale=0.125\n"
                           "  %c: f32[64,64] = const normal seed=5 scale=0.125\n"
                           "  %d: f32[64,64] = const normal seed=6 scale=0.125\n"
                           "  %p: f32[16,64] = matmul %x, %a\n"
                           "  %q: f32[16,64] = matmul %p, %b\n"
                           "  %r: f32[16,64] = matmul %q, %c\n"
                           "  %t: f32[16,64] = matmul %r, %d\n"
                           "  %next = add %s, %t\n"
                           "  update %s, %next\n"
                           "  return y=%t\n"
                           "}\n";

typedef struct chunks {
  vk_app t;
  snt_vk_memory_need needs[NEEDS];
  uint32_t need_count, constants;
  snt_vk_range ranges[NEEDS];
  char memory[WEIGHTS][ROOM]; /* of the CONSTANT ranges */
  const snt_vk_description *d;
} chunks;

static snt_result begin(chunks *c) {
  static _Alignas(16) char storage[1 << 18];
  const snt_vk_describe_info info = {.head = SNT_HEAD(vk_describe_info)};
  size_t size = sizeof storage;
  snt_graph *graph = NULL;
  snt_profile *profile = NULL;
  memset(c, 0, sizeof *c);
  vk_app_finish(&c->t);
  vk_fake_reset();
  fake.most_range = LIMIT, fake.logging = true;
  snt_result r = vk_app_attach(&c->t);
  if (r == SNT_OK) r = snt_graph_create(c->t.context, &graph);
  if (r == SNT_OK) r = snt_graph_parse(graph, text, strlen(text), NULL, &c->t.diag);
  if (r == SNT_OK) r = snt_device_profile(c->t.device, &profile);
  if (r == SNT_OK) r = snt_compile(graph, profile, NULL, &c->t.program, &c->t.diag);
  snt_profile_destroy(profile);
  snt_graph_destroy(graph);
  if (r == SNT_OK) r = vk_app_exec(&c->t);
  c->need_count = NEEDS;
  for (int i = 0; i < NEEDS; i++) c->needs[i].head = (snt_out_head)SNT_HEAD(vk_memory_need);
  if (r == SNT_OK) r = snt_vk_exec_memory(c->t.exec, NULL, 0, &c->need_count, 0, c->needs);
  for (uint32_t i = 0; r == SNT_OK && i < c->need_count; i++) {
    c->ranges[i] = (snt_vk_range){vk_app_buffer(OURS + i), 1024 * i, c->needs[i].size};
    c->constants += c->needs[i].memory_class == SNT_MEM_CONSTANT;
  }
  return r == SNT_OK ? snt_vk_describe(c->t.exec, &info, storage, &size, &c->d, &c->t.diag) : r;
}

static void test_needs(chunks *c) {
  bool right = true;
  for (uint32_t i = 0; i < c->need_count; i++) {
    const snt_vk_memory_need *n = &c->needs[i];
    right = right && n->size && (n->size <= LIMIT || n->memory_class == SNT_MEM_STAGING) && n->alignment == 256 && n->size % 256 == 0;
    right = right && (!i || c->needs[i - 1].memory_class != n->memory_class ? n->chunk == 0 : n->chunk == c->needs[i - 1].chunk + 1);
  }
  tap_result(right && c->constants > 1 && c->constants < WEIGHTS, __FILE__, __LINE__,
             "%u ranges of constants, each aligned and within %d bytes", c->constants, LIMIT);
  right = c->d->init_count == WEIGHTS;
  for (uint32_t i = 0; right && i < WEIGHTS; i++) {
    const snt_vk_copy_desc *a = &c->d->init[i];
    right = a->size == WEIGHT && a->memory < c->constants && a->offset % 256 == 0 && a->offset + a->size <= c->needs[a->memory].size;
    for (uint32_t k = 0; right && k < i; k++)
      right = c->d->init[k].memory != a->memory || c->d->init[k].offset + WEIGHT <= a->offset || a->offset + WEIGHT <= c->d->init[k].offset;
  }
  tap_result(right, __FILE__, __LINE__, "%u constants, none on another", c->d->init_count);
}

/* The copies that were recorded, done. */
static bool copy_all(chunks *c, const char *staged, size_t room) {
  for (uint32_t i = 0; i < fake.copy_count; i++) {
    const VkBufferCopy *r = &fake.copies[i];
    uint32_t at = 0;
    while (at < c->constants && memcmp(&fake.copied_to[i], &c->ranges[at].buffer, sizeof(VkBuffer)) != 0) at++;
    if (at == c->constants || r->dstOffset < c->ranges[at].offset || r->srcOffset < 64 || r->srcOffset - 64 + r->size > room) return false;
    const VkDeviceSize to = r->dstOffset - c->ranges[at].offset;
    if (to + r->size > c->ranges[at].size) return false;
    memcpy(c->memory[at] + to, staged + r->srcOffset - 64, r->size);
  }
  return true;
}

static bool arrived(const chunks *c) {
  for (uint32_t i = 0; i < c->d->init_count; i++)
    if (memcmp(c->memory[c->d->init[i].memory] + c->d->init[i].offset, c->d->init[i].data, c->d->init[i].size) != 0) return false;
  return true;
}

static snt_vk_init_info init_of(const chunks *c) {
  return (snt_vk_init_info){.head = SNT_HEAD(vk_init_info), .constant_count = c->constants, .constant = c->ranges};
}

static void test_staged(chunks *c, uint32_t room) {
  static char staged[2 * WEIGHTS * WEIGHT];
  snt_vk_init_info info = init_of(c);
  info.staging = (snt_vk_range){vk_app_buffer(800), 64, room}, info.staging_mapped = staged;
  uint32_t calls = 0;
  bool right = true;
  memset(c->memory, 0, sizeof c->memory);
  for (; right && info.cursor != SNT_VK_INIT_DONE && calls < 100; calls++) {
    vk_fake_forget_calls();
    right = snt_vk_record_init(c->t.exec, vk_app_commands(), &info, &info.cursor, &c->t.diag) == SNT_OK && copy_all(c, staged, room);
  }
  const uint32_t expected = (WEIGHTS * WEIGHT + room - 1) / room;
  tap_result(right && arrived(c) && calls >= expected && calls <= expected + 1, __FILE__, __LINE__,
             "by a staging range of %u bytes in %u calls", room, calls);
}

static void test_mapped(chunks *c) {
  void *mapped[WEIGHTS];
  snt_vk_init_info info = init_of(c);
  for (int i = 0; i < WEIGHTS; i++) mapped[i] = c->memory[i];
  info.constant_mapped = mapped;
  memset(c->memory, 0, sizeof c->memory);
  vk_fake_forget_calls();
  const snt_result r = snt_vk_record_init(c->t.exec, NULL, &info, &info.cursor, &c->t.diag);
  tap_result(r == SNT_OK && info.cursor == SNT_VK_INIT_DONE && arrived(c) && !vk_fake_all_calls(), __FILE__, __LINE__,
             "into mapped memory, without a command");
}

/* The last range is what is wrong: nothing is recorded for those ahead of it, no state is cleared. */
static void test_refused(chunks *c) {
  static char staged[WEIGHT];
  snt_vk_range ranges[WEIGHTS];
  const snt_vk_range state = {vk_app_buffer(700), 0, 4096};
  snt_vk_init_info info = init_of(c);
  memcpy(ranges, c->ranges, sizeof ranges);
  ranges[c->constants - 1].size -= 256;
  info.constant = ranges, info.state_count = 1, info.state = &state;
  info.staging = (snt_vk_range){vk_app_buffer(800), 64, sizeof staged}, info.staging_mapped = staged;
  vk_fake_forget_calls();
  uint64_t next = 0;
  const snt_result r = snt_vk_record_init(c->t.exec, vk_app_commands(), &info, &next, &c->t.diag);
  tap_result(r == SNT_E_ARG && strstr(c->t.diag.text, "too small") && !vk_fake_all_calls(), __FILE__, __LINE__,
             "refused, nothing recorded: %s", c->t.diag.text);
}

int main(void) {
  static chunks c;
  const snt_result r = begin(&c);
  tap_result(r == SNT_OK, __FILE__, __LINE__, "a program whose weights are more than a range holds: %s", c.t.diag.text);
  if (r == SNT_OK) {
    test_needs(&c);
    static const uint32_t rooms[] = {1000, WEIGHT, WEIGHT + 4096, WEIGHTS * WEIGHT, 2 * WEIGHTS * WEIGHT};
    for (size_t i = 0; i < sizeof rooms / sizeof *rooms; i++) test_staged(&c, rooms[i]);
    test_mapped(&c);
    test_refused(&c);
  }
  vk_app_finish(&c.t);
  return tap_done();
}
