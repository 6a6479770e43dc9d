/* Sinter: a graph of tensor operators, fused into as few kernels as the device at hand wants, and run on it.
   C99, usable from C++11. No globals, no hidden threads, no environment, no files, no output: whatever the library needs comes through the context.
   Rules that hold everywhere:
   - a negative result is an error, 0 done, a positive one "not done"; out parameters are set only on success; detail goes into an optional snt_diag;
   - context, profile, program, device and a ready exec may be used from several threads at once; a graph, a stream and the submissions of one exec
     belong to one thread at a time;
   - children keep their parents alive: destroy in any order; destroying null does nothing;
   - texts and arrays are queried with two calls: null asks for the needed size alone, and is SNT_OK (of blobs, and of snt_vk_describe's
     storage, SNT_INCOMPLETE); too small gives it with SNT_INCOMPLETE. Sizes of texts count the terminator. */
#ifndef SINTER_H
#define SINTER_H
#include "types.h"
#ifdef __cplusplus
extern "C" {
#endif
#define SNT_ABI_VERSION 1u
#define SNT_VERSION_TEXT "0.1.0"

typedef struct snt_context snt_context; /* host callbacks */
typedef struct snt_graph snt_graph;     /* mutable, build time only, one thread */
typedef struct snt_profile snt_profile; /* what the cost model knows of a device class; immutable */
typedef struct snt_program snt_program; /* compiled kernels and plan; immutable, serialisable */
typedef struct snt_device snt_device;   /* an open device */
typedef struct snt_exec snt_exec;       /* program x device: pipelines, constants, scratch, states */
typedef struct snt_buffer snt_buffer;   /* device memory */
typedef struct snt_stream snt_stream;   /* in-order work on a device */
typedef struct snt_event snt_event;     /* completion and timings */

// clang-format off
enum {
  SNT_TYPE_context_info = 1, SNT_TYPE_diag, SNT_TYPE_compile_info, SNT_TYPE_device_info, SNT_TYPE_open_info, SNT_TYPE_exec_info, SNT_TYPE_run_info,
  SNT_TYPE_job, SNT_TYPE_step, SNT_TYPE_port, SNT_TYPE_kernel, SNT_TYPE_decision
};
// clang-format on

/* ---- context ---- */
typedef struct snt_logger {
  void *user;
  int32_t level; /* messages above level are not even formatted */
  void(SNT_CALL *message)(void *user, int32_t level, const char *text, size_t length);
} snt_logger;
/* A cache of driver binaries. The library checks every entry itself before a driver sees it; both calls may come from any thread. `get` with
   null gives the size of an entry, SNT_INCOMPLETE or SNT_OK; with room, the entry, SNT_OK. Anything else is a miss. Entries are set when a job is
   done; where the driver compiles again for a binary (PoCL), when the exec is destroyed. */
typedef struct snt_cache_io {
  void *user;
  snt_result(SNT_CALL *get)(void *user, const uint8_t key[32], void *dst, size_t *size);
  void(SNT_CALL *set)(void *user, const uint8_t key[32], const void *src, size_t size);
} snt_cache_io;
typedef struct snt_context_info {
  snt_head head;
  uint32_t abi_version, flags;
  snt_host_alloc alloc; /* all zero: malloc and free. Up to 20 MB from one compile are kept for the next */
  snt_logger log;
  snt_cache_io cache;
} snt_context_info;
SNT_API uint32_t SNT_CALL snt_version(void); /* major << 16 | minor << 8 | patch */
SNT_API const char *SNT_CALL snt_result_text(snt_result);
SNT_API uint32_t SNT_CALL snt_dtype_size(int32_t dtype); /* bytes of an element; 0: unknown */
SNT_API snt_result SNT_CALL snt_context_create(const snt_context_info *, snt_context **out);
SNT_API void SNT_CALL snt_context_destroy(snt_context *);

/* ---- graphs: the first mistake sticks and is reported by the next call that can fail, at the latest by snt_compile ---- */
typedef uint32_t snt_value; /* 0 is "none" */
typedef struct snt_symbol {
  const char *name;
  int64_t min, max, multiple_of, hint;
} snt_symbol;
typedef struct snt_tensor {
  int32_t dtype;
  uint32_t rank;
  int64_t dims[SNT_MAX_RANK];
} snt_tensor; /* dims < 0: symbol number -dims-1 */
enum { SNT_MUST_FUSE = 1, SNT_NEVER_FUSE, SNT_KEEP, SNT_BARRIER };
SNT_API snt_result SNT_CALL snt_graph_create(snt_context *, snt_graph **out);
SNT_API void SNT_CALL snt_graph_destroy(snt_graph *);
SNT_API uint32_t SNT_CALL snt_graph_symbol(snt_graph *, const snt_symbol *); /* its number, from 0; UINT32_MAX after a mistake */
SNT_API snt_value SNT_CALL snt_graph_input(snt_graph *, const char *name, const snt_tensor *);
SNT_API snt_value SNT_CALL snt_graph_state(snt_graph *, const char *name, const snt_tensor *); /* keeps its contents between runs */
SNT_API void SNT_CALL snt_graph_update(snt_graph *, snt_value state, snt_value new_value);     /* the state's next contents */
SNT_API snt_value SNT_CALL snt_graph_constant(snt_graph *, const snt_tensor *,
                                              const void *data); /* row-major; borrowed until the graph is destroyed */
SNT_API snt_value SNT_CALL snt_graph_scalar(snt_graph *, int32_t dtype, double value); /* rank 0 */
/* Any primitive or composite by its name in the text form ("add", "reduce.sum", "softmax"); attributes as text ("axes=[1], keep"), or null. What has
   several results (sgd, adam, lstm) gives its first: the others are had through snt_graph_parse. */
SNT_API snt_value SNT_CALL snt_graph_op(snt_graph *, const char *op, const snt_value *args, uint32_t arg_count, const char *attributes);
/* Operators of your own, by the text form's `custom` and `kernel` (docs/custom-operators.md), for snt_graph_op to call by their names. */
SNT_API snt_result SNT_CALL snt_graph_define(snt_graph *, const char *text, size_t length, snt_diag *);
SNT_API void SNT_CALL snt_graph_name(snt_graph *, snt_value, const char *name);
SNT_API void SNT_CALL snt_graph_output(snt_graph *, const char *name, snt_value);
/* The value of that name (of a composite that is several nodes, its result), else that of the output of that name; 0: none. */
SNT_API snt_value SNT_CALL snt_graph_find(const snt_graph *, const char *name);
/* What shall be one kernel (compiling fails with the obstacle when it cannot), or never; what is stored; what nothing is fused across. */
SNT_API snt_result SNT_CALL snt_graph_contract(snt_graph *, uint32_t kind, const snt_value *, uint32_t count);
/* Data of `const data="name"` in a text: returns an address that outlives the graph, or null. */
typedef struct snt_data_source {
  void *user;
  const void *(SNT_CALL *find)(void *user, const char *name, uint64_t offset, uint64_t bytes);
} snt_data_source;
SNT_API snt_result SNT_CALL snt_graph_parse(snt_graph *, const char *text, size_t length, const snt_data_source *,
                                            snt_diag *); /* into an empty graph; diag has line:column */
SNT_API snt_result SNT_CALL snt_graph_print(const snt_graph *, char *text, size_t *length);
SNT_API snt_result SNT_CALL snt_graph_verify(const snt_graph *, snt_diag *);

/* ---- profiles ---- */
SNT_API snt_result SNT_CALL snt_profile_builtin(snt_context *, const char *name,
                                                snt_profile **out); /* pocl lavapipe igpu dgpu mobile h100 cpu .. */
SNT_API snt_result SNT_CALL snt_profile_parse(snt_context *, const char *text, size_t length, snt_profile **out, snt_diag *);
SNT_API snt_result SNT_CALL snt_profile_mask(const snt_profile *, const char *mask, snt_profile **out,
                                             snt_diag *); /* "bindings=4,local=16384", "vulkan11-min" */
SNT_API snt_result SNT_CALL snt_profile_print(const snt_profile *, char *text, size_t *length);
SNT_API void SNT_CALL snt_profile_destroy(snt_profile *);

/* ---- compile: host only, no device needed ---- */
/* A port that an image is bound to (<sinter/vulkan.h>): the tensor's last axes are channels (1 to 4), rows and columns in this order; axes
   before them are 1. Inputs are read texel by texel, outputs stored in whole texels; the format is declared when pipelines are made. Where the graph
   has symbols "NAME.x" and "NAME.y", port NAME is the part of its image that begins there.
   SNT_IMAGE_FILTERED, an input: its element at row y and column x is what a sampler (linear, clamped to the edge) gives in the middle of that cell of the
   whole image, at ((x + 0.5) / columns, (y + 0.5) / rows). So the image may have any size; with the tensor's own size its texels are read. What the device's
   filter is off is the input's own: Vulkan asks for 8 bits of a texel's width at most, two neighbours d apart then give up to d / 256 beside the exact one. */
enum { SNT_IMAGE_CHW = 1, SNT_IMAGE_HWC, SNT_IMAGE_HW };
enum { SNT_IMAGE_FILTERED = 1 };
typedef struct snt_image_port {
  const char *port;
  uint32_t layout, flags; /* flags: SNT_IMAGE_FILTERED */
} snt_image_port;
/* What large weights of contractions and convolutions, and tables that rows are gathered from, are stored as: in the program, in its saved
   form, and on devices that do not lay them out as f32 for themselves. F16: rounded to nearest, 2^-11 of a weight's size off at most (2^-25
   below 2^-14). I8: -127 to 127 times a scale of each output channel (of each row of a table), half a step off at most, 1/254 of the
   channel's largest. Constant factors of channels go into the weights before, as they do without. Biases, other scales and small weights
   stay as they are, and so do weights that hold an infinity or a NaN, or that f16 would overflow. The host device computes with the same
   numbers. */
enum { SNT_WEIGHTS_AS_GIVEN = 0, SNT_WEIGHTS_F16, SNT_WEIGHTS_I8 };
enum {
  SNT_COMPILE_UNFUSED = 1,
  SNT_COMPILE_UNFUSED_NODES = 2,
  SNT_COMPILE_NO_REWRITES = 4,
  SNT_COMPILE_LINE_INFO =
      8 /* SPIR-V: the kernel IR is the source of each instruction, values bear its names; its first line names the nodes */
};
typedef struct snt_compile_info {
  snt_head head;
  /* SNT_TARGET_*, HOST: kernel IR for the interpreter; 0: the profile's own. The graph for the host device is always kept. */
  uint32_t targets;
  /* SNT_NUMERICS_*: what each promises is in docs/numerics.md. The first REPRODUCIBLE program for the profile of an open device builds and
     runs a small probe on that device, and so does the first exec of one: what the device does otherwise is compiled in. */
  uint32_t numerics;
  uint32_t flags;
  uint64_t peak_bytes; /* budget of scratch, 0: none */
  void *user;
  /* Non-zero cancels. */
  int(SNT_CALL *progress)(void *user, const char *stage, double fraction);
  /* After each pass: the graph; each kernel; the plan. */
  void(SNT_CALL *dump)(void *user, const char *stage, const char *text, size_t length);
  uint32_t image_count, image_stride;
  const snt_image_port *images;
  /* Compiles GLSL of operators of your own (`label`) for SNT_TARGET_SPIRV: a compute shader with entry main, for Vulkan 1.1, not optimised, function
     names kept. The words are read before the next call. Null: such operators have no source for SPIR-V. */
  void *glsl_user;
  snt_result(SNT_CALL *glsl)(void *user, const char *label, const char *text, size_t length, const uint32_t **words, size_t *bytes,
                             snt_diag *);
  uint32_t weights; /* SNT_WEIGHTS_*. SNT_E_UNSUPPORTED where the graph has none to store so */
} snt_compile_info;
SNT_API snt_result SNT_CALL snt_compile(snt_graph *, const snt_profile *, const snt_compile_info *, snt_program **out, snt_diag *);
SNT_API snt_result SNT_CALL snt_program_save(const snt_program *, void *dst, size_t *size);
SNT_API snt_result SNT_CALL snt_program_load(snt_context *, const void *blob, size_t size, snt_program **out,
                                             snt_diag *); /* blob is borrowed */
/* Packs: variants of one program for several profiles in one blob, in the author's order of preference. load_best takes the variant made for the
   device's own profile, else the first whose code the device can run; a plain program is loaded as it is. */
SNT_API snt_result SNT_CALL snt_program_pack(const snt_program *const *programs, uint32_t count, void *dst, size_t *size);
SNT_API snt_result SNT_CALL snt_program_load_best(snt_device *, const void *blob, size_t size, snt_program **out, snt_diag *);
SNT_API uint32_t SNT_CALL snt_pack_count(const void *blob, size_t size); /* 0: no pack */
SNT_API snt_result SNT_CALL snt_pack_variant(const void *blob, size_t size, uint32_t variant, const void **out, size_t *out_size);
SNT_API const char *SNT_CALL snt_program_profile(const snt_program *); /* name of the profile it was compiled for */
/* GRAPH: the graph as given and as its kernels compute it, as JSON; DOT_BEFORE and DOT_AFTER: the same for graphviz. A loaded program has no graphs:
   SNT_E_UNSUPPORTED. */
enum { SNT_EXPLAIN_TEXT = 0, SNT_EXPLAIN_JSON, SNT_EXPLAIN_PLAN, SNT_EXPLAIN_GRAPH, SNT_EXPLAIN_DOT_BEFORE, SNT_EXPLAIN_DOT_AFTER };
SNT_API snt_result SNT_CALL snt_program_explain(const snt_program *, uint32_t format, char *text, size_t *length);
/* What was considered and chosen, an edge a record, in the order of SNT_EXPLAIN_JSON; none for a loaded program. Names are borrowed, "" where there is none. */
enum { SNT_DECISION_PAIR = 0, SNT_DECISION_WHOLE, SNT_DECISION_RECOMPUTE, SNT_DECISION_LAUNCH, SNT_DECISION_BODY, SNT_DECISION_TRIPS };
typedef struct snt_decision {
  snt_out_head head;
  snt_value producer, consumer; /* of the graph that was compiled; 0: of no one value of it */
  const char *producer_name, *consumer_name, *rule;
  uint32_t form, taken, bindings; /* bindings: of the one kernel, 0: unknown */
  double ns_parts, ns_fused;      /* estimated; ns_fused 0: not priced */
  double bytes_saved, registers;
} snt_decision;
SNT_API uint32_t SNT_CALL snt_program_decision_count(const snt_program *);
SNT_API snt_result SNT_CALL snt_program_decision(const snt_program *, uint32_t number, snt_decision *out);
SNT_API snt_result SNT_CALL snt_program_decision_text(const snt_program *, uint32_t number, char *text, size_t *length); /* a sentence */
enum { SNT_PORT_INPUT = 1, SNT_PORT_OUTPUT, SNT_PORT_STATE };
typedef struct snt_port {
  snt_out_head head;
  const char *name;
  uint32_t kind;
  snt_tensor tensor;
} snt_port; /* dims < 0: not one symbol but an expression over them if -dims-1 >= the symbol count */
SNT_API uint32_t SNT_CALL snt_program_port_count(const snt_program *);
SNT_API snt_result SNT_CALL snt_program_port(const snt_program *, uint32_t port, snt_port *out);
SNT_API snt_result SNT_CALL snt_program_find_port(const snt_program *, const char *name, uint32_t *out);
SNT_API uint32_t SNT_CALL snt_program_symbol_count(const snt_program *);
SNT_API snt_result SNT_CALL snt_program_symbol(const snt_program *, uint32_t number, snt_symbol *out);
SNT_API snt_result SNT_CALL snt_program_port_dims(const snt_program *, uint32_t port, const int64_t *symbols,
                                                  int64_t *dims); /* for given symbols */
typedef struct snt_kernel {
  snt_out_head head;
  const char *name, *kind;
  const void *code;
  size_t code_size;
  uint32_t binding_count, items[3];
  const char *entry; /* the function's name in the code; several kernels may have one entry, or even one code */
} snt_kernel;
SNT_API uint32_t SNT_CALL snt_program_kernel_count(const snt_program *);
SNT_API snt_result SNT_CALL snt_program_kernel(const snt_program *, uint32_t kernel, uint32_t target,
                                               snt_kernel *out); /* code null if not compiled for target */
SNT_API void SNT_CALL snt_program_destroy(snt_program *);

/* ---- devices ---- */
typedef struct snt_device_info {
  snt_out_head head;
  char selector[64], name[128], driver[128], profile[32];
  uint32_t api, device_class;
  uint64_t id[2];
} snt_device_info;
typedef struct snt_open_info {
  snt_head head;
  const char *selector; /* "host" "interp" "opencl:pocl" "vulkan:0" ..; null: the best there is */
  const char *mask;     /* null, or as snt_profile_mask: makes the device a smaller one */
} snt_open_info;
SNT_API snt_result SNT_CALL snt_device_list(snt_context *, uint32_t *count, uint32_t stride, snt_device_info *out);
SNT_API snt_result SNT_CALL snt_device_open(snt_context *, const snt_open_info *, snt_device **out, snt_diag *);
SNT_API snt_result SNT_CALL snt_device_get_info(const snt_device *, snt_device_info *out);
SNT_API snt_result SNT_CALL snt_device_profile(const snt_device *,
                                               snt_profile **out); /* with its queried limits; holds the device, if no host attached it */
SNT_API void SNT_CALL snt_device_destroy(snt_device *);

SNT_API snt_result SNT_CALL snt_buffer_create(snt_device *, uint64_t bytes, snt_buffer **out, snt_diag *);
SNT_API void SNT_CALL snt_buffer_destroy(snt_buffer *);
SNT_API snt_result SNT_CALL snt_stream_create(snt_device *, snt_stream **out, snt_diag *);
SNT_API void SNT_CALL snt_stream_destroy(snt_stream *);
SNT_API snt_result SNT_CALL snt_stream_wait(snt_stream *, snt_diag *);
SNT_API snt_result SNT_CALL snt_buffer_upload(snt_stream *, snt_buffer *, uint64_t offset, const void *src, uint64_t bytes,
                                              snt_diag *); /* src is read before it returns */
SNT_API snt_result SNT_CALL snt_buffer_download(snt_stream *, snt_buffer *, uint64_t offset, void *dst, uint64_t bytes,
                                                snt_diag *); /* done on return */

/* ---- execution ---- */
enum {
  SNT_EXEC_REPORT = 1, /* drivers keep statistics for snt_exec_report; some then build longer and leave their own cache unused */
  SNT_EXEC_APART =
      2 /* each step has a launch of its own, and snt_event_timings a time for it: on some devices a launch goes through several */
};
typedef struct snt_exec_info {
  snt_head head;
  uint32_t flags; /* SNT_EXEC_* */
  const int64_t *max_symbols;
  uint32_t symbol_count;
} snt_exec_info; /* max_symbols: what scratch is made for at once; grown later when needed */
enum { SNT_JOB_WAITING = 0, SNT_JOB_DONE = 1, SNT_JOB_FAILED = 2 };
/* What a job makes: a pipeline, or a constant that compiling only described (weights as a kernel wants them laid out), which has no code, and zeros for a
   key. Pipelines come first. */
enum { SNT_JOB_PIPELINE = 0, SNT_JOB_CONSTANT = 1 };
typedef struct snt_job {
  snt_out_head head;
  const char *name;
  uint32_t state, code_bytes, from_cache, kind; /* SNT_JOB_* */
  uint64_t compile_ns;                          /* what running it took */
  uint8_t key[32];
} snt_job;
typedef struct snt_step {
  snt_out_head head;
  const char *name, *kind;
  uint32_t job, barrier;
  uint64_t est_ns;
} snt_step;
SNT_API snt_result SNT_CALL snt_exec_create(snt_device *, const snt_program *, const snt_exec_info *, snt_exec **out, snt_diag *);
SNT_API uint32_t SNT_CALL snt_exec_job_count(const snt_exec *);
SNT_API snt_result SNT_CALL snt_exec_job(const snt_exec *, uint32_t job, snt_job *out);
/* Any host thread; a failed job may be run again, a done one is SNT_OK, one that another thread is at SNT_NOT_READY. */
SNT_API snt_result SNT_CALL snt_exec_run_job(snt_exec *, uint32_t job, snt_diag *);
SNT_API snt_result SNT_CALL snt_exec_prepare(snt_exec *, snt_diag *); /* runs what jobs are left, here */
/* What the driver says of a built kernel (CUDA always, OpenCL of a job that is one kernel, as all are with SNT_EXEC_REPORT or
   SNT_EXEC_APART; Vulkan where the exec was made with SNT_EXEC_REPORT and the device has VK_KHR_pipeline_executable_properties; a door's
   exec never). `spilled`: bytes of an item in memory beyond the arrays that the kernel has; UINT32_MAX: not known. */
typedef struct snt_report {
  uint32_t spilled, registers;
} snt_report;
SNT_API snt_result SNT_CALL snt_exec_report(const snt_exec *, uint32_t job,
                                            snt_report *out); /* SNT_NOT_READY before it is built; SNT_E_ARG: no pipeline */
/* Splits what spilled: never_fuse contracts across the thinnest part of each kernel of `built` whose items spill more than `bytes`, on the graph
   that its program was compiled from. Compile again when `out_splits` is not 0. */
SNT_API snt_result SNT_CALL snt_graph_learn(snt_graph *, const snt_exec *built, uint32_t bytes, uint32_t *out_splits, snt_diag *);
SNT_API uint32_t SNT_CALL snt_exec_step_count(const snt_exec *);
SNT_API snt_result SNT_CALL snt_exec_step(const snt_exec *, uint32_t step, snt_step *out);
/* A port's value: a device buffer at an offset (a multiple of 256, or of the device profile's offset_align where that is more), or host
   memory of at least `bytes`. A state port need not be given: its contents live in the exec, zero at first (snt_exec_reset_states). One
   that is given is read and written there, by this run, and what the exec holds stays as it is: weights that a caller has set are given in
   every run. */
typedef struct snt_argument {
  uint32_t port, reserved; /* reserved: 0 */
  snt_buffer *buffer;
  uint64_t offset;
  void *host;
  uint64_t bytes;
} snt_argument;
typedef struct snt_run_info {
  snt_head head;
  uint32_t argument_count, argument_stride; /* stride 0: sizeof(snt_argument), as of every array; one of less is refused */
  const snt_argument *arguments;
  const int64_t *symbols; /* a value for each symbol of the program */
  uint32_t symbol_count;
} snt_run_info;
/* Which steps a run with these symbols takes, in order: those of other extents are left out, those of loops come once a trip. `steps` null: only
   how many; SNT_INCOMPLETE: there are more than *count. None on the host device, which walks the graph. Not beside a run of the same exec. */
SNT_API snt_result SNT_CALL snt_exec_steps_taken(snt_exec *, const snt_run_info *, uint32_t *count, uint32_t *steps);
SNT_API snt_result SNT_CALL
snt_submit(snt_exec *, snt_stream *, const snt_run_info *, snt_event **out_event,
           snt_diag *); /* buffers only; asynchronous, but for runs of microseconds, which the call itself may compute; event may be null */
SNT_API snt_result SNT_CALL snt_run(snt_exec *, const snt_run_info *, snt_diag *); /* and wait; host memory allowed */
SNT_API snt_result SNT_CALL snt_exec_reset_states(snt_exec *, snt_diag *);         /* zero */
SNT_API snt_result SNT_CALL snt_event_wait(snt_event *, uint64_t timeout_ns);      /* SNT_NOT_READY on timeout */
SNT_API snt_result SNT_CALL snt_event_timings(const snt_event *, uint32_t *count,
                                              uint64_t *step_ns); /* one for each of snt_exec_steps_taken; of steps that
                                                                   share a launch the first has its time, the others 0: SNT_EXEC_APART */
SNT_API void SNT_CALL snt_event_destroy(snt_event *);
SNT_API void SNT_CALL snt_exec_destroy(snt_exec *);

#ifdef __cplusplus
}
#endif
#endif
