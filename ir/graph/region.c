/* repeat: a region opened, filled by the ordinary builder functions, and closed by the values that the next trip starts from.
   The repeat node comes after its body in the array; inside, `argument` nodes stand for the carried values. */
#include "ir/graph_private.h"

enum { MAX_CARRIED = 255 };

uint32_t ir_repeat_begin(ir_graph *g, uint32_t count, const uint32_t *initial, ir_expr trips, uint32_t *inside) {
  for (uint32_t i = 0; i < count; i++) inside[i] = 0;
  if (count == 0 || count > MAX_CARRIED) return graph_mistake(g, SNT_E_ARG, "repeat: %u carried values", count);
  if (!graph_check_values(g, "repeat", count, initial)) return 0;
  const ir_region region = {.parent = g->open_region, .count = count, .initial = g->yields.count, .trips = trips};
  for (uint32_t i = 0; i < count; i++)
    if (!IR_PUSH(g->arena, &g->yields, initial[i])) return graph_mistake(g, SNT_E_HOST_MEM, "out of memory");
  if (!IR_PUSH(g->arena, &g->regions, region)) return graph_mistake(g, SNT_E_HOST_MEM, "out of memory");
  g->open_region = g->regions.count - 1;
  for (uint32_t i = 0; i < count; i++) {
    const ir_expr index = i;
    const ir_attr_value attr = {IR_ATTR_index, 1, &index};
    const ir_tensor type = ir_at(g, initial[i])->type;
    inside[i] = ir_add_node(g, IR_OP_argument, 0, NULL, 1, &attr, &type);
  }
  return g->failed ? 0 : g->open_region;
}

void ir_repeat_while(ir_graph *g, uint32_t carried) {
  g->regions.at[g->open_region].goes_on = (ir_expr)carried + 1; /* outside of all: of region 0, which nobody reads */
}

static uint32_t put_repeat(ir_graph *g, uint32_t region_number, uint32_t count, const bool *unused, uint32_t *results) {
  const ir_region *region = &g->regions.at[region_number];
  uint32_t initial[MAX_CARRIED];
  memcpy(initial, &g->yields.at[region->initial], count * sizeof *initial);
  const ir_expr number = region_number, trips = region->trips;
  const ir_expr flag = region->goes_on - 1;
  const ir_attr_value attrs[] = {{IR_ATTR_region, 1, &number}, {IR_ATTR_trips, 1, &trips}, {IR_ATTR_while, 1, &flag}};
  g->open_region = region->parent;
  results[0] = ir_add_node(g, IR_OP_repeat, count, initial, region->goes_on ? 3 : 2, attrs, NULL);
  for (uint32_t i = 1; i < count; i++) {
    const ir_expr index = i;
    const ir_attr_value attr = {IR_ATTR_index, 1, &index};
    if (unused && unused[i]) continue;
    results[i] = ir_add_node(g, IR_OP_pick, 1, results, 1, &attr, NULL);
  }
  return results[0];
}

uint32_t graph_repeat_end(ir_graph *g, uint32_t count, const uint32_t *next, const bool *unused, uint32_t *results) {
  for (uint32_t i = 0; i < count; i++) results[i] = 0;
  if (!graph_check_values(g, "yield", count, next)) return 0;
  const uint32_t number = g->open_region;
  if (number == 0) return graph_mistake(g, SNT_E_ORDER, "yield: no repeat is open");
  ir_region *region = &g->regions.at[number];
  if (count != region->count) return graph_mistake(g, SNT_E_ARG, "yield: %u values for %u carried ones", count, region->count);
  region->first = g->yields.count;
  for (uint32_t i = 0; i < count; i++) {
    const ir_tensor *is = &ir_at(g, next[i])->type, *want = &ir_at(g, g->yields.at[region->initial + i])->type;
    if (is->dtype != want->dtype || !ir_same_shape(is, want))
      return graph_mistake(g, SNT_E_SHAPE, "yield: value %u (node %u) has not the type of its initial value", i + 1, next[i]);
  }
  for (uint32_t i = 0; i < count; i++)
    if (!IR_PUSH(g->arena, &g->yields, next[i])) return graph_mistake(g, SNT_E_HOST_MEM, "out of memory");
  uint32_t repeat = put_repeat(g, number, count, unused, results);
  g->regions.at[number].owner = repeat;
  return repeat;
}

uint32_t ir_repeat_end(ir_graph *g, uint32_t count, const uint32_t *next, uint32_t *results) {
  return graph_repeat_end(g, count, next, NULL, results);
}
