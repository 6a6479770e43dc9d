/* From an operand to its panels: loaded into registers and stored when the step at hand is multiplied, or, where the value is nothing but elements of memory
   as they lie there, copied asynchronously, which takes no registers and can be as many steps ahead as there are buffers. */
#include "fusion/contract_local.h"

typedef struct local_place { /* of one fetch in the panel: both count units along the axis in which vectors run */
  ir_expr own, term;
} local_place;

/* Where neighbours along the axis lie a few elements apart (strides of two) and terms beside each other, a subgroup's items have eight of these by four
   of those: taps of neighbours are the same few sectors, of which each is asked for once. */
static local_place place_in_patch(expr_pool *x, ir_expr number, uint32_t step) {
  enum { TERMS = 4, PATCH = LOCAL_PATCH * TERMS };
  const ir_expr patch = expr_div(x, number, PATCH), within = expr_mod(x, number, PATCH), down = (ir_expr)step / TERMS;
  return (local_place){expr_add(x, expr_mul(x, expr_div(x, patch, down), LOCAL_PATCH), expr_mod(x, within, LOCAL_PATCH)),
                       expr_add(x, expr_mul(x, expr_mod(x, patch, down), TERMS), expr_div(x, within, LOCAL_PATCH))};
}

static local_place place_of(const contract_local *l, const local_panel *p, uint32_t number) {
  expr_pool *x = l->t->e->x;
  const uint32_t tile = p->columns ? l->shape.columns : l->shape.rows, inner = (p->by_rows ? l->step : tile) / p->unit;
  const ir_expr at = expr_add(x, l->item, expr_int(x, (int64_t)number * l->items));
  if (p->patches) return place_in_patch(x, at, l->step);
  const fragment_place spread = fragment_spread(x, at, inner, l->fragments ? p->unit * ir_dtypes[l->element].bytes : 0);
  return p->by_rows ? (local_place){spread.row, spread.vector} : (local_place){spread.vector, spread.row};
}

/* ---- loading ---- */

/* Have all terms of a step the same place along all labels but the last? Then that is found once for all of them, as long as nothing hides the step in it. */
static bool same_outer(const contract_local *l) {
  const local_axis *a = &l->terms;
  return a->count > 1 && expr_multiple_of(l->t->e->x, a->dims[a->count - 1]) % l->step == 0;
}

/* The value, in its own type. */
static uint32_t fetch(contract_local *l, const local_panel *p, uint32_t number, ir_expr step, uint32_t lane_var, ir_expr lane) {
  contraction *t = l->t;
  emit *e = t->e;
  expr_pool *x = e->x;
  const local_axis *own = p->columns ? &l->columns : &l->rows;
  const local_place at = place_of(l, p, number);
  const uint32_t own_unit = p->by_rows ? 1 : p->unit, term_unit = p->by_rows ? p->unit : 1;
  const uint32_t tile = p->columns ? l->shape.columns : l->shape.rows;
  const ir_expr first = expr_mul(x, p->columns ? l->column_tile : l->row_tile, (ir_expr)(tile / own_unit));
  const ir_expr term = expr_add(x, expr_mul(x, step, (ir_expr)(l->step / term_unit)), at.term);
  contract_place_axis(l, own, emit_held_below(e, "f", expr_add(x, first, at.own), expr_div(x, own->extent, own_unit)), own_unit, lane);
  const ir_expr terms = expr_div(x, l->terms.extent, term_unit);
  contract_place_axis(l, &l->terms, same_outer(l) && expr_proves_lt(x, term, terms) ? term : emit_held_below(e, "k", term, terms),
                      term_unit, lane);
  if (p->unit > 1) emit_use_lanes(e, lane_var, p->unit);
  const map_access a = contract_operand_at(t, p->operand);
  e->offsets = true; /* terms of one tap */
  uint32_t value = emit_value(e, p->node, &a);
  e->offsets = false;
  emit_scalar_lanes(e);
  const bool zero = l->padded && (!p->columns || ir_dtypes[l->element].is_float); /* 0 times what is no number is none */
  return zero ? emit_zero_behind(e, value, term, terms) : value;
}

static void fetch_panel(contract_local *l, local_panel *p, ir_expr step) {
  emit *e = l->t->e;
  const ir_expr lane = emit_lanes(e, 0, p->unit);
  const uint32_t lane_var = e->lane_var;
  emit_scalar_lanes(e);
  for (uint32_t n = 0; n < p->count; n++) p->fetched[n] = fetch(l, p, n, step, lane_var, lane);
}

static uint32_t place_in(contract_local *l, const local_panel *p, uint32_t number, ir_expr buffer) {
  emit *e = l->t->e;
  expr_pool *x = e->x;
  const local_place at = place_of(l, p, number);
  const ir_expr own = expr_mul(x, at.own, p->by_rows ? 1 : p->unit), term = expr_mul(x, at.term, p->by_rows ? p->unit : 1);
  return emit_expr(e, contract_local_element(l, p, buffer, own, term));
}

static void store(contract_local *l, const local_panel *p, uint32_t number, ir_expr buffer) {
  emit *e = l->t->e;
  const int32_t base = contract_panel_base(l);
  uint32_t value = p->fetched[number];
  if (!value) return; /* what failed is known */
  const kir_type type = emit_value_type(e, value);
  if (type.base != base) value = kir_cast(e->k, kir_t(base, type.lanes), value);
  value = kir_splat(e->k, value, p->unit);
  const uint32_t index = place_in(l, p, number, buffer), id = kir_store(e->k, p->memory, 1, &index, value);
  if (!e->k->failed) kir_at(e->k, id)->align = (uint16_t)(ir_dtypes[base].bytes * p->unit);
}

/* ---- copying ---- */

static kir_type panel_type(const contract_local *l, const local_panel *p) { return kir_t(contract_panel_base(l), (uint8_t)p->unit); }

static bool is_copied(const contract_local *l, const local_panel *p) {
  emit_copied from;
  if (!emit_can_copy(l->t->c->options, panel_type(l, p))) return false;
  for (uint32_t n = 0; n < p->count; n++)
    if (!emit_find_copied(l->t->e, p->fetched[n], panel_type(l, p), l->t->type.base, &from)) return false;
  return true;
}

/* What was fetched for a step, into the buffer. A value that is computed for once, at an edge, is stored at once: nobody reads the buffer until the barrier. */
static void copy_panel(contract_local *l, const local_panel *p, ir_expr buffer) {
  emit *e = l->t->e;
  for (uint32_t n = 0; n < p->count; n++) {
    emit_copied from;
    if (emit_find_copied(e, p->fetched[n], panel_type(l, p), l->t->type.base, &from))
      emit_copy(e, &from, p->memory, place_in(l, p, n, buffer));
    else store(l, p, n, buffer);
  }
}

/* ---- a step ---- */

/* Begins to copy step `number` of this part, if there is one; the set is closed in any case, so that a wait can count them. */
static void copy_step(contract_local *l, ir_expr number) {
  emit *e = l->t->e;
  expr_pool *x = e->x;
  const bool always = expr_proves_lt(x, number, l->steps);
  if (!always) {
    emit_if_below(e, number, l->steps);
    number = emit_var_for(e, "ahead", emit_expr(e, number), 0, l->steps);
  }
  for (uint32_t i = 0; i < l->panel_count; i++)
    if (l->panel[i].copied) {
      fetch_panel(l, &l->panel[i], expr_add(x, l->first, number));
      copy_panel(l, &l->panel[i], expr_mod(x, number, (ir_expr)l->buffers));
    }
  if (!always) emit_if_end(e);
  emit_copy_close(e);
}

void contract_fetch_step(contract_local *l, ir_expr at) {
  expr_pool *x = l->t->e->x;
  for (uint32_t i = 0; i < l->panel_count; i++)
    if (!l->panel[i].copied) fetch_panel(l, &l->panel[i], expr_add(x, l->first, expr_add(x, at, 1)));
  if (l->copies) copy_step(l, expr_add(x, at, (ir_expr)l->buffers - 1));
}

void contract_keep_step(contract_local *l, ir_expr number) {
  emit *e = l->t->e;
  const ir_expr buffer = expr_mod(e->x, number, (ir_expr)l->buffers);
  for (uint32_t i = 0; i < l->panel_count; i++)
    for (uint32_t n = 0; n < l->panel[i].count && !l->panel[i].copied; n++) store(l, &l->panel[i], n, buffer);
  if (l->copies) emit_copy_wait(e, (int64_t)l->buffers - 2);
  kir_barrier(e->k, KIR_SYNC_LOCAL);
}

void contract_fetch_first(contract_local *l) {
  emit *e = l->t->e;
  for (uint32_t i = 0; i < l->panel_count; i++) {
    local_panel *p = &l->panel[i];
    fetch_panel(l, p, l->first);
    p->copied = is_copied(l, p);
    if (p->copied) copy_panel(l, p, 0);
    l->copies |= p->copied;
  }
  if (l->copies) {
    emit_copy_close(e);
    l->buffers = contract_local_buffers(l);
  }
  for (uint32_t i = 0; i < l->panel_count && !e->k->failed; i++)
    e->k->memories.at[l->panel[i].memory].dims[0] = (uint64_t)l->buffers * l->panel[i].size;
  for (uint32_t ahead = 1; ahead + 1 < l->buffers; ahead++) copy_step(l, (ir_expr)ahead);
  contract_keep_step(l, 0);
}
