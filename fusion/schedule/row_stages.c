/* What rows keep between their sweeps: the largest parts that two of them need, where recomputing costs more than reading, and where these lie. */
#include "fusion/schedule/row_private.h"

static bool is_member(const row_job *j, uint32_t node) { return fusion_group_has(j->group, node); }
static bool is_output(const row_job *j, uint32_t node) {
  for (uint32_t i = 0; i < j->group->output_count; i++)
    if (j->group->outputs[i] == node) return true;
  return false;
}

enum { SEEN = 1, SEEN_MOVED = 2 }; /* needed where it stands; needed at another place, below a view or a gather */

/* A reduction's operand stands where the sweep is; so does what an output is a view of, whose place is found from the row's, unless the output is a
   row itself, stored where the sweep is: what it reads is elsewhere. */
static bool follows_row(const row_job *j, uint32_t root) {
  const ir_op op = (ir_op)ir_at(j->c->graph, root)->op;
  return op != IR_OP_gather && (op == IR_OP_reshape || !fusion_is_view(j->c->graph, root) || !row_is_full(j, root));
}

static void mark_needed(row_job *j, uint32_t node, uint8_t *seen, uint8_t how, bool root) {
  if (seen[node] & how) return;
  if (!fusion_is_view(j->c->graph, node) && !is_member(j, node)) return;
  if (!root && row_is_reduce(j, node)) return;
  seen[node] |= how;
  const bool stays = (root && follows_row(j, node)) || (ir_ops[ir_at(j->c->graph, node)->op].flags & IR_POINTWISE);
  for (uint32_t i = 0; i < ir_at(j->c->graph, node)->arity; i++)
    mark_needed(j, ir_arg(j->c->graph, node, i), seen, stays ? how : SEEN_MOVED, false);
}

static void count_work(row_job *j, uint32_t node, uint32_t *loads, bool *expensive, uint32_t depth) {
  const ir_node *n = ir_at(j->c->graph, node);
  if (depth > 32) return;
  if (fusion_is_view(j->c->graph, node)) {
    count_work(j, ir_arg(j->c->graph, node, 0), loads, expensive, depth + 1);
    return;
  }
  if (!is_member(j, node)) {
    *loads += row_is_full(j, node) && n->op != IR_OP_const;
    return;
  }
  if (row_is_reduce(j, node)) return;
  *expensive |= (ir_ops[n->op].flags & IR_EXPENSIVE) != 0 || n->op == IR_OP_gather;
  for (uint32_t i = 0; i < n->arity; i++) count_work(j, ir_arg(j->c->graph, node, i), loads, expensive, depth + 1);
}

/* The largest common part of two sweeps, not of any larger one, and worth a store and a load. */
static bool is_worth_keeping(row_job *j, const ir_uses *uses, uint32_t node, uint32_t s, uint32_t t) {
  const uint32_t n = j->c->graph->nodes.count;
  const uint8_t *a = j->seen + (size_t)s * n, *b = j->seen + (size_t)t * n;
  if (!(a[node] & SEEN) || !(b[node] & SEEN) || !is_member(j, node) || !row_is_full(j, node)) return false;
  for (uint32_t u = uses->first[node]; u < uses->first[node + 1]; u++)
    if ((a[uses->user[u]] & SEEN) && (b[uses->user[u]] & SEEN) && is_member(j, uses->user[u]) && row_is_full(j, uses->user[u]) &&
        !row_is_reduce(j, uses->user[u]))
      return false;
  uint32_t loads = 0;
  bool expensive = false;
  count_work(j, node, &loads, &expensive, 0);
  return expensive || loads > 1;
}

uint32_t row_find_stage(const row_job *j, uint32_t node) {
  uint32_t i = 0;
  while (i < j->staged_count && j->staged[i] != node) i++;
  return i;
}

bool row_is_staged(const row_job *j, uint32_t node) { return row_find_stage(j, node) < j->staged_count; }

bool row_is_made(const row_job *j, uint32_t node) {
  for (uint32_t i = 0; i < j->dear_count; i++)
    if (j->dear[i] == node) return true;
  return false;
}

bool row_find_kept(row_job *j) {
  const uint32_t n = j->c->graph->nodes.count;
  j->seen = IR_NEW_ARRAY(j->c->arena, uint8_t, (size_t)(j->sweeps + 1) * n);
  j->stored_in = IR_NEW_ARRAY(j->c->arena, uint8_t, j->group->output_count + 1);
  if (!j->seen || !j->stored_in) return false;
  for (uint32_t s = 0; s < j->sweeps; s++) mark_needed(j, j->reduce[s], j->seen + (size_t)s * n, SEEN, true);
  fusion_note_positions(j->c, j->group);
  schedule_store_sweeps(j->c, j->group, (uint8_t)j->sweeps, j->stored_in);
  for (uint32_t i = 0; i < j->group->output_count; i++)
    if (!row_is_reduce(j, j->group->outputs[i])) mark_needed(j, j->group->outputs[i], j->seen + (size_t)j->stored_in[i] * n, SEEN, true);
  if (!j->keep_stage) return true;
  const uint32_t spare = schedule_spare_bindings(j->c, j->group), most = spare < ROW_SWEEPS ? spare : ROW_SWEEPS;
  for (uint32_t s = 0; s < j->sweeps; s++)
    for (uint32_t t = s + 1; t <= j->sweeps; t++)
      for (uint32_t i = 0; i < j->group->count && j->staged_count < most; i++) {
        const uint32_t node = j->group->nodes[i];
        if (row_is_staged(j, node) || !is_worth_keeping(j, j->c->uses, node, s, t)) continue;
        j->staged[j->staged_count] = node, j->memory[j->staged_count] = UINT32_MAX;
        j->staged_in[j->staged_count++] = s;
      }
  return true;
}

static bool is_small_row(const row_job *j) {
  int64_t literal;
  return j->across || (expr_is_const(j->c->graph->pool, j->columns, &literal) && literal * 4 <= PRIVATE_ROW_BYTES);
}

/* Stored once for all: by f32 outputs, which are stages themselves. */
static bool is_kept_by_output(const row_job *j, uint32_t node) {
  return is_output(j, node) && ir_at(j->c->graph, node)->type.dtype == SNT_F32;
}

/* Does an item look at elements of a shared row that are another's? At a place that is moved, or at all of them for an extreme's. */
static bool is_read_by_others(const row_job *j, uint32_t node) {
  const uint32_t n = j->c->graph->nodes.count;
  for (uint32_t s = 0; s <= j->sweeps; s++) {
    const uint8_t how = j->seen[(size_t)s * n + node];
    const uint16_t op = s < j->sweeps ? ir_at(j->c->graph, j->reduce[s])->op : 0;
    if (how & SEEN_MOVED || (how && (op == IR_OP_reduce_argmax || op == IR_OP_reduce_argmin))) return true;
  }
  return false;
}

/* Items that do a row each would overwrite each other's in the workspace, which has one row a group; items that share a row keep what only they read. */
void row_drop_shared_stages(row_job *j, bool item_rows) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < j->staged_count; i++) {
    if (item_rows ? !is_small_row(j) && !is_kept_by_output(j, j->staged[i]) : is_read_by_others(j, j->staged[i])) continue;
    j->staged[kept] = j->staged[i], j->home[kept] = j->home[i], j->staged_in[kept++] = j->staged_in[i];
  }
  j->staged_count = kept;
}

void row_leave_to_last(row_job *j) {
  j->staged_count = 0;
  memset(j->stored_in, (int)j->sweeps, j->group->output_count);
}

bool row_is_read_in_place(const row_job *j, uint32_t node) {
  return !(j->seen[(size_t)j->sweeps * j->c->graph->nodes.count + node] & SEEN_MOVED);
}

/* The output that is stored last, at the places where the kept row is read: until then its room is free. Not over a state, which may be read yet. */
static uint32_t free_output(const row_job *j, uint32_t node) {
  const uint32_t number = j->group->output_count - 1, last = number != UINT32_MAX ? j->group->outputs[number] : 0;
  if (!last || j->stored_in[number] != j->sweeps || row_is_reduce(j, last) || !row_is_full(j, last) ||
      ir_at(j->c->graph, last)->type.dtype != SNT_F32 || fusion_is_update(j->c->graph, last))
    return 0;
  if (ir_at(j->c->graph, node)->type.dtype != SNT_F32 || !row_is_read_in_place(j, node)) return 0;
  for (uint32_t i = 0; i < j->staged_count; i++)
    if (j->home[i] == last) return 0;
  return last;
}

/* Where a kept row lies when it is an output or can wait in the room of one. Stores of dear values go out while the next ones are computed, which a
   private row has to do later, all at once (softmax of 4096 x 1024 on PoCL: 1.3 times as fast); cheap values, and all where stores pass the caches by,
   are better stored once (16384 x 1024: 3.8 to 2.7 ms). Rows across the unit stride lie a line here and a line there in an output, in few cache sets, and are
   kept packed (16 x 512 x 512 2.25 to 1.34 ms). */
static uint32_t find_home(row_job *j, uint32_t node) {
  uint32_t loads = 0;
  bool expensive = false;
  if (is_kept_by_output(j, node)) return node;
  if (!schedule_is_explicit(j->c) && is_small_row(j)) return 0;
  count_work(j, node, &loads, &expensive, 0);
  return (expensive && !j->e->stream && !j->across) || !is_small_row(j) ? free_output(j, node) : 0;
}

void row_find_homes(row_job *j) {
  for (uint32_t i = 0; i < j->staged_count; i++) {
    j->home[i] = find_home(j, j->staged[i]);
    j->e->stream &= !j->home[i] || j->home[i] == j->staged[i];
  }
}

static stage_storage stage_place(const row_job *j, uint32_t stage) {
  if (j->home[stage]) return STAGE_OUTPUT;
  return !is_small_row(j) ? STAGE_WORKSPACE : j->items > 1 ? STAGE_LOCAL : STAGE_PRIVATE;
}

/* Sweeps over several axes share out their elements in another way than the storing loop: what one item kept, another reads. */
void row_order_stages(row_job *j, uint32_t sweep_number) {
  uint32_t axes = 0, sync = 0;
  for (uint32_t d = 0; d < j->full.rank; d++) axes += j->reduced[d];
  for (uint32_t i = 0; i < j->staged_count; i++)
    if (j->staged_in[i] == sweep_number) sync |= stage_place(j, i) == STAGE_LOCAL ? KIR_SYNC_LOCAL : KIR_SYNC_GLOBAL;
  if (j->items > 1 && axes > 1 && sync) kir_barrier(j->e->k, sync);
}

stage_info row_stage(const row_job *j, uint32_t node, uint32_t stage) {
  const bool kept = stage < j->staged_count;
  stage_info info = {.node = node, .home = kept ? j->home[stage] : 0, .ring_axis = -1, .group = j->group_var, .groups = j->groups};
  info.storage = kept ? stage_place(j, stage) : STAGE_PRIVATE;
  for (uint32_t d = 0; d < j->full.rank; d++) {
    info.origin[d] = j->at[d];
    info.extent[d] = j->reduced[d] ? j->full.dims[d] : 1;
  }
  if (j->across) info.origin[j->full.rank - 1] = j->first, info.extent[j->full.rank - 1] = (ir_expr)j->lanes;
  return info;
}

void row_open_stages(row_job *j, uint32_t sweep_number) {
  for (uint32_t i = 0; i < j->staged_count; i++) {
    if (j->staged_in[i] != sweep_number || row_is_made(j, j->staged[i])) continue;
    const stage_info info = row_stage(j, j->staged[i], i);
    emit_stage_open(j->e, &info, j->memory[i]);
  }
}

void row_show_stages(row_job *j) {
  for (uint32_t i = 0; i < j->staged_count; i++) {
    const stage_info info = row_stage(j, j->staged[i], i);
    const emit_stage_entry room = emit_stage_room(j->e, &info, j->memory[i]);
    j->memory[i] = room.memory;
    emit_stage_show(j->e, &room);
  }
}

void row_fill_stages(row_job *j, uint32_t sweep_number) {
  for (uint32_t i = 0; i < j->staged_count; i++)
    if (j->staged_in[i] == sweep_number) emit_stage_filled(j->e, j->staged[i]);
}
