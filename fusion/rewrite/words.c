/* Sums of products with rows of several fields a byte that are constant (4-bit weights), on devices with explicit vectors. In: rows [n, s.., bytes,
   fields], which operators make of bytes [n, s.., bytes], and a vector. Out: the bytes packed as words of four, neighbouring rows in neighbouring lanes;
   each field of a word times its element of the vector, which all lanes share. So no row is summed across lanes, no byte is widened, and a word is read
   once for all its fields. What else is constant and belongs to rows (scales, zeros) is packed likewise. Few vectors beside the same rows (a batch of
   sequences) are side by side along the lanes: what a word stands for is there for all of them. A product with more of them reads its matrix as words,
   too: field by field of a word, rows in lanes, which is the order of its panels, so that floats are made of fields by whole vectors. */
#include "fusion/rewrite/parts.h"
#include "fusion/rewrite/words_private.h"
#include "fusion/schedule_common.h"
#include <math.h>

enum { WORD = WORDS_BYTES, SIDE_BY_SIDE = 4 /* vectors */, MOST_FIELDS = 8, DEPTH = 24 };

/* The constant bytes: byte `number` of each word. */
static uint32_t byte_of(words *w, uint32_t node, uint32_t number) {
  const int32_t dtype = ir_at(w->r->to, node)->type.dtype;
  ir_tensor type = w->to;
  if (dtype != SNT_U8 && dtype != SNT_I8) return 0;
  type.dtype = SNT_U32, type.dims[type.rank - 1] = w->lanes;
  const uint32_t packed = words_for_vectors(w, words_pack(w, node, &type));
  if (!packed) return 0;
  const uint32_t shift = number ? ir_add_splat(w->r->to, SNT_U32, 8.0 * number) : 0;
  return ir_add_cast(w->r->to, shift ? ir_add2(w->r->to, IR_OP_shr, packed, shift) : packed, dtype);
}

/* The value of `field` of byte `number` of each word; 0: it is made in another way. */
static uint32_t value_of(words *w, uint32_t node, uint32_t field, uint32_t number, uint32_t depth) {
  ir_graph *g = w->r->to;
  const ir_node *n = ir_at(g, node);
  const uint32_t first = n->arity ? ir_arg(g, node, 0) : 0, last = w->from.rank - 1;
  uint32_t args[3] = {0};
  if (!n->type.rank) return node;
  if (!depth) return 0;
  switch (n->op) {
  case IR_OP_const:
    return n->type.rank == last && !memcmp(n->type.dims, w->from.dims, last * sizeof *n->type.dims) ? byte_of(w, node, number) : 0;
  case IR_OP_broadcast: return words_shared(w, node);
  case IR_OP_reshape: return words_only_units(&n->type, &ir_at(g, first)->type) ? value_of(w, first, field, number, depth - 1) : 0;
  case IR_OP_concat:
    if (n->arity != w->fields || ir_attr_int(g, node, IR_ATTR_axis, 0) != (int64_t)last) return 0;
    return ir_at(g, ir_arg(g, node, field))->type.dims[last] == 1 ? value_of(w, ir_arg(g, node, field), 0, number, depth - 1) : 0;
  default: break;
  }
  if (!words_is_pointwise(n)) return 0;
  for (uint32_t i = 0; i < n->arity; i++)
    if (!(args[i] = value_of(w, ir_arg(g, node, i), field, number, depth - 1))) return 0;
  return ir_add_retyped(w->r->to, node, args);
}

/* The terms of a word as sums of four that take turns, then by pairs: a multiply-add does not wait for the one before it. (Four words by a table, on Zen 5:
   28 cycles in one sum each, 23 in two.) Vectors side by side do not wait for each other as it is. */
static uint32_t sum_terms(words *w, uint32_t matrix, uint32_t vector) {
  enum { LENGTH = 4, MOST_SUMS = WORD * MOST_FIELDS / LENGTH };
  ir_graph *g = w->r->to;
  const uint32_t fields = (uint32_t)w->fields, terms = WORD * fields;
  uint32_t sums[MOST_SUMS] = {0}, count = w->vectors * w->lanes > (int64_t)schedule_lanes(w->r->c) ? 1 : terms / LENGTH;
  for (uint32_t i = 0; i < terms; i++) {
    const uint32_t value = value_of(w, matrix, i % fields, i / fields, DEPTH), element = words_element(w, vector, i), at = i % count;
    if (!value || ir_at(g, value)->type.rank != w->to.rank) return 0;
    sums[at] = sums[at] ? ir_add3(g, IR_OP_fma, value, element, sums[at]) : ir_add2(g, IR_OP_mul, value, element);
  }
  for (; count > 1; count = (count + 1) / 2)
    for (uint32_t i = 0; i < count; i += 2) sums[i / 2] = i + 1 < count ? ir_add2(g, IR_OP_add, sums[i], sums[i + 1]) : sums[i];
  return sums[0];
}

/* Rows below a reshape that only divides what is summed, whose number the lanes divide, of whole words. */
static bool read_rows(words *w, uint32_t *matrix, uint32_t summed, uint32_t lanes) {
  const ir_graph *g = w->r->to;
  const ir_tensor full = ir_at(g, *matrix)->type;
  const uint32_t below = ir_at(g, *matrix)->op == IR_OP_reshape ? ir_arg(g, *matrix, 0) : *matrix;
  int64_t rows, bytes, count;
  if (full.rank != summed + 1) return false;
  w->from = w->to = ir_at(g, below)->type;
  const uint32_t rank = w->from.rank;
  if (rank < 3 || w->from.dims[0] != full.dims[0] || w->from.dtype != SNT_F32) return false;
  if (!expr_is_const(g->pool, full.dims[0], &rows) || !expr_is_const(g->pool, w->from.dims[rank - 2], &bytes) ||
      !expr_is_const(g->pool, w->from.dims[rank - 1], &w->fields))
    return false;
  w->lanes = lanes;
  w->to.dims[0] = rows / w->lanes, w->to.dims[rank - 2] = bytes / WORD, w->to.dims[rank - 1] = w->vectors * w->lanes;
  if (!expr_is_const(g->pool, ir_tensor_elements(g->pool, &w->to), &count) || count <= FUSION_FOLD_LIMIT)
    return false; /* fields would become constants */
  if (w->fields < 1 || w->fields > MOST_FIELDS || rows % w->lanes || bytes % WORD || !bytes ||
      (double)(rows / w->lanes) < 2 * w->r->c->options->profile->units)
    return false;
  *matrix = below;
  return true;
}

/* Where fields are taken by literals, which fill the registers with what they share, several vectors of rows stand beside each other: each
   literal and each element of the vector is then there for all of them. So are codes, which otherwise are as many loads as products: two
   vectors of rows beside two of them, or beside the slices of one where registers are few. Not in a branch: the rows beside it read the same
   words, one vector after the other. */
static bool read_vectors(words *w, uint32_t *matrix, uint32_t summed, uint32_t vector) {
  enum { MANY = 32 };
  const cost_profile *p = w->r->c->options->profile;
  const bool codes = w->sliced || words_are_codes(w->r, vector), few = w->vectors > 1 || (w->sliced && p->registers < MANY);
  const uint32_t lanes = schedule_lanes(w->r->c), wide = (few ? SIDE_BY_SIDE / 2 : SIDE_BY_SIDE) * lanes;
  const bool beside = !w->r->c->is_branch && (codes || (w->vectors == 1 && !cost_permutes(p))) &&
                      (double)p->min_groups * wide <= (double)schedule_hint(w->r->to->pool, ir_at(w->r->to, *matrix)->type.dims[0]);
  return (beside && read_rows(w, matrix, summed, wide)) || read_rows(w, matrix, summed, lanes);
}

/* The sums of words beside vectors of floats. */
static uint32_t times_floats(words *w, uint32_t matrix, uint32_t vectors) {
  uint32_t factors[WORDS_FACTORS];
  const uint32_t count = words_take_factors(w, &matrix, factors), rank = w->to.rank;
  ir_expr dims[SNT_MAX_RANK];
  dims[0] = w->vectors, dims[rank - 1] = WORD * w->fields;
  for (uint32_t d = 1; d + 1 < rank; d++) dims[d] = w->to.dims[d];
  uint32_t sum = sum_terms(w, matrix, rebuild_reshape(w->r, vectors, rank, dims));
  for (uint32_t i = count; sum && i-- > 0;) sum = ir_add2(w->r->to, IR_OP_mul, sum, factors[i]);
  return sum;
}

/* The sums over the last axes of `matrix` of its products with the vectors, [vectors, rows]. */
static uint32_t sum_words(words *w, uint32_t matrix, uint32_t vectors) {
  int64_t axes[SNT_MAX_RANK];
  const uint32_t rank = w->to.rank;
  uint32_t sum = words_times_codes(w, matrix, vectors);
  if (!sum && !w->only_codes && !w->sliced) sum = times_floats(w, matrix, vectors);
  if (!sum) return 0;
  for (uint32_t d = 0; d + 2 < rank; d++) axes[d] = d + 1;
  sum = ir_add_axes(w->r->to, IR_OP_reduce_sum, sum, rank - 2, axes, false);
  const ir_expr apart[3] = {w->to.dims[0], w->vectors, w->lanes}, vectors_first[3] = {1, 0, 2}, flat[2] = {w->vectors, w->from.dims[0]};
  sum = rebuild_transpose(w->r, rebuild_reshape(w->r, sum, 3, apart), 3, vectors_first);
  return rebuild_reshape(w->r, sum, 2, flat);
}

/* Do all constants together fit the last cache? Else weights come from memory in every run. */
static bool stay_in_cache(const rebuild *r) {
  double bytes = 0;
  for (uint32_t i = 1; i < r->from->nodes.count; i++) {
    const ir_node *n = ir_at(r->from, i);
    const ir_tensor *t = &n->type;
    if (n->op == IR_OP_const)
      bytes += (double)schedule_hint(r->from->pool, ir_tensor_elements(r->from->pool, t)) * ir_dtypes[t->dtype].bytes;
  }
  return bytes <= r->c->options->profile->l3_bytes;
}

/* A weight's time: the longer of computing and memory, and what of the other it does not hide. */
static double time_of(const cost_profile *p, double cycles, double memory) {
  const double computing = cycles / (p->lanes * p->units * p->ghz);
  return fmax(computing, memory) + (1 - p->overlap) * fmin(computing, memory);
}

static double elements_of(const rebuild *r, uint32_t node) {
  return (double)schedule_hint(r->to->pool, ir_tensor_elements(r->to->pool, &ir_at(r->to, node)->type));
}

/* Three products of bytes and a part of a mask in place of a shift, a table and a multiply-add of each weight, beside slices of each element and kernels
   more: what the vector is made of, its slices, the product. In cycles of a unit, measured on Zen 4 (4 bits, 2048 x 512 0.95 of the time, 4096 x 512
   1.12, 512 x 2048 0.66, 4096 x 4096 0.62; 8 bits 0.49, 1.0, 0.35, 0.51). */
static bool slices_pay(const words *w, uint32_t matrix, uint32_t vector) {
  const double as_floats = 1.6, as_slices = 0.85, slices = 20, kernels = 3, scale = 1. / 8 /* bytes of it a weight */;
  const cost_profile *p = w->r->c->options->profile;
  const double memory = stay_in_cache(w->r) ? 0 : (1. / (double)w->fields + scale) / p->dram_gbs;
  const double saved = time_of(p, as_floats, memory) - time_of(p, as_slices, memory);
  return saved * elements_of(w->r, matrix) > kernels * p->launch_ns + slices * elements_of(w->r, vector) / (p->units * p->ghz);
}

static uint32_t sum_of_rows(words w, uint32_t matrix, uint32_t vector, uint32_t summed) {
  const uint32_t whole = matrix;
  if (!read_vectors(&w, &matrix, summed, vector) || w.to.rank == SNT_MAX_RANK) return 0;
  if (w.sliced && !slices_pay(&w, whole, vector)) return 0;
  const uint32_t sums = sum_words(&w, matrix, vector);
  const ir_expr rows = w.from.dims[0];
  return sums ? rebuild_reshape(w.r, sums, 1, &rows) : 0;
}

uint32_t rewrite_words_sum(rebuild *r, uint32_t matrix, uint32_t vector, uint32_t summed, bool slices) {
  const cost_profile *p = r->c->options->profile;
  const bool may = slices && p->caps.dot4 && p->dot4_steps <= 1 && !words_are_codes(r, vector);
  const uint32_t sliced = may ? sum_of_rows((words){.r = r, .vectors = 1, .sliced = true}, matrix, vector, summed) : 0;
  return sliced ? sliced : sum_of_rows((words){.r = r, .vectors = 1}, matrix, vector, summed);
}

/* ---- products with more than one row beside the words ---- */

/* Where the fields of a word begin. */
static uint32_t shifts(words *w, int64_t width) {
  const ir_tensor type = {.dtype = SNT_U32, .rank = 1, .dims = {WORD * w->fields}};
  uint32_t *first = IR_NEW_ARRAY(w->r->c->arena, uint32_t, WORD * w->fields);
  for (uint32_t i = 0; first && i < WORD * w->fields; i++) first[i] = i * (uint32_t)width;
  return first ? ir_add_const(w->r->to, &type, &(ir_const){.kind = IR_CONST_DATA, .data = first}) : 0;
}

/* The fields of all bytes of words, [n / lanes, s.., words, fields of a word, lanes]: a word shifted by what is the same for all lanes. */
static uint32_t all_fields(words *w, uint32_t node) {
  ir_graph *g = w->r->to;
  const uint32_t bytes = words_joined_bytes(w, node), at = w->to.rank - 2;
  const int64_t width = 8 / w->fields;
  const ir_expr fields_axis = at;
  ir_expr axes[SNT_MAX_RANK];
  ir_tensor type = w->to;
  type.dtype = SNT_U32, type.dims[at] = w->lanes, type.rank--;
  const uint32_t packed = bytes ? words_pack(w, bytes, &type) : 0;
  if (!packed) return 0;
  for (uint32_t d = 0; d < type.rank; d++) axes[d] = d < at ? d : d + 1;
  const uint32_t shifted = ir_add2(g, IR_OP_shr, rebuild_broadcast(w->r, packed, type.rank, axes, w->to.rank, w->to.dims),
                                   rebuild_broadcast(w->r, shifts(w, width), 1, &fields_axis, w->to.rank, w->to.dims));
  const uint32_t masked = ir_add2(g, IR_OP_and, shifted, ir_add_splat(g, SNT_U32, (double)((1 << width) - 1)));
  return ir_add_cast(g, masked, ir_at(g, node)->type.dtype);
}

/* The value of all fields, with the rows in lanes; 0: it is made in another way. */
static uint32_t all_values(words *w, uint32_t node, uint32_t depth) {
  ir_graph *g = w->r->to;
  const ir_node *n = ir_at(g, node);
  const uint32_t arity = n->arity;
  uint32_t args[3] = {0};
  if (!n->type.rank) return node;
  if (!depth) return 0;
  if (n->op == IR_OP_broadcast) return words_shared(w, node);
  if (n->op == IR_OP_concat) return all_fields(w, node);
  if (!words_is_pointwise(n)) return 0;
  for (uint32_t i = 0; i < arity; i++)
    if (!(args[i] = all_values(w, ir_arg(g, node, i), depth - 1))) return 0;
  return ir_add_retyped(g, node, args);
}

/* contract(x[.., k], matrix[n, k]) -> [.., n]. */
static bool is_row_product(const rebuild *r, ir_attr_value lists[4]) {
  static const ir_attr_key keys[4] = {IR_ATTR_dtype, IR_ATTR_lhs, IR_ATTR_out, IR_ATTR_rhs};
  const ir_node *n = ir_at(r->from, r->node);
  if (n->type.dtype != SNT_F32 || n->type.rank == SNT_MAX_RANK) return false;
  for (uint32_t i = 0; i < 4; i++)
    lists[i] = (ir_attr_value){keys[i], 0, NULL}, lists[i].ints = ir_attr_ints(r->from, r->node, keys[i], &lists[i].count);
  const ir_attr_value *x = &lists[1], *out = &lists[2], *matrix = &lists[3];
  return matrix->count == 2 && out->count && out->ints[out->count - 1] == matrix->ints[0] &&
         fusion_find_label(x->ints, x->count, matrix->ints[0]) < 0 && fusion_find_label(out->ints, out->count, matrix->ints[1]) < 0;
}

/* The matrix as [k, n], of [n / lanes, k, lanes]; 0: it is none of words. */
static uint32_t lane_matrix(words *w, uint32_t matrix) {
  matrix = rewrite_fields(w->r, matrix);
  const ir_tensor full = ir_at(w->r->to, matrix)->type;
  if (full.dtype != SNT_F32 || !read_rows(w, &matrix, 1, schedule_lanes(w->r->c)) || w->to.rank == SNT_MAX_RANK) return 0;
  w->to.dims[w->to.rank - 1] = WORD * w->fields, w->to.dims[w->to.rank++] = w->lanes;
  const uint32_t values = all_values(w, matrix, DEPTH);
  if (!values) return 0;
  const ir_expr lanes[3] = {w->to.dims[0], full.dims[1], w->lanes}, terms_first[3] = {1, 0, 2}, flat[2] = {full.dims[1], full.dims[0]};
  const uint32_t rows = rebuild_reshape(w->r, values, 3, lanes);
  const uint32_t terms = rebuild_transpose(w->r, rows, 3, terms_first);
  return rebuild_reshape(w->r, terms, 2, flat);
}

/* Few vectors, one behind the other as they are beside the rows: sums, as of one of them. 0: they are many, or lie otherwise. (4096 x 4096
   of 4 bits, two cores of Zen 4: 4 vectors 2.7 to 0.74 ms, 8 6.6 to 1.4, 16 3.5 to 2.8, 24 the same; of bytes, for which no table is large
   enough, 8 1.9 to 1.4, 16 2.8 to 3.0.) Of codes there may be as many as a prompt has words. */
static uint32_t few_vectors(rebuild *r, const ir_attr_value lists[4]) {
  enum { OF_CODES = 16384, BY_TABLE = 16, BY_LITERALS = 8 };
  const cost_profile *p = r->c->options->profile;
  const bool codes = words_are_codes(r, r->args[0]);
  const int64_t most = codes ? OF_CODES : cost_permutes(p) ? BY_TABLE : BY_LITERALS;
  const ir_attr_value *x = &lists[1], *out = &lists[2], *matrix = &lists[3];
  const ir_tensor *t = &ir_at(r->to, r->args[0])->type;
  words w = {.r = r, .vectors = 1};
  for (uint32_t i = 0; i < x->count; i++) {
    int64_t extent;
    const bool last = i + 1 == x->count;
    if (x->ints[i] != (last ? matrix->ints[1] : i + 1 < out->count ? out->ints[i] : -1)) return 0;
    if (last) break;
    if (!expr_is_const(r->to->pool, t->dims[i], &extent) || extent > most) return 0;
    w.vectors *= extent;
  }
  if (w.vectors < 2 || w.vectors > most) return 0;
  const double bytes = (double)schedule_hint(r->to->pool, ir_tensor_elements(r->to->pool, t)) * sizeof(float);
  const bool near = bytes <= SCHEDULE_NEAR_VECTORS * p->l2_bytes;
  uint32_t rows = near || codes ? rewrite_fields(r, r->args[1]) : 0;
  if (!rows || !read_vectors(&w, &rows, 1, r->args[0]) || w.to.rank == SNT_MAX_RANK) return 0;
  w.only_codes = !near || w.vectors > (cost_permutes(p) && w.fields > 1 ? BY_TABLE : BY_LITERALS);
  const uint32_t sums = sum_words(&w, rows, r->args[0]);
  const ir_tensor *own = &ir_at(r->from, r->node)->type;
  return sums ? rebuild_reshape(r, sums, own->rank, own->dims) : 0;
}

uint32_t rewrite_words_product(rebuild *r) {
  words w = {.r = r, .vectors = 1};
  ir_attr_value lists[4];
  if (!schedule_is_explicit(r->c) || fusion_keeps_order(r->c->options) || !is_row_product(r, lists)) return 0;
  const uint32_t few = few_vectors(r, lists);
  if (few) return few;
  const uint32_t args[2] = {r->args[0], lane_matrix(&w, r->args[1])};
  if (!args[1]) return 0;
  const ir_expr labels[2] = {lists[3].ints[1], lists[3].ints[0]};
  lists[3].ints = labels;
  return ir_add_node(r->to, IR_OP_contract, 2, args, IR_COUNT(lists), lists, NULL);
}
