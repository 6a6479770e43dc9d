/* <sinter/ops.h>: a function an operator. What each wrapper writes must be what the text form knows; optional operands may be left out. */
#include "tests/tap.h"
#include <sinter/ops.h>

static snt_graph *begin(snt_context *c, snt_value *x, snt_value *y) {
  const snt_tensor t = {SNT_F32, 2, {4, 6}};
  snt_graph *g = NULL;
  snt_graph_create(c, &g);
  *x = snt_graph_input(g, "x", &t);
  *y = snt_graph_input(g, "y", &t);
  return g;
}

static void holds(snt_graph *g, snt_value v, const char *part, const char *name) {
  snt_diag diag = {.head = SNT_HEAD(diag)};
  char text[4096];
  size_t length = sizeof text;
  if (v) snt_graph_output(g, "out", v);
  const snt_result r = snt_graph_verify(g, &diag);
  if (!tap_ok(v != 0 && r == SNT_OK, "%s makes a value", name)) tap_diag("%s", diag.text);
  if (r == SNT_OK && snt_graph_print(g, text, &length) == SNT_OK &&
      !tap_ok(strstr(text, part) != NULL, "%s: the graph has \"%s\"", name, part))
    tap_diag_text(text);
  snt_graph_destroy(g);
}

#define HOLDS(part, call)            \
  do {                               \
    snt_value x, y;                  \
    snt_graph *g = begin(c, &x, &y); \
    const snt_value v = (call);      \
    (void)y;                         \
    holds(g, v, part, #call);        \
  } while (0)

int main(void) {
  snt_context *c = NULL;
  snt_context_create(NULL, &c);
  HOLDS("neg %x", snt_neg(g, x));
  HOLDS("add %x, %y", snt_add(g, x, y));
  HOLDS("log %x", snt_log(g, x));
  HOLDS("fma %x, %y, %x", snt_fma(g, x, y, x));
  HOLDS("lt %x, %y", snt_not(g, snt_lt(g, x, y)));
  HOLDS("reduce.sum %x, axes=[1]", snt_reduce_sum(g, x, "axes=[1]"));
  HOLDS("reduce.argmax %x, axes=[0], keep", snt_reduce_argmax(g, x, "axes=[0], keep"));
  HOLDS("scan.max %x, axis=1", snt_scan_max(g, x, "axis=1"));
  HOLDS("transpose %x, perm=[1,0]", snt_transpose(g, x, "perm=[1,0]"));
  HOLDS("f16[4,6] = cast %x", snt_cast(g, x, "dtype=f16"));
  HOLDS("concat %x, %y, %x, axis=0", snt_concat(g, (const snt_value[]){x, y, x}, 3, "axis=0"));
  HOLDS("max %x, ", snt_relu(g, x));
  HOLDS("exp", snt_softmax(g, x, "axis=1"));
  HOLDS("exp", snt_softmax(g, x, NULL));
  HOLDS("rsqrt", snt_layernorm(g, x, 0, 0, NULL));
  HOLDS("contract", snt_matmul(g, x, snt_transpose(g, y, "perm=[1,0]"), NULL));
  HOLDS("min", snt_clip(g, x, 0, 0, "low=-1, high=1"));
  snt_context_destroy(c);
  return tap_done();
}
