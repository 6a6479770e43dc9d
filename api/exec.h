/* Shared by exec.c and run.c. */
#ifndef API_EXEC_H
#define API_EXEC_H
#include "api/handles.h"
#include "runtime/rt_common.h"

snt_result exec_make_scratch(snt_exec *, const int64_t *symbols, snt_diag *); /* grows it; waits for what still uses the old one */
snt_result exec_make_rooms(snt_exec *, const int64_t *symbols, snt_diag *);   /* for the dispatches of these symbols; grows them */
snt_result exec_make_state(snt_exec *, uint32_t buffer, const int64_t *symbols, snt_diag *);
#endif
