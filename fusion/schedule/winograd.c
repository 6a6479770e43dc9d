/* The transforms of a Winograd convolution: a tile of vectors is read once, multiplied with a small matrix from both sides line by line, and stored.
   Explicit vectors lie along channels; a work-item takes a row of tiles; padding is staged for it, so that nothing is tested, where it is known how long rows
   are. Where work-items are lanes each has a tile of a channel, or where reads are of texels a vector of tiles of one row, whose positions are read, and
   stored, in whole vectors and dealt out to the tiles in registers. */
#include "fusion/contract_private.h"
#include "fusion/winograd.h"

typedef struct transform {
  contraction t;
  const winograd_form *form;
  bool output;
  uint32_t rows;                /* results of a line */
  uint32_t side;                /* tiles of a row beside each other, of an item that is a lane; else 0 */
  ir_expr first, lane;          /* of these: the first, and the others' distance */
  uint32_t point[2], result[2]; /* labels: of the tile that is read, of what is made */
} transform;

static float coefficient(const transform *w, uint32_t row, uint32_t column) {
  return w->output ? w->form->output[row][column] : w->form->input[row][column];
}

/* ---- one line ---- */

typedef struct line_terms { /* the elements of a line, or sums and differences of two of them; a coefficient for each result */
  uint32_t count, value[WINOGRAD_TILE];
  float by[WINOGRAD_TILE][WINOGRAD_TILE];
} line_terms;

static uint32_t constant(kir_kernel *k, uint32_t like, double x) { return kir_const_like(k, like, x); }

/* Columns whose coefficients are equal but for the sign: their sum and their difference serve every result. */
static bool columns_pair(const transform *w, uint32_t column) {
  if (column + 1 >= w->form->tile || !w->output) return false;
  for (uint32_t i = 0; i < w->rows; i++)
    if (fabsf(coefficient(w, i, column)) != fabsf(coefficient(w, i, column + 1))) return false;
  return true;
}

static void take_terms(const transform *w, const uint32_t *in, line_terms *out) {
  kir_kernel *k = w->t.e->k;
  *out = (line_terms){0};
  for (uint32_t r = 0; r < w->form->tile; r++) {
    const bool pair = columns_pair(w, r);
    const uint32_t at = out->count;
    out->value[at] = pair ? kir_2(k, KIR_add, in[r], in[r + 1]) : in[r];
    if (pair) out->value[at + 1] = kir_2(k, KIR_sub, in[r], in[r + 1]);
    for (uint32_t i = 0; i < w->rows; i++) {
      const float c = coefficient(w, i, r);
      const bool difference = pair && coefficient(w, i, r + 1) != c;
      out->by[i][at + difference] = c;
    }
    out->count += 1 + pair;
    r += pair;
  }
}

/* The terms of a result that `chosen` marks, added up; 0: none. */
static uint32_t add_up(const transform *w, const line_terms *terms, uint32_t row, uint32_t chosen) {
  kir_kernel *k = w->t.e->k;
  uint32_t sum = 0, first = 0;
  for (uint32_t i = terms->count; i-- > 0;)
    if (chosen >> i & 1 && terms->by[row][i] == 1) first = i, sum = terms->value[i];
  for (uint32_t i = 0; i < terms->count; i++) {
    const float by = terms->by[row][i];
    if (!(chosen >> i & 1) || by == 0 || (sum && i == first && by == 1)) continue;
    if (!sum) sum = kir_2(k, KIR_mul, terms->value[i], constant(k, terms->value[i], (double)by));
    else if (by == 1) sum = kir_2(k, KIR_add, sum, terms->value[i]);
    else if (by == -1) sum = kir_2(k, KIR_sub, sum, terms->value[i]);
    else sum = kir_3(k, KIR_fma, terms->value[i], constant(k, terms->value[i], (double)by), sum);
  }
  return sum;
}

/* Terms that this result and the next one have alike, and those with the other sign; false: they differ otherwise. */
static bool rows_pair(const transform *w, const line_terms *terms, uint32_t row, uint32_t *even, uint32_t *odd) {
  *even = *odd = 0;
  if (row + 1 >= w->rows) return false;
  for (uint32_t i = 0; i < terms->count; i++) {
    const float a = terms->by[row][i], b = terms->by[row + 1][i];
    if (a == 0 && b == 0) continue;
    if (a == b) *even |= 1u << i;
    else if (a == -b) *odd |= 1u << i;
    else return false;
  }
  return *even && *odd;
}

static void transform_line(const transform *w, const uint32_t *in, uint32_t *out) {
  kir_kernel *k = w->t.e->k;
  line_terms terms;
  uint32_t even, odd;
  take_terms(w, in, &terms);
  for (uint32_t i = 0; i < w->rows; i++) {
    if (!rows_pair(w, &terms, i, &even, &odd)) {
      out[i] = add_up(w, &terms, i, UINT32_MAX);
      continue;
    }
    const uint32_t e = add_up(w, &terms, i, even), o = add_up(w, &terms, i, odd);
    out[i] = kir_2(k, KIR_add, e, o);
    out[++i] = kir_2(k, KIR_sub, e, o);
  }
}

/* ---- one tile of vectors ---- */

static uint32_t in_lane(emit *e, uint32_t value, uint32_t lane) {
  return emit_value_type(e, value).lanes == 1 ? value : kir_lane(e->k, value, lane);
}

/* An element of the operand, for each of the tiles side by side. */
static uint32_t read_element(transform *w, uint32_t r, uint32_t s) {
  contraction *t = &w->t;
  emit *e = t->e;
  uint32_t parts[CONTRACT_VECTORS];
  const bool dealt = w->side > 1 && !w->output;
  t->at[w->point[0]] = r, t->at[w->point[1]] = s;
  for (uint32_t i = 0; i < (dealt ? w->side : 1); i++) {
    const uint32_t place = i * w->form->results + s;
    if (dealt) t->at[w->point[1]] = expr_add(e->x, w->lane, place / w->side * w->side);
    const map_access at = contract_operand_at(t, 0);
    parts[i] = emit_value(e, contract_operand(t, 0, 0), &at);
    if (!parts[i] || !dealt) return parts[i];
    parts[i] = in_lane(e, parts[i], place % w->side);
  }
  return kir_vector(e->k, t->type.base, w->side, parts);
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
  if (w->side && w->output) {
    store_dealt(w, out);
    return;
  }
  if (w->side) t->at[t->out[t->outer_axis]] = expr_add(t->e->x, w->first, w->lane);
  for (uint32_t j = 0; j < w->rows; j++) {
    t->at[w->result[1]] = j;
    contract_store_cell(t, &out[j]);
  }
}

static void transform_tile(emit *e, void *user, ir_expr column) {
  transform *w = user;
  contraction *t = &w->t;
  const uint32_t tile = w->form->tile;
  uint32_t half[WINOGRAD_TILE][WINOGRAD_TILE], in[WINOGRAD_TILE], out[WINOGRAD_TILE];
  t->at[t->out[t->lane_axis]] = column;
  for (uint32_t s = 0; s < tile && !e->failed; s++) {
    for (uint32_t r = 0; r < tile; r++)
      if (!(in[r] = read_element(w, r, s))) return;
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
  t->outer_axis = w->side     ? (w->output ? 4 : 5)
                  : w->output ? 3
                              : 4; /* lanes: [n, k, down, m, across, m] and [a, a, c, n, down, across];
                                                                        else [n, down, m, across, m, k] and [a, a, n, down, across, c] */
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
  const uint32_t items = (uint32_t)fmin(t->c->options->profile->group_items, CONTRACT_ITEMS);
  const ir_expr all = count_tiles(w, extent);
  t->groups = w->side ? expr_ceil_div(x, all, (ir_expr)items) : all;
  t->group_number = emit_group(e, t->groups);
  ir_expr rest = w->side ? contract_item(e, t->group_number, items, all) : t->group_number;
  for (uint32_t i = t->out_rank; i-- > 0; rest = expr_div(x, rest, extent[i])) {
    const ir_expr at = expr_mod(x, rest, extent[i]);
    t->at[t->out[i]] = at < 0 && rest == t->group_number ? emit_var_for(e, "p", emit_expr(e, at), 0, extent[i]) : at;
  }
  (w->side ? emit_side : emit_row)(w);
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
