/* Helper texts of CUDA kernels. No header is included, so that NVRTC needs none; g++ compiles the same text behind a shim (SNT_SHIM), which has
   CUDA's keywords, built-in names, and in C++ what is inline PTX here. */
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
    {"snt_f32_from_f16", "#ifndef SNT_SHIM\nstatic __device__ inline float snt_f32_from_f16(unsigned short h) {\n"
                         "  float x;\n  asm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(x) : \"h\"(h));\n  return x;\n}\n#endif\n"},
    {"snt_f16_from_f32", "#ifndef SNT_SHIM\nstatic __device__ inline unsigned short snt_f16_from_f32(float x) {\n"
                         "  unsigned short h;\n  asm(\"cvt.rn.f16.f32 %0, %1;\" : \"=h\"(h) : \"f\"(x));\n  return h;\n}\n#endif\n"},
    {"snt_bf16_from_f32", "static __device__ inline unsigned short snt_bf16_from_f32(float x) {\n"
                          "  const unsigned u = __float_as_uint(x);\n  if ((u & 0x7fffffffu) > 0x7f800000u) return (unsigned short)(u >> 16 | 0x40u);\n"
                          "  return (unsigned short)((u + 0x7fffu + (u >> 16 & 1u)) >> 16);\n}\n"},
    {"snt_dot4(", "static __device__ inline int snt_dot4(int a, int b, int c) {\n#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 610\n"
                  "  int d;\n  asm(\"dp4a.u32.s32 %0, %1, %2, %3;\" : \"=r\"(d) : \"r\"(a), \"r\"(b), \"r\"(c));\n  return d;\n#else\n"
                  "  unsigned d = (unsigned)c;\n  for (int byte = 0; byte < 32; byte += 8) d += ((unsigned)a >> byte & 255u) * (unsigned)(int)(signed char)(b >> byte & 255);\n"
                  "  return (int)d;\n#endif\n}\n"},
    {"snt_popcount(", "static __device__ inline int snt_popcount(unsigned long long x) { return __popcll(x); }\n"},
    {"snt_clz(", "static __device__ inline int snt_clz(unsigned long long x, int bits) { return __clzll((long long)x) - (64 - bits); }\n"},
    {"snt_sg_", "#define SNT_BUTTERFLY(name, step) \\\n  template <class T> static __device__ inline T name(T x, int width) { \\\n"
                "    for (int o = width / 2; o > 0; o /= 2) { const T y = __shfl_xor_sync(0xffffffffu, x, o); x = step; } return x; }\n"
                "SNT_BUTTERFLY(snt_sg_add, x + y)\nSNT_BUTTERFLY(snt_sg_max, (x > y || x != x) ? x : y)\n"
                "SNT_BUTTERFLY(snt_sg_min, (x < y || x != x) ? x : y)\n#undef SNT_BUTTERFLY\n"},
    {"SNT_AT(", "#define SNT_AT(p) (unsigned)__cvta_generic_to_shared(p)\n"}, /* an address by which local memory is reached without asking which memory it is */
    {"snt_mma_load<", "#define SNT_2(c, x) c(x[0]), c(x[1])\n#define SNT_4(c, x) SNT_2(c, x), c(x[2]), c(x[3])\n"
                "#define SNT_8(c, x) SNT_4(c, x), c(x[4]), c(x[5]), c(x[6]), c(x[7])\n"
                "#ifndef SNT_SHIM\ntemplate <class F, class T> static __device__ F snt_mma_load(const T *p, unsigned ld, int columns);\n"
                "#define SNT_AS(how, side, type, n, places, address) \\\n"
                "  asm volatile(\"wmma.load.\" side \".sync.aligned.\" how \".m16n16k16.shared.\" type \" {\" places \"}, \" address \";\" : n(\"=r\", d.r) : \"r\"(SNT_AT(p)), \"r\"(ld) : \"memory\")\n"
                "#define SNT_LOAD(F, T, ...) \\\n"
                "  template <> __device__ inline F snt_mma_load<F, T>(const T *p, unsigned ld, int columns) { \\\n"
                "    F d; d.columns = columns != 0; \\\n    if (columns) SNT_AS(\"col\", __VA_ARGS__); else SNT_AS(\"row\", __VA_ARGS__); \\\n    return d; }\n"
                "#define SNT_MMA(A, B, C, DO) static __device__ inline C snt_mma(const A &a, const B &b, const C &c) { \\\n"
                "    C d; \\\n"
                "    if (a.columns) { if (b.columns) DO(\"col\", \"col\"); else DO(\"col\", \"row\"); } \\\n"
                "    else if (b.columns) DO(\"row\", \"col\"); else DO(\"row\", \"row\"); \\\n"
                "    return d; }\n"
                "#define SNT_STORE(T, C, type, r_) static __device__ inline void snt_mma_store(T *p, const C &c, unsigned ld) { \\\n"
                "  asm volatile(\"wmma.store.d.sync.aligned.row.m16n16k16.shared.\" type \" [%0], {%1,%2,%3,%4,%5,%6,%7,%8}, %9;\" : : \"r\"(SNT_AT(p)), SNT_8(r_, c.r), \"r\"(ld) : \"memory\"); }\n"
                "#endif\n"},
    {"snt_c_f32", "struct snt_a_f16 { unsigned r[8]; int columns; };\nstruct snt_b_f16 { unsigned r[8]; int columns; };\n"
                "struct snt_a_bf16 { unsigned r[4]; int columns; };\nstruct snt_b_bf16 { unsigned r[4]; int columns; };\nstruct snt_c_f32 { float r[8]; };\n"
                "template <int N> static __device__ inline void snt_fill(snt_c_f32 (&m)[N], float x) {\n"
                "  for (int n = 0; n < N; n++) for (int i = 0; i < 8; i++) m[n].r[i] = x;\n}\n"
                "#ifndef SNT_SHIM\n"
                "#define SNT_F16 SNT_8, \"%0,%1,%2,%3,%4,%5,%6,%7\", \"[%8], %9\"\n#define SNT_BF16 SNT_4, \"%0,%1,%2,%3\", \"[%4], %5\"\n"
                "SNT_LOAD(snt_a_f16, unsigned short, \"a\", \"f16\", SNT_F16)\nSNT_LOAD(snt_b_f16, unsigned short, \"b\", \"f16\", SNT_F16)\n"
                "SNT_LOAD(snt_a_bf16, unsigned short, \"a\", \"bf16\", SNT_BF16)\nSNT_LOAD(snt_b_bf16, unsigned short, \"b\", \"bf16\", SNT_BF16)\n"
                "#define SNT_MMA16(la, lb) asm volatile(\"wmma.mma.sync.aligned.\" la \".\" lb \".m16n16k16.f32.f32 {%0,%1,%2,%3,%4,%5,%6,%7}, {%8,%9,%10,%11,%12,%13,%14,%15}, \" \\\n"
                "  \"{%16,%17,%18,%19,%20,%21,%22,%23}, {%24,%25,%26,%27,%28,%29,%30,%31};\" : SNT_8(\"=f\", d.r) : SNT_8(\"r\", a.r), SNT_8(\"r\", b.r), SNT_8(\"f\", c.r))\n"
                "#define SNT_MMAB(la, lb) asm volatile(\"wmma.mma.sync.aligned.\" la \".\" lb \".m16n16k16.f32.bf16.bf16.f32 {%0,%1,%2,%3,%4,%5,%6,%7}, {%8,%9,%10,%11}, \" \\\n"
                "  \"{%12,%13,%14,%15}, {%16,%17,%18,%19,%20,%21,%22,%23};\" : SNT_8(\"=f\", d.r) : SNT_4(\"r\", a.r), SNT_4(\"r\", b.r), SNT_8(\"f\", c.r))\n"
                "SNT_MMA(snt_a_f16, snt_b_f16, snt_c_f32, SNT_MMA16)\nSNT_MMA(snt_a_bf16, snt_b_bf16, snt_c_f32, SNT_MMAB)\n"
                "SNT_STORE(float, snt_c_f32, \"f32\", \"f\")\n#endif\n"},
    {"snt_copy<", "#ifndef SNT_SHIM\n" /* sixteen bytes pass the first cache by */
                  "template <int N> static __device__ void snt_copy(void *to, const void *from, bool inside);\n"
                  "#define SNT_COPY(N, how) \\\n"
                  "  template <> __device__ inline void snt_copy<N>(void *to, const void *from, bool inside) { \\\n"
                  "    asm volatile(\"cp.async.\" how \".shared.global [%0], [%1], \" #N \", %2;\" : : \"r\"(SNT_AT(to)), \"l\"(from), \\\n"
                  "                 \"r\"(inside ? N : 0)); }\n"
                  "SNT_COPY(4, \"ca\")\nSNT_COPY(8, \"ca\")\nSNT_COPY(16, \"cg\")\n"
                  "static __device__ inline void snt_copy_commit() { asm volatile(\"cp.async.commit_group;\" : : : \"memory\"); }\n"
                  "template <int N> static __device__ inline void snt_copy_wait() { asm volatile(\"cp.async.wait_group %0;\" : : \"n\"(N) : \"memory\"); }\n"
                  "#endif\n"},
    {"snt_c_i32", "template <int side, class T> struct snt_bytes { unsigned r[2]; int columns; };\n"
                "typedef snt_bytes<0, signed char> snt_a_i8;\ntypedef snt_bytes<1, signed char> snt_b_i8;\n"
                "typedef snt_bytes<0, unsigned char> snt_a_u8;\ntypedef snt_bytes<1, unsigned char> snt_b_u8;\nstruct snt_c_i32 { int r[8]; };\n"
                "template <int N> static __device__ inline void snt_fill(snt_c_i32 (&m)[N], int x) {\n"
                "  for (int n = 0; n < N; n++) for (int i = 0; i < 8; i++) m[n].r[i] = x;\n}\n"
                "#ifndef SNT_SHIM\n#define SNT_BYTES(F, T, side, type) SNT_LOAD(F, T, side, type, SNT_2, \"%0,%1\", \"[%2], %3\")\n"
                "SNT_BYTES(snt_a_i8, signed char, \"a\", \"s8\")\nSNT_BYTES(snt_b_i8, signed char, \"b\", \"s8\")\n"
                "SNT_BYTES(snt_a_u8, unsigned char, \"a\", \"u8\")\nSNT_BYTES(snt_b_u8, unsigned char, \"b\", \"u8\")\n"
                "#define SNT_MMA8(la, lb, type) asm volatile(\"wmma.mma.sync.aligned.\" la \".\" lb \".m16n16k16.s32.\" type \".\" type \".s32 {%0,%1,%2,%3,%4,%5,%6,%7}, {%8,%9}, {%10,%11}, \" \\\n"
                "  \"{%12,%13,%14,%15,%16,%17,%18,%19};\" : SNT_8(\"=r\", d.r) : SNT_2(\"r\", a.r), SNT_2(\"r\", b.r), SNT_8(\"r\", c.r))\n"
                "#define SNT_MMAS(la, lb) SNT_MMA8(la, lb, \"s8\")\n#define SNT_MMAU(la, lb) SNT_MMA8(la, lb, \"u8\")\n"
                "SNT_MMA(snt_a_i8, snt_b_i8, snt_c_i32, SNT_MMAS)\nSNT_MMA(snt_a_u8, snt_b_u8, snt_c_i32, SNT_MMAU)\n"
                "SNT_STORE(int, snt_c_i32, \"s32\", \"r\")\n#endif\n"},
};
// clang-format on
const uint32_t cuda_helper_count = IR_COUNT(cuda_helpers);
