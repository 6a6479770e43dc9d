/* Loops of kernels as one kernel (fusion/schedule/persistent.c): the bits of the same loop as launches, with even, odd, few and unknown
   numbers of trips, in each other, with pairs that turn and values in place; what is in the way is said. Where launches cost nothing a loop
   stays one, where they cost a lot it does not if it can. Run from the project's root; with the names of devices, on these alone. */
#include "tests/tap.h"
#include "tests/unit/api_support.h"
#include "tools/host/host.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_RUNS = 6, MAX_TEXT = 1 << 14 };
typedef struct loop_case {
  const char *name, *text, *obstacle; /* null: it becomes one kernel on every device */
  bool by_device;                     /* the obstacle is in the way where the device's schedules make it */
  uint32_t symbol_count, run_count;
  int64_t runs[MAX_RUNS][2];
} loop_case;

#define CELL "  %p = matmul %s, %w\n  %t = tanh %p\n  yield %t\n }\n return h=%h\n}\n"
#define WEIGHTS " %w: f32[24,24] = const normal seed=3 scale=0.3\n"
#define TRIPS "symbols { n: min=0 max=40 hint=9, m: min=1 max=40 hint=24 }\n"
// clang-format off
static const loop_case cases[] = {
    {"an even number of trips, and a pair", "graph @g(%x: f32[3,24]) {\n" WEIGHTS " %h: f32[3,24] = repeat trips=6 (%s: f32[3,24] = %x) {\n" CELL, NULL, false, 0, 1, {{0}}},
    {"an odd number of trips", "graph @g(%x: f32[3,24]) {\n" WEIGHTS " %h: f32[3,24] = repeat trips=7 (%s: f32[3,24] = %x) {\n" CELL, NULL, false, 0, 1, {{0}}},
    {"trips by a symbol", TRIPS "graph @g(%x: f32[3,24], %y: f32[m]) {\n" WEIGHTS " %h: f32[3,24] = repeat trips=n (%s: f32[3,24] = %x) {\n" CELL, NULL, false, 2, 6,
     {{9, 1}, {8, 1}, {0, 1}, {1, 1}, {2, 1}, {40, 1}}},
    {"what a trip takes and puts by its number",
     TRIPS "graph @g(%x: f32[n,24], %z: f32[m]) {\n" WEIGHTS " %h0: f32[1,24] = const 0.0\n %o: f32[n,24] = const 0.0\n %i0: i64[] = const 0\n"
     " %y: f32[n,24], %h: f32[1,24], _ = repeat trips=n (%a: f32[n,24] = %o, %s: f32[1,24] = %h0, %i: i64[] = %i0) {\n"
     "  %p = matmul %s, %w\n  %g = gather %x, %i, axis=0\n  %r: f32[1,24] = reshape %g\n  %q = add %p, %r\n  %t = sigmoid %q\n  %rs = mul %t, %s\n"
     "  %u = matmul %rs, %w\n  %v = add %u, %t\n  %e: f32[24] = reshape %v\n  %b = scatter.set %a, %i, %e, axis=0\n  %j = add %i, 1\n  yield %b, %v, %j\n }\n"
     " return y=%y, h=%h\n}\n", NULL, false, 2, 4, {{9, 3}, {1, 3}, {2, 3}, {33, 3}}},
    {"a loop in a loop, with pairs of their own",
     "graph @g(%x: f32[5,24]) {\n" WEIGHTS " %a: f32[5,24] = repeat trips=5 (%s: f32[5,24] = %x) {\n"
     "  %b: f32[5,24] = repeat trips=4 (%q: f32[5,24] = %s) {\n   %p = matmul %q, %w\n   %t = tanh %p\n   yield %t\n  }\n"
     "  %c = matmul %b, %w\n  %d = add %c, %s\n  %e = tanh %d\n  yield %e\n }\n return a=%a\n}\n", NULL, false, 0, 1, {{0}}},
    {"two values that change places, and sums of rows",
     TRIPS "graph @g(%x: f32[6,70], %z: f32[m]) {\n %b: f32[6,70], %d: f32[6,70] = repeat trips=n (%p: f32[6,70] = %x, %q: f32[6,70] = %x) {\n"
     "  %s = softmax %p, axis=1\n  %t = add %q, %s\n  yield %t, %p\n }\n %w = add %b, %d\n return w=%w\n}\n", NULL, false, 2, 5, {{9, 1}, {0, 1}, {1, 1}, {2, 1}, {7, 1}}},
    {"a state that trips begin with and leave",
     TRIPS "graph @g(%z: f32[m], state %total: f32[3,24]) {\n" WEIGHTS " %h: f32[3,24] = repeat trips=n (%s: f32[3,24] = %total) {\n  %p = matmul %s, %w\n"
     "  %t = tanh %p\n  %v = add %t, 0.125\n  yield %v\n }\n update %total, %h\n %y = mul %h, 2\n return y=%y\n}\n", NULL, false, 2, 4, {{5, 1}, {0, 1}, {4, 1}, {1, 1}}},
    {"integers and truth",
     "graph @g(%x: f32[40]) {\n %k: i32[40] = cast %x, dtype=i32\n %c0: bool[] = const true\n"
     " %h: i32[40], %c: bool[] = repeat trips=9 (%s: i32[40] = %k, %o: bool[] = %c0) {\n  %m = reduce.max %s, axes=[0]\n  %l = lt %m, 100:i32\n  %on = and %o, %l\n"
     "  %mb: i32[40] = broadcast %m\n  %u = add %s, %mb\n  %v = add %u, 3:i32\n  %t = select %on, %v, %s\n  yield %t, %on\n }\n return h=%h, c=%c\n}\n", NULL, false, 0, 1, {{0}}},
    {"an even number of trips at most, of which the data makes some",
     "graph @g(%x: f32[3,24]) {\n" WEIGHTS " %g0: bool[] = const true\n %c0: i32[] = const 0\n"
     " %h: f32[3,24], %g: bool[], %k: i32[] = repeat trips=40 while=1 (%s: f32[3,24] = %x, %f: bool[] = %g0, %c: i32[] = %c0) {\n"
     "  %p = matmul %s, %w\n  %t = tanh %p\n  %v = add %t, %s\n  %m = reduce.max %v, axes=[0,1]\n  %l = lt %m, 5.5\n  %d = add %c, 1\n  yield %v, %l, %d\n }\n return h=%h, g=%g, c=%k\n}\n", NULL, false, 0, 1, {{0}}},
    {"an odd number of trips at most, of which the data makes some",
     "graph @g(%x: f32[3,24]) {\n" WEIGHTS " %g0: bool[] = const true\n %c0: i32[] = const 0\n"
     " %h: f32[3,24], %g: bool[], %k: i32[] = repeat trips=41 while=1 (%s: f32[3,24] = %x, %f: bool[] = %g0, %c: i32[] = %c0) {\n"
     "  %p = matmul %s, %w\n  %t = tanh %p\n  %v = add %t, %s\n  %m = reduce.max %v, axes=[0,1]\n  %l = lt %m, 5.5\n  %d = add %c, 1\n  yield %v, %l, %d\n }\n return h=%h, c=%k\n}\n", NULL, false, 0, 1, {{0}}},
    {"a flag that is down from the start",
     "graph @g(%x: f32[3,24]) {\n" WEIGHTS " %g0: bool[] = const false\n %c0: i32[] = const 0\n"
     " %h: f32[3,24], %g: bool[], %k: i32[] = repeat trips=9 while=1 (%s: f32[3,24] = %x, %f: bool[] = %g0, %c: i32[] = %c0) {\n"
     "  %p = matmul %s, %w\n  %t = tanh %p\n  %v = add %t, %s\n  %m = reduce.max %v, axes=[0,1]\n  %l = lt %m, 5.5\n  %d = add %c, 1\n  yield %v, %l, %d\n }\n return h=%h, g=%g, c=%k\n}\n", NULL, false, 0, 1, {{0}}},
    {"an end by the data, or by a symbol",
     TRIPS "graph @g(%x: f32[3,24], %y: f32[m]) {\n" WEIGHTS " %g0: bool[] = const true\n %c0: i32[] = const 0\n"
     " %h: f32[3,24], %g: bool[], %k: i32[] = repeat trips=n while=1 (%s: f32[3,24] = %x, %f: bool[] = %g0, %c: i32[] = %c0) {\n"
     "  %p = matmul %s, %w\n  %t = tanh %p\n  %v = add %t, %s\n  %m = reduce.max %v, axes=[0,1]\n  %l = lt %m, 5.5\n  %d = add %c, 1\n  yield %v, %l, %d\n }\n return h=%h, g=%g, c=%k\n}\n", NULL, false, 2, 6, {{0, 1}, {1, 1}, {2, 1}, {8, 1}, {39, 1}, {40, 1}}},
    {"an end by the data in a loop of launches",
     "graph @g(%x: f32[5,24]) {\n" WEIGHTS " %a: f32[5,24] = repeat trips=5 (%s: f32[5,24] = %x) {\n  %g0: bool[] = const true\n"
     "  %b: f32[5,24], _ = repeat trips=23 while=1 (%q: f32[5,24] = %s, %f: bool[] = %g0) {\n   %p = matmul %q, %w\n   %t = tanh %p\n   %v = add %t, %q\n   %m = reduce.max %v, axes=[0,1]\n"
     "   %l = lt %m, 4.0\n   yield %v, %l\n  }\n  %c = matmul %b, %w\n  %d = add %c, %s\n  %e = tanh %d\n  yield %e\n }\n return a=%a\n}\n", NULL, false, 0, 1, {{0}}},
    {"halves", "graph @g(%x: f32[3,24]) {\n" WEIGHTS " %a: f16[3,24] = cast %x, dtype=f16\n %r: f16[3,24] = repeat trips=5 (%s: f16[3,24] = %a) {\n"
     "  %f = cast %s, dtype=f32\n  %p = matmul %f, %w\n  %t = tanh %p\n  %v = cast %t, dtype=f16\n  yield %v\n }\n %h = cast %r, dtype=f32\n return h=%h\n}\n", NULL, false, 0, 1, {{0}}},
    {"rows of a number that is not known", TRIPS "graph @g(%x: f32[m,24]) {\n" WEIGHTS " %h: f32[m,24] = repeat trips=n (%s: f32[m,24] = %x) {\n" CELL,
     "kernels for other extents", true, 2, 4, {{9, 40}, {0, 3}, {3, 1}, {8, 17}}},
    {"values that the user wants apart",
     "graph @g(%x: f32[3,24]) {\n" WEIGHTS " %h: f32[3,24] = repeat trips=6 (%s: f32[3,24] = %x) {\n  %p = matmul %s, %w\n  %t = tanh %p\n  yield %t\n }\n return h=%h\n"
     " never_fuse %p, %t\n}\n", "never_fuse", false, 0, 1, {{0}}},
    {"a barrier in the trip",
     "graph @g(%x: f32[3,24]) {\n" WEIGHTS " %h: f32[3,24] = repeat trips=6 (%s: f32[3,24] = %x) {\n  %p = matmul %s, %w\n  %t = tanh %p\n  yield %t\n }\n return h=%h\n"
     " barrier %p\n}\n", "barrier", false, 0, 1, {{0}}},
};
// clang-format on

typedef struct side {
  snt_program *program;
  snt_exec *exec;
} side;

/* A device, by the class that it is of itself or another one's. */
typedef struct place {
  const char *name, *class; /* null: its own */
  snt_device *device;
} place;

static snt_result make_side(snt_context *context, const place *at, const char *text, const char *launch, side *out, snt_diag *diag) {
  static char own[MAX_TEXT];
  size_t length = sizeof own - 96;
  snt_graph *graph = NULL;
  snt_profile *profile = NULL;
  const snt_compile_info info = {.head = SNT_HEAD(compile_info), .numerics = SNT_NUMERICS_STRICT};
  *out = (side){0};
  snt_result r = at->class ? SNT_OK : snt_device_profile(at->device, &profile);
  if (at->class) snprintf(own, length, "base = %s\nname = other\ntarget = interp\n", at->class);
  else if (r == SNT_OK) r = snt_profile_print(profile, own, &length);
  snt_profile_destroy(profile);
  profile = NULL;
  snprintf(own + strlen(own), 64, "launch_ns = %s ns\n", launch);
  if (launch[0] == '0') snprintf(own + strlen(own), 32, "barrier_ns = 1000000 ns\n"); /* which one kernel has in each trip */
  if (r == SNT_OK) r = snt_profile_parse(context, own, strlen(own), &profile, diag);
  if (r == SNT_OK) r = snt_graph_create(context, &graph);
  if (r == SNT_OK) r = snt_graph_parse(graph, text, strlen(text), NULL, diag);
  if (r == SNT_OK) r = snt_compile(graph, profile, &info, &out->program, diag);
  if (r == SNT_OK) r = snt_exec_create(at->device, out->program, NULL, &out->exec, diag);
  if (r == SNT_OK) r = snt_exec_prepare(out->exec, diag);
  snt_profile_destroy(profile);
  snt_graph_destroy(graph);
  return r;
}

static void drop_side(side *s) {
  snt_exec_destroy(s->exec);
  snt_program_destroy(s->program);
}

/* The text of explain, to be freed. */
static char *explained(const snt_program *program) {
  size_t length = 0;
  char *text = NULL;
  if (snt_program_explain(program, SNT_EXPLAIN_TEXT, NULL, &length) == SNT_OK) text = malloc(length + 1);
  if (text && snt_program_explain(program, SNT_EXPLAIN_TEXT, text, &length) != SNT_OK) text[0] = 0;
  return text;
}

static void check_kernel(const loop_case *c, const char *place, const side *loop, const side *one) {
  char *launches = explained(loop->program), *whole = explained(one->program);
  const bool known = launches && whole;
  tap_ok(known && !strstr(launches, "_persistent"), "%s, %s: launches that cost nothing", place, c->name);
  if (!c->obstacle)
    tap_ok(known && strstr(whole, "_persistent") && snt_program_kernel_count(one->program) <= snt_exec_step_count(one->exec),
           "%s, %s: dear launches, one kernel, and none that no step runs", place, c->name);
  else if (c->by_device)
    tap_ok(known && !strstr(whole, "_persistent") == !!strstr(whole, c->obstacle), "%s, %s: stays a loop where there are %s", place,
           c->name, c->obstacle);
  else
    tap_ok(known && !strstr(whole, "_persistent") && strstr(whole, c->obstacle), "%s, %s: stays a loop: %s", place, c->name, c->obstacle);
  free(launches);
  free(whole);
}

/* Outputs, and states as they are left. */
static bool same_bytes(const api_tensors *a, const api_tensors *b) {
  bool same = true;
  for (uint32_t i = 0; i < a->count; i++)
    if (a->at[i].port.kind != SNT_PORT_INPUT) same &= !memcmp(a->at[i].data, b->at[i].data, a->at[i].bytes);
  return same;
}

static bool same_run(const loop_case *c, snt_device *device, side *loop, side *one, uint32_t number, snt_diag *diag) {
  api_tensors want, got;
  bool same = false;
  if (!api_make_tensors(loop->program, c->runs[number], 11, &want)) return false;
  if (api_make_tensors(one->program, c->runs[number], 11, &got)) {
    same = api_run_once(device, loop->exec, &want, API_HOST_MEMORY, NULL, diag) == SNT_OK &&
           api_run_once(device, one->exec, &got, API_HOST_MEMORY, NULL, diag) == SNT_OK && same_bytes(&want, &got);
    api_free_tensors(&got);
  }
  api_free_tensors(&want);
  return same;
}

static void check_case(snt_context *context, const place *at, const loop_case *c) {
  snt_diag diag = {.head = SNT_HEAD(diag)};
  side loop, one = {0};
  snt_result r = make_side(context, at, c->text, "0", &loop, &diag);
  if (r == SNT_OK) r = make_side(context, at, c->text, "10000000", &one, &diag);
  if (r == SNT_E_UNSUPPORTED) tap_skip("%s, %s: %s", at->name, c->name, diag.text);
  else tap_ok(r == SNT_OK, "%s, %s: %s", at->name, c->name, r == SNT_OK ? "both ways" : diag.text);
  if (r == SNT_OK) check_kernel(c, at->name, &loop, &one);
  for (uint32_t i = 0; r == SNT_OK && i < c->run_count; i++)
    tap_ok(same_run(c, at->device, &loop, &one, i, &diag), "%s, %s: %d %d, the bits of launches %s", at->name, c->name, (int)c->runs[i][0],
           (int)c->runs[i][1], diag.text);
  drop_side(&one);
  drop_side(&loop);
}

static void check_device(snt_context *context, const char *selector, const char *class) {
  const snt_open_info open = {.head = SNT_HEAD(open_info), .selector = selector};
  char name[64];
  place at = {.name = name, .class = class};
  snprintf(name, sizeof name, class ? "%s as %s" : "%s", selector, class);
  if (snt_device_open(context, &open, &at.device, NULL) != SNT_OK) {
    tap_skip("%s is not here", selector);
    return;
  }
  for (uint32_t i = 0; i < sizeof cases / sizeof *cases; i++) check_case(context, &at, &cases[i]);
  snt_device_destroy(at.device);
}

/* One kernel of values that are not of the same trip there is none. */
static void check_refused(snt_context *context) {
  static const char text[] = "graph @g(%x: f32[3,24]) {\n" WEIGHTS " %h: f32[3,24] = repeat trips=6 (%s: f32[3,24] = %x) {\n  %p = matmul "
                             "%s, %w\n  %t = tanh %p\n  yield %t\n }\n %y = mul %h, 2\n return y=%y\n"
                             " must_fuse %t, %y\n}\n";
  const snt_open_info open = {.head = SNT_HEAD(open_info), .selector = "interp"};
  snt_diag diag = {.head = SNT_HEAD(diag)};
  snt_device *device = NULL;
  snt_program *program = snt_device_open(context, &open, &device, &diag) == SNT_OK ? api_compile_text(context, device, text, &diag) : NULL;
  tap_ok(!program && diag.result == SNT_E_UNSUPPORTED && strstr(diag.text, "t and y are not of the same trip"), "refused: %s", diag.text);
  snt_program_destroy(program);
  snt_device_destroy(device);
}

int main(int argc, char **argv) {
  api_memory memory = {0};
  api_devices devices;
  host_prepare_drivers(NULL);
  snt_context *context = api_context(&memory);
  if (argc < 2) {
    check_refused(context);
    check_device(context, "interp", NULL);
    check_device(context, "interp", "h100"); /* where other things are in the way */
    api_find_devices(context, &devices);
  }
  for (int i = 1; i < argc; i++) check_device(context, argv[i], NULL);
  for (uint32_t i = 0; argc < 2 && i < devices.count; i++) check_device(context, devices.selector[i], NULL);
  snt_context_destroy(context);
  tap_is_int(atomic_load(&memory.live), 0, "no memory is left");
  return tap_done();
}
