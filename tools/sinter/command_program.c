/* Saved programs: sinter compile -o FILE.sntp writes one, sinter inspect prints what is in it, sinter pack makes it a C array. */
#include "tools/sinter/tool.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

snt_result tool_save_program(tool_session *s, const char *path) {
  size_t size = 0;
  snt_result r = snt_program_save(s->program, NULL, &size);
  void *blob = r == SNT_INCOMPLETE ? malloc(size) : NULL;
  if (r != SNT_INCOMPLETE) return host_fail(&s->diag, r, "save", "the program cannot be saved");
  r = blob ? snt_program_save(s->program, blob, &size) : SNT_E_HOST_MEM;
  if (r == SNT_OK) r = host_write_file(path, blob, size, &s->diag);
  free(blob);
  return r;
}

snt_result tool_save_pack(tool_session *s, snt_program *const *programs, uint32_t count, const char *path) {
  const snt_program *const *given = (const snt_program *const *)programs;
  size_t size = 0;
  snt_result r = snt_program_pack(given, count, NULL, &size);
  void *blob = r == SNT_INCOMPLETE ? malloc(size) : NULL;
  if (r != SNT_INCOMPLETE) return host_fail(&s->diag, r, "save", "the programs cannot be packed");
  r = blob ? snt_program_pack(given, count, blob, &size) : SNT_E_HOST_MEM;
  if (r == SNT_OK) r = host_write_file(path, blob, size, &s->diag);
  free(blob);
  return r;
}

bool tool_is_program_path(const char *path) {
  const size_t length = path ? strlen(path) : 0;
  return length > 5 && !strcmp(path + length - 5, ".sntp");
}

/* ---- inspect ---- */

static void print_dims(const snt_program *p, const snt_tensor *t) {
  printf("%s[", tool_dtype_name(t->dtype));
  for (uint32_t i = 0; i < t->rank; i++) {
    snt_symbol symbol = {0};
    const bool named = t->dims[i] < 0 && snt_program_symbol(p, (uint32_t)(-t->dims[i] - 1), &symbol) == SNT_OK;
    if (named) printf("%s%s", i ? "," : "", symbol.name);
    else if (t->dims[i] < 0) printf("%s(..)", i ? "," : "");
    else printf("%s%lld", i ? "," : "", (long long)t->dims[i]);
  }
  printf("]");
}

static void print_ports(const snt_program *p) {
  static const char *const kinds[] = {"?", "input", "output", "state"};
  for (uint32_t i = 0; i < snt_program_symbol_count(p); i++) {
    snt_symbol s;
    if (snt_program_symbol(p, i, &s) != SNT_OK) continue;
    printf("symbol %u: %s from %lld to %lld, multiple of %lld, made for %lld\n", i, s.name, (long long)s.min, (long long)s.max,
           (long long)s.multiple_of, (long long)s.hint);
  }
  for (uint32_t i = 0; i < snt_program_port_count(p); i++) {
    snt_port port = {0};
    if (snt_program_port(p, i, &port) != SNT_OK) continue;
    printf("port %u: %s %s ", i, port.kind <= SNT_PORT_STATE ? kinds[port.kind] : "?", port.name);
    print_dims(p, &port.tensor);
    printf("\n");
  }
}

static void print_kernels(const snt_program *p) {
  static const struct {
    const char *name;
    uint32_t bit;
  } targets[] = {{"opencl", SNT_TARGET_OPENCL}, {"spirv", SNT_TARGET_SPIRV}, {"cuda", SNT_TARGET_CUDA}, {"kir", SNT_TARGET_HOST}};
  for (uint32_t k = 0; k < snt_program_kernel_count(p); k++) {
    snt_kernel kernel = {0};
    for (size_t t = 0; t < sizeof targets / sizeof *targets; t++) {
      if (snt_program_kernel(p, k, targets[t].bit, &kernel) != SNT_OK) continue;
      if (!t)
        printf("kernel %u: %s %s, %u bindings, %ux%ux%u items;", k, kernel.name, kernel.kind, kernel.binding_count, kernel.items[0],
               kernel.items[1], kernel.items[2]);
      if (kernel.code) printf(" %s %zu bytes", targets[t].name, kernel.code_size);
    }
    printf("\n");
  }
}

static snt_result print_plan(tool_session *s) {
  char *text;
  const snt_result r = tool_explain(s->program, SNT_EXPLAIN_PLAN, &text);
  if (r == SNT_OK) fputs(text, stdout);
  free(text);
  return r;
}

/* What was compiled says it of itself, in a line of the explanation. */
static snt_result print_weights(tool_session *s) {
  char *text;
  const snt_result r = tool_explain(s->program, SNT_EXPLAIN_TEXT, &text);
  const char *line = r == SNT_OK ? strstr(text, "\nweights: ") : NULL;
  if (line) printf("%.*s\n", (int)strcspn(line + 1, "\n"), line + 1);
  free(text);
  return r;
}

static snt_result print_variant(tool_session *s, uint32_t variant, bool packed) {
  const void *at;
  size_t size;
  if (packed) {
    snt_program_destroy(s->program);
    s->program = NULL;
    snt_result r = snt_pack_variant(s->text, s->text_size, variant, &at, &size);
    if (r == SNT_OK) r = snt_program_load(s->context, at, size, &s->program, &s->diag);
    if (r != SNT_OK) return r;
    printf("variant %u: profile %s, %zu bytes\n", variant, snt_program_profile(s->program), size);
  }
  print_ports(s->program);
  print_kernels(s->program);
  const snt_result r = print_weights(s);
  return r == SNT_OK ? print_plan(s) : r;
}

int command_inspect(const tool_options *options) {
  tool_session s;
  snt_result r = tool_open(&s, options, false);
  if (r == SNT_OK) r = tool_load(&s);
  if (r == SNT_OK && !s.program)
    r = host_fail(&s.diag, SNT_E_ARG, "inspect", "this is a model, not a saved program (sinter compile -o FILE.sntp)");
  const uint32_t variants = r == SNT_OK ? snt_pack_count(s.text, s.text_size) : 0;
  for (uint32_t i = 0; r == SNT_OK && i < (variants ? variants : 1); i++) r = print_variant(&s, i, variants != 0);
  const int code = r == SNT_OK ? EXIT_GOOD : tool_fail(&s, r);
  tool_close(&s);
  return code;
}

/* ---- pack ---- */

static void write_array(FILE *f, const char *name, const uint8_t *bytes, size_t size) {
  fprintf(f, "/* A Sinter program, written by `sinter pack`: pass it to %s. */\n#include <stddef.h>\n#include <stdint.h>\n",
          snt_pack_count(bytes, size) ? "snt_program_load_best" : "snt_program_load");
  fprintf(f, "#ifdef __cplusplus\nalignas(64)\n#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L\n_Alignas(64)\n#endif\n");
  fprintf(f, "static const uint8_t %s[%zu] = {", name, size);
  for (size_t i = 0; i < size; i++) fprintf(f, "%s%u,", i % 24 ? "" : "\n", bytes[i]);
  fprintf(f, "\n};\n");
}

int command_pack(const tool_options *options) {
  tool_session s;
  snt_result r = tool_open(&s, options, false);
  if (r == SNT_OK && !options->header) r = host_fail(&s.diag, SNT_E_ARG, "pack", "no header given: --header FILE.h");
  if (r == SNT_OK) r = tool_load(&s); /* checks it */
  if (r == SNT_OK && !s.program) r = host_fail(&s.diag, SNT_E_ARG, "pack", "this is a model, not a saved program");
  char name[64] = "";
  if (r == SNT_OK) {
    const char *slash = strrchr(options->model, '/'), *base = slash ? slash + 1 : options->model;
    size_t n = 0;
    if (isdigit((unsigned char)*base)) name[n++] = '_';
    for (; *base && *base != '.' && n + 1 < sizeof name; base++) name[n++] = isalnum((unsigned char)*base) ? *base : '_';
    host_output out;
    r = host_begin_file(&out, options->header, &s.diag);
    if (r == SNT_OK) write_array(out.file, name, s.text, s.text_size);
    r = host_end_file(&out, r, &s.diag);
  }
  const int code = r == SNT_OK ? EXIT_GOOD : tool_fail(&s, r);
  if (r == SNT_OK) printf("%s: %s, %zu bytes\n", options->header, name, s.text_size);
  tool_close(&s);
  return code;
}
