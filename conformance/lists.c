/* Lists of cases that are no rows of a table: of grown graphs and of pairs, each on one path, and of files, each on every path. */
#include "conformance/conform.h"
#include "tools/host/host.h"
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

conform_case conform_numbered(uint16_t call, uint32_t number, uint32_t path) {
  return (conform_case){.call = call,
                        .dtype = (uint8_t)(number >> 24),
                        .data = (uint8_t)(number >> 16),
                        .shape = (uint8_t)(number >> 8),
                        .context = (uint8_t)number,
                        .path = (uint8_t)path};
}

static bool append(conform_list *list, conform_case c) {
  if ((list->count & (list->count - 1)) == 0) {
    conform_case *more = realloc(list->at, (list->count ? 2 * list->count : 1) * sizeof *more);
    if (!more) return false;
    list->at = more;
  }
  list->at[list->count++] = c;
  return true;
}

static bool add_numbered(conform_list *list, conform_case c, conform_graph *room) {
  char cut[CONFORM_TEXT];
  if (!conform_case_graph(&c, room)) return true;
  if (c.path == PATH_CUT && !conform_cut(room->text, cut)) c.path = PATH_FUSED;
  return append(list, c);
}

/* ---- grown, and of pairs ---- */

static const uint8_t paths[16] = {PATH_FUSED, PATH_STRICT, PATH_FUSED, PATH_SAME,   PATH_FUSED, PATH_STRICT, PATH_FUSED, PATH_FAST,
                                  PATH_FUSED, PATH_STRICT, PATH_FUSED, PATH_MASKED, PATH_FUSED, PATH_STRICT, PATH_FUSED, PATH_CUT};

bool conform_add_grown(conform_list *list, uint32_t count, uint64_t seed) {
  conform_graph *room = malloc(sizeof *room);
  bool good = room != NULL;
  while (good && list->count < count) {
    const uint64_t bits = host_random(&seed);
    good = add_numbered(list, conform_numbered(CONFORM_GROWN, (uint32_t)(bits >> 32), paths[bits & 15]), room);
  }
  free(room);
  return good;
}

static uint64_t greatest_divisor(uint64_t a, uint64_t b) {
  while (b) {
    const uint64_t rest = a % b;
    a = b, b = rest;
  }
  return a;
}

/* All pairs before any is tried again, in an order in which neighbours are far apart; the seed says where to begin and what the rest of each is. */
bool conform_add_pairs(conform_list *list, uint32_t count, uint64_t seed, bool triples) {
  const uint64_t pairs = conform_pairs(triples), first = host_random(&seed) % pairs;
  uint64_t step = pairs * 3 / 8;
  while (greatest_divisor(step, pairs) != 1) step++;
  conform_graph *room = malloc(sizeof *room);
  bool good = room != NULL;
  for (uint64_t i = 0; good && list->count < count; i++) {
    const uint64_t bits = host_random(&seed), rounds = CONFORM_TRIPLES / pairs;
    const uint32_t number = (uint32_t)((bits >> 32) % rounds * pairs + (first + i * step) % pairs) + (triples ? CONFORM_TRIPLES : 0);
    good = add_numbered(list, conform_numbered(CONFORM_PAIR, number, paths[bits & 15]), room);
  }
  free(room);
  return good;
}

/* ---- files ---- */

static bool add_file(conform_list *list, const char *path, snt_diag *diag) {
  const uint32_t number = conform_keep_file(path, diag);
  conform_graph *graph = calloc(1, sizeof *graph);
  bool good = graph && number != UINT32_MAX && conform_file_graph(number, graph, NULL);
  char cut[CONFORM_TEXT];
  for (uint32_t p = 0; good && p < PATH_COUNT; p++)
    if (p != PATH_CUT || conform_cut(graph->text, cut)) good = append(list, conform_numbered(CONFORM_FILE, number, p));
  free(graph);
  return good;
}

static int is_graph(const struct dirent *entry) {
  const size_t length = strlen(entry->d_name);
  return length > 4 && !strcmp(entry->d_name + length - 4, ".snt");
}

bool conform_add_files(conform_list *list, const char *path, snt_diag *diag) {
  struct stat about;
  if (stat(path, &about) || !S_ISDIR(about.st_mode)) return add_file(list, path, diag);
  struct dirent **names = NULL;
  const int count = scandir(path, &names, is_graph, alphasort);
  bool good = count > 0 || host_fail(diag, SNT_E_ARG, "conform", "%s: no .snt files", path) == SNT_OK;
  for (int i = 0; i < count; i++) {
    char whole[4096];
    snprintf(whole, sizeof whole, "%s/%s", path, names[i]->d_name);
    good = good && add_file(list, whole, diag);
    free(names[i]);
  }
  free(names);
  return good;
}
