/* The expression pool: named simplifications and proofs, then random expressions against brute-force evaluation: simplification keeps the
   value, ranges and divisors hold, proofs are sound, print and parse give the same handle and, in a fresh pool, the same text. */
#include "ir/expr_private.h"
#include "tests/tap.h"

static uint64_t random_state = 1;
static uint32_t next_random(void) {
  random_state = random_state * 6364136223846793005ULL + 1442695040888963407ULL;
  return (uint32_t)(random_state >> 33);
}
static int64_t below(int64_t n) { return (int64_t)(next_random() % (uint64_t)n); }

/* ---- a pool with the names the cases use ---- */
typedef struct scene {
  ir_arena arena;
  expr_pool pool;
} scene;

static void add_symbol(expr_pool *pool, const char *name, int64_t min, int64_t max, int64_t multiple) {
  expr_symbol symbol = {name, min, max, multiple, min};
  expr_symbol_add(pool, &symbol);
}

static ir_expr read_text(expr_pool *pool, const char *text) {
  ir_expr e = 0;
  const char *at = text;
  bool parsed = expr_parse(pool, &at, text + strlen(text), &e);
  if (!parsed || *at) tap_ok(false, "parses %s", text);
  return e;
}

static void add_var(expr_pool *pool, const char *name, const char *lo, const char *hi, int64_t step) {
  expr_var_add(pool, name, read_text(pool, lo), read_text(pool, hi), step);
}

static void open_scene(scene *s) {
  ir_arena_init(&s->arena, NULL);
  expr_pool_init(&s->pool, &s->arena);
  add_symbol(&s->pool, "n", 1, 4096, 1);
  add_symbol(&s->pool, "m", 8, 1024, 8);
  add_symbol(&s->pool, "W", 1, 1000, 1);
  add_symbol(&s->pool, "C", 1, 64, 1);
  add_symbol(&s->pool, "h", 3, 64, 1);
  add_var(&s->pool, "i", "0", "n", 1);
  add_var(&s->pool, "j", "0", "W", 1);
  add_var(&s->pool, "k", "0", "C", 1);
  add_var(&s->pool, "x", "0", "64", 1);
  add_var(&s->pool, "y", "0", "8", 1);
  add_var(&s->pool, "v", "0", "m", 8);
  add_var(&s->pool, "t", "0", "(n+3)/4", 1);
  add_var(&s->pool, "u", "0", "i", 1);
  add_var(&s->pool, "z", "-20", "21", 1);
  add_var(&s->pool, "p", "0", "h+1", 1);
  add_var(&s->pool, "q", "0", "4096", 1);
}

static const char *text_of(scene *s, ir_expr e) {
  ir_text text;
  ir_text_init(&text, &s->arena);
  expr_print(&s->pool, e, &text);
  return text.at ? text.at : "";
}

/* ---- named cases ---- */
// clang-format off
static const struct { const char *in, *out; } simplifies[] = {
    {"(i*W + j)/W", "i"},
    {"(i*W + j)%W", "j"},
    {"(i*W*C + j*C + k)/(W*C)", "i"},
    {"(i*W*C + j*C + k)%(W*C)", "j*C + k"},
    {"(i*W*C + j*C + k)/C", "i*W + j"},
    {"((i*W*C + j*C + k)/C)%W", "j"},
    {"(i*(h+1) + p)/(h+1)", "i"},
    {"(i*(h+1) + p)%(h+1)", "p"},
    {"(i*64 + x)/64", "i"},
    {"(i*64 + x)%64", "x"},
    {"(i*64 + x)/32", "i*2 + x/32"},
    {"(x*8 + y)/16", "x/2"},
    {"(x*8 + y)%16", "(x%2)*8 + y"},
    {"(q/4)/8", "q/32"},
    {"(q/W)/C", "q/(W*C)"},
    {"(q%48)/8", "(q/8)%6"},
    {"(q%(W*C))/C", "(q/C)%W"},
    {"(q%48)%8", "q%8"},
    {"(q%(W*C))%C", "q%C"},
    {"q/4*4 + q%4", "q"},
    {"W*(q/W) + q%W", "q"},
    {"q/12*12 + (q/4)%3*4 + q%4", "q"},
    {"(q/4)%3*4 + q%4", "q%12"},
    {"(q/C)%W*C + q%C", "q%(W*C)"},
    {"(2*(q%98))/7*28 + (2*q)%7*4", "(q%98)*8"},
    {"q - q/4*4", "q%4"},
    {"q - q%4", "q/4*4"},
    {"n - n/4*4", "n%4"},
    {"v%8", "0"},
    {"(v + y)/8*8 + y", "v + y"},
    {"(v + y)%8", "y"},
    {"(v + y)/512", "v/512"},
    {"(v + y)%512", "v%512 + y"},
    {"(m + y)%8", "y"},
    {"m/8*8", "m"},
    {"(m + 3)/4", "m/4"},
    {"(W*8)%8", "0"},
    {"(x*8 + 7)/8", "x"},
    {"(x*5)%4", "x%4"},
    {"(q + 16)/4", "q/4 + 4"},
    {"(q + 16)%4", "q%4"},
    {"min(x,100)", "x"},
    {"max(x,100)", "100"},
    {"min(i,n)", "i"},
    {"min(n - t*4,4) + t*4", "min(n - t*4,4) + t*4"},
    {"min(min(q,n),min(n,q))", "min(q,n)"},
    {"(n+1)*(n+2) - n*n - n*3 - 2", "0"},
    {"(h-1)/2 + 1", "(h+1)/2"},
    {"(63 - x)/64", "0"},
    {"(0 - x - 1)/64", "-1"},
    {"(x - 64)%64", "x"},
    {"(2*x)/(2*W)", "x/W"},
    {"(i*W*4 + j*4 + y/2)/(W*4)", "i"},
    {"((q%12)*5 + z%5)/5", "q%12"},
    {"u/i", "0"},
};
// clang-format on

static void test_simplify(void) {
  scene s;
  open_scene(&s);
  for (uint32_t i = 0; i < IR_COUNT(simplifies); i++) {
    ir_expr got = read_text(&s.pool, simplifies[i].in), want = read_text(&s.pool, simplifies[i].out);
    if (!tap_ok(got == want, "%s = %s", simplifies[i].in, simplifies[i].out)) tap_diag("got %s", text_of(&s, got));
  }
  ir_arena_free(&s.arena);
}

// clang-format off
static const struct { const char *a, *b; bool proven; } orders[] = {
    {"i", "n", true},
    {"i*W + j", "n*W", true},
    {"(i*W + j)*C + k", "n*W*C", true},
    {"t*4", "n", true},
    {"t*4 + 3", "n", false},
    {"u", "i", true},
    {"u + 1", "n", true},
    {"min(n - t*4,4)", "5", true},
    {"t*4 + min(n - t*4,4)", "n+1", true},
    {"q%W", "W", true},
    {"q/W*W", "q+1", true},
    {"i/4*4", "n", true},
    {"v", "m", true},
    {"v+8", "m+1", false},
    {"x/8", "8", true},
    {"n", "i", false},
    {"(n-1)/2*2", "n", true},
    {"i*i", "n*n", false},
    {"max(i,u)", "n", true},
    {"i + W - 1 - j", "n + W", true},
    {"(h+1)/2", "h", true},
    {"(h+7)/8*2 - 2", "(h+3)/4", true},
    {"(h+7)/8*2", "(h+3)/4", false},
    {"h/32", "(h+96)/128*4 + 1", true},
    {"h/32", "(h+96)/128*4", false},
};
// clang-format on

static void test_orders(void) {
  scene s;
  open_scene(&s);
  for (uint32_t i = 0; i < IR_COUNT(orders); i++) {
    ir_expr a = read_text(&s.pool, orders[i].a), b = read_text(&s.pool, orders[i].b);
    tap_ok(expr_proves_lt(&s.pool, a, b) == orders[i].proven, "%s < %s is %s", orders[i].a, orders[i].b,
           orders[i].proven ? "proven" : "not proven");
  }
  const ir_expr end = read_text(&s.pool, "(h+1)/2*2 + 1"), inside = expr_var_add(&s.pool, "r", 0, end, 1);
  tap_ok(expr_proves_lt(&s.pool, inside, end), "a variable is below its own end, a quotient");
  tap_ok(!expr_proves_lt(&s.pool, inside, expr_sub(&s.pool, end, 1)), "and not below one less");
  const ir_expr rows = read_text(&s.pool, "h/32*8"), first = expr_var_add(&s.pool, "o", 0, rows, 1);
  const ir_expr of_share = expr_var_add(&s.pool, "o", first, expr_min(&s.pool, expr_add(&s.pool, first, 10), rows), 1);
  const ir_expr tap = expr_add(&s.pool, of_share, expr_var_add(&s.pool, "k", 0, 3, 1));
  tap_ok(expr_proves_lt(&s.pool, tap, expr_add(&s.pool, first, 12)),
         "rows of a share, which begins at a variable itself, lie in its region");
  tap_ok(!expr_proves_lt(&s.pool, tap, expr_add(&s.pool, first, 11)), "and not in one of a row less");
  tap_ok(expr_proves_le(&s.pool, 0, read_text(&s.pool, "(h+7)/8 - (h+7)/8%16")), "a quotient without its remainder is not negative");
  tap_ok(expr_proves_le(&s.pool, read_text(&s.pool, "n"), read_text(&s.pool, "n*W")), "n <= n*W");
  tap_ok(!expr_proves_le(&s.pool, read_text(&s.pool, "n*W"), read_text(&s.pool, "n")), "n*W <= n is not proven");
  tap_ok(!s.pool.failed, "no proof breaks the pool");
  ir_arena_free(&s.arena);
}

static void test_queries(void) {
  scene s;
  open_scene(&s);
  expr_pool *pool = &s.pool;
  int64_t coef, lo, hi, value;
  ir_expr rest, e = read_text(pool, "x*12 + y + n*W + 5");
  tap_ok(expr_split_affine(pool, e, 3, &coef, &rest) && coef == 12 && rest == read_text(pool, "y + n*W + 5"), "splits off x");
  tap_ok(expr_split_affine(pool, e, 0, &coef, &rest) && coef == 0 && rest == e, "a variable that is not there has coefficient 0");
  tap_ok(!expr_split_affine(pool, read_text(pool, "x/3"), 3, &coef, &rest), "no split under div");
  tap_ok(!expr_split_affine(pool, read_text(pool, "x*n"), 3, &coef, &rest), "no split in a product");
  tap_ok(expr_uses_var(pool, e, 3) && !expr_uses_var(pool, e, 0), "uses x and not i");
  tap_is_int(expr_multiple_of(pool, read_text(pool, "m*4 + v*2")), 16, "multiples: m*4 + v*2");
  tap_is_int(expr_multiple_of(pool, 0), 0, "multiple of 0");
  tap_is_int(expr_cost(pool, read_text(pool, "x*12 + y/3")), 6, "cost");
  expr_bounds(pool, read_text(pool, "x*2 - y"), &lo, &hi);
  tap_ok(lo == -7 && hi == 126, "bounds of x*2 - y");
  const ir_expr to[] = {read_text(pool, "x*8 + y")};
  uint32_t q = pool->vars.count - 1;
  tap_ok(expr_substitute(pool, read_text(pool, "q/8 + q%8*3"), 1, &q, to) == read_text(pool, "x + y*3"), "substitution simplifies");
  tap_ok(expr_is_const(pool, read_text(pool, "-9223372036854775808"), &value) && value == INT64_MIN, "the least literal");
  tap_ok(!expr_eval(pool, read_text(pool, "x/n"), &(expr_values){.symbols = (int64_t[]){0, 0, 0, 0, 0}, .vars = (int64_t[]){0, 0, 0, 5}},
                    &value),
         "division by 0 does not evaluate");
  const char *wrong[] = {"", "x+", "(x", "nope", "x/0", "x%-2", "99999999999999999999", "min(x", "9223372036854775807*2"};
  for (uint32_t i = 0; i < IR_COUNT(wrong); i++) {
    const char *at = wrong[i];
    tap_ok(!expr_parse(pool, &at, at + strlen(at), &e) && !pool->failed, "refuses \"%s\"", wrong[i]);
  }
  expr_mul(pool, read_text(pool, "9223372036854775807"), read_text(pool, "2"));
  tap_ok(pool->failed, "overflow sticks");
  ir_arena_free(&s.arena);
}

/* ---- random expressions beside a plain tree that keeps their meaning ---- */
enum { SYMBOLS = 4, VARS = 5, TREE = 64, SAMPLES = 60 };
typedef struct tree_node {
  char op;
  int64_t value;
  uint32_t a, b;
  ir_expr e;
} tree_node;
typedef struct world {
  scene s;
  int64_t symbols[SAMPLES][SYMBOLS], vars[SAMPLES][VARS];
  tree_node nodes[TREE];
  uint32_t count;
} world;

static void open_world(world *w) {
  memset(w, 0, sizeof *w);
  ir_arena_init(&w->s.arena, NULL);
  expr_pool *pool = &w->s.pool;
  expr_pool_init(pool, &w->s.arena);
  add_symbol(pool, "a", 1, 7, 1);
  add_symbol(pool, "b", 2, 12, 2);
  add_symbol(pool, "c", 1, 5, 1);
  add_symbol(pool, "d", 4, 16, 4);
  add_var(pool, "i", "0", "a", 1);
  add_var(pool, "j", "0", "b", 1);
  add_var(pool, "k", "0", "6", 1);
  add_var(pool, "l", "-4", "c*d", 4);
  add_var(pool, "o", "i", "a", 1);
  for (uint32_t t = 0; t < SAMPLES; t++) {
    int64_t *y = w->symbols[t], *v = w->vars[t];
    y[0] = 1 + below(7), y[1] = 2 + 2 * below(6), y[2] = 1 + below(5), y[3] = 4 + 4 * below(4);
    v[0] = below(y[0]), v[1] = below(y[1]), v[2] = below(6), v[3] = -4 + 4 * below((y[2] * y[3] + 4) / 4), v[4] = v[0] + below(y[0] - v[0]);
  }
}

static uint32_t add_node(world *w, char op, int64_t value, uint32_t a, uint32_t b, ir_expr e) {
  tree_node node = {op, value, a, b, e};
  w->nodes[w->count] = node;
  return w->count++;
}

static uint32_t leaf(world *w) {
  expr_pool *pool = &w->s.pool;
  static const char *const names[] = {"a", "b", "c", "d", "i", "j", "k", "l", "o"};
  int64_t pick = below(SYMBOLS + VARS + 2);
  if (pick < SYMBOLS + VARS)
    return add_node(w, pick < SYMBOLS ? 's' : 'v', pick < SYMBOLS ? pick : pick - SYMBOLS, 0, 0, read_text(pool, names[pick]));
  int64_t value = below(16) - 4;
  return add_node(w, 'c', value, 0, 0, expr_int(pool, value));
}

/* A divisor that is positive: a literal, a symbol, or a product of them. */
static uint32_t divisor(world *w) {
  expr_pool *pool = &w->s.pool;
  int64_t pick = below(3), value = 1 + below(8), symbol = below(SYMBOLS);
  static const char *const names[] = {"a", "b", "c", "d"};
  uint32_t x = add_node(w, 'c', value, 0, 0, value), y = add_node(w, 's', symbol, 0, 0, read_text(pool, names[symbol]));
  if (pick == 0) return x;
  if (pick == 1) return y;
  char op = below(2) ? '*' : '+';
  return add_node(w, op, 0, x, y, op == '*' ? expr_mul(pool, value, w->nodes[y].e) : expr_add(pool, value, w->nodes[y].e));
}

static uint32_t grow(world *w, int depth) {
  expr_pool *pool = &w->s.pool;
  if (depth == 0 || w->count > TREE - 12 || below(8) == 0) return leaf(w);
  static const char ops[] = "+++-***//%%%mM";
  char op = ops[below(14)];
  uint32_t a = grow(w, depth - 1);
  uint32_t b = op == '/' || op == '%' ? divisor(w) : grow(w, depth - 1);
  ir_expr x = w->nodes[a].e, y = w->nodes[b].e, e = 0;
  switch (op) {
  case '+': e = expr_add(pool, x, y); break;
  case '-': e = expr_sub(pool, x, y); break;
  case '*': e = expr_mul(pool, x, y); break;
  case '/': e = expr_div(pool, x, y); break;
  case '%': e = expr_mod(pool, x, y); break;
  case 'm': e = expr_min(pool, x, y); break;
  default: e = expr_max(pool, x, y); break;
  }
  return add_node(w, op, 0, a, b, e);
}

static int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b < 0); }

static int64_t meaning(const world *w, uint32_t n, uint32_t sample) {
  const tree_node *t = &w->nodes[n];
  if (t->op == 'c') return t->value;
  if (t->op == 's') return w->symbols[sample][t->value];
  if (t->op == 'v') return w->vars[sample][t->value];
  int64_t a = meaning(w, t->a, sample), b = meaning(w, t->b, sample);
  switch (t->op) {
  case '+': return a + b;
  case '-': return a - b;
  case '*': return a * b;
  case '/': return floor_div(a, b);
  case '%': return a - b * floor_div(a, b);
  case 'm': return a < b ? a : b;
  default: return a > b ? a : b;
  }
}

static bool value_and_facts_hold(world *w, uint32_t n) {
  ir_expr e = w->nodes[n].e;
  int64_t lo, hi, got, divides = expr_multiple_of(&w->s.pool, e);
  expr_bounds(&w->s.pool, e, &lo, &hi);
  if (lo >= 0 && expr_is_negative_somewhere(&w->s.pool, e)) return tap_diag("%s is at least %lld", text_of(&w->s, e), (long long)lo), false;
  for (uint32_t t = 0; t < SAMPLES; t++) {
    int64_t want = meaning(w, n, t);
    bool right = expr_eval(&w->s.pool, e, &(expr_values){.symbols = w->symbols[t], .vars = w->vars[t]}, &got) && got == want;
    right = right && lo <= want && want <= hi && (divides ? want % divides == 0 : want == 0);
    if (!right)
      return tap_diag("%s: got %lld, want %lld in [%lld, %lld]", text_of(&w->s, e), (long long)got, (long long)want, (long long)lo,
                      (long long)hi),
             false;
  }
  return true;
}

static bool proof_is_sound(world *w, uint32_t a, uint32_t b) {
  if (!expr_proves_lt(&w->s.pool, w->nodes[a].e, w->nodes[b].e)) return true;
  for (uint32_t t = 0; t < SAMPLES; t++)
    if (meaning(w, a, t) >= meaning(w, b, t))
      return tap_diag("%s < %s", text_of(&w->s, w->nodes[a].e), text_of(&w->s, w->nodes[b].e)), false;
  return true;
}

static bool round_trips(world *w, world *fresh, ir_expr e) {
  const char *text = text_of(&w->s, e), *at = text, *end = text + strlen(text);
  ir_expr again = 0, other = 0;
  if (!expr_parse(&w->s.pool, &at, end, &again) || at != end || again != e)
    return tap_diag("%s became %s", text, text_of(&w->s, again)), false;
  at = text;
  if (!expr_parse(&fresh->s.pool, &at, end, &other)) return false;
  const char *reprinted = text_of(&fresh->s, other);
  if (strcmp(reprinted, text) != 0) return tap_diag("%s, in a fresh pool %s", text, reprinted), false;
  return true;
}

static void test_random(uint64_t seed, int depth, int rounds) {
  static world w, fresh;
  random_state = seed;
  open_world(&w);
  open_world(&fresh);
  int wrong = 0, unsound = 0, changed = 0;
  for (int round = 0; round < rounds && wrong + unsound + changed < 5; round++) {
    w.count = 0;
    uint32_t a = grow(&w, depth);
    uint32_t b = w.count < TREE / 2 ? grow(&w, depth - 1) : a;
    wrong += !value_and_facts_hold(&w, a) || !value_and_facts_hold(&w, b);
    unsound += !proof_is_sound(&w, a, b) || !proof_is_sound(&w, b, a);
    changed += !round_trips(&w, &fresh, w.nodes[a].e);
  }
  tap_ok(!w.s.pool.failed && !fresh.s.pool.failed, "seed %llu: the pools are whole", (unsigned long long)seed);
  tap_is_int(wrong, 0, "seed %llu: values, ranges, divisors", (unsigned long long)seed);
  tap_is_int(unsound, 0, "seed %llu: proofs", (unsigned long long)seed);
  tap_is_int(changed, 0, "seed %llu: print and parse", (unsigned long long)seed);
  ir_arena_free(&w.s.arena);
  ir_arena_free(&fresh.s.arena);
}

/* Mixed-radix digits of one number, put together again in any grouping, are the number. */
static void test_digits(void) {
  scene s;
  open_scene(&s);
  expr_pool *pool = &s.pool;
  random_state = 77;
  int wrong = 0;
  for (int round = 0; round < 300; round++) {
    ir_expr parts[3], whole = read_text(pool, "q"), left = whole, weight = 1, sum = 0;
    for (int i = 0; i < 3; i++) {
      parts[i] = below(2) ? 2 + below(6) : read_text(pool, below(2) ? "W" : "C");
      bool last = i == 2;
      ir_expr digit = last ? left : expr_mod(pool, left, parts[i]);
      left = expr_div(pool, left, parts[i]);
      sum = expr_add(pool, sum, expr_mul(pool, digit, weight));
      weight = expr_mul(pool, weight, parts[i]);
    }
    if (sum != whole) wrong++, tap_diag("%s", text_of(&s, sum));
  }
  tap_is_int(wrong, 0, "digits join to the number");
  ir_arena_free(&s.arena);
}

/* 100k distinct nodes stay cheap, and a repeated expression makes no new node. */
static void test_size(void) {
  scene s;
  open_scene(&s);
  expr_pool *pool = &s.pool;
  ir_expr x = read_text(pool, "q"), y = read_text(pool, "n");
  for (int64_t i = 1; i <= 100000; i++) expr_add(pool, expr_mul(pool, x, expr_int(pool, i)), y);
  uint32_t nodes = pool->nodes.count;
  tap_ok(nodes > 200000 - 2 && !pool->failed, "100000 sums are distinct");
  for (int64_t i = 1; i <= 100000; i++) expr_add(pool, expr_mul(pool, x, expr_int(pool, i)), y);
  tap_is_int(pool->nodes.count, nodes, "and made once");
  ir_arena_free(&s.arena);
}

/* Any text is read or refused; nothing grows without limit. */
static void test_noise(void) {
  static const char *const words[] = {
      "n", "q", "W", "+", "-", "*", "/", "%", "(", ")", "min(", "max(", ",", "7", "4", "0", " ", "9223372036854775807", "zz"};
  scene s;
  open_scene(&s);
  random_state = 123;
  int read = 0;
  for (int round = 0; round < 20000; round++) {
    char text[256] = "";
    for (int64_t n = 1 + below(12); n-- > 0;) strcat(text, words[below(IR_COUNT(words))]);
    const char *at = text;
    ir_expr e;
    read += expr_parse(&s.pool, &at, text + strlen(text), &e);
  }
  tap_ok(read > 1000 && read < 19000 && !s.pool.failed, "%d of 20000 noisy texts read", read);
  static char deep[4000];
  for (int i = 0; i < 999; i++) memcpy(deep + 4 * i, i % 2 ? "%n+q" : "%W+h", 4);
  deep[0] = '(';
  char *text = deep + 2;
  const char *at = text;
  ir_expr e;
  bool survived = expr_parse(&s.pool, &at, deep + 3996, &e) || !s.pool.failed;
  tap_ok(survived, "a long chain");
  char power[600] = "(n+m+W+C+h)";
  for (int i = 0; i < 40; i++) strcat(power, "*(n+m+W+C)");
  at = power;
  tap_ok(!expr_parse(&s.pool, &at, power + strlen(power), &e) && !s.pool.failed, "a power of sums is refused, not expanded");
  ir_expr q = read_text(&s.pool, "q"), n = read_text(&s.pool, "n"), width = read_text(&s.pool, "W");
  e = q;
  for (int i = 0; i < 400 && !s.pool.failed; i++) e = expr_mod(&s.pool, expr_add(&s.pool, e, q), i % 2 ? n : width);
  tap_ok(s.pool.failed, "a tree deeper than the limit fails the pool");
  ir_arena_free(&s.arena);
}

int main(void) {
  test_noise();
  test_simplify();
  test_orders();
  test_queries();
  for (uint64_t seed = 1; seed <= 6; seed++) test_random(seed, 2 + (int)(seed % 3), 800);
  test_digits();
  test_size();
  return tap_done();
}
