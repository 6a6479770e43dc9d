/* Measuring: submissions, and the times of single kernels. */
#include "bench/cost.h"
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { STEPS = 64 }; /* of a partition that are shown */

/* On a processor that others load, the time that the process itself was given says more than the wall's: of all its threads. */
double cost_now_ns(const cost_bench *b) {
  struct timespec t;
  clock_gettime(b->processor_time ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void fill(int32_t dtype, uint64_t elements, void *data) {
  uint32_t seed = 7;
  for (uint64_t i = 0; i < elements; i++) {
    seed = seed * 1664525u + 1013904223u;
    if (ir_dtypes[dtype].is_float) ir_dtype_store(dtype, data, i, 0.5 + (seed >> 8) / 16777216.0);
    else ir_dtype_store_int(dtype, data, i, seed >> 28);
  }
}

snt_result cost_make_buffers(cost_bench *b) {
  const snt_program *p = b->parts[0].program;
  snt_result r = p->port_count <= COST_BENCH_PORTS ? SNT_OK : SNT_E_LIMIT;
  for (uint32_t i = 0; r == SNT_OK && i < p->port_count; i++) {
    const plan_buffer *port = &p->plan.buffers.at[p->ports[i]];
    int64_t dims[SNT_MAX_RANK];
    uint64_t elements = 1;
    r = snt_program_port_dims(p, i, NULL, dims);
    for (uint32_t k = 0; k < port->rank && r == SNT_OK; k++) elements *= (uint64_t)dims[k];
    const uint64_t bytes = elements * ir_dtypes[port->dtype].bytes;
    void *data = malloc(bytes + 1);
    if (!data) r = SNT_E_HOST_MEM;
    if (r == SNT_OK) fill(port->dtype, elements, data);
    if (r == SNT_OK) r = snt_buffer_create(b->device, bytes, &b->buffers[i], &b->diag);
    if (r == SNT_OK) r = snt_buffer_upload(b->stream, b->buffers[i], 0, data, bytes, &b->diag);
    free(data);
  }
  return r;
}

static snt_run_info arguments_of(const cost_bench *b, const partition *part, snt_argument arguments[COST_BENCH_PORTS]) {
  uint32_t used = 0;
  for (uint32_t i = 0; i < part->program->port_count; i++)
    if (part->program->plan.buffers.at[part->program->ports[i]].kind != PLAN_STATE)
      arguments[used++] = (snt_argument){.port = i, .buffer = b->buffers[i], .bytes = b->buffers[i]->bytes};
  return (snt_run_info){.head = SNT_HEAD(run_info), .argument_count = used, .arguments = arguments};
}

/* The least times of the kernels of an exec that tells them apart; 0: a submission, or its times, failed. */
static uint32_t time_steps(cost_bench *b, const partition *part, snt_exec *apart, uint64_t *least, uint32_t room) {
  enum { ROUNDS = 6 };
  snt_argument arguments[COST_BENCH_PORTS] = {{0}};
  const snt_run_info info = arguments_of(b, part, arguments);
  uint64_t ns[STEPS];
  uint32_t count = 0;
  double covers;
  memset(least, 0xff, room * sizeof *least);
  for (uint32_t round = 0; round < ROUNDS; round++) {
    snt_event *event = NULL;
    count = room;
    if (cost_cover_submit(b, 2.0 * part->steps, &covers) != SNT_OK) return 0; /* a mark beside each */
    if (snt_submit(apart, b->stream, &info, &event, &b->diag) != SNT_OK) return 0;
    const bool timed = snt_event_wait(event, UINT64_MAX) == SNT_OK && snt_event_timings(event, &count, ns) == SNT_OK;
    snt_event_destroy(event);
    if (!timed) return 0;
    for (uint32_t i = 0; i < count && i < room; i++) least[i] = ns[i] < least[i] ? ns[i] : least[i];
  }
  return count < room ? count : room;
}

void cost_show_steps(cost_bench *b, const partition *part) {
  uint64_t least[STEPS];
  snt_exec *apart = NULL;
  const bool made = cost_make_exec(b, part->program, true, &apart) == SNT_OK && snt_exec_prepare(apart, &b->diag) == SNT_OK;
  const uint32_t count = made ? time_steps(b, part, apart, least, STEPS) : 0;
  snt_exec_destroy(apart);
  for (uint32_t i = 0; i < count && i < part->steps; i++) {
    const plan_step *s = &part->program->plan.steps.at[i];
    printf("      %-20s %-10s measured %9.2f us, predicted %9.2f us:", s->name, part->program->plan.kernels.at[s->kernel].kind,
           (double)least[i] / 1e3, s->est_ns / 1e3);
    for (uint32_t n = 0; n < s->node_count; n++) printf(" %s", ir_ops[ir_at(part->program->fusion.graph, s->nodes[n])->op].name);
    printf("\n");
  }
}

snt_result cost_sample(cost_bench *b, const partition *part, uint32_t repeats, double *ns) {
  snt_argument arguments[COST_BENCH_PORTS] = {{0}};
  const snt_run_info info = arguments_of(b, part, arguments);
  double covers;
  const double start = cost_now_ns(b);
  snt_result r = cost_cover_submit(b, (double)repeats * part->program->plan.steps.count, &covers);
  for (uint32_t i = 0; i < repeats && r == SNT_OK; i++) r = snt_submit(part->exec, b->stream, &info, NULL, &b->diag);
  if (r == SNT_OK) r = snt_stream_wait(b->stream, &b->diag);
  *ns = (cost_now_ns(b) - start - covers) / repeats;
  return r;
}
