/* ONNX bytes to onnx_model with nanopb. In: bytes that nobody vouches for. Out: copies of names, views of data. Every element kept took at
   least a byte of the file, so memory is bounded by a small multiple of its size; nesting is limited; the first error ends the reading. */
#include "onnx/model.h"
#include "onnx/onnx.pb.h"
#include <pb_decode.h>

enum { MAX_NESTING = 24 }; /* graphs in attributes of nodes of graphs */
typedef struct reader {
  ir_arena *arena;
  const uint8_t *begin, *end;
  uint32_t depth;
  const char *what; /* the name last read, for errors */
  char error[160];
} reader;
typedef struct slot {
  reader *r;
  void *to;
} slot; /* where a field's callback puts its value */

static bool fail(reader *r, const char *what) {
  if (!r->error[0]) {
    const size_t length = strlen(what) < sizeof r->error - 1 ? strlen(what) : sizeof r->error - 1;
    memcpy(r->error, what, length);
  }
  return false;
}

/* Of a part of the file: nanopb's own word for what is wrong would be lost on the way out. */
static bool decode(reader *r, pb_istream_t *stream, const pb_msgdesc_t *fields, void *to) {
  return pb_decode(stream, fields, to) || fail(r, PB_GET_ERROR(stream));
}

static const char cut_number[] = "a field of numbers has the wrong wire type, or ends amid one";

/* The rest of the stream as a view; false if it is no part of the file, which happens when a field has another wire type than it should. */
static bool take_view(reader *r, pb_istream_t *stream, onnx_bytes *out) {
  out->at = stream->state;
  out->size = stream->bytes_left;
  if (out->size && (out->at < r->begin || out->at >= r->end || out->size > (size_t)(r->end - out->at)))
    return fail(r, "a field has the wrong wire type");
  return pb_read(stream, NULL, stream->bytes_left);
}

/* ---- plain values ---- */
static const char *take_text(reader *r, pb_istream_t *stream) {
  onnx_bytes b;
  if (!take_view(r, stream, &b)) return NULL;
  if (b.size && memchr(b.at, 0, b.size)) {
    fail(r, "a name has a zero byte in it");
    return NULL;
  }
  const char *text = ir_arena_text(r->arena, (const char *)b.at, b.size);
  if (!text) fail(r, "out of memory");
  return text;
}

static bool get_text(pb_istream_t *stream, const pb_field_t *field, void **arg) {
  const slot *s = *arg;
  (void)field;
  return (*(const char **)s->to = take_text(s->r, stream)) != NULL;
}

static bool get_texts(pb_istream_t *stream, const pb_field_t *field, void **arg) {
  const slot *s = *arg;
  const char *text = take_text(s->r, stream);
  (void)field;
  return text && (IR_PUSH(s->r->arena, (onnx_names *)s->to, text) || fail(s->r, "out of memory"));
}

/* Bytes as text: what strings in attributes are. A zero byte ends them. */
static bool get_attr_text(pb_istream_t *stream, const pb_field_t *field, void **arg) {
  const slot *s = *arg;
  onnx_bytes b;
  (void)field;
  if (!take_view(s->r, stream, &b)) return false;
  const uint8_t *zero = b.size ? memchr(b.at, 0, b.size) : NULL;
  const char *text = ir_arena_text(s->r->arena, (const char *)b.at, zero ? (size_t)(zero - b.at) : b.size);
  *(const char **)s->to = text;
  return text || fail(s->r, "out of memory");
}

static bool get_attr_texts(pb_istream_t *stream, const pb_field_t *field, void **arg) {
  const slot *s = *arg;
  const char *text = NULL;
  slot one = {s->r, &text};
  void *inner = &one;
  return get_attr_text(stream, field, &inner) && (IR_PUSH(s->r->arena, (onnx_names *)s->to, text) || fail(s->r, "out of memory"));
}

static bool get_bytes(pb_istream_t *stream, const pb_field_t *field, void **arg) {
  const slot *s = *arg;
  (void)field;
  return take_view(s->r, stream, s->to);
}

static bool count_field(pb_istream_t *stream, const pb_field_t *field, void **arg) {
  const slot *s = *arg;
  (void)field;
  ++*(uint32_t *)s->to;
  return pb_read(stream, NULL, stream->bytes_left);
}

static bool get_ints(pb_istream_t *stream, const pb_field_t *field, void **arg) {
  const slot *s = *arg;
  (void)field;
  while (stream->bytes_left) {
    uint64_t value;
    if (!pb_decode_varint(stream, &value)) return fail(s->r, cut_number);
    if (!IR_PUSH(s->r->arena, (onnx_ints *)s->to, (int64_t)value)) return fail(s->r, "out of memory");
  }
  return true;
}

static bool get_floats(pb_istream_t *stream, const pb_field_t *field, void **arg) {
  const slot *s = *arg;
  (void)field;
  while (stream->bytes_left) {
    float value;
    if (!pb_decode_fixed32(stream, &value)) return fail(s->r, cut_number);
    if (!IR_PUSH(s->r->arena, (onnx_floats *)s->to, value)) return fail(s->r, "out of memory");
  }
  return true;
}

/* ---- tensors ---- */
static bool is_little_endian(void) {
  const uint16_t one = 1;
  return *(const uint8_t *)&one == 1;
}

/* The usual case, one packed piece, stays where it is. */
static bool keep_packed(reader *r, onnx_tensor *t, pb_istream_t *stream) {
  const uint8_t *at = stream->state;
  if (t->reals.count || t->packed.size || !is_little_endian() || at < r->begin || at >= r->end) return false;
  return take_view(r, stream, &t->packed);
}

static bool unpack_again(reader *r, onnx_tensor *t, size_t size) {
  for (size_t i = 0; i + size <= t->packed.size; i += size) {
    float narrow;
    double value;
    memcpy(size == 4 ? (void *)&narrow : (void *)&value, t->packed.at + i, size);
    if (!IR_PUSH(r->arena, &t->reals, size == 4 ? (double)narrow : value)) return fail(r, "out of memory");
  }
  t->packed = (onnx_bytes){0};
  return true;
}

static bool get_reals(pb_istream_t *stream, const slot *s, size_t size) {
  onnx_tensor *t = s->to;
  if (stream->bytes_left % size) return fail(s->r, "packed numbers end in the middle of one");
  if (!stream->bytes_left || keep_packed(s->r, t, stream)) return true;
  if (!unpack_again(s->r, t, size)) return false;
  while (stream->bytes_left) {
    float narrow = 0;
    double value = 0;
    if (size == 4 ? !pb_decode_fixed32(stream, &narrow) : !pb_decode_fixed64(stream, &value)) return fail(s->r, cut_number);
    if (!IR_PUSH(s->r->arena, &t->reals, size == 4 ? (double)narrow : value)) return fail(s->r, "out of memory");
  }
  return true;
}
static bool get_float_data(pb_istream_t *stream, const pb_field_t *field, void **arg) {
  (void)field;
  return get_reals(stream, *arg, 4);
}
static bool get_double_data(pb_istream_t *stream, const pb_field_t *field, void **arg) {
  (void)field;
  return get_reals(stream, *arg, 8);
}

static bool get_external(pb_istream_t *stream, const pb_field_t *field, void **arg) {
  const slot *s = *arg;
  onnx_tensor *t = s->to;
  const char *key = "", *value = "";
  slot slots[] = {{s->r, &key}, {s->r, &value}};
  onnx_StringStringEntry m = {.key = {{get_text}, &slots[0]}, .value = {{get_text}, &slots[1]}};
  (void)field;
  if (!decode(s->r, stream, onnx_StringStringEntry_fields, &m)) return false;
  if (!strcmp(key, "location")) t->location = value;
  if (!strcmp(key, "offset")) t->offset = value;
  if (!strcmp(key, "length")) t->length = value;
  return true;
}

static bool decode_tensor(reader *r, pb_istream_t *stream, onnx_tensor *t) {
  slot name = {r, &t->name}, dims = {r, &t->dims}, raw = {r, &t->raw}, ints = {r, &t->ints}, strings = {r, &t->strings}, self = {r, t};
  onnx_Tensor m = {.dims = {{get_ints}, &dims},
                   .float_data = {{get_float_data}, &self},
                   .int32_data = {{get_ints}, &ints},
                   .string_data = {{count_field}, &strings},
                   .int64_data = {{get_ints}, &ints},
                   .name = {{get_text}, &name},
                   .raw_data = {{get_bytes}, &raw},
                   .double_data = {{get_double_data}, &self},
                   .uint64_data = {{get_ints}, &ints},
                   .external_data = {{get_external}, &self}};
  *t = (onnx_tensor){.name = ""};
  if (!decode(r, stream, onnx_Tensor_fields, &m)) return false;
  t->type = m.has_data_type ? m.data_type : 0;
  t->external = m.has_data_location && m.data_location == 1;
  r->what = t->name;
  return true;
}

static bool get_tensor(pb_istream_t *stream, const pb_field_t *field, void **arg) {
  const slot *s = *arg;
  onnx_tensor *t = IR_NEW(s->r->arena, onnx_tensor);
  (void)field;
  if (!t) return fail(s->r, "out of memory");
  *(onnx_tensor **)s->to = t;
  return decode_tensor(s->r, stream, t);
}

/* ---- nodes ---- */
static bool decode_graph(reader *, pb_istream_t *, onnx_graph *);

static bool get_graph(pb_istream_t *stream, const pb_field_t *field, void **arg) {
  const slot *s = *arg;
  onnx_graph **at = s->to;
  (void)field;
  if (!*at) *at = IR_NEW(s->r->arena, onnx_graph); /* a second piece of the same message is added to the first */
  if (!*at) return fail(s->r, "out of memory");
  return decode_graph(s->r, stream, *at);
}

static int32_t guess_kind(const onnx_attr *a, const onnx_Attribute *m) { /* writers of old left the type out */
  if (m->has_type && m->type) return m->type;
  if (m->has_f) return ONNX_FLOAT;
  if (m->has_i) return ONNX_INT;
  if (a->text) return ONNX_TEXT;
  if (a->tensor) return ONNX_TENSOR;
  if (a->graph) return ONNX_GRAPH;
  if (a->floats.count) return ONNX_FLOATS;
  return a->texts.count ? ONNX_TEXTS : ONNX_INTS;
}

static bool decode_attr(reader *r, pb_istream_t *stream, onnx_attr *a) {
  uint32_t ignored = 0;
  slot name = {r, &a->name}, text = {r, &a->text}, tensor = {r, &a->tensor}, graph = {r, &a->graph}, floats = {r, &a->floats};
  slot ints = {r, &a->ints}, texts = {r, &a->texts}, reference = {r, &a->reference}, other = {r, &ignored};
  onnx_Attribute m = {.name = {{get_text}, &name},
                      .s = {{get_attr_text}, &text},
                      .t = {{get_tensor}, &tensor},
                      .g = {{get_graph}, &graph},
                      .floats = {{get_floats}, &floats},
                      .ints = {{get_ints}, &ints},
                      .strings = {{get_attr_texts}, &texts},
                      .tensors = {{count_field}, &other},
                      .graphs = {{count_field}, &other},
                      .ref_attr_name = {{get_text}, &reference}};
  *a = (onnx_attr){.name = ""};
  if (!decode(r, stream, onnx_Attribute_fields, &m)) return false;
  if (a->reference && !a->reference[0]) a->reference = NULL;
  a->f = m.f;
  a->i = m.i;
  a->kind = guess_kind(a, &m);
  if (a->kind == ONNX_TEXT && !a->text) a->text = "";
  if ((a->kind == ONNX_TENSOR && !a->tensor) || (a->kind == ONNX_GRAPH && !a->graph)) a->kind = 0;
  return true;
}

static bool get_attrs(pb_istream_t *stream, const pb_field_t *field, void **arg) {
  const slot *s = *arg;
  onnx_attr a;
  (void)field;
  return decode_attr(s->r, stream, &a) && (IR_PUSH(s->r->arena, (onnx_attrs *)s->to, a) || fail(s->r, "out of memory"));
}

static const char *plain_domain(const char *domain) { return strcmp(domain, "ai.onnx") ? domain : ""; }

static bool decode_node(reader *r, pb_istream_t *stream, onnx_node *n) {
  const char *overload = "";
  slot in = {r, &n->inputs}, out = {r, &n->outputs}, name = {r, &n->name}, op = {r, &n->op}, attr = {r, &n->attrs},
       domain = {r, &n->domain};
  slot over = {r, &overload};
  onnx_Node m = {.input = {{get_texts}, &in},
                 .output = {{get_texts}, &out},
                 .name = {{get_text}, &name},
                 .op_type = {{get_text}, &op},
                 .attribute = {{get_attrs}, &attr},
                 .domain = {{get_text}, &domain},
                 .overload = {{get_text}, &over}};
  *n = (onnx_node){.name = "", .op = "", .domain = ""};
  if (!decode(r, stream, onnx_Node_fields, &m)) return false;
  n->domain = plain_domain(n->domain);
  r->what = n->name[0] ? n->name : n->outputs.count ? n->outputs.at[0] : n->op;
  return true;
}

static bool get_nodes(pb_istream_t *stream, const pb_field_t *field, void **arg) {
  const slot *s = *arg;
  onnx_node n;
  (void)field;
  return decode_node(s->r, stream, &n) && (IR_PUSH(s->r->arena, (onnx_nodes *)s->to, n) || fail(s->r, "out of memory"));
}

/* ---- graphs ---- */
static bool get_dims(pb_istream_t *stream, const pb_field_t *field, void **arg) {
  const slot *s = *arg;
  onnx_dim d = {-1, NULL};
  slot param = {s->r, &d.param};
  onnx_Dimension m = {.dim_param = {{get_text}, &param}};
  (void)field;
  if (!decode(s->r, stream, onnx_Dimension_fields, &m)) return false;
  if (m.has_dim_value) d.value = m.dim_value;
  if (d.param && !d.param[0]) d.param = NULL;
  if (m.has_dim_value && m.dim_value < -1 && !d.param) d.param = ""; /* refused by the importer, which can name the input; -1 is "open" */
  return IR_PUSH(s->r->arena, (onnx_dims *)s->to, d) || fail(s->r, "out of memory");
}

static bool get_shape(pb_istream_t *stream, const pb_field_t *field, void **arg) {
  const slot *s = *arg;
  onnx_port *p = s->to;
  slot dims = {s->r, &p->dims};
  onnx_Shape m = {.dim = {{get_dims}, &dims}};
  (void)field;
  p->has_shape = true;
  return decode(s->r, stream, onnx_Shape_fields, &m);
}

static bool get_tensor_type(pb_istream_t *stream, const pb_field_t *field, void **arg) {
  const slot *s = *arg;
  onnx_TensorType m = {.shape = {{get_shape}, (void *)(uintptr_t)s}};
  (void)field;
  if (!decode(s->r, stream, onnx_TensorType_fields, &m)) return false;
  ((onnx_port *)s->to)->type = m.elem_type;
  return true;
}

static bool get_type(pb_istream_t *stream, const pb_field_t *field, void **arg) {
  const slot *s = *arg;
  onnx_Type m = {.tensor_type = {{get_tensor_type}, *arg}};
  (void)field;
  return decode(s->r, stream, onnx_Type_fields, &m);
}

static bool get_ports(pb_istream_t *stream, const pb_field_t *field, void **arg) {
  const slot *s = *arg;
  onnx_port p = {.name = ""};
  slot name = {s->r, &p.name}, self = {s->r, &p};
  onnx_ValueInfo m = {.name = {{get_text}, &name}, .type = {{get_type}, &self}};
  (void)field;
  if (!decode(s->r, stream, onnx_ValueInfo_fields, &m)) return false;
  return IR_PUSH(s->r->arena, (onnx_ports *)s->to, p) || fail(s->r, "out of memory");
}

static bool get_tensors(pb_istream_t *stream, const pb_field_t *field, void **arg) {
  const slot *s = *arg;
  onnx_tensor t;
  (void)field;
  return decode_tensor(s->r, stream, &t) && (IR_PUSH(s->r->arena, (onnx_tensors *)s->to, t) || fail(s->r, "out of memory"));
}

static bool decode_graph(reader *r, pb_istream_t *stream, onnx_graph *g) {
  slot nodes = {r, &g->nodes}, name = {r, &g->name}, tensors = {r, &g->constants}, in = {r, &g->inputs}, out = {r, &g->outputs};
  slot sparse = {r, &g->sparse};
  onnx_Graph m = {.node = {{get_nodes}, &nodes},
                  .name = {{get_text}, &name},
                  .initializer = {{get_tensors}, &tensors},
                  .input = {{get_ports}, &in},
                  .output = {{get_ports}, &out},
                  .sparse_initializer = {{count_field}, &sparse}};
  if (!g->name) g->name = "";
  if (r->depth == MAX_NESTING) return fail(r, "graphs are nested too deeply");
  r->depth++;
  const bool good = decode(r, stream, onnx_Graph_fields, &m);
  r->depth--;
  return good && (onnx_put_in_order(r->arena, &g->nodes) || fail(r, "out of memory"));
}

/* ---- the model ---- */
static bool get_opsets(pb_istream_t *stream, const pb_field_t *field, void **arg) {
  const slot *s = *arg;
  onnx_opset o = {.domain = ""};
  slot domain = {s->r, &o.domain};
  onnx_OperatorSetId m = {.domain = {{get_text}, &domain}};
  (void)field;
  if (!decode(s->r, stream, onnx_OperatorSetId_fields, &m)) return false;
  o.domain = plain_domain(o.domain);
  o.version = m.version;
  return IR_PUSH(s->r->arena, (onnx_opsets *)s->to, o) || fail(s->r, "out of memory");
}

static bool get_attr_names(pb_istream_t *stream, const pb_field_t *field, void **arg) { /* attributes of a function without a default */
  const slot *s = *arg;
  (void)field;
  return take_text(s->r, stream) != NULL;
}

static bool get_functions(pb_istream_t *stream, const pb_field_t *field, void **arg) {
  const slot *s = *arg;
  reader *r = s->r;
  onnx_function f = {.name = "", .domain = ""};
  const char *overload = "";
  slot name = {r, &f.name}, in = {r, &f.inputs}, out = {r, &f.outputs}, nodes = {r, &f.nodes}, defaults = {r, &f.defaults};
  slot opsets = {r, &f.opsets}, domain = {r, &f.domain}, over = {r, &overload}, none = {r, NULL};
  onnx_Function m = {.name = {{get_text}, &name},
                     .input = {{get_texts}, &in},
                     .output = {{get_texts}, &out},
                     .attribute = {{get_attr_names}, &none},
                     .node = {{get_nodes}, &nodes},
                     .opset_import = {{get_opsets}, &opsets},
                     .domain = {{get_text}, &domain},
                     .attribute_proto = {{get_attrs}, &defaults},
                     .overload = {{get_text}, &over}};
  (void)field;
  if (!decode(s->r, stream, onnx_Function_fields, &m)) return false;
  f.domain = plain_domain(f.domain);
  return (onnx_put_in_order(r->arena, &f.nodes) && IR_PUSH(r->arena, (onnx_functions *)s->to, f)) || fail(r, "out of memory");
}

static snt_result end_reading(reader *r, const pb_istream_t *stream, bool good, const char *kind, snt_diag *diag) {
  if (good) return SNT_OK;
  if (r->arena->failed) return ir_fail(diag, SNT_E_HOST_MEM, "onnx", 0, "out of memory while reading the file");
  const char *why = r->error[0] ? r->error : PB_GET_ERROR(stream);
  return ir_fail(diag, SNT_E_PARSE, "onnx", 0, "not %s: %s%s%.60s", kind, why, r->what ? ", after " : "", r->what ? r->what : "");
}

snt_result onnx_read_model(onnx_model *out, ir_arena *arena, const void *data, size_t size, snt_diag *diag) {
  reader r = {.arena = arena, .begin = data, .end = (const uint8_t *)data + size};
  *out = (onnx_model){.producer = ""};
  slot producer = {&r, &out->producer}, graph = {&r, &out->graph}, opsets = {&r, &out->opsets}, functions = {&r, &out->functions};
  onnx_Model m = {.producer_name = {{get_text}, &producer},
                  .graph = {{get_graph}, &graph},
                  .opset_import = {{get_opsets}, &opsets},
                  .functions = {{get_functions}, &functions}};
  pb_istream_t stream = pb_istream_from_buffer(data, size);
  const bool good = pb_decode(&stream, onnx_Model_fields, &m);
  out->ir_version = m.ir_version;
  return end_reading(&r, &stream, good, "an ONNX model", diag);
}

snt_result onnx_read_tensor(onnx_tensor *out, ir_arena *arena, const void *data, size_t size, snt_diag *diag) {
  reader r = {.arena = arena, .begin = data, .end = (const uint8_t *)data + size};
  pb_istream_t stream = pb_istream_from_buffer(data, size);
  const bool good = decode_tensor(&r, &stream, out);
  return end_reading(&r, &stream, good, "an ONNX tensor", diag);
}
