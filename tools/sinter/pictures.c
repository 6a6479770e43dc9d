/* The decoders of pictures lie in a library of their own: the libraries that it needs take longer to load than many a model to compile. */
#include "tools/pictures/picture.h"
#include "tools/sinter/tool.h"
#include <dlfcn.h>
#include <string.h>

static const char name[] = "libsinter-pictures.so"; /* in the folder of this program, or in lib beside that */

snt_result SNT_CALL tool_decode_image(void *user, snt_onnx_image *image) {
  void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL), *symbol = library ? dlsym(library, "picture_decode") : NULL;
  snt_result(SNT_CALL * decode)(void *, snt_onnx_image *);
  if (!symbol) {
    snprintf(image->why, sizeof image->why, "%s is not there", name);
    return SNT_E_UNSUPPORTED;
  }
  memcpy(&decode, &symbol, sizeof decode); /* it stays loaded */
  return decode(user, image);
}
