/* The ground: arenas, growable arrays, the sticky text, hashes, and every element type against slow, obvious arithmetic. */
#include "ir/base.h"
#include "tests/tap.h"

/* ---- an allocator that counts and may refuse ---- */
typedef struct counter {
  int64_t left, live;
} counter;
static void *SNT_CALL counted_acquire(void *user, size_t size, size_t align, uint32_t scope) {
  counter *c = user;
  if (c->left-- <= 0) return NULL;
  c->live++;
  return ir_host_malloc()->acquire(NULL, size, align, scope);
}
static void SNT_CALL counted_release(void *user, void *data, size_t size, size_t align) {
  ((counter *)user)->live--;
  ir_host_malloc()->release(NULL, data, size, align);
}

static void test_arena(void) {
  counter c = {1000, 0};
  snt_host_alloc host = {&c, counted_acquire, counted_release};
  ir_arena arena;
  ir_arena_init(&arena, &host);
  bool aligned = true, zeroed = true;
  for (size_t i = 0; i < 2000; i++) {
    size_t align = (size_t)1 << (i % 8), size = i * 7 % 500;
    uint8_t *at = ir_arena_take(&arena, size, align);
    aligned = aligned && at && (uintptr_t)at % align == 0;
    for (size_t k = 0; k < size; k++) zeroed = zeroed && at[k] == 0;
    memset(at, 0xa5, size);
  }
  tap_ok(aligned, "what is taken is aligned");
  tap_ok(zeroed, "and zero");
  ir_arena_mark mark = ir_arena_here(&arena);
  int64_t live = c.live;
  uint8_t *first = ir_arena_take(&arena, 100, 1);
  memset(first, 0xff, 100);
  ir_arena_take(&arena, 10 << 20, 64);
  tap_ok(c.live > live, "a large piece has a block");
  ir_arena_rewind(&arena, mark);
  tap_is_int(c.live, live, "which rewinding gives back");
  uint8_t *again = ir_arena_take(&arena, 100, 1);
  tap_ok(again == first && again[99] == 0, "and the memory is zero when taken again");
  tap_ok(ir_arena_take(&arena, 0, 1) != NULL, "nothing has an address");
  c.left = 0;
  tap_ok(!ir_arena_take(&arena, 10 << 20, 1) && arena.failed, "refusal");
  c.left = 100;
  tap_ok(!ir_arena_take(&arena, 1, 1), "sticks");
  ir_arena_free(&arena);
  tap_is_int(c.live, 0, "all is given back");
  tap_ok(ir_arena_take(&arena, 8, 8) != NULL, "and the arena serves again");
  ir_arena_free(&arena);
}

static void test_vec(void) {
  ir_arena arena;
  ir_arena_init(&arena, NULL);
  struct {
    IR_VEC(uint32_t) a;
    IR_VEC(uint64_t) b;
  } v = {{0}, {0}};
  bool pushed = true, right = true;
  for (uint32_t i = 0; i < 100000; i++)
    pushed = pushed && IR_PUSH(&arena, &v.a, i * 3) && (i % 5 || IR_PUSH(&arena, &v.b, (uint64_t)i << 32));
  for (uint32_t i = 0; i < 100000; i++) right = right && v.a.at[i] == i * 3 && (i % 5 || v.b.at[i / 5] == (uint64_t)i << 32);
  tap_ok(pushed && right && v.a.count == 100000 && v.b.count == 20000, "two arrays grow beside each other");
  ir_arena_free(&arena);
}

static void test_text(void) {
  ir_arena arena;
  ir_text text;
  ir_arena_init(&arena, NULL);
  ir_text_init(&text, &arena);
  for (int i = 0; i < 1000; i++) ir_text_format(&text, "%d,", i);
  ir_text_add(&text, "end");
  char copy[4000];
  size_t length = 10;
  tap_ok(ir_text_copy_out(&text, copy, &length) == SNT_INCOMPLETE && strcmp(copy, "0,1,2,3,4") == 0, "what fits is copied");
  tap_ok(length == text.length + 1 && ir_text_copy_out(&text, copy, &length) == SNT_OK && strcmp(copy + text.length - 7, "999,end") == 0,
         "then all of it");
  char same[200];
  snprintf(same, sizeof same, "%d %u %lld %llu %s%c %% %5.2f %x %s", INT32_MIN, UINT32_MAX, (long long)INT64_MIN, ~0ull, "word", '!', 1.5,
           255, "after");
  ir_text_init(&text, &arena);
  ir_text_format(&text, "%d %u %lld %llu %s%c %% %5.2f %x %s", INT32_MIN, UINT32_MAX, (long long)INT64_MIN, ~0ull, "word", '!', 1.5, 255,
                 "after");
  tap_is_text(text.at, same, "numbers at their ends, words and what the C library formats, as it does");
  length = 0;
  tap_ok(ir_text_copy_out(&text, NULL, &length) == SNT_OK && length == text.length + 1, "or only the size");
  snt_diag diag = {.native = 5};
  tap_ok(ir_fail(&diag, SNT_E_LIMIT, "stage", 7, "%s %d", "too many", 9) == SNT_E_LIMIT && diag.node == 7 && diag.native == 0,
         "a diagnostic");
  tap_is_text(diag.text, "too many 9", "says what it was told");
  tap_is_int(ir_fail(NULL, SNT_E_ARG, "stage", 0, "x"), SNT_E_ARG, "or to nobody");
  ir_arena_free(&arena);
}

static void digest(const char *data, size_t size, size_t piece, char *hex) {
  ir_sha256 hash;
  uint8_t out[32];
  ir_sha256_init(&hash);
  for (size_t at = 0; at < size; at += piece) ir_sha256_add(&hash, data + at, size - at < piece ? size - at : piece);
  ir_sha256_end(&hash, out);
  for (int i = 0; i < 32; i++) snprintf(hex + 2 * i, 3, "%02x", out[i]);
}

static void test_hash(void) { /* the examples of FIPS 180-4 */
  char hex[65], other[65];
  digest("abc", 3, 3, hex);
  tap_is_text(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", "abc");
  digest("", 0, 1, hex);
  tap_is_text(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", "nothing");
  digest("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56, 56, hex);
  tap_is_text(hex, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1", "two blocks");
  static char many[1000000];
  memset(many, 'a', sizeof many);
  digest(many, sizeof many, sizeof many, hex);
  tap_is_text(hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0", "a million");
  digest(many, sizeof many, 37, other);
  tap_is_text(other, hex, "piece by piece");
  tap_ok(ir_hash64(1, "abcdefgh", 8) != ir_hash64(2, "abcdefgh", 8) && ir_hash64(1, "abcdefgh", 7) != ir_hash64(1, "abcdefgh", 8),
         "seeds and sizes count");
}

/* ---- element types ---- */
/* The nearest of all finite values of a small float, ties to the even encoding. */
static uint32_t nearest(int32_t dtype, uint32_t codes, double x) {
  uint32_t best = 0;
  double best_distance = INFINITY;
  for (uint32_t code = 0; code < codes; code++) {
    uint16_t stored = (uint16_t)code;
    double v = ir_dtype_load(dtype, &stored, 0);
    if (isnan(v) || isinf(v)) continue;
    double distance = fabs(v - x);
    bool closer = distance < best_distance || (distance == best_distance && v != 0 && (code & 1) == 0 && (best & 1));
    if (closer) best = code, best_distance = distance;
  }
  return best;
}

static void test_small_floats(int32_t dtype, uint32_t codes) {
  uint64_t state = 3;
  int wrong_back = 0, wrong_near = 0;
  for (uint32_t code = 0; code < codes; code++) {
    uint16_t stored = (uint16_t)code, back = 0;
    double v = ir_dtype_load(dtype, &stored, 0);
    ir_dtype_store(dtype, &back, 0, v);
    bool saturates = isinf(v) && ir_dtypes[dtype].bits == 8;
    wrong_back += isnan(v) ? !isnan(ir_dtype_load(dtype, &back, 0)) : !saturates && back != stored;
  }
  tap_is_int(wrong_back, 0, "%s: every value is itself", ir_dtypes[dtype].name);
  for (int i = 0; i < 300; i++) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    double x = ldexp((double)(int64_t)state * 0x1p-63, (int)(state >> 40 & 31) - 20);
    uint16_t stored = 0;
    ir_dtype_store(dtype, &stored, 0, x);
    uint16_t want = (uint16_t)nearest(dtype, codes, x);
    bool same = ir_dtype_load(dtype, &stored, 0) == ir_dtype_load(dtype, &want, 0);
    bool beyond = isinf(ir_dtype_load(dtype, &stored, 0));
    wrong_near += !same && !beyond;
  }
  tap_is_int(wrong_near, 0, "%s: rounds to the nearest", ir_dtypes[dtype].name);
}

static void test_halves(void) {
  int wrong = 0, wrong_bf = 0;
  for (uint64_t bits = 0; bits < UINT64_C(1) << 32; bits += 4099) { /* odd step: every exponent and low bits of all kinds */
    float x;
    uint32_t word = (uint32_t)bits;
    uint16_t half, brain;
    memcpy(&x, &word, 4);
    ir_dtype_store(SNT_F16, &half, 0, (double)x);
    ir_dtype_store(SNT_BF16, &brain, 0, (double)x);
    wrong += isnan(x) ? !isnan(ir_f32_from_f16(ir_f16_from_f32(x))) : ir_f16_from_f32(x) != half;
    wrong_bf += isnan(x) ? !isnan(ir_f32_from_bf16(ir_bf16_from_f32(x))) : ir_bf16_from_f32(x) != brain;
  }
  tap_is_int(wrong, 0, "the quick way to f16 is the slow way");
  tap_is_int(wrong_bf, 0, "and to bf16");
}

static void test_integers(void) {
  static const struct {
    int32_t dtype;
    double in;
    int64_t out;
  } cases[] = {
      {SNT_I8, 127.5, 127},
      {SNT_I8, -129, -128},
      {SNT_I8, 2.5, 2},
      {SNT_I8, 3.5, 4},
      {SNT_U8, -1, 0},
      {SNT_U8, 255.4, 255},
      {SNT_U8, 1e9, 255},
      {SNT_I32, 1e10, INT32_MAX},
      {SNT_I64, 1e30, INT64_MAX},
      {SNT_I64, -1e30, INT64_MIN},
      {SNT_U64, 1e30, -1},
      {SNT_U64, 0x1p63, INT64_MIN},
      {SNT_I4, 9, 7},
      {SNT_I4, -9, -8},
      {SNT_U4, 16, 15},
      {SNT_BOOL, 0.25, 1},
      {SNT_U16, (double)NAN, 0},
  };
  for (uint32_t i = 0; i < IR_COUNT(cases); i++) {
    uint64_t stored = 0;
    ir_dtype_store(cases[i].dtype, &stored, 0, cases[i].in);
    tap_is_int(ir_dtype_load_int(cases[i].dtype, &stored, 0), cases[i].out, "%g as %s", cases[i].in, ir_dtypes[cases[i].dtype].name);
  }
  uint64_t stored = 0;
  ir_dtype_store_int(SNT_U32, &stored, 0, -1);
  tap_is_int(ir_dtype_load_int(SNT_U32, &stored, 0), UINT32_MAX, "integers wrap");
  ir_dtype_store_int(SNT_I4, &stored, 0, 9);
  tap_is_int(ir_dtype_load_int(SNT_I4, &stored, 0), -7, "at four bits too");
  tap_ok(ir_dtype_find("bf16", 4) == SNT_BF16 && ir_dtype_find("f", 1) == 0 && ir_dtype_find("none", 4) == 0, "types by name");
}

int main(void) {
  test_arena();
  test_vec();
  test_text();
  test_hash();
  test_small_floats(SNT_F16, 1 << 16);
  test_small_floats(SNT_BF16, 1 << 16);
  test_small_floats(SNT_F8E4M3, 1 << 8);
  test_small_floats(SNT_F8E5M2, 1 << 8);
  test_halves();
  test_integers();
  return tap_done();
}
