/* The nodes of a graph in an order in which each stands behind what it reads. ONNX asks that of a file; converters that put nodes in
   afterwards (casts around what became f16, say) append them, and other runtimes sort. In: nodes as the file has them. Out: the same, where
   that is no order yet: each behind the nodes that it reads, those in front of the first that reads them, else as before. A graph that goes
   round in circles stays as it is, which the import refuses. */
#include "onnx/model.h"

#define NONE UINT32_MAX

typedef IR_VEC(uint32_t) numbers;
typedef struct result {
  const char *name;
  uint32_t node; /* that gives it */
} result;
typedef struct order {
  ir_arena *arena;
  const onnx_nodes *nodes;
  IR_VEC(result) results;
  uint32_t *table, size; /* of results by their names: open addressing */
  numbers makers, first; /* the nodes that node i reads: makers from first[i] to first[i + 1] */
  bool sorted;           /* so far all of them stand in front */
} order;
typedef struct visits {
  uint8_t *state;
  uint32_t *next;    /* of its makers the one to be asked */
  numbers path, out; /* those begun, from the root on; those done */
} visits;

/* Where the name is in the table, or would be. */
static uint32_t *slot_of(const order *o, const char *name) {
  uint32_t i = (uint32_t)ir_hash64(0, name, strlen(name)) & (o->size - 1);
  while (o->table[i] != NONE && strcmp(o->results.at[o->table[i]].name, name) != 0) i = (i + 1) & (o->size - 1);
  return &o->table[i];
}

static bool list_results(order *o) {
  for (uint32_t i = 0; i < o->nodes->count; i++)
    for (uint32_t k = 0; k < o->nodes->at[i].outputs.count; k++)
      if (!IR_PUSH(o->arena, &o->results, (result){o->nodes->at[i].outputs.at[k], i})) return false;
  for (o->size = 16; o->size < 2 * o->results.count;) o->size *= 2;
  o->table = IR_NEW_ARRAY(o->arena, uint32_t, o->size);
  if (!o->table) return false;
  for (uint32_t i = 0; i < o->size; i++) o->table[i] = NONE;
  for (uint32_t i = 0; i < o->results.count; i++) {
    uint32_t *slot = slot_of(o, o->results.at[i].name);
    if (*slot == NONE) *slot = i; /* of two nodes that give one name the first: the import says so */
  }
  return true;
}

static bool read_name(order *o, uint32_t reader, const char *name) {
  const uint32_t found = name[0] ? *slot_of(o, name) : NONE;
  if (found == NONE) return true;
  const uint32_t maker = o->results.at[found].node;
  o->sorted &= maker < reader;
  return IR_PUSH(o->arena, &o->makers, maker);
}

/* What a node reads, and the graphs inside it of the one around them. */
static bool read_names(order *o, uint32_t reader, const onnx_node *n) {
  for (uint32_t i = 0; i < n->inputs.count; i++)
    if (!read_name(o, reader, n->inputs.at[i])) return false;
  for (uint32_t i = 0; i < n->attrs.count; i++) {
    const onnx_graph *inner = n->attrs.at[i].kind == ONNX_GRAPH ? n->attrs.at[i].graph : NULL;
    for (uint32_t k = 0; inner && k < inner->nodes.count; k++)
      if (!read_names(o, reader, &inner->nodes.at[k])) return false;
    for (uint32_t k = 0; inner && k < inner->outputs.count; k++)
      if (!read_name(o, reader, inner->outputs.at[k].name)) return false;
  }
  return true;
}

static bool list_makers(order *o) {
  for (uint32_t i = 0; i < o->nodes->count; i++)
    if (!IR_PUSH(o->arena, &o->first, o->makers.count) || !read_names(o, i, &o->nodes->at[i])) return false;
  return IR_PUSH(o->arena, &o->first, o->makers.count);
}

enum { NEW, BEGUN, DONE };

/* Depth first from the root: what it reads, then itself. False: memory, or *circle. */
static bool put_behind(order *o, uint32_t root, visits *v, bool *circle) {
  if (!IR_PUSH(o->arena, &v->path, root)) return false;
  while (v->path.count) {
    const uint32_t node = v->path.at[v->path.count - 1];
    if (v->state[node] == NEW) v->next[node] = o->first.at[node];
    v->state[node] = BEGUN;
    while (v->next[node] < o->first.at[node + 1] && v->state[o->makers.at[v->next[node]]] == DONE) v->next[node]++;
    if (v->next[node] == o->first.at[node + 1]) {
      v->state[node] = DONE;
      v->path.count--;
      if (!IR_PUSH(o->arena, &v->out, node)) return false;
      continue;
    }
    const uint32_t maker = o->makers.at[v->next[node]];
    *circle = v->state[maker] == BEGUN;
    if (*circle || !IR_PUSH(o->arena, &v->path, maker)) return false;
  }
  return true;
}

static bool sort(order *o, visits *v, bool *circle) {
  v->next = IR_NEW_ARRAY(o->arena, uint32_t, o->nodes->count);
  v->state = IR_NEW_ARRAY(o->arena, uint8_t, o->nodes->count); /* all NEW */
  if (!v->next || !v->state) return false;
  for (uint32_t i = 0; i < o->nodes->count; i++)
    if (v->state[i] == NEW && !put_behind(o, i, v, circle)) return false;
  return true;
}

static bool put_nodes(order *o, const numbers *sorted, onnx_nodes *nodes) {
  onnx_node *old = IR_NEW_ARRAY(o->arena, onnx_node, nodes->count);
  if (!old) return false;
  memcpy(old, nodes->at, nodes->count * sizeof *old);
  for (uint32_t i = 0; i < nodes->count; i++) nodes->at[i] = old[sorted->at[i]];
  return true;
}

bool onnx_put_in_order(ir_arena *arena, onnx_nodes *nodes) {
  const ir_arena_mark here = ir_arena_here(arena);
  order o = {.arena = arena, .nodes = nodes, .sorted = true};
  visits v = {.state = NULL};
  bool circle = false, good = list_results(&o) && list_makers(&o);
  if (good && !o.sorted) good = (sort(&o, &v, &circle) && put_nodes(&o, &v.out, nodes)) || circle;
  if (good) ir_arena_rewind(arena, here);
  return good;
}
