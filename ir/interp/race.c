/* What the checks remember, and the counts: uninitialised reads, data races, 32-byte transactions of 32 lanes, bank conflicts.
   Two accesses of one granule race if one writes, they are by different items, and no barrier for that memory lies between: time is a
   counter that every barrier advances, and an access from before the last barrier is ordered. Groups never synchronise with each other. */
#include "ir/interp/private.h"

enum { LANES = 32, SEGMENT = 32, BANKS = 32, TABLE = 1024 };

/* ---- races ---- */
static bool is_ordered(const kvm *vm, const kvm_region *r, uint32_t other, uint32_t time, uint32_t item) {
  if (other == item || time < (r->is_local ? vm->local_sync : vm->global_sync)) return true;
  return other / vm->subgroup == item / vm->subgroup && time < vm->subgroup_sync[item / vm->subgroup];
}

static bool read_is_ordered(const kvm *vm, const kvm_region *r, uint64_t g, uint32_t item) {
  const uint32_t who = r->read_item[g], time = r->read_time[g], own = item / vm->subgroup;
  if (who == KVM_ANY) return time < (r->is_local ? vm->local_sync : vm->global_sync);
  if (!(who & KVM_SUBGROUP)) return is_ordered(vm, r, who, time, item);
  if (time < (r->is_local ? vm->local_sync : vm->global_sync)) return true;
  return (who & ~(uint32_t)KVM_SUBGROUP) == own && time < vm->subgroup_sync[own];
}

static void note_reader(const kvm *vm, kvm_region *r, uint64_t g, uint32_t item) {
  const uint32_t who = r->read_item[g], own = item / vm->subgroup;
  const bool stale = r->read_time[g] < (r->is_local ? vm->local_sync : vm->global_sync);
  if (stale || who == item) r->read_item[g] = (uint16_t)item;
  else if (who == KVM_ANY) return;
  else
    r->read_item[g] = (who & KVM_SUBGROUP ? who & ~(uint32_t)KVM_SUBGROUP : who / vm->subgroup) == own ? (uint16_t)(KVM_SUBGROUP | own)
                                                                                                       : (uint16_t)KVM_ANY;
  r->read_time[g] = vm->clock;
}

/* Null, or who the access races with. `parts`: of a word of several narrow elements (ir/kir/words.c), of which atomics change what is
   theirs and reads keep their own. */
static const char *check_read(const kvm *vm, kvm_region *r, uint64_t g, uint32_t item, bool parts) {
  const uint32_t me = (uint32_t)vm->group + 1, writer = parts && r->writer[g] & KVM_ATOMIC ? 0 : r->writer[g] & ~KVM_ATOMIC;
  if (writer == me) {
    if (r->write_item && !is_ordered(vm, r, r->write_item[g], r->write_time[g], item))
      return "reads what another item wrote without a barrier between";
  } else if (writer && !r->per_group) {
    return "reads what another group wrote";
  }
  const uint32_t reader = r->reader[g];
  if (reader == me) {
    if (r->read_item) note_reader(vm, r, g, item);
    return NULL;
  }
  r->reader[g] = reader && !r->per_group ? KVM_MANY : me;
  if (r->read_item) r->read_item[g] = (uint16_t)item, r->read_time[g] = vm->clock;
  return NULL;
}

static const char *check_write(const kvm *vm, kvm_region *r, uint64_t g, uint32_t item, kvm_use use, bool parts) {
  const uint32_t me = (uint32_t)vm->group + 1, writer = r->writer[g] & ~KVM_ATOMIC;
  const uint32_t reader = parts && use == KVM_UPDATE ? 0 : r->reader[g];
  const bool atomic = use == KVM_UPDATE, agrees = use == KVM_SAME || (atomic && (r->writer[g] & KVM_ATOMIC));
  if (writer == me) {
    if (!agrees && r->write_item && !is_ordered(vm, r, r->write_item[g], r->write_time[g], item))
      return "overwrites what another item wrote without a barrier between";
  } else if (writer && !r->per_group && !agrees) {
    return "overwrites what another group wrote";
  }
  if (reader == me) {
    if (r->read_item && !read_is_ordered(vm, r, g, item)) return "overwrites what another item reads without a barrier between";
  } else if (reader && !r->per_group) {
    return "overwrites what another group reads";
  }
  r->writer[g] = me | (atomic ? KVM_ATOMIC : 0);
  if (r->write_item) r->write_item[g] = (uint16_t)item, r->write_time[g] = vm->clock;
  return NULL;
}

static bool fail_at(kvm *vm, const kvm_step *s, const kvm_memory *m, uint64_t at, uint32_t item, const char *text) {
  const uint64_t element = (at - m->base - m->item_stride * item) / m->bytes;
  return kvm_fail(vm, s, item, SNT_E_ARG, "%%%s, element %llu: %s", m->decl->name, (unsigned long long)element, text);
}

/* Memory of one item: only the marks of what was written. */
static bool touch_own(kvm *vm, const kvm_step *s, const kvm_memory *m, uint64_t at, uint32_t bytes, uint32_t item, kvm_use use) {
  uint8_t *written = m->region->written + at / m->bytes;
  const uint32_t count = bytes / m->bytes;
  if (use == KVM_READ) {
    bool all = true;
    for (uint32_t i = 0; i < count; i++) all &= written[i] == 1;
    return all || fail_at(vm, s, m, at, item, "read before anything was written there");
  }
  memset(written, 1, count);
  return true;
}

bool kvm_touch(kvm *vm, const kvm_step *s, const kvm_memory *m, uint64_t at, uint32_t bytes, uint32_t item, kvm_use use) {
  kvm_region *r = m->region;
  const bool parts = m->decl->view && ir_dtypes[m->decl->view].bytes < m->bytes;
  if (!r->written && !r->writer) return true;
  if (!r->writer && r->granule == m->bytes && use != KVM_UPDATE) return touch_own(vm, s, m, at, bytes, item, use);
  const uint64_t first = at / r->granule, last = (at + bytes - 1) / r->granule;
  for (uint64_t g = first; g <= last; g++) {
    if (r->written) {
      if (r->written[g] == KVM_COMING) return fail_at(vm, s, m, at, item, "touched while a copy into it is under way");
      if (use != KVM_WRITE && use != KVM_SAME && !r->written[g])
        return fail_at(vm, s, m, at, item, "read before anything was written there");
      if (use != KVM_READ) r->written[g] = 1;
    }
    if (!r->writer) continue;
    const char *race = use == KVM_READ ? check_read(vm, r, g, item, parts) : check_write(vm, r, g, item, use, parts);
    if (race) return fail_at(vm, s, m, at, item, race);
  }
  return true;
}

/* ---- counts ---- */
static uint32_t add_segment(kvm *vm, uint64_t segment) {
  uint32_t slot = (uint32_t)(segment * 0x9E3779B97F4A7C15ull >> 54);
  for (uint32_t tries = 0; tries < TABLE; tries++, slot = (slot + 1) % TABLE) {
    if (vm->segment_stamp[slot] != vm->stamp) {
      vm->segment_stamp[slot] = vm->stamp;
      vm->segments[slot] = segment;
      return 1;
    }
    if (vm->segments[slot] == segment) return 0;
  }
  return 1;
}

static uint32_t add_range(kvm *vm, uint64_t at, uint32_t bytes, uint64_t *latest) {
  uint32_t added = 0;
  for (uint64_t segment = at / SEGMENT; segment <= (at + bytes - 1) / SEGMENT; segment++) {
    if (segment != *latest) added += add_segment(vm, segment);
    *latest = segment;
  }
  return added;
}

/* Segments that lanes first .. first+31 touch; the ideal is their bytes without gaps, once where all read the same. */
static void count_transactions(kvm *vm, const kvm_access *a, uint32_t first) {
  const kvm_memory *m = a->memory;
  const uint32_t runs = a->stride == 1 ? 1 : a->lanes, bytes = m->bytes * (a->stride == 1 ? a->lanes : 1), step = a->stride * m->bytes;
  uint32_t actual = 0, active = 0;
  uint64_t latest = UINT64_MAX, where = 0;
  bool same = true;
  vm->stamp++;
  for (uint32_t i = first; i < first + LANES && i < vm->items; i++) {
    if (!vm->mask[i]) continue;
    if (active && vm->address[i] != where) same = false;
    if (!active++ || !same) where = vm->address[i];
    else continue;
    for (uint32_t n = 0; n < runs; n++) actual += add_range(vm, where + (uint64_t)n * step, bytes, &latest);
  }
  if (!active) return;
  const uint64_t ideal = ((uint64_t)bytes * runs * (same ? 1 : active) + SEGMENT - 1) / SEGMENT;
  vm->stats.transactions += actual;
  vm->stats.ideal_transactions += ideal < actual ? ideal : actual;
}

/* Extra rounds that lanes [first, end) need because words of one bank differ. */
static void count_rounds(kvm *vm, const kvm_access *a, uint32_t first, uint32_t end) {
  const kvm_memory *m = a->memory;
  const uint32_t lanes = a->lanes, step = a->stride * m->bytes;
  uint32_t banks[BANKS] = {0}, words = 0, most = 0;
  vm->stamp++;
  for (uint32_t i = first; i < end && i < vm->items; i++)
    for (uint32_t n = 0; n < lanes && vm->mask[i]; n++) {
      const uint64_t word = (vm->address[i] + (uint64_t)n * step) / 4;
      if (!add_segment(vm, word)) continue;
      words++;
      const uint32_t used = ++banks[word % BANKS];
      if (used > most) most = used;
    }
  const uint32_t least = (words + BANKS - 1) / BANKS;
  vm->stats.bank_conflicts += most - least;
}

/* Of vectors, so many lanes are served at once as ask for a word of every bank: 16 of 8 bytes, 8 of 16. */
static void count_conflicts(kvm *vm, const kvm_access *a, uint32_t first) {
  const uint32_t words = (a->lanes * a->memory->bytes + 3) / 4, together = words > LANES / 4 ? 4 : LANES / (words ? words : 1);
  for (uint32_t at = first; at < first + LANES; at += together) count_rounds(vm, a, at, at + together);
}

void kvm_count_access(kvm *vm, const kvm_access *a, bool store) {
  const kir_interp_stats before = vm->stats;
  *(store ? &vm->stats.stores : &vm->stats.loads) += vm->active;
  const uint32_t space = a->memory->decl->space;
  const bool global = space == KIR_GLOBAL || space == KIR_SCRATCH;
  if (global)
    for (uint32_t first = 0; first < vm->items; first += LANES) count_transactions(vm, a, first);
  else if (space == KIR_LOCAL && vm->items > 1)
    for (uint32_t first = 0; first < vm->items; first += LANES) count_conflicts(vm, a, first);
  if (!vm->info->insts) return;
  kir_interp_inst *own = &vm->info->insts[vm->steps[vm->pc - 1].inst]; /* of the step under way */
  own->transactions += vm->stats.transactions - before.transactions;
  own->ideal_transactions += vm->stats.ideal_transactions - before.ideal_transactions;
  own->bank_conflicts += vm->stats.bank_conflicts - before.bank_conflicts;
}
