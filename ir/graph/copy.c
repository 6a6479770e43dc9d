/* A copy without what nothing needs. Liveness runs backwards over the array, since operands and yielded values precede their users. */
#include "ir/graph_private.h"

static void mark_region(const ir_graph *g, uint32_t region, uint32_t *live) {
  const ir_region *r = &g->regions.at[region];
  for (uint32_t i = 0; i < r->count; i++) live[g->yields.at[r->first + i]] = 1;
}

static void mark_live(const ir_graph *g, uint32_t *live) {
  memset(live, 0, g->nodes.count * sizeof *live);
  for (uint32_t i = 0; i < g->inputs.count; i++) live[g->inputs.at[i].node] = 1;
  for (uint32_t i = 0; i < g->outputs.count; i++) live[g->outputs.at[i].node] = 1;
  for (uint32_t i = 0; i < g->updates.count; i++) live[g->updates.at[i].value] = 1;
  for (uint32_t n = g->nodes.count - 1; n > 0; n--) {
    const ir_node *node = ir_at(g, n);
    /* Carried values stay as a whole while their loop does; a dead loop's body is dropped because nothing else reads it. */
    if (node->op == IR_OP_argument && live[g->regions.at[node->region].owner]) live[n] = 1;
    if (!live[n]) continue;
    for (uint32_t i = 0; i < node->arity; i++) live[ir_arg(g, n, i)] = 1;
    if (node->op == IR_OP_repeat) mark_region(g, (uint32_t)ir_attr_int(g, n, IR_ATTR_region, 0), live);
  }
}

/* Regions keep their order and get dense numbers; `map` is from old to new. */
static bool copy_regions(const ir_graph *from, ir_graph *to, const uint32_t *live, uint32_t *map) {
  map[0] = 0;
  for (uint32_t r = 1; r < from->regions.count; r++) {
    map[r] = 0;
    const ir_region *old = &from->regions.at[r];
    if (!old->owner || !live[old->owner]) continue;
    const ir_region region = {.count = old->count, .parent = map[old->parent], .trips = old->trips};
    if (!IR_PUSH(to->arena, &to->regions, region)) return false;
    map[r] = to->regions.count - 1;
  }
  return true;
}

static bool copy_attrs(const ir_graph *from, ir_graph *to, const ir_node *node, const uint32_t *regions) {
  for (uint32_t i = 0; i < node->attr_count; i++) {
    const ir_attr *attr = &from->attrs.at[node->attrs + i];
    const bool renumbered = attr->key == IR_ATTR_region && node->op == IR_OP_repeat; /* a loop's names a body, which stays */
    const ir_expr region = renumbered ? (ir_expr)regions[from->ints.at[attr->first]] : 0;
    const ir_expr *ints = renumbered ? &region : attr->count ? &from->ints.at[attr->first] : NULL;
    if (!graph_put_attr(to, attr->key, attr->count, ints)) return false;
  }
  return true;
}

static uint32_t copy_name(const ir_graph *from, ir_graph *to, uint32_t name) {
  return name ? ir_name_add(to, &from->names.at[name], strlen(&from->names.at[name])) : 0;
}

static uint32_t copy_node(const ir_graph *from, ir_graph *to, uint32_t n, const uint32_t *map, const uint32_t *regions) {
  ir_node node = *ir_at(from, n);
  uint32_t args[256];
  for (uint32_t i = 0; i < node.arity; i++) args[i] = map[ir_arg(from, n, i)];
  const uint32_t attrs = to->attrs.count;
  if (!copy_attrs(from, to, &node, regions)) return 0;
  node.attrs = attrs;
  /* Nodes of one composite share a name's text; so do their copies, where they follow one another. */
  const uint32_t before = n > 1 ? n - 1 : 0;
  bool shared = node.name && map[before] && ir_at(from, before)->name == node.name;
  node.name = shared ? ir_at(to, map[before])->name : copy_name(from, to, node.name);
  if (node.op == IR_OP_const) {
    if (!IR_PUSH(to->arena, &to->consts, from->consts.at[node.payload])) return 0;
    node.payload = to->consts.count - 1;
  }
  to->open_region = regions[node.region];
  uint32_t made = graph_put(to, &node, node.arity, args);
  to->open_region = 0;
  return made;
}

static void copy_ports(const ir_graph *from, ir_graph *to, const uint32_t *map) {
  bool ok = true;
  for (uint32_t i = 0; i < from->inputs.count; i++) {
    const uint32_t node = map[from->inputs.at[i].node];
    const ir_port port = {ir_at(to, node)->name, node};
    ok = IR_PUSH(to->arena, &to->inputs, port) && ok;
  }
  for (uint32_t i = 0; i < from->outputs.count; i++) {
    const ir_port port = {copy_name(from, to, from->outputs.at[i].name), map[from->outputs.at[i].node]};
    ok = IR_PUSH(to->arena, &to->outputs, port) && ok;
  }
  for (uint32_t i = 0; i < from->updates.count; i++) {
    const ir_update update = {map[from->updates.at[i].state], map[from->updates.at[i].value]};
    ok = IR_PUSH(to->arena, &to->updates, update) && ok;
  }
  if (!ok) graph_mistake(to, SNT_E_HOST_MEM, "out of memory");
}

void ir_copy_contracts(const ir_graph *from, ir_graph *to, const uint32_t *map) {
  for (uint32_t i = 0; i < from->contracts.count; i++) {
    ir_contract contract = from->contracts.at[i];
    const uint32_t *values = &from->contract_values.at[contract.first], count = contract.count;
    contract.first = to->contract_values.count;
    contract.count = 0;
    bool ok = true;
    for (uint32_t v = 0; v < count; v++)
      if (map[values[v]]) ok = IR_PUSH(to->arena, &to->contract_values, map[values[v]]) && ok, contract.count++;
    const uint32_t least = contract.kind == IR_MUST_FUSE && count > 1 ? 2
                                                                      : 1; /* what is left of two holds: the other is computed nowhere */
    if (contract.count >= least) ok = IR_PUSH(to->arena, &to->contracts, contract) && ok;
    if (!ok) graph_mistake(to, SNT_E_HOST_MEM, "out of memory");
  }
}

static void copy_yields(const ir_graph *from, ir_graph *to, const uint32_t *map, const uint32_t *regions) {
  for (uint32_t r = 1; r < from->regions.count; r++) {
    if (!regions[r]) continue;
    const ir_region *old = &from->regions.at[r];
    ir_region *region = &to->regions.at[regions[r]];
    region->owner = map[old->owner];
    region->first = to->yields.count;
    for (uint32_t i = 0; i < old->count; i++)
      if (!IR_PUSH(to->arena, &to->yields, map[from->yields.at[old->first + i]])) graph_mistake(to, SNT_E_HOST_MEM, "out of memory");
  }
}

static uint32_t copy_or_replace(const ir_graph *from, ir_graph *to, uint32_t n, const uint32_t *map, const uint32_t *regions,
                                const ir_copy_hook *hook) {
  to->open_region = regions[ir_at(from, n)->region];
  const uint32_t made = hook ? hook->replace(hook->user, to, n) : 0;
  to->open_region = 0;
  return made ? made : copy_node(from, to, n, map, regions);
}

snt_result ir_graph_copy_with(const ir_graph *from, ir_graph *to, uint32_t *map, const ir_copy_hook *hook) {
  if (from->failed) return from->first_error.result;
  uint32_t *regions = IR_NEW_ARRAY(to->arena, uint32_t, from->regions.count);
  if (!regions) return SNT_E_HOST_MEM;
  mark_live(from, map);
  if (!copy_regions(from, to, map, regions)) return SNT_E_HOST_MEM;
  to->title = from->title;
  to->bodies = from->bodies;
  ir_graph_expect(to, from);
  map[0] = 0;
  for (uint32_t n = 1; n < from->nodes.count; n++) {
    if (!map[n]) continue;
    map[n] = copy_or_replace(from, to, n, map, regions, hook);
    if (!map[n]) return SNT_E_HOST_MEM;
  }
  copy_yields(from, to, map, regions);
  copy_ports(from, to, map);
  ir_copy_contracts(from, to, map);
  return graph_alive(to) ? SNT_OK : to->first_error.result;
}

snt_result ir_graph_copy_live(const ir_graph *from, ir_graph *to, uint32_t *map) { return ir_graph_copy_with(from, to, map, NULL); }

static bool same_types(const ir_graph *to, const uint32_t *args, const ir_graph *from, const ir_node *n) {
  for (uint32_t i = 0; i < n->arity; i++) {
    const ir_tensor *a = &ir_at(from, from->args.at[n->args + i])->type, *b = &ir_at(to, args[i])->type;
    if (a->dtype != b->dtype || !ir_same_shape(a, b)) return false;
  }
  return true;
}

static uint32_t add_with_attrs(ir_graph *to, const ir_graph *from, const ir_node *n, const uint32_t *args, const ir_tensor *declared) {
  ir_attr_value attrs[IR_ATTR_COUNT];
  for (uint32_t i = 0; i < n->attr_count; i++) {
    const ir_attr *a = &from->attrs.at[n->attrs + i];
    attrs[i] = (ir_attr_value){a->key, a->count, from->ints.at + a->first};
  }
  return ir_add_node(to, (ir_op)n->op, n->arity, args, n->attr_count, attrs, declared);
}

uint32_t ir_add_like(ir_graph *to, const ir_graph *from, uint32_t node, const uint32_t *args) {
  const ir_node *n = ir_at(from, node);
  if (!graph_check_values(to, ir_ops[n->op].name, n->arity, args)) return 0;
  if (from->pool == to->pool && same_types(to, args, from, n)) { /* then so is the result's */
    const ir_node made = {.op = n->op, .type = n->type, .attrs = to->attrs.count, .attr_count = n->attr_count};
    for (uint32_t i = 0; i < n->attr_count; i++) {
      const ir_attr *a = &from->attrs.at[n->attrs + i];
      if (!graph_put_attr(to, a->key, a->count, from->ints.at + a->first)) return 0;
    }
    return graph_put(to, &made, n->arity, args);
  }
  return add_with_attrs(to, from, n, args, &n->type);
}

uint32_t ir_add_retyped(ir_graph *g, uint32_t node, const uint32_t *args) {
  const ir_node n = *ir_at(g, node);
  return add_with_attrs(g, g, &n, args, NULL);
}

void ir_graph_stamp_origins(ir_graph *g) {
  for (uint32_t n = 1; n < g->nodes.count; n++)
    if (!g->nodes.at[n].origin) g->nodes.at[n].origin = n;
}
