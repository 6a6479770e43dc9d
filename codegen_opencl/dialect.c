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

#define LOWERED(pass) \
  { "!" pass, NULL }
#define UNSUPPORTED(why) \
  { "?" why, NULL }
#define ALL(text) \
  { text, NULL }
#define FLOAT(text) \
  { NULL, CT_BY([CT_F32] = text, [CT_F64] = text) }
#define NO_MATRIX UNSUPPORTED("OpenCL C has no matrix fragments")

/* Vectors: signed sums are formed unsigned by reinterpretation. Comparisons give lanes as wide as the operands. */
#define WRAPPING(o)                                                                                                    \
  {                                                                                                                    \
    "$0 " o " $1", CT_BY([CT_I32] = "as_$t(as_$u($0) " o " as_$u($1))", [CT_I64] = "as_$t(as_$u($0) " o " as_$u($1))", \
                         [CT_NARROW] = "as_$t(as_$u($0) " o " as_$u($1))")                                             \
  }
#define COMPARE(o)                                                                                                     \
  {                                                                                                                    \
    "convert_$t($0 " o " $1)",                                                                                         \
        CT_BY([CT_F32] = "$0 " o " $1", [CT_I32] = "$0 " o " $1", [CT_U32] = "$0 " o " $1", [CT_BOOL] = "$0 " o " $1") \
  }
#define EXTREME(o, call)                                                                                                        \
  {                                                                                                                             \
    call "($0, $1)",                                                                                                            \
        CT_BY([CT_F32] = "select($1, $0, ($0 " o " $1) | ($0 != $0))", [CT_F64] = "select($1, $0, ($0 " o " $1) | ($0 != $0))") \
  }

// clang-format off
static const ctext_cell vector_op[KIR_OP_COUNT] = {
    [KIR_add] = WRAPPING("+"),
    [KIR_sub] = WRAPPING("-"),
    [KIR_mul] = WRAPPING("*"),
    [KIR_neg] = {"-$0", CT_BY([CT_I32] = "as_$t(-as_$u($0))", [CT_I64] = "as_$t(-as_$u($0))", [CT_NARROW] = "as_$t(-as_$u($0))")},
    [KIR_abs] = {"as_$t(abs($0))", CT_BY([CT_F32] = "fabs($0)", [CT_F64] = "fabs($0)")},
    [KIR_min] = EXTREME("<", "min"),
    [KIR_max] = EXTREME(">", "max"),
    [KIR_dot4] = ALL("snt_dot4($0, $1, $2)"),
    [KIR_rem] = {"$0 % $1", CT_BY([CT_F32] = "fmod($0, $1)", [CT_F64] = "fmod($0, $1)")},
    [KIR_rcp] = ALL("($t)(1) / $0"),
    [KIR_wrap] = LOWERED("legalise"),
    [KIR_xor] = ALL("$0 ^ $1"),
    [KIR_not] = ALL("~$0"),
    [KIR_shl] = ALL("$0 << $1"),
    [KIR_shr] = ALL("$0 >> $1"),
    [KIR_eq] = COMPARE("=="),
    [KIR_ne] = COMPARE("!="),
    [KIR_lt] = COMPARE("<"),
    [KIR_le] = COMPARE("<="),
    [KIR_gt] = COMPARE(">"),
    [KIR_ge] = COMPARE(">="),
    [KIR_isnan] = {NULL, CT_BY([CT_F32] = "$0 != $0", [CT_F64] = "convert_$t($0 != $0)")},
    [KIR_isinf] = {NULL, CT_BY([CT_F32] = "isinf($0)", [CT_F64] = "convert_$t(isinf($0))")},
    [KIR_select] = {"select($2, $1, convert_$s($0))", CT_BY([CT_F32] = "select($2, $1, $0)", [CT_I32] = "select($2, $1, $0)", [CT_U32] = "select($2, $1, $0)", [CT_BOOL] = "select($2, $1, $0)")},
    [KIR_splat] = {"($t)($0)", CT_BY([CT_BOOL] = "-($t)($0)")},
    [KIR_vec] = {"($t)($a)", CT_BY([CT_BOOL] = "-($t)($a)")},
    [KIR_iota] = ALL("($t)($z)"),
    [KIR_extract] = {"$0.s$x", CT_BY([CT_BOOL] = "$0.s$x != 0")},
    [KIR_insert] = {"$0; $v.s$x = $2", CT_BY([CT_BOOL] = "$0; $v.s$x = -(int)$2")},
    [KIR_permute] = {NULL, CT_BY([CT_F32] = "SNT_PERMUTE($0, $P)")},
    [KIR_shuffle] = {"($t)($h)", CT_BY([CT_BOOL] = "-($t)($h)")},
    [KIR_unpack2] = {NULL, CT_BY([CT_F32] = "snt_f32_from_f16_2(as_ushort2($0))", [CT_U32] = "as_float2((uint2)($0 << 16, $0 & 0xffff0000u))")},
    [KIR_pack2] = {NULL, CT_BY([CT_F32] = "as_uint(snt_f16_from_f32_2($0))", [CT_U32] = "as_uint(snt_bf16_from_f32_2($0))")},
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
    .storage = {[SNT_BOOL] = "uchar"},
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
    .op =
        {
            [KIR_local] = ALL("(uint)get_local_id($K)"),
            [KIR_sg_id] = LOWERED("legalise"),
            [KIR_sg_lane] = LOWERED("legalise"),
            [KIR_sg_count] = LOWERED("legalise"),
            [KIR_abs] = {NULL, CT_BY([CT_F32] = "fabs($0)")},
            [KIR_fma] = FLOAT("fma($0, $1, $2)"),
            [KIR_rem] = {NULL, CT_BY([CT_F32] = "fmod($0, $1)")},
            [KIR_sqrt] = FLOAT("sqrt($0)"),
            [KIR_rsqrt] = FLOAT("1 / sqrt($0)"),
            [KIR_floor] = FLOAT("SNT_FLOOR($0)"),
            [KIR_ceil] = FLOAT("SNT_CEIL($0)"),
            [KIR_trunc] = FLOAT("SNT_TRUNC($0)"),
            [KIR_rint] = FLOAT("SNT_RINT($0)"),
            [KIR_mulhi] = ALL("mul_hi($0, $1)"),
            [KIR_popcount] = ALL("popcount($0)"),
            [KIR_clz] = ALL("clz($0)"),
            [KIR_bitcast] = ALL("as_$t($0)"),
            [KIR_splat] = ALL("$0"), [KIR_vec] = ALL("$0"), [KIR_iota] = ALL("0"), [KIR_extract] = ALL("$0"), [KIR_insert] = ALL("$2"),
            [KIR_shuffle] = LOWERED("legalise"),
            [KIR_prefetch] = ALL("SNT_PREFETCH($m + $j, $p, $f)"),
            [KIR_atomic_add] = {"atomic_add(&$m[$j], $V)", CT_BY([CT_F32] = "snt_atomic_add_f32(&$m[$j], $V)")},
            [KIR_atomic_min] = ALL("atomic_min(&$m[$j], $V)"),
            [KIR_atomic_max] = ALL("atomic_max(&$m[$j], $V)"),
            [KIR_atomic_or] = ALL("atomic_or(&$m[$j], $V)"),
            [KIR_atomic_and] = ALL("atomic_and(&$m[$j], $V)"),
            [KIR_atomic_cas] = ALL("atomic_cmpxchg(&$m[$j], $W, $V)"),
            [KIR_tex_sample] = ALL("read_imagef($m, SNT_SAMPLER_$S, (float2)($0, $1))"),
            [KIR_tex_load] = ALL("read_imagef($m, SNT_NEAREST, (int2)((int)$0, (int)$1))"),
            [KIR_tex_store] = ALL("write_imagef($m, (int2)((int)$0, (int)$1), $2)"),
            [KIR_sg_add] = LOWERED("legalise"),
            [KIR_sg_max] = LOWERED("legalise"),
            [KIR_sg_min] = LOWERED("legalise"),
            [KIR_sg_shuffle] = LOWERED("legalise"),
            [KIR_sg_barrier] = LOWERED("legalise"),
            [KIR_barrier] = ALL("barrier(SNT_SYNC_$f)"),
            [KIR_mma_load] = NO_MATRIX,
            [KIR_mma_store] = NO_MATRIX,
            [KIR_mma] = NO_MATRIX,
        },
    .vector_op = vector_op,
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
