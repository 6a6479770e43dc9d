/* Arenas and growable arrays. In: a host allocator. Out: zeroed memory that lives until its arena is rewound or freed.
   A block is never moved; an array that ends at the top of the newest block grows in place. */
#include "ir/base.h"
#include <stdlib.h>
#if defined(_WIN32)
#include <malloc.h>
#endif

struct ir_arena_block {
  ir_arena_block *older;
  size_t size; /* of the payload */
};

enum { BLOCK_ALIGN = 64, FIRST_BLOCK = 16 * 1024, LARGEST_STEP = 4 * 1024 * 1024 };
/* The payload starts at the next cache line after the header. */
enum { BLOCK_HEAD = BLOCK_ALIGN };
_Static_assert(sizeof(ir_arena_block) <= BLOCK_HEAD, "the header fits its line");

static void *SNT_CALL malloc_acquire(void *user, size_t size, size_t align, uint32_t scope) {
  (void)user;
  (void)scope;
  size_t step = align < sizeof(void *) ? sizeof(void *) : align;
  if (size > SIZE_MAX - step) return NULL;
#if defined(_WIN32)
  return _aligned_malloc(size, step);
#else
  return aligned_alloc(step, (size + step - 1) / step * step);
#endif
}

static void SNT_CALL malloc_release(void *user, void *ptr, size_t size, size_t align) {
  (void)user;
  (void)size;
  (void)align;
#if defined(_WIN32)
  _aligned_free(ptr);
#else
  free(ptr);
#endif
}

static const snt_host_alloc malloc_host = {NULL, malloc_acquire, malloc_release};

const snt_host_alloc *ir_host_malloc(void) { return &malloc_host; }

void ir_arena_init(ir_arena *arena, const snt_host_alloc *host) {
  memset(arena, 0, sizeof *arena);
  arena->host = host && host->acquire ? *host : malloc_host;
}

static uint8_t *payload(ir_arena_block *block) { return (uint8_t *)block + BLOCK_HEAD; }

static bool add_block(ir_arena *arena, size_t need) {
  size_t size = FIRST_BLOCK;
  if (arena->blocks) size = arena->blocks->size * 2 > LARGEST_STEP ? LARGEST_STEP : arena->blocks->size * 2;
  if (size < need) size = need;
  if (size > SIZE_MAX - BLOCK_HEAD) return false;
  ir_arena_block *block = arena->host.acquire(arena->host.user, size + BLOCK_HEAD, BLOCK_ALIGN, 0);
  if (!block) return false;
  block->older = arena->blocks;
  block->size = size;
  arena->blocks = block;
  arena->used = 0;
  return true;
}

/* Offset of the next free byte of the newest block at `align` (a power of two), or SIZE_MAX where `size` bytes do not fit. */
static size_t place(const ir_arena *arena, size_t size, size_t align) {
  if (!arena->blocks) return SIZE_MAX;
  uintptr_t base = (uintptr_t)payload(arena->blocks);
  size_t at = (size_t)(((base + arena->used + align - 1) & ~((uintptr_t)align - 1)) - base);
  return at <= arena->blocks->size && size <= arena->blocks->size - at ? at : SIZE_MAX;
}

void *ir_arena_take_bare(ir_arena *arena, size_t size, size_t align) {
  if (arena->failed) return NULL;
  if (align == 0) align = 1;
  size_t at = place(arena, size, align);
  if (at == SIZE_MAX) {
    if (size > SIZE_MAX - align - BLOCK_HEAD || !add_block(arena, size + align)) {
      arena->failed = true;
      return NULL;
    }
    at = place(arena, size, align);
  }
  arena->used = at + size;
  return payload(arena->blocks) + at;
}

void *ir_arena_take(ir_arena *arena, size_t size, size_t align) {
  void *taken = ir_arena_take_bare(arena, size, align);
  return taken ? memset(taken, 0, size) : NULL;
}

void *ir_arena_new(ir_arena *arena, size_t size) {
  const size_t most = size | _Alignof(max_align_t);
  return ir_arena_take(arena, size, most & -most);
}

/* Behind the newest block, which goes on being filled. */
void *ir_arena_take_own(ir_arena *arena, size_t size) {
  if (arena->failed) return NULL;
  ir_arena_block *block = size <= SIZE_MAX - BLOCK_HEAD ? arena->host.acquire(arena->host.user, size + BLOCK_HEAD, BLOCK_ALIGN, 0) : NULL;
  if (!block) {
    arena->failed = true;
    return NULL;
  }
  ir_arena_block **place = arena->blocks ? &arena->blocks->older : &arena->blocks;
  block->size = size;
  block->older = *place;
  if (!arena->blocks) arena->used = size;
  *place = block;
  return payload(block);
}

void ir_arena_give(ir_arena *arena, const void *own) {
  ir_arena_block **place = &arena->blocks;
  while (*place && payload(*place) != own) place = &(*place)->older;
  ir_arena_block *gone = *place;
  if (!gone) return;
  *place = gone->older;
  if (place == &arena->blocks) arena->used = gone->older ? gone->older->size : 0; /* what is older is full, as far as we know */
  arena->host.release(arena->host.user, gone, gone->size + BLOCK_HEAD, BLOCK_ALIGN);
}

char *ir_arena_text(ir_arena *arena, const char *text, size_t length) {
  char *copy = ir_arena_take(arena, length + 1, 1);
  if (copy && length) memcpy(copy, text, length);
  return copy;
}

ir_arena_mark ir_arena_here(const ir_arena *arena) {
  ir_arena_mark mark = {arena->blocks, arena->used};
  return mark;
}

void ir_arena_rewind(ir_arena *arena, ir_arena_mark mark) {
  while (arena->blocks && arena->blocks != mark.block) {
    ir_arena_block *gone = arena->blocks;
    arena->blocks = gone->older;
    arena->host.release(arena->host.user, gone, gone->size + BLOCK_HEAD, BLOCK_ALIGN);
  }
  arena->used = mark.used;
}

void ir_arena_free(ir_arena *arena) {
  ir_arena_mark bottom = {NULL, 0};
  ir_arena_rewind(arena, bottom);
  arena->failed = false;
}

void ir_arena_clear(ir_arena *arena) {
  ir_arena_block *kept = arena->blocks;
  arena->failed = false;
  if (!kept) return;
  arena->blocks = kept->older;
  ir_arena_free(arena);
  kept->older = NULL;
  arena->blocks = kept;
}

typedef IR_VEC(void) any_vec; /* whatever it holds, a vector is laid out like this */

bool ir_vec_reserve(ir_arena *arena, void *vec, uint32_t wanted, size_t item) {
  any_vec *v = vec;
  if (arena->failed) return false;
  if (wanted <= v->capacity) return true;
  size_t old_bytes = (size_t)v->capacity * item, new_bytes = (size_t)wanted * item;
  bool on_top = v->at && arena->blocks && (uint8_t *)v->at + old_bytes == payload(arena->blocks) + arena->used;
  if (on_top && new_bytes - old_bytes <= arena->blocks->size - arena->used) {
    arena->used += new_bytes - old_bytes;
  } else {
    void *moved = ir_arena_take_bare(arena, new_bytes, _Alignof(max_align_t));
    if (!moved) return false;
    if (v->count) memcpy(moved, v->at, (size_t)v->count * item);
    v->at = moved;
  }
  v->capacity = wanted;
  return true;
}

bool ir_vec_grow(ir_arena *arena, void *vec, size_t item) {
  const uint32_t capacity = ((const any_vec *)vec)->capacity;
  if (capacity > UINT32_MAX / 2) return arena->failed = true, false;
  return ir_vec_reserve(arena, vec, capacity ? capacity * 2 : 8, item);
}
