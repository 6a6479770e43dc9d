/* What grouping last said of two groups, by their numbers: open addressing. Pairs of groups that are gone leave the table when it grows. */
#include "fusion/group/private.h"

static group_pair *place(const grouping *s, const pair_table *t, uint32_t producer, uint32_t consumer) {
  group_probe probe = group_probe_first(s, t->size, group_mix(producer, consumer), consumer);
  for (;; group_probe_next(&probe)) {
    group_pair *at = &t->at[probe.at];
    if (!at->producer || (at->producer == producer + 1 && at->consumer == consumer + 1)) return at;
  }
}

group_pair *group_pair_find(const group_run *r, uint32_t producer, uint32_t consumer) {
  group_pair *pair = r->pairs.size ? place(&r->s, &r->pairs, producer, consumer) : NULL;
  return pair && pair->producer ? pair : NULL;
}

static bool grow(group_run *r) {
  const fusion_context *c = r->s.c;
  const pair_table old = r->pairs;
  uint32_t live = 0;
  for (uint32_t i = 0; i < old.size; i++)
    live += old.at[i].producer && !c->groups.at[old.at[i].producer - 1].dead && !c->groups.at[old.at[i].consumer - 1].dead;
  r->pairs = (pair_table){.size = 256};
  while (r->pairs.size < 4 * live || (r->many && r->pairs.size < 4 * c->groups.count)) r->pairs.size *= 2;
  r->pairs.at = IR_NEW_ARRAY(c->arena, group_pair, r->pairs.size);
  if (!r->pairs.at) return false;
  for (uint32_t i = 0; i < old.size; i++) {
    const group_pair *pair = &old.at[i];
    if (!pair->producer || c->groups.at[pair->producer - 1].dead || c->groups.at[pair->consumer - 1].dead) continue;
    *place(&r->s, &r->pairs, pair->producer - 1, pair->consumer - 1) = *pair;
    r->pairs.count++;
  }
  return true;
}

group_pair *group_pair_make(group_run *r, uint32_t producer, uint32_t consumer) {
  if (4 * r->pairs.count >= 3 * r->pairs.size && !grow(r)) {
    r->s.c->plan->failed = true;
    r->pairs = (pair_table){0};
    return NULL;
  }
  group_pair *pair = place(&r->s, &r->pairs, producer, consumer);
  if (!pair->producer) {
    *pair = (group_pair){.producer = producer + 1, .consumer = consumer + 1, .version = UINT32_MAX};
    r->pairs.count++;
  }
  return pair;
}
