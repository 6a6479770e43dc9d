/* Launches and memory: the cost of a kernel in a chain; bytes a nanosecond from each level, by copies whose footprints lie in it; reads whose lanes
   are not adjacent. All by differences of two probes, so that what a submission costs by itself falls out. */
#include "tools/sinter/calibrate.h"
#include <stdio.h>

/* y = x - 1.5, `elements` of f32. */
static snt_result make_copy(calibration *c, double elements, probe *out) {
  probe_begin(c);
  probe_write(c, "graph @copy(%%x: f32[%.0f]) {\n  %%y = sub %%x, 0x1.8p0\n  return y=%%y\n}\n", elements);
  return probe_make(c, 0, 1, out);
}

/* ---- launches: chains that are not fused ---- */

static snt_result make_launches(calibration *c, uint32_t kernels, probe *out) {
  probe_begin(c);
  probe_write(c, "graph @chain(%%x: f32[256]) {\n  %%v0 = sub %%x, 0x1.8p0\n");
  for (uint32_t i = 1; i < kernels; i++) probe_write(c, "  %%v%u = sub %%x, %%v%u\n", i, i - 1);
  probe_write(c, "  return y=%%v%u\n}\n", kernels - 1);
  return probe_make(c, SNT_COMPILE_UNFUSED, kernels, out);
}

/* `key`: of a device that runs what is handed over meanwhile, launch_ns is what remains between kernels, submit_ns what the host needs for one. */
static void measure_launch(calibration *c, const char *key) {
  enum { SHORT = 8, LONG = 40 };
  probe chains[2] = {{0}};
  timing t[2];
  snt_result r = make_launches(c, LONG, &chains[0]);
  if (r == SNT_OK) r = make_launches(c, SHORT, &chains[1]);
  if (r == SNT_OK) r = probe_compare(c, &chains[0], &chains[1], t);
  if (r == SNT_OK && t[0].ns > t[1].ns) {
    c->launch_ns = (t[0].ns - t[1].ns) / (LONG - SHORT);
    calibrate_found(c, key, c->launch_ns, t[0].noise + t[1].noise, "chains of %d and %d kernels of 256 elements%s", LONG, SHORT,
                    c->cover.exec ? ", handed over before" : "");
  } else c->skipped++;
  for (int i = 0; i < 2; i++) probe_free(&chains[i]);
}

/* ---- bandwidth ---- */

/* Bytes that the model counts for a copy: a plain store reads its line first. */
static double copy_bytes(const calibration *c, double elements) {
  const calibration_facts *f = &c->facts;
  const double side = 4 * elements;
  const bool plain = f->stream_store_factor > 0 && f->stream_store_factor < 1 &&
                     !(2 * side > f->stream_threshold && f->stream_threshold > 0);
  return side + side * (plain ? 1 / f->stream_store_factor : 1);
}

/* A copy of `footprint` bytes, what is read and what is written together; the time beyond that of a copy of a thousandth. */
static bool copy_rate(calibration *c, double footprint, double *gbs, double *noise) {
  const double most = c->facts.max_buffer_bytes > 0 ? c->facts.max_buffer_bytes / 4 : 1e18;
  double elements = (double)(int64_t)(footprint / 8 / 1024) * 1024;
  if (elements > most) elements = most;
  probe p[2] = {{0}};
  timing t[2];
  snt_result r = elements >= 1024 ? make_copy(c, elements, &p[0]) : SNT_E_UNSUPPORTED;
  if (r == SNT_OK) r = make_copy(c, 256, &p[1]);
  if (r == SNT_OK) r = probe_compare(c, &p[0], &p[1], t);
  for (int i = 0; i < 2; i++) probe_free(&p[i]);
  if (r != SNT_OK || t[0].ns <= t[1].ns) return false;
  *gbs = copy_bytes(c, elements) / (t[0].ns - t[1].ns);
  *noise = t[0].noise + t[1].noise * t[1].ns / t[0].ns;
  return true;
}

static void measure_copies(calibration *c) {
  const calibration_facts *f = &c->facts;
  const double last = f->l3_bytes > f->l2_bytes ? f->l3_bytes : f->l2_bytes;
  const struct {
    const char *key, *where;
    double bytes;
    bool slow;
  } levels[] = {
      {"l2_gbs", "half the second level of every core", f->l3_bytes > 0 ? 0.5 * f->l2_bytes * f->units : 0, false},
      {"cache_gbs", "a third of the last cache", last / 3, false},
      {"dram_gbs", "four times the last cache", last * 4 > 67108864 ? last * 4 : 67108864, true},
  };
  for (size_t i = 0; i < sizeof levels / sizeof *levels; i++) {
    double gbs, noise;
    if (levels[i].bytes <= 0 || (levels[i].slow && c->quick)) continue;
    const double bytes = c->small && levels[i].bytes > 1048576 ? 1048576 : levels[i].bytes;
    if (copy_rate(c, bytes, &gbs, &noise)) {
      if (!levels[i].slow) c->cache_gbs = gbs;
      calibrate_found(c, levels[i].key, gbs, noise, "copy, %.3g MB in all: %s", bytes / 1e6, levels[i].where);
    } else c->skipped++;
  }
}

/* ---- the first level: rows that are read again and again ---- */

static snt_result make_rows(calibration *c, double rows, double columns, probe *out) {
  probe_begin(c);
  probe_write(c, "graph @rows(%%a: f32[%.0f], %%b: f32[%.0f]) {\n", rows, columns);
  probe_write(c, "  %%p = broadcast %%a, axes=[0], shape=[%.0f,%.0f]\n  %%q = broadcast %%b, axes=[1], shape=[%.0f,%.0f]\n", rows, columns,
              rows, columns);
  probe_write(c, "  %%m = max %%p, %%q\n  %%y = reduce.sum %%m, axes=[1]\n  return y=%%y\n}\n");
  return probe_make(c, 0, 1, out);
}

static void measure_rows(calibration *c) {
  const double columns = (double)(int64_t)(c->facts.l1_bytes / 8 / 64) * 64, work = c->small ? 1 << 17 : (1 << 23) * calibrate_scale(c);
  const double rows = columns > 0 ? (double)(int64_t)(work / columns / 16) * 16 : 0;
  probe p[2] = {{0}};
  timing t[2];
  if (rows < 16) return;
  snt_result r = make_rows(c, rows, columns, &p[0]);
  if (r == SNT_OK) r = make_rows(c, 8, columns, &p[1]);
  if (r == SNT_OK) r = probe_compare(c, &p[0], &p[1], t);
  if (r == SNT_OK && t[0].ns > t[1].ns)
    calibrate_found(c, "l1_gbs", 4 * columns * (rows - 8) / (t[0].ns - t[1].ns), t[0].noise + t[1].noise,
                    "%.0f sums over the same %.0f numbers", rows, columns);
  else c->skipped++;
  for (int i = 0; i < 2; i++) probe_free(&p[i]);
}

/* ---- lanes that are not adjacent: a sum with a matrix that is turned ---- */

static snt_result make_turned(calibration *c, uint32_t side, bool turned, probe *out) {
  probe_begin(c);
  probe_write(c, "graph @turned(%%a: f32[%u,%u], %%b: f32[%u,%u]) {\n", side, side, side, side);
  if (turned) probe_write(c, "  %%t = transpose %%a, perm=[1,0]\n");
  probe_write(c, "  %%y = add %s, %%b\n  return y=%%y\n}\n", turned ? "%t" : "%a");
  return probe_make(c, 0, 1, out);
}

static void measure_strides(calibration *c) {
  const uint32_t side = c->small        ? 64
                        : c->cover.exec ? 1632
                                        : 384; /* no power of two: its columns would meet in a few lines of the cache */
  probe p[3] = {{0}};
  timing t[2], adjacent[2];
  snt_result r = make_turned(c, side, true, &p[0]);
  if (r == SNT_OK) r = make_turned(c, side, false, &p[1]);
  if (r == SNT_OK) r = make_copy(c, 256, &p[2]);
  if (r == SNT_OK) r = probe_compare(c, &p[0], &p[2], t);
  if (r == SNT_OK) r = probe_compare(c, &p[1], &p[2], adjacent);
  const double far = t[0].ns - t[1].ns, near = adjacent[0].ns - adjacent[1].ns;
  if (r == SNT_OK && near > 0 && far > 0) {
    const double factor = 1 + (far - near) / (near / 3); /* of three streams one is turned */
    calibrate_found(c, "strided_factor", factor < 1 ? 1 : factor, t[0].noise + adjacent[0].noise, "a matrix of %u x %u that is turned",
                    side, side);
  } else c->skipped++;
  for (int i = 0; i < 3; i++) probe_free(&p[i]);
}

void calibrate_memory(calibration *c) {
  const bool processor_time = c->processor_time;
  c->processor_time = false; /* a launch is mostly waiting */
  if (c->facts.discrete > 0) {
    measure_launch(c, "submit_ns");
    probe_cover(c);
  }
  measure_launch(c, "launch_ns");
  c->processor_time = processor_time;
  measure_copies(c);
  measure_rows(c);
  measure_strides(c);
}
