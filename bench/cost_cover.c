/* On a device that works by itself the host hands over short kernels more slowly than they run: 4.4 us each through CUDA on the machine where it was
   measured. What a partition takes of the device, as in a graph of launches or behind other work, is seen where the device is busy until all is handed over. */
#include "bench/cost.h"
#include <math.h>

enum { ELEMENTS = 1 << 26, HAND_OVER_NS = 6500, MOST_KERNELS = 384 }; /* a queue makes the host wait beyond some 1000 */

static snt_result submit(cost_bench *b, uint32_t times) {
  const cost_cover *c = &b->cover;
  snt_argument arguments[2];
  for (uint32_t i = 0; i < 2; i++) arguments[i] = (snt_argument){.port = i, .buffer = c->buffers[i], .bytes = c->buffers[i]->bytes};
  const snt_run_info info = {.head = SNT_HEAD(run_info), .argument_count = 2, .arguments = arguments};
  snt_result r = SNT_OK;
  for (uint32_t i = 0; i < times && r == SNT_OK; i++) r = snt_submit(c->exec, b->stream, &info, NULL, &b->diag);
  return r;
}

/* The least of some tries. */
static snt_result time_of(cost_bench *b, uint32_t times, double *least) {
  enum { TRIES = 6 };
  snt_result r = SNT_OK;
  *least = INFINITY;
  for (uint32_t i = 0; i < TRIES && r == SNT_OK; i++) {
    const double start = cost_now_ns(b);
    r = submit(b, times);
    if (r == SNT_OK) r = snt_stream_wait(b->stream, &b->diag);
    *least = fmin(*least, cost_now_ns(b) - start);
  }
  return r;
}

snt_result cost_cover_open(cost_bench *b) {
  enum { MORE = 16 };
  cost_cover *c = &b->cover;
  snt_graph *g = NULL;
  char text[128];
  double all = 0;
  if (!b->covered) return SNT_OK;
  const int length = snprintf(text, sizeof text, "graph @cover(%%x: f32[%d]) {\n  %%y = relu %%x\n  return y=%%y\n}\n", ELEMENTS);
  snt_result r = snt_graph_create(b->context, &g);
  if (r == SNT_OK) r = snt_graph_parse(g, text, (size_t)length, NULL, &b->diag);
  if (r == SNT_OK) r = snt_compile(g, b->profile, NULL, &c->program, &b->diag);
  snt_graph_destroy(g);
  if (r == SNT_OK) r = cost_make_exec(b, c->program, true, &c->exec);
  for (uint32_t i = 0; i < 2 && r == SNT_OK; i++) r = snt_buffer_create(b->device, ELEMENTS * sizeof(float), &c->buffers[i], &b->diag);
  if (r == SNT_OK) r = time_of(b, 1, &c->first_ns);
  if (r == SNT_OK) r = time_of(b, 1 + MORE, &all);
  c->more_ns = fmax((all - c->first_ns) / MORE, 1);
  return r;
}

void cost_cover_close(cost_bench *b) {
  cost_cover *c = &b->cover;
  for (uint32_t i = 0; i < 2; i++) snt_buffer_destroy(c->buffers[i]);
  snt_exec_destroy(c->exec);
  snt_program_destroy(c->program);
  *c = (cost_cover){0};
}

snt_result cost_cover_submit(cost_bench *b, double kernels, double *ns) {
  *ns = 0;
  if (!b->cover.exec) return SNT_OK;
  const uint32_t more = (uint32_t)(kernels * HAND_OVER_NS / b->cover.more_ns);
  *ns = b->cover.first_ns + more * b->cover.more_ns;
  return submit(b, 1 + more);
}

uint32_t cost_cover_most(const cost_bench *b, const partition *p, uint32_t wanted) {
  const uint32_t most = MOST_KERNELS / (p->program->plan.steps.count + 1) + 1;
  return b->cover.exec && wanted > most ? most : wanted;
}
