/* CUDA C++ as data: the subset that NVRTC, nvcc and (behind a shim) g++ compile without a header. Arithmetic is scalar; vectors exist
   between a wide load or store and their lanes, as snt_vec<T, N>. f16 and bf16 are held as unsigned short bits. */
#include "codegen_common/ctext.h"
#include "codegen_common/targets.h"
#include "codegen_cuda/helpers.h"

// clang-format off
const kir_caps cuda_caps = {.target = "cuda", .max_lanes = 1, .vector_memory = 16, .f16_storage = true, .bf16_storage = true, .int8_storage = true,
                            .int16_storage = true, .int64 = true, .f64 = true, .fma_fused = true, .fma_fast = true, .exp2 = true, .subgroups = true,
                            .subgroup_arithmetic = true, .exact_div = true, .exact_sqrt = true, .minmax_nan = true, .stream = true, .atomics_f32 = true, .pack2 = true, .dot4 = true, .mma = {KIR_MMA_TENSOR_CORES}, .fragment_lanes = true, .async_copy = true,
                            .subgroup_size = 32, .narrow_local = true, .push_bytes = 2048};
// clang-format on

#define NO_IMAGES(op) CT_CELL(op, CT_ALL, "?the CUDA target has no images")
#define ITEM "(threadIdx.x + $Xu * (threadIdx.y + $Yu * threadIdx.z))"
#define WIDTH "($cu < 32u ? $cu : 32u)"

// clang-format off
static const ctext_cell cells[] = {
    CT_VECTORS(splat, CT_ALL, "$t{{$D}}"),
    CT_CELL(splat, CT_ALL, "$0"),
    CT_VECTORS(bitcast, CT_ALL, "snt_bits<$t>($0)"),
    CT_CELL(bitcast, CT_BIT(F32), "($t)__float_as_uint($0)"),
    CT_CELL(bitcast, CT_ALL, "snt_bits<$t>($0)"),
    CT_VECTORS(vec, CT_ALL, "$t{{$a}}"),
    CT_CELL(vec, CT_ALL, "$0"),
    CT_VECTORS(extract, CT_ALL, "$0.s[$l]"),
    CT_CELL(extract, CT_ALL, "$0"),
    CT_VECTORS(insert, CT_ALL, "$0; $v.s[$l] = $2"),
    CT_CELL(insert, CT_ALL, "$2"),
    CT_VECTORS(select, CT_ALL, "!legalise"),
    CT_VECTORS(unpack2, CT_BIT(F32), "$t{{snt_f32_from_f16((unsigned short)($0 & 0xffffu)), snt_f32_from_f16((unsigned short)($0 >> 16))}}"),
    CT_VECTORS(unpack2, CT_BIT(U32), "$t{{__uint_as_float($0 << 16), __uint_as_float($0 & 0xffff0000u)}}"),
    CT_LOWERED(unpack2, "legalise"),
    CT_VECTORS(pack2, CT_BIT(F32), "(unsigned)snt_f16_from_f32($0.s[0]) | (unsigned)snt_f16_from_f32($0.s[1]) << 16"),
    CT_VECTORS(pack2, CT_BIT(U32), "(unsigned)snt_bf16_from_f32($0.s[0]) | (unsigned)snt_bf16_from_f32($0.s[1]) << 16"),
    CT_LOWERED(pack2, "legalise"),
    CT_VECTORS(add, CT_ALL, "!legalise"),
    CT_VECTORS(cast, CT_ALL, "!legalise"),
    CT_CELL(local, CT_ALL, "threadIdx.$k"),
    CT_CELL(sg_id, CT_ALL, ITEM " / 32u"),
    CT_CELL(sg_lane, CT_ALL, ITEM " & 31u"),
    CT_CELL(sg_count, CT_ALL, "($cu + 31u) / 32u"),
    CT_CELL(abs, CT_BIT(F32), "fabsf($0)"),
    CT_CELL(fma, CT_BIT(F32), "fmaf($0, $1, $2)"),
    CT_CELL(fma, CT_BIT(F64), "fma($0, $1, $2)"),
    CT_CELL(exp2, CT_BIT(F32), "exp2f($0)"),
    CT_CELL(div, CT_BIT(F32), "__fdiv_rn($0, $1)"),
    CT_CELL(rem, CT_BIT(F32), "fmodf($0, $1)"),
    CT_CELL(sqrt, CT_BIT(F32), "__fsqrt_rn($0)"),
    CT_CELL(sqrt, CT_BIT(F64), "sqrt($0)"),
    CT_CELL(max, CT_BIT(F32), "snt_max($0, $1)"),
    CT_CELL(min, CT_BIT(F32), "snt_min($0, $1)"),
    CT_CELL(rcp, CT_BIT(F32), "__fdiv_rn(1.0f, $0)"),
    CT_CELL(rcp, CT_BIT(F64), "1.0 / $0"),
    CT_CELL(rsqrt, CT_BIT(F32), "__fdiv_rn(1.0f, __fsqrt_rn($0))"),
    CT_CELL(rsqrt, CT_BIT(F64), "1.0 / sqrt($0)"),
    CT_CELL(floor, CT_BIT(F32), "floorf($0)"),
    CT_CELL(floor, CT_BIT(F64), "floor($0)"),
    CT_CELL(ceil, CT_BIT(F32), "ceilf($0)"),
    CT_CELL(ceil, CT_BIT(F64), "ceil($0)"),
    CT_CELL(trunc, CT_BIT(F32), "truncf($0)"),
    CT_CELL(trunc, CT_BIT(F64), "trunc($0)"),
    CT_CELL(rint, CT_BIT(F32), "rintf($0)"),
    CT_CELL(rint, CT_BIT(F64), "rint($0)"),
    CT_CELL(mulhi, CT_ALL, "(unsigned)((unsigned long long)$0 * $1 >> 32)"),
    CT_CELL(popcount, CT_ALL, "($t)snt_popcount(($u)$0)"),
    CT_CELL(clz, CT_ALL, "($t)snt_clz(($u)$0, $B + 1)"),
    CT_CELL(iota, CT_ALL, "0"),
    CT_LOWERED(shuffle, "legalise"),
    CT_LOWERED(prefetch, "legalise"),
    CT_CELL(atomic_add, CT_ALL, "atomicAdd(&$m[$j], $V)"),
    CT_CELL(atomic_min, CT_ALL, "atomicMin(&$m[$j], $V)"),
    CT_CELL(atomic_max, CT_ALL, "atomicMax(&$m[$j], $V)"),
    CT_CELL(atomic_or, CT_ALL, "atomicOr(&$m[$j], $V)"),
    CT_CELL(atomic_and, CT_ALL, "atomicAnd(&$m[$j], $V)"),
    CT_CELL(atomic_cas, CT_ALL, "atomicCAS(&$m[$j], $W, $V)"),
    NO_IMAGES(tex_sample),
    NO_IMAGES(tex_load),
    NO_IMAGES(tex_store),
    CT_CELL(sg_add, CT_ALL, "snt_sg_add($0, " WIDTH ")"),
    CT_CELL(sg_max, CT_ALL, "snt_sg_max($0, " WIDTH ")"),
    CT_CELL(sg_min, CT_ALL, "snt_sg_min($0, " WIDTH ")"),
    CT_CELL(sg_shuffle, CT_ALL, "__shfl_sync(0xffffffffu, $0, (int)$1)"),
    CT_CELL(sg_barrier, CT_ALL, "__syncwarp()"),
    CT_CELL(barrier, CT_ALL, "__syncthreads()"),
    CT_CELL(fill, CT_ALL, "snt_fill($m, $V)"),
    CT_CELL(async_copy, CT_ALL, "snt_copy<$p>($m + $j, $0, $V)"),
    CT_CELL(async_commit, CT_ALL, "snt_copy_commit()"),
    CT_CELL(async_wait, CT_ALL, "snt_copy_wait<$i>()"),
    CT_CELL(mma_load, CT_ALL, "snt_mma_load<$t>($m, $j, $pu, $f)"),
    CT_CELL(mma_store, CT_ALL, "snt_mma_store($m + $j, $V, $pu)"),
    CT_CELL(mma, CT_ALL, "snt_mma($0, $1, $2)"),
    CT_CELL(mma_get, CT_ALL, "$0.r[$l]"),
    CT_CELL(mma_make, CT_BIT(F32), "$t{{$a}}"),
    CT_CELL(mma_make, CT_ALL, "snt_mma_make<$t>({{$a}})"),
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
    .kernel = "extern \"C\" __global__ void __launch_bounds__($c, $g) ",
    .group = "const unsigned snt_group = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);\n  if (snt_group >= $0) return",
    .word = "s.w[$X]",
    .block_param = "const snt_block s",
    .block_type = "struct snt_block { unsigned w[$X]; };\n",
    .restrict_word = "__restrict__ ",
    .space = {"", "", "", "", "", ""},
    .array = {[KIR_LOCAL] = "alignas($Y) __shared__ $e $m[$X]", [KIR_PRIVATE] = "alignas($Y) $e $m[$X]", [KIR_CONSTANT] = "static const $e $m[$X]"},
    .overlay = "$e *$m = ($e *)(void *)$0",
    .pool = "SNT_LOCAL($X)",
    .pool_beyond = 48 << 10, /* what arrays may have */
    .type = {[SNT_F32] = "float", [SNT_F64] = "double", [SNT_F16] = "unsigned short", [SNT_BF16] = "unsigned short", [SNT_I8] = "signed char",
             [SNT_I16] = "short", [SNT_I32] = "int", [SNT_I64] = "long long", [SNT_U8] = "unsigned char", [SNT_U16] = "unsigned short",
             [SNT_U32] = "unsigned", [SNT_U64] = "unsigned long long", [SNT_BOOL] = "bool"},
    .stored_bool = "unsigned char",
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
    .cells = cells,
    .cell_count = IR_COUNT(cells),
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
