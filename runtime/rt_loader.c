/* Driver libraries, found at run time: a table of function pointers is filled by name. RTLD_NODELETE, because drivers keep threads. */
#include "runtime/rt_common.h"
#include <dlfcn.h>

void *rt_library_open(const char *const *names) {
  for (; *names; names++) {
    void *library = dlopen(*names, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (library) return library;
  }
  return NULL;
}

void rt_library_close(void *library) {
  if (library) dlclose(library);
}

bool rt_library_symbols(void *library, const rt_symbol *symbols, uint32_t count, void *table, const char **missing) {
  for (uint32_t i = 0; i < count; i++) {
    void *address = dlsym(library, symbols[i].name);
    if (!address) {
      *missing = symbols[i].name;
      return false;
    }
    memcpy((char *)table + symbols[i].offset, &address, sizeof address); /* ISO C has no cast from object to function pointer */
  }
  return true;
}
