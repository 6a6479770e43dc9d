/* Which format a file has, and the table of them. */
#include "tools/pictures/picture.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef struct picture_format {
  const char *name, *mask, *start; /* `start` where the mask has an x */
  picture_reader read;             /* null: built without its library */
} picture_format;
#if PICTURE_HAS_JPEG
#define READ_JPEG picture_jpeg
#else
#define READ_JPEG NULL
#endif
#if PICTURE_HAS_TIFF
#define READ_TIFF picture_tiff
#else
#define READ_TIFF NULL
#endif
#if PICTURE_HAS_WEBP
#define READ_WEBP picture_webp
#else
#define READ_WEBP NULL
#endif
#if PICTURE_HAS_JPEG2000
#define READ_JPEG2000 picture_jpeg2000
#else
#define READ_JPEG2000 NULL
#endif
// clang-format off
static const picture_format formats[] = {
    {"bmp", "xx", "BM", picture_bmp},
    {"pnm", "xx", "P1", picture_pnm}, {"pnm", "xx", "P2", picture_pnm}, {"pnm", "xx", "P3", picture_pnm},
    {"pnm", "xx", "P4", picture_pnm}, {"pnm", "xx", "P5", picture_pnm}, {"pnm", "xx", "P6", picture_pnm},
    {"png", "xxxxxxxx", "\x89PNG\r\n\x1a\n", picture_png},
    {"jpeg", "xxx", "\xff\xd8\xff", READ_JPEG},
    {"tiff", "xxxx", "II*\0", READ_TIFF}, {"tiff", "xxxx", "MM\0*", READ_TIFF}, {"tiff", "xxxx", "II+\0", READ_TIFF}, {"tiff", "xxxx", "MM\0+", READ_TIFF},
    {"webp", "xxxx    xxxx", "RIFF    WEBP", READ_WEBP},
    {"jpeg2000", "xxxxxxxxxxxx", "\0\0\0\fjP  \r\n\x87\n", READ_JPEG2000}, {"jpeg2000", "xxxx", "\xff\x4f\xff\x51", READ_JPEG2000},
};
// clang-format on
enum { FORMATS = sizeof formats / sizeof *formats };

bool picture_refuse(snt_onnx_image *image, const char *format, ...) {
  va_list list;
  va_start(list, format);
  if (!image->why[0]) vsnprintf(image->why, sizeof image->why, format, list);
  va_end(list);
  return false;
}

bool picture_wants_pixels(snt_onnx_image *image, uint64_t width, uint64_t height) {
  if (!width || !height || width > UINT32_MAX || height > UINT32_MAX)
    return picture_refuse(image, "a picture of %llu x %llu", (unsigned long long)width, (unsigned long long)height);
  if (image->rgb) return (image->width == width && image->height == height) || picture_refuse(image, "other extents than before");
  image->width = (uint32_t)width;
  image->height = (uint32_t)height;
  return false;
}

static bool starts_as(const snt_onnx_image *image, const picture_format *f) {
  const size_t length = strlen(f->mask);
  const char *file = image->file;
  if (image->file_size < length) return false;
  for (size_t i = 0; i < length; i++)
    if (f->mask[i] == 'x' && file[i] != f->start[i]) return false;
  return true;
}

snt_result SNT_CALL picture_decode(void *user, snt_onnx_image *image) {
  char formats_of[128];
  (void)user;
  image->why[0] = 0;
  for (uint32_t i = 0; i < FORMATS; i++) {
    const picture_format *f = &formats[i];
    if (!starts_as(image, f)) continue;
    if (f->read && f->read(image)) return SNT_OK;
    if (!image->why[0] && f->read && !image->rgb && image->width) return SNT_OK; /* the extents, which were all that was asked for */
    char why[sizeof image->why];
    snprintf(why, sizeof why, "%s: %.100s", f->name, f->read ? image->why : "this build has no decoder of it");
    memcpy(image->why, why, sizeof why);
    return SNT_E_UNSUPPORTED;
  }
  picture_refuse(image, "the file is none of %s", picture_formats(true, formats_of, sizeof formats_of));
  return SNT_E_UNSUPPORTED;
}

const char *picture_formats(bool built_in, char *text, size_t room) {
  size_t length = 0;
  text[0] = 0;
  for (uint32_t i = 0; i < FORMATS && length < room; i++)
    if ((formats[i].read != NULL) == built_in && (i == 0 || strcmp(formats[i].name, formats[i - 1].name) != 0))
      length += (size_t)snprintf(text + length, room - length, "%s%s", length ? " " : "", formats[i].name);
  return text;
}
