/* What a tile of queries packs and stores: queries with their lanes innermost, keys and values as rows, results along their depth. What lies the
   other way round is turned in registers, block by block. */
#include "fusion/schedule/attention_tile.h"

enum { FAR_APART = 1024, NEAR_BYTES = 16384, TURNED = 8 };

/* `count` rows of an operand, each with all of the inner axis. */
typedef struct region {
  stage_info info;
  uint32_t rank, rows_axis, inner_axis, inner_axes;
} region;

static region region_of(attend_tile *s, uint32_t node, const map_access *at, const map_access *next, int64_t count,
                        const map_access *inner_end) {
  attend *t = s->t;
  region r = {.rank = at->rank, .info = {.node = node, .ring_axis = -1, .group = t->group_number, .groups = t->groups, .ordered = true}};
  int64_t elements = 1, literal;
  for (uint32_t d = 0; d < at->rank; d++) {
    r.info.origin[d] = at->at[d];
    r.info.extent[d] = 1;
    if (at->at[d] != next->at[d]) r.rows_axis = d, r.info.extent[d] = count;
    else if (at->at[d] != inner_end->at[d]) {
      r.info.extent[d] = expr_sub(t->e->x, inner_end->at[d], at->at[d]);
      r.inner_axis = d;
      r.inner_axes++;
    }
    if (expr_is_const(t->e->x, r.info.extent[d], &literal)) elements *= literal;
  }
  r.info.storage = elements * (int64_t)sizeof(float) <= NEAR_BYTES || !t->spare ? STAGE_PRIVATE : STAGE_WORKSPACE;
  t->spare -= r.info.storage == STAGE_WORKSPACE;
  return r;
}

/* Rows one after another; `along`: the operand lies along the inner axis, so that is the way vectors go. */
static void stage_rows(attend_tile *s, region *r, bool along) {
  uint32_t n = 0;
  for (uint32_t d = 0; d < r->rank; d++)
    if (d != r->rows_axis && r->info.extent[d] == 1) r->info.order[n++] = (uint8_t)d;
  r->info.order[n++] = (uint8_t)r->rows_axis;
  for (uint32_t d = 0; d < r->rank; d++)
    if (d != r->rows_axis && r->info.extent[d] != 1) r->info.order[n++] = (uint8_t)d;
  r->info.along_stored = along;
  emit_stage(s->t->e, &r->info, s->half_lanes, UINT32_MAX);
}

static bool is_whole(const emit *e, ir_expr extent) {
  int64_t literal;
  return expr_is_const(e->x, extent, &literal) && literal % TURNED == 0;
}

/* ---- how an operand lies ---- */

typedef struct stride_probe {
  const fusion_context *c;
  uint32_t row, inner;
  bool near;  /* rows lie close together, in f32, and stored: they are read where they are */
  bool along; /* what is loaded lies along the inner axis, or is the same for all of it */
  bool some;  /* and something does lie along it */
} stride_probe;
static void probe_load(void *user, const fusion_load *load) {
  stride_probe *p = user;
  expr_pool *x = p->c->graph->pool;
  const ir_tensor *type = &ir_at(p->c->graph, load->node)->type;
  int64_t along, across;
  ir_expr rest;
  const ir_expr offset = fusion_stored_offset(p->c, load->node, load->access);
  const bool affine = expr_split_affine(x, offset, p->inner, &along, &rest);
  p->along &= affine && (along == 1 || along == 0);
  p->some |= affine && along == 1;
  p->near &= affine && along == 1 && type->dtype == SNT_F32 && !load->access->condition_count &&
             expr_split_affine(x, offset, p->row, &across, &rest) && across > 0 && across * 4 < FAR_APART;
}

static stride_probe probe_operand(attend_tile *s, uint32_t node, const map_access *at, ir_expr row, ir_expr inner) {
  const attend *t = s->t;
  stride_probe p = {t->c, emit_var_number(t->e->x, row), emit_var_number(t->e->x, inner), true, true, false};
  if (!fusion_walk_loads(t->c, t->group, node, at, probe_load, &p)) p.near = p.along = false;
  p.along &= p.some;
  if (fusion_group_has(t->group, fusion_through_views(t->e->g, node))) p.near = false;
  return p;
}

/* ---- queries, keys, values ---- */

void attend_pack_queries(attend_tile *s) {
  attend *t = s->t;
  emit *e = t->e;
  const uint32_t node = attend_query_node(t);
  const ir_expr row = expr_var_add(e->x, "query", 0, t->a->extent[t->a->row], 1),
                inner = expr_var_add(e->x, "inner", 0, t->a->inner_extent, 1);
  t->now[t->a->row] = row;
  const map_access probe = attend_query_place(t, inner);
  const stride_probe found = probe_operand(s, node, &probe, row, inner);
  t->now[t->a->row] = s->row;
  const map_access at = attend_query_place(t, 0), end = attend_query_place(t, t->a->inner_extent);
  t->now[t->a->row] = expr_add(e->x, s->row, 1);
  const map_access next = attend_query_place(t, 0);
  t->now[t->a->row] = s->row;
  region r = region_of(s, node, &at, &next, s->queries, &end);
  uint32_t n = 0;
  for (uint32_t d = 0; d < r.rank; d++)
    if (d != r.rows_axis) r.info.order[n++] = (uint8_t)d;
  r.info.order[n] = (uint8_t)r.rows_axis;
  const bool turned = found.along && r.inner_axes == 1 && s->half_lanes >= TURNED && ir_at(e->g, node)->type.dtype == SNT_F32 &&
                      is_whole(e, s->queries) && is_whole(e, r.info.extent[r.inner_axis]);
  if (turned) emit_stage_turned(e, &r.info, r.inner_axis, TURNED, UINT32_MAX);
  else emit_stage(e, &r.info, s->half_lanes, UINT32_MAX);
}

void attend_pack_keys(attend_tile *s) {
  attend *t = s->t;
  expr_pool *x = t->e->x;
  const ir_expr row = expr_var_add(x, "key", 0, t->a->keys, 1), inner = expr_var_add(x, "inner", 0, t->a->inner_extent, 1);
  t->key = row;
  const map_access probe = attend_key_place(t, inner);
  const stride_probe found = probe_operand(s, attend_key_node(t), &probe, row, inner);
  if (found.near) return;
  t->key = s->first;
  const map_access at = attend_key_place(t, 0), end = attend_key_place(t, t->a->inner_extent);
  t->key = expr_add(x, s->first, 1);
  const map_access next = attend_key_place(t, 0);
  region r = region_of(s, attend_key_node(t), &at, &next, s->block, &end);
  stage_rows(s, &r, found.along);
}

void attend_pack_values(attend_tile *s) {
  attend *t = s->t;
  expr_pool *x = t->e->x;
  if (t->a->depth < 0) return;
  const ir_expr row = expr_var_add(x, "key", 0, t->a->keys, 1), inner = expr_var_add(x, "depth", 0, expr_int(x, s->depth), 1);
  t->key = row;
  t->now[t->a->depth] = inner;
  const map_access probe = attend_values_place(t);
  const stride_probe found = probe_operand(s, attend_values_node(t), &probe, row, inner);
  if (found.near) return;
  t->key = s->first;
  t->now[t->a->depth] = 0;
  const map_access at = attend_values_place(t);
  t->now[t->a->depth] = s->depth;
  const map_access end = attend_values_place(t);
  t->now[t->a->depth] = 0;
  t->key = expr_add(x, s->first, 1);
  const map_access next = attend_values_place(t);
  region r = region_of(s, attend_values_node(t), &at, &next, s->block, &end);
  stage_rows(s, &r, found.along);
}

/* ---- results ---- */

/* The factor of a vector of queries by which their results leave. */
static uint32_t last_factor(attend_tile *s, ir_expr column) {
  attend *t = s->t;
  uint32_t sums[ATTENTION_REDUCES];
  t->now[t->a->row] = expr_add(t->e->x, s->row, column);
  t->key = 0;
  for (uint32_t i = 0; i < t->a->sum_count; i++) sums[i] = attend_load(t, &s->sums[i], column);
  return attend_finish(t, t->a->exp_count ? attend_load(t, &s->extremum, column) : 0, sums);
}

static uint32_t last_result(attend_tile *s, uint32_t factor, ir_expr depth, ir_expr column) {
  expr_pool *x = s->t->e->x;
  return attend_scaled(s->t, factor, attend_load(s->t, &s->results, expr_add(x, expr_mul(x, depth, s->queries), column)));
}

static void store_queries(attend_tile *s, ir_expr v) {
  attend *t = s->t;
  emit *e = t->e;
  const ir_expr column = emit_lanes(e, v, s->half_lanes);
  const uint32_t factor = last_factor(s, column);
  const ir_expr d = emit_steps(e, "d", 0, s->depth, 1);
  if (t->a->depth >= 0) t->now[t->a->depth] = d;
  attend_output(t, last_result(s, factor, d, column));
  emit_loop_end(e, d, 0, NULL, NULL);
  emit_scalar_lanes(e);
}

static void store_turned(attend_tile *s, ir_expr v) {
  attend *t = s->t;
  emit *e = t->e;
  uint32_t rows[TURNED];
  const ir_expr column = emit_lanes(e, v, TURNED);
  const uint32_t column_lanes = e->lane_var, factor = last_factor(s, column);
  const ir_expr d = emit_steps(e, "d", 0, s->depth, TURNED);
  emit_use_lanes(e, column_lanes, TURNED);
  for (uint32_t i = 0; i < TURNED; i++) rows[i] = last_result(s, factor, expr_add(e->x, d, i), column);
  emit_scalar_lanes(e);
  if (!e->failed && !e->k->failed) emit_turn(e, rows, TURNED);
  t->now[t->a->depth] = emit_lanes(e, d, TURNED);
  for (uint32_t i = 0; i < TURNED && !e->failed; i++) {
    t->now[t->a->row] = expr_add(e->x, s->row, expr_add(e->x, v, i));
    attend_output(t, rows[i]);
  }
  emit_scalar_lanes(e);
  emit_loop_end(e, d, 0, NULL, NULL);
}

/* Neighbours in the first result's memory: along the depth, not along the queries. */
static bool stored_along_depth(attend_tile *s) {
  attend *t = s->t;
  expr_pool *x = t->e->x;
  if (t->a->depth < 0) return false;
  const uint32_t output = t->group->outputs[0];
  const ir_expr depth = expr_var_add(x, "depth", 0, expr_int(x, s->depth), 1), was = t->now[t->a->depth];
  map_access at = {.rank = t->a->label_count};
  t->now[t->a->depth] = depth;
  memcpy(at.at, t->now, sizeof at.at);
  t->now[t->a->depth] = was;
  int64_t along;
  ir_expr rest;
  return fusion_forward_access(t->c, t->a->values, output, &at) &&
         expr_split_affine(x, fusion_stored_offset(t->c, output, &at), emit_var_number(x, depth), &along, &rest) && along == 1;
}

void attend_store_tile(attend_tile *s) {
  emit *e = s->t->e;
  const bool turned = s->half_lanes >= TURNED && s->queries % TURNED == 0 && s->depth % TURNED == 0 && stored_along_depth(s);
  const uint32_t step = turned ? TURNED : s->half_lanes;
  const ir_expr v = emit_steps(e, "c", 0, s->queries, step);
  if (turned) store_turned(s, v);
  else store_queries(s, v);
  emit_loop_end(e, v, 0, NULL, NULL);
}
