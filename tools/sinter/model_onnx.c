/* ONNX models: imported with open extents, so that one program serves all of them, or, where a model cannot be imported so, for what --dim and the
   files of --input say: their extents, and the elements of short lists of integers, which may be axes, sizes or a choice of branches. */
#include "tools/sinter/tool.h"
#include <sinter/sinter_onnx.h>
#include <stdlib.h>
#include <string.h>

enum { SHORT_LIST = 64 };

static void SNT_CALL print_unsupported(void *user, const char *node, const char *op, const char *reason) {
  (void)user;
  fprintf(stderr, "not supported: %s (%s): %s\n", node, op, reason);
}

/* Fixed, or what the extent usually is: then the plan is still good for others. */
static uint32_t take_dims(const tool_session *s, bool fix, snt_symbol *out) {
  for (uint32_t i = 0; i < s->options.dim_count; i++) {
    int64_t value;
    const bool good = tool_dim_value(&s->options.dims[i], &value); /* if not, tool_settle_symbols says so */
    out[i] = (snt_symbol){s->options.dims[i].name, good && value < 1 ? value : 1, INT32_MAX, 1, good ? value : 128};
    if (fix && good) out[i].min = out[i].max = value;
  }
  return s->options.dim_count;
}

typedef struct fixed_inputs {
  snt_onnx_fixed at[2 * TOOL_MAX_PORTS];
  void *file[2 * TOOL_MAX_PORTS];
  uint32_t count;
} fixed_inputs;

static snt_result open_fixed(const tool_pair *given, fixed_inputs *f, snt_diag *diag) {
  snt_onnx_fixed *to = &f->at[f->count];
  to->name = given->name;
  const snt_result r = npy_open(given->value, &f->file[f->count], &to->tensor, &to->data, diag);
  f->count += r == SNT_OK;
  return r;
}

/* --fix NAME=FILE: inputs whose values the import is to know. */
static snt_result read_fixed(tool_session *s, fixed_inputs *f) {
  snt_result r = SNT_OK;
  for (uint32_t i = 0; r == SNT_OK && i < s->options.fixed_count; i++) r = open_fixed(&s->options.fixed[i], f, &s->diag);
  return r;
}

static bool is_short_list(const snt_tensor *t) {
  const bool whole = (t->dtype >= SNT_I8 && t->dtype <= SNT_U64) || t->dtype == SNT_BOOL;
  return whole && (t->rank == 0 || (t->rank == 1 && t->dims[0] <= SHORT_LIST));
}

/* Inputs that are given as files. One that cannot be read is left to who reads it for the run and says why. */
static void fix_inputs(tool_session *s, fixed_inputs *f) {
  for (uint32_t i = 0; i < s->options.input_count; i++) {
    snt_onnx_fixed *to = &f->at[f->count];
    if (!strstr(s->options.inputs[i].value, ".npy") || open_fixed(&s->options.inputs[i], f, NULL) != SNT_OK) continue;
    if (is_short_list(&to->tensor)) s->fixed_inputs |= UINT64_C(1) << i;
    else to->data = NULL;
  }
}

static snt_result import(tool_session *s, const fixed_inputs *fixed, bool fix, bool last, snt_diag *diag) {
  snt_symbol dims[TOOL_MAX_DIMS];
  const snt_onnx_info info = {.head = SNT_HEAD(onnx_info),
                              .dims = dims,
                              .dim_count = take_dims(s, fix, dims),
                              .fixed = fixed->at,
                              .fixed_count = fixed->count,
                              .unsupported = s->options.quiet || !last ? NULL : print_unsupported,
                              .decode_image = tool_decode_image};
  const snt_result r = snt_graph_create(s->context, &s->graph);
  return r == SNT_OK ? snt_onnx_import_file(s->graph, s->options.model, &info, diag) : r;
}

static snt_result import_somehow(tool_session *s, fixed_inputs *fixed) {
  const uint32_t asked = fixed->count;
  fix_inputs(s, fixed);
  const uint32_t all = fixed->count;
  const bool other_way = s->options.dim_count || all > asked;
  fixed->count = asked;
  const snt_result r = import(s, fixed, false, !other_way, &s->diag);
  fixed->count = all;
  if (!other_way || (r != SNT_E_UNSUPPORTED && r != SNT_E_SHAPE)) {
    s->fixed_inputs = 0;
    return r;
  }
  const snt_diag why = s->diag;
  snt_graph_destroy(s->graph);
  s->graph = NULL;
  s->fixed_extents = true;
  const snt_result again = import(s, fixed, true, true, &s->diag);
  if (again == SNT_OK && !s->options.quiet) fprintf(stderr, "sinter: for the extents given only; with open ones %s\n", why.text);
  return again;
}

snt_result tool_load_onnx(tool_session *s) {
  fixed_inputs fixed = {.count = 0};
  snt_result r = read_fixed(s, &fixed);
  if (r == SNT_OK) r = import_somehow(s, &fixed);
  while (fixed.count) free(fixed.file[--fixed.count]);
  return r;
}
