/* What prices stand on, found once, when the graph changes no more: of a node how many elements it has and what one of them takes, of an
   operand how many of it are read and how neighbouring results lie to it. All extents at the hints of their symbols. */
#include "fusion/group/private.h"
#include "fusion/schedule_common.h"
#include <stdlib.h>

/* ---- fields of bits ---- */

enum { FIELD_BITS = 4 }; /* of numbers that a vector of f32 is a table of (ir/kir/tables.c) */

static bool is_word(int32_t dtype) { return dtype == SNT_U8 || dtype == SNT_U16 || dtype == SNT_U32; }

static uint32_t word_bits(const ir_graph *g, const fusion_facts *facts, uint32_t node) {
  const uint32_t known = facts[facts[node].base].field, bits = 8u * ir_dtypes[ir_at(g, node)->type.dtype].bytes;
  return known && known < bits ? known : bits;
}

static uint32_t mask_bits(double mask) {
  uint32_t bits = 0;
  while (bits < 32 && mask >= (double)(1ull << (bits + 1)) - 1) bits++;
  return mask == (double)(1ull << bits) - 1 ? bits : 0;
}

/* Bits of one word that the value is, shifted and masked, or depends on; 0: on more. */
static uint32_t field_of(const ir_graph *g, const fusion_facts *facts, uint32_t node) {
  const ir_node *n = ir_at(g, node);
  double by = 0;
  uint32_t found = 0, varies = 0;
  if (!(ir_ops[n->op].flags & IR_POINTWISE) || !n->arity) return 0;
  const uint32_t first = ir_arg(g, node, 0), bits = word_bits(g, facts, first);
  if (is_word(n->type.dtype) && is_word(ir_at(g, first)->type.dtype)) {
    if (n->op == IR_OP_cast) return bits < 8u * ir_dtypes[n->type.dtype].bytes ? bits : 8u * ir_dtypes[n->type.dtype].bytes;
    if (n->op == IR_OP_shr && ir_is_scalar_const(g, ir_arg(g, node, 1), &by) && by < bits) return bits - (uint32_t)by;
    if (n->op == IR_OP_and && ir_is_scalar_const(g, ir_arg(g, node, 1), &by) && mask_bits(by))
      return mask_bits(by) < bits ? mask_bits(by) : bits;
  }
  for (uint32_t i = 0; i < n->arity; i++) {
    const uint32_t base = facts[ir_arg(g, node, i)].base;
    if (ir_is_scalar_const(g, ir_arg(g, node, i), &by)) continue;
    if (varies && varies != base) return 0;
    varies = base, found = facts[base].field;
  }
  return found <= FIELD_BITS ? found : 0;
}

static bool is_few(const fusion_facts *facts, uint32_t node) { return facts[node].field && facts[node].field <= FIELD_BITS; }

/* Where a vector is a table, a float made of few bits is one of its lanes, whatever it takes to compute, and the bits above them need no
   mask; else its bits are masked where they lie and placed in a mantissa (ir/kir/fold_rules.c). The fields of a word, and the sums that
   they are multiplied into, do not wait for each other: each takes its turn at the ports. */
static double field_cycles(const fusion_context *c, const fusion_facts *facts, uint32_t node) {
  const cost_profile *p = c->options->profile;
  const ir_node *n = ir_at(c->graph, node);
  if (!n->arity) return facts[node].cycles;
  const uint32_t first = facts[ir_arg(c->graph, node, 0)].base;
  const double turn = cost_turn_cycles(p);
  if (!facts[node].field) return is_few(facts, first) && (n->op == IR_OP_fma || n->op == IR_OP_mul) ? turn : facts[node].cycles;
  if (is_word(n->type.dtype)) return n->op == IR_OP_shr ? turn : 0;
  if (!is_few(facts, node)) return facts[node].cycles;
  if (cost_permutes(p)) return is_word(ir_at(c->graph, first)->type.dtype) ? turn : 0;
  return facts[node].cycles > p->op_cycles ? facts[node].cycles : turn;
}

/* ---- nodes ---- */

/* Against a number a comparison and a choice let a NaN through. */
static double extremum_cycles(const fusion_context *c, uint32_t node, double cycles) {
  const uint16_t op = ir_at(c->graph, node)->op;
  const double known = 2 * c->options->profile->op_cycles;
  double by;
  if ((op != IR_OP_max && op != IR_OP_min) || cycles < known) return cycles;
  return ir_is_scalar_const(c->graph, ir_arg(c->graph, node, 1), &by) ? known : cycles;
}

/* A tap of a reduced window is a vector of its own, for many sums side by side, of which none waits for another. */
static double tap_cycles(const cost_profile *p, uint32_t op) {
  const bool orders = op == IR_OP_reduce_max || op == IR_OP_reduce_min;
  return p->vector_load_cycles + (orders ? cost_op_cycles(p, IR_OP_max, SNT_F32) : cost_turn_cycles(p));
}

/* Terms are loaded and taken together in chains that do not wait for each other. The profile's number is of rows that are short, with the
   end of each, where the lanes of the chains become one: from it follows what an end takes. Down columns each lane has a chain of its own
   to the end. */
static void find_chain_cycles(const fusion_context *c, fusion_facts *f, uint32_t node, bool along_rows) {
  enum { MEASURED = 64 }; /* terms of such a row */
  const cost_profile *p = c->options->profile;
  const ir_node *n = ir_at(c->graph, node);
  const bool orders = n->op == IR_OP_reduce_max || n->op == IR_OP_reduce_min;
  const double term = p->vector_load_cycles + cost_op_cycles(p, orders ? IR_OP_max : IR_OP_add, n->type.dtype);
  if (f->cycles <= term) return;
  if (along_rows) f->end_cycles = (f->cycles - term) * MEASURED;
  f->cycles = term;
}

bool group_reduces_rows(const ir_graph *g, uint32_t node) {
  uint32_t count, last = group_last_axis(&ir_at(g, ir_arg(g, node, 0))->type);
  const ir_expr *axes = ir_attr_ints(g, node, IR_ATTR_axes, &count);
  for (uint32_t i = 0; i < count; i++)
    if (last && axes[i] == (ir_expr)last - 1) return true;
  return false;
}

static void find_facts(const fusion_context *c, fusion_facts *facts, uint32_t node) {
  const cost_profile *p = c->options->profile;
  const ir_node *n = ir_at(c->graph, node);
  facts[node].count = ir_tensor_elements(c->graph->pool, &n->type);
  facts[node].base = fusion_is_view(c->graph, node) && n->op != IR_OP_concat ? facts[ir_arg(c->graph, node, 0)].base : node;
  const bool moves = n->op == IR_OP_transpose || n->op == IR_OP_slice;
  facts[node].map = moves || facts[node].base == node ? node : facts[ir_arg(c->graph, node, 0)].map;
  facts[node].cycles = cost_op_cycles(p, n->op, n->type.dtype);
  if (schedule_is_explicit(c)) {
    facts[node].field = (uint8_t)field_of(c->graph, facts, node);
    facts[node].cycles = extremum_cycles(c, node, field_cycles(c, facts, node));
  }
  if (schedule_is_explicit(c) && (ir_ops[n->op].flags & IR_REDUCE) && n->op != IR_OP_contract) {
    if (fusion_has_taps(c->graph, ir_arg(c->graph, node, 0))) facts[node].cycles = tap_cycles(p, n->op);
    else find_chain_cycles(c, &facts[node], node, group_reduces_rows(c->graph, node));
  }
  facts[node].own_cycles = facts[node].cycles - cost_class_cycles(p, n->op);
  const uint8_t flags = ir_ops[n->op].flags;
  if ((flags & IR_POINTWISE) && !(flags & IR_REDUCE) && n->op != IR_OP_contract)
    facts[node].rate = flags & IR_EXPENSIVE ? FUSION_SPECIAL : cost_divides(n->op) ? FUSION_DIVIDES : FUSION_PLAIN;
}

/* The node that says how many elements a node reads of the value below its operand: of a gathered table, and of what a slice that is stored
   leaves out, as many as the result has. */
static uint32_t part_read(const fusion_context *c, uint32_t node, uint32_t operand) {
  const uint32_t from = ir_arg(c->graph, node, operand);
  const bool picks = (operand == 0 && ir_at(c->graph, node)->op == IR_OP_gather) || fusion_is_view(c->graph, node);
  return picks && c->elements[node] < c->elements[from] ? node : from;
}
uint32_t group_map_read(const ir_graph *g, const fusion_facts *facts, uint32_t node, uint32_t operand) {
  return ir_at(g, node)->op == IR_OP_gather && operand == 0 ? node : facts[ir_arg(g, node, operand)].map;
}
/* `maps`: per node the first map that it was met through; 0: none yet. */
static void find_how_read(const fusion_context *c, fusion_facts *facts, uint32_t node, uint32_t *maps) {
  for (uint32_t i = 0; i < ir_at(c->graph, node)->arity; i++) {
    const uint32_t base = facts[ir_arg(c->graph, node, i)].base, map = group_map_read(c->graph, facts, node, i);
    if (c->elements[part_read(c, node, i)] < c->elements[base]) facts[base].partly = true;
    if (fusion_is_view(c->graph, node) && ir_at(c->graph, node)->op != IR_OP_concat) continue; /* its readers say */
    facts[base].moved |= maps[base] && maps[base] != map;
    maps[base] = map;
  }
}

uint32_t fusion_parts_read(const fusion_context *c, const fusion_group *group, uint32_t input, uint32_t *parts) {
  uint32_t count = 0;
  if (!c->facts[input].partly) return 0;
  for (uint32_t i = 0; i < group->count; i++)
    for (uint32_t a = 0; a < ir_at(c->graph, group->nodes[i])->arity; a++) {
      const uint32_t part = part_read(c, group->nodes[i], a);
      uint32_t k = 0;
      if (c->facts[ir_arg(c->graph, group->nodes[i], a)].base != input) continue;
      while (k < count && parts[k] != part) k++;
      if (k < count) continue;
      if (count == FUSION_MOST_PARTS || c->elements[part] >= c->elements[input]) return 0;
      parts[count++] = part;
    }
  return count;
}

/* ---- narrow elements ---- */

/* Bytes of results that were wider are brought together from all lanes, where a vector has no one instruction for it. */
static bool is_joined(const fusion_context *c, uint32_t node) {
  const ir_node *n = ir_at(c->graph, c->facts[node].base);
  return n->op == IR_OP_cast && ir_dtypes[n->type.dtype].bytes == 1 &&
         ir_dtypes[ir_at(c->graph, ir_arg(c->graph, c->facts[node].base, 0))->type.dtype].bytes > 1;
}

/* Bytes whose innermost places are whole words, as which they are stored. */
static bool fills_words(const ir_graph *g, const ir_tensor *t) {
  const uint32_t last = group_last_axis(t);
  return ir_dtypes[t->dtype].bytes == 1 && last > 0 && expr_multiple_of(g->pool, t->dims[last - 1]) % 4 == 0;
}

double fusion_narrow_cycles(const fusion_context *c, uint32_t node, bool stored) {
  enum { JOINED = 3 }; /* four to five such cycles of a Zen 3 from f32, two from words */
  /* To the loads of a lane: behind a test of it, 3.3 on Zen 3, 2 on Zen 5; in words of four 1.4 on Zen 4 */
  static const double STORED = 3, IN_WORDS = 1.4;
  const cost_profile *p = c->options->profile;
  const ir_tensor *t = &ir_at(c->graph, node)->type;
  if (schedule_is_explicit(c)) return stored && !cost_permutes(p) && is_joined(c, node) ? JOINED : 0;
  if (p->reads != COST_READS_TEXEL || ir_dtypes[t->dtype].bytes >= 4 || (!stored && fusion_has_texels(t->dtype))) return 0;
  return (!stored ? 1 : fills_words(c->graph, t) ? IN_WORDS : STORED) * p->lane_load_cycles * p->lanes;
}

/* ---- neighbours ---- */

uint32_t group_last_axis(const ir_tensor *t) {
  uint32_t last = t->rank;
  while (last > 1 && t->dims[last - 1] == 1) last--;
  return last;
}

/* The last axis of several elements among those of the mask; rank: none is. */
static uint32_t last_axis(const ir_tensor *t, uint32_t mask) {
  uint32_t axis = t->rank;
  while (axis && (t->dims[axis - 1] == 1 || !(mask >> (axis - 1) & 1))) axis--;
  return axis ? axis - 1 : t->rank;
}

bool fusion_alternates(const ir_graph *g, uint32_t node) {
  enum { SHORT_PART = 8 }; /* less than a vector */
  const ir_node *n = ir_at(g, node);
  return n->op == IR_OP_concat &&
         schedule_hint(g->pool, ir_at(g, ir_arg(g, node, 0))->type.dims[ir_attr_int(g, node, IR_ATTR_axis, 0)]) < SHORT_PART;
}

/* How the first two elements of a value along an axis lie in what its views are made of. */
static uint8_t neighbours_along(const ir_graph *g, uint32_t node, uint32_t lane) {
  const ir_tensor *t = &ir_at(g, node)->type;
  map_access at[2] = {{.rank = t->rank}, {.rank = t->rank}};
  if (lane >= t->rank) return t->rank ? FUSION_BESIDE : FUSION_SAME;
  at[1].at[lane] = 1;
  for (; fusion_is_view(g, node); node = ir_arg(g, node, 0)) {
    const ir_node *n = ir_at(g, node);
    const uint32_t axis = n->op == IR_OP_concat ? (uint32_t)ir_attr_int(g, node, IR_ATTR_axis, 0) : 0;
    if (n->op == IR_OP_concat && at[0].at[axis] != at[1].at[axis])
      return fusion_alternates(g, node) ? FUSION_BESIDE : FUSION_SEAMS; /* sums of alternating parts are taken apart (rewrite/parts.c) */
    for (uint32_t i = 0; i < 2; i++)
      if (!ir_movement_access(g, node, 0, &at[i])) return FUSION_BESIDE;
  }
  const ir_expr *dims = ir_at(g, node)->type.dims,
                step = expr_sub(g->pool, map_linear(g->pool, &at[1], dims), map_linear(g->pool, &at[0], dims));
  int64_t apart;
  if (step == 0 || step == 1) return step ? FUSION_BESIDE : FUSION_SAME;
  return expr_is_const(g->pool, step, &apart) && llabs(apart) * ir_dtypes[ir_at(g, node)->type.dtype].bytes < FUSION_LINE ? FUSION_APART
                                                                                                                          : FUSION_LINES;
}

uint32_t fusion_contract_lane(const ir_graph *g, uint32_t node, uint32_t operand) {
  uint32_t count, out_count;
  const ir_expr *own = ir_attr_ints(g, node, operand ? IR_ATTR_rhs : IR_ATTR_lhs, &count),
                *out = ir_attr_ints(g, node, IR_ATTR_out, &out_count);
  const uint32_t last = last_axis(&ir_at(g, node)->type, UINT32_MAX);
  const int32_t axis = last < out_count ? fusion_find_label(own, count, out[last]) : -1;
  return axis < 0 ? count : (uint32_t)axis;
}

/* Vectors lie along the results of a pool, not along its taps. */
static uint32_t kept_axes(const ir_graph *g, uint32_t node) {
  uint32_t count, mask = UINT32_MAX;
  const ir_expr *axes = ir_attr_ints(g, node, IR_ATTR_axes, &count);
  for (uint32_t i = 0; i < count; i++) mask &= ~(1u << axes[i]);
  return mask;
}

static uint8_t operand_neighbours(const ir_graph *g, uint32_t node, uint32_t operand) {
  const ir_node *n = ir_at(g, node);
  const uint32_t from = ir_arg(g, node, operand);
  const ir_tensor *t = &ir_at(g, from)->type;
  if (fusion_is_view(g, node)) return operand ? FUSION_BESIDE : neighbours_along(g, node, last_axis(&n->type, UINT32_MAX));
  if (n->op == IR_OP_contract) {
    const uint32_t lane = fusion_contract_lane(g, node, operand);
    return lane == t->rank ? FUSION_SAME : neighbours_along(g, from, lane);
  }
  if (n->op == IR_OP_gather && operand == 1 && ir_attr_int(g, node, IR_ATTR_axis, 0) + t->rank < n->type.rank)
    return FUSION_SAME; /* whole rows */
  if (fusion_has_taps(g, from))
    return ir_ops[n->op].flags & IR_REDUCE ? neighbours_along(g, from, last_axis(t, kept_axes(g, node))) : FUSION_BESIDE;
  return neighbours_along(g, from, last_axis(t, UINT32_MAX));
}

static bool find_neighbours(fusion_context *c) {
  const ir_graph *g = c->graph;
  uint8_t *found = schedule_is_explicit(c) ? IR_NEW_ARRAY(c->arena, uint8_t, g->args.count + 1) : NULL;
  bool other = false;
  if (!schedule_is_explicit(c)) return true;
  if (!found) return false;
  for (uint32_t node = 1; node < g->nodes.count; node++)
    for (uint32_t i = 0; i < ir_at(g, node)->arity; i++) {
      const uint32_t at = ir_at(g, node)->args + i;
      found[at] = operand_neighbours(g, node, i);
      other |= found[at] != FUSION_BESIDE;
    }
  c->neighbours = other ? found : NULL;
  return true;
}

/* Of a state whose row is set, and which nobody reads before it is the state again, only the row counts. */
static void count_rows(const ir_graph *g, double *elements) {
  ir_expr row;
  for (uint32_t u = 0; u < g->updates.count; u++) {
    const uint32_t value = g->updates.at[u].value;
    bool read = !fusion_sets_row(g, value, &row);
    for (uint32_t i = 0; i < g->args.count && !read; i++) read = g->args.at[i] == value;
    if (!read) elements[value] = elements[ir_arg(g, value, 2)];
  }
}

bool fusion_count_elements(fusion_context *c) {
  const uint32_t count = c->graph->nodes.count;
  double *elements = IR_NEW_ARRAY(c->arena, double, count);
  fusion_facts *facts = IR_NEW_ARRAY(c->arena, fusion_facts, count);
  c->positions = IR_NEW_ARRAY(c->arena, uint32_t, count);
  uint32_t *maps = IR_NEW_ARRAY(c->arena, uint32_t, count);
  if (!elements || !facts || !c->positions || !maps) return false;
  for (uint32_t n = 1; n < count; n++) {
    find_facts(c, facts, n);
    elements[n] = (double)schedule_hint(c->graph->pool, facts[n].count);
  }
  count_rows(c->graph, elements);
  c->elements = elements;
  c->facts = facts;
  for (uint32_t n = 1; n < count; n++) {
    find_how_read(c, facts, n, maps);
    c->joins |= ir_at(c->graph, n)->op == IR_OP_concat;
    c->has_narrow |= ir_dtypes[ir_at(c->graph, n)->type.dtype].bytes < 4;
  }
  return find_neighbours(c);
}
