/* Kinds `reduce` and `row`: one or several reductions over the same axes of one shape, with prologue, epilogue and full-row outputs.
   What is kept of a row between sweeps: schedule/row_stages.c.
   Columns reduced along the unit stride: vectors along the row. Otherwise vectors run across neighbouring rows. */
#include "fusion/schedule/row_private.h"

enum { AT_ONCE = 4, MOST_AT_ONCE = 8, SUMS = 4, FEW = 16 }; /* rows, of words; registers of sums; nodes of a row beside others */

/* ---- emission of one row (or of `lanes` neighbouring rows) ---- */

static bool is_dear(const row_job *j, uint32_t node) { return (ir_ops[ir_at(j->c->graph, node)->op].flags & IR_EXPENSIVE) != 0; }

/* Of several transcendental functions that a sweep computes, each but the last has a loop and a row of its own: in one loop they wait for
   each other (measured on PoCL: exp and two sigmoids 1.6 times as long, nine functions 2.3 times; see schedule/loop_dear.c). A kept row that the sweep would
   fill by the way is no exception. */
static void compute_dear_rows(row_job *j, uint32_t sweep_number) {
  emit *e = j->e;
  const uint8_t *needed = j->seen + (size_t)sweep_number * e->g->nodes.count;
  uint32_t last = 0;
  int64_t literal;
  if (!schedule_is_explicit(j->c) || !expr_is_const(e->x, j->columns, &literal) || literal * 4 > PRIVATE_ROW_BYTES) return;
  for (uint32_t i = 0; i < j->group->count; i++)
    if (needed[j->group->nodes[i]] && is_dear(j, j->group->nodes[i])) last = j->group->nodes[i];
  for (uint32_t i = 0; i < j->group->count && j->dear_count < MAX_DEAR; i++) {
    const uint32_t node = j->group->nodes[i];
    if (node == last || !needed[node] || !is_dear(j, node) || !row_is_full(j, node) || row_is_made(j, node)) continue;
    const uint32_t stage = row_find_stage(j, node);
    if (stage < j->staged_count && j->staged_in[stage] != sweep_number) continue;
    const stage_info info = row_stage(j, node, stage);
    j->dear[j->dear_count++] = node;
    emit_stage(e, &info, j->lanes, UINT32_MAX);
  }
}

/* Beside a term: what the sweep stores there, and what the one behind the last would of the row before. */
static void store_beside(emit *e, void *user, const map_access *at, bool edge) {
  row_job *j = user;
  uint32_t axis = 0;
  for (uint32_t d = 0; d < j->full.rank; d++)
    if (j->reduced[d]) axis = d;
  (void)e;
  row_fetch(j, j->sweep, at);
  if (j->trails && j->sweep + 1 == j->sweeps) row_trail(j, at);
  j->edge = edge;
  row_store_at(j, j->sweep, at, at->at[axis]);
}

/* A reduction, unless a select leaves it out. Where items share rows all of them go on. */
static uint32_t reduce_wanted(row_job *j, uint32_t node, const map_access *at, const sweep *how) {
  emit *e = j->e;
  const bool alone = j->items <= 1 && !j->staged_count && !row_stores_in(j, j->sweep);
  const uint32_t wanted = alone ? emit_wanted(e, node, emit_chooser(j->c, j->group, node), at) : 0;
  if (wanted) emit_if(e, wanted);
  const uint32_t value = emit_reduce(e, node, at, how);
  if (!wanted || !value) return value;
  const kir_type type = emit_value_type(e, value);
  const uint32_t none = ir_dtypes[type.base].is_float ? kir_const_float(e->k, type, 0) : kir_const_int(e->k, type, 0);
  uint32_t result;
  emit_else(e, 1, &value);
  emit_if_result(e, 1, &none, &result);
  return result;
}

/* Down a column each extremum waits for the one before it, which is compared, and told from NaN, for longer than the next line takes to
   come: several take turns. */
static uint32_t turns_across(const row_job *j, uint32_t sweep_number) {
  const ir_op op = (ir_op)ir_at(j->c->graph, j->reduce[sweep_number])->op;
  return schedule_is_explicit(j->c) && (op == IR_OP_reduce_max || op == IR_OP_reduce_min) ? SUMS : 1;
}

static void reduce_row(row_job *j, const sweep *given) {
  sweep how = *given;
  how.beside = store_beside, how.user = j;
  for (uint32_t s = 0; s < j->sweeps; s++) {
    j->sweep = s;
    how.stores = row_stores_in(j, s);
    if (j->across) how.accumulators = turns_across(j, s);
    const map_access at = row_result_at(j, j->reduce[s]);
    if (j->items <= 1 && !j->across) compute_dear_rows(j, s);
    row_open_stages(j, s);
    emit_remember(j->e, j->reduce[s], &at, reduce_wanted(j, j->reduce[s], &at, &how));
    row_fill_stages(j, s);
    row_order_stages(j, s);
  }
}

void row_reduce_alone(row_job *j) { reduce_row(j, &(sweep){.lanes = j->lanes, .accumulators = SUMS * schedule_lanes(j->c) / j->lanes}); }

/* Vectors along the row; one item does the row. */
static void emit_row(row_job *j) {
  row_reduce_alone(j);
  if (row_stores_in(j, j->sweeps)) {
    compute_dear_rows(j, j->sweeps);
    row_store_columns(j);
  }
  row_store_outputs(j);
}

/* Computed before the first row, with the vector beside all rows. */
static bool is_of_vector(const row_job *j, uint32_t node) {
  return j->vector && node <= j->vector && j->c->elements[node] <= j->c->elements[j->vector];
}

/* Rows in one loop: what they share is read once, and memory is asked for in several places at once. (A matrix of 64 MB times a vector, on PoCL: four rows
   take 0.7 of the time of one after another.) Registers for their sums; nothing of a row may be kept, and dear functions want loops of their own. */
static uint32_t rows_at_once(const row_job *j, uint32_t few) {
  enum { VECTORS = 4 };
  const fusion_context *c = j->c;
  int64_t columns;
  uint32_t count = 0;
  if (fusion_keeps_order(c->options) || (!j->across && (j->staged_count || j->sweeps != 1 || row_has_full_outputs(j)))) return 1;
  if (!expr_is_const(c->graph->pool, j->columns, &columns) || columns < VECTORS * (int64_t)j->lanes) return 1;
  for (uint32_t i = 0; i < j->group->count; i++) {
    const ir_op op = (ir_op)ir_at(c->graph, j->group->nodes[i])->op;
    if (is_of_vector(j, j->group->nodes[i])) continue;
    if (++count > few || ir_ops[op].flags & IR_EXPENSIVE || op == IR_OP_gather || op == IR_OP_reduce_argmax || op == IR_OP_reduce_argmin)
      return 1;
  }
  return AT_ONCE;
}

/* Of rows in one loop: across the unit stride each has a vector of them, unless there is one row. */
static void go_to_nth(row_job *j, ir_expr first, uint32_t i) {
  const uint32_t last = j->full.rank - 1;
  if (j->across) j->at[last] = j->full.dims[last] == 1 ? 0 : expr_add(j->e->x, first, i * j->e->lanes);
  else row_go_to(j, expr_add(j->e->x, first, i * j->apart));
}

static void reduce_rows(row_job *j, uint32_t node, ir_expr first, uint32_t rows, const sweep *how) {
  map_access at[MOST_AT_ONCE];
  uint32_t values[MOST_AT_ONCE];
  for (uint32_t i = 0; i < rows; i++) {
    go_to_nth(j, first, i);
    at[i] = row_result_at(j, node);
  }
  emit_reduce_rows(j->e, node, rows, at, how, values);
  for (uint32_t i = 0; i < rows; i++) emit_remember(j->e, node, &at[i], values[i]);
}

/* What is stored of rows whose reductions are known: full outputs column by column. */
static void store_rows(row_job *j, ir_expr first, uint32_t rows) {
  const ir_expr v = row_stores_in(j, j->sweeps) ? emit_steps(j->e, "c", 0, j->columns, 1) : 0;
  for (uint32_t i = 0; i < rows && v; i++) {
    go_to_nth(j, first, i);
    row_store_column(j->e, j, v);
  }
  if (v) emit_loop_end(j->e, v, 0, NULL, NULL);
  for (uint32_t i = 0; i < rows; i++) {
    go_to_nth(j, first, i);
    row_store_outputs(j);
  }
}

static void emit_rows(row_job *j, ir_expr first, uint32_t rows, const sweep *given) {
  sweep how = *given;
  if (row_has_full_outputs(j)) how.beside = store_beside, how.user = j;
  for (uint32_t s = 0; s < j->sweeps; s++) {
    j->sweep = s;
    how.stores = row_stores_in(j, s);
    row_open_stages(j, s);
    reduce_rows(j, j->reduce[s], first, rows, &how);
    row_fill_stages(j, s);
  }
  store_rows(j, first, rows);
}

enum { MOST_WRITTEN = 4 };

/* Of the items that would share a row, as many as have whole trips, if these are few enough to be written out: a half or a quarter of them may. */
static uint32_t whole_items(const row_job *j, int64_t columns) {
  int64_t literal, items = j->items;
  if (!fusion_runs_on_cuda(j->c->options) || fusion_keeps_order(j->c->options) || !expr_is_const(j->c->graph->pool, j->columns, &literal))
    return j->items;
  while (items > 1 && columns % (items * j->lanes)) items /= 2;
  return columns <= MOST_WRITTEN * items * j->lanes && items >= j->c->options->profile->subgroup_min ? (uint32_t)items : j->items;
}

/* Trips that all sweeps, the last of which stores too, are written out in: what they have in common is read, and computed, once. On CUDA few, whose values wait in
   registers; elsewhere those of which the last stores by hand. 0: they are loops. */
static uint32_t trips_written_out(row_job *j) {
  const fusion_context *c = j->c;
  const int64_t width = (int64_t)j->lanes * j->items;
  int64_t rows, columns;
  for (uint32_t s = 0; s < j->sweeps; s++)
    if (row_stores_in(j, s)) return 0;
  if (!row_stores_in(j, j->sweeps) || j->lanes == 1) return 0;
  if (!expr_is_const(c->graph->pool, j->rows, &rows) || !expr_is_const(c->graph->pool, j->columns, &columns) || columns % width) return 0;
  const bool few = fusion_runs_on_cuda(c->options) && c->options->profile->hand_texels == 0 && columns <= MOST_WRITTEN * width &&
                   j->full.dims[j->full.rank - 1] == j->columns;
  if (few) j->staged_count = 0;
  return few || (j->items == c->options->profile->caps.subgroup_size && schedule_by_hand(c, j->group, HAND_ROW, columns / j->items, rows))
             ? (uint32_t)(columns / width)
             : 0;
}

/* Vectors along the row; the items of a group share it. */
static void emit_shared_row(row_job *j) {
  emit *e = j->e;
  expr_pool *x = e->x;
  const uint32_t trips = trips_written_out(j);
  const sweep how = {.lanes = j->lanes, .accumulators = 1, .items = j->items, .item = j->item, .start = j->start, .unroll = trips};
  reduce_row(j, &how);
  const bool full = row_stores_in(j, j->sweeps);
  if (trips) {
    row_store_by_hand(j);
  } else if (full && j->start) {
    row_store_aligned(j, &how);
  } else if (full) {
    const ir_expr width = (ir_expr)j->lanes * j->items, whole = expr_sub(x, j->columns, expr_mod(x, j->columns, width));
    row_store_vectors(j, 0, whole);
    if (whole != j->columns) {
      const ir_expr t = emit_loop(e, &(emit_loop_info){.name = "t", .lo = expr_add(x, whole, j->item), .hi = j->columns, .step = j->items});
      row_store_column(e, j, t);
      emit_loop_end(e, t, 0, NULL, NULL);
    }
  }
  int64_t literal;
  if (expr_is_const(x, ir_tensor_elements(x, &j->full), &literal) && !j->group->output_count) return;
  const uint32_t lead = kir_2(e->k, KIR_eq, emit_expr(e, j->item), kir_const_int(e->k, kir_t(SNT_U32, 1), 0));
  emit_if(e, lead);
  row_store_outputs(j);
  emit_if_end(e);
}

/* ---- sharing out the rows ---- */

static snt_result finish(row_job *j, ir_expr groups) { return emit_end(j->e, groups, 0, 0, NULL); }

/* Is all of the vector `part`, of a known length, of so many bytes at most, and computed by the kernel? What it stands on; 0: it is not. */
static uint32_t made_vector(const row_job *j, uint32_t part, double most) {
  const fusion_context *c = j->c;
  const uint32_t vector = c->facts[part].base;
  int64_t elements;
  const bool near = expr_is_const(c->graph->pool, ir_tensor_elements(c->graph->pool, &ir_at(c->graph, vector)->type), &elements) &&
                    elements == (int64_t)c->elements[part] && (double)elements * sizeof(float) <= most;
  return near && fusion_group_has(j->group, vector) && ir_at(c->graph, vector)->type.dtype == SNT_F32 ? vector : 0;
}

/* The vector beside the rows whose parts sums by words read (rewrite/words.c), or one for each vector of rows that stands beside others, or for each two. */
static bool reads_parts(const row_job *j, uint32_t *part) {
  const fusion_context *c = j->c;
  expr_pool *x = c->graph->pool;
  const ir_expr vectors = expr_div(x, j->kept[j->kept_rank - 1], (ir_expr)schedule_row_lanes(c, j->group)), pairs = expr_div(x, vectors, 2);
  return schedule_row_parts(c, j->seen, j->columns, 1, part) || schedule_row_parts(c, j->seen, expr_mul(x, j->columns, vectors), 1, part) ||
         schedule_row_parts(c, j->seen, expr_mul(x, j->columns, pairs), 1, part);
}

/* Such a vector, of which every lane reads the same element, that the kernel computes. Element by element that would be scalars, for each vector of rows
   again; so it is computed once a work-item, in vectors, and the work-item does more rows. 0: none. */
static uint32_t shared_vector(const row_job *j) {
  uint32_t part;
  if (!schedule_is_explicit(j->c) || j->sweeps != 1 || row_has_full_outputs(j) || !reads_parts(j, &part)) return 0;
  return made_vector(j, part, SCHEDULE_NEAR_VECTORS * j->c->options->profile->l2_bytes);
}

/* Does every row read all of the node's operand, and the same of it? */
static bool is_beside_rows(const row_job *j, uint32_t node) {
  uint32_t count;
  const ir_graph *g = j->c->graph;
  const uint32_t operand = ir_arg(g, node, 0), rank = ir_at(g, operand)->type.rank;
  const ir_expr *own = ir_attr_ints(g, node, IR_ATTR_axes, &count);
  for (uint32_t i = 0; i < rank; i++) {
    const uint32_t axis = own ? (uint32_t)own[i] : j->full.rank - rank + i;
    if (!j->reduced[axis] && j->full.dims[axis] != 1) return false;
  }
  return ir_tensor_elements(g->pool, &ir_at(g, operand)->type) == j->columns;
}

/* A vector whose terms go with those of every row, that the kernel computes: a layer's quantised activations behind tanh. Each row would do so again. */
static uint32_t vector_of_terms(const row_job *j) {
  const ir_graph *g = j->c->graph;
  for (uint32_t i = j->group->hero; j->sweeps == 1 && i-- > 1;)
    if (j->seen[i] && ir_at(g, i)->op == IR_OP_broadcast && row_is_full(j, i) && is_beside_rows(j, i))
      return made_vector(j, ir_arg(g, i, 0), PRIVATE_ROW_BYTES);
  return 0;
}

static void stage_vector(row_job *j, uint32_t vector, uint32_t lanes) {
  const ir_tensor *t = &ir_at(j->e->g, vector)->type;
  stage_info info = {.node = vector, .storage = STAGE_PRIVATE, .ring_axis = -1};
  memcpy(info.extent, t->dims, t->rank * sizeof *t->dims);
  emit_stage(j->e, &info, lanes, UINT32_MAX);
}

/* Where nothing is asked for ahead, rows in one loop each go on where they end: hardware sees four long runs, where neighbours are four short ones that end
   together. (64 MB times a vector, on two cores of Zen 4: f32 0.91 of the time, 8 bits 0.86.) */
static ir_expr how_far_apart(const row_job *j, ir_expr rows, uint32_t at_once) {
  int64_t count;
  const bool apart = expr_is_const(j->e->x, rows, &count) && count % at_once == 0 && !emit_fetches_runs(j->c->options->profile);
  return apart ? (ir_expr)(count / at_once) : 1;
}

static snt_result build_rows_explicit(row_job *j) {
  fusion_context *c = j->c;
  expr_pool *x = c->graph->pool;
  enum { ROWS_A_COPY = 4 }; /* times the rows of a work-item, so that copies cost little beside them */
  int64_t per, columns = schedule_hint(x, j->columns);
  uint32_t parts[2], spare = schedule_spare_bindings(c, j->group);
  const uint32_t part_count = j->sweeps == 1
                                  ? schedule_row_parts(c, j->seen, j->columns, spare < IR_COUNT(parts) ? spare : IR_COUNT(parts), parts)
                                  : 0;
  j->lanes = schedule_row_lanes(c, j->group);
  j->vector = vector_of_terms(j);
  j->groups = schedule_split_work(c, j->rows, (part_count || j->vector) && columns > ROWS_A_COPY ? columns / ROWS_A_COPY : columns, &per);
  j->group_var = emit_group(j->e, j->groups);
  if (j->vector && per > 1) stage_vector(j, j->vector, j->lanes);
  for (uint32_t i = 0; i < part_count; i++) schedule_stage_parts(j->e, parts[i], j->group_var, j->groups);
  const ir_expr first = expr_mul(x, j->group_var, expr_int(x, per));
  const ir_expr last = per == 1 ? expr_add(x, first, 1) : expr_min(x, expr_add(x, first, expr_int(x, per)), j->rows);
  j->fetches = c->options->profile->caps.prefetch;
  for (uint32_t d = 0; d + 1 < j->full.rank; d++) j->fetches &= !(j->reduced[d] && !j->reduced[d + 1]);
  j->follows = per > 1;
  j->stores_last = row_stores_in(j, j->sweeps);
  const uint32_t at_once = per > 1 ? rows_at_once(j, FEW) : 1;
  j->trails = per > 1 && row_can_trail(j);
  const ir_expr whole = at_once > 1 ? expr_sub(x, last, expr_mod(x, expr_sub(x, last, first), at_once)) : first;
  if (whole != first) {
    j->apart = how_far_apart(j, expr_sub(x, last, first), at_once);
    const bool apart = j->apart != 1;
    const ir_expr end = apart ? expr_add(x, first, j->apart) : whole;
    const ir_expr row = emit_steps(j->e, "row", first, end, apart ? 1 : at_once);
    const uint32_t sums = (uint32_t)c->options->profile->registers / (2 * at_once);
    emit_rows(j, row, at_once, &(sweep){.lanes = j->lanes, .accumulators = sums});
    emit_loop_end(j->e, row, 0, NULL, NULL);
  }
  if (j->trails) {
    row_emit_trailing(j, first, last);
  } else if (whole != last) {
    const ir_expr row = per == 1 ? first : emit_steps(j->e, "row", whole, last, 1);
    row_go_to(j, row);
    emit_row(j);
    if (per != 1) emit_loop_end(j->e, row, 0, NULL, NULL);
  }
  return finish(j, j->groups);
}

/* Short rows: an item does a row, so that a workgroup has work for all of its lanes. */
static snt_result build_rows_items(row_job *j) {
  expr_pool *x = j->c->graph->pool;
  const uint32_t items = row_items_beside(j->c, schedule_hint(x, j->rows), 1, 1);
  row_drop_shared_stages(j, true);
  j->items = 1;
  j->groups = expr_ceil_div(x, j->rows, (ir_expr)items);
  j->group_var = emit_group(j->e, j->groups);
  const ir_expr row = expr_add(x, expr_mul(x, j->group_var, (ir_expr)items), emit_item(j->e, 0, items));
  const bool whole = expr_proves_lt(x, row, j->rows);
  if (!whole) emit_if_below(j->e, row, j->rows);
  row_go_to(j, row);
  emit_row(j);
  if (!whole) emit_if_end(j->e);
  return finish(j, j->groups);
}

static snt_result build_rows_lanes(row_job *j) {
  enum { SHORT = 16, WARP = 32, TREE_ITEMS = 8 /* partial sums of a fixed order: emit/reduce.c */ };
  fusion_context *c = j->c;
  expr_pool *x = c->graph->pool;
  const cost_profile *p = c->options->profile;
  const int64_t columns = schedule_hint(x, j->columns), rows = schedule_hint(x, j->rows);
  j->lanes = row_lanes_along(j, columns);
  j->items = (uint32_t)p->row_items;
  if (fusion_keeps_order(c->options)) {
    uint32_t most = columns < SHORT ? 1 : TREE_ITEMS;
    while (most > 1 && most > j->items) most /= 2;
    j->items = most;
  }
  if (j->items < 1) j->items = 1;
  /* Beyond a subgroup an item has four elements at least, which is what its part of a sum through local memory is worth. */
  while (j->items > 1 && (int64_t)j->items * (j->items > p->subgroup_min ? 4 : j->lanes) > columns) j->items /= 2;
  j->items = whole_items(j, columns);
  const bool many = !row_has_full_outputs(j) && p->subgroup_min >= WARP && (double)rows >= p->units * p->lanes;
  if (columns <= (many ? WARP * 2 : SHORT) && rows >= columns) return build_rows_items(j);
  if (j->items > 1 && fusion_keeps_order(c->options)) row_leave_to_last(j); /* each item takes what is left over */
  else if (j->items > 1) row_drop_shared_stages(j, false);
  j->groups = j->rows;
  if (row_is_of_subgroup(j)) j->group_var = emit_shares(j->e, &j->groups, &j->item);
  else j->group_var = emit_group(j->e, j->groups), j->item = emit_item(j->e, 0, j->items);
  if (row_fits_aligned(j)) row_go_to_aligned(j);
  else row_go_to(j, j->group_var);
  if (j->items > 1) emit_shared_row(j);
  else emit_row(j);
  return finish(j, j->groups);
}

/* The last kept axis along the lanes: each lane reduces its own row; full outputs go column by column. */
static void emit_across(row_job *j, const ir_expr *outer_at, ir_expr inner, uint32_t lanes) {
  emit *e = j->e;
  ir_expr kept_at[SNT_MAX_RANK];
  memcpy(kept_at, outer_at, sizeof kept_at);
  const ir_expr at = kept_at[j->kept_rank - 1] = emit_lanes(e, inner, lanes);
  j->first = inner, j->lanes = lanes * j->vectors;
  const sweep how = {.lanes = 1, .accumulators = 1, .items = j->items, .item = j->item};
  row_set_place(j, kept_at);
  if (j->vectors > 1) emit_rows(j, at, j->vectors, &how);
  else {
    reduce_row(j, &how);
    const uint32_t lead = j->items > 1 ? kir_2(e->k, KIR_eq, emit_expr(e, j->item), kir_const_int(e->k, kir_t(SNT_U32, 1), 0)) : 0;
    if (lead) emit_if(e, lead);
    store_rows(j, at, 1);
    if (lead) emit_if_end(e);
  }
  emit_scalar_lanes(e);
}

/* Which rows the work-item, or each of its vectors, does: `unit` of parts * outer. */
static void emit_across_unit(row_job *j, ir_expr unit, ir_expr parts, uint32_t lanes, uint32_t items) {
  emit *e = j->e;
  expr_pool *x = e->x;
  const ir_expr inner = j->kept[j->kept_rank - 1];
  ir_expr outer_at[SNT_MAX_RANK] = {0};
  map_delinear(x, expr_div(x, unit, parts), j->kept_rank - 1, j->kept, outer_at);
  const ir_expr width = lanes * j->vectors;
  const ir_expr first = expr_mul(x, expr_add(x, expr_mul(x, expr_mod(x, unit, parts), items), emit_item(e, !j->down, items)), width);
  const ir_expr last = expr_add(x, first, width);
  if (expr_proves_le(x, last, inner)) {
    emit_across(j, outer_at, first, lanes);
    return;
  }
  emit_if(e, kir_2(e->k, KIR_le, emit_expr(e, last), emit_expr(e, inner)));
  emit_across(j, outer_at, first, lanes);
  if (lanes > 1) {
    emit_else(e, 0, NULL);
    const ir_expr t = emit_steps(e, "t", first, inner, 1);
    emit_across(j, outer_at, t, 1);
    emit_loop_end(e, t, 0, NULL, NULL);
  }
  emit_if_end(e);
}

/* Vectors of a work-item's unit: a walk down long columns asks for a line or two of each row, of four where two groups are left for each of the device's units.
   Sums by words go side by side however much they compute (rewrite/words.c), as many as a quarter of the registers: each has a sum of the block at hand and
   one of the row, and what a word stands for is there for all of them. (Rows of 8 bits times 16384 x 4096 of 4 bits, two cores of Zen 4: three of them two
   vectors wide 2.1 to 0.9 ms, four 1.33 to 1.01.) */
static uint32_t vectors_at_once(const row_job *j, ir_expr inner, uint32_t lanes) {
  enum { LONG = 128 };
  expr_pool *x = j->c->graph->pool;
  const int64_t rows = schedule_hint(x, j->rows), least = 2 * (int64_t)j->c->options->profile->units * lanes;
  const double registers = j->c->options->profile->registers;
  uint32_t part, vectors = 1;
  if (!schedule_is_explicit(j->c)) return 1;
  const bool words = reads_parts(j, &part);
  if (words || schedule_hint(x, j->columns) >= LONG) vectors = rows_at_once(j, words ? UINT32_MAX : FEW);
  if (words && vectors > 1 && registers >= 4 * MOST_AT_ONCE) vectors = MOST_AT_ONCE;
  while (vectors > 1 && (expr_mod(x, inner, (ir_expr)(lanes * vectors)) != 0 || rows < least * vectors)) vectors--;
  while (vectors > 1 && j->staged_count && !schedule_keeps_rows(j->c, j->group, vectors)) vectors /= 2;
  return vectors;
}

/* Is the value the same for all places but those along the first axis? */
static bool varies_along_first(const ir_graph *g, uint32_t node, uint32_t depth) {
  const ir_node *n = ir_at(g, node);
  if (n->type.rank == 0 || ir_is_literal(g, node)) return true;
  if (n->op == IR_OP_iota) return ir_attr_int(g, node, IR_ATTR_axis, 0) == 0;
  if (n->op == IR_OP_broadcast) return ir_at(g, ir_arg(g, node, 0))->type.rank == 0;
  if (!(ir_ops[n->op].flags & IR_POINTWISE) || !depth) return false;
  for (uint32_t i = 0; i < n->arity; i++)
    if (!varies_along_first(g, ir_arg(g, node, i), depth - 1)) return false;
  return true;
}

/* The select that leaves out whole places of the first axis, of which nothing is stored: regions behind their count. 0: none. */
static uint32_t first_axis_chooser(const row_job *j) {
  enum { DEEP = 4 };
  const ir_graph *g = j->c->graph;
  const uint32_t chooser = j->sweeps == 1 && j->group->output_count == 1 ? emit_chooser(j->c, j->group, *j->reduce) : 0;
  const bool unread = chooser && chooser == fusion_through_views(g, j->group->outputs[0]) && ir_attr_flag(g, chooser, IR_ATTR_unread);
  return unread && j->kept_rank > 1 && varies_along_first(g, ir_arg(g, chooser, 0), DEEP) ? chooser : 0;
}

/* Each group does its part of every place of the first axis that is wanted: parts are even however many these are, and of the others one thing is asked. */
static bool emit_chosen(row_job *j, ir_expr parts, uint32_t lanes, int64_t least_groups) {
  emit *e = j->e;
  expr_pool *x = e->x;
  const uint32_t chooser = first_axis_chooser(j);
  const ir_expr units = chooser ? expr_mul(x, parts, schedule_product(x, j->kept_rank - 2, j->kept + 1)) : 1;
  if (schedule_hint(x, units) < least_groups) return false;
  j->groups = expr_int(x, least_groups);
  j->group_var = emit_group(e, j->groups);
  const ir_expr place = emit_steps(e, "first", 0, j->kept[0], 1);
  ir_expr kept_at[SNT_MAX_RANK] = {place};
  row_set_place(j, kept_at);
  const map_access at = row_result_at(j, *j->reduce);
  const uint32_t wanted = emit_wanted(e, *j->reduce, chooser, &at);
  if (wanted) emit_if(e, wanted);
  const ir_expr lo = schedule_part_start(x, units, j->groups, j->group_var),
                hi = schedule_part_start(x, units, j->groups, expr_add(x, j->group_var, 1));
  const ir_expr unit = emit_steps(e, "rows", lo, hi, 1);
  emit_across_unit(j, expr_add(x, expr_mul(x, place, units), unit), parts, lanes, 1);
  emit_loop_end(e, unit, 0, NULL, NULL);
  if (wanted) emit_if_end(e);
  emit_loop_end(e, place, 0, NULL, NULL);
  return true;
}

static snt_result build_across(row_job *j) {
  fusion_context *c = j->c;
  emit *e = j->e;
  expr_pool *x = c->graph->pool;
  const bool explicit_lanes = schedule_is_explicit(c);
  const ir_expr inner = j->kept[j->kept_rank - 1], outer = schedule_product(x, j->kept_rank - 1, j->kept);
  uint32_t lanes = explicit_lanes ? schedule_row_lanes(c, j->group) : schedule_item_lanes(c);
  while (lanes > 1 && (lanes > schedule_hint(x, inner) || (!explicit_lanes && inner >= 0 && inner < SCHEDULE_LINE && inner % lanes)))
    lanes /= 2;
  uint32_t items = explicit_lanes ? 1 : row_items_beside(c, schedule_hint(x, inner), schedule_hint(x, outer), lanes);
  j->items = explicit_lanes ? 1 : row_items_down(j, lanes, &items);
  j->down = items > 1;
  if (j->items > 1) j->item = emit_item(e, j->down, j->items);
  j->vectors = vectors_at_once(j, inner, lanes);
  const ir_expr parts = expr_ceil_div(x, inner, (ir_expr)(lanes * j->vectors * items)), units = expr_mul(x, parts, outer);
  int64_t per = 1;
  if (explicit_lanes && emit_chosen(j, parts, lanes, (int64_t)schedule_least_parts(c))) return finish(j, j->groups);
  j->vector = shared_vector(j);
  j->groups = explicit_lanes ? schedule_split_work(c, units, schedule_hint(x, j->columns) * lanes * j->vectors, &per) : units;
  j->group_var = emit_group(e, j->groups);
  if (j->vector) stage_vector(j, j->vector, lanes);
  if (per == 1) {
    emit_across_unit(j, j->group_var, parts, lanes, items);
    return finish(j, j->groups);
  }
  const ir_expr lo = expr_mul(x, j->group_var, expr_int(x, per)), hi = expr_min(x, expr_add(x, lo, expr_int(x, per)), units);
  const ir_expr unit = emit_steps(e, "rows", lo, hi, 1);
  emit_across_unit(j, unit, parts, lanes, items);
  emit_loop_end(e, unit, 0, NULL, NULL);
  return finish(j, j->groups);
}

snt_result schedule_row_build(fusion_context *c, const fusion_group *group) {
  row_job j = {.c = c, .group = group, .items = 1, .lanes = 1};
  j.e = emit_begin(c, group, fusion_kind_names[group->kind]);
  if (!j.e) return ir_no_memory(c->diag, "schedule");
  row_find_shape(&j);
  j.e->stream = schedule_streams(c, group, true);
  j.keep_stage = schedule_keeps_rows(c, group, 1);
  if (!row_find_kept(&j)) return ir_no_memory(c->diag, "schedule");
  row_find_homes(&j);
  if (j.across) return build_across(&j);
  return schedule_is_explicit(c) ? build_rows_explicit(&j) : build_rows_lanes(&j);
}
