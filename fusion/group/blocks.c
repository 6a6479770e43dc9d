/* What is tried when. In: the first groups. Out: all that saves is taken: pairs and hyper-edges, then siblings, then what is computed again and what that
   lets meet. Many groups meet in blocks, neighbours in the order of the graph, whose caches hold all that a queue asks for; then across their borders. */
#include "fusion/group/private.h"

static void run_block(group_run *r, uint32_t first, uint32_t end) {
  const fusion_context *c = r->s.c;
  r->first = first;
  r->end = end;
  for (uint32_t i = first; i < end; i++)
    if (!c->groups.at[i].dead) group_consider_neighbours(r, i);
}

static snt_result run_all_blocks(group_run *r) {
  const uint32_t count = r->s.c->groups.count;
  for (uint32_t first = 0; first < count; first += GROUP_BLOCK) {
    r->first = first;
    r->end = first + GROUP_BLOCK < count ? first + GROUP_BLOCK : count;
    if (r->cones && !group_join_first_readers(r)) return SNT_E_HOST_MEM;
    run_block(r, r->first, r->end);
    hyper_propose(r);
    group_run_queue(r);
  }
  SNT_TRY(group_find_levels(r));
  run_block(r, 0, count);
  hyper_propose_across(r);
  return SNT_OK;
}

/* Siblings: two groups that read one input and share no path, one kernel where that reads the input once. Of many groups, the next of its readers. */
enum { MOST_SIBLINGS = 32, MOST_VIEWS = 4 };
static void consider_siblings(group_run *r, uint32_t a, uint32_t shared, uint32_t views) {
  const fusion_context *c = r->s.c;
  const ir_uses *uses = &r->s.uses;
  const uint32_t end = uses->first[shared + 1];
  uint32_t first = uses->first[shared], last = end, most = r->many ? MOST_SIBLINGS : UINT32_MAX;
  while (end - uses->first[shared] > most && first < last) { /* those behind the group's first member */
    const uint32_t middle = first + (last - first) / 2;
    if (uses->user[middle] <= c->groups.at[a].nodes[0]) first = middle + 1;
    else last = middle;
  }
  for (uint32_t u = first; u < end && most; u++) {
    const uint32_t owner = r->s.group_of[uses->user[u]];
    if (!owner && views && fusion_is_view(c->graph, uses->user[u])) consider_siblings(r, a, uses->user[u], views - 1);
    if (!owner || owner - 1 <= a || c->groups.at[owner - 1].dead) continue;
    group_consider(r, c->groups.at[a].hero, uses->user[u]);
    most--;
  }
}

static void run_siblings(group_run *r) {
  const fusion_context *c = r->s.c;
  for (uint32_t a = 0; a < c->groups.count; a++)
    for (uint32_t i = 0; !c->groups.at[a].dead && i < c->groups.at[a].input_count; i++)
      consider_siblings(r, a, c->groups.at[a].inputs[i], r->many ? 0 : MOST_VIEWS);
  group_run_queue(r);
}

/* What is still stored between kernels: would computing it again in each reader be cheaper? What that has changed is looked at again in the end. */
static snt_result run_recompute(group_run *r) {
  fusion_context *c = r->s.c;
  uint8_t *touched = IR_NEW_ARRAY(c->arena, uint8_t, c->groups.count + 1);
  IR_VEC(uint32_t) outputs = {0}; /* of the group as it is found: it may be another after each of them */
  if (!touched) return SNT_E_HOST_MEM;
  for (uint32_t a = 0; a < c->groups.count; a++) {
    outputs.count = 0;
    for (uint32_t i = 0; i < c->groups.at[a].output_count && !c->groups.at[a].dead; i++)
      if (!IR_PUSH(c->arena, &outputs, c->groups.at[a].outputs[i])) c->plan->failed = true;
    for (uint32_t i = 0; i < outputs.count && !c->groups.at[a].dead; i++) {
      uint32_t changed[REMAT_MAX_CHANGED];
      for (uint32_t count = remat_consider(r, outputs.at[i], changed); count;) touched[changed[--count]] = 1;
    }
  }
  for (uint32_t a = 0; a < c->groups.count; a++)
    if (touched[a]) group_refresh(r, &a, 1);
  group_run_queue(r);
  return SNT_OK;
}

/* What was united from ports alone has them in the order of its parts: from now on in that of its members, as in a graph of few groups. */
static bool order_ports(group_run *r) {
  grouping *s = &r->s;
  for (uint32_t i = 0; i < s->c->groups.count; i++) {
    const fusion_group was = s->c->groups.at[i];
    fusion_group group = was;
    if (was.dead) continue;
    ir_arena_rewind(&s->scratch, s->empty);
    if (!group_find_ports(s, &group) || !group_settle(s, i, &group)) return false;
    group_drop(s, &was);
  }
  return true;
}

snt_result group_run_blocks(group_run *r) {
  if (r->many) SNT_TRY(run_all_blocks(r));
  else {
    run_block(r, 0, r->s.c->groups.count);
    hyper_propose(r);
  }
  group_run_queue(r);
  run_siblings(r);
  SNT_TRY(run_recompute(r));
  run_siblings(r);
  return !r->many || order_ports(r) ? SNT_OK : SNT_E_HOST_MEM;
}
