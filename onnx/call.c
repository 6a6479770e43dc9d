/* What a handler sees of its node: operands, attributes, results, and the ways to say no. */
#include "onnx/import_private.h"
#include "onnx/ops.h"
#include <stdio.h>

bool onnx_refuse(onnx_call *c, const char *format, ...) {
  char text[200];
  va_list list;
  if (c->refused) return false;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  c->refused = true;
  onnx_add_problem(c->im, c->name, c->node->op, text);
  return false;
}

/* ---- operands ---- */
bool onnx_has(const onnx_call *c, uint32_t i) { return i < c->in_count && c->in[i]; }

uint32_t onnx_count(const onnx_value *v) {
  uint64_t count = 1;
  for (uint32_t i = 0; i < v->type.rank; i++) {
    if (v->type.dims[i] < 0 || v->type.dims[i] > INT32_MAX) return UINT32_MAX;
    count *= (uint64_t)v->type.dims[i];
    if (count > UINT32_MAX - 1) return UINT32_MAX;
  }
  return (uint32_t)count;
}

/* Known numbers that are all literal become data; others a value of the plan each, put together. */
static uint32_t literal_node(onnx_import *im, const onnx_value *v) {
  const uint32_t count = onnx_count(v);
  const size_t size = ir_dtypes[v->type.dtype].bytes;
  const bool real = ir_dtypes[v->type.dtype].is_float;
  uint8_t *data = ir_arena_take(im->g->arena, count * size, 64);
  if (!data) return 0;
  for (uint32_t i = 0; i < count; i++) {
    int64_t number = 0;
    if (!expr_is_const(im->g->pool, v->known[i].num, &number)) return 0;
    if (real) ir_dtype_store(v->type.dtype, data, i, (double)number / (double)v->known[i].den);
    else ir_dtype_store_int(v->type.dtype, data, i, number);
  }
  if (v->type.rank == 0)
    return real ? ir_add_splat(im->g, v->type.dtype, ir_dtype_load(v->type.dtype, data, 0))
                : ir_add_const(im->g, &v->type,
                               &(ir_const){.kind = IR_CONST_SPLAT, .bits = (uint64_t)ir_dtype_load_int(v->type.dtype, data, 0)});
  return ir_add_const(im->g, &v->type, &(ir_const){.kind = IR_CONST_DATA, .data = data});
}

static uint32_t dim_node(ir_graph *g, int32_t dtype, ir_expr value) {
  const ir_tensor type = {.dtype = (uint8_t)dtype};
  int64_t literal;
  if (expr_is_const(g->pool, value, &literal)) return ir_add_splat(g, dtype, (double)literal);
  return ir_add_node(g, IR_OP_dim, 0, NULL, 1, &(ir_attr_value){IR_ATTR_shape, 1, &value}, &type);
}

/* Floor, as expressions mean it: operators truncate. */
static uint32_t floor_node(ir_graph *g, uint32_t a, uint32_t b) {
  return ir_add2(g, IR_OP_div, ir_add2(g, IR_OP_sub, a, ir_add2(g, IR_OP_mod, a, b)), b);
}

/* A whole number that is late is computed from what it hangs on; what is not is the plan's. */
static uint32_t whole_node(onnx_import *im, ir_expr value) {
  ir_graph *g = im->g;
  if (!onnx_is_late(im, value)) return dim_node(g, SNT_I64, value);
  const expr_node e = g->pool->nodes.at[IR_EXPR_NODE(value)];
  if (e.kind == EXPR_VAR) return onnx_late_node(im, (uint32_t)e.value);
  uint32_t made = e.kind == EXPR_SUM && e.value ? dim_node(g, SNT_I64, expr_int(g->pool, e.value)) : 0;
  for (uint32_t i = 0; i < e.count; i++) {
    static const uint16_t ops[] = {
        [EXPR_SUM] = IR_OP_add, [EXPR_PRODUCT] = IR_OP_mul, [EXPR_MOD] = IR_OP_mod, [EXPR_MIN] = IR_OP_min, [EXPR_MAX] = IR_OP_max};
    uint32_t term = whole_node(im, g->pool->terms.at[e.first + i]);
    const int64_t coef = e.kind == EXPR_SUM ? g->pool->coefs.at[e.first + i] : 1;
    if (coef != 1) term = ir_add2(g, IR_OP_mul, term, dim_node(g, SNT_I64, expr_int(g->pool, coef)));
    if (!made) made = term;
    else made = e.kind == EXPR_DIV ? floor_node(g, made, term) : ir_add2(g, (ir_op)ops[e.kind], made, term);
  }
  return made;
}

uint32_t onnx_whole_node(onnx_import *im, int32_t dtype, ir_expr value) {
  return onnx_is_late(im, value) ? ir_add_cast(im->g, whole_node(im, value), dtype) : dim_node(im->g, dtype, value);
}

uint32_t onnx_extent(onnx_call *c, ir_expr extent, int32_t dtype) { return onnx_whole_node(c->im, dtype, extent); }

static uint32_t number_node(onnx_import *im, int32_t dtype, onnx_number number) {
  ir_graph *g = im->g;
  uint32_t node = onnx_whole_node(im, dtype == SNT_BOOL ? SNT_I64 : dtype, number.num);
  if (number.den != 1) node = ir_add2(g, IR_OP_div, node, ir_add_splat(g, dtype, (double)number.den));
  const ir_expr to = SNT_BOOL;
  const ir_attr_value attr = {IR_ATTR_dtype, 1, &to};
  return dtype == SNT_BOOL ? ir_add_node(g, IR_OP_cast, 1, &node, 1, &attr, NULL) : node;
}

static bool are_one_number(const onnx_value *v, uint32_t count) {
  for (uint32_t i = 1; i < count; i++)
    if (v->known[i].num != v->known[0].num || v->known[i].den != v->known[0].den) return false;
  return count > 0;
}

static uint32_t symbolic_node(onnx_import *im, const onnx_value *v) {
  const uint32_t count = onnx_count(v);
  if (are_one_number(v, count)) {
    const uint32_t node = number_node(im, v->type.dtype, v->known[0]);
    return v->type.rank
               ? ir_add_node(im->g, IR_OP_broadcast, 1, &node, 1, &(ir_attr_value){IR_ATTR_shape, v->type.rank, v->type.dims}, NULL)
               : node;
  }
  if (count == 0 || count > 64) return 0;
  uint32_t parts[64];
  const ir_expr one = 1, zero = 0;
  for (uint32_t i = 0; i < count; i++) {
    const uint32_t node = number_node(im, v->type.dtype, v->known[i]);
    parts[i] = ir_add_node(im->g, IR_OP_reshape, 1, &node, 1, &(ir_attr_value){IR_ATTR_shape, 1, &one}, NULL);
  }
  uint32_t list = count == 1 ? parts[0] : ir_add_node(im->g, IR_OP_concat, count, parts, 1, &(ir_attr_value){IR_ATTR_axis, 1, &zero}, NULL);
  if (v->type.rank == 1) return list;
  return ir_add_node(im->g, IR_OP_reshape, 1, &list, 1, &(ir_attr_value){IR_ATTR_shape, v->type.rank, v->type.dims}, NULL);
}

static uint32_t known_node(onnx_import *im, const onnx_value *v) {
  int64_t unused;
  const uint32_t count = onnx_count(v);
  for (uint32_t i = 0; i < count; i++)
    if (!expr_is_const(im->g->pool, v->known[i].num, &unused)) return symbolic_node(im, v);
  return literal_node(im, v);
}

/* A tensor of one element is a splat, which prints as a literal and folds into everything. */
static uint32_t tensor_node(onnx_import *im, onnx_value *v) {
  uint64_t elements = 0;
  if (!v->data && onnx_tensor_data(v->tensor, im->g->arena, im->files, &v->data, &elements, im->diag) != SNT_OK) {
    im->failed = im->diag->result;
    return 0;
  }
  ir_const payload = {.kind = IR_CONST_DATA, .data = v->data};
  if (onnx_count(v) == 1 && ir_dtypes[v->type.dtype].bits >= 8) {
    const double real = ir_dtypes[v->type.dtype].is_float ? ir_dtype_load(v->type.dtype, v->data, 0) : 0;
    payload.kind = IR_CONST_SPLAT;
    if (ir_dtypes[v->type.dtype].is_float) memcpy(&payload.bits, &real, sizeof real);
    else payload.bits = (uint64_t)ir_dtype_load_int(v->type.dtype, v->data, 0);
    payload.data = NULL;
  }
  return ir_add_const(im->g, &v->type, &payload);
}

uint32_t onnx_value_node(onnx_import *im, onnx_value *v, const char **why) {
  *why = NULL;
  if (v->node || v->broken) return v->node;
  if (!v->type.dtype) {
    *why = v->tensor ? onnx_type(v->tensor->type).name : "no tensor";
    return 0;
  }
  v->node = v->known ? known_node(im, v) : v->tensor ? tensor_node(im, v) : 0;
  if (v->node && v->name[0] && v->tensor && !ir_at(im->g, v->node)->name) ir_set_name(im->g, v->node, v->name);
  return v->node;
}

uint32_t onnx_node_of(onnx_call *c, onnx_value *v) {
  const char *why;
  const uint32_t node = onnx_value_node(c->im, v, &why);
  if (!node && why) onnx_refuse(c, "%.80s is %s", v->name, why);
  return node;
}

uint32_t onnx_in(onnx_call *c, uint32_t i) {
  if (onnx_has(c, i)) return onnx_node_of(c, c->in[i]);
  if (i < 32) c->absent |= UINT32_C(1) << i;
  return 0;
}
const ir_tensor *onnx_in_type(const onnx_call *c, uint32_t i) { return onnx_has(c, i) ? &c->in[i]->type : NULL; }
const onnx_number *onnx_known(onnx_call *c, uint32_t i) { return onnx_has(c, i) ? onnx_value_known(c->im, c->in[i]) : NULL; }

/* The elements of an operand that the graph computes, if from constants alone (the side of a square as the root of its area): evaluated here. */
static const void *settled(onnx_call *c, const onnx_value *v) {
  bool constant = false;
  if (!v || !v->node || onnx_count(v) > ONNX_MAX_KNOWN) return NULL;
  const snt_result r = ir_fold_value(c->g, v->node, &constant);
  if (r != SNT_OK) c->im->failed = r;
  return constant ? ir_const_data(c->g, v->node) : NULL;
}

static const onnx_number *settled_whole(onnx_call *c, onnx_value *v) {
  const void *data = v && !ir_dtypes[v->type.dtype].is_float ? settled(c, v) : NULL;
  onnx_number *at = data ? IR_NEW_ARRAY(c->im->temp, onnx_number, onnx_count(v)) : NULL;
  for (uint32_t k = 0; at && k < onnx_count(v); k++)
    at[k] = (onnx_number){expr_int(c->g->pool, ir_dtype_load_int(v->type.dtype, data, k)), 1};
  return at ? (v->known = at) : NULL;
}

static const onnx_number *listed(onnx_call *c, uint32_t i) {
  const onnx_number *known = onnx_known(c, i);
  return known || !onnx_has(c, i) ? known : settled_whole(c, c->in[i]);
}

bool onnx_is_listed(onnx_call *c, uint32_t i) { return listed(c, i) != NULL; }

bool onnx_in_list(onnx_call *c, uint32_t i, onnx_list *out) {
  const onnx_number *known = listed(c, i);
  if (!known || c->in[i]->type.rank > 1)
    return onnx_refuse(c, "input %u%s%.60s must be known when the model is loaded", i, onnx_has(c, i) ? " " : "",
                       onnx_has(c, i) ? c->in[i]->name : "");
  const uint32_t count = onnx_count(c->in[i]);
  ir_expr *at = IR_NEW_ARRAY(c->im->temp, ir_expr, count);
  if (!at) return false;
  for (uint32_t k = 0; k < count; k++) {
    if (known[k].den != 1) return onnx_refuse(c, "input %u must hold whole numbers", i);
    at[k] = known[k].num;
  }
  *out = (onnx_list){count, at};
  return true;
}

bool onnx_in_int(onnx_call *c, uint32_t i, int64_t *out) {
  onnx_list list;
  if (!onnx_in_list(c, i, &list)) return false;
  if (list.count != 1 || !expr_is_const(c->g->pool, list.at[0], out)) return onnx_refuse(c, "input %u must be one fixed number", i);
  return true;
}

bool onnx_in_numbers(onnx_call *c, uint32_t i, uint32_t room, double *out, uint32_t *count) {
  onnx_value *v = onnx_has(c, i) ? c->in[i] : NULL;
  int64_t number;
  if (!v) return onnx_refuse(c, "input %u is missing", i);
  *count = onnx_count(v);
  if (*count > room) return onnx_refuse(c, "input %u has too many elements", i);
  if (v->known) {
    for (uint32_t k = 0; k < *count; k++) {
      if (!expr_is_const(c->g->pool, v->known[k].num, &number)) return onnx_refuse(c, "input %u must be fixed", i);
      out[k] = (double)number / (double)v->known[k].den;
    }
    return true;
  }
  const void *data = onnx_in(c, i) ? settled(c, v) : NULL;
  if (!data)
    return onnx_refuse(c, "input %u (%.60s) must be a constant%s", i, v->name,
                       ir_dtypes[v->type.dtype].is_float ? "" : ", or a whole number whose most is given by that name");
  for (uint32_t k = 0; k < *count; k++) out[k] = ir_dtype_load(v->type.dtype, data, k);
  return true;
}

bool onnx_in_number(onnx_call *c, uint32_t i, double *out) {
  uint32_t count;
  if (!onnx_in_numbers(c, i, 1, out, &count)) return false;
  return count == 1 || onnx_refuse(c, "input %u must be one number", i);
}

/* ---- attributes ---- */
static const onnx_attr *find_in(const onnx_node *n, const char *name, uint64_t *used) {
  for (uint32_t i = 0; i < n->attrs.count; i++) {
    if (strcmp(n->attrs.at[i].name, name) != 0) continue;
    if (used && i < 64) *used |= UINT64_C(1) << i;
    return &n->attrs.at[i];
  }
  return NULL;
}

/* In a function's body an attribute may stand for one of the calling node, or its default. */
static const onnx_attr *resolve(const onnx_scope *s, const onnx_attr *a) {
  for (uint32_t depth = 0; a && a->reference && depth < ONNX_MAX_DEPTH; depth++) {
    while (s && !s->call) s = s->parent;
    if (!s) return NULL;
    const onnx_attr *given = find_in(s->call, a->reference, NULL);
    for (uint32_t i = 0; !given && i < s->function->defaults.count; i++)
      if (!strcmp(s->function->defaults.at[i].name, a->reference)) given = &s->function->defaults.at[i];
    a = given;
    s = s->caller;
  }
  return a && a->reference ? NULL : a;
}

const onnx_attr *onnx_find_attr(onnx_call *c, const char *name) { return resolve(c->im->scope, find_in(c->node, name, &c->used)); }
void onnx_ignore(onnx_call *c, const char *name) { (void)find_in(c->node, name, &c->used); }

static const onnx_attr *find_kind(onnx_call *c, const char *name, int32_t kind) {
  const onnx_attr *a = onnx_find_attr(c, name);
  if (a && a->kind != kind) {
    onnx_refuse(c, "attribute %.60s has the wrong type", name);
    return NULL;
  }
  return a;
}

int64_t onnx_int(onnx_call *c, const char *name, int64_t otherwise) {
  const onnx_attr *a = find_kind(c, name, ONNX_INT);
  return a ? a->i : otherwise;
}
double onnx_float(onnx_call *c, const char *name, double otherwise) {
  const onnx_attr *a = find_kind(c, name, ONNX_FLOAT);
  return a ? (double)a->f : otherwise;
}
const char *onnx_text(onnx_call *c, const char *name, const char *otherwise) {
  const onnx_attr *a = find_kind(c, name, ONNX_TEXT);
  return a ? a->text : otherwise;
}

onnx_list onnx_int_list(onnx_call *c, const char *name) {
  const onnx_attr *a = find_kind(c, name, ONNX_INTS);
  ir_expr *at = a ? IR_NEW_ARRAY(c->im->temp, ir_expr, a->ints.count) : NULL;
  if (!at) return (onnx_list){0};
  for (uint32_t i = 0; i < a->ints.count; i++) at[i] = expr_int(c->g->pool, a->ints.at[i]);
  return (onnx_list){a->ints.count, at};
}

bool onnx_axis(onnx_call *c, int64_t axis, uint32_t rank, uint32_t *out) {
  const int64_t counted = axis < 0 ? axis + (int64_t)rank : axis;
  if (counted < 0 || counted >= (int64_t)rank) return onnx_refuse(c, "axis %lld is outside rank %u", (long long)axis, rank);
  *out = (uint32_t)counted;
  return true;
}

int32_t onnx_dtype_attr(onnx_call *c, const char *name, int32_t otherwise) {
  const onnx_attr *a = find_kind(c, name, ONNX_INT);
  if (!a && !otherwise) onnx_refuse(c, "attribute %s is missing", name);
  if (!a) return otherwise;
  const onnx_type_info type = onnx_type(a->i < 0 || a->i > 1000 ? -1 : (int32_t)a->i);
  if (!type.dtype) onnx_refuse(c, "element type %s is not supported", type.name);
  return type.dtype;
}

/* ---- results ---- */
static onnx_value *result_at(onnx_call *c, uint32_t i) { return i < c->out_count ? &c->out[i] : NULL; }

bool onnx_out(onnx_call *c, uint32_t i, uint32_t node) {
  onnx_value *v = result_at(c, i);
  if (!node) return false;
  if (!v) return true; /* nobody wants it */
  v->node = node;
  v->type = ir_at(c->g, node)->type;
  return true;
}

bool onnx_out_known(onnx_call *c, uint32_t i, const ir_tensor *type, const onnx_number *elements) {
  onnx_value *v = result_at(c, i);
  if (!v) return true;
  v->type = *type;
  v->known = elements;
  return true;
}

bool onnx_out_same(onnx_call *c, uint32_t i, uint32_t input) {
  onnx_value *v = result_at(c, i);
  if (!onnx_has(c, input)) return onnx_refuse(c, "input %u is missing", input);
  if (!v) return true;
  if (!c->in[input]->known && !onnx_in(c, input)) return false;
  const char *name = v->name;
  *v = *c->in[input];
  v->name = name;
  return true;
}

bool onnx_out_tensor(onnx_call *c, uint32_t i, const onnx_tensor *t) {
  onnx_value *v = result_at(c, i);
  if (!v) return true;
  if (!onnx_type(t->type).dtype) return onnx_refuse(c, "elements are %s", onnx_type(t->type).name);
  return onnx_take_tensor(c->im, v, t);
}
