/* The instruction mix of one item: each operation times the trips of the loops around it; both sides of an if count, but for trips. */
#include "ir/kir_pass_private.h"

static double lanes_of(const kir_kernel *k, const kir_inst *in) {
  const bool reads_vector = kir_ops[in->op].result == KIR_R_ELEM || kir_ops[in->op].result == KIR_R_BOOLS;
  return reads_vector && in->arg_count ? kir_type_of(k, k->args.at[in->args]).lanes : in->type.lanes ? in->type.lanes : 1;
}

static bool is_special(const kir_inst *in) {
  return (kir_ops[in->op].attrs & (KA_MATH | KA_ULP)) && (in->op != KIR_div || kir_is_float(in->type.base));
}

static void count_arithmetic(const kir_kernel *k, const kir_inst *in, double weight, kir_mix *mix) {
  const double n = lanes_of(k, in) * weight;
  const uint32_t base = kir_ops[in->op].result == KIR_R_BOOLS ? kir_type_of(k, k->args.at[in->args]).base : in->type.base;
  if (kir_ops[in->op].flags & KIR_GIVEN) return;
  switch (in->op) {
  case KIR_splat:
  case KIR_vec:
  case KIR_iota:
  case KIR_extract:
  case KIR_insert:
  case KIR_permute:
  case KIR_shuffle:
  case KIR_mma_get:
  case KIR_bitcast: return;
  case KIR_fma: mix->flops += 2 * n; return;
  case KIR_ix: mix->integer += weight * in->arg_count / 2; return;
  default: break;
  }
  if (is_special(in)) mix->special += n;
  else if (kir_is_float(base)) mix->flops += n;
  else mix->integer += n;
}

static void count_memory(const kir_kernel *k, const kir_inst *in, double weight, kir_mix *mix) {
  const double bytes = weight * in->type.lanes * ir_dtypes[in->type.base].bytes;
  const kir_memory *m = &k->memories.at[in->index];
  switch (in->op) {
  case KIR_load:
  case KIR_tex_load:
  case KIR_tex_sample:
  case KIR_mma_load: mix->loads += weight, mix->bytes_loaded += bytes; return;
  case KIR_store: mix->stores += weight, mix->bytes_stored += bytes; return;
  case KIR_tex_store:
  case KIR_mma_store: mix->stores += weight, mix->bytes_stored += weight * 16; return;
  case KIR_fill: {
    double cells = weight;
    for (uint32_t d = kir_index_count(in); d < m->rank; d++) cells *= (double)m->dims[d];
    mix->stores += cells, mix->bytes_stored += cells * kir_mem_bytes(m);
    return;
  }
  case KIR_prefetch: return;
  default: mix->loads += weight, mix->stores += weight, mix->bytes_loaded += bytes, mix->bytes_stored += bytes; return;
  }
}

/* A loop that begins where an item stands has as many trips for the first one as if it began at 0, unless it goes one by one: that is what
   is left over behind whole vectors. */
static double trips_of(const kir_kernel *k, uint32_t loop, double unknown) {
  int64_t hi, step;
  uint64_t known;
  if (kir_trip_count(k, kir_arg(k, loop, 0), kir_arg(k, loop, 1), kir_arg(k, loop, 2), &known)) return (double)known;
  if (!kir_is_const(k, kir_arg(k, loop, 1), &hi, NULL) || !kir_is_const(k, kir_arg(k, loop, 2), &step, NULL) || step <= 0) return unknown;
  const double all = (double)((hi + step - 1) / step);
  return step == 1 && unknown < all ? unknown : all;
}

/* Trips that are left of so many where several bodies are one, or all are written out. */
static double trips_left(const kir_inst *loop, double trips) {
  if (loop->flags & KIR_LOOP_FULL) return 0;
  return loop->lanes > 1 && !(loop->flags & KIR_LOOP_ROLLED) ? trips / loop->lanes : trips;
}

void kir_count_mix(const kir_kernel *k, double trips, kir_mix *out) {
  enum { MAX_DEPTH = 64 };
  double weights[MAX_DEPTH + 1] = {1}, before[MAX_DEPTH + 1], other[MAX_DEPTH + 1]; /* trips: before an if, with one side of it */
  uint32_t type;
  kir_mma size;
  const double product = kir_mma_named(k->needs, &type, &size) ? 2.0 * size.m * size.n * size.k : 0;
  uint32_t depth = 0;
  memset(out, 0, sizeof *out);
  for (uint32_t i = 1; i < k->insts.count; i++) {
    const kir_inst *in = kir_at(k, i);
    const uint32_t at = depth < MAX_DEPTH ? depth : MAX_DEPTH, in_it = at + (at < MAX_DEPTH);
    const double weight = weights[at];
    if (in->op == KIR_end) {
      if (kir_at(k, in->index)->op == KIR_if && other[at] > out->trips) out->trips = other[at];
      depth--;
    } else if (in->op == KIR_else) {
      other[at] = out->trips, out->trips = before[at];
    } else if (in->op == KIR_if) {
      depth++, weights[in_it] = weight, before[in_it] = other[in_it] = out->trips;
    } else if (in->op == KIR_loop) {
      const double inside = weight * trips_of(k, i, trips);
      out->trips += trips_left(in, inside);
      depth++, weights[in_it] = inside;
    } else if (in->op == KIR_barrier) out->barriers += weight;
    else if (kir_ops[in->op].flags & KIR_MEM) count_memory(k, in, weight, out);
    else if ((kir_ops[in->op].flags & KIR_PURE) && !in->type.frag) count_arithmetic(k, in, weight, out);
    else if (in->op == KIR_mma) out->flops += weight * product;
  }
}

void kir_spread_trips(kir_kernel *k, double most) {
  enum { MOST_BODIES = 32 };
  kir_mix mix;
  int32_t bodies = 1;
  uint32_t open = 0; /* the loop in which no other has begun */
  kir_count_mix(k, 1, &mix);
  while (bodies < MOST_BODIES && mix.trips > 0.75 * most * bodies) bodies *= 2;
  for (uint32_t i = 1; i < k->insts.count && bodies > 1; i++) {
    const kir_inst *in = kir_at(k, i);
    if (in->op == KIR_loop) open = i;
    if (in->op != KIR_end || in->index != open) continue;
    kir_inst *loop = kir_at(k, open);
    open = 0;
    if ((loop->flags & KIR_LOOP_FULL) || trips_of(k, in->index, bodies) < bodies) continue;
    loop->flags &= (uint16_t)~KIR_LOOP_ROLLED;
    if (loop->lanes < bodies) loop->lanes = bodies;
  }
}
