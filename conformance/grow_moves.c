/* Rules of grown graphs: elements taken elsewhere. Views, borders, several values into one, gathers and scatters. */
#include "conformance/grow.h"
#include <math.h>
#include <string.h>

enum { SHAPE = GROW_RANK * GROW_WORD + 8 };

static bool has_axis(const grow_value *v) { return v->rank > 0; }
static bool has_two(const grow_value *v) { return v->rank > 1; }
static bool is_small(const grow_value *v) { return grow_elements(v) <= GROW_ELEMENTS; }
static bool is_index(const grow_value *v) { return (v->dtype == SNT_I32 || v->dtype == SNT_I64) && v->rank < 3 && grow_elements(v) <= 256; }
static bool has_narrow_axis(const grow_value *v) { return grow_is_number(v) && v->rank > 0 && v->rank < 4; }

static bool is_literal(const grow_dim *d) { return d->text[strspn(d->text, "0123456789")] == 0; }

static bool rule_transpose(grower *g) {
  const grow_value *v = grow_pick(g, has_two);
  if (!v) return false;
  grow_value as = *v;
  int32_t perm[GROW_RANK], left[GROW_RANK];
  uint32_t count = as.rank;
  for (uint32_t i = 0; i < count; i++) left[i] = (int32_t)(count - 1 - i);
  for (uint32_t i = 0; i < as.rank; i++, count--) {
    const uint32_t take = grow_choose(g, count);
    perm[i] = left[take];
    memmove(left + take, left + take + 1, (count - take - 1) * sizeof *left);
    as.dims[i] = v->dims[perm[i]];
  }
  char list[48];
  grow_list(list, sizeof list, perm, as.rank);
  return grow_line(g, &as, "transpose %s, perm=%s", v->name, list) != NULL;
}

static bool merge_axes(grow_value *as, uint32_t at) {
  if (at + 1 >= as->rank || !grow_dim_join(&as->dims[at], &as->dims[at + 1], '*')) return false;
  memmove(as->dims + at + 1, as->dims + at + 2, (as->rank - at - 2u) * sizeof *as->dims);
  as->rank--;
  return true;
}

static bool split_axis(grow_value *as, uint32_t at, uint32_t want) {
  static const uint8_t factors[] = {2, 3, 4, 5, 8, 13};
  const int64_t extent = as->dims[at].value, factor = factors[want % 6];
  if (as->rank == GROW_RANK || !is_literal(&as->dims[at]) || extent % factor) return false;
  memmove(as->dims + at + 1, as->dims + at, (as->rank - at) * sizeof *as->dims);
  as->dims[at] = grow_number(extent / factor), as->dims[at + 1] = grow_number(factor);
  as->rank++;
  return true;
}

static bool rule_reshape(grower *g) {
  const grow_value *v = grow_pick(g, has_axis);
  if (!v) return false;
  grow_value as = *v;
  char shape[SHAPE];
  const uint32_t at = grow_choose(g, as.rank), way = grow_choose(g, 4);
  bool good = way == 0 ? merge_axes(&as, at) : way == 1 ? split_axis(&as, at, grow_choose(g, 6)) : false;
  if (way == 2 && as.rank < GROW_RANK) { /* an axis of one element */
    memmove(as.dims + at + 1, as.dims + at, (as.rank - at) * sizeof *as.dims);
    as.dims[at] = grow_number(1), as.rank++, good = true;
  }
  if (way == 3)
    for (good = true; good && as.rank > 1;) good = merge_axes(&as, 0);
  grow_shape(shape, sizeof shape, as.dims, as.rank);
  return good && grow_line(g, &as, "reshape %s, shape=%s", v->name, shape);
}

static bool rule_broadcast(grower *g) {
  static const uint8_t extents[] = {2, 3, 5, 8, 16};
  const grow_value *v = grow_pick(g, is_small);
  if (!v || v->rank == GROW_RANK) return false;
  grow_value as = *v;
  int32_t axes[GROW_RANK];
  char shape[SHAPE], list[48];
  const uint32_t at = grow_choose(g, as.rank + 1u);
  memmove(as.dims + at + 1, as.dims + at, (as.rank - at) * sizeof *as.dims);
  as.dims[at] = grow_number(extents[grow_choose(g, 5)]);
  for (uint32_t i = 0; i < as.rank; i++) axes[i] = (int32_t)(i + (i >= at));
  as.rank++;
  if (grow_elements(&as) > GROW_ELEMENTS) return false;
  grow_list(list, sizeof list, axes, v->rank);
  grow_shape(shape, sizeof shape, as.dims, as.rank);
  return grow_line(g, &as, "broadcast %s, axes=%s, shape=%s", v->name, list, shape) != NULL;
}

static bool rule_slice(grower *g) {
  const grow_value *v = grow_pick(g, has_axis);
  if (!v) return false;
  grow_value as = *v;
  char starts[SHAPE] = "", sizes[SHAPE];
  int32_t steps[GROW_RANK];
  for (uint32_t i = 0; i < as.rank; i++) {
    const uint32_t way = grow_choose(g, 6);
    const bool literal = is_literal(&as.dims[i]);
    const int64_t extent = as.dims[i].value;
    char start[40] = "0";
    steps[i] = 1;
    if (way == 1 && literal && extent > 2) strcpy(start, "1"), as.dims[i] = grow_number(extent - 2);
    else if (way == 2 && literal) steps[i] = 2, as.dims[i] = grow_number((extent + 1) / 2);
    else if (way == 3) steps[i] = -1, snprintf(start, sizeof start, "%s-1", as.dims[i].text);
    else if (way == 4) as.dims[i] = grow_number(1), snprintf(start, sizeof start, "%s-1", v->dims[i].text);
    else if (way == 5 && literal && extent > 4) strcpy(start, "1"), steps[i] = 3, as.dims[i] = grow_number((extent + 1) / 3);
    snprintf(starts + strlen(starts), sizeof starts - strlen(starts), "%s%s", i ? "," : "", start);
  }
  char list[48];
  grow_shape(sizes, sizeof sizes, as.dims, as.rank);
  grow_list(list, sizeof list, steps, as.rank);
  return grow_line(g, &as, "slice %s, starts=[%s], sizes=%s, steps=%s", v->name, starts, sizes, list) != NULL;
}

static bool rule_pad(grower *g) {
  static const int8_t amounts[] = {1, 0, 2, 0, -1, 5};
  static const int8_t fills[] = {0, 1, -2, 0};
  const grow_value *v = grow_pick(g, grow_has_axis);
  if (!v) return false;
  grow_value as = *v;
  int32_t low[GROW_RANK], high[GROW_RANK];
  for (uint32_t i = 0; i < as.rank; i++) {
    low[i] = amounts[grow_choose(g, 6)], high[i] = amounts[grow_choose(g, 6)];
    if (as.dims[i].value + (low[i] < 0 ? low[i] : 0) + (high[i] < 0 ? high[i] : 0) < 1 || !is_literal(&as.dims[i])) low[i] = high[i] = 0;
    if (!grow_dim_add(&as.dims[i], low[i] + high[i])) return false;
  }
  if (grow_elements(&as) > GROW_ELEMENTS) return false;
  const bool is_unsigned = ir_dtypes[as.dtype].is_int && !ir_dtypes[as.dtype].is_signed;
  const int fill = is_unsigned ? 1 : fills[grow_choose(g, 4)];
  char lows[48], highs[48];
  grow_list(lows, sizeof lows, low, as.rank), grow_list(highs, sizeof highs, high, as.rank);
  as.low = fmin(as.low, fill), as.high = fmax(as.high, fill);
  return grow_line(g, &as, "pad %s, low=%s, high=%s, value=%d", v->name, lows, highs, fill) != NULL;
}

/* Of the same type, and extents equal but along the axis. */
static bool joins(const grow_value *a, const grow_value *b, uint32_t axis) {
  if (a->dtype != b->dtype || a->rank != b->rank) return false;
  for (uint32_t i = 0; i < a->rank; i++)
    if (i != axis && strcmp(a->dims[i].text, b->dims[i].text) != 0) return false;
  return true;
}

static bool rule_concat(grower *g) {
  const grow_value *v = grow_pick(g, has_axis);
  if (!v) return false;
  const grow_value first = *v;
  const uint32_t axis = grow_choose(g, first.rank), skip = grow_choose(g, 4);
  grow_value *b = NULL;
  for (uint32_t i = g->count, seen = 0; i-- > 0;)
    if (joins(&g->values[i], &first, axis) && (b = &g->values[i], seen++ == skip)) break;
  if (!b) return false;
  b->is_read = true;
  grow_value as = first;
  if (!grow_dim_join(&as.dims[axis], &b->dims[axis], '+')) return false;
  as.low = fmin(as.low, b->low), as.high = fmax(as.high, b->high), as.is_whole = as.is_whole && b->is_whole;
  if (grow_elements(&as) > GROW_ELEMENTS) return false;
  return grow_line(g, &as, "concat %s, %s, axis=%u", first.name, b->name, axis) != NULL;
}

/* ---- by indices ---- */

/* A value to index with: one that is there, or a port of numbers from -4 to 4. */
static const grow_value *choose_index(grower *g) {
  static const uint8_t extents[] = {3, 1, 5, 7, 17};
  const grow_value *index = grow_choose(g, 3) ? grow_pick(g, is_index) : NULL;
  if (index) return index;
  const grow_dim dims[2] = {grow_number(extents[grow_choose(g, 5)]), grow_number(2)};
  grow_value *made = grow_port(g, grow_choose(g, 2) ? SNT_I32 : SNT_I64, 1 + (grow_choose(g, 4) == 3), dims);
  if (made) made->is_read = true;
  return made;
}

static bool gathered(grow_value *as, const grow_value *v, const grow_value *index, uint32_t axis) {
  *as = *v;
  if (v->rank + index->rank - 1u > GROW_RANK) return false;
  memmove(as->dims + axis + index->rank, v->dims + axis + 1, (v->rank - axis - 1u) * sizeof *as->dims);
  memcpy(as->dims + axis, index->dims, index->rank * sizeof *as->dims);
  as->rank = (uint8_t)(v->rank + index->rank - 1u);
  return grow_elements(as) <= GROW_ELEMENTS;
}

static bool rule_gather(grower *g) {
  const grow_value *v = grow_pick(g, has_narrow_axis);
  if (!v) return false;
  const grow_value from = *v;
  const uint32_t axis = grow_choose(g, from.rank);
  const grow_value *index = choose_index(g);
  grow_value as;
  if (!index || !gathered(&as, &from, index, axis)) return false;
  as.is_whole = from.is_whole && index->is_whole;
  if (grow_choose(g, 4) == 3) return grow_line(g, &as, "gather %s, %s, axis=%u, zero", from.name, index->name, axis) != NULL;
  return grow_line(g, &as, "gather %s, %s, axis=%u", from.name, index->name, axis) != NULL;
}

static bool rule_scatter(grower *g) {
  static const char *const kinds[] = {"add", "set", "max", "min"};
  const grow_value *v = grow_pick(g, has_narrow_axis);
  if (!v) return false;
  const grow_value into = *v;
  const uint32_t axis = grow_choose(g, into.rank), kind = grow_choose(g, 4);
  const grow_value *found = choose_index(g);
  grow_value shape;
  if (!found || !gathered(&shape, &into, found, axis)) return false;
  const grow_value index = *found;
  grow_value *updates = grow_choose(g, 2) ? grow_pick_like(g, &shape) : NULL;
  if (!updates) updates = grow_port(g, shape.dtype, shape.rank, shape.dims);
  if (!updates) return false;
  updates->is_read = true;
  grow_value as = into;
  const double most = kind == 0 ? grow_size(&into) + grow_size(updates) * (double)grow_elements(&index)
                                : fmax(grow_size(&into), grow_size(updates));
  if (grow_is_float(&as) && most > 3 * grow_limit(as.dtype)) return false;
  as.low = -most, as.high = most, as.is_whole = into.is_whole && updates->is_whole && index.is_whole;
  return grow_settle(g, grow_line(g, &as, "scatter.%s %s, %s, %s, axis=%u", kinds[kind], into.name, index.name, updates->name, axis)) !=
         NULL;
}

const grow_rule grow_moves[] = {rule_transpose, rule_reshape, rule_slice, rule_pad, rule_broadcast, rule_concat, rule_gather, rule_scatter};
const uint32_t grow_move_count = sizeof grow_moves / sizeof *grow_moves;
