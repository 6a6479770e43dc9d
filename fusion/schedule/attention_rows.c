/* Rows of an attention's operands for items whose reads are texels. Those that do not begin at whole texels, whatever the row, are copied
   to where they do, once, if many tiles read them: each of their reads would be two texels and a selection, or four. In: an attention whose
   blocks are settled. Out: a kernel a copy. */
#include "fusion/schedule/attention_items.h"

enum { TEXEL = 4, COPY_ITEMS = 64, LEAST_TILES = 4 /* that read an operand, for its rows to be copied */ };

static uint32_t operand_node(const attend *t, operand which) {
  return which == QUERIES ? attend_query_node(t) : which == KEYS ? attend_key_node(t) : attend_values_node(t);
}
static ir_expr operand_row(const attend *t, operand which) { return which == QUERIES ? t->now[t->a->row] : t->key; }

/* Element `at` of the operand's row at hand, as it is given. */
static map_access operand_place(attend *t, operand which, ir_expr at) {
  if (which == VALUES && t->a->depth >= 0) t->now[t->a->depth] = at;
  return which == QUERIES ? attend_query_place(t, at) : which == KEYS ? attend_key_place(t, at) : attend_values_place(t);
}

uint32_t attend_read_row(query *s, operand which, ir_expr at) {
  attend *t = s->t;
  const copied *copy = &s->copies[which];
  const map_access place = operand_place(t, which, at);
  if (!copy->made) return attend_f32(t, emit_value(t->e, operand_node(t, which), &place));
  expr_pool *x = t->e->x;
  const ir_expr row = expr_add(x, expr_mul(x, s->batch, copy->rows), operand_row(t, which));
  const attend_array array = {emit_bind(t->e, copy->scratch, KIR_READ), SNT_F32, 0};
  return attend_load(t, &array, expr_add(x, expr_mul(x, row, expr_int(x, copy->pitch)), at));
}

typedef struct probe {
  const fusion_context *c;
  uint32_t texel; /* the variable that counts them */
  bool apart;
} probe;
static void probe_load(void *user, const fusion_load *load) {
  probe *p = user;
  expr_pool *x = p->c->graph->pool;
  int64_t step;
  ir_expr rest;
  const ir_expr offset = fusion_stored_offset(p->c, load->node, load->access);
  p->apart |= !expr_split_affine(x, offset, p->texel, &step, &rest) || step != TEXEL || expr_multiple_of(x, rest) % TEXEL;
}

/* Does a vector of a row begin anywhere in a texel? Then each read is two and a selection, or four. Blocks of keys and queries begin where `step` says: what
   lies as far from a texel for all of them takes its elements out of two by literals. */
static bool lies_apart(const query *s, operand which, int64_t width) {
  attend at = *s->t;
  expr_pool *x = at.c->graph->pool;
  const ir_expr texel = expr_var_add(x, "t", 0, expr_int(x, width / TEXEL), 1);
  const int64_t share = (int64_t)s->items * s->queries, whole = expr_multiple_of(x, row_extent(s)) % share ? 1 : s->queries;
  for (uint32_t i = 0; i < at.a->label_count; i++)
    at.now[i] = expr_var_add(x, "i", 0, at.a->extent[i], (int32_t)i == at.a->row ? whole : 1);
  at.key = expr_var_add(x, "k", 0, at.a->keys, s->block);
  const map_access place = operand_place(&at, which, expr_mul(x, texel, TEXEL));
  probe p = {at.c, emit_var_number(x, texel), false};
  return !fusion_walk_loads(at.c, at.group, operand_node(&at, which), &place, probe_load, &p) || p.apart;
}

static int64_t operand_width(const query *s, operand which) { return which == VALUES ? s->depth : s->inner; }

/* `lanes` elements of the row at hand, to the row of that number. */
static void copy_elements(query *s, operand which, ir_expr number, ir_expr from, uint32_t lanes) {
  attend *t = s->t;
  emit *e = t->e;
  const copied *copy = &s->copies[which];
  const ir_expr at = emit_lanes(e, from, lanes), row = expr_mul(e->x, number, expr_int(e->x, copy->pitch));
  const map_access place = operand_place(t, which, at);
  const uint32_t value = attend_f32(t, emit_value(e, operand_node(t, which), &place));
  attend_store(t, &(attend_array){emit_bind(e, copy->scratch, KIR_WRITE), SNT_F32, 0}, expr_add(e->x, row, at), value);
  emit_scalar_lanes(e);
}

/* An item a row. */
static snt_result copy_rows(query *s, operand which) {
  attend *t = s->t;
  SNT_TRY(attend_begin(s->t, "attention_rows"));
  emit *e = t->e;
  expr_pool *x = e->x;
  const int64_t width = operand_width(s, which), whole = width / TEXEL * TEXEL;
  const ir_expr extent = s->copies[which].rows, rows = expr_mul(x, attend_batch(t), extent), groups = expr_ceil_div(x, rows, COPY_ITEMS);
  const ir_expr number = expr_add(x, expr_mul(x, emit_group(e, groups), COPY_ITEMS), emit_item(e, 0, COPY_ITEMS));
  t->groups = groups;
  emit_if_below(e, number, rows);
  const ir_expr row = emit_var_for(e, "row", emit_expr(e, number), 0, rows), own = expr_mod(x, row, extent);
  attend_set_batch(t, expr_div(x, row, extent));
  if (which == QUERIES) t->now[t->a->row] = own;
  else t->key = own;
  const ir_expr d = emit_steps(e, "d", 0, expr_int(x, whole), TEXEL);
  copy_elements(s, which, row, d, TEXEL);
  emit_loop_end(e, d, 0, NULL, NULL);
  for (int64_t rest = whole; rest < width; rest++) copy_elements(s, which, row, expr_int(x, rest), 1);
  emit_if_end(e);
  return emit_end(e, groups, 0, 0, NULL);
}

/* Not what several batches share: a copy would be one for each of them. */
static bool wants_copy(const query *s, operand which, ir_expr rows) {
  const ir_graph *g = s->t->c->graph;
  const ir_tensor *type = &ir_at(g, operand_node(s->t, which))->type;
  const int64_t width = operand_width(s, which), read_by = which == QUERIES ? s->block : LEAST_ITEMS * s->queries;
  const ir_expr times = which == QUERIES ? s->t->a->keys : row_extent(s);
  return width > TEXEL && schedule_hint(g->pool, times) >= LEAST_TILES * read_by &&
         schedule_product(g->pool, type->rank, type->dims) ==
             expr_mul(g->pool, expr_mul(g->pool, attend_batch(s->t), rows), expr_int(g->pool, width)) &&
         lies_apart(s, which, width);
}

snt_result attend_copy_rows(query *s) {
  expr_pool *x = s->t->c->graph->pool;
  for (operand which = QUERIES; which < OPERANDS && s->queries > 1; which++) {
    const ir_expr rows = which == QUERIES ? row_extent(s) : s->t->a->keys, own = expr_mul(x, attend_batch(s->t), rows);
    if (!s->t->spare || !wants_copy(s, which, rows)) continue;
    copied *copy = &s->copies[which];
    *copy = (copied){.rows = rows, .pitch = (operand_width(s, which) + TEXEL - 1) / TEXEL * TEXEL};
    copy->scratch = fusion_add_scratch(s->t->c, "rows", SNT_F32, expr_mul(x, own, expr_int(x, copy->pitch)));
    SNT_TRY(copy_rows(s, which));
    copy->made = true;
  }
  return attend_begin(s->t, "attention");
}
