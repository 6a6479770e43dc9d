/* A graph whose inputs are cut in two and joined again before anything reads them: the same values by way of slices and concatenations, which are
   fused into what reads them. Text in, text out: the ports keep their order, the body its names. */
#include "conformance/conform.h"
#include <string.h>

/* The last axis of at least two places; the rank: none, or the extents are no numbers. */
static uint32_t axis_of(const ir_tensor *type) {
  uint32_t axis = type->rank;
  for (uint32_t d = 0; d < type->rank; d++) {
    if (type->dims[d] < 0) return type->rank;
    if (type->dims[d] >= 2) axis = d;
  }
  return axis;
}

static void add_list(ir_text *t, const char *key, const ir_tensor *type, uint32_t axis, int64_t there, bool is_sizes) {
  ir_text_format(t, ", %s=[", key);
  for (uint32_t d = 0; d < type->rank; d++)
    ir_text_format(t, "%s%lld", d ? "," : "", (long long)(d == axis ? there : is_sizes ? (int64_t)type->dims[d] : 0));
  ir_text_add(t, "]");
}

static void add_part(ir_text *t, const char *name, const char *part, const ir_tensor *type, uint32_t axis, int64_t from, int64_t size) {
  ir_text_format(t, "%%%s.%s = slice %%%s.whole", name, part, name);
  add_list(t, "starts", type, axis, from, false);
  add_list(t, "sizes", type, axis, size, true);
  ir_text_add(t, "\n");
}

/* Header and body with every input that can be cut renamed and joined; the number of those. */
static uint32_t write_cut(const ir_graph *g, const char *text, ir_text *t) {
  const char *head = strstr(text, "graph @"), *body = head ? strstr(head, "{\n") : NULL, *at = text;
  uint32_t cut = 0;
  if (!body || g->pool->symbols.count) return 0;
  for (uint32_t i = 0; i < g->inputs.count; i++) { /* in the order of the header */
    const uint32_t node = g->inputs.at[i].node;
    const ir_tensor *type = &ir_at(g, node)->type;
    char wanted[80];
    snprintf(wanted, sizeof wanted, "%%%s:", ir_node_name(g, node));
    const char *place = strstr(at < head ? head : at, wanted);
    if (!place || place > body || ir_at(g, node)->op != IR_OP_input || axis_of(type) == type->rank) continue;
    ir_text_put(t, at, (size_t)(place - at) + strlen(wanted) - 1);
    ir_text_add(t, ".whole");
    at = place + strlen(wanted) - 1;
    cut |= 1u << i;
  }
  ir_text_put(t, at, (size_t)(body + 2 - at));
  for (uint32_t i = 0; i < g->inputs.count; i++) {
    if (!(cut >> i & 1)) continue;
    const char *name = ir_node_name(g, g->inputs.at[i].node);
    const ir_tensor *type = &ir_at(g, g->inputs.at[i].node)->type;
    const uint32_t axis = axis_of(type);
    const int64_t extent = type->dims[axis], first = extent > 2 ? extent * 3 / 8 + 1 : 1;
    add_part(t, name, "low", type, axis, 0, first);
    add_part(t, name, "high", type, axis, first, extent - first);
    ir_text_format(t, "%%%s = concat %%%s.low, %%%s.high, axis=%u\n", name, name, name, axis);
  }
  ir_text_add(t, body + 2);
  return cut;
}

bool conform_cut(const char *text, char out[CONFORM_TEXT]) {
  conform_parsed p;
  ir_text t;
  const bool is_graph = conform_parse(&p, text, NULL) == SNT_OK && p.graph.inputs.count <= 32;
  ir_text_init(&t, &p.arena);
  const bool good = is_graph && write_cut(&p.graph, text, &t) && !t.failed && t.length < CONFORM_TEXT;
  if (good) memcpy(out, t.at, t.length + 1);
  conform_forget(&p);
  return good;
}
