/* Forests of the domain ai.onnx.ml: TreeEnsembleRegressor, TreeEnsembleClassifier, TreeEnsemble. Every row walks all trees at once: [rows,
   trees] places in one table of nodes, a trip of a repeat a level of the deepest tree; at a leaf both ways lead to itself. Whatever form
   the attributes have, they become that table first. */
#include "onnx/ops.h"
#include <math.h>
#include <stdlib.h>

enum { MOST_NODES = 1 << 24 };
/* When a node's first way is taken: bits of how the feature compares with the node's value. */
enum { WHEN_LESS = 1, WHEN_EQUAL = 2, WHEN_GREATER = 4, WHEN_NAN = 8, IS_LEAF = 16 };

typedef struct vote {
  uint32_t node;
  int64_t target;
  double weight;
} vote;
typedef struct tree {
  uint32_t root, target; /* target: of all its votes, or UINT32_MAX */
} tree;
typedef struct forest {
  int32_t dtype; /* of thresholds, weights and sums */
  uint32_t count, tree_count, depth, vote_count;
  double *value, *feature, *way; /* by node; way: two for each, the one that is taken first */
  uint8_t *when;
  tree *trees;
  vote *votes;
  int64_t targets;
  double *base;
  uint32_t base_count;
} forest;

/* ---- attributes ---- */

/* A list of whole numbers with `count` elements; null after refusing. */
static const int64_t *ints(onnx_call *c, const char *name, uint32_t count) {
  const onnx_attr *a = onnx_find_attr(c, name);
  if (a && a->kind == ONNX_INTS && a->ints.count == count) return a->ints.at;
  return onnx_refuse(c, "%s must have %u elements", name, count), NULL;
}

static uint32_t int_count(onnx_call *c, const char *name) {
  const onnx_attr *a = onnx_find_attr(c, name);
  return a && a->kind == ONNX_INTS ? a->ints.count : 0;
}

static bool mode_of(onnx_call *c, const char *name, uint8_t *when) {
  static const struct {
    const char *name;
    uint8_t when;
  } modes[] = {{"BRANCH_LEQ", WHEN_LESS | WHEN_EQUAL},
               {"BRANCH_LT", WHEN_LESS},
               {"BRANCH_GTE", WHEN_GREATER | WHEN_EQUAL},
               {"BRANCH_GT", WHEN_GREATER},
               {"BRANCH_EQ", WHEN_EQUAL},
               {"BRANCH_NEQ", WHEN_LESS | WHEN_GREATER | WHEN_NAN},
               {"LEAF", IS_LEAF}};
  for (uint32_t i = 0; i < IR_COUNT(modes); i++)
    if (!strcmp(modes[i].name, name)) return *when = modes[i].when, true;
  return onnx_refuse(c, "nodes_modes: %.30s", name);
}

/* ---- the table ---- */

static bool start_table(onnx_call *c, forest *f, uint32_t count) {
  if (count == 0 || count > MOST_NODES) return onnx_refuse(c, "%u nodes", count);
  f->count = count;
  f->feature = onnx_room(c, count, sizeof *f->feature), f->way = onnx_room(c, 2 * (size_t)count, sizeof *f->way);
  f->when = onnx_room(c, count, sizeof *f->when), f->trees = onnx_room(c, count, sizeof *f->trees);
  if (!f->feature || !f->way || !f->when || !f->trees) return false;
  for (uint32_t i = 0; i < 2 * count; i++) f->way[i] = i / 2;
  return true;
}

static bool tracks_missing(onnx_call *c, forest *f, uint32_t inner) {
  const int64_t *tracks = onnx_find_attr(c, "nodes_missing_value_tracks_true") ? ints(c, "nodes_missing_value_tracks_true", inner) : NULL;
  for (uint32_t i = 0; tracks && i < inner; i++)
    if (tracks[i] && f->when[i] != IS_LEAF) f->when[i] |= WHEN_NAN;
  return !c->refused;
}

typedef struct place { /* of the older forms: a tree and a number in it */
  int64_t tree, node;
  uint32_t at;
} place;

static int by_place(const void *a, const void *b) {
  const place *x = a, *y = b;
  if (x->tree != y->tree) return x->tree < y->tree ? -1 : 1;
  return x->node < y->node ? -1 : x->node > y->node;
}

static const place *find_place(const place *sorted, uint32_t count, int64_t tree, int64_t node) {
  const place key = {.tree = tree, .node = node};
  return bsearch(&key, sorted, count, sizeof key, by_place);
}

/* The table of the older forms, whose votes are `prefix`_treeids and so on. */
static bool read_named(onnx_call *c, forest *f, const char *prefix) {
  const uint32_t count = int_count(c, "nodes_treeids");
  const onnx_attr *modes = onnx_find_attr(c, "nodes_modes");
  char names[4][32];
  static const char *const parts[] = {"treeids", "nodeids", "ids", "weights"};
  for (uint32_t i = 0; i < 4; i++) snprintf(names[i], sizeof names[i], "%s_%s", prefix, parts[i]);
  if (!start_table(c, f, count)) return false;
  const int64_t *trees = ints(c, "nodes_treeids", count), *numbers = ints(c, "nodes_nodeids", count),
                *features = ints(c, "nodes_featureids", count), *yes = ints(c, "nodes_truenodeids", count),
                *no = ints(c, "nodes_falsenodeids", count);
  place *sorted = onnx_room(c, count, sizeof *sorted);
  uint32_t values, weights;
  double *weight;
  if (!yes || !no || !features || !numbers || !trees || !sorted || !onnx_reals(c, "nodes_values", &f->value, &values)) return false;
  if (!modes || modes->kind != ONNX_TEXTS || modes->texts.count != count || values != count)
    return onnx_refuse(c, "nodes_modes and nodes_values must have %u elements", count);
  for (uint32_t i = 0; i < count; i++) sorted[i] = (place){trees[i], numbers[i], i};
  qsort(sorted, count, sizeof *sorted, by_place);
  for (uint32_t i = 0; i < count; i++) {
    if (!i || trees[i] != trees[i - 1]) f->trees[f->tree_count++].root = i;
    f->feature[i] = (double)features[i];
    if (!mode_of(c, modes->texts.at[i], &f->when[i])) return false;
    if (f->when[i] == IS_LEAF) continue;
    const place *first = find_place(sorted, count, trees[i], yes[i]), *second = find_place(sorted, count, trees[i], no[i]);
    if (!first || !second) return onnx_refuse(c, "node %lld of tree %lld leads nowhere", (long long)numbers[i], (long long)trees[i]);
    f->way[2 * i] = first->at, f->way[2 * i + 1] = second->at;
  }
  f->vote_count = int_count(c, names[0]);
  const int64_t *tree_ids = ints(c, names[0], f->vote_count), *node_ids = ints(c, names[1], f->vote_count),
                *targets = ints(c, names[2], f->vote_count);
  f->votes = onnx_room(c, f->vote_count, sizeof *f->votes);
  if (!tree_ids || !node_ids || !targets || !f->votes || !onnx_reals(c, names[3], &weight, &weights)) return false;
  if (weights != f->vote_count) return onnx_refuse(c, "%s must have %u elements", names[3], f->vote_count);
  for (uint32_t i = 0; i < f->vote_count; i++) {
    const place *at = find_place(sorted, count, tree_ids[i], node_ids[i]);
    if (!at) return onnx_refuse(c, "%s[%u] is no node", names[1], i);
    f->votes[i] = (vote){at->at, targets[i], weight[i]};
  }
  return tracks_missing(c, f, count) && onnx_reals(c, "base_values", &f->base, &f->base_count);
}

/* The table of TreeEnsemble: inner nodes, then leaves. */
static bool read_numbered(onnx_call *c, forest *f) {
  static const uint8_t whens[] = {WHEN_LESS | WHEN_EQUAL, WHEN_LESS,  WHEN_GREATER | WHEN_EQUAL,
                                  WHEN_GREATER,           WHEN_EQUAL, WHEN_LESS | WHEN_GREATER | WHEN_NAN};
  static const char *const ways[2][2] = {{"nodes_truenodeids", "nodes_trueleafs"}, {"nodes_falsenodeids", "nodes_falseleafs"}};
  const uint32_t inner = int_count(c, "nodes_featureids"), leaves = int_count(c, "leaf_targetids"), trees = int_count(c, "tree_roots");
  uint32_t splits, modes, weights;
  double *split, *mode, *weight;
  if (!start_table(c, f, inner + leaves) || trees > f->count) return onnx_refuse(c, "%u trees", trees);
  const int64_t *features = ints(c, "nodes_featureids", inner), *targets = ints(c, "leaf_targetids", leaves),
                *roots = ints(c, "tree_roots", trees);
  if (!features || !targets || !roots || !onnx_reals(c, "nodes_splits", &split, &splits) || !onnx_reals(c, "nodes_modes", &mode, &modes) ||
      !onnx_reals(c, "leaf_weights", &weight, &weights))
    return false;
  if (splits != inner || modes != inner || weights != leaves) return onnx_refuse(c, "%u nodes and %u leaves", inner, leaves);
  f->value = onnx_room(c, f->count, sizeof *f->value), f->votes = onnx_room(c, leaves, sizeof *f->votes);
  if (!f->value || !f->votes) return false;
  for (uint32_t i = 0; i < inner; i++) {
    if (!(mode[i] >= 0 && mode[i] < (double)IR_COUNT(whens))) return onnx_refuse(c, "nodes_modes: %g", mode[i]);
    f->feature[i] = (double)features[i], f->value[i] = split[i], f->when[i] = whens[(uint32_t)mode[i]];
  }
  for (uint32_t way = 0; way < 2; way++) {
    const int64_t *to = ints(c, ways[way][0], inner), *leaf = ints(c, ways[way][1], inner);
    for (uint32_t i = 0; i < inner; i++) {
      if (!to || !leaf || to[i] < 0 || to[i] >= (leaf[i] ? leaves : inner)) return onnx_refuse(c, "%s[%u] is no node", ways[way][0], i);
      f->way[2 * i + way] = (double)to[i] + (leaf[i] ? inner : 0);
    }
  }
  for (uint32_t i = 0; i < leaves; i++) {
    f->feature[inner + i] = f->value[inner + i] = 0, f->when[inner + i] = IS_LEAF;
    f->votes[f->vote_count++] = (vote){inner + i, targets[i], weight[i]};
  }
  for (uint32_t i = 0; i < trees; i++) {
    if (roots[i] < 0 || roots[i] >= inner) return onnx_refuse(c, "tree_roots[%u] is no node", i);
    f->trees[f->tree_count++].root = (uint32_t)roots[i];
  }
  return tracks_missing(c, f, inner);
}

/* What is not equal goes on by the first way: what is equal by the second. */
static void turn_unequal(forest *f) {
  for (uint32_t i = 0; i < f->count; i++) {
    if (f->when[i] != (WHEN_LESS | WHEN_GREATER | WHEN_NAN)) continue;
    const double first = f->way[2 * i];
    f->when[i] = WHEN_EQUAL, f->way[2 * i] = f->way[2 * i + 1], f->way[2 * i + 1] = first;
  }
}

/* Nodes by their distance from the roots, a tree after the other, so that the second way of one leads to some place and the first to the next; `place` has where each is now, UINT32_MAX: no
   way leads to it. */
static bool order_nodes(onnx_call *c, forest *f, const uint32_t *queue, uint32_t count, const uint32_t *place) {
  const forest old = *f;
  if (!start_table(c, f, count) || !(f->value = onnx_room(c, count, sizeof *f->value))) return false;
  memcpy(f->trees, old.trees, f->tree_count * sizeof *f->trees);
  for (uint32_t i = 0; i < count; i++) {
    f->value[i] = old.value[queue[i]], f->feature[i] = old.feature[queue[i]], f->when[i] = old.when[queue[i]];
    for (uint32_t way = 0; way < 2 && f->when[i] != IS_LEAF; way++) f->way[2 * i + way] = place[(uint32_t)old.way[2 * queue[i] + way]];
  }
  for (uint32_t t = 0; t < f->tree_count; t++) f->trees[t].root = place[f->trees[t].root];
  f->vote_count = 0;
  for (uint32_t i = 0; i < old.vote_count; i++)
    if (place[old.votes[i].node] != UINT32_MAX)
      f->votes[f->vote_count++] = (vote){place[old.votes[i].node], old.votes[i].target, old.votes[i].weight};
  return true;
}

/* How deep the trees are, and of which target each is; brings nodes into order. A node that two ways lead to, or one, and the root again, is refused. */
static bool walk_trees(onnx_call *c, forest *f) {
  uint32_t *queue = onnx_room(c, f->count, sizeof *queue), *level = onnx_room(c, f->count, sizeof *level),
           *owner = onnx_room(c, f->count, sizeof *owner);
  uint32_t *place = onnx_room(c, f->count, sizeof *place), count = 0, next = 0;
  if (!queue || !level || !owner || !place) return false;
  turn_unequal(f);
  for (uint32_t i = 0; i < f->count; i++) owner[i] = place[i] = UINT32_MAX;
  for (uint32_t t = 0; t < f->tree_count; t++) {
    if (count == f->count) return onnx_refuse(c, "two ways lead to node %u", f->trees[t].root);
    level[count] = 0, queue[count++] = f->trees[t].root;
    f->trees[t].target = UINT32_MAX;
    for (; next < count; next++) {
      const uint32_t node = queue[next];
      if (owner[node] != UINT32_MAX) return onnx_refuse(c, "two ways lead to node %u", node);
      owner[node] = t, place[node] = next;
      if (level[next] > f->depth) f->depth = level[next];
      for (uint32_t way = 2; way-- > 0 && f->when[node] != IS_LEAF;) {
        if (count == f->count) return onnx_refuse(c, "two ways lead to node %u", (uint32_t)f->way[2 * node + way]);
        queue[count] = (uint32_t)f->way[2 * node + way], level[count++] = level[next] + 1;
      }
    }
  }
  for (uint32_t i = 0; i < f->vote_count; i++) {
    const vote *v = &f->votes[i];
    if (v->target < 0 || v->target >= f->targets) return onnx_refuse(c, "target %lld of %lld", (long long)v->target, (long long)f->targets);
    if (owner[v->node] == UINT32_MAX) continue;
    uint32_t *target = &f->trees[owner[v->node]].target;
    *target = *target == UINT32_MAX || *target == (uint32_t)v->target ? (uint32_t)v->target : UINT32_MAX - 1;
  }
  return order_nodes(c, f, queue, count, place);
}

/* Trees that vote for one target each, as many for every target, lie by target: [targets, trees of one]. False: they do not. */
static bool sort_trees(onnx_call *c, forest *f) {
  const uint32_t each = f->targets ? f->tree_count / (uint32_t)f->targets : 0;
  tree *sorted = onnx_room(c, f->tree_count, sizeof *sorted);
  uint32_t *taken = onnx_room(c, (size_t)f->targets, sizeof *taken);
  if (!sorted || !taken || !each || (int64_t)each * f->targets != f->tree_count) return false;
  memset(taken, 0, (size_t)f->targets * sizeof *taken);
  for (uint32_t t = 0; t < f->tree_count; t++) {
    const uint32_t target = f->trees[t].target;
    if (target >= f->targets || taken[target] == each) return false;
    sorted[target * each + taken[target]++] = f->trees[t];
  }
  f->trees = sorted;
  return true;
}

/* ---- nodes ---- */

enum { BY_VALUE = WHEN_LESS | WHEN_EQUAL | WHEN_GREATER };

static bool leads_missing(const forest *f, uint32_t node) { return f->when[node] != IS_LEAF && f->when[node] & WHEN_NAN; }

/* What goes the first way of whatever node there is, of those that compare so. */
static double always_met(uint8_t mode) { return mode & WHEN_LESS ? -INFINITY : INFINITY; }

/* Could that stand for a value that is missing at this node? Not where it is equal to the node's own and that is not enough. */
static bool stands_for_missing(const forest *f, uint32_t node, uint8_t mode) {
  const double v = f->value[node];
  return mode != WHEN_EQUAL && v == v && (mode & WHEN_EQUAL || v != always_met(mode));
}

/* How all inner nodes compare, and whether some lead a missing value the first way; 0: in several ways, or so that no number could stand for one. */
static uint8_t one_mode(const forest *f, bool *missing) {
  uint8_t mode = 0;
  for (uint32_t i = 0; i < f->count; i++) {
    if (f->when[i] == IS_LEAF) continue;
    if (mode && (f->when[i] & BY_VALUE) != mode) return 0;
    mode = f->when[i] & BY_VALUE;
    if (leads_missing(f, i) && !stands_for_missing(f, i, mode)) return 0;
    *missing |= leads_missing(f, i);
  }
  return mode;
}

/* A node's words beside each other, as wide as its value, so that what a trip reads of it lies in one line of a cache: the bits of the
   value, the number of the feature, and that of the node behind the second way; the first one leads one further. A leaf is behind itself, and
   nothing compares with its value. Of 64 bits the latter two share a word. Words have no sign: a number without one has one bound to be kept in. */
enum { WORD_VALUE, WORD_FEATURE, WORD_WAY, NARROW_WORDS = 4, WIDE_WORDS = 2 };

typedef struct walk { /* what the trips read */
  uint8_t mode;
  bool missing;                  /* some node's first way is a missing value's: two numbers a feature */
  uint32_t x, row, nodes, modes; /* nodes of the graph; x: all rows beside each other */
  uint32_t count;                /* of the forest's nodes */
  int32_t dtype;
} walk;

static bool is_wide(int32_t dtype) { return dtype == SNT_F64; }

static uint32_t node_words(onnx_call *c, const forest *f, const walk *w) {
  const bool wide = is_wide(f->dtype);
  const int32_t word = wide ? SNT_U64 : SNT_U32;
  const uint32_t words = wide ? WIDE_WORDS : NARROW_WORDS;
  const ir_tensor type = {.dtype = (uint8_t)word, .rank = 1, .dims = {(ir_expr)(f->count * words)}};
  void *data = onnx_room(c, (size_t)f->count * words, ir_dtypes[word].bytes);
  if (!data) return 0;
  memset(data, 0, (size_t)f->count * words * ir_dtypes[word].bytes);
  for (uint32_t i = 0; i < f->count; i++) {
    const int64_t feature = w->missing ? 2 * (int64_t)f->feature[i] + leads_missing(f, i) : (int64_t)f->feature[i],
                  way = (int64_t)f->way[2 * i + 1];
    ir_dtype_store(f->dtype, data, i * words + WORD_VALUE, f->when[i] == IS_LEAF ? NAN : f->value[i]);
    ir_dtype_store_int(word, data, i * words + WORD_FEATURE, wide ? way << 32 | feature : feature);
    if (!wide) ir_dtype_store_int(word, data, i * words + WORD_WAY, way);
  }
  return ir_add_const(c->g, &type, &(ir_const){.kind = IR_CONST_DATA, .data = data});
}

/* Each number as it is, which goes the second way where it is missing, and beside it one that goes the first then. */
static uint32_t both_numbers(onnx_call *c, uint8_t mode, uint32_t x) {
  const ir_tensor type = *onnx_type_of(c, x);
  const ir_expr dims[] = {type.dims[0], type.dims[1], 1};
  const uint32_t first = onnx_select(c, onnx_1(c, IR_OP_isnan, x), onnx_like(c, x, always_met(mode)), x);
  uint32_t parts[] = {x, first};
  for (uint32_t i = 0; i < 2; i++) parts[i] = onnx_reshape(c, parts[i], 3, dims);
  return onnx_concat(c, 2, 2, parts);
}

static bool open_walk(onnx_call *c, const forest *f, uint32_t x, walk *w) {
  const ir_tensor type = *onnx_type_of(c, x);
  bool missing = false;
  const ir_expr dims[] = {type.dims[0], f->tree_count};
  double *when = onnx_room(c, f->count, sizeof *when);
  *w = (walk){.mode = one_mode(f, &missing), .count = f->count, .dtype = f->dtype};
  w->missing = missing && w->mode;
  w->x = onnx_flat(c, w->missing ? both_numbers(c, w->mode, x) : x);
  for (uint32_t i = 0; when && i < f->count; i++) when[i] = f->when[i];
  w->modes = w->mode || !when ? 0 : onnx_vector(c, SNT_I32, f->count, when);
  w->nodes = node_words(c, f, w);
  const ir_expr numbers = expr_mul(c->g->pool, w->missing ? 2 : 1, type.dims[1]);
  w->row = onnx_2(c, IR_OP_mul, onnx_iota(c, SNT_U32, 2, dims, 0), onnx_extent(c, numbers, SNT_U32));
  return when && w->row && w->nodes;
}

/* Whether nodes that all compare in the same way lead on by the first one. */
static uint32_t is_met(onnx_call *c, const walk *w, uint32_t x, uint32_t value) {
  static const ir_op ops[] = {[WHEN_LESS] = IR_OP_lt,
                              [WHEN_LESS | WHEN_EQUAL] = IR_OP_le,
                              [WHEN_GREATER] = IR_OP_gt,
                              [WHEN_GREATER | WHEN_EQUAL] = IR_OP_ge,
                              [WHEN_EQUAL] = IR_OP_eq};
  return onnx_2(c, ops[w->mode], x, value);
}

static uint32_t is_met_by_mode(onnx_call *c, const walk *w, uint32_t at, uint32_t x, uint32_t value) {
  uint32_t bit = onnx_select(c, onnx_2(c, IR_OP_lt, x, value), onnx_scalar(c, SNT_I32, WHEN_LESS), onnx_scalar(c, SNT_I32, WHEN_NAN));
  bit = onnx_select(c, onnx_2(c, IR_OP_eq, x, value), onnx_scalar(c, SNT_I32, WHEN_EQUAL), bit);
  bit = onnx_select(c, onnx_2(c, IR_OP_gt, x, value), onnx_scalar(c, SNT_I32, WHEN_GREATER), bit);
  return onnx_2n(c, IR_OP_ne, onnx_2(c, IR_OP_and, onnx_gather(c, w->modes, at, 0), bit), 0);
}

/* That nodes lie in the table is said once for their words. */
static uint32_t word_at(onnx_call *c, const walk *w, uint32_t at, uint32_t word) {
  const uint32_t first = onnx_2n(c, IR_OP_mul, onnx_2n(c, IR_OP_min, at, w->count - 1), is_wide(w->dtype) ? WIDE_WORDS : NARROW_WORDS);
  return onnx_gather(c, w->nodes, word ? onnx_2n(c, IR_OP_add, first, word) : first, 0);
}

/* The node behind the node `at`. */
static uint32_t next_node(onnx_call *c, const walk *w, uint32_t at) {
  const uint32_t bits = word_at(c, w, at, WORD_VALUE), named = word_at(c, w, at, WORD_FEATURE), feature = onnx_cast(c, named, SNT_U32);
  const uint32_t way = is_wide(w->dtype) ? onnx_cast(c, onnx_2n(c, IR_OP_shr, named, 32), SNT_U32) : word_at(c, w, at, WORD_WAY);
  const uint32_t x = onnx_gather(c, w->x, onnx_2(c, IR_OP_add, w->row, feature), 0);
  const uint32_t value = bits ? onnx_add(c, "bitcast %%%u, dtype=%s", bits, ir_dtypes[w->dtype].name) : 0;
  const uint32_t met = w->mode ? is_met(c, w, x, value) : is_met_by_mode(c, w, at, x, value), first = onnx_2n(c, IR_OP_add, way, 1);
  return onnx_select(c, met, first, way);
}

/* [rows, trees]: the leaf that each row of x reaches. */
static uint32_t find_leaves(onnx_call *c, const forest *f, uint32_t x) {
  const ir_expr dims[] = {onnx_type_of(c, x)->dims[0], f->tree_count};
  double *roots = onnx_room(c, f->tree_count, sizeof *roots);
  walk w;
  uint32_t at, next, leaves;
  if (!roots || !open_walk(c, f, x, &w)) return 0;
  for (uint32_t i = 0; i < f->tree_count; i++) roots[i] = f->trees[i].root;
  const uint32_t start = onnx_broadcast(c, onnx_vector(c, SNT_U32, f->tree_count, roots), 2, dims);
  if (!start || !f->depth) return start;
  (void)ir_repeat_begin(c->g, 1, &start, expr_int(c->g->pool, f->depth), &at);
  next = next_node(c, &w, at);
  return ir_repeat_end(c->g, 1, next ? &next : &at, &leaves);
}

/* [rows, targets]: votes joined by `op`; `none` stands where a leaf has no vote. */
static uint32_t join_votes(onnx_call *c, forest *f, uint32_t x, ir_op op, double none) {
  const ir_expr rows = onnx_type_of(c, x)->dims[0];
  const bool apart = sort_trees(c, f);
  const uint32_t width = apart ? 1 : (uint32_t)f->targets;
  if ((uint64_t)width * f->count > MOST_NODES) return onnx_refuse(c, "%u nodes for %u targets", f->count, width), 0;
  double *votes = onnx_room(c, (size_t)width * f->count, sizeof *votes);
  if (!votes) return 0;
  for (uint32_t i = 0; i < width * f->count; i++) votes[i] = none;
  for (uint32_t i = 0; i < f->vote_count; i++) {
    double *to = &votes[f->votes[i].node * width + (apart ? 0 : f->votes[i].target)];
    *to = op == IR_OP_reduce_sum ? *to + f->votes[i].weight : f->votes[i].weight;
  }
  const uint32_t leaves = find_leaves(c, f, x);
  if (apart) {
    const uint32_t own = onnx_gather(c, onnx_vector(c, f->dtype, f->count, votes), leaves, 0);
    const ir_expr dims[] = {rows, f->targets, f->tree_count / f->targets};
    return own ? onnx_reduce(c, op, onnx_reshape(c, own, 3, dims), 1u << 2, false) : 0;
  }
  const ir_tensor table = {.dtype = (uint8_t)f->dtype, .rank = 2, .dims = {f->count, width}};
  return onnx_reduce(c, op, onnx_gather(c, onnx_data(c, &table, votes), leaves, 0), 1u << 1, false);
}

static uint32_t sum_votes(onnx_call *c, forest *f, uint32_t x, const char *how) {
  const bool least = !strcmp(how, "MIN"), most = !strcmp(how, "MAX"), mean = !strcmp(how, "AVERAGE");
  if (!least && !most && !mean && strcmp(how, "SUM") != 0) return onnx_refuse(c, "aggregate_function %.20s", how), 0;
  const uint32_t y = least || most ? join_votes(c, f, x, least ? IR_OP_reduce_min : IR_OP_reduce_max, least ? INFINITY : -INFINITY)
                                   : join_votes(c, f, x, IR_OP_reduce_sum, 0);
  return mean ? onnx_2n(c, IR_OP_div, y, f->tree_count) : y;
}

static uint32_t add_base(onnx_call *c, const forest *f, uint32_t y) {
  if (!f->base_count) return y;
  if (f->base_count != f->targets) return onnx_refuse(c, "%u base_values for %lld targets", f->base_count, (long long)f->targets), 0;
  return onnx_2(c, IR_OP_add, y, onnx_vector(c, f->dtype, f->base_count, f->base));
}

/* x as rows of floats, in whose type thresholds and votes are, too. */
static uint32_t rows_in(onnx_call *c, forest *f) {
  const uint32_t x = onnx_rows_in(c);
  if (x) f->dtype = onnx_type_of(c, x)->dtype;
  return x;
}

static bool features_exist(onnx_call *c, const forest *f, uint32_t x) {
  int64_t columns;
  const bool known = expr_is_const(c->g->pool, onnx_type_of(c, x)->dims[1], &columns);
  for (uint32_t i = 0; i < f->count; i++)
    if (f->when[i] != IS_LEAF && !(f->feature[i] >= 0 && f->feature[i] < (known ? (double)columns : 0x1p31)))
      return onnx_refuse(c, "feature %g of %lld", f->feature[i], known ? (long long)columns : -1);
    else if (f->when[i] == IS_LEAF) f->feature[i] = 0;
  return true;
}

bool onnx_op_tree_regressor(onnx_call *c) {
  forest f = {.targets = onnx_int(c, "n_targets", 1)};
  const uint32_t x = rows_in(c, &f);
  onnx_ignore(c, "nodes_hitrates"), onnx_ignore(c, "nodes_hitrates_as_tensor");
  if (!x || f.targets < 1 || f.targets > MOST_NODES || !read_named(c, &f, "target") || !walk_trees(c, &f) || !features_exist(c, &f, x))
    return false;
  const uint32_t y = add_base(c, &f, sum_votes(c, &f, x, onnx_text(c, "aggregate_function", "SUM")));
  return y && onnx_out(c, 0, onnx_cast(c, onnx_transformed(c, y, onnx_text(c, "post_transform", "NONE")), SNT_F32));
}

bool onnx_op_tree_ensemble(onnx_call *c) {
  static const char *const joins[] = {"AVERAGE", "SUM", "MIN", "MAX"}, *const afters[] = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO",
                                                                                          "PROBIT"};
  const int64_t join = onnx_int(c, "aggregate_function", 1), after = onnx_int(c, "post_transform", 0);
  forest f = {.targets = onnx_int(c, "n_targets", 1)};
  const uint32_t x = rows_in(c, &f);
  onnx_ignore(c, "nodes_hitrates");
  if (join < 0 || join > 3 || after < 0 || after > 4)
    return onnx_refuse(c, "aggregate_function %lld, post_transform %lld", (long long)join, (long long)after);
  if (!x || f.targets < 1 || f.targets > MOST_NODES || !read_numbered(c, &f) || !walk_trees(c, &f) || !features_exist(c, &f, x))
    return false;
  return onnx_out(c, 0, onnx_transformed(c, sum_votes(c, &f, x, joins[join]), afters[after]));
}

/* ---- classes ---- */

/* The one class that there are votes for; -1: there are several. */
static int64_t only_target(const forest *f) {
  for (uint32_t i = 1; i < f->vote_count; i++)
    if (f->votes[i].target != f->votes[0].target) return -1;
  return f->vote_count ? f->votes[0].target : -1;
}

/* Two classes of which leaves vote for one only, [rows, 1]: as ONNX Runtime has it, a score of the first stands for both, by 1 - s and s where no weight is
   negative, else by -s and s; beside one of the second the first has 0. */
static uint32_t both_classes(onnx_call *c, uint32_t s, bool first, bool positive, const char *after) {
  const uint32_t other = !first ? onnx_like(c, s, 0) : positive ? onnx_2(c, IR_OP_sub, onnx_like(c, s, 1), s) : onnx_1(c, IR_OP_neg, s);
  const uint32_t parts[] = {onnx_broadcast(c, other, 2, onnx_type_of(c, s)->dims), s}, both = onnx_concat(c, 1, 2, parts);
  return first && (positive || strcmp(after, "LOGISTIC") != 0) ? both : onnx_transformed(c, both, after);
}

static bool classify_by_one(onnx_call *c, forest *f, uint32_t x, const char *after) {
  const bool first = f->votes[0].target == 0;
  bool positive = true;
  for (uint32_t i = 0; i < f->vote_count; i++) {
    positive &= f->votes[i].weight >= 0;
    f->votes[i].target = 0;
  }
  if (f->base_count > (first ? 1 : 0)) return onnx_refuse(c, "%u base_values beside votes for one of two classes", f->base_count);
  f->targets = 1;
  if (!walk_trees(c, f)) return false;
  const uint32_t s = add_base(c, f, join_votes(c, f, x, IR_OP_reduce_sum, 0));
  const uint32_t yes = onnx_cast(c, onnx_2n(c, IR_OP_gt, s, positive ? 0.5 : 0), SNT_I64);
  if (!s || !yes || !onnx_give_labels(c, "classlabels_int64s", onnx_flat(c, yes), 2)) return false;
  return onnx_out(c, 1, onnx_cast(c, both_classes(c, s, first, positive, after), SNT_F32));
}

bool onnx_op_tree_classifier(onnx_call *c) {
  const onnx_attr *whole = onnx_find_attr(c, "classlabels_int64s"), *texts = onnx_find_attr(c, "classlabels_strings");
  const char *after = onnx_text(c, "post_transform", "NONE");
  forest f = {.targets = whole && whole->ints.count ? whole->ints.count : texts ? texts->texts.count : 0};
  const uint32_t x = rows_in(c, &f);
  onnx_ignore(c, "nodes_hitrates"), onnx_ignore(c, "nodes_hitrates_as_tensor");
  if (!x || !read_named(c, &f, "class") || !features_exist(c, &f, x)) return false;
  if (f.targets == 2 && only_target(&f) >= 0) return classify_by_one(c, &f, x, after);
  if (!walk_trees(c, &f)) return false;
  const uint32_t y = add_base(c, &f, join_votes(c, &f, x, IR_OP_reduce_sum, 0));
  const uint32_t number = y ? onnx_add(c, "argmax %%%u, axis=-1", y) : 0;
  return number && onnx_give_labels(c, "classlabels_int64s", number, f.targets) &&
         onnx_out(c, 1, onnx_cast(c, onnx_transformed(c, y, after), SNT_F32));
}
