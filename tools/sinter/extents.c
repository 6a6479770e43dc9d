/* The extents that a model leaves open: --dim says them, else the files of --input, else they are what the plan was made for. */
#include "tools/sinter/tool.h"
#include <stdlib.h>
#include <string.h>

static bool is_word(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; }

/* By the symbol's name, or by that of the ONNX file it was made of: what is no word there is '_', and a number has a letter before it. */
static bool names(const char *given, const char *symbol) {
  if (!strcmp(given, symbol)) return true;
  if (*given >= '0' && *given <= '9' && *symbol++ != 'd') return false;
  for (; *given && (is_word(*given) ? *given : '_') == *symbol; given++) symbol++;
  return !*given && !*symbol;
}

bool tool_dim_value(const tool_pair *dim, int64_t *out) {
  char *stop;
  *out = strtoll(dim->value, &stop, 10);
  return !*stop && *out >= 0 && *out <= INT32_MAX;
}

static snt_result from_options(tool_session *s) {
  for (uint32_t i = 0; i < s->options.dim_count; i++) {
    const tool_pair *dim = &s->options.dims[i];
    int64_t value;
    bool known = tool_is_onnx(s->options.model); /* then the import knew it, and may have fixed it */
    tool_names symbols = {.used = 0};
    if (!tool_dim_value(dim, &value)) return host_fail(&s->diag, SNT_E_ARG, "dim", "%s: not an extent: \"%s\"", dim->name, dim->value);
    for (uint32_t k = 0; k < snt_program_symbol_count(s->program) && k < TOOL_MAX_DIMS; k++) {
      snt_symbol symbol;
      if (snt_program_symbol(s->program, k, &symbol) != SNT_OK) continue;
      tool_list_name(&symbols, symbol.name);
      if (!names(dim->name, symbol.name)) continue;
      s->symbols[k] = value;
      known = true;
    }
    if (!known)
      return host_fail(&s->diag, SNT_E_ARG, "dim", "the model has no symbol \"%s\"; there are: %s", dim->name,
                       symbols.used ? symbols.text : "none");
  }
  return SNT_OK;
}

static bool input_type(const tool_session *s, const char *name, snt_tensor *out) {
  for (uint32_t i = 0; i < s->options.input_count; i++) {
    const tool_pair *input = &s->options.inputs[i];
    void *file;
    const void *data;
    if (strcmp(input->name, name) != 0 || !npy_is_path(input->value)) continue;
    if (npy_open(input->value, &file, out, &data, NULL) != SNT_OK) return false; /* who reads the input says why */
    free(file);
    return true;
  }
  return false;
}

static void from_inputs(tool_session *s) {
  if (!snt_program_symbol_count(s->program)) return; /* the files are long */
  for (uint32_t i = 0; i < snt_program_port_count(s->program); i++) {
    snt_port port;
    snt_tensor given;
    if (snt_program_port(s->program, i, &port) != SNT_OK || port.kind != SNT_PORT_INPUT) continue;
    if (!input_type(s, port.name, &given) || given.rank != port.tensor.rank) continue;
    for (uint32_t d = 0; d < given.rank; d++) {
      const int64_t extent = port.tensor.dims[d];
      if (extent < 0 && -extent - 1 < (int64_t)snt_program_symbol_count(s->program) && -extent <= TOOL_MAX_DIMS)
        s->symbols[-extent - 1] = given.dims[d];
    }
  }
}

snt_result tool_settle_symbols(tool_session *s) {
  for (uint32_t k = 0; k < snt_program_symbol_count(s->program) && k < TOOL_MAX_DIMS; k++) {
    snt_symbol symbol = {0};
    (void)snt_program_symbol(s->program, k, &symbol);
    s->symbols[k] = symbol.hint > 0 ? symbol.hint : symbol.min;
  }
  from_inputs(s);
  return from_options(s);
}
