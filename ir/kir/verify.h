/* What the verifier's files share, and the uniformity analysis with its control part. Not for other folders. */
#ifndef IR_KIR_VERIFY_H
#define IR_KIR_VERIFY_H
#include "ir/kernel_private.h"

/* value: KIR_UNIFORM_* of each value; control: of the control that reaches each instruction (for an opener: inside it). */
typedef struct kir_uniformity {
  const kir_kernel *k;
  kir_regions regions;
  uint8_t *value, *control;
} kir_uniformity;
bool kir_uniformity_find(const kir_kernel *, ir_arena *, const kir_regions *, kir_uniformity *out);

typedef struct kir_verifier {
  const kir_kernel *k;
  ir_arena *arena;
  ir_text *errors; /* may be null */
  snt_diag *diag;
  uint32_t count;
  kir_regions regions;
} kir_verifier;
/* Records one error about instruction `inst` (0: a declaration). */
void kir_complain(kir_verifier *, uint32_t inst, const char *format, ...) IR_PRINTF(3, 4);
void kir_verify_declarations(kir_verifier *);
void kir_verify_structure(kir_verifier *); /* carries, yields, results; needs regions */
#endif
