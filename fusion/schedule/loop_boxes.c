/* Where the conditions of an elementwise kernel's loads change: the seams of a concatenation, the borders of a pad. Between two of them
   every condition is decided, so that only what one part needs is computed there, and vectors stay whole where they were put together lane
   by lane (measured on PoCL: a rotary embedding 2.4 times as long; parts of three functions below each other three times the
   multiply-adds).
   In: the space of the hero. Out: boxes of it, between the seams along its axes, and cuts of the rows of a box. What is not found stays
   conditional, and right. */
#include "fusion/schedule/loop_private.h"
#include "fusion/emit_private.h"

typedef struct seam_search {
  const fusion_context *c;
  const schedule_space *space;
  loop_seams *seams; /* of each axis */
  bool taps;         /* along the last one also where the taps of a reduced window begin and end to lie inside, all of them */
  uint32_t vars[SNT_MAX_RANK];
} seam_search;

/* In order; seams that cannot be told apart whatever the symbols are, or may lie at an end, are none. */
static void add_seam(const seam_search *s, uint32_t axis, ir_expr at) {
  expr_pool *x = s->c->graph->pool;
  loop_seams *seams = &s->seams[axis];
  uint32_t i = 0;
  if (!expr_proves_lt(x, 0, at) || !expr_proves_lt(x, at, s->space->dims[axis]) || seams->count > LOOP_MOST_SEAMS) return;
  while (i < seams->count && expr_proves_lt(x, seams->at[i], at)) i++;
  if (i < seams->count && !expr_proves_lt(x, at, seams->at[i])) return;
  if (seams->count++ == LOOP_MOST_SEAMS) return; /* too many: counted, and none is made */
  for (uint32_t k = seams->count - 1; k > i; k--) seams->at[k] = seams->at[k - 1];
  seams->at[i] = at;
}

/* lo <= place + shift < hi changes at lo - shift and at hi - shift: for all taps, at the least and the most of it. */
static void add_condition(const seam_search *s, const map_condition *condition) {
  enum { MOST_TAPS = 64 };
  expr_pool *x = s->c->graph->pool;
  for (uint32_t axis = 0; axis < s->space->rank; axis++) {
    int64_t coef;
    ir_expr shift;
    if (s->vars[axis] == UINT32_MAX || !expr_split_affine(x, condition->value, s->vars[axis], &coef, &shift) || coef != 1) continue;
    if (emit_has_vars(x, condition->lo) || emit_has_vars(x, condition->hi)) continue;
    ir_expr least = shift, most = shift;
    if (emit_has_vars(x, shift)) {
      int64_t low, high;
      expr_bounds(x, shift, &low, &high);
      if (!s->taps || axis + 1 < s->space->rank || high - low >= MOST_TAPS) continue;
      least = expr_int(x, low), most = expr_int(x, high);
    }
    add_seam(s, axis, expr_sub(x, condition->lo, least));
    add_seam(s, axis, expr_sub(x, condition->hi, most));
  }
}

static void look_at(void *user, const fusion_load *load) {
  const seam_search *s = user;
  if (map_never_holds(s->c->graph->pool, load->access, 0)) return;
  for (uint32_t i = 0; i < load->access->condition_count; i++) add_condition(s, &load->access->conditions[i]);
}

/* Places in the space of all outputs that have its shape. */
static void find_seams(const fusion_context *c, const fusion_group *group, const schedule_space *space, bool taps, loop_seams *seams) {
  expr_pool *x = c->graph->pool;
  seam_search s = {.c = c, .space = space, .seams = seams, .taps = taps};
  map_access at = {.rank = space->rank};
  memset(seams, 0, SNT_MAX_RANK * sizeof *seams);
  for (uint32_t d = 0; d < space->rank; d++) {
    const ir_expr var = expr_var_add(x, "at", 0, space->dims[d], 1);
    s.vars[d] = emit_var_number(x, var);
    at.at[d] = expr_add(x, space->origin[d], var);
  }
  bool good = true;
  for (uint32_t i = 0; i < group->output_count && good; i++)
    if (ir_same_shape(&ir_at(c->graph, group->outputs[i])->type, &ir_at(c->graph, group->hero)->type))
      good = fusion_walk_loads(c, group, group->outputs[i], &at, look_at, &s);
  for (uint32_t d = 0; d < space->rank; d++)
    if (!good || seams[d].count > LOOP_MOST_SEAMS) seams[d].count = 0;
}

void loop_find_cuts(const fusion_context *c, const fusion_group *group, loop_box *box) {
  enum { MOST_CUTS = 6 };
  const schedule_space *space = &box->space;
  loop_seams seams[SNT_MAX_RANK];
  box->cuts.count = 0;
  if (space->split + 1 != space->rank) return;
  find_seams(c, group, space, true, seams);
  if (seams[space->split].count <= MOST_CUTS) box->cuts = seams[space->split];
}

/* Where rows are short and many, a row's parts are computed one after another; on lanes a part of a row has groups of its own. */
static bool cuts_rows(const fusion_context *c, const schedule_space *space, const loop_seams *seams) {
  enum { SHORT_PART = 128 };
  const expr_pool *x = c->graph->pool;
  const uint32_t last = space->rank - 1;
  const double rows = (double)schedule_hint(x, schedule_product(c->graph->pool, last, space->dims));
  int64_t from = 0;
  if (schedule_is_explicit(c)) return schedule_hint(x, space->dims[last]) > LOOP_SHORT_ROW || rows < schedule_least_parts(c);
  for (uint32_t i = 0; i <= seams->count; i++) {
    const int64_t to = schedule_hint(x, i < seams->count ? seams->at[i] : space->dims[last]);
    if (to - from < SHORT_PART) return false;
    from = to;
  }
  return true;
}

static bool same_shapes(const fusion_context *c, const fusion_group *group) {
  bool same = true;
  for (uint32_t i = 0; i < group->output_count; i++)
    same &= ir_same_shape(&ir_at(c->graph, group->outputs[i])->type, &ir_at(c->graph, group->hero)->type);
  return same;
}

static void cut_box(fusion_context *c, const loop_seams *seams, uint32_t number, schedule_space *box) {
  expr_pool *x = c->graph->pool;
  for (uint32_t d = box->rank; d-- > 0; number /= seams[d].count + 1) {
    const uint32_t i = number % (seams[d].count + 1);
    const ir_expr end = i < seams[d].count ? seams[d].at[i] : box->dims[d];
    box->origin[d] = i ? seams[d].at[i - 1] : 0;
    box->dims[d] = expr_sub(x, end, box->origin[d]);
  }
}

loop_box *loop_find_boxes(fusion_context *c, const fusion_group *group, uint32_t *count) {
  loop_seams seams[SNT_MAX_RANK];
  schedule_space whole;
  *count = 1;
  schedule_space_init(c, &whole, &ir_at(c->graph, group->hero)->type, 0);
  find_seams(c, group, &whole, false, seams);
  const bool apart = !c->options->profile->both_sides && same_shapes(c, group);
  for (uint32_t d = 0; d < whole.rank; d++) {
    const bool boxes = apart && (d + 1 < whole.rank || cuts_rows(c, &whole, &seams[d]));
    if (!boxes || *count * (seams[d].count + 1) > LOOP_MOST_BOXES) seams[d].count = 0;
    *count *= seams[d].count + 1;
  }
  loop_box *list = IR_NEW_ARRAY(c->arena, loop_box, *count);
  for (uint32_t i = 0; list && i < *count; i++) {
    list[i].space = whole;
    cut_box(c, seams, i, &list[i].space);
    schedule_pick_split(c, group, group->hero, &list[i].space);
  }
  return list;
}
