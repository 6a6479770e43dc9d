/* The generator of random kernels: statements over a pool of values in scope, nested loops and branches, private and shared arrays. */
#include "tests/unit/kernel_random.h"
#include <math.h>
#include <stdio.h>

enum { MAX_POOL = 400, DEPTH = 3 };

/* ---- random numbers ---- */
static uint64_t state;
static uint32_t below(uint32_t n) {
  state = state * 6364136223846793005ull + 1442695040888963407ull;
  return (uint32_t)((state >> 33) % n);
}
static bool one_in(uint32_t n) { return below(n) == 0; }

/* ---- the kernel under construction ---- */
typedef struct maker {
  kir_kernel *k;
  uint32_t pool[MAX_POOL], count; /* values in scope */
  uint32_t cells, scalars, rows, shared, table, length;
  uint32_t base, id; /* this item's segment of the outputs; its number in the group */
  uint32_t left;     /* statements */
  bool with_fma, with_small_floats;
} maker;

static kir_type u32(void) { return kir_t(SNT_U32, 1); }
static uint32_t lit(maker *m, uint32_t v) { return kir_const_int(m->k, u32(), v); }
static kir_type type_of(const maker *m, uint32_t v) { return kir_at(m->k, v)->type; }
static uint32_t keep(maker *m, uint32_t v) {
  if (m->count < MAX_POOL && v) m->pool[m->count++] = v;
  return v;
}

static uint32_t random_lanes(void) {
  static const uint8_t lanes[] = {1, 1, 1, 2, 3, 4, 4, 8, 16};
  return lanes[below(sizeof lanes)];
}
static kir_type random_type(const maker *m) {
  static const uint8_t bases[] = {SNT_F32, SNT_F32, SNT_F32, SNT_U32, SNT_U32, SNT_I32, SNT_U8, SNT_I16, SNT_F16, SNT_BF16};
  return kir_t(bases[below(m->with_small_floats ? 10 : 8)], random_lanes());
}

static uint32_t constant(maker *m, kir_type t) {
  static const double floats[] = {0, 1, -1, 0.5, 2, 3.25, -7.5, 100, -0.0, 0x1p-12};
  if (ir_dtypes[t.base].is_float) return kir_const_float(m->k, t, floats[below(IR_COUNT(floats))]);
  return kir_const_int(m->k, t, one_in(4) ? (int64_t)below(100000) * 77777 : (int64_t)below(9) - (t.base == SNT_I32 ? 4 : 0));
}

/* A value of the type in scope, or a constant, or a splat of a scalar. */
static uint32_t value(maker *m, kir_type t) {
  for (uint32_t tries = 0; tries < 30 && m->count; tries++) {
    const uint32_t v = m->pool[below(m->count)];
    if (kir_same(type_of(m, v), t)) return v;
    if (t.lanes > 1 && type_of(m, v).base == t.base && type_of(m, v).lanes == 1 && one_in(3)) return kir_splat(m->k, v, t.lanes);
  }
  return constant(m, t);
}

/* A u32 below n, a power of two. */
static uint32_t index_below(maker *m, uint32_t n) { return kir_2(m->k, KIR_and, value(m, u32()), lit(m, n - 1)); }
static uint32_t without_nan(maker *m, uint32_t v) {
  return kir_3(m->k, KIR_select, kir_2(m->k, KIR_eq, v, v), v, kir_const_like(m->k, v, 3));
}

/* ---- expressions ---- */
static void float_op(maker *m, kir_type t) {
  static const uint8_t two[] = {KIR_add, KIR_sub, KIR_mul, KIR_min, KIR_max, KIR_div, KIR_add, KIR_mul};
  static const uint8_t one[] = {KIR_neg, KIR_abs, KIR_floor, KIR_rint, KIR_sqrt, KIR_rcp, KIR_trunc, KIR_ceil};
  if (m->with_fma && t.base == SNT_F32 && one_in(4)) keep(m, kir_3(m->k, KIR_fma, value(m, t), value(m, t), value(m, t)));
  else if (one_in(4)) keep(m, kir_1(m->k, one[below(IR_COUNT(one))], value(m, t)));
  else keep(m, kir_2(m->k, two[below(IR_COUNT(two))], value(m, t), value(m, t)));
}

static void int_op(maker *m, kir_type t) {
  static const uint8_t two[] = {KIR_add, KIR_sub, KIR_mul, KIR_min, KIR_max, KIR_div, KIR_rem, KIR_and, KIR_or, KIR_xor, KIR_shl, KIR_shr};
  static const uint8_t one[] = {KIR_neg, KIR_abs, KIR_not, KIR_popcount, KIR_clz};
  static const uint32_t divisors[] = {1, 2, 3, 5, 7, 10, 16, 48, 641, 1000003, 0x7fffffff, 0x80000000, 0xfffffffb, 3000000000u};
  if (t.base == SNT_U32 && one_in(4)) {
    const uint32_t d = kir_const_int(m->k, t, divisors[below(IR_COUNT(divisors))]);
    keep(m, kir_2(m->k, one_in(2) ? KIR_udiv : KIR_umod, value(m, t), d));
  } else if (t.base == SNT_U32 && one_in(6)) {
    const uint32_t n = kir_const_int(m->k, t, 9);
    keep(m, kir_3(m->k, KIR_wrap, kir_2(m->k, KIR_umod, value(m, t), n), kir_2(m->k, KIR_umod, value(m, t), n), n));
  } else if (t.base == SNT_U32 && one_in(8)) keep(m, kir_2(m->k, KIR_mulhi, value(m, t), value(m, t)));
  else if (t.base == SNT_I32 && one_in(8)) keep(m, kir_3(m->k, KIR_dot4, value(m, t), value(m, t), value(m, t)));
  else if (one_in(5)) keep(m, kir_1(m->k, one[below(IR_COUNT(one))], value(m, t)));
  else keep(m, kir_2(m->k, two[below(IR_COUNT(two))], value(m, t), value(m, t)));
}

static void sum_op(maker *m) {
  const int64_t coefs[3] = {1, (int64_t)below(64), (int64_t)below(7) - 3};
  const uint32_t values[3] = {value(m, u32()), value(m, u32()), value(m, u32())};
  keep(m, kir_ix(m->k, 1 + below(3), coefs, values, (int64_t)below(40) - 20));
}

static uint32_t condition(maker *m, uint32_t lanes) {
  static const uint8_t ops[] = {KIR_eq, KIR_ne, KIR_lt, KIR_le, KIR_gt, KIR_ge};
  kir_type t = random_type(m);
  t.lanes = (uint8_t)lanes;
  const uint32_t a = value(m, t);
  if (ir_dtypes[t.base].is_float && one_in(5)) return kir_1(m->k, one_in(2) ? KIR_isnan : KIR_isinf, a);
  const uint32_t c = kir_2(m->k, ops[below(6)], a, value(m, t));
  return one_in(4) ? kir_2(m->k, one_in(2) ? KIR_and : KIR_or, c, kir_1(m->k, KIR_not, kir_2(m->k, KIR_lt, value(m, t), value(m, t)))) : c;
}

static void convert_op(maker *m, kir_type t) {
  kir_type from = random_type(m);
  from.lanes = t.lanes;
  const kir_inst cast = {
      .op = KIR_cast, .type = t, .flags = !ir_dtypes[t.base].is_float && !ir_dtypes[from.base].is_float && one_in(3) ? KIR_SAT : 0};
  const uint32_t v = one_in(6) ? condition(m, t.lanes) : value(m, from);
  if (type_of(m, v).base != SNT_BOOL) keep(m, kir_put(m->k, &cast, 1, &v));
  else keep(m, kir_cast(m->k, t, v));
}

static void bits_op(maker *m, uint32_t lanes) {
  const uint32_t f = without_nan(m, value(m, kir_t(SNT_F32, lanes)));
  keep(m, kir_bitcast(m->k, kir_t(SNT_U32, lanes), f));
  const uint32_t pair = without_nan(m, value(m, kir_t(SNT_F32, 2)));
  const kir_inst pack = {.op = KIR_pack2, .index = one_in(2) ? SNT_F16 : SNT_BF16};
  const uint32_t word = keep(m, kir_put(m->k, &pack, 1, &pair));
  const kir_inst unpack = {.op = KIR_unpack2, .index = one_in(2) ? SNT_F16 : SNT_BF16};
  keep(m, kir_put(m->k, &unpack, 1, &word));
}

static void vector_op(maker *m, kir_type t) {
  const uint32_t v = value(m, t);
  if (t.lanes == 1) return;
  const kir_inst none = {0};
  kir_inst in = none;
  uint32_t args[18];
  switch (below(5)) {
  case 0:
    keep(m, kir_2(m->k, KIR_extract, v, one_in(2) ? lit(m, below(t.lanes)) : kir_2(m->k, KIR_umod, value(m, u32()), lit(m, t.lanes))));
    return;
  case 1: keep(m, kir_3(m->k, KIR_insert, v, lit(m, below(t.lanes)), value(m, kir_t(t.base, 1)))); return;
  case 2:
    in.op = KIR_shuffle, in.type = kir_t(t.base, one_in(2) ? t.lanes : 4);
    args[0] = v, args[1] = value(m, t);
    for (uint32_t i = 0; i < in.type.lanes; i++) args[2 + i] = lit(m, below(2u * t.lanes));
    keep(m, kir_put(m->k, &in, 2u + in.type.lanes, args));
    return;
  case 3:
    in.op = KIR_vec, in.type = t;
    for (uint32_t i = 0; i < t.lanes; i++) args[i] = value(m, kir_t(t.base, 1));
    keep(m, kir_put(m->k, &in, t.lanes, args));
    return;
  default:
    in.op = (uint16_t)(KIR_hred_add + below(4));
    keep(m, kir_put(m->k, &in, 1, &v));
    return;
  }
}

static void expression(maker *m) {
  const kir_type t = random_type(m);
  switch (below(9)) {
  case 0: convert_op(m, t); return;
  case 1: vector_op(m, t); return;
  case 2: keep(m, kir_3(m->k, KIR_select, condition(m, one_in(2) ? 1 : t.lanes), value(m, t), value(m, t))); return;
  case 3: sum_op(m); return;
  case 4:
    if (one_in(3)) bits_op(m, t.lanes);
    return;
  default:
    if (ir_dtypes[t.base].is_float) float_op(m, t);
    else int_op(m, t);
  }
}

/* ---- memory ---- */
static void load_global(maker *m) {
  static const uint8_t inputs[] = {F_IN, F_IN, U_IN, B_IN, L_IN, S_IN, H_IN, G_IN};
  const uint32_t memory = inputs[below(m->with_small_floats ? 8 : 6)], lanes = random_lanes();
  const uint32_t stride = one_in(5) ? 1 + below(4) : 0;
  uint32_t at = index_below(m, 128);
  if (one_in(2)) at = kir_ix(m->k, 1, (int64_t[]){lanes == 3 ? 1 : lanes}, (uint32_t[]){index_below(m, 8)}, one_in(2) ? 16 : 0);
  const uint32_t v = kir_load(m->k, memory, lanes, 1, &at);
  if (m->k->failed) return;
  kir_at(m->k, v)->lanes = lanes > 1 ? (int32_t)stride : 0;
  keep(m, v);
}

static void store_global(maker *m) {
  static const uint8_t outputs[] = {F_OUT, F_OUT, U_OUT, B_OUT, L_OUT, S_OUT, H_OUT, G_OUT};
  const uint32_t memory = outputs[below(m->with_small_floats ? 8 : 6)], lanes = random_lanes();
  const kir_type t = kir_t(m->k->memories.at[memory].type.base, lanes);
  const uint32_t at = one_in(2) ? kir_ix(m->k, 2, (int64_t[]){1, 1}, (uint32_t[]){m->base, index_below(m, 32)}, 0)
                                : kir_ix(m->k, 1, (int64_t[]){1}, (uint32_t[]){m->base}, (int64_t)below(3) * 16);
  uint32_t v = memory == L_OUT ? condition(m, lanes) : value(m, t);
  if ((memory == H_OUT || memory == G_OUT) && one_in(2)) v = kir_cast(m->k, t, value(m, kir_t(SNT_F32, lanes)));
  kir_store(m->k, memory, 1, &at, v);
}

static void use_table(maker *m) {
  const uint32_t at = one_in(2) ? lit(m, below(8)) : index_below(m, 8);
  keep(m, kir_load(m->k, m->table, 1, 1, &at));
}

static void use_private(maker *m, uint32_t i) { /* i: below 2, a constant after unrolling */
  kir_kernel *k = m->k;
  const uint32_t cell[2] = {i, lit(m, below(2))}, row[2] = {index_below(m, 4), index_below(m, 4)};
  switch (below(6)) {
  case 0: kir_store(k, m->cells, 2, cell, value(m, kir_t(SNT_F32, 4))); return;
  case 1: keep(m, kir_load(k, m->cells, 4, 2, cell)); return;
  case 2: kir_store(k, m->scalars, 1, cell, value(m, u32())); return;
  case 3: keep(m, kir_load(k, m->scalars, 1, 1, cell)); return;
  case 4: kir_store(k, m->rows, 2, row, value(m, kir_t(SNT_F32, one_in(2) ? 1 : 4))); return;
  default: keep(m, kir_load(k, m->rows, one_in(2) ? 1 : 4, 2, row)); return;
  }
}

static void fill_some(maker *m) {
  const uint32_t first = lit(m, below(2));
  kir_fill(m->k, m->cells, below(2), &first, value(m, kir_t(SNT_F32, 1)));
  if (one_in(2)) kir_fill(m->k, m->rows, below(2), &first, constant(m, kir_t(SNT_F32, 1)));
}

/* ---- control ---- */
static void statements(maker *m, uint32_t depth, uint32_t count, uint32_t i);

static void loop(maker *m, uint32_t depth) {
  kir_kernel *k = m->k;
  uint32_t initial[3], carried[3], next[3], results[3];
  const uint32_t count = below(4), style = below(4), mark = m->count;
  const bool full = style == 0;
  uint32_t lo = lit(m, 0), hi = full ? lit(m, 2) : one_in(2) ? m->length : lit(m, below(7)), step = lit(m, full ? 1 : 1 + below(2));
  if (!full && one_in(3)) lo = kir_2(k, KIR_and, value(m, u32()), lit(m, 3));
  for (uint32_t n = 0; n < count; n++) initial[n] = value(m, random_type(m));
  const uint32_t flags = full ? KIR_LOOP_FULL : style == 1 ? KIR_LOOP_ROLLED : 0;
  const uint32_t variable = kir_loop(k, lo, hi, step, count, initial, carried, flags, style == 2 ? 2 + below(2) : 0);
  keep(m, variable);
  for (uint32_t n = 0; n < count; n++) keep(m, carried[n]);
  statements(m, depth + 1, 2 + below(6), full ? variable : 0);
  for (uint32_t n = 0; n < count; n++) next[n] = value(m, type_of(m, initial[n]));
  kir_loop_end(k, variable, count, next, results);
  m->count = mark;
  for (uint32_t n = 0; n < count; n++) keep(m, results[n]);
}

static void branch(maker *m, uint32_t depth, uint32_t i) {
  kir_kernel *k = m->k;
  const uint32_t count = below(3), mark = m->count, opened = kir_if(k, condition(m, 1));
  uint32_t results[2], values[2];
  kir_type types[2] = {random_type(m), random_type(m)};
  statements(m, depth + 1, 1 + below(5), i);
  for (uint32_t n = 0; n < count; n++) values[n] = value(m, types[n]);
  m->count = mark;
  if (count || one_in(2)) {
    kir_else(k, opened, count, values);
    statements(m, depth + 1, 1 + below(4), i);
    for (uint32_t n = 0; n < count; n++) values[n] = value(m, types[n]);
    m->count = mark;
  }
  kir_if_end(k, opened, count, values, results);
  for (uint32_t n = 0; n < count; n++) keep(m, results[n]);
}

/* Every item leaves a value for its neighbour. */
static void exchange(maker *m) {
  kir_kernel *k = m->k;
  const uint32_t next = kir_2(k, KIR_umod, kir_ix(k, 1, (int64_t[]){1}, (uint32_t[]){m->id}, 1), lit(m, k->items[0]));
  kir_store(k, m->shared, 1, &m->id, value(m, kir_t(SNT_F32, 1)));
  kir_barrier(k, KIR_SYNC_LOCAL);
  keep(m, kir_load(k, m->shared, 1, 1, &next));
  kir_barrier(k, KIR_SYNC_LOCAL);
}

static void statement(maker *m, uint32_t depth, uint32_t i) {
  switch (below(14)) {
  case 0:
  case 1: load_global(m); return;
  case 2: store_global(m); return;
  case 3: use_table(m); return;
  case 4:
  case 5: use_private(m, i ? i : lit(m, below(2))); return;
  case 6:
    if (one_in(3)) fill_some(m);
    return;
  case 7:
    if (depth < DEPTH) loop(m, depth);
    return;
  case 8:
    if (depth < DEPTH) branch(m, depth, i);
    return;
  case 9:
    if (depth == 0) exchange(m);
    return;
  default: expression(m); return;
  }
}

static void statements(maker *m, uint32_t depth, uint32_t count, uint32_t i) {
  for (; count && m->left && !m->k->failed; count--, m->left--) statement(m, depth, i);
}

/* ---- declarations ---- */
static uint32_t declare(kir_kernel *k, const char *name, uint8_t space, kir_type t, uint64_t d0, uint64_t d1, uint16_t flags) {
  const kir_memory m = {.name = name, .space = space, .type = t, .rank = d1 ? 2 : 1, .dims = {d0, d1}, .flags = flags};
  return kir_memory_add(k, &m);
}

const uint8_t random_bases[RANDOM_BUFFERS] = {SNT_F32, SNT_U32, SNT_U8, SNT_BOOL, SNT_I16, SNT_F16, SNT_BF16,
                                              SNT_F32, SNT_U32, SNT_U8, SNT_BOOL, SNT_I16, SNT_F16, SNT_BF16};

static void declare_all(maker *m) {
  static const char *const names[RANDOM_BUFFERS] = {"fi", "ui", "bi", "li", "si", "hi", "gi", "fo", "uo", "bo", "lo", "so", "ho", "go"};
  static const double weights[8] = {0, 1, 0.25, -2, 3, 0.5, 1e-3, 64};
  const uint32_t offset = kir_scalar_add(m->k, "o", SNT_U32, 0, RANDOM_OFFSET, RANDOM_OFFSET);
  for (uint32_t b = 0; b < RANDOM_BUFFERS; b++) {
    const bool out = b >= F_OUT, moved = b == B_IN || b == S_OUT || b == H_IN;
    const kir_memory g = {.name = names[b],
                          .space = KIR_GLOBAL,
                          .type = kir_t(random_bases[b], 1),
                          .rank = 1,
                          .dims = {out ? 8 * RANDOM_SEGMENT : RANDOM_ELEMENTS},
                          .slot = b,
                          .align = 16,
                          .access = out ? KIR_WRITE : KIR_READ,
                          .offset_scalar = moved ? offset + 1 : 0};
    kir_memory_add(m->k, &g);
  }
  m->cells = declare(m->k, "c", KIR_PRIVATE, kir_t(SNT_F32, 4), 2, 2, KIR_MEM_REGS);
  m->scalars = declare(m->k, "s", KIR_PRIVATE, u32(), 2, 0, KIR_MEM_REGS);
  m->rows = declare(m->k, "r", KIR_PRIVATE, kir_t(SNT_F32, 1), 4, 8, KIR_MEM_ROWS);
  m->shared = declare(m->k, "sh", KIR_LOCAL, kir_t(SNT_F32, 1), 8, 0, 0);
  const kir_memory table = {.name = "t", .space = KIR_CONSTANT, .type = kir_t(SNT_F32, 1), .rank = 1, .dims = {8}, .values = weights};
  m->table = kir_memory_add(m->k, &table);
  m->length = kir_scalar_read(m->k, kir_scalar_add(m->k, "n", SNT_U32, 0, 5, 1));
}

void random_kernel(kir_kernel *k, uint64_t seed, bool with_fma) {
  maker m = {.k = k, .left = 60, .with_fma = with_fma, .with_small_floats = seed % 2};
  state = seed * 0x9e3779b97f4a7c15ull + 1;
  below(2);
  k->items[0] = one_in(2) ? 1 : 4;
  k->mode = SNT_NUMERICS_STRICT;
  declare_all(&m);
  m.id = keep(&m, kir_id(k, KIR_local, 0));
  const uint32_t group = keep(&m, kir_id(k, KIR_group, 0));
  m.base = kir_ix(k, 2, (int64_t[]){RANDOM_SEGMENT, RANDOM_SEGMENT * (int64_t)k->items[0]}, (uint32_t[]){m.id, group}, 0);
  kir_fill(k, m.cells, 0, NULL, constant(&m, kir_t(SNT_F32, 1)));
  kir_fill(k, m.scalars, 0, NULL, lit(&m, 3));
  kir_fill(k, m.rows, 0, NULL, kir_const_float(k, kir_t(SNT_F32, 1), 0.5));
  statements(&m, 0, 60, 0);
  for (uint32_t n = 0; n < 8; n++) store_global(&m);
}

/* ---- running ---- */
void random_inputs(random_buffers *b) {
  static const float special[] = {0, -0.0f, 1e30f, -1e30f, 1e-40f, 65504, 65520, -3e-6f};
  state = 99;
  memset(b, 0, sizeof *b);
  for (uint32_t i = 0; i < RANDOM_ELEMENTS + RANDOM_OFFSET; i++) {
    const double x = one_in(8)    ? (double)special[below(8)]
                     : one_in(40) ? (double)INFINITY
                     : one_in(40) ? (double)NAN
                                  : ((double)below(4000) - 2000) / 16;
    ir_dtype_store(SNT_F32, b->data[F_IN], i, x);
    ir_dtype_store(SNT_F16, b->data[H_IN], i, x);
    ir_dtype_store_int(SNT_U32, b->data[U_IN], i, one_in(3) ? (int64_t)below(10) : (int64_t)below(0x7fffffff) * 5);
    ir_dtype_store_int(SNT_U8, b->data[B_IN], i, below(256));
    ir_dtype_store(SNT_BF16, b->data[G_IN], i, x);
    ir_dtype_store_int(SNT_I16, b->data[S_IN], i, (int64_t)below(65536) - 32768);
    b->data[L_IN][i] = (uint8_t)below(2);
  }
}

const uint32_t random_block[2] = {RANDOM_OFFSET, 5};

uint64_t random_bytes(uint32_t buffer) {
  return (RANDOM_OFFSET + (buffer < F_OUT ? RANDOM_ELEMENTS : 8 * RANDOM_SEGMENT)) * (uint64_t)ir_dtypes[random_bases[buffer]].bytes;
}

snt_result random_run(const kir_kernel *k, random_buffers *b, snt_diag *diag) {
  kir_interp_buffer list[RANDOM_BUFFERS];
  kir_interp_stats stats;
  random_inputs(b);
  for (uint32_t i = 0; i < RANDOM_BUFFERS; i++) list[i] = (kir_interp_buffer){b->data[i], random_bytes(i)};
  const kir_interp_info info = {.kernel = k,
                                .groups = RANDOM_GROUPS,
                                .buffer_count = RANDOM_BUFFERS,
                                .buffers = list,
                                .scalars = random_block,
                                .scalar_bytes = sizeof random_block};
  return kir_interp_run(&info, NULL, &stats, diag);
}

static bool same_element(uint32_t base, const void *a, const void *b, uint32_t i) {
  const uint32_t bytes = ir_dtypes[base].bytes;
  if (!memcmp((const char *)a + i * bytes, (const char *)b + i * bytes, bytes)) return true;
  if (!ir_dtypes[base].is_float) return false;
  const double x = ir_dtype_load((int32_t)base, a, i), y = ir_dtype_load((int32_t)base, b, i);
  return x != x && y != y;
}

bool random_same(const random_buffers *a, const random_buffers *b, char *why, size_t size) {
  for (uint32_t n = F_OUT; n < RANDOM_BUFFERS; n++)
    for (uint32_t i = 0; i < 8 * RANDOM_SEGMENT + RANDOM_OFFSET; i++)
      if (!same_element(random_bases[n], a->data[n], b->data[n], i)) {
        snprintf(why, size, "buffer %u element %u: %g before, %g after", n, i, ir_dtype_load(random_bases[n], a->data[n], i),
                 ir_dtype_load(random_bases[n], b->data[n], i));
        return false;
      }
  return true;
}
