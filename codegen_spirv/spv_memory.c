/* Memories: storage buffers (one binding each, seen as an array of scalars, of vectors, or both through variables that share the
   binding), shared, private and constant arrays, and the accesses to them. An aligned vector access is one instruction where an array
   of vectors exists; others are put together from scalars. */
#include "codegen_spirv/spv_private.h"

static bool is_buffer(const kir_memory *m) { return m->space == KIR_GLOBAL || m->space == KIR_SCRATCH; }
static bool is_access(uint32_t op) { return kir_ops[op].flags & KIR_MEM && op != KIR_prefetch; }

static uint64_t elements(const kir_memory *m) {
  uint64_t n = 1;
  for (uint32_t i = 0; i < m->rank; i++) n *= m->dims[i];
  return n;
}

static kir_type value_type(const spv *s, uint32_t inst) {
  const kir_inst *in = kir_at(s->k, inst);
  return in->op == KIR_store ? kir_at(s->k, kir_arg(s->k, inst, in->arg_count - 1u))->type : in->type;
}

/* Lanes of the array element that an access wants: those of a vector at its natural alignment, else 1. */
static uint32_t wanted_width(const spv *s, uint32_t inst) {
  const kir_inst *in = kir_at(s->k, inst);
  const kir_type t = value_type(s, inst);
  const kir_memory *m = &s->k->memories.at[in->index];
  if (in->op == KIR_mma_load || in->op == KIR_mma_store)
    return in->lanes % 4 == 0 && in->align >= 4 * ir_dtypes[m->type.base].bytes ? 4 : 1; /* of its rows */
  if (m->type.lanes > 1) return m->type.lanes;
  return (t.lanes == 2 || t.lanes == 4) && in->align >= t.lanes * ir_dtypes[t.base].bytes ? t.lanes : 1;
}

static void find_widths(spv *s) {
  for (uint32_t i = 1; i < s->k->insts.count; i++) {
    const kir_inst *in = kir_at(s->k, i);
    if (!is_access(in->op) || s->k->memories.at[in->index].space == KIR_IMAGE) continue;
    const uint32_t width = wanted_width(s, i);
    if (width <= 4) s->memory[in->index].widths[width] = true;
  }
  for (uint32_t i = 0; i < s->k->memories.count; i++) {
    const kir_memory *m = &s->k->memories.at[i];
    bool *widths = s->memory[i].widths;
    const uint32_t lanes = widths[4] ? 4 : 2;
    if (is_buffer(m) || m->type.lanes > 1 || (!widths[4] && !widths[2])) continue;
    /* other arrays have one view: of vectors only if every access is such a vector and they fill the array */
    if ((widths[4] && widths[2]) || widths[1] || m->space == KIR_CONSTANT || elements(m) % lanes)
      widths[1] = true, widths[2] = widths[4] = false;
  }
}

/* ---- declarations ---- */
static kir_type stored(kir_type t) { return t.base == SNT_BOOL ? kir_t(SNT_U8, t.lanes) : t; }

static void need_narrow(spv *s, uint32_t base) {
  if (ir_dtypes[base].bytes == 2) spv_need(s, SpvCapabilityStorageBuffer16BitAccess);
  if (ir_dtypes[base].bytes == 1) spv_need(s, SpvCapabilityStorageBuffer8BitAccess);
}

/* What may be only read or only written is said of the variable; where there is none, of the struct's member. */
static uint32_t buffer_struct(spv *s, uint32_t element, uint32_t stride, uint32_t member) {
  bool is_new = false;
  const uint32_t array = spv_array(s, element, 0, stride);
  const uint32_t id = spv_intern(&s->m, SpvOpTypeStruct, false, &array, 1, member ? member : 1, &is_new);
  if (is_new) {
    SPV(&s->m, SPV_DECORATIONS, SpvOpDecorate, id, SpvDecorationBlock);
    SPV(&s->m, SPV_DECORATIONS, SpvOpMemberDecorate, id, 0, SpvDecorationOffset, 0);
    if (member) SPV(&s->m, SPV_DECORATIONS, SpvOpMemberDecorate, id, 0, member);
  }
  return id;
}

static void need_narrow_arrays(spv *s, uint32_t base) {
  if (base == SNT_F16) spv_need(s, SpvCapabilityFloat16);
  else if (ir_dtypes[base].bytes == 2) spv_need(s, SpvCapabilityInt16);
  else if (ir_dtypes[base].bytes == 1 && base != SNT_BOOL) spv_need(s, SpvCapabilityInt8);
}

static void bind(spv *s, uint32_t variable, uint32_t slot) {
  SPV(&s->m, SPV_DECORATIONS, SpvOpDecorate, variable, SpvDecorationDescriptorSet, 0);
  SPV(&s->m, SPV_DECORATIONS, SpvOpDecorate, variable, SpvDecorationBinding, slot);
}

static uint32_t vector_stride(kir_type t) { return ir_dtypes[t.base].bytes * (t.lanes == 3 ? 4u : t.lanes); }

/* The index of a store without the literal that is added to it. */
static uint32_t index_base(const spv *s, uint32_t store, int64_t *literal) {
  const uint32_t index = kir_arg(s->k, store, 0);
  const kir_inst *in = kir_at(s->k, index);
  *literal = 0;
  if (in->op != KIR_add || !kir_is_const(s->k, kir_arg(s->k, index, 1), literal, NULL)) return index;
  return kir_arg(s->k, index, 0);
}

/* Is each vector of four words that is stored followed by the one behind it, with nothing but values between them? */
static bool stored_in_pairs(const spv *s, uint32_t number) {
  enum { PAIR_BYTES = 32 };
  uint32_t first = 0;
  for (uint32_t i = 1; i < s->k->insts.count; i++) {
    const kir_inst *in = kir_at(s->k, i);
    int64_t here, there;
    if (in->op != KIR_store || in->index != number) {
      if (first && kir_ops[in->op].result == KIR_R_NONE) return false;
    } else if (!first) {
      if (in->align < PAIR_BYTES) return false;
      first = i;
    } else {
      if (index_base(s, first, &here) != index_base(s, i, &there) || there - here != 4) return false;
      first = 0;
    }
  }
  return !first;
}

/* What else is known of how a buffer is reached (0: nothing). Without Vulkan's memory model others see behind a barrier only what is coherent. */
static uint32_t access_decoration(const spv *s, const kir_memory *m) {
  bool meet = false;
  if (m->space != KIR_SCRATCH && !(m->access & KIR_WRITE)) return SpvDecorationNonWritable;
  if (m->space != KIR_SCRATCH && !(m->access & KIR_READ)) return SpvDecorationNonReadable;
  for (uint32_t i = 1; i < s->k->insts.count && !s->matrices; i++)
    meet |= kir_at(s->k, i)->op == KIR_barrier && kir_at(s->k, i)->flags & KIR_SYNC_GLOBAL;
  return meet ? SpvDecorationCoherent : 0;
}

static void declare_buffer(spv *s, uint32_t number) {
  const kir_memory *m = &s->k->memories.at[number];
  spv_memory *mem = &s->memory[number];
  uint32_t views = 0;
  for (uint32_t lanes = 1; lanes <= 4; lanes++) views += mem->widths[lanes];
  if (!views) mem->widths[m->type.lanes] = true; /* bound, but not used */
  const bool vectors = mem->widths[4] && views == 1 && ir_dtypes[m->type.base].bytes == 4;
  mem->paired = s->digits && s->caps->int64 && vectors && m->access == KIR_WRITE && !m->alias && !mem->addressed &&
                stored_in_pairs(s, number);
  const uint32_t access = access_decoration(s, m);
  for (uint32_t lanes = 1; lanes <= 4; lanes++) {
    if (!mem->widths[lanes]) continue;
    const kir_type t = mem->paired ? kir_t(SNT_U64, 4) : stored(kir_t(m->type.base, lanes));
    need_narrow(s, t.base);
    mem->view[lanes].element = spv_type(s, t);
    if (mem->addressed) continue; /* spv_begin_memories makes the pointers */
    const uint32_t pointer = spv_pointer(s, SpvStorageClassStorageBuffer, buffer_struct(s, mem->view[lanes].element, vector_stride(t), 0));
    const uint32_t id = mem->view[lanes].variable = spv_fresh(&s->m);
    SPV(&s->m, SPV_TYPES, SpvOpVariable, pointer, id, SpvStorageClassStorageBuffer);
    bind(s, id, kir_binding(s->k, number));
    if (access) SPV(&s->m, SPV_DECORATIONS, SpvOpDecorate, id, access);
    SPV(&s->m, SPV_DECORATIONS, SpvOpDecorate, id, m->alias || views > 1 ? SpvDecorationAliased : SpvDecorationRestrict);
  }
}

/* ---- buffers that are reached by addresses in the block ---- */
static uint32_t view_pointer(spv *s, uint32_t number, uint32_t lanes) {
  const kir_memory *m = &s->k->memories.at[number];
  const kir_type t = stored(kir_t(m->type.base, lanes));
  const uint32_t block = buffer_struct(s, spv_type(s, t), vector_stride(t), access_decoration(s, m));
  return spv_pointer(s, SpvStorageClassPhysicalStorageBuffer, block);
}

static uint32_t address_rank(const spv *s, uint32_t number) {
  uint32_t rank = 0;
  for (uint32_t i = 0; i < s->k->memories.count; i++)
    rank += s->memory[i].addressed && s->k->memories.at[i].slot < s->k->memories.at[number].slot;
  return rank;
}

static void find_addresses(spv *s) {
  for (uint32_t i = 0; i < s->k->memories.count; i++) {
    const kir_memory *m = &s->k->memories.at[i];
    bool *widths = s->memory[i].widths;
    uint32_t views = 0;
    s->memory[i].addressed = s->address_at && kir_is_addressed(m, s->caps);
    if (!s->memory[i].addressed) continue;
    for (uint32_t lanes = 1; lanes <= 4; lanes++) views += widths[lanes];
    if (!views) widths[m->type.lanes] = true;
  }
}

uint32_t spv_prepare_memories(spv *s, uint32_t *pointers) {
  uint32_t count = 0;
  find_widths(s);
  find_addresses(s);
  for (uint32_t i = 0; i < s->k->memories.count; i++) {
    uint32_t lanes = 1;
    if (!s->memory[i].addressed) continue;
    while (lanes < 4 && !s->memory[i].widths[lanes]) lanes++;
    pointers[address_rank(s, i)] = view_pointer(s, i, lanes);
    count++;
  }
  if (count) spv_need(s, SpvCapabilityPhysicalStorageBufferAddresses);
  return count;
}

/* ---- arrays ---- */
static uint32_t initialiser(spv *s, const kir_memory *m, uint32_t array) {
  const uint32_t n = (uint32_t)elements(m);
  uint32_t *operands = IR_NEW_ARRAY(s->m.arena, uint32_t, n + 1u);
  if (!operands) return 0;
  operands[0] = array;
  for (uint32_t i = 0; i < n; i++) operands[1 + i] = spv_literal(s, m->type, (int64_t)m->values[i], m->values[i]);
  return spv_intern(&s->m, SpvOpConstantComposite, true, operands, n + 1u, 0, NULL);
}

/* Arrays that overlay another of the same element share its variable; others get bytes of their own, which is as right and only larger. */
static bool shares_overlay(spv *s, uint32_t number, uint32_t element) {
  const kir_memory *m = &s->k->memories.at[number];
  if (!m->overlay) return false;
  const spv_memory *under = &s->memory[m->overlay - 1];
  for (uint32_t lanes = 1; lanes <= 4; lanes++) {
    if (under->view[lanes].element != element || elements(&s->k->memories.at[m->overlay - 1]) < elements(m)) continue;
    s->memory[number].view[lanes] = under->view[lanes];
    return true;
  }
  return false;
}

static void declare_array(spv *s, uint32_t number) {
  const kir_memory *m = &s->k->memories.at[number];
  spv_memory *mem = &s->memory[number];
  const bool shared = m->space == KIR_LOCAL;
  const uint32_t lanes = m->type.lanes > 1 ? m->type.lanes : mem->widths[4] ? 4 : mem->widths[2] ? 2 : 1;
  if (lanes > 4) {
    spv_fail(s, SNT_E_INTERNAL, 0, "memory %s has vectors of %u lanes", m->name, lanes);
    return;
  }
  const uint32_t class = shared ? SpvStorageClassWorkgroup : SpvStorageClassFunction;
  const uint32_t element = m->type.frag ? spv_type(s, m->type) : spv_type(s, kir_t(m->type.base, lanes));
  need_narrow_arrays(s, m->type.base);
  if (shares_overlay(s, number, element)) return;
  const uint32_t array = spv_array(s, element, (uint32_t)(elements(m) * m->type.lanes / lanes), 0);
  const uint32_t pointer = spv_pointer(s, class, array);
  const uint32_t initial = m->space == KIR_CONSTANT ? initialiser(s, m, array) : 0;
  const uint32_t id = spv_fresh(&s->m);
  mem->view[lanes] = (spv_view){id, element};
  if (initial) SPV(&s->m, SPV_LOCALS, SpvOpVariable, pointer, id, class, initial);
  else SPV(&s->m, shared ? SPV_TYPES : SPV_LOCALS, SpvOpVariable, pointer, id, class);
}

static bool comes_wide(const kir_memory *m, const kir_caps *caps) {
  return m->flags & KIR_MEM_TEXEL && caps->texel && spv_wide(m->type).base != m->type.base;
}

/* Texels are wide when they come. Where casts alone read them they stay so; else, as where one is stored as it was read, they are made what they are. */
static void find_narrowed(spv *s) {
  const kir_kernel *k = s->k;
  bool wide = false;
  for (uint32_t m = 0; m < k->memories.count; m++) wide |= comes_wide(&k->memories.at[m], s->caps);
  for (uint32_t i = 1; wide && i < k->insts.count; i++)
    for (uint32_t n = 0; n < kir_at(k, i)->arg_count && kir_at(k, i)->op != KIR_cast; n++) {
      const kir_inst *from = kir_at(k, kir_arg(k, i, n));
      if (from->op == KIR_load && comes_wide(&k->memories.at[from->index], s->caps)) s->memory[from->index].narrows = true;
    }
}

void spv_declare_memories(spv *s) {
  find_narrowed(s);
  for (uint32_t i = 0; i < s->k->memories.count; i++) {
    const kir_memory *m = &s->k->memories.at[i];
    s->memory[i].texel = m->space == KIR_GLOBAL && m->flags & KIR_MEM_TEXEL && s->caps->texel;
    if (m->space == KIR_IMAGE || s->memory[i].texel) spv_declare_image(s, i);
    else if (is_buffer(m)) declare_buffer(s, i);
    else declare_array(s, i);
  }
}

uint32_t spv_block_word(spv *s, uint32_t index) {
  const uint32_t u32 = spv_type(s, kir_t(SNT_U32, 1));
  const uint32_t operands[] = {s->push, s->digits ? spv_u32(s, 0) : index, index};
  return SPV_DO(s, SpvOpLoad, u32,
                spv_result(s, SpvOpAccessChain, spv_pointer(s, SpvStorageClassPushConstant, u32), operands, s->digits ? 3 : 2));
}

/* A number below KIR_DIGITS; looked up where there are digits. */
uint32_t spv_digit(spv *s, uint32_t number) {
  if (!s->digits) return number;
  return spv_block_word(s, SPV_DO(s, SpvOpIAdd, spv_type(s, kir_t(SNT_U32, 1)), number, spv_u32(s, s->digits - 1)));
}

/* The block's pointer to what the lowest view sees; the other views' are made of it. */
static void take_address(spv *s, uint32_t number) {
  spv_memory *mem = &s->memory[number];
  uint32_t from = 0;
  for (uint32_t lanes = 1; lanes <= 4; lanes++) {
    if (!mem->widths[lanes]) continue;
    const uint32_t type = view_pointer(s, number, lanes);
    if (from) mem->view[lanes].variable = SPV_DO(s, SpvOpBitcast, type, from);
    else {
      const uint32_t member = spv_u32(s, (s->digits ? 1 : s->address_at / 4) + address_rank(s, number));
      const uint32_t at = SPV_DO(s, SpvOpAccessChain, spv_pointer(s, SpvStorageClassPushConstant, type), s->push, member);
      from = mem->view[lanes].variable = SPV_DO(s, SpvOpLoad, type, at);
    }
  }
}

/* What is added to every index of a buffer: its run-time offset, or the group's share of a workspace. */
void spv_begin_memories(spv *s, uint32_t group) {
  const uint32_t u32 = spv_type(s, kir_t(SNT_U32, 1));
  for (uint32_t i = 0; i < s->k->memories.count; i++) {
    const kir_memory *m = &s->k->memories.at[i];
    uint32_t base = 0;
    if (s->memory[i].addressed) take_address(s, i);
    if (m->offset_scalar) base = spv_block_word(s, spv_u32(s, s->k->scalars.at[m->offset_scalar - 1].offset / 4));
    if (m->space == KIR_SCRATCH) {
      const uint32_t share = SPV_DO(s, SpvOpIMul, u32, group, spv_u32(s, (uint32_t)elements(m)));
      base = base ? SPV_DO(s, SpvOpIAdd, u32, base, share) : share;
    }
    s->memory[i].base = base;
  }
}

/* ---- accesses ---- */
typedef struct place {
  uint32_t dynamic;
  int64_t literal;
} place; /* index: dynamic (0: none) + literal */

static place linear_index(spv *s, uint32_t inst) {
  const kir_inst *in = kir_at(s->k, inst);
  const kir_memory *m = &s->k->memories.at[in->index];
  const uint32_t u32 = spv_type(s, kir_t(SNT_U32, 1)), rank = m->space == KIR_GLOBAL ? 1 : m->rank;
  place p = {s->memory[in->index].base, 0};
  uint64_t stride = 1;
  for (uint32_t n = rank; n-- > 0; stride *= m->dims[n]) {
    const kir_inst *index = kir_at(s->k, kir_arg(s->k, inst, n));
    if (index->op == KIR_const) {
      p.literal += index->imm.i * (int64_t)stride;
      continue;
    }
    uint32_t term = spv_arg(s, inst, n);
    if (stride != 1) term = SPV_DO(s, SpvOpIMul, u32, term, spv_u32(s, (uint32_t)stride));
    p.dynamic = p.dynamic ? SPV_DO(s, SpvOpIAdd, u32, p.dynamic, term) : term;
  }
  return p;
}

static uint32_t index_id(spv *s, place p, uint32_t lane, uint32_t width) {
  const uint32_t u32 = spv_type(s, kir_t(SNT_U32, 1)), shift = width == 8 ? 3 : width / 2;
  const uint32_t literal = (uint32_t)(p.literal + lane);
  if (!p.dynamic) return spv_u32(s, literal >> shift);
  uint32_t id = literal ? SPV_DO(s, SpvOpIAdd, u32, p.dynamic, spv_u32(s, literal)) : p.dynamic;
  return shift ? SPV_DO(s, SpvOpShiftRightLogical, u32, id, spv_u32(s, shift)) : id;
}

static uint32_t element_pointer(spv *s, uint32_t number, uint32_t lanes, uint32_t index) {
  const kir_memory *m = &s->k->memories.at[number];
  const spv_view *view = &s->memory[number].view[lanes];
  if (!view->variable) spv_fail(s, SNT_E_INTERNAL, 0, "memory %s has no view of %u lanes", m->name, lanes);
  if (is_buffer(m)) {
    const uint32_t class = s->memory[number].addressed ? SpvStorageClassPhysicalStorageBuffer : SpvStorageClassStorageBuffer;
    return SPV_DO(s, SpvOpAccessChain, spv_pointer(s, class, view->element), view->variable, spv_u32(s, 0), index);
  }
  const uint32_t class = m->space == KIR_LOCAL ? SpvStorageClassWorkgroup : SpvStorageClassFunction;
  return SPV_DO(s, SpvOpAccessChain, spv_pointer(s, class, view->element), view->variable, index);
}

/* Lanes of the view that an access goes through, and the divisor of its index: arrays of cells are indexed by cell. */
static uint32_t view_lanes(const spv *s, uint32_t inst, uint32_t *divisor) {
  const kir_inst *in = kir_at(s->k, inst);
  const uint32_t width = wanted_width(s, inst);
  const bool cells = s->k->memories.at[in->index].type.lanes > 1;
  const uint32_t lanes = cells || s->memory[in->index].view[width].variable ? width : 1;
  *divisor = cells ? 1 : lanes;
  return lanes;
}

static bool is_byte_bool(const spv *s, uint32_t inst, kir_type t) {
  return t.base == SNT_BOOL && is_buffer(&s->k->memories.at[kir_at(s->k, inst)->index]);
}

/* What a pointer out of the block is aligned to: its element, but three lanes, which lie in the room of four. */
static uint32_t alignment(const spv *s, uint32_t inst, uint32_t lanes) {
  return ir_dtypes[stored(s->k->memories.at[kir_at(s->k, inst)->index].type).base].bytes * (lanes == 3 ? 1 : lanes);
}

/* The memory operands of an access: to a pointer out of the block, and to what items share in the Vulkan memory model. */
static uint32_t memory_operands(const spv *s, uint32_t inst, uint32_t lanes, uint32_t out[2]) {
  const uint32_t number = kir_at(s->k, inst)->index;
  const kir_memory *m = &s->k->memories.at[number];
  uint32_t count = 0;
  if (s->matrices && (is_buffer(m) || m->space == KIR_LOCAL)) out[0] = SpvMemoryAccessNonPrivatePointerMask, count = 1;
  if (!s->memory[number].addressed) return count;
  out[0] = (count ? out[0] : 0) | SpvMemoryAccessAlignedMask, out[1] = alignment(s, inst, lanes);
  return 2;
}

static uint32_t load_part(spv *s, uint32_t inst, uint32_t lanes, uint32_t index) {
  const uint32_t number = kir_at(s->k, inst)->index, element = s->memory[number].view[lanes].element;
  uint32_t operands[3] = {element_pointer(s, number, lanes, index)};
  const uint32_t count = 1 + memory_operands(s, inst, lanes, operands + 1);
  return spv_result(s, SpvOpLoad, element, operands, count);
}

uint32_t spv_load(spv *s, uint32_t inst) {
  const kir_inst *in = kir_at(s->k, inst);
  uint32_t divisor, parts[16] = {0};
  const place p = linear_index(s, inst);
  if (in->lanes > 1) spv_fail(s, SNT_E_INTERNAL, inst, "strided lanes must have been removed by pass legalise");
  if (s->memory[in->index].texel) return spv_fetch_texel(s, in->index, index_id(s, p, 0, 1));
  const uint32_t lanes = view_lanes(s, inst, &divisor), count = in->type.lanes / lanes;
  for (uint32_t i = 0; i < count && i < IR_COUNT(parts); i++) {
    parts[i] = load_part(s, inst, lanes, index_id(s, p, i, divisor));
    if (is_byte_bool(s, inst, in->type)) parts[i] = spv_cast(s, kir_t(SNT_BOOL, lanes), kir_t(SNT_U8, lanes), parts[i], 0);
  }
  return count == 1 ? parts[0] : spv_result(s, SpvOpCompositeConstruct, spv_type(s, in->type), parts, count);
}

/* The first of a pair waits for the second. */
static void store_paired(spv *s, uint32_t number, place p, uint32_t value) {
  const uint32_t half = SPV_DO(s, SpvOpBitcast, spv_type(s, kir_t(SNT_U64, 2)), value);
  spv_memory *mem = &s->memory[number];
  if (!mem->first) {
    mem->first = half, mem->first_at = index_id(s, p, 0, 8);
    return;
  }
  const uint32_t whole = SPV_DO(s, SpvOpCompositeConstruct, mem->view[4].element, mem->first, half);
  SPV(&s->m, SPV_CODE, SpvOpStore, element_pointer(s, number, 4, mem->first_at), whole);
  mem->first = 0;
}

void spv_store(spv *s, uint32_t inst) {
  const kir_inst *in = kir_at(s->k, inst);
  const kir_type t = value_type(s, inst);
  uint32_t divisor, value = spv_arg(s, inst, in->arg_count - 1u);
  const place p = linear_index(s, inst);
  const uint32_t lanes = view_lanes(s, inst, &divisor), count = t.lanes / lanes;
  if (s->memory[in->index].paired) {
    store_paired(s, in->index, p, value);
    return;
  }
  if (is_byte_bool(s, inst, t)) value = spv_cast(s, stored(t), t, value, 0);
  for (uint32_t i = 0; i < count; i++) {
    uint32_t part = count == 1 ? value : SPV_DO(s, SpvOpCompositeExtract, spv_type(s, kir_t(stored(t).base, 1)), value, i);
    uint32_t operands[4] = {element_pointer(s, in->index, lanes, index_id(s, p, i, divisor)), part};
    spv_inst(&s->m, SPV_CODE, SpvOpStore, operands, 2 + memory_operands(s, inst, lanes, operands + 2));
  }
}

uint32_t spv_matrix_pointer(spv *s, uint32_t inst, uint32_t *width) {
  uint32_t divisor;
  const uint32_t lanes = *width = view_lanes(s, inst, &divisor);
  return element_pointer(s, kir_at(s->k, inst)->index, lanes, index_id(s, linear_index(s, inst), 0, divisor));
}

void spv_matrix_set(spv *s, uint32_t memory, uint32_t cell, uint32_t value) {
  SPV(&s->m, SPV_CODE, SpvOpStore, element_pointer(s, memory, 1, spv_u32(s, cell)), value);
}

uint32_t spv_atomic(spv *s, uint32_t inst) {
  const kir_inst *in = kir_at(s->k, inst);
  const uint32_t op = spv_isel_op((kir_op)in->op, in->type.base);
  if (op == SpvOpNop) {
    spv_fail(s, SNT_E_UNSUPPORTED, inst, "%s of %s", kir_ops[in->op].name, ir_dtypes[in->type.base].name);
    return 0;
  }
  const bool shared = s->k->memories.at[in->index].space == KIR_LOCAL;
  const uint32_t at = element_pointer(s, in->index, 1, index_id(s, linear_index(s, inst), 0, 1)), relaxed = spv_u32(s, 0);
  const uint32_t scope = spv_u32(s, shared        ? SpvScopeWorkgroup
                                    : s->matrices ? SpvScopeQueueFamily
                                                  : SpvScopeDevice),
                 value = spv_arg(s, inst, in->arg_count - 1u);
  if (in->op != KIR_atomic_cas) return SPV_DO(s, op, spv_type(s, in->type), at, scope, relaxed, value);
  return SPV_DO(s, op, spv_type(s, in->type), at, scope, relaxed, relaxed, value, spv_arg(s, inst, in->arg_count - 2u));
}
