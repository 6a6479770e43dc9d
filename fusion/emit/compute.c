/* Computing one node at coordinates: pointwise operators by their lowering cell, views by their map, small reductions in place.
   Table `rules` by operator class, in the order they are tried. */
#include "fusion/emit_private.h"
#include "fusion/lower.h"

static uint32_t constant(emit *e, int32_t dtype, double value) {
  const kir_type type = emit_compute_type(e, dtype, 1);
  return ir_dtypes[type.base].is_float ? kir_const_float(e->k, type, value) : kir_const_int(e->k, type, (int64_t)value);
}

static uint32_t compute_const(emit *e, uint32_t node) {
  const ir_node *n = ir_at(e->g, node);
  const ir_const *c = &e->g->consts.at[n->payload];
  const kir_type type = emit_compute_type(e, n->type.dtype, 1);
  double f;
  if (!ir_dtypes[n->type.dtype].is_float) return kir_const_int(e->k, type, (int64_t)c->bits);
  memcpy(&f, &c->bits, sizeof f);
  return kir_const_float(e->k, type, f);
}

static map_access operand_access(const emit *e, uint32_t operand, const map_access *access) {
  map_access a = *access;
  if (ir_at(e->g, operand)->type.rank == 0) a.rank = 0;
  return a;
}

/* Where fused and unfused agree bit for bit, every f16 or bf16 node is rounded. */
uint32_t emit_round_node(emit *e, const ir_node *n, uint32_t value) {
  const bool narrow = n->type.dtype == SNT_F16 || n->type.dtype == SNT_BF16;
  if (!narrow || !fusion_keeps_order(e->c->options)) return value;
  const kir_type type = emit_value_type(e, value);
  const uint32_t rounded = kir_cast(e->k, kir_t(n->type.dtype, type.lanes), value);
  return kir_cast(e->k, type, rounded);
}

static uint32_t compute_pointwise(emit *e, uint32_t node, const map_access *access) {
  const ir_node *n = ir_at(e->g, node);
  uint32_t args[3] = {0};
  uint8_t lanes = 1;
  for (uint32_t i = 0; i < n->arity; i++) {
    const uint32_t operand = ir_arg(e->g, node, i);
    const map_access a = operand_access(e, operand, access);
    args[i] = emit_value(e, operand, &a);
    if (!args[i]) return 0;
    const uint8_t own = emit_value_type(e, args[i]).lanes;
    if (own > lanes) lanes = own;
  }
  const ir_tensor *first = &ir_at(e->g, ir_arg(e->g, node, 0))->type;
  const uint32_t known = emit_known_pointwise(e, node, args);
  if (known) return known;
  const uint32_t value = lower_pointwise(e->k, (ir_op)n->op, args, first->dtype, n->type.dtype, emit_compute_type(e, n->type.dtype, lanes));
  return emit_round_node(e, n, value);
}

static double fill_value(const emit *e, uint32_t node) {
  const ir_attr *a = ir_find_attr(e->g, node, IR_ATTR_value);
  if (!a) return 0;
  const int64_t bits = e->g->ints.at[a->first];
  double f;
  memcpy(&f, &bits, sizeof f);
  return ir_dtypes[ir_at(e->g, node)->type.dtype].is_float ? f : (double)bits;
}

/* Coordinates of the operand. In strips what lies outside the node is garbage anyway, so that only what some element of it does not hold is a condition: the
   map of all elements, with the coordinates in place of their numbers. */
static bool view_access(emit *e, uint32_t node, map_access *access) {
  if (!e->quads) return ir_movement_access(e->g, node, 0, access);
  const ir_tensor *t = &ir_at(e->g, node)->type;
  map_access all = {.rank = t->rank};
  uint32_t numbers[SNT_MAX_RANK];
  ir_expr at[SNT_MAX_RANK];
  memcpy(at, access->at, sizeof at);
  for (uint32_t d = 0; d < t->rank; d++) {
    all.at[d] = expr_var_add(e->x, "i", 0, t->dims[d], 1);
    numbers[d] = emit_var_number(e->x, all.at[d]);
  }
  bool fits = ir_movement_access(e->g, node, 0, &all);
  access->rank = all.rank;
  map_substitute(e->x, &all, t->rank, numbers, at);
  memcpy(access->at, all.at, all.rank * sizeof at[0]);
  for (uint32_t i = 0; i < all.condition_count && fits; i++) {
    const map_condition *c = &all.conditions[i];
    fits = map_add_condition(e->x, access, c->value, c->lo, c->hi);
  }
  return fits;
}

/* Words of bytes: read as such where the bytes are stored, else put together. */
static uint32_t compute_words(emit *e, uint32_t node, const map_access *access) {
  kir_kernel *k = e->k;
  map_access at = *access;
  const uint32_t bytes = ir_arg(e->g, node, 0);
  ir_movement_access(e->g, node, 0, &at);
  uint32_t word = emit_read_words(e, bytes, &at);
  if (word || e->failed) return word;
  const kir_type wide = kir_t(SNT_I32, 1);
  for (uint32_t byte = 0; byte < 4; byte++) {
    map_access own = at;
    own.at[own.rank - 1] = expr_add(e->x, at.at[at.rank - 1], byte);
    const uint32_t value = emit_value(e, bytes, &own);
    if (!value) return 0;
    uint32_t part = kir_cast(k, kir_t(SNT_I32, emit_value_type(e, value).lanes), value);
    if (byte < 3) part = kir_2(k, KIR_and, part, kir_const_int(k, wide, 255));
    if (byte) part = kir_2(k, KIR_shl, part, kir_const_int(k, wide, 8 * byte));
    word = word ? kir_2(k, KIR_or, word, part) : part;
  }
  return word;
}

/* A view: the operand at rewritten coordinates; where the view pads, its fill outside. */
static uint32_t compute_view(emit *e, uint32_t node, const map_access *access) {
  map_access inner = *access;
  if (!view_access(e, node, &inner)) {
    e->failed = true, e->failed_node = node;
    return 0;
  }
  if (map_never_holds(e->x, &inner, access->condition_count))
    return constant(e, ir_at(e->g, node)->type.dtype, fill_value(e, node)); /* a border */
  const uint32_t value = emit_value(e, ir_arg(e->g, node, 0), &inner);
  const uint32_t added = inner.condition_count - access->condition_count;
  if (!added || !value) return value;
  const uint32_t inside = emit_conditions(e, added, inner.conditions + access->condition_count);
  return kir_3(e->k, KIR_select, inside, value, constant(e, ir_at(e->g, node)->type.dtype, fill_value(e, node)));
}

/* Every other lane of a concatenation of two is the one operand's, the rest the other's (two values of 4 bits in a byte): each in a vector of half
   the lanes, which are shuffled together. 0: the lanes do not alternate. */
static uint32_t compute_alternating(emit *e, uint32_t node, const map_access *access) {
  const uint32_t lanes = e->lanes, lane_var = e->lane_var, axis = (uint32_t)ir_attr_int(e->g, node, IR_ATTR_axis, 0);
  uint32_t half[2];
  uint8_t order[16];
  map_access at[2];
  if (ir_at(e->g, node)->arity != 2 || lanes < 4 || lanes > 16 || e->c->options->profile->simd != COST_SIMD_EXPLICIT) return 0;
  if (!emit_uses_lanes(e, access->at[axis]) || emit_conditions_use_lanes(e, access->condition_count, access->conditions)) return 0;
  const ir_expr lane = expr_var_add(e->x, "lane", 0, lanes / 2, 1), first = 0;
  for (uint32_t i = 0; i < 2; i++) {
    const ir_expr own = expr_add(e->x, expr_mul(e->x, lane, 2), i);
    at[i] = *access;
    for (uint32_t k = 0; k < access->condition_count; k++) /* they hold for all lanes or for none */
      at[i].conditions[k].value = expr_substitute(e->x, access->conditions[k].value, 1, &lane_var, &first);
    for (uint32_t d = 0; d < access->rank; d++) at[i].at[d] = expr_substitute(e->x, access->at[d], 1, &lane_var, &own);
    if (at[i].at[axis] != (ir_expr)i || !ir_movement_access(e->g, node, i, &at[i]) || at[i].condition_count != access->condition_count)
      return 0;
  }
  emit_use_lanes(e, emit_var_number(e->x, lane), lanes / 2);
  for (uint32_t i = 0; i < 2; i++) half[i] = emit_value(e, ir_arg(e->g, node, i), &at[i]);
  emit_use_lanes(e, lane_var, lanes);
  if (!half[0] || !half[1]) return 0;
  for (uint32_t i = 0; i < 2; i++) half[i] = kir_splat(e->k, half[i], lanes / 2);
  for (uint32_t i = 0; i < lanes; i++) order[i] = (uint8_t)(i / 2 + (i & 1) * (lanes / 2));
  return kir_shuffle(e->k, half[0], half[1], lanes, order);
}

/* Segments in order; the last that can hold the coordinate needs no test. */
static uint32_t compute_concat(emit *e, uint32_t node, const map_access *access) {
  const ir_node *n = ir_at(e->g, node);
  uint32_t value = compute_alternating(e, node, access);
  if (value || e->failed) return value;
  for (uint32_t i = n->arity; i-- > 0;) {
    map_access inner = *access;
    if (!ir_movement_access(e->g, node, i, &inner)) {
      e->failed = true, e->failed_node = node;
      return 0;
    }
    const uint32_t added = inner.condition_count - access->condition_count;
    if (map_never_holds(e->x, &inner, access->condition_count)) continue;
    const uint32_t part = emit_value(e, ir_arg(e->g, node, i), &inner);
    if (!added || !part) return part;
    value = value ? kir_3(e->k, KIR_select, emit_conditions(e, added, inner.conditions + access->condition_count), part, value) : part;
  }
  return value ? value : constant(e, n->type.dtype, 0); /* no segment: outside, where a pad around it gives its own value */
}

/* A whole number from 0 to `most` in the type of a node that is nothing but it: rounded in every mode, where the type has gaps. */
static uint32_t number_of(emit *e, const ir_node *n, uint32_t number, ir_expr most) {
  const kir_type type = emit_compute_type(e, n->type.dtype, emit_value_type(e, number).lanes), own = kir_t(n->type.dtype, type.lanes);
  const bool exact = !ir_dtypes[type.base].is_float ||
                     expr_proves_le(e->x, most, expr_int(e->x, INT64_C(2) << ir_dtypes[own.base].mantissa));
  const uint32_t value = kir_cast(e->k, type, number);
  return exact || kir_same(own, type) ? value : kir_cast(e->k, type, kir_cast(e->k, own, value));
}

static uint32_t compute_iota(emit *e, uint32_t node, const map_access *access) {
  const ir_node *n = ir_at(e->g, node);
  const ir_expr axis = ir_attr_int(e->g, node, IR_ATTR_axis, 0);
  return number_of(e, n, emit_any_expr(e, access->at[axis]), n->type.dims[axis]);
}

uint32_t emit_dim(emit *e, const ir_node *n, ir_expr number) {
  uint32_t value = emit_expr(e, number);
  if (!expr_proves_le(e->x, 0, number)) value = kir_bitcast(e->k, kir_t(SNT_I32, 1), value); /* a plan's numbers wrap */
  return number_of(e, n, value, number);
}

/* An index as i32; one that is wider lies as far outside as it can. A cast of its own: the index may be one, which wraps. */
uint32_t emit_signed_index(emit *e, uint32_t index) {
  if (e->k->failed) return index;
  const kir_type to = kir_t(SNT_I32, emit_value_type(e, index).lanes);
  if (kir_same(emit_value_type(e, index), to)) return index;
  return kir_put(e->k, &(kir_inst){.op = KIR_cast, .type = to, .flags = KIR_SAT}, 1, &index);
}

/* How large a u32 can be that is made of a bound and a few literals. */
static uint64_t most_of(const kir_kernel *k, uint32_t value, uint32_t depth) {
  const kir_inst *in = kir_at(k, value);
  if (in->op == KIR_const) return (uint32_t)in->imm.i;
  if (!depth || (in->op != KIR_min && in->op != KIR_add && in->op != KIR_mul)) return UINT32_MAX;
  const uint64_t a = most_of(k, kir_arg(k, value, 0), depth - 1), b = most_of(k, kir_arg(k, value, 1), depth - 1);
  const uint64_t most = in->op == KIR_min ? (a < b ? a : b) : in->op == KIR_add ? a + b : a * b;
  return most < UINT32_MAX ? most : UINT32_MAX;
}

static uint32_t clamp_signed(emit *e, uint32_t index, ir_expr extent) {
  const kir_type wide = kir_t(SNT_I32, 1);
  const uint32_t count = kir_bitcast(e->k, wide, emit_expr(e, extent)), last = kir_2(e->k, KIR_sub, count, kir_const_int(e->k, wide, 1));
  return kir_2(e->k, KIR_max, kir_2(e->k, KIR_min, index, last), kir_const_int(e->k, wide, 0));
}

/* What has no sign is never below the first, if there is one. */
uint32_t emit_near_index(emit *e, uint32_t index, ir_expr extent) {
  const kir_type narrow = kir_t(SNT_U32, 1);
  int64_t least, most;
  expr_bounds(e->x, extent, &least, &most);
  if (e->k->failed || !kir_same(emit_value_type(e, index), narrow) || least < 1) {
    return clamp_signed(e, emit_signed_index(e, index), extent);
  }
  if (most_of(e->k, index, 3) < (uint64_t)least) return index;
  return kir_2(e->k, KIR_min, index, kir_2(e->k, KIR_sub, emit_expr(e, extent), kir_const_int(e->k, narrow, 1)));
}

ir_expr emit_index_var(emit *e, uint32_t clamped, ir_expr extent) {
  return extent == 1 ? 0 : emit_var_for(e, "index", kir_bitcast(e->k, kir_t(SNT_U32, 1), clamped), 0, extent);
}

/* What lies there, or 0: where the axis of `extent` that is asked by a number has no elements, and where `inside`, if it is not 0, says so. */
uint32_t emit_element(emit *e, uint32_t data, map_access *at, ir_expr extent, uint32_t inside) {
  const uint32_t before = at->condition_count;
  if (!map_add_condition(e->x, at, 0, 0, extent)) return e->failed = true, e->failed_node = data, 0;
  const uint32_t value = emit_value(e, data, at), count = at->condition_count - before;
  if (count) {
    const uint32_t any = emit_conditions(e, count, at->conditions + before);
    inside = inside ? kir_2(e->k, KIR_and, inside, any) : any;
  }
  return inside ? kir_3(e->k, KIR_select, inside, value, constant(e, ir_at(e->g, data)->type.dtype, 0)) : value;
}

/* One gathered element: the index is a run-time value in [0, extent) once clamped, so it becomes a variable of its own. */
static uint32_t gather_element(emit *e, uint32_t node, const map_access *access) {
  const uint32_t data = ir_arg(e->g, node, 0), indices = ir_arg(e->g, node, 1);
  const ir_tensor *from = &ir_at(e->g, data)->type;
  const uint32_t index_rank = ir_at(e->g, indices)->type.rank, axis = (uint32_t)ir_attr_int(e->g, node, IR_ATTR_axis, 0);
  map_access at_index = *access, at_data = *access;
  at_index.rank = index_rank;
  for (uint32_t i = 0; i < index_rank; i++) at_index.at[i] = access->at[axis + i];
  const bool zero = ir_attr_flag(e->g, node, IR_ATTR_zero);
  const uint32_t index = emit_value(e, indices, &at_index), given = zero ? emit_signed_index(e, index) : index;
  const uint32_t clamped = emit_near_index(e, given, from->dims[axis]);
  at_data.rank = from->rank;
  at_data.at[axis] = emit_index_var(e, clamped, from->dims[axis]);
  for (uint32_t i = axis + 1; i < from->rank; i++) at_data.at[i] = access->at[i - 1 + index_rank];
  return emit_element(e, data, &at_data, from->dims[axis], zero ? kir_2(e->k, KIR_eq, given, clamped) : 0);
}

static bool access_uses_lanes(const emit *e, const map_access *a, uint32_t first, uint32_t count) {
  for (uint32_t i = first; i < first + count; i++)
    if (emit_uses_lanes(e, a->at[i])) return true;
  return emit_conditions_use_lanes(e, a->condition_count, a->conditions);
}

static map_access at_lane(const emit *e, const map_access *access, ir_expr lane) {
  map_access own = *access;
  map_substitute(e->x, &own, 1, &e->lane_var, &lane);
  return own;
}

/* Lane by lane: for rows whose index differs in each lane. */
static uint32_t each_lane(emit *e, uint32_t node, const map_access *access, uint32_t (*one)(emit *, uint32_t, const map_access *)) {
  const uint32_t lanes = e->lanes;
  uint32_t parts[16];
  e->lanes = 1, e->copies = lanes;
  for (uint32_t i = 0; i < lanes; i++) {
    const map_access own = at_lane(e, access, i);
    parts[i] = one(e, node, &own);
  }
  e->lanes = lanes, e->copies = 1;
  return kir_vector(e->k, e->failed || e->k->failed ? SNT_F32 : emit_value_type(e, parts[0]).base, lanes, parts);
}

/* A reduction in place. Where its coordinates do not run along the lanes it is one number, also inside a vector loop: it is remembered for what
   follows, the loop over the tail among it. */
static uint32_t compute_reduce(emit *e, uint32_t node, const map_access *access) {
  const uint32_t lanes = e->lanes;
  if (lanes > 1 && !access_uses_lanes(e, access, 0, access->rank)) e->lanes = 1;
  const uint32_t value = emit_reduce(e, node, access, &(sweep){.lanes = 1, .accumulators = 1});
  e->lanes = lanes;
  return value;
}

/* What a loop comes to in all lanes at once: their ways through it have nothing to wait for in each other. Each lane's number is remembered. */
static void find_indices(emit *e, uint32_t indices, uint32_t axis, const map_access *access) {
  map_access at = *access;
  at.rank = ir_at(e->g, indices)->type.rank;
  for (uint32_t i = 0; i < at.rank; i++) at.at[i] = access->at[axis + i];
  const uint32_t all = emit_value(e, indices, &at);
  for (uint32_t i = 0; i < e->lanes && !e->failed && !e->k->failed; i++) {
    const map_access own = at_lane(e, &at, i);
    emit_remember(e, indices, &own, kir_lane(e->k, all, i));
  }
}

static uint32_t compute_gather(emit *e, uint32_t node, const map_access *access) {
  const uint32_t axis = (uint32_t)ir_attr_int(e->g, node, IR_ATTR_axis, 0), indices = ir_arg(e->g, node, 1);
  const uint32_t rank = ir_at(e->g, indices)->type.rank;
  if (e->lanes == 1 || !access_uses_lanes(e, access, axis, rank)) return gather_element(e, node, access);
  if (fusion_register_loop(e->c, indices)) find_indices(e, indices, axis, access);
  return each_lane(e, node, access, gather_element);
}

/* Philox 4x32-10 (Salmon et al., SC 2011): key and counter are u32 values; the first word of the block is the result. ir/IR.txt states it. */
static uint32_t compute_random(emit *e, uint32_t node, const map_access *access) {
  kir_kernel *k = e->k;
  const uint32_t key_node = ir_arg(e->g, node, 0), counter_node = ir_arg(e->g, node, 1);
  const map_access ka = operand_access(e, key_node, access), ca = operand_access(e, counter_node, access);
  uint32_t key = emit_value(e, key_node, &ka), c[4] = {emit_value(e, counter_node, &ca)};
  const kir_type type = kir_t(SNT_U32, 1);
  uint32_t key2 = kir_const_int(k, type, 0);
  for (int i = 1; i < 4; i++) c[i] = kir_const_int(k, type, 0);
  const uint32_t m0 = kir_const_int(k, type, 0xD2511F53), m1 = kir_const_int(k, type, 0xCD9E8D57);
  const uint32_t w0 = kir_const_int(k, type, 0x9E3779B9), w1 = kir_const_int(k, type, 0xBB67AE85);
  for (int round = 0; round < 10; round++) {
    const uint32_t hi0 = kir_2(k, KIR_mulhi, c[0], m0), lo0 = kir_2(k, KIR_mul, c[0], m0);
    const uint32_t hi1 = kir_2(k, KIR_mulhi, c[2], m1), lo1 = kir_2(k, KIR_mul, c[2], m1);
    c[0] = kir_2(k, KIR_xor, kir_2(k, KIR_xor, hi1, c[1]), key);
    c[1] = lo1;
    c[2] = kir_2(k, KIR_xor, kir_2(k, KIR_xor, hi0, c[3]), key2);
    c[3] = lo0;
    key = kir_2(k, KIR_add, key, w0);
    key2 = kir_2(k, KIR_add, key2, w1);
  }
  return c[0];
}

uint32_t emit_compute(emit *e, uint32_t node, const map_access *access) {
  const ir_node *n = ir_at(e->g, node);
  switch (n->op) {
  case IR_OP_const: return compute_const(e, node);
  case IR_OP_iota: return compute_iota(e, node, access);
  case IR_OP_dim: return emit_dim(e, n, ir_attr_ints(e->g, node, IR_ATTR_shape, NULL)[0]);
  case IR_OP_concat: return compute_concat(e, node, access);
  case IR_OP_gather: return compute_gather(e, node, access);
  case IR_OP_custom: return emit_custom(e, node, access);
  case IR_OP_random: return compute_random(e, node, access);
  case IR_OP_loop:
  case IR_OP_pick:
    if (fusion_register_loop(e->c, node)) return emit_register_loop(e, node, access);
    break;
  case IR_OP_scatter_set:
  case IR_OP_scatter_add:
  case IR_OP_scatter_mul:
  case IR_OP_scatter_min:
  case IR_OP_scatter_max: return emit_scatter(e, node, access);
  default: break;
  }
  if (n->op == IR_OP_words) return compute_words(e, node, access);
  if (ir_ops[n->op].flags & IR_POINTWISE) return compute_pointwise(e, node, access);
  if (ir_ops[n->op].flags & IR_MOVEMENT) return compute_view(e, node, access);
  if ((ir_ops[n->op].flags & IR_REDUCE) || n->op == IR_OP_contract) return compute_reduce(e, node, access);
  e->failed = true;
  e->failed_node = node; /* a scan, scatter or region inside a kernel of another kind */
  return 0;
}
