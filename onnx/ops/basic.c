/* Constants, casts and the plain movements. */
#include "onnx/ops.h"
#include "onnx/import_private.h"
#include <math.h>

/* ---- conversions ---- */
/* From where on a value is beyond an 8-bit float, rounded to nearest even; `border`: that value itself too. */
typedef struct small_range {
  double from;
  bool border, infinity; /* infinity: what is beyond it is infinite, else no number */
} small_range;
static const small_range small_ranges[SNT_DTYPE_COUNT] = {
    [SNT_F8E4M3] = {464, false, false},
    [SNT_F8E5M2] = {61440, true, true},
    [SNT_F8E4M3FNUZ] = {248, true, false},
    [SNT_F8E5M2FNUZ] = {61440, true, false},
};

/* Without saturation. The graph's conversions saturate: what is beyond the range becomes NaN before, or its code that of infinity after. */
static uint32_t cast_beyond(onnx_call *c, uint32_t x, int32_t to) {
  const small_range *r = &small_ranges[to];
  if (!ir_dtypes[onnx_type_of(c, x)->dtype].is_float) x = onnx_cast(c, x, SNT_F32);
  const uint32_t beyond = onnx_2n(c, r->border ? IR_OP_ge : IR_OP_gt, onnx_1(c, IR_OP_abs, x), r->from);
  if (!r->infinity) return onnx_cast(c, onnx_select(c, beyond, onnx_like(c, x, (double)NAN), x), to);
  const uint32_t small = onnx_cast(c, x, to), code = small ? onnx_add(c, "bitcast %%%u, dtype=u8", small) : 0;
  const uint32_t infinite = onnx_2n(c, IR_OP_or, onnx_2n(c, IR_OP_and, code, 0x80), 0x7c), chosen = onnx_select(c, beyond, infinite, code);
  return chosen ? onnx_add(c, "bitcast %%%u, dtype=%s", chosen, ir_dtypes[to].name) : 0;
}

uint32_t onnx_convert(onnx_call *c, uint32_t x, int32_t to, bool saturate) {
  if (!x) return 0;
  const int32_t from = onnx_type_of(c, x)->dtype;
  if (!saturate && from != to && small_ranges[to].from != 0) return cast_beyond(c, x, to);
  if ((to == SNT_I4 || to == SNT_U4) && ir_dtypes[from].is_float) x = onnx_cast(c, x, SNT_I32); /* of which the low bits stay */
  return onnx_cast(c, x, to);
}

bool onnx_op_cast(onnx_call *c) {
  const int32_t to = onnx_dtype_attr(c, "to", 0);
  const bool saturate = onnx_int(c, "saturate", 1) != 0;
  const uint32_t x = onnx_in(c, 0);
  return to && x && onnx_out(c, 0, onnx_convert(c, x, to, saturate));
}

/* ---- Constant ---- */
static bool literal_list(onnx_call *c, int32_t dtype, uint32_t rank, uint32_t count, const void *data) {
  const ir_tensor type = {.dtype = (uint8_t)dtype, .rank = (uint8_t)rank, .dims = {count}};
  const size_t bytes = count * (size_t)ir_dtypes[dtype].bytes;
  void *copy = ir_arena_take(onnx_arena(c), bytes, 64);
  if (!copy) return false;
  if (bytes) memcpy(copy, data, bytes);
  return onnx_out(c, 0, ir_add_const(c->g, &type, &(ir_const){.kind = IR_CONST_DATA, .data = copy}));
}

static bool known_list(onnx_call *c, uint32_t rank, uint32_t count, const int64_t *ints) {
  const ir_tensor type = {.dtype = SNT_I64, .rank = (uint8_t)rank, .dims = {count}};
  onnx_number *at = count <= ONNX_MAX_KNOWN ? IR_NEW_ARRAY(onnx_arena(c), onnx_number, count) : NULL;
  if (!at) return literal_list(c, SNT_I64, rank, count, ints);
  for (uint32_t i = 0; i < count; i++) at[i] = (onnx_number){expr_int(c->g->pool, ints[i]), 1};
  return onnx_out_known(c, 0, &type, at);
}

bool onnx_op_constant(onnx_call *c) {
  const onnx_attr *a;
  if ((a = onnx_find_attr(c, "value")) && a->kind == ONNX_TENSOR) return onnx_out_tensor(c, 0, a->tensor);
  if ((a = onnx_find_attr(c, "value_float"))) return onnx_out(c, 0, onnx_scalar(c, SNT_F32, (double)a->f));
  if ((a = onnx_find_attr(c, "value_int"))) return known_list(c, 0, 1, &a->i);
  if ((a = onnx_find_attr(c, "value_ints"))) return known_list(c, 1, a->ints.count, a->ints.at);
  if ((a = onnx_find_attr(c, "value_floats"))) return literal_list(c, SNT_F32, 1, a->floats.count, a->floats.at);
  return onnx_refuse(c, "a constant that is no tensor of numbers");
}

/* ---- movement ---- */
bool onnx_op_identity(onnx_call *c) { return onnx_out_same(c, 0, 0); }

/* Where a count stands in the shape that is asked for: what the operand has before it must be what it has there. */
static bool keeps_places(onnx_call *c, const onnx_list *shape, const ir_expr *dims, int32_t late) {
  const onnx_value *v = c->in[0];
  expr_pool *pool = c->g->pool;
  ir_expr before = 1, own = 1;
  int32_t open = late;
  for (uint32_t i = 0; i < shape->count && open < 0; i++)
    if (shape->at[i] == expr_int(pool, -1) || (shape->at[i] == 0 && i == v->count_axis)) open = (int32_t)i;
  for (int32_t i = 0; i < open; i++) before = expr_mul(pool, before, dims[i]);
  for (uint32_t i = 0; i < v->count_axis; i++) own = expr_mul(pool, own, v->type.dims[i]);
  return open < 0 || before == own ||
         onnx_refuse(c, "how much of input %.60s there is depends on the data, and all of it would be needed", v->name);
}

/* A late extent is what the others leave. Beside one that is to be found that way it is the operand's count as it comes out. */
static bool settle_late(onnx_call *c, uint32_t rank, ir_expr *dims, int32_t late) {
  bool open = false;
  for (uint32_t i = 0; i < rank; i++) open |= dims[i] == expr_int(c->g->pool, -1);
  if (!open) dims[late] = expr_int(c->g->pool, -1);
  if (open && (!c->in[0]->count || onnx_late_element(c, 1, late) != c->in[0]->count))
    return onnx_refuse(c, "extent %d depends on the data, and another is to be found by it", late);
  return true;
}

/* Known extents to which the operand, of which less may be used than there is, is cut. */
static bool cut_to_known(onnx_call *c, uint32_t rank, const ir_expr *dims) {
  const onnx_value *v = c->in[0];
  int64_t wanted = 1, place = 1, extent;
  for (uint32_t i = 0; i < rank; i++) {
    if (!expr_is_const(c->g->pool, dims[i], &extent) || extent < 0) return true;
    wanted *= extent;
  }
  for (uint32_t i = 0; i < v->type.rank; i++)
    if (i != v->count_axis && expr_is_const(c->g->pool, v->type.dims[i], &extent)) place *= extent;
  if (place < 1 || wanted % place || !expr_proves_lt(c->g->pool, wanted / place, v->type.dims[v->count_axis])) return true;
  return onnx_cut_in(c, 0, v->count_axis, wanted / place) && onnx_drop_in(c, 0);
}

/* What is to be found beside an extent that may be 0: what is left when the extents that stay are taken away, since any would do for no elements. */
static void find_beside(onnx_call *c, uint32_t rank, uint32_t hole, ir_expr *dims) {
  ir_tensor own = *onnx_in_type(c, 0);
  ir_expr made = 1;
  int64_t low, high;
  for (uint32_t i = 0; i < rank; i++) {
    uint32_t k = 0;
    while (k < own.rank && own.dims[k] != dims[i]) k++;
    if (k < own.rank) own.dims[k] = 1;
    else if (i != hole) made = expr_mul(c->g->pool, made, dims[i]);
  }
  expr_bounds(c->g->pool, made, &low, &high);
  if (low >= 1) dims[hole] = expr_div(c->g->pool, ir_tensor_elements(c->g->pool, &own), made);
}

/* As many elements are demanded as there are, an extent that is to be found being what the others leave. */
static bool demand_as_many(onnx_call *c, uint32_t rank, ir_expr *dims) {
  expr_pool *pool = c->g->pool;
  const ir_expr all = ir_tensor_elements(pool, onnx_in_type(c, 0));
  ir_expr made = 1;
  int64_t low, high;
  uint32_t hole = rank;
  for (uint32_t i = 0; i < rank; i++) {
    if (dims[i] == expr_int(pool, -1)) hole = i;
    else made = expr_mul(pool, made, dims[i]);
  }
  expr_bounds(pool, made, &low, &high);
  if (low < 1 && hole < rank) find_beside(c, rank, hole, dims);
  if (low < 1) return true;
  if (hole < rank) made = expr_mul(pool, expr_div(pool, all, made), made);
  return all == made || !onnx_demand_equal(c->im, all, made);
}

bool onnx_op_reshape(onnx_call *c) {
  const ir_tensor *t = onnx_in_type(c, 0);
  ir_expr dims[SNT_MAX_RANK];
  onnx_list shape;
  int32_t late;
  if (!t || !onnx_in_extents(c, 1, &shape, &late)) return false;
  const bool keep_zero = onnx_int(c, "allowzero", 0) != 0;
  if (shape.count > SNT_MAX_RANK) return onnx_refuse(c, "rank %u", shape.count);
  for (uint32_t i = 0; i < shape.count; i++) {
    dims[i] = shape.at[i];
    if (dims[i] != 0 || keep_zero) continue;
    if (i >= t->rank) return onnx_refuse(c, "extent %u is to be that of the input, which has rank %u", i, t->rank);
    dims[i] = t->dims[i];
  }
  if (c->in[0]->count && !keeps_places(c, &shape, dims, late)) return false;
  if (late >= 0 ? !settle_late(c, shape.count, dims, late) : c->in[0]->count && !cut_to_known(c, shape.count, dims)) return false;
  if (late < 0 && !c->in[0]->count && !demand_as_many(c, shape.count, dims)) return false;
  return onnx_out(c, 0, onnx_reshape(c, onnx_in(c, 0), shape.count, dims));
}

bool onnx_op_transpose(onnx_call *c) {
  const ir_tensor *t = onnx_in_type(c, 0);
  const onnx_list perm = onnx_int_list(c, "perm");
  uint32_t axes[SNT_MAX_RANK];
  if (!t || (perm.count && perm.count != t->rank)) return onnx_refuse(c, "perm does not fit rank %u", t ? t->rank : 0);
  for (uint32_t i = 0; i < t->rank; i++)
    if (!onnx_axis(c, perm.count ? perm.at[i] : (int64_t)t->rank - 1 - i, t->rank, &axes[i])) return false;
  return onnx_out(c, 0, onnx_transpose(c, onnx_in(c, 0), axes));
}

/* An extent that the operand has already is that, whatever it is called; a known one is all that there is of a count. */
static bool fit_expanded(onnx_call *c, ir_tensor *want, int32_t *late) {
  const ir_tensor own = c->in[0]->type;
  for (uint32_t i = 0; i < want->rank; i++) {
    const int64_t axis = (int64_t)own.rank - want->rank + i;
    if (axis < 0) continue;
    const bool counted = onnx_is_counted(c, 0, (uint32_t)axis);
    if ((int32_t)i == *late && (counted || own.dims[axis] != 1)) want->dims[i] = 1, *late = -1;
    if (!counted || want->dims[i] == 1 || !expr_proves_lt(c->g->pool, want->dims[i], own.dims[axis])) continue;
    if (!onnx_cut_in(c, 0, (uint32_t)axis, want->dims[i]) || !onnx_drop_in(c, 0)) return false;
  }
  return true;
}

bool onnx_op_expand(onnx_call *c) {
  ir_tensor want = {0}, shape;
  onnx_list list;
  int32_t late;
  if (!onnx_has(c, 0)) return onnx_refuse(c, "input 0 is missing");
  if (!onnx_in_extents(c, 1, &list, &late)) return false;
  if (list.count > SNT_MAX_RANK) return onnx_refuse(c, "rank %u", list.count);
  want.rank = (uint8_t)list.count;
  for (uint32_t i = 0; i < list.count; i++) want.dims[i] = list.at[i];
  if (!fit_expanded(c, &want, &late)) return false;
  const ir_tensor *both[] = {onnx_in_type(c, 0), &want};
  if (!onnx_common_shape(c, 2, both, &shape)) return false;
  const uint32_t wide = onnx_broadcast(c, onnx_in(c, 0), shape.rank, shape.dims);
  if (late < 0) return onnx_out(c, 0, wide);
  return onnx_out_counted(c, 0, wide, onnx_late_element(c, 1, late), shape.rank - want.rank + (uint32_t)late, 0);
}
