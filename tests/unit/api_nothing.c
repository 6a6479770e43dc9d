/* Calls of the API that are given nothing where something is needed, places for no result, structs of another kind and numbers that are out of range: each
   answers with its error, makes nothing and leaves what it was given as it was. */
#include "tests/tap.h"
#include <sinter/backend.h>
#include <sinter/sinter.h>

typedef struct objects {
  snt_context *context;
  snt_graph *graph;
  snt_profile *profile;
  snt_program *program;
  snt_device *device;
  snt_buffer *buffer;
  snt_stream *stream;
  snt_exec *exec;
} objects;
static snt_diag diag;

static const char text[] = "symbols { n: min=1 max=64 multiple_of=1 hint=8 }\n"
                           "graph @nothing(%x: f32[n], state %s: f32[n]) {\n"
                           "  %next = add %s, %x\n"
                           "  update %s, %next\n"
                           "  return y=%next\n"
                           "}\n";

static snt_result make(objects *o) {
  static const snt_open_info open = {.head = SNT_HEAD(open_info), .selector = "interp"};
  snt_result r = snt_context_create(NULL, &o->context);
  if (r == SNT_OK) r = snt_graph_create(o->context, &o->graph);
  if (r == SNT_OK) r = snt_graph_parse(o->graph, text, strlen(text), NULL, &diag);
  if (r == SNT_OK) r = snt_device_open(o->context, &open, &o->device, &diag);
  if (r == SNT_OK) r = snt_device_profile(o->device, &o->profile);
  if (r == SNT_OK) r = snt_compile(o->graph, o->profile, NULL, &o->program, &diag);
  if (r == SNT_OK) r = snt_buffer_create(o->device, 1024, &o->buffer, &diag);
  if (r == SNT_OK) r = snt_stream_create(o->device, &o->stream, &diag);
  return r == SNT_OK ? snt_exec_create(o->device, o->program, NULL, &o->exec, &diag) : r;
}

#define IS(expected, call)                                                       \
  do {                                                                           \
    const snt_result r_ = (call);                                                \
    tap_result(r_ == SNT_E_##expected, __FILE__, __LINE__, "%s: %d", #call, r_); \
  } while (0)

static void SNT_CALL let_go(void *user, void *p, size_t size, size_t align) { (void)user, (void)p, (void)size, (void)align; }

static void test_contexts(const objects *o) {
  static const snt_context_info half = {.head = SNT_HEAD(context_info), .alloc = {NULL, NULL, let_go}};
  static const snt_context_info newer = {.head = SNT_HEAD(context_info), .abi_version = SNT_ABI_VERSION + 1};
  static const snt_context_info foreign = {.head = SNT_HEAD(open_info)};
  static const snt_backend nameless = {.head = SNT_HEAD(backend)};
  snt_context *c = NULL;
  IS(ARG, snt_context_create(NULL, NULL));
  IS(ARG, snt_context_create(&half, &c));
  IS(UNSUPPORTED, snt_context_create(&newer, &c));
  IS(STRUCT, snt_context_create(&foreign, &c));
  IS(ARG, snt_context_add_backend(NULL, &nameless));
  IS(ARG, snt_context_add_backend(o->context, NULL));
  IS(ARG, snt_context_add_backend(o->context, &nameless));
  tap_result(!c, __FILE__, __LINE__, "and no context is made");
}

static void test_graphs(const objects *o) {
  static const snt_value value = 1;
  snt_graph *g = NULL, *empty = NULL;
  size_t length = 0;
  uint32_t splits;
  IS(ARG, snt_graph_create(NULL, &g));
  IS(ARG, snt_graph_create(o->context, NULL));
  (void)snt_graph_create(o->context, &empty);
  IS(ARG, snt_graph_parse(NULL, text, strlen(text), NULL, &diag));
  IS(ARG, snt_graph_parse(empty, NULL, 4, NULL, &diag));
  IS(ARG, snt_graph_define(NULL, text, strlen(text), &diag));
  IS(ARG, snt_graph_define(empty, NULL, 4, &diag));
  IS(ARG, snt_graph_contract(NULL, SNT_KEEP, &value, 1));
  IS(ARG, snt_graph_contract(o->graph, SNT_KEEP, NULL, 1));
  IS(ARG, snt_graph_contract(o->graph, 99, &value, 1));
  IS(ARG, snt_graph_print(NULL, NULL, &length));
  IS(ARG, snt_graph_print(o->graph, NULL, NULL));
  IS(ARG, snt_graph_verify(NULL, &diag));
  IS(ARG, snt_graph_learn(NULL, o->exec, 0, &splits, &diag));
  IS(ARG, snt_graph_learn(o->graph, NULL, 0, &splits, &diag));
  tap_is_int((long long)snt_graph_find(NULL, "y"), 0, "no graph has no value");
  tap_is_int((long long)snt_graph_find(o->graph, NULL), 0, "nothing has no name");
  snt_graph_destroy(empty);
  snt_graph_destroy(NULL);
  tap_result(!g, __FILE__, __LINE__, "and no graph is made");
}

/* The first mistake sticks: each in a graph of its own, reported by the call that can fail. */
static void mistaken(const objects *o, void (*mistake)(snt_graph *), const char *what, const char *says) {
  snt_graph *g = NULL;
  if (snt_graph_create(o->context, &g) != SNT_OK) return;
  mistake(g);
  const snt_result r = snt_graph_verify(g, &diag);
  tap_result(r < 0 && strstr(diag.text, says), __FILE__, __LINE__, "%s: %d, %s", what, r, diag.text);
  snt_graph_destroy(g);
}
static const snt_tensor vector = {SNT_F32, 1, {4}};
static void two_symbols(snt_graph *g) {
  const snt_symbol n = {.name = "n", .min = 1, .max = 4, .multiple_of = 1, .hint = 2};
  (void)snt_graph_symbol(g, &n), (void)snt_graph_symbol(g, &n);
}
static void nameless_symbol(snt_graph *g) { (void)snt_graph_symbol(g, &(snt_symbol){.min = 1, .max = 4}); }
static void odd_symbol(snt_graph *g) { (void)snt_graph_symbol(g, &(snt_symbol){.name = "1 n", .min = 1, .max = 4}); }
static void empty_symbol(snt_graph *g) { (void)snt_graph_symbol(g, &(snt_symbol){.name = "n", .min = 5, .max = 4}); }
static void open_constant(snt_graph *g) {
  (void)snt_graph_symbol(g, &(snt_symbol){.name = "n", .min = 1, .max = 4, .multiple_of = 1, .hint = 2});
  (void)snt_graph_constant(g, &(snt_tensor){SNT_F32, 1, {-1}}, "data");
}
static void no_symbol(snt_graph *g) { (void)snt_graph_symbol(g, NULL); }
static void nameless_input(snt_graph *g) { (void)snt_graph_input(g, NULL, &vector); }
static void typeless_input(snt_graph *g) { (void)snt_graph_input(g, "x", NULL); }
static void unknown_input(snt_graph *g) { (void)snt_graph_input(g, "x", &(snt_tensor){99, 1, {4}}); }
static void ranks_input(snt_graph *g) { (void)snt_graph_input(g, "x", &(snt_tensor){SNT_F32, 9, {4}}); }
static void nameless_state(snt_graph *g) { (void)snt_graph_state(g, NULL, &vector); }
static void no_data(snt_graph *g) { (void)snt_graph_constant(g, &vector, NULL); }
static void typeless_constant(snt_graph *g) { (void)snt_graph_constant(g, NULL, "data"); }
static void unknown_scalar(snt_graph *g) { (void)snt_graph_scalar(g, 99, 1); }
static void nameless_op(snt_graph *g) { (void)snt_graph_op(g, NULL, NULL, 0, NULL); }
static void no_operands(snt_graph *g) { (void)snt_graph_op(g, "add", NULL, 2, NULL); }
static void unknown_op(snt_graph *g) {
  const snt_value x = snt_graph_input(g, "x", &vector);
  (void)snt_graph_op(g, "nothing", &x, 1, NULL);
}
static void foreign_operand(snt_graph *g) { (void)snt_graph_op(g, "abs", &(snt_value){99}, 1, NULL); }
static void foreign_value(snt_graph *g) { snt_graph_output(g, "y", 99); }
static void nameless_output(snt_graph *g) { snt_graph_output(g, NULL, snt_graph_input(g, "x", &vector)); }
static void no_state(snt_graph *g) {
  const snt_value x = snt_graph_input(g, "x", &vector);
  snt_graph_update(g, x, x);
}
static void no_update(snt_graph *g) { snt_graph_update(g, snt_graph_state(g, "s", &vector), 99); }
static void no_updated(snt_graph *g) { snt_graph_update(g, 99, snt_graph_input(g, "x", &vector)); }
static void valueless_name(snt_graph *g) { snt_graph_name(g, 99, "x"); }
static void nameless_name(snt_graph *g) { snt_graph_name(g, snt_graph_input(g, "x", &vector), NULL); }

static void test_mistakes(const objects *o) {
  static const struct {
    const char *what, *says;
    void (*mistake)(snt_graph *);
  } rows[] = {
      {"two symbols of a name", "two symbols of one name", two_symbols},
      {"no symbol", "a symbol needs a name", no_symbol},
      {"a symbol without a name", "a symbol needs a name", nameless_symbol},
      {"a symbol of no name", "a letter or _", odd_symbol},
      {"a symbol of no range", "0 <= min <= max", empty_symbol},
      {"an input without a name", "an input needs a name", nameless_input},
      {"an input without a type", "an input needs a name", typeless_input},
      {"an input of an unknown type", "known element type", unknown_input},
      {"an input of rank 9", "rank <= 8", ranks_input},
      {"a state without a name", "needs a name", nameless_state},
      {"a constant without data", "a constant needs data and a type", no_data},
      {"a constant without a type", "a constant needs data and a type", typeless_constant},
      {"a constant of open extents", "a constant has literal extents", open_constant},
      {"a scalar of an unknown type", "a scalar of an unknown element type", unknown_scalar},
      {"an operator without a name", "an operator needs a name and its operands", nameless_op},
      {"an operator without its operands", "an operator needs a name and its operands", no_operands},
      {"an unknown operator", "nothing", unknown_op},
      {"an operand of no graph", "an operand is no value of this graph", foreign_operand},
      {"an output of no value", "an output needs a name and a value", foreign_value},
      {"an output without a name", "an output needs a name and a value", nameless_output},
      {"an update of no state", "is no state", no_state},
      {"an update by no value", "update of no value", no_update},
      {"an update of no value", "update of no value", no_updated},
      {"a value's name that is none", "a name for no value", nameless_name},
      {"a name of no value", "a name for no value", valueless_name},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) mistaken(o, rows[i].mistake, rows[i].what, rows[i].says);
  tap_result(snt_graph_symbol(NULL, NULL) == UINT32_MAX && !snt_graph_input(NULL, "x", &vector) && !snt_graph_state(NULL, "x", &vector) &&
                 !snt_graph_constant(NULL, &vector, "data") && !snt_graph_scalar(NULL, SNT_F32, 1) &&
                 !snt_graph_op(NULL, "add", NULL, 0, NULL),
             __FILE__, __LINE__, "no graph takes nothing");
  snt_graph_update(NULL, 1, 1), snt_graph_name(NULL, 1, "x"), snt_graph_output(NULL, "y", 1);
}

static void test_profiles(const objects *o) {
  snt_profile *p = NULL;
  size_t length = 0;
  IS(ARG, snt_profile_builtin(NULL, "pocl", &p));
  IS(ARG, snt_profile_builtin(o->context, NULL, &p));
  IS(ARG, snt_profile_builtin(o->context, "pocl", NULL));
  IS(UNSUPPORTED, snt_profile_builtin(o->context, "nothing", &p));
  IS(ARG, snt_profile_parse(NULL, "", 0, &p, &diag));
  IS(ARG, snt_profile_parse(o->context, NULL, 4, &p, &diag));
  IS(ARG, snt_profile_parse(o->context, "", 0, NULL, &diag));
  IS(ARG, snt_profile_mask(NULL, "bindings=4", &p, &diag));
  IS(ARG, snt_profile_mask(o->profile, "bindings=4", NULL, &diag));
  IS(ARG, snt_profile_print(NULL, NULL, &length));
  IS(ARG, snt_profile_print(o->profile, NULL, NULL));
  snt_profile_destroy(NULL);
  tap_result(!p, __FILE__, __LINE__, "and no profile is made");
}

static void test_programs(const objects *o) {
  static const snt_compile_info foreign = {.head = SNT_HEAD(open_info)};
  static const snt_compile_info images = {.head = SNT_HEAD(compile_info), .image_count = 1};
  const snt_program *const none[] = {NULL};
  snt_program *p = NULL;
  const void *variant;
  size_t size = 0;
  IS(ARG, snt_compile(NULL, o->profile, NULL, &p, &diag));
  IS(ARG, snt_compile(o->graph, NULL, NULL, &p, &diag));
  IS(ARG, snt_compile(o->graph, o->profile, NULL, NULL, &diag));
  IS(STRUCT, snt_compile(o->graph, o->profile, &foreign, &p, &diag));
  IS(ARG, snt_compile(o->graph, o->profile, &images, &p, &diag));
  IS(ARG, snt_program_save(NULL, NULL, &size));
  IS(ARG, snt_program_save(o->program, NULL, NULL));
  IS(ARG, snt_program_load(NULL, text, sizeof text, &p, &diag));
  IS(ARG, snt_program_load(o->context, NULL, 4, &p, &diag));
  IS(ARG, snt_program_load(o->context, text, sizeof text, NULL, &diag));
  IS(ARG, snt_program_load_best(NULL, text, sizeof text, &p, &diag));
  IS(ARG, snt_program_load_best(o->device, NULL, 4, &p, &diag));
  IS(ARG, snt_program_load_best(o->device, text, sizeof text, NULL, &diag));
  IS(ARG, snt_program_pack(NULL, 1, NULL, &size));
  IS(ARG, snt_program_pack(none, 1, NULL, &size));
  IS(ARG, snt_program_pack(none, 0, NULL, &size));
  IS(ARG, snt_program_pack((const snt_program *const *)&o->program, 1, NULL, NULL));
  IS(ARG, snt_pack_variant(NULL, 4, 0, &variant, &size));
  snt_program_destroy(NULL);
  tap_result(!p, __FILE__, __LINE__, "and no program is made");
}

static void test_parts_of_programs(const objects *o) {
  snt_decision decision = {.head = SNT_HEAD(decision)};
  snt_port port = {.head = SNT_HEAD(port)};
  snt_symbol symbol = {.name = NULL};
  snt_kernel kernel = {.head = SNT_HEAD(kernel)};
  const int64_t n = 8;
  int64_t dims[SNT_MAX_RANK];
  uint32_t number;
  size_t size = 0;
  IS(ARG, snt_program_explain(NULL, SNT_EXPLAIN_PLAN, NULL, &size));
  IS(ARG, snt_program_explain(o->program, SNT_EXPLAIN_PLAN, NULL, NULL));
  IS(ARG, snt_program_explain(o->program, 99, NULL, &size));
  IS(ARG, snt_program_decision(NULL, 0, &decision));
  IS(ARG, snt_program_decision(o->program, 999, &decision));
  IS(ARG, snt_program_decision_text(o->program, 999, NULL, &size));
  IS(ARG, snt_program_port(NULL, 0, &port));
  IS(ARG, snt_program_port(o->program, 0, NULL));
  IS(ARG, snt_program_port(o->program, 3, &port));
  IS(ARG, snt_program_find_port(NULL, "x", &number));
  IS(ARG, snt_program_find_port(o->program, NULL, &number));
  IS(ARG, snt_program_find_port(o->program, "x", NULL));
  IS(ARG, snt_program_find_port(o->program, "nothing", &number));
  IS(ARG, snt_program_symbol(NULL, 0, &symbol));
  IS(ARG, snt_program_symbol(o->program, 0, NULL));
  IS(ARG, snt_program_symbol(o->program, 1, &symbol));
  IS(ARG, snt_program_port_dims(NULL, 0, &n, dims));
  IS(ARG, snt_program_port_dims(o->program, 0, &n, NULL));
  IS(ARG, snt_program_port_dims(o->program, 0, NULL, dims));
  IS(ARG, snt_program_port_dims(o->program, 3, &n, dims));
  IS(ARG, snt_program_kernel(NULL, 0, SNT_TARGET_OPENCL, &kernel));
  IS(ARG, snt_program_kernel(o->program, 0, SNT_TARGET_OPENCL, NULL));
  IS(ARG, snt_program_kernel(o->program, 99, SNT_TARGET_OPENCL, &kernel));
  tap_result(!snt_program_port_count(NULL) && !snt_program_symbol_count(NULL) && !snt_program_kernel_count(NULL) &&
                 !snt_program_decision_count(NULL) && !snt_pack_count(NULL, 4) && !snt_pack_count(text, sizeof text),
             __FILE__, __LINE__, "no program has none of anything");
  (void)snt_program_profile(NULL);
}

static void test_devices(const objects *o) {
  static const snt_open_info foreign = {.head = SNT_HEAD(context_info)};
  static const snt_open_info masked = {.head = SNT_HEAD(open_info), .selector = "host", .mask = "nothing"};
  snt_device_info info = {.head = SNT_HEAD(device_info)};
  snt_device *d = NULL;
  snt_buffer *b = NULL;
  snt_stream *s = NULL;
  snt_profile *p = NULL;
  uint32_t count = 1;
  char bytes[16] = {0};
  IS(ARG, snt_device_list(NULL, &count, sizeof info, &info));
  IS(ARG, snt_device_list(o->context, NULL, sizeof info, &info));
  IS(ARG, snt_device_open(NULL, NULL, &d, &diag));
  IS(ARG, snt_device_open(o->context, NULL, NULL, &diag));
  IS(STRUCT, snt_device_open(o->context, &foreign, &d, &diag));
  IS(ARG, snt_device_open(o->context, &masked, &d, &diag));
  IS(ARG, snt_device_get_info(NULL, &info));
  IS(ARG, snt_device_get_info(o->device, NULL));
  IS(ARG, snt_device_profile(NULL, &p));
  IS(ARG, snt_device_profile(o->device, NULL));
  IS(ARG, snt_buffer_create(NULL, 16, &b, &diag));
  IS(ARG, snt_buffer_create(o->device, 16, NULL, &diag));
  IS(ARG, snt_stream_create(NULL, &s, &diag));
  IS(ARG, snt_stream_create(o->device, NULL, &diag));
  IS(ARG, snt_stream_wait(NULL, &diag));
  IS(ARG, snt_buffer_upload(NULL, o->buffer, 0, bytes, 16, &diag));
  IS(ARG, snt_buffer_upload(o->stream, NULL, 0, bytes, 16, &diag));
  IS(ARG, snt_buffer_upload(o->stream, o->buffer, 0, NULL, 16, &diag));
  IS(ARG, snt_buffer_upload(o->stream, o->buffer, 1016, bytes, 16, &diag));
  IS(ARG, snt_buffer_upload(o->stream, o->buffer, UINT64_MAX, bytes, 16, &diag));
  IS(ARG, snt_buffer_download(NULL, o->buffer, 0, bytes, 16, &diag));
  IS(ARG, snt_buffer_download(o->stream, NULL, 0, bytes, 16, &diag));
  IS(ARG, snt_buffer_download(o->stream, o->buffer, 0, NULL, 16, &diag));
  IS(ARG, snt_buffer_download(o->stream, o->buffer, 8, bytes, UINT64_MAX, &diag));
  snt_buffer_destroy(NULL), snt_stream_destroy(NULL), snt_device_destroy(NULL);
  tap_result(!d && !b && !s && !p, __FILE__, __LINE__, "and nothing is made");
}

static void test_execs(const objects *o) {
  static const snt_exec_info foreign = {.head = SNT_HEAD(open_info)};
  static const snt_exec_info flags = {.head = SNT_HEAD(exec_info), .flags = 1u << 30};
  static const snt_run_info run = {.head = SNT_HEAD(run_info)};
  snt_job job = {.head = SNT_HEAD(job)};
  snt_step step = {.head = SNT_HEAD(step)};
  snt_report report;
  snt_exec *x = NULL;
  snt_event *e = NULL;
  uint32_t count = 0;
  IS(ARG, snt_exec_create(NULL, o->program, NULL, &x, &diag));
  IS(ARG, snt_exec_create(o->device, NULL, NULL, &x, &diag));
  IS(ARG, snt_exec_create(o->device, o->program, NULL, NULL, &diag));
  IS(STRUCT, snt_exec_create(o->device, o->program, &foreign, &x, &diag));
  IS(ARG, snt_exec_create(o->device, o->program, &flags, &x, &diag));
  IS(ARG, snt_exec_job(NULL, 0, &job));
  IS(ARG, snt_exec_job(o->exec, 0, NULL));
  IS(ARG, snt_exec_job(o->exec, 99, &job));
  IS(ARG, snt_exec_run_job(NULL, 0, &diag));
  IS(ARG, snt_exec_run_job(o->exec, 99, &diag));
  IS(ARG, snt_exec_prepare(NULL, &diag));
  IS(ARG, snt_exec_report(NULL, 0, &report));
  IS(ARG, snt_exec_report(o->exec, 0, NULL));
  IS(ARG, snt_exec_report(o->exec, 99, &report));
  IS(ARG, snt_exec_step(NULL, 0, &step));
  IS(ARG, snt_exec_step(o->exec, 0, NULL));
  IS(ARG, snt_exec_step(o->exec, 99, &step));
  IS(ARG, snt_exec_steps_taken(NULL, &run, &count, NULL));
  IS(ARG, snt_exec_steps_taken(o->exec, NULL, &count, NULL));
  IS(ARG, snt_exec_steps_taken(o->exec, &run, NULL, NULL));
  IS(ARG, snt_run(NULL, &run, &diag));
  IS(ARG, snt_run(o->exec, NULL, &diag));
  IS(ARG, snt_submit(NULL, o->stream, &run, &e, &diag));
  IS(ARG, snt_submit(o->exec, NULL, &run, &e, &diag));
  IS(ARG, snt_submit(o->exec, o->stream, NULL, &e, &diag));
  IS(ARG, snt_exec_reset_states(NULL, &diag));
  IS(ARG, snt_event_wait(NULL, 0));
  IS(ARG, snt_event_timings(NULL, &count, NULL));
  tap_result(!snt_exec_job_count(NULL) && !snt_exec_step_count(NULL), __FILE__, __LINE__, "no exec has no jobs and no steps");
  snt_exec_destroy(NULL), snt_event_destroy(NULL), snt_context_destroy(NULL);
  tap_result(!x && !e, __FILE__, __LINE__, "and nothing is made");
}

int main(void) {
  objects o = {NULL};
  diag.head = (snt_out_head)SNT_HEAD(diag);
  const snt_result r = make(&o);
  if (tap_result(r == SNT_OK, __FILE__, __LINE__, "one of each: %s", r == SNT_OK ? "made" : diag.text)) {
    test_contexts(&o);
    test_graphs(&o);
    test_mistakes(&o);
    test_profiles(&o);
    test_programs(&o);
    test_parts_of_programs(&o);
    test_devices(&o);
    test_execs(&o);
  }
  snt_exec_destroy(o.exec);
  snt_stream_destroy(o.stream);
  snt_buffer_destroy(o.buffer);
  snt_program_destroy(o.program);
  snt_profile_destroy(o.profile);
  snt_device_destroy(o.device);
  snt_graph_destroy(o.graph);
  snt_context_destroy(o.context);
  return tap_done();
}
