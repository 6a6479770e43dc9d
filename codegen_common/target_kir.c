/* The target "kir": the kernel's own text form, for the interpreter and for reading. */
#include "codegen_common/targets.h"

// clang-format off
const kir_caps kir_text_caps = {.target = "interp", .max_lanes = 16, .vector_memory = 128, .f16_arithmetic = true, .f16_storage = true, .bf16_storage = true,
                                .int8_storage = true, .int16_storage = true, .int64 = true, .f64 = true, .fma_fused = true, .fma_fast = true, .exp2 = true,
                                .keeps_math = true, .subgroups = true, .subgroup_arithmetic = true, .exact_div = true, .exact_sqrt = true, .prefetch = true,
                                .stream = true, .texel = true, .images = true, .async_copy = true, .mma = KIR_MMA_ALL(KIR_MMA_ANY), .fragment_lanes = true, .atomics_f32 = true, .oob_zero = true,
                                .shuffle = true, .hred = true, .wrap = true, .divmod = true, .minmax_nan = true, .ix = true, .fill = true,
                                .lanes_memory = true, .pack2 = true, .dot4 = true, .permute = 16, .push_bytes = 128};
// clang-format on

static snt_result emit(const kir_kernel *k, const kir_caps *caps, ir_arena *arena, codegen_code *out, snt_diag *diag) {
  (void)caps;
  ir_text text;
  ir_text_init(&text, arena);
  kir_print(k, &text);
  if (text.failed) return ir_fail(diag, SNT_E_HOST_MEM, "kir", 0, "out of memory");
  *out = (codegen_code){text.at, text.length};
  return SNT_OK;
}

const codegen_target codegen_kir = {"kir", ".kir", SNT_TARGET_HOST, &kir_text_caps, NULL, emit, NULL, NULL};
