/* Scans along memory where local memory is near: the items of a group walk a line, or a chunk of one, a tile at a time, neighbours beside each other.
   Each takes a vector; what the items before it have is found in local memory, by distances that double; what the tiles before have is carried. */
#include "fusion/schedule/scan_private.h"

uint32_t scan_items(const fusion_context *c, const scan_job *s, uint32_t *lanes) {
  enum { VECTOR = 4, LEAST = 32 };
  const cost_profile *p = c->options->profile;
  expr_pool *x = c->graph->pool;
  const int64_t extent = schedule_hint(x, s->dims[s->axis]);
  const uint32_t most = p->group_items < p->max_items ? (uint32_t)p->group_items : p->max_items;
  *lanes = 1;
  if (!schedule_shares_local(c) || s->op == IR_OP_scan_linear || schedule_product(x, s->rank - s->axis - 1, s->dims + s->axis + 1) != 1 ||
      ir_dtypes[ir_at(c->graph, s->group->hero)->type.dtype].bytes < 2)
    return 1;
  for (*lanes = s->reverse || expr_multiple_of(x, s->dims[s->axis]) % VECTOR ? 1 : VECTOR; *lanes; *lanes /= VECTOR) {
    uint32_t items = most;
    while (items > LEAST && items / 2 * *lanes >= extent) items /= 2;
    if (2 * extent >= items * *lanes) return items;
  }
  *lanes = 1;
  return 1;
}

static uint32_t number(emit *e, int64_t value) { return kir_const_int(e->k, kir_t(SNT_U32, 1), value); }

/* What the item `by` before this one has in a half of the cells; nothing before the first one. */
static uint32_t value_before(emit *e, uint32_t cells, uint32_t base, uint32_t by, uint32_t nothing) {
  const uint32_t own = kir_id(e->k, KIR_local, 0), none = kir_2(e->k, KIR_lt, own, number(e, by));
  const uint32_t from = kir_3(e->k, KIR_select, none, own, kir_2(e->k, KIR_sub, own, number(e, by)));
  const uint32_t at = kir_ix(e->k, 1, (int64_t[]){1}, &from, base);
  return kir_3(e->k, KIR_select, none, nothing, kir_load(e->k, cells, 1, 1, &at));
}

/* The combination of all items before this one, and of all of them. The halves take turns, so that one barrier a distance is enough. */
static uint32_t combine_before(chunk_job *j, uint32_t cells, uint32_t value, uint32_t *all) {
  emit *e = j->e;
  const kir_op op = scan_combine(j->scan->op);
  const uint32_t nothing = scan_identity(e, j->scan->op, emit_value_type(e, value)), own = kir_id(e->k, KIR_local, 0);
  uint32_t base = 0;
  for (uint32_t by = 1;; by *= 2) {
    const uint32_t at = kir_ix(e->k, 1, (int64_t[]){1}, &own, base);
    kir_store(e->k, cells, 1, &at, value);
    kir_barrier(e->k, KIR_SYNC_LOCAL);
    if (by >= j->items) break;
    value = kir_2(e->k, op, value_before(e, cells, base, by, nothing), value);
    base = j->items - base;
  }
  const uint32_t before = value_before(e, cells, base, 1, nothing), last = number(e, base + j->items - 1);
  *all = kir_load(e->k, cells, 1, 1, &last);
  if (!base) kir_barrier(e->k, KIR_SYNC_LOCAL); /* the next tile begins with the half that was just read */
  return before;
}

/* Elements of the line from `place` on to their running values, if there are any. */
static uint32_t scan_tile(chunk_job *j, uint32_t cells, ir_expr vector, ir_expr end, uint32_t carried) {
  emit *e = j->e;
  expr_pool *x = e->x;
  const kir_op op = scan_combine(j->scan->op);
  const uint32_t nothing = scan_identity(e, j->scan->op, kir_t(j->dtype, 1));
  const uint32_t inside = expr_proves_lt(x, vector, end) ? 0 : emit_below(e, vector, end);
  const ir_expr held = inside ? emit_held_below(e, "v", vector, end) : vector;
  const map_access at = scan_place(j, emit_lanes(e, expr_mul(x, held, (ir_expr)j->lanes), j->lanes));
  const uint32_t lane_var = e->lane_var, elements = emit_value(e, ir_arg(e->g, j->scan->group->hero, 0), &at);
  uint32_t parts[16], all, sum = 0;
  emit_scalar_lanes(e);
  if (!elements) return 0;
  const uint32_t wide = kir_splat(e->k, elements, j->lanes);
  for (uint32_t i = 0; i < j->lanes; i++) {
    const uint32_t own = j->lanes > 1 ? kir_lane(e->k, wide, i) : wide;
    sum = i ? kir_2(e->k, op, sum, own) : own;
    parts[i] = sum;
  }
  if (inside) sum = kir_3(e->k, KIR_select, inside, sum, nothing);
  const uint32_t before = kir_2(e->k, op, carried, combine_before(j, cells, sum, &all));
  if (e->k->failed) return 0;
  for (uint32_t i = j->lanes; i-- > 0;)
    parts[i] = !j->scan->exclusive ? kir_2(e->k, op, before, parts[i]) : i ? kir_2(e->k, op, before, parts[i - 1]) : before;
  const uint32_t values = j->lanes > 1 ? kir_vector(e->k, (uint32_t)j->dtype, j->lanes, parts) : parts[0];
  if (inside) emit_if(e, inside);
  emit_use_lanes(e, lane_var, j->lanes);
  (void)scan_store(e, j->scan, &at, values);
  emit_scalar_lanes(e);
  if (inside) emit_if_end(e);
  return kir_2(e->k, op, carried, all);
}

bool scan_walk_tiles(chunk_job *j, uint32_t start) {
  emit *e = j->e;
  expr_pool *x = e->x;
  const ir_expr tile = (ir_expr)(j->items * j->lanes), trips = expr_ceil_div(x, j->size, tile);
  kir_memory m = {.name = "before", .space = KIR_LOCAL, .access = KIR_READ | KIR_WRITE, .rank = 1, .type = kir_t(j->dtype, 1)};
  m.dims[0] = 2 * (uint64_t)j->items;
  const uint32_t cells = kir_memory_add(e->k, &m);
  uint32_t carried, last;
  const ir_expr v = scan_loop(e, 0, trips, 1, 1, &start, &carried);
  const ir_expr first = expr_mul(x, j->chunk, expr_div(x, j->size, (ir_expr)j->lanes));
  const ir_expr vector = expr_add(x, first, expr_add(x, expr_mul(x, v, (ir_expr)j->items), j->item));
  const uint32_t next = scan_tile(j, cells, vector, expr_div(x, j->extent, (ir_expr)j->lanes), carried);
  if (!next) return false;
  emit_loop_end(e, v, 1, &next, &last);
  return true;
}
