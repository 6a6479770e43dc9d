/* Execs on devices that this library opened. Constants and states live here, scratch is one buffer; everything a submission needs is allocated
   when the exec is made, so that submitting allocates nothing. Pipelines go through the host's cache of driver binaries. */
#include "api/exec.h"

/* ---- making ---- */

static snt_result make_tables(snt_exec *x, snt_diag *diag) {
  snt_context *c = x->device->context;
  const ir_plan *p = &x->program->plan;
  x->buffers = api_take(c, p->buffers.count * sizeof *x->buffers);
  x->staging = api_take(c, p->buffers.count * sizeof *x->staging);
  x->bound = api_take(c, p->buffers.count * sizeof *x->bound);
  x->variables = api_take(c, plan_variable_count(p) * sizeof *x->variables);
  x->host_states = api_take(c, p->buffers.count * sizeof *x->host_states);
  const uint32_t symbols = x->program->pool.symbols.count;
  x->symbols = api_take(c, symbols * sizeof *x->symbols);
  x->known = symbols ? api_take(c, EXPR_KNOWN * sizeof *x->known) : NULL;
  const bool ok = x->buffers && x->staging && x->bound && x->variables && x->host_states && x->symbols && (x->known || !symbols);
  return ok ? SNT_OK : ir_no_memory(diag, "exec");
}

static void give_rooms(snt_exec *x) {
  snt_context *c = x->device->context;
  api_give(c, x->dispatches, x->dispatch_room * sizeof *x->dispatches);
  api_give(c, x->bounds, x->binding_room * sizeof *x->bounds);
  api_give(c, x->blocks, x->dispatch_room * sizeof(plan_launch));
  api_give(c, x->spread, x->dispatch_room * sizeof *x->spread);
  api_give(c, x->words, x->word_room * sizeof *x->words);
  x->dispatches = NULL, x->bounds = NULL, x->blocks = NULL, x->spread = NULL, x->words = NULL;
  x->dispatch_room = x->binding_room = x->word_room = 0;
}

/* Backends take what they need of a dispatch before `submit` returns, so the rooms of an earlier run may go. */
snt_result exec_make_rooms(snt_exec *x, const int64_t *symbols, snt_diag *diag) {
  snt_context *c = x->device->context;
  uint64_t dispatches, bindings;
  if (!plan_count_dispatches(&x->program->plan, symbols, &dispatches, &bindings))
    return ir_fail(diag, SNT_E_LIMIT, "run", 0, "more than %d dispatches: too many trips of a repeat", PLAN_MAX_DISPATCHES);
  bindings += exec_chain_launches(x, dispatches);
  if (x->device->host || (x->dispatches && dispatches <= x->dispatch_room && bindings <= x->binding_room)) return SNT_OK;
  give_rooms(x);
  x->dispatch_room = dispatches;
  x->binding_room = bindings;
  x->word_room = exec_chain_words(x, dispatches);
  x->dispatches = api_take(c, dispatches * sizeof *x->dispatches);
  x->bounds = api_take(c, bindings * sizeof *x->bounds);
  x->blocks = api_take(c, dispatches * sizeof(plan_launch));
  x->spread = api_take(c, dispatches * sizeof *x->spread);
  x->words = x->word_room ? api_take(c, x->word_room * sizeof *x->words) : NULL;
  if (x->dispatches && x->bounds && x->blocks && x->spread && (x->words || !x->word_room)) return SNT_OK;
  give_rooms(x);
  return ir_no_memory(diag, "run");
}

snt_result exec_make_scratch(snt_exec *x, const int64_t *symbols, snt_diag *diag) {
  uint64_t bytes;
  if (!plan_eval(&x->program->plan, x->program->plan.scratch_bytes, symbols, &bytes))
    return ir_fail(diag, SNT_E_LIMIT, "exec", 0, "the scratch size does not fit");
  const bool none = !x->scratch && x->program->plan.scratch_bytes; /* kernels bind what extents of 0 leave empty, too */
  if (x->device->host || (bytes <= x->scratch_bytes && !none)) return SNT_OK;
  rt_device *rt = x->device->rt;
  rt_buffer *larger;
  SNT_TRY(rt->v->wait(x->stream->rt, diag));
  SNT_TRY(rt->v->buffer_create(rt, exec_round(bytes) + RT_EMPTY_BYTES, &larger, diag)); /* the last part may be empty */
  if (x->scratch) rt->v->buffer_destroy(x->scratch);
  x->scratch = larger;
  x->scratch_bytes = bytes;
  return SNT_OK;
}

snt_result exec_make_state(snt_exec *x, uint32_t buffer, const int64_t *symbols, snt_diag *diag) {
  uint64_t bytes;
  if (!plan_logical_bytes(&x->program->plan, &x->program->plan.buffers.at[buffer], symbols, &bytes))
    return ir_fail(diag, SNT_E_LIMIT, "exec", 0, "the size of a state does not fit");
  if (x->device->host) {
    if (!x->host_states[buffer])
      x->host_states[buffer] = api_take(x->device->context, exec_round(bytes)), x->bound[buffer].bytes = exec_round(bytes);
    return x->host_states[buffer] ? SNT_OK : ir_no_memory(diag, "exec");
  }
  if (x->buffers[buffer] && x->buffers[buffer]->bytes >= bytes) return SNT_OK;
  if (x->buffers[buffer]) return ir_fail(diag, SNT_E_ORDER, "exec", 0, "a state cannot grow: give max_symbols when the exec is made");
  return exec_upload_new(x, buffer, bytes, NULL, diag);
}

snt_result exec_own_create(snt_exec *x, const snt_exec_info *info, snt_diag *diag) {
  SNT_TRY(snt_stream_create(x->device, &x->stream, diag));
  SNT_TRY(make_tables(x, diag));
  if (!x->device->host) {
    x->target = api_target_index(x->device->rt->target);
    if (x->target == UINT32_MAX) x->target = 3;
    SNT_TRY(api_check_fit(x, diag));
    SNT_TRY(exec_find_chains(x, diag));
    x->near = exec_runs_near(x);
    SNT_TRY(exec_make_jobs(x, diag));
    SNT_TRY(exec_make_chain_jobs(x, diag));
    SNT_TRY(exec_expect_constants(x, diag));
  } else if (x->program->options.numerics == SNT_NUMERICS_REPRODUCIBLE) {
    SNT_TRY(exec_interpret(x, info, diag));
  }
  const uint32_t count = x->program->pool.symbols.count;
  if (count && (!info || !info->max_symbols)) return SNT_OK;
  if (count && info->symbol_count != count)
    return ir_fail(diag, SNT_E_ARG, "exec", 0, "%u symbols given; the program has %u", info->symbol_count, count);
  SNT_TRY(exec_make_rooms(x, count ? info->max_symbols : NULL, diag));
  return exec_make_scratch(x, count ? info->max_symbols : NULL, diag);
}

/* ---- driver binaries ---- */

/* The key of a driver binary: our code, and everything that could make the driver compile it to something else. */
static void binary_key(const snt_exec *x, exec_job *job, uint8_t key[32]) {
  ir_sha256 sha;
  uint8_t code[32];
  api_code_key(exec_job_code((snt_exec *)(uintptr_t)x, job), x->target, code);
  ir_sha256_init(&sha);
  ir_sha256_add(&sha, SNT_VERSION_TEXT, sizeof SNT_VERSION_TEXT);
  ir_sha256_add(&sha, code, sizeof code);
  ir_sha256_add(&sha, x->device->info.name, sizeof x->device->info.name);
  ir_sha256_add(&sha, x->device->info.driver, sizeof x->device->info.driver);
  if (x->near) ir_sha256_add(&sha, "near", 4);
  ir_sha256_end(&sha, key);
}

/* Bytes of an entry, 0: there is none. Asked with null, a cache says SNT_INCOMPLETE, as for blobs, or SNT_OK, as for texts. */
static size_t cached_bytes(const snt_context *c, const uint8_t key[32]) {
  size_t bytes = 0;
  const snt_result r = c->cache.get ? c->cache.get(c->cache.user, key, NULL, &bytes) : SNT_E_ARG;
  return r == SNT_INCOMPLETE || r == SNT_OK ? bytes : 0;
}

/* Entries carry our own checksum in front: some drivers crash on damaged binaries. */
static void *cached_binary(const snt_exec *x, exec_job *job, const uint8_t key[32], size_t *size) {
  snt_context *c = x->device->context;
  const size_t whole = cached_bytes(c, key);
  job->replaces = whole > 0; /* until it is taken */
  if (whole <= 32) return NULL;
  uint8_t *entry = api_take(c, whole), sum[32];
  size_t got = whole;
  bool good = entry && c->cache.get(c->cache.user, key, entry, &got) == SNT_OK && got == whole;
  if (good) {
    ir_sha256 sha;
    ir_sha256_init(&sha);
    ir_sha256_add(&sha, entry + 32, whole - 32);
    ir_sha256_end(&sha, sum);
    good = !memcmp(sum, entry, 32);
  }
  if (!good) {
    api_give(c, entry, whole);
    return NULL;
  }
  *size = whole;
  return entry;
}

static void store_binary(const snt_exec *x, const exec_job *job, const uint8_t key[32]) {
  snt_context *c = x->device->context;
  const rt_vtable *v = x->device->rt->v;
  size_t size = 0;
  if (!c->cache.set || !v->pipeline_binary) return;
  const snt_result r = v->pipeline_binary(job->pipeline, NULL, &size);
  if ((r != SNT_OK && r != SNT_INCOMPLETE) || !size) return;
  uint8_t *entry = api_take(c, size + 32);
  if (entry && v->pipeline_binary(job->pipeline, entry + 32, &size) == SNT_OK) {
    ir_sha256 sha;
    ir_sha256_init(&sha);
    ir_sha256_add(&sha, entry + 32, size);
    ir_sha256_end(&sha, entry);
    c->cache.set(c->cache.user, key, entry, size + 32);
  }
  api_give(c, entry, size + 32);
}

/* Drivers that compile anew for a binary are asked when the exec goes, so that nobody waits for it: in the order of building, and not for
   what another process has stored by then. */
static void store_late(const snt_exec *x) {
  const snt_context *c = x->device->context;
  const uint32_t built = x->jobs && x->device->rt && x->device->rt->late_binaries ? atomic_load(&x->built) : 0;
  for (uint32_t turn = 1; turn <= built; turn++)
    for (uint32_t i = 0; i < x->job_count; i++) {
      exec_job *job = &x->jobs[i];
      uint8_t key[32];
      if (job->built != turn) continue;
      binary_key(x, job, key);
      if (job->replaces || !cached_bytes(c, key)) store_binary(x, job, key);
    }
}

static snt_result build_pipeline(snt_exec *x, exec_job *job, snt_diag *diag) {
  const api_kernel *k = &x->program->kernels[job->kernel];
  const codegen_code *code = &exec_job_code(x, job)->code;
  uint8_t code_key[32];
  api_code_key(exec_job_code(x, job), x->target, code_key);
  rt_code what = {.data = code->data,
                  .size = code->size,
                  .kernel = k->legal[x->target],
                  .binding_count = k->binding_count,
                  .block_bytes = k->block_bytes,
                  .slot_kinds = k->kinds,
                  .sub = k->sub,
                  .key = code_key,
                  .near = x->near,
                  .report = x->flags & SNT_EXEC_REPORT};
  for (uint32_t i = 0; x->device->rt->target == SNT_TARGET_SPIRV && i < k->binding_count; i++)
    if (k->kinds[i] == RT_SLOT_ADDRESS)
      return ir_fail(diag, SNT_E_UNSUPPORTED, "exec", 0,
                     "the program reaches buffers by their addresses: only a host's own device gives them");
  what.entry = x->device->rt->target == SNT_TARGET_SPIRV ? "main" : api_entry_name(x->program->plan.kernels.at[job->kernel].kernel->name);
  memcpy(what.items, k->items, sizeof what.items);
  if (job->chain)
    what.kernel = NULL, what.slot_kinds = NULL, what.entry = "chain", what.binding_count = job->chain->binding_count,
    what.block_bytes = 4 * job->chain->word_count;
  uint8_t key[32];
  binary_key(x, job, key);
  size_t size = 0;
  uint8_t *cached = cached_binary(x, job, key, &size);
  const uint64_t start = rt_clock_ns();
  snt_result r = SNT_E_BACKEND;
  if (cached) r = x->device->rt->v->pipeline_create(x->device->rt, &what, cached + 32, size - 32, &job->pipeline, NULL);
  if (r != SNT_OK) r = x->device->rt->v->pipeline_create(x->device->rt, &what, NULL, 0, &job->pipeline, diag);
  api_give(x->device->context, cached, size);
  job->compile_ns = rt_clock_ns() - start;
  job->from_cache = r == SNT_OK && job->pipeline->from_binary;
  if (r != SNT_OK || job->from_cache) return r;
  job->built = atomic_fetch_add(&x->built, 1) + 1;
  if (!x->device->rt->late_binaries) store_binary(x, job, key);
  return SNT_OK;
}

snt_result exec_own_build(snt_exec *x, exec_job *job, snt_diag *diag) {
  return job->kind == SNT_JOB_CONSTANT ? exec_build_constant(x, job, diag) : build_pipeline(x, job, diag);
}

void exec_own_drop(snt_exec *x) {
  snt_device *d = x->device;
  snt_context *c = d->context;
  const ir_plan *p = &x->program->plan;
  const rt_vtable *v = d->rt ? d->rt->v : NULL;
  snt_exec_destroy(x->inner);
  if (v && x->stream) v->wait(x->stream->rt, NULL);
  store_late(x);
  for (uint32_t i = 0; v && i < x->job_count; i++)
    if (x->jobs[i].pipeline) v->pipeline_destroy(x->jobs[i].pipeline);
  for (uint32_t i = 0; i < p->buffers.count; i++) {
    if (v && x->buffers && x->buffers[i]) v->buffer_destroy(x->buffers[i]);
    if (v && x->staging && x->staging[i]) v->buffer_destroy(x->staging[i]);
    if (x->host_states && x->host_states[i]) api_give(c, x->host_states[i], x->bound[i].bytes);
  }
  if (x->scratch) v->buffer_destroy(x->scratch);
  if (!d->host) exec_drop_chains(x);
  api_give(c, x->buffers, p->buffers.count * sizeof *x->buffers);
  api_give(c, x->staging, p->buffers.count * sizeof *x->staging);
  api_give(c, x->bound, p->buffers.count * sizeof *x->bound);
  give_rooms(x);
  api_give(c, x->variables, plan_variable_count(p) * sizeof *x->variables);
  api_give(c, x->symbols, x->program->pool.symbols.count * sizeof *x->symbols);
  api_give(c, x->known, x->known ? EXPR_KNOWN * sizeof *x->known : 0);
  api_give(c, x->host_states, p->buffers.count * sizeof *x->host_states);
  api_stream_drop(x->stream);
}
