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
     .weights = {{6, 0, 0}, {-4, -4, -4}, {-4, 4, -4}, {1, 2, 4}, {1, -2, 4}, {0, 0, 24}}},
    {.results = 2,
     .tile = 4,
     .input = {{1, 0, -1, 0}, {0, 1, 1, 0}, {0, -1, 1, 0}, {0, 1, 0, -1}},
     .output = {{1, 1, 1, 0}, {0, 1, -1, -1}},
     .weights = {{24, 0, 0}, {12, 12, 12}, {12, -12, 12}, {0, 0, 24}}},
};

uint32_t winograd_item_tiles(const fusion_context *c) {
  return !schedule_is_explicit(c) && c->options->profile->reads == COST_READS_TEXEL ? schedule_item_lanes(c) : 1;
}

bool winograd_is_allowed(const fusion_context *c) {
  return c->options->numerics == SNT_NUMERICS_DEFAULT || c->options->numerics == SNT_NUMERICS_FAST;
}

void winograd_matrix(const winograd_form *f, bool output, float *to) {
  const uint32_t rows = output ? f->results : f->tile;
  const int8_t(*m)[WINOGRAD_TILE] = output ? f->output : f->input;
  for (uint32_t i = 0; i < rows; i++)
    for (uint32_t j = 0; j < rows; j++)
      for (uint32_t r = 0; r < f->tile; r++)
        for (uint32_t s = 0; s < f->tile; s++) *to++ = (float)(m[i][r] * m[j][s]);
}

const winograd_form *winograd_of(const fusion_context *c, uint32_t node, bool *output) {
  const ir_graph *g = c->graph;
  if (ir_at(g, node)->op != IR_OP_contract || !winograd_is_allowed(c)) return NULL;
  const ir_node *matrix = ir_at(g, ir_arg(g, node, 1));
  if (matrix->op != IR_OP_const || matrix->type.dtype != SNT_F32 || matrix->type.rank != 4 || ir_at(g, node)->type.rank != 6) return NULL;
  const ir_const *data = &g->consts.at[matrix->payload];
  float made[WINOGRAD_MATRIX];
  for (uint32_t i = 0; data->kind == IR_CONST_DATA && i < WINOGRAD_FORMS; i++) {
    const ir_expr *dims = matrix->type.dims, tile = (ir_expr)winograd_forms[i].tile;
    if (dims[0] != dims[1] || dims[2] != tile || dims[3] != tile) continue;
    *output = dims[0] == (ir_expr)winograd_forms[i].results;
    if (!*output && dims[0] != tile) continue;
    winograd_matrix(&winograd_forms[i], *output, made);
    if (!memcmp(data->data, made, (size_t)(dims[0] * dims[0] * tile * tile) * sizeof *made)) return &winograd_forms[i];
  }
  return NULL;
}
