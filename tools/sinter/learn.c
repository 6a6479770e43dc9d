/* --learn: what the driver says of the kernels that it built is heard; those whose items spill are split, and built again, until none does or nothing more
   can be split. In: a loaded graph. Out: contracts on it. */
#include "ir/base.h"
#include "tools/sinter/tool.h"

enum { SPILLED_BYTES = 64, ROUNDS = 4 };

/* A kernel of which the driver says nothing does not count. */
static uint32_t count_heard(const snt_exec *x) {
  uint32_t heard = 0;
  snt_report said;
  for (uint32_t i = 0; i < snt_exec_job_count(x); i++) heard += snt_exec_report(x, i, &said) == SNT_OK && said.spilled != UINT32_MAX;
  return heard;
}

static snt_result learn_once(tool_session *s, uint32_t *splits, uint32_t *heard, uint32_t *built) {
  const snt_exec_info info = {.head = SNT_HEAD(exec_info), .flags = SNT_EXEC_REPORT};
  snt_program *program = NULL;
  snt_exec *exec = NULL;
  snt_result r = tool_compile_flags(s, 0, s->options.compile_flags, &program);
  if (r == SNT_OK) r = snt_exec_create(s->device, program, &info, &exec, &s->diag);
  if (r == SNT_OK) r = snt_exec_prepare(exec, &s->diag);
  if (r == SNT_OK) r = snt_graph_learn(s->graph, exec, SPILLED_BYTES, splits, &s->diag);
  uint32_t cached;
  *built = r == SNT_OK ? tool_count_pipelines(exec, &cached) : 0;
  *heard = r == SNT_OK ? count_heard(exec) : 0;
  snt_exec_destroy(exec);
  snt_program_destroy(program);
  return r;
}

snt_result tool_learn(tool_session *s) {
  uint32_t splits = 1, all = 0, heard = 0, built = 0;
  if (!s->options.learn) return SNT_OK;
  SNT_TRY(tool_need_graph(s));
  for (uint32_t round = 0; round < ROUNDS && splits; round++) {
    SNT_TRY(learn_once(s, &splits, &heard, &built));
    all += splits;
  }
  if (!s->options.quiet)
    fprintf(stderr, "learn: %u kernels split for what they spilled; the driver says what %u of %u kernels use\n", all, heard, built);
  return SNT_OK;
}
