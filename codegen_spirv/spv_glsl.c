/* GLSL of the user's own as a shader to compile: a function with a `main` that calls it, or a kernel with the bindings, the scalars and the group
   number of the calling convention (codegen_common/codegen.h). Elements are of 32 bits: GLSL has no others without extensions. */
#include "codegen_spirv/spv_private.h"

static const char *glsl_type(uint32_t base) {
  return base == SNT_F32 ? "float" : base == SNT_I32 ? "int" : base == SNT_U32 ? "uint" : NULL;
}

static void put_function(const kir_own *own, const char *source, const char *body, ir_text *out) {
  const char *name;
  uint32_t count = 0;
  ir_text_add(out, "layout(local_size_x = 1) in;\nlayout(set = 0, binding = 0) buffer snt_values { uint v[]; } snt_at;\n");
  ir_text_format(out, "%s snt_%s(", glsl_type(own->types[0]), own->name);
  for (uint32_t length; (length = kir_own_param(own->params, count, &name)); count++) {
    ir_text_format(out, "%sconst in %s ", count ? ", " : "", glsl_type(own->types[1 + count]));
    ir_text_put(out, name, length);
  }
  ir_text_add(out, codegen_own_is_body(body) ? ") {" : ") {\n  return");
  codegen_own_put(out, source, body, strlen(body), "");
  ir_text_format(out, "%s}\nvoid main() { snt_at.v[0] = uint(snt_%s(", codegen_own_is_body(body) ? "" : ";\n", own->name);
  for (uint32_t i = 0; i < count; i++) ir_text_format(out, "%s%s(snt_at.v[%u])", i ? ", " : "", glsl_type(own->types[1 + i]), i + 1);
  ir_text_add(out, ")); }\n");
}

static snt_result put_bindings(const kir_kernel *k, const kir_own *own, ir_text *out, snt_diag *diag) {
  const char *name;
  ir_text_format(out, "layout(local_size_x = %u, local_size_y = %u, local_size_z = %u) in;\n", k->items[0], k->items[1], k->items[2]);
  for (uint32_t m = 0; m < k->memories.count; m++) {
    const kir_memory *memory = &k->memories.at[m];
    const uint32_t length = kir_own_param(own->params, m, &name);
    const char *type = glsl_type(memory->type.base);
    if (!type)
      return ir_fail(diag, SNT_E_UNSUPPORTED, "glsl", 0, "operator %s: %.*s has elements of type %s, which GLSL has not", own->name,
                     (int)length, name, ir_dtypes[memory->type.base].name);
    ir_text_format(out, "layout(set = 0, binding = %u, std430) %sbuffer snt_b%u { %s ", memory->slot,
                   memory->access & KIR_WRITE ? "" : "readonly ", m, type);
    ir_text_put(out, name, length);
    ir_text_add(out, "[]; };\n");
  }
  ir_text_format(out, "layout(push_constant) uniform snt_block { uint w[%u]; } snt_s;\n", kir_block_bytes(k) / 4 + 1);
  return SNT_OK;
}

static const kir_inst *find_body(const kir_kernel *k, uint32_t own) {
  for (uint32_t i = 1; i < k->insts.count; i++)
    if (kir_at(k, i)->op == KIR_inline && kir_at(k, i)->index == own) return kir_at(k, i);
  return NULL;
}

static void put_kernel(const kir_kernel *k, const kir_own *own, const kir_inst *inst, const char *source, const char *body, ir_text *out) {
  const char *name;
  ir_text_add(out,
              "void main() {\n  const uint snt_group = gl_WorkGroupID.x + gl_NumWorkGroups.x * (gl_WorkGroupID.y + gl_NumWorkGroups.y * "
              "gl_WorkGroupID.z);\n");
  ir_text_format(out, "  if (snt_group >= snt_s.w[%u]) return;\n", kir_block_bytes(k) / 4);
  for (uint32_t i = 0; i < inst->arg_count; i++) {
    const kir_inst *value = kir_at(k, k->args.at[inst->args + i]);
    const uint32_t length = kir_own_param(own->params, k->memories.count + i, &name);
    ir_text_add(out, "  const uint ");
    ir_text_put(out, name, length);
    if (value->op == KIR_scalar) ir_text_format(out, " = snt_s.w[%u];\n", k->scalars.at[value->index].offset / 4);
    else ir_text_format(out, " = %uu;\n", (uint32_t)value->imm.i);
  }
  codegen_own_put(out, source, body, strlen(body), "");
  ir_text_add(out, "}\n");
}

snt_result spv_own_text(const kir_kernel *k, uint32_t row, ir_text *out, snt_diag *diag) {
  const kir_own *own = &k->owns.at[row];
  const kir_inst *inst = find_body(k, row);
  const char *source = own->source[KIR_OWN_GLSL];
  size_t head;
  const char *body = kir_own_body(source, &head);
  ir_text_add(out, "#version 450\n");
  if (inst) SNT_TRY(put_bindings(k, own, out, diag));
  if (head) codegen_own_put(out, source, source, head, "");
  if (inst) put_kernel(k, own, inst, source, body, out);
  else put_function(own, source, body, out);
  return out->failed ? ir_fail(diag, SNT_E_HOST_MEM, "glsl", 0, "out of memory") : SNT_OK;
}
