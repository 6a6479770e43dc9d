/* Long reductions with few results, so that all of the device takes part. In: a graph in its layout: the order of what is reduced is that
   in memory. Out: partial results of even parts of the outermost axes that are reduced, then a reduction of the parts; fused and unfused
   plans share the tree. */
#include "fusion/rebuild.h"
#include "fusion/schedule_common.h"
#include <stdlib.h>

enum {
  LONG_REDUCTION = 65536, /* elements that one group would walk */
  LEAST_TERMS = 1024,     /* of a part */
  LEAST_ROWS = 64         /* of a part whose results lie beside each other: items below each other share them (schedule/row_items.c) */
};

/* `results` sums of `terms` each, `beside` of them one group's. Axes first .. end - 1, the outermost that are reduced, have `length` places. */
typedef struct reduction {
  uint32_t axes, first, end; /* axes: a bit each */
  int64_t length, terms, results, beside;
} reduction;

static bool read_reduction(const rebuild *r, const ir_tensor *operand, reduction *d) {
  uint32_t count;
  const ir_expr *axes = ir_attr_ints(r->from, r->node, IR_ATTR_axes, &count);
  *d = (reduction){.terms = 1, .results = 1, .beside = 1};
  for (uint32_t i = 0; i < count; i++) d->axes |= 1u << axes[i];
  for (uint32_t i = 0; i < operand->rank; i++) {
    const int64_t extent = operand->dims[i];
    const bool reduced = d->axes >> i & 1;
    if (extent < 0) return false;
    *(reduced ? &d->terms : &d->results) *= extent;
    d->beside = reduced ? 1 : d->beside * extent;
  }
  const int64_t line = schedule_is_explicit(r->c) ? FUSION_LINE / (int64_t)sizeof(float) : SCHEDULE_LINE;
  if (d->beside > line) d->beside = line;
  while (d->first < operand->rank && !(d->axes >> d->first & 1)) d->first++;
  return true;
}

/* The outermost axis that is reduced, or all that lie beside each other from there on. */
static void take_axes(reduction *d, const ir_tensor *operand, bool all) {
  d->length = 1;
  for (d->end = d->first; (d->axes >> d->end & 1) && (all || d->end == d->first); d->end++) d->length *= operand->dims[d->end];
}

/* The divisor of the length nearest to `wanted` parts, 1 if none is useful. */
static int64_t pick_parts(const reduction *d, int64_t wanted) {
  const int64_t most = d->terms / (d->beside > 1 ? LEAST_ROWS : LEAST_TERMS);
  int64_t best = 1;
  for (int64_t p = 2; p <= 4 * wanted && p <= most; p++)
    if (d->length % p == 0 && llabs(p - wanted) < llabs(best - wanted)) best = p;
  return best * 4 < wanted ? 1 : best;
}

static uint32_t in_two_stages(rebuild *r) {
  const ir_node *n = ir_at(r->from, r->node);
  const ir_tensor *operand = &ir_at(r->to, r->args[0])->type;
  const int64_t wanted = (int64_t)schedule_least_parts(r->c);
  reduction d;
  if (!read_reduction(r, operand, &d) || d.terms * d.beside < LONG_REDUCTION) return 0;
  const int64_t groups = (d.results + d.beside - 1) / d.beside;
  const cost_profile *p = r->c->options->profile;
  const bool columns = d.beside > 1, explicit_lanes = schedule_is_explicit(r->c);
  const bool shared = columns && !explicit_lanes && !(p->max_trips && d.terms > p->max_trips); /* by the items of a group */
  if (!groups || groups * 2 > wanted || (shared && groups * 2 >= (int64_t)p->units)) return 0;
  const double shortest = (double)(d.terms * d.results) * ir_dtypes[operand->dtype].bytes / p->dram_gbs; /* ns, where all take part */
  if (shortest * ((double)wanted / (double)groups - 1) < p->launch_ns) return 0;
  /* One item's sums of sums are near, and stay so; of one axis parts are nearer than what it adds one after another. */
  if (columns && explicit_lanes && (d.axes & (d.axes - 1))) return 0;
  /* Down columns by the outermost axis alone, if it will do: sums of sums stay nearer to what they are. */
  int64_t parts = 1;
  for (uint32_t all = !columns; all < 2 && parts == 1; all++) take_axes(&d, operand, all), parts = pick_parts(&d, wanted / groups);
  const uint32_t rank = operand->rank - (d.end - d.first) + 2;
  if (parts == 1 || rank > SNT_MAX_RANK) return 0;
  ir_expr dims[SNT_MAX_RANK];
  int64_t inner[SNT_MAX_RANK], outer = d.first;
  uint32_t count = 0, to = 0;
  for (uint32_t i = 0; i < operand->rank; i++) {
    if (i == d.first) dims[to++] = parts, inner[count++] = to, dims[to++] = d.length / parts;
    if (i >= d.first && i < d.end) continue;
    if (d.axes >> i & 1) inner[count++] = to;
    dims[to++] = operand->dims[i];
  }
  const uint32_t split = rebuild_reshape(r, r->args[0], rank, dims);
  const uint32_t partial = ir_add_axes(r->to, (ir_op)n->op, split, count, inner, false);
  r->to->nodes.at[partial].origin = n->origin;
  const uint32_t whole = ir_add_axes(r->to, (ir_op)n->op, partial, 1, &outer, false);
  return rebuild_reshape(r, whole, n->type.rank, n->type.dims);
}

static const rebuild_rule rules[] = {{in_two_stages, .ops = {IR_OP_reduce_sum, IR_OP_reduce_prod, IR_OP_reduce_max, IR_OP_reduce_min}}};

snt_result fusion_reduce_in_stages(fusion_context *c, bool *changed) { return fusion_rebuild(c, rules, IR_COUNT(rules), changed); }
