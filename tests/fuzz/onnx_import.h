/* An import of an ONNX model in bounded memory, with what it says, for the fuzzer and for the tests of single faults. */
#ifndef TESTS_FUZZ_ONNX_IMPORT_H
#define TESTS_FUZZ_ONNX_IMPORT_H
#include <sinter/sinter_onnx.h>

enum { ONNX_IMPORT_MEMORY = 256 << 20 };
extern snt_symbol onnx_import_dim;  /* bounds of an extent, if it has a name */
extern char onnx_import_said[1024]; /* by nodes that are refused */
extern size_t onnx_import_live;     /* bytes that are taken, and the most there were */
snt_result onnx_import_from(const void *data, size_t size, const char *path, snt_diag *); /* the file's, where path is given */
#endif
