/* The constants of an exec on a device of our own. Those that the compile only described, and whose making takes time, are jobs, so that any thread may make
   them while others build kernels; the last of them brings all constants to the device. Without such, creating the exec does. */
#include "api/exec.h"

snt_result exec_upload_new(snt_exec *x, uint32_t buffer, uint64_t bytes, const void *data, snt_diag *diag) {
  rt_device *rt = x->device->rt;
  SNT_TRY(rt->v->buffer_create(rt, exec_round(bytes), &x->buffers[buffer], diag));
  if (data) return rt->v->upload(x->stream->rt, x->buffers[buffer], 0, data, bytes, diag);
  void *zero = api_take(x->device->context, exec_round(bytes));
  if (!zero) return ir_no_memory(diag, "exec");
  snt_result r = rt->v->upload(x->stream->rt, x->buffers[buffer], 0, zero, exec_round(bytes), diag);
  if (r == SNT_OK) r = rt->v->wait(x->stream->rt, diag);
  api_give(x->device->context, zero, exec_round(bytes));
  return r;
}

/* Where the device reads host memory as it is, a constant of some size stays where the program has it. */
static snt_result bring_constant(snt_exec *x, uint32_t buffer, uint64_t bytes, const void *data, snt_diag *diag) {
  enum { WORTH_IT = 1 << 16 };
  rt_device *rt = x->device->rt;
  const bool whole = bytes >= WORTH_IT && bytes % 16 == 0 && (uintptr_t)data % 64 == 0;
  if (whole && rt->v->buffer_over && rt->v->buffer_over(rt, data, bytes, &x->buffers[buffer], NULL) == SNT_OK) return SNT_OK;
  return exec_upload_new(x, buffer, bytes, data, diag);
}

static snt_result bring_each(snt_exec *x, snt_diag *diag) {
  const ir_plan *p = &x->program->plan;
  for (uint32_t i = 0; i < p->buffers.count; i++) {
    const plan_buffer *b = &p->buffers.at[i];
    if (b->kind != PLAN_CONSTANT || b->first_step == UINT32_MAX) continue;
    const void *data = api_constant(x->program, i);
    if (!data) return ir_fail(diag, SNT_E_HOST_MEM, "exec", 0, "a constant has no data");
    uint64_t bytes;
    if (!plan_logical_bytes(p, b, NULL, &bytes)) return ir_fail(diag, SNT_E_LIMIT, "exec", 0, "the size of a constant does not fit");
    SNT_TRY(bring_constant(x, i, bytes, data, diag));
  }
  return x->device->rt->v->wait(x->stream->rt, diag);
}

/* After a failure none is there: a buffer without its data would pass for a constant when the job is run again. */
static snt_result bring_constants(snt_exec *x, snt_diag *diag) {
  const ir_plan *p = &x->program->plan;
  const snt_result r = bring_each(x, diag);
  if (r != SNT_OK) x->device->rt->v->wait(x->stream->rt, NULL);
  for (uint32_t i = 0; r != SNT_OK && i < p->buffers.count; i++) {
    if (p->buffers.at[i].kind != PLAN_CONSTANT || !x->buffers[i]) continue;
    x->device->rt->v->buffer_destroy(x->buffers[i]);
    x->buffers[i] = NULL;
  }
  api_store_rest(x->program->store);
  return r;
}

/* ---- jobs ---- */

snt_result exec_expect_constants(snt_exec *x, snt_diag *diag) {
  const uint32_t first = x->job_count;
  for (uint32_t i = 0; i < x->program->plan.buffers.count; i++) {
    if (!api_is_to_make(x->program, i)) continue;
    exec_job *job = &x->jobs[x->job_count++];
    const char *name = x->program->plan.buffers.at[i].name;
    job->kind = SNT_JOB_CONSTANT, job->constant = i, job->name = name && name[0] ? name : "constant";
  }
  atomic_init(&x->to_make, x->job_count - first);
  return x->job_count == first ? bring_constants(x, diag) : SNT_OK;
}

snt_result exec_build_constant(snt_exec *x, exec_job *job, snt_diag *diag) {
  const uint64_t start = rt_clock_ns();
  const bool made = api_constant(x->program, job->constant) != NULL;
  job->compile_ns = rt_clock_ns() - start;
  if (!made) return ir_fail(diag, SNT_E_HOST_MEM, "job", 0, "out of host memory for %s", job->name);
  const bool last = job->made ? atomic_load(&x->to_make) == 0 : atomic_fetch_sub(&x->to_make, 1) == 1;
  job->made = true; /* it was the last and could not bring them: it is run again */
  return last ? bring_constants(x, diag) : SNT_OK;
}
