/* Narrow elements in a buffer of u32 words, for devices that cannot address less. Whole aligned words are loaded and stored as such. A single element
   is written by two atomics, its bits cleared and then set: neighbours keep theirs, and items that write the same value to the same place (tiles
   that overlap at an edge) agree whatever their order. A read beside them takes the whole word and keeps its own element of it, which nobody changes:
   devices read an aligned word at once. */
#include "ir/kir/narrow.h"

typedef struct packing {
  kir_kernel *k;
  const narrow_access *a;
  uint32_t bits, per_word;
} packing;

static packing packing_of(kir_kernel *k, const narrow_access *a) {
  const uint32_t bits = a->base == SNT_BOOL ? 8 : kir_base_bits(a->base);
  return (packing){k, a, bits, 32 / bits};
}
static kir_type u32xn(uint32_t lanes) { return kir_t(SNT_U32, lanes); }
static uint32_t lit(const packing *p, int64_t v) { return kir_const_int(p->k, u32xn(1), v); }
static uint32_t log2_of(uint32_t v) { return v == 4 ? 2 : 1; }
static int64_t mask_of(const packing *p) { return p->bits == 8 ? 0xff : 0xffff; }

/* The element's number counted from the start of the buffer, as u32. */
static uint32_t element(const packing *p, uint32_t lane) {
  kir_kernel *k = p->k;
  const uint32_t index = kir_emit_add(k, p->a->index, lane);
  if (k->failed) return 0;
  const bool wide = kir_base_bits(kir_type_of(k, index).base) == 64;
  return wide ? kir_cast(k, u32xn(1), index) : kir_bitcast(k, u32xn(1), index);
}
static uint32_t word_of(const packing *p, uint32_t element) { return kir_2(p->k, KIR_shr, element, lit(p, log2_of(p->per_word))); }
static uint32_t shift_of(const packing *p, uint32_t element) {
  return kir_2(p->k, KIR_shl, kir_2(p->k, KIR_and, element, lit(p, p->per_word - 1)), lit(p, p->bits == 8 ? 3 : 4));
}
static bool whole_words(const packing *p) { return p->a->lanes % p->per_word == 0 && p->a->align >= 4; }

/* Amounts 0, bits, 2 bits .. by lane. */
static uint32_t lane_shifts(const packing *p) {
  uint32_t amounts[16];
  for (uint32_t i = 0; i < p->a->lanes; i++) amounts[i] = lit(p, i % p->per_word * p->bits);
  return kir_emit_op(p->k, KIR_vec, u32xn(p->a->lanes), p->a->lanes, amounts);
}

static uint32_t shuffled(const packing *p, uint32_t v, uint32_t lanes, uint32_t step, uint32_t first, uint32_t divide) {
  uint32_t args[18] = {v, v};
  for (uint32_t i = 0; i < lanes; i++) args[2 + i] = lit(p, first + i * step / divide);
  if (lanes == 1) return kir_2(p->k, KIR_extract, v, args[2]);
  return kir_emit_op(p->k, KIR_shuffle, u32xn(lanes), lanes + 2, args);
}

/* ---- loads ---- */
static uint32_t load_lane(const packing *p, uint32_t lane) {
  const uint32_t at = element(p, lane), word = word_of(p, at);
  const uint32_t loaded = kir_load(p->k, p->a->memory, 1, 1, &word);
  return kir_2(p->k, KIR_and, kir_2(p->k, KIR_shr, loaded, shift_of(p, at)), lit(p, mask_of(p)));
}

static uint32_t load_whole(const packing *p) {
  const uint32_t words = p->a->lanes / p->per_word, first = word_of(p, element(p, 0));
  const uint32_t loaded = kir_load(p->k, p->a->memory, words, 1, &first);
  if (p->k->failed) return 0;
  kir_at(p->k, loaded)->align = (uint16_t)p->a->align;
  const uint32_t spread = words == 1 ? kir_splat(p->k, loaded, p->a->lanes) : shuffled(p, loaded, p->a->lanes, 1, 0, p->per_word);
  return kir_2(p->k, KIR_and, kir_2(p->k, KIR_shr, spread, lane_shifts(p)), kir_const_int(p->k, u32xn(p->a->lanes), mask_of(p)));
}

/* Two halves a word by the target's own conversion. */
static uint32_t load_unpacked(const packing *p) {
  const uint32_t words = p->a->lanes / 2, first = word_of(p, element(p, 0));
  const uint32_t loaded = kir_load(p->k, p->a->memory, words, 1, &first);
  uint32_t values[16];
  if (p->k->failed) return 0;
  kir_at(p->k, loaded)->align = (uint16_t)p->a->align;
  for (uint32_t i = 0; i < words; i++) {
    const kir_inst unpack = {.op = KIR_unpack2, .type = kir_t(SNT_F32, 2), .index = SNT_F16};
    const uint32_t word = words == 1 ? loaded : kir_lane(p->k, loaded, i), pair = kir_emit(p->k, &unpack, 1, &word);
    values[2 * i] = kir_lane(p->k, pair, 0);
    values[2 * i + 1] = kir_lane(p->k, pair, 1);
  }
  return kir_emit_op(p->k, KIR_vec, kir_t(SNT_F32, p->a->lanes), p->a->lanes, values);
}

uint32_t narrow_load_words(kir_kernel *k, const narrow_access *a, const kir_caps *caps) {
  const packing p = packing_of(k, a);
  uint32_t lanes[16];
  if (whole_words(&p) && a->base == SNT_F16 && caps->pack2 && !caps->f16_arithmetic) return load_unpacked(&p);
  if (whole_words(&p)) return narrow_from_bits(k, load_whole(&p), a->base, caps);
  for (uint32_t i = 0; i < a->lanes; i++) lanes[i] = load_lane(&p, i);
  const uint32_t bits = a->lanes == 1 ? lanes[0] : kir_emit_op(k, KIR_vec, u32xn(a->lanes), a->lanes, lanes);
  return narrow_from_bits(k, bits, a->base, caps);
}

/* ---- stores ---- */
static void store_whole(const packing *p, uint32_t bits) {
  const uint32_t words = p->a->lanes / p->per_word;
  const uint32_t placed = kir_2(p->k, KIR_shl, bits, lane_shifts(p));
  uint32_t sum = 0;
  for (uint32_t part = 0; part < p->per_word; part++) {
    const uint32_t some = shuffled(p, placed, words, p->per_word, part, 1);
    sum = part ? kir_2(p->k, KIR_or, sum, some) : some;
  }
  const uint32_t first = word_of(p, element(p, 0)), store = kir_store(p->k, p->a->memory, 1, &first, sum);
  if (!p->k->failed) kir_at(p->k, store)->align = (uint16_t)p->a->align, kir_at(p->k, store)->flags = (uint16_t)p->a->flags;
}

static uint32_t atomic(const packing *p, kir_op op, uint32_t word, uint32_t value) {
  const kir_inst in = {.op = (uint16_t)op, .type = u32xn(1), .index = p->a->memory};
  return kir_put(p->k, &in, 2, (uint32_t[]){word, value});
}

static void store_lane(const packing *p, uint32_t lane, uint32_t bits) {
  const uint32_t at = element(p, lane), word = word_of(p, at), shift = shift_of(p, at);
  const uint32_t own = kir_2(p->k, KIR_shl, lit(p, mask_of(p)), shift);
  atomic(p, KIR_atomic_and, word, kir_2(p->k, KIR_xor, own, kir_const_int(p->k, u32xn(1), UINT32_MAX)));
  atomic(p, KIR_atomic_or, word, kir_2(p->k, KIR_shl, bits, shift));
}

void narrow_store_words(kir_kernel *k, const narrow_access *a, uint32_t value) {
  const packing p = packing_of(k, a);
  const uint32_t bits = narrow_to_bits(k, value, a->base);
  if (whole_words(&p)) {
    store_whole(&p, bits);
    return;
  }
  for (uint32_t i = 0; i < a->lanes; i++) store_lane(&p, i, a->lanes == 1 ? bits : kir_lane(k, bits, i));
}

/* A size at run time counts elements: where words do not divide it, it is unknown. Element offsets move into the indices. */
void narrow_declare_words(kir_kernel *k, uint32_t memory) {
  kir_memory *m = &k->memories.at[memory];
  const uint32_t bytes = ir_dtypes[m->type.base].bytes;
  if (!m->view) m->view = m->type.base;
  m->type = u32xn(1);
  m->dims[0] = m->size_scalar ? 0 : (m->dims[0] * bytes + 3) / 4;
  if (m->dims[1] * bytes % 4 || !m->dims[1]) m->size_scalar = 0;
  m->dims[1] = m->dims[1] * bytes / 4;
  m->offset_scalar = 0;
  if (m->align < 4) m->align = 4;
  if (m->access & KIR_WRITE) m->access = KIR_READ | KIR_WRITE;
}
