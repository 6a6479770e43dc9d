/* PNG by libpng: colours as they are stored, without gamma; alpha is left out; of 16 bits the upper 8. */
#include "tools/pictures/picture.h"
#include <png.h>

static void on_error(png_structp png, png_const_charp text) {
  picture_refuse(png_get_error_ptr(png), "%.100s", text);
  png_longjmp(png, 1);
}
static void on_warning(png_structp png, png_const_charp text) { (void)png, (void)text; }

static void take_bytes(png_structp png, png_bytep to, size_t count) {
  snt_onnx_image *left = png_get_io_ptr(png);
  if (count > left->file_size) png_error(png, "the file is cut off");
  const uint8_t *from = left->file;
  for (size_t i = 0; i < count; i++) to[i] = from[i];
  left->file = from + count;
  left->file_size -= count;
}

static bool decode(png_structp png, png_infop info, snt_onnx_image *image) {
  snt_onnx_image left = {.file = image->file, .file_size = image->file_size};
  if (setjmp(png_jmpbuf(png))) return false;
  png_set_read_fn(png, &left, take_bytes);
  png_read_info(png, info);
  if (!picture_wants_pixels(image, png_get_image_width(png, info), png_get_image_height(png, info))) return false;
  png_set_expand(png);
  png_set_strip_16(png);
  png_set_strip_alpha(png);
  png_set_gray_to_rgb(png);
  const int passes = png_set_interlace_handling(png);
  png_read_update_info(png, info);
  if (png_get_rowbytes(png, info) != (size_t)image->width * 3) return picture_refuse(image, "rows of another size");
  for (int pass = 0; pass < passes; pass++)
    for (uint32_t y = 0; y < image->height; y++) png_read_row(png, image->rgb + (size_t)y * image->width * 3, NULL);
  return true;
}

bool picture_png(snt_onnx_image *image) {
  png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, image, on_error, on_warning);
  png_infop info = png ? png_create_info_struct(png) : NULL;
  const bool good = info ? decode(png, info, image) : picture_refuse(image, "out of memory");
  png_destroy_read_struct(&png, &info, NULL);
  return good;
}
