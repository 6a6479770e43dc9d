/* Fourier transforms, windows, filters. */
#include "onnx/ops.h"
#include <math.h>

static const double tau = 6.28318530717958647692;

/* Bins 0 to length / 2 of a real signal's transform: the others are their conjugates, in turn. */
static uint32_t whole_spectrum(onnx_call *c, uint32_t x, uint32_t axis, int64_t *length) {
  const ir_tensor type = *onnx_type_of(c, x);
  const uint32_t last = type.rank - 1u;
  int64_t bins, parts;
  if (!expr_is_const(c->g->pool, type.dims[axis], &bins) || !expr_is_const(c->g->pool, type.dims[last], &parts) || parts != 2)
    return onnx_refuse(c, "a one-sided inverse needs a fixed number of complex bins"), 0;
  if (!*length) *length = 2 * (bins - 1);
  if (*length < 1 || *length / 2 + 1 > bins) return onnx_refuse(c, "%lld values of %lld bins", (long long)*length, (long long)bins), 0;
  const int64_t others = (*length - 1) / 2;
  const uint32_t low = onnx_slice(c, x, axis, 0, expr_int(c->g->pool, *length / 2 + 1), 1);
  if (!others) return low;
  const uint32_t mirrored = onnx_slice(c, x, axis, expr_int(c->g->pool, others), expr_int(c->g->pool, others), -1);
  const uint32_t imaginary = onnx_1(c, IR_OP_neg, onnx_slice(c, mirrored, last, 1, 1, 1));
  const uint32_t conjugate = onnx_concat(c, last, 2, (uint32_t[]){onnx_slice(c, mirrored, last, 0, 1, 1), imaginary});
  return onnx_concat(c, axis, 2, (uint32_t[]){low, conjugate});
}

/* Inverse and one-sided: the real signal. */
static bool real_signal(onnx_call *c, uint32_t x, int64_t along, int64_t length) {
  uint32_t axis;
  if (!onnx_axis(c, along, onnx_type_of(c, x)->rank, &axis)) return false;
  const uint32_t spectrum = whole_spectrum(c, x, axis, &length), last = onnx_type_of(c, x)->rank - 1u;
  const uint32_t y = spectrum ? onnx_add(c, "dft %%%u, axis=%u, inverse", spectrum, axis) : 0;
  return y && onnx_out(c, 0, onnx_slice(c, y, last, 0, 1, 1));
}

bool onnx_op_dft(onnx_call *c) {
  const uint32_t x = onnx_in(c, 0);
  int64_t axis = onnx_int(c, "axis", c->opset < 20 ? 1 : -2), length = 0;
  char text[40] = "";
  if (!x || (c->opset >= 20 && onnx_has(c, 2) && !onnx_in_int(c, 2, &axis)) || (onnx_has(c, 1) && !onnx_in_int(c, 1, &length)))
    return false;
  if (length) snprintf(text, sizeof text, ", length=%lld", (long long)length);
  const bool inverse = onnx_int(c, "inverse", 0) != 0, half = onnx_int(c, "onesided", 0) != 0;
  if (inverse && half) return real_signal(c, x, axis, length);
  return onnx_out(c, 0,
                  onnx_add(c, "dft %%%u, axis=%lld%s%s%s", x, (long long)axis, text, inverse ? ", inverse" : "", half ? ", onesided" : ""));
}

bool onnx_op_stft(onnx_call *c) {
  uint32_t x = onnx_in(c, 0);
  const uint32_t window = onnx_in(c, 2);
  int64_t step, length = 0;
  char text[64] = "";
  if (!x || !onnx_in_int(c, 1, &step) || (onnx_has(c, 3) && !onnx_in_int(c, 3, &length))) return false;
  const ir_tensor *type = onnx_type_of(c, x);
  if (type->rank == 2)
    x = onnx_reshape(c, x, 3, (const ir_expr[]){type->dims[0], type->dims[1], 1}); /* real: exporters leave the axis of parts out */
  if (length) snprintf(text, sizeof text, ", length=%lld", (long long)length);
  const char *half = onnx_int(c, "onesided", 1) ? ", onesided" : "";
  if (!window) return onnx_out(c, 0, onnx_add(c, "stft %%%u, step=%lld%s%s", x, (long long)step, text, half));
  return onnx_out(c, 0, onnx_add(c, "stft %%%u, %%%u, step=%lld%s", x, window, (long long)step, half));
}

/* a0 - a1 cos(tau i / n) + a2 cos(2 tau i / n); n is one less if the window is symmetric */
bool onnx_op_window(onnx_call *c) {
  static const struct {
    const char *op;
    double a[3];
  } kinds[] = {{"HannWindow", {0.5, 0.5, 0}}, {"HammingWindow", {25.0 / 46, 21.0 / 46, 0}}, {"BlackmanWindow", {0.42, 0.5, 0.08}}};
  const int32_t dtype = onnx_dtype_attr(c, "output_datatype", SNT_F32);
  const bool periodic = onnx_int(c, "periodic", 1) != 0;
  uint32_t kind = 0;
  int64_t size;
  while (kind < IR_COUNT(kinds) - 1 && strcmp(kinds[kind].op, c->node->op) != 0) kind++;
  if (!dtype || !onnx_in_int(c, 0, &size)) return false;
  if (size < 1 || size > 1 << 20) return onnx_refuse(c, "a window of %lld", (long long)size);
  double *values = ir_arena_take(onnx_arena(c), (size_t)size * sizeof *values, 8);
  const double n = periodic ? (double)size : size > 1 ? (double)size - 1 : 1;
  if (!values) return false;
  for (int64_t i = 0; i < size; i++) {
    const double t = tau * (double)i / n, *a = kinds[kind].a;
    values[i] = a[0] - a[1] * cos(t) + a[2] * cos(2 * t);
  }
  const ir_tensor type = {.dtype = (uint8_t)dtype, .rank = 1, .dims = {size}};
  return onnx_out(c, 0, onnx_data(c, &type, values));
}

static double mel_of(double hertz) { return 2595 * log10(1 + hertz / 700); }

/* [dft_length / 2 + 1, bins]: triangles whose corners are equally far apart in mel, at whole spectrogram bins. */
static void fill_triangles(double *out, int64_t rows, int64_t bins, const double *edges) {
  for (int64_t b = 0; b < bins; b++) {
    const int64_t low = (int64_t)edges[b], centre = (int64_t)edges[b + 1], high = (int64_t)edges[b + 2];
    if (centre == low) out[centre * bins + b] = 1;
    for (int64_t i = low; centre > low && i <= centre && i < rows; i++) out[i * bins + b] = (double)(i - low) / (double)(centre - low);
    for (int64_t i = centre; high > centre && i < high && i < rows; i++) out[i * bins + b] = (double)(high - i) / (double)(high - centre);
  }
}

bool onnx_op_mel_weights(onnx_call *c) {
  const int32_t dtype = onnx_dtype_attr(c, "output_datatype", SNT_F32);
  double v[5]; /* bins, dft length, sample rate, lower edge, upper edge */
  for (uint32_t i = 0; i < 5; i++)
    if (!onnx_in_number(c, i, &v[i])) return false;
  if (!dtype || !(v[0] >= 1 && v[0] <= 4096 && v[1] >= 1 && v[1] <= 1 << 20 && v[0] * v[1] <= 1 << 22 && v[2] > 0))
    return onnx_refuse(c, "sizes out of range");
  const int64_t bins = (int64_t)v[0], rows = (int64_t)v[1] / 2 + 1;
  double *values = ir_arena_take(onnx_arena(c), (size_t)(rows * bins) * sizeof *values, 8);
  double *edges = ir_arena_take(onnx_arena(c), (size_t)(bins + 2) * sizeof *edges, 8);
  if (!values || !edges) return false;
  const double low = mel_of(v[3]), step = (mel_of(v[4]) - low) / (double)(bins + 2);
  for (int64_t i = 0; i < bins + 2; i++) {
    const double hertz = 700 * (pow(10, (low + (double)i * step) / 2595) - 1);
    edges[i] = floor((v[1] + 1) * hertz / v[2]);
    if (!(edges[i] >= 0 && edges[i] < (double)rows)) return onnx_refuse(c, "an edge lies outside the spectrum");
  }
  fill_triangles(values, rows, bins, edges);
  const ir_tensor type = {.dtype = (uint8_t)dtype, .rank = 2, .dims = {rows, bins}};
  return onnx_out(c, 0, onnx_data(c, &type, values));
}
