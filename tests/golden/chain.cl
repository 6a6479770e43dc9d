// -cl-denorms-are-zero
#pragma OPENCL FP_CONTRACT OFF
#ifndef __has_builtin
#define __has_builtin(x) 0
#endif
#if defined(__x86_64__) || defined(__aarch64__)
#define SNT_CPU 1
#endif
#if SNT_CPU && __has_builtin(__builtin_nontemporal_store)
#define SNT_STREAM(v, p) __builtin_nontemporal_store(v, p)
#else
#define SNT_STREAM(v, p) (*(p) = (v))
#endif
#ifdef __aarch64__
#undef select
#define select(a, b, c) ((c) ? (b) : (a))
#endif
#if SNT_CPU && __has_builtin(__builtin_prefetch)
#define SNT_PREFETCH(p, bytes, how) \
  for (size_t q_ = 0; q_ < bytes; q_ += 64) __builtin_prefetch((const void *)((size_t)(p) + q_), (how) & 1, 3 - (how) / 2)
#else
#define SNT_PREFETCH(p, bytes, how)
#endif
#ifdef __F16C__
#define SNT_OWN(x) __asm__("" : "+v"(x))
#define SNT_FEW(F,A,B) B F(A x) { return F##4((A##4)(x)).x; } B##2 F##2(A##2 x) { return F##4(x.xyxy).xy; } B##3 F##3(A##3 x) { return F##4(x.xyzz).xyz; }
#else
#define SNT_OWN(x)
#define SNT_FEW(F,A,B) SNT_W() SNT_W(2) SNT_W(3)
#endif
#define SNT_W(N) float##N snt_f32_from_f16_##N(ushort##N x) { float##N w = vload_half##N(0, (const half *)&x); SNT_OWN(w); return w; }
SNT_W(4) SNT_W(8) SNT_FEW(snt_f32_from_f16_, ushort, float)
float16 snt_f32_from_f16_16(ushort16 x) {
#ifdef __AVX512F__
float16 w;__asm__("vcvtph2ps %1,%0":"=v"(w):"v"(x));return w;
#else
return (float16)(snt_f32_from_f16_8(x.lo),snt_f32_from_f16_8(x.hi));
#endif
}
#undef SNT_W
#define SNT_W(N) ushort##N snt_f16_from_f32_##N(float##N x) { ushort##N h; vstore_half##N##_rte(x, 0, (half *)&h); return h; }
SNT_W(4) SNT_W(8) SNT_W(16) SNT_FEW(snt_f16_from_f32_, float, ushort)
#undef SNT_W
#define SNT_SHARE(n, i) (uint)((ulong)(n) * (i) / all)
#if __has_builtin(__builtin_ia32_pause)
#define SNT_PAUSE __builtin_ia32_pause()
#else
#define SNT_PAUSE
#endif
static __attribute__((noinline)) void link0(const uint snt_group, __global const float *restrict p0, __global float *restrict p1, const uint w0, const uint w1, const uint w2) {
  uint v7 = snt_group;
  uint v8 = v7 << 10;
  uint v9 = v8 + 1024u;
  uint v11 = w0 < v9 ? w0 : v9;
  uint v12 = v11 - v8;
  uint v13 = v12 & 4294967292u;
  uint v14 = v13 + v8;
  float4 v16 = (float4)(as_float(w1));
  for (uint v17 = v8; v17 < v14; v17 += 4u) {
    SNT_PREFETCH(p0 + ((long)(int)v17 + 64), 64, 0);
    float4 v20 = *(__global const float4 *)(p0 + (long)(int)v17);
    float4 v21 = v20 * v16;
    SNT_STREAM(v21, (__global float4 *)(p1 + (long)(int)v17));
  }
  for (uint v24 = v14; v24 < v11; v24 += 1u) {
    float v25 = p0[(long)(int)v24];
    float v26 = v25 * as_float(w1);
    p1[(long)(int)v24] = v26;
  }
}
static __attribute__((noinline)) void share0(volatile __global uint *turns, const uint n, const uint all, const uint own, __global const float *restrict p0, __global float *restrict p1, const uint w0, const uint w1, const uint w2) {
  for (uint at = 0u; at < all; at++) {
    const uint whose = own + at < all ? own + at : own + at - all, low = SNT_SHARE(w2, whose), most = SNT_SHARE(w2, whose + 1u) - low;
    volatile __global uint *taken = turns + 16u * (5u + n * all + whose);
    for (uint few = most / 32u + 1u, g; *taken < most && (g = atomic_add(taken, few)) < most;) {
      const uint first = low + g, end = low + min(g + few, most);
      for (g = first; g < end; g++)
        link0(g, p0, p1, w0, w1, w2);
      mem_fence(CLK_GLOBAL_MEM_FENCE);
      atomic_add(turns + 16u * (1u + n), end - first);
    }
  }
}
static __attribute__((noinline)) void link1(const uint snt_group, __global const ushort *restrict p0, __global const ushort *restrict p1, __global ushort *restrict p2, __global uchar *restrict p3, const uint w0) {
  uint v3 = snt_group;
  uint v4 = v3 << 2;
  ushort4 v5 = *(__global const ushort4 *)(p0 + (long)(int)v4);
  float4 v6 = snt_f32_from_f16_4(v5);
  ushort4 v7 = *(__global const ushort4 *)(p1 + (long)(int)v4);
  float4 v8 = as_float4(convert_uint4(v7) << 16);
  float4 v9 = v8 + v6;
  ushort4 v10 = snt_f16_from_f32_4(v9);
  *(__global ushort4 *)(p2 + (long)(int)v4) = v10;
  uint4 v12 = convert_uint4_sat_rte(select(v9, (float4)(0), v9 != v9));
  uint4 v13 = min(v12, (uint4)(255u));
  uchar4 v14 = convert_uchar4(v13);
  *(__global uchar4 *)(p3 + (long)(int)v4) = v14;
}
static __attribute__((noinline)) void share1(volatile __global uint *turns, const uint n, const uint all, const uint own, __global const ushort *restrict p0, __global const ushort *restrict p1, __global ushort *restrict p2, __global uchar *restrict p3, const uint w0) {
  for (uint at = 0u; at < all; at++) {
    const uint whose = own + at < all ? own + at : own + at - all, low = SNT_SHARE(w0, whose), most = SNT_SHARE(w0, whose + 1u) - low;
    volatile __global uint *taken = turns + 16u * (5u + n * all + whose);
    for (uint few = most / 32u + 1u, g; *taken < most && (g = atomic_add(taken, few)) < most;) {
      const uint first = low + g, end = low + min(g + few, most);
      for (g = first; g < end; g++)
        link1(g, p0, p1, p2, p3, w0);
      mem_fence(CLK_GLOBAL_MEM_FENCE);
      atomic_add(turns + 16u * (1u + n), end - first);
    }
  }
}
static __attribute__((noinline)) void finish(volatile __global uint *done, const uint most) {
  do while (*done < most) SNT_PAUSE; while (atomic_or(done, 0u) < most);
}
__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void chain(volatile __global uint *turns, __global void *p1, __global void *p2, __global void *p3, __global void *p4, __global void *p5, __global void *p6, const uint w0_0, const uint w0_1, const uint w0_2, const uint w1_0, const uint w2_0, const uint w2_1, const uint w2_2, const uint w3_0, const uint w3_1, const uint w3_2, const uint groups) {
  if (groups == 0u) return;
  const uint all = (uint)(get_num_groups(0) * get_num_groups(1) * get_num_groups(2));
  const uint own = (uint)((get_group_id(2) * get_num_groups(1) + get_group_id(1)) * get_num_groups(0) + get_group_id(0));
  share0(turns, 0u, all, own, p1, p2, w0_0, w0_1, w0_2);
  share1(turns, 1u, all, own, p3, p4, p5, p6, w1_0);
  finish(turns + 16, w0_2);
  finish(turns + 32, w1_0);
  share0(turns, 2u, all, own, p2, p3, w2_0, w2_1, w2_2);
  finish(turns + 48, w2_2);
  share0(turns, 3u, all, own, p2, p3, w3_0, w3_1, w3_2);
  if (atomic_inc(turns + 0) + 1u == all)
    for (uint i = 0u; i < 16u * (5u + 4u * all); i += 16u) turns[i] = 0u;
}
