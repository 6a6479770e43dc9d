/* A kernel that puts every operation to every type it takes: case n reads elements i of the inputs and writes element n * items + i of the
   output, so that a difference names its operation. */
#include "tests/unit/codegen_support.h"
#include <stdio.h>

enum { IN_A, IN_B, IN_C, OUT };
typedef struct caser {
  codegen_cases *to;
  kir_kernel *k;
  kir_type t;
  uint32_t a, b, c, at;
} caser;

static kir_type like(const caser *m, int32_t base) { return kir_t(base, m->t.lanes); }

/* Stores the bits of a value of any type as u32 lanes (two cases for 64-bit types: low and high). */
static void keep(caser *m, const char *name, uint32_t v) {
  const kir_type t = kir_at(m->k, v)->type;
  if (t.base == SNT_BOOL) v = kir_cast(m->k, kir_t(SNT_U32, t.lanes), v);
  else if (ir_dtypes[t.base].bytes == 8) {
    const uint32_t bits = kir_bitcast(m->k, kir_t(SNT_U64, t.lanes), v);
    char half[48];
    snprintf(half, sizeof half, "%s, high", name);
    keep(m, half, kir_cast(m->k, kir_t(SNT_U32, t.lanes), kir_2(m->k, KIR_shr, bits, kir_const_int(m->k, kir_t(SNT_U64, t.lanes), 32))));
    v = kir_cast(m->k, kir_t(SNT_U32, t.lanes), bits);
  } else if (ir_dtypes[t.base].bytes == 4) v = kir_bitcast(m->k, kir_t(SNT_U32, t.lanes), v);
  else
    v = kir_cast(m->k, kir_t(ir_dtypes[t.base].is_signed ? SNT_I32 : SNT_U32, t.lanes), v),
    v = kir_bitcast(m->k, kir_t(SNT_U32, t.lanes), v);
  const uint32_t lanes = kir_at(m->k, v)->type.lanes;
  if (lanes != m->t.lanes) v = kir_splat(m->k, v, m->t.lanes);
  const uint32_t at = kir_ix(m->k, 1, (int64_t[]){1}, &m->at, (int64_t)m->to->count * CODEGEN_CASE_ITEMS * m->t.lanes);
  kir_store(m->k, OUT, 1, &at, v);
  snprintf(m->to->names[m->to->count++], sizeof m->to->names[0], "%s %s x%u", name, ir_dtypes[m->t.base].name, m->t.lanes);
}

/* A float result is compared by its bits, which a NaN does not fix. */
static uint32_t without_nan(caser *m, uint32_t v) {
  return kir_3(m->k, KIR_select, kir_2(m->k, KIR_eq, v, v), v, kir_const_like(m->k, v, 77));
}

static void unary(caser *m, const uint8_t *ops, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    const uint32_t v = kir_1(m->k, (kir_op)ops[i], m->a);
    keep(m, kir_ops[ops[i]].name, ir_dtypes[kir_at(m->k, v)->type.base].is_float ? without_nan(m, v) : v);
  }
}

static void binary(caser *m, const uint8_t *ops, uint32_t count, uint32_t b) {
  for (uint32_t i = 0; i < count; i++) {
    const uint32_t v = kir_2(m->k, (kir_op)ops[i], m->a, b);
    keep(m, kir_ops[ops[i]].name, ir_dtypes[kir_at(m->k, v)->type.base].is_float ? without_nan(m, v) : v);
  }
}

static void float_cases(caser *m) {
  static const uint8_t one[] = {KIR_neg, KIR_abs, KIR_floor, KIR_ceil, KIR_trunc, KIR_rint, KIR_isnan, KIR_isinf};
  static const uint8_t two[] = {KIR_add, KIR_sub, KIR_mul, KIR_min, KIR_max};
  unary(m, one, IR_COUNT(one));
  binary(m, two, IR_COUNT(two), m->b);
  const uint32_t exact = kir_const_float(m->k, m->t, 0.25); /* a quotient that no rounding can spoil */
  keep(m, "div", without_nan(m, kir_2(m->k, KIR_div, m->a, exact)));
  const uint32_t square = kir_1(m->k, KIR_rint, kir_2(m->k, KIR_min, kir_1(m->k, KIR_abs, m->a), kir_const_float(m->k, m->t, 100)));
  keep(m, "sqrt of a square", without_nan(m, kir_1(m->k, KIR_sqrt, kir_2(m->k, KIR_mul, square, square))));
}

static void int_cases(caser *m) {
  static const uint8_t one[] = {KIR_neg, KIR_abs, KIR_not};
  static const uint8_t bits[] = {KIR_popcount, KIR_clz};
  static const uint8_t two[] = {KIR_add, KIR_sub, KIR_mul, KIR_min, KIR_max, KIR_and, KIR_or, KIR_xor, KIR_shl, KIR_shr, KIR_div, KIR_rem};
  static const uint8_t constant[] = {KIR_div, KIR_rem, KIR_shl, KIR_shr};
  unary(m, one, IR_COUNT(one));
  if (ir_dtypes[m->t.base].bytes <= 4) unary(m, bits, IR_COUNT(bits));
  binary(m, two, IR_COUNT(two), m->b);
  binary(m, constant, IR_COUNT(constant), kir_const_int(m->k, m->t, 7));
  if (m->t.base == SNT_U32) keep(m, "mulhi", kir_2(m->k, KIR_mulhi, m->a, m->b));
  if (m->t.base == SNT_I32) keep(m, "dot4", kir_3(m->k, KIR_dot4, m->a, m->b, m->c));
}

static void compare_cases(caser *m) {
  static const uint8_t ops[] = {KIR_eq, KIR_ne, KIR_lt, KIR_le, KIR_gt, KIR_ge};
  binary(m, ops, IR_COUNT(ops), m->b);
  const uint32_t less = kir_2(m->k, KIR_lt, m->a, m->b), same = kir_2(m->k, KIR_eq, m->a, m->c);
  keep(m, "and of bool", kir_2(m->k, KIR_and, less, same));
  keep(m, "or of bool", kir_2(m->k, KIR_or, less, same));
  keep(m, "xor of bool", kir_2(m->k, KIR_xor, less, same));
  keep(m, "not of bool", kir_1(m->k, KIR_not, less));
  keep(m, "select", kir_3(m->k, KIR_select, less, m->b, m->c));
  const uint32_t lane = m->t.lanes > 1 ? kir_2(m->k, KIR_extract, less, kir_const_int(m->k, kir_t(SNT_U32, 1), m->t.lanes - 1)) : less;
  keep(m, "select by one bool", kir_3(m->k, KIR_select, lane, m->b, m->c));
}

static void cast_cases(caser *m) {
  static const uint8_t to[] = {SNT_F32, SNT_I8, SNT_U8, SNT_I16, SNT_U16, SNT_I32, SNT_U32, SNT_F16, SNT_BF16, SNT_BOOL};
  for (uint32_t i = 0; i < IR_COUNT(to); i++) {
    const bool both_int = !ir_dtypes[to[i]].is_float && to[i] != SNT_BOOL && !ir_dtypes[m->t.base].is_float,
               small = to[i] == SNT_F16 || to[i] == SNT_BF16;
    if (to[i] == m->t.base || (small && m->t.base != SNT_F32)) continue;
    for (uint32_t saturate = 0; saturate <= both_int; saturate++) {
      char name[48];
      const kir_inst in = {.op = KIR_cast, .type = like(m, to[i]), .flags = saturate ? KIR_SAT : 0};
      uint32_t v = kir_put(m->k, &in, 1, &m->a);
      snprintf(name, sizeof name, "cast to %s%s", ir_dtypes[to[i]].name, saturate ? ", saturating" : "");
      if (small) v = kir_cast(m->k, like(m, SNT_F32), v);
      keep(m, name, ir_dtypes[kir_at(m->k, v)->type.base].is_float ? without_nan(m, v) : v);
    }
  }
}

/* There and back: what quantised values go through. */
static void narrow_cases(caser *m) {
  static const int32_t by[] = {SNT_I8, SNT_U8, SNT_I16, SNT_U16};
  for (uint32_t i = 0; i < IR_COUNT(by) && m->t.base == SNT_F32; i++) {
    char name[48];
    snprintf(name, sizeof name, "by way of %s", ir_dtypes[by[i]].name);
    keep(m, name, kir_cast(m->k, m->t, kir_cast(m->k, like(m, by[i]), m->a)));
    snprintf(name, sizeof name, "rounded, by way of %s", ir_dtypes[by[i]].name);
    keep(m, name, kir_cast(m->k, m->t, kir_cast(m->k, like(m, by[i]), kir_1(m->k, KIR_rint, m->a))));
  }
}

/* A mask is kept by what it chooses: a cast takes one bit of a lane, a choice another. */
static void keep_lanes(caser *m, const char *name, uint32_t v) {
  if (kir_at(m->k, v)->type.base != SNT_BOOL) {
    keep(m, name, v);
    return;
  }
  char of_bool[48];
  snprintf(of_bool, sizeof of_bool, "%s of bool", name);
  keep(m, of_bool, kir_3(m->k, KIR_select, v, m->b, m->c));
}

/* What moves lanes, of two vectors of one type. */
static void lane_cases(caser *m, uint32_t a, uint32_t b) {
  const kir_type t = kir_at(m->k, a)->type, u32 = kir_t(SNT_U32, 1);
  if (t.lanes == 1) return;
  uint32_t args[18] = {a, b}, parts[16];
  for (uint32_t i = 0; i < t.lanes; i++) args[2 + i] = kir_const_int(m->k, u32, (i * 3 + 1) % (2u * t.lanes));
  const kir_inst shuffle = {.op = KIR_shuffle, .type = t}, vec = {.op = KIR_vec, .type = t};
  keep_lanes(m, "shuffle", kir_put(m->k, &shuffle, 2u + t.lanes, args));
  for (uint32_t i = 0; i < t.lanes; i++) parts[i] = kir_2(m->k, KIR_extract, i % 2 ? a : b, kir_const_int(m->k, u32, t.lanes - 1 - i));
  keep_lanes(m, "vec of extracts", kir_put(m->k, &vec, t.lanes, parts));
  keep_lanes(m, "insert", kir_3(m->k, KIR_insert, a, kir_const_int(m->k, u32, 1), parts[0]));
  keep_lanes(m, "splat", kir_splat(m->k, parts[0], t.lanes));
  if (t.base == SNT_F32 && t.lanes != 3) keep(m, "permute", kir_2(m->k, KIR_permute, a, kir_bitcast(m->k, kir_t(SNT_U32, t.lanes), b)));
  keep_lanes(m, "run-time lane",
             kir_2(m->k, KIR_extract, a, kir_2(m->k, KIR_umod, kir_id(m->k, KIR_local, 0), kir_const_int(m->k, u32, t.lanes))));
}

static void declare(caser *m, const char *name, uint32_t slot, kir_type t, uint64_t elements, uint8_t access) {
  const kir_memory memory = {
      .name = name, .space = KIR_GLOBAL, .type = t, .rank = 1, .dims = {elements}, .slot = slot, .align = 64, .access = access};
  kir_memory_add(m->k, &memory);
}

void codegen_cases_make(codegen_cases *to, ir_arena *arena, int32_t base, uint32_t lanes) {
  caser m = {.to = to, .k = &to->kernel, .t = kir_t(base, lanes)};
  static const char *const names[] = {"a", "b", "c"};
  to->count = 0;
  kir_init(m.k, arena, "cases");
  m.k->items[0] = CODEGEN_CASE_ITEMS;
  m.k->mode = ir_dtypes[base].is_float ? SNT_NUMERICS_STRICT : SNT_NUMERICS_REPRODUCIBLE; /* the latter: exact integer to float */
  for (uint32_t i = 0; i < 3; i++) declare(&m, names[i], i, kir_t(base, 1), CODEGEN_CASE_ITEMS * lanes, KIR_READ);
  declare(&m, "out", OUT, kir_t(SNT_U32, 1), 256ull * CODEGEN_CASE_ITEMS * lanes, KIR_WRITE);
  const uint32_t item = kir_id(m.k, KIR_local, 0);
  m.at = kir_ix(m.k, 1, (int64_t[]){lanes}, &item, 0);
  m.a = kir_load(m.k, IN_A, lanes, 1, &m.at), m.b = kir_load(m.k, IN_B, lanes, 1, &m.at), m.c = kir_load(m.k, IN_C, lanes, 1, &m.at);
  if (m.k->failed) return;
  if (ir_dtypes[base].is_float) float_cases(&m);
  else int_cases(&m);
  compare_cases(&m);
  cast_cases(&m);
  narrow_cases(&m);
  lane_cases(&m, m.a, m.b);
  lane_cases(&m, kir_2(m.k, KIR_lt, m.a, m.b), kir_2(m.k, KIR_le, m.b, m.c));
}
