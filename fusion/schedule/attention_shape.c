/* What a group's tile is: how many queries and keys, with a panel each for keys and values or one for both, on matrix units or not: the largest that local
   memory and registers hold. */
#include "fusion/schedule/attention_local.h"

int64_t attend_panel_pitch(const local_tile *s, int64_t width) {
  return width + (s->fragments ? FRAGMENT_PAD / ir_dtypes[s->element].bytes : ATTEND_VECTOR);
}

int64_t attend_weights_pitch(const local_tile *s) { return s->fragments ? attend_panel_pitch(s, s->keys) : attend_scores_pitch(s); }

ir_expr attend_cell(const local_tile *s, ir_expr row, int64_t stride, ir_expr column) {
  expr_pool *x = s->t->e->x;
  return expr_add(x, expr_mul(x, row, expr_int(x, stride)), column);
}

static int64_t room(const local_tile *s) {
  const int64_t keys = s->panels > 1 ? attend_panel_pitch(s, s->inner) + attend_panel_pitch(s, s->depth)
                                     : attend_panel_pitch(s, attend_widest(s)),
                panels = s->queries * attend_panel_pitch(s, s->inner) + s->keys * keys,
                weights = s->fragments && !s->in_lanes ? s->queries * attend_weights_row(s) : 0,
                scores = s->in_lanes ? 0 : s->queries * attend_scores_pitch(s),
                slots = s->in_lanes ? ATTEND_ITEMS : (2 + (int64_t)s->t->a->sum_count) * ATTEND_ITEMS;
  return (panels + weights) * (s->fragments ? ir_dtypes[s->element].bytes : 4) + 4 * (scores + slots);
}

static bool divide_result(local_tile *s) {
  s->columns = s->fragments ? s->share : ATTEND_ACROSS;
  while (s->depth / s->vector % s->columns) s->columns /= 2;
  s->rows = ATTEND_ITEMS / s->columns;
  s->vectors = (uint32_t)(s->depth / s->vector / s->columns);
  return s->rows <= s->queries && s->queries / s->rows / s->halves * s->vectors <= ATTEND_MOST_VECTORS;
}

/* In lanes an item holds its scores beside its results, and the vectors of a tile's values where widths that are no whole sixteen bytes are not copied;
   its queries too, where there is room: so many sums are with four groups a unit, three or two, which leave an item 128 registers, 168 or 255. */
static bool fits_registers(local_tile *s) {
  enum { OF_FOUR = 64, OF_THREE = 96, MOST_WORDS = 80, MOST_TALL_WORDS = 192, FETCHED_WORDS = 3 /* a vector and its address */ };
  enum { HELD_OF_FOUR = 64, HELD_OF_THREE = 112, HELD_OF_TWO = 160 };
  if (!s->in_lanes) return true;
  const int64_t rows = s->tall * s->units.size.m, lanes = s->units.lanes, copied = 16 / ir_dtypes[s->element].bytes;
  const int64_t vectors = s->own_inner % copied || s->own_depth % copied ? s->keys * attend_widest(s) / ATTEND_VECTOR / ATTEND_ITEMS : 0;
  const int64_t sums = (s->depth + s->keys) * rows / lanes, words = sums + FETCHED_WORDS * vectors;
  s->holds = words + s->inner * rows / lanes / 2 <= (sums <= OF_FOUR ? HELD_OF_FOUR : sums < OF_THREE ? HELD_OF_THREE : HELD_OF_TWO);
  return words <= (s->tall > 1 ? MOST_TALL_WORDS : MOST_WORDS);
}

/* The larger tile that local memory and registers hold. */
static bool pick_keys(local_tile *s) {
  const fusion_options *o = s->t->c->options;
  const int64_t most = (int64_t)(s->tall > 1 ? fusion_most_local(o) / 2 : cost_local_room(o->profile));
  const expr_pool *x = s->t->c->graph->pool;
  int64_t rows = s->queries, keys = ATTEND_MOST_KEYS;
  bool fits = false;
  (void)expr_is_const(x, s->t->a->extent[s->t->a->row], &rows);
  (void)expr_is_const(x, s->t->a->keys, &keys);
  for (s->keys = ATTEND_MOST_KEYS;; s->keys /= 2) {
    s->panels = 1 + s->in_lanes;
    if (room(s) > most) s->panels = 1;
    fits = fits_registers(s);
    if (s->keys == ATTEND_MOST_KEYS / 2 || (keys >= s->keys && room(s) <= most && fits)) break;
  }
  return rows >= s->queries && keys >= s->keys && room(s) <= most && (s->tall == 1 || (fits && s->panels > 1));
}

/* As many fragments of rows on each other halve what is fetched of local memory; their groups, two a unit, are as many as the device holds at once
   or nearly, and end with the rows. */
static bool is_tall_enough(const local_tile *s) {
  const fusion_context *c = s->t->c;
  const int64_t low = s->queries / s->tall;
  int64_t rows;
  if (s->tall == 1) return true;
  if (!s->in_lanes || !expr_is_const(c->graph->pool, s->t->a->extent[s->t->a->row], &rows)) return false;
  const int64_t groups = (rows + s->queries - 1) / s->queries;
  return groups * s->tall == (rows + low - 1) / low && s->tall * s->depth / s->units.size.n <= ATTEND_MOST_CELLS &&
         8 * (double)groups * (double)schedule_hint(c->graph->pool, attend_batch(s->t)) >= 15 * c->options->profile->units;
}

static bool pick_fragments(local_tile *s, uint32_t tall) {
  s->tall = tall;
  s->halves = s->in_lanes ? ATTEND_HALVES * tall : 1;
  s->queries = ATTEND_ITEMS * s->halves / s->share;
  return is_tall_enough(s) && divide_result(s) && pick_keys(s);
}

/* Widths come in whole vectors for all items, of which more than half is there. */
static bool fill_width(const local_tile *s, ir_expr extent, int64_t *own, int64_t *filled) {
  if (!expr_is_const(s->t->c->graph->pool, extent, own)) return false;
  *filled = (*own + ATTEND_ACROSS - 1) / ATTEND_ACROSS * ATTEND_ACROSS;
  return 2 * *own > *filled && *filled <= ATTEND_MOST_WIDTH;
}

bool attend_pick_shape(local_tile *s) {
  const attend *t = s->t;
  const cost_profile *p = t->c->options->profile;
  if (t->a->row < 0 || t->a->depth < 0 || (p->max_items && p->max_items < ATTEND_ITEMS)) return false;
  if (!fill_width(s, t->a->extent[t->a->depth], &s->own_depth, &s->depth) || !fill_width(s, t->a->inner_extent, &s->own_inner, &s->inner))
    return false;
  s->fragments = attend_mma_find(s);
  for (uint32_t tall = ATTEND_MOST_TALL; s->fragments && tall > 0; tall--)
    if (pick_fragments(s, tall)) return true;
  s->fragments = s->in_lanes = s->holds = false;
  s->tall = 1;
  s->halves = 1;
  s->vector = ATTEND_VECTOR;
  s->queries = ATTEND_ROWS;
  s->share = ATTEND_ITEMS / ATTEND_ROWS;
  return divide_result(s) && pick_keys(s);
}

/* Below an eighth of the device's units it is quicker with a workgroup a query; on matrix units four times as many fit into that time (instructions of a
   query: a sixth). */
bool attend_local_fits(const attend *t, int64_t *queries, int64_t *keys) {
  enum { TIMES_AS_FAST = 8, ON_UNITS = 4 };
  const expr_pool *x = t->c->graph->pool;
  attend own = *t;
  local_tile s = {.t = &own};
  if (schedule_is_explicit(t->c) || !attend_pick_shape(&s)) return false;
  const double groups = (double)schedule_hint(x, attend_batch(t)) * (double)schedule_hint(x, t->a->extent[t->a->row]) / s.queries;
  if (groups * TIMES_AS_FAST * (s.fragments ? ON_UNITS : 1) < t->c->options->profile->units) return false;
  *queries = s.queries;
  *keys = s.keys;
  return true;
}
