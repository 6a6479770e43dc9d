/* Devices, buffers, streams and events over the backends' vtables. `host` is the graph evaluator: buffers of it are host memory. */
#include "api/handles.h"

static const char host_profile[] = "base = interp\nname = host\n";

static void fill_info(snt_device_info *to, const rt_device_desc *from) {
  const snt_out_head head = to->head;
  memset(to, 0, sizeof *to);
  to->head = head;
  memcpy(to->selector, from->selector, sizeof to->selector);
  memcpy(to->name, from->name, sizeof to->name);
  memcpy(to->driver, from->driver, sizeof to->driver);
  memcpy(to->profile, from->profile, sizeof to->profile);
  to->api = from->api;
  to->device_class = from->device_class;
  memcpy(to->id, from->id, sizeof to->id);
}

static const rt_device_desc host_desc = {
    .selector = "host", .name = "Sinter host evaluator", .driver = "sinter " SNT_VERSION_TEXT, .profile = "host", .api = SNT_TARGET_HOST};

snt_result snt_device_list(snt_context *c, uint32_t *count, uint32_t stride, snt_device_info *out) {
  if (!c || !count || api_is_short(stride, sizeof *out)) return SNT_E_ARG;
  const rt_hooks hooks = {c->backend_count, c->backend_list};
  uint32_t found = 0;
  SNT_TRY(rt_list_devices(&c->alloc, &hooks, &found, NULL, 0));
  const uint32_t capacity = *count;
  *count = found + 1;
  if (!out) return SNT_OK;
  rt_device_desc *descs = api_take(c, (found + 1) * sizeof *descs);
  if (!descs) return SNT_E_HOST_MEM;
  descs[0] = host_desc;
  uint32_t again = 0;
  const snt_result r = rt_list_devices(&c->alloc, &hooks, &again, descs + 1, found);
  if (!stride) stride = sizeof *out;
  for (uint32_t i = 0; i < *count && i < capacity; i++) fill_info((snt_device_info *)(void *)((char *)out + (size_t)i * stride), &descs[i]);
  api_give(c, descs, (found + 1) * sizeof *descs);
  if (r != SNT_OK && r != SNT_INCOMPLETE) return r;
  return *count > capacity ? SNT_INCOMPLETE : SNT_OK;
}

static void take_real(snt_device *d) {
  d->profile = d->rt->profile;
  rt_device_desc desc = {.api = d->rt->target};
  memcpy(desc.selector, d->rt->selector, sizeof desc.selector);
  memcpy(desc.name, d->rt->name, sizeof desc.name);
  memcpy(desc.driver, d->rt->driver, sizeof desc.driver);
  memcpy(desc.profile, d->profile.name, sizeof desc.profile);
  fill_info(&d->info, &desc);
}

static snt_result open_real(snt_device *d, const char *selector, snt_diag *diag) {
  const rt_hooks hooks = {d->context->backend_count, d->context->backend_list};
  SNT_TRY(rt_open_device(&d->context->alloc, &hooks, selector, &d->rt, diag));
  take_real(d);
  return SNT_OK;
}

snt_result api_device_over(snt_context *c, rt_device *rt, snt_device **out, snt_diag *diag) {
  const codegen_target *generator = rt_codegen(rt->target);
  if (generator) rt_narrow_caps(&rt->profile.caps, generator->caps);
  snt_device *d = api_take(c, sizeof *d);
  if (!d) {
    rt->v->close(rt);
    return ir_no_memory(diag, "attach");
  }
  atomic_init(&d->uses, 1);
  d->context = c;
  d->rt = rt;
  take_real(d);
  api_context_hold(c);
  *out = d;
  return SNT_OK;
}

snt_result snt_device_open(snt_context *c, const snt_open_info *info, snt_device **out, snt_diag *diag) {
  if (!c || !out) return ir_fail(diag, SNT_E_ARG, "open", 0, "no context");
  if (info) SNT_TRY(api_check_whole(&info->head, SNT_TYPE_open_info, sizeof *info, diag));
  const char *selector = info ? info->selector : NULL;
  snt_device *d = api_take(c, sizeof *d);
  if (!d) return ir_no_memory(diag, "open");
  atomic_init(&d->uses, 1);
  d->context = c;
  snt_result r;
  if (selector && !strcmp(selector, "host")) {
    d->host = true;
    fill_info(&d->info, &host_desc);
    r = cost_profile_parse(&d->profile, host_profile, sizeof host_profile - 1, diag);
  } else {
    const uint32_t starved = api_starved(c);
    r = api_blame(c, starved, open_real(d, selector, diag), diag);
  }
  if (r == SNT_OK && info && info->mask) {
    r = cost_profile_mask(&d->profile, info->mask, diag);
    if (r == SNT_OK && d->rt) d->rt->profile = d->profile;
  }
  if (r != SNT_OK) {
    if (d->rt) d->rt->v->close(d->rt);
    api_give(c, d, sizeof *d);
    return r;
  }
  api_context_hold(c);
  *out = d;
  return SNT_OK;
}

void api_device_hold(snt_device *d) { atomic_fetch_add(&d->uses, 1); }
void snt_device_destroy(snt_device *d) {
  if (!d || atomic_fetch_sub(&d->uses, 1) != 1) return;
  snt_context *c = d->context;
  if (d->rt) d->rt->v->close(d->rt);
  if (d->door) d->door->close(d);
  api_give(c, d, sizeof *d);
  snt_context_destroy(c);
}

snt_result snt_device_get_info(const snt_device *d, snt_device_info *out) {
  if (!d || !out) return SNT_E_ARG;
  const snt_out_head head = out->head;
  *out = d->info;
  out->head = head;
  return SNT_OK;
}

/* ---- buffers ---- */

snt_result snt_buffer_create(snt_device *d, uint64_t bytes, snt_buffer **out, snt_diag *diag) {
  if (!d || !out) return ir_fail(diag, SNT_E_ARG, "buffer", 0, "no device");
  if (d->door) return ir_fail(diag, SNT_E_UNSUPPORTED, "buffer", 0, "the memory of %s is its host's", d->info.selector);
  if (bytes > (uint64_t)1 << 46) return ir_fail(diag, SNT_E_DEVICE_MEM, "buffer", 0, "%llu bytes", (unsigned long long)bytes);
  snt_buffer *b = api_take(d->context, sizeof *b);
  if (!b) return ir_no_memory(diag, "buffer");
  b->device = d;
  b->bytes = (bytes + 15) / 16 * 16;
  if (!b->bytes) b->bytes = 16;
  snt_result r = SNT_OK;
  if (d->host) {
    b->host = api_take(d->context, b->bytes);
    if (!b->host) r = ir_fail(diag, SNT_E_DEVICE_MEM, "buffer", 0, "%llu bytes", (unsigned long long)bytes);
  } else {
    r = d->rt->v->buffer_create(d->rt, b->bytes, &b->rt, diag);
  }
  if (r != SNT_OK) {
    api_give(d->context, b, sizeof *b);
    return r;
  }
  api_device_hold(d);
  *out = b;
  return SNT_OK;
}

void snt_buffer_destroy(snt_buffer *b) {
  if (!b) return;
  snt_device *d = b->device;
  if (b->rt) d->rt->v->buffer_destroy(b->rt);
  else api_give(d->context, b->host, b->bytes);
  api_give(d->context, b, sizeof *b);
  snt_device_destroy(d);
}

static snt_result check_range(const snt_buffer *b, uint64_t offset, uint64_t bytes, snt_diag *diag) {
  if (offset > b->bytes || bytes > b->bytes - offset)
    return ir_fail(diag, SNT_E_ARG, "buffer", 0, "bytes %llu to %llu of a buffer of %llu", (unsigned long long)offset,
                   (unsigned long long)(offset + bytes), (unsigned long long)b->bytes);
  return SNT_OK;
}

snt_result snt_buffer_upload(snt_stream *s, snt_buffer *b, uint64_t offset, const void *src, uint64_t bytes, snt_diag *diag) {
  if (!s || !b || (!src && bytes) || b->device != s->device)
    return ir_fail(diag, SNT_E_ARG, "upload", 0, "a stream and a buffer of one device, and data, are needed");
  SNT_TRY(check_range(b, offset, bytes, diag));
  if (!s->rt) {
    memcpy((char *)b->host + offset, src, bytes);
    return SNT_OK;
  }
  return s->rt->v->upload(s->rt, b->rt, offset, src, bytes, diag);
}

snt_result snt_buffer_download(snt_stream *s, snt_buffer *b, uint64_t offset, void *dst, uint64_t bytes, snt_diag *diag) {
  if (!s || !b || (!dst && bytes) || b->device != s->device)
    return ir_fail(diag, SNT_E_ARG, "download", 0, "a stream and a buffer of one device, and room, are needed");
  SNT_TRY(check_range(b, offset, bytes, diag));
  if (!s->rt) {
    memcpy(dst, (char *)b->host + offset, bytes);
    return SNT_OK;
  }
  return s->rt->v->download(s->rt, b->rt, offset, dst, bytes, diag);
}

/* ---- streams and events ---- */

snt_result snt_stream_create(snt_device *d, snt_stream **out, snt_diag *diag) {
  if (!d || !out) return ir_fail(diag, SNT_E_ARG, "stream", 0, "no device");
  if (d->door) return ir_fail(diag, SNT_E_UNSUPPORTED, "stream", 0, "the queues of %s are its host's", d->info.selector);
  snt_stream *s = api_take(d->context, sizeof *s);
  if (!s) return ir_no_memory(diag, "stream");
  atomic_init(&s->uses, 1);
  s->device = d;
  const snt_result r = d->host ? SNT_OK : d->rt->v->stream_create(d->rt, &s->rt, diag);
  if (r != SNT_OK) {
    api_give(d->context, s, sizeof *s);
    return r;
  }
  api_device_hold(d);
  *out = s;
  return SNT_OK;
}

void api_stream_drop(snt_stream *s) {
  if (!s || atomic_fetch_sub(&s->uses, 1) != 1) return;
  snt_device *d = s->device;
  if (s->rt) s->rt->v->stream_destroy(s->rt);
  api_give(d->context, s, sizeof *s);
  snt_device_destroy(d);
}
void snt_stream_destroy(snt_stream *s) { api_stream_drop(s); }

snt_result snt_stream_wait(snt_stream *s, snt_diag *diag) {
  if (!s) return ir_fail(diag, SNT_E_ARG, "wait", 0, "no stream");
  return s->rt ? s->rt->v->wait(s->rt, diag) : SNT_OK;
}

snt_result snt_event_wait(snt_event *e, uint64_t timeout_ns) {
  if (!e) return SNT_E_ARG;
  return e->rt ? e->rt->v->event_wait(e->rt, timeout_ns) : SNT_OK;
}

/* The time of a launch stands at the first of its steps. */
static snt_result spread_timings(const snt_event *e, uint32_t *count, uint64_t *ns) {
  snt_context *c = e->stream->device->context;
  const uint32_t room = *count;
  uint32_t launches = e->launches, at = 0;
  *count = e->steps;
  if (!ns) return SNT_OK;
  uint64_t *each = api_take(c, launches * sizeof *each);
  if (!each) return SNT_E_HOST_MEM;
  const snt_result r = e->rt->v->event_timings(e->rt, &launches, each);
  for (uint32_t i = 0; r == SNT_OK && i < launches; i++)
    for (uint32_t n = 0; n < e->spread[i]; n++, at++)
      if (at < room) ns[at] = n ? 0 : each[i];
  api_give(c, each, e->launches * sizeof *each);
  return r == SNT_OK && room < e->steps ? SNT_INCOMPLETE : r;
}

snt_result snt_event_timings(const snt_event *e, uint32_t *count, uint64_t *ns) {
  if (!e || !count) return SNT_E_ARG;
  if (e->rt && e->spread) return spread_timings(e, count, ns);
  if (e->rt) return e->rt->v->event_timings(e->rt, count, ns);
  const uint32_t room = *count;
  *count = 1;
  if (!ns) return SNT_OK;
  if (!room) return SNT_INCOMPLETE;
  ns[0] = e->host_ns;
  return SNT_OK;
}

void snt_event_destroy(snt_event *e) {
  if (!e) return;
  snt_stream *s = e->stream;
  snt_context *c = s->device->context;
  if (e->rt) e->rt->v->event_destroy(e->rt);
  api_give(c, e->spread, e->launches * sizeof *e->spread);
  api_give(c, e, sizeof *e);
  api_stream_drop(s);
}
