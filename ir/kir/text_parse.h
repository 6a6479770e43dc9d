/* The parser of kernel IR text, shared by its files: tokens, names, operands. Sticky: after the first error everything does nothing. */
#ifndef IR_KIR_TEXT_PARSE_H
#define IR_KIR_TEXT_PARSE_H
#include "ir/kir/text.h"

/* ---- tokens ---- */
typedef enum { KTOKEN_END, KTOKEN_LINE, KTOKEN_WORD, KTOKEN_VALUE, KTOKEN_KERNEL, KTOKEN_SIGN } kir_token_kind; /* LINE: newline or ; */
typedef struct kir_token {
  kir_token_kind kind;
  const char *at;
  uint32_t length;
} kir_token; /* VALUE and KERNEL: without % and @ */

typedef enum { KLITERAL_INT, KLITERAL_FLOAT, KLITERAL_LOWEST, KLITERAL_BOOL } kir_literal_kind;
typedef struct kir_literal {
  kir_literal_kind kind;
  bool negative;
  uint64_t magnitude;
  double value;
} kir_literal; /* value: of FLOAT, without the sign */

/* ---- names: the newest binding wins; leaving a region undoes those made inside ---- */
typedef enum { KNAME_VALUE, KNAME_MEMORY, KNAME_SCALAR } kir_name_kind;
typedef struct kir_name {
  const char *at;
  uint32_t length, bucket, before, id;
  kir_name_kind kind;
} kir_name; /* before: 1 + older one in the bucket */

typedef struct kir_operand {
  uint32_t id;
  bool is_literal;
  kir_literal literal;
  kir_type type;
} kir_operand; /* type: stated on a literal, or lanes 0 */
typedef struct kir_target {
  kir_token name;
  kir_type type;
  bool is_cell;
  uint32_t memory, count, index[4];
} kir_target;
typedef struct kir_frame {
  uint32_t opener, names, targets, target_count, yields, yield_count, first_count;
  bool is_loop, in_else, yielded;
} kir_frame;
typedef struct kir_fixup {
  uint32_t memory;
  bool is_offset, is_overlay;
  kir_token name;
} kir_fixup;

enum { KIR_NAME_BUCKETS = 1024 };
typedef struct kir_parser {
  kir_kernel *k;
  ir_arena *scratch;
  snt_diag *diag;
  const char *next, *end;
  kir_token now;
  uint32_t line; /* of `now` */
  bool failed, after_line;
  IR_VEC(kir_name) names;
  IR_VEC(kir_operand) operands;
  IR_VEC(kir_target) targets;
  IR_VEC(kir_frame) frames;
  IR_VEC(uint32_t) ids; /* yielded values of the open regions */
  IR_VEC(kir_fixup) fixups;
  uint32_t buckets[KIR_NAME_BUCKETS];
} kir_parser;

void kir_parse_fail(kir_parser *, const char *format, ...) IR_PRINTF(2, 3);
void kir_advance(kir_parser *);
void kir_skip_lines(kir_parser *);
bool kir_is_sign(const kir_parser *, char);
bool kir_take_sign(kir_parser *, char); /* consumes it if it is next */
void kir_expect_sign(kir_parser *, char);
bool kir_is_word(const kir_parser *, const char *);
bool kir_take_word(kir_parser *, const char *);
kir_token kir_expect(kir_parser *, kir_token_kind, const char *what);
uint32_t kir_take_choice(kir_parser *, const kir_word *, const char *what);
uint64_t kir_take_number(kir_parser *, uint64_t max); /* a plain integer */
int64_t kir_take_signed(kir_parser *);
kir_type kir_take_type(kir_parser *);
bool kir_at_literal(const kir_parser *);
kir_literal kir_take_literal(kir_parser *);
double kir_literal_value(const kir_literal *, uint32_t base);
/* Emits the constant; lanes 0: the literal's own kind decides. */
uint32_t kir_put_literal(kir_parser *, const kir_literal *, kir_type);

void kir_bind(kir_parser *, kir_token, kir_name_kind, uint32_t id);
void kir_unbind_to(kir_parser *, uint32_t count);
const kir_name *kir_lookup(kir_parser *, kir_token); /* null after failing */
char *kir_token_text(kir_parser *, kir_token);       /* a copy in the kernel's arena */

void kir_parse_declarations(kir_parser *);

/* ---- operands ---- */
kir_operand kir_take_operand(kir_parser *);
uint32_t kir_settle(kir_parser *, const kir_operand *, kir_type literal_type); /* its value, emitting a literal */
uint32_t kir_take_sum(kir_parser *, kir_type stated, bool in_brackets);
/* %memory[index,..]; returns the count of indices. */
uint32_t kir_take_cell(kir_parser *, uint32_t *memory, uint32_t index[4]);
uint32_t kir_take_indices(kir_parser *, uint32_t index[4]);
#endif
