/* Locks and the clock of the system. */
#include "runtime/rt_system.h"

#if defined(_WIN32)
#define WIN32_LEAN_AND_MEAN
#include <windows.h>

_Static_assert(sizeof(rt_lock) == sizeof(SRWLOCK), "a lock is a pointer");

void rt_lock_init(rt_lock *lock) { InitializeSRWLock((SRWLOCK *)lock); }
void rt_lock_drop(rt_lock *lock) { (void)lock; }
void rt_lock_take(rt_lock *lock) { AcquireSRWLockExclusive((SRWLOCK *)lock); }
void rt_lock_give(rt_lock *lock) { ReleaseSRWLockExclusive((SRWLOCK *)lock); }

uint64_t rt_clock_ns(void) {
  LARGE_INTEGER now, rate;
  QueryPerformanceCounter(&now);
  QueryPerformanceFrequency(&rate);
  const uint64_t ticks = (uint64_t)now.QuadPart, a_second = (uint64_t)rate.QuadPart;
  return ticks / a_second * 1000000000u + ticks % a_second * 1000000000u / a_second;
}

void rt_sleep_ns(uint64_t ns) { Sleep((DWORD)((ns + 999999) / 1000000)); }
#else
#include <time.h>

void rt_lock_init(rt_lock *lock) { pthread_mutex_init(lock, NULL); }
void rt_lock_drop(rt_lock *lock) { pthread_mutex_destroy(lock); }
void rt_lock_take(rt_lock *lock) { pthread_mutex_lock(lock); }
void rt_lock_give(rt_lock *lock) { pthread_mutex_unlock(lock); }

uint64_t rt_clock_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void rt_sleep_ns(uint64_t ns) {
  struct timespec pause = {.tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u)};
  nanosleep(&pause, NULL);
}
#endif
