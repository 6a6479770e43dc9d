/* The printer of the graph text. Canonical: values get numbers in order of appearance, except where the user's name can stand for them;
   attributes are sorted; nothing depends on addresses or hash order. What it prints, ir/graph/parse.c reads back to the same text. */
#include "ir/custom.h"
#include "ir/graph_text.h"
#include "ir/literal.h"
#include <inttypes.h>

#define NAMED UINT32_MAX
typedef struct printer {
  const ir_graph *g;
  const ir_text_hooks *hooks;
  ir_text *out;
  ir_arena temp;
  uint32_t *number; /* of each node: 0 not yet, NAMED: printed by name */
  uint32_t last_number;
  uint32_t *inlined;                   /* 1: a literal, written where it is used; 2: a pick or argument, written by its repeat */
  uint32_t *region_head, *region_next; /* nodes of each region in order */
  uint32_t depth;
} printer;

/* ---- names ---- */
/* A name stands for its last bearer, or for the input that has it. */
static bool find_names(printer *p) {
  const ir_graph *g = p->g;
  uint32_t size = 16;
  while (size < g->nodes.count * 2) size *= 2;
  uint32_t *table = IR_NEW_ARRAY(&p->temp, uint32_t, size);
  if (!table) return false;
  for (uint32_t n = 1; n < g->nodes.count; n++) {
    const char *name = ir_node_name(g, n);
    if (!*name) continue;
    uint32_t at = (uint32_t)ir_hash64(0, name, strlen(name)) & (size - 1);
    while (table[at] && strcmp(ir_node_name(g, table[at]), name) != 0) at = (at + 1) & (size - 1);
    const uint16_t bearer = table[at] ? ir_at(g, table[at])->op : IR_OP_NONE;
    if (bearer == IR_OP_input || bearer == IR_OP_state) continue;
    if (table[at]) p->number[table[at]] = 0;
    table[at] = n;
    p->number[n] = NAMED;
  }
  return true;
}

static void put_name(printer *p, const char *name) {
  if (graph_is_identifier(name)) ir_text_add(p->out, name);
  else ir_put_quoted(p->out, name);
}

static void put_value(printer *p, uint32_t n) {
  ir_text_add(p->out, "%");
  if (n == 0 || n >= p->g->nodes.count) {
    ir_text_add(p->out, "?");
    return;
  }
  if (p->number[n] == NAMED) {
    put_name(p, ir_node_name(p->g, n));
    return;
  }
  if (!p->number[n]) p->number[n] = ++p->last_number;
  ir_text_format(p->out, "%" PRIu32, p->number[n]);
}

static void put_type(printer *p, const ir_tensor *type) {
  ir_text_format(p->out, "%s[", ir_dtypes[type->dtype].name);
  for (uint32_t i = 0; i < type->rank; i++) {
    if (i) ir_text_add(p->out, ",");
    expr_print(p->g->pool, type->dims[i], p->out);
  }
  ir_text_add(p->out, "]");
}

/* ---- constants ---- */
static bool is_literal(const ir_graph *g, uint32_t n) {
  const ir_node *node = ir_at(g, n);
  return node->op == IR_OP_const && node->type.rank == 0 && !node->name && g->consts.at[node->payload].kind == IR_CONST_SPLAT;
}

static void put_elements(printer *p, const ir_node *node, const ir_const *value) {
  int64_t count = 0;
  expr_is_const(p->g->pool, ir_tensor_elements(p->g->pool, &node->type), &count);
  ir_text_add(p->out, "[");
  for (int64_t i = 0; i < count && !p->out->failed; i++) {
    uint64_t bits;
    double real = ir_dtype_load(node->type.dtype, value->data, (size_t)i);
    if (ir_dtypes[node->type.dtype].is_float) memcpy(&bits, &real, sizeof bits);
    else bits = (uint64_t)ir_dtype_load_int(node->type.dtype, value->data, (size_t)i);
    if (i) ir_text_add(p->out, i % 16 ? ", " : ",\n    ");
    ir_put_scalar(p->out, node->type.dtype, bits);
  }
  ir_text_add(p->out, "]");
}

static bool put_saved(printer *p, const ir_node *node, const ir_const *value) {
  const char *file;
  int64_t count = 0;
  uint64_t offset;
  if (!p->hooks || !p->hooks->save || !expr_is_const(p->g->pool, ir_tensor_elements(p->g->pool, &node->type), &count)) return false;
  if ((uint64_t)count <= p->hooks->limit) return false;
  if (!p->hooks->save(p->hooks->user, value->data, (uint64_t)count * ir_dtypes[node->type.dtype].bytes, &file, &offset)) return false;
  ir_text_add(p->out, "data=");
  ir_put_quoted(p->out, file);
  ir_text_format(p->out, " offset=%" PRIu64, offset);
  return true;
}

static void put_const(printer *p, const ir_node *node) {
  const ir_const *value = &p->g->consts.at[node->payload];
  if (value->kind == IR_CONST_MADE && !ir_const_data((ir_graph *)(uintptr_t)p->g, (uint32_t)(node - p->g->nodes.at))) p->out->failed = true;
  ir_text_add(p->out, "const ");
  if (value->kind == IR_CONST_SPLAT) {
    ir_put_scalar(p->out, node->type.dtype, value->bits);
  } else if (value->kind == IR_CONST_DATA || value->kind == IR_CONST_MADE) {
    if (!p->out->failed && !put_saved(p, node, value)) put_elements(p, node, value);
  } else {
    ir_text_format(p->out, "%s seed=%" PRIu64 " scale=", value->kind == IR_CONST_NORMAL ? "normal" : "uniform", value->seed);
    ir_put_float(p->out, value->scale);
  }
}

/* ---- operands and attributes ---- */
/* A value where one is read; `expected` is the type a bare literal would take there. */
static void put_operand(printer *p, uint32_t n, int32_t expected) {
  if (n == 0 || n >= p->g->nodes.count || p->inlined[n] != 1) {
    put_value(p, n);
    return;
  }
  const ir_node *node = ir_at(p->g, n);
  ir_put_scalar(p->out, node->type.dtype, p->g->consts.at[node->payload].bits);
  if (node->type.dtype != expected) ir_text_format(p->out, ":%s", ir_dtypes[node->type.dtype].name);
}

static void put_operands(printer *p, const ir_node *node) {
  uint8_t types[256];
  for (uint32_t i = 0; i < node->arity; i++) {
    const uint32_t arg = p->g->args.at[node->args + i];
    const bool bare = arg == 0 || arg >= p->g->nodes.count || p->inlined[arg] == 1;
    types[i] = bare ? 0 : ir_at(p->g, arg)->type.dtype;
  }
  for (uint32_t i = 0; i < node->arity; i++) {
    ir_text_add(p->out, i ? ", " : " ");
    const int32_t expected = graph_literal_dtype((ir_op)node->op, i, node->type.dtype, node->arity, types);
    put_operand(p, p->g->args.at[node->args + i], expected);
  }
}

static void put_attr_value(printer *p, const ir_node *node, const ir_attr *attr) {
  const ir_expr *ints = attr->count ? &p->g->ints.at[attr->first] : NULL;
  switch (ir_attr_infos[attr->key].kind) {
  case IR_KIND_INTS:
    ir_text_add(p->out, "[");
    for (uint32_t i = 0; i < attr->count; i++) {
      if (i) ir_text_add(p->out, ",");
      expr_print(p->g->pool, ints[i], p->out);
    }
    ir_text_add(p->out, "]");
    break;
  case IR_KIND_INT: expr_print(p->g->pool, ints[0], p->out); break;
  case IR_KIND_DTYPE: ir_text_add(p->out, ir_dtypes[ints[0]].name); break;
  case IR_KIND_SCALAR: ir_put_scalar(p->out, node->type.dtype, (uint64_t)ints[0]); break;
  case IR_KIND_TEXT: ir_put_quoted(p->out, ir_attr_text(p->g, attr, &p->temp)); break;
  default: break;
  }
}

/* The axes of a broadcast follow from the ranks alone when there is nothing to choose. */
static bool is_implied(const printer *p, const ir_node *node, const ir_attr *attr) {
  if (graph_type_carries((ir_op)node->op, (ir_attr_key)attr->key)) return true;
  if (node->op != IR_OP_broadcast || attr->key != IR_ATTR_axes || node->arity != 1) return false;
  const uint32_t arg = p->g->args.at[node->args];
  return attr->count == 0 || (arg < p->g->nodes.count && ir_at(p->g, arg)->type.rank == node->type.rank);
}

static void put_attrs(printer *p, const ir_node *node) {
  bool first = node->arity == 0;
  for (uint32_t i = 0; i < node->attr_count; i++) {
    const ir_attr *attr = &p->g->attrs.at[node->attrs + i];
    if (is_implied(p, node, attr)) continue;
    ir_text_format(p->out, "%s%s", first ? " " : ", ", ir_attr_infos[attr->key].name);
    first = false;
    if (ir_attr_infos[attr->key].kind == IR_KIND_FLAG) continue;
    ir_text_add(p->out, "=");
    put_attr_value(p, node, attr);
  }
}

/* ---- statements ---- */
static void indent(printer *p) {
  for (uint32_t i = 0; i <= p->depth; i++) ir_text_add(p->out, "  ");
}

static void put_result(printer *p, uint32_t n) {
  put_value(p, n);
  ir_text_add(p->out, ": ");
  put_type(p, &ir_at(p->g, n)->type);
}

static void put_name_note(printer *p, uint32_t n) {
  if (p->number[n] == NAMED || !ir_at(p->g, n)->name) return;
  ir_text_add(p->out, ", name=");
  ir_put_quoted(p->out, ir_node_name(p->g, n));
}

static void put_statements(printer *p, uint32_t region);

/* The pick or argument (by `op`) with this index in `region`, that belongs to the repeat; 0: there is none. */
static uint32_t find_indexed(const printer *p, uint32_t region, ir_op op, uint32_t repeat, uint32_t index) {
  for (uint32_t n = p->region_head[region]; n; n = p->region_next[n]) {
    if (ir_at(p->g, n)->op != op || (op == IR_OP_pick && ir_arg(p->g, n, 0) != repeat)) continue;
    if (ir_attr_int(p->g, n, IR_ATTR_index, -1) == index) return n;
  }
  return 0;
}

static void put_repeat(printer *p, uint32_t n) {
  const ir_node *node = ir_at(p->g, n);
  const uint32_t region = (uint32_t)ir_attr_int(p->g, n, IR_ATTR_region, 0);
  put_result(p, n);
  for (uint32_t i = 1; i < node->arity; i++) {
    const uint32_t pick = find_indexed(p, node->region, IR_OP_pick, n, i);
    ir_text_add(p->out, ", ");
    if (pick) put_result(p, pick);
    else ir_text_add(p->out, "_");
  }
  ir_text_add(p->out, " = repeat trips=");
  expr_print(p->g->pool, *ir_attr_ints(p->g, n, IR_ATTR_trips, NULL), p->out);
  const int64_t goes_on = ir_attr_int(p->g, n, IR_ATTR_while, -1);
  if (goes_on >= 0) ir_text_format(p->out, " while=%" PRId64, goes_on);
  ir_text_add(p->out, " (");
  for (uint32_t i = 0; i < node->arity; i++) {
    const uint32_t argument = find_indexed(p, region, IR_OP_argument, 0, i);
    if (i) ir_text_add(p->out, ", ");
    if (argument) put_result(p, argument);
    else ir_text_add(p->out, "_");
    ir_text_add(p->out, " = ");
    put_operand(p, ir_arg(p->g, n, i), 0);
  }
  ir_text_add(p->out, ") {\n");
  p->depth++;
  put_statements(p, region);
  indent(p);
  ir_text_add(p->out, "yield");
  const ir_region *r = &p->g->regions.at[region];
  for (uint32_t i = 0; i < r->count; i++) {
    ir_text_add(p->out, i ? ", " : " ");
    put_operand(p, p->g->yields.at[r->first + i], 0);
  }
  ir_text_add(p->out, "\n");
  p->depth--;
  indent(p);
  ir_text_add(p->out, "}");
  put_name_note(p, n);
}

static void put_statement(printer *p, uint32_t n) {
  const ir_node *node = ir_at(p->g, n);
  if (p->inlined[n] || node->op == IR_OP_input || node->op == IR_OP_state) return;
  indent(p);
  if (node->op == IR_OP_repeat) {
    put_repeat(p, n);
  } else {
    put_result(p, n);
    ir_text_add(p->out, " = ");
    if (node->op == IR_OP_const) {
      put_const(p, node);
    } else {
      ir_text_add(p->out, ir_ops[node->op].name);
      put_operands(p, node);
      put_attrs(p, node);
    }
    put_name_note(p, n);
  }
  ir_text_add(p->out, "\n");
}

static void put_statements(printer *p, uint32_t region) {
  for (uint32_t n = p->region_head[region]; n; n = p->region_next[n]) put_statement(p, n);
}

/* ---- the whole ---- */
static void put_symbols(printer *p) {
  const expr_pool *pool = p->g->pool;
  if (!pool->symbols.count) return;
  ir_text_add(p->out, "symbols { ");
  for (uint32_t i = 0; i < pool->symbols.count; i++) {
    const expr_symbol *s = &pool->symbols.at[i];
    ir_text_format(p->out, "%s%s: min=%" PRId64 " max=%" PRId64 " multiple_of=%" PRId64 " hint=%" PRId64, i ? ", " : "", s->name, s->min,
                   s->max, s->multiple_of, s->hint);
  }
  ir_text_add(p->out, " }\n");
}

static void put_head(printer *p) {
  const ir_graph *g = p->g;
  ir_text_add(p->out, "graph @");
  put_name(p, g->title ? g->title : "");
  ir_text_add(p->out, "(");
  for (uint32_t i = 0; i < g->inputs.count; i++) {
    const uint32_t n = g->inputs.at[i].node;
    ir_text_add(p->out, i ? ", " : "");
    if (ir_at(g, n)->op == IR_OP_state) ir_text_add(p->out, "state ");
    put_result(p, n);
  }
  ir_text_add(p->out, ") {\n");
}

static void put_tail(printer *p) {
  const ir_graph *g = p->g;
  for (uint32_t i = 0; i < g->updates.count; i++) {
    ir_text_add(p->out, "  update ");
    put_value(p, g->updates.at[i].state);
    ir_text_add(p->out, ", ");
    put_operand(p, g->updates.at[i].value, 0);
    ir_text_add(p->out, "\n");
  }
  ir_text_add(p->out, "  return");
  for (uint32_t i = 0; i < g->outputs.count; i++) {
    ir_text_add(p->out, i ? ", " : " ");
    if (g->outputs.at[i].name) {
      put_name(p, &g->names.at[g->outputs.at[i].name]);
      ir_text_add(p->out, "=");
    }
    put_operand(p, g->outputs.at[i].node, 0);
  }
  ir_text_add(p->out, "\n");
  for (uint32_t i = 0; i < g->contracts.count; i++) {
    const ir_contract *c = &g->contracts.at[i];
    ir_text_format(p->out, "  %s", c->kind <= IR_BARRIER ? graph_contract_words[c->kind] : "?");
    for (uint32_t v = 0; v < c->count; v++) {
      ir_text_add(p->out, v ? ", " : " ");
      put_value(p, g->contract_values.at[c->first + v]);
    }
    ir_text_add(p->out, "\n");
  }
  ir_text_add(p->out, "}\n");
}

/* Which nodes have no statement of their own. A constant that a contract names keeps its own, to be the same value when read back. */
static void find_inlined(printer *p) {
  const ir_graph *g = p->g;
  for (uint32_t n = 1; n < g->nodes.count; n++) {
    if (is_literal(g, n)) p->inlined[n] = 1;
    if (ir_at(g, n)->op == IR_OP_argument) p->inlined[n] = 2;
    if (ir_at(g, n)->op != IR_OP_repeat) continue;
    for (uint32_t i = 1; i < ir_at(g, n)->arity; i++) {
      const uint32_t pick = find_indexed(p, ir_at(g, n)->region, IR_OP_pick, n, i);
      if (pick) p->inlined[pick] = 2;
    }
  }
  for (uint32_t i = 0; i < g->contract_values.count; i++)
    if (g->contract_values.at[i] < g->nodes.count && p->inlined[g->contract_values.at[i]] == 1) p->inlined[g->contract_values.at[i]] = 0;
}

static bool prepare(printer *p) {
  const ir_graph *g = p->g;
  p->number = IR_NEW_ARRAY(&p->temp, uint32_t, g->nodes.count);
  p->inlined = IR_NEW_ARRAY(&p->temp, uint32_t, g->nodes.count);
  p->region_next = IR_NEW_ARRAY(&p->temp, uint32_t, g->nodes.count);
  p->region_head = IR_NEW_ARRAY(&p->temp, uint32_t, g->regions.count);
  if (p->temp.failed) return false;
  for (uint32_t n = g->nodes.count - 1; n > 0; n--) {
    const uint32_t region = ir_at(g, n)->region;
    p->region_next[n] = p->region_head[region];
    p->region_head[region] = n;
  }
  find_inlined(p);
  return find_names(p);
}

void ir_graph_print_with(const ir_graph *g, const ir_text_hooks *hooks, ir_text *out) {
  printer p = {.g = g, .hooks = hooks, .out = out};
  if (g->nodes.count == 0) return;
  ir_arena_init(&p.temp, &out->arena->host);
  if (prepare(&p)) {
    put_symbols(&p);
    put_head(&p);
    put_statements(&p, 0);
    put_tail(&p);
  } else {
    out->failed = true;
  }
  ir_arena_free(&p.temp);
}

void ir_graph_print(const ir_graph *g, ir_text *out) { ir_graph_print_with(g, NULL, out); }
