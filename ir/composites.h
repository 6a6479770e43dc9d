/* Composites: operators that users know by name, written in primitives when they are built. Every node made carries the composite's user
   name and, as `origin`, the number of its first result; nothing later in the compiler knows that there was a composite.
   A composite is one row of ir/composites.def and one function build_<name> in a file of ir/composites/. */
#ifndef IR_COMPOSITES_H
#define IR_COMPOSITES_H
#include "ir/graph.h"

typedef enum {
  IR_COMPOSITE_NONE,
#define COMPOSITE(name, ...) IR_COMPOSITE_##name,
#include "ir/composites.def"
#undef COMPOSITE
  IR_COMPOSITE_COUNT
} ir_composite;
typedef enum {
  IR_PARAM_NONE,
#define PARAM(name, kind) IR_PARAM_##name,
#include "ir/params.def"
#undef PARAM
  IR_PARAM_COUNT
} ir_param_key;
enum { IR_MAX_RESULTS = 4 };

typedef struct ir_composite_info {
  const char *name;
  uint8_t min_args, max_args, results;
  uint64_t params; /* mask of 1 << ir_param_key */
} ir_composite_info;
extern const ir_composite_info ir_composites[IR_COMPOSITE_COUNT];
extern const ir_attr_info ir_param_infos[IR_PARAM_COUNT];
ir_composite ir_composite_find(const char *name, size_t length); /* IR_COMPOSITE_NONE: unknown */

/* INTS INT DTYPE: ints; NUMBER: number; WORD: word, terminated; FLAG: neither. */
typedef struct ir_param {
  uint8_t key;
  uint32_t count;
  const ir_expr *ints;
  double number;
  const char *word;
} ir_param;
typedef struct ir_composite_desc {
  ir_composite which;
  uint32_t arg_count;
  const uint32_t *args; /* 0: left out, where the row allows it */
  uint32_t param_count;
  const ir_param *params;
  const char *name; /* of the nodes; may be null */
} ir_composite_desc;
/* How many numbers that activation of recurrent layers takes: alpha, then beta. */
uint32_t ir_activation_numbers(const char *name);
/* Builds into the graph. Returns the first result and fills results[], if given, with as many as the row says; 0 after a mistake, which
   sticks to the graph. */
uint32_t ir_add_composite(ir_graph *, const ir_composite_desc *, uint32_t *results);
#endif
