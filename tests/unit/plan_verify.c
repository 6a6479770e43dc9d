/* The verifier of plans finds what it says it checks: a compiled plan passes, and each thing that is broken in it is told. */
#include "api/handles.h"
#include "tests/tap.h"
#include <sinter/sinter.h>
#include <stdio.h>

static snt_program *compile(snt_context *context, const char *path) {
  static char text[1 << 14];
  snt_diag diag = {0};
  snt_graph *graph = NULL;
  snt_profile *profile = NULL;
  snt_program *program = NULL;
  FILE *file = fopen(path, "rb");
  const size_t length = file ? fread(text, 1, sizeof text, file) : 0;
  if (file) fclose(file);
  const snt_compile_info info = {.head = SNT_HEAD(compile_info), .targets = SNT_TARGET_HOST};
  snt_result r = snt_graph_create(context, &graph);
  if (r == SNT_OK) r = snt_graph_parse(graph, text, length, NULL, &diag);
  static const char apart[] = "base = pocl\nname = apart\nlaunch_ns = 0 ns\n"; /* launches cost nothing: a loop stays kernels a trip */
  if (r == SNT_OK) r = snt_profile_parse(context, apart, sizeof apart - 1, &profile, &diag);
  if (r == SNT_OK) r = snt_compile(graph, profile, &info, &program, &diag);
  tap_ok(r == SNT_OK, "%s compiles %s", path, diag.text);
  snt_profile_destroy(profile);
  snt_graph_destroy(graph);
  return program;
}

static void expect(const ir_plan *p, const char *words, const char *what) {
  snt_diag diag = {0};
  const snt_result r = plan_verify(p, &diag);
  tap_ok(r == SNT_E_INTERNAL && strstr(diag.text, words), "%s: %s", what, r == SNT_OK ? "not seen" : diag.text);
}

/* A binding of scratch halves that trips write in turn; null: none. */
static const plan_binding *find_pair(const ir_plan *p) {
  for (uint32_t s = 0; s < p->steps.count; s++)
    for (uint32_t i = 0; i < p->steps.at[s].binding_count; i++) {
      const plan_binding *b = &p->steps.at[s].bindings[i];
      if (b->swap && p->buffers.at[b->buffer].kind == PLAN_SCRATCH && p->buffers.at[b->other].kind == PLAN_SCRATCH) return b;
    }
  return NULL;
}

static void test_lives(ir_plan *p) {
  const plan_binding *pair = find_pair(p);
  tap_ok(pair && p->loops.count, "a loop has a pair of halves");
  if (!pair || !p->loops.count) return;
  const uint32_t halves[] = {pair->buffer, pair->other};
  for (int i = 0; i < 2; i++) {
    plan_buffer *half = &p->buffers.at[halves[i]];
    const plan_buffer was = *half;
    half->first_step = half->last_step = p->loops.at[0].first;
    expect(p, "lives in a part of loop 0", "a half that lives for one step of a trip");
    *half = was;
    half->offset = p->buffers.at[halves[!i]].offset;
    expect(p, "shares its bytes with living buffer", "halves in the same bytes");
    *half = was;
  }
}

static void test_loops(ir_plan *p) {
  plan_loop *l = &p->loops.at[0];
  const plan_loop was = *l;
  l->end = p->steps.count + 1;
  expect(p, "no steps in loop 0", "a loop beyond the steps");
  l->end = was.end, l->variable = 7;
  expect(p, "no variable for loop 0", "a loop that counts in no variable");
  *l = was, l->trips = was.variable;
  expect(p, "trips that change from trip to trip in loop 0", "trips that hang on the trip");
  *l = was;
  p->steps.at[l->first].barrier = 0;
  expect(p, "no barrier at the start of loop 0", "a loop that begins without a barrier");
  p->steps.at[l->first].barrier = 1;
}

static void test_steps(ir_plan *p) {
  plan_step *s = &p->steps.at[0];
  const uint32_t kernel = s->kernel, buffer = s->bindings[0].buffer, scalars = s->scalar_count;
  s->kernel = p->kernels.count;
  expect(p, "no kernel", "a step of no kernel");
  s->kernel = kernel, s->bindings[0].buffer = p->buffers.count;
  expect(p, "no buffer for slot 0", "a slot of no buffer");
  s->bindings[0].buffer = buffer, s->scalar_count = scalars + 1;
  expect(p, "scalars given, not as many as the kernel has", "a scalar too many");
  s->scalar_count = scalars;
  for (uint32_t i = 0; i < s->binding_count; i++) {
    const uint8_t access = s->bindings[i].access;
    s->bindings[i].access = 0;
    expect(p, "undeclared access of slot", "an access that is not declared");
    s->bindings[i].access = access;
  }
}

static void test_barriers(ir_plan *p) {
  for (uint32_t s = 1; s < p->steps.count; s++) {
    if (!p->steps.at[s].barrier) continue;
    p->steps.at[s].barrier = 0;
    expect(p, "no barrier", "a step that does not wait");
    p->steps.at[s].barrier = 1;
  }
}

int main(void) {
  snt_context *context = NULL;
  tap_begin();
  tap_ok(snt_context_create(NULL, &context) == SNT_OK, "a context");
  snt_program *program = compile(context, "tests/fuzz/seeds/repeat_pairs_of_one_step.snt");
  if (program) {
    ir_plan *p = &program->plan;
    snt_diag diag = {0};
    test_steps(p);
    test_barriers(p);
    test_loops(p);
    test_lives(p);
    tap_ok(plan_verify(p, &diag) == SNT_OK, "put right again it passes %s", diag.text);
  }
  snt_program_destroy(program);
  snt_context_destroy(context);
  return tap_done();
}
