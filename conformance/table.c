/* Runs as a Markdown table: for each operator and device the largest error as a part of its bound, in DEFAULT, STRICT and FAST, and how
   many cases failed. Below, how many cases were the same bits: fused and unfused in STRICT, the device and the interpreter in REPRODUCIBLE. */
#include "conformance/page.h"
#include "tools/host/host.h"
#include <stdlib.h>
#include <string.h>

static int by_family(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

/* DEFAULT's are the fused and the masked path. */
static double ratio_of(const page_cell *c, uint32_t path) {
  const double own = c->of_path[path], masked = path == PATH_FUSED ? c->of_path[PATH_MASKED] : -1;
  return own > masked ? own : masked;
}

static void put_cell(ir_text *t, const page_cell *c) {
  static const uint32_t paths[] = {PATH_FUSED, PATH_STRICT, PATH_FAST};
  ir_text_add(t, " ");
  for (uint32_t i = 0; i < IR_COUNT(paths); i++) {
    const double ratio = ratio_of(c, paths[i]);
    if (i) ir_text_add(t, " / ");
    if (ratio < 0) ir_text_add(t, "-");
    else if (ratio == 0) ir_text_add(t, "0");
    else ir_text_format(t, "%.2g", ratio);
  }
  if (conform_count_bad(c)) ir_text_format(t, ", **%u failed**", conform_count_bad(c));
  ir_text_add(t, " |");
}

static void put_same(ir_text *t, const conform_page *p, uint32_t path, const char *what) {
  uint32_t ran = 0;
  for (uint32_t i = 0; i < p->run_count; i++) ran += p->runs[i].ran[path];
  if (!ran) return;
  ir_text_format(t, "| *%s* |", what);
  for (uint32_t i = 0; i < p->run_count; i++) ir_text_format(t, " %u of %u |", p->runs[i].passed[path], p->runs[i].ran[path]);
  ir_text_add(t, "\n");
}

static void put_table(ir_text *t, const conform_page *p) {
  const char *order[PAGE_FAMILIES];
  for (uint32_t f = 0; f < p->family_count; f++) order[f] = p->families[f];
  qsort(order, p->family_count, sizeof *order, by_family);
  ir_text_add(t, "The largest error of an element as a part of its bound in DEFAULT / STRICT / FAST (-: no case), "
                 "and how many cases failed, "
                 "crashed, hung or changed from run to run.\n\n| operator |");
  for (uint32_t i = 0; i < p->run_count; i++) ir_text_format(t, " %s |", p->runs[i].device);
  ir_text_add(t, "\n|---|");
  for (uint32_t i = 0; i < p->run_count; i++) ir_text_add(t, "---|");
  ir_text_add(t, "\n");
  for (uint32_t f = 0; f < p->family_count; f++) {
    const size_t row = (size_t)((const char(*)[PAGE_WORD])order[f] - p->families);
    ir_text_format(t, "| %s |", order[f]);
    for (uint32_t i = 0; i < p->run_count; i++) put_cell(t, &p->cells[row][i]);
    ir_text_add(t, "\n");
  }
  put_same(t, p, PATH_STRICT, "STRICT: fused and unfused the same bits");
  put_same(t, p, PATH_SAME, "REPRODUCIBLE: the interpreter's bits");
}

snt_result conform_write_table(const conform_page *p, const char *out, snt_diag *diag) {
  ir_arena arena;
  ir_text t;
  ir_arena_init(&arena, NULL);
  ir_text_init(&t, &arena);
  put_table(&t, p);
  const snt_result r = t.failed ? host_fail(diag, SNT_E_HOST_MEM, "report", "out of memory") : host_write_file(out, t.at, t.length, diag);
  ir_arena_free(&arena);
  return r;
}
