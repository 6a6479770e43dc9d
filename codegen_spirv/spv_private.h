/* What the files of the SPIR-V generator share: the state of one kernel's emission. */
#ifndef CODEGEN_SPIRV_SPV_PRIVATE_H
#define CODEGEN_SPIRV_SPV_PRIVATE_H
#include "codegen_common/targets.h"
#include "codegen_spirv/spv_words.h"

/* One way of seeing a memory: buffers may be seen as arrays of scalars and of vectors through variables that share a binding. */
typedef struct spv_view {
  uint32_t variable, element;
} spv_view; /* 0: none; element: type id */
typedef struct spv_memory {
  bool widths[5]; /* accessed with this many lanes, aligned (1: also everything unaligned) */
  bool sampled, texel;
  bool narrows;     /* its loads are of its own type, else of that which they are computed in */
  bool paired;      /* two of its vectors of four words are stored as one of four words of 64 bits */
  bool addressed;   /* the views' variables are pointers out of the block */
  spv_view view[5]; /* by lanes of the array's element */
  uint32_t image;   /* type of the image, and of the variable's content */
  uint32_t content;
  uint32_t base;            /* value added to each index, 0: none */
  uint32_t first, first_at; /* paired: what waits for the other vector of its pair, and the pair's place; 0: none */
} spv_memory;

typedef struct spv_region {
  uint32_t opener, merge, proceed, header; /* labels; proceed: continue target, or the else block */
  uint32_t kept;                           /* loop: the first of the places of its variable and of the carried values */
  uint32_t ends[2];                        /* if: the block each branch ends in */
  uint32_t yields[2];                      /* if: yield instruction of each branch, 0: none */
  bool has_else;
} spv_region;

typedef struct spv {
  const kir_kernel *k;
  const kir_caps *caps;
  uint32_t *id; /* kernel value -> SPIR-V id */
  spv_memory *memory;
  spv_region *region; /* stack */
  uint32_t *own;      /* row of kernel->owns -> its function, 0: not called */
  uint32_t depth;
  uint32_t glsl, function, block, push, exit; /* block: label of the current block */
  bool matrices;                              /* the module is in the Vulkan memory model */
  kir_mma mma;                                /* and its fragments have this size */
  uint32_t digits;     /* word of the block where the digits begin, plus 1; 0: none, and a guard stands around the kernel */
  uint32_t address_at; /* byte of the block where the addresses of buffers begin; 0: none */
  kir_place *places;   /* by instruction, of the source; null: no debug information */
  uint32_t source;     /* the source's name */
  snt_diag *diag;
  snt_result result; /* sticky */
  IR_VEC(uint32_t) needed;
  spv_module m;
  uint32_t types[SNT_DTYPE_COUNT][5]; /* by lanes, 0: not defined yet */
  uint32_t builtin[48];               /* input variables by number, 0: not used */
} spv;

void spv_fail(spv *, snt_result, uint32_t inst, const char *format, ...) IR_PRINTF(4, 5);
void spv_need(spv *, uint32_t capability);
void spv_put_name(spv *, uint32_t id, const char *name);

/* Debug information: spv_debug.c. */
void spv_debug_source(spv *);              /* first of all names */
void spv_debug_line(spv *, uint32_t inst); /* of what is emitted next */
void spv_debug_names(spv *);               /* at the end */

/* types and constants: spv_types.c. i32 and u32 share a type without sign: the operations carry it. */
uint32_t spv_type(spv *, kir_type);
uint32_t spv_pointer(spv *, uint32_t storage_class, uint32_t type);
uint32_t spv_array(spv *, uint32_t element, uint32_t count, uint32_t stride); /* stride 0: undecorated */
uint32_t spv_u32(spv *, uint32_t);
uint32_t spv_literal(spv *, kir_type, int64_t as_int, double as_float); /* float types take as_float */
uint32_t spv_matrix_type(spv *, kir_type);                              /* of a fragment */
static inline kir_type spv_like(kir_type t, int32_t base) { return kir_t(base, t.lanes); }

/* code: each gives the id of its result (spv_result.c) */
uint32_t spv_result(spv *, uint32_t op, uint32_t type, const uint32_t *operands, size_t count);
#define SPV_DO(s, op, type, ...)                                   \
  __extension__({                                                  \
    const uint32_t spv_operands[] = {__VA_ARGS__};                 \
    spv_result(s, op, type, spv_operands, IR_COUNT(spv_operands)); \
  })
#define SPV_GLSL(s, inst, type, ...) SPV_DO(s, SpvOpExtInst, type, (s)->glsl, inst, __VA_ARGS__)
uint32_t spv_float_op(spv *, uint32_t op, uint32_t type, uint32_t a, uint32_t b); /* not to be contracted */
void spv_label(spv *, uint32_t label);
static inline uint32_t spv_arg(const spv *s, uint32_t inst, uint32_t n) { return s->id[kir_arg(s->k, inst, n)]; }
static inline kir_type spv_arg_type(const spv *s, uint32_t inst, uint32_t n) { return kir_at(s->k, kir_arg(s->k, inst, n))->type; }
bool spv_is_signed(uint32_t base);
uint32_t spv_splat(spv *, kir_type to, uint32_t scalar);
uint32_t spv_builtin(spv *, uint32_t number, uint32_t component); /* component ~0u: a scalar variable */

uint32_t spv_select_op(spv *, uint32_t inst); /* spv_isel.c: 0 if the table has no row for it */
uint32_t spv_isel_op(kir_op, uint32_t base);  /* the table's cell, SpvOpNop if there is none */
bool spv_isel_has(kir_op, const char **why);  /* the table, or what is done otherwise; why: the pass that removes it, or what is missing */
uint32_t spv_special(spv *, uint32_t inst);   /* spv_special.c: operations that take several instructions */
uint32_t spv_cast(spv *, kir_type to, kir_type from, uint32_t value, uint32_t flags); /* spv_convert.c */
kir_type spv_wide(kir_type); /* the 32-bit type that an 8- or 16-bit one is computed in; others themselves */
uint32_t spv_bfloat_bits(spv *, kir_type from, uint32_t value); /* in the low half of u32 lanes, to nearest even */
uint32_t spv_pack_half(spv *, uint32_t pair);                   /* f32x2 -> u32, to nearest even whatever the driver does */
uint32_t
spv_prepare_memories(spv *, uint32_t *pointers); /* spv_memory.c: how each is seen; types of the addresses in the block, and their count */
uint32_t spv_block_word(spv *, uint32_t index);  /* word `index`, a value, of the block */
uint32_t spv_digit(spv *, uint32_t number);      /* that all lanes have, as a driver sees it */
void spv_declare_memories(spv *);
void spv_begin_memories(spv *, uint32_t group);
uint32_t spv_load(spv *, uint32_t inst);
void spv_store(spv *, uint32_t inst);
uint32_t spv_atomic(spv *, uint32_t inst);
uint32_t spv_matrix_pointer(spv *, uint32_t inst, uint32_t *width); /* the first element, as vectors of `width` */
void spv_matrix_set(spv *, uint32_t memory, uint32_t cell, uint32_t value);
void spv_begin_matrices(spv *); /* spv_matrix.c */
uint32_t spv_matrix_load(spv *, uint32_t inst);
uint32_t spv_matrix_store(spv *, uint32_t inst);
uint32_t spv_matrix_multiply(spv *, uint32_t inst);
uint32_t spv_matrix_fill(spv *, uint32_t inst);
void spv_declare_image(spv *, uint32_t memory); /* spv_image.c */
uint32_t spv_fetch_texel(spv *, uint32_t memory, uint32_t index);
uint32_t spv_image(spv *, uint32_t inst);
uint32_t spv_own_call(spv *, uint32_t inst);      /* spv_own.c: operators of the user's own */
void spv_own_functions(spv *);                    /* those that were called, out of the modules they were compiled to */
const kir_own *spv_own_whole(const kir_kernel *); /* the one that is the whole kernel, or null */
snt_result spv_own_module(const kir_own *, codegen_code *out, snt_diag *);
snt_result spv_own_text(const kir_kernel *, uint32_t own, ir_text *out, snt_diag *); /* spv_glsl.c: the GLSL to compile */
bool spv_control(spv *, uint32_t inst);                                              /* spv_control.c: true if it was control */
#endif
