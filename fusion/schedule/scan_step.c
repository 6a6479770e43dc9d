/* One step of a scan: what it begins with, the next value, coordinates of a place, and what is stored there. */
#include "fusion/schedule/scan_private.h"

static double identity(ir_op op, int32_t dtype) {
  switch (op) {
  case IR_OP_scan_prod: return emit_identity(IR_OP_reduce_prod, dtype);
  case IR_OP_scan_max: return emit_identity(IR_OP_reduce_max, dtype);
  case IR_OP_scan_min: return emit_identity(IR_OP_reduce_min, dtype);
  default: return 0;
  }
}

uint32_t scan_identity(emit *e, ir_op op, kir_type type) {
  const double x = identity(op, type.base);
  if (ir_dtypes[type.base].is_float) return kir_const_float(e->k, type, x);
  if (type.base == SNT_U64 && x > 0 && op == IR_OP_scan_min) return kir_const_int(e->k, type, -1);
  return kir_const_int(e->k, type, x >= 9.2e18 ? INT64_MAX : (int64_t)x);
}

kir_op scan_combine(ir_op op) {
  return op == IR_OP_scan_prod ? KIR_mul : op == IR_OP_scan_max ? KIR_max : op == IR_OP_scan_min ? KIR_min : KIR_add;
}

ir_expr scan_loop(emit *e, ir_expr lo, ir_expr hi, int64_t step, uint32_t count, const uint32_t *initial, uint32_t *carried) {
  const emit_loop_info info = {
      .name = "i", .lo = lo, .hi = hi, .step = step, .whole = true, .carry_count = count, .initial = initial, .carried = carried};
  return emit_loop(e, &info);
}

uint32_t scan_next(emit *e, const scan_job *job, uint32_t carried, const map_access *at) {
  const uint32_t hero = job->group->hero;
  const uint32_t a = emit_value(e, ir_arg(e->g, hero, 0), at);
  if (!a) return 0;
  if (job->op == IR_OP_scan_linear) {
    const uint32_t b = emit_value(e, ir_arg(e->g, hero, 1), at);
    return b ? kir_2(e->k, KIR_add, kir_2(e->k, KIR_mul, a, carried), b) : 0;
  }
  return kir_2(e->k, scan_combine(job->op), carried, a);
}

map_access scan_at(const emit *e, const scan_job *job, ir_expr outer, ir_expr inner, ir_expr place) {
  map_access at = {.rank = job->rank};
  map_delinear(e->x, outer, job->axis, job->dims, at.at);
  map_delinear(e->x, inner, job->rank - job->axis - 1, job->dims + job->axis + 1, at.at + job->axis + 1);
  at.at[job->axis] = job->reverse ? expr_sub(e->x, expr_sub(e->x, job->dims[job->axis], 1), place) : place;
  return at;
}

map_access scan_place(const chunk_job *j, ir_expr place) {
  expr_pool *x = j->e->x;
  return scan_at(j->e, j->scan, expr_div(x, j->line, j->inner), expr_mod(x, j->line, j->inner), place);
}

typedef struct scan_known {
  emit *e;
  uint32_t hero, value;
} scan_known;

static void know_read(void *user, const fusion_load *load) {
  const scan_known *k = user;
  if (load->node == k->hero) emit_remember(k->e, k->hero, load->access, k->value);
}

/* Results at one place of the line: the scan's value there is `value`, also where a result's way back to it, through a reshape of extents that are
   symbols, writes the same place otherwise. */
bool scan_store(emit *e, const scan_job *job, const map_access *at, uint32_t value) {
  const uint32_t hero = job->group->hero;
  const fusion_stops stops = {&hero, 1};
  scan_known known = {e, hero, emit_round_node(e, ir_at(e->g, hero), value)};
  emit_remember(e, hero, at, known.value);
  for (uint32_t i = 0; i < job->group->output_count; i++) {
    const uint32_t output = job->group->outputs[i];
    map_access own = *at;
    if (output != hero && (!fusion_forward_access(e->c, hero, output, &own) ||
                           !fusion_walk_until(e->c, job->group, output, &own, &stops, know_read, &known))) {
      e->failed = true;
      return false;
    }
    emit_store_node(e, output, &own, emit_value(e, output, &own));
  }
  return true;
}
