/* What sums by words are made of (words.c, word_bytes.c): constants packed with neighbouring rows in neighbouring lanes, what belongs to a
   row or a block beside them, the elements of the vectors that all lanes share, and the constant bytes below fields. */
#include "fusion/rewrite/words_private.h"
#include "fusion/schedule_common.h"

enum { DEPTH = 24 };

bool words_is_pointwise(const ir_node *n) { return (ir_ops[n->op].flags & IR_POINTWISE) && n->op != IR_OP_custom && n->arity <= 3; }

bool words_only_units(const ir_tensor *a, const ir_tensor *b) {
  const ir_tensor *longer = a->rank > b->rank ? a : b, *shorter = a->rank > b->rank ? b : a;
  for (uint32_t d = shorter->rank; d < longer->rank; d++)
    if (longer->dims[d] != 1) return false;
  return !memcmp(a->dims, b->dims, shorter->rank * sizeof *a->dims);
}

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

uint32_t words_pack(words *w, uint32_t node, const ir_tensor *type) {
  int64_t elements, groups;
  for (uint32_t i = 0; i < w->packed_count; i++)
    if (w->source[i] == node && ir_at(w->r->to, w->packed[i])->type.dtype == type->dtype &&
        ir_same_shape(&ir_at(w->r->to, w->packed[i])->type, type))
      return w->packed[i];
  packing *p = w->packed_count < WORDS_PACKED ? IR_NEW(w->r->c->arena, packing) : NULL;
  if (!p || !expr_is_const(w->r->to->pool, ir_tensor_elements(w->r->to->pool, type), &elements)) return 0;
  if (!expr_is_const(w->r->to->pool, type->dims[0], &groups)) return 0;
  p->lanes = (size_t)w->lanes, p->rows = (size_t)(groups * w->lanes), p->row = (size_t)elements / p->rows;
  p->bytes = ir_dtypes[type->dtype].bytes;
  p->making.fill = pack_rows, p->making.size = sizeof *p;
  const uint32_t made = ir_add_made(w->r->to, type, &p->making, node);
  if (made) w->source[w->packed_count] = node, w->packed[w->packed_count++] = made;
  return made;
}

uint32_t words_for_vectors(words *w, uint32_t node) {
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
    const uint32_t made = words_pack(w, constant, &type);
    if (made) return made;
  }
  if (words_is_pointwise(n)) {
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

uint32_t words_shared(words *w, uint32_t node) {
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
  const uint32_t value = rows ? words_for_vectors(w, turned(w, operand, DEPTH)) : operand;
  return value ? rebuild_broadcast(w->r, value, count + rows, axes, w->to.rank, w->to.dims) : 0;
}

/* The elements of the vectors [vectors, s.., words, fields of a word] that belong to a field, one a word. */
uint32_t words_element(words *w, uint32_t vectors, uint32_t at) {
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
    } else if (n->op != IR_OP_reshape || !words_only_units(&n->type, &ir_at(g, a)->type)) {
      return false;
    }
    node = a;
  }
  return false;
}

/* Fields of equal width, one behind the other, or whole bytes. */
uint32_t words_joined_bytes(const words *w, uint32_t node) {
  const ir_graph *g = w->r->to;
  const ir_node *n = ir_at(g, node);
  const int64_t width = 8 / w->fields;
  const uint32_t last = w->from.rank - 1;
  const bool joined = n->op == IR_OP_concat && n->arity == w->fields && ir_attr_int(g, node, IR_ATTR_axis, 0) == (int64_t)last;
  uint32_t bytes = 0;
  field_bits f;
  if ((!joined && w->fields > 1) || width * w->fields != 8) return 0;
  for (uint32_t i = 0; i < w->fields; i++) {
    if (!read_field(g, joined ? ir_arg(g, node, i) : node, &f) || f.first != i * width || (bytes && f.bytes != bytes)) return 0;
    if ((f.width < 8 - f.first ? f.width : 8 - f.first) != width) return 0;
    bytes = f.bytes;
  }
  const ir_tensor *t = &ir_at(g, bytes)->type;
  return t->rank == last && !memcmp(t->dims, w->from.dims, last * sizeof *t->dims) ? bytes : 0;
}

uint32_t words_take_factors(words *w, uint32_t *matrix, uint32_t factors[WORDS_FACTORS]) {
  const ir_graph *g = w->r->to;
  uint32_t count = 0;
  while (ir_at(g, *matrix)->op == IR_OP_mul && count < WORDS_FACTORS) {
    const uint32_t a = ir_arg(g, *matrix, 0), b = ir_arg(g, *matrix, 1), factor = ir_at(g, a)->op == IR_OP_broadcast ? a : b;
    const uint32_t value = ir_at(g, factor)->op == IR_OP_broadcast ? words_shared(w, factor) : 0;
    if (!value) break;
    factors[count++] = value;
    *matrix = factor == a ? b : a;
  }
  return count;
}
