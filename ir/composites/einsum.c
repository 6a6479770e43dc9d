/* einsum: up to four operands, "..." for axes without a name, repeated labels (diagonals), and results left out (labels that occur once,
   in the order of the alphabet). Operands are contracted from the left; labels that no later part needs are summed at once. */
#include "ir/composites/private.h"

enum { MOST_OPERANDS = 4, DOTS = 256 }; /* DOTS + i: axis i from the end of those under "..." */
typedef struct term {
  uint32_t value;
  label_list labels;
} term;
typedef struct equation {
  term terms[MOST_OPERANDS];
  uint32_t count;
  label_list out;
  bool given; /* the result's labels are given */
} equation;

static uint32_t find_label(const label_list *labels, int64_t label) {
  uint32_t i = 0;
  while (i < labels->count && labels->at[i] != label) i++;
  return i;
}
static bool holds(const label_list *labels, int64_t label) { return find_label(labels, label) < labels->count; }
static bool is_letter(char ch) { return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z'); }

/* One list of labels; -1 in place of "...". */
static const char *read_labels(const char *text, label_list *labels) {
  for (; is_letter(*text) || *text == ' ' || *text == '.'; text++) {
    if (*text == ' ') continue;
    if (labels->count == 2 * SNT_MAX_RANK) return NULL;
    if (*text != '.') {
      label_add(labels, *text);
      continue;
    }
    if (text[1] != '.' || text[2] != '.' || holds(labels, -1)) return NULL;
    text += 2;
    label_add(labels, -1);
  }
  return text;
}

/* "..." becomes `rank` labels less those that have a name. */
static bool expand_dots(label_list *labels, uint32_t rank) {
  const uint32_t at = find_label(labels, -1);
  if (at == labels->count) return labels->count == rank;
  if (labels->count - 1 > rank || rank > SNT_MAX_RANK) return false;
  const uint32_t dots = rank + 1 - labels->count;
  label_list wide = {.count = 0};
  for (uint32_t i = 0; i < labels->count; i++) {
    if (i != at) label_add(&wide, labels->at[i]);
    else
      for (uint32_t k = 0; k < dots; k++) label_add(&wide, DOTS + (int64_t)(dots - 1 - k));
  }
  *labels = wide;
  return true;
}

static uint32_t count_dots(const equation *e) {
  uint32_t most = 0;
  for (uint32_t i = 0; i < e->count; i++)
    for (uint32_t k = 0; k < e->terms[i].labels.count; k++)
      if (e->terms[i].labels.at[k] >= DOTS && (uint32_t)(e->terms[i].labels.at[k] - DOTS) >= most)
        most = (uint32_t)(e->terms[i].labels.at[k] - DOTS + 1);
  return most;
}

static void infer_result(equation *e) {
  const uint32_t dots = count_dots(e);
  for (uint32_t k = dots; k-- > 0;) label_add(&e->out, DOTS + (int64_t)k);
  for (int64_t letter = 'A'; letter <= 'z'; letter++) {
    uint32_t seen = 0;
    for (uint32_t i = 0; i < e->count; i++)
      for (uint32_t k = 0; k < e->terms[i].labels.count; k++) seen += e->terms[i].labels.at[k] == letter;
    if (seen == 1) label_add(&e->out, letter);
  }
}

static bool read_equation(composite_call *c, equation *e) {
  const char *text = c->params[IR_PARAM_labels] ? c->params[IR_PARAM_labels]->word : "";
  for (e->count = 0; e->count < c->arg_count && text; e->count++) {
    term *t = &e->terms[e->count];
    t->value = c->args[e->count];
    if (e->count > 0) text = *text == ',' ? text + 1 : NULL;
    if (text) text = read_labels(text, &t->labels);
    if (text && !expand_dots(&t->labels, type_of(c, t->value)->rank)) text = NULL;
  }
  e->given = text && *text;
  if (e->given) {
    text = text[0] == '-' && text[1] == '>' ? read_labels(text + 2, &e->out) : NULL;
    if (text && holds(&e->out, -1) && !expand_dots(&e->out, e->out.count - 1 + count_dots(e))) text = NULL;
  }
  if (!text || *text || e->count != c->arg_count)
    return call_mistake(c, "labels must be given as \"ij,jk->ik\", one letter an axis"), false;
  if (!e->given) infer_result(e);
  return true;
}

/* ---- one operand ---- */
/* Axes k and l (k < l) of one label: every (n + 1)-th element of the two as one axis, last. */
static uint32_t take_diagonal(composite_call *c, term *t, uint32_t k, uint32_t l) {
  const ir_tensor shape = *type_of(c, t->value);
  uint32_t perm[SNT_MAX_RANK], rank = 0;
  ir_expr dims[SNT_MAX_RANK];
  label_list labels = {.count = 0};
  int64_t extent;
  if (shape.dims[k] != shape.dims[l] || !expr_is_const(c->g->pool, shape.dims[k], &extent))
    return call_mistake(c, "the axes of a label that is repeated must be fixed and equal");
  for (uint32_t i = 0; i < shape.rank; i++)
    if (i != k && i != l) perm[rank] = i, dims[rank++] = shape.dims[i], label_add(&labels, t->labels.at[i]);
  perm[rank] = k, perm[rank + 1] = l;
  label_add(&labels, t->labels.at[k]);
  dims[rank] = extent * extent;
  t->labels = labels;
  const uint32_t square = step_reshape(c, step_transpose(c, t->value, perm), rank + 1, dims);
  return step_slice(c, square, rank, 0, extent, extent + 1);
}

static void take_diagonals(composite_call *c, term *t) {
  for (uint32_t l = 1; l < t->labels.count; l++)
    for (uint32_t k = 0; k < l && t->value; k++)
      if (t->labels.at[k] == t->labels.at[l]) {
        t->value = take_diagonal(c, t, k, l);
        l = 0;
        break;
      }
}

/* Sums the axes whose label neither the result nor a later operand has; drops those of extent 1 that others repeat. */
static void sum_lonely(composite_call *c, term *t, const equation *e, uint32_t from, const label_list *other) {
  uint32_t mask = 0, kept = 0;
  label_list labels = {.count = 0};
  for (uint32_t i = 0; i < t->labels.count; i++) {
    bool needed = holds(&e->out, t->labels.at[i]) || (other && holds(other, t->labels.at[i]));
    for (uint32_t k = from; k < e->count; k++) needed |= holds(&e->terms[k].labels, t->labels.at[i]);
    if (!needed) mask |= 1u << i;
    else labels.at[kept++] = t->labels.at[i];
  }
  labels.count = kept;
  if (mask && t->value) t->value = step_reduce(c, IR_OP_reduce_sum, t->value, mask, false), t->labels = labels;
}

/* An axis of extent 1 under "..." goes where the other operand has more. */
static void drop_repeated(composite_call *c, term *t, const term *other) {
  const ir_tensor shape = *type_of(c, t->value), beside = *type_of(c, other->value);
  ir_expr dims[SNT_MAX_RANK];
  label_list labels = {.count = 0};
  for (uint32_t i = 0; i < shape.rank; i++) {
    const uint32_t at = find_label(&other->labels, t->labels.at[i]);
    if (t->labels.at[i] >= DOTS && shape.dims[i] == 1 && at < other->labels.count && beside.dims[at] != 1) continue;
    dims[labels.count] = shape.dims[i];
    label_add(&labels, t->labels.at[i]);
  }
  t->value = step_reshape(c, t->value, labels.count, dims);
  t->labels = labels;
}

/* ---- the chain ---- */
static void add_new(label_list *to, const label_list *from) {
  for (uint32_t i = 0; i < from->count; i++)
    if (!holds(to, from->at[i])) label_add(to, from->at[i]);
}

/* Labels of a and b that the result or an operand from `from` on needs. */
static label_list needed_labels(const equation *e, const term *a, const term *b, uint32_t from) {
  label_list both = {.count = 0}, out = {.count = 0};
  if (from == e->count) return e->out;
  add_new(&both, &a->labels), add_new(&both, &b->labels);
  for (uint32_t i = 0; i < both.count; i++) {
    bool needed = holds(&e->out, both.at[i]);
    for (uint32_t k = from; k < e->count; k++) needed |= holds(&e->terms[k].labels, both.at[i]);
    if (needed) label_add(&out, both.at[i]);
  }
  return out;
}

static uint32_t arrange(composite_call *c, const term *t, const label_list *out) {
  uint32_t perm[SNT_MAX_RANK];
  if (!t->value) return 0;
  if (t->labels.count != out->count) return call_mistake(c, "a label of the result is in no operand, or in it twice");
  for (uint32_t i = 0; i < out->count; i++) {
    perm[i] = find_label(&t->labels, out->at[i]);
    if (perm[i] == t->labels.count) return call_mistake(c, "a label of the result is in no operand");
  }
  return step_transpose(c, t->value, perm);
}

static int32_t sum_dtype(const composite_call *c) {
  return c->params[IR_PARAM_dtype] ? (int32_t)c->params[IR_PARAM_dtype]->ints[0] : type_of(c, c->args[0])->dtype;
}

void build_einsum(composite_call *c) {
  equation e = {.count = 0};
  if (!read_equation(c, &e)) return;
  for (uint32_t i = 0; i < e.count; i++) take_diagonals(c, &e.terms[i]);
  term t = e.terms[0];
  if (e.count == 1) sum_lonely(c, &t, &e, 1, NULL);
  for (uint32_t i = 1; i < e.count && t.value; i++) {
    term b = e.terms[i];
    sum_lonely(c, &t, &e, i, NULL);
    if (b.value) sum_lonely(c, &b, &e, i + 1, &t.labels);
    if (!t.value || !b.value) return;
    drop_repeated(c, &t, &b);
    if (t.value && b.value) drop_repeated(c, &b, &t);
    if (!t.value || !b.value) return;
    const contract_desc d = {.lhs = t.labels, .rhs = b.labels, .out = needed_labels(&e, &t, &b, i + 1), .dtype = sum_dtype(c)};
    t = (term){.value = step_contract(c, t.value, b.value, &d), .labels = d.out};
  }
  c->results[0] = arrange(c, &t, &e.out);
}
