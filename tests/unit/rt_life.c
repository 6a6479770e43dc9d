#include "tests/unit/rt_life.h"

snt_result rt_life_use(rt_life *t, rt_device *device, const rt_code *code) {
  enum { AT = 1024 };
  const rt_vtable *v = device->v;
  float data[RT_LIFE_NUMBERS] = {1};
  uint32_t block[2] = {RT_LIFE_NUMBERS, 0x40000000}, count = 2;
  uint64_t ns[2] = {0};
  size_t size = t->binary_size;
  SNT_TRY(v->stream_create(device, &t->stream, NULL));
  SNT_TRY(v->pipeline_create(device, code, NULL, 0, &t->pipeline, NULL));
  if (v->pipeline_binary(t->pipeline, t->binary, &size) != SNT_OK) size = 0; /* nothing is cached then */
  SNT_TRY(v->pipeline_create(device, code, t->binary, size, &t->again, NULL));
  SNT_TRY(v->buffer_create(device, sizeof data + AT, &t->x, NULL));
  SNT_TRY(v->buffer_create(device, sizeof data, &t->y, NULL));
  SNT_TRY(v->upload(t->stream, t->x, AT, data, sizeof data, NULL));
  struct rt_bound bindings[2] = {{t->x, AT, sizeof data, KIR_READ}, {t->y, 0, sizeof data, KIR_WRITE}};
  rt_dispatch dispatches[2] = {
      {.pipeline = t->pipeline, .groups = 1, .binding_count = 2, .bindings = bindings, .block = block, .block_bytes = 8}};
  dispatches[1] = dispatches[0], dispatches[1].pipeline = t->again;
  for (uint32_t i = 0; i < t->turns; i++) {
    if (t->event) v->event_destroy(t->event);
    t->event = NULL;
    SNT_TRY(v->submit(t->stream, 2, dispatches, true, &t->event, NULL));
    SNT_TRY(v->event_wait(t->event, t->wait_ns));
    SNT_TRY(v->event_timings(t->event, &count, ns));
  }
  return v->download(t->stream, t->y, 0, t->result, sizeof t->result, NULL);
}

snt_result rt_life_ask(rt_device *device) {
  rt_buffer *another = NULL;
  const snt_result result = device->v->buffer_create(device, 16, &another, NULL);
  device->v->buffer_destroy(another);
  return result;
}

void rt_life_free(rt_life *t, rt_device *device) {
  const rt_vtable *v = device->v;
  v->event_destroy(t->event);
  v->buffer_destroy(t->x), v->buffer_destroy(t->y);
  v->pipeline_destroy(t->pipeline), v->pipeline_destroy(t->again);
  v->stream_destroy(t->stream);
}
