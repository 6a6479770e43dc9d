/* States across programs at the Vulkan door: what keeps its contents from run to run is known by a key, and a program that takes another's place begins with
   what that one left, where the keys are the same. On this machine's drivers under the validation layers. */
#include "tests/tap.h"
#include "tests/unit/vk_host.h"
#include "tools/host/host.h"

enum { MAX_STATES = 4, MAX_NEEDS = 8, BYTES = 4096, COUNT = 3 * 24 };

/* The first as it was shipped; then with an operator more and a state more, before the old one; then with another shape, another type, another name. */
static const char shipped[] =
    "graph @g(%x: f32[3,24], state %total: f32[3,24]) {\n %s = add %total, %x\n update %total, %s\n %y = mul %s, 2.0\n return y=%y\n}\n";
static const char grown[] =
    "graph @g(%x: f32[3,24], state %seen: f32[1,24], state %total: f32[3,24]) {\n %k = add %seen, 1.0\n update %seen, %k\n"
    " %s = add %total, %x\n update %total, %s\n %r = relu %s\n %z = mul %r, 2.0\n %kk: f32[3,24] = broadcast %k\n"
    " %y = add %z, %kk\n return y=%y\n}\n";
static const char reshaped[] = "graph @g(%x: f32[3,24], state %total: f32[24,3]) {\n %t = transpose %x, perm=[1,0]\n %s = add %total, %t\n"
                               " update %total, %s\n %u = transpose %s, perm=[1,0]\n %y = mul %u, 2.0\n return y=%y\n}\n";
static const char retyped[] =
    "graph @g(%x: f32[3,24], state %total: i32[3,24]) {\n %i = cast %x, dtype=i32\n %s = add %total, %i\n update %total, %s\n"
    " %f = cast %s, dtype=f32\n %y = mul %f, 2.0\n return y=%y\n}\n";
static const char renamed[] =
    "graph @g(%x: f32[3,24], state %sum: f32[3,24]) {\n %s = add %sum, %x\n update %sum, %s\n %y = mul %s, 2.0\n return y=%y\n}\n";

typedef struct loaded {
  snt_program *program;
  snt_exec *exec;
  snt_binding *binding;
  vk_host_buffer memory[MAX_NEEDS], ports[MAX_STATES];
  VkBufferView views[MAX_STATES];
  snt_vk_state states[MAX_STATES];
  uint32_t need_count, state_count, port_count, input, output;
} loaded;
typedef struct states_test {
  vk_host host;
  snt_context *context;
  snt_device *device;
  snt_diag diag;
} states_test;

static snt_result compile(states_test *t, const char *text, loaded *p) {
  snt_graph *graph = NULL;
  snt_profile *profile = NULL;
  snt_result r = snt_graph_create(t->context, &graph);
  if (r == SNT_OK) r = snt_graph_parse(graph, text, strlen(text), NULL, &t->diag);
  if (r == SNT_OK) r = snt_device_profile(t->device, &profile);
  if (r == SNT_OK) r = snt_compile(graph, profile, NULL, &p->program, &t->diag);
  if (r == SNT_OK) r = snt_exec_create(t->device, p->program, NULL, &p->exec, &t->diag);
  if (r == SNT_OK) r = snt_exec_prepare(p->exec, &t->diag);
  snt_profile_destroy(profile);
  snt_graph_destroy(graph);
  return r;
}

static snt_result bind_ports(states_test *t, loaded *p) {
  snt_vk_port ports[MAX_STATES];
  snt_vk_bind binds[MAX_STATES];
  uint32_t bound = 0;
  p->port_count = MAX_STATES;
  for (int i = 0; i < MAX_STATES; i++) ports[i].head = (snt_out_head)SNT_HEAD(vk_port);
  snt_result r = snt_vk_exec_ports(p->exec, &p->port_count, 0, ports);
  for (uint32_t i = 0; r == SNT_OK && i < p->port_count; i++) {
    if (ports[i].kind == SNT_VK_PORT_STATE) continue;
    *(strcmp(ports[i].name, "y") ? &p->input : &p->output) = i;
    if (!vk_host_buffer_create(&t->host, BYTES, ports[i].buffer_usage, &p->ports[i])) return SNT_E_DEVICE_MEM;
    const VkBufferViewCreateInfo view = {
        .sType = VK_STRUCTURE_TYPE_BUFFER_VIEW_CREATE_INFO, .buffer = p->ports[i].buffer, .format = ports[i].format, .range = BYTES};
    if (view.format != VK_FORMAT_UNDEFINED && t->host.vkCreateBufferView(t->host.device, &view, NULL, &p->views[i]) != VK_SUCCESS)
      return SNT_E_BACKEND;
    binds[bound++] = (snt_vk_bind){.port = i, .range = {p->ports[i].buffer, 0, BYTES}, .buffer_view = p->views[i]};
  }
  return r == SNT_OK ? snt_vk_binding_set(p->binding, 0, bound, 0, binds, &t->diag) : r;
}

static snt_result load(states_test *t, const char *text, loaded *p) {
  snt_vk_memory_need needs[MAX_NEEDS];
  snt_vk_range ranges[MAX_NEEDS];
  *p = (loaded){.need_count = MAX_NEEDS, .state_count = MAX_STATES};
  for (int i = 0; i < MAX_NEEDS; i++) needs[i].head = (snt_out_head)SNT_HEAD(vk_memory_need);
  for (int i = 0; i < MAX_STATES; i++) p->states[i].head = (snt_out_head)SNT_HEAD(vk_state);
  snt_result r = compile(t, text, p);
  if (r == SNT_OK) r = snt_vk_exec_memory(p->exec, NULL, 0, &p->need_count, 0, needs);
  if (r == SNT_OK) r = snt_vk_exec_states(p->exec, NULL, 0, &p->state_count, 0, p->states);
  for (uint32_t i = 0; r == SNT_OK && i < p->need_count; i++) {
    if (!vk_host_buffer_create(&t->host, needs[i].size, needs[i].usage, &p->memory[i])) return SNT_E_DEVICE_MEM;
    memset(p->memory[i].mapped, needs[i].memory_class == SNT_MEM_STATE ? 0 : 0xee, needs[i].size);
    ranges[i] = (snt_vk_range){p->memory[i].buffer, 0, needs[i].size};
  }
  const snt_vk_binding_info info = {.head = SNT_HEAD(vk_binding_info), .slot_count = 1, .memory_count = p->need_count, .memory = ranges};
  if (r == SNT_OK) r = snt_vk_binding_create(p->exec, &info, &p->binding, &t->diag);
  return r == SNT_OK ? bind_ports(t, p) : r;
}

static void unload(states_test *t, loaded *p) {
  snt_binding_destroy(p->binding);
  snt_exec_destroy(p->exec);
  snt_program_destroy(p->program);
  for (int i = 0; i < MAX_STATES; i++) {
    if (p->views[i]) t->host.vkDestroyBufferView(t->host.device, p->views[i], NULL);
    if (p->ports[i].buffer) vk_host_buffer_destroy(&t->host, &p->ports[i]);
  }
  for (int i = 0; i < MAX_NEEDS; i++)
    if (p->memory[i].buffer) vk_host_buffer_destroy(&t->host, &p->memory[i]);
}

/* The rule of the header, as a host follows it: how many carry over. */
static uint32_t carry(states_test *t, const loaded *from, const loaded *to) {
  uint32_t carried = 0;
  vk_host_begin(&t->host);
  for (uint32_t n = 0; n < to->state_count; n++)
    for (uint32_t o = 0; o < from->state_count; o++) {
      const snt_vk_state *is = &to->states[n], *was = &from->states[o];
      if (is->key != was->key) continue;
      const VkBufferCopy copy = {was->offset, is->offset, is->size};
      t->host.vkCmdCopyBuffer(t->host.commands, from->memory[was->memory].buffer, to->memory[is->memory].buffer, 1, &copy);
      carried++;
    }
  vk_host_submit_wait(&t->host);
  return carried;
}

/* Runs once with x = 1 everywhere; y as it should be everywhere. */
static void run(states_test *t, loaded *p, float wanted, const char *what) {
  float *x = p->ports[p->input].mapped, *y = p->ports[p->output].mapped;
  const snt_vk_record_info info = {.head = SNT_HEAD(vk_record_info)};
  for (int i = 0; i < COUNT; i++) x[i] = 1, y[i] = -1;
  vk_host_begin(&t->host);
  const snt_result r = snt_vk_record(p->binding, t->host.commands, &info, &t->diag);
  vk_host_submit_wait(&t->host);
  snt_vk_binding_retire(p->binding, 0);
  int wrong = 0;
  for (int i = 0; i < COUNT; i++) wrong += y[i] != wanted;
  tap_result(r == SNT_OK && !wrong, __FILE__, __LINE__, "%s: %g, %d of %d differ %s", what, (double)y[0], wrong, COUNT, t->diag.text);
}

static void reload(states_test *t, const loaded *old, const char *text, uint32_t states, uint32_t carried, float wanted, const char *what) {
  loaded p;
  const snt_result r = load(t, text, &p);
  if (tap_result(r == SNT_OK, __FILE__, __LINE__, "%s: loaded %s", what, r == SNT_OK ? "" : t->diag.text)) {
    const uint32_t did = carry(t, old, &p);
    tap_result(p.state_count == states && did == carried, __FILE__, __LINE__, "%s: %u states, %u carry over", what, p.state_count, did);
    run(t, &p, wanted, what);
  }
  unload(t, &p);
}

/* Rows that are shorter than the struct: nothing is written where the next row lies, nor read. */
static void refuse_short_rows(states_test *t, const loaded *p) {
  snt_vk_port port = {.head = SNT_HEAD(vk_port), .name = "mine"};
  snt_vk_memory_need need = {.head = SNT_HEAD(vk_memory_need), .size = 7};
  snt_vk_state state = {.head = SNT_HEAD(vk_state), .name = "mine"};
  const snt_vk_bind bind = {.port = p->input};
  const snt_vk_range range = {p->memory[0].buffer, 0, BYTES};
  const snt_vk_binding_info info = {.head = SNT_HEAD(vk_binding_info),
                                    .slot_count = 1,
                                    .memory_count = p->need_count,
                                    .memory_stride = sizeof range - 1,
                                    .memory = &range};
  const snt_vk_init_info init = {.head = SNT_HEAD(vk_init_info), .state_count = 1, .state_stride = 1, .state = &range};
  uint32_t one = 1;
  uint64_t next = 0;
  snt_binding *binding = NULL;
  tap_result(snt_vk_exec_ports(p->exec, &one, sizeof port - 1, &port) == SNT_E_ARG && !strcmp(port.name, "mine"), __FILE__, __LINE__,
             "ports");
  tap_result(snt_vk_exec_memory(p->exec, NULL, 0, &one, 1, &need) == SNT_E_ARG && need.size == 7, __FILE__, __LINE__, "needs");
  tap_result(snt_vk_exec_states(p->exec, NULL, 0, &one, 1, &state) == SNT_E_ARG && !strcmp(state.name, "mine"), __FILE__, __LINE__,
             "states");
  tap_result(snt_vk_binding_set(p->binding, 0, 1, sizeof bind - 1, &bind, &t->diag) == SNT_E_ARG, __FILE__, __LINE__, "%s", t->diag.text);
  tap_result(snt_vk_binding_create(p->exec, &info, &binding, &t->diag) == SNT_E_ARG && !binding, __FILE__, __LINE__, "%s", t->diag.text);
  tap_result(snt_vk_record_init(p->exec, t->host.commands, &init, &next, &t->diag) == SNT_E_ARG, __FILE__, __LINE__, "%s", t->diag.text);
}

static void test_device(const char *part) {
  static states_test t;
  char why[120];
  memset(&t, 0, sizeof t);
  t.diag.head = (snt_out_head)SNT_HEAD(diag);
  vk_host_looks = VK_HOST_LOOKS;
  if (!vk_host_open(&t.host, part, false, why, sizeof why)) {
    tap_skip("%s", why);
    return;
  }
  loaded p = {0};
  snt_result r = snt_context_create(NULL, &t.context);
  if (r == SNT_OK) r = vk_host_attach(&t.host, t.context, SNT_VK_ATTACH_VALIDATE, &t.device, &t.diag);
  if (r == SNT_OK) r = load(&t, shipped, &p);
  if (tap_result(r == SNT_OK, __FILE__, __LINE__, "%s: the program as shipped %s", part, r == SNT_OK ? "" : t.diag.text)) {
    uint32_t none = 0;
    tap_result(snt_vk_exec_states(p.exec, NULL, 0, &none, 0, NULL) == SNT_INCOMPLETE && none == 1, __FILE__, __LINE__, "%u state", none);
    tap_result(snt_vk_exec_states(NULL, NULL, 0, &none, 0, NULL) == SNT_E_ARG, __FILE__, __LINE__, "no exec");
    refuse_short_rows(&t, &p);
    for (int i = 1; i <= 5; i++) run(&t, &p, 2 * (float)i, "as shipped");
    reload(&t, &p, shipped, 1, 1, 12, "the same again");
    reload(&t, &p, grown, 2, 1, 13, "an operator and a state more");
    reload(&t, &p, reshaped, 1, 0, 2, "another shape");
    reload(&t, &p, retyped, 1, 0, 2, "another type");
    reload(&t, &p, renamed, 1, 0, 2, "another name");
  }
  unload(&t, &p);
  snt_device_destroy(t.device);
  snt_context_destroy(t.context);
  tap_result(!t.host.messages, __FILE__, __LINE__, "%s: the validation layers say nothing%s%s", part, t.host.messages ? ": " : "",
             t.host.first_message);
  vk_host_close(&t.host);
}

VK_HOST_LEAKS

int main(void) {
  host_prepare_drivers(NULL);
  test_device("llvmpipe");
  test_device("SwiftShader");
  return tap_done();
}
