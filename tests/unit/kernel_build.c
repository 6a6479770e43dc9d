/* The builder, the verifier and uniformity: what is built verifies and prints as expected; mistakes stick or are named, one by one. */
#include "tests/unit/kernel_support.h"
#include "tests/tap.h"

static const kir_type u32 = {SNT_U32, 1, 0}, f32 = {SNT_F32, 1, 0};

/* ---- building ---- */
static const char *const expected = "kernel @scale items=(64,1,1) sub=none mode=default needs=() {\n"
                                    "  scalar %n: u32 at=0 min=1 mul=4\n"
                                    "  scalar %s: f64 at=8\n"
                                    "  param %x: f32[%n] slot=0 off=0 ro align=64 alias=0\n"
                                    "  param %y: f32[2*%n] slot=1 off=0 wo align=16 alias=0\n"
                                    "  %0: u32 = group 0\n"
                                    "  %1: u32 = local 0\n"
                                    "  %2: u32 = ix 256*%0 + 4*%1\n"
                                    "  %3: bool = lt %2, %n\n"
                                    "  %4: f32x4 = if %3 {\n"
                                    "    %5: f32x4 = load %x[%2] align=16\n"
                                    "    %6: f32x4 = mul %5, 0x1p+1\n"
                                    "    yield %6\n"
                                    "  } else {\n"
                                    "    yield 0\n"
                                    "  }\n"
                                    "  %7: f32x4 = loop %8: u32 = 0, %n, 1 carry(%9: f32x4 = %4) unroll=2 {\n"
                                    "    %10: f32 = load %x[%8] align=4\n"
                                    "    %11: f32x4 = splat %10\n"
                                    "    %12: f32x4 = add %9, %11\n"
                                    "    yield %12\n"
                                    "  }\n"
                                    "  %13: f32 = cast %s\n"
                                    "  %14: f32x4 = splat %13\n"
                                    "  %15: f32x4 = add %7, %14\n"
                                    "  store %y[%2 + -3*%1 + 7], %15 align=4\n"
                                    "}\n";

static void build_scale(kir_kernel *k) {
  k->items[0] = 64;
  const uint32_t n = kir_scalar_add(k, "n", SNT_U32, 1, 0, 4), s = kir_scalar_add(k, "s", SNT_F64, 0, 0, 0);
  const uint32_t x = kir_memory_add(k,
                                    &(kir_memory){.name = "x", .space = KIR_GLOBAL, .access = KIR_READ, .type = f32, .size_scalar = n + 1});
  const uint32_t y = kir_memory_add(k, &(kir_memory){.name = "y",
                                                     .space = KIR_GLOBAL,
                                                     .access = KIR_WRITE,
                                                     .type = f32,
                                                     .slot = 1,
                                                     .align = 16,
                                                     .size_scalar = n + 1,
                                                     .dims = {0, 2}});
  const uint32_t group = kir_id(k, KIR_group, 0), local = kir_id(k, KIR_local, 0);
  const uint32_t at = kir_ix(k, 2, (int64_t[]){256, 4}, (uint32_t[]){group, local}, 0);
  const uint32_t branch = kir_if(k, kir_2(k, KIR_lt, at, kir_scalar_read(k, n)));
  const uint32_t loaded = kir_load(k, x, 4, 1, &at);
  kir_at(k, loaded)->align = 16;
  const uint32_t twice = kir_2(k, KIR_mul, loaded, kir_const_float(k, f32, 2));
  kir_else(k, branch, 1, &twice);
  const uint32_t zero = kir_const_float(k, kir_t(SNT_F32, 4), 0);
  uint32_t sum, carried;
  kir_if_end(k, branch, 1, &zero, &sum);
  const uint32_t loop = kir_loop(k, kir_const_int(k, u32, 0), kir_scalar_read(k, n), 0, 1, &sum, &carried, 0, 2);
  const uint32_t next = kir_2(k, KIR_add, carried, kir_load(k, x, 1, 1, &loop));
  kir_loop_end(k, loop, 1, &next, &sum);
  const uint32_t shifted = kir_2(k, KIR_add, sum, kir_cast(k, f32, kir_scalar_read(k, s)));
  const uint32_t to = kir_ix(k, 2, (int64_t[]){1, -3}, (uint32_t[]){at, local}, 7);
  kir_store(k, y, 1, &to, shifted);
}

static void test_builder(void) {
  ir_arena arena;
  kir_kernel k;
  snt_diag diag = {0};
  ir_arena_init(&arena, NULL);
  kir_init(&k, &arena, "scale");
  build_scale(&k);
  tap_is_int(kir_verify(&k, NULL, &diag), SNT_OK, "what the builder made verifies %s", diag.text);
  tap_is_text(kernel_print(&k), expected, "types inferred, scalars splatted, literals inline");
  int64_t i;
  double f;
  const uint32_t vector = kir_const_int(&k, kir_t(SNT_U8, 4), 300);
  tap_ok(kir_is_const(&k, vector, &i, &f) && i == 44 && f == 44, "a constant wraps to its type");
  tap_ok(kir_is_const(&k, kir_const_like(&k, 1, 3.9), &i, NULL) && i == 3, "a constant like an integer is one");
  tap_ok(!kir_is_const(&k, 1, NULL, NULL), "a value that was computed is none");
  tap_ok(kir_cast(&k, u32, 1) == 1 && kir_splat(&k, 1, 1) == 1, "casts and splats that change nothing give the value itself");
  ir_arena_free(&arena);
}

/* ---- mistakes stick ---- */
typedef uint32_t (*mistake)(kir_kernel *);
static uint32_t mix_types(kir_kernel *k) { return kir_2(k, KIR_add, kir_const_int(k, u32, 1), kir_const_float(k, f32, 1)); }
static uint32_t no_operand(kir_kernel *k) { return kir_2(k, KIR_add, 99, 1); }
static uint32_t float_bits(kir_kernel *k) { return kir_2(k, KIR_shl, kir_const_float(k, f32, 1), kir_const_float(k, f32, 1)); }
static uint32_t no_memory(kir_kernel *k) { return kir_load(k, 5, 1, 0, NULL); }
static uint32_t two_widths(kir_kernel *k) {
  return kir_2(k, KIR_add, kir_const_int(k, kir_t(SNT_U32, 2), 1), kir_const_int(k, kir_t(SNT_U32, 4), 1));
}
static uint32_t bool_sum(kir_kernel *k) {
  return kir_2(k, KIR_add, kir_const_int(k, kir_t(SNT_BOOL, 1), 1), kir_const_int(k, kir_t(SNT_BOOL, 1), 1));
}
static uint32_t wrong_end(kir_kernel *k) { return kir_loop_end(k, kir_const_int(k, u32, 1), 0, NULL, NULL), 0; }
static uint32_t bits_differ(kir_kernel *k) { return kir_bitcast(k, kir_t(SNT_F64, 1), kir_const_int(k, u32, 1)); }

static void test_mistakes(void) {
  static const struct {
    mistake make;
    const char *words;
  } rows[] = {{mix_types, "different types"},    {no_operand, "is no value"},
              {float_bits, "must be integers"},  {no_memory, "memory 5 does not exist"},
              {two_widths, "splat of a vector"}, {bool_sum, "may not be bool"},
              {wrong_end, "is no loop"},         {bits_differ, "element sizes differ"}};
  for (uint32_t i = 0; i < IR_COUNT(rows); i++) {
    ir_arena arena;
    kir_kernel k;
    snt_diag diag = {0};
    ir_arena_init(&arena, NULL);
    kir_init(&k, &arena, "wrong");
    rows[i].make(&k);
    const uint32_t count = k.insts.count;
    tap_ok(k.failed && strstr(k.first_error.text, rows[i].words), "sticks: %s", k.first_error.text);
    tap_ok(!kir_id(&k, KIR_group, 0) && k.insts.count == count && kir_verify(&k, NULL, &diag) != SNT_OK, "and nothing follows");
    ir_arena_free(&arena);
  }
}

/* ---- the verifier, on kernels in text and on tables no builder makes ---- */
static void rejects(const char *body, const char *words) {
  char text[2000];
  ir_arena arena;
  kir_kernel k;
  snt_diag diag = {0};
  ir_text errors;
  ir_arena_init(&arena, NULL);
  ir_text_init(&errors, &arena);
  snprintf(text, sizeof text, "kernel @k items=(8,1,1) sub=4 {\n param %%x: f32[8] ro\n param %%y: f32[8] wo\n %s }", body);
  kir_init(&k, &arena, "k");
  const snt_result parsed = kir_parse(&k, text, strlen(text), &diag);
  const snt_result verified = parsed ? SNT_OK : kir_verify(&k, &errors, &diag);
  if (!tap_ok(!parsed && verified == SNT_E_ARG && strstr(diag.text, words) && strstr(errors.at, words), "rejected: %s", words))
    tap_diag("%d %d %s", parsed, verified, diag.text);
  ir_arena_free(&arena);
}

static void test_verifier(void) {
  rejects("%v = load %y[0]", "y may not be read");
  rejects("store %x[0], 0", "x may not be written");
  rejects("const %c: f32[2] = (0, 0)\n store %c[0], 0", "c may not be written");
  rejects("param %z: f32[8] slot=5 ro", "slot 5 leaves a gap");
  rejects("scalar %a: f64 at=4", "misaligned");
  rejects("scalar %a, %b: u32 at=4, 4", "overlaps another");
  rejects("scalar %a: f64 at=124", "outside the block");
  rejects("private %p: f32[4]", "either regs or rows");
  rejects("local %p: f32[4] align=3", "alignment 3");
  rejects("local %p: f32[4000000000]", "extent 4000000000");
  rejects("const %c: u8[2] = (3, 256)", "value 1 does not fit");
  rejects("%l = local 0; %c = eq %l, 0; if %c { barrier local }", "not every item of the group");
  rejects("%l = sg.id; %c = eq %l, 0; if %c { barrier local }", "not every item of the group");
  rejects("%l = sg.lane; loop %i = 0, %l { sg.barrier }", "not every item of the subgroup");
  rejects("%l = sg.lane; loop %i = 0, 8 carry(%s: u32 = 0) { %c = lt %s, 4; if %c { barrier local }\n %t = add %s, %l; yield %t }",
          "not every item of the group");
  rejects("%v = exp 0:f32 dom=[1,0]", "domain is empty");
  rejects("local %t: f16[16]\n %f: frag<a,f16> = mma.load %t[0] ld=0", "ld must be positive");
}

/* Breaks one field of a good kernel. */
static void breaks(uint32_t op, size_t field, uint32_t value, const char *words) {
  ir_arena arena;
  kir_kernel k;
  snt_diag diag = {0};
  ir_arena_init(&arena, NULL);
  kir_init(&k, &arena, "scale");
  build_scale(&k);
  for (uint32_t i = 1; i < k.insts.count; i++)
    if (kir_at(&k, i)->op == op) {
      if (field == offsetof(kir_inst, op) || field == offsetof(kir_inst, arg_count)) {
        const uint16_t narrow = (uint16_t)value;
        memcpy((uint8_t *)kir_at(&k, i) + field, &narrow, sizeof narrow);
      } else {
        memcpy((uint8_t *)kir_at(&k, i) + field, &value, sizeof value);
      }
      break;
    }
  if (!tap_ok(kir_verify(&k, NULL, &diag) == SNT_E_ARG && strstr(diag.text, words), "broken %s: %s", kir_ops[op].name, words))
    tap_diag("%s", diag.text);
  ir_arena_free(&arena);
}

static void test_broken_tables(void) {
  breaks(KIR_mul, offsetof(kir_inst, op), KIR_OP_COUNT, "no such operation");
  breaks(KIR_mul, offsetof(kir_inst, args), 100000, "outside the table");
  breaks(KIR_mul, offsetof(kir_inst, arg_count), 3, "3 operands");
  breaks(KIR_load, offsetof(kir_inst, index), 9, "memory 9 does not exist");
  breaks(KIR_scalar, offsetof(kir_inst, index), 7, "scalar 7 does not exist");
  breaks(KIR_end, offsetof(kir_inst, index), 1, "do not nest");
  breaks(KIR_else, offsetof(kir_inst, op), KIR_sg_barrier, "results need an else");
  breaks(KIR_carry, offsetof(kir_inst, index), 1, "needs 1 carries");
  breaks(KIR_result, offsetof(kir_inst, index), 1, "1 values are yielded where 0 are wanted");
  breaks(KIR_yield, offsetof(kir_inst, arg_count), 0, "0 values are yielded where 1 are wanted");
}

static void test_dominance(void) {
  ir_arena arena;
  kir_kernel k;
  snt_diag diag = {0};
  ir_arena_init(&arena, NULL);
  kir_init(&k, &arena, "scope");
  const uint32_t loop = kir_loop(&k, kir_const_int(&k, u32, 0), kir_const_int(&k, u32, 8), 0, 0, NULL, NULL, 0, 0),
                 inside = kir_2(&k, KIR_add, loop, loop);
  kir_loop_end(&k, loop, 0, NULL, NULL);
  const uint32_t used = kir_2(&k, KIR_add, inside, inside);
  tap_ok(kir_verify(&k, NULL, &diag) && strstr(diag.text, "not visible"), "a value of a closed loop is not visible: %s", diag.text);
  k.args.at[kir_at(&k, used)->args] = k.args.at[kir_at(&k, used)->args + 1] = loop;
  tap_ok(kir_verify(&k, NULL, &diag) && strstr(diag.text, "not visible"), "nor is its variable");
  ir_arena_free(&arena);
}

/* ---- uniformity of every value of a kernel, by its printed number ---- */
static void test_uniformity(void) {
  static const char text[] =
      "kernel @u items=(8,1,2) sub=4 {\n param %a: f32[64] ro\n param %b: f32[64] rw\n local %t: f32[8]\n scalar %n: u32 at=0\n"
      "%g = group 0; %x = local 0; %y = local 1; %s = sg.id; %l = sg.lane; %c = sg.count\n" /* G I G S I G */
      "%e = ix 4*%g + %n; %f = ix %g + %x; %h = add %s, %g\n"                               /* G I S */
      "%p = load %a[%e]; %q = load %b[%e]; %r = load %a[%f]; %m = sg.max %r\n"              /* G G I S */
      "%k = loop %i = 0, %n carry(%v: f32 = 0) { %w = add %v, %m; yield %w }\n"             /* k: S; i G, v S, w S */
      "%z = loop %j = 0, %x carry(%o: f32 = 0) { %B = load %b[%e]; yield %o }\n"            /* z I; j I; o G, B I */
      "%d = eq %s, 0; %u: f32 = if %d { yield 0 } else { yield %p } }";                     /* S; S */
  static const char levels[] = "GIGSIG"
                               "GIS"
                               "GGIS"
                               "GSSS"
                               "IGII"
                               "SS";
  ir_arena arena;
  kir_kernel k;
  uint8_t *found;
  char got[64] = "";
  ir_arena_init(&arena, NULL);
  if (tap_ok(kernel_from_text(&k, &arena, text), "the kernel of uniformity is valid") &&
      tap_ok(kir_find_uniformity(&k, &arena, &found), "it is analysed")) {
    for (uint32_t i = 1, n = 0; i < k.insts.count; i++) {
      const uint32_t op = kir_at(&k, i)->op;
      if (kir_ops[op].result != KIR_R_NONE && op != KIR_const && op != KIR_scalar) got[n++] = "GSI"[found[i]], got[n] = 0;
    }
    tap_is_text(got, levels, "levels of the values in order");
    for (uint32_t d = 0; d < 3; d++) k.items[d] = 1;
    kir_find_uniformity(&k, &arena, &found);
    bool all = true;
    for (uint32_t i = 0; i < k.insts.count; i++) all &= found[i] == KIR_UNIFORM_GROUP;
    tap_ok(all, "a group of one item is uniform");
  }
  ir_arena_free(&arena);
}

int main(void) {
  test_builder();
  test_mistakes();
  test_verifier();
  test_broken_tables();
  test_dominance();
  test_uniformity();
  return tap_done();
}
