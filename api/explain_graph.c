/* The graph as the user gave it and as its kernels compute it, for a picture: as JSON, and as text for graphviz. In: a program that was compiled here.
   A picture has nodes (values that somebody computes, reads or gets) and edges (who reads what, through which views); between two kernels an edge knows
   the newest decision that keeps them apart. A node that several kernels recompute is in each of them. */
#include "api/explain_private.h"
#include "fusion/schedule_common.h"

#define NO_STEP UINT32_MAX
#define NO_DECISION UINT32_MAX
typedef struct picture_node {
  uint32_t node, step; /* step NO_STEP: not computed by a kernel */
} picture_node;
typedef struct picture_edge {
  uint32_t from, to, decision; /* places in the list of nodes */
  const char *through;         /* operators of the views between, or null */
} picture_edge;
typedef struct picture {
  const snt_program *p;
  const ir_graph *g;
  ir_arena *arena;
  bool after;
  uint32_t *first_of; /* per graph node: its first picture node + 1 */
  bool *spine;        /* per picture node, for graphviz */
  IR_VEC(picture_node) nodes;
  IR_VEC(picture_edge) edges;
  bool failed;
} picture;

/* ---- nodes ---- */

static bool is_shown(const ir_graph *g, uint32_t node) {
  const ir_node *n = ir_at(g, node);
  return n->op != IR_OP_const || n->type.rank > 0 || n->name;
}

static void add_node(picture *q, uint32_t node, uint32_t step) {
  const picture_node made = {node, step};
  if (!IR_PUSH(q->arena, &q->nodes, made)) q->failed = true;
  else if (!q->first_of[node]) q->first_of[node] = q->nodes.count;
}

/* The bodies of loops, and a branch for extents of one, are graphs of their own; kernels for other extents compute the same values. */
static bool is_drawn(const snt_program *p, uint32_t step) {
  return explain_graph_of(p, step) == p->fusion.graph && schedule_runs(&p->plan, step);
}

/* Which step computes each value that the user gave: by the origin of the nodes of the kernels. */
static uint32_t *steps_of_origins(const picture *q) {
  const snt_program *p = q->p;
  uint32_t most = 0;
  for (uint32_t n = 1; n < p->graph.nodes.count; n++)
    if (ir_at(&p->graph, n)->origin > most) most = ir_at(&p->graph, n)->origin;
  uint32_t *step = IR_NEW_ARRAY(q->arena, uint32_t, most + 1);
  for (uint32_t s = 0; step && s < p->plan.steps.count; s++) {
    const plan_step *at = &p->plan.steps.at[s];
    for (uint32_t i = 0; is_drawn(p, s) && i < at->node_count; i++) {
      const uint32_t origin = ir_at(p->fusion.graph, at->nodes[i])->origin;
      if (origin && origin <= most && !step[origin]) step[origin] = s + 1;
    }
  }
  return step;
}

static void add_given(picture *q) {
  const uint32_t *step = steps_of_origins(q);
  if (!step) {
    q->failed = true;
    return;
  }
  for (uint32_t n = 1; n < q->g->nodes.count; n++) {
    const uint32_t origin = ir_at(q->g, n)->origin;
    if (is_shown(q->g, n)) add_node(q, n, step[origin] ? step[origin] - 1 : NO_STEP);
  }
}

/* What no kernel computes is shown when a kernel reads it, or when it is a loop of kernels. */
static void add_computed(picture *q) {
  const snt_program *p = q->p;
  for (uint32_t n = 1; n < q->g->nodes.count; n++) {
    const uint16_t op = ir_at(q->g, n)->op;
    if (op == IR_OP_input || op == IR_OP_state || op == IR_OP_loop || (op == IR_OP_const && is_shown(q->g, n))) add_node(q, n, NO_STEP);
  }
  for (uint32_t s = 0; s < p->plan.steps.count; s++) {
    const plan_step *at = &p->plan.steps.at[s];
    for (uint32_t i = 0; is_drawn(p, s) && i < at->node_count; i++) add_node(q, at->nodes[i], s);
  }
}

/* ---- edges ---- */

static bool step_has(const snt_program *p, uint32_t step, uint32_t node) {
  const plan_step *s = &p->plan.steps.at[step];
  for (uint32_t i = 0; i < s->node_count; i++)
    if (s->nodes[i] == node) return true;
  return false;
}

/* The newest decision about a value of the one kernel and one of the other that left them apart; about this very value before others. */
static uint32_t find_decision(const picture *q, uint32_t from, uint32_t to) {
  const picture_node *a = &q->nodes.at[from], *b = &q->nodes.at[to];
  const snt_program *p = q->p;
  uint32_t best = NO_DECISION, best_turn = 0;
  bool best_own = false;
  for (uint32_t i = 0; i < p->fusion.decisions.count; i++) {
    const fusion_decision *d = &p->fusion.decisions.at[i];
    if (d->taken || d->form == DECISION_BODY) continue;
    const bool forward = step_has(p, a->step, d->producer) && step_has(p, b->step, d->consumer);
    const bool backward = d->form == DECISION_LAUNCH && step_has(p, b->step, d->producer) && step_has(p, a->step, d->consumer);
    if (!forward && !backward) continue;
    const bool own = d->producer == a->node && d->form == DECISION_PAIR;
    if (best != NO_DECISION && (own < best_own || (own == best_own && d->turn < best_turn))) continue;
    best = i;
    best_turn = d->turn;
    best_own = own;
  }
  return best;
}

/* The picture node that holds a value for a reader of `step`: of the same kernel when it is there. */
static uint32_t place_for(const picture *q, uint32_t node, uint32_t step) {
  const uint32_t first = q->first_of[node];
  for (uint32_t i = first ? first - 1 : 0; q->after && first && i < q->nodes.count; i++)
    if (q->nodes.at[i].node == node && q->nodes.at[i].step == step) return i;
  return first ? first - 1 : NO_STEP;
}

static void add_edge(picture *q, uint32_t from, uint32_t to, const char *through) {
  picture_edge e = {from, to, NO_DECISION, through && *through ? through : NULL};
  const uint32_t a = q->nodes.at[from].step, b = q->nodes.at[to].step;
  for (uint32_t i = q->edges.count; i-- > 0 && q->edges.at[i].to == to;)
    if (q->edges.at[i].from == from) return;
  if (q->after && a != NO_STEP && b != NO_STEP && a != b) e.decision = find_decision(q, from, to);
  if (!IR_PUSH(q->arena, &q->edges, e)) q->failed = true;
}

/* From the operand of a node, through views that nobody computes, to what is shown. */
static void add_reads(picture *q, uint32_t reader, uint32_t operand, const char *through, uint32_t depth) {
  const ir_node *n = ir_at(q->g, operand);
  const uint32_t from = place_for(q, operand, q->nodes.at[reader].step);
  if (from != NO_STEP) {
    if (from != reader) add_edge(q, from, reader, through);
    return;
  }
  if (depth == 32) return;
  ir_text text;
  ir_text_init(&text, q->arena);
  ir_text_format(&text, "%s%s%s", ir_ops[n->op].name, through ? ", " : "", through ? through : "");
  for (uint32_t i = 0; i < n->arity; i++) add_reads(q, reader, ir_arg(q->g, operand, i), text.failed ? "" : text.at, depth + 1);
}

static bool draw(picture *q, const snt_program *p, bool after, ir_arena *arena) {
  *q = (picture){.p = p, .g = after ? p->fusion.graph : &p->graph, .arena = arena, .after = after};
  q->first_of = IR_NEW_ARRAY(arena, uint32_t, q->g->nodes.count);
  if (!q->first_of) return false;
  if (after) add_computed(q);
  else add_given(q);
  for (uint32_t i = 0; i < q->nodes.count && !q->failed; i++) {
    const uint32_t node = q->nodes.at[i].node;
    for (uint32_t a = 0; a < ir_at(q->g, node)->arity; a++) add_reads(q, i, ir_arg(q->g, node, a), NULL, 0);
  }
  return !q->failed;
}

/* ---- words ---- */

static void put_type(const picture *q, uint32_t node, ir_text *out) {
  const ir_tensor *t = &ir_at(q->g, node)->type;
  ir_text_format(out, "%s[", ir_dtypes[t->dtype].name);
  for (uint32_t i = 0; i < t->rank; i++) {
    if (i) ir_text_add(out, ",");
    expr_print(q->g->pool, t->dims[i], out);
  }
  ir_text_add(out, "]");
}

/* The name of an output where the node has none. */
static const char *name_of(const picture *q, uint32_t node) {
  const char *name = ir_node_name(q->g, node);
  for (uint32_t i = 0; !*name && i < q->g->outputs.count; i++)
    if (q->g->outputs.at[i].node == node) name = &q->g->names.at[q->g->outputs.at[i].name];
  return name;
}

static bool is_output(const picture *q, uint32_t node) {
  for (uint32_t i = 0; i < q->g->outputs.count; i++)
    if (q->g->outputs.at[i].node == node) return true;
  return false;
}

/* ---- JSON ---- */

static void put_json_node(const picture *q, uint32_t i, ir_text *out) {
  const picture_node *n = &q->nodes.at[i];
  ir_text type;
  ir_text_init(&type, q->arena);
  put_type(q, n->node, &type);
  ir_text_add(out, i ? ",\n     {\"op\": " : "\n     {\"op\": ");
  explain_quoted(ir_ops[ir_at(q->g, n->node)->op].name, out);
  ir_text_add(out, ", \"name\": ");
  explain_quoted(name_of(q, n->node), out);
  ir_text_add(out, ", \"type\": ");
  explain_quoted(type.failed ? "" : type.at, out);
  ir_text_format(out, ", \"step\": %d, \"output\": %s}", n->step == NO_STEP ? -1 : (int)n->step, is_output(q, n->node) ? "true" : "false");
}

static void put_json(const picture *q, ir_text *out) {
  ir_text_add(out, "{\"nodes\": [");
  for (uint32_t i = 0; i < q->nodes.count; i++) put_json_node(q, i, out);
  ir_text_add(out, "],\n    \"edges\": [");
  for (uint32_t i = 0; i < q->edges.count; i++) {
    const picture_edge *e = &q->edges.at[i];
    ir_text_format(out, "%s{\"from\": %u, \"to\": %u, \"decision\": %d, \"through\": ", i ? ",\n     " : "\n     ", e->from, e->to,
                   e->decision == NO_DECISION ? -1 : (int)e->decision);
    explain_quoted(e->through ? e->through : "", out);
    ir_text_add(out, "}");
  }
  ir_text_add(out, "]}");
}

void explain_graphs(const snt_program *p, ir_arena *temp, ir_text *out) {
  picture q;
  ir_text_add(out, "{\n  \"before\": ");
  if (!draw(&q, p, false, temp)) out->failed = true;
  else put_json(&q, out);
  ir_text_add(out, ",\n  \"after\": ");
  if (!draw(&q, p, true, temp)) out->failed = true;
  else put_json(&q, out);
  ir_text_add(out, "\n}\n");
}

/* ---- graphviz ---- */

/* What depends on an input is the spine of the drawing: in a line, its edges short; constants, and what is made of them alone, stand beside it. */
static bool find_spine(picture *q) {
  q->spine = IR_NEW_ARRAY(q->arena, bool, q->nodes.count);
  if (!q->spine) return false;
  for (uint32_t i = 0; i < q->nodes.count; i++) {
    const uint16_t op = ir_at(q->g, q->nodes.at[i].node)->op;
    q->spine[i] = op == IR_OP_input || op == IR_OP_state || op == IR_OP_loop;
  }
  for (uint32_t i = 0; i < q->edges.count; i++) q->spine[q->edges.at[i].to] |= q->spine[q->edges.at[i].from];
  return true;
}

static void put_escaped(const char *text, ir_text *out) {
  for (; *text; text++) switch (*text) {
    case '&': ir_text_add(out, "&amp;"); break;
    case '<': ir_text_add(out, "&lt;"); break;
    case '>': ir_text_add(out, "&gt;"); break;
    case '"': ir_text_add(out, "&quot;"); break;
    default:
      if ((unsigned char)*text >= 32) ir_text_put(out, text, 1);
    }
}

static void put_dot_node(const picture *q, uint32_t i, ir_text *out) {
  const picture_node *n = &q->nodes.at[i];
  const ir_node *node = ir_at(q->g, n->node);
  const bool source = (ir_ops[node->op].flags & IR_SOURCE) != 0;
  const char *name = name_of(q, n->node);
  ir_text_format(out, "  n%u [id=\"%c%u\", class=\"", i, q->after ? 'a' : 'b', i);
  if (n->step != NO_STEP) ir_text_format(out, "k%u", n->step);
  else ir_text_add(out, source ? "source" : "view");
  ir_text_format(out, "%s\", shape=%s, %slabel=<<b>%s</b>", is_output(q, n->node) ? " output" : "", source ? "ellipse" : "box",
                 q->spine[i] && !q->after ? "group=spine, " : "", ir_ops[node->op].name);
  ir_text_add(out, "<br/><font point-size=\"9\">");
  put_escaped(name, out);
  ir_text_add(out, *name ? " " : "");
  put_type(q, n->node, out);
  ir_text_add(out, "</font>>];\n");
}

static void put_dot_cluster(const picture *q, uint32_t step, ir_text *out) {
  bool open = false;
  for (uint32_t i = 0; i < q->nodes.count; i++) {
    if (q->nodes.at[i].step != step) continue;
    if (!open)
      ir_text_format(out, "  subgraph cluster_%u {\n  id=\"c%u\"; class=\"k%u\"; style=rounded; margin=10; label=<<b>%s</b>>;\n", step,
                     step, step, q->p->plan.steps.at[step].name);
    open = true;
    put_dot_node(q, i, out);
  }
  if (open) ir_text_add(out, "  }\n");
}

static void put_dot_edge(const picture *q, uint32_t i, ir_text *out) {
  const picture_edge *e = &q->edges.at[i];
  const uint32_t a = q->nodes.at[e->from].step, b = q->nodes.at[e->to].step;
  const bool between = q->after && a != NO_STEP && b != NO_STEP && a != b;
  const uint32_t weight = q->spine[e->from] ? 50 : !q->after; /* dot takes long over weights of 0 where constants are computed with */
  ir_text_format(out, "  n%u -> n%u [id=\"%ce%u\", class=\"%s\", weight=%u", e->from, e->to, q->after ? 'a' : 'b', i,
                 between ? "between" : "inside", weight);
  if (between && e->decision != NO_DECISION) {
    ir_text_add(out, ", label=<<font point-size=\"9\">");
    put_escaped(q->p->fusion.decisions.at[e->decision].rule, out);
    ir_text_add(out, "</font>>");
  }
  ir_text_add(out, "];\n");
}

void explain_dot(const snt_program *p, bool after, ir_arena *temp, ir_text *out) {
  picture q;
  if (!draw(&q, p, after, temp) || !find_spine(&q)) {
    out->failed = true;
    return;
  }
  ir_text_add(out, "digraph sinter {\n  bgcolor=transparent; rankdir=TB; nodesep=0.25; ranksep=0.35;\n"
                   "  node [fontname=\"Helvetica\", fontsize=11, style=\"rounded,filled\", margin=\"0.12,0.05\", height=0.3];\n"
                   "  edge [fontname=\"Helvetica\", arrowsize=0.6];\n");
  for (uint32_t i = 0; i < q.nodes.count; i++)
    if (!after || q.nodes.at[i].step == NO_STEP) put_dot_node(&q, i, out);
  for (uint32_t s = 0; after && s < p->plan.steps.count; s++) put_dot_cluster(&q, s, out);
  for (uint32_t i = 0; i < q.edges.count; i++) put_dot_edge(&q, i, out);
  ir_text_add(out, "}\n");
}

const ir_graph *explain_graph_of(const snt_program *p, uint32_t step) {
  const plan_loop *l = api_loop_around(&p->plan, step);
  return l && l->body && l->body <= p->fusion.body_graphs.count ? p->fusion.body_graphs.at[l->body - 1] : p->fusion.graph;
}

void explain_quoted(const char *text, ir_text *out) {
  ir_text_add(out, "\"");
  for (; *text; text++) {
    if (*text == '"' || *text == '\\') ir_text_format(out, "\\%c", *text);
    else if ((unsigned char)*text < 32) ir_text_format(out, "\\u%04x", (unsigned)(unsigned char)*text);
    else ir_text_put(out, text, 1);
  }
  ir_text_add(out, "\"");
}
