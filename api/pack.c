/* Packs: several variants of one program, compiled for different profiles, in one blob. In: saved programs. Out: the blob; of it, the variant that
   suits a device best. The header is not trusted: every variant is a program with its own checksum, loaded and checked as any other.
     header  magic, version, count, size of the whole, 0; a row a variant: offset, size; variants follow each other at multiples of 64 */
#include "api/blob.h"

enum { PACK_VERSION = 1, PACK_HEADER = 32, PACK_ROW = 16, PACK_MOST = 64 };

static const char *pack_magic(void) {
  static const uint16_t one = 1;
  return *(const uint8_t *)&one ? "SNTPCKle" : "SNTPCKbe";
}

static uint64_t get_number(const uint8_t *at, uint32_t bytes) {
  uint64_t v = 0;
  for (uint32_t i = bytes; i-- > 0;) v = v << 8 | at[i];
  return v;
}
static void put_number(uint8_t *at, uint64_t v, uint32_t bytes) {
  for (uint32_t i = 0; i < bytes; i++) at[i] = (uint8_t)(v >> (8 * i));
}

/* ---- reading ---- */

static bool is_pack(const uint8_t *blob, size_t size) { return size >= PACK_HEADER && !memcmp(blob, pack_magic(), 8); }

uint32_t snt_pack_count(const void *bytes, size_t size) {
  const uint8_t *blob = bytes;
  if (!blob || !is_pack(blob, size) || get_number(blob + 8, 4) != PACK_VERSION || get_number(blob + 16, 8) != size) return 0;
  const uint64_t count = get_number(blob + 12, 4);
  return count <= PACK_MOST && PACK_HEADER + count * PACK_ROW <= size ? (uint32_t)count : 0;
}

snt_result snt_pack_variant(const void *bytes, size_t size, uint32_t variant, const void **out, size_t *out_size) {
  const uint8_t *blob = bytes;
  if (!out || !out_size || variant >= snt_pack_count(bytes, size)) return SNT_E_ARG;
  const uint8_t *row = blob + PACK_HEADER + variant * PACK_ROW;
  const uint64_t at = get_number(row, 8), length = get_number(row + 8, 8);
  if (at % BLOB_ALIGN || at > size || length > size - at) return SNT_E_BAD_BLOB;
  *out = blob + at;
  *out_size = (size_t)length;
  return SNT_OK;
}

/* ---- writing ---- */

snt_result snt_program_pack(const snt_program *const *programs, uint32_t count, void *dst, size_t *size) {
  if (!programs || !count || count > PACK_MOST || !size) return SNT_E_ARG;
  const size_t room = *size;
  size_t at = PACK_HEADER + count * PACK_ROW;
  for (uint32_t i = 0; i < count; i++) {
    size_t length = 0;
    const snt_result r = snt_program_save(programs[i], NULL, &length);
    if (r != SNT_INCOMPLETE) return r == SNT_OK ? SNT_E_INTERNAL : r;
    at = (at + BLOB_ALIGN - 1) / BLOB_ALIGN * BLOB_ALIGN + length;
  }
  *size = at;
  if (!dst || room < at) return SNT_INCOMPLETE;
  uint8_t *blob = dst;
  memset(blob, 0, at);
  memcpy(blob, pack_magic(), 8);
  put_number(blob + 8, PACK_VERSION, 4);
  put_number(blob + 12, count, 4);
  put_number(blob + 16, at, 8);
  at = PACK_HEADER + count * PACK_ROW;
  for (uint32_t i = 0; i < count; i++) {
    at = (at + BLOB_ALIGN - 1) / BLOB_ALIGN * BLOB_ALIGN;
    size_t length = *size - at;
    SNT_TRY(snt_program_save(programs[i], blob + at, &length));
    put_number(blob + PACK_HEADER + i * PACK_ROW, at, 8);
    put_number(blob + PACK_HEADER + i * PACK_ROW + 8, length, 8);
    at += length;
  }
  return SNT_OK;
}

/* ---- choosing ---- */

typedef struct capability_need {
  uint16_t capability; /* of SPIR-V */
  uint16_t caps[2];    /* members of kir_caps, one of which gives it */
} capability_need;
#define CAPS(a, b) \
  { offsetof(kir_caps, a), offsetof(kir_caps, b) }
static const capability_need needs[] = {
    {9, CAPS(f16_arithmetic, f16_storage)},
    {10, CAPS(f64, f64)},
    {11, CAPS(int64, int64)},
    {22, CAPS(int16_storage, bf16_storage)},
    {39, CAPS(int8_storage, int8_storage)},
    {46, CAPS(texel, texel)},
    {49, CAPS(images, images)},
    {56, CAPS(images, images)},
    {61, CAPS(subgroups, subgroups)},
    {63, CAPS(subgroup_arithmetic, subgroup_arithmetic)},
    {65, CAPS(subgroup_arithmetic, shuffle)},
    {4433, CAPS(f16_storage, int16_storage)},
    {4448, CAPS(int8_storage, int8_storage)},
    {5347, CAPS(address, address)},
    {6019, CAPS(dot4, dot4)}, /* the last: devices have products of bytes that are not faster, and then the profile does not say so */
};
enum { CAPABILITY_MATRICES = 6022 };

static bool has(const kir_caps *caps, size_t member) { return *(const bool *)(const void *)((const char *)caps + member); }

bool api_has_units(const snt_program *p, const kir_caps *have) {
  for (uint32_t i = 0; i < KIR_MMA_TYPES; i++)
    if (p->profile.caps.mma[i].m && memcmp(&p->profile.caps.mma[i], &have->mma[i], sizeof have->mma[i])) return false;
  return true;
}

/* Execution modes stand before all names and types. */
static bool has_float_controls(const codegen_code *code, const kir_caps *have) {
  enum { OP_EXTENSION = 10, OP_EXECUTION_MODE = 16, OP_CAPABILITY = 17, DENORMALS = 4459 };
  const kir_float_controls *can = &have->float_controls;
  const uint8_t widths[] = {can->denormals, 0, can->signed_zero, can->round_even}; /* by mode */
  const uint32_t *words = (const uint32_t *)(const void *)code->data;
  for (size_t at = 5; at + 3 < code->size / 4; at += words[at] >> 16) {
    const uint32_t op = words[at] & 0xffff, mode = words[at + 2] - DENORMALS;
    if (op < OP_EXTENSION || op > OP_CAPABILITY || !(words[at] >> 16)) break;
    if (op == OP_EXECUTION_MODE && mode < IR_COUNT(widths) && words[at + 3] & ~(uint32_t)widths[mode]) return false;
  }
  return true;
}

/* Capabilities stand first in a module, before anything else. */
const char *api_module_lacks(const snt_program *p, const codegen_code *code, const kir_caps *caps) {
  const uint32_t *words = (const uint32_t *)(const void *)code->data;
  for (size_t at = 5; at + 1 < code->size / 4 && words[at] == (2u << 16 | 17u); at += 2) {
    if (words[at + 1] == CAPABILITY_MATRICES && p && !api_has_units(p, caps)) return cost_caps_name(offsetof(kir_caps, mma));
    for (uint32_t i = 0; i < IR_COUNT(needs) - !p; i++)
      if (needs[i].capability == words[at + 1] && !has(caps, needs[i].caps[0]) && !has(caps, needs[i].caps[1]))
        return cost_caps_name(needs[i].caps[0]);
  }
  return has_float_controls(code, caps) ? NULL : "float controls";
}

static bool fits(const snt_program *p, const snt_device *d) {
  const uint32_t bit = d->rt ? d->rt->target : SNT_TARGET_SPIRV, t = api_target_index(bit);
  const cost_profile *have = &d->profile;
  if (d->host) return true;
  if (!(p->targets & bit) || t == UINT32_MAX) return false;
  for (uint32_t k = 0; k < p->plan.kernels.count; k++) {
    const api_kernel *kernel = &p->kernels[k];
    const uint64_t items = (uint64_t)kernel->items[0] * kernel->items[1] * kernel->items[2];
    if (!kernel->code[t].code.data || (have->max_bindings && kernel->binding_count > have->max_bindings) ||
        (have->max_items && items > have->max_items) || kernel->block_bytes > have->max_scalar_bytes)
      return false;
    if (bit != SNT_TARGET_SPIRV) continue;
    if (!cost_has_subgroup(have, kernel->sub)) return false;
    if (api_module_lacks(p, &kernel->code[t].code, &have->caps)) return false;
  }
  return true;
}

/* The variant for the device's own profile; else the first that fits: the order of a pack is its author's preference. */
snt_result snt_program_load_best(snt_device *d, const void *blob, size_t size, snt_program **out, snt_diag *diag) {
  if (!d || !blob || !out) return ir_fail(diag, SNT_E_ARG, "load", 0, "a device, a blob and a place for the program are needed");
  if (!is_pack(blob, size)) return snt_program_load(d->context, blob, size, out, diag);
  const uint32_t count = snt_pack_count(blob, size);
  if (!count) return ir_fail(diag, SNT_E_BAD_BLOB, "load", 0, "the header of the pack is wrong");
  snt_program *best = NULL;
  for (uint32_t i = 0; i < count; i++) {
    const void *at;
    size_t length;
    snt_program *p;
    snt_result r = snt_pack_variant(blob, size, i, &at, &length);
    if (r == SNT_OK) r = snt_program_load(d->context, at, length, &p, diag);
    if (r != SNT_OK) {
      snt_program_destroy(best);
      return r == SNT_E_ARG ? ir_fail(diag, SNT_E_BAD_BLOB, "load", 0, "variant %u of the pack is wrong", i) : r;
    }
    const bool own = fits(p, d) && !strcmp(p->profile.name, d->profile.name);
    if (own || (!best && fits(p, d))) {
      snt_program_destroy(best);
      best = p;
    } else {
      snt_program_destroy(p);
    }
    if (own) break;
  }
  if (!best) return ir_fail(diag, SNT_E_UNSUPPORTED, "load", 0, "none of the %u variants fits %s", count, d->info.selector);
  *out = best;
  return SNT_OK;
}
