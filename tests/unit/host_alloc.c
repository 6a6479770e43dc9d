/* The tool's host memory keeps large blocks that it is given back for the next. */
#include "tests/tap.h"
#include "tools/host/host.h"
#include <string.h>

/* A block given back comes again for as much or less; two never share one. */
static void check_memory(void) {
  enum { MB = 1 << 20 };
  const snt_host_alloc host = host_allocator();
  uint8_t *first = host.acquire(host.user, 12 * MB, 64, 0);
  if (!tap_ok(first != NULL, "twelve megabytes")) return;
  memset(first, 1, 12 * MB);
  host.release(host.user, first, 12 * MB, 64);
  uint8_t *large = host.acquire(host.user, 40 * MB, 64, 0), *again = host.acquire(host.user, 7 * MB, 64, 0);
  tap_ok(large && large != first, "more is not what was given back");
  tap_ok(again == first, "less is");
  uint8_t *other = host.acquire(host.user, 7 * MB, 64, 0);
  tap_ok(other && other != again, "a second one is another");
  if (large) memset(large, 2, 40 * MB), host.release(host.user, large, 40 * MB, 64);
  if (again) memset(again, 3, 7 * MB), host.release(host.user, again, 7 * MB, 64);
  if (other) memset(other, 4, 7 * MB), host.release(host.user, other, 7 * MB, 64);
}

int main(void) {
  check_memory();
  return tap_done();
}
