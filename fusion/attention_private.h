/* Shared by attention.c and attention_rules.c only. */
#ifndef FUSION_ATTENTION_PRIVATE_H
#define FUSION_ATTENTION_PRIVATE_H
#include "fusion/attention.h"

enum { ATTENTION_DEPTH = 64 }; /* operators on one way that are followed */

typedef struct finder {
  const fusion_context *c;
  const fusion_group *group;
  const ir_uses *uses;
  attention *a;
  const char *why; /* the first obstacle */
  uint32_t depth;
} finder;

static inline const ir_graph *graph_of(const finder *f) { return f->c->graph; }

attention_kind attention_bad(finder *, const char *why); /* notes the obstacle, if it is the first */
attention_kind attention_visit(finder *, uint32_t node,
                               const map_access *at); /* once a value: later visits must come with the same coordinates */
attention_node *attention_add(attention *, uint32_t node, const map_access *at); /* there is room; a free value until more is known */
bool attention_is_linear(uint8_t kind);                                          /* a sum of values weighted so is one of the result's */
bool attention_in_group(const fusion_group *, uint32_t node);
bool attention_uses(const finder *, const map_access *at, ir_expr variable); /* do the coordinates */
bool attention_along_keys(const finder *, const map_access *at);
#endif
