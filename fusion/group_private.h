/* Shared by the group*.c files: the table of groups under construction. */
#ifndef FUSION_GROUP_PRIVATE_H
#define FUSION_GROUP_PRIVATE_H
#include "fusion/fusion.h"

typedef struct grouping {
  fusion_context *c;
  ir_uses uses;
  uint32_t *group_of; /* = c->group_of */
  uint8_t *is_stored; /* node must have a buffer: output, update, keep, read by a group that cannot inline it */
  uint8_t *needed;    /* nodes that an output or update needs */
  uint32_t mark;      /* for reachability */
  uint32_t *marks;    /* per group */
} grouping;

/* Builds the union of two groups (b may equal a): members, inputs, outputs, kind, hero. False with the reason when it cannot be one kernel. */
bool group_unite(grouping *, uint32_t a, uint32_t b, fusion_group *out, const char **why_not);
/* Fills inputs and outputs of a group whose members are set; `self` and `other` are the numbers its members have now. */
bool group_find_ports(grouping *, fusion_group *, uint32_t self, uint32_t other);
group_kind group_kind_of_node(const grouping *, uint32_t node);
void group_price(grouping *, fusion_group *);
/* Would uniting a and b close a cycle (a path from one to the other through a third)? */
bool group_makes_cycle(grouping *, uint32_t a, uint32_t b);
void group_record(grouping *, uint32_t producer, uint32_t consumer, bool taken, const char *rule, const fusion_group *parts[2],
                  const fusion_group *fused);
#endif
