/* Contractions where work-items are lanes, whatever the extents are. An item holds a tile of rows x two vectors of four neighbouring
   columns; the items of a group, one for each lane, take neighbouring tiles of the columns and of all axes but the rows, flattened, so that
   the other operand is read at one address by all of them. Padded operands are read in place: what lies outside is selected away, whatever
   texel is read there; a buffer too large for a view of texels is read as storage, below the condition. Where all reads are of storage, a
   tile has one vector, so that those of neighbouring items lie side by side.
   In: a contraction whose columns are a literal, at least a vector of them, and with rows enough for its tile. Tails overlap the last whole
   tile, or reach past the end. */
#include "fusion/contract_private.h"

enum { VECTOR = 4 };

static bool reads_texels(const contraction *t) { return t->c->options->profile->reads == COST_READS_TEXEL; }

static bool is_suitable(const contraction *t, int64_t *columns) {
  return t->lanes == VECTOR && contract_literal(t, t->lane_axis, columns) && *columns >= VECTOR;
}

static uint32_t items_of(const contraction *t) {
  const cost_profile *p = t->c->options->profile;
  const double most = reads_texels(t) ? p->lanes : fmin(p->group_items, CONTRACT_ITEMS);
  return most > 1 ? (uint32_t)most : 1;
}

static ir_expr tiles_of(expr_pool *x, ir_expr extent, int64_t step) { return expr_ceil_div(x, extent, expr_int(x, step)); }

/* Where a tile starts: the last one is moved back, or reaches past the end. Where all of them start at whole vectors they are known to. */
static ir_expr start_of(emit *e, const char *name, ir_expr tile, ir_expr extent, int64_t step, bool past) {
  expr_pool *x = e->x;
  const ir_expr at = expr_mul(x, tile, expr_int(x, step));
  int64_t literal;
  const bool known = expr_is_const(x, extent, &literal);
  if (past || (known && literal % step == 0)) return at;
  const int64_t whole = known && literal % VECTOR == 0 && step % VECTOR == 0 ? VECTOR : 1;
  const ir_expr last = whole > 1 ? expr_int(x, (literal - step) / whole) : expr_sub(x, extent, expr_int(x, step));
  const ir_expr moved = expr_min(x, expr_mul(x, tile, expr_int(x, step / whole)), last);
  e->same = true; /* each element is the same sequence of operations wherever its tile begins */
  return expr_mul(x, emit_var_for(e, name, emit_expr(e, moved), 0, expr_add(x, last, 1)), expr_int(x, whole));
}

/* Axes that are neither rows nor columns, with the tiles of columns innermost, as one number. */
static ir_expr place_lanes(contraction *t, ir_expr number, ir_expr columns, int64_t width) {
  emit *e = t->e;
  expr_pool *x = e->x;
  const ir_expr tiles = tiles_of(x, columns, width);
  ir_expr tile = expr_mod(x, number, tiles);
  if (t->past_columns && tile != number && tiles != 1)
    tile = emit_var_for(e, "t", emit_expr(e, tile), 0, tiles); /* a reshape puts no quotients and rests of a remainder together again */
  const ir_expr column = start_of(e, "n", tile, columns, width, t->past_columns);
  ir_expr rest = expr_div(x, number, tiles);
  for (int32_t i = (int32_t)t->out_rank; i-- > 0;) {
    if (i == t->lane_axis || i == t->row_axis) continue;
    const ir_expr extent = t->extent[t->out[i]];
    t->at[t->out[i]] = extent == 1 ? 0 : expr_mod(x, rest, extent);
    rest = expr_div(x, rest, extent);
  }
  return column;
}

static void vectors_side_by_side(contraction *t) {
  for (uint32_t j = 0; j < t->vectors; j++) {
    t->lane_at[j] = emit_lanes(t->e, (ir_expr)j * VECTOR, VECTOR);
    t->lane_var[j] = t->e->lane_var;
  }
  emit_scalar_lanes(t->e);
}

/* The constants in the order of the loops: the columns of all items of a group side by side where they are one run, else those of each item. */
static void open_constants(contraction *t, ir_expr columns, ir_expr part, ir_expr number, ir_expr column, ir_expr row_tile, ir_expr row) {
  expr_pool *x = t->e->x;
  const uint32_t width = VECTOR * t->vectors, run = width * items_of(t);
  const ir_expr tiles = tiles_of(x, columns, width);
  int64_t literal;
  (void)expr_is_const(x, columns, &literal);
  if (literal % run == 0) {
    const ir_expr at = expr_mod(x, part, expr_int(x, literal / run));
    if (contract_open_packed_columns(t, run, at, expr_mul(x, at, expr_int(x, run)))) return;
  } else if (contract_open_packed_columns(t, width, expr_mod(x, number, tiles), column)) return;
  (void)contract_open_packed_rows(t, row_tile, row);
}

/* Every axis at a coordinate of its own. */
static emit *begin(contraction *t) {
  expr_pool *x = t->c->graph->pool;
  for (uint32_t i = 0; i < CONTRACT_LABELS; i++)
    if (t->extent[i]) t->at[i] = t->extent[i] == 1 ? 0 : expr_var_add(x, "i", 0, t->extent[i], 1);
  t->e = emit_begin(t->c, t->group, "contract");
  if (t->e) t->e->near = true;
  return t->e;
}

/* May tiles reach past the end of an axis? Where rows have odd lengths, texels are known to begin where tiles do, unless the last one is moved back; so it is
   where operands are packed, whose tiles begin on texels anyhow. What is read past the end does no harm. */
static bool goes_past(contraction *t, uint32_t operand, int32_t axis) {
  const uint32_t base = fusion_through_views(t->c->graph, contract_operand(t, 0, operand));
  return axis != CONTRACT_NONE && ir_at(t->c->graph, base)->op != IR_OP_const &&
         contract_stride(t, 0, operand, (uint32_t)t->out[axis]) % VECTOR && emit_reads_only_texels(t->e);
}

/* Where an element reads the product at several places (itself and itself shifted), a place within the tile is its sum, another is computed for itself,
   perhaps with other roundings: which is which depends on where the tile begins. */
static bool depends_on_tile(const contraction *t) { return fusion_reads_apart(t->c, t->group, t->group->hero); }

bool contract_fits_flat(contraction *t) {
  int64_t columns;
  return is_suitable(t, &columns) && (columns % VECTOR == 0 || !depends_on_tile(t));
}

/* Sums that leave a full number of threads their registers. */
void contract_narrow_tile(contraction *t) {
  enum { ROWS = 8, FEW_ROWS = 6, REGISTERS = 48 };
  int64_t rows;
  const int64_t most = t->c->options->profile->registers < REGISTERS ? FEW_ROWS : ROWS;
  if (reads_texels(t) || t->c->options->profile->caps.flushes) return; /* where a product is a hundred operations, one row is picked */
  if (!contract_literal(t, t->row_axis, &rows)) rows = most;
  t->vectors = 1, t->rows = (uint32_t)(rows < most ? rows : most);
}

ir_expr contract_item(emit *e, ir_expr group, uint32_t items, ir_expr tiles) {
  expr_pool *x = e->x;
  const ir_expr tile = expr_add(x, expr_mul(x, group, (ir_expr)items), emit_item(e, 0, items));
  e->same = !expr_proves_lt(x, tile, tiles);
  if (!e->same) return tile;
  return emit_var_for(e, "tile", emit_expr(e, expr_min(x, tile, expr_sub(x, tiles, 1))), 0, tiles);
}

snt_result contract_build_flat(contraction *t, const contract_guard *guard) {
  expr_pool *x = t->c->graph->pool;
  int64_t columns = 0;
  if (!begin(t) || !is_suitable(t, &columns)) return ir_no_memory(t->c->diag, "schedule");
  if (depends_on_tile(t)) t->rows = t->vectors = 1; /* no two tiles share an element */
  const int64_t width = (int64_t)VECTOR * t->vectors;
  t->past_rows = goes_past(t, 1 - t->lane_operand, t->row_axis);
  t->past_columns = columns % VECTOR && goes_past(t, t->lane_operand, t->lane_axis);
  const ir_expr rows = t->row_axis == CONTRACT_NONE ? 1 : t->extent[t->out[t->row_axis]];
  ir_expr tiles = tiles_of(x, expr_int(x, columns), width);
  for (uint32_t i = 0; i < t->out_rank; i++)
    if ((int32_t)i != t->lane_axis && (int32_t)i != t->row_axis) tiles = expr_mul(x, tiles, t->extent[t->out[i]]);
  const uint32_t items = items_of(t);
  /* groups that follow each other share what their lanes read: it is the larger part */
  const ir_expr row_tiles = tiles_of(x, rows, t->rows), parts = expr_ceil_div(x, tiles, (ir_expr)items);
  const ir_expr groups = expr_mul(x, parts, row_tiles), g = emit_group(t->e, groups);
  ir_expr part = expr_div(x, g, row_tiles);
  if (!expr_proves_lt(x, part, parts)) part = emit_var_for(t->e, "part", emit_expr(t->e, part), 0, parts); /* rows of an open extent */
  const ir_expr number = contract_item(t->e, part, items, tiles);
  const ir_expr column = place_lanes(t, number, expr_int(x, columns), width), row_tile = expr_mod(x, g, row_tiles);
  const ir_expr row = start_of(t->e, "m", row_tile, rows, t->rows, t->past_rows);
  vectors_side_by_side(t);
  open_constants(t, expr_int(x, columns), part, number, column, row_tile, row);
  contract_emit_tile(t, row, column);
  return emit_end(t->e, groups, guard->choice, guard->count, guard->conditions);
}
