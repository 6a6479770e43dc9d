/* The CUDA door: the host's handles as public objects, and a run launched on the host's stream. Neither waits nor takes memory. */
#include "api/exec.h"
#include "runtime/rt_cuda.h"
#include <sinter/cuda.h>

snt_result snt_cuda_attach(snt_context *c, const snt_cuda_attach_info *info, snt_device **out, snt_diag *diag) {
  if (!c || !info || !out)
    return ir_fail(diag, SNT_E_ARG, "attach", 0, "a context, the host's CUDA context and a place for ours are needed");
  SNT_TRY(api_check_whole(&info->head, SNT_TYPE_cuda_attach_info, sizeof *info, diag));
  if (!info->context) return ir_fail(diag, SNT_E_ARG, "attach", 0, "the host's CUDA context is needed");
  const cuda_adoption from = {info->context, info->user, info->get_proc};
  const uint32_t starved = api_starved(c);
  rt_device *rt = NULL;
  SNT_TRY(api_blame(c, starved, cuda_adopt_device(&c->alloc, &from, &rt, diag), diag));
  return api_device_over(c, rt, out, diag);
}

static bool is_cuda(const snt_device *d) { return d && d->rt && d->rt->v == &rt_cuda; }

snt_result snt_cuda_stream(snt_device *d, CUstream handle, snt_stream **out, snt_diag *diag) {
  if (!is_cuda(d) || !out) return ir_fail(diag, SNT_E_ARG, "stream", 0, "a CUDA device and a place for the stream are needed");
  snt_stream *s = api_take(d->context, sizeof *s);
  const snt_result r = s ? cuda_adopt_stream(d->rt, handle, &s->rt) : SNT_E_HOST_MEM;
  if (r != SNT_OK) {
    api_give(d->context, s, sizeof *s);
    return ir_fail(diag, r, "stream", 0, "out of host memory");
  }
  atomic_init(&s->uses, 1);
  s->device = d;
  api_device_hold(d);
  *out = s;
  return SNT_OK;
}

snt_result snt_cuda_buffer(snt_device *d, uint64_t address, uint64_t bytes, snt_buffer **out, snt_diag *diag) {
  if (!is_cuda(d) || !address || !bytes || !out) return ir_fail(diag, SNT_E_ARG, "buffer", 0, "a CUDA device and its memory are needed");
  if (address % 16) return ir_fail(diag, SNT_E_ARG, "buffer", 0, "the address %llx is not aligned to 16", (unsigned long long)address);
  snt_buffer *b = api_take(d->context, sizeof *b);
  const snt_result r = b ? cuda_adopt_buffer(d->rt, address, bytes, &b->rt) : SNT_E_HOST_MEM;
  if (r != SNT_OK) {
    api_give(d->context, b, sizeof *b);
    return ir_fail(diag, r, "buffer", 0, "out of host memory");
  }
  b->device = d;
  b->bytes = bytes;
  api_device_hold(d);
  *out = b;
  return SNT_OK;
}

snt_result snt_cuda_enqueue(snt_exec *x, snt_stream *s, const snt_cuda_enqueue_info *info, snt_diag *diag) {
  if (!x || !s || !info || s->device != x->device || !is_cuda(x->device))
    return ir_fail(diag, SNT_E_ARG, "enqueue", 0, "an exec and a stream of one CUDA device are needed");
  SNT_TRY(api_check_whole(&info->head, SNT_TYPE_cuda_enqueue_info, sizeof *info, diag));
  if (!info->run) return ir_fail(diag, SNT_E_ARG, "enqueue", 0, "what to run is needed");
  uint32_t count = 0;
  SNT_TRY(exec_bind_run(x, info->run, &count, diag));
  return cuda_submit(s->rt, count, x->dispatches, false, NULL, diag);
}
