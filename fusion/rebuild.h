/* Rewriting a graph: a new graph is built node by node from the old one; a rule may give another value for a node. */
#ifndef FUSION_REBUILD_H
#define FUSION_REBUILD_H
#include "fusion/fusion.h"

typedef struct rebuild {
  fusion_context *c;
  const ir_graph *from;
  ir_graph *to;
  uint32_t *map;     /* old -> new */
  uint32_t node;     /* the old node at hand */
  uint32_t args[16]; /* its operands in `to` (the first 16) */
  void *user;        /* of the pass */
  bool changed;
} rebuild;
/* What a pass has to say of nodes of some operators: those listed, those with one of the flags, or (neither) all. */
typedef struct rebuild_rule {
  uint32_t (*make)(rebuild *); /* returns the new value for r->node, or 0 to copy it */
  uint8_t ops[5], flags;       /* places left over are IR_OP_NONE, which no node has */
} rebuild_rule;
snt_result fusion_rebuild(fusion_context *, const rebuild_rule *rules, uint32_t rule_count, bool *changed);
snt_result fusion_rebuild_with(fusion_context *, const rebuild_rule *rules, uint32_t rule_count, void *user, bool *changed);
uint32_t rebuild_copy(rebuild *); /* the plain copy, for a rule that builds on it */
uint32_t rebuild_copy_of(rebuild *, uint32_t node,
                         const uint32_t *args);                     /* an old node on other operands of `to`, with its name and origin */
void rebuild_keep_identity(rebuild *, uint32_t made, uint32_t old); /* origin and name, where it has none */
uint32_t rebuild_wide(rebuild *, uint32_t node); /* a value of `to` as f32, cast below what only moves it; itself if it is */
/* The node at hand on other operands, with its attributes, of which `replaced` take the place of those with the same key. */
uint32_t rebuild_with(rebuild *, uint32_t arity, const uint32_t *args, uint32_t count, const ir_attr_value *replaced);
uint32_t rebuild_view(rebuild *, ir_op, uint32_t operand, uint32_t attr_count, const ir_attr_value *);
uint32_t rebuild_reshape(rebuild *, uint32_t operand, uint32_t rank, const ir_expr *dims);
uint32_t rebuild_transpose(rebuild *, uint32_t operand, uint32_t rank, const ir_expr *perm);
/* `axes`: of the result, one an axis of the operand; null: the last ones. */
uint32_t rebuild_broadcast(rebuild *, uint32_t operand, uint32_t count, const ir_expr *axes, uint32_t rank, const ir_expr *dims);
uint32_t rebuild_slice(rebuild *, uint32_t operand, uint32_t rank, const ir_expr *starts, const ir_expr *sizes,
                       const ir_expr *steps); /* null: by 1 */
#endif
