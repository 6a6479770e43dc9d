/* The records of what grouping looked at. In: an edge with the prices of its parts and of the one kernel. Out: one record an edge in the context; when an
   edge is looked at again, because its groups have grown, the newest says it all. Sentences are made when somebody reads them (fusion/decision.c). */
#include "fusion/group_private.h"

static uint32_t place_of(const fusion_decision *d) {
  return (uint32_t)((((uint64_t)d->producer << 32 | (d->consumer + d->form)) * UINT64_C(0x9e3779b97f4a7c15)) >> 32);
}

static bool same_edge(const fusion_decision *a, const fusion_decision *b) {
  return a->producer == b->producer && a->consumer == b->consumer && a->form == b->form &&
         (a->form != DECISION_WHOLE || a->what == b->what);
}

/* Where the record of this edge is, or would be, in the table. */
static uint32_t *find(const grouping *s, const fusion_decision *d) {
  uint32_t at = place_of(d) & (s->known_size - 1);
  while (s->known[at] && !same_edge(&s->c->decisions.at[s->known[at] - 1], d)) at = (at + 1) & (s->known_size - 1);
  return &s->known[at];
}

static bool grow(grouping *s) {
  const fusion_context *c = s->c;
  s->known_size = s->known_size ? 2 * s->known_size : 256;
  s->known = IR_NEW_ARRAY(c->arena, uint32_t, s->known_size);
  if (!s->known) return false;
  for (uint32_t i = 0; i < c->decisions.count; i++) *find(s, &c->decisions.at[i]) = i + 1;
  return true;
}

void group_record(grouping *s, fusion_decision d) {
  fusion_context *c = s->c;
  if (2 * c->decisions.count >= s->known_size && !grow(s)) {
    c->plan->failed = true;
    return;
  }
  uint32_t *at = find(s, &d);
  d.turn = ++s->turn;
  if (*at) c->decisions.at[*at - 1] = d;
  else if (IR_PUSH(c->arena, &c->decisions, d)) *at = c->decisions.count;
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
