/* Matrix units by name: "mma.f16.f32.16x16x16" is the product of 16 x 16 elements of f16 by as many, summed in f32. In: what a kernel needs. Out: its
   row of kir_caps. */
#include "ir/kir_pass.h"

static const char *const types[KIR_MMA_TYPES] = {
    [KIR_MMA_F16] = "f16.f32.", [KIR_MMA_BF16] = "bf16.f32.", [KIR_MMA_I8] = "i8.i32.", [KIR_MMA_U8] = "u8.i32."};

static const char *read_side(const char *at, uint8_t *out) {
  uint32_t v = 0;
  while (*at >= '0' && *at <= '9' && v <= UINT8_MAX) v = v * 10 + (uint32_t)(*at++ - '0');
  *out = (uint8_t)v;
  return v && v <= UINT8_MAX ? at : NULL;
}

bool kir_mma_size(const char *at, kir_mma *out) {
  uint8_t *const sides[3] = {&out->m, &out->n, &out->k};
  for (uint32_t i = 0; i < 3; i++) {
    at = read_side(at, sides[i]);
    if (!at || (i < 2 && *at++ != 'x')) return false;
  }
  return *at == 0 || *at == ',';
}

bool kir_mma_named(const char *needs, uint32_t *type, kir_mma *size) {
  const char *at = needs ? strstr(needs, "mma.") : NULL;
  if (!at) return false;
  at += strlen("mma.");
  for (*type = 0; *type < KIR_MMA_TYPES && strncmp(at, types[*type], strlen(types[*type])); ++*type) continue;
  for (uint32_t dots = 0; dots < 2; dots++) {
    at = strchr(at, '.');
    if (!at++) return false;
  }
  return kir_mma_size(at, size);
}

uint32_t kir_mma_own(uint32_t lanes, kir_mma size, uint32_t frag) {
  enum { LANES = 32, ROWS = 16, BLOCK = 8 };
  const uint32_t columns = frag == 1 ? size.k : frag == 3 ? size.n : 0;
  return lanes == LANES && size.m == ROWS && columns % BLOCK == 0 ? ROWS * columns / LANES : 0;
}

const char *kir_mma_needs(ir_arena *arena, uint32_t type, kir_mma size) {
  ir_text t;
  ir_text_init(&t, arena);
  ir_text_format(&t, "mma.%s%ux%ux%u", types[type], size.m, size.n, size.k);
  return t.failed ? NULL : t.at;
}

bool kir_mma_has(const kir_caps *caps, const char *needs) {
  uint32_t type;
  kir_mma size;
  if (!kir_mma_named(needs, &type, &size)) return false;
  const kir_mma *has = &caps->mma[type < KIR_MMA_TYPES ? type : 0]; /* who has every size has every type */
  return has->m == KIR_MMA_ANY || (type < KIR_MMA_TYPES && has->m && !memcmp(has, &size, sizeof size));
}
