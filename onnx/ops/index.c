/* Gathers, scatters, selections by index. Indices of the file may be negative: they count from the end. */
#include "onnx/ops.h"
#include "onnx/import_private.h"

/* Whether all elements are numbers that are known not to be negative. */
static bool never_negative(onnx_call *c, uint32_t i) {
  const ir_tensor *t = onnx_in_type(c, i);
  const onnx_number *known = onnx_known(c, i);
  if (!ir_dtypes[t->dtype].is_signed) return true;
  for (uint32_t k = 0; known && k < onnx_count(c->in[i]); k++) {
    int64_t number;
    if (!expr_is_const(c->g->pool, known[k].num, &number) || number < 0) return false;
  }
  return known != NULL;
}

bool onnx_op_gather(onnx_call *c) {
  const uint32_t x = onnx_in(c, 0);
  uint32_t axis, index;
  if (!x || !onnx_axis(c, onnx_int(c, "axis", 0), onnx_type_of(c, x)->rank, &axis)) return false;
  const ir_tensor type = *onnx_type_of(c, x);
  const ir_expr end = onnx_dim_in(c, 0, axis);
  if (onnx_is_counted(c, 0, axis) && !onnx_drop_in(c, 0)) return false; /* what is picked is used */
  const onnx_number *known = onnx_known(c, 1);
  int64_t at, extent;
  if (known && c->in[1]->type.rank == 0 && expr_is_const(c->g->pool, known[0].num, &at) &&
      expr_is_const(c->g->pool, type.dims[axis], &extent)) {
    const ir_expr from = at < 0 ? expr_add(c->g->pool, expr_int(c->g->pool, at), end) : at;
    if (at < 0) at += extent;
    if (at < 0 || at >= extent) return onnx_refuse(c, "index %lld is outside", (long long)at);
    ir_expr dims[SNT_MAX_RANK];
    for (uint32_t i = 0, k = 0; i < type.rank; i++)
      if (i != axis) dims[k++] = type.dims[i];
    return onnx_out(c, 0, onnx_reshape(c, onnx_slice(c, x, axis, from, 1, 1), type.rank - 1u, dims));
  }
  if (!(index = onnx_in(c, 1))) return false;
  if (!never_negative(c, 1)) {
    const uint32_t wrapped = onnx_2(c, IR_OP_add, index, onnx_extent(c, end, onnx_type_of(c, index)->dtype));
    index = onnx_select(c, onnx_2n(c, IR_OP_lt, index, 0), wrapped, index);
  }
  return onnx_out(c, 0, onnx_gather(c, x, index, axis));
}

/* Indices along axis `axis` of operand 0, of which less is used than there may be: negative ones count from the last place that is. `flags` says which
   entries are such indices; 0: all. */
static uint32_t from_last(onnx_call *c, uint32_t index, uint32_t axis, uint32_t flags) {
  if (!index || !onnx_is_counted(c, 0, axis)) return index;
  uint32_t negative = onnx_2n(c, IR_OP_lt, index, 0);
  if (flags) negative = onnx_2(c, IR_OP_and, negative, flags);
  return onnx_select(c, negative, onnx_2(c, IR_OP_add, index, onnx_extent(c, onnx_dim_in(c, 0, axis), onnx_type_of(c, index)->dtype)),
                     index);
}

/* The same of tuples [.., depth], which name the axes from `batch` on. */
static uint32_t tuples_from_last(onnx_call *c, uint32_t index, uint32_t batch) {
  const onnx_value *x = c->in[0];
  if (!index || !x->count) return index;
  const ir_tensor type = *onnx_type_of(c, index);
  int64_t depth;
  if (!type.rank || !expr_is_const(c->g->pool, type.dims[type.rank - 1], &depth) || x->count_axis < batch || x->count_axis >= batch + depth)
    return index;
  const uint32_t column = onnx_iota(c, SNT_I64, type.rank, type.dims, type.rank - 1u);
  return from_last(c, index, x->count_axis, onnx_2n(c, IR_OP_eq, column, x->count_axis - batch));
}

bool onnx_op_gather_elements(onnx_call *c) {
  uint32_t axis;
  if (!onnx_has(c, 0) || !onnx_axis(c, onnx_int(c, "axis", 0), onnx_in_type(c, 0)->rank, &axis)) return false;
  const uint32_t x = onnx_in(c, 0), index = from_last(c, onnx_in(c, 1), axis, 0);
  return x && index && onnx_drop_in(c, 0) && onnx_out(c, 0, onnx_add(c, "gather_elements %%%u, %%%u, axis=%u", x, index, axis));
}

bool onnx_op_gather_nd(onnx_call *c) {
  const int64_t batch = onnx_int(c, "batch_dims", 0);
  const uint32_t x = onnx_in(c, 0), given = onnx_in(c, 1);
  const uint32_t index = x && given ? tuples_from_last(c, given, batch < 0 ? 0 : (uint32_t)batch) : 0;
  if (index && index != given && !onnx_drop_in(c, 0)) return false; /* the axis is one that tuples name */
  return index && onnx_out(c, 0, onnx_add(c, "gather_nd %%%u, %%%u, batch_dims=%lld", x, index, (long long)batch));
}

/* Tuples, or indices along an axis, of which less are used than there may be: the others lie behind the end, so that nothing is written. */
static uint32_t outside_unused(onnx_call *c, uint32_t index, bool tuples, uint32_t axis) {
  const onnx_value *v = c->in[1];
  if (!index || !v->count) return index;
  const ir_tensor type = *onnx_type_of(c, index), *x = onnx_in_type(c, 0);
  if (tuples && v->count_axis + 1u == type.rank) return onnx_refuse(c, "how many axes tuples name depends on the data"), 0;
  ir_expr far = x->dims[0];
  for (uint32_t i = 1; !tuples && i <= axis; i++) far = expr_mul(c->g->pool, far, x->dims[i]);
  uint32_t end = onnx_extent(c, far, type.dtype);
  if (tuples)
    end = onnx_select(c, onnx_2n(c, IR_OP_eq, onnx_iota(c, SNT_I64, type.rank, type.dims, type.rank - 1u), 0), end, onnx_like(c, end, 0));
  return onnx_mask(c, index, v->count, v->count_axis, end);
}

/* Places of the index and of the updates are the same ones. */
static bool fit_updates(onnx_call *c) {
  for (uint32_t i = 1; i < 3; i++) {
    const onnx_value *v = c->in[i], *other = c->in[3 - i];
    const uint32_t axis = v->count_axis;
    if (!v->count || axis >= other->type.rank || !expr_proves_lt(c->g->pool, other->type.dims[axis], v->type.dims[axis])) continue;
    if (!onnx_cut_in(c, i, axis, other->type.dims[axis]) || (!other->count && !onnx_drop_in(c, i))) return false;
  }
  return true;
}

/* Whole rows: an index that is the same along all axes but the first, of which all places are written, as tuples [n, 1]; 0: it is not so. */
static uint32_t index_of_rows(onnx_call *c) {
  const uint32_t index = onnx_in(c, 1);
  const ir_tensor type = *onnx_type_of(c, index), *x = onnx_in_type(c, 0);
  if (ir_at(c->g, index)->op != IR_OP_broadcast) return 0;
  const uint32_t given = ir_arg(c->g, index, 0);
  const ir_tensor from = *onnx_type_of(c, given);
  if (from.rank != type.rank || x->rank != type.rank || from.dims[0] != type.dims[0]) return 0;
  for (uint32_t i = 1; i < type.rank; i++)
    if (from.dims[i] != 1 || type.dims[i] != x->dims[i]) return 0;
  for (uint32_t i = 0; i < 3; i++)
    if (c->in[i]->count && c->in[i]->count_axis) return 0;
  return onnx_reshape(c, given, 2, (const ir_expr[]){type.dims[0], 1});
}

/* The updates: of those behind the count, which name no row, nothing is read but the first place, so that they need not be stored. */
static uint32_t used_updates(onnx_call *c, bool rows) {
  const onnx_value *v = c->in[2];
  const uint32_t node = onnx_in(c, 2);
  if (!rows || !node || !v->count || v->count_axis || v->count != c->in[1]->count || ir_at(c->g, node)->op != IR_OP_select) return node;
  const ir_tensor type = *onnx_type_of(c, node);
  const uint32_t count = onnx_2n(c, IR_OP_max, onnx_extent(c, v->count, SNT_I64), 1);
  uint32_t all[] = {onnx_2(c, IR_OP_lt, onnx_iota(c, SNT_I64, type.rank, type.dims, 0), count), ir_arg(c->g, node, 1),
                    ir_arg(c->g, node, 2)};
  const ir_attr_value unread = {IR_ATTR_unread, 0, NULL};
  return onnx_broadcast_all(c, 3, all, true) ? ir_add_node(c->g, IR_OP_select, 3, all, 1, &unread, NULL) : 0;
}

/* `reduction` none is set. */
bool onnx_op_scatter(onnx_call *c) {
  const char *mode = onnx_text(c, "reduction", "none");
  bool tuples = !strcmp(c->node->op, "ScatterND");
  uint32_t along = 0;
  char axis[32] = "";
  if (!onnx_in(c, 0) || !onnx_in(c, 1) || !onnx_in(c, 2) || !fit_updates(c)) return false;
  if (!tuples && !onnx_axis(c, onnx_int(c, "axis", 0), onnx_in_type(c, 0)->rank, &along)) return false;
  const uint32_t rows = tuples || along ? 0 : index_of_rows(c), given = rows ? rows : onnx_in(c, 1);
  tuples |= rows != 0;
  if (!tuples) snprintf(axis, sizeof axis, ", axis=%u", along);
  if (!strcmp(mode, "none")) mode = "set";
  const onnx_value x = *c->in[0];
  const uint32_t named = tuples ? tuples_from_last(c, given, 0) : from_last(c, given, along, 0);
  const uint32_t index = outside_unused(c, named, tuples, along), updates = used_updates(c, rows && !strcmp(mode, "set"));
  if (!index || !updates) return false;
  const uint32_t y = onnx_add(c, "%s %%%u, %%%u, %%%u, mode=%.10s%s", tuples ? "scatter_nd" : "scatter_elements", x.node, index, updates,
                              mode, axis);
  for (uint32_t i = 0; i < 3; i++)
    if (!onnx_drop_in(c, i)) return false;
  return x.count ? onnx_out_counted(c, 0, y, x.count, x.count_axis, 0) : onnx_out(c, 0, y);
}

/* A cache [batch, .., length, ..] with the update put at each batch's index along the axis; circular: past the end it goes on at 0. */
bool onnx_op_tensor_scatter(onnx_call *c) {
  const uint32_t cache = onnx_in(c, 0), update = onnx_in(c, 1), start = onnx_has(c, 2) ? onnx_in(c, 2) : onnx_scalar(c, SNT_I64, 0);
  const char *mode = onnx_text(c, "mode", "linear");
  uint32_t axis;
  if (!cache || !update || !start) return false;
  const ir_tensor type = *onnx_type_of(c, update), all = *onnx_type_of(c, cache);
  if (!onnx_axis(c, onnx_int(c, "axis", -2), type.rank, &axis)) return false;
  if (axis == 0 || all.rank != type.rank) return onnx_refuse(c, "axis 0 is the batch");
  if (strcmp(mode, "linear") != 0 && strcmp(mode, "circular") != 0) return onnx_refuse(c, "mode %.40s", mode);
  const ir_expr lines[SNT_MAX_RANK] = {type.dims[0], 1, 1, 1, 1, 1, 1, 1}, ones[SNT_MAX_RANK] = {1, 1, 1, 1, 1, 1, 1, 1};
  const uint32_t first = onnx_reshape(c, start, type.rank, onnx_has(c, 2) ? lines : ones);
  uint32_t index = onnx_2(c, IR_OP_add, onnx_broadcast(c, onnx_cast(c, first, SNT_I64), type.rank, type.dims),
                          onnx_iota(c, SNT_I64, type.rank, type.dims, axis));
  if (mode[0] == 'c') index = onnx_2(c, IR_OP_mod, index, onnx_extent(c, all.dims[axis], SNT_I64));
  return index && onnx_out(c, 0, onnx_add(c, "scatter_elements %%%u, %%%u, %%%u, mode=set, axis=%u", cache, index, update, axis));
}

/* Element i of a list of values as rank 0. */
static uint32_t element(onnx_call *c, uint32_t list, uint32_t i) {
  return onnx_reshape(c, onnx_slice(c, onnx_flat(c, list), 0, i, 1, 1), 0, NULL);
}

bool onnx_op_one_hot(onnx_call *c) {
  const uint32_t values = onnx_in(c, 2);
  uint32_t index = onnx_cast(c, onnx_in(c, 0), SNT_I64);
  double depth;
  if (!index || !values || !onnx_in_number(c, 1, &depth)) return false;
  const uint32_t wrapped = onnx_2n(c, IR_OP_add, index, depth);
  index = onnx_select(c, onnx_2n(c, IR_OP_lt, index, 0), wrapped, index);
  if (!index || !(depth >= 1 && depth <= INT32_MAX)) return onnx_refuse(c, "depth %g", depth);
  const uint32_t hot = onnx_add(c, "one_hot %%%u, depth=%lld, axis=%lld, dtype=bool", index, (long long)depth,
                                (long long)onnx_int(c, "axis", -1));
  const uint32_t off = element(c, values, 0), on = element(c, values, 1);
  return onnx_out(c, 0, hot ? onnx_select(c, hot, on, off) : 0);
}

static bool is_constant(const onnx_call *c, const onnx_value *v) {
  return v->known || v->tensor || (v->node && ir_at(c->g, v->node)->op == IR_OP_const);
}

/* The positions where a condition holds: gathered if it is known, found where it runs otherwise. */
bool onnx_op_compress(onnx_call *c) {
  const onnx_attr *along = onnx_find_attr(c, "axis");
  uint32_t x = onnx_in(c, 0), axis = 0, count, kept = 0;
  double *flags = ir_arena_take(onnx_arena(c), 4096 * sizeof *flags, 8);
  if (!x || !flags || !onnx_has(c, 1)) return false;
  if (!along) x = onnx_flat(c, x);
  else if (!onnx_axis(c, onnx_int(c, "axis", 0), onnx_type_of(c, x)->rank, &axis)) return false;
  if (!is_constant(c, c->in[1])) return onnx_compress_by_data(c, x, axis);
  if (!onnx_in_numbers(c, 1, 4096, flags, &count)) return false;
  for (uint32_t i = 0; i < count; i++)
    if (flags[i] != 0) flags[kept++] = i;
  const ir_tensor type = {.dtype = SNT_I64, .rank = 1, .dims = {kept}};
  if (kept == 0) return onnx_out(c, 0, onnx_slice(c, x, axis, 0, 0, 1));
  return onnx_out(c, 0, onnx_gather(c, x, onnx_data(c, &type, flags), axis));
}

bool onnx_op_trilu(onnx_call *c) {
  const uint32_t x = onnx_in(c, 0), offset = onnx_has(c, 1) ? onnx_scalar_in(c, 1) : 0;
  const char *lower = onnx_int(c, "upper", 1) ? "" : ", lower";
  if (!x || (onnx_has(c, 1) && !offset)) return false;
  return onnx_out(c, 0, offset ? onnx_add(c, "trilu %%%u, %%%u%s", x, offset, lower) : onnx_add(c, "trilu %%%u%s", x, lower));
}

/* The rank of each element among its row, counted by comparing all pairs: greater ones, and equal ones before it, come first. */
static uint32_t places(onnx_call *c, uint32_t x, bool largest) {
  const ir_tensor type = *onnx_type_of(c, x);
  const uint32_t last = type.rank - 1u;
  ir_tensor pairs = type;
  pairs.rank++;
  pairs.dims[last + 1] = type.dims[last];
  ir_expr row[SNT_MAX_RANK], column[SNT_MAX_RANK];
  memcpy(row, pairs.dims, sizeof row), memcpy(column, pairs.dims, sizeof column);
  row[last + 1] = 1, column[last] = 1;
  const uint32_t own = onnx_broadcast(c, onnx_reshape(c, x, pairs.rank, row), pairs.rank, pairs.dims);
  const uint32_t other = onnx_broadcast(c, onnx_reshape(c, x, pairs.rank, column), pairs.rank, pairs.dims);
  const uint32_t at = onnx_iota(c, SNT_I32, pairs.rank, pairs.dims, last), beside = onnx_iota(c, SNT_I32, pairs.rank, pairs.dims, last + 1);
  const uint32_t before = onnx_2(c, largest ? IR_OP_gt : IR_OP_lt, other, own), same = onnx_2(c, IR_OP_eq, other, own);
  const uint32_t earlier = onnx_2(c, IR_OP_and, same, onnx_2(c, IR_OP_lt, beside, at)), first = onnx_2(c, IR_OP_or, before, earlier);
  return onnx_reduce(c, IR_OP_reduce_sum, onnx_cast(c, first, SNT_I32), 1u << (last + 1), false);
}

/* Place p of the result holds the element whose rank is p: [.., p, n] against the ranks, summed over n. */
static bool take_places(onnx_call *c, uint32_t x, uint32_t rank, ir_expr count, uint32_t *value, uint32_t *index) {
  if (!x || !rank) return false;
  const ir_tensor type = *onnx_type_of(c, x);
  const uint32_t last = type.rank - 1u;
  ir_tensor pairs = type;
  pairs.rank++;
  pairs.dims[last] = count, pairs.dims[last + 1] = type.dims[last];
  ir_expr column[SNT_MAX_RANK];
  memcpy(column, pairs.dims, sizeof column);
  column[last] = 1;
  const uint32_t ranks = onnx_broadcast(c, onnx_reshape(c, rank, pairs.rank, column), pairs.rank, pairs.dims);
  const uint32_t values = onnx_broadcast(c, onnx_reshape(c, x, pairs.rank, column), pairs.rank, pairs.dims);
  const uint32_t hit = onnx_2(c, IR_OP_eq, ranks, onnx_iota(c, SNT_I32, pairs.rank, pairs.dims, last));
  const uint32_t at = onnx_iota(c, SNT_I64, pairs.rank, pairs.dims, last + 1);
  const uint32_t picked = onnx_select(c, hit, values, onnx_like(c, x, 0)), where = onnx_select(c, hit, at, onnx_scalar(c, SNT_I64, 0));
  *value = onnx_reduce(c, IR_OP_reduce_sum, picked, 1u << (last + 1), false);
  *index = onnx_reduce(c, IR_OP_reduce_sum, where, 1u << (last + 1), false);
  return *value && *index;
}

/* The first places of the sorted lines: what counting pairs would cost grows with the square of their length. */
static bool take_sorted(onnx_call *c, uint32_t x, bool largest, ir_expr count, uint32_t *value, uint32_t *index) {
  const uint32_t last = onnx_type_of(c, x)->rank - 1u;
  const uint32_t order = onnx_add(c, "argsort %%%u, axis=%u%s", x, last, largest ? ", descending" : "");
  *index = order ? onnx_slice(c, order, last, 0, count, 1) : 0;
  *value = *index ? onnx_add(c, "gather_elements %%%u, %%%u, axis=%u", x, *index, last) : 0;
  return *value != 0;
}

/* Short lines: one kernel without memory of its own. */
static bool has_short_lines(onnx_call *c, uint32_t x) {
  enum { SHORT = 64 };
  const ir_tensor *type = onnx_type_of(c, x);
  int64_t extent;
  return type->rank < SNT_MAX_RANK && expr_is_const(c->g->pool, type->dims[type->rank - 1], &extent) && extent <= SHORT;
}

bool onnx_op_top_k(onnx_call *c) {
  uint32_t x = onnx_in(c, 0), axis, perm[SNT_MAX_RANK], value, index;
  onnx_list k = {0};
  if (!x || !onnx_axis(c, onnx_int(c, "axis", -1), onnx_type_of(c, x)->rank, &axis)) return false;
  const uint32_t rank = onnx_type_of(c, x)->rank;
  const bool largest = onnx_int(c, "largest", 1) != 0;
  if (onnx_is_counted(c, 0, axis) && !onnx_mask_in(c, 0, largest ? ONNX_LEAST : ONNX_GREATEST)) return false;
  x = onnx_in(c, 0);
  ir_expr count = expr_int(c->g->pool, c->opset < 10 ? onnx_int(c, "k", 1) : 1);
  onnx_ignore(c, "sorted");
  if (c->opset >= 10 && !onnx_in_list(c, 1, &k)) return false;
  if (k.count) count = k.at[0];
  const ir_expr used = count;
  if (onnx_is_late(c->im, count)) count = onnx_most(c, count);
  for (uint32_t i = 0; i < rank; i++) perm[i] = i;
  perm[axis] = rank - 1, perm[rank - 1] = axis;
  x = onnx_transpose(c, x, perm);
  if (!x) return false;
  const bool found = has_short_lines(c, x) ? take_places(c, x, places(c, x, largest), count, &value, &index)
                                           : take_sorted(c, x, largest, count, &value, &index);
  if (!found) return false;
  value = onnx_transpose(c, value, perm), index = onnx_transpose(c, index, perm);
  if (used == count) return onnx_out(c, 0, value) && onnx_out(c, 1, index);
  return onnx_out_counted(c, 0, value, used, axis, 0) && onnx_out_counted(c, 1, index, used, axis, 0);
}
