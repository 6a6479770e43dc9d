/* ONNX models. Extents that --dim and the files of --input say are fixed as the model is imported, as another runtime knows them when it runs: kernels with
   literal extents are faster, and what a model makes of its shapes is known. With --open they stay open, so that one program serves all. Elements of short
   lists of integers, which may be axes, sizes or a choice of branches, are fixed only where a model cannot be imported without them. */
#include "tools/sinter/tool.h"
#include <sinter/sinter_onnx.h>
#include <stdlib.h>
#include <string.h>

enum { SHORT_LIST = 64 };

static void SNT_CALL print_unsupported(void *user, const char *node, const char *op, const char *reason) {
  (void)user;
  fprintf(stderr, "not supported: %s (%s): %s\n", node, op, reason);
}

/* Open, it is what the extent usually is: the plan is still good for others. No hint says 0: there it is fixed all the same. */
static uint32_t take_dims(const tool_session *s, snt_symbol *out) {
  for (uint32_t i = 0; i < s->options.dim_count; i++) {
    int64_t value;
    const bool good = tool_dim_value(&s->options.dims[i], &value); /* if not, tool_settle_symbols says so */
    out[i] = (snt_symbol){s->options.dims[i].name, 1, INT32_MAX, 1, good ? value : 128};
    if (good && (!s->options.open || !value)) out[i].min = out[i].max = value;
  }
  return s->options.dim_count;
}

typedef struct fixed_inputs {
  snt_onnx_fixed at[2 * TOOL_MAX_PORTS];
  void *file[2 * TOOL_MAX_PORTS];
  const void *list[2 * TOOL_MAX_PORTS]; /* the elements of short lists among the files of --input */
  uint32_t input[2 * TOOL_MAX_PORTS];   /* which of options.inputs */
  uint32_t count, asked;                /* those of --fix come first */
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
  f->asked = f->count;
  return r;
}

static bool is_short_list(const snt_tensor *t) {
  const bool whole = (t->dtype >= SNT_I8 && t->dtype <= SNT_U64) || t->dtype == SNT_BOOL;
  return whole && (t->rank == 0 || (t->rank == 1 && t->dims[0] <= SHORT_LIST));
}

/* The extents of inputs that are given as files; true: there are short lists among them. One that cannot be read is left to who reads it for the run and says
   why. */
static bool fix_extents(const tool_session *s, fixed_inputs *f) {
  bool lists = false;
  for (uint32_t i = 0; i < s->options.input_count; i++) {
    const uint32_t at = f->count;
    if (!npy_is_path(s->options.inputs[i].value) || open_fixed(&s->options.inputs[i], f, NULL) != SNT_OK) continue;
    f->input[at] = i;
    f->list[at] = is_short_list(&f->at[at].tensor) ? f->at[at].data : NULL;
    f->at[at].data = NULL;
    lists |= f->list[at] != NULL;
  }
  return lists;
}

static void fix_lists(tool_session *s, fixed_inputs *f) {
  for (uint32_t at = f->asked; at < f->count; at++) {
    f->at[at].data = f->list[at];
    if (f->list[at]) s->fixed_inputs[f->input[at]] = true;
  }
}

static snt_result import(tool_session *s, const fixed_inputs *fixed, bool last) {
  snt_symbol dims[TOOL_MAX_DIMS];
  const snt_onnx_info info = {.head = SNT_HEAD(onnx_info),
                              .dims = dims,
                              .dim_count = take_dims(s, dims),
                              .fixed = fixed->at,
                              .fixed_count = fixed->count,
                              .unsupported = s->options.quiet || !last ? NULL : print_unsupported,
                              .decode_image = tool_decode_image,
                              .flags = s->options.accuracy_level ? SNT_ONNX_ACCURACY_LEVEL : 0};
  snt_graph_destroy(s->graph);
  s->graph = NULL;
  const snt_result r = snt_graph_create(s->context, &s->graph);
  return r == SNT_OK ? snt_onnx_import_file(s->graph, s->options.model, &info, &s->diag) : r;
}

static snt_result import_somehow(tool_session *s, fixed_inputs *fixed) {
  const bool lists = !s->options.open && fix_extents(s, fixed);
  const snt_result r = import(s, fixed, !lists);
  if (!lists || (r != SNT_E_UNSUPPORTED && r != SNT_E_SHAPE)) return r;
  const snt_diag why = s->diag;
  fix_lists(s, fixed);
  const snt_result again = import(s, fixed, true);
  if (again == SNT_OK && !s->options.quiet) fprintf(stderr, "sinter: for the values of integer inputs given only; without %s\n", why.text);
  return again;
}

snt_result tool_load_onnx(tool_session *s) {
  fixed_inputs fixed = {.count = 0};
  snt_result r = read_fixed(s, &fixed);
  if (r == SNT_OK) r = import_somehow(s, &fixed);
  while (fixed.count) free(fixed.file[--fixed.count]);
  return r;
}
