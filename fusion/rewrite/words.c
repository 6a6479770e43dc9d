/* Sums of products with rows of several fields a byte that are constant (4-bit weights), on devices with explicit vectors. In: rows [n, s.., bytes,
   fields], which operators make of bytes [n, s.., bytes], and a vector. Out: the bytes packed as words of four, neighbouring rows in neighbouring lanes;
   each field of a word times its element of the vector, which all lanes share. So no row is summed across lanes, no byte is widened, and a word is read
   once for all its fields. What else is constant and belongs to rows (scales, zeros) is packed likewise. Few vectors beside the same rows (a batch of
   sequences) are side by side along the lanes: what a word stands for is there for all of them. A product with more of them reads its matrix as words,
   too: field by field of a word, rows in lanes, which is the order of its panels, so that floats are made of fields by whole vectors. */
#include "fusion/rewrite/words.h"
#include "fusion/rewrite/parts.h"
#include "fusion/schedule_common.h"

enum { WORD = 4, SIDE_BY_SIDE = 4 /* vectors */, MOST_FIELDS = 8, MOST_FACTORS = 4, DEPTH = 24, MOST_PACKED = 8 };

typedef struct words {
  rebuild *r;
  ir_tensor from, to; /* [n, s.., bytes, fields]; [n / lanes, s.., words, vectors * lanes] */
  int64_t lanes, fields, vectors;
  uint32_t packed_count, source[MOST_PACKED], packed[MOST_PACKED];
} words;

typedef struct packing {
  ir_making making;
  size_t lanes, rows, row, bytes; /* elements of a row, bytes of an element */
} packing;

/* Element by element, `lanes` rows beside each other. */
static void pack_rows(const ir_making *m, const void *const *sources, void *to) {
  const packing *p = (const packing *)(const void *)m;
  const uint8_t *from = sources[0];
  uint8_t *at = to;
  for (size_t first = 0; first < p->rows; first += p->lanes)
    for (size_t i = 0; i < p->row; i++)
      for (size_t lane = 0; lane < p->lanes; lane++, at += p->bytes) memcpy(at, from + ((first + lane) * p->row + i) * p->bytes, p->bytes);
}

/* A constant of [n, rest..] as [n / lanes, rest.., lanes] of `type`, whose elements may be several of the source's. 0: its bytes are not at hand. */
static uint32_t packed_constant(words *w, uint32_t node, const ir_tensor *type) {
  int64_t elements, groups;
  for (uint32_t i = 0; i < w->packed_count; i++)
    if (w->source[i] == node && ir_at(w->r->to, w->packed[i])->type.dtype == type->dtype &&
        ir_same_shape(&ir_at(w->r->to, w->packed[i])->type, type))
      return w->packed[i];
  packing *p = w->packed_count < MOST_PACKED ? IR_NEW(w->r->c->arena, packing) : NULL;
  if (!p || !expr_is_const(w->r->to->pool, ir_tensor_elements(w->r->to->pool, type), &elements)) return 0;
  if (!expr_is_const(w->r->to->pool, type->dims[0], &groups) || !ir_const_source(w->r->to, node, &p->making.sources[0])) return 0;
  p->lanes = (size_t)w->lanes, p->rows = (size_t)(groups * w->lanes), p->row = (size_t)elements / p->rows;
  p->bytes = ir_dtypes[type->dtype].bytes;
  p->making.fill = pack_rows, p->making.bytes = (uint64_t)elements * p->bytes, p->making.source_count = 1, p->making.size = sizeof *p;
  const uint32_t made = ir_add_const(w->r->to, type, &(ir_const){.kind = IR_CONST_MADE, .making = &p->making});
  if (made) w->source[w->packed_count] = node, w->packed[w->packed_count++] = made;
  return made;
}

/* What is [.., lanes], for each of the vectors. */
static uint32_t for_vectors(words *w, uint32_t node) {
  ir_tensor t = ir_at(w->r->to, node)->type;
  ir_expr axes[SNT_MAX_RANK];
  const uint32_t last = t.rank - 1u;
  if (w->vectors == 1 || !node) return node;
  for (uint32_t d = 0; d < t.rank; d++) axes[d] = d < last ? d : d + 1;
  t.dims[last] = w->vectors, t.dims[t.rank] = w->lanes;
  const uint32_t wide = rebuild_broadcast(w->r, node, t.rank, axes, t.rank + 1u, t.dims);
  t.dims[last] = w->vectors * w->lanes;
  return rebuild_reshape(w->r, wide, t.rank, t.dims);
}

static bool is_pointwise(const ir_node *n) { return (ir_ops[n->op].flags & IR_POINTWISE) && n->op != IR_OP_custom && n->arity <= 3; }

/* A value of [n, rest..] as [n / lanes, rest.., lanes]: its constants are packed, what is no operator of elements is turned when it is read. */
static uint32_t turned(words *w, uint32_t node, uint32_t depth) {
  ir_graph *g = w->r->to;
  const ir_node *n = ir_at(g, node);
  ir_tensor type = n->type;
  if (!depth || type.rank + 1u > SNT_MAX_RANK || !type.rank) return type.rank ? 0 : node;
  uint32_t args[3] = {0};
  type.dims[0] = w->to.dims[0], type.dims[type.rank++] = w->lanes;
  uint32_t constant = node; /* elements lie in the same order below reshapes */
  while (ir_at(g, constant)->op == IR_OP_reshape) constant = ir_arg(g, constant, 0);
  if (ir_at(g, constant)->op == IR_OP_const) {
    const uint32_t made = packed_constant(w, constant, &type);
    if (made) return made;
  }
  if (is_pointwise(n)) {
    for (uint32_t i = 0; i < n->arity; i++)
      if (!(args[i] = turned(w, ir_arg(g, node, i), depth - 1))) return 0;
    return ir_add_retyped(w->r->to, node, args);
  }
  ir_expr dims[SNT_MAX_RANK], perm[SNT_MAX_RANK];
  dims[0] = type.dims[0], dims[1] = w->lanes, perm[0] = 0, perm[type.rank - 1] = 1;
  for (uint32_t d = 2; d < type.rank; d++) dims[d] = type.dims[d - 1], perm[d - 1] = d;
  const uint32_t split = rebuild_reshape(w->r, node, type.rank, dims);
  return rebuild_transpose(w->r, split, type.rank, perm);
}

/* What all bytes of a block share, beside the words. 0: it differs from byte to byte. */
static uint32_t shared(words *w, uint32_t node) {
  ir_graph *g = w->r->to;
  uint32_t count;
  const ir_expr *own = ir_attr_ints(g, node, IR_ATTR_axes, &count);
  ir_expr axes[SNT_MAX_RANK];
  const uint32_t rows = count && own[0] == 0, operand = ir_arg(g, node, 0);
  for (uint32_t i = 0; i < count; i++) {
    if (own[i] >= w->from.rank - 2 || (i && own[i] <= own[i - 1])) return 0;
    axes[i] = own[i];
  }
  if (rows && ir_at(g, operand)->type.dims[0] != w->from.dims[0]) return 0;
  if (rows) axes[count] = w->to.rank - 1;
  const uint32_t value = rows ? for_vectors(w, turned(w, operand, DEPTH)) : operand;
  return value ? rebuild_broadcast(w->r, value, count + rows, axes, w->to.rank, w->to.dims) : 0;
}

/* The constant bytes: byte `number` of each word. */
static uint32_t byte_of(words *w, uint32_t node, uint32_t number) {
  const int32_t dtype = ir_at(w->r->to, node)->type.dtype;
  ir_tensor type = w->to;
  if (dtype != SNT_U8 && dtype != SNT_I8) return 0;
  type.dtype = SNT_U32, type.dims[type.rank - 1] = w->lanes;
  const uint32_t packed = for_vectors(w, packed_constant(w, node, &type));
  if (!packed) return 0;
  const uint32_t shift = number ? ir_add_splat(w->r->to, SNT_U32, 8.0 * number) : 0;
  return ir_add_cast(w->r->to, shift ? ir_add2(w->r->to, IR_OP_shr, packed, shift) : packed, dtype);
}

/* The same elements, but for axes of one at the end. */
static bool only_units(const ir_tensor *a, const ir_tensor *b) {
  const ir_tensor *longer = a->rank > b->rank ? a : b, *shorter = a->rank > b->rank ? b : a;
  for (uint32_t d = shorter->rank; d < longer->rank; d++)
    if (longer->dims[d] != 1) return false;
  return !memcmp(a->dims, b->dims, shorter->rank * sizeof *a->dims);
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
  case IR_OP_broadcast: return shared(w, node);
  case IR_OP_reshape: return only_units(&n->type, &ir_at(g, first)->type) ? value_of(w, first, field, number, depth - 1) : 0;
  case IR_OP_concat:
    if (n->arity != w->fields || ir_attr_int(g, node, IR_ATTR_axis, 0) != (int64_t)last) return 0;
    return ir_at(g, ir_arg(g, node, field))->type.dims[last] == 1 ? value_of(w, ir_arg(g, node, field), 0, number, depth - 1) : 0;
  default: break;
  }
  if (!is_pointwise(n)) return 0;
  for (uint32_t i = 0; i < n->arity; i++)
    if (!(args[i] = value_of(w, ir_arg(g, node, i), field, number, depth - 1))) return 0;
  return ir_add_retyped(w->r->to, node, args);
}

/* The elements of the vectors [vectors, s.., words, fields of a word] that belong to a field, one a word. */
static uint32_t element_of(words *w, uint32_t vectors, uint32_t at) {
  ir_expr starts[SNT_MAX_RANK] = {0}, steps[SNT_MAX_RANK], sizes[SNT_MAX_RANK], axes[SNT_MAX_RANK], perm[SNT_MAX_RANK];
  const uint32_t rank = w->to.rank, last = rank - 1;
  for (uint32_t d = 0; d < last; d++) sizes[d + 1] = w->to.dims[d + 1], perm[d] = d + 1, axes[d] = d + 1;
  for (uint32_t d = 0; d < rank; d++) steps[d] = 1;
  sizes[0] = w->vectors, sizes[last] = 1, starts[last] = at, perm[last - 1] = 0;
  const uint32_t part = rebuild_reshape(w->r, rebuild_slice(w->r, vectors, rank, starts, sizes, steps), last, sizes);
  const uint32_t terms_first = rebuild_transpose(w->r, part, last, perm);
  ir_tensor wide = w->to;
  wide.dims[last] = w->vectors, wide.dims[wide.rank++] = w->lanes;
  return rebuild_reshape(w->r, rebuild_broadcast(w->r, terms_first, last, axes, wide.rank, wide.dims), rank, w->to.dims);
}

/* The terms of a word as sums of four that take turns, then by pairs: a multiply-add does not wait for the one before it. (Four words by a table, on Zen 5:
   28 cycles in one sum each, 23 in two.) Vectors side by side do not wait for each other as it is. */
static uint32_t sum_terms(words *w, uint32_t matrix, uint32_t vector) {
  enum { LENGTH = 4, MOST_SUMS = WORD * MOST_FIELDS / LENGTH };
  ir_graph *g = w->r->to;
  const uint32_t fields = (uint32_t)w->fields, terms = WORD * fields;
  uint32_t sums[MOST_SUMS] = {0}, count = w->vectors * w->lanes > (int64_t)schedule_lanes(w->r->c) ? 1 : terms / LENGTH;
  for (uint32_t i = 0; i < terms; i++) {
    const uint32_t value = value_of(w, matrix, i % fields, i / fields, DEPTH), element = element_of(w, vector, i), at = i % count;
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
  if (w->fields < 2 || w->fields > MOST_FIELDS || rows % w->lanes || bytes % WORD || !bytes ||
      (double)(rows / w->lanes) < 2 * w->r->c->options->profile->units)
    return false;
  *matrix = below;
  return true;
}

/* Where fields are taken by literals, which fill the registers with what they share, several vectors of rows stand beside each other: each literal and each
   element of the vector is then there for all of them. Not in a branch: the rows beside it read the same words, one vector after the other. */
static bool read_vectors(words *w, uint32_t *matrix, uint32_t summed) {
  const cost_profile *p = w->r->c->options->profile;
  const uint32_t lanes = schedule_lanes(w->r->c), wide = SIDE_BY_SIDE * lanes;
  const bool beside = !w->r->c->is_branch && !cost_permutes(p) &&
                      (double)p->min_groups * wide <= (double)schedule_hint(w->r->to->pool, ir_at(w->r->to, *matrix)->type.dims[0]);
  return (beside && read_rows(w, matrix, summed, wide)) || read_rows(w, matrix, summed, lanes);
}

/* The sums over the last axes of `matrix` of its products with the vectors, [vectors, rows]. */
static uint32_t sum_words(words *w, uint32_t matrix, uint32_t vectors) {
  ir_graph *g = w->r->to;
  uint32_t factors[MOST_FACTORS], factor_count = 0;
  /* What all terms of a word share is multiplied with their sum. */
  while (ir_at(g, matrix)->op == IR_OP_mul && factor_count < MOST_FACTORS) {
    const uint32_t a = ir_arg(g, matrix, 0), b = ir_arg(g, matrix, 1), factor = ir_at(g, a)->op == IR_OP_broadcast ? a : b;
    const uint32_t value = ir_at(g, factor)->op == IR_OP_broadcast ? shared(w, factor) : 0;
    if (!value) break;
    factors[factor_count++] = value;
    matrix = factor == a ? b : a;
  }
  ir_expr dims[SNT_MAX_RANK];
  int64_t axes[SNT_MAX_RANK];
  const uint32_t rank = w->to.rank;
  dims[0] = w->vectors, dims[rank - 1] = WORD * w->fields;
  for (uint32_t d = 0; d + 2 < rank; d++) dims[d + 1] = w->to.dims[d + 1], axes[d] = d + 1;
  vectors = rebuild_reshape(w->r, vectors, rank, dims);
  uint32_t sum = sum_terms(w, matrix, vectors);
  if (!sum) return 0;
  for (uint32_t i = factor_count; i-- > 0;) sum = ir_add2(g, IR_OP_mul, sum, factors[i]);
  sum = ir_add_axes(g, IR_OP_reduce_sum, sum, rank - 2, axes, false);
  const ir_expr apart[3] = {w->to.dims[0], w->vectors, w->lanes}, vectors_first[3] = {1, 0, 2}, flat[2] = {w->vectors, w->from.dims[0]};
  sum = rebuild_transpose(w->r, rebuild_reshape(w->r, sum, 3, apart), 3, vectors_first);
  return rebuild_reshape(w->r, sum, 2, flat);
}

uint32_t rewrite_words_sum(rebuild *r, uint32_t matrix, uint32_t vector, uint32_t summed) {
  words w = {.r = r, .vectors = 1};
  if (!read_vectors(&w, &matrix, summed) || w.to.rank == SNT_MAX_RANK) return 0;
  const uint32_t sums = sum_words(&w, matrix, vector);
  const ir_expr rows = w.from.dims[0];
  return sums ? rebuild_reshape(r, sums, 1, &rows) : 0;
}

/* ---- products with more than one row beside the words ---- */

/* The bits of a field: (byte >> first) & mask, of a constant of bytes. */
typedef struct field_bits {
  uint32_t bytes;
  int64_t first, width;
} field_bits;

static bool read_field(const ir_graph *g, uint32_t node, field_bits *f) {
  *f = (field_bits){.width = 8};
  for (uint32_t depth = 0; depth < DEPTH; depth++) {
    const ir_node *n = ir_at(g, node);
    const uint32_t a = n->arity ? ir_arg(g, node, 0) : 0;
    double by = 0;
    if (n->type.dtype != SNT_U8) return false;
    if (n->op == IR_OP_const) return f->bytes = node, true;
    if (n->op == IR_OP_and && ir_is_scalar_const(g, ir_arg(g, node, 1), &by)) {
      int64_t width = 0;
      while (((int64_t)by >> width) & 1) width++;
      if ((int64_t)by != (INT64_C(1) << width) - 1) return false;
      if (width < f->width) f->width = width;
    } else if (n->op == IR_OP_shr && ir_is_scalar_const(g, ir_arg(g, node, 1), &by)) {
      f->first += (int64_t)by;
    } else if (n->op != IR_OP_reshape || !only_units(&n->type, &ir_at(g, a)->type)) {
      return false;
    }
    node = a;
  }
  return false;
}

/* The constant bytes whose fields are put together: of equal width, one behind the other. 0: they are not. */
static uint32_t joined_bytes(const words *w, uint32_t node) {
  const ir_graph *g = w->r->to;
  const ir_node *n = ir_at(g, node);
  const int64_t width = 8 / w->fields;
  const uint32_t last = w->from.rank - 1;
  uint32_t bytes = 0;
  field_bits f;
  if (n->arity != w->fields || ir_attr_int(g, node, IR_ATTR_axis, 0) != (int64_t)last || width * w->fields != 8) return 0;
  for (uint32_t i = 0; i < n->arity; i++) {
    if (!read_field(g, ir_arg(g, node, i), &f) || f.first != i * width || (bytes && f.bytes != bytes)) return 0;
    if ((f.width < 8 - f.first ? f.width : 8 - f.first) != width) return 0;
    bytes = f.bytes;
  }
  const ir_tensor *t = &ir_at(g, bytes)->type;
  return t->rank == last && !memcmp(t->dims, w->from.dims, last * sizeof *t->dims) ? bytes : 0;
}

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
  const uint32_t bytes = joined_bytes(w, node), at = w->to.rank - 2;
  const int64_t width = 8 / w->fields;
  const ir_expr fields_axis = at;
  ir_expr axes[SNT_MAX_RANK];
  ir_tensor type = w->to;
  type.dtype = SNT_U32, type.dims[at] = w->lanes, type.rank--;
  const uint32_t packed = bytes ? packed_constant(w, bytes, &type) : 0;
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
  if (n->op == IR_OP_broadcast) return shared(w, node);
  if (n->op == IR_OP_concat) return all_fields(w, node);
  if (!is_pointwise(n)) return 0;
  for (uint32_t i = 0; i < arity; i++)
    if (!(args[i] = all_values(w, ir_arg(g, node, i), depth - 1))) return 0;
  return ir_add_retyped(g, node, args);
}

/* contract(x[.., k], matrix[n, k]) -> [.., n]. */
static bool is_row_product(const rebuild *r, ir_attr_value lists[4]) {
  static const ir_attr_key keys[4] = {IR_ATTR_dtype, IR_ATTR_lhs, IR_ATTR_out, IR_ATTR_rhs};
  const ir_node *n = ir_at(r->from, r->node);
  if (n->op != IR_OP_contract || n->type.dtype != SNT_F32 || n->type.rank == SNT_MAX_RANK) return false;
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

/* Few vectors, one behind the other as they are beside the rows: sums, as of one of them. 0: they are many, or lie otherwise. (4096 x 4096 of 4 bits, two cores of
   Zen 4: 4 vectors 2.7 to 0.74 ms, 8 6.6 to 1.4, 16 3.5 to 2.8, 24 the same.) */
static uint32_t few_vectors(rebuild *r, const ir_attr_value lists[4]) {
  enum { BY_TABLE = 16, BY_LITERALS = 8 };
  const int64_t most = cost_permutes(r->c->options->profile) ? BY_TABLE : BY_LITERALS;
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
  uint32_t rows = bytes <= SCHEDULE_NEAR_VECTORS * r->c->options->profile->l2_bytes ? rewrite_fields(r, r->args[1]) : 0;
  if (!rows || !read_rows(&w, &rows, 1, schedule_lanes(r->c)) || w.to.rank == SNT_MAX_RANK) return 0;
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
