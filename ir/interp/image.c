/* Images: a table of formats, texel loads and stores, and sampling. A store rounds to nearest even and clamps normalised formats. */
#include "ir/interp/private.h"
#include <math.h>

typedef enum { CHANNEL_UNORM, CHANNEL_SNORM, CHANNEL_FLOAT, CHANNEL_UINT, CHANNEL_PACKED } channel_kind;
typedef struct kvm_format {
  const char *name;
  int32_t dtype; /* of one stored channel */
  uint8_t channels, kind;
  bool swapped; /* b g r a */
} kvm_format;
static const kvm_format formats[] = {{"r8", SNT_U8, 1, CHANNEL_UNORM, false},       {"rg8", SNT_U8, 2, CHANNEL_UNORM, false},
                                     {"rgba8", SNT_U8, 4, CHANNEL_UNORM, false},    {"bgra8", SNT_U8, 4, CHANNEL_UNORM, true},
                                     {"rgba8s", SNT_I8, 4, CHANNEL_SNORM, false},   {"r16", SNT_U16, 1, CHANNEL_UNORM, false},
                                     {"rgba16", SNT_U16, 4, CHANNEL_UNORM, false},  {"r16f", SNT_F16, 1, CHANNEL_FLOAT, false},
                                     {"rg16f", SNT_F16, 2, CHANNEL_FLOAT, false},   {"rgba16f", SNT_F16, 4, CHANNEL_FLOAT, false},
                                     {"r32f", SNT_F32, 1, CHANNEL_FLOAT, false},    {"rg32f", SNT_F32, 2, CHANNEL_FLOAT, false},
                                     {"rgba32f", SNT_F32, 4, CHANNEL_FLOAT, false}, {"r8ui", SNT_U8, 1, CHANNEL_UINT, false},
                                     {"r16ui", SNT_U16, 1, CHANNEL_UINT, false},    {"r32ui", SNT_U32, 1, CHANNEL_UINT, false},
                                     {"rgba32ui", SNT_U32, 4, CHANNEL_UINT, false}, {"rgb10a2", SNT_U32, 1, CHANNEL_PACKED, false}};

const kvm_format *kvm_find_format(const char *name, uint32_t *texel_bytes, uint32_t *channels, int32_t *dtype) {
  for (uint32_t i = 0; i < IR_COUNT(formats); i++) {
    if (strcmp(formats[i].name, name)) continue;
    *channels = formats[i].channels;
    *dtype = formats[i].dtype;
    *texel_bytes = formats[i].channels * kir_base_bits((uint32_t)formats[i].dtype) / 8;
    return &formats[i];
  }
  return NULL;
}

static double highest(const kvm_format *f) { return f->dtype == SNT_U16 ? 65535 : f->kind == CHANNEL_SNORM ? 127 : 255; }

/* Missing channels read 0, 0, 1. */
static void decode(const kvm_format *f, const uint8_t *texel, double out[4]) {
  const uint32_t bytes = kir_base_bits((uint32_t)f->dtype) / 8;
  out[0] = out[1] = out[2] = 0;
  out[3] = 1;
  if (f->kind == CHANNEL_PACKED) {
    uint32_t word;
    memcpy(&word, texel, 4);
    for (uint32_t i = 0; i < 3; i++) out[i] = (word >> 10 * i & 1023) / 1023.0;
    out[3] = (word >> 30) / 3.0;
    return;
  }
  for (uint32_t i = 0; i < f->channels; i++) {
    const double v = kvm_read_element((uint32_t)f->dtype, texel + (size_t)i * bytes);
    const uint32_t to = f->swapped && i < 3 ? 2 - i : i;
    out[to] = f->kind == CHANNEL_UNORM ? v / highest(f) : f->kind == CHANNEL_SNORM ? fmax(v / highest(f), -1) : v;
  }
}

static double normalised(double v, double low, double scale) { return v != v ? 0 : rint(fmin(fmax(v, low), 1) * scale); }

static void encode(const kvm_format *f, uint8_t *texel, const double in[4]) {
  const uint32_t bytes = kir_base_bits((uint32_t)f->dtype) / 8;
  if (f->kind == CHANNEL_PACKED) {
    uint32_t word = (uint32_t)normalised(in[3], 0, 3) << 30;
    for (uint32_t i = 0; i < 3; i++) word |= (uint32_t)normalised(in[i], 0, 1023) << 10 * i;
    memcpy(texel, &word, 4);
    return;
  }
  for (uint32_t i = 0; i < f->channels; i++) {
    const double v = in[f->swapped && i < 3 ? 2 - i : i];
    const double stored = f->kind == CHANNEL_UNORM   ? normalised(v, 0, highest(f))
                          : f->kind == CHANNEL_SNORM ? normalised(v, -1, highest(f))
                          : f->kind == CHANNEL_UINT  ? fmin(v, (double)UINT32_MAX)
                                                     : kir_round_float((uint32_t)f->dtype, v, KIR_ROUND_RNE);
    kvm_write_element((uint32_t)f->dtype, texel + (size_t)i * bytes, stored);
  }
}

/* ---- texels by coordinate ---- */
static bool locate_texel(kvm *vm, const kvm_step *s, const kvm_memory *m, uint32_t item, uint64_t *at) {
  const uint32_t x = ((const uint32_t *)s->a)[item], y = ((const uint32_t *)s->b)[item];
  if (x >= m->width || y >= m->height)
    return kvm_fail(vm, s, item, SNT_E_ARG, "%%%s: texel (%u,%u) is outside %u x %u", m->decl->name, x, y, m->width, m->height);
  *at = ((uint64_t)y * m->width + x) * m->bytes;
  return true;
}

static void put_texel(const kvm *vm, const kvm_step *s, uint32_t item, const double v[4]) {
  for (uint32_t lane = 0; lane < 4; lane++) {
    if (s->kind == KVM_F32) ((float *)s->dst)[lane * vm->items + item] = (float)v[lane];
    else ((uint32_t *)s->dst)[lane * vm->items + item] = (uint32_t)v[lane];
  }
}

static bool run_load(kvm *vm, const kvm_step *s) {
  const kvm_memory *m = s->state;
  for (uint32_t i = 0; i < vm->items; i++) {
    uint64_t at;
    double v[4];
    if (!vm->mask[i]) continue;
    if (!locate_texel(vm, s, m, i, &at) || !kvm_touch(vm, s, m, at, m->bytes, i, KVM_READ)) return false;
    decode(m->format, m->region->data + at, v);
    put_texel(vm, s, i, v);
  }
  vm->stats.loads += vm->active;
  return true;
}

static bool run_store(kvm *vm, const kvm_step *s) {
  const kvm_memory *m = s->state;
  for (uint32_t i = 0; i < vm->items; i++) {
    uint64_t at;
    double v[4];
    if (!vm->mask[i]) continue;
    if (!locate_texel(vm, s, m, i, &at) || !kvm_touch(vm, s, m, at, m->bytes, i, KVM_WRITE)) return false;
    for (uint32_t lane = 0; lane < 4; lane++) v[lane] = kvm_get(s->c, (kvm_kind)s->kind, lane * vm->items + i);
    encode(m->format, m->region->data + at, v);
  }
  vm->stats.stores += vm->active;
  return true;
}

/* ---- sampling at normalised coordinates; there is one level ---- */
static uint32_t wrap_coordinate(const kvm_memory *m, double v, uint32_t size) {
  if (m->decl->flags & KIR_MEM_CLAMP) return v != v || v < 0 ? 0 : v >= size ? size - 1 : (uint32_t)v;
  const double turned = v - floor(v / size) * size;
  return turned >= 0 && turned < size ? (uint32_t)turned : 0;
}

static void fetch(const kvm_memory *m, double x, double y, double out[4]) {
  const uint32_t column = wrap_coordinate(m, x, m->width), row = wrap_coordinate(m, y, m->height);
  decode(m->format, m->region->data + ((uint64_t)row * m->width + column) * m->bytes, out);
}

static void sample(const kvm_memory *m, double u, double v, double out[4]) {
  if (!(m->decl->flags & KIR_MEM_LINEAR)) {
    fetch(m, floor(u * m->width), floor(v * m->height), out);
    return;
  }
  const double x = u * m->width - 0.5, y = v * m->height - 0.5, x0 = floor(x), y0 = floor(y), fx = x - x0, fy = y - y0;
  double a[4], b[4], c[4], d[4];
  fetch(m, x0, y0, a);
  fetch(m, x0 + 1, y0, b);
  fetch(m, x0, y0 + 1, c);
  fetch(m, x0 + 1, y0 + 1, d);
  for (uint32_t i = 0; i < 4; i++) out[i] = (1 - fy) * ((1 - fx) * a[i] + fx * b[i]) + fy * ((1 - fx) * c[i] + fx * d[i]);
}

static bool run_sample(kvm *vm, const kvm_step *s) {
  const kvm_memory *m = s->state;
  for (uint32_t i = 0; i < vm->items; i++) {
    double v[4];
    if (!vm->mask[i]) continue;
    sample(m, kvm_get(s->a, KVM_F32, i), kvm_get(s->b, KVM_F32, i), v);
    put_texel(vm, s, i, v);
  }
  vm->stats.loads += vm->active;
  return true;
}

kvm_fn kvm_image_fn(uint32_t op) {
  return op == KIR_tex_load ? run_load : op == KIR_tex_store ? run_store : op == KIR_tex_sample ? run_sample : NULL;
}
