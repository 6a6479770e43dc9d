/* Passes on the kernel IR. Each takes a kernel, and leaves a new one in `out` (same arena or another), never half-written.
   The table kir_pipeline in ir/kir/pipeline.c is the order; the runner verifies after each in debug builds and calls `dump` if set. */
#ifndef IR_KIR_PASS_H
#define IR_KIR_PASS_H
#include "ir/kernel.h"

/* The fragments that matrix units multiply: m x k by k x n, of one type of element. m: 0: none, KIR_MMA_ANY: every size. */
enum { KIR_MMA_F16, KIR_MMA_BF16, KIR_MMA_I8, KIR_MMA_U8, KIR_MMA_TYPES, KIR_MMA_ANY = 255 };
typedef struct kir_mma {
  uint8_t m, n, k;
} kir_mma;
// clang-format off
#define KIR_MMA_TENSOR_CORES {16, 16, 16}, {16, 16, 16}, {16, 16, 32}, {16, 16, 32} /* mma.sync of sm_80 and later, two of 8 columns together */
// clang-format on
#define KIR_MMA_ALL(size)                                                            \
  {                                                                                  \
    {size, size, size}, {size, size, size}, {size, size, size}, { size, size, size } \
  }

/* What a driver keeps of IEEE 754 where a module asks for it (SPIR-V float controls): the widths of floats that it can be asked for, as their sum. */
typedef struct kir_float_controls {
  uint8_t signed_zero, denormals, round_even;
} kir_float_controls;

/* What a target can print or a device can run: the legaliser removes the rest. Filled by each code generator from a table and narrowed by
   device limits and masks. */
typedef struct kir_caps {
  const char *target;    /* "opencl" "spirv" "cuda" "interp" */
  uint8_t max_lanes;     /* vectors up to this width (CUDA 1 for arithmetic but loads up to 16 bytes: `vector_memory`) */
  uint8_t vector_memory; /* bytes of the widest load/store of a vector */
  bool f16_arithmetic, f16_storage, bf16_storage, int8_storage, int16_storage, int64, f64;
  bool fma_fused;  /* `fma` rounds once: what is exact by that may use it */
  bool fma_fast;   /* `fma` is one operation, rounded once or twice: DEFAULT and FAST form it; else, if not fused, it becomes mul + add */
  bool exp2;       /* `exp2` that may err by KIR_OWN_EXP2 ULP is printed, an operation of the device; else all of them are expanded */
  bool keeps_math; /* built-in transcendental functions are kept (interp only) */
  bool subgroups, subgroup_arithmetic;
  bool exact_div, exact_sqrt; /* correctly rounded; else div/sqrt with ulp < 2.5 get a correction step */
  bool prefetch, stream, texel, images, async_copy, atomics_f32, oob_zero;
  bool shuffle, hred, wrap, divmod, minmax_nan, ix, fill, lanes_memory, pack2; /* printed directly; else expanded */
  uint32_t push_bytes;                                                         /* scalar block */
  bool
      aligned_vectors; /* a vector load or store needs its whole size proven as alignment (always so where max_lanes is 1), else it is cut */
  bool nan_unsafe;     /* the target may assume that no NaN exists: tests for NaN and infinity are made on the bits (SPIR-V) */
  uint8_t subgroup_size; /* that kernels may name, of whole ones; 0: none. Reductions without subgroup_arithmetic need it (CUDA 32) */
  bool address;          /* storage buffers are reached by 64-bit addresses in the scalar block, where they fit (codegen.h) */
  bool dot4;             /* `dot4` is one operation; else it becomes shifts, products and sums */
  uint8_t permute;       /* lanes of the vectors of f32 that are tables: one instruction takes a lane by number for every lane; 0: none */
  const char *about;     /* not null: code has debug information, whose source is this line and the kernel's text (SPIR-V) */
  bool flushes; /* f32 below 2^-126 counts as 0: reproducible kernels get it back by integers (found by the probe of api/same_bits.c) */
  bool
      contracts; /* products and sums become one operation whatever is asked for: reproducible kernels keep them apart (found by the same probe) */
  bool fragment_lanes; /* which lane holds what of a fragment is known, so that mma.get and mma.make can be printed (ir/KERNEL.txt) */
  bool narrow_local;   /* local and private arrays may have 8- and 16-bit elements; else they become 32-bit cells */
  kir_mma mma[KIR_MMA_TYPES];
  kir_float_controls float_controls; /* of nothing but SPIR-V */
} kir_caps;

/* Arithmetic of f32 has NaN and infinity as IEEE 754 says: the target's, or since modules ask for it (reproducible mode believes its probe alone). */
static inline bool kir_keeps_nan(const kir_caps *caps, uint8_t mode) {
  return !caps->nan_unsafe || (mode != SNT_NUMERICS_REPRODUCIBLE && caps->float_controls.signed_zero & 32);
}

/* What a generator may rely on after the whole pipeline, besides `caps`:
   - 8- and 16-bit integers, bf16, and f16 without f16_arithmetic occur only as the result of a load that feeds casts, and as a cast that feeds
     stores: all arithmetic on them is 32-bit. Bool memory has become u8. Without the storage capability the memory has become u32 words (`view`
     keeps the old element type).
   - u32 `udiv`/`umod` by constants are gone unless caps.divmod; by run-time values they stay (divisor > 0): print / and %. Integer `div`/`rem`
     have a divisor that is neither 0 nor, for signed types, -1, so the plain operators of C are right.
   - without fma_fused no `fma` is left (nor without fma_fast in DEFAULT and FAST); without shuffle no `shuffle`; without dot4 no `dot4`; `permute` has
     caps.permute lanes, and only there is `scalef`; `extract` lanes are constants.
   - vectors wider than max_lanes are gone, except (max_lanes 1) as load results that feed `extract` and `vec` that feeds a store. */

typedef snt_result (*kir_pass_fn)(const kir_kernel *in, kir_kernel *out, const kir_caps *, snt_diag *);
typedef struct kir_pass {
  const char *name;
  kir_pass_fn run;
  bool (*needed)(const kir_kernel *, const kir_caps *); /* false: the pass would give the kernel as it is; null: always */
  uint8_t flags;                                        /* KIR_PASS_* */
} kir_pass;
enum { KIR_PASS_ONCE = 1, KIR_PASS_CHECKS = 2 }; /* again, it finds nothing; it changes nothing and makes no kernel */
extern const kir_pass kir_pipeline[];
extern const uint32_t kir_pipeline_count;
typedef struct kir_pass_hooks {
  void *user;
  void (*after)(void *user, const char *pass, const kir_kernel *);
  bool verify;
} kir_pass_hooks;
/* Runs the whole pipeline, or those named in `only` (comma separated, null: all). `out` was kir_init'ed: its arena takes the result alone. */
snt_result kir_run_passes(const kir_kernel *in, kir_kernel *out, const kir_caps *, const char *only, const kir_pass_hooks *, snt_diag *);

/* The same for kernel after kernel: two arenas of the caller's, which keep their memory from one to the next. */
snt_result kir_run_passes_in(ir_arena scratch[2], const kir_kernel *in, kir_kernel *out, const kir_caps *, const char *only,
                             const kir_pass_hooks *, snt_diag *);

/* The clone-with-substitution helper every pass is written with: visits in order, the callback emits into `out` and says what the old value became. */
typedef struct kir_clone {
  const kir_kernel *in;
  kir_kernel *out;
  uint32_t *map; /* old id -> new id */
} kir_clone;
snt_result kir_clone_begin(kir_clone *, const kir_kernel *in, kir_kernel *out); /* copies name, memories, scalars */
uint32_t kir_clone_inst(kir_clone *, uint32_t old);                             /* emits a copy with mapped operands, sets map */

/* Kernels put together: ir/kir/join.c. Appends the body of `in`; memories[m] and scalars[s] say where its own are in `out`, or values[s], where it is not 0
   (values null: nowhere), which value a scalar is; `group` is the value of its group number. A kernel whose
   items wait for each other is of as many as `out`. */
typedef struct kir_site {
  const uint32_t *memories, *scalars, *values;
  uint32_t group;
} kir_site;
bool kir_append(kir_kernel *out, const kir_kernel *in, const kir_site *);
bool kir_waits(const kir_kernel *);                              /* do its items for each other? */
bool kir_fits_items(const kir_kernel *, const kir_kernel *into); /* may it run on the items of a workgroup as that one has? */
bool kir_is_written(const kir_kernel *);                         /* in the target's language, by the user */
uint32_t kir_local_bytes(const kir_kernel *);

/* Legaliser of one transcendental instruction: emits its expansion with operand values a, b already in `out`; returns the value. The argument
   lies in dom_lo..dom_hi, or may be NaN beside where KIR_HAS_DOM is not set. ir/math/math.c */
uint32_t kir_math_expand(kir_kernel *out, const kir_inst *, uint32_t a, uint32_t b, const kir_caps *);
enum {
  KIR_OWN_EXP2 = 4,  /* ULP by which a device's own exp2 may err; results below 2^-126 may be 0 */
  KIR_OWN_EXP = 112, /* and an exp by way of it: its argument times log2 e is rounded, which is |x| 2^-24 of the result for |x| up to 104 */
};
float kir_math_max_ulp(kir_op); /* measured maximum of our expansion */
/* The product that a kernel's `needs` names, as "mma.f16.f32.16x16x16": the KIR_MMA_ type of its operands and the size; false: it names none.
   ir/kir/mma.c */
bool kir_mma_named(const char *needs, uint32_t *type, kir_mma *size); /* KIR_MMA_TYPES: another type */
const char *kir_mma_needs(ir_arena *, uint32_t type, kir_mma size);
bool kir_mma_has(const kir_caps *, const char *needs);
/* Elements of a fragment of this kind that each lane holds: element i of lane l is that of row l / 4 + i / 2 % 2 * 8 and column l % 4 * 2 + i % 2 + i / 4 * 8.
   0: of such subgroups and sizes it is not known. */
uint32_t kir_mma_own(uint32_t lanes, kir_mma size, uint32_t frag);
bool kir_mma_size(const char *text, kir_mma *out); /* "16x16x16", to its end or to a comma */
/* Registers: an estimate of simultaneously live 32-bit words per item (private register arrays included), for fission and occupancy. */
uint32_t kir_live_words(const kir_kernel *);
/* Instruction mix: operations of the kernel per item weighted by literal trip counts (run-time trips count as `trips`). */
typedef struct kir_mix {
  double flops, special, loads, stores, bytes_loaded, bytes_stored, integer, barriers,
      trips; /* trips: of all its loops, of an if the side that has more */
} kir_mix;
void kir_count_mix(const kir_kernel *, double trips, kir_mix *out);
/* Where all its loops together may have more than three quarters of so many trips: several bodies a trip (up to 32) in each that has no other inside. */
void kir_spread_trips(kir_kernel *, double most);
#endif
