/* The format of a saved program, shared by blob_save.c and blob_load.c. Numbers are little-endian, whatever the machine.
     header   magic, version, section count, size of the whole, SHA-256 of everything but itself
     table    a row a section: id, 0, offset, size; ids ascend, sections follow each other, gaps (to a multiple of 64) are zero
     sections texts are not terminated; DATA is referred to by offset from the graph's text and from the constants
   Element data and SPIR-V words are stored as the machine has them, so the magic carries the machine's byte order. */
#ifndef API_BLOB_H
#define API_BLOB_H
#include "api/handles.h"

enum { BLOB_VERSION = 4, BLOB_HEADER = 64, BLOB_DIGEST_AT = 32, BLOB_ROW = 24, BLOB_ALIGN = 64 };
enum {
  BLOB_META = 1,
  BLOB_PROFILE,
  BLOB_GRAPH,
  BLOB_PLAN,
  BLOB_KERNELS,
  BLOB_CONSTANTS,
  BLOB_TEXT,
  BLOB_JSON,
  BLOB_DATA,
  BLOB_SECTION_END
};
enum { BLOB_SECTIONS = BLOB_SECTION_END - 1 };

typedef struct blob_bytes {
  const uint8_t *at;
  size_t size;
} blob_bytes;
/* A copy in the program's arena of a part of DATA; null: outside of it, or no memory. */
const void *blob_constant(snt_program *, const blob_bytes *data, uint64_t offset, uint64_t size);

/* blob_graph.c, or runtime_only/ in a library that keeps neither graphs nor kernel IR. */
snt_result blob_load_graph(snt_program *, const blob_bytes *text, const blob_bytes *data, snt_diag *); /* before the plan */
const char *blob_compare_graph(const snt_program *);                                                   /* after it; null: the ports agree */
snt_result blob_load_kernel(snt_program *, api_kernel *, snt_diag *);                                  /* from its code */

static inline const char *blob_magic(void) { /* 8 bytes */
  static const uint16_t one = 1;
  return *(const uint8_t *)&one ? "SNTPRGle" : "SNTPRGbe";
}

static inline void blob_digest(const uint8_t *blob, size_t size, uint8_t out[32]) {
  ir_sha256 sha;
  ir_sha256_init(&sha);
  ir_sha256_add(&sha, blob, BLOB_DIGEST_AT);
  ir_sha256_add(&sha, blob + BLOB_HEADER, size - BLOB_HEADER);
  ir_sha256_end(&sha, out);
}
#endif
