/* What the passes on kernel IR share: emitting into the new kernel, folding while emitting, facts about values and regions.
   Every pass reads `in`, appends to `out` and allocates its tables in out->arena, which the runner frees after the next pass. */
#ifndef IR_KIR_PASS_PRIVATE_H
#define IR_KIR_PASS_PRIVATE_H
#include "ir/kernel_private.h"
#include "ir/kir_pass.h"

/* ---- the passes, one file each ---- */
#define KIR_PASS(name) snt_result kir_pass_##name(const kir_kernel *in, kir_kernel *out, const kir_caps *caps, snt_diag *diag)
KIR_PASS(own);        /* operators of the user's own: the target's text, or their value in other operations */
KIR_PASS(tables);     /* functions of few bits: a lane of a vector by number */
KIR_PASS(unroll);     /* full and factor-n loops */
KIR_PASS(sroa);       /* private arrays with constant indices become values */
KIR_PASS(fold);       /* constants and exact algebra */
KIR_PASS(cse);        /* equal values once, stores forwarded to loads */
KIR_PASS(licm);       /* loop-invariant values out of loops */
KIR_PASS(dce);        /* what no effect needs */
KIR_PASS(fma);        /* products and the sums that take them, in one operation */
KIR_PASS(pairs);      /* 64-bit integers as two words each, where the device has none */
KIR_PASS(require);    /* names what the target cannot do at all */
KIR_PASS(group);      /* subgroup operations, asynchronous copies, prefetch, stream */
KIR_PASS(memory);     /* fill, strided lanes, texel reads, out-of-bounds zero */
KIR_PASS(align);      /* writes proven alignments on loads and stores */
KIR_PASS(widen);      /* arithmetic on narrow types becomes 32-bit; storage the device lacks becomes whole words */
KIR_PASS(math);       /* transcendental functions */
KIR_PASS(expand);     /* operations the target cannot print */
KIR_PASS(small);      /* f32 below 2^-126 on devices that take it for 0 */
KIR_PASS(split);      /* vectors wider than the target's */
KIR_PASS(neighbours); /* elements beside each other, read one by one: a vector */
KIR_PASS(spread);     /* texels that all lanes would read: a different one each, handed round */
KIR_PASS(address);    /* ix becomes multiplications and additions, division by constants becomes multiplication */

bool kir_has_own(const kir_kernel *, const kir_caps *);
bool kir_has_tables(const kir_kernel *, const kir_caps *); /* and fields of bits */
bool kir_has_arrays(const kir_kernel *, const kir_caps *); /* of an item's own */
bool kir_has_loops(const kir_kernel *, const kir_caps *);
bool kir_has_products(const kir_kernel *, const kir_caps *);      /* that a sum may take, and a device that is fast at it */
bool kir_keeps_fma(const kir_kernel *, const kir_caps *);         /* else it is a product and a sum */
bool kir_has_missing_words(const kir_kernel *, const kir_caps *); /* 64-bit integers that the target lacks */
bool kir_has_group_work(const kir_kernel *, const kir_caps *);
bool kir_has_accesses(const kir_kernel *, const kir_caps *); /* that are no single elements or contiguous vectors inside their memory */
bool kir_has_narrow(const kir_kernel *, const kir_caps *);   /* types that are not 32 or 64 bits wide, and casts that are none */
bool kir_has_math(const kir_kernel *, const kir_caps *);
bool kir_loses_small(const kir_kernel *, const kir_caps *); /* a reproducible kernel for a device that flushes denormals */
bool kir_has_texels(const kir_kernel *, const kir_caps *);  /* and lanes in numbers that are known */
bool kir_joins_neighbours(const kir_kernel *, const kir_caps *);

/* ---- types and constants ---- */
static inline kir_type kir_with_lanes(kir_type t, uint32_t lanes) {
  t.lanes = (uint8_t)lanes;
  return t;
}
static inline kir_type kir_with_base(kir_type t, int32_t base) {
  t.base = (uint8_t)base;
  return t;
}
/* An unsigned integer of at most 32 bits, of which fields can be read. */
static inline bool kir_is_word(kir_type t) { return kir_is_int(t.base) && !kir_is_signed(t.base) && kir_base_bits(t.base) <= 32; }
/* An integer or bool constant. */
static inline bool kir_is_int_const(const kir_kernel *k, uint32_t value, int64_t *out) {
  const kir_inst *in = kir_at(k, value);
  if (in->op != KIR_const || kir_is_float(in->type.base) || in->type.frag) return false;
  *out = in->imm.i;
  return true;
}
bool kir_is_float_const(const kir_kernel *, uint32_t value, double *out);
uint32_t kir_emit_const(kir_kernel *, kir_type, double value); /* `value` must be exact in the type */
uint32_t kir_mem_bytes(const kir_memory *);                    /* of one element */
bool kir_mem_is_ro(const kir_kernel *, uint32_t memory);       /* nothing in the kernel can write its bytes */
bool kir_may_alias(const kir_kernel *, uint32_t memory_a, uint32_t memory_b);

/* a / b or a rem b of 64-bit integers given as their low and high words, as pass pairs needs it. ir/kir/pairs_divide.c */
void kir_divide_words(kir_kernel *, const uint32_t a[2], const uint32_t b[2], bool is_signed, bool remainder, uint32_t out[2]);

/* ---- emitting: appends exactly this, no inference ---- */
uint32_t kir_emit(kir_kernel *, const kir_inst *like, uint32_t arg_count, const uint32_t *args);
uint32_t kir_emit_op(kir_kernel *, kir_op, kir_type, uint32_t arg_count, const uint32_t *args);
uint32_t kir_emit_add(kir_kernel *, uint32_t index, int64_t constant); /* index + constant as an ix; constant 0: index itself */
/* Emits `like` in its simplest exact form, or as it is. */
uint32_t kir_emit_folded(kir_kernel *, const kir_inst *like, uint32_t arg_count, const uint32_t *args);
/* The simplest existing or cheaper value equal to `like`; 0: none. ir/kir/fold_rules.c */
uint32_t kir_simplify(kir_kernel *, const kir_inst *like, uint32_t arg_count, const uint32_t *args);
typedef union kir_value {
  double f;
  int64_t i;
} kir_value;
/* One lane of a pure operation on constants, rounded to `like->type`; false: not folded (also where the result is NaN). ir/kir/fold_eval.c */
bool kir_eval(const kir_inst *like, kir_type operand, const kir_value *args, kir_value *out);

/* ---- the index of a load as terms and a constant. ir/kir/spread.c ---- */
typedef struct kir_index_form {
  const uint32_t *args; /* of an `ix`, or a value */
  uint32_t count;
  int64_t constant;
} kir_index_form;
kir_index_form kir_index_of(const kir_kernel *, uint32_t load);
/* Are both of one type and memory, a constant apart? way: how far `load` lies behind `other`. */
bool kir_lie_apart(const kir_kernel *, uint32_t load, uint32_t other, int64_t *way);

/* ---- the clone's walk over structured regions: folds, splices constant ifs, unrolls when asked ---- */
snt_result kir_rebuild(const kir_kernel *in, kir_kernel *out, bool unroll, snt_diag *);

/* ---- facts ---- */
bool kir_trip_count(const kir_kernel *, uint32_t lo, uint32_t hi, uint32_t step, uint64_t *out);
uint32_t *kir_find_multiples(const kir_kernel *, ir_arena *); /* per value a power of two (up to 2^16) that divides it */
bool kir_needs_words(const kir_memory *, const kir_caps *);   /* the device cannot address its elements: it becomes u32 words */
/* Commutes to the last bit: not the zeros of float min and max. */
static inline bool kir_may_swap(const kir_inst *in) {
  if (!(kir_ops[in->op].flags & KIR_COMM) || in->arg_count != 2) return false;
  return !((in->op == KIR_min || in->op == KIR_max) && kir_is_float(in->type.base));
}
uint32_t kir_items(const kir_kernel *); /* of a workgroup */
static inline uint32_t kir_carries(const kir_kernel *k, uint32_t loop) { return kir_at(k, loop)->arg_count - 3u; }
/* ---- ir/kir/ranges.c: the magnitude (the bits without the sign) lies in lo..hi or is 0; the value is a multiple of 2^grid, infinite or NaN ---- */
typedef struct kir_range {
  uint32_t lo, hi;
  bool zero, sign; /* may be 0; may have its sign bit set */
  uint8_t zeros;   /* so many last bits are 0 */
  int16_t grid;
} kir_range;
enum { KIR_UNBOUNDED = 1000 };
kir_range *kir_find_ranges(const kir_kernel *, ir_arena *); /* of each value of 32 bits */
bool kir_range_absorbs(kir_range);
int32_t kir_range_least(kir_range);            /* the exponent that no value but 0 is below */
int32_t kir_range_most(kir_range);             /* every value is below 2 to it, or KIR_UNBOUNDED */
uint32_t kir_written_memory(const kir_inst *); /* 1 + the memory an instruction writes, 0: none */
/* depth[i]: loops and ifs around each instruction. */
uint32_t *kir_find_depths(const kir_kernel *, ir_arena *);
/* One bit set per region opener (row 0: the whole kernel), of `width` bits. */
typedef struct kir_bits_table {
  uint64_t *at;
  uint32_t words;
} kir_bits_table;
bool kir_bits_init(kir_bits_table *, ir_arena *, uint32_t rows, uint32_t width);
static inline void kir_bits_set(kir_bits_table *t, uint32_t row, uint32_t bit) {
  t->at[(size_t)row * t->words + bit / 64] |= 1ull << (bit % 64);
}
static inline bool kir_bits_get(const kir_bits_table *t, uint32_t row, uint32_t bit) {
  return (t->at[(size_t)row * t->words + bit / 64] >> (bit % 64)) & 1;
}
/* row_of[i]: dense row number (from 1) of opener i, 0 otherwise; returns the count of openers. */
uint32_t kir_number_regions(const kir_kernel *, uint32_t *row_of);
/* Rows by kir_number_regions: the memories that may change inside each region, by this item or, across barriers, by others. */
bool kir_find_clobbers(const kir_kernel *, const kir_regions *, const uint32_t *row_of, uint32_t rows, ir_arena *, kir_bits_table *out);

/* ---- values of 16-bit floats as their bits in u32 lanes; f32 on the other side ---- */
uint32_t kir_f16_to_bits(kir_kernel *, uint32_t f32); /* to nearest even, denormals and NaN kept */
uint32_t kir_f16_from_bits(kir_kernel *, uint32_t u32);
uint32_t kir_bf16_to_bits(kir_kernel *, uint32_t f32);
uint32_t kir_bf16_from_bits(kir_kernel *, uint32_t u32);

snt_result kir_pass_end(kir_kernel *out, const char *pass, snt_diag *);  /* the sticky failure of `out`, if any, as a result */
snt_result kir_pass_stop(kir_kernel *out, const char *pass, snt_diag *); /* the same where a pass cannot go on: never SNT_OK */
snt_result kir_unsupported(const kir_kernel *, const char *pass, uint32_t inst, const char *capability, snt_diag *);
#endif
