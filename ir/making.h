/* Constants that are described instead of computed: what compilers make of weights (scaled, widened, transformed, laid out) is a tree of steps over bytes
   that are there, and is computed when somebody needs the bytes. In: a description, which lives as long as its program. Out: its bytes. */
#ifndef IR_MAKING_H
#define IR_MAKING_H
#include "ir/base.h"

typedef struct ir_making ir_making;
typedef struct ir_source {
  const void *data;
  const ir_making *making; /* where there is no data */
} ir_source;
enum { IR_MAKING_SOURCES = 2 };
/* The first member of each step's own description. The same step gives the same bytes, always. */
struct ir_making {
  void (*fill)(const ir_making *, const void *const *sources, void *to); /* all of `bytes` */
  uint64_t bytes;
  uint32_t source_count;
  uint32_t size; /* of the whole description, if equal bytes of it are the same step; 0: it is like no other */
  bool reorders; /* the elements of the first source, each once, in another order */
  ir_source sources[IR_MAKING_SOURCES];
};

/* False: out of memory; what the sources need meanwhile goes back before it returns. */
bool ir_make(const ir_making *, const snt_host_alloc *, void *to);
/* Do both describe the same bytes, as far as that can be told? Null is like null. */
bool ir_same_making(const ir_making *, const ir_making *);
#endif
