/* For the tests of the code generators: a legal kernel for a target, its code, and the outside tools that judge it. Run from the project's root. */
#ifndef TESTS_CODEGEN_SUPPORT_H
#define TESTS_CODEGEN_SUPPORT_H
#include "codegen_common/targets.h"
#include "runtime/targets.h"
#include "tests/unit/kernel_support.h"

/* Runs the passes for the target's abilities and emits; both in the arena. */
snt_result codegen_make(const kir_kernel *, const codegen_target *, ir_arena *, kir_kernel *legal, codegen_code *, snt_diag *);
bool codegen_write_file(const char *path, const void *data, size_t size);
/* Output of a command, both streams, in the arena; *status its exit status. */
char *codegen_command(ir_arena *, int *status, const char *format, ...) IR_PRINTF(3, 4);
/* Writes the code to a temporary file and has every tool that is here judge it: spirv-val, clang for OpenCL C, nvcc and g++ (behind a shim)
   for CUDA. One verdict a tool: its exit status and words, or -1 and null where it is missing. */
typedef void (*codegen_verdict)(void *user, const char *tool, int status, const char *said);
bool codegen_judge(const codegen_target *, const codegen_code *, codegen_verdict, void *user);
bool codegen_has_tool(const char *name);
/* Each operation on each type that it takes, on all lanes of `lanes`: reads slots 0.. and writes one region of the last slot a case. */
enum { CODEGEN_CASE_ITEMS = 64 };
typedef struct codegen_cases {
  kir_kernel kernel;
  uint32_t count;
  char names[256][48];
} codegen_cases;
void codegen_cases_make(codegen_cases *, ir_arena *, int32_t base, uint32_t lanes);

/* A kernel compiled for an open device and run once: passes for its abilities, emission, pipeline, buffers by binding, one dispatch, and the
   writable buffers brought back. `code` (may be null) receives what the driver was given. */
typedef struct codegen_image {
  const char *format;
  uint32_t width, height; /* 0: a buffer */
} codegen_image;
typedef struct codegen_dispatch {
  const kir_kernel *kernel;
  uint64_t groups;
  uint32_t count; /* of buffers */
  uint8_t *data[16];
  uint64_t bytes[16];
  codegen_image images[16];
  const void *block;
} codegen_dispatch;
snt_result codegen_run_on(rt_device *, const codegen_dispatch *, ir_arena *, codegen_code *code, snt_diag *);
#endif
