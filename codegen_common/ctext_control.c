/* Structured control as C statements. Carried values and results of regions become variables: declared before the region, assigned at
   its yields. A yield writes the carried variables as one parallel copy. */
#include "codegen_common/ctext_private.h"

static void declare(ctext *c, uint32_t value, uint32_t initial) {
  ctext_begin_line(c);
  ctext_type(c, kir_at(c->k, value)->type);
  ir_text_format(&c->out, " v%u", value);
  if (initial) {
    ir_text_add(&c->out, " = ");
    ctext_value(c, initial);
  }
  ir_text_add(&c->out, ";\n");
}

static void open_region(ctext *c, uint32_t id, const char *text, const ctext_site *site) {
  ctext_begin_line(c);
  ctext_expand(c, text, site);
  ir_text_add(&c->out, "\n");
  c->open[c->open_count++] = id;
  c->depth++;
}

static uint32_t end_of(const ctext *c, uint32_t opener) {
  uint32_t end = c->regions.close[opener];
  return kir_at(c->k, end)->op == KIR_else ? c->regions.close[end] : end;
}

static bool is_result(const ctext *c, uint32_t id) { return id < c->k->insts.count && kir_at(c->k, id)->op == KIR_result; }

static void hint(ctext *c, const kir_inst *s) {
  const char *text = s->flags & KIR_LOOP_ROLLED ? c->d->rolled
                     : s->lanes > 1             ? c->d->unroll_by
                     : s->flags & KIR_LOOP_FULL ? c->d->unroll
                                                : NULL;
  if (!text) return;
  const ctext_site site = {.number = {(uint64_t)s->lanes}};
  ctext_begin_line(c);
  ctext_expand(c, text, &site);
  ir_text_add(&c->out, "\n");
}

static void loop(ctext *c, uint32_t id) {
  const kir_inst *s = kir_at(c->k, id);
  for (uint32_t n = 0; n + 3 < s->arg_count; n++) declare(c, id + 1 + n, kir_arg(c->k, id, 3 + n));
  for (uint32_t r = end_of(c, id) + 1; is_result(c, r); r++) c->same[r] = id + 1 + kir_at(c->k, r)->index;
  hint(c, s);
  const ctext_site site = {.id = id, .type = s->type, .operand = s->type};
  const char *text = ctext_cell_for(c, KIR_loop, id, s->type);
  if (text) open_region(c, id, text, &site);
}

static void branch(ctext *c, uint32_t id) {
  for (uint32_t r = end_of(c, id) + 1; is_result(c, r); r++) declare(c, r, 0);
  const ctext_site site = {.id = id};
  const char *text = ctext_cell_for(c, KIR_if, id, kir_t(SNT_BOOL, 1));
  if (text) open_region(c, id, text, &site);
}

static void assign(ctext *c, uint32_t variable, uint32_t value) {
  ctext_begin_line(c);
  ir_text_id(&c->out, 'v', variable);
  ir_text_add(&c->out, " = ");
  ctext_value(c, value);
  ir_text_add(&c->out, ";\n");
}

/* Does a later assignment of this yield read a variable that an earlier one has overwritten? */
static bool overlaps(const ctext *c, uint32_t id, uint32_t first) {
  const kir_inst *s = kir_at(c->k, id);
  for (uint32_t n = 1; n < s->arg_count; n++) {
    uint32_t read = c->same[kir_arg(c->k, id, n)];
    if (read >= first && read < first + n) return true;
  }
  return false;
}

static void carry_on(ctext *c, uint32_t id, uint32_t loop_id) {
  const kir_inst *s = kir_at(c->k, id);
  const uint32_t first = loop_id + 1;
  const bool copy = overlaps(c, id, first);
  for (uint32_t n = 0; copy && n < s->arg_count; n++) {
    ctext_begin_line(c);
    ctext_type(c, kir_at(c->k, first + n)->type);
    ir_text_format(&c->out, " n%u = ", first + n);
    ctext_value(c, kir_arg(c->k, id, n));
    ir_text_add(&c->out, ";\n");
  }
  for (uint32_t n = 0; n < s->arg_count; n++) {
    uint32_t value = kir_arg(c->k, id, n);
    if (copy) ctext_begin_line(c), ir_text_format(&c->out, "v%u = n%u;\n", first + n, first + n);
    else if (c->same[value] != first + n) assign(c, first + n, value);
  }
}

static void yield(ctext *c, uint32_t id) {
  const kir_inst *s = kir_at(c->k, id);
  if (!s->arg_count || !c->open_count) return;
  uint32_t opener = c->open[c->open_count - 1];
  if (kir_at(c->k, opener)->op == KIR_loop) {
    carry_on(c, id, opener);
    return;
  }
  uint32_t result = end_of(c, opener) + 1;
  for (uint32_t n = 0; n < s->arg_count && is_result(c, result + n); n++) assign(c, result + n, kir_arg(c->k, id, n));
}

static void close_region(ctext *c, uint32_t id, bool end) {
  const char *text = ctext_cell_for(c, end ? KIR_end : KIR_else, id, kir_t(SNT_BOOL, 1));
  if (!text || !c->open_count) return;
  c->depth--;
  ctext_begin_line(c);
  ir_text_format(&c->out, "%s\n", text);
  if (end) c->open_count--;
  else c->depth++;
}

bool ctext_control(ctext *c, uint32_t id) {
  switch (kir_at(c->k, id)->op) {
  case KIR_loop: loop(c, id); return true;
  case KIR_if: branch(c, id); return true;
  case KIR_else: close_region(c, id, false); return true;
  case KIR_end: close_region(c, id, true); return true;
  case KIR_yield: yield(c, id); return true;
  case KIR_carry:
  case KIR_result: return true; /* declared with their region */
  default: return false;
  }
}
