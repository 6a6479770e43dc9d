/* Multiply-adds with one rounding, as ISO C's fma and fmaf are. The C library of mingw-w64 rounds twice (a fifth of its fmaf's results are off), so
   there the functions below stand for them. */
#ifndef IR_FUSED_H
#define IR_FUSED_H
#include <math.h>

float ir_exact_fmaf(float a, float b, float c);
double ir_exact_fma(double a, double b, double c);
#if defined(__MINGW32__)
#define ir_fmaf ir_exact_fmaf
#define ir_fma ir_exact_fma
#else
#define ir_fmaf fmaf
#define ir_fma fma
#endif
#endif
