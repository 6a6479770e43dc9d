/* Equal groups are built once: the layers of a network differ in their numbers and weights alone. In: a group, all that its kernels depend on written down as
   words. Out: where a group was built from the same words, its kernels under new names, its steps over the buffers that this group asks for, in the order
   in which the first one asked. What read the data of a constant is never built again this way. */
#include "fusion/contract_pack.h"
#include "fusion/schedules.h"
#include <stdio.h>
#include <stdlib.h>

typedef struct built_group {
  uint64_t hash;
  const uint64_t *words;
  const uint32_t *nodes; /* what the words speak of, by number */
  uint32_t word_count, node_count;
  uint32_t first_step, step_count, first_kernel;
  const fusion_asked *asked; /* `what` of a node: its place in `nodes` */
  uint32_t asked_count;
  plan_binding **bindings; /* of each step, as built: a loop that takes over a result changes those of the plan */
} built_group;

struct schedule_memory {
  fusion_context *c;
  IR_VEC(built_group) built;
  uint32_t *table, table_size; /* of built groups + 1, by hash */
  uint32_t *mark, round;       /* by node: the round that has it */
  uint32_t *place;             /* by node of this round: its place in `nodes` */
  IR_VEC(uint32_t) nodes;
  IR_VEC(uint64_t) words;
};

enum { SMALL_TILE = 6 }; /* constants this small in their last axes may be matrices that schedules know (winograd.c): their data counts */

/* ---- which nodes ---- */

static bool reach(schedule_memory *m, const fusion_group *group, uint32_t node) {
  fusion_context *c = m->c;
  if (m->mark[node] == m->round) return true;
  m->mark[node] = m->round;
  if (!IR_PUSH(c->arena, &m->nodes, node)) return false;
  const uint32_t owner = fusion_storage_node(c, node);
  if (owner != node && !reach(m, group, owner)) return false;
  const ir_node *n = ir_at(c->graph, node);
  switch (n->op) {
  case IR_OP_repeat:
  case IR_OP_loop:
  case IR_OP_pick:
  case IR_OP_custom:
  case IR_OP_opaque: return false;
  default: break;
  }
  if (!fusion_group_has(group, node) && fusion_is_stored(c, node)) return true;
  for (uint32_t i = 0; i < n->arity; i++)
    if (!reach(m, group, ir_arg(c->graph, node, i))) return false;
  return true;
}

static int by_number(const void *a, const void *b) {
  const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return (x > y) - (x < y);
}

static bool find_nodes(schedule_memory *m, const fusion_group *group) {
  m->round++;
  m->nodes.count = 0;
  for (uint32_t i = 0; i < group->count; i++)
    if (!reach(m, group, group->nodes[i])) return false;
  for (uint32_t i = 0; i < group->input_count; i++)
    if (!reach(m, group, group->inputs[i])) return false;
  qsort(m->nodes.at, m->nodes.count, sizeof *m->nodes.at, by_number);
  for (uint32_t i = 0; i < m->nodes.count; i++) m->place[m->nodes.at[i]] = i;
  return true;
}

/* ---- what they are ---- */

static void put(schedule_memory *m, uint64_t word) { (void)IR_PUSH(m->c->arena, &m->words, word); }
static void put_node(schedule_memory *m, uint32_t node) { put(m, m->mark[node] == m->round ? m->place[node] + 1 : 0); }

static bool is_small_matrix(const ir_node *n) {
  if (n->type.rank != 4) return false;
  for (uint32_t i = 0; i < 4; i++)
    if (n->type.dims[i] < 0 || n->type.dims[i] > SMALL_TILE) return false;
  return true;
}

static void put_const(schedule_memory *m, uint32_t node) {
  ir_graph *g = m->c->graph;
  const ir_node *n = ir_at(g, node);
  const ir_const *value = &g->consts.at[n->payload];
  put(m, value->kind == IR_CONST_SPLAT);
  if (value->kind == IR_CONST_SPLAT) put(m, value->bits);
  if (value->kind != IR_CONST_DATA || !is_small_matrix(n)) return;
  const uint64_t bytes = (uint64_t)ir_tensor_elements(g->pool, &n->type) * ir_dtypes[n->type.dtype].bytes;
  for (uint64_t at = 0; at < bytes; at += 8) {
    uint64_t word = 0;
    memcpy(&word, (const char *)value->data + at, bytes - at < 8 ? (size_t)(bytes - at) : 8);
    put(m, word);
  }
}

/* Readers outside are none, one or several. */
static void put_users(schedule_memory *m, uint32_t node) {
  const ir_uses *uses = m->c->uses;
  uint64_t outside = 0;
  for (uint32_t u = uses->first[node]; u < uses->first[node + 1]; u++) {
    if (m->mark[uses->user[u]] == m->round) put_node(m, uses->user[u]);
    else outside += outside < 2;
  }
  put(m, UINT64_MAX - outside);
}

static void put_attrs(schedule_memory *m, const ir_node *n) {
  const ir_graph *g = m->c->graph;
  for (uint32_t i = 0; i < n->attr_count; i++) {
    const ir_attr *a = &g->attrs.at[n->attrs + i];
    put(m, a->key | (uint64_t)a->count << 8);
    for (uint32_t k = 0; k < a->count; k++) put(m, (uint64_t)g->ints.at[a->first + k]);
  }
}

static void describe_node(schedule_memory *m, const fusion_group *group, uint32_t node) {
  const fusion_context *c = m->c;
  const ir_node *n = ir_at(c->graph, node);
  const bool member = fusion_group_has(group, node), stored = fusion_is_stored(c, node);
  const uint64_t facts = member | stored << 1 | (c->group_of[node] != 0) << 2 | (c->uses->is_output[node] != 0) << 3 |
                         (c->uses->is_output[node] && fusion_is_update(c->graph, node)) << 4 | (uint64_t)fusion_has_pitch(c, node) << 5;
  const bool port = n->op == IR_OP_input || n->op == IR_OP_state || n->op == IR_OP_const;
  const bool inside = member || !stored; /* else only where it lies counts */
  put(m, facts | (uint64_t)(inside || port ? n->op : 0) << 8 | (uint64_t)n->type.dtype << 24 | (uint64_t)n->type.rank << 32 |
             (uint64_t)n->arity << 40 | (uint64_t)n->attr_count << 48);
  for (uint32_t i = 0; i < n->type.rank; i++) put(m, (uint64_t)n->type.dims[i]);
  if (facts >> 5 & 1) put(m, (uint64_t)c->pitches[node].elements << 8 | c->pitches[node].axes);
  put_node(m, fusion_storage_node(c, node));
  if (n->op == IR_OP_const) put_const(m, node);
  if (!inside) return;
  for (uint32_t i = 0; i < n->arity; i++) put_node(m, ir_arg(c->graph, node, i));
  put_attrs(m, n);
  put_users(m, node);
}

static uint64_t describe(schedule_memory *m, const fusion_group *group) {
  m->words.count = 0;
  put(m, group->kind | (uint64_t)group->count << 8 | (uint64_t)group->input_count << 32 | (uint64_t)group->output_count << 48);
  put_node(m, group->hero);
  for (uint32_t i = 0; i < group->count; i++) put_node(m, group->nodes[i]);
  for (uint32_t i = 0; i < group->input_count; i++) put_node(m, group->inputs[i]);
  for (uint32_t i = 0; i < group->output_count; i++) put_node(m, group->outputs[i]);
  for (uint32_t i = 0; i < m->nodes.count; i++) describe_node(m, group, m->nodes.at[i]);
  return ir_hash64(m->nodes.count, m->words.at, m->words.count * sizeof *m->words.at);
}

/* ---- what was built ---- */

static const built_group *find_built(const schedule_memory *m, uint64_t hash) {
  for (uint32_t at = (uint32_t)hash & (m->table_size - 1); m->table[at]; at = (at + 1) & (m->table_size - 1)) {
    const built_group *b = &m->built.at[m->table[at] - 1];
    if (b->hash == hash && b->word_count == m->words.count && b->node_count == m->nodes.count &&
        !memcmp(b->words, m->words.at, m->words.count * sizeof *m->words.at))
      return b;
  }
  return NULL;
}

static void *keep(schedule_memory *m, const void *from, size_t bytes) {
  void *to = ir_arena_take_bare(m->c->arena, bytes, 8);
  if (to && bytes) memcpy(to, from, bytes);
  return to;
}

/* Nodes that were asked for become places; false where one is none of the group's. */
static bool place_asked(const schedule_memory *m) {
  fusion_context *c = m->c;
  for (uint32_t i = 0; i < c->asked.count; i++) {
    fusion_asked *a = &c->asked.at[i];
    uint32_t *node = a->kind == FUSION_ASKED_SCRATCH ? NULL : &a->node;
    if (!node) continue;
    if (m->mark[*node] != m->round) return false;
    *node = m->place[*node];
  }
  return true;
}

static void remember(schedule_memory *m, built_group *b) {
  fusion_context *c = m->c;
  b->step_count = c->plan->steps.count - b->first_step;
  if (c->peeked || c->plan->kernels.count - b->first_kernel != b->step_count || !place_asked(m)) return;
  b->word_count = m->words.count, b->node_count = m->nodes.count, b->asked_count = c->asked.count;
  b->words = keep(m, m->words.at, m->words.count * sizeof *m->words.at);
  b->nodes = keep(m, m->nodes.at, m->nodes.count * sizeof *m->nodes.at);
  b->asked = keep(m, c->asked.at, c->asked.count * sizeof *c->asked.at);
  b->bindings = IR_NEW_ARRAY(c->arena, plan_binding *, b->step_count);
  for (uint32_t i = 0; b->bindings && i < b->step_count; i++) {
    const plan_step *s = &c->plan->steps.at[b->first_step + i];
    if (!(b->bindings[i] = keep(m, s->bindings, s->binding_count * sizeof *s->bindings))) return;
  }
  if (!b->words || !b->nodes || !b->asked || !b->bindings || !IR_PUSH(c->arena, &m->built, *b)) return;
  uint32_t at = (uint32_t)b->hash & (m->table_size - 1);
  while (m->table[at]) at = (at + 1) & (m->table_size - 1);
  m->table[at] = m->built.count;
}

/* ---- once more ---- */

/* The buffer that stands for what the first group asked for. */
static uint32_t ask_again(schedule_memory *m, const fusion_asked *a) {
  fusion_context *c = m->c;
  const plan_buffer old = c->plan->buffers.at[a->buffer];
  switch (a->kind) {
  case FUSION_ASKED_SCRATCH: return fusion_add_scratch(c, old.name, old.dtype, old.dims[0]);
  case FUSION_ASKED_PACKED: return contract_packed_buffer(c, m->nodes.at[a->node], a->order);
  default: return fusion_buffer_of(c, m->nodes.at[a->node]);
  }
}

static const char *name_again(fusion_context *c, const char *old) {
  char name[64];
  const char *rest = strchr(old, '_');
  const int length = snprintf(name, sizeof name, "k%u%s", c->first_kernel + c->plan->kernels.count, rest ? rest : "");
  return ir_arena_text(c->arena, name, (size_t)length);
}

static bool build_step(fusion_context *c, const fusion_group *group, const built_group *b, uint32_t i, const uint32_t *buffers) {
  const plan_step old = c->plan->steps.at[b->first_step + i];
  const plan_kernel model = c->plan->kernels.at[old.kernel];
  kir_kernel *k = IR_NEW(c->arena, kir_kernel);
  plan_step s = old;
  s.name = name_again(c, old.name);
  s.bindings = IR_NEW_ARRAY(c->arena, plan_binding, old.binding_count);
  if (!k || !s.name || !s.bindings) return false;
  for (uint32_t n = 0; n < old.binding_count; n++) {
    s.bindings[n] = b->bindings[i][n];
    for (uint32_t a = 0; a < b->asked_count; a++)
      if (b->asked[a].buffer == b->bindings[i][n].buffer) s.bindings[n].buffer = buffers[a];
  }
  s.kernel = c->plan->kernels.count;
  if (s.choice) s.choice = s.choice - b->first_step + (c->plan->steps.count - i);
  s.nodes = group->nodes;
  *k = *model.kernel;
  k->name = s.name;
  if (c->options->hooks && c->options->hooks->after_kernel) c->options->hooks->after_kernel(c->options->hooks->user, k->name, k);
  const plan_kernel pk = {.kernel = k, .kind = model.kind};
  return IR_PUSH(c->arena, &c->plan->kernels, pk) && IR_PUSH(c->arena, &c->plan->steps, s);
}

static snt_result build_again(schedule_memory *m, const fusion_group *group, const built_group *b) {
  fusion_context *c = m->c;
  uint32_t *buffers = IR_NEW_ARRAY(c->arena, uint32_t, b->asked_count);
  bool good = buffers != NULL;
  for (uint32_t a = 0; good && a < b->asked_count; a++) good = (buffers[a] = ask_again(m, &b->asked[a])) < c->plan->buffers.count;
  for (uint32_t i = 0; good && i < b->step_count; i++) good = build_step(c, group, b, i, buffers);
  return good ? SNT_OK : ir_no_memory(c->diag, "schedule");
}

/* ---- entry ---- */

schedule_memory *schedule_memory_new(fusion_context *c) {
  schedule_memory *m = IR_NEW(c->arena, schedule_memory);
  if (!m) return NULL;
  m->c = c;
  for (m->table_size = 16; m->table_size < 2 * c->order_count;) m->table_size *= 2;
  m->table = IR_NEW_ARRAY(c->arena, uint32_t, m->table_size);
  m->mark = IR_NEW_ARRAY(c->arena, uint32_t, c->graph->nodes.count);
  m->place = IR_NEW_ARRAY(c->arena, uint32_t, c->graph->nodes.count);
  return m->table && m->mark && m->place ? m : NULL;
}

static bool is_kind_of_layers(const fusion_context *c, const fusion_group *group) {
  static const uint8_t kinds[GROUP_KIND_COUNT] = {[GROUP_LOOP] = 1,   [GROUP_REDUCE] = 1,    [GROUP_ROW] = 1,      [GROUP_CONTRACT] = 1,
                                                  [GROUP_WINDOW] = 1, [GROUP_TRANSPOSE] = 1, [GROUP_ATTENTION] = 1};
  return kinds[group->kind] && !c->options->image_count && c->uses;
}

snt_result schedule_build(schedule_memory *m, const fusion_group *group) {
  fusion_context *c = m->c;
  const schedule_info *kind = &fusion_schedules[group->kind];
  if (!is_kind_of_layers(c, group) || !find_nodes(m, group)) return kind->build(c, group);
  built_group b = {.hash = describe(m, group), .first_step = c->plan->steps.count, .first_kernel = c->plan->kernels.count};
  const built_group *known = c->arena->failed ? NULL : find_built(m, b.hash);
  if (known) return build_again(m, group, known);
  c->asked.count = 0;
  c->asking = true;
  c->peeked = false;
  const snt_result r = kind->build(c, group);
  c->asking = false;
  if (r == SNT_OK && !c->arena->failed) remember(m, &b);
  return r;
}
