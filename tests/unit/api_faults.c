/* Host memory that runs out at the n-th call, for every n of a whole life: text parsed, compiled, saved, loaded, made ready, run. Never a crash,
   never a byte kept, and the answer is SNT_E_HOST_MEM until nothing fails any more. */
#include "tests/tap.h"
#include "tests/unit/api_support.h"
#include "tools/host/host.h"

typedef struct life {
  api_memory *memory;
  snt_context *context;
  snt_device *device;
  snt_profile *profile;
  snt_graph *graph;
  snt_program *program, *loaded;
  snt_exec *exec;
  const char *stage;
} life;

static snt_result save_and_load(life *l, snt_diag *diag) {
  size_t size = 0;
  snt_result r = snt_program_save(l->program, NULL, &size);
  if (r != SNT_INCOMPLETE) return r;
  void *blob = malloc(size);
  r = snt_program_save(l->program, blob, &size);
  if (r == SNT_OK) r = snt_program_load(l->context, blob, size, &l->loaded, diag);
  free(blob);
  return r;
}

static snt_result run(life *l, const api_model *m, snt_diag *diag) {
  api_tensors tensors;
  snt_result r = api_make_tensors(l->loaded, m->sizes[0], 1, &tensors) ? SNT_OK : SNT_E_INTERNAL;
  if (r == SNT_OK) r = api_run_once(l->device, l->exec, &tensors, API_HOST_MEMORY, NULL, diag);
  if (r == SNT_OK) r = api_run_once(l->device, l->exec, &tensors, API_BUFFERS, NULL, diag);
  l->memory->fail_at = 0; /* the reference is the test's own */
  const double ratio = r == SNT_OK ? api_ratio(l->graph, m->sizes[0], &tensors) : 0;
  if (strcmp(m->name, "state") && !(ratio >= 0 && ratio <= 1)) r = SNT_E_INTERNAL; /* a failure on the way must not change results */
  api_free_tensors(&tensors);
  return r;
}

#define STAGE(name, call) (r == SNT_OK ? (l->stage = (name), r = (call)) : r)

static snt_result live(life *l, const api_model *m, const char *selector, snt_diag *diag) {
  snt_result r = SNT_OK;
  const snt_open_info open = {.head = SNT_HEAD(open_info), .selector = selector};
  STAGE("open", snt_device_open(l->context, &open, &l->device, diag));
  STAGE("profile", snt_device_profile(l->device, &l->profile));
  STAGE("graph", snt_graph_create(l->context, &l->graph));
  if (r == SNT_OK) m->build(l->graph);
  STAGE("verify", snt_graph_verify(l->graph, diag));
  STAGE("compile", snt_compile(l->graph, l->profile, NULL, &l->program, diag));
  STAGE("save", save_and_load(l, diag));
  STAGE("exec", snt_exec_create(l->device, l->loaded, NULL, &l->exec, diag));
  STAGE("prepare", snt_exec_prepare(l->exec, diag));
  STAGE("run", run(l, m, diag));
  return r;
}

static void end(life *l) {
  snt_exec_destroy(l->exec);
  snt_program_destroy(l->loaded);
  snt_program_destroy(l->program);
  snt_graph_destroy(l->graph);
  snt_profile_destroy(l->profile);
  snt_device_destroy(l->device);
  snt_context_destroy(l->context);
}

/* Each of the first `dense` calls, then further and further apart; in the end one life in which nothing fails. */
static void starve(const api_model *m, const char *selector, long long first, long long dense) {
  uint32_t tries = 0, odd = 0, leaks = 0;
  bool finished = false;
  for (long long n = first; !finished && n < 1000000; n += n <= dense ? 1 : n / 8 + 1) {
    api_memory memory = {0, 0, n};
    snt_diag diag = {.head = SNT_HEAD(diag)};
    life l = {.memory = &memory, .context = api_context(&memory)};
    const snt_result r = l.context ? live(&l, m, selector, &diag) : SNT_E_HOST_MEM;
    finished = dense == 0 || (r == SNT_OK && atomic_load(&memory.calls) < n);
    if (r != SNT_OK && r != SNT_E_HOST_MEM && r != SNT_E_DEVICE_MEM) {
      if (odd++ < 5) tap_diag("call %lld fails, in %s: result %d (%s), %s: %s", n, l.stage, r, snt_result_text(r), diag.stage, diag.text);
    }
    end(&l);
    if (atomic_load(&memory.live) != 0 && leaks++ < 5)
      tap_diag("call %lld fails, in %s: %lld bytes kept", n, l.stage, (long long)atomic_load(&memory.live));
    tries++;
  }
  tap_ok(finished, "%s on %s: %u failing calls tried, to the end", m->name, selector, tries);
  tap_is_int(odd, 0, "%s on %s: every failure is out of memory", m->name, selector);
  tap_is_int(leaks, 0, "%s on %s: nothing is kept", m->name, selector);
}

static bool is_here(const char *selector) {
  snt_context *c = NULL;
  snt_device *d = NULL;
  const snt_open_info open = {.head = SNT_HEAD(open_info), .selector = selector};
  if (snt_context_create(NULL, &c) != SNT_OK) return false;
  const bool found = snt_device_open(c, &open, &d, NULL) == SNT_OK;
  snt_device_destroy(d);
  snt_context_destroy(c);
  return found;
}

/* api_faults MODEL DEVICE N: from the N-th call on, to look at one failure. */
int main(int argc, char **argv) {
  host_prepare_drivers(NULL);
  tap_ok(is_here("host") && is_here("interp"), "there are host devices");
  if (argc == 4) {
    starve(api_model_named(argv[1]), argv[2], atoll(argv[3]), 0);
    return tap_done();
  }
  starve(api_model_named("softmax"), "host", 1, 150);
  for (uint32_t i = 0; i < api_model_count; i++) starve(&api_models[i], "interp", 1, i ? 60 : 300);
  if (is_here("opencl:pocl")) starve(api_model_named("layernorm"), "opencl:pocl", 1, 20);
  else tap_skip("no PoCL here");
  return tap_done();
}
