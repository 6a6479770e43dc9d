/* The reference interpreter's machine, shared by its files. A group runs in lock step: every instruction is executed for all items at once,
   under a mask where control diverges. A value is an array [lane][item] of float, double, int32/uint32 (narrow integers and bool too) or
   int64/uint64; pure operations ignore the mask, since what an inactive item computes is never read. */
#ifndef IR_INTERP_PRIVATE_H
#define IR_INTERP_PRIVATE_H
#include "ir/kernel_private.h"
#include "ir/kir_interp.h"

typedef enum { KVM_F32, KVM_F64, KVM_I32, KVM_U32, KVM_I64, KVM_U64, KVM_KINDS } kvm_kind;
kvm_kind kvm_kind_of(uint32_t base); /* f16, bf16: F32; narrow integers: I32, U32; bool: U32 */
static inline uint32_t kvm_kind_bytes(kvm_kind kind) { return kind == KVM_F64 || kind >= KVM_I64 ? 8 : 4; }

/* Bytes that memories stand on, with what the checks remember a granule (the smallest element stored there). */
typedef struct kvm_region {
  uint8_t *data;
  uint64_t bytes;
  uint32_t granule;
  bool per_group, is_local;         /* per_group: nothing is shared with other groups */
  uint8_t *written;                 /* null: all counts as initialised */
  uint32_t *writer, *reader;        /* 1 + group, null: no race checks; writer: top bit for atomics; reader: KVM_MANY */
  uint32_t *write_time, *read_time; /* null where a group is one item */
  uint16_t *write_item, *read_item; /* read_item: an item, KVM_SUBGROUP | its subgroup, or KVM_ANY */
} kvm_region;
enum { KVM_SUBGROUP = 0x8000, KVM_ANY = 0xffff };
#define KVM_MANY UINT32_MAX
#define KVM_ATOMIC 0x80000000u

typedef struct kvm_memory {
  const kir_memory *decl;
  kvm_region *region;
  uint64_t base, item_stride;  /* bytes into the region */
  uint64_t dims[4];            /* in cells */
  uint32_t rank, bytes, lanes; /* of a stored element; elements a cell */
  const struct kvm_format *format;
  uint32_t width, height;
} kvm_memory;

typedef struct kvm_access {
  kvm_memory *memory;
  const void *index[4];
  uint8_t index_kind[4];
  uint32_t count, lanes, stride, align; /* lanes: elements touched; stride: elements between them */
} kvm_access;

typedef struct kvm kvm;
typedef struct kvm_step kvm_step;
typedef bool (*kvm_fn)(kvm *, const kvm_step *);
struct kvm_step {
  kvm_fn run;
  void (*fix)(void *values, uint32_t n); /* rounds or narrows the result; may be null */
  void *dst;
  const void *a, *b, *c;
  uint32_t n, inst, jump; /* n: items * lanes */
  uint8_t base, kind, from, lanes;
  uint8_t from_base, mode, bits;
  bool hidden;    /* a check, not an instruction */
  uint32_t flops; /* an item */
  void *state;    /* kvm_access, kvm_loop, kvm_moves, lane numbers: see `run` */
};

/* A copy of a value: loop carries and results of an if. */
typedef struct kvm_move {
  void *to;
  const void *from;
  uint32_t lanes, bytes, fragment;
} kvm_move; /* fragment: bytes a subgroup, or 0 */
typedef struct kvm_moves {
  uint32_t count;
  kvm_move *at;
  bool staged;
} kvm_moves; /* staged: sources may be destinations */
typedef struct kvm_loop {
  const void *lo, *hi, *step;
  void *variable;
  kvm_kind kind;
  bool at_least_once, same_trips;
  kvm_moves initial, next;
  int64_t *start, *stride;
  uint64_t *trips, trip, most;
} kvm_loop;

typedef struct kvm_copy {
  uint32_t inst, item;
  kvm_access *to, *from;
  uint64_t to_at, from_at;
  uint32_t bytes;
  bool zeros;
} kvm_copy; /* async, performed at the wait */

struct kvm {
  const kir_kernel *k;
  const kir_interp_info *info;
  ir_arena *arena;
  snt_diag *diag;
  snt_result result;
  uint32_t items, subgroup, subgroups;
  kir_regions regions;
  kvm_memory *memories;
  void **values;          /* by instruction */
  uint8_t **masks, *mask; /* by nesting depth; the current one */
  uint32_t *actives, active, depth;
  uint64_t *address; /* of the access under way, by item */
  uint32_t clock, local_sync, global_sync, *subgroup_sync;
  void *staging;
  IR_VEC(kvm_copy) copies;
  IR_VEC(uint32_t) commits;   /* end of each committed group in `copies` */
  IR_VEC(kvm_region *) owned; /* reset for each group */
  uint64_t shadow_left;
  uint32_t frag_m, frag_n, frag_k;
  kvm_step *steps;
  uint32_t step_count, pc;
  uint64_t group, budget;
  uint32_t *group_value, *ids[6]; /* local x y z, subgroup id, lane, count */
  kir_interp_stats stats;
  uint64_t segments[1024];
  uint32_t segment_stamp[1024], stamp;
};

/* Records the first failure; always false. item KVM_NO_ITEM: none to blame. */
#define KVM_NO_ITEM UINT32_MAX
bool kvm_fail(kvm *, const kvm_step *, uint32_t item, snt_result, const char *format, ...) IR_PRINTF(5, 6);
static inline bool kvm_is_full(const kvm *vm) { return vm->active == vm->items; }

/* ---- preparing ---- */
snt_result kvm_prepare_memories(kvm *);
snt_result kvm_prepare_values(kvm *); /* places every value; needs regions */
snt_result kvm_prepare_steps(kvm *);
bool kvm_check_fragment(kvm *); /* reads needs= where fragments are used */
uint32_t kvm_fragment_elements(const kvm *, uint32_t frag);

/* ---- what decoding chooses from ---- */
kvm_fn kvm_arithmetic(uint32_t op, kvm_kind, uint32_t base); /* null: none */
kvm_fn kvm_math(uint32_t op, kvm_kind);
kvm_fn kvm_conversion(const kir_inst *, kir_type from);
void (*kvm_fix_for(uint32_t base))(void *, uint32_t);
kvm_fn kvm_vector(uint32_t op);
kvm_fn kvm_subgroup_fn(uint32_t op);
kvm_fn kvm_image_fn(uint32_t op);
bool kvm_check_domain(kvm *, const kvm_step *);
bool kvm_check_divisor(kvm *, const kvm_step *); /* of u32 */
double kvm_round(uint32_t base, double);
double kvm_get(const void *values, kvm_kind, uint32_t at);
int64_t kvm_get_int(const void *values, kvm_kind, uint32_t at);
void kvm_put(void *values, kvm_kind, uint32_t base, uint32_t at, double v);

/* ---- control ---- */
bool kvm_run_loop(kvm *, const kvm_step *);
bool kvm_run_next(kvm *, const kvm_step *);
bool kvm_run_if(kvm *, const kvm_step *);
bool kvm_run_else(kvm *, const kvm_step *);
bool kvm_run_endif(kvm *, const kvm_step *);
bool kvm_run_moves(kvm *, const kvm_step *);
bool kvm_run_barrier(kvm *, const kvm_step *);
bool kvm_run_subgroup_barrier(kvm *, const kvm_step *);
bool kvm_run_nothing(kvm *, const kvm_step *);
bool kvm_subgroup_together(kvm *, const kvm_step *, uint32_t subgroup, bool *active);

/* ---- memory ---- */
typedef enum { KVM_READ, KVM_WRITE, KVM_SAME, KVM_UPDATE } kvm_use; /* SAME: a write of the bytes that are there */
enum { KVM_COMING = 2 }; /* what `written` says of a place from its async copy until the wait; else 1 or 0 */
/* Byte offset into the region of what `item` touches; false after failing. *outside: an oob=zero read that misses. */
bool kvm_locate(kvm *, const kvm_step *, const kvm_access *, uint32_t item, uint64_t *at, bool *outside);
/* Uninitialised reads and races of `bytes` at `at`. */
bool kvm_touch(kvm *, const kvm_step *, const kvm_memory *, uint64_t at, uint32_t bytes, uint32_t item, kvm_use);
void kvm_count_access(kvm *, const kvm_access *, bool store); /* by vm->address */
double kvm_read_element(uint32_t base, const uint8_t *);
void kvm_write_element(uint32_t base, uint8_t *, double);
bool kvm_run_load(kvm *, const kvm_step *);
bool kvm_run_store(kvm *, const kvm_step *);
bool kvm_run_fill(kvm *, const kvm_step *);
bool kvm_run_atomic(kvm *, const kvm_step *);

/* ---- asynchronous copies and fragments ---- */
bool kvm_run_async_copy(kvm *, const kvm_step *);
bool kvm_run_async_commit(kvm *, const kvm_step *);
bool kvm_run_async_wait(kvm *, const kvm_step *);
bool kvm_run_fragment_cell(kvm *, const kvm_step *); /* load, store, fill of a fragment array */
bool kvm_run_mma_load(kvm *, const kvm_step *);
bool kvm_run_mma_store(kvm *, const kvm_step *);
bool kvm_run_mma(kvm *, const kvm_step *);
bool kvm_run_mma_get(kvm *, const kvm_step *);
bool kvm_run_mma_make(kvm *, const kvm_step *);

/* ---- images ---- */
const struct kvm_format *kvm_find_format(const char *name, uint32_t *texel_bytes, uint32_t *channels, int32_t *dtype);
#endif
