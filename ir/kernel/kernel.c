/* Kernel IR: the builder's base: memories, scalars, constants and the general form kir_put.
   Everything appends; an instruction's index is its value. The first mistake sticks in `first_error`, and what follows does nothing. */
#include "ir/kernel_private.h"
#include <stdio.h>

IR_COLD uint32_t kir_mistake(kir_kernel *k, const char *format, ...) {
  if (k->failed) return 0;
  k->failed = true;
  char text[sizeof k->first_error.text];
  va_list list;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  ir_fail(&k->first_error, SNT_E_INTERNAL, "kernel", k->insts.count, "%s", text);
  return 0;
}

static uint32_t out_of_memory(kir_kernel *k) {
  if (!k->failed) ir_fail(&k->first_error, SNT_E_HOST_MEM, "kernel", 0, "out of memory");
  k->failed = true;
  return 0;
}

IR_COLD void kir_init(kir_kernel *k, ir_arena *arena, const char *name) {
  memset(k, 0, sizeof *k);
  k->arena = arena;
  k->name = name ? ir_arena_text(arena, name, strlen(name)) : NULL; /* none: its maker had no memory for it */
  k->items[0] = k->items[1] = k->items[2] = 1;
  k->needs = "";
  const kir_inst unused = {0};
  if (!k->name || !IR_PUSH(arena, &k->insts, unused)) out_of_memory(k);
}

IR_COLD uint32_t kir_memory_add(kir_kernel *k, const kir_memory *memory) {
  if (k->failed) return 0;
  kir_memory m = *memory;
  if (!m.rank) m.rank = 1;
  if (!m.align && m.space != KIR_PRIVATE && m.space != KIR_CONSTANT && m.space != KIR_IMAGE) m.align = 64;
  m.name = ir_arena_text(k->arena, m.name ? m.name : "", m.name ? strlen(m.name) : 0);
  if (m.state) m.state = ir_arena_text(k->arena, m.state, strlen(m.state));
  if (!m.name || !IR_PUSH(k->arena, &k->memories, m)) return out_of_memory(k);
  return k->memories.count - 1;
}

IR_COLD uint32_t kir_scalar_add(kir_kernel *k, const char *name, int32_t dtype, int64_t min, int64_t max, int64_t multiple_of) {
  if (k->failed) return 0;
  const kir_type type = kir_t(dtype, 1);
  if (!kir_type_valid(type)) return kir_mistake(k, "scalar %s has no valid type", name);
  const uint32_t size = kir_base_bits(type.base) == 64 ? 8 : 4;
  uint32_t offset = 0;
  for (uint32_t i = 0; i < k->scalars.count; i++) {
    const uint32_t end = k->scalars.at[i].offset + (kir_base_bits(k->scalars.at[i].type.base) == 64 ? 8 : 4);
    if (end > offset) offset = end;
  }
  const kir_scalar s = {.name = ir_arena_text(k->arena, name, strlen(name)),
                        .type = type,
                        .offset = (offset + size - 1) / size * size,
                        .min = min,
                        .max = max,
                        .multiple_of = multiple_of};
  if (!s.name || !IR_PUSH(k->arena, &k->scalars, s)) return out_of_memory(k);
  return k->scalars.count - 1;
}

uint32_t kir_own_param(const char *params, uint32_t n, const char **at) {
  for (; n && params; n--) params = strchr(params, ',') ? strchr(params, ',') + 1 : NULL;
  *at = params ? params : "";
  return (uint32_t)strcspn(*at, ",");
}

const char *kir_own_body(const char *source, size_t *head) {
  *head = 0;
  for (const char *line = source; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
    if (!strncmp(line, "%%\n", 3)) {
      *head = (size_t)(line - source);
      return line + 3;
    }
  return source;
}

static bool same_text(const char *a, const char *b) { return a == b || (a && b && !strcmp(a, b)); }

IR_COLD bool kir_same_own(const kir_own *a, const kir_own *b) {
  bool same = a->native == b->native && !memcmp(a->types, b->types, sizeof a->types) && same_text(a->name, b->name) &&
              same_text(a->params, b->params) && a->spirv == b->spirv;
  for (uint32_t i = 0; i < KIR_OWN_TARGETS; i++) same = same && same_text(a->source[i], b->source[i]);
  return same;
}

IR_COLD uint32_t kir_own_add(kir_kernel *k, const kir_own *own) {
  for (uint32_t i = 0; i < k->owns.count; i++)
    if (kir_same_own(&k->owns.at[i], own)) return i;
  return IR_PUSH(k->arena, &k->owns, *own) ? k->owns.count - 1 : out_of_memory(k);
}

enum { RECENT = 256 /* by 8 bits of a hash */ };

void kir_share(kir_kernel *k) {
  k->recent = IR_NEW_ARRAY(k->arena, uint32_t, RECENT);
  k->recent_from = k->insts.count;
}

static bool is_equal(const kir_kernel *k, const kir_inst *a, const kir_inst *b, uint32_t count, const uint32_t *args) {
  return a->op == b->op && a->arg_count == count && a->imm.i == b->imm.i && kir_same(a->type, b->type) && a->index == b->index &&
         a->index2 == b->index2 && a->flags == b->flags && a->align == b->align && a->lanes == b->lanes &&
         !memcmp(&a->dom_lo, &b->dom_lo, sizeof a->dom_lo) && !memcmp(&a->dom_hi, &b->dom_hi, sizeof a->dom_hi) &&
         !memcmp(&a->ulp, &b->ulp, sizeof a->ulp) && (!count || !memcmp(&k->args.at[a->args], args, count * sizeof *args));
}

/* The equal instruction, or 0; its place is then that of the next one. */
static uint32_t find_recent(kir_kernel *k, const kir_inst *in, uint32_t count, const uint32_t *args) {
  uint64_t hash = in->op ^ (uint64_t)in->imm.i * 31 ^ in->index;
  for (uint32_t i = 0; i < count; i++) hash = hash * 5 + args[i];
  uint32_t *place = &k->recent[(hash * 0x9e3779b97f4a7c15u) >> 56];
  if (*place >= k->recent_from && is_equal(k, kir_at(k, *place), in, count, args)) return *place;
  *place = k->insts.count;
  return 0;
}

/* Constants and what addresses are made of. */
static bool may_repeat(const kir_inst *in) {
  return in->op == KIR_const || ((kir_ops[in->op].flags & KIR_PURE) && in->type.lanes == 1 && !kir_is_float(in->type.base));
}

static uint32_t push_shared(kir_kernel *k, const kir_inst *in, uint32_t count, const uint32_t *args) {
  if (kir_ops[in->op].flags & KIR_REGION) k->recent_from = k->insts.count + 1;
  return may_repeat(in) ? find_recent(k, in, count, args) : 0;
}

uint32_t kir_push(kir_kernel *k, const kir_inst *in, uint32_t count, const uint32_t *args) {
  const uint32_t equal = k->recent ? push_shared(k, in, count, args) : 0;
  if (equal) return equal;
  if (!kir_room(k, count)) return out_of_memory(k);
  kir_inst *made = kir_at(k, k->insts.count);
  uint32_t *to = k->args.at + k->args.count;
  *made = *in;
  made->arg_count = (uint16_t)count;
  made->args = k->args.count;
  for (uint32_t i = 0; i < count; i++) to[i] = args[i];
  k->args.count += count;
  return k->insts.count++;
}

uint32_t kir_const_int(kir_kernel *k, kir_type type, int64_t value) {
  if (kir_is_float(type.base)) return kir_const_float(k, type, (double)value);
  if (k->failed) return 0;
  if (!kir_type_valid(type) || type.frag) return kir_mistake(k, "a constant needs a number type");
  const kir_inst in = {.op = KIR_const, .type = type, .imm.i = kir_wrap_int(type.base, value)};
  return kir_push(k, &in, 0, NULL);
}

uint32_t kir_const_float(kir_kernel *k, kir_type type, double value) {
  if (!kir_is_float(type.base)) {
    const double limit = 9223372036854775807.0;
    return kir_const_int(k, type, value != value ? 0 : value >= limit ? INT64_MAX : value <= -limit ? INT64_MIN : (int64_t)value);
  }
  if (k->failed) return 0;
  if (!kir_type_valid(type) || type.frag) return kir_mistake(k, "a constant needs a number type");
  const kir_inst in = {.op = KIR_const, .type = type, .imm.f = kir_round_float(type.base, value, KIR_ROUND_NONE)};
  return kir_push(k, &in, 0, NULL);
}

uint32_t kir_const_like(kir_kernel *k, uint32_t value, double x) {
  if (k->failed) return 0;
  if (!value || value >= k->insts.count) return kir_mistake(k, "a constant like %u, which is no value", value);
  return kir_const_float(k, kir_type_of(k, value), x);
}

uint32_t kir_digits(const kir_kernel *k) {
  int64_t run = 0;
  for (uint32_t i = 0; i < k->scalars.count; i++) {
    const kir_scalar *s = &k->scalars.at[i];
    run = s->min == s->max && s->max == run ? run + 1 : 0;
    if (run == KIR_DIGITS) return i + 2 - KIR_DIGITS;
  }
  return 0;
}

IR_COLD bool kir_is_const(const kir_kernel *k, uint32_t value, int64_t *as_int, double *as_float) {
  while (value && value < k->insts.count && kir_at(k, value)->op == KIR_splat) value = kir_arg(k, value, 0);
  if (!value || value >= k->insts.count || kir_at(k, value)->op != KIR_const) return false;
  const kir_inst *in = kir_at(k, value);
  if (kir_is_float(in->type.base)) {
    const bool fits = in->imm.f > -9e18 && in->imm.f < 9e18;
    if (as_int) *as_int = fits ? (int64_t)in->imm.f : 0;
    if (as_float) *as_float = in->imm.f;
  } else {
    if (as_int) *as_int = in->imm.i;
    if (as_float) *as_float = in->type.base == SNT_U64 ? (double)(uint64_t)in->imm.i : (double)in->imm.i;
  }
  return true;
}

IR_COLD uint32_t kir_shuffle(kir_kernel *k, uint32_t a, uint32_t b, uint32_t lanes, const uint8_t *from) {
  enum { MOST = 16 };
  if (k->failed) return 0;
  if (!a || a >= k->insts.count || lanes > MOST) return kir_mistake(k, "shuffle of %u into %u lanes", a, lanes);
  uint32_t args[2 + MOST] = {a, b};
  for (uint32_t i = 0; i < lanes; i++) args[2 + i] = kir_const_int(k, kir_t(SNT_U32, 1), from[i]);
  const kir_inst shuffle = {.op = KIR_shuffle, .type = kir_t(kir_at(k, a)->type.base, lanes)};
  return kir_put(k, &shuffle, 2 + lanes, args);
}

uint32_t kir_vector(kir_kernel *k, uint32_t base, uint32_t lanes, const uint32_t *values) {
  return kir_put(k, &(kir_inst){.op = KIR_vec, .type = kir_t(base, lanes)}, lanes, values);
}

uint32_t kir_splat(kir_kernel *k, uint32_t a, uint32_t lanes) {
  if (k->failed) return 0;
  if (!a || a >= k->insts.count) return kir_mistake(k, "splat of %u, which is no value", a);
  const kir_inst *in = kir_at(k, a);
  if (in->type.lanes == lanes) return a;
  if (in->type.lanes != 1 || in->type.frag) return kir_mistake(k, "splat of a vector");
  const kir_type type = kir_t(in->type.base, lanes);
  if (in->op == KIR_const) return kir_is_float(type.base) ? kir_const_float(k, type, in->imm.f) : kir_const_int(k, type, in->imm.i);
  const kir_inst splat = {.op = KIR_splat, .type = type};
  return kir_put(k, &splat, 1, &a);
}

/* Scalars beside vectors become vectors. A select may keep a scalar condition. */
static void widen(kir_kernel *k, uint32_t op, uint32_t count, uint32_t *args) {
  const uint32_t first = op == KIR_select ? 1 : 0;
  uint32_t lanes = 1;
  for (uint32_t i = 0; i < count; i++) {
    const uint32_t have = kir_type_of(k, args[i]).lanes;
    if (have > lanes) lanes = have;
  }
  for (uint32_t i = first; i < count && lanes > 1; i++) args[i] = kir_splat(k, args[i], lanes);
}

/* A stored or filled scalar fits memories of vectors; fragments are filled with a scalar. */
static void widen_stored(kir_kernel *k, const kir_inst *in, uint32_t count, uint32_t *args) {
  if (!count || in->index >= k->memories.count) return;
  const kir_type cell = k->memories.at[in->index].type;
  if (!cell.frag && cell.lanes > 1) args[count - 1] = kir_splat(k, args[count - 1], cell.lanes);
}

static bool operands_exist(kir_kernel *k, uint32_t op, uint32_t count, const uint32_t *args) {
  for (uint32_t i = 0; i < count; i++)
    if (!args[i] || args[i] >= k->insts.count || !kir_has_value(kir_at(k, args[i])->op)) {
      kir_mistake(k, "operand %u of %s is no value", i, kir_ops[op].name);
      return false;
    }
  return true;
}

uint32_t kir_put(kir_kernel *k, const kir_inst *proto, uint32_t count, const uint32_t *given) {
  if (k->failed) return 0;
  const uint32_t op = proto->op;
  if (!op || op >= KIR_OP_COUNT) return kir_mistake(k, "operation %u does not exist", op);
  if ((kir_ops[op].args != KIR_VAR && kir_ops[op].args != count) || count > UINT16_MAX)
    return kir_mistake(k, "%s with %u operands", kir_ops[op].name, count);
  if (!operands_exist(k, op, count, given)) return 0;
  kir_inst in = *proto;
  uint32_t small[8];
  const uint32_t *args = given;
  if (count <= IR_COUNT(small)) {
    if (count) memcpy(small, given, count * sizeof *small);
    args = small;
    if (kir_is_elementwise(op) || op == KIR_select) widen(k, op, count, small);
    if ((op == KIR_cast || op == KIR_bitcast) && in.type.lanes > 1 && kir_type_of(k, *small).lanes == 1)
      *small = kir_splat(k, *small, in.type.lanes);
    if (op == KIR_store || op == KIR_fill) widen_stored(k, &in, count, small);
    if (k->failed) return 0;
  }
  in.arg_count = (uint16_t)count;
  if (kir_ops[op].result != KIR_R_NONE || op == KIR_store) in.type = kir_result_type(k, &in, args);
  const char *wrong = kir_type_error(k, &in, args);
  if (wrong) return kir_mistake(k, "%s: %s", kir_ops[op].name, wrong);
  return kir_push(k, &in, count, args);
}
