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
    {"SNT_EXTREME", "#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800\n"
                "#define SNT_BEST(name, better) float z; asm(#name \".NaN.f32 %0, %1, %2;\" : \"=f\"(z) : \"f\"(x), \"f\"(y)); return z;\n#else\n"
                "#define SNT_BEST(name, better) return x better y || x != x ? x : y;\n#endif\n"
                "#define SNT_EXTREME(name, better) static __device__ inline float snt_##name(float x, float y) { SNT_BEST(name, better) }\n"},
    {"snt_max(", "SNT_EXTREME(max, >)\n"},
    {"snt_min(", "SNT_EXTREME(min, <)\n"},
    {"SNT_LOCAL(", "#ifndef SNT_SHIM\n#define SNT_LOCAL(bytes) alignas(128) extern __shared__ unsigned char snt_local[] /* of so many, which the launch gives */\n#endif\n"},
    {"SNT_AT(", "#ifndef SNT_SHIM\n#define SNT_AT(p) (unsigned)__cvta_generic_to_shared(p)\n#endif\n"}, /* an address by which local memory is reached without asking which memory it is */
    /* Which lane holds what of a fragment is that of ldmatrix and mma.sync: m16n8k16 of halves, m16n8k32 of bytes. These are turned as pairs, whose halves are two rows (columns) of the
       matrix; so that they need not move on, rows (columns) 0 2 4 6 9 11 13 15 of memory are the first eight of every fragment of bytes. These, and the eight that are turned at once, lie in
       banks of their own. */
    {"snt_mma_load<", "#define SNT_2(c, x) c((x)[0]), c((x)[1])\n#define SNT_4(c, x) SNT_2(c, x), SNT_2(c, (x) + 2)\n"
                "#ifndef SNT_SHIM\n"
                "static __device__ inline unsigned snt_lane() {\n  unsigned l;\n  asm(\"mov.u32 %0, %%laneid;\" : \"=r\"(l));\n  return l;\n}\n"
                "#define SNT_HOW(how) asm volatile(\"ldmatrix.sync.aligned.m8n8.x4\" how \".shared.b16 {%0,%1,%2,%3}, [%4];\" : SNT_4(\"=r\", r) : \"r\"(at) : \"memory\")\n"
                "static __device__ inline void snt_read(unsigned *r, unsigned at, bool turned) {\n  if (turned) SNT_HOW(\".trans\"); else SNT_HOW(\"\");\n}\n"
                "#define SNT_UNIT(A, C, c_, type) static __device__ inline void snt_unit(C *c, const A &a, const unsigned *b) { \\\n"
                "    asm(\"mma.sync.aligned.m16n8k\" type \" {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};\" : SNT_4(c_, c) : SNT_4(\"r\", a.r), SNT_2(\"r\", b)); }\n#endif\n"
                "template <class F, class T> static __device__ inline F snt_mma_load(const T *p, unsigned j, unsigned ld, int columns) {\n"
                "  F d;\n  const unsigned l = snt_lane(), low = l % 16, high = l / 16;\n  const bool turned = (columns != 0) == (F::side == 0);\n"
                "  if (sizeof(T) == 2) j += columns ? (low % 8 + high * 8) * ld + low / 8 * 8 : low * ld + high * 8;\n"
                "  else if (turned) j += (low % 8 / 2 * 4 + low % 2 + (low / 8 ^ low % 8 / 4) * 2 + high * 16) * ld;\n"
                "  else j += (low % 8 * 2 + ((columns ? high : low / 8) ^ low % 8 / 4)) * ld + (columns ? low / 8 : high) * 16;\n"
                "  snt_read(d.r, SNT_AT(p) + j * (unsigned)sizeof(T), turned);\n"
                "  for (int i = 0; i < 4 && sizeof(T) == 1 && turned; i += 2) {\n    const unsigned x = d.r[i], y = d.r[i + 1], which = (l & 2 ? 0x2064 : 0x6420) + high * 0x1111;\n"
                "    d.r[i] = __byte_perm(x, y, which), d.r[i + 1] = __byte_perm(x, y, which ^ 0x1111);\n  }\n"
                "  if (sizeof(T) == 1 && turned && F::side == 1) {\n    const unsigned x = d.r[1];\n    d.r[1] = d.r[2], d.r[2] = x;\n  }\n"
                "  return d;\n}\n"
                "template <class A, class B, class C> static __device__ inline C snt_mma(const A &a, const B &b, C c) {\n"
                "  snt_unit(c.r, a, b.r), snt_unit(c.r + 4, a, b.r + 2);\n  return c;\n}\n"},
    {"snt_c_f32", "template <int t, class T> struct snt_half { enum { side = t }; unsigned r[4]; };\nstruct snt_bf16 {};\n"
                "typedef snt_half<0, float> snt_a_f16;\ntypedef snt_half<1, float> snt_b_f16;\ntypedef snt_half<0, snt_bf16> snt_a_bf16;\ntypedef snt_half<1, snt_bf16> snt_b_bf16;\n"
                "struct snt_c_f32 { float r[8]; };\n"
                "static __device__ inline snt_c_f32 operator*(snt_c_f32 a, const snt_c_f32 &b) {\n  for (int i = 0; i < 8; i++) a.r[i] *= b.r[i];\n  return a;\n}\n"
                "template <int N> static __device__ inline void snt_fill(snt_c_f32 (&m)[N], float x) {\n"
                "  for (int n = 0; n < N; n++) for (int i = 0; i < 8; i++) m[n].r[i] = x;\n}\n"
                "static __device__ inline void snt_mma_store(float *p, const snt_c_f32 &c, unsigned ld) {\n"
                "  const unsigned l = snt_lane();\n"
                "  for (int i = 0; i < 8; i += 2) *(snt_vec<float, 2> *)(p + (l / 4 + i % 4 * 4) * ld + l % 4 * 2 + i / 4 * 8) = snt_vec<float, 2>{{c.r[i], c.r[i + 1]}};\n}\n"
                "#ifndef SNT_SHIM\n#define SNT_HALF(A, type) SNT_UNIT(A, float, \"+f\", \"16.row.col.f32.\" type \".\" type \".f32\")\n"
                "SNT_HALF(snt_a_f16, \"f16\")\nSNT_HALF(snt_a_bf16, \"bf16\")\n#endif\n"},
    {"snt_mma_load<snt_c_f32>", "template <> inline __device__ snt_c_f32 snt_mma_load<snt_c_f32>(const float *p, unsigned j, unsigned ld, int columns) {\n"
                "  snt_c_f32 d;\n  const unsigned l = snt_lane(), down = columns ? 1 : ld, across = columns ? ld : 1;\n"
                "  for (int i = 0; i < 8; i++) d.r[i] = p[j + (l / 4 + i % 4 / 2 * 8) * down + (l % 4 * 2 + i % 2 + i / 4 * 8) * across];\n  return d;\n}\n"},
    {"snt_mma_make<", "#ifndef SNT_SHIM\n"
                "#define SNT_PAIR(A, type) static __device__ inline void snt_pair(A &a, int i, float x, float y) { \\\n"
                "    asm(\"cvt.rn.\" type \".f32 %0, %2, %1;\" : \"=r\"(a.r[i]) : \"f\"(x), \"f\"(y)); }\n"
                "SNT_PAIR(snt_a_f16, \"f16x2\")\nSNT_PAIR(snt_a_bf16, \"bf16x2\")\n#endif\n"
                "template <class F> static __device__ inline F snt_mma_make(const snt_c_f32 &x) {\n"
                "  F a;\n  for (int i = 0; i < 4; i++) snt_pair(a, i, x.r[2 * i], x.r[2 * i + 1]);\n  return a;\n}\n"},
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
    {"snt_c_i32", "template <int t, class T> struct snt_bytes { enum { side = t }; unsigned r[4]; };\n"
                "typedef snt_bytes<0, signed char> snt_a_i8;\ntypedef snt_bytes<1, signed char> snt_b_i8;\n"
                "typedef snt_bytes<0, unsigned char> snt_a_u8;\ntypedef snt_bytes<1, unsigned char> snt_b_u8;\nstruct snt_c_i32 { int r[8]; };\n"
                "template <int N> static __device__ inline void snt_fill(snt_c_i32 (&m)[N], int x) {\n"
                "  for (int n = 0; n < N; n++) for (int i = 0; i < 8; i++) m[n].r[i] = x;\n}\n"
                "static __device__ inline void snt_mma_store(int *p, const snt_c_i32 &c, unsigned ld) {\n"
                "  const unsigned l = snt_lane();\n"
                "  for (int i = 0; i < 4; i += 2) {\n    const int x = c.r[i], y = c.r[i + 4], z = c.r[i + 1], w = c.r[i + 5];\n    const bool turned = l & 2;\n"
                "    *(snt_vec<int, 4> *)(p + (l / 4 * 2 + (i / 2 ^ l / 16)) * ld + l % 4 * 4) = snt_vec<int, 4>{{turned ? y : x, turned ? x : y, turned ? w : z, turned ? z : w}};\n  }\n}\n"
                "#ifndef SNT_SHIM\n#define SNT_BYTES(A, type) SNT_UNIT(A, int, \"+r\", \"32.row.col.s32.\" type \".\" type \".s32\")\n"
                "SNT_BYTES(snt_a_i8, \"s8\")\nSNT_BYTES(snt_a_u8, \"u8\")\n#endif\n"},
};
// clang-format on
const uint32_t cuda_helper_count = IR_COUNT(cuda_helpers);
