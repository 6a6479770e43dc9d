/* Names of a graph to values, and what a value is of which the file has the elements. */
#include "onnx/import_private.h"

static uint32_t first_slot(const onnx_scope *s, const char *name) { return (uint32_t)ir_hash64(0, name, strlen(name)) & (s->size - 1); }

static onnx_value *find_here(const onnx_scope *s, const char *name) {
  if (!s->size) return NULL;
  for (uint32_t i = first_slot(s, name); s->table[i]; i = (i + 1) & (s->size - 1))
    if (!strcmp(s->table[i]->name, name)) return s->table[i];
  return NULL;
}

onnx_value *onnx_scope_find(const onnx_scope *s, const char *name) {
  for (; s; s = s->parent) {
    onnx_value *v = find_here(s, name);
    if (v) return v;
  }
  return NULL;
}

static void place(onnx_scope *s, onnx_value *v) {
  uint32_t i = first_slot(s, v->name);
  while (s->table[i]) i = (i + 1) & (s->size - 1);
  s->table[i] = v;
}

static bool grow(onnx_import *im, onnx_scope *s) {
  onnx_value **old = s->table;
  const uint32_t old_size = s->size;
  s->size = old_size ? 2 * old_size : 64;
  s->table = IR_NEW_ARRAY(im->temp, onnx_value *, s->size);
  if (!s->table) {
    s->size = 0;
    return false;
  }
  for (uint32_t i = 0; i < old_size; i++)
    if (old[i]) place(s, old[i]);
  return true;
}

onnx_value *onnx_scope_add(onnx_import *im, const char *name) {
  onnx_scope *s = im->scope;
  if (find_here(s, name)) return NULL;
  if (2 * (s->count + 1) > s->size && !grow(im, s)) return NULL;
  onnx_value *v = IR_NEW(im->temp, onnx_value);
  if (!v) return NULL;
  v->name = name;
  place(s, v);
  s->count++;
  return v;
}

int64_t onnx_scope_opset(const onnx_scope *s, const char *domain) {
  for (; s; s = s->parent)
    for (uint32_t i = 0; s->opsets && i < s->opsets->count; i++)
      if (!strcmp(s->opsets->at[i].domain, domain)) return s->opsets->at[i].version;
  return 0;
}

/* More elements than that fit no device; sums over them would leave the range of the plan's arithmetic. */
bool onnx_is_countable(onnx_import *im, const ir_tensor *t) {
  double elements = 1;
  for (uint32_t i = 0; i < t->rank; i++) {
    int64_t extent;
    if (expr_is_const(im->g->pool, t->dims[i], &extent)) elements *= (double)extent;
  }
  return elements <= 0x1p44;
}

bool onnx_take_tensor(onnx_import *im, onnx_value *v, const onnx_tensor *t) {
  v->tensor = t;
  v->type.dtype = (uint8_t)onnx_type(t->type).dtype;
  if (t->dims.count > SNT_MAX_RANK) return onnx_fail(im, SNT_E_UNSUPPORTED, "tensor %.80s has rank %u", t->name, t->dims.count);
  v->type.rank = (uint8_t)t->dims.count;
  for (uint32_t d = 0; d < t->dims.count; d++) {
    if (t->dims.at[d] < 0) return onnx_fail(im, SNT_E_SHAPE, "tensor %.80s has a negative extent", t->name);
    v->type.dims[d] = expr_int(im->g->pool, t->dims.at[d]);
  }
  return onnx_is_countable(im, &v->type) || onnx_fail(im, SNT_E_LIMIT, "tensor %.80s has more elements than memory holds", t->name);
}
