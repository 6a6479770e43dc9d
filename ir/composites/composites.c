/* The table of composites and the call of one: operands and parameters are checked here, the nodes that it made are named here. */
#include "ir/composites/private.h"

#define P(key) (UINT64_C(1) << IR_PARAM_##key)
_Static_assert(IR_PARAM_COUNT <= 64, "parameter masks are 64 bits");

const ir_composite_info ir_composites[IR_COMPOSITE_COUNT] = {
    [IR_COMPOSITE_NONE] = {.name = "none"},
#define COMPOSITE(id, least, most, result_count, keys, words) \
  [IR_COMPOSITE_##id] = {.name = #id, .min_args = least, .max_args = most, .results = result_count, .params = keys},
#include "ir/composites.def"
#undef COMPOSITE
};

static const composite_build builders[IR_COMPOSITE_COUNT] = {
#define COMPOSITE(id, ...) [IR_COMPOSITE_##id] = build_##id,
#include "ir/composites.def"
#undef COMPOSITE
};

ir_composite ir_composite_find(const char *name, size_t length) {
  for (uint32_t i = 1; i < IR_COMPOSITE_COUNT; i++)
    if (strlen(ir_composites[i].name) == length && memcmp(ir_composites[i].name, name, length) == 0) return (ir_composite)i;
  return IR_COMPOSITE_NONE;
}

static bool read_params(composite_call *c, uint32_t count, const ir_param *params) {
  for (uint32_t i = 0; i < count; i++) {
    const uint8_t key = params[i].key;
    if (key == 0 || key >= IR_PARAM_COUNT || !(c->info->params >> key & 1))
      return call_mistake(c, "takes no parameter %s", key < IR_PARAM_COUNT ? ir_param_infos[key].name : "of that number"), false;
    if (c->params[key]) return call_mistake(c, "parameter %s is given twice", ir_param_infos[key].name), false;
    const uint8_t kind = ir_param_infos[key].kind;
    if ((kind == IR_KIND_INT || kind == IR_KIND_DTYPE) && params[i].count != 1)
      return call_mistake(c, "parameter %s has %u values", ir_param_infos[key].name, params[i].count), false;
    if (kind == IR_KIND_WORD && !params[i].word) return call_mistake(c, "parameter %s has no text", ir_param_infos[key].name), false;
    c->params[key] = &params[i];
  }
  return true;
}

static bool read_args(composite_call *c, uint32_t count, const uint32_t *args) {
  if (count < c->info->min_args || count > c->info->max_args)
    return call_mistake(c, "%u operands, %u to %u are needed", count, c->info->min_args, c->info->max_args), false;
  c->arg_count = count;
  for (uint32_t i = 0; i < count; i++) {
    c->args[i] = args[i];
    if (!args[i] && i >= c->info->min_args) continue;
    if (!graph_check_values(c->g, c->info->name, 1, &args[i])) return false;
  }
  return true;
}

/* Names and origins of the nodes from `first` on. */
static void sign_nodes(composite_call *c, uint32_t first, const char *name) {
  const uint32_t text = name && *name && first < c->g->nodes.count ? ir_name_add(c->g, name, strlen(name)) : 0;
  for (uint32_t n = first; n < c->g->nodes.count; n++) {
    ir_node *node = &c->g->nodes.at[n];
    node->name = node->op == IR_OP_const && node->type.rank == 0 ? 0 : text;
    node->origin = c->results[0];
  }
}

uint32_t ir_add_composite(ir_graph *g, const ir_composite_desc *desc, uint32_t *results) {
  if (desc->which <= IR_COMPOSITE_NONE || desc->which >= IR_COMPOSITE_COUNT)
    return graph_mistake(g, SNT_E_ARG, "unknown composite %d", (int)desc->which);
  composite_call c = {.g = g, .info = &ir_composites[desc->which]};
  const uint32_t first = g->nodes.count;
  for (uint32_t i = 0; results && i < c.info->results; i++) results[i] = 0;
  if (!graph_alive(g) || !read_args(&c, desc->arg_count, desc->args) || !read_params(&c, desc->param_count, desc->params)) return 0;
  builders[desc->which](&c);
  if (!graph_alive(g)) return 0;
  sign_nodes(&c, first, desc->name);
  for (uint32_t i = 0; results && i < c.info->results; i++) results[i] = c.results[i];
  return c.results[0];
}
