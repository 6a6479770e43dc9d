/* Operators on known numbers, computed when the model is loaded: shapes, axes, sizes. In: a call whose operands are all known (for Shape
   and Size: whose operand has a type). Out: a known result, so that chains of Shape, Gather, Mul, Concat, Reshape make no node at all. */
#include "onnx/known.h"
#include "onnx/ops.h"

enum { MAX_REAL = 64, REAL_BITS = 20 };

onnx_number known_whole(ir_expr e) { return (onnx_number){e, 1}; }

bool known_literal(const known_call *k, onnx_number n, int64_t *out) { return n.den == 1 && expr_is_const(k->pool, n.num, out); }

bool known_make(known_call *k, int32_t dtype, uint32_t rank, const ir_expr *dims) {
  uint64_t count = 1;
  if (rank > SNT_MAX_RANK) return false;
  k->out.type = (ir_tensor){.dtype = (uint8_t)dtype, .rank = (uint8_t)rank};
  for (uint32_t i = 0; i < rank; i++) {
    if (dims[i] < 0 || dims[i] > ONNX_MAX_KNOWN) return false;
    k->out.type.dims[i] = dims[i];
    count *= (uint64_t)dims[i];
    if (count > ONNX_MAX_KNOWN) return false;
  }
  k->out.count = (uint32_t)count;
  k->out.at = IR_NEW_ARRAY(k->c->im->temp, onnx_number, count);
  return k->out.at != NULL;
}

bool known_ints(const known_call *k, uint32_t i, uint32_t room, int64_t *out, uint32_t *count) {
  if (i >= k->in_count || !k->in[i].at || k->in[i].count > room) return false;
  *count = k->in[i].count;
  for (uint32_t n = 0; n < *count; n++)
    if (!known_literal(k, k->in[i].at[n], &out[n])) return false;
  return true;
}

/* ---- tensors of the file as known numbers ---- */
static bool real_number(expr_pool *pool, double value, onnx_number *out) {
  int64_t den = 1;
  if (!(value > -0x1p40 && value < 0x1p40)) return false;
  while (value != (double)(int64_t)value && den < (INT64_C(1) << REAL_BITS)) {
    value *= 2;
    den *= 2;
  }
  if (value != (double)(int64_t)value || !(value > -0x1p50 && value < 0x1p50)) return false;
  *out = (onnx_number){expr_int(pool, (int64_t)value), den};
  return true;
}

const onnx_number *onnx_value_known(onnx_import *im, onnx_value *v) {
  if (v->known || v->broken || !v->tensor || !v->type.dtype) return v->known;
  const bool real = ir_dtypes[v->type.dtype].is_float;
  const uint32_t count = onnx_count(v);
  uint64_t elements;
  if (count > (real ? MAX_REAL : ONNX_MAX_KNOWN)) return NULL;
  if (!v->data && onnx_tensor_data(v->tensor, im->g->arena, im->files, &v->data, &elements, im->diag) != SNT_OK) {
    im->failed = im->diag->result;
    return NULL;
  }
  onnx_number *at = IR_NEW_ARRAY(im->temp, onnx_number, count);
  for (uint32_t i = 0; at && i < count; i++) {
    if (!real) at[i] = known_whole(expr_int(im->g->pool, ir_dtype_load_int(v->type.dtype, v->data, i)));
    else if (!real_number(im->g->pool, ir_dtype_load(v->type.dtype, v->data, i), &at[i])) return NULL;
  }
  return v->known = at;
}

/* ---- Shape and Size: they need a type only ---- */
static known_result know_shape(known_call *k) {
  const ir_tensor *t = onnx_in_type(k->c, 0);
  int64_t start = onnx_int(k->c, "start", 0), end = t ? onnx_int(k->c, "end", t->rank) : 0;
  if (!t) return KNOWN_NO;
  if (start < 0) start += t->rank;
  if (end < 0) end += t->rank;
  start = start < 0 ? 0 : start > t->rank ? t->rank : start;
  end = end < start ? start : end > t->rank ? t->rank : end;
  const ir_expr count = end - start;
  if (!known_make(k, SNT_I64, 1, &count)) return KNOWN_NO;
  for (int64_t i = start; i < end; i++) k->out.at[i - start] = known_whole(onnx_dim_in(k->c, 0, (uint32_t)i));
  return KNOWN_YES;
}

static known_result know_size(known_call *k) {
  const ir_tensor *t = onnx_in_type(k->c, 0);
  if (!t || !known_make(k, SNT_I64, 0, NULL)) return KNOWN_NO;
  ir_expr elements = 1;
  for (uint32_t i = 0; i < t->rank; i++) elements = expr_mul(k->pool, elements, onnx_dim_in(k->c, 0, i));
  k->out.at[0] = known_whole(elements);
  return KNOWN_YES;
}

// clang-format off
static const struct known_row {
  const char *op;
  known_handler run;
  bool type_only; /* operands need not be known */
} rows[] = {
    {"Shape", know_shape, true},       {"Size", know_size, true},
    {"Add", known_binary, false},      {"Sub", known_binary, false},      {"Mul", known_binary, false},     {"Div", known_binary, false},
    {"Mod", known_binary, false},      {"Min", known_binary, false},      {"Max", known_binary, false},
    {"Equal", known_compare, false},   {"Less", known_compare, false},    {"Greater", known_compare, false}, {"LessOrEqual", known_compare, false},
    {"GreaterOrEqual", known_compare, false},
    {"And", known_logic, false},       {"Or", known_logic, false},        {"Not", known_logic, false},
    {"Neg", known_unary, false},       {"Abs", known_unary, false},       {"Floor", known_unary, false},    {"Ceil", known_unary, false},
    {"Relu", known_unary, false},      {"Clip", known_clip, false},       {"Cast", known_cast, false},         {"Where", known_where, false},
    {"Identity", known_same, false},
    {"Gather", known_gather, false},   {"Slice", known_slice, false},     {"Concat", known_concat, false},  {"Unsqueeze", known_unsqueeze, false},
    {"Squeeze", known_squeeze, false}, {"Reshape", known_reshape, false}, {"Flatten", known_flatten, false}, {"Expand", known_expand, false},
    {"Transpose", known_transpose, false}, {"Tile", known_tile, false},   {"Range", known_range, false},
    {"ConstantOfShape", known_constant_of_shape, false}, {"NonZero", known_nonzero, false},
    {"ReduceProd", known_reduce, false}, {"ReduceSum", known_reduce, false}, {"ReduceMax", known_reduce, false}, {"ReduceMin", known_reduce, false},
};
// clang-format on

static const struct known_row *find_row(const onnx_node *n) {
  for (uint32_t i = 0; !n->domain[0] && i < IR_COUNT(rows); i++)
    if (!strcmp(rows[i].op, n->op)) return &rows[i];
  return NULL;
}

static bool take_operands(known_call *k) {
  onnx_call *c = k->c;
  for (uint32_t i = 0; i < c->in_count; i++) {
    if (!onnx_has(c, i)) continue;
    const onnx_number *known = onnx_known(c, i);
    if (!known) return false;
    k->in[i] = (known_list){c->in[i]->type, onnx_count(c->in[i]), (onnx_number *)(uintptr_t)known};
  }
  k->in_count = c->in_count;
  return c->in_count > 0 && k->in[0].at; /* others may be left out: of some operators */
}

bool onnx_know(onnx_call *c, bool *known) {
  const struct known_row *row = find_row(c->node);
  known_call k = {.c = c, .pool = c->g->pool};
  *known = false;
  if (!row || c->in_count > IR_COUNT(k.in) || c->opset == 0 || (!row->type_only && !take_operands(&k))) return !c->im->failed;
  const known_result r = row->run(&k);
  c->used = 0;
  if (r == KNOWN_REFUSED || c->refused) return false;
  *known = r == KNOWN_YES;
  return r != KNOWN_YES || onnx_out_known(c, 0, &k.out.type, k.out.at);
}
