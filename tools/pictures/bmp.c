/* Windows bitmaps: palettes of 1, 4 and 8 bits, plain or as runs; 16, 24 and 32 bits by masks. */
#include "tools/pictures/picture.h"

enum { RGB, RLE8, RLE4, BITFIELDS, ALPHABITFIELDS = 6 }; /* the compression */
enum { FILE_HEADER = 14, CORE_HEADER = 12 };
typedef struct bmp {
  snt_onnx_image *image;
  const uint8_t *file;
  size_t size, pixels, palette; /* where they begin */
  uint32_t width, height, bits, compression, colours, entry, mask[3];
  bool from_top;
} bmp;

static uint32_t number(const bmp *b, size_t at, uint32_t bytes) {
  uint32_t value = 0;
  for (uint32_t i = 0; i < bytes && at + i < b->size; i++) value |= (uint32_t)b->file[at + i] << 8 * i;
  return value;
}

static bool read_masks(bmp *b, size_t header) {
  static const uint32_t usual[2][3] = {{0x7c00, 0x3e0, 0x1f}, {0xff0000, 0xff00, 0xff}};
  const bool given = b->compression == BITFIELDS || b->compression == ALPHABITFIELDS;
  for (uint32_t i = 0; i < 3; i++) {
    b->mask[i] = given ? number(b, FILE_HEADER + 40 + 4 * i, 4) : usual[b->bits != 16][i];
    const uint32_t lowest = b->mask[i] & (~b->mask[i] + 1);
    if (!b->mask[i] || (b->mask[i] / lowest & (b->mask[i] / lowest + 1)))
      return picture_refuse(b->image, "bits of a colour that do not lie together");
  }
  if (given && header == 40) b->palette += b->compression == BITFIELDS ? 12 : 16;
  return true;
}

static bool read_header(bmp *b) {
  const uint32_t header = number(b, FILE_HEADER, 4);
  if (b->size < 26 || (header != CORE_HEADER && header < 40) || header > b->size - FILE_HEADER)
    return picture_refuse(b->image, "the header is cut off, or none");
  const bool core = header == CORE_HEADER;
  b->width = number(b, 18, core ? 2 : 4);
  b->height = number(b, core ? 20 : 22, core ? 2 : 4);
  b->bits = number(b, core ? 24 : 28, 2);
  b->compression = core ? RGB : number(b, 30, 4);
  b->colours = core ? 0 : number(b, 46, 4);
  b->entry = core ? 3 : 4;
  b->pixels = number(b, 10, 4);
  b->palette = FILE_HEADER + header;
  b->from_top = !core && b->height > INT32_MAX;
  if (b->from_top) b->height = ~b->height + 1;
  if (b->width > INT32_MAX) return picture_refuse(b->image, "a negative width");
  const bool runs = (b->compression == RLE8 && b->bits == 8) || (b->compression == RLE4 && b->bits == 4);
  const bool plain = b->compression == RGB && (b->bits == 1 || b->bits == 4 || b->bits == 8 || b->bits == 24);
  const bool masks = (b->bits == 16 || b->bits == 32) &&
                     (b->compression == RGB || b->compression == BITFIELDS || b->compression == ALPHABITFIELDS);
  if (!runs && !plain && !masks) return picture_refuse(b->image, "%u bits of compression %u", b->bits, b->compression);
  if (b->bits <= 8 && (!b->colours || b->colours > 1u << b->bits)) b->colours = 1u << b->bits;
  return b->bits <= 8 || read_masks(b, header);
}

static uint8_t *place(const bmp *b, uint32_t x, uint32_t row) {
  const uint32_t y = b->from_top ? row : b->height - 1 - row;
  return b->image->rgb + 3 * ((size_t)y * b->width + x);
}

static void put_colour(const bmp *b, uint32_t x, uint32_t row, uint32_t colour) {
  if (x >= b->width || row >= b->height) return;
  uint8_t *to = place(b, x, row);
  for (uint32_t i = 0; i < 3; i++) to[i] = colour < b->colours ? (uint8_t)number(b, b->palette + colour * b->entry + 2 - i, 1) : 0;
}

static void put_masked(const bmp *b, uint32_t x, uint32_t row, uint32_t pixel) {
  uint8_t *to = place(b, x, row);
  for (uint32_t i = 0; i < 3; i++) {
    const uint32_t lowest = b->mask[i] & (~b->mask[i] + 1);
    to[i] = (uint8_t)((uint64_t)(pixel & b->mask[i]) / lowest * 255 / (b->mask[i] / lowest));
  }
}

static bool read_rows(const bmp *b) {
  const uint64_t stride = ((uint64_t)b->width * b->bits + 31) / 32 * 4;
  if (b->pixels > b->size || stride * b->height > b->size - b->pixels + (stride - ((uint64_t)b->width * b->bits + 7) / 8))
    return picture_refuse(b->image, "the pixels are cut off");
  for (uint32_t row = 0; row < b->height; row++)
    for (uint32_t x = 0; x < b->width; x++) {
      const size_t bit = (size_t)x * b->bits, at = b->pixels + (size_t)(row * stride) + bit / 8;
      if (b->bits <= 8) put_colour(b, x, row, number(b, at, 1) >> (8 - b->bits - bit % 8) & ((1u << b->bits) - 1));
      else put_masked(b, x, row, number(b, at, b->bits / 8));
    }
  return true;
}

/* A colour of a byte that holds one, or two, the first in its high half. */
static uint32_t part_of(const bmp *b, uint32_t byte, uint32_t i) { return b->bits == 8 ? byte : i % 2 ? byte & 15 : byte >> 4; }

static bool read_runs(const bmp *b) {
  uint32_t x = 0, row = 0;
  for (uint32_t y = 0; y < b->height; y++)
    for (uint32_t i = 0; i < b->width; i++) put_colour(b, i, y, 0); /* what no run covers */
  for (size_t at = b->pixels; at + 1 < b->size && row < b->height;) {
    const uint32_t count = b->file[at], what = b->file[at + 1];
    at += 2;
    for (uint32_t i = 0; i < count; i++) put_colour(b, x++, row, part_of(b, what, i));
    if (count) continue;
    if (what == 1) return true;
    if (what == 0) x = 0, row++;
    else if (what == 2) {
      x += number(b, at, 1);
      row += number(b, at + 1, 1);
      at += 2;
    } else {
      const uint32_t bytes = b->bits == 8 ? what : (what + 1) / 2;
      for (uint32_t i = 0; i < what; i++) put_colour(b, x++, row, part_of(b, number(b, at + (b->bits == 8 ? i : i / 2), 1), i));
      at += (bytes + 1) / 2 * 2;
    }
  }
  return row >= b->height || picture_refuse(b->image, "the runs are cut off");
}

bool picture_bmp(snt_onnx_image *image) {
  bmp b = {.image = image, .file = image->file, .size = image->file_size};
  if (!read_header(&b) || !picture_wants_pixels(image, b.width, b.height)) return false;
  return b.compression == RLE8 || b.compression == RLE4 ? read_runs(&b) : read_rows(&b);
}
