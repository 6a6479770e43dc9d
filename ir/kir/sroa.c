/* sroa: private arrays that are only touched at constant places become values. A store is a new value of its cell; a loop that stores into a cell
   carries it, an if hands it on as a result. Cells that need not be carried go in dce. A cell read before any write is zero. */
#include "ir/kir_pass_private.h"

enum { MAX_CELLS = 4096, NO_CELL = 0x7fffffff };
typedef struct cells {
  kir_clone c;
  kir_regions regions;
  uint32_t *first;               /* by memory: number of its first cell, NO_CELL: stays an array */
  uint32_t *memory_of, *current; /* by cell: its memory; its value now, 0: none yet */
  uint32_t count;
  uint32_t *row_of;
  kir_bits_table written; /* region row x cell */
  uint32_t **saved;       /* by open if: cell values at its start */
  uint32_t depth;
} cells;

static const kir_inst *at(const cells *s, uint32_t i) { return kir_at(s->c.in, i); }
static const kir_memory *memory_at(const cells *s, uint32_t m) { return &s->c.in->memories.at[m]; }
static uint64_t element_count(const kir_memory *m) {
  uint64_t n = 1;
  for (uint32_t d = 0; d < m->rank; d++) n *= m->dims[d];
  return n;
}

/* ---- which arrays ---- */
/* Cell offset in the array that leading constant indices name; false: not constant, or outside. */
static bool constant_place(const cells *s, uint32_t i, uint32_t indices, uint64_t *out) {
  const kir_memory *m = memory_at(s, at(s, i)->index);
  uint64_t place = 0;
  for (uint32_t d = 0; d < m->rank; d++) {
    int64_t index = 0;
    if (d < indices && (!kir_is_int_const(s->c.in, kir_arg(s->c.in, i, d), &index) || index < 0 || (uint64_t)index >= m->dims[d]))
      return false;
    place = place * m->dims[d] + (uint64_t)index;
  }
  *out = place;
  return true;
}

/* Cells an access covers: lanes of a vector over an array of scalars, the whole rest of a fill. */
static uint64_t cells_covered(const cells *s, uint32_t i, uint32_t indices) {
  const kir_inst *in = at(s, i);
  const kir_memory *m = memory_at(s, in->index);
  uint64_t n = 1;
  if (in->op == KIR_fill)
    for (uint32_t d = indices; d < m->rank; d++) n *= m->dims[d];
  else if (m->type.lanes == 1 && in->type.lanes > 1) n = (uint64_t)(in->type.lanes - 1) * (in->lanes > 1 ? (uint32_t)in->lanes : 1) + 1;
  return n;
}

static bool promotable(const cells *s, uint32_t i) {
  const kir_inst *in = at(s, i);
  const uint32_t indices = kir_index_count(in);
  uint64_t place;
  if (in->op != KIR_load && in->op != KIR_store && in->op != KIR_fill) return false;
  return constant_place(s, i, indices, &place) && place + cells_covered(s, i, indices) <= element_count(memory_at(s, in->index));
}

static bool choose_arrays(cells *s) {
  const kir_kernel *in = s->c.in;
  for (uint32_t m = 0; m < in->memories.count; m++) {
    const kir_memory *mem = memory_at(s, m);
    s->first[m] = mem->space == KIR_PRIVATE && element_count(mem) <= MAX_CELLS ? 0 : NO_CELL;
  }
  for (uint32_t i = 1; i < in->insts.count; i++)
    if (kir_names_memory(at(s, i)->op) && s->first[at(s, i)->index] != NO_CELL && !promotable(s, i)) s->first[at(s, i)->index] = NO_CELL;
  for (uint32_t m = 0; m < in->memories.count; m++) {
    if (s->first[m] == NO_CELL) continue;
    s->first[m] = s->count;
    s->count += (uint32_t)element_count(memory_at(s, m));
  }
  s->memory_of = IR_NEW_ARRAY(s->c.out->arena, uint32_t, s->count);
  s->current = IR_NEW_ARRAY(s->c.out->arena, uint32_t, s->count);
  if (!s->memory_of || !s->current) return false;
  for (uint32_t m = 0; m < in->memories.count; m++)
    for (uint32_t n = 0; s->first[m] != NO_CELL && n < element_count(memory_at(s, m)); n++) s->memory_of[s->first[m] + n] = m;
  return true;
}

static bool is_promoted(const cells *s, const kir_inst *in) { return kir_names_memory(in->op) && s->first[in->index] != NO_CELL; }

/* ---- which regions write which cells ---- */
static void note_write(cells *s, uint32_t i) {
  uint64_t place;
  const uint32_t indices = kir_index_count(at(s, i));
  constant_place(s, i, indices, &place);
  const uint32_t from = s->first[at(s, i)->index] + (uint32_t)place, n = (uint32_t)cells_covered(s, i, indices);
  for (uint32_t region = s->regions.parent[i]; region; region = s->regions.parent[region])
    for (uint32_t cell = from; cell < from + n; cell++) kir_bits_set(&s->written, s->row_of[region], cell);
}

static bool find_writes(cells *s) {
  const kir_kernel *in = s->c.in;
  s->row_of = IR_NEW_ARRAY(s->c.out->arena, uint32_t, in->insts.count);
  s->saved = IR_NEW_ARRAY(s->c.out->arena, uint32_t *, in->insts.count);
  if (!s->row_of || !s->saved || !kir_find_regions(in, s->c.out->arena, &s->regions)) return false;
  const uint32_t rows = kir_number_regions(in, s->row_of);
  if (!kir_bits_init(&s->written, s->c.out->arena, rows + 1, s->count)) return false;
  for (uint32_t i = 1; i < in->insts.count; i++)
    if ((at(s, i)->op == KIR_store || at(s, i)->op == KIR_fill) && is_promoted(s, at(s, i))) note_write(s, i);
  for (uint32_t i = 1; i < in->insts.count; i++) { /* an if and its else hand on the same cells */
    if (at(s, i)->op != KIR_else) continue;
    uint64_t *a = &s->written.at[(size_t)s->row_of[at(s, i)->index] * s->written.words],
             *b = &s->written.at[(size_t)s->row_of[i] * s->written.words];
    for (uint32_t w = 0; w < s->written.words; w++) a[w] = b[w] = a[w] | b[w];
  }
  return true;
}

/* Next cell from `cell` on that the region writes; count: none. */
static uint32_t next_written(const cells *s, uint32_t opener, uint32_t cell) {
  const uint64_t *row = &s->written.at[(size_t)s->row_of[opener] * s->written.words];
  for (uint32_t w = cell / 64; w < s->written.words; w++) {
    uint64_t bits = row[w];
    if (w == cell / 64) bits &= ~0ull << (cell % 64);
    if (bits) return w * 64 + (uint32_t)__builtin_ctzll(bits);
  }
  return s->count;
}
static uint32_t count_written(const cells *s, uint32_t opener) {
  uint32_t n = 0;
  for (uint32_t cell = next_written(s, opener, 0); cell < s->count; cell = next_written(s, opener, cell + 1)) n++;
  return n;
}

/* ---- accesses ---- */
static kir_type cell_type(const cells *s, uint32_t cell) { return memory_at(s, s->memory_of[cell])->type; }

/* A fragment has no constants: one comes out of its array, which is filled for that alone. */
static uint32_t fragment_of(cells *s, uint32_t cell, uint32_t scalar) {
  kir_kernel *out = s->c.out;
  const uint32_t memory = s->memory_of[cell];
  const kir_memory *m = memory_at(s, memory);
  uint32_t indices[4], rest = cell - s->first[memory];
  for (uint32_t d = m->rank; d-- > 0; rest /= (uint32_t)m->dims[d])
    indices[d] = kir_const_int(out, kir_t(SNT_U32, 1), (int64_t)(rest % m->dims[d]));
  kir_fill(out, memory, 0, NULL, scalar);
  return kir_load(out, memory, 1, m->rank, indices);
}

static uint32_t value_of(cells *s, uint32_t cell) {
  const kir_type type = cell_type(s, cell);
  if (s->current[cell]) return s->current[cell];
  return type.frag ? fragment_of(s, cell, kir_const_int(s->c.out, kir_t(type.base, 1), 0)) : kir_const_int(s->c.out, type, 0);
}

static void load(cells *s, uint32_t i) {
  const kir_inst *in = at(s, i);
  uint64_t place;
  uint32_t values[16];
  constant_place(s, i, in->arg_count, &place);
  const uint32_t cell = s->first[in->index] + (uint32_t)place, stride = in->lanes > 1 ? (uint32_t)in->lanes : 1;
  if (memory_at(s, in->index)->type.lanes > 1 || in->type.lanes == 1) {
    s->c.map[i] = value_of(s, cell);
    return;
  }
  for (uint32_t n = 0; n < in->type.lanes; n++) values[n] = value_of(s, cell + n * stride);
  s->c.map[i] = kir_emit_folded(s->c.out, &(kir_inst){.op = KIR_vec, .type = in->type}, in->type.lanes, values);
}

static void store(cells *s, uint32_t i) {
  const kir_inst *in = at(s, i);
  uint64_t place;
  const uint32_t indices = kir_index_count(in), value = s->c.map[kir_arg(s->c.in, i, indices)];
  constant_place(s, i, indices, &place);
  const uint32_t cell = s->first[in->index] + (uint32_t)place, stride = in->lanes > 1 ? (uint32_t)in->lanes : 1;
  const kir_type type = kir_type_of(s->c.out, value);
  if (memory_at(s, in->index)->type.lanes > 1 || type.lanes == 1) {
    s->current[cell] = value;
    return;
  }
  for (uint32_t n = 0; n < type.lanes; n++) {
    const kir_inst extract = {.op = KIR_extract, .type = kir_element(type)};
    s->current[cell + n * stride] = kir_emit_folded(s->c.out, &extract, 2,
                                                    (uint32_t[]){value, kir_const_int(s->c.out, kir_t(SNT_U32, 1), n)});
  }
}

static void fill(cells *s, uint32_t i) {
  const kir_inst *in = at(s, i);
  const uint32_t indices = kir_index_count(in);
  uint64_t place;
  constant_place(s, i, indices, &place);
  const uint32_t from = s->first[in->index] + (uint32_t)place, n = (uint32_t)cells_covered(s, i, indices);
  const uint32_t scalar = s->c.map[kir_arg(s->c.in, i, indices)];
  const kir_type type = memory_at(s, in->index)->type;
  const uint32_t value = type.frag ? fragment_of(s, from, scalar) : kir_splat(s->c.out, scalar, type.lanes);
  for (uint32_t cell = from; cell < from + n; cell++) s->current[cell] = value;
}

/* ---- regions ---- */
/* Old carried values or results after `i`, then those of the cells; cells take the latter as their values. */
static void put_slots(cells *s, uint32_t i, kir_op op, uint32_t old_count, uint32_t opener) {
  uint32_t n = 0;
  for (; n < old_count; n++) kir_clone_inst(&s->c, i + 1 + n);
  for (uint32_t cell = next_written(s, opener, 0); cell < s->count; cell = next_written(s, opener, cell + 1)) {
    const kir_inst slot = {.op = (uint16_t)op, .type = cell_type(s, cell), .index = n++};
    s->current[cell] = kir_emit(s->c.out, &slot, 0, NULL);
  }
}

static uint32_t put_loop(cells *s, uint32_t i) {
  const kir_inst *in = at(s, i);
  uint32_t count = in->arg_count;
  uint32_t *args = IR_NEW_ARRAY(s->c.out->arena, uint32_t, count + count_written(s, i));
  if (!args) return i + 1;
  for (uint32_t n = 0; n < count; n++) args[n] = s->c.map[kir_arg(s->c.in, i, n)];
  for (uint32_t cell = next_written(s, i, 0); cell < s->count; cell = next_written(s, i, cell + 1)) args[count++] = value_of(s, cell);
  s->c.map[i] = kir_emit(s->c.out, in, count, args);
  put_slots(s, i, KIR_carry, in->arg_count - 3u, i);
  return i + in->arg_count - 2u;
}

/* The yield before a close at `close` (its own operands, if it had any, then the cells of `opener`). */
static void put_yield(cells *s, uint32_t close, uint32_t opener) {
  const bool had = at(s, close - 1)->op == KIR_yield;
  uint32_t count = had ? at(s, close - 1)->arg_count : 0;
  uint32_t *args = IR_NEW_ARRAY(s->c.out->arena, uint32_t, count + count_written(s, opener));
  if (!args) return;
  for (uint32_t n = 0; n < count; n++) args[n] = s->c.map[kir_arg(s->c.in, close - 1, n)];
  for (uint32_t cell = next_written(s, opener, 0); cell < s->count; cell = next_written(s, opener, cell + 1))
    args[count++] = value_of(s, cell);
  if (count) kir_emit_op(s->c.out, KIR_yield, kir_t(0, 0), count, args);
}

static void save(cells *s, uint32_t opener) {
  uint32_t *copy = IR_NEW_ARRAY(s->c.out->arena, uint32_t, count_written(s, opener) + 1), n = 0;
  for (uint32_t cell = next_written(s, opener, 0); copy && cell < s->count; cell = next_written(s, opener, cell + 1))
    copy[n++] = s->current[cell];
  s->saved[s->depth++] = copy;
}
static void restore(cells *s, uint32_t opener) {
  const uint32_t *copy = s->saved[--s->depth];
  uint32_t n = 0;
  for (uint32_t cell = next_written(s, opener, 0); copy && cell < s->count; cell = next_written(s, opener, cell + 1))
    s->current[cell] = copy[n++];
}

static void put_else(cells *s, uint32_t opener) {
  restore(s, opener);
  kir_emit(s->c.out, &(kir_inst){.op = KIR_else, .index = s->c.map[opener]}, 0, NULL);
}

static uint32_t put_end(cells *s, uint32_t i) {
  const uint32_t opener = at(s, i)->index;
  const bool is_if = at(s, opener)->op == KIR_if, lone = is_if && s->regions.close[opener] == i;
  const uint32_t results = at(s, i - 1)->op == KIR_yield ? at(s, i - 1)->arg_count : 0;
  put_yield(s, i, opener);
  if (lone && count_written(s, opener)) { /* the branch not taken hands on what was */
    put_else(s, opener);
    put_yield(s, opener + 1, opener);
  } else if (lone) s->depth--;
  kir_clone_inst(&s->c, i);
  put_slots(s, i, KIR_result, results, opener);
  return i + 1 + results;
}

static uint32_t visit(cells *s, uint32_t i) {
  const kir_inst *in = at(s, i);
  switch (in->op) {
  case KIR_loop: return put_loop(s, i);
  case KIR_if:
    kir_clone_inst(&s->c, i);
    save(s, i);
    return i + 1;
  case KIR_else:
    put_yield(s, i, in->index);
    put_else(s, in->index);
    return i + 1;
  case KIR_yield: return i + 1; /* written before its close */
  case KIR_end: return put_end(s, i);
  default: break;
  }
  if (!is_promoted(s, in)) kir_clone_inst(&s->c, i);
  else if (in->op == KIR_load) load(s, i);
  else if (in->op == KIR_store) store(s, i);
  else fill(s, i);
  return i + 1;
}

bool kir_has_arrays(const kir_kernel *k, const kir_caps *caps) {
  (void)caps;
  bool found = false;
  for (uint32_t m = 0; m < k->memories.count; m++) found |= k->memories.at[m].space == KIR_PRIVATE;
  return found;
}

snt_result kir_pass_sroa(const kir_kernel *in, kir_kernel *out, const kir_caps *caps, snt_diag *diag) {
  (void)caps;
  cells s = {.count = 0};
  SNT_TRY(kir_clone_begin(&s.c, in, out));
  s.first = IR_NEW_ARRAY(out->arena, uint32_t, in->memories.count + 1u);
  if (!s.first || !choose_arrays(&s) || !find_writes(&s)) return kir_pass_stop(out, "sroa", diag);
  for (uint32_t i = 1; i < in->insts.count && !out->failed;) i = visit(&s, i);
  return kir_pass_end(out, "sroa", diag);
}
