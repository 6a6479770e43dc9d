/* Host memory for a context. What is large comes from the system in large pages where it has them: weights are touched once, and a fault for each
   4 KiB of them costs more than copying it. A few of those given back are kept for the next: the system would clear their pages, which takes longer than most
   that is done with them. The rest is the C library's. */
#include "tools/host/host.h"
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { LARGE = 4 << 20, PAGE = 2 << 20, KEPT = 4, KEPT_BYTES = 32 << 20 };

static size_t whole_pages(size_t size) { return (size + PAGE - 1) / PAGE * PAGE; }

static _Atomic(void *) kept[KEPT]; /* each block's first word is its size */
static atomic_size_t kept_bytes;   /* never more than KEPT_BYTES */

static bool keep(void *at, size_t size) {
  if (atomic_fetch_add(&kept_bytes, size) + size <= KEPT_BYTES) {
    *(size_t *)at = size;
    for (uint32_t i = 0; i < KEPT; i++) {
      void *none = NULL;
      if (atomic_compare_exchange_strong(&kept[i], &none, at)) return true;
    }
  }
  atomic_fetch_sub(&kept_bytes, size);
  return false;
}

static void give_back(void *at, size_t size) {
  if (!keep(at, size)) munmap(at, size);
}

/* One that is large enough, without what is too much of it; null: none. */
static void *take_kept(size_t size) {
  for (uint32_t i = 0; i < KEPT; i++) {
    uint8_t *at = atomic_exchange(&kept[i], NULL);
    if (!at) continue;
    const size_t own = *(const size_t *)(const void *)at;
    atomic_fetch_sub(&kept_bytes, own);
    if (own < size) {
      give_back(at, own);
      continue;
    }
    if (own > size) munmap(at + size, own - size);
    return at;
  }
  return NULL;
}

static void *SNT_CALL acquire(void *user, size_t size, size_t align, uint32_t scope) {
  (void)user, (void)scope;
  if (size < LARGE || align > 4096 || size > SIZE_MAX / 2) {
    if (align <= _Alignof(max_align_t)) return malloc(size ? size : 1);
    return size > SIZE_MAX - align ? NULL : aligned_alloc(align, (size + align - 1) / align * align);
  }
  void *at = take_kept(whole_pages(size));
  if (at) return at;
  at = mmap(NULL, whole_pages(size), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) return NULL;
  (void)madvise(at, whole_pages(size), MADV_HUGEPAGE);
  return at;
}

static void SNT_CALL release(void *user, void *at, size_t size, size_t align) {
  (void)user;
  if (size < LARGE || align > 4096) free(at);
  else if (at) give_back(at, whole_pages(size));
}

snt_host_alloc host_allocator(void) { return (snt_host_alloc){NULL, acquire, release}; }
