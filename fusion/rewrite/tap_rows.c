/* A convolution of fewer channels than a vector has elements, as a network's first one, on matrix units: whole rows of taps are multiplied. In: a contraction
   of a window and a constant. Out: the source stored once more, a position's channels beside each other and filled up to a power of two, so that a row of taps is
   a run of whole vectors; the weights described in that order, with zeros where rows are filled up. */
#include "fusion/fragments.h"
#include "fusion/rewrite/tap_order.h"
#include "fusion/rewrite/taps.h"
#include "fusion/schedule_common.h"
#include <math.h>

enum { VECTOR_BYTES = 16 };
static const ir_attr_key keys[2] = {IR_ATTR_lhs, IR_ATTR_rhs};

typedef struct tap_rows {
  taps t;
  uint32_t side;                   /* the operand that has the window */
  const ir_expr *labels, *own;     /* its labels, and the weights' */
  ir_expr low[4], high[4];         /* the padding's */
  int64_t channels, together, row; /* elements of a position, and of the taps of one row, filled up */
} tap_rows;

/* Channels before two axes of positions, and weights that have an axis of their own before these; neighbours begin
   several elements apart, and their taps overlap: others are vectors as they lie. */
static bool read_tap_rows(const rebuild *r, uint32_t side, tap_rows *v) {
  matrix_units units;
  uint32_t rank, own_rank, out_rank;
  const ir_node *w = ir_at(r->to, r->args[1 - side]);
  const tap_axis *across = &v->t.at[1];
  if (ir_at(r->to, r->args[side])->op != IR_OP_window) return false;
  *v = (tap_rows){.side = side};
  if (w->op != IR_OP_const || w->type.rank != 4 || ir_at(r->to, r->args[side])->type.dtype != w->type.dtype ||
      !matrix_units_find(r->c, w->type.dtype, &units) || !rewrite_read_taps(r, r->args[side], &v->t) || v->t.rank != 4 || v->t.axis != 2)
    return false;
  v->labels = ir_attr_ints(r->from, r->node, keys[side], &rank), v->own = ir_attr_ints(r->from, r->node, keys[1 - side], &own_rank);
  const ir_expr *out = ir_attr_ints(r->from, r->node, IR_ATTR_out, &out_rank), summed[] = {v->labels[1], v->labels[4], v->labels[5]};
  for (uint32_t i = 0; i < IR_COUNT(summed); i++)
    if (v->own[1 + i] != summed[i] || fusion_find_label(out, out_rank, summed[i]) >= 0) return false;
  const int64_t vector = VECTOR_BYTES / ir_dtypes[w->type.dtype].bytes;
  if (out_rank != 4 || !expr_is_const(r->to->pool, w->type.dims[1], &v->channels) || v->channels >= vector) return false;
  memcpy(v->low, v->t.low, sizeof v->low), memcpy(v->high, v->t.high, sizeof v->high);
  for (v->together = 1; v->together < v->channels;) v->together *= 2;
  v->row = (across->size * v->together + vector - 1) / vector * vector;
  return across->stride * v->together % 4 == 0 && across->dilation == 1 && across->stride > 1 && across->stride < across->size;
}

/* A launch, and the source once more, beside fetching each element of it by itself wherever tiles of columns read it: in counted instructions of an item. */
static bool rows_pay(const rebuild *r, const tap_rows *v) {
  enum { COLUMNS = 128 /* of a tile */, FETCH = 24 /* more than its share of a vector's */, TURN = 72 /* a position, stored once more */ };
  const cost_profile *p = r->c->options->profile;
  const ir_graph *g = r->to;
  const double columns = (double)schedule_hint(g->pool, ir_at(g, r->args[1 - v->side])->type.dims[0]),
               terms = (double)(v->channels * v->t.at[0].size * v->t.at[1].size);
  const double results = (double)schedule_hint(g->pool, ir_tensor_elements(g->pool, &ir_at(r->from, r->node)->type)),
               stored = (double)schedule_hint(g->pool, ir_tensor_elements(g->pool, &ir_at(g, v->t.source)->type)) / (double)v->channels;
  return FETCH * results / columns * ceil(columns / COLUMNS) * terms - TURN * stored > p->launch_ns * p->lanes * p->units * p->ghz;
}

/* The source with its padding, positions of a power of two of channels one after the other; windows of rows. */
static uint32_t source_rows(rebuild *r, const tap_rows *v) {
  static const ir_expr axis = 1, none[2] = {0}, last[4] = {0, 2, 3, 1};
  const tap_axis *down = &v->t.at[0], *across = &v->t.at[1];
  const int64_t has = across->low + across->extent + across->high, read = (across->positions - 1) * across->stride + v->row / v->together;
  ir_expr high[4];
  memcpy(high, v->high, sizeof high);
  high[1] = expr_add(r->to->pool, high[1], (ir_expr)(v->together - v->channels));
  if (read > has) high[3] += (ir_expr)(read - has);
  const ir_attr_value around[] = {{IR_ATTR_high, 4, high}, {IR_ATTR_low, 4, v->low}};
  const uint32_t turned = rebuild_transpose(r, rebuild_view(r, IR_OP_pad, v->t.source, IR_COUNT(around), around), 4, last);
  const ir_expr dilation[2] = {(ir_expr)down->dilation, 1}, size[2] = {(ir_expr)down->size, (ir_expr)v->row},
                stride[2] = {(ir_expr)down->stride, (ir_expr)(across->stride * v->together)};
  const ir_attr_value attrs[] = {{IR_ATTR_axis, 1, &axis}, {IR_ATTR_dilation, 2, dilation}, {IR_ATTR_high, 2, none},
                                 {IR_ATTR_low, 2, none},   {IR_ATTR_size, 2, size},         {IR_ATTR_stride, 2, stride}};
  ir_add_contract(r->to, IR_KEEP, 1, &turned);
  const ir_expr *d = ir_at(r->to, turned)->type.dims, flat[3] = {d[0], d[1], expr_mul(r->to->pool, d[2], d[3])};
  return rebuild_view(r, IR_OP_window, rebuild_reshape(r, turned, 3, flat), IR_COUNT(attrs), attrs);
}

typedef struct row_making {
  ir_making making;
  int64_t channels, together, size[2], row; /* taps down and across; elements of a row of them */
  int64_t bytes;                            /* of an element */
} row_making;

/* Rows of taps with their channels, zeros where they are filled up. */
static void fill_rows(const ir_making *m, const void *const *sources, void *to) {
  const row_making *w = (const row_making *)(const void *)m;
  memset(to, 0, m->bytes);
  for (int64_t i = 0; i < (int64_t)(m->bytes / w->bytes); i++) {
    const int64_t channel = i % w->together, across = i % w->row / w->together, row = i / w->row;
    if (channel >= w->channels || across >= w->size[1]) continue;
    const int64_t from = (row / w->size[0] * w->channels + channel) * w->size[0] + row % w->size[0];
    memcpy((uint8_t *)to + i * w->bytes, (const uint8_t *)sources[0] + (from * w->size[1] + across) * w->bytes, w->bytes);
  }
}

static uint32_t weight_rows(rebuild *r, const tap_rows *v, uint32_t weights) {
  row_making *w = IR_NEW(r->c->arena, row_making);
  const ir_tensor *t = &ir_at(r->to, weights)->type;
  const ir_tensor type = {.dtype = t->dtype, .rank = 3, .dims = {t->dims[0], t->dims[2], (ir_expr)v->row}};
  if (!w) return 0;
  *w = (row_making){.making = {.fill = fill_rows, .size = sizeof *w},
                    .channels = v->channels,
                    .together = v->together,
                    .size = {v->t.at[0].size, v->t.at[1].size},
                    .row = v->row,
                    .bytes = ir_dtypes[t->dtype].bytes};
  return ir_add_made(r->to, &type, &w->making, weights);
}

uint32_t rewrite_tap_rows(rebuild *r) {
  tap_rows v;
  if (!rewrite_goes_through_local(r->c)) return 0;
  for (uint32_t side = 0; side < 2; side++) {
    if (!read_tap_rows(r, side, &v) || !rows_pay(r, &v)) continue;
    const uint32_t weights = r->args[1 - side];
    const ir_expr labels[5] = {v.labels[0], v.labels[2], v.labels[3], v.labels[4], v.labels[5]}, own[3] = {v.own[0], v.own[2], v.own[3]};
    const ir_attr_value data = {keys[side], 5, labels}, rows = {keys[1 - side], 3, own};
    uint32_t args[2];
    if (!(args[1 - side] = weight_rows(r, &v, weights))) return 0;
    args[side] = source_rows(r, &v);
    return rebuild_with(r, 2, args, 2, side ? (const ir_attr_value[]){rows, data} : (const ir_attr_value[]){data, rows});
  }
  return 0;
}
