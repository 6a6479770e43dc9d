/* libFuzzer: bytes are the choices of a grown graph, the first two its class of devices and its path. Compiled, run on the kernel interpreter and held
   against the reference; what fails ends the program, with the graph's text. */
#include "conformance/conform.h"
#include "tests/fuzz/fuzz.h"
#include <stdlib.h>

const fuzz_facts fuzz = {.name = "grown", .least_of_corpus = 50, .least_of_mutations = 5};

enum { CLASSES = 5 };
static conform_device *open_class(uint32_t number) {
  static const char *const classes[CLASSES] = {"interp", "interp=pocl", "interp=h100", "interp=mobile", "interp=igpu"};
  static conform_device devices[CLASSES];
  static bool opened[CLASSES];
  snt_diag diag = {0};
  if (!opened[number] && conform_open(classes[number], &devices[number], &diag) != SNT_OK) {
    fprintf(stderr, "%s: %s\n", classes[number], diag.text);
    abort();
  }
  opened[number] = true;
  return &devices[number];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const uint32_t paths[] = {PATH_FUSED, PATH_STRICT, PATH_SAME, PATH_FAST};
  static conform_graph graph;
  conform_verdict v;
  if (size < 3 || size > CONFORM_CHOICES || !conform_grow(data + 2, size - 2, &graph)) return 0;
  conform_judge_graph(open_class(data[0] % CLASSES), &graph, paths[data[1] % IR_COUNT(paths)], 1, &v);
  if (v.result == CONFORM_PASS) fuzz_accept();
  if (v.result != CONFORM_FAIL) return 0;
  fprintf(stderr, "class %u, path %u: %s\n%s", data[0] % CLASSES, paths[data[1] % IR_COUNT(paths)], v.detail, graph.text);
  abort();
}
