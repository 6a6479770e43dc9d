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
  int64_t width, across; /* elements and vectors of a row */
  uint32_t unit, count;  /* elements of a vector; vectors of an item */
} panel;
static panel panel_of(const local_tile *s, attend_operand which, uint32_t unit) {
  const int64_t rows = which == ATTEND_QUERIES ? s->queries : s->keys, width = which == ATTEND_VALUES ? s->depth : s->inner;
  const attend_array *array = which == ATTEND_QUERIES ? &s->query : which == ATTEND_KEYS ? &s->panel : &s->values;
  return (panel){which, array, width, width / unit, unit, (uint32_t)(rows * (width / unit) / ITEMS)};
}
static ir_expr vector_row(const local_tile *s, const panel *p, uint32_t i) {
  expr_pool *x = s->t->e->x;
  return expr_div(x, expr_add(x, s->item, expr_int(x, (int64_t)i * ITEMS)), p->across);
}
static ir_expr vector_column(const local_tile *s, const panel *p, uint32_t i) {
  expr_pool *x = s->t->e->x;
  return expr_mul(x, expr_mod(x, expr_add(x, s->item, expr_int(x, (int64_t)i * ITEMS)), p->across), p->unit);
}
static uint32_t fetch_own(local_tile *s, const panel *p, uint32_t i) {
  return fetch_vector(s, p->which, vector_row(s, p, i), vector_column(s, p, i), p->unit);
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
  return emit_can_copy(s->t->c->options, kir_t(s->element, (uint8_t)unit)) && p.width % unit == 0 && p.across * rows % ITEMS == 0 &&
         find_copied(s, fetch_own(s, &p, 0), &from);
}

/* All loads of the item, then all its stores; or its copies. */
void attend_fill_panel(local_tile *s, attend_operand which) {
  enum { MOST = ATTEND_MOST_KEYS * ATTEND_MOST_WIDTH / VECTOR / ITEMS };
  emit *e = s->t->e;
  const panel p = panel_of(s, which, s->copied[which] ? copied_unit(s) : VECTOR);
  uint32_t values[MOST];
  for (uint32_t i = 0; i < p.count; i++) values[i] = fetch_own(s, &p, i);
  for (uint32_t i = 0; i < p.count; i++) {
    const ir_expr row = vector_row(s, &p, i), column = vector_column(s, &p, i);
    const int64_t pitch = attend_panel_pitch(s, p.width);
    emit_copied from;
    if (s->copied[which] && find_copied(s, values[i], &from)) {
      emit_copy(e, &from, p.array->memory, emit_expr(e, attend_cell(s, row, pitch, column)));
    } else {
      attend_store(s->t, p.array, attend_cell(s, row, pitch, emit_lanes(e, column, p.unit)), values[i]);
      emit_scalar_lanes(e);
    }
  }
  if (s->copied[which]) emit_copy_close(e);
}

/* What is under way to panels is there, for all. */
void attend_arrive(local_tile *s) {
  if (s->copied[ATTEND_QUERIES] || s->copied[ATTEND_KEYS] || s->copied[ATTEND_VALUES]) emit_copy_wait(s->t->e, 0);
  attend_barrier(s);
}
