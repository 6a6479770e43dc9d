/* Image ports: inputs that are read texel by texel, or through a sampler, from an image the host binds, outputs that are stored to one. The
   tensor's axes become rows, columns and channels; the image's format is the binder's business (a storage image's is set when pipelines are
   made). */
#ifndef FUSION_IMAGE_H
#define FUSION_IMAGE_H
#include "fusion/emit.h"

typedef struct image_axes {
  int32_t channel; /* -1: one channel, no axis */
  uint32_t y, x, channels;
} image_axes;
/* What the options say of a port (image_layout.c). */
fusion_image fusion_image_named(const fusion_options *, const char *name);
/* The layout (PLAN_IMAGE_*) of the port that node is; PLAN_IMAGE_NONE: it is no image. */
uint8_t fusion_image_layout(const fusion_context *, uint32_t node);
/* Null, or what keeps a tensor from being an image of this layout. */
const char *fusion_image_axes(const expr_pool *, const ir_tensor *, uint8_t layout, image_axes *out);
/* The symbol `port`.`axis` as an expression: where the port's part of its image begins; 0 if there is none. */
ir_expr fusion_image_origin(const expr_pool *, const char *port, char axis);
uint32_t emit_read_image(emit *, uint32_t node, uint8_t layout, const map_access *);
uint32_t emit_bind_image(emit *, uint32_t buffer, uint8_t access);
void emit_store_texel(emit *, uint32_t node, ir_expr x, ir_expr y, uint32_t count, const uint32_t *channels);
#endif
