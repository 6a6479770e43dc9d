/* The decoders of pictures lie in a library of their own: the libraries that it needs take longer to load than many a model to compile. */
#include "tools/pictures/picture.h"
#include "tools/sinter/tool.h"
#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

static const char name[] = "libsinter-pictures.so";

/* In the folder of this program, named by its path: under the sanitizers dlopen is called from their library, which knows nothing of this program's run path.
   Installed it lies in lib, which the run path names. */
static void *open_library(void) {
  char path[4096];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path - sizeof name);
  char *end = NULL;
  if (length > 0) path[length] = 0, end = strrchr(path, '/');
  if (end) memcpy(end + 1, name, sizeof name);
  void *library = end ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
  return library ? library : dlopen(name, RTLD_NOW | RTLD_LOCAL);
}

snt_result SNT_CALL tool_decode_image(void *user, snt_onnx_image *image) {
  void *library = open_library(), *symbol = library ? dlsym(library, "picture_decode") : NULL;
  snt_result(SNT_CALL * decode)(void *, snt_onnx_image *);
  if (!symbol) {
    snprintf(image->why, sizeof image->why, "%s is not there", name);
    return SNT_E_UNSUPPORTED;
  }
  memcpy(&decode, &symbol, sizeof decode); /* it stays loaded */
  return decode(user, image);
}
