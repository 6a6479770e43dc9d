/* Driver libraries, found at run time: a table of function pointers is filled by name. They stay once loaded (RTLD_NODELETE, a pin), because drivers keep
   threads. */
#include "runtime/rt_system.h"

#if defined(_WIN32)
#define WIN32_LEAN_AND_MEAN
#include <windows.h>

static void *open_one(const char *name) {
  HMODULE library = LoadLibraryA(name), pinned;
  if (library) GetModuleHandleExA(GET_MODULE_HANDLE_EX_FLAG_PIN, name, &pinned);
  return library;
}
static void close_one(void *library) { FreeLibrary(library); }
/* ISO C has no cast from a function pointer to an object's. */
static void *find(void *library, const char *name) {
  FARPROC function = GetProcAddress(library, name);
  void *address;
  memcpy(&address, &function, sizeof address);
  return address;
}
#else
#include <dlfcn.h>

static void *open_one(const char *name) { return dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE); }
static void close_one(void *library) { dlclose(library); }
static void *find(void *library, const char *name) { return dlsym(library, name); }
#endif

void *rt_library_open(const char *const *names) {
  void *library = NULL;
  while (*names && !library) library = open_one(*names++);
  return library;
}

void rt_library_close(void *library) {
  if (library) close_one(library);
}

const char *rt_library_symbols(void *library, const char *names, void *table) { return rt_find_all(find, library, names, table); }
