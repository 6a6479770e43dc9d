/* Describe: what `record` would do, as plain data in the host's storage. No Vulkan call, so a planned device will do.
   The storage is laid out in one walk that runs twice: once to count, once to write. */
#include "door/door.h"

typedef struct describer {
  const snt_exec *x;
  expr_values run;
  int64_t *variables; /* those of `run` */
  const door_layout *layout;
  uint8_t *at; /* null: only counting */
  size_t used;
  snt_vk_description *out;
  /* the dispatches, as the plan is walked */
  snt_vk_dispatch_desc *dispatches;
  snt_vk_resource_ref *resources;
  uint32_t dispatch_count, resource_count;
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

static snt_vk_resource_ref resource_of(const describer *d, uint32_t set, uint32_t i) {
  const snt_exec *x = d->x;
  const plan_step *s = door_step_of(x, set);
  const plan_binding *b = &s->bindings[i];
  const uint32_t buffer = door_bound_buffer(x, set, i);
  const door_place *place = &d->layout->places[buffer];
  snt_vk_resource_ref r = {.type = door_descriptor_type(x->program->kernels[s->kernel].kinds[i]),
                           .address_at = door_address_at(x, s->kernel, i)};
  if (b->access & KIR_READ) r.access |= VK_ACCESS_SHADER_READ_BIT;
  if (b->access & KIR_WRITE) r.access |= VK_ACCESS_SHADER_WRITE_BIT;
  if (place->need != UINT32_MAX) {
    r.index = place->need, r.offset = place->offset, r.size = place->size;
    return r;
  }
  r.is_port = 1;
  r.index = x->door->port_of[buffer];
  VkDeviceSize bytes;
  if (r.index != UINT32_MAX && door_port_bytes(x, r.index, d->run.symbols, &bytes)) r.size = bytes;
  return r;
}

static snt_result describe_launch(void *user, const door_launch *l) {
  describer *d = user;
  const ir_plan *p = door_plan(d->x);
  const plan_step *step = &p->steps.at[l->step];
  void *push = take(d, door_push_bytes(d->x, step->kernel));
  if (!l->runs || !d->out) return SNT_OK;
  snt_vk_dispatch_desc *desc = &d->dispatches[d->dispatch_count++];
  *desc = (snt_vk_dispatch_desc){.name = step->name, .step = l->step, .pipeline = step->kernel, .resource_first = d->resource_count};
  desc->resource_count = step->binding_count;
  desc->barrier = l->barrier;
  desc->push = memcpy(push, l->push, l->push_bytes);
  desc->push_size = l->push_bytes;
  memcpy(desc->groups, l->grid, sizeof l->grid);
  desc->est_ns = (uint64_t)step->est_ns;
  (void)plan_eval_at(p, step->bytes_read, &d->run, &desc->bytes_read);
  (void)plan_eval_at(p, step->bytes_written, &d->run, &desc->bytes_written);
  for (uint32_t i = 0; i < step->binding_count; i++) d->resources[d->resource_count++] = resource_of(d, l->set, i);
  return SNT_OK;
}

static snt_result describe_steps(describer *d, snt_diag *diag) {
  uint64_t dispatches, resources;
  if (!plan_count_dispatches(door_plan(d->x), d->run.symbols, &dispatches, &resources))
    return ir_fail(diag, SNT_E_LIMIT, "describe", 0, "too many trips of a repeat");
  d->dispatches = take(d, dispatches * sizeof *d->dispatches);
  d->resources = take(d, resources * sizeof *d->resources);
  d->dispatch_count = d->resource_count = 0;
  SNT_TRY(
      door_walk(&(door_run){.x = d->x, .at = d->run, .stage = "describe", .user = d, .put = describe_launch, .diag = diag}, d->variables));
  if (!d->out) return SNT_OK;
  d->out->dispatch_count = d->dispatch_count, d->out->dispatches = d->dispatches;
  d->out->resource_count = d->resource_count, d->out->resources = d->resources;
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
  SNT_TRY(api_check_whole(&info->head, SNT_TYPE_vk_describe_info, sizeof *info, diag));
  SNT_TRY(api_check_symbols(x->program, info->max_symbols, info->symbol_count, "describe", diag));
  SNT_TRY(api_check_symbols(x->program, info->symbols, info->symbol_count, "describe", diag));
  snt_context *c = x->device->context;
  const size_t bytes = door_plan(x)->buffers.count * sizeof(door_place), variables = plan_variable_count(door_plan(x)) * sizeof(int64_t);
  door_layout *layout = api_take(c, sizeof *layout);
  if (layout) layout->places = api_take(c, bytes);
  int64_t *values = api_take(c, variables);
  describer d = {.x = x, .run = {.symbols = info->symbols, .vars = values}, .variables = values, .layout = layout};
  snt_result r = layout && layout->places && values ? door_make_layout(x, info->max_symbols, layout, diag) : ir_no_memory(diag, "describe");
  if (r == SNT_OK) r = describe_with(&d, storage, storage_size, out, diag);
  if (layout) api_give(c, layout->places, bytes);
  api_give(c, layout, sizeof *layout);
  api_give(c, values, variables);
  return r;
}
