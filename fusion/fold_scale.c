/* A factor for each channel of a product goes into its weights: contract(x, w) * s is contract(x, w * s), and a constant shift before the factor is
   scaled with it. So a batch norm costs one addition a result. In: a decomposed graph. Out: the same values but for rounding, where numerics allow.
   Only where nothing else reads the product, its shift or its weights: no constant is there twice, and no value the caller wants changes. */
#include "fusion/rebuild.h"
#include "fusion/scale_rows.h"
#include <float.h>
#include <math.h>

typedef struct fold_scale {
  ir_uses uses;
  bool *named; /* by node: in a contract of the caller */
} fold_scale;

typedef struct channels {       /* a constant that varies along axes of a value */
  uint32_t node, view;          /* the constant, and its broadcast: 0 if there is none */
  int64_t stride[SNT_MAX_RANK]; /* by axis of the value, in elements; 0: the same all along */
} channels;

/* scale(reshape?(product) + shift?) */
typedef struct scaled {
  channels factor, shift; /* shift.node 0: none */
  bool divides;
  uint32_t sum, reshape, product, weights, side; /* of the old graph, 0: none; the weights are operand `side` */
  int64_t stride[SNT_MAX_RANK];                  /* of the factor, by axis of the weights */
} scaled;

static bool only_reader(const rebuild *r, uint32_t node) {
  const fold_scale *f = r->user;
  return f->uses.first[node + 1] - f->uses.first[node] == 1 && !f->uses.is_output[node] && !f->named[node];
}

/* A constant of the value's shape, or one broadcast to it. A splat is no factor of a channel. */
static bool read_channels(const rebuild *r, uint32_t node, const ir_tensor *value, channels *out) {
  const ir_graph *g = r->from;
  uint32_t count = value->rank;
  const ir_expr *axes = NULL;
  *out = (channels){.node = node};
  if (ir_at(g, node)->op == IR_OP_broadcast) {
    axes = ir_attr_ints(g, node, IR_ATTR_axes, &count);
    out->view = node;
    out->node = ir_arg(g, node, 0);
  }
  const ir_node *c = ir_at(g, out->node);
  if (c->op != IR_OP_const || c->type.dtype != SNT_F32 || value->dtype != SNT_F32 || c->type.rank != count) return false;
  if (g->consts.at[c->payload].kind == IR_CONST_SPLAT) return false;
  int64_t stride = 1, extent;
  for (uint32_t i = count; i-- > 0;) {
    if (!expr_is_const(g->pool, c->type.dims[i], &extent) || extent < 1) return false;
    if (extent > 1) out->stride[axes ? axes[i] : (ir_expr)i] = stride;
    stride *= extent;
  }
  return true;
}

/* ---- what is there ---- */

static bool read_factor(const rebuild *r, scaled *s, uint32_t *value) {
  const ir_node *n = ir_at(r->from, r->node);
  s->divides = n->op == IR_OP_div;
  for (uint32_t side = 2; side-- > (s->divides ? 1u : 0u);) {
    *value = ir_arg(r->from, r->node, 1 - side);
    if (read_channels(r, ir_arg(r->from, r->node, side), &n->type, &s->factor) && ir_same_shape(&ir_at(r->from, *value)->type, &n->type))
      return true;
  }
  return false;
}

static bool read_shift(const rebuild *r, scaled *s, uint32_t *value) {
  const ir_node *n = ir_at(r->from, *value);
  if (n->op != IR_OP_add) return true;
  for (uint32_t side = 0; side < 2; side++) {
    const uint32_t other = ir_arg(r->from, *value, 1 - side);
    if (!read_channels(r, ir_arg(r->from, *value, side), &n->type, &s->shift)) continue;
    if (memcmp(s->shift.stride, s->factor.stride, sizeof s->shift.stride) || !ir_same_shape(&ir_at(r->from, other)->type, &n->type))
      return false;
    s->sum = *value;
    *value = other;
    return only_reader(r, s->sum);
  }
  return false;
}

/* The strides of the factor by axes of what a reshape reads: an axis of the result is one or several of them, merged. */
static bool look_through(const rebuild *r, scaled *s, int64_t *stride) {
  const ir_tensor *from = &ir_at(r->from, ir_arg(r->from, s->reshape, 0))->type, *to = &ir_at(r->from, s->reshape)->type;
  int64_t inner[SNT_MAX_RANK] = {0}, extent, merged, wanted;
  uint32_t at = from->rank;
  for (uint32_t i = to->rank; i-- > 0;) {
    if (at && from->dims[at - 1] == to->dims[i]) {
      inner[--at] = stride[i];
      continue;
    }
    if (!expr_is_const(r->from->pool, to->dims[i], &wanted)) return false;
    for (merged = 1; merged < wanted;) {
      if (!at || !expr_is_const(r->from->pool, from->dims[at - 1], &extent) || extent < 1) return false;
      inner[--at] = stride[i] * merged;
      merged *= extent;
    }
    if (merged != wanted) return false;
  }
  memcpy(stride, inner, sizeof inner);
  return at == 0;
}

/* A reshape of a constant is another constant with the same data. */
static bool data_is_shared(const rebuild *r, uint32_t node) {
  const ir_graph *g = r->from;
  const ir_uses *uses = &((const fold_scale *)r->user)->uses;
  const ir_const *own = &g->consts.at[ir_at(g, node)->payload];
  for (uint32_t n = 1; n < g->nodes.count; n++) {
    if (n == node || ir_at(g, n)->op != IR_OP_const || uses->first[n] == uses->first[n + 1]) continue;
    const ir_const *other = &g->consts.at[ir_at(g, n)->payload];
    if (other->kind == own->kind && other->data == own->data && other->making == own->making && other->seed == own->seed &&
        other->scale == own->scale)
      return true;
  }
  return false;
}

/* Every axis that the factor varies along is one of the weights. */
static bool read_weights(const rebuild *r, scaled *s, const int64_t *stride) {
  static const ir_attr_key keys[2] = {IR_ATTR_lhs, IR_ATTR_rhs};
  const ir_graph *g = r->from;
  uint32_t out_rank, rank;
  const ir_expr *out = ir_attr_ints(g, s->product, IR_ATTR_out, &out_rank);
  const uint32_t other = ir_arg(g, s->product, 1 - s->side);
  s->weights = ir_arg(g, s->product, s->side);
  const ir_node *w = ir_at(g, s->weights);
  if (w->op != IR_OP_const || w->type.dtype != SNT_F32 || ir_at(g, other)->type.dtype != SNT_F32 || !only_reader(r, s->weights))
    return false;
  if (g->consts.at[w->payload].kind == IR_CONST_SPLAT || data_is_shared(r, s->weights)) return false;
  const ir_expr *labels = ir_attr_ints(g, s->product, keys[s->side], &rank);
  memset(s->stride, 0, sizeof s->stride);
  for (uint32_t i = 0; i < out_rank; i++) {
    uint32_t at = 0;
    while (at < rank && labels[at] != out[i]) at++;
    if (stride[i] && at == rank) return false;
    if (stride[i]) s->stride[at] = stride[i];
  }
  return true;
}

static bool read_scaled(const rebuild *r, scaled *s) {
  uint32_t value;
  *s = (scaled){0};
  if (!read_factor(r, s, &value) || !read_shift(r, s, &value)) return false;
  int64_t stride[SNT_MAX_RANK];
  memcpy(stride, s->factor.stride, sizeof stride);
  if (ir_at(r->from, value)->op == IR_OP_reshape) {
    s->reshape = value;
    if (!only_reader(r, value) || !look_through(r, s, stride)) return false;
    value = ir_arg(r->from, value, 0);
  }
  s->product = value;
  const ir_node *n = ir_at(r->from, value);
  if (n->op != IR_OP_contract || n->type.dtype != SNT_F32 || !only_reader(r, value)) return false;
  for (s->side = 2; s->side-- > 0;)
    if (read_weights(r, s, stride)) return true;
  return false;
}

/* ---- constants ---- */

/* Data of a mapped file has no alignment. */
static const void *data_of(rebuild *r, uint32_t node) { return ir_const_data(r->to, r->map[node]); }

/* Most numbers are far from both ends: none has a size in [FLT_MIN, least) or beyond `most`, with some room for rounding. */
static bool surely_keep(const fusion_sizes *sizes, float factor, bool divides) {
  const float by = fabsf(divides ? 1 / factor : factor);
  if (!(by > 1e-30f && by < 1e30f)) return false;
  const float least = by < 1 ? FLT_MIN / by * 1.001f : FLT_MIN, most = by > 1 ? FLT_MAX / by * 0.999f : FLT_MAX;
  return sizes->least >= least && sizes->most <= most; /* false for NaN */
}

/* Weights as rows that have one factor each. */
typedef struct scaling {
  ir_making making;
  bool divides;
  uint32_t rank;
  int64_t rows, row;
  int64_t extent[SNT_MAX_RANK], stride[SNT_MAX_RANK]; /* of the axes before a row: of the weights, of the factor */
} scaling;

static bool plan_rows(const rebuild *r, const scaled *s, scaling *out) {
  const ir_tensor *type = &ir_at(r->from, s->weights)->type;
  out->divides = s->divides, out->rank = type->rank, out->rows = out->row = 1;
  memcpy(out->stride, s->stride, sizeof out->stride);
  for (uint32_t d = 0; d < type->rank; d++)
    if (!expr_is_const(r->from->pool, type->dims[d], &out->extent[d])) return false;
  while (out->rank && !s->stride[out->rank - 1]) out->row *= out->extent[--out->rank];
  for (uint32_t d = 0; d < out->rank; d++) out->rows *= out->extent[d];
  out->making.bytes = (uint64_t)(out->rows * out->row) * sizeof(float);
  return true;
}

/* The number of the next row's factor. */
static int64_t next_factor(const scaling *s, int64_t *at, int64_t which) {
  for (uint32_t d = s->rank; d-- > 0; at[d] = 0) {
    which += s->stride[d];
    if (++at[d] < s->extent[d]) break;
    which -= s->stride[d] * s->extent[d];
  }
  return which;
}

static const void *row_at(const scaling *s, const void *data, int64_t i) {
  return (const char *)data + i * s->row * (int64_t)sizeof(float);
}

static void scale(const ir_making *m, const void *const *sources, void *to) {
  const scaling *s = (const scaling *)(const void *)m;
  int64_t at[SNT_MAX_RANK] = {0}, which = 0;
  for (int64_t i = 0; i < s->rows; i++, which = next_factor(s, at, which))
    scale_row((float *)to + i * s->row, row_at(s, sources[0], i), s->row, scale_number(sources[1], which), s->divides);
}

/* `weights` NULL: they lie in another order than these rows, only their sizes are known. */
static bool weights_keep(const scaling *s, const fusion_sizes *sizes, const void *weights, const void *factor) {
  int64_t at[SNT_MAX_RANK] = {0}, which = 0;
  for (int64_t i = 0; i < s->rows; i++, which = next_factor(s, at, which))
    if (!surely_keep(sizes, scale_number(factor, which), s->divides) &&
        !(weights && scale_row_keeps(row_at(s, weights, i), s->row, scale_number(factor, which), s->divides)))
      return false;
  return true;
}

/* Data that the caller keeps is read once, however often it is compiled. */
static fusion_sizes sizes_of(const rebuild *r, const void *kept, const void *data, uint64_t bytes) {
  const fusion_hooks *hooks = r->c->options->hooks;
  fusion_sizes *place = hooks && hooks->sizes && kept ? hooks->sizes(hooks->user, kept, bytes) : NULL;
  if (place && place->known) return *place;
  const fusion_sizes sizes = scale_read_sizes(data, (int64_t)(bytes / sizeof(float)));
  if (place) *place = sizes;
  return sizes;
}

/* Whether nothing is lost that was there: by the sizes of what lies in `from`, and by the weights themselves where these are they. */
static bool lying_keep(const rebuild *r, const scaling *s, const ir_source *from, const void *factor, bool weights) {
  void *own = from->data ? NULL : ir_arena_take_own(r->c->arena, (size_t)s->making.bytes);
  const void *now = own && ir_make(from->making, &r->c->arena->host, own) ? own : from->data;
  bool keeps = now != NULL;
  if (keeps) {
    const fusion_sizes sizes = sizes_of(r, from->data, now, s->making.bytes);
    keeps = weights_keep(s, &sizes, weights ? now : NULL, factor);
  }
  if (own) ir_arena_give(r->c->arena, own);
  return keeps;
}

/* An order that was made of what lies there otherwise is not made to be read but where sizes alone do not say so. */
static bool source_keeps(const rebuild *r, const scaling *s, const ir_source *weights, const void *factor) {
  const ir_source *from = weights;
  while (!from->data && from->making->reorders) from = &from->making->sources[0];
  return (from != weights && lying_keep(r, s, from, factor, false)) || lying_keep(r, s, weights, factor, true);
}

/* They are scaled when somebody needs them. */
static uint32_t add_weights(rebuild *r, const scaled *s) {
  const ir_tensor *type = &ir_at(r->from, s->weights)->type;
  scaling *made = IR_NEW(r->c->arena, scaling);
  const void *factor = data_of(r, s->factor.node);
  if (!made || !factor || !plan_rows(r, s, made) || !ir_const_source(r->to, r->map[s->weights], &made->making.sources[0])) return 0;
  if (!source_keeps(r, made, &made->making.sources[0], factor)) return 0;
  made->making.fill = scale, made->making.size = sizeof *made;
  made->making.sources[1] = (ir_source){.data = factor};
  return ir_add_made(r->to, type, &made->making, r->map[s->weights]);
}

static uint32_t add_shift(rebuild *r, const scaled *s) {
  const ir_tensor *type = &ir_at(r->from, s->shift.node)->type;
  const void *shift = data_of(r, s->shift.node), *factor = data_of(r, s->factor.node);
  int64_t count;
  if (!expr_is_const(r->from->pool, ir_tensor_elements(r->from->pool, type), &count)) return 0;
  float *to = ir_arena_take(r->c->arena, (size_t)count * sizeof *to, 64);
  if (!to || !shift || !factor) return 0;
  for (int64_t i = 0; i < count; i++) {
    const float from = scale_number(shift, i);
    if (!scale_row_keeps(&from, 1, scale_number(factor, i), s->divides)) return 0;
    scale_row(&to[i], &from, 1, scale_number(factor, i), s->divides);
  }
  const uint32_t made = ir_add_const(r->to, type, &(ir_const){.kind = IR_CONST_DATA, .data = to});
  return made && s->shift.view ? rebuild_copy_of(r, s->shift.view, &made) : made;
}

/* ---- the rule ---- */

static uint32_t into_weights(rebuild *r) {
  scaled s;
  if (!read_scaled(r, &s)) return 0;
  const uint32_t shift = s.sum ? add_shift(r, &s) : 0;
  if (s.sum && !shift) return 0;
  uint32_t args[2];
  args[1 - s.side] = r->map[ir_arg(r->from, s.product, 1 - s.side)];
  if (!(args[s.side] = add_weights(r, &s))) return 0;
  uint32_t made = rebuild_copy_of(r, s.product, args);
  if (made && s.reshape) made = rebuild_copy_of(r, s.reshape, &made);
  if (made && s.sum) made = rebuild_copy_of(r, s.sum, (const uint32_t[]){made, shift});
  return made;
}

/* Two shifts in a row, the bias of a convolution and that of its norm, are one. */
static uint32_t merge_shifts(rebuild *r) {
  const ir_node *n = ir_at(r->from, r->node);
  channels outer, inner;
  for (uint32_t i = 0; i < 4; i++) {
    const uint32_t sum = ir_arg(r->from, r->node, 1 - i % 2), side = i / 2;
    if (ir_at(r->from, sum)->op != IR_OP_add || !read_channels(r, ir_arg(r->from, r->node, i % 2), &n->type, &outer)) continue;
    if (!only_reader(r, sum) || !read_channels(r, ir_arg(r->from, sum, side), &n->type, &inner)) continue;
    const uint32_t rest = ir_arg(r->from, sum, 1 - side), view = outer.view ? outer.view : inner.view;
    const ir_tensor *type = &ir_at(r->from, outer.node)->type;
    if (memcmp(inner.stride, outer.stride, sizeof inner.stride) || !ir_same_shape(&ir_at(r->from, rest)->type, &n->type)) continue;
    if (!ir_same_shape(&ir_at(r->from, inner.node)->type, type)) continue;
    const void *a = data_of(r, inner.node), *b = data_of(r, outer.node);
    int64_t count;
    if (!expr_is_const(r->from->pool, ir_tensor_elements(r->from->pool, type), &count)) continue;
    float *to = ir_arena_take(r->c->arena, (size_t)count * sizeof *to, 64);
    if (!to || !a || !b) return 0;
    for (int64_t k = 0; k < count; k++) to[k] = scale_number(a, k) + scale_number(b, k);
    uint32_t shift = ir_add_const(r->to, type, &(ir_const){.kind = IR_CONST_DATA, .data = to});
    if (shift && view) shift = rebuild_copy_of(r, view, &shift);
    return shift ? rebuild_copy_of(r, r->node, (const uint32_t[]){r->map[rest], shift}) : 0;
  }
  return 0;
}

static const rebuild_rule scales = {into_weights, .ops = {IR_OP_mul, IR_OP_div}}, shifts = {merge_shifts, .ops = {IR_OP_add}};

static snt_result walk(fusion_context *c, const rebuild_rule *rule, bool *changed) {
  const ir_graph *g = c->graph;
  fold_scale f = {.named = IR_NEW_ARRAY(c->arena, bool, g->nodes.count)};
  if (!f.named || !ir_find_uses(g, c->arena, &f.uses)) return ir_no_memory(c->diag, "scales");
  for (uint32_t i = 0; i < g->contract_values.count; i++) f.named[g->contract_values.at[i]] = true;
  return fusion_rebuild_with(c, rule, 1, &f, changed);
}

/* Products whose weights are constants, and constants to scale them: else there is nothing to look for. */
static bool has_weights(const ir_graph *g) {
  for (uint32_t n = 1; n < g->nodes.count; n++) {
    if (ir_at(g, n)->op != IR_OP_contract) continue;
    for (uint32_t i = 0; i < 2; i++)
      if (ir_at(g, ir_arg(g, n, i))->op == IR_OP_const) return true;
  }
  return false;
}

snt_result fusion_fold_scale(fusion_context *c, bool *changed) {
  if (fusion_keeps_order(c->options) || c->options->weights || !has_weights(c->graph)) return SNT_OK;
  bool scaled = false;
  SNT_TRY(walk(c, &scales, &scaled));
  *changed |= scaled;
  return scaled ? walk(c, &shifts, changed) : SNT_OK;
}
