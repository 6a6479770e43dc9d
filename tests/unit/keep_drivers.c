/* Under the sanitizers drivers stay loaded: leaks of a library that is gone have no module's name, so tests/lsan.supp could not leave them out, and what its
   variables kept would be lost (Mesa's table of an AMD processor's caches). */
#ifdef __SANITIZE_ADDRESS__
int dlclose(void *library);
__attribute__((visibility("default"))) int dlclose(void *library) { return (void)library, 0; }
#endif
typedef int keep_drivers; /* a file without the sanitizers is not empty */
