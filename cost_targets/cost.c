/* The analytic model; see cost.h. Units: nanoseconds, bytes, GB/s (= bytes a nanosecond).
   First touches come from DRAM unless the whole working set fits the last cache; repeats from the cache that holds their footprint. */
#include "cost_targets/cost.h"

static double at_least(double x, double floor) { return x > floor ? x : floor; }

static double second_rate(const cost_profile *p) { return p->l2_gbs > 0 ? p->l2_gbs : p->cache_gbs; }

static double repeat_rate(const cost_profile *p, double footprint) {
  if (footprint <= p->l1_bytes) return p->l1_gbs;
  if (footprint <= p->l2_bytes * 0.75) return second_rate(p);
  if (footprint <= p->l3_bytes * 0.75) return p->cache_gbs;
  return p->dram_gbs;
}

/* The share of a working set that a cache has lost when it is touched again. From half the cache on, ever less of what a kernel touches is still
   there from the one before; beyond twice the cache nothing is. Without a step, so that two kernels of half the size do not look faster than one. */
static double missing_share(double total, double cache) {
  const double beyond = cache > 0 ? (total - cache * 0.5) / (cache * 1.5) : 1;
  return beyond < 0 ? 0 : beyond > 1 ? 1 : beyond;
}

double cost_first_rate(const cost_profile *p, double total) {
  const double last_cache = p->l3_bytes > p->l2_bytes ? p->l3_bytes : p->l2_bytes;
  const double last = missing_share(total, last_cache), second = p->l3_bytes > 0 ? missing_share(total, p->l2_bytes * p->units) : 0;
  const double cached = second / at_least(p->cache_gbs, 1e-3) + (1 - second) / at_least(second_rate(p), 1e-3);
  return 1 / (last / at_least(p->dram_gbs, 1e-3) + (1 - last) * cached);
}

/* *alone: of it, what no computing hides. */
static double memory_time(const cost_profile *p, const cost_work *w, double *bytes, double *alone) {
  double times = 0, total = 0;
  for (uint32_t i = 0; i < w->stream_count; i++) total += w->streams[i].bytes;
  const double rate = cost_first_rate(p, total), store_factor = w->by_hand ? p->hand_store_factor : p->stream_store_factor;
  for (uint32_t i = 0; i < w->stream_count; i++) {
    const cost_stream *s = &w->streams[i];
    const double strided = 1 + (double)s->strided * (p->strided_factor - 1);
    double own = s->bytes * strided;
    /* a plain store reads the line first; streaming stores do not */
    if (s->write && store_factor < 1) own *= total > p->stream_threshold && p->stream_threshold > 0 ? 1 : 1 / store_factor;
    own /= at_least(rate, 1e-3);
    if (s->accesses > s->bytes) own += (s->accesses - s->bytes) * strided / at_least(repeat_rate(p, s->reuse_bytes), 1e-3);
    times += own;
    if (s->alone) *alone += own;
  }
  *bytes = total;
  return times;
}

bool cost_divides(uint32_t op) { return op == IR_OP_div || op == IR_OP_sqrt || op == IR_OP_rsqrt || op == IR_OP_recip; }

double cost_class_cycles(const cost_profile *p, uint32_t op) {
  if (ir_ops[op].flags & IR_EXPENSIVE) return p->special_cycles;
  return cost_divides(op) ? p->div_cycles : p->op_cycles;
}

static cost_type type_of(int32_t dtype) {
  if (!ir_dtypes[dtype].is_float) return COST_INT;
  if (dtype == SNT_F64) return COST_F64;
  return dtype == SNT_F32 ? COST_F32 : COST_F16;
}

double cost_op_cycles(const cost_profile *p, uint32_t op, int32_t dtype) {
  const double own = (double)p->cycles[op][type_of(dtype)];
  return own > 0 ? own : cost_class_cycles(p, op);
}

uint64_t cost_local_room(const cost_profile *p) {
  return p->local_bytes < (double)p->max_local_bytes ? (uint64_t)p->local_bytes : p->max_local_bytes;
}

uint64_t cost_usual_local(const cost_profile *p) { return p->local_bytes > 0 ? cost_local_room(p) : p->max_local_bytes; }

IR_COLD void cost_profile_widen(cost_profile *p, double lanes) {
  const double times = lanes / at_least(p->lanes, 1);
  if (times > 1) {
    p->op_cycles *= times, p->div_cycles *= times;
    /* As measured where a whole line is one store; the profile's is that of half lines, which such a line is where a port takes it in parts. */
    if (!(p->port_lanes > 0)) p->stream_threshold *= 1.5;
    for (uint32_t op = 0; op < IR_OP_COUNT; op++)
      for (uint32_t t = 0; t < COST_TYPE_COUNT && !(ir_ops[op].flags & IR_EXPENSIVE); t++) p->cycles[op][t] *= (float)times;
  }
  p->lanes = lanes;
  const struct {
    uint32_t op;
    double cycles;
  } tabled[] = {{IR_OP_exp, p->table_exp_cycles}, {IR_OP_tanh, p->table_tanh_cycles}, {IR_OP_erf, p->table_erf_cycles}};
  for (uint32_t i = 0; cost_permutes(p) && i < IR_COUNT(tabled); i++)
    if (tabled[i].cycles > 0) p->cycles[tabled[i].op][COST_F32] = (float)tabled[i].cycles;
}

static double compute_time(const cost_profile *p, const cost_work *w) {
  const double vectors = 1 / at_least(p->lanes, 1);
  const double fmas = at_least(p->fma_per_cycle * p->contract_share, 1e-3);
  const double cycles = (w->ops + w->index_ops) * vectors * p->op_cycles + w->fmas * vectors / fmas + w->extra_cycles * vectors +
                        w->specials * vectors * p->special_cycles + w->divs * vectors * p->div_cycles;
  double units = p->units;
  const double full = p->saturate_items > 0 ? p->saturate_items : units * at_least(p->lanes, 1), alone = at_least(p->lanes, 1);
  if (w->items < full) units *= at_least(w->items, alone < full ? alone : full) / full;
  return cycles / (at_least(p->ghz, 1e-3) * units);
}

/* Overlap is not perfect, and where loads and stores are themselves computed there is none. */
static double add_overlapped(const cost_profile *p, double waited, double a, double b) {
  const double seen = 1 - p->overlap * (1 - waited);
  return p->launch_ns + (a > b ? a + seen * b : b + seen * a);
}

void cost_kernel(const cost_profile *p, const cost_work *w, cost_estimate *out) {
  *out = (cost_estimate){.launch_ns = p->launch_ns, .flops = w->ops + 2 * w->fmas + w->specials + w->divs};
  double alone = 0;
  out->memory_ns = memory_time(p, w, &out->bytes, &alone);
  out->compute_ns = compute_time(p, w);
  if (w->spilled > 0)
    out->spill_ns = w->spilled * p->spill_cycles * w->items / at_least(p->lanes, 1) / (at_least(p->ghz, 1e-3) * at_least(p->units, 1));
  out->ns = add_overlapped(p, w->waited, out->memory_ns - alone, out->compute_ns) + alone + out->spill_ns + w->barriers * p->barrier_ns;
}

double cost_of_both(const cost_profile *p, const cost_estimate *a, const cost_estimate *b, double bytes_less) {
  const double memory = a->memory_ns + b->memory_ns, bytes = at_least(a->bytes + b->bytes, 1);
  return add_overlapped(p, 0, memory * at_least(1 - bytes_less / bytes, 0), a->compute_ns + b->compute_ns) + a->spill_ns + b->spill_ns;
}
