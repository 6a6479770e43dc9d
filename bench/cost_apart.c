/* How far two processors are from each other: what a word takes from one to the other and back. On a virtual machine they may be moved
   while a run goes on: within one last cache it is some 60 to 100 ns, between two of them some 350, where plans of several kernels, which
   read what the other processor wrote, take up to twice as long. */
#include "bench/cost.h"
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>

enum { TURNS = 1000, ROUNDS = 2, PATIENCE = 4096 };

/* Where only one of the two runs it lets the other: at real-time priority nothing else would. */
static void await(const atomic_uint *word, uint32_t value) {
  for (uint32_t spins = 1; atomic_load_explicit(word, memory_order_acquire) != value; spins++)
    if (spins % PATIENCE == 0) sched_yield();
}

static void *answer(void *user) {
  atomic_uint *word = user;
  for (uint32_t turn = 0; turn < ROUNDS * TURNS; turn++) {
    await(word, 2 * turn + 1);
    atomic_store_explicit(word, 2 * turn + 2, memory_order_release);
  }
  return NULL;
}

static double now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

double cost_round_trip(void) {
  atomic_uint word = 0;
  pthread_t other;
  double least = INFINITY;
  if (pthread_create(&other, NULL, answer, &word)) return 0;
  for (uint32_t round = 0; round < ROUNDS; round++) {
    const double start = now_ns();
    for (uint32_t turn = round * TURNS; turn < (round + 1) * TURNS; turn++) {
      atomic_store_explicit(&word, 2 * turn + 1, memory_order_release);
      await(&word, 2 * turn + 2);
    }
    least = fmin(least, (now_ns() - start) / TURNS);
  }
  pthread_join(other, NULL);
  return least;
}
