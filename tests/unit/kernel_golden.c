/* The listings in tests/golden/kernel: their text is canonical, and each computes what a plain C reference does. The large ones run some of
   their groups; outputs of the groups that ran are compared element by element. */
#include "tests/unit/kernel_support.h"
#include "tests/tap.h"

static const char *const names[] = {"chain10", "softmax_rows", "softmax_group", "linear_gelu", "gemm_gelu_f16", "matmul_texel",
                                    "post",    "attention",    "kv_append",     "tonemap",     "every_float",   "every_integer",
                                    "control", "fragments",    "narrow",        "pictures",    "fragment_lanes"};

static void check_round_trip(const char *name) {
  ir_arena arena;
  kir_kernel k;
  char path[256];
  size_t length;
  ir_arena_init(&arena, NULL);
  snprintf(path, sizeof path, "tests/golden/kernel/%s.kir", name);
  const char *text = kernel_read_file(&arena, path, &length);
  if (tap_ok(text && kernel_from_text(&k, &arena, text), "%s is valid", name))
    tap_is_text(kernel_print(&k), text, "%s: parse, verify, print gives the same bytes", name);
  ir_arena_free(&arena);
}

/* One listing at a time: the arena holds the buffers too. */
typedef struct fixture {
  ir_arena arena;
  kir_kernel k;
  kernel_dispatch d;
  bool ready;
} fixture;

static void begin(fixture *f, const char *name, uint64_t groups) {
  ir_arena_init(&f->arena, NULL);
  f->ready = kernel_from_golden(&f->k, &f->arena, name);
  kernel_dispatch_init(&f->d, &f->k, groups);
}

static float *add_floats(fixture *f, size_t count, uint32_t seed) {
  float *data = ir_arena_take(&f->arena, count * sizeof *data, 64);
  if (!data) tap_bail_out("out of memory");
  if (seed) kernel_numbers(data, count, seed);
  kernel_dispatch_buffer(&f->d, data, count * sizeof *data);
  return data;
}

static bool run(fixture *f, const char *name) {
  if (!tap_ok(f->ready, "%s is valid", name)) return false;
  const snt_result result = kernel_dispatch_run(&f->d);
  if (result) tap_diag("%s", f->d.diag.text);
  return tap_ok(result == SNT_OK, "%s runs without a complaint", name);
}

/* Largest difference relative to max(1, |want|). */
static double worst(const float *got, const double *want, size_t count) {
  double most = 0;
  for (size_t i = 0; i < count; i++) {
    const double error = fabs((double)got[i] - want[i]) / fmax(1, fabs(want[i]));
    if (!(error <= most)) most = error;
  }
  return most;
}

static void test_chain(void) {
  fixture f;
  enum { N = 100003 };
  begin(&f, "chain10", 2);
  kernel_dispatch_scalar(&f.d, "n", N);
  const float *x = add_floats(&f, N, 1), *b = add_floats(&f, N, 2), *y = add_floats(&f, N, 0);
  if (run(&f, "chain10")) {
    double most = 0;
    for (uint32_t i = 0; i < N; i++) {
      const double s = (double)x[i] + b[i], t = s / (fabs(0.75 * s) + 1) * x[i] - b[i], want = fmin(fmax(t, 0), 6) * 0x1.555556p-3;
      most = fmax(most, fabs(want - y[i]));
    }
    tap_ok(most < 1e-6, "chain10 agrees with the reference, tail included: %g", most);
    tap_is_int(f.d.stats.transactions, f.d.stats.ideal_transactions, "its accesses are contiguous");
  }
  ir_arena_free(&f.arena);
}

static void reference_softmax(const float *x, const float *r, double *y) {
  double most = -INFINITY, sum = 0;
  for (uint32_t i = 0; i < 1024; i++) most = fmax(most, (double)(x[i] + r[i]));
  for (uint32_t i = 0; i < 1024; i++) sum += y[i] = exp((double)(x[i] + r[i]) - most);
  for (uint32_t i = 0; i < 1024; i++) y[i] *= 0.125 / sum;
}

static void test_softmax(const char *name, uint32_t groups, uint32_t rows_each, uint32_t subgroup) {
  fixture f;
  double want[1024], most = 0;
  begin(&f, name, groups);
  f.d.info.subgroup_size = subgroup;
  const float *x = add_floats(&f, 4194304, 3), *r = add_floats(&f, 4194304, 4), *y = add_floats(&f, 4194304, 0);
  if (run(&f, name)) {
    for (uint32_t row = 0; row < groups * rows_each; row++) {
      reference_softmax(x + row * 1024, r + row * 1024, want);
      for (uint32_t i = 0; i < 1024; i++) most = fmax(most, fabs(want[i] - y[row * 1024 + i]) / want[i]);
    }
    tap_ok(most < 1e-5, "%s, subgroups of %u: relative error %g", name, subgroup, most);
  }
  ir_arena_free(&f.arena);
}

static double gelu(double v) { return v / 2 * (1 + erf(v * 0x1.6a09e6p-1)); }

static void test_linear(void) {
  fixture f;
  enum { M = 13, N = 3072, K = 768 };
  begin(&f, "linear_gelu", 96); /* two parts of 6 and 7 rows */
  kernel_dispatch_scalar(&f.d, "M", M);
  kernel_dispatch_scalar(&f.d, "q", 6);
  kernel_dispatch_scalar(&f.d, "rem", 1);
  const float *a = add_floats(&f, (size_t)M * K, 5), *b = add_floats(&f, (size_t)N * K, 6), *bias = add_floats(&f, N, 7),
              *y = add_floats(&f, (size_t)M * N, 0);
  if (run(&f, "linear_gelu")) {
    double most = 0;
    for (uint32_t m = 0; m < M; m++)
      for (uint32_t n = 0; n < N; n += 37) {
        double sum = bias[n];
        for (uint32_t k = 0; k < K; k++) sum += (double)a[m * K + k] * b[n / 16 * 12288 + k * 16 + n % 16];
        most = fmax(most, fabs(gelu(sum) - y[m * N + n]));
      }
    tap_ok(most < 1e-4, "linear_gelu agrees with the reference: %g", most);
    tap_ok(f.d.stats.flops > (uint64_t)2 * M * N * K, "it counts at least the flops of the product");
  }
  ir_arena_free(&f.arena);
}

static uint16_t *add_halves(fixture *f, size_t count, uint32_t seed, double scale) {
  uint16_t *data = ir_arena_take(&f->arena, count * sizeof *data, 64);
  if (!data) tap_bail_out("out of memory");
  for (size_t i = 0; i < count && seed; i++) data[i] = ir_f16_from_f32((float)(scale * (double)kernel_number(&seed)));
  kernel_dispatch_buffer(&f->d, data, count * sizeof *data);
  return data;
}

static void test_gemm(void) {
  fixture f;
  enum { N = 4096 };
  begin(&f, "gemm_gelu_f16", 1);
  const uint16_t *a = add_halves(&f, (size_t)N * N, 8, 0.1), *b = add_halves(&f, (size_t)N * N, 9, 0.1), *bias = add_halves(&f, N, 10, 1);
  const uint16_t *y = add_halves(&f, (size_t)N * N, 0, 1);
  if (run(&f, "gemm_gelu_f16")) {
    double most = 0;
    for (uint32_t m = 0; m < 128; m += 11)
      for (uint32_t n = 0; n < 128; n += 7) {
        double sum = (double)ir_f32_from_f16(bias[n]);
        for (uint32_t k = 0; k < N; k++) sum += (double)ir_f32_from_f16(a[m * N + k]) * (double)ir_f32_from_f16(b[k * N + n]);
        most = fmax(most, fabs(gelu(sum) - (double)ir_f32_from_f16(y[m * N + n])));
      }
    tap_ok(most < 2e-3, "the first tile of gemm_gelu_f16 agrees with the reference: %g", most);
    tap_is_int(y[128], 0, "nothing is written beside the tile");
  }
  ir_arena_free(&f.arena);
}

static void test_texel_matmul(void) {
  fixture f;
  enum { N = 1024 };
  begin(&f, "matmul_texel", 17); /* one row of tiles, and one tile of the next */
  kernel_dispatch_scalar(&f.d, "K4", N / 4);
  const float *a = add_floats(&f, (size_t)N * N, 11), *b = add_floats(&f, (size_t)N * N, 12), *y = add_floats(&f, (size_t)N * N, 0);
  if (run(&f, "matmul_texel")) {
    double most = 0;
    for (uint32_t m = 0; m < 8; m++)
      for (uint32_t n = 0; n < N; n++) {
        double sum = 0;
        for (uint32_t k = 0; k < N; k++) sum += (double)a[m * N + k] * b[k * N + n];
        most = fmax(most, fabs(sum - y[m * N + n]));
      }
    tap_ok(most < 1e-4, "matmul_texel agrees with the reference: %g", most);
  }
  ir_arena_free(&f.arena);
}

/* ---- the stencil chain ---- */
enum { ROWS = 1080, COLUMNS = 1920 };
static const double weights[9] = {0x1p-8, 0x1p-5, 0x1.cp-4, 0x1.cp-3, 0x1.18p-2, 0x1.cp-3, 0x1.cp-4, 0x1p-5, 0x1p-8};

static double at(const double *plane, int y, int x) { return y < 0 || y >= ROWS || x < 0 || x >= COLUMNS ? 0 : plane[y * COLUMNS + x]; }

static void reference_post(const float *x, double *a, double *b, double *out, int rows) {
  for (int i = 0; i < rows * COLUMNS; i++) a[i] = x[i];
  for (int y = 0; y < rows; y++)
    for (int c = 0; c < COLUMNS; c++) {
      double sum = 0;
      for (int t = 0; t < 9; t++) sum += weights[t] * at(a, y, c + t - 4);
      b[y * COLUMNS + c] = sum;
    }
  for (int y = 0; y < rows - 4; y++)
    for (int c = 0; c < COLUMNS; c++) {
      double sum = 0;
      for (int t = 0; t < 9; t++) sum += weights[t] * at(b, y + t - 4, c);
      a[y * COLUMNS + c] = sum / (sum + 1);
    }
  for (int y = 0; y < rows - 5; y++)
    for (int c = 0; c < COLUMNS; c++)
      out[y * COLUMNS + c] = 5 * at(a, y, c) - at(a, y - 1, c) - at(a, y + 1, c) - at(a, y, c - 1) - at(a, y, c + 1);
}

static void test_post(void) {
  fixture f;
  enum { SOME = 140 }; /* rows that the first group needs: 135 and five below */
  begin(&f, "post", 1);
  float *x = add_floats(&f, (size_t)3 * ROWS * COLUMNS, 13), *y = add_floats(&f, (size_t)3 * ROWS * COLUMNS, 0);
  double *a = IR_NEW_ARRAY(&f.arena, double, ROWS *COLUMNS), *b = IR_NEW_ARRAY(&f.arena, double, ROWS *COLUMNS),
         *want = IR_NEW_ARRAY(&f.arena, double, ROWS *COLUMNS);
  for (size_t i = 0; i < (size_t)3 * ROWS * COLUMNS; i++) x[i] = fabsf(x[i]); /* the tone curve divides by 1 + sum */
  if (run(&f, "post")) {
    reference_post(x, a, b, want, SOME);
    const double error = worst(y, want, (size_t)135 * COLUMNS);
    tap_ok(error < 1e-5, "the first strip of post agrees with the reference, borders included: %g", error);
    tap_ok(y[135 * COLUMNS + 100] == 0, "the next strip is untouched");
  }
  ir_arena_free(&f.arena);
}

/* ---- attention ---- */
static void reference_attention(const float *q, const float *k, const float *v, const uint8_t *mask, double *out) {
  double score[512], most = -INFINITY, sum = 0;
  for (uint32_t j = 0; j < 512; j++) {
    score[j] = 0;
    for (uint32_t d = 0; d < 64; d++) score[j] += (double)q[d] * k[64 * j + d];
    score[j] = mask[j] ? score[j] / 8 : -INFINITY;
    most = fmax(most, score[j]);
  }
  for (uint32_t d = 0; d < 64; d++) out[d] = 0;
  for (uint32_t j = 0; j < 512; j++) {
    const double p = mask[j] ? exp(score[j] - most) : 0;
    sum += p;
    for (uint32_t d = 0; d < 64; d++) out[d] += p * v[64 * j + d];
  }
  for (uint32_t d = 0; d < 64; d++) out[d] = sum > 0 ? out[d] / sum : 0;
}

static void test_attention(bool all_masked) {
  fixture f;
  begin(&f, "attention", 1);
  const float *q = add_floats(&f, 393216, 14), *k = add_floats(&f, 393216, 15), *v = add_floats(&f, 393216, 16);
  uint8_t *mask = ir_arena_take(&f.arena, 512, 64);
  for (uint32_t j = 0; j < 512; j++) mask[j] = !all_masked && j % 5 != 0;
  kernel_dispatch_buffer(&f.d, mask, 512);
  const float *o = add_floats(&f, 393216, 0);
  if (run(&f, "attention")) {
    double want[64], most = 0;
    for (uint32_t row = 0; row < 256; row++) {
      reference_attention(q + 64 * row, k, v, mask, want);
      most = fmax(most, worst(o + 64 * row, want, 64));
    }
    tap_ok(most < 1e-5, "attention, %s: %g", all_masked ? "every key masked" : "some keys masked", most);
  }
  ir_arena_free(&f.arena);
}

/* ---- int4 product into a cache of halves ---- */
static void test_kv(void) {
  fixture f;
  enum { CAPACITY = 3, PAST = 1 };
  begin(&f, "kv_append", 512);
  kernel_dispatch_scalar(&f.d, "cap", CAPACITY);
  kernel_dispatch_scalar(&f.d, "past", PAST);
  const float *x = add_floats(&f, 4096, 17);
  uint32_t *w = ir_arena_take(&f.arena, 524288 * 4, 64), seed = 18;
  for (uint32_t i = 0; i < 524288; i++) w[i] = seed = seed * 1664525u + 1013904223u;
  kernel_dispatch_buffer(&f.d, w, 524288 * 4);
  const uint16_t *scale = add_halves(&f, 131072, 19, 0.01), *cache = add_halves(&f, (size_t)1024 * CAPACITY, 0, 0);
  if (run(&f, "kv_append")) {
    double most = 0;
    for (uint32_t row = 0; row < 1024; row++) {
      double want = 0;
      for (uint32_t c = 0; c < 4096; c++) {
        const double weight = (double)(w[512 * row + c / 8] >> 4 * (c % 8) & 15) - 8;
        want += weight * x[c] * (double)ir_f32_from_f16(scale[128 * row + c / 32]);
      }
      most = fmax(most, fabs(want - (double)ir_f32_from_f16(cache[1024 * PAST + row])) / fmax(1, fabs(want)));
    }
    tap_ok(most < 1e-3, "kv_append agrees with the reference: %g", most);
    tap_ok(cache[0] == 0 && cache[1023] == 0 && cache[2048] == 0, "other positions of the cache are untouched");
  }
  ir_arena_free(&f.arena);
}

/* ---- image to image ---- */
static double encode_srgb(double v) {
  return v <= 0x1.9a5c38p-9 ? v * 0x1.9d70a4p+3 : 0x1.0e147ap+0 * pow(v, 0x1.aaaaaap-2) - 0x1.c28f5cp-5;
}

static void test_tonemap(void) {
  fixture f;
  enum { W = 21, H = 13 };
  begin(&f, "tonemap", 3 * 2);
  const char *const scalar_names[] = {"W", "H", "gx", "rw", "rh", "ev"};
  const double values[] = {W, H, 3, 1.0 / W, 1.0 / H, 2};
  for (uint32_t i = 0; i < IR_COUNT(values); i++) kernel_dispatch_scalar(&f.d, scalar_names[i], values[i]);
  uint16_t *from = add_halves(&f, (size_t)W * H * 4, 20, 2);
  uint8_t *to = ir_arena_take(&f.arena, (size_t)W * H * 4, 64);
  f.d.info.buffer_count = 2;
  f.d.images[0] = (kir_interp_image){from, W, H, 4, SNT_F16};
  f.d.images[1] = (kir_interp_image){to, W, H, 4, SNT_U8};
  if (run(&f, "tonemap")) {
    double most = 0;
    for (uint32_t i = 0; i < W * H * 4; i++) {
      const double v = (double)ir_f32_from_f16(from[i]), e = fmax(2 * v, 0),
                   want = i % 4 == 3 ? fmin(fmax(v, 0), 1) : encode_srgb(e / (e + 1));
      most = fmax(most, fabs(want * 255 - to[i]));
    }
    tap_ok(most < 0.51, "tonemap agrees with the reference within the rounding of a byte: %g", most);
  }
  ir_arena_free(&f.arena);
}

/* ---- listings that exercise features rather than schedules ---- */
/* Items whose loops end at different times, an if with results, arrays laid over each other, subgroups of 4 in a group of 12. */
static void reference_control(const float *x, uint32_t n, uint32_t group, double out[12]) {
  double value[12], left[12], table[2][6];
  for (uint32_t l = 0; l < 12; l++) table[l / 6][l % 6] = value[l] = 12 * group + l < n ? x[12 * group + l] : 0;
  for (uint32_t l = 0; l < 12; l++) {
    const uint32_t trips = 12 * group + l < n ? l % 6 : 0;
    double p = value[l], q = 2;
    left[l] = 1;
    for (uint32_t i = 0; i < trips; i++) {
      if (i % 2) left[l] += p;
      const double sum = p + table[l / 6][i];
      p = q;
      q = sum;
    }
    value[l] = p + q;
  }
  for (uint32_t l = 0; l < 12; l++) {
    const double *const first = value + l / 4 * 4, lead = 12 * group < n ? 0 : 7;
    out[l] = first[1] + (first[0] + first[1] + first[2] + first[3]) + left[l] + lead + l / 4;
  }
}

static void test_control(void) {
  fixture f;
  enum { N = 31 };
  begin(&f, "control", 3);
  kernel_dispatch_scalar(&f.d, "n", N);
  const float *x = add_floats(&f, N, 21), *y = add_floats(&f, 2 * N, 0);
  add_floats(&f, 2 * N, 0);
  if (run(&f, "control")) {
    double want[36];
    for (uint32_t g = 0; g < 3; g++) reference_control(x, N, g, want + 12 * g);
    const double error = worst(y, want, N);
    tap_ok(error < 1e-6, "control agrees with the reference: %g", error);
    tap_is_int(f.d.stats.barriers, 12, "each group passes four barriers");
  }
  ir_arena_free(&f.arena);
}

static void test_fragments(void) {
  fixture f;
  begin(&f, "fragments", 1);
  const uint16_t *a = add_halves(&f, 64, 22, 1), *b = add_halves(&f, 64, 23, 1);
  const float *y = add_floats(&f, 64, 0);
  if (run(&f, "fragments")) {
    double want[64];
    for (uint32_t i = 0; i < 64; i++) {
      want[i] = 1;
      for (uint32_t k = 0; k < 2; k++)
        want[i] += 3 * (double)ir_f32_from_f16(a[8 * (i / 32) + 2 * (i / 8 % 4) + k]) * (double)ir_f32_from_f16(b[8 * k + i % 8]);
      want[i] *= 1 + i / 8; /* each row by a number of its own */
    }
    const double error = worst(y, want, 64);
    tap_ok(error < 1e-6, "two subgroups multiply their fragments, and rows of what comes out: %g", error);
  }
  ir_arena_free(&f.arena);
}

/* What a lane gets of a product is where ir/KERNEL.txt says; made an operand again, in f16, it multiplies as the matrix that it is. */
static void test_fragment_lanes(void) {
  fixture f;
  begin(&f, "fragment_lanes", 1);
  const uint16_t *a = add_halves(&f, 256, 24, 1), *b = add_halves(&f, 256, 25, 1);
  const float *y = add_floats(&f, 512, 0);
  if (run(&f, "fragment_lanes")) {
    double want[512];
    for (uint32_t i = 0; i < 512; i++) {
      const uint32_t row = i / 16 % 16, column = i % 16, lane = row % 8 * 4 + column % 8 / 2,
                     own = column % 2 + row / 8 * 2 + column / 8 * 4;
      const double start[8] = {lane, 1, 2, 3, lane, lane, 0, 0.5};
      want[i] = i < 256 ? 0 : start[own];
      for (uint32_t k = 0; k < 16; k++) {
        const double left = i < 256 ? (double)ir_f32_from_f16(a[16 * row + k])
                                    : (double)ir_f32_from_f16(ir_f16_from_f32((float)want[16 * row + k]));
        want[i] += left * (double)ir_f32_from_f16(b[16 * k + column]);
      }
    }
    const double error = worst(y, want, 512);
    tap_ok(error < 1e-5, "lanes take elements out of a product and make an operand of them: %g", error);
  }
  ir_arena_free(&f.arena);
}

static void test_pictures(void) {
  fixture f;
  float y[4] = {0};
  uint8_t from[4][4][4]; /* sampled 4 by 4, so nearest takes each texel once */
  uint32_t count[16], packed[16] = {0};
  begin(&f, "pictures", 1);
  kernel_dispatch_scalar(&f.d, "n", 4);
  for (uint32_t i = 0; i < sizeof from; i++) ((uint8_t *)from)[i] = (uint8_t)(i * 37);
  for (uint32_t i = 0; i < 16; i++) count[i] = 1000000000u + i;
  f.d.info.buffer_count = 4;
  f.d.images[0] = (kir_interp_image){from, 4, 4, 4, SNT_U8};
  f.d.images[1] = (kir_interp_image){count, 4, 4, 1, SNT_U32};
  f.d.images[2] = (kir_interp_image){packed, 4, 4, 1, SNT_U32};
  f.d.buffers[3] = (kir_interp_buffer){y, sizeof y};
  if (run(&f, "pictures")) {
    bool counted = true, encoded = true;
    for (uint32_t i = 0; i < 16; i++) {
      const uint8_t *t = from[i / 4][i % 4];
      uint32_t want = (uint32_t)rint(t[3] / 255.0 * 3) << 30;
      for (uint32_t c = 0; c < 3; c++) want |= (uint32_t)rint((double)(float)(t[c] / 255.0) * 1023) << 10 * c;
      counted &= count[i] == 1000000001u + i;
      encoded &= packed[i] == want;
    }
    tap_ok(counted, "integer texels are read, changed and stored");
    tap_ok(encoded, "sampled texels are packed into 10 10 10 2 bits");
    tap_is_near((double)y[1], 37 / 255.0, 1e-7, "the first texel reaches the buffer");
  }
  ir_arena_free(&f.arena);
}

int main(void) {
  for (uint32_t i = 0; i < IR_COUNT(names); i++) check_round_trip(names[i]);
  test_chain();
  test_softmax("softmax_rows", 3, 64, 0);
  test_softmax("softmax_group", 20, 1, 32);
  test_softmax("softmax_group", 20, 1, 1);
  test_softmax("softmax_group", 20, 1, 48); /* the last subgroup is smaller */
  test_linear();
  test_gemm();
  test_texel_matmul();
  test_post();
  test_attention(false);
  test_attention(true);
  test_kv();
  test_tonemap();
  test_control();
  test_fragments();
  test_fragment_lanes();
  test_pictures();
  return tap_done();
}
