/* What printer and parser of kernel IR share: words for flags and facts, and the rule for the type that a literal takes.
   Tables are read in both directions, so that what is printed is what is parsed. */
#ifndef IR_KIR_TEXT_H
#define IR_KIR_TEXT_H
#include "ir/kernel_private.h"

typedef struct kir_word {
  const char *text;
  uint32_t value;
} kir_word;
extern const kir_word kir_mode_words[], kir_space_words[], kir_round_words[], kir_loop_words[],
    kir_access_words[];                                    /* end with a null text */
const char *kir_word_of(const kir_word *, uint32_t value); /* "?" if there is none */

/* The type a literal takes as operand n, from the instruction's own type (lanes 0: not stated), its memory and the operands that are no
   literals (0 in `args`: a literal). Lanes 0: nothing determines it. */
kir_type kir_literal_type(const kir_kernel *, const kir_inst *, const uint32_t *args, uint32_t n);
/* Type of a sum with these values: u32, or that of a signed or wide one. */
kir_type kir_sum_type(const kir_kernel *, uint32_t count, const uint32_t *values, uint32_t stride);

void kir_print_type(ir_text *, kir_type);
void kir_print_literal(ir_text *, const kir_inst *);
#endif
