/* Typing of kernel instructions: result types by the table's rule, and what each operation asks of its operands.
   The builder and the verifier use the same functions, so that a kernel that was built without a mistake has no type errors. */
#include "ir/kernel_private.h"
#include "ir/kir_pass.h"
#include <math.h>

enum { /* the table writes flags and attributes without the prefix */
       NONE = KIR_R_NONE,
       PURE = KIR_PURE,
       COMM = KIR_COMM,
       EFFECT = KIR_EFFECT,
       REGION = KIR_REGION,
       MEM = KIR_MEM,
       FLOAT = KIR_FLOAT,
       INT = KIR_INT,
       GIVEN = KIR_GIVEN,
       VAR = KIR_VAR
};
const kir_op_info kir_ops[KIR_OP_COUNT] = {
    [KIR_NONE] = {"none", 0, NONE, 0, 0},
#define KOP(name, text, args, result, flags, attrs) [KIR_##name] = {text, args, KIR_R_##result, flags, attrs},
#include "ir/kernel_ops.def"
#undef KOP
};

bool kir_type_valid(kir_type t) {
  const bool lanes = t.lanes == 1 || t.lanes == 2 || t.lanes == 3 || t.lanes == 4 || t.lanes == 8 || t.lanes == 16;
  if (t.base < SNT_F32 || t.base > SNT_BOOL || t.frag > 3) return false;
  return t.frag ? t.lanes == 1 && t.base != SNT_BOOL : lanes;
}

uint32_t kir_base_bits(uint32_t base) {
  static const uint8_t bits[SNT_DTYPE_COUNT] = {
      [SNT_F32] = 32, [SNT_F16] = 16, [SNT_BF16] = 16, [SNT_F64] = 64, [SNT_I8] = 8,   [SNT_I16] = 16, [SNT_I32] = 32,
      [SNT_I64] = 64, [SNT_U8] = 8,   [SNT_U16] = 16,  [SNT_U32] = 32, [SNT_U64] = 64, [SNT_BOOL] = 8};
  return base < SNT_DTYPE_COUNT ? bits[base] : 0;
}

static bool is_subgroup(uint32_t op) { return op == KIR_sg_add || op == KIR_sg_max || op == KIR_sg_min || op == KIR_sg_shuffle; }

bool kir_is_elementwise(uint32_t op) {
  if (op >= KIR_OP_COUNT) return false;
  if (op >= KIR_OP_COUNT) return false;
  const uint8_t rule = kir_ops[op].result;
  return (rule == KIR_R_ARG0 || rule == KIR_R_BOOLS) && op != KIR_insert && op != KIR_permute && !is_subgroup(op);
}

bool kir_names_memory(uint32_t op) { return (kir_ops[op].flags & KIR_MEM) || op == KIR_async_copy; }

uint32_t kir_index_count(const kir_inst *in) {
  switch (in->op) {
  case KIR_store:
  case KIR_fill:
  case KIR_mma_store: return in->arg_count ? in->arg_count - 1u : 0;
  case KIR_atomic_add:
  case KIR_atomic_min:
  case KIR_atomic_max:
  case KIR_atomic_or:
  case KIR_atomic_and: return in->arg_count ? in->arg_count - 1u : 0;
  case KIR_atomic_cas: return in->arg_count >= 2 ? in->arg_count - 2u : 0;
  case KIR_load:
  case KIR_prefetch:
  case KIR_mma_load: return in->arg_count;
  case KIR_async_copy: return in->arg_count ? in->arg_count - 1u : 0;
  default: return 0;
  }
}

kir_type kir_texel_type(const kir_memory *image) {
  const char *end = memchr(image->format, 0, sizeof image->format);
  const bool integer = end && end - image->format > 2 && end[-2] == 'u' && end[-1] == 'i';
  return kir_t(integer ? SNT_U32 : SNT_F32, 4);
}

/* ---- result types ---- */
static kir_type own_type(const kir_kernel *k, const kir_inst *in, const uint32_t *args) {
  if (in->type.lanes) return in->type;
  const kir_memory *m = kir_names_memory(in->op) && in->index < k->memories.count ? &k->memories.at[in->index] : NULL;
  switch (in->op) {
  case KIR_load:
  case KIR_atomic_add:
  case KIR_atomic_min:
  case KIR_atomic_max:
  case KIR_atomic_or:
  case KIR_atomic_and:
  case KIR_atomic_cas: return m ? m->type : in->type;
  case KIR_tex_sample:
  case KIR_tex_load: return m ? kir_texel_type(m) : in->type;
  case KIR_vec: return in->arg_count ? kir_t(kir_type_of(k, args[0]).base, in->arg_count) : in->type;
  case KIR_shuffle: return in->arg_count > 2 ? kir_t(kir_type_of(k, args[0]).base, in->arg_count - 2u) : in->type;
  case KIR_unpack2: return kir_t(SNT_F32, 2);
  case KIR_mma: return kir_type_of(k, args[2]);
  case KIR_ix: return kir_t(SNT_U32, 1);
  case KIR_scalar: return in->index < k->scalars.count ? k->scalars.at[in->index].type : in->type;
  default: return in->type;
  }
}

kir_type kir_result_type(const kir_kernel *k, const kir_inst *in, const uint32_t *args) {
  if (in->op == KIR_store) return in->arg_count ? kir_type_of(k, args[in->arg_count - 1]) : in->type;
  switch (kir_ops[in->op].result) {
  case KIR_R_ARG0: return kir_type_of(k, args[0]);
  case KIR_R_ARG1: return kir_type_of(k, args[1]);
  case KIR_R_BOOLS: return kir_t(SNT_BOOL, kir_type_of(k, args[0]).lanes);
  case KIR_R_ELEM: return kir_element(kir_type_of(k, args[0]));
  case KIR_R_U32: return kir_t(SNT_U32, 1);
  case KIR_R_SELF: return own_type(k, in, args);
  default: return kir_t(0, 0);
  }
}

/* ---- operand checks: null or what is wrong ---- */
static kir_type arg_type(const kir_kernel *k, const uint32_t *args, uint32_t n) { return kir_type_of(k, args[n]); }
static bool is_plain(kir_type t, uint32_t base, uint32_t lanes) { return t.base == base && t.lanes == lanes && !t.frag; }
static bool is_index(kir_type t) {
  return t.lanes == 1 && !t.frag && (t.base == SNT_U32 || t.base == SNT_I32 || t.base == SNT_U64 || t.base == SNT_I64);
}

static const char *check_class(uint32_t op, kir_type t) {
  if (t.frag && (op != KIR_mul || t.frag != 3 || t.base != SNT_F32)) return "an operand is a matrix fragment";
  if ((kir_ops[op].flags & KIR_FLOAT) && !kir_is_float(t.base)) return "the operands must be floats";
  if ((kir_ops[op].flags & KIR_INT) && !kir_is_int(t.base)) return "the operands must be integers";
  switch (op) {
  case KIR_and:
  case KIR_or:
  case KIR_xor:
  case KIR_not: return kir_is_float(t.base) ? "the operands must be integers or bool" : NULL;
  case KIR_eq:
  case KIR_ne: return NULL;
  case KIR_udiv:
  case KIR_umod:
  case KIR_wrap: return t.base == SNT_U32 || t.base == SNT_U64 ? NULL : "the operands must be u32 or u64";
  case KIR_mulhi: return t.base == SNT_U32 ? NULL : "the operands must be u32";
  case KIR_dot4: return t.base == SNT_I32 ? NULL : "the operands must be i32";
  default: return t.base == SNT_BOOL ? "the operands may not be bool" : NULL;
  }
}

static const char *check_elementwise(const kir_kernel *k, const kir_inst *in, const uint32_t *args) {
  const kir_type t = arg_type(k, args, 0);
  for (uint32_t i = 1; i < in->arg_count; i++)
    if (!kir_same(arg_type(k, args, i), t)) return "the operands have different types";
  return check_class(in->op, t);
}

static const char *check_select(const kir_kernel *k, const uint32_t *args) {
  const kir_type condition = arg_type(k, args, 0), t = arg_type(k, args, 1);
  if (condition.base != SNT_BOOL) return "the condition must be bool";
  if (!kir_same(t, arg_type(k, args, 2))) return "the alternatives have different types";
  if (t.frag) return "an operand is a matrix fragment";
  return condition.lanes == 1 || condition.lanes == t.lanes ? NULL : "the condition has another width";
}

static const char *check_ix(const kir_kernel *k, const kir_inst *in, const uint32_t *args) {
  if (!is_index(in->type)) return "the result must be a 32- or 64-bit integer";
  if (in->arg_count % 2) return "operands come in pairs of factor and value";
  const uint32_t width = kir_base_bits(in->type.base);
  for (uint32_t i = 0; i < in->arg_count; i++) {
    if (!is_index(arg_type(k, args, i)) || kir_base_bits(arg_type(k, args, i).base) != width)
      return "terms must be integers of the result's width";
    const uint32_t op = kir_at(k, args[i])->op;
    if (i % 2 == 0 && op != KIR_const && op != KIR_scalar) return "a factor must be a literal or a scalar parameter";
  }
  return NULL;
}

static const char *check_convert(const kir_kernel *k, const kir_inst *in, const uint32_t *args) {
  const kir_type from = arg_type(k, args, 0), to = in->type;
  if (from.frag || to.frag) return "an operand is a matrix fragment";
  if (from.lanes != to.lanes) return "the widths differ";
  if (in->op == KIR_cast) return (in->flags & ~(uint32_t)KIR_SAT) > KIR_ROUND_RTN ? "no such rounding" : NULL;
  if (from.base == SNT_BOOL || to.base == SNT_BOOL) return "bool has no bits to reinterpret";
  return kir_base_bits(from.base) == kir_base_bits(to.base) ? NULL : "the element sizes differ";
}

static const char *check_vector(const kir_kernel *k, const kir_inst *in, const uint32_t *args) {
  const kir_type t = in->type;
  if (t.frag) return "a matrix fragment is no vector";
  switch (in->op) {
  case KIR_splat: return kir_same(arg_type(k, args, 0), kir_element(t)) ? NULL : "the operand must be an element of the result";
  case KIR_iota: return kir_is_int(t.base) ? NULL : "the result must be integers";
  case KIR_vec:
    for (uint32_t i = 0; i < in->arg_count; i++)
      if (!kir_same(arg_type(k, args, i), kir_element(t))) return "the operands must be elements of the result";
    return in->arg_count == t.lanes ? NULL : "one operand a lane";
  case KIR_extract: return is_plain(arg_type(k, args, 1), SNT_U32, 1) && !arg_type(k, args, 0).frag ? NULL : "the lane must be a u32";
  case KIR_insert:
    if (kir_at(k, args[1])->op != KIR_const || kir_at(k, args[1])->imm.i >= t.lanes) return "the lane must be a literal below the width";
    return is_plain(arg_type(k, args, 1), SNT_U32, 1) && kir_same(arg_type(k, args, 2), kir_element(t))
               ? NULL
               : "the value must be an element of the vector";
  default: return NULL;
  }
}

static const char *check_permute(const kir_kernel *k, const uint32_t *args) {
  const kir_type t = arg_type(k, args, 0);
  if (t.lanes < 2 || t.lanes & (t.lanes - 1u) || !is_plain(t, SNT_F32, t.lanes)) return "the vector must be f32 of 2, 4, 8 or 16 lanes";
  return is_plain(arg_type(k, args, 1), SNT_U32, t.lanes) ? NULL : "the numbers must be u32, one a lane";
}

static const char *check_shuffle(const kir_kernel *k, const kir_inst *in, const uint32_t *args) {
  if (in->arg_count < 3 || in->arg_count - 2u != in->type.lanes) return "two vectors, then one lane number a result lane";
  const kir_type a = arg_type(k, args, 0), b = arg_type(k, args, 1);
  if (a.frag || a.base != in->type.base || b.base != in->type.base || a.lanes != b.lanes) return "the vectors differ";
  for (uint32_t i = 2; i < in->arg_count; i++) {
    const kir_inst *lane = kir_at(k, args[i]);
    if (lane->op != KIR_const || !is_plain(lane->type, SNT_U32, 1) || lane->imm.i >= 2 * a.lanes)
      return "a lane must be a literal below both widths";
  }
  return NULL;
}

static const char *check_indices(const kir_kernel *k, const kir_inst *in, const uint32_t *args, bool leading) {
  const kir_memory *m = &k->memories.at[in->index];
  const uint32_t count = kir_index_count(in);
  if (m->space == KIR_IMAGE) return "the memory is an image";
  if (leading ? count > m->rank : count != m->rank) return "wrong number of indices";
  for (uint32_t i = 0; i < count; i++)
    if (!is_index(arg_type(k, args, i))) return "an index must be a 32- or 64-bit integer";
  return NULL;
}

static const char *check_access(const kir_memory *m, kir_type t, int32_t stride) {
  if (m->type.frag || m->type.lanes > 1) return kir_same(t, m->type) ? NULL : "the value must have the memory's type";
  if (t.frag || t.base != m->type.base) return "the value must be made of the memory's elements";
  if ((m->flags & KIR_MEM_REGS) && t.lanes > 1) return "a register array is read and written cell by cell";
  return stride < 0 ? "the distance between lanes is negative" : NULL;
}

static const char *check_atomic(const kir_kernel *k, const kir_inst *in, const uint32_t *args) {
  const kir_memory *m = &k->memories.at[in->index];
  const uint32_t count = kir_index_count(in), base = in->type.base;
  if (m->space != KIR_GLOBAL && m->space != KIR_LOCAL && m->space != KIR_SCRATCH) return "atomics need global, local or scratch memory";
  if (in->type.lanes != 1 || !kir_same(in->type, m->type)) return "the result must be the memory's element";
  for (uint32_t i = count; i < in->arg_count; i++)
    if (!kir_same(arg_type(k, args, i), m->type)) return "the value must be the memory's element";
  const bool integer = base == SNT_I32 || base == SNT_U32 || base == SNT_I64 || base == SNT_U64;
  const bool bits = in->op == KIR_atomic_or || in->op == KIR_atomic_and || in->op == KIR_atomic_cas;
  return integer || (base == SNT_F32 && !bits) ? NULL : "no atomic operation on this type";
}

static const char *check_fragment(const kir_memory *m, kir_type t) {
  if (m->space != KIR_LOCAL) return "fragments come from local memory and go there";
  return t.frag ? NULL : "the value must be a matrix fragment";
}

static const char *check_memory(const kir_kernel *k, const kir_inst *in, const uint32_t *args) {
  if (in->index >= k->memories.count) return "the memory does not exist";
  const kir_memory *m = &k->memories.at[in->index];
  const char *wrong = check_indices(k, in, args, in->op == KIR_fill);
  if (wrong) return wrong;
  switch (in->op) {
  case KIR_load: return check_access(m, in->type, in->lanes);
  case KIR_store: return in->arg_count ? check_access(m, arg_type(k, args, in->arg_count - 1u), in->lanes) : "no value";
  case KIR_fill: {
    if (!in->arg_count) return "no value";
    const kir_type want = m->type.frag ? kir_element(m->type) : m->type, have = arg_type(k, args, in->arg_count - 1u);
    return is_plain(have, want.base, want.lanes) ? NULL : "the value must be an element";
  }
  case KIR_mma_load: return check_fragment(m, in->type);
  case KIR_mma_store: return check_fragment(m, arg_type(k, args, in->arg_count - 1u));
  case KIR_prefetch: return m->space == KIR_GLOBAL ? NULL : "only global memory is fetched ahead";
  default: return check_atomic(k, in, args);
  }
}

static const char *check_texel(const kir_kernel *k, const kir_inst *in, const uint32_t *args) {
  if (in->index >= k->memories.count || k->memories.at[in->index].space != KIR_IMAGE) return "the memory must be an image";
  const kir_memory *m = &k->memories.at[in->index];
  const uint32_t coordinate = in->op == KIR_tex_sample ? SNT_F32 : SNT_U32;
  for (uint32_t i = 0; i < 2; i++)
    if (!is_plain(arg_type(k, args, i), coordinate, 1)) return "wrong type of a coordinate";
  if (in->op == KIR_tex_sample && !is_plain(arg_type(k, args, 2), SNT_F32, 1)) return "the level must be an f32";
  if (in->op == KIR_tex_sample && !(m->flags & KIR_MEM_SAMPLED)) return "the image has no sampler";
  if (in->op == KIR_tex_store && (m->flags & KIR_MEM_SAMPLED)) return "a sampled image cannot be stored to";
  const kir_type t = in->op == KIR_tex_store ? arg_type(k, args, 2) : in->type;
  return kir_same(t, kir_texel_type(m)) ? NULL : "a texel has another type";
}

static const char *check_async(const kir_kernel *k, const kir_inst *in, const uint32_t *args) {
  if (in->index >= k->memories.count || in->index2 >= k->memories.count) return "the memory does not exist";
  const kir_memory *to = &k->memories.at[in->index], *from = &k->memories.at[in->index2];
  if (to->space != KIR_LOCAL || from->space != KIR_GLOBAL) return "copies go from global to local memory";
  if (to->type.base != from->type.base || to->type.lanes != 1 || from->type.lanes != 1) return "the memories have different elements";
  if (in->arg_count != to->rank + 2u) return "wrong number of indices";
  for (uint32_t i = 0; i + 1 < in->arg_count; i++)
    if (!is_index(arg_type(k, args, i))) return "an index must be a 32- or 64-bit integer";
  if (!is_plain(arg_type(k, args, in->arg_count - 1u), SNT_BOOL, 1)) return "the condition must be one bool";
  return in->lanes == 4 || in->lanes == 8 || in->lanes == 16 ? NULL : "bytes must be 4, 8 or 16";
}

static const char *check_mma(const kir_kernel *k, const kir_inst *in, const uint32_t *args) {
  const kir_type a = arg_type(k, args, 0), b = arg_type(k, args, 1), c = arg_type(k, args, 2);
  if (a.frag != 1 || b.frag != 2 || c.frag != 3) return "the operands must be fragments a, b and c";
  return a.base == b.base && kir_same(c, in->type) ? NULL : "the fragments do not fit each other";
}

static uint32_t own_elements(const kir_kernel *k, uint32_t frag) {
  uint32_t type;
  kir_mma size;
  return kir_mma_named(k->needs, &type, &size) ? kir_mma_own(k->sub, size, frag) : 0;
}

static const char *check_mma_get(const kir_kernel *k, const uint32_t *args) {
  const kir_type t = arg_type(k, args, 0);
  const kir_inst *element = kir_at(k, args[1]);
  if (t.frag != 3 || t.base != SNT_F32) return "the operand must be a fragment c of f32";
  if (!is_plain(element->type, SNT_U32, 1) || element->op != KIR_const) return "the element must be a literal";
  return element->imm.i < (int64_t)own_elements(k, 3) ? NULL : "no lane is known to hold such an element";
}

static const char *check_mma_make(const kir_kernel *k, const kir_inst *in, const uint32_t *args) {
  if (!kir_is_float(in->type.base) || (in->type.frag == 3 && in->type.base != SNT_F32)) return "only fragments of floats are made";
  if (!in->arg_count || in->arg_count != own_elements(k, in->type.frag)) return "these are not as many elements as a lane is known to hold";
  for (uint32_t i = 0; i < in->arg_count; i++)
    if (!is_plain(arg_type(k, args, i), SNT_F32, 1)) return "an element must be an f32";
  return NULL;
}

static const char *check_loop(const kir_kernel *k, const kir_inst *in, const uint32_t *args) {
  if (in->arg_count < 3) return "a loop needs lo, hi and step";
  if (!is_index(in->type)) return "the variable must be a 32- or 64-bit integer";
  for (uint32_t i = 0; i < 3; i++)
    if (!kir_same(arg_type(k, args, i), in->type)) return "the bounds have different types";
  const kir_inst *step = kir_at(k, args[2]);
  if (step->op == KIR_const && (step->imm.i == 0 || (step->imm.i < 0 && kir_is_signed(step->type.base))))
    return "the step must be positive";
  return in->lanes < 0 ? "negative unroll factor" : NULL;
}

static const char *check_own(const kir_kernel *k, const kir_inst *in, const uint32_t *args) {
  if (in->arg_count < 2) return "a value, then what it is computed from";
  for (uint32_t i = 0; i < in->arg_count; i++) {
    const kir_type t = arg_type(k, args, i);
    if (t.frag || (t.base != SNT_F32 && t.base != SNT_I32 && t.base != SNT_U32)) return "the operands must be f32, i32 or u32";
    if (t.lanes != in->type.lanes) return "the operands have different widths";
  }
  return NULL;
}

const char *kir_type_error(const kir_kernel *k, const kir_inst *in, const uint32_t *args) {
  if (kir_has_value(in->op) && !kir_type_valid(in->type)) return "the result needs a type";
  if (kir_is_elementwise(in->op) && in->op != KIR_pack2) return check_elementwise(k, in, args);
  switch (in->op) {
  case KIR_select: return check_select(k, args);
  case KIR_ix: return check_ix(k, in, args);
  case KIR_cast:
  case KIR_bitcast: return check_convert(k, in, args);
  case KIR_unpack2: return is_plain(arg_type(k, args, 0), SNT_U32, 1) && is_plain(in->type, SNT_F32, 2) ? NULL : "u32 to f32x2";
  case KIR_pack2: return is_plain(arg_type(k, args, 0), SNT_F32, 2) ? NULL : "f32x2 to u32";
  case KIR_splat:
  case KIR_vec:
  case KIR_iota:
  case KIR_extract:
  case KIR_insert: return check_vector(k, in, args);
  case KIR_permute: return check_permute(k, args);
  case KIR_shuffle: return check_shuffle(k, in, args);
  case KIR_hred_add:
  case KIR_hred_max:
  case KIR_hred_min:
  case KIR_hred_mul:
  case KIR_sg_add:
  case KIR_sg_max:
  case KIR_sg_min: return check_class(KIR_add, arg_type(k, args, 0));
  case KIR_sg_shuffle: return is_plain(arg_type(k, args, 1), SNT_U32, 1) && !in->type.frag ? NULL : "the lane must be a u32";
  case KIR_load:
  case KIR_store:
  case KIR_fill:
  case KIR_prefetch:
  case KIR_mma_load:
  case KIR_mma_store:
  case KIR_atomic_add:
  case KIR_atomic_min:
  case KIR_atomic_max:
  case KIR_atomic_or:
  case KIR_atomic_and:
  case KIR_atomic_cas: return check_memory(k, in, args);
  case KIR_tex_sample:
  case KIR_tex_load:
  case KIR_tex_store: return check_texel(k, in, args);
  case KIR_async_copy: return check_async(k, in, args);
  case KIR_mma: return check_mma(k, in, args);
  case KIR_mma_get: return check_mma_get(k, args);
  case KIR_mma_make: return check_mma_make(k, in, args);
  case KIR_loop: return check_loop(k, in, args);
  case KIR_if: return is_plain(arg_type(k, args, 0), SNT_BOOL, 1) ? NULL : "the condition must be one bool";
  case KIR_own: return check_own(k, in, args);
  case KIR_inline:
    for (uint32_t i = 0; i < in->arg_count; i++)
      if (!is_plain(arg_type(k, args, i), SNT_U32, 1)) return "a scalar must be a u32";
    return NULL;
  default: return NULL;
  }
}

/* ---- values of a type ---- */
double kir_round_float(uint32_t base, double v, uint32_t mode) {
  static const struct {
    int bits, low;
    double max;
  } formats[] = {[SNT_F32] = {24, -126, 0x1.fffffep+127},
                 [SNT_F16] = {11, -14, 65504},
                 [SNT_BF16] = {8, -126, 0x1.fep+127},
                 [SNT_F64] = {53, -1022, 0}};
  if (base > SNT_F64 || base == SNT_F64 || v == 0 || v - v != 0) return v;
  const int exponent = ilogb(v), unit = (exponent < formats[base].low ? formats[base].low : exponent) - formats[base].bits + 1;
  const double scaled = ldexp(v, -unit);
  double r = scaled;
  switch (mode & ~(uint32_t)KIR_SAT) {
  case KIR_ROUND_RTZ: r = trunc(scaled); break;
  case KIR_ROUND_RTP: r = ceil(scaled); break;
  case KIR_ROUND_RTN: r = floor(scaled); break;
  default: r = rint(scaled); break;
  }
  r = ldexp(r, unit);
  const double max = formats[base].max;
  if (fabs(r) <= max) return r;
  const uint32_t kind = mode & ~(uint32_t)KIR_SAT;
  const bool inward = (mode & KIR_SAT) || kind == KIR_ROUND_RTZ || (kind == KIR_ROUND_RTP && v < 0) || (kind == KIR_ROUND_RTN && v > 0);
  return copysign(inward ? max : INFINITY, v);
}

int64_t kir_wrap_int(uint32_t base, int64_t v) {
  switch (base) {
  case SNT_I8: return (int8_t)v;
  case SNT_I16: return (int16_t)v;
  case SNT_I32: return (int32_t)v;
  case SNT_U8: return (uint8_t)v;
  case SNT_U16: return (uint16_t)v;
  case SNT_U32: return (uint32_t)v;
  case SNT_BOOL: return v != 0;
  default: return v;
  }
}

double kir_lowest(uint32_t base) {
  switch (base) {
  case SNT_F32: return -0x1.fffffep+127;
  case SNT_F16: return -65504;
  case SNT_BF16: return -0x1.fep+127;
  default: return -0x1.fffffffffffffp+1023;
  }
}
