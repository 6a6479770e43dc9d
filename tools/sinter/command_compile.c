/* sinter compile and sinter opt: what the compiler makes, as files and as text. */
#include "fusion/fusion.h"
#include "tools/sinter/tool.h"
#include <stdlib.h>
#include <string.h>

typedef struct target_info {
  const char *name, *suffix;
  uint32_t bit;
} target_info;
static const target_info targets[] = {{"opencl", "cl", SNT_TARGET_OPENCL},
                                      {"spirv", "spv", SNT_TARGET_SPIRV},
                                      {"cuda", "cu", SNT_TARGET_CUDA},
                                      {"kir", "kir", SNT_TARGET_HOST}};

static snt_result parse_targets(tool_session *s, uint32_t *out) {
  *out = 0;
  for (const char *at = s->options.target ? s->options.target : "opencl,spirv,cuda"; at;) {
    const char *comma = strchr(at, ',');
    const size_t length = comma ? (size_t)(comma - at) : strlen(at);
    uint32_t bit = 0;
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++)
      if (strlen(targets[i].name) == length && !strncmp(targets[i].name, at, length)) bit = targets[i].bit;
    if (!bit) return host_fail(&s->diag, SNT_E_ARG, "target", "no target \"%.*s\": opencl spirv cuda kir", (int)length, at);
    *out |= bit;
    at = comma ? comma + 1 : NULL;
  }
  return SNT_OK;
}

static snt_result write_kernels(tool_session *s, uint32_t wanted) {
  char path[4096];
  for (uint32_t k = 0; k < snt_program_kernel_count(s->program); k++)
    for (size_t t = 0; t < sizeof targets / sizeof *targets; t++) {
      snt_kernel kernel = {.head = SNT_HEAD(kernel)};
      if (!(wanted & targets[t].bit)) continue;
      snt_result r = snt_program_kernel(s->program, k, targets[t].bit, &kernel);
      if (r != SNT_OK || !kernel.code)
        return host_fail(&s->diag, SNT_E_INTERNAL, "compile", "kernel %u has no %s code", k, targets[t].name);
      snprintf(path, sizeof path, "%s/%s.%s", s->options.out, kernel.name, targets[t].suffix);
      r = host_write_file(path, kernel.code, kernel.code_size, &s->diag);
      if (r != SNT_OK) return r;
    }
  return SNT_OK;
}

static snt_result write_plan(tool_session *s) {
  char path[4096];
  char *text;
  snt_result r = tool_explain(s->program, SNT_EXPLAIN_PLAN, &text);
  snprintf(path, sizeof path, "%s/plan.txt", s->options.out);
  if (r == SNT_OK) r = host_write_file(path, text, strlen(text), &s->diag);
  free(text);
  return r;
}

/* --profile a,b,c: a variant each, in one pack. */
static snt_result compile_variants(tool_session *s, uint32_t wanted) {
  enum { MOST = 16 };
  snt_program *programs[MOST];
  uint32_t count = 0;
  snt_result r = SNT_OK;
  for (const char *at = s->options.profile; r == SNT_OK && at;) {
    const size_t length = strcspn(at, ",");
    r = count < MOST ? tool_open_profile(s, at, length) : host_fail(&s->diag, SNT_E_ARG, "profile", "--profile: more than %u", MOST);
    if (r == SNT_OK) r = tool_compile_flags(s, wanted, s->options.compile_flags, &programs[count]);
    if (r == SNT_OK) count++;
    at = at[length] ? at + length + 1 : NULL;
  }
  if (r == SNT_OK) r = tool_save_pack(s, programs, count, s->options.out);
  for (uint32_t i = 0; i < count; i++) snt_program_destroy(programs[i]);
  if (r == SNT_OK) printf("%s: %u variants\n", s->options.out, count);
  return r;
}

int command_compile(const tool_options *options) {
  tool_session s;
  uint32_t wanted = 0;
  snt_result r = tool_open(&s, options, options->device != NULL);
  if (r == SNT_OK && !options->out) r = host_fail(&s.diag, SNT_E_ARG, "compile", "no folder given: -o DIR");
  else if (r == SNT_OK && !strcmp(options->out, "-")) r = host_fail(&s.diag, SNT_E_ARG, "compile", "-o -: a folder or a FILE.sntp is made");
  if (r == SNT_OK) r = parse_targets(&s, &wanted);
  if (r == SNT_OK) r = tool_load(&s);
  if (r == SNT_OK) r = tool_need_graph(&s);
  if (r == SNT_OK && options->profile && strchr(options->profile, ',')) {
    if (!tool_is_program_path(options->out)) r = host_fail(&s.diag, SNT_E_ARG, "compile", "several profiles make one FILE.sntp");
    if (r == SNT_OK) r = compile_variants(&s, wanted);
    const int code = r == SNT_OK ? EXIT_GOOD : tool_fail(&s, r);
    tool_close(&s);
    return code;
  }
  if (r == SNT_OK) r = tool_compile(&s, wanted);
  if (r == SNT_OK && tool_is_program_path(options->out)) {
    r = tool_save_program(&s, options->out);
  } else {
    if (r == SNT_OK) r = host_make_dirs(options->out, &s.diag);
    if (r == SNT_OK) r = write_kernels(&s, wanted);
    if (r == SNT_OK) r = write_plan(&s);
  }
  const int code = r == SNT_OK ? EXIT_GOOD : tool_fail(&s, r);
  if (r == SNT_OK)
    printf("%s: %u kernel%s\n", options->out, snt_program_kernel_count(s.program), tool_plural(snt_program_kernel_count(s.program)));
  tool_close(&s);
  return code;
}

static snt_result check_passes(tool_session *s) {
  for (const char *at = s->options.passes; at;) {
    const char *comma = strchr(at, ',');
    const size_t length = comma ? (size_t)(comma - at) : strlen(at);
    uint32_t i = 0;
    while (i < fusion_pipeline_count && (strlen(fusion_pipeline[i].name) != length || strncmp(fusion_pipeline[i].name, at, length))) i++;
    if (i == fusion_pipeline_count) {
      fprintf(stderr, "sinter: passes are, in the order in which they run:");
      while (i) fprintf(stderr, " %s", fusion_pipeline[fusion_pipeline_count - i--].name);
      fprintf(stderr, "\n");
      return host_fail(&s->diag, SNT_E_ARG, "opt", "no pass \"%.*s\"", (int)length, at);
    }
    at = comma ? comma + 1 : NULL;
  }
  return SNT_OK;
}

/* A built-in one by name, or a file's. */
static snt_result profile_of_passes(tool_session *s, cost_profile *out) {
  const char *name = s->options.profile ? s->options.profile : "pocl";
  void *text = NULL;
  size_t size = 0;
  if (cost_profile_builtin(name, out)) return SNT_OK;
  snt_result r = host_read_file(name, &text, &size, &s->diag);
  if (r == SNT_OK) r = cost_profile_parse(out, text, size, &s->diag);
  free(text);
  return r;
}

/* Passes are an inside of the compiler: this command alone works on the graph IR directly. */
static snt_result run_passes(tool_session *s, const char *text) {
  ir_arena arena;
  expr_pool pool;
  ir_graph g;
  ir_plan plan;
  fusion_context c;
  cost_profile profile;
  ir_arena_init(&arena, NULL);
  expr_pool_init(&pool, &arena);
  ir_graph_init(&g, &arena, &pool);
  plan_init(&plan, &arena, &pool);
  uint32_t numerics = 0;
  snt_result r = tool_numerics(s, &numerics);
  if (r == SNT_OK) r = profile_of_passes(s, &profile);
  if (r == SNT_OK && s->options.mask) r = cost_profile_mask(&profile, s->options.mask, &s->diag);
  const fusion_options options = {.profile = &profile,
                                  .only = s->options.passes,
                                  .numerics = (uint8_t)numerics,
                                  .no_rewrites = (s->options.compile_flags & SNT_COMPILE_NO_REWRITES) != 0,
                                  .verify = true};
  if (r == SNT_OK) r = ir_graph_parse(&g, text, strlen(text), &s->diag);
  if (r == SNT_OK) r = fusion_compile(&c, &g, &options, &arena, &plan, &s->diag);
  ir_text out;
  ir_text_init(&out, &arena);
  if (r == SNT_OK) ir_graph_print(c.graph, &out);
  if (r == SNT_OK && out.failed) r = SNT_E_HOST_MEM;
  if (r == SNT_OK) fputs(out.at, stdout);
  ir_arena_free(&arena);
  return r;
}

int command_opt(const tool_options *options) {
  tool_session s;
  snt_result r = tool_open(&s, options, false);
  if (r == SNT_OK && !options->passes) r = host_fail(&s.diag, SNT_E_ARG, "opt", "no passes given: --run canonicalise,decompose");
  if (r == SNT_OK && options->dim_count && !tool_is_onnx(options->model))
    r = host_fail(&s.diag, SNT_E_ARG, "dim", "--dim: symbols of a graph are open in all passes; an extent is written in its text");
  if (r == SNT_OK) r = check_passes(&s);
  if (r == SNT_OK) r = tool_load(&s);
  if (r == SNT_OK) r = tool_need_graph(&s);
  char *text = NULL;
  if (r == SNT_OK) r = tool_graph_text(s.graph, &text);
  if (r == SNT_OK) r = run_passes(&s, text);
  free(text);
  const int code = r == SNT_OK ? EXIT_GOOD : tool_fail(&s, r);
  tool_close(&s);
  return code;
}
