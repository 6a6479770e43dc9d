/* What the backends share: host memory, the shape of a dispatch; of the system: rt_system.h. */
#ifndef RUNTIME_RT_COMMON_H
#define RUNTIME_RT_COMMON_H
#include "ir/base.h"
#include "runtime/backend.h"
#include "runtime/rt_system.h"
#include <sinter/backend.h>

/* ---- host memory: zeroed, or null; `size` must be given back ---- */
void *rt_take(const snt_host_alloc *, size_t size);
void rt_give(const snt_host_alloc *, void *ptr, size_t size);
/* Makes room for `need` items; keeps the old ones; false when out of memory. */
bool rt_grow(const snt_host_alloc *, void **at, uint32_t *capacity, uint32_t need, size_t item);

/* ---- small things ---- */
bool rt_contains(const char *text, const char *part); /* ignoring case; "" is in everything */
void rt_copy_text(char *to, size_t size, const char *from);
bool rt_index(const char *which, uint32_t *index); /* "" is 0, "3" is 3; false: not a number */
/* Takes "+word" off the end of a selector part; true when it was there. `which` is changed. */
bool rt_take_suffix(char *which, const char *suffix);
/* A compiler's log in one line: the first line with "error", else the first that is not blank. */
snt_result rt_fail_log(snt_diag *, snt_result, int32_t native, const char *stage, const char *what, const char *log);
snt_result rt_fail_native(snt_diag *, snt_result, int32_t native, const char *stage, const char *what);
snt_result rt_base_profile(cost_profile *, const char *name, snt_diag *);
/* The built-in profile of a device that has one of its own, by what every driver calls it; else `otherwise`. */
const char *rt_profile_of(const char *device, const char *otherwise);

/* The dispatch as a backend sees it: block words with the group count appended, and the folded grid. */
enum { RT_MAX_BLOCK_WORDS = 64 };
typedef struct rt_shape {
  uint32_t words[RT_MAX_BLOCK_WORDS], word_count, grid[3];
} rt_shape;
/* SNT_E_LIMIT when the block or the group count is too large for the device. */
snt_result rt_dispatch_shape(const rt_device *, const rt_dispatch *, rt_shape *, snt_diag *);
/* Checks bindings against the buffers they lie in and the profile's alignment: what a driver would not forgive. */
snt_result rt_check_dispatch(const rt_device *, const rt_dispatch *, uint32_t binding_count, snt_diag *);
/* The two-call form of event_timings: *count becomes `have`; SNT_INCOMPLETE when only some fit. `ns` may be null. */
snt_result rt_copy_timings(const uint64_t *from, uint32_t have, uint32_t *count, uint64_t *ns);
snt_result rt_check_range(const rt_buffer *, uint64_t offset, uint64_t bytes, snt_diag *);

/* Devices that work on host memory and are done when submit returns (interp, hooked ones): see rt_sync.c. */
extern const rt_vtable rt_hooked;
snt_result rt_hooked_open(const snt_host_alloc *, const snt_backend *, const char *which, rt_device **out, snt_diag *);
#endif
