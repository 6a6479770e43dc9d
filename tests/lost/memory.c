/* Loaded before the C library's: of what the program itself asks for (not drivers, nor the C library for itself) the SNT_FAIL_AT-th call and all that follow
   (SNT_FAIL_ONCE: it alone) get nothing. Into the file SNT_FAIL_REPORT: how many calls there were, and how many blocks are left in the end. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t), *__libc_memalign(size_t, size_t);
void __libc_free(void *);

enum { SLOTS = 1 << 20, MOST_RANGES = 4 };
static void *_Atomic live[SLOTS];
static struct { uintptr_t from, to; } ranges[MOST_RANGES];
static uint32_t range_count;
static atomic_llong calls, kept;
static long long fail_at;
static bool once;

static int find_ranges(struct dl_phdr_info *info, size_t size, void *user) {
  (void)size, (void)user;
  for (int i = 0; i < info->dlpi_phnum && range_count < MOST_RANGES; i++) {
    const ElfW(Phdr) *p = &info->dlpi_phdr[i];
    if (p->p_type != PT_LOAD || !(p->p_flags & PF_X)) continue;
    ranges[range_count].from = info->dlpi_addr + p->p_vaddr;
    ranges[range_count].to = ranges[range_count].from + p->p_memsz, range_count++;
  }
  return 1; /* the first is the program */
}

__attribute__((constructor)) static void begin(void) {
  const char *at = getenv("SNT_FAIL_AT");
  fail_at = at ? atoll(at) : 0;
  once = getenv("SNT_FAIL_ONCE") != NULL;
  dl_iterate_phdr(find_ranges, NULL);
}

__attribute__((destructor)) static void end(void) {
  const char *path = getenv("SNT_FAIL_REPORT");
  char text[64];
  const int length = snprintf(text, sizeof text, "%lld %lld\n", (long long)calls, (long long)kept);
  const int file = path ? open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600) : -1;
  if (file >= 0 && write(file, text, (size_t)length) == length) close(file);
}

static bool is_own(const void *caller) {
  for (uint32_t i = 0; i < range_count; i++)
    if ((uintptr_t)caller >= ranges[i].from && (uintptr_t)caller < ranges[i].to) return true;
  return false;
}

static bool fails(const void *caller) {
  if (!is_own(caller)) return false;
  const long long call = ++calls;
  if (!fail_at || call < fail_at || (once && call > fail_at)) return false;
  errno = ENOMEM;
  return true;
}

static size_t slot_of(const void *p) { return (size_t)(((uintptr_t)p >> 4) * UINT64_C(0x9E3779B97F4A7C15) >> 44); }

static void *note(void *p, const void *caller) {
  if (!p || !is_own(caller)) return p;
  for (size_t i = slot_of(p), n = 0; n < SLOTS; i = (i + 1) % SLOTS, n++) {
    void *expected = NULL;
    if (!atomic_compare_exchange_strong(&live[i], &expected, p)) continue;
    kept++;
    break;
  }
  return p;
}

static void forget(void *p) { /* holes are no ends: a block is near its slot or nowhere */
  enum { NEAR = 64 };
  if (!p || !kept) return;
  for (size_t i = slot_of(p), n = 0; n < NEAR; i = (i + 1) % SLOTS, n++) {
    void *expected = p;
    if (!atomic_compare_exchange_strong(&live[i], &expected, NULL)) continue;
    kept--;
    break;
  }
}

#define CALLER __builtin_return_address(0)
void *malloc(size_t size) { return fails(CALLER) ? NULL : note(__libc_malloc(size), CALLER); }
void *calloc(size_t count, size_t size) { return fails(CALLER) ? NULL : note(__libc_calloc(count, size), CALLER); }
void *realloc(void *old, size_t size) {
  if (fails(CALLER)) return NULL;
  forget(old);
  void *p = __libc_realloc(old, size);
  return p ? note(p, CALLER) : size ? note(old, CALLER) : NULL;
}
void *aligned_alloc(size_t align, size_t size) { return fails(CALLER) ? NULL : note(__libc_memalign(align, size), CALLER); }
void *memalign(size_t align, size_t size) { return fails(CALLER) ? NULL : note(__libc_memalign(align, size), CALLER); }
int posix_memalign(void **out, size_t align, size_t size) {
  if (fails(CALLER)) return ENOMEM;
  void *p = note(__libc_memalign(align, size), CALLER);
  if (p) *out = p;
  return p ? 0 : ENOMEM;
}
void free(void *p) {
  forget(p);
  __libc_free(p);
}
