/* The cells that C and C++ dialects agree on: scalar arithmetic. Signed sums are formed unsigned, since they must wrap; a minimum
   or maximum of floats keeps a NaN. Divisors are neither 0 nor -1: the passes see to it. */
#include "codegen_common/ctext.h"

#define WRAPPING(o)                                                                                                                      \
  {                                                                                                                                      \
    "$0 " o " $1",                                                                                                                       \
        CT_BY([CT_I32] = "($t)(($w)$0 " o " ($w)$1)", [CT_I64] = "($t)(($w)$0 " o " ($w)$1)", [CT_NARROW] = "($t)(($w)$0 " o " ($w)$1)") \
  }
#define EXTREME(o) \
  { "$0 " o " $1 ? $0 : $1", CT_BY([CT_F32] = "$0 " o " $1 || $0 != $0 ? $0 : $1", [CT_F64] = "$0 " o " $1 || $0 != $0 ? $0 : $1") }
#define LOWERED(pass) \
  { "!" pass, NULL }
#define MATH LOWERED("math")

// clang-format off
const dialect dialect_c = {
    .name = "c",
    .infinity = {[SNT_F32] = "$0(1.0f / 0.0f)", [SNT_F64] = "$0(1.0 / 0.0)"},
    .nan = {[SNT_F32] = "(0.0f / 0.0f)", [SNT_F64] = "(0.0 / 0.0)"},
    .op =
        {
            [KIR_const] = {"$0", NULL},
            [KIR_scalar] = {"$0", NULL},
            [KIR_group] = {"snt_group", NULL},
            [KIR_ix] = {"$y", CT_BY([CT_I32] = "($t)($y)")},
            [KIR_add] = WRAPPING("+"),
            [KIR_sub] = WRAPPING("-"),
            [KIR_mul] = WRAPPING("*"),
            [KIR_neg] = {"-$0", CT_BY([CT_I32] = "($t)(0 - ($w)$0)", [CT_I64] = "($t)(0 - ($w)$0)", [CT_NARROW] = "($t)-$0")},
            [KIR_abs] = {"$0", CT_BY([CT_F64] = "fabs($0)", [CT_I32] = "$0 < 0 ? ($t)(0 - ($w)$0) : $0", [CT_I64] = "$0 < 0 ? ($t)(0 - ($w)$0) : $0",
                          [CT_NARROW] = "($t)($0 < 0 ? -$0 : $0)")},
            [KIR_min] = EXTREME("<"),
            [KIR_max] = EXTREME(">"),
            [KIR_fma] = {NULL, CT_BY([CT_F64] = "fma($0, $1, $2)")},
            [KIR_dot4] = {"snt_dot4($0, $1, $2)", NULL},
            [KIR_div] = {"$0 / $1", CT_BY([CT_NARROW] = "($t)($0 / $1)")},
            [KIR_rem] = {"$0 % $1", CT_BY([CT_F64] = "fmod($0, $1)", [CT_NARROW] = "($t)($0 % $1)")},
            [KIR_sqrt] = {NULL, CT_BY([CT_F64] = "sqrt($0)")},
            [KIR_rcp] = {"1 / $0", NULL},
            [KIR_rsqrt] = {NULL, CT_BY([CT_F64] = "1 / sqrt($0)")},
            [KIR_floor] = {NULL, CT_BY([CT_F64] = "floor($0)")},
            [KIR_ceil] = {NULL, CT_BY([CT_F64] = "ceil($0)")},
            [KIR_trunc] = {NULL, CT_BY([CT_F64] = "trunc($0)")},
            [KIR_rint] = {NULL, CT_BY([CT_F64] = "rint($0)")},
            [KIR_udiv] = {"$0 / $1", CT_BY([CT_NARROW] = "($t)($0 / $1)")},
            [KIR_umod] = {"$0 % $1", CT_BY([CT_NARROW] = "($t)($0 % $1)")},
            [KIR_wrap] = {"$0 >= $2 - $1 ? $0 - ($2 - $1) : $0 + $1", NULL},
            [KIR_and] = {"$0 & $1", NULL},
            [KIR_or] = {"$0 | $1", NULL},
            [KIR_xor] = {"$0 ^ $1", CT_BY([CT_BOOL] = "$0 != $1")},
            [KIR_not] = {"~$0", CT_BY([CT_NARROW] = "($t)~$0", [CT_BOOL] = "(!$0)")},
            [KIR_shl] = {"$0 << $M", CT_BY([CT_I32] = "($t)(($w)$0 << $M)", [CT_I64] = "($t)(($w)$0 << $M)", [CT_NARROW] = "($t)(($w)$0 << $M)")},
            [KIR_shr] = {"$0 >> $M", CT_BY([CT_NARROW] = "($t)($0 >> $M)")},
            [KIR_eq] = {"$0 == $1", NULL},
            [KIR_ne] = {"$0 != $1", NULL},
            [KIR_lt] = {"$0 < $1", NULL},
            [KIR_le] = {"$0 <= $1", NULL},
            [KIR_gt] = {"$0 > $1", NULL},
            [KIR_ge] = {"$0 >= $1", NULL},
            [KIR_isnan] = {"$0 != $0", NULL},
            [KIR_isinf] = {"$0 == $0 && $0 - $0 != $0 - $0", NULL},
            [KIR_select] = {"$0 ? $1 : $2", NULL},
            [KIR_cast] = {"$0", NULL}, /* by the table of conversions */
            [KIR_exp] = MATH,
            [KIR_exp2] = MATH,
            [KIR_expm1] = MATH,
            [KIR_log] = MATH,
            [KIR_log2] = MATH,
            [KIR_log1p] = MATH,
            [KIR_sin] = MATH,
            [KIR_cos] = MATH,
            [KIR_tan] = MATH,
            [KIR_asin] = MATH,
            [KIR_acos] = MATH,
            [KIR_atan] = MATH,
            [KIR_sinh] = MATH,
            [KIR_cosh] = MATH,
            [KIR_tanh] = MATH,
            [KIR_asinh] = MATH,
            [KIR_acosh] = MATH,
            [KIR_atanh] = MATH,
            [KIR_sigmoid] = MATH,
            [KIR_erf] = MATH,
            [KIR_pow] = MATH,
            [KIR_atan2] = MATH,
            [KIR_permute] = LOWERED("legalise"),
            [KIR_hred_add] = LOWERED("legalise"),
            [KIR_hred_max] = LOWERED("legalise"),
            [KIR_hred_min] = LOWERED("legalise"),
            [KIR_hred_mul] = LOWERED("legalise"),
            [KIR_load] = {"$m[$j]", NULL}, /* by the table of accesses, as is store */
            [KIR_store] = {"$m[$j] = $0", NULL},
            [KIR_fill] = LOWERED("legalise"),
            [KIR_async_copy] = LOWERED("legalise"),
            [KIR_async_commit] = LOWERED("legalise"),
            [KIR_async_wait] = LOWERED("legalise"),
            [KIR_loop] = {"for ($t $v = $0; $v < $1; $v += $2) {", NULL},
            [KIR_carry] = {"$v", NULL},
            [KIR_if] = {"if ($0) {", NULL},
            [KIR_else] = {"} else {", NULL},
            [KIR_yield] = {"$v", NULL},
            [KIR_end] = {"}", NULL},
            [KIR_result] = {"$v", NULL},
            [KIR_own] = {"$a", NULL}, /* this and the next: ctext_own.c */
            [KIR_inline] = {"$a", NULL},
        },
};
// clang-format on
