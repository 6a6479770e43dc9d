/* A loader in place of a driver's that is never done being loaded. */
#include <unistd.h>

__attribute__((constructor)) static void never(void) {
  for (;;) pause();
}
