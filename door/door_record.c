/* Recording: a run, or a slice of its steps, into the host's command buffer. Everything is evaluated and checked first, into the slot; then the
   commands follow without a way to fail. A slot recorded with the symbols it had last time evaluates nothing. */
#include "door/door.h"

/* ---- checks and evaluation ---- */

static bool port_is_used(const door_port *p) { return p->access != 0; }

static snt_result check_ports(const snt_binding *b, const door_slot *slot, const int64_t *symbols, snt_diag *diag) {
  const snt_exec *x = b->exec;
  for (uint32_t i = 0; i < x->program->port_count; i++) {
    const door_port *port = &x->door->ports[i];
    VkDeviceSize bytes = 0;
    if (port->kind == SNT_VK_PORT_VALUE || port->kind == SNT_VK_PORT_STATE || !port_is_used(port)) continue;
    if (!slot->ports[i].set) return ir_fail(diag, SNT_E_ORDER, "record", 0, "nothing is bound to port %s", door_port_name(x, i));
    if (port->kind != SNT_VK_PORT_BUFFER) continue;
    if (!door_port_bytes(x, i, symbols, &bytes)) return ir_fail(diag, SNT_E_LIMIT, "record", 0, "the size of %s", door_port_name(x, i));
    if (bytes > slot->ports[i].bind.range.size || bytes > door_of(x)->limits.core.maxStorageBufferRange)
      return ir_fail(diag, SNT_E_ARG, "record", 0, "port %s needs %llu bytes; %llu are bound", door_port_name(x, i),
                     (unsigned long long)bytes, (unsigned long long)slot->ports[i].bind.range.size);
  }
  return SNT_OK;
}

typedef struct evaluation {
  const snt_binding *b;
  door_slot *slot;
  snt_diag *diag;
} evaluation;

static snt_result keep_launch(void *user, const door_launch *l) {
  const evaluation *e = user;
  const snt_exec *x = e->b->exec;
  door_slot *slot = e->slot;
  if (slot->launch_count == e->b->launch_room)
    return ir_fail(e->diag, SNT_E_LIMIT, "record", 0, "more trips than at the binding's maximal symbols");
  door_launch *to = &slot->launches[slot->launch_count++];
  memcpy(to, l, offsetof(door_launch, push) + l->push_bytes);
  if (!slot->addresses || !l->runs) return SNT_OK;
  for (uint32_t i = 0; i < door_step_of(x, l->set)->binding_count; i++) {
    const uint32_t at = door_address_at(x, door_step_of(x, l->set)->kernel, i);
    if (at) memcpy((char *)to->push + at, &slot->addresses[e->b->first_view[l->set] + i], sizeof *slot->addresses);
  }
  return SNT_OK;
}

static snt_result evaluate(const snt_binding *b, door_slot *slot, const int64_t *symbols, snt_diag *diag) {
  evaluation e = {b, slot, diag};
  slot->launch_count = 0;
  return door_walk(&(door_run){.x = b->exec,
                               .at = {.symbols = symbols, .vars = slot->variables},
                               .stage = "record",
                               .user = &e,
                               .put = keep_launch,
                               .diag = diag},
                   slot->variables);
}

static snt_result prepare_slot(const snt_binding *b, door_slot *slot, const snt_vk_record_info *info, snt_diag *diag) {
  const expr_pool *pool = &b->exec->program->pool;
  if (info->symbol_count != pool->symbols.count)
    return api_check_symbols(b->exec->program, info->symbols, info->symbol_count, "record", diag);
  if (info->symbol_count && !info->symbols) return ir_fail(diag, SNT_E_ARG, "record", 0, "no symbols");
  if (slot->known && !memcmp(slot->symbols, info->symbols ? info->symbols : slot->symbols, info->symbol_count * sizeof *slot->symbols))
    return SNT_OK;
  slot->known = false;
  SNT_TRY(api_check_symbols(b->exec->program, info->symbols, info->symbol_count, "record", diag));
  for (uint32_t i = 0; i < info->symbol_count; i++)
    if (info->symbols[i] > b->max_symbols[i])
      return ir_fail(diag, SNT_E_ARG, "record", 0, "%s = %lld is above the binding's maximum of %lld", pool->symbols.at[i].name,
                     (long long)info->symbols[i], (long long)b->max_symbols[i]);
  SNT_TRY(check_ports(b, slot, info->symbols, diag));
  SNT_TRY(evaluate(b, slot, info->symbols, diag));
  for (uint32_t i = 0; i < info->symbol_count; i++) slot->symbols[i] = info->symbols[i];
  slot->known = true;
  return SNT_OK;
}

static snt_result check_slice(const snt_exec *x, const door_slot *slot, const snt_vk_record_info *info, uint32_t *end, snt_diag *diag) {
  const ir_plan *p = door_plan(x);
  if (info->first_step > slot->launch_count || info->step_count > slot->launch_count - info->first_step)
    return ir_fail(diag, SNT_E_ARG, "record", 0, "steps %u and on, %u of them; there are %u", info->first_step, info->step_count,
                   slot->launch_count);
  *end = info->step_count ? info->first_step + info->step_count : slot->launch_count;
  for (uint32_t i = info->first_step; i < *end; i++) {
    const plan_step *s = &p->steps.at[slot->launches[i].step];
    if (!x->door->kernels[s->kernel].pipeline)
      return ir_fail(diag, SNT_E_ORDER, "record", 0, "%s has no pipeline yet: its job is to be run", s->name);
  }
  return SNT_OK;
}

static snt_result check_values(const snt_exec *x, const snt_vk_record_info *info, snt_diag *diag) {
  if (!info->values) return SNT_OK; /* the host has written them, or there are none */
  if (info->values_size < x->door->values_bytes)
    return ir_fail(diag, SNT_E_ARG, "record", 0, "%zu bytes of values; the ports take %u", info->values_size, x->door->values_bytes);
  if (!info->values_mapped && x->door->values_bytes) return ir_fail(diag, SNT_E_ARG, "record", 0, "values without the mapped VALUES range");
  return SNT_OK;
}

static snt_result check_info(const snt_binding *b, VkCommandBuffer commands, const snt_vk_record_info *info, snt_diag *diag) {
  SNT_TRY(api_check_whole(&info->head, SNT_TYPE_vk_record_info, sizeof *info, diag));
  SNT_TRY(api_check_flags(info->flags, SNT_VK_RECORD_LABELS, "record", diag));
  if (!commands) return ir_fail(diag, SNT_E_ARG, "record", 0, "no command buffer");
  if (info->slot >= b->slot_count) return ir_fail(diag, SNT_E_ARG, "record", 0, "slot %u of %u", info->slot, b->slot_count);
  const bool edges = info->memory_before.stage || info->memory_after.stage || info->memory_before.access || info->memory_after.access;
  if (edges && !(b->exec->door->flags & SNT_VK_EDGE_BARRIERS))
    return ir_fail(diag, SNT_E_ARG, "record", 0, "scopes are given, but the exec was made without SNT_VK_EDGE_BARRIERS");
  SNT_TRY(check_values(b->exec, info, diag));
  return door_check_lost(b->exec, "record", diag);
}

/* ---- commands: no way to fail from here on ---- */

static void put_barrier(const door_vk *vk, VkCommandBuffer commands, snt_vk_sync from, snt_vk_sync to) {
  const VkMemoryBarrier barrier = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER, .srcAccessMask = from.access, .dstAccessMask = to.access};
  vk->vkCmdPipelineBarrier(commands, from.stage, to.stage, 0, 1, &barrier, 0, NULL, 0, NULL);
}

static const snt_vk_sync own_work = {VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT};
static const snt_vk_sync own_writes = {VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_ACCESS_SHADER_WRITE_BIT};

/* One barrier for all edges of a side: the union of what the host gave. */
static void put_edge(const snt_binding *b, VkCommandBuffer commands, const snt_vk_record_info *info, bool before) {
  const snt_exec *x = b->exec;
  snt_vk_sync host = before ? info->memory_before : info->memory_after;
  for (uint32_t i = 0; i < x->program->port_count; i++) {
    const door_slot_port *port = &b->slots[info->slot].ports[i];
    if (!port->set) continue;
    const snt_vk_sync *own = before ? &port->bind.before : &port->bind.after;
    host.stage |= own->stage, host.access |= own->access;
  }
  if (!host.stage) return;
  if (before) put_barrier(&door_of(x)->vk, commands, host, own_work);
  else put_barrier(&door_of(x)->vk, commands, own_writes, host);
}

static void put_dispatch(const snt_binding *b, const door_slot *slot, VkCommandBuffer commands, const door_launch *l) {
  const snt_exec *x = b->exec;
  const door_vk *vk = &door_of(x)->vk;
  const door_kernel *kernel = &x->door->kernels[door_plan(x)->steps.at[l->step].kernel];
  if (l->barrier) put_barrier(vk, commands, own_writes, own_work);
  vk->vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, kernel->pipeline);
  if (kernel->pushed)
    vk->vkCmdPushDescriptorSetKHR(commands, VK_PIPELINE_BIND_POINT_COMPUTE, kernel->layout, 0, kernel->descriptors,
                                  slot->writes + b->first_view[l->set]);
  else if (kernel->descriptors)
    vk->vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, kernel->layout, 0, 1, &slot->sets[l->set], 0, NULL);
  vk->vkCmdPushConstants(commands, kernel->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, l->push_bytes, l->push);
  vk->vkCmdDispatch(commands, l->grid[0], l->grid[1], l->grid[2]);
}

static void put_steps(const snt_binding *b, VkCommandBuffer commands, const snt_vk_record_info *info, uint32_t end) {
  const snt_exec *x = b->exec;
  const door_vk *vk = &door_of(x)->vk;
  const door_slot *slot = &b->slots[info->slot];
  const bool labels = info->flags & SNT_VK_RECORD_LABELS && vk->vkCmdBeginDebugUtilsLabelEXT;
  uint32_t query = info->first_query;
  if (info->timestamps) vk->vkCmdWriteTimestamp(commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, info->timestamps, query++);
  for (uint32_t i = info->first_step; i < end; i++) {
    const door_launch *l = &slot->launches[i];
    const uint32_t s = l->step;
    const VkDebugUtilsLabelEXT label = {.sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_LABEL_EXT, .pLabelName = door_plan(x)->steps.at[s].name};
    if (labels) vk->vkCmdBeginDebugUtilsLabelEXT(commands, &label);
    if (info->on_step) info->on_step(info->user, commands, s, 1);
    if (l->runs) put_dispatch(b, slot, commands, l);
    if (info->on_step) info->on_step(info->user, commands, s, 0);
    if (labels) vk->vkCmdEndDebugUtilsLabelEXT(commands);
    if (info->timestamps) vk->vkCmdWriteTimestamp(commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, info->timestamps, query++);
  }
}

/* Each value at the place that its descriptor points to. */
static void put_values(const snt_binding *b, const snt_vk_record_info *info) {
  const snt_exec *x = b->exec;
  for (uint32_t i = 0; info->values && i < x->program->port_count; i++) {
    const door_port *port = &x->door->ports[i];
    if (port->kind != SNT_VK_PORT_VALUE) continue;
    const door_place *place = &b->layout.places[port->buffer];
    char *to = (char *)info->values_mapped + info->slot * b->layout.needs[place->need].size + place->offset;
    memcpy(to, (const char *)info->values + port->value_offset, port->value_size);
  }
}

snt_result snt_vk_record(const snt_binding *b, VkCommandBuffer commands, const snt_vk_record_info *info, snt_diag *diag) {
  if (!b || !info) return ir_fail(diag, SNT_E_ARG, "record", 0, "a binding and what to record are needed");
  SNT_TRY(check_info(b, commands, info, diag));
  door_slot *slot = &b->slots[info->slot];
  uint32_t end = 0;
  SNT_TRY(prepare_slot(b, slot, info, diag));
  SNT_TRY(check_slice(b->exec, slot, info, &end, diag));
  const bool edges = b->exec->door->flags & SNT_VK_EDGE_BARRIERS;
  put_values(b, info);
  if (edges && !info->first_step) put_edge(b, commands, info, true);
  put_steps(b, commands, info, end);
  if (edges && end == slot->launch_count) put_edge(b, commands, info, false);
  if (door_of(b->exec)->flags & SNT_VK_ATTACH_VALIDATE) atomic_store(&slot->pending, true);
  return SNT_OK;
}
