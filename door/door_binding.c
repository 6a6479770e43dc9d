/* Bindings: descriptor sets for every set of resources that a step has, and slot, made and pointed at our own memory once; a slot's ports
   are written when the host sets them, without taking memory. In: ranges, views. Invariant: a slot is one thread's at a time; nothing else
   changes after creation. */
#include "door/door.h"

const char *door_port_name(const snt_exec *x, uint32_t port) {
  snt_port plain = {{0}, "", 0, {0, 0, {0}}};
  (void)snt_program_port(x->program, port, &plain);
  return plain.name;
}

/* ---- writing descriptors: a few at a time, from the stack; into the slot where they are pushed; addresses in their place ---- */

enum { WRITES = 16 };
typedef struct writer {
  const snt_binding *b;
  uint32_t count;
  VkWriteDescriptorSet writes[WRITES];
  door_resource resources[WRITES];
} writer;

static void flush(writer *w) {
  const door_device *d = door_of(w->b->exec);
  if (w->count) d->vk.vkUpdateDescriptorSets(d->handle, w->count, w->writes, 0, NULL);
  w->count = 0;
}

static uint8_t slot_kind(const snt_exec *x, const plan_step *s, uint32_t i) { return x->program->kernels[s->kernel].kinds[i]; }

/* Whole words, and no more than one descriptor holds; what a kernel reaches lies within the port's bytes. */
static VkDeviceSize descriptor_range(const snt_exec *x, VkDeviceSize size) {
  const VkDeviceSize most = door_of(x)->limits.core.maxStorageBufferRange;
  return size < most ? size : most;
}

static door_resource resource_of(uint8_t kind, const VkDescriptorBufferInfo *range, VkImageView image, VkImageLayout layout,
                                 VkBufferView view) {
  if (rt_slot_is_image(kind)) return (door_resource){.image = {.imageView = image, .imageLayout = layout}};
  return rt_slot_is_texel(kind) ? (door_resource){.view = view} : (door_resource){.buffer = *range};
}

/* Where a set's slot stands among the descriptors that are pushed for it. */
static uint32_t pushed_at(const snt_binding *b, uint32_t set, uint32_t slot) {
  uint32_t at = b->first_view[set];
  for (uint32_t i = 0; i < slot; i++) at += !door_address_at(b->exec, door_step_of(b->exec, set)->kernel, i);
  return at;
}

static void put_write(writer *w, uint32_t slot, uint32_t set, uint32_t i, door_resource what) {
  const snt_exec *x = w->b->exec;
  const plan_step *s = door_step_of(x, set);
  const door_slot *to = &w->b->slots[slot];
  const bool pushed = x->door->kernels[s->kernel].pushed;
  if (!pushed && w->count == WRITES) flush(w);
  const uint32_t at = pushed ? pushed_at(w->b, set, i) : w->count++;
  door_resource *resource = pushed ? &to->resources[at] : &w->resources[at];
  *resource = what;
  *(pushed ? &to->writes[at] : &w->writes[at]) = (VkWriteDescriptorSet){.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                                                                        .dstSet = to->sets[set],
                                                                        .dstBinding = i,
                                                                        .descriptorCount = 1,
                                                                        .descriptorType = door_descriptor_type(slot_kind(x, s, i)),
                                                                        .pBufferInfo = &resource->buffer,
                                                                        .pImageInfo = &resource->image,
                                                                        .pTexelBufferView = &resource->view};
}

static VkDeviceAddress address_of(const snt_exec *x, VkBuffer buffer, VkDeviceSize offset) {
  const door_device *d = door_of(x);
  const VkBufferDeviceAddressInfo info = {.sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO, .buffer = buffer};
  return d->vk.vkGetBufferDeviceAddress(d->handle, &info) + offset;
}

static void write_own(const snt_binding *b, uint32_t slot) {
  const snt_exec *x = b->exec;
  writer w = {.b = b};
  for (uint32_t s = 0; s < x->door->set_count; s++) {
    const plan_step *step = door_step_of(x, s);
    for (uint32_t i = 0; i < step->binding_count; i++) {
      const door_place *place = &b->layout.places[door_bound_buffer(x, s, i)];
      if (place->need == UINT32_MAX) continue;
      const snt_vk_memory_need *need = &b->layout.needs[place->need];
      const uint32_t view = b->first_view[s] + i;
      const VkDescriptorBufferInfo range = {.buffer = b->memory[place->need].buffer,
                                            .offset = b->memory[place->need].offset + (need->per_slot ? slot * need->size : 0) +
                                                      place->offset,
                                            .range = place->size};
      if (door_address_at(x, step->kernel, i)) b->slots[slot].addresses[view] = address_of(x, range.buffer, range.offset);
      else put_write(&w, slot, s, i, resource_of(slot_kind(x, step, i), &range, VK_NULL_HANDLE, VK_IMAGE_LAYOUT_UNDEFINED, b->views[view]));
    }
  }
  flush(&w);
}

static void write_port(writer *w, const snt_binding *b, uint32_t slot, const snt_vk_bind *bind) {
  const snt_exec *x = b->exec;
  const VkDescriptorBufferInfo range = {bind->range.buffer, bind->range.offset, descriptor_range(x, bind->range.size)};
  const bool wanted = x->door->addresses && x->door->ports[bind->port].kind == SNT_VK_PORT_BUFFER;
  const VkDeviceAddress address = wanted ? address_of(x, bind->range.buffer, bind->range.offset) : 0;
  for (uint32_t s = 0; s < x->door->set_count; s++) {
    const plan_step *step = door_step_of(x, s);
    for (uint32_t i = 0; i < step->binding_count; i++) {
      if (door_bound_buffer(x, s, i) != x->door->ports[bind->port].buffer) continue;
      if (door_address_at(x, step->kernel, i)) b->slots[slot].addresses[b->first_view[s] + i] = address;
      else put_write(w, slot, s, i, resource_of(slot_kind(x, step, i), &range, bind->view, bind->layout, bind->buffer_view));
    }
  }
}

/* ---- making ---- */

/* The arrays of a binding: where each pointer is, and its bytes. */
enum { ROOMS = 13 };
typedef struct room {
  void *pointer;
  size_t bytes;
} room;

static void list_rooms(snt_binding *b, room out[ROOMS]) {
  const snt_exec *x = b->exec;
  const size_t sets = x->door->set_count, ports = x->program->port_count, symbols = x->program->pool.symbols.count, slots = b->slot_count;
  const size_t pushes = x->door->pushes ? slots * b->view_count : 0, addresses = x->door->addresses ? slots * b->view_count : 0;
  const room rooms[ROOMS] = {{&b->layout.places, door_plan(x)->buffers.count * sizeof *b->layout.places},
                             {&b->memory, DOOR_MAX_NEEDS * sizeof *b->memory},
                             {&b->max_symbols, symbols * sizeof *b->max_symbols},
                             {&b->views, b->view_count * sizeof *b->views},
                             {&b->first_view, sets * sizeof *b->first_view},
                             {&b->slots, slots * sizeof *b->slots},
                             {&b->sets, slots * sets * sizeof *b->sets},
                             {&b->ports, slots * ports * sizeof *b->ports},
                             {&b->launches, slots * b->launch_room * sizeof *b->launches},
                             {&b->symbols, slots * (symbols + b->variable_count) * sizeof *b->symbols},
                             {&b->writes, pushes * sizeof *b->writes},
                             {&b->resources, pushes * sizeof *b->resources},
                             {&b->addresses, addresses * sizeof *b->addresses}};
  memcpy(out, rooms, sizeof rooms);
}

static snt_result take_rooms(snt_binding *b, snt_diag *diag) {
  const snt_exec *x = b->exec;
  const size_t sets = x->door->set_count, ports = x->program->port_count, symbols = x->program->pool.symbols.count;
  room rooms[ROOMS];
  for (uint32_t s = 0; s < sets; s++) b->view_count += door_step_of(x, s)->binding_count;
  b->variable_count = plan_variable_count(door_plan(x));
  list_rooms(b, rooms);
  for (uint32_t i = 0; i < ROOMS; i++) {
    void *taken = api_take(x->device->context, rooms[i].bytes);
    memcpy(rooms[i].pointer, &taken, sizeof taken);
    if (!taken) return ir_no_memory(diag, "binding");
  }
  for (uint32_t s = 1; s < sets; s++) b->first_view[s] = b->first_view[s - 1] + door_step_of(x, s - 1)->binding_count;
  for (uint32_t i = 0; i < b->slot_count; i++) {
    door_slot *s = &b->slots[i];
    atomic_init(&s->pending, false);
    s->sets = b->sets + i * sets;
    s->ports = b->ports + i * ports;
    s->launches = b->launches + (size_t)i * b->launch_room;
    s->symbols = b->symbols + i * (symbols + b->variable_count);
    s->variables = s->symbols + symbols;
    s->writes = b->writes + (x->door->pushes ? (size_t)i * b->view_count : 0);
    s->resources = b->resources + (x->door->pushes ? (size_t)i * b->view_count : 0);
    s->addresses = x->door->addresses ? b->addresses + (size_t)i * b->view_count : NULL;
  }
  return SNT_OK;
}

static void give_rooms(snt_binding *b) {
  room rooms[ROOMS];
  list_rooms(b, rooms);
  for (uint32_t i = 0; i < ROOMS; i++) {
    void *taken;
    memcpy(&taken, rooms[i].pointer, sizeof taken);
    api_give(b->exec->device->context, taken, rooms[i].bytes);
  }
}

static bool overlap(const snt_vk_range *a, VkDeviceSize a_bytes, const snt_vk_range *b, VkDeviceSize b_bytes) {
  return a->buffer == b->buffer && a->offset < b->offset + b_bytes && b->offset < a->offset + a_bytes;
}

static VkDeviceSize need_bytes(const snt_binding *b, uint32_t i) {
  return b->layout.needs[i].size * (b->layout.needs[i].per_slot ? b->slot_count : 1);
}

static snt_result take_memory(snt_binding *b, const snt_vk_binding_info *info, snt_diag *diag) {
  static const char *const classes[] = {"CONSTANT", "STATE", "SCRATCH", "VALUES", "STAGING"};
  const bool deep = door_of(b->exec)->flags & SNT_VK_ATTACH_VALIDATE;
  if (info->memory_count < b->layout.need_count || (info->memory_count && !info->memory) ||
      api_is_short(info->memory_stride, sizeof(snt_vk_range)))
    return ir_fail(diag, SNT_E_ARG, "binding", 0, "%u memory ranges are given; %u are needed, in whole rows", info->memory_count,
                   b->layout.need_count);
  for (uint32_t i = 0; i < b->layout.need_count; i++) {
    const snt_vk_memory_need *n = &b->layout.needs[i];
    const snt_vk_range *r = door_at(info->memory, info->memory_stride, sizeof *r, i);
    b->memory[i] = *r;
    if (!r->buffer || r->size < need_bytes(b, i) || r->offset % n->alignment)
      return ir_fail(diag, SNT_E_ARG, "binding", 0,
                     "%s %u: needs a buffer with %llu bytes at a multiple of %llu; %llu bytes at %llu are given", classes[n->memory_class],
                     n->chunk, (unsigned long long)need_bytes(b, i), (unsigned long long)n->alignment, (unsigned long long)r->size,
                     (unsigned long long)r->offset);
    for (uint32_t k = 0; deep && k < i; k++)
      if (overlap(r, need_bytes(b, i), &b->memory[k], need_bytes(b, k)))
        return ir_fail(diag, SNT_E_ARG, "binding", 0, "%s %u overlaps %s %u", classes[n->memory_class], n->chunk,
                       classes[b->layout.needs[k].memory_class], b->layout.needs[k].chunk);
  }
  return SNT_OK;
}

static snt_result make_views(snt_binding *b, snt_diag *diag) {
  const snt_exec *x = b->exec;
  const door_device *d = door_of(x);
  for (uint32_t s = 0; s < x->door->set_count; s++)
    for (uint32_t i = 0; i < door_step_of(x, s)->binding_count; i++) {
      const door_place *place = &b->layout.places[door_bound_buffer(x, s, i)];
      const uint8_t kind = slot_kind(x, door_step_of(x, s), i);
      if (place->need == UINT32_MAX || !rt_slot_is_texel(kind)) continue;
      const VkBufferViewCreateInfo info = {.sType = VK_STRUCTURE_TYPE_BUFFER_VIEW_CREATE_INFO,
                                           .buffer = b->memory[place->need].buffer,
                                           .format = door_texel_format(kind),
                                           .offset = b->memory[place->need].offset + place->offset,
                                           .range = place->size};
      const VkResult code = d->vk.vkCreateBufferView(d->handle, &info, d->allocation, &b->views[b->first_view[s] + i]);
      if (code != VK_SUCCESS) return door_fail(x, code, "binding", "vkCreateBufferView", diag);
    }
  return SNT_OK;
}

static snt_result make_sets(snt_binding *b, VkDescriptorPool pool, snt_diag *diag) {
  const snt_exec *x = b->exec;
  const door_device *d = door_of(x);
  const uint32_t all = x->door->set_count, sets = door_count_sets(x);
  if (!pool && sets) {
    VkDescriptorPoolSize sizes[DOOR_DESCRIPTOR_TYPES];
    const uint32_t count = door_count_descriptors(x, sizes, b->slot_count);
    const VkDescriptorPoolCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
                                             .maxSets = sets * b->slot_count,
                                             .poolSizeCount = count,
                                             .pPoolSizes = sizes};
    const VkResult code = d->vk.vkCreateDescriptorPool(d->handle, &info, d->allocation, &b->pool);
    if (code != VK_SUCCESS) return door_fail(x, code, "binding", "vkCreateDescriptorPool", diag);
    pool = b->pool;
  }
  for (uint32_t i = 0; i < b->slot_count * all; i++) {
    const door_kernel *k = &x->door->kernels[door_step_of(x, i % all)->kernel];
    if (k->pushed || !k->descriptors) continue;
    const VkDescriptorSetAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
                                              .descriptorPool = pool,
                                              .descriptorSetCount = 1,
                                              .pSetLayouts = &k->set_layout};
    const VkResult code = d->vk.vkAllocateDescriptorSets(d->handle, &info, &b->sets[i]);
    if (code != VK_SUCCESS) return door_fail(x, code, "binding", "vkAllocateDescriptorSets", diag);
    door_name_object(x, VK_OBJECT_TYPE_DESCRIPTOR_SET, (uint64_t)b->sets[i], door_step_of(x, i % all)->name, " set");
  }
  return SNT_OK;
}

static snt_result create_into(snt_binding *b, const snt_vk_binding_info *info, snt_diag *diag) {
  const snt_exec *x = b->exec;
  SNT_TRY(door_count_launches(x, info->max_symbols, "binding", &b->launch_room, diag));
  SNT_TRY(take_rooms(b, diag));
  for (uint32_t i = 0; i < info->symbol_count; i++) b->max_symbols[i] = info->max_symbols[i];
  SNT_TRY(door_make_layout(x, b->max_symbols, &b->layout, diag));
  SNT_TRY(take_memory(b, info, diag));
  SNT_TRY(make_views(b, diag));
  SNT_TRY(make_sets(b, info->pool, diag));
  for (uint32_t i = 0; i < b->slot_count; i++) write_own(b, i);
  return SNT_OK;
}

snt_result snt_vk_binding_create(const snt_exec *given, const snt_vk_binding_info *info, snt_binding **out, snt_diag *diag) {
  snt_exec *x = (snt_exec *)(uintptr_t)given;
  if (!x || !x->door || !info || !out) return ir_fail(diag, SNT_E_ARG, "binding", 0, "an exec of an attached device and ranges are needed");
  SNT_TRY(api_check_whole(&info->head, SNT_TYPE_vk_binding_info, sizeof *info, diag));
  if (!info->slot_count || info->slot_count > 256) return ir_fail(diag, SNT_E_ARG, "binding", 0, "%u slots", info->slot_count);
  SNT_TRY(door_check_lost(x, "binding", diag));
  SNT_TRY(api_check_symbols(x->program, info->max_symbols, info->symbol_count, "binding", diag));
  snt_binding *b = api_take(x->device->context, sizeof *b);
  if (!b) return ir_no_memory(diag, "binding");
  b->exec = x;
  b->slot_count = info->slot_count;
  api_exec_hold(x);
  const snt_result r = create_into(b, info, diag);
  if (r != SNT_OK) snt_binding_destroy(b);
  else *out = b;
  return r;
}

void snt_binding_destroy(snt_binding *b) {
  if (!b) return;
  snt_exec *x = b->exec;
  snt_context *c = x->device->context;
  const door_device *d = door_of(x);
  for (uint32_t i = 0; b->views && i < b->view_count; i++)
    if (b->views[i]) d->vk.vkDestroyBufferView(d->handle, b->views[i], d->allocation);
  if (b->pool) d->vk.vkDestroyDescriptorPool(d->handle, b->pool, d->allocation);
  give_rooms(b);
  api_give(c, b, sizeof *b);
  snt_exec_destroy(x);
}

/* ---- setting ---- */

static snt_result check_image(const snt_exec *x, const snt_vk_bind *bind, snt_diag *diag) {
  const bool storage = x->door->ports[bind->port].kind == SNT_VK_PORT_STORAGE;
  if (!bind->view) return ir_fail(diag, SNT_E_ARG, "bind", 0, "port %s is an image: a view is needed", door_port_name(x, bind->port));
  const bool legal = bind->layout == VK_IMAGE_LAYOUT_GENERAL ||
                     (!storage && (bind->layout == VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL ||
                                   bind->layout == VK_IMAGE_LAYOUT_DEPTH_STENCIL_READ_ONLY_OPTIMAL));
  if (!legal)
    return ir_fail(diag, SNT_E_ARG, "bind", 0, "port %s: layout %d is not one it can be read or written in", door_port_name(x, bind->port),
                   (int)bind->layout);
  return SNT_OK;
}

static snt_result check_buffer(const snt_binding *b, const snt_vk_bind *bind, snt_diag *diag) {
  const snt_exec *x = b->exec;
  const door_port *port = &x->door->ports[bind->port];
  const VkDeviceSize align = door_of(x)->limits.core.minStorageBufferOffsetAlignment;
  if (!bind->range.buffer || !bind->range.size)
    return ir_fail(diag, SNT_E_ARG, "bind", 0, "port %s is a buffer: a range is needed", door_port_name(x, bind->port));
  if ((align && bind->range.offset % align) || bind->range.size % 4)
    return ir_fail(diag, SNT_E_ARG, "bind", 0, "port %s: %llu bytes at %llu; whole words at a multiple of %llu are needed",
                   door_port_name(x, bind->port), (unsigned long long)bind->range.size, (unsigned long long)bind->range.offset,
                   (unsigned long long)align);
  if (x->door->addresses && bind->range.offset % 16)
    return ir_fail(diag, SNT_E_ARG, "bind", 0, "port %s: offset %llu; its address is a multiple of 16 bytes", door_port_name(x, bind->port),
                   (unsigned long long)bind->range.offset);
  if (port->texels != VK_FORMAT_UNDEFINED && !bind->buffer_view)
    return ir_fail(diag, SNT_E_ARG, "bind", 0, "port %s is read through texels: a buffer view is needed", door_port_name(x, bind->port));
  if (!(door_of(x)->flags & SNT_VK_ATTACH_VALIDATE)) return SNT_OK;
  for (uint32_t i = 0; i < b->layout.need_count; i++)
    if (overlap(&bind->range, bind->range.size, &b->memory[i], need_bytes(b, i)))
      return ir_fail(diag, SNT_E_ARG, "bind", 0, "port %s overlaps memory range %u", door_port_name(x, bind->port), i);
  return SNT_OK;
}

static snt_result check_bind(const snt_binding *b, const snt_vk_bind *bind, snt_diag *diag) {
  const snt_exec *x = b->exec;
  if (bind->port >= x->program->port_count || bind->reserved)
    return ir_fail(diag, SNT_E_ARG, "bind", 0, "no port %u, or reserved is not 0", bind->port);
  if ((!bind->before.stage && bind->before.access) || (!bind->after.stage && bind->after.access))
    return ir_fail(diag, SNT_E_ARG, "bind", 0, "port %s: an access without a stage", door_port_name(x, bind->port));
  switch (x->door->ports[bind->port].kind) {
  case SNT_VK_PORT_BUFFER: return check_buffer(b, bind, diag);
  case SNT_VK_PORT_SAMPLED:
  case SNT_VK_PORT_STORAGE: return check_image(x, bind, diag);
  default: return ir_fail(diag, SNT_E_ARG, "bind", 0, "port %s is a value or a state", door_port_name(x, bind->port));
  }
}

snt_result snt_vk_binding_set(snt_binding *b, uint32_t slot, uint32_t count, uint32_t stride, const snt_vk_bind *binds, snt_diag *diag) {
  if (!b || (count && !binds) || api_is_short(stride, sizeof *binds))
    return ir_fail(diag, SNT_E_ARG, "bind", 0, "a binding and resources are needed, in whole rows");
  if (slot >= b->slot_count) return ir_fail(diag, SNT_E_ARG, "bind", 0, "slot %u of %u", slot, b->slot_count);
  SNT_TRY(door_check_lost(b->exec, "bind", diag));
  door_slot *s = &b->slots[slot];
  /* what is pushed is the command buffer's own: the slot is free again */
  if (door_of(b->exec)->flags & SNT_VK_ATTACH_VALIDATE && atomic_load(&s->pending) && door_count_sets(b->exec))
    return ir_fail(diag, SNT_E_ORDER, "bind", 0, "slot %u is pending: snt_vk_binding_retire it when its fence has passed", slot);
  for (uint32_t i = 0; i < count; i++) SNT_TRY(check_bind(b, door_at(binds, stride, sizeof *binds, i), diag));
  writer w = {.b = b};
  for (uint32_t i = 0; i < count; i++) {
    const snt_vk_bind *bind = door_at(binds, stride, sizeof *binds, i);
    write_port(&w, b, slot, bind);
    s->ports[bind->port] = (door_slot_port){*bind, true};
  }
  flush(&w);
  s->known = false;
  return SNT_OK;
}

snt_result snt_vk_binding_retire(snt_binding *b, uint32_t slot) {
  if (!b || slot >= b->slot_count) return SNT_E_ARG;
  atomic_store(&b->slots[slot].pending, false);
  return SNT_OK;
}
