/* `value`: node n at coordinates. Memoised per (node, coordinates) in the open scope; stored values are loaded, staged regions read, the rest computed. */
#include "fusion/emit_private.h"
#include "fusion/image.h"

static uint64_t access_hash(uint32_t node, const map_access *a) {
  uint64_t h = ir_hash64(node, a->at, a->rank * sizeof a->at[0]);
  return a->condition_count ? ir_hash64(h, a->conditions, a->condition_count * sizeof a->conditions[0]) : h;
}

static bool is_of(const emit_memo *m, uint32_t node, const map_access *a) {
  return m->node == node && m->rank == a->rank && m->condition_count == a->condition_count &&
         !memcmp(m->at, a->at, a->rank * sizeof a->at[0]) &&
         (!a->condition_count || !memcmp(m->conditions, a->conditions, a->condition_count * sizeof a->conditions[0]));
}

/* What is known whatever the conditions are is known where they hold: the sum of a row, below a concatenation along the row. */
uint32_t emit_recall(const emit *e, uint32_t node, const map_access *access) {
  const uint64_t hash = access_hash(node, access);
  for (uint32_t i = e->buckets[hash % EMIT_BUCKETS]; i != UINT32_MAX; i = e->memos.at[i].next)
    if (e->memos.at[i].hash == hash && is_of(&e->memos.at[i], node, access)) return e->memos.at[i].value;
  if (!access->condition_count) return 0;
  map_access plain = *access;
  plain.condition_count = 0;
  return emit_recall(e, node, &plain);
}

static const void *copy_of(emit *e, const void *data, size_t bytes) {
  void *copy = ir_arena_take_bare(e->arena, bytes, _Alignof(map_condition));
  return copy ? memcpy(copy, data, bytes) : NULL;
}

void emit_remember(emit *e, uint32_t node, const map_access *access, uint32_t value) {
  emit_memo m = {.node = node, .value = value, .depth = e->depth, .hash = access_hash(node, access), .rank = access->rank};
  uint32_t *head = &e->buckets[m.hash % EMIT_BUCKETS];
  m.condition_count = access->condition_count;
  m.at = copy_of(e, access->at, access->rank * sizeof access->at[0]);
  m.conditions = m.condition_count ? copy_of(e, access->conditions, m.condition_count * sizeof access->conditions[0]) : NULL;
  m.next = *head;
  if (!m.at || (m.condition_count && !m.conditions) || !IR_PUSH(e->arena, &e->memos, m)) {
    e->failed = true;
    return;
  }
  *head = e->memos.count - 1;
}

/* Read from its buffer, rather than computed in this kernel? A copy has its node as input and as member. */
static bool is_read(const emit *e, uint32_t node) {
  if (e->c->group_of[node]) {
    bool input = false;
    for (uint32_t i = 0; i < e->group->input_count; i++) input |= e->group->inputs[i] == node;
    return input || !fusion_group_has(e->group, node);
  }
  const ir_op op = (ir_op)ir_at(e->g, node)->op;
  return op == IR_OP_input || op == IR_OP_state || (op == IR_OP_const && !ir_is_literal(e->g, node));
}

/* An element of a constant at a literal place is a literal. */
static uint32_t literal_element(emit *e, uint32_t node, const map_access *access) {
  const ir_node *n = ir_at(e->g, node);
  int64_t at;
  if (n->op != IR_OP_const || !expr_is_const(e->x, fusion_plain_offset(e->c, node, access), &at)) return 0;
  const void *data = at >= 0 ? ir_const_data(e->c->graph, node) : NULL;
  e->c->peeked |= data != NULL;
  if (!data || n->type.dtype == SNT_BOOL) return 0;
  const kir_type type = emit_compute_type(e, n->type.dtype, 1);
  if (ir_dtypes[n->type.dtype].is_float) return kir_const_float(e->k, type, ir_dtype_load(n->type.dtype, data, (size_t)at));
  return kir_const_int(e->k, type, ir_dtype_load_int(n->type.dtype, data, (size_t)at));
}

static uint32_t read_node(emit *e, uint32_t node, const map_access *access) {
  const ir_node *n = ir_at(e->g, node);
  const uint8_t layout = n->op == IR_OP_input ? fusion_image_layout(e->c, node) : PLAN_IMAGE_NONE;
  if (layout) return emit_read_image(e, node, layout, access);
  const uint32_t literal = literal_element(e, node, access);
  if (literal) return literal;
  const ir_expr offset = fusion_stored_offset(e->c, node, access);
  const uint32_t memory = emit_bind(e, fusion_buffer_of(e->c, node), KIR_READ);
  return emit_load(e, memory, n->type.dtype, offset, access->condition_count, access->conditions);
}

uint32_t emit_read_words(emit *e, uint32_t node, const map_access *first) {
  enum { WORD = 4 };
  map_access at = *first;
  while (!is_read(e, node)) {
    if (!fusion_is_view(e->g, node) || ir_at(e->g, node)->arity != 1 || emit_find_stage(e, node, &at)) return 0;
    if (!ir_movement_access(e->g, node, 0, &at) || at.condition_count != first->condition_count) return 0;
    node = ir_arg(e->g, node, 0);
  }
  const ir_expr offset = fusion_stored_offset(e->c, node, &at);
  if (expr_multiple_of(e->x, offset) % WORD) return 0;
  const uint32_t memory = emit_bind_words(e, fusion_buffer_of(e->c, node));
  return emit_load(e, memory, SNT_I32, expr_div(e->x, offset, WORD), at.condition_count, at.conditions);
}

/* Columns from the nearest whole vector below, if exactly one coordinate runs along the lanes with unit stride; else 0. */
static int64_t columns_off(const emit *e, const map_access *access, uint32_t *axis) {
  uint32_t found = 0;
  int64_t coef, constant = 0;
  for (uint32_t d = 0; d < access->rank; d++) {
    ir_expr rest;
    if (!emit_uses_lanes(e, access->at[d])) continue;
    if (found++ || !expr_split_affine(e->x, access->at[d], e->lane_var, &coef, &rest) || coef != 1) return 0;
    *axis = d;
    if (expr_is_const(e->x, rest, &constant)) continue;
    const expr_node *n = &e->x->nodes.at[IR_EXPR_NODE(rest)];
    constant = n->kind == EXPR_SUM ? n->value : 0;
  }
  return found == 1 ? constant & 3 : 0;
}

/* The value as elements of two whole vectors. What lies outside the node is garbage and is not among them, or whoever made a condition selects;
   so conditions, which only guard loads, are left out. */
static uint32_t from_quads(emit *e, uint32_t node, const map_access *access, uint32_t axis, int64_t off) {
  uint32_t parts[4], whole[2];
  map_access at = *access;
  at.condition_count = 0;
  for (uint32_t i = 0; i < 2; i++) {
    at.at[axis] = expr_add(e->x, access->at[axis], expr_int(e->x, 4 * (int64_t)i - off));
    whole[i] = emit_value(e, node, &at);
    if (!whole[i]) return 0;
  }
  if (whole[0] == whole[1]) return whole[0]; /* the same in all columns */
  for (uint32_t i = 0; i < 4; i++) {         /* of a vector that lies outside of the node all columns are alike, but not with the other's */
    const uint32_t from = i + (uint32_t)off, value = whole[from / 4];
    parts[i] = emit_value_type(e, value).lanes == 1 ? value : kir_lane(e->k, value, from % 4);
  }
  return kir_vector(e->k, emit_value_type(e, whole[0]).base, 4, parts);
}

static uint32_t computed(emit *e, uint32_t node, const map_access *access) {
  uint32_t axis = 0;
  const int64_t off = e->quads && e->lanes == 4 && (ir_ops[ir_at(e->g, node)->op].flags & IR_POINTWISE) ? columns_off(e, access, &axis) : 0;
  return off ? from_quads(e, node, access, axis, off) : emit_compute(e, node, access);
}

uint32_t emit_value(emit *e, uint32_t node, const map_access *access) {
  if (e->failed || e->k->failed) return 0;
  uint32_t value = emit_recall(e, node, access);
  if (value) return value;
  const emit_stage_entry *stage = emit_find_stage(e, node, access);
  if (stage && !stage->through) {
    value = emit_stage_load(e, stage, access);
  } else {
    const emit_stage_entry entry = stage ? *stage : (emit_stage_entry){0};
    value = is_read(e, node) ? read_node(e, node, access) : computed(e, node, access);
    if (stage && !access->condition_count) emit_stage_store(e, &entry, access, value); /* else it is good for some lanes, or for none */
  }
  if (value) emit_remember(e, node, access, value);
  return value;
}
