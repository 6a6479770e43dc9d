/* ONNX files that mean harm or are broken, each written for one fault: a clear error that names the place, memory stays bounded, nothing crashes. The
   fuzzer tests/fuzz/onnx.c makes thousands more. */
#include "tests/fuzz/onnx_import.h"
#include "tests/tap.h"
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_FILE = 1 << 16 };

/* ---- a writer of protobuf ---- */
typedef struct bytes {
  uint8_t at[MAX_FILE];
  size_t size;
} bytes;
static void put_varint(bytes *b, uint64_t v) {
  for (; v > 127; v >>= 7) b->at[b->size++] = (uint8_t)(v | 128);
  b->at[b->size++] = (uint8_t)v;
}
static void put_int(bytes *b, uint32_t field, uint64_t v) {
  put_varint(b, field << 3);
  put_varint(b, v);
}
static void put_raw(bytes *b, uint32_t field, const void *data, size_t size) {
  put_varint(b, field << 3 | 2);
  put_varint(b, size);
  memcpy(b->at + b->size, data, size);
  b->size += size;
}
static void put_text(bytes *b, uint32_t field, const char *text) { put_raw(b, field, text, strlen(text)); }
static void put_message(bytes *b, uint32_t field, const bytes *m) { put_raw(b, field, m->at, m->size); }

static void put_port(bytes *graph, uint32_t field, const char *name, uint64_t type, uint32_t rank, const int64_t *dims) {
  static bytes shape, dim, tensor, whole, port;
  shape.size = tensor.size = whole.size = port.size = 0;
  for (uint32_t i = 0; i < rank; i++) {
    dim.size = 0;
    if (dims[i] == -7) put_text(&dim, 2, "n");
    else put_int(&dim, 1, (uint64_t)dims[i]);
    put_message(&shape, 1, &dim);
  }
  put_int(&tensor, 1, type);
  put_message(&tensor, 2, &shape);
  put_message(&whole, 1, &tensor);
  put_text(&port, 1, name);
  put_message(&port, 2, &whole);
  put_message(graph, field, &port);
}

/* in and out: names between blanks */
static void put_names(bytes *b, uint32_t field, const char *names) {
  while (*names) {
    const size_t length = strcspn(names, " ");
    put_raw(b, field, names, length);
    names += length + (names[length] == ' ');
  }
}
static void put_attr_int(bytes *node, const char *name, int64_t value) {
  static bytes attr;
  attr.size = 0;
  put_text(&attr, 1, name);
  put_int(&attr, 3, (uint64_t)value);
  put_int(&attr, 20, 2);
  put_message(node, 5, &attr);
}
static void put_attr_graph(bytes *node, const char *name, const bytes *inner) {
  static bytes attr;
  attr.size = 0;
  put_text(&attr, 1, name);
  put_message(&attr, 6, inner);
  put_int(&attr, 20, 5);
  put_message(node, 5, &attr);
}
static void put_node(bytes *graph, const char *op, const char *name, const char *in, const char *out, const bytes *more) {
  static bytes node;
  node.size = 0;
  put_names(&node, 1, in);
  put_names(&node, 2, out);
  put_text(&node, 3, name);
  put_text(&node, 4, op);
  if (more) {
    memcpy(node.at + node.size, more->at, more->size);
    node.size += more->size;
  }
  put_message(graph, 1, &node);
}
static void put_tensor(bytes *graph, const char *name, uint64_t type, uint32_t rank, const int64_t *dims, const void *data, size_t size) {
  static bytes t;
  t.size = 0;
  for (uint32_t i = 0; i < rank; i++) put_int(&t, 1, (uint64_t)dims[i]);
  put_int(&t, 2, type);
  put_text(&t, 8, name);
  if (data) put_raw(&t, 9, data, size);
  put_message(graph, 5, &t);
}
static void end_model(bytes *model, const bytes *graph) {
  static bytes opset;
  opset.size = model->size = 0;
  put_text(&opset, 1, "");
  put_int(&opset, 2, 17);
  put_int(model, 1, 8);
  put_message(model, 7, graph);
  put_message(model, 8, &opset);
}

static const int64_t four[] = {4}, two_by_four[] = {2, 4}, open_by_four[] = {-7, 4};
static const float numbers[8] = {1, 2, 3, 4, 5, 6, 7, 8};
static bytes graph, model, more;

static void start(void) { graph.size = model.size = more.size = 0; }

/* y = relu(x w + b) with shape arithmetic beside it: what is mutated, and what single faults are put into. */
static void good_model(void) {
  static const int64_t square[] = {4, 2}, two[] = {2};
  const int64_t shape[] = {-1, 2};
  start();
  put_port(&graph, 11, "x", 1, 2, open_by_four);
  put_tensor(&graph, "w", 1, 2, square, numbers, 32);
  put_tensor(&graph, "b", 1, 1, two, numbers, 8);
  put_tensor(&graph, "s", 7, 1, two, shape, 16);
  put_node(&graph, "MatMul", "product", "x w", "p", NULL);
  put_node(&graph, "Add", "sum", "p b", "q", NULL);
  put_attr_int(&more, "axis", 1);
  put_node(&graph, "Softmax", "soft", "q", "r", &more);
  put_node(&graph, "Reshape", "shaped", "r s", "t", NULL);
  put_node(&graph, "Relu", "last", "t", "y", NULL);
  put_port(&graph, 12, "y", 1, 2, open_by_four);
  end_model(&model, &graph);
}

/* Nodes that stand in front of what they read, as converters append them: a chain from its end on, and an If one of whose branches reads what the file has
   behind it. The same with a branch that reads the If's own result goes round in circles. */
static void unsorted_model(bool round) {
  static bytes inner;
  start();
  put_port(&graph, 11, "x", 1, 1, four);
  put_port(&graph, 11, "f", 9, 0, NULL);
  for (uint32_t i = 0; i < 2; i++) {
    inner.size = 0;
    put_node(&inner, "Relu", i ? "kept" : "clipped", i ? "x" : round ? "y" : "late", i ? "kept_y" : "clipped_y", NULL);
    put_port(&inner, 12, i ? "kept_y" : "clipped_y", 1, 1, four);
    put_attr_graph(&more, i ? "else_branch" : "then_branch", &inner);
  }
  put_node(&graph, "Add", "last", "y late", "z", NULL);
  put_node(&graph, "If", "choice", "f", "y", &more);
  put_node(&graph, "Abs", "third", "b", "late", NULL);
  put_node(&graph, "Neg", "second", "a", "b", NULL);
  put_node(&graph, "Exp", "first", "x", "a", NULL);
  put_port(&graph, 12, "z", 1, 1, four);
  end_model(&model, &graph);
}

/* The import fails and says `where` in what it says. */
static void refused(const char *what, const char *where) {
  snt_diag diag;
  const snt_result r = onnx_import_from(model.at, model.size, NULL, &diag);
  const bool named = strstr(diag.text, where) || strstr(onnx_import_said, where);
  if (!tap_result(r < 0 && named, __FILE__, __LINE__, "%s", what)) tap_diag("%d %s %s", r, diag.text, onnx_import_said);
}

/* ---- one fault each ---- */
static void check_structure(void) {
  snt_diag diag;
  good_model();
  tap_result(onnx_import_from(model.at, model.size, NULL, &diag) == SNT_OK, __FILE__, __LINE__, "the model without a fault") ||
      (tap_diag("%s %s", diag.text, onnx_import_said), 0);
  uint32_t passed = 0;
  for (size_t size = 0; size < model.size; size++) passed += onnx_import_from(model.at, size, NULL, &diag) == SNT_OK && size > 0 ? 1 : 0;
  tap_result(passed <= 1, __FILE__, __LINE__, "cut off anywhere it is refused, but before its last field (%u)", passed);
  start();
  put_port(&graph, 11, "x", 1, 1, four);
  put_node(&graph, "Add", "first", "x later", "a", NULL);
  put_node(&graph, "Relu", "second", "a", "later", NULL);
  put_port(&graph, 12, "later", 1, 1, four);
  end_model(&model, &graph);
  refused("a cycle names the node", "first (Add)");
  unsorted_model(false);
  tap_result(onnx_import_from(model.at, model.size, NULL, &diag) == SNT_OK, __FILE__, __LINE__,
             "nodes in front of what they and their branches read are sorted") ||
      (tap_diag("%s %s", diag.text, onnx_import_said), 0);
  unsorted_model(true);
  refused("a branch that reads its own If", "computed by nothing before it");
  start();
  put_port(&graph, 11, "x", 1, 1, four);
  put_node(&graph, "Relu", "one", "x", "a", NULL);
  put_node(&graph, "Abs", "two", "x", "a", NULL);
  put_port(&graph, 12, "a", 1, 1, four);
  end_model(&model, &graph);
  refused("a value that two nodes compute", "two (Abs)");
  start();
  put_port(&graph, 11, "x", 1, 1, four);
  put_node(&graph, "Foo", "one", "x", "a", NULL);
  put_node(&graph, "Relu", "two", "a", "b", NULL);
  put_node(&graph, "Bar", "three", "b", "y", NULL);
  put_port(&graph, 12, "y", 1, 1, four);
  end_model(&model, &graph);
  refused("what is no operator is told at once, behind another, too", "one (Foo): no such operator; three (Bar): no such operator");
}

/* y, which one node makes of x and of what else `reads` names. */
static void end_with_one(const char *op, const char *name, const char *reads) {
  put_node(&graph, op, name, reads, "y", NULL);
  put_port(&graph, 12, "y", 1, 1, four);
  end_model(&model, &graph);
}

static void check_names(void) {
  start();
  put_port(&graph, 11, "x", 1, 1, four);
  put_port(&graph, 11, "x", 1, 1, four);
  end_with_one("Relu", "one", "x");
  refused("two inputs of one name", "named x");
  start();
  put_port(&graph, 11, "x", 1, 1, four);
  end_with_one("Add", "sum", "x missing");
  refused("a missing initializer", "missing");
  start();
  put_port(&graph, 11, "x", 1, 1, four);
  put_port(&graph, 12, "nothing", 1, 1, four);
  end_model(&model, &graph);
  refused("an output that nothing computes", "nothing");
  start();
  put_port(&graph, 11, "x", 1, 1, four);
  put_text(&graph, 2, "thin");
  put_raw(&graph, 15, "", 0);
  end_with_one("Add", "sum", "x w");
  refused("sparse initializers, not the node that reads one", "graph thin has sparse initializers");
  start();
  put_port(&graph, 11, "x", 1, 1, four);
  end_with_one("Cast", "one", "x");
  refused("an attribute that is missing is named", "one (Cast): attribute to is missing");
}

static void check_sizes(void) {
  static const int64_t negative[] = {2, -3}, huge[] = {INT64_C(1) << 62, 4}, wide[] = {INT64_C(1) << 31, INT64_C(1) << 31};
  static const int64_t nine[] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
  const struct {
    const char *what, *where;
    const int64_t *dims;
    uint32_t rank;
  } rows[] = {{"an input of negative extent", "input x", negative, 2},
              {"an input of 2^64 elements", "input x", huge, 2},
              {"an input of 2^62 elements", "input x", wide, 2},
              {"an input of rank 9", "x (input)", nine, 9}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    start();
    put_port(&graph, 11, "x", 1, rows[i].rank, rows[i].dims);
    put_node(&graph, "Relu", "one", "x", "y", NULL);
    put_port(&graph, 12, "y", 1, 1, four);
    end_model(&model, &graph);
    refused(rows[i].what, rows[i].where);
    start();
    put_port(&graph, 11, "x", 1, 1, four);
    put_tensor(&graph, "weights", 1, rows[i].rank, rows[i].dims, numbers, 32);
    put_node(&graph, "Add", "one", "x weights", "y", NULL);
    put_port(&graph, 12, "y", 1, 1, four);
    end_model(&model, &graph);
    refused("the same as a tensor", "weights");
  }
  start();
  put_port(&graph, 11, "x", 1, 2, two_by_four);
  put_tensor(&graph, "shape", 7, 1, (const int64_t[]){2}, (const int64_t[]){INT64_C(1) << 31, INT64_C(1) << 31}, 16);
  put_tensor(&graph, "one", 1, 1, (const int64_t[]){1}, numbers, 4);
  put_node(&graph, "Expand", "grow", "one shape", "y", NULL);
  put_port(&graph, 12, "y", 1, 2, two_by_four);
  end_model(&model, &graph);
  refused("a node that makes 2^62 elements", "grow (Expand)");
  start();
  put_port(&graph, 11, "x", 1, 1, four);
  put_tensor(&graph, "weights", 1, 2, two_by_four, numbers, 12);
  put_node(&graph, "Add", "one", "x weights", "y", NULL);
  put_port(&graph, 12, "y", 1, 1, four);
  end_model(&model, &graph);
  refused("a tensor with too few bytes", "weights");
}

static void check_wire(void) {
  static const uint8_t long_varint[] = {8, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1};
  static const uint8_t long_field[] = {0x3a, 255, 255, 255, 255, 7, 1, 2, 3};
  static const uint8_t wrong_type[] = {0x3b, 1, 2, 3};
  memcpy(model.at, long_varint, model.size = sizeof long_varint);
  refused("a varint of more than ten bytes", "varint");
  memcpy(model.at, long_field, model.size = sizeof long_field);
  refused("a field longer than the file", "not an ONNX model");
  memcpy(model.at, wrong_type, model.size = sizeof wrong_type);
  refused("a wire type that is none", "not an ONNX model");
  static const struct {
    const char *what, *says;
    uint8_t at[9];
  } deep[] = {{"a node's name that is a number", "wire type", {0x3a, 4, 0x0a, 2, 0x18, 1}},
              {"a tensor's type cut off", "end-of-stream", {0x3a, 4, 0x2a, 2, 0x10, 0x80}},
              {"a tensor's extents of four bytes", "a field of numbers", {0x3a, 7, 0x2a, 5, 0x0d, 0x80, 0x80, 0x80, 0x80}}};
  for (size_t i = 0; i < sizeof deep / sizeof *deep; i++) {
    memcpy(model.at, deep[i].at, model.size = deep[i].at[1] + 2u);
    refused(deep[i].what, deep[i].says);
  }
  memset(model.at, 0, model.size = 64);
  refused("zeros", "not an ONNX model");
  start();
  for (uint32_t i = 0; i < 60; i++) { /* graph in node in graph .. */
    static bytes attr, node;
    attr.size = node.size = 0;
    put_text(&attr, 1, "body");
    put_message(&attr, 6, &graph);
    put_text(&node, 4, "Loop");
    put_message(&node, 5, &attr);
    graph.size = 0;
    put_message(&graph, 1, &node);
  }
  end_model(&model, &graph);
  refused("sixty graphs in each other", "nested");
}

/* A function that calls itself twice would grow without end. */
static void check_function(void) {
  static bytes function, call;
  start();
  function.size = call.size = 0;
  put_port(&graph, 11, "x", 1, 1, four);
  put_text(&more, 7, "own");
  put_node(&graph, "Twice", "outer", "x", "y", &more);
  put_port(&graph, 12, "y", 1, 1, four);
  end_model(&model, &graph);
  put_text(&call, 1, "a");
  put_text(&call, 2, "b");
  put_text(&call, 4, "Twice");
  put_text(&call, 7, "own");
  put_text(&function, 1, "Twice");
  put_text(&function, 4, "a");
  put_text(&function, 5, "b");
  put_message(&function, 7, &call);
  put_text(&function, 10, "own");
  put_message(&model, 25, &function);
  refused("a function that calls itself", "outer");
}

/* ---- external data ---- */
static void put_external(const char *location, const char *length) {
  static bytes t, entry;
  t.size = entry.size = 0;
  put_int(&t, 1, 4);
  put_int(&t, 2, 1);
  put_text(&t, 8, "weights");
  put_int(&t, 14, 1);
  put_text(&entry, 1, "location");
  put_text(&entry, 2, location);
  put_message(&t, 13, &entry);
  if (length) {
    entry.size = 0;
    put_text(&entry, 1, "length");
    put_text(&entry, 2, length);
    put_message(&t, 13, &entry);
  }
  start();
  put_port(&graph, 11, "x", 1, 1, four);
  put_message(&graph, 5, &t);
  put_node(&graph, "Add", "one", "x weights", "y", NULL);
  put_port(&graph, 12, "y", 1, 1, four);
  end_model(&model, &graph);
}

static bool write_file(const char *path, const void *data, size_t size) {
  FILE *f = fopen(path, "wb");
  const bool good = f && fwrite(data, 1, size, f) == size;
  return (!f || !fclose(f)) && good;
}

static void check_external(void) {
  char folder[] = "/tmp/onnx_hostile.XXXXXX", path[256], data[256], outside[256], link[256];
  const struct {
    const char *location, *length, *where;
  } rows[] = {{"inside.bin", "16", NULL},         {"./inside.bin", NULL, NULL},    {"inside.bin", "12", "weights"},
              {"inside.bin", "-1", "weights"},    {"short.bin", NULL, "short"},    {"none.bin", NULL, "none.bin"},
              {"../outside.bin", NULL, "inside"}, {"/etc/passwd", NULL, "inside"}, {"a/../../outside.bin", NULL, "is not"},
              {"link.bin", NULL, "link"},         {".", NULL, "weights"},          {"", NULL, "weights"}};
  snt_diag diag;
  if (!mkdtemp(folder)) {
    tap_result(false, __FILE__, __LINE__, "a folder");
    return;
  }
  snprintf(path, sizeof path, "%s/m/model.onnx", folder);
  snprintf(data, sizeof data, "%s/m", folder);
  (void)mkdir(data, 0700);
  snprintf(data, sizeof data, "%s/m/short.bin", folder);
  (void)write_file(data, numbers, 8);
  snprintf(outside, sizeof outside, "%s/outside.bin", folder);
  snprintf(link, sizeof link, "%s/m/link.bin", folder);
  bool good = write_file(outside, numbers, 16) && symlink(outside, link) == 0;
  snprintf(data, sizeof data, "%s/m/inside.bin", folder);
  good = good && write_file(data, numbers, 16);
  for (size_t i = 0; good && i < sizeof rows / sizeof *rows; i++) {
    put_external(rows[i].location, rows[i].length);
    (void)write_file(path, model.at, model.size);
    const snt_result r = onnx_import_from(NULL, 0, path, &diag);
    const bool right = rows[i].where ? r < 0 && strstr(diag.text, "weights") && strstr(diag.text, rows[i].where) : r == SNT_OK;
    if (!tap_result(right, __FILE__, __LINE__, "external data in \"%s\", length %s", rows[i].location,
                    rows[i].length ? rows[i].length : "not given"))
      tap_diag("%d %s", r, diag.text);
  }
  put_external("inside.bin", NULL);
  refused("external data of a model in memory", "weights");
  static const char *const names[] = {"m/short.bin", "m/link.bin", "m/inside.bin", "m/model.onnx", "outside.bin", "m", ""};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    snprintf(data, sizeof data, "%s/%s", folder, names[i]);
    (void)remove(data);
  }
}

static void check_bounds(void) {
  static const struct {
    const char *what, *where;
    snt_symbol dim;
  } rows[] = {
      {"an extent that no input has", "no extent is named m; open are: n", {"m", 1, 8, 1, 4}},
      {"bounds the wrong way round", "0 <= min <= max", {"n", 8, 4, 1, 4}},
      {"a negative bound", "0 <= min <= max", {"n", -1, 4, 1, 4}},
      {"a multiple of more than there may be", "a multiple of what is not more", {"n", 1, 8, INT64_MAX, 4}},
      {"what is usual is no such multiple", "must be a multiple of 4611686018427387904", {"n", 1, INT64_MAX, INT64_C(1) << 62, INT64_MAX}},
  };
  snt_diag diag;
  good_model();
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    onnx_import_dim = rows[i].dim;
    refused(rows[i].what, rows[i].where);
  }
  onnx_import_dim = (snt_symbol){"n", 3, 3, 1, 3};
  tap_ok(onnx_import_from(model.at, model.size, NULL, &diag) == SNT_OK, "an extent that is fixed: %s", diag.text);
  onnx_import_dim = (snt_symbol){NULL, 0, 0, 0, 0};
}

/* Two rows that are added make an open extent 2. */
static void check_hints(void) {
  static const struct {
    const char *what, *where; /* null: it is imported */
    snt_symbol dim;
  } rows[] = {
      {"a hint that nobody wrote, where there may be none", NULL, {"n", 0, 8, 0, 0}},
      {"a hint that nobody wrote", NULL, {"n", 1, 8, 0, 0}},
      {"a hint that holds", NULL, {"n", 0, 8, 0, 2}},
      {"a hint outside its bounds", NULL, {"n", 0, 8, 0, 9}},
      {"a hint that does not hold", "extent n is 2 by what the model does with it, not 1", {"n", 0, 8, 0, 1}},
      {"a number, of which no hint says more", "operands do not broadcast", {"n", 0, 0, 0, 0}},
  };
  snt_diag diag;
  start();
  put_port(&graph, 11, "x", 1, 2, open_by_four);
  put_tensor(&graph, "r", 1, 2, two_by_four, numbers, 32);
  put_node(&graph, "Add", "sum", "x r", "y", NULL);
  put_port(&graph, 12, "y", 1, 2, open_by_four);
  end_model(&model, &graph);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    onnx_import_dim = rows[i].dim;
    if (rows[i].where) refused(rows[i].what, rows[i].where);
    else tap_ok(onnx_import_from(model.at, model.size, NULL, &diag) == SNT_OK, "%s: %s", rows[i].what, diag.text);
  }
  onnx_import_dim = (snt_symbol){NULL, 0, 0, 0, 0};
}

/* What the caller says, not the file. */
static void check_info(void) {
  static const snt_symbol three = {"n", 3, 3, 1, 3}, four = {"n", 4, 4, 1, 4};
  static const snt_onnx_fixed unnamed = {NULL, {SNT_F32, 1, {4}}, NULL}, ranked = {"x", {SNT_F32, 200, {4}}, NULL},
                              negative = {"x", {SNT_F32, 1, {-4}}, NULL}, other = {"z", {SNT_F32, 1, {4}}, NULL},
                              flat = {"x", {SNT_F32, 1, {4}}, NULL}, apart = {"x", {SNT_F32, 2, {4, 4}}, NULL};
  static const struct {
    const char *what;
    uint32_t dims;
    uint32_t fixed_count;
    const snt_onnx_fixed *fixed;
    const snt_symbol *dim;
    snt_result result;
  } rows[] = {{"extents that are counted and not given", 1, 0, NULL, NULL, SNT_E_ARG},
              {"fixed inputs that are counted and not given", 0, 1, NULL, NULL, SNT_E_ARG},
              {"a fixed input without a name", 0, 1, &unnamed, NULL, SNT_E_ARG},
              {"a fixed input of 200 axes", 0, 1, &ranked, NULL, SNT_E_ARG},
              {"a fixed input of a negative extent", 0, 1, &negative, NULL, SNT_E_ARG},
              {"a fixed input that is none", 0, 1, &other, NULL, SNT_E_ARG},
              {"a fixed input of another rank", 0, 1, &flat, NULL, SNT_E_SHAPE},
              {"a fixed input that is not of the extent that is given, too", 1, 1, &apart, &three, SNT_E_SHAPE},
              {"a fixed input of that extent", 1, 1, &apart, &four, SNT_OK}};
  snt_context *context = NULL;
  snt_diag diag = {.head = SNT_HEAD(diag)};
  good_model();
  (void)snt_context_create(NULL, &context);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const snt_onnx_info info = {.head = SNT_HEAD(onnx_info),
                                .dim_count = rows[i].dims,
                                .dims = rows[i].dim,
                                .fixed_count = rows[i].fixed_count,
                                .fixed = rows[i].fixed};
    snt_graph *graph = NULL;
    (void)snt_graph_create(context, &graph);
    diag.text[0] = 0;
    tap_ok(snt_onnx_import(graph, model.at, model.size, &info, &diag) == rows[i].result, "%s: %s", rows[i].what, diag.text);
    snt_graph_destroy(graph);
  }
  snt_context_destroy(context);
}

/* Inputs x and z share an extent, v has none that is open: what is given of one holds for the other. */
static void check_given(void) {
  static const snt_onnx_fixed alike[] = {{"x", {SNT_F32, 2, {5, 4}}, NULL}, {"z", {SNT_F32, 2, {5, 4}}, NULL}},
                              apart[] = {{"x", {SNT_F32, 2, {5, 4}}, NULL}, {"z", {SNT_F32, 2, {3, 4}}, NULL}},
                              known[] = {{"x", {SNT_F32, 2, {2, 4}}, NULL}, {"z", {SNT_F32, 2, {1, 4}}, numbers}},
                              late = {"z", {SNT_F32, 2, {3, 4}}, NULL}, literal = {"v", {SNT_F32, 2, {3, 4}}, NULL},
                              flat = {"v", {SNT_F32, 1, {8}}, NULL};
  static const snt_symbol few = {"n", 1, 4, 1, 3}, even = {"n", 2, 8, 2, 4};
  static const struct {
    const char *what, *text; /* of the graph, or of what is wrong */
    const snt_onnx_fixed *fixed;
    uint32_t count, flags;
    const snt_symbol *dim;
    snt_result result;
  } rows[] = {{"two that agree", "%z: f32[5,4]", alike, 2, 0, NULL, SNT_OK},
              {"one, and the other follows", "%z: f32[5,4]", alike, 1, 0, NULL, SNT_OK},
              {"one behind, and the first follows", "%x: f32[3,4]", &late, 1, 0, NULL, SNT_OK},
              {"two that differ", "input z is [5,4]; [3,4] is given", apart, 2, 0, NULL, SNT_E_SHAPE},
              {"two that differ, one with its data", "input z is [2,4]; [1,4] is given", known, 2, 0, NULL, SNT_E_SHAPE},
              {"one outside the caller's bounds", "extent n is 5 in an input that is given, not 1 to 4", alike, 2, 0, &few, SNT_E_SHAPE},
              {"one that is not of the caller's multiple", "a multiple of 2", &late, 1, 0, &even, SNT_E_SHAPE},
              {"other numbers than the model's", "input v is [2,4]; [3,4] is given", &literal, 1, 0, NULL, SNT_E_SHAPE},
              {"another rank", "input v is [2,4]; [8] is given", &flat, 1, 0, NULL, SNT_E_SHAPE},
              {"other numbers, as is wished", "%v: f32[3,4]", &literal, 1, SNT_ONNX_OTHER_EXTENTS, NULL, SNT_OK},
              {"flags without a meaning", "unknown flags", NULL, 0, 6, NULL, SNT_E_ARG}};
  snt_context *context = NULL;
  snt_diag diag = {.head = SNT_HEAD(diag)};
  start();
  put_port(&graph, 11, "x", 1, 2, open_by_four);
  put_port(&graph, 11, "z", 1, 2, open_by_four);
  put_port(&graph, 11, "v", 1, 2, two_by_four);
  put_node(&graph, "Relu", "a", "x", "p", NULL);
  put_node(&graph, "Relu", "b", "z", "q", NULL);
  put_node(&graph, "Relu", "c", "v", "r", NULL);
  put_port(&graph, 12, "p", 1, 2, open_by_four);
  put_port(&graph, 12, "q", 1, 2, open_by_four);
  put_port(&graph, 12, "r", 1, 2, two_by_four);
  end_model(&model, &graph);
  (void)snt_context_create(NULL, &context);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const snt_onnx_info info = {.head = SNT_HEAD(onnx_info),
                                .dim_count = rows[i].dim != NULL,
                                .dims = rows[i].dim,
                                .fixed_count = rows[i].count,
                                .fixed = rows[i].fixed,
                                .flags = rows[i].flags};
    char text[1024] = "";
    size_t length = sizeof text;
    snt_graph *g = NULL;
    (void)snt_graph_create(context, &g);
    diag.text[0] = 0;
    const snt_result r = snt_onnx_import(g, model.at, model.size, &info, &diag);
    if (r == SNT_OK) (void)snt_graph_print(g, text, &length);
    tap_ok(r == rows[i].result && strstr(r == SNT_OK ? text : diag.text, rows[i].text), "inputs given: %s: %s", rows[i].what, diag.text);
    snt_graph_destroy(g);
  }
  snt_context_destroy(context);
}

int main(void) {
  check_structure();
  check_names();
  check_bounds();
  check_hints();
  check_info();
  check_given();
  check_sizes();
  check_wire();
  check_function();
  check_external();
  return tap_done();
}
