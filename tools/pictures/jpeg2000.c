/* JPEG 2000 by OpenJPEG: one to four components, which may be halved in width or height and of any number of bits; alpha is left out. */
#include "tools/pictures/picture.h"
#include <openjpeg.h>
#include <string.h>

typedef struct source {
  const uint8_t *file;
  OPJ_SIZE_T size, at;
} source;

static OPJ_SIZE_T read_some(void *to, OPJ_SIZE_T count, void *user) {
  source *s = user;
  const OPJ_SIZE_T left = s->size - s->at, taken = count < left ? count : left;
  if (!taken) return (OPJ_SIZE_T)-1;
  memcpy(to, s->file + s->at, taken);
  s->at += taken;
  return taken;
}
static OPJ_OFF_T skip(OPJ_OFF_T count, void *user) {
  source *s = user;
  if (count < 0 || (OPJ_SIZE_T)count > s->size - s->at) return -1;
  s->at += (OPJ_SIZE_T)count;
  return count;
}
static OPJ_BOOL seek(OPJ_OFF_T at, void *user) {
  source *s = user;
  if (at < 0 || (OPJ_SIZE_T)at > s->size) return OPJ_FALSE;
  s->at = (OPJ_SIZE_T)at;
  return OPJ_TRUE;
}

static void note_error(const char *text, void *user) {
  size_t length = strlen(text);
  while (length && text[length - 1] == '\n') length--;
  picture_refuse(user, "%.*s", length < 100 ? (int)length : 100, text);
}
static void note_nothing(const char *text, void *user) { (void)text, (void)user; }

/* A component at a place of the picture, in 8 bits. */
static uint8_t value_at(const opj_image_t *from, uint32_t number, uint32_t x, uint32_t y) {
  const opj_image_comp_t *c = &from->comps[number];
  const uint32_t column = x / c->dx < c->w ? x / c->dx : c->w - 1, row = y / c->dy < c->h ? y / c->dy : c->h - 1;
  const int64_t most = (INT64_C(1) << c->prec) - 1, stored = c->data[(size_t)row * c->w + column];
  const int64_t value = stored + (c->sgnd ? INT64_C(1) << (c->prec - 1) : 0), in = value < 0 ? 0 : value > most ? most : value;
  return c->prec >= 8 ? (uint8_t)(in >> (c->prec - 8)) : (uint8_t)(in * 255 / most);
}

static uint8_t rounded(double value) { return value <= 0 ? 0 : value >= 255 ? 255 : (uint8_t)(value + 0.5); }

static void put_place(const opj_image_t *from, uint32_t x, uint32_t y, uint8_t *to) {
  const bool grey = from->numcomps < 3;
  for (uint32_t i = 0; i < 3; i++) to[i] = value_at(from, grey ? 0 : i, x, y);
  if (grey || from->color_space != OPJ_CLRSPC_SYCC) return;
  const double light = to[0], blue = to[1] - 128.0, red = to[2] - 128.0;
  to[0] = rounded(light + 1.402 * red);
  to[1] = rounded(light - 0.344136 * blue - 0.714136 * red);
  to[2] = rounded(light + 1.772 * blue);
}

static bool can_have(const opj_image_t *from, snt_onnx_image *image) {
  if (from->color_space == OPJ_CLRSPC_CMYK || from->color_space == OPJ_CLRSPC_EYCC)
    return picture_refuse(image, "colours of another kind than RGB");
  if (from->numcomps < 1 || from->numcomps > 4) return picture_refuse(image, "%u components", from->numcomps);
  for (uint32_t i = 0; i < from->numcomps; i++) {
    const opj_image_comp_t *c = &from->comps[i];
    if (c->prec < 1 || c->prec > 31 || !c->dx || !c->dy || !c->w || !c->h)
      return picture_refuse(image, "component %u of %u bits", i, c->prec);
  }
  return true;
}

static bool decode(opj_codec_t *codec, opj_stream_t *stream, opj_image_t **from, snt_onnx_image *image) {
  if (!opj_read_header(stream, codec, from)) return picture_refuse(image, "the header is cut off, or none");
  const opj_image_t *p = *from;
  if (p->x1 <= p->x0 || p->y1 <= p->y0 || !can_have(p, image)) return picture_refuse(image, "a picture of no extent");
  if (!picture_wants_pixels(image, p->x1 - p->x0, p->y1 - p->y0)) return false;
  if (!opj_decode(codec, stream, *from) || !opj_end_decompress(codec, stream))
    return picture_refuse(image, "the pixels are damaged, or cut off");
  if (!can_have(p, image)) return false; /* a palette may have made other components */
  for (uint32_t i = 0; i < p->numcomps; i++)
    if (!p->comps[i].data) return picture_refuse(image, "component %u is not there", i);
  for (uint32_t y = 0; y < image->height; y++)
    for (uint32_t x = 0; x < image->width; x++) put_place(p, x, y, image->rgb + 3 * ((size_t)y * image->width + x));
  return true;
}

static opj_stream_t *open_stream(source *s) {
  opj_stream_t *stream = opj_stream_create(1 << 16, OPJ_TRUE);
  if (!stream) return NULL;
  opj_stream_set_user_data(stream, s, NULL);
  opj_stream_set_user_data_length(stream, s->size);
  opj_stream_set_read_function(stream, read_some);
  opj_stream_set_skip_function(stream, skip);
  opj_stream_set_seek_function(stream, seek);
  return stream;
}

bool picture_jpeg2000(snt_onnx_image *image) {
  source s = {image->file, image->file_size, 0};
  opj_dparameters_t parameters;
  opj_image_t *from = NULL;
  opj_stream_t *stream = open_stream(&s);
  opj_codec_t *codec = opj_create_decompress(s.file[0] ? OPJ_CODEC_J2K : OPJ_CODEC_JP2);
  opj_set_default_decoder_parameters(&parameters);
  bool good = stream && codec && opj_setup_decoder(codec, &parameters);
  if (good) {
    opj_set_error_handler(codec, note_error, image);
    opj_set_warning_handler(codec, note_nothing, NULL);
    opj_set_info_handler(codec, note_nothing, NULL);
    good = decode(codec, stream, &from, image);
  } else picture_refuse(image, "out of memory");
  opj_image_destroy(from);
  opj_destroy_codec(codec);
  opj_stream_destroy(stream);
  return good;
}
