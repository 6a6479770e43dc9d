/* Recurrent layers: x [steps, batch, in], w [directions, gates * hidden, in], r [directions, gates * hidden, hidden] [, bias [directions,
   2 * gates * hidden], lengths [batch], h [directions, batch, hidden], c, peepholes]. The product with w covers all steps at once; the
   steps are a repeat (few of them may be launches of their own: fusion/outline.c). Past its length a sequence keeps its state and gives 0. */
#include "ir/composites/private.h"
#include "ir/literal.h"
#include <float.h>

enum { MOST_GATES = 4 };
typedef struct layer layer;
typedef void (*cell_step)(composite_call *, const layer *, uint32_t x, uint32_t state[2]);
struct layer {
  cell_step step;
  uint32_t gates, states; /* 2 states: h and the cell */
  const char *defaults;   /* activations of one direction */
  ir_expr steps, batch, in, hidden;
  uint32_t directions;
  uint32_t x, factors, lengths; /* [steps, batch, in], and it in products; i32 [batch] or 0 */
  /* of the direction at hand */
  bool backwards;
  const char *activations;
  uint32_t r, bias[2], peepholes; /* [gates * hidden, hidden]; [gates * hidden] */
};

static uint32_t mul(composite_call *c, uint32_t a, uint32_t b) { return step_2(c, IR_OP_mul, a, b); }
static uint32_t add(composite_call *c, uint32_t a, uint32_t b) { return step_2(c, IR_OP_add, a, b); }

/* ---- activations ---- */
static void put_sigmoid(composite_call *c) { c->results[0] = step_1(c, IR_OP_sigmoid, c->args[0]); }
static void put_tanh(composite_call *c) { c->results[0] = step_1(c, IR_OP_tanh, c->args[0]); }
static void put_affine(composite_call *c) {
  const uint32_t scaled = step_2n(c, IR_OP_mul, c->args[0], call_number(c, IR_PARAM_alpha, 1));
  c->results[0] = step_2n(c, IR_OP_add, scaled, call_number(c, IR_PARAM_beta, 0));
}
static void put_scaled_tanh(composite_call *c) {
  const uint32_t inner = step_2n(c, IR_OP_mul, c->args[0], call_number(c, IR_PARAM_beta, 1));
  c->results[0] = step_2n(c, IR_OP_mul, step_1(c, IR_OP_tanh, inner), call_number(c, IR_PARAM_alpha, 1));
}
/* numbers: 1: takes alpha; 2: beta, too */
static const struct {
  const char *name;
  composite_build put;
  uint32_t numbers;
} functions[] = {{"sigmoid", put_sigmoid, 0},
                 {"tanh", put_tanh, 0},
                 {"relu", build_relu, 0},
                 {"elu", build_elu, 1},
                 {"softsign", build_softsign, 0},
                 {"softplus", build_softplus, 0},
                 {"leakyrelu", build_leaky_relu, 1},
                 {"thresholdedrelu", build_thresholded_relu, 1},
                 {"hardsigmoid", build_hardsigmoid, 2},
                 {"affine", put_affine, 2},
                 {"scaledtanh", put_scaled_tanh, 2}};

static uint32_t find_function(const char *name, size_t length) {
  uint32_t i = 0;
  while (i < IR_COUNT(functions) && (strlen(functions[i].name) != length || memcmp(functions[i].name, name, length) != 0)) i++;
  return i;
}

uint32_t ir_activation_numbers(const char *name) {
  const uint32_t found = find_function(name, strlen(name));
  return found < IR_COUNT(functions) ? functions[found].numbers : 0;
}

/* Activation `which` of the direction: the words are separated by commas, each a name and the numbers it takes, :alpha:beta. */
static uint32_t activated(composite_call *c, const layer *l, uint32_t which, uint32_t x) {
  static const ir_param_key keys[] = {IR_PARAM_alpha, IR_PARAM_beta};
  const char *word = l->activations;
  for (uint32_t i = 0; i < which && word; i++) word = strchr(word, ',') ? strchr(word, ',') + 1 : NULL;
  const char *at = word ? word + strcspn(word, ",:") : NULL, *end = word ? word + strcspn(word, ",") : NULL;
  const uint32_t found = word ? find_function(word, (size_t)(at - word)) : IR_COUNT(functions);
  composite_call inner = {.g = c->g, .info = c->info, .arg_count = 1, .args = {x}};
  ir_param numbers[IR_COUNT(keys)];
  uint32_t count = 0;
  bool good = found < IR_COUNT(functions);
  for (; good && at < end; count++) {
    ir_number number;
    uint64_t bits;
    at++;
    good = count < functions[found].numbers && ir_read_number(&at, end, &number) && ir_number_bits(&number, SNT_F64, &bits);
    if (!good) break;
    memcpy(&numbers[count].number, &bits, sizeof bits);
    inner.params[keys[count]] = &numbers[count];
  }
  if (!good) return call_mistake(c, "unknown or missing activation %.*s", word ? (int)(end - word) : 0, word ? word : "");
  if (x) functions[found].put(&inner);
  return inner.results[0];
}

/* ---- cells ---- */
static uint32_t gate_of(composite_call *c, const layer *l, uint32_t v, uint32_t gate) {
  const uint32_t axis = type_of(c, v)->rank - 1u;
  return step_slice(c, v, axis, expr_mul(c->g->pool, gate, l->hidden), l->hidden, 1);
}

static uint32_t limited(composite_call *c, uint32_t x) {
  const double bound = call_number(c, IR_PARAM_high, 0);
  return bound > 0 ? step_2n(c, IR_OP_min, step_2n(c, IR_OP_max, x, -bound), bound) : x;
}

/* What a product with codes reads of v: the 256 numbers between its least and its greatest value, or 0; all zeros have no step. They stay bytes times a
   scale, so that products with weights that are so, too, may be of bytes. */
static uint32_t factor(composite_call *c, uint32_t v) {
  if (!v || !call_has(c, IR_PARAM_quantize)) return v;
  const uint32_t all = (1u << type_of(c, v)->rank) - 1;
  const uint32_t low = step_2n(c, IR_OP_min, step_reduce(c, IR_OP_reduce_min, v, all, false), 0);
  const uint32_t high = step_2n(c, IR_OP_max, step_reduce(c, IR_OP_reduce_max, v, all, false), 0);
  const uint32_t scale = step_2n(c, IR_OP_max, step_2n(c, IR_OP_div, step_2(c, IR_OP_sub, high, low), 255), FLT_MIN);
  const uint32_t zero = step_cast(c, step_1(c, IR_OP_round, step_1(c, IR_OP_neg, step_2(c, IR_OP_div, low, scale))), SNT_U8);
  composite_call inner = {.g = c->g, .info = c->info, .arg_count = 3, .args = {v, scale, zero}};
  build_quantize(&inner);
  inner.args[0] = inner.results[0];
  build_dequantize(&inner);
  return inner.results[0];
}

/* state [batch, hidden] times rows `gate` .. of r */
static uint32_t recurred(composite_call *c, const layer *l, uint32_t state, uint32_t gate, uint32_t gates) {
  const contract_desc d = {.lhs = {{0, 2}, 2}, .rhs = {{1, 2}, 2}, .out = {{0, 1}, 2}};
  const ir_expr size = expr_mul(c->g->pool, gates, l->hidden);
  const uint32_t rows = gates == l->gates ? l->r : step_slice(c, l->r, 0, expr_mul(c->g->pool, gate, l->hidden), size, 1);
  return step_contract(c, factor(c, state), rows, &d);
}

static void rnn_step(composite_call *c, const layer *l, uint32_t x, uint32_t state[2]) {
  state[0] = activated(c, l, 0, limited(c, add(c, recurred(c, l, state[0], 0, 1), x)));
}

static uint32_t peeped(composite_call *c, const layer *l, uint32_t x, uint32_t cell, uint32_t which) {
  if (!l->peepholes) return x;
  const uint32_t weights = gate_of(c, l, l->peepholes, which);
  return add(c, x, mul(c, cell, weights));
}

/* Gates in the order i o f c; peepholes i o f. */
static void lstm_step(composite_call *c, const layer *l, uint32_t x, uint32_t state[2]) {
  uint32_t gate[MOST_GATES];
  const uint32_t all = recurred(c, l, state[0], 0, 4), cell = state[1];
  for (uint32_t i = 0; i < 4; i++) {
    const uint32_t own = gate_of(c, l, x, i);
    gate[i] = add(c, gate_of(c, l, all, i), own);
  }
  const uint32_t in = activated(c, l, 0, limited(c, peeped(c, l, gate[0], cell, 0)));
  const uint32_t forget = call_has(c, IR_PARAM_input_forget) ? step_2(c, IR_OP_sub, step_number(c, in, 1), in)
                                                             : activated(c, l, 0, limited(c, peeped(c, l, gate[2], cell, 2)));
  const uint32_t fresh = mul(c, in, activated(c, l, 1, limited(c, gate[3])));
  state[1] = add(c, fresh, mul(c, forget, cell));
  const uint32_t out = activated(c, l, 0, limited(c, peeped(c, l, gate[1], state[1], 1)));
  state[0] = mul(c, out, activated(c, l, 2, state[1]));
}

/* Gates in the order z r h. */
static void gru_step(composite_call *c, const layer *l, uint32_t x, uint32_t state[2]) {
  const uint32_t h = state[0], zr = recurred(c, l, h, 0, 2);
  uint32_t gate[2];
  for (uint32_t i = 0; i < 2; i++) {
    const uint32_t own = gate_of(c, l, x, i);
    gate[i] = activated(c, l, 0, limited(c, add(c, gate_of(c, l, zr, i), own)));
  }
  const uint32_t z = gate[0], r = gate[1];
  const uint32_t bias = l->bias[1] ? gate_of(c, l, l->bias[1], 2) : 0;
  const bool late = call_has(c, IR_PARAM_linear_before_reset);
  uint32_t past = recurred(c, l, late ? h : mul(c, r, h), 2, 1);
  if (bias) past = add(c, past, bias);
  if (late) past = mul(c, r, past);
  const uint32_t fresh = activated(c, l, 1, limited(c, add(c, gate_of(c, l, x, 2), past)));
  const uint32_t kept = mul(c, z, h), left = step_2(c, IR_OP_sub, step_number(c, z, 1), z);
  state[0] = add(c, kept, mul(c, left, fresh));
}

/* ---- sequences ---- */
/* `fresh` for sequences longer than t, else `old`. */
static uint32_t while_running(composite_call *c, const layer *l, uint32_t t, uint32_t fresh, uint32_t old) {
  if (!l->lengths || !fresh || !old) return fresh;
  const ir_tensor shape = *type_of(c, fresh);
  const uint32_t running = step_2(c, IR_OP_lt, t, l->lengths);
  return step_select(c, step_along(c, running, 0, &shape), fresh, old);
}

/* One step at position t (i32): the new states, and in `y` what the step gives. */
static void advance(composite_call *c, const layer *l, uint32_t t, uint32_t x, uint32_t state[2], uint32_t *y) {
  const uint32_t old[] = {state[0], state[1]};
  l->step(c, l, x, state);
  const uint32_t none = l->lengths ? step_number(c, state[0], 0) : 0;
  if (l->lengths && state[0]) {
    const ir_tensor shape = *type_of(c, state[0]);
    *y = while_running(c, l, t, state[0], step_broadcast(c, none, &shape));
  } else {
    *y = state[0];
  }
  for (uint32_t i = 0; i < l->states; i++) state[i] = while_running(c, l, t, state[i], old[i]);
}

static uint32_t without_axis(composite_call *c, uint32_t v, uint32_t axis) {
  if (!v) return 0;
  ir_tensor type = *type_of(c, v);
  for (uint32_t i = axis; i + 1 < type.rank; i++) type.dims[i] = type.dims[i + 1];
  return step_reshape(c, v, type.rank - 1u, type.dims);
}

static uint32_t with_axis(composite_call *c, uint32_t v, uint32_t axis) {
  if (!v) return 0;
  ir_tensor type = *type_of(c, v);
  for (uint32_t i = type.rank; i > axis; i--) type.dims[i] = type.dims[i - 1];
  type.dims[axis] = 1;
  return step_reshape(c, v, type.rank + 1u, type.dims);
}

/* Steps as a repeat that carries the states, the step and y. */
static uint32_t repeat_steps(composite_call *c, const layer *l, uint32_t x, uint32_t state[2]) {
  ir_tensor type = {.dtype = type_of(c, x)->dtype, .rank = 3, .dims = {l->steps, l->batch, l->hidden}};
  const uint32_t first = l->backwards ? step_dim(c, expr_sub(c->g->pool, l->steps, 1), SNT_I32) : ir_add_splat(c->g, SNT_I32, 0);
  const uint32_t empty = step_broadcast(c, ir_add_splat(c->g, type.dtype, 0), &type);
  uint32_t initial[4] = {state[0], first, empty, state[1]}, inside[4], next[4], results[4];
  const uint32_t count = 2 + l->states;
  if (!state[0] || !empty) return 0;
  ir_repeat_begin(c->g, count, initial, l->steps, inside);
  uint32_t now[2] = {inside[0], l->states == 2 ? inside[3] : 0}, y = 0;
  const uint32_t row = step_gather(c, x, inside[1], 0);
  advance(c, l, inside[1], row, now, &y);
  const ir_expr axis = 0;
  const ir_attr_value attr = {IR_ATTR_axis, 1, &axis};
  const uint32_t args[] = {inside[2], inside[1], y};
  next[0] = now[0], next[3] = now[1];
  next[1] = step_2n(c, IR_OP_add, inside[1], l->backwards ? -1 : 1);
  next[2] = y ? ir_add_node(c->g, IR_OP_scatter_set, 3, args, 1, &attr, NULL) : 0;
  if (!ir_repeat_end(c->g, count, next, results)) return 0;
  state[0] = results[0];
  if (l->states == 2) state[1] = results[3];
  return results[2];
}

/* ---- a direction, and all of them ---- */
static uint32_t part_of(composite_call *c, uint32_t v, uint32_t direction) {
  return v ? without_axis(c, step_slice(c, v, 0, direction, 1, 1), 0) : 0;
}

static uint32_t start_state(composite_call *c, const layer *l, uint32_t given, uint32_t direction) {
  const ir_tensor type = {.dtype = type_of(c, l->x)->dtype, .rank = 2, .dims = {l->batch, l->hidden}};
  if (given) return part_of(c, given, direction);
  return step_broadcast(c, ir_add_splat(c->g, type.dtype, 0), &type);
}

/* x times w plus what of the biases does not wait for a state: [steps, batch, gates * hidden]. */
static uint32_t put_inputs(composite_call *c, layer *l, uint32_t direction) {
  const contract_desc d = {.lhs = {{0, 1, 3}, 3}, .rhs = {{2, 3}, 2}, .out = {{0, 1, 2}, 3}};
  const ir_expr width = expr_mul(c->g->pool, l->gates, l->hidden);
  const uint32_t bias = part_of(c, c->args[3], direction);
  uint32_t x = step_contract(c, l->factors, part_of(c, c->args[1], direction), &d);
  l->bias[0] = bias ? step_slice(c, bias, 0, 0, width, 1) : 0;
  l->bias[1] = bias ? step_slice(c, bias, 0, width, width, 1) : 0;
  if (!bias) return x;
  x = add(c, x, l->bias[0]);
  if (l->gates != 3) return add(c, x, l->bias[1]);
  const ir_expr two = expr_mul(c->g->pool, 2, l->hidden); /* the third waits for the reset gate */
  const ir_expr high = l->hidden;
  const ir_attr_value attr = {IR_ATTR_high, 1, &high};
  const uint32_t early = step_slice(c, l->bias[1], 0, 0, two, 1);
  return add(c, x, early ? ir_add_node(c->g, IR_OP_pad, 1, &early, 1, &attr, NULL) : 0);
}

static uint32_t run_direction(composite_call *c, layer *l, uint32_t direction, uint32_t last[2]) {
  const uint32_t x = put_inputs(c, l, direction);
  l->r = part_of(c, c->args[2], direction);
  l->peepholes = l->states == 2 ? part_of(c, c->args[7], direction) : 0;
  last[0] = start_state(c, l, c->args[5], direction);
  last[1] = l->states == 2 ? start_state(c, l, c->args[6], direction) : 0;
  if (!x || !l->r || !last[0]) return 0;
  return repeat_steps(c, l, x, last);
}

/* x, w, r, bias, lengths, h, cell, peepholes */
static bool operands_fit(composite_call *c) {
  static const uint8_t ranks[] = {3, 3, 3, 2, 1, 3, 3, 2};
  for (uint32_t i = 0; i < IR_COUNT(ranks); i++)
    if (c->args[i] && type_of(c, c->args[i])->rank != ranks[i])
      return call_mistake(c, "operand %u has rank %u; it needs rank %u", i + 1, type_of(c, c->args[i])->rank, ranks[i]), false;
  return true;
}

static bool read_layer(composite_call *c, layer *l) {
  const bool batch_first = call_has(c, IR_PARAM_batch_first);
  static const uint32_t swapped[] = {1, 0, 2};
  int64_t directions;
  if (!operands_fit(c)) return false;
  l->x = c->args[0];
  const ir_tensor w = *type_of(c, c->args[1]), r = *type_of(c, c->args[2]);
  if (batch_first) {
    l->x = step_transpose(c, l->x, swapped);
    for (uint32_t i = 5; i < 5 + l->states; i++)
      if (c->args[i]) c->args[i] = step_transpose(c, c->args[i], swapped);
  }
  const ir_tensor x = *type_of(c, l->x);
  l->factors = factor(c, l->x);
  l->steps = x.dims[0], l->batch = x.dims[1], l->in = x.dims[2], l->hidden = r.dims[2];
  if (!expr_is_const(c->g->pool, w.dims[0], &directions) || directions < 1 || directions > 2)
    return call_mistake(c, "w needs one or two directions"), false;
  l->directions = (uint32_t)directions;
  const char *mode = call_has(c, IR_PARAM_mode) ? c->params[IR_PARAM_mode]->word : l->directions == 2 ? "both" : "forward";
  l->backwards = strcmp(mode, "reverse") == 0;
  if ((strcmp(mode, "both") == 0) != (l->directions == 2)) return call_mistake(c, "w has %u directions", l->directions), false;
  l->lengths = c->args[4] ? step_cast(c, c->args[4], SNT_I32) : 0;
  return true;
}

/* Where the activations of the second direction begin. */
static const char *later_words(const char *words, const char *defaults) {
  for (const char *d = defaults; d; d = strchr(d, ',') ? strchr(d, ',') + 1 : NULL) {
    const char *comma = strchr(words, ',');
    if (!comma) return words;
    words = comma + 1;
  }
  return words;
}

static void run_layer(composite_call *c, layer *l) {
  uint32_t y[2], last[2][2];
  if (!read_layer(c, l)) return;
  const char *words = c->params[IR_PARAM_activations] ? c->params[IR_PARAM_activations]->word : l->defaults;
  l->activations = words;
  for (uint32_t d = 0; d < l->directions; d++) {
    if (d == 1) l->backwards = true, l->activations = words == l->defaults ? words : later_words(words, l->defaults);
    y[d] = with_axis(c, run_direction(c, l, d, last[d]), 1);
    for (uint32_t i = 0; i < l->states; i++) last[d][i] = with_axis(c, last[d][i], 0);
  }
  static const uint32_t y_first[] = {2, 0, 1, 3}, state_first[] = {1, 0, 2};
  const bool batch_first = call_has(c, IR_PARAM_batch_first);
  c->results[0] = step_concat(c, 1, l->directions, y);
  if (batch_first) c->results[0] = step_transpose(c, c->results[0], y_first);
  for (uint32_t i = 0; i < l->states; i++) {
    const uint32_t states[] = {last[0][i], l->directions == 2 ? last[1][i] : 0};
    c->results[1 + i] = step_concat(c, 0, l->directions, states);
    if (batch_first) c->results[1 + i] = step_transpose(c, c->results[1 + i], state_first);
  }
}

void build_rnn(composite_call *c) {
  layer l = {.step = rnn_step, .gates = 1, .states = 1, .defaults = "tanh"};
  run_layer(c, &l);
}

void build_gru(composite_call *c) {
  layer l = {.step = gru_step, .gates = 3, .states = 1, .defaults = "sigmoid,tanh"};
  run_layer(c, &l);
}

void build_lstm(composite_call *c) {
  layer l = {.step = lstm_step, .gates = 4, .states = 2, .defaults = "sigmoid,tanh,tanh"};
  run_layer(c, &l);
}
