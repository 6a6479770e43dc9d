/* Kernel scopes of the emitter: begin and end of a kernel and its plan step, binding of buffers, loops, conditionals, the lane axis, memos.
   In: a group. Out: a kernel and a step in the plan. Whatever is remembered in a loop or if is forgotten when it closes. */
#include "fusion/emit_private.h"

/* ---- memories ---- */

ir_expr emit_buffer_elements(const emit *e, const plan_buffer *b) {
  ir_expr n = 1;
  for (uint32_t i = 0; i < b->rank; i++) n = expr_mul(e->x, n, b->dims[i]);
  return n;
}

/* A view of texels reaches all of it; or as far as a storage buffer, so that what is too large for the one is too large for the other. */
bool emit_view_reaches(const cost_profile *p, int64_t most_elements) {
  return ((uint64_t)most_elements + 3) / 4 <= p->max_texels || (p->max_buffer_bytes && p->max_texels >= p->max_buffer_bytes / 16);
}

/* The kernel stores its result over this state: a texel would have neighbours in it that other items write meanwhile. */
static bool is_written_over(const emit *e, const plan_buffer *b) {
  const uint32_t buffer = (uint32_t)(b - e->c->plan->buffers.at);
  for (uint32_t i = 0; b->kind == PLAN_STATE && i < e->group->output_count; i++)
    if (fusion_buffer_of(e->c, e->group->outputs[i]) == buffer) return true;
  return false;
}

/* Reads go through texel buffers where the profile says that they are the fast path: of elements that there are formats of, only read, in range of a view. */
static bool wants_texel(const emit *e, const plan_buffer *b, uint8_t access) {
  const cost_profile *p = e->c->options->profile;
  int64_t least, most;
  expr_bounds(e->x, emit_buffer_elements(e, b), &least, &most);
  if (e->c->reads_own && b->kind != PLAN_CONSTANT && b->kind != PLAN_INPUT) return false;
  return p->reads == COST_READS_TEXEL && p->caps.texel && fusion_has_texels(b->dtype) && (b->dtype != SNT_F16 || !p->caps.f16_arithmetic) &&
         access == KIR_READ && most >= 4 && emit_view_reaches(p, most) && !is_written_over(e, b);
}

bool emit_reads_texels(emit *e, uint32_t node) {
  const uint32_t buffer = fusion_buffer_of(e->c, node);
  return !e->arena->failed && buffer < e->c->plan->buffers.count && wants_texel(e, &e->c->plan->buffers.at[buffer], KIR_READ);
}

/* Bytes that are read as words are storage. */
static bool reads_words(const emit *e, uint32_t node) {
  bool found = false;
  for (uint32_t a = 0; !found && a < ir_at(e->g, node)->arity; a++) {
    const uint32_t from = ir_arg(e->g, node, a);
    if (fusion_is_view(e->g, from) && !fusion_is_stored(e->c, from)) found = ir_at(e->g, from)->op == IR_OP_words || reads_words(e, from);
  }
  return found;
}

bool emit_reads_only_texels(emit *e) {
  for (uint32_t i = 0; i < e->group->count; i++)
    if (reads_words(e, e->group->nodes[i])) return false;
  for (uint32_t i = 0; i < e->group->input_count; i++)
    if (!emit_reads_texels(e, e->group->inputs[i])) return false;
  return true;
}

/* How many elements the memory has: a literal, or a scalar where a guard may have to ask; else it stays open. The last texel may be part-filled:
   storage is in 16s. */
static void set_extent(emit *e, kir_memory *m, ir_expr elements) {
  const ir_expr count = m->flags & KIR_MEM_TEXEL ? expr_div(e->x, expr_add(e->x, elements, 3), 4) : elements;
  int64_t literal;
  if (expr_is_const(e->x, count, &literal)) m->dims[0] = (uint64_t)literal;
  else if (m->flags & KIR_MEM_OOB_ZERO) m->size_scalar = emit_scalar_for(e, count) + 1;
}

static uint32_t bind_as(emit *e, uint32_t buffer, int32_t dtype, uint8_t access) {
  if (e->arena->failed || buffer >= e->c->plan->buffers.count) return e->failed = true, 0;
  const plan_buffer *b = &e->c->plan->buffers.at[buffer];
  const bool texel = ir_dtypes[dtype].bytes == ir_dtypes[b->dtype].bytes && wants_texel(e, b, access);
  if (texel && dtype == SNT_I8) dtype = SNT_U8; /* the bits, which a cast takes for what they are */
  for (uint32_t m = 0; m < e->k->memories.count; m++) {
    kir_memory *memory = &e->k->memories.at[m];
    if (memory->space != KIR_GLOBAL || e->slots.at[memory->slot] != buffer) continue;
    if (memory->type.base != dtype || ((memory->flags & KIR_MEM_TEXEL) != 0 && !texel)) continue;
    memory->access |= access;
    e->access.at[memory->slot] |= access;
    return m;
  }
  char name[24];
  const int length = snprintf(name, sizeof name, "p%u", e->slots.count);
  kir_memory m = {
      .name = ir_arena_text(e->arena, name, (size_t)length), .space = KIR_GLOBAL, .access = access, .rank = 1, .slot = e->slots.count};
  m.type = kir_t(dtype, texel ? 4 : 1);
  m.align = b->align < 64 ? b->align : 64;
  m.flags = texel ? KIR_MEM_TEXEL | (e->c->options->profile->caps.oob_zero ? KIR_MEM_OOB_ZERO : 0) : 0;
  m.alias = b->kind == PLAN_STATE ? 1 : 0;
  set_extent(e, &m, expr_div(e->x, emit_buffer_elements(e, b), ir_dtypes[dtype].bytes / ir_dtypes[b->dtype].bytes));
  if (!IR_PUSH(e->arena, &e->slots, buffer) || !IR_PUSH(e->arena, &e->access, access)) e->failed = true;
  return kir_memory_add(e->k, &m);
}

uint32_t emit_bind(emit *e, uint32_t buffer, uint8_t access) {
  const uint8_t dtype = buffer < e->c->plan->buffers.count ? e->c->plan->buffers.at[buffer].dtype : SNT_BOOL;
  return bind_as(e, buffer, dtype >= SNT_BOOL ? SNT_U8 : dtype, access);
}

uint32_t emit_bind_words(emit *e, uint32_t buffer) { return bind_as(e, buffer, SNT_I32, KIR_READ); }

/* ---- kernel and step ---- */

emit *emit_begin(fusion_context *c, const fusion_group *group, const char *suffix) {
  emit *e = IR_NEW(c->arena, emit);
  kir_kernel *k = IR_NEW(c->arena, kir_kernel);
  if (!e || !k) return NULL;
  char name[48];
  const int length = snprintf(name, sizeof name, "k%u_%s", c->first_kernel + c->plan->kernels.count, suffix);
  *e = (emit){.c = c,
              .group = group,
              .g = c->graph,
              .x = c->graph->pool,
              .arena = c->arena,
              .k = k,
              .lanes = 1,
              .copies = 1,
              .lane_var = UINT32_MAX,
              .hand_var = UINT32_MAX};
  kir_init(k, c->arena, ir_arena_text(c->arena, name, (size_t)length));
  k->mode = c->options->numerics;
  for (uint32_t i = 0; i < EMIT_BUCKETS; i++) e->buckets[i] = e->index_buckets[i] = UINT32_MAX;
  return e;
}

static void fill_bindings(emit *e, plan_step *s) {
  s->binding_count = e->slots.count;
  s->bindings = IR_NEW_ARRAY(e->arena, plan_binding, e->slots.count);
  for (uint32_t i = 0; s->bindings && i < e->slots.count; i++)
    s->bindings[i] = (plan_binding){
        .buffer = e->slots.at[i], .bytes = e->c->plan->buffers.at[e->slots.at[i]].bytes, .access = e->access.at[i]};
  s->scalar_count = e->k->scalars.count;
  s->scalars = IR_NEW_ARRAY(e->arena, ir_expr, e->k->scalars.count);
  for (uint32_t i = 0; s->scalars && i < e->scalars.count; i++)
    s->scalars[e->scalars.at[i].scalar] = expr_never_by_0(e->x, e->scalars.at[i].expression);
}

/* What a kernel keeps in the room of its result it reads while it is near; a state that is written over comes from far. */
static bool is_result(const emit *e, const plan_binding *b) {
  if (!(b->access & KIR_WRITE) || e->c->plan->buffers.at[b->buffer].kind == PLAN_STATE) return false;
  for (uint32_t i = 0; i < e->group->output_count; i++)
    if (fusion_buffer_of(e->c, e->group->outputs[i]) == b->buffer) return true;
  return false;
}

/* Of `all` elements of a buffer those that the group reads, where its members take slices or gather rows. */
static ir_expr elements_read(emit *e, uint32_t buffer, ir_expr all) {
  fusion_context *c = e->c;
  uint32_t parts[FUSION_MOST_PARTS], count = 0;
  ir_expr read = 0;
  for (uint32_t i = 0; i < e->group->input_count && !count; i++)
    if (fusion_buffer_of(c, e->group->inputs[i]) == buffer) count = fusion_parts_read(c, e->group, e->group->inputs[i], parts);
  for (uint32_t i = 0; i < count; i++) read = expr_add(e->x, read, c->facts[parts[i]].count);
  return count ? expr_min(e->x, read, all) : all;
}

static void fill_traffic(emit *e, plan_step *s) {
  expr_pool *x = e->x;
  s->bytes_read = s->bytes_written = 0;
  for (uint32_t i = 0; i < s->binding_count; i++) {
    const plan_buffer *b = &e->c->plan->buffers.at[s->bindings[i].buffer];
    const uint8_t access = s->bindings[i].access;
    ir_expr elements = 1;
    for (uint32_t d = 0; d < b->rank; d++) elements = expr_mul(x, elements, b->dims[d]);
    const ir_expr read = access & KIR_READ && !is_result(e, &s->bindings[i]) ? elements_read(e, s->bindings[i].buffer, elements) : 0;
    s->bytes_read = expr_add(x, s->bytes_read, expr_mul(x, read, ir_dtypes[b->dtype].bytes));
    if (access & KIR_WRITE) s->bytes_written = expr_add(x, s->bytes_written, expr_mul(x, elements, ir_dtypes[b->dtype].bytes));
  }
}

snt_result emit_end(emit *e, ir_expr groups, uint32_t choice, uint32_t guard_count, const plan_condition *guards) {
  fusion_context *c = e->c;
  if (e->k->failed) {
    if (c->diag) *c->diag = e->k->first_error;
    return e->k->first_error.result ? e->k->first_error.result : SNT_E_HOST_MEM;
  }
  if (e->failed && e->failed_node) {
    const ir_node *n = ir_at(e->g, e->failed_node);
    return ir_fail(c->diag, SNT_E_INTERNAL, "schedule", n->origin, "kernel %s: %s (%s) cannot be computed inside a kernel of kind %s",
                   e->k->name, ir_ops[n->op].name, ir_node_name(e->g, e->failed_node), fusion_kind_names[e->group->kind]);
  }
  if (e->failed)
    return ir_fail(c->diag, SNT_E_INTERNAL, "schedule", ir_at(e->g, e->group->hero)->origin,
                   "kernel %s: out of host memory, or its results do not follow %s", e->k->name, ir_node_name(e->g, e->group->hero));
  if (c->options->profile->max_trips) kir_spread_trips(e->k, c->options->profile->max_trips);
  plan_step s = {.name = e->k->name, .kernel = c->plan->kernels.count, .groups = groups, .choice = choice, .guard_count = guard_count};
  s.node_count = e->group->count;
  s.nodes = e->group->nodes;
  fill_bindings(e, &s);
  fill_traffic(e, &s);
  if (!expr_proves_lt(e->x, 0, s.bytes_written)) s.groups = expr_mul(e->x, groups, expr_min(e->x, 1, s.bytes_written));
  s.guards = IR_NEW_ARRAY(e->arena, plan_condition, guard_count);
  if (!s.bindings || !s.scalars || !s.guards) return ir_no_memory(c->diag, "schedule");
  for (uint32_t i = 0; i < guard_count; i++) s.guards[i] = guards[i];
  if (c->options->hooks && c->options->hooks->after_kernel) c->options->hooks->after_kernel(c->options->hooks->user, e->k->name, e->k);
  const plan_kernel pk = {.kernel = e->k, .kind = fusion_kind_names[e->group->kind]};
  if (!IR_PUSH(c->arena, &c->plan->kernels, pk) || !IR_PUSH(c->arena, &c->plan->steps, s)) return ir_no_memory(c->diag, "schedule");
  return SNT_OK;
}

/* ---- scopes: whatever is remembered deeper than `depth` is dropped ---- */

static void forget(emit *e) {
  while (e->memos.count && e->memos.at[e->memos.count - 1].depth > e->depth) {
    const emit_memo *m = &e->memos.at[--e->memos.count];
    e->buckets[m->hash % EMIT_BUCKETS] = m->next;
  }
  while (e->indices.count && e->indices.at[e->indices.count - 1].depth > e->depth) {
    const emit_index *i = &e->indices.at[--e->indices.count];
    *emit_index_bucket(e, i->expression) = i->next;
  }
  while (e->stages.count && e->stages.at[e->stages.count - 1].depth > e->depth) e->stages.count--;
}

ir_expr emit_var_by(emit *e, const char *name, uint32_t kernel_value, ir_expr lo, ir_expr hi, int64_t step) {
  const ir_expr v = expr_var_add(e->x, name, lo, hi, step);
  if (!e->x->failed) e->x->vars.at[emit_var_number(e->x, v)].user = kernel_value;
  return v;
}

ir_expr emit_var_for(emit *e, const char *name, uint32_t kernel_value, ir_expr lo, ir_expr hi) {
  return emit_var_by(e, name, kernel_value, lo, hi, 1);
}

ir_expr emit_group(emit *e, ir_expr groups) {
  int64_t literal;
  if (expr_is_const(e->x, groups, &literal) && literal == 1) return 0;
  return emit_var_for(e, "g", kir_id(e->k, KIR_group, 0), 0, groups);
}

ir_expr emit_item(emit *e, uint32_t dimension, uint32_t items) {
  e->k->items[dimension] = items;
  if (items == 1) return 0;
  return emit_var_for(e, "l", kir_id(e->k, KIR_local, dimension), 0, items);
}

void emit_by_hand(emit *e, ir_expr item) {
  for (uint32_t i = 0; i < KIR_DIGITS; i++) emit_scalar_for(e, (ir_expr)i);
  e->hand_var = emit_var_number(e->x, item);
  e->same = true;
}

ir_expr emit_shares(emit *e, ir_expr *shares, ir_expr *item) {
  const cost_profile *p = e->c->options->profile;
  ir_expr beside = 1;
  while (beside < p->group_shares && *shares % (2 * beside) == 0 && (double)*shares >= 2 * (double)beside * p->min_groups) beside *= 2;
  *shares /= beside;
  const ir_expr g = emit_group(e, *shares);
  e->k->sub = p->caps.subgroup_size, e->k->items[0] = e->k->sub * (uint32_t)beside;
  *item = emit_var_for(e, "l", kir_id(e->k, KIR_sg_lane, 0), 0, e->k->sub);
  return beside == 1 ? g : expr_add(e->x, expr_mul(e->x, g, beside), emit_var_for(e, "s", kir_id(e->k, KIR_sg_id, 0), 0, beside));
}

ir_expr emit_loop(emit *e, const emit_loop_info *info) {
  const uint32_t lo = emit_expr(e, info->lo), hi = emit_expr(e, info->hi), step = kir_const_int(e->k, kir_t(SNT_U32, 1), info->step);
  const uint32_t id = kir_loop(e->k, lo, hi, step, info->carry_count, info->initial, info->carried, info->flags, info->unroll);
  e->depth++;
  const ir_expr end = info->whole ? expr_sub(e->x, info->hi, expr_int(e->x, info->step - 1)) : info->hi; /* one past the last value */
  const ir_expr v = expr_var_add(e->x, info->name, info->lo, end, info->step);
  if (!e->x->failed) e->x->vars.at[emit_var_number(e->x, v)].user = id;
  return v;
}

ir_expr emit_steps(emit *e, const char *name, ir_expr lo, ir_expr hi, int64_t step) {
  return emit_loop(e, &(emit_loop_info){.name = name, .lo = lo, .hi = hi, .step = step, .whole = true});
}

void emit_loop_end(emit *e, ir_expr variable, uint32_t count, const uint32_t *next, uint32_t *results) {
  if (e->x->failed || e->arena->failed) e->failed = true; /* then `variable` may be none */
  else kir_loop_end(e->k, e->x->vars.at[emit_var_number(e->x, variable)].user, count, next, results);
  e->depth--;
  forget(e);
}

uint32_t emit_below(emit *e, ir_expr value, ir_expr limit) { return kir_2(e->k, KIR_lt, emit_expr(e, value), emit_expr(e, limit)); }
void emit_if_below(emit *e, ir_expr value, ir_expr limit) { emit_if(e, emit_below(e, value, limit)); }

ir_expr emit_held_below(emit *e, const char *name, ir_expr at, ir_expr end) {
  expr_pool *x = e->x;
  int64_t literal;
  const bool below = expr_proves_lt(x, at, end);
  if (below && expr_is_const(x, at, &literal)) return at;
  return emit_var_for(e, name, emit_expr(e, below ? at : expr_min(x, at, expr_sub(x, end, 1))), 0, end);
}

uint32_t emit_zero_behind(emit *e, uint32_t value, ir_expr at, ir_expr end) {
  if (!value || e->k->failed || expr_proves_lt(e->x, at, end)) return value;
  return kir_3(e->k, KIR_select, emit_below(e, at, end), value, kir_const_like(e->k, value, 0));
}

uint32_t emit_inside(emit *e, ir_expr at, ir_expr extent, uint32_t tile) {
  return expr_multiple_of(e->x, extent) % tile ? emit_below(e, at, extent) : 0;
}

bool emit_if_both(emit *e, uint32_t a, uint32_t b) {
  if (a || b) emit_if(e, a && b ? kir_2(e->k, KIR_and, a, b) : a ? a : b);
  return a || b;
}

void emit_if(emit *e, uint32_t condition) {
  const uint32_t opened = kir_if(e->k, condition);
  if (!IR_PUSH(e->arena, &e->open_ifs, opened)) e->failed = true;
  e->depth++;
}

void emit_else(emit *e, uint32_t count, const uint32_t *values) {
  e->depth--;
  forget(e);
  e->depth++;
  if (e->open_ifs.count) kir_else(e->k, e->open_ifs.at[e->open_ifs.count - 1], count, values);
}

void emit_if_result(emit *e, uint32_t count, const uint32_t *values, uint32_t *results) {
  if (e->open_ifs.count) kir_if_end(e->k, e->open_ifs.at[--e->open_ifs.count], count, values, results);
  e->depth--;
  forget(e);
}

void emit_if_end(emit *e) { emit_if_result(e, 0, NULL, NULL); }

ir_expr emit_lanes(emit *e, ir_expr base, uint32_t lanes) {
  e->lanes = lanes;
  e->lane_var = UINT32_MAX;
  if (lanes == 1) return base;
  const ir_expr v = expr_var_add(e->x, "lane", 0, lanes, 1);
  e->lane_var = emit_var_number(e->x, v);
  return expr_add(e->x, base, v);
}

void emit_use_lanes(emit *e, uint32_t lane_var, uint32_t lanes) {
  e->lanes = lanes;
  e->lane_var = lane_var;
}

void emit_scalar_lanes(emit *e) {
  e->lanes = 1;
  e->lane_var = UINT32_MAX;
}
