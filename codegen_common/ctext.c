/* The C-like printer: legal kernel IR in, one kernel's source out. Templates are expanded from the dialect's cells; what differs
   between languages is there or in a helper text, never here. One statement an instruction, named after its id. */
#include "codegen_common/ctext_private.h"
#include <float.h>
#include <math.h>
#include <stdio.h>

void ctext_fail(ctext *c, snt_result result, uint32_t id, const char *format, ...) {
  if (c->result != SNT_OK) return;
  char text[200];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  c->result = ir_fail(c->diag, result, c->d->name, 0, "kernel %s, %%%u: %s", c->k->name, id, text);
}

ir_text ctext_divert(ctext *c) {
  const ir_text saved = c->out;
  ir_text_init(&c->out, c->arena);
  return saved;
}

const char *ctext_restore(ctext *c, ir_text saved) {
  const char *text = c->out.at ? c->out.at : "";
  saved.failed |= c->out.failed;
  c->out = saved;
  return text;
}

/* ---- cells ---- */
void dialect_find_rows(const dialect *d, dialect_index *index) {
  for (uint32_t level = 0; d; d = d->base, level++) {
    memset(index->first[level], (int)d->cell_count, KIR_OP_COUNT); /* none: past the last */
    for (uint32_t row = d->cell_count; row-- > 0;) index->first[level][d->cells[row].op] = (uint8_t)row;
  }
}

const char *dialect_cell(const dialect *d, const dialect_index *index, kir_op op, uint32_t type, uint32_t shape) {
  for (uint32_t level = 0; d; d = d->base, level++)
    for (uint32_t row = index->first[level][op]; row < d->cell_count && d->cells[row].op == op; row++)
      if (d->cells[row].types >> type & 1u && (!d->cells[row].shape || d->cells[row].shape == shape)) return d->cells[row].text;
  return NULL;
}

/* f16 and bf16 values are bits: they may be moved and converted, no more. */
static bool moves_bits(kir_op op) {
  switch (op) {
  case KIR_select:
  case KIR_bitcast:
  case KIR_splat:
  case KIR_vec:
  case KIR_extract:
  case KIR_insert:
  case KIR_shuffle:
  case KIR_mma:
  case KIR_mma_make:
  case KIR_sg_shuffle: return true;
  default: return false;
  }
}

static bool by_result(kir_op op) {
  return kir_ops[op].flags & KIR_MEM || op == KIR_vec || op == KIR_iota || op == KIR_mma_make || op == KIR_loop;
}

static kir_type operand_type(const ctext *c, uint32_t id) {
  const kir_inst *s = kir_at(c->k, id);
  if (s->op == KIR_select) return kir_at(c->k, kir_arg(c->k, id, 1))->type;
  if (by_result((kir_op)s->op) || !s->arg_count) return s->type;
  return kir_at(c->k, kir_arg(c->k, id, 0))->type;
}

/* Whole numbers that a loop carries side by side go ways of their own (fusion/emit/repeat.c). */
static bool goes_its_own_way(const ctext *c) {
  uint32_t n = c->open_count;
  while (n && kir_at(c->k, c->open[n - 1])->op != KIR_loop) n--;
  const kir_inst *loop = n ? kir_at(c->k, c->open[n - 1]) : NULL;
  return loop && loop->flags & KIR_LOOP_ROLLED && loop->arg_count > 3;
}

static uint32_t shape_of(const ctext *c, uint32_t id) {
  const kir_inst *s = kir_at(c->k, id);
  if (kir_ops[s->op].flags & KIR_MEM) return CT_SCALAR;
  if (s->arg_count && kir_at(c->k, kir_arg(c->k, id, 0))->type.lanes > 1) return CT_VECTOR;
  if (s->op == KIR_select && (s->type.lanes > 1 || (ir_dtypes[s->type.base].is_int && goes_its_own_way(c)))) return CT_PICK;
  return s->op != KIR_select && kir_ops[s->op].result != KIR_R_NONE && s->type.lanes > 1 ? CT_VECTOR : CT_SCALAR;
}

const char *ctext_cell_for(ctext *c, kir_op op, uint32_t id, kir_type operand) {
  const uint32_t shape = op == kir_at(c->k, id)->op ? shape_of(c, id) : operand.lanes > 1 ? CT_VECTOR : CT_SCALAR;
  const char *text = dialect_cell(c->d, &c->index, op, operand.base, shape);
  if (CT_HALVES >> operand.base & 1u && !moves_bits(op) && !(kir_ops[op].flags & KIR_MEM)) text = "!widen";
  if (!text)
    ctext_fail(c, SNT_E_INTERNAL, id, "%s has no %s of %s x%u", c->d->name, kir_ops[op].name, ir_dtypes[operand.base].name, operand.lanes);
  else if (*text == '!')
    ctext_fail(c, SNT_E_INTERNAL, id, "%s of %s x%u must have been removed by pass %s", kir_ops[op].name, ir_dtypes[operand.base].name,
               operand.lanes, text + 1);
  else if (*text == '?') ctext_fail(c, SNT_E_UNSUPPORTED, id, "%s: %s", kir_ops[op].name, text + 1);
  else return text;
  return NULL;
}

/* ---- escapes ---- */
enum { AS_UNSIGNED, AS_SIGNED, AS_WIDE };
static void sibling_type(ctext *c, kir_type t, int kind) {
  static const uint8_t by_bytes[3][9] = {{[1] = SNT_U8, [2] = SNT_U16, [4] = SNT_U32, [8] = SNT_U64},
                                         {[1] = SNT_I8, [2] = SNT_I16, [4] = SNT_I32, [8] = SNT_I64},
                                         {[1] = SNT_U32, [2] = SNT_U32, [4] = SNT_U32, [8] = SNT_U64}};
  const uint32_t bytes = t.base == SNT_BOOL ? 4 : ir_dtypes[t.base].bytes;
  ctext_type(c, kir_t(by_bytes[kind][bytes], t.lanes));
}

static void argument(ctext *c, const ctext_site *site, uint32_t n) {
  if (n < 2 && site->text[n]) ir_text_add(&c->out, site->text[n]);
  else if (site->id && n < kir_at(c->k, site->id)->arg_count) ctext_value(c, kir_arg(c->k, site->id, n));
}

static void all_arguments(ctext *c, const ctext_site *site) {
  for (uint32_t n = 0; n < kir_at(c->k, site->id)->arg_count; n++) {
    if (n) ir_text_add(&c->out, ", ");
    argument(c, site, n);
  }
}

static void repeated(ctext *c, const ctext_site *site) {
  for (uint32_t n = 0; n < site->type.lanes; n++) {
    if (n) ir_text_add(&c->out, ", ");
    argument(c, site, 0);
  }
}

static void shuffled_lanes(ctext *c, const ctext_site *site) {
  const kir_inst *s = kir_at(c->k, site->id);
  const char *extract = ctext_cell_for(c, KIR_extract, site->id, site->operand);
  for (uint32_t n = 2; extract && n < s->arg_count; n++) {
    int64_t lane = 0;
    if (!ctext_const_int(c, kir_arg(c->k, site->id, n), &lane))
      ctext_fail(c, SNT_E_INTERNAL, site->id, "the lanes of a shuffle must be literals");
    const bool second = lane >= site->operand.lanes;
    const ir_text saved = ctext_divert(c);
    ctext_value(c, kir_arg(c->k, site->id, second));
    const ctext_site one = {
        .text = {ctext_restore(c, saved)}, .lane = (uint32_t)(second ? lane - site->operand.lanes : lane), .type = kir_t(s->type.base, 1)};
    if (n > 2) ir_text_add(&c->out, ", ");
    ctext_expand(c, extract, &one);
  }
}

/* coef * value + .. + constant, modulo the width; signed sums are formed unsigned. */
static void index_sum(ctext *c, const ctext_site *site) {
  const kir_inst *s = kir_at(c->k, site->id);
  int64_t coef = 0;
  for (uint32_t n = 0; n + 1 < s->arg_count; n += 2) {
    const uint32_t value = kir_arg(c->k, site->id, n + 1);
    const bool literal = ctext_const_int(c, kir_arg(c->k, site->id, n), &coef), minus = literal && coef < 0;
    if (n || minus) ir_text_add(&c->out, minus ? n ? " - " : "-" : " + ");
    if (!literal) ctext_value(c, kir_arg(c->k, site->id, n)), ir_text_add(&c->out, " * ");
    else if (coef != 1 && coef != -1)
      ctext_literal(c, kir_t(s->type.base == SNT_I64 ? SNT_I64 : SNT_U32, 1), minus ? -coef : coef, 0), ir_text_add(&c->out, " * ");
    if (kir_at(c->k, value)->type.base == SNT_I32) {
      ir_text_add(&c->out, "(");
      ctext_type(c, kir_t(SNT_U32, 1));
      ir_text_add(&c->out, ")");
    }
    ctext_value(c, value);
  }
  if (s->arg_count == 0 || s->imm.i) {
    const bool minus = s->imm.i < 0 && s->arg_count;
    if (s->arg_count) ir_text_add(&c->out, minus ? " - " : " + ");
    ctext_literal(c, kir_t(s->type.base == SNT_I64 ? SNT_I64 : SNT_U32, 1), minus ? -s->imm.i : s->imm.i, 0);
  }
}

static void rounded_operand(ctext *c, const ctext_site *site) {
  const uint32_t round = kir_at(c->k, site->id)->flags & 7u;
  const kir_op op[] = {KIR_NONE, KIR_rint, KIR_NONE, KIR_ceil, KIR_floor};
  const char *text = round < IR_COUNT(op) && op[round] != KIR_NONE
                         ? dialect_cell(c->d, &c->index, op[round], site->operand.base, site->operand.lanes > 1 ? CT_VECTOR : CT_SCALAR)
                         : "$0";
  ctext_expand(c, text, &(ctext_site){.id = site->id, .type = site->operand, .operand = site->operand});
}

/* Operand 1 as a shift amount: modulo the width. */
static void shift_amount(ctext *c, const ctext_site *site) {
  const uint32_t amount = kir_arg(c->k, site->id, 1);
  const int64_t mask = ir_dtypes[site->operand.base].bytes * 8 - 1;
  int64_t known;
  if (ctext_const_int(c, amount, &known)) {
    ir_text_format(&c->out, "%lld", (long long)(known & mask));
    return;
  }
  ir_text_add(&c->out, "(");
  ctext_value(c, amount);
  ir_text_format(&c->out, " & %lld)", (long long)mask);
}

/* What operand 1 is before a shift to the right by a literal, and by how many bits. */
static void shifted(ctext *c, const ctext_site *site) {
  const uint32_t value = kir_arg(c->k, site->id, 1);
  int64_t by = 0;
  const bool shifts = kir_at(c->k, value)->op == KIR_shr && ctext_const_int(c, kir_arg(c->k, value, 1), &by);
  ctext_value(c, shifts ? kir_arg(c->k, value, 0) : value);
  ir_text_format(&c->out, ", %lld", (long long)by);
}

/* Workgroups of so many items that are to be on a unit at once: sixteen subgroups of 32, which leave each item 128 of 65536 registers;
   three quarters of them, or half, where the fragments that a loop carries are 64 registers, or 128, or together with those of a first loop
   around more than 64; those that lanes take apart inside a loop are beside what it carries, 96 with
   them as 128. */
static uint32_t launch_groups(const kir_kernel *k, uint32_t items) {
  enum { FEW = 8, MANY = 16, MANY_TAKEN = 12, ELEMENTS = 8 };
  uint32_t own = 0, around = 0, most = 0, together = 0, loops = 0, taken = 0;
  for (uint32_t i = 1; *k->needs && i < k->insts.count; i++) {
    const kir_inst *in = kir_at(k, i);
    if (in->op == KIR_loop) around = around ? around : own, own = 0;
    own += in->op == KIR_carry && in->type.frag;
    loops += in->op == KIR_loop;
    loops -= in->op == KIR_end && kir_at(k, in->index)->op == KIR_loop;
    taken += in->op == KIR_mma_get && loops > 0;
    most = own > most ? own : most;
    together = around + own > together ? around + own : together;
  }
  const uint32_t live = most + taken / ELEMENTS, quarters = most >= MANY || (taken && live >= MANY_TAKEN) ? 2
                                                            : most >= FEW || live > FEW || together > FEW ? 3
                                                                                                          : 4;
  return items > 256 ? 1 : (16 / ((items + 31) / 32) * quarters + 3) / 4;
}

static void numbers(ctext *c, char escape, const ctext_site *site) {
  const kir_inst *s = site->id ? kir_at(c->k, site->id) : NULL;
  uint64_t value = 0;
  switch (escape) {
  case 'X': value = site->number[0]; break;
  case 'Y': value = site->number[1]; break;
  case 'Z': value = site->number[2]; break;
  case 'n': value = site->type.lanes; break;
  case 'o': value = site->operand.lanes; break;
  case 'l': value = site->lane; break;
  case 'B': value = ir_dtypes[site->operand.base].bytes * 8u - 1; break;
  case 'K': value = s ? s->index : 0; break;
  case 'c': value = site->number[0] * site->number[1] * site->number[2]; break;
  case 'g': value = launch_groups(c->k, site->number[0] * site->number[1] * site->number[2]); break;
  case 'p': value = s ? (uint64_t)s->lanes : 0; break;
  case 'i': value = s ? (uint64_t)s->imm.i : 0; break;
  case 'f': value = s && s->op == KIR_prefetch ? (s->flags & (KIR_IS_RW | KIR_IS_FAR)) / KIR_IS_RW : s ? s->flags : 0; break;
  default: break;
  }
  if (escape == 'n' && value == 1) return;
  ir_text_format(&c->out, "%llu", (unsigned long long)value);
}

static void memory_part(ctext *c, char escape, const ctext_site *site) {
  if (!site->memory) return;
  const kir_memory *m = &c->k->memories.at[site->memory - 1];
  switch (escape) {
  case 'm': ctext_memory_name(c, site->memory - 1); break;
  case 'j': ctext_index(c, site->id); break;
  case 'q': ir_text_add(&c->out, c->d->space[m->space]); break;
  case 'e': ctext_storage(c, m->type); break;
  case 'S': ir_text_format(&c->out, "%u", (m->flags & KIR_MEM_LINEAR ? 1u : 0) + (m->flags & KIR_MEM_CLAMP ? 2u : 0)); break;
  default: break;
  }
}

static void expand_one(ctext *c, char escape, const ctext_site *site) {
  const kir_inst *s = site->id ? kir_at(c->k, site->id) : NULL;
  switch (escape) {
  case '0':
  case '1':
  case '2':
  case '3': argument(c, site, (uint32_t)(escape - '0')); break;
  case 'V': argument(c, site, s->arg_count - 1u); break;
  case 'W': argument(c, site, s->arg_count - 2u); break;
  case 'a': all_arguments(c, site); break;
  case 'D': repeated(c, site); break;
  case 'h': shuffled_lanes(c, site); break;
  case 'y': index_sum(c, site); break;
  case 'v': ir_text_id(&c->out, 'v', site->id); break;
  case 't': ctext_type(c, site->type); break;
  case 'T': ctext_type(c, site->operand); break;
  case 'b': ctext_type(c, kir_t(site->type.base, 1)); break;
  case 'u': sibling_type(c, site->operand, AS_UNSIGNED); break;
  case 's': sibling_type(c, site->operand, AS_SIGNED); break;
  case 'w': sibling_type(c, site->operand, AS_WIDE); break;
  case 'z':
    for (uint32_t i = 0; i < site->type.lanes; i++) ir_text_format(&c->out, i ? ", %u" : "%u", i);
    break;
  case 'x': ir_text_format(&c->out, "%x", site->lane); break;
  case 'k': ir_text_format(&c->out, "%c", "xyz"[s->index % 3]); break;
  case 'M': shift_amount(c, site); break;
  case 'P': shifted(c, site); break;
  case 'R': rounded_operand(c, site); break;
  case 'r': ir_text_add(&c->out, c->d->round_suffix[(s->flags & 7) % 5]); break;
  case 'm':
  case 'j':
  case 'q':
  case 'e':
  case 'S': memory_part(c, escape, site); break;
  default: numbers(c, escape, site);
  }
}

void ctext_expand(ctext *c, const char *text, const ctext_site *site) {
  if (c->result != SNT_OK || !text) return;
  while (*text) {
    const char *plain = text;
    while (*text && *text != '$') text++;
    if (text != plain) ir_text_put(&c->out, plain, (size_t)(text - plain));
    if (*text && text[1]) expand_one(c, text[1], site), text += 2;
    else if (*text) text++;
  }
}

void ctext_begin_line(ctext *c) {
  static const char blanks[] = "                ";
  for (size_t left = c->depth * 2, some; left; left -= some) {
    some = left < sizeof blanks - 1 ? left : sizeof blanks - 1;
    ir_text_put(&c->out, blanks, some);
  }
}

void ctext_line(ctext *c, const char *text, const ctext_site *site) {
  ctext_begin_line(c);
  ctext_expand(c, text, site);
  ir_text_add(&c->out, ";\n");
}

/* ---- instructions ---- */
static const char *cast_text(ctext *c, uint32_t id, kir_type from) {
  const kir_inst *s = kir_at(c->k, id);
  const uint32_t shape = s->type.lanes > 1 ? CT_VECTOR : CT_SCALAR;
  for (const dialect *d = c->d; d; d = d->base) {
    for (uint32_t i = 0; i < d->cast_count; i++) {
      const ctext_cast *row = &d->casts[i];
      if ((row->shape == CT_ANY_SHAPE || row->shape == shape) && row->from >> from.base & 1 && row->to >> s->type.base & 1 &&
          (!row->saturate || s->flags & KIR_SAT))
        return row->text;
    }
  }
  ctext_fail(c, SNT_E_INTERNAL, id, "%s has no conversion from %s to %s", c->d->name, ir_dtypes[from.base].name,
             ir_dtypes[s->type.base].name);
  return NULL;
}

static void literal_lane(ctext *c, uint32_t id, ctext_site *site) {
  int64_t lane = 0;
  if (ctext_const_int(c, kir_arg(c->k, id, 1), &lane)) site->lane = (uint32_t)lane;
  else ctext_fail(c, SNT_E_INTERNAL, id, "a run-time lane must have been removed by pass legalise");
}

static const char *text_for(ctext *c, uint32_t id, ctext_site *site) {
  const kir_inst *s = kir_at(c->k, id);
  if (s->op == KIR_cast) return cast_text(c, id, site->operand);
  if (s->op == KIR_extract || s->op == KIR_insert || s->op == KIR_mma_get) literal_lane(c, id, site);
  if (s->op == KIR_pack2 || s->op == KIR_unpack2)
    return ctext_cell_for(c, (kir_op)s->op, id, kir_t(s->index == SNT_BF16 ? SNT_U32 : SNT_F32, 1));
  return ctext_cell_for(c, (kir_op)s->op, id, site->operand);
}

static void plain(ctext *c, uint32_t id) {
  const kir_inst *s = kir_at(c->k, id);
  ctext_site site = {.id = id, .type = s->type, .operand = operand_type(c, id), .number = {c->k->items[0], c->k->items[1], c->k->items[2]}};
  if (kir_ops[s->op].flags & KIR_MEM) site.memory = s->index + 1;
  const char *text = text_for(c, id, &site);
  if (!text) return;
  ctext_begin_line(c);
  if (kir_ops[s->op].result != KIR_R_NONE) {
    ctext_type(c, s->type);
    ir_text_add(&c->out, " ");
    ir_text_id(&c->out, 'v', id);
    ir_text_add(&c->out, " = ");
  }
  ctext_expand(c, text, &site);
  ir_text_add(&c->out, ";\n");
}

static snt_result visit_inst(void *self, const kir_kernel *k, uint32_t id) {
  ctext *c = self;
  switch (kir_at(k, id)->op) {
  case KIR_const:
  case KIR_scalar: break; /* written where they are used */
  case KIR_add:
    if (c->uses[id] && c->uses[id] == c->folded[id]) break; /* written in the addresses it is part of */
    plain(c, id);
    break;
  case KIR_own: ctext_own_call(c, id); break;
  case KIR_inline: ctext_own_body(c, id); break;
  case KIR_load: ctext_load(c, id); break;
  case KIR_store: ctext_store(c, id); break;
  case KIR_async_copy: ctext_copy(c, id); break;
  default:
    if (!ctext_control(c, id)) plain(c, id);
  }
  return c->result;
}

static snt_result visit_begin(void *self, const kir_kernel *k) {
  ctext *c = self;
  const ctext_site items = {.number = {k->items[0], k->items[1], k->items[2]}};
  const ctext_site words = {.number = {kir_block_bytes(k) / 4 + 1}};
  const ctext_site count = {.number = {kir_block_bytes(k) / 4}};
  if (c->d->block_type) ctext_expand(c, c->d->block_type, &words);
  ctext_expand(c, c->d->kernel, &items);
  ir_text_format(&c->out, "%s(", k->name);
  ctext_signature(c);
  ir_text_add(&c->out, ") {\n");
  c->depth = 1;
  const ir_text saved = ctext_divert(c);
  ctext_expand(c, c->d->word, &count);
  const ctext_site group = {.text = {ctext_restore(c, saved)}};
  ctext_line(c, c->d->group, &group);
  ctext_arrays(c);
  return c->result;
}

static snt_result visit_end(void *self, const kir_kernel *k) {
  ctext *c = self;
  (void)k;
  ir_text_add(&c->out, "}\n");
  return c->result;
}

/* ---- the whole text ---- */
static bool is_needed(const dialect *d, uint32_t number, const bool *wanted, const char *body) {
  const char *trigger = d->helpers[number].trigger;
  bool found = strstr(body, trigger) != NULL;
  for (uint32_t i = number + 1; i < *d->helper_count && !found; i++) found = wanted[i] && strstr(d->helpers[i].text, trigger);
  return found;
}

/* A number as what is added before a logarithm: it is meant as it is written. */
static bool names_denormals(const kir_kernel *k) {
  bool found = false;
  for (uint32_t i = 1; i < k->insts.count && !found; i++) {
    const kir_inst *in = kir_at(k, i);
    found = in->op == KIR_const && in->type.base == SNT_F32 && in->imm.f != 0 && fabs(in->imm.f) < FLT_MIN;
  }
  return found;
}

/* May results below 2^-126 be 0? Those of f64 may not, and a device that is asked does not tell them from those of f32; nor what a root is taken of, since
   1 / sqrt(2^-132) is 2^66; nor a number that the kernel names. */
static bool may_flush(const kir_kernel *k, const char *body) {
  return (k->mode == SNT_NUMERICS_DEFAULT || k->mode == SNT_NUMERICS_FAST) && !strstr(body, "double") && !strstr(body, "sqrt(") &&
         !names_denormals(k);
}

static void put_helpers(ctext *c, ir_text *out, const char *body) {
  bool *wanted = IR_NEW_ARRAY(c->arena, bool, *c->d->helper_count + 1u);
  if (!wanted) return;
  for (uint32_t i = *c->d->helper_count; i-- > 0;) wanted[i] = is_needed(c->d, i, wanted, body);
  for (uint32_t i = 0; i < *c->d->helper_count; i++)
    if (*c->d->helpers[i].trigger ? wanted[i] : may_flush(c->k, body)) ir_text_add(out, c->d->helpers[i].text);
}

snt_result ctext_emit(const dialect *d, const kir_kernel *k, ir_arena *arena, codegen_code *out, snt_diag *diag) {
  static const kernel_visitor visitor = {visit_begin, visit_inst, visit_end};
  ctext c = {.d = d, .k = k, .arena = arena, .diag = diag, .result = SNT_OK};
  dialect_find_rows(d, &c.index);
  c.same = IR_NEW_ARRAY(arena, uint32_t, k->insts.count + 1u);
  c.open = IR_NEW_ARRAY(arena, uint32_t, k->insts.count + 1u);
  c.uses = IR_NEW_ARRAY(arena, uint32_t, k->insts.count + 1u);
  c.folded = IR_NEW_ARRAY(arena, uint32_t, k->insts.count + 1u);
  c.anchors = IR_NEW_ARRAY(arena, uint64_t, k->insts.count + 1u);
  if (!c.same || !c.open || !c.uses || !c.folded || !c.anchors) return ir_fail(diag, SNT_E_HOST_MEM, d->name, 0, "out of memory");
  if (!kir_find_regions(k, arena, &c.regions)) return ir_fail(diag, SNT_E_INTERNAL, d->name, 0, "kernel %s: regions do not nest", k->name);
  for (uint32_t i = 0; i < k->insts.count; i++) c.same[i] = i;
  ctext_count_uses(&c);
  ir_text_init(&c.out, arena);
  SNT_TRY(kernel_walk(k, &visitor, &c));
  ir_text whole;
  ir_text_init(&whole, arena);
  put_helpers(&c, &whole, c.out.at);
  ctext_own_heads(&c, &whole);
  ir_text_put(&whole, c.out.at, c.out.length);
  if (whole.failed || c.out.failed || arena->failed) return ir_fail(diag, SNT_E_HOST_MEM, d->name, 0, "out of memory");
  *out = (codegen_code){whole.at, whole.length};
  return SNT_OK;
}
