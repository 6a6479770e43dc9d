/* Operands of contractions as explicit vectors take them (contract/operands.c), priced: what is copied to a panel, and what is put together lane by lane. */
#include "fusion/contract_set.h"
#include "fusion/group/private.h"
#include "fusion/schedule_common.h"
#include "fusion/winograd.h"

bool group_feeds_contraction(const fusion_context *c, const fusion_group *group, uint32_t node, uint32_t input, uint32_t depth) {
  if (node == input) return true;
  if (depth > 16 || node < input || (!fusion_is_view(c->graph, node) && !fusion_group_has(group, node))) return false;
  for (uint32_t i = 0; i < ir_at(c->graph, node)->arity; i++)
    if (group_feeds_contraction(c, group, ir_arg(c->graph, node, i), input, depth + 1)) return true;
  return false;
}

/* Rows of a tile that share what lies along its lanes: of the longest axis of the result that the operand does not have. */
static double contract_rows(const fusion_context *c, uint32_t node, uint32_t operand) {
  uint32_t count, out_count;
  double rows = 1;
  const ir_expr *own = ir_attr_ints(c->graph, node, operand ? IR_ATTR_rhs : IR_ATTR_lhs, &count),
                *out = ir_attr_ints(c->graph, node, IR_ATTR_out, &out_count);
  for (uint32_t i = 0; i < out_count; i++) {
    const double extent = (double)schedule_hint(c->graph->pool, ir_at(c->graph, node)->type.dims[i]);
    if (fusion_find_label(own, count, out[i]) < 0 && extent > rows) rows = extent;
  }
  return rows;
}

/* Where the loads of an operand lie, at literal coordinates. */
typedef struct load_places {
  const ir_graph *g;
  uint32_t count;
  ir_expr at[16];
} load_places;
static void take_load(void *user, const fusion_load *load) {
  load_places *p = user;
  if (p->count < IR_COUNT(p->at)) p->at[p->count] = map_linear(p->g->pool, load->access, ir_at(p->g, load->node)->type.dims);
  p->count++;
}

static bool find_places(const fusion_context *c, const fusion_group *group, uint32_t operand, const map_access *at, load_places *p) {
  *p = (load_places){.g = c->graph};
  return fusion_walk_loads(c, group, operand, at, take_load, p) && p->count <= IR_COUNT(p->at);
}

/* Elements between what two neighbours along an axis of an operand read, the most of all its loads; INT32_MAX: not the same everywhere. */
static int64_t step_along(const fusion_context *c, const fusion_group *group, uint32_t operand, uint32_t axis) {
  const ir_tensor *t = &ir_at(c->graph, operand)->type;
  expr_pool *x = c->graph->pool;
  map_access at = {.rank = t->rank};
  load_places first, next, last;
  int64_t step, all, extent, most = 0;
  if (!expr_is_const(x, t->dims[axis], &extent) || !find_places(c, group, operand, &at, &first)) return INT32_MAX;
  at.at[axis] = extent > 1;
  if (!find_places(c, group, operand, &at, &next)) return INT32_MAX;
  at.at[axis] = (ir_expr)extent - 1;
  if (!find_places(c, group, operand, &at, &last) || next.count != first.count || last.count != first.count) return INT32_MAX;
  for (uint32_t i = 0; i < first.count; i++) {
    if (!expr_is_const(x, expr_sub(x, next.at[i], first.at[i]), &step) || !expr_is_const(x, expr_sub(x, last.at[i], first.at[i]), &all))
      return INT32_MAX;
    if (step < 0 || all != step * (extent - 1)) return INT32_MAX;
    if (step > most) most = step;
  }
  return most;
}

/* The last axis of an operand of a contraction that is summed over; UINT32_MAX: none is. */
static uint32_t last_term(const fusion_context *c, uint32_t node, uint32_t operand) {
  uint32_t count, out_count, found = UINT32_MAX;
  const ir_expr *own = ir_attr_ints(c->graph, node, operand ? IR_ATTR_rhs : IR_ATTR_lhs, &count),
                *out = ir_attr_ints(c->graph, node, IR_ATTR_out, &out_count);
  for (uint32_t i = 0; i < count; i++)
    if (fusion_find_label(out, out_count, own[i]) < 0) found = i;
  return found;
}

/* A padded operand is computed into a copy, so that the inner loops need no tests. */
static bool is_padded(const fusion_context *c, uint32_t operand) {
  const ir_graph *g = c->graph;
  while (schedule_is_explicit(c) && fusion_is_view(g, operand) && ir_at(g, operand)->op != IR_OP_concat && !c->group_of[operand]) {
    if (ir_at(g, operand)->op == IR_OP_pad) return true;
    operand = ir_arg(g, operand, 0);
  }
  return false;
}

/* The operand of one of the group's contractions that is copied to panels, where it is computed once for all rows; 0: none. */
static uint32_t panel_operand(const fusion_context *c, const fusion_group *group, uint32_t node) {
  const uint32_t lanes = contract_lane_operands(c->graph, node), from = lanes == 1 || lanes == 2 ? ir_arg(c->graph, node, lanes - 1) : 0;
  if (!from || fusion_position(c, group, c->facts[from].base) == UINT32_MAX) return 0;
  const int64_t step = step_along(c, group, from, fusion_contract_lane(c->graph, node, lanes - 1));
  if (contract_rows(c, node, lanes - 1) < (double)contract_rows_to_pay(step)) return 0;
  const uint32_t term = last_term(c, node, lanes - 1);
  return step != 1 || (term != UINT32_MAX && 4 * step_along(c, group, from, term) >= CONTRACT_FAR_APART) ? from : 0;
}

/* A panel is filled along the last axis of its operand: by vectors, if what that reads lies beside each other, else element by element. */
static bool is_turned(const fusion_context *c, const fusion_group *group, uint32_t operand) {
  const ir_tensor *t = &ir_at(c->graph, operand)->type;
  const uint32_t last = group_last_axis(t);
  const int64_t step = last ? step_along(c, group, operand, last - 1) : 1;
  return step > 1 && step < INT32_MAX;
}

void group_find_copies(const fusion_context *c, const fusion_group *group, group_copies *out) {
  enum { PADDED = 3 }; /* for two parts of the columns; 4 rows, and 2 more for the taps */
  contract_set_find(c, group, &out->set);
  for (uint32_t i = 0; i < out->set.count; i++) {
    const uint32_t node = out->set.node[i];
    bool padded = false;
    for (uint32_t o = 0; o < 2; o++) {
      const bool own = is_padded(c, ir_arg(c->graph, node, o));
      out->times[i][o] = own ? PADDED : 0;
      padded |= own;
    }
    const uint32_t panel = out->panel[i] = schedule_is_explicit(c) && !padded ? panel_operand(c, group, node) : 0;
    for (uint32_t o = 0; panel && o < 2; o++)
      if (ir_arg(c->graph, node, o) == panel) out->times[i][o] = is_turned(c, group, panel) ? GROUP_ALONE : GROUP_MARGIN;
  }
}

/* A panel is written once and read by the tiles of its columns, from a near cache; parts that alternate in it are put together lane by lane. */
void group_add_panel(const fusion_context *c, const fusion_group *group, uint32_t operand, cost_work *w) {
  const cost_profile *p = c->options->profile;
  if (w->stream_count < COST_MAX_STREAMS)
    w->streams[w->stream_count++] = (cost_stream){
        .accesses = 2 * c->elements[operand] * ir_dtypes[ir_at(c->graph, operand)->type.dtype].bytes, .reuse_bytes = p->l2_bytes / 2};
  for (uint32_t i = 0; i < group->count && group->nodes[i] < group->hero; i++) {
    const uint32_t node = group->nodes[i], base = c->facts[ir_arg(c->graph, node, 0)].base;
    if (fusion_alternates(c->graph, base) && group_feeds_contraction(c, group, operand, node, 0))
      w->extra_cycles += c->elements[base] * ir_at(c->graph, base)->arity * p->lane_load_cycles * p->lanes;
  }
}

/* Winograd's transforms have vectors along the channels, whatever their result is turned to (schedule/winograd.c).
   Vectors of an operand that is no constant, and whose neighbours do not lie beside each other, are put together lane by lane: once, in a
   panel, where enough rows share it, else for every term (contract/operands.c). */
void group_add_lane_operand(const fusion_context *c, const fusion_group *group, cost_work *w) {
  if (group->kind != GROUP_CONTRACT || !c->neighbours) return;
  const ir_node *n = ir_at(c->graph, group->hero);
  const uint32_t lanes = contract_lane_operands(c->graph, group->hero);
  bool output;
  if (n->op != IR_OP_contract || (lanes != 1 && lanes != 2) || winograd_of(c, group->hero, &output)) return;
  const uint32_t from = ir_arg(c->graph, group->hero, lanes - 1);
  if (c->neighbours[n->args + lanes - 1] < FUSION_APART || ir_at(c->graph, c->facts[from].base)->op == IR_OP_const) return;
  const int64_t step = step_along(c, group, from, fusion_contract_lane(c->graph, group->hero, lanes - 1));
  const bool panel = contract_rows(c, group->hero, lanes - 1) >= (double)contract_rows_to_pay(step);
  const double loads = panel ? c->elements[from] : c->elements[group->hero] * group_contract_depth(c, group->hero);
  w->extra_cycles += loads * c->options->profile->lane_load_cycles * c->options->profile->lanes;
}

/* Columns of a tile: as many vectors as are full. */
static double tile_columns(const fusion_context *c, uint32_t node) {
  enum { MOST_VECTORS = 4 };
  const ir_tensor *t = &ir_at(c->graph, node)->type;
  const double lanes = c->options->profile->lanes;
  const uint32_t axis = group_last_axis(t);
  const double columns = axis ? (double)schedule_hint(c->graph->pool, t->dims[axis - 1]) : 1;
  return columns < lanes ? lanes : columns < MOST_VECTORS * lanes ? columns : MOST_VECTORS * lanes;
}

/* An element of the other operand is the same for all lanes: as a factor it is loaded, but one of fewer bytes than the sum is put into a
   vector, then widened, once for every tile of columns. */
void group_add_row_operand(const fusion_context *c, const fusion_group *group, cost_work *w) {
  const cost_profile *p = c->options->profile;
  const ir_node *n = ir_at(c->graph, group->hero);
  if (group->kind != GROUP_CONTRACT || n->op != IR_OP_contract || !schedule_is_explicit(c) || !ir_dtypes[n->type.dtype].is_float) return;
  const uint32_t lanes = contract_lane_operands(c->graph, group->hero), bytes = ir_dtypes[n->type.dtype].bytes;
  if (lanes != 1 && lanes != 2) return;
  const uint32_t from = ir_arg(c->graph, group->hero, 2 - lanes);
  if (is_padded(c, from)) return;
  for (uint32_t i = 0; i < group->input_count; i++) {
    const uint32_t input = group->inputs[i];
    if (ir_dtypes[ir_at(c->graph, input)->type.dtype].bytes >= bytes || !group_feeds_contraction(c, group, from, input, 0)) continue;
    const double made = c->elements[group->hero] * group_contract_depth(c, group->hero) / tile_columns(c, group->hero);
    w->extra_cycles += made * (p->lane_load_cycles + p->op_cycles) * p->lanes;
  }
}
