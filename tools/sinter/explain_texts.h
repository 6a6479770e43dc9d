/* The page of `sinter explain --html`, which the build embeds: tools/sinter/explain.html. */
#ifndef TOOLS_SINTER_EXPLAIN_TEXTS_H
#define TOOLS_SINTER_EXPLAIN_TEXTS_H
#include <stdint.h>
typedef struct explain_text {
  const char *name, *text;
} explain_text;
extern const struct explain_text explain_texts[];
extern const uint32_t explain_text_count;
#endif
