/* The builders behind the table fusion_schedules; one file schedule/<kind>.c each. */
#ifndef FUSION_SCHEDULES_H
#define FUSION_SCHEDULES_H
#include "fusion/emit.h"

/* Equal groups are built once (schedule/again.c): one memory a compile. Null: out of memory. */
typedef struct schedule_memory schedule_memory;
schedule_memory *schedule_memory_new(fusion_context *);
snt_result schedule_build(schedule_memory *, const fusion_group *);

bool schedule_pitch(fusion_context *); /* of values between kernels; false: out of memory (schedule/pitch.c) */

bool schedule_loop_accepts(const fusion_context *, const fusion_group *, const char **why_not);
snt_result schedule_loop_build(fusion_context *, const fusion_group *);
bool schedule_reduce_accepts(const fusion_context *, const fusion_group *, const char **why_not);
snt_result schedule_reduce_build(fusion_context *, const fusion_group *);
bool schedule_row_accepts(const fusion_context *, const fusion_group *, const char **why_not);
snt_result schedule_row_build(fusion_context *, const fusion_group *);
/* In which sweep a kernel of rows stores each output of the group, whose positions are noted: the first that computes what the output is made of, where that
   reads no sweep's result; else the `last`. */
void schedule_store_sweeps(const fusion_context *, const fusion_group *, uint8_t last, uint8_t *sweep);
/* What the sweeps need every second element of, or third: `found`, at most so many; a copy of one, part by part, for a work-item (schedule/row_parts.c). */
uint32_t schedule_row_parts(const fusion_context *, const uint8_t *needed, ir_expr columns, uint32_t most, uint32_t *found);
void schedule_stage_parts(emit *, uint32_t node, ir_expr group, ir_expr groups);
bool schedule_contract_accepts(const fusion_context *, const fusion_group *, const char **why_not);
snt_result schedule_contract_build(fusion_context *, const fusion_group *);
bool schedule_window_accepts(const fusion_context *, const fusion_group *, const char **why_not);
snt_result schedule_window_build(fusion_context *, const fusion_group *);
/* false: not for this device or group, nothing was made */
bool schedule_window_lanes_build(fusion_context *, const fusion_group *, const char *suffix, snt_result *result);
bool schedule_turned_lanes_build(fusion_context *, const fusion_group *, uint32_t source_axis, snt_result *result);
bool schedule_scan_accepts(const fusion_context *, const fusion_group *, const char **why_not);
snt_result schedule_scan_build(fusion_context *, const fusion_group *);
snt_result schedule_scatter_build(fusion_context *, const fusion_group *);
snt_result schedule_sort_build(fusion_context *, const fusion_group *);
snt_result schedule_repeat_build(fusion_context *, const fusion_group *);
/* The plan's newest loop, whose body was compiled in this context: one kernel where that pays; `known`: why it does not, or null. And would it, of a body
   that no loop of the plan is yet? */
snt_result schedule_persistent(fusion_context *, const fusion_group *, const fusion_context *body, const plan_loop *,
                               const plan_binding *flag, const char *known); /* flag: of a loop that ends by one */
bool schedule_persistent_pays(fusion_context *, const fusion_group *, const fusion_context *body, const plan_loop *, const char **why);
snt_result schedule_opaque_build(fusion_context *, const fusion_group *);
bool schedule_image_accepts(const fusion_context *, const fusion_group *, const char **why_not);
snt_result schedule_image_build(fusion_context *, const fusion_group *);
bool schedule_transpose_wanted(fusion_context *, const fusion_group *); /* a loop group that is better as a transpose */
bool schedule_transpose_accepts(const fusion_context *, const fusion_group *, const char **why_not);
snt_result schedule_transpose_build(fusion_context *, const fusion_group *);
bool schedule_attention_accepts(const fusion_context *, const fusion_group *, const char **why_not);
snt_result schedule_attention_build(fusion_context *, const fusion_group *);
void schedule_attention_work(const fusion_context *, const fusion_group *, cost_work *);
#endif
