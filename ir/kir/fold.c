/* fold: rebuilds the kernel with every instruction in its simplest exact form; ifs and loops that are decided vanish. */
#include "ir/kir_pass_private.h"

snt_result kir_pass_fold(const kir_kernel *in, kir_kernel *out, const kir_caps *caps, snt_diag *diag) {
  (void)caps;
  return kir_rebuild(in, out, false, diag);
}
