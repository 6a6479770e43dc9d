/* The kernel IR: a flat array of typed SSA instructions with structured regions; an instruction's index is its value's id (0 is unused).
   ir/KERNEL.txt specifies the text form. Regions in the flat array:
     loop lo hi step init0 init1 ..   (result: the loop variable)     if cond
     carry 0, carry 1 ..              (one a carried value)           ..
     ..                                                               yield v..     (if results)
     yield v0 v1 ..                                                   else
     end                                                              ..  yield w.. / end
     result 0, result 1 ..                                            result 0 ..
   Memories (parameters, images, local, private, scratch, const arrays) are a second table, referred to by number. */
#ifndef IR_KERNEL_H
#define IR_KERNEL_H
#include "ir/base.h"

typedef enum {
  KIR_NONE,
#define KOP(name, ...) KIR_##name,
#include "ir/kernel_ops.def"
#undef KOP
  KIR_OP_COUNT
} kir_op;
enum { KIR_VAR = 255 };
typedef enum { KIR_R_NONE, KIR_R_SELF, KIR_R_ARG0, KIR_R_ARG1, KIR_R_BOOLS, KIR_R_ELEM, KIR_R_U32 } kir_result_rule;
enum { KIR_PURE = 1, KIR_COMM = 2, KIR_EFFECT = 4, KIR_REGION = 8, KIR_MEM = 16, KIR_FLOAT = 32, KIR_INT = 64, KIR_GIVEN = 128 };
// clang-format off
enum { KA_ULP = 1, KA_ROUND = 2, KA_AS = 4, KA_MATH = 8, KA_ALIGN = 16, KA_LANES = 32, KA_UNIFORM = 64, KA_STREAM = 128, KA_BYTES = 256, KA_RW = 512,
       KA_SPACES = 1024, KA_LD = 2048, KA_LOOP = 4096 };
// clang-format on
typedef struct kir_op_info {
  char name[13];
  uint8_t args, result, flags;
  uint16_t attrs;
} kir_op_info;
extern const kir_op_info kir_ops[KIR_OP_COUNT];

/* Types: base is a SNT_ dtype (F32 F16 BF16 F64 I8..U64 BOOL), lanes 1 2 3 4 8 16. frag: 0, or 1 a, 2 b, 3 c matrix fragment. */
typedef struct kir_type {
  uint8_t base, lanes;
  uint16_t frag; /* two bytes, so that a type has four, which a register takes as they are: three are put together one by one */
} kir_type;
static inline kir_type kir_t(int32_t base, uint32_t lanes) {
  kir_type t = {(uint8_t)base, (uint8_t)lanes, 0};
  return t;
}
bool kir_same(kir_type, kir_type);

typedef enum { KIR_GLOBAL, KIR_IMAGE, KIR_LOCAL, KIR_PRIVATE, KIR_SCRATCH, KIR_CONSTANT } kir_space;
enum { KIR_READ = 1, KIR_WRITE = 2 }; /* access */
enum {
  KIR_MEM_TEXEL = 1,
  KIR_MEM_OOB_ZERO = 2,
  KIR_MEM_REGS = 4,
  KIR_MEM_ROWS = 8,
  KIR_MEM_SAMPLED = 16,
  KIR_MEM_LINEAR = 32,
  KIR_MEM_CLAMP = 64
};
typedef struct kir_memory {
  const char *name;
  uint8_t space, access, view; /* view: storage element type where it differs from `type` (0: same) */
  uint8_t rank;                /* dimensions; global: 1 */
  uint16_t flags;
  kir_type type;          /* of one element; may be a vector (texel, regs) */
  uint32_t slot;          /* global and image: binding number, dense from 0 in declaration order */
  uint32_t alias;         /* global: memories with the same number may overlap; 0: disjoint from all */
  uint32_t align;         /* bytes of the base; kir_memory_add turns 0 into 64 (private, const arrays and images have none) */
  uint32_t offset_scalar; /* 1 + scalar holding a run-time element offset; 0: offset 0 */
  uint32_t overlay;       /* 1 + local memory it shares bytes with */
  uint64_t dims[4];       /* extents; global: [0] = elements, or 0 if run-time; [1] = factor of size_scalar (0: 1) */
  uint32_t size_scalar;   /* global: 1 + scalar; dims[1] times it is the number of elements. 0: dims[0] */
  const double *values;   /* KIR_CONSTANT */
  char format[12];        /* image: "rgba8", "rgba16f", "r32f" .. */
  const char *state;
} kir_memory;
/* offset: byte in the one block (<= 128). Facts: max 0: none known; multiple_of 0 or 1: none known. */
typedef struct kir_scalar {
  const char *name;
  kir_type type;
  uint32_t offset;
  int64_t min, max, multiple_of;
} kir_scalar;

/* Sixteen scalars in a row that are known to be 0 to 15: a generator looks the group's number up in them, four bits at a time. Some drivers take for the same
   in all lanes nothing but what is made of the block, and store by a loop over the lanes else. Such a kernel has at most 65536 groups, of one subgroup,
   and a group beyond the last may do that one's work again. */
enum { KIR_DIGITS = 16 };

enum {
  KIR_LOOP_FULL = 1,
  KIR_LOOP_ROLLED = 2,
  KIR_LOOP_INTERIOR = 4,
  KIR_LOOP_BORDER = 8,
  KIR_LOOP_TRIP1 = 16
}; /* flags of loop; TRIP1: at least one trip */
enum { KIR_ROUND_NONE = 0, KIR_ROUND_RNE, KIR_ROUND_RTZ, KIR_ROUND_RTP, KIR_ROUND_RTN, KIR_SAT = 8 };

typedef struct kir_inst {
  uint16_t op;
  kir_type type; /* of the result; store: of the value */
  uint16_t arg_count;
  uint32_t args; /* first operand in kernel->args */
  uint32_t
      index; /* memory, scalar, dimension, carried number, region opener: see the op; pack2, unpack2: SNT_F16 or SNT_BF16; loop: trips to peel first */
  uint32_t index2; /* async.copy: global memory; loop: trips to peel last */
  union {
    double f;
    int64_t i;
  } imm;                /* const: value (floats as f64); ix: the constant; async.wait: sets that may stay open */
  uint16_t flags;       /* loop flags, cast rounding, UNIFORM/STREAM/RW/SAME/spaces */
  uint16_t align;       /* load, store: proven bytes, 0: element */
  int32_t lanes;        /* load, store: elements between lanes (0: 1); prefetch, async: bytes; mma: ld; loop: unroll factor (0: none) */
  float dom_lo, dom_hi; /* transcendental: proven domain when flags & KIR_HAS_DOM */
  float ulp;            /* 0: default */
} kir_inst;
enum {
  KIR_HAS_DOM = 1,
  KIR_IS_UNIFORM = 1,
  KIR_IS_STREAM = 2,
  KIR_IS_RW = 4,
  KIR_IS_SAME = 8,
  KIR_IS_FAR = 8, /* prefetch */
  KIR_IS_COLUMNS = 16,
  KIR_SYNC_LOCAL = 1,
  KIR_SYNC_GLOBAL = 2
};
/* Of a buffer without elements a guard may load the first vector, the widest there is, which a select leaves out. */
enum { KIR_EMPTY_ELEMENTS = 16 };

/* An operator of the user's own: a function of scalars (`own`), or the body of the kernel (`inline`). Texts are as the user gave them. */
enum { KIR_OWN_OPENCL, KIR_OWN_CUDA, KIR_OWN_GLSL, KIR_OWN_TARGETS, KIR_OWN_NAMES = 26 };
typedef struct kir_own {
  const char *name, *params; /* params: "x,k", the names that the texts use */
  const char *source[KIR_OWN_TARGETS];
  const uint32_t *spirv; /* the GLSL, compiled: a module with the function, or the whole kernel */
  size_t spirv_bytes;
  bool native;                  /* a target without a text is an error */
  uint8_t types[KIR_OWN_NAMES]; /* of a function: SNT_* of the result, then of the parameters */
} kir_own;

typedef struct kir_kernel {
  ir_arena *arena;
  const char *name;
  uint32_t items[3]; /* workgroup size, >= 1 each */
  uint32_t sub;      /* subgroup: 0 none, ~0u any, else the size */
  uint8_t mode;      /* SNT_NUMERICS_* */
  bool failed;       /* sticky */
  const char *needs; /* "" or "mma.f16.f32.16x16x16" */
  IR_VEC(kir_memory) memories;
  IR_VEC(kir_scalar) scalars;
  IR_VEC(kir_own) owns;
  IR_VEC(kir_inst) insts; /* [0] unused */
  IR_VEC(uint32_t) args;
  uint32_t *recent;     /* what passes emitted since `recent_from`, by hash: not made twice (kir_share); null: everything is made */
  uint32_t recent_from; /* the first instruction after the last that opens or closes a region */
  snt_diag first_error;
} kir_kernel;

/* ---- builder: appends at the end; infers result types; a mistake sticks ---- */
void kir_init(kir_kernel *, ir_arena *, const char *name);
uint32_t kir_memory_add(kir_kernel *, const kir_memory *);
uint32_t kir_scalar_add(kir_kernel *, const char *name, int32_t dtype, int64_t min, int64_t max,
                        int64_t multiple_of); /* lays out the block: 4- or 8-byte aligned */
uint32_t kir_const_int(kir_kernel *, kir_type, int64_t);
uint32_t kir_const_float(kir_kernel *, kir_type, double);
uint32_t kir_const_like(kir_kernel *, uint32_t value, double x); /* same type as `value` */
uint32_t kir_scalar_read(kir_kernel *, uint32_t scalar);
uint32_t kir_id(kir_kernel *, kir_op, uint32_t dimension); /* group local sg_* */
uint32_t kir_put(kir_kernel *, const kir_inst *, uint32_t arg_count,
                 const uint32_t *args); /* general form; type filled in unless rule SELF */
uint32_t kir_1(kir_kernel *, kir_op, uint32_t a);
uint32_t kir_2(kir_kernel *, kir_op, uint32_t a, uint32_t b); /* a scalar beside a vector is splatted */
uint32_t kir_3(kir_kernel *, kir_op, uint32_t a, uint32_t b, uint32_t c);
#define kir_2(k, op, a, b) IR_LAST_FIRST_2(kir_2, a, b, k, op)
#define kir_3(k, op, a, b, c) IR_LAST_FIRST_3(kir_3, a, b, c, k, op)
uint32_t kir_cast(kir_kernel *, kir_type to, uint32_t a);
uint32_t kir_bitcast(kir_kernel *, kir_type to, uint32_t a);
uint32_t kir_splat(kir_kernel *, uint32_t a, uint32_t lanes); /* lanes 1: a itself */
uint32_t kir_lane(kir_kernel *, uint32_t vector, uint32_t lane);
uint32_t kir_vector(kir_kernel *, uint32_t base, uint32_t lanes, const uint32_t *values); /* of so many values of that type */
uint32_t kir_shuffle(kir_kernel *, uint32_t a, uint32_t b, uint32_t lanes,
                     const uint8_t *from); /* lane from[i] of a, whose lanes those of b follow */

enum { KIR_IX_TERMS = 16 }; /* the most that one sum of indices has */
uint32_t kir_ix(kir_kernel *, uint32_t count, const int64_t *coefs, const uint32_t *values,
                int64_t constant); /* u32 unless a value is i32 */
uint32_t kir_load(kir_kernel *, uint32_t memory, uint32_t lanes, uint32_t index_count,
                  const uint32_t *indices); /* set .align .lanes .flags on kir_at() afterwards */
uint32_t kir_store(kir_kernel *, uint32_t memory, uint32_t index_count, const uint32_t *indices, uint32_t value);
/* A text of the user's own has up to two parts, parted by a line "%%": what stands before the kernel, and the function's or kernel's body. */
const char *kir_own_body(const char *source, size_t *head);
uint32_t kir_own_param(const char *params, uint32_t n, const char **at); /* length of name n of "x,k"; 0: there is none */
bool kir_same_own(const kir_own *, const kir_own *);
uint32_t kir_own_add(kir_kernel *, const kir_own *); /* its row: the one there is, or a new one; texts are borrowed */
void kir_fill(kir_kernel *, uint32_t memory, uint32_t index_count, const uint32_t *indices, uint32_t value);
void kir_barrier(kir_kernel *, uint32_t spaces);
/* Begins a loop; carried[i] receives the carry values. The variable has type u32 (i32 if lo is i32). */
uint32_t kir_loop(kir_kernel *, uint32_t lo, uint32_t hi, uint32_t step, uint32_t count, const uint32_t *initial, uint32_t *carried,
                  uint32_t flags, uint32_t unroll);
void kir_loop_end(kir_kernel *, uint32_t loop, uint32_t count, const uint32_t *next, uint32_t *results);
uint32_t kir_if(kir_kernel *, uint32_t condition);
void kir_else(kir_kernel *, uint32_t opened, uint32_t count, const uint32_t *values);
void kir_if_end(kir_kernel *, uint32_t opened, uint32_t count, const uint32_t *values, uint32_t *results);

/* ---- reading ---- */
uint32_t kir_digits(const kir_kernel *); /* 1 + the first of the digits; 0: there are none */
static inline kir_inst *kir_at(const kir_kernel *k, uint32_t i) { return &k->insts.at[i]; }
static inline uint32_t kir_arg(const kir_kernel *k, uint32_t i, uint32_t n) { return k->args.at[k->insts.at[i].args + n]; }
bool kir_is_const(const kir_kernel *, uint32_t value, int64_t *as_int, double *as_float); /* either out may be null */
/* index of the end (or else) that closes each opener, and of the innermost opener around each instruction (0: none) */
typedef struct kir_regions {
  uint32_t *close, *parent;
} kir_regions;
bool kir_find_regions(const kir_kernel *, ir_arena *, kir_regions *out);

/* Do two kernels differ in nothing but their own names? Such have the same hash, on one machine. */
bool kir_same_code(const kir_kernel *, const kir_kernel *);
uint64_t kir_code_hash(const kir_kernel *);

/* ---- text, checks ---- */
void kir_print(const kir_kernel *, ir_text *);
/* The same, and where in the text each instruction is: its line from 1 and the number of its value less 1; 0: it has none. `text` may begin
   with lines of others. */
typedef struct kir_place {
  uint32_t line, number;
} kir_place;
void kir_print_places(const kir_kernel *, ir_text *, kir_place *);
snt_result kir_parse(kir_kernel *, const char *text, size_t length, snt_diag *);
snt_result kir_verify(const kir_kernel *, ir_text *errors,
                      snt_diag *); /* all errors; types, regions, dominance, uniformity of barriers, slots */
enum { KIR_UNIFORM_GROUP, KIR_UNIFORM_SUBGROUP, KIR_UNIFORM_ITEM };
bool kir_find_uniformity(const kir_kernel *, ir_arena *, uint8_t **out); /* per instruction */

/* ---- rewriting: a pass builds a new kernel from an old one; see ir/kir_pass.h ---- */
#endif
