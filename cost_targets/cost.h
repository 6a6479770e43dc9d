/* The analytic model: how long a kernel takes on a profile.
   T = launch + max(compute, memory) with all reads and writes of the kernel, first touch from DRAM, later ones from the caches by footprint. */
#ifndef COST_H
#define COST_H
#include "cost_targets/profile.h"

/* One access stream of a kernel. */
typedef struct cost_stream {
  double bytes;       /* distinct bytes touched */
  double accesses;    /* bytes accessed in all, repeats included */
  double reuse_bytes; /* footprint between two touches of the same element; decides which cache serves the repeats */
  float strided;      /* share of it that goes as reads do whose lanes are not adjacent */
  bool write;
  bool alone; /* nothing is computed meanwhile */
} cost_stream;
enum { COST_MAX_STREAMS = 64 };
typedef struct cost_work {
  double items;                     /* independent result elements: parallelism */
  double ops, fmas, specials, divs; /* scalar operations in all, recompute included */
  double index_ops;                 /* integer operations that do not vanish (div, mod, conditions) */
  double extra_cycles;              /* of lanes, beyond what the classes above say: operators with a number of their own; may be negative */
  double recompute_cycles;          /* of all these: for elements that are computed more than once; nothing is priced by it */
  double live_registers;            /* proxy: values live at once */
  double spilled;                   /* values of an item that are stored and loaded again for want of registers */
  double waited;                    /* share of what computing and traffic hide of each other elsewhere that they do not here */
  double barriers, groups;
  bool by_hand; /* lanes store by addresses that the driver sees to be one for all of them */
  uint32_t stream_count;
  cost_stream streams[COST_MAX_STREAMS];
} cost_work;
typedef struct cost_estimate {
  double ns, launch_ns, compute_ns, memory_ns, spill_ns, bytes, flops;
} cost_estimate;
bool cost_divides(uint32_t op);                              /* as a division is priced, a root too */
double cost_first_rate(const cost_profile *, double bytes);  /* at which that much is read, run after run */
double cost_class_cycles(const cost_profile *, uint32_t op); /* what add, div or a transcendental costs, by the operator's class */
/* One kernel of two that passes over so many bytes less, all else kept: nanoseconds. */
double cost_of_both(const cost_profile *, const cost_estimate *, const cost_estimate *, double bytes_less);
void cost_kernel(const cost_profile *, const cost_work *, cost_estimate *out);
#endif
