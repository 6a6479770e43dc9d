/* Names of a graph to values. */
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
