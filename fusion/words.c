/* Contractions of bytes by words of four, where the device multiplies four at once (caps.dot4). In: sums of unsigned bytes times constant signed ones, in i32
   (fusion/quantised.c makes them). Out: the same sums over words: the varying operand is read as words where it is stored, below whatever moves it about, and
   the constant is laid out as such. */
#include "fusion/words.h"
#include "fusion/rebuild.h"
#include "fusion/schedule_common.h"
#include "fusion/shown.h"

enum { WORD = 4, DEPTH = 24 };

/* Texels are floats: where reads go through them, words would be read as devices of that kind are slow at. */
bool words_are_wanted(const fusion_context *c) {
  const cost_profile *p = c->options->profile;
  return p->caps.dot4 && (schedule_is_explicit(c) || p->reads == COST_READS_STORAGE);
}

/* Where a word is taken apart first, convolutions of several taps stay what Winograd's transforms and rings are for. */
bool words_pay(const fusion_context *c, const ir_graph *g, uint32_t varying) {
  return words_are_wanted(c) && !(c->options->profile->dot4_steps > 1 && fusion_has_taps(g, varying));
}

/* ---- views above words ---- */

/* Less than half as many words as bytes: three channels are one, filled up. */
static bool has_words(const ir_graph *g, const ir_tensor *t, uint32_t axis) {
  int64_t extent;
  return axis < t->rank && expr_is_const(g->pool, t->dims[axis], &extent) && 2 * ((extent + WORD - 1) / WORD) < extent;
}

static ir_expr words_in(const ir_graph *g, ir_expr bytes) { return expr_ceil_div(g->pool, bytes, WORD); }

/* Entry `at` of a list; `otherwise` where there is none. */
static ir_expr entry(const ir_graph *g, uint32_t node, ir_attr_key key, uint32_t at, ir_expr otherwise) {
  uint32_t count = 0;
  const ir_expr *list = ir_attr_ints(g, node, key, &count);
  return list && at < count ? list[at] : otherwise;
}

static bool is_base(const ir_graph *g, uint32_t node) { return !fusion_is_view(g, node) || ir_at(g, node)->op == IR_OP_concat; }

static ir_expr elements_behind(const ir_graph *g, const ir_tensor *t, uint32_t axis) {
  ir_expr count = 1;
  for (uint32_t d = axis + 1; d < t->rank; d++) count = expr_mul(g->pool, count, t->dims[d]);
  return count;
}

/* The axis along which neighbours are so many elements apart, of whole words. */
static bool axis_with(const ir_graph *g, const ir_tensor *t, ir_expr behind, uint32_t *axis) {
  for (uint32_t d = 0; d < t->rank; d++)
    if (t->dims[d] != 1 && elements_behind(g, t, d) == behind) return *axis = d, expr_mod(g->pool, t->dims[d], WORD) == 0;
  return false;
}

/* The axis of a view's operand that holds the words of its own axis `axis`; false: the view cuts or fills them. */
static bool axis_below(const ir_graph *g, uint32_t view, uint32_t *axis) {
  const ir_node *n = ir_at(g, view);
  const ir_tensor *from = &ir_at(g, ir_arg(g, view, 0))->type;
  uint32_t count;
  switch (n->op) {
  case IR_OP_transpose: *axis = (uint32_t)ir_attr_ints(g, view, IR_ATTR_perm, &count)[*axis]; return true;
  case IR_OP_reshape:
    return expr_mod(g->pool, n->type.dims[*axis], WORD) == 0 && axis_with(g, from, elements_behind(g, &n->type, *axis), axis);
  case IR_OP_pad: return n->type.dims[*axis] == from->dims[*axis] && entry(g, view, IR_ATTR_low, *axis, 0) == 0;
  case IR_OP_slice: return n->type.dims[*axis] == from->dims[*axis] && entry(g, view, IR_ATTR_steps, *axis, 1) == 1;
  case IR_OP_window: { /* no position, no tap */
    const uint32_t first = (uint32_t)ir_attr_int(g, view, IR_ATTR_axis, 0), taps = n->type.rank - from->rank;
    return *axis < from->rank && (*axis < first || *axis >= first + taps);
  }
  default: return false;
  }
}

/* Can words lie along the axis? `last`: they do where the value is stored, else it is to be turned. */
static bool reaches_words(const ir_graph *g, uint32_t node, uint32_t axis, bool *last) {
  for (uint32_t depth = 0; depth < DEPTH && has_words(g, &ir_at(g, node)->type, axis); depth++) {
    *last = axis + 1 == ir_at(g, node)->type.rank;
    if (is_base(g, node)) return true;
    if (!axis_below(g, node, &axis)) return false;
    node = ir_arg(g, node, 0);
  }
  return false;
}

bool words_axis(const ir_graph *g, uint32_t node, const words_labels *l, uint32_t *axis) {
  int64_t longest = 0, extent;
  bool best_last = false, last;
  for (uint32_t d = 0; d < l->rank; d++) {
    if (fusion_find_label(l->out, l->out_rank, l->own[d]) >= 0 || !expr_is_const(g->pool, ir_at(g, node)->type.dims[d], &extent)) continue;
    if (!reaches_words(g, node, d, &last) || (best_last && !last) || (best_last == last && extent <= longest)) continue;
    longest = extent, best_last = last, *axis = d;
  }
  return longest > 0;
}

bool words_lie_ready(const ir_graph *g, uint32_t node, uint32_t axis) {
  bool last = false;
  return reaches_words(g, node, axis, &last) && last;
}

/* ---- the operands ---- */

void words_copy_attrs(const ir_graph *g, uint32_t view, words_attrs *to) {
  const ir_node *n = ir_at(g, view);
  for (uint32_t i = 0; i < n->attr_count; i++) {
    const ir_attr *a = &g->attrs.at[n->attrs + i];
    memcpy(to->own[i], g->ints.at + a->first, a->count * sizeof **to->own);
    to->at[i] = (ir_attr_value){a->key, a->count, to->own[i]};
  }
}

/* The view of words that the view of bytes is. */
static uint32_t view_of_words(rebuild *r, uint32_t view, uint32_t axis, uint32_t words) {
  ir_graph *g = r->to;
  const ir_node n = *ir_at(g, view);
  words_attrs attrs;
  words_copy_attrs(g, view, &attrs);
  for (uint32_t i = 0; i < n.attr_count; i++) {
    ir_expr *own = attrs.own[i];
    const ir_attr_key key = attrs.at[i].key;
    if (key == IR_ATTR_value) *own = (int32_t)((uint32_t)(*own & 255) * 0x01010101u);
    if (key == IR_ATTR_sizes || key == IR_ATTR_shape) own[axis] = words_in(g, own[axis]);
  }
  return ir_add_node(g, (ir_op)n.op, 1, &words, n.attr_count, attrs.at, NULL);
}

/* The bytes as words may be read of them: the axis last, filled up with zeros; a copy, where they are not stored so. */
static uint32_t stored_bytes(rebuild *r, uint32_t node, uint32_t axis) {
  const ir_tensor t = ir_at(r->to, node)->type;
  ir_expr there[SNT_MAX_RANK], none[SNT_MAX_RANK] = {0}, more[SNT_MAX_RANK] = {0};
  for (uint32_t d = 0; d < t.rank; d++) there[d] = d < axis ? d : d + 1;
  there[t.rank - 1] = axis;
  more[t.rank - 1] = expr_sub(r->to->pool, expr_mul(r->to->pool, words_in(r->to, t.dims[axis]), WORD), t.dims[axis]);
  uint32_t made = axis + 1 == t.rank ? node : rebuild_transpose(r, node, t.rank, there);
  const ir_attr_value around[] = {{IR_ATTR_high, t.rank, more}, {IR_ATTR_low, t.rank, none}};
  if (more[t.rank - 1] != 0) made = rebuild_view(r, IR_OP_pad, made, IR_COUNT(around), around);
  if (made != node) ir_add_contract(r->to, IR_KEEP, 1, &made);
  return made;
}

/* The words in the order of the bytes' axes. */
static uint32_t stored_words(rebuild *r, uint32_t node, uint32_t axis) {
  const uint32_t rank = ir_at(r->to, node)->type.rank, words = rebuild_view(r, IR_OP_words, stored_bytes(r, node, axis), 0, NULL);
  ir_expr back[SNT_MAX_RANK];
  for (uint32_t d = 0; d < rank; d++) back[d] = d < axis ? d : (ir_expr)d - 1;
  back[axis] = rank - 1;
  return axis + 1 == rank ? words : rebuild_transpose(r, words, rank, back);
}

static uint32_t words_of(rebuild *r, uint32_t node, uint32_t axis) {
  uint32_t below = axis;
  if (is_base(r->to, node)) return stored_words(r, node, axis);
  if (!axis_below(r->to, node, &below)) return 0;
  const uint32_t words = words_of(r, ir_arg(r->to, node, 0), below);
  return words ? view_of_words(r, node, axis, words) : 0;
}

typedef struct word_making {
  ir_making making;
  fusion_shown shown;
  uint32_t axis;
} word_making;

/* Words in the order of the shown axes. */
static void fill_words(const ir_making *m, const void *const *sources, void *to) {
  const word_making *w = (const word_making *)(const void *)m;
  const fusion_shown *s = &w->shown;
  const int8_t *from = (const int8_t *)sources[0] + s->first;
  const int64_t step = s->stride[w->axis];
  int64_t at[SNT_MAX_RANK] = {0};
  uint32_t *out = to;
  for (uint64_t i = 0; i < m->bytes / WORD; i++) {
    uint32_t word = 0;
    for (int byte = 0; byte < WORD && at[w->axis] + byte < s->extent[w->axis]; byte++)
      word |= (uint32_t)(uint8_t)from[byte * step] << (8 * byte);
    *out++ = word;
    for (uint32_t d = s->rank; d-- > 0;) {
      const int64_t by = d == w->axis ? WORD : 1;
      from += by * s->stride[d];
      if ((at[d] += by) < s->extent[d]) break;
      from -= at[d] * s->stride[d];
      at[d] = 0;
    }
  }
}

/* What the contraction sums lies before what only the constant has, so that a term of neighbouring columns is a vector: axes in that order,
   and their labels. */
static void order_axes(const words_labels *lhs, uint32_t rank, const ir_expr *labels, uint32_t *axes, ir_expr *ordered) {
  uint32_t count = 0;
  for (uint32_t pass = 0; pass < 3; pass++)
    for (uint32_t d = 0; d < rank; d++) {
      const bool shared = fusion_find_label(lhs->own, lhs->rank, labels[d]) >= 0,
                 summed = fusion_find_label(lhs->out, lhs->out_rank, labels[d]) < 0;
      if (pass == (!shared ? 2 : summed ? 1 : 0)) axes[count] = d, ordered[count++] = labels[d];
    }
}

/* Axis i is axis axes[i] of the bytes; words lie along axis `axis`. */
static uint32_t constant_words(rebuild *r, uint32_t node, const uint32_t *axes, uint32_t axis) {
  ir_graph *g = r->to;
  const ir_tensor bytes = ir_at(g, node)->type;
  ir_tensor type = bytes;
  word_making *w = IR_NEW(r->c->arena, word_making);
  type.dtype = SNT_I32;
  for (uint32_t d = 0; d < type.rank; d++) type.dims[d] = bytes.dims[axes[d]];
  type.dims[axis] = words_in(g, type.dims[axis]);
  const ir_node *n = ir_at(g, node);
  if (n->op == IR_OP_const && g->consts.at[n->payload].kind == IR_CONST_SPLAT) {
    const ir_const splat = {.kind = IR_CONST_SPLAT,
                            .bits = (uint64_t)(int64_t)(int32_t)((uint32_t)(g->consts.at[n->payload].bits & 255) * 0x01010101u)};
    return ir_add_const(g, &type, &splat);
  }
  if (!w || !fusion_show(g, node, &w->shown)) return 0;
  w->axis = axis;
  const fusion_shown own = w->shown;
  for (uint32_t d = 0; d < type.rank; d++) w->shown.stride[d] = own.stride[axes[d]], w->shown.extent[d] = own.extent[axes[d]];
  w->making.fill = fill_words, w->making.size = sizeof *w;
  return ir_add_made(g, &type, &w->making, w->shown.constant);
}

/* ---- the contraction ---- */

static uint32_t sums_of_words(rebuild *r) {
  static const uint8_t types[2] = {SNT_U8, SNT_I8};
  const ir_node *n = ir_at(r->from, r->node);
  words_labels l;
  uint32_t rank, axis;
  if (n->type.dtype != SNT_I32) return 0;
  for (uint32_t o = 0; o < 2; o++)
    if (ir_at(r->to, r->args[o])->type.dtype != types[o]) return 0;
  l.own = ir_attr_ints(r->from, r->node, IR_ATTR_lhs, &l.rank), l.out = ir_attr_ints(r->from, r->node, IR_ATTR_out, &l.out_rank);
  const ir_expr *other = ir_attr_ints(r->from, r->node, IR_ATTR_rhs, &rank);
  if (!words_axis(r->to, r->args[0], &l, &axis)) return 0;
  uint32_t axes[SNT_MAX_RANK];
  ir_expr ordered[SNT_MAX_RANK];
  order_axes(&l, rank, other, axes, ordered);
  const uint32_t rhs = constant_words(r, r->args[1], axes, (uint32_t)fusion_find_label(ordered, rank, l.own[axis]));
  const uint32_t lhs = rhs ? words_of(r, r->args[0], axis) : 0;
  const ir_attr_value lists[] = {
      {IR_ATTR_lhs, l.rank, l.own}, {IR_ATTR_out, l.out_rank, l.out}, {IR_ATTR_packed, 0, NULL}, {IR_ATTR_rhs, rank, ordered}};
  return lhs ? ir_add_node(r->to, IR_OP_contract, 2, (uint32_t[]){lhs, rhs}, IR_COUNT(lists), lists, NULL) : 0;
}

static const rebuild_rule rules[] = {{sums_of_words, .ops = {IR_OP_contract}}};

snt_result fusion_pack_words(fusion_context *c, bool *changed) {
  return words_are_wanted(c) ? fusion_rebuild(c, rules, IR_COUNT(rules), changed) : SNT_OK;
}
