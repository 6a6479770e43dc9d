/* Images and texel buffers. A sampled image that the kernel samples is bound as image and sampler in one; one that it only fetches from
   as an image alone. A texel memory is a uniform texel buffer of four channels. */
#include "codegen_spirv/spv_private.h"

/* SPIR-V's number of each format a storage image may have; `basic` ones need no capability. */
// clang-format off
static const struct image_format { const char *name; uint8_t number; bool basic; } formats[] = {
    {"rgba32f", 1, true},   {"rgba16f", 2, true}, {"r32f", 3, true},    {"rgba8", 4, true},     {"rgba8snorm", 5, true}, {"rg32f", 6, false},
    {"rg16f", 7, false},    {"r11g11b10f", 8, false}, {"r16f", 9, false}, {"rgba16", 10, false}, {"rgb10a2", 11, false},  {"rg16", 12, false},
    {"rg8", 13, false},     {"r16", 14, false},   {"r8", 15, false},    {"rgba32i", 21, true},  {"rgba16i", 22, true},   {"rgba8i", 23, true},
    {"r32i", 24, true},     {"rgba32ui", 30, true}, {"rgba16ui", 31, true}, {"rgba8ui", 32, true}, {"r32ui", 33, true}};
// clang-format on

static uint32_t format_number(spv *s, const kir_memory *m) {
  for (size_t i = 0; i < IR_COUNT(formats); i++) {
    if (strcmp(formats[i].name, m->format) != 0) continue;
    if (!formats[i].basic) spv_need(s, SpvCapabilityStorageImageExtendedFormats);
    return formats[i].number;
  }
  if (m->access & KIR_READ) spv_fail(s, SNT_E_UNSUPPORTED, 0, "image %s: format %s cannot be read as a storage image", m->name, m->format);
  spv_need(s, SpvCapabilityStorageImageWriteWithoutFormat);
  return 0;
}

/* Channels are f32 unless the format's name ends in i or ui. */
static int32_t channel_type(const kir_memory *m) {
  const size_t n = strlen(m->format);
  if (!n || m->format[n - 1] != 'i') return SNT_F32;
  return n > 1 && m->format[n - 2] == 'u' ? SNT_U32 : SNT_I32;
}

/* A channel's type in the image: signed integers have their sign here, though nowhere else in the module. */
static uint32_t channel(spv *s, int32_t base) {
  return base == SNT_I32 ? SPV_TYPE(&s->m, SpvOpTypeInt, 32, 1) : spv_type(s, kir_t(base, 1));
}

static uint32_t channels(spv *s, int32_t base) { return SPV_TYPE(&s->m, SpvOpTypeVector, channel(s, base), 4); }

static uint32_t without_sign(spv *s, int32_t base, uint32_t value) {
  return base == SNT_I32 ? SPV_DO(s, SpvOpBitcast, spv_type(s, kir_t(SNT_U32, 4)), value) : value;
}

static bool is_sampled_with_sampler(const spv *s, uint32_t number) {
  for (uint32_t i = 1; i < s->k->insts.count; i++)
    if (kir_at(s->k, i)->op == KIR_tex_sample && kir_at(s->k, i)->index == number) return true;
  return false;
}

void spv_declare_image(spv *s, uint32_t number) {
  const kir_memory *m = &s->k->memories.at[number];
  spv_memory *mem = &s->memory[number];
  const bool is_fetched = mem->texel || m->flags & KIR_MEM_SAMPLED;
  const uint32_t component = channel(s, mem->texel ? spv_wide(m->type).base : channel_type(m));
  const uint32_t dim = mem->texel ? SpvDimBuffer : SpvDim2D, format = is_fetched ? 0 : format_number(s, m);
  mem->image = SPV_TYPE(&s->m, SpvOpTypeImage, component, dim, 0, 0, 0, is_fetched ? 1 : 2, format);
  mem->sampled = !mem->texel && is_sampled_with_sampler(s, number);
  mem->content = mem->sampled ? SPV_TYPE(&s->m, SpvOpTypeSampledImage, mem->image) : mem->image;
  if (mem->texel) spv_need(s, SpvCapabilitySampledBuffer);
  const uint32_t pointer = spv_pointer(s, SpvStorageClassUniformConstant, mem->content), id = spv_fresh(&s->m);
  SPV(&s->m, SPV_TYPES, SpvOpVariable, pointer, id, SpvStorageClassUniformConstant);
  SPV(&s->m, SPV_DECORATIONS, SpvOpDecorate, id, SpvDecorationDescriptorSet, 0);
  SPV(&s->m, SPV_DECORATIONS, SpvOpDecorate, id, SpvDecorationBinding, m->slot);
  if (!is_fetched && !(m->access & KIR_READ)) SPV(&s->m, SPV_DECORATIONS, SpvOpDecorate, id, SpvDecorationNonReadable);
  if (!is_fetched && !(m->access & KIR_WRITE)) SPV(&s->m, SPV_DECORATIONS, SpvOpDecorate, id, SpvDecorationNonWritable);
  mem->view[1].variable = id;
}

static uint32_t content(spv *s, uint32_t number) {
  return SPV_DO(s, SpvOpLoad, s->memory[number].content, s->memory[number].view[1].variable);
}

uint32_t spv_fetch_texel(spv *s, uint32_t number, uint32_t index) {
  const kir_memory *m = &s->k->memories.at[number];
  const kir_type wide = spv_wide(m->type);
  uint32_t texel = without_sign(s, wide.base, SPV_DO(s, SpvOpImageFetch, channels(s, wide.base), content(s, number), index));
  if (s->memory[number].narrows)
    texel = SPV_DO(s, m->type.base == SNT_F16 ? SpvOpFConvert : SpvOpUConvert, spv_type(s, kir_t(m->type.base, 4)), texel);
  return m->type.lanes == 4 ? texel : SPV_DO(s, SpvOpCompositeExtract, spv_type(s, kir_t(wide.base, 1)), texel, 0);
}

static uint32_t coordinates(spv *s, uint32_t inst, int32_t base) {
  return SPV_DO(s, SpvOpCompositeConstruct, spv_type(s, kir_t(base, 2)), spv_arg(s, inst, 0), spv_arg(s, inst, 1));
}

uint32_t spv_image(spv *s, uint32_t inst) {
  const kir_inst *in = kir_at(s->k, inst);
  const kir_memory *m = &s->k->memories.at[in->index];
  const spv_memory *mem = &s->memory[in->index];
  uint32_t image = content(s, in->index);
  if (in->op == KIR_tex_sample) {
    const uint32_t at = coordinates(s, inst, SNT_F32), lod = spv_arg(s, inst, 2);
    return SPV_DO(s, SpvOpImageSampleExplicitLod, spv_type(s, in->type), image, at, SpvImageOperandsLodMask, lod);
  }
  if (mem->sampled) image = SPV_DO(s, SpvOpImage, mem->image, image);
  const uint32_t at = coordinates(s, inst, SNT_U32);
  const int32_t base = channel_type(m);
  if (in->op == KIR_tex_store) {
    const uint32_t value = spv_arg(s, inst, 2);
    SPV(&s->m, SPV_CODE, SpvOpImageWrite, image, at, base == SNT_I32 ? SPV_DO(s, SpvOpBitcast, channels(s, base), value) : value);
    return 0;
  }
  const uint32_t texel = m->flags & KIR_MEM_SAMPLED
                             ? SPV_DO(s, SpvOpImageFetch, channels(s, base), image, at, SpvImageOperandsLodMask, spv_u32(s, 0))
                             : SPV_DO(s, SpvOpImageRead, channels(s, base), image, at);
  return without_sign(s, base, texel);
}
