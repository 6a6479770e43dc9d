/* Host memory for a context. What is large comes from the system in large pages where it has them: weights are touched once, and a fault for each
   4 KiB of them costs more than copying it. The rest is the C library's. */
#include "tools/host/host.h"
#include <stdlib.h>
#include <sys/mman.h>

enum { LARGE = 4 << 20, PAGE = 2 << 20 };

static size_t whole_pages(size_t size) { return (size + PAGE - 1) / PAGE * PAGE; }

static void *SNT_CALL acquire(void *user, size_t size, size_t align, uint32_t scope) {
  (void)user, (void)scope;
  if (size < LARGE || align > 4096 || size > SIZE_MAX / 2) {
    if (align <= _Alignof(max_align_t)) return malloc(size ? size : 1);
    return size > SIZE_MAX - align ? NULL : aligned_alloc(align, (size + align - 1) / align * align);
  }
  void *at = mmap(NULL, whole_pages(size), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) return NULL;
  (void)madvise(at, whole_pages(size), MADV_HUGEPAGE);
  return at;
}

static void SNT_CALL release(void *user, void *at, size_t size, size_t align) {
  (void)user;
  if (size < LARGE || align > 4096) free(at);
  else if (at) munmap(at, whole_pages(size));
}

snt_host_alloc host_allocator(void) { return (snt_host_alloc){NULL, acquire, release}; }
