/* The verifier of kernel IR. Reports every error it can name; stages that would walk into nonsense are skipped after errors in earlier ones:
   declarations and the table of operands, then regions, then dominance and types, then uniformity of what needs it. */
#include "ir/kir/verify.h"

/* ---- the flat array is sound: operations exist, operands lie inside the tables ---- */
static void check_table(kir_verifier *v) {
  const kir_kernel *k = v->k;
  if (!k->insts.count) kir_complain(v, 0, "instruction 0 is missing");
  for (uint32_t i = 1; i < k->insts.count; i++) {
    const kir_inst *in = kir_at(k, i);
    if (!in->op || in->op >= KIR_OP_COUNT) kir_complain(v, i, "no such operation");
    else if ((uint64_t)in->args + in->arg_count > k->args.count) kir_complain(v, i, "operands outside the table");
    else if (kir_ops[in->op].args != KIR_VAR && kir_ops[in->op].args != in->arg_count) kir_complain(v, i, "%u operands", in->arg_count);
    else if (kir_names_memory(in->op) && in->index >= k->memories.count) kir_complain(v, i, "memory %u does not exist", in->index);
    else if (in->op == KIR_loop && in->arg_count < 3) kir_complain(v, i, "a loop needs lo, hi and step");
    else
      for (uint32_t n = 0; n < in->arg_count; n++) {
        const uint32_t arg = kir_arg(k, i, n);
        if (!arg || arg >= i || !kir_has_value(kir_at(k, arg)->op)) kir_complain(v, i, "operand %u is no earlier value", n);
      }
  }
}

/* ---- regions: carries, yields and results stand where they must and agree ---- */
static uint32_t count_run(const kir_kernel *k, uint32_t first, uint32_t op) {
  uint32_t count = 0;
  while (first + count < k->insts.count && kir_at(k, first + count)->op == op && kir_at(k, first + count)->index == count) count++;
  return count;
}

static void check_yield(kir_verifier *v, uint32_t closer, uint32_t first, uint32_t count) {
  const uint32_t at = closer - 1;
  const kir_inst *in = kir_at(v->k, at);
  const uint32_t given = in->op == KIR_yield ? in->arg_count : 0;
  if (given != count) {
    kir_complain(v, closer, "%u values are yielded where %u are wanted", given, count);
    return;
  }
  for (uint32_t n = 0; n < count; n++)
    if (!kir_same(kir_type_of(v->k, kir_arg(v->k, at, n)), kir_type_of(v->k, first + n)))
      kir_complain(v, at, "value %u has another type", n);
}

static void check_loop(kir_verifier *v, uint32_t loop) {
  const uint32_t end = v->regions.close[loop], carried = kir_at(v->k, loop)->arg_count - 3u;
  if (count_run(v->k, loop + 1, KIR_carry) != carried || count_run(v->k, end + 1, KIR_result) != carried) {
    kir_complain(v, loop, "needs %u carries and as many results after its end", carried);
    return;
  }
  check_yield(v, end, loop + 1, carried);
  for (uint32_t n = 0; n < carried; n++) {
    if (!kir_same(kir_type_of(v->k, kir_arg(v->k, loop, 3 + n)), kir_type_of(v->k, loop + 1 + n)))
      kir_complain(v, loop, "initial value %u has another type", n);
    if (!kir_same(kir_type_of(v->k, end + 1 + n), kir_type_of(v->k, loop + 1 + n))) kir_complain(v, end, "result %u has another type", n);
  }
}

static void check_if(kir_verifier *v, uint32_t opener) {
  const uint32_t closer = v->regions.close[opener];
  const bool both = kir_at(v->k, closer)->op == KIR_else;
  const uint32_t end = both ? v->regions.close[closer] : closer, results = count_run(v->k, end + 1, KIR_result);
  if (results && !both) kir_complain(v, opener, "results need an else");
  check_yield(v, closer, end + 1, results);
  if (both) check_yield(v, end, end + 1, results);
}

/* A carry or result belongs to the run right after its loop or end; check_loop and check_if count those runs. */
static bool in_run(const kir_kernel *k, uint32_t i, uint32_t opener_op) {
  const kir_inst *in = kir_at(k, i);
  if (in->index + 1 >= i) return false;
  const kir_inst *first = kir_at(k, i - 1 - in->index);
  if (first->op != opener_op || (opener_op == KIR_loop && in->index + 3 >= first->arg_count)) return false;
  for (uint32_t n = 0; n < in->index; n++)
    if (kir_at(k, i - 1 - n)->op != in->op || kir_at(k, i - 1 - n)->index != in->index - 1 - n) return false;
  return true;
}

void kir_verify_structure(kir_verifier *v) {
  for (uint32_t i = 1; i < v->k->insts.count; i++) {
    switch (kir_at(v->k, i)->op) {
    case KIR_loop: check_loop(v, i); break;
    case KIR_if: check_if(v, i); break;
    case KIR_carry:
      if (!in_run(v->k, i, KIR_loop)) kir_complain(v, i, "stands apart from its loop");
      break;
    case KIR_result:
      if (!in_run(v->k, i, KIR_end)) kir_complain(v, i, "stands apart from its end");
      break;
    case KIR_yield:
      if (i + 1 >= v->k->insts.count || (kir_at(v->k, i + 1)->op != KIR_end && kir_at(v->k, i + 1)->op != KIR_else))
        kir_complain(v, i, "is not the last of its region");
      break;
    default: break;
    }
  }
}

/* ---- dominance: the region that defines a value must still be open ---- */
static bool is_visible(const kir_verifier *v, uint32_t value, uint32_t at) {
  const uint32_t home = kir_at(v->k, value)->op == KIR_loop ? value : v->regions.parent[value];
  for (uint32_t scope = v->regions.parent[at]; scope != home; scope = v->regions.parent[scope])
    if (!scope) return false;
  return true;
}

static void check_dominance(kir_verifier *v, uint32_t i) {
  for (uint32_t n = 0; n < kir_at(v->k, i)->arg_count; n++)
    if (!is_visible(v, kir_arg(v->k, i, n), i)) kir_complain(v, i, "operand %u is not visible here", n);
}

/* ---- types and attributes ---- */
static bool literal_fits(const kir_inst *in) {
  if (in->type.frag) return false;
  if (!kir_is_float(in->type.base)) return in->imm.i == kir_wrap_int(in->type.base, in->imm.i);
  return in->imm.f != in->imm.f || in->imm.f == kir_round_float(in->type.base, in->imm.f, KIR_ROUND_RNE);
}

static void check_types(kir_verifier *v, uint32_t i) {
  const kir_inst *in = kir_at(v->k, i);
  const uint32_t *args = v->k->args.at + in->args;
  if (in->op == KIR_scalar && (in->index >= v->k->scalars.count || !kir_same(in->type, v->k->scalars.at[in->index].type))) {
    kir_complain(v, i, "scalar %u does not exist or has another type", in->index);
    return;
  }
  const char *wrong = kir_type_error(v->k, in, args);
  if (wrong) {
    kir_complain(v, i, "%s", wrong);
  } else if (kir_ops[in->op].result != KIR_R_NONE && kir_ops[in->op].result != KIR_R_SELF &&
             !kir_same(in->type, kir_result_type(v->k, in, args))) {
    kir_complain(v, i, "the result has the wrong type");
  }
  if (in->op == KIR_const && !literal_fits(in)) kir_complain(v, i, "the literal does not fit its type");
}

/* Of a fragment c by columns, no step to the next: each row is one number. */
static bool is_row_numbers(const kir_inst *in) { return in->op == KIR_mma_load && in->type.frag == 3 && in->flags & KIR_IS_COLUMNS; }

static void check_attrs(kir_verifier *v, uint32_t i) {
  const kir_inst *in = kir_at(v->k, i);
  const uint32_t attrs = kir_ops[in->op].attrs;
  if ((attrs & KA_ALIGN) && (in->align & (in->align - 1))) kir_complain(v, i, "alignment %u", in->align);
  if ((attrs & KA_LD) && in->lanes <= 0 && (in->lanes || !is_row_numbers(in))) kir_complain(v, i, "ld must be positive");
  if ((attrs & KA_AS) && in->index != SNT_F16 && in->index != SNT_BF16) kir_complain(v, i, "as= must be f16 or bf16");
  if ((attrs & (KA_ULP | KA_MATH)) && !(in->ulp >= 0)) kir_complain(v, i, "ulp may not be negative");
  if ((attrs & KA_MATH) && (in->flags & KIR_HAS_DOM) && !(in->dom_lo <= in->dom_hi)) kir_complain(v, i, "the domain is empty");
  if (in->op == KIR_local && in->index > 2) kir_complain(v, i, "dimension %u", in->index);
  if (in->op == KIR_group && in->index) kir_complain(v, i, "group is linear: dimension 0 only");
  if (in->op == KIR_barrier && (!in->flags || in->flags > (KIR_SYNC_LOCAL | KIR_SYNC_GLOBAL)))
    kir_complain(v, i, "names no memory to make visible");
  if (in->op == KIR_async_wait && in->imm.i < 0) kir_complain(v, i, "a negative number of groups");
  if (in->op == KIR_prefetch && in->lanes <= 0) kir_complain(v, i, "bytes must be positive");
}

static bool reads(uint32_t op) {
  return op == KIR_load || op == KIR_tex_load || op == KIR_tex_sample || op == KIR_mma_load ||
         (op >= KIR_atomic_add && op <= KIR_atomic_cas);
}

static bool writes(uint32_t op) {
  return op == KIR_store || op == KIR_fill || op == KIR_tex_store || op == KIR_mma_store || (op >= KIR_atomic_add && op <= KIR_atomic_cas);
}

static void check_access(kir_verifier *v, uint32_t i) {
  const kir_inst *in = kir_at(v->k, i);
  if (!kir_names_memory(in->op)) return;
  const kir_memory *m = &v->k->memories.at[in->index];
  const bool bound = m->space == KIR_GLOBAL || m->space == KIR_IMAGE;
  if (writes(in->op) && (m->space == KIR_CONSTANT || (bound && !(m->access & KIR_WRITE))))
    kir_complain(v, i, "%s may not be written", m->name);
  if (reads(in->op) && bound && !(m->access & KIR_READ)) kir_complain(v, i, "%s may not be read", m->name);
  if (in->op == KIR_async_copy && !(v->k->memories.at[in->index2].access & KIR_READ)) kir_complain(v, i, "the source may not be read");
  if (in->op == KIR_fill && m->space == KIR_GLOBAL && !m->dims[0]) kir_complain(v, i, "%s has no fixed size to fill", m->name);
}

/* ---- what needs items together ---- */
static bool needs_subgroup(uint32_t op) {
  switch (op) {
  case KIR_sg_add:
  case KIR_sg_max:
  case KIR_sg_min:
  case KIR_sg_shuffle:
  case KIR_sg_barrier:
  case KIR_mma_load:
  case KIR_mma_store:
  case KIR_mma_get:
  case KIR_mma_make:
  case KIR_mma: return true;
  default: return false;
  }
}

static bool needs_group(uint32_t op) { return op == KIR_barrier || op == KIR_async_copy || op == KIR_async_commit || op == KIR_async_wait; }

static void check_uniformity(kir_verifier *v) {
  kir_uniformity u;
  if (!kir_uniformity_find(v->k, v->arena, &v->regions, &u)) {
    kir_complain(v, 0, "out of memory");
    return;
  }
  for (uint32_t i = 1; i < v->k->insts.count; i++) {
    const kir_inst *in = kir_at(v->k, i);
    const bool uses_subgroup = needs_subgroup(in->op) || in->op == KIR_sg_id || in->op == KIR_sg_lane || in->op == KIR_sg_count;
    if (uses_subgroup && v->k->sub == 0) kir_complain(v, i, "the kernel has sub=none");
    if (needs_group(in->op) && u.control[i] > KIR_UNIFORM_GROUP) kir_complain(v, i, "not every item of the group comes here");
    if (needs_subgroup(in->op) && u.control[i] > KIR_UNIFORM_SUBGROUP) kir_complain(v, i, "not every item of the subgroup comes here");
    for (uint32_t n = 0; (in->op == KIR_mma_load || in->op == KIR_mma_store) && n < kir_index_count(in); n++)
      if (u.value[kir_arg(v->k, i, n)] > KIR_UNIFORM_SUBGROUP) kir_complain(v, i, "index %u differs within the subgroup", n);
  }
}

static void verify_body(kir_verifier *v) {
  check_table(v);
  if (v->count) return;
  if (!kir_find_regions(v->k, v->arena, &v->regions)) {
    kir_complain(v, 0, "loops and ifs do not nest");
    return;
  }
  kir_verify_structure(v);
  for (uint32_t i = 1; i < v->k->insts.count; i++) {
    check_dominance(v, i);
    check_types(v, i);
    check_attrs(v, i);
    check_access(v, i);
  }
  if (!v->count) check_uniformity(v);
}

snt_result kir_verify(const kir_kernel *k, ir_text *errors, snt_diag *diag) {
  if (k->failed) {
    if (errors) ir_text_format(errors, "kernel @%s: %s\n", k->name ? k->name : "", k->first_error.text);
    return ir_fail(diag, k->first_error.result, "verify kernel", k->first_error.node, "%s", k->first_error.text);
  }
  ir_arena scratch;
  ir_arena_init(&scratch, &k->arena->host);
  kir_verifier v = {.k = k, .arena = &scratch, .errors = errors, .diag = diag};
  kir_verify_declarations(&v);
  if (!v.count) verify_body(&v);
  const bool full = scratch.failed;
  ir_arena_free(&scratch);
  if (full) return ir_fail(diag, SNT_E_HOST_MEM, "verify kernel", 0, "out of memory");
  return v.count ? SNT_E_ARG : SNT_OK;
}
