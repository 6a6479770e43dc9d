/* Programs, however they were made: their lives, the names and keys of their code, and what a host asks of them. */
#include "api/handles.h"

/* The names are those of the generators; a unit test holds the two together. */
const api_target_row api_targets[API_TARGETS] = {
    {SNT_TARGET_OPENCL, "opencl"}, {SNT_TARGET_SPIRV, "spirv"}, {SNT_TARGET_CUDA, "cuda"}, {SNT_TARGET_HOST, "kir"}};

uint32_t api_target_index(uint32_t bit) {
  for (uint32_t t = 0; t < API_TARGETS; t++)
    if (api_targets[t].bit == bit) return t;
  return UINT32_MAX;
}

void api_code_key(api_code *c, uint32_t target, uint8_t out[32]) {
  uint64_t words[4];
  if (atomic_load_explicit(&c->has_key, memory_order_acquire)) {
    for (uint32_t i = 0; i < 4; i++) words[i] = atomic_load_explicit(&c->key[i], memory_order_relaxed);
    memcpy(out, words, sizeof words);
    return;
  }
  ir_sha256 sha;
  ir_sha256_init(&sha);
  ir_sha256_add(&sha, api_targets[target].name, strlen(api_targets[target].name));
  ir_sha256_add(&sha, c->code.data, c->code.size);
  ir_sha256_end(&sha, out);
  memcpy(words, out, sizeof words);
  for (uint32_t i = 0; i < 4; i++) atomic_store_explicit(&c->key[i], words[i], memory_order_relaxed);
  atomic_store_explicit(&c->has_key, true, memory_order_release);
}

/* Kernels that differ in nothing but their number are one pipeline, so the number is no part of the code: "k12_contract" is `contract` there. */
const char *api_entry_name(const char *kernel) {
  const char *at = kernel;
  if (*at++ != 'k' || *at < '0' || *at > '9') return kernel;
  while (*at >= '0' && *at <= '9') at++;
  return at[0] == '_' && at[1] ? at + 1 : kernel;
}

snt_program *api_program_new(snt_context *c) {
  snt_program *p = api_take(c, sizeof *p);
  if (!p) return NULL;
  atomic_init(&p->uses, 1);
  p->context = c;
  api_context_hold(c);
  ir_arena_init(&p->arena, &c->alloc);
  expr_pool_init(&p->pool, &p->arena);
  return p;
}

void api_program_drop(snt_program *p) {
  if (!p || atomic_fetch_sub(&p->uses, 1) != 1) return;
  snt_context *c = p->context;
  api_drop_constants(p);
  ir_arena_free(&p->arena);
  api_store_drop(p->store);
  api_give(c, p, sizeof *p);
  snt_context_destroy(c);
}
void snt_program_destroy(snt_program *p) { api_program_drop(p); }

/* ---- queries ---- */

const char *snt_program_profile(const snt_program *p) { return p ? p->profile.name : ""; }
uint32_t snt_program_port_count(const snt_program *p) { return p ? p->port_count : 0; }
uint32_t snt_program_symbol_count(const snt_program *p) { return p ? p->pool.symbols.count : 0; }
uint32_t snt_program_kernel_count(const snt_program *p) { return p ? p->plan.kernels.count : 0; }

snt_result snt_program_symbol(const snt_program *p, uint32_t number, snt_symbol *out) {
  if (!p || !out || number >= p->pool.symbols.count) return SNT_E_ARG;
  const expr_symbol *s = &p->pool.symbols.at[number];
  *out = (snt_symbol){s->name, s->min, s->max, s->multiple_of, s->hint};
  return SNT_OK;
}

static int64_t public_dim(const snt_program *p, ir_expr e) {
  if (e >= 0) return e;
  const expr_node *n = &p->pool.nodes.at[IR_EXPR_NODE(e)];
  return n->kind == EXPR_SYMBOL ? -n->value - 1 : -(int64_t)p->pool.symbols.count - 1 - (int64_t)IR_EXPR_NODE(e);
}

snt_result snt_program_port(const snt_program *p, uint32_t port, snt_port *out) {
  if (!p || !out || port >= p->port_count) return SNT_E_ARG;
  const plan_buffer *b = &p->plan.buffers.at[p->ports[port]];
  out->name = b->name;
  out->kind = b->kind == PLAN_INPUT ? SNT_PORT_INPUT : b->kind == PLAN_STATE ? SNT_PORT_STATE : SNT_PORT_OUTPUT;
  out->tensor = (snt_tensor){.dtype = b->dtype, .rank = b->rank};
  for (uint32_t i = 0; i < b->rank; i++) out->tensor.dims[i] = public_dim(p, b->dims[i]);
  return SNT_OK;
}

snt_result snt_program_find_port(const snt_program *p, const char *name, uint32_t *out) {
  if (!p || !name || !out) return SNT_E_ARG;
  for (uint32_t i = 0; i < p->port_count; i++) {
    snt_port port;
    if (snt_program_port(p, i, &port) == SNT_OK && !strcmp(port.name, name)) {
      *out = i;
      return SNT_OK;
    }
  }
  return SNT_E_ARG;
}

snt_result snt_program_port_dims(const snt_program *p, uint32_t port, const int64_t *symbols, int64_t *dims) {
  if (!p || !dims || port >= p->port_count || (!symbols && p->pool.symbols.count)) return SNT_E_ARG;
  const plan_buffer *b = &p->plan.buffers.at[p->ports[port]];
  for (uint32_t i = 0; i < b->rank; i++)
    if (!expr_eval(&p->pool, b->dims[i], &(expr_values){.symbols = symbols}, &dims[i])) return SNT_E_SHAPE;
  return SNT_OK;
}

snt_result snt_program_kernel(const snt_program *p, uint32_t kernel, uint32_t target, snt_kernel *out) {
  if (!p || !out || kernel >= p->plan.kernels.count) return SNT_E_ARG;
  const uint32_t t = api_target_index(target);
  if (t == UINT32_MAX) return SNT_E_ARG;
  const api_kernel *k = &p->kernels[kernel];
  out->name = p->plan.kernels.at[kernel].kernel->name;
  out->kind = p->plan.kernels.at[kernel].kind;
  out->code = k->code[t].code.data;
  out->code_size = k->code[t].code.size;
  out->binding_count = k->binding_count;
  out->entry = t == api_target_index(SNT_TARGET_SPIRV) ? "main" : api_entry_name(out->name);
  memcpy(out->items, k->items, sizeof out->items);
  return SNT_OK;
}
