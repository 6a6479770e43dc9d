/* Arithmetic: cycles of an operator, by chains of it that are one kernel, long and short; what contractions reach; how much must be in flight. */
#include "tools/sinter/calibrate.h"
#include <stdio.h>
#include <string.h>

/* Dear operators (length 1) are measured in a kernel of their own, beside one that has the helpers alone: in chains they wait for each other. */
/* A step of a chain: %v is the value so far, %x and %y are near one, %t the last line's result. Beside the operator asked for it holds `helpers` of the
   operator in row `of`; `own` times the operator itself. */
typedef struct step_row {
  const char *op, *type;
  const char *lines[3];
  uint8_t own, helpers, of, length;
} step_row;
enum { ROW_SUB, ROW_SUB_F16, ROW_SUB_F64, ROW_INT, STEP_ROWS_MAX = 40 };
// clang-format off
static const step_row steps[] = {
    [ROW_SUB]     = {"sub", "f32", {"sub %x, %v"}, 1, 0, 0, 32},
    [ROW_SUB_F16] = {"sub", "f16", {"sub %x, %v"}, 1, 0, 0, 24},
    [ROW_SUB_F64] = {"sub", "f64", {"sub %x, %v"}, 1, 0, 0, 24},
    [ROW_INT]     = {"add", "i32", {"xor %v, %y", "add %t, %x"}, 2, 0, 0, 16},
    {"mul", "f32", {"mul %v, %x"}, 1, 0, 0, 32},
    {"max", "f32", {"sub %x, %v", "max %t, %y"}, 1, 1, ROW_SUB, 24},
    {"div", "f32", {"add %v, %y", "div %x, %t"}, 1, 1, ROW_SUB, 12},
    {"sqrt", "f32", {"add %v, %x", "sqrt %t"}, 1, 1, ROW_SUB, 12},
    {"rsqrt", "f32", {"add %v, %x", "rsqrt %t"}, 1, 1, ROW_SUB, 12},
    {"exp", "f32", {"sub %x, %v", "exp %t"}, 1, 1, ROW_SUB, 1},
    {"log", "f32", {"max %v, %x", "log %t"}, 1, 1, ROW_SUB, 1},
    {"tanh", "f32", {"sub %x, %v", "tanh %t"}, 1, 1, ROW_SUB, 1},
    {"sigmoid", "f32", {"sub %x, %v", "sigmoid %t"}, 1, 1, ROW_SUB, 1},
    {"erf", "f32", {"sub %x, %v", "erf %t"}, 1, 1, ROW_SUB, 1},
    {"sin", "f32", {"sub %x, %v", "sin %t"}, 1, 1, ROW_SUB, 1},
    {"pow", "f32", {"max %v, %x", "pow %t, %y"}, 1, 1, ROW_SUB, 1},
    {"exp", "f16", {"sub %x, %v", "exp %t"}, 1, 1, ROW_SUB_F16, 1},
    {"exp", "f64", {"sub %x, %v", "exp %t"}, 1, 1, ROW_SUB_F64, 1},
    {"mul", "i32", {"xor %v, %y", "mul %t, %x"}, 1, 1, ROW_INT, 16},
    {"div", "i32", {"xor %v, %y", "div %t, %x"}, 1, 1, ROW_INT, 6},
};
// clang-format on
enum { STEP_ROWS = sizeof steps / sizeof *steps, CHAIN_SMALL = 4096, LONG_BASE = 64, DEAR_BASE = 8, DEAR_LENGTH = 16 };

/* Where work is covered, items wait for each other: chains of all operators are long enough that memory hides behind them. */
static uint32_t chain_length(const calibration *c, const step_row *row) {
  if (!c->cover.exec) return row->length;
  return row->length > 1 ? 4u * row->length : DEAR_LENGTH;
}
static uint32_t chain_base(const calibration *c, const step_row *row) {
  if (!c->cover.exec) return row->length > 1 ? 4 : 0;
  return row->length > 1 ? LONG_BASE : DEAR_BASE;
}
static uint32_t helpers_of(const calibration *c, const step_row *row) { return chain_base(c, row) ? row->helpers : 0; }

static double chain_elements(const calibration *c) {
  const double wanted = 64 * c->facts.units * c->facts.lanes;
  if (c->small) return CHAIN_SMALL;
  return wanted > 65536 ? (double)(int64_t)(wanted / 1024) * 1024 : 65536;
}

/* A line of a step with its values named: %v the step before, %t the line before. */
static void write_line(calibration *c, const char *line, uint32_t step, uint32_t number, bool last) {
  if (last) probe_write(c, "  %%v%u = ", step);
  else probe_write(c, "  %%s%ut%u = ", step, number);
  for (const char *at = line; *at; at++) {
    if (*at != '%' || (at[1] != 'v' && at[1] != 't')) probe_write(c, "%c", *at);
    else if (*++at == 't') probe_write(c, "%%s%ut%u", step, number - 1);
    else if (step) probe_write(c, "%%v%u", step - 1);
    else probe_write(c, "%%y");
  }
  probe_write(c, "\n");
}

static snt_result make_chain(calibration *c, const step_row *row, uint32_t length, double elements, probe *out) {
  probe_begin(c);
  probe_write(c, "graph @chain(%%x: %s[%.0f], %%y: %s[%.0f]) {\n", row->type, elements, row->type, elements);
  for (uint32_t i = 0; i < length; i++)
    for (uint32_t k = 0; k < 3 && row->lines[k]; k++) write_line(c, row->lines[k], i, k, k == 2 || !row->lines[k + 1]);
  probe_write(c, "  return y=%%v%u\n}\n", length - 1);
  return probe_make(c, 0, 1, out);
}

/* Nanoseconds of a whole device for a vector of `lanes` results, as cycles of one unit. */
static double cycles_of(const calibration *c, double ns, double results) {
  return ns * c->facts.ghz * c->facts.units * c->facts.lanes / results;
}

static bool measure_step(calibration *c, const step_row *row, double *cycles, double *noise) {
  const uint32_t base = chain_base(c, row), length = chain_length(c, row);
  const step_row helpers = {row->op, row->type, {row->lines[0]}, 1, 0, 0, 1};
  const double elements = chain_elements(c);
  probe p[2] = {{0}};
  timing t[2];
  snt_result r = make_chain(c, row, base + length, elements, &p[0]);
  if (r == SNT_OK) r = make_chain(c, base ? row : &helpers, base ? base : 1, elements, &p[1]);
  if (r == SNT_OK) r = probe_compare(c, &p[0], &p[1], t);
  for (int i = 0; i < 2; i++) probe_free(&p[i]);
  if (r != SNT_OK || t[0].ns <= t[1].ns) return false;
  *cycles = cycles_of(c, t[0].ns - t[1].ns, elements * length);
  *noise = (t[0].noise * t[0].ns + t[1].noise * t[1].ns) / (t[0].ns - t[1].ns);
  return true;
}

bool calibrate_slow(calibration *c) {
  static const double SLOW_NS = 1e5;
  probe p = {0};
  timing t[2] = {{0}};
  snt_result r = make_chain(c, &steps[ROW_SUB], steps[ROW_SUB].length, CHAIN_SMALL, &p);
  if (r == SNT_OK) r = probe_compare(c, &p, &p, t);
  probe_free(&p);
  return r == SNT_OK && t[0].ns > SLOW_NS;
}

static bool has_type(const calibration *c, const char *type) {
  return strcmp(type, "f64") ? strcmp(type, "f16") || c->facts.f16 > 0 : c->facts.f64 > 0;
}

static double least_cycles(const calibration *c) { return 0.1 / c->facts.units; }

static void measure_steps(calibration *c) {
  double whole[STEP_ROWS_MAX] = {0}, noise;
  for (uint32_t i = 0; i < STEP_ROWS; i++) {
    const step_row *row = &steps[i];
    char key[32];
    if (!has_type(c, row->type) || (i > ROW_SUB && calibrate_now_ms() > c->deadline_ms) || !measure_step(c, row, &whole[i], &noise)) {
      c->skipped++;
      continue;
    }
    double own = (whole[i] - helpers_of(c, row) * whole[row->of]) / row->own;
    whole[i] /= row->own > 1 ? row->own : 1;          /* as a helper: one operation */
    if (own < least_cycles(c)) own = least_cycles(c); /* hidden behind the helper */
    snprintf(key, sizeof key, "cycles.%s.%s", row->op, strcmp(row->type, "i32") ? row->type : "int");
    calibrate_found(c, key, own, noise, chain_base(c, row) ? "chains of %u, %.0f elements" : "%u a kernel, %.0f elements",
                    chain_length(c, row), chain_elements(c));
    if (i == ROW_SUB) calibrate_found(c, "op_cycles", own, noise, "as sub");
    if (!strcmp(key, "cycles.exp.f32")) calibrate_found(c, "special_cycles", own, noise, "as exp");
    if (!strcmp(key, "cycles.div.f32")) calibrate_found(c, "div_cycles", own, noise, "as div");
  }
}

/* ---- reductions, gathers, contractions: one kernel of much work beside one of little ---- */

typedef struct bulk_row {
  const char *key;
  void (*write)(calibration *, double n);
  double few, many, some; /* some: enough for a slow device */
  double (*work)(double n);
  double bytes; /* of one n: what only takes as long as memory is not computing */
} bulk_row;

static void write_reduce(calibration *c, double n) {
  probe_write(c, "graph @sums(%%x: f32[%.0f,256]) {\n  %%y = reduce.sum %%x, axes=[1]\n  return y=%%y\n}\n", n);
}
static void write_columns(calibration *c, double n) {
  probe_write(c, "graph @scan(%%x: f32[%.0f,256]) {\n  %%y = scan.sum %%x, axis=1\n  return y=%%y\n}\n", n);
}
static void write_gather(calibration *c, double n) {
  probe_write(c, "graph @gather(%%x: f32[%.0f], %%i: i64[%.0f]) {\n  %%y = gather %%x, %%i, axis=0\n  return y=%%y\n}\n", n, n);
}
/* Rows of two parts: vectors are put together lane by lane, or both parts are read for every element. */
static void write_joined(calibration *c, double n) {
  probe_write(c, "graph @joined(%%x: f32[%.0f,128], %%y: f32[%.0f,128]) {\n  %%j = concat %%x, %%y, axis=1\n", n, n);
  probe_write(c, "  %%z = reduce.sum %%j, axes=[1]\n  return z=%%z\n}\n");
}
static void write_contract(calibration *c, double n) {
  probe_write(c, "graph @product(%%a: f32[%.0f,256], %%b: f32[256,256]) {\n", n);
  probe_write(c, "  %%y = contract %%a, %%b, lhs=[0,1], rhs=[1,2], out=[0,2]\n  return y=%%y\n}\n");
}
static double rows_of_256(double n) { return n * 256; }
static double loads_of_512(double n) { return n * 512; }
static double plain(double n) { return n; }
static double products(double n) { return n * 256 * 256; }
// clang-format off
static const bulk_row bulks[] = {
    {"cycles.reduce.sum.f32", write_reduce, 16, 1024, 64, rows_of_256, 1024},
    {"cycles.scan.sum.f32", write_columns, 16, 1024, 64, rows_of_256, 2048},
    {"cycles.gather.f32", write_gather, 256, 65536, 4096, plain, 16},
    {"lane_load_cycles", write_joined, 16, 1024, 64, loads_of_512, 1024},
    {"contract_share", write_contract, 32, 512, 64, products, 2048},
};
// clang-format on

/* What is left of `ns` beside the traffic of so many n, which a device that many items hide hides, or is all there is to it: 0. */
static double beyond_memory(const calibration *c, const bulk_row *row, double n, double ns) {
  static const double LEAST = 1.25;
  const double memory = c->cover.exec && c->cache_gbs > 0 ? n * row->bytes / c->cache_gbs : 0;
  return ns > LEAST * memory ? ns : 0;
}

static void measure_bulk(calibration *c, const bulk_row *row) {
  const double scale = calibrate_scale(c), large = scale * (c->small ? row->some : row->many), few = scale * row->few;
  probe p[2] = {{0}};
  timing t[2];
  probe_begin(c);
  row->write(c, large);
  snt_result r = probe_make(c, 0, 0, &p[0]);
  probe_begin(c);
  row->write(c, few);
  if (r == SNT_OK) r = probe_make(c, 0, 0, &p[1]);
  if (r == SNT_OK) r = probe_compare(c, &p[0], &p[1], t);
  for (int i = 0; i < 2; i++) probe_free(&p[i]);
  const double ns = r == SNT_OK ? beyond_memory(c, row, large - few, t[0].ns - t[1].ns) : 0;
  if (ns <= 0) {
    c->skipped++;
    return;
  }
  const double results = row->work(large) - row->work(few), noise = (t[0].noise * t[0].ns + t[1].noise * t[1].ns) / ns;
  double value = cycles_of(c, ns, results);
  if (row->work == loads_of_512) value /= c->facts.lanes > 0 ? c->facts.lanes : 1;
  if (row->work == products) value = 1 / (value * (c->facts.fma_per_cycle > 0 ? c->facts.fma_per_cycle : 1));
  calibrate_found(c, row->key, value, noise, "%.3g results beside %.3g", row->work(large), row->work(few));
}

/* ---- how many elements fill the device: time of few elements, over the time that an element takes among many ---- */

static void measure_fill(calibration *c) {
  static const step_row row = {"exp", "f32", {"sub %x, %v", "exp %t"}, 1, 1, ROW_SUB, 1};
  const double few = c->facts.lanes > 0 ? c->facts.lanes : 1, many = chain_elements(c);
  probe p[4] = {{0}};
  timing large[2], small[2];
  snt_result r = make_chain(c, &row, 12, many, &p[0]);
  if (r == SNT_OK) r = make_chain(c, &row, 12, many / 2, &p[1]);
  if (r == SNT_OK) r = make_chain(c, &row, 12, few, &p[2]);
  if (r == SNT_OK) r = make_chain(c, &row, 1, few, &p[3]);
  if (r == SNT_OK) r = probe_compare(c, &p[0], &p[1], large);
  if (r == SNT_OK) r = probe_compare(c, &p[2], &p[3], small);
  for (int i = 0; i < 4; i++) probe_free(&p[i]);
  const double one = (large[0].ns - large[1].ns) / (many / 2), busy = c->processor_time ? c->facts.units : 1,
               alone = (small[0].ns - small[1].ns) * 12 / 11 * busy; /* one unit had all of the time */
  if (r != SNT_OK || one <= 0 || alone <= 0) {
    c->skipped++;
    return;
  }
  const double elements = alone / one, least = c->facts.lanes;
  calibrate_found(c, "saturate_items", elements < least ? least : elements, large[0].noise + small[0].noise,
                  "12 exp of %.0f elements take as long as of this many among %.0f", few, many);
}

void calibrate_compute(calibration *c) {
  for (uint32_t i = 0; i < sizeof bulks / sizeof *bulks; i++) measure_bulk(c, &bulks[i]);
  measure_fill(c);
  measure_steps(c); /* the most, and the last of them the least needed: what time is left */
}
