/* The SPIR-V generator: legal kernel IR in, one Vulkan 1.1 compute module (SPIR-V 1.3) out, entry point "main". The whole kernel stands
   inside `if (group < groups)`, so that leaving early is structured, unless it has digits (KIR_DIGITS). Capabilities are asked for by what
   is used, and written last. */
#include "codegen_spirv/spv_private.h"

// clang-format off
const kir_caps spirv_caps = {.target = "spirv", .max_lanes = 4, .vector_memory = 16, .f16_storage = true, .bf16_storage = true, .int8_storage = true, .fma_fast = true,
                             .int16_storage = true, .int64 = true, .f64 = true, .subgroups = true, .subgroup_arithmetic = true, .texel = true,
                             .images = true, .shuffle = true, .pack2 = true, .dot4 = true, .aligned_vectors = true, .nan_unsafe = true, .push_bytes = 128, .oob_zero = true,
                             .mma = {[KIR_MMA_F16] = {KIR_MMA_ANY, 0, 0}, [KIR_MMA_I8] = {KIR_MMA_ANY, 0, 0}, [KIR_MMA_U8] = {KIR_MMA_ANY, 0, 0}}};
// clang-format on

/* ---- begin ---- */
/* The scalar block as push constants: a struct of words, or of an array of them where digits are looked up; then the number of groups, and
   the addresses of buffers. */
static void declare_push_block(spv *s) {
  const uint32_t words = s->address_at ? s->address_at / 4 : kir_block_bytes(s->k) / 4 + 1, u32 = spv_type(s, kir_t(SNT_U32, 1));
  const uint32_t first = s->digits ? 1 : words; /* members before the addresses */
  uint32_t *members = IR_NEW_ARRAY(s->m.arena, uint32_t, words + s->k->memories.count);
  if (!members) return;
  for (uint32_t i = 0; i < first; i++) members[i] = s->digits ? spv_array(s, u32, words, 4) : u32;
  const uint32_t addresses = spv_prepare_memories(s, members + first);
  const uint32_t block = spv_intern(&s->m, SpvOpTypeStruct, false, members, first + addresses, 2, NULL);
  for (uint32_t i = 0; i < first + addresses; i++)
    SPV(&s->m, SPV_DECORATIONS, SpvOpMemberDecorate, block, i, SpvDecorationOffset, i < first ? 4 * i : 4 * words + 8 * (i - first));
  SPV(&s->m, SPV_DECORATIONS, SpvOpDecorate, block, SpvDecorationBlock);
  s->push = spv_fresh(&s->m);
  SPV(&s->m, SPV_TYPES, SpvOpVariable, spv_pointer(s, SpvStorageClassPushConstant, block), s->push, SpvStorageClassPushConstant);
}

static uint32_t linear_group(spv *s) {
  const uint32_t u32 = spv_type(s, kir_t(SNT_U32, 1));
  uint32_t sum = spv_builtin(s, SpvBuiltInWorkgroupId, 2);
  for (uint32_t axis = 2; axis-- > 0;) {
    const uint32_t scaled = SPV_DO(s, SpvOpIMul, u32, sum, spv_builtin(s, SpvBuiltInNumWorkgroups, axis));
    sum = SPV_DO(s, SpvOpIAdd, u32, scaled, spv_builtin(s, SpvBuiltInWorkgroupId, axis));
  }
  return sum;
}

/* The same for all lanes as a driver sees it; that of the last group beyond it. */
static uint32_t group_by_digits(spv *s, uint32_t group, uint32_t count) {
  enum { BITS = 4, GROUP_BITS = 16 };
  const uint32_t u32 = spv_type(s, kir_t(SNT_U32, 1)), mask = spv_u32(s, KIR_DIGITS - 1);
  const uint32_t last = SPV_DO(s, SpvOpISub, u32, count, spv_u32(s, 1));
  uint32_t sum = 0;
  group = SPV_GLSL(s, GLSLstd450UMin, u32, group, last);
  for (uint32_t shift = 0; shift < GROUP_BITS; shift += BITS) {
    const uint32_t moved = SPV_DO(s, SpvOpShiftRightLogical, u32, group, spv_u32(s, shift));
    const uint32_t low = spv_digit(s, SPV_DO(s, SpvOpBitwiseAnd, u32, moved, mask));
    const uint32_t digit = SPV_DO(s, SpvOpShiftLeftLogical, u32, low, spv_u32(s, shift));
    sum = sum ? SPV_DO(s, SpvOpIAdd, u32, sum, digit) : digit;
  }
  return sum;
}

static void begin_body(spv *s) {
  const uint32_t body = s->digits ? 0 : spv_fresh(&s->m);
  const uint32_t last = spv_u32(s, kir_block_bytes(s->k) / 4);
  s->exit = s->digits ? 0 : spv_fresh(&s->m);
  s->id[0] = linear_group(s);
  const uint32_t count = spv_block_word(s, last);
  if (s->digits) {
    s->id[0] = group_by_digits(s, s->id[0], count);
    spv_begin_memories(s, s->id[0]);
    return;
  }
  const uint32_t inside = SPV_DO(s, SpvOpULessThan, spv_type(s, kir_t(SNT_BOOL, 1)), s->id[0], count);
  SPV(&s->m, SPV_CODE, SpvOpSelectionMerge, s->exit, 0);
  SPV(&s->m, SPV_CODE, SpvOpBranchConditional, inside, body, s->exit);
  spv_label(s, body);
  spv_begin_memories(s, s->id[0]);
}

static snt_result visit_begin(void *self, const kir_kernel *k) {
  spv *s = self;
  (void)k;
  s->glsl = spv_fresh(&s->m);
  s->function = spv_fresh(&s->m);
  const uint32_t nothing = spv_intern(&s->m, SpvOpTypeVoid, false, NULL, 0, 0, NULL);
  SPV(&s->m, SPV_LOCALS, SpvOpFunction, nothing, s->function, 0, SPV_TYPE(&s->m, SpvOpTypeFunction, nothing));
  s->block = spv_fresh(&s->m);
  SPV(&s->m, SPV_LOCALS, SpvOpLabel, s->block);
  spv_need(s, SpvCapabilityShader);
  spv_begin_matrices(s);
  declare_push_block(s);
  spv_declare_memories(s);
  begin_body(s);
  return s->result;
}

/* ---- instructions ---- */
static void need_narrow_arithmetic(spv *s, const kir_inst *in) {
  static const uint8_t capability[SNT_DTYPE_COUNT] = {
      [SNT_F16] = SpvCapabilityFloat16, [SNT_I8] = SpvCapabilityInt8,   [SNT_U8] = SpvCapabilityInt8,
      [SNT_I16] = SpvCapabilityInt16,   [SNT_U16] = SpvCapabilityInt16, [SNT_BF16] = SpvCapabilityInt16};
  if (in->op == KIR_load || in->op == KIR_cast || in->op == KIR_const || kir_ops[in->op].result == KIR_R_NONE) return;
  if (capability[in->type.base]) spv_need(s, capability[in->type.base]);
}

static snt_result visit_inst(void *self, const kir_kernel *k, uint32_t inst) {
  spv *s = self;
  if (s->places) spv_debug_line(s, inst);
  if (spv_control(s, inst)) return s->result;
  need_narrow_arithmetic(s, kir_at(k, inst));
  s->id[inst] = spv_special(s, inst);
  if (!s->id[inst] && kir_ops[kir_at(k, inst)->op].result != KIR_R_NONE)
    spv_fail(s, SNT_E_INTERNAL, inst, "SPIR-V has no %s of %s", kir_ops[kir_at(k, inst)->op].name,
             ir_dtypes[kir_at(k, inst)->type.base].name);
  return s->result;
}

/* ---- end: what could only be known now ---- */
static void put_entry(spv *s) {
  static const char library[] = "GLSL.std.450";
  uint32_t at = spv_open(&s->m, SPV_IMPORTS, SpvOpExtInstImport);
  spv_put(&s->m, SPV_IMPORTS, s->glsl);
  spv_put_text(&s->m, SPV_IMPORTS, library);
  spv_close(&s->m, SPV_IMPORTS, at);
  SPV(&s->m, SPV_MODEL, SpvOpMemoryModel, s->address_at ? SpvAddressingModelPhysicalStorageBuffer64 : SpvAddressingModelLogical,
      s->matrices ? SpvMemoryModelVulkan : SpvMemoryModelGLSL450);
  at = spv_open(&s->m, SPV_ENTRY, SpvOpEntryPoint);
  spv_put(&s->m, SPV_ENTRY, SpvExecutionModelGLCompute);
  spv_put(&s->m, SPV_ENTRY, s->function);
  spv_put_text(&s->m, SPV_ENTRY, "main");
  for (size_t i = 0; i < IR_COUNT(s->builtin); i++)
    if (s->builtin[i]) spv_put(&s->m, SPV_ENTRY, s->builtin[i]);
  spv_close(&s->m, SPV_ENTRY, at);
  SPV(&s->m, SPV_MODES, SpvOpExecutionMode, s->function, SpvExecutionModeLocalSize, s->k->items[0], s->k->items[1], s->k->items[2]);
}

/* What a mode promises is asked of the driver, where it can be: an optimizer may else take x + 0 for x, and a device flush denormals. All of them promise
   NaN, whose arithmetic is f32's. */
static void ask_float_controls(spv *s) {
  const kir_float_controls *can = &s->caps->float_controls;
  const bool same_bits = s->k->mode == SNT_NUMERICS_REPRODUCIBLE, same_zeros = same_bits || s->k->mode == SNT_NUMERICS_STRICT;
  const struct {
    uint32_t widths, mode, capability;
  } rows[] = {
      {can->signed_zero & (same_zeros ? ~0u : 32u), SpvExecutionModeSignedZeroInfNanPreserve, SpvCapabilitySignedZeroInfNanPreserve},
      {same_bits ? can->denormals : 0, SpvExecutionModeDenormPreserve, SpvCapabilityDenormPreserve},
      {same_bits ? can->round_even : 0, SpvExecutionModeRoundingModeRTE, SpvCapabilityRoundingModeRTE},
  };
  for (size_t i = 0; i < IR_COUNT(rows); i++)
    for (uint32_t width = 16; width <= 64; width *= 2) {
      if (!(rows[i].widths & width)) continue;
      SPV(&s->m, SPV_MODES, SpvOpExecutionMode, s->function, rows[i].mode, width);
      spv_need(s, rows[i].capability);
    }
}

static void put_capabilities(spv *s) {
  static const struct {
    uint32_t capability;
    const char *extension;
  } extensions[] = {{SpvCapabilityStorageBuffer8BitAccess, "SPV_KHR_8bit_storage"},
                    {SpvCapabilitySignedZeroInfNanPreserve, "SPV_KHR_float_controls"},
                    {SpvCapabilityDenormPreserve, "SPV_KHR_float_controls"},
                    {SpvCapabilityRoundingModeRTE, "SPV_KHR_float_controls"},
                    {SpvCapabilityVulkanMemoryModel, "SPV_KHR_vulkan_memory_model"},
                    {SpvCapabilityDotProduct, "SPV_KHR_integer_dot_product"},
                    {SpvCapabilityCooperativeMatrixKHR, "SPV_KHR_cooperative_matrix"},
                    {SpvCapabilityPhysicalStorageBufferAddresses, "SPV_KHR_physical_storage_buffer"}};
  for (uint32_t i = 0; i < s->needed.count; i++) {
    SPV(&s->m, SPV_CAPS, SpvOpCapability, s->needed.at[i]);
    for (size_t e = 0; e < IR_COUNT(extensions); e++) {
      if (s->needed.at[i] != extensions[e].capability) continue;
      const uint32_t at = spv_open(&s->m, SPV_EXTENSIONS, SpvOpExtension);
      spv_put_text(&s->m, SPV_EXTENSIONS, extensions[e].extension);
      spv_close(&s->m, SPV_EXTENSIONS, at);
    }
  }
}

static snt_result visit_end(void *self, const kir_kernel *k) {
  spv *s = self;
  (void)k;
  if (s->exit) {
    SPV(&s->m, SPV_CODE, SpvOpBranch, s->exit);
    spv_label(s, s->exit);
  }
  spv_inst(&s->m, SPV_CODE, SpvOpReturn, NULL, 0);
  spv_inst(&s->m, SPV_CODE, SpvOpFunctionEnd, NULL, 0);
  spv_own_functions(s);
  put_entry(s);
  ask_float_controls(s);
  put_capabilities(s);
  spv_put_name(s, s->function, s->k->name);
  if (s->places) spv_debug_names(s);
  return s->result;
}

static snt_result emit(const kir_kernel *k, const kir_caps *caps, ir_arena *arena, codegen_code *out, snt_diag *diag) {
  static const kernel_visitor visitor = {visit_begin, visit_inst, visit_end};
  spv s = {.k = k, .caps = caps, .diag = diag, .result = SNT_OK, .address_at = kir_address_at(k, caps)};
  const uint32_t digits = kir_digits(k);
  size_t count = 0;
  const kir_own *whole = spv_own_whole(k);
  if (whole) return spv_own_module(whole, out, diag);
  if (digits) s.digits = k->scalars.at[digits - 1].offset / 4 + 1;
  spv_init(&s.m, arena);
  s.id = IR_NEW_ARRAY(arena, uint32_t, k->insts.count + 1u);
  s.memory = IR_NEW_ARRAY(arena, spv_memory, k->memories.count + 1u);
  s.region = IR_NEW_ARRAY(arena, spv_region, k->insts.count + 1u);
  s.own = IR_NEW_ARRAY(arena, uint32_t, k->owns.count + 1u);
  if (!s.id || !s.memory || !s.region || !s.own) return ir_fail(diag, SNT_E_HOST_MEM, "spirv", 0, "out of memory");
  if (caps->about) spv_debug_source(&s);
  SNT_TRY(kernel_walk(k, &visitor, &s));
  const uint32_t *words = spv_assemble(&s.m, &count);
  if (!words) return ir_fail(diag, SNT_E_HOST_MEM, "spirv", 0, "out of memory");
  *out = (codegen_code){words, count * sizeof *words};
  return SNT_OK;
}

const codegen_target codegen_spirv = {
    .name = "spirv", .suffix = ".spv", .bit = SNT_TARGET_SPIRV, .caps = &spirv_caps, .own_text = spv_own_text, .emit = emit};
