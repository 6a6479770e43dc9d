/* Attention found from primitives: a contraction (scores) whose rows run through pointwise operators and reductions and end in a contraction over the
   same axis (values). By the online rule (ir/online.def in words): with w(k) = exp(c a(k) + r), r any value of the row alone, a running extremum m of a
   stands in for r; sums and results of w are rescaled by exp(c (m - m')) when it moves and corrected by the true r at the end.
   In: the values contraction. Out: the roles of the nodes, and where each is read, over one variable a label. */
#ifndef FUSION_ATTENTION_H
#define FUSION_ATTENTION_H
#include "fusion/fusion.h"

enum {
  ATTENTION_NODES = 96,
  ATTENTION_EXPS = 4,
  ATTENTION_REDUCES = 8,
  ATTENTION_FACTORS = 4,
  ATTENTION_REFERENCES = 8,
  ATTENTION_CHOICES = 2
};

typedef enum {
  ATTENTION_FREE,    /* does not depend on the scores */
  ATTENTION_SCORE,   /* pointwise in the scores of one key */
  ATTENTION_ROW,     /* one value a row, from its reductions */
  ATTENTION_SHIFTED, /* c a(k) + values of the row */
  ATTENTION_WEIGHT,  /* linear in exp of a shifted one (or in a score itself), times values of the row */
  ATTENTION_BAD
} attention_kind;

typedef struct attention_node {
  uint32_t node;
  uint8_t kind, member;
  int8_t sign;       /* shifted: of c */
  uint8_t exp;       /* weight: 1 + its exp; 0: none */
  uint8_t waiting;   /* weight: how many factors of the row are left out of it */
  bool chosen;       /* weight: 0 at keys that a condition leaves out, before anything of the row is left out of it */
  uint32_t argument; /* shifted: the node of a(k) */
  map_access at;
} attention_node;

/* A value of the row inside a shifted one: while keys are swept it is `0`, or the running extremum where it stands beside a(k) itself. */
typedef struct attention_reference {
  uint32_t node;
  map_access at;
  int8_t use; /* 1: the extremum, -1: its negative, 0: zero */
} attention_reference;

typedef struct attention_exp {
  uint32_t node, shifted;
  bool exact; /* its reference is the extremum itself: no correction at the end */
} attention_exp;

typedef struct attention {
  uint32_t values, scores;         /* the two contractions */
  uint32_t weights, value_operand; /* operand numbers of `values` */
  uint32_t query_operand;          /* operand number of `scores`; the other holds the keys */
  uint32_t label_count;            /* axes of the result */
  uint32_t inner;                  /* label of `scores` that is summed */
  int32_t row, depth;              /* axis of the result along the queries; along the values' width */
  ir_expr key, keys;               /* variable and extent of the axis that is summed */
  ir_expr inner_extent;
  uint32_t argument; /* a(k); 0: weights are not exponentials */
  bool smallest;     /* the extremum is the minimum */
  uint32_t exp_count, max_count, sum_count, factor_count, reference_count, choice_count;
  uint8_t chosen_after;        /* how many factors the choices wait for */
  uint8_t weight_exp;          /* of the weights: 1 + exp */
  ir_expr label[SNT_MAX_RANK]; /* variable of each, 0 where the extent is 1 */
  ir_expr extent[SNT_MAX_RANK];
  uint32_t
      choices[ATTENTION_CHOICES]; /* selects of weights that wait for factors: what they leave out is 0 even where a factor is no number */
  attention_exp exps[ATTENTION_EXPS];
  uint32_t maxes[ATTENTION_REDUCES];
  uint32_t sums[ATTENTION_REDUCES];
  uint8_t sum_exp[ATTENTION_REDUCES]; /* 1 + exp */
  struct {
    uint32_t node;
    map_access at;
    bool divides;
  } factors[ATTENTION_FACTORS]; /* values of the row that multiply or divide the weights: applied to the result */
  attention_reference references[ATTENTION_REFERENCES];
  uint32_t count;
  uint64_t seen[4]; /* by the low bits of a node's number: one that is not here is not among the nodes */
  attention_node nodes[ATTENTION_NODES];
} attention;

/* Finds the pattern around `values`. With a group: its members alone are inside. Without: what no one else reads is inside, and `members` lists it. */
bool attention_find(const fusion_context *, const fusion_group *, const ir_uses *, uint32_t values, attention *out, const char **why_not);
/* Members in graph order, `values` included. Null: host memory. */
const uint32_t *attention_members(const fusion_context *, const attention *, uint32_t *count);
const attention_node *attention_at(const attention *, uint32_t node);
#endif
