/* Submitting: arguments are checked and bound to plan buffers, the plan evaluated for the symbols, the dispatches handed to the backend.
   snt_run also moves host memory in and out. The host device evaluates the graph instead. */
#include "api/exec.h"
#include "ir/eval.h"

static const snt_argument *argument(const snt_run_info *info, uint32_t i) {
  const size_t stride = info->argument_stride ? info->argument_stride : sizeof(snt_argument);
  return (const snt_argument *)(const void *)((const char *)info->arguments + i * stride);
}

static snt_result bind_argument(snt_exec *x, const snt_argument *a, const snt_run_info *info, bool host_allowed, snt_diag *diag) {
  const snt_program *p = x->program;
  uint64_t bytes;
  snt_port port = {{0}, 0, 0, {0, 0, {0}}};
  if (a->port >= p->port_count || a->reserved) return ir_fail(diag, SNT_E_ARG, "run", 0, "no port %u, or reserved is not 0", a->port);
  (void)snt_program_port(p, a->port, &port);
  if (!plan_logical_bytes(&p->plan, &p->plan.buffers.at[p->ports[a->port]], info->symbols, &bytes))
    return ir_fail(diag, SNT_E_LIMIT, "run", 0, "the size of %s does not fit", port.name);
  struct exec_port *to = &x->bound[p->ports[a->port]];
  if ((a->buffer != NULL) == (a->host != NULL))
    return ir_fail(diag, SNT_E_ARG, "run", 0, "%s needs a buffer or host memory, one of them", port.name);
  if (a->host && !host_allowed) return ir_fail(diag, SNT_E_ARG, "run", 0, "%s is host memory: snt_submit takes buffers only", port.name);
  const uint64_t room = a->host ? a->bytes : a->buffer->bytes - (a->offset <= a->buffer->bytes ? a->offset : a->buffer->bytes);
  if (room < bytes)
    return ir_fail(diag, SNT_E_ARG, "run", 0, "%s has %llu bytes; %llu are given", port.name, (unsigned long long)bytes,
                   (unsigned long long)room);
  if (a->buffer && a->buffer->device != x->device) return ir_fail(diag, SNT_E_ARG, "run", 0, "%s lies on another device", port.name);
  const uint32_t align = x->device->profile.offset_align;
  if (a->buffer && align && a->offset % align)
    return ir_fail(diag, SNT_E_ARG, "run", 0, "%s begins at byte %llu, not a multiple of %u", port.name, (unsigned long long)a->offset,
                   align);
  *to = (struct exec_port){a->buffer ? a->buffer->rt : NULL, a->buffer ? a->offset : 0, bytes, a->host};
  if (a->buffer && x->device->host) to->host = (char *)a->buffer->host + a->offset;
  return SNT_OK;
}

static snt_result bind_arguments(snt_exec *x, const snt_run_info *info, bool host_allowed, snt_diag *diag) {
  const snt_program *p = x->program;
  SNT_TRY(api_check_symbols(p, info->symbols, info->symbol_count, "run", diag));
  if (api_is_short(info->argument_stride, sizeof(snt_argument)))
    return ir_fail(diag, SNT_E_ARG, "run", 0, "arguments are in rows that are too short");
  if (info->argument_count && !info->arguments) return ir_fail(diag, SNT_E_ARG, "run", 0, "no arguments");
  for (uint32_t i = 0; i < p->port_count; i++)
    x->bound[p->ports[i]] = (struct exec_port){.bytes = x->host_states[p->ports[i]] ? x->bound[p->ports[i]].bytes : 0};
  for (uint32_t i = 0; i < info->argument_count; i++) SNT_TRY(bind_argument(x, argument(info, i), info, host_allowed, diag));
  for (uint32_t i = 0; i < p->port_count; i++) {
    const uint32_t b = p->ports[i];
    snt_port port = {{0}, 0, 0, {0, 0, {0}}};
    if (x->bound[b].buffer || x->bound[b].host) continue;
    (void)snt_program_port(p, i, &port);
    if (port.kind != SNT_PORT_STATE) return ir_fail(diag, SNT_E_ARG, "run", 0, "no argument for port %s", port.name);
    SNT_TRY(exec_make_state(x, b, info->symbols, diag));
  }
  return SNT_OK;
}

/* ---- dispatches ---- */

static rt_buffer *buffer_of(const snt_exec *x, uint32_t b) {
  if (x->program->plan.buffers.at[b].kind == PLAN_SCRATCH) return x->scratch;
  return x->bound[b].buffer ? x->bound[b].buffer : x->staging[b] && x->bound[b].host ? x->staging[b] : x->buffers[b];
}

static snt_result does_not_fit(const plan_step *s, snt_diag *diag) {
  return ir_fail(diag, SNT_E_LIMIT, "run", 0, "a size of %s does not fit", s->name);
}

/* Slots: of a launch of several steps, which of its bindings this step's are; null: it has its own. */
static snt_result fill_bounds(snt_exec *x, const plan_step *s, const expr_values *at, const uint32_t *slots, struct rt_bound *bounds,
                              snt_diag *diag) {
  const ir_plan *p = &x->program->plan;
  for (uint32_t i = 0; i < s->binding_count; i++) {
    struct rt_bound *to = &bounds[slots ? slots[i] : i];
    const plan_binding *b = &s->bindings[i];
    uint64_t offset, bytes, scratch = 0, swapped = 0;
    if (!plan_eval_at(p, b->offset, at, &offset) || !plan_eval_at(p, b->bytes, at, &bytes) || !plan_eval_at(p, b->swap, at, &swapped))
      return does_not_fit(s, diag);
    const uint32_t number = swapped ? b->other : b->buffer;
    const uint64_t base = x->bound[number].buffer ? x->bound[number].offset : 0;
    if (p->buffers.at[number].kind == PLAN_SCRATCH && !plan_eval_at(p, p->buffers.at[number].offset, at, &scratch))
      return does_not_fit(s, diag);
    to->buffer = buffer_of(x, number);
    to->offset = base + offset + scratch;
    to->access = b->access;
    if (!to->buffer) return ir_fail(diag, SNT_E_INTERNAL, "run", 0, "%s: slot %u has no buffer", s->name, i);
    if (bytes > to->buffer->bytes - to->offset) bytes = to->buffer->bytes - to->offset; /* sizes are rounded up to 16 */
    to->bytes = bytes;
  }
  return SNT_OK;
}

/* Where a run may wait and ask whether a loop has ended: behind so many dispatches, to go on behind the loop's. */
enum { MOST_STOPS = 32, FIRST_STOP = 8 };
typedef struct loop_stop {
  uint32_t at, end, loop;
} loop_stop;
typedef struct loop_stops {
  uint32_t count, open; /* open: the first whose loop's end has not been reached */
  uint64_t next; /* the trip before which to stop, at the earliest: each time twice as many, so at most as many again are made in vain */
  loop_stop list[MOST_STOPS];
} loop_stops;

typedef struct recording {
  snt_exec *x;
  loop_stops *stops; /* or null */
  expr_values at;
  struct rt_bound *bounds;
  uint32_t count, choice;
  bool owed;                     /* a step with a barrier was left out */
  uint32_t trips, links, *words; /* of the chain at hand: trips to come, words taken of its room, */
  const uint32_t *slots;         /* of the next step */
  snt_diag *diag;
} recording;

/* A step of a chain, whose dispatch begins with the first of them: one that does not run has no groups. */
static snt_result record_link(recording *r, const exec_chain *c, uint32_t number, const plan_launch *launch) {
  snt_exec *x = r->x;
  const plan_step *s = &x->program->plan.steps.at[number];
  const uint32_t words = x->program->kernels[s->kernel].block_bytes / 4;
  if (number == c->first && !r->trips) {
    for (uint32_t i = 0; i < c->binding_count; i++) /* also where no step runs that binds it: what it would read may not be there */
      r->bounds[i] = (struct rt_bound){.buffer = x->turns, .bytes = x->turns->bytes, .access = KIR_READ | KIR_WRITE};
    r->slots = c->slots;
    r->words += r->links;
    r->links = 0;
    r->trips = c->trips;
    x->spread[r->count] = 0;
    x->dispatches[r->count++] = (rt_dispatch){.pipeline = x->jobs[c->job].pipeline,
                                              .groups = (uint64_t)x->device->profile.units,
                                              .binding_count = c->binding_count,
                                              .bindings = r->bounds,
                                              .block = r->words,
                                              .block_bytes = 4 * c->word_count,
                                              .barrier = r->owed};
    r->bounds += c->binding_count;
  }
  r->owed = number + 1 == c->end ? false : r->owed;
  r->trips -= number + 1 == c->end;
  x->spread[r->count - 1] += launch->runs;
  if (launch->groups > UINT32_MAX / 2) return does_not_fit(s, r->diag);
  memset(r->words + r->links, 0, (words + 1) * sizeof *r->words);
  if (launch->runs) memcpy(r->words + r->links, launch->scalars, launch->scalar_bytes < 4 * words ? launch->scalar_bytes : 4 * words);
  r->words[r->links + words] = launch->runs ? (uint32_t)launch->groups : 0;
  r->links += words + 1;
  if (launch->runs) SNT_TRY(fill_bounds(x, s, &r->at, r->slots, r->bounds - c->binding_count, r->diag));
  r->slots += s->binding_count;
  return SNT_OK;
}

static void note_stops(recording *r, uint32_t number) {
  const ir_plan *p = &r->x->program->plan;
  loop_stops *s = r->stops;
  for (; s->open < s->count && number >= p->loops.at[s->list[s->open].loop].end; s->open++) s->list[s->open].end = r->count;
  for (uint32_t i = 0; i < p->loops.count; i++) {
    const plan_loop *l = &p->loops.at[i];
    uint64_t trips, trip;
    if (!l->flag || number != l->first || !plan_eval_at(p, l->variable, &r->at, &trip) || !plan_eval_at(p, l->trips, &r->at, &trips))
      continue;
    if (!trip) s->next = FIRST_STOP;
    if (trip < s->next || (trips - trip) % 2 || r->trips || s->count == MOST_STOPS) continue;
    s->list[s->count++] = (loop_stop){r->count, 0, i};
    s->next = 2 * trip;
  }
}

static snt_result record_step(void *user, uint32_t number) {
  recording *r = user;
  snt_exec *x = r->x;
  const ir_plan *p = &x->program->plan;
  if (r->stops) note_stops(r, number);
  const plan_step *s = &p->steps.at[number];
  exec_chain *chain = exec_chain_of(x, number);
  plan_launch linked, *launch = chain ? &linked : &((plan_launch *)(void *)x->blocks)[r->count];
  if (!plan_eval_step(p, number, &r->at, &r->choice, launch))
    return ir_fail(r->diag, SNT_E_LIMIT, "run", 0, "a size of %s does not fit 32 bits", s->name);
  r->owed |= s->barrier;
  if (chain) return record_link(r, chain, number, launch);
  if (!launch->runs) return SNT_OK;
  x->spread[r->count] = 1;
  x->dispatches[r->count++] = (rt_dispatch){.pipeline = x->jobs[x->job_of[s->kernel]].pipeline,
                                            .groups = launch->groups,
                                            .binding_count = s->binding_count,
                                            .bindings = r->bounds,
                                            .block = launch->scalars,
                                            .block_bytes = x->program->kernels[s->kernel].block_bytes,
                                            .barrier = r->owed};
  r->owed = false;
  SNT_TRY(fill_bounds(x, s, &r->at, NULL, r->bounds, r->diag));
  r->bounds += s->binding_count;
  return SNT_OK;
}

/* Each trip chooses anew, and what it skips may have been what others wait for. */
static void record_trip(void *user) {
  recording *r = user;
  r->choice = 0;
  r->owed = true;
}

/* What expressions over the symbols are worth stays known while runs have the same. */
static expr_values values_of(snt_exec *x, const int64_t *symbols) {
  const size_t bytes = x->program->pool.symbols.count * sizeof *symbols;
  if (x->known && (!x->turn || memcmp(x->symbols, symbols, bytes) != 0)) {
    memcpy(x->symbols, symbols, bytes);
    if (!++x->turn) memset(x->known, 0, EXPR_KNOWN * sizeof *x->known), x->turn = 1;
  }
  return (expr_values){.symbols = symbols, .vars = x->variables, .known = x->known, .turn = x->turn};
}

static snt_result fill_dispatches(snt_exec *x, const int64_t *symbols, loop_stops *stops, uint32_t *count, snt_diag *diag) {
  recording r = {.x = x, .stops = stops, .at = values_of(x, symbols), .bounds = x->bounds, .words = x->words, .diag = diag};
  const plan_walk walk = {&r, record_step, record_trip, symbols, x->variables};
  SNT_TRY(plan_walk_steps(&x->program->plan, &walk));
  if (stops) note_stops(&r, x->program->plan.steps.count);
  *count = r.count;
  return SNT_OK;
}

typedef struct taken_steps {
  const ir_plan *plan;
  expr_values at;
  uint32_t choice, count, room, *steps;
} taken_steps;

static snt_result take_step(void *user, uint32_t number) {
  taken_steps *t = user;
  plan_launch launch;
  if (!plan_eval_step(t->plan, number, &t->at, &t->choice, &launch)) return SNT_E_LIMIT;
  if (!launch.runs) return SNT_OK;
  if (t->steps && t->count < t->room) t->steps[t->count] = number;
  t->count++;
  return SNT_OK;
}

static void take_trip(void *user) { ((taken_steps *)user)->choice = 0; }

snt_result snt_exec_steps_taken(snt_exec *x, const snt_run_info *info, uint32_t *count, uint32_t *steps) {
  if (!x || !count || !info || api_check_whole(&info->head, SNT_TYPE_run_info, sizeof *info, NULL) != SNT_OK) return SNT_E_ARG;
  if (x->program->pool.symbols.count && (!info->symbols || info->symbol_count < x->program->pool.symbols.count)) return SNT_E_ARG;
  taken_steps t = {&x->program->plan, {.symbols = info->symbols, .vars = x->variables}, 0, 0, *count, steps};
  const plan_walk walk = {&t, take_step, take_trip, info->symbols, x->variables};
  if (!x->device->host) SNT_TRY(plan_walk_steps(t.plan, &walk)); /* there the whole graph is one step without a number */
  *count = t.count;
  return steps && t.count > t.room ? SNT_INCOMPLETE : SNT_OK;
}

static snt_result make_event(snt_stream *s, snt_event **out, snt_diag *diag) {
  snt_event *e = api_take(s->device->context, sizeof *e);
  if (!e) return ir_no_memory(diag, "submit");
  e->stream = s;
  atomic_fetch_add(&s->uses, 1);
  *out = e;
  return SNT_OK;
}

static snt_result keep_spread(const snt_exec *x, uint32_t count, snt_event *event, snt_diag *diag) {
  event->spread = api_take(x->device->context, count * sizeof *event->spread);
  if (!event->spread) return ir_no_memory(diag, "submit");
  memcpy(event->spread, x->spread, count * sizeof *event->spread);
  event->launches = count;
  for (uint32_t i = 0; i < count; i++) event->steps += event->spread[i];
  return SNT_OK;
}

/* Part by part, and not what a loop that has ended would go on with. */
static snt_result submit_parts(snt_exec *x, snt_stream *s, const int64_t *symbols, const loop_stops *stops, uint32_t count,
                               snt_diag *diag) {
  const ir_plan *p = &x->program->plan;
  uint32_t at = 0;
  for (uint32_t i = 0; i < stops->count; i++) {
    const loop_stop *stop = &stops->list[i];
    const uint32_t number = p->loops.at[stop->loop].flag - 1;
    rt_buffer *buffer = buffer_of(x, number);
    uint64_t offset = x->bound[number].buffer ? x->bound[number].offset : 0;
    uint8_t flag;
    if (stop->at <= at || !buffer) continue;
    if (p->buffers.at[number].kind == PLAN_SCRATCH && !plan_eval(p, p->buffers.at[number].offset, symbols, &offset)) continue;
    SNT_TRY(s->rt->v->submit(s->rt, stop->at - at, x->dispatches + at, false, NULL, diag));
    SNT_TRY(s->rt->v->download(s->rt, buffer, offset, &flag, sizeof flag, diag));
    at = flag ? stop->at : stop->end;
  }
  return at < count ? s->rt->v->submit(s->rt, count - at, x->dispatches + at, false, NULL, diag) : SNT_OK;
}

static snt_result submit_bound(snt_exec *x, snt_stream *s, const int64_t *symbols, snt_event *event, loop_stops *stops, snt_diag *diag) {
  uint32_t count;
  SNT_TRY(snt_exec_prepare(x, diag));
  SNT_TRY(exec_make_rooms(x, symbols, diag));
  SNT_TRY(exec_make_scratch(x, symbols, diag));
  SNT_TRY(fill_dispatches(x, symbols, stops, &count, diag));
  if (!count) return SNT_OK;
  if (stops && stops->count) return submit_parts(x, s, symbols, stops, count, diag);
  if (event && x->chain_count) SNT_TRY(keep_spread(x, count, event, diag));
  return s->rt->v->submit(s->rt, count, x->dispatches, event != NULL, event ? &event->rt : NULL, diag);
}

static snt_result check_ready(const snt_exec *x, const snt_run_info *info, snt_diag *diag) {
  const snt_program *p = x->program;
  for (uint32_t i = 0; i < x->job_count; i++)
    if (atomic_load(&((snt_exec *)(uintptr_t)x)->jobs[i].state) != SNT_JOB_DONE)
      return ir_fail(diag, SNT_E_ORDER, "run", 0, "%s is not built: its job is to be run", x->jobs[i].name);
  for (uint32_t i = 0; i < p->port_count; i++) {
    const plan_buffer *b = &p->plan.buffers.at[p->ports[i]];
    bool given = b->kind != PLAN_STATE || x->buffers[p->ports[i]];
    for (uint32_t a = 0; !given && info->arguments && a < info->argument_count; a++) given = argument(info, a)->port == i;
    if (!given) return ir_fail(diag, SNT_E_ARG, "run", 0, "state %s needs a buffer here", b->name);
  }
  return SNT_OK;
}

snt_result exec_bind_run(snt_exec *x, const snt_run_info *info, uint32_t *count, snt_diag *diag) {
  uint64_t dispatches, bindings, scratch;
  const ir_plan *p = &x->program->plan;
  SNT_TRY(api_check_whole(&info->head, SNT_TYPE_run_info, sizeof *info, diag));
  SNT_TRY(check_ready(x, info, diag));
  SNT_TRY(bind_arguments(x, info, false, diag));
  if (!plan_count_dispatches(p, info->symbols, &dispatches, &bindings) || !plan_eval(p, p->scratch_bytes, info->symbols, &scratch) ||
      dispatches > x->dispatch_room || bindings + exec_chain_launches(x, dispatches) > x->binding_room || scratch > x->scratch_bytes)
    return ir_fail(diag, SNT_E_LIMIT, "run", 0, "these symbols need more than the exec has: give max_symbols when it is made");
  return fill_dispatches(x, info->symbols, NULL, count, diag);
}

/* ---- the host device ---- */

static void let_files_rest(void *store) { api_store_rest(store); }

static snt_result run_evaluator(snt_exec *x, const snt_run_info *info, snt_diag *diag) {
  const snt_program *p = x->program;
  const ir_graph *g = &p->graph;
  ir_arena arena;
  ir_arena_init(&arena, &x->device->context->alloc);
  const void **inputs = IR_NEW_ARRAY(&arena, const void *, g->inputs.count + 1);
  void **outputs = IR_NEW_ARRAY(&arena, void *, g->outputs.count + g->updates.count + 1);
  ir_eval_tensor *results = IR_NEW_ARRAY(&arena, ir_eval_tensor, g->outputs.count + g->updates.count + 1);
  snt_result r = inputs && outputs && results ? SNT_OK : ir_no_memory(diag, "run");
  for (uint32_t i = 0; r == SNT_OK && i < g->inputs.count; i++)
    inputs[i] = x->bound[p->ports[i]].host ? x->bound[p->ports[i]].host : x->host_states[p->ports[i]];
  for (uint32_t i = 0; r == SNT_OK && i < g->outputs.count; i++) outputs[i] = x->bound[p->ports[g->inputs.count + i]].host;
  const ir_eval_info eval = {.symbols = info->symbols, .inputs = inputs, .outputs = outputs, .rest = let_files_rest, .rest_user = p->store};
  if (r == SNT_OK) r = ir_eval_fast(g, &eval, &arena, results, diag);
  for (uint32_t u = 0; r == SNT_OK && u < g->updates.count; u++) {
    const ir_eval_tensor *t = &results[g->outputs.count + u];
    for (uint32_t i = 0; i < g->inputs.count; i++)
      if (g->inputs.at[i].node == g->updates.at[u].state)
        memcpy((void *)(uintptr_t)inputs[i], t->data, t->count * ir_dtypes[t->type.dtype].bytes);
  }
  ir_arena_free(&arena);
  return r;
}

static snt_result run_host(snt_exec *x, const snt_run_info *info, snt_event *event, snt_diag *diag) {
  const uint64_t start = rt_clock_ns();
  const snt_result r = x->inner ? exec_run_inner(x, info, diag) : run_evaluator(x, info, diag);
  if (event) event->host_ns = rt_clock_ns() - start;
  return r;
}

/* ---- entry ---- */

snt_result snt_submit(snt_exec *x, snt_stream *s, const snt_run_info *info, snt_event **out, snt_diag *diag) {
  if (!x || !s || !info || s->device != x->device)
    return ir_fail(diag, SNT_E_ARG, "submit", 0, "an exec, a stream of its device and arguments are needed");
  SNT_TRY(api_check_whole(&info->head, SNT_TYPE_run_info, sizeof *info, diag));
  SNT_TRY(bind_arguments(x, info, false, diag));
  snt_event *event = NULL;
  if (out) SNT_TRY(make_event(s, &event, diag));
  const uint32_t starved = api_starved(x->device->context);
  snt_result r = x->device->host ? run_host(x, info, event, diag) : submit_bound(x, s, info->symbols, event, NULL, diag);
  r = api_blame(x->device->context, starved, r, diag);
  if (r != SNT_OK) {
    snt_event_destroy(event);
    return r;
  }
  if (out) *out = event;
  return SNT_OK;
}

static snt_result move_host(snt_exec *x, bool in, snt_diag *diag) {
  const snt_program *p = x->program;
  rt_device *rt = x->device->rt;
  for (uint32_t i = 0; i < p->port_count; i++) {
    const uint32_t b = p->ports[i];
    struct exec_port *port = &x->bound[b];
    const uint8_t kind = p->plan.buffers.at[b].kind;
    if (!port->host || (!in && kind == PLAN_INPUT)) continue;
    const uint64_t room = (port->bytes + 15) / 16 * 16;
    if (in && x->staging[b] && x->staging[b]->bytes < room) {
      rt->v->buffer_destroy(x->staging[b]);
      x->staging[b] = NULL;
    }
    if (in && !x->staging[b]) SNT_TRY(rt->v->buffer_create(rt, room ? room : 16, &x->staging[b], diag));
    if (in && kind != PLAN_OUTPUT) SNT_TRY(rt->v->upload(x->stream->rt, x->staging[b], 0, port->host, port->bytes, diag));
    if (!in) SNT_TRY(rt->v->download(x->stream->rt, x->staging[b], 0, port->host, port->bytes, diag));
  }
  return SNT_OK;
}

static snt_result run_and_wait(snt_exec *x, const snt_run_info *info, snt_diag *diag) {
  SNT_TRY(api_check_whole(&info->head, SNT_TYPE_run_info, sizeof *info, diag));
  SNT_TRY(bind_arguments(x, info, true, diag));
  if (x->device->host) return run_host(x, info, NULL, diag);
  loop_stops stops = {.count = 0};
  SNT_TRY(move_host(x, true, diag));
  SNT_TRY(submit_bound(x, x->stream, info->symbols, NULL, &stops, diag));
  SNT_TRY(move_host(x, false, diag));
  return x->stream->rt->v->wait(x->stream->rt, diag);
}

snt_result snt_run(snt_exec *x, const snt_run_info *info, snt_diag *diag) {
  if (!x || !info) return ir_fail(diag, SNT_E_ARG, "run", 0, "an exec and arguments are needed");
  if (x->door) return ir_fail(diag, SNT_E_UNSUPPORTED, "run", 0, "the host of %s records and submits itself", x->device->info.selector);
  const uint32_t starved = api_starved(x->device->context);
  return api_blame(x->device->context, starved, run_and_wait(x, info, diag), diag);
}

snt_result snt_exec_reset_states(snt_exec *x, snt_diag *diag) {
  if (!x) return ir_fail(diag, SNT_E_ARG, "state", 0, "no exec");
  if (x->door) return ir_fail(diag, SNT_E_UNSUPPORTED, "state", 0, "the states' memory is the host's");
  const ir_plan *p = &x->program->plan;
  for (uint32_t i = 0; i < p->buffers.count; i++) {
    if (p->buffers.at[i].kind != PLAN_STATE) continue;
    if (x->host_states[i]) memset(x->host_states[i], 0, x->bound[i].bytes);
    if (!x->buffers[i]) continue;
    void *zero = api_take(x->device->context, x->buffers[i]->bytes);
    if (!zero) return ir_no_memory(diag, "state");
    const uint64_t bytes = x->buffers[i]->bytes;
    snt_result r = x->device->rt->v->upload(x->stream->rt, x->buffers[i], 0, zero, bytes, diag);
    if (r == SNT_OK) r = x->device->rt->v->wait(x->stream->rt, diag);
    api_give(x->device->context, zero, bytes);
    SNT_TRY(r);
  }
  return SNT_OK;
}
