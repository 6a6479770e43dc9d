/* Profiles without a cost model: of a program's profile its name, of a device's what Vulkan said (runtime/vulkan/profile.c). The full library's
   definitions are in cost_targets/profile.c. */
#include "cost_targets/profile.h"

static void set_name(cost_profile *p, const char *name, size_t length) {
  if (length >= sizeof p->name) length = sizeof p->name - 1;
  memcpy(p->name, name, length);
  p->name[length] = 0;
}

const cost_profile *cost_profile_builtin(const char *name, cost_profile *storage) {
  *storage = (cost_profile){.simd = COST_SIMD_LANES};
  set_name(storage, name, strlen(name));
  return storage;
}

/* The first line is `name = NAME`, as cost_profile_print writes it. */
snt_result cost_profile_parse(cost_profile *p, const char *text, size_t length, snt_diag *diag) {
  static const char key[] = "name = ";
  const size_t before = sizeof key - 1;
  *p = (cost_profile){.simd = COST_SIMD_LANES};
  size_t end = 0;
  while (end < length && text[end] != '\n') end++;
  if (end <= before || memcmp(text, key, before) != 0 || memchr(text, 0, end))
    return ir_fail(diag, SNT_E_PARSE, "profile", 0, "the profile has no name");
  set_name(p, text + before, end - before);
  return SNT_OK;
}

/* Nobody reads it: no exec is made on a device of this library's own. */
const char *cost_caps_name(size_t member) {
  (void)member;
  return "";
}
