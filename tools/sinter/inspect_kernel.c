/* Measures the kernels of a program by the interpreter: buffers of zeros of the right sizes, a sample of the groups of each step. */
#include "tools/sinter/inspect_kernel.h"
#include <stdlib.h>
#include <string.h>

const char *const inspect_mix_names[MIX_COUNT] = {"matrix", "fma",  "float", "special", "integer", "move",
                                                  "global", "copy", "local", "sync",    "control"};

typedef struct inspection {
  tool_session *session;
  const snt_program *program;
  const char *filter;
  uint64_t sample;
  uint32_t target, choice;
  expr_values at;
  void **buffers; /* by plan buffer, made on first use */
  bool *seen;     /* by step */
  inspect_figures *list;
  uint32_t count;
} inspection;

/* ---- the mix ---- */

static inspect_mix memory_class(const kir_kernel *k, uint32_t inst) {
  const uint32_t space = k->memories.at[kir_at(k, inst)->index].space;
  if (space == KIR_GLOBAL || space == KIR_SCRATCH || space == KIR_IMAGE) return MIX_GLOBAL;
  return space == KIR_LOCAL ? MIX_LOCAL : MIX_MOVE;
}

static bool is_special(uint32_t op) {
  return op == KIR_div || op == KIR_rem || op == KIR_sqrt || op == KIR_rcp || op == KIR_rsqrt || (kir_ops[op].attrs & KA_MATH);
}

static inspect_mix class_of(const kir_kernel *k, uint32_t inst) {
  const kir_inst *in = kir_at(k, inst);
  const kir_op_info *op = &kir_ops[in->op];
  if (op->flags & KIR_MEM) return memory_class(k, inst);
  if (op->flags & KIR_REGION) return MIX_CONTROL;
  if (in->op == KIR_mma) return MIX_MATRIX;
  if (in->op == KIR_fma || in->op == KIR_dot4) return MIX_FMA;
  if (in->op == KIR_async_copy) return MIX_COPY;
  if (op->flags & KIR_EFFECT || (in->op >= KIR_sg_add && in->op <= KIR_barrier)) return MIX_SYNC;
  if (in->op >= KIR_splat && in->op <= KIR_shuffle) return MIX_MOVE;
  if (in->op == KIR_cast || in->op == KIR_bitcast || in->op == KIR_unpack2 || in->op == KIR_pack2) return MIX_MOVE;
  if (!ir_dtypes[in->type.base].is_float) return MIX_INTEGER;
  return is_special(in->op) ? MIX_SPECIAL : MIX_FLOAT;
}

/* Literals, scalars and ids are no instructions. */
static bool is_free(uint32_t op) {
  return op == KIR_const || op == KIR_scalar || (op >= KIR_group && op <= KIR_sg_count) || op == KIR_carry || op == KIR_result;
}

static void fill_mix(inspect_figures *f) {
  const double items = (double)f->items * (double)f->sampled;
  for (uint32_t i = 1; i < f->kernel->insts.count; i++)
    if (!is_free(kir_at(f->kernel, i)->op)) f->mix[class_of(f->kernel, i)] += (double)f->insts[i].runs / items;
}

static uint64_t local_bytes(const kir_kernel *k) {
  uint64_t total = 0;
  for (uint32_t i = 0; i < k->memories.count; i++) {
    const kir_memory *m = &k->memories.at[i];
    if (m->space != KIR_LOCAL || m->overlay) continue;
    uint64_t bytes = (uint64_t)ir_dtypes[m->type.base].bytes * m->type.lanes;
    for (uint32_t d = 0; d < m->rank; d++) bytes *= m->dims[d];
    total += bytes;
  }
  return total;
}

/* ---- running ---- */

/* A constant is read where it lies; all else is zeros, which cost nothing where nobody writes. */
static void *buffer_data(inspection *n, uint32_t buffer, uint64_t bytes) {
  const plan_buffer *b = &n->program->plan.buffers.at[buffer];
  if (b->kind == PLAN_CONSTANT && b->data) return (void *)(uintptr_t)b->data;
  if (!n->buffers[buffer]) n->buffers[buffer] = calloc(bytes + 64, 1);
  return n->buffers[buffer];
}

static snt_result bind_all(inspection *n, const plan_step *s, kir_interp_buffer *out) {
  for (uint32_t i = 0; i < s->binding_count; i++) {
    const plan_binding *b = &s->bindings[i];
    uint64_t whole, offset, bytes;
    const ir_plan *plan = &n->program->plan;
    if (!plan_eval_at(plan, plan->buffers.at[b->buffer].bytes, &n->at, &whole) || !plan_eval_at(plan, b->offset, &n->at, &offset) ||
        !plan_eval_at(plan, b->bytes, &n->at, &bytes))
      return host_fail(&n->session->diag, SNT_E_LIMIT, "inspect", "%s: the size of a buffer is not known", s->name);
    uint8_t *data = buffer_data(n, b->buffer, whole);
    if (!data) return host_fail(&n->session->diag, SNT_E_HOST_MEM, "inspect", "%llu bytes", (unsigned long long)whole);
    out[i] = (kir_interp_buffer){data + offset, bytes};
  }
  return SNT_OK;
}

static double value_of(const inspection *n, ir_expr e) {
  uint64_t v = 0;
  return plan_eval_at(&n->program->plan, e, &n->at, &v) ? (double)v : 0;
}

static snt_result interpret(inspection *n, const plan_step *s, const plan_launch *launch, inspect_figures *f) {
  kir_interp_buffer *buffers = calloc(s->binding_count + 1, sizeof *buffers);
  f->insts = calloc(f->kernel->insts.count, sizeof *f->insts);
  snt_result r = buffers && f->insts ? bind_all(n, s, buffers) : host_fail(&n->session->diag, SNT_E_HOST_MEM, "inspect", "out of memory");
  const kir_interp_info info = {.kernel = f->kernel,
                                .groups = f->groups,
                                .sample = n->sample,
                                .insts = f->insts,
                                .subgroup_size = n->program->profile.subgroup_max,
                                .buffer_count = s->binding_count,
                                .buffers = buffers,
                                .scalars = launch->scalars,
                                .scalar_bytes = launch->scalar_bytes};
  if (r == SNT_OK) r = kir_interp_run(&info, &n->program->context->alloc, &f->stats, &n->session->diag);
  free(buffers);
  return r;
}

static snt_result inspect_step(inspection *n, uint32_t number, const plan_launch *launch) {
  const plan_step *s = &n->program->plan.steps.at[number];
  const kir_kernel *legal = n->program->kernels[s->kernel].legal[n->target];
  inspect_figures *f = &n->list[n->count];
  *f = (inspect_figures){.name = s->name, .kind = n->program->plan.kernels.at[s->kernel].kind, .kernel = legal, .groups = launch->groups};
  for (uint32_t i = 0; legal && i < legal->insts.count; i++)
    if (kir_at(legal, i)->op == KIR_inline || kir_at(legal, i)->op == KIR_own)
      return SNT_OK; /* a text of the user's own has no meaning here */
  if (!legal || !launch->groups) return SNT_OK;
  f->items = legal->items[0] * legal->items[1] * legal->items[2];
  f->sampled = n->sample && n->sample < f->groups ? n->sample : f->groups;
  f->live_words = kir_live_words(legal);
  f->local_bytes = local_bytes(legal);
  n->count++;
  SNT_TRY(interpret(n, s, launch, f));
  fill_mix(f);
  f->flops = (double)f->stats.flops * (double)f->groups / (double)f->sampled;
  f->bytes = value_of(n, s->bytes_read) + value_of(n, s->bytes_written);
  return SNT_OK;
}

static snt_result visit(void *user, uint32_t step) {
  inspection *n = user;
  plan_launch launch;
  const plan_step *s = &n->program->plan.steps.at[step];
  if (!plan_eval_step(&n->program->plan, step, &n->at, &n->choice, &launch)) return SNT_E_LIMIT;
  if (!launch.runs || n->seen[step] || (n->filter && !strstr(s->name, n->filter))) return SNT_OK;
  n->seen[step] = true;
  return inspect_step(n, step, &launch);
}

static void next_trip(void *user) { ((inspection *)user)->choice = 0; }

snt_result inspect_steps(tool_session *session, const char *filter, uint64_t sample, inspect_figures **out, uint32_t *count) {
  const snt_program *p = session->program;
  int64_t *variables = calloc(plan_variable_count(&p->plan) + 1, sizeof *variables);
  inspection n = {
      .session = session, .program = p, .filter = filter, .sample = sample, .at = {.symbols = session->symbols, .vars = variables}};
  while (n.target < API_TARGETS && !(p->targets & api_targets[n.target].bit)) n.target++;
  n.buffers = calloc(p->plan.buffers.count + 1, sizeof *n.buffers);
  n.seen = calloc(p->plan.steps.count + 1, sizeof *n.seen);
  n.list = calloc(p->plan.steps.count + 1, sizeof *n.list);
  const plan_walk walk = {&n, visit, next_trip, session->symbols, variables};
  snt_result r = SNT_E_HOST_MEM;
  if (variables && n.buffers && n.seen && n.list) r = n.target < API_TARGETS ? plan_walk_steps(&p->plan, &walk) : SNT_E_UNSUPPORTED;
  for (uint32_t i = 0; n.buffers && i < p->plan.buffers.count; i++) free(n.buffers[i]);
  free(n.buffers);
  free(n.seen);
  free(variables);
  *out = n.list;
  *count = n.count;
  return r;
}

void inspect_free(inspect_figures *list, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) free(list[i].insts);
  free(list);
}
