/* Files of pictures as bytes: what snt_onnx_info.decode_image asks for. A format is a row of picture.c and a reader in a file of its own; those that
   need a library are built where CMake found it. Bytes are not trusted: a reader says why it refuses, and never more than extents ask for is made. */
#ifndef TOOLS_PICTURES_PICTURE_H
#define TOOLS_PICTURES_PICTURE_H
#include <sinter/sinter_onnx.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* As snt_onnx_info.decode_image; `user` is not read. The one call of libsinter-pictures. */
SNT_API snt_result SNT_CALL picture_decode(void *user, snt_onnx_image *);
/* The formats that are built in, or that are not, with spaces between. */
const char *picture_formats(bool built_in, char *text, size_t room);

/* ---- between the readers ---- */
typedef bool (*picture_reader)(snt_onnx_image *); /* false: `why` says why */
bool picture_refuse(snt_onnx_image *, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Called by a reader that knows the extents. True: the pixels are wanted, and there is room for them. */
bool picture_wants_pixels(snt_onnx_image *, uint64_t width, uint64_t height);
bool picture_bmp(snt_onnx_image *), picture_pnm(snt_onnx_image *), picture_png(snt_onnx_image *), picture_jpeg(snt_onnx_image *);
bool picture_tiff(snt_onnx_image *), picture_webp(snt_onnx_image *), picture_jpeg2000(snt_onnx_image *);
/* u * v / 255, rounded */
static inline uint8_t picture_share(uint32_t u, uint32_t v) {
  const uint32_t product = u * v + 128;
  return (uint8_t)((product + (product >> 8)) >> 8);
}
#endif
