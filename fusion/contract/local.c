/* What a contraction in local memory looks like on a device: its axes, how each operand is fetched, and the tile, which is the cheapest of a table by a
   small model: multiply-adds beside the reads of local memory, what passes from the caches, whole turns of the units. Nothing is emitted. */
#include "fusion/contract_local.h"

enum { LEAST = 8, LEAST_TERMS = 8, WARPS_THAT_HIDE = 256, RESIDENT = 512, MOST_PARTS = 16, STEPS_A_PART = 4, MANY_STEPS = 9 };

// clang-format off
static const local_shape shapes[] = {
    {128, 128, 8, 8}, {128, 64, 8, 8}, {64, 128, 8, 8}, {64, 64, 4, 8}, {64, 64, 4, 4}, {32, 128, 4, 8},
    {32, 64, 4, 4},   {64, 32, 4, 4},  {32, 32, 4, 4},  {16, 64, 4, 4}, {64, 16, 4, 4},
};
// clang-format on

/* ---- axes ---- */

static void add_label(const contraction *t, local_axis *axis, uint32_t label) {
  if (t->extent[label] == 1) return;
  axis->label[axis->count] = label;
  axis->dims[axis->count++] = t->extent[label];
}

static void finish_axis(const contraction *t, local_axis *axis) {
  axis->extent = schedule_product(t->c->graph->pool, axis->count, axis->dims);
}

/* Items beside each other are to store elements beside each other: lanes run along the axis of the result that the group's first output has innermost,
   which a transpose behind the sums says, where that is whole vectors: one by one they are stored as well along another. */
static void store_in_order(contraction *t) {
  expr_pool *x = t->c->graph->pool;
  map_access at = {.rank = t->out_rank};
  int64_t coef;
  ir_expr rest;
  const uint32_t output = t->group->outputs[0];
  for (uint32_t d = 0; d < t->out_rank; d++) at.at[d] = t->extent[t->out[d]] == 1 ? 0 : expr_var_add(x, "i", 0, t->extent[t->out[d]], 1);
  map_access own = at;
  if (!contract_set_forward(t->c, t->group, &t->set, output, &own)) return;
  const ir_expr offset = fusion_stored_offset(t->c, output, &own);
  for (uint32_t d = 0; d < t->out_rank; d++)
    if (at.at[d] != 0 && expr_multiple_of(x, t->extent[t->out[d]]) % LOCAL_VECTOR == 0 &&
        expr_split_affine(x, offset, emit_var_number(x, at.at[d]), &coef, &rest) && coef == 1) {
      contract_take_lanes(t, (int32_t)d);
      return;
    }
}

static void find_axes(contract_local *l) {
  contraction *t = l->t;
  store_in_order(t);
  for (uint32_t i = 0; i < t->out_rank; i++) {
    const uint32_t label = (uint32_t)t->out[i];
    const bool column = contract_in_operand(t, t->lane_operand, label), row = contract_in_operand(t, 1 - t->lane_operand, label);
    add_label(t, column && row ? &l->batch : column ? &l->columns : &l->rows, label);
  }
  for (uint32_t i = 0; i < t->reduced_count; i++) add_label(t, &l->terms, t->reduced[i]);
  finish_axis(t, &l->rows);
  finish_axis(t, &l->columns);
  finish_axis(t, &l->terms);
  finish_axis(t, &l->batch);
}

/* ---- how an operand is fetched ---- */

typedef struct vector_probe {
  const contraction *t;
  uint32_t lane, unit;
  bool fits, moves;
} vector_probe;

/* Words of bytes are as many bytes apart. */
static void probe_vector(void *user, const fusion_load *load) {
  vector_probe *p = user;
  expr_pool *x = p->t->c->graph->pool;
  const ir_tensor *type = &ir_at(p->t->c->graph, load->node)->type;
  const int64_t step = p->t->packed && ir_dtypes[type->dtype].bytes == 1 ? 4 : 1;
  int64_t coef;
  ir_expr rest;
  const ir_expr offset = fusion_stored_offset(p->t->c, load->node, load->access);
  for (uint32_t i = 0; i < load->access->condition_count; i++)
    if (expr_uses_var(x, load->access->conditions[i].value, p->lane)) p->fits = false;
  if (!expr_split_affine(x, offset, p->lane, &coef, &rest) || (coef && coef != step)) p->fits = false;
  else if (coef) {
    const int64_t multiple = expr_multiple_of(x, rest);
    p->moves = true;
    p->fits = p->fits && multiple % (step * p->unit) == 0;
  }
}

/* Are so many neighbours along the last label of the axis one aligned vector of every load of the operand? */
static bool takes_vectors(contraction *t, const local_panel *panel, const local_axis *axis, uint32_t unit) {
  expr_pool *x = t->c->graph->pool;
  if (!axis->count || expr_multiple_of(x, axis->dims[axis->count - 1]) % unit) return false;
  const uint32_t last = axis->label[axis->count - 1];
  for (uint32_t i = 0; i < CONTRACT_LABELS; i++)
    if (t->extent[i]) t->at[i] = t->extent[i] == 1 ? 0 : expr_var_add(x, "i", 0, t->extent[i], 1);
  const ir_expr lane = expr_var_add(x, "lane", 0, unit, 1), vector = expr_var_add(x, "q", 0, expr_div(x, t->extent[last], unit), 1);
  t->at[last] = expr_add(x, expr_mul(x, vector, unit), lane);
  vector_probe p = {t, emit_var_number(x, lane), unit, true, false};
  const map_access a = contract_operand_at(t, panel->operand);
  return fusion_walk_loads(t->c, t->group, panel->node, &a, probe_vector, &p) && p.fits && p.moves;
}

static int64_t stride_along(contraction *t, uint32_t member, uint32_t operand, const local_axis *axis) {
  return axis->count ? contract_stride(t, member, operand, axis->label[axis->count - 1]) : INT32_MAX;
}

static void settle_panel(contract_local *l, uint32_t member, local_panel *panel) {
  contraction *t = l->t;
  const local_axis *own = panel->columns ? &l->columns : &l->rows;
  panel->unit = LOCAL_VECTOR;
  if (takes_vectors(t, panel, own, LOCAL_VECTOR)) return;
  panel->by_rows = takes_vectors(t, panel, &l->terms, LOCAL_VECTOR);
  if (panel->by_rows) return;
  const int64_t terms = stride_along(t, member, panel->operand, &l->terms), apart = stride_along(t, member, panel->operand, own);
  panel->unit = 1;
  panel->patches = terms == 1 && apart > 1 && apart <= LOCAL_VECTOR;
  panel->by_rows = terms < apart && !panel->patches;
}

/* Members that read one operand share its panel. */
static void find_panels(contract_local *l) {
  const contraction *t = l->t;
  for (uint32_t s = 0; s < t->set.count; s++)
    for (uint32_t columns = 0; columns < 2; columns++) {
      const uint32_t operand = columns ? t->lane_operand : 1 - t->lane_operand, node = contract_operand(t, s, operand);
      uint32_t at = 0;
      while (at < l->panel_count && (l->panel[at].node != node || l->panel[at].operand != operand)) at++;
      l->panel_of[s][columns] = at;
      if (at < l->panel_count) continue;
      l->panel[l->panel_count++] = (local_panel){.node = node, .operand = operand, .columns = columns};
      settle_panel(l, s, &l->panel[at]);
    }
}

/* ---- the tile ---- */

/* Rows of a panel by rows are a vector apart every four of them: then four times any number of rows lie in banks of their own. */
static uint32_t panel_size(const contract_local *l, const local_panel *p, const local_shape *s, uint32_t step) {
  const uint32_t tile = p->columns ? s->columns : s->rows;
  if (!p->by_rows) return step * contract_term_pitch(l, p, s);
  return l->fragments ? tile * (step + contract_mma_pad(l)) : tile * step + tile / LOCAL_VECTOR * LOCAL_VECTOR;
}

static uint32_t items_of(const contract_local *l, const local_shape *s) {
  return l->slices * s->rows / s->item_rows * (s->columns / s->item_columns);
}

/* Sizes of the panels and what each of the items fetches of them; false: that is not the same for all. *elements: of all panels, in all buffers. */
static bool size_panels(contract_local *l, const local_shape *s, uint32_t step, uint32_t items, uint64_t *elements) {
  *elements = 0;
  for (uint32_t i = 0; i < l->panel_count; i++) {
    local_panel *panel = &l->panel[i];
    const uint32_t fetches = (panel->columns ? s->columns : s->rows) * step / panel->unit;
    if (fetches % items || fetches / items > LOCAL_FETCHED) return false;
    panel->size = panel_size(l, panel, s, step);
    panel->count = fetches / items;
    *elements += l->buffers * (uint64_t)panel->size;
  }
  return true;
}

/* Does the shape fit the device with `step` terms a step? */
static bool fits(contract_local *l, const local_shape *s, uint32_t step) {
  const cost_profile *p = l->t->c->options->profile;
  const uint32_t items = items_of(l, s);
  uint64_t elements;
  if (items > p->max_items || (uint32_t)s->item_rows * s->item_columns / LOCAL_VECTOR * l->t->set.count > LOCAL_VECTOR * LOCAL_VECTOR)
    return false;
  return size_panels(l, s, step, items, &elements) &&
         elements * ir_dtypes[l->t->type.base].bytes + (l->slices - 1) * 4 * s->rows * s->columns <=
             cost_local_room(l->t->c->options->profile);
}

typedef struct local_need {
  double rows, columns, batch, terms, bytes; /* hints; bytes: of an element of either operand, the mean */
} local_need;

uint32_t contract_stage_panel(const contract_local *l) {
  uint32_t i = l->fragments && fusion_runs_on_cuda(l->t->c->options) ? 0 : l->panel_count;
  while (i < l->panel_count && (uint64_t)l->buffers * l->panel[i].size * ir_dtypes[contract_panel_base(l)].bytes < contract_stage_bytes(l))
    i++;
  return i;
}

static uint64_t own_stage(const contract_local *l) { return contract_stage_panel(l) < l->panel_count ? 0 : contract_stage_bytes(l); }

/* Bytes that a group may take, of a unit that keeps a little of what it has for each. */
static uint64_t room_of(const contract_local *l) {
  enum { KEPT = 1024 };
  const uint64_t most = fusion_most_local(l->t->c->options), share = l->beside > 1 ? (most + KEPT) / l->beside - KEPT : most;
  const uint64_t usual = cost_local_room(l->t->c->options->profile);
  return share > usual ? share : usual;
}

uint32_t contract_local_buffers(const contract_local *l) {
  enum { MOST = 3 };
  const int64_t steps = schedule_hint(l->t->c->graph->pool, l->terms.extent) / l->step;
  const uint64_t most = l->fragments && steps > MANY_STEPS ? MOST + 1 : MOST;
  uint64_t each = 0;
  for (uint32_t i = 0; i < l->panel_count; i++) each += l->panel[i].size;
  const uint64_t fit = (room_of(l) - own_stage(l)) / (each * ir_dtypes[contract_panel_base(l)].bytes);
  return (uint32_t)(fit > most ? most : fit > l->buffers ? fit : l->buffers);
}

/* Cycles of all the device for one term of each of the parts. */
static double cycles_of(const contract_local *l, const local_shape *s, const local_need *n, double parts) {
  const cost_profile *p = l->t->c->options->profile;
  const double tiles = ceil(n->rows / s->rows) * ceil(n->columns / s->columns) * n->batch * parts, turns = ceil(tiles / p->units);
  const double cells = (double)s->item_rows * s->item_columns * l->t->set.count;
  const double reads = s->item_rows + (double)s->item_columns * l->t->set.count;
  const double resident = items_of(l, s) * turns, hidden = resident < WARPS_THAT_HIDE ? resident / WARPS_THAT_HIDE : 1;
  const double compute = turns * s->rows * s->columns * l->t->set.count * (1 + reads / cells) / (p->lanes * p->fma_per_cycle * hidden);
  const double moved = tiles * (s->rows + (double)s->columns * l->t->set.count) * n->bytes / (p->cache_gbs / p->ghz);
  return compute > moved ? compute : moved;
}

/* Nanoseconds with the terms in so many parts, of which one of each takes so many cycles: what they leave is written, and read by a kernel more. */
static double time_of(const contract_local *l, const local_need *n, uint32_t parts, double cycles) {
  const cost_profile *p = l->t->c->options->profile;
  const double own = n->terms / parts * cycles / p->ghz;
  return parts == 1 ? own : own + p->launch_ns + 8.0 * parts * n->rows * n->columns * n->batch * l->t->set.count / p->cache_gbs;
}

/* Sums of known extents, in any order, whose steps are whole and come in as many equal parts. */
static bool takes_parts(const contract_local *l, uint32_t step, uint32_t parts) {
  const expr_pool *x = l->t->c->graph->pool;
  int64_t rows, columns, batch, terms;
  if (parts == 1) return true;
  if (l->t->c->options->no_rewrites) return false; /* another kernel, for its price */
  return !fusion_keeps_order(l->t->c->options) && expr_is_const(x, l->rows.extent, &rows) &&
         expr_is_const(x, l->columns.extent, &columns) && expr_is_const(x, l->batch.extent, &batch) &&
         expr_is_const(x, l->terms.extent, &terms) && terms % ((int64_t)step * parts) == 0 &&
         terms / ((int64_t)step * parts) >= STEPS_A_PART && schedule_spare_bindings(l->t->c, l->t->group) > 0;
}

static local_need need_of(const contract_local *l) {
  const expr_pool *x = l->t->c->graph->pool;
  const ir_graph *g = l->t->c->graph;
  local_need need = {(double)schedule_hint(x, l->rows.extent), (double)schedule_hint(x, l->columns.extent),
                     (double)schedule_hint(x, l->batch.extent), (double)schedule_hint(x, l->terms.extent), 0};
  for (uint32_t o = 0; o < 2; o++) need.bytes += 0.5 * ir_dtypes[ir_at(g, contract_operand(l->t, 0, o))->type.dtype].bytes;
  return need;
}

/* Few groups have few items to hide each other's waits (by ncu on an H200: f32 of 1024^3, eight warps a unit, issues 57 % of the time): twice as many then, with
   half of each step's terms each, where the order is free. */
static bool fits_slices(contract_local *l, const local_need *n) {
  enum { MOST_CELLS = 32 }; /* beside what is read: as many again in registers are too many */
  const local_shape *s = &l->shape;
  const double tiles = ceil(n->rows / s->rows) * ceil(n->columns / s->columns) * n->batch;
  l->slices = 2;
  return l->parts * l->t->set.count == 1 && items_of(l, s) * ceil(tiles / l->t->c->options->profile->units) <= RESIDENT &&
         s->item_rows * s->item_columns <= MOST_CELLS && !fusion_keeps_order(l->t->c->options) &&
         expr_multiple_of(l->t->c->graph->pool, l->terms.extent) % l->step == 0 && fits(l, s, l->step);
}

static bool pick_shape(contract_local *l) {
  const local_need need = need_of(l);
  double best = INFINITY;
  for (uint32_t i = 0; i < IR_COUNT(shapes); i++) {
    uint32_t step = 16;
    while (step <= 32 && !fits(l, &shapes[i], step)) step *= 2;
    for (uint32_t parts = 1; step <= 32 && parts <= MOST_PARTS; parts *= 2) {
      const double ns = takes_parts(l, step, parts) ? time_of(l, &need, parts, cycles_of(l, &shapes[i], &need, parts)) : INFINITY;
      if (ns >= best) continue;
      best = ns;
      l->shape = shapes[i];
      l->step = step;
      l->parts = parts;
    }
  }
  if (best == INFINITY || fits_slices(l, &need)) return best < INFINITY;
  l->slices = 1;
  return fits(l, &l->shape, l->step);
}

/* ---- matrix units ---- */

// clang-format off
static const struct { local_shape shape; uint8_t warp_rows, warp_columns; } warp_shapes[] = {
    {{128, 256, 0, 0}, 64, 64}, {{256, 128, 0, 0}, 64, 64},
    {{128, 128, 0, 0}, 64, 64}, {{128, 128, 0, 0}, 32, 64}, {{128, 64, 0, 0}, 64, 32}, {{64, 128, 0, 0}, 32, 64}, {{128, 64, 0, 0}, 32, 32},
    {{64, 128, 0, 0}, 32, 32}, {{64, 64, 0, 0}, 32, 32}, {{32, 64, 0, 0}, 16, 32}, {{32, 32, 0, 0}, 16, 16},
};
// clang-format on

static uint32_t most_cells(const contract_local *l) { return fusion_runs_on_cuda(l->t->c->options) ? MMA_MOST : MMA_MOST / 2; }

/* What the elements of an operand are before they are widened, which is exact. */
static uint32_t narrow_node(const contract_local *l, uint32_t node) {
  const ir_graph *g = l->t->c->graph;
  while (fusion_group_has(l->t->group, node) && fusion_only_moves(g, node)) node = ir_arg(g, node, 0);
  const bool widened = fusion_group_has(l->t->group, node) && ir_at(g, node)->op == IR_OP_cast;
  return widened ? ir_arg(g, node, 0) : node;
}

static uint8_t narrow_type(const contract_local *l, uint32_t node) { return ir_at(l->t->c->graph, narrow_node(l, node))->type.dtype; }

/* Will the panel be copied? Where its elements are memory's as they lie there, or zeros. */
static bool may_copy(const contract_local *l, const local_panel *p) {
  return emit_can_copy(l->t->c->options, kir_t(l->element, (uint8_t)p->unit)) && !fusion_group_has(l->t->group, narrow_node(l, p->node));
}

/* Registers of an item: of its fragments, and of what it fetches, if that cannot be copied. */
static uint32_t fragment_words(const contract_local *l) {
  uint32_t words = 8 * l->cells;
  for (uint32_t i = 0; i < l->panel_count; i++) {
    const uint32_t bytes = l->panel[i].unit * ir_dtypes[l->element].bytes;
    if (!may_copy(l, &l->panel[i])) words += l->panel[i].count * (bytes < 4 ? 1 : bytes / 4);
  }
  return words;
}

static double turns_of(const contract_local *l, const local_need *n, double parts) {
  const double tiles = ceil(n->rows / l->shape.rows) * ceil(n->columns / l->shape.columns) * n->batch * parts;
  return ceil(tiles / l->t->c->options->profile->units);
}

/* Groups that a unit has at hand at once. */
static double beside_of(const contract_local *l, double turns) {
  const uint32_t items = l->cells < MMA_MOST ? RESIDENT : RESIDENT / 2, groups = items > l->items ? items / l->items : 1;
  return turns < groups ? turns : groups;
}

static bool fits_step(contract_local *l, uint32_t number, uint32_t step, const local_need *need) {
  enum { MOST_WORDS = 176 }; /* of 255, beside the operands' fragments and addresses */
  const cost_profile *p = l->t->c->options->profile;
  const local_shape *s = &warp_shapes[number].shape;
  const uint32_t side[2] = {warp_shapes[number].warp_rows, warp_shapes[number].warp_columns};
  const uint32_t items = s->rows / side[0] * (s->columns / side[1]) * l->units.lanes;
  uint64_t elements;
  if (items > p->max_items || side[0] % l->units.size.m || side[1] % l->units.size.n) return false;
  l->cells = side[0] / l->units.size.m * (side[1] / l->units.size.n) * l->t->set.count;
  if (l->cells > most_cells(l) || !size_panels(l, s, step, items, &elements) || fragment_words(l) > MOST_WORDS) return false;
  l->shape = *s;
  l->step = step;
  l->items = items;
  l->warp_rows = side[0], l->warp_columns = side[1];
  l->beside = (uint32_t)beside_of(l, turns_of(l, need, 1));
  return elements * ir_dtypes[l->element].bytes + own_stage(l) <= fusion_most_local(l->t->c->options);
}

/* A line of a row a step, where panels are copied, two steps ahead at least; of many terms that are whole steps, and of one tap. */
static bool fits_line(contract_local *l, uint32_t number, const local_need *need) {
  enum { LINE = 128, LEAST_BUFFERS = 3 };
  const expr_pool *x = l->t->c->graph->pool;
  const uint32_t step = LINE / ir_dtypes[l->element].bytes;
  for (uint32_t i = 0; i < l->panel_count; i++)
    if (!may_copy(l, &l->panel[i])) return false;
  return expr_multiple_of(x, l->terms.dims[l->terms.count - 1]) % step == 0 && fits_step(l, number, step, need) &&
         contract_local_buffers(l) >= LEAST_BUFFERS && need->terms > MANY_STEPS * step;
}

/* Else up to 64 bytes of a row. */
static bool fits_fragments(contract_local *l, uint32_t number, const local_need *need) {
  if (fits_line(l, number, need)) return true;
  for (uint32_t step = 64 / ir_dtypes[l->element].bytes; step >= l->units.size.k; step /= 2)
    if (step % l->units.size.k == 0 && fits_step(l, number, step, need)) return true;
  return false;
}

/* Cycles of all the device for one term of each of the parts, of the shape at hand: what a unit multiplies, or what passes between its
   registers and local memory, and its waits for the group, which other groups hide, and for what is on its way; or what all of them fetch. */
static double fragment_cycles(const contract_local *l, const local_need *n, double parts) {
  enum { LATENCY = 400 }; /* half of that of a cache which all units read: the half that nothing else hides */
  const cost_profile *p = l->t->c->options->profile;
  const double bytes = ir_dtypes[l->element].bytes, sets = l->t->set.count, rows = l->shape.rows, columns = l->shape.columns * sets;
  const double tiles = ceil(n->rows / rows) * ceil(n->columns / l->shape.columns) * n->batch * parts, turns = turns_of(l, n, parts);
  const double warps = l->items / l->units.lanes, moved = tiles * (rows + columns) * bytes / (p->cache_gbs / p->ghz);
  const double work = rows * columns * bytes / p->mma_per_cycle,
               local = (warps * (l->warp_rows + l->warp_columns * sets) + rows + columns) * bytes * p->units * p->ghz / p->l1_gbs;
  const double beside = beside_of(l, turns) * l->step;
  const double waits = may_copy(l, &l->panel[0]) ? LATENCY / (beside * (contract_local_buffers(l) - 1)) : 0;
  const double own = turns * (fmax(work, local) + waits + p->barrier_ns * p->ghz / beside);
  return own > moved ? own : moved;
}

/* Sixteen bytes a fetch, where they are a vector. */
static void widen_panels(contract_local *l) {
  const uint32_t unit = 16 / ir_dtypes[l->element].bytes;
  for (uint32_t i = 0; i < l->panel_count; i++) {
    local_panel *p = &l->panel[i];
    const local_axis *axis = p->by_rows ? &l->terms : p->columns ? &l->columns : &l->rows;
    if (p->unit == LOCAL_VECTOR && takes_vectors(l->t, p, axis, unit)) p->unit = unit;
  }
}

/* Sums of 16-bit floats in f32, in any order, or of bytes in i32, which have no order; has_units has a row for each of these types. */
static bool has_fragments(contract_local *l) {
  const int32_t sum = l->t->type.base;
  l->element = narrow_type(l, l->panel[0].node);
  for (uint32_t i = 1; i < l->panel_count; i++)
    if (narrow_type(l, l->panel[i].node) != l->element) return false;
  if (l->element == SNT_I8 || l->element == SNT_U8) return sum == SNT_I32;
  return (l->element == SNT_F16 || l->element == SNT_BF16) && sum == SNT_F32 && !fusion_keeps_order(l->t->c->options);
}

/* Results leave in vectors, rows of a fragment side by side (contract_mma_store). */
static bool has_units(contract_local *l) {
  if (!has_fragments(l) || !matrix_units_find(l->t->c, l->element, &l->units)) return false;
  const uint32_t across = l->units.size.n / LOCAL_VECTOR;
  if (!across || l->units.size.n % LOCAL_VECTOR || l->units.lanes % across) return false;
  const uint32_t down = l->units.lanes / across;
  return l->units.size.m % down == 0 && l->units.size.m / down <= MMA_MOST;
}

/* Both operands of one type that has fragments, whose last one may end in zeros, of three quarters whole; printed for targets that have them. */
static bool pick_fragments(contract_local *l) {
  const expr_pool *x = l->t->c->graph->pool;
  int64_t terms;
  if (!has_units(l) || !expr_is_const(x, l->terms.extent, &terms)) return false;
  const int64_t whole = (terms + l->units.size.k - 1) / l->units.size.k * l->units.size.k;
  l->padded = whole != terms;
  if (4 * terms < 3 * whole) return false;
  const local_need need = need_of(l);
  double least = INFINITY;
  uint32_t best = IR_COUNT(warp_shapes);
  l->fragments = true;
  widen_panels(l);
  for (uint32_t i = 0; i < IR_COUNT(warp_shapes); i++) {
    if (!fits_fragments(l, i, &need)) continue;
    for (uint32_t parts = 1; parts <= MOST_PARTS; parts *= 2) {
      const double ns = takes_parts(l, l->step, parts) ? time_of(l, &need, parts, fragment_cycles(l, &need, parts)) : INFINITY;
      if (ns >= least) continue;
      least = ns;
      best = i;
      l->parts = parts;
    }
  }
  l->fragments = best < IR_COUNT(warp_shapes) && fits_fragments(l, best, &need);
  for (uint32_t i = 0; i < l->panel_count && !l->fragments; i++)
    if (l->panel[i].unit > 1) l->panel[i].unit = LOCAL_VECTOR;
  return l->fragments;
}

/* Extents from which a tile is more than a few results, of terms that come in whole fours or are a literal. */
static bool is_worth(const contract_local *l) {
  const expr_pool *x = l->t->c->graph->pool;
  int64_t literal;
  if (!expr_is_const(x, l->terms.extent, &literal) && expr_multiple_of(x, l->terms.extent) % LOCAL_VECTOR) return false;
  return l->rows.count && l->columns.count && l->terms.count && schedule_hint(x, l->rows.extent) >= LEAST &&
         schedule_hint(x, l->columns.extent) >= LEAST && schedule_hint(x, l->terms.extent) >= LEAST_TERMS;
}

bool contract_plan_local(contraction *t, contract_local *l) {
  *l = (contract_local){.t = t, .buffers = 2, .slices = 1};
  if (!schedule_shares_local(t->c) || ir_dtypes[t->type.base].bytes != 4) return false;
  find_axes(l);
  if (t->both_lanes || !is_worth(l)) return false;
  find_panels(l);
  t->lanes = LOCAL_VECTOR;
  t->rows = t->vectors = 1;
  if (pick_fragments(l)) return true;
  if (!pick_shape(l)) return false;
  l->items = items_of(l, &l->shape);
  t->rows = l->shape.item_rows;
  t->vectors = l->shape.item_columns / LOCAL_VECTOR;
  l->cells = contract_cells(t);
  return true;
}

/* ---- coordinates, elements of local memory, results ---- */

void contract_place_axis(contract_local *l, const local_axis *axis, ir_expr at, uint32_t unit, ir_expr lane) {
  expr_pool *x = l->t->e->x;
  ir_expr dims[CONTRACT_LABELS], where[CONTRACT_LABELS];
  memcpy(dims, axis->dims, axis->count * sizeof *dims);
  if (unit > 1) dims[axis->count - 1] = expr_div(x, dims[axis->count - 1], unit);
  map_delinear(x, at, axis->count, dims, where);
  for (uint32_t i = 0; i < axis->count; i++) l->t->at[axis->label[i]] = where[i];
  const uint32_t last = axis->label[axis->count - 1];
  if (unit > 1) l->t->at[last] = expr_add(x, expr_mul(x, l->t->at[last], unit), lane);
}

/* Element of row (or column) `own` and term `term` in buffer `buffer`. */
ir_expr contract_local_element(const contract_local *l, const local_panel *p, ir_expr buffer, ir_expr own, ir_expr term) {
  expr_pool *x = l->t->e->x;
  const ir_expr base = expr_mul(x, buffer, p->size);
  if (l->fragments && p->by_rows) return expr_add(x, base, expr_add(x, expr_mul(x, own, l->step + contract_mma_pad(l)), term));
  if (!p->by_rows) return expr_add(x, base, expr_add(x, expr_mul(x, term, contract_term_pitch(l, p, &l->shape)), own));
  const ir_expr skipped = expr_mul(x, expr_div(x, own, LOCAL_VECTOR), LOCAL_VECTOR);
  return expr_add(x, base, expr_add(x, expr_add(x, expr_mul(x, own, l->step), skipped), term));
}

uint32_t contract_local_row(contract_local *l, ir_expr at) {
  emit *e = l->t->e;
  expr_pool *x = e->x;
  const ir_expr row = l->row_at = expr_add(x, expr_mul(x, l->row_tile, (ir_expr)l->shape.rows), at);
  if (l->parts > 1) return 0; /* parts are whole tiles */
  const uint32_t in = emit_inside(e, row, l->rows.extent, l->shape.rows);
  contract_place_axis(l, &l->rows, in ? emit_var_for(e, "m", emit_expr(e, row), 0, l->rows.extent) : row, 1, 0);
  return in;
}

static ir_expr whole_tiles(const contract_local *l, ir_expr extent, uint32_t tile) {
  expr_pool *x = l->t->c->graph->pool;
  return expr_mul(x, expr_ceil_div(x, extent, tile), tile);
}

ir_expr contract_part_place(const contract_local *l, uint32_t member, ir_expr part, ir_expr batch, ir_expr row, ir_expr column) {
  expr_pool *x = l->t->c->graph->pool;
  ir_expr at = expr_add(x, expr_int(x, (int64_t)member * l->parts), part);
  at = expr_add(x, expr_mul(x, at, l->batch.extent), batch);
  at = expr_add(x, expr_mul(x, at, whole_tiles(l, l->rows.extent, l->shape.rows)), row);
  return expr_add(x, expr_mul(x, at, whole_tiles(l, l->columns.extent, l->shape.columns)), column);
}

/* Sums of a part, into the scratch. */
static void store_part(contract_local *l, ir_expr column, uint32_t lane_var, ir_expr lane, const uint32_t *acc) {
  emit *e = l->t->e;
  emit_use_lanes(e, lane_var, LOCAL_VECTOR);
  for (uint32_t s = 0; s < l->t->set.count; s++) {
    const ir_expr at = contract_part_place(l, s, l->part_at, l->batch_at, l->row_at, expr_add(e->x, column, lane));
    emit_store(e, l->scratch_memory, l->t->type.base, at, acc[s * l->t->rows * l->t->vectors]);
  }
  emit_scalar_lanes(e);
}

uint32_t contract_local_unit(const contract_local *l) {
  const local_axis *axis = &l->columns;
  return l->parts > 1 || expr_multiple_of(l->t->c->graph->pool, axis->dims[axis->count - 1]) % LOCAL_VECTOR == 0 ? LOCAL_VECTOR : 1;
}

/* Results of the whole vector, or of its lanes one by one where the columns do not come in whole vectors. */
void contract_local_store(contract_local *l, uint32_t row, ir_expr place, uint32_t lane_var, ir_expr lane, const uint32_t *acc) {
  contraction *t = l->t;
  emit *e = t->e;
  expr_pool *x = e->x;
  const local_axis *axis = &l->columns;
  const uint32_t each = t->rows * t->vectors, tile = l->shape.columns, unit = contract_local_unit(l);
  const uint32_t lanes = e->k->failed ? unit : emit_value_type(e, acc[0]).lanes;
  const ir_expr column = expr_add(x, expr_mul(x, l->column_tile, (ir_expr)tile), place);
  if (l->parts > 1) {
    store_part(l, column, lane_var, lane, acc);
    return;
  }
  for (uint32_t i = 0; i < lanes; i += unit) {
    uint32_t cell[CONTRACT_CELLS];
    const ir_expr at = expr_div(x, expr_add(x, column, i), unit), end = expr_div(x, axis->extent, unit);
    const uint32_t in = emit_inside(e, expr_add(x, column, i), axis->extent, tile);
    for (uint32_t s = 0; s < t->set.count; s++) cell[s * each] = unit == lanes ? acc[s * each] : kir_lane(e->k, acc[s * each], i);
    const bool edge = emit_if_both(e, row, in);
    contract_place_axis(l, axis, in ? emit_var_for(e, "n", emit_expr(e, at), 0, end) : at, unit, lane);
    if (unit > 1) emit_use_lanes(e, lane_var, LOCAL_VECTOR);
    contract_store_cell(t, cell);
    emit_scalar_lanes(e);
    if (edge) emit_if_end(e);
  }
}
