/* An ONNX model to a graph: symbols, inputs, constants, each node in the file's order, outputs. In: the model as read. Out: a graph, or a
   mistake of the file, or the list of everything that is not supported. */
#include "onnx/import_private.h"
#include "onnx/ops.h"
#include <stdio.h>

/* ---- inputs ---- */
/* Exporters write "?" or "None" for every extent that they do not know: those are no names, which would make two of them one. */
static bool is_name(const char *param) {
  if (!param || param[0] == '-' || !strcmp(param, "None")) return false;
  for (; *param; param++)
    if ((*param >= 'a' && *param <= 'z') || (*param >= 'A' && *param <= 'Z') || (*param >= '0' && *param <= '9')) return true;
  return false;
}

/* Of an extent that the file leaves open: its own, or the input's and the axis. */
static const char *dim_name(onnx_import *im, const onnx_port *p, uint32_t axis) {
  char name[160];
  if (is_name(p->dims.at[axis].param)) return p->dims.at[axis].param;
  snprintf(name, sizeof name, "%.120s_%u", p->name, axis);
  return ir_arena_text(im->temp, name, strlen(name));
}

static bool read_dim(onnx_import *im, const onnx_port *p, uint32_t axis, ir_expr *out) {
  const onnx_dim *d = &p->dims.at[axis];
  if (d->value < -1 || (d->param && !d->param[0]))
    return onnx_fail(im, SNT_E_SHAPE, "input %.80s: axis %u has a negative extent", p->name, axis);
  if (d->value >= 0) *out = expr_int(im->g->pool, d->value);
  if (d->value >= 0) return true;
  return onnx_symbol(im, dim_name(im, p, axis), axis ? 128 : 1, out);
}

/* Names for a message, as many as fit, each once: "image, mask". */
typedef struct name_list {
  char text[120];
  size_t used;
} name_list;

static bool is_listed(const name_list *list, const char *name) {
  const size_t length = strlen(name);
  for (const char *at = strstr(list->text, name); length && at; at = strstr(at + 1, name))
    if ((at == list->text || at[-1] == ' ') && (!at[length] || at[length] == ',')) return true;
  return false;
}

static void list_name(name_list *list, const char *name) {
  const size_t room = sizeof list->text - list->used;
  if (is_listed(list, name) || room < 8) return;
  const int length = snprintf(list->text + list->used, room, "%s%.60s", list->used ? ", " : "", name);
  list->used += length < 0 ? 0 : (size_t)length < room ? (size_t)length : room - 1;
}

static const snt_onnx_fixed *find_fixed(const onnx_import *im, const char *name) {
  for (uint32_t i = 0; im->info && i < im->info->fixed_count; i++)
    if (!strcmp(im->info->fixed[i].name, name)) return &im->info->fixed[i];
  return NULL;
}

/* An input whose value the caller gives: a tensor as if the file held it. */
static bool fix_input(onnx_import *im, onnx_value *v, const snt_onnx_fixed *given) {
  onnx_tensor *t = IR_NEW(im->temp, onnx_tensor);
  uint64_t elements = 1;
  if (!t) return onnx_fail(im, SNT_E_HOST_MEM, "out of memory");
  *t = (onnx_tensor){.name = v->name};
  for (t->type = 1; onnx_type(t->type).dtype != given->tensor.dtype && t->type < 64;) t->type++;
  for (uint32_t i = 0; i < given->tensor.rank; i++) {
    elements *= (uint64_t)given->tensor.dims[i];
    if (!IR_PUSH(im->temp, &t->dims, given->tensor.dims[i])) return onnx_fail(im, SNT_E_HOST_MEM, "out of memory");
  }
  if (t->type == 64 || !onnx_take_tensor(im, v, t)) return onnx_fail(im, SNT_E_ARG, "input %.80s is fixed to something unknown", v->name);
  const size_t bytes = (size_t)elements * ir_dtypes[v->type.dtype].bytes;
  void *copy = ir_arena_take(im->g->arena, bytes, 64);
  if (!copy) return onnx_fail(im, SNT_E_HOST_MEM, "out of memory");
  if (bytes) memcpy(copy, given->data, bytes);
  v->data = copy;
  return true;
}

/* An extent of the model as it must be: a number, the file's or the caller's, or -1: any. */
static int64_t wanted_extent(onnx_import *im, const onnx_port *p, uint32_t axis) {
  const int64_t value = p->dims.at[axis].value;
  return value >= 0 ? value : onnx_given_extent(im, dim_name(im, p, axis));
}

/* What a file says in numbers alone may be replaced as a whole where the caller says so (SNT_ONNX_OTHER_EXTENTS). */
static bool is_given_right(onnx_import *im, const onnx_port *p, const snt_tensor *given) {
  bool right = given->rank == p->dims.count, open = !(im->info->flags & SNT_ONNX_OTHER_EXTENTS);
  for (uint32_t i = 0; i < p->dims.count; i++) open |= p->dims.at[i].value < 0;
  if (!open) return true;
  for (uint32_t i = 0; right && i < given->rank; i++) {
    const int64_t wanted = wanted_extent(im, p, i);
    right = wanted < 0 || wanted == given->dims[i];
  }
  return right;
}

/* What is fixed is what the model says of its input, and the caller of the model's extents. */
static bool check_fixed(onnx_import *im, const onnx_port *p, const snt_tensor *given) {
  char own[96] = "", have[96] = "";
  size_t used = 0;
  if (!p->has_shape || is_given_right(im, p, given)) return true;
  for (uint32_t i = 0; i < p->dims.count && used < sizeof own; i++) {
    const int64_t wanted = wanted_extent(im, p, i);
    used += (size_t)(wanted < 0 ? snprintf(own + used, sizeof own - used, "%s%.40s", i ? "," : "", dim_name(im, p, i))
                                : snprintf(own + used, sizeof own - used, "%s%lld", i ? "," : "", (long long)wanted));
  }
  used = 0;
  for (uint32_t i = 0; i < given->rank && used < sizeof have; i++)
    used += (size_t)snprintf(have + used, sizeof have - used, "%s%lld", i ? "," : "", (long long)given->dims[i]);
  return onnx_fail(im, SNT_E_SHAPE, "input %.40s is [%s]; [%s] is given", p->name, own, have);
}

static bool input_type(onnx_import *im, const onnx_port *p, const snt_onnx_fixed *given, ir_tensor *out) {
  *out = (ir_tensor){.dtype = (uint8_t)onnx_type(p->type).dtype, .rank = (uint8_t)(given ? given->tensor.rank : p->dims.count)};
  for (uint32_t i = 0; i < out->rank; i++) {
    if (given) out->dims[i] = expr_int(im->g->pool, given->tensor.dims[i]);
    else if (!read_dim(im, p, i, &out->dims[i])) return false;
  }
  return onnx_is_countable(im, out) || onnx_fail(im, SNT_E_LIMIT, "input %.80s has more elements than any device holds", p->name);
}

static bool import_input(onnx_import *im, const onnx_port *p) {
  const snt_onnx_fixed *given = find_fixed(im, p->name);
  const onnx_type_info type = onnx_type(p->type);
  onnx_value *v = onnx_scope_find(im->scope, p->name);
  if (v) return v->tensor || onnx_fail(im, SNT_E_PARSE, "two inputs are named %.80s", p->name); /* a constant that could be replaced */
  if (!p->name[0]) return onnx_fail(im, SNT_E_PARSE, "an input has no name");
  v = onnx_scope_add(im, p->name);
  if (!v) return onnx_fail(im, SNT_E_HOST_MEM, "out of memory");
  for (uint32_t i = 0; given && i < p->dims.count; i++)
    if (p->dims.at[i].value < 0) onnx_note_dim(im, dim_name(im, p, i));
  if (given && !check_fixed(im, p, &given->tensor)) return false;
  if (given && given->data) return fix_input(im, v, given);
  v->broken = !type.dtype || (!p->has_shape && !given) || p->dims.count > SNT_MAX_RANK;
  if (v->broken) {
    const char *why = p->type == 0    ? "it is no tensor"
                      : !type.dtype   ? type.name
                      : !p->has_shape ? "its rank is not given"
                                      : "its rank is over 8";
    onnx_add_problem(im, p->name, "input", why);
    return true;
  }
  if (!input_type(im, p, given, &v->type)) return false;
  v->node = ir_add_input(im->g, p->name, &v->type);
  return v->node || onnx_fail(im, SNT_E_PARSE, "input %.80s: %.150s", p->name, im->g->first_error.text);
}

/* ---- constants: nodes are made when they are first used ---- */
bool onnx_import_constants(onnx_import *im, const onnx_tensors *list) {
  for (uint32_t i = 0; i < list->count; i++) {
    const onnx_tensor *t = &list->at[i];
    onnx_value *v = t->name[0] ? onnx_scope_add(im, t->name) : NULL;
    if (!v) return onnx_fail(im, SNT_E_PARSE, t->name[0] ? "two values are named %.80s" : "an initializer has no name", t->name);
    if (!onnx_take_tensor(im, v, t)) return false;
  }
  return true;
}

/* ---- nodes ---- */
static const char *node_name(onnx_import *im, const onnx_node *n) {
  ir_text text;
  const char *prefix = im->scope->prefix ? im->scope->prefix : "";
  if (n->name[0] && !prefix[0]) return n->name;
  ir_text_init(&text, im->temp);
  if (n->name[0]) ir_text_format(&text, "%s%s", prefix, n->name);
  else ir_text_format(&text, "%s%s_%u", prefix, n->op, im->done);
  return text.failed ? n->op : text.at;
}

static bool is_absent(const onnx_value *v) { return !v->type.dtype && !v->node && !v->tensor && !v->broken; }

/* Operands by name; false: a name that nothing computes. *broken: one of them could not be imported. */
static bool find_operands(onnx_call *c, bool *broken) {
  onnx_import *im = c->im;
  c->in_count = c->node->inputs.count;
  c->in = IR_NEW_ARRAY(im->temp, onnx_value *, c->in_count);
  *broken = false;
  if (!c->in) return onnx_fail(im, SNT_E_HOST_MEM, "out of memory");
  for (uint32_t i = 0; i < c->in_count; i++) {
    const char *name = c->node->inputs.at[i];
    if (!name[0]) continue;
    c->in[i] = onnx_scope_find(im->scope, name);
    if (!c->in[i])
      return onnx_fail(im, SNT_E_PARSE, "node %.80s (%.40s): input %.60s is computed by nothing before it", c->name, c->node->op, name);
    *broken |= c->in[i]->broken;
    if (is_absent(c->in[i])) c->in[i] = NULL;
  }
  while (c->in_count && !c->in[c->in_count - 1]) c->in_count--;
  return true;
}

static bool publish(onnx_call *c, bool good) {
  for (uint32_t i = 0; i < c->out_count; i++) {
    const char *name = c->node->outputs.at[i];
    if (!name[0]) continue;
    onnx_value *v = onnx_scope_add(c->im, name);
    if (!v) return onnx_fail(c->im, SNT_E_PARSE, "node %.80s (%.40s): two values are named %.80s", c->name, c->node->op, name);
    *v = c->out[i];
    v->name = name;
    if (good) onnx_take_bound(c, v);
    else *v = (onnx_value){.name = name, .broken = true};
  }
  return true;
}

/* A builder's mistake belongs to the node at hand; the graph goes on, so that the other nodes are looked at, too. */
static bool take_mistake(onnx_call *c) {
  ir_graph *g = c->g;
  if (g->arena->failed || c->im->temp->failed || g->pool->arena->failed) return onnx_fail(c->im, SNT_E_HOST_MEM, "out of memory");
  if (g->pool->failed) return onnx_fail(c->im, SNT_E_SHAPE, "node %.80s (%.40s): an extent is too large", c->name, c->node->op);
  if (!g->failed) return true;
  onnx_refuse(c, "%.180s", g->first_error.text);
  g->failed = false;
  g->first_error = (snt_diag){0};
  return true;
}

static bool check_results(onnx_call *c) {
  for (uint32_t i = 0; i < c->out_count; i++) {
    const onnx_value *v = &c->out[i];
    if (!c->node->outputs.at[i][0]) continue;
    if (!v->node && !v->known && !v->tensor) return onnx_refuse(c, "output %u is not supported", i);
    if (!onnx_is_countable(c->im, &v->type)) return onnx_refuse(c, "output %u has more elements than any device holds", i);
  }
  return true;
}

static bool find_row(onnx_call *c) {
  const onnx_row *other = NULL;
  c->opset = onnx_scope_opset(c->im->scope, c->node->domain);
  c->row = onnx_find_row(c->node, c->opset, &other);
  if (c->row) return true;
  if (other) return onnx_refuse(c, "not supported in version %lld of the operator set", (long long)c->opset);
  return onnx_refuse(c, c->node->domain[0] ? "no such operator in domain %.60s" : "no such operator", c->node->domain);
}

static bool run_row(onnx_call *c) {
  bool known = false;
  if (!find_row(c)) return false;
  if (c->row->flags >= ONNX_AS) c->opset = c->row->flags / ONNX_AS;
  return onnx_know(c, &known) && (known || onnx_run_row(c));
}

/* The row between what is said of operands whose extent depends on the data and what of results. */
static bool run_call(onnx_call *c) {
  const onnx_function *f = onnx_find_function(c->im, c->node);
  onnx_counted counted = {0};
  if (f) return onnx_import_function(c, f);
  if (!onnx_ready_counted(c, &counted)) return false;
  const uint32_t first = c->g->nodes.count;
  return run_row(c) && !c->refused && !c->g->failed && check_results(c) && onnx_settle_counted(c, &counted, first);
}

static void name_nodes(onnx_call *c, uint32_t first) {
  uint32_t name = 0;
  for (uint32_t n = first; n < c->g->nodes.count; n++) {
    ir_node *node = &c->g->nodes.at[n];
    if (node->name || node->op == IR_OP_const) continue;
    if (!name) name = ir_name_add(c->g, c->name, strlen(c->name));
    c->g->nodes.at[n].name = name;
  }
}

/* A handler that ended without a word most often lacks an operand, and the first one rather than one that may be left out. */
static void say_why(onnx_call *c) {
  uint32_t first = 0;
  while (first < 31 && !(c->absent >> first & 1)) first++;
  if (c->absent) onnx_refuse(c, "input %u is missing", first);
  else if (!c->im->problems.count) onnx_refuse(c, "it could not be imported");
}

/* Shapes and attributes are the plan's, which knows neither the number of a trip nor a count. */
static bool check_late(onnx_call *c, uint32_t first) {
  const ir_graph *g = c->g;
  ir_expr late = 0;
  for (uint32_t n = first; (c->im->trips.count || c->im->counts.count) && n < g->nodes.count; n++) {
    const ir_node *node = ir_at(g, n);
    for (uint32_t i = 0; i < node->type.rank; i++)
      if (onnx_is_late(c->im, node->type.dims[i])) late = node->type.dims[i];
    for (uint32_t i = 0; i < node->attr_count; i++) {
      const ir_attr *a = &g->attrs.at[node->attrs + i];
      const uint8_t kind = ir_attr_infos[a->key].kind;
      for (uint32_t k = 0; (kind == IR_KIND_INT || kind == IR_KIND_INTS) && k < a->count; k++)
        if (onnx_is_late(c->im, g->ints.at[a->first + k])) late = g->ints.at[a->first + k];
    }
  }
  if (!late) return true;
  return onnx_refuse(c, onnx_uses_trip(c->im, late) ? "its shape changes from trip to trip of the Loop around it"
                                                    : "its shape depends on the data");
}

static bool import_node(onnx_import *im, const onnx_node *n) {
  onnx_call c = {.im = im, .g = im->g, .node = n, .name = node_name(im, n), .out_count = n->outputs.count};
  bool broken;
  if (im->done++ > ONNX_MAX_NODES) return onnx_fail(im, SNT_E_LIMIT, "more than %d nodes, functions written out", ONNX_MAX_NODES);
  if (!find_operands(&c, &broken)) return false;
  c.out = IR_NEW_ARRAY(im->temp, onnx_value, c.out_count);
  if (!c.out) return onnx_fail(im, SNT_E_HOST_MEM, "out of memory");
  for (uint32_t i = 0; i < c.out_count; i++) c.out[i].name = n->outputs.at[i];
  const uint32_t first = im->g->nodes.count;
  if (broken && !onnx_find_function(im, n)) (void)find_row(&c); /* what is no operator is told whatever its operands are */
  const bool good = !broken && !c.refused && run_call(&c) && !c.refused && !c.g->failed && check_results(&c) && check_late(&c, first);
  if (im->failed || im->again || !take_mistake(&c)) return false;
  if (!good && !broken && !c.refused) say_why(&c);
  name_nodes(&c, first);
  return publish(&c, good && !c.refused);
}

bool onnx_import_nodes(onnx_import *im, const onnx_nodes *nodes) {
  const snt_onnx_info *info = im->info;
  for (uint32_t i = 0; i < nodes->count; i++) {
    if (!import_node(im, &nodes->at[i])) return false;
    if (im->depth == 0 && info && info->progress && i % 16 == 0 && info->progress(info->user, "import", (double)i / nodes->count))
      return onnx_fail(im, SNT_E_CANCELLED, "cancelled by the caller");
  }
  return true;
}

/* ---- known numbers alone ---- */
static bool is_constant(const onnx_node *n) { return !strcmp(n->op, "Constant") && !n->domain[0]; }

/* Whether anything can be known of it: operands that have a value, or a type at least. */
static bool find_known(onnx_call *c) {
  c->in_count = c->node->inputs.count;
  c->in = IR_NEW_ARRAY(c->im->temp, onnx_value *, c->in_count);
  for (uint32_t i = 0; c->in && i < c->in_count; i++) {
    c->in[i] = c->node->inputs.at[i][0] ? onnx_scope_find(c->im->scope, c->node->inputs.at[i]) : NULL;
    if (c->node->inputs.at[i][0] && (!c->in[i] || !c->in[i]->type.dtype || c->in[i]->count)) return false;
  }
  return c->in != NULL;
}

static bool know_node(onnx_import *im, const onnx_node *n) {
  onnx_call c = {.im = im, .g = im->g, .node = n, .name = n->op, .out_count = n->outputs.count};
  const onnx_row *other = NULL;
  const uint32_t problems = im->problems.count;
  bool known = false;
  c.out = IR_NEW_ARRAY(im->temp, onnx_value, c.out_count);
  if (!c.out) return onnx_fail(im, SNT_E_HOST_MEM, "out of memory");
  c.opset = onnx_scope_opset(im->scope, n->domain);
  c.row = onnx_find_row(n, c.opset, &other);
  if (c.row && !onnx_find_function(im, n) && find_known(&c)) known = is_constant(n) ? onnx_run_row(&c) : onnx_know(&c, &known) && known;
  im->problems.count = problems; /* the import proper tells them */
  return !im->failed && !im->again && publish(&c, known);
}

bool onnx_know_nodes(onnx_import *im, const onnx_nodes *nodes) {
  for (uint32_t i = 0; i < nodes->count; i++)
    if (!know_node(im, &nodes->at[i])) return false;
  return true;
}

/* ---- outputs ---- */
static void add_count(onnx_import *im, const char *name, uint32_t count) {
  ir_text text;
  ir_text_init(&text, im->temp);
  ir_text_format(&text, "%s.count", name);
  if (!text.failed && count) ir_add_output(im->g, text.at, count);
}

static bool import_output(onnx_import *im, const onnx_port *p) {
  const char *why;
  onnx_value *v = onnx_scope_find(im->scope, p->name);
  if (!p->name[0] || !v) return onnx_fail(im, SNT_E_PARSE, "output %.80s is computed by nothing", p->name);
  if (v->broken || v->returned) return true; /* a file may list a value twice */
  v->returned = true;
  const uint32_t node = onnx_value_node(im, v, &why);
  if (!node && im->failed) return false;
  if (!node) onnx_add_problem(im, p->name, "output", why ? why : "it could not be computed");
  if (im->g->failed) return onnx_fail(im, SNT_E_SHAPE, "output %.80s: %.150s", p->name, im->g->first_error.text);
  onnx_call c = {.im = im, .g = im->g, .node = &(onnx_node){.op = "output"}, .name = p->name};
  const uint32_t given = node && v->count ? onnx_node_at_rest(&c, v) : node;
  if (given) ir_add_output(im->g, p->name, given);
  if (given && v->count) add_count(im, p->name, onnx_whole_node(im, SNT_I64, v->count));
  return true;
}

static snt_result report(onnx_import *im) {
  const snt_onnx_info *info = im->info;
  char text[240];
  size_t length = 0;
  if (onnx_starved(im)) return SNT_E_HOST_MEM;
  for (uint32_t i = 0; i < im->problems.count; i++) {
    const onnx_problem *p = &im->problems.at[i];
    if (info && info->unsupported) info->unsupported(info->user, p->node, p->op, p->reason);
    if (length < sizeof text)
      length += (size_t)snprintf(text + length, sizeof text - length, "%s%.60s (%.40s): %.100s", i ? "; " : "", p->node, p->op, p->reason);
  }
  if (!im->problems.count) return SNT_OK;
  return ir_fail(im->diag, SNT_E_UNSUPPORTED, "onnx", 0, "%u not supported: %s", im->problems.count, text);
}

static const char *title_of(onnx_import *im, const onnx_graph *graph) {
  const char *name = graph->name[0] ? graph->name : "main";
  return ir_arena_text(im->g->arena, name, strlen(name));
}

static bool check_names(onnx_import *im, const onnx_graph *graph) {
  const char *stray = onnx_stray_dim(im);
  name_list inputs = {.used = 0}, extents = {.used = 0};
  for (uint32_t i = 0; i < graph->inputs.count; i++) {
    const onnx_port *p = &graph->inputs.at[i];
    const onnx_value *v = onnx_scope_find(im->scope, p->name);
    if (v && !v->tensor) list_name(&inputs, p->name);
    for (uint32_t axis = 0; axis < p->dims.count; axis++)
      if (p->dims.at[axis].value < 0) list_name(&extents, dim_name(im, p, axis));
  }
  for (uint32_t i = 0; im->info && i < im->info->fixed_count; i++)
    if (!onnx_scope_find(im->scope, im->info->fixed[i].name))
      return onnx_fail(im, SNT_E_ARG, "no input is named %.60s; there are: %s", im->info->fixed[i].name, inputs.text);
  return !stray || onnx_fail(im, SNT_E_ARG, "no extent is named %.60s; open are: %s", stray, extents.used ? extents.text : "none");
}

/* What an input that is given says of extents, others with an extent of that name have, too. */
static bool give_extents(onnx_import *im, const onnx_ports *inputs) {
  im->given.count = 0;
  for (uint32_t i = 0; i < inputs->count; i++) {
    const onnx_port *p = &inputs->at[i];
    const snt_onnx_fixed *given = find_fixed(im, p->name);
    for (uint32_t axis = 0; given && given->tensor.rank == p->dims.count && axis < p->dims.count; axis++)
      if (p->dims.at[axis].value < 0 && !onnx_give_extent(im, dim_name(im, p, axis), given->tensor.dims[axis])) return false;
  }
  return true;
}

static bool import_graph(onnx_import *im, const onnx_graph *graph) {
  im->g->title = title_of(im, graph);
  if (graph->sparse) return onnx_fail(im, SNT_E_UNSUPPORTED, "graph %.80s has sparse initializers", graph->name);
  if (!onnx_import_constants(im, &graph->constants) || !give_extents(im, &graph->inputs)) return false;
  for (uint32_t i = 0; i < graph->inputs.count; i++)
    if (!import_input(im, &graph->inputs.at[i])) return false;
  if (!onnx_import_nodes(im, &graph->nodes) || !check_names(im, graph)) return false; /* numbers that nodes compute have names, too */
  if (!graph->outputs.count) return onnx_fail(im, SNT_E_PARSE, "the model has no outputs");
  for (uint32_t i = 0; i < graph->outputs.count; i++)
    if (!import_output(im, &graph->outputs.at[i])) return false;
  return true;
}

enum { MAX_ROUNDS = 64 };

snt_result onnx_import_model(onnx_import *im) {
  snt_diag unused;
  if (!im->diag) im->diag = &unused;
  im->dim_count = im->info ? im->info->dim_count : 0;
  im->dim_used = IR_NEW_ARRAY(im->temp, bool, im->dim_count);
  if (!im->dim_used) return ir_fail(im->diag, SNT_E_HOST_MEM, "onnx", 0, "out of memory");
  if (!im->model->graph) return ir_fail(im->diag, SNT_E_PARSE, "onnx", 0, "the file holds no graph: it is no ONNX model");
  for (uint32_t round = 0;; round++) {
    onnx_scope scope = {.opsets = &im->model->opsets};
    im->scope = &scope;
    im->depth = im->done = 0;
    im->again = false;
    im->problems.count = im->trips.count = im->counts.count = 0;
    const bool good = import_graph(im, im->model->graph);
    if (im->failed) return im->failed;
    if (good) break;
    if (!im->again || round == MAX_ROUNDS) return ir_fail(im->diag, SNT_E_INTERNAL, "onnx", 0, "the import ended without a reason");
    ir_arena *arena = im->g->arena;
    expr_pool *pool = im->g->pool;
    expr_pool_init(pool, arena);
    ir_graph_init(im->g, arena, pool);
  }
  SNT_TRY(report(im));
  if (im->g->failed) return ir_fail(im->diag, SNT_E_INTERNAL, "onnx", im->g->first_error.node, "%s", im->g->first_error.text);
  return SNT_OK;
}
