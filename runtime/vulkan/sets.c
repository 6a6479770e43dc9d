/* Descriptor sets of a stream, by what they bind: a run like the one before finds all of its sets and writes none. Keys hold serial
   numbers, not handles, so that a destroyed buffer's set is never found again. Open addressing; when it is crowded the stream starts over. */
#include "runtime/rt_vulkan.h"

enum { SETS_A_POOL = 256, BUFFERS_A_POOL = 8 * SETS_A_POOL, MAX_SETS = 8192, KEY_WORDS = 1 + 3 * VK_MAX_BINDINGS };

static uint32_t make_key(const vk_pipeline *pipeline, const rt_dispatch *dispatch, uint64_t key[KEY_WORDS]) {
  uint32_t words = 0;
  key[words++] = pipeline->serial;
  for (uint32_t slot = 0; slot < dispatch->binding_count; slot++) {
    const struct rt_bound *bound = &dispatch->bindings[slot];
    key[words++] = ((const vk_buffer *)bound->buffer)->serial;
    key[words++] = bound->offset;
    key[words++] = bound->bytes;
  }
  return words;
}

static vk_set *find_place(const vk_sets *sets, uint64_t hash, const uint64_t *key, uint32_t words) {
  uint32_t mask = sets->capacity - 1;
  for (uint32_t at = (uint32_t)hash & mask;; at = (at + 1) & mask) {
    vk_set *set = &sets->at[at];
    if (!set->handle) return set;
    if (set->hash == hash && set->key_words == words && memcmp(&sets->keys[set->key], key, words * sizeof *key) == 0) return set;
  }
}

static bool make_room(vk_sets *sets, const snt_host_alloc *alloc, uint32_t words) {
  if (!rt_grow(alloc, (void **)&sets->keys, &sets->key_capacity, sets->key_count + words, sizeof *sets->keys)) return false;
  if (4 * (sets->count + 1) <= 3 * sets->capacity) return true;
  vk_sets larger = *sets;
  larger.capacity = sets->capacity ? 2 * sets->capacity : 64;
  larger.at = rt_take(alloc, larger.capacity * sizeof *larger.at);
  if (!larger.at) return false;
  for (uint32_t i = 0; i < sets->capacity; i++) {
    const vk_set *old = &sets->at[i];
    if (old->handle) *find_place(&larger, old->hash, &sets->keys[old->key], old->key_words) = *old;
  }
  rt_give(alloc, sets->at, sets->capacity * sizeof *sets->at);
  *sets = larger;
  return true;
}

/* ---- pools ---- */

static VkResult add_pool(vk_device *device, vk_sets *sets) {
  const VkDescriptorPoolSize sizes[] = {{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, BUFFERS_A_POOL},
                                        {VK_DESCRIPTOR_TYPE_UNIFORM_TEXEL_BUFFER, BUFFERS_A_POOL},
                                        {VK_DESCRIPTOR_TYPE_SAMPLED_IMAGE, SETS_A_POOL},
                                        {VK_DESCRIPTOR_TYPE_STORAGE_IMAGE, SETS_A_POOL}};
  const VkDescriptorPoolCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
                                           .maxSets = SETS_A_POOL,
                                           .poolSizeCount = IR_COUNT(sizes),
                                           .pPoolSizes = sizes};
  if (!rt_grow(device->base.alloc, (void **)&sets->pools, &sets->pool_capacity, sets->pool_count + 1, sizeof *sets->pools)) {
    return VK_ERROR_OUT_OF_HOST_MEMORY;
  }
  VkResult code = device->instance->api.vkCreateDescriptorPool(device->handle, &info, NULL, &sets->pools[sets->pool_count]);
  if (code == VK_SUCCESS) sets->pool_count++;
  return code;
}

static VkResult allocate_set(vk_device *device, vk_sets *sets, VkDescriptorSetLayout layout, VkDescriptorSet *out) {
  for (;;) {
    bool fresh = sets->pool_used == sets->pool_count;
    if (fresh) {
      VkResult code = add_pool(device, sets);
      if (code != VK_SUCCESS) return code;
    }
    const VkDescriptorSetAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
                                              .descriptorPool = sets->pools[sets->pool_used],
                                              .descriptorSetCount = 1,
                                              .pSetLayouts = &layout};
    VkResult code = device->instance->api.vkAllocateDescriptorSets(device->handle, &info, out);
    bool full = code == VK_ERROR_OUT_OF_POOL_MEMORY || code == VK_ERROR_FRAGMENTED_POOL;
    if (!full || fresh) return code;
    sets->pool_used++;
  }
}

static VkResult write_set(vk_device *device, const vk_pipeline *pipeline, const rt_dispatch *dispatch, VkDescriptorSet set) {
  VkWriteDescriptorSet writes[VK_MAX_BINDINGS];
  VkDescriptorBufferInfo buffers[VK_MAX_BINDINGS];
  VkBufferView views[VK_MAX_BINDINGS];
  VkDescriptorImageInfo images[VK_MAX_BINDINGS];
  for (uint32_t slot = 0; slot < dispatch->binding_count; slot++) {
    const struct rt_bound *bound = &dispatch->bindings[slot];
    vk_buffer *buffer = (vk_buffer *)bound->buffer;
    const uint8_t kind = pipeline->kinds[slot];
    bool texel = kind != RT_SLOT_STORAGE && !rt_slot_is_image(kind);
    images[slot] = (VkDescriptorImageInfo){.imageView = buffer->image_view, .imageLayout = VK_IMAGE_LAYOUT_GENERAL};
    uint64_t bytes = bound->bytes ? (bound->bytes + 3) / 4 * 4 : 4; /* whole words: the buffer is that long */
    buffers[slot] = (VkDescriptorBufferInfo){.buffer = buffer->memory.buffer, .offset = bound->offset, .range = bytes};
    if (bound->offset + bytes > buffer->memory.bytes) buffers[slot].offset = 0; /* nothing, at the very end */
    writes[slot] = (VkWriteDescriptorSet){.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                                          .dstSet = set,
                                          .dstBinding = slot,
                                          .descriptorCount = 1,
                                          .descriptorType = vk_descriptor_type(kind),
                                          .pBufferInfo = &buffers[slot],
                                          .pImageInfo = &images[slot],
                                          .pTexelBufferView = &views[slot]};
    if (!texel) continue;
    VkResult code = vk_buffer_view(buffer, buffers[slot].offset, bound->bytes, pipeline->kinds[slot], &views[slot]);
    if (code != VK_SUCCESS) return code;
  }
  device->instance->api.vkUpdateDescriptorSets(device->handle, dispatch->binding_count, writes, 0, NULL);
  return VK_SUCCESS;
}

/* ---- the cache ---- */

snt_result vk_find_set(vk_stream *stream, const rt_dispatch *dispatch, VkDescriptorSet *out, snt_diag *diag) {
  vk_device *device = (vk_device *)stream->base.device;
  const vk_pipeline *pipeline = (const vk_pipeline *)dispatch->pipeline;
  vk_sets *sets = &stream->sets;
  uint64_t key[KEY_WORDS];
  uint32_t words = make_key(pipeline, dispatch, key);
  uint64_t hash = ir_hash64(0, key, words * sizeof *key);
  if (sets->capacity && (*out = find_place(sets, hash, key, words)->handle)) return SNT_OK;
  if (!make_room(sets, device->base.alloc, words)) return ir_fail(diag, SNT_E_HOST_MEM, "submit", 0, "out of memory");
  VkDescriptorSet set;
  VkResult code = allocate_set(device, sets, pipeline->set_layout, &set);
  if (code == VK_SUCCESS) code = write_set(device, pipeline, dispatch, set);
  if (code != VK_SUCCESS) return vk_fail(device, code, "submit", "vkAllocateDescriptorSets", diag);
  memcpy(&sets->keys[sets->key_count], key, words * sizeof *key);
  *find_place(sets, hash, key, words) = (vk_set){.hash = hash, .key = sets->key_count, .key_words = words, .handle = set};
  sets->key_count += words, sets->count++;
  *out = set;
  return SNT_OK;
}

bool vk_sets_crowded(const vk_stream *stream) { return stream->sets.count >= MAX_SETS; }

void vk_forget_sets(vk_stream *stream, bool destroy) {
  vk_device *device = (vk_device *)stream->base.device;
  const snt_host_alloc *alloc = device->base.alloc;
  const vk_api *api = &device->instance->api;
  vk_sets *sets = &stream->sets;
  vk_batches_forget(stream);
  for (uint32_t i = 0; i < sets->pool_count; i++) {
    if (destroy) api->vkDestroyDescriptorPool(device->handle, sets->pools[i], NULL);
    else api->vkResetDescriptorPool(device->handle, sets->pools[i], 0);
  }
  if (sets->at) memset(sets->at, 0, sets->capacity * sizeof *sets->at);
  sets->count = sets->key_count = sets->pool_used = 0;
  if (!destroy) return;
  rt_give(alloc, sets->at, sets->capacity * sizeof *sets->at);
  rt_give(alloc, sets->keys, sets->key_capacity * sizeof *sets->keys);
  rt_give(alloc, sets->pools, sets->pool_capacity * sizeof *sets->pools);
}
