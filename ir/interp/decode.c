/* Decodes a kernel into steps whose operands are addresses: nothing about types or places is left to ask while running. */
#include "ir/interp/private.h"

typedef struct decoder {
  kvm *vm;
  const kir_kernel *k;
  IR_VEC(kvm_step) steps;
  uint32_t *step_of; /* the step of a region's opener */
  size_t staging;
} decoder;

static snt_result no_memory(const decoder *d) {
  return ir_fail(d->vm->diag, SNT_E_HOST_MEM, "interpret", 0, "@%s: out of memory", d->k->name);
}

static bool push(decoder *d, const kvm_step *s) { return IR_PUSH(d->vm->arena, &d->steps, *s); }

/* Operands beyond the last repeat the first, so that every operation can read three. */
static kvm_step basic_step(const decoder *d, uint32_t i) {
  const kir_inst *in = kir_at(d->k, i);
  kvm_step s = {
      .inst = i, .dst = d->vm->values[i], .base = in->type.base, .lanes = in->type.lanes, .bits = (uint8_t)kir_base_bits(in->type.base)};
  const void *args[3] = {NULL, NULL, NULL};
  for (uint32_t n = 0; n < 3; n++) args[n] = n < in->arg_count ? d->vm->values[kir_arg(d->k, i, n)] : args[0];
  s.a = args[0], s.b = args[1], s.c = args[2];
  s.kind = (uint8_t)kvm_kind_of(in->type.base < SNT_DTYPE_COUNT ? in->type.base : 0);
  s.n = d->vm->items * in->type.lanes;
  s.mode = (uint8_t)in->flags;
  if (in->arg_count) {
    const kir_type first = kir_type_of(d->k, kir_arg(d->k, i, 0));
    s.from_base = first.base;
    s.from = first.lanes;
  }
  return s;
}

/* ---- arithmetic ---- */
static uint32_t flops_of(const kir_inst *in, kvm_kind kind) {
  if (kind > KVM_F64) return 0;
  switch (in->op) {
  case KIR_fma: return 2u * in->type.lanes;
  case KIR_neg:
  case KIR_abs:
  case KIR_isnan:
  case KIR_isinf: return 0;
  default: return kir_ops[in->op].result == KIR_R_BOOLS ? 0 : in->type.lanes;
  }
}

static bool add_arithmetic(decoder *d, uint32_t i) {
  const kir_inst *in = kir_at(d->k, i);
  kvm_step s = basic_step(d, i);
  s.kind = (uint8_t)kvm_kind_of(s.from_base); /* of the operands: comparisons give bool */
  s.base = s.from_base;
  s.bits = (uint8_t)kir_base_bits(s.from_base);
  const uint32_t op = in->op == KIR_gt ? KIR_lt : in->op == KIR_ge ? KIR_le : in->op; /* a > b is b < a */
  if (op != in->op) {
    const void *a = s.a;
    s.a = s.b, s.b = a;
  }
  s.run = kvm_arithmetic(op, (kvm_kind)s.kind, s.base);
  if (!s.run) s.run = kvm_math(in->op, (kvm_kind)s.kind);
  if (kir_ops[in->op].result == KIR_R_ARG0 && s.base != SNT_BOOL) s.fix = kvm_fix_for(s.base);
  s.flops = flops_of(in, (kvm_kind)s.kind);
  if (in->type.frag) {
    const uint32_t elements = kvm_fragment_elements(d->vm, in->type.frag);
    s.n = d->vm->subgroups * elements;
    s.flops = elements / d->vm->subgroup;
  }
  const bool divides = (op == KIR_udiv || op == KIR_umod) && s.kind == KVM_U32;
  if (divides || ((kir_ops[op].attrs & KA_MATH) && (in->flags & KIR_HAS_DOM))) {
    kvm_step check = s;
    check.run = divides ? kvm_check_divisor : kvm_check_domain;
    check.fix = NULL;
    check.hidden = true;
    if (!push(d, &check)) return false;
  }
  return push(d, &s);
}

static bool add_conversion(decoder *d, uint32_t i) {
  const kir_inst *in = kir_at(d->k, i);
  kvm_step s = basic_step(d, i);
  const kir_type from = kir_type_of(d->k, kir_arg(d->k, i, 0));
  s.run = kvm_conversion(in, from);
  s.from = (uint8_t)kvm_kind_of(from.base);
  if (in->op == KIR_cast && s.base != SNT_BOOL) s.fix = kvm_fix_for(s.base);
  if (in->op == KIR_pack2 || in->op == KIR_unpack2) s.mode = (uint8_t)in->index;
  return push(d, &s);
}

/* ---- index sums ---- */
typedef struct sum_term {
  const void *values;
  uint64_t factor;
} sum_term;
typedef struct sum {
  uint32_t count;
  uint64_t constant;
  sum_term terms[];
} sum;

static bool run_sum32(kvm *vm, const kvm_step *s) {
  const sum *sum = s->state;
  uint32_t *to = s->dst;
  for (uint32_t i = 0; i < vm->items; i++) to[i] = (uint32_t)sum->constant;
  for (uint32_t n = 0; n < sum->count; n++) {
    const uint32_t *values = sum->terms[n].values, factor = (uint32_t)sum->terms[n].factor;
    for (uint32_t i = 0; i < vm->items; i++) to[i] += factor * values[i];
  }
  return true;
}

static bool run_sum64(kvm *vm, const kvm_step *s) {
  const sum *sum = s->state;
  uint64_t *to = s->dst;
  for (uint32_t i = 0; i < vm->items; i++) to[i] = sum->constant;
  for (uint32_t n = 0; n < sum->count; n++) {
    const uint64_t *values = sum->terms[n].values, factor = sum->terms[n].factor;
    for (uint32_t i = 0; i < vm->items; i++) to[i] += factor * values[i];
  }
  return true;
}

static bool add_sum(decoder *d, uint32_t i) {
  const kir_inst *in = kir_at(d->k, i);
  kvm_step s = basic_step(d, i);
  sum *sum = ir_arena_take(d->vm->arena, sizeof *sum + in->arg_count / 2u * sizeof *sum->terms, 8);
  if (!sum) return false;
  sum->count = in->arg_count / 2u;
  sum->constant = (uint64_t)in->imm.i;
  for (uint32_t n = 0; n < sum->count; n++) {
    const uint32_t factor = kir_arg(d->k, i, 2 * n), value = kir_arg(d->k, i, 2 * n + 1);
    sum->terms[n].factor = (uint64_t)kvm_get_int(d->vm->values[factor], kvm_kind_of(kir_type_of(d->k, factor).base), 0);
    sum->terms[n].values = d->vm->values[value];
  }
  s.state = sum;
  s.run = kvm_kind_bytes((kvm_kind)s.kind) == 8 ? run_sum64 : run_sum32;
  return push(d, &s);
}

/* ---- memory ---- */
static bool make_access(const decoder *d, uint32_t i, uint32_t memory, uint32_t first, uint32_t count, kvm_access *a) {
  const kir_inst *in = kir_at(d->k, i);
  *a = (kvm_access){.memory = &d->vm->memories[memory], .count = count, .lanes = 1, .stride = 1};
  for (uint32_t n = 0; n < count; n++) {
    const uint32_t value = kir_arg(d->k, i, first + n);
    a->index[n] = d->vm->values[value];
    a->index_kind[n] = (uint8_t)kvm_kind_of(kir_type_of(d->k, value).base);
  }
  const kir_memory *m = a->memory->decl;
  if (in->op == KIR_load || in->op == KIR_store) {
    a->lanes = m->type.lanes > 1 ? m->type.lanes : in->type.lanes;
    a->stride = in->lanes > 1 && m->type.lanes == 1 ? (uint32_t)in->lanes : 1;
    a->align = in->align;
  } else if (in->op == KIR_mma_load || in->op == KIR_mma_store) {
    a->stride = (uint32_t)in->lanes;
  } else if (in->op == KIR_async_copy) {
    if ((uint32_t)in->lanes % a->memory->bytes)
      return kvm_fail(d->vm, &(kvm_step){.inst = i}, KVM_NO_ITEM, SNT_E_ARG, "bytes is no multiple of the element");
    a->lanes = (uint32_t)in->lanes / a->memory->bytes;
    a->align = (uint32_t)in->lanes;
  }
  const bool based = m->space == KIR_GLOBAL || m->space == KIR_LOCAL || m->space == KIR_SCRATCH;
  if (based && a->align > m->align)
    return kvm_fail(d->vm, &(kvm_step){.inst = i}, KVM_NO_ITEM, SNT_E_ARG, "alignment %u is promised, but the base of %%%s has %u",
                    a->align, m->name, m->align);
  return true;
}

/* The value that a store, fill or atomic takes follows the indices. */
static void set_values(const decoder *d, kvm_step *s, uint32_t indices) {
  const kir_inst *in = kir_at(d->k, s->inst);
  if (indices < in->arg_count) {
    const uint32_t value = kir_arg(d->k, s->inst, indices);
    s->a = d->vm->values[value];
    s->base = kir_type_of(d->k, value).base;
    s->kind = (uint8_t)kvm_kind_of(s->base);
    if (in->op == KIR_mma_store) s->mode = kir_type_of(d->k, value).frag;
  }
  s->b = indices + 1 < in->arg_count ? d->vm->values[kir_arg(d->k, s->inst, indices + 1)] : NULL;
}

static kvm_fn memory_fn(const kir_inst *in, const kir_memory *m) {
  const bool cell = m->type.frag != 0;
  switch (in->op) {
  case KIR_load: return cell ? kvm_run_fragment_cell : kvm_run_load;
  case KIR_store: return cell ? kvm_run_fragment_cell : kvm_run_store;
  case KIR_fill: return cell ? kvm_run_fragment_cell : kvm_run_fill;
  case KIR_prefetch: return kvm_run_nothing; /* may lie out of range */
  case KIR_async_copy: return kvm_run_async_copy;
  case KIR_mma_load: return kvm_run_mma_load;
  case KIR_mma_store: return kvm_run_mma_store;
  default: return kvm_run_atomic;
  }
}

static bool add_memory(decoder *d, uint32_t i) {
  const kir_inst *in = kir_at(d->k, i);
  kvm_step s = basic_step(d, i);
  const bool async = in->op == KIR_async_copy;
  const uint32_t indices = kir_index_count(in) - (async ? 1u : 0u); /* a copy's last is of the source */
  kvm_access *a = IR_NEW_ARRAY(d->vm->arena, kvm_access, 2);
  if (!a) return false;
  s.state = a;
  s.run = memory_fn(in, &d->k->memories.at[in->index]);
  if (in->op == KIR_prefetch) return push(d, &s);
  if (!make_access(d, i, in->index, 0, indices, a)) return false;
  if (async && !make_access(d, i, in->index2, indices, 1, a + 1)) return false;
  if (in->op == KIR_mma_load) s.mode = in->type.frag;
  set_values(d, &s, indices + async);
  return push(d, &s);
}

static bool add_image(decoder *d, uint32_t i) {
  kvm_step s = basic_step(d, i);
  const kir_inst *in = kir_at(d->k, i);
  s.state = &d->vm->memories[in->index];
  s.run = kvm_image_fn(in->op);
  if (in->op == KIR_tex_store) s.kind = (uint8_t)kvm_kind_of(kir_type_of(d->k, kir_arg(d->k, i, 2)).base);
  return push(d, &s);
}

/* ---- regions ---- */
static bool make_moves(decoder *d, kvm_moves *moves, uint32_t count, const uint32_t *from, uint32_t first_to) {
  size_t bytes = 0;
  *moves = (kvm_moves){.count = count, .at = IR_NEW_ARRAY(d->vm->arena, kvm_move, count)};
  if (!moves->at) return false;
  for (uint32_t n = 0; n < count; n++) {
    const kir_type t = kir_type_of(d->k, first_to + n);
    const uint32_t each = kvm_kind_bytes(kvm_kind_of(t.base)), fragment = t.frag ? each * kvm_fragment_elements(d->vm, t.frag) : 0;
    moves->at[n] = (kvm_move){d->vm->values[first_to + n], d->vm->values[from[n]], t.lanes, each, fragment};
    bytes += fragment ? (size_t)fragment * d->vm->subgroups : (size_t)d->vm->items * t.lanes * each;
    for (uint32_t m = 0; m < count; m++) moves->staged |= m != n && from[n] == first_to + m;
  }
  if (moves->staged && bytes > d->staging) d->staging = bytes;
  return true;
}

static bool add_loop(decoder *d, uint32_t i) {
  const kir_inst *in = kir_at(d->k, i);
  kvm_step s = basic_step(d, i);
  kvm_loop *l = IR_NEW(d->vm->arena, kvm_loop);
  if (!l) return false;
  const uint32_t end = d->vm->regions.close[i], carried = in->arg_count - 3u;
  *l = (kvm_loop){
      .lo = s.a, .hi = s.b, .step = s.c, .variable = s.dst, .kind = (kvm_kind)s.kind, .at_least_once = (in->flags & KIR_LOOP_TRIP1) != 0};
  l->start = IR_NEW_ARRAY(d->vm->arena, int64_t, d->vm->items);
  l->stride = IR_NEW_ARRAY(d->vm->arena, int64_t, d->vm->items);
  l->trips = IR_NEW_ARRAY(d->vm->arena, uint64_t, d->vm->items);
  if (d->vm->arena->failed || !make_moves(d, &l->initial, carried, d->k->args.at + in->args + 3, i + 1)) return false;
  if (carried && !make_moves(d, &l->next, carried, d->k->args.at + kir_at(d->k, end - 1)->args, i + 1)) return false;
  l->initial.staged = false; /* initial values are older than the carries */
  s.state = l;
  s.run = kvm_run_loop;
  d->step_of[i] = d->steps.count;
  return push(d, &s);
}

static bool add_if(decoder *d, uint32_t i) {
  kvm_step s = basic_step(d, i);
  s.run = kvm_run_if;
  d->step_of[i] = d->steps.count;
  return push(d, &s);
}

static bool add_else(decoder *d, uint32_t i) {
  const kvm_step s = {.run = kvm_run_else, .inst = i, .hidden = true};
  d->step_of[i] = d->steps.count;
  d->steps.at[d->step_of[kir_at(d->k, i)->index]].jump = d->steps.count;
  return push(d, &s);
}

/* Yields of an if are copied where they stand; those of a loop when its trip ends. */
static bool add_yield(decoder *d, uint32_t i) {
  const kir_inst *in = kir_at(d->k, i);
  uint32_t opener = d->vm->regions.parent[i];
  if (kir_at(d->k, opener)->op == KIR_loop) return true;
  uint32_t end = d->vm->regions.close[opener];
  if (kir_at(d->k, end)->op == KIR_else) end = d->vm->regions.close[end];
  kvm_moves *moves = IR_NEW(d->vm->arena, kvm_moves);
  const kvm_step s = {.run = kvm_run_moves, .inst = i, .state = moves, .hidden = true};
  return moves && make_moves(d, moves, in->arg_count, d->k->args.at + in->args, end + 1) && push(d, &s);
}

static bool add_end(decoder *d, uint32_t i) {
  const uint32_t opener = kir_at(d->k, i)->index, first = d->step_of[opener];
  kvm_step s = {.inst = i, .hidden = true};
  if (kir_at(d->k, opener)->op == KIR_loop) {
    s.run = kvm_run_next;
    s.state = d->steps.at[first].state;
    s.jump = first + 1;
    d->steps.at[first].jump = d->steps.count + 1;
    return push(d, &s);
  }
  const uint32_t closed = d->vm->regions.close[opener];
  s.run = kvm_run_endif;
  d->steps.at[closed == i ? first : d->step_of[closed]].jump = d->steps.count;
  return push(d, &s);
}

/* ---- everything ---- */
static bool add_plain(decoder *d, uint32_t i, kvm_fn run) {
  kvm_step s = basic_step(d, i);
  s.run = run;
  if (kir_ops[kir_at(d->k, i)->op].result == KIR_R_ELEM) s.flops = s.kind <= KVM_F64 ? s.from - 1u : 0;
  return push(d, &s);
}

static bool add_inst(decoder *d, uint32_t i) {
  const kir_inst *in = kir_at(d->k, i);
  if (kir_is_elementwise(in->op)) return add_arithmetic(d, i);
  if (kvm_image_fn(in->op)) return add_image(d, i);
  if (kir_names_memory(in->op)) return add_memory(d, i);
  if (kvm_vector(in->op)) return add_plain(d, i, kvm_vector(in->op));
  if (kvm_subgroup_fn(in->op)) return add_plain(d, i, kvm_subgroup_fn(in->op));
  if (kir_ops[in->op].flags & KIR_GIVEN) return true;
  switch (in->op) {
  case KIR_carry:
  case KIR_result: return true;
  case KIR_ix: return add_sum(d, i);
  case KIR_cast:
  case KIR_bitcast:
  case KIR_pack2:
  case KIR_unpack2: return add_conversion(d, i);
  case KIR_async_commit: return add_plain(d, i, kvm_run_async_commit);
  case KIR_async_wait: return add_plain(d, i, kvm_run_async_wait);
  case KIR_mma: return add_plain(d, i, kvm_run_mma);
  case KIR_mma_get: return add_plain(d, i, kvm_run_mma_get);
  case KIR_mma_make: return add_plain(d, i, kvm_run_mma_make);
  case KIR_loop: return add_loop(d, i);
  case KIR_if: return add_if(d, i);
  case KIR_else: return add_else(d, i);
  case KIR_yield: return add_yield(d, i);
  case KIR_end: return add_end(d, i);
  default: return kvm_fail(d->vm, &(kvm_step){.inst = i}, KVM_NO_ITEM, SNT_E_UNSUPPORTED, "the interpreter lacks this operation");
  }
}

snt_result kvm_prepare_steps(kvm *vm) {
  decoder d = {.vm = vm, .k = vm->k, .step_of = IR_NEW_ARRAY(vm->arena, uint32_t, vm->k->insts.count)};
  if (!d.step_of) return no_memory(&d);
  for (uint32_t i = 1; i < vm->k->insts.count; i++) {
    if (!add_inst(&d, i)) return vm->result ? vm->result : no_memory(&d);
    if (d.steps.count && !d.steps.at[d.steps.count - 1].run)
      return kvm_fail(vm, &(kvm_step){.inst = i}, KVM_NO_ITEM, SNT_E_UNSUPPORTED, "the interpreter lacks this operation on this type"),
             vm->result;
  }
  vm->staging = ir_arena_take(vm->arena, d.staging, 16);
  vm->steps = d.steps.at;
  vm->step_count = d.steps.count;
  return vm->arena->failed ? no_memory(&d) : SNT_OK;
}
