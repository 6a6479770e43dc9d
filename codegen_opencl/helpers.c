/* Helper texts of OpenCL kernels. Conversions of f16 go through vload_half and vstore_half_rte, which OpenCL 1.2 has without
   cl_khr_fp16. Prefetches and streaming stores are the compiler's builtins where it is clang for a CPU, and nothing elsewhere. */
#include "codegen_opencl/helpers.h"

#define WIDTHS(head, body) "#define SNT_W(N) " head " { " body " }\nSNT_W() SNT_W(2) SNT_W(3) SNT_W(4) SNT_W(8) SNT_W(16)\n#undef SNT_W\n"

/* AArch64: PoCL's library is of another processor than the kernel (LLVM compares names), so that nothing of it is inlined: each of these would be a call
   whose vectors go through memory. There clang makes one instruction, which rounds once, of what may be contracted. */
#define FOR_ARM(name, parameters, body) name "(", "#ifdef __aarch64__\n#undef " name "\n#define " name parameters " " body "\n#endif\n"

/* Clang for a CPU: its library's vload, vstore and roundings are several instructions where the builtins are one. */
#define FOR_CPU(condition) "#if SNT_CPU && " condition "\n"
#define ROUNDING(upper, lower, builtin)                       \
  FOR_CPU("__has_builtin(__builtin_elementwise_" builtin ")") \
  "#define SNT_" upper "(x) __builtin_elementwise_" builtin "(x)\n#else\n#define SNT_" upper "(x) " lower "(x)\n#endif\n"
#define ANYWHERE                                                                                                                         \
  FOR_CPU("defined(__clang__)")                                                                                                          \
  "#define SNT_U(T, N) typedef T##N snt_##T##N __attribute__((aligned(sizeof(T))));\n#define SNT_T(T) SNT_U(T, 2) SNT_U(T, 4) SNT_U(T, " \
  "8) "                                                                                                                                  \
  "SNT_U(T, 16)\nSNT_T(float) SNT_T(int) SNT_T(uint) SNT_T(short) SNT_T(ushort) SNT_T(char) SNT_T(uchar) SNT_T(long) SNT_T(ulong)\n"     \
  "#ifdef cl_khr_fp64\nSNT_T(double)\n#endif\n"                                                                                          \
  "#define SNT_VLOAD(Q, T, N, p) (*(Q const snt_##T##N *)(p))\n#define SNT_VSTORE(Q, T, N, v, p) (*(Q snt_##T##N *)(p) = (v))\n"         \
  "#else\n#define SNT_VLOAD(Q, T, N, p) vload##N(0, p)\n#define SNT_VSTORE(Q, T, N, v, p) vstore##N(v, 0, p)\n#endif\n"

/* LLVM 14 for AVX-512 reads one element of local memory for all lanes of a loop behind a barrier that PoCL has taken apart. On CPUs only
   kernels of other classes have local memory. */
#define VOLATILE_ON_CPUS "#if SNT_CPU\n#define __local volatile __local\n#endif\n"

/* One condition for a vector: LLVM 14 makes one vector of several such conditions and cannot choose by an element of that where they are
   bits of a mask. Of numbers that go ways of their own through tables LLVM makes vectors, too, and gathers of four, which take longer than
   their loads. */
#define PICK "#if SNT_CPU\nint snt_pick(int c) { __asm__(\"\" : \"+r\"(c)); return c; }\n#else\n#define snt_pick(c) c\n#endif\n"

/* Products of bytes: SNT_DOT4 says how wide vectors are that the device has an instruction for (512: AVX-512 VNNI, 256: AVX-VNNI; compilers
   for a family of processors do not know of these, assemblers do), or that it has a function for a word (32: cl_khr_integer_dot_product, without a pragma). */
#define DOT4_HEAD "#define SNT_D(N) int##N __attribute__((overloadable)) snt_dot4(int##N a, int##N b, int##N c)\n"
#define DOT4(body) "#define SNT_W(N) SNT_D(N) { " body " }\n"

#define DOT4_HALVES DOT4("return (int##N)(snt_dot4(a.lo, b.lo, c.lo), snt_dot4(a.hi, b.hi, c.hi));")

/* AVX2 has products of pairs of halves: of the even bytes and of the odd ones. */
#define DOT4_PAIRS                                                                                                                       \
  "typedef short snt_s __attribute__((vector_size(32)));\n#define SNT_P(x, y) "                                                          \
  "__builtin_astype(__builtin_ia32_pmaddwd256(__builtin_astype(x"                                                                        \
  ", snt_s), __builtin_astype(y, snt_s)), int8)\nSNT_D(8) { short16 w = as_short16(b); return c + SNT_P(a & 0xff00ff, w << (short)8 >> " \
  "(short)8) + SNT_P(as_ushort16(a) >> (ushort)8, w >> (short)8); }\n#else\nSNT_W(8)\n"

/* Lanes of table v by numbers in a word w, of which its bits from s on are one. Numbers in the upper half of a word need no shift of their own where the
   floats have no bits in their lower half: halves of words are taken by number, and the mask leaves zeros in the others. (The compiler makes an `and` of
   its own of a mask that it knows.) */
#define PERMUTE                                                                                                                           \
  "#if defined(__AVX512F__) && __has_builtin(__builtin_ia32_permvarsf512)\n#define SNT_AS(t, v) __builtin_astype(v, t)\n"                 \
  "typedef float snt_table __attribute__((vector_size(64)));\ntypedef int snt_numbers __attribute__((vector_size(64)));\n"                \
  "#define SNT_LANES(v, n) SNT_AS(float16, __builtin_ia32_permvarsf512(SNT_AS(snt_table, v), SNT_AS(snt_numbers, n)))\n"                  \
  "#else\n#define SNT_LANES(v, n) shuffle(v, n)\n#endif\n"                                                                                \
  "#if defined(__AVX512BW__) && __has_builtin(__builtin_ia32_permvarhi512)\n"                                                             \
  "typedef short snt_halves __attribute__((vector_size(64)));\n#define SNT_H(v) SNT_AS(snt_halves, v)\n"                                  \
  "float16 snt_upper(uint16 v, uint16 n) {\n  uint8 t = v.even >> 16 | (v.odd & 0xffff0000u);\n"                                          \
  "  uint mask = 0xaaaaaaaau;\n  __asm__(\"\" : \"+r\"(mask));\n"                                                                         \
  "  return SNT_AS(float16, __builtin_ia32_selectw_512(mask, SNT_H(__builtin_ia32_permvarhi512(SNT_H((uint16)(t, t)), SNT_H(n))), "       \
  "SNT_H((uint16)(0))));\n}\n"                                                                                                            \
  "bool snt_is_short(uint16 v) {\n  uint8 a = v.even | v.odd;\n  uint4 b = a.even | a.odd;\n"                                             \
  "  return !((b.x | b.y | b.z | b.w) & 0xffff);\n}\n"                                                                                    \
  "#define SNT_PERMUTE(v, w, s) (s >= 16 && snt_is_short(as_uint16(v)) ? snt_upper(as_uint16(v), (w) >> (s & 15)) : SNT_LANES(v, (w) >> " \
  "s))\n"                                                                                                                                 \
  "#else\n#define SNT_PERMUTE(v, w, s) SNT_LANES(v, (w) >> s)\n#endif\n"

/* a 2^floor(b) of vectors that are tables */
#define SCALEF                                                                                                                         \
  "#if defined(__AVX512F__) && __has_builtin(__builtin_ia32_scalefps512_mask)\ntypedef float snt_scaled "                              \
  "__attribute__((vector_size(64)));\n"                                                                                                \
  "#define SNT_S(v) __builtin_astype(v, snt_scaled)\n"                                                                                 \
  "#define SNT_SCALEF(a, b) __builtin_astype(__builtin_ia32_scalefps512_mask(SNT_S(a), SNT_S(b), SNT_S(a), (ushort)-1, 4), float16)\n" \
  "#else\n#define SNT_SCALEF(a, b) ldexp(a, convert_int16(floor(b)))\n#endif\n"

/* f16 and f32. What F16C has instructions for PoCL's library says of vectors of four and more only; fewer are some of four. LLVM would compare narrow
   floats instead of the wide ones they became, for which there is no instruction, lane by lane: what an assembly of none may have changed stays as it is.
   There a vector of 16 is two where no register holds it, and where one does a single instruction's: the library's is two of eight put together. */
#define HALVES                                                                                                                    \
  "#ifdef __F16C__\n#define SNT_OWN(x) __asm__(\"\" : \"+v\"(x))\n#define SNT_FEW(F,A,B) B F(A x) { return F##4((A##4)(x)).x; } " \
  "B##2 F##2(A##2 x) { return F##4(x.xyxy).xy; } B##3 F##3(A##3 x) { return F##4(x.xyzz).xyz; }\n#else\n#define SNT_OWN(x)\n"     \
  "#define SNT_FEW(F,A,B) SNT_W() SNT_W(2) SNT_W(3)\n#endif\n"
#define FROM_HALVES                                                                                                                       \
  "#define SNT_W(N) float##N snt_f32_from_f16_##N(ushort##N x) { float##N w = vload_half##N(0, (const half *)&x); SNT_OWN(w); return w; " \
  "}\n"                                                                                                                                   \
  "SNT_W(4) SNT_W(8) SNT_FEW(snt_f32_from_f16_, ushort, float)\nfloat16 snt_f32_from_f16_16(ushort16 x) {\n#ifdef __AVX512F__\n"          \
  "float16 w;__asm__(\"vcvtph2ps %1,%0\":\"=v\"(w):\"v\"(x));return w;\n#else\nreturn "                                                   \
  "(float16)(snt_f32_from_f16_8(x.lo),snt_f32_from_f16_8(x.hi));\n#endif\n}\n#undef SNT_W\n"
#define TO_HALVES                                                                                                                    \
  "#define SNT_W(N) ushort##N snt_f16_from_f32_##N(float##N x) { ushort##N h; vstore_half##N##_rte(x, 0, (half *)&h); return h; }\n" \
  "SNT_W(4) SNT_W(8) SNT_W(16) SNT_FEW(snt_f16_from_f32_, float, ushort)\n#undef SNT_W\n"

// clang-format off
const ctext_helper opencl_helpers[] = {
    {"", "// -cl-denorms-are-zero\n"}, /* an option that the runtime builds it with */
    {"__kernel", "#pragma OPENCL FP_CONTRACT OFF\n#ifndef __has_builtin\n#define __has_builtin(x) 0\n#endif\n"
                 "#if defined(__x86_64__) || defined(__aarch64__)\n#define SNT_CPU 1\n#endif\n"},
    {"double", "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n"},
    {"SNT_STREAM", FOR_CPU("__has_builtin(__builtin_nontemporal_store)")
                   "#define SNT_STREAM(v, p) __builtin_nontemporal_store(v, p)\n#else\n#define SNT_STREAM(v, p) (*(p) = (v))\n#endif\n"},
    {"SNT_V", ANYWHERE},
    {FOR_ARM("fma", "(a, b, c)", "({ _Pragma(\"clang fp contract(on)\") (a) * (b) + (c); })")},
    {FOR_ARM("select", "(a, b, c)", "((c) ? (b) : (a))")},
    {FOR_ARM("fabs", "(x)", "__builtin_elementwise_abs(x)")},
    {"SNT_FLOOR", ROUNDING("FLOOR", "floor", "floor")},
    {"SNT_CEIL", ROUNDING("CEIL", "ceil", "ceil")},
    {"SNT_TRUNC", ROUNDING("TRUNC", "trunc", "trunc")},
    {"SNT_RINT", ROUNDING("RINT", "rint", "roundeven")},
    {"SNT_PERMUTE", PERMUTE},
    {"SNT_SCALEF", SCALEF},
    {"snt_dot4", DOT4_HEAD "#if SNT_DOT4 == 32\n" DOT4("return as_int(as_uint(c) + as_uint(dot_4x8packed_us_int(as_uint(a), as_uint(b))));") "SNT_W()\n#undef SNT_W\n" DOT4_HALVES
                 "SNT_W(2) SNT_W(4) SNT_W(8) SNT_W(16)\n#undef SNT_W\n" DOT4("return snt_dot4((int4)(a, 0), (int4)(b, 0), (int4)(c, 0)).s012;") "SNT_W(3)\n#else\n"
                 DOT4("return as_int##N(as_uint##N(c) + as_uint##N((a & 255) * (b << 24 >> 24) + (a >> 8 & 255) * (b << 16 >> 24) + "
                      "(a >> 16 & 255) * (b << 8 >> 24) + (a >> 24 & 255) * (b >> 24)));")
                 "SNT_W() SNT_W(2) SNT_W(3)\n#if SNT_DOT4 == 512\n#undef SNT_W\n" DOT4("__asm__(\"vpdpbusd %2, %1, %0\" : \"+v\"(c) : \"v\"(a), \"v\"(b)); return c;")
                 "#elif SNT_DOT4 == 256\n#undef SNT_W\n" DOT4("__asm__(\"%{vex%} vpdpbusd %2, %1, %0\" : \"+x\"(c) : \"x\"(a), \"x\"(b)); return c;")
                 "#endif\nSNT_W(4)\n#if SNT_DOT4 == 16 && defined(__AVX2__)\n" DOT4_PAIRS
                 "#endif\n#if SNT_DOT4 == 256 || SNT_DOT4 == 16\n#undef SNT_W\n" DOT4_HALVES
                 "#endif\nSNT_W(16)\n#endif\n#undef SNT_W\n"},
    {"SNT_PREFETCH", FOR_CPU("__has_builtin(__builtin_prefetch)")
                     "#define SNT_PREFETCH(p, bytes, how) \\\n"
                     "  for (size_t q_ = 0; q_ < bytes; q_ += 64) __builtin_prefetch((const void *)((size_t)(p) + q_), (how) & 1, 3 - (how) / 2)\n"
                     "#else\n#define SNT_PREFETCH(p, bytes, how)\n#endif\n"},
    {"snt_pick(", PICK},
    {"SNT_SYNC_", VOLATILE_ON_CPUS "#define SNT_SYNC_0 CLK_LOCAL_MEM_FENCE\n#define SNT_SYNC_1 CLK_LOCAL_MEM_FENCE\n#define SNT_SYNC_2 CLK_GLOBAL_MEM_FENCE\n"
                  "#define SNT_SYNC_3 (CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)\n"},
    {"SNT_NEAREST", "__constant sampler_t SNT_NEAREST = CLK_NORMALIZED_COORDS_FALSE | CLK_ADDRESS_CLAMP_TO_EDGE | CLK_FILTER_NEAREST;\n"},
    {"SNT_SAMPLER_", "__constant sampler_t SNT_SAMPLER_0 = CLK_NORMALIZED_COORDS_TRUE | CLK_ADDRESS_REPEAT | CLK_FILTER_NEAREST;\n"
                     "__constant sampler_t SNT_SAMPLER_1 = CLK_NORMALIZED_COORDS_TRUE | CLK_ADDRESS_REPEAT | CLK_FILTER_LINEAR;\n"
                     "__constant sampler_t SNT_SAMPLER_2 = CLK_NORMALIZED_COORDS_TRUE | CLK_ADDRESS_CLAMP_TO_EDGE | CLK_FILTER_NEAREST;\n"
                     "__constant sampler_t SNT_SAMPLER_3 = CLK_NORMALIZED_COORDS_TRUE | CLK_ADDRESS_CLAMP_TO_EDGE | CLK_FILTER_LINEAR;\n"},
    {"snt_f", HALVES},
    {"snt_f32_from_f16_", FROM_HALVES},
    {"snt_f16_from_f32_", TO_HALVES},
    {"snt_bf16_from_f32_", WIDTHS("ushort##N snt_bf16_from_f32_##N(float##N x)",
                                  "uint##N u = as_uint##N(x), r = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16; "
                                  "return convert_ushort##N(select(r, (u >> 16) | 0x40u, (u & 0x7fffffffu) > 0x7f800000u));")},
    {"snt_atomic_add_f32", "#define SNT_A(Q) float __attribute__((overloadable)) snt_atomic_add_f32(volatile Q float *p, float x) { \\\n"
                           "  uint seen = as_uint(*p), old; \\\n"
                           "  do { old = seen; seen = atomic_cmpxchg((volatile Q uint *)p, old, as_uint(as_float(old) + x)); } while (seen != old); \\\n"
                           "  return as_float(old); }\nSNT_A(__global)\nSNT_A(__local)\n#undef SNT_A\n"},
};
// clang-format on
const uint32_t opencl_helper_count = IR_COUNT(opencl_helpers);
