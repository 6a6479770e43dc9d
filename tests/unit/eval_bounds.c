/* The bounds of the reference: the f32 evaluation of every operator, family and random graph lies within them and comes near; thresholds leave
   both sides open; every allocation may fail. */
#include "ir/eval/private.h"
#include "tests/unit/eval_support.h"

/* ---- bounds: every float operator alone, then in random graphs ---- */
enum { MANY = 2000 };
static void domain(ir_op op, uint32_t k, double *lo, double *hi) {
  *lo = -4, *hi = 4;
  if (op == IR_OP_log || op == IR_OP_log2 || op == IR_OP_sqrt || op == IR_OP_rsqrt) *lo = 0.01, *hi = 30;
  if (op == IR_OP_pow && k == 0) *lo = 0.1, *hi = 5;
  if (op == IR_OP_log1p) *lo = -0.9;
  if (op == IR_OP_asin || op == IR_OP_acos || op == IR_OP_atanh) *lo = -0.99, *hi = 0.99;
  if (op == IR_OP_acosh) *lo = 1.01, *hi = 9;
  if (op == IR_OP_tan) *lo = -1.4, *hi = 1.4;
  if (op == IR_OP_recip || ((op == IR_OP_div || op == IR_OP_rem || op == IR_OP_mod) && k == 1)) *lo = 0.5, *hi = 7;
}

static void fill(int32_t dtype, void *data, uint64_t count, double lo, double hi) {
  for (uint64_t i = 0; i < count; i++) ir_dtype_store(dtype, data, i, uniform(lo, hi));
}

/* Largest ratio of the fast evaluation to the reference's bound; < 0: an evaluator failed. */
static double worst_ratio(scene *s, const ir_eval_info *info, uint64_t *nans) {
  ir_eval_tensor want, got;
  ir_eval_report report;
  if (ir_eval_reference(&s->graph, info, &s->arena, &want, &s->diag) != SNT_OK) return tap_diag("%s", s->diag.text), -1;
  if (ir_eval_fast(&s->graph, info, &s->arena, &got, &s->diag) != SNT_OK) return tap_diag("%s", s->diag.text), -1;
  ir_eval_compare(&want, got.type.dtype, got.data, &report);
  if (report.max_ratio > 1)
    tap_diag("element %llu: got %.17g, want %.17g, bound %g", (unsigned long long)report.worst_index, report.got, report.want,
             report.bound);
  *nans = report.nan_mismatch;
  return report.max_ratio;
}

static void test_operators(int32_t dtype) {
  static uint8_t data[3][MANY * 8];
  ir_tensor type = {.dtype = (uint8_t)dtype, .rank = 1, .dims = {MANY}};
  random_state = 21;
  for (uint32_t op = 1; op < IR_OP_COUNT; op++) {
    const ir_op_info *info_of = &ir_ops[op];
    if (!(info_of->flags & IR_POINTWISE) || info_of->rule != IR_RULE_SAME || !(info_of->classes & IR_CLASS_F)) continue;
    scene s;
    open_scene(&s);
    uint32_t args[3];
    uint64_t nans = 0;
    const void *inputs[3] = {data[0], data[1], data[2]};
    for (uint32_t k = 0; k < info_of->arity; k++) {
      double lo, hi;
      domain((ir_op)op, k, &lo, &hi);
      fill(dtype, data[k], MANY, lo, hi);
      args[k] = ir_add_input(&s.graph, k ? k > 1 ? "c" : "b" : "a", &type);
    }
    uint32_t node = ir_add_node(&s.graph, (ir_op)op, info_of->arity, args, 0, NULL, NULL);
    ir_eval_info info = {.inputs = inputs, .value_count = 1, .values = &node};
    double ratio = worst_ratio(&s, &info, &nans);
    /* In f64 the fast evaluator is the reference itself. */
    bool exact = (info_of->flags & IR_EXACT) || op == IR_OP_rem || dtype == SNT_F64;
    tap_ok(nans == 0 && ratio <= 1 && (exact ? ratio == 0 : ratio > 0.01), "%s of %s: ratio %.3f", info_of->name, ir_dtypes[dtype].name,
           ratio);
    ir_arena_free(&s.arena);
  }
}

/* ---- propagation: whatever an operand is within its bound, the result is within its own ---- */
static double drawn_operand(void) {
  static const double edges[] = {0, 1, -1, 2, 0.5, -0.5, 1e-3, -1e-3, 88, -104, 3.14159265358979, 1.5707963267949};
  return below(3) ? uniform(-8, 8) : edges[below(IR_COUNT(edges))];
}

static void test_propagation(void) {
  static const ir_eval_info nothing = {0};
  const eval_ctx ctx = {.info = &nothing};
  const bound_type type = bound_type_of(&ctx, SNT_F32);
  random_state = 77;
  for (uint32_t op = 1; op < IR_OP_COUNT; op++) {
    const ir_op_info *info = &ir_ops[op];
    if (!(info->flags & IR_POINTWISE) || info->rule != IR_RULE_SAME || !(info->classes & IR_CLASS_F)) continue;
    int escaped = 0;
    double largest = 0;
    for (int round = 0; round < 4000 && escaped < 3; round++) {
      bounded in[3], out;
      double shaken[3];
      for (int k = 0; k < 3; k++) in[k] = (bounded){drawn_operand(), below(4) ? pow(10, uniform(-9, 0)) : 0};
      out = bound_float((ir_op)op, &type, in);
      for (int sample = 0; sample < 12; sample++) {
        for (int k = 0; k < 3; k++) shaken[k] = in[k].v + in[k].e * (sample < 8 ? (sample >> k & 1 ? 1 : -1) : uniform(-1, 1));
        double got = ir_op_eval((ir_op)op, shaken[0], shaken[1], shaken[2]);
        if (isinf(out.e) || got == out.v) continue;
        bool overflows = fabs(got) > type.top && isinf(out.v);
        bool held = overflows || (isnan(got) && isnan(out.v)) ||
                    fabs(got - out.v) <= out.e * (1 + 1e-9) + 1e-14; /* f64 rounds the sums above */
        if (!held && escaped++ < 3)
          tap_diag("%s(%g+-%g, %g+-%g, %g+-%g) = %g+-%g, but %g", info->name, in[0].v, in[0].e, in[1].v, in[1].e, in[2].v, in[2].e, out.v,
                   out.e, got);
        if (out.e > 0 && held) largest = fmax(largest, fabs(got - out.v) / out.e);
      }
    }
    tap_ok(escaped == 0 && largest > 0.5, "%s: operands' bounds propagate, closely: %.3f", info->name, largest);
  }
}

static void test_text_bounds(const char *name, const char *text, double lo, double hi, uint32_t inputs_count, uint64_t elements,
                             double least) {
  scene s;
  static float data[3][1 << 16];
  if (!read_graph(&s, text)) return;
  const void *inputs[3];
  for (uint32_t i = 0; i < inputs_count; i++) fill(SNT_F32, data[i], elements, lo, hi), inputs[i] = data[i];
  ir_eval_info info = {.inputs = inputs};
  uint64_t nans;
  double ratio = worst_ratio(&s, &info, &nans);
  tap_ok(ratio <= 1 && ratio >= least && nans == 0, "%s: ratio %.4f", name, ratio);
  ir_arena_free(&s.arena);
}

static void test_families(void) {
  random_state = 33;
  test_text_bounds("sum of 300", "graph @g(%x: f32[20,300]) {\n%r: f32[20] = reduce.sum %x, axes=[1]\nreturn r=%r\n}\n", -1, 1, 1, 6000,
                   1e-4);
  test_text_bounds("sum of 8", "graph @g(%x: f32[500,8]) {\n%r: f32[500] = reduce.sum %x, axes=[1]\nreturn r=%r\n}\n", -1, 1, 1, 4000,
                   0.01);
  test_text_bounds("product of 8", "graph @g(%x: f32[500,8]) {\n%r: f32[500] = reduce.prod %x, axes=[1]\nreturn r=%r\n}\n", 0.5, 2, 1, 4000,
                   0.01);
  test_text_bounds("maximum",
                   "graph @g(%x: f32[500,8]) {\n%e: f32[500,8] = exp %x\n%r: f32[500] = reduce.max %e, axes=[1]\nreturn r=%r\n}\n", -1, 1,
                   1, 4000, 0.01);
  test_text_bounds("scan", "graph @g(%x: f32[100,16]) {\n%r: f32[100,16] = scan.sum %x, axis=1\nreturn r=%r\n}\n", -1, 1, 1, 1600, 0.01);
  test_text_bounds("linear scan",
                   "graph @g(%a: f32[50,16], %b: f32[50,16]) {\n%r: f32[50,16] = scan.linear %a, %b, axis=1\nreturn r=%r\n}\n", 0.5, 1, 2,
                   800, 0.01);
  test_text_bounds(
      "matrix product",
      "graph @g(%a: f32[40,24], %b: f32[24,40]) {\n%r: f32[40,40] = contract %a, %b, lhs=[0,1], rhs=[1,2], out=[0,2]\nreturn r=%r\n}\n", -1,
      1, 2, 960, 0.01);
  test_text_bounds("softmax",
                   "graph @g(%x: f32[60,16]) {\n%m: f32[60,1] = reduce.max %x, axes=[1], keep\n%b: f32[60,16] = broadcast %m\n%d: "
                   "f32[60,16] = sub %x, %b\n"
                   "%e: f32[60,16] = exp %d\n%s: f32[60,1] = reduce.sum %e, axes=[1], keep\n%t: f32[60,16] = broadcast %s\n%r: f32[60,16] "
                   "= div %e, %t\nreturn r=%r\n}\n",
                   -5, 5, 1, 960, 0.01);
  test_text_bounds("layer norm",
                   "graph @g(%x: f32[60,16]) {\n%s: f32[60,1] = reduce.sum %x, axes=[1], keep\n%u: f32[60,1] = mul %s, 0.0625\n%b: "
                   "f32[60,16] = broadcast %u\n"
                   "%d: f32[60,16] = sub %x, %b\n%q: f32[60,16] = mul %d, %d\n%v: f32[60,1] = reduce.sum %q, axes=[1], keep\n%w: f32[60,1] "
                   "= add %v, 0.0001\n"
                   "%i: f32[60,1] = rsqrt %w\n%j: f32[60,16] = broadcast %i\n%r: f32[60,16] = mul %d, %j\nreturn r=%r\n}\n",
                   -2, 2, 1, 960, 0.01);
  test_text_bounds("gelu by erf",
                   "graph @g(%x: f32[3000]) {\n%a: f32[3000] = mul %x, 0.70710678\n%b: f32[3000] = erf %a\n%c: f32[3000] = add %b, "
                   "1.0\n%d: f32[3000] = mul %x, %c\n"
                   "%r: f32[3000] = mul %d, 0.5\nreturn r=%r\n}\n",
                   -6, 6, 1, 3000, 0.01);
  test_text_bounds(
      "f16 chain",
      "graph @g(%x: f32[3000]) {\n%h: f16[3000] = cast %x\n%a: f16[3000] = mul %h, %h\n%b: f16[3000] = exp %a\n%c: f16[3000] = add %b, %h\n"
      "%r: f32[3000] = cast %c\nreturn r=%r\n}\n",
      -1, 1, 1, 3000, 0.01);
  test_text_bounds("scatter",
                   "graph @g(%x: f32[10], %u: f32[200]) {\n%k: i32[200] = iota axis=0\n%i: i32[200] = mod %k, 7\n%r: f32[10] = scatter.add "
                   "%x, %i, %u, axis=0\n"
                   "return r=%r\n}\n",
                   -1, 1, 2, 200, 0.001);
  test_text_bounds("floor near its steps",
                   "graph @g(%x: f32[3000]) {\n%a: f32[3000] = mul %x, 10.0\n%b: f32[3000] = round %a\n%c: f32[3000] = mul %b, 0.1\n%d: "
                   "f32[3000] = mul %c, 10.0\n"
                   "%r: f32[3000] = floor %d\nreturn r=%r\n}\n",
                   -6, 6, 1, 3000, 0.5);
}

/* Random graphs of pointwise operators, reductions and broadcasts: each value is read by those after it. */
static void test_random_graphs(void) {
  static const ir_op ops[] = {IR_OP_add,   IR_OP_sub, IR_OP_mul,  IR_OP_div,   IR_OP_exp,   IR_OP_tanh, IR_OP_sigmoid, IR_OP_sqrt,
                              IR_OP_abs,   IR_OP_max, IR_OP_min,  IR_OP_neg,   IR_OP_erf,   IR_OP_sin,  IR_OP_cos,     IR_OP_log,
                              IR_OP_recip, IR_OP_fma, IR_OP_atan, IR_OP_floor, IR_OP_atan2, IR_OP_pow};
  static float data[2][64 * 8];
  int wrong = 0;
  double largest = 0;
  random_state = 41;
  for (int round = 0; round < 400; round++) {
    scene s;
    open_scene(&s);
    ir_tensor type = {.dtype = SNT_F32, .rank = 2, .dims = {64, 8}};
    uint32_t values[12] = {ir_add_input(&s.graph, "a", &type), ir_add_input(&s.graph, "b", &type)}, count = 2;
    while (count < 8) {
      uint32_t x = values[below(count)], y = values[below(count)], z = values[below(count)];
      if (below(6) == 0) {
        ir_expr axes[1] = {below(2)};
        const ir_attr_value attrs[] = {{IR_ATTR_axes, 1, axes}, {IR_ATTR_keep, 0, NULL}}, shape = {IR_ATTR_shape, 2, type.dims};
        uint32_t r = ir_add_node(&s.graph, below(2) ? IR_OP_reduce_sum : IR_OP_reduce_max, 1, &x, 2, attrs, NULL);
        values[count++] = ir_add_node(&s.graph, IR_OP_broadcast, 1, &r, 1, &shape, NULL);
        continue;
      }
      ir_op op = ops[below(IR_COUNT(ops))];
      uint32_t args[3] = {x, y, z};
      values[count++] = ir_add_node(&s.graph, op, ir_ops[op].arity, args, 0, NULL, NULL);
    }
    fill(SNT_F32, data[0], 512, -2, 2);
    fill(SNT_F32, data[1], 512, 0.2, 2);
    const void *inputs[] = {data[0], data[1]};
    ir_eval_info info = {.inputs = inputs, .value_count = 1, .values = &values[count - 1]};
    uint64_t nans = 0;
    double ratio = s.graph.failed ? -1 : worst_ratio(&s, &info, &nans);
    if (ratio < 0 || ratio > 1 || nans) {
      ir_text text;
      ir_text_init(&text, &s.arena);
      ir_add_output(&s.graph, "r", values[count - 1]);
      ir_graph_print(&s.graph, &text);
      tap_diag("round %d: ratio %g, %llu NaN on one side", round, ratio, (unsigned long long)nans);
      if (wrong++ == 0 && text.at) tap_diag_text(text.at);
    }
    if (ratio > largest && ratio <= 1) largest = ratio;
    ir_arena_free(&s.arena);
  }
  tap_is_int(wrong, 0, "random graphs stay within their bounds");
  tap_ok(largest > 0.3, "and come close to them: %.3f", largest);
}

/* ---- thresholds ---- */
static void test_either(void) {
  scene s;
  ir_eval_tensor out;
  ir_eval_report report;
  /* (1/3)*3 is 1 within a rounding: floor may be 0 or 1, the comparison may fall either way, the index may be the next. */
  const char *text = "graph @g(%x: f32[1]) {\n%c: f32[1] = const [3]\n%q: f32[1] = div %x, %c\n%p: f32[1] = mul %q, %c\n%f: f32[1] = floor "
                     "%p\n%l: bool[1] = lt %p, 1.0\n"
                     "%t: f32[4] = const [10, 20, 30, 40]\n%n: i32[1] = cast %p\n%g: f32[1] = gather %t, %n, axis=0\n%z: f32[1] = mul %p, "
                     "0.25\n%y: i32[1] = cast %z\n"
                     "return f=%f, l=%l, g=%g, y=%y\n}\n";
  if (!read_graph(&s, text)) return;
  const float one[] = {1};
  const void *inputs[] = {one};
  ir_eval_info info = {.inputs = inputs};
  ir_eval_tensor outs[4];
  tap_ok(ir_eval_reference(&s.graph, &info, &s.arena, outs, &s.diag) == SNT_OK, "evaluates %s", s.diag.text);
  float zero = 0, two = 2, first = 10, second = 20, third = 30;
  uint8_t truth = 1;
  ir_eval_compare(&outs[0], SNT_F32, &zero, &report);
  tap_ok(report.max_ratio <= 1, "floor just below");
  ir_eval_compare(&outs[0], SNT_F32, one, &report);
  tap_ok(report.max_ratio <= 1, "floor just above");
  ir_eval_compare(&outs[0], SNT_F32, &two, &report);
  tap_ok(!(report.max_ratio <= 0.99), "but not the step after: %g", report.max_ratio);
  for (truth = 0; truth < 2; truth++) {
    ir_eval_compare(&outs[1], SNT_BOOL, &truth, &report);
    tap_ok(report.max_ratio <= 1, "the comparison may be %d", truth);
  }
  ir_eval_compare(&outs[2], SNT_F32, &first, &report);
  tap_ok(report.max_ratio <= 1, "an index below");
  ir_eval_compare(&outs[2], SNT_F32, &second, &report);
  tap_ok(report.max_ratio <= 1, "or above");
  ir_eval_compare(&outs[2], SNT_F32, &third, &report);
  tap_ok(report.max_ratio <= 1, "and its neighbour, since the bound is a step each way");
  tap_ok(!outs[3].bound, "far from a threshold an integer is exact");
  out = outs[3];
  int32_t wrong = 1;
  ir_eval_compare(&out, SNT_I32, &wrong, &report);
  tap_ok(isinf(report.max_ratio), "a wrong exact value has an infinite ratio");
  float nothing = NAN;
  ir_eval_compare(&outs[2], SNT_F32, &nothing, &report);
  tap_is_int((int64_t)report.nan_mismatch, 1, "NaN on one side is counted");
  ir_arena_free(&s.arena);
}

/* A product that overflows, then a sum: one operation does not overflow between the two. Where the term goes the same way, both do. */
static void test_overflow_between(void) {
  static const char text[] =
      "graph @g(%x: f32[4], %y: f32[4]) {\n%p: f32[4] = mul %x, 3e38\n%a: f32[4] = add %p, %y\n%s: f32[4] = sub %y, %p\n"
      "%t: f32[] = reduce.sum %p, axes=[0]\n%m: bool[4] = eq %p, inf\nreturn a=%a, s=%s, p=%p, t=%t, m=%m\n}\n";
  static const float x[4] = {2, 2, 2, -2}, y[4] = {-INFINITY, -3e38f, 0, INFINITY};
  scene s;
  if (!read_graph(&s, text)) return;
  ir_eval_info info = {.inputs = (const void *[]){x, y}};
  ir_eval_tensor joined[5], apart[5];
  ir_eval_reference(&s.graph, &info, &s.arena, joined, NULL);
  info.direct = true;
  ir_eval_reference(&s.graph, &info, &s.arena, apart, NULL);
  const double *a = joined[0].bound, *b = joined[1].bound;
  tap_ok(a && isinf(a[0]) && isinf(a[1]) && a[2] == 0 && isinf(a[3]),
         "a product beyond the largest number and a sum: one operation or two");
  tap_ok(!b, "a term that goes the same way: infinite in both");
  tap_ok(joined[3].bound && isinf(joined[3].bound[0]), "so is a sum of such products");
  ir_eval_report report;
  const float wrong[4] = {NAN, INFINITY, 3e38f, -INFINITY};
  ir_eval_compare(&joined[2], SNT_F32, wrong, &report);
  tap_ok(report.nan_mismatch == 1 && isinf(report.max_ratio), "the product by itself is infinite");
  tap_ok(!joined[4].bound, "and so it compares");
  bool exact = true;
  for (uint32_t i = 0; i < 5; i++) exact &= !apart[i].bound;
  tap_ok(exact, "STRICT rounds the product: exact");
  ir_arena_free(&s.arena);
}

/* A mask of -infinity is no reason to know nothing of what is left of the row. */
static void test_infinite_mask(void) {
  static const char text[] =
      "graph @g(%x: f32[4], %c: bool[4]) {\n%e: f32[4] = exp %x\n%s: f32[4] = select %c, %e, -inf\n%y = softmax %s, axis=0\n"
      "return y=%y\n}\n";
  static const float x[4] = {0.1f, 0.2f, 0.3f, 0.4f};
  static const uint8_t c[4] = {1, 0, 1, 1};
  scene s;
  if (!read_graph(&s, text)) return;
  ir_eval_info info = {.inputs = (const void *[]){x, c}};
  ir_eval_tensor y;
  ir_eval_reference(&s.graph, &info, &s.arena, &y, NULL);
  tap_ok(y.value && y.bound && y.value[1] == 0 && y.bound[0] < 1e-5 && y.bound[3] < 1e-5,
         "a softmax beside a mask of -infinity has a bound");
  ir_arena_free(&s.arena);
}

static uint32_t depth_of_three(void *user, uint32_t node, uint64_t length) {
  (void)node, (void)length;
  ++*(int *)user;
  return 3;
}

static void test_depth(void) {
  scene s;
  if (!read_graph(&s, "graph @g(%x: f32[64]) {\n%r: f32[] = reduce.sum %x, axes=[0]\nreturn r=%r\n}\n")) return;
  float x[64];
  int asked = 0;
  fill(SNT_F32, x, 64, 0.1, 1);
  const void *inputs[] = {x};
  ir_eval_info info = {.inputs = inputs};
  ir_eval_tensor whole, tree;
  ir_eval_reference(&s.graph, &info, &s.arena, &whole, NULL);
  info.tree_depth = depth_of_three, info.user = &asked;
  ir_eval_reference(&s.graph, &info, &s.arena, &tree, NULL);
  tap_ok(asked == 1 && whole.bound && tree.bound, "the schedule is asked for the depth of its tree");
  tap_is_near(whole.bound[0] / tree.bound[0], 21, 0.01, "63 additions on a path, or 3");
  ir_arena_free(&s.arena);
}

/* ---- every allocation may fail: an error, nothing leaked ---- */
typedef struct counter {
  int64_t left, live;
} counter;
static void *SNT_CALL counted_acquire(void *user, size_t size, size_t align, uint32_t scope) {
  counter *c = user;
  if (c->left-- <= 0) return NULL;
  void *data = ir_host_malloc()->acquire(NULL, size, align, scope);
  c->live += data != NULL;
  return data;
}
static void SNT_CALL counted_release(void *user, void *data, size_t size, size_t align) {
  ((counter *)user)->live--;
  ir_host_malloc()->release(NULL, data, size, align);
}

static void test_memory(bool reference) {
  scene s;
  const char *text =
      "graph @g(%x: f16[4,6]) {\n%t: f16[6,4] = transpose %x, perm=[1,0]\n%w: f16[6,4,2] = window %t, axis=1, size=[2], low=[1]\n"
      "%r: f16[6,2] = reduce.sum %w, axes=[1]\n%c: f16[6,6] = contract %r, %r, lhs=[0,1], rhs=[2,1], out=[0,2]\n%d: f16[6,6] = scan.sum "
      "%c, axis=0\n"
      "%k: i32[3] = const [1, 5, 2]\n%g: f16[3,6] = gather %d, %k, axis=0\n%e: f16[6,6] = scatter.add %d, %k, %g, axis=0\n%z: f16[12,6] = "
      "concat %e, %d, axis=0\n"
      "%o: f16[12,6] = repeat trips=2 (%p: f16[12,6] = %z) {\n%q: f16[12,6] = mul %p, 0.5\nyield %q\n}\nreturn o=%o\n}\n";
  if (!read_graph(&s, text)) return;
  uint16_t x[24] = {0};
  const void *inputs[] = {x};
  ir_eval_info info = {.inputs = inputs};
  counter c = {0, 0};
  snt_host_alloc host = {&c, counted_acquire, counted_release};
  int tries = 0, leaks = 0, strange = 0;
  for (snt_result result = SNT_E_HOST_MEM; result != SNT_OK && tries < 400; tries++) {
    ir_arena arena;
    ir_eval_tensor out;
    c = (counter){tries, 0};
    ir_arena_init(&arena, &host);
    result = reference ? ir_eval_reference(&s.graph, &info, &arena, &out, &s.diag) : ir_eval_fast(&s.graph, &info, &arena, &out, &s.diag);
    ir_arena_free(&arena);
    leaks += c.live != 0;
    strange += result != SNT_OK && result != SNT_E_HOST_MEM;
  }
  tap_ok(tries > 20 && tries < 400, "%s: succeeds after %d failures", reference ? "reference" : "host", tries - 1);
  tap_is_int(leaks, 0, "nothing is left behind");
  tap_is_int(strange, 0, "each is reported as what it is");
  ir_arena_free(&s.arena);
}

int main(void) {
  test_operators(SNT_F32);
  test_operators(SNT_F16);
  test_operators(SNT_F64);
  test_propagation();
  test_families();
  test_random_graphs();
  test_either();
  test_overflow_between();
  test_infinite_mask();
  test_depth();
  test_memory(true);
  test_memory(false);
  return tap_done();
}
