/* Scatters of rows into a number (fusion/rewrite/rows.c). */
#ifndef FUSION_REWRITE_ROWS_H
#define FUSION_REWRITE_ROWS_H
#include "fusion/rebuild.h"

/* A rule: as a gather of the updates by the number of each row's last one. */
uint32_t rewrite_set_rows(rebuild *);
#endif
