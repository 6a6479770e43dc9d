/* Which ports are images, and which axes of a tensor are rows, columns and channels. */
#include "fusion/image.h"

fusion_image fusion_image_named(const fusion_options *o, const char *name) {
  for (uint32_t i = 0; i < o->image_count; i++)
    if (!strcmp(o->images[i].name, name)) return o->images[i];
  return (fusion_image){.layout = PLAN_IMAGE_NONE};
}

uint8_t fusion_image_layout(const fusion_context *c, uint32_t node) {
  const ir_graph *g = c->graph;
  if (!c->options->image_count) return PLAN_IMAGE_NONE;
  for (uint32_t i = 0; i < g->inputs.count; i++)
    if (g->inputs.at[i].node == node) return fusion_image_named(c->options, &g->names.at[g->inputs.at[i].name]).layout;
  for (uint32_t i = 0; i < g->outputs.count; i++)
    if (g->outputs.at[i].node == node) return fusion_image_named(c->options, &g->names.at[g->outputs.at[i].name]).layout;
  return PLAN_IMAGE_NONE;
}

static bool is_texel_type(int32_t dtype) {
  return dtype == SNT_F32 || dtype == SNT_F16 || dtype == SNT_BF16 || dtype == SNT_U32 || dtype == SNT_I32;
}

const char *fusion_image_axes(const expr_pool *x, const ir_tensor *t, uint8_t layout, image_axes *out) {
  const uint32_t used = layout == PLAN_IMAGE_HW ? 2 : 3, first = t->rank - used;
  int64_t extent = 1;
  if (t->rank < used) return "too few axes";
  if (!is_texel_type(t->dtype)) return "its elements are no channels";
  for (uint32_t i = 0; i < first; i++)
    if (!expr_is_const(x, t->dims[i], &extent) || extent != 1) return "more than one image";
  *out = (image_axes){.channel = -1, .y = first, .x = first + 1, .channels = 1};
  if (layout == PLAN_IMAGE_CHW) *out = (image_axes){.channel = (int32_t)first, .y = first + 1, .x = first + 2};
  if (layout == PLAN_IMAGE_HWC) *out = (image_axes){.channel = (int32_t)first + 2, .y = first, .x = first + 1};
  if (out->channel < 0) return NULL;
  if (!expr_is_const(x, t->dims[out->channel], &extent) || extent < 1 || extent > 4) return "an image has one to four channels";
  out->channels = (uint32_t)extent;
  return NULL;
}

ir_expr fusion_image_origin(const expr_pool *x, const char *port, char axis) {
  const size_t length = strlen(port);
  for (uint32_t n = 0; n < x->nodes.count; n++) {
    if (x->nodes.at[n].kind != EXPR_SYMBOL) continue;
    const char *name = x->symbols.at[x->nodes.at[n].value].name;
    if (!strncmp(name, port, length) && name[length] == '.' && name[length + 1] == axis && !name[length + 2])
      return -(ir_expr)n - 1; /* the inverse of IR_EXPR_NODE */
  }
  return 0;
}
