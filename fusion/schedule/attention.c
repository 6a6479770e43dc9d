/* Kind `attention`: scores, their softmax and the weighted sum of the values in one kernel by the online rule; the scores never leave a tile.
   This file: the choice of the tile shape, legality, work, and the steps of the online rule that the shapes share.
   In: a group around a contraction of values. Out: one kernel (two guarded ones where an extent is symbolic). */
#include "fusion/schedule/attention_private.h"
#include <float.h>
#include <math.h>

enum { PRIVATE_BYTES = 16384 };

/* ---- arrays ---- */

const char attend_sum_names[ATTENTION_REDUCES][5] = {"sum0", "sum1", "sum2", "sum3", "sum4", "sum5", "sum6", "sum7"};

attend_array attend_array_add(attend *t, const char *name, int64_t elements) {
  emit *e = t->e;
  elements = (elements + 15) / 16 * 16;
  if (elements * 4 > PRIVATE_BYTES && t->spare) {
    t->spare--;
    const uint32_t buffer = fusion_add_scratch(t->c, name, SNT_F32, expr_mul(e->x, expr_int(e->x, elements), t->groups));
    return (attend_array){emit_bind(e, buffer, KIR_READ | KIR_WRITE), SNT_F32, expr_mul(e->x, t->group_number, expr_int(e->x, elements))};
  }
  kir_memory m = {.name = name, .space = KIR_PRIVATE, .access = KIR_READ | KIR_WRITE, .rank = 1, .flags = KIR_MEM_ROWS, .align = 64};
  m.type = kir_t(SNT_F32, 1);
  m.dims[0] = (uint64_t)elements;
  return (attend_array){kir_memory_add(e->k, &m), SNT_F32, 0};
}

snt_result attend_begin(attend *t, const char *name) {
  t->ulp = ir_ops[IR_OP_exp].max_ulp;
  t->e = emit_begin(t->c, t->group, name);
  return t->e ? SNT_OK : ir_no_memory(t->c->diag, "schedule");
}

uint32_t attend_load(attend *t, const attend_array *array, ir_expr offset) {
  return emit_load(t->e, array->memory, array->element, expr_add(t->e->x, array->base, offset), 0, NULL);
}

void attend_store(attend *t, const attend_array *array, ir_expr offset, uint32_t value) {
  const bool stream = t->e->stream;
  t->e->stream = false;
  emit_store(t->e, array->memory, array->element, expr_add(t->e->x, array->base, offset), value);
  t->e->stream = stream;
}

/* ---- coordinates ---- */

map_access attend_place(const attend *t, const map_access *symbolic) {
  expr_pool *x = t->e->x;
  uint32_t from[SNT_MAX_RANK + 1], count = 0;
  ir_expr to[SNT_MAX_RANK + 1];
  for (uint32_t i = 0; i < t->a->label_count; i++)
    if (t->a->label[i] < 0) from[count] = emit_var_number(x, t->a->label[i]), to[count++] = t->now[i];
  if (t->a->key < 0) from[count] = emit_var_number(x, t->a->key), to[count++] = t->key;
  map_access at = *symbolic;
  for (uint32_t i = 0; i < at.rank; i++) at.at[i] = expr_substitute(x, symbolic->at[i], count, from, to);
  return at;
}

map_access attend_place_of(const attend *t, uint32_t node) {
  const attention_node *n = attention_at(t->a, node);
  if (!n) {
    t->e->failed = true;
    return (map_access){0};
  }
  return attend_place(t, &n->at);
}

uint32_t attend_value(attend *t, uint32_t node) {
  const map_access at = attend_place_of(t, node);
  return emit_value(t->e, node, &at);
}

void attend_remember(attend *t, uint32_t node, uint32_t value) {
  const map_access at = attend_place_of(t, node);
  emit_remember(t->e, node, &at, value);
}

static ir_expr label_in(const ir_expr *list, uint32_t count, int64_t label, const map_access *at, bool *found) {
  for (uint32_t i = 0; i < count; i++)
    if (list[i] == label) {
      *found = true;
      return at->at[i];
    }
  *found = false;
  return 0;
}

static map_access score_operand(const attend *t, uint32_t operand, ir_expr inner) {
  const ir_graph *g = t->e->g;
  uint32_t count, out_count;
  const ir_expr *labels = ir_attr_ints(g, t->a->scores, operand ? IR_ATTR_rhs : IR_ATTR_lhs, &count);
  const ir_expr *out = ir_attr_ints(g, t->a->scores, IR_ATTR_out, &out_count);
  const map_access at = attend_place_of(t, t->a->scores);
  map_access place = {.rank = count};
  for (uint32_t i = 0; i < count; i++) {
    bool found;
    place.at[i] = label_in(out, out_count, labels[i], &at, &found);
    if (!found && labels[i] == (ir_expr)t->a->inner) place.at[i] = inner;
  }
  return place;
}
map_access attend_query_place(const attend *t, ir_expr inner) { return score_operand(t, t->a->query_operand, inner); }
map_access attend_key_place(const attend *t, ir_expr inner) { return score_operand(t, 1 - t->a->query_operand, inner); }

map_access attend_values_place(const attend *t) {
  const ir_graph *g = t->e->g;
  uint32_t count, out_count, weights_count;
  const ir_expr *labels = ir_attr_ints(g, t->a->values, t->a->value_operand ? IR_ATTR_rhs : IR_ATTR_lhs, &count);
  const ir_expr *weights = ir_attr_ints(g, t->a->values, t->a->weights ? IR_ATTR_rhs : IR_ATTR_lhs, &weights_count);
  const ir_expr *out = ir_attr_ints(g, t->a->values, IR_ATTR_out, &out_count);
  map_access at = {.rank = out_count}, place = {.rank = count};
  memcpy(at.at, t->now, sizeof at.at);
  for (uint32_t i = 0; i < count; i++) {
    bool found, summed;
    place.at[i] = label_in(out, out_count, labels[i], &at, &found);
    if (found) continue;
    (void)label_in(weights, weights_count, labels[i], &at, &summed);
    place.at[i] = summed && ir_at(g, ir_arg(g, t->a->values, t->a->value_operand))->type.dims[i] != 1 ? t->key : 0;
  }
  return place;
}

uint32_t attend_query_node(const attend *t) { return ir_arg(t->e->g, t->a->scores, t->a->query_operand); }
uint32_t attend_key_node(const attend *t) { return ir_arg(t->e->g, t->a->scores, 1 - t->a->query_operand); }
uint32_t attend_values_node(const attend *t) { return ir_arg(t->e->g, t->a->values, t->a->value_operand); }

/* Which labels a group number fixes: all but the row and the depth. */
static bool is_batch(const attend *t, uint32_t i) { return (int32_t)i != t->a->row && (int32_t)i != t->a->depth; }
ir_expr attend_batch(const attend *t) {
  ir_expr product = 1;
  for (uint32_t i = 0; i < t->a->label_count; i++)
    if (is_batch(t, i)) product = expr_mul(t->c->graph->pool, product, t->a->extent[i]);
  return product;
}
void attend_set_batch(attend *t, ir_expr number) {
  expr_pool *x = t->c->graph->pool;
  for (uint32_t i = t->a->label_count; i-- > 0;) {
    if (!is_batch(t, i)) continue;
    const ir_expr extent = t->a->extent[i];
    t->now[i] = extent == 1 ? 0 : expr_mod(x, number, extent);
    number = expr_div(x, number, extent);
  }
}

/* ---- values ---- */

uint32_t attend_f32(attend *t, uint32_t value) {
  emit *e = t->e;
  if (e->failed || e->k->failed) return 0;
  const kir_type type = emit_value_type(e, value);
  return type.base == SNT_F32 ? value : kir_cast(e->k, kir_t(SNT_F32, type.lanes), value);
}

uint32_t attend_lane(attend *t, uint32_t vector, uint32_t lane) {
  emit *e = t->e;
  if (e->failed || e->k->failed || emit_value_type(e, vector).lanes == 1) return vector;
  return kir_lane(e->k, vector, lane);
}

uint32_t(attend_scaled)(attend *t, uint32_t factor, uint32_t value) { return factor ? kir_2(t->e->k, KIR_mul, factor, value) : value; }

uint32_t attend_sum(attend *t, uint32_t vector, uint32_t lanes) {
  emit *e = t->e;
  if (e->failed || e->k->failed || lanes == 1) return vector;
  if (emit_value_type(e, vector).lanes == 1) return kir_2(e->k, KIR_mul, vector, kir_const_float(e->k, kir_t(SNT_F32, 1), lanes));
  return kir_1(e->k, KIR_hred_add, vector);
}

/* ---- the online rule ---- */

uint32_t attend_kept(const attend *t) { return t->a->argument ? t->a->argument : t->a->scores; }

uint32_t attend_start(attend *t, uint32_t lanes) {
  return kir_const_float(t->e->k, kir_t(SNT_F32, lanes), t->a->smallest ? INFINITY : -INFINITY);
}
uint32_t attend_extremum(attend *t, uint32_t a, uint32_t b) { return kir_2(t->e->k, t->a->smallest ? KIR_min : KIR_max, a, b); }
uint32_t attend_across(attend *t, uint32_t vector) {
  if (t->e->failed || t->e->k->failed || emit_value_type(t->e, vector).lanes == 1) return vector;
  return kir_1(t->e->k, t->a->smallest ? KIR_hred_min : KIR_hred_max, vector);
}
uint32_t attend_finite(attend *t, uint32_t extremum) {
  if (t->e->failed || t->e->k->failed) return 0;
  const uint32_t bound = kir_const_like(t->e->k, extremum, t->a->smallest ? FLT_MAX : -FLT_MAX);
  return kir_2(t->e->k, t->a->smallest ? KIR_min : KIR_max, extremum, bound);
}

static void remember_references(attend *t) {
  emit *e = t->e;
  const uint32_t extremum = t->reference;
  for (uint32_t i = 0; i < t->a->reference_count && !e->failed && !e->k->failed; i++) {
    const attention_reference *r = &t->a->references[i];
    const map_access at = attend_place(t, &r->at);
    const uint32_t value = r->use > 0 ? extremum : r->use < 0 ? kir_1(e->k, KIR_neg, extremum) : kir_const_like(e->k, extremum, 0);
    emit_remember(e, r->node, &at, value);
  }
  for (uint32_t i = 0; i < t->a->factor_count; i++) { /* applied to the result */
    const map_access at = attend_place(t, &t->a->factors[i].at);
    emit_remember(e, t->a->factors[i].node, &at, kir_const_float(e->k, kir_t(SNT_F32, 1), 1));
  }
}

void attend_refer(attend *t, uint32_t extremum) {
  t->reference = extremum;
  remember_references(t);
}

/* The exp at a key of its own, where a(k) is `argument`. */
static uint32_t exp_of(attend *t, uint32_t exp, uint32_t argument) {
  emit *e = t->e;
  const ir_expr kept = t->key;
  t->key = expr_var_add(e->x, "none", 0, t->a->keys, 1);
  remember_references(t);
  attend_remember(t, t->a->argument, argument);
  const uint32_t value = emit_of_negative(t->e->k, attend_value(t, t->a->exps[exp].node), t->ulp);
  t->key = kept;
  return value;
}

uint32_t attend_correction(attend *t, uint8_t exp, uint32_t before) { return exp ? exp_of(t, exp - 1u, before) : 0; }

uint32_t attend_weigh(attend *t, uint32_t kept, uint32_t *terms) {
  const ir_graph *g = t->e->g;
  remember_references(t);
  attend_remember(t, attend_kept(t), kept);
  for (uint32_t i = 0; i < t->a->exp_count; i++) (void)emit_of_negative(t->e->k, attend_value(t, t->a->exps[i].node), t->ulp);
  for (uint32_t i = 0; i < t->a->sum_count; i++) terms[i] = attend_value(t, ir_arg(g, t->a->sums[i], 0));
  return attend_value(t, ir_arg(g, t->a->values, t->a->weights));
}

/* By how much an exp with its true references differs from the one with the extremum. */
static uint32_t true_factor(attend *t, uint8_t exp, uint32_t extremum) {
  if (!exp || t->a->exps[exp - 1].exact) return 0;
  emit *e = t->e;
  const ir_expr kept = t->key;
  t->key = expr_var_add(e->x, "none", 0, t->a->keys, 1);
  attend_remember(t, t->a->argument, attend_finite(t, extremum));
  const uint32_t value = attend_value(t, t->a->exps[exp - 1].node);
  t->key = kept;
  return value;
}

static uint32_t times(attend *t, uint32_t a, uint32_t b) { return !a ? b : !b ? a : kir_2(t->e->k, KIR_mul, a, b); }

/* All choices at the key: a bool. */
static uint32_t is_kept(attend *t) {
  emit *e = t->e;
  uint32_t all = 0;
  for (uint32_t i = 0; i < t->a->choice_count && !e->failed && !e->k->failed; i++) {
    const uint32_t node = t->a->choices[i], condition = ir_arg(e->g, node, 0);
    const attention_node *taken = attention_at(t->a, ir_arg(e->g, node, 1));
    uint32_t value = attend_value(t, condition);
    if (!taken || taken->kind != ATTENTION_WEIGHT) value = kir_1(e->k, KIR_not, value);
    all = all ? kir_2(e->k, KIR_and, all, value) : value;
  }
  return all;
}

/* Rows whose scale is no number, or infinite, and of which no key was kept, take `none` in its place: their keys are looked through once more. */
static uint32_t unless_none(attend *t, uint32_t scale, uint32_t none) {
  emit *e = t->e;
  if (e->failed || e->k->failed || !scale) return scale;
  const kir_type bits = kir_t(SNT_U32, emit_value_type(e, scale).lanes);
  const uint32_t exponent = kir_const_int(e->k, bits, 0x7f800000), no = kir_const_int(e->k, bits, 0), yes = kir_const_int(e->k, bits, 1);
  const uint32_t bad = kir_2(e->k, KIR_eq, kir_2(e->k, KIR_and, kir_bitcast(e->k, bits, scale), exponent), exponent);
  uint32_t some = kir_3(e->k, KIR_select, bad, yes, no), any = no, carried;
  if (bits.lanes > 1) some = kir_1(e->k, KIR_hred_max, some);
  const ir_expr keys = expr_mul(e->x, emit_var_for(e, "some", some, 0, 2), t->a->keys), before = t->key;
  const ir_expr loop = emit_loop(
      e, &(emit_loop_info){.name = "key", .hi = keys, .step = 1, .carry_count = 1, .initial = &any, .carried = &carried});
  t->key = loop;
  const uint32_t kept = is_kept(t);
  if (!kept) return 0;
  const kir_type flag = kir_t(SNT_U32, emit_value_type(e, kept).lanes);
  const uint32_t one_or_none = kir_3(e->k, KIR_select, kept, kir_const_int(e->k, flag, 1), kir_const_int(e->k, flag, 0));
  carried = kir_2(e->k, KIR_or, carried, one_or_none);
  emit_loop_end(e, loop, 1, &carried, &any);
  t->key = before;
  return kir_3(e->k, KIR_select, kir_2(e->k, KIR_and, bad, kir_2(e->k, KIR_eq, any, no)), none, scale);
}

/* Without keys the sums are 0, and so is the result, whatever the row's values are. */
static uint32_t where_any(attend *t, uint32_t scale) {
  emit *e = t->e;
  const map_condition any = {0, 0, t->a->keys};
  if (!scale || e->failed || e->k->failed || expr_proves_lt(e->x, 0, t->a->keys)) return scale;
  return kir_3(e->k, KIR_select, emit_conditions(e, 1, &any), scale, kir_const_like(e->k, scale, 0));
}

uint32_t attend_finish(attend *t, uint32_t extremum, const uint32_t *sums) {
  emit *e = t->e;
  const attention *a = t->a;
  for (uint32_t i = 0; i < a->max_count; i++) attend_remember(t, a->maxes[i], extremum);
  for (uint32_t i = 0; i < a->sum_count; i++) attend_remember(t, a->sums[i], times(t, sums[i], true_factor(t, a->sum_exp[i], extremum)));
  uint32_t scale = true_factor(t, a->weight_exp, extremum), after = 0; /* after: the factors behind a choice alone */
  for (uint32_t i = 0; i < a->factor_count && !e->failed && !e->k->failed; i++) {
    const map_access at = attend_place(t, &a->factors[i].at);
    uint32_t value = emit_value(e, a->factors[i].node, &at);
    if (!value) return 0;
    if (a->factors[i].divides) value = kir_2(e->k, KIR_div, kir_const_like(e->k, value, 1), value);
    scale = times(t, scale, value);
    if (i >= a->chosen_after) after = times(t, after, value);
  }
  if (a->choice_count) scale = unless_none(t, scale, after ? after : kir_const_like(e->k, scale, 1));
  return where_any(t, scale);
}

void attend_output(attend *t, uint32_t value) {
  emit *e = t->e;
  map_access at = {.rank = t->a->label_count};
  memcpy(at.at, t->now, sizeof at.at);
  emit_remember(e, t->a->values, &at, value);
  for (uint32_t o = 0; o < t->group->output_count; o++) {
    map_access own = at;
    if (!fusion_forward_access(t->c, t->a->values, t->group->outputs[o], &own)) {
      e->failed = true;
      return;
    }
    map_access read;
    if (fusion_one_place(t->c, t->group, t->group->outputs[o], &own, t->a->values, &read)) emit_remember(e, t->a->values, &read, value);
    emit_store_node(e, t->group->outputs[o], &own, emit_value(e, t->group->outputs[o], &own));
  }
}

/* ---- legality ---- */

static bool find(const fusion_context *c, const fusion_group *group, attention *a, const char **why_not) {
  return attention_find(c, group, c->uses, group->hero, a, why_not);
}

static bool outputs_follow(const fusion_context *c, const fusion_group *group) {
  const map_access start = fusion_anywhere(c, group->hero);
  for (uint32_t i = 0; i < group->output_count; i++) {
    map_access at = start, read;
    if (group->outputs[i] == group->hero) continue;
    if (!fusion_forward_access(c, group->hero, group->outputs[i], &at) ||
        !fusion_one_place(c, group, group->outputs[i], &at, group->hero, &read))
      return false;
  }
  return true;
}

/* Members that are neither in the pattern, nor on the way to an operand, nor behind the result would never be computed. */
static bool is_float32(const fusion_context *c, uint32_t node) {
  const int32_t dtype = ir_at(c->graph, node)->type.dtype;
  return dtype == SNT_F32 || dtype == SNT_F16 || dtype == SNT_BF16;
}

bool schedule_attention_accepts(const fusion_context *c, const fusion_group *group, const char **why_not) {
  enum { WIDEST = 512 };
  attention a;
  int64_t depth = 1, inner;
  if (fusion_keeps_order(c->options)) {
    *why_not = "online sums change the order of additions, which these numerics keep";
    return false;
  }
  if (!find(c, group, &a, why_not)) return false;
  for (uint32_t i = 0; i < group->count; i++) {
    const ir_op op = (ir_op)ir_at(c->graph, group->nodes[i])->op;
    if ((ir_ops[op].flags & IR_REDUCE) && !attention_at(&a, group->nodes[i])) {
      *why_not = "a reduction beside the pattern";
      return false;
    }
    if (op == IR_OP_contract && group->nodes[i] != a.values && group->nodes[i] != a.scores) {
      *why_not = "a third contraction";
      return false;
    }
  }
  if (!is_float32(c, a.values) || !is_float32(c, a.scores)) *why_not = "no attention in this type";
  else if (a.depth >= 0 && !expr_is_const(c->graph->pool, a.extent[a.depth], &depth)) *why_not = "values of symbolic width";
  else if (!expr_is_const(c->graph->pool, a.inner_extent, &inner)) *why_not = "heads of symbolic width";
  else if (depth > WIDEST || inner > WIDEST || (depth > WIDEST / 2 && !schedule_is_explicit(c))) *why_not = "heads too wide for a tile";
  else if (!outputs_follow(c, group)) *why_not = "a result that does not follow the attention element by element";
  else return true;
  return false;
}

/* ---- work ---- */

/* Cycles that lanes need to read keys or values for each query by itself, in cycles of an element: what no view of texels shows has no tile of queries
   (attend_build_items), and each of its loads is one for every lane. */
static double each_query_cycles(const fusion_context *c, uint32_t operand, double rows) {
  const cost_profile *p = c->options->profile;
  const uint32_t base = c->facts[operand].base;
  if (schedule_is_explicit(c) || p->local_bytes > 0) return 0;
  if (p->reads == COST_READS_TEXEL && p->caps.texel && fusion_has_texels(ir_at(c->graph, base)->type.dtype) &&
      emit_view_reaches(p, (int64_t)c->elements[base]))
    return 0;
  return (rows - 1) * c->elements[operand] * p->lane_load_cycles * p->lanes;
}

void schedule_attention_work(const fusion_context *c, const fusion_group *group, cost_work *w) {
  attention a;
  const char *why;
  fusion_group_work(c, group, w);
  if (!find(c, group, &a, &why)) return;
  const expr_pool *x = c->graph->pool;
  const double rows = a.row >= 0 ? (double)schedule_hint(x, a.extent[a.row]) : 1;
  const double tile = schedule_is_explicit(c) || c->options->profile->local_bytes > 0 ? 32 : 64, passes = rows > tile ? rows / tile : 1;
  for (uint32_t i = 0; i < group->input_count && i < w->stream_count; i++) { /* keys and values are read again for each tile of queries */
    w->streams[i].accesses = w->streams[i].bytes * passes;
    w->streams[i].reuse_bytes = 65536;
    w->extra_cycles += fusion_narrow_cycles(c, group->inputs[i], false) * (rows - 1) * w->streams[i].bytes /
                       ir_dtypes[ir_at(c->graph, group->inputs[i])->type.dtype].bytes;
  }
  w->extra_cycles += each_query_cycles(c, ir_arg(c->graph, a.scores, 1 - a.query_operand), rows) +
                     each_query_cycles(c, ir_arg(c->graph, a.values, a.value_operand), rows);
  w->live_registers = 8;
}

/* ---- entry ---- */

/* Fewer queries than keep the device's lanes busy: the keys are shared out instead. */
static bool has_few_queries(const attend *t) {
  const cost_profile *p = t->c->options->profile;
  const expr_pool *x = t->c->graph->pool;
  const double rows = t->a->row >= 0 ? (double)schedule_hint(x, t->a->extent[t->a->row]) : 1;
  return rows * (double)schedule_hint(x, attend_batch(t)) < p->units * p->lanes || rows < p->row_items / 2;
}

snt_result schedule_attention_build(fusion_context *c, const fusion_group *group) {
  attention a;
  const char *why;
  if (!find(c, group, &a, &why))
    return ir_fail(c->diag, SNT_E_INTERNAL, "schedule", group->hero, "attention around %s: %s", ir_node_name(c->graph, group->hero), why);
  const attend start = {.c = c, .group = group, .a = &a, .spare = schedule_spare_bindings(c, group)};
  attend t = start;
  int64_t queries, keys, least;
  const bool explicit = schedule_is_explicit(c), few = explicit || has_few_queries(&t);
  if (!(explicit ? attend_tile_fits : attend_local_fits)(&t, &queries, &keys)) return attend_build_items(&t, few, 0, 0, NULL);
  plan_condition guards[2];
  uint32_t guard_count = 0;
  if (!expr_is_const(c->graph->pool, a.extent[a.row], &least))
    guards[guard_count++] = (plan_condition){a.extent[a.row], queries, INT64_MAX};
  if (!expr_is_const(c->graph->pool, a.keys, &least)) guards[guard_count++] = (plan_condition){a.keys, keys, INT64_MAX};
  const uint32_t choice = guard_count ? c->plan->steps.count + 1 : 0;
  SNT_TRY((explicit ? attend_build_tile : attend_build_local)(&t, choice, guard_count, guards));
  if (!guard_count) return SNT_OK;
  t = start;
  return attend_build_items(&t, few, choice, 0, NULL);
}
