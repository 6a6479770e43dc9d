/* Helper texts of CUDA kernels. No header is included, so that NVRTC needs none; g++ compiles the same text through a shim that defines
   CUDA's keywords and built-in names, and takes the plain C++ branch of what is inline PTX elsewhere. */
#include "codegen_cuda/helpers.h"

// clang-format off
const ctext_helper cuda_helpers[] = {
    {"snt_vec<", "template <class T, int N> struct alignas(sizeof(T) * (N == 3 ? 1 : N)) snt_vec { T s[N]; };\n"},
    {"snt_bits<", "template <class T, class S> static __device__ inline T snt_bits(S s) {\n  union { S s; T t; } u;\n  u.s = s;\n  return u.t;\n}\n"},
    {"SNT_STREAM", "#ifndef SNT_STREAM\n#define SNT_STREAM(v, p) (*(p) = (v))\n#endif\n"},
    {"snt_float_to_int<", "template <class T, class F> static __device__ inline T snt_float_to_int(F x) { /* truncates, saturates, NaN gives 0 */\n"
                          "  const bool is_signed = T(-1) < T(0);\n  const int bits = int(sizeof(T)) * 8 - (is_signed ? 1 : 0);\n"
                          "  const F end = F(1ull << (bits - 1)) * F(2), begin = is_signed ? -end : F(0);\n"
                          "  const T top = T(~0ull >> (64 - bits)), bottom = is_signed ? T(-top - 1) : T(0);\n"
                          "  return x != x ? T(0) : x >= end ? top : x <= begin ? bottom : T(x);\n}\n"},
    {"snt_saturate<", "template <class T, class S> static __device__ inline T snt_saturate(S x) {\n"
                      "  const bool is_signed = T(-1) < T(0);\n  const int bits = int(sizeof(T)) * 8 - (is_signed ? 1 : 0);\n"
                      "  const unsigned long long top = ~0ull >> (64 - bits);\n"
                      "  if (x > S(0) && (unsigned long long)x > top) return T(top);\n"
                      "  if (x < S(0) && (!is_signed || (long long)x < -(long long)top - 1)) return is_signed ? T(-(long long)top - 1) : T(0);\n  return T(x);\n}\n"},
    {"snt_f32_from_f16", "static __device__ inline float snt_f32_from_f16(unsigned short h) {\n#if defined(__CUDACC__) || defined(__CUDACC_RTC__)\n"
                         "  float x;\n  asm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(x) : \"h\"(h));\n  return x;\n#else\n"
                         "  const unsigned sign = (h & 0x8000u) << 16, rest = h & 0x7fffu;\n"
                         "  if (rest >= 0x7c00u) return __uint_as_float(sign | 0x7f800000u | (rest & 0x3ffu) << 13 | (rest > 0x7c00u ? 0x400000u : 0u));\n"
                         "  const float x = __uint_as_float(rest << 13) * 0x1p112f;\n  return sign ? -x : x;\n#endif\n}\n"},
    {"snt_f16_from_f32", "static __device__ inline unsigned short snt_f16_from_f32(float x) {\n#if defined(__CUDACC__) || defined(__CUDACC_RTC__)\n"
                         "  unsigned short h;\n  asm(\"cvt.rn.f16.f32 %0, %1;\" : \"=h\"(h) : \"f\"(x));\n  return h;\n#else\n"
                         "  const unsigned u = __float_as_uint(x), sign = u >> 16 & 0x8000u, rest = u & 0x7fffffffu;\n"
                         "  if (rest > 0x7f800000u) return (unsigned short)(sign | 0x7e00u);\n"
                         "  if (rest >= 0x477ff000u) return (unsigned short)(sign | 0x7c00u);\n"
                         "  if (rest < 0x38800000u) /* subnormal: let the addition round */\n"
                         "    return (unsigned short)(sign | (__float_as_uint(__uint_as_float(rest) + 0.5f) - 0x3f000000u));\n"
                         "  return (unsigned short)(sign | ((rest - 0x38000000u + 0xfffu + (rest >> 13 & 1u)) >> 13));\n#endif\n}\n"},
    {"snt_bf16_from_f32", "static __device__ inline unsigned short snt_bf16_from_f32(float x) {\n"
                          "  const unsigned u = __float_as_uint(x);\n  if ((u & 0x7fffffffu) > 0x7f800000u) return (unsigned short)(u >> 16 | 0x40u);\n"
                          "  return (unsigned short)((u + 0x7fffu + (u >> 16 & 1u)) >> 16);\n}\n"},
    {"snt_popcount(", "static __device__ inline int snt_popcount(unsigned long long x) {\n#if defined(__CUDACC__) || defined(__CUDACC_RTC__)\n"
                      "  return __popcll(x);\n#else\n  return __builtin_popcountll(x);\n#endif\n}\n"},
    {"snt_clz(", "static __device__ inline int snt_clz(unsigned long long x, int bits) {\n#if defined(__CUDACC__) || defined(__CUDACC_RTC__)\n"
                 "  return __clzll((long long)x) - (64 - bits);\n#else\n  return x ? __builtin_clzll(x) - (64 - bits) : bits;\n#endif\n}\n"},
    {"snt_sg_", "#define SNT_BUTTERFLY(name, step) \\\n  template <class T> static __device__ inline T name(T x, int width) { \\\n"
                "    for (int o = width / 2; o > 0; o /= 2) { const T y = __shfl_xor_sync(0xffffffffu, x, o); x = step; } return x; }\n"
                "SNT_BUTTERFLY(snt_sg_add, x + y)\nSNT_BUTTERFLY(snt_sg_max, (x > y || x != x) ? x : y)\n"
                "SNT_BUTTERFLY(snt_sg_min, (x < y || x != x) ? x : y)\n#undef SNT_BUTTERFLY\n"},
    {"snt_c_f32", "#define SNT_4(c, x) c(x[0]), c(x[1]), c(x[2]), c(x[3])\n#define SNT_8(c, x) SNT_4(c, x), c(x[4]), c(x[5]), c(x[6]), c(x[7])\n"
                "struct snt_a_f16 { unsigned r[8]; int columns; };\nstruct snt_b_f16 { unsigned r[8]; int columns; };\n"
                "struct snt_a_bf16 { unsigned r[4]; int columns; };\nstruct snt_b_bf16 { unsigned r[4]; int columns; };\nstruct snt_c_f32 { float r[8]; };\n"
                "template <int N> static __device__ inline void snt_fill(snt_c_f32 (&m)[N], float x) {\n"
                "  for (int n = 0; n < N; n++) for (int i = 0; i < 8; i++) m[n].r[i] = x;\n}\n"},
    {"snt_mma", "template <class F> static __device__ F snt_mma_load(const unsigned short *p, unsigned ld, int columns);\n"
                "#if defined(__CUDACC__) || defined(__CUDACC_RTC__)\n"
                "#define SNT_LOAD(F, side, type, n, places, address) \\\n"
                "  template <> __device__ inline F snt_mma_load<F>(const unsigned short *p, unsigned ld, int columns) { \\\n"
                "    F d; d.columns = columns != 0; \\\n"
                "    if (columns) asm volatile(\"wmma.load.\" side \".sync.aligned.col.m16n16k16.\" type \" {\" places \"}, \" address \";\" : n(\"=r\", d.r) : \"l\"(p), \"r\"(ld) : \"memory\"); \\\n"
                "    else asm volatile(\"wmma.load.\" side \".sync.aligned.row.m16n16k16.\" type \" {\" places \"}, \" address \";\" : n(\"=r\", d.r) : \"l\"(p), \"r\"(ld) : \"memory\"); \\\n"
                "    return d; }\n"
                "SNT_LOAD(snt_a_f16, \"a\", \"f16\", SNT_8, \"%0,%1,%2,%3,%4,%5,%6,%7\", \"[%8], %9\")\n"
                "SNT_LOAD(snt_b_f16, \"b\", \"f16\", SNT_8, \"%0,%1,%2,%3,%4,%5,%6,%7\", \"[%8], %9\")\n"
                "SNT_LOAD(snt_a_bf16, \"a\", \"bf16\", SNT_4, \"%0,%1,%2,%3\", \"[%4], %5\")\n"
                "SNT_LOAD(snt_b_bf16, \"b\", \"bf16\", SNT_4, \"%0,%1,%2,%3\", \"[%4], %5\")\n"
                "#define SNT_MMA16(la, lb) asm volatile(\"wmma.mma.sync.aligned.\" la \".\" lb \".m16n16k16.f32.f32 {%0,%1,%2,%3,%4,%5,%6,%7}, {%8,%9,%10,%11,%12,%13,%14,%15}, \" \\\n"
                "  \"{%16,%17,%18,%19,%20,%21,%22,%23}, {%24,%25,%26,%27,%28,%29,%30,%31};\" : SNT_8(\"=f\", d.r) : SNT_8(\"r\", a.r), SNT_8(\"r\", b.r), SNT_8(\"f\", c.r))\n"
                "#define SNT_MMAB(la, lb) asm volatile(\"wmma.mma.sync.aligned.\" la \".\" lb \".m16n16k16.f32.bf16.bf16.f32 {%0,%1,%2,%3,%4,%5,%6,%7}, {%8,%9,%10,%11}, \" \\\n"
                "  \"{%12,%13,%14,%15}, {%16,%17,%18,%19,%20,%21,%22,%23};\" : SNT_8(\"=f\", d.r) : SNT_4(\"r\", a.r), SNT_4(\"r\", b.r), SNT_8(\"f\", c.r))\n"
                "#define SNT_MMA(A, B, DO) static __device__ inline snt_c_f32 snt_mma(const A &a, const B &b, const snt_c_f32 &c) { \\\n"
                "    snt_c_f32 d; \\\n"
                "    if (a.columns) { if (b.columns) DO(\"col\", \"col\"); else DO(\"col\", \"row\"); } \\\n"
                "    else if (b.columns) DO(\"row\", \"col\"); else DO(\"row\", \"row\"); \\\n"
                "    return d; }\n"
                "SNT_MMA(snt_a_f16, snt_b_f16, SNT_MMA16)\nSNT_MMA(snt_a_bf16, snt_b_bf16, SNT_MMAB)\n"
                "#else\n" /* lane l holds elements 8 l to 8 l + 7, row by row, two a word */
                "template <class F> static inline F snt_mma_load(const unsigned short *p, unsigned ld, int columns) {\n"
                "  F d;\n  d.columns = columns;\n  for (int i = 0; i < 8; i++) {\n    const unsigned e = threadIdx.x % 32 * 8 + i, row = e / 16, column = e % 16;\n"
                "    const unsigned x = columns ? p[column * ld + row] : p[row * ld + column];\n"
                "    d.r[i / 2] = i % 2 ? d.r[i / 2] | x << 16 : x;\n  }\n  return d;\n}\n"
                "static inline float snt_mma_number(unsigned x, const snt_a_f16 &) { return snt_f32_from_f16((unsigned short)x); }\n"
                "static inline float snt_mma_number(unsigned x, const snt_a_bf16 &) { return __uint_as_float(x << 16); }\n"
                "template <class A, class B> static inline snt_c_f32 snt_mma(const A &a, const B &b, snt_c_f32 c) {\n"
                "  float x[256], y[256];\n  for (int l = 0; l < 32; l++)\n    for (int i = 0; i < 4; i++) {\n"
                "      const unsigned u = __shfl_sync(0xffffffffu, a.r[i], l), v = __shfl_sync(0xffffffffu, b.r[i], l);\n"
                "      for (int h = 0; h < 2; h++) x[l * 8 + i * 2 + h] = snt_mma_number(u >> 16 * h & 0xffffu, a), y[l * 8 + i * 2 + h] = snt_mma_number(v >> 16 * h & 0xffffu, a);\n"
                "    }\n  for (int i = 0; i < 8; i++) {\n    const unsigned e = threadIdx.x % 32 * 8 + i;\n"
                "    for (int k = 0; k < 16; k++) c.r[i] += x[e / 16 * 16 + k] * y[k * 16 + e % 16];\n  }\n  return c;\n}\n"
                "#endif\n"},
    {"snt_copy<", "#if defined(__CUDACC__) || defined(__CUDACC_RTC__)\n" /* sixteen bytes pass the first cache by */
                  "template <int N> static __device__ void snt_copy(void *to, const void *from, bool inside);\n"
                  "#define SNT_COPY(N, how) \\\n"
                  "  template <> __device__ inline void snt_copy<N>(void *to, const void *from, bool inside) { \\\n"
                  "    asm volatile(\"cp.async.\" how \".shared.global [%0], [%1], \" #N \", %2;\" : : \"r\"((unsigned)__cvta_generic_to_shared(to)), \"l\"(from), \\\n"
                  "                 \"r\"(inside ? N : 0)); }\n"
                  "SNT_COPY(4, \"ca\")\nSNT_COPY(8, \"ca\")\nSNT_COPY(16, \"cg\")\n"
                  "static __device__ inline void snt_copy_commit() { asm volatile(\"cp.async.commit_group;\" : : : \"memory\"); }\n"
                  "template <int N> static __device__ inline void snt_copy_wait() { asm volatile(\"cp.async.wait_group %0;\" : : \"n\"(N) : \"memory\"); }\n"
                  "#else\n"
                  "template <int N> static inline void snt_copy(void *to, const void *from, bool inside) { __pipeline_memcpy_async(to, from, N, inside ? 0 : N); }\n"
                  "static inline void snt_copy_commit() { __pipeline_commit(); }\n"
                  "template <int N> static inline void snt_copy_wait() { __pipeline_wait_prior(N); }\n#endif\n"},
    {"snt_mma_store", "static __device__ inline void snt_mma_store(float *p, const snt_c_f32 &c, unsigned ld) {\n"
                      "#if defined(__CUDACC__) || defined(__CUDACC_RTC__)\n"
                      "  asm volatile(\"wmma.store.d.sync.aligned.row.m16n16k16.f32 [%0], {%1,%2,%3,%4,%5,%6,%7,%8}, %9;\" : : \"l\"(p), SNT_8(\"f\", c.r), \"r\"(ld) : \"memory\");\n#else\n"
                      "  for (int i = 0; i < 8; i++) {\n    const unsigned e = threadIdx.x % 32 * 8 + i;\n    p[e / 16 * ld + e % 16] = c.r[i];\n  }\n#endif\n}\n"},
};
// clang-format on
const uint32_t cuda_helper_count = IR_COUNT(cuda_helpers);
