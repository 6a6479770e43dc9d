/* A copy of a whole pool: every handle of the old one means the same in the new one. */
#include "ir/expr.h"

static void *copy_array(ir_arena *arena, const void *from, size_t bytes) {
  void *to = ir_arena_take(arena, bytes, 16);
  if (to && bytes) memcpy(to, from, bytes);
  return to;
}
#define COPY_VEC(field)                                             \
  (to->field = from->field, to->field.capacity = from->field.count, \
   (to->field.at = copy_array(arena, from->field.at, sizeof *from->field.at * from->field.count)) != NULL)

bool expr_pool_copy(expr_pool *to, ir_arena *arena, const expr_pool *from) {
  *to = *from;
  to->arena = arena;
  memset(&to->work, 0, sizeof to->work);
  to->memo = NULL;
  bool ok = COPY_VEC(symbols) && COPY_VEC(vars) && COPY_VEC(nodes) && COPY_VEC(terms) && COPY_VEC(coefs);
  to->table = copy_array(arena, from->table, from->table_size * sizeof *from->table);
  for (uint32_t i = 0; ok && i < to->symbols.count; i++) {
    to->symbols.at[i].name = ir_arena_text(arena, from->symbols.at[i].name, strlen(from->symbols.at[i].name));
    ok = to->symbols.at[i].name != NULL;
  }
  for (uint32_t i = 0; ok && i < to->vars.count; i++) {
    to->vars.at[i].name = ir_arena_text(arena, from->vars.at[i].name, strlen(from->vars.at[i].name));
    ok = to->vars.at[i].name != NULL;
  }
  return ok && to->table;
}
