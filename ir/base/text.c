/* The sticky text buffer and diagnostics. Out: a terminated string in an arena; after the first failure writes do nothing. */
#include "ir/base.h"
#include <stdio.h>

void ir_text_init(ir_text *text, ir_arena *arena) {
  memset(text, 0, sizeof *text);
  text->arena = arena;
}

void ir_text_init_in(ir_text *text, ir_arena *arena, char *room, size_t size) {
  *text = (ir_text){.arena = arena, .at = room, .capacity = size};
  *room = 0;
}

static bool grow(ir_text *text, size_t more) {
  size_t capacity = text->capacity ? text->capacity : 64;
  while (capacity <= text->length || capacity - text->length <= more) {
    if (capacity > SIZE_MAX / 2) return text->failed = true, false;
    capacity *= 2;
  }
  char *moved = ir_arena_take_bare(text->arena, capacity, 1);
  if (!moved) return text->failed = true, false;
  if (text->length) memcpy(moved, text->at, text->length);
  text->at = moved;
  text->capacity = capacity;
  text->at[text->length] = 0;
  return true;
}

/* Room for `more` bytes and the terminator. */
static inline bool reserve(ir_text *text, size_t more) {
  return !text->failed && (more < text->capacity - text->length || grow(text, more));
}

void ir_text_put(ir_text *text, const char *bytes, size_t length) {
  if (!reserve(text, length)) return;
  if (length) memcpy(text->at + text->length, bytes, length);
  text->length += length;
  text->at[text->length] = 0;
}

void ir_text_add(ir_text *text, const char *bytes) { ir_text_put(text, bytes, strlen(bytes)); }

/* With a character before them; 0: none. */
static inline void put_digits(ir_text *text, unsigned long long n, unsigned base, char before) {
  char digits[24];
  size_t at = sizeof digits;
  do digits[--at] = "0123456789abcdef"[n % base];
  while (n /= base);
  if (before) digits[--at] = before;
  ir_text_put(text, digits + at, sizeof digits - at);
}
static void put_signed(ir_text *text, long long n) {
  put_digits(text, n < 0 ? 0 - (unsigned long long)n : (unsigned long long)n, 10, n < 0 ? '-' : 0);
}

void ir_text_id(ir_text *text, char letter, uint32_t number) { put_digits(text, number, 10, letter); }

static void put_formatted(ir_text *text, const char *format, va_list args) {
  if (!reserve(text, 1)) return;
  va_list again;
  va_copy(again, args);
  int length = vsnprintf(text->at + text->length, text->capacity - text->length, format, args);
  if (length < 0) {
    text->failed = true;
  } else if ((size_t)length < text->capacity - text->length) {
    text->length += (size_t)length;
  } else if (reserve(text, (size_t)length)) {
    vsnprintf(text->at + text->length, text->capacity - text->length, format, again);
    text->length += (size_t)length;
  }
  va_end(again);
}

/* Kernels are printed by hundreds of thousands of small calls: words, characters and whole numbers are put here, what follows anything else by the
   C library. */
void ir_text_format(ir_text *text, const char *format, ...) {
  va_list args;
  va_start(args, format);
  for (;;) {
    const char *plain = format;
    while (*format && *format != '%') format++;
    if (format != plain) ir_text_put(text, plain, (size_t)(format - plain));
    if (!*format) break;
    const bool wide = format[1] == 'l' && format[2] == 'l';
    const char kind = format[wide ? 3 : 1];
    if (kind == 'u') put_digits(text, wide ? va_arg(args, unsigned long long) : va_arg(args, unsigned), 10, 0);
    else if (kind == 'd') put_signed(text, wide ? va_arg(args, long long) : va_arg(args, int));
    else if (kind == 'x') put_digits(text, wide ? va_arg(args, unsigned long long) : va_arg(args, unsigned), 16, 0);
    else if (kind == 's' && !wide) ir_text_add(text, va_arg(args, const char *));
    else if (kind == 'c' && !wide) ir_text_put(text, (const char[]){(char)va_arg(args, int)}, 1);
    else {
      put_formatted(text, format, args);
      break;
    }
    format += wide ? 4 : 2;
  }
  va_end(args);
}

snt_result ir_text_copy_out(const ir_text *text, char *out, size_t *length) {
  size_t room = *length;
  *length = text->length + 1;
  if (text->failed) return SNT_E_HOST_MEM;
  if (!out) return SNT_OK;
  if (room == 0) return SNT_INCOMPLETE;
  size_t fits = text->length < room ? text->length : room - 1;
  if (fits) memcpy(out, text->at, fits);
  out[fits] = 0;
  return fits == text->length ? SNT_OK : SNT_INCOMPLETE;
}

snt_result ir_fail(snt_diag *diag, snt_result result, const char *stage, uint32_t node, const char *format, ...) {
  if (!diag) return result;
  diag->result = result;
  diag->native = 0;
  diag->node = node;
  snprintf(diag->stage, sizeof diag->stage, "%s", stage);
  va_list args;
  va_start(args, format);
  vsnprintf(diag->text, sizeof diag->text, format, args);
  va_end(args);
  return result;
}

snt_result ir_no_memory(snt_diag *diag, const char *stage) { return ir_fail(diag, SNT_E_HOST_MEM, stage, 0, "out of host memory"); }
