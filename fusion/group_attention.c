/* The hyper-edge of attention: anchored at the contraction of the values. In: the graph. Out: the members that fusion/attention.c finds. */
#include "fusion/attention.h"
#include "fusion/group_private.h"

bool match_attention(const grouping *s, uint32_t node, hyper_match *m) {
  attention a;
  const char *why;
  uint32_t count;
  if (!attention_find(s->c, NULL, &s->uses, node, &a, &why)) return false;
  const uint32_t *members = attention_members(s->c, &a, &count);
  for (uint32_t i = 0; members && i < count; i++)
    if (!hyper_add(m, members[i])) return false;
  m->hero = node;
  return members != NULL;
}
