/* What a driver says after building is heard: a fake one, whose kernels spill when they are long, has its kernels split until none does; the decisions name
   the contracts. Kernels that say nothing are left alone. */
#include "tests/tap.h"
#include <sinter/backend.h>
#include <sinter/sinter.h>
#include <stdlib.h>
#include <string.h>

typedef struct fake_driver {
  size_t longest; /* text of a kernel beyond which it spills */
  uint32_t says;  /* bytes of those that spill; UINT32_MAX: it says nothing of any */
} fake_driver;
typedef struct fake_kernel {
  const fake_driver *driver;
  size_t size;
} fake_kernel;

static snt_result SNT_CALL fake_open(void *user, const char *which, void **out, snt_diag *diag) {
  (void)which, (void)diag;
  *out = user;
  return SNT_OK;
}
static void SNT_CALL fake_close(void *device) { (void)device; }
static snt_result SNT_CALL fake_create(void *device, const snt_backend_code *code, void **out, snt_diag *diag) {
  fake_kernel *k = malloc(sizeof *k);
  (void)diag;
  if (!k) return SNT_E_HOST_MEM;
  *k = (fake_kernel){device, code->size};
  *out = k;
  return SNT_OK;
}
static void SNT_CALL fake_destroy(void *device, void *pipeline) {
  (void)device;
  free(pipeline);
}
static snt_result SNT_CALL fake_run(void *device, void *pipeline, const snt_backend_launch *launch, uint64_t *ns, snt_diag *diag) {
  (void)device, (void)pipeline, (void)launch, (void)ns, (void)diag;
  return SNT_OK;
}
static void SNT_CALL fake_report(void *device, void *pipeline, uint32_t *private_bytes, uint32_t *registers) {
  const fake_kernel *k = pipeline;
  const fake_driver *d = device;
  *private_bytes = d->says == UINT32_MAX ? UINT32_MAX : k->size > d->longest ? d->says : 0;
  *registers = 32;
}

/* A node that is dead comes before all others; %a is read until %e, behind which the chain is thinnest. */
static const char model[] =
    "graph @chain(%x: f32[4096], %y: f32[4096]) {\n"
    "  %unused = sqrt %y\n  %a = mul %x, %y\n  %b = add %a, %y\n  %c = max %b, %x\n  %d = sub %c, %y\n  %e = mul %d, %a\n"
    "  %f = add %e, %y\n  %g = min %f, %x\n  %h = mul %g, %y\n  %i = sub %h, %x\n  %j = max %i, %y\n  return z=%j\n}\n";

typedef struct built {
  snt_program *program;
  snt_exec *exec;
} built;

static bool build(snt_device *device, snt_profile *profile, snt_graph *g, built *out) {
  snt_diag diag = {0};
  const snt_compile_info info = {.head = SNT_HEAD(compile_info)};
  *out = (built){0};
  snt_result r = snt_compile(g, profile, &info, &out->program, &diag);
  const snt_exec_info reported = {.head = SNT_HEAD(exec_info), .flags = SNT_EXEC_REPORT};
  if (r == SNT_OK) r = snt_exec_create(device, out->program, &reported, &out->exec, &diag);
  snt_report report;
  if (r == SNT_OK) tap_is_int(snt_exec_report(out->exec, 0, &report), SNT_NOT_READY, "nothing is said of what is not built");
  if (r == SNT_OK) r = snt_exec_prepare(out->exec, &diag);
  return tap_is_int(r, SNT_OK, "compiled and built %s", diag.text);
}
static void drop(built *b) {
  snt_exec_destroy(b->exec);
  snt_program_destroy(b->program);
}

static uint32_t spilling(const snt_exec *x) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < snt_exec_job_count(x); i++) {
    snt_report said;
    count += snt_exec_report(x, i, &said) == SNT_OK && said.spilled != UINT32_MAX && said.spilled > 64;
  }
  return count;
}

static size_t longest_code(const snt_program *p) {
  size_t most = 0;
  for (uint32_t i = 0; i < snt_program_kernel_count(p); i++) {
    snt_kernel k = {.head = {SNT_TYPE_kernel, sizeof k, NULL}};
    if (snt_program_kernel(p, i, SNT_TARGET_OPENCL, &k) == SNT_OK && k.code_size > most) most = k.code_size;
  }
  return most;
}

static void test_split(snt_device *device, snt_profile *profile, snt_graph *g, fake_driver *driver) {
  built first, last;
  uint32_t splits = 7, rounds = 0;
  if (!build(device, profile, g, &first)) return;
  const uint32_t kernels = snt_exec_step_count(first.exec);
  tap_is_int(kernels, 1, "one kernel before anything is known");
  tap_is_int(spilling(first.exec), 0, "nothing spills");
  tap_is_int(snt_graph_learn(g, first.exec, 64, &splits, NULL), SNT_OK, "learnt");
  tap_is_int(splits, 0, "what does not spill is not split");
  driver->longest = longest_code(first.program) * 2 / 3;
  tap_is_int(spilling(first.exec), 1, "the driver says that it spills");
  last = first;
  for (; spilling(last.exec) && rounds < 8; rounds++) {
    snt_diag diag = {0};
    tap_is_int(snt_graph_learn(g, last.exec, 64, &splits, &diag), SNT_OK, "learnt %s", diag.text);
    if (!tap_ok(splits > 0, "%u kernels are split", splits)) break;
    drop(&last);
    if (!build(device, profile, g, &last)) return;
  }
  tap_is_int(spilling(last.exec), 0, "after %u rounds nothing spills", rounds);
  tap_ok(snt_exec_step_count(last.exec) > kernels, "in %u kernels", snt_exec_step_count(last.exec));
  size_t length = 0;
  (void)snt_program_explain(last.program, SNT_EXPLAIN_TEXT, NULL, &length);
  char *text = malloc(length + 1);
  tap_ok(text && snt_program_explain(last.program, SNT_EXPLAIN_TEXT, text, &length) == SNT_OK && strstr(text, "never_fuse"),
         "and a decision says why");
  tap_ok(text && strstr(text, "e -> f: never_fuse"), "where the chain is thinnest");
  free(text);
  driver->says = UINT32_MAX, driver->longest = 0;
  tap_is_int(snt_graph_learn(g, last.exec, 64, &splits, NULL), SNT_OK, "a driver that says nothing");
  tap_is_int(splits, 0, "changes nothing");
  drop(&last);
}

int main(void) {
  fake_driver driver = {.longest = SIZE_MAX, .says = 1 << 20};
  const snt_context_info info = {.head = SNT_HEAD(context_info), .abi_version = SNT_ABI_VERSION};
  const snt_backend backend = {.head = SNT_HEAD(backend),
                               .user = &driver,
                               .name = "fake",
                               .target = SNT_TARGET_OPENCL,
                               .device_count = 1,
                               .profile = "base = pocl\nname = fake\n",
                               .open = fake_open,
                               .close = fake_close,
                               .pipeline_create = fake_create,
                               .pipeline_destroy = fake_destroy,
                               .pipeline_report = fake_report,
                               .run = fake_run};
  const snt_open_info open = {.head = SNT_HEAD(open_info), .selector = "fake"};
  snt_context *context = NULL;
  snt_device *device = NULL;
  snt_profile *profile = NULL;
  snt_graph *g = NULL;
  snt_diag diag = {0};
  snt_result r = snt_context_create(&info, &context);
  if (r == SNT_OK) r = snt_context_add_backend(context, &backend);
  if (r == SNT_OK) r = snt_device_open(context, &open, &device, &diag);
  if (r == SNT_OK) r = snt_device_profile(device, &profile);
  if (r == SNT_OK) r = snt_graph_create(context, &g);
  if (r == SNT_OK) r = snt_graph_parse(g, model, sizeof model - 1, NULL, &diag);
  if (tap_is_int(r, SNT_OK, "a fake device %s", diag.text)) test_split(device, profile, g, &driver);
  snt_graph_destroy(g);
  snt_profile_destroy(profile);
  snt_device_destroy(device);
  snt_context_destroy(context);
  return tap_done();
}
