/* What a program is made of and why: kernels with the user's node names, bytes against the unfused plan, and every decision. As text or JSON. */
#include "api/explain_private.h"

/* The user's name of a node; else its number with its operator. */
void explain_name(const ir_graph *g, uint32_t node, ir_text *out) {
  const char *name = ir_node_name(g, node);
  if (*name) ir_text_add(out, name);
  else ir_text_format(out, "%s.%u", ir_ops[ir_at(g, node)->op].name, ir_at(g, node)->origin ? ir_at(g, node)->origin : node);
}

const char *explain_kernel(const snt_program *p, uint32_t kernel) {
  ir_text text;
  ir_text_init(&text, (ir_arena *)(uintptr_t)&p->arena);
  ir_text_format(&text, "# %s computes", p->plan.kernels.at[kernel].kernel->name);
  for (uint32_t i = 0; i < p->plan.steps.count; i++) {
    const plan_step *s = &p->plan.steps.at[i];
    for (uint32_t n = 0; s->kernel == kernel && n < s->node_count; n++) {
      ir_text_add(&text, " ");
      explain_name(explain_graph_of(p, i), s->nodes[n], &text);
    }
  }
  return text.failed ? "" : text.at;
}

static void json_name(const ir_graph *g, uint32_t node, ir_arena *arena, ir_text *out) {
  ir_text name;
  ir_text_init(&name, arena);
  explain_name(g, node, &name);
  explain_quoted(name.failed ? "" : name.at, out);
}

static double step_bytes(const snt_program *p, const plan_step *s) {
  return api_at_hints(p, s->bytes_read) + api_at_hints(p, s->bytes_written);
}

typedef struct totals {
  double moved, unfused, flops, launches;
} totals;
static totals count_totals(const snt_program *p) {
  totals t = {.unfused = p->fusion.bytes_unfused};
  for (uint32_t i = 0; i < p->plan.steps.count; i++) {
    const plan_step *s = &p->plan.steps.at[i];
    t.moved += api_times(p, i) * step_bytes(p, s);
    t.flops += api_times(p, i) * s->flops;
    t.launches += api_times(p, i);
  }
  return t;
}

static void json_kernels(const snt_program *p, ir_arena *arena, ir_text *out) {
  ir_text_add(out, "  \"kernels\": [");
  for (uint32_t i = 0; i < p->plan.steps.count; i++) {
    const plan_step *s = &p->plan.steps.at[i];
    ir_text_format(out, "%s\n    {\"name\": \"%s\", \"kind\": \"%s\", \"kernel\": %u, \"nodes\": [", i ? "," : "", s->name,
                   p->plan.kernels.at[s->kernel].kind, s->kernel);
    for (uint32_t n = 0; n < s->node_count; n++) {
      if (n) ir_text_add(out, ", ");
      json_name(explain_graph_of(p, i), s->nodes[n], arena, out);
    }
    ir_text_format(out, "], \"bytes_read\": %.0f, \"bytes_written\": %.0f, \"flops\": %.0f, \"est_us\": %.3f, \"times\": %.0f}",
                   api_at_hints(p, s->bytes_read), api_at_hints(p, s->bytes_written), s->flops, s->est_ns / 1e3, api_times(p, i));
  }
  ir_text_add(out, "\n  ],\n");
}

static void json_sentence(const fusion_decision *d, ir_arena *arena, ir_text *out) {
  ir_text text;
  ir_text_init(&text, arena);
  fusion_decision_text(d, &text);
  explain_quoted(text.failed ? d->rule : text.at, out);
}

static void json_decisions(const snt_program *p, ir_arena *arena, ir_text *out) {
  ir_text_add(out, "  \"decisions\": [");
  for (uint32_t i = 0; i < p->fusion.decisions.count; i++) {
    const fusion_decision *d = &p->fusion.decisions.at[i];
    ir_text_format(out, "%s\n    {\"producer\": ", i ? "," : "");
    json_name(p->fusion.graph, d->producer, arena, out);
    ir_text_add(out, ", \"consumer\": ");
    json_name(p->fusion.graph, d->consumer, arena, out);
    ir_text_format(out, ", \"taken\": %s, \"rule\": ", d->taken ? "true" : "false");
    explain_quoted(d->rule, out);
    ir_text_format(out,
                   ", \"us_parts\": %.3f, \"us_fused\": %.3f, \"bytes_saved\": %.0f, \"registers\": %.0f, \"text\": ", d->ns_parts / 1e3,
                   d->ns_fused / 1e3, d->bytes_saved, d->registers);
    json_sentence(d, arena, out);
    ir_text_add(out, "}");
  }
  ir_text_add(out, "\n  ]\n");
}

static void explain_json(const snt_program *p, ir_arena *arena, ir_text *out) {
  const totals t = count_totals(p);
  ir_text_format(out, "{\n  \"profile\": \"%s\",\n", p->profile.name);
  json_kernels(p, arena, out);
  ir_text_format(out, "  \"bytes_moved\": %.0f,\n  \"bytes_unfused\": %.0f,\n  \"total_flops\": %.0f,\n  \"launches\": %.0f,\n", t.moved,
                 t.unfused, t.flops, t.launches);
  json_decisions(p, arena, out);
  ir_text_add(out, "}\n");
}

static void explain_weights(const snt_program *p, ir_text *out) {
  const int32_t dtype = p->options.weights;
  uint32_t count = 0;
  double numbers = 0;
  for (uint32_t n = 1; dtype && n < p->graph.nodes.count; n++) {
    int64_t own = 0;
    if (ir_at(&p->graph, n)->op != IR_OP_const || ir_at(&p->graph, n)->type.dtype != dtype) continue;
    if (expr_is_const(&p->pool, ir_tensor_elements((expr_pool *)(uintptr_t)&p->pool, &ir_at(&p->graph, n)->type), &own)) count++;
    numbers += (double)own;
  }
  if (dtype)
    ir_text_format(out, "weights: %u constants as %s, %.3f MB (%.3f MB as f32)\n", count, ir_dtypes[dtype].name,
                   numbers * ir_dtypes[dtype].bytes / 1e6, numbers * 4 / 1e6);
}

static void explain_text(const snt_program *p, ir_text *out) {
  const totals t = count_totals(p);
  uint32_t runs = 0;
  for (uint32_t i = 0; i < p->plan.steps.count; i++) runs += api_runs(p, i);
  ir_text_format(out, "%u kernel%s", runs, runs == 1 ? "" : "s");
  if (runs < p->plan.steps.count) ir_text_format(out, " (%u more for other extents)", p->plan.steps.count - runs);
  ir_text_format(out, " on profile %s, %.3f MB moved (%.3f MB unfused)\n", p->profile.name, t.moved / 1e6, t.unfused / 1e6);
  for (uint32_t i = 0; i < p->plan.steps.count; i++) {
    const plan_step *s = &p->plan.steps.at[i];
    ir_text_format(out, "  %-16s %-9s reads %.3f MB, writes %.3f MB, about %.2f us:", s->name, p->plan.kernels.at[s->kernel].kind,
                   api_at_hints(p, s->bytes_read) / 1e6, api_at_hints(p, s->bytes_written) / 1e6, s->est_ns / 1e3);
    for (uint32_t n = 0; n < s->node_count; n++) {
      ir_text_add(out, " ");
      explain_name(explain_graph_of(p, i), s->nodes[n], out);
    }
    if (!api_runs(p, i)) ir_text_add(out, ", for other extents");
    else if (api_times(p, i) > 1) ir_text_format(out, ", %.0f times", api_times(p, i));
    ir_text_add(out, "\n");
  }
  explain_weights(p, out);
  ir_text_add(out, "decisions:\n");
  for (uint32_t i = 0; i < p->fusion.decisions.count; i++) {
    const fusion_decision *d = &p->fusion.decisions.at[i];
    ir_text_format(out, "  %s ", d->taken ? "+" : "-");
    explain_name(p->fusion.graph, d->producer, out);
    ir_text_add(out, " -> ");
    explain_name(p->fusion.graph, d->consumer, out);
    ir_text_add(out, ": ");
    fusion_decision_text(d, out);
    ir_text_add(out, "\n");
  }
}

void api_explain(const snt_program *p, uint32_t format, ir_arena *temp, ir_text *out) {
  if (format == SNT_EXPLAIN_PLAN) plan_print(&p->plan, out);
  else if (format == SNT_EXPLAIN_GRAPH) explain_graphs(p, temp, out);
  else if (format > SNT_EXPLAIN_GRAPH) explain_dot(p, format == SNT_EXPLAIN_DOT_AFTER, temp, out);
  else if (p->texts[format]) ir_text_add(out, p->texts[format]);
  else if (format == SNT_EXPLAIN_JSON) explain_json(p, temp, out);
  else explain_text(p, out);
}

snt_result snt_program_explain(const snt_program *p, uint32_t format, char *text, size_t *length) {
  if (!p || !length || format > SNT_EXPLAIN_DOT_AFTER) return SNT_E_ARG;
  if (format > SNT_EXPLAIN_PLAN && !p->fusion.graph) return SNT_E_UNSUPPORTED;
  ir_arena temp;
  ir_text out;
  ir_arena_init(&temp, &p->context->alloc);
  ir_text_init(&out, &temp);
  api_explain(p, format, &temp, &out);
  const snt_result r = api_copy_text(&out, text, length);
  ir_arena_free(&temp);
  return r;
}

/* ---- decisions as data ---- */

uint32_t snt_program_decision_count(const snt_program *p) { return p ? p->fusion.decisions.count : 0; }

snt_result snt_program_decision(const snt_program *p, uint32_t number, snt_decision *out) {
  if (!p || !out || number >= p->fusion.decisions.count) return SNT_E_ARG;
  const fusion_decision *d = &p->fusion.decisions.at[number];
  const ir_graph *g = p->fusion.graph;
  *out = (snt_decision){.head = out->head,
                        .producer = ir_at(g, d->producer)->origin,
                        .consumer = ir_at(g, d->consumer)->origin,
                        .producer_name = ir_node_name(g, d->producer),
                        .consumer_name = ir_node_name(g, d->consumer),
                        .rule = d->rule,
                        .form = d->form,
                        .taken = d->taken,
                        .bindings = d->form == DECISION_RECOMPUTE && strcmp(d->rule, "bindings") ? 0 : d->count,
                        .ns_parts = d->ns_parts,
                        .ns_fused = d->ns_fused,
                        .bytes_saved = d->bytes_saved,
                        .registers = d->registers};
  return SNT_OK;
}

snt_result snt_program_decision_text(const snt_program *p, uint32_t number, char *text, size_t *length) {
  if (!p || !length || number >= p->fusion.decisions.count) return SNT_E_ARG;
  ir_arena temp;
  ir_text out;
  ir_arena_init(&temp, &p->context->alloc);
  ir_text_init(&out, &temp);
  fusion_decision_text(&p->fusion.decisions.at[number], &out);
  const snt_result r = api_copy_text(&out, text, length);
  ir_arena_free(&temp);
  return r;
}
