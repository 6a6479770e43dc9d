/* Products of quantised values, where a device multiplies four bytes at once (caps.dot4). In: a contraction of bytes less zero points times scales with
   constant ones: sums of (a - za) sa (w - zw) sw. Out: the sums of a w in i32, less what the zero points make of the sums of each operand alone, times
   the scales; a is unsigned, w signed (words.c makes words of both). Sums of f32 become exact ones, but scales are multiplied later: DEFAULT and FAST;
   those of integers are the same in every mode. */
#include "fusion/rebuild.h"
#include "fusion/schedule_common.h"
#include "fusion/shown.h"
#include "fusion/words.h"
#include <math.h>

enum { DEPTH = 24, FEWEST_TERMS = 16, MOST_TERMS = 32768, MOST_ZERO = 255 }; /* so many products of less than 2^16 stay within 32 bits */
enum { NONE = -1 };

typedef struct factor {       /* a number of each place along some axes */
  uint32_t node, rank;        /* 0: there is none; of the number of axes */
  int32_t axes[SNT_MAX_RANK]; /* of the value */
} factor;
typedef struct codes {
  uint32_t bytes; /* of the value's shape */
  factor zero, scale;
  int32_t shift; /* taken off the bytes beside the zero point: they were signed, and are unsigned */
} codes;

/* ---- a value as bytes ---- */

static bool is_byte(int32_t dtype) { return dtype == SNT_U8 || dtype == SNT_I8; }

/* A number, or one of each place along some axes. */
static bool read_factor(rebuild *r, uint32_t node, factor *f) {
  ir_graph *g = r->to;
  const int32_t dtype = ir_at(g, node)->type.dtype;
  double number;
  f->rank = 0;
  if (ir_is_scalar_const(g, node, &number)) return (f->node = ir_add_splat(g, dtype, number)) != 0;
  if (ir_at(g, node)->op == IR_OP_cast) node = ir_arg(g, node, 0);
  uint32_t count = ir_at(g, node)->type.rank, from = node;
  const ir_expr *axes = NULL;
  ir_expr dims[SNT_MAX_RANK];
  if (ir_at(g, node)->op == IR_OP_broadcast) axes = ir_attr_ints(g, node, IR_ATTR_axes, &count), from = ir_arg(g, node, 0);
  const ir_tensor type = ir_at(g, from)->type;
  for (uint32_t i = 0; i < count; i++)
    if (type.dims[i] != 1) dims[f->rank] = type.dims[i], f->axes[f->rank++] = axes ? (int32_t)axes[i] : (int32_t)i;
  f->node = ir_add_cast(g, f->rank == type.rank ? from : rebuild_reshape(r, from, f->rank, dims), dtype);
  return f->node != 0;
}

bool words_are_whole(const ir_graph *g, uint32_t node) {
  int64_t count;
  double number;
  for (;; node = ir_arg(g, node, 0)) {
    const ir_node *n = ir_at(g, node);
    if (is_byte(n->type.dtype)) return true;
    if (ir_is_scalar_const(g, node, &number)) return number == rint(number) && fabs(number) <= MOST_ZERO;
    if (n->op != IR_OP_cast && n->op != IR_OP_reshape && n->op != IR_OP_broadcast) break;
  }
  const ir_tensor *t = &ir_at(g, node)->type;
  const void *data = ir_at(g, node)->op == IR_OP_const ? ir_const_data((ir_graph *)(uintptr_t)g, node) : NULL;
  if (!data || !expr_is_const(g->pool, ir_tensor_elements(g->pool, t), &count)) return false;
  for (int64_t i = 0; i < count; i++) {
    number = ir_dtype_load(t->dtype, data, (size_t)i);
    if (number != rint(number) || fabs(number) > MOST_ZERO) return false;
  }
  return true;
}

/* Turned round, or cut off on one side as it is filled up on the other. */
static bool moves_along(const ir_graph *g, uint32_t view, int32_t axis) {
  uint32_t count;
  const ir_expr *low = ir_at(g, view)->op == IR_OP_pad ? ir_attr_ints(g, view, IR_ATTR_low, &count) : NULL;
  const ir_expr *steps = ir_attr_ints(g, view, IR_ATTR_steps, &count);
  return (low && low[axis] != 0) || (steps && steps[axis] != 1);
}

/* Axis `axis` of an operand in the result of a view; NONE: it is no axis of its own there, or another one. */
static int32_t axis_above(const ir_graph *g, uint32_t view, int32_t axis) {
  const ir_tensor *from = &ir_at(g, ir_arg(g, view, 0))->type, *to = &ir_at(g, view)->type;
  uint32_t count;
  ir_expr before = 1, own = 1;
  switch (ir_at(g, view)->op) {
  case IR_OP_transpose: return fusion_find_label(ir_attr_ints(g, view, IR_ATTR_perm, &count), to->rank, axis);
  case IR_OP_reshape:
    for (int32_t i = 0; i < axis; i++) before = expr_mul(g->pool, before, from->dims[i]);
    for (int32_t i = 0; i < (int32_t)to->rank; own = expr_mul(g->pool, own, to->dims[i++]))
      if (own == before && to->dims[i] == from->dims[axis]) return i;
    return NONE;
  default: return to->dims[axis] == from->dims[axis] && !moves_along(g, view, axis) ? axis : NONE;
  }
}

/* The part of a factor that a slice takes of its axis i; without that axis where it is one place. */
static bool take_part(rebuild *r, uint32_t slice, factor *f, uint32_t i) {
  const ir_graph *g = r->to;
  uint32_t count;
  const int32_t axis = f->axes[i];
  const ir_expr *first = ir_attr_ints(g, slice, IR_ATTR_starts, &count);
  ir_expr starts[SNT_MAX_RANK] = {0}, dims[SNT_MAX_RANK];
  if (ir_at(g, slice)->op != IR_OP_slice || moves_along(g, slice, axis)) return false;
  memcpy(dims, ir_at(g, f->node)->type.dims, sizeof dims);
  starts[i] = first ? first[axis] : 0, dims[i] = ir_at(g, slice)->type.dims[axis];
  f->node = rebuild_slice(r, f->node, f->rank, starts, dims, NULL);
  if (dims[i] != 1) return f->node != 0;
  for (f->rank--; i < f->rank; i++) f->axes[i] = f->axes[i + 1], dims[i] = dims[i + 1];
  return (f->node = rebuild_reshape(r, f->node, f->rank, dims)) != 0;
}

static bool lift(rebuild *r, uint32_t view, codes *c) {
  factor *const factors[] = {&c->zero, &c->scale};
  for (uint32_t k = 0; k < IR_COUNT(factors); k++)
    for (uint32_t i = factors[k]->rank; i-- > 0;) {
      const int32_t above = axis_above(r->to, view, factors[k]->axes[i]);
      if (above != NONE) factors[k]->axes[i] = above;
      else if (!take_part(r, view, factors[k], i)) return false;
    }
  return true;
}

/* What a zero is in bytes. */
static bool literal_zero(const ir_graph *g, const codes *c, int64_t *zero) {
  double number = 0;
  if (c->zero.node && !ir_is_scalar_const(g, c->zero.node, &number)) return false;
  *zero = (int64_t)number + c->shift;
  return number == (double)(int64_t)number && *zero >= 0 && *zero <= 255;
}

static uint32_t padded_with(rebuild *r, uint32_t view, const codes *c, uint32_t padded);

/* The same view of the bytes, filled with what stands for zero. */
static uint32_t view_of_bytes(rebuild *r, uint32_t view, const codes *c) {
  ir_graph *g = r->to;
  const ir_node n = *ir_at(g, view);
  words_attrs attrs;
  int64_t zero = 0;
  ir_expr *filled = NULL;
  bool fills = false;
  words_copy_attrs(g, view, &attrs);
  for (uint32_t i = 0; i < n.attr_count; i++) {
    const ir_attr_value *a = &attrs.at[i];
    if (a->key == IR_ATTR_value) filled = attrs.own[i];
    for (uint32_t k = 0; k < a->count && (a->key == IR_ATTR_low || a->key == IR_ATTR_high); k++) fills |= attrs.own[i][k] != 0;
  }
  if (filled && *filled != 0) return 0;
  const bool known = !fills || literal_zero(g, c, &zero);
  if (fills && ir_at(g, c->bytes)->type.dtype != SNT_U8 && (!known || zero)) return 0;
  if (filled && known) *filled = zero;
  const uint32_t made = ir_add_node(g, (ir_op)n.op, 1, &c->bytes, n.attr_count, attrs.at, NULL);
  return known || !made ? made : !c->zero.rank ? padded_with(r, view, c, made) : 0;
}

/* A zero that is known when it runs, around the bytes: chosen where a padding of ones has none. */
static uint32_t padded_with(rebuild *r, uint32_t view, const codes *c, uint32_t padded) {
  ir_graph *g = r->to;
  const uint32_t one = ir_add_splat(g, SNT_U8, 1);
  const ir_tensor *from = &ir_at(g, c->bytes)->type;
  codes ones = {.bytes = rebuild_broadcast(r, one, 0, NULL, from->rank, from->dims)};
  uint32_t zero = ir_add_cast(g, c->zero.node, SNT_I32);
  if (c->shift) zero = ir_add2(g, IR_OP_add, zero, ir_add_splat(g, SNT_I32, c->shift));
  const uint32_t inside = ones.bytes ? view_of_bytes(r, view, &ones) : 0;
  return inside ? ir_add3(g, IR_OP_select, ir_add2(g, IR_OP_ne, inside, ir_add_splat(g, SNT_U8, 0)), padded, ir_add_cast(g, zero, SNT_U8))
                : 0;
}

/* Signed bytes as unsigned ones, 128 more. */
static void as_unsigned(rebuild *r, codes *c) {
  if (ir_at(r->to, c->bytes)->type.dtype != SNT_I8) return;
  const ir_expr unsigned_type = SNT_U8;
  const uint32_t turned = ir_add2(r->to, IR_OP_xor, c->bytes, ir_add_splat(r->to, SNT_I8, -128));
  c->bytes = ir_add_node(r->to, IR_OP_bitcast, 1, &turned, 1, &(ir_attr_value){IR_ATTR_dtype, 1, &unsigned_type}, NULL);
  c->shift = 128;
}

static bool is_constant(const ir_graph *g, uint32_t node) { return ir_at(g, fusion_through_views(g, node))->op == IR_OP_const; }

/* What a value may still be: codes, less a zero point, times a scale. Each has but those before it below, so that a walk does not branch twice. */
typedef enum { CODES, LESS_ZERO, SCALED } code_form;

static bool read_codes(rebuild *r, uint32_t node, code_form form, uint32_t depth, codes *c) {
  ir_graph *g = r->to;
  const ir_op op = (ir_op)ir_at(g, node)->op;
  const int32_t dtype = ir_at(g, node)->type.dtype;
  if (!depth || !ir_at(g, node)->arity) return false;
  const uint32_t first = ir_arg(g, node, 0);
  if (op == IR_OP_cast && is_byte(ir_at(g, first)->type.dtype) && (dtype == SNT_F32 || dtype == SNT_I32 || dtype == SNT_I16)) {
    *c = (codes){.bytes = first};
    if (!is_constant(g, first)) as_unsigned(r, c);
    return c->bytes != 0;
  }
  if (op == IR_OP_sub && form >= LESS_ZERO) {
    const uint32_t zero = ir_arg(g, node, 1);
    return words_are_whole(g, zero) && read_codes(r, first, CODES, depth - 1, c) && read_factor(r, zero, &c->zero);
  }
  if (op == IR_OP_mul && form == SCALED && ir_dtypes[dtype].is_float)
    for (uint32_t side = 0; side < 2; side++)
      if (read_codes(r, ir_arg(g, node, side), LESS_ZERO, depth - 1, c)) return read_factor(r, ir_arg(g, node, 1 - side), &c->scale);
  if (!fusion_only_moves(g, node) || op == IR_OP_broadcast || !read_codes(r, first, form, depth - 1, c)) return false;
  if (!lift(r, node, c)) return false;
  c->bytes = view_of_bytes(r, node, c);
  return c->bytes != 0;
}

/* ---- the contraction ---- */

typedef struct product {
  rebuild *r;
  const ir_node *node;
  codes side[2]; /* what varies; constants */
  const ir_expr *labels[2], *out;
  uint32_t rank[2], out_rank;
  int64_t terms;
  fusion_shown weights;
} product;

static bool is_kept(const product *p, ir_expr label) { return fusion_find_label(p->out, p->out_rank, label) >= 0; }

/* No zero point and no scale of a place along what is summed. */
static bool are_beside_results(const product *p, uint32_t side, const codes *c) {
  const factor *const factors[] = {&c->zero, &c->scale};
  for (uint32_t k = 0; k < IR_COUNT(factors); k++)
    for (uint32_t i = 0; i < factors[k]->rank; i++)
      if (!is_kept(p, p->labels[side][factors[k]->axes[i]])) return false;
  return true;
}

static bool read_terms(product *p) {
  const ir_tensor *t = &ir_at(p->r->to, p->side[1].bytes)->type;
  int64_t extent;
  p->terms = 1;
  for (uint32_t d = 0; d < p->rank[1]; d++) {
    if (is_kept(p, p->labels[1][d])) continue;
    if (!expr_is_const(p->r->to->pool, t->dims[d], &extent)) return false;
    p->terms *= extent;
  }
  return p->terms >= FEWEST_TERMS && p->terms <= MOST_TERMS;
}

static bool find_sides(product *p) {
  static const ir_attr_key keys[2] = {IR_ATTR_lhs, IR_ATTR_rhs};
  rebuild *r = p->r;
  codes read[2];
  for (uint32_t o = 0; o < 2; o++)
    if (!read_codes(r, r->args[o], SCALED, DEPTH, &read[o])) return false;
  const uint32_t w = is_constant(r->to, read[1].bytes) ? 1 : 0;
  if (is_constant(r->to, read[1 - w].bytes)) return false;
  for (uint32_t i = 0; i < 2; i++) {
    const uint32_t o = i ? w : 1 - w;
    p->side[i] = read[o];
    p->labels[i] = ir_attr_ints(r->from, r->node, keys[o], &p->rank[i]);
    if (!are_beside_results(p, i, &read[o])) return false;
  }
  if (!fusion_show(r->to, p->side[1].bytes, &p->weights)) return false;
  return (p->weights.data = ir_const_data(r->to, p->weights.constant)) != NULL;
}

/* ---- constants of the weights ---- */

typedef struct weight_making {
  ir_making making;
  fusion_shown shown;
  bool sums; /* over all axes but `channels`, less `less`, times `times`; else the bytes themselves, less 128 */
  uint32_t channels;
  int32_t less, times;
} weight_making;

static void put_signed(void *user, int64_t at, int64_t channel, float value) {
  (void)channel;
  ((int8_t *)user)[at] = (int8_t)((int)value - 128);
}

static void add_to_sum(void *user, int64_t at, int64_t channel, float value) {
  (void)at;
  ((int32_t *)user)[channel] += (int32_t)value;
}

static void fill_weights(const ir_making *m, const void *const *sources, void *to) {
  const weight_making *w = (const weight_making *)(const void *)m;
  fusion_shown s = w->shown;
  s.data = sources[0];
  if (w->sums) memset(to, 0, m->bytes);
  const int64_t count = fusion_walk(&s, w->channels, w->sums ? add_to_sum : put_signed, to);
  for (int64_t i = 0; i < count && w->sums; i++) ((int32_t *)to)[i] = (((int32_t *)to)[i] - w->less) * w->times;
}

static uint32_t made_constant(product *p, const ir_tensor *type, const weight_making *like) {
  rebuild *r = p->r;
  weight_making *w = IR_NEW(r->c->arena, weight_making);
  if (!w) return 0;
  *w = *like;
  w->shown = p->weights;
  w->making.fill = fill_weights, w->making.size = sizeof *w;
  return ir_add_made(r->to, type, &w->making, p->weights.constant);
}

/* ---- putting it together ---- */

/* A value whose axes have the labels given, all of the result, as one of the result's shape. */
static uint32_t spread(product *p, uint32_t value, uint32_t rank, const ir_expr *labels) {
  const ir_tensor *shape = &p->node->type;
  ir_expr axes[SNT_MAX_RANK], perm[SNT_MAX_RANK];
  uint32_t count = 0;
  bool ordered = true;
  for (uint32_t d = 0; d < p->out_rank; d++) {
    const int32_t at = fusion_find_label(labels, rank, p->out[d]);
    if (at < 0) continue;
    ordered &= (uint32_t)at == count;
    perm[count] = at, axes[count++] = d;
  }
  if (!rank) return value;
  if (!ordered) value = rebuild_transpose(p->r, value, rank, perm);
  return rebuild_broadcast(p->r, value, count, axes, shape->rank, shape->dims);
}

static uint32_t spread_factor(product *p, uint32_t side, const factor *f, uint32_t node) {
  ir_expr labels[SNT_MAX_RANK];
  for (uint32_t k = 0; k < f->rank; k++) labels[k] = p->labels[side][f->axes[k]];
  return spread(p, node, f->rank, labels);
}

static uint32_t contract_of(product *p, uint32_t a, uint32_t w, uint32_t w_rank, const ir_expr *w_labels, uint32_t out_rank,
                            const ir_expr *out) {
  const ir_expr dtype = SNT_I32;
  const ir_attr_value lists[] = {
      {IR_ATTR_dtype, 1, &dtype}, {IR_ATTR_lhs, p->rank[0], p->labels[0]}, {IR_ATTR_out, out_rank, out}, {IR_ATTR_rhs, w_rank, w_labels}};
  const uint32_t made = ir_add_node(p->r->to, IR_OP_contract, 2, (uint32_t[]){a, w}, IR_COUNT(lists), lists, NULL);
  if (made) p->r->to->nodes.at[made].origin = p->node->origin;
  return made;
}

/* The zero point of a side less its shift, in i32; 0: there is none. */
static uint32_t zero_of(product *p, uint32_t side) {
  ir_graph *g = p->r->to;
  const codes *c = &p->side[side];
  double number = 0;
  if (!c->zero.node || ir_is_scalar_const(g, c->zero.node, &number))
    return (number += c->shift) == 0 ? 0 : ir_add_splat(g, SNT_I32, number);
  const uint32_t zero = ir_add_cast(g, c->zero.node, SNT_I32);
  return c->shift ? ir_add2(g, IR_OP_add, zero, ir_add_splat(g, SNT_I32, c->shift)) : zero;
}

/* Less za times the sums of (w - zw) of each column; what is known of it is a constant. */
static uint32_t less_left(product *p, uint32_t sums, uint32_t zero, uint32_t zero_right) {
  ir_graph *g = p->r->to;
  ir_tensor type = {.dtype = SNT_I32};
  ir_expr labels[SNT_MAX_RANK];
  double left = 1, right = 0;
  if (!zero) return sums;
  const bool known_right = !zero_right || ir_is_scalar_const(g, zero_right, &right),
             known = known_right && ir_is_scalar_const(g, zero, &left);
  weight_making w = {.sums = true, .less = known_right ? (int32_t)(right * (double)p->terms) : 0, .times = known ? (int32_t)left : 1};
  for (uint32_t d = 0; d < p->rank[1]; d++) {
    if (!is_kept(p, p->labels[1][d])) continue;
    labels[type.rank] = p->labels[1][d], w.channels |= 1u << d;
    type.dims[type.rank++] = ir_at(g, p->side[1].bytes)->type.dims[d];
  }
  uint32_t columns = spread(p, made_constant(p, &type, &w), type.rank, labels);
  if (!known_right && columns) {
    const uint32_t all = ir_add2(g, IR_OP_mul, zero_right, ir_add_splat(g, SNT_I32, (double)p->terms));
    columns = ir_add2(g, IR_OP_sub, columns, spread_factor(p, 1, &p->side[1].zero, all));
  }
  if (!known && columns) columns = ir_add2(g, IR_OP_mul, columns, spread_factor(p, 0, &p->side[0].zero, zero));
  return columns ? ir_add2(g, IR_OP_sub, sums, columns) : 0;
}

/* Less zw times the sums of a of each row: a product with ones. */
static uint32_t less_right(product *p, uint32_t sums, uint32_t zero) {
  ir_graph *g = p->r->to;
  ir_tensor type = {.dtype = SNT_I8};
  ir_expr labels[SNT_MAX_RANK], out[SNT_MAX_RANK];
  uint32_t out_rank = 0;
  if (!zero) return sums;
  for (uint32_t d = 0; d < p->rank[1]; d++)
    if (!is_kept(p, p->labels[1][d]))
      labels[type.rank] = p->labels[1][d], type.dims[type.rank++] = ir_at(g, p->side[1].bytes)->type.dims[d];
  for (uint32_t d = 0; d < p->out_rank; d++)
    if (fusion_find_label(p->labels[0], p->rank[0], p->out[d]) >= 0) out[out_rank++] = p->out[d];
  const uint32_t ones = ir_add_const(g, &type, &(ir_const){.kind = IR_CONST_SPLAT, .bits = 1});
  const uint32_t rows = contract_of(p, p->side[0].bytes, ones, type.rank, labels, out_rank, out);
  if (!rows) return 0;
  const uint32_t both = ir_add2(g, IR_OP_mul, spread(p, rows, out_rank, out), spread_factor(p, 1, &p->side[1].zero, zero));
  return ir_add2(g, IR_OP_sub, sums, both);
}

/* Unsigned weights: the same less 128. */
static bool sign_weights(product *p) {
  codes *c = &p->side[1];
  ir_tensor type = ir_at(p->r->to, c->bytes)->type;
  if (type.dtype == SNT_I8) return true;
  type.dtype = SNT_I8;
  const uint32_t made = made_constant(p, &type, &(weight_making){.sums = false});
  if (!made || !fusion_show(p->r->to, made, &p->weights)) return false;
  c->bytes = made, c->shift = -128;
  return true;
}

/* One multiplication, where one of the scales is a number. */
static uint32_t scaled(product *p, uint32_t value) {
  ir_graph *g = p->r->to;
  factor f[2] = {p->side[0].scale, p->side[1].scale};
  for (uint32_t side = 0; side < 2; side++)
    if (f[side].node && !f[side].rank && f[1 - side].node)
      f[1 - side].node = ir_add2(g, IR_OP_mul, f[1 - side].node, f[side].node), f[side].node = 0;
  for (uint32_t side = 0; side < 2; side++)
    if (f[side].node && value) value = ir_add2(g, IR_OP_mul, value, spread_factor(p, side, &f[side], f[side].node));
  return value;
}

/* Matrix units take bytes of one type on both sides, as they are. */
static bool takes_units(const product *p, bool real) {
  const bool is_signed = p->side[0].shift != 0, same = is_signed == (ir_at(p->r->to, p->side[1].bytes)->type.dtype == SNT_I8);
  const uint32_t unit = is_signed ? KIR_MMA_I8 : KIR_MMA_U8;
  return !real && same && !p->side[0].zero.node && !p->side[1].zero.node && p->r->c->options->profile->caps.mma[unit].m;
}

/* What is multiplied faster, beside a launch of lanes: codes that the graph is given are stored once more where they are signed, or turned. */
static bool pays(const product *p, uint32_t axis) {
  const ir_graph *g = p->r->to;
  const cost_profile *cost = p->r->c->options->profile;
  const uint32_t bytes = p->side[0].bytes;
  uint32_t given = fusion_through_views(g, bytes);
  for (uint32_t i = 0; p->side[0].shift && i < 2; i++) given = fusion_through_views(g, ir_arg(g, given, 0)); /* bitcast, xor */
  const bool made = ir_at(g, given)->op != IR_OP_input && ir_at(g, given)->op != IR_OP_state;
  if (schedule_is_explicit(p->r->c) || made || (!p->side[0].shift && words_lie_ready(g, bytes, axis))) return true;
  const double results = (double)schedule_hint(g->pool, ir_tensor_elements(g->pool, &p->node->type));
  const double products = results * (double)p->terms * (1 - 1.0 / 4);
  return products / (cost->lanes * cost->fma_per_cycle * cost->units * cost->ghz) > cost->launch_ns;
}

static uint32_t multiplied_as_bytes(rebuild *r) {
  product p = {.r = r, .node = ir_at(r->from, r->node)};
  const bool real = p.node->type.dtype == SNT_F32;
  if ((!real && p.node->type.dtype != SNT_I32) || (real && fusion_keeps_order(r->c->options))) return 0;
  p.out = ir_attr_ints(r->from, r->node, IR_ATTR_out, &p.out_rank);
  if (!find_sides(&p) || !read_terms(&p)) return 0;
  const words_labels labels = {p.labels[0], p.out, p.rank[0], p.out_rank};
  uint32_t axis;
  if (!words_axis(r->to, p.side[0].bytes, &labels, &axis) || takes_units(&p, real) || !pays(&p, axis)) return 0;
  if (!words_pay(r->c, r->to, p.side[0].bytes)) return 0;
  if (!real && (p.side[0].scale.node || p.side[1].scale.node)) return 0;
  if (!sign_weights(&p)) return 0;
  const uint32_t zeros[2] = {zero_of(&p, 0), zero_of(&p, 1)};
  uint32_t sums = contract_of(&p, p.side[0].bytes, p.side[1].bytes, p.rank[1], p.labels[1], p.out_rank, p.out);
  if (sums) sums = less_right(&p, sums, zeros[1]);
  if (sums) sums = less_left(&p, sums, zeros[0], zeros[1]);
  return sums && real ? scaled(&p, ir_add_cast(r->to, sums, SNT_F32)) : sums;
}

static const rebuild_rule rules[] = {{multiplied_as_bytes, .ops = {IR_OP_contract}}};

snt_result fusion_multiply_bytes(fusion_context *c, bool *changed) {
  return words_are_wanted(c) ? fusion_rebuild(c, rules, IR_COUNT(rules), changed) : SNT_OK;
}
