/* The walk of both evaluators: which nodes are needed, in which order, and when each value dies. Regions of `repeat` run their nodes once a trip.
   In: a verified graph. Out: dense results in the caller's arena. Nothing is left in the host allocator but those. */
#include "ir/eval/private.h"

static const uint32_t *region_yields(const ir_graph *g, uint32_t repeat, uint32_t *count) {
  const ir_region *region = &g->regions.at[ir_attr_int(g, repeat, IR_ATTR_region, 0)];
  *count = region->count;
  return &g->yields.at[region->first];
}

/* ---- what is needed and for how long ---- */
static void need(eval_ctx *ctx, uint32_t node) { ctx->needed[node] = 1; }

/* Users come after what they read, except that a repeat's body comes before it: its yields are needed when it is reached, and lie below. */
static void find_needed(eval_ctx *ctx) {
  const ir_graph *g = ctx->g;
  for (uint32_t n = g->nodes.count; n-- > 1;) {
    if (!ctx->needed[n]) continue;
    for (uint32_t i = 0; i < ir_at(g, n)->arity; i++) need(ctx, ir_arg(g, n, i));
    if (ir_at(g, n)->op != IR_OP_repeat) continue;
    uint32_t count;
    const uint32_t *yields = region_yields(g, n, &count);
    for (uint32_t i = 0; i < count; i++) need(ctx, yields[i]);
  }
}

/* A read inside a region counts, for a value from outside, as a read by the repeat itself. 0: `value` is not of an enclosing region. */
static uint32_t reader_beside(const ir_graph *g, uint32_t reader, uint32_t value) {
  uint32_t home = ir_at(g, value)->region;
  while (ir_at(g, reader)->region != home) {
    uint32_t region = ir_at(g, reader)->region;
    if (region == 0) return 0;
    reader = g->regions.at[region].owner;
  }
  return reader;
}

static void note_read(const ir_graph *g, uint32_t *last, uint32_t reader, uint32_t value) {
  uint32_t at = reader_beside(g, reader, value);
  if (at > last[value]) last[value] = at;
}

static bool find_deaths(eval_ctx *ctx) {
  const ir_graph *g = ctx->g;
  uint32_t *last = IR_NEW_ARRAY(&ctx->scratch, uint32_t, g->nodes.count);
  ctx->first_dead = IR_NEW_ARRAY(&ctx->scratch, uint32_t, g->nodes.count);
  ctx->next_dead = IR_NEW_ARRAY(&ctx->scratch, uint32_t, g->nodes.count);
  if (ctx->scratch.failed) return false;
  for (uint32_t n = 1; n < g->nodes.count; n++) {
    if (!ctx->needed[n]) continue;
    for (uint32_t i = 0; i < ir_at(g, n)->arity; i++) note_read(g, last, n, ir_arg(g, n, i));
    if (ir_at(g, n)->op != IR_OP_repeat) continue;
    uint32_t count;
    const uint32_t *yields = region_yields(g, n, &count);
    for (uint32_t i = 0; i < count; i++) {
      bool of_body = ir_at(g, yields[i])->region == (uint32_t)ir_attr_int(g, n, IR_ATTR_region, 0);
      if (of_body) last[yields[i]] = UINT32_MAX; /* lives until the trip ends */
      else note_read(g, last, n, yields[i]);
    }
  }
  for (uint32_t n = 1; n < g->nodes.count; n++) {
    if (last[n] == 0 || last[n] == UINT32_MAX || ctx->needed[n] == 2) continue; /* 2: a result */
    ctx->next_dead[n] = ctx->first_dead[last[n]];
    ctx->first_dead[last[n]] = n;
  }
  return true;
}

static void release_value(eval_ctx *ctx, uint32_t node) {
  eval_release(ctx, &ctx->values[node]);
  if (ctx->results[node]) {
    for (uint32_t i = 1; i < ir_at(ctx->g, node)->arity; i++) eval_release(ctx, &ctx->results[node][i]);
    ctx->results[node] = NULL;
  }
}

/* ---- sources ---- */
/* A device that flushes reads a subnormal as 0. */
static bool has_denormals(const eval_ctx *ctx, int32_t dtype, const void *data, uint64_t count) {
  bool found = false;
  if (dtype != SNT_F32 || ctx->info->keeps_denormals) return false;
  for (uint64_t i = 0; i < count && !found; i++) {
    float at;
    memcpy(&at, (const char *)data + i * sizeof at, sizeof at);
    found = at != 0 && at < 0x1p-126f && at > -0x1p-126f;
  }
  return found;
}

static void bound_denormals(const eval_view *out) {
  const double *values = out->buffer->data;
  for (uint64_t i = 0; i < out->count; i++) {
    double size = values[i] < 0 ? -values[i] : values[i];
    out->buffer->bound[i] = size < 0x1p-126 ? size : 0;
  }
}

/* Data in the type's storage: read in place by the fast evaluator, widened by the reference. */
static snt_result from_storage(eval_ctx *ctx, uint32_t node, const void *data, eval_view *out) {
  SNT_TRY(eval_type_of(ctx, node, out));
  if (ctx->engine->bounds) {
    SNT_TRY(eval_new(ctx, out, has_denormals(ctx, out->dtype, data, out->count)));
    eval_load(ctx, out->dtype, data, out->count, out->buffer->data);
    if (out->buffer->bound) bound_denormals(out);
    return SNT_OK;
  }
  if ((uintptr_t)data % ir_dtypes[out->dtype].bytes) { /* a tensor of a mapped file, say */
    SNT_TRY(eval_new(ctx, out, false));
    memcpy(out->buffer->data, data, (size_t)out->count * ir_dtypes[out->dtype].bytes);
    return SNT_OK;
  }
  eval_buffer *buffer = eval_take(ctx, sizeof *buffer);
  if (!buffer) return eval_fail(ctx, node, SNT_E_HOST_MEM, "out of memory");
  *buffer = (eval_buffer){.data = (void *)(uintptr_t)data, .references = 1, .borrowed = true};
  out->buffer = buffer;
  return SNT_OK;
}

static snt_result source_input(eval_ctx *ctx, uint32_t node, eval_view *out) {
  for (uint32_t i = 0; i < ctx->g->inputs.count; i++) {
    if (ctx->g->inputs.at[i].node != node) continue;
    if (ctx->info->inputs && ctx->info->inputs[i]) return from_storage(ctx, node, ctx->info->inputs[i], out);
    eval_view type;
    SNT_TRY(eval_type_of(ctx, node, &type));
    if (type.count == 0) return from_storage(ctx, node, "", out);
  }
  return eval_fail(ctx, node, SNT_E_ARG, "no data is given for this input");
}

/* One element seen as the whole shape. */
static snt_result one_element(eval_ctx *ctx, uint32_t node, int64_t bits, eval_view *out) {
  uint64_t element;
  double value;
  eval_view shape, one = {.dtype = ir_at(ctx->g, node)->type.dtype};
  memcpy(&value, &bits, sizeof value);
  const float narrow = ir_dtypes[one.dtype].is_float ? (float)value : 0;
  SNT_TRY(eval_type_of(ctx, node, &shape));
  SNT_TRY(eval_new(ctx, &one, ctx->engine->bounds && has_denormals(ctx, one.dtype, &narrow, 1)));
  eval_element(ctx, one.dtype, bits, &element);
  memcpy(one.buffer->data, &element, eval_element_bytes(ctx, one.dtype));
  if (one.buffer->bound) bound_denormals(&one);
  *out = eval_spread(&one, &shape);
  return SNT_OK;
}

static snt_result source_const(eval_ctx *ctx, uint32_t node, eval_view *out) {
  const ir_const *value = &ctx->g->consts.at[ir_at(ctx->g, node)->payload];
  if (value->kind == IR_CONST_SPLAT) return one_element(ctx, node, (int64_t)value->bits, out);
  const void *data = ir_const_data((ir_graph *)(uintptr_t)ctx->g, node);
  if (!data) return eval_fail(ctx, node, SNT_E_HOST_MEM, "the constant's data cannot be made");
  return from_storage(ctx, node, data, out);
}

static int64_t number_bits(int32_t dtype, int64_t number) {
  int64_t bits = number;
  double value = (double)number;
  if (ir_dtypes[dtype].is_float) memcpy(&bits, &value, sizeof bits);
  return bits;
}

static snt_result source_iota(eval_ctx *ctx, uint32_t node, eval_view *out) {
  eval_view shape, line = {.dtype = ir_at(ctx->g, node)->type.dtype, .rank = 1};
  uint32_t axis = (uint32_t)ir_attr_int(ctx->g, node, IR_ATTR_axis, 0);
  SNT_TRY(eval_type_of(ctx, node, &shape));
  line.dims[0] = shape.dims[axis];
  SNT_TRY(eval_new(ctx, &line, false));
  size_t bytes = eval_element_bytes(ctx, line.dtype);
  for (int64_t i = 0; i < line.dims[0]; i++) {
    uint64_t element;
    eval_element(ctx, line.dtype, number_bits(line.dtype, i), &element);
    memcpy((char *)line.buffer->data + (size_t)i * bytes, &element, bytes);
  }
  *out = shape;
  out->buffer = line.buffer;
  for (uint32_t i = 0; i < shape.rank; i++) out->strides[i] = i == axis;
  return SNT_OK;
}

static snt_result source_dim(eval_ctx *ctx, uint32_t node, eval_view *out) {
  int64_t value;
  SNT_TRY(eval_dim(ctx, ir_attr_ints(ctx->g, node, IR_ATTR_shape, NULL)[0], &value));
  return one_element(ctx, node, number_bits(ir_at(ctx->g, node)->type.dtype, value), out);
}

/* ---- regions ---- */
static snt_result run_region(eval_ctx *ctx, uint32_t region, uint32_t from, uint32_t to);

static void bind_arguments(eval_ctx *ctx, uint32_t region, uint32_t from, uint32_t to, const eval_view *carried) {
  for (uint32_t n = from; n < to; n++) {
    const ir_node *node = ir_at(ctx->g, n);
    if (node->op == IR_OP_argument && node->region == region && ctx->needed[n])
      ctx->values[n] = eval_share(&carried[ir_attr_int(ctx->g, n, IR_ATTR_index, 0)]);
  }
}

static snt_result run_trip(eval_ctx *ctx, uint32_t repeat, uint32_t region, uint32_t from, eval_view *carried) {
  uint32_t count;
  const uint32_t *yields = region_yields(ctx->g, repeat, &count);
  bind_arguments(ctx, region, from, repeat, carried);
  snt_result result = run_region(ctx, region, from, repeat);
  for (uint32_t i = 0; i < count && result == SNT_OK; i++) {
    eval_view next = eval_share(&ctx->values[yields[i]]);
    eval_release(ctx, &carried[i]);
    carried[i] = next;
  }
  for (uint32_t n = from; n < repeat; n++)
    if (ir_at(ctx->g, n)->region == region) release_value(ctx, n);
  return result;
}

/* Whether another trip begins: the carried value that attribute `while` names. */
static bool goes_on(const eval_ctx *ctx, uint32_t repeat, const eval_view *carried) {
  const int64_t flag = ir_attr_int(ctx->g, repeat, IR_ATTR_while, -1);
  static const uint8_t no[sizeof(int64_t)];
  return flag < 0 || memcmp(eval_at(ctx, &carried[flag]), no, eval_element_bytes(ctx, SNT_BOOL)) != 0;
}

static snt_result run_repeat(eval_ctx *ctx, uint32_t repeat, eval_view *out) {
  const ir_graph *g = ctx->g;
  const ir_node *node = ir_at(g, repeat);
  uint32_t region = (uint32_t)ir_attr_int(g, repeat, IR_ATTR_region, 0), from = repeat;
  int64_t trips;
  SNT_TRY(eval_dim(ctx, ir_attr_ints(g, repeat, IR_ATTR_trips, NULL)[0], &trips));
  eval_view *carried = IR_NEW_ARRAY(&ctx->scratch, eval_view, node->arity);
  if (!carried) return eval_fail(ctx, repeat, SNT_E_HOST_MEM, "out of memory");
  for (uint32_t n = repeat; n-- > 1;) {
    uint32_t r = ir_at(g, n)->region;
    while (r && r != region) r = g->regions.at[r].parent;
    if (r == region) from = n;
  }
  for (uint32_t i = 0; i < node->arity; i++) carried[i] = eval_share(&ctx->values[ir_arg(g, repeat, i)]);
  snt_result result = SNT_OK;
  for (int64_t trip = 0; trip < trips && result == SNT_OK && goes_on(ctx, repeat, carried); trip++)
    result = run_trip(ctx, repeat, region, from, carried);
  if (result != SNT_OK) {
    for (uint32_t i = 0; i < node->arity; i++) eval_release(ctx, &carried[i]);
    return result;
  }
  ctx->results[repeat] = carried;
  *out = carried[0];
  return SNT_OK;
}

static snt_result run_pick(eval_ctx *ctx, uint32_t node, eval_view *out) {
  uint32_t repeat = ir_arg(ctx->g, node, 0), index = (uint32_t)ir_attr_int(ctx->g, node, IR_ATTR_index, 0);
  *out = eval_share(index ? &ctx->results[repeat][index] : &ctx->values[repeat]);
  return SNT_OK;
}

/* ---- nodes ---- */
static snt_result run_operator(eval_ctx *ctx, uint32_t node, eval_view *out) {
  const eval_engine *engine = ctx->engine;
  switch (ir_at(ctx->g, node)->op) {
  case IR_OP_input:
  case IR_OP_state: return source_input(ctx, node, out);
  case IR_OP_const: return source_const(ctx, node, out);
  case IR_OP_iota: return source_iota(ctx, node, out);
  case IR_OP_dim: return source_dim(ctx, node, out);
  case IR_OP_random: return engine->random(ctx, node, out);
  case IR_OP_cast: return engine->cast(ctx, node, out);
  case IR_OP_bitcast: return engine->bitcast(ctx, node, out);
  case IR_OP_contract: return engine->contract(ctx, node, out);
  case IR_OP_gather: return engine->gather(ctx, node, out);
  case IR_OP_argsort: return eval_argsort(ctx, node, out);
  case IR_OP_repeat: return run_repeat(ctx, node, out);
  case IR_OP_pick: return run_pick(ctx, node, out);
  case IR_OP_custom:
  case IR_OP_opaque: return eval_custom(ctx, node, out);
  case IR_OP_argument: return eval_fail(ctx, node, SNT_E_INTERNAL, "outside its region");
  default: break;
  }
  uint32_t flags = ir_ops[ir_at(ctx->g, node)->op].flags;
  if (flags & IR_POINTWISE) return engine->point(ctx, node, out);
  if (flags & IR_REDUCE) return engine->reduce(ctx, node, out);
  if (flags & IR_SCAN) return engine->scan(ctx, node, out);
  return flags & IR_MOVEMENT ? eval_movement(ctx, node, out) : engine->scatter(ctx, node, out);
}

static void release_dead(eval_ctx *ctx, uint32_t node) {
  enum { LARGE = 64 * 1024 };
  bool large = false;
  for (uint32_t dead = ctx->first_dead[node]; dead; dead = ctx->next_dead[dead]) {
    large |= ir_at(ctx->g, dead)->op == IR_OP_const && ctx->values[dead].count >= LARGE / eval_element_bytes(ctx, ctx->values[dead].dtype);
    release_value(ctx, dead);
  }
  if (large && ctx->info->rest) ctx->info->rest(ctx->info->rest_user);
}

static snt_result run_region(eval_ctx *ctx, uint32_t region, uint32_t from, uint32_t to) {
  for (uint32_t n = from; n < to; n++) {
    const ir_node *node = ir_at(ctx->g, n);
    if (!ctx->needed[n] || node->region != region) continue;
    eval_view out = {0};
    if (node->op != IR_OP_argument) {
      snt_result result = run_operator(ctx, n, &out);
      if (result != SNT_OK) {
        eval_release(ctx, &out);
        if (ctx->diag && ctx->diag->node == 0) ctx->diag->node = n;
        return result;
      }
      ctx->values[n] = out;
    }
    release_dead(ctx, n);
  }
  return SNT_OK;
}

/* ---- results ---- */
static void *destination(eval_ctx *ctx, ir_arena *arena, uint32_t i, size_t bytes) {
  if (!ctx->engine->bounds && ctx->info->outputs && ctx->info->outputs[i]) return ctx->info->outputs[i];
  return ir_arena_take(arena, bytes, 64);
}

static snt_result hand_over(eval_ctx *ctx, ir_arena *arena, uint32_t node, uint32_t i, ir_eval_tensor *out) {
  const eval_view *value = &ctx->values[node];
  eval_view dense = *value;
  eval_buffer buffer = {.references = 1};
  eval_set_dense(&dense);
  buffer.data = destination(ctx, arena, i, dense.count * eval_element_bytes(ctx, dense.dtype));
  if (value->buffer->bound) buffer.bound = IR_NEW_ARRAY(arena, double, dense.count);
  if (arena->failed) return eval_fail(ctx, node, SNT_E_HOST_MEM, "out of memory");
  dense.buffer = &buffer;
  eval_copy(ctx, value, &dense);
  *out = (ir_eval_tensor){.type = {.dtype = dense.dtype, .rank = dense.rank}, .count = dense.count, .bound = buffer.bound};
  for (uint32_t d = 0; d < dense.rank; d++) out->type.dims[d] = dense.dims[d];
  if (!ctx->engine->bounds) out->data = buffer.data;
  else if (ir_dtypes[dense.dtype].is_float) out->value = buffer.data;
  else out->ints = buffer.data;
  return SNT_OK;
}

uint32_t ir_eval_output_count(const ir_graph *g, const ir_eval_info *info) {
  return info && info->value_count ? info->value_count : g->outputs.count + g->updates.count;
}

static uint32_t result_node(const ir_graph *g, const ir_eval_info *info, uint32_t i) {
  if (info->value_count) return info->values[i];
  return i < g->outputs.count ? g->outputs.at[i].node : g->updates.at[i - g->outputs.count].value;
}

static snt_result run_graph(eval_ctx *ctx, ir_arena *arena, ir_eval_tensor *outputs) {
  const ir_graph *g = ctx->g;
  uint32_t count = ir_eval_output_count(g, ctx->info);
  ctx->values = IR_NEW_ARRAY(&ctx->scratch, eval_view, g->nodes.count);
  ctx->results = IR_NEW_ARRAY(&ctx->scratch, eval_view *, g->nodes.count);
  ctx->needed = IR_NEW_ARRAY(&ctx->scratch, uint8_t, g->nodes.count);
  if (ctx->scratch.failed) return eval_fail(ctx, 0, SNT_E_HOST_MEM, "out of memory");
  for (uint32_t i = 0; i < count; i++) {
    uint32_t node = result_node(g, ctx->info, i);
    if (node == 0 || node >= g->nodes.count || ir_at(g, node)->region != 0)
      return eval_fail(ctx, 0, SNT_E_ARG, "a result is no value of the graph");
    need(ctx, node);
  }
  find_needed(ctx);
  for (uint32_t i = 0; i < count; i++) ctx->needed[result_node(g, ctx->info, i)] = 2;
  if (!find_deaths(ctx)) return eval_fail(ctx, 0, SNT_E_HOST_MEM, "out of memory");
  snt_result result = run_region(ctx, 0, 1, g->nodes.count);
  for (uint32_t i = 0; i < count && result == SNT_OK; i++) result = hand_over(ctx, arena, result_node(g, ctx->info, i), i, &outputs[i]);
  for (uint32_t n = 1; n < g->nodes.count; n++) release_value(ctx, n);
  return result;
}

snt_result eval_run(const eval_engine *engine, const ir_graph *g, const ir_eval_info *info, ir_arena *arena, ir_eval_tensor *outputs,
                    snt_diag *diag) {
  static const ir_eval_info nothing = {0};
  eval_ctx ctx = {.g = g, .info = info ? info : &nothing, .engine = engine, .host = arena->host, .diag = diag};
  if (diag) diag->node = 0;
  if (g->failed) return eval_fail(&ctx, 0, SNT_E_ARG, "the graph has an error");
  ir_arena_init(&ctx.scratch, &arena->host);
  snt_result result = run_graph(&ctx, arena, outputs);
  ir_arena_free(&ctx.scratch);
  return result;
}
