/* What a program is made of and why: kernels with the user's node names, bytes against the unfused plan, and every decision. As text or JSON. */
#include "api/handles.h"

static double at_hints(const snt_program *p, ir_expr e) {
  int64_t values[64], out;
  for (uint32_t i = 0; i < p->pool.symbols.count && i < 64; i++) {
    const expr_symbol *s = &p->pool.symbols.at[i];
    values[i] = s->hint > 0 ? s->hint : s->max;
  }
  return expr_eval(&p->pool, e, values, NULL, &out) ? (double)out : 0;
}

/* The innermost loop around a step, or null. */
static const plan_loop *loop_of(const snt_program *p, uint32_t step) {
  const plan_loop *inner = NULL;
  for (uint32_t i = 0; i < p->plan.loops.count; i++)
    if (p->plan.loops.at[i].first <= step && step < p->plan.loops.at[i].end) inner = &p->plan.loops.at[i];
  return inner;
}

/* How often a step runs, at the hints. */
static double times(const snt_program *p, uint32_t step) {
  double n = 1;
  for (uint32_t i = 0; i < p->plan.loops.count; i++)
    if (p->plan.loops.at[i].first <= step && step < p->plan.loops.at[i].end) n *= at_hints(p, p->plan.loops.at[i].trips);
  return n;
}

/* The graph that the nodes of a step are of: that of the loop's body, or the working graph. */
static const ir_graph *graph_of(const snt_program *p, uint32_t step) {
  const plan_loop *l = loop_of(p, step);
  return l && l->body && l->body <= p->fusion.body_graphs.count ? p->fusion.body_graphs.at[l->body - 1] : p->fusion.graph;
}

/* The user's name of a node; else its number with its operator. */
static void node_name(const ir_graph *g, uint32_t node, ir_text *out) {
  const char *name = ir_node_name(g, node);
  if (*name) ir_text_add(out, name);
  else ir_text_format(out, "%s.%u", ir_ops[ir_at(g, node)->op].name, ir_at(g, node)->origin ? ir_at(g, node)->origin : node);
}

static void quoted(const char *text, ir_text *out) {
  ir_text_add(out, "\"");
  for (; *text; text++) {
    if (*text == '"' || *text == '\\') ir_text_format(out, "\\%c", *text);
    else if ((unsigned char)*text < 32) ir_text_format(out, "\\u%04x", (unsigned)(unsigned char)*text);
    else ir_text_put(out, text, 1);
  }
  ir_text_add(out, "\"");
}

static void json_name(const ir_graph *g, uint32_t node, ir_arena *arena, ir_text *out) {
  ir_text name;
  ir_text_init(&name, arena);
  node_name(g, node, &name);
  quoted(name.failed ? "" : name.at, out);
}

typedef struct totals {
  double moved, unfused;
} totals;
static totals count_bytes(const snt_program *p) {
  totals t = {0, p->fusion.bytes_unfused};
  for (uint32_t i = 0; i < p->plan.steps.count; i++)
    t.moved += times(p, i) * (at_hints(p, p->plan.steps.at[i].bytes_read) + at_hints(p, p->plan.steps.at[i].bytes_written));
  return t;
}

static double step_flops(const snt_program *p, const plan_step *s) {
  cost_work w = {0};
  for (uint32_t i = 0; i < p->fusion.groups.count; i++) {
    const fusion_group *g = &p->fusion.groups.at[i];
    if (g->dead || g->nodes != s->nodes) continue;
    fusion_group_work(&p->fusion, g, &w);
  }
  return w.ops + 2 * w.fmas + w.specials + w.divs;
}

static void json_kernels(const snt_program *p, ir_arena *arena, ir_text *out) {
  ir_text_add(out, "  \"kernels\": [");
  for (uint32_t i = 0; i < p->plan.steps.count; i++) {
    const plan_step *s = &p->plan.steps.at[i];
    ir_text_format(out, "%s\n    {\"name\": \"%s\", \"kind\": \"%s\", \"nodes\": [", i ? "," : "", s->name,
                   p->plan.kernels.at[s->kernel].kind);
    for (uint32_t n = 0; n < s->node_count; n++) {
      if (n) ir_text_add(out, ", ");
      json_name(graph_of(p, i), s->nodes[n], arena, out);
    }
    ir_text_format(out, "], \"bytes_read\": %.0f, \"bytes_written\": %.0f, \"flops\": %.0f, \"est_us\": %.3f, \"times\": %.0f}",
                   at_hints(p, s->bytes_read), at_hints(p, s->bytes_written), step_flops(p, s), s->est_ns / 1e3, times(p, i));
  }
  ir_text_add(out, "\n  ],\n");
}

static void json_sentence(const fusion_decision *d, ir_arena *arena, ir_text *out) {
  ir_text text;
  ir_text_init(&text, arena);
  fusion_decision_text(d, &text);
  quoted(text.failed ? d->rule : text.at, out);
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
    quoted(d->rule, out);
    ir_text_format(out,
                   ", \"us_parts\": %.3f, \"us_fused\": %.3f, \"bytes_saved\": %.0f, \"registers\": %.0f, \"text\": ", d->ns_parts / 1e3,
                   d->ns_fused / 1e3, d->bytes_saved, d->registers);
    json_sentence(d, arena, out);
    ir_text_add(out, "}");
  }
  ir_text_add(out, "\n  ]\n");
}

static void explain_json(const snt_program *p, ir_arena *arena, ir_text *out) {
  const totals t = count_bytes(p);
  ir_text_format(out, "{\n  \"profile\": \"%s\",\n", p->profile.name);
  json_kernels(p, arena, out);
  ir_text_format(out, "  \"bytes_moved\": %.0f,\n  \"bytes_unfused\": %.0f,\n", t.moved, t.unfused);
  json_decisions(p, arena, out);
  ir_text_add(out, "}\n");
}

static void explain_text(const snt_program *p, ir_text *out) {
  const totals t = count_bytes(p);
  ir_text_format(out, "%u kernels on profile %s, %.3f MB moved (%.3f MB unfused)\n", p->plan.steps.count, p->profile.name, t.moved / 1e6,
                 t.unfused / 1e6);
  for (uint32_t i = 0; i < p->plan.steps.count; i++) {
    const plan_step *s = &p->plan.steps.at[i];
    ir_text_format(out, "  %-16s %-9s reads %.3f MB, writes %.3f MB, about %.2f us:", s->name, p->plan.kernels.at[s->kernel].kind,
                   at_hints(p, s->bytes_read) / 1e6, at_hints(p, s->bytes_written) / 1e6, s->est_ns / 1e3);
    for (uint32_t n = 0; n < s->node_count; n++) {
      ir_text_add(out, " ");
      node_name(graph_of(p, i), s->nodes[n], out);
    }
    if (loop_of(p, i)) ir_text_format(out, ", %.0f times", times(p, i));
    ir_text_add(out, "\n");
  }
  ir_text_add(out, "decisions:\n");
  for (uint32_t i = 0; i < p->fusion.decisions.count; i++) {
    const fusion_decision *d = &p->fusion.decisions.at[i];
    ir_text_format(out, "  %s ", d->taken ? "+" : "-");
    node_name(p->fusion.graph, d->producer, out);
    ir_text_add(out, " -> ");
    node_name(p->fusion.graph, d->consumer, out);
    ir_text_add(out, ": ");
    fusion_decision_text(d, out);
    ir_text_add(out, "\n");
  }
}

void api_explain(const snt_program *p, uint32_t format, ir_arena *temp, ir_text *out) {
  if (format == SNT_EXPLAIN_PLAN) plan_print(&p->plan, out);
  else if (p->texts[format]) ir_text_add(out, p->texts[format]);
  else if (format == SNT_EXPLAIN_JSON) explain_json(p, temp, out);
  else explain_text(p, out);
}

snt_result snt_program_explain(const snt_program *p, uint32_t format, char *text, size_t *length) {
  if (!p || !length || format > SNT_EXPLAIN_PLAN) return SNT_E_ARG;
  ir_arena temp;
  ir_text out;
  ir_arena_init(&temp, &p->context->alloc);
  ir_text_init(&out, &temp);
  api_explain(p, format, &temp, &out);
  const snt_result r = api_copy_text(&out, text, length);
  ir_arena_free(&temp);
  return r;
}
