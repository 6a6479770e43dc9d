/* --fuse KIND:NAME,NAME..: contracts about kernels, by the names of values or of outputs. */
#include "tools/sinter/tool.h"
#include <string.h>

static uint32_t kind_of(const char *text, size_t length) {
  static const char *const names[] = {[SNT_MUST_FUSE] = "must", [SNT_NEVER_FUSE] = "never", [SNT_KEEP] = "keep", [SNT_BARRIER] = "barrier"};
  for (uint32_t i = SNT_MUST_FUSE; i <= SNT_BARRIER; i++)
    if (strlen(names[i]) == length && !strncmp(names[i], text, length)) return i;
  return 0;
}

static snt_result add_contract(tool_session *s, const char *text) {
  enum { MOST = 256 };
  snt_value values[MOST];
  char name[256];
  const size_t word = strcspn(text, ":");
  const uint32_t kind = kind_of(text, word);
  uint32_t count = 0;
  if (!kind || !text[word]) return host_fail(&s->diag, SNT_E_ARG, "fuse", "--fuse %s: must:, never:, keep: or barrier: and names", text);
  for (const char *at = text + word; *at && count < MOST;) {
    const size_t length = strcspn(++at, ",");
    snprintf(name, sizeof name, "%.*s", (int)length, at);
    values[count] = snt_graph_find(s->graph, name);
    if (!values[count++]) return host_fail(&s->diag, SNT_E_ARG, "fuse", "--fuse %s: no value \"%s\" in the model", text, name);
    at += length;
  }
  const snt_result r = snt_graph_contract(s->graph, kind, values, count);
  return r == SNT_OK ? r : host_fail(&s->diag, r, "fuse", "--fuse %s: too few names", text);
}

snt_result tool_steer(tool_session *s) {
  snt_result r = SNT_OK;
  if (s->options.fuse_count && !s->graph) return host_fail(&s->diag, SNT_E_ARG, "fuse", "--fuse: a saved program is fused already");
  for (uint32_t i = 0; i < s->options.fuse_count && r == SNT_OK; i++) r = add_contract(s, s->options.fuse[i]);
  return r;
}
