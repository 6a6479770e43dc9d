/* Word buffers and interning of a SPIR-V module. Words are native-endian, as SPIR-V allows. */
#include "codegen_spirv/spv_words.h"

void spv_init(spv_module *m, ir_arena *arena) { *m = (spv_module){.arena = arena, .bound = 1}; }

void spv_put(spv_module *m, spv_section section, uint32_t word) {
  if (m->failed) return;
  if (!IR_PUSH(m->arena, &m->section[section], word)) m->failed = true;
}

static uint32_t head(uint32_t op, size_t operands) { return (uint32_t)(operands + 1) << 16 | op; }

void spv_inst(spv_module *m, spv_section section, uint32_t op, const uint32_t *operands, size_t count) {
  spv_put(m, section, head(op, count));
  for (size_t i = 0; i < count; i++) spv_put(m, section, operands[i]);
}

uint32_t spv_open(spv_module *m, spv_section section, uint32_t op) {
  spv_put(m, section, op);
  return m->section[section].count - 1;
}

void spv_put_text(spv_module *m, spv_section section, const char *text) {
  const size_t size = strlen(text) + 1;
  for (size_t i = 0; i < size; i += 4) {
    uint32_t word = 0;
    for (size_t j = 0; j < 4 && i + j < size; j++) word |= (uint32_t)(unsigned char)text[i + j] << 8 * j;
    spv_put(m, section, word);
  }
}

void spv_close(spv_module *m, spv_section section, uint32_t opened) {
  if (!m->failed) m->section[section].at[opened] |= (m->section[section].count - opened) << 16;
}

/* ---- interning ---- */
static void rehash(spv_module *m) {
  uint32_t size = m->table_size ? m->table_size * 2 : 128;
  uint32_t *table = IR_NEW_ARRAY(m->arena, uint32_t, size);
  if (!table) {
    m->failed = true;
    return;
  }
  for (uint32_t i = 0; i < m->interned.count; i++) {
    uint32_t at = (uint32_t)m->interned.at[i].hash & (size - 1);
    while (table[at]) at = (at + 1) & (size - 1);
    table[at] = i + 1;
  }
  m->table = table;
  m->table_size = size;
}

static uint32_t find(const spv_module *m, uint64_t hash, const uint32_t *key, uint32_t length, uint32_t *slot) {
  uint32_t at = (uint32_t)hash & (m->table_size - 1);
  for (; m->table[at]; at = (at + 1) & (m->table_size - 1)) {
    const spv_interned *found = &m->interned.at[m->table[at] - 1];
    if (found->hash == hash && found->length == length && memcmp(m->keys.at + found->at, key, length * sizeof *key) == 0) return found->id;
  }
  *slot = at;
  return 0;
}

static uint32_t define(spv_module *m, uint32_t op, bool typed, const uint32_t *operands, size_t count) {
  const uint32_t id = spv_fresh(m), lead = typed ? 1 : 0;
  spv_put(m, SPV_TYPES, head(op, count + 1));
  if (typed) spv_put(m, SPV_TYPES, operands[0]);
  spv_put(m, SPV_TYPES, id);
  for (size_t i = lead; i < count; i++) spv_put(m, SPV_TYPES, operands[i]);
  return id;
}

uint32_t spv_intern(spv_module *m, uint32_t op, bool typed, const uint32_t *operands, size_t count, uint32_t tag, bool *is_new) {
  if (is_new) *is_new = false;
  if (m->interned.count * 2 >= m->table_size) rehash(m);
  if (m->failed) return 0;
  const uint32_t start = m->keys.count;
  bool stored = IR_PUSH(m->arena, &m->keys, op) && IR_PUSH(m->arena, &m->keys, tag);
  for (size_t i = 0; i < count && stored; i++) stored = IR_PUSH(m->arena, &m->keys, operands[i]);
  if (!stored) {
    m->failed = true;
    return 0;
  }
  const uint32_t length = m->keys.count - start;
  const uint64_t hash = ir_hash64(0, m->keys.at + start, length * sizeof(uint32_t));
  uint32_t slot = 0, id = find(m, hash, m->keys.at + start, length, &slot);
  if (id) {
    m->keys.count = start;
    return id;
  }
  id = define(m, op, typed, operands, count);
  if (!IR_PUSH(m->arena, &m->interned, (spv_interned){hash, start, length, id})) m->failed = true;
  m->table[slot] = m->interned.count;
  if (is_new) *is_new = true;
  return id;
}

uint32_t *spv_assemble(spv_module *m, size_t *count) {
  size_t total = 5;
  for (int i = 0; i < SPV_SECTIONS; i++) total += m->section[i].count;
  uint32_t *words = m->failed ? NULL : IR_NEW_ARRAY(m->arena, uint32_t, total);
  if (!words) return NULL;
  const uint32_t header[5] = {SPV_MAGIC, SPV_VERSION, 0, m->bound, 0};
  memcpy(words, header, sizeof header);
  size_t at = 5;
  for (int i = 0; i < SPV_SECTIONS; i++) {
    if (m->section[i].count) memcpy(words + at, m->section[i].at, m->section[i].count * sizeof(uint32_t));
    at += m->section[i].count;
  }
  *count = total;
  return words;
}
