/* The data of constants that passes compute: transformed weights are as large as a model's own. Each has a block of its own in the arena of the
   compile, which goes back as soon as whatever reads the constant has been built: by then a packed form has taken its place, or a buffer holds it. */
#include "fusion/fusion.h"

void *fusion_take_constant(fusion_context *c, size_t bytes) {
  const fusion_taken made = {ir_arena_take_own(c->arena, bytes), bytes};
  return made.data && IR_PUSH(c->arena, &c->taken, made) ? made.data : NULL;
}

static void give(fusion_context *c, uint32_t taken) {
  ir_arena_give(c->arena, c->taken.at[taken].data);
  c->taken.at[taken] = c->taken.at[--c->taken.count];
}

void fusion_give_constant(fusion_context *c, const void *data) {
  for (uint32_t i = 0; i < c->taken.count; i++)
    if (c->taken.at[i].data == data) {
      give(c, i);
      return;
    }
}

void fusion_read_through(fusion_context *c, const void *data, size_t bytes) {
  enum { LARGE = 64 * 1024 };
  const fusion_hooks *hooks = c->options->hooks;
  fusion_give_constant(c, data);
  if (hooks && hooks->rest && bytes >= LARGE) hooks->rest(hooks->user);
}

static bool in_buffer(const fusion_context *c, const void *data) {
  for (uint32_t i = 0; i < c->plan->buffers.count; i++)
    if (c->plan->buffers.at[i].data == data) return true;
  return false;
}

/* Read, through views or not, by a group that is still to be built, or by whoever reads outputs. */
static bool is_awaited(const fusion_context *c, uint32_t node, uint32_t done) {
  const ir_uses *uses = c->uses;
  if (uses->is_output[node]) return true;
  for (uint32_t u = uses->first[node]; u < uses->first[node + 1]; u++) {
    for (uint32_t i = done; i < c->order_count; i++)
      if (fusion_group_has(&c->groups.at[c->order[i]], uses->user[u])) return true;
    if (fusion_is_view(c->graph, uses->user[u]) && is_awaited(c, uses->user[u], done)) return true;
  }
  return false;
}

static bool has_data(const ir_graph *g, uint32_t node, const void *data) {
  return ir_at(g, node)->op == IR_OP_const && g->consts.at[ir_at(g, node)->payload].data == data;
}

static bool data_is_awaited(const fusion_context *c, const void *data, uint32_t done) {
  for (uint32_t n = 1; n < c->graph->nodes.count; n++)
    if (has_data(c->graph, n, data) && is_awaited(c, n, done)) return true;
  return false;
}

void fusion_rest_constants(fusion_context *c, uint32_t done) {
  if (!c->uses) return;
  for (uint32_t i = c->taken.count; i-- > 0;) {
    const void *data = c->taken.at[i].data;
    if (in_buffer(c, data) || data_is_awaited(c, data, done)) continue;
    for (uint32_t n = 1; n < c->graph->nodes.count; n++)
      if (has_data(c->graph, n, data)) c->graph->consts.at[ir_at(c->graph, n)->payload] = (ir_const){.kind = IR_CONST_GONE};
    give(c, i);
  }
}
