/* bench/cost: does the cost model rank the partitions of a graph as a device does? In: graphs (a text of many, and random ones from a seed). For each,
   legal partitions made by contracts; all are predicted and measured in one interleaved run. Out: rank correlations, regrets, and those of lesser models.
   Looks into the library: the working graph, the groups, the prices. */
#ifndef BENCH_COST_H
#define BENCH_COST_H
#include "api/handles.h"
#include "tools/host/host.h"
#include <stdatomic.h>
#include <stdio.h>

enum { COST_BENCH_PARTITIONS = 160, COST_BENCH_PORTS = 48, COST_BENCH_FLOWS = 512, COST_BENCH_NAME = 48, COST_BENCH_GRAPHS = 1024 };
typedef enum { MODEL_FULL, MODEL_NO_RECOMPUTE, MODEL_NO_REGISTERS, MODEL_BYTES, MODEL_COUNT } bench_model;

/* How a partition was made: beside the compiler's own and the unfused one the chosen plan with cuts, the chosen plan fused further than
   prices say, and contracts by chance. */
typedef enum { MADE_CHOSEN, MADE_UNFUSED, MADE_CUT, MADE_FURTHER, MADE_RANDOM, MADE_COUNT } partition_origin;

typedef struct partition {
  snt_program *program;
  snt_exec *exec;
  uint64_t key; /* of the groups' members */
  double predicted[MODEL_COUNT], measured, halves[2];
  uint32_t steps;
  partition_origin made;
  bool known; /* its measurement stood in the table */
} partition;

/* Work that the device does while the host hands over what is measured: a copy. */
typedef struct cost_cover {
  snt_program *program;
  snt_exec *exec;
  snt_buffer *buffers[2];
  double first_ns, more_ns; /* of one, until the host knows; of each more */
} cost_cover;

typedef struct cost_bench {
  snt_context *context;
  snt_device *device;
  snt_profile *profile, *other; /* other: whose choices are measured beside ours; null: none */
  snt_profile *prices;          /* by which the kernels that `profile` makes are ranked; null: by its own */
  snt_stream *stream;
  uint64_t random; /* state of the generator, begun anew for every graph */
  uint32_t seed;
  uint32_t wanted, best,
      rounds;     /* partitions; of them the best by the model among four times as many; times that all are made anew and measured */
  uint32_t again; /* times that the best and the chosen one are measured once more, in other memory */
  double slice_ns, round_trip;                 /* between two processors, in the sweeps that count; 0: nothing was measured */
  double counted;                              /* the share of these */
  const char *only;                            /* the one graph of that name; null: all */
  const char *table;                           /* of measurements that are kept; null: none */
  const char *name;                            /* of the graph at hand */
  bool verbose, processor_time, apart, priced; /* priced: only partitions of the table, and nothing is measured */
  atomic_bool *taken; /* of graphs, by number, among processes that build kernels and measure nothing; null: this one measures */
  uint32_t number;    /* of the graph at hand */
  bool covered;       /* what is measured is handed over while the device is busy: its own time, not the host's */
  cost_cover cover;
  char *base; /* the working graph of the graph at hand, as text: what the partitions are made of */
  size_t base_length;
  uint32_t *group_of; /* of the chosen plan: cost_note_groups */
  partition parts[COST_BENCH_PARTITIONS];
  uint32_t count;
  snt_buffer *buffers[COST_BENCH_PORTS];
  snt_diag diag;
} cost_bench;

/* An edge between computing nodes of a graph, through views. */
typedef struct cost_flow {
  uint32_t from, to;
} cost_flow;

void cost_begin_random(cost_bench *, const char *name); /* of a graph: the same numbers whatever other graphs there are */
uint32_t cost_random_below(cost_bench *, uint32_t n);
/* A random graph of pointwise operators, reductions along rows and products, as text; `text` has room for 16 KiB. */
void cost_random_graph(cost_bench *, char *text, size_t room);
/* One of dear values that several unlike readers have. */
void cost_random_readers(cost_bench *, char *text, size_t room);

/* Partitions of a graph, of each origin in turn as long as there are any. Distinct; SNT_INCOMPLETE: fewer than wanted. */
snt_result cost_make_partitions(cost_bench *, const char *text, size_t length);
/* Two: as this device's profile chooses, and as `other` would; one where they choose the same. */
snt_result cost_make_versus(cost_bench *, const snt_profile *other, const char *text, size_t length);
void cost_drop_partition(partition *);
void cost_free_partitions(cost_bench *);
void cost_free_buffers(cost_bench *); /* of the ports */
/* Steps of these: the working graph before grouping (`base`), read again, its edges; a program that becomes a partition, or goes. */
snt_result cost_find_base(cost_bench *, const char *text, size_t length);
snt_result cost_parse_base(cost_bench *, snt_graph **out);
uint32_t cost_find_flows(const ir_graph *, cost_flow *out);
snt_result cost_make_exec(cost_bench *, const snt_program *, bool apart,
                          snt_exec **out); /* apart: a launch for each kernel, not as users run them */
snt_result cost_add_partition(cost_bench *, snt_program *, partition_origin);
/* Per value of the working graph that the program was made of: its group + 1; 0: a view; UINT32_MAX: in several. To be freed; null: no memory. */
uint32_t *cost_note_groups(const snt_program *, uint32_t values);
void cost_predict(const cost_bench *, partition *);
/* Runs `work` in so many processes at once, each of which builds what no other one has taken (cost_build.c). */
snt_result cost_build(cost_bench *, uint32_t processes, snt_result (*work)(cost_bench *, void *), void *user);
bool cost_takes(cost_bench *);               /* is the graph at hand this process's to build, or to measure? */
snt_result cost_build_kernels(cost_bench *); /* of all its partitions, into the cache */
snt_result cost_make_buffers(cost_bench *);  /* the ports', with data */
snt_result cost_sample(cost_bench *, const partition *, uint32_t repeats, double *ns); /* of one submission among as many */
snt_result cost_measure(cost_bench *);                                                 /* all of them (cost_sweeps.c) */
double cost_round_trip(void);                                                          /* nanoseconds (cost_apart.c) */
/* Measurements of the graph at hand that are kept (cost_table.c): are all its partitions there? Those that are not are left out where
   nothing is to be measured. And what has been measured. */
/* ---- a device that is busy meanwhile (cost_cover.c) ---- */
snt_result cost_cover_open(cost_bench *);
void cost_cover_close(cost_bench *);
double cost_now_ns(const cost_bench *);
/* Submits as many as last longer than the host needs for so many kernels; *ns: what they take. Nothing where nothing is covered. */
snt_result cost_cover_submit(cost_bench *, double kernels, double *ns);
/* Submissions that a queue takes while it is covered, at most. */
uint32_t cost_cover_most(const cost_bench *, const partition *, uint32_t wanted);
bool cost_table_read(cost_bench *);
void cost_table_write(const cost_bench *);
/* The chosen partition and `best` against each other once more, made anew `again` times: the best of many is partly luck. */
snt_result cost_measure_again(cost_bench *, uint32_t best, double measured[2]);
void cost_show_steps(cost_bench *, const partition *); /* each kernel, by the device's own clock, beside what was predicted */

/* ---- statistics (cost_rank.c) ---- */
double cost_spearman(const double *a, const double *b, uint32_t count);
/* Of the pairs that differ by more than `noise` (relative) in b: the share in the same order, less the share in the other. */
double cost_agreement(const double *a, const double *b, uint32_t count, double noise);
double cost_median(double *values, uint32_t count); /* sorts them */
/* What lies within `noise` (relative) of the least of its class becomes that: classes from the least on, so that a rank knows as ties what
   a run cannot tell apart. */
void cost_tie(const double *values, uint32_t count, double noise, double *tied);
#endif
