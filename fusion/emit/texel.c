/* Reads of memories of four-element texels. In: an element offset, with or without the lane axis. Out: a scalar or a vector.
   A vector along the lanes is put together from the whole texels that hold it, whatever its alignment: an unknown one is a shift by two
   selects an element, so that neighbouring vectors (the taps of a stencil) share their texels and most of the selects. Where the device
   gives zero outside the buffer nothing is guarded: whoever made the condition selects its own value afterwards. Elsewhere the last texel
   is read in place of any behind it, by vectors that begin within a texel (the next one may be behind the last) and where `near` is set. */
#include "fusion/emit_private.h"

static bool is_harmless(const emit *e) { return e->c->options->profile->caps.oob_zero; }
bool emit_texel_is_safe(const emit *e) { return e->near || is_harmless(e); }

static uint32_t u32_const(emit *e, int64_t value) { return kir_const_int(e->k, kir_t(SNT_U32, 1), value); }

static uint32_t guarded(emit *e, uint32_t index, uint32_t count, const map_condition *conditions) {
  if (!count || emit_texel_is_safe(e)) return index;
  return kir_3(e->k, KIR_select, emit_conditions(e, count, conditions), index, u32_const(e, 0));
}

/* `number` of what holds element `offset`, so many side by side, or the last there is, of none the first. A number that went below zero is a large one. */
uint32_t emit_near(emit *e, uint32_t memory, uint32_t number, ir_expr offset, uint32_t side_by_side) {
  const kir_memory *m = &e->k->memories.at[memory];
  const plan_buffer *b = &e->c->plan->buffers.at[e->slots.at[m->slot]];
  const ir_expr own = expr_div(e->x, emit_buffer_elements(e, b), ir_dtypes[m->type.base].bytes / ir_dtypes[b->dtype].bytes);
  const ir_expr side = (ir_expr)side_by_side, elements = expr_mul(e->x, expr_ceil_div(e->x, own, side), side);
  int64_t low, high;
  expr_bounds(e->x, offset, &low, &high);
  if (low >= 0 && expr_proves_lt(e->x, offset, elements)) return number;
  const ir_expr last = expr_max(e->x, 0, expr_sub(e->x, expr_div(e->x, elements, side), 1));
  return kir_2(e->k, KIR_min, number, emit_expr(e, last));
}

static uint32_t load_near(emit *e, uint32_t memory, uint32_t texel, ir_expr offset) {
  if (!is_harmless(e)) texel = emit_near(e, memory, texel, offset, 4);
  return kir_load(e->k, memory, 4, 1, &texel);
}

/* One element: which of the four is a literal where the offset proves it. */
uint32_t emit_texel_element(emit *e, uint32_t memory, ir_expr offset, uint32_t count, const map_condition *conditions) {
  const ir_expr which = expr_mod(e->x, offset, 4);
  int64_t literal;
  uint32_t texel, lane;
  if (expr_is_const(e->x, which, &literal)) {
    texel = guarded(e, emit_expr(e, expr_div(e->x, expr_sub(e->x, offset, which), 4)), count, conditions);
    lane = u32_const(e, literal);
  } else {
    const uint32_t index = guarded(e, emit_expr(e, offset), count, conditions);
    texel = kir_2(e->k, KIR_shr, index, u32_const(e, 2));
    lane = kir_2(e->k, KIR_and, index, u32_const(e, 3));
  }
  const uint32_t value = e->near ? load_near(e, memory, texel, offset) : kir_load(e->k, memory, 4, 1, &texel);
  return kir_2(e->k, KIR_extract, value, lane);
}

/* offset = aligned + loose + 4 * quads + odd: `aligned` is a proven multiple of four, `odd` in [0, 4). */
typedef struct texel_place {
  ir_expr aligned, loose;
  int64_t quads, odd;
} texel_place;

static void add_term(const emit *e, texel_place *p, ir_expr term) {
  ir_expr *to = expr_multiple_of(e->x, term) % 4 == 0 ? &p->aligned : &p->loose;
  *to = expr_add(e->x, *to, term);
}

static texel_place find_place(const emit *e, ir_expr offset) {
  texel_place p = {0};
  int64_t constant = 0;
  if (!expr_is_const(e->x, offset, &constant)) {
    const expr_node n = e->x->nodes.at[IR_EXPR_NODE(offset)];
    if (n.kind != EXPR_SUM) add_term(e, &p, offset);
    else constant = n.value;
    for (uint32_t i = 0; n.kind == EXPR_SUM && i < n.count; i++)
      add_term(e, &p, expr_mul(e->x, e->x->terms.at[n.first + i], expr_int(e->x, e->x->coefs.at[n.first + i])));
  }
  p.odd = constant & 3;
  p.quads = (constant - p.odd) / 4;
  return p;
}

/* Texel number `number` from the place on; the loose part moves it by whole texels, also backwards. */
static uint32_t load_texel(emit *e, uint32_t memory, const texel_place *p, int64_t number) {
  uint32_t index = emit_expr(e, expr_add(e->x, expr_div(e->x, p->aligned, 4), expr_int(e->x, p->quads + number)));
  if (p->loose) {
    const uint32_t loose = kir_bitcast(e->k, kir_t(SNT_I32, 1), emit_expr(e, p->loose));
    const uint32_t whole = kir_2(e->k, KIR_shr, loose, kir_const_int(e->k, kir_t(SNT_I32, 1), 2));
    index = kir_2(e->k, KIR_add, index, kir_bitcast(e->k, kir_t(SNT_U32, 1), whole));
  }
  const ir_expr first = expr_add(e->x, p->aligned, p->loose);
  return load_near(e, memory, index, expr_add(e->x, first, expr_int(e->x, 4 * (p->quads + number))));
}

static uint32_t shift_bit(emit *e, const texel_place *p, int64_t bit) {
  const uint32_t set = kir_2(e->k, KIR_and, emit_expr(e, p->loose), u32_const(e, bit));
  return kir_2(e->k, KIR_ne, set, u32_const(e, 0));
}

/* x[i] = bit ? x[i + by] : x[i] for the first `count` elements. */
static void shift_down(emit *e, uint32_t *x, uint32_t count, uint32_t by, uint32_t bit) {
  for (uint32_t i = 0; i < count; i++) x[i] = kir_3(e->k, KIR_select, bit, x[i + by], x[i]);
}

static uint32_t load_quad(emit *e, uint32_t memory, texel_place p) {
  uint32_t x[12];
  if (!p.loose && !p.odd) return load_texel(e, memory, &p, 0);
  const uint32_t last = (uint32_t)p.odd + 3 + (p.loose ? 3 : 0);
  for (uint32_t i = 0; i <= last; i++) x[i] = kir_lane(e->k, load_texel(e, memory, &p, i / 4), i % 4);
  if (p.loose) {
    shift_down(e, x, last - 1, 2, shift_bit(e, &p, 2));
    shift_down(e, x, last - 2, 1, shift_bit(e, &p, 1));
  }
  return kir_vector(e->k, e->k->memories.at[memory].type.base, 4, x + p.odd);
}

/* A vector with unit stride along the lanes, whose number is a multiple of four, from `rest` on. Guarded or safe by the caller. */
uint32_t emit_texel_vector(emit *e, uint32_t memory, ir_expr rest) {
  uint32_t parts[16];
  const texel_place first = find_place(e, rest);
  if (e->lanes == 4) return load_quad(e, memory, first);
  for (uint32_t i = 0; i < e->lanes / 4; i++) {
    texel_place p = first;
    p.quads += i;
    const uint32_t quad = load_quad(e, memory, p);
    for (uint32_t j = 0; j < 4; j++) parts[4 * i + j] = kir_lane(e->k, quad, j);
  }
  return kir_vector(e->k, e->k->memories.at[memory].type.base, e->lanes, parts);
}
