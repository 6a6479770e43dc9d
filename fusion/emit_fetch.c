/* Asking early for what a loop over memory reads and writes: hardware does not look beyond a page, and sees few lines ahead through many
   instructions. A line that is to be written is fetched as well, unless the store streams past the caches. Not every processor gains by it: profile. */
#include "fusion/emit_private.h"

enum { MAX_FETCHES = 4, MAX_ROWS = 16 };

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
  enum { NARROW = 2 };
  const kir_memory *m = &e->k->memories.at[in->index];
  const uint32_t bytes = ir_dtypes[m->type.base].bytes;
  if (m->space != KIR_GLOBAL || in->lanes > 1 || (e->group->kind == GROUP_ROW && bytes > NARROW)) return false;
  return (double)m->dims[0] * bytes >= e->c->options->profile->l2_bytes;
}

/* What the body loads or stores of one memory lies one after another as a rule: one request of as many bytes. Where it does not, the hint is for less. */
static int32_t bytes_of_trip(const emit *e, uint32_t first, uint32_t end, const kir_inst *like) {
  const uint32_t bytes = ir_dtypes[e->k->memories.at[like->index].type.base].bytes;
  uint32_t lanes = 0;
  for (uint32_t i = first; i < end; i++) {
    const kir_inst *in = kir_at(e->k, i);
    if (in->op != like->op || in->index != like->index) continue;
    lanes += in->op == KIR_load ? in->type.lanes : emit_value_type(e, kir_arg(e->k, i, 1)).lanes;
  }
  return (int32_t)(lanes * bytes);
}

/* The indices of the first loads or stores of a memory, from `at` on. */
static uint32_t first_places(const emit *e, uint32_t at, uint32_t end, uint32_t most, uint32_t *places) {
  const kir_inst like = *kir_at(e->k, at);
  uint32_t count = 0;
  for (uint32_t i = at; i < end && count < most; i++)
    if (kir_at(e->k, i)->op == like.op && kir_at(e->k, i)->index == like.index) places[count++] = kir_arg(e->k, i, 0);
  return count;
}

/* Where rows take turns, what each of them reads in the next turn, as far from it as the rows are from each other; else a little later in the row. */
static uint32_t later_place(emit *e, uint32_t rows, const uint32_t *places, uint32_t row, int64_t ahead) {
  const int64_t turn[] = {1, rows, -(int64_t)rows};
  if (rows == 1) return kir_ix(e->k, 1, turn, places, ahead);
  return kir_ix(e->k, 3, turn, (uint32_t[]){places[row], places[1], places[0]}, 0);
}

static bool gains(const cost_profile *p) { return p->caps.prefetch && (p->plain_runs || p->lanes <= p->run_fetch_lanes); }

void emit_fetch_ahead(emit *e, uint32_t first, uint32_t rows) {
  enum { AHEAD = 1024 };
  const uint32_t end = e->k->insts.count;
  fetches taken = {0};
  if (!gains(e->c->options->profile) || e->k->failed) return;
  for (uint32_t i = first; i < end && taken.count < MAX_FETCHES; i++) {
    const kir_inst in = *kir_at(e->k, i);
    uint32_t places[MAX_ROWS];
    if (kir_ops[in.op].flags & KIR_REGION) return; /* behind a condition */
    const bool store = in.op == KIR_store;
    if ((!store && in.op != KIR_load) || in.flags & KIR_IS_STREAM || is_taken(&taken, in.index) || !is_streamed(e, &in)) continue;
    const uint32_t lanes = store ? emit_value_type(e, kir_arg(e->k, i, 1)).lanes : in.type.lanes;
    if (lanes == 1 || first_places(e, i, end, rows, places) < rows) continue;
    const uint32_t bytes = ir_dtypes[e->k->memories.at[in.index].type.base].bytes;
    const kir_inst fetch = {
        .op = KIR_prefetch, .index = in.index, .lanes = bytes_of_trip(e, first, end, &in) / (int32_t)rows, .flags = store ? KIR_IS_RW : 0};
    for (uint32_t row = 0; row < rows; row++) {
      const uint32_t later = later_place(e, rows, places, row, AHEAD / bytes);
      kir_put(e->k, &fetch, 1, &later);
    }
    taken.memory[taken.count++] = in.index;
  }
}
