/* The conformance suite: cases made from the operator tables, run on any device in child processes, judged by the f64 reference.
   A case is six small numbers; its id names them (op.dtype.data.shape.context.path), its graph is text made from them, so a case that fails
   anywhere can be made again from its id alone. Case list: cases.c; grown graphs: grow*.c; pairs: pairs.c. One case: judge.c. Processes:
   workers.c. Output: report.c, page.c, html.c. */
#ifndef CONFORMANCE_CONFORM_H
#define CONFORMANCE_CONFORM_H
#include "ir/graph.h"
#include <sinter/sinter.h>
#include <stdio.h>

typedef struct conform_case {
  uint16_t call;
  uint8_t dtype, data, shape, context, path;
} conform_case;
enum { CONFORM_ID = 128, CONFORM_TEXT = 8192, CONFORM_DETAIL = 400, CONFORM_PROFILE = 8192, CONFORM_SOURCE = 65536 };
/* real: numbers in a range; whole: small whole numbers, full: all integers, both compared bit by bit; special: a range with NaNs, infinities and zeros of
   both signs among it */
enum { DATA_REAL, DATA_WHOLE, DATA_FULL, DATA_SPECIAL, DATA_COUNT };
/* strict: fused and unfused, bit by bit the same, and on related inputs (relations.h); masked: vulkan11-min, also of a profile on the
   interpreter; same: REPRODUCIBLE, bit by bit what the interpreter gives; fast: FAST, within its own bound; cut: STRICT, each input cut in
   two and joined again first (cut.c), bit by bit as without */
enum { PATH_FUSED, PATH_STRICT, PATH_MASKED, PATH_SAME, PATH_FAST, PATH_CUT, PATH_COUNT };
enum { SELF_WRONG, SELF_CRASH, SELF_HANG, SELF_FLAKY, SELF_COUNT }; /* cases that must fail, the last only once, for the suite's own test */
/* Calls that are no row of a table: self-tests; a grown graph, whose number stands in the four bytes before the path, and one of pairs; a graph from a file. */
enum { CONFORM_SELF = 0xFFFF, CONFORM_GROWN = 0xFFFE, CONFORM_PAIR = 0xFFFD, CONFORM_FILE = 0xFFFC };
typedef struct conform_graph {
  char text[CONFORM_TEXT];
  int64_t symbols[3];
  uint32_t exact;            /* bit i: output i is a whole number that must be met bit by bit */
  bool whole, full, special; /* its inputs are whole numbers; any integers; have a NaN or an infinity here and there */
} conform_graph;

extern const char *const conform_path_names[PATH_COUNT];
extern const char conform_revision[]; /* of the sources, as git names it; made when the suite is built */

/* ---- the list (cases.c) ---- */
typedef struct conform_list {
  conform_case *at;
  uint32_t count;
} conform_list;
/* Every legal combination, ordered so that any beginning of the list covers all calls. `filter`: part of an id, or null. `named`: ids, a line each, or null;
   calls that none of them has are left out. Null data: out of memory. */
bool conform_make_list(conform_list *, const char *filter, const char *named, uint64_t seed, bool self_test);
void conform_case_id(const conform_case *, char id[CONFORM_ID]);
bool conform_case_of_id(const char *id, conform_case *);         /* false: there is none, or it is a file's, or the suite's own test */
uint64_t conform_case_seed(const conform_case *, uint64_t seed); /* of its inputs: the same wherever it stands in a list */
const char *conform_case_family(const conform_case *);           /* the operator */
/* The graph as text and the values of its symbols n, m, k; false: this combination makes no sense. */
bool conform_case_text(const conform_case *, char text[CONFORM_TEXT], int64_t symbols[3]);
/* The same with what else a judge wants to know. */
bool conform_case_graph(const conform_case *, conform_graph *);
/* The same graph with each input cut in two and joined again before it is read, as text; false: nothing can be cut, or extents are symbols. */
bool conform_cut(const char *text, char out[CONFORM_TEXT]);
void conform_domain(const conform_case *, double *low, double *high); /* of real data */

/* ---- graphs that no table names (grow*.c, pairs.c, graphs.c, lists.c) ---- */
/* The graph of a sequence of choices, one byte a decision: any bytes are a graph, fewer or smaller ones a simpler graph. False: it outgrew its text. */
bool conform_grow(const uint8_t *choices, size_t count, conform_graph *);
enum { CONFORM_CHOICES = 160 };
size_t conform_grown_choices(uint32_t number, uint8_t choices[CONFORM_CHOICES]);
/* The same of pairs (pairs.c): an operator with a structure of its own and readers of its values at several places. */
bool conform_pair(const uint8_t *choices, size_t count, conform_graph *);
size_t conform_pair_choices(uint32_t number, uint8_t choices[CONFORM_CHOICES]);
#define CONFORM_TRIPLES \
  (UINT32_C(1) << 31)                 /* numbers from here on: two operators, the second on the first's result, and a move behind them */
uint32_t conform_pairs(bool triples); /* how many there are: numbers that follow each other are all of them */
uint32_t conform_case_number(const conform_case *); /* of a grown graph, or of a file */
conform_case conform_numbered(uint16_t call, uint32_t number, uint32_t path);
/* `count` grown graphs of a seed, or of pairs, each on one path; those of a file or of a folder's *.snt files, each on every path (read
   once, before children are made). */
bool conform_add_grown(conform_list *, uint32_t count, uint64_t seed);
bool conform_add_pairs(conform_list *, uint32_t count, uint64_t seed, bool triples);
bool conform_add_files(conform_list *, const char *path, snt_diag *);
uint32_t conform_keep_file(const char *path, snt_diag *); /* its number; UINT32_MAX: it cannot be read, or is no graph that fits */
const char *conform_file_name(uint32_t number);
bool conform_file_graph(uint32_t number, conform_graph *, snt_diag *);
/* A graph read for a moment: forgotten again also where its text is none. */
typedef struct conform_parsed {
  ir_arena arena;
  expr_pool pool;
  ir_graph graph;
} conform_parsed;
snt_result conform_parse(conform_parsed *, const char *text, snt_diag *);
void conform_forget(conform_parsed *);

/* ---- one case on one device (judge.c) ---- */
typedef enum {
  CONFORM_PASS,
  CONFORM_FAIL,
  CONFORM_SKIP,
  CONFORM_CRASH,
  CONFORM_TIMEOUT,
  CONFORM_FLAKY,
  CONFORM_EXCUSED,
  CONFORM_RESULTS
} conform_result;
extern const char *const conform_result_names[CONFORM_RESULTS];
typedef struct conform_verdict {
  conform_result result;
  double ratio;  /* max(error / bound) */
  uint64_t bits; /* a hash of what the outputs are, all NaN alike; 0: there are none */
  uint32_t kernels, us;
  char detail[CONFORM_DETAIL];
} conform_verdict;
/* What a case is at, for who must end it. */
enum { PHASE_COMPILE, PHASE_DRIVER, PHASE_FIRST, PHASE_RUN, PHASE_REFERENCE, PHASE_COUNT };
extern const char *const conform_phase_names[PHASE_COUNT];
typedef struct conform_device {
  volatile uint8_t *phase; /* where that is written; null: nobody asks */
  bool again;              /* a process that tries a failed case again */
  bool ways;               /* a case that passes is also made and run in other ways (ways.h) */
  const char *mask;        /* what narrows the device; null: nothing */
  snt_context *context;
  snt_device *device;
  snt_profile *profile;
  snt_device *masked; /* the same device under vulkan11-min; null if it cannot be */
  snt_profile *masked_profile;
  snt_device *interp; /* whose bits REPRODUCIBLE results have */
  snt_profile *interp_profile;
  snt_device_info info;
} conform_device;
/* Keeps `phase`, `again`, `ways` and `mask`. `selector` as `sinter devices` prints it, or DEVICE=PROFILE: it runs what is compiled for that profile. */
snt_result conform_open(const char *selector, conform_device *, snt_diag *);
void conform_close(conform_device *);
void conform_judge(conform_device *, const conform_case *, uint64_t seed, conform_verdict *);
void conform_judge_graph(conform_device *, const conform_graph *, uint32_t path, uint64_t seed, conform_verdict *);

uint32_t conform_path_numerics(uint32_t path); /* SNT_NUMERICS_ */

/* ---- the kernels of a case, for people (source.c) ---- */
typedef struct conform_source_info {
  const char *profile, *graph; /* texts */
  uint32_t path;
} conform_source_info;
bool conform_source(const conform_source_info *, ir_text *out); /* false: it does not compile */

/* ---- many cases in child processes (workers.c) ---- */
typedef struct conform_run {
  const char *selector;
  const conform_list *list;
  uint32_t jobs, shard, shards;
  double seconds;                       /* of everything, 0: no limit */
  double case_seconds, compile_seconds; /* of one case before its child is killed; instead, of each step in which something is compiled */
  uint64_t seed;
  bool stop; /* at the first failure */
  bool ways; /* conform_device.ways */
  const char *mask;
  void *user;
  void (*device)(void *user, const snt_device_info *, const char *profile);
  void (*done)(void *user, const conform_case *, const conform_verdict *);
} conform_run;
/* Whether a child can open it, in so many seconds; false with diag. */
bool conform_opens(const char *selector, const char *mask, double seconds, snt_diag *);
/* The number of cases that time did not allow, or UINT32_MAX with diag: the device does not open. */
uint32_t conform_run_all(const conform_run *, snt_diag *);
/* Prints the simplest graph found that fails like the given grown case does; writes it into the folder `save`, if not null. */
void conform_shrink(const conform_run *, const conform_case *, const char *save);

/* ---- output (report.c, runs.c, page.c, html.c) ---- */
typedef struct conform_excuse {
  char device[64], filter[CONFORM_ID], expiry[11], reason[160];
} conform_excuse;
typedef struct conform_report {
  FILE *tap, *json;
  const conform_excuse *excuses;
  uint32_t excuse_count, number, counts[CONFORM_RESULTS], failed;
  uint64_t seed;
  double worst;
  snt_device_info device;
  char profile[CONFORM_PROFILE]; /* as text */
} conform_report;
/* Lines `DEVICE FILTER YYYY-MM-DD reason`; false with a message if one cannot be read. */
bool conform_read_excuses(const char *path, conform_excuse **, uint32_t *count, snt_diag *);
void conform_report_device(void *report, const snt_device_info *, const char *profile);
void conform_report_case(void *report, const conform_case *, const conform_verdict *);
/* One run's JSON lines, of all its parts. */
typedef struct conform_lines {
  char *text; /* ends with a zero byte behind `size` */
  size_t size;
} conform_lines;
/* The runs that a file holds, at most `most`, for the caller to free (runs.c): several where it has lines of several devices. */
snt_result conform_read_lines(const char *path, conform_lines *runs, uint32_t most, uint32_t *count, snt_diag *);
void conform_free_lines(conform_lines *runs, uint32_t count);
/* The text or number of a key in one line of our own JSON, unescaped; false: not there. */
bool conform_field(const char *line, const char *key, char *out, size_t size);
/* One HTML page over files of JSON lines; or, to a name that ends in .md, a table of the largest ratios. */
snt_result conform_write_page(uint32_t count, char *const *paths, const char *out, snt_diag *);
/* pack.c: runs as one submission; a submission's bytes and some of its cases checked again. The exit code. */
snt_result conform_pack(uint32_t count, char *const *paths, const char *out, snt_diag *);
int conform_verify(const char *path, uint32_t wanted, uint64_t seed, snt_diag *);
#endif
