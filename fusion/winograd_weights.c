/* Weights of a 3x3 convolution as Winograd's products want them, made when somebody needs the bytes. A loop over all weights of a model (release builds compile
   this file for vectors): outputs go in blocks, so that what is read of an output lies in a line or two and what is written of a point is a line. */
#include "fusion/winograd.h"

enum { BLOCK = 16, TAPS = 3 };

/* The taps of `count` outputs from `k` on, tap by tap. */
static void load_taps(const winograd_weights *w, const void *from, int64_t k, int64_t c, int64_t count, double taps[TAPS * TAPS][BLOCK]) {
  const bool in_order = w->stride[2] == TAPS && w->stride[3] == 1;
  for (int64_t b = 0; b < count; b++) {
    const size_t first = (size_t)((k + b) * w->stride[0] + c * w->stride[1]);
    double own[TAPS * TAPS];
    if (in_order) ir_dtype_load_run(w->dtype, (const char *)from + first * ir_dtypes[w->dtype].bytes, TAPS * TAPS, own);
    for (uint32_t i = 0; i < TAPS * TAPS; i++)
      taps[i][b] = in_order ? own[i] : ir_dtype_load(w->dtype, from, first + (size_t)(i / TAPS * w->stride[2] + i % TAPS * w->stride[3]));
  }
}

/* to = m[0] a + m[1] b + m[2] c, of 24ths, each of a block. */
static void combine(const int8_t *m, const double *restrict a, const double *restrict b, const double *restrict c, double *restrict to) {
  const double by[TAPS] = {m[0] / 24., m[1] / 24., m[2] / 24.};
  for (uint32_t i = 0; i < BLOCK; i++) to[i] = by[0] * a[i] + by[1] * b[i] + by[2] * c[i];
}

/* U[i, j, channel, output] = sum over taps of G[i, r] G[j, s] w. */
static void transform_block(const winograd_form *f, double taps[TAPS * TAPS][BLOCK], int64_t count, int64_t point, float *to) {
  double across[TAPS][WINOGRAD_TILE][BLOCK], down[BLOCK];
  for (uint32_t y = 0; y < TAPS; y++)
    for (uint32_t j = 0; j < f->tile; j++) combine(f->weights[j], taps[TAPS * y], taps[TAPS * y + 1], taps[TAPS * y + 2], across[y][j]);
  for (uint32_t i = 0; i < f->tile; i++)
    for (uint32_t j = 0; j < f->tile; j++, to += point) {
      combine(f->weights[i], across[0][j], across[1][j], across[2][j], down);
      for (int64_t b = 0; b < count; b++) to[b] = (float)down[b];
    }
}

static void transform(const ir_making *m, const void *const *sources, void *to) {
  const winograd_weights *w = (const winograd_weights *)(const void *)m;
  double taps[TAPS * TAPS][BLOCK] = {{0}};
  for (int64_t k = 0; k < w->outputs; k += BLOCK)
    for (int64_t c = 0; c < w->channels; c++) {
      const int64_t count = w->outputs - k < BLOCK ? w->outputs - k : BLOCK;
      load_taps(w, sources[0], k, c, count, taps);
      transform_block(w->form, taps, count, w->channels * w->outputs, (float *)to + c * w->outputs + k);
    }
}

void winograd_describe(winograd_weights *w) { w->making.fill = transform; }
