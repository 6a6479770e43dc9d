/* The operands of a contraction on their way to the inner loop. Padded ones are staged once a work-item, so that the inner loops need no tests.
   The operand along the lanes is read in place, from a panel copied for each tile of columns, or, if it is a constant, from panels that were laid
   out for the program once (contract/pack.c): [panel][terms][columns of a tile], the last panel moved back so that it is whole. */
#include "fusion/contract_pack.h"

/* ---- padded operands ---- */

void contract_find_pads(contraction *t, uint32_t node) {
  const ir_graph *g = t->c->graph;
  while (fusion_is_view(g, node) && ir_at(g, node)->op != IR_OP_concat && !t->c->group_of[node]) {
    if (ir_at(g, node)->op == IR_OP_pad && t->staged_count < CONTRACT_STAGED && t->staged_count < schedule_spare_bindings(t->c, t->group)) {
      for (uint32_t i = 0; i < t->staged_count; i++)
        if (t->staged[i] == node) return;
      t->staged[t->staged_count++] = node;
      return;
    }
    node = ir_arg(g, node, 0);
  }
}

typedef struct pad_region {
  uint32_t pad;
  bool found;
  map_access access;
} pad_region;
static void take_region(void *user, const fusion_load *load) {
  pad_region *r = user;
  if (load->node != r->pad) return;
  r->access = *load->access;
  r->found = true;
}

/* Smallest and largest coordinate over the variables in [first, end): those of the tile and of the reduction. */
static bool span(expr_pool *x, ir_expr e, uint32_t first, uint32_t end, ir_expr *lo, ir_expr *hi) {
  *lo = *hi = e;
  for (uint32_t v = first; v < end; v++) {
    int64_t coef;
    ir_expr rest;
    const expr_var var = x->vars.at[v];
    if (!expr_uses_var(x, *lo, v) && !expr_uses_var(x, *hi, v)) continue;
    const ir_expr last = expr_sub(x, var.hi, 1);
    if (!expr_split_affine(x, *lo, v, &coef, &rest)) return false;
    *lo = expr_add(x, rest, expr_mul(x, expr_int(x, coef), coef > 0 ? var.lo : last));
    if (!expr_split_affine(x, *hi, v, &coef, &rest)) return false;
    *hi = expr_add(x, rest, expr_mul(x, expr_int(x, coef), coef > 0 ? last : var.lo));
  }
  return true;
}

/* Columns of a work-item, from *lo on: where columns are whole tiles, and as many in each. */
static int64_t own_columns(const contraction *t, ir_expr *lo) {
  expr_pool *x = t->c->graph->pool;
  const int64_t width = contract_width(t);
  int64_t all, tiles;
  if (!contract_literal(t, t->lane_axis, &all) || !expr_is_const(x, expr_sub(x, t->column_tiles[1], t->column_tiles[0]), &tiles)) return 0;
  if (!tiles || all % width) return 0;
  *lo = expr_mul(x, t->column_tiles[0], (ir_expr)width);
  return tiles * width;
}

/* Variables for everything that ranges inside a work-item: terms, its share of the columns, rows, its share of the outer axis. */
static void range_fully(contraction *t, ir_expr outer_lo, int64_t outer_count, bool share) {
  expr_pool *x = t->c->graph->pool;
  for (uint32_t r = 0; r < t->reduced_count; r++) t->at[t->reduced[r]] = expr_var_add(x, "k", 0, t->extent[t->reduced[r]], 1);
  ir_expr lo;
  const int64_t own = share ? own_columns(t, &lo) : 0;
  t->at[t->out[t->lane_axis]] = own ? expr_add(x, lo, expr_var_add(x, "n", 0, expr_int(x, own), 1))
                                    : expr_var_add(x, "n", 0, t->extent[t->out[t->lane_axis]], 1);
  if (t->row_axis != CONTRACT_NONE) t->at[t->out[t->row_axis]] = expr_var_add(x, "m", 0, t->extent[t->out[t->row_axis]], 1);
  if (t->outer_axis != CONTRACT_NONE)
    t->at[t->out[t->outer_axis]] = expr_add(x, outer_lo, outer_count > 1 ? expr_var_add(x, "o", 0, outer_count, 1) : 0);
}

/* What a work-item needs of a padded operand, of its share of the columns or all, as origin and extent; nothing of it is read: *found is false. False: not
   affine. */
static bool region_of(contraction *t, uint32_t node, ir_expr outer_lo, int64_t outer_count, bool share, stage_info *info, bool *found) {
  expr_pool *x = t->c->graph->pool;
  ir_expr kept[CONTRACT_LABELS];
  memcpy(kept, t->at, sizeof kept);
  const uint32_t first = x->vars.count;
  range_fully(t, outer_lo, outer_count, share);
  const fusion_stops stops = {&node, 1};
  pad_region region = {.pad = node};
  bool affine = true;
  for (uint32_t i = 0; i < 2 * t->set.count && affine && !region.found; i++) {
    const map_access a = contract_operand_at(t, i % 2);
    affine = fusion_walk_until(t->c, t->group, contract_operand(t, i / 2, i % 2), &a, &stops, take_region, &region);
  }
  const uint32_t end = x->vars.count;
  memcpy(t->at, kept, sizeof kept);
  *found = region.found;
  for (uint32_t d = 0; region.found && d < region.access.rank && affine; d++) {
    ir_expr lo, hi;
    affine = span(x, region.access.at[d], first, end, &lo, &hi);
    info->origin[d] = lo;
    info->extent[d] = expr_add(x, expr_sub(x, hi, lo), 1);
  }
  return affine;
}

static bool find_region(contraction *t, uint32_t node, ir_expr outer_lo, int64_t outer_count, stage_info *info, bool *found) {
  return region_of(t, node, outer_lo, outer_count, true, info, found) || region_of(t, node, outer_lo, outer_count, false, info, found);
}

/* Stages what this work-item needs of a padded operand. */
static bool stage_pad(contraction *t, uint32_t node, ir_expr outer_lo, int64_t outer_count) {
  stage_info info = {.node = node, .storage = STAGE_WORKSPACE, .ring_axis = -1, .group = t->group_number, .groups = t->groups};
  bool found;
  if (!find_region(t, node, outer_lo, outer_count, &info, &found)) return false;
  if (found) emit_stage(t->e, &info, t->lanes, UINT32_MAX);
  return true;
}

/* Is it proven that loops over the regions stay inside? Of symbolic extents, strides may leave more to divide than is understood. */
bool contract_can_stage(contraction *t) {
  expr_pool *x = t->c->graph->pool;
  for (uint32_t i = 0; i < CONTRACT_LABELS && t->staged_count; i++)
    if (t->extent[i]) t->at[i] = expr_var_add(x, "i", 0, t->extent[i], 1);
  for (uint32_t i = 0; i < t->staged_count; i++) {
    stage_info info;
    bool found;
    if (!find_region(t, t->staged[i], 0, 2, &info, &found)) return false;
    for (uint32_t d = 0; found && d < ir_at(t->c->graph, t->staged[i])->type.rank; d++)
      if (!expr_proves_lt(x, expr_var_add(x, "r", 0, info.extent[d], 1), info.extent[d])) return false;
  }
  return true;
}

bool contract_can_store_pad(const contraction *t) {
  if (t->staged_count != 1) return false;
  const ir_tensor *type = &ir_at(t->c->graph, t->staged[0])->type;
  int64_t elements;
  return expr_is_const(t->c->graph->pool, ir_tensor_elements(t->c->graph->pool, type), &elements) &&
         type->dims[type->rank - 1] % t->lanes == 0 && type->dims[type->rank - 1] % STAGE_PART == 0 && type->dtype == t->type.base;
}

/* Row by row of its last axis. */
snt_result contract_store_pad(contraction *t) {
  if (!t->stored_pad) return SNT_OK;
  emit *e = emit_begin(t->c, t->group, "pad");
  if (!e) return ir_no_memory(t->c->diag, "schedule");
  const ir_tensor *type = &ir_at(e->g, t->stored_pad)->type;
  const uint32_t last = type->rank - 1u;
  stage_info info = {
      .node = t->stored_pad, .storage = STAGE_WORKSPACE, .ring_axis = -1, .groups = schedule_product(e->x, last, type->dims)};
  ir_expr groups, rest = info.group = schedule_units(e, info.groups, type->dims[last], &groups);
  info.extent[last] = type->dims[last];
  for (uint32_t d = last; d-- > 0; rest = expr_div(e->x, rest, type->dims[d]))
    info.origin[d] = expr_mod(e->x, rest, type->dims[d]), info.extent[d] = 1;
  const uint32_t memory = emit_stage(e, &info, t->lanes, UINT32_MAX);
  schedule_units_end(e, info.group);
  if (!e->failed) t->stored_in = e->slots.at[e->k->memories.at[memory].slot];
  return emit_end(e, groups, 0, 0, NULL);
}

bool contract_stage_pads(contraction *t, ir_expr outer_lo, int64_t outer_count) {
  if (t->stored_pad) {
    stage_info info = {.node = t->stored_pad, .storage = STAGE_PACKED, .ring_axis = -1};
    memcpy(info.extent, ir_at(t->e->g, info.node)->type.dims, sizeof info.extent);
    emit_stage_given(t->e, &info, t->stored_in, 0);
  }
  for (uint32_t i = 0; i < t->staged_count; i++)
    if (!stage_pad(t, t->staged[i], outer_lo, outer_count)) return false;
  return true;
}

/* ---- panels of the lane operand ---- */

/* The region of one tile of columns, all terms, or those of the block at hand where it is made here: contiguous, with the lane axis innermost, whatever
   the operand's own layout and strides. */
static uint32_t panel_region(const contraction *t, ir_expr column, stage_info *info) {
  uint32_t rank, count = 0;
  const ir_expr *labels = contract_labels(t, t->lane_operand, &rank);
  const int32_t axis = fusion_find_label(labels, rank, t->out[t->lane_axis]);
  for (uint32_t d = 0; d < rank; d++) {
    const bool reduced = contract_is_reduced(t, labels[d]), lane = (int32_t)d == axis;
    const bool cut = t->blocks.size && t->lane_form[0] == CONTRACT_PANEL && labels[d] == (int64_t)t->reduced[0];
    info->origin[d] = cut ? t->blocks.lo : reduced ? 0 : lane ? column : t->at[labels[d]];
    info->extent[d] = cut       ? expr_int(t->c->graph->pool, t->blocks.size)
                      : reduced ? t->extent[labels[d]]
                      : lane    ? expr_int(t->c->graph->pool, contract_width(t))
                                : 1;
  }
  for (uint32_t r = 0; r < t->reduced_count; r++) { /* in the order of the loops over the terms */
    const int32_t d = fusion_find_label(labels, rank, t->reduced[r]);
    if (d != CONTRACT_NONE) info->order[count++] = (uint8_t)d;
  }
  for (uint32_t d = 0; d < rank; d++)
    if (!contract_is_reduced(t, labels[d]) && (int32_t)d != axis) info->order[count++] = (uint8_t)d;
  info->order[count] = (uint8_t)axis;
  info->ordered = true;
  return rank;
}

/* Smallest stride in memory, in bytes, between consecutive terms of the lane operand. */
static int64_t term_stride(contraction *t, uint32_t member) {
  if (!t->reduced_count) return 0;
  return contract_stride(t, member, t->lane_operand, t->reduced[t->reduced_count - 1]) * 4;
}

/* ---- constants: panels laid out once ---- */

/* The constant below the lane operand's views, the element at the operand's origin, and the stride along each of its axes. */
static bool read_strides(contraction *t, uint32_t member, uint32_t *node, int64_t *first, int64_t *strides) {
  const fusion_context *c = t->c;
  expr_pool *x = c->graph->pool;
  const uint32_t operand = contract_operand(t, member, t->lane_operand);
  const ir_tensor *type = &ir_at(c->graph, operand)->type;
  map_access at = {.rank = type->rank};
  for (uint32_t d = 0; d < type->rank; d++) at.at[d] = expr_var_add(x, "p", 0, type->dims[d], 1);
  const map_access own = at;
  *node = operand;
  while (fusion_is_view(c->graph, *node) && ir_at(c->graph, *node)->op != IR_OP_concat) {
    if (c->group_of[*node] || !ir_movement_access(c->graph, *node, 0, &at)) return false;
    *node = ir_arg(c->graph, *node, 0);
  }
  if (ir_at(c->graph, *node)->op != IR_OP_const || at.condition_count) return false;
  if (c->graph->consts.at[ir_at(c->graph, *node)->payload].kind == IR_CONST_SPLAT) return false; /* a literal wherever it is read */
  ir_expr rest = fusion_stored_offset(c, *node, &at);
  for (uint32_t d = 0; d < type->rank; d++) {
    const ir_expr whole = rest;
    strides[d] = 0;
    if (own.at[d] < 0 && !expr_split_affine(x, whole, emit_var_number(x, own.at[d]), &strides[d], &rest)) return false;
  }
  return expr_is_const(x, rest, first);
}

static bool add_loop(const contraction *t, contract_pack_loops *p, const int64_t *strides, uint32_t axis, ir_expr extent) {
  p->stride[p->count] = strides[axis];
  return expr_is_const(t->c->graph->pool, extent, &p->extent[p->count++]);
}

/* Batch axes, panels, terms in the order of their loops, columns. */
static bool plan_loops(const contraction *t, const int64_t *strides, contract_pack_loops *p) {
  uint32_t rank;
  const ir_expr *labels = contract_labels(t, t->lane_operand, &rank);
  const int32_t lane = fusion_find_label(labels, rank, t->out[t->lane_axis]);
  const int64_t width = contract_width(t);
  for (uint32_t d = 0; d < rank; d++)
    if (!contract_is_reduced(t, labels[d]) && (int32_t)d != lane && !add_loop(t, p, strides, d, t->extent[labels[d]])) return false;
  if (!expr_is_const(t->c->graph->pool, t->extent[labels[lane]], &p->columns)) return false;
  p->panel = p->count;
  if (!add_loop(t, p, strides, (uint32_t)lane, (ir_expr)((p->columns + width - 1) / width))) return false;
  for (uint32_t r = 0; r < t->reduced_count; r++) {
    const int32_t d = fusion_find_label(labels, rank, t->reduced[r]);
    if (d != CONTRACT_NONE && !add_loop(t, p, strides, (uint32_t)d, t->extent[t->reduced[r]])) return false;
  }
  return add_loop(t, p, strides, (uint32_t)lane, width);
}

static int64_t packed_elements(const contract_pack_loops *p) {
  int64_t elements = 1;
  for (uint32_t i = 0; i < p->count; i++) elements *= p->extent[i];
  return elements;
}

static const fusion_packed *find_packed(const fusion_context *c, uint32_t node, const contract_pack_loops *p) {
  for (uint32_t i = 0; i < c->packed.count; i++)
    if (c->packed.at[i].node == node && c->packed.at[i].order_bytes == sizeof *p && !memcmp(c->packed.at[i].order, p, sizeof *p))
      return &c->packed.at[i];
  return NULL;
}

static const fusion_packed *add_packed(fusion_context *c, uint32_t node, const contract_pack_loops *p) {
  const int64_t elements = packed_elements(p);
  const contract_packing *w = contract_describe_packing(c, node, p, elements);
  if (!w) return NULL;
  const uint32_t buffer = fusion_add_constant(c, ir_node_name(c->graph, node), ir_at(c->graph, node)->type.dtype, elements, &w->making);
  const fusion_packed made = {node, buffer, sizeof *p, &w->loops};
  return IR_PUSH(c->arena, &c->packed, made) ? &c->packed.at[c->packed.count - 1] : NULL;
}

uint32_t contract_packed_buffer(fusion_context *c, uint32_t node, const contract_pack_loops *p) {
  const fusion_packed *found = find_packed(c, node, p);
  if (!found) found = add_packed(c, node, p);
  if (!found) return UINT32_MAX;
  fusion_note_asked(c, &(fusion_asked){.kind = FUSION_ASKED_PACKED, .node = node, .buffer = found->buffer, .order = found->order});
  return found->buffer;
}

/* A kernel that computes the product at other places, too, or reads the constant otherwise, binds it beside its panels: where no binding is left for that,
   there are no panels. */
static bool has_room_beside(const contraction *t, uint32_t node) {
  const fusion_context *c = t->c;
  const fusion_group *group = t->group;
  uint32_t readers = 0;
  if (schedule_spare_bindings(c, group) >= t->set.count + t->staged_count) return true;
  for (uint32_t u = c->uses->first[node]; u < c->uses->first[node + 1]; u++)
    readers += fusion_group_has(group, c->uses->user[u]) || fusion_is_view(c->graph, c->uses->user[u]);
  for (uint32_t i = 0; readers <= 1 && i < t->set.count; i++) readers += fusion_reads_apart(c, group, t->set.node[i]);
  return readers <= 1;
}

static bool plan_pack(contraction *t, uint32_t member, uint32_t *node, contract_pack_loops *p) {
  int64_t strides[SNT_MAX_RANK], literal;
  memset(p, 0, sizeof *p); /* compared byte by byte */
  return contract_literal(t, t->lane_axis, &literal) && read_strides(t, member, node, &p->first, strides) && plan_loops(t, strides, p);
}

/* The stage of the lane operand is panel number `tile` of its packed form. */
static void open_packed(contraction *t, uint32_t member, ir_expr tile, ir_expr column) {
  expr_pool *x = t->e->x;
  uint32_t node, rank;
  contract_pack_loops p;
  const uint32_t buffer = plan_pack(t, member, &node, &p) ? contract_packed_buffer(t->c, node, &p) : UINT32_MAX;
  if (buffer == UINT32_MAX) {
    t->e->failed = true;
    return;
  }
  stage_info info = {.node = contract_operand(t, member, t->lane_operand), .storage = STAGE_PACKED, .ring_axis = -1};
  panel_region(t, column, &info);
  const ir_expr *labels = contract_labels(t, t->lane_operand, &rank);
  ir_expr panel = 0;
  for (uint32_t d = 0, i = 0; d < rank; d++)
    if (!contract_is_reduced(t, labels[d]) && labels[d] != t->out[t->lane_axis])
      panel = expr_add(x, expr_mul(x, panel, expr_int(x, p.extent[i++])), t->at[labels[d]]);
  panel = expr_add(x, expr_mul(x, panel, expr_int(x, p.extent[p.panel])), tile);
  emit_stage_given(t->e, &info, buffer, panel);
}

/* Near: in memory of the work-item's own, which the next one of its processor takes over, still in its cache; the room of a workspace is
   another one for each. */
static void stage_panel(contraction *t, uint32_t member, ir_expr column) {
  stage_info info = {.node = contract_operand(t, member, t->lane_operand),
                     .storage = STAGE_WORKSPACE,
                     .ring_axis = -1,
                     .group = t->group_number,
                     .groups = t->groups};
  const uint32_t rank = panel_region(t, column, &info);
  int64_t elements;
  ir_expr count = 1;
  for (uint32_t d = 0; d < rank; d++) count = expr_mul(t->e->x, count, info.extent[d]);
  if (expr_is_const(t->e->x, count, &elements) && elements * ir_dtypes[t->type.base].bytes <= CONTRACT_NEAR_PANEL)
    info.storage = STAGE_PRIVATE;
  t->panel[member] = emit_stage(t->e, &info, t->lanes, t->panel[member]);
}

void contract_open_panels(contraction *t, ir_expr tile, ir_expr column) {
  for (uint32_t i = 0; i < t->set.count; i++) {
    if (t->lane_form[i] == CONTRACT_PACKED) open_packed(t, i, tile, column);
    if (t->lane_form[i] == CONTRACT_PANEL) stage_panel(t, i, column);
  }
}

/* ---- the next panel ---- */

/* Of the panel, or of the block of it that is used at a time. */
static int64_t panel_terms(const contraction *t) {
  int64_t terms = t->blocks.size ? t->blocks.size : 1, extent;
  for (uint32_t r = t->blocks.size ? 1 : 0; r < t->reduced_count; r++) {
    if (!expr_is_const(t->c->graph->pool, t->extent[t->reduced[r]], &extent)) return 0;
    terms *= extent;
  }
  return terms;
}

/* Elements from the panel at hand to the one that is used next: the following one of memory, or where each index of the outer axis has its own, that of the
   next index, all panels of columns further. Of a block of terms, the next block. */
static int64_t next_panel(contraction *t, int64_t terms, bool by_outer) {
  uint32_t node, rank, at = 0;
  contract_pack_loops p;
  int64_t elements = 1;
  if (!by_outer) return terms * contract_width(t);
  if (!plan_pack(t, 0, &node, &p)) return 0;
  const ir_expr *labels = contract_labels(t, t->lane_operand, &rank);
  for (uint32_t d = 0; d < rank && labels[d] != t->out[t->outer_axis]; d++)
    at += !contract_is_reduced(t, labels[d]) && labels[d] != t->out[t->lane_axis];
  for (uint32_t i = at + 1; i < p.count; i++) elements *= p.extent[i];
  return elements;
}

/* Panels, or blocks of them, that come from a far cache: the next one comes while this one is near. */
void contract_look_ahead(contraction *t, int64_t passes, bool by_outer) {
  const cost_profile *p = t->c->options->profile;
  const emit_stage_entry *panel = t->e->stages.count ? &t->e->stages.at[t->e->stages.count - 1] : NULL;
  const int64_t terms = panel_terms(t), width = contract_width(t);
  int64_t columns, matrices;
  t->ahead = (struct contract_ahead){.passes = passes, .by_outer = by_outer};
  if (!schedule_is_explicit(t->c) || !p->caps.prefetch) return;
  t->ahead.rows = passes != 1;
  if (passes < (by_outer ? 1 : 2)) return;
  if (t->set.count != 1 || t->lane_form[0] != CONTRACT_PACKED || !panel) return;
  if (!contract_literal(t, t->lane_axis, &columns) || !contract_literal(t, by_outer ? t->outer_axis : CONTRACT_NONE, &matrices)) return;
  if ((double)(terms * columns * matrices * 4) < p->l2_bytes) return;
  if (2. * (double)(terms * width * 4) > 0.75 * fmax(p->second_bytes, p->l2_bytes)) return; /* both stay near */
  t->ahead.wanted = true;
  t->ahead.memory = panel->memory;
  const int64_t size = t->blocks.size ? t->blocks.size : 1; /* of what starts at the panel's `lo` */
  const ir_expr next = expr_add(t->e->x, t->blocks.lo, size);
  t->ahead.base = expr_add(t->e->x, panel->base, expr_mul(t->e->x, next, expr_int(t->e->x, next_panel(t, terms, by_outer) / size)));
}

/* Number of the term at hand, of the panel or of its block. */
static ir_expr term_at_hand(const contraction *t) {
  expr_pool *x = t->e->x;
  ir_expr term = 0;
  for (uint32_t r = 0; r < t->reduced_count; r++) {
    const ir_expr at = t->at[t->reduced[r]];
    term = expr_add(x, expr_mul(x, term, t->extent[t->reduced[r]]), !r && t->blocks.size ? expr_sub(x, at, t->blocks.lo) : at);
  }
  return term;
}

/* A part of it in each step, in whole lines: where the passes are many it is there before the last, and those ask for what is there again, not for what
   comes behind (of 2048 rows that was 21 panels). */
void contract_fetch_ahead(contraction *t, uint32_t step) {
  expr_pool *x = t->e->x;
  const int64_t terms = panel_terms(t), bytes = (int64_t)step * contract_width(t) * 4;
  if (!t->ahead.wanted || t->e->failed) return;
  const int64_t part = (bytes + t->ahead.passes * FUSION_LINE - 1) / (t->ahead.passes * FUSION_LINE) * FUSION_LINE; /* of each step */
  const int64_t pass = terms / step * (part / 4), all = terms * contract_width(t);                                  /* elements */
  ir_expr from = expr_mul(x, t->ahead.pass, expr_int(x, pass));
  if (pass * (t->ahead.passes - 1) > all - pass) from = expr_min(x, from, expr_int(x, all > pass ? all - pass : 0));
  from = expr_add(x, from, expr_mul(x, term_at_hand(t), expr_int(x, part / 4 / step)));
  const uint32_t index = emit_expr(t->e, expr_add(x, t->ahead.base, from));
  const kir_inst fetch = {.op = KIR_prefetch, .index = t->ahead.memory, .lanes = (int32_t)part};
  kir_put(t->e->k, &fetch, 1, &index);
}

/* ---- the next rows ---- */

static const double MOST_OF_NEAR = 0.6; /* of the near cache: more would drive out the rows at hand (measured: 0.56 gains, 0.75 loses) */

typedef struct row_place {
  const contraction *t;
  uint32_t node, loads;
  ir_expr place;
} row_place;
static void take_place(void *user, const fusion_load *load) {
  row_place *p = user;
  const ir_node *n = ir_at(p->t->c->graph, load->node);
  p->node = load->node;
  p->place = fusion_stored_offset(p->t->c, load->node, load->access);
  p->loads += load->access->condition_count || n->op == IR_OP_const ? 2 : 1; /* one that is always read */
}

/* Where the other operand is read, at the coordinates at hand. */
static bool find_place(const contraction *t, row_place *p) {
  const uint32_t other = 1 - t->lane_operand;
  const map_access a = contract_operand_at(t, other);
  *p = (row_place){.t = t};
  return fusion_walk_loads(t->c, t->group, contract_operand(t, 0, other), &a, take_place, p) && p->loads == 1;
}

/* Is the place, with `label` one further, `distance` elements from the one at hand? */
static bool lies_apart(contraction *t, const row_place *here, ir_expr label, int64_t distance) {
  expr_pool *x = t->e->x;
  const ir_expr at = t->at[label];
  row_place next;
  t->at[label] = expr_add(x, at, 1);
  const bool found = find_place(t, &next);
  t->at[label] = at;
  return found && expr_sub(x, next.place, here->place) == expr_int(x, distance);
}

void contract_fetch_rows(contraction *t, ir_expr row, uint32_t step) {
  enum { LONG_ROW = 1024 }; /* hardware follows short rows */
  expr_pool *x = t->e->x;
  int64_t terms = 1, extent;
  row_place here;
  if (!t->ahead.rows || t->blocks.size || t->staged_count || t->row_axis == CONTRACT_NONE || t->e->failed) return;
  t->at[t->out[t->row_axis]] = row;
  if (!find_place(t, &here)) return;
  for (uint32_t r = t->reduced_count; r-- > 0; terms *= extent)
    if (!expr_is_const(x, t->extent[t->reduced[r]], &extent) || !lies_apart(t, &here, t->reduced[r], terms)) return;
  const int64_t element = ir_dtypes[ir_at(t->e->g, here.node)->type.dtype].bytes, length = terms * element,
                bytes = step * t->rows * element;
  if (bytes < FUSION_LINE || length < LONG_ROW || (double)(t->rows * length) > MOST_OF_NEAR * t->c->options->profile->l1_bytes) return;
  if (!lies_apart(t, &here, t->out[t->row_axis], terms)) return;
  const ir_expr part = expr_mul(x, term_at_hand(t), expr_int(x, t->rows - 1)), next = expr_int(x, t->rows * terms);
  const uint32_t index = emit_expr(t->e, expr_add(x, here.place, expr_add(x, part, next)));
  const kir_inst fetch = {
      .op = KIR_prefetch, .index = emit_bind(t->e, fusion_buffer_of(t->c, here.node), KIR_READ), .lanes = (int32_t)bytes};
  kir_put(t->e->k, &fetch, 1, &index);
}

static bool open_all_packed(contraction *t, ir_expr tile, ir_expr column) {
  uint32_t node;
  contract_pack_loops p;
  for (uint32_t i = 0; i < t->set.count; i++)
    if (!plan_pack(t, i, &node, &p) || !has_room_beside(t, node)) return false;
  for (uint32_t i = 0; i < t->set.count; i++) open_packed(t, i, tile, column);
  return true;
}

bool contract_open_packed_columns(contraction *t, uint32_t columns, ir_expr tile, ir_expr column) {
  contraction wide = *t;
  wide.vectors = columns / t->lanes;
  return !t->both_lanes && open_all_packed(&wide, tile, column);
}

bool contract_open_packed_rows(contraction *t, ir_expr tile, ir_expr row) {
  contraction turned = *t;
  turned.lane_operand = 1 - t->lane_operand;
  turned.lane_axis = t->row_axis;
  turned.lanes = t->rows;
  turned.vectors = 1;
  return t->row_axis != CONTRACT_NONE && !t->both_lanes && open_all_packed(&turned, tile, row);
}

/* ---- which way ---- */

bool contract_has_form(const contraction *t, contract_form form) {
  for (uint32_t i = 0; i < t->set.count; i++)
    if (t->lane_form[i] == form) return true;
  return false;
}

/* Constants are packed. Another lane operand is read with unit stride from a panel where it has another stride, or where its rows lie so far apart
   that they meet in few cache sets; copying a panel pays when enough rows share it. */
static bool settle(contraction *t, uint32_t member) {
  const bool explicit = schedule_is_explicit(t->c);
  uint32_t node;
  contract_pack_loops p;
  int64_t rows;
  t->panel[member] = UINT32_MAX;
  t->lane_form[member] = explicit && plan_pack(t, member, &node, &p) && has_room_beside(t, node) ? CONTRACT_PACKED : CONTRACT_IN_PLACE;
  if (t->lane_form[member] == CONTRACT_PACKED) return true;
  const int64_t stride = contract_stride(t, member, t->lane_operand, (uint32_t)t->out[t->lane_axis]);
  const bool shared = explicit && !t->staged_count && schedule_spare_bindings(t->c, t->group) >= t->set.count &&
                      t->row_axis != CONTRACT_NONE && !t->both_lanes &&
                      (!contract_literal(t, t->row_axis, &rows) || rows >= contract_rows_to_pay(stride)); /* unknown: many */
  if (shared && (stride != 1 || term_stride(t, member) >= CONTRACT_FAR_APART)) t->lane_form[member] = CONTRACT_PANEL;
  return t->lane_form[member] == CONTRACT_PANEL || (stride >= 1 && stride <= CONTRACT_LANE_STRIDE);
}

/* Where work-items are lanes, constants in another order than that of their columns are laid out in it: once, for all the columns of a group. */
static bool settle_packed(contraction *t) {
  uint32_t node;
  contract_pack_loops p;
  for (uint32_t i = 0; i < t->set.count; i++) {
    if (schedule_is_explicit(t->c) || t->both_lanes || !plan_pack(t, i, &node, &p)) return false;
    t->lane_form[i] = CONTRACT_PACKED;
  }
  return true;
}

bool contract_settle_lane_operands(contraction *t) {
  for (uint32_t i = 0; i < t->set.count; i++)
    if (!settle(t, i)) return settle_packed(t);
  return true;
}
