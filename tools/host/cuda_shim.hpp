// What CUDA C sees when this machine's C++ compiler compiles it: keywords, built-in variables and functions, and a launcher. Blocks run one
// after another; the threads of a block one after another too, or, when the kernel waits for others (SNT_FIBERS), as fibers that change at
// barriers and shuffles. Warps have 32 lanes. A block whose threads wait at different barriers is reported, not hung.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <utility>
#if SNT_FIBERS
#include <sys/mman.h>
#include <ucontext.h>
#endif

#define SNT_SHIM
#define __global__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __shared__ static thread_local
#define SNT_LOCAL(bytes) alignas(128) static thread_local unsigned char snt_local[bytes]
#define alignas(...) __attribute__((aligned(__VA_ARGS__)))

struct snt_dim3 { unsigned x, y, z; };
static thread_local snt_dim3 threadIdx, blockIdx, blockDim, gridDim;
static const int warpSize = 32;

namespace snt {
enum { OK = 0, DIVERGED = 1, NO_MEMORY = 2 };

#if SNT_FIBERS
struct barrier { unsigned live, arrived, turn; };
struct copy { void *to; const void *from; size_t bytes, zeros; unsigned set; };
struct copies { copy at[256]; unsigned count, set; };  // `set`: of the next copy
struct fiber { ucontext_t context; bool done; snt_dim3 index; unsigned long long slot[2]; copies pending; };
struct block { fiber *fibers; barrier all, *warps; unsigned count, current, live, idle_turns; bool diverged; ucontext_t home; char *stacks; };
static thread_local block now;
static const size_t stack_bytes = 256 << 10;

static void change_to(unsigned next) {
  unsigned old = now.current;
  now.current = next;
  threadIdx = now.fibers[next].index;
  swapcontext(&now.fibers[old].context, &now.fibers[next].context);
}

// Lets another live thread go on; after every one was asked in vain, gives the block up.
static void yield() {
  if (++now.idle_turns > 2 * now.live + 2) {
    now.diverged = true;
    setcontext(&now.home);
  }
  unsigned next = now.current;
  do next = next + 1 == now.count ? 0 : next + 1;
  while (now.fibers[next].done);
  if (next != now.current) change_to(next);
}

static void release(barrier &b) {
  b.arrived = 0;
  b.turn++;
  now.idle_turns = 0;
}

static void wait(barrier &b) {
  unsigned turn = b.turn;
  if (++b.arrived == b.live) return release(b);
  while (b.turn == turn) yield();
}

static void leave(barrier &b) {
  if (--b.live > 0 && b.arrived == b.live) release(b);
}

static barrier &own_warp() { return now.warps[now.current / 32]; }

template <class T> static T shuffle(T value, unsigned lane) {
  static_assert(sizeof(T) <= sizeof now.fibers[0].slot, "a shuffled value is at most 16 bytes");
  std::memcpy(now.fibers[now.current].slot, &value, sizeof value);
  wait(own_warp());
  unsigned source = now.current / 32 * 32 + lane % 32;
  T result = value;
  if (source < now.count && !now.fibers[source].done) std::memcpy(&result, now.fibers[source].slot, sizeof result);
  wait(own_warp());
  return result;
}

// What every lane of the warp has, the first N words of it.
template <unsigned M, unsigned N> static void all_lanes(const unsigned (&value)[M], unsigned (*all)[N]) {
  static_assert(N <= M && sizeof *all <= sizeof now.fibers[0].slot, "a lane has at most 16 bytes");
  std::memcpy(now.fibers[now.current].slot, value, sizeof *all);
  wait(own_warp());
  for (unsigned lane = 0, first = now.current / 32 * 32; lane < 32; lane++)
    std::memcpy(all[lane], first + lane < now.count ? static_cast<const void *>(now.fibers[first + lane].slot) : value, sizeof *all);
  wait(own_warp());
}

// Copies of sets before `set`. They happen at the wait that asks for them and no earlier, so that a wait that is missing shows.
static void finish_copies(unsigned set) {
  copies &p = now.fibers[now.current].pending;
  unsigned done = 0;
  for (; done < p.count && p.at[done].set < set; done++) {
    const copy &c = p.at[done];
    std::memcpy(c.to, c.from, c.bytes - c.zeros);
    std::memset(static_cast<char *>(c.to) + c.bytes - c.zeros, 0, c.zeros);
  }
  std::memmove(p.at, p.at + done, (p.count - done) * sizeof *p.at);
  p.count -= done;
}

static void begin_copy(const copy &c) {
  copies &p = now.fibers[now.current].pending;
  if (p.count == sizeof p.at / sizeof *p.at) finish_copies(p.set + 1);
  p.at[p.count] = c;
  p.at[p.count++].set = p.set;
}

template <class Call> struct body {
  static thread_local const Call *call;
  static void enter() {
    (*call)();
    now.fibers[now.current].done = true;
    now.live--;
    now.idle_turns = 0;
    leave(own_warp());
    leave(now.all);
    if (now.live == 0) setcontext(&now.home);
    yield();
  }
};
template <class Call> thread_local const Call *body<Call>::call;

static bool take_block(unsigned threads) {
  now.count = threads;
  now.fibers = new (std::nothrow) fiber[threads]();
  now.warps = new (std::nothrow) barrier[(threads + 31) / 32]();
  void *stacks = mmap(nullptr, threads * stack_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  now.stacks = stacks == MAP_FAILED ? nullptr : static_cast<char *>(stacks);
  return now.fibers && now.warps && now.stacks;
}

static void give_block() {
  if (now.stacks) munmap(now.stacks, now.count * stack_bytes);
  delete[] now.fibers;
  delete[] now.warps;
}

template <class Call> static int run_block(const Call &call) {
  body<Call>::call = &call;
  now.current = now.idle_turns = 0;
  now.live = now.count;
  now.diverged = false;
  now.all = barrier{now.count, 0, 0};
  for (unsigned i = 0; i < now.count; i++) {
    fiber &f = now.fibers[i];
    if (i % 32 == 0) now.warps[i / 32] = barrier{now.count - i < 32 ? now.count - i : 32, 0, 0};
    f.done = false;
    f.pending.count = f.pending.set = 0;
    f.index = snt_dim3{i % blockDim.x, i / blockDim.x % blockDim.y, i / (blockDim.x * blockDim.y)};
    getcontext(&f.context);
    f.context.uc_stack.ss_sp = now.stacks + i * stack_bytes;
    f.context.uc_stack.ss_size = stack_bytes;
    f.context.uc_link = nullptr;
    makecontext(&f.context, body<Call>::enter, 0);
  }
  threadIdx = now.fibers[0].index;
  swapcontext(&now.home, &now.fibers[0].context);
  return now.diverged ? DIVERGED : OK;
}
#else
static bool take_block(unsigned) { return true; }
static void give_block() {}
template <class Call> static int run_block(const Call &call) {
  for (threadIdx.z = 0; threadIdx.z < blockDim.z; threadIdx.z++)
    for (threadIdx.y = 0; threadIdx.y < blockDim.y; threadIdx.y++)
      for (threadIdx.x = 0; threadIdx.x < blockDim.x; threadIdx.x++) call();
  return OK;
}
#endif

// The kernel's parameters are pointers, then one struct of words by value.
template <class... Types, size_t... I>
static void call_kernel(void (*kernel)(Types...), void *const *bindings, const void *words, std::index_sequence<I...>) {
  using last = typename std::remove_reference<decltype((std::declval<Types>(), ...))>::type;
  auto pick = [&](auto position, auto *type) -> decltype(auto) {
    using T = typename std::remove_pointer<decltype(type)>::type;
    if constexpr (std::is_pointer<T>::value) return static_cast<T>(bindings[position]);
    else return *static_cast<const last *>(words);
  };
  kernel(pick(std::integral_constant<size_t, I>(), static_cast<typename std::remove_cv<Types>::type *>(nullptr))...);
}

template <class... Types>
static int launch(void (*kernel)(Types...), const unsigned *grid, const unsigned *items, void *const *bindings, const void *words) {
  auto call = [&] { call_kernel(kernel, bindings, words, std::index_sequence_for<Types...>()); };
  int result = OK;
  gridDim = snt_dim3{grid[0], grid[1], grid[2]};
  blockDim = snt_dim3{items[0], items[1], items[2]};
  if (!take_block(items[0] * items[1] * items[2])) result = NO_MEMORY;
  for (blockIdx.z = 0; blockIdx.z < grid[2] && result == OK; blockIdx.z++)
    for (blockIdx.y = 0; blockIdx.y < grid[1] && result == OK; blockIdx.y++)
      for (blockIdx.x = 0; blockIdx.x < grid[0] && result == OK; blockIdx.x++) result = run_block(call);
  give_block();
  return result;
}
}  // namespace snt

// ---- built-in functions ----
#if SNT_FIBERS
static inline void __syncthreads() { snt::wait(snt::now.all); }
static inline void __syncwarp(unsigned = 0xffffffffu) { snt::wait(snt::own_warp()); }
template <int N> static inline void snt_copy(void *to, const void *from, bool inside) { snt::begin_copy({to, from, N, inside ? size_t(0) : N, 0}); }
static inline void snt_copy_commit() { snt::now.fibers[snt::now.current].pending.set++; }
template <int open> static inline void snt_copy_wait() {
  const unsigned set = snt::now.fibers[snt::now.current].pending.set;
  if (set > open) snt::finish_copies(set - open);
}
template <class T> static inline T __shfl_sync(unsigned, T value, int lane, int = 32) { return snt::shuffle(value, (unsigned)lane); }
template <class T> static inline T __shfl_xor_sync(unsigned, T value, int mask, int = 32) {
  return snt::shuffle(value, (snt::now.current % 32) ^ (unsigned)mask);
}
template <class T> static inline T __shfl_down_sync(unsigned, T value, unsigned delta, int = 32) {
  unsigned lane = snt::now.current % 32;
  return snt::shuffle(value, lane + delta < 32 ? lane + delta : lane);
}
template <class T> static inline T __shfl_up_sync(unsigned, T value, unsigned delta, int = 32) {
  unsigned lane = snt::now.current % 32;
  return snt::shuffle(value, lane >= delta ? lane - delta : lane);
}
#else
static inline void __syncthreads() {}
static inline void __syncwarp(unsigned = 0xffffffffu) {}
template <class T> static inline T __shfl_sync(unsigned, T value, int, int = 32) { return value; }
template <class T> static inline T __shfl_xor_sync(unsigned, T value, int, int = 32) { return value; }
#endif
static inline void __threadfence() {}
static inline void __threadfence_block() {}

template <class T, class S> static inline T snt_as(S s) {
  static_assert(sizeof(T) == sizeof(S), "equal widths");
  T t;
  std::memcpy(&t, &s, sizeof t);
  return t;
}
static inline float __uint_as_float(unsigned x) { return snt_as<float>(x); }
static inline unsigned __float_as_uint(float x) { return snt_as<unsigned>(x); }
static inline float __int_as_float(int x) { return snt_as<float>(x); }
static inline int __float_as_int(float x) { return snt_as<int>(x); }
static inline double __longlong_as_double(long long x) { return snt_as<double>(x); }
static inline long long __double_as_longlong(double x) { return snt_as<long long>(x); }
static inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((unsigned long long)a * b >> 32); }
static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
static inline int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
static inline int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
static inline float __fsqrt_rn(float x) { return std::sqrt(x); }
static inline float __fdiv_rn(float a, float b) { return a / b; }
static inline float __fmul_rn(float a, float b) { return a * b; }
static inline float __fadd_rn(float a, float b) { return a + b; }
static inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
static inline float __frcp_rn(float x) { return 1.0f / x; }
template <class T> static inline T __ldg(const T *p) { return *p; }
template <class T> static inline T __ldcs(const T *p) { return *p; }
template <class T> static inline void __stcs(T *p, T v) { *p = v; }

// As cvt of PTX: to nearest even, NaN is quiet.
static inline float snt_f32_from_f16(unsigned short h) {
  const unsigned sign = (h & 0x8000u) << 16, rest = h & 0x7fffu;
  if (rest >= 0x7c00u) return __uint_as_float(sign | 0x7f800000u | (rest & 0x3ffu) << 13 | (rest > 0x7c00u ? 0x400000u : 0u));
  const float x = __uint_as_float(rest << 13) * 0x1p112f;
  return sign ? -x : x;
}
static inline unsigned short snt_f16_from_f32(float x) {
  const unsigned u = __float_as_uint(x), sign = u >> 16 & 0x8000u, rest = u & 0x7fffffffu;
  if (rest > 0x7f800000u) return (unsigned short)(sign | 0x7e00u);
  if (rest >= 0x477ff000u) return (unsigned short)(sign | 0x7c00u);
  if (rest < 0x38800000u)  // subnormal: let the addition round
    return (unsigned short)(sign | (__float_as_uint(__uint_as_float(rest) + 0.5f) - 0x3f000000u));
  return (unsigned short)(sign | ((rest - 0x38000000u + 0xfffu + (rest >> 13 & 1u)) >> 13));
}

// ---- matrix units: ldmatrix and mma.sync, as PTX says which lane holds what ----
static inline unsigned __byte_perm(unsigned a, unsigned b, unsigned which) {
  const unsigned long long both = (unsigned long long)b << 32 | a;
  unsigned d = 0;
  for (unsigned i = 0; i < 4; i++) d |= (unsigned)(both >> (which >> 4 * i & 7) * 8 & 255) << 8 * i;
  return d;
}
#if SNT_FIBERS
#define SNT_AT(p) (const char *)(p)
struct snt_bf16;
template <int side, class T> struct snt_half;
template <int side, class T> struct snt_bytes;
static inline unsigned snt_lane() { return snt::now.current % 32; }
// Lane l says where row l % 8 of matrix l / 8 is and gets two elements of its row l / 4; `turned`: of its column.
static inline void snt_read(unsigned *r, const char *at, bool turned) {
  const char *rows[32];
  unsigned words[sizeof at / sizeof(unsigned)], heard[32][sizeof at / sizeof(unsigned)];
  std::memcpy(words, &at, sizeof at);
  snt::all_lanes(words, heard);
  std::memcpy(rows, heard, sizeof rows);
  const unsigned own = snt_lane() / 4, first = snt_lane() % 4 * 2;
  for (unsigned n = 0; n < 4; n++)
    for (unsigned i = 0; i < 2; i++) {
      unsigned short element;
      std::memcpy(&element, rows[8 * n + (turned ? first + i : own)] + 2 * (turned ? own : first + i), sizeof element);
      r[n] = i ? r[n] | (unsigned)element << 16 : element;
    }
}
namespace snt {
template <int side> static inline float number(unsigned x, const snt_half<side, float> &) { return snt_f32_from_f16((unsigned short)x); }
template <int side> static inline float number(unsigned x, const snt_half<side, snt_bf16> &) { return __uint_as_float(x << 16); }
template <int side, class T> static inline int number(unsigned x, const snt_bytes<side, T> &) { return (T)x; }
template <int side, class T> static constexpr unsigned a_word(const snt_half<side, T> &) { return 2; }
template <int side, class T> static constexpr unsigned a_word(const snt_bytes<side, T> &) { return 4; }
static inline float multiply_add(float a, float b, float c) { return c + a * b; }
static inline int multiply_add(int a, int b, int c) { return (int)((unsigned)c + (unsigned)(a * b)); }
}  // namespace snt
// Two elements of an operand of halves, as cvt.rn rounds them.
namespace snt {
static inline unsigned rounded(float x, const snt_half<0, float> &) { return snt_f16_from_f32(x); }
static inline unsigned rounded(float x, const snt_half<0, snt_bf16> &) {
  const unsigned u = __float_as_uint(x);
  return x != x ? 0x7fffu : (u + 0x7fffu + (u >> 16 & 1u)) >> 16;
}
}  // namespace snt
template <class A> static inline void snt_pair(A &a, int i, float x, float y) { a.r[i] = snt::rounded(x, a) | snt::rounded(y, a) << 16; }
// m16n8k16 of halves, m16n8k32 of bytes: lane l has of a rows l / 4 and l / 4 + 8, of b column l / 4, of c columns 2 (l % 4) and the next of the rows it has of a.
template <class A, class C> static inline void snt_unit(C *c, const A &a, const unsigned *b) {
  const unsigned per = snt::a_word(a), bits = 32 / per, mask = (1u << bits) - 1;
  unsigned p[32][4], mine[4] = {b[0], b[1]}, q[32][4];
  snt::all_lanes(a.r, p);
  snt::all_lanes(mine, q);
  for (unsigned i = 0; i < 4; i++) {
    const unsigned row = snt_lane() / 4, below = i / 2, column = snt_lane() % 4 * 2 + i % 2;
    for (unsigned k = 0; k < 8 * per; k++) {
      const unsigned lane = k / per % 4, half = k / (4 * per), shift = k % per * bits;
      c[i] = snt::multiply_add(snt::number(p[4 * row + lane][2 * half + below] >> shift & mask, a),
                               snt::number(q[4 * column + lane][half] >> shift & mask, a), c[i]);
    }
  }
}
#endif

// One thread runs at a time in a block, and blocks after one another, so these need not be atomic.
#define SNT_ATOMIC(name, step) \
  template <class T, class S> static inline T name(T *p, S given) { T old = *p, v = (T)given; *p = (step); return old; }
SNT_ATOMIC(atomicAdd, (T)(old + v))
SNT_ATOMIC(atomicMin, v < old ? v : old)
SNT_ATOMIC(atomicMax, v > old ? v : old)
SNT_ATOMIC(atomicOr, (T)(old | v))
SNT_ATOMIC(atomicAnd, (T)(old & v))
SNT_ATOMIC(atomicExch, v)
#undef SNT_ATOMIC
template <class T> static inline T atomicCAS(T *p, T expected, T v) {
  T old = *p;
  if (old == expected) *p = v;
  return old;
}
