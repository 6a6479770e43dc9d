/* Grown graphs, within: values with their types, extents and the interval their elements lie in, and the text so far. A rule appends a few lines,
   or none where it finds no operand. Every decision is one byte of the choices, 0 the simplest, so that a shorter or smaller sequence of choices
   is a simpler graph. */
#ifndef CONFORMANCE_GROW_H
#define CONFORMANCE_GROW_H
#include "conformance/conform.h"

enum { GROW_VALUES = 96, GROW_RANK = 5, GROW_WORD = 28, GROW_PORTS = 7, GROW_ELEMENTS = 4096, GROW_LINE = 400 };
typedef struct grow_dim {
  char text[GROW_WORD]; /* equal texts are equal extents */
  int64_t value;
} grow_dim;
typedef struct grow_value {
  char name[8];
  uint8_t dtype, rank;
  bool is_read, is_whole; /* whole: every element a whole number that every device computes exactly */
  double low, high;
  grow_dim dims[GROW_RANK];
} grow_value;
typedef struct grower {
  const uint8_t *at, *end;
  grow_value values[GROW_VALUES];
  uint32_t count, port_count, lines, used, ports_used;
  int64_t symbols[3];
  bool whole_data, full; /* full: text or values ran out */
  char ports[1024], body[CONFORM_TEXT - 2048];
} grower;
typedef bool (*grow_rule)(grower *);
extern const grow_rule grow_pointwise[], grow_moves[], grow_sums[];
extern const uint32_t grow_pointwise_count, grow_move_count, grow_sum_count;

uint32_t grow_choose(grower *, uint32_t sides); /* 0 when the choices have run out */
/* One of the latest values that `fits`, or null. It counts as read. */
grow_value *grow_pick(grower *, bool (*fits)(const grow_value *));
grow_value *grow_pick_like(grower *, const grow_value *like); /* of like's type and extents, perhaps itself */
bool grow_any(const grow_value *);
bool grow_is_float(const grow_value *);
bool grow_is_number(const grow_value *); /* float or integer */
bool grow_has_axis(const grow_value *);  /* a number of rank 1 or more */
uint64_t grow_elements(const grow_value *);
bool grow_same_dims(const grow_value *, const grow_value *);

grow_dim grow_number(int64_t);
bool grow_dim_add(grow_dim *, int64_t);                    /* false: its text is too long, or the extent below 1 */
bool grow_dim_join(grow_dim *, const grow_dim *, char op); /* op: + or * */
/* A new value of that type and shape, with its port; null: no room. */
grow_value *grow_port(grower *, uint8_t dtype, uint32_t rank, const grow_dim *dims);
/* As a port, but a constant of fractions where its extents are numbers, now and then. */
grow_value *grow_weights(grower *, uint8_t dtype, uint32_t rank, const grow_dim *dims);
bool grow_is_literal(const grow_dim *);
/* The line `%vN = FORMAT`, a value like `as` (which may lie in the grower's own list). Null: no room. */
grow_value *grow_line(grower *, const grow_value *as, const char *format, ...) __attribute__((format(printf, 3, 4)));
void grow_text(grower *, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* v, or v kept between low and high by min and max. */
grow_value *grow_confine(grower *, grow_value *v, double low, double high);
/* What follows the making of a value: brought back where it has grown too large for its type, no longer whole where it exceeds what is exact. */
grow_value *grow_settle(grower *, grow_value *v);
double grow_limit(uint8_t dtype);                                          /* of values that live on */
double grow_size(const grow_value *);                                      /* the largest magnitude */
void grow_list(char *out, size_t size, const int32_t *at, uint32_t count); /* `[1,2]` */
void grow_shape(char *out, size_t size, const grow_dim *dims, uint32_t rank);
#endif
