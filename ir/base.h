/* What every folder stands on: results, arenas, growable arrays, a sticky text buffer, hashing.
   All memory comes from a snt_host_alloc. Arena objects have no destructor. Writers are sticky: after the first failure they do
   nothing, and the caller tests `failed` once at the end. */
#ifndef IR_BASE_H
#define IR_BASE_H
#include <sinter/types.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

#define SNT_TRY(expression)                                \
  do {                                                     \
    snt_result snt_try_result_ = (expression);             \
    if (snt_try_result_ != SNT_OK) return snt_try_result_; \
  } while (0)
#define IR_COUNT(array) ((uint32_t)(sizeof(array) / sizeof *(array)))
#ifdef NDEBUG
#define IR_ASSERT(condition) ((void)0)
#else
#include <assert.h>
#define IR_ASSERT(condition) assert(condition)
#endif
#if defined(__MINGW32__)
#define IR_PRINTF(a, b) __attribute__((format(gnu_printf, a, b)))
#elif defined(__GNUC__)
#define IR_PRINTF(a, b) __attribute__((format(printf, a, b)))
#else
#define IR_PRINTF(a, b)
#endif
/* In a file that is compiled for speed: what compilations hardly come to is to be short. */
#ifdef __GNUC__
#define IR_COLD __attribute__((cold))
#else
#define IR_COLD
#endif

/* C leaves open in which order a call's arguments are evaluated; where they append to something, so would be what is made of the same
   input. Under these the last two or three are evaluated from the last to the first, whatever the compiler; those in front of them, `...`,
   append nothing. A function that is given what others append has a macro of its name, which is this: who calls it need not know.
   Initialisers, which C leaves open too, compilers take as they stand. */
#define IR_LAST_FIRST_2(call, a, b, ...) \
  __extension__({                        \
    const __auto_type ir_b = (b);        \
    const __auto_type ir_a = (a);        \
    call(__VA_ARGS__, ir_a, ir_b);       \
  })
#define IR_LAST_FIRST_3(call, a, b, c, ...) \
  __extension__({                           \
    const __auto_type ir_c = (c);           \
    const __auto_type ir_b = (b);           \
    const __auto_type ir_a = (a);           \
    call(__VA_ARGS__, ir_a, ir_b, ir_c);    \
  })

/* ---- arena: blocks from the host allocator, freed together ---- */
typedef struct ir_arena_block ir_arena_block;
typedef struct ir_arena {
  snt_host_alloc host;
  ir_arena_block *blocks; /* newest first */
  size_t used;            /* in the newest block */
  bool failed;            /* sticky: an allocation failed */
} ir_arena;
typedef struct ir_arena_mark {
  ir_arena_block *block;
  size_t used;
} ir_arena_mark;
/* `host` null: malloc and free. */
void ir_arena_init(ir_arena *, const snt_host_alloc *host);
/* Zeroed memory, or null after setting `failed`. Size 0 gives a valid pointer. */
void *ir_arena_take(ir_arena *, size_t size, size_t align);
void *ir_arena_take_bare(ir_arena *, size_t size, size_t align); /* for what is written at once: not zeroed */
/* In a block of its own, which can be given back before the others; rewinding to a mark passes it by. Not zeroed. */
void *ir_arena_take_own(ir_arena *, size_t size);
void ir_arena_give(ir_arena *, const void *own);
char *ir_arena_text(ir_arena *, const char *text, size_t length); /* a terminated copy, or null */
ir_arena_mark ir_arena_here(const ir_arena *);
void ir_arena_rewind(ir_arena *, ir_arena_mark); /* frees what came after the mark */
void ir_arena_free(ir_arena *);                  /* everything; the arena can be used again */
void ir_arena_clear(ir_arena *);                 /* the same, but the newest block is kept for what comes */
/* The same of whole objects, whose alignment divides their size: to the largest power of two that does, at most 16. */
void *ir_arena_new(ir_arena *, size_t size);
#define IR_NEW(arena, T) ((T *)ir_arena_new((arena), sizeof(T)))
#define IR_NEW_ARRAY(arena, T, n) ((T *)ir_arena_new((arena), sizeof(T) * (size_t)(n)))
const snt_host_alloc *ir_host_malloc(void); /* the default allocator */

/* ---- growable arrays in an arena: what lies beyond `count` is not set ---- */
#define IR_VEC(T)             \
  struct {                    \
    T *at;                    \
    uint32_t count, capacity; \
  }
/* `vec`: an IR_VEC of elements of `item` bytes. Twice the room, or some. */
bool ir_vec_grow(ir_arena *, void *vec, size_t item);
/* Room for `wanted` elements in all, so that what is known to come moves nothing. */
bool ir_vec_reserve(ir_arena *, void *vec, uint32_t wanted, size_t item);
#define IR_RESERVE(arena, v, wanted) ir_vec_reserve((arena), (v), (wanted), sizeof *(v)->at)
#define IR_PUSH(arena, v, ...) \
  (((v)->count < (v)->capacity || ir_vec_grow((arena), (v), sizeof *(v)->at)) ? ((v)->at[(v)->count++] = (__VA_ARGS__), true) : false)

/* ---- sticky text buffer ---- */
typedef struct ir_text {
  ir_arena *arena;
  char *at;
  size_t length, capacity;
  bool failed;
} ir_text; /* `at` is terminated once written to */
void ir_text_init(ir_text *, ir_arena *);
/* The same, written to `room` as long as it fits. */
void ir_text_init_in(ir_text *, ir_arena *, char *room, size_t size);
void ir_text_put(ir_text *, const char *bytes, size_t length);
void ir_text_add(ir_text *, const char *text);
void ir_text_id(ir_text *, char letter, uint32_t number); /* v12: what most of a kernel's text is */
void ir_text_format(ir_text *, const char *format, ...) IR_PRINTF(2, 3);
/* Two-call query: copies into text[*length] with a terminator if it fits; *length becomes the needed size with the terminator. */
snt_result ir_text_copy_out(const ir_text *, char *text, size_t *length);

/* ---- diagnostics: fills an optional diag and returns `result`, so that `return ir_fail(...)` reads as one step ---- */
snt_result ir_fail(snt_diag *, snt_result result, const char *stage, uint32_t node, const char *format, ...) IR_PRINTF(5, 6);
snt_result ir_no_memory(snt_diag *, const char *stage); /* SNT_E_HOST_MEM */

/* ---- hashing: SHA-256 for keys and checksums, 64-bit mixing for tables ---- */
typedef struct ir_sha256 {
  uint32_t state[8];
  uint64_t length;
  uint8_t block[64];
  uint32_t fill;
} ir_sha256;
void ir_sha256_init(ir_sha256 *);
void ir_sha256_add(ir_sha256 *, const void *data, size_t size);
void ir_sha256_end(ir_sha256 *, uint8_t out[32]);
uint64_t ir_hash64(uint64_t seed, const void *data, size_t size);
/* One step of it: a multiplication a word; what is high in the product comes down before the next. */
static inline uint64_t ir_hash_word(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
  return hash ^ hash >> 32;
}

/* ---- element types ---- */
typedef struct ir_dtype_info {
  const char *name;
  uint8_t bytes; /* storage bytes; sub-byte types 1 with `bits` 4 */
  uint8_t bits, is_float, is_signed, is_int;
  uint8_t mantissa; /* float: explicit mantissa bits, for rounding bounds */
} ir_dtype_info;
extern const ir_dtype_info ir_dtypes[SNT_DTYPE_COUNT];
int32_t ir_dtype_find(const char *name, size_t length); /* 0: none */
/* Element access by value: reads/writes element `i` of `data` as double (exact for <= 53 bits) or as int64. Writing rounds to nearest even,
   saturates integers, NaN -> 0. 64-bit integers go through the int64 pair (u64 bits kept). */
double ir_dtype_load(int32_t dtype, const void *data, size_t i);
void ir_dtype_store(int32_t dtype, void *data, size_t i, double value);
void ir_dtype_load_run(int32_t dtype, const void *data, size_t count, double *out);
void ir_dtype_store_run(int32_t dtype, void *data, size_t count, const double *values);
int64_t ir_dtype_load_int(int32_t dtype, const void *data, size_t i);
void ir_dtype_store_int(int32_t dtype, void *data, size_t i, int64_t value); /* wraps to the type's width */
static inline uint32_t ir_f32_bits(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}
uint16_t ir_f16_from_f32(float);
float ir_f32_from_f16(uint16_t);
uint16_t ir_bf16_from_f32(float);
float ir_f32_from_bf16(uint16_t);
/* c and the four products of bytes: those of a unsigned, those of b signed. Wraps. */
static inline uint32_t ir_dot4(uint32_t a, uint32_t b, uint32_t c) {
  for (int byte = 0; byte < 32; byte += 8) c += (a >> byte & 255) * (uint32_t)(int8_t)(b >> byte & 255);
  return c;
}
#endif
