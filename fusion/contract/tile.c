/* The shape of a contraction's register tile, from the profile. One operand is read in vectors along the lane label, the other one element at a time
   along the row label; a work-item holds rows x vectors accumulators, for each contraction of the set (contract/sums.c).
   Tails are overlapped by the caller, so a tile is always whole. */
#include "fusion/contract_private.h"

uint32_t contract_operand(const contraction *t, uint32_t member, uint32_t operand) {
  return ir_arg(t->c->graph, t->set.node[member], operand);
}

map_access contract_operand_at(const contraction *t, uint32_t operand) {
  uint32_t rank;
  const ir_expr *labels = contract_labels(t, operand, &rank);
  map_access a = {.rank = rank};
  for (uint32_t i = 0; i < rank; i++) a.at[i] = t->at[labels[i]];
  return a;
}

typedef struct stride_probe {
  const fusion_context *c;
  uint32_t var;
  int64_t worst;
} stride_probe;

static void probe_load(void *user, const fusion_load *load) {
  stride_probe *p = user;
  expr_pool *x = p->c->graph->pool;
  int64_t coef;
  ir_expr rest;
  const ir_expr offset = fusion_stored_offset(p->c, load->node, load->access);
  if (!expr_split_affine(x, offset, p->var, &coef, &rest) || coef < 0) coef = INT32_MAX;
  if (coef > p->worst) p->worst = coef;
}

int64_t contract_stride(contraction *t, uint32_t member, uint32_t operand, uint32_t label) {
  expr_pool *x = t->c->graph->pool;
  ir_expr v = 0;
  for (uint32_t i = 0; i < CONTRACT_LABELS; i++) {
    if (t->extent[i] == 0) continue;
    const ir_expr made = expr_var_add(x, "i", 0, t->extent[i], 1);
    t->at[i] = made;
    if (i == label) v = made;
  }
  if (v >= 0) return 0;
  stride_probe p = {t->c, emit_var_number(x, v), 0};
  const map_access a = contract_operand_at(t, operand);
  return fusion_walk_loads(t->c, t->group, contract_operand(t, member, operand), &a, probe_load, &p) ? p.worst : INT32_MAX;
}

/* More rows than a cache set has ways meet in one when they lie a power of two apart. */
enum { FEW_ROWS = 8, MOST_ROWS = 14, MOST_VECTORS = 4, SET_BYTES = 4096, FMA_LATENCY = 4 };

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

int64_t contract_block_size(const contraction *t, int64_t passes) { return takes_blocks(t, passes) ? block_size(t) : 0; }

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

/* Multiply-adds that a product takes as long as: words of bytes are taken apart where there is no instruction for them. */
static double steps(const contraction *t) { return t->packed ? fmax(1, t->c->options->profile->dot4_steps) : 1; }

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
  double cycles = contract_sums(t) * parts(t) * steps(t) / p->fma_per_cycle;
  if (loads > cycles) cycles = loads;
  if (FMA_LATENCY > cycles) cycles = FMA_LATENCY;
  const double width = (double)contract_width(t), panel = panel_cycles(t, width, tile_passes(t, row_extent));
  if (panel > cycles) cycles = panel;
  cycles += 0.25 * (loads + mixed); /* they share issue slots with the multiply-adds */
  return cycles / cells * whole_tiles(row_extent, t->rows) * whole_tiles(lane_extent, (int64_t)width) * vectors / width;
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
   whole vectors without pairs of rows (12544 x 96 by 24: 1.2 times as fast on Zen 4); where it fills them no better, twice the instructions lose
   3 to 8 %. */
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
        const uint32_t sums = contract_sums(t), one = t->both_lanes ? t->rows + 1 : t->vectors * t->operands[t->lane_operand] + 1,
                       spare = steps(t) > 1 ? 2 * one + 1 : one; /* halves of both operands, and their product */
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

/* Lanes that read texels: a trip of four terms is a call for each vector and term, one for the rows of every lane (ir/kir/spread.c), and so many
   products. The cheapest number of rows, tails overlapped. Cycles measured on lavapipe. */
static void pick_texel_rows(contraction *t, int64_t row_extent) {
  enum { CALL = 25, TERM = 20, VECTORS = 32 }; /* of a call; of four terms of a vector of four; that code may have */
  double best = INFINITY;
  const double lanes = t->c->options->profile->lanes;
  const uint32_t vectors = t->vectors * t->set.count;
  int64_t known;
  const uint32_t limit = contract_literal(t, t->row_axis, &known) ? CONTRACT_TEXEL_ROWS
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
  if (t->rows > row_extent) t->rows = (uint32_t)row_extent;
}

/* The tile never exceeds extents that are known; those that are not have steps with other tiles, where vectors are explicit (schedule/contract.c). */
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
