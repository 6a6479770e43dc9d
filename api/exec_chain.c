/* Which steps of a plan go together in one launch, and their jobs. A driver that lets its threads sleep and wake between two kernels takes longer for that than
   some kernels do (MobileNet-v2 on PoCL: 39 launches of 8 us beside 1.6 ms); one launch that goes through several has barriers of its own instead
   (codegen_opencl/chain.c). Of a loop's body as many trips are one launch as divide its trips, if their number is known: small recurrences are little else than
   launches. */
#include "api/exec.h"
#include "api/hints.h"
#include "codegen_common/targets.h"
#include "runtime/targets.h"

enum {
  DISTINCT = 10, /* kernels of a chain: the driver compiles it as a whole, and other chains beside it */
  MAX_WORDS = 64,
  MAX_SLOTS = 64
};

typedef struct finder {
  snt_exec *x;
  const codegen_target *target;
  uint32_t *like; /* kernel -> the first with its code */
} finder;

/* What a launch binds: each part of a buffer once, however many of its steps do. */
typedef struct slot_list {
  uint32_t count, words, trip[MAX_SLOTS];
  const plan_binding *at[MAX_SLOTS];
} slot_list;

static const plan_step *step_at(const finder *f, uint32_t s) { return &f->x->program->plan.steps.at[s]; }
static uint32_t kernel_at(const finder *f, uint32_t s) { return f->like[step_at(f, s)->kernel]; }
static uint32_t words_of(const finder *f, uint32_t s) { return f->x->program->kernels[step_at(f, s)->kernel].block_bytes / 4 + 1; }

static void find_like(finder *f) {
  for (uint32_t k = 0; k < f->x->program->plan.kernels.count; k++) {
    uint32_t same = 0;
    while (same < k && !codegen_same(exec_code_of(f->x, same), exec_code_of(f->x, k))) same++;
    f->like[k] = same;
  }
}

static bool can_link(const finder *f, uint32_t s) {
  const api_kernel *k = &f->x->program->kernels[step_at(f, s)->kernel];
  return k->items[0] * k->items[1] * k->items[2] == 1 && f->target->can_link(exec_code_of(f->x, step_at(f, s)->kernel));
}

/* How far steps are of the same loop, or of none. */
static uint32_t end_of_region(const finder *f, uint32_t first) {
  const plan_loop *loop = api_loop_around(&f->x->program->plan, first);
  uint32_t end = first;
  while (end < f->x->program->plan.steps.count && api_loop_around(&f->x->program->plan, end) == loop) end++;
  return end;
}

/* Does the step run only where the one before it does not? */
static bool is_alternative(const ir_plan *p, uint32_t s) {
  return s && p->steps.at[s].choice && p->steps.at[s].choice == p->steps.at[s - 1].choice;
}

/* Are they the same in these trips? Halves of a pair are written in turn; where a part begins may hang on the trip. */
static bool same_part(const finder *f, const plan_binding *a, uint32_t trip, const plan_binding *b, uint32_t other_trip) {
  const expr_pool *pool = f->x->program->plan.pool;
  int64_t literal;
  if (a->buffer != b->buffer || a->offset != b->offset || a->bytes != b->bytes || a->swap != b->swap || a->other != b->other) return false;
  return trip == other_trip || (expr_is_const(pool, a->offset, &literal) && expr_is_const(pool, a->bytes, &literal) &&
                                (!a->swap || (trip ^ other_trip) % 2 == 0));
}

/* 0: the list is full. */
static uint32_t slot_of(const finder *f, slot_list *l, const plan_binding *b, uint32_t trip) {
  uint32_t i = 0;
  while (i < l->count && !same_part(f, l->at[i], l->trip[i], b, trip)) i++;
  if (i == MAX_SLOTS) return 0;
  if (i == l->count) l->at[i] = b, l->trip[i] = trip, l->count++;
  return i + 1;
}

/* Does a step of a trip go into the launch, too? Slots: if not null, where its bindings' are put. */
static bool add_step(const finder *f, slot_list *l, uint32_t s, uint32_t trip, uint32_t *slots) {
  const uint32_t limit = f->x->device->profile.max_bindings;
  l->words += words_of(f, s);
  for (uint32_t i = 0; i < step_at(f, s)->binding_count; i++) {
    const uint32_t slot = slot_of(f, l, &step_at(f, s)->bindings[i], trip);
    if (!slot) return false;
    if (slots) slots[i] = slot;
  }
  return l->words < MAX_WORDS && (!limit || l->count < limit);
}

/* Does one launch go through all that the chain says? */
static bool measure(const finder *f, exec_chain *c, uint32_t *slots) {
  slot_list l = {.count = 0};
  for (uint32_t i = 0; i < (c->end - c->first) * c->trips; i++) {
    const uint32_t s = c->first + i % (c->end - c->first);
    if (!add_step(f, &l, s, i / (c->end - c->first), slots)) return false;
    if (slots) slots += step_at(f, s)->binding_count;
  }
  c->binding_count = l.count + 1, c->word_count = l.words;
  return true;
}

/* Trips of the loop whose body the steps are that one launch may go through: all launches go through as many. */
static uint32_t find_trips(const finder *f, uint32_t first, uint32_t end) {
  const cost_profile *p = &f->x->device->profile;
  const plan_loop *loop = api_loop_around(&f->x->program->plan, first);
  int64_t trips;
  if (!loop || first != loop->first || end != loop->end || !expr_is_const(f->x->program->plan.pool, loop->trips, &trips)) return 1;
  for (uint32_t t = p->launch_steps / (end - first); t > 1; t--) {
    exec_chain c = {.first = first, .end = end, .trips = t};
    if (trips % t == 0 && measure(f, &c, NULL)) return t;
  }
  return 1;
}

static uint32_t link_count(const exec_chain *c) { return (c->end - c->first) * c->trips; }

static uint32_t use_count(const finder *f, const exec_chain *c) {
  uint32_t uses = 0;
  for (uint32_t s = c->first; s < c->end; s++) uses += step_at(f, s)->binding_count;
  return uses * c->trips;
}

/* False: out of memory. */
static bool find_slots(const finder *f, exec_chain *c) {
  c->slots = IR_NEW_ARRAY(&f->x->texts, uint32_t, use_count(f, c) + 1);
  return c->slots && measure(f, c, c->slots);
}

/* The same steps as another chain's: its code serves again. */
static uint32_t end_as(const finder *f, const exec_chain *other, uint32_t first, uint32_t last) {
  const uint32_t count = other->end - other->first;
  if (count > last - first) return first;
  for (uint32_t i = 0; i < count; i++) {
    const plan_step *a = step_at(f, other->first + i), *b = step_at(f, first + i);
    if (kernel_at(f, other->first + i) != kernel_at(f, first + i) || a->binding_count != b->binding_count ||
        (i && a->barrier != b->barrier))
      return first;
  }
  exec_chain c = {.first = first, .end = first + count, .trips = find_trips(f, first, first + count)};
  return c.trips == other->trips && find_slots(f, &c) && !memcmp(c.slots, other->slots, use_count(f, &c) * sizeof *c.slots) ? c.end : first;
}

/* Do the steps up to `again` follow once more? */
static bool repeats(const finder *f, uint32_t first, uint32_t again, uint32_t last) {
  if (again - first > last - again) return false;
  for (uint32_t s = first; s < again; s++)
    if (kernel_at(f, s) != kernel_at(f, again + s - first)) return false;
  return true;
}

/* Of several alternatives one runs, which is what limits are about. */
static bool counts(const finder *f, uint32_t first, uint32_t s) { return s == first || !is_alternative(&f->x->program->plan, s); }

/* As far as one launch may go. */
static uint32_t end_of_launch(const finder *f, uint32_t first, uint32_t last) {
  const cost_profile *p = &f->x->device->profile;
  slot_list l = {.count = 0};
  uint32_t links = 0, end = first;
  for (; end < last && links < p->launch_steps && can_link(f, end) && add_step(f, &l, end, 0, NULL); end++) links += counts(f, first, end);
  return end;
}

/* As far as the kernels of a launch are few enough. */
static uint32_t end_of_few(const finder *f, uint32_t first, uint32_t end) {
  uint32_t kinds = 0, at = first;
  for (; at < end; at++) {
    uint32_t like = first;
    while (kernel_at(f, like) != kernel_at(f, at)) like++;
    kinds += like == at && counts(f, first, at);
    if (kinds > DISTINCT) break;
  }
  return at;
}

/* Where the steps last begin again before `end`; behind `few` where a whole layer follows once more, which may be of more kernels: parts of it would be cut
   elsewhere in each. 0: nowhere. */
static uint32_t begin_again(const finder *f, uint32_t first, uint32_t few, uint32_t end, uint32_t last) {
  for (uint32_t at = end; at-- > first + 1;)
    if (kernel_at(f, at) == kernel_at(f, first) && (at < few || repeats(f, first, at, last))) return at;
  return 0;
}

/* Where a chain stops before the end of the plan, or of a loop's body, it stops where the steps begin again, if they do: layers like each other make chains
   like each other. */
static uint32_t end_of_new(const finder *f, uint32_t first, uint32_t last) {
  const uint32_t end = end_of_launch(f, first, last), few = end_of_few(f, first, end), again = begin_again(f, first, few, end, last);
  return few < last && again ? again : few;
}

/* False: out of memory. */
static bool cut_into_chains(finder *f) {
  snt_exec *x = f->x;
  for (uint32_t s = 0, last = 0; s < x->program->plan.steps.count;) {
    if (s >= last) last = end_of_region(f, s);
    exec_chain c = {.first = s, .end = s, .like = x->chain_count};
    for (uint32_t i = 0; i < x->chain_count; i++) {
      const uint32_t end = end_as(f, &x->chains[i], s, last);
      if (end > c.end) c.end = end, c.like = x->chains[i].like;
    }
    if (c.end == s) c.end = end_of_new(f, s, last);
    s = c.end > s ? c.end : s + 1;
    if (c.end == c.first) continue;
    c.trips = find_trips(f, c.first, c.end);
    if (link_count(&c) < 2) continue;
    if (!find_slots(f, &c)) return false;
    x->chains[x->chain_count++] = c;
  }
  return true;
}

uint64_t exec_chain_launches(const snt_exec *x, uint64_t dispatches) { return x->chain_count ? dispatches : 0; }

uint64_t exec_chain_words(const snt_exec *x, uint64_t dispatches) {
  uint64_t most = 0;
  for (uint32_t i = 0; i < x->chain_count; i++)
    for (uint32_t s = x->chains[i].first; s < x->chains[i].end; s++) {
      const uint64_t words = x->program->kernels[x->program->plan.steps.at[s].kernel].block_bytes / 4 + 1;
      if (words > most) most = words;
    }
  return most * dispatches;
}

snt_result exec_find_chains(snt_exec *x, snt_diag *diag) {
  const ir_plan *p = &x->program->plan;
  finder f = {.x = x, .target = x->device->rt ? rt_codegen(x->device->rt->target) : NULL};
  ir_arena_init(&x->texts, &x->device->context->alloc);
  if (!f.target || !f.target->chain || x->device->profile.launch_steps < 2 || x->flags || p->steps.count == 0) return SNT_OK;
  f.like = IR_NEW_ARRAY(&x->texts, uint32_t, p->kernels.count + 1);
  x->chains = IR_NEW_ARRAY(&x->texts, exec_chain, p->steps.count);
  if (!f.like || !x->chains) return ir_no_memory(diag, "exec");
  find_like(&f);
  if (!cut_into_chains(&f)) return ir_no_memory(diag, "exec");
  uint64_t turns = 0;
  for (uint32_t i = 0; i < x->chain_count; i++) {
    const uint64_t bytes = codegen_turn_bytes(link_count(&x->chains[i]), (uint32_t)x->device->profile.units);
    if (bytes > turns) turns = bytes;
  }
  if (!turns) return SNT_OK;
  void *zero = IR_NEW_ARRAY(&x->texts, uint8_t, turns);
  if (!zero) return ir_no_memory(diag, "exec");
  rt_device *rt = x->device->rt;
  SNT_TRY(rt->v->buffer_create(rt, turns, &x->turns, diag));
  SNT_TRY(rt->v->upload(x->stream->rt, x->turns, 0, zero, turns, diag));
  return rt->v->wait(x->stream->rt, diag);
}

static snt_result make_code(snt_exec *x, const exec_chain *c, api_code *out, snt_diag *diag) {
  const ir_plan *p = &x->program->plan;
  const uint32_t count = link_count(c), steps = c->end - c->first;
  codegen_link *links = IR_NEW_ARRAY(&x->texts, codegen_link, count);
  const uint32_t *slots = c->slots;
  if (!links) return ir_no_memory(diag, "exec");
  for (uint32_t i = 0; i < count; slots += links[i++].binding_count) {
    const plan_step *s = &p->steps.at[c->first + i % steps];
    links[i] = (codegen_link){.code = exec_code_of(x, s->kernel),
                              .binding_count = s->binding_count,
                              .slots = slots,
                              .word_count = x->program->kernels[s->kernel].block_bytes / 4,
                              .barrier = i > 0 && (s->barrier || i % steps == 0)}; /* a trip waits for the one before it */
  }
  return rt_codegen(x->device->rt->target)->chain(count, links, &x->texts, &out->code, diag);
}

static const char *name_of(snt_exec *x, const exec_chain *c) {
  const ir_plan *p = &x->program->plan;
  ir_text text;
  ir_text_init(&text, &x->texts);
  ir_text_format(&text, "%s to %s", p->steps.at[c->first].name, p->steps.at[c->end - 1].name);
  return text.failed ? NULL : text.at;
}

snt_result exec_make_chain_jobs(snt_exec *x, snt_diag *diag) {
  for (uint32_t i = 0; i < x->chain_count; i++) {
    exec_chain *c = &x->chains[i];
    exec_job *job = &x->jobs[x->job_count];
    c->job = c->like == i ? x->job_count : x->chains[c->like].job;
    if (c->like != i) continue;
    SNT_TRY(make_code(x, c, &job->code, diag));
    job->chain = c;
    job->kernel = x->program->plan.steps.at[c->first].kernel;
    job->name = name_of(x, c);
    if (!job->name) return ir_no_memory(diag, "exec");
    x->job_count++;
  }
  return SNT_OK;
}

void exec_drop_chains(snt_exec *x) {
  if (x->turns) x->device->rt->v->buffer_destroy(x->turns);
  ir_arena_free(&x->texts);
}
