/* PLAN: construction and evaluation. In: expressions over symbols. Out: numbers, at bind or record time, without allocating. */
#include "ir/plan.h"

void plan_init(ir_plan *p, ir_arena *arena, expr_pool *pool) { *p = (ir_plan){.arena = arena, .pool = pool}; }

/* x first, so that a small count is a plain one-dimensional grid; the rest is spread as evenly as whole numbers allow. */
void plan_fold_grid(uint64_t groups, const uint64_t limit[3], uint32_t out[3]) {
  out[0] = out[1] = out[2] = 1;
  if (groups <= limit[0]) {
    out[0] = (uint32_t)(groups ? groups : 1);
    return;
  }
  const uint64_t rest = (groups + limit[0] - 1) / limit[0];
  if (rest <= limit[1]) {
    out[1] = (uint32_t)rest;
    out[0] = (uint32_t)((groups + rest - 1) / rest);
    return;
  }
  const uint64_t planes = (rest + limit[1] - 1) / limit[1];
  out[0] = (uint32_t)limit[0];
  out[1] = (uint32_t)limit[1];
  out[2] = (uint32_t)(planes < limit[2] ? planes : limit[2]);
}

bool plan_eval_at(const ir_plan *p, ir_expr e, const expr_values *v, uint64_t *out) {
  int64_t value;
  if (!expr_eval(p->pool, e, v, &value) || value < 0) return false;
  *out = (uint64_t)value;
  return true;
}

bool plan_eval(const ir_plan *p, ir_expr e, const int64_t *symbols, uint64_t *out) {
  return plan_eval_at(p, e, &(expr_values){.symbols = symbols}, out);
}

bool plan_logical_bytes(const ir_plan *p, const plan_buffer *b, const int64_t *symbols, uint64_t *out) {
  uint64_t d, bytes = ir_dtypes[b->dtype].bytes;
  bool empty = false;
  for (uint32_t i = 0; i < b->rank; i++) {
    if (!plan_eval(p, b->dims[i], symbols, &d)) return false;
    if (d > 1 && bytes > ((uint64_t)1 << 46) / d) return false;
    if (d) bytes *= d;
    else empty = true;
  }
  *out = empty ? 0 : bytes;
  return true;
}

static bool guards_hold(const ir_plan *p, const plan_step *s, const expr_values *at, bool *ok) {
  for (uint32_t i = 0; i < s->guard_count; i++) {
    int64_t v, lo, hi;
    const plan_condition *g = &s->guards[i];
    if (!expr_eval(p->pool, g->value, at, &v) || !expr_eval(p->pool, g->lo, at, &lo) || !expr_eval(p->pool, g->hi, at, &hi)) {
      *ok = false;
      return false;
    }
    if (v < lo || v >= hi) return false;
  }
  return true;
}

static bool put_scalar(plan_launch *out, const kir_scalar *s, int64_t value) {
  const uint32_t bytes = s->type.base == SNT_U64 || s->type.base == SNT_I64 || s->type.base == SNT_F64 ? 8 : 4;
  if (s->offset + bytes > sizeof out->scalars) return false;
  if (bytes == 4 && s->type.base == SNT_U32 && (value < INT32_MIN || value > UINT32_MAX))
    return false; /* negative ones wrap, as index arithmetic does */
  const uint32_t low = (uint32_t)value;
  memcpy(out->scalars + s->offset, bytes == 8 ? (const void *)&value : (const void *)&low, bytes);
  if (s->offset + bytes > out->scalar_bytes) out->scalar_bytes = s->offset + bytes;
  return true;
}

bool plan_eval_step(const ir_plan *p, uint32_t step, const expr_values *at, uint32_t *taken_choice, plan_launch *out) {
  const plan_step *s = &p->steps.at[step];
  bool ok = true;
  out->runs = false;
  out->groups = out->scalar_bytes = 0;
  if (s->choice && *taken_choice == s->choice) return true;
  if (!guards_hold(p, s, at, &ok)) return ok;
  if (s->choice) *taken_choice = s->choice;
  if (!plan_eval_at(p, s->groups, at, &out->groups)) return false;
  if (!out->groups) return true; /* of extents of 0, whose shares and last places are no numbers */
  const kir_kernel *k = p->kernels.at[s->kernel].kernel;
  for (uint32_t i = 0; i < s->scalar_count; i++) {
    int64_t value;
    if (!expr_eval(p->pool, s->scalars[i], at, &value) || !put_scalar(out, &k->scalars.at[i], value)) return false;
  }
  out->runs = true;
  return true;
}

/* ---- loops ---- */

static uint32_t variable_of(const ir_plan *p, const plan_loop *l) { return (uint32_t)p->pool->nodes.at[IR_EXPR_NODE(l->variable)].value; }

uint32_t plan_variable_count(const ir_plan *p) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < p->loops.count; i++) {
    const uint32_t number = variable_of(p, &p->loops.at[i]);
    if (number >= count) count = number + 1;
  }
  return count;
}

/* The loop that starts at `step` among those from *next on, or null; *next then stands behind it. */
static const plan_loop *loop_at(const ir_plan *p, uint32_t step, uint32_t *next) {
  if (*next >= p->loops.count || p->loops.at[*next].first != step) return NULL;
  return &p->loops.at[(*next)++];
}

static uint32_t skip_inner(const ir_plan *p, const plan_loop *l, uint32_t next) {
  while (next < p->loops.count && p->loops.at[next].first < l->end) next++;
  return next;
}

typedef struct dispatch_count {
  const ir_plan *p;
  const int64_t *symbols;
  uint64_t dispatches, bindings;
} dispatch_count;

static bool count_range(dispatch_count *c, uint32_t first, uint32_t end, uint32_t next, uint64_t times) {
  for (uint32_t s = first; s < end;) {
    const plan_loop *l = loop_at(c->p, s, &next);
    uint64_t trips;
    if (!l) {
      c->dispatches += times;
      c->bindings += times * c->p->steps.at[s++].binding_count;
      if (c->dispatches > PLAN_MAX_DISPATCHES) return false;
      continue;
    }
    if (!plan_eval(c->p, l->trips, c->symbols, &trips) || trips > PLAN_MAX_DISPATCHES || times * trips > PLAN_MAX_DISPATCHES) return false;
    if (trips && !count_range(c, l->first, l->end, next, times * trips)) return false;
    next = skip_inner(c->p, l, next);
    s = l->end;
  }
  return true;
}

bool plan_count_dispatches(const ir_plan *p, const int64_t *symbols, uint64_t *dispatches, uint64_t *bindings) {
  dispatch_count c = {.p = p, .symbols = symbols};
  const bool ok = count_range(&c, 0, p->steps.count, 0, 1);
  *dispatches = c.dispatches;
  *bindings = c.bindings;
  return ok;
}

static snt_result walk_range(const ir_plan *p, const plan_walk *w, uint32_t first, uint32_t end, uint32_t next) {
  for (uint32_t s = first; s < end;) {
    const plan_loop *l = loop_at(p, s, &next);
    uint64_t trips;
    if (!l) {
      SNT_TRY(w->step(w->user, s++));
      continue;
    }
    if (!plan_eval(p, l->trips, w->symbols, &trips)) return SNT_E_LIMIT;
    for (uint64_t t = 0; t < trips; t++) {
      if (w->trip) w->trip(w->user);
      w->variables[variable_of(p, l)] = (int64_t)t;
      SNT_TRY(walk_range(p, w, l->first, l->end, next));
    }
    if (w->trip) w->trip(w->user);
    next = skip_inner(p, l, next);
    s = l->end;
  }
  return SNT_OK;
}

snt_result plan_walk_steps(const ir_plan *p, const plan_walk *w) { return walk_range(p, w, 0, p->steps.count, 0); }

/* dims[i] of the buffer = given: plain symbols are taken; anything else is checked once all are known. */
snt_result plan_solve_symbols(const ir_plan *p, uint32_t buffer, const int64_t *dims, int64_t *symbols, uint8_t *known, snt_diag *diag) {
  const plan_buffer *b = &p->buffers.at[buffer];
  for (uint32_t i = 0; i < b->rank; i++) {
    if (b->dims[i] >= 0) {
      if (b->dims[i] != dims[i])
        return ir_fail(diag, SNT_E_SHAPE, "bind", b->node, "%s: axis %u has %lld elements, expected %lld", b->name, i, (long long)dims[i],
                       (long long)b->dims[i]);
      continue;
    }
    const expr_node *n = &p->pool->nodes.at[IR_EXPR_NODE(b->dims[i])];
    if (n->kind != EXPR_SYMBOL) continue;
    const uint32_t s = (uint32_t)n->value;
    const expr_symbol *symbol = &p->pool->symbols.at[s];
    if (known[s] && symbols[s] != dims[i])
      return ir_fail(diag, SNT_E_SHAPE, "bind", b->node, "%s: axis %u is %s = %lld here, %lld elsewhere", b->name, i, symbol->name,
                     (long long)dims[i], (long long)symbols[s]);
    if (dims[i] < symbol->min || dims[i] > symbol->max || (symbol->multiple_of > 1 && dims[i] % symbol->multiple_of))
      return ir_fail(diag, SNT_E_SHAPE, "bind", b->node, "%s: axis %u, %s = %lld is outside its range %lld to %lld, multiple of %lld",
                     b->name, i, symbol->name, (long long)dims[i], (long long)symbol->min, (long long)symbol->max,
                     (long long)symbol->multiple_of);
    symbols[s] = dims[i];
    known[s] = 1;
  }
  return SNT_OK;
}
