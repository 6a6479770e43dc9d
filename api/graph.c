/* Graph building: thin checks over ir/graph.h. The first mistake sticks in the graph and is what later calls report. */
#include "api/handles.h"
#include "ir/graph_parse.h"

static const ir_tensor *to_tensor(snt_graph *g, const snt_tensor *t, ir_tensor *out) {
  if (!t || t->rank > SNT_MAX_RANK || t->dtype <= 0 || t->dtype >= SNT_DTYPE_COUNT) return NULL;
  *out = (ir_tensor){.dtype = (uint8_t)t->dtype, .rank = (uint8_t)t->rank};
  for (uint32_t i = 0; i < t->rank; i++) {
    out->dims[i] = t->dims[i];
    if (t->dims[i] >= 0) continue;
    const uint64_t symbol = (uint64_t)(-(t->dims[i] + 1));
    if (symbol >= g->pool.symbols.count) return NULL;
    for (uint32_t n = 0; n < g->pool.nodes.count; n++)
      if (g->pool.nodes.at[n].kind == EXPR_SYMBOL && (uint64_t)g->pool.nodes.at[n].value == symbol) out->dims[i] = -(ir_expr)n - 1;
  }
  return out;
}

static void mistake(snt_graph *g, const char *what) {
  if (g->graph.failed) return;
  g->graph.failed = true;
  ir_fail(&g->graph.first_error, SNT_E_ARG, "graph", 0, "%s", what);
}

snt_result snt_graph_create(snt_context *c, snt_graph **out) {
  if (!c || !out) return SNT_E_ARG;
  snt_graph *g = api_take(c, sizeof *g);
  if (!g) return SNT_E_HOST_MEM;
  g->store = api_store_new(c);
  if (!g->store) {
    api_give(c, g, sizeof *g);
    return SNT_E_HOST_MEM;
  }
  g->context = c;
  api_context_hold(c);
  ir_arena_init(&g->arena, &c->alloc);
  expr_pool_init(&g->pool, &g->arena);
  ir_graph_init(&g->graph, &g->arena, &g->pool);
  if (g->graph.failed) {
    snt_graph_destroy(g);
    return SNT_E_HOST_MEM;
  }
  *out = g;
  return SNT_OK;
}

void snt_graph_destroy(snt_graph *g) {
  if (!g) return;
  snt_context *c = g->context;
  ir_arena_free(&g->arena);
  api_store_drop(g->store);
  api_give(c, g, sizeof *g);
  snt_context_destroy(c);
}

uint32_t snt_graph_symbol(snt_graph *g, const snt_symbol *s) {
  if (!g) return UINT32_MAX;
  if (!s || !s->name || s->min < 0 || s->max < s->min || s->multiple_of < 0) {
    mistake(g, "a symbol needs a name and 0 <= min <= max");
    return UINT32_MAX;
  }
  if (!graph_is_identifier(s->name)) {
    mistake(g, "a symbol's name is a letter or _, then letters, digits, _ and .");
    return UINT32_MAX;
  }
  for (uint32_t i = 0; i < g->pool.symbols.count; i++)
    if (!strcmp(g->pool.symbols.at[i].name, s->name)) {
      mistake(g, "two symbols of one name");
      return UINT32_MAX;
    }
  const expr_symbol symbol = {ir_arena_text(&g->arena, s->name, strlen(s->name)), s->min, s->max, s->multiple_of ? s->multiple_of : 1,
                              s->hint};
  expr_symbol_add(&g->pool, &symbol);
  return g->pool.failed ? UINT32_MAX : g->pool.symbols.count - 1;
}

static bool is_value(const snt_graph *g, snt_value v) { return v && v < g->graph.nodes.count; }

static snt_value add_port(snt_graph *g, const char *name, const snt_tensor *t, bool state) {
  ir_tensor type;
  if (!g) return 0;
  if (!name || !to_tensor(g, t, &type)) {
    mistake(g, "an input needs a name, a known element type and rank <= 8");
    return 0;
  }
  return state ? ir_add_state(&g->graph, name, &type) : ir_add_input(&g->graph, name, &type);
}
snt_value snt_graph_input(snt_graph *g, const char *name, const snt_tensor *t) { return add_port(g, name, t, false); }
snt_value snt_graph_state(snt_graph *g, const char *name, const snt_tensor *t) { return add_port(g, name, t, true); }

void snt_graph_update(snt_graph *g, snt_value state, snt_value value) {
  if (!g) return;
  if (!is_value(g, state) || !is_value(g, value)) {
    mistake(g, "update of no value");
    return;
  }
  ir_add_update(&g->graph, state, value);
}

snt_value snt_graph_constant(snt_graph *g, const snt_tensor *t, const void *data) {
  ir_tensor type;
  if (!g) return 0;
  if (!data || !to_tensor(g, t, &type)) {
    mistake(g, "a constant needs data and a type");
    return 0;
  }
  for (uint32_t i = 0; i < type.rank; i++)
    if (type.dims[i] < 0) {
      mistake(g, "a constant has literal extents");
      return 0;
    }
  const ir_const payload = {.kind = IR_CONST_DATA, .data = data};
  return ir_add_const(&g->graph, &type, &payload);
}

snt_value snt_graph_scalar(snt_graph *g, int32_t dtype, double value) {
  if (!g) return 0;
  if (dtype <= 0 || dtype >= SNT_DTYPE_COUNT) {
    mistake(g, "a scalar of an unknown element type");
    return 0;
  }
  return ir_add_splat(&g->graph, dtype, value);
}

/* The call is written as one statement of the text form and parsed into the graph, so that API and text can never differ. */
snt_value snt_graph_op(snt_graph *g, const char *op, const snt_value *args, uint32_t count, const char *attributes) {
  if (!g || g->graph.failed) return 0;
  if (!op || (count && !args)) {
    mistake(g, "an operator needs a name and its operands");
    return 0;
  }
  const uint32_t starved = api_starved(g->context);
  ir_arena temp;
  ir_text text;
  ir_arena_init(&temp, &g->context->alloc);
  ir_text_init(&text, &temp);
  ir_text_add(&text, op);
  for (uint32_t i = 0; i < count; i++) {
    if (!is_value(g, args[i])) mistake(g, "an operand is no value of this graph");
    ir_text_format(&text, "%s %%%u", i ? "," : "", args[i]);
  }
  if (attributes && *attributes) ir_text_format(&text, "%s %s", count ? "," : "", attributes);
  snt_value made = 0;
  if (!g->graph.failed && !text.failed) made = ir_graph_add_call(&g->graph, text.at, text.length, &g->graph.first_error);
  const bool unfed = api_starved(g->context) != starved;
  if (!made || unfed) g->graph.failed = true;
  if (unfed) ir_no_memory(&g->graph.first_error, "graph");
  ir_arena_free(&temp);
  return unfed ? 0 : made;
}

snt_result snt_graph_define(snt_graph *g, const char *text, size_t length, snt_diag *diag) {
  if (!g || (!text && length)) return ir_fail(diag, SNT_E_ARG, "define", 0, "no graph or no text");
  const uint32_t starved = api_starved(g->context);
  return api_blame(g->context, starved, ir_graph_define(&g->graph, text, length, diag), diag);
}

void snt_graph_name(snt_graph *g, snt_value v, const char *name) {
  if (!g) return;
  if (!is_value(g, v) || !name) {
    mistake(g, "a name for no value");
    return;
  }
  ir_set_name(&g->graph, v, name);
}

void snt_graph_output(snt_graph *g, const char *name, snt_value v) {
  if (!g) return;
  if (!is_value(g, v) || !name) {
    mistake(g, "an output needs a name and a value");
    return;
  }
  ir_add_output(&g->graph, name, v);
}

snt_value snt_graph_find(const snt_graph *g, const char *name) {
  if (!g || !name || !*name) return 0;
  for (uint32_t n = g->graph.nodes.count; n-- > 1;) /* the nodes of a composite have its name, too; its result is the last */
    if (!strcmp(ir_node_name(&g->graph, n), name)) return n;
  for (uint32_t i = 0; i < g->graph.outputs.count; i++)
    if (!strcmp(&g->graph.names.at[g->graph.outputs.at[i].name], name)) return g->graph.outputs.at[i].node;
  return 0;
}

snt_result snt_graph_contract(snt_graph *g, uint32_t kind, const snt_value *values, uint32_t count) {
  if (!g || kind < SNT_MUST_FUSE || kind > SNT_BARRIER || !count || !values || (kind == SNT_MUST_FUSE && count < 2)) return SNT_E_ARG;
  for (uint32_t i = 0; i < count; i++)
    if (!is_value(g, values[i])) return SNT_E_ARG;
  ir_add_contract(&g->graph, (ir_contract_kind)kind, count, values);
  return g->graph.failed ? SNT_E_HOST_MEM : SNT_OK;
}

static const void *find_data(void *user, const char *file, uint64_t offset, uint64_t bytes) {
  const snt_data_source *source = user;
  return source->find(source->user, file, offset, bytes);
}

snt_result snt_graph_parse(snt_graph *g, const char *text, size_t length, const snt_data_source *source, snt_diag *diag) {
  if (!g || (!text && length)) return ir_fail(diag, SNT_E_ARG, "parse", 0, "no graph or no text");
  if (g->graph.nodes.count > 1) return ir_fail(diag, SNT_E_ORDER, "parse", 0, "the graph is not empty");
  const ir_text_hooks hooks = {.user = (void *)(uintptr_t)source, .load = source && source->find ? find_data : NULL};
  const uint32_t starved = api_starved(g->context);
  snt_diag own = {.head = SNT_HEAD(diag)};
  const snt_result r = api_blame(g->context, starved, ir_graph_parse_with(&g->graph, text, length, &hooks, &own), &own);
  if (r != SNT_OK) g->graph.failed = true, g->graph.first_error = own; /* what there is of it is no graph */
  if (r != SNT_OK && diag) *diag = own;
  return r;
}

snt_result snt_graph_print(const snt_graph *g, char *text, size_t *length) {
  if (!g || !length) return SNT_E_ARG;
  ir_arena temp;
  ir_text out;
  ir_arena_init(&temp, &g->context->alloc);
  ir_text_init(&out, &temp);
  ir_graph_print(&g->graph, &out);
  const snt_result r = api_copy_text(&out, text, length);
  ir_arena_free(&temp);
  return r;
}

snt_result snt_graph_verify(const snt_graph *g, snt_diag *diag) {
  if (!g) return SNT_E_ARG;
  if (g->graph.failed) {
    if (diag) *diag = g->graph.first_error;
    return g->graph.first_error.result ? g->graph.first_error.result : SNT_E_HOST_MEM;
  }
  if (g->arena.failed) return ir_no_memory(diag, "graph");
  const uint32_t starved = api_starved(g->context);
  return api_blame(g->context, starved, ir_graph_verify(&g->graph, NULL, diag), diag);
}
