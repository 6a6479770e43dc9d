/* Operators of the user's own through the API: definitions in pieces, calls by name, the caller's GLSL compiler, and what a compiler may hand out: every
   word of a module damaged in turn is refused or gives a module, never a crash, and an allocator that fails at each call leaks nothing. */
#include "tests/tap.h"
#include "tests/unit/api_support.h"
#include <stdlib.h>
#include <string.h>

static const char twice[] = "custom twice(%x: f32) {\n  %y = add %x, %x\n  yield %y\n} glsl=\"2.0 * x\", opencl=\"2 * x\"\n";

/* `float snt_twice(float x) { return 2.0 * x; }` as a compiler gives it, with an empty main. */
static const uint32_t module[] = {
    0x07230203,
    0x00010300,
    0,
    20,
    0,
    2u << 16 | 17,
    1, /* OpCapability Shader */
    6u << 16 | 11,
    1,
    0x4C534C47,
    0x6474732E,
    0x3035342E,
    0, /* %1 = OpExtInstImport "GLSL.std.450" */
    3u << 16 | 14,
    0,
    1, /* OpMemoryModel */
    5u << 16 | 15,
    5,
    4,
    0x6E69616D,
    0, /* OpEntryPoint GLCompute %4 "main" */
    6u << 16 | 5,
    8,
    0x5F746E73,
    0x63697774,
    0x31662865,
    0x3B, /* OpName %8 "snt_twice(f1;" */
    2u << 16 | 19,
    2, /* %2 = OpTypeVoid */
    3u << 16 | 33,
    3,
    2, /* %3 = OpTypeFunction %2 */
    3u << 16 | 22,
    6,
    32, /* %6 = OpTypeFloat 32 */
    4u << 16 | 33,
    7,
    6,
    6, /* %7 = OpTypeFunction %6 %6 */
    4u << 16 | 43,
    6,
    9,
    0x40000000, /* %9 = OpConstant %6 2.0 */
    5u << 16 | 54,
    2,
    4,
    0,
    3,
    2u << 16 | 248,
    5,
    1u << 16 | 253,
    1u << 16 | 56, /* main */
    5u << 16 | 54,
    6,
    8,
    0,
    7,
    3u << 16 | 55,
    6,
    10,
    2u << 16 | 248,
    11, /* the function, %10 its parameter */
    5u << 16 | 133,
    6,
    12,
    9,
    10,
    2u << 16 | 254,
    12,
    1u << 16 | 56,
};
enum { WORDS = sizeof module / sizeof *module };

typedef struct compiler {
  uint32_t words[WORDS];
  size_t bytes;
  uint32_t calls;
  snt_result result;
  char text[4096];
} compiler;

static snt_result SNT_CALL compile_glsl(void *user, const char *label, const char *text, size_t length, const uint32_t **words,
                                        size_t *bytes, snt_diag *diag) {
  compiler *c = user;
  (void)diag;
  c->calls++;
  if (strcmp(label, "twice") || length >= sizeof c->text) return SNT_E_ARG;
  memcpy(c->text, text, length + 1);
  *words = c->words;
  *bytes = c->bytes;
  return c->result;
}

static snt_graph *make_graph(snt_context *c) {
  snt_graph *g;
  const snt_tensor t = {SNT_F32, 1, {64}};
  if (snt_graph_create(c, &g) != SNT_OK) return NULL;
  const snt_result r = snt_graph_define(g, twice, sizeof twice - 1, NULL);
  if (r == SNT_OK) {
    const snt_value x = snt_graph_input(g, "x", &t), y = snt_graph_op(g, "twice", &x, 1, NULL);
    snt_graph_output(g, "y", y);
    return g;
  }
  snt_graph_destroy(g);
  return NULL;
}

static snt_result compile_with(snt_context *c, snt_graph *g, compiler *glsl, snt_program **out, snt_diag *diag) {
  snt_compile_info info = {.head = SNT_HEAD(compile_info), .targets = SNT_TARGET_SPIRV};
  snt_profile *p = NULL;
  if (glsl) info.glsl = compile_glsl, info.glsl_user = glsl;
  snt_result r = snt_profile_builtin(c, "dgpu", &p);
  if (r == SNT_OK) r = snt_compile(g, p, &info, out, diag);
  snt_profile_destroy(p);
  return r;
}

static compiler good(void) {
  compiler c = {.bytes = sizeof module, .result = SNT_OK};
  memcpy(c.words, module, sizeof module);
  return c;
}

/* ---- definitions ---- */
static void check_definitions(snt_context *c) {
  snt_graph *g = make_graph(c), *printed;
  snt_diag diag = {.head = SNT_HEAD(diag)};
  static const char again[] = "custom twice(%x) {\n yield %x\n}", cut[] = "custom other(%x) {\n yield %x\n",
                    stray[] = "graph @g() {\n return\n}";
  char text[2048];
  size_t size = sizeof text;
  tap_is_int(snt_graph_verify(g, &diag), SNT_OK, "a definition is called by its name");
  tap_is_int(snt_graph_print(g, text, &size), SNT_OK, "and printed as what it is");
  tap_ok(strstr(text, "custom") && strstr(text, "label=\"twice\"") && strstr(text, "add"), "with its texts and what it means");
  tap_is_int(snt_graph_create(c, &printed), SNT_OK, "its print");
  tap_is_int(snt_graph_parse(printed, text, strlen(text), NULL, &diag), SNT_OK, "is read back without the definition: %s", diag.text);
  snt_graph_destroy(printed);
  tap_is_int(snt_graph_define(g, again, sizeof again - 1, &diag), SNT_E_PARSE, "a second definition of the name is refused");
  tap_ok(strstr(diag.text, "twice is defined twice") != NULL, "by name: %s", diag.text);
  tap_is_int(snt_graph_define(g, cut, sizeof cut - 1, &diag), SNT_E_PARSE, "and one that is not closed: %s", diag.text);
  tap_is_int(snt_graph_define(g, stray, sizeof stray - 1, &diag), SNT_E_PARSE, "and a graph: %s", diag.text);
  tap_is_int(snt_graph_define(NULL, twice, 1, &diag), SNT_E_ARG, "and no graph to define it in");
  tap_is_int(snt_graph_define(g, NULL, 0, &diag), SNT_OK, "nothing defines nothing");
  snt_graph_destroy(g);
}

/* ---- the caller's compiler ---- */
static void check_compiler(snt_context *c) {
  snt_graph *g = make_graph(c);
  snt_program *p = NULL;
  snt_diag diag = {.head = SNT_HEAD(diag)};
  compiler glsl = good();
  tap_is_int(compile_with(c, g, &glsl, &p, &diag), SNT_OK, "a function in GLSL: %s", diag.text);
  tap_is_int(glsl.calls, 1, "is compiled once");
  tap_ok(strstr(glsl.text, "float snt_twice(const in float x)") && strstr(glsl.text, "2.0 * x"), "as a shader that calls it");
  tap_is_int(snt_program_kernel_count(p), 1, "and is one kernel");
  snt_program_destroy(p);
  tap_is_int(compile_with(c, g, NULL, &p, &diag), SNT_OK, "without a compiler it is what it means");
  snt_program_destroy(p);
  glsl = good();
  glsl.result = SNT_E_CANCELLED;
  tap_is_int(compile_with(c, g, &glsl, &p, &diag), SNT_E_CANCELLED, "what the compiler says is what is said");
  glsl = good();
  glsl.bytes = 0;
  tap_is_int(compile_with(c, g, &glsl, &p, &diag), SNT_E_UNSUPPORTED, "no words are no module: %s", diag.text);
  tap_ok(strstr(diag.text, "twice") != NULL, "of an operator that has a name");
  snt_graph_destroy(g);
}

/* ---- damaged modules ---- */
static void check_damage(snt_context *c) {
  static const uint32_t values[] = {0, 1, 0xffffffff, 0x7fff0000, 5, 0x00020038};
  snt_graph *g = make_graph(c);
  uint32_t refused = 0, made = 0, other = 0;
  for (uint32_t at = 0; at < WORDS; at++)
    for (uint32_t v = 0; v < sizeof values / sizeof *values + 32; v++) {
      compiler glsl = good();
      snt_program *p = NULL;
      const uint32_t bits = sizeof values / sizeof *values;
      glsl.words[at] = v < bits ? values[v] : module[at] ^ 1u << (v - bits);
      const snt_result r = compile_with(c, g, &glsl, &p, NULL);
      if (r == SNT_OK) made++, snt_program_destroy(p);
      else if (r == SNT_E_UNSUPPORTED) refused++;
      else other++;
    }
  tap_ok(refused > 500 && made > 500, "of %u damaged modules %u are refused", refused + made, refused);
  tap_is_int(other, 0, "with the result that says so");
  for (uint32_t words = other = 0; words < WORDS; words++) {
    compiler glsl = good();
    snt_program *p = NULL;
    glsl.bytes = words * sizeof *module;
    if (compile_with(c, g, &glsl, &p, NULL) == SNT_OK) other++, snt_program_destroy(p);
  }
  tap_is_int(other, 0, "a module that ends early is refused wherever it ends");
  snt_graph_destroy(g);
}

/* ---- memory ---- */
static void check_memory(void) {
  api_memory memory = {0};
  uint32_t failures = 0, wrong = 0;
  for (long long n = 1; n < 100000; n++) {
    memory = (api_memory){.fail_at = n};
    snt_context *c = api_context(&memory);
    snt_program *p = NULL;
    compiler glsl = good();
    snt_graph *g = c ? make_graph(c) : NULL;
    const snt_result r = g ? compile_with(c, g, &glsl, &p, NULL) : SNT_E_HOST_MEM;
    snt_program_destroy(p);
    snt_graph_destroy(g);
    snt_context_destroy(c);
    wrong += memory.live != 0 || (r != SNT_OK && r != SNT_E_HOST_MEM);
    failures += r != SNT_OK;
    if (memory.calls < n) break;
  }
  tap_ok(failures > 10 && !wrong, "each of %u allocations may fail, %u times something else was said or kept", failures, wrong);
}

int main(void) {
  api_memory memory = {0};
  snt_context *c = api_context(&memory);
  if (!c) tap_bail_out("no context");
  check_definitions(c);
  check_compiler(c);
  check_damage(c);
  check_memory();
  snt_context_destroy(c);
  tap_is_int(memory.live, 0, "and nothing stays behind");
  return tap_done();
}
