/* Debug information for those who ask (caps.about): the kernel's own text as the source, the line of each instruction in it, and the text's names of values,
   memories and scalars. In: the kernel being emitted. Out: OpString, OpSource, OpLine, OpName; nothing of it changes what the module computes. */
#include "codegen_spirv/spv_private.h"
#include <stdio.h>

enum { PART = 200000 }; /* bytes of text in one instruction, whose length is 16 bits of words */

static void put_source(spv *s, const char *text) {
  char part[256];
  uint32_t at = spv_open(&s->m, SPV_NAMES, SpvOpString);
  s->source = spv_fresh(&s->m);
  spv_put(&s->m, SPV_NAMES, s->source);
  snprintf(part, sizeof part, "%.200s.kir", s->k->name);
  spv_put_text(&s->m, SPV_NAMES, part);
  spv_close(&s->m, SPV_NAMES, at);
  for (size_t done = 0, length = strlen(text); done < length; done += PART) {
    const char *piece = ir_arena_text(s->m.arena, text + done, length - done < PART ? length - done : PART);
    at = spv_open(&s->m, SPV_NAMES, done ? SpvOpSourceContinued : SpvOpSource);
    for (int i = 0; i < 3 && !done; i++) spv_put(&s->m, SPV_NAMES, i == 2 ? s->source : 0); /* no language that has a number, no version */
    if (piece) spv_put_text(&s->m, SPV_NAMES, piece);
    else s->m.failed = true;
    spv_close(&s->m, SPV_NAMES, at);
  }
}

void spv_debug_source(spv *s) {
  ir_text text;
  ir_text_init(&text, s->m.arena);
  s->places = IR_NEW_ARRAY(s->m.arena, kir_place, s->k->insts.count + 1u);
  if (!s->places) {
    s->m.failed = true;
    return;
  }
  ir_text_format(&text, "%s\n", s->caps->about);
  kir_print_places(s->k, &text, s->places);
  if (text.failed) s->m.failed = true;
  else put_source(s, text.at);
}

/* What has no line of its own, literals and sums in brackets, is part of what comes before it. */
void spv_debug_line(spv *s, uint32_t inst) {
  if (s->places[inst].line) SPV(&s->m, SPV_CODE, SpvOpLine, s->source, s->places[inst].line, 0);
}

void spv_debug_names(spv *s) {
  char name[16];
  for (uint32_t i = 1; i < s->k->insts.count; i++) {
    if (!s->places[i].number || !s->id[i]) continue;
    snprintf(name, sizeof name, "v%u", s->places[i].number - 1); /* %N of the text */
    spv_put_name(s, s->id[i], name);
  }
  for (uint32_t m = 0; m < s->k->memories.count; m++)
    for (uint32_t v = 0; v < IR_COUNT(s->memory[m].view); v++)
      if (s->memory[m].view[v].variable) spv_put_name(s, s->memory[m].view[v].variable, s->k->memories.at[m].name);
}
