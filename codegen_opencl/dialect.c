/* OpenCL C 1.2 as data. Vectors are the language's own; a vector of bool is a vector of int with lanes 0 or -1; f16 and bf16 are held
   as ushort bits. Scalar arithmetic comes from the C dialect. */
#include "codegen_common/ctext.h"
#include "codegen_common/targets.h"
#include "codegen_opencl/helpers.h"

// clang-format off
const kir_caps opencl_caps = {
    .target = "opencl", .max_lanes = 16, .vector_memory = 128, .f16_storage = true, .bf16_storage = true, .int8_storage = true, .int16_storage = true,
    .int64 = true, .f64 = true, .fma_fused = true, .fma_fast = true, .exact_div = true, .exact_sqrt = true, .prefetch = true, .stream = true,
    .images = true, .atomics_f32 = true, .shuffle = true, .pack2 = true, .dot4 = true, .permute = 16, .narrow_local = true, .push_bytes = 1024};
// clang-format on

#define NO_MATRIX(op) CT_CELL(op, CT_ALL, "?OpenCL C has no matrix fragments")

/* Vectors: signed sums are formed unsigned by reinterpretation. Comparisons give lanes as wide as the operands. */
#define WRAPPING(op, o) \
  CT_VECTORS(op, CT_BIT(I32) | CT_BIT(I64) | CT_NARROW, "as_$t(as_$u($0) " o " as_$u($1))"), CT_VECTORS(op, CT_ALL, "$0 " o " $1")
#define COMPARE(op, o) \
  CT_VECTORS(op, CT_BIT(F32) | CT_BIT(I32) | CT_BIT(U32) | CT_BOOLS, "$0 " o " $1"), CT_VECTORS(op, CT_ALL, "convert_$t($0 " o " $1)")
#define EXTREME(op, o, call) \
  CT_VECTORS(op, CT_FLOATS, "select($1, $0, ($0 " o " $1) | ($0 != $0))"), CT_VECTORS(op, CT_ALL, call "($0, $1)")

// clang-format off
static const ctext_cell cells[] = {
    WRAPPING(add, "+"),
    WRAPPING(sub, "-"),
    WRAPPING(mul, "*"),
    CT_VECTORS(neg, CT_BIT(I32) | CT_BIT(I64) | CT_NARROW, "as_$t(-as_$u($0))"),
    CT_VECTORS(neg, CT_ALL, "-$0"),
    CT_VECTORS(abs, CT_FLOATS, "fabs($0)"),
    CT_VECTORS(abs, CT_ALL, "as_$t(abs($0))"),
    CT_CELL(abs, CT_BIT(F32), "fabs($0)"),
    EXTREME(min, "<", "min"),
    EXTREME(max, ">", "max"),
    CT_VECTORS(dot4, CT_ALL, "snt_dot4($0, $1, $2)"),
    CT_VECTORS(rem, CT_FLOATS, "fmod($0, $1)"),
    CT_VECTORS(rem, CT_ALL, "$0 % $1"),
    CT_CELL(rem, CT_BIT(F32), "fmod($0, $1)"),
    CT_VECTORS(rcp, CT_ALL, "($t)(1) / $0"),
    CT_VECTORS(wrap, CT_ALL, "!legalise"),
    CT_VECTORS(xor, CT_ALL, "$0 ^ $1"),
    CT_VECTORS(not, CT_ALL, "~$0"),
    CT_VECTORS(shl, CT_ALL, "$0 << $1"),
    CT_VECTORS(shr, CT_ALL, "$0 >> $1"),
    COMPARE(eq, "=="),
    COMPARE(ne, "!="),
    COMPARE(lt, "<"),
    COMPARE(le, "<="),
    COMPARE(gt, ">"),
    COMPARE(ge, ">="),
    CT_VECTORS(isnan, CT_BIT(F32), "$0 != $0"),
    CT_VECTORS(isnan, CT_BIT(F64), "convert_$t($0 != $0)"),
    CT_VECTORS(isinf, CT_BIT(F32), "isinf($0)"),
    CT_VECTORS(isinf, CT_BIT(F64), "convert_$t(isinf($0))"),
    CT_VECTORS(select, CT_BIT(F32) | CT_BIT(I32) | CT_BIT(U32) | CT_BOOLS, "select($2, $1, $0)"),
    CT_VECTORS(select, CT_ALL, "select($2, $1, convert_$s($0))"),
    CT_PICKS(CT_ALL, "snt_pick($0) ? $1 : $2"),
    CT_VECTORS(splat, CT_BOOLS, "-($t)($0)"),
    CT_VECTORS(splat, CT_ALL, "($t)($0)"),
    CT_CELL(splat, CT_ALL, "$0"),
    CT_VECTORS(vec, CT_BOOLS, "-($t)($a)"),
    CT_VECTORS(vec, CT_ALL, "($t)($a)"),
    CT_CELL(vec, CT_ALL, "$0"),
    CT_VECTORS(iota, CT_ALL, "($t)($z)"),
    CT_CELL(iota, CT_ALL, "0"),
    CT_VECTORS(extract, CT_BOOLS, "$0.s$x != 0"),
    CT_VECTORS(extract, CT_ALL, "$0.s$x"),
    CT_CELL(extract, CT_ALL, "$0"),
    CT_VECTORS(insert, CT_BOOLS, "$0; $v.s$x = -(int)$2"),
    CT_VECTORS(insert, CT_ALL, "$0; $v.s$x = $2"),
    CT_CELL(insert, CT_ALL, "$2"),
    CT_VECTORS(permute, CT_BIT(F32), "SNT_PERMUTE($0, $P)"),
    CT_VECTORS(scalef, CT_BIT(F32), "SNT_SCALEF($0, $1)"),
    CT_VECTORS(shuffle, CT_BOOLS, "-($t)($h)"),
    CT_VECTORS(shuffle, CT_ALL, "($t)($h)"),
    CT_LOWERED(shuffle, "legalise"),
    CT_VECTORS(unpack2, CT_BIT(F32), "snt_f32_from_f16_2(as_ushort2($0))"),
    CT_VECTORS(unpack2, CT_BIT(U32), "as_float2((uint2)($0 << 16, $0 & 0xffff0000u))"),
    CT_VECTORS(pack2, CT_BIT(F32), "as_uint(snt_f16_from_f32_2($0))"),
    CT_VECTORS(pack2, CT_BIT(U32), "as_uint(snt_bf16_from_f32_2($0))"),
    CT_CELL(local, CT_ALL, "(uint)get_local_id($K)"),
    CT_LOWERED(sg_id, "legalise"),
    CT_LOWERED(sg_lane, "legalise"),
    CT_LOWERED(sg_count, "legalise"),
    CT_CELL(fma, CT_FLOATS, "fma($0, $1, $2)"),
    CT_CELL(sqrt, CT_FLOATS, "sqrt($0)"),
    CT_CELL(rsqrt, CT_FLOATS, "1 / sqrt($0)"),
    CT_CELL(floor, CT_FLOATS, "SNT_FLOOR($0)"),
    CT_CELL(ceil, CT_FLOATS, "SNT_CEIL($0)"),
    CT_CELL(trunc, CT_FLOATS, "SNT_TRUNC($0)"),
    CT_CELL(rint, CT_FLOATS, "SNT_RINT($0)"),
    CT_CELL(mulhi, CT_ALL, "mul_hi($0, $1)"),
    CT_CELL(popcount, CT_ALL, "popcount($0)"),
    CT_CELL(clz, CT_ALL, "clz($0)"),
    CT_CELL(bitcast, CT_ALL, "as_$t($0)"),
    CT_CELL(prefetch, CT_ALL, "SNT_PREFETCH($m + $j, $p, $f)"),
    CT_CELL(atomic_add, CT_BIT(F32), "snt_atomic_add_f32(&$m[$j], $V)"),
    CT_CELL(atomic_add, CT_ALL, "atomic_add(&$m[$j], $V)"),
    CT_CELL(atomic_min, CT_ALL, "atomic_min(&$m[$j], $V)"),
    CT_CELL(atomic_max, CT_ALL, "atomic_max(&$m[$j], $V)"),
    CT_CELL(atomic_or, CT_ALL, "atomic_or(&$m[$j], $V)"),
    CT_CELL(atomic_and, CT_ALL, "atomic_and(&$m[$j], $V)"),
    CT_CELL(atomic_cas, CT_ALL, "atomic_cmpxchg(&$m[$j], $W, $V)"),
    CT_CELL(tex_sample, CT_ALL, "read_imagef($m, SNT_SAMPLER_$S, (float2)($0, $1))"),
    CT_CELL(tex_load, CT_ALL, "read_imagef($m, SNT_NEAREST, (int2)((int)$0, (int)$1))"),
    CT_CELL(tex_store, CT_ALL, "write_imagef($m, (int2)((int)$0, (int)$1), $2)"),
    CT_LOWERED(sg_add, "legalise"),
    CT_LOWERED(sg_max, "legalise"),
    CT_LOWERED(sg_min, "legalise"),
    CT_LOWERED(sg_shuffle, "legalise"),
    CT_LOWERED(sg_barrier, "legalise"),
    CT_CELL(barrier, CT_ALL, "barrier(SNT_SYNC_$f)"),
    NO_MATRIX(mma_load),
    NO_MATRIX(mma_store),
    NO_MATRIX(mma),
    NO_MATRIX(mma_get),
    NO_MATRIX(mma_make),
};
// clang-format on

static const ctext_cast casts[] = {
    {CT_BIT(F16), CT_BIT(F32), CT_ANY_SHAPE, false, "snt_f32_from_f16_$n($0)"},
    {CT_BIT(F32), CT_BIT(F16), CT_ANY_SHAPE, false, "snt_f16_from_f32_$n($0)"},
    {CT_BIT(BF16), CT_BIT(F32), CT_ANY_SHAPE, false, "as_$t(convert_$w($0) << 16)"},
    {CT_BIT(F32), CT_BIT(BF16), CT_ANY_SHAPE, false, "snt_bf16_from_f32_$n($0)"},
    {CT_BOOLS, CT_BOOLS, CT_ANY_SHAPE, false, "$0"},
    {CT_FLOATS | CT_INTS, CT_BOOLS, CT_SCALAR, false, "$0 != 0"},
    {CT_FLOATS | CT_INTS, CT_BOOLS, CT_VECTOR, false, "convert_$t($0 != 0)"},
    {CT_BOOLS, CT_FLOATS | CT_INTS, CT_SCALAR, false, "($t)$0"},
    {CT_BOOLS, CT_FLOATS | CT_INTS, CT_VECTOR, false, "convert_$t($0 & 1)"},
    {CT_FLOATS, CT_INTS, CT_SCALAR, false, "$0 != $0 ? ($t)0 : convert_$t_sat$r($0)"}, /* some drivers saturate a NaN */
    {CT_FLOATS, CT_INTS, CT_VECTOR, false, "convert_$t_sat$r(select($0, ($T)(0), $0 != $0))"},
    {CT_INTS, CT_INTS, CT_ANY_SHAPE, true, "convert_$t_sat($0)"},
    {CT_BIT(I8) | CT_BIT(I16) | CT_BIT(I32), CT_BIT(I64), CT_SCALAR, false,
     "as_long((int2)((int)$0, (int)$0 >> 31))"}, /* one driver compares a conversion of these wrongly with a literal */
    {CT_BIT(U16), CT_FLOATS, CT_SCALAR, false,
     "convert_$t((int)$0)"}, /* the same chooses wrongly between 16 bits as a float and a literal */
    {CT_BIT(I16), CT_FLOATS, CT_SCALAR, false, "convert_$t((int)((uint)(ushort)$0 << 16) >> 16)"},
    {CT_FLOATS | CT_INTS, CT_FLOATS | CT_INTS, CT_ANY_SHAPE, false, "convert_$t($0)"},
};

// clang-format off
const dialect dialect_opencl = {
    .name = "opencl",
    .base = &dialect_c,
    .function = "static ",
    .own = KIR_OWN_OPENCL,
    .kernel = "__kernel __attribute__((reqd_work_group_size($X, $Y, $Z))) void ",
    .group = "const uint snt_group = (uint)get_group_id(0) + (uint)get_num_groups(0) * ((uint)get_group_id(1) + (uint)get_num_groups(1) * "
             "(uint)get_group_id(2));\n  if (snt_group >= $0) return",
    .word = "w$X",
    .word_param = "const uint w$X",
    .restrict_word = "restrict ",
    .image_param = {"__read_only image2d_t $m", "__write_only image2d_t $m", NULL},
    .space = {[KIR_GLOBAL] = "__global ", [KIR_IMAGE] = "", [KIR_LOCAL] = "__local ", [KIR_PRIVATE] = "", [KIR_SCRATCH] = "__global ",
              [KIR_CONSTANT] = "__constant "},
    .array = {[KIR_LOCAL] = "__local $e $m[$X] __attribute__((aligned($Y)))", [KIR_PRIVATE] = "$e $m[$X] __attribute__((aligned($Y)))",
              [KIR_CONSTANT] = "__constant $e $m[$X]"},
    .overlay = "__local $e *$m = (__local $e *)$0",
    .type = {[SNT_F32] = "float", [SNT_F64] = "double", [SNT_F16] = "ushort", [SNT_BF16] = "ushort", [SNT_I8] = "char", [SNT_I16] = "short",
             [SNT_I32] = "int", [SNT_I64] = "long", [SNT_U8] = "uchar", [SNT_U16] = "ushort", [SNT_U32] = "uint", [SNT_U64] = "ulong", [SNT_BOOL] = "bool"},
    .stored_bool = "uchar",
    .vector = "$b$n",
    .mask = "int",
    .literal = {[SNT_F32] = "$0f", [SNT_F64] = "$0", [SNT_F16] = "(ushort)$0", [SNT_BF16] = "(ushort)$0", [SNT_I8] = "(char)$0", [SNT_I16] = "(short)$0",
                [SNT_I32] = "$0", [SNT_I64] = "$0L", [SNT_U8] = "(uchar)$0", [SNT_U16] = "(ushort)$0", [SNT_U32] = "$0u", [SNT_U64] = "$0UL", [SNT_BOOL] = "$0"},
    .vector_literal = "($t)($0)",
    .vector_list = "($t)($0)",
    .scalar = {[SNT_F32] = "as_float($0)", [SNT_I32] = "(int)$0", [SNT_U32] = "$0", [SNT_BOOL] = "($0 != 0)", [SNT_F64] = "as_double((uint2)($0, $1))",
               [SNT_I64] = "as_long((uint2)($0, $1))", [SNT_U64] = "as_ulong((uint2)($0, $1))"},
    .unroll = "#pragma unroll",
    .unroll_by = "#pragma unroll $X",
    .rolled = "#pragma unroll 1",
    .round_suffix = {"_rtz", "_rte", "_rtz", "_rtp", "_rtn"},
    .wide_index = "(long)(int)$0",
    .load = {.cell = "$m[$j]", .boolean = "$m[$j] != 0", .aligned = "*($qconst $t *)($m + $j)", .unaligned = "SNT_VLOAD($q, $b, $n, $m + $j)",
             .three = "vload3(0, $m + $j)"},
    .store = {.cell = "$m[$j] = $0", .boolean = "$m[$j] = $0", .aligned = "*($q$t *)($m + $j) = $0", .unaligned = "SNT_VSTORE($q, $b, $n, $0, $m + $j)",
              .three = "vstore3($0, 0, $m + $j)",
              .stream = "SNT_STREAM($0, ($q$t *)($m + $j))"},
    .cells = cells,
    .cell_count = IR_COUNT(cells),
    .casts = casts,
    .cast_count = IR_COUNT(casts),
    .helpers = opencl_helpers,
    .helper_count = &opencl_helper_count,
};
// clang-format on

static snt_result emit(const kir_kernel *k, const kir_caps *caps, ir_arena *arena, codegen_code *out, snt_diag *diag) {
  (void)caps;
  return ctext_emit(&dialect_opencl, k, arena, out, diag);
}

const codegen_target codegen_opencl = {"opencl", ".cl", SNT_TARGET_OPENCL, &opencl_caps, NULL, emit, opencl_can_link, opencl_chain};
