/* Products of the gates of recurrent cells, for the rewriting pass. */
#ifndef FUSION_REWRITE_GATES_H
#define FUSION_REWRITE_GATES_H
#include "fusion/rebuild.h"

uint32_t rewrite_gate(rebuild *, const ir_uses *of_from); /* the slice at hand of a product as a product; 0: it stays a slice */
#endif
