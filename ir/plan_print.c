/* The text of a plan: ir/PLAN.txt. Kernels by name, constants by size; one buffer or step a line. */
#include "ir/plan.h"

static const char *const kinds[] = {"input", "output", "state", "constant", "scratch"};

static void print_symbols(const expr_pool *x, ir_text *out) {
  if (!x->symbols.count) return;
  ir_text_add(out, "symbols {");
  for (uint32_t i = 0; i < x->symbols.count; i++) {
    const expr_symbol *s = &x->symbols.at[i];
    ir_text_format(out, " %s: min=%lld max=%lld multiple_of=%lld hint=%lld", s->name, (long long)s->min, (long long)s->max, (long long)s->multiple_of, (long long)s->hint);
  }
  ir_text_add(out, " }\n");
}

static void print_buffer(const ir_plan *p, uint32_t number, ir_text *out) {
  const plan_buffer *b = &p->buffers.at[number];
  ir_text_format(out, "  b%u: %s %s[", number, kinds[b->kind], ir_dtypes[b->dtype].name);
  for (uint32_t i = 0; i < b->rank; i++) {
    if (i) ir_text_add(out, ",");
    expr_print(p->pool, b->dims[i], out);
  }
  ir_text_add(out, "] bytes=");
  expr_print(p->pool, b->bytes, out);
  if (b->kind == PLAN_SCRATCH) {
    ir_text_add(out, " offset=");
    expr_print(p->pool, b->offset, out);
  }
  ir_text_format(out, " align=%u", b->align);
  if (b->first_step != UINT32_MAX) ir_text_format(out, " life=%u..%u", b->first_step, b->last_step);
  if (b->name && *b->name) ir_text_format(out, " name=\"%s\"", b->name);
  ir_text_add(out, "\n");
}

static void print_step(const ir_plan *p, const plan_step *s, ir_text *out) {
  static const char *const access[] = {"", "r ", "w ", "rw "};
  ir_text_format(out, "  %s%s: groups=", s->barrier ? "barrier " : "", s->name);
  expr_print(p->pool, s->groups, out);
  ir_text_add(out, " (");
  for (uint32_t i = 0; i < s->binding_count; i++) {
    ir_text_format(out, "%s%sb%u", i ? ", " : "", access[s->bindings[i].access & 3], s->bindings[i].buffer);
    if (s->bindings[i].offset != 0) {
      ir_text_add(out, "+");
      expr_print(p->pool, s->bindings[i].offset, out);
    }
  }
  ir_text_add(out, ")");
  for (uint32_t i = 0; i < s->scalar_count; i++) {
    ir_text_add(out, i ? ", " : " scalars (");
    expr_print(p->pool, s->scalars[i], out);
  }
  if (s->scalar_count) ir_text_add(out, ")");
  if (s->choice) ir_text_format(out, " choice=%u", s->choice);
  for (uint32_t i = 0; i < s->guard_count; i++) {
    ir_text_add(out, " when ");
    expr_print(p->pool, s->guards[i].lo, out);
    ir_text_add(out, "..");
    expr_print(p->pool, s->guards[i].hi, out);
    ir_text_add(out, " holds ");
    expr_print(p->pool, s->guards[i].value, out);
  }
  ir_text_add(out, "\n");
}

void plan_print(const ir_plan *p, ir_text *out) {
  print_symbols(p->pool, out);
  ir_text_format(out, "plan @%s {\n", p->title ? p->title : "");
  for (uint32_t i = 0; i < p->buffers.count; i++) print_buffer(p, i, out);
  ir_text_add(out, "  scratch=");
  expr_print(p->pool, p->scratch_bytes, out);
  ir_text_add(out, "\n");
  for (uint32_t i = 0; i < p->steps.count; i++) print_step(p, &p->steps.at[i], out);
  ir_text_add(out, "}\n");
}
