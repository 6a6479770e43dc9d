/* widen: 8- and 16-bit integers, bf16, and f16 where the target cannot compute in it, live in 32-bit registers. Integers stay sign- or zero-extended
   after each operation. Floats keep the extra precision between casts and stores unless the mode asks for the same bits everywhere. */
#include "ir/kir/narrow.h"
#include <math.h>

typedef struct widening {
  kir_clone c;
  const kir_caps *caps;
  narrow_storage *storage; /* by memory */
  bool *only_stored;       /* by instruction: a cast to a small float that only rounding stores use */
  bool exact;              /* small floats are rounded after every operation */
} widening;

kir_type narrow_register(kir_type t, const kir_caps *caps) {
  if (t.frag) return t;
  switch (t.base) {
  case SNT_I8:
  case SNT_I16: return kir_with_base(t, SNT_I32);
  case SNT_U8:
  case SNT_U16: return kir_with_base(t, SNT_U32);
  case SNT_F16: return caps->f16_arithmetic ? t : kir_with_base(t, SNT_F32);
  case SNT_BF16: return kir_with_base(t, SNT_F32);
  default: return t;
  }
}

static bool is_narrow_int(uint32_t base) { return base == SNT_I8 || base == SNT_U8 || base == SNT_I16 || base == SNT_U16; }
static bool is_small_float(const widening *w, uint32_t base) { return base == SNT_BF16 || (base == SNT_F16 && !w->caps->f16_arithmetic); }
static kir_type as(kir_type t, int32_t base) { return kir_with_base(t, base); }

/* ---- bits ---- */
static uint32_t masked(kir_kernel *k, uint32_t value, int64_t mask) {
  return kir_2(k, KIR_and, value, kir_const_int(k, kir_type_of(k, value), mask));
}

static uint32_t extended(kir_kernel *k, uint32_t value, uint32_t base) {
  if (k->failed || !is_narrow_int(base)) return value;
  const uint32_t bits = kir_base_bits(base);
  if (!kir_is_signed(base)) return masked(k, value, bits == 8 ? 0xff : 0xffff);
  const uint32_t by = kir_const_int(k, kir_type_of(k, value), 32 - bits);
  return kir_2(k, KIR_shr, kir_2(k, KIR_shl, value, by), by);
}

uint32_t narrow_to_bits(kir_kernel *k, uint32_t value, uint32_t base) {
  if (k->failed) return 0;
  const kir_type t = kir_type_of(k, value), word = as(t, SNT_U32);
  if (base == SNT_F16) return kir_f16_to_bits(k, kir_cast(k, as(t, SNT_F32), value));
  if (base == SNT_BF16) return kir_bf16_to_bits(k, value);
  if (base == SNT_BOOL) return kir_3(k, KIR_select, value, kir_const_int(k, word, 1), kir_const_int(k, word, 0));
  const uint32_t bits = kir_bitcast(k, word, value);
  return kir_is_signed(base) ? masked(k, bits, kir_base_bits(base) == 8 ? 0xff : 0xffff) : bits;
}

uint32_t narrow_from_bits(kir_kernel *k, uint32_t bits, uint32_t base, const kir_caps *caps) {
  if (k->failed) return 0;
  const kir_type t = kir_type_of(k, bits);
  if (base == SNT_F16) return kir_cast(k, narrow_register(as(t, SNT_F16), caps), kir_f16_from_bits(k, bits));
  if (base == SNT_BF16) return kir_bf16_from_bits(k, bits);
  if (base == SNT_BOOL) return kir_2(k, KIR_ne, bits, kir_const_int(k, t, 0));
  return kir_is_signed(base) ? extended(k, kir_bitcast(k, as(t, SNT_I32), bits), base) : bits;
}

static uint32_t rounded(kir_kernel *k, uint32_t value, uint32_t base) {
  return base == SNT_F16 ? kir_f16_from_bits(k, kir_f16_to_bits(k, value)) : kir_bf16_from_bits(k, kir_bf16_to_bits(k, value));
}

/* ---- memory ---- */
static bool can_hold(uint32_t base, const kir_caps *caps) {
  switch (base) {
  case SNT_F16: return caps->f16_storage;
  case SNT_BF16: return caps->bf16_storage;
  case SNT_I16:
  case SNT_U16: return caps->int16_storage;
  default: return caps->int8_storage;
  }
}

/* What a kernel does with a memory: copies and fragments take it as it is; something else than whole words stored. */
typedef struct uses_of_memory {
  bool raw, parts;
} uses_of_memory;

/* Items that read texels are lanes of a processor, which store a vector's bytes one by one. */
static bool is_stored_by_words(const kir_memory *m, const kir_caps *caps, uses_of_memory uses) {
  return caps->texel && m->space == KIR_GLOBAL && m->type.lanes == 1 && ir_dtypes[m->type.base].bytes == 1 && !uses.parts;
}

static narrow_storage storage_of(const kir_memory *m, const kir_caps *caps, uses_of_memory uses) {
  const bool boolean = m->type.base == SNT_BOOL;
  if (m->space == KIR_IMAGE || m->type.frag || uses.raw || (!boolean && kir_same(narrow_register(m->type, caps), m->type)))
    return NARROW_PLAIN;
  if (kir_needs_words(m, caps) || is_stored_by_words(m, caps, uses)) return NARROW_WORDS;
  if (m->space == KIR_GLOBAL) return boolean ? NARROW_BYTES : NARROW_PLAIN;
  const bool shared = m->space == KIR_SCRATCH || ((m->space == KIR_LOCAL || m->space == KIR_PRIVATE) && caps->narrow_local);
  if (!shared || !can_hold(m->type.base, caps)) return NARROW_CELLS;
  return boolean ? NARROW_BYTES : NARROW_PLAIN;
}

static void declare(kir_kernel *out, uint32_t memory, narrow_storage storage, const kir_caps *caps) {
  kir_memory *m = &out->memories.at[memory];
  if (storage == NARROW_WORDS) narrow_declare_words(out, memory);
  if (storage == NARROW_BYTES) m->view = m->space == KIR_GLOBAL ? SNT_BOOL : 0, m->type = as(m->type, SNT_U8);
  if (storage == NARROW_CELLS) m->overlay = 0; /* it has outgrown the bytes it shared */
  if (storage == NARROW_CELLS) m->type = m->type.base == SNT_BOOL ? as(m->type, SNT_U32) : narrow_register(m->type, caps);
}

/* Element offset of a words memory, which counts from the buffer's start. */
static uint32_t absolute(widening *w, uint32_t memory, uint32_t index) {
  kir_kernel *out = w->c.out;
  const uint32_t scalar = w->c.in->memories.at[memory].offset_scalar;
  if (!scalar || out->failed) return index;
  const kir_type t = kir_type_of(out, index);
  return kir_2(out, KIR_add, index, kir_cast(out, t, kir_scalar_read(out, scalar - 1)));
}

static narrow_access access_of(widening *w, uint32_t i, uint32_t lanes) {
  const kir_inst *in = kir_at(w->c.in, i);
  const uint32_t index = absolute(w, in->index, w->c.map[kir_arg(w->c.in, i, 0)]);
  return (narrow_access){.memory = in->index,
                         .base = w->c.in->memories.at[in->index].type.base,
                         .lanes = lanes,
                         .align = in->align,
                         .index = index,
                         .flags = in->flags};
}

static uint32_t load(widening *w, uint32_t i) {
  const kir_inst *in = kir_at(w->c.in, i);
  kir_kernel *out = w->c.out;
  const narrow_storage storage = w->storage[in->index];
  const kir_type wanted = narrow_register(in->type, w->caps);
  if (storage == NARROW_WORDS) {
    const narrow_access a = access_of(w, i, in->type.lanes);
    return narrow_load_words(out, &a, w->caps);
  }
  const uint32_t raw = kir_clone_inst(&w->c, i);
  if (out->failed) return 0;
  kir_inst *made = kir_at(out, raw);
  if (storage == NARROW_CELLS) made->align = 0;
  made->type = kir_with_lanes(out->memories.at[in->index].type, in->type.lanes);
  if (in->type.base != SNT_BOOL) return kir_cast(out, wanted, raw);
  return narrow_from_bits(out, kir_cast(out, as(in->type, SNT_U32), raw), SNT_BOOL, w->caps);
}

/* The value as the memory's own element type. */
static uint32_t storable(widening *w, uint32_t memory, uint32_t old, uint32_t value) {
  kir_kernel *out = w->c.out;
  if (out->failed) return 0;
  const kir_type element = out->memories.at[memory].type, have = kir_type_of(out, value);
  if (element.frag) return value;
  if (w->storage[memory] == NARROW_PLAIN && kir_same(kir_type_of(w->c.in, old), have)) return value;
  if (have.base == SNT_BOOL) value = narrow_to_bits(out, value, SNT_BOOL);
  const kir_inst *source = kir_at(w->c.in, old);
  const uint16_t flags = source->op == KIR_cast && w->only_stored[old] ? source->flags : 0; /* the rounding its cast asked for */
  const kir_inst cast = {.op = KIR_cast, .type = as(have, element.base), .flags = flags};
  return kir_same(kir_type_of(out, value), cast.type) ? value : kir_put(out, &cast, 1, &value);
}

static void store(widening *w, uint32_t i) {
  const kir_inst *in = kir_at(w->c.in, i);
  kir_kernel *out = w->c.out;
  const uint32_t count = kir_index_count(in), old = kir_arg(w->c.in, i, count), value = w->c.map[old];
  if (w->storage[in->index] == NARROW_WORDS) {
    const narrow_access a = access_of(w, i, kir_type_of(w->c.in, old).lanes);
    narrow_store_words(out, &a, value);
    return;
  }
  const uint32_t stored = storable(w, in->index, old, value);
  kir_clone_inst(&w->c, i);
  if (out->failed) return;
  kir_inst *made = kir_at(out, out->insts.count - 1);
  out->args.at[made->args + count] = stored;
  if (w->storage[in->index] == NARROW_CELLS) made->align = 0;
  if (in->op == KIR_store) made->type = kir_type_of(out, stored);
}

static void prefetch(widening *w, uint32_t i) {
  kir_kernel *out = w->c.out;
  const kir_inst *in = kir_at(w->c.in, i);
  const uint32_t bytes = ir_dtypes[w->c.in->memories.at[in->index].type.base].bytes;
  const uint32_t index = absolute(w, in->index, w->c.map[kir_arg(w->c.in, i, 0)]);
  const uint32_t word = kir_2(out, KIR_shr, index, kir_const_like(out, index, bytes == 1 ? 2 : 1));
  if (!out->failed) kir_emit(out, in, 1, &word);
}

/* ---- casts ---- */
static uint32_t clamped(kir_kernel *k, uint32_t value, uint32_t base) {
  const kir_type t = kir_type_of(k, value);
  const int64_t top = (1ll << (kir_base_bits(base) - kir_is_signed(base))) - 1;
  if (kir_is_signed(t.base)) value = kir_2(k, KIR_max, value, kir_const_int(k, t, kir_is_signed(base) ? -top - 1 : 0));
  return kir_2(k, KIR_min, value, kir_const_int(k, t, top));
}

static uint32_t plain_cast(widening *w, uint32_t value, kir_type to, uint16_t flags) {
  const kir_inst cast = {.op = KIR_cast, .type = to, .flags = flags};
  return kir_same(kir_type_of(w->c.out, value), to) ? value : kir_put(w->c.out, &cast, 1, &value);
}

static uint32_t cast_to_int(widening *w, const kir_inst *in, uint32_t value, kir_type from) {
  kir_kernel *out = w->c.out;
  const kir_type to = narrow_register(in->type, w->caps), have = kir_type_of(out, value);
  if (kir_is_float(from.base)) return clamped(out, plain_cast(w, value, to, in->flags), in->type.base);
  if (in->flags & KIR_SAT) {
    /* clamp on the wide side; an unsigned source has no lower end, and a wide unsigned one must not turn negative first */
    const uint32_t inside = clamped(out, value, in->type.base);
    return plain_cast(w, inside, to, 0);
  }
  return extended(out, plain_cast(w, value, kir_same(have, to) ? have : to, 0), in->type.base);
}

/* Is a value of `k` whole, or infinite or NaN, by what it is made of? */
static bool is_whole(const kir_kernel *k, uint32_t value, uint32_t depth) {
  const kir_inst *in = kir_at(k, value);
  double number;
  if (kir_is_const(k, value, NULL, &number)) return number == rint(number);
  switch (in->op) {
  case KIR_rint:
  case KIR_floor:
  case KIR_ceil:
  case KIR_trunc: return true;
  case KIR_cast: return kir_is_int(kir_type_of(k, kir_arg(k, value, 0)).base);
  case KIR_splat: return depth && is_whole(k, kir_arg(k, value, 0), depth - 1);
  case KIR_add:
  case KIR_sub: return depth && is_whole(k, kir_arg(k, value, 0), depth - 1) && is_whole(k, kir_arg(k, value, 1), depth - 1);
  default: return false;
  }
}

/* A float as one that has been a narrow integer (quantised, and back): truncated, NaN 0, within the integer's ends; no conversion, no negative zero. 0: it was
   made in another way. */
static uint32_t as_narrow(widening *w, uint32_t narrow) {
  enum { DEPTH = 4 };
  const kir_kernel *in = w->c.in;
  kir_kernel *out = w->c.out;
  const kir_inst *cast = kir_at(in, narrow);
  const uint32_t source = cast->op == KIR_cast ? kir_arg(in, narrow, 0) : 0;
  if (!source || kir_type_of(in, source).base != SNT_F32 || (cast->flags & ~(uint32_t)KIR_SAT) != KIR_ROUND_NONE || w->caps->nan_unsafe)
    return 0;
  const bool is_signed = kir_is_signed(cast->type.base);
  const double top = (double)((1ll << (kir_base_bits(cast->type.base) - is_signed)) - 1);
  uint32_t value = w->c.map[source];
  const uint32_t zero = kir_const_like(out, value, 0), least = is_signed ? kir_const_like(out, value, -top - 1) : zero,
                 most = kir_const_like(out, value, top);
  if (!is_whole(in, source, DEPTH)) value = kir_1(out, KIR_trunc, value);
  if (is_signed) value = kir_3(out, KIR_select, kir_2(out, KIR_gt, kir_1(out, KIR_abs, value), zero), value, zero);
  value = kir_3(out, KIR_select, kir_2(out, KIR_gt, value, least), value, least);
  return kir_3(out, KIR_select, kir_2(out, KIR_lt, value, most), value, most);
}

/* A whole number of less than 2^22 is in the low bits of its sum with 3 2^22. */
static uint32_t bits_of_whole(widening *w, uint32_t value, kir_type to) {
  kir_kernel *out = w->c.out;
  const uint32_t sum = kir_2(out, KIR_add, value, kir_const_like(out, value, 12582912.0)), bits = kir_bitcast(out, to, sum);
  return kir_2(out, KIR_sub, bits, kir_const_like(out, bits, (double)0x4b400000));
}

static uint32_t cast(widening *w, uint32_t i) {
  const kir_inst *in = kir_at(w->c.in, i);
  kir_kernel *out = w->c.out;
  const uint32_t old = kir_arg(w->c.in, i, 0), value = w->c.map[old];
  const kir_type from = kir_type_of(w->c.in, old), to = in->type;
  if (out->failed) return 0;
  const uint32_t whole = to.base == SNT_F32 && is_narrow_int(from.base) ? as_narrow(w, old) : 0;
  if (whole) return whole;
  const uint32_t within = is_narrow_int(to.base) ? as_narrow(w, i) : 0;
  if (within) return bits_of_whole(w, within, narrow_register(to, w->caps));
  if (is_narrow_int(to.base)) return cast_to_int(w, in, value, from);
  if (!is_small_float(w, to.base)) return plain_cast(w, value, to, in->flags);
  const uint32_t wide = plain_cast(w, value, as(to, SNT_F32), 0);
  if (from.base == to.base || w->only_stored[i]) return wide;
  if ((in->flags & ~(uint32_t)KIR_SAT) > KIR_ROUND_RNE)
    return kir_mistake(out, "a small float that is not rounded to nearest must be stored at once");
  return rounded(out, wide, to.base);
}

static uint32_t bitcast(widening *w, uint32_t i) {
  const kir_inst *in = kir_at(w->c.in, i);
  const uint32_t old = kir_arg(w->c.in, i, 0), from = kir_type_of(w->c.in, old).base;
  if (kir_base_bits(from) > 16) return kir_clone_inst(&w->c, i);
  return narrow_from_bits(w->c.out, narrow_to_bits(w->c.out, w->c.map[old], from), in->type.base, w->caps);
}

/* ---- arithmetic ---- */
enum { WRAPS = 1, ROUNDS = 2 }; /* the result may leave the narrow type's values */
// clang-format off
static const uint8_t leaves[KIR_OP_COUNT] = {
    [KIR_add] = WRAPS | ROUNDS, [KIR_sub] = WRAPS | ROUNDS, [KIR_mul] = WRAPS | ROUNDS, [KIR_neg] = WRAPS, [KIR_abs] = WRAPS, [KIR_shl] = WRAPS,
    [KIR_not] = WRAPS, [KIR_div] = WRAPS | ROUNDS, [KIR_fma] = ROUNDS, [KIR_sqrt] = ROUNDS, [KIR_rcp] = ROUNDS, [KIR_rsqrt] = ROUNDS,
    [KIR_hred_add] = WRAPS | ROUNDS, [KIR_hred_mul] = WRAPS | ROUNDS, [KIR_sg_add] = WRAPS | ROUNDS,
};
// clang-format on
static uint8_t leaves_by(uint16_t op) { return (kir_ops[op].attrs & KA_MATH) ? ROUNDS : leaves[op]; }

/* The operation on registers, then back into the narrow type's values. */
static uint32_t settled(widening *w, const kir_inst *in, uint32_t made) {
  kir_kernel *out = w->c.out;
  if (out->failed) return 0;
  kir_at(out, made)->type = narrow_register(in->type, w->caps);
  if (is_narrow_int(in->type.base)) {
    if (in->op == KIR_clz) return kir_2(out, KIR_sub, made, kir_const_like(out, made, 32.0 - kir_base_bits(in->type.base)));
    return (leaves_by(in->op) & WRAPS) ? extended(out, made, in->type.base) : made;
  }
  if (is_small_float(w, in->type.base) && w->exact && (leaves_by(in->op) & ROUNDS)) return rounded(out, made, in->type.base);
  return made;
}

static uint32_t arithmetic(widening *w, uint32_t i) { return settled(w, kir_at(w->c.in, i), kir_clone_inst(&w->c, i)); }

/* Operands that 32-bit operations would read differently: shift amounts, and sign bits that are counted. */
static uint32_t bitwise(widening *w, uint32_t i) {
  kir_kernel *out = w->c.out;
  const kir_inst *in = kir_at(w->c.in, i);
  const uint32_t base = in->type.base;
  if (!is_narrow_int(base)) return arithmetic(w, i);
  const bool shift = in->op == KIR_shl || in->op == KIR_shr;
  const uint32_t first = w->c.map[kir_arg(w->c.in, i, 0)];
  if (!shift) return settled(w, in, kir_emit(out, in, 1, (uint32_t[]){masked(out, first, kir_base_bits(base) == 8 ? 0xff : 0xffff)}));
  const uint32_t amount = masked(out, w->c.map[kir_arg(w->c.in, i, 1)], kir_base_bits(base) - 1);
  return settled(w, in, kir_emit(out, in, 2, (uint32_t[]){first, amount}));
}

static bool changes_memory(const widening *w, const kir_inst *in) {
  if (w->storage[in->index] != NARROW_PLAIN) return true;
  const kir_type t = w->c.in->memories.at[in->index].type;
  return !kir_same(narrow_register(t, w->caps), t);
}

static void visit(widening *w, uint32_t i) {
  const kir_inst *in = kir_at(w->c.in, i);
  uint32_t *map = &w->c.map[i];
  switch (in->op) {
  case KIR_load: *map = changes_memory(w, in) ? load(w, i) : kir_clone_inst(&w->c, i); break;
  case KIR_store:
  case KIR_fill:
    if (changes_memory(w, in)) store(w, i);
    else kir_clone_inst(&w->c, i);
    break;
  case KIR_prefetch:
    if (w->storage[in->index] == NARROW_WORDS) prefetch(w, i);
    else kir_clone_inst(&w->c, i);
    break;
  case KIR_scalar: *map = kir_cast(w->c.out, narrow_register(in->type, w->caps), kir_clone_inst(&w->c, i)); break;
  case KIR_cast: *map = cast(w, i); break;
  case KIR_bitcast: *map = bitcast(w, i); break;
  case KIR_shl:
  case KIR_shr:
  case KIR_popcount:
  case KIR_clz: *map = bitwise(w, i); break;
  default: *map = arithmetic(w, i); break;
  }
}

/* ---- what must be known before ---- */
/* A cast may leave its rounding to the stores if they all convert to the same type. */
static void find_stored_casts(widening *w) {
  const kir_kernel *in = w->c.in;
  for (uint32_t i = 1; i < in->insts.count; i++) w->only_stored[i] = kir_at(in, i)->op == KIR_cast;
  for (uint32_t i = 1; i < in->insts.count; i++) {
    const kir_inst *user = kir_at(in, i);
    const bool store = user->op == KIR_store && w->storage[user->index] != NARROW_CELLS;
    for (uint32_t n = 0; n < user->arg_count; n++) {
      const uint32_t value = kir_arg(in, i, n);
      const bool plain_words = store && (w->storage[user->index] != NARROW_WORDS ||
                                         (kir_at(in, value)->flags & ~(uint32_t)KIR_SAT) <= KIR_ROUND_RNE);
      if (!plain_words || n + 1 != user->arg_count) w->only_stored[value] = false;
    }
  }
}

static void choose_storage(widening *w, uses_of_memory *uses) {
  const kir_kernel *in = w->c.in;
  for (uint32_t i = 1; i < in->insts.count; i++) {
    const kir_inst *user = kir_at(in, i);
    if (user->op == KIR_async_copy) uses[user->index].raw = uses[user->index2].raw = true;
    if (user->op == KIR_mma_load || user->op == KIR_mma_store) uses[user->index].raw = true;
    const bool words = user->op == KIR_store && user->type.lanes % 4 == 0 && user->align >= 4;
    if ((kir_ops[user->op].flags & KIR_MEM) && !words) uses[user->index].parts = true;
  }
  for (uint32_t m = 0; m < in->memories.count; m++) {
    w->storage[m] = storage_of(&in->memories.at[m], w->caps, uses[m]);
    declare(w->c.out, m, w->storage[m], w->caps);
  }
}

static bool is_narrow(uint32_t base) { return is_narrow_int(base) || base == SNT_F16 || base == SNT_BF16; }

bool kir_has_narrow(const kir_kernel *k, const kir_caps *caps) {
  (void)caps;
  bool found = false;
  for (uint32_t m = 0; m < k->memories.count; m++)
    found |= is_narrow(k->memories.at[m].type.base) || k->memories.at[m].type.base == SNT_BOOL;
  for (uint32_t i = 1; i < k->insts.count && !found; i++) {
    const kir_inst *in = kir_at(k, i);
    found = is_narrow(in->type.base);
    if (in->op != KIR_cast && in->op != KIR_bitcast) continue;
    const kir_type from = kir_type_of(k, kir_arg(k, i, 0));
    found |= in->op == KIR_cast ? kir_same(from, in->type) : kir_base_bits(from.base) <= 16;
  }
  return found;
}

snt_result kir_pass_widen(const kir_kernel *in, kir_kernel *out, const kir_caps *caps, snt_diag *diag) {
  widening w = {.caps = caps, .exact = in->mode == SNT_NUMERICS_STRICT || in->mode == SNT_NUMERICS_REPRODUCIBLE};
  SNT_TRY(kir_clone_begin(&w.c, in, out));
  w.storage = IR_NEW_ARRAY(out->arena, narrow_storage, in->memories.count + 1u);
  w.only_stored = IR_NEW_ARRAY(out->arena, bool, in->insts.count);
  uses_of_memory *uses = IR_NEW_ARRAY(out->arena, uses_of_memory, in->memories.count + 1u);
  if (!w.storage || !w.only_stored || !uses) return kir_pass_stop(out, "widen", diag);
  choose_storage(&w, uses);
  find_stored_casts(&w);
  for (uint32_t i = 1; i < in->insts.count && !out->failed; i++) visit(&w, i);
  return kir_pass_end(out, "widen", diag);
}
