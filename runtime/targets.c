/* The one list of backends and of code generators, and opening by selector. A device's abilities are what both it and the generator of its
   code have. */
#include "runtime/targets.h"
#include "codegen_common/targets.h"
#include "runtime/rt_common.h"

static const rt_vtable *const backends[] = {&rt_cuda, &rt_vulkan, &rt_opencl, &rt_interp};
static const codegen_target *const generators[] = {&codegen_opencl, &codegen_spirv, &codegen_cuda, &codegen_kir};

/* ---- generators ---- */

const codegen_target *rt_codegen(uint32_t bit) {
  for (uint32_t i = 0; i < IR_COUNT(generators); i++) {
    if (generators[i]->bit == bit) return generators[i];
  }
  return NULL;
}

const codegen_target *rt_codegen_named(const char *name) {
  for (uint32_t i = 0; i < IR_COUNT(generators); i++) {
    if (strcmp(generators[i]->name, name) == 0) return generators[i];
  }
  return NULL;
}

uint32_t rt_codegen_list(const codegen_target *const **out) {
  *out = generators;
  return IR_COUNT(generators);
}

/* ---- abilities: the smaller of two ---- */

#define FLAG(member) offsetof(kir_caps, member)
static const size_t flags[] = {
    FLAG(f16_arithmetic), FLAG(f16_storage), FLAG(bf16_storage), FLAG(int8_storage),
    FLAG(int16_storage),  FLAG(int64),       FLAG(f64),          FLAG(fma_fused),
    FLAG(fma_fast),       FLAG(keeps_math),  FLAG(subgroups),    FLAG(subgroup_arithmetic),
    FLAG(exact_div),      FLAG(exact_sqrt),  FLAG(prefetch),     FLAG(stream),
    FLAG(texel),          FLAG(images),      FLAG(async_copy),   FLAG(atomics_f32),
    FLAG(oob_zero),       FLAG(shuffle),     FLAG(hred),         FLAG(wrap),
    FLAG(divmod),         FLAG(minmax_nan),  FLAG(ix),           FLAG(fill),
    FLAG(lanes_memory),   FLAG(pack2),       FLAG(dot4),         FLAG(fragment_lanes),
    FLAG(exp2),
};
#undef FLAG

/* Those that are a matter of what a generator prints, not of what a device has. */
static const size_t printed[] = {offsetof(kir_caps, shuffle), offsetof(kir_caps, hred),         offsetof(kir_caps, wrap),
                                 offsetof(kir_caps, divmod),  offsetof(kir_caps, minmax_nan),   offsetof(kir_caps, ix),
                                 offsetof(kir_caps, fill),    offsetof(kir_caps, lanes_memory), offsetof(kir_caps, pack2)};

static bool *flag_at(kir_caps *caps, size_t offset) { return (bool *)(void *)((char *)caps + offset); }

void rt_narrow_caps(kir_caps *device, const kir_caps *generator) {
  kir_caps most = *generator;
  /* What one target's driver is known to round its others need not. */
  if (device->target && !strcmp(device->target, generator->target)) most.exact_div = most.exact_sqrt = true;
  for (uint32_t i = 0; i < IR_COUNT(printed); i++) *flag_at(device, printed[i]) = true;
  for (uint32_t i = 0; i < IR_COUNT(flags); i++) *flag_at(device, flags[i]) = *flag_at(device, flags[i]) && *flag_at(&most, flags[i]);
  device->aligned_vectors = device->aligned_vectors || most.aligned_vectors;
  device->nan_unsafe = device->nan_unsafe || most.nan_unsafe;
  for (uint32_t i = 0; i < KIR_MMA_TYPES; i++)
    if (most.mma[i].m != KIR_MMA_ANY && memcmp(&device->mma[i], &most.mma[i], sizeof most.mma[i])) device->mma[i] = (kir_mma){0, 0, 0};
  if (device->max_lanes > most.max_lanes) device->max_lanes = most.max_lanes;
  if (device->vector_memory > most.vector_memory) device->vector_memory = most.vector_memory;
  if (device->permute > most.permute) device->permute = 0;
  if (device->push_bytes > most.push_bytes) device->push_bytes = most.push_bytes;
  if (device->flushes || device->nan_unsafe) device->minmax_nan = false;
  if (device->flushes) /* what a driver does in one step it does to denormals, too */
    device->hred = device->fma_fused = device->fma_fast = device->subgroup_arithmetic = device->atomics_f32 = false;
}

/* ---- devices ---- */

static void list_hooked(const rt_hooks *hooks, uint32_t *count, rt_device_desc *out, uint32_t capacity) {
  for (uint32_t h = 0; hooks && h < hooks->count; h++) {
    const snt_backend *hook = hooks->at[h];
    for (uint32_t i = 0; i < hook->device_count; i++, ++*count) {
      if (*count >= capacity) continue;
      rt_device_desc *desc = &out[*count];
      *desc = (rt_device_desc){.api = hook->target};
      rt_copy_text(desc->selector, sizeof desc->selector, hook->name);
      rt_copy_text(desc->name, sizeof desc->name, hook->device_name ? hook->device_name : hook->name);
      rt_copy_text(desc->driver, sizeof desc->driver, hook->driver ? hook->driver : "");
      rt_copy_text(desc->profile, sizeof desc->profile, hook->name);
    }
  }
}

snt_result rt_list_devices(const snt_host_alloc *alloc, const rt_hooks *hooks, uint32_t *count, rt_device_desc *out, uint32_t capacity) {
  uint32_t total = 0;
  if (!alloc) alloc = ir_host_malloc();
  for (uint32_t i = 0; i < IR_COUNT(backends); i++) {
    uint32_t found = 0, used = total < capacity ? total : capacity;
    SNT_TRY(backends[i]->enumerate(alloc, &found, out ? out + used : NULL, out ? capacity - used : 0));
    total += found;
  }
  list_hooked(hooks, &total, out, out ? capacity : 0);
  *count = total;
  return out && total > capacity ? SNT_INCOMPLETE : SNT_OK;
}

static const char *part_after_colon(const char *selector) {
  const char *colon = strchr(selector, ':');
  return colon ? colon + 1 : "";
}

static bool named(const char *selector, const char *name) {
  size_t length = strcspn(selector, ":");
  return strlen(name) == length && strncmp(selector, name, length) == 0;
}

static snt_result open_named(const snt_host_alloc *alloc, const rt_hooks *hooks, const char *selector, rt_device **out, snt_diag *diag) {
  const char *which = part_after_colon(selector);
  for (uint32_t h = 0; hooks && h < hooks->count; h++) {
    if (named(selector, hooks->at[h]->name)) return rt_hooked_open(alloc, hooks->at[h], which, out, diag);
  }
  for (uint32_t i = 0; i < IR_COUNT(backends); i++) {
    if (named(selector, backends[i]->name)) return backends[i]->open(alloc, which, out, diag);
  }
  return ir_fail(diag, SNT_E_ARG, "open", 0, "no backend has the name of \"%s\": host, cuda, vulkan, opencl, interp", selector);
}

/* Any GPU before any CPU; of the ways to a CPU, OpenCL is the faster. */
static snt_result open_best(const snt_host_alloc *alloc, rt_device **out, snt_diag *diag) {
  static const struct {
    const rt_vtable *v;
    bool cpu;
  } order[] = {{&rt_cuda, false}, {&rt_vulkan, false}, {&rt_opencl, false}, {&rt_opencl, true}, {&rt_vulkan, true}, {&rt_interp, true}};
  snt_diag last = {.text = ""}; /* the caller's shows no failure when a later one opens */
  for (uint32_t i = 0; i < IR_COUNT(order); i++) {
    snt_result result = order[i].v->open(alloc, "", out, &last);
    if (result == SNT_OK && (*out)->cpu == order[i].cpu) return SNT_OK;
    if (result == SNT_OK) {
      order[i].v->close(*out);
    } else if (result != SNT_E_UNSUPPORTED) {
      return ir_fail(diag, result, "open", 0, "%s", last.text);
    }
  }
  return ir_fail(diag, SNT_E_UNSUPPORTED, "open", 0, "no device: %s", last.text);
}

snt_result rt_open_device(const snt_host_alloc *alloc, const rt_hooks *hooks, const char *selector, rt_device **out, snt_diag *diag) {
  if (!alloc) alloc = ir_host_malloc();
  rt_device *device = NULL;
  SNT_TRY(selector && *selector ? open_named(alloc, hooks, selector, &device, diag) : open_best(alloc, &device, diag));
  const codegen_target *generator = rt_codegen(device->target);
  if (generator) rt_narrow_caps(&device->profile.caps, generator->caps);
  *out = device;
  return SNT_OK;
}

void rt_close_device(rt_device *device) {
  if (device) device->v->close(device);
}
