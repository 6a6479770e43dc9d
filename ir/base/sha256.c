/* SHA-256 (FIPS 180-4) for cache keys and checksums, and a 64-bit mixing hash for tables. The table hash never reaches a file. */
#include "ir/base.h"

static const uint32_t round_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be,
    0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa,
    0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85,
    0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3,
    0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f,
    0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t rotate(uint32_t x, int by) { return (x >> by) | (x << (32 - by)); }

static void schedule(const uint8_t *block, uint32_t w[64]) {
  for (int i = 0; i < 16; i++)
    w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 | (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
  for (int i = 16; i < 64; i++) {
    uint32_t s0 = rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ (w[i - 15] >> 3);
    uint32_t s1 = rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ (w[i - 2] >> 10);
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
}

/* Instead of the eight words, their names move: round i calls word -i "a", the next one "b". With i a literal they all stay in registers. */
static inline void one_round(uint32_t s[8], uint32_t i, uint32_t input) {
  const uint32_t a = s[(8 - i) & 7], b = s[(9 - i) & 7], c = s[(10 - i) & 7], e = s[(12 - i) & 7], f = s[(13 - i) & 7], g = s[(14 - i) & 7];
  const uint32_t big1 = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25), choice = g ^ (e & (f ^ g));
  const uint32_t big0 = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22), majority = (a & b) | (c & (a | b));
  const uint32_t t1 = s[(15 - i) & 7] + big1 + choice + input;
  s[(11 - i) & 7] += t1;
  s[(15 - i) & 7] = t1 + big0 + majority;
}

static void compress(uint32_t state[8], const uint8_t *block) {
  uint32_t w[64], s[8];
  schedule(block, w);
  memcpy(s, state, sizeof s);
  for (int i = 0; i < 64; i += 8) {
    const uint32_t *k = round_constants + i, *x = w + i;
    one_round(s, 0, k[0] + x[0]);
    one_round(s, 1, k[1] + x[1]);
    one_round(s, 2, k[2] + x[2]);
    one_round(s, 3, k[3] + x[3]);
    one_round(s, 4, k[4] + x[4]);
    one_round(s, 5, k[5] + x[5]);
    one_round(s, 6, k[6] + x[6]);
    one_round(s, 7, k[7] + x[7]);
  }
  for (int i = 0; i < 8; i++) state[i] += s[i];
}

void ir_sha256_init(ir_sha256 *hash) {
  static const uint32_t initial[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  memset(hash, 0, sizeof *hash);
  memcpy(hash->state, initial, sizeof initial);
}

void ir_sha256_add(ir_sha256 *hash, const void *data, size_t size) {
  const uint8_t *bytes = data;
  hash->length += size;
  while (size) {
    if (hash->fill == 0 && size >= 64) {
      compress(hash->state, bytes);
      bytes += 64, size -= 64;
      continue;
    }
    size_t part = 64 - hash->fill < size ? 64 - hash->fill : size;
    memcpy(hash->block + hash->fill, bytes, part);
    hash->fill += (uint32_t)part;
    bytes += part, size -= part;
    if (hash->fill == 64) {
      compress(hash->state, hash->block);
      hash->fill = 0;
    }
  }
}

void ir_sha256_end(ir_sha256 *hash, uint8_t out[32]) {
  uint64_t bits = hash->length * 8;
  static const uint8_t padding[64] = {0x80};
  ir_sha256_add(hash, padding, hash->fill < 56 ? 56 - hash->fill : 120 - hash->fill);
  uint8_t tail[8];
  for (int i = 0; i < 8; i++) tail[i] = (uint8_t)(bits >> (56 - 8 * i));
  ir_sha256_add(hash, tail, 8);
  for (int i = 0; i < 32; i++) out[i] = (uint8_t)(hash->state[i / 4] >> (24 - 8 * (i % 4)));
}

/* Finaliser of MurmurHash3. */
static uint64_t mix(uint64_t x) {
  x = (x ^ (x >> 33)) * 0xff51afd7ed558ccdULL;
  x = (x ^ (x >> 33)) * 0xc4ceb9fe1a85ec53ULL;
  return x ^ (x >> 33);
}

uint64_t ir_hash64(uint64_t seed, const void *data, size_t size) {
  const uint8_t *bytes = data;
  uint64_t hash = seed ^ (size * 0x9e3779b97f4a7c15ULL), word = 0;
  for (; size >= 8; bytes += 8, size -= 8) {
    memcpy(&word, bytes, 8);
    hash = ir_hash_word(hash, word);
  }
  word = 0;
  if (size) memcpy(&word, bytes, size);
  return mix(hash ^ word);
}
