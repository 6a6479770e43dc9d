/* licm: values that do not change in a loop are computed before it. Pure operations move freely (dear ones not out of an if); loads move where they
   were certain to run and nothing in the loop can write their memory. One forward walk finds each instruction's home region; a second one emits. */
#include "ir/kir_pass_private.h"

enum { LOAD_WORDS = 64 }; /* per loop, of hoisted loads: more would fill the registers */
typedef struct mover {
  kir_clone c;
  kir_regions regions;
  uint32_t *row_of, *depth, *home; /* by instruction: dense opener number; nesting of an opener; region that holds the value */
  uint32_t *before;                /* by instruction: 0, or the loop it moves in front of */
  uint32_t *head, *tail, *next;    /* lists of moved instructions by loop */
  uint32_t *words;                 /* of loads moved in front of each loop */
  kir_bits_table clobbers;
} mover;
enum { STAY, CHEAP, DEAR, TRAPS, LOAD }; /* TRAPS: may stop the device where it would not have run */

static const kir_inst *at(const mover *m, uint32_t i) { return kir_at(m->c.in, i); }

/* A constant added to an index costs nothing where it is used: addresses have offsets. */
static bool is_offset(const mover *m, uint32_t i) {
  const kir_inst *in = at(m, i);
  int64_t c = 0;
  if (in->type.lanes != 1 || kir_is_float(in->type.base)) return false;
  if (in->op == KIR_add) return kir_is_int_const(m->c.in, kir_arg(m->c.in, i, 1), &c);
  return in->op == KIR_ix && in->arg_count == 2 && in->imm.i && kir_is_int_const(m->c.in, kir_arg(m->c.in, i, 0), &c) && c == 1;
}

/* A divisor that is never 0, wherever the division stands. */
static bool is_divisor(const mover *m, uint32_t value) {
  const kir_inst *in = at(m, value);
  int64_t c = 0;
  if (in->op == KIR_scalar) return m->c.in->scalars.at[in->index].min > 0;
  return kir_is_int_const(m->c.in, value, &c) && c != 0;
}

static int class_of(const mover *m, uint32_t i) {
  const kir_inst *in = at(m, i);
  const kir_op_info *op = &kir_ops[in->op];
  if (in->op == KIR_load) return LOAD;
  if (in->type.frag || !(op->flags & KIR_PURE) || is_offset(m, i)) return STAY;
  switch (in->op) {
  case KIR_sg_add:
  case KIR_sg_max:
  case KIR_sg_min:
  case KIR_sg_shuffle: return STAY;
  case KIR_div:
  case KIR_rem:
  case KIR_sqrt:
  case KIR_rcp:
  case KIR_rsqrt: return DEAR;
  case KIR_udiv:
  case KIR_umod: return is_divisor(m, kir_arg(m->c.in, i, 1)) ? DEAR : TRAPS;
  default: return op->attrs & KA_MATH ? DEAR : CHEAP;
  }
}

static uint32_t home_of(const mover *m, uint32_t value) { return at(m, value)->op == KIR_loop ? value : m->home[value]; }

/* The innermost region that holds an operand; a load takes the offset in its index along. */
static uint32_t operands_home(const mover *m, uint32_t i) {
  uint32_t deepest = 0;
  for (uint32_t n = 0; n < at(m, i)->arg_count; n++) {
    const uint32_t value = kir_arg(m->c.in, i, n);
    const bool along = at(m, i)->op == KIR_load && is_offset(m, value);
    const uint32_t home = along ? operands_home(m, value) : home_of(m, value);
    if (home && (!deepest || m->depth[home] > m->depth[deepest])) deepest = home;
  }
  return deepest;
}

static bool runs_at_least_once(const mover *m, uint32_t loop) {
  uint64_t trips;
  if (at(m, loop)->flags & KIR_LOOP_TRIP1) return true;
  return kir_trip_count(m->c.in, kir_arg(m->c.in, loop, 0), kir_arg(m->c.in, loop, 1), kir_arg(m->c.in, loop, 2), &trips) && trips > 0;
}

static uint32_t words_of(kir_type t) { return t.lanes * (kir_base_bits(t.base) == 64 ? 2u : 1u); }

static bool load_may_leave(const mover *m, uint32_t i, uint32_t region) {
  const kir_memory *memory = &m->c.in->memories.at[at(m, i)->index];
  if (memory->space == KIR_PRIVATE && (memory->flags & KIR_MEM_REGS)) return false;
  if (kir_bits_get(&m->clobbers, m->row_of[region], at(m, i)->index) || m->words[region] + words_of(at(m, i)->type) > LOAD_WORDS)
    return false;
  return runs_at_least_once(m, region);
}

/* The outermost loop that `i` can leave, or 0. */
static uint32_t loop_to_leave(const mover *m, uint32_t i, int class) {
  const uint32_t home = operands_home(m, i);
  uint32_t found = 0;
  for (uint32_t region = m->regions.parent[i]; region != home; region = m->regions.parent[region]) {
    const bool loop = at(m, region)->op == KIR_loop;
    if (!loop && class != CHEAP) break;
    if (loop && class == LOAD && !load_may_leave(m, i, region)) break;
    if (loop && class == TRAPS && !runs_at_least_once(m, region)) break;
    if (loop) found = region;
  }
  return found;
}

static void move(mover *m, uint32_t i, uint32_t loop) {
  m->before[i] = loop;
  m->home[i] = m->regions.parent[loop];
  if (m->tail[loop]) m->next[m->tail[loop]] = i;
  else m->head[loop] = i;
  m->tail[loop] = i;
}

static bool inside(const mover *m, uint32_t region, uint32_t loop) {
  while (region && region != loop) region = m->regions.parent[region];
  return region != 0;
}

static void place(mover *m, uint32_t i) {
  const int class = class_of(m, i);
  m->home[i] = m->regions.parent[i];
  if (class == STAY || !m->home[i]) return;
  const uint32_t loop = loop_to_leave(m, i, class);
  if (!loop) return;
  for (uint32_t n = 0; class == LOAD && n < at(m, i)->arg_count; n++) {
    const uint32_t index = kir_arg(m->c.in, i, n);
    if (is_offset(m, index) && inside(m, m->home[index], loop)) move(m, index, loop);
  }
  if (class == LOAD) m->words[loop] += words_of(at(m, i)->type);
  move(m, i, loop);
}

static bool prepare(mover *m, const kir_kernel *in, ir_arena *arena) {
  uint32_t **tables[] = {&m->row_of, &m->depth, &m->home, &m->before, &m->head, &m->tail, &m->next, &m->words};
  for (uint32_t i = 0; i < IR_COUNT(tables); i++)
    if (!(*tables[i] = IR_NEW_ARRAY(arena, uint32_t, in->insts.count))) return false;
  if (!kir_find_regions(in, arena, &m->regions)) return false;
  const uint32_t rows = kir_number_regions(in, m->row_of);
  for (uint32_t i = 1; i < in->insts.count; i++)
    if (m->row_of[i]) m->depth[i] = 1 + (m->regions.parent[i] ? m->depth[m->regions.parent[i]] : 0);
  return kir_find_clobbers(in, &m->regions, m->row_of, rows, arena, &m->clobbers);
}

snt_result kir_pass_licm(const kir_kernel *in, kir_kernel *out, const kir_caps *caps, snt_diag *diag) {
  (void)caps;
  mover m = {.head = NULL};
  SNT_TRY(kir_clone_begin(&m.c, in, out));
  if (!prepare(&m, in, out->arena)) return kir_pass_stop(out, "licm", diag);
  for (uint32_t i = 1; i < in->insts.count; i++) place(&m, i);
  for (uint32_t i = 1; i < in->insts.count; i++) {
    for (uint32_t moved = m.head[i]; moved; moved = m.next[moved]) kir_clone_inst(&m.c, moved);
    if (!m.before[i]) kir_clone_inst(&m.c, i);
  }
  return kir_pass_end(out, "licm", diag);
}
