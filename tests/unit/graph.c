/* The graph IR as built by calls: operator meanings, constants, every type rule with what it accepts and refuses, users, copies, verifier. */
#include "tests/unit/graph_support.h"

/* ---- operators ---- */
static void check_operators(void) {
  tap_is_int(ir_op_find("reduce.sum", 10), IR_OP_reduce_sum, "text names have dots");
  tap_is_int(ir_op_find("reduce_sum", 10), IR_OP_NONE, "and no underscores");
  tap_is_text(ir_ops[IR_OP_reduce_argmax].name, "reduce.argmax", "the longest name is whole");
  for (uint32_t op = 1; op < IR_OP_COUNT; op++)
    if (ir_op_find(ir_ops[op].name, strlen(ir_ops[op].name)) != op) tap_ok(false, "%s is found by its name", ir_ops[op].name);
  tap_is_int(ir_op_eval_int(IR_OP_add, 127, 1, 0, SNT_I8), -128, "i8 wraps");
  tap_is_int(ir_op_eval_int(IR_OP_sub, 0, 1, 0, SNT_U16), 65535, "u16 wraps");
  tap_is_int(ir_op_eval_int(IR_OP_div, 7, 0, 0, SNT_I32), 0, "x / 0 = 0");
  tap_is_int(ir_op_eval_int(IR_OP_div, INT64_MIN, -1, 0, SNT_I64), INT64_MIN, "the overflowing quotient wraps");
  tap_is_int(ir_op_eval_int(IR_OP_div, -7, 2, 0, SNT_I32), -3, "div truncates");
  tap_is_int(ir_op_eval_int(IR_OP_rem, -7, 2, 0, SNT_I32), -1, "rem has the dividend's sign");
  tap_is_int(ir_op_eval_int(IR_OP_mod, -7, 2, 0, SNT_I32), 1, "mod has the divisor's sign");
  tap_is_int(ir_op_eval_int(IR_OP_lt, -1, 1, 0, SNT_U64), 0, "u64 compares without sign");
  tap_is_int(ir_op_eval_int(IR_OP_shr, -8, 1, 0, SNT_I32), -4, "shr of a signed type is arithmetic");
  tap_is_int(ir_op_eval_int(IR_OP_shr, 0xf0, 4, 0, SNT_U8), 0xf, "shr of an unsigned type is logical");
  tap_is_int(ir_op_eval_int(IR_OP_shl, 1, 33, 0, SNT_I32), 2, "shift amounts count modulo the width");
  tap_is_int(ir_op_eval_int(IR_OP_clz, 1, 0, 0, SNT_U16), 15, "clz of the type's width");
  tap_is_int(ir_op_eval_int(IR_OP_popcount, -1, 0, 0, SNT_I8), 8, "popcount of the type's width");
  tap_is_int(ir_op_eval_int(IR_OP_not, 1, 0, 0, SNT_BOOL), 0, "not of a bool");
  tap_is_int(ir_op_eval_int(IR_OP_abs, INT64_MIN, 0, 0, SNT_I64), INT64_MIN, "abs of the lowest wraps");
  tap_ok(isnan(ir_op_eval(IR_OP_max, 1, NAN, 0)), "max propagates NaN");
  tap_is_near(ir_op_eval(IR_OP_round, 2.5, 0, 0), 2, 0, "round goes to even");
  tap_is_near(ir_op_eval(IR_OP_mod, -1, 3, 0), 2, 0, "mod of floats has the divisor's sign");
  tap_is_near(ir_op_eval(IR_OP_reduce_max, 3, 2, 0), 3, 0, "a reduction's cell combines");
}

static void check_constants(void) {
  /* Known answer of the Random123 distribution: philox4x32-10, counter and key 0. */
  const uint32_t want[] = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
  uint32_t words[4];
  ir_philox(0, 0, words);
  tap_is_bytes(words, want, sizeof want, "Philox known answer");
  tap_is_int(ir_random_word(0, 0), 0x6627e8d5, "random is its first word");
  test_graph t;
  graph_open(&t);
  const ir_tensor type = {.dtype = SNT_F32, .rank = 1, .dims = {100000}};
  const ir_const normal = {.kind = IR_CONST_NORMAL, .seed = 7, .scale = 2}, uniform = {.kind = IR_CONST_UNIFORM, .seed = 7, .scale = 0.5};
  const float *n = ir_const_data(&t.g, ir_add_const(&t.g, &type, &normal)), *u = ir_const_data(&t.g, ir_add_const(&t.g, &type, &uniform));
  double mean = 0, square = 0, low = 1, high = -1;
  for (uint32_t i = 0; i < 100000; i++) {
    mean += n[i] / 1e5, square += n[i] * n[i] / 1e5;
    low = u[i] < low ? u[i] : low, high = u[i] > high ? u[i] : high;
  }
  tap_is_near(mean, 0, 0.03, "normal values have mean 0");
  tap_is_near(square, 4, 0.1, "and variance scale^2");
  tap_ok(low >= -0.5 && low < -0.499 && high < 0.5 && high > 0.499, "uniform values fill [-scale, scale): %g to %g", low, high);
  const float *again = ir_const_data(&t.g, ir_add_const(&t.g, &type, &normal));
  tap_is_bytes(again, n, 400000, "the same seed gives the same values");
  const int16_t *splat = ir_const_data(&t.g, ir_add_splat(&t.g, SNT_I16, -3));
  tap_is_int(*splat, -3, "a splat's data");
  double value;
  tap_ok(ir_is_scalar_const(&t.g, ir_add_splat(&t.g, SNT_F16, 0.1), &value) && value == 0x1.998p-4, "a splat is a value of its type");
  graph_close(&t);
}

/* ---- type rules ---- */
static const char rule_head[] =
    "symbols { n: min=2 max=4096, m: min=1 max=64 }\n"
    "graph @t(%a: f32[n,4], %b: f32[4], %i: i32[n,4], %c: bool[n,4], %u: u32[n], %x: f32[2,3,8,9], %h: f16[n,4], %q: i4[n,4], %s: f32[],\n"
    "         %l: f32[n,5], %w: f32[n*12,64], %e: i8[n,4], %k: i64[3], %z: f8e4m3[4], %d: f64[n,4], %y: f32[n,m])"
    " {\n  ";
typedef struct rule_case {
  const char *text, *want;
} rule_case; /* want: the type, or "!" and a part of the error */
static const rule_case rule_cases[] = {
    {"add %a, %a", "f32[n,4]"},
    {"add %a, %s", "f32[n,4]"},
    {"add %s, %a", "f32[n,4]"},
    {"add %a, 0.5", "f32[n,4]"},
    {"fma %s, %a, %s", "f32[n,4]"},
    {"add %a, %l", "!add: operand 2 is f32[n,5], operand 1 f32[n,4]: axis 1 has extents 5 and 4"},
    {"add %a, %b", "!ranks differ, broadcast one of them"},
    {"add %a, %h", "!add: operand 2 is f16, operand 1 f32"},
    {"add %c, %c", "!operand 1 may not be bool"},
    {"add %q, %q", "!operand 1 is i4, a storage type: cast it first"},
    {"exp %z", "!a storage type"},
    {"exp %i", "!operand 1 may not be i32"},
    {"and %a, %a", "!operand 1 may not be f32"},
    {"not %c", "bool[n,4]"},
    {"add %a", "!1 operands, 2 are needed"},
    {"add %a, %a, axis=1", "!add takes no attribute axis"},
    {"lt %a, 0", "bool[n,4]"},
    {"lt %c, %c", "!operand 1 may not be bool"},
    {"select %c, %a, 1.0", "f32[n,4]"},
    {"select %c, 1:f16, %h", "f16[n,4]"},
    {"select %a, %a, %a", "!operand 1 is f32, not bool"},
    {"select %c, %q, %q", "i4[n,4]"},
    {"cast %a, dtype=f16", "f16[n,4]"},
    {"cast %a", "!attribute dtype is missing"},
    {"bitcast %a, dtype=u32", "u32[n,4]"},
    {"bitcast %a, dtype=u16", "!f32 has 32 bits, u16 16"},
    {"random 1, %u", "u32[n]"},
    {"random %a, %u", "!operand 1 is f32, not u32 or u64"},
    {"scan.sum %a, axis=-1", "f32[n,4]"},
    {"scan.sum %a, axis=2", "!axis 2 is outside an operand of rank 2"},
    {"scan.sum %a", "!attribute axis is missing"},
    {"scan.linear %a, %a, axis=0, reverse", "f32[n,4]"},
    {"dim shape=[n*2 + 1]", "i64[]"},
    {"iota axis=0", "!a type must be declared"},
    {"reduce.sum %a, axes=[1]", "f32[n]"},
    {"reduce.sum %a, axes=[-1,0], keep", "f32[1,1]"},
    {"reduce.sum %a, axes=[]", "f32[n,4]"},
    {"reduce.sum %a, axes=[1,1]", "!axis 1 is named twice"},
    {"reduce.sum %a, axes=[2]", "!axes 2 is outside an operand of rank 2"},
    {"reduce.max %c, axes=[0]", "!operand 1 may not be bool"},
    {"reduce.argmax %a, axes=[1]", "i64[n]"},
    {"reduce.argmax %a, axes=[0,1]", "!2 axes, 1 is needed"},
    {"contract %a, %b, lhs=[0,1], rhs=[1], out=[0]", "f32[n]"},
    {"contract %a, %a, lhs=[7,1], rhs=[9,1], out=[9,7]", "f32[n,n]"},
    {"contract %h, %h, lhs=[0,1], rhs=[0,1], out=[], dtype=f32", "f32[]"},
    {"contract %e, %e, lhs=[0,1], rhs=[2,1], out=[0,2], dtype=i32", "i32[n,n]"},
    {"contract %a, %l, lhs=[0,1], rhs=[2,1], out=[0,2]", "!axis 1 of operand 2 (label 1) has extent 5, operand 1 has 4"},
    {"contract %a, %a, lhs=[0,1], rhs=[2,1], out=[0]", "!label 2 is in one operand only and not in out: reduce that axis first"},
    {"contract %a, %a, lhs=[0], rhs=[2,1], out=[0]", "!lhs names 1 axes, operand 1 is f32[n,4]"},
    {"contract %a, %a, lhs=[0,0], rhs=[2,1], out=[0]", "!label 0 is twice in lhs"},
    {"contract %a, %a, lhs=[0,1], rhs=[2,1], out=[0,2,5]", "!label 5 of out is in no operand"},
    {"contract %a, %h, lhs=[0,1], rhs=[0,1], out=[0]", "!operands are f32 and f16: dtype is needed"},
    {"contract %e, %i, lhs=[0,1], rhs=[0,1], out=[0]", "!dtype is needed"},
    {"reshape %a, shape=[n*4]", "f32[n*4]"},
    {"reshape %w, shape=[n,12,-1]", "f32[n,12,64]"},
    {"reshape %a, shape=[n,2,-1]", "f32[n,2,2]"},
    {"reshape %a, shape=[n,5]", "!f32[n,4] has n*4 elements, f32[n,5] n*5"},
    {"reshape %a, shape=[-1,-1]", "!two extents of -1"},
    {"transpose %x, perm=[0,2,3,1]", "f32[2,8,9,3]"},
    {"transpose %x, perm=[0,2,2,1]", "!perm names axis 2 twice"},
    {"transpose %x, perm=[0,2]", "!perm has 2 entries, 4 are needed"},
    {"broadcast %b, axes=[1], shape=[n,4]", "f32[n,4]"},
    {"broadcast %b, shape=[4,n]", "!axis 0 of operand 1 has extent 4, axis 1 of the result n"},
    {"broadcast %b, axes=[0], shape=[4,n]", "f32[4,n]"},
    {"broadcast %a, axes=[1,0], shape=[4,n]", "!axes must ascend"},
    {"broadcast %x, shape=[8]", "!operand 1 is f32[2,3,8,9], the result has rank 1"},
    {"slice %a, starts=[1,0], sizes=[n-1,2], steps=[1,3]", "f32[n - 1,2]"},
    {"slice %a, starts=[n-1,3], sizes=[n,4], steps=[-1,-1]", "f32[n,4]"},
    {"slice %a, starts=[1,0], sizes=[n,2]", "!axis 0 reads from 1 to n, which cannot be shown to lie within extent n"},
    {"slice %a, starts=[0,0], sizes=[m,2]", "!cannot be shown"},
    {"slice %a, starts=[0,0], sizes=[2,2], steps=[0,1]", "!the step of axis 0 must be a number other than 0"},
    {"slice %a, sizes=[0,4]", "f32[0,4]"},
    {"pad %a, low=[1,0], high=[2,1], value=-inf", "f32[n + 3,5]"},
    {"pad %b, low=[-1], high=[-2]", "f32[1]"},
    {"pad %b, low=[-3], high=[-2]", "!the extent of axis 0 is negative"},
    {"pad %i, low=[1,1], value=1.5", "!the literal is no i32"},
    {"concat %a, %l, axis=1", "f32[n,9]"},
    {"concat %a, %a, %a, axis=0", "f32[n*3,4]"},
    {"concat %a, %l, axis=0", "!operand 2 is f32[n,5], operand 1 f32[n,4]: only axis 0 may differ"},
    {"concat %a, %b, axis=0", "!only axis 0 may differ"},
    {"window %x, axis=2, size=[3,3]", "f32[2,3,6,7,3,3]"},
    {"window %x, axis=2, size=[3,3], stride=[2,2], low=[1,1], high=[1,1]", "f32[2,3,4,5,3,3]"},
    {"window %a, axis=0, size=[2], dilation=[1]", "f32[n - 1,4,2]"},
    {"window %x, axis=2, size=[3,12]", "!12 taps 1 apart do not fit axis 3, which has extent 9 with its padding"},
    {"window %x, axis=3, size=[1,1]", "!2 axes from axis 3, the operand has rank 4"},
    {"window %x, axis=2, size=[0]", "!size must be numbers over 0"},
    {"maxpool %x, size=[10,1], stride=[3,1], ceil", "f32[2,3,1,9]"},
    {"maxpool %x, size=[11,1], stride=[3,1], ceil", "!11 taps 1 apart do not fit axis 2, which has extent 8 with its padding"},
    {"window %x, axis=2, size=[2], stride=[0]", "!stride must be numbers over 0"},
    {"gather %a, %k, axis=0", "f32[3,4]"},
    {"gather %a, 2, axis=1", "f32[n]"},
    {"gather %a, %i, axis=1, zero", "f32[n,n,4]"},
    {"gather %a, %b, axis=0", "!operand 2 (the index) is f32, no integer"},
    {"gather %s, %k, axis=0", "!axis 0 is outside an operand of rank 0"},
    {"scatter.add %b, %k, 1.0", "!operand 3 is f32[], f32[3] is needed"},
    {"scatter.set %q, %k, %q", "!operand 3 is i4[n,4], i4[3,4] is needed"},
    {"pick %a, index=0", "!operand 1 is no repeat"},
    {"input", "!input is declared, not computed"},
    {"nothing %a", "!unknown operator nothing"},
};

static void check_rules(void) {
  for (uint32_t i = 0; i < IR_COUNT(rule_cases); i++) {
    const rule_case *c = &rule_cases[i];
    test_graph t;
    char text[2000];
    snprintf(text, sizeof text, "%s%%r = %s\n  return %%r\n}\n", rule_head, c->text);
    const snt_result result = graph_read_text(&t, text);
    if (*c->want == '!') {
      if (!tap_ok(result != SNT_OK && strstr(t.diag.text, c->want + 1), "refused: %s", c->text))
        tap_diag("  result %d: %s", result, t.diag.text);
    } else if (tap_is_int(result, SNT_OK, "accepted: %s", c->text)) {
      char line[200];
      snprintf(line, sizeof line, "%%r: %s = ", c->want);
      if (!tap_ok(strstr(graph_text(&t), line) != NULL, "is %s: %s", c->want, c->text)) tap_diag_text(graph_text(&t));
      tap_is_text(graph_errors(&t), "", "verified: %s", c->text);
    } else {
      tap_diag("  %s", t.diag.text);
    }
    graph_close(&t);
  }
}

/* ---- the builder ---- */
static void check_sticky(void) {
  test_graph t;
  graph_open(&t);
  const ir_tensor type = {.dtype = SNT_F32, .rank = 1, .dims = {4}}, other = {.dtype = SNT_F32, .rank = 1, .dims = {5}};
  const uint32_t a = ir_add_input(&t.g, "a", &type), b = ir_add_input(&t.g, "b", &other);
  tap_ok(a && b && !t.g.failed, "inputs");
  tap_is_int(ir_add2(&t.g, IR_OP_add, a, b), 0, "a mistake gives 0");
  tap_ok(t.g.failed && t.g.first_error.result == SNT_E_SHAPE, "and sticks");
  const char *first = t.g.first_error.text;
  tap_ok(strstr(first, "axis 0 has extents 5 and 4") != NULL, "with its reason: %s", first);
  tap_is_int(ir_add1(&t.g, IR_OP_neg, 0), 0, "later calls do nothing");
  ir_add_output(&t.g, "y", 0);
  uint32_t inside[1];
  tap_is_int(ir_repeat_begin(&t.g, 1, &a, 3, inside), 0, "nor do regions");
  tap_ok(strstr(t.g.first_error.text, "axis 0 has extents") != NULL, "the first mistake is the one reported");
  tap_is_int(ir_graph_verify(&t.g, NULL, &t.diag), SNT_E_SHAPE, "the verifier says so, too");
  graph_close(&t);
}

static void check_mistakes(void) {
  test_graph t;
  const ir_tensor type = {.dtype = SNT_F32, .rank = 1, .dims = {4}},
                  huge = {.dtype = SNT_F32, .rank = 2, .dims = {INT64_C(1) << 40, INT64_C(1) << 40}};
  const ir_tensor strange = {.dtype = 99};
  graph_open(&t);
  tap_ok(!ir_add_input(&t.g, "", &type) && t.g.failed, "an input without a name");
  graph_close(&t);
  graph_open(&t);
  tap_ok(!ir_add_input(&t.g, "a", &huge) && strstr(t.g.first_error.text, "2^56"), "too many elements");
  graph_close(&t);
  graph_open(&t);
  tap_ok(!ir_add_input(&t.g, "a", &strange) && strstr(t.g.first_error.text, "element type"), "an unknown element type");
  graph_close(&t);
  graph_open(&t);
  tap_ok(!ir_add1(&t.g, IR_OP_neg, 77) && strstr(t.g.first_error.text, "no value of this graph"), "a value of nowhere");
  graph_close(&t);
  graph_open(&t);
  const uint32_t a = ir_add_input(&t.g, "a", &type);
  ir_add_update(&t.g, a, a);
  tap_ok(t.g.failed && strstr(t.g.first_error.text, "is no state"), "an update of an input");
  graph_close(&t);
  graph_open(&t);
  const uint32_t b = ir_add_input(&t.g, "b", &type);
  uint32_t results[2];
  tap_ok(!ir_repeat_end(&t.g, 1, &b, results) && strstr(t.g.first_error.text, "no repeat is open"), "a yield without a repeat");
  graph_close(&t);
}

static void check_reading(void) {
  test_graph t;
  tap_is_int(graph_read_text(&t, "graph @t(%a: f32[4]) {\n %b = exp %a\n %c = add %b, %a\n %d = mul %b, %b\n return c=%c, %d\n}\n"), SNT_OK,
             "a graph to read");
  ir_uses uses;
  tap_ok(ir_find_uses(&t.g, &t.arena, &uses), "users");
  tap_is_int(uses.first[2] - uses.first[1], 2, "%%a has two users");
  tap_ok(uses.first[3] - uses.first[2] == 3 && uses.user[uses.first[2]] == 3 && uses.user[uses.first[2] + 1] == 4 &&
             uses.user[uses.first[2] + 2] == 4,
         "%%b is read by %%c, and twice by %%d");
  tap_ok(ir_is_output(&t.g, 3) && ir_is_output(&t.g, 4) && !ir_is_output(&t.g, 2), "outputs");
  tap_is_text(ir_node_name(&t.g, 3), "c", "names");
  graph_close(&t);
}

static const char repeat_text[] = "symbols { n: min=1 max=64 multiple_of=1 hint=8 }\n"
                                  "graph @loop(%x: f32[4], %k: f32[4], state %h: f32[4]) {\n"
                                  "  %dead: f32[4] = exp %k\n"
                                  "  %1: f32[4], %2: i32[] = repeat trips=n (%3: f32[4] = %x, %4: i32[] = 0:i32) {\n"
                                  "    %5: f32[4], _ = repeat trips=3 (%6: f32[4] = %3, %7: f32[] = 0x1p+0:f32) {\n"
                                  "      %8: f32[4] = mul %6, %k\n"
                                  "      %9: f32[4] = add %8, %7\n"
                                  "      yield %9, %7\n"
                                  "    }\n"
                                  "    %10: i32[] = add %4, 1\n"
                                  "    yield %5, %10\n"
                                  "  }\n"
                                  "  update %h, %1\n"
                                  "  return y=%1, count=%2\n"
                                  "  keep %1, %dead\n"
                                  "}\n";

static void check_copy(void) {
  test_graph t;
  if (!tap_is_int(graph_read_text(&t, repeat_text), SNT_OK, "nested repeats")) tap_diag("%s", t.diag.text);
  tap_is_text(graph_errors(&t), "", "are sound");
  tap_is_text(graph_text(&t), repeat_text, "and print as written");
  ir_graph copy;
  uint32_t *map = IR_NEW_ARRAY(&t.arena, uint32_t, t.g.nodes.count);
  ir_graph_init(&copy, &t.arena, &t.pool);
  tap_is_int(ir_graph_copy_live(&t.g, &copy, map), SNT_OK, "copied");
  uint32_t dropped = 0;
  for (uint32_t n = 1; n < t.g.nodes.count; n++) dropped += map[n] == 0;
  tap_is_int(dropped, 1, "without the one dead node");
  t.g = copy;
  tap_is_text(graph_errors(&t), "", "the copy is sound");
  const char *text = graph_text(&t);
  tap_ok(strstr(text, "%dead") == NULL && strstr(text, "keep %1\n") != NULL, "contracts lose what is gone");
  ir_graph_stamp_origins(&t.g);
  tap_is_int(ir_at(&t.g, 5)->origin, 5, "origins are the node's own numbers");
  graph_close(&t);
}

/* ---- the verifier: a sound graph, damaged in one place ---- */
typedef struct damage {
  const char *want;
  void (*make)(ir_graph *);
} damage;
static void later_operand(ir_graph *g) { g->args.at[ir_at(g, 4)->args] = 5; }
static void own_operand(ir_graph *g) { g->args.at[ir_at(g, 4)->args] = 4; }
static void no_operand(ir_graph *g) { g->args.at[ir_at(g, 4)->args] = 1000; }
static void wrong_type(ir_graph *g) { g->nodes.at[4].type.dims[0] = 9; }
static void wrong_dtype(ir_graph *g) { g->nodes.at[4].type.dtype = SNT_I32; }
static void no_attr(ir_graph *g) { g->nodes.at[5].attr_count = 0; }
static void bad_op(ir_graph *g) { g->nodes.at[4].op = 999; }
static void inner_value(ir_graph *g) { g->outputs.at[0].node = 7; }
static void captured(ir_graph *g) { g->args.at[ir_at(g, 11)->args] = 7; }
static void twice_updated(ir_graph *g) { (void)IR_PUSH(g->arena, &g->updates, g->updates.at[0]); }
static void no_state(ir_graph *g) { g->updates.at[0].state = 4; }
static void no_yield(ir_graph *g) { g->yields.at[g->regions.at[1].first] = 3; }
static void same_output(ir_graph *g) { (void)IR_PUSH(g->arena, &g->outputs, g->outputs.at[0]); }
static void lonely_contract(ir_graph *g) { g->contracts.at[0].count = 1; }
static void unsorted(ir_graph *g) { g->ints.at[g->attrs.at[ir_at(g, 5)->attrs].first] = expr_int(g->pool, -1); }
static const damage damages[] = {
    {"node 4 (v) exp: operand 1 is node 5, which comes later: out of order, or a cycle", later_operand},
    {"node 4 (v) exp: operand 1 is the node itself: a cycle", own_operand},
    {"node 4 (v) exp: operand 1 is no value", no_operand},
    {"node 4 (v) exp: its type is f32[9], f32[4] follows from its operands", wrong_type},
    {"node 4 (v) exp: its type is i32[4], f32[4] follows from its operands", wrong_dtype},
    {"node 5 (r) reduce.sum: attribute axes is missing", no_attr},
    {"node 4 (v) ?: unknown operator 999", bad_op},
    {"output 1 is node 7, no value of the graph itself", inner_value},
    {"node 11 (z) add: operand 1 is node 7, which belongs to region 1", captured},
    {"node 3 (h) state: it is updated twice", twice_updated},
    {"update 1: node 4 is no state", no_state},
    {"yielded value 1 has not the type of operand 1", no_yield},
    {"two outputs are named y", same_output},
    {"contract 1: must_fuse needs two values", lonely_contract},
    {"node 5 (r) reduce.sum: attribute axes is not stored in its complete form", unsorted},
};

static void check_verifier(void) {
  static const char text[] = "graph @t(%x: f32[4], %s: f32[], state %h: f32[7]) {\n"
                             "  %v = exp %x\n"
                             "  %r = reduce.sum %v, axes=[0]\n"
                             "  %l = repeat trips=3 (%c = %v) {\n    %n = neg %c\n    yield %n\n  }\n"
                             "  %w = add %l, %r\n"
                             "  %hh = concat %h, axis=0\n"
                             "  %z = add %w, %s\n"
                             "  update %h, %hh\n  return y=%z\n  must_fuse %v, %r\n}\n";
  for (uint32_t i = 0; i < IR_COUNT(damages); i++) {
    test_graph t;
    if (!tap_is_int(graph_read_text(&t, text), SNT_OK, "a graph to damage")) tap_diag("%s", t.diag.text);
    if (i == 0) tap_is_text(graph_errors(&t), "", "is sound");
    damages[i].make(&t.g);
    const char *errors = graph_errors(&t);
    if (!tap_ok(strstr(errors, damages[i].want) != NULL, "reported: %s", damages[i].want)) tap_diag_text(errors);
    graph_close(&t);
  }
}

int main(void) {
  check_operators();
  check_constants();
  check_rules();
  check_sticky();
  check_mistakes();
  check_reading();
  check_copy();
  check_verifier();
  return tap_done();
}
