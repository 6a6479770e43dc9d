/* Elements picked and placed by index tensors: by element, by tuple, along sequences; and masks made of positions. Indices are brought to one
   axis of flattened elements, so that gather and scatter do the rest. A negative index counts from the end. */
#include "ir/composites/private.h"

/* The type that positions in a tensor of this shape fit in. */
static int32_t position_dtype(composite_call *c, const ir_tensor *shape) {
  int64_t low, high;
  expr_bounds(c->g->pool, ir_tensor_elements(c->g->pool, shape), &low, &high);
  return high <= INT32_MAX ? SNT_I32 : SNT_I64;
}

uint32_t step_from_end(composite_call *c, uint32_t index, ir_expr extent) {
  if (!index || !ir_dtypes[type_of(c, index)->dtype].is_signed) return index;
  const uint32_t size = step_dim(c, extent, type_of(c, index)->dtype), wrapped = step_2(c, IR_OP_add, index, size);
  return step_select(c, step_2n(c, IR_OP_lt, index, 0), wrapped, index);
}

/* sum += coordinate * stride, where a sum of 0 is nothing yet */
static uint32_t add_scaled(composite_call *c, uint32_t sum, uint32_t coordinate, ir_expr stride) {
  if (stride != 1 && coordinate) coordinate = step_2(c, IR_OP_mul, coordinate, step_dim(c, stride, type_of(c, coordinate)->dtype));
  return sum ? step_2(c, IR_OP_add, sum, coordinate) : coordinate;
}

/* The flat position in `shape` of each entry of an index along `axis`: the other coordinates are the entry's own. */
static uint32_t flat_along(composite_call *c, uint32_t index, uint32_t axis, const ir_tensor *shape) {
  const int32_t dtype = position_dtype(c, shape);
  const ir_tensor type = *type_of(c, index);
  if (type.rank != shape->rank) return call_mistake(c, "the index has rank %u, %u is needed", type.rank, shape->rank);
  index = step_from_end(c, step_cast(c, index, dtype), shape->dims[axis]);
  ir_expr stride = 1;
  uint32_t sum = 0;
  for (uint32_t i = shape->rank; i-- > 0;) {
    if (i == axis) sum = add_scaled(c, sum, index, stride);
    else if (type.dims[i] != 1) sum = add_scaled(c, sum, step_iota(c, dtype, type.rank, type.dims, i), stride);
    stride = expr_mul(c->g->pool, stride, shape->dims[i]);
  }
  return sum;
}

static uint32_t flattened(composite_call *c, uint32_t x) {
  const ir_tensor shape = *type_of(c, x);
  const ir_expr total = ir_tensor_elements(c->g->pool, &shape);
  return step_reshape(c, x, 1, &total);
}

uint32_t step_gather(composite_call *c, uint32_t x, uint32_t index, uint32_t axis) {
  const ir_expr at = axis;
  const ir_attr_value attr = {IR_ATTR_axis, 1, &at};
  const uint32_t args[] = {x, index};
  return x && index ? ir_add_node(c->g, IR_OP_gather, 2, args, 1, &attr, NULL) : 0;
}

static uint32_t put_scatter(composite_call *c, uint32_t x, uint32_t index, uint32_t updates) {
  static const struct {
    const char *word;
    ir_op op;
  } modes[] = {{"set", IR_OP_scatter_set},
               {"add", IR_OP_scatter_add},
               {"mul", IR_OP_scatter_mul},
               {"min", IR_OP_scatter_min},
               {"max", IR_OP_scatter_max}};
  const char *mode = call_has(c, IR_PARAM_mode) ? c->params[IR_PARAM_mode]->word : "set";
  const ir_expr axis = 0;
  const ir_attr_value attr = {IR_ATTR_axis, 1, &axis};
  const uint32_t args[] = {x, index, updates};
  for (uint32_t i = 0; i < IR_COUNT(modes); i++)
    if (strcmp(modes[i].word, mode) == 0) return x && index && updates ? ir_add_node(c->g, modes[i].op, 3, args, 1, &attr, NULL) : 0;
  return call_mistake(c, "mode is set, add, mul, min or max");
}

static uint32_t take_along(composite_call *c, uint32_t x, uint32_t index, uint32_t axis) {
  const ir_tensor shape = *type_of(c, x);
  if (shape.rank == 1) return step_gather(c, x, step_from_end(c, index, shape.dims[0]), 0);
  const uint32_t flat = flat_along(c, index, axis, &shape);
  return step_gather(c, flattened(c, x), flat, 0);
}

void build_gather_elements(composite_call *c) {
  c->results[0] = take_along(c, c->args[0], c->args[1], call_axis(c, IR_PARAM_axis, 0, type_of(c, c->args[0])->rank));
}

void build_scatter_elements(composite_call *c) {
  const ir_tensor shape = *type_of(c, c->args[0]);
  const uint32_t axis = call_axis(c, IR_PARAM_axis, 0, shape.rank), index = flat_along(c, c->args[1], axis, &shape);
  const uint32_t y = put_scatter(c, flattened(c, c->args[0]), index, c->args[2]);
  c->results[0] = step_reshape(c, y, shape.rank, shape.dims);
}

/* ---- by tuple: the last axis of the index holds the coordinates of the axes after the batch ---- */
typedef struct tuples {
  uint32_t batch, depth; /* axes of x that are shared with the index, and that a tuple names */
  uint32_t index, x;     /* flat positions; x with those axes as one */
} tuples;

static uint32_t tuple_entry(composite_call *c, uint32_t index, uint32_t at) {
  const ir_tensor type = *type_of(c, index);
  return step_reshape(c, step_slice(c, index, type.rank - 1u, at, 1, 1), type.rank - 1u, type.dims);
}

static uint32_t flat_tuples(composite_call *c, const tuples *t, const ir_tensor *shape) {
  const uint32_t index = step_cast(c, c->args[1], position_dtype(c, shape));
  if (!index) return 0;
  const ir_tensor type = *type_of(c, index);
  ir_expr stride = 1;
  uint32_t sum = 0;
  for (uint32_t i = t->depth; i-- > 0;) {
    const ir_expr extent = shape->dims[t->batch + i];
    sum = add_scaled(c, sum, step_from_end(c, tuple_entry(c, index, i), extent), stride);
    stride = expr_mul(c->g->pool, stride, extent);
  }
  for (uint32_t i = t->batch; i-- > 0;) {
    sum = add_scaled(c, sum, step_iota(c, type.dtype, type.rank - 1u, type.dims, i), stride);
    stride = expr_mul(c->g->pool, stride, shape->dims[i]);
  }
  return sum;
}

static bool read_tuples(composite_call *c, tuples *t) {
  const ir_tensor shape = *type_of(c, c->args[0]), type = *type_of(c, c->args[1]);
  int64_t depth;
  t->batch = (uint32_t)call_int(c, IR_PARAM_batch_dims, 0);
  if (type.rank == 0 || !expr_is_const(c->g->pool, type.dims[type.rank - 1], &depth) || depth < 1)
    return call_mistake(c, "the last axis of the index must be fixed"), false;
  if (t->batch >= type.rank || t->batch + depth > shape.rank) return call_mistake(c, "the index names more axes than x has"), false;
  t->depth = (uint32_t)depth;
  ir_expr dims[SNT_MAX_RANK] = {1};
  uint32_t rank = 1;
  for (uint32_t i = 0; i < t->batch + t->depth; i++) dims[0] = expr_mul(c->g->pool, dims[0], shape.dims[i]);
  for (uint32_t i = t->batch + t->depth; i < shape.rank; i++) dims[rank++] = shape.dims[i];
  t->x = step_reshape(c, c->args[0], rank, dims);
  t->index = flat_tuples(c, t, &shape);
  return t->x && t->index;
}

void build_gather_nd(composite_call *c) {
  tuples t;
  if (read_tuples(c, &t)) c->results[0] = step_gather(c, t.x, t.index, 0);
}

void build_scatter_nd(composite_call *c) {
  const ir_tensor shape = *type_of(c, c->args[0]);
  tuples t;
  if (read_tuples(c, &t)) c->results[0] = step_reshape(c, put_scatter(c, t.x, t.index, c->args[2]), shape.rank, shape.dims);
}

/* ---- sequences, masks, extremes ---- */
void build_reverse_sequence(composite_call *c) {
  const uint32_t x = c->args[0];
  const ir_tensor shape = *type_of(c, x);
  const uint32_t axis = call_axis(c, IR_PARAM_axis, 0, shape.rank), batch = call_axis(c, IR_PARAM_batch_axis, 1, shape.rank);
  const int32_t dtype = position_dtype(c, &shape);
  const uint32_t at = step_iota(c, dtype, shape.rank, shape.dims, axis);
  const uint32_t length = step_along(c, step_cast(c, c->args[1], dtype), batch, &shape);
  const uint32_t back = step_2n(c, IR_OP_sub, step_2(c, IR_OP_sub, length, at), 1);
  c->results[0] = take_along(c, x, step_select(c, step_2(c, IR_OP_lt, at, length), back, at), axis);
}

void build_trilu(composite_call *c) {
  const uint32_t x = c->args[0];
  const ir_tensor shape = *type_of(c, x);
  if (shape.rank < 2) {
    call_mistake(c, "the operand is no matrix");
    return;
  }
  const uint32_t row = step_iota(c, SNT_I64, shape.rank, shape.dims, shape.rank - 2u);
  const uint32_t column = step_iota(c, SNT_I64, shape.rank, shape.dims, shape.rank - 1u);
  const uint32_t offset = c->args[1] ? step_cast(c, c->args[1], SNT_I64) : step_dim(c, call_expr(c, IR_PARAM_offset, 0), SNT_I64);
  const ir_op keeps = call_has(c, IR_PARAM_lower) ? IR_OP_le : IR_OP_ge;
  const uint32_t kept = step_2(c, keeps, column, step_2(c, IR_OP_add, row, offset));
  c->results[0] = step_select(c, kept, x, step_number(c, x, 0));
}

static uint32_t extreme(composite_call *c, ir_op op, uint32_t x, uint32_t axis, bool keep) {
  const ir_expr extent = type_of(c, x)->dims[axis];
  if (!call_has(c, IR_PARAM_last)) return step_reduce(c, op, x, 1u << axis, keep);
  const ir_expr last = expr_sub(c->g->pool, extent, 1);
  const uint32_t index = step_reduce(c, op, step_slice(c, x, axis, last, extent, -1), 1u << axis, keep), end = step_dim(c, last, SNT_I64);
  return step_2(c, IR_OP_sub, end, index);
}

void build_argmax(composite_call *c) {
  const uint32_t axis = call_axis(c, IR_PARAM_axis, -1, type_of(c, c->args[0])->rank);
  c->results[0] = extreme(c, IR_OP_reduce_argmax, c->args[0], axis, call_has(c, IR_PARAM_keep));
}

void build_argmin(composite_call *c) {
  const uint32_t axis = call_axis(c, IR_PARAM_axis, -1, type_of(c, c->args[0])->rank);
  c->results[0] = extreme(c, IR_OP_reduce_argmin, c->args[0], axis, call_has(c, IR_PARAM_keep));
}

void build_hardmax(composite_call *c) {
  const ir_tensor shape = *type_of(c, c->args[0]);
  const uint32_t axis = call_axis(c, IR_PARAM_axis, -1, shape.rank);
  const uint32_t best = step_reduce(c, IR_OP_reduce_argmax, c->args[0], 1u << axis, true);
  const uint32_t hit = step_2(c, IR_OP_eq, step_iota(c, SNT_I64, shape.rank, shape.dims, axis), best);
  c->results[0] = step_cast(c, hit, shape.dtype);
}

/* Elements put where a pool with indices took them from; elsewhere 0. */
void build_max_unpool(composite_call *c) {
  const ir_tensor x = *type_of(c, c->args[0]);
  const ir_param *shape = c->params[IR_PARAM_shape];
  if (!shape || shape->count != x.rank) {
    call_mistake(c, "shape must be given, an entry an axis of x");
    return;
  }
  ir_tensor out = {.dtype = x.dtype, .rank = x.rank}, flat = {.dtype = x.dtype, .rank = 1};
  memcpy(out.dims, shape->ints, x.rank * sizeof *out.dims);
  flat.dims[0] = ir_tensor_elements(c->g->pool, &out);
  const uint32_t zeros = step_broadcast(c, step_number(c, c->args[0], 0), &flat);
  const uint32_t index = flattened(c, c->args[1]), y = put_scatter(c, zeros, index, flattened(c, c->args[0]));
  c->results[0] = step_reshape(c, y, out.rank, out.dims);
}
