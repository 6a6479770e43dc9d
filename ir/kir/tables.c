/* tables: where the device takes a lane of a vector by number in one instruction, a float that depends on no more than four bits of a word is such a lane: of
   the values it can have. In: vectors of numbers made of fields of bits (weights of few bits) by operations that fold. Out: `permute` of literals by the
   word, shifted; the bits above the field are not looked at. */
#include "ir/kir_pass_private.h"

enum { FIELD_BITS = 4, ENTRIES = 1 << FIELD_BITS };

/* Bits of an unsigned value: (word >> shift), `width` of them, zeros above. */
typedef struct bit_field {
  uint32_t word, shift, width;
} bit_field;

typedef struct tabling {
  kir_clone c;
  bit_field *field;    /* by value; word 0: none */
  kir_value **entries; /* by value; null: it depends on more than a field */
  bool *last;          /* a value that depends on more reads it */
} tabling;

static bool literal_of(const kir_kernel *k, uint32_t value, kir_value *out) {
  const kir_inst *in = kir_at(k, value);
  if (in->op == KIR_splat) return literal_of(k, kir_arg(k, value, 0), out);
  if (in->op != KIR_const) return false;
  if (kir_is_float(in->type.base)) out->f = in->imm.f;
  else out->i = in->imm.i;
  return true;
}

static uint32_t mask_width(int64_t mask) {
  uint32_t width = 0;
  while (width < 32 && mask >> width & 1) width++;
  return mask == (INT64_C(1) << width) - 1 ? width : 0;
}

static bit_field field_of(const tabling *t, uint32_t i) {
  const kir_kernel *k = t->c.in;
  const kir_inst *in = kir_at(k, i);
  const uint32_t bits = kir_base_bits(in->type.base), from = in->arg_count ? kir_arg(k, i, 0) : 0;
  const bit_field own = {i, 0, bits};
  kir_value by = {0};
  if (!from || !t->field[from].word) return own;
  bit_field f = t->field[from];
  if (in->op == KIR_cast && !(in->flags & KIR_SAT)) {
    f.width = f.width < bits ? f.width : bits;
  } else if (in->op == KIR_shr && literal_of(k, kir_arg(k, i, 1), &by) && by.i >= 0 && by.i < (int64_t)f.width) {
    f.shift += (uint32_t)by.i, f.width -= (uint32_t)by.i;
  } else if (in->op == KIR_and && literal_of(k, kir_arg(k, i, 1), &by) && mask_width(by.i)) {
    f.width = f.width < mask_width(by.i) ? f.width : mask_width(by.i);
  } else {
    return own;
  }
  return f;
}

/* The one field that the operands depend on. */
static const bit_field *shared_field(const tabling *t, uint32_t i) {
  const kir_inst *in = kir_at(t->c.in, i);
  const bit_field *found = NULL;
  kir_value literal;
  for (uint32_t a = 0; a < in->arg_count; a++) {
    const uint32_t value = kir_arg(t->c.in, i, a);
    const bit_field *own = &t->field[value];
    if (literal_of(t->c.in, value, &literal)) continue;
    if (!t->entries[value] || (found && (found->word != own->word || found->shift != own->shift))) return NULL;
    found = own;
  }
  return found;
}

static bool fill_entry(const tabling *t, uint32_t i, uint32_t number, kir_value *out) {
  const kir_inst *in = kir_at(t->c.in, i);
  kir_value args[3];
  for (uint32_t a = 0; a < in->arg_count; a++) {
    const uint32_t value = kir_arg(t->c.in, i, a);
    if (t->entries[value]) args[a] = t->entries[value][number];
    else if (!literal_of(t->c.in, value, &args[a])) return false;
  }
  return kir_eval(in, kir_type_of(t->c.in, kir_arg(t->c.in, i, 0)), args, out);
}

static void find_entries(tabling *t, uint32_t i) {
  const kir_inst *in = kir_at(t->c.in, i);
  const bit_field own = kir_is_word(in->type) ? field_of(t, i) : (bit_field){0};
  kir_value entries[ENTRIES];
  if (own.word && own.word != i && own.width <= FIELD_BITS) {
    for (uint32_t n = 0; n < ENTRIES; n++) entries[n].i = n & ((1u << own.width) - 1);
    t->field[i] = own;
  } else {
    if (own.word) t->field[i] = own;
    if (!in->arg_count || in->arg_count > 3 || !(kir_is_elementwise(in->op) || in->op == KIR_cast || in->op == KIR_bitcast)) return;
    const bit_field *from = shared_field(t, i);
    if (!from) return;
    for (uint32_t n = 0; n < ENTRIES; n++)
      if (!fill_entry(t, i, n, &entries[n])) return;
    t->field[i] = *from;
  }
  t->entries[i] = IR_NEW_ARRAY(t->c.out->arena, kir_value, ENTRIES);
  if (t->entries[i]) memcpy(t->entries[i], entries, sizeof entries);
}

static void find_last(tabling *t, uint32_t i) {
  for (uint32_t a = 0; !t->entries[i] && a < kir_at(t->c.in, i)->arg_count; a++) t->last[kir_arg(t->c.in, i, a)] = true;
}

static uint32_t emit_table(tabling *t, uint32_t i) {
  kir_kernel *k = t->c.out;
  const kir_type type = kir_at(t->c.in, i)->type, word = kir_with_base(type, SNT_U32);
  uint32_t literals[ENTRIES];
  for (uint32_t n = 0; n < ENTRIES; n++) literals[n] = kir_emit_const(k, kir_element(type), t->entries[i][n].f);
  const uint32_t table = kir_emit_op(k, KIR_vec, type, ENTRIES, literals);
  const uint32_t from = t->c.map[t->field[i].word], wide = kir_same(kir_type_of(k, from), word) ? from : kir_cast(k, word, from);
  const uint32_t shift = t->field[i].shift;
  const uint32_t number = shift ? kir_2(k, KIR_shr, wide, kir_const_int(k, word, shift)) : wide;
  return kir_emit_op(k, KIR_permute, type, 2, (uint32_t[]){table, number});
}

bool kir_has_tables(const kir_kernel *k, const kir_caps *caps) {
  for (uint32_t i = 1; caps->permute == ENTRIES && i < k->insts.count; i++) {
    const kir_inst *in = kir_at(k, i);
    if ((in->op == KIR_and || in->op == KIR_shr) && in->type.lanes == ENTRIES && kir_is_word(in->type)) return true;
  }
  return false;
}

snt_result kir_pass_tables(const kir_kernel *in, kir_kernel *out, const kir_caps *caps, snt_diag *diag) {
  const size_t count = in->insts.count;
  tabling t = {0};
  (void)caps;
  SNT_TRY(kir_clone_begin(&t.c, in, out));
  t.field = IR_NEW_ARRAY(out->arena, bit_field, count);
  t.entries = IR_NEW_ARRAY(out->arena, kir_value *, count);
  t.last = IR_NEW_ARRAY(out->arena, bool, count);
  if (!t.field || !t.entries || !t.last) return kir_pass_end(out, "tables", diag);
  for (uint32_t i = 1; i < count; i++)
    if (kir_at(in, i)->type.lanes == ENTRIES) find_entries(&t, i);
  for (uint32_t i = 1; i < count; i++) find_last(&t, i);
  for (uint32_t i = 1; i < count && !out->failed; i++) {
    const bool table = t.entries[i] && t.last[i] && kir_at(in, i)->type.base == SNT_F32;
    if (table) t.c.map[i] = emit_table(&t, i);
    else kir_clone_inst(&t.c, i);
  }
  return kir_pass_end(out, "tables", diag);
}
