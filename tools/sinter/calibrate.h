/* sinter calibrate: small graphs timed on a device in pairs, and what their times say of the profile's numbers.
   A probe is a graph compiled for the device at hand with its inputs on the device. Two probes are timed in blocks A B B A, so that what drifts
   meets both alike; the difference of the two A of a block is the noise. On a device that works by itself the host hands kernels over more
   slowly than it runs short ones: there each block begins with work that covers the handing over, whose time is taken off again. */
#ifndef TOOLS_SINTER_CALIBRATE_H
#define TOOLS_SINTER_CALIBRATE_H
#include "tools/sinter/tool.h"

enum { PROBE_PORTS = 4, PROBE_TEXT = 16384, CALIBRATE_MAX = 64 };

typedef struct probe {
  snt_program *program;
  snt_exec *exec;
  snt_buffer *buffers[PROBE_PORTS];
  snt_argument arguments[PROBE_PORTS];
  uint32_t port_count, kernels;
} probe;

typedef struct timing {
  double ns, noise; /* least time of a submission; relative difference of its halves */
} timing;

/* One number of the profile that was measured. */
typedef struct finding {
  char key[32];
  double value, noise;
  char how[96];
} finding;

/* Facts of the device's profile that the probes are sized by, read from its text. */
typedef struct calibration_facts {
  double units, lanes, ghz, fma_per_cycle, l1_bytes, l2_bytes, l3_bytes, stream_store_factor, stream_threshold, max_buffer_bytes, f64, f16,
      int64;
  bool explicit_vectors;
  double discrete;
} calibration_facts;

typedef struct calibration {
  tool_session session;
  snt_stream *stream;
  calibration_facts facts;
  char text[PROBE_TEXT]; /* of the graph at hand */
  size_t length;
  bool quick, small, overflow;          /* small: quick, on a device so slow that probes of full size would not be */
  bool full;                            /* memory ran out for a probe: what it asks is not known */
  bool processor_time;                  /* times are the process's own, over the units of the device: for a processor that others load */
  double sample_ns, deadline_ms, noise; /* noise: the largest that a finding has */
  uint32_t blocks;
  probe cover; /* what the device does while the host hands over what is timed; without an exec: nothing */
  double cover_ns;
  double launch_ns, cache_gbs;
  finding findings[CALIBRATE_MAX];
  uint32_t count, skipped;
} calibration;

double calibrate_now_ms(void);
double calibrate_fact(const char *profile, const char *key); /* of a profile's text; 0: not there */

/* ---- graphs (calibrate_probe.c) ---- */
void probe_write(calibration *, const char *format, ...) __attribute__((format(printf, 2, 3)));
void probe_begin(calibration *); /* an empty text */
/* Compiles the text at hand; `kernels` other than 0: how many are wanted, SNT_E_UNSUPPORTED otherwise. */
snt_result probe_make(calibration *, uint32_t flags, uint32_t kernels, probe *out);
void probe_free(probe *);
snt_result probe_compare(calibration *, probe *a, probe *b, timing out[2]);
/* From here on all is timed behind copies that last long beside a launch. */
void probe_cover(calibration *);
/* Work beside which a launch is little: 1, or more where work is covered. */
static inline double calibrate_scale(const calibration *c) { return c->cover.exec ? 16 : 1; }

/* ---- what is measured (calibrate_memory.c, calibrate_compute.c); a device that cannot do one is no error ---- */
void calibrate_found(calibration *, const char *key, double value, double noise, const char *how, ...)
    __attribute__((format(printf, 5, 6)));
/* Whether a small probe takes long here: an interpreter. */
bool calibrate_slow(calibration *);
void calibrate_memory(calibration *);
void calibrate_compute(calibration *);
#endif
