/* The evaluators: named cases with their results worked out by hand, movements against the index maps, contractions against plain loops. */
#include "tests/unit/eval_support.h"

/* ---- named cases: constants in, one output, numbers expected; `within` is relative to 1 + |want| ---- */
typedef struct named_case {
  const char *name, *body;
  uint32_t count;
  double want[16];
  double within;
} named_case;
#define INF ((double)INFINITY)
// clang-format off
static const named_case named[] = {
    {"min and max give NaN", "%a: f32[3] = const [1, nan, 3]\n%b: f32[3] = const [nan, 2, 2]\n%r: f32[3] = max %a, %b", 3, {NAN, NAN, 3}, 0},
    {"min", "%a: f32[3] = const [1, nan, 3]\n%b: f32[3] = const [2, 2, -inf]\n%r: f32[3] = min %a, %b", 3, {1, NAN, -INF}, 0},
    {"float to int saturates and truncates", "%a: f32[6] = const [300, -300, nan, 1.9, -1.9, inf]\n%r: i8[6] = cast %a", 6, {127, -128, 0, 1, -1, 127}, 0},
    {"float to u8", "%a: f32[4] = const [300, -3, 2.5, -0.5]\n%r: u8[4] = cast %a", 4, {255, 0, 2, 0}, 0},
    {"int to int wraps", "%a: i32[4] = const [300, -1, 128, 65]\n%r: i8[4] = cast %a", 4, {44, -1, -128, 65}, 0},
    {"u64 keeps its bits", "%a: u64[2] = const [18446744073709551615, 3]\n%b: u64[2] = const [2, 2]\n%r: u64[2] = div %a, %b", 2, {9223372036854775807.0, 1}, 0},
    {"u64 compares unsigned", "%a: u64[2] = const [18446744073709551615, 3]\n%r: bool[2] = gt %a, 5", 2, {1, 0}, 0},
    {"division by zero is zero", "%a: i32[3] = const [7, -7, 0]\n%r: i32[3] = div %a, 0", 3, {0, 0, 0}, 0},
    {"rem truncates", "%a: i32[4] = const [7, -7, 7, -7]\n%b: i32[4] = const [3, 3, -3, -3]\n%r: i32[4] = rem %a, %b", 4, {1, -1, 1, -1}, 0},
    {"mod floors", "%a: i32[4] = const [7, -7, 7, -7]\n%b: i32[4] = const [3, 3, -3, -3]\n%r: i32[4] = mod %a, %b", 4, {1, 2, -2, -1}, 0},
    {"float mod floors", "%a: f32[4] = const [7, -7, 7, -7]\n%b: f32[4] = const [3, 3, -3, -3]\n%r: f32[4] = mod %a, %b", 4, {1, 2, -2, -1}, 0},
    {"round to even", "%a: f32[6] = const [0.5, 1.5, 2.5, -0.5, -1.5, 2.6]\n%r: f32[6] = round %a", 6, {0, 2, 2, -0.0, -2, 3}, 0},
    {"int add wraps", "%a: i32[1] = const [2147483647]\n%r: i32[1] = add %a, 1", 1, {-2147483648.0}, 0},
    {"shr of a negative", "%a: i32[2] = const [-8, 8]\n%r: i32[2] = shr %a, 1", 2, {-4, 4}, 0},
    {"clz and popcount", "%a: u32[2] = const [1, 255]\n%p: u32[2] = popcount %a\n%c: u32[2] = clz %a\n%r: u32[2] = add %p, %c", 2, {32, 32}, 0},
    {"select", "%a: f32[3] = const [1, 2, 3]\n%c: bool[3] = gt %a, 1.5\n%n: f32[3] = neg %a\n%r: f32[3] = select %c, %a, %n", 3, {-1, 2, 3}, 0},
    {"f16 rounds once", "%a: f32[3] = const [1.0004, 65519, 2049]\n%r: f16[3] = cast %a", 3, {1, 65504, 2048}, 1e-3},
    {"bf16", "%a: f32[2] = const [1.001, 3.5]\n%r: bf16[2] = cast %a", 2, {1, 3.5}, 4e-3},
    {"bitcast", "%a: f32[2] = const [1, -2]\n%r: i32[2] = bitcast %a", 2, {1065353216, -1073741824}, 0},
    {"bitcast back", "%a: i32[1] = const [1078530011]\n%r: f32[1] = bitcast %a", 1, {3.14159274101257324}, 0},
    {"iota along an axis", "%r: i32[2,3] = iota axis=1", 6, {0, 1, 2, 0, 1, 2}, 0},
    {"sum over the rows", "%a: f32[2,3] = const [1, 2, 3, 4, 5, 6]\n%r: f32[3] = reduce.sum %a, axes=[0]", 3, {5, 7, 9}, 0},
    {"sum over the columns", "%a: f32[2,3] = const [1, 2, 3, 4, 5, 6]\n%r: f32[2,1] = reduce.sum %a, axes=[1], keep", 2, {6, 15}, 0},
    {"sum of all", "%a: f16[2,3] = const [1, 2, 3, 4, 5, 6]\n%r: f16[] = reduce.sum %a, axes=[0,1]", 1, {21}, 0},
    {"product", "%a: i32[2,3] = const [1, 2, 3, 4, 5, 6]\n%r: i32[2] = reduce.prod %a, axes=[1]", 2, {6, 120}, 0},
    {"max with a NaN", "%a: f32[2,3] = const [1, 2, 3, 4, nan, 6]\n%r: f32[2] = reduce.max %a, axes=[1]", 2, {3, NAN}, 0},
    {"min of integers", "%a: i8[2,3] = const [1, -2, 3, 4, 5, 6]\n%r: i8[3] = reduce.min %a, axes=[0]", 3, {1, -2, 3}, 0},
    {"argmax takes the first", "%a: f32[2,4] = const [1, 9, 9, 0, 5, 5, 5, 7]\n%r: i64[2] = reduce.argmax %a, axes=[1]", 2, {1, 3}, 0},
    {"argmin over the rows", "%a: i32[2,3] = const [4, 1, 6, 3, 1, 5]\n%r: i64[3] = reduce.argmin %a, axes=[0]", 3, {1, 0, 1}, 0},
    {"scan", "%a: f32[4] = const [1, 2, 3, 4]\n%r: f32[4] = scan.sum %a, axis=0", 4, {1, 3, 6, 10}, 0},
    {"scan, exclusive, backwards", "%a: f32[4] = const [1, 2, 3, 4]\n%r: f32[4] = scan.sum %a, axis=0, exclusive, reverse", 4, {9, 7, 4, 0}, 0},
    {"scan of products over rows", "%a: i32[3,2] = const [1, 2, 3, 4, 5, 6]\n%r: i32[3,2] = scan.prod %a, axis=0", 6, {1, 2, 3, 8, 15, 48}, 0},
    {"scan max, exclusive", "%a: i8[3] = const [1, 5, 3]\n%r: i8[3] = scan.max %a, axis=0, exclusive", 3, {-128, 1, 5}, 0},
    {"linear recurrence", "%a: f32[3] = const [2, 3, 4]\n%b: f32[3] = const [1, 1, 1]\n%r: f32[3] = scan.linear %a, %b, axis=0", 3, {1, 4, 17}, 0},
    {"linear recurrence, backwards", "%a: f32[3] = const [2, 3, 4]\n%b: f32[3] = const [1, 1, 1]\n%r: f32[3] = scan.linear %a, %b, axis=0, reverse", 3, {9, 4, 1}, 0},
    {"matrix product", "%a: f32[2,2] = const [1, 2, 3, 4]\n%b: f32[2,2] = const [5, 6, 7, 8]\n%r: f32[2,2] = contract %a, %b, lhs=[0,1], rhs=[1,2], out=[0,2]", 4,
     {19, 22, 43, 50}, 0},
    {"integer product into a wider type", "%a: i8[1,2] = const [100, 100]\n%b: i8[2,1] = const [100, 100]\n%r: i32[1,1] = contract %a, %b, lhs=[0,1], rhs=[1,2], out=[0,2]",
     1, {20000}, 0},
    {"outer product", "%a: f32[2] = const [1, 2]\n%b: f32[2] = const [3, 4]\n%r: f32[2,2] = contract %a, %b, lhs=[0], rhs=[1], out=[0,1]", 4, {3, 4, 6, 8}, 0},
    {"gather clamps", "%x: f32[3] = const [10, 20, 30]\n%i: i32[4] = const [-1, 0, 2, 7]\n%r: f32[4] = gather %x, %i, axis=0", 4, {10, 10, 30, 30}, 0},
    {"gather gives zero", "%x: f32[3] = const [10, 20, 30]\n%i: i32[4] = const [-1, 0, 2, 7]\n%r: f32[4] = gather %x, %i, axis=0, zero", 4, {0, 10, 30, 0}, 0},
    {"gather of columns", "%x: i32[2,3] = const [1, 2, 3, 4, 5, 6]\n%i: u8[2] = const [2, 0]\n%r: i32[2,2] = gather %x, %i, axis=1", 4, {3, 1, 6, 4}, 0},
    {"scatter adds, drops what is outside",
     "%x: f32[3] = const [1, 1, 1]\n%i: i32[4] = const [2, 2, -1, 3]\n%u: f32[4] = const [5, 7, 9, 9]\n%r: f32[3] = scatter.add %x, %i, %u, axis=0", 3, {1, 1, 13}, 0},
    {"scatter sets columns",
     "%x: i32[2,3] = const [0, 0, 0, 0, 0, 0]\n%i: i64[2] = const [2, 0]\n%u: i32[2,2] = const [1, 2, 3, 4]\n%r: i32[2,3] = scatter.set %x, %i, %u, axis=1", 6,
     {2, 0, 1, 4, 0, 3}, 0},
    {"scatter max", "%x: f32[2] = const [5, 5]\n%i: i32[3] = const [0, 1, 1]\n%u: f32[3] = const [1, 9, 7]\n%r: f32[2] = scatter.max %x, %i, %u, axis=0", 2, {5, 9}, 0},
    {"reversed slice", "%a: f32[5] = const [0, 1, 2, 3, 4]\n%r: f32[3] = slice %a, starts=[4], sizes=[3], steps=[-2]", 3, {4, 2, 0}, 0},
    {"pad", "%a: f32[2] = const [1, 2]\n%r: f32[5] = pad %a, low=[1], high=[2], value=9", 5, {9, 1, 2, 9, 9}, 0},
    {"negative padding cuts", "%a: f32[4] = const [1, 2, 3, 4]\n%r: f32[3] = pad %a, low=[-2], high=[1], value=0.5", 3, {3, 4, 0.5}, 0},
    {"concat", "%a: f32[2,1] = const [1, 2]\n%b: f32[2,2] = const [3, 4, 5, 6]\n%r: f32[2,3] = concat %a, %b, axis=1", 6, {1, 3, 4, 2, 5, 6}, 0},
    {"window", "%a: f32[4] = const [1, 2, 3, 4]\n%r: f32[2,3] = window %a, axis=0, size=[3], stride=[2], low=[1], value=7", 6, {7, 1, 2, 2, 3, 4}, 0},
    {"broadcast", "%a: i32[2] = const [1, 2]\n%r: i32[2,3] = broadcast %a, axes=[0]", 6, {1, 1, 1, 2, 2, 2}, 0},
    {"transpose and reshape", "%a: i32[2,3] = const [1, 2, 3, 4, 5, 6]\n%t: i32[3,2] = transpose %a, perm=[1,0]\n%r: i32[6] = reshape %t", 6, {1, 4, 2, 5, 3, 6}, 0},
    {"random", "%k: u64[] = const 0\n%c: u64[2] = const [0, 1]\n%r: u32[2] = random %k, %c", 1, {1713891541}, 0},
    {"repeat", "%s: f32[2] = const [1, 2]\n%r: f32[2] = repeat trips=3 (%x: f32[2] = %s) {\n%y: f32[2] = mul %x, 2.0\nyield %y\n}", 2, {8, 16}, 0},
    {"repeat carries two values",
     "%s: i32[] = const 1\n%o: i32[] = const 0\n%q: i32[], %r: i32[] = repeat trips=10 (%x: i32[] = %s, %y: i32[] = %o) {\n%z: i32[] = add %x, %y\nyield %z, %x\n}", 1,
     {55}, 0},
    {"repeat of no trips", "%s: i32[1] = const [4]\n%r: i32[1] = repeat trips=0 (%x: i32[1] = %s) {\n%y: i32[1] = add %x, 1\nyield %y\n}", 1, {4}, 0},
    {"repeat ends where its flag is down",
     "%s: i32[] = const 1\n%o: i32[] = const 0\n%t: bool[] = const true\n%q, %u, %r = repeat trips=10 while=1 (%x = %s, %g = %t, %y = %o) {\n%z = add %x, %x\n"
     "%h = lt %z, 20\n%k = add %y, 1\nyield %z, %h, %k\n}", 1, {5}, 0},
    {"repeat whose flag is down from the start",
     "%s: i32[2] = const [3, 4]\n%t: bool[] = const false\n%u, %r = repeat trips=4 while=0 (%g = %t, %x = %s) {\n%z = add %x, 1\n%h: bool[] = const true\nyield %h, %z\n}",
     2, {3, 4}, 0},
    {"nested repeat reads from outside",
     "%s: i32[] = const 0\n%k: i32[] = const 3\n%r: i32[] = repeat trips=4 (%x: i32[] = %s) {\n%b: i32[] = repeat trips=2 (%y: i32[] = %x) {\n"
     "%z: i32[] = add %y, %k\nyield %z\n}\n%c: i32[] = add %b, 1\nyield %c\n}", 1, {28}, 0},
    {"sum of nothing", "%a: f32[2,0] = const []\n%r: f32[2] = reduce.sum %a, axes=[1]", 2, {0, 0}, 0},
    {"product over nothing", "%a: f32[2,0] = const []\n%b: f32[0,2] = const []\n%r: f32[2,2] = contract %a, %b, lhs=[0,1], rhs=[1,2], out=[0,2]", 4, {0, 0, 0, 0}, 0},
    {"logistic", "%a: f32[3] = const [0, 2, -2]\n%r: f32[3] = sigmoid %a", 3, {0.5, 0.880797077977882, 0.119202922022118}, 1e-7},
    {"arcus", "%a: f32[2] = const [1, -1]\n%b: f32[2] = const [1, -1]\n%r: f32[2] = atan2 %a, %b", 2, {0.785398163397448, -2.35619449019234}, 1e-6},
};
// clang-format on

static bool matches(const ir_eval_tensor *t, const named_case *c) {
  if (t->count < c->count) return tap_diag("%llu elements", (unsigned long long)t->count), false;
  bool right = true;
  for (uint32_t i = 0; i < c->count; i++) {
    double got = element(t, i), want = c->want[i];
    bool same = isnan(want) ? isnan(got) : got == want || fabs(got - want) <= c->within * (1 + fabs(want));
    if (!same) tap_diag("element %u: got %.17g, want %.17g", i, got, want);
    right = right && same;
  }
  return right;
}

static void test_named(void) {
  for (uint32_t i = 0; i < IR_COUNT(named); i++) {
    scene s;
    char text[1024];
    ir_eval_tensor out;
    snprintf(text, sizeof text, "graph @case() {\n%s\nreturn r=%%r\n}\n", named[i].body);
    if (!read_graph(&s, text)) {
      tap_diag("%s", named[i].name);
      continue;
    }
    snt_result result = ir_eval_reference(&s.graph, NULL, &s.arena, &out, &s.diag);
    tap_ok(result == SNT_OK && matches(&out, &named[i]), "%s, reference%s%s", named[i].name, result ? ": " : "", result ? s.diag.text : "");
    result = ir_eval_fast(&s.graph, NULL, &s.arena, &out, &s.diag);
    tap_ok(result == SNT_OK && matches(&out, &named[i]), "%s, host%s%s", named[i].name, result ? ": " : "", result ? s.diag.text : "");
    ir_arena_free(&s.arena);
  }
}

/* ---- symbols, inputs, states, chosen values ---- */
static void test_interface(void) {
  scene s;
  const float x[6] = {1, 2, 3, 4, 5, 6}, h[3] = {10, 20, 30};
  float room[6];
  const void *inputs[] = {x, h};
  void *outputs[] = {room, NULL};
  const int64_t symbols[] = {2};
  ir_eval_tensor out[2];
  const char *text = "symbols { n: min=1 max=64 multiple_of=1 hint=4 }\n"
                     "graph @g(%x: f32[n,3], state %h: f32[3]) {\n%b: f32[n,3] = broadcast %h, axes=[1]\n%y: f32[n,3] = add %x, %b\n"
                     "%s: f32[3] = reduce.sum %y, axes=[0]\nreturn y=%y\nupdate %h, %s\n}\n";
  if (!read_graph(&s, text)) return;
  ir_eval_info info = {.symbols = symbols, .inputs = inputs, .outputs = outputs};
  tap_is_int(ir_eval_output_count(&s.graph, &info), 2, "an output and an update");
  tap_ok(ir_eval_fast(&s.graph, &info, &s.arena, out, &s.diag) == SNT_OK && out[0].data == (void *)room, "writes where it is told");
  tap_ok(room[0] == 11 && room[5] == 36 && out[0].type.dims[0] == 2 && out[0].count == 6, "the output");
  tap_ok(element(&out[1], 0) == 25 && element(&out[1], 2) == 69, "the update");
  uint32_t wanted[] = {s.graph.inputs.at[0].node};
  info.value_count = 1, info.values = wanted, info.outputs = NULL;
  tap_ok(ir_eval_reference(&s.graph, &info, &s.arena, out, &s.diag) == SNT_OK && element(&out[0], 4) == 5 && !out[0].bound,
         "a chosen value; inputs are exact");
  info.inputs = NULL;
  tap_ok(ir_eval_fast(&s.graph, &info, &s.arena, out, &s.diag) == SNT_E_ARG, "a missing input is an error: %s", s.diag.text);
  info.inputs = inputs, info.symbols = NULL;
  tap_ok(ir_eval_fast(&s.graph, &info, &s.arena, out, &s.diag) == SNT_E_SHAPE, "so is a missing symbol: %s", s.diag.text);
  ir_arena_free(&s.arena);
}

/* ---- movements against the index maps ---- */
static bool agrees_with_map(scene *s, uint32_t node, const ir_eval_tensor *got) {
  const ir_graph *g = &s->graph;
  const ir_node *n = ir_at(g, node);
  int64_t *vars = IR_NEW_ARRAY(&s->arena, int64_t, s->pool.vars.count + SNT_MAX_RANK);
  ir_map map;
  map_identity(&s->pool, &map, n->type.rank, n->type.dims);
  if (!ir_movement_access(g, node, 0, &map.to)) return false;
  const ir_tensor *from = &ir_at(g, ir_arg(g, node, 0))->type;
  for (uint64_t i = 0; i < got->count; i++) {
    uint64_t left = i;
    double want = -7;
    bool inside = true;
    for (uint32_t d = n->type.rank; d-- > 0; left /= (uint64_t)got->type.dims[d])
      vars[map.vars[d]] = (int64_t)(left % (uint64_t)got->type.dims[d]);
    for (uint32_t c = 0; c < map.to.condition_count; c++) {
      int64_t v, lo, hi;
      expr_eval(&s->pool, map.to.conditions[c].value, &(expr_values){.vars = vars}, &v);
      expr_eval(&s->pool, map.to.conditions[c].lo, &(expr_values){.vars = vars}, &lo);
      expr_eval(&s->pool, map.to.conditions[c].hi, &(expr_values){.vars = vars}, &hi);
      inside = inside && lo <= v && v < hi;
    }
    if (inside) {
      int64_t flat = 0;
      for (uint32_t d = 0; d < from->rank; d++) {
        int64_t at;
        if (!expr_eval(&s->pool, map.to.at[d], &(expr_values){.vars = vars}, &at)) return false;
        flat = flat * from->dims[d] + at;
      }
      want = (double)flat;
    }
    if (element(got, i) != want) return false;
  }
  return true;
}

static uint32_t random_movement(ir_graph *g, uint32_t x) {
  ir_tensor type = ir_at(g, x)->type;
  ir_expr list[SNT_MAX_RANK], other[SNT_MAX_RANK], third[SNT_MAX_RANK], axis = below(type.rank), fill;
  double minus = -7;
  memcpy(&fill, &minus, sizeof fill);
  for (uint32_t i = 0; i < type.rank; i++) list[i] = i, other[i] = below(3), third[i] = below(3) - 1;
  switch (below(5)) {
  case 0: {
    for (uint32_t i = type.rank; i-- > 1;) {
      int64_t j = below(i + 1);
      ir_expr swap = list[i];
      list[i] = list[j], list[j] = swap;
    }
    return ir_add_node(g, IR_OP_transpose, 1, &x, 1, &(ir_attr_value){IR_ATTR_perm, type.rank, list}, NULL);
  }
  case 1: {
    ir_expr flat[2] = {1, 1};
    for (uint32_t i = 0; i < type.rank; i++) flat[i >= (uint32_t)axis] *= type.dims[i];
    return ir_add_node(g, IR_OP_reshape, 1, &x, 1, &(ir_attr_value){IR_ATTR_shape, 2, flat}, NULL);
  }
  case 2: {
    ir_expr steps[SNT_MAX_RANK];
    for (uint32_t i = 0; i < type.rank; i++) {
      int64_t step = below(2) ? 1 + below(2) : -1 - below(2), size = 1 + below((type.dims[i] - 1) / (step < 0 ? -step : step) + 1);
      int64_t room = type.dims[i] - (size - 1) * (step < 0 ? -step : step), low = below(room);
      list[i] = step < 0 ? low + (size - 1) * -step : low, other[i] = size, steps[i] = expr_int(g->pool, step);
    }
    const ir_attr_value attrs[] = {{IR_ATTR_starts, type.rank, list}, {IR_ATTR_sizes, type.rank, other}, {IR_ATTR_steps, type.rank, steps}};
    return ir_add_node(g, IR_OP_slice, 1, &x, 3, attrs, NULL);
  }
  case 3: {
    for (uint32_t i = 0; i < type.rank; i++) third[i] = type.dims[i] > 1 ? expr_int(g->pool, third[i]) : 0;
    const ir_attr_value attrs[] = {{IR_ATTR_low, type.rank, other}, {IR_ATTR_high, type.rank, third}, {IR_ATTR_value, 1, &fill}};
    return ir_add_node(g, IR_OP_pad, 1, &x, 3, attrs, NULL);
  }
  default: {
    ir_expr size[2] = {1 + below(3), 1 + below(2)}, stride[2] = {1 + below(2), 1 + below(3)}, dilation[2] = {1 + below(2), 1};
    ir_expr low[2] = {2, 1}, high[2] = {below(3) + 2, 1};
    uint32_t count = axis + 1 < type.rank ? 2 : 1;
    const ir_attr_value attrs[] = {
        {IR_ATTR_axis, 1, &axis},  {IR_ATTR_size, count, size}, {IR_ATTR_stride, count, stride}, {IR_ATTR_dilation, count, dilation},
        {IR_ATTR_low, count, low}, {IR_ATTR_high, count, high}, {IR_ATTR_value, 1, &fill}};
    return ir_add_node(g, IR_OP_window, 1, &x, 7, attrs, NULL);
  }
  }
}

/* A movement of a movement of numbers that say where they are; the last must agree with its map. */
static void test_movements(void) {
  int wrong = 0, wrong_again = 0;
  random_state = 5;
  for (int round = 0; round < 300; round++) {
    scene s;
    open_scene(&s);
    ir_tensor type = {.dtype = SNT_F32, .rank = (uint8_t)(1 + below(4))};
    for (uint32_t i = 0; i < type.rank; i++) type.dims[i] = 1 + below(6);
    uint32_t x = ir_add_input(&s.graph, "x", &type), y = random_movement(&s.graph, x);
    float data[6 * 6 * 6 * 6];
    for (int i = 0; i < 6 * 6 * 6 * 6; i++) data[i] = (float)i;
    const void *inputs[] = {data};
    ir_eval_tensor first, second;
    ir_eval_info info = {.inputs = inputs, .value_count = 1, .values = &y};
    bool right = !s.graph.failed && ir_eval_fast(&s.graph, &info, &s.arena, &first, &s.diag) == SNT_OK && agrees_with_map(&s, y, &first);
    if (!right) wrong++, tap_diag("%s: %s", ir_ops[ir_at(&s.graph, y)->op].name, s.graph.failed ? s.graph.first_error.text : s.diag.text);
    /* The second movement reads a view of the first; a copy of it, given as an input, must give the same. */
    scene t;
    open_scene(&t);
    ir_tensor copied = ir_at(&s.graph, y)->type;
    uint64_t state = random_state;
    uint32_t z = random_movement(&s.graph, y);
    random_state = state;
    uint32_t copy = ir_add_input(&t.graph, "x", &copied), again = random_movement(&t.graph, copy);
    info.values = &z;
    right = right && ir_eval_reference(&s.graph, &info, &s.arena, &second, &s.diag) == SNT_OK;
    const void *copies[] = {first.data};
    ir_eval_info info_again = {.inputs = copies, .value_count = 1, .values = &again};
    ir_eval_tensor third;
    right = right && ir_eval_fast(&t.graph, &info_again, &t.arena, &third, &t.diag) == SNT_OK && third.count == second.count;
    for (uint64_t i = 0; right && i < third.count; i++) right = element(&second, i) == element(&third, i);
    if (!right) wrong_again++, tap_diag("%s of %s", ir_ops[ir_at(&s.graph, z)->op].name, ir_ops[ir_at(&s.graph, y)->op].name);
    ir_arena_free(&s.arena);
    ir_arena_free(&t.arena);
  }
  tap_is_int(wrong, 0, "movements agree with their maps");
  tap_is_int(wrong_again, 0, "movements of views are movements of their copies");
}

/* ---- contractions against loops over every label ---- */
typedef struct labelled {
  uint32_t rank;
  ir_expr labels[4];
  int64_t dims[4];
} labelled;

enum { LABELS = 4 };
typedef struct contraction {
  labelled a, b, o;
  int64_t extent[LABELS];
} contraction;

static double plain_contract(const contraction *c, const float *x, const float *y, uint64_t at) {
  const labelled *a = &c->a, *b = &c->b, *o = &c->o;
  const int64_t *extent = c->extent;
  int64_t fixed[LABELS], value[LABELS];
  double total = 0;
  for (uint32_t l = 0; l < LABELS; l++) fixed[l] = -1;
  for (uint32_t d = o->rank; d-- > 0; at /= (uint64_t)o->dims[d]) fixed[o->labels[d]] = (int64_t)(at % (uint64_t)o->dims[d]);
  int64_t free_count = 1;
  for (uint32_t l = 0; l < LABELS; l++) free_count *= fixed[l] < 0 ? extent[l] : 1;
  for (int64_t n = 0; n < free_count; n++) {
    int64_t left = n, ia = 0, ib = 0;
    for (uint32_t l = 0; l < LABELS; l++) {
      value[l] = fixed[l];
      if (fixed[l] < 0) value[l] = left % extent[l], left /= extent[l];
    }
    for (uint32_t d = 0; d < a->rank; d++) ia = ia * a->dims[d] + value[a->labels[d]];
    for (uint32_t d = 0; d < b->rank; d++) ib = ib * b->dims[d] + value[b->labels[d]];
    total += (double)x[ia] * (double)y[ib];
  }
  return total;
}

static void put_label(labelled *t, ir_expr label, int64_t extent) {
  t->labels[t->rank] = label;
  t->dims[t->rank++] = extent;
}

static void shuffle(labelled *t) {
  for (uint32_t i = t->rank; i-- > 1;) {
    uint32_t j = (uint32_t)below(i + 1);
    labelled was = *t;
    t->labels[i] = was.labels[j], t->dims[i] = was.dims[j], t->labels[j] = was.labels[i], t->dims[j] = was.dims[i];
  }
}

static void draw_labels(contraction *c) {
  static const int64_t sizes[] = {1, 2, 3, 5, 9, 17, 70};
  memset(c, 0, sizeof *c);
  for (uint32_t l = 0; l < LABELS; l++) {
    c->extent[l] = sizes[below(l < 3 ? 7 : 3)];
    int64_t kind = below(4); /* batch, lhs, rhs, summed */
    if (kind != 2) put_label(&c->a, (ir_expr)l, c->extent[l]);
    if (kind != 1) put_label(&c->b, (ir_expr)l, c->extent[l]);
    if (kind != 3) put_label(&c->o, (ir_expr)l, c->extent[l]);
  }
  shuffle(&c->a), shuffle(&c->b), shuffle(&c->o);
}

static ir_tensor typed(const labelled *t, int32_t dtype) {
  ir_tensor type = {.dtype = (uint8_t)dtype, .rank = (uint8_t)t->rank};
  for (uint32_t i = 0; i < t->rank; i++) type.dims[i] = t->dims[i];
  return type;
}

static void test_contractions(void) {
  static float x[1 << 20], y[1 << 20];
  int wrong = 0;
  random_state = 9;
  for (int i = 0; i < 1 << 20; i++) x[i] = (float)(below(17) - 8), y[i] = (float)(below(17) - 8); /* whole: exact in any order */
  for (int round = 0; round < 120; round++) {
    contraction c;
    int64_t count_a = 1, count_b = 1, count_o = 1;
    draw_labels(&c);
    const labelled a = c.a, b = c.b, o = c.o;
    for (uint32_t i = 0; i < a.rank; i++) count_a *= a.dims[i];
    for (uint32_t i = 0; i < b.rank; i++) count_b *= b.dims[i];
    for (uint32_t i = 0; i < o.rank; i++) count_o *= o.dims[i];
    if (count_a > 1 << 20 || count_b > 1 << 20 || count_o > 1 << 16) continue;
    scene s;
    open_scene(&s);
    ir_tensor ta = typed(&a, SNT_F32), tb = typed(&b, SNT_F32);
    uint32_t args[2] = {ir_add_input(&s.graph, "a", &ta), ir_add_input(&s.graph, "b", &tb)};
    const ir_attr_value attrs[] = {{IR_ATTR_lhs, a.rank, a.labels}, {IR_ATTR_rhs, b.rank, b.labels}, {IR_ATTR_out, o.rank, o.labels}};
    uint32_t n = ir_add_node(&s.graph, IR_OP_contract, 2, args, 3, attrs, NULL);
    const void *inputs[] = {x, y};
    ir_eval_info info = {.inputs = inputs, .value_count = 1, .values = &n};
    ir_eval_tensor fast, exact;
    bool right = !s.graph.failed && ir_eval_fast(&s.graph, &info, &s.arena, &fast, &s.diag) == SNT_OK;
    right = right && ir_eval_reference(&s.graph, &info, &s.arena, &exact, &s.diag) == SNT_OK && !exact.bound;
    for (int64_t i = 0; right && i < count_o; i += 1 + count_o / 200) {
      double want = plain_contract(&c, x, y, (uint64_t)i);
      right = element(&fast, (uint64_t)i) == want && element(&exact, (uint64_t)i) == want;
    }
    if (!right) wrong++, tap_diag("%s", s.graph.failed ? s.graph.first_error.text : "a product differs");
    ir_arena_free(&s.arena);
  }
  tap_is_int(wrong, 0, "contractions of whole numbers are exact");
}

/* Rows by a matrix as [k,n] (transposed: [n,k]); `first` gets the first of them. */
static bool first_row(uint32_t rows, uint32_t summed, bool transposed, const float *x, const float *y, float first[40]) {
  scene s;
  char text[256];
  snprintf(text, sizeof text,
           "graph @row(%%x: f32[%u,%u], %%y: f32[%u,%u]) {\n%%r: f32[%u,40] = contract %%x, %%y, lhs=[0,1], rhs=%s, out=[0,2]\nreturn "
           "r=%%r\n}\n",
           rows, summed, transposed ? 40 : summed, transposed ? summed : 40, rows, transposed ? "[2,1]" : "[1,2]");
  if (!read_graph(&s, text)) return false;
  const void *inputs[] = {x, y};
  ir_eval_info info = {.inputs = inputs};
  ir_eval_tensor out;
  const bool done = ir_eval_fast(&s.graph, &info, &s.arena, &out, &s.diag) == SNT_OK;
  for (uint64_t i = 0; done && i < 40; i++) first[i] = (float)element(&out, i);
  ir_arena_free(&s.arena);
  return done;
}

/* What STRICT promises of a batch: one row is no other sum than the first of several, however many terms it has. */
static void test_rows(void) {
  static float x[4 * 700], y[700 * 40];
  float alone[40], among[40];
  int wrong = 0;
  for (uint32_t i = 0; i < IR_COUNT(x); i++) x[i] = (float)below(1000) / 999;
  for (uint32_t i = 0; i < IR_COUNT(y); i++) y[i] = (float)below(1000) / 997;
  for (uint32_t summed = 3; summed <= 700; summed += 131)
    for (int transposed = 0; transposed < 2; transposed++)
      wrong += !first_row(1, summed, transposed, x, y, alone) || !first_row(4, summed, transposed, x, y, among) ||
               memcmp(alone, among, sizeof alone) != 0;
  tap_is_int(wrong, 0, "a row alone has the bits that it has among others");
}

static void test_convolution(void) {
  scene s;
  static float x[2 * 4 * 9 * 8], w[6 * 2 * 3 * 3];
  const char *text = "graph @conv(%x: f32[2,4,9,8], %w: f32[2,3,2,3,3]) {\n%v: f32[2,4,5,4,3,3] = window %x, axis=2, size=[3,3], "
                     "stride=[2,2], low=[1,1], high=[1,1]\n"
                     "%g: f32[2,2,2,5,4,3,3] = reshape %v\n%r: f32[2,2,3,5,4] = contract %g, %w, lhs=[0,1,2,3,4,5,6], rhs=[1,7,2,5,6], "
                     "out=[0,1,7,3,4]\nreturn r=%r\n}\n";
  if (!read_graph(&s, text)) return;
  for (uint32_t i = 0; i < IR_COUNT(x); i++) x[i] = (float)(below(9) - 4);
  for (uint32_t i = 0; i < IR_COUNT(w); i++) w[i] = (float)(below(9) - 4);
  const void *inputs[] = {x, w};
  ir_eval_info info = {.inputs = inputs};
  ir_eval_tensor out;
  int wrong = ir_eval_fast(&s.graph, &info, &s.arena, &out, &s.diag) != SNT_OK;
  for (int n = 0, at = 0; n < 2 && !wrong; n++)
    for (int f = 0; f < 6; f++)
      for (int i = 0; i < 5; i++)
        for (int j = 0; j < 4; j++, at++) {
          double want = 0;
          for (int c = 0; c < 2; c++)
            for (int p = 0; p < 9; p++) {
              int r = i * 2 + p / 3 - 1, q = j * 2 + p % 3 - 1;
              if (r >= 0 && r < 9 && q >= 0 && q < 8)
                want += (double)x[((n * 4 + f / 3 * 2 + c) * 9 + r) * 8 + q] * (double)w[(f * 2 + c) * 9 + p];
            }
          wrong += element(&out, (uint64_t)at) != want;
        }
  tap_is_int(wrong, 0, "a grouped convolution with stride and padding");
  ir_arena_free(&s.arena);
}

int main(void) {
  test_named();
  test_interface();
  test_movements();
  test_contractions();
  test_rows();
  test_convolution();
  return tap_done();
}
