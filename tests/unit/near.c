/* Runs on the thread that submits them (api/exec_near.c): which programs are, that they and those of the device's threads follow each other
   in a stream, whoever waits, and that streams of two threads do not disturb each other. Run from the project's root. */
#include "tests/tap.h"
#include "tests/unit/api_support.h"
#include "tools/host/host.h"
#include "api/exec.h"
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { ROWS = 64, COLUMNS = 16384, ROUNDS = 60, LAYERS = 12 };

static const char
    far_text[] = "graph @far(%x: f32[64], %z: f32[64,16384]) {\n"
                 "  %s = reduce.sum %z, axes=[1]\n  %m = mul %s, 0.0001\n  %h = mul %x, 0.5\n  %y = add %m, %h\n  return y=%y\n}\n",
    near_text[] = "graph @near(%y: f32[64]) {\n  %a = sin %y\n  %x = add %a, 1.0\n  return x=%x\n}\n",
    open_text[] = "symbols { n: min=1 max=1000000 hint=1 }\ngraph @open(%y: f32[n]) {\n  %x = sin %y\n  return x=%x\n}\n",
    one_text[] = "graph @one(%x: f32[384], %w: f32[384,384]) {\n  %p = contract %w, %x, lhs=[0,1], rhs=[1], out=[0]\n  %y = tanh %p\n  "
                 "return y=%y\n}\n",
    trips_text[] = "graph @trips(%x: f32[384], %w: f32[384,384]) {\n  %r = repeat trips=2000 (%c: f32[384] = %x) {\n"
                   "    %p = contract %w, %c, lhs=[0,1], rhs=[1], out=[0]\n    %q = tanh %p\n    yield %q\n  }\n  return y=%r\n}\n",
    twice_text[] = "graph @twice(%x: f32[64,16384]) {\n  %y = sin %x\n  return y=%y\n}\n";

typedef struct made {
  snt_program *program;
  snt_exec *exec;
} made;

static bool make(snt_context *context, snt_device *device, const char *text, uint32_t flags, made *out) {
  const snt_exec_info info = {.head = SNT_HEAD(exec_info), .flags = flags};
  out->program = api_compile_text(context, device, text, NULL);
  return out->program && snt_exec_create(device, out->program, &info, &out->exec, NULL) == SNT_OK &&
         snt_exec_prepare(out->exec, NULL) == SNT_OK;
}

static void drop(made *m) {
  snt_exec_destroy(m->exec);
  snt_program_destroy(m->program);
}

typedef struct turns {
  snt_device *device;
  made far, near;
  bool waits; /* behind each run */
  float x[ROWS];
} turns;

static snt_result submit(const made *m, snt_stream *stream, snt_buffer *const *buffers) {
  snt_argument arguments[3];
  const uint32_t count = snt_program_port_count(m->program);
  for (uint32_t i = 0; i < count; i++) arguments[i] = (snt_argument){.port = i, .buffer = buffers[i]};
  const snt_run_info info = {.head = SNT_HEAD(run_info), .argument_count = count, .arguments = arguments};
  return snt_submit(m->exec, stream, &info, NULL, NULL);
}

/* x = sin(sum(z) / 10000 + x / 2) + 1, again and again: what either program gives the other one reads. */
static snt_result take_turns(turns *t, snt_stream *stream, snt_buffer *x, snt_buffer *y, snt_buffer *z) {
  static float zeros[ROWS], many[ROWS * COLUMNS];
  for (uint32_t i = 0; i < ROWS * COLUMNS; i++) many[i] = (float)(i % 1013) / 1013 - 0.4f;
  snt_buffer *const far[] = {x, z, y}, *const near[] = {y, x};
  snt_result r = snt_buffer_upload(stream, x, 0, zeros, sizeof zeros, NULL);
  if (r == SNT_OK) r = snt_buffer_upload(stream, z, 0, many, sizeof many, NULL);
  for (uint32_t i = 0; r == SNT_OK && i < ROUNDS; i++) {
    r = submit(&t->far, stream, far);
    if (r == SNT_OK && t->waits) r = snt_stream_wait(stream, NULL);
    if (r == SNT_OK) r = submit(&t->near, stream, near);
    if (r == SNT_OK && t->waits) r = snt_stream_wait(stream, NULL);
  }
  return r == SNT_OK ? snt_buffer_download(stream, x, 0, t->x, sizeof t->x, NULL) : r;
}

static snt_result run_turns(turns *t) {
  snt_stream *stream = NULL;
  snt_buffer *x = NULL, *y = NULL, *z = NULL;
  snt_result r = snt_stream_create(t->device, &stream, NULL);
  if (r == SNT_OK) r = snt_buffer_create(t->device, sizeof t->x, &x, NULL);
  if (r == SNT_OK) r = snt_buffer_create(t->device, sizeof t->x, &y, NULL);
  if (r == SNT_OK) r = snt_buffer_create(t->device, sizeof(float) * ROWS * COLUMNS, &z, NULL);
  if (r == SNT_OK) r = take_turns(t, stream, x, y, z);
  snt_buffer_destroy(x), snt_buffer_destroy(y), snt_buffer_destroy(z);
  snt_stream_destroy(stream);
  return r;
}

static void *run_beside(void *user) { return (void *)(intptr_t)run_turns(user); }

static void check_turns(turns *t, snt_context *context) {
  turns waiting = *t, beside = *t;
  pthread_t thread;
  void *there = (void *)1;
  beside.far.exec = beside.near.exec = NULL;
  waiting.waits = true;
  tap_ok(run_turns(t) == SNT_OK && run_turns(&waiting) == SNT_OK && !memcmp(t->x, waiting.x, sizeof t->x),
         "%d turns of both without a wait between: the bits of waiting for each", ROUNDS);
  const bool began = make(context, t->device, far_text, 0, &beside.far) && make(context, t->device, near_text, 0, &beside.near) &&
                     !pthread_create(&thread, NULL, run_beside, &beside);
  const bool here = run_turns(t) == SNT_OK;
  if (began) pthread_join(thread, &there);
  tap_ok(here && !there && !memcmp(t->x, waiting.x, sizeof t->x) && !memcmp(beside.x, waiting.x, sizeof t->x),
         "and on two threads, each with a stream and execs of its own");
  drop(&beside.far), drop(&beside.near);
}

/* What units save beside each other is weighed against one of them, which has a price for each step, too. */
static void check_steps(snt_device *device, const made *trips) {
  const double given = device->profile.near_ns, saved = exec_saved_by_units(trips->exec);
  device->profile.near_ns = given + 1;
  const double more = exec_saved_by_units(trips->exec) - saved;
  device->profile.near_ns = given;
  tap_ok(given > 0 && more > 1999.5, "each of 2000 steps takes the submitting thread something");
}

/* Products after each other, whose weights are 3 MB together: each alone fits a near cache, all do not stay there from run to run. */
static void check_layers(snt_context *context, snt_device *device) {
  made m = {NULL, NULL};
  char text[LAYERS * 160 + 80];
  size_t at = (size_t)snprintf(text, sizeof text, "graph @layers(%%q0: f32[1,256]) {\n");
  for (int i = 0; i < LAYERS; i++)
    at += (size_t)snprintf(text + at, sizeof text - at,
                           "  %%w%d: f32[256,256] = const normal seed=%d scale=0.05\n  %%p%d = matmul %%q%d, %%w%d\n  %%q%d = tanh %%p%d\n",
                           i, i, i, i, i, i + 1, i);
  (void)snprintf(text + at, sizeof text - at, "  return y=%%q%d\n}\n", LAYERS);
  tap_ok(make(context, device, text, 0, &m) && !m.exec->near, "nor are %d products whose weights no near cache keeps", LAYERS);
  drop(&m);
}

static void check_device(snt_context *context, snt_device *device) {
  turns t = {.device = device};
  made apart = {NULL, NULL}, twice = {NULL, NULL}, open = {NULL, NULL}, one = {NULL, NULL}, trips = {NULL, NULL};
  const bool good = make(context, device, far_text, 0, &t.far) && make(context, device, near_text, 0, &t.near) &&
                    make(context, device, near_text, SNT_EXEC_APART, &apart) && make(context, device, twice_text, 0, &twice) &&
                    make(context, device, open_text, 0, &open) && make(context, device, one_text, 0, &one) &&
                    make(context, device, trips_text, 0, &trips);
  if (tap_ok(good, "seven programs")) {
    tap_ok(t.near.exec->near, "64 numbers are computed by the thread that submits them");
    tap_ok(!t.far.exec->near && !twice.exec->near, "a million by the device's");
    tap_ok(!apart.exec->near, "as is what has a launch a step, which is there to be timed");
    tap_ok(!open.exec->near, "and what may be more than its hint says");
    tap_ok(one.exec->near && !trips.exec->near, "a product of a row, and not 2000 of them after each other");
    check_steps(device, &trips);
    check_layers(context, device);
    check_turns(&t, context);
  }
  drop(&t.far), drop(&t.near), drop(&apart), drop(&twice), drop(&open), drop(&one), drop(&trips);
}

/* ---- driver binaries: those of the thread that submits are others than those of the device's ---- */

typedef struct entries {
  uint32_t count;
  struct {
    uint8_t key[32], data[1 << 18];
    size_t size;
  } at[8];
} entries;

static uint32_t find_entry(const entries *e, const uint8_t key[32]) {
  uint32_t i = 0;
  while (i < e->count && memcmp(e->at[i].key, key, 32)) i++;
  return i;
}

static snt_result SNT_CALL get_entry(void *user, const uint8_t key[32], void *to, size_t *size) {
  const entries *e = user;
  const uint32_t i = find_entry(e, key);
  if (i == e->count) return SNT_NOT_READY;
  const bool fits = to && *size >= e->at[i].size;
  if (fits) memcpy(to, e->at[i].data, e->at[i].size);
  *size = e->at[i].size;
  return fits || !to ? SNT_OK : SNT_INCOMPLETE; /* the size alone as of texts; the cache of api_modes.c answers as of blobs */
}

static void SNT_CALL set_entry(void *user, const uint8_t key[32], const void *from, size_t size) {
  entries *e = user;
  const uint32_t i = find_entry(e, key);
  if (i == 8 || size > sizeof e->at[i].data) return;
  memcpy(e->at[i].key, key, 32), memcpy(e->at[i].data, from, size);
  e->at[i].size = size;
  if (i == e->count) e->count++;
}

static bool makes_and_drops(snt_context *context, snt_device *device, uint32_t flags, bool *from_cache) {
  made m = {NULL, NULL};
  const bool good = make(context, device, near_text, flags, &m);
  *from_cache = good && m.exec->jobs[0].from_cache;
  drop(&m);
  return good;
}

static void check_binaries(void) {
  static entries cache;
  const snt_context_info info = {.head = SNT_HEAD(context_info), .abi_version = SNT_ABI_VERSION, .cache = {&cache, get_entry, set_entry}};
  const snt_open_info open = {.head = SNT_HEAD(open_info), .selector = "opencl:pocl"};
  snt_context *context = NULL;
  snt_device *device = NULL;
  bool far_taken = true, near_taken = true, again = false, opened = snt_context_create(&info, &context) == SNT_OK;
  opened = opened && snt_device_open(context, &open, &device, NULL) == SNT_OK;
  opened = opened && makes_and_drops(context, device, SNT_EXEC_APART, &far_taken);
  const uint32_t far_count = cache.count;
  opened = opened && makes_and_drops(context, device, 0, &near_taken);
  const uint32_t both = cache.count;
  opened = opened && makes_and_drops(context, device, 0, &again);
  tap_ok(opened && far_count == 1 && both == 2 && !far_taken && !near_taken && again,
         "a binary for the device's threads is not taken for who submits, one for who submits is (%u, %u entries)", far_count, both);
  snt_device_destroy(device);
  snt_context_destroy(context);
}

int main(void) {
  api_memory memory = {0};
  host_prepare_drivers(NULL);
  snt_context *context = api_context(&memory);
  const snt_open_info open = {.head = SNT_HEAD(open_info), .selector = "opencl:pocl"};
  snt_device *device = NULL;
  if (snt_device_open(context, &open, &device, NULL) != SNT_OK || !device->rt->near) tap_skip("no PoCL that lists `basic` is here");
  else check_device(context, device), check_binaries();
  snt_device_destroy(device);
  snt_context_destroy(context);
  tap_is_int(atomic_load(&memory.live), 0, "no memory is left");
  return tap_done();
}
