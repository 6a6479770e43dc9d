/* What is computed from constants alone, for rules of the rewriting pass. */
#ifndef FUSION_REWRITE_CONSTANTS_H
#define FUSION_REWRITE_CONSTANTS_H
#include "fusion/rebuild.h"

/* Whether a node of r->to is a cast of a constant of fewer bytes, less a zero point or not. */
bool rewrite_is_narrow(const rebuild *, uint32_t node);
/* A value of r->to that is steps over one constant, as a described f32 constant; 0: it is none, or a constant already. */
uint32_t rewrite_settle(rebuild *, uint32_t node);
/* One that is a constant seen through turned axes that are joined, or (`turned`) through turned axes, as a described constant of that order; 0: it is none. */
uint32_t rewrite_moved(rebuild *, uint32_t node, bool turned);
#endif
