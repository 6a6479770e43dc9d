/* fma: a product that nothing but a sum needs is one operation with it, where the mode leaves the rounding between them open (DEFAULT, FAST) and the
   device is fast at it. Before functions are expanded: their pairs of floats need each rounding as it is written. */
#include "ir/kir_pass_private.h"

typedef struct forming {
  kir_clone c;
  kir_regions regions;
  uint32_t *uses;
  uint8_t *side; /* of a sum: 1 + which operand is a product that it takes; of such a product: TAKEN */
} forming;
enum { TAKEN = 255 };

static bool is_product(const kir_kernel *k, uint32_t value) {
  const kir_inst *in = kir_at(k, value);
  return in->op == KIR_mul && in->type.base == SNT_F32 && !in->type.frag;
}

static bool is_sum(const kir_inst *in) {
  return (in->op == KIR_add || in->op == KIR_sub) && in->type.base == SNT_F32 && !in->type.frag && in->arg_count == 2;
}

bool kir_keeps_fma(const kir_kernel *k, const kir_caps *caps) {
  return caps->fma_fused || (caps->fma_fast && (k->mode == SNT_NUMERICS_DEFAULT || k->mode == SNT_NUMERICS_FAST));
}

bool kir_has_products(const kir_kernel *k, const kir_caps *caps) {
  if (!caps->fma_fast || (k->mode != SNT_NUMERICS_DEFAULT && k->mode != SNT_NUMERICS_FAST)) return false;
  for (uint32_t i = 1; i < k->insts.count; i++)
    if (is_sum(kir_at(k, i)) && (is_product(k, kir_arg(k, i, 0)) || is_product(k, kir_arg(k, i, 1)))) return true;
  return false;
}

/* Out of another region it was brought on purpose: it is computed once there. */
static bool may_take(const forming *f, uint32_t sum, uint32_t value) {
  return is_product(f->c.in, value) && f->uses[value] == 1 && f->regions.parent[value] == f->regions.parent[sum];
}

static void choose(forming *f, uint32_t i) {
  for (uint32_t n = 0; n < 2 && !f->side[i]; n++) {
    const uint32_t value = kir_arg(f->c.in, i, n);
    if (may_take(f, i, value)) f->side[i] = (uint8_t)(1 + n), f->side[value] = TAKEN;
  }
}

/* a b + c, a b - c or c - a b */
static uint32_t form(forming *f, uint32_t i) {
  const kir_kernel *in = f->c.in;
  kir_kernel *out = f->c.out;
  const uint32_t which = f->side[i] - 1u, product = kir_arg(in, i, which);
  uint32_t args[3] = {f->c.map[kir_arg(in, product, 0)], f->c.map[kir_arg(in, product, 1)], f->c.map[kir_arg(in, i, 1 - which)]};
  if (kir_at(in, i)->op == KIR_sub) {
    uint32_t *turned = which ? &args[kir_at(out, args[1])->op == KIR_const] : &args[2];
    *turned = kir_emit_folded(out, &(kir_inst){.op = KIR_neg, .type = kir_type_of(out, *turned)}, 1, turned);
  }
  return f->c.map[i] = kir_emit_op(out, KIR_fma, kir_at(in, i)->type, 3, args);
}

snt_result kir_pass_fma(const kir_kernel *in, kir_kernel *out, const kir_caps *caps, snt_diag *diag) {
  forming f = {0};
  (void)caps;
  SNT_TRY(kir_clone_begin(&f.c, in, out));
  f.uses = IR_NEW_ARRAY(out->arena, uint32_t, in->insts.count);
  f.side = IR_NEW_ARRAY(out->arena, uint8_t, in->insts.count);
  if (!f.uses || !f.side || !kir_find_regions(in, out->arena, &f.regions)) return kir_pass_stop(out, "fma", diag);
  for (uint32_t i = 1; i < in->insts.count; i++)
    for (uint32_t n = 0; n < kir_at(in, i)->arg_count; n++) f.uses[kir_arg(in, i, n)]++;
  for (uint32_t i = 1; i < in->insts.count; i++)
    if (is_sum(kir_at(in, i))) choose(&f, i);
  for (uint32_t i = 1; i < in->insts.count && !out->failed; i++) {
    if (f.side[i] == TAKEN) continue;
    if (f.side[i]) form(&f, i);
    else kir_clone_inst(&f.c, i);
  }
  return kir_pass_end(out, "fma", diag);
}
