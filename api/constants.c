/* Constants of a program that its compile only described: made on first need, each description once, kept as long as the program.
   In: the buffers of a plan, from any thread. Out: bytes, whose rest up to a multiple of sixteen is zero. */
#include "api/blob.h"
#include "ir/making.h"

enum { MADE_ALIGN = 64, MADE_STEP = 16 };
static uint64_t bytes_of(const snt_program *p, const plan_buffer *b) {
  uint64_t bytes = 0;
  plan_logical_bytes(&p->plan, b, NULL, &bytes);
  return bytes;
}
static size_t room_of(uint64_t bytes) { return (size_t)((bytes + MADE_STEP - 1) / MADE_STEP * MADE_STEP); }

/* Described alike is made once, for the first of them. */
static uint32_t first_of(const ir_plan *p, uint32_t buffer) {
  const plan_buffer *b = &p->buffers.at[buffer];
  uint32_t i = b->data ? buffer : 0;
  while (p->buffers.at[i].making != b->making || p->buffers.at[i].flushes != b->flushes) i++;
  return i;
}

/* Is one of these floats below 2^-126 and not 0? With `to`, a copy of theirs, all such become 0 there. */
static bool flush(const char *from, uint64_t bytes, char *to) {
  bool any = false;
  for (uint64_t at = 0; at < bytes; at += sizeof(float)) {
    uint32_t bits;
    memcpy(&bits, from + at, sizeof bits);
    if ((bits & 0x7fffffff) - 1 >= 0x7fffff) continue;
    any = true;
    if (to) memset(to + at, 0, sizeof bits);
  }
  return any;
}

enum { LARGE = 64 * 1024 };
static void *make(const snt_program *p, const plan_buffer *b) {
  const snt_host_alloc *host = &p->context->alloc;
  const uint64_t bytes = bytes_of(p, b);
  char *to = host->acquire(host->user, room_of(bytes), MADE_ALIGN, 0);
  if (to && b->data) memcpy(to, b->data, (size_t)bytes);
  if (to && !b->data && !ir_make(b->making, host, to)) {
    host->release(host->user, to, room_of(bytes), MADE_ALIGN);
    return NULL;
  }
  if (to) memset(to + bytes, 0, room_of(bytes) - (size_t)bytes);
  if (to && b->flushes) flush(to, bytes, to);
  if (bytes >= LARGE) api_store_rest(p->store); /* what was read of a file for it need not stay */
  return to;
}

const void *api_constant(const snt_program *p, uint32_t buffer) {
  const plan_buffer *b = &p->plan.buffers.at[buffer];
  if (!p->made || (b->data ? !b->flushes || !flush(b->data, bytes_of(p, b), NULL) : !b->making)) return b->data;
  _Atomic(void *) *place = &p->made[first_of(&p->plan, buffer)];
  void *known = atomic_load(place);
  if (known) return known;
  void *own = make(p, b);
  if (!own || atomic_compare_exchange_strong(place, &known, own)) return own;
  p->context->alloc.release(p->context->alloc.user, own, room_of(bytes_of(p, b)), MADE_ALIGN); /* another thread was first */
  return known;
}

bool api_is_to_make(const snt_program *p, uint32_t buffer) {
  const plan_buffer *b = &p->plan.buffers.at[buffer];
  if (b->kind != PLAN_CONSTANT || b->first_step == UINT32_MAX || b->data || !p->made || !b->making || b->making->bytes < LARGE)
    return false;
  return first_of(&p->plan, buffer) == buffer && !atomic_load(&p->made[buffer]);
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
    if (own) p->context->alloc.release(p->context->alloc.user, own, room_of(bytes_of(p, &p->plan.buffers.at[i])), MADE_ALIGN);
  }
}

/* Constants are copied into the program: the blob is the caller's. */
const void *blob_constant(snt_program *p, const blob_bytes *data, uint64_t offset, uint64_t size) {
  if (offset > data->size || size > data->size - offset) return NULL;
  void *copy = ir_arena_take(&p->arena, (size_t)size, 64);
  if (copy) memcpy(copy, data->at + offset, (size_t)size);
  return copy;
}
