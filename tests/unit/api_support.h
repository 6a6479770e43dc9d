/* For the tests of the public API: contexts that count their memory and can run out of it, graphs built call by call, tensors of a program's
   ports, and the reference's verdict on what came out. */
#ifndef TESTS_API_SUPPORT_H
#define TESTS_API_SUPPORT_H
#include <sinter/sinter.h>
#include <stdatomic.h>
#include <stdbool.h>

typedef struct api_memory {
  atomic_llong live, calls;
  long long fail_at; /* the call that fails, from 1; 0: none */
} api_memory;
snt_context *api_context(api_memory *); /* null: out of memory */

typedef struct api_model {
  const char *name;
  void (*build)(snt_graph *);
  uint32_t symbol_count, size_count;
  int64_t sizes[4][2]; /* values of the symbols, for one run each */
} api_model;
extern const api_model api_models[];
extern const uint32_t api_model_count;
const api_model *api_model_named(const char *);

/* A program of a text for a device; null, with the reason, when there is none. */
snt_program *api_compile_text(snt_context *, snt_device *, const char *text, snt_diag *);

enum { API_MAX_TENSORS = 16 };
typedef struct api_tensor {
  snt_port port;
  uint64_t bytes;
  void *data;
} api_tensor;
typedef struct api_tensors {
  const int64_t *symbols; /* what their sizes were made for: borrowed */
  uint32_t symbol_count, count;
  api_tensor at[API_MAX_TENSORS];
} api_tensors;
bool api_make_tensors(const snt_program *, const int64_t *symbols, uint32_t seed, api_tensors *); /* inputs filled, outputs poisoned */
void api_free_tensors(api_tensors *);

typedef enum { API_HOST_MEMORY, API_BUFFERS } api_way;
/* One run with those tensors as arguments; through buffers, `least_ns` (may be null) becomes the smallest time of a step. */
snt_result api_run_once(snt_device *, snt_exec *, api_tensors *, api_way, uint64_t *least_ns, snt_diag *);
/* max(error / bound) of the outputs against the f64 reference; negative: the reference could not be made. */
double api_ratio(const snt_graph *, const int64_t *symbols, const api_tensors *);

/* Devices that are here, by selector; those to be tested beside "host" and "interp". */
enum { API_MAX_DEVICES = 16 };
typedef struct api_devices {
  uint32_t count;
  char selector[API_MAX_DEVICES][64];
} api_devices;
void api_find_devices(snt_context *, api_devices *);
#endif
