/* The life of a device as those tests know it that let its calls fail: a stream, a kernel made twice (the second time of its own binary), two buffers, and
   submissions of both kernels that are waited for and timed. Right whatever fails: who fails is the caller's business. */
#ifndef TESTS_UNIT_RT_LIFE_H
#define TESTS_UNIT_RT_LIFE_H
#include "runtime/backend.h"

enum { RT_LIFE_NUMBERS = 64 };
typedef struct rt_life {
  uint32_t turns; /* submissions, one after the other */
  uint64_t wait_ns;
  uint8_t *binary; /* room for what the driver makes of a kernel */
  size_t binary_size;
  float result[RT_LIFE_NUMBERS]; /* what the kernel makes of 1, 0, 0.. */
  rt_stream *stream;
  rt_pipeline *pipeline, *again;
  rt_buffer *x, *y;
  rt_event *event;
} rt_life;
snt_result rt_life_use(rt_life *, rt_device *, const rt_code *);
snt_result rt_life_ask(rt_device *); /* for one more buffer */
void rt_life_free(rt_life *, rt_device *);
#endif
