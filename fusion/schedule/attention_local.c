/* Attention of many queries where local memory is near: a workgroup has 32 queries, and keys come in tiles of 64 or 32. A tile's scores are the product of
   two panels in local memory, sixteen or eight cells an item; then four items share a query and weigh its keys, a part each; then the weights, in local
   memory again, multiply the tile's values, which have taken the room of its keys. Every element of keys and values is fetched once a group, in whole
   vectors. Rows of panels begin four banks apart (keys of neighbouring items are neighbours) and rows of scores sixteen: no bank is asked twice at once.
   Where there are matrix units for the elements, both products are theirs, and a group has as many queries as its subgroups have rows of fragments.
   Queries and keys that tiles do not divide: the last tile begins earlier; queries are then computed twice, keys counted once. */
#include "fusion/schedule/attention_local.h"
#include <float.h>
#include <math.h>

enum {
  ROWS = ATTEND_ROWS,
  ITEMS = ATTEND_ITEMS,
  ACROSS = ATTEND_ACROSS,
  DOWN = ITEMS / ACROSS,
  CELL_ROWS = ROWS / DOWN,
  VECTOR = ATTEND_VECTOR
};
enum {
  MOST_KEYS = ATTEND_MOST_KEYS,
  MOST_CELLS = CELL_ROWS * MOST_KEYS / ACROSS,
  MOST_STATE = ATTEND_MOST_VECTORS + ATTEND_MOST_HALVES * (1 + ATTENTION_REDUCES)
};

/* Values of one item: of the queries and quarter that it weighs for, and of the rows and columns of the result that it adds up. */
typedef struct state {
  uint32_t extremum[ATTEND_MOST_HALVES], sums[ATTEND_MOST_HALVES][ATTENTION_REDUCES],
      results[ATTEND_MOST_VECTORS]; /* vectors, or fragments */
} state;

static ir_expr own_part(const local_tile *s) { return expr_mod(s->t->e->x, s->item, s->share); }
static ir_expr own_query(const local_tile *s) {
  expr_pool *x = s->t->e->x;
  if (!s->in_lanes) return expr_div(x, s->item, s->share);
  const ir_expr row = expr_div(x, expr_mod(x, s->item, s->units.lanes), s->share), apart = s->units.size.m / ATTEND_HALVES;
  return expr_add(x, expr_mul(x, s->warp, expr_int(x, s->tall * s->units.size.m)), expr_add(x, row, expr_int(x, s->half * apart)));
}

/* ---- panels ---- */

static uint32_t panel_vector(local_tile *s, const attend_array *panel, int64_t stride, ir_expr row, ir_expr column) {
  const uint32_t value = attend_load(s->t, panel, attend_cell(s, row, stride, emit_lanes(s->t->e, column, VECTOR)));
  emit_scalar_lanes(s->t->e);
  return value;
}

/* ---- scores ---- */

/* Row i, and key j, of the cells of an item. */
static ir_expr cell_row(const local_tile *s, uint32_t i) {
  return expr_add(s->t->e->x, expr_div(s->t->e->x, s->item, ACROSS), (ir_expr)i * DOWN);
}
static ir_expr cell_key(const local_tile *s, uint32_t j) {
  return expr_add(s->t->e->x, expr_mod(s->t->e->x, s->item, ACROSS), (ir_expr)j * ACROSS);
}

static void multiply_scores(local_tile *s, ir_expr d, uint32_t *acc) {
  emit *e = s->t->e;
  const uint32_t keys = s->keys / ACROSS;
  uint32_t query[CELL_ROWS], key[MOST_KEYS / ACROSS];
  for (uint32_t i = 0; i < CELL_ROWS; i++) query[i] = panel_vector(s, &s->query, attend_panel_pitch(s, s->inner), cell_row(s, i), d);
  for (uint32_t j = 0; j < keys; j++) key[j] = panel_vector(s, &s->panel, attend_panel_pitch(s, s->inner), cell_key(s, j), d);
  for (uint32_t lane = 0; lane < VECTOR; lane++) {
    uint32_t own[MOST_KEYS / ACROSS];
    for (uint32_t j = 0; j < keys; j++) own[j] = attend_lane(s->t, key[j], lane);
    for (uint32_t i = 0; i < CELL_ROWS; i++) {
      const uint32_t from = attend_lane(s->t, query[i], lane);
      for (uint32_t j = 0; j < keys; j++) acc[i * keys + j] = kir_3(e->k, KIR_fma, from, own[j], acc[i * keys + j]);
    }
  }
}

static void make_scores(local_tile *s) {
  emit *e = s->t->e;
  const uint32_t keys = s->keys / ACROSS, cells = CELL_ROWS * keys;
  uint32_t acc[MOST_CELLS], carried[MOST_CELLS];
  for (uint32_t i = 0; i < cells; i++) acc[i] = kir_const_float(e->k, kir_t(SNT_F32, 1), 0);
  const ir_expr d = emit_loop(e, &(emit_loop_info){.name = "d",
                                                   .lo = 0,
                                                   .hi = expr_int(e->x, s->inner),
                                                   .step = VECTOR,
                                                   .whole = true,
                                                   .carry_count = cells,
                                                   .initial = acc,
                                                   .carried = carried});
  multiply_scores(s, d, carried);
  emit_loop_end(e, d, cells, carried, acc);
  for (uint32_t i = 0; i < CELL_ROWS; i++)
    for (uint32_t j = 0; j < keys; j++)
      attend_store(s->t, &s->scores, attend_cell(s, cell_row(s, i), attend_scores_pitch(s), cell_key(s, j)), acc[i * keys + j]);
}

/* ---- weights ---- */

/* A slot each for the items of a query: nobody waits for who writes. */
static void store_own(local_tile *s, const attend_array *array, uint32_t value) { attend_store(s->t, array, s->item, value); }
static uint32_t load_first(local_tile *s, const attend_array *array, ir_expr row) {
  return attend_load(s->t, array, expr_mul(s->t->e->x, row, s->share));
}
static uint32_t load_parts(local_tile *s, const attend_array *array, ir_expr row) {
  const uint32_t value = attend_load(s->t, array, attend_cell(s, row, s->share, emit_lanes(s->t->e, 0, s->share)));
  emit_scalar_lanes(s->t->e);
  return value;
}

/* Vector v of the keys that the item weighs, as the lanes at hand. */
static ir_expr open_keys(local_tile *s, uint32_t v) {
  expr_pool *x = s->t->e->x;
  const ir_expr at = emit_lanes(s->t->e, expr_add(x, expr_mul(x, own_part(s), (ir_expr)s->vector), (ir_expr)(v * s->vector * s->share)),
                                s->vector);
  s->t->key = expr_add(x, s->first, at);
  return at;
}

/* Keys that an earlier tile has counted are `without`. */
static uint32_t if_new(local_tile *s, ir_expr at, uint32_t value, uint32_t without) {
  emit *e = s->t->e;
  if (s->even || e->failed || e->k->failed) return value;
  const map_condition is_new = {.value = at, .lo = s->skip, .hi = s->keys};
  const uint32_t lanes = emit_value_type(e, value).lanes < s->vector ? s->vector : 1;
  if (lanes > 1) value = kir_splat(e->k, value, lanes);
  return kir_3(e->k, KIR_select, emit_conditions(e, 1, &is_new), value, without);
}

/* What all items of the query have of it together: the extremum, or the sum. */
static uint32_t across_items(local_tile *s, uint32_t value, bool sum) {
  for (uint32_t i = 0; i < ATTEND_SHARE_STEPS; i++) {
    const uint32_t other = kir_2(s->t->e->k, KIR_sg_shuffle, value, s->partner[i]);
    value = sum ? kir_2(s->t->e->k, KIR_add, value, other) : attend_extremum(s->t, value, other);
  }
  return value;
}

/* Scores of the query at hand, out of `acc` in lanes. Returns their extremum, as far as the item knows it. */
static uint32_t keep_scores(local_tile *s, const uint32_t *acc, uint32_t *kept) {
  attend *t = s->t;
  emit *e = t->e;
  uint32_t most = 0;
  attend_set_query(s, own_query(s));
  for (uint32_t v = 0; v < s->keys / s->vector / s->share; v++) {
    const ir_expr at = open_keys(s, v);
    kept[v] = s->in_lanes ? attend_mma_pair(s, acc, s->keys / s->units.size.n, v)
                          : attend_load(t, &s->scores, attend_cell(s, own_query(s), attend_scores_pitch(s), at));
    attend_remember(t, t->a->scores, kept[v]);
    if (attend_kept(t) != t->a->scores) kept[v] = attend_f32(t, attend_value(t, attend_kept(t)));
    if (t->a->exp_count) {
      kept[v] = if_new(s, at, kept[v], attend_start(t, s->vector));
      const uint32_t own = attend_across(t, kept[v]);
      most = most ? attend_extremum(t, most, own) : own;
    }
    emit_scalar_lanes(e);
  }
  if (most && !s->in_lanes) store_own(s, &s->most, most);
  return most;
}

/* Whoever shares the query has the same. */
static void store_correction(local_tile *s, uint32_t factor) {
  kir_kernel *k = s->t->e->k;
  const uint32_t at = emit_expr(s->t->e, own_query(s)), store = kir_store(k, s->correction.memory, 1, &at, factor);
  if (!k->failed) kir_at(k, store)->flags |= KIR_IS_SAME;
}

/* The extremum moves on by that of the tile; sums so far, and by way of `correction` results, follow it. */
static void move_extremum(local_tile *s, uint32_t most, state *now) {
  uint32_t *extremum = &now->extremum[s->half], *sums = now->sums[s->half];
  attend *t = s->t;
  if (!t->a->exp_count) {
    attend_refer(t, 0);
    return;
  }
  const uint32_t before = attend_finite(t, *extremum);
  most = s->in_lanes ? across_items(s, most, false) : attend_across(t, load_parts(s, &s->most, own_query(s)));
  *extremum = attend_extremum(t, *extremum, most);
  attend_refer(t, attend_finite(t, *extremum));
  for (uint32_t i = 0; i < t->a->sum_count; i++) sums[i] = attend_scaled(s->t, attend_correction(t, t->a->sum_exp[i], before), sums[i]);
  const uint32_t factor = attend_correction(t, t->a->weight_exp, before);
  if (factor && !s->in_lanes) store_correction(s, factor);
  s->factor[s->half] = factor;
}

static void weigh_keys(local_tile *s, uint32_t most, const uint32_t *kept, state *now) {
  attend *t = s->t;
  emit *e = t->e;
  uint32_t terms[ATTENTION_REDUCES];
  uint32_t *sums = now->sums[s->half];
  const uint32_t nothing = kir_const_float(e->k, kir_t(SNT_F32, s->vector), 0);
  attend_set_query(s, own_query(s));
  move_extremum(s, most, now);
  for (uint32_t v = 0; v < s->keys / s->vector / s->share; v++) {
    const ir_expr at = open_keys(s, v);
    const uint32_t weight = if_new(s, at, attend_f32(t, attend_weigh(t, kept[v], terms)), nothing);
    for (uint32_t i = 0; i < t->a->sum_count; i++) {
      const uint32_t term = if_new(s, at, attend_f32(t, terms[i]), nothing);
      sums[i] = kir_2(e->k, KIR_add, sums[i], attend_sum(t, term, s->vector));
    }
    if (s->in_lanes) s->weight[s->half][v] = weight;
    else if (s->fragments) attend_mma_weight(s, at, weight);
    else attend_store(t, &s->weights, attend_cell(s, own_query(s), attend_weights_pitch(s), at), weight);
    emit_scalar_lanes(e);
  }
}

/* ---- results ---- */

static ir_expr result_row(local_tile *s, uint32_t i) {
  s->half = s->in_lanes ? i : 0;
  if (s->in_lanes) return own_query(s);
  return expr_add(s->t->e->x, expr_div(s->t->e->x, s->item, s->columns), (ir_expr)(i * s->rows));
}
ir_expr attend_result_column(const local_tile *s, uint32_t v) {
  expr_pool *x = s->t->e->x;
  return expr_mul(x, expr_add(x, expr_mod(x, s->item, s->columns), (ir_expr)(v * s->columns)), (ir_expr)s->vector);
}
static uint32_t result_rows(const local_tile *s) { return s->queries / s->rows; }

static void multiply_values(local_tile *s, ir_expr key, uint32_t *acc) {
  emit *e = s->t->e;
  uint32_t weight[ROWS];
  for (uint32_t i = 0; i < result_rows(s); i++) weight[i] = panel_vector(s, &s->weights, attend_weights_pitch(s), result_row(s, i), key);
  for (uint32_t lane = 0; lane < VECTOR; lane++)
    for (uint32_t v = 0; v < s->vectors; v++) {
      const uint32_t value = panel_vector(s, &s->panel, attend_panel_pitch(s, s->depth), expr_add(e->x, key, lane),
                                          attend_result_column(s, v));
      for (uint32_t i = 0; i < result_rows(s); i++) {
        uint32_t *cell = &acc[i * s->vectors + v];
        *cell = kir_3(e->k, KIR_fma, attend_lane(s->t, weight[i], lane), value, *cell);
      }
    }
}

static void add_values(local_tile *s, state *now) {
  emit *e = s->t->e;
  uint32_t carried[ATTEND_MOST_VECTORS];
  if (s->fragments) {
    attend_mma_values(s, now->results);
    return;
  }
  for (uint32_t i = 0; i < result_rows(s) && s->t->a->weight_exp; i++) {
    const uint32_t factor = attend_load(s->t, &s->correction, result_row(s, i));
    for (uint32_t v = 0; v < s->vectors; v++)
      now->results[i * s->vectors + v] = attend_scaled(s->t, factor, now->results[i * s->vectors + v]);
  }
  const ir_expr key = emit_loop(e, &(emit_loop_info){.name = "n",
                                                     .lo = 0,
                                                     .hi = s->keys,
                                                     .step = VECTOR,
                                                     .whole = true,
                                                     .carry_count = s->cells,
                                                     .initial = now->results,
                                                     .carried = carried});
  multiply_values(s, key, carried);
  emit_loop_end(e, key, s->cells, carried, now->results);
}

/* ---- tiles ---- */

static uint32_t pack_state(const local_tile *s, const state *from, uint32_t *list) {
  uint32_t n = 0;
  for (uint32_t h = 0; h < s->halves; h++) {
    list[n++] = from->extremum[h];
    for (uint32_t i = 0; i < s->t->a->sum_count; i++) list[n++] = from->sums[h][i];
  }
  for (uint32_t i = 0; i < s->cells; i++) list[n++] = from->results[i];
  return n;
}
static void unpack_state(const local_tile *s, const uint32_t *list, state *to) {
  uint32_t n = 0;
  for (uint32_t h = 0; h < s->halves; h++) {
    to->extremum[h] = list[n++];
    for (uint32_t i = 0; i < s->t->a->sum_count; i++) to->sums[h][i] = list[n++];
  }
  for (uint32_t i = 0; i < s->cells; i++) to->results[i] = list[n++];
}

/* The first key of the tile that begins at `at`: the last one begins earlier where tiles do not divide the keys. */
static ir_expr first_key(local_tile *s, ir_expr at) {
  emit *e = s->t->e;
  if (s->even) return at;
  const ir_expr last = expr_sub(e->x, s->t->a->keys, s->keys);
  return emit_var_for(e, "first", emit_expr(e, expr_min(e->x, at, last)), 0, expr_add(e->x, last, 1));
}

/* Keys of the next tile, while the one at hand multiplies its values. */
static void fill_ahead(local_tile *s) {
  emit *e = s->t->e;
  const ir_expr first = s->first, keys = s->t->a->keys, next = expr_add(e->x, s->at, s->keys);
  emit_if_below(e, next, keys);
  s->first = first_key(s, emit_var_for(e, "next", emit_expr(e, next), 0, keys));
  attend_fill_panel(s, ATTEND_KEYS);
  emit_if_end(e);
  s->first = first;
}

static void do_tile(local_tile *s, state *now) {
  uint32_t kept[MOST_KEYS / VECTOR], acc[ATTEND_MOST_CELLS];
  const bool apart = s->panels > 1; /* the tile before has multiplied its keys then, and its values when these have come */
  if (!apart) attend_barrier(s);
  if (!s->ahead) attend_fill_panel(s, ATTEND_KEYS);
  attend_arrive(s);
  if (s->copied[ATTEND_VALUES]) attend_fill_panel(s, ATTEND_VALUES);
  if (s->fragments) attend_mma_scores(s, acc);
  else make_scores(s);
  if (!apart) attend_barrier(s);
  if (!s->copied[ATTEND_VALUES]) attend_fill_panel(s, ATTEND_VALUES);
  for (s->half = 0; s->half < s->halves; s->half++) {
    const uint32_t most = keep_scores(s, acc, kept);
    if (!s->fragments) attend_barrier(s);
    else if (!s->in_lanes) fragment_barrier(s->t->e); /* a subgroup's rows are its own */
    weigh_keys(s, most, kept, now);
  }
  attend_arrive(s);
  if (s->ahead) fill_ahead(s);
  add_values(s, now);
}

/* A loop that carries the state: `inside` is it in the body, `now` before and after. */
typedef struct state_loop {
  ir_expr at;
  uint32_t count, list[MOST_STATE], carried[MOST_STATE];
} state_loop;
static void open_loop(local_tile *s, state_loop *l, emit_loop_info info, const state *now, state *inside) {
  l->count = pack_state(s, now, l->list);
  info.carry_count = l->count;
  info.initial = l->list;
  info.carried = l->carried;
  l->at = emit_loop(s->t->e, &info);
  unpack_state(s, l->carried, inside);
}
static void close_loop(local_tile *s, state_loop *l, const state *inside, state *now) {
  pack_state(s, inside, l->carried);
  emit_loop_end(s->t->e, l->at, l->count, l->carried, l->list);
  unpack_state(s, l->list, now);
}

/* As do_tile, where every item of the group says `wanted`. */
static void do_tile_if(local_tile *s, uint32_t wanted, state *now) {
  emit *e = s->t->e;
  const uint32_t one = kir_const_int(e->k, kir_t(SNT_U32, 1), 1), none = kir_const_int(e->k, kir_t(SNT_U32, 1), 0);
  const ir_expr trips = emit_var_for(e, "wanted", kir_3(e->k, KIR_select, wanted, one, none), 0, 2);
  state_loop once;
  state inside;
  open_loop(s, &once, (emit_loop_info){.name = "once", .lo = 0, .hi = trips, .step = 1, .flags = KIR_LOOP_ROLLED}, now, &inside);
  do_tile(s, &inside);
  close_loop(s, &once, &inside, now);
}

/* Some query of the group has met no key yet that counts. */
static uint32_t any_unseen(local_tile *s, const state *now, double low) {
  emit *e = s->t->e;
  uint32_t least = now->extremum[0];
  for (uint32_t h = 1; h < s->halves; h++) least = kir_2(e->k, KIR_min, least, now->extremum[h]);
  attend_barrier(s);
  store_own(s, &s->most, least);
  attend_barrier(s);
  for (uint32_t i = 0; i < s->queries / s->halves; i++) {
    const uint32_t own = load_first(s, &s->most, i);
    least = i ? kir_2(e->k, KIR_min, least, own) : own;
  }
  return kir_2(e->k, KIR_le, least, kir_const_float(e->k, kir_t(SNT_F32, 1), low == -INFINITY ? -FLT_MAX : low / 2));
}

/* Which tiles a pass does: all, or those that masks do not leave out as a whole, or in the second pass the others, where a query met nothing that counts. */
typedef struct tile_pass {
  bool masks;
  uint32_t second, unseen; /* bools */
} tile_pass;

static void do_tile_of(local_tile *s, const tile_pass *p, state *now) {
  emit *e = s->t->e;
  const attend_block block = {s->row, s->first, s->queries, s->keys};
  double low;
  const uint32_t masked = p->masks ? attend_all_masked(s->t, &block, &low) : 0;
  if (masked) do_tile_if(s, kir_3(e->k, KIR_select, p->second, kir_2(e->k, KIR_and, masked, p->unseen), kir_1(e->k, KIR_not, masked)), now);
  else do_tile(s, now);
}

static void do_tiles(local_tile *s, const tile_pass *p, state *now) {
  emit *e = s->t->e;
  state_loop b;
  state inside;
  open_loop(s, &b, (emit_loop_info){.name = "b", .lo = 0, .hi = s->t->a->keys, .step = s->keys, .whole = s->even}, now, &inside);
  s->at = b.at;
  s->first = first_key(s, b.at);
  if (!s->even) s->skip = emit_var_for(e, "skip", emit_expr(e, expr_sub(e->x, b.at, s->first)), 0, s->keys);
  do_tile_of(s, p, &inside);
  close_loop(s, &b, &inside, now);
}

static void hold_queries(local_tile *s) {
  if (!s->holds) return;
  attend_arrive(s);
  attend_mma_hold(s);
}

static void do_passes(local_tile *s, state *now) {
  emit *e = s->t->e;
  const attend_block any = {s->row, 0, s->queries, s->keys};
  double low;
  if (s->t->a->keys == (ir_expr)s->keys || !attend_all_masked(s->t, &any, &low)) {
    s->ahead = s->copied[ATTEND_KEYS];
    if (s->ahead) attend_fill_panel(s, ATTEND_KEYS);
    hold_queries(s);
    do_tiles(s, &(tile_pass){0}, now);
    return;
  }
  hold_queries(s);
  state_loop pass;
  state inside;
  open_loop(s, &pass, (emit_loop_info){.name = "pass", .lo = 0, .hi = 2, .step = 1, .flags = KIR_LOOP_ROLLED}, now, &inside);
  const tile_pass which = {true, kir_2(e->k, KIR_ne, emit_expr(e, pass.at), kir_const_int(e->k, kir_t(SNT_U32, 1), 0)),
                           any_unseen(s, &inside, low)};
  do_tiles(s, &which, &inside);
  close_loop(s, &pass, &inside, now);
}

/* What others find out about a query, for those who store its results. */
static void share_state(local_tile *s, const state *now) {
  const attention *a = s->t->a;
  if (s->in_lanes) return;
  attend_barrier(s);
  if (a->exp_count) store_own(s, &s->most, now->extremum[0]);
  for (uint32_t i = 0; i < a->sum_count; i++) store_own(s, &s->sums[i], now->sums[0][i]);
  attend_barrier(s);
}

/* What there is of a vector of the result. */
static void store_vector(local_tile *s, ir_expr column, uint32_t value) {
  emit *e = s->t->e;
  const uint32_t unit = s->own_depth % s->vector ? 1 : s->vector;
  const ir_expr end = s->own_depth / unit;
  for (uint32_t i = 0; i < s->vector && value; i += unit) {
    ir_expr at = expr_add(e->x, column, i);
    const bool edge = s->own_depth != s->depth;
    if (edge) {
      emit_if_below(e, expr_div(e->x, at, unit), end);
      at = expr_mul(e->x, emit_var_for(e, "c", emit_expr(e, expr_div(e->x, at, unit)), 0, end), unit);
    }
    s->t->now[s->t->a->depth] = emit_lanes(e, at, unit);
    attend_output(s->t, unit == s->vector ? value : kir_lane(e->k, value, i));
    emit_scalar_lanes(e);
    if (edge) emit_if_end(e);
  }
}

static void store_results(local_tile *s, const state *now) {
  attend *t = s->t;
  emit *e = t->e;
  share_state(s, now);
  t->key = 0;
  for (uint32_t i = 0; i < result_rows(s); i++) {
    uint32_t sums[ATTENTION_REDUCES];
    attend_set_query(s, result_row(s, i));
    const uint32_t extremum = t->a->exp_count && !s->in_lanes ? load_first(s, &s->most, result_row(s, i)) : now->extremum[s->half];
    for (uint32_t k = 0; k < t->a->sum_count; k++)
      sums[k] = s->in_lanes ? across_items(s, now->sums[s->half][k], true)
                            : kir_1(e->k, KIR_hred_add, load_parts(s, &s->sums[k], result_row(s, i)));
    const uint32_t scale = attend_finish(t, extremum, sums);
    for (uint32_t v = 0; v < s->vectors; v++) {
      const uint32_t value = s->in_lanes ? attend_mma_pair(s, now->results, s->cells / s->tall, v) : now->results[i * s->vectors + v];
      store_vector(s, attend_result_column(s, v), attend_scaled(t, scale, value));
    }
  }
}

/* ---- the whole ---- */

static attend_array array_of(local_tile *s, const char *name, int32_t element, int64_t elements) {
  kir_memory m = {.name = name, .space = KIR_LOCAL, .access = KIR_READ | KIR_WRITE, .rank = 1, .align = 64}; /* wmma asks for 32 */
  m.type = kir_t(element, 1);
  m.dims[0] = (uint64_t)elements;
  return (attend_array){kir_memory_add(s->t->e->k, &m), element, 0};
}

static void make_arrays(local_tile *s) {
  const attention *a = s->t->a;
  const int32_t element = s->fragments ? s->element : SNT_F32;
  s->query = array_of(s, "queries", element, s->queries * attend_panel_pitch(s, s->inner));
  s->panel = s->values = array_of(s, "panel", element, s->keys * attend_panel_pitch(s, s->panels > 1 ? s->inner : attend_widest(s)));
  if (s->panels > 1) s->values = array_of(s, "values", element, s->keys * attend_panel_pitch(s, s->depth));
  if (a->exp_count) s->most = array_of(s, "most", SNT_F32, ITEMS);
  if (s->in_lanes) return;
  s->scores = array_of(s, "scores", SNT_F32, s->queries * attend_scores_pitch(s));
  s->weights = s->fragments ? array_of(s, "weights", element, s->queries * attend_weights_row(s)) : s->scores;
  if (a->weight_exp) s->correction = array_of(s, "correction", SNT_F32, ITEMS);
  for (uint32_t i = 0; i < a->sum_count; i++) s->sums[i] = array_of(s, attend_sum_names[i], SNT_F32, ITEMS);
}

static void place_rows(local_tile *s) {
  attend *t = s->t;
  emit *e = t->e;
  expr_pool *x = e->x;
  const ir_expr rows = t->a->extent[t->a->row], parts = expr_ceil_div(x, rows, s->queries), groups = expr_mul(x, attend_batch(t), parts);
  int64_t literal;
  t->groups = groups;
  t->group_number = emit_group(e, groups);
  s->item = emit_item(e, 0, ITEMS);
  if (s->fragments) {
    matrix_units_use(e, &s->units);
    s->warp = emit_var_for(e, "w", kir_id(e->k, KIR_sg_id, 0), 0, ITEMS / s->units.lanes);
  }
  for (uint32_t i = 0; s->in_lanes && i < ATTEND_SHARE_STEPS; i++)
    s->partner[i] = kir_2(e->k, KIR_xor, kir_id(e->k, KIR_sg_lane, 0), kir_const_int(e->k, kir_t(SNT_U32, 1), 1 << i));
  attend_set_batch(t, expr_div(x, t->group_number, parts));
  s->row = expr_mul(x, expr_mod(x, t->group_number, parts), s->queries);
  if (expr_is_const(x, rows, &literal) && literal % s->queries == 0) return;
  const ir_expr last = expr_sub(x, rows, s->queries);
  e->same = true;
  s->row = emit_var_for(e, "row", emit_expr(e, expr_min(x, s->row, last)), 0, expr_add(x, last, 1));
}

snt_result attend_build_local(attend *t, uint32_t choice, uint32_t guard_count, const plan_condition *guards) {
  local_tile s = {.t = t};
  SNT_TRY(attend_begin(t, "attention"));
  emit *e = t->e;
  if (!attend_pick_shape(&s)) e->failed = true;
  if (s.fragments)
    t->ulp = KIR_OWN_EXP; /* the graph rounds weights to 16 bits behind it, by sixteen times as much at least; their two parts are exact */
  int64_t keys;
  s.even = expr_is_const(e->x, t->a->keys, &keys) && keys % s.keys == 0;
  place_rows(&s);
  make_arrays(&s);
  state now = {.extremum = {0}};
  for (uint32_t h = 0; h < s.halves; h++) {
    now.extremum[h] = attend_start(t, 1);
    for (uint32_t i = 0; i < t->a->sum_count; i++) now.sums[h][i] = kir_const_float(e->k, kir_t(SNT_F32, 1), 0);
  }
  s.cells = s.fragments ? s.tall * (uint32_t)s.depth / s.units.size.n : result_rows(&s) * s.vectors;
  for (uint32_t i = 0; i < s.cells; i++)
    now.results[i] = !s.fragments ? kir_const_float(e->k, kir_t(SNT_F32, VECTOR), 0) : i ? now.results[0] : fragment_zero(e, "o", SNT_F32);
  for (uint32_t i = 0; i < ATTEND_OPERANDS; i++) s.copied[i] = attend_is_copied(&s, (attend_operand)i);
  attend_fill_panel(&s, ATTEND_QUERIES);
  do_passes(&s, &now);
  if (s.fragments && !s.in_lanes) attend_mma_end(&s, now.results);
  store_results(&s, &now);
  return emit_end(e, t->groups, choice, guard_count, guards);
}
