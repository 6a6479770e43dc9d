/* The OpenCL door: the host's handles as public objects, and a run enqueued between the host's events. Neither waits nor submits on its own. */
#include "api/exec.h"
#include "runtime/rt_opencl.h"
#include <sinter/opencl.h>

snt_result snt_cl_attach(snt_context *c, const snt_cl_attach_info *info, snt_device **out, snt_diag *diag) {
  if (!c || !info || !out) return ir_fail(diag, SNT_E_ARG, "attach", 0, "a context, the host's device and a place for ours are needed");
  SNT_TRY(api_check_whole(&info->head, SNT_TYPE_cl_attach_info, sizeof *info, diag));
  if (!info->context || !info->device) return ir_fail(diag, SNT_E_ARG, "attach", 0, "the host's OpenCL context and device are needed");
  const ocl_adoption from = {info->context, info->device, info->user, info->get_proc};
  const uint32_t starved = api_starved(c);
  rt_device *rt = NULL;
  SNT_TRY(api_blame(c, starved, ocl_adopt_device(&c->alloc, &from, &rt, diag), diag));
  return api_device_over(c, rt, out, diag);
}

static bool is_opencl(const snt_device *d) { return d && d->rt && d->rt->v == &rt_opencl; }

snt_result snt_cl_stream(snt_device *d, cl_command_queue queue, snt_stream **out, snt_diag *diag) {
  if (!is_opencl(d) || !queue || !out) return ir_fail(diag, SNT_E_ARG, "stream", 0, "an OpenCL device and a queue are needed");
  snt_stream *s = api_take(d->context, sizeof *s);
  if (!s) return ir_no_memory(diag, "stream");
  const snt_result r = ocl_adopt_queue(d->rt, queue, &s->rt, diag);
  if (r != SNT_OK) {
    api_give(d->context, s, sizeof *s);
    return r;
  }
  atomic_init(&s->uses, 1);
  s->device = d;
  api_device_hold(d);
  *out = s;
  return SNT_OK;
}

snt_result snt_cl_buffer(snt_device *d, cl_mem mem, snt_buffer **out, snt_diag *diag) {
  if (!is_opencl(d) || !mem || !out) return ir_fail(diag, SNT_E_ARG, "buffer", 0, "an OpenCL device and a memory object are needed");
  snt_buffer *b = api_take(d->context, sizeof *b);
  if (!b) return ir_no_memory(diag, "buffer");
  const snt_result r = ocl_adopt_buffer(d->rt, mem, &b->rt, diag);
  if (r != SNT_OK) {
    api_give(d->context, b, sizeof *b);
    return r;
  }
  b->device = d;
  b->bytes = b->rt->bytes;
  api_device_hold(d);
  *out = b;
  return SNT_OK;
}

snt_result snt_cl_enqueue(snt_exec *x, snt_stream *s, const snt_cl_enqueue_info *info, snt_diag *diag) {
  if (!x || !s || !info || s->device != x->device || !is_opencl(x->device))
    return ir_fail(diag, SNT_E_ARG, "enqueue", 0, "an exec and a stream of one OpenCL device are needed");
  SNT_TRY(api_check_whole(&info->head, SNT_TYPE_cl_enqueue_info, sizeof *info, diag));
  if (!info->run || (info->wait_count && !info->waits))
    return ir_fail(diag, SNT_E_ARG, "enqueue", 0, "what to run is needed, and as many events as are counted");
  uint32_t count = 0;
  const ocl_edges edges = {info->wait_count, info->waits, info->event};
  SNT_TRY(exec_bind_run(x, info->run, &count, diag));
  return ocl_enqueue(s->rt, count, x->dispatches, &edges, diag);
}
