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
};
// clang-format on
const uint32_t cuda_helper_count = IR_COUNT(cuda_helpers);
