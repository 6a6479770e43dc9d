/* Functions that a model brings along (FunctionProto): the body is imported where the function is called. */
#include "onnx/import_private.h"

const onnx_function *onnx_find_function(const onnx_import *im, const onnx_node *n) {
  for (uint32_t i = 0; i < im->model->functions.count; i++) {
    const onnx_function *f = &im->model->functions.at[i];
    if (!strcmp(f->name, n->op) && !strcmp(f->domain, n->domain)) return f;
  }
  return NULL;
}

static bool enter(onnx_call *c, onnx_scope *inner, uint32_t count, const onnx_names *names, onnx_value *const *in) {
  onnx_import *im = c->im;
  if (im->depth == ONNX_MAX_DEPTH) return onnx_refuse(c, "calls are nested too deeply");
  im->depth++;
  im->scope = inner;
  for (uint32_t i = 0; i < count; i++) {
    if (!names->at[i][0]) continue;
    onnx_value *v = onnx_scope_add(im, names->at[i]);
    if (!v) return onnx_fail(im, SNT_E_PARSE, "%.80s: two values are named %.80s", c->name, names->at[i]);
    const char *name = v->name;
    if (in[i]) *v = *in[i];
    else v->type.dtype = 0;
    v->name = name;
  }
  return true;
}

static void leave(onnx_import *im, onnx_scope *outer) {
  if (im->scope != outer) im->depth--;
  im->scope = outer;
}

static const char *inner_prefix(const onnx_call *c) {
  ir_text text;
  ir_text_init(&text, c->im->temp);
  ir_text_format(&text, "%s/", c->name);
  return text.failed ? "" : text.at;
}

static bool import_function(onnx_call *c, const onnx_function *f, onnx_value *const *in) {
  onnx_import *im = c->im;
  if (!onnx_import_nodes(im, &f->nodes)) return false;
  (void)in;
  for (uint32_t i = 0; i < f->outputs.count && i < c->out_count; i++) {
    onnx_value *v = onnx_scope_find(im->scope, f->outputs.at[i]);
    if (!v) return onnx_fail(im, SNT_E_PARSE, "%.80s: function %.60s computes no %.60s", c->name, f->name, f->outputs.at[i]);
    const char *name = c->out[i].name;
    c->out[i] = *v;
    c->out[i].name = name;
  }
  return true;
}

bool onnx_import_function(onnx_call *c, const onnx_function *f) {
  onnx_scope *outer = c->im->scope;
  onnx_scope inner = {.caller = outer, .call = c->node, .function = f, .opsets = &f->opsets, .prefix = inner_prefix(c)};
  onnx_value **in = IR_NEW_ARRAY(c->im->temp, onnx_value *, f->inputs.count);
  if (!in) return false;
  if (c->in_count > f->inputs.count) return onnx_refuse(c, "function %.60s takes %u inputs", f->name, f->inputs.count);
  for (uint32_t i = 0; i < f->inputs.count; i++) {
    in[i] = onnx_has(c, i) ? c->in[i] : NULL;
    if (in[i] && in[i]->tensor && !in[i]->known) (void)onnx_in(c, i); /* one node, however often it is used inside */
  }
  c->used = UINT64_MAX; /* the body asks for them */
  const bool good = enter(c, &inner, f->inputs.count, &f->inputs, in) && import_function(c, f, in);
  leave(c->im, outer);
  return good;
}

static bool names_of(onnx_call *c, const onnx_graph *sub, uint32_t in_count, onnx_names *names) {
  for (uint32_t i = 0; i < sub->inputs.count; i++)
    if (!IR_PUSH(c->im->temp, names, sub->inputs.at[i].name)) return false;
  return names->count == in_count || onnx_refuse(c, "its graph takes %u inputs, %u are given", names->count, in_count);
}

const onnx_scope *onnx_know_body(onnx_call *c, const onnx_graph *sub, uint32_t in_count, onnx_value *const *in) {
  onnx_import *im = c->im;
  onnx_scope *outer = im->scope, *inner = IR_NEW(im->temp, onnx_scope);
  onnx_names names = {0};
  if (!inner || !names_of(c, sub, in_count, &names)) return NULL;
  *inner = (onnx_scope){.parent = outer, .prefix = ""};
  const bool good = enter(c, inner, in_count, &names, in) && onnx_import_constants(im, &sub->constants) && onnx_know_nodes(im, &sub->nodes);
  leave(im, outer);
  return good ? inner : NULL;
}

bool onnx_import_body(onnx_call *c, const onnx_graph *sub, uint32_t in_count, onnx_value *const *in, uint32_t out_count, onnx_value **out) {
  onnx_import *im = c->im;
  onnx_scope *outer = im->scope;
  onnx_scope inner = {.parent = outer, .prefix = inner_prefix(c)};
  onnx_names names = {0};
  if (!names_of(c, sub, in_count, &names)) return false;
  if (sub->outputs.count != out_count) return onnx_refuse(c, "its graph has %u outputs, %u are wanted", sub->outputs.count, out_count);
  bool good = enter(c, &inner, in_count, &names, in) && onnx_import_constants(im, &sub->constants) && onnx_import_nodes(im, &sub->nodes);
  for (uint32_t i = 0; good && i < out_count; i++) {
    out[i] = onnx_scope_find(im->scope, sub->outputs.at[i].name);
    if (!out[i]) good = onnx_fail(im, SNT_E_PARSE, "%.80s: its graph computes no %.60s", c->name, sub->outputs.at[i].name);
  }
  leave(im, outer);
  return good;
}
