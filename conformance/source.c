/* The kernels of a case, for people to read: in, the text of the device's profile as the child printed it, and the case; out, what the device's driver
   was given, or the kernel IR where that is words and not text. Compiling needs no device, so the parent does it, whatever became of the child. */
#include "conformance/conform.h"
#include <string.h>

static bool add_kernels(const snt_program *program, uint32_t target, ir_text *out) {
  bool any = false;
  for (uint32_t i = 0; i < snt_program_kernel_count(program); i++) {
    snt_kernel k = {.head = SNT_HEAD(kernel)};
    if (snt_program_kernel(program, i, target, &k) != SNT_OK || !k.code) continue;
    ir_text_format(out, "%s// kernel %u of %u: %s, %s\n", any ? "\n" : "", i + 1, snt_program_kernel_count(program), k.name, k.kind);
    ir_text_put(out, k.code, strnlen(k.code, k.code_size));
    any = true;
  }
  return any;
}

static bool compile_for(const conform_source_info *info, const snt_profile *profile, snt_context *context, uint32_t targets, ir_text *out) {
  static const uint32_t texts[] = {SNT_TARGET_OPENCL, SNT_TARGET_CUDA, SNT_TARGET_HOST};
  snt_graph *graph = NULL;
  snt_program *program = NULL;
  bool any = false;
  const snt_compile_info compile = {.head = SNT_HEAD(compile_info), .targets = targets, .numerics = conform_path_numerics(info->path)};
  snt_result r = snt_graph_create(context, &graph);
  if (r == SNT_OK) r = snt_graph_parse(graph, info->graph, strlen(info->graph), NULL, NULL);
  if (r == SNT_OK) r = snt_compile(graph, profile, &compile, &program, NULL);
  for (uint32_t t = 0; r == SNT_OK && !any && t < IR_COUNT(texts); t++) any = add_kernels(program, texts[t], out);
  snt_program_destroy(program);
  snt_graph_destroy(graph);
  return any;
}

bool conform_source(const conform_source_info *info, ir_text *out) {
  snt_context *context = NULL;
  snt_profile *profile = NULL, *masked = NULL;
  const snt_context_info made = {.head = SNT_HEAD(context_info), .abi_version = SNT_ABI_VERSION};
  snt_result r = snt_context_create(&made, &context);
  if (r == SNT_OK) r = snt_profile_parse(context, info->profile, strlen(info->profile), &profile, NULL);
  if (r == SNT_OK && info->path == PATH_MASKED) r = snt_profile_mask(profile, "vulkan11-min", &masked, NULL);
  const bool any = r == SNT_OK && (compile_for(info, masked ? masked : profile, context, 0, out) ||
                                   compile_for(info, masked ? masked : profile, context, SNT_TARGET_HOST, out));
  snt_profile_destroy(masked);
  snt_profile_destroy(profile);
  snt_context_destroy(context);
  return any;
}
