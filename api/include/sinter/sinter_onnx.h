/* libsinter-onnx: ONNX models as Sinter graphs. Its own library, so that engines which load compiled programs carry no protobuf.
   C99, usable from C++11. Operator sets 7 to 28; every operator, attribute or element type that is not supported is listed at once.
   Symbolic extents (dim_param) become symbols of the graph, with the name where that is a word; extents without name or number become
   symbols named after input and axis ("image_0"). Nodes keep their names. */
#ifndef SINTER_ONNX_H
#define SINTER_ONNX_H
#include <sinter/sinter.h>
#ifdef __cplusplus
extern "C" {
#endif

enum { SNT_TYPE_onnx_info = 768 };
/* An input that is fixed when the model is loaded. With data it becomes a constant, and shapes that depend on it become fixed; without, only
   its extents are, and so is what other inputs call by the same name. Extents that differ from those of the model, of `dims` or of another such input are
   SNT_E_SHAPE. Copied. */
typedef struct snt_onnx_fixed {
  const char *name;
  snt_tensor tensor;
  const void *data;
} snt_onnx_fixed;
/* A file of a picture that ImageDecoder decodes. */
typedef struct snt_onnx_image {
  const void *file;
  size_t file_size;
  uint32_t width, height;
  uint8_t *rgb;  /* null: only the extents are asked for. Else room for 3 * width * height: rows from the top, red, green, blue; no alpha */
  char why[128]; /* of a failure: what is wrong with the file */
} snt_onnx_image;
enum {
  SNT_ONNX_OTHER_EXTENTS =
      1, /* where all extents of an input are numbers, a fixed one may have others, and another rank: files that say too little */
  SNT_ONNX_ACCURACY_LEVEL =
      2 /* accuracy_level 4 is followed: such a MatMulNBits rounds its rows to 8 bits, block by block, as ONNX Runtime does on processors. An answer is then off
           by about a hundredth of its size; the level is the least that the model asks for, and without the flag nothing is rounded. */
};
typedef struct snt_onnx_info {
  snt_head head; /* SNT_HEAD(onnx_info) */
  uint32_t dim_count, fixed_count;
  /* Bounds of symbolic extents by name, the file's or the symbol's; min = max fixes one: the graph then has no such symbol. Of a whole
     number that the model computes and makes a length of, by the name of its value, max is how much it may be (hint, if max is INT32_MAX):
     there is room for so much, what goes beyond it is left out, and NAME.count of an output says how much there is. A name that neither an
     input nor such a number has is SNT_E_ARG. Where an operator needs it, an open extent becomes a number, that of another
     name, or a multiple of one: SNT_E_SHAPE if `hint`, where it lies within the bounds, is another; 0 is no hint. */
  const snt_symbol *dims;
  const snt_onnx_fixed *fixed;
  void *user;
  int(SNT_CALL *progress)(void *user, const char *stage, double fraction); /* non-zero cancels */
  /* Once for each node that cannot be imported; the call itself then fails with SNT_E_UNSUPPORTED. */
  void(SNT_CALL *unsupported)(void *user, const char *node, const char *op, const char *reason);
  /* Of a model in memory: data that it keeps in other files. Returns an address that outlives the graph, or null. */
  const void *(SNT_CALL *external)(void *user, const char *location, uint64_t offset, uint64_t bytes);
  /* Decodes for ImageDecoder, whose file must be a constant or a fixed input: pixels become constants. Called for the extents, then for the
     pixels. Null: the operator is refused. tools/pictures has one that reads bmp, jpeg, jpeg2000, png, pnm, tiff and webp. */
  snt_result(SNT_CALL *decode_image)(void *user, snt_onnx_image *);
  uint32_t flags; /* SNT_ONNX_* */
} snt_onnx_info;

/* Into an empty graph. The diag names the node and its operator. On failure the graph is good for nothing but being destroyed.
   From memory: the bytes are borrowed until the graph is destroyed; constants are views of them where alignment allows. */
SNT_API snt_result SNT_CALL snt_onnx_import(snt_graph *, const void *data, size_t size, const snt_onnx_info *, snt_diag *);
/* From a file, which is mapped until the graph is destroyed. External data is mapped too, from the model's folder or below, nowhere else. */
SNT_API snt_result SNT_CALL snt_onnx_import_file(snt_graph *, const char *path, const snt_onnx_info *, snt_diag *);

/* A TensorProto file (input_0.pb of the backend tests): its name (terminated, cut to fit), type and, if `data` is given, elements, row-major;
   *bytes is the room, and becomes the size. Two calls, as for texts. Name and data may be null. */
SNT_API snt_result SNT_CALL snt_onnx_tensor(const void *file, size_t size, char name[128], snt_tensor *type, void *data, size_t *bytes,
                                            snt_diag *);

#ifdef __cplusplus
}
#endif
#endif
