/* Words and literal typing shared by the printer and the parser of kernel IR. */
#include "ir/kir/text.h"

const kir_word kir_mode_words[] = {{"default", SNT_NUMERICS_DEFAULT},
                                   {"strict", SNT_NUMERICS_STRICT},
                                   {"fast", SNT_NUMERICS_FAST},
                                   {"repro", SNT_NUMERICS_REPRODUCIBLE},
                                   {NULL, 0}};
const kir_word kir_space_words[] = {{"param", KIR_GLOBAL},
                                    {"image", KIR_IMAGE},
                                    {"local", KIR_LOCAL},
                                    {"private", KIR_PRIVATE},
                                    {"scratch", KIR_SCRATCH},
                                    {"const", KIR_CONSTANT},
                                    {NULL, 0}};
const kir_word kir_round_words[] = {
    {"rne", KIR_ROUND_RNE}, {"rtz", KIR_ROUND_RTZ}, {"rtp", KIR_ROUND_RTP}, {"rtn", KIR_ROUND_RTN}, {NULL, 0}};
const kir_word kir_loop_words[] = {
    {"full", KIR_LOOP_FULL}, {"rolled", KIR_LOOP_ROLLED}, {"interior", KIR_LOOP_INTERIOR}, {"border", KIR_LOOP_BORDER}, {NULL, 0}};
const kir_word kir_access_words[] = {{"ro", KIR_READ}, {"wo", KIR_WRITE}, {"rw", KIR_READ | KIR_WRITE}, {NULL, 0}};

const char *kir_word_of(const kir_word *words, uint32_t value) {
  for (; words->text; words++)
    if (words->value == value) return words->text;
  return "?";
}

static bool is_literal(const kir_kernel *k, uint32_t value) { return !value || kir_at(k, value)->op == KIR_const; }

/* The widest type among the operands that are no literals. */
static kir_type common_type(const kir_kernel *k, const kir_inst *in, const uint32_t *args, uint32_t first) {
  kir_type widest = {0, 0, 0};
  for (uint32_t i = first; i < in->arg_count; i++)
    if (!is_literal(k, args[i]) && kir_type_of(k, args[i]).lanes > widest.lanes) widest = kir_type_of(k, args[i]);
  return widest;
}

static kir_type memory_literal(const kir_kernel *k, const kir_inst *in, uint32_t n) {
  const kir_type index = kir_t(SNT_U32, 1);
  if (n < kir_index_count(in) || in->index >= k->memories.count) return index;
  if (in->op == KIR_async_copy) return kir_t(SNT_BOOL, 1);
  const kir_type cell = k->memories.at[in->index].type;
  return cell.frag ? kir_element(kir_t(cell.base, 1)) : cell;
}

kir_type kir_literal_type(const kir_kernel *k, const kir_inst *in, const uint32_t *args, uint32_t n) {
  const kir_type none = {0, 0, 0}, lane = kir_t(SNT_U32, 1);
  const bool stated = in->type.lanes != 0;
  switch (in->op) {
  case KIR_select: return n == 0 ? kir_t(SNT_BOOL, 1) : stated ? in->type : common_type(k, in, args, 1);
  case KIR_splat:
  case KIR_vec: return stated ? kir_element(in->type) : none;
  case KIR_mma_get:
  case KIR_extract: return n == 1 ? lane : none;
  case KIR_mma_make: return kir_t(SNT_F32, 1);
  case KIR_insert: {
    const kir_type vector = stated ? in->type : is_literal(k, args[0]) ? none : kir_type_of(k, args[0]);
    return n == 0 ? vector : n == 1 ? lane : kir_element(vector);
  }
  case KIR_shuffle: return n >= 2 ? lane : none;
  case KIR_unpack2: return lane;
  case KIR_pack2: return kir_t(SNT_F32, 2);
  case KIR_load:
  case KIR_store:
  case KIR_fill:
  case KIR_prefetch:
  case KIR_mma_load:
  case KIR_mma_store:
  case KIR_async_copy:
  case KIR_atomic_add:
  case KIR_atomic_min:
  case KIR_atomic_max:
  case KIR_atomic_or:
  case KIR_atomic_and:
  case KIR_atomic_cas: return memory_literal(k, in, n);
  case KIR_tex_sample: return kir_t(SNT_F32, 1);
  case KIR_tex_load: return lane;
  case KIR_tex_store: return n < 2 ? lane : in->index < k->memories.count ? kir_texel_type(&k->memories.at[in->index]) : none;
  case KIR_sg_add:
  case KIR_sg_max:
  case KIR_sg_min: return in->type;
  case KIR_sg_shuffle: return n == 1 ? lane : in->type;
  case KIR_if: return kir_t(SNT_BOOL, 1);
  default: break;
  }
  if (!kir_is_elementwise(in->op)) return none;
  return stated && kir_ops[in->op].result == KIR_R_ARG0 ? in->type : common_type(k, in, args, 0);
}

kir_type kir_sum_type(const kir_kernel *k, uint32_t count, const uint32_t *values, uint32_t stride) {
  kir_type type = kir_t(SNT_U32, 1);
  for (uint32_t i = 0; i < count; i++)
    if (kir_type_of(k, values[i * stride]).base != SNT_U32) type = kir_element(kir_type_of(k, values[i * stride]));
  return type;
}
