/* The body of one kernel appended to another: what makes two launches one. In: the kernel, where its memories and scalars are in the new one, and the
   value that stands for its group number. Out: the instructions, in order, with every operand and region renumbered. */
#include "ir/kir_pass_private.h"

static void renumber(kir_inst *made, const uint32_t *memories, const uint32_t *scalars, const uint32_t *map) {
  if (kir_ops[made->op].flags & KIR_MEM) made->index = memories[made->index];
  if (made->op == KIR_scalar) made->index = scalars[made->index];
  if (made->op == KIR_async_copy) {
    made->index = memories[made->index];
    made->index2 = memories[made->index2];
  }
  if (made->op == KIR_end || made->op == KIR_else) made->index = map[made->index];
}

/* Rows of the user's own that the new kernel does not have yet. */
static uint32_t own_of(kir_kernel *out, const kir_kernel *in, uint32_t row) {
  return row < in->owns.count ? kir_own_add(out, &in->owns.at[row]) : row;
}

bool kir_append(kir_kernel *out, const kir_kernel *in, const uint32_t *memories, const uint32_t *scalars, uint32_t group) {
  uint32_t *map = IR_NEW_ARRAY(out->arena, uint32_t, in->insts.count + 1);
  if (!map) return false;
  for (uint32_t i = 1; i < in->insts.count; i++) {
    kir_inst made = *kir_at(in, i);
    const uint32_t from = made.args;
    if (made.op == KIR_group) {
      map[i] = group;
      continue;
    }
    renumber(&made, memories, scalars, map);
    if (made.op == KIR_own) made.index = own_of(out, in, made.index);
    made.args = out->args.count;
    for (uint32_t n = 0; n < made.arg_count; n++)
      if (!IR_PUSH(out->arena, &out->args, map[in->args.at[from + n]])) return false;
    if (!IR_PUSH(out->arena, &out->insts, made)) return false;
    map[i] = out->insts.count - 1;
  }
  return !out->failed;
}
