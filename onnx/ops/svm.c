/* Support vector machines of the domain ai.onnx.ml. Rows against all support vectors by a kernel, [rows, vectors], then sums of these by constants: one for a
   regression, one for each pair of classes, of which each is a vote; probabilities are coupled from those of pairs (Wu, Lin, Weng: Probability estimates for
   multi-class classification by pairwise coupling, 2004, algorithm 2, as libsvm and ONNX Runtime have it, with their ends: 100 trips, 0.005 / classes). */
#include "onnx/ops.h"

enum { MOST_CLASSES = 64 };

static uint32_t table(onnx_call *c, uint32_t rows, uint32_t columns, const double *values) {
  return onnx_data(c, &(ir_tensor){.dtype = SNT_F32, .rank = 2, .dims = {rows, columns}}, values);
}

/* So many numbers of an attribute; null after refusing. */
static const double *reals(onnx_call *c, const char *name, uint32_t count) {
  double *values;
  uint32_t given;
  if (!onnx_reals(c, name, &values, &given)) return NULL;
  return given == count ? values : (onnx_refuse(c, "%s must have %u elements", name, count), NULL);
}

static double *room(onnx_call *c, uint32_t count) { return onnx_room(c, count, sizeof(double)); }

static uint32_t constant(onnx_call *c, const char *name, uint32_t rows, uint32_t columns) {
  const double *values = reals(c, name, rows * columns);
  return values ? table(c, rows, columns, values) : 0;
}

/* Small whole degrees are products: sums of many vectors cancel. */
static uint32_t power(onnx_call *c, uint32_t x, double degree) {
  uint32_t y = x;
  if (degree < 1 || degree > 8 || degree != (double)(uint32_t)degree) return onnx_2n(c, IR_OP_pow, x, degree);
  for (uint32_t i = 1; i < (uint32_t)degree; i++) y = onnx_2(c, IR_OP_mul, y, x);
  return y;
}

/* [rows, vectors]: LINEAR x v, POLY (gamma x v + coef0) ^ degree, RBF exp(-gamma |x - v|^2), SIGMOID tanh(gamma x v + coef0). */
static uint32_t kernel(onnx_call *c, uint32_t x, uint32_t vectors) {
  const char *type = onnx_text(c, "kernel_type", "LINEAR");
  const bool linear = !strcmp(type, "LINEAR");
  const double *given = linear ? NULL : reals(c, "kernel_params", 3);
  if (linear) onnx_ignore(c, "kernel_params");
  if (!linear && !given) return 0;
  if (!strcmp(type, "RBF")) {
    const uint32_t apart = onnx_2(c, IR_OP_sub, onnx_with_axis(c, x, 1), vectors);
    return onnx_1(c, IR_OP_exp,
                  onnx_2n(c, IR_OP_mul, onnx_reduce(c, IR_OP_reduce_sum, onnx_2(c, IR_OP_mul, apart, apart), 1u << 2, false), -given[0]));
  }
  uint32_t y = onnx_add(c, "matmul %%%u, %%%u, transpose_b", x, vectors);
  if (linear) return y;
  y = onnx_2n(c, IR_OP_add, onnx_2n(c, IR_OP_mul, y, given[0]), given[1]);
  if (!strcmp(type, "POLY")) return power(c, y, given[2]);
  return !strcmp(type, "SIGMOID") ? onnx_1(c, IR_OP_tanh, y) : (onnx_refuse(c, "kernel_type %.20s", type), 0);
}

/* Rows of f32 of a fixed number of columns; 0 after refusing. */
static uint32_t rows_in(onnx_call *c, int64_t *features) {
  const uint32_t x = onnx_cast(c, onnx_rows_in(c), SNT_F32);
  if (!x) return 0;
  if (expr_is_const(c->g->pool, onnx_type_of(c, x)->dims[1], features) && *features > 0 && *features < UINT16_MAX) return x;
  return onnx_refuse(c, "the number of columns must be fixed"), 0;
}

static uint32_t kernel_in(onnx_call *c, uint32_t vectors) {
  int64_t features;
  const uint32_t x = rows_in(c, &features);
  if (!x || vectors < 1 || vectors > UINT16_MAX) return x ? (onnx_refuse(c, "%u support vectors", vectors), 0) : 0;
  const uint32_t support = constant(c, "support_vectors", vectors, (uint32_t)features);
  return support ? kernel(c, x, support) : 0;
}

static uint32_t add_constant(onnx_call *c, uint32_t y, const char *name, uint32_t columns) {
  return y ? onnx_2(c, IR_OP_add, y, constant(c, name, 1, columns)) : 0;
}

/* Without support vectors `coefficients` is the one that rows are compared with. */
static uint32_t plain_kernel(onnx_call *c) {
  int64_t features;
  const uint32_t x = rows_in(c, &features), only = x ? constant(c, "coefficients", 1, (uint32_t)features) : 0;
  onnx_ignore(c, "support_vectors");
  return only ? kernel(c, x, only) : 0;
}

bool onnx_op_svm_regressor(onnx_call *c) {
  const int64_t vectors = onnx_int(c, "n_supports", 0), one_class = onnx_int(c, "one_class", 0);
  const char *after = onnx_text(c, "post_transform", "NONE");
  if (strcmp(after, "NONE") != 0) return onnx_refuse(c, "post_transform %.20s", after);
  uint32_t y = vectors ? kernel_in(c, vectors < 0 || vectors > UINT16_MAX ? 0 : (uint32_t)vectors) : plain_kernel(c);
  if (y && vectors) y = onnx_add(c, "matmul %%%u, %%%u, transpose_b", y, constant(c, "coefficients", 1, (uint32_t)vectors));
  y = add_constant(c, y, "rho", 1);
  if (y && one_class) y = onnx_select(c, onnx_2n(c, IR_OP_gt, y, 0), onnx_like(c, y, 1), onnx_like(c, y, -1));
  return y && onnx_out(c, 0, y);
}

/* ---- classes ---- */
typedef struct machine {
  uint32_t classes, vectors, pairs, first[MOST_CLASSES + 1]; /* vectors lie class by class */
  uint32_t scores;                                           /* [rows, pairs]: above 0 a vote for the first of the two */
} machine;

static bool read_classes(onnx_call *c, machine *m) {
  const onnx_attr *a = onnx_find_attr(c, "vectors_per_class");
  m->classes = a && a->kind == ONNX_INTS ? a->ints.count : 0;
  if (m->classes < 2 || m->classes > MOST_CLASSES) return onnx_refuse(c, "support vectors of %u classes", m->classes);
  for (uint32_t i = 0; i < m->classes; i++) {
    if (a->ints.at[i] < 0 || a->ints.at[i] > UINT16_MAX) return onnx_refuse(c, "vectors_per_class[%u]", i);
    m->first[i + 1] = m->first[i] + (uint32_t)a->ints.at[i];
  }
  m->vectors = m->first[m->classes], m->pairs = m->classes * (m->classes - 1) / 2;
  return true;
}

/* Of classes i < j the vectors of both weigh, those of i by the coefficients' row j - 1, those of j by row i. */
static bool score_pairs(onnx_call *c, machine *m) {
  const uint32_t k = kernel_in(c, m->vectors);
  const double *a = k ? reals(c, "coefficients", (m->classes - 1) * m->vectors) : NULL;
  double *weights = a ? room(c, m->pairs * m->vectors) : NULL, *row = weights;
  if (!weights) return false;
  memset(weights, 0, (size_t)m->pairs * m->vectors * sizeof *weights);
  for (uint32_t i = 0; i < m->classes; i++)
    for (uint32_t j = i + 1; j < m->classes; j++, row += m->vectors) {
      for (uint32_t v = m->first[i]; v < m->first[i + 1]; v++) row[v] = a[(j - 1) * m->vectors + v];
      for (uint32_t v = m->first[j]; v < m->first[j + 1]; v++) row[v] = a[i * m->vectors + v];
    }
  m->scores = add_constant(c, onnx_add(c, "matmul %%%u, %%%u, transpose_b", k, table(c, m->pairs, m->vectors, weights)), "rho", m->pairs);
  return m->scores != 0;
}

/* [rows]: the class with most votes. */
static uint32_t count_votes(onnx_call *c, const machine *m) {
  double *for_first = room(c, m->pairs * m->classes), *for_second = room(c, m->classes), *row = for_first;
  if (!for_first || !for_second) return 0;
  memset(for_first, 0, (size_t)m->pairs * m->classes * sizeof *for_first), memset(for_second, 0, m->classes * sizeof *for_second);
  for (uint32_t i = 0; i < m->classes; i++)
    for (uint32_t j = i + 1; j < m->classes; j++, row += m->classes) row[i] = 1, row[j] = -1, for_second[j]++;
  const uint32_t flags = onnx_cast(c, onnx_2n(c, IR_OP_gt, m->scores, 0), SNT_F32);
  const uint32_t votes = flags ? onnx_add(c, "matmul %%%u, %%%u", flags, table(c, m->pairs, m->classes, for_first)) : 0;
  return votes ? onnx_add(c, "argmax %%%u, axis=-1", onnx_2(c, IR_OP_add, votes, table(c, 1, m->classes, for_second))) : 0;
}

/* [rows, classes, classes]: how probable class i is beside j, by each pair's logistic; 0 on the diagonal. */
static uint32_t probable_pairs(onnx_call *c, const machine *m) {
  const uint32_t n = m->classes;
  double *number = room(c, n * n), *upper = room(c, n * n), *lower = room(c, n * n);
  if (!number || !upper || !lower) return 0;
  for (uint32_t i = 0, pair = 0; i < n; i++)
    for (uint32_t j = i; j < n; j++) {
      number[i * n + j] = number[j * n + i] = i == j ? 0 : pair++;
      upper[i * n + j] = lower[j * n + i] = i != j, upper[j * n + i] = lower[i * n + j] = 0;
    }
  const uint32_t z = add_constant(c, onnx_2(c, IR_OP_mul, m->scores, constant(c, "prob_a", 1, m->pairs)), "prob_b", m->pairs);
  uint32_t p = z ? onnx_add(c, "sigmoid %%%u", onnx_1(c, IR_OP_neg, z)) : 0;
  p = onnx_2n(c, IR_OP_min, onnx_2n(c, IR_OP_max, p, 1e-7), 1 - 1e-7);
  p = onnx_gather(c, p, onnx_data(c, &(ir_tensor){.dtype = SNT_I32, .rank = 1, .dims = {n * n}}, number), 1);
  if (!p) return 0;
  const uint32_t first = onnx_2(c, IR_OP_mul, p, table(c, 1, n * n, upper));
  const uint32_t second = onnx_2(c, IR_OP_mul, onnx_2(c, IR_OP_sub, onnx_like(c, p, 1), p), table(c, 1, n * n, lower));
  const uint32_t both = onnx_2(c, IR_OP_add, first, second);
  return both ? onnx_reshape(c, both, 3, (const ir_expr[]){onnx_type_of(c, both)->dims[0], n, n}) : 0;
}

/* Q of the paper's (21): squares of the others' down the diagonal, less products of both elsewhere. */
static uint32_t coupling(onnx_call *c, const machine *m, uint32_t r) {
  static const uint32_t perm[] = {0, 2, 1};
  const uint32_t n = m->classes, squares = onnx_reduce(c, IR_OP_reduce_sum, onnx_2(c, IR_OP_mul, r, r), 1u << 1, false);
  double *one = room(c, n * n);
  if (!one || !squares) return 0;
  for (uint32_t i = 0; i < n * n; i++) one[i] = i % (n + 1) == 0;
  const uint32_t down = onnx_2(c, IR_OP_mul, onnx_with_axis(c, squares, 1), table(c, n, n, one));
  return onnx_2(c, IR_OP_sub, down, onnx_2(c, IR_OP_mul, r, onnx_transpose(c, r, perm)));
}

/* One trip of the algorithm over p [rows, classes]: rows that are near enough stay. *active: those that are not. */
static uint32_t couple(onnx_call *c, const machine *m, uint32_t q, uint32_t p, uint32_t *active) {
  const uint32_t n = m->classes, was = p;
  uint32_t qp = onnx_reduce(c, IR_OP_reduce_sum, onnx_2(c, IR_OP_mul, q, onnx_with_axis(c, p, 1)), 1u << 2, false);
  uint32_t pqp = onnx_reduce(c, IR_OP_reduce_sum, onnx_2(c, IR_OP_mul, p, qp), 1u << 1, true);
  const uint32_t off = onnx_reduce(c, IR_OP_reduce_max, onnx_1(c, IR_OP_abs, onnx_2(c, IR_OP_sub, qp, pqp)), 1u << 1, true);
  *active = onnx_2n(c, IR_OP_ge, off, 0.005 / n);
  for (uint32_t t = 0; t < n; t++) {
    double here[MOST_CLASSES] = {0};
    here[t] = 1;
    const uint32_t row = onnx_slice(c, q, 1, t, 1, 1),
                   q_row = row ? onnx_reshape(c, row, 2, (const ir_expr[]){onnx_type_of(c, row)->dims[0], n}) : 0;
    const uint32_t own = onnx_slice(c, q_row, 1, t, 1, 1), qp_own = onnx_slice(c, qp, 1, t, 1, 1);
    const uint32_t step = onnx_2(c, IR_OP_div, onnx_2(c, IR_OP_sub, pqp, qp_own), own), whole = onnx_2n(c, IR_OP_add, step, 1);
    const uint32_t more = onnx_2(c, IR_OP_add, onnx_2(c, IR_OP_mul, step, own), onnx_2n(c, IR_OP_mul, qp_own, 2));
    pqp = onnx_2(c, IR_OP_div, onnx_2(c, IR_OP_div, onnx_2(c, IR_OP_add, pqp, onnx_2(c, IR_OP_mul, step, more)), whole), whole);
    qp = onnx_2(c, IR_OP_div, onnx_2(c, IR_OP_add, qp, onnx_2(c, IR_OP_mul, step, q_row)), whole);
    p = onnx_2(c, IR_OP_div, onnx_2(c, IR_OP_add, p, onnx_2(c, IR_OP_mul, step, table(c, 1, n, here))), whole);
  }
  return onnx_select(c, *active, p, was);
}

static uint32_t probabilities(onnx_call *c, const machine *m) {
  const uint32_t r = probable_pairs(c, m), q = r ? coupling(c, m, r) : 0;
  const ir_tensor type = {.dtype = SNT_F32, .rank = 2, .dims = {q ? onnx_type_of(c, q)->dims[0] : 0, m->classes}};
  const uint32_t initial[] = {q ? onnx_fill(c, &type, 1.0 / m->classes) : 0, onnx_scalar(c, SNT_BOOL, 1)};
  uint32_t inside[2], results[2], active;
  if (!q || !initial[0] || !initial[1]) return 0;
  ir_repeat_begin(c->g, 2, initial, expr_int(c->g->pool, m->classes > 100 ? m->classes : 100), inside);
  ir_repeat_while(c->g, 1);
  const uint32_t p = couple(c, m, q, inside[0], &active);
  const uint32_t any = onnx_reduce(c, IR_OP_reduce_max, onnx_cast(c, active, SNT_I32), 3, false),
                 next[] = {p, onnx_2n(c, IR_OP_gt, any, 0)};
  ir_repeat_end(c->g, 2, p && next[1] ? next : inside, results);
  return p && next[1] ? results[0] : 0;
}

/* The votes' label, and beside it probabilities where pairs have them, else the pairs' scores; of two classes -s and s. */
bool onnx_op_svm_classifier(onnx_call *c) {
  const onnx_attr *a = onnx_find_attr(c, "prob_a");
  const char *after = onnx_text(c, "post_transform", "NONE");
  machine m = {0};
  if (strcmp(after, "NONE") != 0) return onnx_refuse(c, "post_transform %.20s", after);
  if (!read_classes(c, &m) || !score_pairs(c, &m) || !onnx_give_labels(c, "classlabels_ints", count_votes(c, &m), m.classes)) return false;
  if (a && a->floats.count) return onnx_out(c, 1, probabilities(c, &m));
  const uint32_t parts[] = {onnx_1(c, IR_OP_neg, m.scores), m.scores};
  return onnx_out(c, 1, m.classes == 2 ? onnx_concat(c, 1, 2, parts) : m.scores);
}
