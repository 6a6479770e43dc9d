#include "fusion/fragments.h"

bool matrix_units_find(const fusion_context *c, int32_t element, matrix_units *out) {
  static const uint8_t types[SNT_DTYPE_COUNT] = {
      [SNT_F16] = KIR_MMA_F16 + 1, [SNT_BF16] = KIR_MMA_BF16 + 1, [SNT_I8] = KIR_MMA_I8 + 1, [SNT_U8] = KIR_MMA_U8 + 1};
  const uint32_t targets = c->options->targets;
  const cost_profile *p = c->options->profile;
  const uint32_t of = strcmp(p->target, "spirv") ? SNT_TARGET_CUDA : SNT_TARGET_SPIRV;
  if (!targets || targets & ~(uint32_t)(of | SNT_TARGET_HOST) || !types[element]) return false;
  out->type = types[element] - 1u;
  out->size = p->caps.mma[out->type];
  out->lanes = p->caps.subgroup_size;
  const bool known = of == SNT_TARGET_CUDA && p->caps.fragment_lanes; /* SPIR-V has no word for it, whatever a profile says */
  out->open = known && kir_mma_own(out->lanes, out->size, FRAGMENT_A) && kir_mma_own(out->lanes, out->size, FRAGMENT_C);
  return out->size.m && out->lanes && out->lanes % out->size.m == 0;
}

void matrix_units_use(emit *e, const matrix_units *units) {
  e->k->sub = units->lanes;
  e->k->needs = kir_mma_needs(e->k->arena, units->type, units->size);
}

static kir_type fragment(int32_t base, uint8_t kind) {
  kir_type t = kir_t(base, 1);
  t.frag = kind;
  return t;
}

uint32_t fragment_zero(emit *e, const char *name, int32_t base) {
  kir_memory m = {.name = name, .space = KIR_PRIVATE, .access = KIR_READ | KIR_WRITE, .rank = 1, .flags = KIR_MEM_REGS};
  m.type = fragment(base, FRAGMENT_C);
  m.dims[0] = 1;
  const uint32_t memory = kir_memory_add(e->k, &m), first = kir_const_int(e->k, kir_t(SNT_U32, 1), 0);
  kir_fill(e->k, memory, 0, NULL, base == SNT_F32 ? kir_const_float(e->k, kir_t(base, 1), 0) : kir_const_int(e->k, kir_t(base, 1), 0));
  return kir_load(e->k, memory, 1, 1, &first);
}

uint32_t fragment_load(emit *e, uint32_t memory, uint32_t kind, ir_expr at, uint32_t pitch, bool by_columns) {
  if (e->failed || e->k->failed) return 0;
  const uint32_t index = emit_expr(e, at);
  const kir_inst load = {.op = KIR_mma_load,
                         .type = fragment(e->k->memories.at[memory].type.base, (uint8_t)kind),
                         .index = memory,
                         .lanes = (int32_t)pitch,
                         .flags = by_columns ? KIR_IS_COLUMNS : 0};
  return kir_put(e->k, &load, 1, &index);
}

uint32_t fragment_multiply(emit *e, uint32_t a, uint32_t b, uint32_t sum) {
  if (e->failed || e->k->failed) return 0;
  const uint32_t parts[3] = {a, b, sum};
  return kir_put(e->k, &(kir_inst){.op = KIR_mma, .type = kir_at(e->k, sum)->type}, 3, parts);
}

uint32_t fragment_element(emit *e, uint32_t sum, uint32_t element) {
  return kir_2(e->k, KIR_mma_get, sum, kir_const_int(e->k, kir_t(SNT_U32, 1), element));
}

uint32_t fragment_make(emit *e, int32_t base, uint32_t kind, uint32_t count, const uint32_t *elements) {
  if (e->failed || e->k->failed) return 0;
  return kir_put(e->k, &(kir_inst){.op = KIR_mma_make, .type = fragment(base, (uint8_t)kind)}, count, elements);
}

void fragment_store(emit *e, uint32_t memory, ir_expr at, uint32_t pitch, uint32_t sum) {
  if (e->failed || e->k->failed) return;
  const uint32_t operands[2] = {emit_expr(e, at), sum};
  (void)kir_put(e->k, &(kir_inst){.op = KIR_mma_store, .type = kir_at(e->k, sum)->type, .index = memory, .lanes = (int32_t)pitch}, 2,
                operands);
}

fragment_place fragment_spread(expr_pool *x, ir_expr number, int64_t across, int64_t bytes) {
  enum { BANKS = 128, WORD = 4, ROWS = BANKS / FRAGMENT_PAD };
  const int64_t together = bytes < WORD ? 1 : BANKS / bytes, side = expr_gcd(across, together), apart = side * bytes / FRAGMENT_PAD;
  const ir_expr set = expr_div(x, number, together), within = expr_mod(x, number, together), rows = expr_div(x, set, across / side);
  if (side == together || !apart) return (fragment_place){expr_div(x, number, across), expr_mod(x, number, across)};
  const ir_expr first = expr_add(x, expr_mul(x, expr_div(x, rows, apart), ROWS), expr_mod(x, rows, apart));
  const ir_expr column = expr_add(x, expr_mul(x, expr_mod(x, set, across / side), side), expr_mod(x, within, side));
  return (fragment_place){expr_add(x, first, expr_mul(x, expr_div(x, within, side), apart)), column};
}

void fragment_barrier(emit *e) { (void)kir_put(e->k, &(kir_inst){.op = KIR_sg_barrier}, 0, NULL); }
