/* Are two kernels the same code? In: kernels as scheduled. What does not count is their names: equal layers of a network give equal kernels under
   numbers of their own, and what follows is done once for all of them. */
#include "ir/kernel.h"

typedef struct inst_facts {
  uint64_t words[8];
} inst_facts;

/* Field by field: what lies between fields means nothing. */
static inst_facts facts_of(const kir_inst *n) {
  inst_facts f = {{0}};
  uint32_t bits[3];
  memcpy(&bits[0], &n->dom_lo, 4);
  memcpy(&bits[1], &n->dom_hi, 4);
  memcpy(&bits[2], &n->ulp, 4);
  f.words[0] = n->op | (uint64_t)n->type.base << 16 | (uint64_t)n->type.lanes << 24 | (uint64_t)n->type.frag << 32;
  f.words[1] = n->args | (uint64_t)n->arg_count << 32;
  f.words[2] = n->index | (uint64_t)n->index2 << 32;
  f.words[3] = (uint64_t)n->imm.i;
  f.words[4] = n->flags | (uint64_t)n->align << 16 | (uint64_t)(uint32_t)n->lanes << 32;
  f.words[5] = bits[0] | (uint64_t)bits[1] << 32;
  f.words[6] = bits[2];
  return f;
}

uint64_t kir_code_hash(const kir_kernel *k) {
  uint64_t hash = ir_hash64(k->insts.count, k->args.at, k->args.count * sizeof *k->args.at);
  for (uint32_t i = 1; i < k->insts.count; i++) {
    const kir_inst *n = kir_at(k, i);
    const uint64_t word = n->op | (uint64_t)n->type.lanes << 16 | (uint64_t)n->index << 32;
    hash = (hash ^ word ^ (uint64_t)n->imm.i) * UINT64_C(0x9e3779b97f4a7c15);
    hash ^= hash >> 29;
  }
  return hash;
}

static bool same_text(const char *a, const char *b) { return a == b || (a && b && !strcmp(a, b)); }

static uint64_t elements_of(const kir_memory *m) {
  uint64_t count = 1;
  for (uint32_t i = 0; i < m->rank; i++) count *= m->dims[i];
  return count;
}

static bool same_memory(const kir_memory *a, const kir_memory *b) {
  if (!same_text(a->name, b->name) || !same_text(a->state, b->state) || strcmp(a->format, b->format)) return false;
  if (a->space != b->space || a->access != b->access || a->view != b->view || a->rank != b->rank || a->flags != b->flags) return false;
  if (!kir_same(a->type, b->type) || a->slot != b->slot || a->alias != b->alias || a->align != b->align) return false;
  if (a->offset_scalar != b->offset_scalar || a->overlay != b->overlay || a->size_scalar != b->size_scalar) return false;
  if (memcmp(a->dims, b->dims, sizeof a->dims) || !a->values != !b->values) return false;
  return !a->values || !memcmp(a->values, b->values, elements_of(a) * sizeof *a->values);
}

static bool same_scalar(const kir_scalar *a, const kir_scalar *b) {
  return same_text(a->name, b->name) && kir_same(a->type, b->type) && a->offset == b->offset && a->min == b->min && a->max == b->max &&
         a->multiple_of == b->multiple_of;
}

static bool same_insts(const kir_kernel *a, const kir_kernel *b) {
  if (a->insts.at == b->insts.at && a->args.at == b->args.at) return true; /* a kernel and its copy */
  for (uint32_t i = 1; i < a->insts.count; i++) {
    const inst_facts x = facts_of(kir_at(a, i)), y = facts_of(kir_at(b, i));
    if (memcmp(&x, &y, sizeof x)) return false;
  }
  return !a->args.count || !memcmp(a->args.at, b->args.at, a->args.count * sizeof *a->args.at);
}

bool kir_same_code(const kir_kernel *a, const kir_kernel *b) {
  if (a->insts.count != b->insts.count || a->args.count != b->args.count) return false;
  if (a->memories.count != b->memories.count || a->scalars.count != b->scalars.count) return false;
  if (memcmp(a->items, b->items, sizeof a->items) || a->sub != b->sub || a->mode != b->mode || !same_text(a->needs, b->needs)) return false;
  for (uint32_t i = 0; i < a->memories.count; i++)
    if (!same_memory(&a->memories.at[i], &b->memories.at[i])) return false;
  for (uint32_t i = 0; i < a->scalars.count; i++)
    if (!same_scalar(&a->scalars.at[i], &b->scalars.at[i])) return false;
  if (a->owns.count != b->owns.count) return false;
  for (uint32_t i = 0; i < a->owns.count; i++)
    if (!kir_same_own(&a->owns.at[i], &b->owns.at[i])) return false;
  return same_insts(a, b);
}
