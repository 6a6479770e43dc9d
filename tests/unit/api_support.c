/* See api_support.h. */
#include "tests/unit/api_support.h"
#include "ir/eval.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- memory ---- */

static void *SNT_CALL acquire(void *user, size_t size, size_t align, uint32_t scope) {
  api_memory *m = user;
  (void)scope;
  const long long call = atomic_fetch_add(&m->calls, 1) + 1;
  if (m->fail_at && call == m->fail_at) return NULL;
  void *p = NULL;
  if (posix_memalign(&p, align < sizeof(void *) ? sizeof(void *) : align, size ? size : 1)) return NULL;
  atomic_fetch_add(&m->live, (long long)size);
  return p;
}

static void SNT_CALL release(void *user, void *p, size_t size, size_t align) {
  api_memory *m = user;
  (void)align;
  atomic_fetch_sub(&m->live, (long long)size);
  free(p);
}

snt_context *api_context(api_memory *m) {
  snt_context *c = NULL;
  const snt_context_info info = {.head = SNT_HEAD(context_info), .abi_version = SNT_ABI_VERSION, .alloc = {m, acquire, release}};
  return snt_context_create(&info, &c) == SNT_OK ? c : NULL;
}

/* ---- models ---- */

static snt_value op1(snt_graph *g, const char *name, snt_value a, const char *attributes) {
  return snt_graph_op(g, name, &a, 1, attributes);
}
static snt_value op2(snt_graph *g, const char *name, snt_value a, snt_value b, const char *attributes) {
  const snt_value args[] = {a, b};
  return snt_graph_op(g, name, args, 2, attributes);
}
static snt_value number(snt_graph *g, double v) { return snt_graph_scalar(g, SNT_F32, v); }
static int64_t symbol(snt_graph *g, const char *name, int64_t max) {
  const snt_symbol s = {name, 1, max, 1, 64};
  return -(int64_t)snt_graph_symbol(g, &s) - 1;
}
static snt_value input(snt_graph *g, const char *name, uint32_t rank, int64_t a, int64_t b) {
  const snt_tensor t = {SNT_F32, rank, {a, b}};
  return snt_graph_input(g, name, &t);
}

static void build_chain(snt_graph *g) {
  const int64_t n = symbol(g, "n", 4096);
  const snt_value x = input(g, "x", 2, n, 32), y = input(g, "y", 2, n, 32);
  const snt_value scaled = op2(g, "mul", op2(g, "add", x, y, NULL), number(g, 0.5), NULL);
  snt_graph_name(g, scaled, "scaled");
  snt_graph_output(g, "z", op2(g, "max", op1(g, "tanh", scaled, NULL), number(g, -0.25), NULL));
}

static void build_reduce(snt_graph *g) {
  const int64_t n = symbol(g, "n", 4096), m = symbol(g, "m", 4096);
  const snt_value x = input(g, "x", 2, n, m);
  snt_graph_output(g, "sum", op1(g, "reduce.sum", op2(g, "mul", x, x, NULL), "axes=[1]"));
  snt_graph_output(g, "max", op1(g, "reduce.max", x, "axes=[1]"));
}

static void build_softmax(snt_graph *g) {
  const int64_t n = symbol(g, "n", 4096);
  snt_graph_output(g, "y", op1(g, "softmax", input(g, "x", 2, n, 77), "axis=1"));
}

static void build_layernorm(snt_graph *g) {
  static float scale[48], shift[48];
  const snt_tensor t = {SNT_F32, 1, {48}};
  for (int i = 0; i < 48; i++) scale[i] = 1 + 0.01f * (float)i, shift[i] = 0.5f - 0.02f * (float)i;
  const int64_t n = symbol(g, "n", 4096);
  const snt_value args[] = {input(g, "x", 2, n, 48), snt_graph_constant(g, &t, scale), snt_graph_constant(g, &t, shift)};
  snt_graph_output(g, "y", snt_graph_op(g, "layernorm", args, 3, NULL));
}

static void build_matmul(snt_graph *g) {
  const int64_t m = symbol(g, "m", 512);
  const snt_value c = op2(g, "matmul", input(g, "a", 2, m, 40), input(g, "b", 2, 40, 24), NULL);
  snt_graph_output(g, "c", op1(g, "relu", c, NULL));
}

static void build_state(snt_graph *g) {
  const snt_tensor t = {SNT_F32, 1, {100}};
  const snt_value x = snt_graph_input(g, "x", &t), total = snt_graph_state(g, "total", &t);
  const snt_value next = op2(g, "add", total, x, NULL);
  snt_graph_update(g, total, next);
  snt_graph_output(g, "mean", op2(g, "mul", next, number(g, 0.125), NULL));
}

static void build_loop(snt_graph *g) {
  static const char text[] = "symbols { n: min=1 max=64 }\n"
                             "graph @loop(%x: f32[4], %k: f32[4]) {\n"
                             "  %y: f32[4] = repeat trips=n (%a: f32[4] = %x) {\n"
                             "    %b = mul %a, %k\n    %c = add %b, 0.25\n    yield %c\n  }\n"
                             "  return y=%y\n}\n";
  (void)snt_graph_parse(g, text, sizeof text - 1, NULL, NULL);
}
const api_model api_models[] = {
    {"chain", build_chain, 1, 3, {{1}, {37}, {256}}},  {"reduce", build_reduce, 2, 3, {{5, 1}, {1, 1000}, {33, 70}}},
    {"softmax", build_softmax, 1, 2, {{3}, {50}}},     {"layernorm", build_layernorm, 1, 2, {{1}, {29}}},
    {"matmul", build_matmul, 1, 3, {{1}, {16}, {45}}}, {"state", build_state, 0, 1, {{0}}},
    {"loop", build_loop, 1, 3, {{1}, {3}, {30}}},
};
const uint32_t api_model_count = sizeof api_models / sizeof *api_models;

const api_model *api_model_named(const char *name) {
  uint32_t i = 0;
  while (strcmp(api_models[i].name, name)) i++;
  return &api_models[i];
}

snt_program *api_compile_text(snt_context *c, snt_device *d, const char *text, snt_diag *diag) {
  snt_graph *g = NULL;
  snt_profile *profile = NULL;
  snt_program *p = NULL;
  snt_result r = snt_graph_create(c, &g);
  if (r == SNT_OK) r = snt_graph_parse(g, text, strlen(text), NULL, diag);
  if (r == SNT_OK) r = snt_device_profile(d, &profile);
  if (r == SNT_OK) r = snt_compile(g, profile, NULL, &p, diag);
  snt_profile_destroy(profile);
  snt_graph_destroy(g);
  return p;
}

/* ---- tensors ---- */

bool api_make_tensors(const snt_program *p, const int64_t *symbols, uint32_t seed, api_tensors *out) {
  *out = (api_tensors){.symbols = symbols, .symbol_count = snt_program_symbol_count(p)};
  for (uint32_t i = 0; i < snt_program_port_count(p); i++) {
    api_tensor *t = &out->at[i];
    int64_t dims[SNT_MAX_RANK];
    if (i == API_MAX_TENSORS || snt_program_port(p, i, &t->port) != SNT_OK || snt_program_port_dims(p, i, symbols, dims) != SNT_OK)
      return false;
    t->bytes = snt_dtype_size(t->port.tensor.dtype);
    for (uint32_t d = 0; d < t->port.tensor.rank; d++) t->bytes *= (uint64_t)dims[d];
    t->data = malloc(t->bytes + 16);
    if (!t->data) return false;
    out->count = i + 1;
    memset(t->data, t->port.kind == SNT_PORT_STATE ? 0 : 0xa5, t->bytes);
    for (uint64_t k = 0; t->port.kind == SNT_PORT_INPUT && k < t->bytes / 4; k++) {
      seed = seed * 1664525u + 1013904223u;
      ((float *)t->data)[k] = (float)(int32_t)seed / 1073741824.0f;
    }
  }
  return true;
}

void api_free_tensors(api_tensors *t) {
  for (uint32_t i = 0; i < t->count; i++) free(t->at[i].data);
  t->count = 0;
}

enum { OFFSET = 4096 }; /* fits every device's alignment */
typedef struct run_parts {
  snt_stream *stream;
  snt_event *event;
  snt_buffer *buffers[API_MAX_TENSORS];
  snt_argument arguments[API_MAX_TENSORS];
  uint32_t count;
} run_parts;

static snt_result run_buffers(snt_device *d, snt_exec *x, snt_run_info *info, api_tensors *tensors, run_parts *parts, uint64_t *least_ns,
                              snt_diag *diag) {
  snt_result r = snt_stream_create(d, &parts->stream, diag);
  for (uint32_t i = 0; r == SNT_OK && i < parts->count; i++) {
    snt_argument *a = &parts->arguments[i];
    api_tensor *t = &tensors->at[a->port];
    r = snt_buffer_create(d, t->bytes + OFFSET, &parts->buffers[i], diag);
    if (r == SNT_OK) r = snt_buffer_upload(parts->stream, parts->buffers[i], OFFSET, t->data, t->bytes, diag);
    *a = (snt_argument){a->port, 0, parts->buffers[i], OFFSET, NULL, 0};
  }
  if (r == SNT_OK) r = snt_submit(x, parts->stream, info, &parts->event, diag);
  if (r == SNT_OK) r = snt_event_wait(parts->event, UINT64_MAX);
  for (uint32_t i = 0; r == SNT_OK && i < parts->count; i++)
    r = snt_buffer_download(parts->stream, parts->buffers[i], OFFSET, tensors->at[parts->arguments[i].port].data,
                            tensors->at[parts->arguments[i].port].bytes, diag);
  uint64_t ns[512];
  uint32_t count = 512;
  if (r == SNT_OK && least_ns) r = snt_event_timings(parts->event, &count, ns);
  if (r == SNT_OK && least_ns) *least_ns = count ? UINT64_MAX : 0;
  for (uint32_t i = 0; r == SNT_OK && least_ns && i < count; i++) *least_ns = ns[i] < *least_ns ? ns[i] : *least_ns;
  return r;
}

snt_result api_run_once(snt_device *d, snt_exec *x, api_tensors *tensors, api_way way, uint64_t *least_ns, snt_diag *diag) {
  run_parts parts = {.count = 0};
  for (uint32_t i = 0; i < tensors->count; i++)
    if (tensors->at[i].port.kind != SNT_PORT_STATE)
      parts.arguments[parts.count++] = (snt_argument){i, 0, NULL, 0, tensors->at[i].data, tensors->at[i].bytes};
  snt_run_info info = {.head = SNT_HEAD(run_info),
                       .argument_count = parts.count,
                       .arguments = parts.arguments,
                       .symbols = tensors->symbols,
                       .symbol_count = tensors->symbol_count};
  const snt_result r = way == API_HOST_MEMORY ? snt_run(x, &info, diag) : run_buffers(d, x, &info, tensors, &parts, least_ns, diag);
  snt_event_destroy(parts.event);
  for (uint32_t i = 0; i < parts.count; i++) snt_buffer_destroy(parts.buffers[i]);
  snt_stream_destroy(parts.stream);
  return r;
}

/* ---- the reference ---- */

static double compare(const ir_graph *g, const ir_eval_tensor *expected, const api_tensors *tensors) {
  double worst = 0;
  for (uint32_t i = 0; i < g->outputs.count; i++) {
    const api_tensor *t = &tensors->at[g->inputs.count + i];
    ir_eval_report report;
    ir_eval_compare(&expected[i], t->port.tensor.dtype, t->data, &report);
    if (report.nan_mismatch) return INFINITY;
    if (report.max_ratio > worst) worst = report.max_ratio;
  }
  return worst;
}

double api_ratio(const snt_graph *graph, const int64_t *symbols, const api_tensors *tensors) {
  ir_arena arena;
  expr_pool pool;
  ir_graph g;
  double worst = -1;
  ir_arena_init(&arena, NULL);
  expr_pool_init(&pool, &arena);
  ir_graph_init(&g, &arena, &pool);
  size_t length = 0;
  (void)snt_graph_print(graph, NULL, &length);
  char *text = ir_arena_take(&arena, length + 1, 1);
  const void *inputs[API_MAX_TENSORS];
  ir_eval_tensor outputs[2 * API_MAX_TENSORS];
  if (text && snt_graph_print(graph, text, &length) == SNT_OK && ir_graph_parse(&g, text, strlen(text), NULL) == SNT_OK) {
    for (uint32_t i = 0; i < g.inputs.count; i++) inputs[i] = tensors->at[i].data;
    const ir_eval_info info = {.symbols = symbols, .inputs = inputs};
    if (ir_eval_reference(&g, &info, &arena, outputs, NULL) == SNT_OK) worst = compare(&g, outputs, tensors);
  }
  ir_arena_free(&arena);
  return worst;
}

/* ---- devices ---- */

void api_find_devices(snt_context *c, api_devices *out) {
  snt_device_info list[API_MAX_DEVICES];
  uint32_t count = API_MAX_DEVICES;
  memset(list, 0, sizeof list);
  memset(out, 0, sizeof *out);
  if (snt_device_list(c, &count, sizeof *list - 1, list) != SNT_E_ARG || list->selector[0] ||
      snt_device_list(c, &count, sizeof *list, list) < 0)
    return;
  for (uint32_t i = 0; i < count && i < API_MAX_DEVICES; i++)
    memcpy(out->selector[out->count++], list[i].selector, sizeof list[i].selector);
}
