/* Elementwise kernels with several transcendental functions, where the schedule forms vectors: a loop for each function over a tile of columns in near memory.
   In one loop the steps of one element wait for each other, and the constants and the values of several polynomials do not fit the registers (measured on
   PoCL: tanh, exp and sin of an element in one loop 1.6 times as long as in three kernels). In: the group's columns as rows x columns.
   What must hold: a dear value is read at its own place only, so that the tile holds all that is asked of it. */
#include "fusion/emit_private.h"
#include "fusion/schedule/loop_private.h"

enum { TILE_BYTES = 8192, MOST_COLUMNS = 1024, LEAST_COLUMNS = 128, UNROLL = 2 };

static bool is_dear(const ir_graph *g, uint32_t node) { return (ir_ops[ir_at(g, node)->op].flags & IR_EXPENSIVE) != 0; }

/* Read in the group by pointwise operators alone: nobody asks for it through a view. */
static bool read_in_place(const fusion_context *c, const fusion_group *group, uint32_t node) {
  bool read = false;
  for (uint32_t u = c->uses->first[node]; u < c->uses->first[node + 1]; u++) {
    const uint32_t user = c->uses->user[u];
    if (fusion_is_view(c->graph, user)) return false;
    if (!fusion_group_has(group, user)) continue;
    if (!(ir_ops[ir_at(c->graph, user)->op].flags & IR_POINTWISE)) return false;
    read = true;
  }
  return read;
}

void loop_find_dear(const fusion_context *c, const fusion_group *group, const schedule_space *space, loop_dear *dear) {
  const ir_tensor *t = &ir_at(c->graph, group->hero)->type;
  uint32_t last = 0, bytes = 0;
  *dear = (loop_dear){0};
  if (!c->uses || schedule_hint(c->graph->pool, space->columns) < LEAST_COLUMNS) return;
  for (uint32_t i = 0; i < group->count; i++)
    if (is_dear(c->graph, group->nodes[i])) last = group->nodes[i];
  for (uint32_t i = 0; i < group->count && dear->count < LOOP_MOST_DEAR; i++) {
    const uint32_t node = group->nodes[i];
    /* the last one may stay with what follows it */
    if (node == last || !is_dear(c->graph, node) || !ir_same_shape(&ir_at(c->graph, node)->type, t) || !read_in_place(c, group, node))
      continue;
    dear->nodes[dear->count++] = node;
    bytes += ir_at(c->graph, node)->type.dtype == SNT_F64 ? 8 : 4;
  }
  if (!dear->count) return;
  dear->columns = MOST_COLUMNS;
  while (dear->columns > LEAST_COLUMNS && dear->columns * bytes > TILE_BYTES) dear->columns /= 2;
}

/* ---- one tile ---- */

typedef struct dear_tile {
  loop_job *job;
  ir_expr start; /* its first column */
  uint32_t done; /* dear values that lie in their memories */
  schedule_body store;
} dear_tile;

static void recall_done(emit *e, const dear_tile *t, const map_access *at, ir_expr offset) {
  const loop_dear *dear = &t->job->dear;
  for (uint32_t i = 0; i < t->done; i++) {
    const int32_t dtype = emit_compute_type(e, ir_at(e->g, dear->nodes[i])->type.dtype, 1).base;
    emit_remember(e, dear->nodes[i], at, emit_load(e, dear->memories[i], dtype, offset, 0, NULL));
  }
}

static void compute_one(emit *e, void *user, ir_expr offset) {
  const dear_tile *t = user;
  const loop_dear *dear = &t->job->dear;
  const map_access at = schedule_at(e->x, &t->job->box->space, t->job->row, expr_add(e->x, t->start, offset));
  const uint32_t node = dear->nodes[t->done];
  recall_done(e, t, &at, offset);
  const uint32_t value = emit_value(e, node, &at);
  const bool stream = e->stream;
  e->stream = false; /* it is read again soon */
  emit_store(e, dear->memories[t->done], emit_compute_type(e, ir_at(e->g, node)->type.dtype, 1).base, offset, value);
  e->stream = stream;
}

static void compute_rest(emit *e, void *user, ir_expr offset) {
  const dear_tile *t = user;
  const ir_expr column = expr_add(e->x, t->start, offset);
  const map_access at = schedule_at(e->x, &t->job->box->space, t->job->row, column);
  recall_done(e, t, &at, offset);
  t->store(e, t->job, column);
}

static void open_memories(emit *e, loop_dear *dear) {
  for (uint32_t i = 0; i < dear->count; i++) {
    char name[24];
    const int length = snprintf(name, sizeof name, "t%u", e->k->memories.count);
    kir_memory m = {.name = ir_arena_text(e->arena, name, (size_t)length), .space = KIR_PRIVATE, .access = KIR_READ | KIR_WRITE, .rank = 1};
    m.type = kir_t(emit_compute_type(e, ir_at(e->g, dear->nodes[i])->type.dtype, 1).base, 1);
    m.flags = KIR_MEM_ROWS;
    m.align = 64;
    m.dims[0] = dear->columns;
    dear->memories[i] = kir_memory_add(e->k, &m);
  }
  dear->open = true;
}

void loop_dear_columns(emit *e, loop_job *job, ir_expr lo, ir_expr hi, uint32_t lanes, schedule_body store) {
  expr_pool *x = e->x;
  const int64_t width = job->dear.columns;
  const ir_expr whole = expr_sub(x, hi, expr_mod(x, expr_sub(x, hi, lo), expr_int(x, width)));
  int64_t length;
  if (expr_is_const(x, expr_sub(x, hi, lo), &length) && length < width) {
    schedule_vector_loop(e, lo, hi, lanes, 1, store, job);
    return;
  }
  if (!job->dear.open) open_memories(e, &job->dear);
  const ir_expr start = emit_steps(e, "t", lo, whole, width);
  dear_tile tile = {.job = job, .start = start, .store = store};
  for (; tile.done < job->dear.count; tile.done++) schedule_vector_loop(e, 0, expr_int(x, width), lanes, UNROLL, compute_one, &tile);
  schedule_vector_loop(e, 0, expr_int(x, width), lanes, UNROLL, compute_rest, &tile);
  emit_loop_end(e, start, 0, NULL, NULL);
  schedule_vector_loop(e, whole, hi, lanes, 1, store, job); /* less than a tile: all at once */
}
