/* neighbours: elements that lie beside each other in memory and are read one by one are read as a vector: one address and one access for several. In: loads
   whose indices differ by constants, in one straight run of code, of buffers that nothing writes. Out: loads of two or four elements where their
   alignment is proven and each of them is wanted, in place of the first of them, and `extract`. */
#include "ir/kir_pass_private.h"

enum { WIDEST = 4, WORD = 4, REACH = 256 }; /* elements of a vector, their bytes; instructions to either side that are looked at */

typedef struct joining {
  kir_clone c;
  uint32_t *run;    /* by load: its straight run, 0: it stays */
  uint32_t *first;  /* by load: that of the vector's first element, 0: it is read alone */
  uint32_t *lanes;  /* by first: how many there are */
  uint32_t *vector; /* by first: what is read, 0: not yet */
} joining;

static bool may_join(const kir_kernel *k, uint32_t i) {
  const kir_inst *in = kir_at(k, i);
  if (in->op != KIR_load || in->type.lanes != 1 || in->arg_count != 1) return false;
  const kir_memory *m = &k->memories.at[in->index];
  return m->space == KIR_GLOBAL && kir_same(m->type, in->type) && ir_dtypes[in->type.base].bytes == WORD && kir_mem_is_ro(k, in->index);
}

static void find_runs(joining *j) {
  uint32_t run = 1;
  for (uint32_t i = 1; i < j->c.in->insts.count; i++) {
    if (kir_ops[kir_at(j->c.in, i)->op].flags & KIR_REGION) run++;
    j->run[i] = may_join(j->c.in, i) ? run : 0;
  }
}

/* The loads of so many elements from that of the first one on; false: not all are wanted. */
static bool find_elements(const joining *j, uint32_t first, uint32_t lanes, uint32_t *loads) {
  const uint32_t from = first > REACH ? first - REACH : 1;
  uint32_t found = 1;
  memset(loads, 0, lanes * sizeof *loads);
  loads[0] = first;
  for (uint32_t i = from; i < first + REACH && i < j->c.in->insts.count && found < lanes; i++) {
    int64_t place;
    if (j->run[i] != j->run[first] || j->first[i] || !kir_lie_apart(j->c.in, i, first, &place)) continue;
    if (place <= 0 || place >= lanes || loads[place]) continue;
    loads[place] = i;
    found++;
  }
  return found == lanes;
}

static void join_from(joining *j, uint32_t first) {
  uint32_t loads[WIDEST], lanes = WIDEST;
  while (lanes > 1 && (kir_at(j->c.in, first)->align < WORD * lanes || !find_elements(j, first, lanes, loads))) lanes /= 2;
  for (uint32_t n = 0; lanes > 1 && n < lanes; n++) j->first[loads[n]] = first;
  j->lanes[first] = lanes;
}

/* Where the first of the elements is read that comes up, which need not be the first in memory. */
static void read_element(joining *j, uint32_t i) {
  const uint32_t first = j->first[i];
  int64_t place;
  (void)kir_lie_apart(j->c.in, i, first, &place);
  if (!j->vector[first]) {
    kir_inst load = *kir_at(j->c.in, first);
    const uint32_t index = kir_emit_add(j->c.out, j->c.map[kir_arg(j->c.in, i, 0)], -place);
    load.type.lanes = (uint8_t)j->lanes[first];
    j->vector[first] = kir_emit(j->c.out, &load, 1, &index);
  }
  j->c.map[i] = kir_lane(j->c.out, j->vector[first], place);
}

/* Where vectors must be aligned, lanes are items; processors, whose vectors are the kernel's own, broadcast an element as they read it. */
bool kir_joins_neighbours(const kir_kernel *k, const kir_caps *caps) {
  bool found = false;
  if (!(caps->aligned_vectors || caps->max_lanes == 1) || caps->vector_memory < WORD * WIDEST) return false;
  for (uint32_t i = 1; i < k->insts.count && !found; i++) found = kir_at(k, i)->align >= 2 * WORD && may_join(k, i);
  return found;
}

snt_result kir_pass_neighbours(const kir_kernel *in, kir_kernel *out, const kir_caps *caps, snt_diag *diag) {
  (void)caps;
  joining j = {0};
  SNT_TRY(kir_clone_begin(&j.c, in, out));
  const uint32_t count = in->insts.count;
  j.run = IR_NEW_ARRAY(out->arena, uint32_t, 4 * (size_t)count);
  if (!j.run) return kir_pass_stop(out, "neighbours", diag);
  j.first = j.run + count, j.lanes = j.first + count, j.vector = j.lanes + count;
  find_runs(&j);
  for (uint32_t i = 1; i < count; i++)
    if (j.run[i] && !j.first[i]) join_from(&j, i);
  for (uint32_t i = 1; i < count && !out->failed; i++) {
    if (j.first[i]) read_element(&j, i);
    else kir_clone_inst(&j.c, i);
  }
  return kir_pass_end(out, "neighbours", diag);
}
