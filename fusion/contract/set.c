/* Which contractions of a group share one tile, and whether they can; see the header. Nothing is emitted. */
#include "fusion/contract_set.h"
#include "fusion/schedule_common.h"
#include "fusion/winograd.h"

static bool same_list(const ir_graph *g, uint32_t a, uint32_t b, ir_attr_key key) {
  uint32_t count[2];
  const ir_expr *x = ir_attr_ints(g, a, key, &count[0]), *y = ir_attr_ints(g, b, key, &count[1]);
  return count[0] == count[1] && (!count[0] || !memcmp(x, y, count[0] * sizeof *x));
}

uint32_t contract_lane_operands(const ir_graph *g, uint32_t node) {
  uint32_t count, out_count, mask = 0;
  const ir_expr *out = ir_attr_ints(g, node, IR_ATTR_out, &out_count);
  while (out_count && ir_at(g, node)->type.dims[out_count - 1] == 1) out_count--;
  for (uint32_t o = 0; o < 2; o++) {
    const ir_expr *labels = ir_attr_ints(g, node, o ? IR_ATTR_rhs : IR_ATTR_lhs, &count);
    for (uint32_t i = 0; i < count && out_count; i++)
      if (labels[i] == out[out_count - 1]) mask |= 1u << o;
  }
  return mask;
}

bool contract_alike(const ir_graph *g, uint32_t a, uint32_t b) {
  const ir_node *n = ir_at(g, a), *m = ir_at(g, b);
  if (n->op != IR_OP_contract || m->op != IR_OP_contract || n->type.dtype != m->type.dtype) return false;
  if (ir_attr_flag(g, a, IR_ATTR_packed) != ir_attr_flag(g, b, IR_ATTR_packed)) return false;
  for (uint32_t o = 0; o < 2; o++) {
    const ir_tensor *x = &ir_at(g, ir_arg(g, a, o))->type, *y = &ir_at(g, ir_arg(g, b, o))->type;
    if (!ir_same_shape(x, y) || x->dtype != y->dtype) return false;
  }
  return same_list(g, a, b, IR_ATTR_lhs) && same_list(g, a, b, IR_ATTR_rhs) && same_list(g, a, b, IR_ATTR_out);
}

void contract_set_find(const fusion_context *c, const fusion_group *group, contract_set *set) {
  *set = (contract_set){.count = 1, .node = {group->hero}};
  for (uint32_t i = 0; i < group->count && set->count < CONTRACT_SET_MAX; i++)
    if (group->nodes[i] != group->hero && contract_alike(c->graph, group->nodes[i], group->hero)) set->node[set->count++] = group->nodes[i];
}

bool contract_set_forward(const fusion_context *c, const fusion_group *group, const contract_set *set, uint32_t output, map_access *at) {
  for (uint32_t i = 0; i < set->count; i++) {
    map_access own = *at;
    if (!fusion_forward_within(c, group, set->node[i], output, &own)) continue;
    *at = own;
    return true;
  }
  return false;
}

typedef struct place {
  const contract_set *set;
  const map_access *at;
  bool elsewhere, reached;
} place;

static void check_place(void *user, const fusion_load *load) {
  place *p = user;
  for (uint32_t i = 0; i < p->set->count; i++) {
    if (load->node != p->set->node[i]) continue;
    p->reached = true;
    p->elsewhere |= load->access->condition_count || memcmp(load->access->at, p->at->at, p->at->rank * sizeof p->at->at[0]) != 0;
  }
}

static bool reads_in_place(const fusion_context *c, const fusion_group *group, const contract_set *set) {
  const fusion_stops stops = {set->node, set->count};
  const map_access at = fusion_anywhere(c, group->hero);
  for (uint32_t i = 0; i < group->output_count; i++) {
    map_access own = at;
    place p = {.set = set, .at = &at};
    if (!contract_set_forward(c, group, set, group->outputs[i], &own)) return false;
    if (!fusion_walk_until(c, group, group->outputs[i], &own, &stops, check_place, &p) || p.elsewhere) return false;
  }
  return true;
}

static bool feeds_another(const fusion_context *c, const fusion_group *group, const contract_set *set) {
  const fusion_stops stops = {set->node, set->count};
  for (uint32_t i = 0; i < set->count; i++)
    for (uint32_t o = 0; o < 2; o++) {
      const uint32_t operand = ir_arg(c->graph, set->node[i], o);
      const map_access at = fusion_anywhere(c, operand);
      place p = {.set = set, .at = &at};
      if (!fusion_walk_until(c, group, operand, &at, &stops, check_place, &p) || p.reached) return true;
    }
  return false;
}

bool contract_set_fits(const fusion_context *c, const fusion_group *group, const char **why_not) {
  contract_set set;
  uint32_t contractions = 0;
  bool output;
  contract_set_find(c, group, &set);
  for (uint32_t i = 0; i < group->count; i++) contractions += ir_at(c->graph, group->nodes[i])->op == IR_OP_contract;
  if (contractions == 1) return true;
  *why_not = "contractions of different shapes";
  if (contractions != set.count) return false;
  *why_not = "a transform of Winograd's beside another";
  if (winograd_of(c, group->hero, &output)) return false;
  *why_not = "a contraction feeds another";
  if (feeds_another(c, group, &set)) return false;
  *why_not = "a result that reads the contractions at different places";
  return reads_in_place(c, group, &set);
}

typedef struct pad_probe {
  const ir_graph *g;
  bool fits;
} pad_probe;
static void check_pad(void *user, const fusion_load *load) {
  pad_probe *p = user;
  p->fits &= !load->access->condition_count || ir_at(p->g, load->node)->type.dtype == SNT_F32;
}

/* Where reads go through texels, which are f32, a padded operand is read in place, and what lies outside is selected away (schedule/contract_lanes.c): one of
   other elements is made first. */
bool contract_pads_fit(const fusion_context *c, const fusion_group *group) {
  pad_probe p = {c->graph, true};
  if (c->options->profile->reads != COST_READS_TEXEL || schedule_is_explicit(c)) return true;
  for (uint32_t o = 0; o < 2; o++) {
    const uint32_t operand = ir_arg(c->graph, group->hero, o);
    const map_access at = fusion_anywhere(c, operand);
    if (ir_at(c->graph, operand)->type.dtype == SNT_F32 && !fusion_walk_loads(c, group, operand, &at, check_pad, &p)) return false;
  }
  return p.fits;
}

uint32_t contract_window_operand(const ir_graph *g, uint32_t node) {
  for (uint32_t o = 0; o < 2; o++)
    if (ir_at(g, ir_arg(g, node, o))->op == IR_OP_window) return ir_arg(g, node, o);
  return 0;
}

bool contract_may_stage(const fusion_context *c, uint32_t producer, uint32_t consumer) {
  const ir_graph *g = c->graph;
  return schedule_is_explicit(c) && !fusion_keeps_order(c->options) && producer < consumer && ir_at(g, producer)->op == IR_OP_contract &&
         ir_at(g, consumer)->op == IR_OP_contract && contract_lane_operands(g, producer) == 3 && contract_lane_operands(g, consumer) != 3;
}

/* At most two before the hero, in order. */
uint32_t contract_staged_producer(const fusion_context *c, const fusion_group *group, uint32_t *product) {
  uint32_t found[2] = {0}, count = 0;
  *product = 0;
  for (uint32_t i = 0; i < group->count; i++) {
    const uint32_t node = group->nodes[i];
    if (node == group->hero || ir_at(c->graph, node)->op != IR_OP_contract) continue;
    if (count == IR_COUNT(found)) return 0;
    found[count++] = node;
  }
  if (!count || !contract_may_stage(c, found[count - 1], group->hero)) return 0;
  if (count == 2 && contract_lane_operands(c->graph, found[0]) == 3) return 0;
  if (count == 2) *product = found[0];
  return found[count - 1];
}

bool contract_may_make_rows(const fusion_context *c, uint32_t product, const fusion_group *consumer) {
  uint32_t other;
  const uint32_t producer = contract_staged_producer(c, consumer, &other);
  return producer && !other && product < producer && ir_at(c->graph, product)->op == IR_OP_contract &&
         contract_lane_operands(c->graph, product) != 3;
}
