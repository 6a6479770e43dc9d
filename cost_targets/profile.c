/* Profiles as text: `key = value unit # provenance`, one fact a line. In: text. Out: a cost_profile; an unknown key, a wrong unit or a bad number is an
   error with its line. The keys are one table. */
#include "cost_targets/profile.h"
#include "cost_targets/profiles.h"
#include <stddef.h>
#include <stdlib.h>

typedef enum { KEY_TEXT, KEY_DOUBLE, KEY_U32, KEY_U64, KEY_U8, KEY_BOOL, KEY_MMA, KEY_SIMD, KEY_READS, KEY_CYCLES } key_kind;
typedef struct key_info {
  uint16_t offset, size;
  uint8_t kind, unit;
} key_info;

typedef enum { NONE, BYTES, NS, GBS, GHZ } key_unit;
static const char units[][5] = {[NONE] = "", [BYTES] = "B", [NS] = "ns", [GBS] = "GB/s", [GHZ] = "GHz"};

/* The keys: their names, and behind those where their values are. */
// clang-format off
#define KEYS(FIELD, CAP, MMA) \
    FIELD(KEY_TEXT, name, NONE) FIELD(KEY_TEXT, target, NONE) FIELD(KEY_SIMD, simd, NONE) FIELD(KEY_READS, reads, NONE) FIELD(KEY_U8, discrete, NONE) FIELD(KEY_U8, plain_runs, NONE) FIELD(KEY_U8, run_fetch_lanes, NONE) FIELD(KEY_U8, both_sides, NONE) FIELD(KEY_U8, slow_denormals, NONE) FIELD(KEY_U8, item_vectors, NONE) FIELD(KEY_U8, hand_texels, NONE) FIELD(KEY_U8, group_shares, NONE) FIELD(KEY_U8, rolls_images, NONE) \
    FIELD(KEY_DOUBLE, units, NONE) FIELD(KEY_DOUBLE, lanes, NONE) FIELD(KEY_DOUBLE, registers, NONE) \
    FIELD(KEY_DOUBLE, l1_bytes, BYTES) FIELD(KEY_DOUBLE, l2_bytes, BYTES) FIELD(KEY_DOUBLE, l3_bytes, BYTES) FIELD(KEY_DOUBLE, second_bytes, BYTES) FIELD(KEY_DOUBLE, local_bytes, BYTES) \
    FIELD(KEY_DOUBLE, group_items, NONE) FIELD(KEY_DOUBLE, row_items, NONE) FIELD(KEY_DOUBLE, min_groups, NONE) FIELD(KEY_DOUBLE, saturate_items, NONE) \
    FIELD(KEY_DOUBLE, launch_ns, NS) FIELD(KEY_U32, launch_steps, NONE) FIELD(KEY_DOUBLE, group_ns, NS) FIELD(KEY_DOUBLE, link_ns, NS) FIELD(KEY_DOUBLE, near_ns, NS) FIELD(KEY_DOUBLE, wake_ns, NS) FIELD(KEY_DOUBLE, least_saving, NS) \
    FIELD(KEY_DOUBLE, dram_gbs, GBS) FIELD(KEY_DOUBLE, cache_gbs, GBS) FIELD(KEY_DOUBLE, l2_gbs, GBS) FIELD(KEY_DOUBLE, l1_gbs, GBS) FIELD(KEY_DOUBLE, strided_factor, NONE) \
    FIELD(KEY_DOUBLE, stream_store_factor, NONE) FIELD(KEY_DOUBLE, hand_store_factor, NONE) FIELD(KEY_DOUBLE, stream_threshold, BYTES) FIELD(KEY_DOUBLE, overlap, NONE) FIELD(KEY_DOUBLE, dot4_steps, NONE) FIELD(KEY_DOUBLE, ghz, GHZ) FIELD(KEY_DOUBLE, fma_per_cycle, NONE) FIELD(KEY_DOUBLE, mma_per_cycle, NONE) FIELD(KEY_DOUBLE, port_lanes, NONE) \
    FIELD(KEY_DOUBLE, op_cycles, NONE) FIELD(KEY_DOUBLE, special_cycles, NONE) FIELD(KEY_DOUBLE, div_cycles, NONE) FIELD(KEY_DOUBLE, table_exp_cycles, NONE) FIELD(KEY_DOUBLE, table_tanh_cycles, NONE) FIELD(KEY_DOUBLE, table_erf_cycles, NONE) FIELD(KEY_DOUBLE, contract_share, NONE) \
    FIELD(KEY_DOUBLE, scalar_load_cycles, NONE) FIELD(KEY_DOUBLE, vector_load_cycles, NONE) FIELD(KEY_DOUBLE, lane_load_cycles, NONE) FIELD(KEY_U32, trip_terms, NONE) FIELD(KEY_U32, dear_elements, NONE) \
    FIELD(KEY_DOUBLE, barrier_ns, NS) FIELD(KEY_DOUBLE, spill_cycles, NONE) \
    FIELD(KEY_U32, max_bindings, NONE) FIELD(KEY_U32, max_scalar_bytes, BYTES) FIELD(KEY_U32, max_items, NONE) FIELD(KEY_U32, max_trips, NONE) \
    FIELD(KEY_U32, max_grid, NONE) \
    FIELD(KEY_U64, max_local_bytes, BYTES) FIELD(KEY_U64, max_buffer_bytes, BYTES) FIELD(KEY_U64, max_texels, NONE) \
    FIELD(KEY_U32, subgroup_min, NONE) FIELD(KEY_U32, subgroup_max, NONE) FIELD(KEY_U8, subgroup_asked, NONE) FIELD(KEY_U32, offset_align, BYTES) \
    CAP(KEY_U8, max_lanes) CAP(KEY_U8, vector_memory) CAP(KEY_U8, subgroup_size) CAP(KEY_U8, permute) CAP(KEY_U32, push_bytes) \
    CAP(KEY_BOOL, f16_arithmetic) CAP(KEY_BOOL, f16_storage) CAP(KEY_BOOL, bf16_storage) CAP(KEY_BOOL, int8_storage) CAP(KEY_BOOL, int16_storage) \
    CAP(KEY_BOOL, int64) CAP(KEY_BOOL, f64) CAP(KEY_BOOL, fma_fused) CAP(KEY_BOOL, fma_fast) CAP(KEY_BOOL, exp2) CAP(KEY_BOOL, keeps_math) CAP(KEY_BOOL, subgroups) \
    CAP(KEY_BOOL, subgroup_arithmetic) CAP(KEY_BOOL, exact_div) CAP(KEY_BOOL, exact_sqrt) CAP(KEY_BOOL, prefetch) CAP(KEY_BOOL, stream) \
    CAP(KEY_BOOL, texel) CAP(KEY_BOOL, images) CAP(KEY_BOOL, async_copy) CAP(KEY_BOOL, atomics_f32) CAP(KEY_BOOL, oob_zero) \
    CAP(KEY_BOOL, shuffle) CAP(KEY_BOOL, hred) CAP(KEY_BOOL, wrap) CAP(KEY_BOOL, divmod) CAP(KEY_BOOL, minmax_nan) CAP(KEY_BOOL, ix) CAP(KEY_BOOL, fill) \
    CAP(KEY_BOOL, lanes_memory) CAP(KEY_BOOL, pack2) CAP(KEY_BOOL, dot4) CAP(KEY_BOOL, aligned_vectors) CAP(KEY_BOOL, nan_unsafe) CAP(KEY_BOOL, flushes) CAP(KEY_BOOL, contracts) CAP(KEY_BOOL, narrow_local) CAP(KEY_BOOL, fragment_lanes) CAP(KEY_BOOL, address) \
    CAP(KEY_U8, float_controls.signed_zero) CAP(KEY_U8, float_controls.denormals) CAP(KEY_U8, float_controls.round_even) \
    MMA("f16", KIR_MMA_F16) MMA("bf16", KIR_MMA_BF16) MMA("i8", KIR_MMA_I8) MMA("u8", KIR_MMA_U8)

#define FIELD_NAME(kind, field, unit) #field "\0"
#define CAP_NAME(kind, field) "caps." #field "\0"
#define MMA_NAME(type, row) "caps.mma." type "\0"
static const char names[] = KEYS(FIELD_NAME, CAP_NAME, MMA_NAME);
#define PLACE(kind, field, unit) {(uint16_t)offsetof(cost_profile, field), (uint16_t)sizeof(((cost_profile *)0)->field), kind, unit},
#define CAP_PLACE(kind, field) PLACE(kind, caps.field, NONE)
#define MMA_PLACE(type, row) PLACE(KEY_MMA, caps.mma[row], NONE)
static const key_info keys[] = {KEYS(PLACE, CAP_PLACE, MMA_PLACE)};
// clang-format on
typedef struct word {
  const char *at;
  size_t length;
} word;

static const char type_names[COST_TYPE_COUNT][4] = {[COST_F32] = "f32", [COST_F16] = "f16", [COST_F64] = "f64", [COST_INT] = "int"};

/* `cycles.OP.TYPE`, where OP may hold dots itself. */
static bool find_cycles(word w, key_info *out) {
  static const char prefix[] = "cycles.";
  const size_t before = sizeof prefix - 1;
  if (w.length <= before || memcmp(w.at, prefix, before)) return false;
  for (uint32_t t = 0; t < COST_TYPE_COUNT; t++) {
    const size_t length = strlen(type_names[t]);
    if (w.length < before + length + 2 || memcmp(w.at + w.length - length, type_names[t], length) || w.at[w.length - length - 1] != '.')
      continue;
    const ir_op op = ir_op_find(w.at + before, w.length - before - length - 1);
    *out = (key_info){(uint16_t)(offsetof(cost_profile, cycles) + sizeof(float) * (op * COST_TYPE_COUNT + t)), sizeof(float), KEY_CYCLES,
                      NONE};
    return op != IR_OP_NONE;
  }
  return false;
}

static const char *next_name(const char *name) { return name + strlen(name) + 1; }

const char *cost_caps_name(size_t member) {
  const char *name = names;
  for (uint32_t i = 0; i < IR_COUNT(keys) - 1 && keys[i].offset != offsetof(cost_profile, caps) + member; i++) name = next_name(name);
  return name;
}

static bool find_key(word w, key_info *out) {
  const char *name = names;
  for (uint32_t i = 0; i < IR_COUNT(keys); i++, name = next_name(name))
    if (strlen(name) == w.length && !memcmp(name, w.at, w.length)) return *out = keys[i], true;
  return find_cycles(w, out);
}

static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r'; }

static word next_word(const char **at, const char *end) {
  while (*at < end && is_space(**at)) ++*at;
  word w = {*at, 0};
  while (*at < end && !is_space(**at) && **at != '#' && **at != '=') ++*at;
  w.length = (size_t)(*at - w.at);
  return w;
}

static bool equals(word w, const char *text) { return strlen(text) == w.length && !memcmp(text, w.at, w.length); }

static bool parse_number(word w, double *out) {
  char copy[40];
  if (!w.length || w.length >= sizeof copy) return false;
  memcpy(copy, w.at, w.length);
  copy[w.length] = 0;
  char *stop;
  *out = strtod(copy, &stop);
  return !*stop && *out == *out && *out >= 0 && *out < 1e19;
}

/* "16x16x16", or 0: none. */
static bool set_mma(kir_mma *field, word value) {
  char copy[16];
  if (!value.length || value.length >= sizeof copy) return false;
  memcpy(copy, value.at, value.length);
  copy[value.length] = 0;
  *field = (kir_mma){0, 0, 0};
  return !strcmp(copy, "0") || kir_mma_size(copy, field);
}

static bool set_value(cost_profile *p, const key_info *key, word value) {
  char *field = (char *)p + key->offset;
  double number = 0;
  switch (key->kind) {
  case KEY_TEXT:
    if (!value.length || value.length >= key->size) return false;
    memset(field, 0, key->size);
    memcpy(field, value.at, value.length);
    return true;
  case KEY_SIMD:
    p->simd = equals(value, "lanes") ? COST_SIMD_LANES : COST_SIMD_EXPLICIT;
    return equals(value, "lanes") || equals(value, "explicit");
  case KEY_READS:
    p->reads = equals(value, "texel") ? COST_READS_TEXEL : COST_READS_STORAGE;
    return equals(value, "texel") || equals(value, "storage");
  case KEY_MMA: return set_mma((kir_mma *)(void *)field, value);
  default: break;
  }
  if (!parse_number(value, &number)) return false;
  switch (key->kind) {
  case KEY_DOUBLE: *(double *)(void *)field = number; return true;
  case KEY_CYCLES: *(float *)(void *)field = (float)number; return number < 1e9;
  case KEY_U32:
    if (number > 4294967295.0) return false;
    for (uint32_t i = 0; i < (key->offset == offsetof(cost_profile, max_grid) ? 3u : 1u); i++)
      ((uint32_t *)(void *)field)[i] = (uint32_t)number;
    return true;
  case KEY_U64: *(uint64_t *)(void *)field = (uint64_t)number; return true;
  case KEY_U8: *(uint8_t *)field = (uint8_t)number; return number <= 255;
  default: *(bool *)field = number != 0; return number == 0 || number == 1;
  }
}

static const struct cost_profile_text *find_text(const char *name, size_t length) {
  for (uint32_t i = 0; i < cost_profile_count; i++)
    if (strlen(cost_profile_texts[i].name) == length && !memcmp(cost_profile_texts[i].name, name, length)) return &cost_profile_texts[i];
  return NULL;
}

static snt_result parse_into(cost_profile *p, const char *text, size_t length, uint32_t depth, snt_diag *diag);

static snt_result parse_base(cost_profile *p, word value, uint32_t line, uint32_t depth, snt_diag *diag) {
  const struct cost_profile_text *base = find_text(value.at, value.length);
  if (!base || depth > 4)
    return ir_fail(diag, SNT_E_PARSE, "profile", 0, "line %u: no profile %.*s to build on", line, (int)value.length, value.at);
  return parse_into(p, base->text, strlen(base->text), depth + 1, diag);
}

static snt_result parse_line(cost_profile *p, const char *at, const char *end, uint32_t line, uint32_t depth, snt_diag *diag) {
  const word name = next_word(&at, end);
  if (!name.length) return SNT_OK; /* empty, or a comment */
  while (at < end && is_space(*at)) at++;
  if (at == end || *at != '=') return ir_fail(diag, SNT_E_PARSE, "profile", 0, "line %u: expected `key = value`", line);
  at++;
  const word value = next_word(&at, end), unit = next_word(&at, end);
  if (equals(name, "base")) return parse_base(p, value, line, depth, diag);
  key_info key;
  const int shown = (int)(name.length < 60 ? name.length : 60);
  if (!find_key(name, &key)) return ir_fail(diag, SNT_E_PARSE, "profile", 0, "line %u: unknown key %.*s", line, shown, name.at);
  if (!equals(unit, units[key.unit]))
    return ir_fail(diag, SNT_E_PARSE, "profile", 0, "line %u: %.*s is given in %s", line, shown, name.at,
                   key.unit ? units[key.unit] : "no unit");
  if (!set_value(p, &key, value)) return ir_fail(diag, SNT_E_PARSE, "profile", 0, "line %u: bad value for %.*s", line, shown, name.at);
  return SNT_OK;
}

static snt_result parse_into(cost_profile *p, const char *text, size_t length, uint32_t depth, snt_diag *diag) {
  const char *at = text, *end = text + length;
  for (uint32_t line = 1; at < end; line++) {
    const char *stop = memchr(at, '\n', (size_t)(end - at));
    if (!stop) stop = end;
    const char *hash = memchr(at, '#', (size_t)(stop - at));
    SNT_TRY(parse_line(p, at, hash ? hash : stop, line, depth, diag));
    at = stop + (stop < end);
  }
  return SNT_OK;
}

static void set_caps_target(cost_profile *p) {
  static const char names[][8] = {"opencl", "spirv", "cuda", "interp", "kir"};
  for (uint32_t i = 0; i < IR_COUNT(names); i++)
    if (!strcmp(p->target, names[i])) p->caps.target = names[i];
}

snt_result cost_profile_parse(cost_profile *out, const char *text, size_t length, snt_diag *diag) {
  cost_profile p = {.units = 1,
                    .lanes = 1,
                    .ghz = 1,
                    .fma_per_cycle = 1,
                    .op_cycles = 1,
                    .contract_share = 1,
                    .strided_factor = 1,
                    .stream_store_factor = 1,
                    .overlap = 0.9,
                    .trip_terms = 4,
                    .offset_align = 256};
  SNT_TRY(parse_into(&p, text, length, 0, diag));
  if (!p.name[0] || !p.target[0]) return ir_fail(diag, SNT_E_PARSE, "profile", 0, "a profile needs `name` and `target`");
  set_caps_target(&p);
  *out = p;
  return SNT_OK;
}

static void print_cycles(const cost_profile *p, ir_text *out) {
  for (uint32_t op = 1; op < IR_OP_COUNT; op++)
    for (uint32_t t = 0; t < COST_TYPE_COUNT; t++)
      if (p->cycles[op][t] > 0) ir_text_format(out, "cycles.%s.%s = %.6g\n", ir_ops[op].name, type_names[t], (double)p->cycles[op][t]);
}

static void print_mma(const kir_mma *size, ir_text *out) {
  if (size->m) ir_text_format(out, "%ux%ux%u", size->m, size->n, size->k);
  else ir_text_add(out, "0");
}

void cost_profile_print(const cost_profile *p, ir_text *out) {
  const char *name = names;
  for (uint32_t i = 0; i < IR_COUNT(keys); i++, name = next_name(name)) {
    const char *field = (const char *)p + keys[i].offset;
    ir_text_format(out, "%s = ", name);
    switch (keys[i].kind) {
    case KEY_TEXT: ir_text_add(out, field); break;
    case KEY_SIMD: ir_text_add(out, p->simd == COST_SIMD_LANES ? "lanes" : "explicit"); break;
    case KEY_READS: ir_text_add(out, p->reads == COST_READS_TEXEL ? "texel" : "storage"); break;
    case KEY_DOUBLE: ir_text_format(out, "%.9g", *(const double *)(const void *)field); break;
    case KEY_U32: ir_text_format(out, "%u", *(const uint32_t *)(const void *)field); break;
    case KEY_U64: ir_text_format(out, "%llu", (unsigned long long)*(const uint64_t *)(const void *)field); break;
    case KEY_MMA: print_mma((const kir_mma *)(const void *)field, out); break;
    case KEY_U8: ir_text_format(out, "%u", *(const uint8_t *)field); break;
    default: ir_text_format(out, "%u", *(const bool *)field ? 1u : 0u); break;
    }
    ir_text_format(out, "%s%s\n", keys[i].unit ? " " : "", units[keys[i].unit]);
  }
  print_cycles(p, out);
}

const cost_profile *cost_profile_builtin(const char *name, cost_profile *storage) {
  const char *wanted = strcmp(name, "cpu") ? name : "pocl";
  const struct cost_profile_text *found = find_text(wanted, strlen(wanted));
  return found && cost_profile_parse(storage, found->text, strlen(found->text), NULL) == SNT_OK ? storage : NULL;
}
