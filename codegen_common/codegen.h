/* Code generators: legalised kernel IR in, one target's code out. A generator is a row of the table in codegen_common/targets.h's users (runtime/targets.c):
   nothing above refers to a single one. Same kernel, same bytes. */
#ifndef CODEGEN_COMMON_CODEGEN_H
#define CODEGEN_COMMON_CODEGEN_H
#include "ir/kir_pass.h"

typedef struct codegen_code {
  const void *data;
  size_t size;
} codegen_code; /* text is terminated (not counted in size) */
static inline bool codegen_same(const codegen_code *a, const codegen_code *b) {
  return a->size == b->size && (a->data == b->data || !memcmp(a->data, b->data, a->size));
}
/* A kernel's code as one of several that one launch goes through. */
typedef struct codegen_link {
  const codegen_code *code;
  const uint32_t *slots;              /* of the launch, which its bindings are; from 1 */
  uint32_t binding_count, word_count; /* words of its block, the number of groups not counted */
  bool barrier;                       /* waits for all before it */
} codegen_link;
typedef struct codegen_target {
  const char *name;     /* "opencl" "spirv" "cuda" "kir" */
  const char *suffix;   /* ".cl" ".spv" ".cu" ".kir" */
  uint32_t bit;         /* SNT_TARGET_* */
  const kir_caps *caps; /* what it can print at best; a device narrows it */
  /* Row `own` of the kernel's operators of the user's own as a text that is compiled elsewhere, before `emit`; null: the generator prints them. */
  snt_result (*own_text)(const kir_kernel *, uint32_t own, ir_text *out, snt_diag *);
  snt_result (*emit)(const kir_kernel *legal, const kir_caps *caps, ir_arena *arena, codegen_code *out, snt_diag *);
  /* One kernel "chain" that goes through all links, of which can_link holds. Slots: the turns (codegen_turn_bytes, zero before the first
     launch and after each), then what links bind; words: the block of each link and its number of groups. As
     many groups as the turns have room for, and fewer will do. Null: there is none. */
  bool (*can_link)(const codegen_code *);
  snt_result (*chain)(uint32_t count, const codegen_link *, ir_arena *arena, codegen_code *out, snt_diag *diag);
} codegen_target;
static inline uint64_t codegen_turn_bytes(uint32_t links, uint32_t groups) { return 64 * ((uint64_t)links * (groups + 1) + 1); }

/* The walk every generator is a client of: begin, each instruction in order, end. */
typedef struct kernel_visitor {
  snt_result (*begin)(void *self, const kir_kernel *);
  snt_result (*inst)(void *self, const kir_kernel *, uint32_t id);
  snt_result (*end)(void *self, const kir_kernel *);
} kernel_visitor;
snt_result kernel_walk(const kir_kernel *, const kernel_visitor *, void *self);

/* An expression is the value of a function of the user's; a text that says `return` is its body. */
bool codegen_own_is_body(const char *text);
/* `text`, a part of the user's source, with its line number for compilers to complain by. */
void codegen_own_put(ir_text *out, const char *source, const char *text, size_t length, const char *file);

/* Calling convention, the same for all targets (PLAN and the runtimes rely on it):
   - global memories and images are bound by slot; a push block (Vulkan), one by-value struct of u32 words (CUDA: `const snt_block s`) or one
     u32 argument a word (OpenCL) carries the scalars, laid out by kir_scalar.offset. After the kernel's scalars comes one more u32 at offset
     kir_block_bytes(kernel): the number of groups; the kernel returns (uniformly, a whole group) when its unfolded linear group index is not below it.
   - linear group = gx + nx * (gy + ny * gz).  OpenCL and CUDA entry name: the kernel's name; SPIR-V: "main". */
uint32_t kir_block_bytes(const kir_kernel *); /* scalars, rounded up to 4; the group count follows: total = this + 4 */
/* With caps->address (SPIR-V): byte of the block where the addresses of the global memories begin, at a multiple of 8 after the group count, 8 bytes
   each in the order of their slots. 0: they are bound by slot, as they also are where the addresses would not fit into 128 bytes or the user's own
   code stands in the kernel. Images, texel buffers and buffers of 8- or 16-bit elements (whose pointers SPIR-V can hardly handle) always are. */
uint32_t kir_address_at(const kir_kernel *, const kir_caps *);
bool kir_is_addressed(const kir_memory *, const kir_caps *);
uint32_t kir_push_bytes(const kir_kernel *, const kir_caps *); /* the whole block */
/* Binding of a memory: globals and images by their slot, then the per-group workspaces (scratch) in declaration order; ~0u: not bound.
   A workspace's buffer holds the workspaces of all groups of the dispatch, that of group g at g times its elements. */
uint32_t kir_binding(const kir_kernel *, uint32_t memory);
uint32_t kir_binding_count(const kir_kernel *);
#endif
