/* Bytes as an entry of the file cache. The entry's own bytes are what was stored, and any others are a miss; then the entry can be stored and found again. */
#include "tests/fuzz/fuzz.h"
#include "tools/host/host.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const fuzz_facts fuzz = {.name = "cache", .least_of_corpus = 1}; /* one entry is whole, and no other may be found */

enum { PAYLOAD = 100 };
static char root[64], entry[160];
static host_cache *cache;
static uint8_t key[32], payload[PAYLOAD];

static void remove_folder(void) {
  char path[128];
  host_cache_close(cache);
  (void)remove(entry);
  snprintf(path, sizeof path, "%s/%02x", root, key[0]);
  (void)rmdir(path);
  (void)rmdir(root);
}

static void begin(void) {
  int length;
  snprintf(root, sizeof root, "/tmp/fuzz-cache-XXXXXX");
  if (!mkdtemp(root) || host_cache_open(root, 1 << 20, &cache, NULL) != SNT_OK) fuzz_wrong("no cache");
  atexit(remove_folder);
  for (uint32_t i = 0; i < sizeof key; i++) key[i] = (uint8_t)(7 + 31 * i);
  for (uint32_t i = 0; i < PAYLOAD; i++) payload[i] = (uint8_t)(i * 13);
  length = snprintf(entry, sizeof entry, "%s/%02x/", root, key[0]);
  for (uint32_t i = 1; i < sizeof key; i++) length += snprintf(entry + length, sizeof entry - (size_t)length, "%02x", key[i]);
}

static bool found(void) {
  uint8_t got[PAYLOAD];
  size_t size = sizeof got;
  const snt_result r = host_cache_get(cache, key, got, &size);
  if (r != SNT_OK && r != SNT_NOT_READY) fuzz_wrong("neither a hit nor a miss");
  if (r == SNT_OK && (size != PAYLOAD || memcmp(got, payload, PAYLOAD) != 0)) fuzz_wrong("an entry that was not stored");
  return r == SNT_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (!cache) begin();
  host_cache_set(cache, key, payload, PAYLOAD); /* makes its folder */
  if (host_write_file(entry, data, size, NULL) != SNT_OK) fuzz_wrong("the entry cannot be written");
  if (found()) fuzz_accept();
  host_cache_set(cache, key, payload, PAYLOAD);
  if (!found()) fuzz_wrong("what was stored over it is not found");
  return 0;
}
