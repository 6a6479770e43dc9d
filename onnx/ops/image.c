/* ImageDecoder: the file of a picture to its pixels. How large the picture is stands in the file, so it has to be known when the model is loaded, and its
   pixels become a constant; the caller decodes (snt_onnx_info.decode_image). */
#include "onnx/import_private.h"

static const uint64_t max_pixels = 1 << 26; /* a few bytes can claim to be any number of them */

/* The bytes of the operand; null after refusing. */
static const void *known_file(onnx_call *c, int64_t *size) {
  const uint32_t file = onnx_in(c, 0);
  if (!file) return onnx_refuse(c, "input 0 is missing"), NULL;
  const ir_tensor type = *onnx_type_of(c, file);
  if (type.dtype != SNT_U8 || type.rank != 1) return onnx_refuse(c, "input 0 must be the bytes of a file: uint8[n]"), NULL;
  const void *bytes = ir_const_data(c->g, file);
  if (bytes && expr_is_const(c->g->pool, type.dims[0], size) && *size > 0) return bytes;
  onnx_refuse(
      c, "input 0 (%.60s): the file must be known when the model is loaded: a constant, or an input that is fixed to it (--fix NAME=FILE)",
      c->in[0]->name);
  return NULL;
}

/* A pixel in the order that is asked for, in its place: of three bytes, or one (as the luma of BT.601, in 16 bits). */
static void put_pixel(const uint8_t *rgb, bool grey, bool reversed, uint8_t *to) {
  const uint8_t red = rgb[0], green = rgb[1], blue = rgb[2];
  if (grey) to[0] = (uint8_t)((red * 19595u + green * 38470u + blue * 7471u + 0x8000u) >> 16);
  else to[0] = reversed ? blue : red, to[1] = green, to[2] = reversed ? red : blue;
}

bool onnx_op_image_decoder(onnx_call *c) {
  const char *order = onnx_text(c, "pixel_format", "RGB");
  const snt_onnx_info *info = c->im->info;
  const bool grey = !strcmp(order, "Grayscale"), reversed = !strcmp(order, "BGR");
  int64_t size = 0;
  if (!grey && !reversed && strcmp(order, "RGB") != 0) return onnx_refuse(c, "pixel_format %.20s", order);
  if (!info || !info->decode_image) return onnx_refuse(c, "no decoder of pictures was given (snt_onnx_info.decode_image)");
  snt_onnx_image image = {.file = known_file(c, &size), .file_size = (size_t)size};
  if (!image.file) return false;
  if (info->decode_image(info->user, &image) != SNT_OK) return onnx_refuse(c, "%.127s", image.why);
  const uint64_t pixels = (uint64_t)image.width * image.height, channels = grey ? 1 : 3;
  if (!pixels || pixels > max_pixels) return onnx_refuse(c, "a picture of %u x %u pixels", image.width, image.height);
  image.rgb = ir_arena_take(onnx_arena(c), pixels * 3, 64);
  if (!image.rgb) return false;
  if (info->decode_image(info->user, &image) != SNT_OK) return onnx_refuse(c, "%.127s", image.why);
  for (uint64_t i = 0; i < pixels; i++) put_pixel(image.rgb + 3 * i, grey, reversed, image.rgb + channels * i);
  const ir_tensor type = {.dtype = SNT_U8, .rank = 3, .dims = {image.height, image.width, (ir_expr)channels}};
  return onnx_out(c, 0, ir_add_const(c->g, &type, &(ir_const){.kind = IR_CONST_DATA, .data = image.rgb}));
}
