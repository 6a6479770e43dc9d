/* What the files of the C-like printer share. */
#ifndef CODEGEN_COMMON_CTEXT_PRIVATE_H
#define CODEGEN_COMMON_CTEXT_PRIVATE_H
#include "codegen_common/ctext.h"

typedef struct ctext {
  const dialect *d;
  const kir_kernel *k;
  ir_arena *arena;
  ir_text out;
  uint32_t depth;
  kir_regions regions;
  uint32_t *same;          /* value -> value whose variable it shares (a loop's results are its carried variables) */
  uint32_t *uses, *folded; /* of each value: all, and those as an address that its operands are written into */
  uint64_t *anchors;       /* of each value: memories of which the element at that index is accessed wherever the value is computed */
  uint32_t *open;          /* stack of the openers around the current instruction */
  uint32_t open_count;
  snt_diag *diag;
  snt_result result; /* sticky */
  dialect_index index;
} ctext;

/* What the escapes of one expansion refer to. */
typedef struct ctext_site {
  uint32_t id;            /* instruction, 0: none */
  uint32_t lane;          /* extract, insert: literal lane */
  uint32_t memory;        /* 1 + memory number; 0: none */
  kir_type type, operand; /* result, operand 0 */
  const char *text[2];    /* override $0 and $1 */
  uint64_t number[3];     /* $X $Y $Z */
} ctext_site;

void ctext_fail(ctext *, snt_result, uint32_t id, const char *format, ...) IR_PRINTF(4, 5);
void ctext_expand(ctext *, const char *text, const ctext_site *);
void ctext_line(ctext *, const char *text, const ctext_site *); /* indented, with ';' and a line end */
void ctext_begin_line(ctext *);
/* Text written between the two goes aside and is returned by the second. */
ir_text ctext_divert(ctext *);
const char *ctext_restore(ctext *, ir_text saved);
/* The cell for `op`, after complaining about absent, lowered and unsupported ones; null then. */
const char *ctext_cell_for(ctext *, kir_op, uint32_t id, kir_type operand);

/* ctext_value.c */
void ctext_type(ctext *, kir_type);
void ctext_storage(ctext *, kir_type);
void ctext_value(ctext *, uint32_t value);
void ctext_scalar(ctext *, uint32_t number);
void ctext_literal(ctext *, kir_type, int64_t as_int, double as_float);
bool ctext_const_int(const ctext *, uint32_t value, int64_t *out);

/* ctext_memory.c */
void ctext_signature(ctext *);
void ctext_arrays(ctext *);
void ctext_memory_name(ctext *, uint32_t memory);
void ctext_index(ctext *, uint32_t id);
void ctext_count_uses(ctext *);
void ctext_load(ctext *, uint32_t id);
void ctext_copy(ctext *, uint32_t id);
void ctext_store(ctext *, uint32_t id);

void ctext_pointer(ctext *, uint32_t memory, const char *name, uint32_t length); /* a buffer's pointer by another name */

/* ctext_own.c: operators of the user's own */
void ctext_own_call(ctext *, uint32_t id);
void ctext_own_body(ctext *, uint32_t id);
void ctext_own_heads(ctext *, ir_text *out); /* what stands before the kernel: functions, and what the user put there */

/* ctext_control.c: true if the operation is one of control */
bool ctext_control(ctext *, uint32_t id);
#endif
