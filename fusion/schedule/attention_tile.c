/* Attention for explicit vectors: queries in lanes. A work-item owns a tile of queries; for each block of keys it makes the scores in register tiles
   (keys x vectors of queries), turns them into weights in place, and adds the weighted values to the tile's results, which stay in a near cache.
   Only the queries are packed, lanes innermost; keys and values are packed where their rows lie far apart or need converting.
   Tails: the last tile of queries and the last block of keys are moved back to be whole; a moved block skips the keys it had before. */
#include "fusion/schedule/attention_tile.h"
#include <float.h>
#include <math.h>

enum { KEY_BLOCK = 64, MAX_TILE_CELLS = 64, MAX_QUERY_VECTORS = 4 };

/* ---- the shape ---- */

static double padded_cost(const attend_tile *s, int64_t rows, uint32_t vectors) {
  static const double loads[] = {0, 1.3, 1.08, 1.0, 1.0}; /* loads a multiply-add beside those of the best */
  const int64_t width = (int64_t)vectors * s->lanes;
  return (double)((rows + width - 1) / width * width) * loads[vectors];
}

static bool pick_shape(attend_tile *s) {
  const attend *t = s->t;
  const cost_profile *p = t->c->options->profile;
  const int64_t rows = schedule_hint(t->c->graph->pool, t->a->extent[t->a->row]);
  const bool wide = p->lanes >= 16 && p->caps.max_lanes >= 16 && rows >= 16;
  s->lanes = wide ? 16 : schedule_lanes(t->c);
  s->half_lanes = schedule_lanes(t->c);
  while (s->lanes > 1 && s->lanes > rows) s->lanes /= 2;
  if (s->half_lanes > s->lanes) s->half_lanes = s->lanes;
  if (s->lanes == 1) return false;
  s->vectors = 1;
  for (uint32_t v = 2; v <= MAX_QUERY_VECTORS; v++)
    if ((int64_t)v * s->lanes <= rows && padded_cost(s, rows, v) < padded_cost(s, rows, s->vectors)) s->vectors = v;
  s->queries = (int64_t)s->vectors * s->lanes;
  s->rows = ((uint32_t)p->registers - s->vectors - 1) / s->vectors;
  if (s->rows > 12) s->rows = 12;
  int64_t keys;
  s->block = KEY_BLOCK;
  if (expr_is_const(t->c->graph->pool, t->a->keys, &keys) && keys < KEY_BLOCK) s->block = keys;
  if (s->rows > s->block) s->rows = (uint32_t)s->block;
  return s->rows >= 1 && s->rows * s->vectors <= MAX_TILE_CELLS;
}

/* ---- small helpers ---- */

static void make_lanes(attend_tile *s) {
  emit *e = s->t->e;
  for (uint32_t j = 0; j < s->vectors; j++) {
    s->lane_at[j] = emit_lanes(e, (ir_expr)(j * s->lanes), s->lanes);
    s->lane_var[j] = e->lane_var;
  }
  emit_scalar_lanes(e);
}
static void use_vector(attend_tile *s, uint32_t j) {
  attend *t = s->t;
  emit_use_lanes(t->e, s->lane_var[j], s->lanes);
  t->now[t->a->row] = expr_add(t->e->x, s->row, s->lane_at[j]);
}

/* A loop whose body is a tile of `step`; the last one is moved back to be whole. lo may be an expression; hi - 0 >= step. */
typedef void (*tile_body)(attend_tile *, ir_expr at);
static void whole_tiles(attend_tile *s, const char *name, ir_expr lo, int64_t hi, int64_t step, tile_body body) {
  emit *e = s->t->e;
  expr_pool *x = e->x;
  if (lo == 0 && hi == step) {
    body(s, 0);
    return;
  }
  const ir_expr v = emit_loop(e, &(emit_loop_info){.name = name, .lo = lo, .hi = hi, .step = step, .whole = lo == 0 && hi % step == 0});
  ir_expr at = v;
  if (lo != 0 || hi % step) at = emit_var_for(e, name, emit_expr(e, expr_min(x, v, expr_int(x, hi - step))), 0, hi - step + 1);
  body(s, at);
  emit_loop_end(e, v, 0, NULL, NULL);
}

/* ---- scores ---- */

static void multiply_scores(attend_tile *s, ir_expr at, ir_expr inner, uint32_t *acc) {
  attend *t = s->t;
  emit *e = t->e;
  uint32_t query[8];
  t->key = s->first;
  for (uint32_t j = 0; j < s->vectors; j++) {
    use_vector(s, j);
    const map_access place = attend_query_place(t, inner);
    query[j] = attend_f32(t, emit_value(e, attend_query_node(t), &place));
  }
  emit_scalar_lanes(e);
  t->now[t->a->row] = s->row;
  for (uint32_t i = 0; i < s->rows; i++) {
    t->key = expr_add(e->x, s->first, expr_add(e->x, at, i));
    const map_access place = attend_key_place(t, inner);
    const uint32_t key = attend_f32(t, emit_value(e, attend_key_node(t), &place));
    for (uint32_t j = 0; j < s->vectors; j++) acc[i * s->vectors + j] = kir_3(e->k, KIR_fma, key, query[j], acc[i * s->vectors + j]);
  }
}

static void score_tile(attend_tile *s, ir_expr at) {
  attend *t = s->t;
  emit *e = t->e;
  const uint32_t cells = s->rows * s->vectors, step = s->inner % 4 == 0 ? 4 : s->inner % 2 == 0 ? 2 : 1;
  uint32_t acc[MAX_TILE_CELLS], carried[MAX_TILE_CELLS];
  for (uint32_t i = 0; i < cells; i++) acc[i] = kir_const_float(e->k, kir_t(SNT_F32, s->lanes), 0);
  const ir_expr d = emit_loop(
      e, &(emit_loop_info){
             .name = "d", .lo = 0, .hi = s->inner, .step = step, .whole = true, .carry_count = cells, .initial = acc, .carried = carried});
  for (uint32_t u = 0; u < step; u++) multiply_scores(s, at, expr_add(e->x, d, u), carried);
  emit_loop_end(e, d, cells, carried, acc);
  for (uint32_t i = 0; i < s->rows; i++)
    for (uint32_t j = 0; j < s->vectors; j++) {
      use_vector(s, j);
      attend_store(t, &s->scores, expr_add(e->x, expr_mul(e->x, expr_add(e->x, at, i), s->queries), s->lane_at[j]),
                   acc[i * s->vectors + j]);
    }
  emit_scalar_lanes(e);
}

/* ---- weights ---- */

static ir_expr score_at(attend_tile *s, ir_expr key, ir_expr column) {
  return expr_add(s->t->e->x, expr_mul(s->t->e->x, key, s->queries), column);
}

/* The kept value of one key for the lanes at `column`, stored if it is not the score itself. */
static uint32_t keep(attend_tile *s, ir_expr key, ir_expr column) {
  attend *t = s->t;
  const uint32_t loaded = attend_load(t, &s->scores, score_at(s, key, column));
  if (attend_kept(t) == t->a->scores) return loaded;
  t->key = expr_add(t->e->x, s->first, key);
  attend_remember(t, t->a->scores, loaded);
  const uint32_t value = attend_f32(t, attend_value(t, attend_kept(t)));
  attend_store(t, &s->scores, score_at(s, key, column), value);
  return value;
}

static uint32_t keys_step(const attend_tile *s) { return s->skip != 0 ? 1 : s->block % 4 == 0 ? 4 : 1; }

static uint32_t sweep_extremum(attend_tile *s, ir_expr column) {
  attend *t = s->t;
  emit *e = t->e;
  const uint32_t step = keys_step(s), parts = step > 1 ? 2 : 1;
  uint32_t start[2], carried[2];
  start[0] = start[1] = attend_start(t, s->half_lanes);
  const ir_expr k = emit_loop(e, &(emit_loop_info){.name = "k",
                                                   .lo = s->skip,
                                                   .hi = s->block,
                                                   .step = step,
                                                   .whole = true,
                                                   .carry_count = parts,
                                                   .initial = start,
                                                   .carried = carried});
  for (uint32_t u = 0; u < step; u++) carried[u % parts] = attend_extremum(t, carried[u % parts], keep(s, expr_add(e->x, k, u), column));
  emit_loop_end(e, k, parts, carried, start);
  return parts > 1 ? attend_extremum(t, start[0], start[1]) : start[0];
}

static void sweep_weights(attend_tile *s, ir_expr column, uint32_t *sums) {
  attend *t = s->t;
  emit *e = t->e;
  const uint32_t step = keys_step(s), count = t->a->sum_count;
  uint32_t carried[ATTENTION_REDUCES], terms[ATTENTION_REDUCES];
  const ir_expr k = emit_loop(e, &(emit_loop_info){.name = "k",
                                                   .lo = s->skip,
                                                   .hi = s->block,
                                                   .step = step,
                                                   .whole = true,
                                                   .carry_count = count,
                                                   .initial = sums,
                                                   .carried = carried});
  for (uint32_t u = 0; u < step; u++) {
    const ir_expr key = expr_add(e->x, k, u);
    const uint32_t kept = attend_load(t, &s->scores, score_at(s, key, column));
    t->key = expr_add(e->x, s->first, key);
    const uint32_t weight = attend_f32(t, attend_weigh(t, kept, terms));
    attend_store(t, &s->scores, score_at(s, key, column), weight);
    for (uint32_t i = 0; i < count; i++) carried[i] = kir_2(e->k, KIR_add, carried[i], attend_f32(t, terms[i]));
  }
  emit_loop_end(e, k, count, carried, sums);
}

/* One vector of queries: the block's extremum, the correction of what was summed before, the weights in place of the scores. */
static void make_weights(attend_tile *s) {
  attend *t = s->t;
  emit *e = t->e;
  const ir_expr v = emit_steps(e, "c", 0, s->queries, s->half_lanes);
  const ir_expr column = emit_lanes(e, v, s->half_lanes);
  uint32_t sums[ATTENTION_REDUCES];
  t->now[t->a->row] = expr_add(e->x, s->row, column);
  uint32_t corrected = 0;
  const bool online = t->a->exp_count != 0;
  if (online || attend_kept(t) != t->a->scores) {
    const uint32_t before = online ? attend_load(t, &s->extremum, column) : 0, block = sweep_extremum(s, column);
    const uint32_t now = online ? attend_extremum(t, before, block) : 0;
    if (online) attend_store(t, &s->extremum, column, now);
    if (online) attend_refer(t, attend_finite(t, now));
    if (online) corrected = attend_finite(t, before);
  }
  if (!online) attend_refer(t, 0);
  for (uint32_t i = 0; i < t->a->sum_count; i++)
    sums[i] = attend_scaled(t, attend_correction(t, online ? t->a->sum_exp[i] : 0, corrected), attend_load(t, &s->sums[i], column));
  if (online) attend_store(t, &s->correction, column, attend_correction(t, t->a->weight_exp, corrected));
  sweep_weights(s, column, sums);
  for (uint32_t i = 0; i < t->a->sum_count; i++) attend_store(t, &s->sums[i], column, sums[i]);
  emit_scalar_lanes(e);
  emit_loop_end(e, v, 0, NULL, NULL);
}

/* ---- values ---- */

static ir_expr result_at(attend_tile *s, ir_expr depth, uint32_t j) {
  return expr_add(s->t->e->x, expr_mul(s->t->e->x, depth, s->queries), s->lane_at[j]);
}

static void multiply_values(attend_tile *s, ir_expr key, ir_expr at, uint32_t rows, uint32_t *acc) {
  attend *t = s->t;
  emit *e = t->e;
  uint32_t weight[8];
  for (uint32_t j = 0; j < s->vectors; j++) {
    use_vector(s, j);
    weight[j] = attend_load(t, &s->scores, score_at(s, key, s->lane_at[j]));
  }
  emit_scalar_lanes(e);
  t->key = expr_add(e->x, s->first, key);
  for (uint32_t i = 0; i < rows; i++) {
    if (t->a->depth >= 0) t->now[t->a->depth] = expr_add(e->x, at, i);
    const map_access place = attend_values_place(t);
    const uint32_t value = attend_f32(t, emit_value(e, attend_values_node(t), &place));
    for (uint32_t j = 0; j < s->vectors; j++) acc[i * s->vectors + j] = kir_3(e->k, KIR_fma, value, weight[j], acc[i * s->vectors + j]);
  }
}

static void value_tile(attend_tile *s, ir_expr at, uint32_t rows) {
  attend *t = s->t;
  emit *e = t->e;
  const uint32_t cells = rows * s->vectors, step = keys_step(s);
  uint32_t acc[MAX_TILE_CELLS], carried[MAX_TILE_CELLS];
  for (uint32_t j = 0; j < s->vectors; j++) {
    use_vector(s, j);
    const uint32_t factor = t->a->exp_count ? attend_load(t, &s->correction, s->lane_at[j]) : 0;
    for (uint32_t i = 0; i < rows; i++)
      acc[i * s->vectors + j] = attend_scaled(t, factor, attend_load(t, &s->results, result_at(s, expr_add(e->x, at, i), j)));
  }
  emit_scalar_lanes(e);
  t->now[t->a->row] = s->row;
  const ir_expr k = emit_loop(e, &(emit_loop_info){.name = "k",
                                                   .lo = s->skip,
                                                   .hi = s->block,
                                                   .step = step,
                                                   .whole = true,
                                                   .carry_count = cells,
                                                   .initial = acc,
                                                   .carried = carried});
  for (uint32_t u = 0; u < step; u++) multiply_values(s, expr_add(e->x, k, u), at, rows, carried);
  emit_loop_end(e, k, cells, carried, acc);
  for (uint32_t i = 0; i < rows; i++)
    for (uint32_t j = 0; j < s->vectors; j++) {
      use_vector(s, j);
      attend_store(t, &s->results, result_at(s, expr_add(e->x, at, i), j), acc[i * s->vectors + j]);
    }
  emit_scalar_lanes(e);
}

/* Whole tiles of depths, then one smaller tile: results are added to, so that none may be done twice. */
static void add_values(attend_tile *s) {
  emit *e = s->t->e;
  const int64_t whole = s->depth / s->rows * s->rows;
  if (whole == s->rows) value_tile(s, 0, s->rows);
  else if (whole) {
    const ir_expr d = emit_steps(e, "n", 0, whole, s->rows);
    value_tile(s, d, s->rows);
    emit_loop_end(e, d, 0, NULL, NULL);
  }
  if (whole < s->depth) value_tile(s, whole, (uint32_t)(s->depth - whole));
}

/* ---- one block, one tile ---- */

static void do_block(attend_tile *s) {
  attend_pack_keys(s);
  whole_tiles(s, "m", s->skip, s->block, s->rows, score_tile);
  make_weights(s);
  attend_pack_values(s);
  add_values(s);
}

static void clear(attend_tile *s) {
  attend *t = s->t;
  emit *e = t->e;
  const ir_expr v = emit_steps(e, "z", 0, s->queries, s->lanes);
  const ir_expr column = emit_lanes(e, v, s->lanes);
  const uint32_t zero = kir_const_float(e->k, kir_t(SNT_F32, s->lanes), 0);
  if (t->a->exp_count) attend_store(t, &s->extremum, column, attend_start(t, s->lanes));
  for (uint32_t i = 0; i < t->a->sum_count; i++) attend_store(t, &s->sums[i], column, zero);
  const ir_expr d = emit_steps(e, "d", 0, s->depth, 1);
  attend_store(t, &s->results, expr_add(e->x, expr_mul(e->x, d, s->queries), column), zero);
  emit_loop_end(e, d, 0, NULL, NULL);
  emit_scalar_lanes(e);
  emit_loop_end(e, v, 0, NULL, NULL);
}

/* Some query of the tile has met no key yet that counts. */
static uint32_t any_unseen(attend_tile *s, double low) {
  attend *t = s->t;
  emit *e = t->e;
  uint32_t least = kir_const_float(e->k, kir_t(SNT_F32, s->half_lanes), INFINITY), carried;
  const ir_expr v = emit_loop(e, &(emit_loop_info){.name = "c",
                                                   .lo = 0,
                                                   .hi = s->queries,
                                                   .step = s->half_lanes,
                                                   .whole = true,
                                                   .carry_count = 1,
                                                   .initial = &least,
                                                   .carried = &carried});
  const ir_expr column = emit_lanes(e, v, s->half_lanes);
  carried = kir_2(e->k, KIR_min, carried, attend_load(t, &s->extremum, column));
  emit_scalar_lanes(e);
  emit_loop_end(e, v, 1, &carried, &least);
  if (e->failed || e->k->failed) return 0;
  if (s->half_lanes > 1) least = kir_1(e->k, KIR_hred_min, least);
  return kir_2(e->k, KIR_le, least, kir_const_float(e->k, kir_t(SNT_F32, 1), low == -INFINITY ? -FLT_MAX : low / 2));
}

/* Blocks that a mask leaves out as a whole come in a second pass, and only where a query met nothing that counts. */
static void do_block_if_needed(attend_tile *s, ir_expr pass, uint32_t masked, double low) {
  emit *e = s->t->e;
  const uint32_t second = kir_2(e->k, KIR_ne, emit_expr(e, pass), kir_const_int(e->k, kir_t(SNT_U32, 1), 0));
  const uint32_t wanted = kir_2(e->k, KIR_and, masked, any_unseen(s, low));
  emit_if(e, kir_3(e->k, KIR_select, second, wanted, kir_1(e->k, KIR_not, masked)));
  do_block(s);
  emit_if_end(e);
}

static void do_blocks(attend_tile *s, bool even, ir_expr pass, bool passes) {
  attend *t = s->t;
  emit *e = t->e;
  expr_pool *x = e->x;
  const ir_expr b = emit_loop(e, &(emit_loop_info){.name = "b", .lo = 0, .hi = t->a->keys, .step = s->block, .whole = even});
  s->first = b;
  s->skip = 0;
  if (!even) {
    const ir_expr last = expr_sub(x, t->a->keys, s->block);
    s->first = emit_var_for(e, "first", emit_expr(e, expr_min(x, b, last)), 0, expr_add(x, last, 1));
    s->skip = emit_var_for(e, "skip", emit_expr(e, expr_sub(x, b, s->first)), 0, s->block);
  }
  double low;
  const attend_block block = {s->row, s->first, s->queries, s->block};
  const uint32_t masked = passes ? attend_all_masked(t, &block, &low) : 0;
  if (masked) do_block_if_needed(s, pass, masked, low);
  else do_block(s);
  emit_loop_end(e, b, 0, NULL, NULL);
}

/* Would a mask by position leave out whole blocks? */
static bool has_masked_blocks(attend_tile *s) {
  double low;
  const attend_block block = {s->row, 0, s->queries, s->block};
  return attend_all_masked(s->t, &block, &low) != 0;
}

static void do_tile(attend_tile *s) {
  attend *t = s->t;
  emit *e = t->e;
  int64_t keys = 0;
  const bool even = expr_is_const(e->x, t->a->keys, &keys) && keys % s->block == 0;
  clear(s);
  attend_pack_queries(s);
  if (keys == s->block) {
    s->first = s->skip = 0;
    do_block(s);
  } else if (has_masked_blocks(s)) {
    const ir_expr pass = emit_loop(e, &(emit_loop_info){.name = "pass", .lo = 0, .hi = 2, .step = 1, .flags = KIR_LOOP_ROLLED});
    do_blocks(s, even, pass, true);
    emit_loop_end(e, pass, 0, NULL, NULL);
  } else {
    do_blocks(s, even, 0, false);
  }
  attend_store_tile(s);
}

/* ---- sharing out ---- */

/* Shares of the queries of one batch: each whole tiles as far as possible, enough of them for the device. */
static ir_expr pick_parts(const attend_tile *s, int64_t batch) {
  const attend *t = s->t;
  expr_pool *x = t->c->graph->pool;
  const ir_expr rows = t->a->extent[t->a->row];
  const double wanted = t->c->options->profile->min_groups;
  int64_t literal;
  if (!expr_is_const(x, rows, &literal)) return expr_max(x, 1, expr_div(x, rows, expr_int(x, 4 * s->queries)));
  int64_t best = 1;
  double least = 1e30;
  for (int64_t parts = 1; parts <= literal / s->queries && parts <= 4096; parts++) {
    const int64_t share = (literal + parts - 1) / parts, tiles = parts * ((share + s->queries - 1) / s->queries);
    const double groups = (double)(parts * batch), idle = groups < wanted ? wanted / groups : 1;
    const double price = (double)tiles * idle + 1e-6 * (double)parts;
    if (price < least) least = price, best = parts;
  }
  return expr_int(x, best);
}

static void make_arrays(attend_tile *s) {
  attend *t = s->t;
  s->scores = attend_array_add(t, "scores", s->block * s->queries);
  s->results = attend_array_add(t, "results", s->depth * s->queries);
  if (t->a->exp_count) {
    s->extremum = attend_array_add(t, "extremum", s->queries);
    s->correction = attend_array_add(t, "correction", s->queries);
  }
  for (uint32_t i = 0; i < t->a->sum_count; i++) s->sums[i] = attend_array_add(t, attend_sum_names[i], s->queries);
}

bool attend_tile_fits(const attend *t, int64_t *queries, int64_t *keys) {
  attend own = *t;
  attend_tile s = {.t = &own};
  if (t->a->row < 0 || !schedule_is_explicit(t->c) || !pick_shape(&s)) return false;
  *queries = s.queries;
  *keys = s.block;
  return true;
}

snt_result attend_build_tile(attend *t, uint32_t choice, uint32_t guard_count, const plan_condition *guards) {
  expr_pool *x = t->c->graph->pool;
  attend_tile s = {.t = t, .depth = 1};
  SNT_TRY(attend_begin(t, "attention"));
  emit *e = t->e;
  if (!pick_shape(&s)) e->failed = true;
  if (t->a->depth >= 0) (void)expr_is_const(x, t->a->extent[t->a->depth], &s.depth);
  (void)expr_is_const(x, t->a->inner_extent, &s.inner);
  const ir_expr batch = attend_batch(t), rows = t->a->extent[t->a->row], parts = pick_parts(&s, schedule_hint(x, batch));
  t->groups = expr_mul(x, batch, parts);
  t->group_number = emit_group(e, t->groups);
  attend_set_batch(t, expr_div(x, t->group_number, parts));
  make_lanes(&s);
  make_arrays(&s);
  const ir_expr part = expr_mod(x, t->group_number, parts), lo = schedule_part_start(x, rows, parts, part),
                hi = parts == 1 ? rows : schedule_part_start(x, rows, parts, expr_add(x, part, 1));
  int64_t length;
  const bool literal = expr_is_const(x, expr_sub(x, hi, lo), &length);
  if (literal && length == s.queries) {
    s.row = lo;
    do_tile(&s);
    return emit_end(e, t->groups, choice, guard_count, guards);
  }
  const ir_expr v = emit_loop(e, &(emit_loop_info){.name = "m", .lo = lo, .hi = hi, .step = s.queries});
  s.row = v;
  if (!literal || length % s.queries)
    s.row = emit_var_for(e, "row", emit_expr(e, expr_min(x, v, expr_sub(x, hi, s.queries))), 0, expr_sub(x, rows, s.queries - 1));
  do_tile(&s);
  emit_loop_end(e, v, 0, NULL, NULL);
  return emit_end(e, t->groups, choice, guard_count, guards);
}
