/* Weights of Winograd's products against the formula, one at a time: outputs that fill no block, taps in order and not,
   floats and halves. */
#include "fusion/winograd.h"
#include "tests/tap.h"
#include "tools/host/host.h"

enum { CHANNELS = 5, OUTPUTS = 37, WEIGHTS = 9 * CHANNELS * OUTPUTS, POINTS = WINOGRAD_TILE * WINOGRAD_TILE };

/* U[i, j, channel, output] */
static float expected(const winograd_weights *w, const void *from, uint32_t i, uint32_t j, int64_t c, int64_t k) {
  const winograd_form *f = w->form;
  double across[3];
  for (int64_t y = 0; y < 3; y++) {
    double taps[3];
    for (int64_t x = 0; x < 3; x++)
      taps[x] = ir_dtype_load(w->dtype, from, (size_t)(k * w->stride[0] + c * w->stride[1] + y * w->stride[2] + x * w->stride[3]));
    across[y] = f->weights[j][0] / 24. * taps[0] + f->weights[j][1] / 24. * taps[1] + f->weights[j][2] / 24. * taps[2];
  }
  return (float)(f->weights[i][0] / 24. * across[0] + f->weights[i][1] / 24. * across[1] + f->weights[i][2] / 24. * across[2]);
}

static void check_weights(const char *what, const winograd_form *f, int32_t dtype, const int64_t stride[4]) {
  static float from[WEIGHTS];
  static float made[POINTS * CHANNELS * OUTPUTS + 1];
  for (uint32_t i = 0; i < WEIGHTS; i++) ir_dtype_store(dtype, from, i, (double)(int)(i * 7919 % 2001 - 1000) / 512);
  winograd_weights w = {.form = f, .channels = CHANNELS, .outputs = OUTPUTS, .dtype = dtype};
  memcpy(w.stride, stride, sizeof w.stride);
  winograd_describe(&w);
  w.making.sources[0].data = from, w.making.source_count = 1;
  w.making.bytes = sizeof(float) * f->tile * f->tile * CHANNELS * OUTPUTS;
  const snt_host_alloc host = host_allocator();
  made[w.making.bytes / sizeof *made] = 42;
  bool same = ir_make(&w.making, &host, made);
  const float *at = made;
  for (uint32_t i = 0; i < f->tile; i++)
    for (uint32_t j = 0; j < f->tile; j++)
      for (int64_t c = 0; c < CHANNELS; c++)
        for (int64_t k = 0; k < OUTPUTS; k++, at++) {
          const float wanted = expected(&w, from, i, j, c, k);
          same = same && !memcmp(at, &wanted, sizeof wanted);
        }
  tap_ok(same && *at == 42, "F(%u, 3), %s: the formula's bits, and nothing behind them", f->results, what);
}

int main(void) {
  static const int64_t in_order[4] = {9 * CHANNELS, 9, 3, 1}, last_first[4] = {1, OUTPUTS, OUTPUTS * CHANNELS, 3 * OUTPUTS * CHANNELS};
  for (uint32_t i = 0; i < WINOGRAD_FORMS; i++) {
    check_weights("taps in order", &winograd_forms[i], SNT_F32, in_order);
    check_weights("halves", &winograd_forms[i], SNT_F16, in_order);
    check_weights("outputs beside each other", &winograd_forms[i], SNT_F32, last_first);
  }
  return tap_done();
}
