/* Bodies of repeats become graphs of their own, which the same passes compile (fusion_body). In: a graph with regions. Out: one without; a `loop`
   node stands for each repeat, its operands the initial values, then what the body reads from around it. Inner repeats stay in the body's graph:
   they are taken out when that is compiled.
   On the way: a carried value that counts is the number of the trip times its step, one that never changes is read from around, and constants
   and views of values from around are made again inside. A repeat of few trips is written out (outline_trips.c). */
#include "fusion/outline_private.h"
#include <stdio.h>

static snt_result starved(const outline *o) { return ir_no_memory(o->c->diag, "outline"); }

static uint32_t add_dim(ir_graph *g, const ir_tensor *type, ir_expr value) {
  const ir_attr_value attr = {IR_ATTR_shape, 1, &value};
  const ir_tensor scalar = {.dtype = type->dtype};
  const uint32_t made = ir_add_node(g, IR_OP_dim, 0, NULL, 1, &attr, &scalar);
  if (!type->rank) return made;
  const ir_attr_value shape = {IR_ATTR_shape, type->rank, type->dims};
  return ir_add_node(g, IR_OP_reshape, 1, &made, 1, &shape, NULL);
}

/* ---- what the carried values are ---- */

/* A whole number that is known: a constant, or an expression over symbols. */
static bool known_number(const outline *o, uint32_t node, ir_expr *out) {
  const ir_graph *g = o->from;
  double value;
  while (ir_at(g, node)->op == IR_OP_reshape || ir_at(g, node)->op == IR_OP_broadcast) node = ir_arg(g, node, 0);
  if (ir_at(g, node)->op == IR_OP_dim) {
    *out = ir_attr_ints(g, node, IR_ATTR_shape, NULL)[0];
    return true;
  }
  if (!ir_is_scalar_const(g, node, &value) || value < -0x1p53 || value > 0x1p53) return false;
  *out = expr_int(g->pool, (int64_t)value);
  return true;
}

/* index + constant, of one element, that cannot leave its type. */
static bool find_count(taken *t, uint32_t k, uint32_t yield) {
  const ir_graph *g = t->o->from;
  const ir_node *n = ir_at(g, yield);
  const uint32_t initial = ir_arg(g, t->owner, k);
  int64_t one, step, lo, hi;
  ir_expr by;
  if ((n->op != IR_OP_add && n->op != IR_OP_sub) || !ir_dtypes[n->type.dtype].is_int || ir_dtypes[n->type.dtype].bits < 32) return false;
  if (!expr_is_const(g->pool, ir_tensor_elements(g->pool, &n->type), &one) || one != 1) return false;
  const uint32_t side = outline_is_argument(t, ir_arg(g, yield, 0), k) ? 0 : 1;
  if (!outline_is_argument(t, ir_arg(g, yield, side), k) || (n->op == IR_OP_sub && side)) return false;
  if (!known_number(t->o, ir_arg(g, yield, 1 - side), &by) || !expr_is_const(g->pool, by, &step)) return false;
  if (!known_number(t->o, initial, &t->start[k])) return false;
  t->step[k] = n->op == IR_OP_sub ? -step : step;
  if (step > INT32_MAX || step < INT32_MIN) return false;
  const ir_expr end = expr_add(g->pool, t->start[k], expr_mul(g->pool, expr_int(g->pool, t->step[k]), t->trips));
  expr_bounds(g->pool, t->start[k], &lo, &hi);
  if (lo < INT32_MIN || hi > INT32_MAX) return false;
  expr_bounds(g->pool, end, &lo, &hi);
  return lo >= INT32_MIN && hi <= INT32_MAX && (ir_dtypes[n->type.dtype].is_signed || lo >= 0);
}

/* Of the first result, which is the repeat itself, it is not asked. */
static bool is_result_read(const taken *t, uint32_t k) {
  const ir_graph *g = t->o->from;
  bool read = k == 0;
  for (uint32_t n = t->owner + 1; n < g->nodes.count && !read; n++)
    read = ir_at(g, n)->op == IR_OP_pick && ir_arg(g, n, 0) == t->owner && ir_attr_int(g, n, IR_ATTR_index, 0) == (int64_t)k;
  return read;
}

/* How far a count came is known only where nothing but the number of trips ends the loop. */
static void sort_carried(taken *t) {
  const ir_region *r = &t->o->from->regions.at[t->region];
  for (uint32_t k = 0; k < r->count; k++) {
    t->fixed[k] = outline_is_argument(t, outline_yields(t)[k], k) && t->goes_on != (int64_t)k;
    t->counts[k] = !t->fixed[k] && find_count(t, k, outline_yields(t)[k]) && (t->goes_on < 0 || !is_result_read(t, k));
  }
}

/* ---- the body's graph ---- */

static uint32_t add_input(taken *t, uint32_t outside, const ir_tensor *type, bool state) {
  char name[32];
  const int length = snprintf(name, sizeof name, "%s.%u", state ? "carried" : "around", t->outside.count);
  const uint32_t open = t->body->open_region;
  t->body->open_region = 0;
  (void)length;
  const uint32_t made = state ? ir_add_state(t->body, name, type) : ir_add_input(t->body, name, type);
  t->body->open_region = open;
  if (!IR_PUSH(t->o->c->arena, &t->outside, outside)) t->body->failed = true;
  return made;
}

/* The body's node for a value from around: made again where that is free, else an input. */
static uint32_t reach_by(taken *t, uint32_t node, uint32_t depth, bool again) {
  const ir_graph *g = t->o->from;
  const ir_node *n = ir_at(g, node);
  if (t->map[node]) return t->map[node];
  const bool source = n->op == IR_OP_const || n->op == IR_OP_iota || n->op == IR_OP_dim;
  const bool view = fusion_is_view(g, node) && n->op != IR_OP_concat && depth < 32;
  again = again || outline_what(g, node, OUTLINE_DEEP) == OUTLINE_WIDENED;
  if (!source && !view && !again) return t->map[node] = add_input(t, node, &n->type, false);
  for (uint32_t i = 0; i < n->arity; i++) (void)reach_by(t, ir_arg(g, node, i), depth + 1, again);
  const uint32_t open = t->body->open_region;
  t->body->open_region = 0;
  t->map[node] = outline_copy(t->o, t->body, node, t->map);
  t->body->open_region = open;
  return t->map[node];
}

static uint32_t reach(taken *t, uint32_t node) { return reach_by(t, node, 0, false); }

static uint32_t put_argument(taken *t, uint32_t node) {
  const ir_node *n = ir_at(t->o->from, node);
  const uint32_t k = (uint32_t)ir_attr_int(t->o->from, node, IR_ATTR_index, 0);
  expr_pool *x = t->o->from->pool;
  if (t->fixed[k]) return reach(t, ir_arg(t->o->from, t->owner, k));
  if (t->counts[k]) return add_dim(t->body, &n->type, expr_add(x, t->start[k], expr_mul(x, expr_int(x, t->step[k]), t->variable)));
  return add_input(t, UINT32_MAX - k, &n->type, true);
}

/* A repeat inside the body keeps its region; that was opened when its first node came. */
static uint32_t put_inner_repeat(taken *t, uint32_t node) {
  const ir_graph *g = t->o->from;
  const uint32_t old = (uint32_t)ir_attr_int(g, node, IR_ATTR_region, 0);
  const ir_region *region = &g->regions.at[old];
  ir_graph *body = t->body;
  uint32_t args[256];
  for (uint32_t i = 0; i < ir_at(g, node)->arity; i++) args[i] = t->map[ir_arg(g, node, i)];
  for (uint32_t i = 0; i < region->count; i++)
    if (!outline_lies_inside(g, ir_at(g, g->yields.at[region->first + i])->region, t->region))
      (void)reach(t, g->yields.at[region->first + i]);
  const uint32_t first = body->yields.count;
  for (uint32_t i = 0; i < region->count; i++)
    if (!IR_PUSH(body->arena, &body->yields, t->map[g->yields.at[region->first + i]])) return 0;
  const ir_expr number = t->regions[old];
  const ir_expr goes_on = ir_attr_int(g, node, IR_ATTR_while, -1);
  const ir_attr_value attrs[] = {{IR_ATTR_region, 1, &number}, {IR_ATTR_trips, 1, &region->trips}, {IR_ATTR_while, 1, &goes_on}};
  const uint32_t made = ir_add_node(body, IR_OP_repeat, region->count, args, goes_on < 0 ? 2 : 3, attrs, NULL);
  body->regions.at[t->regions[old]].first = first;
  body->regions.at[t->regions[old]].owner = made;
  return made;
}

/* Inner regions in the order of their numbers, so that parents come first. */
static bool copy_regions(taken *t) {
  const ir_graph *g = t->o->from;
  for (uint32_t r = t->region + 1; r < g->regions.count; r++) {
    if (!outline_lies_inside(g, r, t->region)) continue;
    const ir_region *old = &g->regions.at[r];
    const ir_region region = {
        .count = old->count, .parent = old->parent == t->region ? 0 : t->regions[old->parent], .trips = old->trips, .initial = 0};
    if (!IR_PUSH(t->body->arena, &t->body->regions, region)) return false;
    t->regions[r] = t->body->regions.count - 1;
  }
  return true;
}

static uint32_t put_body_node(taken *t, uint32_t node) {
  const ir_graph *g = t->o->from;
  const ir_node *n = ir_at(g, node);
  if (t->tables && n->op == IR_OP_gather && !t->map[ir_arg(g, node, 0)]) {
    const uint32_t table = ir_arg(g, node, 0); /* as it lies in memory, constants too */
    t->map[table] = add_input(t, table, &ir_at(g, table)->type, false);
  }
  for (uint32_t i = 0; i < n->arity; i++)
    if (!outline_lies_inside(g, ir_at(g, ir_arg(g, node, i))->region, t->region)) (void)reach(t, ir_arg(g, node, i));
  t->body->open_region = n->region == t->region ? 0 : t->regions[n->region];
  uint32_t made;
  if (n->op == IR_OP_argument && n->region == t->region) made = put_argument(t, node);
  else if (n->op == IR_OP_repeat) made = put_inner_repeat(t, node);
  else made = outline_copy(t->o, t->body, node, t->map);
  t->body->open_region = 0;
  return made;
}

/* Kernels are of one body, or of none: values that must be of one kernel are, too. */
static snt_result check_musts(const outline *o) {
  const ir_graph *f = o->from;
  for (uint32_t i = 0; i < f->contracts.count; i++) {
    const ir_contract *k = &f->contracts.at[i];
    const uint32_t *values = &f->contract_values.at[k->first];
    for (uint32_t v = 1; k->kind == IR_MUST_FUSE && v < k->count; v++)
      if (ir_at(f, values[v])->region != ir_at(f, values[0])->region)
        return ir_fail(o->c->diag, SNT_E_UNSUPPORTED, "must_fuse", ir_at(f, values[v])->origin,
                       "must_fuse: %s and %s are not of the same trip of a loop", ir_node_name(f, values[0]), ir_node_name(f, values[v]));
  }
  return SNT_OK;
}

/* 1 more than the number of the flag's input. */
static uint32_t flag_of(const taken *t) {
  for (uint32_t i = 0; t->goes_on >= 0 && i < t->outside.count; i++)
    if (t->outside.at[i] == UINT32_MAX - (uint32_t)t->goes_on) return i + 1;
  return 0;
}

static uint32_t next_of(const taken *t, uint32_t k, uint32_t before) {
  const uint32_t next = t->map[outline_yields(t)[k]], flag = flag_of(t);
  return flag ? outline_guard(t->body, t->goes_on == (int64_t)k, t->body->inputs.at[flag - 1].node, next, before) : next;
}

/* Is the body pointwise, but for elements of lists from around, whose numbers it computes? */
static bool reads_tables(const taken *t) {
  const ir_graph *g = t->o->from;
  bool found = false;
  for (uint32_t i = 1; i < t->owner; i++) {
    const ir_node *n = ir_at(g, i);
    if (!outline_lies_inside(g, n->region, t->region)) continue;
    const uint32_t table = n->op == IR_OP_gather ? ir_arg(g, i, 0) : 0;
    if (table &&
        (ir_at(g, table)->type.rank != 1 || ir_attr_flag(g, i, IR_ATTR_zero) || outline_lies_inside(g, ir_at(g, table)->region, t->region)))
      return false;
    if (!table && n->op != IR_OP_argument && !(ir_ops[n->op].flags & (IR_POINTWISE | IR_SOURCE))) return false;
    found |= table != 0;
  }
  return found;
}

static bool fill_body(taken *t) {
  const ir_graph *g = t->o->from;
  t->tables = reads_tables(t);
  if (!copy_regions(t)) return false;
  for (uint32_t n = 1; n < t->owner && !t->body->failed; n++)
    if (outline_lies_inside(g, ir_at(g, n)->region, t->region)) t->map[n] = put_body_node(t, n);
  const ir_region *r = &g->regions.at[t->region];
  for (uint32_t i = 0; i < t->outside.count; i++) {
    if (t->outside.at[i] < UINT32_MAX - MAX_CARRIED) continue;
    const uint32_t k = UINT32_MAX - t->outside.at[i], yield = outline_yields(t)[k];
    if (!outline_lies_inside(g, ir_at(g, yield)->region, t->region)) (void)reach(t, yield);
  }
  for (uint32_t k = 0; k < r->count; k++) /* carried values that the body never names: their input is here alone */
    for (uint32_t i = 0; i < t->outside.count && !t->body->failed; i++)
      if (t->outside.at[i] == UINT32_MAX - k) ir_add_update(t->body, t->body->inputs.at[i].node, next_of(t, k, t->body->inputs.at[i].node));
  return outline_copy_contracts(t->o, t->body, t->map, t->region) && !t->body->failed;
}

/* ---- the repeat's place ---- */

static fusion_body *new_body(taken *t) {
  fusion_context *c = t->o->c;
  fusion_body *b = IR_NEW(c->arena, fusion_body);
  const uint32_t nodes = t->o->from->nodes.count;
  t->map = IR_NEW_ARRAY(c->arena, uint32_t, nodes);
  t->regions = IR_NEW_ARRAY(c->arena, uint32_t, t->o->from->regions.count);
  if (!b || !t->map || !t->regions) return NULL;
  t->body = &b->graph;
  ir_graph_init(t->body, c->arena, t->o->from->pool);
  t->body->title = t->o->from->title;
  return b;
}

static ir_expr add_variable(const outline *o, ir_expr trips) {
  expr_pool *x = o->from->pool;
  char name[24];
  for (uint32_t number = x->vars.count;; number++) {
    const int length = snprintf(name, sizeof name, "trip%u", number);
    bool used = false;
    for (uint32_t i = 0; i < x->symbols.count; i++) used |= !strcmp(x->symbols.at[i].name, name);
    if (used) continue;
    const ir_expr v = expr_var_add(x, ir_arena_text(o->c->arena, name, (size_t)length), 0, trips, 1);
    if (!x->failed) x->vars.at[x->nodes.at[IR_EXPR_NODE(v)].value].plan = true;
    return v;
  }
}

enum { MAX_REGISTERS = 16, MOST_REGISTER_NODES = 256 };

/* Pointwise, and every value of the loop's shape or a single number: each element goes its own way through all the trips. Elements of tables are read on it. */
static bool fits_registers(const taken *t, const fusion_body *b) {
  const ir_graph *g = t->body;
  const ir_tensor *shape = NULL;
  const uint32_t most_trips = t->o->c->options->profile->max_trips;
  int64_t least, most;
  expr_bounds(g->pool, t->trips, &least, &most);
  if (most_trips && most >= most_trips) return false;
  const uint32_t bindings = t->o->c->options->profile->max_bindings;
  if (bindings && t->outside.count + b->carried > bindings) return false;
  if (b->carried > MAX_REGISTERS || g->nodes.count > MOST_REGISTER_NODES || g->regions.count > 1) return false;
  for (uint32_t u = 0; u < g->updates.count; u++) {
    const ir_tensor *own = &ir_at(g, g->updates.at[u].state)->type;
    if (!shape) shape = own;
    if (!ir_same_shape(shape, own)) return false;
  }
  for (uint32_t n = 1; n < g->nodes.count; n++) {
    const ir_node *node = ir_at(g, n);
    const ir_dtype_info *info = &ir_dtypes[node->type.dtype];
    double value;
    const bool pointwise = (ir_ops[node->op].flags & IR_POINTWISE) && node->op != IR_OP_custom,
               port = node->op == IR_OP_input || node->op == IR_OP_state,
               taken_there = node->op == IR_OP_gather && t->tables && !ir_same_shape(&ir_at(g, ir_arg(g, n, 0))->type, shape);
    const bool number = node->op == IR_OP_dim || (node->op == IR_OP_const && ir_is_scalar_const(g, n, &value));
    if (!pointwise && !port && !number && !taken_there) return false;
    if (node->type.rank && !ir_same_shape(&node->type, shape) && !(t->tables && port && node->type.rank == 1)) return false;
    if (port && node->type.dtype == SNT_BOOL) return false;
    if (node->type.dtype != SNT_BOOL && ((!info->is_float && !info->is_int) || info->bits < (info->is_float ? 16u : 8u))) return false;
  }
  return shape != NULL;
}

/* A trip that changes no carried number is the last that does: the others read the same. */
static bool comes_to_rest(const taken *t) {
  const ir_graph *g = t->body;
  for (uint32_t n = 1; n < g->nodes.count; n++) {
    const ir_node *node = ir_at(g, n);
    if (node->op == IR_OP_dim || (node->op == IR_OP_state && !ir_dtypes[node->type.dtype].is_int)) return false;
  }
  return t->tables;
}

/* The loop's operands: initial values of what is still carried, in the order of the body's states, then the values read. */
static uint32_t put_loop(taken *t, fusion_body *b, uint32_t *results) {
  outline *o = t->o;
  uint32_t args[256], count = 0;
  uint32_t *roles = IR_NEW_ARRAY(o->c->arena, uint32_t, t->outside.count + 1);
  if (!roles || t->outside.count > 255) {
    (void)ir_fail(o->c->diag, SNT_E_LIMIT, "outline", ir_at(o->from, t->owner)->origin, "a repeat reads %u values", t->outside.count);
    return 0;
  }
  for (int pass = 0; pass < 2; pass++)
    for (uint32_t i = 0; i < t->outside.count; i++) {
      const bool carried = t->outside.at[i] >= UINT32_MAX - MAX_CARRIED;
      if (carried != (pass == 0)) continue;
      roles[i] = count;
      const uint32_t node = carried ? ir_arg(o->from, t->owner, UINT32_MAX - t->outside.at[i]) : t->outside.at[i];
      args[count++] = o->map[node];
      if (carried) b->carried++;
    }
  b->variable = t->variable;
  b->trips = t->trips;
  b->input_count = t->outside.count;
  b->input_roles = roles;
  b->flag = flag_of(t);
  if (!b->carried) return 1; /* nothing but numbers */
  b->in_registers = fits_registers(t, b);
  b->tables = t->tables;
  b->rests = comes_to_rest(t);
  if (!IR_PUSH(o->c->arena, &o->c->bodies, b)) return 0;
  o->to->bodies = o->c->bodies.count;
  const ir_expr number = o->c->bodies.count;
  const ir_attr_value attrs[] = {{IR_ATTR_region, 1, &number}, {IR_ATTR_trips, 1, &t->trips}};
  const uint32_t loop = ir_add_node(o->to, IR_OP_loop, count, args, 2, attrs, NULL);
  if (o->to->failed) return 0;
  o->to->nodes.at[loop].origin = ir_at(o->from, t->owner)->origin;
  for (uint32_t i = 0; i < t->outside.count; i++) {
    if (t->outside.at[i] < UINT32_MAX - MAX_CARRIED) continue;
    const ir_expr index = roles[i];
    const ir_attr_value attr = {IR_ATTR_index, 1, &index};
    results[UINT32_MAX - t->outside.at[i]] = index ? ir_add_node(o->to, IR_OP_pick, 1, &loop, 1, &attr, NULL) : loop;
  }
  return loop;
}

static uint32_t final_count(const taken *t, uint32_t k) {
  expr_pool *x = t->o->from->pool;
  return add_dim(t->o->to, &ir_at(t->o->from, ir_arg(t->o->from, t->owner, k))->type,
                 expr_add(x, t->start[k], expr_mul(x, expr_int(x, t->step[k]), t->trips)));
}

/* ---- any repeat ---- */

static snt_result take_out(outline *o, uint32_t node, uint32_t *results) {
  const ir_graph *g = o->from;
  taken *t = IR_NEW(o->c->arena, taken);
  int64_t trips;
  if (!t) return starved(o);
  t->o = o;
  t->owner = node;
  t->region = (uint32_t)ir_attr_int(g, node, IR_ATTR_region, 0);
  t->trips = expr_max(g->pool, 0, ir_attr_ints(g, node, IR_ATTR_trips, NULL)[0]);
  t->goes_on = ir_attr_int(g, node, IR_ATTR_while, -1);
  sort_carried(t);
  if (outline_is_better_apart(t, &trips)) return outline_write_out(t, trips, results) ? SNT_OK : starved(o);
  t->variable = add_variable(o, t->trips);
  fusion_body *b = new_body(t);
  if (!b || !fill_body(t)) {
    if (b && t->body->first_error.result && o->c->diag) *o->c->diag = t->body->first_error;
    return b && t->body->first_error.result ? t->body->first_error.result : starved(o);
  }
  if (!put_loop(t, b, results)) return o->c->diag && o->c->diag->result ? o->c->diag->result : starved(o);
  for (uint32_t k = 0; k < g->regions.at[t->region].count; k++) {
    const uint32_t initial = o->map[ir_arg(g, node, k)];
    if (t->counts[k]) results[k] = final_count(t, k);
    else if (t->fixed[k]) results[k] = initial;
    else if (!results[k]) results[k] = initial;
  }
  return SNT_OK;
}

/* ---- the graph around ---- */

static snt_result copy_main(outline *o) {
  const ir_graph *g = o->from;
  uint32_t **results = IR_NEW_ARRAY(o->c->arena, uint32_t *, g->nodes.count);
  if (!results) return starved(o);
  for (uint32_t n = 1; n < g->nodes.count; n++) {
    const ir_node *node = ir_at(g, n);
    if (node->region) continue;
    if (node->op == IR_OP_repeat) {
      results[n] = IR_NEW_ARRAY(o->c->arena, uint32_t, node->arity);
      if (!results[n]) return starved(o);
      SNT_TRY(take_out(o, n, results[n]));
      o->map[n] = results[n][0];
    } else if (node->op == IR_OP_pick) {
      o->map[n] = results[ir_arg(g, n, 0)][ir_attr_int(g, n, IR_ATTR_index, 0)];
    } else {
      o->map[n] = outline_copy(o, o->to, n, o->map);
    }
    if (o->to->failed || !o->map[n]) {
      if (o->c->diag && o->to->first_error.result) *o->c->diag = o->to->first_error;
      return o->to->first_error.result ? o->to->first_error.result : starved(o);
    }
  }
  return SNT_OK;
}

static bool copy_ends(outline *o) {
  const ir_graph *f = o->from;
  for (uint32_t i = 0; i < f->outputs.count; i++) ir_add_output(o->to, &f->names.at[f->outputs.at[i].name], o->map[f->outputs.at[i].node]);
  for (uint32_t i = 0; i < f->updates.count; i++) ir_add_update(o->to, o->map[f->updates.at[i].state], o->map[f->updates.at[i].value]);
  return outline_copy_contracts(o, o->to, o->map, 0);
}

snt_result fusion_outline(fusion_context *c, bool *changed) {
  if (c->graph->regions.count <= 1) return SNT_OK;
  outline o = {.c = c, .from = c->graph, .to = IR_NEW(c->arena, ir_graph), .map = IR_NEW_ARRAY(c->arena, uint32_t, c->graph->nodes.count)};
  if (!o.to || !o.map) return starved(&o);
  ir_graph_init(o.to, c->arena, c->graph->pool);
  o.to->title = c->graph->title;
  SNT_TRY(check_musts(&o));
  SNT_TRY(copy_main(&o));
  if (!copy_ends(&o)) return starved(&o);
  c->graph = o.to;
  *changed = true;
  return o.to->failed ? starved(&o) : SNT_OK;
}
