/* What a group costs on the profile: operations with recompute, streams by first touch and repeats, registers by a proxy. The same function prices
   parts and unions, so that the difference is the saving. All extents at the hints of their symbols. */
#include "fusion/contract_set.h"
#include "fusion/fragments.h"
#include "fusion/group/private.h"
#include "fusion/image.h"
#include "fusion/schedule_common.h"
#include <stddef.h>
#include <math.h>

static double elements_of(const fusion_context *c, uint32_t node) { return c->elements[node]; }
static double bytes_of(const fusion_context *c, uint32_t node) {
  return elements_of(c, node) * ir_dtypes[ir_at(c->graph, node)->type.dtype].bytes;
}

double group_contract_depth(const fusion_context *c, uint32_t node) {
  const ir_graph *g = c->graph;
  uint32_t count, kept_count;
  const ir_expr *labels = ir_attr_ints(g, node, IR_ATTR_lhs, &count), *kept = ir_attr_ints(g, node, IR_ATTR_out, &kept_count);
  double depth = 1;
  for (uint32_t i = 0; i < count; i++)
    if (fusion_find_label(kept, kept_count, labels[i]) < 0)
      depth *= (double)schedule_hint(g->pool, ir_at(g, ir_arg(g, node, 0))->type.dims[i]);
  return depth;
}

/* The stencil without a ring of rows that the group computes; 0: none. */
static uint32_t flat_stencil(const fusion_context *c, const fusion_group *group) {
  if (schedule_is_explicit(c)) return 0;
  if (group->kind == GROUP_WINDOW) return ir_at(c->graph, group->hero)->op == IR_OP_contract ? group->hero : 0;
  for (uint32_t i = 0; group->kind == GROUP_IMAGE && i < group->count; i++)
    if (ir_at(c->graph, group->nodes[i])->op == IR_OP_contract) return group->nodes[i];
  return 0;
}

/* Items have strips where all that they read are texels (schedule/window_lanes.c). */
static bool reads_texels(const fusion_context *c, const fusion_group *group) {
  if (c->options->profile->reads == COST_READS_TEXEL) return true;
  for (uint32_t i = 0; i < group->input_count; i++)
    if (ir_at(c->graph, group->inputs[i])->op != IR_OP_const && !fusion_image_layout(c, group->inputs[i])) return false;
  return true;
}

/* Under such a stencil four columns of a few rows are computed with the margin that the taps need, where an item has a strip of them; else each tap. */
static double stencil_times(const fusion_context *c, const fusion_group *group, uint32_t hero) {
  enum { COLUMNS = 4, ROWS = 4, MAX_AXES = 2 };
  if (!reads_texels(c, group)) return group_contract_depth(c, hero);
  double taps[MAX_AXES] = {1, 1}, times = 1;
  uint32_t count, out_count, found = 0;
  const ir_expr *lhs = ir_attr_ints(c->graph, hero, IR_ATTR_lhs, &count), *out = ir_attr_ints(c->graph, hero, IR_ATTR_out, &out_count);
  const ir_tensor *t = &ir_at(c->graph, ir_arg(c->graph, hero, 0))->type;
  for (uint32_t i = count; i-- > 0 && found < MAX_AXES;) {
    if (fusion_find_label(out, out_count, lhs[i]) < 0) taps[found++] = (double)schedule_hint(c->graph->pool, t->dims[i]);
  }
  times = (COLUMNS - 1 + taps[0]) / COLUMNS;
  return times * (taps[1] > 1 ? (ROWS - 1 + taps[1]) / ROWS : 1);
}

/* A value below overlapping windows that are reduced is computed for every tap, behind the tests of their borders; plain operators of
   several taps do not wait for each other. */
static double window_factor(const fusion_context *c, uint32_t hero, uint32_t node) {
  enum { BEHIND_TESTS = 2 };
  const double own = elements_of(c, node), taps = elements_of(c, ir_arg(c->graph, hero, 0));
  return own > 0 && taps > own ? BEHIND_TESTS * taps / own : 1;
}

/* Neighbouring results of a contraction that share one evaluation of a prologue: those of a vector and a few more; or an item's own, since all lanes of a
   group evaluate what they share. */
static double sharing(const fusion_context *c) { return schedule_is_explicit(c) ? 16 : 8; }

/* How many times an element of a prologue is computed: once, unless its consumer in the group reads it again in other iterations; of a contraction
   at least a margin of it twice, so that an epilogue is preferred. What of that the group decides is found once. */
typedef enum { ONCE, STENCIL, WINDOW, PROLOGUE } recompute_rule;
typedef struct recompute {
  recompute_rule rule;
  double turn;          /* of what a plain operator takes, its turn at the ports: beside other taps of a window, or of a tile's sums */
  uint32_t first, last; /* nodes of which each waits for nothing of its own element */
  double times;         /* of a stencil; all terms of a contraction */
  uint32_t below;       /* what is computed again comes before it */
  uint32_t alone;       /* 1 + number of the operands whose elements are computed one by one; 0: of none */
  bool units;           /* what is summed may go to matrix units */
  group_copies copies;  /* of a prologue */
} recompute;

/* Dear functions of a prologue that all lanes share are computed one by one (plain operators hide beside the sums), again for each tile of
   columns: of two vectors with 16 registers, of four with 32. */
static double sharing_alone(const cost_profile *p) {
  enum { REGISTERS = 8 }; /* for each vector of a tile's row */
  return p->registers / REGISTERS * p->lanes / GROUP_ALONE;
}

/* The contraction behind which everything is made of sums, row by row: the first; of products side by side the hero, since what one of them reads may
   stand behind another. */
static uint32_t first_sums(const fusion_context *c, const fusion_group *group, recompute_rule rule) {
  uint32_t i = 0;
  if (ir_at(c->graph, group->hero)->op != IR_OP_contract) return UINT32_MAX - 1;
  while (rule != PROLOGUE && ir_at(c->graph, group->nodes[i])->op != IR_OP_contract) i++;
  return rule == PROLOGUE ? group->hero : group->nodes[i];
}

static void find_recompute(const fusion_context *c, const fusion_group *group, recompute *r) {
  const uint32_t hero = group->hero;
  const uint16_t op = ir_at(c->graph, hero)->op;
  r->rule = ONCE, r->times = 1, r->below = hero, r->alone = 0, r->units = !schedule_is_explicit(c);
  r->turn = r->units ? 1 : fmin(1, cost_turn_cycles(c->options->profile) / c->options->profile->op_cycles);
  const uint32_t stencil = flat_stencil(c, group);
  uint32_t product;
  if (stencil) r->rule = STENCIL, r->times = stencil_times(c, group, stencil), r->below = stencil;
  else if (ir_ops[op].flags & IR_REDUCE) {
    r->rule = fusion_has_taps(c->graph, ir_arg(c->graph, hero, 0)) ? WINDOW : ONCE;
  } else if (group->kind == GROUP_CONTRACT && !contract_staged_producer(c, group, &product)) {
    const uint32_t lanes = r->units ? 0 : contract_lane_operands(c->graph, hero);
    r->rule = PROLOGUE, r->times = elements_of(c, hero) * group_contract_depth(c, hero);
    if (lanes == 1 || lanes == 2) r->alone = 3 - lanes;
    group_find_copies(c, group, &r->copies);
  }
  r->first = r->rule == WINDOW ? 0 : first_sums(c, group, r->rule) + 1;
  r->last = r->rule == WINDOW ? hero : UINT32_MAX;
}

/* Matrix units take elements as they are before they are widened. */
static bool is_taken_narrow(const fusion_context *c, uint32_t hero, uint32_t node) {
  const ir_node *n = ir_at(c->graph, node);
  matrix_units units;
  return n->op == IR_OP_cast && n->type.dtype == ir_at(c->graph, hero)->type.dtype &&
         matrix_units_find(c, ir_at(c->graph, ir_arg(c->graph, node, 0))->type.dtype, &units);
}

/* Bytes of an element as matrix units would take the operand: before a cast that widens it, in the group or not. 0: they do not. */
static uint32_t bytes_on_units(const fusion_context *c, uint32_t contract, uint32_t operand) {
  uint32_t node = ir_arg(c->graph, contract, operand);
  if (is_taken_narrow(c, contract, node)) node = ir_arg(c->graph, node, 0);
  const int32_t element = ir_at(c->graph, node)->type.dtype;
  matrix_units units;
  return matrix_units_find(c, element, &units) ? ir_dtypes[element].bytes : 0;
}

static bool is_on_units(const fusion_context *c, uint32_t contract) {
  if (!(c->options->profile->mma_per_cycle > 0)) return false;
  const uint32_t bytes = bytes_on_units(c, contract, 0);
  return bytes && bytes == bytes_on_units(c, contract, 1);
}

/* Multiply-adds of lanes, of which contractions reach a share, in whose time matrix units make one. */
static double mma_share(const fusion_context *c, uint32_t contract) {
  const cost_profile *p = c->options->profile;
  if (!is_on_units(c, contract)) return 1;
  return fmin(1, p->lanes * p->fma_per_cycle * p->contract_share * bytes_on_units(c, contract, 0) / p->mma_per_cycle);
}

static double recompute_factor(const fusion_context *c, const fusion_group *group, const recompute *r, uint32_t node) {
  if (r->rule == ONCE || node >= r->below) return 1;
  if (r->rule == STENCIL) return r->times;
  if (r->rule == WINDOW) return window_factor(c, group->hero, node);
  if (r->units && is_taken_narrow(c, group->hero, node)) return 1;
  bool alone = false, feeds = false;
  for (uint32_t i = 0; i < 2 * r->copies.set.count; i++) {
    const uint32_t o = i % 2;
    if (!group_feeds_contraction(c, group, ir_arg(c->graph, r->copies.set.node[i / 2], o), node, 0)) continue;
    if (r->copies.times[i / 2][o] > 0) return r->copies.times[i / 2][o];
    alone |= r->alone == o + 1 && c->facts[node].rate == FUSION_SPECIAL;
    feeds = true;
  }
  if (!feeds) return 1; /* of an epilogue, wherever it stands */
  const double own = elements_of(c, node), times = own > 0 ? r->times / own / (alone ? sharing_alone(c->options->profile) : sharing(c)) : 1;
  return times > GROUP_MARGIN ? times : GROUP_MARGIN;
}

/* Of operators that are priced as so many plain ones, where the profile has a number for them. */
static double beyond_plain(const fusion_context *c, uint32_t op, double plain) {
  const cost_profile *p = c->options->profile;
  return p->cycles[op][COST_F32] > 0 ? (double)p->cycles[op][COST_F32] - plain * p->op_cycles : 0;
}

/* Neighbouring results come from anywhere; a gather along an outer axis reads whole rows. */
static bool gathers_lanes(const fusion_context *c, uint32_t node) {
  const ir_tensor *from = &ir_at(c->graph, ir_arg(c->graph, node, 0))->type;
  return ir_attr_int(c->graph, node, IR_ATTR_axis, 0) == (ir_expr)from->rank - 1;
}

/* Beyond its multiplication a tap of a stencil is a vector that crosses cache lines, behind the test of its row; and each value is put into the ring of
   rows once. */
static double tap_cycles(const fusion_context *c, uint32_t node) {
  const cost_profile *p = c->options->profile;
  return elements_of(c, node) * (group_contract_depth(c, node) + 1) * (2 * p->vector_load_cycles + p->op_cycles);
}

/* A small value broadcast to many elements is computed for each of them when it is inlined in a flat loop; where all lanes have the same one, by itself in
   every row of results, or share of one, that a work-item walks. */
static double times_inlined(const fusion_context *c, double own, double items, uint8_t lanes) {
  const cost_profile *p = c->options->profile;
  const double rows = (own > p->min_groups ? own : p->min_groups) * p->lanes;
  return lanes == FUSION_SAME && rows < items ? rows : items;
}

/* How often each member is computed, beside once for each of its elements; null: as that. */
typedef struct member_times {
  const uint8_t *sweeps, *lanes;       /* of rows; FUSION_BESIDE ... */
  const double *joined, *maps, *reach; /* elements of a concatenation; for being read at several places; results that need it */
} member_times;

/* Operations an element: short lines are compared with all of the line, longer ones merged element by element, flags counted,
   of the first few each is compared twice with that many, in vectors (schedule/sort.c, sort_first.c); through PoCL
   on a Zen 3 they are 0.3 of what is measured for lines of 64 and 100, 0.6 of 3234, 0.5 of 91 000, 0.9 of 4096, 1.5 of 512. */
static double sort_operations(const fusion_context *c, uint32_t node) {
  enum { A_COMPARISON = 6, LONGEST = 512, A_FLAG = 16 };
  const int64_t length = schedule_hint(c->graph->pool, ir_at(c->graph, node)->type.dims[ir_attr_int(c->graph, node, IR_ATTR_axis, 0)]);
  if (schedule_sorts_flags(c->graph, node)) return A_FLAG;
  const int64_t first = schedule_sort_first(c, node), compared = first ? 2 * first + 1 : length;
  return A_COMPARISON * (double)(compared < LONGEST ? compared : LONGEST);
}

/* Where items share a row, how often a vector beside all rows is computed: once for each. 0: not here. */
static double rows_beside(const fusion_context *c, const fusion_group *group) {
  const bool rows = group->kind == GROUP_ROW || group->kind == GROUP_REDUCE;
  if (!rows || schedule_is_explicit(c) || !(ir_ops[ir_at(c->graph, group->hero)->op].flags & IR_REDUCE)) return 0;
  return group_reduces_rows(c->graph, group->hero) ? elements_of(c, group->hero) : 0;
}

/* What is one value a row is no such vector, in a square of rows either. */
static bool lies_beside(const fusion_context *c, const fusion_group *group, uint32_t node) {
  const ir_tensor *t = &ir_at(c->graph, node)->type;
  uint32_t steps = 64;
  if (!t->rank || t->dims[t->rank - 1] == 1 || (group->kind == GROUP_REDUCE && node > group->hero)) return false;
  return !schedule_depends_on_reduction(c, group, node, &steps);
}

static void add_operations(const fusion_context *c, const fusion_group *group, const member_times *m, const recompute *again,
                           cost_work *w) {
  enum { ONE_BY_ONE = 8 }; /* times as long as where the functions of a texel do not wait for each other: 5 to 11 were measured */
  const double items = elements_of(c, group->hero);
  const bool columns = group->kind == GROUP_REDUCE && m->lanes && !group_reduces_rows(c->graph, group->hero);
  const double rows = rows_beside(c, group), vector = rows > 1 ? elements_of(c, ir_arg(c->graph, group->hero, 0)) / rows : 0;
  for (uint32_t i = 0; i < group->count; i++) {
    const uint32_t node = group->nodes[i];
    const fusion_facts *f = &c->facts[node];
    const double own = elements_of(c, node);
    const double made = (m->maps ? m->maps[i] : 1) * recompute_factor(c, group, again, node);
    double times = own * made * (m->sweeps ? m->sweeps[i] : 1);
    const double needed = m->reach ? m->reach[i] : items;
    if (group->kind == GROUP_LOOP && times < needed) times = times_inlined(c, own, needed, m->lanes ? m->lanes[i] : FUSION_BESIDE);
    if (columns && m->lanes[i] == FUSION_SAME && node < group->hero)
      times *= c->options->profile->min_groups; /* a vector beside rows: each work-item has its own */
    if (own == vector && lies_beside(c, group, node)) times *= rows;
    if (m->joined && times < m->joined[i]) times = m->joined[i];
    if (f->rate) {
      const double turn = node >= again->first && node < again->last && f->rate == FUSION_PLAIN ? again->turn : 1;
      times *= turn;
      *(f->rate == FUSION_PLAIN ? &w->ops : f->rate == FUSION_SPECIAL ? &w->specials : &w->divs) += times;
      w->extra_cycles += times * f->own_cycles;
      w->recompute_cycles += (times - turn * own) * f->cycles;
      continue;
    }
    const ir_node *n = ir_at(c->graph, node);
    const uint8_t flags = ir_ops[n->op].flags;
    if (n->op == IR_OP_contract) {
      const double steps = ir_attr_flag(c->graph, node, IR_ATTR_packed) ? fmax(1, c->options->profile->dot4_steps) : 1;
      w->fmas += steps * mma_share(c, node) * elements_of(c, node) * group_contract_depth(c, node);
      if (group->kind == GROUP_WINDOW && schedule_is_explicit(c)) w->extra_cycles += tap_cycles(c, node);
    } else if (flags & IR_REDUCE) {
      const double once = elements_of(c, ir_arg(c->graph, node, 0)), terms = once * made;
      w->ops += terms;
      w->recompute_cycles += (terms - once) * f->cycles;
      w->extra_cycles += terms * f->own_cycles + times * f->end_cycles;
    } else if (flags & IR_SCAN) {
      w->ops += 2 * elements_of(c, node);
      w->extra_cycles += elements_of(c, node) * beyond_plain(c, n->op, 2);
    } else if (n->op == IR_OP_loop && fusion_register_loop(c, node)) {
      const fusion_body *body = fusion_register_loop(c, node);
      w->ops += times * (double)schedule_hint(c->graph->pool, body->trips) * body->graph.nodes.count;
    } else if (n->op == IR_OP_opaque) w->ops += elements_of(c, node);
    else if (n->op == IR_OP_argsort) w->index_ops += elements_of(c, node) * sort_operations(c, node);
    else if (n->op >= IR_OP_scatter_set && n->op <= IR_OP_scatter_max) {
      w->ops += elements_of(c, node) + elements_of(c, ir_arg(c->graph, node, 2));
      w->index_ops += 8 * elements_of(c, ir_arg(c->graph, node, 1));
    } else if (n->op == IR_OP_gather) {
      w->index_ops += times * 4;
      if (gathers_lanes(c, node)) w->extra_cycles += times * beyond_plain(c, n->op, 4);
    }
  }
  if (group->kind == GROUP_SCAN && c->options->profile->reads == COST_READS_TEXEL) /* an item that walks a line has an element at a time */
    w->specials *= ONE_BY_ONE;
}

/* Positions of a staged row: the tiles of the contraction over it read all of the other operand. */
static double row_length(const fusion_context *c, uint32_t producer) {
  const ir_tensor *t = &ir_at(c->graph, producer)->type;
  return t->rank < 2 ? 1 : (double)schedule_hint(c->graph->pool, t->dims[t->rank - 2]);
}

/* Rows of a product that a depthwise convolution reads: how often one is made, counting those at the seams of work-items (schedule/depthwise.c). */
IR_COLD static double rows_made(const fusion_context *c, uint32_t producer, uint32_t product) {
  const ir_graph *g = c->graph;
  const uint32_t window = product ? contract_window_operand(g, producer) : 0;
  if (!window || ir_at(g, ir_arg(g, window, 0))->type.rank < 3) return 1;
  const ir_tensor *t = &ir_at(g, window)->type, *padded = &ir_at(g, ir_arg(g, window, 0))->type;
  const double taps = (double)schedule_hint(g->pool, t->dims[t->rank - 2]);
  const double rows = elements_of(c, ir_arg(g, window, 0)) / (double)schedule_hint(g->pool, padded->dims[padded->rank - 1]) /
                      (double)schedule_hint(g->pool, padded->dims[padded->rank - 2]);
  return 1 + CONTRACT_ROW_SHARES * c->options->profile->units * (taps - 1) / rows;
}

/* As contraction_reads, where one contraction computes the rows of another: constants are read once a row; what the rows are made of, once. */
static double staged_reads(const fusion_context *c, const fusion_group *group, uint32_t producer, uint32_t product, uint32_t input) {
  if (product && group_feeds_contraction(c, group, product, input, 0)) {
    const uint32_t lanes = contract_lane_operands(c->graph, product) & 1 ? 0 : 1;
    const bool constant = group_feeds_contraction(c, group, ir_arg(c->graph, product, lanes), input, 0);
    return constant ? rows_made(c, producer, product) * elements_of(c, product) * group_contract_depth(c, product) / row_length(c, producer)
                    : 0;
  }
  if (group_feeds_contraction(c, group, producer, input, 0) || !group_feeds_contraction(c, group, group->hero, input, 0)) return 0;
  return elements_of(c, group->hero) * group_contract_depth(c, group->hero) / row_length(c, producer);
}

/* How often the contractions of the group read an input: one pass over it for each tile of the other operand's axis. */
static double contraction_reads(const fusion_context *c, const fusion_group *group, uint32_t input, double tile) {
  double reads = 0;
  uint32_t product;
  const uint32_t producer = contract_staged_producer(c, group, &product);
  if (producer) return staged_reads(c, group, producer, product, input);
  for (uint32_t i = 0; i < group->count; i++) {
    const uint32_t node = group->nodes[i];
    if (ir_at(c->graph, node)->op != IR_OP_contract) continue;
    for (uint32_t o = 0; o < 2; o++)
      if (group_feeds_contraction(c, group, ir_arg(c->graph, node, o), input, 0)) {
        const double own = elements_of(c, node) * group_contract_depth(c, node) / tile;
        if (own > reads) reads = own; /* contractions of one tile read it together */
      }
  }
  return reads;
}

/* Each input that a prologue reads beside its contraction's operands is one more load in the inner loop. */
static void add_prologue_loads(const fusion_context *c, const fusion_group *group, const recompute *r, cost_work *w) {
  if (r->rule != PROLOGUE) return;
  for (uint32_t k = 0; k < 2 * r->copies.set.count; k++) {
    const uint32_t node = r->copies.set.node[k / 2], from = ir_arg(c->graph, node, k % 2);
    uint32_t loads = 0;
    if (from == r->copies.panel[k / 2]) group_add_panel(c, group, from, w);
    if (r->copies.times[k / 2][k % 2] > 0) continue;
    for (uint32_t i = 0; i < group->input_count; i++) loads += group_feeds_contraction(c, group, from, group->inputs[i], 0);
    if (loads > 1)
      w->extra_cycles += (loads - 1) * elements_of(c, node) * group_contract_depth(c, node) / sharing(c) *
                         c->options->profile->scalar_load_cycles;
  }
}

static double elements_touched(const fusion_context *c, const fusion_group *group, uint32_t input) {
  const double all = elements_of(c, input);
  if (!c->facts[input].partly) return all;
  uint32_t parts[FUSION_MOST_PARTS];
  const uint32_t count = fusion_parts_read(c, group, input, parts);
  double touched = 0;
  for (uint32_t i = 0; i < count; i++) touched += c->elements[parts[i]];
  return count && touched < all ? touched : all;
}

static cost_stream read_stream(const fusion_context *c, const fusion_group *group, uint32_t node, uint32_t sweeps) {
  enum { TILE = 64, TILE_ON_UNITS = 128 }; /* rows, and columns, that share what is read */
  const double bytes = elements_touched(c, group, node) * ir_dtypes[ir_at(c->graph, node)->type.dtype].bytes;
  cost_stream s = {.bytes = bytes, .accesses = bytes};
  if (group->kind == GROUP_CONTRACT) {
    const double tile = ir_at(c->graph, group->hero)->op == IR_OP_contract && is_on_units(c, group->hero) ? TILE_ON_UNITS : TILE;
    const double all = contraction_reads(c, group, node, tile) * ir_dtypes[ir_at(c->graph, node)->type.dtype].bytes;
    s.accesses = s.bytes > all ? s.bytes : all;
    s.reuse_bytes = s.bytes;
  }
  if (group->kind == GROUP_ROW) { /* later sweeps find the row in a near cache */
    s.accesses = sweeps * s.bytes;
    s.reuse_bytes = 16384;
  }
  return s;
}

/* Cycles of each lane of a result of a contraction whose neighbours along the vectors do not lie together: it is taken out and stored by
   itself, a store each where their lines spread over the near cache; where they meet in half of its sets or fewer, or each is made narrower
   first, twice that. 0: they lie together. */
static double stores_across(const fusion_context *c, const fusion_group *group, uint32_t node) {
  enum { A_STORE = 1, DEAR = 2, FEW_SETS = 2 * FUSION_LINE };
  expr_pool *x = c->graph->pool;
  const ir_tensor *t = &ir_at(c->graph, group->hero)->type;
  if (group->kind != GROUP_CONTRACT || !schedule_is_explicit(c) || node == group->hero) return 0;
  const uint32_t lane = group_last_axis(t);
  map_access at = {.rank = t->rank};
  if (!lane) return 0;
  const ir_expr v = at.at[lane - 1] = expr_var_add(x, "v", 0, t->dims[lane - 1], 1);
  int64_t coef = 0;
  ir_expr rest;
  if (v >= 0 || !fusion_forward_within(c, group, group->hero, node, &at)) return 0;
  if (!expr_split_affine(x, fusion_stored_offset(c, node, &at), (uint32_t)x->nodes.at[IR_EXPR_NODE(v)].value, &coef, &rest)) coef = 0;
  if (coef == 1) return 0;
  const int32_t dtype = ir_at(c->graph, node)->type.dtype;
  return dtype == SNT_F32 && coef * ir_dtypes[dtype].bytes % FEW_SETS ? A_STORE : DEAR;
}

/* A depthwise convolution reads its source in place; what it has to compute first it computes into a copy, written once and read once. */
static void add_copy(const fusion_context *c, const fusion_group *group, cost_work *w) {
  if (group->kind != GROUP_CONTRACT || !schedule_is_explicit(c) || contract_lane_operands(c->graph, group->hero) != 3) return;
  for (uint32_t i = 0; i < group->count && group->nodes[i] < group->hero && w->stream_count + 2 <= COST_MAX_STREAMS; i++) {
    const uint32_t node = group->nodes[i];
    if (elements_of(c, node) * 4 < elements_of(c, group->hero) || !group_feeds_contraction(c, group, group->hero, node, 0)) continue;
    const cost_stream copy = {.bytes = bytes_of(c, node), .accesses = bytes_of(c, node)};
    w->streams[w->stream_count++] = copy;
    w->streams[w->stream_count] = copy;
    w->streams[w->stream_count++].write = true;
    return;
  }
}

/* Staged rows are written and read in a near cache. */
static void add_rows(const fusion_context *c, const fusion_group *group, cost_work *w) {
  uint32_t product;
  if (group->kind != GROUP_CONTRACT || w->stream_count + 2 > COST_MAX_STREAMS) return;
  const uint32_t producer = contract_staged_producer(c, group, &product);
  if (!producer) return;
  const ir_tensor *t = &ir_at(c->graph, producer)->type;
  const double channels = t->rank ? (double)schedule_hint(c->graph->pool, t->dims[t->rank - 1]) : 1;
  const double row = channels * row_length(c, producer) * ir_dtypes[t->dtype].bytes, made = rows_made(c, producer, product);
  w->streams[w->stream_count++] = (cost_stream){.accesses = 2 * bytes_of(c, producer), .reuse_bytes = row};
  if (!product) return;
  w->fmas += (made - 1) * elements_of(c, product) * group_contract_depth(c, product);
  w->streams[w->stream_count++] = (cost_stream){.accesses = (made + 1) * bytes_of(c, product), .reuse_bytes = 4 * row};
}

/* Few results of a contraction share an element; others read as much as they stream. */
static double elements_read(const fusion_context *c, const fusion_group *group, uint32_t node, const cost_stream *s) {
  const double own = s->accesses / ir_dtypes[ir_at(c->graph, node)->type.dtype].bytes,
               shared = group->kind == GROUP_CONTRACT ? contraction_reads(c, group, node, sharing(c)) : 0;
  return shared > own ? shared : own;
}

/* A broadcast input is small whatever reads it; a gathered table is touched where the indices say. */
static void add_streams(const fusion_context *c, const fusion_group *group, const uint8_t *sweeps, cost_work *w) {
  group_down down = {0};
  if (group->kind == GROUP_ROW || group->kind == GROUP_REDUCE) down = group_find_down(c, group);
  for (uint32_t i = 0; i < group->input_count && w->stream_count < COST_MAX_STREAMS; i++) {
    const cost_stream *s = &w->streams[w->stream_count];
    const double narrow = c->has_narrow ? fusion_narrow_cycles(c, group->inputs[i], false) : 0;
    w->streams[w->stream_count++] = read_stream(c, group, group->inputs[i], sweeps ? sweeps[i] : 2);
    down.arrays += elements_of(c, group->inputs[i]) >= down.full;
    if (narrow > 0) w->extra_cycles += narrow * elements_read(c, group, group->inputs[i], s);
  }
  for (uint32_t i = 0; i < group->output_count && w->stream_count < COST_MAX_STREAMS; i++) {
    const double bytes = bytes_of(c, group->outputs[i]);
    const double across = stores_across(c, group, group->outputs[i]);
    const float strided = down.apart > 0 ? group_stores_down(c, group, group->outputs[i], &down) : 0;
    w->extra_cycles += across * elements_of(c, group->outputs[i]) * c->options->profile->lanes;
    w->streams[w->stream_count++] = (cost_stream){.bytes = bytes, .accesses = bytes, .write = true, .strided = across > 0 ? 1 : strided};
    if (c->has_narrow) w->extra_cycles += fusion_narrow_cycles(c, group->outputs[i], true) * elements_of(c, group->outputs[i]);
  }
  if (down.apart > 0) w->waited = group_waits_down(c, group, &down);
}

/* Work-items, or lanes of a processor, that can be busy: a reduction is shared out over its operand, a row kernel gives each row to one workgroup. */
static double parallel_items(const fusion_context *c, const fusion_group *group) {
  const cost_profile *p = c->options->profile;
  const double own = elements_of(c, group->hero);
  if (!(ir_ops[ir_at(c->graph, group->hero)->op].flags & IR_REDUCE)) return own;
  const double all = elements_of(c, ir_arg(c->graph, group->hero, 0)), shared = own * (schedule_is_explicit(c) ? p->lanes : p->row_items);
  return group->kind == GROUP_ROW && shared < all ? shared : all;
}

/* The most values alive at once when the members of one element are computed in graph order; each stays until its last reader. *crowded:
   values made while more than `room` are. From the last member back: what is met first there is read last. */
static double live_values(const fusion_context *c, const fusion_group *group, double room, uint32_t *crowded) {
  enum { LONGEST = 256 };
  *crowded = 0;
  bool read[LONGEST];
  uint32_t live = 0, most = 0;
  if (group->count > LONGEST) return 0.25 * group->count;
  memset(read, 0, group->count);
  for (uint32_t i = group->count; i-- > 0;) {
    const ir_node *n = ir_at(c->graph, group->nodes[i]);
    const uint32_t *args = c->graph->args.at + n->args;
    live += !read[i];
    for (uint32_t a = 0; a < n->arity; a++) {
      const uint32_t at = fusion_position(c, group, c->facts[args[a]].base);
      if (at != UINT32_MAX && !read[at]) read[at] = true, live++;
    }
    if (live + 1 > most) most = live + 1; /* and one that was just loaded */
    *crowded += live + 1 > room;
    live--;
  }
  return most;
}

/* A tile of accumulators is sized to the registers; beside it on lanes every live value is a vector of four, and what does not fit lowers
   how many items are at work. A processor stores and loads every value that is made while there is no register for it. */
static void add_registers(const fusion_context *c, const fusion_group *group, cost_work *w) {
  const cost_profile *p = c->options->profile;
  const bool lanes = !schedule_is_explicit(c);
  const double base = group->kind == GROUP_CONTRACT && lanes ? 20 : 4;
  uint32_t crowded;
  w->live_registers = base + live_values(c, group, p->registers - base, &crowded) * (lanes ? 4 : 1);
  const double over = w->live_registers - p->registers;
  w->spilled = !lanes ? crowded : over > 0 ? over : 0;
}

/* Does it store by hand, as a flat loop of whole shares, or rows that are written out and have nothing that is stored early (schedule/loop.c, row.c)? */
static bool stores_by_hand(const fusion_context *c, const fusion_group *group) {
  enum { SHARE = 32, TEXEL = 4 }; /* elements of an item, at least */
  const cost_profile *p = c->options->profile;
  if (!(p->hand_store_factor > 0) || (group->kind != GROUP_LOOP && group->kind != GROUP_ROW)) return false;
  const double own = elements_of(c, group->hero), share = SHARE * p->caps.subgroup_size;
  if (group->kind == GROUP_LOOP) return fmod(own, share) == 0 && schedule_by_hand(c, group, HAND_LOOP, SHARE, (int64_t)(own / share));
  const double all = elements_of(c, ir_arg(c->graph, group->hero, 0)), columns = all / own;
  bool stored = false;
  for (uint32_t i = 0; i < group->output_count; i++) {
    uint32_t steps = 64;
    if (elements_of(c, group->outputs[i]) < all) continue;
    if (!schedule_depends_on_reduction(c, group, group->outputs[i], &steps)) return false;
    stored = true;
  }
  return stored && group_reduces_rows(c->graph, group->hero) && fmod(columns, TEXEL * p->caps.subgroup_size) == 0 &&
         schedule_by_hand(c, group, HAND_ROW, (int64_t)columns / p->caps.subgroup_size, (int64_t)own);
}

void fusion_group_work(const fusion_context *c, const fusion_group *group, cost_work *w) {
  memset(w, 0, offsetof(cost_work, streams)); /* a stream is set as it is added */
  w->items = parallel_items(c, group);
  w->groups = c->options->profile->min_groups;
  uint8_t members[GROUP_MOST_MEMBERS], inputs[GROUP_MOST_INPUTS], lanes[GROUP_MOST_MEMBERS];
  double joined[GROUP_MOST_MEMBERS], maps[GROUP_MOST_MEMBERS], reach[GROUP_MOST_MEMBERS];
  lane_loads loads = {0};
  fusion_note_positions(c, group);
  const bool swept = group_count_sweeps(c, group, members, inputs);
  w->by_hand = stores_by_hand(c, group);
  if (w->by_hand && swept)
    memset(members, 1, group->count), memset(inputs, 1, group->input_count); /* what is written out is not repeated */
  const bool walks = (group->kind == GROUP_LOOP || group->kind == GROUP_ROW || group->kind == GROUP_REDUCE) &&
                     group->count <= GROUP_MOST_MEMBERS;
  member_times m = {.sweeps = swept ? members : NULL};
  const bool pieces = walks && c->joins && group->kind == GROUP_LOOP;
  if (group_count_maps(c, group, maps, pieces ? reach : NULL)) m.maps = maps, m.reach = pieces ? reach : NULL;
  if (walks && c->neighbours) loads = group_find_lanes(c, group, m.sweeps, lanes), m.lanes = lanes;
  if (walks && c->joins && c->options->profile->reads == COST_READS_TEXEL)
    loads.count = group_find_joined(c, group, m.sweeps, joined), m.joined = joined;
  w->extra_cycles += loads.count * c->options->profile->lane_load_cycles * c->options->profile->lanes;
  if (loads.lines > 0) /* in the sweep that reads them, which waits for them; what is dear has others */
    w->streams[w->stream_count++] = (cost_stream){.accesses = loads.lines * FUSION_LINE, .reuse_bytes = loads.lined_bytes, .alone = true};
  recompute again;
  find_recompute(c, group, &again);
  add_operations(c, group, &m, &again, w);
  add_streams(c, group, swept ? inputs : NULL, w);
  add_copy(c, group, w);
  group_add_lane_operand(c, group, w);
  group_add_row_operand(c, group, w);
  add_rows(c, group, w);
  add_prologue_loads(c, group, &again, w);
  add_registers(c, group, w);
}

/* By the kind's own account where it has one. */
static void group_work(const fusion_context *c, const fusion_group *group, cost_work *w) {
  const schedule_info *kind = &fusion_schedules[group->kind];
  if (kind->work) kind->work(c, group, w);
  else fusion_group_work(c, group, w);
}

void group_price(grouping *s, fusion_group *group) {
  cost_work w;
  group_work(s->c, group, &w);
  cost_kernel(s->c->options->profile, &w, &group->cost);
  group->registers = w.live_registers;
}
