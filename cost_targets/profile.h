/* Device profiles: what the cost model and the schedules know of a device. Text `key = value unit # provenance`, one fact a line; the built-in
   ones are cost_targets/profiles/<name>.profile, embedded in the library. A device that is open gives one with its queried limits.
   Facts, not class names, decide: `simd` (who forms vectors), `reads`, widths, caches, launch cost. */
#ifndef COST_PROFILE_H
#define COST_PROFILE_H
#include "ir/graph.h"
#include "ir/kir_pass.h"

typedef enum { COST_SIMD_EXPLICIT, COST_SIMD_LANES } cost_simd;
typedef enum { COST_READS_STORAGE, COST_READS_TEXEL } cost_reads;
typedef enum { COST_F32, COST_F16, COST_F64, COST_INT, COST_TYPE_COUNT } cost_type; /* f16 stands for bf16 too, int for integers and bool */

typedef struct cost_profile {
  char name[32];
  char target[12];               /* default code target: "opencl" "spirv" "cuda" */
  uint8_t simd, reads, discrete; /* discrete: own memory */
  uint8_t plain_runs;            /* stores of long runs are faster plain, to lines fetched ahead, than streaming */
  uint8_t run_fetch_lanes;       /* with caps.prefetch: long runs are asked for ahead where vectors are no wider than this, or plain_runs */
  uint8_t group_shares;          /* subgroups of a group, a power of two, each of which does what a group of one would */
  uint8_t slow_denormals;        /* f32 below 2^-126 takes a hundred cycles, and no kernel can ask for zeros in its place */
  uint8_t both_sides;            /* items of a group are masked: a branch takes as long as both of its sides */
  uint8_t item_vectors;          /* lanes: vectors of four that an item of a flat loop has side by side; 0: one */
  uint8_t hand_texels;           /* lanes: texels of an item of a large flat loop that stores by hand (schedule_by_hand); 0: never */
  uint8_t rolls_images;          /* stencils that read images alone go down a strip in a loop, an element a trip, as those of storage do */
  /* shape of the machine */
  double units;     /* cores or multiprocessors */
  double lanes;     /* f32 SIMD lanes a unit executes at once (explicit: vector width; lanes: subgroup width) */
  double registers; /* explicit: vector registers of a core; lanes: 32-bit registers an item may use before occupancy falls */
  double l1_bytes, l2_bytes, l3_bytes, local_bytes;
  double group_items; /* preferred items a group for lanes */
  double row_items;   /* lanes: items that share one row of a reduction */
  /* steps that one launch may go through, where a group that has begun always ends; 0: each has its own (api/exec_chain.c) */
  uint32_t launch_steps;
  double min_groups;     /* groups to fill the device */
  double saturate_items; /* results in flight that fill the device; 0: a vector of every unit */
  /* costs */
  double launch_ns, group_ns; /* a dispatch in a chain; a group */
  double link_ns;             /* from step to step of one launch (launch_steps), in place of launch_ns */
  double near_ns;             /* a step of a run that who submits it runs (api/exec_near.c), in place of launch_ns */
  double wake_ns; /* what a run takes longer because the device's threads sleep until it comes, and the host's until they are done */
  double dram_gbs, cache_gbs, l2_gbs,
      l1_gbs;                 /* GB/s: streaming read+write; last cache; second level of all units (0: as the last); L1 aggregate */
  double strided_factor;      /* slow-down of reads whose lanes are not adjacent */
  double stream_store_factor; /* traffic of a streaming store to a plain one's (read for ownership), or of a load to a store's; <= 1 */
  double hand_store_factor;   /* as that one, where lanes store by hand (hand_texels) */
  double stream_threshold;    /* bytes of all operands beyond which streaming stores pay */
  double least_saving;        /* ns: what a fusion must save more than; bench/cost sets one below 0, for fusions that a price refuses */
  double overlap;             /* share of the shorter of computing and memory traffic that the longer one hides */
  double ghz;
  double fma_per_cycle; /* vector FMAs a unit issues a cycle */
  double mma_per_cycle; /* products of bytes that a unit's matrix units add up a cycle; half as many of 16 bits */
  double dot4_steps; /* multiply-adds that a product of words of four bytes takes as long as, operands taken apart; 0: one, in one piece */
  double second_bytes; /* of a unit's second cache, as it says itself, for what is fetched ahead; 0: l2_bytes, by which prices go */
  double port_lanes;   /* that a port takes at once: wider vectors go through it in parts; 0: all */
  double op_cycles, special_cycles, div_cycles; /* a vector of `lanes`: add/mul; transcendental (our expansion); division or sqrt */
  double table_exp_cycles, table_tanh_cycles, table_erf_cycles; /* where a vector is a table (caps.permute); 0: as elsewhere */
  float cycles[IR_OP_COUNT][COST_TYPE_COUNT];                   /* `cycles.exp.f32`: of this operator; 0: what its class says */
  double contract_share;                                        /* of fma_per_cycle, that contraction kernels reach */
  double scalar_load_cycles, vector_load_cycles, lane_load_cycles;
  uint32_t trip_terms;    /* lanes: terms of a product that are read before the first of them is summed */
  uint32_t dear_elements; /* results of an item behind which functions are written out, at most; more: a loop over rows; 0: any number */
  double barrier_ns;
  double spill_cycles; /* store and reload of one register */
  /* limits (queried when a device is open) */
  uint32_t max_bindings, max_scalar_bytes, max_items, max_grid[3];
  uint32_t max_trips; /* of all the loops of an item together, after which the driver ends them; 0: none */
  uint64_t max_local_bytes, max_buffer_bytes, max_texels;
  uint32_t subgroup_min, subgroup_max, offset_align;
  uint8_t subgroup_asked; /* where those two differ: a kernel may ask for a size between them */
  kir_caps caps;
} cost_profile;

/* Cycles of a vector of `lanes` results of a pointwise operator, by its own number or its class. */
double cost_op_cycles(const cost_profile *, uint32_t op, int32_t dtype);
uint64_t cost_local_room(const cost_profile *);  /* bytes of local memory that a workgroup has without asking for more; 0: none is near */
uint64_t cost_usual_local(const cost_profile *); /* the same, near or not; 0: not known */
/* Cycles for which a vector of `lanes` has the ports to itself: what an operator takes that waits for no other. */
static inline double cost_turn_cycles(const cost_profile *p) {
  return (p->port_lanes > 0 && p->port_lanes < p->lanes ? p->lanes / p->port_lanes : 1) / p->fma_per_cycle;
}
/* Is a lane of a whole vector taken by number in one instruction? */
static inline bool cost_permutes(const cost_profile *p) { return p->caps.permute && p->caps.permute <= p->lanes; }
static inline bool cost_asks_subgroup(const cost_profile *p) { return p->subgroup_min == p->subgroup_max || p->subgroup_asked; }
/* Can a kernel that names `size` (0, ~0: none) have subgroups of it? */
static inline bool cost_has_subgroup(const cost_profile *p, uint32_t size) {
  return !size || size == ~0u || (size >= p->subgroup_min && size <= p->subgroup_max && cost_asks_subgroup(p));
}
/* A device whose vectors are `lanes` wide while elementwise kernels keep to those of the profile: cycles become those of the wider vector, but for
   dear functions, of which one takes as long as one of the profile's; vectors of a whole line pass the caches by later, unless a port takes them in parts. */
void cost_profile_widen(cost_profile *, double lanes);

snt_result cost_profile_parse(cost_profile *, const char *text, size_t length, snt_diag *); /* `base = pocl` inherits */
void cost_profile_print(const cost_profile *, ir_text *);
const cost_profile *
cost_profile_builtin(const char *name,
                     cost_profile *storage); /* pocl lavapipe rusticl swiftshader igpu dgpu mobile h100 h200 cpu; null: unknown */
/* mask: "bindings=4,local=16384,subgroups=0,f16=0,int8=0,items=128,push=128,texels=65536" or "vulkan11-min"; only ever narrows. */
snt_result cost_profile_mask(cost_profile *, const char *mask, snt_diag *);
const char *cost_caps_name(size_t member); /* "caps.NAME", of a member of kir_caps that a profile has */
#endif
