/* Operators of the user's own in a C-like language: a function before the kernel and a call of it, or the kernel's whole body. The user's lines
   are numbered by themselves and carry the operator's name, so that a compiler's complaint says whose they are. */
#include "codegen_common/ctext_private.h"

bool codegen_own_is_body(const char *text) {
  for (const char *at = text; (at = strstr(at, "return")); at += 6) {
    const char before = at > text ? at[-1] : ' ', after = at[6];
    const bool inside = (before >= 'a' && before <= 'z') || (before >= 'A' && before <= 'Z') || before == '_' ||
                        (before >= '0' && before <= '9');
    if (!inside && (after == ' ' || after == '(' || after == '\n' || after == '\t' || after == ';')) return true;
  }
  return false;
}

static const kir_own *own_at(const ctext *c, uint32_t id) { return &c->k->owns.at[kir_at(c->k, id)->index]; }

static const char *text_of(const ctext *c, const kir_own *own, size_t *head) {
  return own->source[c->d->own] ? kir_own_body(own->source[c->d->own], head) : NULL;
}

void codegen_own_put(ir_text *out, const char *source, const char *text, size_t length, const char *file) {
  uint32_t line = 1;
  for (const char *at = source; at < text; at++) line += *at == '\n';
  ir_text_format(out, *file ? "\n#line %u \"%s\"\n" : "\n#line %u\n", line, file);
  ir_text_put(out, text, length);
  ir_text_add(out, *file ? "\n#line 1 \"sinter\"\n" : "\n#line 1\n");
}

/* ---- functions ---- */
void ctext_own_call(ctext *c, uint32_t id) {
  const kir_inst *s = kir_at(c->k, id);
  ctext_begin_line(c);
  ctext_type(c, s->type);
  ir_text_format(&c->out, " v%u = snt_%s_%u(", id, own_at(c, id)->name, s->index);
  for (uint32_t n = 1; n < s->arg_count; n++) {
    if (n > 1) ir_text_add(&c->out, ", ");
    ctext_value(c, kir_arg(c->k, id, n));
  }
  ir_text_add(&c->out, ");\n");
}

static void put_function(ctext *c, uint32_t row) {
  const kir_own *own = &c->k->owns.at[row];
  size_t head = 0;
  const char *text = text_of(c, own, &head), *name;
  ir_text_add(&c->out, c->d->function);
  ctext_type(c, kir_t(own->types[0], 1));
  ir_text_format(&c->out, " snt_%s_%u(", own->name, row);
  for (uint32_t i = 0, length; (length = kir_own_param(own->params, i, &name)); i++) {
    if (i) ir_text_add(&c->out, ", ");
    ctext_type(c, kir_t(own->types[1 + i], 1));
    ir_text_add(&c->out, " ");
    ir_text_put(&c->out, name, length);
  }
  ir_text_add(&c->out, codegen_own_is_body(text) ? ") {" : ") {\n  return");
  codegen_own_put(&c->out, own->source[c->d->own], text, strlen(text), own->name);
  ir_text_add(&c->out, codegen_own_is_body(text) ? "}\n" : ";\n}\n");
}

/* ---- what stands before the kernel ---- */
void ctext_own_heads(ctext *c, ir_text *out) {
  bool *done = IR_NEW_ARRAY(c->arena, bool, c->k->owns.count + 1u);
  for (uint32_t i = 1; done && i < c->k->insts.count; i++) {
    const kir_inst *s = kir_at(c->k, i);
    size_t head = 0;
    if ((s->op != KIR_own && s->op != KIR_inline) || done[s->index]) continue;
    done[s->index] = true;
    const kir_own *own = own_at(c, i);
    if (!text_of(c, own, &head)) continue;
    if (head) codegen_own_put(out, own->source[c->d->own], own->source[c->d->own], head, own->name);
    if (s->op == KIR_inline) continue;
    const ir_text saved = ctext_divert(c);
    put_function(c, s->index);
    ir_text_add(out, ctext_restore(c, saved));
  }
}

/* ---- bodies ---- */
/* Buffers and scalars by the user's names, then the text as it is, in a block of its own. */
void ctext_own_body(ctext *c, uint32_t id) {
  const kir_own *own = own_at(c, id);
  size_t head = 0;
  const char *text = text_of(c, own, &head), *name;
  uint32_t number = 0, length;
  if (!text) {
    ctext_fail(c, SNT_E_INTERNAL, id, "operator %s has no text for %s", own->name, c->d->name);
    return;
  }
  for (; number < c->k->memories.count; number++) {
    length = kir_own_param(own->params, number, &name);
    ctext_pointer(c, number, name, length);
  }
  for (uint32_t i = 0; i < kir_at(c->k, id)->arg_count; i++) {
    length = kir_own_param(own->params, number + i, &name);
    ctext_begin_line(c);
    ir_text_add(&c->out, "const ");
    ctext_type(c, kir_t(SNT_U32, 1));
    ir_text_add(&c->out, " ");
    ir_text_put(&c->out, name, length);
    ir_text_add(&c->out, " = ");
    ctext_value(c, kir_arg(c->k, id, i));
    ir_text_add(&c->out, ";\n");
  }
  ir_text_add(&c->out, "  {");
  codegen_own_put(&c->out, own->source[c->d->own], text, strlen(text), own->name);
  ir_text_add(&c->out, "  }\n");
}
