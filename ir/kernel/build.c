/* The builder's short forms: one call an instruction, and the structured regions. All go through kir_put. */
#include "ir/kernel_private.h"

enum { MAX_INDICES = 4 };

uint32_t kir_scalar_read(kir_kernel *k, uint32_t scalar) {
  if (k->failed) return 0;
  if (scalar >= k->scalars.count) return kir_mistake(k, "scalar %u does not exist", scalar);
  const kir_inst in = {.op = KIR_scalar, .type = k->scalars.at[scalar].type, .index = scalar};
  return kir_put(k, &in, 0, NULL);
}

uint32_t kir_id(kir_kernel *k, kir_op op, uint32_t dimension) {
  const kir_inst in = {.op = (uint16_t)op, .index = dimension};
  return kir_put(k, &in, 0, NULL);
}

static uint32_t plain(kir_kernel *k, kir_op op, uint32_t count, const uint32_t *args) {
  const kir_inst in = {.op = (uint16_t)op};
  return kir_put(k, &in, count, args);
}

uint32_t kir_1(kir_kernel *k, kir_op op, uint32_t a) { return plain(k, op, 1, &a); }
uint32_t(kir_2)(kir_kernel *k, kir_op op, uint32_t a, uint32_t b) { return plain(k, op, 2, (uint32_t[]){a, b}); }
uint32_t(kir_3)(kir_kernel *k, kir_op op, uint32_t a, uint32_t b, uint32_t c) { return plain(k, op, 3, (uint32_t[]){a, b, c}); }

static uint32_t convert(kir_kernel *k, kir_op op, kir_type to, uint32_t a) {
  if (k->failed) return 0;
  if (!a || a >= k->insts.count) return kir_mistake(k, "%s of %u, which is no value", kir_ops[op].name, a);
  if (kir_type_of(k, a).lanes == 1 && to.lanes > 1) a = kir_splat(k, a, to.lanes);
  if (k->failed || kir_same(kir_type_of(k, a), to)) return a;
  const kir_inst in = {.op = (uint16_t)op, .type = to};
  return kir_put(k, &in, 1, &a);
}

uint32_t kir_cast(kir_kernel *k, kir_type to, uint32_t a) { return convert(k, KIR_cast, to, a); }
uint32_t kir_bitcast(kir_kernel *k, kir_type to, uint32_t a) { return convert(k, KIR_bitcast, to, a); }

/* The type of a sum of indices: u32, or that of a signed or wide value among them. */
static kir_type index_type(const kir_kernel *k, uint32_t count, const uint32_t *values) {
  kir_type type = kir_t(SNT_U32, 1);
  for (uint32_t i = 0; i < count; i++)
    if (values[i] && values[i] < k->insts.count && kir_type_of(k, values[i]).base != SNT_U32) type = kir_element(kir_type_of(k, values[i]));
  return type;
}

uint32_t kir_ix(kir_kernel *k, uint32_t count, const int64_t *coefs, const uint32_t *values, int64_t constant) {
  if (k->failed) return 0;
  uint32_t args[2 * KIR_IX_TERMS];
  if (count > KIR_IX_TERMS) return kir_mistake(k, "ix of %u terms", count);
  const kir_type type = index_type(k, count, values);
  for (uint32_t i = 0; i < count; i++) {
    /* a negative factor of an unsigned value stays readable as a signed literal; the sum is modulo the width either way */
    const kir_type factor = coefs[i] < 0 && type.base == SNT_U32 ? kir_t(SNT_I32, 1) : type;
    args[2 * i] = kir_const_int(k, factor, coefs[i]);
    args[2 * i + 1] = values[i];
  }
  const kir_inst in = {.op = KIR_ix, .type = type, .imm.i = constant};
  return kir_put(k, &in, 2 * count, args);
}

static bool memory_exists(kir_kernel *k, kir_op op, uint32_t memory, uint32_t index_count) {
  if (k->failed) return false;
  if (memory >= k->memories.count) kir_mistake(k, "%s: memory %u does not exist", kir_ops[op].name, memory);
  if (index_count > MAX_INDICES) kir_mistake(k, "%s: %u indices", kir_ops[op].name, index_count);
  return !k->failed;
}

uint32_t kir_load(kir_kernel *k, uint32_t memory, uint32_t lanes, uint32_t index_count, const uint32_t *indices) {
  if (!memory_exists(k, KIR_load, memory, index_count)) return 0;
  const kir_type cell = k->memories.at[memory].type;
  const kir_inst in = {.op = KIR_load, .type = cell.lanes > 1 || cell.frag ? cell : kir_t(cell.base, lanes), .index = memory};
  return kir_put(k, &in, index_count, indices);
}

static uint32_t put_value(kir_kernel *k, kir_op op, uint32_t memory, uint32_t index_count, const uint32_t *indices, uint32_t value) {
  if (!memory_exists(k, op, memory, index_count)) return 0;
  uint32_t args[MAX_INDICES + 1] = {0};
  for (uint32_t i = 0; i < index_count; i++) args[i] = indices[i];
  args[index_count] = value;
  const kir_inst in = {.op = (uint16_t)op, .index = memory};
  return kir_put(k, &in, index_count + 1, args);
}

uint32_t kir_store(kir_kernel *k, uint32_t memory, uint32_t index_count, const uint32_t *indices, uint32_t value) {
  return put_value(k, KIR_store, memory, index_count, indices, value);
}

void kir_fill(kir_kernel *k, uint32_t memory, uint32_t index_count, const uint32_t *indices, uint32_t value) {
  put_value(k, KIR_fill, memory, index_count, indices, value);
}

void kir_barrier(kir_kernel *k, uint32_t spaces) {
  const kir_inst in = {.op = KIR_barrier, .flags = (uint16_t)spaces};
  kir_put(k, &in, 0, NULL);
}

/* ---- regions ---- */
uint32_t kir_loop(kir_kernel *k, uint32_t lo, uint32_t hi, uint32_t step, uint32_t count, const uint32_t *initial, uint32_t *carried,
                  uint32_t flags, uint32_t unroll) {
  for (uint32_t i = 0; carried && i < count; i++) carried[i] = 0; /* after a failure they are asked for their types */
  if (k->failed) return 0;
  if (!lo || lo >= k->insts.count) return kir_mistake(k, "loop from %u, which is no value", lo);
  const kir_type type = kir_type_of(k, lo);
  if (!step) step = kir_const_int(k, type, 1);
  uint32_t *args = IR_NEW_ARRAY(k->arena, uint32_t, 3 + (size_t)count);
  if (!args) return kir_mistake(k, "out of memory");
  args[0] = lo, args[1] = hi, args[2] = step;
  for (uint32_t i = 0; i < count; i++) args[3 + i] = initial[i];
  const kir_inst in = {.op = KIR_loop, .type = type, .flags = (uint16_t)flags, .lanes = (int32_t)unroll};
  const uint32_t loop = kir_put(k, &in, 3 + count, args);
  for (uint32_t i = 0; i < count; i++) {
    const kir_inst carry = {.op = KIR_carry, .type = k->failed ? type : kir_type_of(k, initial[i]), .index = i};
    const uint32_t value = kir_put(k, &carry, 0, NULL);
    if (carried) carried[i] = value;
  }
  return loop;
}

static void yield(kir_kernel *k, uint32_t count, const uint32_t *values) {
  if (count) plain(k, KIR_yield, count, values);
}

static void close_region(kir_kernel *k, uint32_t opened, uint32_t count, const uint32_t *values, uint32_t *results) {
  yield(k, count, values);
  const kir_inst end = {.op = KIR_end, .index = opened};
  kir_put(k, &end, 0, NULL);
  for (uint32_t i = 0; i < count; i++) {
    const kir_inst result = {.op = KIR_result, .type = k->failed ? kir_t(SNT_U32, 1) : kir_type_of(k, values[i]), .index = i};
    const uint32_t value = kir_put(k, &result, 0, NULL);
    if (results) results[i] = value;
  }
}

void kir_loop_end(kir_kernel *k, uint32_t loop, uint32_t count, const uint32_t *next, uint32_t *results) {
  if (!k->failed && (loop >= k->insts.count || kir_at(k, loop)->op != KIR_loop)) kir_mistake(k, "end of %u, which is no loop", loop);
  close_region(k, loop, count, next, results);
}

static void check_if(kir_kernel *k, uint32_t opened) {
  if (!k->failed && (opened >= k->insts.count || kir_at(k, opened)->op != KIR_if))
    kir_mistake(k, "end or else of %u, which is no if", opened);
}

uint32_t kir_if(kir_kernel *k, uint32_t condition) { return plain(k, KIR_if, 1, &condition); }

void kir_else(kir_kernel *k, uint32_t opened, uint32_t count, const uint32_t *values) {
  check_if(k, opened);
  yield(k, count, values);
  const kir_inst in = {.op = KIR_else, .index = opened};
  kir_put(k, &in, 0, NULL);
}

void kir_if_end(kir_kernel *k, uint32_t opened, uint32_t count, const uint32_t *values, uint32_t *results) {
  check_if(k, opened);
  close_region(k, opened, count, values, results);
}

uint32_t kir_lane(kir_kernel *k, uint32_t vector, uint32_t lane) {
  return kir_2(k, KIR_extract, vector, kir_const_int(k, kir_t(SNT_U32, 1), lane));
}
