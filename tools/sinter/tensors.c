/* Port values in host memory: made, filled, written. */
#include "ir/graph.h"
#include "tools/sinter/tool.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void put_element(tool_tensor *t, uint64_t i, uint64_t bits) {
  const float real = (float)((double)(bits >> 11) * 0x1p-52 - 1.0);
  const int32_t whole = (int32_t)(bits % 5);
  switch (t->port.tensor.dtype) {
  case SNT_F32: ((float *)t->data)[i] = real; break;
  case SNT_F64: ((double *)t->data)[i] = real; break;
  case SNT_F16:
    ((uint16_t *)t->data)[i] = (uint16_t)(((bits >> 16) & 0x8000) | (0x3000 + ((bits >> 40) & 0xBFF)));
    break; /* +-[0.125, 1) */
  case SNT_BF16: {
    uint32_t raw;
    memcpy(&raw, &real, 4);
    ((uint16_t *)t->data)[i] = (uint16_t)(raw >> 16);
    break;
  }
  case SNT_I64:
  case SNT_U64: ((int64_t *)t->data)[i] = whole; break;
  case SNT_I32:
  case SNT_U32: ((int32_t *)t->data)[i] = whole; break;
  case SNT_I16:
  case SNT_U16: ((int16_t *)t->data)[i] = (int16_t)whole; break;
  default: ((uint8_t *)t->data)[i] = (uint8_t)(t->port.tensor.dtype == SNT_BOOL ? whole & 1 : whole); break;
  }
}

void tool_fill_random(tool_tensor *t, uint64_t seed) {
  uint64_t state = seed;
  for (uint64_t i = 0; i < t->elements; i++) put_element(t, i, host_random(&state));
}

const char *tool_dtype_name(int32_t dtype) {
  static const char *const names[SNT_DTYPE_COUNT] = {"?",      "f32",    "f16", "bf16", "f64",        "i8",        "i16",
                                                     "i32",    "i64",    "u8",  "u16",  "u32",        "u64",       "bool",
                                                     "f8e4m3", "f8e5m2", "i4",  "u4",   "f8e4m3fnuz", "f8e5m2fnuz"};
  return dtype > 0 && dtype < SNT_DTYPE_COUNT ? names[dtype] : "?";
}

void tool_list_name(tool_names *list, const char *name) {
  const size_t room = sizeof list->text - list->used;
  const int length = snprintf(list->text + list->used, room, "%s%s", list->used ? ", " : "", name);
  list->used += length < 0 ? 0 : (size_t)length < room ? (size_t)length : room - 1;
}

static const char *value_of(const tool_pair *pairs, uint32_t count, const char *name) {
  for (uint32_t i = 0; i < count; i++)
    if (!strcmp(pairs[i].name, name)) return pairs[i].value;
  return NULL;
}

static bool read_seed(const char *value, uint64_t *seed) { /* random:SEED */
  return !strncmp(value, "random:", 7) && host_read_number(value + 7, seed);
}

static snt_result fill_input(tool_session *s, tool_tensor *t, uint32_t number) {
  const char *value = value_of(s->options.inputs, s->options.input_count, t->port.name);
  uint64_t seed = 1 + number;
  if (!value || !strcmp(value, "random") || read_seed(value, &seed)) {
    tool_fill_random(t, seed);
    return SNT_OK;
  }
  if (npy_is_path(value)) return npy_read(value, t, &s->diag);
  if (strstr(value, ".png")) return png_read(value, t, &s->diag);
  return host_fail(&s->diag, SNT_E_ARG, "input", "%s: expected FILE.npy, FILE.pb, FILE.png or random[:seed], got \"%s\"", t->port.name,
                   value);
}

/* An input and an output may have one name. */
static snt_result check_name(tool_session *s, uint32_t kind, const char *name) {
  tool_names known = {.used = 0};
  for (uint32_t i = 0; i < snt_program_port_count(s->program); i++) {
    snt_port port;
    if (snt_program_port(s->program, i, &port) != SNT_OK || port.kind != kind) continue;
    if (!strcmp(port.name, name)) return SNT_OK;
    tool_list_name(&known, port.name);
  }
  return host_fail(&s->diag, SNT_E_ARG, "port", "the model has no %s \"%s\"; there are: %s", kind == SNT_PORT_INPUT ? "input" : "output",
                   name, known.text);
}

snt_result tool_check_names(tool_session *s) {
  snt_result r = SNT_OK;
  for (uint32_t i = 0; r == SNT_OK && i < s->options.input_count; i++)
    if (!s->fixed_inputs[i]) r = check_name(s, SNT_PORT_INPUT, s->options.inputs[i].name);
  for (uint32_t i = 0; r == SNT_OK && i < s->options.output_count; i++) r = check_name(s, SNT_PORT_OUTPUT, s->options.outputs[i].name);
  return r;
}

snt_result tool_make_tensors(tool_session *s, tool_tensor *tensors, uint32_t *count) {
  const uint32_t ports = snt_program_port_count(s->program);
  *count = 0;
  snt_result r = SNT_OK;
  if (ports > TOOL_MAX_PORTS) return host_fail(&s->diag, SNT_E_LIMIT, "port", "%u ports", ports);
  for (uint32_t i = 0; i < ports; i++) {
    tool_tensor *t = &tensors[*count];
    memset(t, 0, sizeof *t);
    (void)snt_program_port(s->program, i, &t->port);
    r = snt_program_port_dims(s->program, i, s->symbols, t->dims);
    if (r != SNT_OK) return host_fail(&s->diag, r, "port", "the extents of %s are not known", t->port.name);
    t->elements = 1;
    for (uint32_t d = 0; d < t->port.tensor.rank; d++) t->elements *= (uint64_t)t->dims[d];
    t->bytes = t->elements * snt_dtype_size(t->port.tensor.dtype);
    t->data = aligned_alloc(64, (t->bytes + 127) / 64 * 64);
    if (!t->data) return host_fail(&s->diag, SNT_E_HOST_MEM, "port", "%s: %llu bytes", t->port.name, (unsigned long long)t->bytes);
    ++*count;
    memset(t->data, t->port.kind == SNT_PORT_OUTPUT ? 0xA5 : 0, (t->bytes + 127) / 64 * 64);
    if (t->port.kind == SNT_PORT_INPUT) r = fill_input(s, t, i);
    if (r != SNT_OK) return r;
  }
  return SNT_OK;
}

void tool_free_tensors(tool_tensor *t, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) free(t[i].data);
}

static void print_number(const char *before, double value) { /* NaN has no sign that means anything */
  if (isnan(value)) printf("%snan", before);
  else printf("%s%.6g", before, value);
}

/* Whole numbers as they are: 1234567 is the name of something, 1.23457e+06 is not. */
static void print_element(const char *before, const tool_tensor *t, uint64_t i) {
  const int32_t dtype = t->port.tensor.dtype;
  const int64_t whole = ir_dtypes[dtype].is_int ? ir_dtype_load_int(dtype, t->data, i) : 0;
  if (!ir_dtypes[dtype].is_int) print_number(before, ir_dtype_load(dtype, t->data, i));
  else if (dtype == SNT_U64) printf("%s%llu", before, (unsigned long long)whole);
  else printf("%s%lld", before, (long long)whole);
}

static bool is_less(const tool_tensor *t, uint64_t i, uint64_t j) {
  const int32_t dtype = t->port.tensor.dtype;
  if (!ir_dtypes[dtype].is_int) return ir_dtype_load(dtype, t->data, i) < ir_dtype_load(dtype, t->data, j);
  const int64_t a = ir_dtype_load_int(dtype, t->data, i), b = ir_dtype_load_int(dtype, t->data, j);
  return dtype == SNT_U64 ? (uint64_t)a < (uint64_t)b : a < b;
}

/* y f32[2,3]: least -1, mean 0.25, largest 2; 0.5 -1 2 .. */
static void print_output(const tool_tensor *t) {
  enum { SHOWN = 6 };
  const int32_t dtype = t->port.tensor.dtype;
  double sum = 0;
  uint64_t nans = 0, first = 0, last = 0; /* where the least and the largest are */
  for (uint64_t i = 0; i < t->elements; i++) {
    const double value = ir_dtype_load(dtype, t->data, i);
    if (isnan(value)) {
      nans++;
      continue;
    }
    if (i == nans || is_less(t, i, first)) first = i;
    if (i == nans || is_less(t, last, i)) last = i;
    sum += value;
  }
  printf("%s %s[", t->port.name, tool_dtype_name(dtype));
  for (uint32_t d = 0; d < t->port.tensor.rank; d++) printf("%s%lld", d ? "," : "", (long long)t->dims[d]);
  printf("]");
  if (nans < t->elements) {
    print_element(": least ", t, first);
    print_number(", mean ", sum / (double)(t->elements - nans));
    print_element(", largest ", t, last);
  }
  if (nans) printf("%s %llu NaN", nans < t->elements ? "," : ":", (unsigned long long)nans);
  for (uint64_t i = 0; i < t->elements && i < SHOWN; i++) print_element(i ? " " : "; ", t, i);
  printf(t->elements > SHOWN ? " ..\n" : "\n");
}

void tool_print_outputs(const tool_tensor *tensors, uint32_t count) {
  for (uint32_t i = 0; i < count; i++)
    if (tensors[i].port.kind == SNT_PORT_OUTPUT) print_output(&tensors[i]);
}

snt_result tool_write_outputs(tool_session *s, const tool_tensor *tensors, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    const char *value = value_of(s->options.outputs, s->options.output_count, tensors[i].port.name);
    if (!value) continue;
    const snt_result r = tensors[i].port.kind != SNT_PORT_OUTPUT        ? SNT_OK
                         : strstr(value, ".npy") || !strcmp(value, "-") ? npy_write(value, &tensors[i], &s->diag)
                         : strstr(value, ".png")                        ? png_write(value, &tensors[i], &s->diag)
                                                 : host_fail(&s->diag, SNT_E_ARG, "output", "%s: expected FILE.npy or FILE.png, got \"%s\"",
                                                             tensors[i].port.name, value);
    if (r != SNT_OK) return r;
  }
  return SNT_OK;
}
