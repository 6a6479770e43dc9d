/* What schedules take of emission beside emit.h: shared by the files of emit/ and schedule/. */
#ifndef FUSION_EMIT_PRIVATE_H
#define FUSION_EMIT_PRIVATE_H
#include "fusion/emit.h"
#include <stdio.h>

static inline uint32_t emit_var_number(const expr_pool *x, ir_expr variable) {
  return variable < 0 ? (uint32_t)x->nodes.at[IR_EXPR_NODE(variable)].value : UINT32_MAX;
}
bool emit_uses_lanes(const emit *, ir_expr);
bool emit_has_vars(const expr_pool *, ir_expr); /* beside those that the plan knows */
uint32_t emit_any_expr(emit *, ir_expr);        /* u32, a vector where the expression uses the lane variable */
bool emit_conditions_use_lanes(const emit *, uint32_t count, const map_condition *);
/* The open stage that holds node at `access`, or null. */
emit_stage_entry *emit_find_stage(emit *, uint32_t node, const map_access *access);
bool emit_is_stored(const emit *, uint32_t node); /* a stage keeps it in the buffer of an output */
uint32_t emit_stage_load(emit *, const emit_stage_entry *, const map_access *);
void emit_stage_store(emit *, const emit_stage_entry *, const map_access *, uint32_t value);
uint32_t emit_read_words(emit *, uint32_t node,
                         const map_access *first); /* four bytes of a stored node, or of views of one; 0: not beside each other there */
uint32_t emit_compute(emit *, uint32_t node, const map_access *);           /* not memoised: emit/compute.c */
uint32_t emit_known_pointwise(emit *, uint32_t node, const uint32_t *args); /* where the graph allows a cheaper way: emit/known.c; else 0 */
uint32_t emit_of_negative(kir_kernel *, uint32_t exp, float ulp);           /* exp or exp2 of what is never positive: needs no other half */
bool emit_reads_own_row(const emit *, uint32_t from,
                        uint32_t extremum);           /* `from` is a view that has the extremum of a row in that row alone */
bool emit_nan_shows(const emit *, uint32_t extremum); /* its operands' NaNs are in all that hangs on it, whatever it gives: emit/nan.c */
uint32_t emit_scatter(emit *, uint32_t node, const map_access *);
void emit_own_texts(const ir_graph *, uint32_t node, ir_arena *, kir_own *out); /* its name and texts */
uint32_t emit_custom(emit *, uint32_t node, const map_access *);                /* an operator of the user's own: emit/custom.c */
uint32_t emit_recall(const emit *, uint32_t node, const map_access *);          /* 0: not remembered */
uint32_t emit_register_loop(emit *, uint32_t node, const map_access *);         /* a loop or one of its picks: emit/repeat.c */
uint32_t emit_round_node(emit *, const ir_node *, uint32_t value);
uint32_t emit_dim(emit *, const ir_node *, ir_expr number);       /* of the node's type */
uint32_t emit_signed_index(emit *, uint32_t index);               /* i32, saturated */
uint32_t emit_near_index(emit *, uint32_t index, ir_expr extent); /* the nearest inside, of an index of any type */
ir_expr emit_index_var(emit *, uint32_t clamped, ir_expr extent); /* one such number as a coordinate */
uint32_t emit_element(emit *, uint32_t data, map_access *, ir_expr extent, uint32_t inside);
uint32_t emit_scatter_combine(emit *, ir_op scatter, uint32_t old, uint32_t value);
/* Memories of four-element texels: emit/texel.c. */
bool emit_texel_is_safe(const emit *); /* no read needs a guard: outside the buffer there are zeros, or nothing is read there */
ir_expr emit_buffer_elements(const emit *, const plan_buffer *); /* of the value: the bytes are in whole texels */
uint32_t emit_near(emit *, uint32_t memory, uint32_t number, ir_expr offset, uint32_t side_by_side); /* no number behind the last */
uint32_t emit_texel_element(emit *, uint32_t memory, ir_expr offset, uint32_t count, const map_condition *);
uint32_t emit_texel_vector(emit *, uint32_t memory, ir_expr rest);
bool emit_reads_texels(emit *, uint32_t node);                       /* would a read of this stored node go through texels? */
bool emit_view_reaches(const cost_profile *, int64_t most_elements); /* as far as so many, for a view of texels */
bool emit_reads_only_texels(emit *);                                 /* and of all of the group's inputs? */
kir_type emit_value_type(const emit *, uint32_t value);
/* Copies from global into local memory that go on beside other work and take no registers: emit/copy.c. */
typedef struct emit_copied {
  uint32_t load, inside; /* inside: the test that keeps it from being zeros, 0: always */
  uint32_t bytes;
} emit_copied;
bool emit_can_copy(const fusion_options *, kir_type kept); /* does the device copy so much at once? */
/* Is the value nothing but `kept` elements of memory as they lie there, perhaps widened to that type? */
bool emit_find_copied(const emit *, uint32_t value, kir_type kept, int32_t widened, emit_copied *out);
void emit_copy(emit *, const emit_copied *, uint32_t memory, uint32_t at); /* begins; to element `at` of the memory */
void emit_copy_close(emit *);                                              /* those begun are a set */
void emit_copy_wait(emit *, int64_t open);                                 /* until no more than so many sets are under way */
#endif
