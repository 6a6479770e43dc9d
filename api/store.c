/* Constant data shared by a graph and the programs compiled from it. Data that the graph only borrowed is copied once, when it is first
   compiled; data that the store itself keeps alive (mapped files) is used where it lies. */
#include "api/handles.h"

api_store *api_store_new(snt_context *c) {
  api_store *s = api_take(c, sizeof *s);
  if (!s) return NULL;
  atomic_init(&s->uses, 1);
  s->context = c;
  api_context_hold(c);
  ir_arena_init(&s->arena, &c->alloc);
  return s;
}

api_store *api_store_hold(api_store *s) {
  if (s) atomic_fetch_add(&s->uses, 1);
  return s;
}

void api_store_drop(api_store *s) {
  if (!s || atomic_fetch_sub(&s->uses, 1) != 1) return;
  snt_context *c = s->context;
  for (api_kept *k = s->kept; k; k = k->next) k->release(k->user);
  ir_arena_free(&s->arena);
  api_give(c, s, sizeof *s);
  snt_context_destroy(c);
}

void api_store_rest(const api_store *s) {
  for (const api_kept *k = s ? s->kept : NULL; k; k = k->next)
    if (k->rest) k->rest(k->user);
}

static bool keeps(const api_store *s, const void *data, uint64_t bytes) {
  for (const api_kept *k = s->kept; k; k = k->next)
    if (k->holds && k->holds(k->user, data, bytes)) return true;
  return false;
}

const void *api_store_data(api_store *s, const void *data, uint64_t bytes) {
  if (keeps(s, data, bytes)) return data;
  for (uint32_t i = 0; i < s->copies.count; i++)
    if (s->copies.at[i].from == data && s->copies.at[i].bytes == bytes) return s->copies.at[i].copy;
  const api_copy c = {data, ir_arena_take(&s->arena, (size_t)bytes, 64), bytes};
  if (!c.copy) return NULL;
  if (bytes) memcpy(c.copy, data, (size_t)bytes);
  return IR_PUSH(&s->arena, &s->copies, c) ? c.copy : NULL;
}

/* ---- constants of a program that were only described ---- */

enum { MADE_ALIGN = 64, MADE_STEP = 16 };
static size_t room_of(const ir_making *m) { return (size_t)((m->bytes + MADE_STEP - 1) / MADE_STEP * MADE_STEP); }

/* Described alike is made once, for the first of them. */
static uint32_t first_of(const ir_plan *p, uint32_t buffer) {
  uint32_t i = 0;
  while (p->buffers.at[i].making != p->buffers.at[buffer].making) i++;
  return i;
}

static void *make(const snt_program *p, const ir_making *m) {
  enum { LARGE = 64 * 1024 };
  const snt_host_alloc *host = &p->context->alloc;
  uint8_t *to = host->acquire(host->user, room_of(m), MADE_ALIGN, 0);
  if (to && !ir_make(m, host, to)) {
    host->release(host->user, to, room_of(m), MADE_ALIGN);
    return NULL;
  }
  if (to) memset(to + m->bytes, 0, room_of(m) - (size_t)m->bytes);
  if (m->bytes >= LARGE) api_store_rest(p->store); /* what was read of a file for it need not stay */
  return to;
}

const void *api_constant(const snt_program *p, uint32_t buffer) {
  const plan_buffer *b = &p->plan.buffers.at[buffer];
  if (b->data || !b->making || !p->made) return b->data;
  _Atomic(void *) *place = &p->made[first_of(&p->plan, buffer)];
  void *known = atomic_load(place);
  if (known) return known;
  void *own = make(p, b->making);
  if (!own || atomic_compare_exchange_strong(place, &known, own)) return own;
  p->context->alloc.release(p->context->alloc.user, own, room_of(b->making), MADE_ALIGN); /* another thread was first */
  return known;
}

bool api_make_constants(const snt_program *p) {
  const ir_plan *plan = &p->plan;
  for (uint32_t i = 0; i < plan->buffers.count; i++)
    if (plan->buffers.at[i].kind == PLAN_CONSTANT && plan->buffers.at[i].first_step != UINT32_MAX && !api_constant(p, i)) return false;
  return true;
}

bool api_expect_constants(snt_program *p) {
  p->made_count = p->plan.buffers.count;
  p->made = IR_NEW_ARRAY(&p->arena, _Atomic(void *), p->made_count + 1);
  return p->made != NULL;
}

void api_drop_constants(snt_program *p) {
  for (uint32_t i = 0; p->made && i < p->made_count; i++) {
    void *own = atomic_load(&p->made[i]);
    if (own) p->context->alloc.release(p->context->alloc.user, own, room_of(p->plan.buffers.at[i].making), MADE_ALIGN);
  }
}
