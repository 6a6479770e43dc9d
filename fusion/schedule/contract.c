/* Kind `contract`: matrix products and convolutions with operand prologues and an epilogue on the accumulators.
   One operand is read in vectors along the result's last axis (the *lane* label); the other one element at a time along the *row* label, whose
   rows share those vectors. A work-item takes a share of the tiles: of columns, of an outer axis, of rows, in this order of loops, so that a panel
   of the lane operand stays in a near cache while everything that it meets passes by. Tails overlap the last whole tile. */
#include "fusion/contract_local.h"
#include "fusion/schedules.h"
#include "fusion/winograd.h"

/* Terms that lie next to each other in the operand that is read element by element are innermost. */
static void order_terms(contraction *t) {
  if (fusion_keeps_order(t->c->options)) return;
  int64_t stride[CONTRACT_LABELS];
  for (uint32_t i = 0; i < t->reduced_count; i++) {
    const uint32_t label = t->reduced[i];
    const int64_t own = contract_stride(t, 0, 1 - t->lane_operand, label);
    uint32_t at = i;
    for (; at && stride[at - 1] < own; at--) stride[at] = stride[at - 1], t->reduced[at] = t->reduced[at - 1];
    stride[at] = own;
    t->reduced[at] = label;
  }
}

/* ---- loops over tiles ---- */

/* Passes over the panel at hand: the work-item's tiles of rows, times its share of the outer axis unless each index of that has a panel of its own. */
static int64_t count_passes(const contraction *t, bool by_outer) {
  int64_t rows = 1, outer = 1;
  expr_pool *x = t->e->x;
  if (t->row_axis != CONTRACT_NONE && !expr_is_const(x, expr_sub(x, t->row_tiles[1], t->row_tiles[0]), &rows)) return 0;
  if (!by_outer && t->outer_axis != CONTRACT_NONE && t->outer_range[1] != 0 &&
      !expr_is_const(x, expr_sub(x, t->outer_range[1], t->outer_range[0]), &outer))
    return 0;
  return rows * outer;
}

static bool has_outer_loop(const contraction *t) { return t->outer_axis != CONTRACT_NONE && t->outer_range[1] != 0; }

static void row_body(contraction *t, ir_expr tile, ir_expr row, ir_expr column) {
  expr_pool *x = t->e->x;
  const ir_expr outer = has_outer_loop(t) && !t->ahead.by_outer ? expr_sub(x, t->at[t->out[t->outer_axis]], t->outer_range[0]) : 0;
  t->ahead.pass = expr_add(x, expr_mul(x, outer, expr_sub(x, t->row_tiles[1], t->row_tiles[0])), expr_sub(x, tile, t->row_tiles[0]));
  contract_emit_tile(t, row, column);
}

static void rows_of(contraction *t, ir_expr column) {
  if (t->row_axis == CONTRACT_NONE) {
    contract_emit_tile(t, 0, column);
    return;
  }
  const contract_tiles rows = {"m", t->row_tiles, t->extent[t->out[t->row_axis]], t->rows};
  contract_tile_loop(t, &rows, row_body, column);
}

/* All tiles of rows of the columns at hand: the work-item's share of the outer axis, then of the rows. */
static void sweep_rows(contraction *t, ir_expr tile, ir_expr column, bool panels) {
  ir_expr v = 0;
  if (has_outer_loop(t)) {
    v = emit_steps(t->e, "o", t->outer_range[0], t->outer_range[1], 1);
    t->at[t->out[t->outer_axis]] = v;
  }
  if (panels) {
    contract_open_panels(t, tile, column);
    contract_look_ahead(t, count_passes(t, true), true);
  }
  rows_of(t, column);
  if (has_outer_loop(t)) emit_loop_end(t->e, v, 0, NULL, NULL);
}

static void column_body(contraction *t, ir_expr tile, ir_expr column, ir_expr unused) {
  (void)unused;
  const bool by_outer = has_outer_loop(t) && contract_in_operand(t, t->lane_operand, t->out[t->outer_axis]);
  const int64_t most = t->most_rows * t->most_outer;
  if (!by_outer && contract_open_blocks(t, most)) {
    const ir_expr extent = t->extent[t->reduced[0]];
    const ir_expr b = emit_steps(t->e, "b", 0, extent, t->blocks.size);
    t->blocks.lo = b;
    contract_open_panels(t, tile, column);
    contract_look_ahead(t, most, false);
    sweep_rows(t, tile, column, false);
    emit_loop_end(t->e, b, 0, NULL, NULL);
    t->blocks.summed = true;
  } else if (!by_outer) {
    contract_open_panels(t, tile, column);
    contract_look_ahead(t, count_passes(t, false), false);
  }
  sweep_rows(t, tile, column, by_outer);
  t->blocks = (struct contract_blocks){0};
}

/* ---- sharing out ---- */

typedef struct tile_count {
  ir_expr all, whole; /* one more than whole ones where some elements are left */
} tile_count;
typedef struct shares {
  ir_expr batch, rows, columns, outer, groups; /* parts */
  tile_count row_tiles, column_tiles;
  int64_t outer_per;
} shares;

static tile_count count_tiles(expr_pool *x, ir_expr extent, int64_t step) {
  return (tile_count){expr_ceil_div(x, extent, expr_int(x, step)), expr_div(x, extent, expr_int(x, step))};
}

/* Tiles along each axis, and into how many parts they go; groups are numbered columns first. */
enum { COLUMNS, ROWS, OUTER, BATCH, AXES };
typedef struct sharing {
  int64_t tiles[AXES], parts[AXES];
} sharing;

/* Tiles of the first `groups` groups. */
static int64_t tiles_before(const sharing *s, int64_t groups) {
  int64_t before = 0, tiles = 1, per = 1, part = 1;
  for (uint32_t i = 0; i < AXES; i++) tiles *= s->tiles[i], per *= s->parts[i];
  for (uint32_t i = AXES; i-- > 0; groups %= per) {
    per /= s->parts[i];
    tiles /= s->tiles[i];
    const int64_t at = groups / per, begin = at * s->tiles[i] / s->parts[i];
    before += part * begin * tiles;
    part *= (at + 1) * s->tiles[i] / s->parts[i] - begin;
  }
  return before;
}

/* Time beside that of even shares: each unit takes its part of the groups that are left, in a row; of two, the first one half. */
static double unevenness(const sharing *s, int64_t groups, int64_t units) {
  const int64_t all = tiles_before(s, groups), first = tiles_before(s, (groups + units - 1) / units);
  return 1 + fabs((double)(first * units - all)) / (double)all;
}

/* Nanoseconds of the multiply-adds alone. */
static double compute_ns(const contraction *t) {
  const cost_profile *p = t->c->options->profile;
  expr_pool *x = t->c->graph->pool;
  return (double)schedule_hint(x, ir_tensor_elements(x, &ir_at(t->c->graph, t->set.node[0])->type)) * contract_terms(t) * t->set.count /
         (t->lanes * p->fma_per_cycle * p->ghz * p->units);
}

static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

/* An element is in a window as often as there are taps, and passes once; in a panel it is written and read as often. */
static double bytes_of(const contraction *t, uint32_t operand) {
  const ir_graph *g = t->c->graph;
  const uint32_t node = contract_operand(t, 0, operand);
  if (operand == t->lane_operand && contract_has_form(t, CONTRACT_PANEL)) return 2 * schedule_bytes(t->c, node);
  return schedule_bytes(t->c, fusion_below_window(g, node));
}

static bool is_staged(const contraction *t, uint32_t operand) {
  const ir_graph *g = t->c->graph;
  for (uint32_t node = contract_operand(t, 0, operand);; node = ir_arg(g, node, 0)) {
    for (uint32_t i = 0; i < t->staged_count; i++)
      if (t->staged[i] == node) return true;
    if (!fusion_is_view(g, node)) return false;
  }
}

/* What passes from the far caches: the lane operand once for every part of the rows, the other one for every part of the columns; a staged
   one is read, written and read again for each of those, also where vectors are read from it: then the other one goes along with the rows.
   It is all rows' in each part of them, which are for convolutions along one axis: nothing else of them could be shared out. There a part for each
   unit is enough, since each makes the copy anew.
   Parts are chosen to fill the device evenly and with the least of it. Four turns of every unit fill it without parts of rows, so that none
   waits long for the others; three, where all have as many and every part of the rows would fetch again what the near cache does not keep
   (1536 terms, 384 columns, 101 rows: 1.3 times as fast). */
static double pick_parts(const contraction *t, sharing *s) {
  enum { FEW_TURNS = 4, FEW_EVEN_TURNS = 3, FEW_COPIES = 1 };
  const cost_profile *p = t->c->options->profile;
  const int64_t wanted = (int64_t)p->min_groups, units = p->units > 1 ? (int64_t)p->units : 1;
  const uint32_t again = is_staged(t, t->lane_operand) ? 1 - t->lane_operand : t->lane_operand;
  const double compute = compute_ns(t), lane = bytes_of(t, again);
  double other = 0, best = INFINITY;
  for (uint32_t i = 0; i < t->staged_count; i++) other += 3 * schedule_bytes(t->c, t->staged[i]);
  if (!t->staged_count) other = bytes_of(t, 1 - t->lane_operand);
  const bool copied = t->staged_count && s->tiles[OUTER] == 1; /* by each part of the rows */
  sharing at = *s;
  for (at.parts[COLUMNS] = 1; at.parts[COLUMNS] <= s->tiles[COLUMNS]; at.parts[COLUMNS]++) {
    const int64_t sets = at.parts[BATCH] * at.parts[COLUMNS], enough = ceil_div(wanted, sets);
    const bool fetched_again = at.parts[COLUMNS] == s->tiles[COLUMNS] && lane > (double)p->l2_bytes;
    const int64_t even_turns = copied          ? FEW_COPIES
                               : fetched_again ? FEW_EVEN_TURNS
                                               : FEW_TURNS,
                  few = copied && units < enough ? units : enough;
    double uneven = INFINITY;
    for (int64_t need = 1; need <= 2 * enough && uneven > 1; need = need < few ? few : need < enough ? enough : need + 1) {
      const int64_t by_outer = need < s->tiles[OUTER] ? need : s->tiles[OUTER],
                    by_rows = t->staged_count && s->tiles[OUTER] > 1 ? 1 : ceil_div(need, by_outer);
      at.parts[OUTER] = ceil_div(s->tiles[OUTER], ceil_div(s->tiles[OUTER], by_outer));
      at.parts[ROWS] = by_rows < s->tiles[ROWS] ? by_rows : s->tiles[ROWS];
      const int64_t parts = at.parts[OUTER] * at.parts[ROWS], groups = sets * parts, asked = sets * by_outer * at.parts[ROWS];
      if (need < enough && groups / units < (groups % units == 0 ? even_turns : FEW_TURNS)) continue;
      uneven = unevenness(&at, groups, units);
      const double idle = need >= enough && asked < wanted ? (double)wanted / (double)asked : 1;
      const double copies = (double)at.parts[COLUMNS] * (t->staged_count ? (double)at.parts[ROWS] : 1);
      const double cost = (compute + ((double)parts * lane + copies * other) / p->cache_gbs) * idle * uneven;
      if (cost < best) best = cost, memcpy(s->parts, at.parts, sizeof at.parts);
    }
  }
  return best;
}

/* A padded operand that a kernel before stores is copied by no part. Units wait for it: what is cheaper by 3 % takes 2 % longer (128 channels of 56 x 56, stride
   2), by 13 and 16 % it is 0.85 and 0.90 of the time (512 of 14 x 14, 256 of 28 x 28). */
static void pick_parts_or_store(contraction *t, sharing *s) {
  const cost_profile *p = t->c->options->profile;
  const double least_gain = 0.95;
  sharing apart = *s;
  const double here = pick_parts(t, s);
  if (t->c->options->no_rewrites || !contract_can_store_pad(t)) return;
  t->staged_count = 0;
  if (pick_parts(t, &apart) + p->launch_ns + 2 * schedule_bytes(t->c, t->staged[0]) / p->dram_gbs < least_gain * here)
    *s = apart, t->stored_pad = t->staged[0];
  else t->staged_count = 1;
}

static void pick_shares(contraction *t, shares *s) {
  expr_pool *x = t->c->graph->pool;
  int64_t rows;
  *s = (shares){.batch = 1, .rows = 1, .columns = 1, .outer = 1, .row_tiles = {1, 1}, .outer_per = 1};
  for (int32_t i = 0; i < (int32_t)t->out_rank; i++)
    if (i != t->lane_axis && i != t->row_axis && i != t->outer_axis) s->batch = expr_mul(x, s->batch, t->extent[t->out[i]]);
  s->column_tiles = count_tiles(x, t->extent[t->out[t->lane_axis]], contract_width(t));
  if (t->row_axis != CONTRACT_NONE) s->row_tiles = count_tiles(x, t->extent[t->out[t->row_axis]], t->rows);
  const ir_expr outer = t->outer_axis == CONTRACT_NONE ? 1 : t->extent[t->out[t->outer_axis]];
  sharing into = {
      {schedule_hint(x, s->column_tiles.whole), schedule_hint(x, s->row_tiles.whole), schedule_hint(x, outer), schedule_hint(x, s->batch)},
      {1, 1, 1, 1}};
  for (uint32_t i = 0; i < AXES; i++)
    if (into.tiles[i] < 1) into.tiles[i] = 1;
  into.parts[BATCH] = into.tiles[BATCH];
  pick_parts_or_store(t, &into);
  const int64_t passes = contract_has_form(t, CONTRACT_PANEL) ? contract_most_passes(t) : 0;
  if (passes && contract_literal(t, t->row_axis, &rows) && ceil_div(into.tiles[ROWS] + 1, passes) > into.parts[ROWS])
    into.parts[ROWS] = ceil_div(into.tiles[ROWS] + 1, passes);
  s->columns = expr_min(x, s->column_tiles.whole, expr_int(x, into.parts[COLUMNS]));
  s->outer_per = ceil_div(into.tiles[OUTER], into.parts[OUTER]);
  if (contract_has_form(t, CONTRACT_PANEL)) s->outer_per = 1; /* the panel is one of this outer index */
  s->outer = expr_ceil_div(x, outer, expr_int(x, s->outer_per));
  s->rows = expr_min(x, s->row_tiles.whole, expr_int(x, into.parts[ROWS]));
  s->groups = expr_mul(x, expr_mul(x, s->batch, s->outer), expr_mul(x, s->rows, s->columns));
}

/* Even shares of the whole tiles; what is left belongs to the last part, whose last whole tile it overlaps: no two groups store one element. */
static void take_part(expr_pool *x, const tile_count *tiles, ir_expr parts, ir_expr part, ir_expr out[2]) {
  const ir_expr next = expr_add(x, part, 1), rest = expr_sub(x, tiles->all, tiles->whole);
  out[0] = schedule_part_start(x, tiles->whole, parts, part);
  out[1] = expr_add(x, schedule_part_start(x, tiles->whole, parts, next), expr_mul(x, rest, expr_div(x, next, parts)));
}

static int64_t most_of_part(const expr_pool *x, const tile_count *tiles, ir_expr parts) {
  int64_t all, whole, count;
  if (!expr_is_const(x, tiles->all, &all) || !expr_is_const(x, tiles->whole, &whole) || !expr_is_const(x, parts, &count)) return 0;
  return (whole + count - 1) / count + all - whole;
}

/* Coordinates that the group number fixes. */
static void place_group(contraction *t, const shares *s, ir_expr group) {
  expr_pool *x = t->c->graph->pool;
  const ir_expr tiles = expr_mul(x, s->columns, s->rows), tile = expr_mod(x, group, tiles);
  const bool rows_first = t->chooser != 0; /* those behind a count are left out: a unit's groups in a row are to be of all rows */
  const ir_expr inner = rows_first ? s->rows : s->columns, first = expr_mod(x, tile, inner), second = expr_div(x, tile, inner);
  take_part(x, &s->column_tiles, s->columns, rows_first ? second : first, t->column_tiles);
  take_part(x, &s->row_tiles, s->rows, rows_first ? first : second, t->row_tiles);
  t->most_rows = most_of_part(x, &s->row_tiles, s->rows);
  t->most_outer = 1;
  ir_expr rest = expr_div(x, group, tiles);
  ir_expr outer = expr_mod(x, rest, s->outer);
  rest = expr_div(x, rest, s->outer);
  if (outer < 0) /* a variable of its own: bounds of loops that start at a quotient prove nothing */
    outer = emit_var_for(t->e, "p", emit_expr(t->e, outer), 0, s->outer);
  for (int32_t i = (int32_t)t->out_rank; i-- > 0;) {
    if (i == t->lane_axis || i == t->row_axis || i == t->outer_axis) continue;
    const ir_expr extent = t->extent[t->out[i]];
    t->at[t->out[i]] = extent == 1 ? 0 : expr_mod(x, rest, extent);
    rest = expr_div(x, rest, extent);
  }
  if (t->outer_axis == CONTRACT_NONE) return;
  const ir_expr extent = t->extent[t->out[t->outer_axis]], next = schedule_part_start(x, extent, s->outer, expr_add(x, outer, 1));
  ir_expr lo = schedule_part_start(x, extent, s->outer, outer);
  if (expr_mod(x, extent, s->outer) != 0) lo = emit_var_for(t->e, "o", emit_expr(t->e, lo), 0, extent);
  t->outer_range[0] = t->at[t->out[t->outer_axis]] = lo;
  t->outer_range[1] = 0;
  t->most_outer = s->outer_per;
  if (s->outer_per > 1) t->outer_range[1] = expr_min(x, expr_min(x, expr_add(x, lo, expr_int(x, s->outer_per)), extent), next);
}

static snt_result build_explicit(contraction *t, const contract_guard *guard) {
  shares s;
  pick_shares(t, &s);
  SNT_TRY(contract_store_pad(t));
  emit *e = t->e = emit_begin(t->c, t->group, "contract");
  if (!e) return ir_no_memory(t->c->diag, "schedule");
  t->group_number = emit_group(e, s.groups);
  t->groups = s.groups;
  place_group(t, &s, t->group_number);
  contract_make_lanes(t, t->lanes);
  if (!contract_stage_pads(t, t->outer_range[0], s.outer_per))
    return ir_fail(t->c->diag, SNT_E_INTERNAL, "schedule", t->group->hero, "the region of a staged operand is not affine");
  const contract_tiles columns = {"n", t->column_tiles, t->extent[t->out[t->lane_axis]], contract_width(t)};
  contract_tile_loop(t, &columns, column_body, 0);
  return emit_end(e, s.groups, guard->choice, guard->count, guard->conditions);
}

/* Items whose tiles fill the columns; 0: they do not. */
static uint32_t lane_items(const contraction *t) {
  int64_t columns;
  uint32_t items = CONTRACT_ITEMS;
  if (!contract_literal(t, t->lane_axis, &columns)) return 0;
  while (items && columns % (4 * (int64_t)items * t->vectors)) items /= 2;
  return items;
}

/* Lanes: each item holds rows x two vectors, neighbouring items neighbouring vectors, so that loads of the lane operand are contiguous. */
static snt_result build_lanes(contraction *t, const contract_guard *guard) {
  expr_pool *x = t->c->graph->pool;
  int64_t columns;
  const uint32_t items = lane_items(t);
  (void)expr_is_const(x, t->extent[t->out[t->lane_axis]], &columns);
  emit *e = t->e = emit_begin(t->c, t->group, "contract");
  if (!e) return ir_no_memory(t->c->diag, "schedule");
  shares s = {.batch = 1, .outer = 1, .outer_per = 1, .rows = 1, .row_tiles = {1, 1}};
  s.column_tiles = count_tiles(x, (ir_expr)columns, 4 * (int64_t)items * t->vectors);
  s.columns = s.column_tiles.whole;
  for (int32_t i = 0; i < (int32_t)t->out_rank; i++)
    if (i != t->lane_axis && i != t->row_axis && i != t->outer_axis) s.batch = expr_mul(x, s.batch, t->extent[t->out[i]]);
  if (t->outer_axis != CONTRACT_NONE) s.outer = t->extent[t->out[t->outer_axis]];
  if (t->row_axis != CONTRACT_NONE) {
    s.row_tiles = count_tiles(x, t->extent[t->out[t->row_axis]], t->rows);
    s.rows = s.row_tiles.whole;
  }
  s.groups = expr_mul(x, expr_mul(x, s.batch, s.outer), expr_mul(x, s.rows, s.columns));
  place_group(t, &s, emit_group(e, s.groups));
  contract_make_lanes(t, (ir_expr)items * 4);
  const ir_expr first = expr_mul(x, t->column_tiles[0], (ir_expr)items * 4 * t->vectors);
  if (contract_has_form(t, CONTRACT_PACKED)) (void)contract_open_packed_columns(t, items * 4 * t->vectors, t->column_tiles[0], first);
  rows_of(t, expr_add(x, first, expr_mul(x, emit_item(e, 0, items), 4)));
  return emit_end(e, s.groups, guard->choice, guard->count, guard->conditions);
}

typedef snt_result (*contract_build)(contraction *, const contract_guard *);

/* ---- extents of unknown size ---- */

typedef struct tile_shape {
  uint32_t rows, lanes, vectors, overlap;
} tile_shape;
enum { SHAPES = 5 };

/* Is there as much of an axis where its extent is the most that it can be? */
static bool can_hold(const contraction *t, int32_t axis, int64_t least) {
  int64_t low, high;
  if (axis == CONTRACT_NONE) return least <= 1;
  expr_bounds(t->c->graph->pool, t->extent[t->out[axis]], &low, &high);
  return high >= least;
}

/* A shape that is whole somewhere for some extents. */
static void add_shape(const contraction *t, const tile_shape *s, tile_shape *out, uint32_t *count) {
  if (can_hold(t, t->row_axis, s->rows) && can_hold(t, t->lane_axis, (int64_t)s->lanes * s->vectors - s->overlap)) out[(*count)++] = *s;
}

/* The tile, and what is taken where there are not as many rows, or columns: as many rows as are expected, else one at a time; one vector of columns, else a
   column. The last one fits everything. */
static uint32_t list_shapes(const contraction *t, tile_shape *out) {
  const expr_pool *x = t->c->graph->pool;
  tile_shape s = {t->rows, t->lanes, t->vectors, t->overlap};
  uint32_t count = 0;
  int64_t literal;
  const bool rows_known = contract_literal(t, t->row_axis, &literal), columns_known = contract_literal(t, t->lane_axis, &literal);
  if (rows_known && columns_known) return out[0] = s, 1;
  add_shape(t, &s, out, &count);
  if (!rows_known) {
    const int64_t hint = schedule_hint(x, t->extent[t->out[t->row_axis]]);
    if (hint > 1 && hint < t->rows) s.rows = (uint32_t)hint, add_shape(t, &s, out, &count);
    if (s.rows > 1) s.rows = 1, add_shape(t, &s, out, &count);
  }
  if (!columns_known) {
    s.overlap = 0;
    if (s.vectors > 1) s.vectors = 1, add_shape(t, &s, out, &count);
    s.lanes = 1, add_shape(t, &s, out, &count);
  }
  return count;
}

/* What must be so that the tile at hand is whole somewhere. */
static uint32_t list_conditions(const contraction *t, plan_condition *out) {
  const struct {
    int32_t axis;
    int64_t least;
  } axes[] = {{t->row_axis, t->rows}, {t->lane_axis, contract_width(t)}};
  uint32_t count = 0;
  int64_t literal;
  for (uint32_t i = 0; i < IR_COUNT(axes); i++)
    if (!contract_literal(t, axes[i].axis, &literal) && axes[i].least > 1)
      out[count++] = (plan_condition){t->extent[t->out[axes[i].axis]], axes[i].least, INT64_MAX};
  return count;
}

/* A step for each shape of tile: the first one that fits runs. A column is read where it lies. */
static snt_result build_shapes(contraction *t, contract_build build, uint32_t choice) {
  const contraction start = *t;
  tile_shape shapes[SHAPES];
  plan_condition conditions[2];
  const uint32_t count = list_shapes(t, shapes);
  if (count > 1 && !choice) choice = t->c->plan->steps.count + 1;
  for (uint32_t i = 0; i < count; i++) {
    *t = start;
    t->rows = shapes[i].rows, t->lanes = shapes[i].lanes, t->vectors = shapes[i].vectors, t->overlap = shapes[i].overlap;
    if (t->lanes == 1) memset(t->lane_form, CONTRACT_IN_PLACE, sizeof t->lane_form);
    SNT_TRY(build(t, &(contract_guard){choice, list_conditions(t, conditions), conditions}));
  }
  return SNT_OK;
}

/* ---- entry ---- */

/* The schedule that fits the device and the contraction; NULL: none does. */
static contract_build pick_schedule(contraction *t) {
  enum { FEW_ITEMS = 16 };
  order_terms(t);
  if (schedule_is_explicit(t->c)) return contract_can_stage(t) && contract_settle_lane_operands(t) ? build_explicit : NULL;
  const bool texels = t->c->options->profile->reads == COST_READS_TEXEL;
  if (!texels && !t->staged_count && lane_items(t) >= FEW_ITEMS && contract_settle_lane_operands(t)) return build_lanes;
  if (!contract_fits_flat(t)) return NULL;
  contract_narrow_tile(t);
  return contract_build_flat;
}

/* Bytes that a product reads by words are stored: put together here, each would be computed by itself. */
static bool stores_words(const fusion_context *c, const fusion_group *group) {
  const ir_graph *g = c->graph;
  for (uint32_t i = 0; i < group->count && ir_attr_flag(g, group->hero, IR_ATTR_packed); i++) {
    if (!ir_attr_flag(g, group->nodes[i], IR_ATTR_packed)) continue;
    if (fusion_group_has(group, fusion_through_views(g, ir_arg(g, group->nodes[i], 0)))) return false;
  }
  return true;
}

bool schedule_contract_accepts(const fusion_context *c, const fusion_group *group, const char **why_not) {
  if (ir_at(c->graph, group->hero)->op != IR_OP_contract) return false;
  uint32_t product;
  *why_not = "bytes that are read by words";
  if (!stores_words(c, group)) return false;
  *why_not = "a padded operand that is not read through texels";
  if (!contract_pads_fit(c, group)) return false;
  if (!contract_staged_producer(c, group, &product)) return contract_set_fits(c, group, why_not);
  *why_not = "a convolution whose rows cannot be staged";
  return schedule_staged_accepts(c, group);
}

/* Through local memory where the device has it near. Rows of unknown number may be few: then the tiles of an item. */
static bool build_local(contraction *t, snt_result *result) {
  enum { ENOUGH = 16 };
  contract_local local;
  int64_t literal;
  const contraction start = *t;
  order_terms(t);
  if (!contract_plan_local(t, &local)) {
    *t = start;
    return false;
  }
  contraction few = start;
  const bool varies = !contract_literal(&start, start.row_axis, &literal) && local.rows.count == 1;
  contract_build build = varies && contract_pick_tile(&few) ? pick_schedule(&few) : NULL;
  if (build != build_lanes || contract_has_form(&few, CONTRACT_PACKED))
    build = NULL; /* a kernel more, and the weights once more, are not worth it */
  const plan_condition enough = {start.row_axis == CONTRACT_NONE ? 1 : t->extent[t->out[t->row_axis]], ENOUGH, INT64_MAX};
  const uint32_t choice = build ? t->c->plan->steps.count + 1 : 0;
  *result = contract_build_local(&local, &(contract_guard){choice, build ? 1 : 0, &enough});
  if (*result == SNT_OK && build) *result = build_shapes(&few, build, choice);
  return true;
}

/* What no tile fits (unknown columns, tiny extents, both operands along the lanes of a device that forms its own vectors) is computed element by
   element in the loop schedule. */
snt_result schedule_contract_build(fusion_context *c, const fusion_group *group) {
  enum { MANY_TERMS = 32 }; /* for conditions of rows to be asked before */
  contraction t = {.c = c, .group = group, .type = emit_compute_type(NULL, ir_at(c->graph, group->hero)->type.dtype, 1)};
  const bool explicit = schedule_is_explicit(c);
  bool output;
  const winograd_form *form = winograd_of(c, group->hero, &output);
  if (form) return schedule_winograd_build(c, group, form, output);
  uint32_t product;
  if (contract_staged_producer(c, group, &product)) return schedule_staged_build(c, group);
  contract_set_find(c, group, &t.set);
  if (!contract_read_labels(&t) || !contract_pick_axes(&t) || (t.both_lanes && !explicit)) return schedule_loop_build(c, group);
  snt_result result = SNT_OK;
  if (explicit ? contract_build_depthwise(&t, &result) : build_local(&t, &result)) return result;
  for (uint32_t i = 0; i < 2 * t.set.count; i++) contract_find_pads(&t, contract_operand(&t, i / 2, i % 2));
  if (t.set.count == 1 && contract_terms(&t) >= MANY_TERMS) t.chooser = emit_chooser(c, group, group->hero);
  if (!contract_pick_tile(&t)) return schedule_loop_build(c, group);
  const contract_build build = pick_schedule(&t);
  return build ? build_shapes(&t, build, 0) : schedule_loop_build(c, group);
}
