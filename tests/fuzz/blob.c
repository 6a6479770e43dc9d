/* Bytes as a saved program. As they are, they are a bad blob unless their checksum is right; with the checksum made right, so that what it
   protects is reached, they either are a bad blob or give a program that can be asked, and saved to what loads again. */
#include "api/blob.h"
#include "tests/fuzz/fuzz.h"
#include <stdlib.h>

const fuzz_facts fuzz = {.name = "blob", .least_of_corpus = 90, .least_of_mutations = 1};

static void ask(snt_context *c, const snt_program *p) {
  size_t length = 0, size = 0;
  for (uint32_t format = 0; format <= SNT_EXPLAIN_PLAN; format++) (void)snt_program_explain(p, format, NULL, &length);
  if (snt_program_save(p, NULL, &size) != SNT_INCOMPLETE) fuzz_wrong("what was loaded cannot be saved");
  uint8_t *again = malloc(size);
  snt_program *second = NULL;
  if (again && snt_program_save(p, again, &size) != SNT_OK) fuzz_wrong("what was loaded is not saved");
  if (again && snt_program_load(c, again, size, &second, NULL) != SNT_OK) fuzz_wrong("what was loaded and saved does not load");
  snt_program_destroy(second);
  free(again);
}

static void load(snt_context *c, const uint8_t *blob, size_t size, bool forged) {
  snt_diag diag = {.head = SNT_HEAD(diag)};
  snt_program *p = NULL;
  const snt_result r = snt_program_load(c, blob, size, &p, &diag);
  if (r != SNT_OK && r != SNT_E_BAD_BLOB && r != SNT_E_ARG) fuzz_wrong("an answer that is neither");
  if ((r == SNT_OK) != (p != NULL) || (r != SNT_OK && !diag.text[0])) fuzz_wrong("a program, or a reason");
  if (p && forged) {
    fuzz_accept();
    ask(c, p);
  }
  snt_program_destroy(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const snt_context_info info = {.head = SNT_HEAD(context_info), .abi_version = SNT_ABI_VERSION};
  snt_context *c = NULL;
  if (snt_context_create(&info, &c) != SNT_OK) return 0;
  load(c, data, size, false);
  uint8_t *forged = malloc(size ? size : 1);
  if (forged && size >= BLOB_HEADER) {
    memcpy(forged, data, size);
    blob_digest(forged, size, forged + BLOB_DIGEST_AT);
    load(c, forged, size, true);
  }
  free(forged);
  snt_context_destroy(c);
  return 0;
}
