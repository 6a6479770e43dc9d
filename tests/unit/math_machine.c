/* The kernel's instructions, each over MATH_WIDTH samples; both sides of a branch are computed. */
#include "tests/unit/math_machine.h"
#include "tests/tap.h"
#include "tests/unit/math_support.h"
#include <float.h>

uint32_t *math_cells_of(const math_machine *v, uint32_t inst) { return v->cells + (size_t)inst * MATH_WIDTH; }
static uint32_t flushed(const math_machine *v, uint32_t b) { return v->d.flush && !(b & 0x7f800000) ? b & 0x80000000 : b; }
static float get(const math_machine *v, uint32_t b) { return math_float(flushed(v, b)); }
static uint32_t put(const math_machine *v, float x) { return flushed(v, math_bits(x)); }

/* Up to `most` units beside the rounded value. */
static uint32_t put_rough(const math_machine *v, float x, uint32_t most) {
  const uint32_t b = put(v, x), magnitude = b & 0x7fffffff;
  return v->d.rough && magnitude > 0x01000000 && magnitude < 0x7f000000 ? b + math_random() % (2 * most + 1) - most : b;
}

#define FLOATS(expression)                          \
  MATH_EACH {                                       \
    const float x = get(v, a[c]), y = get(v, b[c]); \
    (void)y;                                        \
    out[c] = (expression);                          \
  }                                                 \
  return true
#define WORDS(expression)              \
  MATH_EACH {                          \
    const uint32_t x = a[c], y = b[c]; \
    (void)y;                           \
    out[c] = (expression);             \
  }                                    \
  return true
#define COMPARES(operator)                                        \
  if (base == SNT_F32) { FLOATS(x operator y); }                  \
  if (base == SNT_I32) { WORDS((int32_t)x operator(int32_t) y); } \
  WORDS(x operator y)

static bool do_float(const math_machine *v, uint32_t op, uint32_t *out, const uint32_t *a, const uint32_t *b, const uint32_t *z) {
  switch (op) {
  case KIR_add: FLOATS(put(v, x + y));
  case KIR_sub: FLOATS(put(v, x - y));
  case KIR_mul: FLOATS(put(v, x * y));
  case KIR_div: FLOATS(put_rough(v, x / y, 2));
  case KIR_rsqrt: FLOATS(put_rough(v, v->d.root_once ? (float)(1 / sqrt((double)x)) : 1 / sqrtf(x), 4));
  case KIR_sqrt: FLOATS(put_rough(v, sqrtf(x), 2));
  case KIR_scalef: FLOATS(put(v, y == y ? ldexpf(x, (int)floorf(fminf(fmaxf(y, -300), 300))) : y));
  case KIR_fma: FLOATS(put(v, fmaf(x, y, get(v, z[c]))));
  case KIR_neg: WORDS(x ^ 0x80000000);
  case KIR_abs: WORDS(x & 0x7fffffff);
  default: return false;
  }
}

static bool do_word(uint32_t op, uint32_t base, uint32_t *out, const uint32_t *a, const uint32_t *b) {
  switch (op) {
  case KIR_add: WORDS(x + y);
  case KIR_sub: WORDS(x - y);
  case KIR_mul: WORDS(x * y);
  case KIR_mulhi: WORDS((uint32_t)(((uint64_t)x * y) >> 32));
  case KIR_and: WORDS(x & y);
  case KIR_or: WORDS(x | y);
  case KIR_xor: WORDS(x ^ y);
  case KIR_not: WORDS(base == SNT_BOOL ? !x : ~x);
  case KIR_shl: WORDS(x << (y & 31));
  case KIR_shr: WORDS(base == SNT_I32 ? (uint32_t)((int32_t)x >> (y & 31)) : x >> (y & 31));
  default: return false;
  }
}

static bool do_compare(const math_machine *v, uint32_t op, uint32_t base, uint32_t *out, const uint32_t *a, const uint32_t *b) {
  switch (op) {
  case KIR_lt: COMPARES(<);
  case KIR_le: COMPARES(<=);
  case KIR_gt: COMPARES(>);
  case KIR_ge: COMPARES(>=);
  case KIR_eq: COMPARES(==);
  case KIR_ne: COMPARES(!=);
  default: return false;
  }
}

static bool do_cast(const math_machine *v, uint32_t from, uint32_t to, uint32_t *out, const uint32_t *a, const uint32_t *b) {
  if (from == SNT_I32) { WORDS(put(v, (float)(int32_t)x)); }
  if (from == SNT_U32) { WORDS(put(v, (float)x)); }
  FLOATS(to == SNT_I32 && fabsf(x) < 0x1p31f ? (uint32_t)(int32_t)x : 0xdeadbeef); /* out of range is undefined on some devices */
}

/* Vectors lie lane after lane in the samples, and scalars beside them are repeated. */
static void do_max_of_lanes(uint32_t lanes, uint32_t *out, const uint32_t *a) {
  for (uint32_t first = 0; first < MATH_WIDTH; first += lanes) {
    uint32_t most = 0;
    for (uint32_t i = 0; i < lanes; i++) most = a[first + i] > most ? a[first + i] : most;
    for (uint32_t i = 0; i < lanes; i++) out[first + i] = most;
  }
}

static bool do_vector(const math_machine *v, uint32_t i, uint32_t *out) {
  const kir_inst *in = kir_at(v->k, i);
  const uint32_t lanes = in->type.lanes;
  if (in->op == KIR_vec) {
    MATH_EACH out[c] = math_cells_of(v, kir_arg(v->k, i, c % lanes))[c];
    return true;
  }
  if (in->op != KIR_permute) return false;
  const uint32_t *table = math_cells_of(v, kir_arg(v->k, i, 0)), *number = math_cells_of(v, kir_arg(v->k, i, 1));
  MATH_EACH out[c] = table[c / lanes * lanes + number[c] % lanes];
  return true;
}

static bool do_region(math_machine *v, const kir_inst *in, uint32_t *out) {
  switch (in->op) {
  case KIR_if: return v->condition = v->k->args.at[in->args], v->side = 0, true;
  case KIR_yield: return v->sides[v->side] = in->args, true;
  case KIR_else: return v->side = 1, true;
  case KIR_end: return true;
  case KIR_result: {
    const uint32_t *condition = math_cells_of(v, v->condition);
    const uint32_t *taken = math_cells_of(v, v->k->args.at[v->sides[0] + in->index]),
                   *other = math_cells_of(v, v->k->args.at[v->sides[1] + in->index]);
    MATH_EACH out[c] = condition[c] ? taken[c] : other[c];
    return true;
  }
  default: return false;
  }
}

static bool do_plain(const kir_inst *in, const uint32_t *input, uint32_t *out, const uint32_t *a, const uint32_t *b, const uint32_t *z,
                     kir_type from) {
  const uint32_t literal = in->type.base == SNT_F32 ? math_bits((float)in->imm.f) : (uint32_t)in->imm.i;
  switch (in->op) {
  case KIR_const: MATH_EACH out[c] = literal; return true;
  case KIR_scalar: MATH_EACH out[c] = input[c]; return true;
  case KIR_bitcast: MATH_EACH out[c] = a[c]; return true;
  case KIR_select: MATH_EACH out[c] = a[c] ? b[c] : z[c]; return true;
  case KIR_hred_max: return do_max_of_lanes(from.lanes, out, a), true;
  case KIR_splat: MATH_EACH out[c] = a[c]; return true; /* of an input, once a lane */
  default: return false;
  }
}

bool math_machine_run(math_machine *v) {
  for (uint32_t i = 1; i < v->k->insts.count; i++) {
    const kir_inst *in = kir_at(v->k, i);
    const uint32_t n = in->arg_count, first = n > 0 ? kir_arg(v->k, i, 0) : i;
    const uint32_t *a = math_cells_of(v, first), *b = n > 1 ? math_cells_of(v, kir_arg(v->k, i, 1)) : a,
                   *z = n > 2 ? math_cells_of(v, kir_arg(v->k, i, 2)) : a;
    uint32_t *out = math_cells_of(v, i);
    const kir_type from = kir_at(v->k, first)->type;
    bool done = do_region(v, in, out) || do_plain(in, v->in[in->index & 1], out, a, b, z, from);
    if (!done) done = do_vector(v, i, out);
    if (!done && in->op == KIR_cast) done = do_cast(v, from.base, in->type.base, out, a, b);
    if (!done) done = do_compare(v, in->op, from.base, out, a, b);
    if (!done) done = from.base == SNT_F32 ? do_float(v, in->op, out, a, b, z) : do_word(in->op, from.base, out, a, b);
    if (!done) return tap_ok(false, "the model knows %s", kir_ops[in->op].name);
  }
  return true;
}
