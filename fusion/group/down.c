/* Rows that kernels of explicit vectors walk down columns, priced: what they store there, and what waits for their lines. */
#include "fusion/group/private.h"
#include "fusion/schedule_common.h"
#include <math.h>

/* Bytes between the terms of a reduction that are walked across the unit stride, many side by side (schedule/row.c); 0: none is. */
static double terms_apart(const fusion_context *c, const fusion_group *group) {
  uint32_t count;
  if (!schedule_is_explicit(c) || !(ir_ops[ir_at(c->graph, group->hero)->op].flags & IR_REDUCE)) return 0;
  const ir_tensor *t = &ir_at(c->graph, ir_arg(c->graph, group->hero, 0))->type;
  const ir_expr *axes = ir_attr_ints(c->graph, group->hero, IR_ATTR_axes, &count);
  double apart = ir_dtypes[t->dtype].bytes;
  for (uint32_t i = t->rank; count && i-- > (uint32_t)axes[count - 1] + 1;) apart *= (double)schedule_hint(c->graph->pool, t->dims[i]);
  return apart;
}

group_down group_find_down(const fusion_context *c, const fusion_group *group) {
  const double apart = terms_apart(c, group);
  return (group_down){.apart = apart, .full = apart > 0 ? c->elements[ir_arg(c->graph, group->hero, 0)] : 0};
}

/* The largest power of two in their distance: rows meet in few sets of the near cache by it. */
static uint32_t met_by(double apart) { return apart < UINT32_MAX ? (uint32_t)apart & (0 - (uint32_t)apart) : 1u << 31; }

/* Narrower vectors pass a line by twice: there the least times of one kernel stay the better ones. */
static bool fills_lines(const fusion_context *c) { return c->options->profile->lanes * sizeof(float) >= FUSION_LINE; }

/* Does a kernel of its own need the value? */
static bool read_elsewhere(const fusion_context *c, const fusion_group *group, uint32_t node, uint32_t depth) {
  enum { DEEPEST = 16 };
  for (uint32_t u = c->uses->first[node]; u < c->uses->first[node + 1]; u++) {
    const uint32_t user = c->uses->user[u];
    if (fusion_group_has(group, user)) continue;
    if (!fusion_is_view(c->graph, user) || c->group_of[user] || depth == DEEPEST || read_elsewhere(c, group, user, depth + 1)) return true;
  }
  return false;
}

/* Where they lie far apart, what is less than a line is stored in few sets. So is one array beside another, unless rows are a line or two apart by odd
   numbers: of 512 x 256 the first that is stored down columns adds 12 us, the second 36, where a loop stores them 10 each (PoCL on a Xeon). Of what another
   kernel reads, which has whole rows or other columns, each unit finds a share of the lines with the others each time: of 512 x 256, too, 37 to 58 us where
   sums alone take 10 and a loop stores it in 13. */
float group_stores_down(const fusion_context *c, const fusion_group *group, uint32_t output, group_down *d) {
  const bool beside = d->stored;
  if (c->elements[output] < d->full) return 0;
  d->arrays++, d->stored = true;
  if (group->kind != GROUP_ROW || d->apart < FUSION_LINE) return 0;
  const uint32_t met = met_by(d->apart);
  if (beside && met != FUSION_LINE && met != 2 * FUSION_LINE) return 1;
  if (d->apart >= CONTRACT_FAR_APART && schedule_row_lanes(c, group) * sizeof(float) < FUSION_LINE) return 1;
  return fills_lines(c) && read_elsewhere(c, group, output, 0) ? 1 - 1 / (float)c->options->profile->units : 0;
}

/* No line stays that is asked for ahead, and transcendental functions fill the window in which others would be met. Of exp stored and summed down columns,
   rows 1, 2, 4 and 8 KB apart, a quarter, half and all of the shorter of computing and traffic is not hidden, 4160 bytes apart nothing (PoCL on a
   Xeon); more arrays than these two crowd each other. */
double group_waits_down(const fusion_context *c, const fusion_group *group, const group_down *d) {
  const uint32_t met = met_by(d->apart);
  if (!fills_lines(c) || met < CONTRACT_FAR_APART || !schedule_has_dear(c->graph, group)) return 0;
  return fmin(1, 0.125 * d->arrays * met / CONTRACT_FAR_APART);
}
