/* Index maps: named chains that must come out affine, then random chains of movements (static and symbolic extents) against a plain
   implementation that moves every element. */
#include "ir/map.h"
#include "tests/tap.h"

static uint64_t random_state = 1;
static int64_t below(int64_t n) {
  random_state = random_state * 6364136223846793005ULL + 1442695040888963407ULL;
  return (int64_t)((random_state >> 33) % (uint64_t)n);
}

typedef struct scene {
  ir_arena arena;
  expr_pool pool;
} scene;

static void open_scene(scene *s) {
  static const expr_symbol symbols[] = {{"n", 1, 64, 1, 8}, {"m", 8, 64, 8, 16}};
  ir_arena_init(&s->arena, NULL);
  expr_pool_init(&s->pool, &s->arena);
  for (uint32_t i = 0; i < IR_COUNT(symbols); i++) expr_symbol_add(&s->pool, &symbols[i]);
}

static ir_expr read_text(expr_pool *pool, const char *text) {
  ir_expr e = 0;
  const char *at = text;
  if (!expr_parse(pool, &at, text + strlen(text), &e) || *at) tap_ok(false, "parses %s", text);
  return e;
}

static void read_list(expr_pool *pool, const char *text, ir_expr *out, uint32_t *count) {
  *count = 0;
  while (*text) {
    char part[40];
    size_t length = strcspn(text, ",");
    memcpy(part, text, length);
    part[length] = 0;
    out[(*count)++] = read_text(pool, part);
    text += length + (text[length] == ',');
  }
}

static const char *text_of(scene *s, const ir_map *map) {
  ir_text text;
  ir_text_init(&text, &s->arena);
  map_print(&s->pool, map, &text);
  return text.at;
}

/* ---- chains read from text; the last result's coordinates are the variables ---- */
typedef struct step {
  char kind;
  const char *arg, *dims;
} step; /* r reshape, t transpose: `dims` is the shape after it */

static void walk_back(scene *s, const char *first_dims, const step *steps, uint32_t count, ir_map *map) {
  ir_expr shapes[9][SNT_MAX_RANK];
  uint32_t ranks[9];
  read_list(&s->pool, first_dims, shapes[0], &ranks[0]);
  for (uint32_t i = 0; i < count; i++) read_list(&s->pool, steps[i].dims, shapes[i + 1], &ranks[i + 1]);
  map_identity(&s->pool, map, ranks[count], shapes[count]);
  for (uint32_t i = count; i-- > 0;) {
    uint32_t perm[SNT_MAX_RANK];
    for (uint32_t k = 0; steps[i].kind == 't' && k < ranks[i]; k++) perm[k] = (uint32_t)(steps[i].arg[k] - '0');
    if (steps[i].kind == 't') map_transpose(&s->pool, &map->to, perm);
    else map_reshape(&s->pool, &map->to, ranks[i], shapes[i], shapes[i + 1]);
  }
  map->out_rank = map->to.rank;
}

static bool is_affine(const scene *s, const ir_map *map) {
  for (uint32_t i = 0; i < map->out_rank; i++) {
    uint32_t pending[64], count = 0;
    if (map->to.at[i] < 0) pending[count++] = IR_EXPR_NODE(map->to.at[i]);
    while (count) {
      const expr_node *node = &s->pool.nodes.at[pending[--count]];
      if (node->kind > EXPR_PRODUCT) return false;
      for (uint32_t k = 0; k < node->count; k++)
        if (s->pool.terms.at[node->first + k] < 0 && count < 60) pending[count++] = IR_EXPR_NODE(s->pool.terms.at[node->first + k]);
    }
  }
  return true;
}

// clang-format off
static const struct { const char *name, *dims; uint32_t count; step steps[6]; } chains[] = {
    {"reshape and back", "n,768", 2, {{'r', 0, "n,12,64"}, {'r', 0, "n,768"}}},
    {"split heads", "n,m,768", 2, {{'r', 0, "n,m,12,64"}, {'t', "0213", "n,12,m,64"}}},
    {"merge heads", "n,12,m,64", 2, {{'t', "0213", "n,m,12,64"}, {'r', 0, "n*m,768"}}},
    {"split and merge heads", "n*m,768", 4,
     {{'r', 0, "n,m,12,64"}, {'t', "0213", "n,12,m,64"}, {'t', "0213", "n,m,12,64"}, {'r', 0, "n*m,768"}}},
    {"reshape of reshape", "6,4,10", 3, {{'r', 0, "24,10"}, {'r', 0, "2,12,10"}, {'r', 0, "2,3,4,10"}}},
    {"pixel shuffle", "n,4,8,8", 3, {{'r', 0, "n,2,2,8,8"}, {'t', "03142", "n,8,2,8,2"}, {'r', 0, "n,8,2,8,2"}}},
    {"window partition and merge", "n,8,8,32", 6,
     {{'r', 0, "n,2,4,2,4,32"}, {'t', "013245", "n,2,2,4,4,32"}, {'r', 0, "n*4,16,32"}, {'r', 0, "n,2,2,4,4,32"}, {'t', "013245", "n,2,4,2,4,32"},
      {'r', 0, "n,8,8,32"}}},
    {"symbolic blocks", "n,m", 2, {{'r', 0, "n,m/8,8"}, {'r', 0, "n*(m/8),8"}}},
    {"flatten", "n,m,32", 2, {{'r', 0, "n*m*32"}, {'r', 0, "n,m*32"}}},
    {"extents of one", "n,1,m,1", 2, {{'r', 0, "1,n,m"}, {'r', 0, "n,1,1,m"}}},
    {"shuffle channels there and back", "n,24,7,7", 6,
     {{'r', 0, "n,3,8,7,7"}, {'t', "02134", "n,8,3,7,7"}, {'r', 0, "n,24,7,7"}, {'r', 0, "n,8,3,7,7"}, {'t', "02134", "n,3,8,7,7"}, {'r', 0, "n,24,7,7"}}},
};
// clang-format on
/* Those that end where they began must be the identity. */
static const uint8_t identities[] = {0, 3, 6, 10};

static void test_named(void) {
  scene s;
  open_scene(&s);
  for (uint32_t i = 0; i < IR_COUNT(chains); i++) {
    ir_map map;
    walk_back(&s, chains[i].dims, chains[i].steps, chains[i].count, &map);
    bool split = strcmp(chains[i].name, "flatten") == 0 || strcmp(chains[i].name, "merge heads") == 0 ||
                 strcmp(chains[i].name, "symbolic blocks") == 0;
    if (!split && !tap_ok(is_affine(&s, &map), "%s is affine", chains[i].name)) tap_diag("%s", text_of(&s, &map));
    bool same = map.in_rank == map.out_rank;
    for (uint32_t k = 0; same && k < map.out_rank; k++) same = map.to.at[k] == read_text(&s.pool, s.pool.vars.at[map.vars[k]].name);
    for (uint32_t k = 0; k < IR_COUNT(identities); k++)
      if (identities[k] == i && !tap_ok(same, "%s is the identity", chains[i].name)) tap_diag("%s", text_of(&s, &map));
  }
  ir_arena_free(&s.arena);
}

/* Same padding around a 3x3 window: conditions remain only where the padding is; no padding leaves none. */
static void test_window(void) {
  scene s;
  open_scene(&s);
  ir_map map;
  ir_expr dims[4], from[4];
  uint32_t rank;
  const int64_t one[2] = {1, 1}, two[2] = {2, 2};
  read_list(&s.pool, "n,m-2,3", dims, &rank);
  read_list(&s.pool, "n,m", from, &rank);
  map_identity(&s.pool, &map, 3, dims);
  ir_expr none[1] = {0};
  tap_ok(map_window(&s.pool, &map.to, 1, 1, one, one, none, from), "a window without padding");
  tap_is_int(map.to.condition_count, 0, "needs no condition");
  read_list(&s.pool, "n,m,3", dims, &rank);
  map_identity(&s.pool, &map, 3, dims);
  ir_expr low[1] = {1};
  map_window(&s.pool, &map.to, 1, 1, one, one, low, from);
  tap_is_int(map.to.condition_count, 1, "padding needs one");
  read_list(&s.pool, "n,m/2,2", dims, &rank);
  map_identity(&s.pool, &map, 3, dims);
  map_window(&s.pool, &map.to, 1, 1, two, one, none, from);
  tap_is_int(map.to.condition_count, 0, "stride 2, size 2 over an even extent needs none");
  ir_arena_free(&s.arena);
}

/* ---- random chains against moving the elements ---- */
enum { LIMIT = 4096, FILL = -7 };
typedef struct array {
  uint32_t rank;
  int64_t dims[SNT_MAX_RANK];
  int64_t at[LIMIT];
} array;
typedef struct movement {
  char kind;
  uint32_t perm[SNT_MAX_RANK], first, spatial;
  int64_t axes[SNT_MAX_RANK], steps[SNT_MAX_RANK], dilation[SNT_MAX_RANK];
  ir_expr starts[SNT_MAX_RANK];
} movement;
typedef struct shape {
  uint32_t rank;
  ir_expr dims[SNT_MAX_RANK];
} shape;

static int64_t value_of(const scene *s, ir_expr e, const int64_t *symbols) {
  int64_t value = -1;
  expr_eval(&s->pool, e, &(expr_values){.symbols = symbols}, &value);
  return value;
}

static int64_t count_of(const array *a) {
  int64_t count = 1;
  for (uint32_t i = 0; i < a->rank; i++) count *= a->dims[i];
  return count;
}

static void coordinates(const array *a, int64_t offset, int64_t *at) {
  for (uint32_t i = a->rank; i-- > 0; offset /= a->dims[i]) at[i] = offset % a->dims[i];
}

/* Where coordinate `at` of the result comes from; false: outside. Written from the meaning of each movement. */
static bool source_of(const scene *s, const movement *m, const array *from, const array *to, const int64_t *at, const int64_t *symbols,
                      int64_t *out) {
  int64_t flat = 0, spare[SNT_MAX_RANK] = {0};
  bool inside = true;
  uint32_t rank = from->rank;
  switch (m->kind) {
  case 'r':
    for (uint32_t i = 0; i < to->rank; i++) flat = flat * to->dims[i] + at[i];
    coordinates(from, flat, spare);
    break;
  case 't':
    for (uint32_t i = 0; i < rank; i++) spare[m->perm[i]] = at[i];
    break;
  case 'b':
    for (uint32_t i = 0; i < rank; i++) spare[i] = from->dims[i] == 1 ? 0 : at[m->axes[i]];
    break;
  case 's':
    for (uint32_t i = 0; i < rank; i++) spare[i] = value_of(s, m->starts[i], symbols) + at[i] * m->steps[i];
    break;
  case 'p':
    for (uint32_t i = 0; i < rank; i++) spare[i] = at[i] - value_of(s, m->starts[i], symbols);
    break;
  default:
    for (uint32_t i = 0; i < rank; i++) spare[i] = at[i];
    for (uint32_t i = 0; i < m->spatial; i++)
      spare[m->first + i] = at[m->first + i] * m->steps[i] + at[rank + i] * m->dilation[i] - value_of(s, m->starts[i], symbols);
    break;
  }
  for (uint32_t i = 0; i < rank; i++) inside = inside && spare[i] >= 0 && spare[i] < from->dims[i];
  memcpy(out, spare, sizeof spare);
  return inside;
}

static void move(const scene *s, const movement *m, const array *from, array *to, const int64_t *symbols) {
  int64_t count = count_of(to);
  for (int64_t i = 0; i < count; i++) {
    int64_t at[SNT_MAX_RANK] = {0}, source[SNT_MAX_RANK], flat = 0;
    coordinates(to, i, at);
    bool inside = source_of(s, m, from, to, at, symbols, source);
    for (uint32_t k = 0; k < from->rank; k++) flat = flat * from->dims[k] + source[k];
    to->at[i] = inside ? from->at[flat] : FILL;
  }
}

/* A random movement of `from`; false if the one drawn does not apply. */
static bool draw_reshape(scene *s, const shape *from, shape *to) {
  expr_pool *pool = &s->pool;
  *to = *from;
  uint32_t axis = (uint32_t)below(from->rank);
  int64_t extent;
  if (below(2) && axis + 1 < from->rank) { /* join two axes */
    to->dims[axis] = expr_mul(pool, from->dims[axis], from->dims[axis + 1]);
    memmove(to->dims + axis + 1, to->dims + axis + 2, (from->rank - axis - 2) * sizeof(ir_expr));
    to->rank--;
    return true;
  }
  if (from->rank >= 5) return false;
  int64_t by = below(2) ? 2 : 3;
  if (expr_multiple_of(pool, from->dims[axis]) % by != 0) {
    if (!expr_is_const(pool, from->dims[axis], &extent) || extent == 1) return false;
    by = extent;
  }
  memmove(to->dims + axis + 1, to->dims + axis, (from->rank - axis) * sizeof(ir_expr));
  ir_expr outer = expr_div(pool, from->dims[axis], by);
  bool inner_first = below(2);
  to->dims[axis] = inner_first ? by : outer;
  to->dims[axis + 1] = inner_first ? outer : by;
  to->rank++;
  return true;
}

static bool draw_broadcast(const shape *from, movement *m, shape *to) {
  if (from->rank >= 5) return false;
  uint32_t axis = (uint32_t)below(from->rank + 1);
  to->rank = from->rank + 1;
  for (uint32_t i = 0; i < from->rank; i++) {
    m->axes[i] = i < axis ? i : i + 1;
    to->dims[m->axes[i]] = from->dims[i] == 1 ? 2 : from->dims[i];
  }
  to->dims[axis] = 1 + below(2);
  return true;
}

static bool draw_slice(scene *s, const shape *from, movement *m, shape *to) {
  *to = *from;
  for (uint32_t i = 0; i < from->rank; i++) {
    int64_t kind = below(4);
    m->starts[i] = 0;
    m->steps[i] = 1;
    if (kind == 0) { /* reversed */
      m->starts[i] = expr_sub(&s->pool, from->dims[i], 1);
      m->steps[i] = -1;
    } else if (kind == 1) { /* every second */
      m->steps[i] = 2;
      to->dims[i] = expr_ceil_div(&s->pool, from->dims[i], 2);
    } else if (kind == 2 && expr_proves_lt(&s->pool, 1, from->dims[i])) {
      m->starts[i] = 1;
      to->dims[i] = expr_sub(&s->pool, from->dims[i], 1);
    }
  }
  return true;
}

static bool draw_pad(scene *s, const shape *from, movement *m, shape *to) {
  *to = *from;
  for (uint32_t i = 0; i < from->rank; i++) {
    m->starts[i] = below(3) == 0 ? below(2) : 0;
    to->dims[i] = expr_add(&s->pool, from->dims[i], expr_add(&s->pool, m->starts[i], below(4) == 0));
  }
  return true;
}

static bool draw_window(scene *s, const shape *from, movement *m, shape *to) {
  if (from->rank >= 5) return false;
  *to = *from;
  m->first = (uint32_t)below(from->rank);
  m->spatial = 1;
  int64_t size = 1 + below(3), stride = 1 + below(2), dilation = 1 + below(2), low = below(2);
  m->steps[0] = stride;
  m->dilation[0] = dilation;
  m->starts[0] = low;
  ir_expr span = expr_sub(&s->pool, expr_add(&s->pool, from->dims[m->first], low), (size - 1) * dilation + 1);
  if (!expr_proves_le(&s->pool, 0, span)) return false;
  to->dims[m->first] = expr_add(&s->pool, expr_div(&s->pool, span, stride), 1);
  to->dims[to->rank++] = size;
  return true;
}

static bool draw(scene *s, const shape *from, movement *m, shape *to) {
  static const char kinds[] = "rrrttbspw";
  memset(m, 0, sizeof *m);
  m->kind = kinds[below(9)];
  if (m->kind == 't') {
    to->rank = from->rank;
    for (uint32_t i = 0; i < from->rank; i++) m->perm[i] = i;
    for (uint32_t i = from->rank; i-- > 1;) {
      uint32_t j = (uint32_t)below(i + 1), swap = m->perm[i];
      m->perm[i] = m->perm[j], m->perm[j] = swap;
    }
    for (uint32_t i = 0; i < from->rank; i++) to->dims[i] = from->dims[m->perm[i]];
    return true;
  }
  switch (m->kind) {
  case 'r': return draw_reshape(s, from, to);
  case 'b': return draw_broadcast(from, m, to);
  case 's': return draw_slice(s, from, m, to);
  case 'p': return draw_pad(s, from, m, to);
  default: return draw_window(s, from, m, to);
  }
}

static bool apply(expr_pool *pool, const movement *m, const shape *from, const shape *to, map_access *access) {
  switch (m->kind) {
  case 'r': return map_reshape(pool, access, from->rank, from->dims, to->dims);
  case 't': return map_transpose(pool, access, m->perm);
  case 'b': return map_broadcast(pool, access, from->rank, from->dims, m->axes);
  case 's': return map_slice(pool, access, m->starts, m->steps);
  case 'p': return map_pad(pool, access, m->starts, from->dims);
  default: return map_window(pool, access, m->first, m->spatial, m->steps, m->dilation, m->starts, from->dims);
  }
}

static bool conditions_hold(const scene *s, const map_access *access, const int64_t *symbols, const int64_t *vars) {
  for (uint32_t i = 0; i < access->condition_count; i++) {
    int64_t value, lo, hi;
    const map_condition *c = &access->conditions[i];
    bool known = expr_eval(&s->pool, c->value, &(expr_values){.symbols = symbols, .vars = vars}, &value) &&
                 expr_eval(&s->pool, c->lo, &(expr_values){.symbols = symbols, .vars = vars}, &lo);
    if (!known || !expr_eval(&s->pool, c->hi, &(expr_values){.symbols = symbols, .vars = vars}, &hi) || value < lo || value >= hi)
      return false;
  }
  return true;
}

/* The element the map finds for each coordinate of the last array. */
static bool map_agrees(const scene *s, const ir_map *map, const array *first, const array *last, const int64_t *symbols, int64_t *vars) {
  int64_t count = count_of(last);
  for (int64_t i = 0; i < count; i++) {
    int64_t at[SNT_MAX_RANK] = {0}, flat = 0, got = FILL;
    coordinates(last, i, at);
    for (uint32_t k = 0; k < last->rank; k++) vars[map->vars[k]] = at[k];
    if (conditions_hold(s, &map->to, symbols, vars)) {
      for (uint32_t k = 0; k < first->rank; k++) {
        int64_t coordinate;
        if (!expr_eval(&s->pool, map->to.at[k], &(expr_values){.symbols = symbols, .vars = vars}, &coordinate) || coordinate < 0 ||
            coordinate >= first->dims[k])
          return false;
        flat = flat * first->dims[k] + coordinate;
      }
      got = first->at[flat];
    }
    if (got != last->at[i]) return false;
  }
  return true;
}

static void concrete(const scene *s, const shape *from, const int64_t *symbols, array *out) {
  out->rank = from->rank;
  for (uint32_t i = 0; i < from->rank; i++) out->dims[i] = value_of(s, from->dims[i], symbols);
}

enum { MAX_STEPS = 6 };
/* One chain, one value of the symbols; returns 1 right, 0 wrong, -1 too large to move. */
static int check_chain(scene *s, const shape *shapes, const movement *moves, uint32_t steps, const ir_map *map, const int64_t *symbols) {
  static array arrays[2], first;
  static int64_t vars[1 << 16];
  for (uint32_t i = 0; i <= steps; i++) {
    array sized;
    concrete(s, &shapes[i], symbols, &sized);
    if (count_of(&sized) > LIMIT) return -1;
  }
  concrete(s, &shapes[0], symbols, &first);
  for (int64_t i = 0; i < count_of(&first); i++) first.at[i] = i;
  const array *now = &first;
  for (uint32_t i = 0; i < steps; i++) {
    concrete(s, &shapes[i + 1], symbols, &arrays[i & 1]);
    move(s, &moves[i], now, &arrays[i & 1], symbols);
    now = &arrays[i & 1];
  }
  return map_agrees(s, map, &first, now, symbols, vars);
}

static void test_random(uint64_t seed, bool symbolic) {
  scene s;
  open_scene(&s);
  random_state = seed;
  int wrong = 0, checked = 0;
  for (int round = 0; round < 250 && wrong < 3; round++) {
    shape shapes[MAX_STEPS + 1];
    movement moves[MAX_STEPS];
    uint32_t steps = 0;
    shapes[0].rank = 1 + (uint32_t)below(3);
    for (uint32_t i = 0; i < shapes[0].rank; i++)
      shapes[0].dims[i] = symbolic && below(2) ? read_text(&s.pool, below(2) ? "n" : "m") : 1 + below(8);
    for (int attempt = 0; attempt < 14 && steps < MAX_STEPS; attempt++)
      steps += draw(&s, &shapes[steps], &moves[steps], &shapes[steps + 1]);
    ir_map map;
    map_identity(&s.pool, &map, shapes[steps].rank, shapes[steps].dims);
    bool fits = true;
    for (uint32_t i = steps; i-- > 0 && fits;) fits = apply(&s.pool, &moves[i], &shapes[i], &shapes[i + 1], &map.to);
    map.out_rank = map.to.rank;
    for (int sample = 0; sample < 3 && fits; sample++) {
      int64_t symbols[2] = {sample ? 1 + below(6) : 1, sample ? 8 + 8 * below(2) : 8};
      int right = check_chain(&s, shapes, moves, steps, &map, symbols);
      checked += right >= 0;
      if (right == 0) wrong++, tap_diag("n=%d m=%d: %s", (int)symbols[0], (int)symbols[1], text_of(&s, &map));
    }
  }
  tap_is_int(wrong, 0, "seed %llu: %s chains", (unsigned long long)seed, symbolic ? "symbolic" : "static");
  tap_ok(checked > 300 && !s.pool.failed, "%d chains moved", checked);
  ir_arena_free(&s.arena);
}

static void test_compose(void) {
  scene s;
  open_scene(&s);
  ir_map split, merge, both, same;
  ir_expr a[2], b[3];
  uint32_t rank;
  read_list(&s.pool, "n,768", a, &rank);
  read_list(&s.pool, "n,12,64", b, &rank);
  map_identity(&s.pool, &split, 3, b); /* [n,12,64] read from [n,768] */
  map_reshape(&s.pool, &split.to, 2, a, b);
  split.out_rank = 2;
  map_identity(&s.pool, &merge, 2, a);
  map_reshape(&s.pool, &merge.to, 3, b, a);
  merge.out_rank = 3;
  tap_ok(map_compose(&s.pool, &both, &merge, &split), "composes");
  same = merge;
  same.out_rank = same.to.rank = 2;
  for (uint32_t i = 0; i < 2; i++) same.to.at[i] = read_text(&s.pool, s.pool.vars.at[merge.vars[i]].name);
  memset(&same.to.at[2], 0, sizeof same.to.at[2]);
  tap_ok(map_equal(&both, &same), "to the identity: %s", text_of(&s, &both));
  tap_ok(!map_equal(&both, &split), "which is not the first map");
  tap_ok(!map_compose(&s.pool, &both, &split, &split), "ranks must meet");
  ir_arena_free(&s.arena);
}

/* A condition that another makes true is none: a window's taps inside of a padding whose rows are known to be wanted. */
static void test_follows(void) {
  scene s;
  open_scene(&s);
  const ir_expr row = expr_var_add(&s.pool, "row", 0, expr_int(&s.pool, 100), 1), n = read_text(&s.pool, "n");
  map_access at = {.rank = 1};
  const ir_expr from = expr_sub(&s.pool, row, expr_int(&s.pool, 5));
  static const struct {
    int64_t tap, lo, hi;
    uint32_t count;
  } taps[] = {{0, 0, 90, 1}, {0, 0, 98, 1}, {8, 0, 98, 1}, {9, 0, 98, 2}, {-1, 0, 98, 3}, {-1, -1, 98, 3}};
  tap_ok(map_add_condition(&s.pool, &at, from, 0, expr_int(&s.pool, 90)), "a row within a padding");
  for (uint32_t i = 0; i < IR_COUNT(taps); i++) {
    const ir_expr tap = expr_add(&s.pool, from, expr_int(&s.pool, taps[i].tap));
    tap_ok(map_add_condition(&s.pool, &at, tap, expr_int(&s.pool, taps[i].lo), expr_int(&s.pool, taps[i].hi)), "a tap of it");
    tap_is_int(at.condition_count, taps[i].count, "row %+lld within [%lld, %lld)", (long long)taps[i].tap, (long long)taps[i].lo,
               (long long)taps[i].hi);
  }
  at.condition_count = 0;
  tap_ok(map_add_condition(&s.pool, &at, from, 0, n) &&
             map_add_condition(&s.pool, &at, expr_add(&s.pool, from, 1), 0, expr_add(&s.pool, n, 1)),
         "an open extent");
  tap_is_int(at.condition_count, 1, "whose padding's condition follows");
  tap_ok(map_add_condition(&s.pool, &at, expr_add(&s.pool, from, 1), 0, n), "and one that is narrower");
  tap_is_int(at.condition_count, 2, "does not");
  ir_arena_free(&s.arena);
}

int main(void) {
  test_named();
  test_window();
  test_follows();
  test_compose();
  for (uint64_t seed = 1; seed <= 4; seed++) {
    test_random(seed, false);
    test_random(seed, true);
  }
  return tap_done();
}
