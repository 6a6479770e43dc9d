/* PNG ports through libpng's simplified API: "file.png:layout:lo..hi". f32 and u8 tensors; 1, 3 or 4 channels. */
#include "tools/sinter/tool.h"
#include <errno.h>
#include <math.h>
#include <png.h>
#include <stdlib.h>
#include <string.h>

typedef struct png_spec {
  char path[4096];
  uint32_t height, width, channels;
  size_t row, column, channel;
  float lo, hi;
} png_spec;

/* "LO..HI". To strtof and scanf the first dot behind LO is a part of it. */
static bool parse_range(const char *text, png_spec *out) {
  char first[32], *end;
  const char *dots = strstr(text, "..");
  const size_t length = dots ? (size_t)(dots - text) : 0;
  if (!length || length >= sizeof first || !dots[2]) return false;
  memcpy(first, text, length);
  first[length] = 0;
  out->lo = strtof(first, &end);
  if (*end) return false;
  out->hi = strtof(dots + 2, &end);
  return !*end && isfinite(out->lo) && isfinite(out->hi) && out->lo != out->hi;
}

/* ":LAYOUT" or ":LAYOUT:LO..HI" */
static bool parse_form(const char *text, char layout[8], png_spec *out) {
  int end = 0;
  if (!*text) return true;
  if (sscanf(text, ":%7[a-z]%n", layout, &end) < 1) return false;
  return !text[end] || (text[end] == ':' && parse_range(text + end + 1, out));
}

/* Extents and strides of the image inside the tensor. */
static snt_result parse_spec(const char *spec, const tool_tensor *t, png_spec *out, snt_diag *diag) {
  char layout[8] = "";
  const char *colon = strstr(spec, ".png");
  *out = (png_spec){.lo = 0, .hi = 1};
  if (t->port.tensor.dtype == SNT_U8) out->hi = 255;
  const size_t length = (size_t)(colon - spec) + 4;
  if (length >= sizeof out->path) return host_fail(diag, SNT_E_ARG, "png", "the path is too long");
  memcpy(out->path, spec, length);
  if (!parse_form(spec + length, layout, out))
    return host_fail(diag, SNT_E_ARG, "png", "expected :nchw, :nhwc or :hw, then :LO..HI, in \"%s\"", spec);
  const uint32_t rank = t->port.tensor.rank;
  const int64_t *d = t->dims;
  const bool plane = !strcmp(layout, "hw") || (!layout[0] && rank == 2), last = !strcmp(layout, "nhwc");
  if (layout[0] && !plane && !last && strcmp(layout, "nchw")) return host_fail(diag, SNT_E_ARG, "png", "unknown layout \"%s\"", layout);
  if (rank < (plane ? 2u : 3u)) return host_fail(diag, SNT_E_SHAPE, "png", "%s has no image of that layout", t->port.name);
  const int64_t *e = d + rank - (plane ? 2 : 3);
  out->channels = plane ? 1 : (uint32_t)(last ? e[2] : e[0]);
  out->height = (uint32_t)(plane || last ? e[0] : e[1]);
  out->width = (uint32_t)(plane || last ? e[1] : e[2]);
  out->channel = plane || last ? 1 : (size_t)out->height * out->width;
  out->column = last ? out->channels : 1;
  out->row = (size_t)out->width * out->column;
  if ((uint64_t)out->channels * out->height * out->width != t->elements)
    return host_fail(diag, SNT_E_SHAPE, "png", "%s holds more than one image", t->port.name);
  if (out->channels != 1 && out->channels != 3 && out->channels != 4)
    return host_fail(diag, SNT_E_SHAPE, "png", "%s has %u channels; an image has 1, 3 or 4", t->port.name, out->channels);
  if (t->port.tensor.dtype != SNT_F32 && t->port.tensor.dtype != SNT_U8)
    return host_fail(diag, SNT_E_SHAPE, "png", "%s is neither f32 nor u8", t->port.name);
  return SNT_OK;
}

static uint32_t png_format(uint32_t channels) { return channels == 1 ? PNG_FORMAT_GRAY : channels == 3 ? PNG_FORMAT_RGB : PNG_FORMAT_RGBA; }

static void to_tensor(const png_spec *s, const uint8_t *pixels, tool_tensor *t) {
  for (size_t y = 0; y < s->height; y++)
    for (size_t x = 0; x < s->width; x++)
      for (size_t c = 0; c < s->channels; c++) {
        const uint8_t v = pixels[(y * s->width + x) * s->channels + c];
        const size_t at = y * s->row + x * s->column + c * s->channel;
        if (t->port.tensor.dtype == SNT_U8) ((uint8_t *)t->data)[at] = v;
        else ((float *)t->data)[at] = s->lo + (s->hi - s->lo) * (float)v / 255.0f;
      }
}

static uint8_t to_byte(const png_spec *s, const tool_tensor *t, size_t at) {
  if (t->port.tensor.dtype == SNT_U8) return ((const uint8_t *)t->data)[at];
  const float v = (((const float *)t->data)[at] - s->lo) / (s->hi - s->lo) * 255.0f + 0.5f;
  return v >= 255 ? 255 : v > 0 ? (uint8_t)v : 0;
}

snt_result png_read(const char *spec, tool_tensor *t, snt_diag *diag) {
  png_spec s;
  snt_result r = parse_spec(spec, t, &s, diag);
  if (r != SNT_OK) return r;
  png_image image = {.version = PNG_IMAGE_VERSION};
  if (!png_image_begin_read_from_file(&image, s.path)) return host_fail(diag, SNT_E_PARSE, "png", "%s: %s", s.path, image.message);
  if (image.width != s.width || image.height != s.height) {
    r = host_fail(diag, SNT_E_SHAPE, "png", "%s is %ux%u; %s is %ux%u", s.path, image.width, image.height, t->port.name, s.width, s.height);
    png_image_free(&image);
    return r;
  }
  image.format = png_format(s.channels);
  uint8_t *pixels = malloc(PNG_IMAGE_SIZE(image));
  if (!pixels || !png_image_finish_read(&image, NULL, pixels, 0, NULL))
    r = host_fail(diag, SNT_E_PARSE, "png", "%s: %s", s.path, image.message);
  if (r == SNT_OK) to_tensor(&s, pixels, t);
  png_image_free(&image);
  free(pixels);
  return r;
}

snt_result png_write(const char *spec, const tool_tensor *t, snt_diag *diag) {
  png_spec s;
  snt_result r = parse_spec(spec, t, &s, diag);
  if (r != SNT_OK) return r;
  png_image image = {.version = PNG_IMAGE_VERSION, .width = s.width, .height = s.height, .format = png_format(s.channels)};
  uint8_t *pixels = malloc(PNG_IMAGE_SIZE(image));
  if (!pixels) return host_fail(diag, SNT_E_HOST_MEM, "png", "out of host memory");
  for (size_t y = 0; y < s.height; y++)
    for (size_t x = 0; x < s.width; x++)
      for (size_t c = 0; c < s.channels; c++)
        pixels[(y * s.width + x) * s.channels + c] = to_byte(&s, t, y * s.row + x * s.column + c * s.channel);
  host_output out;
  r = host_begin_file(&out, s.path, diag);
  errno = 0;
  if (r == SNT_OK && !png_image_write_to_stdio(&image, out.file, 0, pixels, 0, NULL))
    r = host_fail(diag, SNT_E_LIMIT, "png", "%s: %s", s.path, errno ? strerror(errno) : image.message);
  free(pixels);
  return host_end_file(&out, r, diag);
}
