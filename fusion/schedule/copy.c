/* A kernel that copies: a new value into its state, an initial value into what a loop carries. In: a node and a buffer of its shape. Out: one step.
   Explicit classes: a share of the elements a group. Lanes: an item copies one element. */
#include "fusion/emit_private.h"
#include "fusion/schedule_common.h"

typedef struct copy_job {
  schedule_space space;
  uint32_t node, to;
  int32_t dtype;
} copy_job;

static void copy_elements(emit *e, void *user, ir_expr at) {
  const copy_job *job = user;
  const map_access from = schedule_at(e->x, &job->space, 0, at);
  emit_store(e, job->to, job->dtype, at, emit_value(e, job->node, &from));
}

/* No member: what has a kernel of its own is read. */
static fusion_group *group_of_copy(fusion_context *c, uint32_t node) {
  fusion_group *group = IR_NEW(c->arena, fusion_group);
  uint32_t *list = IR_NEW(c->arena, uint32_t);
  if (!group || !list) return NULL;
  *list = node;
  *group = (fusion_group){.kind = GROUP_LOOP, .hero = node, .nodes = list, .inputs = list, .input_count = 1};
  return group;
}

static snt_result end_copy(emit *e, ir_expr groups) {
  SNT_TRY(emit_end(e, groups, 0, 0, NULL));
  plan_step *s = &e->c->plan->steps.at[e->c->plan->steps.count - 1];
  s->nodes = e->group->nodes;
  s->node_count = 1;
  const double bytes = (double)schedule_hint(e->x, s->bytes_written);
  const cost_work work = {.items = bytes / 4,
                          .stream_count = 2,
                          .streams = {{.bytes = bytes, .accesses = bytes}, {.bytes = bytes, .accesses = bytes, .write = true}}};
  cost_estimate cost;
  cost_kernel(e->c->options->profile, &work, &cost);
  s->est_ns = cost.ns;
  return SNT_OK;
}

snt_result schedule_copy(fusion_context *c, uint32_t node, uint32_t buffer) {
  expr_pool *x = c->graph->pool;
  const fusion_group *group = group_of_copy(c, node);
  emit *e = group ? emit_begin(c, group, "copy") : NULL;
  if (!e) return ir_no_memory(c->diag, "schedule");
  const ir_tensor *t = &ir_at(c->graph, node)->type;
  const ir_expr elements = ir_tensor_elements(x, t);
  copy_job job = {.node = node, .dtype = t->dtype};
  schedule_space_init(c, &job.space, t, 0);
  job.to = emit_bind(e, buffer, KIR_WRITE);
  if (schedule_is_explicit(c)) {
    int64_t per;
    const ir_expr groups = schedule_split_work(c, elements, 1, &per), lo = expr_mul(x, emit_group(e, groups), expr_int(x, per));
    schedule_vector_loop(e, lo, expr_min(x, expr_add(x, lo, expr_int(x, per)), elements), schedule_lanes(c), 1, copy_elements, &job);
    return end_copy(e, groups);
  }
  ir_expr groups;
  const ir_expr at = schedule_units(e, elements, 1, &groups);
  copy_elements(e, &job, at);
  schedule_units_end(e, at);
  return end_copy(e, groups);
}
