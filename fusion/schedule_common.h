/* What the schedules share: vector widths from the profile, the choice of the unit-stride axis, splitting of work over groups. */
#ifndef FUSION_SCHEDULE_COMMON_H
#define FUSION_SCHEDULE_COMMON_H
#include "fusion/emit.h"

/* The iteration space, or a box of it, as rows x columns: dimensions [0, split) of `dims` are rows, the rest one flat column variable. */
typedef struct schedule_space {
  uint32_t rank, split;
  ir_expr origin[SNT_MAX_RANK], dims[SNT_MAX_RANK], rows, columns;
} schedule_space;
ir_expr schedule_product(expr_pool *, uint32_t count, const ir_expr *dims);
/* Do so many lines, each `apart` bytes from the one before, leave less than half of the near cache's ways to others? (schedule/pitch.c) */
bool schedule_crowds(const cost_profile *, int64_t lines, int64_t apart);
int64_t schedule_hint(const expr_pool *, ir_expr);                  /* value at the hints of the symbols */
bool schedule_sorts_flags(const ir_graph *, uint32_t node);         /* long lines by two keys: what a condition was cast to */
int64_t schedule_sort_first(const fusion_context *, uint32_t node); /* of a long line, whose first few are selected: how many; else 0 */
bool schedule_runs(const ir_plan *, uint32_t step);                 /* at the hints: its guards hold, and of a choice no earlier one's do */
bool schedule_is_explicit(const fusion_context *);                  /* the schedule forms vectors itself */
bool schedule_shares_local(const fusion_context *);                 /* items share local memory that is near, beside reads of storage */
enum { ROW_SWEEPS = 16 };                                           /* one more than the reductions of a row kernel */
uint32_t schedule_lanes(const fusion_context *);                    /* elements of a vector: 4, 8 or 16 */
/* The same for a loop that computes transcendental functions: two registers where one holds less than a vector may have. Such a function is one chain of
   operations that wait for each other; compilers make two of a vector of two registers, step by step, but not of two vectors, one after the other. */
uint32_t schedule_dear_lanes(const fusion_context *);
/* Where work-items are lanes: results of one, a vector of four; where denormals are made of integers one: code is long then, and there is one copy of
   it, not four in a vector and another for the rest. */
enum { SCHEDULE_LINE = 32 }; /* elements that memory gives items beside each other at once */
uint32_t schedule_item_lanes(const fusion_context *);
/* The same where vectors side by side are to wait for each other's operations less: only where what is read lies beside each other in so many. */
uint32_t schedule_wide_lanes(const fusion_context *, const fusion_group *);
bool schedule_has_subgroups(const fusion_context *); /* of the profile's size, and no target that has none, or that prints no digits */
/* May the outputs go out by hand (emit_by_hand), with so many results of an item written out one after the other, in so many groups? At most so many
   operations of them all, and a 64th of that for each: where few are, stores count; rows gain besides that no sweep reads or computes again. */
enum { HAND_LOOP = 4096, HAND_ROW = 8192 };
bool schedule_by_hand(const fusion_context *, const fusion_group *, int64_t most, int64_t elements, int64_t groups);
/* Elements that share a word of 32 bits, as the device has no memory of their size: each is taken out of its word, f16 and bf16 by a dozen operations. */
bool schedule_is_packed(const fusion_context *, int32_t dtype);
bool schedule_has_dear(const ir_graph *, const fusion_group *); /* it computes transcendental functions */
#define SCHEDULE_NEAR_VECTORS 0.5 /* of the second cache, for vectors that are computed beside rows: each work-item has its own */
uint32_t schedule_row_lanes(const fusion_context *,
                            const fusion_group *); /* of explicit vectors of a kernel of rows, whichever way they lie */
/* Can what is kept of a row lie near the items? Along the unit stride where there is such memory; across it where so many vectors of whole rows, whose length
   is known, stay in the near cache. */
bool schedule_keeps_rows(const fusion_context *, const fusion_group *, uint32_t vectors);
/* Is the node made of what a reduction of the group gives? What takes more than `steps` to follow is taken to be. */
bool schedule_depends_on_reduction(const fusion_context *, const fusion_group *, uint32_t node, uint32_t *steps);
void schedule_space_init(fusion_context *, schedule_space *, const ir_tensor *, uint32_t split);
void schedule_space_split(fusion_context *, schedule_space *, uint32_t split);
/* The smallest split of the space of `node`, or of a box of it, for which every load of every output is affine and unconditional along the columns; rank - 1 if
   none is. */
void schedule_pick_split(fusion_context *, const fusion_group *, uint32_t node, schedule_space *);
/* Coordinates of (row, column). */
map_access schedule_at(expr_pool *, const schedule_space *, ir_expr row, ir_expr column);
double schedule_least_parts(const fusion_context *); /* of work that are worth having: a few a core */
/* Groups that split `total` units of work of `unit_elements` elements each; *per is units a group. For explicit classes: a few groups a core. */
ir_expr schedule_split_work(fusion_context *, ir_expr total, int64_t unit_elements, int64_t *per);
/* Even parts of `extent`: part p is [start(p), start(p + 1)). The larger ones lie evenly among the others, so that as many parts have as much anywhere. */
ir_expr schedule_part_start(expr_pool *, ir_expr extent, ir_expr parts, ir_expr p);
/* Of its tensor, at the hints. */
double schedule_bytes(const fusion_context *, uint32_t node);
uint32_t schedule_spare_bindings(const fusion_context *, const fusion_group *); /* what the device leaves for workspaces beside the ports */
/* Its operands are too large for the caches, and stores pass them by; runs: they go on where the ones before ended. */
bool schedule_streams(fusion_context *, const fusion_group *, bool runs);
/* A loop from lo to hi by vectors, then the rest by ones; `body` is called for each with the column expression while lanes are set. */
typedef void (*schedule_body)(emit *, void *user, ir_expr column);
void schedule_vector_loop(emit *, ir_expr lo, ir_expr hi, uint32_t lanes, uint32_t unroll, schedule_body, void *user);
/* One of `units` pieces of work of `elements` each: a loop over this group's share (explicit), or the piece of this item inside a test (lanes). */
ir_expr schedule_units(emit *, ir_expr units, int64_t elements, ir_expr *groups);
void schedule_units_end(emit *, ir_expr unit);
/* Twice as wide: each of `rows` and the one of `more` beside it. */
void schedule_join(emit *, uint32_t *rows, const uint32_t *more, uint32_t width);
/* A step that stores the value of `node`, loaded where it is stored and computed where it is free, into a buffer of its shape. */
snt_result schedule_copy(fusion_context *, uint32_t node, uint32_t buffer);
#endif
