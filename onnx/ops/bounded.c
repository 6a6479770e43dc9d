/* Operators whose results' extents depend on the data (bounded.c): the first `count` places hold what was found, the others -1, or 0 where they are values. */
#include "onnx/import_private.h"
#include "onnx/ops.h"
#include <math.h>

/* Where a condition [n] holds, in order; then where it does not. */
static uint32_t places(onnx_call *c, uint32_t flags) {
  const uint32_t key = onnx_cast(c, onnx_1(c, IR_OP_not, flags), SNT_I32);
  return key ? onnx_add(c, "argsort %%%u, axis=0", key) : 0;
}

/* How many they are, and as a late number. */
static uint32_t total(onnx_call *c, uint32_t flags) { return onnx_reduce(c, IR_OP_reduce_sum, onnx_cast(c, flags, SNT_I64), 1, false); }
static ir_expr found(onnx_call *c, uint32_t flags) {
  return flags ? onnx_late_number(c, total(c, flags), onnx_type_of(c, flags)->dims[0]) : 0;
}

static uint32_t line(onnx_call *c, uint32_t like, int32_t dtype) {
  return like ? onnx_iota(c, dtype, 1, onnx_type_of(c, like)->dims, 0) : 0;
}

/* ---- NonZero ---- */

bool onnx_op_non_zero(onnx_call *c) {
  uint32_t x = onnx_in(c, 0), parts[SNT_MAX_RANK];
  const ir_expr one = 1;
  if (!x) return false;
  if (onnx_type_of(c, x)->rank == 0) x = onnx_reshape(c, x, 1, &one);
  if (!x) return false;
  const ir_tensor type = *onnx_type_of(c, x);
  const uint32_t flags = onnx_flat(c, onnx_cast(c, x, SNT_BOOL)), order = flags ? places(c, flags) : 0;
  for (uint32_t d = 0; d < type.rank; d++) {
    const uint32_t axis = onnx_flat(c, onnx_iota(c, SNT_I64, type.rank, type.dims, d)), row = onnx_gather(c, axis, order, 0);
    if (!row) return false;
    parts[d] = onnx_reshape(c, row, 2, (const ir_expr[]){1, onnx_type_of(c, row)->dims[0]});
  }
  const ir_expr count = found(c, flags);
  return onnx_out_counted(c, 0, onnx_concat(c, 0, type.rank, parts), count, 1, -1);
}

/* ---- Compress, where the condition is not known ---- */

bool onnx_compress_by_data(onnx_call *c, uint32_t x, uint32_t axis) {
  if (onnx_is_counted(c, 0, axis) && !onnx_drop_in(c, 0)) return false; /* the condition is no longer */
  if (!onnx_mask_in(c, 1, ONNX_ZERO)) return false;
  uint32_t flags = onnx_cast(c, onnx_in(c, 1), SNT_BOOL);
  if (!x || !flags) return false;
  if (onnx_type_of(c, flags)->rank != 1) return onnx_refuse(c, "a condition of rank %u", onnx_type_of(c, flags)->rank);
  const ir_expr given = onnx_type_of(c, flags)->dims[0], most = expr_min(c->g->pool, given, onnx_type_of(c, x)->dims[axis]);
  if (given != most) flags = onnx_slice(c, flags, 0, 0, most, 1); /* a longer condition must not hold beyond x */
  if (!flags) return false;
  const ir_expr count = found(c, flags);
  return onnx_out_counted(c, 0, onnx_gather(c, x, places(c, flags), axis), count, axis, 0);
}

/* ---- Unique: of elements, or of slices, which are rows of elements ---- */

enum { MOST_COLUMNS = 256 };
typedef struct groups {    /* of equal rows in sorted order */
  uint32_t rows, order;    /* the sorted rows [n, m]; where each stood */
  uint32_t begins, number; /* of each: is it the first of its group; which group, from 0 */
  uint32_t start, count;   /* of each group: its first place; how many groups */
} groups;

/* Sorted by the first column, equal ones by the second, and so on: stable sorts from the last column on. */
static uint32_t sort_rows(onnx_call *c, uint32_t rows) {
  const ir_tensor type = *onnx_type_of(c, rows);
  uint32_t order = 0;
  int64_t columns;
  if (!expr_is_const(c->g->pool, type.dims[1], &columns) || columns > MOST_COLUMNS)
    return onnx_refuse(c, "slices of more than %d elements", MOST_COLUMNS), 0;
  for (int64_t k = columns; k-- > 0;) {
    const uint32_t column = onnx_flat(c, onnx_slice(c, rows, 1, expr_int(c->g->pool, k), 1, 1));
    const uint32_t key = order ? onnx_gather(c, column, order, 0) : column, sorted = key ? onnx_add(c, "argsort %%%u, axis=0", key) : 0;
    if (!sorted || !(order = order ? onnx_gather(c, order, sorted, 0) : sorted)) return 0;
  }
  return order;
}

static bool find_groups(onnx_call *c, uint32_t rows, groups *g) {
  const ir_expr n = onnx_type_of(c, rows)->dims[0], most = expr_sub(c->g->pool, n, 1);
  g->order = sort_rows(c, rows);
  g->rows = onnx_gather(c, rows, g->order, 0);
  const uint32_t parts[2] = {onnx_slice(c, g->rows, 0, 0, 1, 1), onnx_slice(c, g->rows, 0, 0, most, 1)};
  const uint32_t before = onnx_concat(c, 0, 2, parts), differs = onnx_cast(c, onnx_2(c, IR_OP_ne, g->rows, before), SNT_I32);
  const uint32_t any = onnx_2n(c, IR_OP_gt, onnx_reduce(c, IR_OP_reduce_max, differs, 2, false), 0);
  g->begins = onnx_2(c, IR_OP_or, any, onnx_2n(c, IR_OP_eq, line(c, any, SNT_I64), 0));
  if (!g->begins) return false;
  const uint32_t counted = onnx_add(c, "scan.sum %%%u, axis=0", onnx_cast(c, g->begins, SNT_I64));
  g->number = onnx_2n(c, IR_OP_sub, counted, 1);
  g->start = places(c, g->begins);
  g->count = total(c, g->begins);
  return g->number && g->start && g->count;
}

/* Elements in each group: from its start to the next one's. */
static uint32_t group_sizes(onnx_call *c, const groups *g) {
  const ir_tensor *type = onnx_type_of(c, g->start);
  const ir_expr n = type->dims[0];
  const uint32_t parts[2] = {onnx_slice(c, g->start, 0, 1, expr_sub(c->g->pool, n, 1), 1), onnx_slice(c, g->start, 0, 0, 1, 1)};
  const uint32_t last = onnx_2(c, IR_OP_eq, line(c, g->start, SNT_I64), onnx_2n(c, IR_OP_sub, g->count, 1));
  const uint32_t all = onnx_reduce(c, IR_OP_reduce_max, onnx_2n(c, IR_OP_add, line(c, g->start, SNT_I64), 1), 1, false);
  return onnx_2(c, IR_OP_sub, onnx_select(c, last, all, onnx_concat(c, 0, 2, parts)), g->start);
}

/* Slices along `axis` as rows. */
static uint32_t as_rows(onnx_call *c, uint32_t x, uint32_t axis) {
  const ir_tensor type = *onnx_type_of(c, x);
  uint32_t perm[SNT_MAX_RANK];
  ir_expr dims[2] = {type.dims[axis], 1};
  perm[0] = axis;
  for (uint32_t i = 0, at = 1; i < type.rank; i++)
    if (i != axis) perm[at++] = i, dims[1] = expr_mul(c->g->pool, dims[1], type.dims[i]);
  return onnx_reshape(c, onnx_transpose(c, x, perm), 2, dims);
}

bool onnx_op_unique(onnx_call *c) {
  const bool sorted = onnx_int(c, "sorted", 1) != 0, sliced = onnx_find_attr(c, "axis") != NULL;
  uint32_t x = onnx_in(c, 0), axis = 0;
  groups g = {0};
  if (!sliced) x = onnx_flat(c, x);
  if (!x || !onnx_axis(c, onnx_int(c, "axis", 0), onnx_type_of(c, x)->rank, &axis)) return false;
  const uint32_t rows = as_rows(c, x, axis);
  if (!rows || !find_groups(c, rows, &g)) return false;
  const uint32_t back = onnx_add(c, "argsort %%%u, axis=0", g.order);
  uint32_t first = onnx_gather(c, g.order, g.start, 0), sizes = group_sizes(c, &g), number = onnx_gather(c, g.number, back, 0);
  if (!sorted) { /* groups in the order of their first rows; what is beyond the groups stays behind them */
    const uint32_t unused = onnx_2(c, IR_OP_ge, line(c, first, SNT_I64), g.count), far = onnx_like(c, first, 0x1p52);
    const uint32_t key = onnx_select(c, unused, far, first), perm = key ? onnx_add(c, "argsort %%%u, axis=0", key) : 0;
    const uint32_t rank = perm ? onnx_add(c, "argsort %%%u, axis=0", perm) : 0;
    first = onnx_gather(c, first, perm, 0), sizes = onnx_gather(c, sizes, perm, 0);
    number = onnx_gather(c, rank, number, 0);
  }
  const ir_expr count = onnx_late_number(c, g.count, onnx_type_of(c, rows)->dims[0]);
  return onnx_out_counted(c, 0, onnx_gather(c, x, first, axis), count, axis, 0) &&
         (c->out_count < 2 || onnx_out_counted(c, 1, first, count, 0, -1)) && (c->out_count < 3 || onnx_out(c, 2, number)) &&
         (c->out_count < 4 || onnx_out_counted(c, 3, sizes, count, 0, 0));
}

/* ---- NonMaxSuppression ---- */

enum { Y1, X1, Y2, X2, AREA, CORNERS };
typedef struct suppression {
  uint32_t corner[CORNERS]; /* of each box: [batch, 1, box] */
  ir_tensor scores;         /* [batch, class, box] */
  uint32_t limit;           /* of the overlap, rank 0 */
  ir_expr most;             /* boxes of a class */
} suppression;

/* Column k of the boxes [batch, box, 4]. */
static uint32_t column(onnx_call *c, uint32_t boxes, uint32_t k) {
  const ir_tensor *t = onnx_type_of(c, boxes);
  return onnx_reshape(c, onnx_slice(c, boxes, 2, expr_int(c->g->pool, k), 1, 1), 3, (const ir_expr[]){t->dims[0], 1, t->dims[1]});
}

static bool read_boxes(onnx_call *c, uint32_t boxes, bool centred, uint32_t *corner) {
  uint32_t at[4];
  for (uint32_t k = 0; k < 4; k++)
    if (!(at[k] = column(c, boxes, k))) return false;
  if (centred) { /* x, y of the centre, width, height */
    const uint32_t w = onnx_2n(c, IR_OP_mul, at[2], 0.5), h = onnx_2n(c, IR_OP_mul, at[3], 0.5);
    corner[Y1] = onnx_2(c, IR_OP_sub, at[1], h), corner[Y2] = onnx_2(c, IR_OP_add, at[1], h);
    corner[X1] = onnx_2(c, IR_OP_sub, at[0], w), corner[X2] = onnx_2(c, IR_OP_add, at[0], w);
  } else { /* any two corners that face each other */
    corner[Y1] = onnx_2(c, IR_OP_min, at[0], at[2]), corner[Y2] = onnx_2(c, IR_OP_max, at[0], at[2]);
    corner[X1] = onnx_2(c, IR_OP_min, at[1], at[3]), corner[X2] = onnx_2(c, IR_OP_max, at[1], at[3]);
  }
  const uint32_t height = onnx_2(c, IR_OP_sub, corner[Y2], corner[Y1]), width = onnx_2(c, IR_OP_sub, corner[X2], corner[X1]);
  return (corner[AREA] = onnx_2(c, IR_OP_mul, height, width)) != 0;
}

/* Which boxes [batch, class, box] overlap the chosen ones [batch, class, 1] too much. */
static uint32_t overlapping(onnx_call *c, const suppression *s, uint32_t chosen) {
  uint32_t own[CORNERS], side[2];
  for (uint32_t k = 0; k < CORNERS; k++) {
    const uint32_t all = onnx_broadcast(c, s->corner[k], 3, s->scores.dims);
    own[k] = all && chosen ? onnx_add(c, "gather_elements %%%u, %%%u, axis=2", all, chosen) : 0;
  }
  for (uint32_t k = 0; k < 2; k++) {
    const uint32_t low = onnx_2(c, IR_OP_max, s->corner[k], own[k]), high = onnx_2(c, IR_OP_min, s->corner[k + 2], own[k + 2]);
    side[k] = onnx_2n(c, IR_OP_max, onnx_2(c, IR_OP_sub, high, low), 0);
  }
  const uint32_t both = onnx_2(c, IR_OP_mul, side[0], side[1]), sum = onnx_2(c, IR_OP_add, s->corner[AREA], own[AREA]);
  return onnx_2(c, IR_OP_gt, onnx_2(c, IR_OP_div, both, onnx_2(c, IR_OP_sub, sum, both)), s->limit);
}

/* Takes the best box that is left of each class, `most` times or until none is: its number, or -1, in [batch, class, most]. */
static uint32_t pick_boxes(onnx_call *c, const suppression *s, uint32_t scores) {
  const ir_expr picks[3] = {s->scores.dims[0], s->scores.dims[1], s->most};
  const ir_tensor type = {.dtype = SNT_I64, .rank = 3, .dims = {picks[0], picks[1], picks[2]}};
  const uint32_t initial[4] = {scores, onnx_fill(c, &type, -1), onnx_scalar(c, SNT_I64, 0), onnx_scalar(c, SNT_BOOL, 1)};
  uint32_t inside[4], results[4];
  if (!initial[0] || !initial[1] || !initial[2] || !initial[3]) return 0;
  ir_repeat_begin(c->g, 4, initial, s->most, inside);
  ir_repeat_while(c->g, 3);
  const uint32_t top = onnx_reduce(c, IR_OP_reduce_max, inside[0], 4, true), best = onnx_reduce(c, IR_OP_reduce_argmax, inside[0], 4, true);
  const uint32_t found = onnx_2n(c, IR_OP_gt, top, -INFINITY), number = onnx_select(c, found, best, onnx_like(c, best, -1));
  const uint32_t here = onnx_2(c, IR_OP_eq, onnx_iota(c, SNT_I64, 3, picks, 2), inside[2]);
  const uint32_t itself = onnx_2(c, IR_OP_eq, onnx_iota(c, SNT_I64, 3, s->scores.dims, 2), best);
  const uint32_t gone = onnx_2(c, IR_OP_or, itself, overlapping(c, s, best));
  const uint32_t any = onnx_reduce(c, IR_OP_reduce_max, onnx_cast(c, found, SNT_I32), 7, false);
  const uint32_t next[4] = {onnx_select(c, gone, onnx_like(c, inside[0], -INFINITY), inside[0]), onnx_select(c, here, number, inside[1]),
                            onnx_2n(c, IR_OP_add, inside[2], 1), onnx_2n(c, IR_OP_gt, any, 0)};
  ir_repeat_end(c->g, 4, next, results);
  return results[1];
}

bool onnx_op_non_max_suppression(onnx_call *c) {
  if (onnx_is_counted(c, 1, 2) && !onnx_mask_in(c, 1, ONNX_LEAST)) return false; /* a box without a score is never picked */
  if (onnx_is_counted(c, 0, 1) && !onnx_drop_in(c, 0)) return false;
  const uint32_t boxes = onnx_in(c, 0);
  uint32_t scores = onnx_in(c, 1), column_of[3];
  suppression s = {.limit = onnx_has(c, 3) ? onnx_scalar_in(c, 3) : onnx_scalar(c, SNT_F32, 0)};
  int64_t most = 0, count;
  if (!boxes || !scores || !s.limit || (onnx_has(c, 2) && !onnx_in_int(c, 2, &most))) return false;
  s.scores = *onnx_type_of(c, scores);
  if (s.scores.rank != 3 || onnx_type_of(c, boxes)->rank != 3) return onnx_refuse(c, "boxes and scores have three axes");
  if (!expr_is_const(c->g->pool, s.scores.dims[2], &count)) return onnx_refuse(c, "the number of boxes must be fixed");
  if (most > count) most = count;
  if (most < 1) return onnx_refuse(c, "no box is asked for: max_output_boxes_per_class is 0");
  const int64_t read = onnx_first_places_read(c);
  if (most > read) most = read > 1 ? read : 1;
  s.most = expr_int(c->g->pool, most);
  if (!read_boxes(c, boxes, onnx_int(c, "center_point_box", 0) != 0, s.corner)) return false;
  if (onnx_has(c, 4)) {
    const uint32_t good = onnx_2(c, IR_OP_gt, scores, onnx_scalar_in(c, 4));
    scores = onnx_select(c, good, scores, onnx_like(c, scores, -INFINITY));
  }
  const uint32_t picks = pick_boxes(c, &s, scores);
  if (!picks) return false;
  const ir_tensor type = *onnx_type_of(c, picks);
  const bool alone = type.dims[0] == 1 && type.dims[1] == 1; /* what was found of one class stands first as it is */
  const uint32_t flags = onnx_flat(c, onnx_2n(c, IR_OP_ge, picks, 0)), order = flags && !alone ? places(c, flags) : 0;
  for (uint32_t k = 0; k < 3; k++) {
    const uint32_t all = onnx_flat(c, k < 2 ? onnx_iota(c, SNT_I64, 3, type.dims, k) : picks),
                   row = alone ? all : onnx_gather(c, all, order, 0);
    if (!row) return false;
    column_of[k] = onnx_reshape(c, row, 2, (const ir_expr[]){onnx_type_of(c, row)->dims[0], 1});
  }
  const ir_expr set = found(c, flags);
  return onnx_out_counted(c, 0, onnx_concat(c, 1, 3, column_of), set, 0, -1);
}
