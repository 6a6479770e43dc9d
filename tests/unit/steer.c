/* What a user may say about kernels: must_fuse, never_fuse, keep and barrier, in the text and through the API. Each case: a graph, a contract, and which
   values share a kernel, by the nodes that explain lists; a contract that cannot hold names its obstacle. The results are run and compared. */
#include "tests/tap.h"
#include "tests/unit/api_support.h"

typedef struct together {
  const char *a, *b;
  bool same;
} together;
typedef struct steer_case {
  const char *name, *profile, *mask, *graph, *contract;
  together expect[4];
  const char *obstacle; /* a piece of the error */
} steer_case;

#define CHAIN "(%x: f32[64,96]) {\n  %a = tanh %x\n  %b = mul %a, %a\n  %c = exp %b\n  %d = add %c, %a\n  return d=%d\n"
#define ROWS                                                                                                                               \
  "(%x: f32[48,64], %y: f32[16,3]) {\n  %a = tanh %x\n  %b = exp %y\n  %c = softmax %a, axis=1\n  %d = reduce.sum %a, axes=[0]\n  return " \
  "c=%c, b=%b, d=%d\n"
#define CONVEX "(%x: f32[32,32], %w: f32[32,32]) {\n  %a = exp %x\n  %m = matmul %a, %w\n  %c = add %a, %m\n  return c=%c\n"
#define HEADS                                                                                  \
  "(%q: f32[2,64,32], %k: f32[2,64,32], %v: f32[2,64,32]) {\n"                                 \
  "  %s = contract %q, %k, lhs=[0,1,2], rhs=[0,3,2], out=[0,1,3]\n  %p = softmax %s, axis=2\n" \
  "  %o = contract %p, %v, lhs=[0,1,3], rhs=[0,3,2], out=[0,1,2]\n  return o=%o\n"
#define TWO_PRODUCTS "(%x: f32[32,48], %w: f32[48,48]) {\n  %a = matmul %x, %w\n  %t = tanh %a\n  %b = matmul %t, %w\n  return b=%b\n"
#define REMAT                                                                                                                            \
  "(%x: f32[4096]) {\n  %a = add %x, 1\n  %b = reshape %a, shape=[64,64]\n  %c = softmax %b, axis=1\n  %d = reduce.sum %b, axes=[0]\n  " \
  "return c=%c, d=%d\n"

static const steer_case cases[] = {
    {"no contract", "dgpu", NULL, CHAIN, "", {{"a", "d", true}}, NULL},
    {"barrier", "dgpu", NULL, CHAIN, "barrier %b", {{"a", "b", true}, {"b", "c", false}, {"a", "d", false}, {"c", "d", true}}, NULL},
    {"barrier of an input", "dgpu", NULL, CHAIN, "barrier %x", {{"a", "d", true}}, NULL},
    {"two barriers", "dgpu", NULL, CHAIN, "barrier %a\n  barrier %c", {{"a", "b", false}, {"b", "c", true}, {"c", "d", false}}, NULL},
    {"one barrier of two values", "dgpu", NULL, CHAIN, "barrier %a, %c", {{"a", "c", true}, {"c", "d", false}}, NULL},
    {"never_fuse", "dgpu", NULL, CHAIN, "never_fuse %b, %c", {{"b", "c", false}}, NULL},
    {"never_fuse of three", "dgpu", NULL, CHAIN, "never_fuse %a, %b, %c", {{"a", "b", false}, {"b", "c", false}, {"a", "c", false}}, NULL},
    {"never_fuse holds for independent ones",
     "pocl",
     NULL,
     ROWS,
     "never_fuse %b, %d\n  never_fuse %b, %c",
     {{"b", "d", false}, {"b", "c", false}},
     NULL},
    {"never_fuse beside recomputing", "dgpu", NULL, REMAT, "never_fuse %a, %d", {{"a", "d", false}}, NULL},
    {"must_fuse is stronger than the price", "dgpu", NULL, HEADS, "must_fuse %s, %o", {{"s", "o", true}}, NULL},
    {"must_fuse of what shares no value", "dgpu", NULL, ROWS, "must_fuse %b, %c", {{"b", "c", true}}, NULL},
    {"must_fuse takes what lies between", "dgpu", NULL, CHAIN, "must_fuse %a, %d", {{"a", "d", true}, {"b", "c", true}}, NULL},
    {"must_fuse of an input asks for nothing", "dgpu", NULL, CHAIN, "must_fuse %x, %a", {{"a", "d", true}}, NULL},
    {"must_fuse against the kinds", "dgpu", NULL, TWO_PRODUCTS, "must_fuse %a, %b", {{0}}, "must_fuse a, b cannot hold: "},
    {"must_fuse against a barrier", "dgpu", NULL, CHAIN, "must_fuse %a, %d\n  barrier %b", {{0}}, "barrier"},
    {"must_fuse against never_fuse", "dgpu", NULL, CHAIN, "must_fuse %b, %c\n  never_fuse %c, %b", {{0}}, "never_fuse"},
    {"must_fuse against the bindings",
     "dgpu",
     "bindings=4",
     "(%x: f32[64], %y: f32[64], %z: f32[64], %w: f32[64], %v: f32[64]) {\n  %a = add %x, %y\n  %b = add %z, %w\n  %c = mul %a, %b\n  %d = "
     "mul %c, %v\n  return d=%d\n",
     "must_fuse %a, %b, %c, %d",
     {{0}},
     "would fuse with 6 bindings; this device has 4"},
};

/* The nodes of each kernel, one kernel a line. */
static char *kernels_of(const snt_program *program) {
  size_t length = 0;
  (void)snt_program_explain(program, SNT_EXPLAIN_JSON, NULL, &length);
  char *text = malloc(length + 1);
  if (!text || snt_program_explain(program, SNT_EXPLAIN_JSON, text, &length) != SNT_OK) {
    free(text);
    return NULL;
  }
  char *end = strstr(text, "\"bytes_moved\"");
  if (end) *end = 0;
  return text;
}

static bool one_kernel(const char *kernels, const char *a, const char *b) {
  char first[32], second[32];
  snprintf(first, sizeof first, "\"%s\"", a);
  snprintf(second, sizeof second, "\"%s\"", b);
  for (const char *line = strstr(kernels, "\"nodes\": ["); line; line = strstr(line + 1, "\"nodes\": [")) {
    const char *stop = strchr(line, ']'), *x = strstr(line, first), *y = strstr(line, second);
    if (x && y && x < stop && y < stop) return true;
  }
  return false;
}

static snt_graph *read_graph(snt_context *context, const char *body, const char *contract, snt_diag *diag) {
  char text[2048];
  snt_graph *graph = NULL;
  snprintf(text, sizeof text, "graph @steered%s  %s\n}\n", body, contract);
  if (snt_graph_create(context, &graph) != SNT_OK || snt_graph_parse(graph, text, strlen(text), NULL, diag) != SNT_OK)
    tap_ok(false, "the graph is read: %s", diag->text);
  return graph;
}

static snt_profile *profile_of(snt_context *context, const steer_case *k) {
  snt_profile *plain = NULL, *masked = NULL;
  snt_diag diag = {0};
  if (snt_profile_builtin(context, k->profile, &plain) != SNT_OK || !k->mask) return plain;
  (void)snt_profile_mask(plain, k->mask, &masked, &diag);
  snt_profile_destroy(plain);
  return masked;
}

static double run_ratio(snt_context *context, const snt_graph *graph, const snt_program *program, snt_diag *diag) {
  snt_device *device = NULL;
  snt_exec *exec = NULL;
  api_tensors tensors = {0};
  const snt_open_info info = {.head = SNT_HEAD(open_info), .selector = "interp"};
  double ratio = -1;
  snt_result r = snt_device_open(context, &info, &device, diag);
  if (r == SNT_OK) r = snt_exec_create(device, program, NULL, &exec, diag);
  if (r == SNT_OK && api_make_tensors(program, NULL, 7, &tensors) &&
      api_run_once(device, exec, &tensors, API_HOST_MEMORY, NULL, diag) == SNT_OK)
    ratio = api_ratio(graph, NULL, &tensors);
  api_free_tensors(&tensors);
  snt_exec_destroy(exec);
  snt_device_destroy(device);
  return ratio;
}

static void check_case(snt_context *context, const steer_case *k) {
  snt_diag diag = {0};
  snt_program *program = NULL;
  snt_graph *graph = read_graph(context, k->graph, k->contract, &diag);
  snt_profile *profile = profile_of(context, k);
  const snt_compile_info info = {.head = SNT_HEAD(compile_info), .targets = SNT_TARGET_HOST};
  const snt_result r = snt_compile(graph, profile, &info, &program, &diag);
  if (k->obstacle) tap_ok(r == SNT_E_CONTRACT && strstr(diag.text, k->obstacle), "%s: %d %s", k->name, (int)r, diag.text);
  else if (tap_ok(r == SNT_OK, "%s compiles %s", k->name, diag.text)) {
    char *kernels = kernels_of(program);
    for (uint32_t i = 0; kernels && i < 4 && k->expect[i].a; i++) {
      const together *t = &k->expect[i];
      if (!tap_ok(one_kernel(kernels, t->a, t->b) == t->same, "%s: %s and %s are %s", k->name, t->a, t->b,
                  t->same ? "one kernel" : "apart"))
        tap_diag("%s", kernels);
    }
    free(kernels);
    const double ratio = run_ratio(context, graph, program, &diag);
    tap_ok(ratio >= 0 && ratio <= 1, "%s is computed within its bounds: %g %s", k->name, ratio, diag.text);
  }
  snt_program_destroy(program);
  snt_profile_destroy(profile);
  snt_graph_destroy(graph);
}

/* A kept value is stored: one more buffer is written. */
static uint32_t bindings_with(snt_context *context, const char *contract) {
  snt_diag diag = {0};
  snt_program *program = NULL;
  snt_profile *profile = NULL;
  snt_graph *graph = read_graph(context, CHAIN, contract, &diag);
  snt_kernel kernel = {.head = SNT_HEAD(kernel)};
  (void)snt_profile_builtin(context, "dgpu", &profile);
  const snt_compile_info info = {.head = SNT_HEAD(compile_info), .targets = SNT_TARGET_HOST};
  if (snt_compile(graph, profile, &info, &program, &diag) == SNT_OK && snt_program_kernel_count(program) == 1)
    (void)snt_program_kernel(program, 0, SNT_TARGET_HOST, &kernel);
  snt_program_destroy(program);
  snt_profile_destroy(profile);
  snt_graph_destroy(graph);
  return kernel.binding_count;
}

/* The nodes of a composite have its name, too: its result is meant. */
static void check_composite(snt_context *context) {
  snt_diag diag = {0};
  snt_program *program = NULL;
  snt_profile *profile = NULL;
  snt_graph *graph = read_graph(context,
                                "(%x: f32[1,8,6,6], %w: f32[8,1,3,3]) {\n  %p = exp %x\n  %y = conv %p, %w, pads=[1,1,1,1], groups=8\n"
                                "  return y=%y\n",
                                "", &diag);
  const snt_value values[] = {snt_graph_find(graph, "p"), snt_graph_find(graph, "y")};
  (void)snt_profile_builtin(context, "pocl", &profile);
  const snt_compile_info info = {.head = SNT_HEAD(compile_info), .targets = SNT_TARGET_HOST};
  tap_ok(snt_graph_contract(graph, SNT_NEVER_FUSE, values, 2) == SNT_OK && snt_compile(graph, profile, &info, &program, &diag) == SNT_OK,
         "a contract names a convolution %s", diag.text);
  char *kernels = kernels_of(program);
  tap_ok(kernels && !one_kernel(kernels, "p", "y"), "and holds of its result");
  free(kernels);
  snt_program_destroy(program);
  snt_profile_destroy(profile);
  snt_graph_destroy(graph);
}

static void check_calls(snt_context *context) {
  snt_diag diag = {0};
  snt_program *program = NULL;
  snt_profile *profile = NULL;
  snt_graph *graph = read_graph(context, CHAIN, "", &diag);
  const snt_value values[] = {snt_graph_find(graph, "b"), snt_graph_find(graph, "c")};
  tap_ok(values[0] && values[1] && values[0] != values[1], "values are found by their names");
  tap_ok(snt_graph_find(graph, "nobody") == 0 && snt_graph_find(NULL, "b") == 0 && snt_graph_find(graph, NULL) == 0, "and only those");
  tap_ok(snt_graph_contract(graph, SNT_NEVER_FUSE, values, 2) == SNT_OK, "a contract by a call");
  tap_ok(snt_graph_contract(graph, SNT_MUST_FUSE, values, 1) == SNT_E_ARG, "must_fuse needs two values");
  tap_ok(snt_graph_contract(graph, 9, values, 2) == SNT_E_ARG, "an unknown contract is refused");
  (void)snt_profile_builtin(context, "dgpu", &profile);
  const snt_compile_info info = {.head = SNT_HEAD(compile_info), .targets = SNT_TARGET_HOST};
  tap_ok(snt_compile(graph, profile, &info, &program, &diag) == SNT_OK, "compiles %s", diag.text);
  char *kernels = program ? kernels_of(program) : NULL;
  tap_ok(kernels && !one_kernel(kernels, "b", "c") && one_kernel(kernels, "c", "d"), "and holds");
  free(kernels);
  snt_program_destroy(program);
  snt_profile_destroy(profile);
  snt_graph_destroy(graph);
}

/* Decisions as data: what the text says, in numbers. */
static void check_decisions(snt_context *context) {
  snt_diag diag = {0};
  snt_program *program = NULL;
  snt_profile *profile = NULL;
  snt_graph *graph = read_graph(context, CHAIN, "never_fuse %b, %c", &diag);
  (void)snt_profile_builtin(context, "dgpu", &profile);
  const snt_compile_info info = {.head = SNT_HEAD(compile_info), .targets = SNT_TARGET_HOST};
  (void)snt_compile(graph, profile, &info, &program, &diag);
  bool apart = false, joined = false;
  for (uint32_t i = 0; i < snt_program_decision_count(program); i++) {
    snt_decision d = {.head = SNT_HEAD(decision)};
    char text[256] = "";
    size_t length = sizeof text;
    if (!tap_ok(snt_program_decision(program, i, &d) == SNT_OK && snt_program_decision_text(program, i, text, &length) == SNT_OK,
                "decision %u: %s", i, text))
      continue;
    if (!strcmp(d.rule, "never_fuse") && d.producer == snt_graph_find(graph, "b") && d.consumer == snt_graph_find(graph, "c"))
      apart = !d.taken && !strcmp(d.producer_name, "b") && !strcmp(d.consumer_name, "c") && d.ns_parts > 0;
    if (d.taken && d.form == SNT_DECISION_PAIR) joined |= d.ns_fused > 0 && d.ns_fused < d.ns_parts && d.bytes_saved > 0 && d.registers > 0;
  }
  tap_ok(apart, "b and c stay apart, by their values and names");
  tap_ok(joined, "what was joined saves time and bytes");
  snt_decision none = {.head = SNT_HEAD(decision)};
  tap_ok(snt_program_decision(program, snt_program_decision_count(program), &none) == SNT_E_ARG && snt_program_decision_count(NULL) == 0,
         "there are no more");
  snt_program_destroy(program);
  snt_profile_destroy(profile);
  snt_graph_destroy(graph);
}

int main(void) {
  snt_context *context = NULL;
  tap_begin();
  tap_ok(snt_context_create(NULL, &context) == SNT_OK, "a context");
  for (uint32_t i = 0; i < sizeof cases / sizeof *cases; i++) check_case(context, &cases[i]);
  tap_is_int(bindings_with(context, ""), 2, "the chain reads one buffer and writes one");
  tap_is_int(bindings_with(context, "keep %b"), 3, "and one more when a value is kept");
  check_calls(context);
  check_composite(context);
  check_decisions(context);
  snt_context_destroy(context);
  return tap_done();
}
