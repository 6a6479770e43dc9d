/* Weights in fewer bytes, as the caller asks: large constants that contractions sum over, and tables that rows are gathered from, are stored as f16, or as i8
   with a scale of each channel. In: the graph as given. Out: the same with `cast` (and the scale) in their place: so everybody computes with the same numbers,
   the host device too. Each is laid out as its reader sees it, and read through no view. Factors go into weights before (fold_scale.c): behind a cast they
   would stay outside. */
#include "fusion/narrow.h"
#include "fusion/shown.h"
#include <math.h>

enum { LEAST_ELEMENTS = 4096, LEAST_TERMS = 32 }; /* nine taps a channel are nothing to save */

typedef struct candidate {
  uint16_t channels; /* mask of its axes: those that have results of their own */
  bool wanted, refused;
} candidate;
typedef struct narrowing {
  ir_graph *from; /* as given, but for what was folded */
  const ir_graph *given;
  uint32_t given_consts;
  ir_arena *arena; /* of the data */
  int32_t dtype;
  candidate *candidates; /* by node */
  uint32_t made;
  bool failed;
} narrowing;

/* ---- which ---- */

static bool widens(const ir_graph *g, uint32_t node) {
  return ir_at(g, node)->op == IR_OP_cast && ir_dtypes[ir_at(g, ir_arg(g, node, 0))->type.dtype].is_float;
}

static bool may_narrow(narrowing *w, uint32_t node, fusion_shown *s) {
  return ir_at(w->from, node)->type.dtype == SNT_F32 && fusion_show(w->from, node, s) && ir_dtypes[s->dtype].is_float &&
         s->elements >= LEAST_ELEMENTS && w->from->consts.at[ir_at(w->from, s->constant)->payload].kind != IR_CONST_SPLAT;
}

static void want(narrowing *w, uint32_t node, uint32_t channels) {
  candidate *c = &w->candidates[node];
  fusion_shown s;
  int64_t terms = 1;
  if (c->wanted) channels &= c->channels;
  else if (!may_narrow(w, node, &s)) return;
  for (uint32_t d = 0; d < ir_at(w->from, node)->type.rank; d++) terms *= channels >> d & 1 ? 1 : ir_at(w->from, node)->type.dims[d];
  *c = (candidate){.channels = (uint16_t)channels, .wanted = true, .refused = c->refused || terms < LEAST_TERMS};
}

static void want_factors(narrowing *w, uint32_t n) {
  static const ir_attr_key keys[2] = {IR_ATTR_lhs, IR_ATTR_rhs};
  uint32_t out_rank, rank;
  const ir_expr *out = ir_attr_ints(w->from, n, IR_ATTR_out, &out_rank);
  for (uint32_t o = 0; o < 2; o++) {
    const ir_expr *labels = ir_attr_ints(w->from, n, keys[o], &rank);
    uint32_t channels = 0;
    for (uint32_t d = 0; d < rank; d++) channels |= (uint32_t)(fusion_find_label(out, out_rank, labels[d]) >= 0) << d;
    want(w, ir_arg(w->from, n, o), channels);
  }
}

static void look_at(narrowing *w, uint32_t n) {
  const ir_node *node = ir_at(w->from, n);
  if (node->op == IR_OP_contract) {
    want_factors(w, n);
    return;
  }
  if (node->op == IR_OP_gather) want(w, ir_arg(w->from, n, 0), 1u << ir_attr_int(w->from, n, IR_ATTR_axis, 0));
  for (uint32_t i = node->op == IR_OP_gather; i < node->arity && !fusion_is_view(w->from, n) && !widens(w->from, n); i++)
    w->candidates[ir_arg(w->from, n, i)].refused = true; /* its exact numbers are somebody's */
}

static void look_at_ends(narrowing *w) {
  const ir_graph *g = w->from;
  for (uint32_t i = 0; i < g->outputs.count; i++) w->candidates[g->outputs.at[i].node].refused = true;
  for (uint32_t i = 0; i < g->updates.count; i++) w->candidates[g->updates.at[i].value].refused = true;
  for (uint32_t i = 0; i < g->yields.count; i++) w->candidates[g->yields.at[i]].refused = true;
}

/* ---- numbers ---- */

typedef struct numbers {
  float *most; /* by channel; of halves one for all */
  void *to;
} numbers;
static void find_most(void *user, int64_t at, int64_t channel, float value) {
  float *most = &((numbers *)user)->most[channel];
  (void)at;
  if (!(fabsf(value) <= *most)) *most = isfinite(value) ? fabsf(value) : INFINITY; /* and stays so */
}
static void put_half(void *user, int64_t at, int64_t channel, float value) {
  (void)channel;
  ((uint16_t *)((numbers *)user)->to)[at] = ir_f16_from_f32(value);
}
static void put_byte(void *user, int64_t at, int64_t channel, float value) {
  const numbers *n = user;
  const double steps = n->most[channel] > 0 ? rint((double)value / (double)n->most[channel]) : 0;
  ((int8_t *)n->to)[at] = (int8_t)fmax(-127, fmin(127, steps));
}

/* False: numbers that the type does not hold. */
static bool fits(const narrowing *w, const float *most, int64_t channels) {
  static const float most_half = 65504;
  for (int64_t i = 0; i < channels; i++)
    if (!(most[i] <= (w->dtype == SNT_F16 ? most_half : 1e30f))) return false;
  return true;
}

static uint32_t dequantise(const candidate *c, const fusion_shown *s, uint32_t value, const float *scales, ir_graph *to) {
  ir_tensor type = {.dtype = SNT_F32};
  ir_expr axes[SNT_MAX_RANK];
  for (uint32_t d = 0; d < s->rank; d++)
    if (c->channels >> d & 1) axes[type.rank] = d, type.dims[type.rank++] = ir_at(to, value)->type.dims[d];
  const uint32_t scale = ir_add_const(to, &type, &(ir_const){.kind = IR_CONST_DATA, .data = scales});
  const ir_attr_value attrs[] = {{IR_ATTR_axes, type.rank, axes}, {IR_ATTR_shape, s->rank, ir_at(to, value)->type.dims}};
  return ir_add2(to, IR_OP_mul, value, ir_add_node(to, IR_OP_broadcast, 1, &scale, IR_COUNT(attrs), attrs, NULL));
}

static uint32_t add_narrow(narrowing *w, uint32_t n, const fusion_shown *s, const numbers *numbers, ir_graph *to) {
  ir_tensor type = ir_at(w->from, n)->type;
  type.dtype = (uint8_t)w->dtype;
  const uint32_t constant = ir_add_const(to, &type, &(ir_const){.kind = IR_CONST_DATA, .data = numbers->to});
  ir_set_name(to, constant, ir_node_name(w->from, s->constant));
  uint32_t made = ir_add_cast(to, constant, SNT_F32);
  if (w->dtype == SNT_I8) made = dequantise(&w->candidates[n], s, made, numbers->most, to);
  if (made) to->nodes.at[made].origin = ir_at(w->from, n)->origin;
  w->made++;
  return made;
}

/* What folding made of constants lies where nothing stays. */
static uint32_t keep(narrowing *w, uint32_t n, ir_graph *to) {
  const ir_node *node = ir_at(w->from, n);
  const ir_const *value = node->op == IR_OP_const ? &w->from->consts.at[node->payload] : NULL;
  if (!value || (value->kind != IR_CONST_DATA && value->kind != IR_CONST_MADE)) return 0;
  for (uint32_t i = 0; i < w->given_consts; i++)
    if (value->data && w->given->consts.at[i].data == value->data) return 0;
  const void *data = ir_const_data(w->from, n);
  const size_t bytes = (size_t)ir_tensor_elements(w->from->pool, &node->type) * ir_dtypes[node->type.dtype].bytes;
  void *own = data ? ir_arena_take_own(w->arena, bytes) : NULL;
  w->failed |= !own;
  if (!own) return 0;
  memcpy(own, data, bytes);
  const uint32_t made = ir_add_const(to, &node->type, &(ir_const){.kind = IR_CONST_DATA, .data = own});
  ir_set_name(to, made, ir_node_name(w->from, n));
  if (made) to->nodes.at[made].origin = node->origin;
  return made;
}

static uint32_t replace(void *user, ir_graph *to, uint32_t n) {
  narrowing *w = user;
  const candidate *c = &w->candidates[n];
  const uint32_t channels = w->dtype == SNT_I8 ? c->channels : 0;
  fusion_shown s;
  int64_t count = 1;
  if (!c->wanted || c->refused || (w->dtype == SNT_I8 && !channels) || !may_narrow(w, n, &s)) return keep(w, n, to);
  s.data = ir_const_data(w->from, s.constant);
  for (uint32_t d = 0; d < s.rank; d++) count *= channels >> d & 1 ? s.extent[d] : 1;
  numbers numbers = {IR_NEW_ARRAY(w->arena, float, (size_t)count), NULL};
  if (s.data && numbers.most) {
    fusion_walk(&s, channels, find_most, &numbers);
    if (!fits(w, numbers.most, count)) return keep(w, n, to);
    numbers.to = ir_arena_take_own(w->arena, (size_t)s.elements * ir_dtypes[w->dtype].bytes);
  }
  w->failed |= !numbers.to;
  if (w->failed) return 0;
  for (int64_t i = 0; i < count; i++) numbers.most[i] /= 127;
  fusion_walk(&s, channels, w->dtype == SNT_I8 ? put_byte : put_half, &numbers);
  return add_narrow(w, n, &s, &numbers, to);
}

/* Constants of constants, then factors into weights: passes of the pipeline, that nobody hears of twice. */
static snt_result fold(ir_graph *given, const fusion_options *options, fusion_context *c, snt_diag *diag) {
  fusion_options *own = IR_NEW(given->arena, fusion_options);
  ir_plan *none = IR_NEW(given->arena, ir_plan);
  bool folded;
  if (!own || !none) return SNT_E_HOST_MEM;
  *own = *options;
  own->only = "scales", own->hooks = NULL, own->weights = 0;
  plan_init(none, given->arena, given->pool);
  SNT_TRY(ir_graph_fold(given, FUSION_FOLD_LIMIT, &folded));
  return fusion_compile(c, given, own, given->arena, none, diag);
}

snt_result fusion_narrow(ir_graph *given, const fusion_options *options, ir_graph *to, uint32_t *out_count, snt_diag *diag) {
  ir_graph whole;
  fusion_context c;
  narrowing w = {.given = given, .given_consts = given->consts.count, .arena = to->arena, .dtype = options->weights};
  SNT_TRY(fold(given, options, &c, diag));
  ir_graph *from = w.from = c.graph;
  uint32_t *map = IR_NEW_ARRAY(from->arena, uint32_t, from->nodes.count);
  w.candidates = IR_NEW_ARRAY(from->arena, candidate, from->nodes.count);
  if (!map || !w.candidates) return SNT_E_HOST_MEM;
  for (uint32_t n = 1; n < from->nodes.count; n++) look_at(&w, n);
  look_at_ends(&w);
  ir_graph_init(&whole, from->arena, from->pool);
  SNT_TRY(ir_graph_copy_with(from, &whole, map, &(ir_copy_hook){&w, replace}));
  uint32_t *live = IR_NEW_ARRAY(from->arena, uint32_t, whole.nodes.count);
  if (w.failed || !live) return SNT_E_HOST_MEM;
  *out_count = w.made;
  return ir_graph_copy_live(&whole, to, live);
}
