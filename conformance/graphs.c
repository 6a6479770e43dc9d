/* Graphs that are no row of a table: the numbers they are grown from, and files, which are read once, by the parent. */
#include "conformance/ports.h"
#include "tools/host/host.h"
#include <stdlib.h>
#include <string.h>

snt_result conform_parse(conform_parsed *p, const char *text, snt_diag *diag) {
  ir_arena_init(&p->arena, NULL);
  expr_pool_init(&p->pool, &p->arena);
  ir_graph_init(&p->graph, &p->arena, &p->pool);
  return ir_graph_parse(&p->graph, text, strlen(text), diag);
}

void conform_forget(conform_parsed *p) { ir_arena_free(&p->arena); }

/* ---- grown, and of pairs ---- */

uint32_t conform_case_number(const conform_case *c) {
  return (uint32_t)c->dtype << 24 | (uint32_t)c->data << 16 | (uint32_t)c->shape << 8 | c->context;
}

size_t conform_grown_choices(uint32_t number, uint8_t choices[CONFORM_CHOICES]) {
  uint64_t state = number;
  const size_t count = 16 + host_random(&state) % (CONFORM_CHOICES - 16);
  for (size_t i = 0; i < count; i++) choices[i] = (uint8_t)(host_random(&state) >> 32);
  return count;
}

/* ---- files ---- */

enum { MAX_FILES = 1024, FILE_NAME = 64 };
typedef struct graph_file {
  char name[FILE_NAME], *text;
} graph_file;
static graph_file files[MAX_FILES]; /* the program's own; children inherit it */
static uint32_t file_count;

const char *conform_file_name(uint32_t number) { return files[number].name; }

static snt_result parse_file(conform_parsed *p, const char *text, snt_diag *diag) {
  SNT_TRY(conform_parse(p, text, diag));
  if (p->pool.symbols.count <= IR_COUNT(((conform_graph *)0)->symbols) && p->graph.inputs.count + p->graph.outputs.count <= MAX_PORTS)
    return SNT_OK;
  return host_fail(diag, SNT_E_LIMIT, "conform", "%u symbols and %u ports", p->pool.symbols.count,
                   p->graph.inputs.count + p->graph.outputs.count);
}

/* The symbols' values are their hints. */
bool conform_file_graph(uint32_t number, conform_graph *out, snt_diag *diag) {
  conform_parsed p;
  snprintf(out->text, sizeof out->text, "%s", files[number].text);
  const bool good = parse_file(&p, out->text, diag) == SNT_OK;
  for (uint32_t i = 0; good && i < p.pool.symbols.count; i++) out->symbols[i] = p.pool.symbols.at[i].hint;
  conform_forget(&p);
  return good;
}

uint32_t conform_keep_file(const char *path, snt_diag *diag) {
  void *data;
  size_t size;
  const char *base = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
  if (file_count == MAX_FILES) return host_fail(diag, SNT_E_ARG, "conform", "more than %d graphs", MAX_FILES), UINT32_MAX;
  if (host_read_file(path, &data, &size, diag) != SNT_OK) return UINT32_MAX;
  const uint32_t number = file_count++;
  files[number].text = data;
  snprintf(files[number].name, FILE_NAME, "%.*s", (int)strcspn(base, "."), base);
  conform_graph *graph = calloc(1, sizeof *graph);
  snt_diag why = {.text = "too long"};
  const bool good = graph && size < CONFORM_TEXT && conform_file_graph(number, graph, &why);
  free(graph);
  if (good) return number;
  return host_fail(diag, SNT_E_PARSE, "conform", "%s: no graph of at most %u symbols, %d ports and %d bytes: %s", path,
                   IR_COUNT(graph->symbols), MAX_PORTS, CONFORM_TEXT, why.text),
         UINT32_MAX;
}
