/* Runs read back for pages: families by runs, with counts and the largest ratios. Read by page.c, written as HTML (html.c) or as a table (table.c). */
#ifndef CONFORMANCE_PAGE_H
#define CONFORMANCE_PAGE_H
#include "conformance/conform.h"

enum { PAGE_FAMILIES = 256, PAGE_RUNS = 64, PAGE_WORD = 48 };
typedef struct page_cell {
  uint32_t counts[CONFORM_RESULTS], total;
  double ratio, of_path[PATH_COUNT]; /* largest error / bound: of all, of each path; -1: none ran */
} page_cell;
typedef struct page_run {
  char *text, device[64], name[128], driver[128], suite[80];
  uint32_t cases, ran[PATH_COUNT], passed[PATH_COUNT]; /* ran: without skips */
} page_run;
typedef struct conform_page {
  page_run runs[PAGE_RUNS];
  uint32_t run_count, family_count;
  char families[PAGE_FAMILIES][PAGE_WORD];
  page_cell cells[PAGE_FAMILIES][PAGE_RUNS];
} conform_page;

/* Files of JSON lines, for the caller to free; null if that fails. */
conform_page *conform_read_runs(uint32_t count, char *const *paths, snt_diag *);
void conform_free_runs(conform_page *);
uint32_t conform_count_bad(const page_cell *); /* neither passed nor excused nor left out */
/* Markdown: operators by runs, the largest error / bound in DEFAULT, STRICT and FAST, and how many cases failed. */
snt_result conform_write_table(const conform_page *, const char *out, snt_diag *);
/* ---- devices against each other (vote.c) ---- */
typedef enum { VOTE_FAILS_ALONE, VOTE_PASSES_ALONE, VOTE_FAR_ABOVE, VOTE_OTHER_BITS, VOTE_ALL_FAIL, VOTE_KINDS } page_vote_kind;
typedef struct page_vote {
  const char *id;               /* `length` bytes of a run's text */
  uint32_t length, voices, odd; /* how many devices ran it; the run that stands alone */
  page_vote_kind kind;
  bool alike;         /* those that fail have the same bits */
  double ratio, next; /* far above: its error / bound, and the largest of the others */
} page_vote;
/* Cases that three or more runs have and in which one stands alone, or all fail; for the caller to free, null if there is no memory. */
page_vote *conform_vote(const conform_page *, uint32_t *count);
#endif
