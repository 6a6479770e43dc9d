/* What every part of the generator writes by: its failure, the capabilities it asks for, results of instructions, names. */
#include "codegen_spirv/spv_private.h"
#include <stdio.h>

void spv_fail(spv *s, snt_result result, uint32_t inst, const char *format, ...) {
  if (s->result != SNT_OK) return;
  char text[200];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  s->result = ir_fail(s->diag, result, "spirv", 0, "kernel %s, %%%u: %s", s->k->name, inst, text);
}

void spv_need(spv *s, uint32_t capability) {
  for (uint32_t i = 0; i < s->needed.count; i++)
    if (s->needed.at[i] == capability) return;
  if (!IR_PUSH(s->m.arena, &s->needed, capability)) s->m.failed = true;
}

uint32_t spv_result(spv *s, uint32_t op, uint32_t type, const uint32_t *operands, size_t count) {
  const uint32_t id = spv_fresh(&s->m);
  spv_put(&s->m, SPV_CODE, (uint32_t)(count + 3) << 16 | op);
  spv_put(&s->m, SPV_CODE, type);
  spv_put(&s->m, SPV_CODE, id);
  for (size_t i = 0; i < count; i++) spv_put(&s->m, SPV_CODE, operands[i]);
  return id;
}

uint32_t spv_float_op(spv *s, uint32_t op, uint32_t type, uint32_t a, uint32_t b) {
  const uint32_t id = SPV_DO(s, op, type, a, b);
  SPV(&s->m, SPV_DECORATIONS, SpvOpDecorate, id, SpvDecorationNoContraction);
  return id;
}

void spv_put_name(spv *s, uint32_t id, const char *name) {
  const uint32_t at = spv_open(&s->m, SPV_NAMES, SpvOpName);
  spv_put(&s->m, SPV_NAMES, id);
  spv_put_text(&s->m, SPV_NAMES, name);
  spv_close(&s->m, SPV_NAMES, at);
}
