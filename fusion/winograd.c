/* Rewrites 3x3 convolutions of stride 1 as Winograd's F(4x4, 3x3) or F(2x2, 3x3) where that is cheaper on the profile. In: channels last where vectors are
   explicit, which lie along them; before positions where work-items are lanes, which lie along tiles; padding apart. Out: tiles of the input times a matrix, a product a point of the tile with weights transformed here, and that times another matrix. Where tiles do not
   divide the rows or columns, the last ones read more padding, and what they have too much is cut off.
   The results are those of the convolution but for rounding: docs/numerics.md has the bound. */
#include "fusion/winograd.h"
#include "fusion/rebuild.h"
#include "fusion/schedule_common.h"

/* ---- the matrices as constants of the graph ---- */

static uint32_t add_matrix(rebuild *r, const winograd_form *f, bool output) {
  const uint32_t rows = output ? f->results : f->tile;
  const ir_tensor type = {.dtype = SNT_F32, .rank = 4, .dims = {rows, rows, f->tile, f->tile}};
  float *data = ir_arena_take(r->c->arena, sizeof(float) * rows * rows * f->tile * f->tile, 64);
  if (!data) return 0;
  winograd_matrix(f, output, data);
  return ir_add_const(r->to, &type, &(ir_const){.kind = IR_CONST_DATA, .data = data});
}

/* ---- the convolution ---- */

typedef struct arrangement {
  uint8_t rows, channel;             /* axes of the source and of the result; columns follow rows */
  char first[19], mid[12], last[19]; /* labels of the three contractions: lhs, rhs, out */
} arrangement;
static const arrangement arrangements[2] = {{1, 3, "012345 6745 670123", "012 023 013", "012345 6701 236475"},
                                            {2, 1, "012345 6745 671023", "021 023 031", "012345 6701 324657"}};

typedef struct conv {
  const arrangement *order;
  uint32_t source, weights; /* of the new graph: below the window; the constant */
  ir_expr batch, rows, columns;
  int64_t channels, outputs;
  int64_t stride[4]; /* of the weights: output, channel, tap down, tap across */
  int32_t dtype;     /* of all three: what is narrow is transformed and summed in f32 and rounded once, as by the plain convolution */
} conv;

static bool literal(const rebuild *r, ir_expr e, int64_t *out) { return expr_is_const(r->to->pool, e, out) && *out > 0; }

/* A plain 3x3 window of positions beside each other. */
static bool read_window(const rebuild *r, uint32_t node, conv *v) {
  static const uint8_t keys[] = {IR_ATTR_dilation, IR_ATTR_stride, IR_ATTR_size, IR_ATTR_low, IR_ATTR_high};
  static const ir_expr wanted[] = {1, 1, 3, 0, 0};
  const ir_graph *g = r->to;
  uint32_t count;
  v->order = &arrangements[!schedule_is_explicit(r->c)];
  const uint32_t rows = v->order->rows;
  if (ir_at(g, node)->op != IR_OP_window || ir_at(g, node)->type.rank != 6 || ir_attr_int(g, node, IR_ATTR_axis, 0) != rows) return false;
  for (uint32_t k = 0; k < IR_COUNT(keys); k++) {
    const ir_expr *list = ir_attr_ints(g, node, (ir_attr_key)keys[k], &count);
    if (!list || count != 2 || list[0] != wanted[k] || list[1] != wanted[k]) return false;
  }
  const ir_expr *dims = ir_at(g, node)->type.dims;
  v->source = ir_arg(g, node, 0);
  v->batch = dims[0], v->rows = dims[rows], v->columns = dims[rows + 1];
  return v->batch && v->rows && v->columns && literal(r, dims[v->order->channel], &v->channels);
}

/* Weights in any order of their axes; the result in the source's. */
static bool read_conv(rebuild *r, conv *v) {
  const ir_node *n = ir_at(r->from, r->node);
  uint32_t lhs_rank, rhs_rank, out_rank;
  if (n->type.rank != 4 || !read_window(r, r->args[0], v)) return false;
  const ir_node *w = ir_at(r->to, r->args[1]);
  v->dtype = n->type.dtype;
  if (!ir_dtypes[v->dtype].is_float || v->dtype == SNT_F64) return false;
  if (w->op != IR_OP_const || w->type.rank != 4 || w->type.dtype != v->dtype || ir_at(r->to, r->args[0])->type.dtype != v->dtype)
    return false;
  if (r->to->consts.at[w->payload].kind == IR_CONST_SPLAT) return false;
  const ir_expr *lhs = ir_attr_ints(r->from, r->node, IR_ATTR_lhs, &lhs_rank),
                *rhs = ir_attr_ints(r->from, r->node, IR_ATTR_rhs, &rhs_rank),
                *out = ir_attr_ints(r->from, r->node, IR_ATTR_out, &out_rank);
  const uint32_t channel = v->order->channel;
  for (uint32_t i = 0; i < 4; i++)
    if (i != channel && out[i] != lhs[i]) return false;
  const ir_expr named[4] = {out[channel], lhs[channel], lhs[4], lhs[5]};
  uint32_t found = 0;
  int64_t stride = 1, extent;
  for (uint32_t i = 4; i-- > 0;) {
    if (!literal(r, w->type.dims[i], &extent)) return false;
    for (uint32_t k = 0; k < 4; k++)
      if (rhs[i] == named[k]) v->stride[k] = stride, found |= 1u << k;
    stride *= extent;
  }
  v->weights = r->args[1];
  return found == 15 && literal(r, n->type.dims[channel], &v->outputs);
}

static ir_expr tiles_along(expr_pool *x, ir_expr extent, int64_t results) { return expr_ceil_div(x, extent, (ir_expr)results); }

/* Of a row: so many that an item of texels has four of one row, since whole texels are read and stored of them. */
static ir_expr tiles_across(const fusion_context *c, const conv *v, const winograd_form *f) {
  const ir_expr side = (ir_expr)winograd_item_tiles(c);
  return expr_mul(c->graph->pool, tiles_along(c->graph->pool, v->columns, side * f->results), side);
}

/* ---- what it costs, in ns, at the hints of symbols ---- */

static double compute_ns(const cost_profile *p, double fmas) {
  const double share = p->contract_share > 0 ? p->contract_share : 1;
  return fmas / (p->units * p->ghz * p->lanes * p->fma_per_cycle * share);
}

/* Weights come from memory, each once a run, and their products wait: half the rate at which a loop copies (256 channels of 14 x 14: 36 points of them
   cost 1.1 times as much as 16, though they are 0.73 of the products). */
static double weights_ns(const cost_profile *p, double elements, uint32_t bytes) { return 2 * elements * bytes / p->dram_gbs; }

static double direct_ns(const cost_profile *p, expr_pool *x, const conv *v) {
  const double results = (double)schedule_hint(x, schedule_product(x, 3, (const ir_expr[]){v->batch, v->rows, v->columns})),
               depth = 9. * v->channels;
  return compute_ns(p, results * v->outputs * depth) + weights_ns(p, depth * v->outputs, ir_dtypes[v->dtype].bytes);
}

/* Channels of whole vectors that take as long: what is left over goes four at a time and one at a time. */
static double in_vectors(int64_t channels, int64_t lanes) {
  const int64_t rest = channels % lanes;
  return (double)(lanes * (channels / lanes + rest / 4 + rest % 4));
}

/* Two more kernels; tiles go to a cache and come back; larger weights stream from memory; the transforms are a dozen or so additions a line. */
static double form_ns(const fusion_context *c, const conv *v, const winograd_form *f, int64_t lanes) {
  const cost_profile *p = c->options->profile;
  expr_pool *x = c->graph->pool;
  const double points = (double)f->tile * f->tile, lines = 2. * f->tile, sums = f->tile == 6 ? 12 : 4;
  const ir_expr extents[] = {v->batch, tiles_along(x, v->rows, f->results), tiles_across(c, v, f)};
  const double tiles = (double)schedule_hint(x, schedule_product(x, 3, extents)), through = points * tiles * (v->channels + v->outputs);
  const double additions = tiles * lines * sums * (in_vectors(v->channels, lanes) + in_vectors(v->outputs, lanes));
  return compute_ns(p, points * tiles * v->channels * v->outputs) + 2 * compute_ns(p, additions) + 2 * through * 4 / p->cache_gbs +
         weights_ns(p, points * v->channels * v->outputs, sizeof(float)) + 2 * p->launch_ns;
}

static const winograd_form *pick_form(const fusion_context *c, const conv *v) {
  const int64_t lanes = (int64_t)schedule_lanes(c);
  expr_pool *x = c->graph->pool;
  double best = direct_ns(c->options->profile, x, v);
  const winograd_form *picked = NULL;
  if (v->channels < lanes || v->outputs < lanes) return NULL;
  for (uint32_t i = 0; i < WINOGRAD_FORMS; i++) {
    const double ns = form_ns(c, v, &winograd_forms[i], lanes);
    if (ns < best) best = ns, picked = &winograd_forms[i];
  }
  return picked;
}

/* ---- the three contractions ---- */

static uint32_t add_weights(rebuild *r, const conv *v, const winograd_form *f) {
  const uint32_t points = f->tile * f->tile;
  const ir_tensor type = {.dtype = SNT_F32, .rank = 3, .dims = {points, (ir_expr)v->channels, (ir_expr)v->outputs}};
  winograd_weights *w = IR_NEW(r->c->arena, winograd_weights);
  if (!w) return 0;
  w->form = f, w->channels = v->channels, w->outputs = v->outputs, w->dtype = v->dtype;
  memcpy(w->stride, v->stride, sizeof w->stride);
  winograd_describe(w);
  return ir_add_made(r->to, &type, &w->making, v->weights);
}

static uint32_t product(rebuild *r, uint32_t a, uint32_t b, const char *labels) {
  static const uint8_t keys[3] = {IR_ATTR_lhs, IR_ATTR_rhs, IR_ATTR_out};
  ir_attr_value lists[3];
  ir_expr all[19];
  uint32_t at = 0;
  for (uint32_t k = 0; k < 3; k++, at++) {
    const uint32_t first = at;
    for (; labels[at] >= '0'; at++) all[at] = labels[at] - '0';
    lists[k] = (ir_attr_value){keys[k], at - first, all + first};
  }
  const uint32_t made = a && b ? ir_add_node(r->to, IR_OP_contract, 2, (const uint32_t[]){a, b}, 3, lists, NULL) : 0;
  if (made && !r->to->failed) rebuild_keep_identity(r, made, r->node);
  return made;
}

/* `dims` have the channel last; where it comes before positions it is at axis `first`. */
static uint32_t reshape(rebuild *r, const conv *v, uint32_t a, uint32_t rank, uint32_t first, ir_expr *dims) {
  if (v->order->channel == 3) first = rank - 1;
  const ir_expr channel = dims[rank - 1];
  memmove(dims + first + 1, dims + first, (rank - 1 - first) * sizeof *dims);
  dims[first] = channel;
  return a ? rebuild_reshape(r, a, rank, dims) : 0;
}

/* The source with as much more padding as whole tiles need, one `pad` in all. */
static uint32_t extend_source(rebuild *r, const conv *v, const winograd_form *f) {
  expr_pool *x = r->to->pool;
  const ir_expr m = (ir_expr)f->results, tiles[2] = {tiles_along(x, v->rows, m), tiles_across(r->c, v, f)},
                sides[2] = {v->rows, v->columns};
  ir_expr more[2], low[4] = {0}, high[4] = {0};
  uint32_t count, source = v->source;
  for (uint32_t i = 0; i < 2; i++) more[i] = expr_sub(x, expr_mul(x, tiles[i], m), sides[i]);
  if (!more[0] && !more[1]) return source;
  if (ir_at(r->to, source)->op == IR_OP_pad && !ir_attr_int(r->to, source, IR_ATTR_value, 0)) {
    memcpy(low, ir_attr_ints(r->to, source, IR_ATTR_low, &count), sizeof low);
    memcpy(high, ir_attr_ints(r->to, source, IR_ATTR_high, &count), sizeof high);
    source = ir_arg(r->to, source, 0);
  }
  for (uint32_t i = 0; i < 2; i++) high[v->order->rows + i] = expr_add(x, high[v->order->rows + i], more[i]);
  return rebuild_view(r, IR_OP_pad, source, 2, (const ir_attr_value[]){{IR_ATTR_high, 4, high}, {IR_ATTR_low, 4, low}});
}

/* The first rows and columns of whole tiles, shape of the convolution. */
static uint32_t crop(rebuild *r, uint32_t a, const ir_expr *dims) {
  static const ir_expr starts[4] = {0}, steps[4] = {1, 1, 1, 1};
  if (!a || ir_same_shape(&ir_at(r->to, a)->type, &ir_at(r->from, r->node)->type)) return a;
  return rebuild_slice(r, a, 4, starts, dims, steps);
}

/* [n, tiles down, tiles across, c, a, a], or the channel second */
static uint32_t take_tiles(rebuild *r, const conv *v, const winograd_form *f) {
  const ir_expr axis = v->order->rows;
  static const ir_expr ones[2] = {1, 1}, zeros[2] = {0, 0};
  const ir_expr size[2] = {f->tile, f->tile}, stride[2] = {f->results, f->results};
  const ir_attr_value attrs[] = {{IR_ATTR_axis, 1, &axis}, {IR_ATTR_dilation, 2, ones}, {IR_ATTR_high, 2, zeros},
                                 {IR_ATTR_low, 2, zeros},  {IR_ATTR_size, 2, size},     {IR_ATTR_stride, 2, stride}};
  return rebuild_view(r, IR_OP_window, rebuild_wide(r, extend_source(r, v, f)), IR_COUNT(attrs), attrs);
}

static uint32_t as_winograd(rebuild *r) {
  conv v;
  if (!read_conv(r, &v)) return 0;
  const winograd_form *f = pick_form(r->c, &v);
  ir_uses *uses = r->user; /* found when the first convolution asks */
  if (!f || (!uses->first && !ir_find_uses(r->from, r->c->arena, uses)) || fusion_is_whole(r->from, uses, r->node)) return 0;
  expr_pool *x = r->to->pool;
  int64_t literal;
  const ir_expr a = (ir_expr)f->tile, m = (ir_expr)f->results, n = v.batch, channels = (ir_expr)v.channels, outputs = (ir_expr)v.outputs;
  const ir_expr down = tiles_along(x, v.rows, m), across = tiles_across(r->c, &v, f),
                all = schedule_product(x, 3, (const ir_expr[]){n, down, across});
  if (!expr_proves_le(x, v.rows, expr_mul(x, down, m)) || !expr_proves_le(x, v.columns, expr_mul(x, across, m))) return 0;
  if (v.order->channel == 1 && !expr_is_const(x, all, &literal)) return 0; /* columns of a product */
  const uint32_t tiles = take_tiles(r, &v, f), into = add_matrix(r, f, false), u = add_weights(r, &v, f), back = add_matrix(r, f, true);
  const uint32_t first = product(r, tiles, into, v.order->first);
  const uint32_t flat = reshape(r, &v, first, 3, 1, (ir_expr[]){a * a, all, channels});
  const uint32_t middle = product(r, flat, u, v.order->mid);
  const uint32_t split = reshape(r, &v, middle, 6, 2, (ir_expr[]){a, a, n, down, across, outputs});
  const uint32_t last = product(r, split, back, v.order->last);
  const uint32_t whole = reshape(r, &v, last, 4, 1, (ir_expr[]){n, expr_mul(x, down, m), expr_mul(x, across, m), outputs});
  return crop(r, whole ? ir_add_cast(r->to, whole, v.dtype) : 0, ir_at(r->from, r->node)->type.dims);
}

static const rebuild_rule rules[] = {{as_winograd, .ops = {IR_OP_contract}}};

snt_result fusion_winograd(fusion_context *c, bool *changed) {
  if (!winograd_is_allowed(c)) return SNT_OK;
  ir_uses uses = {0};
  return fusion_rebuild_with(c, rules, IR_COUNT(rules), &uses, changed);
}
