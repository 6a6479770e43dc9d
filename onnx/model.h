/* An ONNX file in memory: what read.c makes of the bytes and import.c turns into a graph. Everything lies in one arena; names are
   terminated copies; tensor data and strings of attributes are views of the file, which must outlive them. Nothing here is trusted
   beyond its own syntax: names may be missing or double, types and extents may be anything. */
#ifndef ONNX_MODEL_H
#define ONNX_MODEL_H
#include "ir/base.h"

typedef struct onnx_bytes {
  const uint8_t *at;
  size_t size;
} onnx_bytes;
typedef IR_VEC(const char *) onnx_names;
typedef IR_VEC(int64_t) onnx_ints;
typedef IR_VEC(float) onnx_floats;

/* Element types as the file numbers them; the ones that Sinter has are in onnx_dtype (tensor.c). */
enum { ONNX_STRING = 8, ONNX_COMPLEX64 = 14, ONNX_COMPLEX128 = 15 };

typedef struct onnx_tensor {
  const char *name;
  int32_t type;
  onnx_ints dims;
  onnx_bytes raw;              /* or one of: */
  onnx_bytes packed;           /* float_data or double_data in one piece, as it lies in the file */
  onnx_ints ints;              /* int32_data, int64_data, uint64_data */
  IR_VEC(double) reals;        /* float_data, double_data in pieces */
  uint32_t strings;            /* how many; their contents are not kept */
  bool external;               /* data_location; then: */
  const char *location;        /* a path inside the model's folder */
  const char *offset, *length; /* numbers as text, null: not given */
} onnx_tensor;
typedef IR_VEC(onnx_tensor) onnx_tensors;

typedef enum { ONNX_FLOAT = 1, ONNX_INT, ONNX_TEXT, ONNX_TENSOR, ONNX_GRAPH, ONNX_FLOATS, ONNX_INTS, ONNX_TEXTS } onnx_attr_kind;
typedef struct onnx_graph onnx_graph;
typedef struct onnx_attr {
  const char *name, *reference; /* reference: of a function's attribute, null: none */
  int32_t kind;                 /* onnx_attr_kind or a number that Sinter has no use for */
  float f;
  int64_t i;
  const char *text;
  onnx_tensor *tensor;
  onnx_graph *graph;
  onnx_floats floats;
  onnx_ints ints;
  onnx_names texts;
} onnx_attr;
typedef IR_VEC(onnx_attr) onnx_attrs;

typedef struct onnx_node {
  const char *name, *op, *domain; /* "" if not given; domain "ai.onnx" is "" */
  onnx_names inputs, outputs;     /* "": left out */
  onnx_attrs attrs;
} onnx_node;
typedef IR_VEC(onnx_node) onnx_nodes;

typedef struct onnx_dim {
  int64_t value;     /* -1: not given */
  const char *param; /* null: not given */
} onnx_dim;
typedef IR_VEC(onnx_dim) onnx_dims;
typedef struct onnx_port {
  const char *name;
  int32_t type;   /* 0: no tensor */
  bool has_shape; /* else nothing is known, not even the rank */
  onnx_dims dims;
} onnx_port;
typedef IR_VEC(onnx_port) onnx_ports;

struct onnx_graph {
  const char *name;
  onnx_nodes nodes;
  onnx_tensors constants; /* initializers */
  onnx_ports inputs;
  onnx_ports outputs;
  uint32_t sparse; /* sparse initializers: counted only */
};
typedef struct onnx_opset {
  const char *domain;
  int64_t version;
} onnx_opset;
typedef IR_VEC(onnx_opset) onnx_opsets;
typedef struct onnx_function {
  const char *name, *domain;
  onnx_names inputs, outputs;
  onnx_nodes nodes;
  onnx_attrs defaults;
  onnx_opsets opsets;
} onnx_function;
typedef IR_VEC(onnx_function) onnx_functions;
typedef struct onnx_model {
  int64_t ir_version;
  const char *producer;
  onnx_graph *graph; /* null: the file has none */
  onnx_opsets opsets;
  onnx_functions functions;
} onnx_model;

snt_result onnx_read_model(onnx_model *, ir_arena *, const void *data, size_t size, snt_diag *);
snt_result onnx_read_tensor(onnx_tensor *, ir_arena *, const void *data, size_t size, snt_diag *); /* a TensorProto file */

/* ---- order.c ---- */
bool onnx_put_in_order(ir_arena *, onnx_nodes *); /* each behind what it reads; false: out of memory */

/* ---- tensor.c ---- */
typedef struct onnx_type_info {
  const char *name; /* as ONNX writes it */
  int32_t dtype;    /* 0: Sinter has none */
} onnx_type_info;
onnx_type_info onnx_type(int32_t type); /* name "type 99" is never made: unknown numbers give "an unknown type" */
/* Where a tensor's external data comes from; null if it is refused. Bytes outlive the graph. */
typedef struct onnx_files {
  void *user;
  const void *(*find)(void *user, const char *location, uint64_t offset, uint64_t bytes, snt_diag *);
} onnx_files;
/* The elements row-major in Sinter's storage, aligned to nothing: a view of the file where it has that form, else a copy in the
   arena. The size is checked against the extents, of which there are at most SNT_MAX_RANK, none negative. */
snt_result onnx_tensor_data(const onnx_tensor *, ir_arena *, const onnx_files *, const void **out, uint64_t *elements, snt_diag *);
#endif
