/* Reading and writing of literals. In: text. Out: exact values; decimals are rounded by the C library, which is told its own decimal point. */
#include "ir/literal.h"
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- writing ---- */
void ir_put_float(ir_text *out, double value) {
  if (isnan(value)) {
    ir_text_add(out, "nan");
    return;
  }
  if (signbit(value)) ir_text_add(out, "-");
  value = fabs(value);
  if (isinf(value) || value == 0) {
    ir_text_add(out, value == 0 ? "0x0p+0" : "inf");
    return;
  }
  int exponent;
  const uint64_t bits = (uint64_t)ldexp(frexp(value, &exponent), 53); /* 1.52 fixed point */
  uint64_t fraction = bits & ((UINT64_C(1) << 52) - 1);
  char digits[14];
  int count = 0;
  for (; fraction; fraction = (fraction << 4) & ((UINT64_C(1) << 52) - 1)) digits[count++] = "0123456789abcdef"[fraction >> 48];
  ir_text_add(out, count ? "0x1." : "0x1");
  ir_text_put(out, digits, (size_t)count);
  ir_text_format(out, "p%+d", exponent - 1);
}

void ir_put_scalar(ir_text *out, int32_t dtype, uint64_t bits) {
  if (ir_dtypes[dtype].is_float) {
    double value;
    memcpy(&value, &bits, sizeof value);
    ir_put_float(out, value);
  } else if (dtype == SNT_BOOL) {
    ir_text_add(out, bits ? "true" : "false");
  } else if (ir_dtypes[dtype].is_signed) {
    ir_text_format(out, "%" PRId64, (int64_t)bits);
  } else {
    ir_text_format(out, "%" PRIu64, bits);
  }
}

void ir_put_quoted(ir_text *out, const char *text) {
  ir_text_add(out, "\"");
  for (; *text; text++) {
    const unsigned char c = (unsigned char)*text;
    if (c == '"' || c == '\\') ir_text_format(out, "\\%c", c);
    else if (c < 0x20 || c == 0x7f) ir_text_format(out, "\\x%02x", c);
    else ir_text_put(out, text, 1);
  }
  ir_text_add(out, "\"");
}

/* ---- reading ---- */
static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static int hex_value(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static bool read_word(const char **text, const char *end, const char *word) {
  size_t length = strlen(word);
  if ((size_t)(end - *text) < length || memcmp(*text, word, length) != 0) return false;
  const char *after = *text + length;
  if (after < end && (is_digit(*after) || (*after >= 'a' && *after <= 'z') || (*after >= 'A' && *after <= 'Z') || *after == '_'))
    return false;
  *text = after;
  return true;
}

static int read_exponent(const char **text, const char *end) {
  const char *at = *text + 1;
  bool negative = at < end && *at == '-';
  int value = 0;
  if (at < end && (*at == '-' || *at == '+')) at++;
  for (; at < end && is_digit(*at); at++)
    if (value < 100000) value = value * 10 + (*at - '0');
  *text = at;
  return negative ? -value : value;
}

/* Digits after 0x. At most 16 significant ones are exact in the 64 bits; a canonical double has 14. */
static bool read_hex(const char **text, const char *end, ir_number *out) {
  const char *at = *text + 2;
  uint64_t mantissa = 0;
  int scale = 0, digits = 0;
  bool fraction = false;
  for (; at < end && (hex_value(*at) >= 0 || (*at == '.' && !fraction)); at++) {
    if (*at == '.') {
      fraction = true;
      continue;
    }
    digits++;
    if (mantissa >> 60) scale += fraction ? 0 : 4;
    else mantissa = mantissa << 4 | (uint64_t)hex_value(*at), scale -= fraction ? 4 : 0;
  }
  if (digits == 0) return false;
  out->is_integer = !fraction && scale == 0 && (at == end || (*at != 'p' && *at != 'P'));
  out->integer = mantissa;
  if (at < end && (*at == 'p' || *at == 'P')) scale += read_exponent(&at, end);
  out->real = ldexp((double)mantissa, scale);
  *text = at;
  return true;
}

static bool read_decimal(const char **text, const char *end, ir_number *out) {
  char buffer[400], point[8];
  size_t length = 0;
  const char *at = *text;
  bool overflow = false;
  snprintf(point, sizeof point, "%.1f", 0.5); /* the decimal point of the process */
  out->is_integer = true;
  for (; at < end && length + 1 < sizeof buffer; at++) {
    bool sign = (*at == '-' || *at == '+') && length && (at[-1] == 'e' || at[-1] == 'E');
    if (!is_digit(*at) && *at != '.' && *at != 'e' && *at != 'E' && !sign) break;
    if (!is_digit(*at)) out->is_integer = false;
    else if (out->integer > (UINT64_MAX - (uint64_t)(*at - '0')) / 10) overflow = true;
    else out->integer = out->integer * 10 + (uint64_t)(*at - '0');
    buffer[length++] = *at == '.' ? point[1] : *at;
  }
  buffer[length] = 0;
  char *stop;
  out->real = strtod(buffer, &stop);
  *text = at;
  return length > 0 && *stop == 0 && !(out->is_integer && overflow);
}

bool ir_read_number(const char **text, const char *end, ir_number *out) {
  *out = (ir_number){0};
  const char *at = *text;
  if (read_word(&at, end, "true") || read_word(&at, end, "false")) {
    out->is_bool = true;
    out->integer = at - *text == 4;
    *text = at;
    return true;
  }
  if (at < end && *at == '-') out->negative = true, at++;
  bool read = true;
  if (read_word(&at, end, "inf")) out->real = INFINITY;
  else if (read_word(&at, end, "nan")) out->real = NAN;
  else if (end - at > 2 && at[0] == '0' && (at[1] == 'x' || at[1] == 'X')) read = read_hex(&at, end, out);
  else if (at < end && (is_digit(*at) || *at == '.')) read = read_decimal(&at, end, out);
  else read = false;
  if (!read) return false;
  if (out->negative) out->real = -out->real;
  *text = at;
  return true;
}

static bool integer_bits(const ir_number *n, const ir_dtype_info *type, uint64_t *bits) {
  if (!n->is_integer) return false;
  const uint64_t top = type->is_signed    ? (UINT64_C(1) << (type->bits - 1)) - 1 + n->negative
                       : type->bits == 64 ? UINT64_MAX
                                          : (UINT64_C(1) << type->bits) - 1;
  if (n->integer > top || (n->negative && n->integer && !type->is_signed)) return false;
  *bits = n->negative ? 0 - n->integer : n->integer;
  return true;
}

bool ir_number_bits(const ir_number *n, int32_t dtype, uint64_t *bits) {
  if (dtype == SNT_BOOL || n->is_bool) {
    *bits = n->integer;
    return dtype == SNT_BOOL && (n->is_bool || (n->is_integer && n->integer <= 1 && !n->negative));
  }
  if (!ir_dtypes[dtype].is_float) return integer_bits(n, &ir_dtypes[dtype], bits);
  uint64_t stored[1] = {0};
  ir_dtype_store(dtype, stored, 0, isnan(n->real) ? NAN : n->real);
  double rounded = ir_dtype_load(dtype, stored, 0);
  memcpy(bits, &rounded, sizeof rounded);
  return true;
}
