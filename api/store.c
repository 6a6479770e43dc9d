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

static bool keeps_copy(const api_store *s, const void *data, uint64_t bytes) {
  for (uint32_t i = 0; i < s->copies.count; i++)
    if (s->copies.at[i].copy == data && s->copies.at[i].bytes == bytes) return true;
  return false;
}

/* Compiles ask in the same order, so the search begins where the last one ended. */
fusion_sizes *api_store_sizes(api_store *s, const void *data, uint64_t bytes) {
  for (uint32_t i = 0; i < s->sizes.count; i++) {
    const uint32_t at = (s->next_size + i) % s->sizes.count;
    if (s->sizes.at[at]->data != data || s->sizes.at[at]->bytes != bytes) continue;
    s->next_size = at + 1;
    return &s->sizes.at[at]->sizes;
  }
  if (!keeps(s, data, bytes) && !keeps_copy(s, data, bytes)) return NULL;
  api_sizes *made = IR_NEW(&s->arena, api_sizes);
  if (!made) return NULL;
  made->data = data, made->bytes = bytes;
  return IR_PUSH(&s->arena, &s->sizes, made) ? &made->sizes : NULL;
}
