/* What ir/kir/widen.c and ir/kir/words.c share: narrow values live in 32-bit registers, and memory holds them in one of four ways. */
#ifndef IR_KIR_NARROW_H
#define IR_KIR_NARROW_H
#include "ir/kir_pass_private.h"

typedef enum {
  NARROW_PLAIN, /* elements as declared */
  NARROW_BYTES, /* bool as u8 0 or 1 */
  NARROW_CELLS, /* elements widened to the register type */
  NARROW_WORDS  /* packed into u32 words */
} narrow_storage;

kir_type narrow_register(kir_type, const kir_caps *); /* the type a value has in registers; bool and wide types are themselves */
/* Bits of a register value of element type `base`, in the low bits of u32 lanes (the rest zero), and back. */
uint32_t narrow_to_bits(kir_kernel *, uint32_t value, uint32_t base);
uint32_t narrow_from_bits(kir_kernel *, uint32_t bits, uint32_t base, const kir_caps *);

/* An access to a memory of words: index of the first element (its declared type `base`), lanes, bytes of proven alignment, flags of the store. */
typedef struct narrow_access {
  uint32_t memory, base, lanes, align, index, flags;
} narrow_access;
uint32_t narrow_load_words(kir_kernel *, const narrow_access *, const kir_caps *); /* the register value */
void narrow_store_words(kir_kernel *, const narrow_access *, uint32_t value);      /* of the register type */
void narrow_declare_words(kir_kernel *, uint32_t memory);                          /* rewrites the declaration */
#endif
