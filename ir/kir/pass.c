/* The clone that every pass on kernel IR is written with, and how a pass ends. */
#include "ir/kir_pass_private.h"

static const char *copy_text(ir_arena *arena, const char *text) { return text ? ir_arena_text(arena, text, strlen(text)) : NULL; }

snt_result kir_clone_begin(kir_clone *c, const kir_kernel *in, kir_kernel *out) {
  ir_arena *arena = out->arena;
  kir_init(out, arena, in->name);
  memcpy(out->items, in->items, sizeof out->items);
  out->sub = in->sub;
  out->mode = in->mode;
  out->needs = copy_text(arena, in->needs);
  for (uint32_t i = 0; i < in->memories.count; i++) { /* a pass's own texts go with its arena */
    kir_memory m = in->memories.at[i];
    m.name = copy_text(arena, m.name);
    m.state = copy_text(arena, m.state);
    IR_PUSH(arena, &out->memories, m);
  }
  for (uint32_t i = 0; i < in->scalars.count; i++) {
    kir_scalar scalar = in->scalars.at[i];
    scalar.name = copy_text(arena, scalar.name);
    IR_PUSH(arena, &out->scalars, scalar);
  }
  for (uint32_t i = 0; i < in->owns.count; i++) IR_PUSH(arena, &out->owns, in->owns.at[i]);
  IR_RESERVE(arena, &out->insts, in->insts.count + in->insts.count / 4 + 16);
  IR_RESERVE(arena, &out->args, in->args.count + in->args.count / 4 + 16);
  *c = (kir_clone){.in = in, .out = out, .map = IR_NEW_ARRAY(arena, uint32_t, (size_t)in->insts.count + 1)};
  return kir_pass_end(out, "clone", NULL);
}

/* Only constants come again that a copy would not have made. */
static uint32_t clone_const(kir_clone *c, uint32_t old) { return c->map[old] = kir_push(c->out, kir_at(c->in, old), 0, NULL); }

uint32_t kir_clone_inst(kir_clone *c, uint32_t old) {
  kir_kernel *out = c->out;
  const kir_inst *from = kir_at(c->in, old);
  const uint32_t count = from->arg_count;
  if (out->recent && from->op == KIR_const) return clone_const(c, old);
  if (out->recent && (kir_ops[from->op].flags & KIR_REGION)) out->recent_from = out->insts.count + 1;
  if (!kir_room(out, count)) return c->map[old] = out->insts.count - 1;
  const uint32_t *map = c->map, *args = c->in->args.at + from->args;
  kir_inst *made = kir_at(out, out->insts.count);
  uint32_t *to = out->args.at + out->args.count;
  *made = *from;
  made->args = out->args.count;
  for (uint32_t i = 0; i < count; i++) to[i] = map[args[i]];
  if (made->op == KIR_end || made->op == KIR_else) made->index = map[made->index];
  out->args.count += count;
  return c->map[old] = out->insts.count++;
}

snt_result kir_pass_end(kir_kernel *out, const char *pass, snt_diag *diag) {
  if (out->arena->failed) return ir_fail(diag, SNT_E_HOST_MEM, pass, 0, "kernel %s: out of memory", out->name ? out->name : "?");
  if (!out->failed) return SNT_OK;
  const snt_diag *e = &out->first_error;
  return ir_fail(diag, e->result ? e->result : SNT_E_INTERNAL, pass, e->node, "kernel %s: %.180s", out->name, e->text);
}

snt_result kir_pass_stop(kir_kernel *out, const char *pass, snt_diag *diag) {
  if (!out->arena->failed) kir_mistake(out, "the kernel was not verified");
  return kir_pass_end(out, pass, diag);
}

snt_result kir_unsupported(const kir_kernel *k, const char *pass, uint32_t inst, const char *capability, snt_diag *diag) {
  return ir_fail(diag, SNT_E_UNSUPPORTED, pass, 0, "kernel %s: %s needs %s", k->name, inst ? kir_ops[kir_at(k, inst)->op].name : "a memory",
                 capability);
}
