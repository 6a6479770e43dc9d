/* split: vectors wider than the target's become several values. Arithmetic goes by parts of at most max_lanes; loads and stores go by chunks, which the
   memory's width and the proven alignment allow and which may be wider than a part (then extract and vec stand between). Arrays of wide vectors are
   declared anew with narrower elements. */
#include "ir/kir_pass_private.h"

typedef struct splitter {
  kir_clone c;
  const kir_caps *caps;
  uint32_t width;         /* lanes of a part */
  IR_VEC(uint32_t) parts; /* new values; those of an old one are consecutive */
  uint32_t *first;        /* by old instruction: where its parts begin */
  uint8_t *ratio;         /* by memory: new elements an old one, 0: declaration kept */
} splitter;
enum { MAX_PARTS = 16 };

static const kir_inst *at(const splitter *s, uint32_t i) { return kir_at(s->c.in, i); }
static kir_type u32(void) { return kir_t(SNT_U32, 1); }
static uint32_t lit(splitter *s, uint32_t v) { return kir_const_int(s->c.out, u32(), v); }

/* ---- parts ---- */
static uint32_t part_count(const splitter *s, kir_type t) {
  return t.frag || t.lanes <= s->width ? 1 : (t.lanes + s->width - 1) / s->width;
}
static kir_type part_type(const splitter *s, kir_type t, uint32_t part) {
  if (t.frag || t.lanes <= s->width) return t;
  const uint32_t rest = t.lanes - part * s->width;
  return kir_with_lanes(t, rest < s->width ? rest : s->width);
}
static uint32_t part_of(const splitter *s, uint32_t old, uint32_t part) { return s->parts.at[s->first[old] + part]; }
static void set_parts(splitter *s, uint32_t old, uint32_t count, const uint32_t *values) {
  s->first[old] = s->parts.count;
  for (uint32_t p = 0; p < count; p++)
    if (!IR_PUSH(s->c.out->arena, &s->parts, values[p])) s->c.out->failed = true;
  s->c.map[old] = values[0];
}
static uint32_t lane_in(splitter *s, uint32_t value, uint32_t lane) {
  const kir_type t = kir_type_of(s->c.out, value);
  if (t.lanes == 1) return value;
  const kir_inst extract = {.op = KIR_extract, .type = kir_element(t)};
  return kir_emit_folded(s->c.out, &extract, 2, (uint32_t[]){value, lit(s, lane)});
}
/* One lane of an old value. */
static uint32_t lane_of(splitter *s, uint32_t old, uint32_t lane) {
  if (kir_type_of(s->c.in, old).lanes <= s->width) return lane_in(s, part_of(s, old, 0), lane);
  return lane_in(s, part_of(s, old, lane / s->width), lane % s->width);
}
static uint32_t joined(splitter *s, kir_type t, const uint32_t *lanes) {
  if (t.lanes == 1) return lanes[0];
  const kir_inst vec = {.op = KIR_vec, .type = t};
  return kir_emit_folded(s->c.out, &vec, t.lanes, lanes);
}
/* An old value's parts from its lanes. */
static void set_lanes(splitter *s, uint32_t old, kir_type t, const uint32_t *lanes) {
  uint32_t values[MAX_PARTS];
  for (uint32_t p = 0; p < part_count(s, t); p++) values[p] = joined(s, part_type(s, t, p), lanes + p * s->width);
  set_parts(s, old, part_count(s, t), values);
}
static void lanes_of(splitter *s, uint32_t old, uint32_t *lanes) {
  for (uint32_t n = 0; n < kir_type_of(s->c.in, old).lanes; n++) lanes[n] = lane_of(s, old, n);
}
/* The whole old vector as one value, for the few operations that take nothing else. */
static uint32_t whole(splitter *s, uint32_t old) {
  const kir_type t = kir_type_of(s->c.in, old);
  uint32_t lanes[16];
  if (part_count(s, t) == 1) return part_of(s, old, 0);
  lanes_of(s, old, lanes);
  return joined(s, t, lanes);
}

/* ---- arithmetic ---- */
static void by_parts(splitter *s, uint32_t i) {
  const kir_inst *in = at(s, i);
  uint32_t values[MAX_PARTS], args[3];
  const uint32_t count = part_count(s, in->type);
  for (uint32_t p = 0; p < count; p++) {
    for (uint32_t n = 0; n < in->arg_count && n < 3; n++) {
      const uint32_t old = kir_arg(s->c.in, i, n);
      args[n] = part_of(s, old, kir_type_of(s->c.in, old).lanes == 1 ? 0 : p);
    }
    kir_inst made = *in;
    made.type = part_type(s, in->type, p);
    if (made.op == KIR_splat && made.type.lanes == 1) values[p] = args[0];
    else values[p] = kir_emit(s->c.out, &made, in->arg_count, args);
  }
  set_parts(s, i, count, values);
}

static void put_iota(splitter *s, uint32_t i) {
  uint32_t lanes[16];
  for (uint32_t n = 0; n < at(s, i)->type.lanes; n++) lanes[n] = kir_const_int(s->c.out, kir_element(at(s, i)->type), n);
  set_lanes(s, i, at(s, i)->type, lanes);
}

static void put_vec(splitter *s, uint32_t i) {
  uint32_t lanes[16];
  for (uint32_t n = 0; n < at(s, i)->arg_count; n++) lanes[n] = part_of(s, kir_arg(s->c.in, i, n), 0);
  set_lanes(s, i, at(s, i)->type, lanes);
}

static int64_t literal(const splitter *s, uint32_t old) {
  int64_t v = 0;
  kir_is_int_const(s->c.in, old, &v);
  return v;
}

static void put_extract(splitter *s, uint32_t i) {
  const uint32_t value = lane_of(s, kir_arg(s->c.in, i, 0), (uint32_t)literal(s, kir_arg(s->c.in, i, 1)));
  set_parts(s, i, 1, &value);
}

static void put_insert(splitter *s, uint32_t i) {
  uint32_t values[MAX_PARTS] = {0};
  const uint32_t vector = kir_arg(s->c.in, i, 0), scalar = part_of(s, kir_arg(s->c.in, i, 2), 0),
                 lane = (uint32_t)literal(s, kir_arg(s->c.in, i, 1));
  const uint32_t count = part_count(s, at(s, i)->type), hit = count == 1 ? 0 : lane / s->width;
  for (uint32_t p = 0; p < count; p++) values[p] = part_of(s, vector, p);
  const kir_type t = kir_type_of(s->c.out, values[hit]);
  if (t.lanes == 1) values[hit] = scalar;
  else
    values[hit] = kir_emit_op(s->c.out, KIR_insert, t, 3, (uint32_t[]){values[hit], lit(s, count == 1 ? lane : lane % s->width), scalar});
  set_parts(s, i, count, values);
}

/* One part of a shuffle whose lanes come from at most two parts of equal width; 0: it must be put together lane by lane. */
static uint32_t shuffle_part(splitter *s, const uint32_t *vectors, const uint32_t *lanes, kir_type t) {
  uint32_t sources[2] = {0}, args[18], used = 0;
  if (!s->caps->shuffle || t.lanes == 1) return 0;
  for (uint32_t n = 0; n < t.lanes; n++) {
    const uint32_t from = part_of(s, vectors[n], kir_type_of(s->c.in, vectors[n]).lanes <= s->width ? 0 : lanes[n] / s->width);
    uint32_t which = 0;
    while (which < used && sources[which] != from) which++;
    if (which == 2) return 0;
    if (which == used) sources[used++] = from;
    const uint32_t width = kir_type_of(s->c.out, from).lanes;
    if (width == 1 || width != kir_type_of(s->c.out, sources[0]).lanes) return 0;
    args[2 + n] = which * width + lanes[n] % s->width;
  }
  for (uint32_t n = 0; n < t.lanes; n++) args[2 + n] = lit(s, args[2 + n]);
  args[0] = sources[0], args[1] = used == 2 ? sources[1] : sources[0];
  const kir_inst shuffle = {.op = KIR_shuffle, .type = t};
  return kir_emit_folded(s->c.out, &shuffle, t.lanes + 2u, args);
}

static void put_shuffle(splitter *s, uint32_t i) {
  const kir_inst *in = at(s, i);
  uint32_t vectors[16], lanes[16], values[MAX_PARTS];
  const uint32_t width = kir_type_of(s->c.in, kir_arg(s->c.in, i, 0)).lanes, count = part_count(s, in->type);
  for (uint32_t n = 0; n < in->type.lanes; n++) {
    const uint32_t lane = (uint32_t)literal(s, kir_arg(s->c.in, i, 2 + n));
    vectors[n] = kir_arg(s->c.in, i, lane < width ? 0 : 1);
    lanes[n] = lane % width;
  }
  for (uint32_t p = 0, done = 0; p < count; p++) {
    const kir_type t = part_type(s, in->type, p);
    uint32_t single[16];
    values[p] = shuffle_part(s, vectors + done, lanes + done, t);
    for (uint32_t n = 0; !values[p] && n < t.lanes; n++) single[n] = lane_of(s, vectors[done + n], lanes[done + n]);
    if (!values[p]) values[p] = joined(s, t, single);
    done += t.lanes;
  }
  set_parts(s, i, count, values);
}

/* ---- memory ---- */
/* Elements of the declared array: as wide as a part, or scalars where that does not divide. */
static uint32_t new_ratio(const splitter *s, const kir_memory *m) {
  if (m->type.frag || m->type.lanes <= s->width || m->space == KIR_IMAGE) return 0;
  return m->type.lanes % s->width == 0 ? m->type.lanes / s->width : m->type.lanes;
}

static void declare(splitter *s, uint32_t memory) {
  kir_memory *m = &s->c.out->memories.at[memory];
  const uint32_t ratio = s->ratio[memory] = (uint8_t)new_ratio(s, m), natural = kir_mem_bytes(m);
  if (!ratio) return;
  m->type = kir_with_lanes(m->type, m->type.lanes / ratio);
  m->dims[m->rank - 1] *= ratio;
  if (m->space == KIR_GLOBAL && m->size_scalar) m->dims[1] = (m->dims[1] ? m->dims[1] : 1) * ratio;
  if (m->space != KIR_GLOBAL) return;
  if (m->align < natural) m->align = natural;
  m->offset_scalar = 0;
}

static uint32_t place(splitter *s, uint32_t i, uint32_t *indices) {
  const kir_inst *in = at(s, i);
  kir_kernel *out = s->c.out;
  const uint32_t count = kir_index_count(in), ratio = s->ratio[in->index], offset = s->c.in->memories.at[in->index].offset_scalar;
  for (uint32_t n = 0; n < count; n++) indices[n] = s->c.map[kir_arg(s->c.in, i, n)];
  if (!ratio) return count;
  uint32_t *last = &indices[count - 1];
  if (offset) *last = kir_2(out, KIR_add, *last, kir_cast(out, kir_type_of(out, *last), kir_scalar_read(out, offset - 1)));
  const kir_inst ix = {.op = KIR_ix, .type = kir_type_of(out, *last)};
  if (!out->failed) *last = kir_emit_folded(out, &ix, 2, (uint32_t[]){kir_const_int(out, ix.type, ratio), *last});
  return count;
}

typedef struct access {
  const kir_inst *in;
  const kir_memory *m;
  kir_type type;
  uint32_t count, stride, align, indices[5];
  bool cut;
} access;

static access access_of(splitter *s, uint32_t i, kir_type type) {
  access a = {.in = at(s, i), .m = &s->c.out->memories.at[at(s, i)->index], .type = type};
  a.count = place(s, i, a.indices);
  a.m = &s->c.out->memories.at[a.in->index];
  a.stride = a.in->lanes > 1 && type.lanes > 1 ? (uint32_t)a.in->lanes : 1;
  a.cut = s->caps->aligned_vectors || s->width == 1;
  a.align = a.in->align ? a.in->align : ir_dtypes[type.base].bytes;
  return a;
}

static uint32_t alignment_at(const access *a, uint32_t lane) {
  const uint32_t offset = lane * a->stride * ir_dtypes[a->type.base].bytes, low = offset & (0 - offset);
  return low && low < a->align ? low : a->align;
}

/* Lanes of the widest access at `lane`. */
static uint32_t chunk_at(const splitter *s, const access *a, uint32_t lane) {
  const uint32_t bytes = ir_dtypes[a->type.base].bytes, rest = a->type.lanes - lane;
  if (a->m->type.lanes > 1) return a->m->type.lanes;
  if (s->width == 1 && (a->m->space == KIR_PRIVATE || a->stride > 1)) return 1;
  uint32_t most = s->caps->vector_memory / bytes;
  if (s->width > 1 && most > s->width) most = s->width;
  if (rest == 3 && most >= 3 && !a->cut && s->width >= 3) return 3;
  for (uint32_t lanes = 16; lanes > 1; lanes /= 2)
    if (lanes <= rest && lanes <= most && (!a->cut || lanes * bytes <= alignment_at(a, lane))) return lanes;
  return 1;
}

static void aim(splitter *s, access *a, uint32_t base, uint32_t lane) {
  const bool vectors = a->m->type.lanes > 1; /* elements of the array are vectors: count those */
  a->indices[a->count - 1] = kir_emit_add(s->c.out, base, (int64_t)(vectors ? lane / a->m->type.lanes : lane * a->stride));
}

static uint32_t load_chunk(splitter *s, access *a, uint32_t base, uint32_t lane, uint32_t size) {
  aim(s, a, base, lane);
  kir_inst made = *a->in;
  made.type = kir_with_lanes(a->type, size);
  made.align = (uint16_t)(a->in->align ? alignment_at(a, lane) : 0);
  if (size == 1) made.lanes = 0;
  return kir_emit(s->c.out, &made, a->count, a->indices);
}

static void put_load(splitter *s, uint32_t i) {
  access a = access_of(s, i, at(s, i)->type);
  if (s->c.out->failed) return;
  const uint32_t base = a.indices[a.count - 1], parts = part_count(s, a.type);
  uint32_t chunks[16], chunk_of[16], offset_of[16], lanes[16], count = 0;
  bool fits = true; /* every chunk is exactly a part */
  for (uint32_t lane = 0; lane < a.type.lanes; count++) {
    const uint32_t size = chunk_at(s, &a, lane);
    chunks[count] = load_chunk(s, &a, base, lane, size);
    fits = fits && count < parts && size == part_type(s, a.type, count).lanes;
    for (uint32_t n = 0; n < size; n++, lane++) chunk_of[lane] = count, offset_of[lane] = n;
  }
  if (fits) {
    set_parts(s, i, parts, chunks);
    return;
  }
  for (uint32_t lane = 0; lane < a.type.lanes; lane++) lanes[lane] = lane_in(s, chunks[chunk_of[lane]], offset_of[lane]);
  set_lanes(s, i, a.type, lanes);
}

static void store_chunk(splitter *s, access *a, uint32_t base, uint32_t lane, uint32_t value) {
  aim(s, a, base, lane);
  kir_inst made = *a->in;
  made.type = kir_type_of(s->c.out, value);
  made.align = (uint16_t)(a->in->align ? alignment_at(a, lane) : 0);
  if (made.type.lanes == 1) made.lanes = 0;
  a->indices[a->count] = value;
  kir_emit(s->c.out, &made, a->count + 1, a->indices);
}

static void put_store(splitter *s, uint32_t i) {
  const uint32_t old = kir_arg(s->c.in, i, kir_index_count(at(s, i)));
  access a = access_of(s, i, kir_type_of(s->c.in, old));
  if (s->c.out->failed) return;
  const uint32_t base = a.indices[a.count - 1], parts = part_count(s, a.type);
  for (uint32_t lane = 0; lane < a.type.lanes;) {
    const uint32_t size = chunk_at(s, &a, lane), part = parts == 1 ? 0 : lane / s->width;
    const bool fits = (parts == 1 ? lane == 0 : lane % s->width == 0) && size == part_type(s, a.type, part).lanes;
    uint32_t lanes[16];
    for (uint32_t n = 0; n < size && !fits; n++) lanes[n] = lane_of(s, old, lane + n);
    store_chunk(s, &a, base, lane, fits ? part_of(s, old, part) : joined(s, kir_with_lanes(a.type, size), lanes));
    lane += size;
  }
}

/* Operations that take or give a whole vector whatever the width: images, packed pairs, a fill that the target prints. */
static void put_whole(splitter *s, uint32_t i) {
  const kir_inst *in = at(s, i);
  uint32_t args[8], lanes[16];
  for (uint32_t n = 0; n < in->arg_count && n < IR_COUNT(args); n++) args[n] = whole(s, kir_arg(s->c.in, i, n));
  const uint32_t made = s->c.map[i] = kir_emit(s->c.out, in, in->arg_count, args);
  if (!kir_has_value(in->op) || part_count(s, in->type) == 1) {
    set_parts(s, i, 1, &made);
    return;
  }
  for (uint32_t n = 0; n < in->type.lanes; n++) lanes[n] = lane_in(s, made, n);
  set_lanes(s, i, in->type, lanes);
}

static void put_fill(splitter *s, uint32_t i) {
  const uint32_t indices = kir_index_count(at(s, i)), count = at(s, i)->arg_count;
  uint32_t args[5];
  if (!s->ratio[at(s, i)->index]) {
    put_whole(s, i);
    return;
  }
  for (uint32_t n = 0; n < indices; n++) args[n] = s->c.map[kir_arg(s->c.in, i, n)];
  args[indices] = part_of(s, kir_arg(s->c.in, i, indices), 0); /* all lanes are alike, or the array's elements would differ */
  kir_emit(s->c.out, at(s, i), count, args);
}

/* ---- regions ---- */
static void put_args(splitter *s, uint32_t i, uint32_t whole_args) {
  const kir_inst *in = at(s, i);
  uint32_t count = 0;
  uint32_t *args = IR_NEW_ARRAY(s->c.out->arena, uint32_t, (size_t)in->arg_count * MAX_PARTS + 1);
  for (uint32_t n = 0; args && n < in->arg_count; n++) {
    const uint32_t old = kir_arg(s->c.in, i, n);
    for (uint32_t p = 0; p < (n < whole_args ? 1 : part_count(s, kir_type_of(s->c.in, old))); p++) args[count++] = part_of(s, old, p);
  }
  if (!args) return;
  const uint32_t made = kir_emit(s->c.out, in, count, args);
  set_parts(s, i, 1, &made);
}

static void put_slot(splitter *s, uint32_t i) {
  const kir_inst *last = kir_at(s->c.out, s->c.out->insts.count - 1);
  uint32_t values[MAX_PARTS], number = at(s, i)->index && last->op == at(s, i)->op ? last->index + 1 : 0;
  const uint32_t count = part_count(s, at(s, i)->type);
  for (uint32_t p = 0; p < count; p++) {
    const kir_inst slot = {.op = at(s, i)->op, .type = part_type(s, at(s, i)->type, p), .index = number++};
    values[p] = kir_emit(s->c.out, &slot, 0, NULL);
  }
  set_parts(s, i, count, values);
}

static void put_single(splitter *s, uint32_t i) {
  const uint32_t made = kir_clone_inst(&s->c, i);
  set_parts(s, i, 1, &made);
}

static void visit(splitter *s, uint32_t i) {
  const kir_inst *in = at(s, i);
  switch (in->op) {
  case KIR_loop: put_args(s, i, 3); return;
  case KIR_yield: put_args(s, i, 0); return;
  case KIR_carry:
  case KIR_result: put_slot(s, i); return;
  case KIR_load: put_load(s, i); return;
  case KIR_store: put_store(s, i); return;
  case KIR_fill: put_fill(s, i); return;
  case KIR_vec: put_vec(s, i); return;
  case KIR_extract: put_extract(s, i); return;
  case KIR_insert: put_insert(s, i); return;
  case KIR_shuffle: put_shuffle(s, i); return;
  case KIR_pack2:
  case KIR_unpack2:
  case KIR_tex_load:
  case KIR_tex_sample:
  case KIR_tex_store:
  case KIR_hred_add:
  case KIR_hred_max:
  case KIR_hred_min:
  case KIR_hred_mul: put_whole(s, i); return;
  case KIR_iota:
    if (part_count(s, in->type) > 1) put_iota(s, i);
    else put_single(s, i);
    return;
  default: break;
  }
  if (kir_has_value(in->op) && !in->type.frag && in->type.lanes > 1) by_parts(s, i);
  else put_single(s, i);
}

snt_result kir_pass_split(const kir_kernel *in, kir_kernel *out, const kir_caps *caps, snt_diag *diag) {
  splitter s = {.caps = caps, .width = caps->max_lanes ? caps->max_lanes : 1};
  SNT_TRY(kir_clone_begin(&s.c, in, out));
  kir_share(out);
  s.first = IR_NEW_ARRAY(out->arena, uint32_t, in->insts.count);
  s.ratio = IR_NEW_ARRAY(out->arena, uint8_t, in->memories.count + 1u);
  if (!s.first || !s.ratio) return kir_pass_stop(out, "split", diag);
  for (uint32_t m = 0; m < in->memories.count; m++) declare(&s, m);
  for (uint32_t i = 1; i < in->insts.count && !out->failed; i++) visit(&s, i);
  return kir_pass_end(out, "split", diag);
}
