/* CUDA C++ as data: the subset that NVRTC, nvcc and (behind a shim) g++ compile without a header. Arithmetic is scalar; vectors exist
   between a wide load or store and their lanes, as snt_vec<T, N>. f16 and bf16 are held as unsigned short bits. */
#include "codegen_common/ctext.h"
#include "codegen_common/targets.h"
#include "codegen_cuda/helpers.h"

// clang-format off
const kir_caps cuda_caps = {.target = "cuda", .max_lanes = 1, .vector_memory = 16, .f16_storage = true, .bf16_storage = true, .int8_storage = true,
                            .int16_storage = true, .int64 = true, .f64 = true, .fma_fused = true, .fma_fast = true, .subgroups = true,
                            .subgroup_arithmetic = true, .exact_div = true, .exact_sqrt = true, .stream = true, .atomics_f32 = true, .pack2 = true, .dot4 = true, .mma = KIR_MMA_ALL(16), .async_copy = true,
                            .subgroup_size = 32, .narrow_local = true, .push_bytes = 2048};
// clang-format on

#define LOWERED(pass) \
  { "!" pass, NULL }
#define UNSUPPORTED(why) \
  { "?" why, NULL }
#define ALL(text) \
  { text, NULL }
#define FLOAT(single, twice) \
  { NULL, CT_BY([CT_F32] = single, [CT_F64] = twice) }
#define NO_IMAGES UNSUPPORTED("the CUDA target has no images")
#define ITEM "(threadIdx.x + $Xu * (threadIdx.y + $Yu * threadIdx.z))"
#define WIDTH "($cu < 32u ? $cu : 32u)"

// clang-format off
static const ctext_cell vector_op[KIR_OP_COUNT] = {
    [KIR_splat] = ALL("$t{{$D}}"),
    [KIR_bitcast] = ALL("snt_bits<$t>($0)"),
    [KIR_vec] = ALL("$t{{$a}}"),
    [KIR_extract] = ALL("$0.s[$l]"),
    [KIR_insert] = ALL("$0; $v.s[$l] = $2"),
    [KIR_select] = LOWERED("legalise"),
    [KIR_unpack2] = {NULL, CT_BY([CT_F32] = "$t{{snt_f32_from_f16((unsigned short)($0 & 0xffffu)), snt_f32_from_f16((unsigned short)($0 >> 16))}}",
                            [CT_U32] = "$t{{__uint_as_float($0 << 16), __uint_as_float($0 & 0xffff0000u)}}")},
    [KIR_pack2] = {NULL, CT_BY([CT_F32] = "(unsigned)snt_f16_from_f32($0.s[0]) | (unsigned)snt_f16_from_f32($0.s[1]) << 16",
                          [CT_U32] = "(unsigned)snt_bf16_from_f32($0.s[0]) | (unsigned)snt_bf16_from_f32($0.s[1]) << 16")},
    [KIR_add] = LOWERED("legalise"),
    [KIR_cast] = LOWERED("legalise"),
};
// clang-format on

static const ctext_cast casts[] = {
    {CT_BIT(F16), CT_BIT(F32), CT_SCALAR, false, "snt_f32_from_f16($0)"},
    {CT_BIT(F32), CT_BIT(F16), CT_SCALAR, false, "snt_f16_from_f32($0)"},
    {CT_BIT(BF16), CT_BIT(F32), CT_SCALAR, false, "__uint_as_float((unsigned)$0 << 16)"},
    {CT_BIT(F32), CT_BIT(BF16), CT_SCALAR, false, "snt_bf16_from_f32($0)"},
    {CT_FLOATS | CT_INTS | CT_BOOLS, CT_BOOLS, CT_SCALAR, false, "$0 != 0"},
    {CT_FLOATS, CT_INTS, CT_SCALAR, false, "snt_float_to_int<$t>($R)"},
    {CT_INTS, CT_INTS, CT_SCALAR, true, "snt_saturate<$t>($0)"},
    {CT_FLOATS | CT_INTS | CT_BOOLS, CT_FLOATS | CT_INTS, CT_SCALAR, false, "($t)$0"},
};

// clang-format off
const dialect dialect_cuda = {
    .name = "cuda",
    .base = &dialect_c,
    .function = "static __device__ ",
    .own = KIR_OWN_CUDA,
    .kernel = "extern \"C\" __global__ void __launch_bounds__($c) ",
    .group = "const unsigned snt_group = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);\n  if (snt_group >= $0) return",
    .word = "s.w[$X]",
    .block_param = "const snt_block s",
    .block_type = "struct snt_block { unsigned w[$X]; };\n",
    .restrict_word = "__restrict__ ",
    .space = {"", "", "", "", "", ""},
    .array = {[KIR_LOCAL] = "alignas($Y) __shared__ $e $m[$X]", [KIR_PRIVATE] = "alignas($Y) $e $m[$X]", [KIR_CONSTANT] = "static const $e $m[$X]"},
    .overlay = "$e *$m = ($e *)(void *)$0",
    .type = {[SNT_F32] = "float", [SNT_F64] = "double", [SNT_F16] = "unsigned short", [SNT_BF16] = "unsigned short", [SNT_I8] = "signed char",
             [SNT_I16] = "short", [SNT_I32] = "int", [SNT_I64] = "long long", [SNT_U8] = "unsigned char", [SNT_U16] = "unsigned short",
             [SNT_U32] = "unsigned", [SNT_U64] = "unsigned long long", [SNT_BOOL] = "bool"},
    .storage = {[SNT_BOOL] = "unsigned char"},
    .fragment = "snt_",
    .vector = "snt_vec<$b, $n>",
    .literal = {[SNT_F32] = "$0f", [SNT_F64] = "$0", [SNT_F16] = "(unsigned short)$0", [SNT_BF16] = "(unsigned short)$0", [SNT_I8] = "(signed char)$0",
                [SNT_I16] = "(short)$0", [SNT_I32] = "$0", [SNT_I64] = "$0ll", [SNT_U8] = "(unsigned char)$0", [SNT_U16] = "(unsigned short)$0",
                [SNT_U32] = "$0u", [SNT_U64] = "$0ull", [SNT_BOOL] = "$0"},
    .vector_literal = "$t{{$D}}",
    .vector_list = "$t{{$0}}",
    .scalar = {[SNT_F32] = "__uint_as_float($0)", [SNT_I32] = "(int)$0", [SNT_U32] = "$0", [SNT_BOOL] = "($0 != 0)",
               [SNT_F64] = "snt_bits<double>($0 | (unsigned long long)$1 << 32)", [SNT_I64] = "(long long)($0 | (unsigned long long)$1 << 32)",
               [SNT_U64] = "($0 | (unsigned long long)$1 << 32)"},
    .unroll = "#pragma unroll",
    .unroll_by = "#pragma unroll $X",
    .rolled = "#pragma unroll 1",
    .wide_index = "(long long)(int)$0",
    .load = {.cell = "$m[$j]", .boolean = "$m[$j] != 0", .aligned = "*(const $t *)($m + $j)"},
    .store = {.cell = "$m[$j] = $0", .boolean = "$m[$j] = $0", .aligned = "*($t *)($m + $j) = $0", .stream = "SNT_STREAM($0, ($t *)($m + $j))"},
    .op =
        {
            [KIR_local] = ALL("threadIdx.$k"),
            [KIR_sg_id] = ALL(ITEM " / 32u"),
            [KIR_sg_lane] = ALL(ITEM " & 31u"),
            [KIR_sg_count] = ALL("($cu + 31u) / 32u"),
            [KIR_abs] = {NULL, CT_BY([CT_F32] = "fabsf($0)")},
            [KIR_fma] = FLOAT("fmaf($0, $1, $2)", "fma($0, $1, $2)"),
            [KIR_div] = {NULL, CT_BY([CT_F32] = "__fdiv_rn($0, $1)")},
            [KIR_rem] = {NULL, CT_BY([CT_F32] = "fmodf($0, $1)")},
            [KIR_sqrt] = FLOAT("__fsqrt_rn($0)", "sqrt($0)"),
            [KIR_rcp] = FLOAT("__fdiv_rn(1.0f, $0)", "1.0 / $0"),
            [KIR_rsqrt] = FLOAT("__fdiv_rn(1.0f, __fsqrt_rn($0))", "1.0 / sqrt($0)"),
            [KIR_floor] = FLOAT("floorf($0)", "floor($0)"),
            [KIR_ceil] = FLOAT("ceilf($0)", "ceil($0)"),
            [KIR_trunc] = FLOAT("truncf($0)", "trunc($0)"),
            [KIR_rint] = FLOAT("rintf($0)", "rint($0)"),
            [KIR_mulhi] = ALL("(unsigned)((unsigned long long)$0 * $1 >> 32)"),
            [KIR_popcount] = ALL("($t)snt_popcount(($u)$0)"),
            [KIR_clz] = ALL("($t)snt_clz(($u)$0, $B + 1)"),
            [KIR_bitcast] = {"snt_bits<$t>($0)", CT_BY([CT_F32] = "($t)__float_as_uint($0)")},
            [KIR_splat] = ALL("$0"), [KIR_vec] = ALL("$0"), [KIR_iota] = ALL("0"), [KIR_extract] = ALL("$0"), [KIR_insert] = ALL("$2"),
            [KIR_shuffle] = LOWERED("legalise"),
            [KIR_unpack2] = LOWERED("legalise"),
            [KIR_pack2] = LOWERED("legalise"),
            [KIR_prefetch] = LOWERED("legalise"),
            [KIR_atomic_add] = ALL("atomicAdd(&$m[$j], $V)"),
            [KIR_atomic_min] = ALL("atomicMin(&$m[$j], $V)"),
            [KIR_atomic_max] = ALL("atomicMax(&$m[$j], $V)"),
            [KIR_atomic_or] = ALL("atomicOr(&$m[$j], $V)"),
            [KIR_atomic_and] = ALL("atomicAnd(&$m[$j], $V)"),
            [KIR_atomic_cas] = ALL("atomicCAS(&$m[$j], $W, $V)"),
            [KIR_tex_sample] = NO_IMAGES,
            [KIR_tex_load] = NO_IMAGES,
            [KIR_tex_store] = NO_IMAGES,
            [KIR_sg_add] = ALL("snt_sg_add($0, " WIDTH ")"),
            [KIR_sg_max] = ALL("snt_sg_max($0, " WIDTH ")"),
            [KIR_sg_min] = ALL("snt_sg_min($0, " WIDTH ")"),
            [KIR_sg_shuffle] = ALL("__shfl_sync(0xffffffffu, $0, (int)$1)"),
            [KIR_sg_barrier] = ALL("__syncwarp()"),
            [KIR_barrier] = ALL("__syncthreads()"),
            [KIR_fill] = ALL("snt_fill($m, $V)"),
            [KIR_async_copy] = ALL("snt_copy<$p>($m + $j, $0, $V)"),
            [KIR_async_commit] = ALL("snt_copy_commit()"),
            [KIR_async_wait] = ALL("snt_copy_wait<$i>()"),
            [KIR_mma_load] = ALL("snt_mma_load<$t>($m + $j, $pu, $f)"),
            [KIR_mma_store] = ALL("snt_mma_store($m + $j, $V, $pu)"),
            [KIR_mma] = ALL("snt_mma($0, $1, $2)"),
        },
    .vector_op = vector_op,
    .casts = casts,
    .cast_count = IR_COUNT(casts),
    .helpers = cuda_helpers,
    .helper_count = &cuda_helper_count,
};
// clang-format on

static snt_result emit(const kir_kernel *k, const kir_caps *caps, ir_arena *arena, codegen_code *out, snt_diag *diag) {
  (void)caps;
  return ctext_emit(&dialect_cuda, k, arena, out, diag);
}

const codegen_target codegen_cuda = {"cuda", ".cu", SNT_TARGET_CUDA, &cuda_caps, NULL, emit, NULL, NULL};
