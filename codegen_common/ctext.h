/* The one C-like printer. A dialect is data: type names, and a template for each operation by operand type; `base` is an explicit
   parent, searched where a dialect has no cell of its own. */
#ifndef CODEGEN_COMMON_CTEXT_H
#define CODEGEN_COMMON_CTEXT_H
#include "codegen_common/codegen.h"

/* Escapes of a template:
     $0 .. $9 operands   $V $W the last and the one before it   $a all   $D the first, once a lane   $h the lanes of a shuffle   $y the sum of an ix
     $v this value's name   $t its type   $b its base name   $n its lanes   $z 0, 1 .. lanes-1
     $T the type of operand 0   $u $s $w as wide as it: unsigned, signed, unsigned of at least 32 bits   $B its bits less one   $o its lanes
     $l $x a literal lane: decimal, hex digit      $R operand 0 after the rounding function   $r suffix of a rounding conversion
     $m memory   $j index into it   $q its address space   $e its element type   $S its sampler's flags
     $k dimension as a letter   $K as a digit   $p bytes of a prefetch or copy   $i the sets of an async.wait   $f flags
     $M operand 1 modulo the width   $P what operand 1 is before a shift to the right, and by how many bits
     $X $Y $Z numbers: the workgroup's size unless said otherwise   $c their product   $g how many such groups a unit is to hold
   A cell that starts with '!' names the pass that must have removed the operation; with '?', why the target cannot do it. */
enum { CT_ANY_SHAPE, CT_SCALAR, CT_VECTOR, CT_PICK };
#define CT_BIT(dtype) (1u << SNT_##dtype)
#define CT_ALL (~0u)
enum {
  CT_FLOATS = CT_BIT(F32) | CT_BIT(F64),
  CT_HALVES = CT_BIT(F16) | CT_BIT(BF16),
  CT_NARROW = CT_BIT(I8) | CT_BIT(I16) | CT_BIT(U8) | CT_BIT(U16),
  CT_INTS = CT_NARROW | CT_BIT(I32) | CT_BIT(I64) | CT_BIT(U32) | CT_BIT(U64),
  CT_BOOLS = CT_BIT(BOOL),
  CT_TYPES = SNT_BOOL + 1 /* of values: others are stored as bytes */
};

/* An operation: of its dialect's rows for it, which stand beside each other, the first whose mask holds the operand's base type is taken; those of CT_VECTOR
   are before the others and for vectors alone, those of CT_PICK for vectors that one condition chooses. */
typedef struct ctext_cell {
  uint32_t types;
  uint8_t op, shape;
  const char *text;
} ctext_cell;
#define CT_CELL(op, types, text) \
  { types, KIR_##op, CT_ANY_SHAPE, text }
#define CT_VECTORS(op, types, text) \
  { types, KIR_##op, CT_VECTOR, text }
#define CT_PICKS(types, text) \
  { types, KIR_select, CT_PICK, text }
#define CT_LOWERED(op, pass) CT_CELL(op, CT_ALL, "!" pass)

/* A conversion: the first row whose masks hold both base types, and whose shape and saturation fit, is taken. */
typedef struct ctext_cast {
  uint32_t from, to;
  uint8_t shape;
  bool saturate;
  const char *text;
} ctext_cast;

/* Access to memory: `cell` one element of the declared type, `aligned` a vector at its natural alignment, `unaligned` elsewhere
   (null: lane by lane), `three` one of three lanes, `boolean` an element stored as a byte; `stream` an aligned store past the caches. */
typedef struct ctext_access {
  const char *cell, *boolean, *aligned, *unaligned, *three, *stream;
} ctext_access;

/* A helper text, included when `trigger` occurs in the kernel or in a later helper that is included; an empty one: of kernels whose results below 2^-126 may
   be 0. */
typedef struct ctext_helper {
  const char *trigger, *text;
} ctext_helper;

typedef struct dialect {
  const char *name;
  const struct dialect *base;
  const char *kernel;      /* what stands before the kernel's name; $X $Y $Z $c $g */
  const char *function;    /* what stands before the type of a function that kernels call */
  uint8_t own;             /* KIR_OWN_*: which of the user's texts are in this language */
  const char *group;       /* defines snt_group, and returns when it is not below $0, the number of groups */
  const char *word;        /* word $X of the scalar block */
  const char *word_param;  /* one parameter a word, $X; or */
  const char *block_param; /* one for the whole block of */
  const char *block_type;  /* $X words */
  const char *restrict_word;
  const char *image_param[3]; /* by access: read, write */
  const char *space[KIR_CONSTANT + 1];
  const char *array[KIR_CONSTANT + 1]; /* declaration of an array: $e $m, $X elements, aligned to $Y bytes; an initialiser may follow */
  const char *overlay;                 /* $m with the bytes of $0 */
  const char *pool; /* snt_local, local memory of $X bytes that the launch gives: for all arrays, where they are more than */
  uint32_t pool_beyond;
  const char *type[CT_TYPES], *stored_bool; /* the type of a bool in memory */
  const char *fragment;                     /* what the type of a matrix fragment begins with; null: there are none */
  const char *vector;                       /* type of a vector: $b $n */
  const char *mask;                         /* base name of vectors of bool */
  const char *literal[CT_TYPES];            /* $0: the digits */
  const char *infinity[SNT_F64 + 1],
      *nan[SNT_F64 + 1];                    /* constant expressions, no others are asked for; a negative one gets a sign and parentheses */
  const char *vector_literal, *vector_list; /* a vector of one literal $0; of the values that $0 lists */
  const char *scalar[CT_TYPES];             /* scalar parameter from words $0 and $1 */
  const char *unroll, *unroll_by, *rolled;  /* lines before a loop; $X the factor */
  const char *round_call[5], *round_suffix[5]; /* by KIR_ROUND_* */
  const char *wide_index;                      /* $0, an index that may be negative before a literal is added, in 64 bits */
  ctext_access load, store;
  const ctext_cell *cells;
  uint32_t cell_count;
  const ctext_cast *casts;
  uint32_t cast_count;
  const ctext_helper *helpers;
  const uint32_t *helper_count;
} dialect;

extern const dialect dialect_c; /* what C and C++ agree on */
extern const dialect dialect_opencl, dialect_cuda;
/* Where the rows of each operation begin, in a dialect and in its base. */
enum { CT_DIALECTS = 2 };
typedef struct dialect_index {
  uint8_t first[CT_DIALECTS][KIR_OP_COUNT];
} dialect_index;
void dialect_find_rows(const dialect *, dialect_index *);
/* The text of `op` for operands of a base type, or null. */
const char *dialect_cell(const dialect *, const dialect_index *, kir_op, uint32_t type, uint32_t shape);
snt_result ctext_emit(const dialect *, const kir_kernel *, ir_arena *, codegen_code *out, snt_diag *);
#endif
