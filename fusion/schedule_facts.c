/* What schedules, groups and rewrites ask of the profile and of extents: vectors, shares of work, sizes at the hints. Nothing here emits. */
#include "fusion/schedule_common.h"

ir_expr schedule_product(expr_pool *x, uint32_t count, const ir_expr *dims) {
  ir_expr p = 1;
  for (uint32_t i = 0; i < count; i++) p = expr_mul(x, p, dims[i]);
  return p;
}

int64_t schedule_hint(const expr_pool *x, ir_expr e) {
  int64_t values[64], out;
  const uint32_t count = x->symbols.count < 64 ? x->symbols.count : 64;
  for (uint32_t i = 0; i < count; i++)
    values[i] = x->symbols.at[i].hint > 0 ? x->symbols.at[i].hint : x->symbols.at[i].max < 1024 ? x->symbols.at[i].max : 1024;
  return expr_eval(x, e, &(expr_values){.symbols = values}, &out) ? out : 1;
}

static bool guards_hold(const ir_plan *p, const plan_step *s) {
  for (uint32_t i = 0; i < s->guard_count; i++) {
    const int64_t value = schedule_hint(p->pool, s->guards[i].value);
    if (value < schedule_hint(p->pool, s->guards[i].lo) || value >= schedule_hint(p->pool, s->guards[i].hi)) return false;
  }
  return true;
}

bool schedule_runs(const ir_plan *p, uint32_t step) {
  const uint32_t choice = p->steps.at[step].choice;
  for (uint32_t i = step; choice && i-- > 0;) {
    const plan_step *earlier = &p->steps.at[i];
    if (earlier->choice && earlier->choice != choice) break; /* the steps of two choices do not mix */
    if (earlier->choice && guards_hold(p, earlier)) return false;
  }
  return guards_hold(p, &p->steps.at[step]);
}

double schedule_bytes(const fusion_context *c, uint32_t node) {
  const ir_tensor *t = &ir_at(c->graph, node)->type;
  return (double)schedule_hint(c->graph->pool, ir_tensor_elements(c->graph->pool, t)) * ir_dtypes[t->dtype].bytes;
}

bool schedule_is_explicit(const fusion_context *c) { return c->options->profile->simd == COST_SIMD_EXPLICIT; }

bool schedule_shares_local(const fusion_context *c) {
  enum { LEAST = 4096 };
  const cost_profile *p = c->options->profile;
  return !schedule_is_explicit(c) && p->reads == COST_READS_STORAGE && p->local_bytes >= LEAST;
}

uint32_t schedule_lanes(const fusion_context *c) {
  if (!schedule_is_explicit(c)) return 4;
  const cost_profile *p = c->options->profile;
  return p->lanes >= 16 && p->caps.max_lanes >= 16 ? 16 : p->lanes >= 8 ? 8 : 4;
}

uint32_t schedule_dear_lanes(const fusion_context *c) {
  const uint32_t lanes = schedule_lanes(c);
  return schedule_is_explicit(c) && 2 * lanes <= c->options->profile->caps.max_lanes ? 2 * lanes : lanes;
}

uint32_t schedule_item_lanes(const fusion_context *c) { return c->options->profile->caps.flushes ? 1 : 4; }

static bool has_whole_rows(const ir_graph *g, uint32_t node, int64_t lanes) {
  const ir_tensor *t = &ir_at(g, node)->type;
  uint32_t last = t->rank;
  while (last && t->dims[last - 1] == 1) last--;
  return !last || expr_multiple_of(g->pool, t->dims[last - 1]) % lanes == 0;
}

/* All that views make of what is stored has rows of whole vectors, and so has that, unless it is the same for whole rows. `left`: so many views are looked
   at; joins of joins have more ways to what they are made of than nodes. */
static bool lies_whole(const ir_graph *g, uint32_t node, int64_t lanes, uint32_t *left) {
  for (; ir_ops[ir_at(g, node)->op].flags & IR_MOVEMENT; node = ir_arg(g, node, 0)) {
    const ir_node *n = ir_at(g, node);
    if (!*left || !has_whole_rows(g, node, lanes) || (n->op != IR_OP_broadcast && !has_whole_rows(g, ir_arg(g, node, 0), lanes)))
      return false;
    --*left;
    for (uint32_t i = 1; n->op == IR_OP_concat && i < n->arity; i++)
      if (!has_whole_rows(g, ir_arg(g, node, i), lanes) || !lies_whole(g, ir_arg(g, node, i), lanes, left)) return false;
  }
  return true;
}

/* An angle's reduction has a way of its own for the far ones (ir/math/trig.c), which lanes that are masked compute always: so many values live there that a
   driver's scheduler writes all of the loop one chain behind the other, with what stands before it (lavapipe: rows of exp and cos 1.4 times as long). */
static bool has_far_way(ir_op op) { return op == IR_OP_sin || op == IR_OP_cos || op == IR_OP_tan; }

uint32_t schedule_wide_lanes(const fusion_context *c, const fusion_group *group) {
  enum { MOST_VIEWS = 256 };
  const uint32_t lanes = schedule_item_lanes(c), wide = lanes * c->options->profile->item_vectors;
  uint32_t left = MOST_VIEWS;
  if (lanes == 1 || wide <= lanes) return lanes;
  for (uint32_t i = 0; i < group->count; i++) {
    const ir_node *n = ir_at(c->graph, group->nodes[i]);
    if (has_far_way((ir_op)n->op) || !lies_whole(c->graph, group->nodes[i], wide, &left)) return lanes;
    for (uint32_t a = 0; a < n->arity; a++)
      if (!lies_whole(c->graph, ir_arg(c->graph, group->nodes[i], a), wide, &left)) return lanes;
  }
  return wide;
}

bool schedule_has_subgroups(const fusion_context *c) {
  const cost_profile *p = c->options->profile;
  return !(c->options->targets & (SNT_TARGET_OPENCL | SNT_TARGET_CUDA)) && p->caps.subgroups && cost_has_subgroup(p, p->caps.subgroup_size);
}

/* A driver's compiler takes its time for what is written out (8192: half a second). */
bool schedule_by_hand(const fusion_context *c, const fusion_group *group, int64_t most, int64_t elements, int64_t groups) {
  enum { DEAR = 40, LEAST_ELEMENTS = 64, MOST_GROUPS = 65535 };
  enum { ENOUGH = 32 * LEAST_ELEMENTS }; /* times min_groups: of fewer results launches count more, and kernels with digits share none */
  const cost_profile *p = c->options->profile;
  int64_t operations = 0;
  if (!p->hand_texels || p->caps.address || !schedule_has_subgroups(c) || groups > MOST_GROUPS ||
      (double)groups * (double)elements < ENOUGH * p->min_groups)
    return false;
  for (uint32_t i = 0; i < group->count; i++) {
    const ir_node *n = ir_at(c->graph, group->nodes[i]);
    operations += ir_ops[n->op].flags & IR_EXPENSIVE ? DEAR : 1;
    if (n->op == IR_OP_custom) return false;
  }
  for (uint32_t i = 0; i < group->output_count; i++)
    if (ir_dtypes[ir_at(c->graph, group->outputs[i])->type.dtype].bytes != 4 || ir_attr_flag(c->graph, group->outputs[i], IR_ATTR_unread))
      return false;
  return operations <= most / LEAST_ELEMENTS && elements * operations <= most;
}

bool schedule_is_packed(const fusion_context *c, int32_t dtype) {
  const kir_caps *caps = &c->options->profile->caps;
  switch (dtype) {
  case SNT_F16: return !caps->f16_storage;
  case SNT_BF16: return !caps->bf16_storage;
  case SNT_I8:
  case SNT_U8: return !caps->int8_storage;
  case SNT_I16:
  case SNT_U16: return !caps->int16_storage;
  default: return false;
  }
}

bool schedule_has_dear(const ir_graph *g, const fusion_group *group) {
  for (uint32_t i = 0; i < group->count; i++)
    if (ir_ops[ir_at(g, group->nodes[i])->op].flags & IR_EXPENSIVE) return true;
  return false;
}

uint32_t schedule_row_lanes(const fusion_context *c, const fusion_group *group) {
  return schedule_has_dear(c->graph, group) ? schedule_dear_lanes(c) : schedule_lanes(c);
}

bool schedule_keeps_rows(const fusion_context *c, const fusion_group *group, uint32_t vectors) {
  const ir_tensor *full = &ir_at(c->graph, ir_arg(c->graph, group->hero, 0))->type;
  double bytes = (double)vectors * schedule_row_lanes(c, group) * sizeof(float);
  uint32_t count;
  const ir_expr *axes = ir_attr_ints(c->graph, group->hero, IR_ATTR_axes, &count);
  for (uint32_t i = 0; i < count; i++) {
    int64_t extent;
    if (axes[i] == (ir_expr)full->rank - 1) return schedule_is_explicit(c) || c->options->profile->local_bytes > 0;
    if (!expr_is_const(c->graph->pool, full->dims[axes[i]], &extent)) return false;
    bytes *= (double)extent;
  }
  return schedule_is_explicit(c) && bytes <= 0.5 * c->options->profile->l2_bytes;
}

double schedule_least_parts(const fusion_context *c) {
  const cost_profile *p = c->options->profile;
  return p->units * 4 > p->min_groups ? p->units * 4 : p->min_groups;
}

ir_expr schedule_split_work(fusion_context *c, ir_expr total, int64_t unit_elements, int64_t *per) {
  expr_pool *x = c->graph->pool;
  const double units = schedule_hint(x, total), elements = units * (double)unit_elements;
  double share = 65536; /* elements a group: long enough to hide its start, short enough to even out */
  const double parts = schedule_least_parts(c);
  if (elements / share < parts) share = elements / parts;
  if (share < 2048) share = 2048;
  *per = (int64_t)(share / (double)unit_elements);
  if (*per < 1) *per = 1;
  int64_t literal;
  if (expr_is_const(x, total, &literal)) { /* even parts */
    const int64_t groups = (literal + *per - 1) / *per;
    *per = groups ? (literal + groups - 1) / groups : 1;
  }
  return expr_ceil_div(x, total, expr_int(x, *per));
}

ir_expr schedule_part_start(expr_pool *x, ir_expr extent, ir_expr parts, ir_expr p) {
  return expr_add(x, expr_mul(x, p, expr_div(x, extent, parts)), expr_div(x, expr_mul(x, p, expr_mod(x, extent, parts)), parts));
}

uint32_t schedule_spare_bindings(const fusion_context *c, const fusion_group *group) {
  const uint32_t limit = c->options->profile->max_bindings, used = group->input_count + group->output_count;
  return !limit ? UINT32_MAX : limit > used ? limit - used : 0;
}

/* All inputs and outputs once, at the hints. */
static double group_bytes(fusion_context *c, const fusion_group *group) {
  double bytes = 0;
  const uint32_t *lists[2] = {group->inputs, group->outputs};
  const uint32_t counts[2] = {group->input_count, group->output_count};
  for (int l = 0; l < 2; l++)
    for (uint32_t i = 0; i < counts[l]; i++) bytes += schedule_bytes(c, lists[l][i]);
  return bytes;
}

bool schedule_streams(fusion_context *c, const fusion_group *group, bool runs) {
  const cost_profile *p = c->options->profile;
  return p->caps.stream && !(runs && p->plain_runs) && group_bytes(c, group) > p->stream_threshold;
}
