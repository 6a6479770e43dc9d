/* TIFF by libtiff: the first picture of a file; alpha is left out. */
#include "tools/pictures/picture.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tiffio.h>

enum { MOST_AT_ONCE = 1 << 30 }; /* bytes that libtiff may take for one thing */
typedef struct source {
  const uint8_t *file;
  uint64_t size, at;
} source;

static tmsize_t read_some(thandle_t user, void *to, tmsize_t count) {
  source *s = user;
  const uint64_t left = s->at < s->size ? s->size - s->at : 0, taken = (uint64_t)count < left ? (uint64_t)count : left;
  if (count <= 0) return 0;
  if (taken) memcpy(to, s->file + s->at, taken);
  s->at += taken;
  return (tmsize_t)taken;
}
static tmsize_t write_none(thandle_t user, void *from, tmsize_t count) {
  (void)user, (void)from, (void)count;
  return 0;
}
static toff_t seek(thandle_t user, toff_t offset, int whence) {
  source *s = user;
  s->at = whence == SEEK_SET ? offset : whence == SEEK_CUR ? s->at + offset : s->size + offset;
  return s->at;
}
static int end(thandle_t user) {
  (void)user;
  return 0;
}
static toff_t size_of(thandle_t user) { return ((source *)user)->size; }

static int note_error(TIFF *tiff, void *user, const char *module, const char *format, va_list list) {
  char text[128];
  (void)tiff, (void)module;
  vsnprintf(text, sizeof text, format, list);
  picture_refuse(user, "%.100s", text);
  return 1;
}
static int note_nothing(TIFF *tiff, void *user, const char *module, const char *format, va_list list) {
  (void)tiff, (void)user, (void)module, (void)format, (void)list;
  return 1;
}

/* Colours are not to be multiplied by alpha: it counts as done. */
static void leave_alpha(TIFF *tiff) {
  uint16_t count = 0, *kinds = NULL, done[] = {EXTRASAMPLE_ASSOCALPHA};
  if (TIFFGetField(tiff, TIFFTAG_EXTRASAMPLES, &count, &kinds) && count) TIFFSetField(tiff, TIFFTAG_EXTRASAMPLES, 1, done);
}

static bool decode(TIFF *tiff, snt_onnx_image *image) {
  uint32_t width = 0, height = 0;
  (void)TIFFGetField(tiff, TIFFTAG_IMAGEWIDTH, &width);
  (void)TIFFGetField(tiff, TIFFTAG_IMAGELENGTH, &height);
  if (!picture_wants_pixels(image, width, height)) return false;
  const size_t count = (size_t)width * height;
  uint32_t *pixels = calloc(count, sizeof *pixels);
  if (!pixels) return picture_refuse(image, "out of memory");
  leave_alpha(tiff);
  const bool good = TIFFReadRGBAImageOriented(tiff, width, height, pixels, ORIENTATION_TOPLEFT, 1) && !image->why[0];
  for (size_t i = 0; i < count && good; i++) {
    image->rgb[3 * i] = TIFFGetR(pixels[i]);
    image->rgb[3 * i + 1] = TIFFGetG(pixels[i]);
    image->rgb[3 * i + 2] = TIFFGetB(pixels[i]);
  }
  free(pixels);
  return good || picture_refuse(image, "the pixels are damaged, or cut off");
}

bool picture_tiff(snt_onnx_image *image) {
  source s = {image->file, image->file_size, 0};
  TIFFOpenOptions *options = TIFFOpenOptionsAlloc();
  if (!options) return picture_refuse(image, "out of memory");
  TIFFOpenOptionsSetMaxSingleMemAlloc(options, MOST_AT_ONCE);
  TIFFOpenOptionsSetErrorHandlerExtR(options, note_error, image);
  TIFFOpenOptionsSetWarningHandlerExtR(options, note_nothing, NULL);
  TIFF *tiff = TIFFClientOpenExt("picture", "rm", &s, read_some, write_none, seek, end, size_of, NULL, NULL, options);
  TIFFOpenOptionsFree(options);
  if (!tiff) return picture_refuse(image, "the header is cut off, or none");
  const bool good = decode(tiff, image);
  TIFFClose(tiff);
  return good;
}
