/* What a kernel of a program does on its device: figures of its legalised code, and counts of the interpreter over a sample of its groups. */
#ifndef TOOLS_SINTER_INSPECT_KERNEL_H
#define TOOLS_SINTER_INSPECT_KERNEL_H
#include "api/handles.h"
#include "ir/kir_interp.h"
#include "tools/sinter/tool.h"

typedef enum {
  MIX_MATRIX,  /* products of fragments, by a subgroup */
  MIX_FMA,     /* fused multiply-adds */
  MIX_FLOAT,   /* other arithmetic on floats */
  MIX_SPECIAL, /* roots, divisions, transcendental functions that are kept */
  MIX_INTEGER,
  MIX_MOVE, /* vectors put together and taken apart, casts */
  MIX_GLOBAL,
  MIX_COPY, /* from global to local memory, asynchronously */
  MIX_LOCAL,
  MIX_SYNC, /* barriers, subgroup operations */
  MIX_CONTROL,
  MIX_COUNT
} inspect_mix;
extern const char *const inspect_mix_names[MIX_COUNT];

typedef struct inspect_figures {
  const char *name, *kind;
  const kir_kernel *kernel; /* legalised for the profile's target */
  uint64_t groups, sampled; /* of one dispatch; how many of them were interpreted */
  uint32_t items, live_words, trips;
  uint64_t local_bytes;
  kir_interp_stats stats; /* of the sampled groups */
  kir_interp_inst *insts; /* the same, by instruction */
  double mix[MIX_COUNT];  /* an item */
  double flops, bytes;    /* of the dispatch; bytes: each buffer once */
} inspect_figures;

/* Steps in the order in which they first run, at the symbols of the session; only kernels that hold `filter` in their name, where it is not null.
   The list is the caller's, to be freed with inspect_free. */
snt_result inspect_steps(tool_session *, const char *filter, uint64_t sample, inspect_figures **out, uint32_t *count);
void inspect_free(inspect_figures *, uint32_t count);
#endif
