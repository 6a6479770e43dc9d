/* Combination of one value an item over a workgroup: by subgroup operations, whose results meet in local memory where the group is several subgroups; a
   tree in local memory where the size of subgroups is not known, or where those whose values are combined stand below each other (items of the second
   dimension), each column with a tree of its own. */
#include "fusion/emit_private.h"

static kir_op subgroup_op(kir_op combine) {
  switch (combine) {
  case KIR_add: return KIR_sg_add;
  case KIR_max: return KIR_sg_max;
  case KIR_min: return KIR_sg_min;
  default: return KIR_NONE;
  }
}

static uint32_t local_cells(emit *e, kir_type type, uint32_t items) {
  char name[24];
  const int length = snprintf(name, sizeof name, "part%u", e->k->memories.count);
  kir_memory m = {
      .name = ir_arena_text(e->arena, name, (size_t)length), .space = KIR_LOCAL, .access = KIR_READ | KIR_WRITE, .rank = 1, .type = type};
  m.dims[0] = items;
  return kir_memory_add(e->k, &m);
}

static uint32_t number(emit *e, int64_t value) { return kir_const_int(e->k, kir_t(SNT_U32, 1), value); }

/* Every item adds what the subgroups have, in their order, so that one barrier is enough. */
static uint32_t join_subgroups(emit *e, kir_op combine, uint32_t own, uint32_t items) {
  kir_kernel *k = e->k;
  const uint32_t memory = local_cells(e, emit_value_type(e, own), items), first = number(e, 0), subgroup = kir_id(k, KIR_sg_id, 0);
  const uint32_t leads = kir_if(k, kir_2(k, KIR_eq, kir_id(k, KIR_sg_lane, 0), first));
  kir_store(k, memory, 1, &subgroup, own);
  kir_if_end(k, leads, 0, NULL, NULL);
  kir_barrier(k, KIR_SYNC_LOCAL);
  uint32_t carried, all = kir_load(k, memory, 1, 1, &first);
  const uint32_t step = number(e, 1), count = kir_id(k, KIR_sg_count, 0);
  const uint32_t i = kir_loop(k, number(e, 1), count, step, 1, &all, &carried, 0, 0);
  const uint32_t next = kir_2(k, combine, carried, kir_load(k, memory, 1, 1, &i));
  kir_loop_end(k, i, 1, &next, &all);
  return all;
}

uint32_t emit_group_combine(emit *e, kir_op combine, uint32_t value, uint32_t items) {
  if (e->failed || e->k->failed || items == 1) return value;
  const cost_profile *p = e->c->options->profile;
  const kir_op across = subgroup_op(combine);
  const kir_type type = emit_value_type(e, value);
  const uint32_t beside = e->k->items[1] > 1 ? e->k->items[0] : 1;
  const bool subgroups = beside == 1 && across != KIR_NONE && p->caps.subgroup_arithmetic && type.base == SNT_F32 && type.lanes == 1 &&
                         !fusion_keeps_order(e->c->options); /* else by halves, as everywhere */
  if (subgroups && p->caps.subgroup_size == items) {
    e->k->sub = items;
    return kir_1(e->k, across, value);
  }
  if (subgroups && p->subgroup_min > 1 && items >= p->subgroup_min) {
    e->k->sub = UINT32_MAX; /* right for any size, also where a target without subgroups takes every item for one */
    return join_subgroups(e, combine, kir_1(e->k, across, value), items);
  }
  const int64_t cell = (int64_t)beside * type.lanes, one[2] = {type.lanes, cell};
  const uint32_t memory = local_cells(e, kir_t(type.base, 1), items * (uint32_t)cell), down = kir_id(e->k, KIR_local, beside > 1);
  const uint32_t own[2] = {kir_id(e->k, KIR_local, 0), down}, at = kir_ix(e->k, beside > 1 ? 2 : 1, one, own, 0);
  kir_store(e->k, memory, 1, &at, value);
  kir_barrier(e->k, KIR_SYNC_LOCAL);
  uint32_t reach = 1;
  while (reach < items) reach *= 2;
  for (reach /= 2; reach; reach /= 2) {
    uint32_t near = kir_2(e->k, KIR_lt, down, number(e, reach));
    const uint32_t far = kir_ix(e->k, 1, (int64_t[]){1}, &at, reach * cell);
    if (reach * 2 > items) near = kir_2(e->k, KIR_and, near, kir_2(e->k, KIR_lt, far, number(e, items * cell)));
    const uint32_t opened = kir_if(e->k, near);
    const uint32_t a = kir_load(e->k, memory, type.lanes, 1, &at), b = kir_load(e->k, memory, type.lanes, 1, &far);
    kir_store(e->k, memory, 1, &at, kir_2(e->k, combine, a, b));
    kir_if_end(e->k, opened, 0, NULL, NULL);
    kir_barrier(e->k, KIR_SYNC_LOCAL);
  }
  const uint32_t first = beside > 1 ? kir_ix(e->k, 1, one, own, 0) : number(e, 0);
  return kir_load(e->k, memory, type.lanes, 1, &first);
}
