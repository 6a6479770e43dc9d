/* Cases that are no row of a table: graphs grown from a number, graphs read from files. Files are read once, by the parent. */
#include "conformance/conform.h"
#include "tools/host/host.h"
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MAX_FILES = 1024, FILE_NAME = 64 };
typedef struct graph_file {
  char name[FILE_NAME], *text;
} graph_file;
static graph_file files[MAX_FILES]; /* the program's own; children inherit it */
static uint32_t file_count;

uint32_t conform_case_number(const conform_case *c) {
  return (uint32_t)c->dtype << 24 | (uint32_t)c->data << 16 | (uint32_t)c->shape << 8 | c->context;
}

static conform_case numbered(uint16_t call, uint32_t number, uint32_t path) {
  return (conform_case){.call = call,
                        .dtype = (uint8_t)(number >> 24),
                        .data = (uint8_t)(number >> 16),
                        .shape = (uint8_t)(number >> 8),
                        .context = (uint8_t)number,
                        .path = (uint8_t)path};
}

/* ---- grown, and of pairs ---- */

static uint64_t next(uint64_t *state) {
  uint64_t z = (*state += 0x9E3779B97F4A7C15u);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

static uint64_t greatest_divisor(uint64_t a, uint64_t b) {
  while (b) {
    const uint64_t rest = a % b;
    a = b, b = rest;
  }
  return a;
}

size_t conform_grown_choices(uint32_t number, uint8_t choices[CONFORM_CHOICES]) {
  uint64_t state = number;
  const size_t count = 16 + next(&state) % (CONFORM_CHOICES - 16);
  for (size_t i = 0; i < count; i++) choices[i] = (uint8_t)(next(&state) >> 32);
  return count;
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

static const uint8_t paths[16] = {PATH_FUSED, PATH_STRICT, PATH_FUSED, PATH_SAME,   PATH_FUSED, PATH_STRICT, PATH_FUSED, PATH_FAST,
                                  PATH_FUSED, PATH_STRICT, PATH_FUSED, PATH_MASKED, PATH_FUSED, PATH_STRICT, PATH_FUSED, PATH_CUT};

bool conform_add_grown(conform_list *list, uint32_t count, uint64_t seed) {
  conform_graph *room = malloc(sizeof *room);
  bool good = room != NULL;
  while (good && list->count < count) {
    const uint64_t bits = next(&seed);
    good = add_numbered(list, numbered(CONFORM_GROWN, (uint32_t)(bits >> 32), paths[bits & 15]), room);
  }
  free(room);
  return good;
}

/* All pairs before any is tried again, in an order in which neighbours are far apart; the seed says where to begin and what the rest of each is. */
bool conform_add_pairs(conform_list *list, uint32_t count, uint64_t seed, bool triples) {
  const uint64_t pairs = conform_pairs(triples), first = next(&seed) % pairs;
  uint64_t step = pairs * 3 / 8;
  while (greatest_divisor(step, pairs) != 1) step++;
  conform_graph *room = malloc(sizeof *room);
  bool good = room != NULL;
  for (uint64_t i = 0; good && list->count < count; i++) {
    const uint64_t bits = next(&seed), rounds = CONFORM_TRIPLES / pairs;
    const uint32_t number = (uint32_t)((bits >> 32) % rounds * pairs + (first + i * step) % pairs) + (triples ? CONFORM_TRIPLES : 0);
    good = add_numbered(list, numbered(CONFORM_PAIR, number, paths[bits & 15]), room);
  }
  free(room);
  return good;
}

/* ---- files ---- */

const char *conform_file_name(uint32_t number) { return files[number].name; }

snt_result conform_parse(conform_parsed *p, const char *text, snt_diag *diag) {
  ir_arena_init(&p->arena, NULL);
  expr_pool_init(&p->pool, &p->arena);
  ir_graph_init(&p->graph, &p->arena, &p->pool);
  return ir_graph_parse(&p->graph, text, strlen(text), diag);
}

void conform_forget(conform_parsed *p) { ir_arena_free(&p->arena); }

/* The symbols' values are their hints. */
bool conform_file_graph(uint32_t number, conform_graph *out) {
  conform_parsed p;
  snprintf(out->text, sizeof out->text, "%s", files[number].text);
  const bool good = conform_parse(&p, out->text, NULL) == SNT_OK && p.pool.symbols.count <= 3;
  for (uint32_t i = 0; good && i < p.pool.symbols.count; i++) out->symbols[i] = p.pool.symbols.at[i].hint;
  conform_forget(&p);
  return good;
}

static bool add_file(conform_list *list, const char *path, snt_diag *diag) {
  void *data;
  size_t size;
  const char *base = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
  if (file_count == MAX_FILES) return host_fail(diag, SNT_E_ARG, "conform", "more than %d graphs", MAX_FILES) == SNT_OK;
  if (host_read_file(path, &data, &size, diag) != SNT_OK) return false;
  files[file_count].text = data;
  snprintf(files[file_count].name, FILE_NAME, "%.*s", (int)strcspn(base, "."), base);
  conform_graph *graph = calloc(1, sizeof *graph);
  bool good = graph != NULL;
  if (good && (size >= CONFORM_TEXT || !conform_file_graph(file_count, graph)))
    good = host_fail(diag, SNT_E_PARSE, "conform", "%s: no graph of at most three symbols and %d bytes", path, CONFORM_TEXT) == SNT_OK;
  char cut[CONFORM_TEXT];
  for (uint32_t p = 0; good && p < PATH_COUNT; p++)
    if (p != PATH_CUT || conform_cut(graph->text, cut)) good = append(list, numbered(CONFORM_FILE, file_count, p));
  free(graph);
  file_count++;
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
