/* The text of a plan: ir/PLAN.txt. Kernels by name and scalars, constants without their bytes; one kernel, buffer or step a line.
   plan_parse reads it back: print(parse(text)) gives the same bytes. */
#include "ir/literal.h"
#include "ir/plan.h"
#include "ir/plan/text.h"
#include <inttypes.h>

const char *const plan_image_words[PLAN_IMAGE_COUNT] = {"none", "chw", "hwc", "hw"};
const char *const plan_buffer_words[PLAN_BUFFER_KINDS] = {"input", "output", "state", "constant", "scratch"};
const char *const plan_access_words[4] = {"none", "r", "w", "rw"};

static void put_expr(const ir_plan *p, const char *before, ir_expr e, ir_text *out) {
  ir_text_add(out, before);
  expr_print(p->pool, e, out);
}

static void print_symbols(const expr_pool *x, ir_text *out) {
  if (!x->symbols.count) return;
  ir_text_add(out, "symbols { ");
  for (uint32_t i = 0; i < x->symbols.count; i++) {
    const expr_symbol *s = &x->symbols.at[i];
    ir_text_format(out, "%s%s: min=%" PRId64 " max=%" PRId64 " multiple_of=%" PRId64 " hint=%" PRId64, i ? ", " : "", s->name, s->min,
                   s->max, s->multiple_of, s->hint);
  }
  ir_text_add(out, " }\n");
}

static void print_kernel(const plan_kernel *kernel, ir_text *out) {
  const kir_kernel *k = kernel->kernel;
  ir_text_format(out, "  kernel %s %s", k->name, kernel->kind);
  for (uint32_t i = 0; i < k->scalars.count; i++)
    ir_text_format(out, "%s%s@%u", i ? ", " : " (", ir_dtypes[k->scalars.at[i].type.base].name, k->scalars.at[i].offset);
  ir_text_add(out, k->scalars.count ? ")\n" : "\n");
}

static void print_buffer(const ir_plan *p, uint32_t number, ir_text *out) {
  const plan_buffer *b = &p->buffers.at[number];
  ir_text_format(out, "  b%u: %s %s[", number, plan_buffer_words[b->kind], ir_dtypes[b->dtype].name);
  for (uint32_t i = 0; i < b->rank; i++) put_expr(p, i ? "," : "", b->dims[i], out);
  put_expr(p, "] bytes=", b->bytes, out);
  if (b->kind == PLAN_SCRATCH) put_expr(p, " offset=", b->offset, out);
  ir_text_format(out, " align=%u", b->align);
  if (b->first_step != UINT32_MAX) ir_text_format(out, " life=%u..%u", b->first_step, b->last_step);
  if (b->node) ir_text_format(out, " node=%u", b->node);
  if (b->image) ir_text_format(out, " image=%s", plan_image_words[b->image]);
  if (b->name && *b->name) {
    ir_text_add(out, " name=");
    ir_put_quoted(out, b->name);
  }
  ir_text_add(out, "\n");
}

static void print_bindings(const ir_plan *p, const plan_step *s, ir_text *out) {
  ir_text_add(out, " (");
  for (uint32_t i = 0; i < s->binding_count; i++) {
    const plan_binding *b = &s->bindings[i];
    ir_text_format(out, "%s%s b%u", i ? ", " : "", plan_access_words[b->access & 3], b->buffer);
    if (b->swap) {
      ir_text_format(out, " or b%u if ", b->other);
      put_expr(p, "", b->swap, out);
      ir_text_add(out, " ");
    }
    put_expr(p, "[", b->offset, out);
    put_expr(p, ", ", b->bytes, out);
    ir_text_add(out, "]");
  }
  ir_text_add(out, ")");
}

static void print_conditions(const ir_plan *p, const plan_step *s, ir_text *out) {
  if (s->choice) ir_text_format(out, " choice=%u", s->choice);
  for (uint32_t i = 0; i < s->guard_count; i++) {
    put_expr(p, " when ", s->guards[i].lo, out);
    put_expr(p, " <= ", s->guards[i].value, out);
    put_expr(p, " < ", s->guards[i].hi, out);
  }
}

static void indent(uint32_t level, ir_text *out) {
  for (uint32_t i = 0; i < level; i++) ir_text_add(out, "  ");
}

static void print_step(const ir_plan *p, const plan_step *s, ir_text *out) {
  ir_text_format(out, "%sstep %s kernel=%u", s->barrier ? "barrier " : "", s->name, s->kernel);
  put_expr(p, " groups=", s->groups, out);
  print_bindings(p, s, out);
  for (uint32_t i = 0; i < s->scalar_count; i++) put_expr(p, i ? ", " : " scalars (", s->scalars[i], out);
  if (s->scalar_count) ir_text_add(out, ")");
  print_conditions(p, s, out);
  for (uint32_t i = 0; i < s->node_count; i++) ir_text_format(out, "%s%u", i ? "," : " nodes=[", s->nodes[i]);
  if (s->node_count) ir_text_add(out, "]");
  put_expr(p, " read=", s->bytes_read, out);
  put_expr(p, " written=", s->bytes_written, out);
  ir_text_add(out, " flops=");
  ir_put_float(out, s->flops);
  ir_text_add(out, " ns=");
  ir_put_float(out, s->est_ns);
  ir_text_add(out, "\n");
}

static void print_steps(const ir_plan *p, ir_text *out) {
  uint32_t level = 1, next = 0;
  for (uint32_t i = 0; i < p->steps.count; i++) {
    for (; next < p->loops.count && p->loops.at[next].first == i; next++) {
      indent(level++, out);
      put_expr(p, "loop ", p->loops.at[next].variable, out);
      put_expr(p, " trips=", p->loops.at[next].trips, out);
      if (p->loops.at[next].flag) ir_text_format(out, " while=b%u", p->loops.at[next].flag - 1);
      ir_text_add(out, " {\n");
    }
    indent(level, out);
    print_step(p, &p->steps.at[i], out);
    for (uint32_t l = next; l-- > 0;) {
      if (p->loops.at[l].end != i + 1) continue;
      indent(--level, out);
      ir_text_add(out, "}\n");
    }
  }
}

void plan_print(const ir_plan *p, ir_text *out) {
  print_symbols(p->pool, out);
  ir_text_add(out, "plan ");
  ir_put_quoted(out, p->title ? p->title : "");
  ir_text_add(out, " {\n");
  for (uint32_t i = 0; i < p->kernels.count; i++) print_kernel(&p->kernels.at[i], out);
  for (uint32_t i = 0; i < p->buffers.count; i++) print_buffer(p, i, out);
  put_expr(p, "  scratch=", p->scratch_bytes, out);
  ir_text_add(out, "\n");
  print_steps(p, out);
  ir_text_add(out, "}\n");
}
