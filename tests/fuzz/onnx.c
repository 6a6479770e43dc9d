/* Bytes as an ONNX model: it is imported in bounded memory, or refused with a reason, and everything is given back. */
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/onnx_import.h"

const fuzz_facts fuzz = {.name = "onnx", .least_of_corpus = 90, .least_of_mutations = 1};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  snt_diag diag;
  const snt_result r = onnx_import_from(data, size, NULL, &diag);
  if (r != SNT_OK && !diag.text[0]) fuzz_wrong("refused without a reason");
  if (onnx_import_live) fuzz_wrong("memory is left");
  if (r == SNT_OK) fuzz_accept();
  return 0;
}
