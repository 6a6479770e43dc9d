/* Loads and stores at element offsets that are pool expressions. Along the lane axis: coefficient 0 is a uniform scalar, 1 a vector access with
   the alignment that the expression proves, another constant a strided access, anything else (or a condition per lane) goes lane by lane. */
#include "fusion/emit_private.h"

kir_type emit_compute_type(const emit *e, int32_t dtype, uint32_t lanes) {
  (void)e;
  return kir_t(dtype == SNT_F16 || dtype == SNT_BF16 ? SNT_F32 : dtype, lanes);
}

kir_type emit_value_type(const emit *e, uint32_t value) { return kir_at(e->k, value)->type; }

/* From the stored type to the compute type. */
static uint32_t widen(emit *e, int32_t dtype, uint32_t value) {
  const uint32_t lanes = emit_value_type(e, value).lanes;
  if (dtype == SNT_BOOL) return kir_2(e->k, KIR_ne, value, kir_const_int(e->k, kir_t(SNT_U8, lanes), 0));
  const kir_type type = emit_compute_type(e, dtype, lanes);
  return kir_same(type, emit_value_type(e, value)) ? value : kir_cast(e->k, type, value);
}

static uint32_t narrow(emit *e, int32_t dtype, uint32_t value) {
  const uint32_t lanes = emit_value_type(e, value).lanes;
  if (dtype == SNT_BOOL)
    return kir_3(e->k, KIR_select, value, kir_const_int(e->k, kir_t(SNT_U8, lanes), 1), kir_const_int(e->k, kir_t(SNT_U8, lanes), 0));
  const kir_type type = kir_t(dtype, lanes);
  if (emit_value_type(e, value).base == dtype) return value;
  const uint32_t cast = kir_cast(e->k, type, value);
  if (ir_dtypes[dtype].is_float && !e->k->failed) kir_at(e->k, cast)->flags |= KIR_ROUND_RNE;
  return cast;
}

/* Proven alignment in bytes of an access of `lanes` elements at `offset`. */
static uint16_t proven_align(const emit *e, const kir_memory *m, ir_expr offset, uint32_t lanes) {
  const uint32_t bytes = ir_dtypes[m->type.base].bytes;
  const uint32_t elements = (uint32_t)expr_gcd(lanes, expr_multiple_of(e->x, offset));
  uint32_t power = 1;
  while (power * 2 <= elements && elements % (power * 2) == 0) power *= 2;
  const uint32_t bytes_proven = power * bytes; /* sixteen elements of 64 bits are longer than what a buffer's base has */
  return (uint16_t)(m->align && m->align < bytes_proven ? m->align : bytes_proven);
}

/* Is the index a sum whose literal is an element of the memory itself? */
static bool has_offset(const emit *e, uint32_t memory, uint32_t index) {
  const kir_memory *m = &e->k->memories.at[memory];
  const kir_inst *sum = kir_at(e->k, index);
  return e->offsets && !e->k->failed && m->space == KIR_GLOBAL && sum->op == KIR_ix && sum->arg_count && sum->imm.i > 0 &&
         (uint64_t)sum->imm.i < m->dims[0];
}

/* The index where the conditions hold, else that of an element. */
static uint32_t guarded_index(emit *e, uint32_t memory, ir_expr offset, uint32_t count, const map_condition *conditions) {
  enum { MOST = 16 };
  uint32_t index = emit_expr(e, offset), parts[MOST];
  if (!count) return index;
  const uint32_t test = emit_conditions(e, count, conditions), zero = kir_const_int(e->k, kir_t(SNT_U32, 1), 0);
  kir_inst sum = *kir_at(e->k, index);
  const bool apart = has_offset(e, memory, index) && sum.arg_count <= MOST;
  for (uint32_t i = 0; apart && i < sum.arg_count; i++) parts[i] = kir_arg(e->k, index, i);
  const kir_inst offset_sum = {.op = KIR_ix, .type = sum.type, .imm.i = sum.imm.i};
  sum.imm.i = 0;
  if (apart) index = kir_put(e->k, &sum, sum.arg_count, parts);
  index = kir_3(e->k, KIR_select, test, index, zero);
  return apart ? kir_put(e->k, &offset_sum, 2, (uint32_t[]){kir_const_int(e->k, sum.type, 1), index}) : index;
}

static bool is_near_storage(const emit *e, uint32_t memory) { return e->near_storage && e->k->memories.at[memory].space == KIR_GLOBAL; }

static uint32_t load_scalar(emit *e, uint32_t memory, ir_expr offset, uint32_t count, const map_condition *conditions) {
  if (e->k->memories.at[memory].type.lanes == 4) return emit_texel_element(e, memory, offset, count, conditions);
  const bool near = is_near_storage(e, memory);
  const uint32_t index = near ? emit_near(e, memory, emit_expr(e, offset), offset, 1) : guarded_index(e, memory, offset, count, conditions);
  return kir_load(e->k, memory, 1, 1, &index);
}

static ir_expr in_lane(const emit *e, ir_expr value, ir_expr lane) { return expr_substitute(e->x, value, 1, &e->lane_var, &lane); }

static uint32_t load_each_lane(emit *e, uint32_t memory, ir_expr offset, uint32_t count, const map_condition *conditions) {
  uint32_t parts[16];
  for (uint32_t i = 0; i < e->lanes; i++) {
    const ir_expr lane = i;
    map_access own = {.rank = 1, .at = {offset}, .condition_count = count};
    if (count) memcpy(own.conditions, conditions, count * sizeof *conditions);
    map_substitute(e->x, &own, 1, &e->lane_var, &lane);
    parts[i] = load_scalar(e, memory, own.at[0], count, own.conditions);
  }
  return kir_vector(e->k, e->k->memories.at[memory].type.base, e->lanes, parts);
}

static uint32_t load_vector(emit *e, uint32_t memory, ir_expr rest, int64_t coef, uint32_t count, const map_condition *conditions) {
  const kir_memory *m = &e->k->memories.at[memory];
  const uint16_t align = coef == 1 ? proven_align(e, m, rest, e->lanes) : 0;
  const uint32_t index = guarded_index(e, memory, rest, count, conditions);
  const uint32_t value = kir_load(e->k, memory, e->lanes, 1, &index);
  if (!e->k->failed) {
    kir_at(e->k, value)->align = align;
    kir_at(e->k, value)->lanes = coef == 1 ? 0 : (int32_t)coef;
  }
  return value;
}

/* A vector of storage of which some elements may lie outside: each is held inside by itself. */
static bool may_leave(const emit *e, uint32_t memory, ir_expr offset) {
  int64_t low, high;
  if (!is_near_storage(e, memory)) return false;
  expr_bounds(e->x, offset, &low, &high);
  return low < 0 ||
         !expr_proves_lt(e->x, offset, emit_buffer_elements(e, &e->c->plan->buffers.at[e->slots.at[e->k->memories.at[memory].slot]]));
}

static uint32_t load_raw(emit *e, uint32_t memory, ir_expr offset, uint32_t count, const map_condition *conditions) {
  if (e->k->memories.at[memory].type.lanes == 4 && emit_texel_is_safe(e)) count = 0; /* whoever made the conditions selects */
  const bool lane_conditions = emit_conditions_use_lanes(e, count, conditions);
  if (!emit_uses_lanes(e, offset) && !lane_conditions) return load_scalar(e, memory, offset, count, conditions);
  int64_t coef = 0;
  ir_expr rest = 0;
  const bool affine = !lane_conditions && expr_split_affine(e->x, offset, e->lane_var, &coef, &rest);
  if (!affine || coef <= 0 || coef > INT32_MAX || may_leave(e, memory, offset)) return load_each_lane(e, memory, offset, count, conditions);
  if (e->k->memories.at[memory].type.lanes == 4) {
    if (coef == 1 && count == 0 && e->lanes % 4 == 0) return emit_texel_vector(e, memory, rest);
    return load_each_lane(e, memory, offset, count, conditions);
  }
  return load_vector(e, memory, rest, coef, count, conditions);
}

uint32_t emit_load(emit *e, uint32_t memory, int32_t dtype, ir_expr offset, uint32_t count, const map_condition *conditions) {
  if (e->failed || memory >= e->k->memories.count) return 0; /* out of memory for its description, too */
  return widen(e, dtype, load_raw(e, memory, offset, count, conditions));
}

static void mark_store(emit *e, uint32_t memory, uint32_t store) {
  if (e->same && !e->k->failed && e->k->memories.at[memory].space == KIR_GLOBAL) kir_at(e->k, store)->flags |= KIR_IS_SAME;
}

static void store_each_lane(emit *e, uint32_t memory, ir_expr offset, uint32_t value) {
  for (uint32_t i = 0; i < e->lanes; i++) {
    const uint32_t index = emit_expr(e, in_lane(e, offset, i));
    const uint32_t part = kir_lane(e->k, value, i);
    mark_store(e, memory, kir_store(e->k, memory, 1, &index, part));
  }
}

void emit_store(emit *e, uint32_t memory, int32_t dtype, ir_expr offset, uint32_t value) {
  if (e->failed || e->k->failed) return;
  const bool along = emit_uses_lanes(e, offset);
  uint32_t stored = narrow(e, dtype, value);
  if (!along) {
    const uint32_t index = emit_expr(e, offset);
    mark_store(e, memory, kir_store(e->k, memory, 1, &index, stored));
    return;
  }
  stored = kir_splat(e->k, stored, e->lanes);
  int64_t coef;
  ir_expr rest;
  if (!expr_split_affine(e->x, offset, e->lane_var, &coef, &rest) || coef <= 0 || coef > INT32_MAX) {
    store_each_lane(e, memory, offset, stored);
    return;
  }
  const uint32_t index = emit_expr(e, rest);
  const uint32_t id = kir_store(e->k, memory, 1, &index, stored);
  if (e->k->failed) return;
  mark_store(e, memory, id);
  kir_at(e->k, id)->align = coef == 1 ? proven_align(e, &e->k->memories.at[memory], rest, e->lanes) : 0;
  kir_at(e->k, id)->lanes = coef == 1 ? 0 : (int32_t)coef;
  if (e->stream && coef == 1 && e->k->memories.at[memory].space == KIR_GLOBAL) kir_at(e->k, id)->flags |= KIR_IS_STREAM;
}

/* Once for each item of the subgroup, with what that one has. */
static void store_by_hand(emit *e, uint32_t memory, int32_t dtype, ir_expr offset, uint32_t value) {
  for (ir_expr item = 0; item < (ir_expr)e->k->sub; item++) {
    const uint32_t own = kir_2(e->k, KIR_sg_shuffle, value, kir_const_int(e->k, kir_t(SNT_U32, 1), item));
    emit_store(e, memory, dtype, expr_substitute(e->x, offset, 1, &e->hand_var, &item), own);
  }
}

void emit_store_node(emit *e, uint32_t node, const map_access *access, uint32_t value) {
  const ir_node *n = ir_at(e->g, node);
  const uint32_t memory = emit_bind(e, fusion_buffer_of(e->c, node), KIR_WRITE);
  const uint32_t read = ir_attr_flag(e->g, node, IR_ATTR_unread) ? emit_value(e, ir_arg(e->g, node, 0), access) : 0;
  const bool asks = read && emit_value_type(e, read).lanes == 1;
  if (asks) emit_if(e, read);
  const ir_expr offset = fusion_stored_offset(e->c, node, access);
  if (e->hand_var == UINT32_MAX) emit_store(e, memory, n->type.dtype, offset, value);
  else store_by_hand(e, memory, n->type.dtype, offset, value);
  if (asks) emit_if_end(e);
}

/* In one test: drivers for processors are slow with tests inside tests, and one of them wrong. */
void emit_store_where(emit *e, uint32_t node, const map_access *access, uint32_t value, uint32_t count, const map_condition *conditions) {
  const bool apart = emit_conditions_use_lanes(e, count, conditions);
  if (apart) value = kir_splat(e->k, value, e->lanes);
  for (uint32_t i = 0; i < (apart ? e->lanes : 1); i++) {
    map_access at = *access;
    map_condition asked[MAP_MAX_CONDITIONS];
    uint32_t part = value, asks = 0;
    for (uint32_t c = 0; c < count; c++) {
      int64_t low, high;
      asked[asks] = conditions[c];
      asked[asks].value = in_lane(e, conditions[c].value, i);
      expr_bounds(e->x, asked[asks].value, &low, &high);
      asks += low < 0 || !expr_proves_lt(e->x, asked[asks].value, asked[asks].hi);
    }
    if (apart) {
      for (uint32_t d = 0; d < at.rank; d++) at.at[d] = in_lane(e, at.at[d], i);
      part = kir_lane(e->k, value, i);
    }
    if (asks) emit_if(e, emit_conditions(e, asks, asked));
    emit_store_node(e, node, &at, part);
    if (asks) emit_if_end(e);
  }
}
