/* From a sequence of choices to a graph's text: head and ports, then rules until the choices run out, then the outputs. */
#include "conformance/grow.h"
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { OUTPUTS = 4, MAX_LINES = 40, HEAD_ELEMENTS = 2048 };

uint32_t grow_choose(grower *g, uint32_t sides) { return g->at < g->end ? *g->at++ % sides : 0; }

/* ---- values ---- */

bool grow_any(const grow_value *v) { return v->name[0] != 0; }
bool grow_is_float(const grow_value *v) { return ir_dtypes[v->dtype].is_float; }
bool grow_is_number(const grow_value *v) { return v->dtype != SNT_BOOL; }
bool grow_has_axis(const grow_value *v) { return grow_is_number(v) && v->rank > 0; }
double grow_size(const grow_value *v) { return fmax(fabs(v->low), fabs(v->high)); }

uint64_t grow_elements(const grow_value *v) {
  uint64_t all = 1;
  for (uint32_t i = 0; i < v->rank; i++) all *= (uint64_t)v->dims[i].value;
  return all;
}

bool grow_same_dims(const grow_value *a, const grow_value *b) {
  if (a->rank != b->rank) return false;
  for (uint32_t i = 0; i < a->rank; i++)
    if (strcmp(a->dims[i].text, b->dims[i].text) != 0) return false;
  return true;
}

/* The how-manieth from the latest backwards, or null. */
static grow_value *from_latest(grower *g, bool (*fits)(const grow_value *), const grow_value *like, uint32_t skip) {
  for (uint32_t i = g->count; i-- > 0;) {
    grow_value *v = &g->values[i];
    if (fits ? !fits(v) : v->dtype != like->dtype || !grow_same_dims(v, like)) continue;
    if (!skip--) return v;
  }
  return NULL;
}

static grow_value *pick(grower *g, bool (*fits)(const grow_value *), const grow_value *like) {
  static const uint8_t back[16] = {0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 3, 3, 4, 6, 8};
  uint32_t skip = back[grow_choose(g, 16)];
  grow_value *v = NULL;
  while (!(v = from_latest(g, fits, like, skip)) && skip) skip--;
  if (v) v->is_read = true;
  return v;
}

grow_value *grow_pick(grower *g, bool (*fits)(const grow_value *)) { return pick(g, fits, NULL); }
grow_value *grow_pick_like(grower *g, const grow_value *like) {
  const grow_value copy = *like;
  return pick(g, NULL, &copy);
}

/* ---- extents ---- */

grow_dim grow_number(int64_t value) {
  grow_dim d = {.value = value};
  snprintf(d.text, sizeof d.text, "%lld", (long long)value);
  return d;
}

static bool is_literal(const grow_dim *d) { return d->text[strspn(d->text, "0123456789")] == 0; }

bool grow_dim_add(grow_dim *d, int64_t amount) {
  char text[64];
  if (d->value + amount < 1) return false;
  if (is_literal(d)) return *d = grow_number(d->value + amount), true;
  if (amount < 0) return false; /* not provably positive for all values of the symbol */
  if (amount) snprintf(text, sizeof text, "%s+%lld", d->text, (long long)amount);
  else snprintf(text, sizeof text, "%s", d->text);
  if (strlen(text) >= sizeof d->text) return false;
  strcpy(d->text, text);
  d->value += amount;
  return true;
}

bool grow_dim_join(grow_dim *d, const grow_dim *other, char op) {
  char text[80];
  const int64_t value = op == '+' ? d->value + other->value : d->value * other->value;
  if (is_literal(d) && is_literal(other)) return *d = grow_number(value), true;
  if (op == '+') snprintf(text, sizeof text, "%s+%s", d->text, other->text);
  else snprintf(text, sizeof text, "(%s)*(%s)", d->text, other->text);
  if (strlen(text) >= sizeof d->text) return false;
  strcpy(d->text, text);
  d->value = value;
  return true;
}

void grow_list(char *out, size_t size, const int32_t *at, uint32_t count) {
  size_t used = (size_t)snprintf(out, size, "[");
  for (uint32_t i = 0; i < count && used < size; i++) used += (size_t)snprintf(out + used, size - used, "%s%d", i ? "," : "", at[i]);
  if (used < size) snprintf(out + used, size - used, "]");
}

void grow_shape(char *out, size_t size, const grow_dim *dims, uint32_t rank) {
  size_t used = (size_t)snprintf(out, size, "[");
  for (uint32_t i = 0; i < rank && used < size; i++) used += (size_t)snprintf(out + used, size - used, "%s%s", i ? "," : "", dims[i].text);
  if (used < size) snprintf(out + used, size - used, "]");
}

/* ---- text ---- */

static void put(grower *g, char *to, size_t size, uint32_t *used, const char *format, va_list arguments) {
  const int length = vsnprintf(to + *used, size - *used, format, arguments);
  if (length < 0 || *used + (size_t)length >= size) {
    g->full = true;
    to[*used] = 0;
    return;
  }
  *used += (uint32_t)length;
}

void grow_text(grower *g, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  put(g, g->body, sizeof g->body, &g->used, format, arguments);
  va_end(arguments);
}

static void put_port(grower *g, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  put(g, g->ports, sizeof g->ports, &g->ports_used, format, arguments);
  va_end(arguments);
}

static grow_value *new_value(grower *g, const grow_value *as, char letter, uint32_t number) {
  if (g->count == GROW_VALUES || g->full) return NULL;
  grow_value *v = &g->values[g->count++];
  if (as != v) *v = *as;
  v->is_read = false;
  snprintf(v->name, sizeof v->name, "%%%c%u", letter, number % 1000);
  return v;
}

grow_value *grow_line(grower *g, const grow_value *as, const char *format, ...) {
  char line[GROW_LINE];
  va_list arguments;
  va_start(arguments, format);
  const int length = vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  if (length < 0 || (size_t)length >= sizeof line) g->full = true;
  grow_value *v = new_value(g, as, 'v', g->lines++);
  if (v) grow_text(g, "  %s = %s\n", v->name, line);
  return v && !g->full ? v : NULL;
}

grow_value *grow_port(grower *g, uint8_t dtype, uint32_t rank, const grow_dim *dims) {
  char shape[GROW_RANK * GROW_WORD + 8];
  grow_value as = {.dtype = dtype, .rank = (uint8_t)rank};
  memcpy(as.dims, dims, rank * sizeof *dims);
  const bool is_unsigned = ir_dtypes[dtype].is_int && !ir_dtypes[dtype].is_signed;
  as.low = is_unsigned || dtype == SNT_BOOL ? 0 : -4;
  as.high = dtype == SNT_BOOL ? 1 : is_unsigned ? 8 : 4;
  as.is_whole = g->whole_data || !ir_dtypes[dtype].is_float;
  if (g->port_count == GROW_PORTS || grow_elements(&as) > GROW_ELEMENTS) return NULL;
  grow_shape(shape, sizeof shape, dims, rank);
  grow_value *v = new_value(g, &as, 'x', g->port_count);
  if (v) put_port(g, "%s%s: %s%s", g->port_count++ ? ", " : "", v->name, ir_dtypes[dtype].name, rank ? shape : "");
  return g->full ? NULL : v;
}

bool grow_is_literal(const grow_dim *d) { return d->text[strspn(d->text, "0123456789")] == 0; }

grow_value *grow_weights(grower *g, uint8_t dtype, uint32_t rank, const grow_dim *dims) {
  bool fits = ir_dtypes[dtype].is_float && !g->whole_data;
  for (uint32_t i = 0; i < rank; i++) fits &= grow_is_literal(&dims[i]);
  if (!fits || grow_choose(g, 2) == 0) return grow_port(g, dtype, rank, dims);
  char shape[GROW_RANK * GROW_WORD + 8];
  grow_value as = {.dtype = dtype, .rank = (uint8_t)rank, .low = -4, .high = 4};
  memcpy(as.dims, dims, rank * sizeof *dims);
  if (grow_elements(&as) > GROW_ELEMENTS) return NULL;
  grow_shape(shape, sizeof shape, dims, rank);
  grow_value *v = new_value(g, &as, 'v', g->lines++);
  if (v) grow_text(g, "  %s: %s%s = const uniform seed=%u scale=4\n", v->name, ir_dtypes[dtype].name, rank ? shape : "", g->lines);
  return v && !g->full ? v : NULL;
}

/* ---- magnitudes ---- */

double grow_limit(uint8_t dtype) { return dtype == SNT_F16 ? 100 : dtype == SNT_BF16 ? 1000 : 10000; }

static double exact_limit(uint8_t dtype) { return dtype == SNT_F16 ? 2048 : dtype == SNT_BF16 ? 256 : 16777216; }

grow_value *grow_confine(grower *g, grow_value *v, double low, double high) {
  grow_value *out = v;
  if (out && out->low < low) {
    const grow_value was = *out;
    if ((out = grow_line(g, &was, "max %s, %.9g", was.name, low))) out->low = low, out->high = fmax(was.high, low);
    if (out) out->is_whole = was.is_whole && low == floor(low);
  }
  if (out && out->high > high) {
    const grow_value was = *out;
    if ((out = grow_line(g, &was, "min %s, %.9g", was.name, high))) out->high = high, out->low = fmin(was.low, high);
    if (out) out->is_whole = was.is_whole && high == floor(high);
  }
  if (out) out->is_read |= out != v;
  if (v && out != v) v->is_read = true;
  return out;
}

grow_value *grow_settle(grower *g, grow_value *v) {
  if (!v || !grow_is_float(v)) return v;
  if (grow_size(v) > exact_limit(v->dtype)) v->is_whole = false;
  const double limit = grow_limit(v->dtype);
  grow_value *out = grow_size(v) > limit ? grow_confine(g, v, -limit, limit) : v;
  if (out) out->is_read = false;
  return out;
}

/* ---- head and outputs ---- */

static uint8_t choose_dtype(grower *g) {
  static const uint8_t types[] = {SNT_F32, SNT_F32, SNT_F32, SNT_F32, SNT_F32, SNT_F32, SNT_F16,  SNT_F16, SNT_I32, SNT_BF16,
                                  SNT_I64, SNT_F64, SNT_U8,  SNT_I8,  SNT_U32, SNT_I16, SNT_BOOL, SNT_U16, SNT_U64};
  return types[grow_choose(g, sizeof types)];
}

static void choose_port(grower *g, bool symbolic) {
  static const uint8_t ranks[] = {2, 1, 3, 2, 2, 0, 4, 2, 3, 1}, extents[] = {2, 1, 3, 4, 5, 7, 8, 13, 16, 17, 33, 64, 65};
  const uint8_t dtype = choose_dtype(g);
  const uint32_t rank = ranks[grow_choose(g, sizeof ranks)];
  grow_dim dims[GROW_RANK];
  int64_t room = HEAD_ELEMENTS;
  for (uint32_t i = 0; i < rank; i++) {
    dims[i] = grow_number(extents[grow_choose(g, sizeof extents)]);
    const uint32_t which = symbolic ? grow_choose(g, 6) : 0;
    if (which >= 3) dims[i] = (grow_dim){.text = {"nmk"[which - 3]}, .value = g->symbols[which - 3]};
    if (dims[i].value > room) dims[i] = grow_number(1);
    room /= dims[i].value;
  }
  (void)grow_port(g, dtype, rank, dims);
}

static void grow_body(grower *g) {
  while (g->at < g->end && !g->full && g->count + 12 < GROW_VALUES && g->lines < MAX_LINES) {
    const uint32_t kind = grow_choose(g, 8);
    if (kind < 3) (void)grow_pointwise[grow_choose(g, grow_pointwise_count)](g);
    else if (kind < 6) (void)grow_sums[grow_choose(g, grow_sum_count)](g);
    else (void)grow_moves[grow_choose(g, grow_move_count)](g);
  }
}

/* What nobody reads, from the latest backwards; at least one value that is no port. */
static uint64_t put_outputs(grower *g, char *out, size_t size) {
  uint32_t found = 0;
  size_t used = 0;
  uint64_t exact = 0;
  if (g->count == g->port_count || g->values[g->count - 1].name[1] == 'x')
    (void)grow_line(g, &g->values[0], "reshape %s, shape=[-1]", g->values[0].name);
  for (uint32_t i = g->count; i-- > 0 && found < OUTPUTS;) {
    const grow_value *v = &g->values[i];
    if (v->is_read || v->name[1] != 'v') continue;
    used += (size_t)snprintf(out + used, size - used, "%sy%u=%s", found ? ", " : "", found, v->name);
    if (v->is_whole) exact |= (uint64_t)1 << found;
    found++;
  }
  return exact;
}

bool conform_grow(const uint8_t *choices, size_t count, conform_graph *out) {
  static const uint8_t extents[] = {3, 5, 1, 7, 8, 16, 17, 2, 33, 64};
  char outputs[64 * OUTPUTS] = "";
  grower *g = calloc(1, sizeof *g);
  if (!g) return false;
  g->at = choices, g->end = choices + count;
  const uint32_t head = grow_choose(g, 8);
  const bool symbolic = head & 1;
  uint8_t hints[3] = {1, 1, 1}; /* what the plan is made for is not what it runs with */
  g->whole_data = (head & 6) == 6;
  out->special = (head & 6) == 2;
  for (uint32_t i = 0; i < 3; i++) g->symbols[i] = symbolic ? extents[grow_choose(g, sizeof extents)] : 1;
  for (uint32_t i = 0; symbolic && i < 3; i++) hints[i] = extents[grow_choose(g, sizeof extents)];
  for (uint32_t left = 1 + grow_choose(g, 3); left; left--) choose_port(g, symbolic);
  grow_body(g);
  const uint64_t exact = put_outputs(g, outputs, sizeof outputs);
  out->exact = out->special ? 0 : exact;
  out->whole = g->whole_data;
  int length = 0;
  out->text[0] = 0;
  if (symbolic)
    length = snprintf(out->text, sizeof out->text,
                      "symbols { n: min=1 max=2000 hint=%u, m: min=1 max=2000 hint=%u, k: min=1 max=2000 hint=%u }\n", hints[0], hints[1],
                      hints[2]);
  length += snprintf(out->text + length, sizeof out->text - (size_t)length, "graph @grown(%s) {\n%s  return %s\n}\n", g->ports, g->body,
                     outputs);
  memcpy(out->symbols, g->symbols, sizeof out->symbols);
  const bool good = !g->full && (size_t)length < sizeof out->text && outputs[0];
  free(g);
  return good;
}
