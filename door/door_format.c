/* Image formats, and SPIR-V modules as the device at hand takes them: a storage image's format is one word of its type, set here; what a
   module declares to need is compared with what was enabled, so that no driver sees code it must not. */
#include "door/door.h"

// clang-format off
static const door_format formats[] = {
    {VK_FORMAT_R32G32B32A32_SFLOAT, 1, true, true, 4}, {VK_FORMAT_R16G16B16A16_SFLOAT, 2, true, true, 4}, {VK_FORMAT_R32_SFLOAT, 3, true, true, 1},
    {VK_FORMAT_R8G8B8A8_UNORM, 4, true, true, 4}, {VK_FORMAT_R8G8B8A8_SNORM, 5, true, true, 4}, {VK_FORMAT_R32G32_SFLOAT, 6, false, true, 2},
    {VK_FORMAT_R16G16_SFLOAT, 7, false, true, 2}, {VK_FORMAT_B10G11R11_UFLOAT_PACK32, 8, false, true, 3}, {VK_FORMAT_R16_SFLOAT, 9, false, true, 1},
    {VK_FORMAT_R16G16B16A16_UNORM, 10, false, true, 4}, {VK_FORMAT_A2B10G10R10_UNORM_PACK32, 11, false, true, 4}, {VK_FORMAT_R16G16_UNORM, 12, false, true, 2},
    {VK_FORMAT_R8G8_UNORM, 13, false, true, 2}, {VK_FORMAT_R16_UNORM, 14, false, true, 1}, {VK_FORMAT_R8_UNORM, 15, false, true, 1},
    {VK_FORMAT_R32_UINT, 33, true, false, 1}, {VK_FORMAT_R32_SINT, 24, true, false, 1},
    {VK_FORMAT_B8G8R8A8_UNORM, 0, false, true, 4}, {VK_FORMAT_R8G8B8A8_SRGB, 0, false, true, 4}, {VK_FORMAT_B8G8R8A8_SRGB, 0, false, true, 4},
    {VK_FORMAT_D32_SFLOAT, 0, false, true, 1}, {VK_FORMAT_D16_UNORM, 0, false, true, 1}, {VK_FORMAT_A2R10G10B10_UNORM_PACK32, 0, false, true, 4},
};
// clang-format on

const door_format *door_format_of(VkFormat format) {
  for (uint32_t i = 0; i < IR_COUNT(formats); i++)
    if (formats[i].format == format) return &formats[i];
  return NULL;
}

/* ---- walking a module: (word count << 16 | opcode), operands ---- */

enum { HEADER_WORDS = 5, MAGIC = 0x07230203 };
enum { OP_CAPABILITY = 17, OP_TYPE_IMAGE = 25, OP_TYPE_POINTER = 32, OP_VARIABLE = 59, OP_DECORATE = 71, OP_FUNCTION = 54 };
enum {
  DECORATION_BINDING = 33,
  CAPABILITY_EXTENDED_FORMATS = 49,
  CAPABILITY_WRITE_WITHOUT_FORMAT = 56,
  CAPABILITY_ADDRESSES = 5347,
  CAPABILITY_MATRICES = 6022
};

typedef struct module {
  const uint32_t *words;
  size_t count;
} module;

static module module_of(const snt_exec *x, uint32_t kernel) {
  const codegen_code *code = &x->program->kernels[kernel].code[x->target].code;
  return (module){(const uint32_t *)(const void *)code->data, code->size / 4};
}

/* The next instruction of opcode `op` at or after `at`, or `count`; a word count of zero ends the walk. */
static size_t find_op(const module *m, size_t at, uint32_t op, uint32_t least) {
  while (at < m->count) {
    const uint32_t words = m->words[at] >> 16, code = m->words[at] & 0xffff;
    if (!words || words > m->count - at) return m->count;
    if (code == op && words >= least) return at;
    at += words;
  }
  return m->count;
}

static size_t after(const module *m, size_t at) { return at + (m->words[at] >> 16); }

/* The instruction of `op` whose result (operand `place`) is id. */
static size_t find_result(const module *m, uint32_t op, uint32_t place, uint32_t id) {
  size_t at = find_op(m, HEADER_WORDS, op, place + 1);
  while (at < m->count && m->words[at + place] != id) at = find_op(m, after(m, at), op, place + 1);
  return at;
}

/* Where the format of the image bound to `binding` stands; 0: there is none. */
static size_t format_word(const module *m, uint32_t binding) {
  for (size_t at = find_op(m, HEADER_WORDS, OP_DECORATE, 4); at < m->count; at = find_op(m, after(m, at), OP_DECORATE, 4)) {
    if (m->words[at + 2] != DECORATION_BINDING || m->words[at + 3] != binding) continue;
    const size_t variable = find_result(m, OP_VARIABLE, 2, m->words[at + 1]);
    if (variable == m->count) return 0;
    const size_t pointer = find_result(m, OP_TYPE_POINTER, 1, m->words[variable + 1]);
    if (pointer == m->count || (m->words[pointer] >> 16) < 4) return 0;
    const size_t image = find_result(m, OP_TYPE_IMAGE, 1, m->words[pointer + 3]);
    return image == m->count || (m->words[image] >> 16) < 9 ? 0 : image + 8;
  }
  return 0;
}

static bool declares(const module *m, uint32_t capability) {
  for (size_t at = find_op(m, HEADER_WORDS, OP_CAPABILITY, 2); at < m->count; at = find_op(m, after(m, at), OP_CAPABILITY, 2))
    if (m->words[at + 1] == capability) return true;
  return false;
}

/* ---- patching ---- */

typedef struct patch {
  size_t word[API_MAX_BINDINGS];
  uint8_t number[API_MAX_BINDINGS];
  uint32_t count, capabilities[2], capability_count;
} patch;

static void need_capability(patch *p, const module *m, uint32_t capability) {
  for (uint32_t i = 0; i < p->capability_count; i++)
    if (p->capabilities[i] == capability) return;
  if (!declares(m, capability)) p->capabilities[p->capability_count++] = capability;
}

static snt_result plan_patch(const snt_exec *x, uint32_t kernel, const VkFormat *wanted, const module *m, patch *p, snt_diag *diag) {
  const char *name = door_plan(x)->kernels.at[kernel].kernel->name;
  for (uint32_t b = 0; b < x->program->kernels[kernel].binding_count; b++) {
    if (wanted[b] == VK_FORMAT_UNDEFINED) continue;
    const door_format *f = door_format_of(wanted[b]);
    const size_t word = format_word(m, b);
    if (!f || !word) return ir_fail(diag, SNT_E_INTERNAL, "job", 0, "%s: binding %u is no storage image", name, b);
    uint8_t number = f->spirv;
    const uint64_t features = door_of(x)->features;
    if (!f->basic && !(number && features & SNT_VK_FEATURE_IMAGE_FORMATS)) number = 0;
    if (!number) need_capability(p, m, CAPABILITY_WRITE_WITHOUT_FORMAT);
    else if (!f->basic) need_capability(p, m, CAPABILITY_EXTENDED_FORMATS);
    for (uint32_t i = 0; i < p->count; i++)
      if (p->word[i] == word && p->number[i] != number)
        return ir_fail(diag, SNT_E_UNSUPPORTED, "job", 0, "%s writes two images of different formats", name);
    p->word[p->count] = word;
    p->number[p->count++] = number;
  }
  return SNT_OK;
}

snt_result door_patch_module(const snt_exec *x, uint32_t kernel, const VkFormat *wanted, uint32_t **words, size_t *bytes, snt_diag *diag) {
  const module m = module_of(x, kernel);
  patch p = {.count = 0};
  SNT_TRY(plan_patch(x, kernel, wanted, &m, &p, diag));
  const size_t added = 2 * (size_t)p.capability_count;
  uint32_t *copy = api_take(x->device->context, (m.count + added) * 4);
  if (!copy) return ir_no_memory(diag, "job");
  memcpy(copy, m.words, HEADER_WORDS * 4);
  for (uint32_t i = 0; i < p.capability_count; i++) {
    copy[HEADER_WORDS + 2 * i] = 2u << 16 | OP_CAPABILITY;
    copy[HEADER_WORDS + 2 * i + 1] = p.capabilities[i];
  }
  memcpy(copy + HEADER_WORDS + added, m.words + HEADER_WORDS, (m.count - HEADER_WORDS) * 4);
  for (uint32_t i = 0; i < p.count; i++) copy[p.word[i] + added] = p.number[i];
  *words = copy;
  *bytes = (m.count + added) * 4;
  return SNT_OK;
}

/* ---- what a module needs, beside what was enabled ---- */

/* SPIR-V capability, SNT_VK_FEATURE_ and operations of subgroups that it needs, its name. As a text of names beside a table without pointers:
   libsinter-runtime has little room. */
// clang-format off
#define CAPABILITIES(ROW) \
  ROW(1, 0, 0, "shader") \
  ROW(9, SNT_VK_FEATURE_FLOAT16, 0, "shaderFloat16") \
  ROW(10, SNT_VK_FEATURE_FLOAT64, 0, "shaderFloat64") \
  ROW(11, SNT_VK_FEATURE_INT64, 0, "shaderInt64") \
  ROW(22, SNT_VK_FEATURE_INT16, 0, "shaderInt16") \
  ROW(39, SNT_VK_FEATURE_INT8, 0, "shaderInt8") \
  ROW(46, 0, 0, "texel buffers") \
  ROW(49, SNT_VK_FEATURE_IMAGE_FORMATS, 0, "shaderStorageImageExtendedFormats") \
  ROW(56, SNT_VK_FEATURE_IMAGE_WITHOUT_FORMAT, 0, "shaderStorageImageWriteWithoutFormat") \
  ROW(61, 0, VK_SUBGROUP_FEATURE_BASIC_BIT, "subgroups") \
  ROW(63, 0, VK_SUBGROUP_FEATURE_ARITHMETIC_BIT, "subgroup arithmetic") \
  ROW(65, 0, VK_SUBGROUP_FEATURE_SHUFFLE_BIT, "subgroup shuffles") \
  ROW(4464, SNT_VK_FEATURE_FLOAT_CONTROLS, 0, "denormals kept") \
  ROW(4466, SNT_VK_FEATURE_FLOAT_CONTROLS, 0, "signed zeros kept") \
  ROW(4467, SNT_VK_FEATURE_FLOAT_CONTROLS, 0, "rounding to nearest even") \
  ROW(4433, SNT_VK_FEATURE_STORAGE16, 0, "storageBuffer16BitAccess") \
  ROW(4448, SNT_VK_FEATURE_STORAGE8, 0, "storageBuffer8BitAccess") \
  ROW(5345, SNT_VK_FEATURE_MEMORY_MODEL, 0, "vulkanMemoryModel") \
  ROW(6018, SNT_VK_FEATURE_INTEGER_DOT_PRODUCT, 0, "bytes") \
  ROW(6019, SNT_VK_FEATURE_INTEGER_DOT_PRODUCT, 0, "shaderIntegerDotProduct") \
  ROW(CAPABILITY_MATRICES, SNT_VK_FEATURE_COOPERATIVE_MATRIX, 0, "cooperativeMatrix") \
  ROW(CAPABILITY_ADDRESSES, SNT_VK_FEATURE_BUFFER_ADDRESS, 0, "bufferDeviceAddress")
// clang-format on
typedef struct capability_row {
  uint32_t number, feature;
  VkSubgroupFeatureFlags subgroup;
} capability_row;
#define NUMBERS(number, feature, subgroup, what) {number, feature, subgroup},
static const capability_row capabilities[] = {CAPABILITIES(NUMBERS)};
#undef NUMBERS
#define NAME(number, feature, subgroup, what) what "\0"
static const char capability_names[] = CAPABILITIES(NAME);
#undef NAME

static const capability_row *find_capability(uint32_t number, const char **what) {
  *what = capability_names;
  for (uint32_t i = 0; i < IR_COUNT(capabilities); i++, *what += strlen(*what) + 1)
    if (capabilities[i].number == number) return &capabilities[i];
  return NULL;
}

snt_result door_check_capabilities(const snt_exec *x, uint32_t kernel, snt_diag *diag) {
  const module m = module_of(x, kernel);
  const char *name = door_plan(x)->kernels.at[kernel].kernel->name;
  const VkPhysicalDeviceSubgroupProperties *subgroups = &door_of(x)->limits.subgroups;
  bool addressed = false;
  for (uint32_t i = 0; i < x->program->kernels[kernel].binding_count; i++) addressed |= door_address_at(x, kernel, i) != 0;
  if (m.count < HEADER_WORDS || m.words[0] != MAGIC) return ir_fail(diag, SNT_E_BAD_BLOB, "exec", 0, "%s is no SPIR-V module", name);
  for (size_t at = find_op(&m, HEADER_WORDS, OP_CAPABILITY, 2); at < m.count; at = find_op(&m, after(&m, at), OP_CAPABILITY, 2)) {
    const char *what;
    const capability_row *row = find_capability(m.words[at + 1], &what);
    if (!row) return ir_fail(diag, SNT_E_UNSUPPORTED, "exec", 0, "%s needs SPIR-V capability %u", name, m.words[at + 1]);
    const bool stage = subgroups->supportedStages & VK_SHADER_STAGE_COMPUTE_BIT;
    if ((row->feature && !(door_of(x)->features & row->feature)) ||
        (row->subgroup && (!stage || !(subgroups->supportedOperations & row->subgroup))))
      return ir_fail(diag, SNT_E_UNSUPPORTED, "exec", 0, "%s needs %s, which the device was not created with", name, what);
  }
  if (declares(&m, CAPABILITY_MATRICES) && !api_has_units(x->program, &x->device->profile.caps))
    return ir_fail(diag, SNT_E_UNSUPPORTED, "exec", 0, "%s multiplies matrices of a size that the device does not", name);
  if (addressed != declares(&m, CAPABILITY_ADDRESSES)) return ir_fail(diag, SNT_E_BAD_BLOB, "exec", 0, "%s: addresses of buffers", name);
  return SNT_OK;
}
