/* Elements of types that only store, 8-bit floats and 4-bit integers, are bytes in kernels. In: a graph of primitives. Out: the same with u8 in their
   place; casts from and to them are integer operations on f32 bits, exact and the same on every device. A port keeps its own type in the plan.
   Floats are split as in f32: a sign, an exponent and `man` bits, so that what is normal is a shift and what is not a product. */
#include "fusion/rebuild.h"

typedef struct small_float {
  uint8_t man, bias, top, nan; /* bits after the point; of the exponent; codes without sign: the largest finite one, a NaN */
  bool unsigned_zero;          /* FNUZ: the code of -0 is the only NaN */
} small_float;
static const small_float floats[SNT_DTYPE_COUNT] = {
    [SNT_F8E4M3] = {3, 7, 0x7e, 0x7f, false},
    [SNT_F8E5M2] = {2, 15, 0x7b, 0x7e, false},
    [SNT_F8E4M3FNUZ] = {3, 8, 0x7f, 0x80, true},
    [SNT_F8E5M2FNUZ] = {2, 16, 0x7f, 0x80, true},
};

static bool is_stored_only(int32_t dtype) { return dtype > SNT_BOOL; }
static bool is_nibble(int32_t dtype) { return dtype == SNT_I4 || dtype == SNT_U4; }

/* ---- nodes ---- */

static uint32_t with(rebuild *r, ir_op op, uint32_t a, double literal) {
  return ir_add2(r->to, op, a, ir_add_splat(r->to, ir_at(r->to, a)->type.dtype, literal));
}

static uint32_t as_type(rebuild *r, ir_op op, uint32_t a, int32_t dtype) {
  const ir_expr to = dtype;
  const ir_attr_value attr = {IR_ATTR_dtype, 1, &to};
  return ir_at(r->to, a)->type.dtype == dtype ? a : ir_add_node(r->to, op, 1, &a, 1, &attr, NULL);
}

static uint32_t number(rebuild *r, double value) { return ir_add_splat(r->to, SNT_U32, value); }

/* ---- from bytes ---- */

static uint32_t float_of_byte(rebuild *r, uint32_t byte, const small_float *f) {
  const uint32_t shift = 23u - f->man, code = as_type(r, IR_OP_cast, byte, SNT_U32), body = with(r, IR_OP_and, code, 0x7f);
  const uint32_t normal = with(r, IR_OP_add, with(r, IR_OP_shl, body, shift), (double)((127u - f->bias) << 23));
  const uint32_t small = with(r, IR_OP_mul, as_type(r, IR_OP_cast, body, SNT_F32), 1.0 / (double)(UINT64_C(1) << (f->bias - 1 + f->man)));
  uint32_t bits = ir_add3(r->to, IR_OP_select, with(r, IR_OP_lt, body, 1 << f->man), as_type(r, IR_OP_bitcast, small, SNT_U32), normal);
  if (f->unsigned_zero) {
    bits = ir_add3(r->to, IR_OP_select, with(r, IR_OP_eq, code, 0x80), number(r, 0x7fc00000), bits);
  } else { /* beyond the largest: an infinity where there is room for one below the NaNs */
    if (f->nan > f->top + 1) bits = ir_add3(r->to, IR_OP_select, with(r, IR_OP_eq, body, f->top + 1), number(r, 0x7f800000), bits);
    bits = ir_add3(r->to, IR_OP_select, with(r, IR_OP_ge, body, f->nan > f->top + 1 ? f->top + 2 : f->nan), number(r, 0x7fc00000), bits);
  }
  const uint32_t sign = with(r, IR_OP_shl, with(r, IR_OP_and, code, 0x80), 24);
  return as_type(r, IR_OP_bitcast, ir_add2(r->to, IR_OP_or, bits, sign), SNT_F32);
}

static uint32_t whole_of_byte(rebuild *r, uint32_t byte, int32_t dtype) {
  const uint32_t low = with(r, IR_OP_and, as_type(r, IR_OP_cast, byte, SNT_I32), 15);
  return dtype == SNT_U4 ? low : with(r, IR_OP_sub, with(r, IR_OP_xor, low, 8), 8);
}

static uint32_t from_byte(rebuild *r, uint32_t byte, int32_t dtype) {
  return is_nibble(dtype) ? whole_of_byte(r, byte, dtype) : float_of_byte(r, byte, &floats[dtype]);
}

/* ---- to bytes ---- */

/* f64 to f32 rounded to odd, so that the rounding to come is the only one. */
static uint32_t narrowed(rebuild *r, uint32_t value) {
  const uint32_t near = as_type(r, IR_OP_cast, value, SNT_F32), back = as_type(r, IR_OP_cast, near, SNT_F64);
  const uint32_t bits = as_type(r, IR_OP_bitcast, near, SNT_U32);
  const uint32_t sizes[2] = {ir_add1(r->to, IR_OP_abs, back), ir_add1(r->to, IR_OP_abs, value)};
  const uint32_t cut = ir_add3(r->to, IR_OP_select, ir_add2(r->to, IR_OP_gt, sizes[0], sizes[1]), with(r, IR_OP_sub, bits, 1), bits);
  const uint32_t odd = ir_add3(r->to, IR_OP_select, ir_add2(r->to, IR_OP_ne, back, value), with(r, IR_OP_or, cut, 1), bits);
  return as_type(r, IR_OP_bitcast, odd, SNT_F32);
}

static uint32_t byte_of_float(rebuild *r, uint32_t value, const small_float *f) {
  const uint32_t shift = 23u - f->man, least = (128u - f->bias) << 23;
  const uint32_t bits = as_type(r, IR_OP_bitcast, value, SNT_U32), size = with(r, IR_OP_and, bits, 0x7fffffff);
  const uint32_t even = with(r, IR_OP_and, with(r, IR_OP_shr, size, shift), 1);
  const uint32_t rounded = ir_add2(r->to, IR_OP_add, with(r, IR_OP_add, size, (1 << (shift - 1)) - 1), even);
  const uint32_t normal = with(r, IR_OP_sub, with(r, IR_OP_shr, rounded, shift), (127 - f->bias) << f->man);
  const uint32_t units = with(r, IR_OP_mul, as_type(r, IR_OP_bitcast, size, SNT_F32), (double)(UINT64_C(1) << (f->bias - 1 + f->man)));
  const uint32_t small = as_type(r, IR_OP_cast, ir_add1(r->to, IR_OP_round, units), SNT_U32);
  uint32_t code = with(r, IR_OP_min, ir_add3(r->to, IR_OP_select, with(r, IR_OP_lt, size, least), small, normal), f->top);
  code = ir_add3(r->to, IR_OP_select, with(r, IR_OP_gt, size, 0x7f800000), number(r, f->nan), code);
  uint32_t sign = with(r, IR_OP_and, with(r, IR_OP_shr, bits, 24), 0x80);
  if (f->unsigned_zero) sign = ir_add3(r->to, IR_OP_select, with(r, IR_OP_eq, code, 0), number(r, 0), sign);
  return as_type(r, IR_OP_cast, ir_add2(r->to, IR_OP_or, code, sign), SNT_U8);
}

/* Integers wrap, floats saturate. */
static uint32_t byte_of_whole(rebuild *r, uint32_t value, int32_t dtype) {
  const bool is_float = ir_dtypes[ir_at(r->to, value)->type.dtype].is_float;
  uint32_t whole = as_type(r, IR_OP_cast, value, SNT_I32);
  if (is_float) whole = with(r, IR_OP_max, with(r, IR_OP_min, whole, dtype == SNT_U4 ? 15 : 7), dtype == SNT_U4 ? 0 : -8);
  return as_type(r, IR_OP_cast, with(r, IR_OP_and, whole, 15), SNT_U8);
}

static uint32_t to_byte(rebuild *r, uint32_t value, int32_t dtype) {
  if (is_nibble(dtype)) return byte_of_whole(r, value, dtype);
  const bool wide = ir_at(r->to, value)->type.dtype == SNT_F64;
  return byte_of_float(r, wide ? narrowed(r, value) : as_type(r, IR_OP_cast, value, SNT_F32), &floats[dtype]);
}

/* ---- rules ---- */

static uint32_t cast_bytes(rebuild *r) {
  const ir_node *n = ir_at(r->from, r->node);
  const int32_t from = ir_at(r->from, ir_arg(r->from, r->node, 0))->type.dtype, to = n->type.dtype;
  if (!is_stored_only(from) && !is_stored_only(to)) return 0;
  if (from == to) return r->args[0];
  const uint32_t value = is_stored_only(from) ? from_byte(r, r->args[0], from) : r->args[0];
  return is_stored_only(to) ? to_byte(r, value, to) : as_type(r, IR_OP_cast, value, to);
}

static uint32_t bitcast_bytes(rebuild *r) {
  const ir_node *n = ir_at(r->from, r->node);
  const int32_t from = ir_at(r->from, ir_arg(r->from, r->node, 0))->type.dtype, to = n->type.dtype;
  if (!is_stored_only(from) && !is_stored_only(to)) return 0;
  return as_type(r, IR_OP_bitcast, r->args[0], is_stored_only(to) ? SNT_U8 : to);
}

static int64_t byte_of_literal(int32_t dtype, int64_t bits) {
  double value;
  uint8_t byte = 0;
  memcpy(&value, &bits, sizeof value);
  if (ir_dtypes[dtype].is_float) ir_dtype_store(dtype, &byte, 0, value);
  else ir_dtype_store_int(dtype, &byte, 0, bits);
  return byte;
}

/* What only moves elements: the same of bytes, also what pads. */
static uint32_t move_bytes(rebuild *r) {
  const ir_node *n = ir_at(r->from, r->node);
  ir_attr_value attrs[IR_ATTR_COUNT];
  uint32_t args[256];
  int64_t filled = 0;
  if (n->arity == 0 || n->op == IR_OP_loop || n->op == IR_OP_pick || !is_stored_only(n->type.dtype)) return 0;
  for (uint32_t i = 0; i < n->arity; i++) args[i] = r->map[ir_arg(r->from, r->node, i)];
  for (uint32_t i = 0; i < n->attr_count; i++) {
    const ir_attr *a = &r->from->attrs.at[n->attrs + i];
    attrs[i] = (ir_attr_value){a->key, a->count, r->from->ints.at + a->first};
    if (a->key != IR_ATTR_value) continue;
    filled = byte_of_literal(n->type.dtype, attrs[i].ints[0]);
    attrs[i].ints = &filled;
  }
  return ir_add_node(r->to, (ir_op)n->op, n->arity, args, n->attr_count, attrs, NULL);
}

static uint32_t source_of_bytes(rebuild *r) {
  const ir_node *n = ir_at(r->from, r->node);
  if (!is_stored_only(n->type.dtype)) return 0;
  ir_tensor type = n->type;
  type.dtype = SNT_U8;
  if (n->op == IR_OP_input) return ir_add_input(r->to, ir_node_name(r->from, r->node), &type);
  if (n->op == IR_OP_state) return ir_add_state(r->to, ir_node_name(r->from, r->node), &type);
  ir_const value = r->from->consts.at[n->payload];
  if (value.kind == IR_CONST_SPLAT) value.bits = (uint64_t)byte_of_literal(n->type.dtype, (int64_t)value.bits);
  if (value.kind == IR_CONST_NORMAL || value.kind == IR_CONST_UNIFORM)
    value = (ir_const){.kind = IR_CONST_DATA, .data = ir_const_data(r->c->graph, r->node)};
  return ir_add_const(r->to, &type, &value);
}

static const rebuild_rule rules[] = {{cast_bytes, .ops = {IR_OP_cast}},
                                     {bitcast_bytes, .ops = {IR_OP_bitcast}},
                                     {source_of_bytes, .ops = {IR_OP_input, IR_OP_state, IR_OP_const}},
                                     {.make = move_bytes}};

snt_result fusion_store_bytes(fusion_context *c, bool *changed) {
  bool any = false;
  for (uint32_t n = 1; n < c->graph->nodes.count && !any; n++) any = is_stored_only(ir_at(c->graph, n)->type.dtype);
  return any ? fusion_rebuild(c, rules, IR_COUNT(rules), changed) : SNT_OK;
}
