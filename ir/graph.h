/* The graph IR: SSA values that are tensors; a node is a value. Nodes refer to earlier nodes by index (0 is "none"), so every order of the
   array is a topological order. Text form and meaning of each operator: ir/IR.txt. One thread at a time.
   Ownership: everything lives in the graph's arena; constant data may be borrowed and must then outlive the graph. */
#ifndef IR_GRAPH_H
#define IR_GRAPH_H
#include "ir/expr.h"
#include "ir/making.h"
#include "ir/map.h"

typedef enum {
  IR_OP_NONE,
#define OP(name, ...) IR_OP_##name,
#include "ir/ops.def"
#undef OP
  IR_OP_COUNT
} ir_op;

// clang-format off
enum { /* op flags */
  IR_POINTWISE = 1, IR_MOVEMENT = 2, IR_REDUCE = 4, IR_SCAN = 8, IR_COMMUTES = 16, IR_EXACT = 32, IR_SOURCE = 64, IR_EXPENSIVE = 128
};
// clang-format on
enum { IR_CLASS_F = 1, IR_CLASS_I = 2, IR_CLASS_B = 4 };
enum { IR_VARIADIC = 255 };
typedef enum {
  IR_ATTR_NONE,
#define ATTR(name, kind) IR_ATTR_##name,
#include "ir/attrs.def"
#undef ATTR
  IR_ATTR_COUNT
} ir_attr_key;
// clang-format off
typedef enum { IR_RULE_GIVEN, IR_RULE_RANDOM, IR_RULE_SAME, IR_RULE_BOOL, IR_RULE_SELECT, IR_RULE_DOT4, IR_RULE_CAST, IR_RULE_BITCAST, IR_RULE_REDUCE,
  IR_RULE_REDUCE_INDEX, IR_RULE_ARGSORT, IR_RULE_CONTRACT, IR_RULE_RESHAPE, IR_RULE_TRANSPOSE, IR_RULE_BROADCAST, IR_RULE_SLICE, IR_RULE_PAD, IR_RULE_CONCAT,
  IR_RULE_WINDOW, IR_RULE_WORDS, IR_RULE_GATHER, IR_RULE_SCATTER, IR_RULE_REPEAT, IR_RULE_LOOP, IR_RULE_PICK, IR_RULE_CUSTOM, IR_RULE_OPAQUE, IR_RULE_COUNT } ir_rule;
// clang-format on

typedef struct ir_op_info {
  char name[16];  /* as in the text form, with dots */
  uint64_t attrs; /* mask of 1 << ir_attr_key */
  uint8_t arity, rule, flags, classes;
  float max_ulp;
} ir_op_info;
extern const ir_op_info ir_ops[IR_OP_COUNT];
ir_op ir_op_find(const char *name, size_t length); /* IR_OP_NONE: unknown */
typedef enum {
  IR_KIND_INTS,
  IR_KIND_INT,
  IR_KIND_FLAG,
  IR_KIND_DTYPE,
  IR_KIND_SCALAR,
  IR_KIND_TEXT,
  IR_KIND_NUMBER,
  IR_KIND_WORD
} ir_attr_kind; /* the last two: composites only */
typedef struct ir_attr_info {
  char name[20];
  uint8_t kind;
} ir_attr_info;
extern const ir_attr_info ir_attr_infos[IR_ATTR_COUNT];
double ir_op_eval(ir_op, double a, double b, double c);                        /* pointwise and reduce rows; the feval cell */
int64_t ir_op_eval_int(ir_op, int64_t a, int64_t b, int64_t c, int32_t dtype); /* the ieval cell, wrapped to dtype */

typedef struct ir_tensor {
  uint8_t dtype, rank;
  ir_expr dims[SNT_MAX_RANK];
} ir_tensor;

typedef struct ir_attr {
  uint8_t key;
  uint32_t count, first;
} ir_attr; /* values: graph->ints[first..]; FLAG: count 0; SCALAR: one int, the value's bits as f64 or int64 */

/* How a constant's data is given. */
typedef enum {
  IR_CONST_SPLAT,   /* one scalar for every element: `bits` */
  IR_CONST_DATA,    /* `data`, row-major, the dtype's storage bytes an element */
  IR_CONST_NORMAL,  /* deterministic standard normal values * scale (Philox 4x32-10, Box-Muller): key `seed` */
  IR_CONST_UNIFORM, /* deterministic uniform values in [-scale, scale) */
  IR_CONST_MADE     /* a compiler's: `making` says how the data is computed */
} ir_const_kind;
typedef struct ir_const {
  uint8_t kind;
  uint64_t bits;    /* SPLAT: f64 bits for floats, int64 for the others */
  const void *data; /* DATA; filled in on demand for NORMAL, UNIFORM and MADE by ir_const_data */
  uint64_t seed;
  double scale;
  const ir_making *making;
} ir_const;

typedef struct ir_node {
  uint16_t op;
  uint8_t arity, attr_count;
  uint32_t args;  /* first operand in graph->args */
  uint32_t attrs; /* first attribute in graph->attrs */
  ir_tensor type;
  uint32_t name;    /* offset in graph->names, 0: none. Source nodes keep the user's name through every pass */
  uint32_t origin;  /* node number (in the graph the user gave) that this came from, 0: none */
  uint32_t region;  /* 0: main; else the region it belongs to */
  uint32_t payload; /* const: index in graph->consts */
} ir_node;

typedef struct ir_port {
  uint32_t name, node;
} ir_port; /* outputs: name, value; inputs and states: the node */
typedef struct ir_update {
  uint32_t state, value;
} ir_update; /* state's new value, sharing its storage */
typedef enum { IR_MUST_FUSE = 1, IR_NEVER_FUSE, IR_KEEP, IR_BARRIER } ir_contract_kind;
typedef struct ir_contract {
  uint8_t kind;
  uint32_t count, first;
} ir_contract; /* values in graph->contract_values */
/* Of a repeat: yielded values in graph->yields; region 0 unused. `parent`: the region around it. `initial` (in yields), `trips` and `goes_on`
   (1 more than attribute while, 0: none) serve the builder between begin and end; afterwards the repeat node's operands and attributes say them. */
typedef struct ir_region {
  uint32_t owner, count, first, parent, initial;
  ir_expr trips, goes_on;
} ir_region;

/* An operator that the user defined: its text, which is written out where it is called (ir/graph/define.c). Of the building only: copies have none. */
typedef struct ir_definition {
  const char *name, *text; /* from the parameters on */
  uint32_t length, line;   /* of its first character in the text it was read from, from 0 */
  bool opaque;
} ir_definition;

typedef struct ir_graph {
  ir_arena *arena;
  expr_pool *pool;       /* dimensions; symbols */
  bool failed;           /* sticky: out of memory or a builder mistake; the first is kept below */
  uint32_t open_region;  /* builder: nodes are added to it */
  IR_VEC(ir_node) nodes; /* [0] unused */
  IR_VEC(uint32_t) args;
  IR_VEC(ir_expr) ints;
  IR_VEC(ir_const) consts;
  IR_VEC(ir_port) outputs;
  IR_VEC(ir_region) regions;
  IR_VEC(ir_update) updates;
  IR_VEC(uint32_t) yields;
  IR_VEC(ir_port) inputs; /* input and state nodes in order of declaration */
  IR_VEC(ir_attr) attrs;
  IR_VEC(ir_contract) contracts;
  IR_VEC(uint32_t) contract_values;
  IR_VEC(ir_definition) definitions;
  IR_VEC(char) names;
  const char *title; /* @name */
  uint32_t bodies;   /* of repeats that the compiler took out: what a `loop` may name; 0 in every graph that a user gives */
  snt_diag first_error;
} ir_graph;

/* ---- building; a mistake sticks, and everything after it is harmless ---- */
void ir_graph_init(ir_graph *, ir_arena *, expr_pool *);
void ir_graph_expect(
    ir_graph *, const ir_graph *like); /* room for as much as `like` has and a few nodes more, so that nothing moves on the way there */
uint32_t ir_name_add(ir_graph *, const char *, size_t length);
const char *ir_node_name(const ir_graph *, uint32_t node); /* "" if none */
uint32_t ir_add_input(ir_graph *, const char *name, const ir_tensor *);
uint32_t ir_add_state(ir_graph *, const char *name, const ir_tensor *);
uint32_t ir_add_const(ir_graph *, const ir_tensor *, const ir_const *);
/* A constant that a compiler's step makes of `like`, whose name it takes: the step's `fill`, `size` and what it reads besides are given, the first source
   if it is not `like` as it stands. 0: the type's extents are open, `like` has no data, or out of memory. */
uint32_t ir_add_made(ir_graph *, const ir_tensor *, ir_making *, uint32_t like);
uint32_t ir_add_splat(ir_graph *, int32_t dtype, double value); /* rank 0 */
typedef struct ir_attr_value {
  uint8_t key;
  uint32_t count;
  const ir_expr *ints;
} ir_attr_value;
/* Adds a node and infers its type; `given` is the type for GIVEN rules and the checked hint otherwise (may be null). Attributes are stored
   complete and sorted by key: defaults filled in (steps, stride, low, value ..), negative axes counted from the front, contract labels
   renumbered by first appearance, so that equal meaning is equal storage. Shapes of reshape and broadcast and the dtype of cast, bitcast and
   contract may come from `given` instead of an attribute. */
uint32_t ir_add_node(ir_graph *, ir_op, uint32_t arg_count, const uint32_t *args, uint32_t attr_count, const ir_attr_value *attrs,
                     const ir_tensor *given);
uint32_t ir_add1(ir_graph *, ir_op, uint32_t a);
uint32_t ir_add2(ir_graph *, ir_op, uint32_t a, uint32_t b);
uint32_t ir_add3(ir_graph *, ir_op, uint32_t a, uint32_t b, uint32_t c);
#define ir_add2(g, op, a, b) IR_LAST_FIRST_2(ir_add2, a, b, g, op)
#define ir_add3(g, op, a, b, c) IR_LAST_FIRST_3(ir_add3, a, b, c, g, op)
uint32_t ir_add_cast(ir_graph *, uint32_t a, int32_t dtype); /* `a` itself where it is of the type */
uint32_t ir_add_axes(ir_graph *, ir_op, uint32_t a, uint32_t count, const int64_t *axes, bool keep); /* reduce.* */
void ir_set_name(ir_graph *, uint32_t node, const char *name);
void ir_add_output(ir_graph *, const char *name, uint32_t value);
void ir_add_update(ir_graph *, uint32_t state, uint32_t value);
void ir_add_contract(ir_graph *, ir_contract_kind, uint32_t count, const uint32_t *values);
/* Those of `from`; map: its nodes in `to`. They lose the values that are gone (0), and go when none is left. */
void ir_copy_contracts(const ir_graph *from, ir_graph *to, const uint32_t *map);
uint32_t ir_repeat_begin(ir_graph *, uint32_t count, const uint32_t *initial, ir_expr trips, uint32_t *inside); /* returns the region */
void ir_repeat_while(ir_graph *, uint32_t carried); /* of the innermost open region: no trip begins where that carried value is false */
/* Closes the innermost open region. results[0] is the repeat node, which is also returned; the others are picks. */
uint32_t ir_repeat_end(ir_graph *, uint32_t count, const uint32_t *next, uint32_t *results);

/* ---- reading ---- */
static inline const ir_node *ir_at(const ir_graph *g, uint32_t n) { return &g->nodes.at[n]; }
static inline uint32_t ir_arg(const ir_graph *g, uint32_t n, uint32_t i) { return g->args.at[g->nodes.at[n].args + i]; }
const ir_attr *ir_find_attr(const ir_graph *, uint32_t node, ir_attr_key); /* null if absent */
const ir_expr *ir_attr_ints(const ir_graph *, uint32_t node, ir_attr_key, uint32_t *count);
int64_t ir_attr_int(const ir_graph *, uint32_t node, ir_attr_key, int64_t otherwise); /* SCALAR: the stored bits */
double ir_attr_scalar(const ir_graph *, uint32_t node, ir_attr_key); /* SCALAR attribute as a number (type of the node); 0 if absent */
bool ir_attr_flag(const ir_graph *, uint32_t node, ir_attr_key);
ir_expr ir_tensor_elements(expr_pool *, const ir_tensor *);
bool ir_same_shape(const ir_tensor *, const ir_tensor *);
bool ir_is_literal(const ir_graph *, uint32_t node); /* one number for every element: kernels have it written in them */
bool ir_is_scalar_const(const ir_graph *, uint32_t node,
                        double *value); /* a splat const of any shape; false if no double holds it exactly */
uint32_t ir_random_word(uint64_t key,
                        uint64_t counter); /* the `random` operator: word 0 of Philox 4x32-10, counter (lo, hi, 0, 0), key (lo, hi) */
void ir_philox(uint64_t key, uint64_t counter, uint32_t words[4]);
/* Row-major data of a constant of static shape (generated on demand into the arena), or null. */
const void *ir_const_data(ir_graph *, uint32_t node);
/* The same for who can wait: a constant that is MADE stays a description. False where there is neither. */
bool ir_const_source(ir_graph *, uint32_t node, ir_source *out);
/* Rewrites coordinates of movement node n's result into those of operand `operand` (concat: that segment, with its condition). */
bool ir_movement_access(const ir_graph *, uint32_t node, uint32_t operand, map_access *);
/* Users: counts and lists (CSR) of the values that read each node, outputs and updates counted as uses by `ir_is_output`. */
typedef struct ir_uses {
  uint32_t *first, *user;
  uint8_t *is_output; /* of the graph, or the new value of a state */
} ir_uses;            /* users of n: user[first[n]..first[n+1]) */
bool ir_find_uses(const ir_graph *, ir_arena *, ir_uses *out);
bool ir_is_output(const ir_graph *, uint32_t node);

/* ---- whole graphs ---- */
typedef struct ir_node_desc {
  ir_op op;
  uint32_t arg_count;
  const uint32_t *args;
  uint32_t attr_count;
  const ir_attr_value *attrs;
  const ir_tensor *given;
} ir_node_desc;
snt_result ir_infer_type(const ir_graph *, const ir_node_desc *, ir_tensor *out, snt_diag *); /* as ir_add_node, without adding */
/* Types are inferred again from the stored attributes and must agree. All errors, one a line "node 7 (conv1) add: operand 2 has shape
   [4,5], operand 1 [4,6]"; returns the first as result. */
snt_result ir_graph_verify(const ir_graph *, ir_text *errors, snt_diag *);
void ir_graph_print(const ir_graph *, ir_text *);
/* Constant data that stays beside the text (`const data="file" offset=n`) goes through these. Either may be null: then every constant is
   printed in full, and a reference to a file is an error. */
typedef struct ir_text_hooks {
  void *user;
  const void *(*load)(void *user, const char *file, uint64_t offset, uint64_t size); /* bytes that outlive the graph, or null */
  bool (*save)(void *user, const void *data, uint64_t size, const char **file,
               uint64_t *offset); /* asked for DATA of more than `limit` elements */
  uint64_t limit;
} ir_text_hooks;
void ir_graph_print_with(const ir_graph *, const ir_text_hooks *, ir_text *);
snt_result ir_graph_parse_with(ir_graph *, const char *text, size_t length, const ir_text_hooks *, snt_diag *);
snt_result ir_graph_parse(ir_graph *, const char *text, size_t length, snt_diag *); /* diag text has "line:column: ..." */
/* Adds definitions of operators (`custom` and `kernel`, ir/IR.txt), for calls that follow. */
snt_result ir_graph_define(ir_graph *, const char *text, size_t length, snt_diag *);
/* Adds one call of the text form ("softmax %3, axis=1"; operands by node number); its result, or 0 after a mistake that diag tells. */
uint32_t ir_graph_add_call(ir_graph *, const char *text, size_t length, snt_diag *);
/* Copy of `from` into empty `to` (same pool), dropping what no output or update needs; map[old] = new (0: dropped), caller's array of nodes.count. */
snt_result ir_graph_copy_live(const ir_graph *from, ir_graph *to, uint32_t *map);
/* The same; `replace` may add other nodes in place of an old one and return the last of them, or 0. */
typedef struct ir_copy_hook {
  void *user;
  uint32_t (*replace)(void *user, ir_graph *to, uint32_t node);
} ir_copy_hook;
snt_result ir_graph_copy_with(const ir_graph *from, ir_graph *to, uint32_t *map, const ir_copy_hook *);
/* The node of another graph of the same pool on operands of this one: its operator and attributes, the type that follows. 0 after a mistake. */
uint32_t ir_add_like(ir_graph *, const ir_graph *from, uint32_t node, const uint32_t *args);
uint32_t ir_add_retyped(ir_graph *, uint32_t node,
                        const uint32_t *args); /* one of this graph on operands of other types or extents: the result's follows */
/* Writes each node's own number into its `origin` where there is none: once, on the graph as the user gave it. */
void ir_graph_stamp_origins(ir_graph *);
/* Folds nodes whose operands are all constants of at most `limit` result elements. */
snt_result ir_graph_fold(ir_graph *, uint64_t limit, bool *changed);
/* One node of whatever size: a constant, if all that it hangs on are. */
snt_result ir_fold_value(ir_graph *, uint32_t node, bool *constant);
/* Casts of f16 and bf16 constants to f32 become f32 constants, but for tables that are gathered from. */
snt_result ir_graph_widen(ir_graph *, bool *changed);
#endif
