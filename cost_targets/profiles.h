/* The device profiles that the build embeds: the text of every cost_targets/profiles/NAME.profile, sorted by name. Constant data;
   the texts are NUL-terminated and live as long as the library. */
#ifndef COST_TARGETS_PROFILES_H
#define COST_TARGETS_PROFILES_H
#include <stdint.h>

struct cost_profile_text {
  const char *name, *text;
};

extern const struct cost_profile_text cost_profile_texts[];
extern const uint32_t cost_profile_count;

#endif
