/* Literals of the text forms, free of locale: floats print as the shortest hexadecimal that gives the same double. */
#ifndef IR_LITERAL_H
#define IR_LITERAL_H
#include "ir/base.h"

void ir_put_float(ir_text *, double);                        /* -0x1.8p-3 0x0p+0 inf -inf nan */
void ir_put_scalar(ir_text *, int32_t dtype, uint64_t bits); /* bits: f64 bits for floats, int64 for the others; true and false for bool */
void ir_put_quoted(ir_text *, const char *text);             /* "a\"b\x0a" */

typedef struct ir_number {
  double real;
  uint64_t integer;
  bool is_integer, is_bool, negative;
} ir_number; /* integer: magnitude; real: signed */
/* Reads one literal at *text: an integer, a decimal or hexadecimal float, inf, nan, true, false. False: none, or an integer over 64 bits. */
bool ir_read_number(const char **text, const char *end, ir_number *out);
/* The literal as a value of a type, in the form of ir_put_scalar. False if it does not fit (300 for u8, 1.5 for i32, true for f32). */
bool ir_number_bits(const ir_number *, int32_t dtype, uint64_t *bits);
#endif
