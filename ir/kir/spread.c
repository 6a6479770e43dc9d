/* spread: texels that every item of a subgroup would read at one address are read by its lanes, a different one each, and handed round. Where a
   read is a call for all lanes (texel buffers on lavapipe), as many reads as there are lanes cost one. In: loads of texels whose indices
   are the same all over the subgroup, in one straight run of code, and differ from each other by multiples of one distance. Lanes beyond the last
   of them read on: what they see, or zero past the end, nobody takes. */
#include "ir/kir_pass_private.h"
#include "ir/kir/verify.h"

enum { MOST = 64, FEWEST = 2 }; /* texels of one base that are looked at together; texels that are worth a round */

typedef struct spreading {
  kir_clone c;
  kir_uniformity u;
  uint32_t size, lane;            /* of the subgroup; this item's lane */
  bool any;                       /* load that reads for others */
  uint32_t *run, *leader, *place; /* by load: its straight run, 0: it stays; the load that reads for it; its number among those */
  int64_t *first, *distance;      /* by leader: what its indices begin with and how far they lie apart */
  uint32_t *made;                 /* by leader: what is handed round, 0: not yet */
  uint32_t *reads;                /* by value: how often it is read */
} spreading;

kir_index_form kir_index_of(const kir_kernel *k, uint32_t load) {
  const uint32_t *value = &k->args.at[kir_at(k, load)->args];
  const kir_inst *in = kir_at(k, *value);
  int64_t one;
  if (in->op != KIR_ix) return (kir_index_form){value, 1, 0};
  const uint32_t *args = &k->args.at[in->args];
  if (in->arg_count == 2 && kir_is_int_const(k, args[0], &one) && one == 1) return (kir_index_form){args + 1, 1, in->imm.i};
  return (kir_index_form){args, in->arg_count, in->imm.i};
}

bool kir_lie_apart(const kir_kernel *k, uint32_t load, uint32_t other, int64_t *way) {
  const kir_index_form a = kir_index_of(k, load), b = kir_index_of(k, other);
  *way = a.constant - b.constant;
  return kir_at(k, load)->index == kir_at(k, other)->index && kir_same(kir_type_of(k, load), kir_type_of(k, other)) && a.count == b.count &&
         memcmp(a.args, b.args, a.count * sizeof *a.args) == 0;
}

/* Lanes hand round words: a narrower texel is made one where it is read, by the instruction behind it (kir/widen.c), and only that is read. */
static bool is_widened(const spreading *s, uint32_t i) {
  const kir_kernel *k = s->c.in;
  return i + 1 < k->insts.count && kir_at(k, i + 1)->op == KIR_cast && kir_arg(k, i + 1, 0) == i && s->reads[i] == 1;
}
static bool is_word(const spreading *s, uint32_t i) { return kir_base_bits(kir_at(s->c.in, i)->type.base) == 32; }

static bool may_move(const spreading *s, uint32_t i) {
  const kir_inst *in = kir_at(s->c.in, i);
  if (in->op != KIR_load) return false;
  const kir_memory *m = &s->c.in->memories.at[in->index];
  const uint32_t index = kir_arg(s->c.in, i, 0);
  return (m->flags & KIR_MEM_TEXEL) && (m->flags & KIR_MEM_OOB_ZERO) && kir_mem_is_ro(s->c.in, in->index) &&
         (is_word(s, i) || is_widened(s, i)) && s->u.value[index] <= KIR_UNIFORM_SUBGROUP && s->u.control[i] <= KIR_UNIFORM_SUBGROUP &&
         kir_same(kir_type_of(s->c.in, index), kir_t(SNT_U32, 1));
}

static void find_runs(spreading *s) {
  uint32_t run = 1;
  for (uint32_t a = 0; a < s->c.in->args.count; a++) s->reads[s->c.in->args.at[a]]++;
  for (uint32_t i = 1; i < s->c.in->insts.count; i++) {
    if (kir_ops[kir_at(s->c.in, i)->op].flags & KIR_REGION) run++;
    s->run[i] = may_move(s, i) ? run : 0;
  }
}

/* How many of the constants the lanes reach from the first of them at a distance. */
static uint32_t reached(const spreading *s, const int64_t *constant, uint32_t count, int64_t distance) {
  uint32_t hits = 0;
  for (uint32_t i = 0; i < count; i++) {
    const int64_t way = constant[i] - constant[0];
    hits += way % distance == 0 && way / distance < s->size;
  }
  return hits;
}

/* The loads of one base, by rising constants. */
static uint32_t collect(const spreading *s, uint32_t from, uint32_t *load, int64_t *constant) {
  uint32_t count = 0;
  for (uint32_t i = from; i < s->c.in->insts.count && count < MOST && (s->run[i] == s->run[from] || !s->run[i]); i++) {
    int64_t c;
    if (!s->run[i] || s->leader[i] || !kir_lie_apart(s->c.in, i, from, &c)) continue;
    c += kir_index_of(s->c.in, from).constant;
    uint32_t at = count++;
    for (; at && constant[at - 1] > c; at--) load[at] = load[at - 1], constant[at] = constant[at - 1];
    load[at] = i, constant[at] = c;
  }
  return count;
}

/* Takes the loads out of the list that are read at once with the first of it; gives how many are left. */
static uint32_t take_round(spreading *s, uint32_t *load, int64_t *constant, uint32_t count) {
  int64_t best = 1;
  uint32_t most = 0, left = 0, leader = ~0u;
  for (uint32_t i = 1; i < count; i++) {
    const int64_t distance = constant[i] - constant[0];
    const uint32_t hits = distance ? reached(s, constant, count, distance) : 0;
    if (hits > most) most = hits, best = distance;
  }
  const int64_t first = constant[0];
  for (uint32_t pass = 0; pass < 2; pass++)
    for (uint32_t i = 0; i < count; i++) {
      const int64_t way = constant[i] - first;
      const bool taken = way % best == 0 && way / best < s->size;
      if (!pass) leader = taken && load[i] < leader ? load[i] : leader;
      else if (!taken) load[left] = load[i], constant[left++] = constant[i];
      else s->leader[load[i]] = most < FEWEST ? load[i] : leader, s->place[load[i]] = (uint32_t)(way / best);
    }
  s->first[leader] = first;
  s->distance[leader] = most < FEWEST ? 0 : best;
  s->any |= most >= FEWEST;
  return left;
}

static void find_rounds(spreading *s) {
  for (uint32_t i = 1; i < s->c.in->insts.count; i++) {
    uint32_t load[MOST];
    int64_t constant[MOST];
    if (!s->run[i] || s->leader[i]) continue;
    for (uint32_t count = collect(s, i, load, constant); count;) count = take_round(s, load, constant, count);
  }
}

static uint32_t read_round(spreading *s, uint32_t leader) {
  kir_kernel *out = s->c.out;
  const kir_index_form f = kir_index_of(s->c.in, leader);
  uint32_t args[64], count = 0;
  if (f.count + 4 > IR_COUNT(args)) return kir_clone_inst(&s->c, leader);
  if (f.count == 1) args[count++] = kir_const_int(out, kir_t(SNT_U32, 1), 1);
  for (uint32_t n = 0; n < f.count; n++) args[count++] = s->c.map[f.args[n]];
  args[count++] = kir_const_int(out, kir_t(SNT_U32, 1), s->distance[leader]);
  args[count++] = s->lane;
  const kir_inst ix = {.op = KIR_ix, .type = kir_t(SNT_U32, 1), .imm.i = s->first[leader]};
  const uint32_t index = kir_emit(out, &ix, count, args);
  kir_inst load = *kir_at(s->c.in, leader);
  load.flags &= (uint16_t)~KIR_IS_UNIFORM;
  load.align = 0; /* what is known is of the leader's index */
  return kir_emit(out, &load, 1, &index);
}

/* As load i, or as the word behind it. */
static void hand_round(spreading *s, uint32_t i) {
  const uint32_t leader = s->leader[i], word = is_word(s, i) ? i : i + 1;
  if (leader == i) s->made[i] = read_round(s, i);
  if (leader == i && word != i) s->made[i] = kir_cast(s->c.out, kir_type_of(s->c.in, word), s->made[i]);
  s->c.map[word] = kir_2(s->c.out, KIR_sg_shuffle, s->made[leader], kir_const_int(s->c.out, kir_t(SNT_U32, 1), s->place[i]));
}

static bool open_tables(spreading *s, ir_arena *arena, uint32_t count) {
  uint32_t **const tables[] = {&s->run, &s->leader, &s->place, &s->made, &s->reads};
  for (uint32_t t = 0; t < IR_COUNT(tables); t++)
    if (!(*tables[t] = IR_NEW_ARRAY(arena, uint32_t, count))) return false;
  s->first = IR_NEW_ARRAY(arena, int64_t, count);
  s->distance = IR_NEW_ARRAY(arena, int64_t, count);
  kir_regions regions;
  return s->first && s->distance && kir_find_regions(s->c.in, arena, &regions) && kir_uniformity_find(s->c.in, arena, &regions, &s->u);
}

bool kir_has_texels(const kir_kernel *k, const kir_caps *caps) {
  const uint32_t size = caps->subgroup_size;
  if (size < 2 || !caps->subgroup_arithmetic || k->items[0] % size || (k->sub && k->sub != ~0u && k->sub != size)) return false;
  for (uint32_t m = 0; m < k->memories.count; m++)
    if (k->memories.at[m].flags & KIR_MEM_TEXEL) return true;
  return false;
}

snt_result kir_pass_spread(const kir_kernel *in, kir_kernel *out, const kir_caps *caps, snt_diag *diag) {
  spreading s = {.size = caps->subgroup_size};
  SNT_TRY(kir_clone_begin(&s.c, in, out));
  if (!open_tables(&s, out->arena, in->insts.count)) return kir_pass_stop(out, "spread", diag);
  find_runs(&s);
  find_rounds(&s);
  if (s.any) {
    out->sub = s.size;
    s.lane = kir_id(out, KIR_sg_lane, 0);
  }
  for (uint32_t i = 1; i < in->insts.count; i++) {
    if (s.run[i] && s.distance[s.leader[i]]) {
      hand_round(&s, i);
      i += !is_word(&s, i);
    } else kir_clone_inst(&s.c, i);
  }
  return kir_pass_end(out, "spread", diag);
}
