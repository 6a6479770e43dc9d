/* What memory an exec needs, as chunks that the host allocates, and the one-time upload of its constants into them: copies only. */
#include "door/door.h"

/* ---- layout: each plan buffer's place, for symbols up to a maximum ---- */

typedef struct layouter {
  const snt_exec *x;
  const int64_t *symbols;
  door_layout *out;
  VkDeviceSize limit, align;
  snt_diag *diag;
} layouter;

static VkDeviceSize round_up(VkDeviceSize bytes, VkDeviceSize unit) { return (bytes + unit - 1) / unit * unit; }

static VkDeviceSize offset_align(const snt_exec *x) {
  const VkPhysicalDeviceLimits *l = &door_of(x)->limits.core;
  VkDeviceSize align = 16;
  if (l->minStorageBufferOffsetAlignment > align) align = l->minStorageBufferOffsetAlignment;
  if (l->minTexelBufferOffsetAlignment > align) align = l->minTexelBufferOffsetAlignment;
  return align;
}

static bool read_as_texels(const snt_exec *x) {
  for (uint32_t k = 0; k < door_plan(x)->kernels.count; k++)
    for (uint32_t i = 0; i < x->program->kernels[k].binding_count; i++) {
      const uint8_t kind = x->program->kernels[k].kinds[i];
      if (rt_slot_is_texel(kind)) return true;
    }
  return false;
}

static snt_vk_memory_need *add_need(layouter *l, uint32_t class) {
  static const VkBufferUsageFlags usages[] = {[SNT_MEM_CONSTANT] = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT,
                                              [SNT_MEM_STATE] = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT |
                                                                VK_BUFFER_USAGE_TRANSFER_SRC_BIT,
                                              [SNT_MEM_SCRATCH] = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT,
                                              [SNT_MEM_VALUES] = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT,
                                              [SNT_MEM_STAGING] = VK_BUFFER_USAGE_TRANSFER_SRC_BIT};
  door_layout *out = l->out;
  if (out->need_count == DOOR_MAX_NEEDS) return NULL;
  uint32_t chunk = 0;
  for (uint32_t i = 0; i < out->need_count; i++) chunk += out->needs[i].memory_class == class;
  const bool host = class == SNT_MEM_VALUES || class == SNT_MEM_STAGING;
  snt_vk_memory_need *n = &out->needs[out->need_count++];
  *n = (snt_vk_memory_need){.memory_class = class,
                            .chunk = chunk,
                            .per_slot = class == SNT_MEM_VALUES,
                            .alignment = l->align,
                            .usage = usages[class],
                            .required = host ? VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT : 0,
                            .preferred = host ? 0 : VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT};
  if (class != SNT_MEM_STAGING && l->x->door->addresses) n->usage |= VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT;
  if (!host && read_as_texels(l->x)) n->usage |= VK_BUFFER_USAGE_UNIFORM_TEXEL_BUFFER_BIT;
  return n;
}

static snt_result too_large(layouter *l, const char *name, VkDeviceSize bytes) {
  return ir_fail(l->diag, SNT_E_LIMIT, "memory", 0, "%s has %llu bytes; a range of this device holds %llu", name, (unsigned long long)bytes,
                 (unsigned long long)l->limit);
}

/* Room of `bytes` in the open chunk of a class, or in a new one. */
static snt_result take_room(layouter *l, uint32_t class, VkDeviceSize bytes, const char *name, door_place *out) {
  door_layout *to = l->out;
  snt_vk_memory_need *n = to->need_count ? &to->needs[to->need_count - 1] : NULL;
  bytes = round_up(bytes ? bytes : RT_EMPTY_BYTES, l->align);
  if (bytes > l->limit) return too_large(l, name, bytes);
  if (!n || n->memory_class != class || bytes > l->limit - n->size) n = add_need(l, class);
  if (!n) return ir_fail(l->diag, SNT_E_LIMIT, "memory", 0, "more than %d chunks of memory", DOOR_MAX_NEEDS);
  *out = (door_place){(uint32_t)(n - to->needs), n->size, bytes};
  n->size += bytes;
  return SNT_OK;
}

static snt_result place_class(layouter *l, plan_buffer_kind kind, uint32_t class) {
  const ir_plan *p = door_plan(l->x);
  for (uint32_t i = 0; i < p->buffers.count; i++) {
    const plan_buffer *b = &p->buffers.at[i];
    uint64_t bytes;
    if (b->kind != kind || b->first_step == UINT32_MAX) continue;
    if (!plan_eval(p, b->bytes, l->symbols, &bytes)) return too_large(l, b->name, 0);
    SNT_TRY(take_room(l, class, bytes, b->name, &l->out->places[i]));
  }
  return SNT_OK;
}

/* The plan lays scratch out as one range whose parts overlap where their lives do not meet. Here each part is placed as it is for the
   maximal symbols; what begins at one offset stays together, so a range that is too large for the device becomes several. */
static snt_result place_scratch(layouter *l) {
  const ir_plan *p = door_plan(l->x);
  for (uint32_t i = 0; i < p->buffers.count; i++) {
    const plan_buffer *b = &p->buffers.at[i];
    uint64_t offset, bytes, other, largest = 0;
    if (b->kind != PLAN_SCRATCH || b->first_step == UINT32_MAX || l->out->places[i].need != UINT32_MAX) continue;
    if (!plan_eval(p, b->offset, l->symbols, &offset)) return too_large(l, b->name, 0);
    for (uint32_t k = i; k < p->buffers.count; k++) { /* those that share the place */
      const plan_buffer *same = &p->buffers.at[k];
      if (same->kind != PLAN_SCRATCH || same->first_step == UINT32_MAX || l->out->places[k].need != UINT32_MAX) continue;
      if (!plan_eval(p, same->offset, l->symbols, &other) || !plan_eval(p, same->bytes, l->symbols, &bytes))
        return too_large(l, same->name, 0);
      if (other == offset && bytes > largest) largest = bytes;
    }
    door_place place;
    SNT_TRY(take_room(l, SNT_MEM_SCRATCH, largest, b->name, &place));
    for (uint32_t k = i; k < p->buffers.count; k++) {
      const plan_buffer *same = &p->buffers.at[k];
      if (same->kind != PLAN_SCRATCH || same->first_step == UINT32_MAX || l->out->places[k].need != UINT32_MAX) continue;
      if (plan_eval(p, same->offset, l->symbols, &other) && other == offset) l->out->places[k] = place;
    }
  }
  return SNT_OK;
}

snt_result door_make_layout(const snt_exec *x, const int64_t *max_symbols, door_layout *out, snt_diag *diag) {
  const door_limits *limits = &door_of(x)->limits;
  const uint32_t values = x->door->values_stride;
  layouter l = {x, max_symbols, out, limits->core.maxStorageBufferRange, offset_align(x), diag};
  if (limits->max_allocation < l.limit) l.limit = limits->max_allocation;
  l.limit = l.limit / l.align * l.align;
  out->need_count = 0;
  for (uint32_t i = 0; i < door_plan(x)->buffers.count; i++) out->places[i] = (door_place){UINT32_MAX, 0, 0};
  SNT_TRY(place_class(&l, PLAN_CONSTANT, SNT_MEM_CONSTANT));
  SNT_TRY(place_class(&l, PLAN_STATE, SNT_MEM_STATE));
  SNT_TRY(place_scratch(&l));
  if (!values) return SNT_OK;
  door_place place;
  SNT_TRY(take_room(&l, SNT_MEM_VALUES, values, "values", &place));
  for (uint32_t i = 0; i < x->program->port_count; i++) {
    const door_port *port = &x->door->ports[i];
    if (port->kind == SNT_VK_PORT_VALUE) out->places[port->buffer] = (door_place){place.need, port->value_at, 16};
  }
  return SNT_OK;
}

bool door_port_bytes(const snt_exec *x, uint32_t port, const int64_t *symbols, VkDeviceSize *out) {
  const ir_plan *p = door_plan(x);
  uint64_t bytes;
  if (!plan_logical_bytes(p, &p->buffers.at[x->door->ports[port].buffer], symbols, &bytes)) return false;
  *out = round_up(bytes ? bytes : RT_EMPTY_BYTES, 16);
  return true;
}

snt_result snt_vk_port_bytes(const snt_exec *x, uint32_t port, const int64_t *symbols, uint32_t count, VkDeviceSize *out) {
  if (!x || !x->door || !out || port >= x->program->port_count) return SNT_E_ARG;
  SNT_TRY(api_check_symbols(x->program, symbols, count, "port", NULL));
  return door_port_bytes(x, port, symbols, out) ? SNT_OK : SNT_E_LIMIT;
}

/* With the checks of the arguments of those who ask for it. */
static snt_result take_layout(const snt_exec *x, const int64_t *max_symbols, uint32_t symbol_count, const uint32_t *count, bool short_rows,
                              door_layout **out) {
  *out = NULL;
  if (!x || !x->door || !count || short_rows) return SNT_E_ARG;
  SNT_TRY(api_check_symbols(x->program, max_symbols, symbol_count, "memory", NULL));
  door_layout *layout = *out = api_take(x->device->context, sizeof *layout);
  if (layout) layout->places = api_take(x->device->context, door_plan(x)->buffers.count * sizeof(door_place));
  return layout && layout->places ? door_make_layout(x, max_symbols, layout, NULL) : SNT_E_HOST_MEM;
}

static void drop_layout(const snt_exec *x, door_layout *layout) {
  if (!layout) return;
  api_give(x->device->context, layout->places, door_plan(x)->buffers.count * sizeof(door_place));
  api_give(x->device->context, layout, sizeof *layout);
}

snt_result snt_vk_exec_memory(const snt_exec *x, const int64_t *max_symbols, uint32_t symbol_count, uint32_t *count, uint32_t stride,
                              snt_vk_memory_need *out) {
  door_layout *layout;
  snt_result r = take_layout(x, max_symbols, symbol_count, count, api_is_short(stride, sizeof *out), &layout);
  if (r == SNT_OK) {
    const uint32_t room = *count;
    layouter l = {.x = x, .out = layout, .align = offset_align(x)};
    bool constants = false;
    for (uint32_t i = 0; i < layout->need_count; i++) constants |= layout->needs[i].memory_class == SNT_MEM_CONSTANT;
    if (constants) {
      snt_vk_memory_need *n = add_need(&l, SNT_MEM_STAGING);
      if (n) n->size = DOOR_STAGING_BYTES;
    }
    *count = layout->need_count;
    for (uint32_t i = 0; out && i < layout->need_count && i < room; i++) {
      snt_vk_memory_need *to = (snt_vk_memory_need *)(uintptr_t)door_at(out, stride, sizeof *out, i);
      const snt_out_head head = to->head;
      *to = layout->needs[i];
      to->head = head;
    }
    if (layout->need_count && (!out || room < layout->need_count)) r = SNT_INCOMPLETE;
  }
  drop_layout(x, layout);
  return r;
}

/* ---- states: what keeps its contents from run to run, by what it is ---- */

static uint64_t state_key(const ir_plan *p, const plan_buffer *b, const int64_t *symbols) {
  uint64_t shape[1 + SNT_MAX_RANK] = {b->dtype};
  for (uint32_t i = 0; i < b->rank; i++) (void)plan_eval(p, b->dims[i], symbols, &shape[1 + i]);
  return ir_hash64(ir_hash64(0, b->name, strlen(b->name)), shape, sizeof shape);
}

snt_result snt_vk_exec_states(const snt_exec *x, const int64_t *max_symbols, uint32_t symbol_count, uint32_t *count, uint32_t stride,
                              snt_vk_state *out) {
  uint32_t found = 0;
  door_layout *layout;
  snt_result r = take_layout(x, max_symbols, symbol_count, count, api_is_short(stride, sizeof *out), &layout);
  for (uint32_t i = 0; r == SNT_OK && i < x->program->port_count; i++) {
    const door_place *place = &layout->places[x->door->ports[i].buffer];
    if (x->door->ports[i].kind != SNT_VK_PORT_STATE || place->need == UINT32_MAX || found++ >= *count || !out) continue;
    const plan_buffer *b = &door_plan(x)->buffers.at[x->door->ports[i].buffer];
    snt_vk_state *to = (snt_vk_state *)(uintptr_t)door_at(out, stride, sizeof *out, found - 1);
    to->name = b->name, to->port = i, to->memory = place->need, to->offset = place->offset, to->size = place->size;
    to->key = state_key(door_plan(x), b, max_symbols);
  }
  drop_layout(x, layout);
  if (r != SNT_OK) return r;
  const uint32_t room = *count;
  *count = found;
  return found && (!out || room < found) ? SNT_INCOMPLETE : SNT_OK;
}

/* ---- upload: the constants one after the other are a stream of bytes, in which the cursor stands ---- */

typedef struct uploader {
  const snt_exec *x;
  VkCommandBuffer commands;
  const snt_vk_init_info *info;
  uint64_t at, staged; /* of the stream; of the staging range */
  uint32_t need;       /* of the chunk at hand */
  VkDeviceSize chunk_bytes;
} uploader;

static const snt_vk_range *constant_range(const snt_vk_init_info *info, uint32_t i) {
  return door_at(info->constant, info->constant_stride, sizeof(snt_vk_range), i);
}

/* Part of one constant; false when staging is full. vkCmdCopyBuffer takes any size and offset. */
static bool upload_one(uploader *u, const void *data, uint64_t bytes, uint32_t chunk, VkDeviceSize offset) {
  const snt_vk_init_info *info = u->info;
  const uint64_t begin = u->at, done = info->cursor > begin ? info->cursor - begin : 0;
  if (done >= bytes) {
    u->at += bytes;
    return true;
  }
  if (info->constant_mapped) {
    memcpy((char *)info->constant_mapped[chunk] + offset, data, bytes);
    u->at += bytes;
    return true;
  }
  const uint64_t room = info->staging.size - u->staged, left = bytes - done, part = left < room ? left : room;
  if (part) {
    const VkBufferCopy region = {info->staging.offset + u->staged, constant_range(info, chunk)->offset + offset + done, part};
    memcpy((char *)info->staging_mapped + u->staged, (const char *)data + done, part);
    door_of(u->x)->vk.vkCmdCopyBuffer(u->commands, info->staging.buffer, constant_range(info, chunk)->buffer, 1, &region);
  }
  u->staged += part;
  u->at = begin + done + part;
  return done + part == bytes;
}

/* The same walk as place_class makes for constants: a chunk is full when the next constant does not fit. */
static snt_result walk_constants(uploader *u, bool only_check, bool *finished, snt_diag *diag) {
  const snt_exec *x = u->x;
  const ir_plan *p = door_plan(x);
  const VkDeviceSize align = offset_align(x);
  const door_limits *limits = &door_of(x)->limits;
  VkDeviceSize limit = limits->core.maxStorageBufferRange < limits->max_allocation ? limits->core.maxStorageBufferRange
                                                                                   : limits->max_allocation;
  VkDeviceSize used = 0;
  uint32_t chunk = 0;
  bool any = false;
  limit = limit / align * align;
  *finished = true;
  for (uint32_t i = 0; i < p->buffers.count; i++) {
    const plan_buffer *b = &p->buffers.at[i];
    uint64_t bytes, logical;
    if (b->kind != PLAN_CONSTANT || b->first_step == UINT32_MAX) continue;
    if (!plan_eval(p, b->bytes, NULL, &bytes) || !plan_logical_bytes(p, b, NULL, &logical) || (!b->data && !b->making))
      return ir_fail(diag, SNT_E_INTERNAL, "init", 0, "%s has no size or no data", b->name);
    const VkDeviceSize room = round_up(bytes ? bytes : RT_EMPTY_BYTES, align);
    if (any && room > limit - used) chunk++, used = 0;
    any = true;
    if (chunk >= u->info->constant_count)
      return ir_fail(diag, SNT_E_ARG, "init", 0, "%u CONSTANT ranges are too few", u->info->constant_count);
    const snt_vk_range *to = constant_range(u->info, chunk);
    const bool somewhere = u->info->constant_mapped ? u->info->constant_mapped[chunk] != NULL : to->buffer != VK_NULL_HANDLE;
    if (only_check && (used + room > to->size || !somewhere))
      return ir_fail(diag, SNT_E_ARG, "init", 0, "CONSTANT range %u is too small, or nowhere", chunk);
    const void *data = only_check ? NULL : api_constant(x->program, i);
    if (!only_check && !data) return ir_no_memory(diag, "init");
    if (!only_check && !upload_one(u, data, logical, chunk, used)) {
      *finished = false;
      return SNT_OK;
    }
    used += room;
  }
  return SNT_OK;
}

static snt_result check_init(const snt_exec *x, VkCommandBuffer commands, const snt_vk_init_info *info, snt_diag *diag) {
  const bool direct = info->constant_mapped != NULL;
  SNT_TRY(api_check_flags(info->flags, SNT_VK_INIT_BARRIER, "init", diag));
  if (info->cursor == SNT_VK_INIT_DONE) return ir_fail(diag, SNT_E_ORDER, "init", 0, "it is done already");
  if ((info->constant_count && !info->constant) || api_is_short(info->constant_stride, sizeof *info->constant))
    return ir_fail(diag, SNT_E_ARG, "init", 0, "no CONSTANT ranges in whole rows");
  if ((info->state_count && !info->state) || api_is_short(info->state_stride, sizeof *info->state))
    return ir_fail(diag, SNT_E_ARG, "init", 0, "no STATE ranges in whole rows");
  if (!direct && info->constant_count && (!info->staging.buffer || !info->staging_mapped || info->staging.size < 16))
    return ir_fail(diag, SNT_E_ARG, "init", 0, "a mapped staging range of 16 bytes or more is needed, or mapped constants");
  const bool writes = (info->constant_count && !direct) || info->state_count || info->flags & SNT_VK_INIT_BARRIER;
  if (writes && !commands) return ir_fail(diag, SNT_E_ARG, "init", 0, "a command buffer is needed");
  for (uint32_t i = 0; i < info->state_count; i++) {
    const snt_vk_range *r = door_at(info->state, info->state_stride, sizeof *r, i);
    if (!r->buffer || r->offset % 4 || r->size % 4) return ir_fail(diag, SNT_E_ARG, "init", 0, "STATE range %u is not in whole words", i);
  }
  return door_check_lost(x, "init", diag);
}

snt_result snt_vk_record_init(const snt_exec *x, VkCommandBuffer commands, const snt_vk_init_info *info, uint64_t *next, snt_diag *diag) {
  if (!x || !x->door || !info || !next)
    return ir_fail(diag, SNT_E_ARG, "init", 0, "an exec of an attached device, ranges and a cursor are needed");
  SNT_TRY(api_check_whole(&info->head, SNT_TYPE_vk_init_info, sizeof *info, diag));
  SNT_TRY(check_init(x, commands, info, diag));
  const door_vk *vk = &door_of(x)->vk;
  uploader u = {.x = x, .commands = commands, .info = info};
  bool finished;
  SNT_TRY(walk_constants(&u, true, &finished, diag));
  if (!info->cursor)
    for (uint32_t i = 0; i < info->state_count; i++) {
      const snt_vk_range *r = door_at(info->state, info->state_stride, sizeof *r, i);
      vk->vkCmdFillBuffer(commands, r->buffer, r->offset, r->size, 0);
    }
  SNT_TRY(walk_constants(&u, false, &finished, diag));
  *next = finished ? SNT_VK_INIT_DONE : u.at;
  if (!finished || !(info->flags & SNT_VK_INIT_BARRIER)) return SNT_OK;
  const VkMemoryBarrier barrier = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                                   .srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT,
                                   .dstAccessMask = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT};
  vk->vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, 0, 1, &barrier, 0, NULL, 0,
                           NULL);
  return SNT_OK;
}
