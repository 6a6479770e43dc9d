/* The matrices of Winograd's convolutions, and which contractions are with one of them. */
#include "fusion/winograd.h"
#include "fusion/schedule_common.h"

/* Points 0, 1, -1, 2, -2, infinity; and 0, 1, -1, infinity. */
const winograd_form winograd_forms[WINOGRAD_FORMS] = {
    {.results = 4,
     .tile = 6,
     .input =
         {{4, 0, -5, 0, 1, 0}, {0, -4, -4, 1, 1, 0}, {0, 4, -4, -1, 1, 0}, {0, -2, -1, 2, 1, 0}, {0, 2, -1, -2, 1, 0}, {0, 4, 0, -5, 0, 1}},
     .output = {{1, 1, 1, 1, 1, 0}, {0, 1, -1, 2, -2, 0}, {0, 1, 1, 4, 4, 0}, {0, 1, -1, 8, -8, 1}},
     .weights = {{1. / 4, 0, 0},
                 {-1. / 6, -1. / 6, -1. / 6},
                 {-1. / 6, 1. / 6, -1. / 6},
                 {1. / 24, 1. / 12, 1. / 6},
                 {1. / 24, -1. / 12, 1. / 6},
                 {0, 0, 1}}},
    {.results = 2,
     .tile = 4,
     .input = {{1, 0, -1, 0}, {0, 1, 1, 0}, {0, -1, 1, 0}, {0, 1, 0, -1}},
     .output = {{1, 1, 1, 0}, {0, 1, -1, -1}},
     .weights = {{1, 0, 0}, {.5, .5, .5}, {.5, -.5, .5}, {0, 0, 1}}},
};

float winograd_coefficient(const winograd_form *f, bool output, uint32_t i, uint32_t r) {
  return output ? f->output[i][r] : f->input[i][r];
}

uint32_t winograd_item_tiles(const fusion_context *c) {
  return !schedule_is_explicit(c) && c->options->profile->reads == COST_READS_TEXEL ? schedule_item_lanes(c) : 1;
}

bool winograd_is_allowed(const fusion_context *c) {
  return c->options->numerics == SNT_NUMERICS_DEFAULT || c->options->numerics == SNT_NUMERICS_FAST;
}

/* Of a constant [i, j, r, s]: is it m[i, r] m[j, s]? */
static bool holds(const float *data, const winograd_form *f, bool output) {
  const uint32_t rows = output ? f->results : f->tile;
  for (uint32_t i = 0; i < rows; i++)
    for (uint32_t j = 0; j < rows; j++)
      for (uint32_t r = 0; r < f->tile; r++)
        for (uint32_t s = 0; s < f->tile; s++)
          if (*data++ != winograd_coefficient(f, output, i, r) * winograd_coefficient(f, output, j, s)) return false;
  return true;
}

const winograd_form *winograd_of(const fusion_context *c, uint32_t node, bool *output) {
  const ir_graph *g = c->graph;
  if (ir_at(g, node)->op != IR_OP_contract || !winograd_is_allowed(c)) return NULL;
  const ir_node *matrix = ir_at(g, ir_arg(g, node, 1));
  if (matrix->op != IR_OP_const || matrix->type.dtype != SNT_F32 || matrix->type.rank != 4 || ir_at(g, node)->type.rank != 6) return NULL;
  const ir_const *data = &g->consts.at[matrix->payload];
  for (uint32_t i = 0; data->kind == IR_CONST_DATA && i < WINOGRAD_FORMS; i++) {
    const ir_expr *dims = matrix->type.dims, tile = (ir_expr)winograd_forms[i].tile;
    if (dims[0] != dims[1] || dims[2] != tile || dims[3] != tile) continue;
    *output = dims[0] == (ir_expr)winograd_forms[i].results;
    if ((*output || dims[0] == tile) && holds(data->data, &winograd_forms[i], *output)) return &winograd_forms[i];
  }
  return NULL;
}
