/* The operations that expansions are written in: each appends one to the kernel, of the width of the vectors at hand. */
#include "ir/math/private.h"

static kir_type of(const km *m, int32_t base) { return kir_t(base, m->lanes); }

kv km_f(km *m, double x) { return kir_const_float(m->k, of(m, SNT_F32), x); }
kv km_u(km *m, uint32_t x) { return kir_const_int(m->k, of(m, SNT_U32), x); }
kv km_i(km *m, int32_t x) { return kir_const_int(m->k, of(m, SNT_I32), x); }
kv km_as_f(km *m, kv a) { return kir_bitcast(m->k, of(m, SNT_F32), a); }
kv km_as_u(km *m, kv a) { return kir_bitcast(m->k, of(m, SNT_U32), a); }
kv km_as_i(km *m, kv a) { return kir_bitcast(m->k, of(m, SNT_I32), a); }
kv km_to_f(km *m, kv a) { return kir_cast(m->k, of(m, SNT_F32), a); }
kv km_to_i(km *m, kv a) { return kir_cast(m->k, of(m, SNT_I32), a); }

#define KM_1(name) \
  kv km_##name(km *m, kv a) { return kir_1(m->k, KIR_##name, a); }
#define KM_2(name) \
  kv(km_##name)(km * m, kv a, kv b) { return kir_2(m->k, KIR_##name, a, b); }
KM_OPERATIONS(KM_1, KM_2)

kv(km_fma)(km *m, kv a, kv b, kv c) { return kir_3(m->k, KIR_fma, a, b, c); }
kv(km_select)(km *m, kv condition, kv a, kv b) { return kir_3(m->k, KIR_select, condition, a, b); }
kv km_one_where(km *m, kv condition) { return km_select(m, condition, km_u(m, 1), km_u(m, 0)); }
