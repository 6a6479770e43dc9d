/* The pipeline of passes on kernel IR, its runner, and the clone that every pass is written with.
   In: a verified kernel of any operations. Out: one that the target of `caps` can print, in the arena of `out`. */
#include "ir/kir_pass_private.h"

const kir_pass kir_pipeline[] = {
    {"own", kir_pass_own, kir_has_own, 0},
    {"tables", kir_pass_tables, kir_has_tables, KIR_PASS_ONCE},
    /* registers out of arrays */
    {"unroll", kir_pass_unroll, NULL, 0},
    {"sroa", kir_pass_sroa, kir_has_arrays, 0},
    {"fold", kir_pass_fold, NULL, 0},
    {"cse", kir_pass_cse, NULL, KIR_PASS_ONCE},
    {"dce", kir_pass_dce, NULL, 0},
    /* what is hoisted whole costs less than what is hoisted in pieces */
    {"licm", kir_pass_licm, kir_has_loops, 0},
    {"fma", kir_pass_fma, kir_has_products, 0},
    /* the target */
    {"pairs", kir_pass_pairs, kir_has_missing_words, 0},
    {"require", kir_pass_require, NULL, KIR_PASS_CHECKS},
    {"group", kir_pass_group, kir_has_group_work, 0},
    {"align", kir_pass_align, NULL, 0},
    {"memory", kir_pass_memory, kir_has_accesses, 0},
    {"widen", kir_pass_widen, kir_has_narrow, 0},
    {"math", kir_pass_math, kir_has_math, 0},
    {"expand", kir_pass_expand, NULL, 0},
    {"small", kir_pass_small, kir_loses_small, 0},
    {"expand", kir_pass_expand, kir_loses_small, 0},
    {"split", kir_pass_split, NULL, 0},
    {"neighbours", kir_pass_neighbours, kir_joins_neighbours, 0},
    {"spread", kir_pass_spread, kir_has_texels, 0},
    {"address", kir_pass_address, NULL, 0},
    /* cleanup */
    {"fold", kir_pass_fold, NULL, 0},
    {"cse", kir_pass_cse, NULL, KIR_PASS_ONCE},
    {"licm", kir_pass_licm, kir_has_loops, 0},
    {"cse", kir_pass_cse, NULL, KIR_PASS_ONCE},
    {"dce", kir_pass_dce, NULL, 0},
};
const uint32_t kir_pipeline_count = IR_COUNT(kir_pipeline);

/* ---- clone ---- */
static const char *copy_text(ir_arena *arena, const char *text) { return text ? ir_arena_text(arena, text, strlen(text)) : NULL; }

snt_result kir_clone_begin(kir_clone *c, const kir_kernel *in, kir_kernel *out) {
  ir_arena *arena = out->arena;
  kir_init(out, arena, in->name);
  memcpy(out->items, in->items, sizeof out->items);
  out->sub = in->sub;
  out->mode = in->mode;
  out->needs = copy_text(arena, in->needs);
  for (uint32_t i = 0; i < in->memories.count; i++) { /* a pass's own texts go with its arena */
    kir_memory m = in->memories.at[i];
    m.name = copy_text(arena, m.name);
    m.state = copy_text(arena, m.state);
    IR_PUSH(arena, &out->memories, m);
  }
  for (uint32_t i = 0; i < in->scalars.count; i++) {
    kir_scalar scalar = in->scalars.at[i];
    scalar.name = copy_text(arena, scalar.name);
    IR_PUSH(arena, &out->scalars, scalar);
  }
  for (uint32_t i = 0; i < in->owns.count; i++) IR_PUSH(arena, &out->owns, in->owns.at[i]);
  IR_RESERVE(arena, &out->insts, in->insts.count + in->insts.count / 4 + 16);
  IR_RESERVE(arena, &out->args, in->args.count + in->args.count / 4 + 16);
  *c = (kir_clone){.in = in, .out = out, .map = IR_NEW_ARRAY(arena, uint32_t, (size_t)in->insts.count + 1)};
  return kir_pass_end(out, "clone", NULL);
}

/* Only constants come again that a copy would not have made. */
static uint32_t clone_const(kir_clone *c, uint32_t old) { return c->map[old] = kir_push(c->out, kir_at(c->in, old), 0, NULL); }

uint32_t kir_clone_inst(kir_clone *c, uint32_t old) {
  kir_kernel *out = c->out;
  const kir_inst *from = kir_at(c->in, old);
  const uint32_t count = from->arg_count;
  if (out->recent && from->op == KIR_const) return clone_const(c, old);
  if (out->recent && (kir_ops[from->op].flags & KIR_REGION)) out->recent_from = out->insts.count + 1;
  if (!kir_room(out, count)) return c->map[old] = out->insts.count - 1;
  const uint32_t *map = c->map, *args = c->in->args.at + from->args;
  kir_inst *made = kir_at(out, out->insts.count);
  uint32_t *to = out->args.at + out->args.count;
  *made = *from;
  made->args = out->args.count;
  for (uint32_t i = 0; i < count; i++) to[i] = map[args[i]];
  if (made->op == KIR_end || made->op == KIR_else) made->index = map[made->index];
  out->args.count += count;
  return c->map[old] = out->insts.count++;
}

snt_result kir_pass_end(kir_kernel *out, const char *pass, snt_diag *diag) {
  if (out->arena->failed) return ir_fail(diag, SNT_E_HOST_MEM, pass, 0, "kernel %s: out of memory", out->name ? out->name : "?");
  if (!out->failed) return SNT_OK;
  const snt_diag *e = &out->first_error;
  return ir_fail(diag, e->result ? e->result : SNT_E_INTERNAL, pass, e->node, "kernel %s: %.180s", out->name, e->text);
}

snt_result kir_pass_stop(kir_kernel *out, const char *pass, snt_diag *diag) {
  if (!out->arena->failed) kir_mistake(out, "the kernel was not verified");
  return kir_pass_end(out, pass, diag);
}

snt_result kir_unsupported(const kir_kernel *k, const char *pass, uint32_t inst, const char *capability, snt_diag *diag) {
  return ir_fail(diag, SNT_E_UNSUPPORTED, pass, 0, "kernel %s: %s needs %s", k->name, inst ? kir_ops[kir_at(k, inst)->op].name : "a memory",
                 capability);
}

/* ---- runner ---- */
static bool named_in(const char *list, const char *name) {
  const size_t length = strlen(name);
  for (const char *at = list; at && *at;) {
    const char *comma = strchr(at, ',');
    const size_t n = comma ? (size_t)(comma - at) : strlen(at);
    if (n == length && memcmp(at, name, n) == 0) return true;
    at = comma ? comma + 1 : NULL;
  }
  return false;
}

static snt_result check_after(const char *pass, const kir_kernel *k, ir_arena *arena, snt_diag *diag) {
  ir_text errors;
  ir_text_init(&errors, arena);
  const snt_result r = kir_verify(k, &errors, NULL);
  if (r == SNT_OK) return r;
  return ir_fail(diag, SNT_E_INTERNAL, pass, 0, "kernel %s is wrong after pass %s: %.160s", k->name, pass, errors.at ? errors.at : "");
}

/* A deep copy that shares nothing with `in` or with the scratch arenas, but for the texts of the user's own, which are the graph's. */
static snt_result copy_kernel(const kir_kernel *in, kir_kernel *out, snt_diag *diag) {
  kir_clone c;
  SNT_TRY(kir_clone_begin(&c, in, out));
  out->needs = copy_text(out->arena, in->needs);
  for (uint32_t i = 0; i < out->memories.count; i++) {
    kir_memory *m = &out->memories.at[i];
    if (!m->values) continue;
    uint64_t count = m->type.lanes;
    for (uint32_t d = 0; d < m->rank; d++) count *= m->dims[d];
    double *values = IR_NEW_ARRAY(out->arena, double, count);
    if (values) memcpy(values, m->values, count * sizeof *values);
    m->values = values;
  }
  for (uint32_t i = 1; i < in->insts.count; i++) c.map[i] = i;
  for (uint32_t i = 1; i < in->insts.count; i++) kir_clone_inst(&c, i);
  return kir_pass_end(out, "copy", diag);
}

typedef struct pass_run {
  const kir_pass *last; /* that made `current` */
  ir_arena *arenas;     /* two: of the kernel before and after the running pass */
  kir_kernel kernels[2];
  const kir_kernel *current;
  uint32_t next;
} pass_run;

static snt_result run_one(pass_run *run, const kir_pass *pass, const kir_caps *caps, const kir_pass_hooks *hooks, snt_diag *diag) {
  kir_kernel *made = &run->kernels[run->next];
  ir_arena *arena = &run->arenas[run->next];
  kir_init(made, arena, run->current->name);
  SNT_TRY(pass->run(run->current, made, caps, diag));
  SNT_TRY(kir_pass_end(made, pass->name, diag));
  if (pass->flags & KIR_PASS_CHECKS) return SNT_OK;
  run->last = pass;
  if (hooks && hooks->verify) SNT_TRY(check_after(pass->name, made, arena, diag));
  if (hooks && hooks->after) hooks->after(hooks->user, pass->name, made);
  run->current = made;
  run->next = !run->next;
  ir_arena_clear(&run->arenas[run->next]);
  return SNT_OK;
}

bool kir_has_own(const kir_kernel *k, const kir_caps *caps) {
  (void)caps;
  return k->owns.count || k->failed;
}

bool kir_has_loops(const kir_kernel *k, const kir_caps *caps) {
  (void)caps;
  for (uint32_t i = 1; i < k->insts.count; i++)
    if (kir_at(k, i)->op == KIR_loop) return true;
  return false;
}

/* No copy is made of a kernel to find that a pass leaves it alone. */
static bool has_work(const pass_run *run, const kir_pass *pass, const kir_caps *caps) {
  if ((pass->flags & KIR_PASS_ONCE) && run->last && run->last->run == pass->run) return false;
  return !pass->needed || pass->needed(run->current, caps);
}

snt_result kir_run_passes_in(ir_arena scratch[2], const kir_kernel *in, kir_kernel *out, const kir_caps *caps, const char *only,
                             const kir_pass_hooks *hooks, snt_diag *diag) {
  if (in->failed)
    return ir_fail(diag, SNT_E_INTERNAL, "passes", in->first_error.node, "kernel %s was built wrongly: %.150s", in->name,
                   in->first_error.text);
  pass_run run = {.current = in, .arenas = scratch};
  snt_result r = SNT_OK;
  for (uint32_t i = 0; i < kir_pipeline_count && r == SNT_OK; i++)
    if ((!only || named_in(only, kir_pipeline[i].name)) && has_work(&run, &kir_pipeline[i], caps))
      r = run_one(&run, &kir_pipeline[i], caps, hooks, diag);
  if (r == SNT_OK) r = copy_kernel(run.current, out, diag);
  ir_arena_clear(&scratch[0]);
  ir_arena_clear(&scratch[1]);
  return r;
}

snt_result kir_run_passes(const kir_kernel *in, kir_kernel *out, const kir_caps *caps, const char *only, const kir_pass_hooks *hooks,
                          snt_diag *diag) {
  ir_arena scratch[2];
  ir_arena_init(&scratch[0], &in->arena->host);
  ir_arena_init(&scratch[1], &in->arena->host);
  const snt_result r = kir_run_passes_in(scratch, in, out, caps, only, hooks, diag);
  ir_arena_free(&scratch[0]);
  ir_arena_free(&scratch[1]);
  return r;
}
