/* What fuzzers share. A fuzzer is a file of this folder with LLVMFuzzerTestOneInput, which ends the program where an input is mistreated, and a row of
   facts; libFuzzer runs it, or driver.c with the mutations of mutate.c. */
#ifndef TESTS_FUZZ_H
#define TESTS_FUZZ_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct fuzz_facts {
  const char *name;
  const char *const *words; /* of a text; null: inputs are bytes */
  uint32_t word_count;
  /* Percent of the corpus and of its mutations that must be accepted, or nothing behind the first check is reached. */
  uint32_t least_of_corpus, least_of_mutations;
} fuzz_facts;
extern const fuzz_facts fuzz;

enum { FUZZ_ROOM = 1 << 16 };
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
void fuzz_accept(void);           /* the input at hand is what it should be, or near enough to be used */
void fuzz_wrong(const char *why); /* the input is mistreated: does not return */
uint64_t fuzz_accepted(void);

/* ---- mutations: the same state gives the same one ---- */
uint32_t fuzz_dice(uint64_t *state, uint32_t sides); /* below sides */
size_t fuzz_mutate_bytes(uint8_t *at, size_t size, uint64_t *state);
/* `text` has `room` bytes and ends with 0. Words are put in whole. */
void fuzz_mutate_text(char *text, size_t room, const char *const *words, uint32_t count, uint64_t *state);
#endif
