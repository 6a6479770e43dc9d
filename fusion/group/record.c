/* The records of what grouping looked at. In: an edge with the prices of its parts and of the one kernel. Out: one record an edge in the context; when an
   edge is looked at again, because its groups have grown, the newest says it all. Sentences are made when somebody reads them (fusion/decision.c). */
#include "fusion/group/private.h"

static bool same_edge(const fusion_decision *a, const fusion_decision *b) {
  return a->producer == b->producer && a->consumer == b->consumer && a->form == b->form &&
         (a->form != DECISION_WHOLE || a->what == b->what);
}

/* Where the record of this edge is, or would be, in the table. */
static group_known *find(const grouping *s, const fusion_decision *d) {
  const uint32_t mixed = group_mix(d->producer + d->form, d->consumer);
  group_probe probe = group_probe_first(s, s->known_size, mixed, d->consumer);
  for (;; group_probe_next(&probe)) {
    group_known *at = &s->known[probe.at];
    if (at->decision && (at->mixed != mixed || !same_edge(&s->c->decisions.at[at->decision - 1], d))) continue;
    at->mixed = mixed;
    return at;
  }
}

static bool grow(grouping *s) {
  const fusion_context *c = s->c;
  uint32_t size = s->known_size ? 2 * s->known_size : 256;
  while (size < 4 * c->graph->nodes.count) size *= 2;
  group_known *known = IR_NEW_ARRAY(c->arena, group_known, size);
  if (!known) return false;
  s->known = known, s->known_size = size;
  for (uint32_t i = 0; i < c->decisions.count; i++) find(s, &c->decisions.at[i])->decision = i + 1;
  return true;
}

void group_record(grouping *s, fusion_decision d) {
  fusion_context *c = s->c;
  if (4 * c->decisions.count >= 3 * s->known_size && !grow(s)) {
    c->plan->failed = true;
    return;
  }
  group_known *at = find(s, &d);
  d.turn = ++s->turn;
  if (at->decision) c->decisions.at[at->decision - 1] = d;
  else if (IR_PUSH(c->arena, &c->decisions, d)) at->decision = c->decisions.count;
  else c->plan->failed = true;
}

void group_record_pair(grouping *s, uint32_t producer, uint32_t consumer, bool taken, const char *rule, const fusion_group *parts[2],
                       const fusion_group *fused) {
  fusion_decision d = {.producer = producer, .consumer = consumer, .taken = taken, .form = DECISION_PAIR, .rule = rule};
  d.ns_parts = parts[0]->cost.ns + parts[1]->cost.ns;
  d.kinds[0] = parts[0]->kind;
  d.kinds[1] = parts[1]->kind;
  d.limit = s->c->options->profile->max_bindings;
  if (fused) d.count = fused->input_count + fused->output_count;
  if (fused && fused->cost.ns > 0) {
    d.ns_fused = fused->cost.ns;
    d.bytes_saved = parts[0]->cost.bytes + parts[1]->cost.bytes - fused->cost.bytes;
    d.registers = fused->registers;
  }
  group_record(s, d);
}

void group_record_hyper(grouping *s, const hyper_edge *h, bool taken, const char *rule, double ns_parts, double bytes_parts,
                        const fusion_group *fused) {
  fusion_decision d = {.producer = h->nodes[0], .consumer = h->nodes[h->count - 1], .taken = taken, .form = DECISION_WHOLE, .rule = rule};
  d.what = h->matcher->name;
  d.ns_parts = ns_parts;
  d.limit = s->c->options->profile->max_bindings;
  if (fused) d.count = fused->input_count + fused->output_count;
  if (fused && fused->cost.ns > 0) {
    d.ns_fused = fused->cost.ns;
    d.bytes_saved = bytes_parts - fused->cost.bytes;
    d.registers = fused->registers;
  }
  group_record(s, d);
}
