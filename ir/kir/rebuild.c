/* The walk behind fold and unroll: copies structured regions, folding each instruction as it is emitted. A region may be copied several times
   (unrolled), once, or not at all (a branch that is never taken, a loop without trips). */
#include "ir/kir_pass_private.h"

enum { MAX_DEPTH = 250, MAX_INSTS = 400000, MAX_IN_VAIN = 4 };
typedef struct walker {
  kir_clone c;
  kir_regions regions;
  uint32_t depth;
  bool unroll;
} walker;
typedef struct span {
  uint32_t opener, close, carries, first, last;
} span; /* body: [first, last), `last` is the yield or the close */

static void walk(walker *w, uint32_t from, uint32_t to);

static uint32_t mapped(const walker *w, uint32_t old, uint32_t n) { return w->c.map[kir_arg(w->c.in, old, n)]; }
static uint32_t *take(walker *w, uint32_t count) { return IR_NEW_ARRAY(w->c.out->arena, uint32_t, count + 1u); }

static span span_of(const walker *w, uint32_t opener) {
  const kir_kernel *in = w->c.in;
  span s = {.opener = opener, .close = w->regions.close[opener]};
  s.carries = kir_at(in, opener)->op == KIR_loop ? kir_carries(in, opener) : 0;
  s.first = opener + 1 + s.carries;
  s.last = kir_at(in, s.close - 1)->op == KIR_yield ? s.close - 1 : s.close;
  return s;
}

/* Values that the region hands on: its yield's operands as they are now. */
static uint32_t yielded(const walker *w, const span *s) { return s->last == s->close ? 0 : kir_at(w->c.in, s->last)->arg_count; }
static void read_yield(const walker *w, const span *s, uint32_t *values) {
  for (uint32_t i = 0; i < yielded(w, s); i++) values[i] = mapped(w, s->last, i);
}
static void set_results(walker *w, uint32_t end, uint32_t count, const uint32_t *values) {
  for (uint32_t i = 0; i < count; i++) w->c.map[end + 1 + i] = values[i];
}

/* ---- ifs ---- */
static void splice_branch(walker *w, const span *taken, uint32_t end, uint32_t count) {
  uint32_t *values = take(w, count);
  if (taken) walk(w, taken->first, taken->last);
  if (taken && values) read_yield(w, taken, values);
  if (values) set_results(w, end, count, values);
}

static void put_branch(walker *w, const span *s) {
  walk(w, s->first, s->last);
  if (s->last != s->close) kir_clone_inst(&w->c, s->last);
}

/* Cheap, and as good if it runs in vain. */
static bool may_run_in_vain(const kir_inst *in) {
  if (!(kir_ops[in->op].flags & KIR_PURE) || in->type.frag || (kir_ops[in->op].attrs & (KA_MATH | KA_ULP))) return false;
  return in->op != KIR_rem && in->op != KIR_udiv && in->op != KIR_umod && !(in->op >= KIR_sg_add && in->op <= KIR_sg_shuffle);
}

static bool is_short(const walker *w, const span *s) {
  if (s->last - s->first > MAX_IN_VAIN) return false;
  for (uint32_t i = s->first; i < s->last; i++)
    if (!may_run_in_vain(kir_at(w->c.in, i))) return false;
  for (uint32_t n = 0; n < yielded(w, s); n++)
    if (kir_type_of(w->c.in, kir_arg(w->c.in, s->last, n)).frag) return false;
  return true;
}

/* Both sides of a short if without effects are computed and chosen from. */
static void choose(walker *w, const span *then, const span *otherwise, uint32_t condition, uint32_t end) {
  const uint32_t count = yielded(w, then);
  uint32_t *a = take(w, count), *b = take(w, count);
  if (!a || !b) return;
  walk(w, then->first, then->last);
  read_yield(w, then, a);
  walk(w, otherwise->first, otherwise->last);
  read_yield(w, otherwise, b);
  for (uint32_t n = 0; n < count; n++) {
    const kir_inst select = {.op = KIR_select, .type = kir_type_of(w->c.out, a[n])};
    a[n] = kir_emit_folded(w->c.out, &select, 3, (uint32_t[]){condition, a[n], b[n]});
  }
  set_results(w, end, count, a);
}

static uint32_t walk_if(walker *w, uint32_t i) {
  const kir_kernel *in = w->c.in;
  const span then = span_of(w, i);
  const bool has_else = kir_at(in, then.close)->op == KIR_else;
  const span otherwise = has_else ? span_of(w, then.close) : then;
  const uint32_t end = otherwise.close, count = yielded(w, &then);
  int64_t condition;
  if (kir_is_int_const(w->c.out, mapped(w, i, 0), &condition)) {
    splice_branch(w, condition ? &then : has_else ? &otherwise : NULL, end, count);
    return end + 1 + count;
  }
  if (has_else && is_short(w, &then) && is_short(w, &otherwise)) {
    choose(w, &then, &otherwise, mapped(w, i, 0), end);
    return end + 1 + count;
  }
  kir_clone_inst(&w->c, i);
  put_branch(w, &then);
  if (has_else) {
    kir_clone_inst(&w->c, then.close);
    put_branch(w, &otherwise);
  }
  kir_clone_inst(&w->c, end);
  for (uint32_t n = 0; n < count; n++) kir_clone_inst(&w->c, end + 1 + n);
  return end + 1 + count;
}

/* ---- loops ---- */
/* One copy of the body: `values` holds the carried values before and after. */
static void copy_body(walker *w, const span *s, uint32_t variable, uint32_t *values) {
  w->c.map[s->opener] = variable;
  for (uint32_t n = 0; n < s->carries; n++) w->c.map[s->opener + 1 + n] = values[n];
  walk(w, s->first, s->last);
  read_yield(w, s, values);
}

/* A carried value that every trip hands on unchanged is its initial value. */
static bool unchanged(const walker *w, const span *s, uint32_t n) {
  const uint32_t next = kir_arg(w->c.in, s->last, n), carry = s->opener + 1 + n;
  return next == carry || next == kir_arg(w->c.in, s->opener, 3 + n);
}

typedef struct bounds {
  uint32_t lo, hi, step;
  bool uncertain;
} bounds; /* uncertain: perhaps no trip, whatever the loop was promised */

/* One that the first trip makes what it stays, the greatest or least of a literal and what it was: that, from the start. 0: it is none. Besides, spirv-opt
   2023.1, which SwiftShader runs, takes what such a loop hands on for what it began with, in modules with float controls. */
static uint32_t settled(walker *w, const span *s, const bounds *b, uint32_t n, uint32_t initial) {
  const kir_kernel *in = w->c.in;
  kir_kernel *out = w->c.out;
  const uint32_t next = kir_arg(in, s->last, n), carry = s->opener + 1 + n;
  const uint32_t op = kir_at(in, next)->op;
  if ((op != KIR_max && op != KIR_min) || kir_at(out, initial)->op != KIR_const) return 0;
  const uint32_t side = kir_arg(in, next, 0) == carry;
  const kir_inst *literal = kir_at(in, kir_arg(in, next, side));
  if (kir_arg(in, next, 1 - side) != carry || literal->op != KIR_const) return 0;
  if (kir_is_float(literal->type.base) && literal->imm.f != literal->imm.f) return 0;
  uint64_t trips;
  if (!kir_trip_count(out, b->lo, b->hi, b->step, &trips) || !trips) return 0;
  const uint32_t value = kir_emit_folded(out, kir_at(in, next), 2, (uint32_t[]){initial, kir_emit(out, literal, 0, NULL)});
  return kir_at(out, value)->op == KIR_const ? value : 0;
}

/* A loop of `copies` bodies a trip between the bounds; `values` as for copy_body. */
static void put_loop(walker *w, const span *s, const bounds *b, uint32_t copies, uint32_t *values) {
  kir_kernel *out = w->c.out;
  const kir_inst *old = kir_at(w->c.in, s->opener);
  uint32_t *args = take(w, 3 + s->carries), *slots = take(w, s->carries), *stays = take(w, s->carries);
  if (!args || !slots || !stays) return;
  uint32_t kept = 0;
  int64_t step = 1;
  kir_is_int_const(out, b->step, &step);
  args[0] = b->lo, args[1] = b->hi;
  args[2] = copies > 1 ? kir_const_int(out, old->type, step * copies) : b->step;
  for (uint32_t n = 0; n < s->carries; n++) {
    stays[n] = unchanged(w, s, n) ? values[n] : settled(w, s, b, n, values[n]);
    if (stays[n]) values[n] = stays[n];
    else slots[kept] = n, args[3 + kept++] = values[n];
  }
  kir_inst loop = *old;
  if (w->unroll) loop.lanes = 0;
  if (b->uncertain) loop.flags &= (uint16_t)~KIR_LOOP_TRIP1;
  const uint32_t made = kir_emit(out, &loop, 3 + kept, args);
  for (uint32_t n = 0; n < kept; n++) {
    const kir_inst carry = {.op = KIR_carry, .type = kir_type_of(w->c.in, s->opener + 1 + slots[n]), .index = n};
    values[slots[n]] = kir_emit(out, &carry, 0, NULL);
  }
  for (uint32_t n = 0; n < copies; n++) copy_body(w, s, kir_emit_add(out, made, step * n), values);
  for (uint32_t n = 0; n < kept; n++) args[n] = values[slots[n]];
  if (kept) kir_emit_op(out, KIR_yield, kir_t(0, 0), kept, args);
  kir_emit(out, &(kir_inst){.op = KIR_end, .index = made}, 0, NULL);
  for (uint32_t n = 0; n < kept; n++) {
    const kir_inst result = {.op = KIR_result, .type = kir_type_of(w->c.in, s->opener + 1 + slots[n]), .index = n};
    values[slots[n]] = kir_emit(out, &result, 0, NULL);
  }
  for (uint32_t n = 0; n < s->carries; n++)
    if (stays[n]) values[n] = stays[n];
}

static bool may_copy(const walker *w, const span *s, uint64_t copies) {
  return copies * (s->last - s->first + 1u) + w->c.out->insts.count < MAX_INSTS;
}

/* The bodies of `count` trips from `lo` on, one after the other. */
static void put_trips(walker *w, const span *s, const bounds *b, uint64_t count, uint32_t *values) {
  int64_t step = 0;
  kir_is_int_const(w->c.out, b->step, &step);
  for (uint64_t t = 0; t < count; t++) copy_body(w, s, kir_emit_add(w->c.out, b->lo, step * (int64_t)t), values);
}

/* The part of the range that whole groups of `chunk` cover ends at lo + (hi - lo) / chunk * chunk, or at lo for an empty range. */
static uint32_t whole_groups(kir_kernel *out, const bounds *b, int64_t chunk) {
  const kir_type type = kir_type_of(out, b->lo), word = kir_t(kir_base_bits(type.base) == 64 ? SNT_U64 : SNT_U32, 1);
  int64_t lo;
  const bool from_zero = kir_is_int_const(out, b->lo, &lo) && lo == 0;
  const uint32_t length = from_zero ? b->hi : kir_2(out, KIR_sub, b->hi, b->lo);
  uint32_t size = kir_bitcast(out, word, length);
  if (!from_zero || kir_is_signed(type.base)) {
    const uint32_t some = kir_2(out, KIR_lt, b->lo, b->hi);
    size = kir_3(out, KIR_select, some, size, kir_const_int(out, word, 0));
  }
  const uint32_t rest = kir_2(out, KIR_umod, size, kir_const_int(out, word, chunk));
  const uint32_t covered = kir_bitcast(out, type, kir_2(out, KIR_sub, size, rest));
  return from_zero ? covered : kir_2(out, KIR_add, b->lo, covered);
}

static bool range_is_multiple(const kir_kernel *out, const bounds *b, int64_t chunk) {
  int64_t lo, hi;
  if (!kir_is_int_const(out, b->lo, &lo) || lo != 0) return false;
  if (kir_is_int_const(out, b->hi, &hi)) return hi % chunk == 0;
  const kir_inst *h = kir_at(out, b->hi);
  return h->op == KIR_scalar && out->scalars.at[h->index].multiple_of > 0 && out->scalars.at[h->index].multiple_of % chunk == 0;
}

/* Bodies by groups of `factor`, then the rest: written out where its count is known, else a second loop. */
static void put_unrolled(walker *w, const span *s, const bounds *b, uint32_t factor, uint32_t *values) {
  kir_kernel *out = w->c.out;
  int64_t step = 1;
  uint64_t trips;
  kir_is_int_const(out, b->step, &step);
  if (kir_trip_count(out, b->lo, b->hi, b->step, &trips)) {
    const uint64_t groups = trips / factor;
    const bounds main = {b->lo, kir_emit_add(out, b->lo, (int64_t)groups * factor * step), b->step, false};
    if (groups > 1) put_loop(w, s, &main, factor, values);
    else put_trips(w, s, &main, groups * factor, values);
    const bounds rest = {main.hi, b->hi, b->step, false};
    put_trips(w, s, &rest, trips % factor, values);
    return;
  }
  if (range_is_multiple(out, b, factor * step)) {
    put_loop(w, s, b, factor, values);
    return;
  }
  const bounds main = {b->lo, whole_groups(out, b, factor * step), b->step, true}, rest = {main.hi, b->hi, b->step, true};
  put_loop(w, s, &main, factor, values);
  put_loop(w, s, &rest, 1, values);
}

static uint32_t walk_loop(walker *w, uint32_t i) {
  const kir_inst *loop = kir_at(w->c.in, i);
  const span s = span_of(w, i);
  const bounds b = {mapped(w, i, 0), mapped(w, i, 1), mapped(w, i, 2), false};
  uint32_t *values = take(w, s.carries);
  uint64_t trips = 0;
  int64_t step;
  if (!values) return s.close + 1 + s.carries;
  for (uint32_t n = 0; n < s.carries; n++) values[n] = mapped(w, i, 3 + n);
  const bool counted = kir_trip_count(w->c.out, b.lo, b.hi, b.step, &trips);
  const bool full = w->unroll && (loop->flags & KIR_LOOP_FULL) && counted && may_copy(w, &s, trips);
  const bool factor = w->unroll && loop->lanes > 1 && !(loop->flags & KIR_LOOP_ROLLED) && may_copy(w, &s, (uint64_t)loop->lanes) &&
                      kir_is_int_const(w->c.out, b.step, &step);
  if (full || (counted && trips <= 1)) put_trips(w, &s, &b, trips, values);
  else if (factor) put_unrolled(w, &s, &b, (uint32_t)loop->lanes, values);
  else put_loop(w, &s, &b, 1, values);
  set_results(w, s.close, s.carries, values);
  return s.close + 1 + s.carries;
}

/* ---- the rest ---- */
static void walk_plain(walker *w, uint32_t i) {
  const kir_inst *in = kir_at(w->c.in, i);
  uint32_t few[16];
  if (in->arg_count > IR_COUNT(few)) {
    kir_clone_inst(&w->c, i);
    return;
  }
  for (uint32_t n = 0; n < in->arg_count; n++) few[n] = mapped(w, i, n);
  if (kir_may_swap(in) && kir_at(w->c.out, few[0])->op == KIR_const && kir_at(w->c.out, few[1])->op != KIR_const) {
    const uint32_t first = few[0]; /* constants to the right */
    few[0] = few[1], few[1] = first;
  }
  w->c.map[i] = kir_emit_folded(w->c.out, in, in->arg_count, few);
}

static void walk(walker *w, uint32_t from, uint32_t to) {
  if (++w->depth > MAX_DEPTH) kir_mistake(w->c.out, "regions nest too deeply");
  for (uint32_t i = from; i < to && !w->c.out->failed;) {
    const uint32_t op = kir_at(w->c.in, i)->op;
    if (op == KIR_loop) i = walk_loop(w, i);
    else if (op == KIR_if) i = walk_if(w, i);
    else walk_plain(w, i++);
  }
  w->depth--;
}

snt_result kir_rebuild(const kir_kernel *in, kir_kernel *out, bool unroll, snt_diag *diag) {
  walker w = {.unroll = unroll};
  SNT_TRY(kir_clone_begin(&w.c, in, out));
  if (unroll) kir_share(out);
  if (!kir_find_regions(in, out->arena, &w.regions)) return kir_pass_stop(out, "rebuild", diag);
  walk(&w, 1, in->insts.count);
  return kir_pass_end(out, unroll ? "unroll" : "fold", diag);
}
