/* Profiles as public objects: built in, from text, masked, of a device. */
#include "api/handles.h"

static snt_result make(snt_context *c, const cost_profile *p, const snt_device *of, snt_profile **out) {
  snt_profile *made = api_take(c, sizeof *made);
  if (!made) return SNT_E_HOST_MEM;
  made->context = c;
  made->profile = *p;
  if (of && !of->door) api_device_hold(made->device = (snt_device *)(uintptr_t)of);
  api_context_hold(c);
  *out = made;
  return SNT_OK;
}

snt_result snt_profile_builtin(snt_context *c, const char *name, snt_profile **out) {
  cost_profile p;
  if (!c || !name || !out) return SNT_E_ARG;
  if (!cost_profile_builtin(name, &p)) return SNT_E_UNSUPPORTED;
  return make(c, &p, NULL, out);
}

snt_result snt_profile_parse(snt_context *c, const char *text, size_t length, snt_profile **out, snt_diag *diag) {
  cost_profile p;
  if (!c || !text || !out) return ir_fail(diag, SNT_E_ARG, "profile", 0, "no text");
  SNT_TRY(cost_profile_parse(&p, text, length, diag));
  return make(c, &p, NULL, out);
}

snt_result snt_profile_mask(const snt_profile *from, const char *mask, snt_profile **out, snt_diag *diag) {
  if (!from || !out) return ir_fail(diag, SNT_E_ARG, "profile", 0, "no profile");
  cost_profile p = from->profile;
  SNT_TRY(cost_profile_mask(&p, mask, diag));
  return make(from->context, &p, from->device, out);
}

snt_result snt_profile_print(const snt_profile *p, char *text, size_t *length) {
  if (!p || !length) return SNT_E_ARG;
  ir_arena temp;
  ir_text out;
  ir_arena_init(&temp, &p->context->alloc);
  ir_text_init(&out, &temp);
  cost_profile_print(&p->profile, &out);
  const snt_result r = api_copy_text(&out, text, length);
  ir_arena_free(&temp);
  return r;
}

void api_profile_forget(snt_profile *p) {
  if (p->device) snt_device_destroy(p->device);
  p->device = NULL;
}

void snt_profile_destroy(snt_profile *p) {
  if (!p) return;
  api_profile_forget(p);
  snt_context *c = p->context;
  api_give(c, p, sizeof *p);
  snt_context_destroy(c);
}

snt_result snt_device_profile(const snt_device *d, snt_profile **out) {
  if (!d || !out) return SNT_E_ARG;
  return make(d->context, &d->profile, d, out);
}
