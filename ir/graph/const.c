/* Philox 4x32-10 (Salmon, Moraes, Dror, Shaw 2011), the constants made from it, and constant data on demand.
   Deterministic: the same seed gives the same values everywhere. */
#include "ir/graph.h"
#include <math.h>

static void philox_round(uint32_t c[4], uint32_t k0, uint32_t k1) {
  const uint64_t p0 = (uint64_t)0xD2511F53u * c[0], p1 = (uint64_t)0xCD9E8D57u * c[2];
  const uint32_t next[4] = {(uint32_t)(p1 >> 32) ^ c[1] ^ k0, (uint32_t)p1, (uint32_t)(p0 >> 32) ^ c[3] ^ k1, (uint32_t)p0};
  memcpy(c, next, sizeof next);
}

void ir_philox(uint64_t key, uint64_t counter, uint32_t words[4]) {
  uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
  words[0] = (uint32_t)counter, words[1] = (uint32_t)(counter >> 32), words[2] = 0, words[3] = 0;
  for (int i = 0; i < 10; i++, k0 += 0x9E3779B9u, k1 += 0xBB67AE85u) philox_round(words, k0, k1);
}

uint32_t ir_random_word(uint64_t key, uint64_t counter) {
  uint32_t words[4];
  ir_philox(key, counter, words);
  return words[0];
}

/* Box-Muller on the pairs of one block; the first of a pair in (0, 1]. */
static void normal_block(const uint32_t w[4], double out[4]) {
  const double two_pi = 6.283185307179586476925286766559;
  for (int i = 0; i < 4; i += 2) {
    double radius = sqrt(-2 * log(((double)w[i] + 1) * 0x1p-32)), angle = two_pi * ((double)w[i + 1] * 0x1p-32);
    out[i] = radius * cos(angle);
    out[i + 1] = radius * sin(angle);
  }
}

static void uniform_block(const uint32_t w[4], double out[4]) {
  for (int i = 0; i < 4; i++) out[i] = (double)w[i] * 0x1p-31 - 1;
}

static void fill_random(void *data, int32_t dtype, uint64_t count, const ir_const *value) {
  uint32_t words[4];
  double block[4] = {0};
  for (uint64_t i = 0; i < count; i++) {
    if (i % 4 == 0) {
      ir_philox(value->seed, i / 4, words);
      if (value->kind == IR_CONST_NORMAL) normal_block(words, block);
      else uniform_block(words, block);
    }
    double number = block[i % 4] * value->scale;
    ir_dtype_store(dtype, data, i, ir_dtypes[dtype].is_float ? number : floor(number));
  }
}

static void fill_splat(void *data, int32_t dtype, uint64_t count, uint64_t bits) {
  const size_t size = ir_dtypes[dtype].bytes;
  double number;
  memcpy(&number, &bits, sizeof number);
  if (count == 0) return;
  if (ir_dtypes[dtype].is_float) ir_dtype_store(dtype, data, 0, number);
  else ir_dtype_store_int(dtype, data, 0, (int64_t)bits);
  for (uint64_t i = 1; i < count; i++) memcpy((char *)data + i * size, data, size);
}

const void *ir_const_data(ir_graph *g, uint32_t node) {
  const ir_node *n = ir_at(g, node);
  int64_t count;
  if (n->op != IR_OP_const || !expr_is_const(g->pool, ir_tensor_elements(g->pool, &n->type), &count)) return NULL;
  ir_const *value = &g->consts.at[n->payload];
  if (value->data) return value->data;
  const size_t size = ir_dtypes[n->type.dtype].bytes;
  if ((uint64_t)count > SIZE_MAX / 16) return NULL;
  const size_t bytes = (size_t)count * size;
  void *data = value->kind == IR_CONST_MADE ? ir_arena_take_own(g->arena, bytes) : ir_arena_take(g->arena, bytes, 64);
  if (!data) return NULL;
  if (value->kind == IR_CONST_MADE) {
    if (!ir_make(value->making, &g->arena->host, data)) return g->arena->failed = true, NULL;
  } else if (value->kind == IR_CONST_SPLAT) fill_splat(data, n->type.dtype, (uint64_t)count, value->bits);
  else fill_random(data, n->type.dtype, (uint64_t)count, value);
  value->data = data;
  return data;
}

bool ir_const_source(ir_graph *g, uint32_t node, ir_source *out) {
  const ir_const *value = ir_at(g, node)->op == IR_OP_const ? &g->consts.at[ir_at(g, node)->payload] : NULL;
  const bool later = value && value->kind == IR_CONST_MADE && !value->data;
  *out = (ir_source){.making = later ? value->making : NULL};
  if (!later) out->data = ir_const_data(g, node);
  return out->data || out->making;
}

static bool is_given(const ir_source *s) { return s->data || s->making; }

uint32_t ir_add_made(ir_graph *g, const ir_tensor *type, ir_making *m, uint32_t like) {
  int64_t elements;
  if (!expr_is_const(g->pool, ir_tensor_elements(g->pool, type), &elements)) return 0;
  if (!is_given(&m->sources[0]) && !ir_const_source(g, like, &m->sources[0])) return 0;
  m->bytes = (uint64_t)elements * ir_dtypes[type->dtype].bytes;
  while (m->source_count < IR_MAKING_SOURCES && is_given(&m->sources[m->source_count])) m->source_count++;
  const uint32_t made = ir_add_const(g, type, &(ir_const){.kind = IR_CONST_MADE, .making = m});
  ir_set_name(g, made, ir_node_name(g, like));
  return made;
}
