/* JPEG by libjpeg-turbo. Files of four colours are those of Adobe, which store them inverted. */
#include "tools/pictures/picture.h"
#include <stdlib.h>
#include <turbojpeg.h>

static bool decode_four(tjhandle jpeg, snt_onnx_image *image) {
  const size_t count = (size_t)image->width * image->height;
  uint8_t *four = malloc(count * 4);
  if (!four) return picture_refuse(image, "out of memory");
  const bool good = !tjDecompress2(jpeg, image->file, image->file_size, four, (int)image->width, 0, (int)image->height, TJPF_CMYK,
                                   TJFLAG_LIMITSCANS);
  for (size_t i = 0; i < count && good; i++)
    for (uint32_t c = 0; c < 3; c++) image->rgb[3 * i + c] = picture_share(four[4 * i + c], four[4 * i + 3]);
  free(four);
  return good;
}

static bool decode(tjhandle jpeg, snt_onnx_image *image) {
  int width = 0, height = 0, sampling, colours = 0; /* a file of tables alone sets none */
  if (tjDecompressHeader3(jpeg, image->file, image->file_size, &width, &height, &sampling, &colours) || width < 0 || height < 0)
    return false;
  if (!picture_wants_pixels(image, (uint64_t)width, (uint64_t)height)) return true;
  if (colours == TJCS_CMYK || colours == TJCS_YCCK) return decode_four(jpeg, image);
  return !tjDecompress2(jpeg, image->file, image->file_size, image->rgb, width, 0, height, TJPF_RGB, TJFLAG_LIMITSCANS);
}

bool picture_jpeg(snt_onnx_image *image) {
  tjhandle jpeg = tjInitDecompress();
  if (!jpeg) return picture_refuse(image, "out of memory");
  const bool good = decode(jpeg, image) || picture_refuse(image, "%.100s", tjGetErrorStr2(jpeg));
  tjDestroy(jpeg);
  return good && image->rgb && !image->why[0];
}
