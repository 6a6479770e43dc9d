/* `stage`: the region of a node that the consumers under a loop need, computed once into private, local, workspace or output storage.
   In: a region as origin and extent a dimension. Invariant: an entry is dropped when the scope that opened it closes. */
#include "fusion/emit_private.h"
#include "fusion/schedule_common.h"

enum { STAGE_UNTOUCHED = 1, STAGE_STORED }; /* `through` */
enum { WIDEST = 16, DEEPEST = 8 };          /* lanes of a block that is turned; operators that are looked through for what it is made of */

emit_stage_entry *emit_find_stage(emit *e, uint32_t node, const map_access *access) {
  for (uint32_t i = e->stages.count; i-- > 0;) {
    emit_stage_entry *s = &e->stages.at[i];
    if (s->node != node) continue;
    bool inside = true;
    for (uint32_t d = 0; d < s->rank && inside; d++)
      inside = expr_proves_le(e->x, s->origin[d], access->at[d]) &&
               expr_proves_lt(e->x, access->at[d], expr_add(e->x, s->origin[d], s->extent[d]));
    if (inside) return s;
  }
  return NULL;
}

bool emit_is_stored(const emit *e, uint32_t node) {
  for (uint32_t i = 0; i < e->stages.count; i++)
    if (e->stages.at[i].node == node && e->stages.at[i].storage == STAGE_OUTPUT) return true;
  return false;
}

static ir_expr stage_offset(emit *e, const emit_stage_entry *s, const map_access *access) {
  expr_pool *x = e->x;
  if (s->storage == STAGE_OUTPUT) return fusion_stored_offset(e->c, s->node, access);
  ir_expr offset = s->base;
  for (uint32_t d = 0; d < s->rank; d++) {
    ir_expr at = expr_sub(x, access->at[d], s->origin[d]);
    if ((int32_t)d == s->ring_axis) at = expr_mod(x, expr_add(x, access->at[d], s->ring_size), s->ring_size);
    offset = expr_add(x, offset, expr_mul(x, at, s->stride[d]));
  }
  return offset;
}

static int32_t stage_dtype(const emit *e, const emit_stage_entry *s) {
  const int32_t dtype = ir_at(e->g, s->node)->type.dtype;
  return s->storage == STAGE_OUTPUT || s->storage == STAGE_PACKED || dtype == SNT_BOOL ? dtype : emit_compute_type(e, dtype, 1).base;
}

uint32_t emit_stage_load(emit *e, const emit_stage_entry *s, const map_access *access) {
  return emit_load(e, s->memory, stage_dtype(e, s), stage_offset(e, s, access), 0, NULL);
}

void emit_stage_store(emit *e, const emit_stage_entry *s, const map_access *access, uint32_t value) {
  const bool stream = e->stream;
  for (uint32_t i = e->stages.count; i-- > 0;) /* `s` may be a copy */
    if (e->stages.at[i].node == s->node && e->stages.at[i].memory == s->memory && e->stages.at[i].through)
      e->stages.at[i].through = STAGE_STORED;
  e->stream = false; /* it is read again soon */
  emit_store(e, s->memory, stage_dtype(e, s), stage_offset(e, s, access), value);
  e->stream = stream;
}

static uint32_t stage_memory(emit *e, const emit_stage_entry *s, const stage_info *info, ir_expr elements, uint32_t reuse) {
  if (s->storage == STAGE_OUTPUT) return emit_bind(e, fusion_buffer_of(e->c, info->home), KIR_READ | KIR_WRITE);
  if (reuse != UINT32_MAX) return reuse;
  const int32_t dtype = stage_dtype(e, s);
  char name[24];
  const int length = snprintf(name, sizeof name, "t%u", e->k->memories.count);
  const char *kept = ir_arena_text(e->arena, name, (size_t)length);
  if (s->storage == STAGE_WORKSPACE)
    return emit_bind(e, fusion_add_scratch(e->c, kept, dtype, expr_mul(e->x, elements, info->groups)), KIR_READ | KIR_WRITE);
  int64_t literal;
  if (!expr_is_const(e->x, elements, &literal)) {
    e->failed = true;
    return 0;
  }
  kir_memory m = {.name = kept, .space = s->storage == STAGE_LOCAL ? KIR_LOCAL : KIR_PRIVATE, .access = KIR_READ | KIR_WRITE, .rank = 1};
  m.type = kir_t(dtype == SNT_BOOL ? SNT_U8 : dtype, 1);
  m.flags = s->storage == STAGE_LOCAL ? 0 : s->storage == STAGE_REGS ? KIR_MEM_REGS : KIR_MEM_ROWS;
  m.align = 64;
  m.dims[0] = (uint64_t)literal;
  return kir_memory_add(e->k, &m);
}

/* The entry with its strides; *elements: of the region. */
static emit_stage_entry lay_out(emit *e, const stage_info *info, ir_expr *elements) {
  const ir_node *n = ir_at(e->g, info->node);
  emit_stage_entry s = {.node = info->node,
                        .storage = info->storage,
                        .through = STAGE_UNTOUCHED,
                        .rank = n->type.rank,
                        .ring_axis = info->ring_axis,
                        .ring_size = info->ring_size,
                        .depth = e->depth};
  *elements = 1;
  for (uint32_t i = s.rank; i-- > 0;) {
    const uint32_t d = info->ordered ? info->order[i] : i;
    s.origin[d] = info->origin[d];
    s.extent[d] = info->extent[d];
    s.stride[d] = *elements;
    *elements = expr_mul(e->x, *elements, (int32_t)d == info->ring_axis ? info->ring_size : info->extent[d]);
    if (i + 1u == s.rank && info->row) *elements = expr_int(e->x, info->row);
  }
  s.base = info->row ? expr_int(e->x, info->front) : 0;
  return s;
}

void emit_stage_given(emit *e, const stage_info *info, uint32_t buffer, ir_expr part) {
  ir_expr elements;
  emit_stage_entry s = lay_out(e, info, &elements);
  s.through = 0;
  s.base = expr_mul(e->x, part, elements);
  s.memory = emit_bind(e, buffer, KIR_READ);
  if (!IR_PUSH(e->arena, &e->stages, s)) e->failed = true;
}

emit_stage_entry emit_stage_room(emit *e, const stage_info *info, uint32_t reuse) {
  ir_expr elements;
  emit_stage_entry s = lay_out(e, info, &elements);
  elements = expr_mul(e->x, expr_ceil_div(e->x, elements, STAGE_PART), STAGE_PART);
  if (s.storage == STAGE_WORKSPACE) s.base = expr_add(e->x, s.base, expr_mul(e->x, info->group, elements));
  s.memory = stage_memory(e, &s, info, elements, reuse);
  return s;
}

uint32_t emit_stage_open(emit *e, const stage_info *info, uint32_t reuse) {
  const emit_stage_entry s = emit_stage_room(e, info, reuse);
  if (!IR_PUSH(e->arena, &e->stages, s)) e->failed = true;
  return s.memory;
}

void emit_stage_show(emit *e, const emit_stage_entry *room) {
  emit_stage_entry s = *room;
  s.depth = e->depth;
  s.through = 0;
  if (!IR_PUSH(e->arena, &e->stages, s)) e->failed = true;
}

/* What nobody computed meanwhile, as what reads it had been computed before, is no region: it is computed where it is asked for. */
void emit_stage_filled(emit *e, uint32_t node) {
  for (uint32_t i = e->stages.count; i-- > 0;) {
    emit_stage_entry *s = &e->stages.at[i];
    if (s->node != node) continue;
    if (s->through == STAGE_UNTOUCHED) s->node = UINT32_MAX;
    s->through = 0;
    return;
  }
}

typedef struct stage_sweep {
  const stage_info *info;
  map_access at;
  uint32_t rank, lanes, inner; /* axes; elements a vector; the axis along which vectors lie */
} stage_sweep;

static void sweep_inner(emit *e, stage_sweep *s, ir_expr lo, ir_expr hi, uint32_t lanes) {
  int64_t trips;
  if (expr_is_const(e->x, expr_sub(e->x, hi, lo), &trips) && trips == 0) return;
  const ir_expr v = emit_steps(e, "c", lo, hi, lanes);
  s->at.at[s->inner] = emit_lanes(e, expr_add(e->x, s->info->origin[s->inner], v), lanes);
  emit_value(e, s->info->node, &s->at);
  if (!emit_find_stage(e, s->info->node, &s->at)) e->failed = true; /* what is not proven inside would never be stored */
  emit_scalar_lanes(e);
  emit_loop_end(e, v, 0, NULL, NULL);
}

/* Where it is not proven that whole vectors end within the region (quotients of quotients of an open extent, a border as long as the place of a tap), element
   by element. What whole vectors leave over of a work-item's own room is one more vector, that begins before it. */
static void sweep_vectors(emit *e, stage_sweep *s, ir_expr lo, ir_expr hi) {
  ir_expr whole = expr_sub(e->x, hi, expr_mod(e->x, expr_sub(e->x, hi, lo), s->lanes));
  if (!expr_proves_le(e->x, 0, whole) || !expr_proves_le(e->x, whole, s->info->extent[s->inner])) whole = lo;
  sweep_inner(e, s, lo, whole, s->lanes);
  const ir_expr back = expr_sub(e->x, hi, s->lanes);
  const bool again = whole != lo && whole != hi && s->info->storage == STAGE_WORKSPACE && expr_proves_le(e->x, lo, back);
  if (again) sweep_inner(e, s, back, hi, s->lanes);
  else sweep_inner(e, s, whole, hi, 1);
}

/* A padded row: border, interior, border, so that the interior needs no test. */
static void sweep_columns(emit *e, stage_sweep *s) {
  expr_pool *x = e->x;
  const uint32_t inner_axis = s->inner, node = s->info->node;
  const ir_expr extent = s->info->extent[inner_axis], origin = s->info->origin[inner_axis];
  uint32_t count;
  const ir_expr *low = ir_at(e->g, node)->op == IR_OP_pad ? ir_attr_ints(e->g, node, IR_ATTR_low, &count) : NULL;
  if (!low) {
    sweep_vectors(e, s, 0, extent);
    return;
  }
  const ir_expr inner = ir_at(e->g, ir_arg(e->g, node, 0))->type.dims[inner_axis];
  const ir_expr first = expr_max(x, 0, expr_sub(x, low[inner_axis], origin)); /* of the region */
  const ir_expr end = expr_min(x, extent, expr_sub(x, expr_add(x, low[inner_axis], inner), origin));
  if (!expr_proves_le(x, 0, first) || !expr_proves_le(x, first, end)) {
    sweep_vectors(e, s, 0, extent);
    return;
  }
  if (first != 0) sweep_inner(e, s, 0, first, 1);
  sweep_vectors(e, s, first, end);
  if (end != extent) sweep_inner(e, s, end, extent, 1);
}

static void sweep_axis(emit *e, stage_sweep *s, uint32_t axis) {
  if (axis == s->rank) {
    sweep_columns(e, s);
    return;
  }
  if (axis == s->inner) {
    sweep_axis(e, s, axis + 1);
    return;
  }
  int64_t extent;
  if (expr_is_const(e->x, s->info->extent[axis], &extent) && extent == 1) {
    s->at.at[axis] = s->info->origin[axis];
    sweep_axis(e, s, axis + 1);
    return;
  }
  const ir_expr v = emit_steps(e, "r", 0, s->info->extent[axis], 1);
  s->at.at[axis] = expr_add(e->x, s->info->origin[axis], v);
  sweep_axis(e, s, axis + 1);
  emit_loop_end(e, v, 0, NULL, NULL);
}

/* Step `reach` of the network: lanes whose bit `reach` differs change places between rows i and i + reach. */
static void exchange(emit *e, uint32_t *rows, uint32_t width, uint32_t reach) {
  for (uint32_t i = 0; i < width; i++) {
    if (i & reach) continue;
    uint8_t low[16], high[16];
    for (uint32_t l = 0; l < width; l++) {
      const bool second = (l & reach) != 0;
      low[l] = (uint8_t)(second ? width + l - reach : l);
      high[l] = (uint8_t)(second ? width + l : l + reach);
    }
    const uint32_t a = rows[i], b = rows[i + reach];
    rows[i] = kir_shuffle(e->k, a, b, width, low);
    rows[i + reach] = kir_shuffle(e->k, a, b, width, high);
  }
}

void emit_turn(emit *e, uint32_t *rows, uint32_t width) {
  for (uint32_t reach = 1; reach < width; reach *= 2) exchange(e, rows, width, reach);
}

/* ---- by blocks ---- */
typedef struct stage_blocks {
  const stage_info *info;
  uint32_t rank, from, to, width; /* axes; the axis that vectors are made along, and stored along */
  map_access at;
  emit_stage_entry room;
} stage_blocks;

/* One block: rows as they lie, turned, and stored. */
static void turn_block(emit *e, stage_blocks *b, ir_expr from, ir_expr to) {
  uint32_t rows[WIDEST];
  expr_pool *x = e->x;
  const ir_expr along = emit_lanes(e, from, b->width);
  for (uint32_t i = 0; i < b->width && !e->failed; i++) {
    b->at.at[b->from] = along;
    b->at.at[b->to] = expr_add(x, to, i);
    rows[i] = kir_splat(e->k, emit_value(e, b->info->node, &b->at), b->width); /* a border's rows are the same in all lanes */
  }
  emit_scalar_lanes(e);
  if (e->failed || e->k->failed) return;
  emit_turn(e, rows, b->width);
  b->at.at[b->to] = emit_lanes(e, to, b->width);
  for (uint32_t i = 0; i < b->width; i++) {
    b->at.at[b->from] = expr_add(x, from, i);
    emit_stage_store(e, &b->room, &b->at, rows[i]);
  }
  emit_scalar_lanes(e);
}

/* Loops over the axes from the `number`-th of the order on, the axis of the vectors last. */
static void turn_axes(emit *e, stage_blocks *b, uint32_t number) {
  const bool last = number == b->rank;
  const uint32_t axis = last ? b->from : b->info->order[number];
  const ir_expr extent = b->info->extent[axis], origin = b->info->origin[axis];
  const bool block = last || axis == b->to;
  if (!last && (axis == b->from || extent == 1)) {
    b->at.at[axis] = origin;
    turn_axes(e, b, number + 1);
    return;
  }
  const ir_expr v = emit_steps(e, "r", 0, extent, block ? b->width : 1);
  b->at.at[axis] = expr_add(e->x, origin, v);
  if (last) turn_block(e, b, b->at.at[b->from], b->at.at[b->to]);
  else turn_axes(e, b, number + 1);
  emit_loop_end(e, v, 0, NULL, NULL);
}

uint32_t emit_stage_turned(emit *e, const stage_info *info, uint32_t from, uint32_t width, uint32_t reuse) {
  stage_blocks b = {
      .info = info, .room = emit_stage_room(e, info, reuse), .rank = ir_at(e->g, info->node)->type.rank, .from = from, .width = width};
  b.to = info->order[b.rank - 1];
  b.at.rank = b.rank;
  turn_axes(e, &b, 0);
  emit_stage_show(e, &b.room);
  return b.room.memory;
}

static bool is_whole(const emit *e, ir_expr extent, uint32_t width) {
  int64_t literal;
  return expr_is_const(e->x, extent, &literal) && literal % width == 0;
}

/* Whether the node is a buffer behind views that lies along its last axis. */
typedef struct stage_probe {
  const emit *e;
  uint32_t along; /* number of the variable that goes along the axis */
  bool fits;
} stage_probe;

static void probe_load(void *user, const fusion_load *load) {
  stage_probe *p = user;
  int64_t step;
  ir_expr rest;
  const ir_expr offset = fusion_stored_offset(p->e->c, load->node, load->access);
  p->fits &= expr_split_affine(p->e->x, offset, p->along, &step, &rest) && step == 1;
}

static bool lies_along(emit *e, const stage_info *info, uint32_t axis) {
  if (fusion_group_has(e->group, fusion_through_views(e->g, info->node)))
    return false; /* what is computed may be dear in blocks: many values live at once */
  const ir_expr v = expr_var_add(e->x, "along", 0, info->extent[axis], 1);
  stage_probe p = {.e = e, .along = emit_var_number(e->x, v), .fits = true};
  map_access at = {.rank = ir_at(e->g, info->node)->type.rank};
  memcpy(at.at, info->origin, sizeof at.at);
  at.at[axis] = expr_add(e->x, info->origin[axis], v);
  return fusion_walk_loads(e->c, e->group, info->node, &at, probe_load, &p) && p.fits;
}

/* Vectors along the node's last axis would be stored element by element, and blocks of them need not be. */
static bool goes_by_blocks(emit *e, const stage_info *info, uint32_t lanes) {
  const uint32_t last = ir_at(e->g, info->node)->type.rank - 1u;
  if (!info->ordered || info->along_stored || lanes < 4 || lanes > WIDEST || (lanes & (lanes - 1)) || info->ring_axis >= 0) return false;
  return info->order[last] != last && is_whole(e, info->extent[last], lanes) && is_whole(e, info->extent[info->order[last]], lanes) &&
         lies_along(e, info, last);
}

uint32_t emit_stage(emit *e, const stage_info *info, uint32_t lanes, uint32_t reuse) {
  if (goes_by_blocks(e, info, lanes)) return emit_stage_turned(e, info, ir_at(e->g, info->node)->type.rank - 1u, lanes, reuse);
  const uint32_t memory = emit_stage_open(e, info, reuse);
  stage_sweep s = {.info = info, .rank = ir_at(e->g, info->node)->type.rank, .lanes = lanes};
  s.at.rank = s.rank;
  s.inner = info->along_stored ? info->order[s.rank - 1] : s.rank - 1;
  sweep_axis(e, &s, 0);
  emit_stage_filled(e, info->node);
  return memory;
}
