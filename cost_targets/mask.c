/* Capability masks: a device, or a profile, made smaller. In: "bindings=4,local=16384" or a named mask. A mask only ever narrows. */
#include "cost_targets/profile.h"
#include <stdlib.h>

typedef void (*mask_fn)(cost_profile *, uint64_t);
typedef struct mask_key {
  const char *name;
  mask_fn apply;
} mask_key;
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
static void mask_mma(cost_profile *p, uint64_t v) {
  if (!v) memset(p->caps.mma, 0, sizeof p->caps.mma);
}
static void mask_float_controls(cost_profile *p, uint64_t v) {
  if (!v) memset(&p->caps.float_controls, 0, sizeof p->caps.float_controls);
}

// clang-format off
static const mask_key keys[] = {
    {"bindings", mask_bindings}, {"items", mask_items}, {"push", mask_push}, {"local", mask_local}, {"texels", mask_texels}, {"range", mask_range},
    {"grid", mask_grid}, {"align", mask_align}, {"mma", mask_mma}, {"float_controls", mask_float_controls},
};

/* What a device has or has not: members of kir_caps, of one to three; KEY=0 takes them. */
#define MEMBER(name) offsetof(kir_caps, name)
typedef struct ability {
  char name[10];
  uint16_t members[3];
} ability;
static const ability abilities[] = {
    {"subgroups", {MEMBER(subgroups), MEMBER(subgroup_arithmetic)}}, {"f16", {MEMBER(f16_arithmetic), MEMBER(f16_storage)}},
    {"int8", {MEMBER(int8_storage)}}, {"int16", {MEMBER(int16_storage), MEMBER(f16_storage), MEMBER(bf16_storage)}}, {"int64", {MEMBER(int64)}},
    {"f64", {MEMBER(f64)}}, {"fma", {MEMBER(fma_fused), MEMBER(fma_fast)}}, {"texel", {MEMBER(texel)}}, {"images", {MEMBER(images)}},
    {"dot4", {MEMBER(dot4)}}, {"robust", {MEMBER(oob_zero)}},
};
// clang-format on
/* The required limits of Vulkan 1.1 (specification, table "Required Limits"), with no optional feature. */
// clang-format off
static const char vulkan11_min[] = "bindings=4,items=128,push=128,local=16384,texels=65536,range=134217728,grid=65535,align=256,subgroups=0,f16=0,int8=0,int16=0,int64=0,f64=0,dot4=0,mma=0,robust=0,float_controls=0";
// clang-format on

/* Also adds the name to the known ones. */
static bool is_key(const char *name, const char *at, size_t length, char *known) {
  strcat(strcat(known, " "), name);
  return strlen(name) == length && !memcmp(name, at, length);
}

static void take(cost_profile *p, const ability *a) {
  for (uint32_t i = 0; i < IR_COUNT(a->members) && a->members[i]; i++) ((uint8_t *)&p->caps)[a->members[i]] = false;
  if (a->members[0] == MEMBER(texel)) p->reads = COST_READS_STORAGE;
}

static snt_result apply_one(cost_profile *p, const char *at, size_t length, snt_diag *diag) {
  const char *equal = memchr(at, '=', length);
  char number[24] = {0}, *stop = number;
  const size_t digits = equal ? (size_t)(at + length - equal) - 1 : 0;
  if (digits < sizeof number) memcpy(number, at + length - digits, digits);
  const uint64_t value = strtoull(number, &stop, 10);
  const size_t key = number[0] && !*stop && number[0] != '-' ? (size_t)(equal - at) : 0;
  char known[(IR_COUNT(keys) + IR_COUNT(abilities)) * 16] = "";
  for (uint32_t i = 0; i < IR_COUNT(keys); i++)
    if (is_key(keys[i].name, at, key, known)) return keys[i].apply(p, value), SNT_OK;
  for (uint32_t i = 0; i < IR_COUNT(abilities); i++)
    if (is_key(abilities[i].name, at, key, known)) return value ? (void)0 : take(p, &abilities[i]), SNT_OK;
  return ir_fail(diag, SNT_E_ARG, "mask", 0, "\"%.*s\" is no KEY=NUMBER; keys:%s; or vulkan11-min", (int)(length < 60 ? length : 60), at,
                 known);
}

snt_result cost_profile_mask(cost_profile *p, const char *mask, snt_diag *diag) {
  cost_profile narrowed = *p;
  for (const char *at = mask; at && *at;) {
    const char *comma = strchr(at, ',');
    const size_t length = comma ? (size_t)(comma - at) : strlen(at);
    if (length == strlen("vulkan11-min") && !memcmp(at, "vulkan11-min", length)) SNT_TRY(cost_profile_mask(&narrowed, vulkan11_min, diag));
    else SNT_TRY(apply_one(&narrowed, at, length, diag));
    at = comma ? comma + 1 : NULL;
  }
  *p = narrowed;
  return SNT_OK;
}
