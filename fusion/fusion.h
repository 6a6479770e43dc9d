/* From a graph to a plan on one device profile. In: a verified graph. Out: groups, kernels (before legalisation) and a plan, with a decision record for
   every considered edge. The order of the passes is the table `fusion_pipeline` in fusion/pipeline.c. One thread; all memory from the arenas given. */
#ifndef FUSION_FUSION_H
#define FUSION_FUSION_H
#include "cost_targets/cost.h"
#include "ir/graph.h"
#include "ir/plan.h"

typedef enum {
  FUSION_FUSED,
  FUSION_UNFUSED,
  FUSION_UNFUSED_NODES
} fusion_level; /* --unfused: a kernel a primitive; =nodes: a kernel a source node */

/* Group kinds: one file fusion/schedule/<kind>.c each. */
typedef enum {
  GROUP_NONE,
  GROUP_LOOP,
  GROUP_REDUCE,
  GROUP_ROW,
  GROUP_CONTRACT,
  GROUP_WINDOW,
  GROUP_TRANSPOSE,
  GROUP_SCAN,
  GROUP_SCATTER,
  GROUP_IMAGE,
  GROUP_REPEAT,
  GROUP_SORT,
  GROUP_ATTENTION,
  GROUP_OPAQUE,
  GROUP_KIND_COUNT
} group_kind;

/* A group becomes one kernel (or two for a two-stage reduction). Views (movement nodes) cost nothing and are not members unless they are
   stored: a member's value is read through any chain of views inside the group. */
typedef struct fusion_group {
  uint8_t kind;
  uint8_t dead;   /* merged into another */
  uint8_t moved;  /* members that are read in two ways, at most: each may double what is below it (group/maps.c) */
  uint32_t hero;  /* the node that shapes the iteration: the contract, a reduce, the widest output of a loop */
  uint32_t count; /* members: compute nodes and stored views, in graph order */
  const uint32_t *nodes;
  uint32_t input_count, output_count;
  const uint32_t *inputs;  /* nodes whose stored values it reads: graph inputs, states, constants not splat, other groups' outputs */
  const uint32_t *outputs; /* members whose values are stored (read by other groups, or outputs and updates of the graph) */
  cost_estimate cost;
  double registers; /* live at once, by the proxy that the price stands on */
} fusion_group;

/* One considered edge, as data: what was looked at, and the numbers. `rule`: why, in a word or a short phrase: "saves" "loses" "cycle"
   "bindings" "kind" "size" "never_fuse" "barrier" "must_fuse" "unfused" "recompute" "kept" "reads more" "only reader" "first reader"
   "horizontal", the name of a hyper-edge, or what a kind of kernel refused. */
typedef enum {
  DECISION_PAIR,      /* two groups */
  DECISION_WHOLE,     /* a hyper-edge: `what` is its name */
  DECISION_RECOMPUTE, /* a stored value again in each of `count` readers */
  DECISION_LAUNCH,    /* two independent kernels, one launch */
  DECISION_BODY,      /* of the body of a loop: `what` is the sentence from inside */
  DECISION_TRIPS      /* a loop of `count` kernels, one kernel */
} decision_form;
typedef struct fusion_decision {
  uint32_t producer, consumer; /* node numbers of the working graph; their origins and names are kept */
  uint8_t taken, form, kinds[2];
  uint32_t count, limit; /* bindings of the one kernel, or readers; bindings that the device has */
  uint32_t turn;         /* of grouping, in which it was made: the newest of several knows the groups best */
  const char *rule, *what;
  double ns_parts, ns_fused, bytes_saved, registers; /* ns_fused 0: not priced */
} fusion_decision;
/* One sentence with the numbers and the counterfactual. */
void fusion_decision_text(const fusion_decision *, ir_text *out);

/* What is known of a constant's f32 numbers, noted where its data is kept, so that they are read once however often they are compiled. */
typedef struct fusion_sizes {
  float least, most; /* the smallest size from FLT_MIN on (infinite: there is none), the largest; NaN counts as larger than all */
  bool known;
} fusion_sizes;
typedef struct fusion_hooks {
  void *user;
  void (*after_graph_pass)(void *user, const char *pass, const ir_graph *, double ms);
  void (*after_kernel)(void *user, const char *name, const kir_kernel *); /* as scheduled, before the kernel passes */
  int (*progress)(void *user, const char *stage, double fraction);        /* non-zero cancels */
  fusion_sizes *(*sizes)(void *user, const void *data, uint64_t bytes);   /* their place; null: nobody keeps this data */
} fusion_hooks;
typedef struct fusion_image {
  const char *name; /* of a port */
  uint8_t layout;   /* PLAN_IMAGE_* */
  bool filtered;    /* read through a sampler, whatever size the image has */
} fusion_image;
typedef struct fusion_options {
  const cost_profile *profile;
  const fusion_image *images; /* ports that images are bound to */
  uint32_t image_count;
  uint8_t numerics, level;
  uint32_t targets; /* SNT_TARGET_*: what the kernels are printed for; 0: nothing yet, and operators of the user's own are what they mean */
  bool glsl;        /* GLSL can be compiled */
  bool no_rewrites;
  int32_t weights;     /* 0, or the type that large ones are stored as: then no pass multiplies them (fusion/narrow.h) */
  const char *only;    /* null, or names of graph passes to run ("canonicalise,decompose"), for `sinter opt` */
  uint64_t peak_bytes; /* 0: no budget */
  const fusion_hooks *hooks;
  bool verify; /* after each pass */
} fusion_options;

/* STRICT and REPRODUCIBLE: sums are added in the order that the graph's node fixes. */
static inline bool fusion_keeps_order(const fusion_options *o) {
  return o->numerics == SNT_NUMERICS_STRICT || o->numerics == SNT_NUMERICS_REPRODUCIBLE;
}

/* Or is interpreted, and nothing else. */
static inline bool fusion_runs_on_cuda(const fusion_options *o) {
  return o->targets && !(o->targets & ~(uint32_t)(SNT_TARGET_CUDA | SNT_TARGET_HOST));
}

/* Bytes of local memory that a workgroup may ask for; through CUDA more than it has unasked. */
static inline uint64_t fusion_most_local(const fusion_options *o) {
  return fusion_runs_on_cuda(o) ? o->profile->max_local_bytes : cost_local_room(o->profile);
}

/* A constant laid out for one schedule: `order` is that schedule's description of the layout. */
typedef struct fusion_packed {
  uint32_t node, buffer;
  size_t order_bytes;
  const void *order;
} fusion_packed;

/* What a group asks for while it is built, in order, each once (fusion/schedule/again.c). */
typedef enum { FUSION_ASKED_NODE, FUSION_ASKED_SCRATCH, FUSION_ASKED_PACKED } fusion_asked_kind;
typedef struct fusion_asked {
  uint8_t kind;
  uint32_t node, buffer;
  const void *order; /* of what is packed */
} fusion_asked;

/* The body of a repeat as a graph of its own (fusion/outline.c): the carried values are states with an update, what it reads from around it are
   inputs. The repeat's place in the graph is a `loop` node, its operands the initial values and then the values read. */
typedef struct fusion_body {
  ir_expr variable, trips;     /* the number of the trip, a variable of the pool */
  uint32_t carried;            /* the first operands of the loop */
  uint32_t input_count;        /* of the graph, states included */
  const uint32_t *input_roles; /* per input of the graph: which operand of the loop it stands for */
  uint32_t flag;     /* 1 more than the number of the input without which a trip changes nothing, nor do those behind it; 0: none */
  bool in_registers; /* pointwise in one shape: a loop inside a kernel of kind `loop` */
  bool tables;       /* and it reads elements of tables (fusion_is_table) */
  bool rests;        /* an element that a trip leaves as it was stays so */
  ir_graph graph;
} fusion_body;

/* What prices ask of a node again and again. */
/* What a pointwise operator is priced as. */
enum { FUSION_NOT_POINTWISE, FUSION_PLAIN, FUSION_SPECIAL, FUSION_DIVIDES };
/* How what neighbouring results read lies: a vector, one element for all, each by itself, or in a cache line of its own; or a concatenation
   has seams among them. */
enum { FUSION_LINE = 64 }; /* bytes of a line of the caches */
enum { FUSION_BESIDE, FUSION_SAME, FUSION_APART, FUSION_LINES, FUSION_SEAMS };
typedef struct fusion_facts {
  double cycles, own_cycles; /* of its operator; of that what the profile knows beyond the operator's class */
  double end_cycles;         /* of each result of a reduction: its lanes become one */
  ir_expr count;             /* of its elements */
  uint32_t base;             /* the first non-view below it (fusion_through_views) */
  uint32_t map;              /* the first view from it down that moves elements, a transpose or a slice; else the base */
  uint8_t rate;              /* of a pointwise operator: FUSION_PLAIN ... */
  uint8_t field;             /* bits of a word that it depends on; 0: not on few */
  bool partly;               /* some reader takes only a part of it: by a slice, or where indices say */
  bool moved;                /* it is read through more than one map */
} fusion_facts;

/* A stored value's buffer has so many elements from one index of its first `axes` axes to the next; axes = 0: it lies as its type says. */
typedef struct fusion_pitch {
  uint32_t axes;
  ir_expr elements;
} fusion_pitch;

/* The context every pass receives. */
typedef struct fusion_context {
  const fusion_options *options;
  ir_arena *arena; /* of the compile: groups, decisions, kernels, plan */
  ir_graph *graph; /* the working graph; a pass may replace it */
  ir_plan *plan;
  snt_diag *diag;
  uint32_t *group_of; /* node -> group + 1; 0: view, source or dead; a recomputed node has several: one of them */
  IR_VEC(fusion_group) groups;
  const ir_uses *uses; /* of the graph, which changes no more; null before grouping */
  double *elements;    /* per node, at the hints of the symbols: what the prices stand on; null before grouping */
  fusion_facts *facts; /* per node, with `elements` */
  IR_VEC(fusion_decision) decisions;
  IR_VEC(const ir_graph *) body_graphs; /* as compiled, bodies in bodies included: plan_loop.body less 1 */
  const struct fusion_steer *steer;     /* the contracts, once grouping has begun (fusion/steer.h); null: none */
  fusion_pitch *pitches;                /* per node: how its buffer is laid out (fusion/schedule/pitch.c); null: as the nodes say */
  uint8_t *neighbours;                  /* per argument of a node, where vectors are explicit: FUSION_BESIDE ...; null: all are */
  bool joins;                           /* some value is a concatenation */
  bool has_narrow;                      /* some value's elements are narrower than a word */
  uint32_t *positions;                  /* per node: room to note where in a group it is; right where the group has it there */
  uint32_t *order;                      /* groups in execution order */
  uint32_t order_count;
  uint32_t *buffers;      /* per node: its buffer in the plan + 1; 0: none yet */
  uint8_t *copied_update; /* per update: the new value has storage of its own and is copied into the state at the end; null: none */
  IR_VEC(fusion_packed) packed;
  IR_VEC(fusion_asked) asked;
  bool asking, peeked;                /* `asked` is kept; the data of a constant has decided something since */
  const ir_graph *given;              /* what the caller compiles: the types of its ports; null in a body */
  IR_VEC(const fusion_body *) bodies; /* of the loops in the graph: attribute `region` less 1 */
  bool reads_own;                     /* one kernel shall read what another of this plan stored, if it can: not through texels */
  bool is_body;                       /* a new value that cannot be written over the old one has a buffer of its own, and no copy */
  bool is_branch;                     /* of another plan, with some symbols written in (fusion/branch.c) */
  uint32_t first_kernel;              /* number of this plan's first kernel */
  double ns_unfused, bytes_unfused;   /* of the same graph with one kernel a primitive, by the model */
} fusion_context;

typedef snt_result (*fusion_pass_fn)(fusion_context *, bool *changed);
enum {
  FUSION_TO_FIXPOINT = 1,
  FUSION_REWRITE = 2 /* skipped by no_rewrites */,
  FUSION_LAST_REWRITE = 4 /* the graph is verified after it */
};
typedef struct fusion_pass {
  const char *name;
  fusion_pass_fn run;
  uint32_t flags;
} fusion_pass;
extern const fusion_pass fusion_pipeline[];
extern const uint32_t fusion_pipeline_count;

/* Compiles `graph` (not changed) into `plan`. The context is left filled for explain. */
snt_result fusion_compile(fusion_context *, const ir_graph *graph, const fusion_options *, ir_arena *, ir_plan *plan, snt_diag *);

/* The body of a repeat, by the same passes; `outer` is at its schedule. */
snt_result fusion_compile_body(fusion_context *, const fusion_context *outer, const ir_graph *body, ir_plan *plan, bool reads_own);

/* The graph with some symbols written in, by the same passes; `outer` has all its steps. */
snt_result fusion_compile_branch(fusion_context *, const fusion_context *outer, const ir_graph *fixed, ir_plan *plan);

/* ---- passes, one file each ---- */
snt_result fusion_settle_custom(fusion_context *, bool *changed); /* operators of the user's own, for the targets there are */
snt_result fusion_outline(fusion_context *, bool *changed);       /* bodies of repeats become graphs of their own */
snt_result
fusion_canonicalise(fusion_context *,
                    bool *changed); /* fold, dead code, views composed, x*1, double casts, constants that do not vary along an axis */
snt_result fusion_decompose(fusion_context *, bool *changed);        /* what is left above primitives */
snt_result fusion_store_bytes(fusion_context *, bool *changed);      /* storage types become bytes */
snt_result fusion_multiply_bytes(fusion_context *, bool *changed);   /* products of quantised values as products of bytes */
snt_result fusion_sum_as_floats(fusion_context *, bool *changed);    /* products of integers in f32, where their sums are exact */
snt_result fusion_pack_words(fusion_context *, bool *changed);       /* products of bytes by words of four, where these are one operation */
snt_result fusion_widen_operands(fusion_context *, bool *changed);   /* narrow floats that many columns read one by one */
snt_result fusion_rewrite(fusion_context *, bool *changed);          /* priced, flagged reassociating */
snt_result fusion_fold_scale(fusion_context *, bool *changed);       /* factors of channels into the weights before them: batch norms */
snt_result fusion_split_large(fusion_context *, bool *changed);      /* constants larger than a binding in parts */
snt_result fusion_layout(fusion_context *, bool *changed);           /* channels last where convolutions form vectors of them */
snt_result fusion_reduce_in_stages(fusion_context *, bool *changed); /* long reductions with few results */
snt_result fusion_copy_ports(fusion_context *, bool *changed);       /* outputs that are inputs, constants or named twice */
snt_result fusion_group_nodes(fusion_context *, bool *changed);
snt_result fusion_fission(fusion_context *, bool *changed);       /* splits what does not fit the device's limits */
snt_result fusion_settle_states(fusion_context *, bool *changed); /* which updates may overwrite their state in place */
snt_result fusion_copy_states(fusion_context *);                  /* the copies of the others, after all other kernels */
snt_result fusion_schedule(fusion_context *, bool *changed);      /* groups -> kernels and steps, by the table of schedules */
snt_result fusion_batch(fusion_context *, bool *changed);         /* independent steps that launches dominate become one */
bool fusion_steps_conflict(const plan_step *, const plan_step *); /* one stores what the other reads or stores */
bool fusion_is_launch_bound(const cost_profile *, double ns);     /* a kernel of so many ns is one that fusion_batch looks at */
snt_result fusion_branch(fusion_context *, bool *changed);        /* a plan beside this one for the symbols that are 1 where it matters */
snt_result fusion_plan_memory(fusion_context *, bool *changed);   /* scratch offsets by lifetime, in place, barriers */

/* The budget of scratch (fusion/plan_budget.c), at the hints of the symbols. */
bool fusion_over_budget(const fusion_context *);
snt_result fusion_order_for_memory(fusion_context *); /* steps in the order that keeps the fewest bytes alive */
snt_result fusion_refuse_budget(const fusion_context *);

/* ---- what a schedule gives ---- */
typedef struct schedule_info {
  /* Can this kind make one kernel of the group? Fills nothing; false gives a word for the decision record. */
  bool (*accepts)(const fusion_context *, const fusion_group *, const char **why_not);
  /* Emits kernels and steps: calls fusion_begin_kernel / fusion_end_kernel (fusion/emit.h). */
  snt_result (*build)(fusion_context *, const fusion_group *);
  /* The work for the cost model; the default walks the group's accesses. */
  void (*work)(const fusion_context *, const fusion_group *, cost_work *out);
} schedule_info;
extern const char *const fusion_kind_names[GROUP_KIND_COUNT];  /* fusion/decision.c */
extern const schedule_info fusion_schedules[GROUP_KIND_COUNT]; /* fusion/schedules.c */

/* ---- analyses shared by grouping, schedules and the cost model (fusion/analysis.c) ---- */
enum { FUSION_STENCIL_TAPS = 128 }; /* a contraction over at most so many taps of a window is a stencil */
/* Where a contraction's label stands in a list of labels; -1: nowhere. */
int32_t fusion_find_label(const ir_expr *list, uint32_t count, ir_expr label);
/* Columns of a contraction that share the operand: the extents, at the hints, that only the other one has. */
double fusion_columns_beside(const ir_graph *, uint32_t node, uint32_t shared);
bool fusion_is_update(const ir_graph *, uint32_t node); /* some state's new value */
/* A scatter that sets the row of a state which a known number names, as its new value, while nobody else reads the state: it takes the
   coordinates of its updates, and the other rows stay where they are. *row: that number, inside the axis. */
bool fusion_row_of_scatter(const ir_graph *, uint32_t node, ir_expr *row);
static inline bool fusion_sets_row(const ir_graph *g, uint32_t node, ir_expr *row) {
  return ir_at(g, node)->op == IR_OP_scatter_set && fusion_row_of_scatter(g, node, row);
}
/* Where the update of such a scatter lies that is stored at `result`; false: there is none, or it is another row. */
bool fusion_row_update(const ir_graph *, uint32_t node, const map_access *result, map_access *update);
bool fusion_is_view(const ir_graph *, uint32_t node);           /* movement that costs nothing by itself */
bool fusion_only_moves(const ir_graph *, uint32_t node);        /* such of one operand's elements, and zeros */
bool fusion_is_free(const ir_graph *, uint32_t node);           /* sources, views, splat constants */
uint32_t fusion_below_window(const ir_graph *, uint32_t node);  /* the value that windows and their padding are made of */
bool fusion_has_taps(const ir_graph *, uint32_t node);          /* movements down to a window: its taps are an axis of the value */
uint32_t fusion_through_views(const ir_graph *, uint32_t node); /* the first non-view below a chain of views (concat stops) */
uint32_t fusion_through_moves(const ir_graph *, uint32_t node); /* the first node below views that add no element of their own */
/* Somebody takes the sums for whole numbers. */
bool fusion_is_whole(const ir_graph *, const ir_uses *, uint32_t node);
/* Is the node computed by the group? By its list of members: what is recomputed belongs to several groups, and `group_of` names one of them. */
bool fusion_group_has(const fusion_group *, uint32_t node);
const fusion_body *fusion_register_loop(const fusion_context *,
                                        uint32_t node); /* of a loop, or a pick of one, that runs in registers; else null */
bool fusion_is_table(const ir_graph *, uint32_t node, uint32_t operand); /* of such a loop: it reads elements by their numbers */
bool fusion_is_stored(const fusion_context *, uint32_t node); /* has a buffer: input, state, data constant, or some group's output */
/* Every load that computing `node` at `access` makes inside `group` (members inlined down to stored values), with the final access. */
typedef struct fusion_load {
  uint32_t node;
  const map_access *access;
  double weight; /* times per evaluation: taps of inlined reductions */
} fusion_load;
typedef void (*fusion_load_fn)(void *user, const fusion_load *);
bool fusion_walk_loads(const fusion_context *, const fusion_group *, uint32_t node, const map_access *, fusion_load_fn, void *user);
typedef struct fusion_stops {
  const uint32_t *nodes;
  uint32_t count;
} fusion_stops;
/* The same walk; `stops` (null: none) are reported as if they were stored. */
bool fusion_walk_until(const fusion_context *, const fusion_group *, uint32_t node, const map_access *, const fusion_stops *stops,
                       fusion_load_fn, void *user);
map_access fusion_anywhere(const fusion_context *, uint32_t node); /* an element: a new variable an axis, 0 where the extent is 1 */
/* Where a node at `access` reads a member, stored or not: false if nowhere, or at several places, or not always. */
bool fusion_one_place(const fusion_context *, const fusion_group *, uint32_t node, const map_access *, uint32_t member, map_access *out);
/* Does an element of an output read the member's values at several places, whatever the conditions are? */
bool fusion_reads_apart(const fusion_context *, const fusion_group *, uint32_t member);
ir_expr fusion_stored_offset(const fusion_context *, uint32_t node, const map_access *); /* of an element in the buffer of a stored value */
ir_expr fusion_plain_offset(const fusion_context *, uint32_t node, const map_access *);  /* as its type says */
bool fusion_stored_source(const fusion_context *, uint32_t node,
                          ir_source *); /* a constant's bytes as its buffer has them; false: out of memory */
bool fusion_has_pitch(const fusion_context *, uint32_t node);
bool fusion_count_elements(fusion_context *);              /* fills `elements` and `facts`, when the graph changes no more */
enum { FUSION_MOST_PARTS = 16, FUSION_FOLD_LIMIT = 4096 }; /* the latter: elements of a constant that are computed */
bool fusion_alternates(const ir_graph *, uint32_t node);   /* a concatenation of parts that are shorter than vectors */
/* The axis of an operand of a contraction that vectors of results lie along; its rank: all lanes have one element. */
uint32_t fusion_contract_lane(const ir_graph *, uint32_t node, uint32_t operand);
/* The nodes whose elements, together, are what the group reads of an input in slices or gathered rows; 0: all of it. */
uint32_t fusion_parts_read(const fusion_context *, const fusion_group *, uint32_t input, uint32_t *parts);
static inline void fusion_note_positions(const fusion_context *c, const fusion_group *group) {
  for (uint32_t i = 0; i < group->count; i++) c->positions[group->nodes[i]] = i;
}
/* Where in a group whose positions are noted the node is; UINT32_MAX: nowhere. */
static inline uint32_t fusion_position(const fusion_context *c, const fusion_group *group, uint32_t node) {
  const uint32_t at = c->positions[node];
  return at < group->count && group->nodes[at] == node ? at : UINT32_MAX;
}
void fusion_group_work(const fusion_context *, const fusion_group *, cost_work *out); /* the default `work` */
/* Are there texels of four such elements? */
static inline bool fusion_has_texels(int32_t dtype) {
  return ir_dtypes[dtype].bytes == 1 || ir_dtypes[dtype].bytes == 4 || dtype == SNT_F16;
}
/* Of each element of a node that is read, or stored, and narrower than a word: by itself, where reads go through texels, unless one brings it; brought together
   from wider lanes, where vectors are explicit. 0: it costs nothing of its own. */
double fusion_narrow_cycles(const fusion_context *, uint32_t node, bool stored);
/* Outputs expressed in the hero's coordinates: walks forward over pointwise nodes and bijective views (reshape, transpose).
   `at` are coordinates of `from`'s value; fills those of `to`. False if no such path. */
bool fusion_forward_access(const fusion_context *, uint32_t from, uint32_t to, map_access *at);
/* The same by ways that stay in the group: what leaves it and comes back would make it wait for itself. From the last transform of a Winograd convolution also
   through slices that leave out what its last tiles have too much: conditions of `at`. */
bool fusion_forward_within(const fusion_context *, const fusion_group *, uint32_t from, uint32_t to, map_access *at);
#endif
