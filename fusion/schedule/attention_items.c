/* Attention with the state of one query in registers: extremum, sums, and the result in vectors along the values' width. Keys come in
   blocks of eight, or of sixteen where a read is a call that lanes share and queries have few registers: scores by vectors along the inner
   axis, then weights with the keys of the block in lanes.
   Three uses: an item a query (lanes); one item a workgroup a query (explicit vectors with few queries, as when decoding); the items of a workgroup
   share the keys of one query and combine their states at the end (lanes with few queries), or those of a part of the keys, and a second kernel combines
   the parts (lanes with fewer queries than the device has units, as when decoding). */
#include "fusion/schedule/attention_items.h"

enum {
  ROW_PAD = 4 /* items' results begin in other banks */,
  BLOCK = 8,
  WIDE_BLOCK = 16,
  MAX_QUERIES = 4,
  MAX_STATE = 4 * (32 + 9) + 16 * 9
};

typedef struct state {
  uint32_t extremum, sums[ATTENTION_REDUCES], results[MAX_PIECES];
} state;

static int64_t part_size(const query *s) { return s->depth + 1 + s->t->a->sum_count; }

static uint32_t constant(query *s, uint32_t lanes, double x) { return kir_const_float(s->t->e->k, kir_t(SNT_F32, lanes), x); }

static bool cut_pieces(query *s) {
  uint32_t lanes = s->lanes;
  for (int64_t at = 0; at < s->depth;) {
    while (lanes > s->depth - at) lanes /= 2;
    if (s->piece_count == MAX_PIECES) return false;
    s->pieces[s->piece_count++] = (piece){at, lanes};
    at += lanes;
  }
  return true;
}

static uint32_t state_count(const query *s) { return 1 + s->t->a->sum_count + s->piece_count; }
static void pack_state(const query *s, const state *from, uint32_t *list) {
  uint32_t n = 0;
  list[n++] = from->extremum;
  for (uint32_t i = 0; i < s->t->a->sum_count; i++) list[n++] = from->sums[i];
  for (uint32_t i = 0; i < s->piece_count; i++) list[n++] = from->results[i];
}
static void unpack_state(const query *s, const uint32_t *list, state *to) {
  uint32_t n = 0;
  to->extremum = list[n++];
  for (uint32_t i = 0; i < s->t->a->sum_count; i++) to->sums[i] = list[n++];
  for (uint32_t i = 0; i < s->piece_count; i++) to->results[i] = list[n++];
}

static void set_query(query *s, uint32_t number) {
  if (s->t->a->row >= 0) s->t->now[s->t->a->row] = expr_add(s->t->e->x, s->row, number);
}

static state first_state(query *s) {
  state now = {.extremum = attend_start(s->t, 1)};
  for (uint32_t i = 0; i < s->t->a->sum_count; i++) now.sums[i] = constant(s, 1, 0);
  for (uint32_t i = 0; i < s->piece_count; i++) now.results[i] = constant(s, s->pieces[i].lanes, 0);
  return now;
}

/* ---- scores ---- */

/* Where a product and a sum are two operations, the terms of a trip are summed before they meet the sum so far, of which there is then one for a vector of
   them: a loop carries a quarter, and what it carries comes from memory, is selected, and goes there. */
static bool sums_apart(const query *s) { return s->queries > 1 && !s->t->c->options->profile->caps.fma_fast; }

/* Products of `count` keys from `key` on with every query of the item, at `inner` of the inner axis in vectors of `lanes`. Keys are loaded once. */
static void multiply_scores(query *s, ir_expr key, ir_expr stride, uint32_t count, ir_expr inner, uint32_t lanes, uint32_t *acc) {
  attend *t = s->t;
  emit *e = t->e;
  const ir_expr at = emit_lanes(e, inner, lanes);
  uint32_t keys[WIDE_BLOCK];
  for (uint32_t i = 0; i < count; i++) {
    t->key = expr_add(e->x, key, expr_mul(e->x, stride, i));
    keys[i] = attend_read_row(s, KEYS, at);
  }
  t->key = key;
  for (uint32_t q = 0; q < s->queries; q++) {
    set_query(s, q);
    const uint32_t value = attend_read_row(s, QUERIES, at);
    for (uint32_t i = 0; i < count; i++) {
      uint32_t *const sum = &acc[q * count + i];
      if (lanes > 1 && sums_apart(s)) *sum = kir_2(e->k, KIR_add, *sum, attend_sum(t, kir_2(e->k, KIR_mul, keys[i], value), lanes));
      else *sum = kir_3(e->k, KIR_fma, keys[i], value, *sum);
    }
  }
  emit_scalar_lanes(e);
}

static void make_scores(query *s, ir_expr key, ir_expr stride, uint32_t count, uint32_t *scores) {
  attend *t = s->t;
  emit *e = t->e;
  const uint32_t cells = count * s->queries;
  uint32_t lanes = s->lanes, acc[WIDE_BLOCK * MAX_QUERIES], carried[WIDE_BLOCK * MAX_QUERIES];
  while (lanes > 1 && lanes > s->inner) lanes /= 2;
  const int64_t whole = s->inner / lanes * lanes;
  for (uint32_t i = 0; i < cells; i++) acc[i] = constant(s, sums_apart(s) ? 1 : lanes, 0);
  const ir_expr d = emit_loop(
      e, &(emit_loop_info){
             .name = "d", .lo = 0, .hi = whole, .step = lanes, .whole = true, .carry_count = cells, .initial = acc, .carried = carried});
  multiply_scores(s, key, stride, count, d, lanes, carried);
  emit_loop_end(e, d, cells, carried, acc);
  for (uint32_t i = 0; i < cells; i++) scores[i] = lanes > 1 && !sums_apart(s) ? kir_1(e->k, KIR_hred_add, acc[i]) : acc[i];
  for (int64_t rest = whole; rest < s->inner; rest++) multiply_scores(s, key, stride, count, rest, 1, scores);
}

/* ---- one block ---- */

static uint32_t as_vector(emit *e, uint32_t count, const uint32_t *values) {
  return count == 1 ? values[0] : kir_vector(e->k, SNT_F32, count, values);
}

/* The weights of the block with its keys in lanes; extremum and sums move on. Returns what the results are multiplied by, 0: nothing. */
static uint32_t make_weights(query *s, ir_expr key, ir_expr stride, uint32_t count, const uint32_t *scores, state *now, uint32_t *weights) {
  attend *t = s->t;
  emit *e = t->e;
  uint32_t terms[ATTENTION_REDUCES], factor = 0;
  const ir_expr lane = emit_lanes(e, 0, count);
  t->key = expr_add(e->x, key, count > 1 ? expr_mul(e->x, stride, lane) : 0);
  uint32_t kept = as_vector(e, count, scores);
  attend_remember(t, t->a->scores, kept);
  if (attend_kept(t) != t->a->scores) kept = attend_f32(t, attend_value(t, attend_kept(t)));
  if (t->a->exp_count) {
    const uint32_t before = attend_finite(t, now->extremum);
    now->extremum = attend_extremum(t, now->extremum, attend_across(t, kept));
    attend_refer(t, attend_finite(t, now->extremum));
    for (uint32_t i = 0; i < t->a->sum_count; i++)
      now->sums[i] = attend_scaled(t, attend_correction(t, t->a->sum_exp[i], before), now->sums[i]);
    factor = attend_correction(t, t->a->weight_exp, before);
  } else {
    attend_refer(t, 0);
  }
  const uint32_t weight = attend_f32(t, attend_weigh(t, kept, terms));
  for (uint32_t i = 0; i < t->a->sum_count; i++)
    now->sums[i] = kir_2(e->k, KIR_add, now->sums[i], attend_sum(t, attend_f32(t, terms[i]), count));
  emit_scalar_lanes(e);
  for (uint32_t i = 0; i < count; i++) weights[i] = attend_lane(t, weight, i);
  return factor;
}

/* Values are loaded once for all queries of the item. */
static void add_values(query *s, ir_expr key, ir_expr stride, uint32_t count, uint32_t weights[][WIDE_BLOCK], const uint32_t *factors,
                       state *now) {
  attend *t = s->t;
  emit *e = t->e;
  for (uint32_t p = 0; p < s->piece_count; p++) {
    const ir_expr at = emit_lanes(e, s->pieces[p].from, s->pieces[p].lanes);
    for (uint32_t q = 0; q < s->queries; q++) now[q].results[p] = attend_scaled(t, factors[q], now[q].results[p]);
    for (uint32_t i = 0; i < count; i++) {
      t->key = expr_add(e->x, key, expr_mul(e->x, stride, i));
      const uint32_t value = attend_read_row(s, VALUES, at);
      for (uint32_t q = 0; q < s->queries; q++) now[q].results[p] = kir_3(e->k, KIR_fma, weights[q][i], value, now[q].results[p]);
    }
    emit_scalar_lanes(e);
  }
}

static void do_block(query *s, ir_expr key, ir_expr stride, uint32_t count, state *now) {
  uint32_t scores[WIDE_BLOCK * MAX_QUERIES], weights[MAX_QUERIES][WIDE_BLOCK], factors[MAX_QUERIES];
  make_scores(s, key, stride, count, scores);
  for (uint32_t q = 0; q < s->queries; q++) {
    set_query(s, q);
    factors[q] = make_weights(s, key, stride, count, scores + q * count, &now[q], weights[q]);
  }
  add_values(s, key, stride, count, weights, factors, now);
}

/* Keys [lo, hi): `count` at a time, `stride` apart, blocks `step` apart, this item's first at `shift`. */
typedef struct key_range {
  ir_expr lo, hi, shift, stride;
  int64_t step;
  uint32_t count;
} key_range;

static void sweep_keys(query *s, const key_range *r, state *now) {
  emit *e = s->t->e;
  uint32_t initial[MAX_STATE], carried[MAX_STATE];
  int64_t trips;
  if (expr_is_const(e->x, expr_sub(e->x, r->hi, r->lo), &trips) && trips <= 0) return;
  const uint32_t count = state_count(s);
  for (uint32_t q = 0; q < s->queries; q++) pack_state(s, &now[q], initial + q * count);
  const ir_expr v = emit_loop(e, &(emit_loop_info){.name = "key",
                                                   .lo = expr_add(e->x, r->lo, r->count == 1 ? r->shift : 0),
                                                   .hi = r->hi,
                                                   .step = r->step,
                                                   .whole = r->count > 1,
                                                   .carry_count = count * s->queries,
                                                   .initial = initial,
                                                   .carried = carried});
  state inside[MAX_QUERIES];
  for (uint32_t q = 0; q < s->queries; q++) unpack_state(s, carried + q * count, &inside[q]);
  do_block(s, r->count == 1 ? v : expr_add(e->x, v, r->shift), r->stride, r->count, inside);
  for (uint32_t q = 0; q < s->queries; q++) pack_state(s, &inside[q], carried + q * count);
  emit_loop_end(e, v, count * s->queries, carried, initial);
  for (uint32_t q = 0; q < s->queries; q++) unpack_state(s, initial + q * count, &now[q]);
}

/* The keys of the group: whole blocks for all items first, then what is left, wide blocks by halves, others key by key. */
static void all_keys(query *s, state *now) {
  emit *e = s->t->e;
  expr_pool *x = e->x;
  const int64_t items = s->shared ? s->items : 1, step = s->block * items;
  ir_expr from = 0, to = s->t->a->keys;
  if (s->parts > 1) {
    const ir_expr keys = to, size = expr_mul(x, expr_ceil_div(x, keys, step * s->parts), step), end = expr_add(x, keys, 1);
    from = emit_var_for(e, "from", emit_expr(e, expr_min(x, expr_mul(x, s->part, size), keys)), 0, end);
    to = emit_var_for(e, "to", emit_expr(e, expr_min(x, expr_add(x, from, size), keys)), 0, end);
  }
  const ir_expr shift = s->shared ? s->item : 0;
  for (uint32_t q = 0; q < s->queries; q++) now[q] = first_state(s);
  for (uint32_t count = s->block; count; count = s->block > BLOCK ? count / 2 : count > 1) {
    const ir_expr rest = count > 1 ? expr_sub(x, to, expr_mod(x, expr_sub(x, to, from), count * items)) : to;
    sweep_keys(s, &(key_range){from, rest, shift, count > 1 ? items : 1, count * items, count}, now);
    from = rest;
  }
}

/* ---- the end ---- */

static void store_results(query *s, const state *now) {
  attend *t = s->t;
  emit *e = t->e;
  t->key = 0;
  const uint32_t scale = attend_finish(t, now->extremum, now->sums);
  for (uint32_t p = 0; p < s->piece_count; p++) {
    if (t->a->depth >= 0) t->now[t->a->depth] = emit_lanes(e, s->pieces[p].from, s->pieces[p].lanes);
    attend_output(t, attend_scaled(t, scale, now->results[p]));
    emit_scalar_lanes(e);
  }
}

/* The states of the items become one: extrema first, then everything rescaled to the common one is added up through local memory. */
static void combine_items(query *s, state *now) {
  attend *t = s->t;
  emit *e = t->e;
  uint32_t factor = 0;
  if (t->a->exp_count) {
    const uint32_t own = attend_finite(t, now->extremum);
    now->extremum = emit_group_combine(e, t->a->smallest ? KIR_min : KIR_max, now->extremum, s->items);
    attend_refer(t, attend_finite(t, now->extremum));
    for (uint32_t i = 0; i < t->a->sum_count; i++)
      now->sums[i] = attend_scaled(t, attend_correction(t, t->a->sum_exp[i], own), now->sums[i]);
    factor = attend_correction(t, t->a->weight_exp, own);
  }
  for (uint32_t i = 0; i < t->a->sum_count; i++) now->sums[i] = emit_group_combine(e, KIR_add, now->sums[i], s->items);
  for (uint32_t p = 0; p < s->piece_count; p++) now->results[p] = attend_scaled(t, factor, now->results[p]);
}

/* Number `at` of the state of a part of the query at hand. */
static ir_expr part_place(const query *s, ir_expr part, ir_expr at) {
  expr_pool *x = s->t->e->x;
  const ir_expr number = expr_add(x, expr_mul(x, s->number, s->parts), part);
  return expr_add(x, expr_mul(x, number, expr_int(x, part_size(s))), at);
}
static uint32_t load_part(query *s, ir_expr part, ir_expr at) {
  return attend_load(s->t, &(attend_array){emit_bind(s->t->e, s->scratch, KIR_READ), SNT_F32, 0}, part_place(s, part, at));
}
static void store_part(query *s, ir_expr at, uint32_t value) {
  attend_store(s->t, &(attend_array){emit_bind(s->t->e, s->scratch, KIR_WRITE), SNT_F32, 0}, part_place(s, s->part, at), value);
}

/* So many groups a query; returns how many there are of all. */
static ir_expr place_query(query *s, uint32_t parts) {
  attend *t = s->t;
  emit *e = t->e;
  const ir_expr rows = row_extent(s), groups = expr_mul(e->x, expr_mul(e->x, attend_batch(t), rows), parts);
  t->groups = groups;
  t->group_number = emit_group(e, groups);
  s->item = emit_item(e, 0, s->items);
  s->part = expr_mod(e->x, t->group_number, parts);
  s->number = expr_div(e->x, t->group_number, parts);
  attend_set_batch(t, expr_div(e->x, s->number, rows));
  s->row = expr_mod(e->x, s->number, rows);
  set_query(s, 0);
  return groups;
}

static void store_combined(query *s, state *now) {
  attend *t = s->t;
  emit *e = t->e;
  kir_memory m = {.name = "results", .space = KIR_LOCAL, .access = KIR_READ | KIR_WRITE, .rank = 1, .align = 16};
  m.type = kir_t(SNT_F32, 1);
  const ir_expr pitch = expr_int(e->x, s->depth + ROW_PAD);
  m.dims[0] = (uint64_t)s->items * (uint64_t)(s->depth + ROW_PAD);
  const attend_array shared = {kir_memory_add(e->k, &m), SNT_F32, 0};
  for (uint32_t p = 0; p < s->piece_count; p++) {
    const ir_expr at = emit_lanes(e, s->pieces[p].from, s->pieces[p].lanes);
    attend_store(t, &shared, expr_add(e->x, expr_mul(e->x, s->item, pitch), at), now->results[p]);
    emit_scalar_lanes(e);
  }
  kir_barrier(e->k, KIR_SYNC_LOCAL);
  t->key = 0;
  const uint32_t scale = s->parts > 1 ? 0 : attend_finish(t, now->extremum, now->sums);
  const ir_expr d = emit_loop(e, &(emit_loop_info){.name = "n", .lo = s->item, .hi = s->depth, .step = s->items});
  uint32_t sum = constant(s, 1, 0), carried;
  const ir_expr i = emit_loop(
      e, &(emit_loop_info){.name = "i", .lo = 0, .hi = s->items, .step = 1, .carry_count = 1, .initial = &sum, .carried = &carried});
  carried = kir_2(e->k, KIR_add, carried, attend_load(t, &shared, expr_add(e->x, expr_mul(e->x, i, pitch), d)));
  emit_loop_end(e, i, 1, &carried, &sum);
  if (s->parts > 1) {
    store_part(s, d, sum);
  } else {
    if (t->a->depth >= 0) t->now[t->a->depth] = d;
    attend_output(t, attend_scaled(t, scale, sum));
  }
  emit_loop_end(e, d, 0, NULL, NULL);
  if (s->parts == 1) return;
  emit_if_below(e, s->item, 1);
  for (uint32_t n = 0; n <= t->a->sum_count; n++) store_part(s, expr_int(e->x, s->depth + n), n ? now->sums[n - 1] : now->extremum);
  emit_if_end(e);
}

/* The states of the parts become one, as those of items do. References stand for the common extremum in the loop alone: behind it they are what they are. */
static void sum_parts(query *s, uint32_t common, uint32_t count, const ir_expr *at, const uint8_t *exps, uint32_t *sums) {
  attend *t = s->t;
  emit *e = t->e;
  uint32_t carried[ATTENTION_REDUCES];
  if (!count) return;
  for (uint32_t i = 0; i < count; i++) sums[i] = constant(s, 1, 0);
  const ir_expr p = emit_loop(
      e, &(emit_loop_info){.name = "p", .lo = 0, .hi = s->parts, .step = 1, .carry_count = count, .initial = sums, .carried = carried});
  const uint32_t extremum = t->a->exp_count ? attend_finite(t, load_part(s, p, expr_int(e->x, s->depth))) : 0;
  attend_refer(t, extremum ? attend_finite(t, common) : 0);
  for (uint32_t i = 0; i < count; i++)
    carried[i] = kir_2(e->k, KIR_add, carried[i], attend_scaled(t, attend_correction(t, exps[i], extremum), load_part(s, p, at[i])));
  emit_loop_end(e, p, count, carried, sums);
}

static uint32_t extremum_of_parts(query *s) {
  emit *e = s->t->e;
  uint32_t extremum = attend_start(s->t, 1), carried;
  const ir_expr p = emit_loop(
      e, &(emit_loop_info){.name = "m", .lo = 0, .hi = s->parts, .step = 1, .carry_count = 1, .initial = &extremum, .carried = &carried});
  carried = attend_extremum(s->t, carried, load_part(s, p, expr_int(e->x, s->depth)));
  emit_loop_end(e, p, 1, &carried, &extremum);
  return extremum;
}

static ir_expr combine_parts(query *s) {
  attend *t = s->t;
  emit *e = t->e;
  uint32_t sums[ATTENTION_REDUCES], sum;
  ir_expr places[ATTENTION_REDUCES];
  const ir_expr groups = place_query(s, 1);
  t->key = 0;
  const uint32_t extremum = extremum_of_parts(s);
  for (uint32_t i = 0; i < t->a->sum_count; i++) places[i] = expr_int(e->x, s->depth + 1 + i);
  sum_parts(s, extremum, t->a->sum_count, places, t->a->sum_exp, sums);
  const ir_expr d = emit_loop(e, &(emit_loop_info){.name = "n", .lo = s->item, .hi = s->depth, .step = s->items});
  sum_parts(s, extremum, 1, &d, &t->a->weight_exp, &sum);
  const uint32_t scale = attend_finish(t, extremum, sums);
  if (t->a->depth >= 0) t->now[t->a->depth] = d;
  attend_output(t, attend_scaled(t, scale, sum));
  emit_loop_end(e, d, 0, NULL, NULL);
  return groups;
}

/* ---- sharing out ---- */

/* One query a workgroup, or a part of its keys. */
static ir_expr build_one(query *s) {
  const ir_expr groups = place_query(s, s->parts);
  state now;
  all_keys(s, &now);
  set_query(s, 0);
  if (!s->shared) {
    store_results(s, &now);
    return groups;
  }
  combine_items(s, &now);
  store_combined(s, &now);
  return groups;
}

static void do_queries(query *s) {
  state now[MAX_QUERIES];
  all_keys(s, now);
  for (uint32_t q = 0; q < s->queries; q++) {
    set_query(s, q);
    store_results(s, &now[q]);
  }
}

/* An item a query, or several. */
static ir_expr build_many(query *s) {
  attend *t = s->t;
  emit *e = t->e;
  expr_pool *x = e->x;
  const int64_t share = (int64_t)s->items * s->queries;
  const ir_expr rows = row_extent(s), parts = expr_ceil_div(x, rows, share), groups = expr_mul(x, attend_batch(t), parts);
  t->groups = groups;
  t->group_number = emit_group(e, groups);
  s->item = emit_item(e, 0, s->items);
  s->batch = expr_div(x, t->group_number, parts);
  attend_set_batch(t, s->batch);
  s->row = expr_add(x, expr_mul(x, expr_mod(x, t->group_number, parts), share), expr_mul(x, s->item, s->queries));
  if (expr_proves_lt(x, expr_add(x, s->row, s->queries - 1), rows)) {
    do_queries(s);
    return groups;
  }
  const ir_expr last = expr_sub(x, rows, s->queries);
  const bool repeats = s->block > BLOCK; /* items past the last query repeat it: their lanes take part in reads that lanes share */
  if (!repeats) emit_if_below(e, s->row, rows);
  e->same = repeats;
  s->row = emit_var_for(e, "row", emit_expr(e, repeats ? expr_min(x, s->row, last) : s->row), 0, expr_add(x, last, 1));
  do_queries(s);
  if (!repeats) emit_if_end(e);
  return groups;
}

/* As many queries an item as its registers hold, with few of them past the last; where reads are no texels registers are dear, or compiling is. */
static uint32_t pick_queries(const query *s) {
  int64_t rows;
  uint32_t queries = MAX_QUERIES;
  if (!expr_is_const(s->t->c->graph->pool, row_extent(s), &rows) || s->piece_count > 32) return 1;
  while (queries > 1 && (-rows & (LEAST_ITEMS * queries - 1)) * 8 > rows) queries /= 2;
  return queries;
}

/* How many times the queries would have to be as many as they are, so that each of the device's units has one. */
static double spare_units(const query *s) {
  const expr_pool *x = s->t->c->graph->pool;
  return s->t->c->options->profile->units / ((double)schedule_hint(x, attend_batch(s->t)) * (double)schedule_hint(x, row_extent(s)));
}

/* Keys are shared out to two groups a unit, where each has enough of them to be worth a second kernel. */
static uint32_t pick_parts(const query *s) {
  enum { LEAST_PARTS = 4 };
  const double blocks = (double)schedule_hint(s->t->c->graph->pool, s->t->a->keys) / (s->block * s->items), wanted = 2 * spare_units(s);
  const double parts = blocks < wanted ? blocks : wanted;
  return parts >= LEAST_PARTS && s->t->c->options->profile->local_bytes > 0 ? (uint32_t)parts : 1;
}

/* Of few queries a subgroup has each, or where it is alone on its unit as many items as there is room for. */
static uint32_t pick_items(const query *s, bool few, bool alone) {
  const cost_profile *p = s->t->c->options->profile;
  uint32_t items = few ? (uint32_t)p->row_items : p->local_bytes > 0 ? 64 : 8;
  if (few && items > 32 && p->subgroup_max >= 8 && !alone) items = p->subgroup_max;
  if (items > p->max_items && p->max_items) items = p->max_items;
  while (few && items > 8 && (double)items * (double)(s->depth + ROW_PAD) * 4 > (double)cost_usual_local(p)) items /= 2;
  while (!few && items > 8 && (int64_t)(items / 2) >= schedule_hint(s->t->c->graph->pool, row_extent(s))) items /= 2;
  return items;
}

snt_result attend_build_items(attend *t, bool few, uint32_t choice, uint32_t guard_count, const plan_condition *guards) {
  expr_pool *x = t->c->graph->pool;
  query s = {.t = t, .lanes = schedule_lanes(t->c), .items = 1, .queries = 1, .block = BLOCK, .depth = 1, .parts = 1};
  SNT_TRY(attend_begin(s.t, "attention"));
  emit *e = t->e;
  if (t->a->depth >= 0) (void)expr_is_const(x, t->a->extent[t->a->depth], &s.depth);
  (void)expr_is_const(x, t->a->inner_extent, &s.inner);
  if (!cut_pieces(&s)) e->failed = true;
  if (schedule_is_explicit(t->c)) return emit_end(e, build_one(&s), choice, guard_count, guards);
  s.shared = few;
  s.items = pick_items(&s, few, false);
  if (!few && emit_reads_only_texels(e)) {
    s.queries = pick_queries(&s), s.block = WIDE_BLOCK;
    if (!choice) SNT_TRY(attend_copy_rows(&s));
  }
  if (few && !choice) s.parts = pick_parts(&s);
  if (few && s.parts == 1 && spare_units(&s) > 1) s.items = pick_items(&s, few, true);
  const ir_expr states = expr_mul(x, expr_mul(x, attend_batch(t), row_extent(&s)), expr_int(x, s.parts * part_size(&s)));
  if (s.parts > 1) s.scratch = fusion_add_scratch(t->c, "parts", SNT_F32, states);
  const ir_expr groups = few ? build_one(&s) : build_many(&s);
  SNT_TRY(emit_end(t->e, groups, choice, guard_count, guards));
  if (s.parts == 1) return SNT_OK;
  SNT_TRY(attend_begin(s.t, "attention_sum"));
  return emit_end(t->e, combine_parts(&s), 0, 0, NULL);
}
