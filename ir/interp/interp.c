/* Runs a dispatch of a kernel: prepares memories, values and decoded steps once, then every group in turn. */
#include "ir/interp/private.h"

enum { DEFAULT_SUBGROUP = 4 };
static const uint64_t default_steps = 1000000000, shadow_bytes = (uint64_t)512 << 20;

/* ---- arguments ---- */
static double fact_value(const kir_scalar *s, const void *block) {
  const uint8_t *at = (const uint8_t *)block + s->offset;
  if (kir_base_bits(s->type.base) < 32 && !kir_is_float(s->type.base)) { /* narrow integers travel as 32 bits */
    uint32_t word;
    memcpy(&word, at, 4);
    return kir_is_signed(s->type.base) ? (double)(int32_t)word : (double)word;
  }
  return kvm_read_element(s->type.base, at);
}

static snt_result check_scalars(const kir_interp_info *info, snt_diag *diag) {
  const kir_kernel *k = info->kernel;
  for (uint32_t i = 0; i < k->scalars.count; i++) {
    const kir_scalar *s = &k->scalars.at[i];
    const uint32_t size = kir_base_bits(s->type.base) == 64 ? 8 : 4;
    if (!info->scalars || s->offset + size > info->scalar_bytes)
      return ir_fail(diag, SNT_E_ARG, "interpret", 0, "@%s: the scalar block misses %s", k->name, s->name);
    if (kir_is_float(s->type.base)) continue;
    const double v = fact_value(s, info->scalars);
    if ((s->min && v < (double)s->min) || (s->max && v > (double)s->max))
      return ir_fail(diag, SNT_E_ARG, "interpret", 0, "@%s: scalar %s is %.0f, outside its promised range", k->name, s->name, v);
    if (s->multiple_of > 1 && v / (double)s->multiple_of != (double)(int64_t)(v / (double)s->multiple_of))
      return ir_fail(diag, SNT_E_ARG, "interpret", 0, "@%s: scalar %s is %.0f, no multiple of %lld", k->name, s->name, v,
                     (long long)s->multiple_of);
  }
  return SNT_OK;
}

/* ---- preparing ---- */
static bool prepare_ids(kvm *vm) {
  vm->group_value = IR_NEW_ARRAY(vm->arena, uint32_t, vm->items);
  for (uint32_t i = 0; i < IR_COUNT(vm->ids); i++) vm->ids[i] = IR_NEW_ARRAY(vm->arena, uint32_t, vm->items);
  if (vm->arena->failed) return false;
  const uint32_t *n = vm->k->items;
  for (uint32_t i = 0; i < vm->items; i++) {
    vm->ids[0][i] = i % n[0];
    vm->ids[1][i] = i / n[0] % n[1];
    vm->ids[2][i] = i / n[0] / n[1];
    vm->ids[3][i] = i / vm->subgroup;
    vm->ids[4][i] = i % vm->subgroup;
    vm->ids[5][i] = vm->subgroups;
  }
  return true;
}

static uint32_t deepest(const kvm *vm) {
  uint32_t depth = 0, most = 0;
  for (uint32_t i = 1; i < vm->k->insts.count; i++) {
    const uint32_t op = kir_at(vm->k, i)->op;
    if (op == KIR_loop || op == KIR_if) depth++;
    if (op == KIR_end) depth--;
    if (depth > most) most = depth;
  }
  return most;
}

static bool prepare_masks(kvm *vm) {
  const uint32_t depth = deepest(vm) + 1;
  if ((uint64_t)depth * vm->items > (uint64_t)64 << 20) return false;
  vm->masks = IR_NEW_ARRAY(vm->arena, uint8_t *, depth);
  vm->actives = IR_NEW_ARRAY(vm->arena, uint32_t, depth);
  vm->address = IR_NEW_ARRAY(vm->arena, uint64_t, vm->items);
  vm->subgroup_sync = IR_NEW_ARRAY(vm->arena, uint32_t, vm->subgroups);
  for (uint32_t i = 0; i < depth && vm->masks; i++) vm->masks[i] = IR_NEW_ARRAY(vm->arena, uint8_t, vm->items);
  return !vm->arena->failed;
}

static snt_result prepare(kvm *vm) {
  const kir_interp_info *info = vm->info;
  vm->items = vm->k->items[0] * vm->k->items[1] * vm->k->items[2];
  vm->subgroup = vm->k->sub == 0 ? 1 : vm->k->sub != UINT32_MAX ? vm->k->sub : info->subgroup_size ? info->subgroup_size : DEFAULT_SUBGROUP;
  if (vm->subgroup > vm->items) vm->subgroup = vm->items;
  vm->subgroups = (vm->items + vm->subgroup - 1) / vm->subgroup;
  vm->shadow_left = shadow_bytes;
  if (info->groups >= KVM_ATOMIC - 1) return ir_fail(vm->diag, SNT_E_LIMIT, "interpret", 0, "@%s: too many groups", vm->k->name);
  if (!kir_find_regions(vm->k, vm->arena, &vm->regions) || !prepare_ids(vm) || !prepare_masks(vm))
    return ir_fail(vm->diag, SNT_E_HOST_MEM, "interpret", 0, "@%s: out of memory", vm->k->name);
  if (!kvm_check_fragment(vm)) return vm->result;
  SNT_TRY(kvm_prepare_memories(vm));
  SNT_TRY(kvm_prepare_values(vm));
  return kvm_prepare_steps(vm);
}

/* ---- running ---- */
static void begin_group(kvm *vm, uint64_t group) {
  vm->group = group;
  for (uint32_t i = 0; i < vm->items; i++) vm->group_value[i] = (uint32_t)group;
  for (uint32_t i = 0; i < vm->owned.count; i++) {
    kvm_region *r = vm->owned.at[i];
    if (r->written) memset(r->written, 0, r->bytes / r->granule);
  }
  vm->depth = 0;
  vm->mask = vm->masks[0];
  memset(vm->mask, 1, vm->items);
  vm->active = vm->actives[0] = vm->items;
  vm->clock++;
  vm->local_sync = vm->global_sync = vm->clock;
  vm->copies.count = vm->commits.count = 0;
  vm->pc = 0;
  vm->budget = vm->info->step_limit ? vm->info->step_limit : default_steps;
}

static bool run_group(kvm *vm) {
  uint64_t instructions = 0, flops = 0;
  bool fine = true;
  while (fine && vm->pc < vm->step_count) {
    const kvm_step *s = &vm->steps[vm->pc++];
    if (!vm->budget--) {
      kvm_fail(vm, s, KVM_NO_ITEM, SNT_E_LIMIT, "the step limit is reached in group %llu", (unsigned long long)vm->group);
      break;
    }
    if (!s->hidden) {
      instructions += vm->active, flops += (uint64_t)s->flops * vm->active;
      if (vm->info->insts) vm->info->insts[s->inst].runs += vm->active;
    }
    fine = s->run(vm, s);
    if (fine && s->fix) s->fix(s->dst, s->n);
  }
  vm->stats.instructions += instructions;
  vm->stats.flops += flops;
  return vm->result == SNT_OK;
}

static snt_result run(kvm *vm) {
  SNT_TRY(prepare(vm));
  const uint64_t all = vm->info->groups, count = vm->info->sample && vm->info->sample < all ? vm->info->sample : all;
  for (uint64_t i = 0; i < count; i++) {
    begin_group(vm, count == all ? i : count == 1 ? 0 : i * (all - 1) / (count - 1));
    if (!run_group(vm)) return vm->result;
  }
  return SNT_OK;
}

snt_result kir_interp_run(const kir_interp_info *info, const snt_host_alloc *host, kir_interp_stats *stats, snt_diag *diag) {
  const kir_kernel *k = info->kernel;
  SNT_TRY(kir_verify(k, NULL, diag));
  SNT_TRY(check_scalars(info, diag));
  ir_arena arena;
  ir_arena_init(&arena, host);
  kvm *vm = IR_NEW(&arena, kvm);
  snt_result result = SNT_E_HOST_MEM;
  if (vm) {
    *vm = (kvm){.k = k, .info = info, .arena = &arena, .diag = diag};
    result = run(vm);
    if (!result && arena.failed) result = SNT_E_HOST_MEM;
    if (stats) *stats = vm->stats;
  }
  if (result == SNT_E_HOST_MEM) ir_fail(diag, result, "interpret", 0, "@%s: out of memory", k->name);
  ir_arena_free(&arena);
  return result;
}
