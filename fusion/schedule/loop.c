/* Kind `loop`: pointwise nodes with any movement, several outputs of one element count.
   Explicit classes: a group owns a share of the rows and columns and walks it in vectors. Lanes: an item owns a vector of four, or several side by side.
   Results between seams of what they read are boxes (schedule/loop_boxes.c), each with a share of the groups of its own. */
#include "fusion/schedule/loop_private.h"
#include "fusion/emit_private.h"
#include "fusion/image.h"
#include "fusion/schedules.h"

/* Where the element of the hero in that row and column lies of an output. One of another shape has it by the element's number (then there is one box), or, if
   it has more elements, as a state of which one row is set, where the way from the hero leads. */
static map_access place_of(emit *e, const loop_job *job, uint32_t node, ir_expr column) {
  const schedule_space *space = &job->box->space;
  const uint32_t hero = job->group->hero;
  const ir_tensor *t = &ir_at(e->g, node)->type;
  if (ir_same_shape(t, &ir_at(e->g, hero)->type)) return schedule_at(e->x, space, job->row, column);
  if (e->c->facts[node].count == e->c->facts[hero].count) {
    schedule_space own = *space;
    schedule_space_init(e->c, &own, t, 0);
    return schedule_at(e->x, &own, 0, expr_add(e->x, expr_mul(e->x, job->row, space->columns), column));
  }
  map_access at = schedule_at(e->x, space, job->row, column);
  if (!fusion_forward_within(e->c, job->group, hero, node, &at)) e->failed_node = node;
  return at;
}

static void store_outputs(emit *e, void *user, ir_expr column) {
  const loop_job *job = user;
  const uint32_t first = e->k->insts.count;
  for (uint32_t i = 0; i < job->group->output_count; i++) {
    const uint32_t node = job->group->outputs[i];
    const map_access at = place_of(e, job, node, column);
    emit_store_node(e, node, &at, emit_value(e, node, &at));
  }
  if (e->lanes > 1 && schedule_is_explicit(e->c)) emit_fetch_ahead(e, first, 1, 0);
}

bool schedule_loop_accepts(const fusion_context *c, const fusion_group *group, const char **why_not) {
  for (uint32_t i = 0; i < group->output_count; i++)
    if (c->facts[group->outputs[i]].count != c->facts[group->hero].count) {
      *why_not = "outputs of different sizes";
      return false;
    }
  return true;
}

static void walk_piece(emit *e, loop_job *job, ir_expr lo, ir_expr hi, uint32_t lanes) {
  if (job->dear.count) loop_dear_columns(e, job, lo, hi, lanes, store_outputs);
  else schedule_vector_loop(e, lo, hi, lanes, 4, store_outputs, job);
}

/* Cuts are those of whole rows: a share of a row has its conditions tested. */
static void walk_columns(emit *e, loop_job *job, ir_expr lo, ir_expr hi, uint32_t lanes) {
  const loop_seams *cuts = &job->box->cuts;
  const uint32_t count = lo == 0 && hi == job->box->space.columns ? cuts->count : 0;
  for (uint32_t i = 0; i <= count; i++) walk_piece(e, job, i ? cuts->at[i - 1] : lo, i < count ? cuts->at[i] : hi, lanes);
}

/* ---- which groups do which box ---- */

/* A group for each share of a box; where vectors are explicit, no more than a few a core, which take shares of one box after another. */
static ir_expr count_groups(const fusion_context *c, const loop_box *boxes, uint32_t count) {
  expr_pool *x = c->graph->pool;
  const int64_t few = (int64_t)schedule_least_parts(c);
  ir_expr sum = 0;
  int64_t most = 0, literal = 0;
  for (uint32_t i = 0; i < count; i++) {
    sum = expr_add(x, sum, boxes[i].groups);
    if (expr_is_const(x, boxes[i].groups, &literal) && literal > most) most = literal;
  }
  if (!schedule_is_explicit(c) || !expr_is_const(x, sum, &literal)) return sum;
  if (most < few) most = few;
  return expr_int(x, most < literal ? most : literal);
}

typedef void (*box_body)(emit *, loop_job *, ir_expr share);

/* Shares are dealt out to the groups round and round, so that these have as many. */
static ir_expr deal_boxes(emit *e, loop_job *job, const loop_box *boxes, uint32_t count, box_body body) {
  expr_pool *x = e->x;
  const ir_expr groups = count_groups(e->c, boxes, count);
  ir_expr dealt = 0, launched = groups;
  const ir_expr g = job->by_hand ? emit_shares(e, &launched, &job->item) : emit_group(e, groups);
  if (job->by_hand) emit_by_hand(e, job->item);
  for (job->box = boxes; job->box < boxes + count; job->box++) {
    const ir_expr own = job->box->groups, share = expr_mod(x, expr_add(x, g, expr_sub(x, groups, dealt)), groups);
    const uint32_t number = own == groups ? 0 : emit_expr(e, share);
    if (number) emit_if(e, kir_2(e->k, KIR_lt, number, emit_expr(e, own)));
    body(e, job, number ? emit_var_for(e, "share", number, 0, own) : share);
    if (number) emit_if_end(e);
    dealt = expr_mod(x, expr_add(x, dealt, own), groups);
  }
  return launched;
}

/* ---- vectors are explicit ---- */

/* rows x columns shared out: whole rows to a group where they are short, pieces of a row where they are long. */
static void share_box(fusion_context *c, const loop_dear *dear, loop_box *box) {
  expr_pool *x = c->graph->pool;
  const schedule_space *space = &box->space;
  const int64_t unit = dear->count ? dear->columns : 4 * schedule_lanes(c); /* whole tiles */
  int64_t literal;
  box->rows_per = 1;
  box->column_parts = schedule_split_work(c, space->columns, 1, &box->columns_per), box->row_parts = space->rows;
  box->columns_per = (box->columns_per + unit - 1) / unit * unit;
  if (space->split > 0 && schedule_hint(x, space->columns) <= LOOP_SHORT_ROW) {
    box->column_parts = 1;
    box->row_parts = schedule_split_work(c, space->rows, schedule_hint(x, space->columns), &box->rows_per);
  } else if (expr_is_const(x, space->columns, &literal) && literal <= box->columns_per) {
    box->column_parts = 1;
  } else {
    box->column_parts = expr_ceil_div(x, space->columns, expr_int(x, box->columns_per));
  }
  box->groups = expr_mul(x, box->row_parts, box->column_parts);
}

static void walk_share(emit *e, loop_job *job, ir_expr g) {
  expr_pool *x = e->x;
  const loop_box *box = job->box;
  const uint32_t lanes = job->dear.count ? schedule_dear_lanes(e->c) : schedule_lanes(e->c);
  const ir_expr part = expr_mod(x, g, box->column_parts), row_part = expr_div(x, g, box->column_parts);
  const ir_expr lo = box->column_parts == 1 ? 0 : expr_mul(x, part, expr_int(x, box->columns_per));
  const ir_expr hi = box->column_parts == 1 ? box->space.columns
                                            : expr_min(x, expr_add(x, lo, expr_int(x, box->columns_per)), box->space.columns);
  if (box->rows_per == 1) {
    job->row = row_part;
    walk_columns(e, job, lo, hi, lanes);
    return;
  }
  const ir_expr first = expr_mul(x, row_part, expr_int(x, box->rows_per));
  const ir_expr end = expr_min(x, expr_add(x, first, expr_int(x, box->rows_per)), box->space.rows);
  job->row = emit_steps(e, "r", first, end, 1);
  walk_columns(e, job, lo, hi, lanes);
  emit_loop_end(e, job->row, 0, NULL, NULL);
}

static snt_result build_explicit(fusion_context *c, const fusion_group *group) {
  const expr_pool *x = c->graph->pool;
  uint32_t count, widest = 0;
  emit *e = emit_begin(c, group, "loop");
  loop_box *boxes = loop_find_boxes(c, group, &count);
  if (!e || !boxes) return ir_no_memory(c->diag, "schedule");
  loop_job job = {.group = group};
  for (uint32_t i = 1; i < count; i++)
    if (schedule_hint(x, boxes[i].space.columns) > schedule_hint(x, boxes[widest].space.columns)) widest = i;
  loop_find_dear(c, group, &boxes[widest].space, &job.dear);
  for (uint32_t i = 0; i < count; i++) {
    loop_find_cuts(c, group, &boxes[i]);
    share_box(c, &job.dear, &boxes[i]);
  }
  e->stream = schedule_streams(c, group, true);
  return emit_end(e, deal_boxes(e, &job, boxes, count, walk_share), 0, 0, NULL);
}

/* ---- items are lanes ---- */

/* As many as the device still has enough groups with. */
static int64_t widest_lanes(const fusion_context *c, const fusion_group *group, const schedule_space *space) {
  const cost_profile *p = c->options->profile;
  const expr_pool *x = c->graph->pool;
  const int64_t wide = schedule_wide_lanes(c, group);
  const double results = (double)schedule_hint(x, space->columns) * (double)schedule_hint(x, space->rows);
  return results < (double)wide * p->group_items * p->min_groups ? schedule_item_lanes(c) : wide;
}

typedef struct apart_probe {
  const fusion_context *c;
  uint32_t lane;
  bool found, others;
} apart_probe;

static void probe_apart(void *user, const fusion_load *load) {
  enum { SECTOR = 32 }; /* bytes that memory gives at once */
  apart_probe *p = user;
  expr_pool *x = p->c->graph->pool;
  const int64_t bytes = ir_dtypes[ir_at(p->c->graph, load->node)->type.dtype].bytes;
  const ir_expr offset = fusion_stored_offset(p->c, load->node, load->access);
  int64_t step;
  ir_expr rest;
  if (!expr_uses_var(x, offset, p->lane)) return;
  if (expr_split_affine(x, offset, p->lane, &step, &rest) && step > 1 && step * bytes < SECTOR) p->found = true;
  else p->others = true;
}

/* Is anything read that is cut, turned or a window's? */
static bool reads_moved(const fusion_context *c, const fusion_group *group) {
  const ir_graph *g = c->graph;
  for (uint32_t i = 0; i < group->count; i++)
    for (uint32_t k = 0; k < ir_at(g, group->nodes[i])->arity; k++) {
      const uint32_t arg = ir_arg(g, group->nodes[i], k);
      if (fusion_is_view(g, arg) && ir_at(g, arg)->op != IR_OP_broadcast) return true;
    }
  return fusion_is_view(g, group->hero);
}

/* Do neighbours read nothing but elements a few apart, as strides of two have them? Then an item for each shares sectors with more of them than one for a vector. */
static bool reads_apart(fusion_context *c, const fusion_group *group, const loop_box *box) {
  const cost_profile *profile = c->options->profile;
  if (box->lanes == 1 || profile->reads != COST_READS_STORAGE || !profile->local_bytes || !reads_moved(c, group)) return false;
  expr_pool *x = c->graph->pool;
  const ir_expr lanes = (ir_expr)box->lanes, lane = expr_var_add(x, "lane", 0, lanes, 1);
  const ir_expr vector = expr_var_add(x, "v", 0, expr_div(x, box->space.columns, lanes), 1);
  apart_probe p = {.c = c, .lane = emit_var_number(x, lane)};
  const map_access at = schedule_at(x, &box->space, expr_var_add(x, "row", 0, box->space.rows, 1),
                                    expr_add(x, expr_mul(x, vector, lanes), lane));
  return fusion_walk_loads(c, group, group->hero, &at, probe_apart, &p) && p.found && !p.others;
}

/* Vectors where the columns are long, or rows are whole vectors or vectors whole rows; a single element otherwise. */
static void pick_lanes(fusion_context *c, const fusion_group *group, loop_box *box) {
  enum { SHORT_ROW = 128 };
  const expr_pool *x = c->graph->pool;
  const int64_t run = expr_multiple_of(x, box->space.columns), least = schedule_item_lanes(c);
  const bool flat = box->space.split && schedule_hint(x, box->space.columns) < SHORT_ROW;
  int64_t lanes = widest_lanes(c, group, &box->space);
  if (flat) schedule_space_split(c, &box->space, 0);
  for (; lanes > 1; lanes = lanes > least ? least : 1) {
    const bool whole = expr_multiple_of(x, box->space.columns) % lanes == 0;
    if (flat ? whole && run > 0 && (run % lanes == 0 || lanes % run == 0) : whole || lanes == least) break;
  }
  box->lanes = (uint32_t)lanes;
  if (reads_apart(c, group, box)) box->lanes = 1;
}

static uint32_t pick_items(const fusion_context *c, const loop_box *boxes, uint32_t count) {
  uint32_t items = (uint32_t)c->options->profile->group_items;
  int64_t most = 1;
  for (uint32_t i = 0; i < count; i++) {
    const int64_t vectors = (schedule_hint(c->graph->pool, boxes[i].space.columns) + boxes[i].lanes - 1) / boxes[i].lanes;
    if (vectors > most) most = vectors;
  }
  while (items > 8 && items / 2 >= most) items /= 2;
  return items > c->options->profile->max_items ? c->options->profile->max_items : items;
}

/* Of a share all of whose vectors stand in the kernel one after the other. */
static uint32_t hand_vectors(const fusion_context *c, const fusion_group *group, const loop_box *box) {
  enum { LEAST_ELEMENTS = 32 };
  const cost_profile *p = c->options->profile;
  int64_t rows, columns;
  if (box->lanes == 1 || !p->caps.subgroup_size || !expr_is_const(c->graph->pool, box->space.rows, &rows) ||
      !expr_is_const(c->graph->pool, box->space.columns, &columns))
    return 0;
  for (uint32_t vectors = p->hand_texels * 4u / box->lanes; vectors * box->lanes >= LEAST_ELEMENTS; vectors /= 2) {
    const int64_t share = (int64_t)vectors * box->lanes * p->caps.subgroup_size;
    if (columns % share == 0 && schedule_by_hand(c, group, HAND_LOOP, vectors * box->lanes, columns / share * rows)) return vectors;
  }
  return 0;
}

static void store_vector(emit *e, loop_job *job, ir_expr vector) {
  expr_pool *x = e->x;
  const loop_box *box = job->box;
  const ir_expr columns = box->space.columns;
  const uint32_t lanes = box->lanes;
  const ir_expr column = expr_mul(x, vector, lanes), last = expr_add(x, column, lanes);
  const bool whole = expr_proves_le(x, last, columns);
  if (!whole) emit_if(e, kir_2(e->k, KIR_le, emit_expr(e, last), emit_expr(e, columns)));
  store_outputs(e, job, emit_lanes(e, column, lanes));
  emit_scalar_lanes(e);
  if (whole) return;
  if (lanes > 1 && expr_multiple_of(x, columns) % lanes) {
    emit_else(e, 0, NULL);
    const ir_expr v = emit_steps(e, "t", column, columns, 1);
    store_outputs(e, job, v);
    emit_loop_end(e, v, 0, NULL, NULL);
  }
  emit_if_end(e);
}

/* Neighbours have neighbouring vectors. */
static void store_vectors(emit *e, loop_job *job, ir_expr g) {
  expr_pool *x = e->x;
  const loop_box *box = job->box;
  const ir_expr first = expr_mul(x, expr_mod(x, g, box->column_parts), (ir_expr)box->vectors);
  job->row = expr_div(x, g, box->column_parts);
  for (uint32_t v = 0; v < box->vectors; v++)
    store_vector(e, job, expr_add(x, expr_mul(x, expr_add(x, first, (ir_expr)v), job->items), job->item));
}

static snt_result build_lanes(fusion_context *c, const fusion_group *group) {
  expr_pool *x = c->graph->pool;
  uint32_t count;
  emit *e = emit_begin(c, group, "loop");
  loop_box *boxes = loop_find_boxes(c, group, &count);
  if (!e || !boxes) return ir_no_memory(c->diag, "schedule");
  loop_job job = {.group = group};
  for (uint32_t i = 0; i < count; i++) pick_lanes(c, group, &boxes[i]);
  const uint32_t hand = count == 1 ? hand_vectors(c, group, boxes) : 0;
  job.items = hand ? c->options->profile->caps.subgroup_size : (ir_expr)pick_items(c, boxes, count);
  for (uint32_t i = 0; i < count; i++) {
    boxes[i].vectors = hand ? hand : 1;
    boxes[i].column_parts = expr_ceil_div(x, boxes[i].space.columns, job.items * (ir_expr)(boxes[i].lanes * boxes[i].vectors));
    boxes[i].groups = expr_mul(x, boxes[i].column_parts, boxes[i].space.rows);
  }
  job.by_hand = hand != 0;
  if (!hand) job.item = emit_item(e, 0, (uint32_t)job.items);
  return emit_end(e, deal_boxes(e, &job, boxes, count, store_vectors), 0, 0, NULL);
}

static bool reads_image(const fusion_context *c, const fusion_group *group) {
  for (uint32_t i = 0; c->options->image_count && i < group->input_count; i++)
    if (fusion_image_layout(c, group->inputs[i])) return true;
  return false;
}

snt_result schedule_loop_build(fusion_context *c, const fusion_group *group) {
  snt_result result = SNT_OK;
  if (!schedule_is_explicit(c) && reads_image(c, group) && schedule_window_lanes_build(c, group, "loop", &result)) return result;
  return schedule_is_explicit(c) ? build_explicit(c, group) : build_lanes(c, group);
}
