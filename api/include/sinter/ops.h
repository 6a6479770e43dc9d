/* Each operator as a function: snt_add(g, a, b), snt_reduce_sum(g, x, "axes=[1], keep"), snt_softmax(g, x, "axis=1"). Generated from the
   tables that the library itself is made of. Operators that have attributes take them as text, last; null: none. Operands that a
   composite may go without are 0 (snt_layernorm(g, x, 0, 0, NULL)). A mistake gives 0 and sticks in the graph, as snt_graph_op's do.
   Sources, loops and operators of several results are not here: see snt_graph_input, snt_graph_constant, snt_graph_parse. */
#ifndef SINTER_OPS_H
#define SINTER_OPS_H
#include <sinter/sinter.h>

/* A primitive's name in the text form: with dots. */
static inline snt_value snt_ops_call(snt_graph *g, const char *name, const snt_value *args, uint32_t count, const char *attributes) {
  char text[40];
  uint32_t i = 0;
  for (; name[i] && i < sizeof text - 1; i++) text[i] = name[i] == '_' ? '.' : name[i];
  text[i] = 0;
  return snt_graph_op(g, text, args, count, attributes);
}
/* A composite, without the operands that are left out at the end. */
static inline snt_value snt_ops_composite(snt_graph *g, const char *name, const snt_value *args, uint32_t least, uint32_t most,
                                          const char *attributes) {
  while (most > least && !args[most - 1]) most--;
  return snt_graph_op(g, name, args, most, attributes);
}

/* By whether there are attributes (a cell of 0, or A(axis)|..) and by the number of operands. */
#define SNT_OPS_IF_0 0, PLAIN, 0
#define SNT_OPS_IF_A(key) 0, WITH, 0
#define SNT_OPS_IF_P(key) 0, WITH, 0
#define SNT_OPS_SECOND(...) SNT_OPS_SECOND_(__VA_ARGS__)
#define SNT_OPS_SECOND_(first, second, ...) second
#define SNT_OPS_PLAIN_0(function, name)
#define SNT_OPS_WITH_0(function, name)
#define SNT_OPS_WITH_VARIADIC(function, name)                                                                       \
  static inline snt_value function(snt_graph *g, const snt_value *values, uint32_t count, const char *attributes) { \
    return snt_ops_call(g, name, values, count, attributes);                                                        \
  }
#define SNT_OPS_PLAIN_1(function, name)                         \
  static inline snt_value function(snt_graph *g, snt_value a) { \
    const snt_value v[1] = {a};                                 \
    return snt_ops_call(g, name, v, 1, 0);                      \
  }
#define SNT_OPS_PLAIN_2(function, name)                                      \
  static inline snt_value function(snt_graph *g, snt_value a, snt_value b) { \
    const snt_value v[2] = {a, b};                                           \
    return snt_ops_call(g, name, v, 2, 0);                                   \
  }
#define SNT_OPS_PLAIN_3(function, name)                                                   \
  static inline snt_value function(snt_graph *g, snt_value a, snt_value b, snt_value c) { \
    const snt_value v[3] = {a, b, c};                                                     \
    return snt_ops_call(g, name, v, 3, 0);                                                \
  }
#define SNT_OPS_WITH_1(function, name)                                                  \
  static inline snt_value function(snt_graph *g, snt_value a, const char *attributes) { \
    const snt_value v[1] = {a};                                                         \
    return snt_ops_call(g, name, v, 1, attributes);                                     \
  }
#define SNT_OPS_WITH_2(function, name)                                                               \
  static inline snt_value function(snt_graph *g, snt_value a, snt_value b, const char *attributes) { \
    const snt_value v[2] = {a, b};                                                                   \
    return snt_ops_call(g, name, v, 2, attributes);                                                  \
  }
#define SNT_OPS_WITH_3(function, name)                                                                            \
  static inline snt_value function(snt_graph *g, snt_value a, snt_value b, snt_value c, const char *attributes) { \
    const snt_value v[3] = {a, b, c};                                                                             \
    return snt_ops_call(g, name, v, 3, attributes);                                                               \
  }
#define SNT_OPS_C_PLAIN_1(function, name, least)                \
  static inline snt_value function(snt_graph *g, snt_value a) { \
    const snt_value v[1] = {a};                                 \
    return snt_ops_composite(g, name, v, least, 1, 0);          \
  }
#define SNT_OPS_C_PLAIN_2(function, name, least)                             \
  static inline snt_value function(snt_graph *g, snt_value a, snt_value b) { \
    const snt_value v[2] = {a, b};                                           \
    return snt_ops_composite(g, name, v, least, 2, 0);                       \
  }
#define SNT_OPS_C_PLAIN_3(function, name, least)                                          \
  static inline snt_value function(snt_graph *g, snt_value a, snt_value b, snt_value c) { \
    const snt_value v[3] = {a, b, c};                                                     \
    return snt_ops_composite(g, name, v, least, 3, 0);                                    \
  }
#define SNT_OPS_C_PLAIN_4(function, name, least)                                                       \
  static inline snt_value function(snt_graph *g, snt_value a, snt_value b, snt_value c, snt_value d) { \
    const snt_value v[4] = {a, b, c, d};                                                               \
    return snt_ops_composite(g, name, v, least, 4, 0);                                                 \
  }
#define SNT_OPS_C_PLAIN_5(function, name, least)                                                                    \
  static inline snt_value function(snt_graph *g, snt_value a, snt_value b, snt_value c, snt_value d, snt_value e) { \
    const snt_value v[5] = {a, b, c, d, e};                                                                         \
    return snt_ops_composite(g, name, v, least, 5, 0);                                                              \
  }
#define SNT_OPS_C_WITH_1(function, name, least)                                         \
  static inline snt_value function(snt_graph *g, snt_value a, const char *attributes) { \
    const snt_value v[1] = {a};                                                         \
    return snt_ops_composite(g, name, v, least, 1, attributes);                         \
  }
#define SNT_OPS_C_WITH_2(function, name, least)                                                      \
  static inline snt_value function(snt_graph *g, snt_value a, snt_value b, const char *attributes) { \
    const snt_value v[2] = {a, b};                                                                   \
    return snt_ops_composite(g, name, v, least, 2, attributes);                                      \
  }
#define SNT_OPS_C_WITH_3(function, name, least)                                                                   \
  static inline snt_value function(snt_graph *g, snt_value a, snt_value b, snt_value c, const char *attributes) { \
    const snt_value v[3] = {a, b, c};                                                                             \
    return snt_ops_composite(g, name, v, least, 3, attributes);                                                   \
  }
#define SNT_OPS_C_WITH_4(function, name, least)                                                                                \
  static inline snt_value function(snt_graph *g, snt_value a, snt_value b, snt_value c, snt_value d, const char *attributes) { \
    const snt_value v[4] = {a, b, c, d};                                                                                       \
    return snt_ops_composite(g, name, v, least, 4, attributes);                                                                \
  }
#define SNT_OPS_C_WITH_5(function, name, least)                                                                   \
  static inline snt_value function(snt_graph *g, snt_value a, snt_value b, snt_value c, snt_value d, snt_value e, \
                                   const char *attributes) {                                                      \
    const snt_value v[5] = {a, b, c, d, e};                                                                       \
    return snt_ops_composite(g, name, v, least, 5, attributes);                                                   \
  }
#define SNT_OPS_ROW(kind, arity, function, name) SNT_OPS_ROW_(kind, arity, function, name)
#define SNT_OPS_ROW_(kind, arity, function, name) SNT_OPS_##kind##_##arity(function, name)
#define SNT_OPS_RESULTS_1(kind, most, function, name, least) SNT_OPS_RESULTS_1_(kind, most, function, name, least)
#define SNT_OPS_RESULTS_1_(kind, most, function, name, least) SNT_OPS_C_##kind##_##most(function, name, least)
#define SNT_OPS_RESULTS_2(kind, most, function, name, least)
#define SNT_OPS_RESULTS_3(kind, most, function, name, least)

#define OP(name, arity, rule, flags, types, attrs, ulp, feval, ieval) \
  SNT_OPS_ROW(SNT_OPS_SECOND(SNT_OPS_IF_##attrs, 0), arity, snt_##name, #name)
#include <sinter/ops.def>
#undef OP
#define COMPOSITE(name, least, most, results, params, doc) \
  SNT_OPS_RESULTS_##results(SNT_OPS_SECOND(SNT_OPS_IF_##params, 0), most, snt_##name, #name, least)
#include <sinter/composites.def>
#undef COMPOSITE
#endif
