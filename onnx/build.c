/* Nodes as the handlers make them. A mistake of theirs sticks in the graph until the import reports it for the node at hand. */
#include "onnx/import_private.h"
#include <stdio.h>

uint32_t onnx_add(onnx_call *c, const char *format, ...) {
  ir_text text;
  char line[1024];
  va_list list;
  va_start(list, format);
  const int length = vsnprintf(line, sizeof line, format, list);
  va_end(list);
  ir_text_init(&text, c->im->temp);
  if (length < 0 || c->g->failed) return 0;
  if ((size_t)length < sizeof line) {
    ir_text_put(&text, line, (size_t)length);
  } else {
    char *room = ir_arena_take(c->im->temp, (size_t)length + 1, 1);
    if (!room) return 0;
    va_start(list, format);
    vsnprintf(room, (size_t)length + 1, format, list);
    va_end(list);
    ir_text_put(&text, room, (size_t)length);
  }
  if (text.failed) return 0;
  snt_diag diag = {0};
  const uint32_t node = ir_graph_add_call(c->g, text.at, text.length, &diag);
  if (node) return node;
  const char *said = strchr(diag.text, ' '); /* after line:column: */
  onnx_refuse(c, "%.180s", said && diag.text[0] >= '0' && diag.text[0] <= '9' ? said + 1 : diag.text);
  return 0;
}

const char *onnx_list_text(onnx_call *c, uint32_t count, const ir_expr *at) {
  ir_text text;
  ir_text_init(&text, c->im->temp);
  ir_text_add(&text, "[");
  for (uint32_t i = 0; i < count; i++) {
    if (i) ir_text_add(&text, ",");
    expr_print(c->g->pool, at[i], &text);
  }
  ir_text_add(&text, "]");
  return text.failed ? "[]" : text.at;
}

static bool same_dims(const ir_tensor *t, uint32_t rank, const ir_expr *dims) {
  return t->rank == rank && (!rank || !memcmp(t->dims, dims, rank * sizeof *dims)); /* of rank 0 there are no dims */
}

uint32_t onnx_reshape(onnx_call *c, uint32_t node, uint32_t rank, const ir_expr *dims) {
  if (!node) return 0;
  if (rank > SNT_MAX_RANK) {
    onnx_refuse(c, "rank %u; at most %d is possible", rank, SNT_MAX_RANK);
    return 0;
  }
  if (same_dims(onnx_type_of(c, node), rank, dims)) return node;
  return ir_add_node(c->g, IR_OP_reshape, 1, &node, 1, &(ir_attr_value){IR_ATTR_shape, rank, dims}, NULL);
}

uint32_t onnx_transpose(onnx_call *c, uint32_t node, const uint32_t *perm) {
  ir_expr list[SNT_MAX_RANK];
  bool moves = false;
  if (!node) return 0;
  const uint32_t rank = onnx_type_of(c, node)->rank;
  for (uint32_t i = 0; i < rank; i++) {
    list[i] = perm[i];
    moves |= perm[i] != i;
  }
  return moves ? ir_add_node(c->g, IR_OP_transpose, 1, &node, 1, &(ir_attr_value){IR_ATTR_perm, rank, list}, NULL) : node;
}

uint32_t onnx_broadcast(onnx_call *c, uint32_t node, uint32_t rank, const ir_expr *dims) {
  if (!node) return 0;
  if (same_dims(onnx_type_of(c, node), rank, dims)) return node;
  return ir_add_node(c->g, IR_OP_broadcast, 1, &node, 1, &(ir_attr_value){IR_ATTR_shape, rank, dims}, NULL);
}

uint32_t onnx_cast(onnx_call *c, uint32_t node, int32_t dtype) {
  const ir_expr to = dtype;
  if (!node || onnx_type_of(c, node)->dtype == dtype) return node;
  return ir_add_node(c->g, IR_OP_cast, 1, &node, 1, &(ir_attr_value){IR_ATTR_dtype, 1, &to}, NULL);
}

uint32_t onnx_scalar(onnx_call *c, int32_t dtype, double value) { return ir_add_splat(c->g, dtype, value); }
uint32_t onnx_like(onnx_call *c, uint32_t node, double value) { return node ? ir_add_splat(c->g, onnx_type_of(c, node)->dtype, value) : 0; }
uint32_t onnx_fill(onnx_call *c, const ir_tensor *type, double value) {
  return onnx_broadcast(c, ir_add_splat(c->g, type->dtype, value), type->rank, type->dims);
}

/* An open extent beside another one is taken to be equal to it, not 1: which of them would be repeated could not be planned. */
static bool join_extent(onnx_call *c, ir_expr a, ir_expr b, uint32_t axis, ir_expr *out) {
  *out = a == 1 ? b : a;
  if (a == 1 || b == 1 || a == b) return true;
  if (onnx_demand_equal(c->im, a, b)) return false;
  return onnx_refuse(c, "operands do not broadcast: axis %u", axis);
}

bool onnx_common_shape(onnx_call *c, uint32_t count, const ir_tensor *const *types, ir_tensor *out) {
  *out = (ir_tensor){.dtype = types[0]->dtype};
  for (uint32_t i = 0; i < count; i++)
    if (types[i]->rank > out->rank) out->rank = types[i]->rank;
  for (uint32_t i = 0; i < out->rank; i++) out->dims[i] = 1;
  for (uint32_t i = 0; i < count; i++) {
    const uint32_t shift = out->rank - types[i]->rank;
    for (uint32_t d = 0; d < types[i]->rank; d++)
      if (!join_extent(c, out->dims[shift + d], types[i]->dims[d], shift + d, &out->dims[shift + d])) return false;
  }
  return true;
}

bool onnx_broadcast_all(onnx_call *c, uint32_t count, uint32_t *nodes, bool scalars) {
  const ir_tensor **types = IR_NEW_ARRAY(c->im->temp, const ir_tensor *, count);
  ir_tensor shape;
  if (!types || !count) return false;
  for (uint32_t i = 0; i < count; i++) {
    if (!nodes[i]) return false;
    types[i] = onnx_type_of(c, nodes[i]);
  }
  if (!onnx_common_shape(c, count, types, &shape)) return false;
  for (uint32_t i = 0; i < count; i++)
    if (!scalars || onnx_type_of(c, nodes[i])->rank) nodes[i] = onnx_broadcast(c, nodes[i], shape.rank, shape.dims);
  return !c->g->failed;
}

onnx_value *onnx_value_of(onnx_call *c, const char *name, uint32_t node) {
  onnx_value *v = IR_NEW(c->im->temp, onnx_value);
  if (!v || !node) return NULL;
  *v = (onnx_value){.name = name, .node = node, .type = *onnx_type_of(c, node)};
  return v;
}

const char *onnx_numbers_text(onnx_call *c, uint32_t count, const int64_t *at) {
  ir_text text;
  ir_text_init(&text, c->im->temp);
  ir_text_add(&text, "[");
  for (uint32_t i = 0; i < count; i++) ir_text_format(&text, i ? ",%lld" : "%lld", (long long)at[i]);
  ir_text_add(&text, "]");
  return text.failed ? "[]" : text.at;
}
