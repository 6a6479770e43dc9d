/* The table of operators, and what a template row becomes: one call of the graph's text form. */
#include "onnx/import_private.h"

enum { BROADCAST = ONNX_BROADCAST };
#define AS(version) (ONNX_AS * (version))
const onnx_row onnx_rows[] = {
#define TEXT(op, since, until, flags, text) {op, since, until, flags, text, NULL},
#define CALL(op, since, until, flags, handler) {op, since, until, flags, NULL, handler},
#include "onnx/operators.def"
#undef TEXT
#undef CALL
};
#undef AS
const uint32_t onnx_row_count = IR_COUNT(onnx_rows);

static bool is_named(const onnx_row *row, const onnx_node *n) {
  const size_t domain = strlen(n->domain);
  if (!domain) return !strcmp(row->op, n->op);
  return !strncmp(row->op, n->domain, domain) && row->op[domain] == '.' && !strcmp(row->op + domain + 1, n->op);
}

/* `other`: a row of that operator for other versions, to say so. */
const onnx_row *onnx_find_row(const onnx_node *n, int64_t opset, const onnx_row **other) {
  *other = NULL;
  for (uint32_t i = 0; i < onnx_row_count; i++) {
    const onnx_row *row = &onnx_rows[i];
    if (!is_named(row, n)) continue;
    if (opset >= row->since && (!row->until || opset <= row->until)) return row;
    *other = row;
  }
  return NULL;
}

/* ---- templates ---- */
typedef struct expansion {
  onnx_call *c;
  ir_text out;
  bool dropped;    /* the item at hand: an attribute that is not there */
  uint32_t *nodes; /* of the operands */
} expansion;

static void put_float(ir_text *out, double value) { ir_text_format(out, "%a", value); }

static bool put_attr(expansion *e, const char *name, const char *otherwise) {
  const onnx_attr *a = onnx_find_attr(e->c, name);
  if (!a) {
    if (otherwise) ir_text_add(&e->out, otherwise);
    else e->dropped = true;
    return true;
  }
  switch (a->kind) {
  case ONNX_INT: ir_text_format(&e->out, "%lld", (long long)a->i); return true;
  case ONNX_FLOAT: put_float(&e->out, (double)a->f); return true;
  case ONNX_TEXT: ir_text_format(&e->out, "\"%s\"", a->text); return true;
  case ONNX_INTS:
    ir_text_add(&e->out, "[");
    for (uint32_t i = 0; i < a->ints.count; i++) ir_text_format(&e->out, i ? ",%lld" : "%lld", (long long)a->ints.at[i]);
    ir_text_add(&e->out, "]");
    return true;
  default: return onnx_refuse(e->c, "attribute %s has the wrong type", name);
  }
}

/* {name} or {name:default}; *at stands behind the brace. */
static bool expand_attr(expansion *e, const char **at, const char *end) {
  char name[48], otherwise[48];
  uint32_t length = 0, rest = 0;
  bool has_default = false;
  for (; *at < end && **at != '}'; ++*at) {
    if (**at == ':' && !has_default) has_default = true;
    else if (has_default && rest < sizeof otherwise - 1) otherwise[rest++] = **at;
    else if (!has_default && length < sizeof name - 1) name[length++] = **at;
  }
  if (*at < end) ++*at;
  name[length] = otherwise[rest] = 0;
  return put_attr(e, name, has_default ? otherwise : NULL);
}

static bool put_operand(expansion *e, uint32_t i, bool optional) {
  if (!onnx_has(e->c, i)) {
    if (!optional) return onnx_refuse(e->c, "input %u is missing", i);
    ir_text_add(&e->out, "_");
    return true;
  }
  ir_text_format(&e->out, "%%%u", e->nodes[i]);
  return e->nodes[i] != 0;
}

static bool expand_operand(expansion *e, const char **at, const char *end) {
  if (**at == '*') {
    ++*at;
    for (uint32_t i = 0; i < e->c->in_count; i++) {
      if (i) ir_text_add(&e->out, ", ");
      if (!put_operand(e, i, false)) return false;
    }
    return true;
  }
  const uint32_t i = (uint32_t)(*(*at)++ - '0');
  const bool optional = *at < end && **at == '?';
  *at += optional;
  return put_operand(e, i, optional);
}

static bool expand_item(expansion *e, const char *at, const char *end) {
  const size_t before = e->out.length;
  while (at < end && *at == ' ') at++;
  if (at < end && *at == '~') {
    char name[48] = "";
    memcpy(name, at + 1, (size_t)(end - at - 1) < sizeof name ? (size_t)(end - at - 1) : sizeof name - 1);
    onnx_ignore(e->c, name);
    return true;
  }
  if (e->out.length) ir_text_add(&e->out, ", ");
  e->dropped = false;
  while (at < end) {
    const char c = *at++;
    if (c == '{' && !expand_attr(e, &at, end)) return false;
    if (c == '$' && !expand_operand(e, &at, end)) return false;
    if (c != '{' && c != '$') ir_text_put(&e->out, &c, 1);
  }
  if (e->dropped) e->out.length = before;
  return true;
}

/* Items are separated by commas outside brackets. */
static const char *item_end(const char *at) {
  uint32_t depth = 0;
  for (; *at && (*at != ',' || depth); at++) {
    depth += *at == '[' || *at == '{';
    depth -= *at == ']' || *at == '}';
  }
  return at;
}

/* "$0 .." to the nodes of the operands, broadcast where the row says so. */
static bool take_operands(expansion *e) {
  onnx_call *c = e->c;
  if (c->in_count > ONNX_MAX_INPUTS) return onnx_refuse(c, "%u operands", c->in_count);
  e->nodes = IR_NEW_ARRAY(c->im->temp, uint32_t, c->in_count + 1);
  if (!e->nodes) return false;
  for (uint32_t i = 0; i < c->in_count; i++) {
    e->nodes[i] = onnx_in(c, i);
    if (onnx_has(c, i) && !e->nodes[i]) return false;
  }
  return !(c->row->flags & ONNX_BROADCAST) || (c->in_count && onnx_broadcast_all(c, c->in_count, e->nodes, true));
}

static bool run_template(onnx_call *c) {
  expansion e = {.c = c};
  ir_text_init(&e.out, c->im->temp);
  if (!take_operands(&e)) return false;
  for (const char *at = c->row->text; *at;) {
    const char *end = item_end(at);
    if (!expand_item(&e, at, end)) return false;
    at = *end ? end + 1 : end;
  }
  while (e.out.length >= 3 && !memcmp(e.out.at + e.out.length - 3, ", _", 3)) e.out.length -= 3;
  if (e.out.failed) return false;
  return onnx_out(c, 0, onnx_add(c, "%.*s", (int)e.out.length, e.out.at));
}

/* An attribute that nobody asked for could change the meaning: it is refused, not passed over. */
static bool check_attributes(onnx_call *c) {
  for (uint32_t i = 0; i < c->node->attrs.count && i < 64; i++)
    if (!(c->used >> i & 1)) return onnx_refuse(c, "attribute %.60s is not supported", c->node->attrs.at[i].name);
  return c->node->attrs.count <= 64 || onnx_refuse(c, "%u attributes", c->node->attrs.count);
}

bool onnx_run_row(onnx_call *c) {
  if (!(c->row->text ? run_template(c) : c->row->handler(c))) return false;
  return check_attributes(c);
}
