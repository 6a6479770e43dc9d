/* Shared by exec.c, exec_own.c, same_bits.c and run.c. */
#ifndef API_EXEC_H
#define API_EXEC_H
#include "api/handles.h"
#include "runtime/rt_common.h"

snt_result exec_make_jobs(snt_exec *, snt_diag *);
api_code *exec_job_code(snt_exec *, exec_job *);
static inline const codegen_code *exec_code_of(const snt_exec *x, uint32_t kernel) {
  return &x->program->kernels[kernel].code[x->target].code;
}

/* api/exec_chain.c: steps that one launch goes through, where the device has such launches */
snt_result exec_find_chains(snt_exec *, snt_diag *);
snt_result exec_make_chain_jobs(snt_exec *, snt_diag *);                    /* behind those of kernels; there is room */
static inline exec_chain *exec_chain_of(const snt_exec *x, uint32_t step) { /* null: the step has a launch of its own */
  for (uint32_t i = 0; i < x->chain_count; i++)
    if (step >= x->chains[i].first && step < x->chains[i].end) return &x->chains[i];
  return NULL;
}
uint64_t exec_chain_launches(const snt_exec *, uint64_t dispatches); /* at most, of so many steps that run */
uint64_t exec_chain_words(const snt_exec *, uint64_t dispatches);    /* of all their links */
void exec_drop_chains(snt_exec *);

/* api/exec_near.c: by the plan's prices, nanoseconds that all units save a run against one of them; is it less than waking the device's other threads takes? */
double exec_saved_by_units(const snt_exec *);
bool exec_runs_near(const snt_exec *);

/* api/exec_constants.c: constants; behind the jobs of kernels and chains those of constants, for which there is room */
static inline uint64_t exec_round(uint64_t bytes) { return bytes ? (bytes + 15) / 16 * 16 : RT_EMPTY_BYTES; }
snt_result exec_upload_new(snt_exec *, uint32_t buffer, uint64_t bytes, const void *data, snt_diag *); /* no data: zeros */
snt_result exec_expect_constants(snt_exec *, snt_diag *);
snt_result exec_build_constant(snt_exec *, exec_job *, snt_diag *);

/* api/exec_own.c: of a device that this library opened */
snt_result exec_own_create(snt_exec *, const snt_exec_info *, snt_diag *);
snt_result exec_own_build(snt_exec *, exec_job *, snt_diag *);
void exec_own_drop(snt_exec *);
snt_result exec_make_scratch(snt_exec *, const int64_t *symbols, snt_diag *); /* grows it; waits for what still uses the old one */
snt_result exec_make_rooms(snt_exec *, const int64_t *symbols, snt_diag *);   /* for the dispatches of these symbols; grows them */
snt_result exec_make_state(snt_exec *, uint32_t buffer, const int64_t *symbols, snt_diag *);

/* api/run.c: a run up to the driver: x->dispatches, `count` of them. Takes no memory and waits for nothing: SNT_E_ORDER where a job is not done,
   SNT_E_LIMIT beyond max_symbols, SNT_E_ARG where a state has neither an argument nor contents. */
snt_result exec_bind_run(snt_exec *, const snt_run_info *, uint32_t *count, snt_diag *);

/* api/same_bits.c: what reproducible programs need */
snt_result exec_create_unprobed(snt_device *, const snt_program *, const snt_exec_info *, snt_exec **out, snt_diag *);
snt_result exec_probe_same_bits(snt_device *, const snt_program *, snt_diag *); /* once a device */
snt_result exec_interpret(snt_exec *, const snt_exec_info *,
                          snt_diag *); /* on the host device: `inner` becomes an exec on the interpreter */
snt_result exec_run_inner(snt_exec *, const snt_run_info *, snt_diag *);
#endif
