/* A plan of two branches, one of them for a single row (fusion/branch.c): a state lives on from run to run whichever branch each takes, two results that are
   one value where there is one row are both stored, and each run gives what the graph's evaluator gives. */
#include "tests/tap.h"
#include "tests/unit/api_support.h"

static const char text[] = "symbols { b: min=1 max=2 hint=1, s: min=1 max=64 hint=1 }\n"
                           "graph @branches(%x: f32[b,s,256], state %k: f32[64,1280]) {\n"
                           "  %w: u8[1280,8,16] = const uniform seed=9 scale=250\n"
                           "  %low = and %w, 15\n  %high = shr %w, 4\n"
                           "  %l = reshape %low, shape=[1280,8,16,1]\n  %h = reshape %high, shape=[1280,8,16,1]\n"
                           "  %both = concat %l, %h, axis=3\n  %f = cast %both, dtype=f32\n"
                           "  %e: f32[1280,8] = const uniform seed=2 scale=0.01\n"
                           "  %eb = broadcast %e, shape=[1280,8,16,2], axes=[0,1]\n  %d = mul %f, %eb\n"
                           "  %m = reshape %d, shape=[1280,256]\n"
                           "  %p = contract %x, %m, lhs=[0,1,2], out=[0,1,3], rhs=[3,2]\n  %t = tanh %p\n"
                           "  %a = reduce.sum %t, axes=[0,1]\n  %ab = broadcast %a, axes=[1], shape=[64,1280]\n"
                           "  %n = add %k, %ab\n  update %k, %n\n"
                           "  %z = reduce.max %n, axes=[0]\n  %last = slice %t, starts=[0,s-1,0], sizes=[b,1,1280]\n"
                           "  return y=%t, last=%last, z=%z\n}\n";
enum { RUNS = 6 };
static const int64_t sizes[RUNS][2] = {{1, 5}, {1, 1}, {1, 1}, {2, 1}, {1, 20}, {1, 1}};

typedef struct side {
  snt_device *device;
  snt_program *program;
  snt_exec *exec;
} side;

static snt_result set_up(snt_context *c, const char *selector, side *s, snt_diag *diag) {
  const snt_open_info open = {.head = SNT_HEAD(open_info), .selector = selector};
  *s = (side){0};
  const snt_result r = snt_device_open(c, &open, &s->device, diag);
  if (r != SNT_OK) return r;
  s->program = api_compile_text(c, s->device, text, diag);
  return s->program ? snt_exec_create(s->device, s->program, NULL, &s->exec, diag) : diag->result;
}

static void tear_down(side *s) {
  snt_exec_destroy(s->exec);
  snt_program_destroy(s->program);
  snt_device_destroy(s->device);
}

static bool near(const api_tensors *got, const api_tensors *want, const char **port) {
  for (uint32_t i = 0; i < want->count; i++) {
    const float *a = got->at[i].data, *b = want->at[i].data;
    for (uint64_t k = 0; want->at[i].port.kind == SNT_PORT_OUTPUT && k < want->at[i].bytes / 4; k++)
      if (!(fabsf(a[k] - b[k]) <= 1e-4f * (1 + fabsf(b[k])))) return *port = want->at[i].port.name, false;
  }
  return true;
}

static void run_once(side *own, side *other, const char *selector, uint32_t number, snt_diag *diag) {
  api_tensors got = {.symbols = sizes[number], .symbol_count = 2}, want = got;
  const char *port = "";
  bool good = api_make_tensors(own->program, sizes[number], number + 1, &got) &&
              api_make_tensors(other->program, sizes[number], number + 1, &want);
  good = good && api_run_once(own->device, own->exec, &got, API_HOST_MEMORY, NULL, diag) == SNT_OK;
  good = good && api_run_once(other->device, other->exec, &want, API_HOST_MEMORY, NULL, diag) == SNT_OK;
  tap_ok(good && near(&got, &want, &port), "%s: run %u, %lld of %lld rows %s", selector, number, (long long)sizes[number][0],
         (long long)sizes[number][1], port);
  api_free_tensors(&got);
  api_free_tensors(&want);
}

static void run_device(snt_context *c, const char *selector) {
  snt_diag diag = {.head = SNT_HEAD(diag)};
  side own = {0}, host = {0};
  const bool ready = set_up(c, "host", &host, &diag) == SNT_OK && set_up(c, selector, &own, &diag) == SNT_OK;
  if (tap_ok(ready, "%s: ready (%s)", selector, diag.text))
    for (uint32_t i = 0; i < RUNS; i++) run_once(&own, &host, selector, i, &diag);
  tear_down(&own);
  tear_down(&host);
}

int main(void) {
  static api_memory memory;
  api_devices devices;
  snt_context *c = api_context(&memory);
  tap_begin();
  api_find_devices(c, &devices);
  for (uint32_t i = 0; i < devices.count; i++)
    if (strcmp(devices.selector[i], "host") != 0) run_device(c, devices.selector[i]);
  snt_context_destroy(c);
  tap_is_int(memory.live, 0, "all memory is given back");
  return tap_done();
}
