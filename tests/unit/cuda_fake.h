/* A CUDA driver without a GPU, as a table of functions by name: one device, one context, memory of this process, kernels compiled from their CUDA text by
   this machine's C++ compiler (cuda-text) and run when they are launched. It counts what the door must not do while it enqueues. */
#ifndef TESTS_CUDA_FAKE_H
#define TESTS_CUDA_FAKE_H
#include <stdbool.h>
#include <stdint.h>

struct CUctx_st;
struct CUstream_st;
typedef struct cuda_fake_counts {
  uint32_t allocations, frees, modules, unloads, streams, stream_ends, waits, launches, compiles, portable, depth, other_streams, releases,
      dynamic;
  char target[32]; /* what NVRTC, which knows 75, 80 and 90, was last told to compile for */
} cuda_fake_counts;
extern cuda_fake_counts cuda_fake;
extern int cuda_fake_major;       /* of the device's architecture; 0: 8 */
extern bool cuda_fake_integrated; /* it is part of its processor, and says neither its clock nor its cache */
extern const char *cuda_fake_name;
bool cuda_fake_open(void); /* false: no C++ compiler */
void cuda_fake_close(void);
struct CUctx_st *cuda_fake_context(void);
struct CUstream_st *cuda_fake_stream(void);         /* the host's: launches elsewhere are counted */
void *cuda_fake_proc(void *user, const char *name); /* user: a name to leave out, or null */
void cuda_fake_fail_launch(int code);               /* what the next launches say; 0: they run */
#endif
