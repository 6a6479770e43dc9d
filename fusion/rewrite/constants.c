/* Values that hang on constants alone: zero points and scales over weights of fewer bytes, through views or not. Such a chain becomes a
   constant that is described (ir/making.h): the same f32 steps in the same order, made once and not in every run. Constants of few elements
   are folded before (ir/graph/fold.c). */
#include "fusion/rewrite_constants.h"

enum { MOST_STEPS = 6, MOST_VIEWS = 8 };

typedef struct step { /* value = value op with, or with op value */
  ir_op op;
  bool turned;
  float splat;
  const void *with; /* of `dtype`; null: the splat */
  int32_t dtype;
  int64_t stride[SNT_MAX_RANK]; /* of `with`, by axis */
} step;
typedef struct chain {
  ir_making making;
  int32_t dtype; /* of the constant below */
  uint32_t count, rank;
  int64_t extent[SNT_MAX_RANK];
  step steps[MOST_STEPS]; /* the last one first */
} chain;

/* ---- the bytes ---- */

static float apply(ir_op op, float a, float b) {
  return op == IR_OP_add ? a + b : op == IR_OP_sub ? a - b : op == IR_OP_mul ? a * b : a / b;
}

static void step_line(const step *s, int64_t from, int64_t stride, int64_t count, float *line) {
  for (int64_t i = 0; i < count; i++) {
    const float with = s->with ? (float)ir_dtype_load(s->dtype, s->with, (size_t)(from + i * stride)) : s->splat;
    line[i] = s->turned ? apply(s->op, with, line[i]) : apply(s->op, line[i], with);
  }
}

static void fill_chain(const ir_making *m, const void *const *sources, void *to) {
  const chain *c = (const chain *)(const void *)m;
  const int64_t line = c->rank ? c->extent[c->rank - 1] : 1, lines = (int64_t)(m->bytes / sizeof(float)) / (line ? line : 1);
  int64_t at[SNT_MAX_RANK] = {0}, from[MOST_STEPS] = {0};
  for (int64_t k = 0; k < lines; k++) {
    float *out = (float *)to + k * line;
    for (int64_t i = 0; i < line; i++) out[i] = (float)ir_dtype_load(c->dtype, sources[0], (size_t)(k * line + i));
    for (uint32_t s = c->count; s-- > 0;) step_line(&c->steps[s], from[s], c->rank ? c->steps[s].stride[c->rank - 1] : 0, line, out);
    for (uint32_t d = c->rank ? c->rank - 1 : 0; d-- > 0; at[d] = 0) {
      for (uint32_t s = 0; s < c->count; s++) from[s] += c->steps[s].stride[d];
      if (++at[d] < c->extent[d]) break;
      for (uint32_t s = 0; s < c->count; s++) from[s] -= c->steps[s].stride[d] * c->extent[d];
    }
  }
}

/* Neighbouring axes that every step goes along as if they were one, are one: lines are long. */
static void join_axes(chain *c) {
  for (uint32_t d = c->rank; d-- > 1;) {
    bool one = true;
    for (uint32_t s = 0; s < c->count; s++) one &= c->steps[s].stride[d - 1] == c->steps[s].stride[d] * c->extent[d];
    if (!one) continue;
    c->extent[d - 1] *= c->extent[d];
    for (uint32_t s = 0; s < c->count; s++) c->steps[s].stride[d - 1] = c->steps[s].stride[d];
    for (uint32_t i = d; i + 1 < c->rank; i++) {
      c->extent[i] = c->extent[i + 1];
      for (uint32_t s = 0; s < c->count; s++) c->steps[s].stride[i] = c->steps[s].stride[i + 1];
    }
    c->rank--;
  }
}

/* ---- what is there ---- */

static uint32_t below_cast(const ir_graph *g, uint32_t node) {
  return ir_at(g, node)->op == IR_OP_cast && ir_at(g, node)->type.dtype == SNT_F32 ? ir_arg(g, node, 0) : node;
}

/* A number, or a constant that is broadcast: what a step is done with. */
static bool read_with(rebuild *r, uint32_t node, const ir_tensor *type, step *s) {
  ir_graph *g = r->to;
  uint32_t count = ir_at(g, node)->type.rank;
  int64_t stride = 1, extent;
  double number;
  const ir_expr *axes = ir_at(g, node)->op == IR_OP_broadcast ? ir_attr_ints(g, node, IR_ATTR_axes, &count) : NULL;
  const uint32_t base = below_cast(g, axes ? ir_arg(g, node, 0) : node);
  if (ir_is_scalar_const(g, base, &number)) {
    s->splat = (float)number;
    return true;
  }
  const ir_node *n = ir_at(g, base);
  if (n->op != IR_OP_const || n->type.rank != count || (!axes && count != type->rank)) return false;
  for (uint32_t i = count; i-- > 0;) {
    if (!expr_is_const(g->pool, n->type.dims[i], &extent)) return false;
    if (extent > 1) s->stride[axes ? axes[i] : (ir_expr)i] = stride;
    stride *= extent;
  }
  s->dtype = n->type.dtype;
  return (s->with = ir_const_data(g, base)) != NULL;
}

/* The operand that steps go on from: the other one is a number, or one that varies along some axes only. */
static uint32_t read_step(rebuild *r, uint32_t node, step *s) {
  const ir_node *n = ir_at(r->to, node);
  for (uint32_t side = 2; side-- > 0;) {
    const uint32_t with = ir_arg(r->to, node, side), rest = ir_arg(r->to, node, 1 - side);
    *s = (step){.op = n->op, .turned = side == 0};
    if (!ir_same_shape(&ir_at(r->to, rest)->type, &n->type)) continue;
    if (ir_at(r->to, with)->op != IR_OP_broadcast && !ir_is_scalar_const(r->to, with, NULL)) continue;
    if (read_with(r, with, &n->type, s)) return rest;
  }
  return 0;
}

static bool is_step(const ir_node *n) {
  return (n->op == IR_OP_add || n->op == IR_OP_sub || n->op == IR_OP_mul || n->op == IR_OP_div) && n->type.dtype == SNT_F32;
}

/* The constant below the steps of `node`, 0: there is none. */
static uint32_t read_chain(rebuild *r, uint32_t node, chain *c) {
  c->rank = ir_at(r->to, node)->type.rank;
  for (uint32_t d = 0; d < c->rank; d++)
    if (!expr_is_const(r->to->pool, ir_at(r->to, node)->type.dims[d], &c->extent[d])) return 0;
  for (; is_step(ir_at(r->to, node)) && c->count < MOST_STEPS; c->count++)
    if (!(node = read_step(r, node, &c->steps[c->count]))) return 0;
  const uint32_t base = below_cast(r->to, node);
  const ir_node *n = ir_at(r->to, base);
  if (n->op != IR_OP_const || r->to->consts.at[n->payload].kind == IR_CONST_SPLAT || n->type.dtype == SNT_BOOL) return 0;
  c->dtype = n->type.dtype;
  c->making = (ir_making){.fill = fill_chain, .size = sizeof *c};
  return base;
}

bool rewrite_is_narrow(const rebuild *r, uint32_t node) {
  const ir_graph *g = r->to;
  if (ir_at(g, node)->op == IR_OP_sub) node = ir_arg(g, node, 0);
  const uint32_t from = below_cast(g, node);
  const ir_node *n = ir_at(g, from);
  return from != node && n->op == IR_OP_const && g->consts.at[n->payload].kind != IR_CONST_SPLAT && n->type.dtype != SNT_BOOL &&
         ir_dtypes[n->type.dtype].bytes < ir_dtypes[SNT_F32].bytes;
}

static bool is_simple_view(ir_op op) { return op == IR_OP_reshape || op == IR_OP_transpose || op == IR_OP_slice; }

/* ---- elements in another order, which no strides describe: weights of a transposed convolution, of more elements than are folded ---- */

typedef struct moved_view { /* element of the result to element below: by axes of the result */
  uint32_t rank;
  int64_t first, extent[SNT_MAX_RANK], stride[SNT_MAX_RANK];
} moved_view;
typedef struct moving {
  ir_making making;
  uint32_t count, bytes;        /* of an element */
  moved_view views[MOST_VIEWS]; /* the last one first */
} moving;

/* What the first `rank` axes of a view make of element `at` of theirs. */
static int64_t below(const moved_view *v, uint32_t rank, int64_t at) {
  int64_t place = v->first;
  for (uint32_t d = rank; d-- > 0; at /= v->extent[d]) place += at % v->extent[d] * v->stride[d];
  return place;
}

/* A row at a time: of the last view, which all elements go through, only the last axis is walked. */
static void fill_moved(const ir_making *m, const void *const *sources, void *to) {
  const moving *all = (const moving *)(const void *)m;
  const moved_view *v = &all->views[0];
  const int64_t columns = v->extent[v->rank - 1], rows = columns ? (int64_t)(m->bytes / all->bytes) / columns : 0;
  for (int64_t row = 0; row < rows; row++) {
    int64_t first = below(v, v->rank - 1, row);
    for (int64_t k = 0; k < columns; k++, first += v->stride[v->rank - 1], to = (uint8_t *)to + all->bytes) {
      int64_t at = first;
      for (uint32_t i = 1; i < all->count; i++) at = below(&all->views[i], all->views[i].rank, at);
      memcpy(to, (const uint8_t *)sources[0] + (size_t)at * all->bytes, all->bytes);
    }
  }
}

static bool read_view(const ir_graph *g, uint32_t node, moved_view *v) {
  const ir_node *n = ir_at(g, node);
  const ir_tensor *from = &ir_at(g, ir_arg(g, node, 0))->type;
  int64_t below[SNT_MAX_RANK], stride = 1, extent, start = 0, step = 1;
  uint32_t count;
  const ir_expr *perm = ir_attr_ints(g, node, IR_ATTR_perm, &count), *starts = ir_attr_ints(g, node, IR_ATTR_starts, &count),
                *steps = ir_attr_ints(g, node, IR_ATTR_steps, &count);
  *v = (moved_view){.rank = n->type.rank};
  for (uint32_t d = from->rank; d-- > 0; stride *= extent) {
    below[d] = stride;
    if (!expr_is_const(g->pool, from->dims[d], &extent)) return false;
  }
  for (uint32_t d = 0; d < v->rank; d++) {
    if (!expr_is_const(g->pool, n->type.dims[d], &v->extent[d])) return false;
    if (n->op == IR_OP_slice && !(expr_is_const(g->pool, starts[d], &start) && expr_is_const(g->pool, steps[d], &step))) return false;
    v->stride[d] = below[n->op == IR_OP_transpose ? perm[d] : (ir_expr)d] * step;
    v->first += below[d] * start;
  }
  return true;
}

uint32_t rewrite_moved(rebuild *r, uint32_t node, bool turned) {
  const ir_tensor type = ir_at(r->to, node)->type;
  moving *m = IR_NEW(r->c->arena, moving);
  bool joins = false, mixed = false; /* axes that were turned become one */
  for (; m && is_simple_view(ir_at(r->to, node)->op); node = ir_arg(r->to, node, 0)) {
    const ir_op op = ir_at(r->to, node)->op;
    joins |= op == IR_OP_reshape, mixed |= joins && op == IR_OP_transpose;
    if (op == IR_OP_reshape) continue; /* the same elements in the same order */
    if (m->count == MOST_VIEWS || !read_view(r->to, node, &m->views[m->count++])) return 0;
  }
  if (!m || !m->count || !(mixed || turned) || ir_at(r->to, node)->op != IR_OP_const ||
      r->to->consts.at[ir_at(r->to, node)->payload].kind == IR_CONST_SPLAT)
    return 0;
  m->bytes = ir_dtypes[type.dtype].bytes;
  m->making.fill = fill_moved, m->making.size = sizeof *m;
  m->making.reorders = ir_tensor_elements(r->to->pool, &type) == ir_tensor_elements(r->to->pool, &ir_at(r->to, node)->type);
  return ir_add_made(r->to, &type, &m->making, node);
}
uint32_t rewrite_settle(rebuild *r, uint32_t node) {
  uint32_t views[MOST_VIEWS], count = 0;
  while (is_simple_view(ir_at(r->to, node)->op) && count < MOST_VIEWS) views[count++] = node, node = ir_arg(r->to, node, 0);
  if (ir_at(r->to, node)->type.dtype != SNT_F32 || ir_at(r->to, node)->op == IR_OP_const) return 0;
  chain *c = IR_NEW(r->c->arena, chain);
  const uint32_t base = c ? read_chain(r, node, c) : 0;
  if (!base) return 0;
  join_axes(c);
  const ir_tensor type = ir_at(r->to, node)->type;
  uint32_t made = ir_add_made(r->to, &type, &c->making, base);
  while (made && count) made = ir_add_like(r->to, r->to, views[--count], &made);
  return made;
}
