/* Portable bitmaps, greymaps and pixmaps: P1 to P3 as text, P4 to P6 as bytes. */
#include "tools/pictures/picture.h"

typedef struct pnm {
  const uint8_t *at, *end;
} pnm;

static bool is_space(uint8_t c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

static void skip_space(pnm *p) {
  while (p->at < p->end && (is_space(*p->at) || *p->at == '#'))
    if (*p->at++ == '#')
      while (p->at < p->end && *p->at != '\n' && *p->at != '\r') p->at++;
}

static bool read_number(pnm *p, uint32_t most_digits, uint32_t *out) {
  uint32_t digits = 0;
  skip_space(p);
  for (*out = 0; p->at < p->end && digits < most_digits && *p->at >= '0' && *p->at <= '9'; digits++)
    *out = *out * 10 + (uint32_t)(*p->at++ - '0');
  return digits > 0;
}

static bool read_text(pnm *p, bool bits, uint32_t *out) { return read_number(p, bits ? 1 : 9, out) && (!bits || *out <= 1); }

static bool read_bytes(pnm *p, uint32_t bytes, uint32_t *out) {
  if ((size_t)(p->end - p->at) < bytes) return false;
  *out = bytes == 1 ? p->at[0] : (uint32_t)p->at[0] << 8 | p->at[1];
  p->at += bytes;
  return true;
}

static bool read_bits(pnm *p, uint32_t x, uint32_t *out) { /* rows begin with a byte */
  if (x % 8 == 0 && p->at++ >= p->end) return false;
  *out = p->at[-1] >> (7 - x % 8) & 1;
  return true;
}

static uint8_t to_byte(uint32_t value, uint32_t most) { return value >= most ? 255 : (uint8_t)((value * 510u + most) / (2 * most)); }

bool picture_pnm(snt_onnx_image *image) {
  const uint8_t *file = image->file;
  const uint32_t kind = (uint32_t)(file[1] - '0');
  const bool text = kind <= 3, bits = kind % 3 == 1, colours = kind % 3 == 0;
  pnm p = {file + 2, file + image->file_size};
  uint32_t width, height, most = 1, value = 0;
  if (!read_number(&p, 9, &width) || !read_number(&p, 9, &height) || (!bits && !read_number(&p, 9, &most)) || p.at >= p.end ||
      !is_space(*p.at++))
    return picture_refuse(image, "the header is cut off, or none");
  if (!most || most > 65535) return picture_refuse(image, "values up to %u", most);
  if (!picture_wants_pixels(image, width, height)) return false;
  uint8_t *to = image->rgb;
  for (uint32_t y = 0; y < height; y++)
    for (uint32_t x = 0; x < width; x++)
      for (uint32_t c = 0; c < 3; c++, to++) {
        const bool next = c == 0 || colours;
        if (next && !(text ? read_text(&p, bits, &value) : bits ? read_bits(&p, x, &value) : read_bytes(&p, most > 255 ? 2 : 1, &value)))
          return picture_refuse(image, "the pixels are cut off");
        *to = to_byte(bits ? 1 - value : value, most);
      }
  return true;
}
