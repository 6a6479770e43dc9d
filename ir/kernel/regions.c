/* Structure of the flat array: what closes each opener, and the innermost opener around each instruction. */
#include "ir/kernel_private.h"

bool kir_same(kir_type a, kir_type b) { return memcmp(&a, &b, sizeof a) == 0; }

static bool opens(uint32_t op) { return op == KIR_loop || op == KIR_if || op == KIR_else; }

/* The opener that `else` or `end` closes must be the innermost; an `else` stands for its `if`. */
static bool closes(const kir_kernel *k, const kir_inst *in, uint32_t top) {
  const kir_inst *opener = kir_at(k, top);
  if (!top || (in->op == KIR_else && opener->op != KIR_if)) return false;
  return in->index == (opener->op == KIR_else ? opener->index : top);
}

bool kir_find_regions(const kir_kernel *k, ir_arena *arena, kir_regions *out) {
  const uint32_t count = k->insts.count;
  uint32_t *close = IR_NEW_ARRAY(arena, uint32_t, count), *parent = ir_arena_take_bare(arena, count * sizeof *parent, _Alignof(uint32_t));
  uint32_t top = 0; /* the innermost opener; the next one out is its parent */
  if (!close || !parent) return false;
  *out = (kir_regions){close, parent};
  parent[0] = 0;
  for (uint32_t i = 1; i < count; i++) {
    const kir_inst *in = kir_at(k, i);
    if (in->op == KIR_else || in->op == KIR_end) {
      if (!closes(k, in, top)) return false;
      close[top] = i;
      top = parent[top];
    }
    parent[i] = top;
    if (opens(in->op)) top = i;
  }
  return top == 0;
}
