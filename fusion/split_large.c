/* Constants larger than the device binds become parts. In: a decomposed graph. Out: the same values, bit for bit: a table that is gathered from is several,
   each asked for the index less its first row, the right one chosen; a product has one product for each part of its columns (or rows), joined again.
   A constant that is read in another way is refused, by name. */
#include "fusion/rebuild.h"

enum { MAX_PARTS = 16 };

typedef struct cut {
  uint32_t node;        /* of the old graph */
  uint32_t axis;        /* of the constant */
  int64_t rows, step;   /* extent of the axis; of one part */
  int64_t outer, inner; /* elements before and after it */
} cut;

/* What one binding reaches: where reads go through views of texels, 16 bytes each. */
static uint64_t most_bytes(const cost_profile *p, int32_t dtype) {
  const uint64_t texels = p->reads == COST_READS_TEXEL && p->caps.texel && dtype == SNT_F32 ? p->max_texels * 16 : 0;
  return p->max_buffer_bytes && p->max_buffer_bytes < texels ? texels : p->max_buffer_bytes;
}

static bool is_large(const rebuild *r, uint32_t node) {
  const ir_graph *g = r->from;
  const ir_node *n = ir_at(g, node);
  int64_t count;
  if (n->op != IR_OP_const || g->consts.at[n->payload].kind == IR_CONST_SPLAT) return false;
  const uint64_t most = most_bytes(r->c->options->profile, n->type.dtype);
  return most && expr_is_const(g->pool, ir_tensor_elements(g->pool, &n->type), &count) &&
         (uint64_t)count * ir_dtypes[n->type.dtype].bytes > most;
}

/* Half weights are cast where they are read. */
static uint32_t source_of(const rebuild *r, uint32_t operand) {
  return ir_at(r->from, operand)->op == IR_OP_cast ? ir_arg(r->from, operand, 0) : operand;
}

/* Parts of at most seven eighths: panels of a product overlap. */
static bool plan_cut(const rebuild *r, uint32_t node, uint32_t axis, cut *out) {
  const ir_graph *g = r->from;
  const ir_tensor *t = &ir_at(g, node)->type;
  const uint64_t most = most_bytes(r->c->options->profile, t->dtype) / 8 * 7;
  int64_t extent;
  *out = (cut){.node = node, .axis = axis, .outer = 1, .inner = 1};
  for (uint32_t i = 0; i < t->rank; i++) {
    if (!expr_is_const(g->pool, t->dims[i], &extent)) return false;
    if (i == axis) out->rows = extent;
    else if (i < axis) out->outer *= extent;
    else out->inner *= extent;
  }
  const uint64_t row = (uint64_t)(out->outer * out->inner) * ir_dtypes[t->dtype].bytes;
  out->step = row ? (int64_t)(most / row) : 0;
  if (out->step > 16) out->step -= out->step % 16; /* whole vectors */
  return out->step > 0 && (out->rows + out->step - 1) / out->step <= MAX_PARTS;
}

static int64_t rows_of(const cut *c, int64_t first) { return c->rows - first < c->step ? c->rows - first : c->step; }

typedef struct cutting {
  ir_making making;
  size_t from, row, part; /* bytes: of the first part, of what is together, of a part of it */
} cutting;

static void copy_parts(const ir_making *m, const void *const *sources, void *to) {
  const cutting *k = (const cutting *)(const void *)m;
  for (uint64_t i = 0; i < m->bytes / k->part; i++)
    memcpy((char *)to + i * k->part, (const char *)sources[0] + i * k->row + k->from, k->part);
}

/* Rows from `first` on as a constant: a piece of the data where it lies together, a copy otherwise. */
static uint32_t add_part(rebuild *r, const cut *c, int64_t first) {
  ir_tensor type = ir_at(r->from, c->node)->type;
  const size_t bytes = ir_dtypes[type.dtype].bytes, row = (size_t)c->inner * bytes, count = (size_t)rows_of(c, first);
  const char *data = ir_const_data(r->to, r->map[c->node]);
  if (!data) return 0;
  type.dims[c->axis] = expr_int(r->to->pool, (int64_t)count);
  if (c->outer == 1) return ir_add_const(r->to, &type, &(ir_const){.kind = IR_CONST_DATA, .data = data + (size_t)first * row});
  cutting *k = IR_NEW(r->c->arena, cutting);
  if (!k) return 0;
  *k = (cutting){{.fill = copy_parts, .size = sizeof *k}, (size_t)first * row, (size_t)c->rows * row, count * row};
  return ir_add_made(r->to, &type, &k->making, r->map[c->node]);
}

/* The same of an operand: the constant or a cast of it. */
static uint32_t part_of(rebuild *r, uint32_t operand, const cut *c, int64_t first) {
  const ir_node *n = ir_at(r->from, operand);
  const uint32_t part = add_part(r, c, first);
  if (!part || operand == c->node) return part;
  ir_tensor type = ir_at(r->to, part)->type;
  type.dtype = n->type.dtype;
  return ir_add_node(r->to, IR_OP_cast, 1, &part, 0, NULL, &type);
}

/* ---- tables ---- */

/* An index below a part asks for its first row, one beyond it for its last: the choice drops what it gives. */
static uint32_t gather_part(rebuild *r, const cut *c, int64_t first, uint32_t below) {
  const ir_node *n = ir_at(r->from, r->node);
  const uint32_t index = r->args[1], axis = c->axis;
  const ir_tensor shape = ir_at(r->to, index)->type;
  const uint32_t part = part_of(r, ir_arg(r->from, r->node, 0), c, first), at = first ? ir_add_splat(r->to, shape.dtype, (double)first) : 0;
  const uint32_t args[2] = {part, first ? ir_add2(r->to, IR_OP_sub, index, at) : index};
  const uint32_t value = part ? rebuild_copy_of(r, r->node, args) : 0;
  if (!first || !value) return value;
  uint32_t here = ir_add2(r->to, IR_OP_ge, index, at);
  ir_expr axes[SNT_MAX_RANK];
  for (uint32_t i = 0; i < shape.rank; i++) axes[i] = axis + i;
  if (n->type.rank) here = rebuild_broadcast(r, here, shape.rank, axes, n->type.rank, n->type.dims);
  return here ? ir_add3(r->to, IR_OP_select, here, value, below) : 0;
}

static uint32_t split_gather(rebuild *r) {
  cut c;
  if (!is_large(r, source_of(r, ir_arg(r->from, r->node, 0)))) return 0;
  if (!plan_cut(r, source_of(r, ir_arg(r->from, r->node, 0)), (uint32_t)ir_attr_int(r->from, r->node, IR_ATTR_axis, 0), &c)) return 0;
  uint32_t made = 0;
  for (int64_t first = 0; first < c.rows; first += c.step)
    if (!(made = gather_part(r, &c, first, made))) return 0;
  return made;
}

/* ---- products ---- */

/* The longest axis of the constant that is one of the result and none of the other operand's. */
static bool pick_axis(const rebuild *r, uint32_t side, uint32_t *axis, uint32_t *out_axis) {
  static const ir_attr_key keys[2] = {IR_ATTR_lhs, IR_ATTR_rhs};
  const ir_graph *g = r->from;
  uint32_t rank, other_rank, out_rank;
  const ir_expr *own = ir_attr_ints(g, r->node, keys[side], &rank), *other = ir_attr_ints(g, r->node, keys[1 - side], &other_rank),
                *out = ir_attr_ints(g, r->node, IR_ATTR_out, &out_rank);
  int64_t best = 1, extent;
  for (uint32_t i = 0; i < rank; i++) {
    const int32_t at = fusion_find_label(out, out_rank, own[i]);
    if (at < 0 || fusion_find_label(other, other_rank, own[i]) >= 0) continue;
    if (!expr_is_const(g->pool, ir_at(g, ir_arg(g, r->node, side))->type.dims[i], &extent) || extent <= best) continue;
    best = extent, *axis = i, *out_axis = (uint32_t)at;
  }
  return best > 1;
}

static uint32_t product_of(rebuild *r, uint32_t side, uint32_t part, uint32_t out_axis, int64_t count) {
  const ir_node *n = ir_at(r->from, r->node);
  ir_attr_value attrs[IR_ATTR_COUNT];
  uint32_t args[2] = {r->args[0], r->args[1]};
  ir_tensor type = n->type;
  args[side] = part;
  type.dims[out_axis] = expr_int(r->to->pool, count);
  for (uint32_t i = 0; i < n->attr_count; i++) {
    const ir_attr *a = &r->from->attrs.at[n->attrs + i];
    attrs[i] = (ir_attr_value){a->key, a->count, r->from->ints.at + a->first};
  }
  const uint32_t made = ir_add_node(r->to, IR_OP_contract, 2, args, n->attr_count, attrs, &type);
  if (made) r->to->nodes.at[made].origin = n->origin;
  return made;
}

static uint32_t split_contract(rebuild *r) {
  const uint32_t side = is_large(r, source_of(r, ir_arg(r->from, r->node, 1))) ? 1 : 0, operand = ir_arg(r->from, r->node, side);
  uint32_t axis, out_axis, parts[MAX_PARTS], count = 0;
  cut c;
  if (!is_large(r, source_of(r, operand)) || !pick_axis(r, side, &axis, &out_axis)) return 0;
  if (!plan_cut(r, source_of(r, operand), axis, &c)) return 0;
  for (int64_t first = 0; first < c.rows; first += c.step) {
    const uint32_t part = part_of(r, operand, &c, first);
    if (!part || !(parts[count++] = product_of(r, side, part, out_axis, rows_of(&c, first)))) return 0;
  }
  const ir_expr joined = out_axis;
  return ir_add_node(r->to, IR_OP_concat, count, parts, 1, &(ir_attr_value){IR_ATTR_axis, 1, &joined}, NULL);
}

static const rebuild_rule rules[] = {{split_gather, .ops = {IR_OP_gather}}, {split_contract, .ops = {IR_OP_contract}}};

/* ---- what is left ---- */

/* That something reads, or that the caller wants. */
static bool any_large(const rebuild *r, const ir_uses *uses, uint32_t *which) {
  for (uint32_t n = 1; n < r->from->nodes.count; n++) {
    if ((uses->first[n] == uses->first[n + 1] && !uses->is_output[n]) || !is_large(r, n)) continue;
    *which = n;
    return true;
  }
  return false;
}

static snt_result refuse(const rebuild *r, uint32_t node) {
  const ir_node *n = ir_at(r->from, node);
  int64_t count = 0;
  (void)expr_is_const(r->from->pool, ir_tensor_elements(r->from->pool, &n->type), &count);
  return ir_fail(r->c->diag, SNT_E_UNSUPPORTED, "large", n->origin,
                 "constant %.80s has %llu bytes and is read whole; the device binds %llu",
                 n->name ? ir_node_name(r->from, node) : "without a name", (unsigned long long)count * ir_dtypes[n->type.dtype].bytes,
                 (unsigned long long)most_bytes(r->c->options->profile, n->type.dtype));
}

static snt_result find_large(fusion_context *c, rebuild *r, uint32_t *which) {
  ir_uses uses;
  *r = (rebuild){.c = c, .from = c->graph};
  *which = 0;
  for (uint32_t n = 1; n < c->graph->nodes.count && !*which; n++)
    if (is_large(r, n)) *which = n;
  if (!*which) return SNT_OK;
  if (!ir_find_uses(c->graph, c->arena, &uses)) return ir_no_memory(c->diag, "large");
  if (!any_large(r, &uses, which)) *which = 0;
  return SNT_OK;
}

snt_result fusion_split_large(fusion_context *c, bool *changed) {
  uint32_t which;
  rebuild r;
  SNT_TRY(find_large(c, &r, &which));
  if (!which) return SNT_OK;
  SNT_TRY(fusion_rebuild(c, rules, IR_COUNT(rules), changed));
  SNT_TRY(find_large(c, &r, &which));
  return which ? refuse(&r, which) : SNT_OK;
}
