/* A SPIR-V module under construction: one sticky word buffer a section, in the order of the specification (2.4), and interned types
   and constants. Ids are handed out in order of first use, so the same kernel gives the same bytes. */
#ifndef CODEGEN_SPIRV_SPV_WORDS_H
#define CODEGEN_SPIRV_SPV_WORDS_H
#include "codegen_spirv/spv_codes.h"
#include "ir/base.h"

// clang-format off
typedef enum {
  SPV_CAPS, SPV_EXTENSIONS, SPV_IMPORTS, SPV_MODEL, SPV_ENTRY, SPV_MODES, SPV_NAMES, SPV_DECORATIONS, SPV_TYPES,
  SPV_LOCALS, /* the function's head and variables */
  SPV_CODE,
  SPV_SECTIONS
} spv_section;
// clang-format on
typedef IR_VEC(uint32_t) spv_words;
typedef struct spv_interned {
  uint64_t hash;
  uint32_t at, length, id;
} spv_interned; /* `at`: first word of the key in `keys` */

typedef struct spv_module {
  ir_arena *arena;
  spv_words section[SPV_SECTIONS];
  spv_words keys;
  IR_VEC(spv_interned) interned;
  uint32_t *table, table_size; /* open hash: 1 + index into interned */
  uint32_t bound;
  bool failed;
} spv_module;

void spv_init(spv_module *, ir_arena *);
static inline uint32_t spv_fresh(spv_module *m) { return m->bound++; }
void spv_put(spv_module *, spv_section, uint32_t word);
void spv_inst(spv_module *, spv_section, uint32_t op, const uint32_t *operands, size_t count);
/* The word count comes from the argument list; nobody types it. */
#define SPV(m, section, op, ...) \
  spv_inst(m, section, op, (const uint32_t[]){__VA_ARGS__}, sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))
/* For instructions with text: open, put words and text, close. */
uint32_t spv_open(spv_module *, spv_section, uint32_t op);
void spv_put_text(spv_module *, spv_section, const char *);
void spv_close(spv_module *, spv_section, uint32_t opened);
/* The id of the type or constant `op operands..`: the one made before, or a new one. With `typed`, the first operand is a result type,
   which precedes the id. `is_new` may be null. `tag` keeps apart what would be equal but for its decorations. */
uint32_t spv_intern(spv_module *, uint32_t op, bool typed, const uint32_t *operands, size_t count, uint32_t tag, bool *is_new);
#define SPV_TYPE(m, op, ...) \
  spv_intern(m, op, false, (const uint32_t[]){__VA_ARGS__}, sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t), 0, NULL)
#define SPV_CONST(m, op, ...) \
  spv_intern(m, op, true, (const uint32_t[]){__VA_ARGS__}, sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t), 0, NULL)
/* The whole module, header first, in the module's arena; null if anything failed. */
uint32_t *spv_assemble(spv_module *, size_t *count);
#endif
