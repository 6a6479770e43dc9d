/* Prints kernel IR in its one canonical form: every attribute written, literals and scalars inline, values numbered by first appearance.
   Works on kernels that do not verify, as long as their regions nest. */
#include "ir/kir/text.h"
#include <math.h>

typedef struct printer {
  const kir_kernel *k;
  ir_text *text;
  kir_regions regions;
  uint32_t *numbers; /* 1 + the number given to a value */
  uint8_t *folded;   /* an ix that prints inside the brackets of its only use */
  uint32_t *uses, *user;
  uint32_t next, line; /* line: of the text, from 1 */
  kir_place *places;   /* by instruction; null: nobody asks */
} printer;

/* ---- types and literals ---- */
void kir_print_type(ir_text *t, kir_type type) {
  const char *base = type.base < SNT_DTYPE_COUNT && ir_dtypes[type.base].name ? ir_dtypes[type.base].name : "?";
  if (type.frag) ir_text_format(t, "frag<%c,%s>", type.frag <= 3 ? "?abc"[type.frag] : '?', base);
  else if (type.lanes == 1) ir_text_add(t, base);
  else ir_text_format(t, "%sx%u", base, type.lanes);
}

/* 0x1.8p-1: the shortest exact form, independent of any locale. */
static void print_hex(ir_text *t, double v) {
  int exponent;
  uint64_t bits = (uint64_t)ldexp(frexp(fabs(v), &exponent), 53); /* in [2^52, 2^53) */
  if (signbit(v)) ir_text_add(t, "-");
  ir_text_add(t, "0x1");
  bits = (bits << 12) & UINT64_MAX;
  for (uint32_t digit = 0; bits; digit++, bits <<= 4) ir_text_format(t, digit ? "%x" : ".%x", (unsigned)(bits >> 60));
  ir_text_format(t, "p%+d", exponent - 1);
}

static void print_float(ir_text *t, uint32_t base, double v) {
  if (v != v) ir_text_add(t, "nan");
  else if (v - v != 0) ir_text_add(t, v < 0 ? "-inf" : "inf");
  else if (v == 0) ir_text_add(t, signbit(v) ? "-0x0p+0" : "0");
  else if (v == kir_lowest(base)) ir_text_add(t, "lowest");
  else print_hex(t, v);
}

static void print_int(ir_text *t, uint32_t base, int64_t v) {
  if (base == SNT_BOOL) ir_text_add(t, v ? "true" : "false");
  else if (base == SNT_U64) ir_text_format(t, "%llu", (unsigned long long)v);
  else ir_text_format(t, "%lld", (long long)v);
}

void kir_print_literal(ir_text *t, const kir_inst *in) {
  if (kir_is_float(in->type.base)) print_float(t, in->type.base, in->imm.f);
  else print_int(t, in->type.base, in->imm.i);
}

/* ---- operands ---- */
static void print_number(printer *p, uint32_t value) {
  if (!p->numbers[value]) p->numbers[value] = ++p->next;
  ir_text_format(p->text, "%%%u", p->numbers[value] - 1);
}

static void print_operand(printer *p, uint32_t value, kir_type position) {
  const kir_inst *in = kir_at(p->k, value);
  if (in->op == KIR_const) {
    kir_print_literal(p->text, in);
    if (kir_same(position, in->type)) return;
    ir_text_add(p->text, ":");
    kir_print_type(p->text, in->type);
  } else if (in->op == KIR_scalar && in->index < p->k->scalars.count) {
    ir_text_format(p->text, "%%%s", p->k->scalars.at[in->index].name);
  } else {
    print_number(p, value);
  }
}

/* One term of an ix: 8*%3, %q*%1, %2; a literal value always has its factor, or it would read as the constant. */
static void print_term(printer *p, uint32_t factor, uint32_t value, kir_type type) {
  const kir_inst *f = kir_at(p->k, factor);
  const bool one = f->op == KIR_const && f->imm.i == 1 && kir_at(p->k, value)->op != KIR_const;
  if (f->op == KIR_const && !one) ir_text_format(p->text, "%lld*", (long long)f->imm.i);
  else if (!one) {
    print_operand(p, factor, type);
    ir_text_add(p->text, "*");
  }
  print_operand(p, value, type);
}

static void print_sum(printer *p, const kir_inst *in) {
  const uint32_t *args = p->k->args.at + in->args;
  for (uint32_t i = 0; i + 1 < in->arg_count; i += 2) {
    if (i) ir_text_add(p->text, " + ");
    print_term(p, args[i], args[i + 1], in->type);
  }
  const uint64_t magnitude = in->imm.i < 0 ? 0 - (uint64_t)in->imm.i : (uint64_t)in->imm.i;
  if (!in->arg_count) ir_text_format(p->text, "%lld", (long long)in->imm.i);
  else if (in->imm.i) ir_text_format(p->text, " %c %llu", in->imm.i < 0 ? '-' : '+', (unsigned long long)magnitude);
}

static void print_index(printer *p, uint32_t value) {
  const kir_inst *in = kir_at(p->k, value);
  if (p->folded[value]) print_sum(p, in);
  else if (in->op == KIR_const && in->type.base == SNT_I32 && in->imm.i < 0) kir_print_literal(p->text, in);
  else print_operand(p, value, kir_t(SNT_U32, 1));
}

static void print_cell(printer *p, uint32_t memory, uint32_t count, const uint32_t *indices) {
  ir_text_format(p->text, " %%%s", memory < p->k->memories.count ? p->k->memories.at[memory].name : "?");
  if (count) ir_text_add(p->text, "[");
  for (uint32_t i = 0; i < count; i++) {
    if (i) ir_text_add(p->text, ",");
    print_index(p, indices[i]);
  }
  if (count) ir_text_add(p->text, "]");
}

static void print_operands(printer *p, const kir_inst *in, uint32_t first, bool comma) {
  const uint32_t *args = p->k->args.at + in->args;
  for (uint32_t i = first; i < in->arg_count; i++) {
    ir_text_add(p->text, comma ? ", " : " ");
    comma = true;
    print_operand(p, args[i], kir_literal_type(p->k, in, args, i));
  }
}

/* ---- attributes ---- */
static void print_number_attr(ir_text *t, const char *name, double v) {
  ir_text_format(t, " %s=", name);
  if (v == rint(v) && fabs(v) < 1e6) ir_text_format(t, "%d", (int)v);
  else print_float(t, SNT_F32, v);
}

static void print_math_attrs(ir_text *t, const kir_inst *in) {
  if ((kir_ops[in->op].attrs & KA_MATH) && (in->flags & KIR_HAS_DOM)) {
    ir_text_add(t, " dom=[");
    print_float(t, SNT_F64, (double)in->dom_lo);
    ir_text_add(t, ",");
    print_float(t, SNT_F64, (double)in->dom_hi);
    ir_text_add(t, "]");
  }
  if (in->ulp != 0) print_number_attr(t, "ulp", (double)in->ulp);
}

static void print_access_attrs(printer *p, const kir_inst *in) {
  const uint32_t attrs = kir_ops[in->op].attrs;
  const kir_memory *m = in->index < p->k->memories.count ? &p->k->memories.at[in->index] : NULL;
  if ((attrs & KA_ALIGN) && m && !(m->flags & KIR_MEM_REGS))
    ir_text_format(p->text, " align=%u", in->align ? in->align : kir_base_bits(m->type.base) / 8);
  if ((attrs & KA_LANES) && in->lanes > 1) ir_text_format(p->text, " lanes=%d", in->lanes);
  if ((attrs & KA_UNIFORM) && (in->flags & KIR_IS_UNIFORM)) ir_text_add(p->text, " uniform");
  if ((attrs & KA_STREAM) && (in->flags & KIR_IS_STREAM)) ir_text_add(p->text, " stream");
  if ((attrs & KA_STREAM) && (in->flags & KIR_IS_SAME)) ir_text_add(p->text, " same");
  if (attrs & KA_BYTES) ir_text_format(p->text, " bytes=%d", in->lanes);
  if ((attrs & KA_RW) && (in->flags & KIR_IS_RW)) ir_text_add(p->text, " rw");
  if ((attrs & KA_RW) && (in->flags & KIR_IS_FAR)) ir_text_add(p->text, " far");
  if (attrs & KA_LD) ir_text_format(p->text, " ld=%d", in->lanes);
  if ((attrs & KA_LD) && (in->flags & KIR_IS_COLUMNS)) ir_text_add(p->text, " columns");
}

static void print_attrs(printer *p, const kir_inst *in) {
  const uint32_t attrs = kir_ops[in->op].attrs;
  if (attrs & (KA_MATH | KA_ULP)) print_math_attrs(p->text, in);
  if (attrs & KA_ROUND) {
    const uint32_t rounding = in->flags & ~(uint32_t)KIR_SAT;
    if (rounding) ir_text_format(p->text, " round=%s", kir_word_of(kir_round_words, rounding));
    if (in->flags & KIR_SAT) ir_text_add(p->text, " sat");
  }
  if (attrs & KA_AS) ir_text_format(p->text, " as=%s", in->index == SNT_BF16 ? "bf16" : "f16");
  print_access_attrs(p, in);
}

/* ---- instructions ---- */
static void print_result(printer *p, uint32_t value) {
  print_number(p, value);
  ir_text_add(p->text, ": ");
  kir_print_type(p->text, kir_at(p->k, value)->type);
}

static void print_line(printer *p, uint32_t i) {
  const kir_inst *in = kir_at(p->k, i);
  const uint32_t *args = p->k->args.at + in->args;
  if (kir_has_value(in->op)) {
    print_result(p, i);
    ir_text_add(p->text, " = ");
  }
  ir_text_add(p->text, kir_ops[in->op].name);
  const uint32_t indices = kir_index_count(in);
  switch (in->op) {
  case KIR_group:
  case KIR_local: ir_text_format(p->text, " %u", in->index); break;
  case KIR_own:
  case KIR_inline:
    ir_text_format(p->text, " %u", in->index);
    print_operands(p, in, 0, true);
    break;
  case KIR_ix:
    ir_text_add(p->text, " ");
    print_sum(p, in);
    break;
  case KIR_async_wait: ir_text_format(p->text, " %lld", (long long)in->imm.i); break;
  case KIR_barrier:
    ir_text_format(p->text, "%s%s%s", in->flags & KIR_SYNC_LOCAL ? " local" : "", (in->flags & 3) == 3 ? "," : "",
                   in->flags & KIR_SYNC_GLOBAL ? (in->flags & KIR_SYNC_LOCAL ? "global" : " global") : "");
    break;
  case KIR_async_copy:
    print_cell(p, in->index, indices ? indices - 1 : 0, args);
    ir_text_add(p->text, ",");
    if (indices) print_cell(p, in->index2, 1, args + indices - 1);
    print_operands(p, in, indices, true);
    break;
  default:
    if (kir_names_memory(in->op)) print_cell(p, in->index, indices, args);
    print_operands(p, in, indices, kir_names_memory(in->op));
  }
  print_attrs(p, in);
}

static uint32_t carried_count(const printer *p, uint32_t loop) {
  const uint32_t count = kir_at(p->k, loop)->arg_count;
  return count > 3 ? count - 3 : 0;
}

/* Results of the region that opener i begins: the instructions after its end. */
static uint32_t find_results(const printer *p, uint32_t i, uint32_t *first) {
  uint32_t end = p->regions.close[i], count = 0;
  if (kir_at(p->k, end)->op == KIR_else) end = p->regions.close[end];
  for (uint32_t at = end + 1; at < p->k->insts.count && kir_at(p->k, at)->op == KIR_result; at++) count++;
  *first = end + 1;
  return count;
}

static void print_results(printer *p, uint32_t opener) {
  uint32_t first;
  const uint32_t count = find_results(p, opener, &first);
  for (uint32_t i = 0; i < count; i++) {
    if (i) ir_text_add(p->text, ", ");
    print_result(p, first + i);
  }
  if (count) ir_text_add(p->text, " = ");
}

static void print_loop(printer *p, uint32_t i) {
  const kir_inst *in = kir_at(p->k, i);
  print_results(p, i);
  ir_text_add(p->text, "loop ");
  print_result(p, i);
  ir_text_add(p->text, " = ");
  for (uint32_t n = 0; n < 3; n++) {
    if (n) ir_text_add(p->text, ", ");
    print_operand(p, kir_arg(p->k, i, n), in->type);
  }
  const uint32_t carried = carried_count(p, i);
  for (uint32_t n = 0; n < carried; n++) {
    ir_text_add(p->text, n ? ", " : " carry(");
    print_result(p, i + 1 + n);
    ir_text_add(p->text, " = ");
    print_operand(p, kir_arg(p->k, i, 3 + n), kir_type_of(p->k, i + 1 + n));
  }
  if (carried) ir_text_add(p->text, ")");
  for (const kir_word *w = kir_loop_words; w->text; w++)
    if (in->flags & w->value) ir_text_format(p->text, " %s", w->text);
  if (in->lanes) ir_text_format(p->text, " unroll=%d", in->lanes);
  if (in->index || in->index2) ir_text_format(p->text, " peel=%u,%u", in->index, in->index2);
  if (in->flags & KIR_LOOP_TRIP1) ir_text_add(p->text, " trip>=1");
  ir_text_add(p->text, " {");
}

static void print_if(printer *p, uint32_t i) {
  print_results(p, i);
  ir_text_add(p->text, "if ");
  print_operand(p, kir_arg(p->k, i, 0), kir_t(SNT_BOOL, 1));
  ir_text_add(p->text, " {");
}

/* A yielded literal has the type of what receives it. */
static void print_yield(printer *p, uint32_t i) {
  const kir_inst *in = kir_at(p->k, i);
  uint32_t opener = p->regions.parent[i], first = 0, count = 0;
  if (opener && kir_at(p->k, opener)->op == KIR_else) opener = kir_at(p->k, opener)->index;
  if (opener) count = find_results(p, opener, &first);
  ir_text_add(p->text, "yield");
  for (uint32_t n = 0; n < in->arg_count; n++) {
    ir_text_add(p->text, n ? ", " : " ");
    print_operand(p, kir_arg(p->k, i, n), n < count ? kir_type_of(p->k, first + n) : kir_t(0, 0));
  }
}

static void indent(printer *p, uint32_t depth) {
  for (uint32_t i = 0; i < depth; i++) ir_text_add(p->text, "  ");
}

static bool prints_nothing(const printer *p, uint32_t i) {
  const uint32_t op = kir_at(p->k, i)->op;
  return op == KIR_const || op == KIR_scalar || op == KIR_carry || op == KIR_result || p->folded[i];
}

static void print_body(printer *p) {
  uint32_t depth = 1;
  for (uint32_t i = 1; i < p->k->insts.count; i++) {
    if (prints_nothing(p, i)) continue;
    const uint32_t op = kir_at(p->k, i)->op;
    if (p->places) p->places[i].line = p->line++;
    if ((op == KIR_end || op == KIR_else) && depth) depth--;
    indent(p, depth);
    switch (op) {
    case KIR_loop:
      print_loop(p, i);
      depth++;
      break;
    case KIR_if:
      print_if(p, i);
      depth++;
      break;
    case KIR_else:
      ir_text_add(p->text, "} else {");
      depth++;
      break;
    case KIR_end: ir_text_add(p->text, "}"); break;
    case KIR_yield: print_yield(p, i); break;
    default: print_line(p, i); break;
    }
    ir_text_add(p->text, "\n");
  }
}

/* ---- which sums print inside brackets: those with one use, as an index, in the same region ---- */
static void count_uses(printer *p) {
  for (uint32_t i = 1; i < p->k->insts.count; i++) {
    const kir_inst *in = kir_at(p->k, i);
    for (uint32_t n = 0; n < in->arg_count; n++) {
      const uint32_t value = kir_arg(p->k, i, n);
      p->uses[value]++;
      p->user[value] = n < kir_index_count(in) ? i : 0;
    }
  }
}

/* `%v` in brackets is the value itself, so a sum that adds nothing keeps its line. */
static bool is_trivial(const printer *p, const kir_inst *in) {
  const kir_inst *factor = kir_at(p->k, p->k->args.at[in->args]);
  return in->arg_count == 2 && in->imm.i == 0 && factor->op == KIR_const && factor->imm.i == 1;
}

static void find_folded(printer *p) {
  for (uint32_t i = 1; i < p->k->insts.count; i++) {
    const kir_inst *in = kir_at(p->k, i);
    if (in->op != KIR_ix || in->arg_count < 2 || p->uses[i] != 1 || !p->user[i] || is_trivial(p, in)) continue;
    const kir_type natural = kir_sum_type(p->k, in->arg_count / 2u, p->k->args.at + in->args + 1, 2);
    p->folded[i] = p->regions.parent[i] == p->regions.parent[p->user[i]] && kir_same(natural, in->type);
  }
}

/* ---- declarations ---- */
static void print_scalar(ir_text *t, const kir_scalar *s) {
  ir_text_format(t, "  scalar %%%s: ", s->name);
  kir_print_type(t, s->type);
  ir_text_format(t, " at=%u", s->offset);
  if (s->min) ir_text_format(t, " min=%lld", (long long)s->min);
  if (s->max) ir_text_format(t, " max=%lld", (long long)s->max);
  if (s->multiple_of > 1) ir_text_format(t, " mul=%lld", (long long)s->multiple_of);
  ir_text_add(t, "\n");
}

static void print_extents(const kir_kernel *k, ir_text *t, const kir_memory *m) {
  ir_text_add(t, "[");
  const bool by_scalar = m->space == KIR_GLOBAL && m->size_scalar && m->size_scalar <= k->scalars.count;
  if (by_scalar && m->dims[1] > 1) ir_text_format(t, "%llu*", (unsigned long long)m->dims[1]);
  if (by_scalar) ir_text_format(t, "%%%s", k->scalars.at[m->size_scalar - 1].name);
  else if (m->space == KIR_GLOBAL && !m->dims[0]) ir_text_add(t, "?");
  else
    for (uint32_t d = 0; d < m->rank && d < IR_COUNT(m->dims); d++) ir_text_format(t, d ? ",%llu" : "%llu", (unsigned long long)m->dims[d]);
  ir_text_add(t, "]");
}

static void print_param(const kir_kernel *k, ir_text *t, const kir_memory *m) {
  ir_text_format(t, " slot=%u off=", m->slot);
  if (m->offset_scalar && m->offset_scalar <= k->scalars.count) ir_text_format(t, "%%%s", k->scalars.at[m->offset_scalar - 1].name);
  else ir_text_add(t, "0");
  ir_text_format(t, " %s align=%u alias=%u", kir_word_of(kir_access_words, m->access), m->align, m->alias);
  if (m->view) ir_text_format(t, " view=%s", m->view < SNT_DTYPE_COUNT ? ir_dtypes[m->view].name : "?");
  if (m->flags & KIR_MEM_TEXEL) ir_text_add(t, " read=texel");
  if (m->flags & KIR_MEM_OOB_ZERO) ir_text_add(t, " oob=zero");
  if (m->state) ir_text_format(t, " state=%s", m->state);
}

static void print_image(ir_text *t, const kir_memory *m) {
  ir_text_format(t, "  image %%%s: %.*s 2d slot=%u", m->name, (int)sizeof m->format, m->format, m->slot);
  if (m->flags & KIR_MEM_SAMPLED)
    ir_text_format(t, " sampled %s %s\n", m->flags & KIR_MEM_LINEAR ? "linear" : "nearest", m->flags & KIR_MEM_CLAMP ? "clamp" : "repeat");
  else ir_text_format(t, " storage %s\n", kir_word_of(kir_access_words, m->access));
}

static void print_values(ir_text *t, const kir_memory *m) {
  uint64_t count = 1;
  for (uint32_t d = 0; d < m->rank && d < IR_COUNT(m->dims); d++) count *= m->dims[d];
  ir_text_add(t, " = (");
  for (uint64_t i = 0; i < count && m->values && !t->failed; i++) {
    const double v = m->values[i];
    kir_inst in = {.op = KIR_const, .type = kir_element(m->type)};
    if (kir_is_float(m->type.base)) in.imm.f = v;
    else in.imm.i = v >= 0x1p63 ? (int64_t)(uint64_t)v : (int64_t)v;
    if (i) ir_text_add(t, ", ");
    kir_print_literal(t, &in);
  }
  ir_text_add(t, ")");
}

static void print_memory(const kir_kernel *k, ir_text *t, const kir_memory *m) {
  if (m->space == KIR_IMAGE) {
    print_image(t, m);
    return;
  }
  ir_text_format(t, "  %s %%%s: ", kir_word_of(kir_space_words, m->space), m->name);
  kir_print_type(t, m->type);
  print_extents(k, t, m);
  if (m->space == KIR_GLOBAL) print_param(k, t, m);
  if (m->space == KIR_LOCAL || m->space == KIR_SCRATCH) ir_text_format(t, " align=%u", m->align);
  if (m->overlay && m->overlay <= k->memories.count) ir_text_format(t, " overlay=%%%s", k->memories.at[m->overlay - 1].name);
  if (m->space == KIR_PRIVATE) ir_text_add(t, m->flags & KIR_MEM_REGS ? " regs" : " rows");
  if (m->space == KIR_CONSTANT) print_values(t, m);
  ir_text_add(t, "\n");
}

static void print_head(const kir_kernel *k, ir_text *t) {
  ir_text_format(t, "kernel @%s items=(%u,%u,%u) sub=", k->name, k->items[0], k->items[1], k->items[2]);
  if (k->sub == 0) ir_text_add(t, "none");
  else if (k->sub == UINT32_MAX) ir_text_add(t, "any");
  else ir_text_format(t, "%u", k->sub);
  ir_text_format(t, " mode=%s needs=(%s) {\n", kir_word_of(kir_mode_words, k->mode), k->needs ? k->needs : "");
  for (uint32_t i = 0; i < k->scalars.count; i++) print_scalar(t, &k->scalars.at[i]);
  for (uint32_t i = 0; i < k->memories.count; i++) print_memory(k, t, &k->memories.at[i]);
}

/* Numbers are given where a value is printed first, lines are those of the body. */
static void note_places(printer *p) {
  for (uint32_t i = 1; i < p->k->insts.count; i++) p->places[i].number = p->numbers[i];
}

void kir_print(const kir_kernel *k, ir_text *text) { kir_print_places(k, text, NULL); }

void kir_print_places(const kir_kernel *k, ir_text *text, kir_place *places) {
  if (text->failed || !k->insts.count) return;
  ir_arena scratch;
  ir_arena_init(&scratch, &k->arena->host);
  printer p = {.k = k, .text = text, .line = 1, .places = places};
  p.numbers = IR_NEW_ARRAY(&scratch, uint32_t, k->insts.count);
  p.uses = IR_NEW_ARRAY(&scratch, uint32_t, k->insts.count);
  p.user = IR_NEW_ARRAY(&scratch, uint32_t, k->insts.count);
  p.folded = IR_NEW_ARRAY(&scratch, uint8_t, k->insts.count);
  print_head(k, text);
  for (size_t i = 0; i < text->length && places; i++) p.line += text->at[i] == '\n';
  if (scratch.failed) {
    text->failed = true;
  } else if (kir_find_regions(k, &scratch, &p.regions)) {
    count_uses(&p);
    find_folded(&p);
    print_body(&p);
    if (places) note_places(&p);
  } else {
    ir_text_add(text, "  # the regions of this kernel do not nest\n");
  }
  ir_text_add(text, "}\n");
  ir_arena_free(&scratch);
}
