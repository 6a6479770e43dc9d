/* Kind `transpose` where local memory is near: a group reads a tile of what is turned along the source's axis, neighbouring items
   neighbouring elements, and stores it along the result's. Between the two it lies in local memory, whose rows are a word more than the
   banks, so that a column of it meets each bank once. Elements of a byte go by words of four, where all are: a tile of 128 x 128, which an
   item turns as blocks of 4 x 4. */
#include "fusion/emit_private.h"
#include "fusion/image.h"
#include "fusion/schedule_common.h"
#include "fusion/schedule/transpose.h"

enum { ACROSS = 32, DOWN = 8, WORD = 4, LEAST = 16, ROW = ACROSS + 1 };

typedef struct load_search {
  uint32_t wanted;
  bool seen;
  map_access found;
} load_search;

static void take_load(void *user, const fusion_load *load) {
  load_search *s = user;
  if (load->node != s->wanted || s->seen) return;
  s->found = *load->access;
  s->seen = true;
}

map_access transpose_load_at(transpose_job *j, uint32_t node) {
  load_search s = {.wanted = node};
  for (uint32_t i = 0; i < j->group->output_count && !s.seen; i++)
    if (!fusion_walk_loads(j->c, j->group, j->group->outputs[i], &j->at, take_load, &s)) break;
  if (!s.seen) j->e->failed = true;
  return s.found;
}

/* Axes that follow each other in all that is read, taken as one. */
typedef struct axis_run {
  uint32_t first, count;
  ir_expr dims[SNT_MAX_RANK], extent;
} axis_run;

typedef struct tile {
  transpose_job *j;
  axis_run source, lane;
  uint32_t unit; /* elements of a cell of local memory: 4 bytes, or 1 */
  ir_expr source_at, lane_at, across, down;
  uint32_t memory[TRANSPOSE_MOST];
} tile;

static const ir_tensor *result_of(const transpose_job *j) { return &ir_at(j->c->graph, j->group->hero)->type; }

/* ---- the tile ---- */

static bool follows(const transpose_job *j, uint32_t outer, uint32_t inner) {
  expr_pool *x = j->c->graph->pool;
  int64_t extent, step, own;
  ir_expr rest;
  if (j->var[outer] == UINT32_MAX || j->var[inner] == UINT32_MAX || !expr_is_const(x, result_of(j)->dims[inner], &extent)) return false;
  for (uint32_t i = 0; i < j->turned_count; i++)
    if (!expr_split_affine(x, j->turned_at[i], j->var[inner], &step, &rest) ||
        !expr_split_affine(x, j->turned_at[i], j->var[outer], &own, &rest) || own != step * extent)
      return false;
  return true;
}

static axis_run run_to(const transpose_job *j, uint32_t last, uint32_t least) {
  axis_run run = {.first = last};
  while (run.first > least && follows(j, run.first - 1, run.first)) run.first--;
  run.count = last + 1 - run.first;
  memcpy(run.dims, result_of(j)->dims + run.first, run.count * sizeof *run.dims);
  run.extent = schedule_product(j->c->graph->pool, run.count, run.dims);
  return run;
}

static bool is_byte(const ir_graph *g, uint32_t node) {
  const int32_t dtype = ir_at(g, node)->type.dtype;
  return dtype == SNT_U8 || dtype == SNT_I8;
}

static bool in_words(const expr_pool *x, const axis_run *run) { return expr_multiple_of(x, run->dims[run->count - 1]) % WORD == 0; }

/* Bytes in and out, of which four beside each other are a word wherever the tile begins. */
static bool takes_words(const transpose_job *j, const tile *t) {
  expr_pool *x = j->c->graph->pool;
  int64_t coef;
  ir_expr rest;
  if (!in_words(x, &t->source) || !in_words(x, &t->lane)) return false;
  for (uint32_t o = 0; o < j->group->output_count; o++)
    if (!is_byte(j->c->graph, j->group->outputs[o])) return false;
  for (uint32_t i = 0; i < j->turned_count; i++)
    if (!is_byte(j->c->graph, j->turned[i]) || !expr_split_affine(x, j->turned_at[i], j->var[j->source_axis], &coef, &rest) ||
        expr_multiple_of(x, rest) % WORD)
      return false;
  return true;
}

static uint32_t rows_of(const tile *t) { return ACROSS * t->unit; }

/* Type of a cell: words, or what nothing is lost in and no device lacks. */
static int32_t cell_type(const tile *t, uint32_t number) {
  const int32_t dtype = ir_at(t->j->c->graph, t->j->turned[number])->type.dtype, base = emit_compute_type(t->j->e, dtype, 1).base;
  return t->unit == WORD || base == SNT_BOOL || ir_dtypes[base].bytes < 4 ? SNT_I32 : base;
}

/* Rows of a tile of words are read four apart: every 32 of them lie a word further. */
static uint32_t cells_of(const tile *t) { return rows_of(t) * ROW + (t->unit == WORD ? rows_of(t) / ACROSS : 0); }

static double room_of(const tile *t) {
  double bytes = 0;
  for (uint32_t i = 0; i < t->j->turned_count; i++) bytes += (double)cells_of(t) * ir_dtypes[cell_type(t, i)].bytes;
  return bytes;
}

static bool find_tile(transpose_job *j, tile *t) {
  const cost_profile *p = j->c->options->profile;
  const expr_pool *x = j->c->graph->pool;
  const double room = (double)cost_local_room(p);
  *t = (tile){.j = j, .source = run_to(j, j->source_axis, 0), .lane = run_to(j, j->lane_axis, j->source_axis + 1), .unit = WORD};
  for (uint32_t i = 0; i < j->turned_count; i++)
    if (ir_at(j->c->graph, j->turned[i])->op == IR_OP_input && fusion_image_layout(j->c, j->turned[i])) return false;
  if (p->reads != COST_READS_STORAGE || p->max_items < ACROSS * DOWN) return false;
  if (!takes_words(j, t) || room_of(t) > room) t->unit = 1;
  return room_of(t) <= room && schedule_hint(x, t->source.extent) >= LEAST && schedule_hint(x, t->lane.extent) >= LEAST;
}

bool transpose_fits_local(transpose_job *j) {
  tile t;
  return find_tile(j, &t);
}

/* ---- places ---- */

/* The result's coordinates along the run: element `lane` of the `at`th `unit` of them. */
static void place(const tile *t, const axis_run *run, ir_expr at, uint32_t unit, ir_expr lane) {
  expr_pool *x = t->j->e->x;
  ir_expr dims[SNT_MAX_RANK], where[SNT_MAX_RANK];
  const uint32_t last = run->count - 1;
  memcpy(dims, run->dims, run->count * sizeof *dims);
  dims[last] = expr_div(x, dims[last], unit);
  map_delinear(x, at, run->count, dims, where);
  where[last] = expr_add(x, expr_mul(x, where[last], unit), lane);
  memcpy(t->j->at.at + run->first, where, run->count * sizeof *where);
}

static ir_expr cells_along(const tile *t, const axis_run *run) { return expr_div(t->j->e->x, run->extent, t->unit); }

/* `at`, which the tile may hold more of than there are, as one of `end`. */
static ir_expr within(emit *e, const char *name, ir_expr at, ir_expr end, uint32_t tile) {
  if (expr_multiple_of(e->x, end) % tile == 0) return at;
  return emit_var_for(e, name, emit_expr(e, expr_min(e->x, at, expr_sub(e->x, end, 1))), 0, end);
}

static uint32_t cell(const tile *t, ir_expr row, ir_expr column) {
  emit *e = t->j->e;
  expr_pool *x = e->x;
  const ir_expr skipped = t->unit == WORD ? expr_div(x, row, ACROSS) : 0;
  return emit_expr(e, expr_add(x, expr_add(x, expr_mul(x, row, ROW), skipped), column));
}

/* ---- in: rows of the tile are places of the lane's axis, columns cells of the source's ---- */

static uint32_t read_cell(const tile *t, uint32_t number) {
  transpose_job *j = t->j;
  emit *e = j->e;
  const map_access from = transpose_load_at(j, j->turned[number]);
  if (e->failed) return 0;
  if (t->unit == WORD) return emit_read_words(e, j->turned[number], &from);
  const uint32_t value = emit_value(e, j->turned[number], &from), type = (uint32_t)cell_type(t, number);
  if (!value || emit_value_type(e, value).base == (int32_t)type) return value;
  if (emit_value_type(e, value).base != SNT_BOOL) return kir_cast(e->k, kir_t((int32_t)type, 1), value);
  return kir_3(e->k, KIR_select, value, kir_const_int(e->k, kir_t(SNT_I32, 1), 1), kir_const_int(e->k, kir_t(SNT_I32, 1), 0));
}

static void fill(const tile *t) {
  emit *e = t->j->e;
  expr_pool *x = e->x;
  const ir_expr cells = cells_along(t, &t->source), column = within(e, "s", expr_add(x, t->source_at, t->across), cells, ACROSS);
  uint32_t value[ACROSS * WORD / DOWN];
  for (uint32_t n = 0; n < t->j->turned_count; n++) {
    for (uint32_t i = 0; i < rows_of(t) / DOWN; i++) {
      const ir_expr row = expr_add(x, expr_mul(x, t->lane_at, t->unit), expr_add(x, t->down, (ir_expr)(i * DOWN)));
      const ir_expr at = within(e, "l", row, t->lane.extent, rows_of(t));
      place(t, &t->source, column, t->unit, 0);
      place(t, &t->lane, at, 1, 0);
      value[i] = read_cell(t, n);
    }
    for (uint32_t i = 0; i < rows_of(t) / DOWN && !e->failed; i++) {
      const uint32_t index = cell(t, expr_add(x, t->down, (ir_expr)(i * DOWN)), t->across);
      if (value[i]) kir_store(e->k, t->memory[n], 1, &index, value[i]);
    }
  }
}

/* ---- out ---- */

static void store_outputs(const tile *t) {
  transpose_job *j = t->j;
  for (uint32_t o = 0; o < j->group->output_count && !j->e->failed; o++)
    emit_store_node(j->e, j->group->outputs[o], &j->at, emit_value(j->e, j->group->outputs[o], &j->at));
}

static void show(const tile *t, uint32_t number, uint32_t value) {
  const map_access at = transpose_load_at(t->j, t->j->turned[number]);
  if (!t->j->e->failed) emit_remember(t->j->e, t->j->turned[number], &at, value);
}

static void store_element(const tile *t, ir_expr column) {
  emit *e = t->j->e;
  for (uint32_t n = 0; n < t->j->turned_count; n++) {
    const int32_t base = emit_compute_type(e, ir_at(e->g, t->j->turned[n])->type.dtype, 1).base;
    const uint32_t index = cell(t, t->across, column);
    uint32_t value = kir_load(e->k, t->memory[n], 1, 1, &index);
    if (base == SNT_BOOL) value = kir_2(e->k, KIR_ne, value, kir_const_int(e->k, kir_t(SNT_I32, 1), 0));
    else if (base != cell_type(t, n)) value = kir_cast(e->k, kir_t(base, 1), value);
    show(t, n, value);
  }
  store_outputs(t);
}

/* Byte `number` of four words, as a vector. */
static uint32_t byte_of(emit *e, const uint32_t *words, uint32_t number, int32_t dtype) {
  const kir_type word = kir_t(SNT_I32, 1);
  uint32_t parts[WORD];
  for (uint32_t i = 0; i < WORD; i++) {
    uint32_t part = words[i];
    if (dtype == SNT_I8 && number < 3) part = kir_2(e->k, KIR_shl, part, kir_const_int(e->k, word, 24 - 8 * number));
    if (dtype == SNT_I8) part = kir_2(e->k, KIR_shr, part, kir_const_int(e->k, word, 24));
    if (dtype == SNT_U8 && number) part = kir_2(e->k, KIR_shr, part, kir_const_int(e->k, word, 8 * number));
    if (dtype == SNT_U8) part = kir_2(e->k, KIR_and, part, kir_const_int(e->k, word, 255));
    parts[i] = kir_cast(e->k, kir_t(dtype, 1), part);
  }
  return kir_vector(e->k, dtype, WORD, parts);
}

/* A block of 4 x 4 bytes: its rows are four words, its columns vectors of the result. */
static void store_block(const tile *t, ir_expr column, ir_expr source, ir_expr lane) {
  emit *e = t->j->e;
  expr_pool *x = e->x;
  uint32_t words[TRANSPOSE_MOST][WORD];
  for (uint32_t n = 0; n < t->j->turned_count; n++)
    for (uint32_t i = 0; i < WORD; i++) {
      const uint32_t index = cell(t, expr_add(x, expr_mul(x, t->across, WORD), (ir_expr)i), column);
      words[n][i] = kir_load(e->k, t->memory[n], 1, 1, &index);
    }
  for (uint32_t b = 0; b < WORD; b++) {
    place(t, &t->source, source, WORD, (ir_expr)b);
    place(t, &t->lane, lane, WORD, emit_lanes(e, 0, WORD));
    for (uint32_t n = 0; n < t->j->turned_count; n++) show(t, n, byte_of(e, words[n], b, ir_at(e->g, t->j->turned[n])->type.dtype));
    store_outputs(t);
    emit_scalar_lanes(e);
  }
}

static void drain(const tile *t) {
  emit *e = t->j->e;
  expr_pool *x = e->x;
  const ir_expr sources = cells_along(t, &t->source), lanes = cells_along(t, &t->lane);
  const ir_expr step = emit_steps(e, "r", 0, ACROSS / DOWN, 1);
  const ir_expr column = expr_add(x, expr_mul(x, step, DOWN), t->down);
  ir_expr source = expr_add(x, t->source_at, column), lane = expr_add(x, t->lane_at, t->across);
  const uint32_t row_in = emit_inside(e, source, sources, ACROSS), lane_in = emit_inside(e, lane, lanes, ACROSS);
  const bool edge = emit_if_both(e, row_in, lane_in);
  if (row_in) source = emit_var_for(e, "s", emit_expr(e, source), 0, sources);
  if (lane_in) lane = emit_var_for(e, "l", emit_expr(e, lane), 0, lanes);
  if (t->unit == WORD) {
    store_block(t, column, source, lane);
  } else {
    place(t, &t->source, source, 1, 0);
    place(t, &t->lane, lane, 1, 0);
    store_element(t, column);
  }
  if (edge) emit_if_end(e);
  emit_loop_end(e, step, 0, NULL, NULL);
}

/* ---- the kernel ---- */

static bool is_of(const axis_run *run, uint32_t axis) { return axis >= run->first && axis < run->first + run->count; }

static ir_expr place_group(tile *t) {
  transpose_job *j = t->j;
  expr_pool *x = j->e->x;
  const ir_expr sources = expr_ceil_div(x, cells_along(t, &t->source), ACROSS), lanes = expr_ceil_div(x, cells_along(t, &t->lane), ACROSS);
  ir_expr groups = expr_mul(x, sources, lanes);
  for (uint32_t d = 0; d < j->rank; d++)
    if (!is_of(&t->source, d) && !is_of(&t->lane, d)) groups = expr_mul(x, groups, result_of(j)->dims[d]);
  ir_expr rest = emit_group(j->e, groups);
  t->lane_at = expr_mul(x, expr_mod(x, rest, lanes), ACROSS), rest = expr_div(x, rest, lanes);
  t->source_at = expr_mul(x, expr_mod(x, rest, sources), ACROSS), rest = expr_div(x, rest, sources);
  j->at.rank = j->rank;
  for (uint32_t d = j->rank; d-- > 0;) {
    if (is_of(&t->source, d) || is_of(&t->lane, d)) continue;
    j->at.at[d] = expr_mod(x, rest, result_of(j)->dims[d]);
    rest = expr_div(x, rest, result_of(j)->dims[d]);
  }
  return groups;
}

snt_result transpose_build_local(transpose_job *j) {
  tile t;
  emit *e = j->e = emit_begin(j->c, j->group, "transpose");
  if (!e) return ir_no_memory(j->c->diag, "schedule");
  if (!find_tile(j, &t)) e->failed = true;
  const ir_expr groups = place_group(&t), item = emit_item(e, 0, ACROSS * DOWN);
  t.across = expr_mod(e->x, item, ACROSS), t.down = expr_div(e->x, item, ACROSS);
  for (uint32_t n = 0; n < j->turned_count; n++) {
    char name[24];
    const int length = snprintf(name, sizeof name, "t%u", e->k->memories.count);
    kir_memory m = {
        .name = ir_arena_text(e->arena, name, (size_t)length), .space = KIR_LOCAL, .access = KIR_READ | KIR_WRITE, .rank = 1, .align = 64};
    m.type = kir_t(cell_type(&t, n), 1);
    m.dims[0] = cells_of(&t);
    t.memory[n] = kir_memory_add(e->k, &m);
  }
  fill(&t);
  kir_barrier(e->k, KIR_SYNC_LOCAL);
  drain(&t);
  return emit_end(e, groups, 0, 0, NULL);
}
