/* Index maps: movement operators rewrite the coordinates of their result into those of their operand; conditions say where that is an element. */
#include "ir/map.h"
#include <stdio.h>

/* Where `known` holds, is this so, too? Both are ranges of one value, a literal apart. */
static bool follows(expr_pool *pool, const map_condition *known, ir_expr value, ir_expr lo, ir_expr hi) {
  int64_t apart;
  if (known->value == value && known->lo == lo && known->hi == hi) return true;
  if (!expr_is_const(pool, expr_sub(pool, value, known->value), &apart)) return false;
  const ir_expr by = expr_int(pool, apart);
  return expr_proves_le(pool, lo, expr_add(pool, known->lo, by)) && expr_proves_le(pool, expr_add(pool, known->hi, by), hi);
}

bool map_add_condition(expr_pool *pool, map_access *access, ir_expr value, ir_expr lo, ir_expr hi) {
  if (expr_proves_le(pool, lo, value) && expr_proves_lt(pool, value, hi)) return true;
  for (uint32_t i = 0; i < access->condition_count; i++)
    if (follows(pool, &access->conditions[i], value, lo, hi)) return true;
  if (access->condition_count == MAP_MAX_CONDITIONS) return false;
  map_condition condition = {value, lo, hi};
  access->conditions[access->condition_count++] = condition;
  return true;
}

bool map_place(expr_pool *pool, map_access *access, uint32_t axis, ir_expr at, ir_expr extent) {
  access->at[axis] = extent == 1 ? 0 : at;
  return map_add_condition(pool, access, at, 0, extent);
}

bool map_never_holds(expr_pool *pool, const map_access *access, uint32_t first) {
  for (uint32_t c = first; c < access->condition_count; c++)
    if (expr_proves_lt(pool, access->conditions[c].value, access->conditions[c].lo) ||
        expr_proves_le(pool, access->conditions[c].hi, access->conditions[c].value))
      return true;
  return false;
}

bool map_transpose(expr_pool *pool, map_access *access, const uint32_t *perm) {
  ir_expr at[SNT_MAX_RANK];
  (void)pool;
  for (uint32_t i = 0; i < access->rank; i++) at[perm[i]] = access->at[i];
  memcpy(access->at, at, access->rank * sizeof *at);
  return true;
}

static ir_expr linear(expr_pool *pool, uint32_t rank, const ir_expr *at, const ir_expr *dims) {
  ir_expr offset = 0;
  for (uint32_t i = 0; i < rank; i++) offset = expr_add(pool, expr_mul(pool, offset, dims[i]), at[i]);
  return offset;
}

ir_expr map_linear(expr_pool *pool, const map_access *access, const ir_expr *dims) { return linear(pool, access->rank, access->at, dims); }

void map_delinear(expr_pool *pool, ir_expr offset, uint32_t rank, const ir_expr *dims, ir_expr *at) {
  for (uint32_t i = rank; i-- > 0;) {
    int64_t extent;
    if (expr_is_const(pool, dims[i], &extent) && extent <= 0) { /* no elements: any coordinate is right */
      at[i] = 0;
      continue;
    }
    if (i == 0) { /* of a place outside, which items that are masked have, 0 as well: every other way to it says so (map_reshape) */
      at[i] = dims[i] == 1 ? 0 : offset;
    } else {
      at[i] = expr_mod(pool, offset, dims[i]);
      offset = expr_div(pool, offset, dims[i]);
    }
  }
}

/* Ends of the next runs of axes, counted from the back, over which both shapes have the same product: the reshape acts on each alone. */
static bool next_run(expr_pool *pool, const ir_expr *from, uint32_t from_end, const ir_expr *to, uint32_t to_end, uint32_t *from_start,
                     uint32_t *to_start) {
  uint32_t i = from_end, j = to_end;
  ir_expr a = 1, b = 1;
  int64_t x, y;
  do {
    bool literal = expr_is_const(pool, a, &x) && expr_is_const(pool, b, &y);
    bool from_behind = literal ? x <= y : i > j || (i == j && !expr_is_const(pool, b, NULL));
    if (i > 0 && (from_behind || j == 0)) a = expr_mul(pool, a, from[--i]);
    else if (j > 0) b = expr_mul(pool, b, to[--j]);
    else return false;
  } while (a != b || a == 1);
  *from_start = i;
  *to_start = j;
  return true;
}

/* An extent of 1 has coordinate 0 whatever the rest does, so those axes take no part. */
static uint32_t drop_ones(uint32_t rank, const ir_expr *dims, uint32_t *axes, ir_expr *kept) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < rank; i++) {
    if (dims[i] == 1) continue;
    axes[count] = i;
    kept[count++] = dims[i];
  }
  return count;
}

bool map_reshape(expr_pool *pool, map_access *access, uint32_t from_rank, const ir_expr *from_dims, const ir_expr *result_dims) {
  uint32_t from_axes[SNT_MAX_RANK], to_axes[SNT_MAX_RANK];
  ir_expr from[SNT_MAX_RANK], to[SNT_MAX_RANK], to_at[SNT_MAX_RANK], at[SNT_MAX_RANK] = {0};
  uint32_t i = drop_ones(from_rank, from_dims, from_axes, from), j = drop_ones(access->rank, result_dims, to_axes, to);
  for (uint32_t k = 0; k < j; k++) to_at[k] = access->at[to_axes[k]];
  while (i > 0 || j > 0) {
    uint32_t i0 = 0, j0 = 0;
    if (!next_run(pool, from, i, to, j, &i0, &j0)) i0 = j0 = 0; /* the rest as one run; extents are equal as a whole */
    ir_expr split[SNT_MAX_RANK];
    map_delinear(pool, linear(pool, j - j0, to_at + j0, to + j0), i - i0, from + i0, split);
    for (uint32_t k = i0; k < i; k++) at[from_axes[k]] = split[k - i0];
    i = i0, j = j0;
  }
  memcpy(access->at, at, sizeof at);
  access->rank = from_rank;
  return true;
}

bool map_broadcast(expr_pool *pool, map_access *access, uint32_t from_rank, const ir_expr *from_dims, const int64_t *axes) {
  ir_expr at[SNT_MAX_RANK];
  (void)pool;
  for (uint32_t i = 0; i < from_rank; i++) at[i] = from_dims[i] == 1 ? 0 : access->at[axes[i]];
  memcpy(access->at, at, from_rank * sizeof *at);
  access->rank = from_rank;
  return true;
}

bool map_slice(expr_pool *pool, map_access *access, const ir_expr *starts, const int64_t *steps) {
  for (uint32_t i = 0; i < access->rank; i++)
    access->at[i] = expr_add(pool, starts[i], expr_mul(pool, access->at[i], expr_int(pool, steps[i])));
  return true;
}

bool map_pad(expr_pool *pool, map_access *access, const ir_expr *low, const ir_expr *from_dims) {
  for (uint32_t i = 0; i < access->rank; i++)
    if (!map_place(pool, access, i, expr_sub(pool, access->at[i], low[i]), from_dims[i])) return false;
  return true;
}

bool map_window(expr_pool *pool, map_access *access, uint32_t first, uint32_t count, const int64_t *stride, const int64_t *dilation,
                const ir_expr *low, const ir_expr *from_dims) {
  uint32_t rank = access->rank - count;
  for (uint32_t i = 0; i < count; i++) {
    ir_expr position = expr_mul(pool, access->at[first + i], expr_int(pool, stride[i]));
    ir_expr tap = expr_mul(pool, access->at[rank + i], expr_int(pool, dilation[i]));
    if (!map_place(pool, access, first + i, expr_sub(pool, expr_add(pool, position, tap), low[i]), from_dims[first + i])) return false;
  }
  access->rank = rank;
  return true;
}

void map_identity(expr_pool *pool, ir_map *map, uint32_t rank, const ir_expr *extents) {
  memset(map, 0, sizeof *map);
  map->in_rank = map->out_rank = map->to.rank = rank;
  for (uint32_t i = 0; i < rank; i++) {
    char name[24];
    snprintf(name, sizeof name, "i%u", (unsigned)pool->vars.count);
    map->vars[i] = pool->vars.count;
    map->extents[i] = extents[i];
    map->to.at[i] = expr_var_add(pool, name, 0, extents[i], 1);
  }
}

void map_substitute(expr_pool *pool, map_access *access, uint32_t count, const uint32_t *vars, const ir_expr *to) {
  for (uint32_t d = 0; d < access->rank; d++) access->at[d] = expr_substitute(pool, access->at[d], count, vars, to);
  for (uint32_t i = 0; i < access->condition_count; i++) {
    map_condition *c = &access->conditions[i];
    c->value = expr_substitute(pool, c->value, count, vars, to);
    c->lo = expr_substitute(pool, c->lo, count, vars, to);
    c->hi = expr_substitute(pool, c->hi, count, vars, to);
  }
}

bool map_compose(expr_pool *pool, ir_map *out, const ir_map *outer, const ir_map *inner) {
  if (outer->out_rank != inner->in_rank) return false;
  ir_map result = *outer;
  map_access own = inner->to;
  result.out_rank = result.to.rank = inner->out_rank;
  map_substitute(pool, &own, inner->in_rank, inner->vars, outer->to.at);
  memcpy(result.to.at, own.at, inner->out_rank * sizeof own.at[0]);
  for (uint32_t i = 0; i < own.condition_count; i++) {
    const map_condition *c = &own.conditions[i];
    if (!map_add_condition(pool, &result.to, c->value, c->lo, c->hi)) return false;
  }
  *out = result;
  return !pool->failed;
}

bool map_equal(const ir_map *a, const ir_map *b) {
  if (a->in_rank != b->in_rank || a->out_rank != b->out_rank || a->to.condition_count != b->to.condition_count) return false;
  for (uint32_t i = 0; i < a->in_rank; i++)
    if (a->vars[i] != b->vars[i] || a->extents[i] != b->extents[i]) return false;
  for (uint32_t i = 0; i < a->out_rank; i++)
    if (a->to.at[i] != b->to.at[i]) return false;
  for (uint32_t i = 0; i < a->to.condition_count; i++) {
    const map_condition *x = &a->to.conditions[i], *y = &b->to.conditions[i];
    if (x->value != y->value || x->lo != y->lo || x->hi != y->hi) return false;
  }
  return true;
}

void map_print(const expr_pool *pool, const ir_map *map, ir_text *out) {
  ir_text_add(out, "(");
  for (uint32_t i = 0; i < map->in_rank; i++) {
    ir_text_format(out, "%s%s<", i ? ", " : "", pool->vars.at[map->vars[i]].name);
    expr_print(pool, map->extents[i], out);
  }
  ir_text_add(out, ") -> (");
  for (uint32_t i = 0; i < map->out_rank; i++) {
    ir_text_add(out, i ? ", " : "");
    expr_print(pool, map->to.at[i], out);
  }
  ir_text_add(out, ")");
  for (uint32_t i = 0; i < map->to.condition_count; i++) {
    const map_condition *c = &map->to.conditions[i];
    ir_text_add(out, i ? " and " : " where ");
    expr_print(pool, c->lo, out);
    ir_text_add(out, " <= ");
    expr_print(pool, c->value, out);
    ir_text_add(out, " < ");
    expr_print(pool, c->hi, out);
  }
}
