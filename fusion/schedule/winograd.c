/* The transforms of a Winograd convolution: a tile of vectors is read once, multiplied with a small matrix from both sides line by line, and stored.
   Explicit vectors lie along channels; a work-item takes a row of tiles; padding is staged for it, so that nothing is tested, where it is known how long rows
   are. Where work-items are lanes each has a tile of a channel, or where reads are of texels a vector of tiles of one row, whose positions are read, and
   stored, in whole vectors and dealt out to the tiles in registers. Where local memory is near, items have of each other what their tiles share: those of whole
   rows of tiles, each of which reads its own columns as vectors, or, where rows of the operand or the result are no whole vectors, those of whole planes,
   which go from memory to local memory, or back, neighbours beside each other. */
#include "fusion/contract_private.h"
#include "fusion/winograd.h"

/* What is in local memory: nothing; the first and last column that each item reads for itself; planes of whole tiles, an item having all of a tile. */
typedef enum { SHARE_NOTHING, SHARE_ROWS, SHARE_PLANES } transform_share;

typedef struct transform {
  contraction t;
  const winograd_form *form;
  bool output, near;            /* near: items share local memory */
  uint32_t rows;                /* results of a line */
  uint32_t side;                /* tiles of a row beside each other, of an item that is a lane; else 0 */
  ir_expr first, lane;          /* of these: the first, and the others' distance */
  uint32_t point[2], result[2]; /* labels: of the tile that is read, of what is made */
  transform_share shares;
  uint32_t cells, axis[2]; /* local memory; labels of a tile's row and column */
  ir_expr tiles[2];        /* how many; literals where something is shared */
  ir_expr items, item;     /* of a group: whole rows of tiles, or whole planes; which of them */
  ir_expr step[2]; /* from one row, and column, of a tile to the next in the memory: all tiles' same elements lie beside each other */
} transform;

static int32_t coefficient(const transform *w, uint32_t row, uint32_t column) {
  return (w->output ? w->form->output : w->form->input)[row][column];
}

/* ---- one line ---- */

typedef struct line_terms { /* the elements of a line, or sums and differences of two of them; a coefficient for each result */
  uint32_t value[WINOGRAD_TILE];
  int32_t by[WINOGRAD_TILE][WINOGRAD_TILE];
} line_terms;

/* Points but for the first and the last are a number and then the same below 0: rows of the first matrix, columns of the last, that are equal but for signs. */
static bool is_positive(const transform *w, uint32_t point) { return point % 2 && point + 2 < w->form->tile; }

/* Columns of such points: their sum and their difference serve every result. */
static void take_terms(const transform *w, const uint32_t *in, line_terms *out) {
  kir_kernel *k = w->t.e->k;
  *out = (line_terms){0};
  for (uint32_t r = 0; r < w->form->tile; r++) {
    const bool pair = w->output && is_positive(w, r);
    out->value[r] = pair ? kir_2(k, KIR_add, in[r], in[r + 1]) : in[r];
    if (pair) out->value[r + 1] = kir_2(k, KIR_sub, in[r], in[r + 1]);
    for (uint32_t i = 0; i < w->rows; i++) {
      const int32_t c = coefficient(w, i, r);
      out->by[i][r + (pair && coefficient(w, i, r + 1) != c)] = c;
    }
    r += pair;
  }
}

/* The terms of a result that `chosen` marks, added up; 0: none. */
static uint32_t add_up(const transform *w, const line_terms *terms, uint32_t row, uint32_t chosen) {
  kir_kernel *k = w->t.e->k;
  uint32_t sum = 0, first = 0;
  for (uint32_t i = w->form->tile; i-- > 0;)
    if (chosen >> i & 1 && terms->by[row][i] == 1) first = i, sum = terms->value[i];
  for (uint32_t i = 0; i < w->form->tile; i++) {
    const int32_t by = terms->by[row][i];
    if (!(chosen >> i & 1) || by == 0 || (sum && i == first && by == 1)) continue;
    if (sum && by * by == 1) {
      sum = kir_2(k, by > 0 ? KIR_add : KIR_sub, sum, terms->value[i]);
      continue;
    }
    const uint32_t c = kir_const_like(k, terms->value[i], by);
    sum = sum ? kir_3(k, KIR_fma, terms->value[i], c, sum) : kir_2(k, KIR_mul, terms->value[i], c);
  }
  return sum;
}

/* Rows of such points: even terms are alike, odd ones have the other sign. */
static void transform_line(const transform *w, const uint32_t *in, uint32_t *out) {
  static const uint32_t EVEN = 0x55555555;
  kir_kernel *k = w->t.e->k;
  line_terms terms;
  take_terms(w, in, &terms);
  for (uint32_t i = 0; i < w->rows; i++) {
    if (w->output || !is_positive(w, i)) {
      out[i] = add_up(w, &terms, i, UINT32_MAX);
      continue;
    }
    const uint32_t e = add_up(w, &terms, i, EVEN), o = add_up(w, &terms, i, ~EVEN);
    out[i] = kir_2(k, KIR_add, e, o);
    out[++i] = kir_2(k, KIR_sub, e, o);
  }
}

/* ---- one tile of vectors ---- */

static uint32_t in_lane(emit *e, uint32_t value, uint32_t lane) {
  return emit_value_type(e, value).lanes == 1 ? value : kir_lane(e->k, value, lane);
}

/* An element of the operand, or along lanes a vector of them. */
static uint32_t read_at(transform *w, ir_expr r, ir_expr s) {
  contraction *t = &w->t;
  t->at[w->point[0]] = r, t->at[w->point[1]] = s;
  const map_access at = contract_operand_at(t, 0);
  return emit_value(t->e, contract_operand(t, 0, 0), &at);
}

/* An element of the operand, for each of the tiles side by side. */
static uint32_t read_element(transform *w, uint32_t r, uint32_t s) {
  emit *e = w->t.e;
  uint32_t parts[CONTRACT_VECTORS];
  if (w->side <= 1 || w->output) return read_at(w, r, s);
  for (uint32_t i = 0; i < w->side; i++) {
    const uint32_t place = i * w->form->results + s, value = read_at(w, r, expr_add(e->x, w->lane, place / w->side * w->side));
    if (!value) return 0;
    parts[i] = in_lane(e, value, place % w->side);
  }
  return kir_vector(e->k, w->t.type.base, w->side, parts);
}

/* ---- what items have of each other ---- */

/* Where element (i, j) of the tile's own m x m lies. */
static uint32_t cell(const transform *w, ir_expr tile, ir_expr i, ir_expr j) {
  expr_pool *x = w->t.e->x;
  return emit_expr(w->t.e, expr_add(x, tile, expr_add(x, expr_mul(x, i, w->step[0]), expr_mul(x, j, w->step[1]))));
}

static void store_cell(const transform *w, uint32_t at, uint32_t value) {
  if (value) kir_store(w->t.e->k, w->cells, 1, &at, value);
}
static uint32_t load_cell(const transform *w, uint32_t at) { return kir_load(w->t.e->k, w->cells, 1, 1, &at); }

/* An element of the tile, which tiles beside it may have; nothing but padding is where there is none. */
static uint32_t read_shared(transform *w, uint32_t r, uint32_t s) {
  emit *e = w->t.e;
  expr_pool *x = e->x;
  const int32_t m = (int32_t)w->form->results;
  map_condition inside[2];
  int32_t at[2] = {(int32_t)r, (int32_t)s}, apart = 0;
  uint32_t count = 0;
  for (uint32_t i = w->shares == SHARE_ROWS; i < 2; i++) {
    const int32_t further = (at[i] + m - 1) / m - 1;
    at[i] = (at[i] + m - 1) % m;
    apart += i ? further : further * w->tiles[1];
    if (further) inside[count++] = (map_condition){.value = w->t.at[w->axis[i]], .lo = further < 0, .hi = w->tiles[i] - (further > 0)};
  }
  if (w->shares == SHARE_ROWS) at[1] = at[1] > 0;
  uint32_t tile = emit_expr(e, expr_add(x, w->item, expr_int(x, apart))), met = 0;
  if (count) met = emit_conditions(e, count, inside), tile = kir_3(e->k, KIR_select, met, tile, emit_expr(e, w->item));
  const uint32_t value = load_cell(w, kir_ix(e->k, 1, (int64_t[]){1}, &tile, (uint32_t)(at[0] * w->step[0] + at[1] * w->step[1])));
  return count ? kir_3(e->k, KIR_select, met, value, kir_const_like(e->k, value, 0)) : value;
}

/* Between memory and local memory: of the group's planes, one behind the other, items beside each other have elements beside each other. */
static void move_planes(transform *w) {
  contraction *t = &w->t;
  expr_pool *x = t->e->x;
  const ir_expr m = (ir_expr)w->form->results, dims[] = {w->items / w->tiles[0] / w->tiles[1], w->tiles[0], m, w->tiles[1], m};
  const uint32_t batch = (uint32_t)t->out[w->output ? 0 : 3], channel = (uint32_t)t->out[w->output ? 1 : 2];
  if (w->output) kir_barrier(t->e->k, KIR_SYNC_LOCAL);
  for (ir_expr number = 0; number < m * m && !t->e->failed; number++) {
    ir_expr at[5];
    map_delinear(x, expr_add(x, w->item, number * w->items), 5, dims, at);
    const ir_expr line = expr_add(x, expr_mul(x, at[0], w->tiles[0]), at[1]), tile = expr_add(x, expr_mul(x, line, w->tiles[1]), at[3]),
                  plane = expr_add(x, expr_mul(x, t->group_number, dims[0]), at[0]);
    const uint32_t place = cell(w, tile, at[2], at[4]);
    t->at[batch] = expr_mod(x, plane, t->extent[batch]), t->at[channel] = expr_div(x, plane, t->extent[batch]);
    t->at[w->axis[0]] = at[1], t->at[w->axis[1]] = at[3];
    if (w->output) {
      const uint32_t value = load_cell(w, place);
      t->at[w->result[0]] = at[2], t->at[w->result[1]] = at[4];
      contract_store_cell(t, &value);
    } else {
      store_cell(w, place, read_at(w, expr_add(x, at[2], 1), expr_add(x, at[4], 1)));
    }
  }
  if (!w->output) kir_barrier(t->e->k, KIR_SYNC_LOCAL);
}

/* The rows of the tile but for their ends, the items beside having those. */
static void read_rows(transform *w, uint32_t row[WINOGRAD_TILE][WINOGRAD_TILE]) {
  emit *e = w->t.e;
  const uint32_t m = w->form->results;
  for (uint32_t r = 0; r < w->form->tile; r++) {
    const uint32_t own = read_at(w, (ir_expr)r, expr_add(e->x, emit_lanes(e, 0, m), 1));
    emit_scalar_lanes(e);
    if (!own) return;
    for (uint32_t s = 1; s <= m; s++) row[r][s] = in_lane(e, own, s - 1);
    store_cell(w, cell(w, w->item, (ir_expr)r, 0), row[r][1]);
    store_cell(w, cell(w, w->item, (ir_expr)r, 1), row[r][m]);
  }
  kir_barrier(e->k, KIR_SYNC_LOCAL);
}

/* Results of a line lie beside each other, and those of the next tile behind them. */
static void store_dealt(transform *w, const uint32_t *out) {
  contraction *t = &w->t;
  emit *e = t->e;
  const uint32_t m = w->rows, across = (uint32_t)t->out[t->outer_axis], width = w->side > 1 ? w->side : m;
  uint32_t parts[CONTRACT_VECTORS];
  const ir_expr lane = emit_lanes(e, 0, width);
  for (uint32_t place = 0; place < w->side * m; place += width) {
    for (uint32_t i = 0; i < width; i++) parts[i] = in_lane(e, out[(place + i) % m], (place + i) / m);
    const ir_expr at = expr_add(e->x, lane, place);
    t->at[across] = expr_add(e->x, w->first, expr_div(e->x, at, m));
    t->at[w->result[1]] = expr_mod(e->x, at, m);
    const uint32_t value = kir_vector(e->k, t->type.base, width, parts);
    contract_store_cell(t, &value);
  }
}

static void store_line(transform *w, const uint32_t *out) {
  contraction *t = &w->t;
  if (w->side && w->output && !w->shares) {
    store_dealt(w, out);
    return;
  }
  if (w->side) t->at[t->out[t->outer_axis]] = expr_add(t->e->x, w->first, w->lane);
  for (uint32_t j = 0; j < w->rows; j++) {
    t->at[w->result[1]] = j;
    if (w->shares && w->output) store_cell(w, cell(w, w->item, t->at[w->result[0]], j), out[j]);
    else contract_store_cell(t, &out[j]);
  }
}

static void transform_tile(emit *e, void *user, ir_expr column) {
  transform *w = user;
  contraction *t = &w->t;
  const uint32_t tile = w->form->tile;
  uint32_t half[WINOGRAD_TILE][WINOGRAD_TILE], in[WINOGRAD_TILE], out[WINOGRAD_TILE], row[WINOGRAD_TILE][WINOGRAD_TILE] = {{0}};
  t->at[t->out[t->lane_axis]] = column;
  if (w->shares == SHARE_ROWS) read_rows(w, row);
  for (uint32_t s = 0; s < tile && !e->failed; s++) {
    for (uint32_t r = 0; r < tile; r++) {
      if (!w->shares || w->output) in[r] = read_element(w, r, s);
      else in[r] = w->shares == SHARE_ROWS && s && s <= w->form->results ? row[r][s] : read_shared(w, r, s);
      if (!in[r]) return;
    }
    transform_line(w, in, out);
    for (uint32_t i = 0; i < w->rows; i++) half[i][s] = out[i];
  }
  for (uint32_t i = 0; i < w->rows && !e->failed; i++) {
    transform_line(w, half[i], out);
    t->at[w->result[0]] = i;
    store_line(w, out);
  }
}

/* ---- sharing out ---- */

/* Labels of the matrix: results, results, points, points. The tile's column is the outer axis, its row and the batch number the groups. */
static bool place_labels(transform *w) {
  contraction *t = &w->t;
  int64_t extent;
  if (!contract_read_labels(t) || t->reduced_count != 2) return false;
  for (uint32_t i = 0; i < 2; i++) {
    w->result[i] = (uint32_t)t->rhs[i];
    w->point[i] = (uint32_t)t->rhs[2 + i];
  }
  t->lane_axis = (int32_t)t->out_rank - 1;
  t->row_axis = CONTRACT_NONE;
  t->lane_operand = 0;
  w->side = schedule_is_explicit(t->c) ? 0 : winograd_item_tiles(t->c);
  /* lanes: [n, k, down, m, across, m] and [a, a, c, n, down, across]; else [n, down, m, across, m, k] and [a, a, n, down, across, c] */
  t->outer_axis = (w->side ? 5 : 4) - w->output;
  if (w->side) return true;
  t->lanes = contract_lanes(t->c, contract_literal(t, t->lane_axis, &extent) ? extent : 0);
  return t->lanes > 1;
}

/* The tile that the number is of, of all but the results of a line, the vectors' axis and, where an item has a row of tiles, the outer axis. */
static ir_expr count_tiles(transform *w, ir_expr *extent) {
  contraction *t = &w->t;
  expr_pool *x = t->c->graph->pool;
  ir_expr all = 1;
  for (uint32_t i = 0; i < t->out_rank; i++) {
    const uint32_t label = (uint32_t)t->out[i];
    extent[i] = label == w->result[0] || label == w->result[1] ? 1 : t->extent[label];
    if ((int32_t)i == t->outer_axis) extent[i] = w->side ? expr_div(x, extent[i], (ir_expr)w->side) : 1;
    else if ((int32_t)i == t->lane_axis) extent[i] = 1;
    all = expr_mul(x, all, extent[i]);
  }
  return all;
}

/* A row of tiles. */
static void emit_row(transform *w) {
  contraction *t = &w->t;
  emit *e = t->e;
  expr_pool *x = e->x;
  const uint32_t across = (uint32_t)t->out[t->outer_axis];
  int64_t tiles;
  if (expr_is_const(x, t->extent[across], &tiles) && !contract_stage_pads(t, 0, tiles)) {
    e->failed = true;
    return;
  }
  const ir_expr v = emit_steps(e, "o", 0, t->extent[across], 1);
  t->at[across] = v;
  const ir_expr columns = t->extent[t->out[t->lane_axis]], whole = expr_sub(x, columns, expr_mod(x, columns, t->lanes));
  schedule_vector_loop(e, 0, whole, t->lanes, 0, transform_tile, w);
  if (whole != columns)
    schedule_vector_loop(e, expr_sub(x, columns, t->lanes), columns, t->lanes, 0, transform_tile, w); /* begins before them */
  emit_loop_end(e, v, 0, NULL, NULL);
}

/* The columns of the operand, where zeros stand around it, one before it, and all of it is some tile's own; of the result. 0: it is otherwise. */
static ir_expr find_columns(const transform *w) {
  const contraction *t = &w->t;
  const ir_graph *g = t->c->graph;
  uint32_t node = contract_operand(t, 0, 0), count;
  if (w->output) return ir_at(g, t->group->outputs[0])->type.dims[3];
  while (ir_at(g, node)->op == IR_OP_window || ir_at(g, node)->op == IR_OP_cast) node = ir_arg(g, node, 0);
  if (ir_at(g, node)->op != IR_OP_pad || ir_attr_int(g, node, IR_ATTR_value, 0)) return 0;
  const ir_expr *low = ir_attr_ints(g, node, IR_ATTR_low, &count), *dims = ir_at(g, ir_arg(g, node, 0))->type.dims;
  for (uint32_t i = 0; i < 2; i++)
    if (low[2 + i] != 1 || dims[2 + i] < 0 || dims[2 + i] > w->tiles[i] * (ir_expr)w->form->results) return 0;
  return dims[3];
}

/* What the items of a group are: whole rows or planes of tiles, of which as many are in each. */
static void share_out(transform *w, ir_expr all) {
  enum { LEAST = 32 };
  const contraction *t = &w->t;
  const ir_expr m = (ir_expr)w->form->results;
  for (uint32_t i = 0; i < 2; i++) {
    w->axis[i] = (uint32_t)t->out[i ? t->outer_axis : t->outer_axis - 1 - w->output];
    w->tiles[i] = t->extent[w->axis[i]];
  }
  w->near = w->side == 1 && schedule_shares_local(t->c);
  if (!w->near || w->tiles[0] < 0 || w->tiles[1] < 0 || all < 0) return;
  const ir_expr columns = find_columns(w), whole = w->tiles[1] * m;
  const bool planes = columns != whole;
  if (!columns || (w->output && !planes)) return;
  const ir_expr unit = planes ? w->tiles[0] * w->tiles[1] : w->tiles[1];
  ir_expr items = w->items - w->items % unit;
  while (items && all % items) items -= unit;
  if (items < LEAST || (planes && items % whole)) return; /* elsewhere places would be dearer than what is gained */
  w->step[1] = CONTRACT_ITEMS + (planes ? 32 / m : 0);    /* elements of a row are in banks of their own, and the next row's in others */
  w->step[0] = planes ? m * w->step[1] + w->tiles[1] : 2 * CONTRACT_ITEMS;
  kir_memory cells = {.name = "cells", .space = KIR_LOCAL, .access = KIR_READ | KIR_WRITE, .rank = 1, .type = t->type, .align = 64};
  cells.dims[0] = (uint64_t)((planes ? m : WINOGRAD_TILE) * w->step[0]);
  if (cells.dims[0] * sizeof(float) > cost_local_room(t->c->options->profile)) return;
  w->cells = kir_memory_add(t->e->k, &cells);
  w->items = items, w->shares = planes ? SHARE_PLANES : SHARE_ROWS;
}

/* Tiles of a row beside each other. */
static void emit_side(transform *w) {
  contraction *t = &w->t;
  emit *e = t->e;
  const uint32_t across = (uint32_t)t->out[t->outer_axis];
  e->quads = w->side > 1 && !w->output;
  e->near = true, e->near_storage = w->side > 1 || w->output; /* what follows may be read where nothing is stored */
  w->first = t->at[across] = expr_mul(e->x, t->at[across], (ir_expr)w->side);
  w->lane = emit_lanes(e, 0, w->side);
  if (w->output) t->at[across] = expr_add(e->x, w->first, w->lane);
  transform_tile(e, w, t->at[t->out[t->lane_axis]]);
  emit_scalar_lanes(e);
}

static snt_result build(transform *w) {
  contraction *t = &w->t;
  expr_pool *x = t->c->graph->pool;
  emit *e = t->e = emit_begin(t->c, t->group, "winograd");
  if (!e) return ir_no_memory(t->c->diag, "schedule");
  ir_expr extent[SNT_MAX_RANK];
  w->items = (ir_expr)fmin(t->c->options->profile->group_items, CONTRACT_ITEMS);
  const ir_expr all = count_tiles(w, extent);
  share_out(w, all);
  t->groups = w->side ? expr_ceil_div(x, all, w->items) : all;
  t->group_number = emit_group(e, t->groups);
  ir_expr rest = w->side ? contract_item(e, t->group_number, (uint32_t)w->items, all) : t->group_number;
  w->item = expr_sub(x, rest, expr_mul(x, t->group_number, w->items));
  if (w->shares == SHARE_PLANES && !w->output) move_planes(w);
  const bool by_channel = w->near && w->output; /* as what is read lies */
  for (uint32_t i = t->out_rank; i-- > 0;) {
    const uint32_t axis = by_channel && i < 2 ? 1 - i : i;
    const ir_expr at = expr_mod(x, rest, extent[axis]);
    t->at[t->out[axis]] = at < 0 && rest == t->group_number ? emit_var_for(e, "p", emit_expr(e, at), 0, extent[axis]) : at;
    rest = expr_div(x, rest, extent[axis]);
  }
  (w->side ? emit_side : emit_row)(w);
  if (w->shares && w->output) move_planes(w);
  return emit_end(e, t->groups, 0, 0, NULL);
}

snt_result schedule_winograd_build(fusion_context *c, const fusion_group *group, const winograd_form *form, bool output) {
  transform w = {.t = {.c = c, .group = group, .type = kir_t(SNT_F32, 1)}, .form = form, .output = output};
  w.rows = output ? form->results : form->tile;
  contract_set_find(c, group, &w.t.set);
  if (!place_labels(&w) || w.t.set.count != 1) return ir_fail(c->diag, SNT_E_INTERNAL, "schedule", group->hero, "not a transform");
  int64_t tiles;
  if (!w.side && contract_literal(&w.t, w.t.outer_axis, &tiles)) contract_find_pads(&w.t, contract_operand(&w.t, 0, 0));
  return build(&w);
}
