/* The constant folder. A node all of whose operands are constant becomes a constant itself, in place, so numbers, names and contracts stand.
   Values are computed by the reference evaluator: in f64 through any number of nodes, rounded once, and at thresholds (a cast to an integer, floor,
   comparisons). What only repeats elements (broadcast,
   window, padding) is not written out: its operand is folded, and the repetition stays a view. */
#include "ir/eval.h"

typedef struct folder {
  ir_graph *g;
  uint64_t limit;
  bool *constant;   /* by node: computable now */
  uint32_t *wanted; /* nodes to be computed, in order */
  bool *is_wanted;
  uint32_t wanted_count;
  bool changed;
} folder;

static bool elements_of(const ir_graph *g, uint32_t n, uint64_t *out) {
  int64_t count;
  if (!expr_is_const(g->pool, ir_tensor_elements(g->pool, &ir_at(g, n)->type), &count)) return false;
  *out = (uint64_t)count;
  return true;
}

static const ir_const *splat_of(const ir_graph *g, uint32_t n) {
  const ir_node *node = ir_at(g, n);
  return node->op == IR_OP_const && g->consts.at[node->payload].kind == IR_CONST_SPLAT ? &g->consts.at[node->payload] : NULL;
}

static bool make_const(folder *f, uint32_t n, const ir_const *value) {
  if (!IR_PUSH(f->g->arena, &f->g->consts, *value)) return false;
  ir_node *node = &f->g->nodes.at[n];
  node->op = IR_OP_const;
  node->arity = node->attr_count = 0;
  node->payload = f->g->consts.count - 1;
  f->changed = true;
  return true;
}

/* ---- splats: one scalar stands for every element, whatever the shape ---- */
static double real_of(uint64_t bits) {
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* A scalar of one type as another: as cast does it. */
static uint64_t convert(int32_t from, int32_t to, uint64_t bits) {
  uint64_t room[1] = {0}, out;
  if (ir_dtypes[from].is_float) {
    ir_dtype_store(to, room, 0, to == SNT_BOOL || ir_dtypes[to].is_float ? real_of(bits) : ir_op_eval(IR_OP_trunc, real_of(bits), 0, 0));
  } else if (ir_dtypes[to].is_float) {
    ir_dtype_store(to, room, 0, from == SNT_U64 ? (double)bits : (double)(int64_t)bits);
  } else {
    ir_dtype_store_int(to, room, 0, to == SNT_BOOL ? bits != 0 : (int64_t)bits);
  }
  if (!ir_dtypes[to].is_float) return (uint64_t)ir_dtype_load_int(to, room, 0);
  double rounded = ir_dtype_load(to, room, 0);
  memcpy(&out, &rounded, sizeof out);
  return out;
}

static uint64_t eval_splat(const ir_graph *g, const ir_node *node, const uint64_t *bits) {
  const int32_t last = ir_at(g, g->args.at[node->args + node->arity - 1])->type.dtype, result = node->type.dtype;
  const int32_t operand = last;
  if (node->op == IR_OP_cast) return convert(operand, result, bits[0]);
  if (node->op == IR_OP_select) return bits[0] ? bits[1] : bits[2];
  if (!ir_dtypes[operand].is_float)
    return (uint64_t)ir_op_eval_int((ir_op)node->op, (int64_t)bits[0], (int64_t)bits[1], (int64_t)bits[2], operand);
  const double value = ir_op_eval((ir_op)node->op, real_of(bits[0]), real_of(bits[1]), real_of(bits[2]));
  if (!ir_dtypes[result].is_float) return value != 0;
  uint64_t out;
  memcpy(&out, &value, sizeof out);
  return convert(SNT_F64, result, out);
}

/* Movement of a splat, unless it brings in a fill value of its own. */
static bool keeps_splat(const ir_graph *g, uint32_t n) {
  const ir_node *node = ir_at(g, n);
  const bool fills = node->op == IR_OP_pad || node->op == IR_OP_window || node->op == IR_OP_concat;
  return (ir_ops[node->op].flags & IR_MOVEMENT) && !fills;
}

static void fold_splat(folder *f, uint32_t n) {
  const ir_graph *g = f->g;
  const ir_node *node = ir_at(g, n);
  const bool pointwise = (ir_ops[node->op].flags & IR_POINTWISE) && node->op != IR_OP_bitcast && node->op != IR_OP_custom;
  if (node->arity == 0 || node->arity > 3 || (!pointwise && !keeps_splat(g, n))) return;
  uint64_t bits[3] = {0, 0, 0};
  for (uint32_t i = 0; i < node->arity; i++) {
    const ir_const *splat = splat_of(g, ir_arg(g, n, i));
    if (!splat) return;
    bits[i] = splat->bits;
  }
  const ir_const value = {.kind = IR_CONST_SPLAT, .bits = pointwise ? eval_splat(g, node, bits) : bits[0]};
  make_const(f, n, &value);
}

/* A constant's elements in order are those of its reshape: the data is shared. */
static void fold_reshape(folder *f, uint32_t n) {
  const ir_node *node = ir_at(f->g, n);
  if (node->op != IR_OP_reshape || ir_at(f->g, ir_arg(f->g, n, 0))->op != IR_OP_const) return;
  const ir_const value = f->g->consts.at[ir_at(f->g, ir_arg(f->g, n, 0))->payload];
  uint64_t count;
  if (elements_of(f->g, n, &count)) make_const(f, n, &value);
}

/* ---- what can be computed, and what of it is worth keeping ---- */
enum { MOST = 1 << 26 }; /* elements of a value that is read or computed here: others are left to the device */

static bool may_fold(const folder *f, uint32_t n) {
  const ir_graph *g = f->g;
  const ir_node *node = ir_at(g, n);
  uint64_t count;
  if (node->op == IR_OP_custom || node->op == IR_OP_opaque) return false; /* its texts may be what is wanted */
  if (node->op == IR_OP_repeat || node->op == IR_OP_loop || node->op == IR_OP_pick || (ir_ops[node->op].flags & IR_SOURCE))
    return node->op == IR_OP_const;
  /* The evaluator takes values of the main region; what a body computes from constants is left to hoisting. */
  if (node->region || !elements_of(g, n, &count) || count > MOST) return false;
  for (uint32_t i = 0; i < node->arity; i++) {
    const uint32_t operand = ir_arg(g, n, i);
    if (!f->constant[operand] || !elements_of(g, operand, &count) || count > MOST) return false;
  }
  return node->arity > 0;
}

/* More elements come out than went in, and no arithmetic was done. */
static bool only_repeats(const ir_graph *g, uint32_t n) {
  const ir_node *node = ir_at(g, n);
  uint64_t in = 0, out = 0, one;
  if (!(ir_ops[node->op].flags & IR_MOVEMENT) && node->op != IR_OP_gather) return false;
  for (uint32_t i = 0; i < node->arity; i++)
    if (elements_of(g, ir_arg(g, n, i), &one)) in += one;
  return elements_of(g, n, &out) && out > in;
}

enum { DEEP = 12 };

/* Weights of fewer bytes below: how they are widened is the schedules' (fusion/rewrite/weights.c). */
static bool is_narrow(const ir_graph *g, uint32_t n, uint64_t elements, uint32_t depth) {
  uint64_t count;
  if (!depth || !elements_of(g, n, &count) || count < elements / 2) return false;
  if (ir_at(g, n)->op == IR_OP_const && !splat_of(g, n)) return ir_dtypes[ir_at(g, n)->type.dtype].bytes < ir_dtypes[SNT_F32].bytes;
  for (uint32_t i = 0; i < ir_at(g, n)->arity; i++)
    if (is_narrow(g, ir_arg(g, n, i), elements, depth - 1)) return true;
  return false;
}

/* Weights that are computed (filters from their formula, norms) are worth more elements: contractions lay constants out. */
static bool is_few(const folder *f, uint32_t n, uint64_t elements, uint64_t weights) {
  enum { WEIGHTS = 64, NARROW = 64 };
  const bool narrow = weights && is_narrow(f->g, n, elements, DEEP);
  if (narrow && elements >= NARROW && elements >= weights / 2) return false;
  return elements <= f->limit || (weights && !narrow && elements <= WEIGHTS * f->limit);
}

/* `weights`: elements of the operand of a contraction that it is part of, 0: of none. */
static void want(folder *f, uint32_t n, uint64_t weights) {
  const ir_graph *g = f->g;
  uint64_t count = 0;
  if (f->is_wanted[n] || ir_at(g, n)->op == IR_OP_const || !f->constant[n]) return;
  const bool known = elements_of(g, n, &count);
  if (known && is_few(f, n, count, weights) && !only_repeats(g, n)) {
    f->is_wanted[n] = true;
    return;
  }
  const bool goes_on = (ir_ops[ir_at(g, n)->op].flags & IR_MOVEMENT) || (weights && known && is_narrow(g, n, count, DEEP));
  for (uint32_t i = 0; i < ir_at(g, n)->arity; i++) want(f, ir_arg(g, n, i), goes_on ? weights : 0);
}

static void find_wanted(folder *f) {
  const ir_graph *g = f->g;
  for (uint32_t n = 1; n < g->nodes.count; n++) f->constant[n] = may_fold(f, n);
  for (uint32_t n = 1; n < g->nodes.count; n++)
    for (uint32_t i = 0; i < ir_at(g, n)->arity && !f->constant[n]; i++) {
      const uint32_t operand = ir_arg(g, n, i);
      uint64_t count;
      want(f, operand, ir_at(g, n)->op == IR_OP_contract && elements_of(g, operand, &count) ? count : 0);
    }
  for (uint32_t i = 0; i < g->outputs.count; i++) want(f, g->outputs.at[i].node, 0);
  for (uint32_t i = 0; i < g->updates.count; i++) want(f, g->updates.at[i].value, 0);
  for (uint32_t r = 1; r < g->regions.count; r++)
    for (uint32_t i = 0; i < g->regions.at[r].count; i++) want(f, g->yields.at[g->regions.at[r].first + i], 0);
  for (uint32_t n = 1; n < g->nodes.count; n++)
    if (f->is_wanted[n]) f->wanted[f->wanted_count++] = n;
}

/* ---- computing ---- */
static bool store_result(folder *f, uint32_t n, const ir_eval_tensor *from) {
  const int32_t dtype = ir_at(f->g, n)->type.dtype;
  void *data = ir_arena_take(f->g->arena, (size_t)from->count * ir_dtypes[dtype].bytes, 64);
  if (!data) return false;
  if (from->value) ir_dtype_store_run(dtype, data, from->count, from->value);
  for (uint64_t i = 0; !from->value && i < from->count; i++) ir_dtype_store_int(dtype, data, i, from->ints[i]);
  ir_const value = {.kind = IR_CONST_DATA, .data = data};
  if (from->count == 1) {
    const double real = ir_dtypes[dtype].is_float ? ir_dtype_load(dtype, data, 0) : 0;
    value = (ir_const){.kind = IR_CONST_SPLAT, .bits = (uint64_t)ir_dtype_load_int(dtype, data, 0)};
    if (ir_dtypes[dtype].is_float) memcpy(&value.bits, &real, sizeof real);
  }
  return make_const(f, n, &value);
}

static snt_result compute(folder *f, ir_arena *temp) {
  ir_graph *g = f->g;
  int64_t *symbols = IR_NEW_ARRAY(temp, int64_t, g->pool->symbols.count);
  const void **inputs = IR_NEW_ARRAY(temp, const void *, g->inputs.count);
  ir_eval_tensor *results = IR_NEW_ARRAY(temp, ir_eval_tensor, f->wanted_count);
  if (temp->failed) return SNT_E_HOST_MEM;
  for (uint32_t i = 0; i < g->pool->symbols.count; i++) symbols[i] = g->pool->symbols.at[i].hint; /* no constant depends on one */
  const ir_eval_info info = {.symbols = symbols,
                             .inputs = inputs,
                             .value_count = f->wanted_count,
                             .values = f->wanted,
                             .keeps_denormals = true,
                             .values_only = true};
  SNT_TRY(ir_eval_reference(g, &info, temp, results, NULL));
  for (uint32_t i = 0; i < f->wanted_count; i++)
    if (!store_result(f, f->wanted[i], &results[i])) return SNT_E_HOST_MEM;
  return SNT_OK;
}

/* ---- constants in a wider type ---- */
static bool is_gathered(const ir_graph *g, uint32_t n) {
  for (uint32_t user = n + 1; user < g->nodes.count; user++)
    for (uint32_t i = 0; i < ir_at(g, user)->arity; i++)
      if (ir_arg(g, user, i) == n && ir_at(g, user)->op == IR_OP_gather) return true; /* a few rows of a table */
  return false;
}

typedef struct widening {
  ir_making making;
  int32_t dtype; /* of the source */
} widening;

static void fill_wide(const ir_making *m, const void *const *sources, void *to) {
  const int32_t dtype = ((const widening *)(const void *)m)->dtype;
  float *numbers = to;
  for (uint64_t i = 0; i < m->bytes / sizeof *numbers; i++) numbers[i] = (float)ir_dtype_load(dtype, sources[0], i);
}

static bool widened(ir_graph *g, uint32_t node, ir_const *out) {
  widening *w = IR_NEW(g->arena, widening);
  uint64_t count;
  if (!w || !elements_of(g, node, &count)) return false;
  w->making.fill = fill_wide, w->making.bytes = count * sizeof(float), w->making.source_count = 1, w->making.size = sizeof *w;
  w->dtype = ir_at(g, node)->type.dtype;
  *out = (ir_const){.kind = IR_CONST_MADE, .making = &w->making};
  return ir_const_source(g, node, &w->making.sources[0]);
}

static snt_result widen_constant(folder *f, uint32_t n) {
  const ir_graph *g = f->g;
  const uint32_t from = ir_at(g, n)->op == IR_OP_cast ? ir_arg(g, n, 0) : 0;
  if (!from || ir_at(g, from)->op != IR_OP_const || ir_at(g, n)->type.dtype != SNT_F32 || is_gathered(g, n)) return SNT_OK;
  const ir_const *value = &g->consts.at[ir_at(g, from)->payload];
  const int32_t dtype = ir_at(g, from)->type.dtype;
  ir_const wide;
  uint64_t count;
  if (value->kind != IR_CONST_DATA || (dtype != SNT_F16 && dtype != SNT_BF16) || !elements_of(g, n, &count)) return SNT_OK;
  return widened(f->g, from, &wide) && make_const(f, n, &wide) ? SNT_OK : SNT_E_HOST_MEM;
}

snt_result ir_graph_widen(ir_graph *g, bool *changed) {
  folder f = {.g = g};
  snt_result r = g->failed ? g->first_error.result : SNT_OK;
  for (uint32_t n = 1; r == SNT_OK && n < g->nodes.count; n++) r = widen_constant(&f, n);
  *changed = f.changed;
  return r;
}

static snt_result begin(folder *f, ir_arena *temp) {
  if (f->g->failed) return f->g->first_error.result;
  f->constant = IR_NEW_ARRAY(temp, bool, f->g->nodes.count);
  f->is_wanted = IR_NEW_ARRAY(temp, bool, f->g->nodes.count);
  f->wanted = IR_NEW_ARRAY(temp, uint32_t, f->g->nodes.count);
  return temp->failed ? SNT_E_HOST_MEM : SNT_OK;
}

snt_result ir_fold_value(ir_graph *g, uint32_t node, bool *constant) {
  folder f = {.g = g};
  ir_arena temp;
  ir_arena_init(&temp, &g->arena->host);
  snt_result result = begin(&f, &temp);
  if (result == SNT_OK) {
    for (uint32_t n = 1; n <= node; n++) f.constant[n] = may_fold(&f, n);
    if (f.constant[node] && ir_at(g, node)->op != IR_OP_const) f.wanted[f.wanted_count++] = node;
    if (f.wanted_count) result = compute(&f, &temp);
  }
  *constant = result == SNT_OK && ir_at(g, node)->op == IR_OP_const;
  ir_arena_free(&temp);
  return result;
}

snt_result ir_graph_fold(ir_graph *g, uint64_t limit, bool *changed) {
  folder f = {.g = g, .limit = limit};
  ir_arena temp;
  ir_arena_init(&temp, &g->arena->host);
  snt_result result = begin(&f, &temp);
  if (result == SNT_OK) {
    for (uint32_t n = 1; n < g->nodes.count; n++) {
      fold_splat(&f, n);
      fold_reshape(&f, n);
    }
    find_wanted(&f);
    if (f.wanted_count) result = compute(&f, &temp);
  }
  *changed = f.changed;
  ir_arena_free(&temp);
  return result;
}
