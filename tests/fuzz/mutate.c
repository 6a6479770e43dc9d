#include "tests/fuzz/fuzz.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint32_t fuzz_dice(uint64_t *state, uint32_t sides) {
  *state ^= *state << 13;
  *state ^= *state >> 7;
  *state ^= *state << 17;
  return (uint32_t)((*state * 0x2545f4914f6cdd1du >> 32) * sides >> 32);
}

size_t fuzz_mutate_bytes(uint8_t *at, size_t size, uint64_t *state) {
  if (!size) return 0;
  const size_t where = fuzz_dice(state, (uint32_t)size), other = fuzz_dice(state, (uint32_t)size);
  size_t length = 1 + fuzz_dice(state, 16);
  switch (fuzz_dice(state, 7)) {
  case 0: at[where] ^= (uint8_t)(1 << fuzz_dice(state, 8)); return size;
  case 1: at[where] = (uint8_t)fuzz_dice(state, 256); return size;
  case 2: at[where] = (uint8_t)(at[where] + (fuzz_dice(state, 2) ? 1 : 255)); return size;
  case 3: return where ? where : size; /* cut off */
  case 4:                              /* a piece of it somewhere else */
    if (length > size - where) length = size - where;
    if (length > size - other) length = size - other;
    memmove(at + where, at + other, length);
    return size;
  case 5: /* a piece less */
    if (length > size - where) length = size - where;
    memmove(at + where, at + where + length, size - where - length);
    return size - length ? size - length : size;
  default: /* the greatest varint */ memset(at + where, 255, size - where < 9 ? size - where : 9); return size;
  }
}

/* ---- texts ---- */
static const char separators[] = " ,[]()=+*{}\n";

static void replace(char *text, size_t room, size_t at, size_t cut, const char *with) {
  const size_t length = strlen(text), added = strlen(with);
  if (at + cut > length || length + added >= room - 1) return;
  memmove(text + at + added, text + at + cut, length - at - cut + 1);
  memcpy(text + at, with, added);
}

static size_t word_start(const char *text, size_t at) {
  while (at && !strchr(separators, text[at - 1])) at--;
  return at;
}

static void repeat_line(char *text, size_t room, size_t at, uint64_t *state) { /* or leave it out */
  static char line[FUZZ_ROOM];
  const size_t length = strlen(text);
  while (at && text[at - 1] != '\n') at--;
  const size_t size = strcspn(text + at, "\n") + 1;
  if (at + size > length) return;
  memcpy(line, text + at, size);
  line[size] = 0;
  const bool gone = fuzz_dice(state, 2), twice = fuzz_dice(state, 2);
  replace(text, room, at, gone ? size : 0, twice ? line : "");
}

void fuzz_mutate_text(char *text, size_t room, const char *const *words, uint32_t count, uint64_t *state) {
  const uint32_t length = (uint32_t)strlen(text);
  const size_t at = fuzz_dice(state, length + 1), start = word_start(text, at), word = strcspn(text + start, separators);
  char other[64];
  switch (fuzz_dice(state, 8)) {
  case 0: replace(text, room, start, word, words[fuzz_dice(state, count)]); break;
  case 1: replace(text, room, at, 0, words[fuzz_dice(state, count)]); break;
  case 2: replace(text, room, at, 1 + fuzz_dice(state, 3), ""); break;
  case 3:
    if (at < length) text[at] = (char)(32 + fuzz_dice(state, 96));
    break;
  case 4: { /* a word takes another's place */
    const size_t from = word_start(text, fuzz_dice(state, length + 1)), size = strcspn(text + from, separators);
    if (size >= sizeof other) return;
    memcpy(other, text + from, size);
    other[size] = 0;
    replace(text, room, start, word, other);
    break;
  }
  case 5: repeat_line(text, room, at, state); break;
  default: /* a number changes a little: such mutants are often accepted */
    for (size_t i = at; i < length; i++)
      if (text[i] >= '0' && text[i] <= '9') {
        text[i] = (char)('0' + fuzz_dice(state, 10));
        return;
      }
  }
}

/* ---- verdicts ---- */
static uint64_t accepted;
void fuzz_accept(void) { accepted++; }
uint64_t fuzz_accepted(void) { return accepted; }

void fuzz_wrong(const char *why) {
  fprintf(stderr, "%s\n", why);
  abort();
}
