/* Operators of the user's own in SPIR-V: a function that GLSL was compiled to is taken out of its module and put behind the kernel, with all ids
   renumbered and its types and constants made this module's. In: words that nobody vouches for. What is no function of values (memory, built-in
   variables, atomics, capabilities beyond Shader) is refused with the operator's name. */
#include "codegen_spirv/spv_private.h"

enum { MAX_IDS = 1 << 16, MAX_DEPTH = 32, HEADER = 5, TEXT_WORDS = 64 };
enum {
  OP_UNDEF = 1,
  OP_SOURCE = 3,
  OP_LINE = 8,
  OP_TYPE_MATRIX = 24,
  OP_FUNCTION_PARAMETER = 55,
  OP_CALL = 57,
  OP_SWITCH = 251,
  OP_NO_LINE = 317
};

typedef struct merge {
  spv *s;
  const kir_own *own;
  const uint32_t *words;
  uint32_t count, bound;
  uint32_t *defined, *body; /* by id: place of a type, constant or import; of a function */
  uint32_t *map;            /* old id -> new, 0: none yet */
  uint32_t *wanted, wanted_count, done;
  uint32_t depth; /* of types inside types: a damaged one may be inside itself */
  bool failed;
} merge;

static uint32_t refuse(merge *m, const char *what, uint32_t number) {
  if (!m->failed) spv_fail(m->s, SNT_E_UNSUPPORTED, 0, "operator %s: its GLSL %s (%u)", m->own->name, what, number);
  m->failed = true;
  return 0;
}

/* ---- which operands are ids ---- */
typedef struct layout {
  uint16_t op;
  uint8_t ids, literals; /* so many ids, so many literals, then ids again; literals REST: nothing but literals follows */
} layout;
enum { REST = 255 };
// clang-format off
static const layout layouts[] = {
    {SpvOpTypeInt, 1, REST}, {SpvOpTypeFloat, 1, REST}, {SpvOpTypeVector, 2, REST}, {OP_TYPE_MATRIX, 2, REST}, {SpvOpTypePointer, 1, 1},
    {SpvOpConstant, 2, REST}, {SpvOpVariable, 2, 1}, {SpvOpLoad, 3, REST}, {SpvOpStore, 2, REST}, {SpvOpVectorShuffle, 4, REST},
    {SpvOpCompositeExtract, 3, REST}, {SpvOpCompositeInsert, 4, REST}, {SpvOpExtInst, 3, 1}, {SpvOpSelectionMerge, 1, REST},
    {SpvOpLoopMerge, 2, REST}, {SpvOpBranchConditional, 3, REST}, {SpvOpFunction, 2, 1},
};
/* What a function of values is made of, from and to. */
static const struct { uint16_t from, to; } allowed[] = {
    {OP_UNDEF, OP_UNDEF}, {SpvOpExtInst, SpvOpExtInst}, {OP_FUNCTION_PARAMETER, OP_CALL}, {SpvOpVariable, SpvOpVariable}, {SpvOpLoad, SpvOpStore},
    {SpvOpAccessChain, 66}, {77, 84}, {SpvOpConvertFToU, SpvOpConvertUToF}, {SpvOpBitcast, SpvOpBitcast}, {SpvOpSNegate, 152}, {154, 191},
    {SpvOpShiftRightLogical, SpvOpBitCount}, {SpvOpPhi, 255},
};
// clang-format on

static layout layout_of(uint32_t op) {
  for (uint32_t i = 0; i < IR_COUNT(layouts); i++)
    if (layouts[i].op == op) return layouts[i];
  return (layout){(uint16_t)op, REST, 0};
}

static bool is_allowed(uint32_t op) {
  for (uint32_t i = 0; i < IR_COUNT(allowed); i++)
    if (op >= allowed[i].from && op <= allowed[i].to) return op != 252; /* OpKill ends more than the function */
  return false;
}

static bool is_literal(uint32_t op, uint32_t n) {
  const layout l = layout_of(op);
  if (op == OP_SWITCH) return n >= 2 && n % 2 == 0;
  return n >= l.ids && (l.literals == REST || n < (uint32_t)l.ids + l.literals);
}

static bool is_typed(uint32_t op) { return op == OP_UNDEF || (op >= SpvOpConstantTrue && op <= SpvOpConstantNull); }

/* ---- the module, read once ---- */
static uint32_t op_at(const merge *m, uint32_t at) { return m->words[at] & 0xffff; }
static uint32_t length_at(const merge *m, uint32_t at) { return m->words[at] >> 16; }

static bool name_is(const merge *m, uint32_t at, const char *name) {
  const size_t room = (length_at(m, at) - 2) * sizeof *m->words, length = strlen(name);
  return room > length && !memcmp(&m->words[at + 2], name, length) && ((const char *)&m->words[at + 2])[length] == '(';
}

static void read_one(merge *m, uint32_t at, const char *wanted, uint32_t *found) {
  const uint32_t op = op_at(m, at), length = length_at(m, at), *w = &m->words[at];
  const uint32_t where = op == SpvOpFunction || is_typed(op) || op == SpvOpVariable ? 2 : 1;
  const bool type = op >= SpvOpTypeVoid && op <= SpvOpTypeFunction;
  if (op == SpvOpCapability && length > 1 && w[1] != SpvCapabilityShader) refuse(m, "needs a capability", w[1]);
  if (op == SpvOpName && length > 2 && w[1] < m->bound && name_is(m, at, wanted)) *found = w[1];
  if (!type && !is_typed(op) && op != SpvOpExtInstImport && op != SpvOpFunction) return;
  if (length <= where || w[where] >= m->bound) refuse(m, "is no SPIR-V at word", at);
  else if (op == SpvOpFunction) m->body[w[where]] = at;
  else if (!m->defined[w[where]]) m->defined[w[where]] = at;
}

/* The function's old id, 0: it is not there. */
static uint32_t read_module(merge *m) {
  char name[64];
  uint32_t found = 0;
  const size_t length = strlen(m->own->name);
  if (m->count < HEADER || m->words[0] != SPV_MAGIC || m->words[3] > MAX_IDS || length > 48)
    return refuse(m, "was compiled to no SPIR-V", 0);
  memcpy(name, "snt_", 4);
  memcpy(name + 4, m->own->name, length + 1);
  m->bound = m->words[3];
  m->defined = IR_NEW_ARRAY(m->s->m.arena, uint32_t, m->bound + 1);
  m->body = IR_NEW_ARRAY(m->s->m.arena, uint32_t, m->bound + 1);
  m->map = IR_NEW_ARRAY(m->s->m.arena, uint32_t, m->bound + 1);
  m->wanted = IR_NEW_ARRAY(m->s->m.arena, uint32_t, m->bound + 1);
  if (!m->defined || !m->body || !m->map || !m->wanted) return 0;
  for (uint32_t at = HEADER; at < m->count && !m->failed; at += length_at(m, at)) {
    if (!length_at(m, at) || length_at(m, at) > m->count - at) return refuse(m, "is no SPIR-V at word", at);
    read_one(m, at, name, &found);
  }
  return m->failed || !found || !m->body[found] ? refuse(m, "has lost the function's name", found) : found;
}

/* ---- ids ---- */
static uint32_t mapped(merge *m, uint32_t id);

/* A type or constant of the old module as one of this. */
static uint32_t remake(merge *m, uint32_t id) {
  const uint32_t at = m->defined[id], op = op_at(m, at), length = length_at(m, at), skip = is_typed(op) ? 2 : 1;
  uint32_t operands[TEXT_WORDS], count = 0;
  if (op == SpvOpExtInstImport) return m->s->glsl; /* GLSL.std.450 is what a shader imports */
  if (length > TEXT_WORDS) return refuse(m, "has a type or a constant of too many parts", length);
  for (uint32_t n = 0; n + 1 < length && !m->failed; n++) {
    if (n == skip - 1) continue; /* the id itself */
    const uint32_t word = m->words[at + 1 + n];
    operands[count++] = is_literal(op, n) ? word : mapped(m, word);
  }
  if (m->failed) return 0;
  return spv_intern(&m->s->m, op, is_typed(op), operands, count, 0, NULL);
}

static uint32_t mapped(merge *m, uint32_t id) {
  if (m->failed || !id || id >= m->bound) return refuse(m, "names a value that does not exist", id);
  if (m->map[id]) return m->map[id];
  if (!m->defined[id]) return m->map[id] = spv_fresh(&m->s->m);
  if (m->depth == MAX_DEPTH) return refuse(m, "has a type inside itself", id);
  m->depth++;
  m->map[id] = remake(m, id);
  m->depth--;
  return m->map[id];
}

static uint32_t want_function(merge *m, uint32_t id) {
  if (id >= m->bound || !m->body[id]) return refuse(m, "calls what is no function", id);
  for (uint32_t i = 0; i < m->wanted_count; i++)
    if (m->wanted[i] == id) return mapped(m, id);
  m->wanted[m->wanted_count++] = id;
  return mapped(m, id);
}

/* ---- code ---- */
static void copy_instruction(merge *m, uint32_t at) {
  const uint32_t op = op_at(m, at), length = length_at(m, at);
  if (op == OP_LINE || op == OP_NO_LINE || op == OP_SOURCE) return;
  if (op != SpvOpFunction && op != SpvOpFunctionEnd && !is_allowed(op)) {
    refuse(m, "uses an instruction that a function of values has no use for", op);
    return;
  }
  spv_put(&m->s->m, SPV_CODE, m->words[at]);
  for (uint32_t n = 0; n + 1 < length && !m->failed; n++) {
    const uint32_t word = m->words[at + 1 + n];
    if (op == SpvOpVariable && n == 2 && word != SpvStorageClassFunction) refuse(m, "has variables that are not its own", word);
    if (op == OP_CALL && n == 2) spv_put(&m->s->m, SPV_CODE, want_function(m, word));
    else spv_put(&m->s->m, SPV_CODE, is_literal(op, n) ? word : mapped(m, word));
  }
}

/* Global variables have no definition here, so a function that names one gives an id that nothing defines: they are looked for first. */
static bool touches_globals(merge *m, uint32_t from) {
  for (uint32_t at = HEADER; at < m->count && op_at(m, at) != SpvOpFunction; at += length_at(m, at)) {
    if (op_at(m, at) != SpvOpVariable || length_at(m, at) < 3) continue;
    for (uint32_t in = from; op_at(m, in) != SpvOpFunctionEnd; in += length_at(m, in))
      for (uint32_t n = 0; n + 1 < length_at(m, in); n++)
        if (!is_literal(op_at(m, in), n) && m->words[in + 1 + n] == m->words[at + 2]) return true;
  }
  return false;
}

static void copy_function(merge *m, uint32_t at) {
  uint32_t end = at;
  while (end < m->count && op_at(m, end) != SpvOpFunctionEnd) end += length_at(m, end);
  if (end >= m->count) refuse(m, "is no SPIR-V at word", at);
  else if (touches_globals(m, at)) refuse(m, "reads memory or built-in variables", at);
  for (; at <= end && !m->failed; at += length_at(m, at)) copy_instruction(m, at);
}

static uint32_t type_of(spv *s, uint32_t base) {
  return base == SNT_I32 ? SPV_TYPE(&s->m, SpvOpTypeInt, 32, 1) : spv_type(s, kir_t((int32_t)base, 1));
}

/* The function takes and gives what the call does. */
static void check_signature(merge *m, uint32_t function) {
  const uint32_t at = m->body[function], type = length_at(m, at) > 4 ? m->words[at + 4] : 0;
  const char *unused;
  uint32_t count = 0;
  while (kir_own_param(m->own->params, count, &unused)) count++;
  if (type >= m->bound || !m->defined[type] || op_at(m, m->defined[type]) != SpvOpTypeFunction ||
      length_at(m, m->defined[type]) != 3 + count) {
    refuse(m, "has a function of another number of parameters", count);
    return;
  }
  for (uint32_t i = 0; i <= count && !m->failed; i++) {
    const uint32_t given = mapped(m, m->words[m->defined[type] + 2 + i]);
    if (given != type_of(m->s, m->own->types[i])) refuse(m, "has a parameter of another type", i);
  }
}

static void merge_own(spv *s, uint32_t row) {
  const kir_own *own = &s->k->owns.at[row];
  merge m = {.s = s, .own = own, .words = own->spirv, .count = (uint32_t)(own->spirv_bytes / sizeof *own->spirv)};
  const uint32_t function = read_module(&m);
  if (!function) return;
  m.map[function] = s->own[row];
  check_signature(&m, function);
  if (!m.failed) want_function(&m, function);
  for (; m.done < m.wanted_count && !m.failed; m.done++) copy_function(&m, m.body[m.wanted[m.done]]);
}

void spv_own_functions(spv *s) {
  for (uint32_t row = 0; row < s->k->owns.count && s->result == SNT_OK; row++)
    if (s->own[row]) merge_own(s, row);
}

/* ---- calls ---- */
uint32_t spv_own_call(spv *s, uint32_t inst) {
  const kir_inst *in = kir_at(s->k, inst);
  const kir_own *own = &s->k->owns.at[in->index];
  uint32_t operands[KIR_OWN_NAMES + 1];
  if (!s->own[in->index]) s->own[in->index] = spv_fresh(&s->m);
  operands[0] = s->own[in->index];
  for (uint32_t n = 1; n < in->arg_count && n < IR_COUNT(operands); n++) {
    operands[n] = spv_arg(s, inst, n);
    if (own->types[n] == SNT_I32) operands[n] = SPV_DO(s, SpvOpBitcast, type_of(s, SNT_I32), operands[n]);
  }
  const uint32_t value = spv_result(s, OP_CALL, type_of(s, own->types[0]), operands, in->arg_count);
  return own->types[0] == SNT_I32 ? SPV_DO(s, SpvOpBitcast, spv_type(s, in->type), value) : value;
}

/* ---- whole kernels ---- */
const kir_own *spv_own_whole(const kir_kernel *k) {
  for (uint32_t i = 1; i < k->insts.count; i++)
    if (kir_at(k, i)->op == KIR_inline && kir_at(k, i)->index < k->owns.count) return &k->owns.at[kir_at(k, i)->index];
  return NULL;
}

snt_result spv_own_module(const kir_own *own, codegen_code *out, snt_diag *diag) {
  if (!own->spirv || own->spirv_bytes < HEADER * sizeof *own->spirv || own->spirv[0] != SPV_MAGIC)
    return ir_fail(diag, SNT_E_UNSUPPORTED, "spirv", 0, "operator %s: its GLSL was compiled to no SPIR-V", own->name);
  *out = (codegen_code){own->spirv, own->spirv_bytes};
  return SNT_OK;
}
