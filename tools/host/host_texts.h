/* Texts that the build embeds: tools/host/NAME.hpp becomes the row NAME. */
#ifndef TOOLS_HOST_HOST_TEXTS_H
#define TOOLS_HOST_HOST_TEXTS_H
#include <stdint.h>
typedef struct host_text {
  const char *name, *text;
} host_text;
extern const struct host_text host_texts[];
extern const uint32_t host_text_count;
#endif
