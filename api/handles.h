/* The objects behind the public handles. Children hold a count on their parents, so destruction may come in any order.
   Only api/ sees these; nothing here does work. */
#ifndef API_HANDLES_H
#define API_HANDLES_H
#include "fusion/fusion.h"
#include "ir/graph.h"
#include "runtime/targets.h"
#include <sinter/backend.h>
#include <sinter/sinter.h>
#include <stdatomic.h>

enum { API_MAX_BACKENDS = 8 };
enum { API_SPARE_BLOCKS = 16 };
struct snt_context {
  atomic_uint uses;
  snt_host_alloc given;                    /* the caller's */
  snt_host_alloc alloc;                    /* what everything else uses: the caller's, with failures counted */
  atomic_uint starved;                     /* times it gave nothing */
  _Atomic(void *) spare[API_SPARE_BLOCKS]; /* memory of compiles that have ended, for the next; each begins with its size */
  atomic_uint spare_bytes;
  snt_logger log;
  snt_cache_io cache;
  snt_backend backends[API_MAX_BACKENDS];
  const snt_backend *backend_list[API_MAX_BACKENDS];
  uint32_t backend_count;
};
/* What constant data lies in and must live as long as it: mapped files, say. In the store's arena. */
typedef struct api_kept {
  struct api_kept *next;
  void *user;
  void (*release)(void *user);
  bool (*holds)(void *user, const void *data, uint64_t bytes); /* the data lies in it, and does not change */
  void (*rest)(void *user);                                    /* the data was read and is not wanted soon: memory may be given back */
} api_kept;
typedef struct api_copy {
  const void *from;
  void *copy;
  uint64_t bytes;
} api_copy;
typedef struct api_sizes {
  const void *data;
  uint64_t bytes;
  fusion_sizes sizes;
} api_sizes;
/* Constant data that a graph and its programs share. Changed by the graph's thread only. */
typedef struct api_store {
  atomic_uint uses;
  snt_context *context;
  ir_arena arena;
  api_kept *kept;
  IR_VEC(api_copy) copies;
  IR_VEC(api_sizes *) sizes; /* in the order in which they were first asked for; `next_size`: the one after the last that was found */
  uint32_t next_size;
} api_store;
struct snt_graph {
  snt_context *context;
  ir_arena arena;
  expr_pool pool;
  ir_graph graph;
  api_store *store;
};
struct snt_profile {
  snt_context *context;
  snt_device *device; /* that it is of, if it can be probed; held */
  cost_profile profile;
};

/* The key is made when somebody asks for it, by whatever thread: those who ask at once write the same. */
typedef struct api_code {
  codegen_code code;
  _Atomic(uint64_t) key[4];
  atomic_bool has_key;
} api_code;
enum { API_MAX_BINDINGS = 64 };
enum { API_TARGETS = 4 }; /* opencl spirv cuda kernel-ir: bit 1 << (n + 1) */
typedef struct api_target_row {
  uint32_t bit; /* SNT_TARGET_* */
  const char *name;
} api_target_row;
extern const api_target_row api_targets[API_TARGETS];
typedef struct api_kernel {
  uint32_t binding_count, block_bytes, items[3];
  uint32_t sub;                    /* exact subgroup size of the SPIR-V code, 0 or ~0u: any */
  uint8_t kinds[API_MAX_BINDINGS]; /* RT_SLOT_* of the SPIR-V code's slots */
  const kir_kernel *legal[API_TARGETS];
  api_code code[API_TARGETS];
} api_kernel;

struct snt_program {
  atomic_uint uses;
  uint32_t port_count;
  api_kernel *kernels;
  ir_plan plan;
  ir_arena arena;
  snt_context *context;
  uint32_t *ports;       /* port -> plan buffer: inputs and states in order, then outputs */
  api_store *store;      /* of the constants; null: they are in the arena or in a blob */
  _Atomic(void *) *made; /* per buffer of the plan: its constant, once somebody asked for what is only described */
  uint32_t made_count;
  uint32_t targets;
  const char *texts[2]; /* of a loaded program: what explain said when it was compiled, by SNT_EXPLAIN_*; null: ask the fusion context */
  expr_pool pool;
  ir_graph graph;        /* as the user gave it: what the host device evaluates */
  fusion_context fusion; /* groups and decisions, for explain */
  fusion_options options;
  cost_profile profile;
};

/* What a device of a host's own (door/) does instead of a backend. */
typedef struct api_door {
  void (*close)(snt_device *);
  snt_result (*exec_create)(struct snt_exec *, const snt_exec_info *, snt_diag *);
  void (*exec_destroy)(struct snt_exec *);
  snt_result (*job_build)(struct snt_exec *, uint32_t job, snt_diag *);
} api_door;

struct snt_device {
  atomic_uint uses;
  const api_door *door; /* not null: `door_data` is its device, and `rt` is null */
  struct door_device *door_data;
  snt_context *context;
  rt_device *rt;
  cost_profile profile;
  bool host;
  atomic_uint same_bits; /* of api/same_bits.c: 0 until it was probed */
  snt_device_info info;
};
struct snt_buffer {
  snt_device *device;
  rt_buffer *rt;
  uint64_t bytes;
  void *host;
};
struct snt_stream {
  atomic_uint uses;
  snt_device *device;
  rt_stream *rt;
};
struct snt_event {
  snt_stream *stream;
  rt_event *rt;
  uint32_t count;
  uint64_t host_ns;
  uint32_t *spread, launches, steps; /* where steps share launches: how many each of these has; null: one each */
};

/* Steps [first, end) as one launch, of a loop's body as many trips: exec_chain.c. Like: the first chain with the same code, perhaps itself. Words: the block
   of each step and its number of groups. Slots: for each binding of each step of each trip which of the launch's it is; 0 is for the turns. */
typedef struct exec_chain {
  uint32_t first, end, trips, like, job, binding_count, word_count;
  uint32_t *slots;
} exec_chain;
enum { EXEC_JOB_RUNNING = 3 }; /* a thread has it; seen from outside it waits */
typedef struct exec_job {
  rt_pipeline *pipeline;
  atomic_uint state;
  uint32_t from_cache, kind; /* SNT_JOB_* */
  uint64_t compile_ns;
  uint32_t kernel, constant; /* which, or the buffer that a job of a constant makes */
  uint32_t built;            /* built: its turn among those that were built, from 1; 0: not built here */
  bool replaces;             /* the cache has something for it that is damaged, or that the driver refuses */
  bool made;                 /* of a constant: it is there, though bringing it may have failed */
  const exec_chain *chain;   /* the first with this job, whose code `code` is; null: of the kernel */
  const char *name;
  api_code code;
} exec_job;
struct snt_exec {
  atomic_uint uses;
  struct door_exec *door; /* of a door's device; then everything below job_of is empty */
  struct snt_exec *inner; /* of the host device, for a reproducible program: on the interpreter */
  snt_device *device;
  snt_program *program;
  snt_stream *stream; /* of snt_run and of uploads made here */
  uint32_t target;    /* index into api_kernel.code */
  uint32_t flags;     /* SNT_EXEC_* */
  bool near;          /* what submits a run runs it (api/exec_near.c) */
  uint32_t job_count;
  atomic_uint built;
  atomic_uint to_make; /* jobs of constants that have not made theirs */
  exec_job *jobs;
  uint32_t *job_of; /* kernel -> job; UINT32_MAX: only chains have it */
  uint32_t job_room, chain_count;
  exec_chain *chains;  /* in order */
  rt_buffer *turns;    /* what the groups of a chain share their work by: one chain runs at a time */
  rt_buffer **buffers; /* per plan buffer: constants, states, scratch (one for all), staging of host arguments */
  rt_buffer *scratch;
  uint64_t scratch_bytes;
  rt_dispatch *dispatches; /* room for every step of every trip of the largest run yet */
  struct rt_bound *bounds;
  uint32_t *spread; /* steps that run in each of the dispatches */
  uint32_t *words;  /* of the chains: null without */
  uint64_t dispatch_room, binding_room, word_room;
  uint8_t *blocks;    /* a plan_launch a dispatch */
  int64_t *variables; /* of the pool, as expr_values wants them: the numbers of the trips */
  int64_t *symbols;   /* of the run before, for which */
  expr_known *known;  /* these are right, in this */
  uint32_t turn;
  struct exec_port {
    rt_buffer *buffer;
    uint64_t offset, bytes;
    void *host;
  } * bound;           /* per plan buffer, of the run at hand */
  rt_buffer **staging; /* per plan buffer: device copies of host arguments */
  void **host_states;  /* host device */
  ir_arena texts;      /* codes of the chains */
};

void *api_take(snt_context *, size_t size); /* zeroed */
void api_give(snt_context *, void *, size_t size);
/* An error that came while the allocator gave nothing, whatever part it was seen by, is SNT_E_HOST_MEM. `before`: api_starved at the start. */
uint32_t api_starved(const snt_context *);
snt_result api_blame(const snt_context *, uint32_t before, snt_result, snt_diag *);
void api_context_hold(snt_context *);
api_store *api_store_new(snt_context *);
api_store *api_store_hold(api_store *);
void api_store_drop(api_store *);
const void *api_store_data(api_store *, const void *data, uint64_t bytes); /* the same bytes, as long as the store lives; null: no memory */
fusion_sizes *api_store_sizes(api_store *, const void *data, uint64_t bytes); /* of data that lives as long as the store, or null */
void api_store_rest(const api_store *);
/* The bytes of a constant of the plan, made on first need, from any thread; null: no memory, or none were given. They live as long as the program. */
const void *api_constant(const snt_program *, uint32_t buffer);
bool api_is_to_make(const snt_program *,
                    uint32_t buffer); /* a constant that is described, large, and not made yet; of alike ones the first */
bool api_is_to_make(const snt_program *,
                    uint32_t buffer);         /* a constant that is described, large, and not made yet; of alike ones the first */
bool api_make_constants(const snt_program *); /* all of them */
bool api_expect_constants(snt_program *);     /* once the plan is whole */
void api_drop_constants(snt_program *);
snt_program *api_program_new(snt_context *); /* empty, with one use */
void api_program_drop(snt_program *);
void api_code_key(api_code *, uint32_t target, uint8_t out[32]); /* from the code's bytes; `target` as in api_targets */
void api_explain(const snt_program *, uint32_t format, ir_arena *temp, ir_text *out);
void api_device_hold(snt_device *);
void api_profile_forget(snt_profile *);                   /* which device it is of */
void exec_repair_caps(const snt_profile *of, kir_caps *); /* api/same_bits.c: narrowed by what its device's probe found */
snt_result api_device_over(snt_context *, rt_device *, snt_device **out,
                           snt_diag *); /* takes the backend's device, and closes it on failure */
void api_stream_drop(snt_stream *);
void api_exec_hold(snt_exec *);
snt_result api_check_fit(const snt_exec *, snt_diag *); /* the program against the device's limits */
snt_result api_check_head(const snt_head *, uint32_t type, size_t known, snt_diag *);
snt_result api_check_whole(const snt_head *, uint32_t type, size_t known, snt_diag *);   /* and it is no shorter: all fields may be read */
snt_result api_check_chained(const snt_head *, uint32_t type, size_t known, snt_diag *); /* as that, and the caller goes on to the next */
snt_result api_check_flags(uint32_t given, uint32_t known, const char *stage, snt_diag *);
snt_result api_check_symbols(const snt_program *, const int64_t *symbols, uint32_t count, const char *stage, snt_diag *);
/* Is an array of the caller's one of shorter rows? 0: they lie side by side. An older header's would be, and there is none yet. */
static inline bool api_is_short(uint32_t stride, size_t row) { return stride - 1u < row - 1u; }
extern const int32_t api_weight_types[];        /* by SNT_WEIGHTS_ */
const char *api_entry_name(const char *kernel); /* the function's name in the code of every target but SPIR-V */
uint32_t api_target_index(uint32_t bit);        /* UINT32_MAX: not a code target */
/* pack.c: the matrix units of the profile that the program is for, of each type. */
bool api_has_units(const snt_program *, const kir_caps *);
/* What a module of SPIR-V asks for that the device lacks, in words; null: nothing. Of no program: whatever its matrix units are, of
   which pipelines ask one by one, and whether or not products of bytes are fast. */
const char *api_module_lacks(const snt_program *, const codegen_code *, const kir_caps *);
snt_result api_copy_text(const ir_text *, char *text, size_t *length);
#endif
