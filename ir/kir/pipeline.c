/* The pipeline of passes on kernel IR, and its runner.
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
  for (uint32_t i = 0; i < out->memories.count; i++) {
    kir_memory *m = &out->memories.at[i];
    if (!m->values) continue;
    uint64_t count = m->type.lanes;
    for (uint32_t d = 0; d < m->rank; d++) count *= m->dims[d];
    double *values = IR_NEW_ARRAY(out->arena, double, count);
    if (values) memcpy(values, m->values, count * sizeof *values);
    m->values = values;
  }
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
