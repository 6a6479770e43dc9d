/* RNN, GRU, LSTM: their operands and attributes are those of the composites, named differently. */
#include "onnx/ops.h"
#include "ir/composites.h"

/* "Sigmoid", "LeakyRelu" .. as "sigmoid,leakyrelu:0x1p-2": the numbers are taken by those that use some, in their order, as long as there are any. */
static bool activation_words(onnx_call *c, ir_text *out) {
  static const char *const attrs[] = {"activation_alpha", "activation_beta"};
  const onnx_attr *a = onnx_find_attr(c, "activations"), *given[] = {onnx_find_attr(c, attrs[0]), onnx_find_attr(c, attrs[1])};
  uint32_t next[] = {0, 0};
  for (uint32_t i = 0; a && i < a->texts.count; i++) {
    char name[32];
    uint32_t length = 0;
    for (const char *at = a->texts.at[i]; *at && length < sizeof name - 1; at++)
      name[length++] = (char)(*at >= 'A' && *at <= 'Z' ? *at - 'A' + 'a' : *at);
    name[length] = 0;
    ir_text_format(out, "%s%s", i ? "," : "", name);
    const uint32_t numbers = ir_activation_numbers(name);
    bool known[2] = {false, false};
    for (uint32_t k = 0; k < numbers; k++) known[k] = given[k] && next[k] < given[k]->floats.count;
    if (known[1] && !known[0]) return onnx_refuse(c, "activation_beta without activation_alpha");
    for (uint32_t k = 0; k < numbers && known[k]; k++) ir_text_format(out, ":%a", (double)given[k]->floats.at[next[k]++]);
  }
  return true;
}

static const char *direction_word(onnx_call *c) {
  const char *word = onnx_text(c, "direction", "forward");
  return !strcmp(word, "bidirectional") ? "both" : word;
}

/* Extents that are left open: x has the columns that its weights take, lengths and states have its batch. */
static bool demand_fit(onnx_call *c, const uint32_t *args) {
  const uint32_t batch = onnx_int(c, "layout", 0) ? 0 : 1;
  bool fit = !args[0] || !args[1] || onnx_demand_meet(c, args[0], 2, args[1], 2);
  for (uint32_t i = 4; fit && args[0] && i < 7; i++) fit = !args[i] || onnx_demand_meet(c, args[0], batch, args[i], i == 4 ? 0 : batch);
  return fit;
}

/* y of layout 1 is [batch, steps, directions, hidden], states [batch, directions, hidden], as the composite gives them with batch_first. */
bool onnx_op_recurrent(onnx_call *c) {
  static const struct {
    const char *op;
    ir_composite which;
    uint32_t args;
  } kinds[] = {{"RNN", IR_COMPOSITE_rnn, 6},
               {"GRU", IR_COMPOSITE_gru, 6},
               {"LSTM", IR_COMPOSITE_lstm, 8},
               {"DynamicQuantizeLSTM", IR_COMPOSITE_lstm, 8}};
  uint32_t kind = 0, args[8] = {0}, results[IR_MAX_RESULTS] = {0}, count = 0;
  ir_text words;
  ir_param params[6] = {{.key = IR_PARAM_mode, .word = direction_word(c)}};
  while (kind < IR_COUNT(kinds) - 1 && strcmp(kinds[kind].op, c->node->op) != 0) kind++;
  ir_text_init(&words, onnx_arena(c));
  onnx_int(c, "hidden_size", 0);
  onnx_ignore(c, "output_sequence");
  if (!activation_words(c, &words)) return false;
  count = 1;
  if (words.length) params[count++] = (ir_param){.key = IR_PARAM_activations, .word = words.at};
  const double clip = onnx_float(c, "clip", 0);
  if (clip > 0) params[count++] = (ir_param){.key = IR_PARAM_high, .number = clip};
  if (onnx_int(c, "layout", 0)) params[count++] = (ir_param){.key = IR_PARAM_batch_first};
  if (kind == 1 && onnx_int(c, "linear_before_reset", 0)) params[count++] = (ir_param){.key = IR_PARAM_linear_before_reset};
  if (kind >= 2 && onnx_int(c, "input_forget", 0)) params[count++] = (ir_param){.key = IR_PARAM_input_forget};
  if (kind == 3) params[count++] = (ir_param){.key = IR_PARAM_quantize};
  for (uint32_t i = 0; i < kinds[kind].args; i++)
    if (onnx_has(c, i) && !(args[i] = onnx_in(c, i))) return false;
  if (!demand_fit(c, args)) return false;
  const ir_composite_desc desc = {
      .which = kinds[kind].which, .arg_count = kinds[kind].args, .args = args, .param_count = count, .params = params};
  if (!ir_add_composite(c->g, &desc, results)) return false;
  for (uint32_t i = 0; i < c->out_count && i < 3; i++)
    if (results[i] && !onnx_out(c, i, results[i])) return false;
  return true;
}
