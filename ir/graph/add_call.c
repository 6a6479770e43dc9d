/* One operator call in the text form, added to a graph that is being built: what the C API's generic builder stands on.
   Operands are written as %<node number>; the result is the first value the call makes. */
#include "ir/graph_parse.h"

static bool define_operands(graph_parser *p) {
  for (const char *at = p->text; at < p->end; at++) {
    if (*at != '%') continue;
    const char *digits = at + 1;
    uint32_t number = 0;
    while (digits < p->end && *digits >= '0' && *digits <= '9') number = number * 10 + (uint32_t)(*digits++ - '0');
    const text_name name = {at + 1, (uint32_t)(digits - at - 1), true};
    bool known = false;
    for (const char *before = p->text; before < at && !known; before++)
      known = *before == '%' && (size_t)(p->end - before) > name.length && !memcmp(before + 1, at + 1, name.length) &&
              !(before[1 + name.length] >= '0' && before[1 + name.length] <= '9');
    if (!known && name.length && number && number < p->g->nodes.count && !names_define(p, at, name, number)) return false;
  }
  return true;
}

uint32_t ir_graph_add_call(ir_graph *g, const char *text, size_t length, snt_diag *diag) {
  graph_parser p = {.g = g, .text = text, .at = text, .end = text + length, .diag = diag};
  const text_result result = {.name = {"4294967295", 10, true}, .at = text}; /* a number that no node has */
  ir_arena_init(&p.temp, &g->arena->host);
  const bool ok = define_operands(&p) && parse_call(&p, 1, &result);
  const uint32_t made = ok && !g->failed ? names_find(&p, text, result.name) : 0;
  ir_arena_free(&p.temp);
  return made;
}
