/* Contexts: memory, log, cache and added backends; checks of what every call is given: struct heads, flags, symbols. */
#include "api/handles.h"

// clang-format off
static const struct { snt_result code; const char *text; } results[] = {
    {SNT_OK, "ok"}, {SNT_INCOMPLETE, "incomplete"}, {SNT_NOT_READY, "not ready"}, {SNT_E_ARG, "bad argument"}, {SNT_E_STRUCT, "bad struct"},
    {SNT_E_HOST_MEM, "out of host memory"}, {SNT_E_DEVICE_MEM, "out of device memory"}, {SNT_E_UNSUPPORTED, "unsupported"}, {SNT_E_BAD_BLOB, "damaged program"},
    {SNT_E_WOULD_COMPILE, "would compile"}, {SNT_E_DEVICE_LOST, "device lost"}, {SNT_E_BACKEND, "driver error"}, {SNT_E_ORDER, "wrong order of calls"},
    {SNT_E_LIMIT, "limit"}, {SNT_E_PARSE, "parse error"}, {SNT_E_SHAPE, "bad shape"}, {SNT_E_CONTRACT, "contract cannot hold"}, {SNT_E_CANCELLED, "cancelled"},
    {SNT_E_INTERNAL, "internal error"},
};
// clang-format on

uint32_t snt_version(void) { return 0x000100; }
uint32_t snt_dtype_size(int32_t dtype) { return dtype > 0 && dtype < SNT_DTYPE_COUNT ? ir_dtypes[dtype].bytes : 0; }

const char *snt_result_text(snt_result code) {
  for (uint32_t i = 0; i < IR_COUNT(results); i++)
    if (results[i].code == code) return results[i].text;
  return "unknown";
}

void *api_take(snt_context *c, size_t size) {
  void *p = c->alloc.acquire(c->alloc.user, size ? size : 1, 16, 0);
  if (p) memset(p, 0, size);
  return p;
}
void api_give(snt_context *c, void *p, size_t size) {
  if (p) c->alloc.release(c->alloc.user, p, size ? size : 1, 16);
}

/* ---- spare blocks: one compile asks for the same as the one before, and a host that returns large blocks to the system makes each of their pages anew ---- */

enum {
  SPARE_LEAST = 64 << 10,
#ifdef NDEBUG
  SPARE_MOST = 20 << 20, /* in all */
#else
  SPARE_MOST = 0, /* what is read after its end is to be noticed */
#endif
  SPARE_ALIGN = 64 /* of an arena's blocks: nothing else is kept */
};

/* Puts a block that was taken out of `slot` back there, if the slot is still empty; else it is the caller's allocator's again. */
static void drop_spare(snt_context *c, uint32_t slot, void *p) {
  void *empty = NULL;
  const size_t size = *(size_t *)p;
  if (slot < API_SPARE_BLOCKS && atomic_compare_exchange_strong(&c->spare[slot], &empty, p)) return;
  atomic_fetch_sub(&c->spare_bytes, (unsigned)size);
  c->given.release(c->given.user, p, size, SPARE_ALIGN);
}

static void *take_spare(snt_context *c, size_t size) {
  for (uint32_t i = 0; i < API_SPARE_BLOCKS; i++) {
    void *p = atomic_exchange(&c->spare[i], NULL);
    if (p && *(size_t *)p == size) {
      atomic_fetch_sub(&c->spare_bytes, (unsigned)size);
      return p;
    }
    if (p) drop_spare(c, i, p);
  }
  return NULL;
}

static bool keep_spare(snt_context *c, void *p, size_t size) {
  if (atomic_fetch_add(&c->spare_bytes, (unsigned)size) + size <= SPARE_MOST) {
    *(size_t *)p = size;
    for (uint32_t i = 0; i < API_SPARE_BLOCKS; i++) {
      void *empty = NULL;
      if (atomic_compare_exchange_strong(&c->spare[i], &empty, p)) return true;
    }
  }
  atomic_fetch_sub(&c->spare_bytes, (unsigned)size);
  return false;
}

static bool may_spare(size_t size, size_t align) { return align == SPARE_ALIGN && size >= SPARE_LEAST && size <= SPARE_MOST; }

static void *SNT_CALL acquire(void *user, size_t size, size_t align, uint32_t scope) {
  snt_context *c = user;
  void *p = may_spare(size, align) ? take_spare(c, size) : NULL;
  if (!p) p = c->given.acquire(c->given.user, size, align, scope);
  if (!p) atomic_fetch_add(&c->starved, 1);
  return p;
}
static void SNT_CALL release(void *user, void *p, size_t size, size_t align) {
  snt_context *c = user;
  if (p && may_spare(size, align) && keep_spare(c, p, size)) return;
  c->given.release(c->given.user, p, size, align);
}
uint32_t api_starved(const snt_context *c) { return atomic_load(&((snt_context *)(uintptr_t)c)->starved); }
snt_result api_blame(const snt_context *c, uint32_t before, snt_result r, snt_diag *diag) {
  if (r >= 0 || r == SNT_E_HOST_MEM || api_starved(c) == before) return r;
  return ir_no_memory(diag, "api");
}

/* A larger struct than ours is fine when what we do not know is zero. */
static snt_result check_struct(const snt_head *head, uint32_t type, size_t least, size_t known, snt_diag *diag) {
  if (head->type != type) return ir_fail(diag, SNT_E_STRUCT, "api", 0, "a struct of type %u where %u is expected", head->type, type);
  if (head->size < least || head->size > 65536)
    return ir_fail(diag, SNT_E_STRUCT, "api", 0, "size %u of a struct of type %u", head->size, type);
  const uint8_t *bytes = (const uint8_t *)head;
  for (size_t i = known; i < head->size; i++)
    if (bytes[i]) return ir_fail(diag, SNT_E_STRUCT, "api", 0, "struct of type %u uses fields newer than this library", type);
  return SNT_OK;
}

static snt_result check_alone(const snt_head *head, snt_diag *diag) {
  return head->next ? ir_fail(diag, SNT_E_STRUCT, "api", 0, "an unknown struct in the chain of type %u", head->type) : SNT_OK;
}

snt_result api_check_head(const snt_head *head, uint32_t type, size_t known, snt_diag *diag) {
  SNT_TRY(check_struct(head, type, sizeof *head, known, diag));
  return check_alone(head, diag);
}

snt_result api_check_chained(const snt_head *head, uint32_t type, size_t known, snt_diag *diag) {
  return check_struct(head, type, known, known, diag);
}

snt_result api_check_whole(const snt_head *head, uint32_t type, size_t known, snt_diag *diag) {
  SNT_TRY(api_check_chained(head, type, known, diag));
  return check_alone(head, diag);
}

/* A bit without a meaning is refused, so that it can have one. */
snt_result api_check_flags(uint32_t given, uint32_t known, const char *stage, snt_diag *diag) {
  return given & ~known ? ir_fail(diag, SNT_E_ARG, stage, 0, "unknown flags 0x%x", given & ~known) : SNT_OK;
}

snt_result api_check_symbols(const snt_program *p, const int64_t *symbols, uint32_t count, const char *stage, snt_diag *diag) {
  const uint32_t have = p->pool.symbols.count;
  if (count != have || (count && !symbols))
    return ir_fail(diag, SNT_E_ARG, stage, 0, "%u symbols given; the program has %u", symbols ? count : 0, have);
  for (uint32_t i = 0; i < count; i++) {
    const expr_symbol *s = &p->pool.symbols.at[i];
    if (symbols[i] < s->min || symbols[i] > s->max || (s->multiple_of > 1 && symbols[i] % s->multiple_of))
      return ir_fail(diag, SNT_E_SHAPE, stage, 0, "%s = %lld is outside its range %lld to %lld, multiple of %lld", s->name,
                     (long long)symbols[i], (long long)s->min, (long long)s->max, (long long)s->multiple_of);
  }
  return SNT_OK;
}

snt_result snt_context_create(const snt_context_info *info, snt_context **out) {
  if (!out) return SNT_E_ARG;
  snt_host_alloc alloc = *ir_host_malloc();
  if (info) {
    SNT_TRY(api_check_whole(&info->head, SNT_TYPE_context_info, sizeof *info, NULL));
    if (info->abi_version && info->abi_version != SNT_ABI_VERSION) return SNT_E_UNSUPPORTED;
    if (info->flags) return SNT_E_ARG;
    if (info->alloc.acquire && info->alloc.release) alloc = info->alloc;
    else if (info->alloc.acquire || info->alloc.release) return SNT_E_ARG;
  }
  snt_context *c = alloc.acquire(alloc.user, sizeof *c, 16, 0);
  if (!c) return SNT_E_HOST_MEM;
  memset(c, 0, sizeof *c);
  c->given = alloc;
  c->alloc = (snt_host_alloc){c, acquire, release};
  atomic_init(&c->starved, 0);
  if (info) c->log = info->log, c->cache = info->cache;
  atomic_init(&c->uses, 1);
  *out = c;
  return SNT_OK;
}

void api_context_hold(snt_context *c) { atomic_fetch_add(&c->uses, 1); }
void snt_context_destroy(snt_context *c) {
  if (!c || atomic_fetch_sub(&c->uses, 1) != 1) return;
  const snt_host_alloc alloc = c->given;
  for (uint32_t i = 0; i < API_SPARE_BLOCKS; i++)
    if (c->spare[i]) drop_spare(c, API_SPARE_BLOCKS, c->spare[i]);
  alloc.release(alloc.user, c, sizeof *c, 16);
}

snt_result snt_context_add_backend(snt_context *c, const snt_backend *backend) {
  if (!c || !backend) return SNT_E_ARG;
  SNT_TRY(api_check_head(&backend->head, SNT_TYPE_backend, sizeof *backend, NULL));
  snt_backend known = {.name = NULL};
  memcpy(&known, backend, backend->head.size < sizeof known ? backend->head.size : sizeof known); /* it may be older than this library */
  if (!known.name || !known.open || !known.run || !known.pipeline_create) return SNT_E_ARG;
  if (c->backend_count == API_MAX_BACKENDS) return SNT_E_LIMIT;
  c->backends[c->backend_count] = known;
  c->backend_list[c->backend_count] = &c->backends[c->backend_count];
  c->backend_count++;
  return SNT_OK;
}

snt_result api_copy_text(const ir_text *t, char *text, size_t *length) {
  if (t->failed) return SNT_E_HOST_MEM;
  return ir_text_copy_out(t, text, length);
}
