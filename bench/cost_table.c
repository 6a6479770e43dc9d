/* Measurements that are kept: a line `KEY HALF HALF GRAPH` for each partition, nanoseconds; the last one counts. The partitions of a graph
   are measured in turns, all of them or none, so that the models of several revisions, or profiles, are judged by one and the same
   measurement. */
#include "bench/cost.h"
#include <inttypes.h>
#include <string.h>

static bool read_line(FILE *file, uint64_t *key, double halves[2], char name[COST_BENCH_NAME]) {
  return fscanf(file, "%" SCNx64 " %lf %lf %47[^\n]", key, &halves[0], &halves[1], name) == 4;
}

static void leave_out_unknown(cost_bench *b) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < b->count; i++) {
    if (b->parts[i].known) b->parts[kept++] = b->parts[i];
    else cost_drop_partition(&b->parts[i]);
  }
  memset(b->parts + kept, 0, (b->count - kept) * sizeof *b->parts);
  b->count = kept;
}

bool cost_table_read(cost_bench *b) {
  FILE *file = b->table ? fopen(b->table, "r") : NULL;
  char name[COST_BENCH_NAME];
  double halves[2];
  uint64_t key;
  bool all = true;
  while (file && read_line(file, &key, halves, name))
    for (uint32_t i = 0; i < b->count; i++) {
      partition *p = &b->parts[i];
      if (p->key != key || strcmp(name, b->name)) continue;
      p->halves[0] = halves[0], p->halves[1] = halves[1];
      p->measured = 0.5 * (halves[0] + halves[1]);
      p->known = true;
    }
  if (file) fclose(file);
  if (b->priced) leave_out_unknown(b);
  for (uint32_t i = 0; i < b->count; i++) all &= b->parts[i].known;
  return all;
}

void cost_table_write(const cost_bench *b) {
  FILE *file = b->table ? fopen(b->table, "a") : NULL;
  for (uint32_t i = 0; file && i < b->count; i++)
    fprintf(file, "%016" PRIx64 " %.1f %.1f %s\n", b->parts[i].key, b->parts[i].halves[0], b->parts[i].halves[1], b->name);
  if (b->table && (!file || fclose(file))) perror(b->table); /* what was measured is judged all the same */
}
