/* Types, literals and the names of values: v<id>, except literals and scalar parameters, which are written where they are used. */
#include "codegen_common/ctext_private.h"
#include <math.h>

/* The first dialect of the chain with an entry in a table indexed by element type. */
#define LOOKUP(c, field, base_type) lookup((c)->d, offsetof(dialect, field), base_type)
static const char *lookup(const dialect *d, size_t offset, uint32_t base) {
  for (; d && base < CT_TYPES; d = d->base) {
    const char *const *table = (const char *const *)(const void *)((const char *)d + offset);
    if (table[base]) return table[base];
  }
  return NULL;
}

static void vector_type(ctext *c, const char *base, uint32_t lanes) {
  const char *pattern = c->d->vector;
  if (lanes == 1) {
    ir_text_add(&c->out, base);
    return;
  }
  for (; pattern && *pattern; pattern++) {
    if (*pattern != '$') ir_text_put(&c->out, pattern, 1);
    else if (*++pattern == 'b') ir_text_add(&c->out, base);
    else ir_text_format(&c->out, "%u", lanes);
  }
}

void ctext_type(ctext *c, kir_type t) {
  const char *base = t.base == SNT_BOOL && t.lanes > 1 ? c->d->mask : LOOKUP(c, type, t.base);
  if (t.frag && t.frag <= 3 && c->d->fragment) ir_text_format(&c->out, "%s%c_%s", c->d->fragment, "?abc"[t.frag], ir_dtypes[t.base].name);
  else if (base && !t.frag) vector_type(c, base, t.lanes);
  else ctext_fail(c, SNT_E_UNSUPPORTED, 0, "%s has no type %s x%u", c->d->name, ir_dtypes[t.base].name, t.lanes);
}

void ctext_storage(ctext *c, kir_type t) {
  if (t.base == SNT_BOOL && c->d->stored_bool) vector_type(c, c->d->stored_bool, t.lanes);
  else ctext_type(c, t);
}

/* Exact hexadecimal digits, written here because printf's depend on the host's locale. */
static void float_digits(ir_text *out, double x) {
  uint64_t bits, mantissa;
  memcpy(&bits, &x, sizeof bits);
  mantissa = bits & ((UINT64_C(1) << 52) - 1);
  int exponent = (int)(bits >> 52 & 0x7ff);
  uint32_t digits = 13;
  const int lead = exponent != 0;
  exponent = exponent ? exponent - 1023 : mantissa ? -1022 : 0;
  for (; digits > 0 && !(mantissa & 15); digits--) mantissa >>= 4;
  char fraction[14] = {'.'};
  for (uint32_t n = digits; n > 0; n--, mantissa >>= 4) fraction[n] = "0123456789abcdef"[mantissa & 15];
  ir_text_format(out, "%s0x%d", bits >> 63 ? "-" : "", lead);
  if (digits) ir_text_put(out, fraction, digits + 1);
  ir_text_format(out, "p%s%d", exponent < 0 ? "" : "+", exponent);
}

static const char *literal_digits(ctext *c, uint32_t base, int64_t i, double f, ir_text *digits) {
  if (ir_dtypes[base].is_float && base != SNT_F16 && base != SNT_BF16) {
    if (isfinite(f)) {
      float_digits(digits, f);
      return LOOKUP(c, literal, base);
    }
    if (f < 0) ir_text_add(digits, "-");
    return isnan(f) ? LOOKUP(c, nan, base) : LOOKUP(c, infinity, base);
  }
  if (base == SNT_F16) ir_text_format(digits, "0x%04x", ir_f16_from_f32((float)f));
  else if (base == SNT_BF16) ir_text_format(digits, "0x%04x", ir_bf16_from_f32((float)f));
  else if (base == SNT_BOOL) ir_text_add(digits, i ? "true" : "false");
  else if (base == SNT_I32 && i == INT32_MIN) ir_text_add(digits, "(-2147483647 - 1)");
  else if (base == SNT_I64 && i == INT64_MIN) ir_text_add(digits, "-9223372036854775807");
  else if (base == SNT_U64) ir_text_format(digits, "%llu", (unsigned long long)i);
  else if (base == SNT_U32) ir_text_format(digits, "%u", (uint32_t)i);
  else ir_text_format(digits, "%lld", (long long)i);
  return LOOKUP(c, literal, base);
}

void ctext_literal(ctext *c, kir_type t, int64_t i, double f) {
  char room[48];
  ir_text digits;
  ir_text_init_in(&digits, c->arena, room, sizeof room);
  bool mask = t.base == SNT_BOOL && t.lanes > 1;
  const char *pattern = literal_digits(c, mask ? SNT_I32 : t.base, mask ? -(i != 0) : i, f, &digits);
  if (!pattern) {
    ctext_fail(c, SNT_E_UNSUPPORTED, 0, "%s has no literals of type %s", c->d->name, ir_dtypes[t.base].name);
    return;
  }
  ctext_site digits_site = {.text = {digits.at}, .type = t};
  if (t.lanes == 1) {
    bool wrap = *digits.at == '-'; /* so that "a - -1" and "-x" templates stay what they say */
    if (wrap) ir_text_add(&c->out, "(");
    ctext_expand(c, pattern, &digits_site);
    if (t.base == SNT_I64 && i == INT64_MIN) ir_text_add(&c->out, " - 1");
    if (wrap) ir_text_add(&c->out, ")");
    return;
  }
  const ir_text saved = ctext_divert(c);
  ctext_literal(c, mask ? kir_t(SNT_I32, 1) : kir_t(t.base, 1), mask ? -(i != 0) : i, f);
  const ctext_site site = {.text = {ctext_restore(c, saved)}, .type = t};
  ctext_expand(c, c->d->vector_literal, &site);
}

void ctext_scalar(ctext *c, uint32_t number) {
  const kir_scalar *s = &c->k->scalars.at[number];
  const char *pattern = LOOKUP(c, scalar, s->type.base), *word = NULL;
  ctext_site site = {.type = s->type};
  for (const dialect *d = c->d; d && !word; d = d->base) word = d->word;
  if (!pattern || !word) {
    ctext_fail(c, SNT_E_UNSUPPORTED, 0, "%s has no scalar parameters of type %s", c->d->name, ir_dtypes[s->type.base].name);
    return;
  }
  for (uint32_t i = 0; i < 2; i++) {
    const ir_text saved = ctext_divert(c);
    ctext_expand(c, word, &(ctext_site){.number = {s->offset / 4 + i}});
    site.text[i] = ctext_restore(c, saved);
  }
  ctext_expand(c, pattern, &site);
}

void ctext_value(ctext *c, uint32_t value) {
  const kir_inst *s = kir_at(c->k, value);
  switch (s->op) {
  case KIR_const: ctext_literal(c, s->type, s->imm.i, s->imm.f); break;
  case KIR_scalar: ctext_scalar(c, s->index); break;
  default: ir_text_id(&c->out, 'v', c->same[value]);
  }
}

bool ctext_const_int(const ctext *c, uint32_t value, int64_t *out) {
  const kir_inst *s = kir_at(c->k, value);
  if (s->op != KIR_const || ir_dtypes[s->type.base].is_float) return false;
  *out = s->imm.i;
  return true;
}
