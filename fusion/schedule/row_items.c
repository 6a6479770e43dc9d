/* How many items share rows, and in which vectors. In: a row job with its shape, a device's profile. Out: numbers; nothing is emitted. */
#include "fusion/schedule/row_private.h"

bool row_is_of_subgroup(const row_job *j) {
  const cost_profile *p = j->c->options->profile;
  bool apart = j->rows >= 0 && j->items == p->caps.subgroup_size && p->caps.subgroup_arithmetic && schedule_has_subgroups(j->c) &&
               !fusion_keeps_order(j->c->options);
  for (uint32_t s = 0; s < j->sweeps && apart; s++) {
    const ir_node *n = ir_at(j->c->graph, j->reduce[s]);
    apart = n->type.dtype == SNT_F32 && (n->op == IR_OP_reduce_sum || n->op == IR_OP_reduce_max || n->op == IR_OP_reduce_min);
  }
  return apart;
}

static uint32_t least_items(const cost_profile *p) { return p->subgroup_max > 8 ? p->subgroup_max : 8; }

/* Items of a group, each with `lanes` neighbouring rows: no more than there is work for, and few enough that there are groups for the device. */
uint32_t row_items_beside(const fusion_context *c, int64_t inner, int64_t outer, uint32_t lanes) {
  const cost_profile *p = c->options->profile;
  const uint32_t least = least_items(p);
  uint32_t items = (uint32_t)p->group_items;
  while (items > 8 && (int64_t)(items / 2) * lanes >= inner) items /= 2;
  while (items > least && (double)inner / ((double)items * lanes) * (double)outer < p->min_groups) items /= 2;
  return p->max_items && items > p->max_items ? p->max_items : items;
}

/* Rows that begin anywhere hold no vectors: where items read memory together, neighbours take neighbouring elements. */
static bool lies_apart(const row_job *j) {
  const cost_profile *p = j->c->options->profile;
  return p->reads == COST_READS_STORAGE && p->local_bytes > 0 && !fusion_keeps_order(j->c->options) &&
         expr_multiple_of(j->c->graph->pool, j->columns) % 4;
}

/* Vectors of an item along a row: several side by side where they leave no tail and a sweep enough trips. */
uint32_t row_lanes_along(const row_job *j, int64_t columns) {
  enum { TRIPS = 8 };
  const uint32_t wide = schedule_wide_lanes(j->c, j->group);
  const double items = j->c->options->profile->row_items;
  const int64_t trip = wide * (int64_t)(items > 1 ? items : 1);
  if (columns < 4 || lies_apart(j)) return 1;
  return wide < 4 || fusion_keeps_order(j->c->options) || columns < TRIPS * trip || expr_multiple_of(j->c->graph->pool, j->columns) % trip
             ? 4
             : wide;
}

/* Rows that the items of a group walk down at a time, where the columns alone would leave most of the device idle: items beside each other have one line of
   memory of a row, or as much of it as divides the columns, and the sums of those below each other meet in local memory. 1: each walks down alone. */
uint32_t row_items_down(const row_job *j, uint32_t lanes, uint32_t *beside) {
  enum { LEAST = 16, MOST = 64, MOST_ITEMS = 256, TRIPS = 4, CELL = 12 /* bytes: an extremum and its place */ };
  const expr_pool *x = j->c->graph->pool;
  const cost_profile *p = j->c->options->profile;
  const double wanted = p->min_groups * p->row_items * lanes / (double)schedule_hint(x, j->rows);
  const ir_expr inner = j->kept[j->kept_rank - 1];
  const int64_t divides = expr_multiple_of(x, inner);
  uint32_t axis = j->full.rank, width = SCHEDULE_LINE / lanes;
  while (!j->reduced[--axis]) continue;
  if (fusion_keeps_order(j->c->options) || j->staged_count || row_has_full_outputs(j) || divides % lanes) return 1;
  while (divides / lanes % width) width--;
  if (width == 1 && inner != (ir_expr)lanes) return 1; /* of a sector half would be read */
  const bool line = width * lanes == SCHEDULE_LINE;
  const double room = (double)cost_local_room(p) / (CELL * j->sweeps * width * lanes);
  const uint32_t items = line || p->max_items < MOST_ITEMS ? p->max_items : MOST_ITEMS;
  const uint32_t least = width * LEAST < least_items(p) ? (least_items(p) + width - 1) / width : LEAST;
  uint32_t down = line ? MOST : MOST_ITEMS;
  while (down >= least && (down > wanted || down > room || down * width > items || down * TRIPS > schedule_hint(x, j->full.dims[axis])))
    down /= 2;
  if (down < least) return 1;
  *beside = width;
  return down;
}
