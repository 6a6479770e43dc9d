/* Capability masks: a device, or a profile, made smaller. In: "bindings=4,local=16384" or a named mask. A mask only ever narrows. */
#include "cost_targets/profile.h"
#include <stdlib.h>

typedef void (*mask_fn)(cost_profile *, uint64_t);
typedef struct mask_key {
  const char *name;
  mask_fn apply;
} mask_key;
typedef struct named_mask {
  const char *name, *text;
} named_mask;

static uint32_t smaller(uint32_t have, uint64_t limit) { return !have || have > limit ? (uint32_t)limit : have; }
static void mask_bindings(cost_profile *p, uint64_t v) { p->max_bindings = smaller(p->max_bindings, v); }
static void mask_items(cost_profile *p, uint64_t v) {
  p->max_items = smaller(p->max_items, v);
  if (p->group_items > (double)v) p->group_items = (double)v;
  if (p->row_items > (double)v) p->row_items = (double)v;
}
static void mask_push(cost_profile *p, uint64_t v) {
  p->max_scalar_bytes = smaller(p->max_scalar_bytes, v);
  p->caps.push_bytes = smaller(p->caps.push_bytes, v);
}
static void mask_local(cost_profile *p, uint64_t v) {
  if (!p->max_local_bytes || p->max_local_bytes > v) p->max_local_bytes = v;
  if (p->local_bytes > (double)v) p->local_bytes = (double)v;
}
static void mask_texels(cost_profile *p, uint64_t v) {
  if (p->max_texels > v) p->max_texels = v;
}
static void mask_range(cost_profile *p, uint64_t v) {
  if (!p->max_buffer_bytes || p->max_buffer_bytes > v) p->max_buffer_bytes = v;
}
static void mask_grid(cost_profile *p, uint64_t v) {
  for (int i = 0; i < 3; i++) p->max_grid[i] = smaller(p->max_grid[i], v);
}
static void mask_align(cost_profile *p, uint64_t v) {
  if (p->offset_align < v) p->offset_align = (uint32_t)v;
}
#define OFF(name, statement)                             \
  static void mask_##name(cost_profile *p, uint64_t v) { \
    if (!v) { statement; }                               \
  }
OFF(subgroups, p->caps.subgroups = p->caps.subgroup_arithmetic = false)
OFF(f16, p->caps.f16_arithmetic = p->caps.f16_storage = false)
OFF(int8, p->caps.int8_storage = false)
OFF(int16, p->caps.int16_storage = p->caps.f16_storage = p->caps.bf16_storage = false)
OFF(int64, p->caps.int64 = false)
OFF(f64, p->caps.f64 = false)
OFF(fma, p->caps.fma_fused = p->caps.fma_fast = false)
OFF(texel, p->caps.texel = false; p->reads = COST_READS_STORAGE)
OFF(images, p->caps.images = false)
OFF(dot4, p->caps.dot4 = false)
OFF(mma, memset(p->caps.mma, 0, sizeof p->caps.mma))
OFF(robust, p->caps.oob_zero = false)
OFF(float_controls, memset(&p->caps.float_controls, 0, sizeof p->caps.float_controls))

// clang-format off
static const mask_key keys[] = {
    {"bindings", mask_bindings}, {"items", mask_items}, {"push", mask_push}, {"local", mask_local}, {"texels", mask_texels}, {"range", mask_range},
    {"grid", mask_grid}, {"align", mask_align}, {"subgroups", mask_subgroups}, {"f16", mask_f16}, {"int8", mask_int8}, {"int16", mask_int16},
    {"int64", mask_int64}, {"f64", mask_f64}, {"fma", mask_fma}, {"texel", mask_texel}, {"images", mask_images},
    {"dot4", mask_dot4}, {"mma", mask_mma}, {"robust", mask_robust}, {"float_controls", mask_float_controls},
};
// clang-format on
/* The required limits of Vulkan 1.1 (specification, table "Required Limits"), with no optional feature. */
// clang-format off
static const named_mask named[] = {
    {"vulkan11-min", "bindings=4,items=128,push=128,local=16384,texels=65536,range=134217728,grid=65535,align=256,subgroups=0,f16=0,int8=0,int16=0,int64=0,f64=0,dot4=0,mma=0,robust=0,float_controls=0"},
};
// clang-format on

static snt_result apply_one(cost_profile *p, const char *at, size_t length, snt_diag *diag) {
  const char *equal = memchr(at, '=', length);
  char number[24] = {0}, *stop = number;
  const bool fits = equal && length - (size_t)(equal - at) - 1 < sizeof number && equal + 1 < at + length;
  if (fits) memcpy(number, equal + 1, length - (size_t)(equal - at) - 1);
  const uint64_t value = strtoull(number, &stop, 10);
  for (uint32_t i = 0; fits && !*stop && number[0] != '-' && i < IR_COUNT(keys); i++)
    if (strlen(keys[i].name) == (size_t)(equal - at) && !memcmp(keys[i].name, at, (size_t)(equal - at))) {
      keys[i].apply(p, value);
      return SNT_OK;
    }
  char known[IR_COUNT(keys) * 16] = "";
  for (uint32_t i = 0; i < IR_COUNT(keys); i++) strcat(strcat(known, " "), keys[i].name);
  return ir_fail(diag, SNT_E_ARG, "mask", 0, "\"%.*s\" is no KEY=NUMBER; keys:%s; or vulkan11-min", (int)(length < 60 ? length : 60), at,
                 known);
}

snt_result cost_profile_mask(cost_profile *p, const char *mask, snt_diag *diag) {
  cost_profile narrowed = *p;
  for (const char *at = mask; at && *at;) {
    const char *comma = strchr(at, ',');
    const size_t length = comma ? (size_t)(comma - at) : strlen(at);
    const named_mask *found = NULL;
    for (uint32_t i = 0; i < IR_COUNT(named); i++)
      if (strlen(named[i].name) == length && !memcmp(named[i].name, at, length)) found = &named[i];
    if (found) SNT_TRY(cost_profile_mask(&narrowed, found->text, diag));
    else SNT_TRY(apply_one(&narrowed, at, length, diag));
    at = comma ? comma + 1 : NULL;
  }
  *p = narrowed;
  return SNT_OK;
}
