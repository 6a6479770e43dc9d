/* Rules of grown graphs: one element in, one element out, with operands that are literals, values of the same shape or broadcast ones; casts,
   comparisons, generated numbers and loops around them. */
#include "conformance/grow.h"
#include <math.h>
#include <string.h>

typedef struct unary {
  const char *name;
  double from, to, low,
      high; /* its operand is confined to from .. to (equal: no need); its result lies in low .. high (equal: as large as the operand) */
  bool keeps_whole;
} unary;

// clang-format off
static const unary unaries[] = {
  {"neg", 0, 0, 0, 0, true},         {"abs", 0, 0, 0, 0, true},          {"relu", 0, 0, 0, 0, true},        {"sign", 0, 0, -1, 1, true},
  {"floor", 0, 0, 0, 0, true},       {"ceil", 0, 0, 0, 0, true},         {"round", 0, 0, 0, 0, true},       {"trunc", 0, 0, 0, 0, true},
  {"tanh", 0, 0, -1, 1, false},      {"sigmoid", 0, 0, 0, 1, false},     {"erf", 0, 0, -1, 1, false},       {"sin", 0, 0, -1, 1, false},
  {"cos", 0, 0, -1, 1, false},       {"atan", 0, 0, -1.6, 1.6, false},   {"exp", -20, 4, 0, 55, false},     {"exp2", -20, 5, 0, 32, false},
  {"expm1", -20, 4, -1, 54, false},  {"sqrt", 0.01, 10000, 0, 100, false}, {"rsqrt", 0.05, 10000, 0, 5, false}, {"recip", 0.1, 10000, 0, 10, false},
  {"log", 0.05, 10000, -3, 10, false}, {"log2", 0.05, 10000, -5, 14, false}, {"log1p", -0.9, 10000, -3, 10, false}, {"tan", -1.2, 1.2, -2.6, 2.6, false},
  {"sinh", -4, 4, -28, 28, false},   {"cosh", -4, 4, 1, 28, false},      {"asinh", 0, 0, -11, 11, false},   {"acosh", 1.01, 10000, 0, 11, false},
  {"atanh", -0.9, 0.9, -1.5, 1.5, false}, {"asin", -0.95, 0.95, -1.6, 1.6, false}, {"acos", -0.95, 0.95, 0, 3.2, false}, {"gelu", 0, 0, 0, 0, false},
  {"gelu_tanh", -100, 100, -100, 100, false}, {"silu", -80, 10000, -1, 10000, false}, {"hardswish", 0, 0, 0, 0, false}, {"softplus", -80, 10000, 0, 10000, false},
  {"mish", -80, 10000, -1, 10000, false}, {"elu", -80, 10000, -1, 10000, false}, {"leaky_relu", 0, 0, 0, 0, false}, {"softsign", 0, 0, -1, 1, false},
};
static const char *const integer_unaries[] = {"neg", "abs", "sign", "not", "popcount", "clz", "relu"};
// clang-format on
enum { UNARIES = sizeof unaries / sizeof *unaries, INTEGER_UNARIES = sizeof integer_unaries / sizeof *integer_unaries };

static bool is_whole_type(const grow_value *v) { return ir_dtypes[v->dtype].is_int; }
static bool is_bool(const grow_value *v) { return v->dtype == SNT_BOOL; }

static bool rule_integer_unary(grower *g, const grow_value *v) {
  const char *name = integer_unaries[grow_choose(g, INTEGER_UNARIES)];
  const bool is_unsigned = !ir_dtypes[v->dtype].is_signed;
  if (is_unsigned && (!strcmp(name, "neg") || !strcmp(name, "sign") || !strcmp(name, "abs"))) name = "not";
  return grow_line(g, v, "%s %s", name, v->name) != NULL;
}

static bool rule_unary(grower *g) {
  grow_value *v = grow_pick(g, grow_is_number);
  if (!v) return false;
  if (is_whole_type(v)) return rule_integer_unary(g, v);
  const unary *u = &unaries[grow_choose(g, UNARIES)];
  if (u->from != u->to && !(v = grow_confine(g, v, u->from, u->to))) return false;
  grow_value as = *v;
  const double size = grow_size(v);
  as.low = u->low != u->high ? u->low : !strcmp(u->name, "abs") ? 0 : -size - 1, as.high = u->low != u->high ? u->high : size + 1;
  as.is_whole = v->is_whole && u->keeps_whole;
  v->is_read = true;
  return grow_settle(g, grow_line(g, &as, "%s %s", u->name, as.name)) != NULL;
}

/* Functions far beyond the places where they bend, on one side of 0 or on both: where a side is proven, clamps are left out. */
static bool rule_far(grower *g) {
  static const char *const functions[] = {"exp",     "exp2", "expm1",    "sinh", "cosh", "tanh",
                                          "sigmoid", "erf",  "softplus", "silu", "mish", "atan"};
  static const char *const sides[] = {"exp", "relu", "exp", "abs", "neg"};
  enum { FAR = 60, END = 1000 };
  const uint32_t n = g->lines++, steps = 1 + grow_choose(g, 2);
  grow_value *v = grow_pick(g, grow_is_float);
  if (!v || v->dtype != SNT_F32) return false;
  grow_value as = *v;
  v->is_read = true;
  grow_text(g, "  %%f%u.0 = mul %s, %d\n", n, as.name, FAR);
  for (uint32_t i = 0; i < steps; i++) grow_text(g, "  %%f%u.%u = %s %%f%u.%u\n", n, i + 1, sides[grow_choose(g, IR_COUNT(sides))], n, i);
  grow_text(g, "  %%f%u = %s %%f%u.%u\n", n, functions[grow_choose(g, IR_COUNT(functions))], n, steps);
  as.low = -INFINITY, as.high = END, as.is_whole = false;
  return grow_confine(g, grow_line(g, &as, "min %%f%u, %d", n, END), -END, END) != NULL;
}

/* ---- two operands ---- */

/* Whether v can be brought to the extents of `like` by a broadcast along its last axes. */
static bool broadcasts_to(const grow_value *v, const grow_value *like) {
  if (v->dtype != like->dtype || v->rank > like->rank || v->rank == 0) return false;
  const uint32_t first = like->rank - v->rank;
  for (uint32_t i = 0; i < v->rank; i++)
    if (strcmp(v->dims[i].text, "1") != 0 && strcmp(v->dims[i].text, like->dims[first + i].text) != 0) return false;
  return true;
}

/* A value of like's type and shape for the second place: one that is there, one broadcast, or a new port of fewer axes. `like` is a copy. */
static grow_value *second(grower *g, const grow_value *like) {
  const uint32_t way = grow_choose(g, 8);
  char shape[GROW_RANK * GROW_WORD + 8];
  if (way < 4 || !like->rank) return grow_pick_like(g, like);
  grow_shape(shape, sizeof shape, like->dims, like->rank);
  grow_value *found = NULL;
  for (uint32_t i = g->count; i-- > 0 && !found;)
    if (broadcasts_to(&g->values[i], like) && !grow_same_dims(&g->values[i], like)) found = &g->values[i];
  if (way >= 6 && (!found || way == 7)) {
    const uint32_t keep = 1 + grow_choose(g, like->rank);
    found = grow_port(g, like->dtype, keep, like->dims + like->rank - keep);
    if (found && found->rank == like->rank) return found->is_read = true, found;
  }
  if (!found) return grow_pick_like(g, like);
  found->is_read = true;
  grow_value as = *like;
  as.low = found->low, as.high = found->high, as.is_whole = found->is_whole;
  grow_value *wide = grow_line(g, &as, "broadcast %s, shape=%s", found->name, shape);
  if (wide) wide->is_read = true;
  return wide;
}

static const char *const plain_binaries[] = {"add", "sub", "mul", "max", "min"};

static void combine(grow_value *as, uint32_t op, const grow_value *b) {
  const double size = grow_size(as), other = grow_size(b), most = op < 2 ? size + other : op == 2 ? size * other : fmax(size, other);
  as->low = -most, as->high = most, as->is_whole = as->is_whole && b->is_whole;
}

static bool rule_binary(grower *g) {
  grow_value *v = grow_pick(g, grow_is_number);
  const uint32_t op = grow_choose(g, 5);
  if (!v) return false;
  if (op == 2 && grow_is_float(v)) v = grow_confine(g, v, -sqrt(grow_limit(v->dtype)), sqrt(grow_limit(v->dtype)));
  if (!v) return false;
  grow_value a = *v;
  grow_value *b = second(g, &a);
  if (op == 2 && b && grow_is_float(b)) b = grow_confine(g, b, -sqrt(grow_limit(b->dtype)), sqrt(grow_limit(b->dtype)));
  if (!b) return false;
  b->is_read = true;
  grow_value as = a;
  combine(&as, op, b);
  return grow_settle(g, grow_line(g, &as, "%s %s, %s", plain_binaries[op], a.name, b->name)) != NULL;
}

static bool rule_literal(grower *g) {
  static const double numbers[] = {1, 2, 0.5, -1.25, 3, -2, 0.125};
  const grow_value *v = grow_pick(g, grow_is_number);
  const uint32_t op = grow_choose(g, 5);
  const double n = numbers[grow_choose(g, 7)];
  if (!v) return false;
  if (is_whole_type(v)) return grow_line(g, v, "%s %s, %d", plain_binaries[op], v->name, (int)fmax(1, n)) != NULL;
  grow_value as = *v, b = {.low = n, .high = n, .is_whole = n == floor(n)};
  combine(&as, op, &b);
  const bool first = grow_choose(g, 4) == 3;
  if (first) return grow_settle(g, grow_line(g, &as, "%s %.9g, %s", plain_binaries[op], n, v->name)) != NULL;
  return grow_settle(g, grow_line(g, &as, "%s %s, %.9g", plain_binaries[op], v->name, n)) != NULL;
}

static bool integer_pair(grower *g, const grow_value *v) {
  static const char *const names[] = {"and", "or", "xor", "div", "rem", "mod", "shl", "shr"};
  const grow_value a = *v;
  const grow_value *b = second(g, &a);
  grow_value as = a;
  if (b) as.is_whole = a.is_whole && b->is_whole;
  return b && grow_line(g, &as, "%s %s, %s", names[grow_choose(g, 8)], a.name, b->name);
}

/* div, mod, rem, pow, atan2; their domains. */
static bool rule_careful(grower *g) {
  static const struct {
    const char *name;
    double from, to, second_from, second_to, size;
  } rows[] = {{"div", -10000, 10000, 0.5, 10000, 20000},
              {"pow", 0.1, 4, -3, 3, 1000},
              {"atan2", 0.1, 10000, 0.1, 10000, 3.2},
              {"mod", -100, 100, 1, 10000, 10000},
              {"rem", -100, 100, 1, 10000, 10000}};
  grow_value *v = grow_pick(g, grow_is_number);
  if (!v) return false;
  if (is_whole_type(v)) return integer_pair(g, v);
  const uint32_t row = grow_choose(g, sizeof rows / sizeof *rows);
  if (!(v = grow_confine(g, v, rows[row].from, rows[row].to))) return false;
  v->is_read = true;
  grow_value as = *v;
  const grow_value *b = second(g, &as);
  if (!b || !(b = grow_confine(g, (grow_value *)b, rows[row].second_from, rows[row].second_to))) return false;
  grow_value *second_operand = (grow_value *)b;
  second_operand->is_read = true;
  as.low = -rows[row].size, as.high = rows[row].size, as.is_whole = false;
  return grow_settle(g, grow_line(g, &as, "%s %s, %s", rows[row].name, as.name, b->name)) != NULL;
}

/* ---- truth ---- */

static grow_value *compare(grower *g) {
  static const char *const names[] = {"lt", "gt", "le", "ge", "eq", "ne"};
  const grow_value *v = grow_pick(g, grow_is_number);
  const uint32_t op = grow_choose(g, 6);
  if (!v) return NULL;
  const grow_value a = *v;
  grow_value as = a;
  as.dtype = SNT_BOOL, as.low = 0, as.high = 1;
  if (grow_choose(g, 2) == 0) return grow_line(g, &as, "%s %s, %d", names[op], a.name, 1);
  const grow_value *b = second(g, &a);
  if (b) as.is_whole = a.is_whole && b->is_whole;
  return b ? grow_line(g, &as, "%s %s, %s", names[op], a.name, b->name) : NULL;
}

static bool rule_compare(grower *g) {
  static const char *const names[] = {"and", "or", "xor"};
  if (grow_choose(g, 3) < 2) return compare(g) != NULL;
  const grow_value *v = grow_pick(g, is_bool);
  if (!v) return compare(g) != NULL;
  const grow_value a = *v;
  const uint32_t op = grow_choose(g, 4);
  if (op == 3) return grow_line(g, &a, "not %s", a.name) != NULL;
  const grow_value *b = grow_pick_like(g, &a);
  grow_value as = a;
  if (b) as.is_whole = a.is_whole && b->is_whole;
  return b && grow_line(g, &as, "%s %s, %s", names[op], a.name, b->name);
}

static bool rule_select(grower *g) {
  grow_value *c = grow_choose(g, 2) ? grow_pick(g, is_bool) : compare(g);
  if (!c) return false;
  c->is_read = true;
  grow_value wanted = *c;
  for (uint32_t i = g->count; i-- > 0;)
    if (grow_is_number(&g->values[i]) && grow_same_dims(&g->values[i], c)) {
      wanted.dtype = g->values[i].dtype;
      break;
    }
  if (wanted.dtype == SNT_BOOL) return false;
  const grow_value *a = grow_pick_like(g, &wanted);
  if (!a) return false;
  const grow_value first = *a, *b = second(g, &first);
  if (!b) return false;
  grow_value as = first;
  combine(&as, 3, b);
  as.is_whole = as.is_whole && c->is_whole;
  return grow_settle(g, grow_line(g, &as, "select %s, %s, %s", c->name, first.name, b->name)) != NULL;
}

/* ---- other types ---- */

static double type_size(uint8_t dtype) {
  return dtype == SNT_BOOL ? 1 : pow(2, 8 * (double)ir_dtypes[dtype].bytes - ir_dtypes[dtype].is_signed);
}

static bool rule_cast(grower *g) {
  static const uint8_t types[] = {SNT_F32, SNT_F16,  SNT_I32, SNT_BF16, SNT_I64, SNT_F64, SNT_U8,
                                  SNT_I8,  SNT_BOOL, SNT_U32, SNT_I16,  SNT_U16, SNT_U64};
  grow_value *v = grow_pick(g, grow_any);
  const uint8_t to = types[grow_choose(g, sizeof types)];
  if (!v || v->dtype == to) return false;
  if (ir_dtypes[to].is_float && grow_is_float(v)) v = grow_confine(g, v, -grow_limit(to), grow_limit(to));
  /* a wide integer would leave the range of a narrow float: its low bits are as good */
  if (v && ir_dtypes[to].is_float && is_whole_type(v)) {
    const grow_value was = *v;
    if ((v = grow_line(g, &was, "rem %s, 50", was.name))) v->low = -50, v->high = 50;
  }
  if (!v) return false;
  v->is_read = true;
  grow_value as = *v;
  as.dtype = to;
  if (!ir_dtypes[to].is_float) as.low = to == SNT_BOOL ? 0 : -type_size(to), as.high = type_size(to);
  return grow_settle(g, grow_line(g, &as, "cast %s, dtype=%s", as.name, ir_dtypes[to].name)) != NULL;
}

static bool is_f32(const grow_value *v) { return v->dtype == SNT_F32; }

/* Through a type that only stores, and back. */
static bool rule_storage(grower *g) {
  static const char *const types[] = {"f16", "bf16", "f8e4m3", "f8e5m2", "u8", "i8"};
  static const double room[] = {100, 1000, 400, 10000, 255, 127};
  grow_value *v = grow_pick(g, is_f32);
  const uint32_t type = grow_choose(g, 6);
  if (!v || !(v = grow_confine(g, v, -room[type], room[type]))) return false;
  v->is_read = true;
  grow_value as = *v;
  as.is_whole = as.is_whole && grow_size(v) <= 8;
  if (type == 4) as.is_whole = false; /* negative ones saturate */
  const uint32_t n = g->lines++ % 1000;
  grow_text(g, "  %%s%u = cast %s, dtype=%s\n", n, as.name, types[type]);
  return grow_line(g, &as, "cast %%s%u, dtype=f32", n) != NULL;
}

static bool rule_generated(grower *g) {
  const grow_value *v = grow_pick(g, grow_has_axis);
  if (!v) return false;
  grow_value as = *v;
  char shape[GROW_RANK * GROW_WORD + 8];
  grow_shape(shape, sizeof shape, as.dims, as.rank);
  const uint32_t axis = grow_choose(g, as.rank), kind = grow_choose(g, 3);
  as.dtype = kind == 0 ? SNT_I32 : kind == 1 ? SNT_U32 : SNT_F32;
  const uint32_t n = g->lines++ % 1000;
  grow_text(g, "  %%i%u: %s%s = iota axis=%u\n", n, ir_dtypes[as.dtype].name, shape, axis);
  as.low = 0, as.high = kind == 1 ? 4294967295.0 : 64000, as.is_whole = true;
  if (kind == 1) return grow_line(g, &as, "random 7:u32, %%i%u", n) != NULL;
  return grow_settle(g, grow_line(g, &as, "add %%i%u, 1", n)) != NULL;
}

/* An extent times so much that a narrow type has gaps or wraps there, as a number of that type beside a value. */
static bool rule_number(grower *g) {
  static const uint8_t types[] = {SNT_BF16, SNT_U8, SNT_F16, SNT_I8, SNT_I16};
  const grow_value *v = grow_pick(g, grow_has_axis);
  const uint8_t type = types[grow_choose(g, sizeof types)];
  if (!v || v->dtype != SNT_F32) return false;
  grow_value as = *v;
  const uint32_t n = g->lines++ % 1000;
  grow_text(g, "  %%d%u: %s = dim shape=[101*(%s)+1]\n", n, ir_dtypes[type].name, as.dims[0].text);
  grow_text(g, "  %%e%u = cast %%d%u, dtype=f32\n", n, n);
  as.high += 65536, as.low -= 65536;
  return grow_settle(g, grow_line(g, &as, "add %%e%u, %s", n, as.name)) != NULL;
}

/* A row by an extent that went through a type which may not hold it. */
static bool rule_row(grower *g) {
  static const uint8_t types[] = {SNT_BOOL, SNT_I8, SNT_I64, SNT_BF16};
  grow_value *v = grow_pick(g, grow_has_axis);
  const uint8_t type = types[grow_choose(g, sizeof types)];
  if (!v) return false;
  grow_value as = *v;
  const uint32_t n = g->lines++ % 1000, axis = grow_choose(g, as.rank);
  grow_text(g, "  %%d%u: i64 = dim shape=[(%s)-1]\n  %%e%u = cast %%d%u, dtype=%s\n", n, as.dims[axis].text, n, n, ir_dtypes[type].name);
  grow_text(g, "  %%f%u = cast %%e%u, dtype=i64\n", n, n);
  memmove(&as.dims[axis], &as.dims[axis + 1], (--as.rank - axis) * sizeof as.dims[0]);
  return grow_line(g, &as, "gather %s, %%f%u, axis=%u", as.name, n, axis) != NULL;
}

/* Whole numbers at the ends of their type, here and there literals that nothing else reaches. */
static bool rule_ends(grower *g) {
  grow_value *v = grow_pick(g, grow_has_axis);
  if (!v || !is_whole_type(v) || !grow_is_literal(&v->dims[v->rank - 1]) || v->dims[v->rank - 1].value > 17) return false;
  grow_value as = *v;
  const ir_dtype_info *type = &ir_dtypes[as.dtype];
  const uint32_t n = g->lines++ % 1000, extent = (uint32_t)as.dims[as.rank - 1].value;
  const unsigned long long top = ~0ull >> (64 - type->bits + type->is_signed);
  char shape[GROW_RANK * GROW_WORD + 8];
  grow_shape(shape, sizeof shape, as.dims, as.rank);
  for (uint32_t k = 0; k < 2; k++) { /* what stays of it; what is turned over */
    grow_text(g, "  %%%c%u: %s[%u] = const [", "tu"[k], n, type -> name, extent);
    for (uint32_t i = 0; i < extent; i++) grow_text(g, "%s%llu", i ? ", " : "", grow_choose(g, 2) ? top - grow_choose(g, 3) : 0);
    grow_text(g, "]\n  %%%c%u = broadcast %%%c%u, shape=%s\n", "pq"[k], n, "tu"[k], n, shape);
  }
  grow_text(g, "  %%w%u = and %s, %%p%u\n", n, as.name, n);
  as.low = -type_size(as.dtype), as.high = type_size(as.dtype);
  return grow_line(g, &as, "xor %%w%u, %%q%u", n, n) != NULL;
}

/* The next of a second carried value: pointwise from both, or behind something of the whole of the first's next, so that another kernel makes it. */
static void put_second(grower *g, uint32_t kind, uint32_t n, uint32_t rank, const char *shape) {
  static const int32_t all[GROW_RANK] = {0, 1, 2, 3, 4};
  char axes[32];
  if (kind == 1) {
    grow_text(g, "    %%e%u = add %%c%u, %%d%u\n    %%f%u = mul %%e%u, 0.5\n", n, n, n, n, n);
    return;
  }
  grow_list(axes, sizeof axes, all, rank);
  grow_text(g, "    %%e%u = reduce.max %%b%u, axes=%s\n    %%h%u = tanh %%e%u\n", n, n, axes, n, n);
  grow_text(g, "    %%g%u = broadcast %%h%u, shape=%s\n    %%m%u = scan.max %%d%u, axis=%u\n    %%f%u = sub %%m%u, %%g%u\n", n, n, shape, n,
            n, rank - 1, n, n, n);
}

/* A few trips of a body that stays as small as what goes in: pointwise, along rows, or turned round; alone or beside a second carried value. */
static bool rule_repeat(grower *g) {
  static const uint8_t trip_counts[] = {1, 2, 3, 4, 9};
  const uint32_t trips = trip_counts[grow_choose(g, 5)], body = grow_choose(g, 4), beside = grow_choose(g, 3);
  grow_value *v = grow_pick(g, grow_is_float);
  if (!v || ((body || beside == 2) && !v->rank) || !(v = grow_confine(g, v, -50, 50))) return false;
  v->is_read = true;
  grow_value as = *v;
  char shape[GROW_RANK * GROW_WORD + 8];
  grow_value *b = second(g, &as);
  if (!b || !(b = grow_confine(g, b, -50, 50))) return false;
  b->is_read = true;
  grow_shape(shape, sizeof shape, as.dims, as.rank);
  const char *written = as.rank ? shape : "";
  const uint32_t n = g->lines++ % 1000;
  const char *type = ir_dtypes[as.dtype].name;
  grow_text(g, "  %%r%u: %s%s", n, type, written);
  if (beside) grow_text(g, ", %%q%u: %s%s", n, type, written);
  grow_text(g, " = repeat trips=%u (%%c%u: %s%s = %s", trips, n, type, written, as.name);
  if (beside) grow_text(g, ", %%d%u: %s%s = %s", n, type, written, b->name);
  grow_text(g, ") {\n");
  static const char *const firsts[] = {"mul %%c%u, 0.5", "softmax %%c%u, axis=-1", "reduce.max %%c%u, axes=[-1], keep", "tanh %%c%u"};
  grow_text(g, "    %%a%u = ", n), grow_text(g, firsts[body], n), grow_text(g, "\n");
  if (body == 2) grow_text(g, "    %%w%u = broadcast %%a%u, shape=%s\n    %%b%u = sub %%w%u, %%c%u\n", n, n, shape, n, n, n);
  else grow_text(g, "    %%b%u = %s %%a%u, %s\n", n, body == 3 ? "mul" : "add", n, b->name);
  if (beside) put_second(g, beside, n, as.rank, shape);
  grow_text(g, beside ? "    yield %%b%u, %%f%u\n  }\n" : "    yield %%b%u\n  }\n", n, n);
  as.low = -12800, as.high = 50, as.is_whole = false;
  grow_value *low = grow_line(g, &as, "min %%r%u, 50", n);
  if (!low || !grow_confine(g, low, -50, 50)) return false;
  if (!beside) return true;
  low = grow_line(g, &as, "min %%q%u, 50", n);
  return low && grow_confine(g, low, -50, 50);
}

const grow_rule grow_pointwise[] = {rule_binary, rule_unary,  rule_far,     rule_literal, rule_binary,  rule_unary,
                                    rule_select, rule_cast,   rule_careful, rule_compare, rule_storage, rule_generated,
                                    rule_repeat, rule_number, rule_row,     rule_ends};
const uint32_t grow_pointwise_count = sizeof grow_pointwise / sizeof *grow_pointwise;
