/* Layout assignment: channels last, from the first convolution to the last value that can follow: of all convolutions where schedules form vectors
   themselves; where work-items are lanes, which lie along positions as well, of those whose positions are symbols, or that matrix units multiply.
   In: a decomposed graph. Out: the same values; a contraction whose vectors would run along positions has its weights' labels last instead, behind
   a transpose, and the operators after it take the transpose over to their results. What remains are transposes at the borders: views, which
   grouping stores or reads through as it is cheaper. Positions that lie together in every operand become one axis, so that tiles fill. */
#include "fusion/fragments.h"
#include "fusion/rebuild.h"
#include "fusion/rewrite_constants.h"
#include "fusion/schedule_common.h"
#include "fusion/words.h"

typedef struct layout {
  IR_VEC(uint8_t) ours;  /* by node of `graph`, the new one: a transpose of this pass */
  const ir_graph *graph; /* null: none yet */
  uint8_t *convert;      /* by node of the old graph: a source that convolutions read with enough channels for vectors */
  uint8_t *feeds;        /* by node of the old graph: another contraction reads it, through operators of any kind */
} layout;

typedef struct held {
  uint32_t inner, rank;
  uint32_t perm[SNT_MAX_RANK]; /* axis i of the value is axis perm[i] of `inner` */
} held;

static bool mark(rebuild *r, uint32_t node) {
  layout *l = r->user;
  if (l->graph != r->to) l->graph = r->to, l->ours.count = 0;
  while (l->ours.count <= node)
    if (!IR_PUSH(r->c->arena, &l->ours, (uint8_t){0})) return false;
  l->ours.at[node] = 1;
  return true;
}

static uint32_t transpose(rebuild *r, uint32_t inner, uint32_t rank, const uint32_t *perm) {
  ir_expr axes[SNT_MAX_RANK];
  bool same = true;
  for (uint32_t i = 0; i < rank; i++) {
    axes[i] = perm[i];
    same &= perm[i] == i;
  }
  if (same) return inner;
  return rebuild_transpose(r, inner, rank, axes);
}

/* The value as the rest of the graph knows it: a transpose that later rules look through. */
static uint32_t give(rebuild *r, uint32_t inner, uint32_t rank, const uint32_t *perm) {
  const uint32_t made = inner ? transpose(r, inner, rank, perm) : 0;
  if (!made || made == inner) return made;
  rebuild_keep_identity(r, inner, r->node);
  return mark(r, made) ? made : 0;
}

static bool is_ours(const rebuild *r, uint32_t node) {
  const layout *l = r->user;
  return l->graph == r->to && node < l->ours.count && l->ours.at[node];
}

static bool look_through(const rebuild *r, uint32_t arg, held *h) {
  if (!is_ours(r, arg)) return false;
  uint32_t rank;
  const ir_expr *perm = ir_attr_ints(r->to, arg, IR_ATTR_perm, &rank);
  h->inner = ir_arg(r->to, arg, 0);
  h->rank = rank;
  for (uint32_t i = 0; i < rank; i++) h->perm[i] = (uint32_t)perm[i];
  return true;
}

/* Any value in the order of `h`. */
static uint32_t follow(rebuild *r, uint32_t arg, const held *h) {
  held own;
  uint32_t inverse[SNT_MAX_RANK];
  if (ir_at(r->to, arg)->type.rank != h->rank) return arg;
  if (look_through(r, arg, &own) && !memcmp(own.perm, h->perm, h->rank * sizeof h->perm[0])) return own.inner;
  for (uint32_t i = 0; i < h->rank; i++) inverse[h->perm[i]] = i;
  return transpose(r, arg, h->rank, inverse);
}

/* ---- rules: the transpose of an operand becomes one of the result ---- */

static uint32_t sink_pointwise(rebuild *r) {
  const ir_node *n = ir_at(r->from, r->node);
  held h;
  bool found = false;
  for (uint32_t i = 0; n->op != IR_OP_custom && i < n->arity && !found; i++) found = look_through(r, r->args[i], &h);
  if (!found || h.rank != n->type.rank) return 0;
  uint32_t args[3];
  for (uint32_t i = 0; i < n->arity; i++) args[i] = follow(r, r->args[i], &h);
  return give(r, rebuild_with(r, n->arity, args, 0, NULL), h.rank, h.perm);
}

/* pad and slice: lists by axis. */
static uint32_t sink_by_axis(rebuild *r) {
  static const uint8_t keys[] = {IR_ATTR_high, IR_ATTR_low, IR_ATTR_sizes, IR_ATTR_starts, IR_ATTR_steps};
  held h;
  if (!look_through(r, r->args[0], &h)) return 0;
  ir_expr lists[IR_COUNT(keys)][SNT_MAX_RANK];
  ir_attr_value moved[IR_COUNT(keys)];
  uint32_t used = 0, count;
  for (uint32_t k = 0; k < IR_COUNT(keys); k++) {
    const ir_expr *list = ir_attr_ints(r->from, r->node, (ir_attr_key)keys[k], &count);
    if (!list || count != h.rank) continue;
    for (uint32_t i = 0; i < h.rank; i++) lists[used][h.perm[i]] = list[i];
    moved[used] = (ir_attr_value){keys[k], h.rank, lists[used]};
    used++;
  }
  return give(r, rebuild_with(r, 1, &h.inner, used, moved), h.rank, h.perm);
}

static uint32_t sink_window(rebuild *r) {
  const ir_node *n = ir_at(r->from, r->node);
  held h;
  uint32_t count;
  if (!look_through(r, r->args[0], &h)) return 0;
  if (!ir_attr_ints(r->from, r->node, IR_ATTR_size, &count)) return 0;
  const uint32_t axis = (uint32_t)ir_attr_int(r->from, r->node, IR_ATTR_axis, 0);
  for (uint32_t i = 1; i < count; i++)
    if (h.perm[axis + i] != h.perm[axis] + i) return 0;
  for (uint32_t i = h.rank; i < n->type.rank; i++) h.perm[i] = i;
  const ir_expr inner = h.perm[axis];
  return give(r, rebuild_with(r, 1, &h.inner, 1, &(ir_attr_value){IR_ATTR_axis, 1, &inner}), n->type.rank, h.perm);
}

static uint32_t sink_reduce(rebuild *r) {
  held h;
  uint32_t count, kept = 0, perm[SNT_MAX_RANK];
  if (!look_through(r, r->args[0], &h)) return 0;
  const ir_expr *axes = ir_attr_ints(r->from, r->node, IR_ATTR_axes, &count);
  const bool keep = ir_attr_flag(r->from, r->node, IR_ATTR_keep);
  bool reduced[SNT_MAX_RANK] = {false};
  for (uint32_t i = 0; i < count; i++) reduced[h.perm[axes[i]]] = true;
  ir_expr inner[SNT_MAX_RANK];
  uint32_t inner_count = 0, place[SNT_MAX_RANK];
  for (uint32_t i = 0; i < h.rank; i++) { /* inner axes in order; where each kept one comes to lie */
    if (reduced[i]) inner[inner_count++] = i;
    place[i] = keep ? i : i - inner_count;
  }
  for (uint32_t i = 0; i < h.rank; i++)
    if (keep || !reduced[h.perm[i]]) perm[kept++] = place[h.perm[i]];
  return give(r, rebuild_with(r, 1, &h.inner, 1, &(ir_attr_value){IR_ATTR_axes, inner_count, inner}), kept, perm);
}

static uint32_t sink_concat(rebuild *r) {
  const ir_node *n = ir_at(r->from, r->node);
  held h;
  uint32_t args[16];
  uint32_t first = 0;
  if (n->arity > IR_COUNT(args)) return 0;
  while (first < n->arity && !look_through(r, r->args[first], &h)) first++;
  if (first == n->arity) return 0;
  for (uint32_t i = 0; i < n->arity; i++) args[i] = follow(r, r->args[i], &h);
  const ir_expr axis = h.perm[ir_attr_int(r->from, r->node, IR_ATTR_axis, 0)];
  return give(r, rebuild_with(r, n->arity, args, 1, &(ir_attr_value){IR_ATTR_axis, 1, &axis}), h.rank, h.perm);
}

/* Axes that a reshape makes of as many elements: [first, end) of the operand, and of the result. */
typedef struct axis_run {
  uint32_t from[2], to[2];
} axis_run;

/* The shortest such runs, none without axes on both sides; 0: extents cannot be told to be alike. */
static uint32_t find_runs(expr_pool *x, const ir_tensor *from, const ir_tensor *to, axis_run *runs) {
  uint32_t count = 0, i = 0, o = 0;
  while (i < from->rank && o < to->rank) {
    axis_run *run = &runs[count++];
    int64_t before, after;
    *run = (axis_run){{i, i + 1}, {o, o + 1}};
    ir_expr left = from->dims[i++], right = to->dims[o++];
    while (left != right) {
      if (!expr_is_const(x, left, &before) || !expr_is_const(x, right, &after)) return 0;
      if (before < after ? i == from->rank : o == to->rank) return 0;
      if (before < after) left = expr_mul(x, left, from->dims[i++]);
      else right = expr_mul(x, right, to->dims[o++]);
    }
    run->from[1] = i, run->to[1] = o;
  }
  if (!count) return 0;
  for (; i < from->rank; i++) /* what is left has one element */
    if (from->dims[i] != 1) return 0;
  for (; o < to->rank; o++)
    if (to->dims[o] != 1) return 0;
  runs[count - 1].from[1] = from->rank, runs[count - 1].to[1] = to->rank;
  return count;
}

/* Whether axes of a run follow each other in the inner order, too; `at`: where. Those of one element may lie anywhere. */
static bool lies_together(const held *h, const ir_tensor *from, const axis_run *run, uint32_t *at) {
  int64_t last = -1;
  *at = h->perm[run->from[0]];
  for (uint32_t i = run->from[0]; i < run->from[1]; i++) {
    if (from->dims[i] == 1) continue;
    if (last < 0) *at = h->perm[i];
    else if (h->perm[i] != last + 1) return false;
    last = h->perm[i];
  }
  return true;
}

/* A reshape that splits and merges axes which follow each other in the inner order. */
static uint32_t sink_reshape(rebuild *r) {
  const ir_node *n = ir_at(r->from, r->node);
  held h;
  axis_run runs[SNT_MAX_RANK];
  uint32_t at[SNT_MAX_RANK], perm[SNT_MAX_RANK], rank = 0;
  ir_expr dims[SNT_MAX_RANK];
  if (!look_through(r, r->args[0], &h)) return 0;
  const ir_tensor from = ir_at(r->to, r->args[0])->type;
  const uint32_t count = find_runs(r->to->pool, &from, &n->type, runs);
  for (uint32_t k = 0; k < count; k++)
    if (!lies_together(&h, &from, &runs[k], &at[k])) return 0;
  for (uint32_t place = 0; place < h.rank; place++)
    for (uint32_t k = 0; k < count; k++)
      for (uint32_t o = runs[k].to[0]; at[k] == place && o < runs[k].to[1]; o++) perm[o] = rank, dims[rank++] = n->type.dims[o];
  if (!count || rank != n->type.rank) return 0;
  const uint32_t made = rebuild_reshape(r, h.inner, rank, dims);
  return give(r, made, rank, perm);
}

/* Axes of one element become longer: enlarged pictures, between two reshapes. */
static uint32_t sink_broadcast(rebuild *r) {
  const ir_node *n = ir_at(r->from, r->node);
  held h;
  ir_expr dims[SNT_MAX_RANK];
  if (!look_through(r, r->args[0], &h) || h.rank != n->type.rank) return 0;
  for (uint32_t i = 0; i < h.rank; i++) dims[h.perm[i]] = n->type.dims[i];
  const uint32_t made = rebuild_broadcast(r, h.inner, 0, NULL, h.rank, dims);
  return give(r, made, h.rank, h.perm);
}

/* ---- contractions ---- */

typedef struct product {
  uint32_t args[2], rank[2], out_rank;
  bool plain[2];                                      /* not a view: its axes lie in memory as they are listed */
  ir_expr labels[2][SNT_MAX_RANK], out[SNT_MAX_RANK]; /* of `args`; `out` in the order of the new result */
  uint32_t perm[SNT_MAX_RANK];                        /* axis i of the old result is axis perm[i] of the new one */
} product;

static bool has_label(const product *p, uint32_t operand, ir_expr label) {
  return fusion_find_label(p->labels[operand], p->rank[operand], label) >= 0;
}

static bool read_product(rebuild *r, product *p) {
  static const ir_attr_key keys[2] = {IR_ATTR_lhs, IR_ATTR_rhs};
  bool changed = false;
  for (uint32_t o = 0; o < 2; o++) {
    const ir_expr *labels = ir_attr_ints(r->from, r->node, keys[o], &p->rank[o]);
    held h;
    p->args[o] = r->args[o];
    memcpy(p->labels[o], labels, p->rank[o] * sizeof *labels);
    if (!look_through(r, r->args[o], &h)) continue;
    for (uint32_t i = 0; i < h.rank; i++) p->labels[o][h.perm[i]] = labels[i];
    p->args[o] = h.inner;
    changed = true;
  }
  for (uint32_t o = 0; o < 2; o++) p->plain[o] = !fusion_is_view(r->to, p->args[o]);
  const ir_expr *out = ir_attr_ints(r->from, r->node, IR_ATTR_out, &p->out_rank);
  for (uint32_t i = 0; i < p->out_rank; i++) p->out[i] = out[i], p->perm[i] = i; /* none of a scalar */
  return changed;
}

static bool is_constant(const ir_graph *g, uint32_t node) { return ir_at(g, fusion_through_views(g, node))->op == IR_OP_const; }

/* The operand that is a constant, if one is. */
static uint32_t constant_of(const rebuild *r, const product *p) { return is_constant(r->to, p->args[1]); }

/* Bytes that words.c is to read by words, which lie along channels. */
static bool takes_words(const fusion_context *c, const ir_graph *g, const uint32_t *args) {
  return words_pay(c, g, args[0]) && ir_at(g, args[0])->type.dtype == SNT_U8 && ir_at(g, args[1])->type.dtype == SNT_I8;
}

/* Elements that matrix units multiply: whole vectors of them lie along channels, while along positions every tap begins elsewhere. */
static bool takes_units(const fusion_context *c, const ir_graph *g, const uint32_t *args) {
  matrix_units units;
  const int32_t element = ir_at(g, args[0])->type.dtype;
  return ir_at(g, args[1])->type.dtype == element && matrix_units_find(c, element, &units);
}

/* Lanes: a tile has as many columns as there are positions. `args`: what a product of type t multiplies; `vectors`: its source has channels last, or what
   follows makes up for reading one that has not. */
static bool keeps_positions(const fusion_context *c, const ir_graph *g, const ir_tensor *t, const uint32_t *args, bool vectors) {
  int64_t extent;
  return !schedule_is_explicit(c) && t->rank && expr_is_const(g->pool, t->dims[t->rank - 1], &extent) && !takes_words(c, g, args) &&
         !(vectors && takes_units(c, g, args));
}

/* Vectors along positions, rows along a constant's labels: how many these are, 0 where it is another product. */
static int64_t channels_across(const rebuild *r, const product *p, bool turned) {
  const layout *l = r->user;
  const ir_tensor *t = &ir_at(r->from, r->node)->type;
  const uint32_t w = constant_of(r, p), last = p->out_rank - 1;
  int64_t channels = 1, extent;
  if (p->out_rank < 3 || (!ir_dtypes[t->dtype].is_float && t->dtype != SNT_I32) || !is_constant(r->to, p->args[w]) ||
      is_constant(r->to, p->args[1 - w]))
    return 0;
  if (has_label(p, w, p->out[last]) || t->dims[last] == 1) return 0;
  if (keeps_positions(r->c, r->to, t, p->args, turned || l->feeds[r->node])) return 0;
  for (uint32_t i = 0; i < p->out_rank; i++) {
    if (!has_label(p, w, p->out[i])) continue;
    if (!expr_is_const(r->to->pool, t->dims[i], &extent)) return 0;
    channels *= extent;
  }
  return channels;
}

/* Turned, if they are enough for vectors. */
static bool wants_turn(const rebuild *r, const product *p, bool turned) {
  return (turned ? 4 : 1) * channels_across(r, p, turned) >= (int64_t)schedule_lanes(r->c);
}

/* Are neighbours along the last axis one element and others the next, as an enlarged picture's are? */
static bool repeats(const ir_graph *g, uint32_t node) {
  const ir_node *n = ir_at(g, node), *below = n->op == IR_OP_reshape ? ir_at(g, ir_arg(g, node, 0)) : n;
  if (below->op != IR_OP_broadcast || below == n) return false;
  const ir_tensor *few = &ir_at(g, g->args.at[below->args])->type;
  const ir_expr last = below->type.dims[below->type.rank - 1];
  return few->rank && last != n->type.dims[n->type.rank - 1] && last != few->dims[few->rank - 1];
}

/* Do positions of a value lie between channels, or several of them in one? So they do where it is held, and where elements of such a value change places
   on the way to it: channels that became positions, of a transposed convolution or an enlarged picture. */
static bool lies_between(const rebuild *r, uint32_t node) {
  const ir_graph *g = r->to;
  for (uint32_t far = 24; !is_ours(r, node); far--) {
    const ir_node *n = ir_at(g, node);
    if (!far || !(ir_ops[n->op].flags & (IR_POINTWISE | IR_MOVEMENT))) return false;
    for (uint32_t i = 0; i < n->arity; i++)
      if (repeats(g, ir_arg(g, node, i))) return true;
    node = ir_arg(g, node, is_constant(g, ir_arg(g, node, 0)) ? n->arity - 1 : 0);
  }
  return true;
}

/* A source whose positions lie between channels, for a product of too few to be turned: as the graph knows it, stored so, since vectors of positions are
   not gathered from there. 0: behind too many views. */
static uint32_t in_own_order(rebuild *r, uint32_t operand) {
  enum { MOST_VIEWS = 4 };
  uint32_t views[MOST_VIEWS], count = 0, node = ir_arg(r->from, r->node, operand);
  for (; ir_at(r->from, node)->op == IR_OP_window || ir_at(r->from, node)->op == IR_OP_pad; node = ir_arg(r->from, node, 0)) {
    if (count == MOST_VIEWS) return 0;
    views[count++] = node;
  }
  uint32_t made = r->map[node];
  ir_add_contract(r->to, IR_KEEP, 1, &made);
  while (made && count) made = rebuild_copy_of(r, views[--count], &made);
  return made;
}

/* What lanes without a channel would multiply, if it were turned, beside storing the source once more. */
static bool lanes_are_dearer(const rebuild *r, const product *p, uint32_t source, int64_t channels) {
  const cost_profile *cost = r->c->options->profile;
  expr_pool *x = r->to->pool;
  const ir_tensor *w = &ir_at(r->from, ir_arg(r->from, r->node, 1 - source))->type;
  const double results = (double)schedule_hint(x, ir_tensor_elements(x, &ir_at(r->from, r->node)->type)) / (double)channels;
  const double rate = cost->lanes * cost->fma_per_cycle * cost->ghz * cost->units;
  const double idle = results * (double)schedule_hint(x, ir_tensor_elements(x, w)) * ((double)schedule_lanes(r->c) / (double)channels - 1) /
                      rate;
  const uint32_t node = fusion_below_window(r->to, p->args[source]);
  const double bytes = (double)schedule_hint(x, ir_tensor_elements(x, &ir_at(r->to, node)->type)) *
                       ir_dtypes[ir_at(r->to, node)->type.dtype].bytes;
  return idle > cost->launch_ns + (1 + cost->strided_factor) * bytes / cost->cache_gbs;
}

static uint32_t few_channels(rebuild *r, const product *p) {
  const layout *l = r->user;
  const int64_t channels = channels_across(r, p, true), lanes = (int64_t)schedule_lanes(r->c);
  const uint32_t w = constant_of(r, p);
  if (!channels || channels >= lanes) return 0;
  if (4 * channels >= lanes && (l->feeds[r->node] || !lanes_are_dearer(r, p, 1 - w, channels))) return 0;
  uint32_t args[2] = {r->args[0], r->args[1]};
  args[1 - w] = in_own_order(r, 1 - w);
  return args[1 - w] ? rebuild_copy_of(r, r->node, args) : 0;
}

/* Labels of the constant last, in their order. */
static void turn(const rebuild *r, product *p) {
  const uint32_t w = constant_of(r, p);
  ir_expr out[SNT_MAX_RANK];
  uint32_t count = 0;
  for (uint32_t pass = 0; pass < 2; pass++)
    for (uint32_t i = 0; i < p->out_rank; i++)
      if (has_label(p, w, p->out[i]) == (pass == 1)) p->perm[i] = count, out[count++] = p->out[i];
  memcpy(p->out, out, sizeof out);
}

/* A constant that has the last label, too, as a depthwise convolution's has its channels: near lanes read elements of it that lie beside each other. */
static void turn_constant(rebuild *r, product *p) {
  const ir_expr last = p->out[p->out_rank - 1];
  const uint32_t w = constant_of(r, p), rank = p->rank[w];
  const int32_t at = fusion_find_label(p->labels[w], rank, last);
  ir_expr labels[SNT_MAX_RANK], perm[SNT_MAX_RANK];
  uint32_t count = 0;
  if (schedule_is_explicit(r->c) || !r->c->options->profile->local_bytes || at < 0 || (uint32_t)at + 1 == rank ||
      !has_label(p, 1 - w, last))
    return;
  for (uint32_t i = 0; i < rank; i++)
    if (i != (uint32_t)at) perm[count++] = i;
  perm[count] = at;
  const uint32_t made = rewrite_moved(r, rebuild_transpose(r, p->args[w], rank, perm), true);
  if (!made) return;
  for (uint32_t i = 0; i < rank; i++) labels[i] = p->labels[w][perm[i]];
  memcpy(p->labels[w], labels, rank * sizeof *labels);
  p->args[w] = made;
}

static void drop_axis(ir_expr *list, uint32_t *count, uint32_t at) {
  for (uint32_t i = at; i + 1 < *count; i++) list[i] = list[i + 1];
  (*count)--;
}

/* Tiles of lanes lie along the last axis of the result alone: two of its axes, literals as tiles want them, are one, so that rows which fill no tile do not end
   one (14 x 14 positions are 196 columns, and each row begins on a texel); near local memory, where tiles are of any axes, so that rows which are no whole vectors
   become some. What is not turned is left alone else. */
static bool fills_tiles(const rebuild *r, const product *p, uint32_t label, const ir_expr *extents) {
  int64_t rows, columns;
  const int64_t lanes = schedule_lanes(r->c);
  if (schedule_is_explicit(r->c)) return true;
  if (label + 2 != p->out_rank || !expr_is_const(r->to->pool, extents[0], &rows) || !expr_is_const(r->to->pool, extents[1], &columns))
    return false;
  if (r->c->options->profile->reads == COST_READS_TEXEL) return columns % (2 * lanes) != 0;
  return schedule_shares_local(r->c) && columns % lanes && rows * columns % lanes == 0;
}

/* Two labels that lie next to each other in the result and in the one operand that has them are one axis. */
static bool merge_pair(rebuild *r, product *p, bool turned) {
  for (uint32_t i = 0; i + 1 < p->out_rank; i++) {
    const ir_expr a = p->out[i], b = p->out[i + 1];
    const uint32_t o = has_label(p, 1, a) ? 1 : 0;
    const int32_t at = fusion_find_label(p->labels[o], p->rank[o], a);
    if (has_label(p, 1 - o, a) || has_label(p, 1 - o, b) || !p->plain[o]) continue;
    if (!is_constant(r->to, p->args[1 - o]) && ir_at(r->to, p->args[o])->op != IR_OP_const) continue;
    if (at < 0 || at + 1 >= (int32_t)p->rank[o] || p->labels[o][at + 1] != b) continue;
    const ir_tensor t = ir_at(r->to, p->args[o])->type;
    if (!turned && !fills_tiles(r, p, i, &t.dims[at])) continue;
    ir_expr shape[SNT_MAX_RANK];
    uint32_t rank = t.rank;
    memcpy(shape, t.dims, sizeof shape);
    shape[at] = expr_mul(r->to->pool, shape[at], shape[at + 1]);
    drop_axis(shape, &rank, (uint32_t)at + 1);
    p->args[o] = rebuild_reshape(r, p->args[o], rank, shape);
    drop_axis(p->labels[o], &p->rank[o], (uint32_t)at + 1);
    drop_axis(p->out, &p->out_rank, i + 1);
    return true;
  }
  return false;
}

static uint32_t place_contract(rebuild *r) {
  const ir_node *n = ir_at(r->from, r->node);
  product p;
  bool changed = read_product(r, &p), merged = false;
  const bool explicit = schedule_is_explicit(r->c), between = explicit ? lies_between(r, r->args[1 - constant_of(r, &p)]) : changed;
  const uint32_t few = explicit && between ? few_channels(r, &p) : 0;
  if (few) return few;
  if (wants_turn(r, &p, between)) {
    turn(r, &p);
    turn_constant(r, &p);
    changed = true;
  }
  while (merge_pair(r, &p, changed)) merged = true;
  if (!changed && !merged) return 0;
  const ir_attr_value lists[] = {
      {IR_ATTR_lhs, p.rank[0], p.labels[0]}, {IR_ATTR_out, p.out_rank, p.out}, {IR_ATTR_rhs, p.rank[1], p.labels[1]}};
  uint32_t made = rebuild_with(r, 2, p.args, IR_COUNT(lists), lists);
  if (merged && made) {
    rebuild_keep_identity(r, made, r->node);
    ir_expr dims[SNT_MAX_RANK];
    for (uint32_t i = 0; i < n->type.rank; i++) dims[p.perm[i]] = n->type.dims[i];
    made = rebuild_reshape(r, made, n->type.rank, dims);
  }
  return give(r, made, n->type.rank, p.perm);
}

/* ---- sources ---- */

/* A launch and two passes cost less than reading across the channels. */
static bool pays(const fusion_context *c, uint32_t node) {
  const cost_profile *p = c->options->profile;
  return schedule_bytes(c, node) * (p->strided_factor - 2) / p->cache_gbs > p->launch_ns;
}

static bool literal_list(const fusion_context *c, uint32_t node, ir_attr_key key, uint32_t first, int64_t most) {
  uint32_t count;
  int64_t value;
  const ir_expr *list = ir_attr_ints(c->graph, node, key, &count);
  for (uint32_t i = first; list && i < first + 2; i++)
    if (i >= count || !expr_is_const(c->graph->pool, list[i], &value) || value < 0 || value > most) return false;
  return list != NULL;
}

/* A depthwise convolution that turns the rows of its source as it reads them (contract/depthwise_rows.c): nothing has to be converted for it. */
static bool turns_rows(const fusion_context *c, uint32_t node, uint32_t operand) {
  enum { NARROWEST = 8, MOST_TAPS = 8 };
  const ir_graph *g = c->graph;
  const uint32_t window = ir_arg(g, node, operand), pad = ir_arg(g, window, 0);
  const ir_tensor *t = &ir_at(g, window)->type;
  uint32_t count[2], out_count;
  int64_t size[4]; /* channels, rows, positions, taps down */
  if (!schedule_is_explicit(c) || fusion_keeps_order(c->options) || ir_at(g, pad)->op != IR_OP_pad || t->rank != 6 || t->dtype != SNT_F32)
    return false;
  const ir_tensor *source = &ir_at(g, ir_arg(g, pad, 0))->type;
  const ir_expr *own = ir_attr_ints(g, node, operand ? IR_ATTR_rhs : IR_ATTR_lhs, &count[0]),
                *other = ir_attr_ints(g, node, operand ? IR_ATTR_lhs : IR_ATTR_rhs, &count[1]),
                *out = ir_attr_ints(g, node, IR_ATTR_out, &out_count);
  if (out_count != 4 || count[1] != 3 || fusion_find_label(other, count[1], own[1]) < 0 || out[1] != own[1]) return false;
  for (uint32_t i = 0; i < 3; i++)
    if (!expr_is_const(g->pool, source->dims[1 + i], &size[i])) return false;
  if (size[2] < NARROWEST || !expr_is_const(g->pool, t->dims[5], &size[3]) || size[3] > MOST_TAPS) return false;
  if (!expr_is_const(g->pool, t->dims[4], &size[3]) || size[3] > MOST_TAPS) return false;
  return literal_list(c, window, IR_ATTR_dilation, 0, 1) && literal_list(c, pad, IR_ATTR_low, 2, size[3] - 1) &&
         (double)((size[3] + 1) * size[0] * size[2]) * sizeof(float) <= 0.5 * c->options->profile->l2_bytes;
}

/* The source below the positions and taps of a contraction that will be turned, if its channels make vectors. */
static void find_source(const fusion_context *c, uint32_t node, uint8_t *convert) {
  const ir_graph *g = c->graph;
  int64_t channels, own;
  const uint32_t args[2] = {ir_arg(g, node, 0), ir_arg(g, node, 1)};
  if (keeps_positions(c, g, &ir_at(g, node)->type, args, true)) return;
  for (uint32_t o = 0; o < 2; o++) {
    uint32_t at = ir_arg(g, node, o);
    const ir_tensor *weights = &ir_at(g, ir_arg(g, node, 1 - o))->type; /* of a convolution: its own channels first */
    if (!weights->rank || !expr_is_const(g->pool, weights->dims[0], &own) || own < (int64_t)schedule_lanes(c)) continue;
    const bool window = ir_at(g, at)->op == IR_OP_window && ir_attr_int(g, at, IR_ATTR_axis, 0) == 2; /* channels before positions */
    if (window && turns_rows(c, node, o)) continue;
    at = fusion_below_window(g, at);
    const ir_node *n = ir_at(g, at);
    if (!window || (n->op != IR_OP_input && n->op != IR_OP_state) || n->type.rank < 3 || !is_constant(g, ir_arg(g, node, 1 - o))) continue;
    convert[at] |= expr_is_const(g->pool, n->type.dims[1], &channels) && channels >= (int64_t)schedule_lanes(c) && pays(c, at);
  }
}

/* It is converted once, by a kernel of its own. */
static uint32_t convert_source(rebuild *r) {
  const layout *l = r->user;
  const uint32_t rank = ir_at(r->from, r->node)->type.rank;
  uint32_t last[SNT_MAX_RANK] = {0}, back[SNT_MAX_RANK] = {0};
  if (!l->convert[r->node]) return 0;
  for (uint32_t i = 1; i + 1 < rank; i++) last[i] = i + 1;
  last[rank - 1] = 1;
  for (uint32_t i = 0; i < rank; i++) back[last[i]] = i;
  const uint32_t inner = transpose(r, rebuild_copy(r), rank, last);
  if (!inner) return 0;
  ir_add_contract(r->to, IR_KEEP, 1, &inner);
  const uint32_t made = transpose(r, inner, rank, back);
  return made && mark(r, made) ? made : 0;
}

static const rebuild_rule rules[] = {
    {.make = convert_source},
    {place_contract, .ops = {IR_OP_contract}},
    {sink_pointwise, .flags = IR_POINTWISE},
    {sink_by_axis, .ops = {IR_OP_pad, IR_OP_slice}},
    {sink_window, .ops = {IR_OP_window}},
    {sink_reduce, .flags = IR_REDUCE},
    {sink_concat, .ops = {IR_OP_concat}},
    {sink_reshape, .ops = {IR_OP_reshape}},
    {sink_broadcast, .ops = {IR_OP_broadcast}},
};

/* Nodes come after what they read. */
static void find_readers(const ir_graph *g, uint8_t *feeds) {
  for (uint32_t n = g->nodes.count; n-- > 1;)
    for (uint32_t i = 0; i < ir_at(g, n)->arity; i++) feeds[ir_arg(g, n, i)] |= feeds[n] || ir_at(g, n)->op == IR_OP_contract;
}

snt_result fusion_layout(fusion_context *c, bool *changed) {
  layout l = {0};
  l.convert = IR_NEW_ARRAY(c->arena, uint8_t, c->graph->nodes.count);
  l.feeds = IR_NEW_ARRAY(c->arena, uint8_t, c->graph->nodes.count);
  if (l.feeds) find_readers(c->graph, l.feeds);
  if (!l.convert || !l.feeds) return ir_no_memory(c->diag, "layout");
  for (uint32_t n = 1; n < c->graph->nodes.count; n++)
    if (ir_at(c->graph, n)->op == IR_OP_contract) find_source(c, n, l.convert);
  return fusion_rebuild_with(c, rules, IR_COUNT(rules), &l, changed);
}
