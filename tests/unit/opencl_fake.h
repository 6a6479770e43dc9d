/* An OpenCL without a device, as a table of functions by name: it knows one kernel (rt_kernels.h), keeps the books of what was created and not released,
   and fails the n-th call that can fail. What the standard asks of who calls is looked at: an object is of its kind and not yet gone, a kernel has all its
   arguments where it is launched. And, more than it asks: nothing goes that a command needs which nobody has waited for. */
#ifndef TESTS_UNIT_OPENCL_FAKE_H
#define TESTS_UNIT_OPENCL_FAKE_H
#include "runtime/rt_opencl.h"
#include <stdbool.h>
#include <stdint.h>

enum { OPENCL_FAKE_MUST = 16 };
typedef struct opencl_fake_books {
  const char *platform;
  bool cpu, dots, fast_dots; /* cl_khr_integer_dot_product, and that it is fast */
  const char *version;
  _Atomic int64_t alive; /* builders are threads */
  _Atomic uint32_t misused,
      hasty; /* objects that are gone or of another kind, arguments that were not set; and what went while a command needed it */
  uint32_t calls, fail_at; /* of those that can fail; 1-based, 0: never */
  cl_int fail_with;
  const char *name;   /* of the device; null: another */
  const char *failed; /* the name of the call that did */
  /* what was asked */
  char options[128];
  const char *binary; /* its 16 bytes */
  cl_mem_flags flags;
  uint32_t launches, markers, from_binary;
  bool near;  /* another device is listed, first */
  bool early; /* to finish does not wait, nor does a marker */
  uint32_t finishes;
  bool was_near;     /* its queue */
  size_t group_size; /* that a kernel may have */
  int32_t builders, most_builders;
  cl_ulong ends_ns; /* of what begins at 1000 */
} opencl_fake_books;
extern opencl_fake_books opencl_fake;

/* Functions whose failure must be told at least once where they are called (all but the first: with an open device). Others are queries, times and what
   only a cache is for, without which all goes on. */
extern const char opencl_fake_must[OPENCL_FAKE_MUST][28];
extern bool opencl_fake_called[OPENCL_FAKE_MUST];

typedef cl_int(CL_API_CALL *opencl_fake_function)(void);
opencl_fake_function opencl_fake_find(const char *name); /* one that always fails for what only a host's own objects need */
void opencl_fake_forget(void);                           /* what is gone, which is kept to tell who still uses it */
#endif
