/* Loops, branches and barriers under a mask. Loop bounds are read once; an item that is done waits while the others go on. */
#include "ir/interp/private.h"
#include <stdio.h>

bool kvm_fail(kvm *vm, const kvm_step *s, uint32_t item, snt_result result, const char *format, ...) {
  if (vm->result) return false;
  char text[200], where[100] = "";
  va_list list;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  const uint32_t *n = vm->k->items;
  if (item != KVM_NO_ITEM)
    snprintf(where, sizeof where, ", item (%u,%u,%u) of group %llu", item % n[0], item / n[0] % n[1], item / n[0] / n[1],
             (unsigned long long)vm->group);
  const uint32_t inst = s ? s->inst : 0;
  vm->result = ir_fail(vm->diag, result, "interpret", inst, "@%s: instruction %u (%s)%s: %s", vm->k->name, inst,
                       inst ? kir_ops[kir_at(vm->k, inst)->op].name : "none", where, text);
  return false;
}

/* ---- copies between values ---- */
static size_t move_bytes(const kvm *vm, const kvm_move *m) {
  return m->fragment ? (size_t)vm->subgroups * m->fragment : (size_t)vm->items * m->lanes * m->bytes;
}

static void copy_value(const kvm *vm, const kvm_move *m, const void *from, bool masked) {
  if (!masked) {
    memcpy(m->to, from, move_bytes(vm, m));
    return;
  }
  for (uint32_t n = 0; n < vm->subgroups && m->fragment; n++)
    if (vm->mask[n * vm->subgroup])
      memcpy((uint8_t *)m->to + (size_t)n * m->fragment, (const uint8_t *)from + (size_t)n * m->fragment, m->fragment);
  for (uint32_t lane = 0; lane < m->lanes && !m->fragment; lane++)
    for (uint32_t i = 0; i < vm->items; i++) {
      const size_t at = ((size_t)lane * vm->items + i) * m->bytes;
      if (vm->mask[i]) memcpy((uint8_t *)m->to + at, (const uint8_t *)from + at, m->bytes);
    }
}

/* Where a source is also a destination, all sources are set aside first. */
static void run_moves(const kvm *vm, const kvm_moves *moves, bool masked) {
  uint8_t *stage = vm->staging;
  for (uint32_t i = 0; i < moves->count && moves->staged; i++) {
    memcpy(stage, moves->at[i].from, move_bytes(vm, &moves->at[i]));
    stage += move_bytes(vm, &moves->at[i]);
  }
  stage = vm->staging;
  for (uint32_t i = 0; i < moves->count; i++) {
    copy_value(vm, &moves->at[i], moves->staged ? stage : moves->at[i].from, masked);
    if (moves->staged) stage += move_bytes(vm, &moves->at[i]);
  }
}

bool kvm_run_moves(kvm *vm, const kvm_step *s) {
  run_moves(vm, s->state, !kvm_is_full(vm));
  return true;
}

bool kvm_run_nothing(kvm *vm, const kvm_step *s) {
  (void)vm;
  (void)s;
  return true;
}

/* ---- masks ---- */
static void push_mask(kvm *vm) {
  vm->actives[vm->depth] = vm->active;
  vm->depth++;
  vm->mask = vm->masks[vm->depth];
}

static void pop_mask(kvm *vm) {
  vm->depth--;
  vm->mask = vm->masks[vm->depth];
  vm->active = vm->actives[vm->depth];
}

bool kvm_run_if(kvm *vm, const kvm_step *s) {
  const uint32_t *condition = s->a;
  const uint8_t *outer = vm->mask;
  push_mask(vm);
  uint32_t active = 0;
  for (uint32_t i = 0; i < vm->items; i++) active += vm->mask[i] = outer[i] && condition[i];
  vm->active = active;
  if (!active) vm->pc = s->jump;
  return true;
}

bool kvm_run_else(kvm *vm, const kvm_step *s) {
  const uint8_t *outer = vm->masks[vm->depth - 1];
  uint32_t active = 0;
  for (uint32_t i = 0; i < vm->items; i++) active += vm->mask[i] = outer[i] && !vm->mask[i];
  vm->active = active;
  if (!active) vm->pc = s->jump;
  return true;
}

bool kvm_run_endif(kvm *vm, const kvm_step *s) {
  (void)s;
  pop_mask(vm);
  return true;
}

/* ---- loops ---- */
static uint64_t count_trips(kvm_kind kind, int64_t lo, int64_t hi, int64_t step) {
  if (kind == KVM_U64) {
    const uint64_t from = (uint64_t)lo, to = (uint64_t)hi, by = (uint64_t)step;
    return from < to && by ? (to - from - 1) / by + 1 : 0;
  }
  return lo < hi ? ((uint64_t)hi - (uint64_t)lo - 1) / (uint64_t)step + 1 : 0;
}

static void set_variable(const kvm *vm, kvm_loop *l) {
  for (uint32_t i = 0; i < vm->items; i++) {
    const uint64_t v = (uint64_t)l->start[i] + (uint64_t)l->stride[i] * l->trip;
    if (kvm_kind_bytes(l->kind) == 8) ((uint64_t *)l->variable)[i] = v;
    else ((uint32_t *)l->variable)[i] = (uint32_t)v;
  }
}

static void mask_trip(kvm *vm, const kvm_loop *l) {
  const uint8_t *outer = vm->masks[vm->depth - 1];
  uint32_t active = 0;
  for (uint32_t i = 0; i < vm->items; i++) active += vm->mask[i] = outer[i] && l->trip < l->trips[i];
  vm->active = active;
}

bool kvm_run_loop(kvm *vm, const kvm_step *s) {
  kvm_loop *l = s->state;
  run_moves(vm, &l->initial, false);
  l->trip = l->most = 0;
  l->same_trips = true;
  bool first = true;
  for (uint32_t i = 0; i < vm->items; i++) {
    l->start[i] = kvm_get_int(l->lo, l->kind, i);
    l->stride[i] = kvm_get_int(l->step, l->kind, i);
    l->trips[i] = 0;
    if (!vm->mask[i]) continue;
    if (l->stride[i] == 0 || (l->stride[i] < 0 && l->kind != KVM_U64)) return kvm_fail(vm, s, i, SNT_E_ARG, "the step is not positive");
    l->trips[i] = count_trips(l->kind, l->start[i], kvm_get_int(l->hi, l->kind, i), l->stride[i]);
    if (!l->trips[i] && l->at_least_once) return kvm_fail(vm, s, i, SNT_E_ARG, "the loop is promised a trip, but makes none");
    if (!first && l->trips[i] != l->most) l->same_trips = false;
    if (l->trips[i] > l->most) l->most = l->trips[i];
    first = false;
  }
  if (!l->most) {
    vm->pc = s->jump;
    return true;
  }
  push_mask(vm);
  mask_trip(vm, l);
  set_variable(vm, l);
  return true;
}

bool kvm_run_next(kvm *vm, const kvm_step *s) {
  kvm_loop *l = s->state;
  run_moves(vm, &l->next, !l->same_trips);
  if (++l->trip >= l->most) {
    pop_mask(vm);
    return true;
  }
  if (!l->same_trips) mask_trip(vm, l);
  set_variable(vm, l);
  vm->pc = s->jump;
  return true;
}

/* ---- barriers ---- */
bool kvm_run_barrier(kvm *vm, const kvm_step *s) {
  if (!kvm_is_full(vm)) {
    uint32_t missing = 0;
    while (vm->mask[missing]) missing++;
    return kvm_fail(vm, s, missing, SNT_E_ARG, "%u of %u items come here; this one does not", vm->active, vm->items);
  }
  vm->clock++;
  if (s->mode & KIR_SYNC_LOCAL) vm->local_sync = vm->clock;
  if (s->mode & KIR_SYNC_GLOBAL) vm->global_sync = vm->clock;
  vm->stats.barriers++;
  return true;
}

bool kvm_subgroup_together(kvm *vm, const kvm_step *s, uint32_t subgroup, bool *active) {
  const uint32_t first = subgroup * vm->subgroup, end = first + vm->subgroup < vm->items ? first + vm->subgroup : vm->items;
  *active = vm->mask[first];
  for (uint32_t i = first; i < end; i++)
    if ((vm->mask[i] != 0) != *active)
      return kvm_fail(vm, s, *active ? i : first, SNT_E_ARG, "some items of the subgroup come here; this one does not");
  return true;
}

bool kvm_run_subgroup_barrier(kvm *vm, const kvm_step *s) {
  vm->clock++;
  for (uint32_t n = 0; n < vm->subgroups; n++) {
    bool active;
    if (!kvm_subgroup_together(vm, s, n, &active)) return false;
    if (active) vm->subgroup_sync[n] = vm->clock;
  }
  return true;
}
