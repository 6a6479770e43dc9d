/* Kind `scatter`: one scatter, by the way that fits its operation, its sizes and the device. Every way gives each element what the reference's
   row-major order gives it, but for sums by float atomics, which only lanes use and only where the numerics leave the order free.
     look     few indices, or where each element of a row is an owner: each looks at all of them (schedule/loop.c with emit/scatter.c)
     columns  set into a state, few updates: an item or a vector takes all of them in order, column by column
     winners  set: of the updates that name a row, the last leaves its number there by an atomic maximum; rows then take what their number says
     atomics  32-bit integers, and sums of floats as above: all updates at once
     owners   anything: a part of the rows belongs to one group or item, which goes through all the indices and takes those that are its own
   The result begins as a copy of the operand, unless it is a state that is written in place. */
#include "fusion/emit_private.h"
#include "fusion/schedule_common.h"
#include "fusion/schedules.h"

enum { LOOK_INDICES = 8, ATOMIC_COLUMNS = 4, COLUMN_UPDATES = 64 };

typedef struct scatter_job {
  fusion_context *c;
  const fusion_group *group;
  emit *e;
  ir_op op;
  uint32_t node, base, index, updates, axis, rank, index_rank;
  const ir_expr *dims, *index_dims;
  ir_expr outer, extent, inner, count; /* of the result as [outer, extent, inner]; updates */
  bool in_place;
  uint32_t winners; /* plan buffer, or UINT32_MAX */
  ir_expr o, p, row;
  uint32_t sums; /* plan buffer that owners add up in: the result's own unless that is narrow */
  int32_t sum_type;
} scatter_job;

static snt_result starved(const scatter_job *j) { return ir_no_memory(j->c->diag, "schedule"); }

static snt_result begin(scatter_job *j, const char *suffix) {
  j->e = emit_begin(j->c, j->group, suffix);
  return j->e ? SNT_OK : starved(j);
}

/* ---- places ---- */

static map_access at_row(const scatter_job *j, ir_expr o, ir_expr row, ir_expr column) {
  map_access at = {.rank = j->rank};
  map_delinear(j->e->x, o, j->axis, j->dims, at.at);
  at.at[j->axis] = row;
  map_delinear(j->e->x, column, j->rank - j->axis - 1, j->dims + j->axis + 1, at.at + j->axis + 1);
  return at;
}

static map_access at_update(const scatter_job *j, ir_expr o, ir_expr p, ir_expr column) {
  map_access at = {.rank = j->rank - 1 + j->index_rank};
  map_delinear(j->e->x, o, j->axis, j->dims, at.at);
  map_delinear(j->e->x, p, j->index_rank, j->index_dims, at.at + j->axis);
  map_delinear(j->e->x, column, j->rank - j->axis - 1, j->dims + j->axis + 1, at.at + j->axis + j->index_rank);
  return at;
}

/* The row that update `p` names as u32; one outside is beyond every row. */
static uint32_t row_of(const scatter_job *j, ir_expr p) {
  emit *e = j->e;
  map_access at = {.rank = j->index_rank};
  map_delinear(e->x, p, j->index_rank, j->index_dims, at.at);
  const uint32_t index = emit_value(e, j->index, &at);
  if (!index || e->k->failed) return 0;
  return kir_bitcast(e->k, kir_t(SNT_U32, 1), emit_signed_index(e, index));
}

static ir_expr row_variable(const scatter_job *j, uint32_t row) { return emit_var_for(j->e, "row", row, 0, j->extent); }
static ir_expr offset_of(const scatter_job *j, ir_expr row, ir_expr column) {
  const map_access at = at_row(j, j->o, row, column);
  return map_linear(j->e->x, &at, j->dims);
}

static uint32_t put_atomic(emit *e, kir_op op, uint32_t memory, ir_expr offset, uint32_t value) {
  const kir_inst in = {.op = (uint16_t)op, .type = e->k->memories.at[memory].type, .index = memory};
  return kir_put(e->k, &in, 2, (uint32_t[]){emit_expr(e, offset), value});
}

/* ---- winners ---- */

static void put_zero(emit *e, void *user, ir_expr at) {
  const scatter_job *j = user;
  const uint32_t none = kir_const_int(e->k, kir_t(SNT_U32, 1), 0);
  emit_store(e, emit_bind(e, j->winners, KIR_WRITE), SNT_U32, at, none);
}

static snt_result build_zeros(scatter_job *j) {
  SNT_TRY(begin(j, "zeros"));
  ir_expr groups;
  const ir_expr unit = schedule_units(j->e, expr_ceil_div(j->e->x, j->extent, 64), 64, &groups), lo = expr_mul(j->e->x, unit, 64);
  schedule_vector_loop(j->e, lo, expr_min(j->e->x, expr_add(j->e->x, lo, 64), j->extent), schedule_lanes(j->c), 1, put_zero, j);
  schedule_units_end(j->e, unit);
  return emit_end(j->e, groups, 0, 0, NULL);
}

/* The number of the last update that names each row, counted from 1. */
static snt_result build_marks(scatter_job *j) {
  SNT_TRY(begin(j, "winners"));
  emit *e = j->e;
  ir_expr groups;
  const ir_expr p = schedule_units(e, j->count, 4, &groups);
  const uint32_t row = row_of(j, p);
  emit_if(e, kir_2(e->k, KIR_lt, row, emit_expr(e, j->extent)));
  const uint32_t number = emit_expr(e, expr_add(e->x, p, 1));
  const ir_expr at = row_variable(j, row);
  put_atomic(e, KIR_atomic_max, emit_bind(e, j->winners, KIR_READ | KIR_WRITE), at, number);
  emit_if_end(e);
  schedule_units_end(e, p);
  return emit_end(e, groups, 0, 0, NULL);
}

static uint32_t winner_of(const scatter_job *j, ir_expr row) {
  return emit_load(j->e, emit_bind(j->e, j->winners, KIR_READ), SNT_U32, row, 0, NULL);
}

static void put_base(emit *e, void *user, ir_expr column) {
  const scatter_job *j = user;
  const map_access at = at_row(j, j->o, j->row, column);
  emit_store_node(e, j->node, &at, emit_value(e, j->base, &at));
}
static void put_update(emit *e, void *user, ir_expr column) {
  const scatter_job *j = user;
  const map_access at = at_row(j, j->o, j->row, column), from = at_update(j, j->o, j->p, column);
  emit_store_node(e, j->node, &at, emit_value(e, j->updates, &from));
}

static void put_row(scatter_job *j, ir_expr column, schedule_body body) {
  if (schedule_is_explicit(j->c)) schedule_vector_loop(j->e, 0, j->inner, schedule_lanes(j->c), 1, body, j);
  else body(j->e, j, column);
}

/* The whole result, row by row: the operand's, or that of the update that won. */
static snt_result build_rows(scatter_job *j) {
  SNT_TRY(begin(j, "scatter"));
  emit *e = j->e;
  expr_pool *x = e->x;
  ir_expr groups, column = 0;
  const ir_expr rows = expr_mul(x, j->outer, j->extent);
  const bool explicit_rows = schedule_is_explicit(j->c);
  const ir_expr unit = schedule_units(e, explicit_rows ? rows : expr_mul(x, rows, j->inner), schedule_hint(x, j->inner), &groups);
  const ir_expr row = explicit_rows ? unit : expr_div(x, unit, j->inner);
  if (!explicit_rows) column = expr_mod(x, unit, j->inner);
  j->o = expr_div(x, row, j->extent);
  j->row = expr_mod(x, row, j->extent);
  const uint32_t winner = winner_of(j, j->row), one = kir_const_int(e->k, kir_t(SNT_U32, 1), 1);
  emit_if(e, kir_2(e->k, KIR_ge, winner, one));
  j->p = emit_var_for(e, "winner", kir_2(e->k, KIR_sub, winner, one), 0, j->count);
  put_row(j, column, put_update);
  emit_else(e, 0, NULL);
  put_row(j, column, put_base);
  emit_if_end(e);
  schedule_units_end(e, unit);
  return emit_end(e, groups, 0, 0, NULL);
}

/* ---- all updates at once ---- */

static void put_combined(emit *e, void *user, ir_expr column) {
  const scatter_job *j = user;
  static const kir_op ops[] = {[IR_OP_scatter_add - IR_OP_scatter_set] = KIR_atomic_add,
                               [IR_OP_scatter_min - IR_OP_scatter_set] = KIR_atomic_min,
                               [IR_OP_scatter_max - IR_OP_scatter_set] = KIR_atomic_max};
  const map_access from = at_update(j, j->o, j->p, column);
  const uint32_t value = emit_value(e, j->updates, &from);
  if (!value) return;
  put_atomic(e, ops[j->op - IR_OP_scatter_set], emit_bind(e, fusion_buffer_of(j->c, j->node), KIR_READ | KIR_WRITE),
             offset_of(j, j->row, column), value);
}

/* Explicit: an update a trip, its row in vectors where it is only stored. Lanes: an element an item. */
static snt_result build_updates(scatter_job *j, bool atomics) {
  SNT_TRY(begin(j, "scatter"));
  emit *e = j->e;
  expr_pool *x = e->x;
  ir_expr groups, column = 0;
  const bool rows = schedule_is_explicit(j->c);
  const ir_expr all = expr_mul(x, j->outer, j->count);
  const ir_expr unit = schedule_units(e, rows ? all : expr_mul(x, all, j->inner), schedule_hint(x, j->inner), &groups);
  const ir_expr update = rows ? unit : expr_div(x, unit, j->inner);
  if (!rows) column = expr_mod(x, unit, j->inner);
  j->o = expr_div(x, update, j->count);
  j->p = expr_mod(x, update, j->count);
  const uint32_t row = row_of(j, j->p);
  emit_if(e, kir_2(e->k, KIR_lt, row, emit_expr(e, j->extent)));
  j->row = row_variable(j, row);
  if (j->winners != UINT32_MAX) emit_if(e, kir_2(e->k, KIR_eq, winner_of(j, j->row), emit_expr(e, expr_add(x, j->p, 1))));
  if (atomics && rows) {
    const ir_expr v = emit_steps(e, "c", 0, j->inner, 1);
    put_combined(e, j, v);
    emit_loop_end(e, v, 0, NULL, NULL);
  } else {
    put_row(j, column, atomics ? put_combined : put_update);
  }
  if (j->winners != UINT32_MAX) emit_if_end(e);
  emit_if_end(e);
  schedule_units_end(e, unit);
  return emit_end(e, groups, 0, 0, NULL);
}

/* All updates one after the other: what is stored last stays. */
static snt_result build_columns(scatter_job *j) {
  SNT_TRY(begin(j, "scatter"));
  emit *e = j->e;
  expr_pool *x = e->x;
  ir_expr groups, column = 0;
  const bool rows = schedule_is_explicit(j->c);
  const ir_expr unit = schedule_units(e, rows ? j->outer : expr_mul(x, j->outer, j->inner),
                                      schedule_hint(x, expr_mul(x, j->count, j->inner)), &groups);
  j->o = rows ? unit : expr_div(x, unit, j->inner);
  if (!rows) column = expr_mod(x, unit, j->inner);
  const ir_expr p = emit_steps(e, "p", 0, j->count, 1);
  const uint32_t row = row_of(j, p);
  emit_if(e, kir_2(e->k, KIR_lt, row, emit_expr(e, j->extent)));
  j->p = p;
  j->row = row_variable(j, row);
  put_row(j, column, put_update);
  emit_if_end(e);
  emit_loop_end(e, p, 0, NULL, NULL);
  schedule_units_end(e, unit);
  return emit_end(e, groups, 0, 0, NULL);
}

/* ---- owners ---- */

static uint32_t sums_of(const scatter_job *j) { return emit_bind(j->e, j->sums, KIR_READ | KIR_WRITE); }

/* A value of the sums' type, or of the result's: sums of narrow integers may be 32 bits wide; those of floats are converted by loads and stores. */
static uint32_t converted(const scatter_job *j, int32_t dtype, uint32_t value) {
  if (!value || j->e->k->failed || ir_dtypes[dtype].is_float) return value;
  return kir_cast(j->e->k, kir_t((uint32_t)dtype, emit_value_type(j->e, value).lanes), value);
}

static void start_sum(emit *e, void *user, ir_expr column) {
  const scatter_job *j = user;
  const map_access at = at_row(j, j->o, j->row, column);
  const uint32_t value = converted(j, j->sum_type, emit_value(e, j->base, &at));
  emit_store(e, sums_of(j), j->sum_type, offset_of(j, j->row, column), value);
}
static void add_to_sum(emit *e, void *user, ir_expr column) {
  const scatter_job *j = user;
  const map_access from = at_update(j, j->o, j->p, column);
  const ir_expr offset = offset_of(j, j->row, column);
  const uint32_t value = converted(j, j->sum_type, emit_value(e, j->updates, &from)),
                 old = emit_load(e, sums_of(j), j->sum_type, offset, 0, NULL);
  const uint32_t sum = value && old ? emit_scatter_combine(e, j->op, old, value) : 0;
  if (sum) emit_store(e, sums_of(j), j->sum_type, offset, sum);
}
static void end_sum(emit *e, void *user, ir_expr column) {
  const scatter_job *j = user;
  const map_access at = at_row(j, j->o, j->row, column);
  const uint32_t sum = emit_load(e, sums_of(j), j->sum_type, offset_of(j, j->row, column), 0, NULL);
  emit_store_node(e, j->node, &at, converted(j, ir_at(j->c->graph, j->node)->type.dtype, sum));
}

static void each_own_row(scatter_job *j, ir_expr first, ir_expr end, ir_expr column, schedule_body body) {
  j->row = emit_steps(j->e, "r", first, end, 1);
  put_row(j, column, body);
  emit_loop_end(j->e, j->row, 0, NULL, NULL);
}

/* Parts of the rows: enough to keep the device busy and no more, since each part goes through all the indices. */
static ir_expr part_count(const scatter_job *j) {
  const cost_profile *p = j->c->options->profile;
  expr_pool *x = j->c->graph->pool;
  const int64_t rows = schedule_hint(x, j->extent),
                others = schedule_hint(x, j->outer) * (schedule_is_explicit(j->c) ? 1 : schedule_hint(x, j->inner));
  const double wanted = schedule_is_explicit(j->c) ? 2 * p->units : p->min_groups * p->group_items;
  int64_t parts = (int64_t)(wanted / (double)(others > 0 ? others : 1));
  if (parts > rows) parts = rows;
  return parts < 1 ? 1 : parts;
}

static void add_own_updates(scatter_job *j, ir_expr from, ir_expr to, ir_expr first, ir_expr end, ir_expr column) {
  emit *e = j->e;
  const ir_expr p = emit_steps(e, "p", from, to, 1);
  const uint32_t row = row_of(j, p), from_first = kir_2(e->k, KIR_sub, row, emit_expr(e, first));
  emit_if(e, kir_2(e->k, KIR_lt, from_first, kir_2(e->k, KIR_sub, emit_expr(e, end), emit_expr(e, first))));
  j->p = p;
  j->row = row_variable(j, row);
  put_row(j, column, add_to_sum);
  emit_if_end(e);
  emit_loop_end(e, p, 0, NULL, NULL);
}

/* Updates [from, to) of all, by the owners of their rows. `starts`: the sums begin as the operand; `ends`: they become the result. */
static snt_result build_share(scatter_job *j, ir_expr from, ir_expr to, bool starts, bool ends) {
  fusion_context *c = j->c;
  SNT_TRY(begin(j, "scatter"));
  emit *e = j->e;
  expr_pool *x = e->x;
  ir_expr groups, column = 0;
  const bool rows = schedule_is_explicit(c);
  const ir_expr parts = part_count(j), owned = expr_ceil_div(x, j->extent, parts), all = expr_mul(x, j->outer, parts);
  const ir_expr unit = schedule_units(e, rows ? all : expr_mul(x, all, j->inner), schedule_hint(x, expr_mul(x, owned, j->inner)) + 4096,
                                      &groups);
  const ir_expr owner = rows ? unit : expr_div(x, unit, j->inner);
  if (!rows) column = expr_mod(x, unit, j->inner);
  j->o = expr_div(x, owner, parts);
  const ir_expr wanted = expr_mul(x, expr_mod(x, owner, parts), owned), first = expr_min(x, wanted, j->extent),
                end = expr_min(x, expr_add(x, wanted, owned), j->extent);
  if (starts) each_own_row(j, first, end, column, start_sum);
  if (from != to) add_own_updates(j, from, to, first, end, column);
  if (ends) each_own_row(j, first, end, column, end_sum);
  schedule_units_end(e, unit);
  return emit_end(e, groups, 0, 0, NULL);
}

/* A driver that ends loops gets the updates a share at a time, in a loop of the plan, between two shares of none. */
static snt_result build_turns(scatter_job *j, bool starts, bool ends) {
  ir_plan *p = j->c->plan;
  expr_pool *x = p->pool;
  const ir_expr share = j->c->options->profile->max_trips / 4, trips = expr_ceil_div(x, j->count, share);
  const ir_expr turn = expr_var_add(x, "turn", 0, trips, 1);
  if (x->failed) return ir_fail(j->c->diag, SNT_E_LIMIT, "schedule", j->node, "too many updates");
  x->vars.at[emit_var_number(x, turn)].plan = true;
  if (starts) SNT_TRY(build_share(j, 0, 0, true, false));
  const ir_expr from = expr_mul(x, turn, share);
  const plan_loop loop = {.variable = turn, .trips = trips, .first = p->steps.count, .end = p->steps.count + 1};
  if (!IR_PUSH(p->arena, &p->loops, loop)) return starved(j);
  SNT_TRY(build_share(j, from, expr_min(x, expr_add(x, from, share), j->count), false, false));
  return ends ? build_share(j, 0, 0, false, true) : SNT_OK;
}

/* A kernel that writes elements which share a word with others must not read them, as neighbours belong to other groups. */
static snt_result build_owners(scatter_job *j) {
  fusion_context *c = j->c;
  const ir_tensor *t = &ir_at(c->graph, j->node)->type;
  const bool packed = schedule_is_packed(c, t->dtype), half = t->dtype == SNT_F16 || t->dtype == SNT_BF16, narrow = half || packed,
             starts = !j->in_place || narrow;
  const uint32_t bindings = c->options->profile->max_bindings;
  int64_t least, most;
  j->sum_type = half ? SNT_F32 : !packed ? t->dtype : ir_dtypes[t->dtype].is_signed ? SNT_I32 : SNT_U32;
  j->sums = narrow ? fusion_add_scratch(c, "sums", j->sum_type, ir_tensor_elements(c->graph->pool, t)) : fusion_buffer_of(c, j->node);
  expr_bounds(c->graph->pool, j->count, &least, &most);
  if (c->options->profile->max_trips && most > c->options->profile->max_trips / 4) return build_turns(j, starts, narrow);
  if (!narrow || ((!bindings || bindings >= 5) && !(packed && j->in_place))) return build_share(j, 0, j->count, starts, narrow);
  SNT_TRY(build_share(j, 0, 0, true, false)); /* operand, index, updates, sums and result are one binding too many */
  SNT_TRY(build_share(j, 0, j->count, false, false));
  return build_share(j, 0, 0, false, true);
}

/* ---- which way ---- */

static bool same_bytes(const void *data, uint32_t bytes, uint64_t a, uint64_t b) {
  return !memcmp((const char *)data + a * bytes, (const char *)data + b * bytes, bytes);
}

/* Do the updates provably name different rows? */
static bool has_unique_rows(const scatter_job *j) {
  ir_graph *g = j->c->graph;
  const uint32_t index = fusion_through_views(g, j->index);
  int64_t count;
  const bool known = expr_is_const(g->pool, j->count, &count);
  if (known && count <= 1) return true;
  if (index == j->index && ir_at(g, index)->op == IR_OP_iota && j->index_rank == 1) return true;
  const void *data = known && count <= 1024 && index == j->index && ir_at(g, index)->op == IR_OP_const ? ir_const_data(g, index) : NULL;
  j->c->peeked = true;
  const uint32_t bytes = ir_dtypes[ir_at(g, index)->type.dtype].bytes;
  for (uint64_t a = 1; data && a < (uint64_t)count; a++)
    for (uint64_t b = 0; b < a; b++)
      if (same_bytes(data, bytes, a, b)) return false;
  return data != NULL;
}

/* Is each owner an item with one element? Then that stays in a register, and goes through no memory from update to update. */
static bool owns_elements(const scatter_job *j) {
  const uint32_t most_trips = j->c->options->profile->max_trips;
  expr_pool *x = j->c->graph->pool;
  int64_t least, most;
  expr_bounds(x, j->count, &least, &most);
  return !schedule_is_explicit(j->c) && expr_ceil_div(x, j->extent, part_count(j)) == 1 && (!most_trips || most <= most_trips / 4);
}

static bool takes_atomics(const scatter_job *j) {
  const uint8_t dtype = ir_at(j->c->graph, j->node)->type.dtype;
  const bool lanes = !schedule_is_explicit(j->c), narrow_rows = schedule_hint(j->c->graph->pool, j->inner) < ATOMIC_COLUMNS;
  if (j->op == IR_OP_scatter_mul || j->op == IR_OP_scatter_set) return false;
  if (dtype == SNT_I32 || dtype == SNT_U32) return lanes || narrow_rows;
  return lanes && dtype == SNT_F32 && j->op == IR_OP_scatter_add && j->c->options->profile->caps.atomics_f32 &&
         !fusion_keeps_order(j->c->options);
}

static bool reads(const scatter_job *j, uint32_t node, uint32_t input) {
  bool does = node == input;
  if (!does && fusion_is_stored(j->c, node) && node != j->node) return false;
  for (uint32_t i = 0; i < ir_at(j->c->graph, node)->arity && !does; i++) does = reads(j, ir_arg(j->c->graph, node, i), input);
  return does;
}

/* For the numbers of winners beside the result and what the kernel that takes them reads: the updates, and the operand, or of a state that
   stays where it is the index again. */
static bool has_room(const scatter_job *j) {
  const uint32_t limit = j->c->options->profile->max_bindings;
  uint32_t count = 2;
  for (uint32_t i = 0; i < j->group->input_count; i++) {
    const uint32_t input = j->group->inputs[i];
    count += reads(j, j->updates, input) || reads(j, j->in_place ? j->index : j->base, input);
  }
  return !limit || count <= limit;
}

static snt_result build_set(scatter_job *j) {
  if (has_unique_rows(j)) {
    if (!j->in_place) SNT_TRY(schedule_copy(j->c, j->base, fusion_buffer_of(j->c, j->node)));
    return build_updates(j, false);
  }
  int64_t least, most;
  expr_bounds(j->c->graph->pool, j->count, &least, &most);
  const uint32_t trips = j->c->options->profile->max_trips;
  if (j->in_place && schedule_hint(j->c->graph->pool, j->count) <= COLUMN_UPDATES && (!trips || most < trips / 2)) return build_columns(j);
  if (!has_room(j)) return build_owners(j);
  j->winners = fusion_add_scratch(j->c, "winners", SNT_U32, j->extent);
  SNT_TRY(build_zeros(j));
  SNT_TRY(build_marks(j));
  return j->in_place ? build_updates(j, false) : build_rows(j);
}

snt_result schedule_scatter_build(fusion_context *c, const fusion_group *group) {
  const ir_graph *g = c->graph;
  expr_pool *x = g->pool;
  const uint32_t node = group->hero;
  const ir_tensor *t = &ir_at(g, node)->type, *index = &ir_at(g, ir_arg(g, node, 1))->type;
  scatter_job j = {.c = c, .group = group, .op = (ir_op)ir_at(g, node)->op, .node = node, .rank = t->rank, .dims = t->dims};
  j.base = ir_arg(g, node, 0), j.index = ir_arg(g, node, 1), j.updates = ir_arg(g, node, 2);
  j.axis = (uint32_t)ir_attr_int(g, node, IR_ATTR_axis, 0);
  j.index_rank = index->rank, j.index_dims = index->dims;
  j.outer = schedule_product(x, j.axis, t->dims), j.extent = t->dims[j.axis];
  j.inner = schedule_product(x, t->rank - j.axis - 1, t->dims + j.axis + 1);
  j.count = schedule_product(x, index->rank, index->dims);
  j.winners = UINT32_MAX;
  j.in_place = ir_at(g, j.base)->op == IR_OP_state && fusion_buffer_of(c, node) == fusion_buffer_of(c, j.base);
  int64_t count;
  if (!j.in_place && expr_is_const(x, j.count, &count) && count <= LOOK_INDICES) return schedule_loop_build(c, group);
  if (j.op == IR_OP_scatter_set) return build_set(&j);
  if (!takes_atomics(&j)) return owns_elements(&j) ? schedule_loop_build(c, group) : build_owners(&j);
  if (!j.in_place) SNT_TRY(schedule_copy(c, j.base, fusion_buffer_of(c, node)));
  return build_updates(&j, true);
}
