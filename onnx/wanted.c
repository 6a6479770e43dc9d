/* How much of a value the model reads, as its file says it before the readers are imported: operators that search for what they give, one after another, stop
   there. Only what is plain to see counts: a Slice whose ends count from the first place, behind operators that keep places apart and the result of an If. Who
   reads a value stands behind it, as everywhere in ONNX: a file that goes round in circles is looked through once, too, and refused by the importer. */
#include "onnx/import_private.h"
#include "onnx/ops.h"

typedef struct level { /* a graph, and which node of the graph around has it as a branch; null: the model's own */
  const struct level *around;
  const onnx_graph *graph;
  uint32_t owner;
} level;

static int64_t most_read(onnx_import *im, const level *at, const char *name, uint32_t first);

/* ---- constants by name ---- */
static const onnx_tensor *find_constant(const level *at, const char *name) {
  for (; at; at = at->around) {
    for (uint32_t i = 0; i < at->graph->constants.count; i++)
      if (!strcmp(at->graph->constants.at[i].name, name)) return &at->graph->constants.at[i];
    for (uint32_t i = 0; i < at->graph->nodes.count; i++) {
      const onnx_node *n = &at->graph->nodes.at[i];
      if (strcmp(n->op, "Constant") != 0 || !n->outputs.count || strcmp(n->outputs.at[0], name) != 0) continue;
      return n->attrs.count == 1 && n->attrs.at[0].kind == ONNX_TENSOR ? n->attrs.at[0].tensor : NULL;
    }
  }
  return NULL;
}

static bool is_number(onnx_import *im, const level *at, const onnx_node *n, uint32_t operand, int64_t *out) {
  const onnx_tensor *tensor = operand < n->inputs.count ? find_constant(at, n->inputs.at[operand]) : NULL;
  const void *data;
  uint64_t elements;
  if (!tensor || onnx_type(tensor->type).dtype != SNT_I64) return false;
  if (onnx_tensor_data(tensor, im->temp, im->files, &data, &elements, im->diag) != SNT_OK || elements != 1) return false;
  memcpy(out, data, sizeof *out);
  return true;
}

/* ---- readers ---- */
static bool reads(const onnx_node *n, const char *name) {
  for (uint32_t i = 0; i < n->inputs.count; i++)
    if (!strcmp(n->inputs.at[i], name)) return true;
  return false;
}

/* Whether a graph inside a node names the value. */
static bool named_within(const onnx_node *n, const char *name) {
  for (uint32_t i = 0; i < n->attrs.count; i++) {
    const onnx_graph *g = n->attrs.at[i].kind == ONNX_GRAPH ? n->attrs.at[i].graph : NULL;
    for (uint32_t k = 0; g && k < g->nodes.count; k++)
      if (reads(&g->nodes.at[k], name) || named_within(&g->nodes.at[k], name)) return true;
    for (uint32_t k = 0; g && k < g->outputs.count; k++)
      if (!strcmp(g->outputs.at[k].name, name)) return true;
  }
  return false;
}

static int64_t attribute(const onnx_node *n, const char *name, int64_t otherwise) {
  for (uint32_t i = 0; i < n->attrs.count; i++)
    if (!strcmp(n->attrs.at[i].name, name)) return n->attrs.at[i].i;
  return otherwise;
}

static int64_t read_by(onnx_import *im, const level *at, uint32_t number, const char *name) {
  const onnx_node *n = &at->graph->nodes.at[number];
  int64_t start = 0, end = 0, axis = 0, step = 1;
  const bool first = n->inputs.count && !strcmp(n->inputs.at[0], name) && !n->domain[0];
  for (uint32_t i = 1; i < n->inputs.count; i++)
    if (!strcmp(n->inputs.at[i], name)) return INT64_MAX;
  if (!first || !n->outputs.count) return INT64_MAX;
  if (!strcmp(n->op, "Slice")) {
    bool known = is_number(im, at, n, 1, &start) && is_number(im, at, n, 2, &end);
    known &= n->inputs.count < 4 || is_number(im, at, n, 3, &axis);
    known &= n->inputs.count < 5 || is_number(im, at, n, 4, &step);
    return known && start >= 0 && !axis && step == 1 && end >= 0 ? end : INT64_MAX;
  }
  const bool picks = !strcmp(n->op, "Gather") && attribute(n, "axis", 0) > 0;
  const bool squeezes = !strcmp(n->op, "Squeeze") && is_number(im, at, n, 1, &axis) && axis > 0;
  const bool keeps = !strcmp(n->op, "Cast") || !strcmp(n->op, "Identity");
  return picks || squeezes || keeps ? most_read(im, at, n->outputs.at[0], number + 1) : INT64_MAX;
}

/* Of the results of a graph: what is read of the If's. */
static int64_t read_around(onnx_import *im, const level *at, const char *name) {
  int64_t most = 0;
  for (uint32_t i = 0; i < at->graph->outputs.count; i++) {
    if (strcmp(at->graph->outputs.at[i].name, name) != 0) continue;
    const onnx_node *owner = at->around ? &at->around->graph->nodes.at[at->owner] : NULL;
    if (!owner || strcmp(owner->op, "If") != 0 || i >= owner->outputs.count) return INT64_MAX;
    const int64_t own = most_read(im, at->around, owner->outputs.at[i], at->owner + 1);
    if (own > most) most = own;
  }
  return most;
}

static bool gives(const onnx_node *n, const char *name) {
  bool found = false;
  for (uint32_t i = 0; i < n->outputs.count; i++) found |= !strcmp(n->outputs.at[i], name);
  return found;
}

/* By the nodes of its graph from `first` on, and around it. Behind another value of the name it is that which is read: no node is looked at by two ways. */
static int64_t most_read(onnx_import *im, const level *at, const char *name, uint32_t first) {
  int64_t most = read_around(im, at, name);
  for (uint32_t i = first; i < at->graph->nodes.count && most < INT64_MAX; i++) {
    const onnx_node *n = &at->graph->nodes.at[i];
    const int64_t own = named_within(n, name) ? INT64_MAX : reads(n, name) ? read_by(im, at, i, name) : 0;
    if (own > most) most = own;
    if (gives(n, name)) break;
  }
  return most;
}

/* ---- entry ---- */
/* The graph that the node is in, from `at` down: what is read of its result; -1: it is in none of them (a function's). */
static int64_t read_below(onnx_import *im, const level *at, const onnx_node *wanted) {
  for (uint32_t i = 0; i < at->graph->nodes.count; i++) {
    const onnx_node *n = &at->graph->nodes.at[i];
    if (n == wanted) return most_read(im, at, n->outputs.at[0], i + 1);
    for (uint32_t k = 0; k < n->attrs.count; k++) {
      const level inside = {at, n->attrs.at[k].graph, i};
      const int64_t found = n->attrs.at[k].kind == ONNX_GRAPH && inside.graph ? read_below(im, &inside, wanted) : -1;
      if (found >= 0) return found;
    }
  }
  return -1;
}

int64_t onnx_first_places_read(onnx_call *c) {
  const level model = {.graph = c->im->model->graph};
  const int64_t most = c->out_count ? read_below(c->im, &model, c->node) : -1;
  return most < 0 ? INT64_MAX : most;
}
