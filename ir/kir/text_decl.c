/* Declarations of kernel IR text: header attributes are in kir/text_parse.c; here scalars and memories, whose sizes may name scalars
   that come later. Several names may share one declaration; slots and places in the block not given are the next free ones. */
#include "ir/kir/text_parse.h"
#include <math.h>

enum { MAX_NAMES = 32 };
typedef struct name_list {
  kir_token at[MAX_NAMES];
  uint32_t count;
} name_list;

static name_list take_names(kir_parser *p) {
  name_list list = {.count = 0};
  do {
    const kir_token name = kir_expect(p, KTOKEN_VALUE, "%name");
    if (list.count < MAX_NAMES) list.at[list.count++] = name;
    else kir_parse_fail(p, "too many names");
  } while (!p->failed && kir_take_sign(p, ','));
  kir_expect_sign(p, ':');
  return list;
}

static void add_fixup(kir_parser *p, uint32_t memory, kir_fixup fixup) {
  fixup.memory = memory;
  if (!p->failed && !IR_PUSH(p->scratch, &p->fixups, fixup)) kir_parse_fail(p, "out of memory");
}

/* ---- scalars ---- */
static void take_scalar_facts(kir_parser *p, kir_scalar *facts, uint32_t offsets[MAX_NAMES], uint32_t *offset_count) {
  while (!p->failed && p->now.kind == KTOKEN_WORD) {
    if (kir_take_word(p, "at")) {
      kir_expect_sign(p, '=');
      do {
        const uint32_t offset = (uint32_t)kir_take_number(p, UINT16_MAX);
        if (*offset_count < MAX_NAMES) offsets[(*offset_count)++] = offset;
      } while (!p->failed && kir_take_sign(p, ','));
      continue;
    }
    int64_t *fact = kir_take_word(p, "min")   ? &facts->min
                    : kir_take_word(p, "max") ? &facts->max
                    : kir_take_word(p, "mul") ? &facts->multiple_of
                                              : NULL;
    if (!fact) {
      kir_parse_fail(p, "at=, min=, max= or mul= expected");
      return;
    }
    kir_expect_sign(p, '=');
    *fact = kir_take_signed(p);
  }
}

static void parse_scalar(kir_parser *p) {
  const name_list names = take_names(p);
  kir_scalar facts = {.type = kir_take_type(p)};
  uint32_t offsets[MAX_NAMES], count = 0;
  take_scalar_facts(p, &facts, offsets, &count);
  if (facts.type.lanes != 1 || facts.type.frag) kir_parse_fail(p, "a scalar has one lane");
  if (count && count != names.count) kir_parse_fail(p, "one at= a name");
  for (uint32_t i = 0; i < names.count && !p->failed; i++) {
    const char *name = kir_token_text(p, names.at[i]);
    if (!name) return;
    const uint32_t id = kir_scalar_add(p->k, name, facts.type.base, facts.min, facts.max, facts.multiple_of);
    if (p->k->failed) return;
    if (count) p->k->scalars.at[id].offset = offsets[i];
    kir_bind(p, names.at[i], KNAME_SCALAR, id);
  }
}

/* ---- memories ---- */
static void add_memories(kir_parser *p, const name_list *names, kir_memory *m, const kir_fixup *fixups, uint32_t fixup_count) {
  for (uint32_t i = 0; i < names->count && !p->failed; i++) {
    m->name = kir_token_text(p, names->at[i]);
    if (!m->name) return;
    const uint32_t id = kir_memory_add(p->k, m);
    if (p->k->failed) return;
    kir_bind(p, names->at[i], KNAME_MEMORY, id);
    for (uint32_t f = 0; f < fixup_count; f++) add_fixup(p, id, fixups[f]);
    m->slot++;
  }
}

static uint32_t next_slot(const kir_kernel *k) {
  uint32_t slot = 0;
  for (uint32_t i = 0; i < k->memories.count; i++) {
    const kir_memory *m = &k->memories.at[i];
    if ((m->space == KIR_GLOBAL || m->space == KIR_IMAGE) && m->slot >= slot) slot = m->slot + 1;
  }
  return slot;
}

static void take_extents(kir_parser *p, kir_memory *m) {
  kir_expect_sign(p, '[');
  m->rank = 0;
  do {
    if (m->rank == IR_COUNT(m->dims)) {
      kir_parse_fail(p, "at most 4 dimensions");
      return;
    }
    m->dims[m->rank++] = kir_take_number(p, UINT64_MAX);
  } while (!p->failed && kir_take_sign(p, ','));
  kir_expect_sign(p, ']');
}

/* [n], [%n], [3*%n] or [?] */
static uint32_t take_size(kir_parser *p, kir_memory *m, kir_fixup *fixup) {
  kir_expect_sign(p, '[');
  m->rank = 1;
  uint32_t named = 0;
  if (!kir_take_sign(p, '?')) {
    uint64_t number = 1;
    const bool has_number = p->now.kind == KTOKEN_WORD;
    if (has_number) number = kir_take_number(p, UINT64_MAX);
    named = !has_number || kir_take_sign(p, '*');
    if (named) m->dims[1] = number, fixup->name = kir_expect(p, KTOKEN_VALUE, "a size");
    else m->dims[0] = number;
  }
  kir_expect_sign(p, ']');
  return named;
}

static uint32_t take_offset(kir_parser *p, kir_fixup *fixup) {
  if (p->now.kind == KTOKEN_VALUE) {
    *fixup = (kir_fixup){.is_offset = true, .name = p->now};
    kir_advance(p);
    return 1;
  }
  if (kir_take_number(p, 0)) kir_parse_fail(p, "an offset is 0 or a scalar");
  return 0;
}

static bool take_param_flag(kir_parser *p, kir_memory *m) {
  for (const kir_word *w = kir_access_words; w->text; w++)
    if (kir_take_word(p, w->text)) return m->access = (uint8_t)w->value, true;
  return false;
}

static void take_param_attr(kir_parser *p, kir_memory *m, kir_fixup *fixups, uint32_t *count) {
  static const kir_word read_words[] = {{"texel", KIR_MEM_TEXEL}, {"storage", 0}, {NULL, 0}},
                        zero_words[] = {{"zero", KIR_MEM_OOB_ZERO}, {NULL, 0}};
  const kir_token key = kir_expect(p, KTOKEN_WORD, "an attribute");
  kir_expect_sign(p, '=');
#define IS(text) (key.length == sizeof text - 1 && !memcmp(key.at, text, sizeof text - 1))
  if (p->failed) return;
  if (IS("slot")) m->slot = (uint32_t)kir_take_number(p, UINT16_MAX);
  else if (IS("off")) *count += *count < 3 ? take_offset(p, &fixups[*count]) : 0;
  else if (IS("align")) m->align = (uint32_t)kir_take_number(p, 1u << 20);
  else if (IS("alias")) m->alias = (uint32_t)kir_take_number(p, UINT32_MAX);
  else if (IS("view")) m->view = kir_take_type(p).base;
  else if (IS("read")) m->flags |= (uint16_t)kir_take_choice(p, read_words, "read path");
  else if (IS("oob")) m->flags |= (uint16_t)kir_take_choice(p, zero_words, "out-of-bounds rule");
  else if (IS("state")) m->state = kir_token_text(p, kir_expect(p, KTOKEN_WORD, "a name"));
  else kir_parse_fail(p, "no such attribute of a parameter");
#undef IS
}

static void parse_param(kir_parser *p) {
  const name_list names = take_names(p);
  kir_memory m = {.space = KIR_GLOBAL, .type = kir_take_type(p), .slot = next_slot(p->k)};
  kir_fixup fixups[4] = {{0}};
  uint32_t count = take_size(p, &m, &fixups[0]);
  while (!p->failed && p->now.kind == KTOKEN_WORD)
    if (!take_param_flag(p, &m)) take_param_attr(p, &m, fixups, &count);
  if (!m.access) kir_parse_fail(p, "ro, wo or rw expected");
  add_memories(p, &names, &m, fixups, count);
}

static void parse_image(kir_parser *p) {
  const name_list names = take_names(p);
  kir_memory m = {.space = KIR_IMAGE, .slot = next_slot(p->k)};
  const kir_token format = kir_expect(p, KTOKEN_WORD, "a format");
  if (format.length >= sizeof m.format) kir_parse_fail(p, "no such format");
  if (p->failed) return;
  memcpy(m.format, format.at, format.length);
  if (!kir_take_word(p, "2d")) kir_parse_fail(p, "2d expected");
  if (kir_take_word(p, "slot")) {
    kir_expect_sign(p, '=');
    m.slot = (uint32_t)kir_take_number(p, UINT16_MAX);
  }
  if (kir_take_word(p, "sampled")) {
    static const kir_word filters[] = {{"linear", KIR_MEM_LINEAR}, {"nearest", 0}, {NULL, 0}},
                          wraps[] = {{"clamp", KIR_MEM_CLAMP}, {"repeat", 0}, {NULL, 0}};
    m.access = KIR_READ;
    m.flags = KIR_MEM_SAMPLED;
    m.flags |= (uint16_t)kir_take_choice(p, filters, "filter");
    m.flags |= (uint16_t)kir_take_choice(p, wraps, "wrap");
  } else {
    if (!kir_take_word(p, "storage")) kir_parse_fail(p, "sampled or storage expected");
    m.access = (uint8_t)kir_take_choice(p, kir_access_words, "access");
  }
  add_memories(p, &names, &m, NULL, 0);
}

/* Whether an integer array can hold the value is the verifier's question; here it only must be one. */
static double take_value(kir_parser *p, uint32_t base) {
  const kir_literal literal = kir_take_literal(p);
  if (kir_is_float(base)) return kir_round_float(base, kir_literal_value(&literal, base), KIR_ROUND_NONE);
  if (literal.kind == KLITERAL_FLOAT) kir_parse_fail(p, "a float among integers");
  if (literal.kind == KLITERAL_LOWEST) return kir_is_signed(base) ? -ldexp(1, (int)kir_base_bits(base) - 1) : 0;
  return kir_literal_value(&literal, SNT_F64);
}

static void take_values(kir_parser *p, kir_memory *m) {
  IR_VEC(double) values = {0};
  kir_expect_sign(p, '=');
  kir_expect_sign(p, '(');
  do {
    const double v = take_value(p, m->type.base);
    if (!p->failed && !IR_PUSH(p->k->arena, &values, v)) kir_parse_fail(p, "out of memory");
  } while (!p->failed && kir_take_sign(p, ','));
  kir_expect_sign(p, ')');
  uint64_t want = 1;
  for (uint32_t d = 0; d < m->rank; d++) want = m->dims[d] && want > UINT32_MAX / m->dims[d] ? UINT32_MAX : want * m->dims[d];
  if (want != values.count) kir_parse_fail(p, "%u values for %llu elements", values.count, (unsigned long long)want);
  m->values = values.at;
}

static void parse_array(kir_parser *p, kir_space space) {
  const name_list names = take_names(p);
  kir_memory m = {.space = (uint8_t)space, .type = kir_take_type(p)};
  kir_fixup overlay = {0};
  uint32_t fixups = 0;
  take_extents(p, &m);
  if (space == KIR_CONSTANT) take_values(p, &m);
  while (!p->failed && p->now.kind == KTOKEN_WORD) {
    if (space == KIR_PRIVATE && kir_take_word(p, "regs")) {
      m.flags |= KIR_MEM_REGS;
    } else if (space == KIR_PRIVATE && kir_take_word(p, "rows")) {
      m.flags |= KIR_MEM_ROWS;
    } else if ((space == KIR_LOCAL || space == KIR_SCRATCH) && kir_take_word(p, "align")) {
      kir_expect_sign(p, '=');
      m.align = (uint32_t)kir_take_number(p, 1u << 20);
    } else if (space == KIR_LOCAL && kir_take_word(p, "overlay")) {
      kir_expect_sign(p, '=');
      overlay = (kir_fixup){.is_overlay = true, .name = kir_expect(p, KTOKEN_VALUE, "a local array")};
      fixups = 1;
    } else {
      kir_parse_fail(p, "no such attribute of this array");
    }
  }
  add_memories(p, &names, &m, &overlay, fixups);
}

static void resolve_fixups(kir_parser *p) {
  for (uint32_t i = 0; i < p->fixups.count && !p->failed; i++) {
    const kir_fixup *fixup = &p->fixups.at[i];
    const kir_name *name = kir_lookup(p, fixup->name);
    if (!name) return;
    if (name->kind != (fixup->is_overlay ? KNAME_MEMORY : KNAME_SCALAR)) {
      kir_parse_fail(p, "%%%.*s is of the wrong kind", (int)(name->length < 64 ? name->length : 64), name->at);
      return;
    }
    kir_memory *m = &p->k->memories.at[fixup->memory];
    *(fixup->is_overlay ? &m->overlay : fixup->is_offset ? &m->offset_scalar : &m->size_scalar) = name->id + 1;
  }
}

static bool parse_declaration(kir_parser *p) {
  if (kir_take_word(p, "scalar")) return parse_scalar(p), true;
  for (const kir_word *w = kir_space_words; w->text; w++) {
    if (!kir_take_word(p, w->text)) continue;
    if (w->value == KIR_GLOBAL) parse_param(p);
    else if (w->value == KIR_IMAGE) parse_image(p);
    else parse_array(p, (kir_space)w->value);
    return true;
  }
  return false;
}

void kir_parse_declarations(kir_parser *p) {
  kir_skip_lines(p);
  while (!p->failed && !p->k->failed && parse_declaration(p)) {
    if (p->now.kind != KTOKEN_LINE && !kir_is_sign(p, '}')) kir_parse_fail(p, "the end of the declaration expected");
    kir_skip_lines(p);
  }
  resolve_fixups(p);
}
