/* Parses kernel IR text. Accepts the canonical form and its sugar: omitted types and attributes, several names a declaration, `;` between
   instructions, cells as operands and targets, `divmod`, names that are no numbers. In: a kernel begun with kir_init. */
#include "ir/kir/text_parse.h"

/* ---- attributes ---- */
typedef enum { ATTR_FLAG, ATTR_INT, ATTR_ALIGN, ATTR_ULP, ATTR_DOM, ATTR_ROUND, ATTR_AS, ATTR_TREE } attr_kind;
typedef struct attr_form {
  const char *name;
  uint16_t allowed, flag;
  attr_kind form;
} attr_form; /* allowed: any of these KA_ bits of the operation */
static const attr_form attr_forms[] = {
    {"align", KA_ALIGN, 0, ATTR_ALIGN},
    {"lanes", KA_LANES, 0, ATTR_INT},
    {"bytes", KA_BYTES, 0, ATTR_INT},
    {"ld", KA_LD, 0, ATTR_INT},
    {"columns", KA_LD, KIR_IS_COLUMNS, ATTR_FLAG},
    {"uniform", KA_UNIFORM, KIR_IS_UNIFORM, ATTR_FLAG},
    {"stream", KA_STREAM, KIR_IS_STREAM, ATTR_FLAG},
    {"same", KA_STREAM, KIR_IS_SAME, ATTR_FLAG},
    {"rw", KA_RW, KIR_IS_RW, ATTR_FLAG},
    {"far", KA_RW, KIR_IS_FAR, ATTR_FLAG},
    {"sat", KA_ROUND, KIR_SAT, ATTR_FLAG},
    {"round", KA_ROUND, 0, ATTR_ROUND},
    {"as", KA_AS, 0, ATTR_AS},
    {"ulp", KA_ULP | KA_MATH, 0, ATTR_ULP},
    {"dom", KA_MATH, KIR_HAS_DOM, ATTR_DOM},
    {"tree", 0, 0, ATTR_TREE},
};

static void take_domain(kir_parser *p, kir_inst *in) {
  kir_expect_sign(p, '[');
  const kir_literal lo = kir_take_literal(p);
  kir_expect_sign(p, ',');
  const kir_literal hi = kir_take_literal(p);
  kir_expect_sign(p, ']');
  in->dom_lo = (float)kir_round_float(SNT_F32, kir_literal_value(&lo, SNT_F32), 0);
  in->dom_hi = (float)kir_round_float(SNT_F32, kir_literal_value(&hi, SNT_F32), 0);
}

static void take_attr_value(kir_parser *p, kir_inst *in, const attr_form *form) {
  static const kir_word as_words[] = {{"f16", SNT_F16}, {"bf16", SNT_BF16}, {NULL, 0}}, tree_words[] = {{"pairs", 0}, {NULL, 0}};
  if (form->form != ATTR_FLAG) kir_expect_sign(p, '=');
  switch (form->form) {
  case ATTR_FLAG: break;
  case ATTR_INT: in->lanes = (int32_t)kir_take_number(p, INT32_MAX); break;
  case ATTR_ALIGN: in->align = (uint16_t)kir_take_number(p, 1u << 15); break;
  case ATTR_ULP: {
    const kir_literal ulp = kir_take_literal(p);
    in->ulp = (float)kir_round_float(SNT_F32, kir_literal_value(&ulp, SNT_F32), 0);
    break;
  }
  case ATTR_DOM: take_domain(p, in); break;
  case ATTR_ROUND: in->flags |= (uint16_t)kir_take_choice(p, kir_round_words, "rounding"); break;
  case ATTR_AS: in->index = kir_take_choice(p, as_words, "format"); break;
  case ATTR_TREE: kir_take_choice(p, tree_words, "tree"); break;
  }
  in->flags |= form->flag;
}

static void take_attrs(kir_parser *p, kir_inst *in) {
  const uint32_t allowed = kir_ops[in->op].attrs;
  while (!p->failed && p->now.kind == KTOKEN_WORD) {
    const attr_form *form = NULL;
    for (uint32_t i = 0; i < IR_COUNT(attr_forms) && !form; i++)
      if (kir_is_word(p, attr_forms[i].name)) form = &attr_forms[i];
    if (!form || (form->form != ATTR_TREE && !(form->allowed & allowed))) {
      kir_parse_fail(p, "%s does not take '%.*s'", kir_ops[in->op].name, (int)(p->now.length < 32 ? p->now.length : 32), p->now.at);
      return;
    }
    kir_advance(p);
    take_attr_value(p, in, form);
  }
}

/* What the short form leaves out: vector accesses are naturally aligned, prefetch takes a line, pack2 packs f16. */
static void default_attrs(const kir_kernel *k, kir_inst *in, const uint32_t *args) {
  const uint32_t attrs = kir_ops[in->op].attrs;
  if ((attrs & KA_AS) && !in->index) in->index = SNT_F16;
  if (in->op == KIR_prefetch && !in->lanes) in->lanes = 64;
  if (!(attrs & KA_ALIGN) || in->align || in->index >= k->memories.count) return;
  const kir_memory *m = &k->memories.at[in->index];
  if ((m->flags & KIR_MEM_REGS) || m->type.frag || (in->op == KIR_store && !in->arg_count)) return;
  const kir_type t = in->op == KIR_store ? kir_type_of(k, args[in->arg_count - 1]) : in->type.lanes ? in->type : m->type;
  const bool whole = in->lanes <= 1 && t.lanes != 3;
  in->align = (uint16_t)(kir_base_bits(t.base) / 8 * (whole ? t.lanes : 1));
}

/* ---- operands of an instruction ---- */
static bool at_operand(const kir_parser *p) { return p->now.kind == KTOKEN_VALUE || kir_at_literal(p); }

static void push_operand(kir_parser *p, kir_operand operand) {
  if (!p->failed && !IR_PUSH(p->scratch, &p->operands, operand)) kir_parse_fail(p, "out of memory");
}

static void push_values(kir_parser *p, uint32_t count, const uint32_t *values) {
  for (uint32_t i = 0; i < count; i++) push_operand(p, (kir_operand){.id = values[i]});
}

static void take_operands(kir_parser *p, bool comma) {
  if (comma ? !kir_take_sign(p, ',') : !at_operand(p)) return;
  do push_operand(p, kir_take_operand(p));
  while (!p->failed && kir_take_sign(p, ','));
}

static void take_memory(kir_parser *p, kir_inst *in) {
  uint32_t index[4];
  const uint32_t count = kir_take_cell(p, &in->index, index);
  push_values(p, count, index);
}

static void take_async(kir_parser *p, kir_inst *in) {
  uint32_t index[4];
  take_memory(p, in);
  kir_expect_sign(p, ',');
  const uint32_t count = kir_take_cell(p, &in->index2, index);
  if (count != 1) kir_parse_fail(p, "global memory has one index");
  if (!p->failed) push_values(p, 1, index);
  if (!p->failed && kir_take_sign(p, ',')) push_operand(p, kir_take_operand(p));
  else if (!p->failed) push_operand(p, (kir_operand){.id = kir_const_int(p->k, kir_t(SNT_BOOL, 1), 1)});
}

static void take_spaces(kir_parser *p, kir_inst *in) {
  static const kir_word spaces[] = {{"local", KIR_SYNC_LOCAL}, {"global", KIR_SYNC_GLOBAL}, {NULL, 0}};
  do in->flags |= (uint16_t)kir_take_choice(p, spaces, "space of a barrier");
  while (!p->failed && kir_take_sign(p, ','));
}

/* Emits the instruction with the operands gathered; literals take the type of their position. */
static uint32_t put_gathered(kir_parser *p, kir_inst *in) {
  const uint32_t count = p->operands.count;
  if (count > UINT16_MAX) kir_parse_fail(p, "too many operands");
  if (kir_ops[in->op].args != KIR_VAR && kir_ops[in->op].args != count)
    kir_parse_fail(p, "%s takes %u operands", kir_ops[in->op].name, kir_ops[in->op].args);
  uint32_t *args = IR_NEW_ARRAY(p->scratch, uint32_t, 2 * (size_t)count + 1), *settled = args + count;
  if (!args) kir_parse_fail(p, "out of memory");
  if (p->failed || p->k->failed) return 0;
  for (uint32_t i = 0; i < count; i++) args[i] = p->operands.at[i].is_literal ? 0 : p->operands.at[i].id;
  in->arg_count = (uint16_t)count;
  for (uint32_t i = 0; i < count; i++) settled[i] = kir_settle(p, &p->operands.at[i], kir_literal_type(p->k, in, args, i));
  if (p->failed || p->k->failed) return 0;
  default_attrs(p->k, in, settled);
  return kir_put(p->k, in, count, settled);
}

static uint32_t find_op(kir_parser *p) {
  for (uint32_t op = 1; op < KIR_OP_COUNT; op++)
    if (!(kir_ops[op].flags & KIR_REGION) && op != KIR_const && op != KIR_scalar && kir_take_word(p, kir_ops[op].name)) return op;
  kir_parse_fail(p, "'%.*s' is no operation", (int)(p->now.length < 32 ? p->now.length : 32), p->now.at);
  return 0;
}

static uint32_t parse_operation(kir_parser *p, kir_type stated) {
  kir_inst in = {.op = (uint16_t)find_op(p), .type = stated};
  if (p->failed) return 0;
  p->operands.count = 0;
  switch (in.op) {
  case KIR_ix: return kir_take_sum(p, stated, false);
  case KIR_group:
  case KIR_local: in.index = (uint32_t)kir_take_number(p, 2); break;
  case KIR_own:
  case KIR_inline:
    in.index = (uint32_t)kir_take_number(p, UINT16_MAX);
    take_operands(p, true);
    break;
  case KIR_barrier: take_spaces(p, &in); break;
  case KIR_async_wait: in.imm.i = (int64_t)kir_take_number(p, UINT16_MAX); break;
  case KIR_async_copy: take_async(p, &in); break;
  default:
    if (kir_names_memory(in.op)) take_memory(p, &in);
    take_operands(p, kir_names_memory(in.op));
  }
  take_attrs(p, &in);
  return put_gathered(p, &in);
}

/* ---- targets: %v, %v: type, or a cell that is stored to ---- */
static void take_targets(kir_parser *p) {
  do {
    kir_target target = {.name = kir_expect(p, KTOKEN_VALUE, "%name")};
    if (kir_is_sign(p, '[')) {
      const kir_name *name = kir_lookup(p, target.name);
      if (!name || name->kind != KNAME_MEMORY) {
        kir_parse_fail(p, "only cells of arrays are assigned");
        return;
      }
      target.is_cell = true;
      target.memory = name->id;
      target.count = kir_take_indices(p, target.index);
    }
    if (kir_take_sign(p, ':')) target.type = kir_take_type(p);
    if (!p->failed && !IR_PUSH(p->scratch, &p->targets, target)) kir_parse_fail(p, "out of memory");
  } while (!p->failed && kir_take_sign(p, ','));
  kir_expect_sign(p, '=');
}

static void assign(kir_parser *p, const kir_target *target, uint32_t value) {
  if (p->failed || p->k->failed) return;
  if (!value || !kir_has_value(kir_at(p->k, value)->op)) {
    kir_parse_fail(p, "the operation has no result");
  } else if (target->type.lanes && !kir_same(target->type, kir_type_of(p->k, value))) {
    kir_parse_fail(p, "the result has another type than stated");
  } else if (target->is_cell) {
    kir_store(p->k, target->memory, target->count, target->index, value);
  } else {
    kir_bind(p, target->name, KNAME_VALUE, value);
  }
}

/* ---- regions ---- */
static void push_frame(kir_parser *p, kir_frame frame, uint32_t target_count) {
  frame.targets = p->targets.count - target_count;
  frame.target_count = target_count;
  frame.names = p->names.count;
  frame.yields = p->ids.count;
  for (uint32_t i = 0; i < target_count; i++)
    if (p->targets.at[frame.targets + i].is_cell) kir_parse_fail(p, "a region's result cannot be a cell");
  if (!p->failed && !IR_PUSH(p->scratch, &p->frames, frame)) kir_parse_fail(p, "out of memory");
}

static void take_loop_attrs(kir_parser *p, kir_inst *loop) {
  while (!p->failed && p->now.kind == KTOKEN_WORD) {
    const kir_word *w = kir_loop_words;
    while (w->text && !kir_is_word(p, w->text)) w++;
    if (w->text) {
      loop->flags |= (uint16_t)w->value;
      kir_advance(p);
    } else if (kir_take_word(p, "unroll")) {
      kir_expect_sign(p, '=');
      loop->lanes = (int32_t)kir_take_number(p, UINT16_MAX);
    } else if (kir_take_word(p, "peel")) {
      kir_expect_sign(p, '=');
      loop->index = (uint32_t)kir_take_number(p, UINT16_MAX);
      kir_expect_sign(p, ',');
      loop->index2 = (uint32_t)kir_take_number(p, UINT16_MAX);
    } else if (kir_take_word(p, "trip")) {
      kir_expect_sign(p, '>');
      kir_expect_sign(p, '=');
      if (kir_take_number(p, UINT32_MAX)) loop->flags |= KIR_LOOP_TRIP1;
    } else {
      kir_parse_fail(p, "no such attribute of a loop");
    }
  }
}

/* carry(%c: type = initial, ..): names go to the targets, initial values to the ids, both after what is there. */
static uint32_t take_carries(kir_parser *p) {
  uint32_t count = 0;
  if (!kir_take_word(p, "carry")) return 0;
  kir_expect_sign(p, '(');
  do {
    kir_target carry = {.name = kir_expect(p, KTOKEN_VALUE, "%name")};
    if (kir_take_sign(p, ':')) carry.type = kir_take_type(p);
    kir_expect_sign(p, '=');
    const kir_operand initial = kir_take_operand(p);
    uint32_t value = kir_settle(p, &initial, carry.type);
    if (!p->failed && !p->k->failed && carry.type.lanes) value = kir_splat(p->k, value, carry.type.lanes);
    if (p->failed || p->k->failed) return 0;
    if (carry.type.lanes && !kir_same(carry.type, kir_type_of(p->k, value))) kir_parse_fail(p, "the initial value has another type");
    if (!IR_PUSH(p->scratch, &p->targets, carry) || !IR_PUSH(p->scratch, &p->ids, value)) kir_parse_fail(p, "out of memory");
    count++;
  } while (!p->failed && kir_take_sign(p, ','));
  kir_expect_sign(p, ')');
  return count;
}

/* lo, hi, step: literals have the variable's type, or that of the other bounds. */
static void take_bounds(kir_parser *p, kir_type type, uint32_t bounds[3]) {
  kir_operand given[3] = {{0}};
  uint32_t count = 0;
  do given[count++] = kir_take_operand(p);
  while (!p->failed && count < 3 && kir_take_sign(p, ','));
  if (count < 2) kir_parse_fail(p, "a loop needs lo and hi");
  if (p->failed || p->k->failed) return;
  for (uint32_t i = 0; i < count && !type.lanes; i++)
    if (!given[i].is_literal) type = kir_type_of(p->k, given[i].id);
  if (!type.lanes) type = kir_t(SNT_U32, 1);
  for (uint32_t i = 0; i < count; i++) bounds[i] = kir_settle(p, &given[i], type);
  if (count == 2) bounds[2] = kir_const_int(p->k, type, 1);
}

static void parse_loop(kir_parser *p, uint32_t target_count) {
  const kir_token variable = kir_expect(p, KTOKEN_VALUE, "the loop's variable");
  kir_type type = {0, 0, 0};
  if (kir_take_sign(p, ':')) type = kir_take_type(p);
  kir_expect_sign(p, '=');
  uint32_t bounds[3] = {0};
  take_bounds(p, type, bounds);
  const uint32_t first_target = p->targets.count, first_id = p->ids.count, count = take_carries(p);
  kir_inst attrs = {0};
  take_loop_attrs(p, &attrs);
  uint32_t *carried = IR_NEW_ARRAY(p->scratch, uint32_t, count);
  if (!carried) kir_parse_fail(p, "out of memory");
  if (p->failed || p->k->failed) return;
  const uint32_t loop = kir_loop(p->k, bounds[0], bounds[1], bounds[2], count, p->ids.at + first_id, carried, attrs.flags,
                                 (uint32_t)attrs.lanes);
  if (p->k->failed) return;
  if (type.lanes && !kir_same(type, kir_type_of(p->k, loop))) kir_parse_fail(p, "the bounds have another type");
  kir_at(p->k, loop)->index = attrs.index;
  kir_at(p->k, loop)->index2 = attrs.index2;
  const uint32_t carry_targets = first_target; /* kept until the names are bound */
  p->ids.count = first_id;
  p->targets.count = first_target;
  push_frame(p, (kir_frame){.opener = loop, .is_loop = true, .first_count = count}, target_count);
  kir_bind(p, variable, KNAME_VALUE, loop);
  for (uint32_t i = 0; i < count; i++) kir_bind(p, p->targets.at[carry_targets + i].name, KNAME_VALUE, carried[i]);
}

static void parse_if(kir_parser *p, uint32_t target_count) {
  const kir_operand condition = kir_take_operand(p);
  const uint32_t value = kir_settle(p, &condition, kir_t(SNT_BOOL, 1));
  if (p->failed || p->k->failed) return;
  const uint32_t opener = kir_if(p->k, value);
  push_frame(p, (kir_frame){.opener = opener}, target_count);
}

static kir_type yield_type(const kir_parser *p, const kir_frame *f, uint32_t n) {
  if (f->is_loop) return n < f->first_count ? kir_type_of(p->k, f->opener + 1 + n) : kir_t(0, 0);
  if (n < f->target_count && p->targets.at[f->targets + n].type.lanes) return p->targets.at[f->targets + n].type;
  return kir_t(0, 0);
}

static void parse_yield(kir_parser *p) {
  kir_frame *f = p->frames.count ? &p->frames.at[p->frames.count - 1] : NULL;
  if (!f || f->yielded) {
    kir_parse_fail(p, "nothing to yield to");
    return;
  }
  f->yielded = true;
  do {
    const kir_operand operand = kir_take_operand(p);
    const kir_type type = yield_type(p, f, f->yield_count);
    uint32_t value = kir_settle(p, &operand, type);
    if (p->failed || p->k->failed) return;
    if (type.lanes) value = kir_splat(p->k, value, type.lanes);
    if (!IR_PUSH(p->scratch, &p->ids, value)) kir_parse_fail(p, "out of memory");
    f->yield_count++;
  } while (!p->failed && kir_take_sign(p, ','));
}

/* After the brace of an if: is this `else {`? */
static bool take_else(kir_parser *p) {
  const kir_parser saved = *p;
  kir_skip_lines(p);
  if (kir_take_word(p, "else")) return true;
  p->next = saved.next, p->now = saved.now, p->line = saved.line, p->after_line = saved.after_line;
  return false;
}

static void begin_else(kir_parser *p, kir_frame *f) {
  kir_expect_sign(p, '{');
  kir_else(p->k, f->opener, f->yield_count, p->ids.at + f->yields);
  f->in_else = true;
  f->yielded = false;
  f->first_count = f->yield_count;
  f->yield_count = 0;
  p->ids.count = f->yields;
}

static void close_frame(kir_parser *p) {
  kir_frame *f = &p->frames.at[p->frames.count - 1];
  kir_unbind_to(p, f->names);
  if (!f->is_loop && !f->in_else && take_else(p)) {
    begin_else(p, f);
    return;
  }
  const uint32_t want = f->is_loop || f->in_else ? f->first_count : 0, count = f->yield_count;
  if (count != want) kir_parse_fail(p, "%u values are yielded where %u are wanted", count, want);
  if (f->target_count && f->target_count != count) kir_parse_fail(p, "%u results of %u yielded values", f->target_count, count);
  uint32_t *results = IR_NEW_ARRAY(p->scratch, uint32_t, count);
  if (!results) kir_parse_fail(p, "out of memory");
  if (p->failed || p->k->failed) return;
  if (f->is_loop) kir_loop_end(p->k, f->opener, count, p->ids.at + f->yields, results);
  else kir_if_end(p->k, f->opener, count, p->ids.at + f->yields, results);
  for (uint32_t i = 0; i < f->target_count; i++) assign(p, &p->targets.at[f->targets + i], results[i]);
  p->ids.count = f->yields;
  p->targets.count = f->targets;
  p->frames.count--;
}

/* ---- statements ---- */
static void parse_divmod(kir_parser *p, uint32_t first) {
  if (p->targets.count - first != 2) kir_parse_fail(p, "divmod has two results");
  p->operands.count = 0;
  take_operands(p, false);
  if (p->failed) return;
  const kir_operand a = p->operands.count == 2 ? p->operands.at[0] : (kir_operand){0}, b = p->operands.count == 2 ? p->operands.at[1] : a;
  if (p->operands.count != 2) kir_parse_fail(p, "divmod takes two operands");
  for (uint32_t i = 0; i < 2 && !p->failed; i++) {
    kir_inst in = {.op = i ? KIR_umod : KIR_udiv, .type = p->targets.at[first + i].type};
    p->operands.count = 0;
    push_operand(p, a);
    push_operand(p, b);
    assign(p, &p->targets.at[first + i], put_gathered(p, &in));
  }
}

/* The right side of `=` is a value: a cell takes it, or a name stands for it. */
static void parse_copy(kir_parser *p, const kir_target *target) {
  const kir_operand operand = kir_take_operand(p);
  kir_type type = target->type;
  if (target->is_cell && !type.lanes) type = p->k->memories.at[target->memory].type;
  assign(p, target, kir_settle(p, &operand, type));
}

static void parse_assignment(kir_parser *p) {
  const uint32_t first = p->targets.count;
  take_targets(p);
  if (p->failed) return;
  const uint32_t count = p->targets.count - first;
  if (kir_take_word(p, "loop")) {
    parse_loop(p, count);
    return;
  }
  if (kir_take_word(p, "if")) {
    parse_if(p, count);
    return;
  }
  const kir_target target = p->targets.at[first];
  if (kir_take_word(p, "divmod")) parse_divmod(p, first);
  else if (count != 1) kir_parse_fail(p, "the operation has one result");
  else if (at_operand(p)) parse_copy(p, &target);
  else assign(p, &target, parse_operation(p, target.is_cell && !target.type.lanes ? p->k->memories.at[target.memory].type : target.type));
  p->targets.count = first;
}

static void parse_statement(kir_parser *p) {
  const uint32_t frames = p->frames.count;
  if (p->now.kind == KTOKEN_VALUE) parse_assignment(p);
  else if (kir_take_word(p, "loop")) parse_loop(p, 0);
  else if (kir_take_word(p, "if")) parse_if(p, 0);
  else if (kir_take_word(p, "yield")) parse_yield(p);
  else parse_operation(p, kir_t(0, 0));
  if (p->failed || p->k->failed) return;
  if (p->frames.count > frames) kir_expect_sign(p, '{');
  else if (p->now.kind != KTOKEN_LINE && !kir_is_sign(p, '}')) kir_parse_fail(p, "the end of the instruction expected");
  else if (p->frames.count && p->frames.at[p->frames.count - 1].yielded) {
    kir_skip_lines(p);
    if (!kir_is_sign(p, '}')) kir_parse_fail(p, "yield must come last");
  }
}

static void parse_body(kir_parser *p) {
  while (!p->failed) {
    kir_skip_lines(p);
    if (p->now.kind == KTOKEN_END) {
      kir_parse_fail(p, "'}' expected");
    } else if (!kir_take_sign(p, '}')) {
      parse_statement(p);
    } else if (p->frames.count) {
      close_frame(p);
    } else {
      return;
    }
    if (p->k->failed) kir_parse_fail(p, "%s", p->k->first_error.text);
  }
}

/* ---- header ---- */
static void take_items(kir_parser *p) {
  kir_expect_sign(p, '(');
  for (uint32_t d = 0; d < 3; d++) {
    if (d) kir_expect_sign(p, ',');
    p->k->items[d] = (uint32_t)kir_take_number(p, UINT16_MAX);
  }
  kir_expect_sign(p, ')');
}

static void take_needs(kir_parser *p) {
  ir_text needs;
  ir_text_init(&needs, p->scratch);
  kir_expect_sign(p, '(');
  while (!p->failed && p->now.kind == KTOKEN_WORD) {
    if (needs.length) ir_text_add(&needs, ",");
    ir_text_put(&needs, p->now.at, p->now.length);
    kir_advance(p);
    if (!kir_take_sign(p, ',')) break;
  }
  kir_expect_sign(p, ')');
  const char *copy = ir_arena_text(p->k->arena, needs.length ? needs.at : "", needs.length);
  if (!copy || needs.failed) kir_parse_fail(p, "out of memory");
  if (copy) p->k->needs = copy;
}

static void parse_head(kir_parser *p) {
  kir_skip_lines(p);
  if (!kir_take_word(p, "kernel")) kir_parse_fail(p, "'kernel' expected");
  const kir_token name = kir_expect(p, KTOKEN_KERNEL, "@name");
  if (!p->failed) p->k->name = kir_token_text(p, name);
  while (!p->failed && p->now.kind == KTOKEN_WORD) {
    const kir_token key = kir_expect(p, KTOKEN_WORD, "an attribute");
    kir_expect_sign(p, '=');
#define IS(text) (key.length == sizeof text - 1 && !memcmp(key.at, text, sizeof text - 1))
    if (IS("items")) take_items(p);
    else if (IS("needs")) take_needs(p);
    else if (IS("mode")) p->k->mode = (uint8_t)kir_take_choice(p, kir_mode_words, "mode");
    else if (IS("sub"))
      p->k->sub = kir_take_word(p, "none") ? 0 : kir_take_word(p, "any") ? UINT32_MAX : (uint32_t)kir_take_number(p, UINT16_MAX);
    else kir_parse_fail(p, "no such attribute of a kernel");
#undef IS
  }
  kir_expect_sign(p, '{');
}

snt_result kir_parse(kir_kernel *k, const char *text, size_t length, snt_diag *diag) {
  if (k->failed) return ir_fail(diag, k->first_error.result, "parse kernel", 0, "%s", k->first_error.text);
  ir_arena scratch;
  ir_arena_init(&scratch, &k->arena->host);
  kir_parser *p = IR_NEW(&scratch, kir_parser);
  if (!p) return ir_fail(diag, SNT_E_HOST_MEM, "parse kernel", 0, "out of memory");
  *p = (kir_parser){.k = k, .scratch = &scratch, .diag = diag, .next = text, .end = text + length, .line = 1};
  kir_advance(p);
  parse_head(p);
  kir_parse_declarations(p);
  if (k->failed) kir_parse_fail(p, "%s", k->first_error.text);
  parse_body(p);
  kir_skip_lines(p);
  if (p->now.kind != KTOKEN_END) kir_parse_fail(p, "text after the kernel");
  const bool failed = p->failed;
  ir_arena_free(&scratch);
  if (failed && !k->failed) kir_mistake(k, "the text has an error");
  return failed ? SNT_E_PARSE : SNT_OK;
}
