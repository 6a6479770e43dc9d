/* Both products of an attention tile on matrix units (schedule/attention_local.c has the tile). A subgroup has as many queries as a
   fragment has rows, and their scores, weights and results to itself. Scores leave the fragments for local memory, where items weigh them;
   weights come back as two elements each, the leading bits and what they leave: one alone would be rounded before it is divided by its
   row's sum, by up to twice what the graph's cast behind the division allows. Results stay in fragments, in f32, whose rows follow the
   extremum as it moves; behind the last tile they leave by the scores' room. Where it is known which lane holds what, nothing goes through
   local memory but operands: an item has pairs of neighbours of two rows, eight apart, whose scores it weighs and makes an operand of; and a subgroup
   may have two fragments of queries on each other (`tall`), which each of keys and values multiplies: local memory, not the units, is what holds one up. */
#include "fusion/schedule/attention_local.h"

enum { MOST_CELLS = ATTEND_MOST_CELLS, BLOCK = 8 /* columns of a fragment in which a lane has two neighbours of a row */ };

/* ---- can they? ---- */

/* From the weights down to their exp is nothing but factors of the row, which are applied to the result, and choices of 0: the largest weight is 1. */
static bool is_exp(const attention *a, const ir_graph *g, uint32_t node) {
  while (true) {
    const attention_node *n = attention_at(a, node);
    if (!n || n->kind != ATTENTION_WEIGHT) return false;
    if (node == a->exps[a->weight_exp - 1].node) return true;
    const ir_op op = (ir_op)ir_at(g, node)->op;
    uint32_t from = 0;
    if (op == IR_OP_mul || op == IR_OP_div) {
      const attention_node *const side[2] = {attention_at(a, ir_arg(g, node, 0)), attention_at(a, ir_arg(g, node, 1))};
      from = side[0] && side[0]->kind == ATTENTION_WEIGHT ? 0 : 1;
      if (!side[1 - from] || side[1 - from]->kind != ATTENTION_ROW) return false;
    } else if (op == IR_OP_select) {
      const attention_node *taken = attention_at(a, ir_arg(g, node, 1));
      from = taken && taken->kind == ATTENTION_WEIGHT ? 1 : 2;
    } else if (op != IR_OP_cast && !(ir_ops[op].flags & IR_MOVEMENT)) {
      return false;
    }
    node = ir_arg(g, node, from);
  }
}

static bool are_of(const ir_graph *g, uint32_t contraction, int32_t element) {
  return ir_at(g, ir_arg(g, contraction, 0))->type.dtype == element && ir_at(g, ir_arg(g, contraction, 1))->type.dtype == element;
}

bool attend_mma_find(local_tile *s) {
  enum { MOST_SHARE = 4 };
  const attention *a = s->t->a;
  const ir_graph *g = s->t->c->graph;
  const uint32_t weights = ir_arg(g, a->values, a->weights);
  s->element = ir_at(g, weights)->type.dtype;
  if ((s->element != SNT_F16 && s->element != SNT_BF16) || !are_of(g, a->values, s->element) || !are_of(g, a->scores, s->element))
    return false;
  if (!a->weight_exp || !is_exp(a, g, weights) || !matrix_units_find(s->t->c, s->element, &s->units)) return false;
  const kir_mma *m = &s->units.size;
  s->in_lanes = s->units.open;
  s->vector = s->in_lanes ? 2 : ATTEND_VECTOR;
  s->share = s->units.lanes * (s->in_lanes ? ATTEND_HALVES : 1) / m->m;
  const uint32_t least = ATTEND_MOST_KEYS / 2;
  return s->share > 1 && s->share <= MOST_SHARE && ATTEND_ITEMS % s->units.lanes == 0 && least % m->n == 0 && least % m->k == 0 &&
         s->inner % m->k == 0 && s->depth % m->n == 0 && m->n % (s->share * s->vector) == 0 && s->depth / m->n <= MOST_CELLS;
}

/* ---- products ---- */

/* Where the subgroup's rows begin. */
static ir_expr own_rows(const local_tile *s, int64_t pitch) {
  return expr_mul(s->t->e->x, s->warp, expr_int(s->t->e->x, s->tall * s->units.size.m * pitch));
}

/* Fragment f of the subgroup's queries, from term `term` on. */
static uint32_t queries_from(local_tile *s, uint32_t f, ir_expr term) {
  expr_pool *x = s->t->e->x;
  const int64_t pitch = attend_panel_pitch(s, s->inner);
  const ir_expr at = expr_add(x, own_rows(s, pitch), expr_add(x, term, expr_int(x, f * s->units.size.m * pitch)));
  return fragment_load(s->t->e, s->query.memory, FRAGMENT_A, at, (uint32_t)pitch, false);
}

void attend_mma_hold(local_tile *s) {
  const uint32_t terms = (uint32_t)s->inner / s->units.size.k;
  for (uint32_t i = 0; i < s->tall * terms; i++) s->held[i] = queries_from(s, i / terms, (ir_expr)(i % terms * s->units.size.k));
}

/* The panel's fragment whose first term is `term` and whose first result is `column`; turned: its rows are the results' columns, not the terms. */
static uint32_t panel_from(local_tile *s, ir_expr term, ir_expr column, int64_t pitch, bool turned) {
  expr_pool *x = s->t->e->x;
  const ir_expr along = turned ? column : term, at = expr_add(x, expr_mul(x, along, expr_int(x, pitch)), turned ? term : column);
  return fragment_load(s->t->e, s->panel.memory, FRAGMENT_B, at, (uint32_t)pitch, turned);
}

/* Of the queries, `cells` fragments of scores each, from term `term` on: added to `acc`. */
static void multiply_keys(local_tile *s, ir_expr term, uint32_t cells, uint32_t *acc) {
  uint32_t a[ATTEND_MOST_TALL];
  for (uint32_t f = 0; f < s->tall; f++)
    a[f] = s->holds ? s->held[(f * (uint32_t)s->inner + (uint32_t)term) / s->units.size.k] : queries_from(s, f, term);
  for (uint32_t i = 0; i < cells; i++) {
    const uint32_t b = panel_from(s, term, (ir_expr)(i * s->units.size.n), attend_panel_pitch(s, s->inner), true);
    for (uint32_t f = 0; f < s->tall; f++) acc[f * cells + i] = fragment_multiply(s->t->e, a[f], b, acc[f * cells + i]);
  }
}

/* Sums into the scores' room, from its first column on. */
static void put(local_tile *s, uint32_t cells, const uint32_t *acc) {
  const int64_t pitch = attend_scores_pitch(s);
  for (uint32_t i = 0; i < cells; i++)
    fragment_store(s->t->e, s->scores.memory, expr_add(s->t->e->x, own_rows(s, pitch), (ir_expr)(i * s->units.size.n)), (uint32_t)pitch,
                   acc[i]);
}

void attend_mma_scores(local_tile *s, uint32_t *acc) {
  emit *e = s->t->e;
  const uint32_t cells = s->keys / s->units.size.n, all = s->tall * cells, step = s->units.size.k;
  for (uint32_t i = 0; i < all; i++) acc[i] = i ? acc[0] : fragment_zero(e, "s", SNT_F32);
  for (int64_t term = 0; s->in_lanes && term < s->inner; term += step) multiply_keys(s, (ir_expr)term, cells, acc);
  if (s->in_lanes) return;
  uint32_t carried[MOST_CELLS];
  const emit_loop_info loop = {
      .name = "f", .hi = expr_int(e->x, s->inner), .step = step, .whole = true, .carry_count = all, .initial = acc, .carried = carried};
  const ir_expr term = emit_loop(e, &loop);
  multiply_keys(s, term, cells, carried);
  emit_loop_end(e, term, all, carried, acc);
  put(s, cells, acc);
}

uint32_t attend_mma_pair(local_tile *s, const uint32_t *sums, uint32_t across, uint32_t v) {
  emit *e = s->t->e;
  const uint32_t blocks = s->units.size.n / BLOCK, at = v % blocks * 4 + s->half % ATTEND_HALVES * 2;
  const uint32_t sum = sums[s->half / ATTEND_HALVES * across + v / blocks];
  const uint32_t pair[2] = {fragment_element(e, sum, at), fragment_element(e, sum, at + 1)};
  return kir_vector(e->k, SNT_F32, 2, pair);
}

/* Of a weight, the bits that the element has room for. What it leaves is a number below its last one, so that the product of both parts
   errs by no more than f32. */
static uint32_t leading(local_tile *s, uint32_t weight) {
  kir_kernel *k = s->t->e->k;
  const uint8_t lanes = kir_at(k, weight)->type.lanes;
  const kir_type bits = kir_t(SNT_U32, lanes);
  const uint32_t mask = kir_const_int(k, bits, s->element == SNT_BF16 ? 0xffff0000 : 0xffffe000);
  return kir_bitcast(k, kir_t(SNT_F32, lanes), kir_2(k, KIR_and, kir_bitcast(k, bits, weight), mask));
}

void attend_mma_weight(local_tile *s, ir_expr at, uint32_t weight) {
  emit *e = s->t->e;
  expr_pool *x = e->x;
  const int64_t pitch = attend_weights_pitch(s);
  const ir_expr row = expr_mod(x, expr_div(x, s->item, s->share), s->units.size.m);
  const ir_expr own = expr_add(x, own_rows(s, attend_weights_row(s)), expr_add(x, expr_mul(x, row, expr_int(x, pitch)), at));
  for (uint32_t p = 0; p < WEIGHT_PARTS && !e->failed && !e->k->failed; p++) {
    const uint32_t part = p + 1 < WEIGHT_PARTS ? leading(s, weight) : weight;
    attend_store(s->t, &s->weights, expr_add(x, own, expr_int(x, p * s->units.size.m * pitch)), part);
    weight = kir_2(e->k, KIR_sub, weight, part);
  }
}

/* The weights of k keys from `first` on, of which `weight` has pairs, as an operand. */
static uint32_t weights_operand(local_tile *s, uint32_t first, uint32_t weight[ATTEND_HALVES][ATTEND_PAIRS]) {
  uint32_t elements[4 * ATTEND_PAIRS], count = 0;
  for (uint32_t v = first / BLOCK; v < (first + s->units.size.k) / BLOCK; v++)
    for (uint32_t i = 0; i < 4; i++) elements[count++] = attend_lane(s->t, weight[i / 2][v], i % 2);
  return fragment_make(s->t->e, s->element, FRAGMENT_A, count, elements);
}

/* Both parts of the weights of k keys from `key` on, as they lie in fragment f of the scores. */
static void own_operands(local_tile *s, uint32_t f, uint32_t key, uint32_t parts[WEIGHT_PARTS]) {
  emit *e = s->t->e;
  uint32_t left[ATTEND_HALVES][ATTEND_PAIRS];
  memcpy(left, s->weight + f * ATTEND_HALVES, sizeof left);
  for (uint32_t p = 0; p < WEIGHT_PARTS; p++) {
    uint32_t part[ATTEND_HALVES][ATTEND_PAIRS] = {{0}};
    for (uint32_t h = 0; h < ATTEND_HALVES; h++)
      for (uint32_t v = key / BLOCK; v < (key + s->units.size.k) / BLOCK && !e->failed && !e->k->failed; v++) {
        part[h][v] = p + 1 < WEIGHT_PARTS ? leading(s, left[h][v]) : left[h][v];
        left[h][v] = kir_2(e->k, KIR_sub, left[h][v], part[h][v]);
      }
    parts[p] = weights_operand(s, key, part);
  }
}

static void multiply_own(local_tile *s, uint32_t *results) {
  emit *e = s->t->e;
  const kir_mma *m = &s->units.size;
  const int64_t pitch = attend_panel_pitch(s, s->depth);
  const uint32_t across = s->cells / s->tall;
  for (uint32_t key = 0; key < s->keys; key += m->k) {
    uint32_t parts[ATTEND_MOST_TALL][WEIGHT_PARTS];
    for (uint32_t f = 0; f < s->tall; f++) own_operands(s, f, key, parts[f]);
    for (uint32_t i = 0; i < across; i++) {
      const uint32_t b = fragment_load(e, s->values.memory, FRAGMENT_B, expr_int(e->x, key * pitch + i * m->n), (uint32_t)pitch, false);
      for (uint32_t f = 0; f < s->tall; f++)
        for (uint32_t p = 0; p < WEIGHT_PARTS; p++) results[f * across + i] = fragment_multiply(e, parts[f][p], b, results[f * across + i]);
    }
  }
}

/* A fragment whose rows are the corrections of their queries: fragment f of the subgroup's. */
static uint32_t corrections(local_tile *s, uint32_t f) {
  emit *e = s->t->e;
  if (!s->in_lanes) return fragment_load(e, s->correction.memory, FRAGMENT_C, own_rows(s, 1), 0, true);
  uint32_t elements[UINT8_MAX];
  const uint32_t count = kir_mma_own(s->units.lanes, s->units.size, FRAGMENT_C);
  for (uint32_t i = 0; i < count; i++) elements[i] = s->factor[f * ATTEND_HALVES + i / 2 % 2];
  return fragment_make(e, SNT_F32, FRAGMENT_C, count, elements);
}

/* Weights in local memory, whose parts lie one after the other and add up. */
static void multiply_stored(local_tile *s, uint32_t *results) {
  emit *e = s->t->e;
  expr_pool *x = e->x;
  const kir_mma *m = &s->units.size;
  const int64_t pitch = attend_weights_pitch(s);
  uint32_t carried[MOST_CELLS], a[WEIGHT_PARTS];
  const emit_loop_info loop = {
      .name = "f", .hi = s->keys, .step = m->k, .whole = true, .carry_count = s->cells, .initial = results, .carried = carried};
  const ir_expr term = emit_loop(e, &loop);
  for (uint32_t p = 0; p < WEIGHT_PARTS; p++) {
    const ir_expr at = expr_add(x, own_rows(s, attend_weights_row(s)), expr_add(x, term, expr_int(x, p * m->m * pitch)));
    a[p] = fragment_load(e, s->weights.memory, FRAGMENT_A, at, (uint32_t)pitch, false);
  }
  for (uint32_t i = 0; i < s->cells; i++) {
    const uint32_t b = panel_from(s, term, (ir_expr)(i * m->n), attend_panel_pitch(s, s->depth), false);
    for (uint32_t p = 0; p < WEIGHT_PARTS; p++) carried[i] = fragment_multiply(e, a[p], b, carried[i]);
  }
  emit_loop_end(e, term, s->cells, carried, results);
}

void attend_mma_values(local_tile *s, uint32_t *results) {
  emit *e = s->t->e;
  const uint32_t across = s->cells / s->tall;
  for (uint32_t f = 0; f < s->tall; f++) {
    const uint32_t factor = corrections(s, f);
    for (uint32_t i = 0; i < across; i++) results[f * across + i] = kir_2(e->k, KIR_mul, results[f * across + i], factor);
  }
  if (s->in_lanes) multiply_own(s, results);
  else multiply_stored(s, results);
}

/* As many columns at a time as there is room for. */
void attend_mma_end(local_tile *s, uint32_t *results) {
  emit *e = s->t->e;
  expr_pool *x = e->x;
  const uint32_t n = s->units.size.n, most = s->keys / n, vectors = n / (s->share * ATTEND_VECTOR);
  const ir_expr own = expr_mul(x, expr_div(x, s->item, s->share), expr_int(x, attend_scores_pitch(s)));
  uint32_t acc[MOST_CELLS];
  memcpy(acc, results, sizeof acc);
  for (uint32_t first = 0; first < s->cells; first += most) {
    const uint32_t count = s->cells - first < most ? s->cells - first : most;
    fragment_barrier(e);
    put(s, count, acc + first);
    fragment_barrier(e);
    for (uint32_t v = 0; v < count * vectors; v++) {
      const ir_expr column = emit_lanes(e, attend_result_column(s, v), ATTEND_VECTOR);
      results[first * vectors + v] = attend_load(s->t, &s->scores, expr_add(x, own, column));
      emit_scalar_lanes(e);
    }
  }
}
