/* States. In: groups in execution order. Out: for each update, whether its kernel may write over the state, and the copies of those that may not.
   In place is right when every kernel that reads the state runs before the one that stores the new value, or is that kernel and reads each element
   only where it stores it. Anything else gets storage of its own and is copied when all other kernels are done. */
#include "fusion/emit_private.h"
#include "fusion/schedule_common.h"

typedef struct alignment {
  uint32_t state, rank;
  const ir_expr *at;
  bool good;
} alignment;

static void check_aligned(void *user, const fusion_load *load) {
  alignment *a = user;
  if (load->node != a->state) return;
  a->good &= load->access->rank == a->rank && load->access->condition_count == 0;
  for (uint32_t d = 0; d < a->rank && a->good; d++) a->good = load->access->at[d] == a->at[d];
}

/* Every result of the kernel reads the state only at the element that it stores. */
static bool reads_aligned(fusion_context *c, const fusion_group *group, uint32_t state) {
  const ir_tensor *t = &ir_at(c->graph, state)->type;
  map_access at = {.rank = t->rank};
  for (uint32_t d = 0; d < t->rank; d++) at.at[d] = expr_var_add(c->graph->pool, "s", 0, t->dims[d], 1);
  alignment a = {state, t->rank, at.at, true};
  for (uint32_t i = 0; i < group->output_count && a.good; i++) {
    if (!ir_same_shape(&ir_at(c->graph, group->outputs[i])->type, t)) return false;
    if (!fusion_walk_loads(c, group, group->outputs[i], &at, check_aligned, &a)) return false;
  }
  return a.good;
}

static bool reads(const fusion_group *group, uint32_t node) {
  for (uint32_t i = 0; i < group->input_count; i++)
    if (group->inputs[i] == node) return true;
  return false;
}

static bool fits_in_place(fusion_context *c, const ir_update *u) {
  const uint32_t owner = c->group_of[u->value];
  bool stored = false;
  for (uint32_t i = 0; i < c->order_count; i++) {
    const fusion_group *group = &c->groups.at[c->order[i]];
    const bool own = c->order[i] + 1 == owner;
    if (reads(group, u->state) && (own ? !reads_aligned(c, group, u->state) : stored)) return false;
    stored |= own;
  }
  return stored;
}

snt_result fusion_settle_states(fusion_context *c, bool *changed) {
  *changed = false;
  const uint32_t count = c->graph->updates.count;
  c->copied_update = IR_NEW_ARRAY(c->arena, uint8_t, count + 1);
  if (!c->copied_update) return ir_fail(c->diag, SNT_E_HOST_MEM, "states", 0, "out of host memory");
  for (uint32_t i = 0; i < count; i++) c->copied_update[i] = !fits_in_place(c, &c->graph->updates.at[i]);
  return SNT_OK;
}

typedef struct copy_job {
  uint32_t from, to;
  int32_t dtype;
} copy_job;

static void copy_elements(emit *e, void *user, ir_expr at) {
  const copy_job *job = user;
  emit_store(e, job->to, job->dtype, at, emit_load(e, job->from, job->dtype, at, 0, NULL));
}

/* Explicit classes: a share of the elements a group. Lanes: an item copies one element. */
static snt_result build_copy(fusion_context *c, const ir_update *u) {
  expr_pool *x = c->graph->pool;
  fusion_group *group = IR_NEW(c->arena, fusion_group);
  uint32_t *node = IR_NEW(c->arena, uint32_t);
  if (!group || !node) return ir_fail(c->diag, SNT_E_HOST_MEM, "states", 0, "out of host memory");
  *node = u->value;
  *group = (fusion_group){
      .kind = GROUP_LOOP, .hero = u->value, .nodes = node, .inputs = node, .outputs = node, .input_count = 1, .output_count = 1};
  emit *e = emit_begin(c, group, "copy");
  if (!e) return ir_fail(c->diag, SNT_E_HOST_MEM, "states", u->value, "out of host memory");
  const ir_tensor *t = &ir_at(c->graph, u->state)->type;
  const copy_job job = {emit_bind(e, fusion_buffer_of(c, u->value), KIR_READ), emit_bind(e, fusion_buffer_of(c, u->state), KIR_WRITE),
                        t->dtype};
  const ir_expr elements = ir_tensor_elements(x, t);
  if (schedule_is_explicit(c)) {
    int64_t per;
    const ir_expr groups = schedule_split_work(c, elements, 1, &per), lo = expr_mul(x, emit_group(e, groups), expr_int(x, per));
    schedule_vector_loop(e, lo, expr_min(x, expr_add(x, lo, expr_int(x, per)), elements), schedule_lanes(c), 1, copy_elements,
                         (void *)(uintptr_t)&job);
    return emit_end(e, groups, 0, 0, NULL);
  }
  uint32_t items = (uint32_t)c->options->profile->group_items;
  if (items > c->options->profile->max_items) items = c->options->profile->max_items;
  const ir_expr groups = expr_ceil_div(x, elements, (ir_expr)items),
                at = expr_add(x, expr_mul(x, emit_group(e, groups), (ir_expr)items), emit_item(e, 0, items));
  emit_if(e, kir_2(e->k, KIR_lt, emit_expr(e, at), emit_expr(e, elements)));
  copy_elements(e, (void *)(uintptr_t)&job, at);
  emit_if_end(e);
  return emit_end(e, groups, 0, 0, NULL);
}

snt_result fusion_copy_states(fusion_context *c) {
  for (uint32_t i = 0; i < c->graph->updates.count; i++)
    if (c->copied_update && c->copied_update[i]) SNT_TRY(build_copy(c, &c->graph->updates.at[i]));
  return SNT_OK;
}
