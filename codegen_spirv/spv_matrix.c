/* Matrix fragments as cooperative matrices of a subgroup (SPV_KHR_cooperative_matrix), which come out of local arrays and go there. A module that has
   them is in the Vulkan memory model: what items share is marked so at each access, and barriers make it available and visible. */
#include "codegen_spirv/spv_private.h"

enum { BY_ROWS, BY_COLUMNS };

void spv_begin_matrices(spv *s) {
  uint32_t type;
  s->matrices = kir_mma_named(s->k->needs, &type, &s->mma);
  if (!s->matrices) return;
  spv_need(s, SpvCapabilityVulkanMemoryModel);
  spv_need(s, SpvCapabilityCooperativeMatrixKHR);
}

/* The layout and the stride of an access, in elements of the view. */
static uint32_t layout(spv *s, const kir_inst *in) { return spv_u32(s, in->flags & KIR_IS_COLUMNS ? BY_COLUMNS : BY_ROWS); }

uint32_t spv_matrix_load(spv *s, uint32_t inst) {
  const kir_inst *in = kir_at(s->k, inst);
  uint32_t width;
  const uint32_t at = spv_matrix_pointer(s, inst, &width), how = layout(s, in), stride = spv_u32(s, (uint32_t)in->lanes / width);
  return SPV_DO(s, SpvOpCooperativeMatrixLoadKHR, spv_type(s, in->type), at, how, stride, SpvMemoryAccessNonPrivatePointerMask);
}

uint32_t spv_matrix_store(spv *s, uint32_t inst) {
  const kir_inst *in = kir_at(s->k, inst);
  uint32_t width;
  const uint32_t at = spv_matrix_pointer(s, inst, &width), how = layout(s, in), stride = spv_u32(s, (uint32_t)in->lanes / width);
  SPV(&s->m, SPV_CODE, SpvOpCooperativeMatrixStoreKHR, at, spv_arg(s, inst, in->arg_count - 1u), how, stride,
      SpvMemoryAccessNonPrivatePointerMask);
  return 0;
}

uint32_t spv_matrix_multiply(spv *s, uint32_t inst) {
  enum { A_SIGNED = 1, B_SIGNED = 2, C_SIGNED = 4, RESULT_SIGNED = 8 };
  const uint32_t is_signed = spv_arg_type(s, inst, 0).base == SNT_I8 ? A_SIGNED | B_SIGNED | C_SIGNED | RESULT_SIGNED : 0;
  return SPV_DO(s, SpvOpCooperativeMatrixMulAddKHR, spv_type(s, kir_at(s->k, inst)->type), spv_arg(s, inst, 0), spv_arg(s, inst, 1),
                spv_arg(s, inst, 2), is_signed);
}

/* Every fragment of an array. */
uint32_t spv_matrix_fill(spv *s, uint32_t inst) {
  const kir_inst *in = kir_at(s->k, inst);
  const kir_memory *m = &s->k->memories.at[in->index];
  uint32_t cells = 1;
  if (!m->type.frag || in->arg_count != 1) {
    spv_fail(s, SNT_E_INTERNAL, inst, "fill must have been removed by pass legalise");
    return 0;
  }
  const uint32_t value = SPV_DO(s, SpvOpCompositeConstruct, spv_type(s, m->type), spv_arg(s, inst, 0));
  for (uint32_t d = 0; d < m->rank; d++) cells *= (uint32_t)m->dims[d];
  for (uint32_t i = 0; i < cells; i++) spv_matrix_set(s, in->index, i, value);
  return 0;
}
