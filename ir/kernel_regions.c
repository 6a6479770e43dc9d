/* Structure of the flat array: what closes each opener, and the innermost opener around each instruction. */
#include "ir/kernel_private.h"

typedef struct region_walk {
  const kir_kernel *k;
  kir_regions *out;
  uint32_t *stack, depth;
} region_walk;

static bool opens(uint32_t op) { return op == KIR_loop || op == KIR_if || op == KIR_else; }

/* The opener that `else` or `end` closes must be the innermost; an `else` stands for its `if`. */
static bool close_innermost(region_walk *w, uint32_t i) {
  const kir_inst *in = kir_at(w->k, i);
  if (!w->depth) return false;
  const uint32_t top = w->stack[--w->depth];
  const kir_inst *opener = kir_at(w->k, top);
  if (in->op == KIR_else && opener->op != KIR_if) return false;
  if (in->index != (opener->op == KIR_else ? opener->index : top)) return false;
  w->out->close[top] = i;
  return true;
}

bool kir_find_regions(const kir_kernel *k, ir_arena *arena, kir_regions *out) {
  out->close = IR_NEW_ARRAY(arena, uint32_t, k->insts.count);
  out->parent = ir_arena_take_bare(arena, k->insts.count * sizeof *out->parent, _Alignof(uint32_t));
  region_walk w = {k, out, ir_arena_take_bare(arena, k->insts.count * sizeof *w.stack, _Alignof(uint32_t)), 0};
  if (!out->close || !out->parent || !w.stack) return false;
  out->parent[0] = 0;
  for (uint32_t i = 1; i < k->insts.count; i++) {
    const uint32_t op = kir_at(k, i)->op;
    if ((op == KIR_else || op == KIR_end) && !close_innermost(&w, i)) return false;
    out->parent[i] = w.depth ? w.stack[w.depth - 1] : 0;
    if (opens(op)) w.stack[w.depth++] = i;
  }
  return w.depth == 0;
}
