/* A kernel on a device, from passes to results. */
#include "tests/unit/codegen_support.h"

static bool is_written(const kir_kernel *k, uint32_t binding) {
  for (uint32_t i = 0; i < k->memories.count; i++)
    if (kir_binding(k, i) == binding) return (k->memories.at[i].access & KIR_WRITE) != 0;
  return false;
}

static snt_result move(rt_stream *stream, const rt_vtable *v, const codegen_dispatch *d, rt_buffer **buffers, snt_diag *diag) {
  for (uint32_t b = 0; b < d->count; b++)
    if (is_written(d->kernel, b)) SNT_TRY(v->download(stream, buffers[b], 0, d->data[b], d->bytes[b], diag));
  return SNT_OK;
}

static snt_result dispatch(rt_device *device, rt_pipeline *pipeline, const codegen_dispatch *d, snt_diag *diag) {
  const rt_vtable *v = device->v;
  rt_stream *stream = NULL;
  rt_buffer *buffers[16] = {NULL};
  struct rt_bound bound[16];
  snt_result result = v->stream_create(device, &stream, diag);
  for (uint32_t b = 0; b < d->count && result == SNT_OK; b++) {
    const codegen_image *image = &d->images[b];
    if (!image->width) result = v->buffer_create(device, d->bytes[b], &buffers[b], diag);
    else if (v->image_create) result = v->image_create(device, image->format, image->width, image->height, &buffers[b], diag);
    else result = ir_fail(diag, SNT_E_UNSUPPORTED, "test", 0, "the backend has no images");
    if (result == SNT_OK) result = v->upload(stream, buffers[b], 0, d->data[b], d->bytes[b], diag);
    bound[b] = (struct rt_bound){buffers[b], 0, d->bytes[b], is_written(d->kernel, b) ? KIR_READ | KIR_WRITE : KIR_READ};
  }
  const rt_dispatch one = {.pipeline = pipeline,
                           .groups = d->groups,
                           .binding_count = d->count,
                           .bindings = bound,
                           .block = d->block,
                           .block_bytes = kir_block_bytes(d->kernel),
                           .barrier = true};
  if (result == SNT_OK) result = v->submit(stream, 1, &one, false, NULL, diag);
  if (result == SNT_OK) result = v->wait(stream, diag);
  if (result == SNT_OK) result = move(stream, v, d, buffers, diag);
  for (uint32_t b = 0; b < d->count; b++)
    if (buffers[b]) v->buffer_destroy(buffers[b]);
  if (stream) v->stream_destroy(stream);
  return result;
}

snt_result codegen_run_on(rt_device *device, const codegen_dispatch *d, ir_arena *arena, codegen_code *out, snt_diag *diag) {
  const codegen_target *target = rt_codegen(device->target);
  const kir_caps *caps = &device->profile.caps;
  kir_kernel legal;
  codegen_code code = {0};
  rt_pipeline *pipeline = NULL;
  if (!target) return ir_fail(diag, SNT_E_UNSUPPORTED, "test", 0, "the device takes no generated code");
  kir_init(&legal, arena, d->kernel->name);
  SNT_TRY(kir_run_passes(d->kernel, &legal, caps, NULL, NULL, diag));
  SNT_TRY(target->emit(&legal, caps, arena, &code, diag));
  if (out) *out = code;
  const rt_code given = {.data = code.data,
                         .size = code.size,
                         .entry = target->bit == SNT_TARGET_SPIRV ? "main" : legal.name,
                         .kernel = &legal,
                         .items = {legal.items[0], legal.items[1], legal.items[2]},
                         .binding_count = kir_binding_count(&legal),
                         .block_bytes = kir_block_bytes(&legal)};
  SNT_TRY(device->v->pipeline_create(device, &given, NULL, 0, &pipeline, diag));
  const snt_result result = dispatch(device, pipeline, d, diag);
  device->v->pipeline_destroy(pipeline);
  return result;
}
