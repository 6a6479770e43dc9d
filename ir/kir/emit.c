/* Emitting instructions into the kernel under construction, and small facts about values, memories and regions that passes ask for. */
#include "ir/kir_pass_private.h"

/* ---- emitting ---- */
uint32_t kir_emit(kir_kernel *k, const kir_inst *like, uint32_t arg_count, const uint32_t *args) {
  return kir_push(k, like, arg_count, args);
}

uint32_t kir_emit_op(kir_kernel *k, kir_op op, kir_type type, uint32_t arg_count, const uint32_t *args) {
  const kir_inst like = {.op = (uint16_t)op, .type = type};
  return kir_emit(k, &like, arg_count, args);
}

uint32_t kir_emit_const(kir_kernel *k, kir_type type, double value) {
  return kir_is_float(type.base) ? kir_const_float(k, type, value) : kir_const_int(k, type, (int64_t)value);
}

IR_COLD uint32_t kir_emit_add(kir_kernel *k, uint32_t index, int64_t constant) {
  if (!constant) return index;
  const kir_type type = kir_type_of(k, index);
  int64_t have;
  if (kir_is_int_const(k, index, &have)) return kir_const_int(k, type, have + constant);
  const kir_inst ix = {.op = KIR_ix, .type = type, .imm.i = constant};
  const uint32_t args[2] = {kir_const_int(k, type, 1), index};
  return kir_emit_folded(k, &ix, 2, args);
}

uint32_t kir_emit_folded(kir_kernel *k, const kir_inst *like, uint32_t arg_count, const uint32_t *args) {
  const uint32_t simpler = kir_simplify(k, like, arg_count, args);
  return simpler ? simpler : kir_emit(k, like, arg_count, args);
}

/* ---- constants ---- */
bool kir_is_float_const(const kir_kernel *k, uint32_t value, double *out) {
  const kir_inst *in = kir_at(k, value);
  if (in->op != KIR_const || !kir_is_float(in->type.base) || in->type.frag) return false;
  *out = in->imm.f;
  return true;
}

/* ---- memories ---- */
uint32_t kir_mem_bytes(const kir_memory *m) { return (uint32_t)m->type.lanes * ir_dtypes[m->type.base].bytes; }

bool kir_may_alias(const kir_kernel *k, uint32_t a, uint32_t b) {
  if (a == b) return true;
  const kir_memory *x = &k->memories.at[a], *y = &k->memories.at[b];
  if (x->space == KIR_GLOBAL && y->space == KIR_GLOBAL) return x->alias && x->alias == y->alias;
  if (x->space != KIR_LOCAL || y->space != KIR_LOCAL) return false;
  const uint32_t base_a = x->overlay ? x->overlay - 1 : a, base_b = y->overlay ? y->overlay - 1 : b;
  return base_a == base_b;
}

bool kir_mem_is_ro(const kir_kernel *k, uint32_t memory) {
  const kir_memory *m = &k->memories.at[memory];
  if (m->space == KIR_CONSTANT) return true;
  if ((m->space != KIR_GLOBAL && m->space != KIR_IMAGE) || m->access != KIR_READ) return false;
  for (uint32_t i = 0; m->alias && i < k->memories.count; i++)
    if (kir_may_alias(k, memory, i) && k->memories.at[i].access != KIR_READ) return false;
  return true;
}

uint32_t kir_written_memory(const kir_inst *in) {
  switch (in->op) {
  case KIR_store:
  case KIR_fill:
  case KIR_mma_store:
  case KIR_tex_store:
  case KIR_async_copy:
  case KIR_atomic_add:
  case KIR_atomic_min:
  case KIR_atomic_max:
  case KIR_atomic_or:
  case KIR_atomic_and:
  case KIR_atomic_cas: return in->index + 1;
  default: return 0;
  }
}

/* ---- trips and multiples ---- */
static bool same_base(const kir_kernel *k, uint32_t lo, uint32_t hi, int64_t *distance) {
  const kir_inst *h = kir_at(k, hi);
  int64_t coef;
  if (h->op != KIR_ix || h->arg_count != 2 || kir_arg(k, hi, 1) != lo || !kir_is_int_const(k, kir_arg(k, hi, 0), &coef) || coef != 1)
    return false;
  *distance = h->imm.i;
  return true;
}

IR_COLD bool kir_trip_count(const kir_kernel *k, uint32_t lo, uint32_t hi, uint32_t step, uint64_t *out) {
  int64_t a, b, s, length;
  if (!kir_is_int_const(k, step, &s) || s <= 0) return false;
  if (lo == hi) length = 0;
  else if (kir_is_int_const(k, lo, &a) && kir_is_int_const(k, hi, &b)) length = b > a ? b - a : 0;
  else if (!same_base(k, lo, hi, &length) || length < 0) return false;
  *out = ((uint64_t)length + (uint64_t)s - 1) / (uint64_t)s;
  return true;
}

enum { MULTIPLE_LIMIT = 1 << 16 };
static uint32_t lowest_bit(int64_t value) {
  const uint64_t low = (uint64_t)value & (0 - (uint64_t)value);
  return !low || low > MULTIPLE_LIMIT ? MULTIPLE_LIMIT : (uint32_t)low;
}
static uint32_t product(uint32_t a, uint32_t b) { return (uint64_t)a * b > MULTIPLE_LIMIT ? MULTIPLE_LIMIT : a * b; }
static uint32_t smaller(uint32_t a, uint32_t b) { return a < b ? a : b; }
static uint32_t larger(uint32_t a, uint32_t b) { return a > b ? a : b; }

static uint32_t sum_multiple(const kir_kernel *k, uint32_t i, const uint32_t *known) {
  uint32_t m = lowest_bit(kir_at(k, i)->imm.i);
  for (uint32_t n = 0; n + 1 < kir_at(k, i)->arg_count; n += 2)
    m = smaller(m, product(known[kir_arg(k, i, n)], known[kir_arg(k, i, n + 1)]));
  return m;
}

static uint32_t multiple(const kir_kernel *k, uint32_t i, const uint32_t *known) {
  const kir_inst *in = kir_at(k, i);
  int64_t amount;
  if (in->type.lanes != 1 || !kir_is_int(in->type.base)) return 1;
  switch (in->op) {
  case KIR_const: return lowest_bit(in->imm.i);
  case KIR_scalar: return k->scalars.at[in->index].multiple_of > 1 ? lowest_bit(k->scalars.at[in->index].multiple_of) : 1;
  case KIR_ix: return sum_multiple(k, i, known);
  case KIR_add:
  case KIR_sub:
  case KIR_min:
  case KIR_max:
  case KIR_or:
  case KIR_xor: return smaller(known[kir_arg(k, i, 0)], known[kir_arg(k, i, 1)]);
  case KIR_loop: return smaller(known[kir_arg(k, i, 0)], known[kir_arg(k, i, 2)]);
  case KIR_select: return smaller(known[kir_arg(k, i, 1)], known[kir_arg(k, i, 2)]);
  case KIR_mul: return product(known[kir_arg(k, i, 0)], known[kir_arg(k, i, 1)]);
  case KIR_and: return larger(known[kir_arg(k, i, 0)], known[kir_arg(k, i, 1)]);
  case KIR_bitcast: return kir_is_int(kir_type_of(k, kir_arg(k, i, 0)).base) ? known[kir_arg(k, i, 0)] : 1;
  case KIR_shl: return kir_is_int_const(k, kir_arg(k, i, 1), &amount) ? product(known[kir_arg(k, i, 0)], 1u << (amount & 15)) : 1;
  default: return 1;
  }
}

uint32_t *kir_find_multiples(const kir_kernel *k, ir_arena *arena) {
  uint32_t *known = IR_NEW_ARRAY(arena, uint32_t, k->insts.count);
  for (uint32_t i = 1; known && i < k->insts.count; i++) known[i] = multiple(k, i, known);
  return known;
}

uint32_t kir_items(const kir_kernel *k) { return k->items[0] * k->items[1] * k->items[2]; }

bool kir_needs_words(const kir_memory *m, const kir_caps *caps) {
  if (m->space != KIR_GLOBAL || m->type.lanes > 1) return false;
  switch (m->type.base) {
  case SNT_F16: return !caps->f16_storage;
  case SNT_BF16: return !caps->bf16_storage;
  case SNT_I8:
  case SNT_U8:
  case SNT_BOOL: return !caps->int8_storage;
  case SNT_I16:
  case SNT_U16: return !caps->int16_storage;
  default: return false;
  }
}

/* ---- regions ---- */
uint32_t *kir_find_depths(const kir_kernel *k, ir_arena *arena) {
  uint32_t *depths = IR_NEW_ARRAY(arena, uint32_t, k->insts.count);
  if (!depths) return NULL;
  uint32_t depth = 0;
  for (uint32_t i = 1; i < k->insts.count; i++) {
    const uint32_t op = kir_at(k, i)->op;
    if (op == KIR_end || op == KIR_else) depth--;
    depths[i] = depth;
    if (op == KIR_loop || op == KIR_if || op == KIR_else) depth++;
    if (op == KIR_loop) depths[i] = depth; /* the variable belongs to the body */
  }
  return depths;
}

bool kir_bits_init(kir_bits_table *t, ir_arena *arena, uint32_t rows, uint32_t width) {
  t->words = (width + 63) / 64;
  t->at = IR_NEW_ARRAY(arena, uint64_t, (size_t)rows * t->words);
  return t->at != NULL;
}

uint32_t kir_number_regions(const kir_kernel *k, uint32_t *row_of) {
  uint32_t count = 0;
  for (uint32_t i = 1; i < k->insts.count; i++) {
    const uint32_t op = kir_at(k, i)->op;
    row_of[i] = op == KIR_loop || op == KIR_if || op == KIR_else ? ++count : 0;
  }
  return count;
}

typedef struct clobbering {
  const kir_kernel *k;
  const kir_regions *r;
  const uint32_t *row_of;
  kir_bits_table *out, written; /* written: the memory itself, in the innermost region */
} clobbering;

static void clobber(clobbering *c, uint32_t at, uint32_t memory) {
  const kir_kernel *k = c->k;
  const uint32_t innermost = c->r->parent[at] ? c->row_of[c->r->parent[at]] : 0;
  if (kir_bits_get(&c->written, innermost, memory)) return;
  kir_bits_set(&c->written, innermost, memory);
  for (uint32_t m = 0; m < k->memories.count; m++) {
    if (!kir_may_alias(k, memory, m)) continue;
    for (uint32_t region = c->r->parent[at];; region = c->r->parent[region]) {
      kir_bits_set(c->out, region ? c->row_of[region] : 0, m);
      if (!region) break;
    }
  }
}

bool kir_find_clobbers(const kir_kernel *k, const kir_regions *r, const uint32_t *row_of, uint32_t rows, ir_arena *arena,
                       kir_bits_table *out) {
  clobbering c = {k, r, row_of, out, {0}};
  if (!kir_bits_init(out, arena, rows + 1, k->memories.count) || !kir_bits_init(&c.written, arena, rows + 1, k->memories.count))
    return false;
  for (uint32_t i = 1; i < k->insts.count; i++) {
    const kir_inst *in = kir_at(k, i);
    const uint32_t written = kir_written_memory(in);
    if (written) clobber(&c, i, written - 1);
    if (in->op != KIR_barrier && in->op != KIR_sg_barrier && in->op != KIR_async_wait) continue;
    for (uint32_t m = 0; m < k->memories.count; m++)
      if (k->memories.at[m].space != KIR_PRIVATE && !kir_mem_is_ro(k, m)) clobber(&c, i, m);
  }
  return true;
}
