/* The parser of the plan text (ir/PLAN.txt). In: text that nobody vouches for, a pool that is empty or has the same symbols. Out: a plan
   whose numbers are in range: every kernel, buffer and slot that is named exists. Kernels are heads (name and scalars), constants have no data. */
#include "ir/graph_parse.h"
#include "ir/plan.h"
#include "ir/plan/text.h"

enum { MAX_SLOTS = 256 };
typedef struct plan_parser {
  graph_parser lex;
  ir_plan *plan;
  uint32_t depth, open[TEXT_MAX_DEPTH]; /* loops whose end is not read yet */
} plan_parser;

static bool take_count(graph_parser *p, uint32_t max, uint32_t *out) {
  int64_t value;
  lex_blanks(p);
  const char *start = p->at;
  if (!lex_int(p, &value)) return false;
  if (value < 0 || value > (int64_t)max) return lex_fail(p, start, "a number from 0 to %u is expected", max);
  *out = (uint32_t)value;
  return true;
}

static bool expect_key(graph_parser *p, const char *key) {
  return (lex_take_word(p, key) || lex_fail(p, p->at, "%s= is expected", key)) && lex_expect(p, '=');
}

static bool take_word_of(graph_parser *p, const char *const *words, uint32_t count, uint8_t *out) {
  for (uint32_t i = 0; i < count; i++)
    if (lex_take_word(p, words[i])) return *out = (uint8_t)i, true;
  return lex_fail(p, p->at, "one of %s %s %s .. is expected", words[0], words[1], words[2]);
}

static const char *keep(plan_parser *p, text_name name) {
  const char *text = ir_arena_text(p->plan->arena, name.at, name.length);
  if (!text) lex_fail(&p->lex, p->lex.at, "out of memory");
  return text;
}

static bool take_name(plan_parser *p, const char **out) {
  text_name word;
  if (!lex_word(&p->lex, &word)) return lex_fail(&p->lex, p->lex.at, "a name is expected");
  return (*out = keep(p, word)) != NULL;
}

static bool grown(plan_parser *p, bool pushed) { return pushed || lex_fail(&p->lex, p->lex.at, "out of memory"); }

/* ---- kernel NAME KIND (u32@0, f32@4) ---- */

static bool parse_kernel_scalars(plan_parser *p, kir_kernel *k) {
  graph_parser *l = &p->lex;
  if (!lex_take(l, '(')) return true;
  do {
    int32_t dtype;
    kir_scalar s = {.name = ""};
    if (!lex_dtype(l, &dtype) || !lex_expect(l, '@') || !take_count(l, sizeof((plan_launch *)0)->scalars - 8, &s.offset)) return false;
    s.type = kir_t(dtype, 1);
    if (!grown(p, IR_PUSH(p->plan->arena, &k->scalars, s))) return false;
  } while (lex_take(l, ','));
  return lex_expect(l, ')');
}

static bool parse_kernel(plan_parser *p) {
  const char *name;
  plan_kernel made = {.kind = NULL};
  if (!take_name(p, &name) || !take_name(p, &made.kind)) return false;
  kir_kernel *k = IR_NEW(p->plan->arena, kir_kernel);
  if (!grown(p, k != NULL)) return false;
  *k = (kir_kernel){.arena = p->plan->arena, .name = name, .items = {1, 1, 1}, .needs = ""};
  made.kernel = k;
  return parse_kernel_scalars(p, k) && grown(p, IR_PUSH(p->plan->arena, &p->plan->kernels, made));
}

/* ---- b0: input f32[n,128] bytes=.. ---- */

/* The number of "b12". */
static bool take_buffer(plan_parser *p, uint32_t *out) {
  graph_parser *l = &p->lex;
  text_name word;
  uint64_t number = 0;
  lex_blanks(l);
  const char *start = l->at;
  bool good = lex_word(l, &word) && word.length > 1 && word.length < 10 && *word.at == 'b';
  for (uint32_t i = 1; good && i < word.length; i++) {
    good = word.at[i] >= '0' && word.at[i] <= '9';
    number = number * 10 + (uint64_t)(word.at[i] - '0');
  }
  *out = (uint32_t)number;
  return good || lex_fail(l, start, "a buffer is expected");
}

static bool parse_life(graph_parser *l, plan_buffer *b) {
  if (!lex_take_word(l, "life")) return true;
  return lex_expect(l, '=') && take_count(l, UINT32_MAX - 1, &b->first_step) && lex_expect(l, '.') && lex_expect(l, '.') &&
         take_count(l, UINT32_MAX - 1, &b->last_step);
}

static bool parse_buffer_tail(plan_parser *p, plan_buffer *b) {
  graph_parser *l = &p->lex;
  text_name name;
  if (!expect_key(l, "bytes") || !lex_expr(l, &b->bytes)) return false;
  if (b->kind == PLAN_SCRATCH && (!expect_key(l, "offset") || !lex_expr(l, &b->offset))) return false;
  if (!expect_key(l, "align") || !take_count(l, 1 << 20, &b->align) || !parse_life(l, b)) return false;
  if (lex_take_word(l, "node") && (!lex_expect(l, '=') || !take_count(l, UINT32_MAX, &b->node))) return false;
  if (lex_take_word(l, "image") && (!lex_expect(l, '=') || !take_word_of(l, plan_image_words, PLAN_IMAGE_COUNT, &b->image))) return false;
  if (!lex_take_word(l, "name")) return true;
  return lex_expect(l, '=') && lex_quoted(l, &name) && (b->name = keep(p, name)) != NULL;
}

static bool parse_buffer(plan_parser *p) {
  graph_parser *l = &p->lex;
  const char *start = l->at;
  uint32_t number;
  ir_tensor type;
  plan_buffer b = {.name = "", .first_step = UINT32_MAX};
  if (!take_buffer(p, &number)) return false;
  if (number != p->plan->buffers.count) return lex_fail(l, start, "b%u is expected", p->plan->buffers.count);
  if (!lex_expect(l, ':') || !take_word_of(l, plan_buffer_words, PLAN_BUFFER_KINDS, &b.kind) || !lex_type(l, &type)) return false;
  b.dtype = type.dtype;
  b.rank = type.rank;
  memcpy(b.dims, type.dims, sizeof b.dims);
  return parse_buffer_tail(p, &b) && grown(p, IR_PUSH(p->plan->arena, &p->plan->buffers, b));
}

/* ---- step NAME kernel=0 groups=.. (r b0[offset, bytes], ..) .. ---- */

static bool parse_bindings(plan_parser *p, plan_step *s) {
  graph_parser *l = &p->lex;
  plan_binding slots[MAX_SLOTS];
  if (!lex_expect(l, '(')) return false;
  while (!lex_peek(l, ')')) {
    plan_binding b = {0};
    if (s->binding_count && !lex_expect(l, ',')) return false;
    if (s->binding_count == MAX_SLOTS) return lex_fail(l, l->at, "more than %d slots", MAX_SLOTS);
    if (!take_word_of(l, plan_access_words, 4, &b.access) || !take_buffer(p, &b.buffer)) return false;
    if (lex_take_word(l, "or") && (!take_buffer(p, &b.other) || !lex_take_word(l, "if") || !lex_expr(l, &b.swap)))
      return lex_fail(l, l->at, "b1 or b2 if EXPRESSION is expected");
    if (b.buffer >= p->plan->buffers.count || b.other >= p->plan->buffers.count) return lex_fail(l, l->at, "there is no such buffer");
    if (!lex_expect(l, '[') || !lex_expr(l, &b.offset) || !lex_expect(l, ',') || !lex_expr(l, &b.bytes) || !lex_expect(l, ']'))
      return false;
    slots[s->binding_count++] = b;
  }
  s->bindings = IR_NEW_ARRAY(p->plan->arena, plan_binding, s->binding_count);
  if (!grown(p, s->bindings != NULL)) return false;
  memcpy(s->bindings, slots, s->binding_count * sizeof *slots);
  return lex_expect(l, ')');
}

static bool parse_scalars(plan_parser *p, plan_step *s) {
  graph_parser *l = &p->lex;
  s->scalar_count = p->plan->kernels.at[s->kernel].kernel->scalars.count;
  s->scalars = IR_NEW_ARRAY(p->plan->arena, ir_expr, s->scalar_count);
  if (!grown(p, s->scalars != NULL) || !s->scalar_count) return s->scalars != NULL;
  if (!lex_take_word(l, "scalars")) return lex_fail(l, l->at, "%u scalars are expected", s->scalar_count);
  if (!lex_expect(l, '(')) return false;
  for (uint32_t i = 0; i < s->scalar_count; i++)
    if ((i && !lex_expect(l, ',')) || !lex_expr(l, &s->scalars[i])) return false;
  return lex_expect(l, ')');
}

static bool parse_guards(plan_parser *p, plan_step *s) {
  graph_parser *l = &p->lex;
  IR_VEC(plan_condition) guards = {0};
  while (lex_take_word(l, "when")) {
    plan_condition c;
    if (!lex_expr(l, &c.lo) || !lex_expect(l, '<') || !lex_expect(l, '=') || !lex_expr(l, &c.value) || !lex_expect(l, '<') ||
        !lex_expr(l, &c.hi))
      return false;
    if (!grown(p, IR_PUSH(p->plan->arena, &guards, c))) return false;
  }
  s->guards = guards.at;
  s->guard_count = guards.count;
  return true;
}

static bool parse_nodes(plan_parser *p, plan_step *s) {
  graph_parser *l = &p->lex;
  IR_VEC(uint32_t) nodes = {0};
  if (!lex_take_word(l, "nodes")) return true;
  if (!lex_expect(l, '=') || !lex_expect(l, '[')) return false;
  do {
    uint32_t node;
    if (!take_count(l, UINT32_MAX, &node) || !grown(p, IR_PUSH(p->plan->arena, &nodes, node))) return false;
  } while (lex_take(l, ','));
  s->nodes = nodes.at;
  s->node_count = nodes.count;
  return lex_expect(l, ']');
}

static bool parse_cost(graph_parser *l, const char *key, double *out) {
  ir_number n;
  if (!expect_key(l, key)) return false;
  lex_blanks(l);
  if (!ir_read_number(&l->at, l->end, &n) || n.is_bool) return lex_fail(l, l->at, "a number is expected");
  *out = n.is_integer ? (double)n.integer : n.real;
  return true;
}

static bool parse_costs(graph_parser *l, plan_step *s) {
  if (!expect_key(l, "read") || !lex_expr(l, &s->bytes_read) || !expect_key(l, "written") || !lex_expr(l, &s->bytes_written)) return false;
  return parse_cost(l, "flops", &s->flops) && parse_cost(l, "ns", &s->est_ns);
}

static bool parse_step(plan_parser *p, bool barrier) {
  graph_parser *l = &p->lex;
  plan_step s = {.barrier = barrier};
  if (!take_name(p, &s.name) || !expect_key(l, "kernel")) return false;
  if (!p->plan->kernels.count) return lex_fail(l, l->at, "there is no kernel");
  if (!take_count(l, p->plan->kernels.count - 1, &s.kernel) || !expect_key(l, "groups") || !lex_expr(l, &s.groups)) return false;
  if (!parse_bindings(p, &s) || !parse_scalars(p, &s)) return false;
  if (lex_take_word(l, "choice") && (!lex_expect(l, '=') || !take_count(l, UINT32_MAX, &s.choice))) return false;
  return parse_guards(p, &s) && parse_nodes(p, &s) && parse_costs(l, &s) && grown(p, IR_PUSH(p->plan->arena, &p->plan->steps, s));
}

/* ---- loop trip0 trips=.. while=b3 { .. } ---- */

static bool parse_loop(plan_parser *p) {
  graph_parser *l = &p->lex;
  const char *name;
  plan_loop loop = {.first = p->plan->steps.count};
  if (p->depth == TEXT_MAX_DEPTH) return lex_fail(l, l->at, "loops are nested too deep");
  if (!take_name(p, &name) || !expect_key(l, "trips") || !lex_expr(l, &loop.trips)) return false;
  if (lex_take_word(l, "while") && (!lex_expect(l, '=') || !take_buffer(p, &loop.flag) || !++loop.flag)) return false;
  if (!lex_expect(l, '{')) return false;
  loop.variable = expr_var_add(p->plan->pool, name, 0, loop.trips, 1);
  if (p->plan->pool->failed) return lex_fail(l, l->at, "the number of trips does not fit");
  p->open[p->depth++] = p->plan->loops.count;
  return grown(p, IR_PUSH(p->plan->arena, &p->plan->loops, loop));
}

static bool end_loop(plan_parser *p) {
  plan_loop *loop = &p->plan->loops.at[p->open[--p->depth]];
  loop->end = p->plan->steps.count;
  return loop->end > loop->first || lex_fail(&p->lex, p->lex.at, "a loop without a step");
}

/* ---- the whole ---- */

static bool parse_line(plan_parser *p) {
  graph_parser *l = &p->lex;
  if (lex_take_word(l, "kernel")) return parse_kernel(p);
  if (lex_take_word(l, "scratch")) return lex_expect(l, '=') && lex_expr(l, &p->plan->scratch_bytes);
  if (lex_take_word(l, "loop")) return parse_loop(p);
  if (p->depth && lex_take(l, '}')) return end_loop(p);
  if (lex_take_word(l, "step")) return parse_step(p, false);
  if (!lex_take_word(l, "barrier")) return parse_buffer(p);
  return lex_take_word(l, "step") ? parse_step(p, true) : lex_fail(l, l->at, "'step' is expected");
}

static bool parse_plan(plan_parser *p) {
  graph_parser *l = &p->lex;
  text_name title;
  if (!parse_symbols(l)) return false;
  lex_lines(l);
  if (!lex_take_word(l, "plan")) return lex_fail(l, l->at, "'plan' is expected");
  if (!lex_name(l, &title) || !(p->plan->title = keep(p, title)) || !lex_expect(l, '{')) return false;
  for (lex_lines(l); p->depth || !lex_peek(l, '}'); lex_lines(l)) {
    if (l->at == l->end) return lex_fail(l, l->at, "'}' is missing");
    if (!parse_line(p)) return false;
    if (!lex_at_line_end(l)) return lex_fail(l, l->at, "the line goes on");
  }
  l->at++;
  lex_lines(l);
  return l->at == l->end || lex_fail(l, l->at, "text after the plan");
}

snt_result plan_parse(ir_plan *plan, const char *text, size_t length, snt_diag *diag) {
  ir_graph symbols; /* the lexer reads expressions through a graph's pool */
  snt_diag unused;
  plan_parser p = {.plan = plan};
  ir_graph_init(&symbols, plan->arena, plan->pool);
  p.lex = (graph_parser){.g = &symbols, .text = text, .at = text, .end = text + length, .diag = diag ? diag : &unused, .result = SNT_OK};
  ir_arena_init(&p.lex.temp, &plan->arena->host);
  const bool parsed = parse_plan(&p), starved = p.lex.temp.failed || plan->arena->failed;
  ir_arena_free(&p.lex.temp);
  if (starved) return ir_fail(diag, SNT_E_HOST_MEM, "parse plan", 0, "out of host memory");
  if (!parsed) memcpy(p.lex.diag->stage, "parse plan", sizeof "parse plan");
  return parsed ? SNT_OK : p.lex.result;
}
