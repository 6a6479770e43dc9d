/* The verifier: everything that the other parts take for granted about a graph, checked again from the stored form. Reports all errors; an
   error in a node's references stops the further checks of that node only. */
#include "ir/graph.h"
#include "ir/shape_private.h"
#include <stdio.h>

typedef struct verifier {
  const ir_graph *g;
  ir_text *errors;
  snt_diag *diag;
  snt_result result;
  bool *sound; /* by node: references and attributes may be followed */
  ir_arena temp;
} verifier;

static void report(verifier *v, snt_result result, uint32_t node, const char *text) {
  if (v->result == SNT_OK) v->result = ir_fail(v->diag, result, "verify", node, "%s", text);
  if (!v->errors) return;
  ir_text_add(v->errors, text);
  ir_text_add(v->errors, "\n");
}

/* "node 7 (conv1) add: ..." */
IR_PRINTF(4, 5) static void node_error(verifier *v, snt_result result, uint32_t n, const char *format, ...) {
  char what[200], line[320];
  va_list args;
  va_start(args, format);
  vsnprintf(what, sizeof what, format, args);
  va_end(args);
  const uint32_t op = ir_at(v->g, n)->op, name = ir_at(v->g, n)->name;
  const char *user = name && name < v->g->names.count ? ir_node_name(v->g, n) : "";
  snprintf(line, sizeof line, "node %u%s%.60s%s %s: %s", n, *user ? " (" : "", user, *user ? ")" : "",
           op < IR_OP_COUNT ? ir_ops[op].name : "?", what);
  report(v, result, n, line);
}

IR_PRINTF(3, 4) static void graph_error(verifier *v, uint32_t n, const char *format, ...) {
  char line[240];
  va_list args;
  va_start(args, format);
  vsnprintf(line, sizeof line, format, args);
  va_end(args);
  report(v, SNT_E_ARG, n, line);
}

/* Whether region `inner` is `outer` or lies in it. Parents have smaller numbers, so this ends. */
static bool inside(const ir_graph *g, uint32_t inner, uint32_t outer) {
  while (inner > outer && g->regions.at[inner].parent < inner) inner = g->regions.at[inner].parent;
  return inner == outer;
}

/* ---- nodes ---- */
static bool check_references(verifier *v, uint32_t n) {
  const ir_graph *g = v->g;
  const ir_node *node = ir_at(g, n);
  bool ok = true;
  if (node->region >= g->regions.count) return node_error(v, SNT_E_ARG, n, "region %u does not exist", node->region), false;
  if (node->name >= g->names.count) return node_error(v, SNT_E_ARG, n, "its name does not exist"), false;
  if ((uint64_t)node->args + node->arity > g->args.count) return node_error(v, SNT_E_ARG, n, "its operands do not exist"), false;
  if ((uint64_t)node->attrs + node->attr_count > g->attrs.count) return node_error(v, SNT_E_ARG, n, "its attributes do not exist"), false;
  for (uint32_t i = 0; i < node->attr_count; i++) {
    const ir_attr *attr = &g->attrs.at[node->attrs + i];
    if (attr->key == 0 || attr->key >= IR_ATTR_COUNT || (uint64_t)attr->first + attr->count > g->ints.count)
      return node_error(v, SNT_E_ARG, n, "attribute %u is damaged", i + 1), false;
  }
  for (uint32_t i = 0; i < node->arity; i++) {
    const uint32_t arg = ir_arg(g, n, i);
    if (arg == 0 || arg >= g->nodes.count) ok = false, node_error(v, SNT_E_ARG, n, "operand %u is no value", i + 1);
    else if (arg == n) ok = false, node_error(v, SNT_E_ARG, n, "operand %u is the node itself: a cycle", i + 1);
    else if (arg > n)
      ok = false, node_error(v, SNT_E_ARG, n, "operand %u is node %u, which comes later: out of order, or a cycle", i + 1, arg);
    else if (!v->sound[arg]) ok = false; /* its own error has been reported */
    else if (!inside(g, node->region, ir_at(g, arg)->region))
      ok = false, node_error(v, SNT_E_ARG, n, "operand %u is node %u, which belongs to region %u", i + 1, arg, ir_at(g, arg)->region);
  }
  return ok;
}

/* The attributes as stored must be those that inference completes them to: sorted, defaults present, labels in order. */
static void check_complete(verifier *v, uint32_t n, const shape_query *q) {
  const ir_graph *g = v->g;
  const ir_node *node = ir_at(g, n);
  uint32_t next = 0;
  const uint64_t stored = q->has & ir_ops[node->op].attrs;
  for (uint32_t key = 1; stored >> key; key++) {
    if (!(stored >> key & 1)) continue;
    const ir_attr *attr = next < node->attr_count ? &g->attrs.at[node->attrs + next++] : NULL;
    bool same = attr && attr->key == key && attr->count == q->attr[key].count;
    for (uint32_t i = 0; same && i < attr->count; i++) same = g->ints.at[attr->first + i] == q->attr[key].ints[i];
    if (same) continue;
    node_error(v, SNT_E_ARG, n, "attribute %s is not stored in its complete form", ir_attr_infos[key].name);
    return;
  }
}

static void check_type(verifier *v, uint32_t n) {
  const ir_graph *g = v->g;
  const ir_node *node = ir_at(g, n);
  ir_attr_value attrs[IR_ATTR_COUNT];
  shape_query q;
  snt_diag diag;
  if (node->attr_count >= IR_ATTR_COUNT) {
    node_error(v, SNT_E_ARG, n, "%u attributes", node->attr_count);
    return;
  }
  for (uint32_t i = 0; i < node->attr_count; i++) {
    const ir_attr *a = &g->attrs.at[node->attrs + i];
    attrs[i] = (ir_attr_value){a->key, a->count, a->count ? &g->ints.at[a->first] : NULL};
  }
  const uint32_t *args = node->arity ? &g->args.at[node->args] : NULL;
  const bool given = ir_ops[node->op].rule == IR_RULE_GIVEN;
  const ir_node_desc desc = {(ir_op)node->op, node->arity, args, node->attr_count, attrs, given ? &node->type : NULL};
  snt_result result = shape_infer(&q, g, &desc, &diag);
  if (result != SNT_OK) {
    const size_t prefix = strlen(ir_ops[node->op].name) + 2; /* "add: " */
    node_error(v, result, n, "%s", strlen(diag.text) > prefix ? diag.text + prefix : diag.text);
    v->sound[n] = false;
    return;
  }
  if (q.out.dtype != node->type.dtype || !ir_same_shape(&q.out, &node->type))
    node_error(v, SNT_E_SHAPE, n, "its type is %s, %s follows from its operands", shape_name_type(&q, &node->type),
               shape_name_type(&q, &q.out));
  check_complete(v, n, &q);
}

static void check_const(verifier *v, uint32_t n) {
  const ir_node *node = ir_at(v->g, n);
  if (node->payload >= v->g->consts.count) {
    node_error(v, SNT_E_ARG, n, "its value does not exist");
    return;
  }
  const ir_const *value = &v->g->consts.at[node->payload];
  if (value->kind > IR_CONST_MADE) node_error(v, SNT_E_ARG, n, "unknown kind %u", value->kind);
  if ((value->kind == IR_CONST_DATA && !value->data) || (value->kind == IR_CONST_MADE && !value->making))
    node_error(v, SNT_E_ARG, n, "it has no data");
  if (value->kind == IR_CONST_SPLAT) return;
  for (uint32_t i = 0; i < node->type.rank; i++)
    if (!expr_is_const(v->g->pool, node->type.dims[i], NULL)) node_error(v, SNT_E_SHAPE, n, "axis %u has no fixed extent", i);
}

/* An argument stands for a carried value of the repeat that owns its region: same type, an index in range, one node an index. */
static void check_argument(verifier *v, uint32_t n) {
  const ir_graph *g = v->g;
  const ir_node *node = ir_at(g, n);
  const int64_t index = ir_attr_int(g, n, IR_ATTR_index, -1);
  const uint32_t owner = node->region ? g->regions.at[node->region].owner : 0;
  if (!owner || owner >= g->nodes.count) {
    node_error(v, SNT_E_ARG, n, "it is in no repeat");
    return;
  }
  const ir_node *repeat = ir_at(g, owner);
  if (index < 0 || index >= repeat->arity || (uint64_t)repeat->args + repeat->arity > g->args.count) {
    node_error(v, SNT_E_ARG, n, "the repeat has %u carried values, not one of index %lld", repeat->arity, (long long)index);
    return;
  }
  const uint32_t initial = g->args.at[repeat->args + index];
  if (initial == 0 || initial >= g->nodes.count) return;
  const ir_tensor *want = &ir_at(g, initial)->type;
  if (want->dtype != node->type.dtype || !ir_same_shape(want, &node->type))
    node_error(v, SNT_E_SHAPE, n, "its type is not that of its initial value, node %u", initial);
}

static void check_node(verifier *v, uint32_t n) {
  const ir_node *node = ir_at(v->g, n);
  snt_diag diag;
  v->sound[n] = false;
  if (node->op == IR_OP_NONE || node->op >= IR_OP_COUNT) {
    node_error(v, SNT_E_ARG, n, "unknown operator %u", node->op);
    return;
  }
  if (!check_references(v, n)) return;
  v->sound[n] = true;
  if (shape_check_type(v->g->pool, &node->type, &diag) != SNT_OK) {
    node_error(v, SNT_E_SHAPE, n, "%s", diag.text);
    v->sound[n] = false;
    return;
  }
  check_type(v, n);
  if (node->op == IR_OP_const) check_const(v, n);
  if (node->op == IR_OP_argument && v->sound[n]) check_argument(v, n);
  if ((node->op == IR_OP_input || node->op == IR_OP_state) && node->region) node_error(v, SNT_E_ARG, n, "it is in a repeat");
}

/* ---- regions ---- */
static void check_region(verifier *v, uint32_t r) {
  const ir_graph *g = v->g;
  const ir_region *region = &g->regions.at[r];
  if (region->parent >= r) {
    graph_error(v, 0, "region %u lies in region %u, which is not before it", r, region->parent);
    return;
  }
  const uint32_t owner = region->owner;
  if (owner == 0 || owner >= g->nodes.count || ir_at(g, owner)->op != IR_OP_repeat || !v->sound[owner]) {
    graph_error(v, 0, "region %u belongs to no repeat%s", r, g->open_region ? ": it was not closed" : "");
    return;
  }
  if (ir_attr_int(g, owner, IR_ATTR_region, 0) != r) node_error(v, SNT_E_ARG, owner, "region %u says that it is its own", r);
  if (ir_at(g, owner)->region != region->parent)
    node_error(v, SNT_E_ARG, owner, "it is not in region %u, which is around its own", region->parent);
  if ((uint64_t)region->first + region->count > g->yields.count || region->count != ir_at(g, owner)->arity) {
    node_error(v, SNT_E_ARG, owner, "it yields %u values for %u carried ones", region->count, ir_at(g, owner)->arity);
    return;
  }
  for (uint32_t i = 0; i < region->count; i++) {
    const uint32_t value = g->yields.at[region->first + i];
    if (value == 0 || value >= owner || !inside(g, r, ir_at(g, value)->region)) {
      node_error(v, SNT_E_ARG, owner, "yielded value %u (node %u) is not visible in its region", i + 1, value);
      continue;
    }
    const ir_tensor *is = &ir_at(g, value)->type, *want = &ir_at(g, ir_arg(g, owner, i))->type;
    if (is->dtype != want->dtype || !ir_same_shape(is, want))
      node_error(v, SNT_E_SHAPE, owner, "yielded value %u has not the type of operand %u", i + 1, i + 1);
  }
}

/* ---- the rest ---- */
static bool main_value(const verifier *v, uint32_t n) { return n > 0 && n < v->g->nodes.count && ir_at(v->g, n)->region == 0; }

/* No two ports of a list have one name. */
static void check_names(verifier *v, const ir_port *ports, uint32_t count, const char *what) {
  const ir_graph *g = v->g;
  uint32_t size = 16;
  while (size < count * 2) size *= 2;
  uint32_t *table = IR_NEW_ARRAY(&v->temp, uint32_t, size);
  for (uint32_t i = 0; table && i < count; i++) {
    if (ports[i].name == 0 || ports[i].name >= g->names.count) continue;
    const char *name = &g->names.at[ports[i].name];
    uint32_t at = (uint32_t)ir_hash64(0, name, strlen(name)) & (size - 1);
    while (table[at] && strcmp(&g->names.at[ports[table[at] - 1].name], name) != 0) at = (at + 1) & (size - 1);
    if (table[at]) graph_error(v, ports[i].node, "two %ss are named %.100s", what, name);
    else table[at] = i + 1;
  }
}

static void check_ports(verifier *v) {
  const ir_graph *g = v->g;
  uint32_t sources = 0;
  for (uint32_t n = 1; n < g->nodes.count; n++) sources += ir_at(g, n)->op == IR_OP_input || ir_at(g, n)->op == IR_OP_state;
  if (sources != g->inputs.count) graph_error(v, 0, "%u input and state nodes, %u in the list of inputs", sources, g->inputs.count);
  for (uint32_t i = 0; i < g->inputs.count; i++) {
    const uint32_t n = g->inputs.at[i].node;
    if (!main_value(v, n) || (ir_at(g, n)->op != IR_OP_input && ir_at(g, n)->op != IR_OP_state))
      graph_error(v, n, "input %u is node %u, which is none", i + 1, n);
    else if (!ir_at(g, n)->name) node_error(v, SNT_E_ARG, n, "it has no name");
  }
  for (uint32_t i = 0; i < g->outputs.count; i++)
    if (!main_value(v, g->outputs.at[i].node))
      graph_error(v, g->outputs.at[i].node, "output %u is node %u, no value of the graph itself", i + 1, g->outputs.at[i].node);
  check_names(v, g->inputs.at, g->inputs.count, "input");
  check_names(v, g->outputs.at, g->outputs.count, "output");
  if (g->outputs.count == 0 && g->updates.count == 0) graph_error(v, 0, "the graph has no output");
}

static void check_updates(verifier *v) {
  const ir_graph *g = v->g;
  for (uint32_t i = 0; i < g->updates.count; i++) {
    const ir_update *u = &g->updates.at[i];
    if (!main_value(v, u->state) || !main_value(v, u->value) || ir_at(g, u->state)->op != IR_OP_state) {
      graph_error(v, u->state, "update %u: node %u is no state, or node %u no value", i + 1, u->state, u->value);
      continue;
    }
    const ir_tensor *to = &ir_at(g, u->state)->type, *from = &ir_at(g, u->value)->type;
    if (to->dtype != from->dtype || !ir_same_shape(to, from))
      node_error(v, SNT_E_SHAPE, u->state, "its update, node %u, has another type", u->value);
    for (uint32_t other = 0; other < i; other++)
      if (g->updates.at[other].state == u->state) node_error(v, SNT_E_ARG, u->state, "it is updated twice");
  }
}

static void check_contracts(verifier *v) {
  const ir_graph *g = v->g;
  for (uint32_t i = 0; i < g->contracts.count; i++) {
    const ir_contract *c = &g->contracts.at[i];
    if (c->kind < IR_MUST_FUSE || c->kind > IR_BARRIER || c->count == 0 || (uint64_t)c->first + c->count > g->contract_values.count) {
      graph_error(v, 0, "contract %u is damaged", i + 1);
      continue;
    }
    if (c->kind == IR_MUST_FUSE && c->count < 2) graph_error(v, 0, "contract %u: must_fuse needs two values", i + 1);
    for (uint32_t k = 0; k < c->count; k++) {
      const uint32_t n = g->contract_values.at[c->first + k];
      if (n == 0 || n >= g->nodes.count) graph_error(v, n, "contract %u names node %u, which is none", i + 1, n);
    }
  }
}

static void check_symbols(verifier *v) {
  const expr_pool *pool = v->g->pool;
  for (uint32_t i = 0; i < pool->symbols.count; i++) {
    const expr_symbol *s = &pool->symbols.at[i];
    if (s->min < 0 || s->max < s->min || s->multiple_of < 1)
      graph_error(v, 0, "symbol %.80s: 0 <= min <= max and multiple_of over 0 do not hold", s->name);
    for (uint32_t other = 0; other < i; other++)
      if (strcmp(pool->symbols.at[other].name, s->name) == 0) graph_error(v, 0, "two symbols are named %.80s", s->name);
  }
}

snt_result ir_graph_verify(const ir_graph *g, ir_text *errors, snt_diag *diag) {
  verifier v = {.g = g, .errors = errors, .diag = diag, .result = SNT_OK};
  if (g->failed) {
    report(&v, g->first_error.result, g->first_error.node, g->first_error.text);
    return v.result;
  }
  ir_arena_init(&v.temp, &g->arena->host);
  v.sound = IR_NEW_ARRAY(&v.temp, bool, g->nodes.count);
  if (!v.sound) {
    ir_arena_free(&v.temp);
    return ir_fail(diag, SNT_E_HOST_MEM, "verify", 0, "out of memory");
  }
  check_symbols(&v);
  for (uint32_t n = 1; n < g->nodes.count; n++) check_node(&v, n);
  for (uint32_t r = 1; r < g->regions.count; r++) check_region(&v, r);
  check_ports(&v);
  check_updates(&v);
  check_contracts(&v);
  ir_arena_free(&v.temp);
  return v.result;
}
