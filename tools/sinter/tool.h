/* What the subcommands of `sinter` share: options, a session (context, device, model, program), tensors in host memory, ports from and to files. */
#ifndef TOOLS_SINTER_TOOL_H
#define TOOLS_SINTER_TOOL_H
#include "tools/host/host.h"
#include <sinter/sinter.h>
#include <stdio.h>

enum { TOOL_MAX_PORTS = 1024, TOOL_MAX_DIMS = 64, TOOL_MAX_HELPERS = 7, TOOL_MAX_FUSE = 64 };
enum { EXIT_GOOD = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_MISMATCH = 3 }; /* exit codes for scripts */

typedef struct tool_pair {
  const char *name, *value;
} tool_pair;
typedef struct tool_options {
  const char *model, *device, *profile, *mask, *numerics, *target, *out, *passes, *trace, *header, *share, *tune, *kernel, *weights;
  tool_pair inputs[TOOL_MAX_PORTS], outputs[TOOL_MAX_PORTS], dims[TOOL_MAX_DIMS], images[TOOL_MAX_PORTS], fixed[TOOL_MAX_PORTS];
  const char *fuse[TOOL_MAX_FUSE]; /* "must:a,b", as given */
  uint32_t fuse_count;
  char *const *paths; /* all that is no option; `model` is the first */
  uint32_t path_count, image_count, fixed_count, input_count, output_count, dim_count, compile_flags, runs, jobs, timeout, sample;
  double rtol, atol;
  bool check, json, quiet, quick, html, processor_time, serve, no_unfused, learn, open, accuracy_level;
} tool_options;
/* Fills from argv after the subcommand; an unknown option or a missing value is an error on stderr and false. */

typedef struct tool_session {
  tool_options options;
  host_env env;
  host_cache *cache;
  snt_result dumped; /* into SNT_DUMP_DIR: the first failure */
  snt_context *context;
  snt_device *device;
  snt_profile *profile;
  snt_graph *graph;
  snt_program *program;
  snt_exec *exec;
  void *text; /* of the model, or the saved program */
  size_t text_size;
  int64_t symbols[TOOL_MAX_DIMS];
  int helpers[TOOL_MAX_HELPERS]; /* processes that build kernels (build_jobs.c) */
  uint32_t helper_count;
  bool fixed_inputs[TOOL_MAX_PORTS]; /* which of options.inputs are constants of an imported model, no ports */
  snt_diag diag;
} tool_session;
snt_result tool_open(tool_session *, const tool_options *, bool with_device);  /* context, cache, added backends, device or profile */
snt_result tool_open_profile(tool_session *, const char *name, size_t length); /* in place of the one that is open */
snt_result tool_load(tool_session *);                         /* the model, or a saved program: then `program` is set and `graph` is null */
snt_result tool_steer(tool_session *);                        /* of tool_load: the contracts of --fuse, into the graph */
snt_result tool_tune(tool_session *);                         /* after tool_load: --tune, contracts that proved faster on the device */
snt_result tool_learn(tool_session *);                        /* then: --learn, splits what the driver says spills */
snt_result tool_write_page(tool_session *, const char *path); /* explain --html */
snt_result tool_need_graph(tool_session *);                   /* an error for a saved program */
bool tool_is_onnx(const char *path);
snt_result tool_load_onnx(tool_session *);                 /* of tool_load */
bool tool_dim_value(const tool_pair *dim, int64_t *out);   /* of --dim; false: no extent */
snt_result tool_settle_symbols(tool_session *);            /* of tool_compile */
snt_result tool_check_names(tool_session *);               /* of tool_compile: those of --input and --output are ports */
void tool_forget_data(void);                               /* that constants of a text came from */
snt_result tool_compile(tool_session *, uint32_t targets); /* and settles the symbols */
snt_result tool_compile_flags(tool_session *, uint32_t targets, uint32_t flags, snt_program **out);
snt_result tool_weights(tool_session *, uint32_t *out); /* --weights: SNT_WEIGHTS_* */
snt_result tool_numerics(tool_session *, uint32_t *out);
/* Builds the exec's kernels and makes its constants --jobs at a time, by default one a processor: on threads, and with processes where the
   driver builds one by one. `flags` are what its program was compiled with. */
snt_result tool_prepare(tool_session *, snt_exec *, uint32_t flags);
uint32_t tool_count_pipelines(const snt_exec *, uint32_t *cached); /* distinct kernels, and how many of them the cache had */
void tool_end_helpers(tool_session *);                             /* waits for them: they fill the cache */
snt_result tool_save_program(tool_session *, const char *path);
snt_result tool_save_pack(tool_session *, snt_program *const *, uint32_t count, const char *path);
bool tool_is_program_path(const char *path); /* ends in .sntp */
void tool_close(tool_session *);
int tool_fail(const tool_session *, snt_result); /* prints the diag; an exit code */
/* As strings to be freed (texts.c); null where it fails. */
snt_result tool_explain(const snt_program *, uint32_t format, char **out);
snt_result tool_graph_text(const snt_graph *, char **out);
snt_result tool_profile_text(const snt_profile *, char **out);
const char *tool_plural(uint32_t count); /* "" or "s" */

/* A tensor in host memory, by port. */
typedef struct tool_tensor {
  snt_port port;
  int64_t dims[SNT_MAX_RANK];
  uint64_t elements, bytes;
  void *data;
} tool_tensor;
snt_result tool_make_tensors(tool_session *, tool_tensor *tensors,
                             uint32_t *count); /* all ports, inputs filled from --input, else seeded random */
/* The steps that a run on buffers of the device takes, with the time of each, the least of --runs. UINT32_MAX: the whole graph, on the host device.
   Both arrays are the caller's to free, also after a failure. */
typedef struct tool_times {
  uint32_t count, *step;
  uint64_t *ns;
} tool_times;
snt_result tool_measure_steps(tool_session *, const tool_tensor *tensors, uint32_t count, tool_times *out);
void tool_free_times(tool_times *);
void tool_free_tensors(tool_tensor *, uint32_t count);
const char *tool_dtype_name(int32_t dtype);
/* Names for a message, as many as fit: "x, y". */
typedef struct tool_names {
  char text[160];
  size_t used;
} tool_names;
void tool_list_name(tool_names *, const char *);
snt_result tool_write_outputs(tool_session *, const tool_tensor *, uint32_t count);
void tool_print_outputs(const tool_tensor *, uint32_t count); /* a line each */
void tool_fill_random(tool_tensor *, uint64_t seed);          /* uniform in [-1, 1) for floats, small integers otherwise */

struct snt_onnx_image;
/* snt_onnx_info.decode_image, by libsinter-pictures, which is loaded at the first picture. */
snt_result SNT_CALL tool_decode_image(void *user, struct snt_onnx_image *);
bool npy_is_path(const char *path); /* ends in .npy, or in .pb: a TensorProto */
snt_result npy_read(const char *path, tool_tensor *, snt_diag *);
/* A file by its own header, or, if it is neither .npy nor .pb, as its bytes: u8[n]. `data` lies in `file`, which is to be freed. */
snt_result npy_open(const char *path, void **file, snt_tensor *type, const void **data, snt_diag *);
snt_result npy_write(const char *path, const tool_tensor *, snt_diag *);
/* "photo.png:nchw:0..1": layout nchw nhwc hw, range of the full scale; default by rank, 0..1 */
snt_result png_read(const char *spec, tool_tensor *, snt_diag *);
snt_result png_write(const char *spec, const tool_tensor *, snt_diag *);

/* Reference of the whole graph: max(error / bound) over all outputs. Needs inputs as they were before the run. */
snt_result tool_check(tool_session *, const tool_tensor *tensors, uint32_t count, double *ratio, char *where, size_t where_size);

typedef struct tool_command {
  const char *name, *usage, *help;
  int (*run)(const tool_options *);
  bool many;          /* paths, not one */
  const char *common; /* options that it takes beside those of its usage, as other commands do; NULL: none */
} tool_command;
bool tool_parse(tool_options *, const tool_command *, int argc, char **argv);
int command_devices(const tool_options *);
int command_run(const tool_options *);
int command_explain(const tool_options *);
int command_compile(const tool_options *);
int command_opt(const tool_options *);
int command_bench(const tool_options *);
int command_build(const tool_options *);
int command_onnx_test(const tool_options *);
int command_import(const tool_options *);
int command_inspect(const tool_options *);
int command_inspect_kernel(const tool_options *);
int command_pack(const tool_options *);
int command_calibrate(const tool_options *);
#endif
