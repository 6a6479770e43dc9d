/* Describe: what `record` would do, as plain data in the host's storage. No Vulkan call, so a planned device will do.
   The storage is laid out in one walk that runs twice: once to count, once to write. */
#include "door/door.h"

typedef struct describer {
  const snt_exec *x;
  const int64_t *symbols;
  const door_layout *layout;
  uint8_t *at; /* null: only counting */
  size_t used;
  snt_vk_description *out;
} describer;

static void *take(describer *d, size_t bytes) {
  void *p = d->at ? d->at + d->used : NULL;
  d->used += (bytes + 15) / 16 * 16;
  return p;
}

static void describe_pipelines(describer *d) {
  const snt_exec *x = d->x;
  const uint32_t count = door_plan(x)->kernels.count;
  snt_vk_pipeline_desc *pipelines = take(d, count * sizeof *pipelines);
  for (uint32_t k = 0; k < count; k++) {
    const api_kernel *kernel = &x->program->kernels[k];
    VkDescriptorSetLayoutBinding *bindings = take(d, kernel->binding_count * sizeof *bindings);
    if (!pipelines) continue;
    uint32_t bound = 0;
    for (uint32_t i = 0; i < kernel->binding_count; i++)
      if (!door_address_at(x, k, i)) door_slot_binding(x, k, i, &bindings[bound++]);
    const codegen_code *code = &kernel->code[x->target].code;
    pipelines[k] = (snt_vk_pipeline_desc){.spirv = (const uint32_t *)(const void *)code->data,
                                          .spirv_size = code->size,
                                          .entry = "main",
                                          .required_subgroup_size = kernel->sub == ~0u ? 0 : kernel->sub,
                                          .binding_count = bound,
                                          .bindings = bindings,
                                          .push_size = door_push_bytes(x, k)};
    api_code_key(&x->program->kernels[k].code[x->target], x->target, pipelines[k].key);
  }
  if (d->out) d->out->pipeline_count = count, d->out->pipelines = pipelines;
}

/* A storage image's format is a word of the module: patched copies live in the storage as well. */
static snt_result describe_formats(describer *d, snt_diag *diag) {
  const snt_exec *x = d->x;
  for (uint32_t k = 0; k < door_plan(x)->kernels.count; k++) {
    VkFormat formats[API_MAX_BINDINGS];
    uint32_t *words;
    size_t bytes;
    if (!door_kernel_formats(x, k, formats)) continue;
    SNT_TRY(door_patch_module(x, k, formats, &words, &bytes, diag));
    void *copy = take(d, bytes);
    if (copy) {
      snt_vk_pipeline_desc *p = (snt_vk_pipeline_desc *)(uintptr_t)&d->out->pipelines[k];
      memcpy(copy, words, bytes);
      p->spirv = copy, p->spirv_size = bytes;
    }
    api_give(x->device->context, words, bytes);
  }
  return SNT_OK;
}

static snt_vk_resource_ref resource_of(const describer *d, const plan_step *s, uint32_t i) {
  const snt_exec *x = d->x;
  const plan_binding *b = &s->bindings[i];
  const door_place *place = &d->layout->places[b->buffer];
  snt_vk_resource_ref r = {.type = door_descriptor_type(x->program->kernels[s->kernel].kinds[i]),
                           .address_at = door_address_at(x, s->kernel, i)};
  if (b->access & KIR_READ) r.access |= VK_ACCESS_SHADER_READ_BIT;
  if (b->access & KIR_WRITE) r.access |= VK_ACCESS_SHADER_WRITE_BIT;
  if (place->need != UINT32_MAX) {
    r.index = place->need, r.offset = place->offset, r.size = place->size;
    return r;
  }
  r.is_port = 1;
  r.index = x->door->port_of[b->buffer];
  VkDeviceSize bytes;
  if (r.index != UINT32_MAX && door_port_bytes(x, r.index, d->symbols, &bytes)) r.size = bytes;
  return r;
}

static snt_result describe_steps(describer *d, snt_diag *diag) {
  const snt_exec *x = d->x;
  const ir_plan *p = door_plan(x);
  const uint32_t *most = door_of(x)->limits.core.maxComputeWorkGroupCount;
  const uint64_t limit[3] = {most[0], most[1], most[2]};
  uint32_t choice = 0, dispatches = 0, resources = 0, total = 0;
  bool owed = false;
  for (uint32_t s = 0; s < p->steps.count; s++) total += p->steps.at[s].binding_count;
  snt_vk_dispatch_desc *to = take(d, p->steps.count * sizeof *to);
  snt_vk_resource_ref *refs = take(d, total * sizeof *refs);
  for (uint32_t s = 0; s < p->steps.count; s++) {
    const plan_step *step = &p->steps.at[s];
    const uint32_t push = door_push_bytes(x, step->kernel);
    uint8_t *block = take(d, push);
    plan_launch launch;
    uint64_t read = 0, written = 0;
    if (!plan_eval_step(p, s, &(plan_values){d->symbols, NULL}, &choice, &launch) || launch.groups > UINT32_MAX)
      return ir_fail(diag, SNT_E_LIMIT, "describe", 0, "a size of %s does not fit 32 bits", step->name);
    owed |= step->barrier != 0;
    if (!launch.runs || !to) continue;
    const uint32_t groups = (uint32_t)launch.groups;
    const uint32_t scalars = x->program->kernels[step->kernel].block_bytes;
    memset(block, 0, push); /* addresses are the host's to put in */
    memcpy(block, launch.scalars, scalars);
    memcpy(block + scalars, &groups, 4);
    (void)plan_eval(p, step->bytes_read, d->symbols, &read);
    (void)plan_eval(p, step->bytes_written, d->symbols, &written);
    snt_vk_dispatch_desc *desc = &to[dispatches++];
    *desc = (snt_vk_dispatch_desc){.name = step->name, .step = s, .pipeline = step->kernel, .resource_first = resources};
    desc->resource_count = step->binding_count;
    desc->barrier = owed;
    desc->push = block, desc->push_size = push;
    desc->est_ns = (uint64_t)step->est_ns, desc->bytes_read = read, desc->bytes_written = written;
    plan_fold_grid(launch.groups, limit, desc->groups);
    owed = false;
    for (uint32_t i = 0; i < step->binding_count; i++) refs[resources++] = resource_of(d, step, i);
  }
  if (!d->out) return SNT_OK;
  d->out->dispatch_count = dispatches, d->out->dispatches = to;
  d->out->resource_count = resources, d->out->resources = refs;
  return SNT_OK;
}

static void describe_init(describer *d) {
  const ir_plan *p = door_plan(d->x);
  uint32_t count = 0;
  for (uint32_t i = 0; i < p->buffers.count; i++)
    count += p->buffers.at[i].kind == PLAN_CONSTANT && p->buffers.at[i].first_step != UINT32_MAX;
  snt_vk_copy_desc *copies = take(d, count * sizeof *copies);
  if (!copies) return;
  d->out->init_count = count, d->out->init = copies;
  for (uint32_t i = 0; i < p->buffers.count; i++) {
    const plan_buffer *b = &p->buffers.at[i];
    uint64_t bytes = 0;
    if (b->kind != PLAN_CONSTANT || b->first_step == UINT32_MAX) continue;
    (void)plan_logical_bytes(p, b, NULL, &bytes);
    *copies++ = (snt_vk_copy_desc){d->layout->places[i].need, d->layout->places[i].offset, bytes, api_constant(d->x->program, i)};
  }
}

static snt_result walk(describer *d, snt_diag *diag) {
  d->used = 0;
  d->out = take(d, sizeof *d->out);
  if (d->out) *d->out = (snt_vk_description){.head = {SNT_TYPE_vk_description, sizeof *d->out, NULL}};
  describe_pipelines(d);
  SNT_TRY(describe_formats(d, diag));
  SNT_TRY(describe_steps(d, diag));
  describe_init(d);
  return SNT_OK;
}

static snt_result describe_with(describer *d, void *storage, size_t *size, const snt_vk_description **out, snt_diag *diag) {
  const size_t room = *size;
  SNT_TRY(walk(d, diag));
  *size = d->used;
  if (!storage || room < d->used) return SNT_INCOMPLETE;
  if ((uintptr_t)storage % 16) return ir_fail(diag, SNT_E_ARG, "describe", 0, "the storage begins at no multiple of 16");
  d->at = storage;
  SNT_TRY(walk(d, diag));
  if (out) *out = d->out;
  return SNT_OK;
}

snt_result snt_vk_describe(const snt_exec *x, const snt_vk_describe_info *info, void *storage, size_t *storage_size,
                           const snt_vk_description **out, snt_diag *diag) {
  if (!x || !x->door || !info || !storage_size)
    return ir_fail(diag, SNT_E_ARG, "describe", 0, "an exec of an attached or planned device is needed");
  SNT_TRY(api_check_head(&info->head, SNT_TYPE_vk_describe_info, sizeof *info, diag));
  if (info->head.size < sizeof *info) return ir_fail(diag, SNT_E_STRUCT, "describe", 0, "size %u of snt_vk_describe_info", info->head.size);
  SNT_TRY(door_check_symbols(x, info->max_symbols, info->symbol_count, "describe", diag));
  SNT_TRY(door_check_symbols(x, info->symbols, info->symbol_count, "describe", diag));
  snt_context *c = x->device->context;
  const size_t bytes = door_plan(x)->buffers.count * sizeof(door_place);
  door_layout *layout = api_take(c, sizeof *layout);
  if (layout) layout->places = api_take(c, bytes);
  describer d = {.x = x, .symbols = info->symbols, .layout = layout};
  snt_result r = layout && layout->places ? door_make_layout(x, info->max_symbols, layout, diag)
                                          : ir_fail(diag, SNT_E_HOST_MEM, "describe", 0, "out of host memory");
  if (r == SNT_OK) r = describe_with(&d, storage, storage_size, out, diag);
  if (layout) api_give(c, layout->places, bytes);
  api_give(c, layout, sizeof *layout);
  return r;
}
