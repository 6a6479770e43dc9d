/* The two emission functions that serve every schedule, and what they stand on.
   `emit_value(n, access)` emits node n at coordinates that are expressions over the loop variables, inlining pointwise nodes, views and small
   reductions; memoised per (node, coordinates) in the open scope. `emit_stage` computes a region of a node once into storage; later values of that node
   whose coordinates provably lie in the region read it. Coordinates are pool expressions: composing views is substitution, and only loads turn
   them into kernel index arithmetic. One variable may be the *lane variable*: values that depend on it are vectors of `lanes`.
   Compute types: f16, bf16 -> f32; narrow integers as they are; bool is `bool` in registers and u8 in memory. */
#ifndef FUSION_EMIT_H
#define FUSION_EMIT_H
#include "fusion/fusion.h"

enum { EMIT_BUCKETS = 256 };

typedef enum { STAGE_PRIVATE, STAGE_REGS, STAGE_LOCAL, STAGE_WORKSPACE, STAGE_OUTPUT, STAGE_PACKED } stage_storage;
enum { STAGE_PART = 16 }; /* elements: parts of a workspace begin at multiples */

typedef struct emit_stage_entry {
  uint32_t node;
  uint8_t storage, through; /* through: value() computes and stores; else it loads */
  uint32_t memory;          /* kernel memory */
  ir_expr base;             /* element offset added (workspace: the group's part) */
  uint32_t rank;
  ir_expr origin[SNT_MAX_RANK], extent[SNT_MAX_RANK],
      stride[SNT_MAX_RANK]; /* element = base + sum (at - origin) * stride; output: the node's own buffer at its own offset */
  int32_t ring_axis;        /* -1: none; else at mod ring_size on that axis */
  int64_t ring_size;
  uint32_t depth; /* scope depth; dropped when the scope closes */
} emit_stage_entry;

typedef struct emit_memo {
  uint32_t node, value, depth, next;
  uint64_t hash;
  uint32_t rank, condition_count; /* of the access; only what is in use of one is kept */
  const ir_expr *at;
  const map_condition *conditions;
} emit_memo;
typedef struct emit_index {
  ir_expr expression;
  uint32_t value, depth, next; /* next: an older one in its bucket */
} emit_index;
typedef struct emit_scalar {
  ir_expr expression;
  uint32_t scalar;
} emit_scalar;

typedef struct emit {
  fusion_context *c;
  const fusion_group *group;
  const ir_graph *g;
  expr_pool *x;
  ir_arena *arena;
  kir_kernel *k;
  /* What every function asks for lies near the front, where an instruction reaches it with one byte. */
  uint32_t depth;           /* open loops and ifs */
  uint32_t lane_var, lanes; /* pool variable number and vector width; lanes 1: none */
  uint32_t copies;          /* of what is emitted now: one for each lane that is taken by itself */
  uint32_t hand_var;        /* of the items whose stores all of them do, one item's after the other's: emit_by_hand; UINT32_MAX: none */
  bool stream;              /* stores of outputs are streaming */
  bool same;                /* outputs may be stored by other items too, who compute the same bits: tails that overlap */
  bool quads;               /* pointwise values an odd number of columns away are shifts of whole vectors, which neighbours share */
  bool offsets; /* reads at the same conditions that lie a literal apart share the choice, and their addresses have room for the literal */
  bool near, near_storage; /* no read of texels, of storage is guarded: outside, the last one is read */
  bool failed;
  uint32_t failed_node;   /* the value that has no emission, 0: host memory */
  IR_VEC(uint32_t) slots; /* slot -> plan buffer */
  IR_VEC(uint8_t) access; /* slot -> KIR_READ | KIR_WRITE */
  IR_VEC(emit_scalar) scalars;
  IR_VEC(emit_stage_entry) stages;
  IR_VEC(emit_memo) memos;
  IR_VEC(emit_index) indices;
  IR_VEC(uint32_t) open_ifs;
  uint32_t buckets[EMIT_BUCKETS], index_buckets[EMIT_BUCKETS]; /* newest memo, and index, of each hash; UINT32_MAX: none */
} emit;
static inline uint32_t *emit_index_bucket(emit *e, ir_expr expression) { return &e->index_buckets[(uint64_t)expression % EMIT_BUCKETS]; }

/* ---- kernel and step ---- */
/* Begins kernel `<kind>_<number>`; every output and input gets its memory on first use. */
emit *emit_begin(fusion_context *, const fusion_group *, const char *suffix);
/* Ends it: adds the kernel and a step running `groups` workgroups. The step's traffic and nodes come from the group. `choice` and guards as plan_step. */
snt_result emit_end(emit *, ir_expr groups, uint32_t choice, uint32_t guard_count, const plan_condition *guards);
uint32_t fusion_buffer_of(fusion_context *, uint32_t node);          /* plan buffer of a stored node, made on first use */
uint32_t fusion_storage_node(const fusion_context *, uint32_t node); /* whose buffer that is: a state's, for its new value */
void fusion_note_asked(fusion_context *, const fusion_asked *);      /* while a group is built */
uint32_t fusion_add_scratch(fusion_context *, const char *name, int32_t dtype, ir_expr elements); /* partial results, workspaces */
uint32_t fusion_add_constant(fusion_context *, const char *name, int32_t dtype, int64_t elements, const ir_making *); /* of the compile */
/* Prefetches of what a loop's body, the instructions from `first`, reads and writes; it does so for `rows` rows in turn. `counter`: its
   value in the kernel where lanes are results and not along what the loop counts (then `rows` is 1), else 0. */
void emit_fetch_ahead(emit *, uint32_t first, uint32_t rows, uint32_t counter);
bool emit_fetches_runs(const cost_profile *);                /* long runs: else hardware sees them coming */
uint32_t emit_bind(emit *, uint32_t buffer, uint8_t access); /* kernel memory of a plan buffer, bound on first use */
uint32_t emit_bind_words(emit *, uint32_t buffer);           /* a buffer of bytes as i32, only read */

/* A square block in registers: lane i of row j becomes lane j of row i. */
void emit_turn(emit *, uint32_t *rows, uint32_t width);

/* ---- variables and scopes ---- */
ir_expr emit_group(emit *, ir_expr groups);                    /* the group number as a variable in [0, groups) */
ir_expr emit_item(emit *, uint32_t dimension, uint32_t items); /* local id; sets the kernel's items */
/* From here on what a node stores has one address for all items of a subgroup: some drivers store by a loop over the lanes, each behind tests,
   unless they see that (kir_digits, in a kernel that may have them: schedule_by_hand). Outside of loops and conditions alone. */
void emit_by_hand(emit *, ir_expr item);
/* So many literal shares of a subgroup each, several in a group (profile: group_shares) where enough groups are left. The number of the share; in *shares the
   groups, and the item within its subgroup. */
ir_expr emit_shares(emit *, ir_expr *shares, ir_expr *item);
/* A kernel loop over [lo, hi) by step; the variable as an expression. `carried` values as in kir_loop. */
typedef struct emit_loop_info {
  const char *name;
  ir_expr lo, hi;
  int64_t step;
  bool whole; /* hi - lo is a multiple of step */
  uint32_t flags, unroll, carry_count;
  const uint32_t *initial;
  uint32_t *carried;
} emit_loop_info;
ir_expr emit_loop(emit *, const emit_loop_info *);
ir_expr emit_steps(emit *, const char *name, ir_expr lo, ir_expr hi, int64_t step); /* whole ones, as those by 1 are, that carry nothing */
void emit_loop_end(emit *, ir_expr variable, uint32_t count, const uint32_t *next, uint32_t *results);
/* A whole loop: what its body computes in one trip and asks for in the next is carried. The body is emitted twice, the first time for nothing. */
typedef void emit_slide_body(emit *, void *user, ir_expr variable);
void emit_slide(emit *, const emit_loop_info *, emit_slide_body *, void *user);
uint32_t emit_below(emit *, ir_expr value, ir_expr limit);
void emit_if_below(emit *, ir_expr value, ir_expr limit);
/* The number as a variable below `end`: the last one where it lies beyond; and the value of it, 0 there. */
ir_expr emit_held_below(emit *, const char *name, ir_expr at, ir_expr end);
uint32_t emit_zero_behind(emit *, uint32_t value, ir_expr at, ir_expr end);
/* Is `at`, of tiles, inside the extent? 0: always, since all tiles are whole. */
uint32_t emit_inside(emit *, ir_expr at, ir_expr extent, uint32_t tile);
/* One test for both, either of which may be 0; false: there is none to close. Drivers for processors are slow with tests inside tests, and
   one of them wrong. */
bool emit_if_both(emit *, uint32_t a, uint32_t b);
void emit_if(emit *, uint32_t condition);                       /* closed by emit_if_end; values made inside are forgotten after */
void emit_else(emit *, uint32_t count, const uint32_t *values); /* what the first side yields */
void emit_if_end(emit *);
void emit_if_result(emit *, uint32_t count, const uint32_t *values, uint32_t *results); /* the second side's, and what the if is */
/* Makes `base + lane` the vector axis: returns that expression; lanes 1 returns base. Until emit_scalar_lanes. */
ir_expr emit_lanes(emit *, ir_expr base, uint32_t lanes);
void emit_scalar_lanes(emit *);
void emit_use_lanes(emit *, uint32_t lane_var, uint32_t lanes); /* back to an axis made before */
ir_expr emit_var_for(emit *, const char *name, uint32_t kernel_value, ir_expr lo,
                     ir_expr hi); /* an expression standing for a run-time u32 */
ir_expr emit_var_by(emit *, const char *name, uint32_t kernel_value, ir_expr lo, ir_expr hi,
                    int64_t step); /* which is a multiple of step beyond lo */

/* ---- expressions to kernel values ---- */
uint32_t emit_expr(emit *, ir_expr);       /* u32 (wrapping); what depends on symbols alone becomes a scalar of the plan */
uint32_t emit_scalar_for(emit *, ir_expr); /* the scalar parameter of an expression of symbols alone */
uint32_t emit_conditions(emit *, uint32_t count,
                         const map_condition *); /* bool (or bool vector along lanes): the conjunction; 0 when count is 0 */
kir_type emit_compute_type(const emit *, int32_t dtype, uint32_t lanes);

/* ---- value and stage ---- */
uint32_t emit_value(emit *, uint32_t node, const map_access *);
uint32_t emit_load(emit *, uint32_t memory, int32_t dtype, ir_expr offset, uint32_t condition_count,
                   const map_condition *); /* element offset, any dependence on lanes */
void emit_store(emit *, uint32_t memory, int32_t dtype, ir_expr offset,
                uint32_t value); /* casts from the compute type; vector when unit stride along lanes */
void emit_store_node(emit *, uint32_t node, const map_access *, uint32_t value); /* into the node's own buffer */
/* The same of those elements for which the conditions, which begin at 0, hold; a vector one by one, if they are not the same for all lanes. */
void emit_store_where(emit *, uint32_t node, const map_access *, uint32_t value, uint32_t count, const map_condition *);
void emit_remember(emit *, uint32_t node, const map_access *, uint32_t value); /* later values of node there are this */
/* Opens storage for `node` over [origin, origin + extent) a dimension. Unit stride on the last axis unless `strides` says else. */
typedef struct stage_info {
  uint32_t node;
  uint32_t home; /* STAGE_OUTPUT: the f32 output of the same shape in whose room the region lies, often the node itself */
  uint8_t storage;
  ir_expr origin[SNT_MAX_RANK], extent[SNT_MAX_RANK];
  int32_t ring_axis; /* -1: none */
  int64_t ring_size; /* rows kept of the ring axis; extent of that axis is the part computed or valid now */
  int64_t front,
      row; /* of the storage: elements before each row's first, so that others begin on whole vectors, and from row to row; row 0: neither */
  ir_expr group, groups; /* workspace: which part of how many */
  bool ordered;          /* `order` is given: axes from outermost to innermost; else as the node's */
  uint8_t order[SNT_MAX_RANK];
  bool along_stored; /* vectors of a sweep lie along the innermost axis of `order`, not along the node's last */
} stage_info;
/* Opened *through*: a value of the region is computed and stored on its first use; after emit_stage_filled it is loaded. Rings and rows
   that are refilled in a loop pass the memory of the first opening (`reuse`, else UINT32_MAX). Returns the kernel memory. */
uint32_t emit_stage_open(emit *, const stage_info *, uint32_t reuse);
void emit_stage_filled(emit *, uint32_t node);
/* The same in two steps, for regions that outlive the scope that fills them: room that no value is read from yet, and, once the coordinates of its origin are
   those at hand, what later values of this scope read. */
emit_stage_entry emit_stage_room(emit *, const stage_info *, uint32_t reuse);
void emit_stage_show(emit *, const emit_stage_entry *);
/* STAGE_PACKED: the region is part `part` of a constant buffer that holds such regions one after another, in the node's own type. */
void emit_stage_given(emit *, const stage_info *, uint32_t buffer, ir_expr part);
/* The same region by square blocks: vectors of `width` elements along axis `from` are turned in registers and stored along the innermost axis of `order`, which
   must be given; both extents are multiples of the width. */
uint32_t emit_stage_turned(emit *, const stage_info *, uint32_t from, uint32_t width, uint32_t reuse);
/* Computes the whole region with loops, the axis of the vectors (`lanes`) innermost: open, sweep, filled; by blocks where that stores whole vectors. */
uint32_t emit_stage(emit *, const stage_info *, uint32_t lanes, uint32_t reuse);
/* Reduction of node n (reduce or contract) at `access`: loops over its reduced axes. sweep: how. */
typedef struct sweep {
  uint32_t lanes, accumulators, unroll;
  ir_expr start;  /* not 0: of the first vector, before the axis begins, where texels do; the last ones end behind it. In no fixed order */
  uint32_t items; /* > 1: the group's items share the last reduced axis, item `item` starting at its own vector */
  ir_expr item;
  /* NULL: none; else called for every vector of a reduction, with its place; edge: of which some elements lie outside */
  void (*beside)(emit *, void *user, const map_access *operand, bool edge);
  void *user;
  bool stores; /* what stands beside a vector is more text than a request of memory */
} sweep;
/* The combination of every item's `value` over the workgroup, the same in all of them: subgroup operations where the device has them, local
   memory and barriers. */
uint32_t emit_group_combine(emit *, kir_op combine, uint32_t value, uint32_t items);
uint32_t emit_reduce(emit *, uint32_t node, const map_access *, const sweep *);
/* Of a sweep with a start, elements from there on: the first vectors, of which some elements lie outside, those that lie inside, and the last ones. */
enum { SWEEP_CUTS = 4 };
void emit_cut_sweep(const emit *, const sweep *, ir_expr extent, int64_t *cuts);
/* Of several places in one loop: vectors along the last reduced axis, in no fixed order. */
void emit_reduce_rows(emit *, uint32_t node, uint32_t rows, const map_access *, const sweep *, uint32_t *values);
/* The select that alone reads a member within the group, through views and pointwise members, as what its condition chooses; 0: none does. */
uint32_t emit_chooser(const fusion_context *, const fusion_group *, uint32_t node);
/* Its condition where the node is at `at`; 0: there is none, or lanes differ in it. */
uint32_t emit_wanted(emit *, uint32_t node, uint32_t chooser, const map_access *at);
kir_op emit_combine_op(ir_op reduce); /* add mul max min */
double emit_identity(ir_op reduce, int32_t dtype);
uint32_t emit_no_sum(emit *, kir_type); /* what sums start from */
uint32_t emit_multiply_add(emit *, uint32_t contract, int32_t dtype, uint32_t lhs, uint32_t rhs,
                           uint32_t acc); /* one more product of a contraction, as the numerics allow */
#endif
