/* The code of a contraction's register tile (contract/tile.c): its terms, label by label, into sums, and these into results. */
#include "fusion/contract_private.h"

/* ---- inner loops ---- */

static uint32_t to_type(emit *e, uint32_t value, int32_t base) {
  const kir_type type = emit_value_type(e, value);
  return type.base == base ? value : kir_cast(e->k, kir_t(base, type.lanes), value);
}

static uint32_t operand_value(contraction *t, uint32_t member, uint32_t operand) {
  const map_access a = contract_operand_at(t, operand);
  return to_type(t->e, emit_value(t->e, contract_operand(t, member, operand), &a), t->type.base);
}

static void use_vector(contraction *t, uint32_t j, ir_expr column) {
  emit_use_lanes(t->e, t->lane_var[j], t->lanes);
  t->at[t->out[t->lane_axis]] = expr_add(t->e->x, column, t->lane_at[j]);
}

static void use_row(contraction *t, uint32_t i, ir_expr row) {
  if (t->row_axis != CONTRACT_NONE) t->at[t->out[t->row_axis]] = expr_add(t->e->x, row, i);
}

void contract_add_term(const contraction *t, uint32_t *cell, uint32_t row, uint32_t column) {
  const bool turned = t->packed && t->lane_operand == 0;
  *cell = emit_multiply_add(t->e, t->set.node[0], t->type.base, turned ? column : row, turned ? row : column, *cell);
}

/* Half a vector of the lanes of a, from `first`, and half a one of those of b, from `second`. */
static uint32_t halves(const contraction *t, uint32_t a, uint32_t first, uint32_t b, uint32_t second) {
  uint8_t numbers[16];
  for (uint32_t i = 0; i < t->lanes; i++) numbers[i] = (uint8_t)(2 * i < t->lanes ? first + i : t->lanes / 2 + second + i);
  return kir_shuffle(t->e->k, a, b, t->lanes, numbers);
}

/* One term of two rows and the half vector of columns, which `vector` holds twice. */
static void multiply_pair(contraction *t, uint32_t above, uint32_t below, uint32_t vector, uint32_t *sum) {
  kir_kernel *k = t->e->k;
  const uint32_t second = kir_splat(k, below, t->lanes), first = kir_splat(k, above, t->lanes);
  contract_add_term(t, sum, halves(t, first, 0, second, 0), vector);
}

/* One term: vectors of the lane operand once, each row's scalar against all of them. */
static void multiply(contraction *t, ir_expr row, ir_expr column, uint32_t *acc) {
  uint32_t vector[CONTRACT_SET_MAX][CONTRACT_VECTORS], above = 0;
  const bool pairs = contract_pairs_rows(t);
  const uint32_t own = t->vectors - pairs,
                 cells = t->rows * own; /* sums that one row has to itself, and all rows; behind them those of pairs */
  for (uint32_t s = 0; s < t->set.count; s++)
    for (uint32_t j = 0; j < t->vectors; j++) {
      use_vector(t, j, column);
      vector[s][j] = operand_value(t, s, t->lane_operand);
    }
  if (pairs) {
    const uint32_t last = kir_splat(t->e->k, vector[0][own], t->lanes); /* what is the same in all columns is no vector yet */
    vector[0][own] = halves(t, last, t->lanes / 2, last, t->lanes / 2);
  }
  for (uint32_t i = 0; i < t->rows; i++) {
    use_row(t, i, row);
    for (uint32_t s = 0; s < t->set.count; s++) {
      uint32_t scalar = 0;
      for (uint32_t j = 0; j < own; j++) {
        if (t->both_lanes) use_vector(t, j, column);
        if (t->both_lanes || !j) scalar = operand_value(t, s, 1 - t->lane_operand);
        contract_add_term(t, &acc[s * cells + i * own + j], scalar, vector[s][j]);
      }
      if (pairs && i % 2) multiply_pair(t, above, scalar, vector[0][own], &acc[cells + i / 2]);
      above = scalar;
    }
  }
  emit_scalar_lanes(t->e);
}

enum { STEP = 4 }; /* terms a trip: whole texels and shared indices */

typedef struct tile_terms {
  uint32_t vector[CONTRACT_SET_MAX][CONTRACT_VECTORS], scalar[CONTRACT_SET_MAX][CONTRACT_TEXEL_ROWS];
} tile_terms;

static void read_terms(contraction *t, ir_expr row, ir_expr column, tile_terms *of) {
  for (uint32_t s = 0; s < t->set.count; s++) {
    for (uint32_t j = 0; j < t->vectors; j++) {
      use_vector(t, j, column);
      of->vector[s][j] = operand_value(t, s, t->lane_operand);
    }
    for (uint32_t i = 0; i < t->rows; i++) {
      use_row(t, i, row);
      of->scalar[s][i] = operand_value(t, s, 1 - t->lane_operand);
    }
  }
}

/* Where a product and a sum are two operations, the terms of a trip are summed before they meet the sum so far: as many operations, a shorter chain of them,
   and fewer roundings of what is large. Not the sums of several products, which come from memory and go there: swiglu on lavapipe took 1.25 of the time. */
static bool sums_apart(const contraction *t) {
  return t->type.base == SNT_F32 && t->set.count == 1 && !t->c->options->profile->caps.fma_fast && !schedule_is_explicit(t->c) &&
         !fusion_keeps_order(t->c->options);
}

static uint32_t no_sum(const contraction *t) { return kir_const_float(t->e->k, kir_t(t->type.base, t->lanes), -0.0); }

/* Several terms are read, then sum by sum: where a read is a call that keeps no register, a sum then comes and goes once for all of them. */
static void multiply_terms(contraction *t, uint32_t label, ir_expr first, uint32_t count, ir_expr row, ir_expr column, uint32_t *acc) {
  tile_terms terms[STEP];
  const bool apart = count > 1 && sums_apart(t);
  for (uint32_t n = 0; n < count; n++) {
    t->at[label] = expr_add(t->e->x, first, n);
    read_terms(t, row, column, &terms[n]);
  }
  emit_scalar_lanes(t->e);
  for (uint32_t s = 0; s < t->set.count; s++)
    for (uint32_t j = 0; j < t->vectors; j++)
      for (uint32_t i = 0; i < t->rows; i++) {
        uint32_t *const cell = &acc[(s * t->rows + i) * t->vectors + j], sum = apart ? no_sum(t) : *cell;
        for (uint32_t n = 0; n < count; n++) contract_add_term(t, &sum, terms[n].scalar[s][i], terms[n].vector[s][j]);
        *cell = apart ? kir_2(t->e->k, KIR_add, *cell, sum) : sum;
      }
}

/* Are the terms of a trip read before they are summed? Then those that are no whole trip follow behind the loop. */
static bool goes_together(const contraction *t) { return !schedule_is_explicit(t->c) && !t->both_lanes && t->rows <= CONTRACT_TEXEL_ROWS; }

static uint32_t terms_ahead(const contraction *t) {
  const uint32_t wanted = t->c->options->profile->trip_terms;
  return wanted && wanted < STEP ? wanted : STEP;
}

static void multiply_trip(contraction *t, uint32_t label, ir_expr row, ir_expr column, uint32_t *acc) {
  const ir_expr k = t->at[label];
  const uint32_t ahead = terms_ahead(t);
  for (uint32_t n = 0; n < STEP; n += ahead)
    multiply_terms(t, label, expr_add(t->e->x, k, n), n + ahead > STEP ? STEP - n : ahead, row, column, acc);
}

/* Short labels are written out: their terms, as long as no more elements than these have to be taken out of words for them (some compilers take minutes for
   a 3x3 window of three channels of f16 otherwise). */
enum { SHORT_EXTENT = 4, MOST_UNPACKED = 96 };

static int64_t unpacked_by_term(const contraction *t) {
  int64_t count = 0;
  for (uint32_t s = 0; s < t->set.count; s++)
    for (uint32_t operand = 0; operand < 2; operand++)
      if (schedule_is_packed(t->c, ir_at(t->c->graph, contract_operand(t, s, operand))->type.dtype))
        count += operand == t->lane_operand ? t->vectors * t->lanes : t->rows;
  return count;
}

/* Are operands made of transcendental functions where the device's compiler takes few of them? Each is written for all rows and columns of a term. */
static bool has_dear_terms(const contraction *t) {
  bool dear = false;
  for (uint32_t i = 0; t->c->options->profile->dear_elements && i < t->group->count; i++)
    dear |= t->group->nodes[i] < t->set.node[0] && (ir_ops[ir_at(t->c->graph, t->group->nodes[i])->op].flags & IR_EXPENSIVE);
  return dear;
}

static bool is_short(const contraction *t, uint32_t level) {
  int64_t extent, unpacked = unpacked_by_term(t);
  if (has_dear_terms(t)) return false;
  for (; level < t->reduced_count; level++) {
    if (!expr_is_const(t->e->x, t->extent[t->reduced[level]], &extent) || extent > SHORT_EXTENT) return false;
    unpacked *= extent;
  }
  return unpacked <= MOST_UNPACKED;
}

static void reduce_level(contraction *, uint32_t level, ir_expr row, ir_expr column, uint32_t *acc);

/* The terms of a label from lo to hi, `step` at a time. */
static void reduce_range(contraction *t, uint32_t level, const emit_loop_info *range, ir_expr row, ir_expr column, uint32_t *acc) {
  emit *e = t->e;
  const uint32_t label = t->reduced[level], cells = contract_sums(t), step = (uint32_t)range->step;
  const bool last = level + 1 == t->reduced_count;
  uint32_t carried[CONTRACT_CELLS];
  emit_loop_info info = *range;
  info.name = "k", info.carry_count = cells, info.initial = acc, info.carried = carried;
  const ir_expr k = emit_loop(e, &info);
  t->at[label] = k;
  if (last) {
    contract_fetch_ahead(t, step);
    contract_fetch_rows(t, row, step);
  }
  const bool together = step > 1 && goes_together(t), apart = t->c->options->profile->reads == COST_READS_TEXEL && sums_apart(t) &&
                                                              !(together && terms_ahead(t) > 1) &&
                                                              (last ? step > 1 : is_short(t, level + 1));
  uint32_t own[CONTRACT_CELLS], *const sums = apart ? own : carried;
  for (uint32_t i = 0; i < cells && apart; i++) own[i] = no_sum(t);
  if (together) multiply_trip(t, label, row, column, sums);
  for (uint32_t s = 0; s < step && !together; s++) {
    t->at[label] = expr_add(e->x, k, s);
    reduce_level(t, level + 1, row, column, sums);
  }
  for (uint32_t i = 0; i < cells && apart; i++) carried[i] = kir_2(e->k, KIR_add, carried[i], own[i]);
  emit_loop_end(e, k, cells, carried, acc);
}

/* A long sum is one of sums of so many terms, whose roundings are fewer by the root of their number. Not where terms are taken one by one: the loop over a
   part, whose end is then known to no compiler, takes a twentieth more. */
enum { PART_TERMS = 256 };

static bool sums_parts(const contraction *t, int64_t extent, uint32_t step) {
  return !fusion_keeps_order(t->c->options) && step == STEP && extent >= 2 * PART_TERMS && t->type.base == SNT_F32 &&
         schedule_is_explicit(t->c);
}

static void reduce_parts(contraction *t, uint32_t level, int64_t extent, ir_expr row, ir_expr column, uint32_t *acc) {
  emit *e = t->e;
  const uint32_t cells = contract_sums(t);
  uint32_t totals[CONTRACT_CELLS], sums[CONTRACT_CELLS];
  const ir_expr part = emit_loop(e, &(emit_loop_info){.name = "part",
                                                      .hi = extent,
                                                      .step = PART_TERMS,
                                                      .whole = extent % PART_TERMS == 0,
                                                      .carry_count = cells,
                                                      .initial = acc,
                                                      .carried = totals});
  for (uint32_t i = 0; i < cells; i++) sums[i] = emit_no_sum(e, kir_t(t->type.base, t->lanes));
  const ir_expr end = expr_min(e->x, expr_add(e->x, part, PART_TERMS), extent);
  reduce_range(t, level, &(emit_loop_info){.lo = part, .hi = end, .step = STEP, .whole = true}, row, column, sums);
  for (uint32_t i = 0; i < cells; i++) totals[i] = kir_2(e->k, KIR_add, totals[i], sums[i]);
  emit_loop_end(e, part, cells, totals, acc);
}

/* Loops over the reduced labels; the innermost short ones are written out, a long innermost one is unrolled. */
static void reduce_level(contraction *t, uint32_t level, ir_expr row, ir_expr column, uint32_t *acc) {
  emit *e = t->e;
  if (level == t->reduced_count) {
    multiply(t, row, column, acc);
    return;
  }
  const uint32_t label = t->reduced[level];
  int64_t extent;
  const bool literal = expr_is_const(e->x, t->extent[label], &extent), last = level + 1 == t->reduced_count;
  const bool blocked = level == 0 && t->blocks.size > 0;
  if (blocked && t->blocks.size == 1) {
    t->at[label] = t->blocks.lo;
    reduce_level(t, level + 1, row, column, acc);
    return;
  }
  if (is_short(t, level)) {
    for (ir_expr i = 0; i < extent; i++) {
      t->at[label] = i;
      reduce_level(t, level + 1, row, column, acc);
    }
    return;
  }
  const uint32_t rest = literal ? (uint32_t)(extent % STEP) : 0;
  const uint32_t step = last && literal && (!rest || goes_together(t)) && !has_dear_terms(t) ? STEP : 1;
  emit_loop_info range = {.lo = 0, .hi = t->extent[label], .step = step, .whole = step > 1 || blocked};
  if (blocked) range.lo = t->blocks.lo, range.hi = expr_add(e->x, t->blocks.lo, t->blocks.size);
  if (step > 1 && rest) range.hi = extent - rest;
  if (!blocked && sums_parts(t, extent, step)) reduce_parts(t, level, extent, row, column, acc);
  else reduce_range(t, level, &range, row, column, acc);
  if (step > 1 && rest) multiply_terms(t, label, extent - rest, rest, row, column, acc);
}

/* Tiles that reach past the end store what lies inside; of what `at` keeps by conditions, what these do. */
static void store_inside(contraction *t, uint32_t node, map_access *at, uint32_t value) {
  const bool past[] = {t->past_rows, t->past_columns};
  const int32_t axis[] = {t->row_axis, t->lane_axis};
  map_condition inside[MAP_MAX_CONDITIONS + 2];
  uint32_t count = at->condition_count;
  memcpy(inside, at->conditions, count * sizeof *inside);
  at->condition_count = 0;
  for (uint32_t i = 0; i < IR_COUNT(axis); i++)
    if (past[i]) inside[count++] = (map_condition){t->at[t->out[axis[i]]], 0, t->extent[t->out[axis[i]]]};
  emit_store_where(t->e, node, at, value, count, inside);
}

/* Where a result that has other coordinates reads the cells: what was divided and put together again on the way may be other words for the same number. */
static void remember_as_read(contraction *t, uint32_t output, const map_access *at, const map_access *own, const uint32_t *cell) {
  map_access read;
  if (schedule_is_explicit(t->c) || !memcmp(own->at, at->at, at->rank * sizeof at->at[0])) return;
  for (uint32_t s = 0; s < t->set.count; s++)
    if (fusion_one_place(t->c, t->group, output, own, t->set.node[s], &read)) emit_remember(t->e, t->set.node[s], &read, cell[s]);
}

/* Cell (i, j) of every contraction is remembered, and every result stored at its coordinates. */
void contract_store_cell(contraction *t, const uint32_t *acc) {
  emit *e = t->e;
  map_access at = {.rank = t->out_rank};
  uint32_t cell[CONTRACT_SET_MAX];
  for (uint32_t d = 0; d < t->out_rank; d++) at.at[d] = t->at[t->out[d]];
  for (uint32_t s = 0; s < t->set.count; s++) {
    cell[s] = emit_round_node(e, ir_at(e->g, t->set.node[s]), acc[s * t->rows * t->vectors]);
    emit_remember(e, t->set.node[s], &at, cell[s]);
  }
  for (uint32_t o = 0; o < t->group->output_count; o++) {
    map_access own = at;
    if (!contract_set_forward(t->c, t->group, &t->set, t->group->outputs[o], &own)) {
      e->failed = true;
      return;
    }
    const bool by_lane = emit_conditions_use_lanes(e, own.condition_count, own.conditions);
    const uint32_t kept = by_lane ? 0 : emit_conditions(e, own.condition_count, own.conditions);
    map_access all = own;
    all.condition_count = 0;
    if (!by_lane) own.condition_count = 0;
    if (kept) emit_if(e, kept);
    remember_as_read(t, t->group->outputs[o], &at, &all, cell);
    store_inside(t, t->group->outputs[o], &own, emit_value(e, t->group->outputs[o], &all));
    if (kept) emit_if_end(e);
  }
}

/* ---- blocks of terms ---- */

static ir_expr sum_at(contraction *t, ir_expr cell) {
  expr_pool *x = t->e->x;
  const ir_expr first = expr_mul(x, expr_add(x, expr_mul(x, t->ahead.pass, contract_sums(t)), cell), t->lanes);
  emit_use_lanes(t->e, t->lane_var[0], t->lanes);
  return expr_add(x, first, t->lane_at[0]);
}

static void open_sums(contraction *t, int64_t elements) {
  kir_memory sums = {.name = "sums", .space = KIR_PRIVATE, .access = KIR_READ | KIR_WRITE, .rank = 1, .type = kir_t(t->type.base, 1)};
  sums.flags = KIR_MEM_ROWS;
  sums.align = 64;
  sums.dims[0] = (uint64_t)elements;
  t->blocks.sums = kir_memory_add(t->e->k, &sums);
}

static void keep_sums(contraction *t, const uint32_t *acc) {
  for (uint32_t i = 0; i < contract_sums(t); i++) emit_store(t->e, t->blocks.sums, t->type.base, sum_at(t, (ir_expr)i), acc[i]);
  emit_scalar_lanes(t->e);
}

static uint32_t take_sum(contraction *t, ir_expr cell) { return emit_load(t->e, t->blocks.sums, t->type.base, sum_at(t, cell), 0, NULL); }

static void take_sums(contraction *t, uint32_t *acc) {
  for (uint32_t i = 0; i < contract_sums(t); i++) acc[i] = take_sum(t, (ir_expr)i);
  emit_scalar_lanes(t->e);
}

bool contract_open_blocks(contraction *t, int64_t passes) {
  emit *e = t->e;
  const int64_t elements = passes * contract_sums(t) * t->lanes;
  t->blocks.size = t->lane_form[0] == CONTRACT_IN_PLACE ? 0 : contract_block_size(t, passes);
  if (!t->blocks.size) return false;
  open_sums(t, elements);
  const ir_expr v = emit_steps(e, "z", 0, elements, t->lanes);
  emit_use_lanes(e, t->lane_var[0], t->lanes);
  emit_store(e, t->blocks.sums, t->type.base, expr_add(e->x, v, t->lane_at[0]), emit_no_sum(e, kir_t(t->type.base, t->lanes)));
  emit_scalar_lanes(e);
  emit_loop_end(e, v, 0, NULL, NULL);
  return true;
}

/* ---- the tile ---- */

/* The last vector of each row: what it shares with the one before, and its half of a sum of two rows. */
static void part_pairs(const contraction *t, const uint32_t *sums, uint32_t *cells) {
  const uint32_t own = t->vectors - 1, half = t->lanes / 2;
  for (uint32_t i = 0; i < t->rows; i++) {
    for (uint32_t j = 0; j < own; j++) cells[i * t->vectors + j] = sums[i * own + j];
    cells[i * t->vectors + own] = halves(t, sums[i * own + own - 1], half, sums[t->rows * own + i / 2], i % 2 * half);
  }
}

/* Is more computed behind the sums than the device's compiler takes, written for each of the tile's elements? */
static bool stores_by_rows(const contraction *t) {
  const uint32_t most = t->c->options->profile->dear_elements;
  return most && !t->store && !t->blocks.size && t->rows * t->vectors * t->lanes > most && schedule_has_dear(t->c->graph, t->group);
}

/* Written once, for a row by number. */
static void store_rows(contraction *t, ir_expr row, ir_expr column, const uint32_t *sums) {
  expr_pool *x = t->e->x;
  uint32_t cells[CONTRACT_CELLS];
  open_sums(t, (int64_t)contract_sums(t) * t->lanes);
  keep_sums(t, sums);
  const ir_expr r = emit_steps(t->e, "r", 0, t->rows, 1);
  for (uint32_t j = 0; j < t->vectors; j++) {
    const ir_expr cell = expr_add(x, expr_mul(x, r, t->vectors), j);
    for (uint32_t s = 0; s < t->set.count; s++) cells[s * t->rows * t->vectors] = take_sum(t, expr_add(x, cell, s * t->rows * t->vectors));
    use_vector(t, j, column);
    use_row(t, 0, expr_add(x, row, r));
    contract_store_cell(t, cells);
  }
  emit_scalar_lanes(t->e);
  emit_loop_end(t->e, r, 0, NULL, NULL);
}

static void store_tile(contraction *t, ir_expr row, ir_expr column, const uint32_t *sums) {
  if (stores_by_rows(t)) {
    store_rows(t, row, column, sums);
    return;
  }
  uint32_t cells[CONTRACT_CELLS];
  const uint32_t *acc = contract_pairs_rows(t) ? cells : sums;
  if (acc == cells) part_pairs(t, sums, cells);
  for (uint32_t i = 0; i < t->rows; i++)
    for (uint32_t j = 0; j < t->vectors; j++) {
      use_vector(t, j, column);
      use_row(t, i, row);
      (t->store ? t->store : contract_store_cell)(t, &acc[i * t->vectors + j]);
    }
  emit_scalar_lanes(t->e);
}

/* Whether some row of the tile is wanted; 0: all are. */
static uint32_t wanted_rows(contraction *t, ir_expr row, ir_expr column) {
  emit *e = t->e;
  uint32_t any = 0;
  if (!t->chooser) return 0;
  for (uint32_t i = 0; i < t->rows; i++) {
    map_access at = {.rank = t->out_rank};
    use_vector(t, 0, column);
    use_row(t, i, row);
    for (uint32_t d = 0; d < t->out_rank; d++) at.at[d] = t->at[t->out[d]];
    const uint32_t wanted = emit_wanted(e, t->set.node[0], t->chooser, &at);
    if (!wanted) {
      t->chooser = 0;
      break;
    }
    any = any ? kir_2(e->k, KIR_or, any, wanted) : wanted;
  }
  emit_scalar_lanes(e);
  return t->chooser ? any : 0;
}

/* All terms of the tile, unless every row of it is left out by a select: rows behind a count. */
static void sum_tile(contraction *t, ir_expr row, ir_expr column, uint32_t *acc) {
  uint32_t sums[CONTRACT_CELLS];
  const uint32_t wanted = wanted_rows(t, row, column), count = contract_sums(t);
  memcpy(sums, acc, count * sizeof *sums);
  if (wanted) emit_if(t->e, wanted);
  reduce_level(t, 0, row, column, acc);
  if (!wanted) return;
  emit_else(t->e, count, acc);
  emit_if_result(t->e, count, sums, acc);
}

void contract_emit_tile(contraction *t, ir_expr row, ir_expr column) {
  uint32_t acc[CONTRACT_CELLS];
  if (t->blocks.size) take_sums(t, acc);
  else
    for (uint32_t i = 0; i < contract_sums(t); i++) acc[i] = emit_no_sum(t->e, kir_t(t->type.base, t->lanes));
  if (!t->blocks.summed) sum_tile(t, row, column, acc);
  if (t->blocks.size && !t->blocks.summed) keep_sums(t, acc);
  else store_tile(t, row, column, acc);
}
