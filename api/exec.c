/* An exec: one program on one device. Pipelines are jobs, one for each distinct kernel, or chain of kernels that one launch goes through; so are constants
   that are still to be made. What belongs to devices of our own is in exec_own.c, what belongs to a host's in door/. */
#include "api/exec.h"

/* ---- making ---- */

snt_result api_check_fit(const snt_exec *x, snt_diag *diag) {
  const cost_profile *p = &x->device->profile;
  for (uint32_t i = 0; !x->door && !x->device->door && i < x->program->plan.buffers.count; i++)
    if (x->program->plan.buffers.at[i].image)
      return ir_fail(diag, SNT_E_UNSUPPORTED, "exec", 0, "port %s is an image, which a Vulkan host binds",
                     x->program->plan.buffers.at[i].name);
  if (!x->program->targets) return ir_fail(diag, SNT_E_UNSUPPORTED, "exec", 0, "the program runs on the host device only");
  for (uint32_t k = 0; k < x->program->plan.kernels.count; k++) {
    const api_kernel *kernel = &x->program->kernels[k];
    const char *name = x->program->plan.kernels.at[k].kernel->name;
    const uint64_t items = (uint64_t)kernel->items[0] * kernel->items[1] * kernel->items[2];
    if (!kernel->code[x->target].code.data)
      return ir_fail(diag, SNT_E_UNSUPPORTED, "exec", 0, "the program was not compiled for the target of %s", x->device->info.selector);
    const bool spirv = api_targets[x->target].bit == SNT_TARGET_SPIRV;
    const char *lacks = spirv ? api_module_lacks(NULL, &kernel->code[x->target].code, &p->caps) : NULL;
    if (lacks) return ir_fail(diag, SNT_E_UNSUPPORTED, "exec", 0, "%s asks for %s, which the device lacks", name, lacks);
    if (p->max_bindings && kernel->binding_count > p->max_bindings)
      return ir_fail(diag, SNT_E_LIMIT, "exec", 0, "%s binds %u buffers; the device has %u", name, kernel->binding_count, p->max_bindings);
    if (p->max_items && items > p->max_items)
      return ir_fail(diag, SNT_E_LIMIT, "exec", 0, "%s has groups of %llu items; the device takes %u", name, (unsigned long long)items,
                     p->max_items);
  }
  return SNT_OK;
}

/* Is the kernel launched by itself? */
static bool is_launched(const snt_exec *x, uint32_t kernel) {
  const ir_plan *p = &x->program->plan;
  if (!x->chain_count) return true;
  for (uint32_t s = 0; s < p->steps.count; s++)
    if (p->steps.at[s].kernel == kernel && !exec_chain_of(x, s)) return true;
  return false;
}

/* The code alone does not say what format texels are of. */
static bool is_same_pipeline(const snt_exec *x, uint32_t a, uint32_t b) {
  const api_kernel *one = &x->program->kernels[a], *other = &x->program->kernels[b];
  return !memcmp(one->kinds, other->kinds, sizeof one->kinds) && codegen_same(&one->code[x->target].code, &other->code[x->target].code);
}

snt_result exec_make_jobs(snt_exec *x, snt_diag *diag) {
  snt_context *c = x->device->context;
  const uint32_t kernels = x->program->plan.kernels.count;
  x->job_room = kernels + x->chain_count + x->program->plan.buffers.count + 1;
  x->jobs = api_take(c, x->job_room * sizeof *x->jobs);
  x->job_of = api_take(c, kernels * sizeof *x->job_of);
  if (!x->jobs || !x->job_of) return ir_no_memory(diag, "exec");
  for (uint32_t k = 0; k < kernels; k++) {
    x->job_of[k] = UINT32_MAX;
    if (!is_launched(x, k)) continue;
    uint32_t same = x->door ? x->job_count : 0; /* a door's pipelines differ by their ports' formats, too */
    while (same < x->job_count && !is_same_pipeline(x, x->jobs[same].kernel, k)) same++;
    if (same == x->job_count) {
      x->jobs[x->job_count].name = x->program->plan.kernels.at[k].kernel->name;
      x->jobs[x->job_count++].kernel = k;
    }
    x->job_of[k] = same;
  }
  return SNT_OK;
}

api_code *exec_job_code(snt_exec *x, exec_job *job) { return job->chain ? &job->code : &x->program->kernels[job->kernel].code[x->target]; }

static snt_result create_at_door(snt_exec *x, const snt_exec_info *info, snt_diag *diag) {
  x->target = api_target_index(SNT_TARGET_SPIRV);
  SNT_TRY(api_check_fit(x, diag));
  if (!api_make_constants(x->program)) return ir_no_memory(diag, "exec"); /* what comes later takes none */
  SNT_TRY(x->device->door->exec_create(x, info, diag));
  return exec_make_jobs(x, diag);
}

snt_result exec_create_unprobed(snt_device *d, const snt_program *program, const snt_exec_info *info, snt_exec **out, snt_diag *diag) {
  if (!d || !program || !out) return ir_fail(diag, SNT_E_ARG, "exec", 0, "a device and a program are needed");
  if (info) /* a door reads the chain itself */
    SNT_TRY((d->door ? api_check_chained : api_check_whole)(&info->head, SNT_TYPE_exec_info, sizeof *info, diag));
  if (info) SNT_TRY(api_check_flags(info->flags, SNT_EXEC_REPORT | SNT_EXEC_APART, "exec", diag));
  snt_exec *x = api_take(d->context, sizeof *x);
  if (!x) return ir_no_memory(diag, "exec");
  atomic_init(&x->uses, 1);
  x->device = d;
  x->flags = info ? info->flags : 0;
  x->program = (snt_program *)(uintptr_t)program;
  api_device_hold(d);
  atomic_fetch_add(&x->program->uses, 1);
  const uint32_t starved = api_starved(d->context);
  const snt_result r = api_blame(d->context, starved, d->door ? create_at_door(x, info, diag) : exec_own_create(x, info, diag), diag);
  if (r != SNT_OK) {
    snt_exec_destroy(x);
    return r;
  }
  *out = x;
  return SNT_OK;
}

snt_result snt_exec_create(snt_device *d, const snt_program *program, const snt_exec_info *info, snt_exec **out, snt_diag *diag) {
  if (d && program && program->options.numerics == SNT_NUMERICS_REPRODUCIBLE && !d->host) SNT_TRY(exec_probe_same_bits(d, program, diag));
  return exec_create_unprobed(d, program, info, out, diag);
}

void api_exec_hold(snt_exec *x) { atomic_fetch_add(&x->uses, 1); }
void snt_exec_destroy(snt_exec *x) {
  if (!x || atomic_fetch_sub(&x->uses, 1) != 1) return;
  if (x->door) x->device->door->exec_destroy(x);
  snt_device *d = x->device;
  snt_context *c = d->context;
  if (!d->door) exec_own_drop(x);
  api_give(c, x->jobs, x->job_room * sizeof *x->jobs);
  api_give(c, x->job_of, x->program->plan.kernels.count * sizeof *x->job_of);
  api_program_drop(x->program);
  api_give(c, x, sizeof *x);
  snt_device_destroy(d);
}

/* ---- jobs ---- */

static snt_result build_at_door(snt_exec *x, exec_job *job, snt_diag *diag) {
  const uint64_t start = rt_clock_ns();
  const snt_result r = x->device->door->job_build(x, (uint32_t)(job - x->jobs), diag);
  job->compile_ns = rt_clock_ns() - start;
  return r;
}

static snt_result build(snt_exec *x, exec_job *job, snt_diag *diag) {
  return x->device->door ? build_at_door(x, job, diag) : exec_own_build(x, job, diag);
}

snt_result snt_exec_run_job(snt_exec *x, uint32_t number, snt_diag *diag) {
  if (!x || number >= x->job_count) return ir_fail(diag, SNT_E_ARG, "job", 0, "no job %u", number);
  exec_job *job = &x->jobs[number];
  unsigned seen = atomic_load(&job->state);
  do {
    if (seen == SNT_JOB_DONE) return SNT_OK;
    if (seen == EXEC_JOB_RUNNING) return SNT_NOT_READY;
  } while (!atomic_compare_exchange_weak(&job->state, &seen, EXEC_JOB_RUNNING));
  const uint32_t starved = api_starved(x->device->context);
  const snt_result r = api_blame(x->device->context, starved, build(x, job, diag), diag);
  atomic_store(&job->state, r == SNT_OK ? SNT_JOB_DONE : SNT_JOB_FAILED);
  return r;
}
snt_result snt_exec_prepare(snt_exec *x, snt_diag *diag) {
  if (!x) return ir_fail(diag, SNT_E_ARG, "exec", 0, "no exec");
  for (uint32_t i = 0; i < x->job_count; i++) SNT_TRY(snt_exec_run_job(x, i, diag));
  return SNT_OK;
}

uint32_t snt_exec_job_count(const snt_exec *x) { return x ? x->job_count : 0; }
uint32_t snt_exec_step_count(const snt_exec *x) { return x ? x->program->plan.steps.count : 0; }

snt_result snt_exec_job(const snt_exec *x, uint32_t number, snt_job *out) {
  if (!x || !out || number >= x->job_count) return SNT_E_ARG;
  exec_job *job = &x->jobs[number];
  const unsigned state = atomic_load(&job->state);
  out->name = job->name;
  out->state = state == EXEC_JOB_RUNNING ? SNT_JOB_WAITING : state;
  out->kind = job->kind;
  out->from_cache = job->from_cache;
  out->compile_ns = job->compile_ns;
  out->code_bytes = 0;
  memset(out->key, 0, sizeof out->key);
  if (job->kind == SNT_JOB_CONSTANT) return SNT_OK;
  api_code *code = exec_job_code((snt_exec *)(uintptr_t)x, job);
  out->code_bytes = (uint32_t)code->code.size;
  api_code_key(code, x->target, out->key);
  return SNT_OK;
}

snt_result snt_exec_step(const snt_exec *x, uint32_t step, snt_step *out) {
  if (!x || !out || step >= x->program->plan.steps.count) return SNT_E_ARG;
  const plan_step *s = &x->program->plan.steps.at[step];
  out->name = s->name;
  out->kind = x->program->plan.kernels.at[s->kernel].kind;
  const exec_chain *chain = exec_chain_of(x, step);
  out->job = chain ? chain->job : x->job_of ? x->job_of[s->kernel] : 0;
  out->barrier = s->barrier;
  out->est_ns = (uint64_t)s->est_ns;
  return SNT_OK;
}
