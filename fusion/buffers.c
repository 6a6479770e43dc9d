/* Buffers of the plan, one a stored value, made when a kernel first asks for it; and where an element lies in its buffer, by the pitches that
   schedule/pitch.c chose. */
#include "fusion/emit.h"
#include "fusion/schedule_common.h"

bool fusion_has_pitch(const fusion_context *c, uint32_t node) { return c->pitches && c->pitches[node].axes; }

static ir_expr offset_in(expr_pool *x, const ir_tensor *t, const fusion_pitch *p, const map_access *at) {
  ir_expr offset = 0, first = 0;
  for (uint32_t i = 0; i < t->rank; i++) {
    if (i == p->axes) first = expr_mul(x, offset, p->elements), offset = 0;
    offset = offset ? expr_add(x, expr_mul(x, offset, t->dims[i]), at->at[i]) : at->at[i];
  }
  return first ? expr_add(x, first, offset) : offset;
}

ir_expr fusion_plain_offset(const fusion_context *c, uint32_t node, const map_access *at) {
  return offset_in(c->graph->pool, &ir_at(c->graph, node)->type, &(fusion_pitch){0}, at);
}

ir_expr fusion_stored_offset(const fusion_context *c, uint32_t node, const map_access *at) {
  return fusion_has_pitch(c, node) ? offset_in(c->graph->pool, &ir_at(c->graph, node)->type, &c->pitches[node], at)
                                   : fusion_plain_offset(c, node, at);
}

typedef struct padding {
  ir_making making;
  uint64_t row, pitch; /* bytes */
} padding;

static void pad(const ir_making *m, const void *const *sources, void *to) {
  const padding *p = (const padding *)(const void *)m;
  memset(to, 0, m->bytes);
  for (uint64_t i = 0; i < m->bytes / p->pitch; i++) memcpy((char *)to + i * p->pitch, (const char *)sources[0] + i * p->row, p->row);
}

bool fusion_stored_source(const fusion_context *c, uint32_t node, ir_source *out) {
  const ir_tensor *t = &ir_at(c->graph, node)->type;
  const uint64_t bytes = ir_dtypes[t->dtype].bytes;
  if (!ir_const_source(c->graph, node, out)) return false;
  if (!fusion_has_pitch(c, node)) return true;
  const uint32_t axes = c->pitches[node].axes;
  padding *p = IR_NEW(c->arena, padding);
  if (!p) return false;
  p->row = (uint64_t)schedule_product(c->graph->pool, t->rank - axes, t->dims + axes) * bytes,
  p->pitch = (uint64_t)c->pitches[node].elements * bytes;
  p->making = (ir_making){.fill = pad, .source_count = 1, .size = sizeof *p, .sources = {*out}};
  p->making.bytes = (uint64_t)schedule_product(c->graph->pool, axes, t->dims) * p->pitch;
  *out = (ir_source){.making = &p->making};
  return true;
}

static ir_expr storage_bytes(fusion_context *c, int32_t dtype, ir_expr elements) {
  expr_pool *x = c->graph->pool;
  const ir_expr bytes = expr_mul(x, elements, ir_dtypes[dtype].bytes);
  return expr_mul(x, expr_ceil_div(x, bytes, 16), 16);
}

static const ir_port *find_port(const ir_graph *g, uint32_t node) {
  for (uint32_t i = 0; i < g->inputs.count; i++)
    if (g->inputs.at[i].node == node) return &g->inputs.at[i];
  for (uint32_t i = 0; i < g->outputs.count; i++)
    if (g->outputs.at[i].node == node) return &g->outputs.at[i];
  return NULL;
}

static uint8_t buffer_kind(const ir_graph *g, uint32_t node) {
  switch (ir_at(g, node)->op) {
  case IR_OP_input: return PLAN_INPUT;
  case IR_OP_state: return PLAN_STATE;
  case IR_OP_const: return PLAN_CONSTANT;
  default: break;
  }
  for (uint32_t i = 0; i < g->outputs.count; i++)
    if (g->outputs.at[i].node == node) return PLAN_OUTPUT;
  return PLAN_SCRATCH;
}

/* The new value of a state lives in the state's own storage, unless someone still needs the old one. */
uint32_t fusion_storage_node(const fusion_context *c, uint32_t node) {
  const ir_graph *g = c->graph;
  for (uint32_t i = 0; i < g->updates.count; i++)
    if (g->updates.at[i].value == node && !(c->copied_update && c->copied_update[i])) return g->updates.at[i].state;
  return node;
}

void fusion_note_asked(fusion_context *c, const fusion_asked *asked) {
  for (uint32_t i = 0; c->asking && i < c->asked.count; i++)
    if (c->asked.at[i].kind == asked->kind && c->asked.at[i].buffer == asked->buffer) return;
  if (c->asking && !IR_PUSH(c->arena, &c->asked, *asked)) c->plan->failed = true;
}

/* What a port's elements are to its caller: bytes may be of a type that kernels do not know (storage.c). */
static uint8_t port_dtype(const fusion_context *c, const plan_buffer *b) {
  const ir_graph *given = c->given;
  if (!given || b->dtype != SNT_U8 || (b->kind != PLAN_INPUT && b->kind != PLAN_STATE && b->kind != PLAN_OUTPUT)) return b->dtype;
  const uint32_t count = b->kind == PLAN_OUTPUT ? given->outputs.count : given->inputs.count;
  const ir_port *ports = b->kind == PLAN_OUTPUT ? given->outputs.at : given->inputs.at;
  for (uint32_t i = 0; i < count; i++)
    if (!strcmp(&given->names.at[ports[i].name], b->name)) return ir_at(given, ports[i].node)->type.dtype;
  return b->dtype;
}

/* Of what sums of products alone read. */
static bool may_flush(const fusion_context *c, int32_t dtype) {
  return dtype == SNT_F32 && c->options->profile->slow_denormals && !fusion_keeps_order(c->options);
}

/* Do they? What takes a root, a logarithm or a quotient sees what denormals are. */
static bool is_contracted(const ir_graph *g, const ir_uses *uses, uint32_t node) {
  bool only = !uses->is_output[node];
  for (uint32_t u = uses->first[node]; u < uses->first[node + 1]; u++) only &= ir_at(g, uses->user[u])->op == IR_OP_contract;
  return only;
}

/* Its number + 1. */
static uint32_t make_buffer(fusion_context *c, uint32_t owner) {
  ir_graph *g = c->graph;
  const ir_node *n = ir_at(g, owner);
  const ir_port *port = find_port(g, owner);
  ir_expr elements = 1;
  plan_buffer b = {.kind = buffer_kind(g, owner), .dtype = n->type.dtype, .rank = n->type.rank, .align = 256, .node = owner};
  memcpy(b.dims, n->type.dims, sizeof b.dims);
  if (fusion_has_pitch(c, owner)) b.rank = (uint8_t)(c->pitches[owner].axes + 1), b.dims[b.rank - 1] = c->pitches[owner].elements;
  b.name = port && port->name ? &g->names.at[port->name] : ir_node_name(g, owner);
  b.dtype = port_dtype(c, &b);
  for (uint32_t i = 0; i < b.rank; i++) elements = expr_mul(g->pool, elements, b.dims[i]);
  b.bytes = storage_bytes(c, n->type.dtype, elements);
  ir_source source = {0};
  if (b.kind == PLAN_CONSTANT && !fusion_stored_source(c, owner, &source)) c->plan->failed = true;
  b.data = source.data, b.making = source.making;
  b.flushes = b.kind == PLAN_CONSTANT && may_flush(c, b.dtype) && is_contracted(g, c->uses, owner);
  if (!IR_PUSH(c->arena, &c->plan->buffers, b)) c->plan->failed = true;
  return c->plan->buffers.count;
}

uint32_t fusion_buffer_of(fusion_context *c, uint32_t node) {
  const uint32_t owner = fusion_storage_node(c, node);
  if (!c->buffers[owner]) c->buffers[owner] = make_buffer(c, owner);
  const fusion_asked asked = {.kind = FUSION_ASKED_NODE, .node = node, .buffer = c->buffers[owner] - 1};
  fusion_note_asked(c, &asked);
  return asked.buffer;
}

uint32_t fusion_add_scratch(fusion_context *c, const char *name, int32_t dtype, ir_expr elements) {
  plan_buffer b = {.kind = PLAN_SCRATCH, .dtype = (uint8_t)dtype, .rank = 1, .align = 256, .name = name};
  b.dims[0] = elements;
  b.bytes = storage_bytes(c, dtype, elements);
  if (!IR_PUSH(c->arena, &c->plan->buffers, b)) c->plan->failed = true;
  fusion_note_asked(c, &(fusion_asked){.kind = FUSION_ASKED_SCRATCH, .buffer = c->plan->buffers.count - 1});
  return c->plan->buffers.count - 1;
}

uint32_t fusion_add_constant(fusion_context *c, const char *name, int32_t dtype, int64_t elements, const ir_making *making) {
  plan_buffer b = {.kind = PLAN_CONSTANT, .dtype = (uint8_t)dtype, .rank = 1, .align = 256, .name = name, .making = making};
  b.flushes = may_flush(c, dtype);
  b.dims[0] = expr_int(c->graph->pool, elements);
  b.bytes = storage_bytes(c, dtype, b.dims[0]);
  if (!IR_PUSH(c->arena, &c->plan->buffers, b)) c->plan->failed = true;
  return c->plan->buffers.count - 1;
}
