/* Kinds `window` and `image` where work-items are lanes, and reads go through texels or, of a stencil, are of images alone: an item owns
   four columns of a few rows, or a few times four columns, so that taps around are shared in registers; taps to the left and right are
   shifts of whole texels, and so are the pointwise values under them (emit.quads). Where reads are of storage and items are masked, so that
   a load takes the same whatever its neighbours load, an item goes down a strip of a few columns in a loop that carries what the next row
   reads (emit/slide.c): straight code for as much is larger than caches of instructions; so it does where the profile says that of images, and
   where items of a subgroup share lines of storage: neighbours have columns beside each other then, and few columns have items below each other.
   Kind `transpose` where reads go through texels: rows are those of the source's axis, so that four elements of a texel are four rows'
   (schedule/transpose.c). Where an image is read or stored an item owns all channels of its pixels: a texel is fetched once and stored
   whole. Nothing inside is guarded: a read outside a buffer gives zero, its last texel or its last element, one outside an image the
   border, and the store tests. In: one stencil with prologue and epilogue, or a tree of pointwise nodes around it, results of one shape. */
#include "fusion/image.h"
#include "fusion/emit_private.h"
#include "fusion/schedule_common.h"
#include "fusion/schedules.h"

enum {
  TEXEL = 4,
  MAX_ROWS = 4,
  MAX_ACROSS = 4,
  MAX_ACROSS_ROWS = 2,
  MAX_VECTORS = 16,
  MAX_TEXEL_VECTORS = 24,
  MAX_TAPS = 1024,
  MAX_CHANNELS = 4,
  DEEP = 8,
  SUBGROUP = 32,
  MAX_TRIPS = 128
};

typedef struct reach { /* of reads, relative to the place of the result */
  uint32_t var;
  int64_t lowest, highest;
} reach;
typedef struct strip {
  fusion_context *c;
  const fusion_group *group;
  emit *e;
  const ir_tensor *shape;
  image_axes axes; /* channel -1: one plane an item */
  bool image;      /* the result goes to an image */
  bool turned;     /* texels lie down a strip */
  bool goes_down;  /* a strip, in a loop whose body has one row */
  bool near;       /* items beside each other share lines of storage: of columns beside each other, subgroups as full as can be */
  uint32_t rank, rows, across, lanes; /* of a strip: rows, vectors in each, columns of a vector: of storage one */
  int64_t trips;                      /* such rows one after the other */
  ir_expr first_row, column;
  reach down, along;    /* rows and columns read */
  bool texels, storage; /* are read, apart from images */
  ir_expr outer[SNT_MAX_RANK];
} strip;

/* ---- what it reads ---- */

/* The same element wherever the strip lies, so that columns past its end read nothing else. */
static bool is_uniform(const strip *s, const fusion_load *load) {
  for (uint32_t d = 0; d < load->access->rank; d++)
    if (expr_uses_var(s->c->graph->pool, load->access->at[d], s->down.var) ||
        expr_uses_var(s->c->graph->pool, load->access->at[d], s->along.var))
      return false;
  return !load->access->condition_count;
}

static void widen(expr_pool *x, const map_access *access, reach *r) {
  for (uint32_t d = 0; d < access->rank; d++) {
    int64_t coef, lo, hi;
    ir_expr rest;
    if (!expr_uses_var(x, access->at[d], r->var)) continue;
    if (!expr_split_affine(x, access->at[d], r->var, &coef, &rest) || coef != 1) continue;
    expr_bounds(x, rest, &lo, &hi);
    if (lo < r->lowest && lo > -64) r->lowest = lo;
    if (hi > r->highest && hi < 64) r->highest = hi;
  }
}

static void check_load(void *user, const fusion_load *load) {
  strip *s = user;
  int64_t apart;
  ir_expr rest;
  s->near &= expr_split_affine(s->c->graph->pool, fusion_stored_offset(s->c, load->node, load->access), s->along.var, &apart, &rest) &&
             (uint64_t)apart <= 1;
  if (!is_uniform(s, load) && !fusion_image_layout(s->c, load->node))
    *(emit_reads_texels(s->e, load->node) ? &s->texels : &s->storage) = true;
  widen(s->c->graph->pool, load->access, &s->down);
  widen(s->c->graph->pool, load->access, &s->along);
}

/* Loads must be of texels, wherever their coordinates lead, or of storage. */
static bool analyse(strip *s) {
  const cost_profile *p = s->c->options->profile;
  expr_pool *x = s->c->graph->pool;
  map_access at = {.rank = s->rank};
  s->near = schedule_shares_local(s->c) && !s->c->options->image_count;
  for (uint32_t d = 0; d < s->rank; d++) at.at[d] = s->shape->dims[d] == 1 ? 0 : expr_var_add(x, "w", 0, s->shape->dims[d], 1);
  at.at[s->axes.y] = expr_var_add(x, "v", 0, s->shape->dims[s->axes.y], 1);
  s->down.var = emit_var_number(x, at.at[s->axes.y]);
  s->along.var = emit_var_number(x, at.at[s->axes.x]);
  for (uint32_t i = 0; i < s->group->output_count; i++) {
    const uint32_t node = s->group->outputs[i];
    if (!ir_same_shape(&ir_at(s->c->graph, node)->type, s->shape)) return false;
    if (!fusion_walk_loads(s->c, s->group, node, &at, check_load, s)) return false;
  }
  const bool below = s->down.highest > s->down.lowest, shares = below || s->along.highest > s->along.lowest;
  s->near &= s->storage && below;
  s->goes_down = !s->texels && !s->turned && shares && (s->near || (s->storage ? p->both_sides : p->rolls_images));
  s->lanes = s->goes_down ? 1 : TEXEL;
  return !s->storage || s->goes_down;
}

/* ---- one item ---- */

static map_access place(const strip *s, uint32_t row, ir_expr column, uint32_t channel) {
  map_access at = {.rank = s->rank};
  memcpy(at.at, s->outer, sizeof at.at);
  at.at[s->axes.y] = expr_add(s->e->x, s->first_row, row);
  at.at[s->axes.x] = column;
  if (s->axes.channel >= 0) at.at[s->axes.channel] = channel;
  return at;
}

/* `values`: of a row, channel by channel, result by result. */
static uint32_t value_number(const strip *s, uint32_t channel, uint32_t output) { return channel * s->group->output_count + output; }

enum { ALL_LANES = UINT8_MAX };

static uint32_t in_lane(emit *e, uint32_t value, uint32_t lane) {
  if (lane == ALL_LANES || emit_value_type(e, value).lanes == 1) return value;
  return kir_lane(e->k, value, lane);
}

static void store_pixel(strip *s, uint32_t row, ir_expr column, uint32_t lane, const uint32_t *values) {
  uint32_t channels[MAX_CHANNELS];
  for (uint32_t c = 0; c < s->axes.channels; c++) channels[c] = in_lane(s->e, values[c], lane);
  emit_store_texel(s->e, s->group->hero, column, expr_add(s->e->x, s->first_row, row), s->axes.channels, channels);
}

static void store_values(strip *s, uint32_t row, ir_expr column, uint32_t lane, const uint32_t *values) {
  for (uint32_t c = 0; c < s->axes.channels; c++) {
    const map_access at = place(s, row, column, c);
    for (uint32_t o = 0; o < s->group->output_count; o++)
      emit_store_node(s->e, s->group->outputs[o], &at, in_lane(s->e, values[value_number(s, c, o)], lane));
  }
}

/* An image's pixels, and rows that are no whole vectors, which begin anywhere, so that nothing could be stored but element by element: those that exist. */
static void store_columns(strip *s, uint32_t row, ir_expr first, bool whole, const uint32_t *values) {
  emit *e = s->e;
  for (uint32_t i = 0; i < s->lanes; i++) {
    const ir_expr column = expr_add(e->x, first, i);
    const bool test = i && !whole; /* the first one exists */
    if (test) emit_if_below(e, column, s->shape->dims[s->axes.x]);
    (s->image ? store_pixel : store_values)(s, row, column, i, values);
    if (test) emit_if_end(e);
  }
}

/* Whole vectors may be stored: there are columns for all lanes, or room behind each row. */
static bool rows_are_whole(const strip *s, ir_expr column) {
  const ir_expr width = s->shape->dims[s->axes.x];
  bool padded = !s->image && s->axes.x == s->rank - 1;
  for (uint32_t i = 0; padded && i < s->group->output_count; i++) padded = fusion_has_pitch(s->c, s->group->outputs[i]);
  return padded || expr_proves_le(s->e->x, expr_add(s->e->x, column, s->lanes), width) || expr_multiple_of(s->e->x, width) % s->lanes == 0;
}

static void store_vector(strip *s, uint32_t row, ir_expr column, ir_expr lanes_column, uint32_t lane_var, const uint32_t *values) {
  emit *e = s->e;
  expr_pool *x = e->x;
  const ir_expr at_row = expr_add(x, s->first_row, row), height = s->shape->dims[s->axes.y];
  const ir_expr width = s->shape->dims[s->axes.x];
  const bool row_test = !expr_proves_lt(x, at_row, height), whole = rows_are_whole(s, column);
  const bool column_test = column != s->column && !expr_proves_lt(x, column, width);
  if (column_test) emit_if_below(e, column, width);
  if (row_test) emit_if_below(e, at_row, height);
  if (s->image || !whole) {
    store_columns(s, row, column, whole, values);
  } else {
    emit_use_lanes(e, lane_var, s->lanes);
    store_values(s, row, lanes_column, ALL_LANES, values);
    emit_scalar_lanes(e);
  }
  if (row_test) emit_if_end(e);
  if (column_test) emit_if_end(e);
}

/* All rows are computed before the first is stored, outside of the tests, so that they share what they read. */
static void emit_rows(emit *e, strip *s) {
  const uint32_t outputs = s->group->output_count, of_vector = outputs * s->axes.channels, of_row = of_vector * s->across;
  uint32_t *values = IR_NEW_ARRAY(s->c->arena, uint32_t, (size_t)s->rows * of_row);
  if (!values) {
    e->failed = true;
    return;
  }
  const ir_expr column = emit_lanes(e, s->column, s->lanes);
  const uint32_t lane_var = e->lane_var;
  for (uint32_t r = 0; r < s->rows; r++)
    for (uint32_t v = 0; v < s->across; v++)
      for (uint32_t c = 0; c < s->axes.channels; c++) {
        const map_access at = place(s, r, expr_add(e->x, column, s->lanes * v), c);
        for (uint32_t o = 0; o < outputs; o++)
          values[r * of_row + v * of_vector + value_number(s, c, o)] = emit_value(e, s->group->outputs[o], &at);
      }
  emit_scalar_lanes(e);
  if (e->failed || e->k->failed) return; /* emit_end says why */
  for (uint32_t r = 0; r < s->rows; r++)
    for (uint32_t v = 0; v < s->across; v++)
      store_vector(s, r, expr_add(e->x, s->column, s->lanes * v), expr_add(e->x, column, s->lanes * v), lane_var,
                   values + (size_t)r * of_row + v * of_vector);
}

static void emit_row(emit *e, void *user, ir_expr row) {
  strip *s = user;
  s->first_row = row;
  emit_rows(e, s);
}

static void emit_strip(strip *s) {
  emit *e = s->e;
  const ir_expr end = expr_min(e->x, expr_add(e->x, s->first_row, expr_int(e->x, s->trips)), s->shape->dims[s->axes.y]);
  const emit_loop_info rows = {.name = "y", .lo = s->first_row, .hi = end, .step = 1, .flags = KIR_LOOP_ROLLED};
  e->quads = e->near = true, e->near_storage = s->storage;
  if (s->goes_down) emit_slide(e, &rows, emit_row, s);
  else emit_rows(e, s);
  e->quads = e->near = e->near_storage = false;
}

/* ---- sharing out ---- */

/* Items along a row. */
static int64_t items_of_row(const strip *s, uint32_t across) {
  const int64_t columns = s->lanes * (int64_t)across;
  return (schedule_hint(s->c->graph->pool, s->shape->dims[s->axes.x]) + columns - 1) / columns;
}

static uint32_t fit(int64_t most, int64_t extent) {
  while (most > 1 && most / 2 * TEXEL >= extent) most /= 2;
  return (uint32_t)most;
}

/* Items that are idle together. */
static uint32_t lanes_of(const strip *s) {
  const double lanes = s->c->options->profile->lanes;
  return s->near && lanes > SUBGROUP ? SUBGROUP : (uint32_t)lanes;
}

/* Items below each other: of what is turned, neighbours read neighbouring texels, and a group stores lines, too (4 Mi elements turned on lavapipe: 9.9 ms, with
   neighbours along the result 20, a row of 64 items each way 36 and 16); of short rows, lanes that would be idle. */
static uint32_t pick_deep(const strip *s, uint32_t across) {
  const int64_t height = schedule_hint(s->c->graph->pool, s->shape->dims[s->axes.y]);
  uint32_t deep = 1;
  if (s->turned) return fit(DEEP, height);
  while ((s->near || !s->goes_down) && deep * 2 * items_of_row(s, across) <= lanes_of(s) && deep * s->rows < height) deep *= 2;
  return deep;
}

/* Vectors that the lanes compute of a plane, those past its end among them. */
static int64_t vectors_of_plane(const strip *s, uint32_t across) {
  const int64_t lanes = s->c->options->profile->lanes, deep = pick_deep(s, across), items = items_of_row(s, across) * deep,
                rows = s->rows * deep, strips = (schedule_hint(s->c->graph->pool, s->shape->dims[s->axes.y]) + rows - 1) / rows;
  return (items + lanes - 1) / lanes * lanes * across * strips;
}

/* What one row or vector reads that the next one reads, too, is read once, as far as registers reach and lanes are not idle for it. Several rows of texels
   have two vectors each even if these share nothing: lanes then take whole lines of each row by calls that follow each other (blur down with the tone curve,
   1080p on lavapipe: 61 to 28 ms). */
static void pick_strip(strip *s) {
  const bool shares_rows = s->down.highest > s->down.lowest, shares_columns = s->along.highest > s->along.lowest;
  const int64_t height = schedule_hint(s->c->graph->pool, s->shape->dims[s->axes.y]);
  s->rows = s->turned ? TEXEL : !shares_rows || s->goes_down ? 1 : MAX_ROWS;
  while (s->rows > 1 && s->rows > height) s->rows /= 2;
  const bool takes_lines = s->texels && s->rows > 1 && !s->turned;
  s->across = s->near || (!shares_columns && !takes_lines) ? 1 : s->rows > 1 ? MAX_ACROSS_ROWS : MAX_ACROSS;
  const int64_t results = s->rows * s->axes.channels, most = s->texels ? MAX_TEXEL_VECTORS : MAX_VECTORS,
                taps = results * (1 + s->down.highest - s->down.lowest) * (1 + s->along.highest - s->along.lowest);
  while (s->across > 1 && (s->goes_down ? s->across * taps > MAX_TAPS : s->across * results > most)) s->across /= 2;
  while (s->across > 1 && vectors_of_plane(s, s->across) * 20 > vectors_of_plane(s, 1) * 21) s->across /= 2;
}

/* Items of a group along a row: as many as the device likes, with few of them past its end. */
static uint32_t pick_items(const strip *s, uint32_t deep) {
  const cost_profile *p = s->c->options->profile;
  const int64_t vectors = items_of_row(s, s->across);
  if (s->turned) return fit(DEEP * DEEP / deep, schedule_hint(s->c->graph->pool, s->shape->dims[s->axes.x]));
  if (deep > 1) return (uint32_t)vectors;
  uint32_t items = (uint32_t)p->group_items / s->rows;
  if (items > p->max_items) items = p->max_items;
  while (items > 8 && items > lanes_of(s) && (vectors + items - 1) / items * items * 20 > vectors * 21) items /= 2;
  return items < 1 ? 1 : items;
}

/* Long strips, but so many that the device is full: of one strip there are `groups`. */
static int64_t pick_trips(const strip *s, int64_t groups, uint32_t deep) {
  const int64_t height = schedule_hint(s->c->graph->pool, s->shape->dims[s->axes.y]);
  int64_t strips = (height + MAX_TRIPS - 1) / MAX_TRIPS;
  if (!s->goes_down) return 1;
  if (strips < deep) strips = deep;
  while (height > strips * DEEP && (double)(groups * strips) < 4 * s->c->options->profile->min_groups) strips *= 2;
  return (height + strips - 1) / strips;
}

/* Strips go along rows where only those share what they read. */
static void turn_strip(strip *s) {
  const reach down = s->down;
  const uint32_t y = s->axes.y;
  if (s->down.highest > s->down.lowest) return;
  s->down = s->along, s->along = down;
  s->axes.y = s->axes.x, s->axes.x = y;
}

static ir_expr numbered(emit *e, const char *name, ir_expr value, ir_expr extent) {
  if (extent == 1) return 0;
  return emit_var_for(e, name, emit_expr(e, value), 0, extent);
}

static ir_expr settle_place(strip *s, uint32_t items, uint32_t deep) {
  emit *e = s->e;
  expr_pool *x = e->x;
  const ir_expr *dims = s->shape->dims;
  ir_expr outer[SNT_MAX_RANK];
  for (uint32_t d = 0; d < s->rank; d++) outer[d] = d == s->axes.y || d == s->axes.x || (int32_t)d == s->axes.channel ? 1 : dims[d];
  const ir_expr width = dims[s->axes.x], parts = expr_ceil_div(x, width, (ir_expr)items * s->lanes * s->across);
  const ir_expr planes = schedule_product(x, s->rank, outer);
  s->trips = pick_trips(s, schedule_hint(x, expr_mul(x, parts, planes)), deep);
  const ir_expr strip_rows = expr_int(x, s->rows * s->trips), strips = expr_ceil_div(x, dims[s->axes.y], expr_mul(x, strip_rows, deep));
  const ir_expr groups = expr_mul(x, expr_mul(x, parts, strips), planes), g = emit_group(e, groups);
  const ir_expr part = numbered(e, "part", expr_mod(x, g, parts), parts), rest = expr_div(x, g, parts);
  const ir_expr number = numbered(e, "strip", expr_mod(x, rest, strips), strips);
  map_delinear(x, numbered(e, "plane", expr_div(x, rest, strips), planes), s->rank, outer, s->outer);
  const ir_expr item = s->turned ? 0 : emit_item(e, 0, items * deep);
  const ir_expr beside = s->turned ? emit_item(e, 1, items) : expr_mod(x, item, (ir_expr)items);
  const ir_expr below = s->turned ? emit_item(e, 0, deep) : expr_div(x, item, (ir_expr)items);
  s->first_row = expr_mul(x, expr_add(x, expr_mul(x, number, (ir_expr)deep), below), strip_rows);
  s->column = expr_mul(x, expr_add(x, expr_mul(x, part, (ir_expr)items), beside), s->lanes * s->across);
  return groups;
}

/* All channels where they are those of an image: of the result, or of one that is read, whose columns are the result's columns. */
static bool settle_axes(strip *s) {
  const expr_pool *x = s->c->graph->pool;
  const uint8_t stored = fusion_image_layout(s->c, s->group->hero);
  s->image = stored != PLAN_IMAGE_NONE;
  if (s->image) return !fusion_image_axes(x, s->shape, stored, &s->axes);
  s->axes = (image_axes){.channel = -1, .y = s->rank - 2, .x = s->rank - 1, .channels = 1};
  for (uint32_t i = 0; s->c->options->image_count && s->rank > 2 && i < s->group->input_count; i++) {
    const ir_node *in = ir_at(s->c->graph, s->group->inputs[i]);
    const uint8_t layout = in->op == IR_OP_input ? fusion_image_layout(s->c, s->group->inputs[i]) : PLAN_IMAGE_NONE;
    image_axes axes;
    if (layout != PLAN_IMAGE_CHW || in->type.rank != s->rank || fusion_image_axes(x, &in->type, layout, &axes)) continue;
    if (s->shape->dims[axes.channel] == in->type.dims[axes.channel]) s->axes = axes;
  }
  return true;
}

static bool build(strip *s, const char *suffix, snt_result *result) {
  fusion_context *c = s->c;
  const cost_profile *p = c->options->profile;
  if (schedule_hint(c->graph->pool, s->shape->dims[s->axes.x]) < TEXEL) return false;
  s->e = emit_begin(c, s->group, suffix);
  *result = SNT_OK;
  if (!s->e || !analyse(s)) return false;
  if (s->goes_down) turn_strip(s);
  pick_strip(s);
  if (!s->goes_down && p->reads != COST_READS_TEXEL && s->rows * s->across == 1) return false;
  const uint32_t deep = pick_deep(s, s->across);
  const ir_expr groups = settle_place(s, pick_items(s, deep), deep), width = s->shape->dims[s->axes.x];
  const bool inside = expr_proves_lt(c->graph->pool, s->column, width);
  if (!inside) emit_if_below(s->e, s->column, width);
  if (!inside && s->storage)
    s->column = emit_var_for(s->e, "x", emit_expr(s->e, s->column), 0, width); /* it exists: taps need not ask again */
  emit_strip(s);
  if (!inside) emit_if_end(s->e);
  *result = emit_end(s->e, groups, 0, 0, NULL);
  return true;
}

static strip strip_of(fusion_context *c, const fusion_group *group) {
  const ir_tensor *t = &ir_at(c->graph, group->hero)->type;
  return (strip){.c = c, .group = group, .shape = t, .rank = t->rank};
}

bool schedule_window_lanes_build(fusion_context *c, const fusion_group *group, const char *suffix, snt_result *result) {
  strip s = strip_of(c, group);
  return s.rank >= 2 && c->options->profile->simd == COST_SIMD_LANES && settle_axes(&s) && build(&s, suffix, result);
}

bool schedule_turned_lanes_build(fusion_context *c, const fusion_group *group, uint32_t source_axis, snt_result *result) {
  strip s = strip_of(c, group);
  s.axes = (image_axes){.channel = -1, .y = source_axis, .x = s.rank - 1, .channels = 1};
  s.turned = true;
  return build(&s, "transpose", result);
}
