/* One ONNX backend test: a folder with model.onnx and test_data_set_N/{input,output}_K.pb. In: the folder. Out: whether every data set gives
   its outputs, and one line why not. A model whose shapes depend on the values of its inputs is imported again with those values fixed. */
#include "ir/base.h"
#include "tools/sinter/onnx_test.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MAX_TENSORS = 64, MAX_FIXED_ELEMENTS = 4096, MAX_FIXED_REALS = 16 };
typedef struct case_tensor {
  char name[128];
  snt_tensor type;
  void *data;
  uint64_t elements;
} case_tensor;
typedef struct data_set {
  case_tensor inputs[MAX_TENSORS], outputs[MAX_TENSORS];
  uint32_t input_count, output_count;
} data_set;
/* How much of the inputs is fixed when the model is imported, least first. */
typedef enum { FIX_NOTHING, FIX_SHAPES, FIX_INTEGERS, FIX_SMALL, FIX_COUNT } fix_level;
typedef struct case_run {
  tool_session s;
  const onnx_case_info *info;
  char reasons[600]; /* of what is not supported */
  size_t reason_length;
} case_run;

/* ---- files ---- */
static snt_result read_tensor(const char *path, case_tensor *t, snt_diag *diag) {
  void *file;
  size_t size, bytes = 0;
  snt_result r = host_read_file(path, &file, &size, diag);
  if (r != SNT_OK) return r;
  r = snt_onnx_tensor(file, size, t->name, &t->type, NULL, &bytes, diag);
  if (r >= 0) {
    t->data = aligned_alloc(64, (bytes + 127) / 64 * 64);
    r = t->data ? snt_onnx_tensor(file, size, t->name, &t->type, t->data, &bytes, diag) : SNT_E_HOST_MEM;
  }
  free(file);
  t->elements = 1;
  for (uint32_t i = 0; r == SNT_OK && i < t->type.rank; i++) t->elements *= (uint64_t)t->type.dims[i];
  return r;
}

static snt_result read_list(const char *folder, const char *kind, case_tensor *list, uint32_t *count, snt_diag *diag) {
  struct stat found;
  char path[4096];
  for (*count = 0; *count < MAX_TENSORS; ++*count) {
    snprintf(path, sizeof path, "%s/%s_%u.pb", folder, kind, *count);
    if (stat(path, &found)) return SNT_OK;
    const snt_result r = read_tensor(path, &list[*count], diag);
    if (r != SNT_OK) return r;
  }
  return SNT_E_LIMIT;
}

static void free_set(data_set *d) {
  for (uint32_t i = 0; i < d->input_count; i++) free(d->inputs[i].data);
  for (uint32_t i = 0; i < d->output_count; i++) free(d->outputs[i].data);
}

/* ---- import ---- */
static void SNT_CALL note_unsupported(void *user, const char *node, const char *op, const char *reason) {
  case_run *c = user;
  if (c->reason_length < sizeof c->reasons)
    c->reason_length += (size_t)snprintf(c->reasons + c->reason_length, sizeof c->reasons - c->reason_length, "%s%s (%s): %s",
                                         c->reason_length ? "; " : "", node, op, reason);
}

static bool is_integer(int32_t dtype) { return dtype == SNT_BOOL || (dtype >= SNT_I8 && dtype <= SNT_U64); }

/* Of the inputs that the data names: others are found by their place among the ports. */
static uint32_t fix_inputs(const data_set *d, fix_level level, snt_onnx_fixed *out) {
  uint32_t count = 0;
  for (uint32_t i = 0; level != FIX_NOTHING && i < d->input_count; i++) {
    const case_tensor *t = &d->inputs[i];
    const bool list = t->type.rank <= 1 && t->elements <= MAX_FIXED_REALS; /* scales, bounds, ratios: never what is computed with */
    const bool value = is_integer(t->type.dtype) ? t->elements <= MAX_FIXED_ELEMENTS && level >= FIX_INTEGERS : list && level >= FIX_SMALL;
    if (t->name[0]) out[count++] = (snt_onnx_fixed){t->name, t->type, value ? t->data : NULL};
  }
  return count;
}

static snt_result import_model(case_run *c, const data_set *d, fix_level level) {
  snt_onnx_fixed fixed[MAX_TENSORS];
  const snt_onnx_info info = {.head = SNT_HEAD(onnx_info),
                              .fixed = fixed,
                              .fixed_count = fix_inputs(d, level, fixed),
                              .user = c,
                              .unsupported = note_unsupported,
                              .decode_image = tool_decode_image,
                              .flags = SNT_ONNX_ACCURACY_LEVEL | /* expected values are ONNX Runtime's */
                                       SNT_ONNX_OTHER_EXTENTS};  /* some of ONNX's own tests have data of other extents than they say */
  c->reason_length = 0;
  const snt_result r = snt_graph_create(c->s.context, &c->s.graph);
  return r == SNT_OK ? snt_onnx_import_file(c->s.graph, c->s.options.model, &info, &c->s.diag) : r;
}

/* ---- run ---- */
static int32_t find_tensor(const case_tensor *list, uint32_t count, const char *name) {
  for (uint32_t i = 0; i < count; i++)
    if (!strcmp(list[i].name, name)) return (int32_t)i;
  return -1;
}

/* A port's extents in the data give the symbols their values. */
static snt_result take_symbols(case_run *c, const snt_port *port, const case_tensor *t) {
  if (port->tensor.rank != t->type.rank || port->tensor.dtype != t->type.dtype)
    return host_fail(&c->s.diag, SNT_E_SHAPE, "test", "input %s has another type than the model's", port->name);
  for (uint32_t d = 0; d < t->type.rank; d++) {
    const int64_t extent = port->tensor.dims[d];
    int64_t *symbol = extent < 0 && -extent - 1 < TOOL_MAX_DIMS ? &c->s.symbols[-extent - 1] : NULL;
    if (symbol && *symbol && *symbol != t->type.dims[d])
      return host_fail(&c->s.diag, SNT_E_SHAPE, "test", "input %s has other extents than those before it", port->name);
    if (symbol) *symbol = t->type.dims[d];
    if (extent >= 0 && extent != t->type.dims[d])
      return host_fail(&c->s.diag, SNT_E_SHAPE, "test", "input %s has other extents than the model's", port->name);
  }
  return SNT_OK;
}

/* Test data of bfloat16 is stored as the 16-bit integers that its bits are. */
static void adopt_types(const tool_tensor *tensors, uint32_t count, case_tensor *list, uint32_t list_count) {
  for (uint32_t i = 0; i < count; i++) {
    const int32_t at = find_tensor(list, list_count, tensors[i].port.name);
    if (at >= 0 && tensors[i].port.tensor.dtype == SNT_BF16 && list[at].type.dtype == SNT_U16) list[at].type.dtype = SNT_BF16;
  }
}

static snt_result place_inputs(case_run *c, const data_set *d, tool_tensor *tensors, uint32_t count) {
  uint32_t number = 0;
  for (uint32_t i = 0; i < count; i++) {
    if (tensors[i].port.kind != SNT_PORT_INPUT) continue;
    int32_t at = find_tensor(d->inputs, d->input_count, tensors[i].port.name);
    if (at < 0 && number < d->input_count && count - number > 0) at = (int32_t)number;
    if (at < 0) return host_fail(&c->s.diag, SNT_E_ARG, "test", "no data for input %s", tensors[i].port.name);
    tensors[i].data = d->inputs[at].data;
    number++;
    const snt_result r = take_symbols(c, &tensors[i].port, &d->inputs[at]);
    if (r != SNT_OK) return r;
  }
  return SNT_OK;
}

static snt_result list_ports(case_run *c, tool_tensor *tensors, uint32_t *count) {
  *count = snt_program_port_count(c->s.program);
  if (*count > TOOL_MAX_PORTS) return host_fail(&c->s.diag, SNT_E_LIMIT, "test", "%u ports", *count);
  for (uint32_t i = 0; i < *count; i++) {
    memset(&tensors[i], 0, sizeof tensors[i]);
    (void)snt_program_port(c->s.program, i, &tensors[i].port);
  }
  return SNT_OK;
}

static snt_result run_program(case_run *c, tool_tensor *tensors, uint32_t count) {
  snt_argument arguments[TOOL_MAX_PORTS] = {{0, 0, NULL, 0, NULL, 0}};
  for (uint32_t i = 0; i < count; i++) {
    tool_tensor *t = &tensors[i];
    const snt_result r = snt_program_port_dims(c->s.program, i, c->s.symbols, t->dims);
    if (r != SNT_OK) return host_fail(&c->s.diag, r, "test", "the extents of %s are not known", t->port.name);
    t->elements = 1;
    for (uint32_t d = 0; d < t->port.tensor.rank; d++) t->elements *= (uint64_t)t->dims[d];
    t->bytes = t->elements * snt_dtype_size(t->port.tensor.dtype);
    if (!t->data) t->data = calloc(1, t->bytes + 128);
    if (!t->data) return SNT_E_HOST_MEM;
    arguments[i] = (snt_argument){i, 0, NULL, 0, t->data, t->bytes};
  }
  const snt_run_info info = {.head = SNT_HEAD(run_info),
                             .argument_count = count,
                             .arguments = arguments,
                             .symbols = c->s.symbols,
                             .symbol_count = snt_program_symbol_count(c->s.program)};
  return snt_run(c->s.exec, &info, &c->s.diag);
}

/* ---- compare: as numpy's assert_allclose, which is what ONNX's own runner asks ---- */
static bool is_close(const onnx_case_info *info, double got, double want) {
  if (isnan(want) || isnan(got)) return isnan(want) && isnan(got);
  if (isinf(want) || isinf(got)) return want == got;
  return fabs(got - want) <= info->atol + info->rtol * fabs(want);
}

static bool has_extent(const case_tensor *t, int64_t extent) {
  for (uint32_t d = 0; d < t->type.rank; d++)
    if (t->type.dims[d] == extent) return true;
  return false;
}

/* An output that comes with NAME.count is computed at the most it can have: its used places along the first axis that is longer than expected. */
static void take_used(const tool_tensor *tensors, uint32_t count, const case_tensor *want, tool_tensor *got) {
  char name[160];
  uint32_t axis = 0;
  uint64_t outer = 1, inner = snt_dtype_size(got->port.tensor.dtype);
  snprintf(name, sizeof name, "%.140s.count", got->port.name);
  while (axis < want->type.rank && got->dims[axis] == want->type.dims[axis]) outer *= (uint64_t)got->dims[axis++];
  const bool whole = axis == want->type.rank; /* all places are used, if there is a count */
  if (whole) axis = 0, outer = 1;
  for (uint32_t d = axis + 1; d < want->type.rank; d++) inner *= (uint64_t)got->dims[d];
  for (uint32_t i = 0; i < count && got->port.tensor.rank == want->type.rank && want->type.rank; i++) {
    const int64_t used = strcmp(tensors[i].port.name, name) ? -1 : ir_dtype_load_int(SNT_I64, tensors[i].data, 0);
    if (used < 0 || used > got->dims[axis] || (whole && has_extent(want, used))) continue;
    for (uint64_t o = 0; o < outer; o++)
      memmove((char *)got->data + o * (uint64_t)used * inner, (char *)got->data + o * (uint64_t)got->dims[axis] * inner,
              (uint64_t)used * inner);
    got->dims[axis] = used;
  }
}

static snt_result compare(case_run *c, const tool_tensor *got, const case_tensor *want) {
  const int32_t dtype = want->type.dtype;
  uint64_t wrong = 0, first = 0;
  bool same = got->port.tensor.dtype == dtype && got->port.tensor.rank == want->type.rank;
  for (uint32_t d = 0; same && d < want->type.rank; d++) same = got->dims[d] == want->type.dims[d];
  if (!same) return host_fail(&c->s.diag, SNT_E_SHAPE, "test", "output %s has another type or shape than expected", got->port.name);
  for (uint64_t i = 0; i < want->elements; i++) {
    const bool real = ir_dtypes[dtype].is_float;
    const bool close = real ? is_close(c->info, ir_dtype_load(dtype, got->data, i), ir_dtype_load(dtype, want->data, i))
                            : ir_dtype_load_int(dtype, got->data, i) == ir_dtype_load_int(dtype, want->data, i);
    if (!close && !wrong++) first = i;
  }
  if (!wrong) return SNT_OK;
  return host_fail(&c->s.diag, SNT_E_INTERNAL, "test", "output %s: %llu of %llu elements differ, first [%llu]: got %.9g, want %.9g",
                   got->port.name, (unsigned long long)wrong, (unsigned long long)want->elements, (unsigned long long)first,
                   ir_dtype_load(dtype, got->data, first), ir_dtype_load(dtype, want->data, first));
}

static bool is_count(const char *name) {
  const char *dot = strrchr(name, '.');
  return dot && !strcmp(dot, ".count");
}

static snt_result compare_all(case_run *c, const data_set *d, tool_tensor *tensors, uint32_t count) {
  uint32_t number = 0;
  for (uint32_t i = 0; i < count; i++) {
    if (tensors[i].port.kind != SNT_PORT_OUTPUT || is_count(tensors[i].port.name)) continue;
    int32_t at = find_tensor(d->outputs, d->output_count, tensors[i].port.name);
    if (at < 0 && number < d->output_count) at = (int32_t)number;
    number++;
    if (at >= 0) take_used(tensors, count, &d->outputs[at], &tensors[i]);
    const snt_result r = at < 0 ? SNT_OK : compare(c, &tensors[i], &d->outputs[at]);
    if (r != SNT_OK) return r;
  }
  return number >= d->output_count ? SNT_OK : host_fail(&c->s.diag, SNT_E_SHAPE, "test", "the model has fewer outputs than the data");
}

/* ---- one attempt ---- */
static void forget_model(tool_session *s) {
  snt_exec_destroy(s->exec);
  snt_program_destroy(s->program);
  snt_graph_destroy(s->graph);
  s->exec = NULL;
  s->program = NULL;
  s->graph = NULL;
}

static snt_result attempt(case_run *c, data_set *d, fix_level level, bool *may_fix) {
  tool_tensor tensors[TOOL_MAX_PORTS];
  uint32_t count = 0;
  memset(c->s.symbols, 0, sizeof c->s.symbols);
  snt_result r = import_model(c, d, level);
  if (r == SNT_OK) r = tool_compile_flags(&c->s, 0, c->s.options.compile_flags, &c->s.program);
  if (r == SNT_OK) r = list_ports(c, tensors, &count);
  adopt_types(tensors, count, d->inputs, d->input_count);
  adopt_types(tensors, count, d->outputs, d->output_count);
  if (r == SNT_OK) r = place_inputs(c, d, tensors, count);
  *may_fix = r != SNT_OK; /* extents of the data's own too: an input that gives no more than its type may have others than the model says */
  if (r == SNT_OK) r = snt_exec_create(c->s.device, c->s.program, NULL, &c->s.exec, &c->s.diag);
  if (r == SNT_OK) r = run_program(c, tensors, count);
  if (r == SNT_OK) r = compare_all(c, d, tensors, count);
  for (uint32_t i = 0; i < count; i++)
    if (tensors[i].port.kind == SNT_PORT_OUTPUT) free(tensors[i].data);
  forget_model(&c->s);
  return r;
}

static const char *const fixed_words[FIX_COUNT] = {"", "extents fixed", "extents and whole numbers fixed",
                                                   "extents, whole numbers and short lists fixed"};

static snt_result run_set(case_run *c, const char *folder, const char **fixed) {
  data_set *d = calloc(1, sizeof *d);
  bool may_fix = true;
  char first[600] = "";
  snt_result r = d ? read_list(folder, "input", d->inputs, &d->input_count, &c->s.diag) : SNT_E_HOST_MEM;
  if (r == SNT_OK) r = read_list(folder, "output", d->outputs, &d->output_count, &c->s.diag);
  if (r != SNT_OK) may_fix = false;
  snt_result tried = r;
  for (uint32_t level = FIX_NOTHING; may_fix && level < FIX_COUNT; level++) {
    tried = attempt(c, d, (fix_level)level, &may_fix);
    if (tried != SNT_OK && (!first[0] || !c->reason_length))
      snprintf(first, sizeof first, "%s", c->reason_length ? c->reasons : c->s.diag.text);
    if (tried == SNT_OK) *fixed = fixed_words[level];
  }
  if (tried != SNT_OK && first[0] && may_fix)
    snprintf(c->reasons, sizeof c->reasons, "%s", first); /* the plain import says it best, and what comes after any */
  c->reason_length = tried != SNT_OK && may_fix ? strlen(first) : 0;
  if (d) free_set(d);
  free(d);
  return tried;
}

bool onnx_case_run(const onnx_case_info *info, const char *folder, char *line, size_t size) {
  case_run c = {.info = info};
  tool_options options = *info->options;
  char path[4096], set[4096];
  const char *fixed = "";
  struct stat found;
  uint32_t sets = 0;
  snprintf(path, sizeof path, "%s/model.onnx", folder);
  options.model = path;
  options.quiet = true;
  snt_result r = tool_open(&c.s, &options, true);
  for (; r == SNT_OK; sets++) {
    snprintf(set, sizeof set, "%s/test_data_set_%u", folder, sets);
    if (stat(set, &found)) break;
    r = run_set(&c, set, &fixed);
  }
  if (r == SNT_OK && !sets) r = host_fail(&c.s.diag, SNT_E_ARG, "test", "there is no test_data_set_0");
  if (r == SNT_OK) snprintf(line, size, "%s", fixed);
  else snprintf(line, size, "%s: %s", snt_result_text(r), c.reason_length ? c.reasons : c.s.diag.text);
  tool_close(&c.s);
  return r == SNT_OK;
}
