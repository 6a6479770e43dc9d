/* WebP by libwebp: one picture, no animation; alpha is left out. */
#include "tools/pictures/picture.h"
#include <webp/decode.h>

bool picture_webp(snt_onnx_image *image) {
  WebPBitstreamFeatures f;
  if (WebPGetFeatures(image->file, image->file_size, &f) != VP8_STATUS_OK || f.width < 0 || f.height < 0)
    return picture_refuse(image, "the header is cut off, or none");
  if (f.has_animation) return picture_refuse(image, "an animation");
  if (!picture_wants_pixels(image, (uint64_t)f.width, (uint64_t)f.height)) return false;
  const size_t room = (size_t)f.width * (size_t)f.height * 3;
  return WebPDecodeRGBInto(image->file, image->file_size, image->rgb, room, f.width * 3) ||
         picture_refuse(image, "the pixels are damaged, or cut off");
}
