/* What the files behind ir/kernel.h share: typing, rounding and error helpers. Not for other folders. */
#ifndef IR_KERNEL_PRIVATE_H
#define IR_KERNEL_PRIVATE_H
#include "ir/kernel.h"

/* Sticks the first mistake; always returns 0, the id of no value. */
uint32_t kir_mistake(kir_kernel *, const char *format, ...) IR_PRINTF(2, 3);

static inline bool kir_is_float(uint32_t base) { return base >= SNT_F32 && base <= SNT_F64; }
static inline bool kir_is_int(uint32_t base) { return base >= SNT_I8 && base <= SNT_U64; }
static inline bool kir_is_signed(uint32_t base) { return base >= SNT_I8 && base <= SNT_I64; }
static inline kir_type kir_element(kir_type t) { return kir_t(t.base, 1); }
static inline kir_type kir_type_of(const kir_kernel *k, uint32_t value) { return k->insts.at[value].type; }
static inline bool kir_has_value(uint32_t op) { return op < KIR_OP_COUNT && kir_ops[op].result != KIR_R_NONE; }
/* Room for an instruction of `args` operands, which may then be written in place. */
static inline bool kir_room(kir_kernel *k, uint32_t args) {
  while (k->args.capacity - k->args.count < args)
    if (!ir_vec_grow(k->arena, &k->args, sizeof *k->args.at)) return false;
  return k->insts.count < k->insts.capacity || ir_vec_grow(k->arena, &k->insts, sizeof *k->insts.at);
}
/* From here on a pure instruction equal to one shortly before it, in the same region, is that one. Passes that spell addresses and vectors out make most
   of theirs several times over, and all that follow would handle each until pass cse. */
void kir_share(kir_kernel *);
/* As it is, unchecked. What moves is not freed: `in` and `args` may lie in the kernel. 0: out of memory. */
uint32_t kir_push(kir_kernel *, const kir_inst *in, uint32_t count, const uint32_t *args);
bool kir_type_valid(kir_type);
uint32_t kir_base_bits(uint32_t base);

/* Every operand has one type, vectors lane by lane. */
bool kir_is_elementwise(uint32_t op);
/* The operation names a memory in `index`. */
bool kir_names_memory(uint32_t op);
/* Operands of a memory operation that are indices: the leading ones. */
uint32_t kir_index_count(const kir_inst *);
/* Type of an image's texel as tex.load gives it. */
kir_type kir_texel_type(const kir_memory *);

/* Result type by the table's rule; lanes 0 where the instruction must state it and has not. */
kir_type kir_result_type(const kir_kernel *, const kir_inst *, const uint32_t *args);
/* Null, or what is wrong with the types of an instruction whose operands are values. */
const char *kir_type_error(const kir_kernel *, const kir_inst *, const uint32_t *args);

/* Rounds to the values a float type has; `mode` KIR_ROUND_*, NONE: to nearest even. */
double kir_round_float(uint32_t base, double, uint32_t mode);
/* Wraps to an integer type's width; bool becomes 0 or 1. */
int64_t kir_wrap_int(uint32_t base, int64_t);
double kir_lowest(uint32_t base); /* of a float type */
#endif
