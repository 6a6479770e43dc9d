/* memory: fill becomes stores, accesses with a distance between lanes become one access a lane, and reads past the end that must give zero are
   guarded. Later passes see single elements and contiguous vectors only. */
#include "ir/kir_pass_private.h"

enum { MAX_FILL = 32 }; /* stores written out; larger arrays get loops */
typedef struct lowering {
  kir_clone c;
  const kir_caps *caps;
  const uint32_t *multiples;
} lowering;

static kir_type u32(void) { return kir_t(SNT_U32, 1); }

/* ---- fill ---- */
typedef struct filling {
  kir_kernel *k;
  uint32_t memory, leading, value, lanes; /* `lanes` elements of the last dimension at once */
  uint32_t indices[4];
} filling;

static uint32_t fill_lanes(const kir_memory *m, const kir_caps *caps, uint32_t leading) {
  if (m->type.lanes > 1 || (m->flags & KIR_MEM_REGS) || leading == m->rank || kir_needs_words(m, caps)) return 1;
  for (uint32_t lanes = caps->max_lanes < 8 ? caps->max_lanes : 8; lanes > 1; lanes /= 2)
    if (m->dims[m->rank - 1] % lanes == 0) return lanes;
  return 1;
}

static void fill_from(filling *f, uint32_t d) {
  const kir_memory m = f->k->memories.at[f->memory];
  if (d == m.rank) {
    kir_store(f->k, f->memory, m.rank, f->indices, f->value);
    return;
  }
  const uint32_t step = d + 1 == m.rank ? f->lanes : 1;
  uint64_t rest = 1;
  for (uint32_t n = d; n < m.rank; n++) rest *= m.dims[n];
  if (rest / f->lanes <= MAX_FILL) {
    for (uint32_t i = 0; i < m.dims[d]; i += step) {
      f->indices[d] = kir_const_int(f->k, u32(), i);
      fill_from(f, d + 1);
    }
    return;
  }
  kir_kernel *k = f->k;
  const uint32_t from = kir_const_int(k, u32(), 0), to = kir_const_int(k, u32(), (int64_t)m.dims[d]);
  const uint32_t loop = kir_loop(k, from, to, kir_const_int(k, u32(), step), 0, NULL, NULL, 0, 0);
  f->indices[d] = loop;
  fill_from(f, d + 1);
  kir_loop_end(k, loop, 0, NULL, NULL);
}

static void put_fill(lowering *l, uint32_t i) {
  const kir_inst *in = kir_at(l->c.in, i);
  filling f = {.k = l->c.out, .memory = in->index, .leading = kir_index_count(in)};
  f.lanes = fill_lanes(&f.k->memories.at[f.memory], l->caps, f.leading);
  f.value = kir_splat(f.k, l->c.map[kir_arg(l->c.in, i, f.leading)],
                      f.lanes > 1 ? f.lanes : kir_type_of(l->c.in, kir_arg(l->c.in, i, f.leading)).lanes);
  for (uint32_t n = 0; n < f.leading; n++) f.indices[n] = l->c.map[kir_arg(l->c.in, i, n)];
  fill_from(&f, f.leading);
}

/* ---- one access a lane ---- */
static void indices_of(const lowering *l, uint32_t i, uint32_t count, uint32_t *out) {
  for (uint32_t n = 0; n < count; n++) out[n] = l->c.map[kir_arg(l->c.in, i, n)];
}

static uint32_t load_lane(lowering *l, const kir_inst *in, uint32_t count, uint32_t *indices, uint32_t base, uint32_t offset) {
  indices[count - 1] = kir_emit_add(l->c.out, base, offset);
  const kir_inst one = {.op = KIR_load, .type = kir_element(in->type), .index = in->index, .flags = in->flags};
  return kir_emit(l->c.out, &one, count, indices);
}

static uint32_t load_by_lanes(lowering *l, uint32_t i, uint32_t stride) {
  const kir_inst *in = kir_at(l->c.in, i);
  uint32_t indices[4], values[16];
  indices_of(l, i, in->arg_count, indices);
  const uint32_t base = indices[in->arg_count - 1];
  for (uint32_t n = 0; n < in->type.lanes; n++) values[n] = load_lane(l, in, in->arg_count, indices, base, n * stride);
  return kir_emit_op(l->c.out, KIR_vec, in->type, in->type.lanes, values);
}

static void store_by_lanes(lowering *l, uint32_t i, uint32_t stride) {
  const kir_inst *in = kir_at(l->c.in, i);
  kir_kernel *out = l->c.out;
  const uint32_t count = in->arg_count - 1u, value = l->c.map[kir_arg(l->c.in, i, count)];
  uint32_t args[5];
  indices_of(l, i, count, args);
  const uint32_t base = args[count - 1];
  const kir_type type = kir_element(kir_type_of(out, value));
  for (uint32_t n = 0; n < kir_type_of(out, value).lanes; n++) {
    args[count - 1] = kir_emit_add(out, base, (int64_t)n * stride);
    args[count] = kir_emit_op(out, KIR_extract, type, 2, (uint32_t[]){value, kir_const_int(out, u32(), n)});
    const kir_inst one = {.op = KIR_store, .type = type, .index = in->index, .flags = in->flags};
    kir_emit(out, &one, count + 1, args);
  }
}

/* ---- zero outside ---- */
static uint32_t size_of(kir_kernel *out, const kir_memory *m, kir_type index) {
  if (!m->size_scalar) return m->dims[0] ? kir_const_int(out, index, (int64_t)m->dims[0]) : 0;
  const uint64_t factor = m->dims[1]; /* before the scalar is read: `m` may move */
  const uint32_t count = kir_bitcast(out, index, kir_scalar_read(out, m->size_scalar - 1));
  return factor > 1 ? kir_2(out, KIR_mul, count, kir_const_int(out, index, (int64_t)factor)) : count;
}

/* The access `like` (scalar, or a vector that never straddles the end) at `index`, zero where that is outside. */
static uint32_t load_guarded(lowering *l, const kir_inst *like, uint32_t index) {
  kir_kernel *out = l->c.out;
  const kir_type word = kir_t(SNT_U32, 1);
  const uint32_t at = kir_bitcast(out, word, index), size = size_of(out, &out->memories.at[like->index], word);
  if (!size) return kir_mistake(out, "a guarded read of memory of unknown size");
  const uint32_t inside = kir_2(out, KIR_lt, at, size), safe = kir_3(out, KIR_select, inside, at, kir_const_int(out, word, 0));
  kir_inst load = *like;
  load.lanes = 0;
  const uint32_t value = kir_emit(out, &load, 1, &safe);
  return kir_3(out, KIR_select, inside, value, kir_const_int(out, load.type, 0));
}

static uint32_t load_or_zero(lowering *l, uint32_t i) {
  const kir_inst *in = kir_at(l->c.in, i);
  const kir_memory *m = &l->c.in->memories.at[in->index];
  const uint32_t index = l->c.map[kir_arg(l->c.in, i, 0)], stride = in->lanes > 1 ? (uint32_t)in->lanes : 1;
  const bool whole = m->type.lanes > 1 || in->type.lanes == 1 ||
                     (stride == 1 && !m->size_scalar && m->dims[0] % in->type.lanes == 0 &&
                      l->multiples[kir_arg(l->c.in, i, 0)] % in->type.lanes == 0);
  if (whole) return load_guarded(l, in, index);
  kir_inst one = *in;
  one.type = kir_element(in->type);
  one.align = 0;
  uint32_t values[16];
  for (uint32_t n = 0; n < in->type.lanes; n++) values[n] = load_guarded(l, &one, kir_emit_add(l->c.out, index, (int64_t)n * stride));
  return kir_emit_op(l->c.out, KIR_vec, in->type, in->type.lanes, values);
}

static void visit(lowering *l, uint32_t i) {
  const kir_inst *in = kir_at(l->c.in, i);
  const kir_memory *m = kir_names_memory(in->op) ? &l->c.in->memories.at[in->index] : NULL;
  const bool strided = m && in->lanes > 1 && in->type.lanes > 1 && m->type.lanes == 1 &&
                       (!l->caps->lanes_memory || kir_needs_words(m, l->caps));
  if (in->op == KIR_load && (m->flags & KIR_MEM_OOB_ZERO) &&
      !(l->caps->oob_zero && (l->c.out->memories.at[in->index].flags & KIR_MEM_TEXEL)))
    l->c.map[i] = load_or_zero(l, i);
  else if (in->op == KIR_load && strided) l->c.map[i] = load_by_lanes(l, i, (uint32_t)in->lanes);
  else if (in->op == KIR_store && strided) store_by_lanes(l, i, (uint32_t)in->lanes);
  else if (in->op == KIR_fill && !m->type.frag && (!l->caps->fill || kir_needs_words(m, l->caps))) put_fill(l, i);
  else kir_clone_inst(&l->c, i);
}

bool kir_has_accesses(const kir_kernel *k, const kir_caps *caps) {
  (void)caps;
  bool found = false;
  for (uint32_t m = 0; m < k->memories.count; m++) found |= (k->memories.at[m].flags & KIR_MEM_OOB_ZERO) != 0;
  for (uint32_t i = 1; i < k->insts.count && !found; i++) {
    const kir_inst *in = kir_at(k, i);
    found = in->op == KIR_fill || ((in->op == KIR_load || in->op == KIR_store) && in->lanes > 1);
  }
  return found;
}

snt_result kir_pass_memory(const kir_kernel *in, kir_kernel *out, const kir_caps *caps, snt_diag *diag) {
  lowering l = {.caps = caps};
  SNT_TRY(kir_clone_begin(&l.c, in, out));
  if (!(l.multiples = kir_find_multiples(in, out->arena))) return kir_pass_stop(out, "memory", diag);
  for (uint32_t i = 1; i < in->insts.count; i++) visit(&l, i);
  for (uint32_t m = 0; m < out->memories.count; m++)
    if (!(caps->oob_zero && (out->memories.at[m].flags & KIR_MEM_TEXEL))) out->memories.at[m].flags &= (uint16_t)~KIR_MEM_OOB_ZERO;
  return kir_pass_end(out, "memory", diag);
}
