/* Texels of image ports. In: coordinates of a value. Out: texel loads (equal ones are shared by the kernel passes) and stores of whole texels. */
#include "fusion/image.h"
#include "fusion/emit_private.h"

/* ---- memory ---- */

static int32_t texel_base(int32_t dtype) { return dtype == SNT_U32 || dtype == SNT_I32 ? dtype : SNT_F32; }

uint32_t emit_bind_image(emit *e, uint32_t buffer, uint8_t access) {
  if (e->arena->failed || buffer >= e->c->plan->buffers.count) return e->failed = true, 0;
  for (uint32_t m = 0; m < e->k->memories.count; m++)
    if (e->k->memories.at[m].space == KIR_IMAGE && e->slots.at[e->k->memories.at[m].slot] == buffer) return m;
  const plan_buffer *port = &e->c->plan->buffers.at[buffer];
  const int32_t base = texel_base(port->dtype);
  char name[24];
  const int length = snprintf(name, sizeof name, "i%u", e->slots.count);
  kir_memory m = {.name = ir_arena_text(e->arena, name, (size_t)length), .space = KIR_IMAGE, .access = access, .rank = 2};
  m.slot = e->slots.count;
  m.flags = access == KIR_READ ? KIR_MEM_SAMPLED | KIR_MEM_CLAMP : 0;
  if (fusion_image_named(e->c->options, port->name).filtered) m.flags |= KIR_MEM_LINEAR;
  m.type = kir_t(base, 4);
  snprintf(m.format, sizeof m.format, "%s", base == SNT_F32 ? "rgba32f" : base == SNT_U32 ? "rgba32ui" : "rgba32i");
  if (!IR_PUSH(e->arena, &e->slots, buffer) || !IR_PUSH(e->arena, &e->access, access)) e->failed = true;
  return kir_memory_add(e->k, &m);
}

/* ---- reading ---- */

typedef struct texel_at {
  uint32_t memory, channels;
  int32_t base;
  ir_expr width, height, left, top; /* left, top: where the port's part of its image begins */
  map_access place;
} texel_at;
enum { X, Y, CHANNEL, AXES }; /* of its place */

static uint32_t lane_const(emit *e, uint32_t i) { return kir_const_int(e->k, kir_t(SNT_U32, 1), i); }

/* Texel 0 0 is read where the value is not used: outside an image nothing is promised. Strips read the texel at the border instead, whatever the condition,
   so that all values of a texel share its read. */
static uint32_t guarded(emit *e, ir_expr coordinate, ir_expr begin, ir_expr extent, uint32_t inside) {
  int64_t lo, hi;
  if (!e->near) {
    const uint32_t value = emit_expr(e, expr_add(e->x, coordinate, begin));
    return inside ? kir_3(e->k, KIR_select, inside, value, lane_const(e, 0)) : value;
  }
  expr_bounds(e->x, coordinate, &lo, &hi);
  if (lo >= 0 && expr_proves_lt(e->x, coordinate, extent)) return emit_expr(e, expr_add(e->x, coordinate, begin));
  const uint32_t clamped = kir_2(e->k, KIR_min, emit_expr(e, coordinate), emit_expr(e, expr_sub(e->x, extent, 1)));
  return begin ? kir_2(e->k, KIR_add, clamped, emit_expr(e, begin)) : clamped;
}

/* The middle of a cell of the tensor, as a part of the image's extent. What does not depend on the coordinate is computed once. */
static uint32_t normalised(emit *e, uint32_t coordinate, ir_expr extent) {
  const kir_type f32 = kir_t(SNT_F32, 1);
  const uint32_t middle = kir_2(e->k, KIR_add, kir_cast(e->k, f32, coordinate), kir_const_float(e->k, f32, 0.5));
  return kir_2(e->k, KIR_mul, middle, kir_2(e->k, KIR_div, kir_const_float(e->k, f32, 1), kir_cast(e->k, f32, emit_expr(e, extent))));
}

static uint32_t read_texel(emit *e, const texel_at *t, uint32_t x, uint32_t y) {
  const bool filtered = e->k->memories.at[t->memory].flags & KIR_MEM_LINEAR;
  const kir_inst load = {.op = filtered ? KIR_tex_sample : KIR_tex_load, .type = kir_t(t->base, 4), .index = t->memory};
  uint32_t at[3] = {x, y};
  if (!filtered) return kir_put(e->k, &load, 2, at);
  at[0] = normalised(e, x, t->width), at[1] = normalised(e, y, t->height);
  at[2] = kir_const_float(e->k, kir_t(SNT_F32, 1), 0);
  return kir_put(e->k, &load, 3, at);
}

static uint32_t read_one(emit *e, const texel_at *t) {
  const uint32_t inside = t->place.condition_count && !e->near ? emit_conditions(e, t->place.condition_count, t->place.conditions) : 0;
  const uint32_t column = guarded(e, t->place.at[X], t->left, t->width, inside),
                 row = guarded(e, t->place.at[Y], t->top, t->height, inside);
  const uint32_t texel = read_texel(e, t, column, row);
  int64_t literal;
  if (expr_is_const(e->x, t->place.at[CHANNEL], &literal)) return kir_lane(e->k, texel, (uint32_t)literal & 3);
  const uint32_t which = emit_expr(e, t->place.at[CHANNEL]);
  uint32_t value = kir_lane(e->k, texel, 0);
  for (uint32_t i = 1; i < t->channels; i++)
    value = kir_3(e->k, KIR_select, kir_2(e->k, KIR_eq, which, lane_const(e, i)), kir_lane(e->k, texel, i), value);
  return value;
}

static uint32_t read_each_lane(emit *e, const texel_at *t) {
  uint32_t parts[16];
  for (uint32_t i = 0; i < e->lanes; i++) {
    const ir_expr lane = (ir_expr)i;
    texel_at own = *t;
    map_substitute(e->x, &own.place, 1, &e->lane_var, &lane);
    parts[i] = read_one(e, &own);
  }
  return kir_vector(e->k, t->base, e->lanes, parts);
}

uint32_t emit_read_image(emit *e, uint32_t node, uint8_t layout, const map_access *access) {
  const ir_tensor *type = &ir_at(e->g, node)->type;
  image_axes axes;
  if (fusion_image_axes(e->x, type, layout, &axes)) return e->failed = true, e->failed_node = node, 0;
  texel_at t = {
      .memory = emit_bind_image(e, fusion_buffer_of(e->c, node), KIR_READ), .channels = axes.channels, .base = texel_base(type->dtype)};
  t.place = *access;
  t.place.rank = AXES;
  t.place.at[X] = access->at[axes.x], t.place.at[Y] = access->at[axes.y];
  const char *port = e->c->plan->buffers.at[fusion_buffer_of(e->c, node)].name;
  t.width = type->dims[axes.x], t.height = type->dims[axes.y];
  t.left = fusion_image_origin(e->x, port, 'x'), t.top = fusion_image_origin(e->x, port, 'y');
  t.place.at[CHANNEL] = axes.channel < 0 ? 0 : access->at[axes.channel];
  if (e->failed) return 0;
  bool lanes = emit_conditions_use_lanes(e, t.place.condition_count, t.place.conditions);
  for (uint32_t i = 0; i < AXES; i++) lanes |= emit_uses_lanes(e, t.place.at[i]);
  return lanes ? read_each_lane(e, &t) : read_one(e, &t);
}

/* ---- storing ---- */

void emit_store_texel(emit *e, uint32_t node, ir_expr x, ir_expr y, uint32_t count, const uint32_t *channels) {
  const int32_t base = texel_base(ir_at(e->g, node)->type.dtype);
  const uint32_t memory = emit_bind_image(e, fusion_buffer_of(e->c, node), KIR_WRITE);
  const kir_type one = kir_t(base, 1);
  uint32_t parts[4];
  if (e->failed || e->k->failed) return;
  for (uint32_t i = 0; i < 4; i++) {
    if (i < count) parts[i] = emit_value_type(e, channels[i]).base == base ? channels[i] : kir_cast(e->k, one, channels[i]);
    else parts[i] = base == SNT_F32 ? kir_const_float(e->k, one, i == 3) : kir_const_int(e->k, one, i == 3);
  }
  const char *port = e->c->plan->buffers.at[fusion_buffer_of(e->c, node)].name;
  const ir_expr at_x = expr_add(e->x, x, fusion_image_origin(e->x, port, 'x')),
                at_y = expr_add(e->x, y, fusion_image_origin(e->x, port, 'y'));
  const uint32_t texel[3] = {emit_expr(e, at_x), emit_expr(e, at_y), kir_vector(e->k, base, 4, parts)};
  const kir_inst store = {.op = KIR_tex_store, .index = memory};
  kir_put(e->k, &store, 3, texel);
}
