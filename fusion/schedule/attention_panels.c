/* What an attention tile has of its operands in local memory: rows of queries, keys or values, through registers or, where they are nothing but elements
   of memory as they lie there, copied asynchronously. */
#include "fusion/schedule/attention_local.h"

enum { ITEMS = ATTEND_ITEMS, VECTOR = ATTEND_VECTOR, COPIED = 16 /* bytes that are copied at once */ };

/* So many neighbours along the inner axis, or the values' width, of row `row` of the operand's tile. */
static uint32_t fetch_vector(local_tile *s, attend_operand which, ir_expr row, ir_expr column, uint32_t unit) {
  attend *t = s->t;
  expr_pool *x = t->e->x;
  const ir_expr at = emit_lanes(t->e, column, unit);
  map_access where;
  uint32_t node;
  if (which == ATTEND_QUERIES) {
    attend_set_query(s, row);
    node = attend_query_node(t);
    where = attend_query_place(t, at);
  } else {
    t->key = expr_add(x, s->first, row);
    if (which == ATTEND_VALUES && t->a->depth >= 0) t->now[t->a->depth] = at;
    node = which == ATTEND_KEYS ? attend_key_node(t) : attend_values_node(t);
    where = which == ATTEND_KEYS ? attend_key_place(t, at) : attend_values_place(t);
  }
  const uint32_t value = attend_f32(t, emit_value(t->e, node, &where));
  emit_scalar_lanes(t->e);
  return value;
}

/* The vectors of a panel that an item has: neighbours in a row of the operand are neighbouring items. */
typedef struct panel {
  attend_operand which;
  const attend_array *array;
  int64_t width, own, across; /* elements of a row, those that the operand has; vectors of a row */
  uint32_t unit, count;       /* elements of a vector; vectors of an item */
} panel;
static panel panel_of(const local_tile *s, attend_operand which, uint32_t unit) {
  const bool values = which == ATTEND_VALUES;
  const int64_t rows = which == ATTEND_QUERIES ? s->queries : s->keys, width = values ? s->depth : s->inner;
  const attend_array *array = which == ATTEND_QUERIES ? &s->query : which == ATTEND_KEYS ? &s->panel : &s->values;
  const int64_t own = values ? s->own_depth : s->own_inner;
  if (own % unit) unit = 1;
  return (panel){which, array, width, own, width / unit, unit, (uint32_t)(rows * (width / unit) / ITEMS)};
}

static fragment_place place_of(const local_tile *s, const panel *p, uint32_t i) {
  const ir_expr number = expr_add(s->t->e->x, s->item, expr_int(s->t->e->x, (int64_t)i * ITEMS));
  return fragment_spread(s->t->e->x, number, p->across, p->unit * ir_dtypes[p->array->element].bytes);
}

static uint32_t fetch_own(local_tile *s, const panel *p, uint32_t i) {
  emit *e = s->t->e;
  const fragment_place at = place_of(s, p, i);
  const ir_expr end = p->own / p->unit, held = p->own == p->width ? at.vector : emit_held_below(e, "c", at.vector, end);
  const uint32_t value = fetch_vector(s, p->which, at.row, expr_mul(e->x, held, p->unit), p->unit);
  return emit_zero_behind(e, value, at.vector, end);
}

static uint32_t copied_unit(const local_tile *s) { return COPIED / ir_dtypes[s->element].bytes; }
static bool find_copied(const local_tile *s, uint32_t value, emit_copied *from) {
  return emit_find_copied(s->t->e, value, kir_t(s->element, (uint8_t)copied_unit(s)), SNT_F32, from);
}

/* Where values that come while scores are made have a panel of their own, and every item has as many vectors. */
bool attend_is_copied(local_tile *s, attend_operand which) {
  if (s->panels == 1) return false;
  const uint32_t unit = copied_unit(s), rows = which == ATTEND_QUERIES ? s->queries : s->keys;
  const panel p = panel_of(s, which, unit);
  emit_copied from;
  return emit_can_copy(s->t->c->options, kir_t(s->element, (uint8_t)unit)) && p.unit == unit && p.across * rows % ITEMS == 0 &&
         find_copied(s, fetch_own(s, &p, 0), &from);
}

/* Where it belongs: copied, if the panel is, or stored. */
static void keep_own(local_tile *s, const panel *p, uint32_t i, uint32_t value) {
  emit *e = s->t->e;
  const fragment_place at = place_of(s, p, i);
  const int64_t pitch = attend_panel_pitch(s, p->width);
  const ir_expr column = expr_mul(e->x, at.vector, p->unit);
  emit_copied from;
  if (s->copied[p->which] && find_copied(s, value, &from)) {
    emit_copy(e, &from, p->array->memory, emit_expr(e, attend_cell(s, at.row, pitch, column)));
  } else {
    attend_store(s->t, p->array, attend_cell(s, at.row, pitch, emit_lanes(e, column, p->unit)), value);
    emit_scalar_lanes(e);
  }
}

/* All loads of the item, then all its stores, as many as there are registers for; or its copies. */
void attend_fill_panel(local_tile *s, attend_operand which) {
  enum { MOST = ATTEND_MOST_KEYS * ATTEND_MOST_WIDTH / VECTOR / ITEMS, MOST_ELEMENTS = MOST / 2 /* one by one: an address each */ };
  emit *e = s->t->e;
  const panel p = panel_of(s, which, s->copied[which] ? copied_unit(s) : VECTOR);
  uint32_t values[MOST];
  const uint32_t most = p.unit > 1 ? MOST : MOST_ELEMENTS;
  for (uint32_t first = 0; first < p.count; first += most) {
    const uint32_t count = p.count - first < most ? p.count - first : most;
    for (uint32_t i = 0; i < count; i++) values[i] = fetch_own(s, &p, first + i);
    for (uint32_t i = 0; i < count; i++) keep_own(s, &p, first + i, values[i]);
  }
  if (s->copied[which]) emit_copy_close(e);
}

/* What is under way to panels is there, for all. */
void attend_arrive(local_tile *s) {
  if (s->copied[ATTEND_QUERIES] || s->copied[ATTEND_KEYS] || s->copied[ATTEND_VALUES]) emit_copy_wait(s->t->e, 0);
  attend_barrier(s);
}
