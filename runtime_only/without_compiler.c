/* What libsinter-runtime has in place of a compiler: it loads programs, and says so where a graph, the interpreter or a compilation
   would be needed. The full library's definitions are in api/blob_graph.c and api/same_bits.c. */
#include "api/blob.h"
#include "api/exec.h"
#include "ir/expr_private.h"

/* The expressions of a saved plan were made as small as they get when it was compiled; here they are read and evaluated. */
bool expr_recombine(expr_pool *pool, expr_acc *sum) {
  (void)pool, (void)sum;
  return false;
}

/* And what cannot be proven of them is looked for all the same. */
bool expr_is_negative_somewhere(const expr_pool *pool, ir_expr e) {
  (void)pool, (void)e;
  return false;
}

/* The plan and the code are all that is recorded; graph and kernel IR stay in the blob, unread. */
snt_result blob_load_graph(snt_program *p, const blob_bytes *text, const blob_bytes *data, snt_diag *diag) {
  (void)p, (void)text, (void)data, (void)diag;
  return SNT_OK;
}

const char *blob_compare_graph(const snt_program *p) {
  (void)p;
  return NULL;
}

snt_result blob_load_kernel(snt_program *p, api_kernel *k, snt_diag *diag) {
  (void)p, (void)k, (void)diag;
  return SNT_OK;
}

snt_result exec_probe_same_bits(snt_device *d, const snt_program *p, snt_diag *diag) {
  (void)p;
  return ir_fail(diag, SNT_E_UNSUPPORTED, "exec", 0,
                 "reproducible results on %s need a probe, and libsinter-runtime has no compiler for one", d->info.selector);
}

/* A library that opens no device has execs at doors only: nothing calls the rest. */
static snt_result no_device(snt_diag *diag) {
  return ir_fail(diag, SNT_E_UNSUPPORTED, "exec", 0, "libsinter-runtime opens no devices: the host attaches them");
}
snt_result exec_own_create(snt_exec *x, const snt_exec_info *info, snt_diag *diag) {
  (void)x, (void)info;
  return no_device(diag);
}
snt_result exec_own_build(snt_exec *x, exec_job *job, snt_diag *diag) {
  (void)x, (void)job;
  return no_device(diag);
}
void exec_own_drop(snt_exec *x) { (void)x; }
