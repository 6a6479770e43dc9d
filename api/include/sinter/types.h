/* Result codes, element types and the small caller-owned structs that every part of Sinter shares.
   C99, C++11-clean; includes only stdint.h and stddef.h. This is the one public header that internal folders may include. */
#ifndef SINTER_TYPES_H
#define SINTER_TYPES_H
#include <stddef.h>
#include <stdint.h>
#if defined(_WIN32)
#define SNT_CALL __cdecl
#else
#define SNT_CALL
#endif
#ifndef SNT_API
#if defined(_WIN32) && defined(SNT_BUILD) /* the library's own build */
#define SNT_API __declspec(dllexport)
#elif defined(__GNUC__) && !defined(_WIN32)
#define SNT_API __attribute__((visibility("default")))
#else
#define SNT_API
#endif
#endif

typedef int32_t snt_result; /* < 0: an error; 0: done; > 0: not an error, but not done */
enum {
  SNT_OK = 0,
  SNT_INCOMPLETE = 1, /* the array or text given was too small: what fits was written, the needed size is returned */
  SNT_NOT_READY = 2,  /* jobs are still to be run */
  SNT_E_ARG = -1,     /* an argument is wrong */
  SNT_E_STRUCT = -2,  /* an unknown struct type in a chain, or a larger struct whose tail is not zero */
  SNT_E_HOST_MEM = -3,
  SNT_E_DEVICE_MEM = -4,
  SNT_E_UNSUPPORTED = -5, /* this device or target lacks something; the diag names it */
  SNT_E_BAD_BLOB = -6,    /* a blob or cache entry is damaged, or of another version */
  SNT_E_WOULD_COMPILE = -7,
  SNT_E_DEVICE_LOST = -8,
  SNT_E_BACKEND = -9, /* the driver refused; diag.native holds its code */
  SNT_E_ORDER = -10,  /* called in the wrong order (submit before the jobs are done, say) */
  SNT_E_LIMIT = -11,  /* does not fit a queried limit, even after splitting */
  SNT_E_PARSE = -12,
  SNT_E_SHAPE = -13,
  SNT_E_CONTRACT = -14, /* a must_fuse that cannot hold */
  SNT_E_CANCELLED = -15,
  SNT_E_INTERNAL = -16 /* a bug of Sinter's own, contained */
};

/* Every struct that may grow begins with a head. */
typedef struct snt_head {
  uint32_t type, size;
  const void *next;
} snt_head;
typedef struct snt_out_head {
  uint32_t type, size;
  void *next;
} snt_out_head;
#define SNT_HEAD(T) \
  { SNT_TYPE_##T, (uint32_t)sizeof(snt_##T), 0 }

/* Element types. Bytes a element: snt_dtype_size. The numbers are ABI and blob format. */
// clang-format off
enum {
  SNT_F32 = 1, SNT_F16, SNT_BF16, SNT_F64, SNT_I8, SNT_I16, SNT_I32, SNT_I64, SNT_U8, SNT_U16, SNT_U32, SNT_U64, SNT_BOOL,
  SNT_F8E4M3, SNT_F8E5M2, SNT_I4, SNT_U4, SNT_F8E4M3FNUZ, SNT_F8E5M2FNUZ, SNT_DTYPE_COUNT
};
// clang-format on
enum { SNT_TARGET_HOST = 1, SNT_TARGET_OPENCL = 2, SNT_TARGET_SPIRV = 4, SNT_TARGET_CUDA = 8 };
enum { SNT_NUMERICS_DEFAULT = 0, SNT_NUMERICS_STRICT, SNT_NUMERICS_FAST, SNT_NUMERICS_REPRODUCIBLE };
enum { SNT_MAX_RANK = 8 };

/* Detail of a failure: caller-owned, optional out parameter of everything that can fail. `node` is the 1-based number of the graph
   node (0: none), `stage` a short word for the pass or part that failed, `text` one line for a person. */
typedef struct snt_diag {
  snt_out_head head;
  snt_result result;
  int32_t native; /* the driver's own code, 0 if none */
  uint32_t node;
  char stage[28];
  char text[240];
} snt_diag;

/* Host memory of a context. `acquire` returns memory aligned to `align` (a power of two) or null; called from any thread that calls us. */
typedef struct snt_host_alloc {
  void *user;
  void *(SNT_CALL *acquire)(void *user, size_t size, size_t align, uint32_t scope);
  void(SNT_CALL *release)(void *user, void *ptr, size_t size, size_t align);
} snt_host_alloc;
#endif
