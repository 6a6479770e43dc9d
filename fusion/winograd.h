/* Winograd's convolutions F(m x m, 3 x 3): three contractions, of which the first and the last are with the small constant matrices below. */
#ifndef FUSION_WINOGRAD_H
#define FUSION_WINOGRAD_H
#include "fusion/fusion.h"
#include "ir/making.h"

enum {
  WINOGRAD_TILE = 6,
  WINOGRAD_MATRIX = WINOGRAD_TILE * WINOGRAD_TILE * WINOGRAD_TILE * WINOGRAD_TILE
}; /* inputs of the largest tile, a side */
typedef struct winograd_form {
  uint32_t results, tile; /* m, and m + 2 */
  int8_t input[WINOGRAD_TILE][WINOGRAD_TILE], output[WINOGRAD_TILE - 2][WINOGRAD_TILE];
  int8_t weights[WINOGRAD_TILE][3]; /* of 24ths */
} winograd_form;

enum { WINOGRAD_FORMS = 2 };
extern const winograd_form winograd_forms[WINOGRAD_FORMS];
void winograd_matrix(const winograd_form *, bool output, float *to); /* [i, j, r, s] = m[i, r] m[j, s] */

/* The weights of a convolution for the middle one, described: [i, j, channel, output] of the points, all of them f32. */
typedef struct winograd_weights {
  ir_making making;
  const winograd_form *form;
  int64_t channels, outputs;
  int64_t stride[4]; /* of what they are made of: output, channel, tap down, tap across */
  int32_t dtype;
} winograd_weights;
void winograd_describe(winograd_weights *); /* the making of it; its source and all else is given */

bool winograd_is_allowed(const fusion_context *);     /* the numerics may reassociate */
uint32_t winograd_item_tiles(const fusion_context *); /* of a row, that a work-item takes side by side */
/* Is the contraction with one of the matrices, in numerics that may reassociate? `output`: the last of the three. */
const winograd_form *winograd_of(const fusion_context *, uint32_t node, bool *output);
snt_result fusion_winograd(fusion_context *, bool *changed); /* the pass: priced */
snt_result schedule_winograd_build(fusion_context *, const fusion_group *, const winograd_form *,
                                   bool output); /* one of those two contractions */
#endif
