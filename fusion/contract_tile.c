/* The register tile of a contraction: its shape from the profile, and its code. One operand is read in vectors along the lane label, the other one
   element at a time along the row label; a work-item holds rows x vectors accumulators, for each contraction of the set.
   Tails are overlapped by the caller, so a tile is always whole. */
#include "fusion/contract_private.h"

/* More rows than a cache set has ways meet in one when they lie a power of two apart. */
enum { FEW_ROWS = 8, MOST_ROWS = 14, MOST_TEXEL_ROWS = 16, MOST_VECTORS = 4, SET_BYTES = 4096, FMA_LATENCY = 4 };

/* The device's whole vector where the columns are many of them: its tile is loads, multiply-adds and stores only, which no compiler splits. */
uint32_t contract_lanes(const fusion_context *c, int64_t lane_extent) {
  const cost_profile *p = c->options->profile;
  const bool whole = schedule_is_explicit(c) && p->lanes >= 16 && p->caps.max_lanes >= 16 && lane_extent >= 16;
  uint32_t lanes = whole ? 16 : schedule_lanes(c);
  while (lanes > 1 && (int64_t)lanes > lane_extent) lanes /= 2;
  return lanes;
}

static double whole_tiles(int64_t extent, int64_t step) { return (double)((extent + step - 1) / step * step) / (double)extent; }

/* ---- blocks of terms: of a panel that is larger than the near cache so many at a time as stay in it, the sums of all tiles kept between ---- */

enum { SUM_BYTES = 16384, SUM_BYTES_BESIDE_PANEL = 32768 };

/* A panel that is laid out for the program, or one that is made here: in a memory of the work-item's own, if a block of it is small. */
static bool is_made_here(const contraction *t) {
  return ir_at(t->c->graph, fusion_through_views(t->c->graph, contract_operand(t, 0, t->lane_operand)))->op != IR_OP_const;
}

/* Tiles whose sums are kept between blocks; 0: none are. */
static int64_t most_kept(const contraction *t) {
  const int64_t room = is_made_here(t) ? SUM_BYTES_BESIDE_PANEL : SUM_BYTES;
  const bool fits = t->type.base == SNT_F32 && t->set.count == 1 && !t->both_lanes && !t->store && t->row_axis != CONTRACT_NONE &&
                    schedule_is_explicit(t->c);
  return fits ? room / (contract_sums(t) * t->lanes * (int64_t)ir_dtypes[t->type.base].bytes) : 0;
}

static bool takes_blocks(const contraction *t, int64_t passes) { return passes >= 2 && passes <= most_kept(t); }

/* The largest part of the outermost reduced label of which two stay in the near cache, or one; 0: none does, or the whole panel. */
static int64_t block_size(const contraction *t) {
  const double near = 0.75 * t->c->options->profile->l2_bytes, block = is_made_here(t) ? CONTRACT_NEAR_PANEL : near / 2;
  expr_pool *x = t->c->graph->pool;
  int64_t outermost, extent, inner = 1;
  if (!t->reduced_count || !expr_is_const(x, t->extent[t->reduced[0]], &outermost)) return 0;
  for (uint32_t r = 1; r < t->reduced_count; r++) {
    if (!expr_is_const(x, t->extent[t->reduced[r]], &extent)) return 0;
    inner *= extent;
  }
  const double line = (double)(inner * contract_width(t)) * ir_dtypes[t->type.base].bytes;
  if ((double)outermost * line <= near) return 0;
  int64_t size = (int64_t)(block / line); /* a constant's next one is beside it, on its way */
  if (!size && line <= near) size = 1;
  while (size && (outermost % size || (t->reduced_count == 1 && size % 4))) size--;
  return size;
}

int64_t contract_most_passes(const contraction *t) { return is_made_here(t) && block_size(t) ? most_kept(t) : 0; }

bool contract_in_operand(const contraction *t, uint32_t operand, int64_t label) {
  uint32_t rank;
  const ir_expr *labels = contract_labels(t, operand, &rank);
  return fusion_find_label(labels, rank, label) != CONTRACT_NONE;
}

bool contract_is_reduced(const contraction *t, int64_t label) {
  for (uint32_t r = 0; r < t->reduced_count; r++)
    if ((int64_t)t->reduced[r] == label) return true;
  return false;
}

bool contract_literal(const contraction *t, int32_t axis, int64_t *out) {
  *out = 1;
  return axis == CONTRACT_NONE || expr_is_const(t->c->graph->pool, t->extent[t->out[axis]], out);
}

double contract_terms(const contraction *t) {
  double terms = 1;
  for (uint32_t r = 0; r < t->reduced_count; r++) terms *= (double)schedule_hint(t->c->graph->pool, t->extent[t->reduced[r]]);
  return terms;
}

/* Elements of a line that a term meets, on average: where taps lie along the lanes, vectors of neighbouring ones are the same elements but for an end. */
static double columns_met(const contraction *t, double columns) {
  static const uint8_t keys[] = {IR_ATTR_size, IR_ATTR_stride, IR_ATTR_dilation};
  const ir_graph *g = t->c->graph;
  const uint32_t node = contract_operand(t, 0, t->lane_operand);
  uint32_t count, rank;
  int64_t is[IR_COUNT(keys)]; /* of the window, along the lanes */
  if (ir_at(g, node)->op != IR_OP_window) return columns;
  const ir_expr *labels = contract_labels(t, t->lane_operand, &rank);
  const int32_t at = fusion_find_label(labels, rank, t->out[t->lane_axis]) - (int32_t)ir_attr_int(g, node, IR_ATTR_axis, 0);
  for (uint32_t i = 0; i < IR_COUNT(keys); i++) {
    const ir_expr *list = ir_attr_ints(g, node, (ir_attr_key)keys[i], &count);
    if (!list || at < 0 || at >= (int32_t)count || !expr_is_const(g->pool, list[at], &is[i])) return columns;
  }
  const double taps = (double)is[0], line = (columns - 1) * (double)is[1] + (taps - 1) * (double)is[2] + 1;
  return line < columns * taps ? line / taps : columns;
}

/* Cycles that a term's vectors take to come from the cache that a panel of all terms stays in; rows find theirs in the nearest. Three products
   of 4 x 2 vectors of 512 bits wait for it (8 x 1 is 1.2 times as fast), one of 6 x 4 does not. */
static double panel_cycles(const contraction *t, double columns, int64_t passes) {
  const cost_profile *p = t->c->options->profile;
  const double terms = contract_terms(t), bytes = columns_met(t, columns) * t->operands[t->lane_operand] * ir_dtypes[t->type.base].bytes;
  if (terms * bytes <= 0.75 * p->l1_bytes) return 0;
  const bool near = p->l2_gbs > 0 && (terms * bytes <= 0.75 * p->l2_bytes || (takes_blocks(t, passes) && block_size(t)));
  return bytes * p->units * p->ghz / (near ? p->l2_gbs : p->cache_gbs);
}

/* Tiles that meet one panel, if one work-item has all rows. */
static int64_t tile_passes(const contraction *t, int64_t row_extent) {
  int64_t outer;
  if (!contract_literal(t, t->outer_axis, &outer)) outer = 1;
  return (row_extent + t->rows - 1) / t->rows * outer;
}

/* Turns that a port takes for one of the tile's vectors. */
static double parts(const contraction *t) {
  const double port = t->c->options->profile->port_lanes;
  return port > 0 && t->lanes > port ? t->lanes / port : 1;
}

/* Of one row: every panel is met once and comes from where it lies, so what the width decides is how many sums are on their way at once, and how many
   tiles each unit has. */
static double line_cycles(const contraction *t, int64_t lane_extent) {
  const cost_profile *p = t->c->options->profile;
  const int64_t width = (int64_t)contract_width(t);
  const double tiles = (double)tile_passes(t, 1) * (double)((lane_extent + width - 1) / width);
  const double loads = t->vectors * t->operands[t->lane_operand] * p->vector_load_cycles * parts(t) +
                       t->operands[1 - t->lane_operand] * p->scalar_load_cycles;
  const double cycles = fmax(contract_sums(t) * parts(t) / p->fma_per_cycle, loads);
  return (cycles > FMA_LATENCY ? cycles : FMA_LATENCY) * ceil(tiles / (p->units > 1 ? p->units : 1));
}

/* Cycles a useful multiply-add of one term in the tile at hand: what the units take, what the loads take, what the chain of sums takes, with the
   overlap of tails and vectors. */
static double tile_cycles(const contraction *t, int64_t row_extent, int64_t lane_extent) {
  if (row_extent == 1 && !t->both_lanes) return line_cycles(t, lane_extent);
  const cost_profile *p = t->c->options->profile;
  const double cells = (double)contract_cells(t), vectors = t->vectors, mixed = contract_pairs_rows(t) ? t->rows / 2 + 1 : 0;
  const double load = p->vector_load_cycles * parts(t);
  const double loads = t->both_lanes ? vectors * (t->rows + 1) * load
                                     : vectors * t->operands[t->lane_operand] * load +
                                           t->rows * t->operands[1 - t->lane_operand] * p->scalar_load_cycles;
  double cycles = contract_sums(t) * parts(t) / p->fma_per_cycle;
  if (loads > cycles) cycles = loads;
  if (FMA_LATENCY > cycles) cycles = FMA_LATENCY;
  const double width = (double)contract_width(t), panel = panel_cycles(t, width, tile_passes(t, row_extent));
  if (panel > cycles) cycles = panel;
  cycles += 0.25 * (loads + mixed); /* they share issue slots with the multiply-adds */
  return cycles / cells * whole_tiles(row_extent, t->rows) * whole_tiles(lane_extent, (int64_t)width) * vectors * t->lanes / width;
}

static bool rows_meet(contraction *t) {
  if (t->row_axis == CONTRACT_NONE) return false;
  const int64_t stride = contract_stride(t, 0, 1 - t->lane_operand, (uint32_t)t->out[t->row_axis]);
  return stride > 0 && stride * 4 % SET_BYTES == 0;
}

/* Columns that are no whole vectors: so many less a tile that its tiles fill them and its last vector starts at a quarter of one; 24 columns are two
   vectors of 16 that share 8, in one pass over the rows. */
static uint32_t last_overlap(const contraction *t, int64_t lane_extent, uint32_t vectors) {
  if (vectors < 2 || t->lanes < 4 || lane_extent % t->lanes == 0) return 0;
  for (uint32_t overlap = t->lanes / 4; overlap < t->lanes; overlap += t->lanes / 4)
    if (lane_extent % ((int64_t)vectors * t->lanes - overlap) == 0) return overlap;
  return 0;
}

/* Accumulators + vectors + one broadcast <= registers. A quarter of the registers is left to loads that run ahead: measured on AVX2 and AVX-512,
   tiles with more accumulators lose a tenth and more. Where a port takes a vector in parts, one that is as wide as a port fills columns that are no
   whole vectors without pairs of rows (12544 x 96 by 24: 1.2 times as fast on Zen 4); where they are whole, twice the instructions lose 3 to 8 %. */
static void pick_explicit(contraction *t, int64_t row_extent, int64_t lane_extent) {
  const uint32_t registers = (uint32_t)t->c->options->profile->registers;
  const uint32_t most = rows_meet(t) ? FEW_ROWS / t->operands[1 - t->lane_operand] : MOST_ROWS;
  const uint32_t widest = row_extent == 1 && !t->both_lanes ? CONTRACT_VECTORS : MOST_VECTORS;
  const uint32_t least = lane_extent % t->lanes ? t->lanes / (uint32_t)parts(t) : t->lanes;
  struct {
    double cycles;
    uint32_t lanes, rows, vectors, overlap;
  } best = {INFINITY, t->lanes, 1, 1, 0};
  for (; t->lanes >= least; t->lanes /= 2)
    for (t->vectors = 1; t->vectors <= widest; t->vectors++)
      for (t->rows = 1; t->rows <= most && (int64_t)t->rows <= row_extent; t->rows++) {
        t->overlap = last_overlap(t, lane_extent, t->vectors);
        const uint32_t sums = contract_sums(t), spare = t->both_lanes ? t->rows + 1 : t->vectors * t->operands[t->lane_operand] + 1;
        if ((sums + spare > registers || 4 * sums > 3 * registers) && sums > 1) continue;
        if (contract_width(t) > lane_extent) continue;
        const double cycles = tile_cycles(t, row_extent, lane_extent);
        if (cycles >= best.cycles) continue;
        best.cycles = cycles, best.lanes = t->lanes, best.rows = t->rows, best.vectors = t->vectors, best.overlap = t->overlap;
      }
  t->lanes = best.lanes;
  t->rows = best.rows;
  t->vectors = best.vectors;
  t->overlap = best.overlap;
}

/* Lanes that read texels: a trip of four terms is a call for each vector and term, one for the rows of every lane (ir/kir_spread.c), and so many
   products. The cheapest number of rows, tails overlapped. Cycles measured on lavapipe. */
static void pick_texel_rows(contraction *t, int64_t row_extent) {
  enum { CALL = 25, TERM = 20, VECTORS = 32 }; /* of a call; of four terms of a vector of four; that code may have */
  double best = INFINITY;
  const double lanes = t->c->options->profile->lanes;
  const uint32_t vectors = t->vectors * t->set.count;
  int64_t known;
  const uint32_t limit = contract_literal(t, t->row_axis, &known) ? MOST_TEXEL_ROWS
                                                                  : FEW_ROWS; /* with few rows, code for one more number */
  uint32_t most = VECTORS / vectors, picked = 1;
  if (most > limit) most = limit;
  for (uint32_t rows = 1; rows <= most && rows <= row_extent; rows++) {
    const double calls = 4.0 * vectors + t->set.count * ceil(rows / (lanes > 1 ? lanes : 1));
    const double cycles = (CALL * calls + TERM * vectors * rows) / rows * whole_tiles(row_extent, rows);
    if (cycles < best) best = cycles, picked = rows;
  }
  t->rows = picked;
}

/* Rows of which, with what is computed for each element behind the sums, no more is written out than the device's compiler takes. */
static uint32_t rows_with_functions(const contraction *t) {
  const uint32_t most = t->c->options->profile->dear_elements, row = t->vectors * t->lanes;
  bool dear = false;
  for (uint32_t i = 0; i < t->group->count; i++) dear |= (ir_ops[ir_at(t->c->graph, t->group->nodes[i])->op].flags & IR_EXPENSIVE) != 0;
  return !dear || !most ? MOST_ROWS : most > row ? most / row : 1;
}

/* Lanes form vectors of their own: two of four elements an item, as many rows as registers allow. Where a product is a hundred operations (pass small), one. */
static void pick_lanes(contraction *t, int64_t row_extent, int64_t lane_extent) {
  enum { REGISTERS = 24, ROWS = 6, ROWS_AT_MOST = 8 };
  const bool one = t->c->options->profile->caps.flushes;
  t->vectors = one ? 1 : 2, t->rows = 1;
  if (one) return;
  while (t->vectors > 1 && (int64_t)t->vectors * t->lanes > lane_extent) t->vectors--;
  if (t->c->options->profile->reads == COST_READS_TEXEL) {
    pick_texel_rows(t, row_extent);
    return;
  }
  t->rows = ROWS < row_extent ? ROWS : (uint32_t)row_extent;
  if (t->rows < ROWS) return;
  t->rows = (REGISTERS - t->vectors - 1) / t->vectors; /* narrow results leave room for more rows */
  if (t->rows > ROWS_AT_MOST) t->rows = ROWS_AT_MOST;
  if (t->rows > rows_with_functions(t)) t->rows = rows_with_functions(t);
  if (t->rows > row_extent) t->rows = (uint32_t)row_extent;
}

/* The tile never exceeds extents that are known; those that are not have steps with other tiles, where vectors are explicit (schedule_contract.c). */
enum { UNKNOWN_IS_MANY = 1024 };
bool contract_pick_tile(contraction *t) {
  int64_t row_extent;
  if (!contract_literal(t, t->row_axis, &row_extent)) row_extent = UNKNOWN_IS_MANY;
  return contract_pick_tile_of(t, row_extent);
}

static void count_operands(contraction *t) {
  for (uint32_t o = 0; o < 2; o++) {
    t->operands[o] = 0;
    for (uint32_t s = 0; s < t->set.count; s++) {
      uint32_t same = 0;
      while (same < s && contract_operand(t, same, o) != contract_operand(t, s, o)) same++;
      t->operands[o] += same == s;
    }
  }
}

bool contract_pick_tile_of(contraction *t, int64_t row_extent) {
  int64_t lane_extent;
  count_operands(t);
  if (!contract_literal(t, t->lane_axis, &lane_extent)) {
    if (!schedule_is_explicit(t->c)) return false;
    lane_extent = UNKNOWN_IS_MANY;
  }
  t->lanes = contract_lanes(t->c, lane_extent);
  t->overlap = 0;
  if (schedule_is_explicit(t->c)) pick_explicit(t, row_extent, lane_extent);
  else pick_lanes(t, row_extent, lane_extent);
  return contract_cells(t) <= CONTRACT_CELLS && t->lanes > 1;
}

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
  contract_add_term(t, sum, halves(t, kir_splat(k, above, t->lanes), 0, kir_splat(k, below, t->lanes), 0), vector);
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
  uint32_t vector[CONTRACT_SET_MAX][CONTRACT_VECTORS], scalar[CONTRACT_SET_MAX][MOST_TEXEL_ROWS];
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

/* Several terms are read, then sum by sum: where a read is a call that keeps no register, a sum then comes and goes once for all of them. */
static void multiply_terms(contraction *t, uint32_t label, ir_expr first, uint32_t count, ir_expr row, ir_expr column, uint32_t *acc) {
  tile_terms terms[STEP];
  for (uint32_t n = 0; n < count; n++) {
    t->at[label] = expr_add(t->e->x, first, n);
    read_terms(t, row, column, &terms[n]);
  }
  emit_scalar_lanes(t->e);
  for (uint32_t s = 0; s < t->set.count; s++)
    for (uint32_t j = 0; j < t->vectors; j++)
      for (uint32_t i = 0; i < t->rows; i++)
        for (uint32_t n = 0; n < count; n++)
          contract_add_term(t, &acc[(s * t->rows + i) * t->vectors + j], terms[n].scalar[s][i], terms[n].vector[s][j]);
}

static void multiply_trip(contraction *t, uint32_t label, ir_expr row, ir_expr column, uint32_t *acc) {
  const ir_expr k = t->at[label];
  const uint32_t wanted = t->c->options->profile->trip_terms, ahead = wanted && wanted < STEP ? wanted : STEP;
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

static bool is_short(const contraction *t, uint32_t level) {
  int64_t extent, unpacked = unpacked_by_term(t);
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
  uint32_t carried[CONTRACT_CELLS];
  emit_loop_info info = *range;
  info.name = "k", info.carry_count = cells, info.initial = acc, info.carried = carried;
  const ir_expr k = emit_loop(e, &info);
  t->at[label] = k;
  if (level + 1 == t->reduced_count) {
    contract_fetch_ahead(t, step);
    contract_fetch_rows(t, row, step);
  }
  const bool together = step > 1 && !schedule_is_explicit(t->c) && !t->both_lanes && t->rows <= MOST_TEXEL_ROWS;
  if (together) multiply_trip(t, label, row, column, carried);
  for (uint32_t s = 0; s < step && !together; s++) {
    t->at[label] = expr_add(e->x, k, s);
    reduce_level(t, level + 1, row, column, carried);
  }
  emit_loop_end(e, k, cells, carried, acc);
}

/* A long sum is one of sums of so many terms, whose roundings are fewer by the root of their number. Not where terms are taken one by one: the loop over a
   part, whose end is then known to no compiler, takes a twentieth more. */
enum { PART_TERMS = 256 };

static bool sums_parts(const contraction *t, int64_t extent) {
  return extent >= 2 * PART_TERMS && extent % STEP == 0 && t->type.base == SNT_F32 && schedule_is_explicit(t->c) &&
         !fusion_keeps_order(t->c->options);
}

static void reduce_parts(contraction *t, uint32_t level, int64_t extent, uint32_t step, ir_expr row, ir_expr column, uint32_t *acc) {
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
  reduce_range(t, level, &(emit_loop_info){.lo = part, .hi = end, .step = step, .whole = step > 1}, row, column, sums);
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
  const uint32_t step = last && literal && extent % STEP == 0 ? STEP : 1;
  emit_loop_info range = {.lo = 0, .hi = t->extent[label], .step = step, .whole = step > 1 || blocked};
  if (blocked) range.lo = t->blocks.lo, range.hi = expr_add(e->x, t->blocks.lo, t->blocks.size);
  if (last && literal && !blocked && sums_parts(t, extent)) reduce_parts(t, level, extent, step, row, column, acc);
  else reduce_range(t, level, &range, row, column, acc);
}

/* Cell (i, j) of every contraction is remembered, and every result stored at its coordinates. */
void contract_store_cell(contraction *t, const uint32_t *acc) {
  emit *e = t->e;
  map_access at = {.rank = t->out_rank};
  for (uint32_t d = 0; d < t->out_rank; d++) at.at[d] = t->at[t->out[d]];
  for (uint32_t s = 0; s < t->set.count; s++)
    emit_remember(e, t->set.node[s], &at, emit_round_node(e, ir_at(e->g, t->set.node[s]), acc[s * t->rows * t->vectors]));
  for (uint32_t o = 0; o < t->group->output_count; o++) {
    map_access own = at;
    if (!contract_set_forward(t->c, t->group, &t->set, t->group->outputs[o], &own)) {
      e->failed = true;
      return;
    }
    const uint32_t kept = emit_conditions(e, own.condition_count, own.conditions);
    own.condition_count = 0;
    if (kept) emit_if(e, kept);
    emit_store_node(e, t->group->outputs[o], &own, emit_value(e, t->group->outputs[o], &own));
    if (kept) emit_if_end(e);
  }
}

/* ---- blocks of terms ---- */

static ir_expr sum_at(contraction *t, uint32_t cell) {
  expr_pool *x = t->e->x;
  const ir_expr first = expr_mul(x, expr_add(x, expr_mul(x, t->ahead.pass, contract_sums(t)), cell), t->lanes);
  emit_use_lanes(t->e, t->lane_var[0], t->lanes);
  return expr_add(x, first, t->lane_at[0]);
}

static void keep_sums(contraction *t, const uint32_t *acc) {
  for (uint32_t i = 0; i < contract_sums(t); i++) emit_store(t->e, t->blocks.sums, t->type.base, sum_at(t, i), acc[i]);
  emit_scalar_lanes(t->e);
}

static void take_sums(contraction *t, uint32_t *acc) {
  for (uint32_t i = 0; i < contract_sums(t); i++) acc[i] = emit_load(t->e, t->blocks.sums, t->type.base, sum_at(t, i), 0, NULL);
  emit_scalar_lanes(t->e);
}

bool contract_open_blocks(contraction *t, int64_t passes) {
  emit *e = t->e;
  const int64_t elements = passes * contract_sums(t) * t->lanes;
  if (t->lane_form[0] == CONTRACT_IN_PLACE || !takes_blocks(t, passes)) return false;
  t->blocks.size = block_size(t);
  if (!t->blocks.size) return false;
  kir_memory sums = {.name = "sums", .space = KIR_PRIVATE, .access = KIR_READ | KIR_WRITE, .rank = 1, .type = kir_t(t->type.base, 1)};
  sums.flags = KIR_MEM_ROWS;
  sums.align = 64;
  sums.dims[0] = (uint64_t)elements;
  t->blocks.sums = kir_memory_add(e->k, &sums);
  const ir_expr v = emit_loop(e, &(emit_loop_info){.name = "z", .lo = 0, .hi = elements, .step = t->lanes, .whole = true});
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

static void store_tile(contraction *t, ir_expr row, ir_expr column, const uint32_t *sums) {
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
