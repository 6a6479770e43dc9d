/* The texts. SPIR-V is assembled by spirv-as when the test runs. */
#include "tests/unit/rt_kernels.h"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char opencl_text[] =
    "__kernel void scale(__global const float *restrict p0, __global float *restrict p1, uint w0, uint w1, uint w2) {\n"
    "  uint g = get_group_id(0) + get_num_groups(0) * (get_group_id(1) + get_num_groups(1) * get_group_id(2));\n"
    "  if (g >= w2) return;\n"
    "  uint i = g * 64u + get_local_id(0);\n"
    "  if (i < w0) p1[i] = as_float(w1) * p0[i] + (float)i;\n"
    "}\n";

/* __syncthreads makes cuda-text take its fibers; it waits where the whole block does. */
static const char cuda_text[] =
    "struct snt_block { unsigned w[3]; };\n"
    "extern \"C\" __global__ void __launch_bounds__(64) scale(const float *__restrict__ p0, float *__restrict__ p1, const snt_block s) {\n"
    "  const unsigned g = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);\n"
    "  if (g >= s.w[2]) return;\n"
    "  __shared__ alignas(16) float t[64];\n"
    "  const unsigned l = threadIdx.x, i = g * 64u + l;\n"
    "  t[63 - l] = i < s.w[0] ? p0[i] : 0.0f;\n"
    "  __syncthreads();\n"
    "  if (i < s.w[0]) p1[i] = __uint_as_float(s.w[1]) * t[63 - l] + (float)i;\n"
    "}\n";

#define SPIRV_HEAD                                                                                                                    \
  "OpMemoryModel Logical GLSL450\n"                                                                                                   \
  "OpEntryPoint GLCompute %main \"main\" %wg %nwg %lid\nOpExecutionMode %main LocalSize 64 1 1\n"                                     \
  "OpDecorate %wg BuiltIn WorkgroupId\nOpDecorate %nwg BuiltIn NumWorkgroups\nOpDecorate %lid BuiltIn LocalInvocationId\n"            \
  "OpMemberDecorate %push 0 Offset 0\nOpMemberDecorate %push 1 Offset 4\nOpMemberDecorate %push 2 Offset 8\nOpDecorate %push Block\n" \
  "OpDecorate %floats ArrayStride 4\nOpMemberDecorate %buffer 0 Offset 0\nOpDecorate %buffer Block\n"                                 \
  "OpDecorate %x DescriptorSet 0\nOpDecorate %x Binding 0\nOpDecorate %y DescriptorSet 0\nOpDecorate %y Binding 1\n"
#define SPIRV_TYPES                                                                                                                      \
  "%void = OpTypeVoid\n%fn = OpTypeFunction %void\n%uint = OpTypeInt 32 0\n%uint3 = OpTypeVector %uint 3\n%bool = OpTypeBool\n"          \
  "%float = OpTypeFloat 32\n%float4 = OpTypeVector %float 4\n%in3 = OpTypePointer Input %uint3\n"                                        \
  "%wg = OpVariable %in3 Input\n%nwg = OpVariable %in3 Input\n%lid = OpVariable %in3 Input\n"                                            \
  "%c0 = OpConstant %uint 0\n%c1 = OpConstant %uint 1\n%c2 = OpConstant %uint 2\n%c4 = OpConstant %uint 4\n%c64 = OpConstant %uint 64\n" \
  "%push = OpTypeStruct %uint %float %uint\n%push_p = OpTypePointer PushConstant %push\n%s = OpVariable %push_p PushConstant\n"          \
  "%push_u = OpTypePointer PushConstant %uint\n%push_f = OpTypePointer PushConstant %float\n"                                            \
  "%floats = OpTypeRuntimeArray %float\n%buffer = OpTypeStruct %floats\n%buffer_p = OpTypePointer StorageBuffer %buffer\n"               \
  "%float_p = OpTypePointer StorageBuffer %float\n%y = OpVariable %buffer_p StorageBuffer\n"
#define SPIRV_BEGIN                                                                                                                 \
  "%main = OpFunction %void None %fn\n%l0 = OpLabel\n%vw = OpLoad %uint3 %wg\n%vn = OpLoad %uint3 %nwg\n%vl = OpLoad %uint3 %lid\n" \
  "%gx = OpCompositeExtract %uint %vw 0\n%gy = OpCompositeExtract %uint %vw 1\n%gz = OpCompositeExtract %uint %vw 2\n"              \
  "%nx = OpCompositeExtract %uint %vn 0\n%ny = OpCompositeExtract %uint %vn 1\n%lx = OpCompositeExtract %uint %vl 0\n"              \
  "%t0 = OpIMul %uint %ny %gz\n%t1 = OpIAdd %uint %gy %t0\n%t2 = OpIMul %uint %nx %t1\n%g = OpIAdd %uint %gx %t2\n"                 \
  "%pg = OpAccessChain %push_u %s %c2\n%groups = OpLoad %uint %pg\n%in_g = OpULessThan %bool %g %groups\n"                          \
  "%t3 = OpIMul %uint %g %c64\n%i = OpIAdd %uint %t3 %lx\n%pn = OpAccessChain %push_u %s %c0\n%n = OpLoad %uint %pn\n"              \
  "%in_n = OpULessThan %bool %i %n\n%in = OpLogicalAnd %bool %in_g %in_n\n"                                                         \
  "OpSelectionMerge %l2 None\nOpBranchConditional %in %l1 %l2\n%l1 = OpLabel\n"                                                     \
  "%pa = OpAccessChain %push_f %s %c1\n%a = OpLoad %float %pa\n"
#define SPIRV_END                                                                          \
  "%ax = OpFMul %float %a %v\n%fi = OpConvertUToF %float %i\n%r = OpFAdd %float %ax %fi\n" \
  "%py = OpAccessChain %float_p %y %c0 %i\nOpStore %py %r\nOpBranch %l2\n%l2 = OpLabel\nOpReturn\nOpFunctionEnd\n"

// clang-format off
static const char *const spirv_storage[] = {"OpCapability Shader\n", SPIRV_HEAD, SPIRV_TYPES, "%x = OpVariable %buffer_p StorageBuffer\n", SPIRV_BEGIN,
                                            "%px = OpAccessChain %float_p %x %c0 %i\n%v = OpLoad %float %px\n", SPIRV_END, NULL};
// clang-format on
// clang-format off
static const char *const spirv_texel[] = {"OpCapability Shader\nOpCapability SampledBuffer\n", SPIRV_HEAD, SPIRV_TYPES,
                                          "%image = OpTypeImage %float Buffer 0 0 0 1 Unknown\n%image_p = OpTypePointer UniformConstant %image\n"
                                          "%x = OpVariable %image_p UniformConstant\n",
                                          SPIRV_BEGIN,
                                          "%im = OpLoad %image %x\n%q = OpUDiv %uint %i %c4\n%q4 = OpUMod %uint %i %c4\n"
                                          "%texel = OpImageFetch %float4 %im %q\n%v = OpVectorExtractDynamic %float %texel %q4\n",
                                          SPIRV_END, NULL};
// clang-format on

static bool assemble(test_code *out, const char *const *parts, const char **why) {
  char path[] = "/tmp/snt-rt-XXXXXX", command[128];
  enum { ROOM = 1 << 16 };
  int file = mkstemp(path);
  if (file < 0) return *why = "no temporary file", false;
  FILE *text = fdopen(file, "w");
  for (; *parts; parts++) fputs(*parts, text);
  fclose(text);
  snprintf(command, sizeof command, "spirv-as --target-env spv1.3 -o - %s 2>/dev/null", path);
  FILE *words = popen(command, "r");
  out->owned = malloc(ROOM);
  out->owned_size = words && out->owned ? fread(out->owned, 1, ROOM, words) : 0;
  int status = words ? pclose(words) : -1;
  unlink(path);
  *why = "spirv-as is not installed";
  return status == 0 && out->owned_size > 20;
}

static void build_kernel(test_code *out) {
  kir_kernel *k = &out->kernel;
  ir_arena_init(&out->arena, NULL);
  kir_init(k, &out->arena, "scale");
  k->items[0] = 64;
  uint32_t n = kir_scalar_add(k, "n", SNT_U32, 0, UINT32_MAX, 1), a = kir_scalar_add(k, "a", SNT_F32, 0, 0, 1);
  kir_memory x = {.name = "x", .space = KIR_GLOBAL, .access = KIR_READ, .rank = 1, .type = kir_t(SNT_F32, 1), .size_scalar = 1 + n};
  kir_memory y = {
      .name = "y", .space = KIR_GLOBAL, .access = KIR_WRITE, .rank = 1, .type = kir_t(SNT_F32, 1), .slot = 1, .size_scalar = 1 + n};
  uint32_t mx = kir_memory_add(k, &x), my = kir_memory_add(k, &y);
  const uint32_t ids[] = {kir_id(k, KIR_group, 0), kir_id(k, KIR_local, 0)};
  const int64_t coefs[] = {64, 1};
  uint32_t i = kir_ix(k, 2, coefs, ids, 0);
  uint32_t opened = kir_if(k, kir_2(k, KIR_lt, i, kir_scalar_read(k, n)));
  uint32_t v = kir_2(k, KIR_mul, kir_scalar_read(k, a), kir_load(k, mx, 1, 1, &i));
  kir_store(k, my, 1, &i, kir_2(k, KIR_add, v, kir_cast(k, kir_t(SNT_F32, 1), i)));
  kir_if_end(k, opened, 0, NULL, NULL);
}

bool test_code_make(test_code *out, uint32_t target, bool texel, const char **why) {
  static const uint8_t kinds[] = {RT_SLOT_F32X4, RT_SLOT_STORAGE};
  memset(out, 0, sizeof *out);
  out->code = (rt_code){.entry = "scale", .items = {64, 1, 1}, .binding_count = 2, .block_bytes = 8, .slot_kinds = texel ? kinds : NULL};
  switch (target) {
  case SNT_TARGET_OPENCL: out->code.data = opencl_text, out->code.size = sizeof opencl_text - 1; return true;
  case SNT_TARGET_CUDA: out->code.data = cuda_text, out->code.size = sizeof cuda_text - 1; return true;
  case SNT_TARGET_HOST: build_kernel(out), out->code.kernel = &out->kernel; return true;
  default: break;
  }
  bool made = assemble(out, texel ? spirv_texel : spirv_storage, why);
  out->code.data = out->owned, out->code.size = out->owned_size;
  return made;
}

void test_code_free(test_code *code) {
  free(code->owned);
  if (code->code.kernel) ir_arena_free(&code->arena);
}

const char *test_code_broken(uint32_t target) {
  switch (target) {
  case SNT_TARGET_OPENCL: return "__kernel void scale(__global float *p0) { p0[0] = undeclared_name; }\n";
  case SNT_TARGET_CUDA: return "extern \"C\" __global__ void scale(float *p0) { p0[0] = undeclared_name; }\n";
  default: return "this is neither a kernel nor a module";
  }
}
