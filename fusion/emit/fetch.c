/* Asking early for what a loop over memory reads and writes: hardware does not look beyond a page, and sees few lines ahead through many
   instructions. A line that is to be written is fetched as well, unless the store streams past the caches. Not every processor gains by it: profile. */
#include "fusion/emit_private.h"

enum { MAX_FETCHES = 4, MAX_ROWS = 16, NARROW = 2 /* bytes */ };

typedef struct fetches {
  uint32_t count, memory[MAX_FETCHES];
} fetches;

static bool is_taken(const fetches *f, uint32_t memory) {
  for (uint32_t i = 0; i < f->count; i++)
    if (f->memory[i] == memory) return true;
  return false;
}

/* A vector beside vectors of the trips before and after, of a memory which the second cache does not hold. A row comes again soon, and the next one is
   asked for as a whole; only what lies narrow in memory, which takes many instructions to widen, is wanted a little at a time there. */
static bool is_streamed(const emit *e, const kir_inst *in) {
  const kir_memory *m = &e->k->memories.at[in->index];
  const uint32_t bytes = ir_dtypes[m->type.base].bytes;
  if (m->space != KIR_GLOBAL || in->lanes > 1 || (e->group->kind == GROUP_ROW && bytes > NARROW)) return false;
  return (double)m->dims[0] * bytes >= e->c->options->profile->l2_bytes;
}

typedef struct trip {        /* of a loop */
  uint32_t first, end, rows; /* its instructions; rows that it goes through in turn, 1 where lanes are results */
  uint32_t counter;          /* of one whose lanes are results; 0: lanes lie along what it counts */
} trip;

/* What the body loads or stores of one memory lies one after another as a rule: one request of as many bytes. Where it does not, the hint is for less. */
static int32_t bytes_of_trip(const emit *e, const trip *t, const kir_inst *like) {
  const uint32_t bytes = ir_dtypes[e->k->memories.at[like->index].type.base].bytes;
  uint32_t lanes = 0;
  for (uint32_t i = t->first; i < t->end; i++) {
    const kir_inst *in = kir_at(e->k, i);
    if (in->op != like->op || in->index != like->index) continue;
    lanes += in->op == KIR_load ? in->type.lanes : emit_value_type(e, kir_arg(e->k, i, 1)).lanes;
  }
  return (int32_t)(lanes * bytes / t->rows);
}

/* The indices of the first loads or stores of a memory, from `at` on. */
static uint32_t first_places(const emit *e, uint32_t at, const trip *t, uint32_t *places) {
  const kir_inst like = *kir_at(e->k, at);
  uint32_t count = 0;
  for (uint32_t i = at; i < t->end && count < t->rows; i++)
    if (kir_at(e->k, i)->op == like.op && kir_at(e->k, i)->index == like.index) places[count++] = kir_arg(e->k, i, 0);
  return count;
}

/* How far an index moves when the counter does by one, if it is a sum of multiples. */
static int64_t moves(const kir_kernel *k, uint32_t index, uint32_t counter) {
  int64_t coef, sum = 0;
  if (index == counter) return 1;
  for (uint32_t n = 0; kir_at(k, index)->op == KIR_ix && n < kir_at(k, index)->arg_count; n += 2)
    if (kir_is_const(k, kir_arg(k, index, n), &coef, NULL)) sum += coef * moves(k, kir_arg(k, index, n + 1), counter);
  return sum;
}

bool emit_fetches_runs(const cost_profile *p) { return p->caps.prefetch && (p->plain_runs || p->lanes <= p->run_fetch_lanes); }

/* Hardware that sees long runs is late for several at once of what takes many instructions to widen. What they read in their next turn is thousands of
   cycles away, so it has room in the second cache. (64 MB of 8 bits times a vector, on two cores of Zen 4: 0.65 to 0.75 of the time; of f32 the same.) */
static bool is_far(const emit *e, const trip *t) { return t->rows > 1 && !t->counter && !emit_fetches_runs(e->c->options->profile); }

static bool has_room_far(const emit *e, const trip *t, const uint32_t *places, int32_t bytes) {
  const kir_inst *first = kir_at(e->k, places[0]), *second = kir_at(e->k, places[1]);
  const double turn = (double)(second->imm.i - first->imm.i) * t->rows * bytes;
  return first->op == KIR_ix && second->op == KIR_ix && 2 * turn <= e->c->options->profile->l2_bytes;
}

/* Many operations of vectors for each line that is read; what is the same in all lanes is none. */
static bool does_much(const emit *e, const trip *t) {
  enum { MUCH = 16 };
  uint32_t work = 0, bytes = 0;
  for (uint32_t i = t->first; i < t->end; i++) {
    const kir_inst *in = kir_at(e->k, i);
    if (in->op == KIR_load) bytes += in->type.lanes > 1 ? in->type.lanes * ir_dtypes[in->type.base].bytes : 0;
    else work += in->type.lanes > 1 && in->op != KIR_splat && in->op != KIR_const;
  }
  return work * FUSION_LINE >= MUCH * bytes;
}

/* Long runs are asked for by profile. Where results lie in lanes the loop may go anywhere; if it goes on where it ends, and does much with each line (fields
   of words that become floats), hardware is too late on every processor (64 MB of 4-bit weights on two cores of Zen 4: 0.86 of the time; as bytes times codes,
   a third of the operations, 1.35, times three slices of floats 1.25). */
static bool gains(const emit *e, const trip *t, const kir_inst *in, const uint32_t *places, int32_t bytes) {
  const int32_t element = (int32_t)ir_dtypes[e->k->memories.at[in->index].type.base].bytes;
  if (is_far(e, t)) return element <= NARROW && has_room_far(e, t, places, element);
  if (!t->counter) return emit_fetches_runs(e->c->options->profile);
  return does_much(e, t) && moves(e->k, *places, t->counter) * element == bytes;
}

/* Where rows take turns, what each of them reads in the next turn, as far from it as the rows are from each other; else a little later in the row. */
static uint32_t later_place(emit *e, const trip *t, const uint32_t *places, uint32_t row, int64_t ahead) {
  const int64_t turn[] = {1, t->rows, -(int64_t)t->rows};
  if (t->rows == 1) return kir_ix(e->k, 1, turn, places, ahead);
  return kir_ix(e->k, 3, turn, (uint32_t[]){places[row], places[1], places[0]}, ahead);
}

/* A line at a time where much is done beside it: a loop of requests that the compiler leaves one parts the values around it (spilled: 1.9 of the time). */
static void ask(emit *e, const trip *t, kir_inst fetch, const uint32_t *places) {
  enum { AHEAD = 1024, FAR_AHEAD = 2048 };
  const int32_t bytes = ir_dtypes[e->k->memories.at[fetch.index].type.base].bytes, all = fetch.lanes,
                part = t->counter && all > FUSION_LINE ? FUSION_LINE : all;
  const int32_t ahead = t->counter ? FAR_AHEAD : t->rows == 1 ? AHEAD : 0;
  fetch.lanes = part;
  for (uint32_t row = 0; row < t->rows; row++)
    for (int32_t at = 0; at < all; at += part) {
      const uint32_t later = later_place(e, t, places, row, (ahead + at) / bytes);
      kir_put(e->k, &fetch, 1, &later);
    }
}

void emit_fetch_ahead(emit *e, uint32_t first, uint32_t rows, uint32_t counter) {
  const trip t = {first, e->k->insts.count, rows, counter};
  fetches taken = {0};
  if (!e->c->options->profile->caps.prefetch || e->k->failed) return;
  for (uint32_t i = first; i < t.end && taken.count < MAX_FETCHES; i++) {
    const kir_inst in = *kir_at(e->k, i);
    uint32_t places[MAX_ROWS];
    if (kir_ops[in.op].flags & KIR_REGION) return; /* behind a condition */
    const bool store = in.op == KIR_store;
    if ((!store && in.op != KIR_load) || in.flags & KIR_IS_STREAM || is_taken(&taken, in.index) || !is_streamed(e, &in)) continue;
    const uint32_t lanes = store ? emit_value_type(e, kir_arg(e->k, i, 1)).lanes : in.type.lanes;
    if (lanes == 1 || first_places(e, i, &t, places) < rows) continue;
    const kir_inst fetch = {.op = KIR_prefetch,
                            .index = in.index,
                            .lanes = bytes_of_trip(e, &t, &in),
                            .flags = (store ? KIR_IS_RW : 0) | (is_far(e, &t) ? KIR_IS_FAR : 0)};
    if (!gains(e, &t, &in, places, fetch.lanes)) continue;
    ask(e, &t, fetch, places);
    taken.memory[taken.count++] = in.index;
  }
}
