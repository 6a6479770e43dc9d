/* Building before measuring: processes make the partitions of a graph each and build their kernels, which the one that measures then finds in
   the cache. A driver that takes half a second for a kernel would have the device wait for most of a run. */
#include "bench/cost.h"
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_PROCESSES = 64 };

bool cost_takes(cost_bench *b) {
  const uint32_t number = b->number++;
  return !b->taken || (number < COST_BENCH_GRAPHS && !atomic_exchange(&b->taken[number], true));
}

snt_result cost_build_kernels(cost_bench *b) {
  snt_result r = SNT_OK;
  for (uint32_t i = 0; i < b->count && r == SNT_OK; i++) r = snt_exec_prepare(b->parts[i].exec, &b->diag);
  return r;
}

static snt_result wait_for(const pid_t *children, uint32_t count) {
  snt_result r = SNT_OK;
  for (uint32_t i = 0; i < count; i++) {
    int status = 0;
    if (waitpid(children[i], &status, 0) != children[i] || status) r = SNT_E_BACKEND;
  }
  return r;
}

snt_result cost_build(cost_bench *b, uint32_t processes, snt_result (*work)(cost_bench *, void *), void *user) {
  pid_t children[MOST_PROCESSES];
  uint32_t count = 0;
  const size_t bytes = COST_BENCH_GRAPHS * sizeof *b->taken;
  void *shared = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return SNT_E_HOST_MEM;
  b->taken = shared;
  fflush(stdout);
  for (; count < processes && count < MOST_PROCESSES; count++) {
    const pid_t child = fork(); /* before any driver is loaded */
    if (child < 0) break;
    if (child == 0) _exit(work(b, user) == SNT_OK ? 0 : 1);
    children[count] = child;
  }
  b->taken = NULL;
  const snt_result r = wait_for(children, count);
  munmap(shared, bytes);
  return count ? r : SNT_E_HOST_MEM;
}
