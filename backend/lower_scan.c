// Scans along axes.
//
// Input: a tile whose scanned axis is held by registers outermost, after lanes, after warps.
// Output: inclusive prefixes. Not there yet: a clear message instead.
#include "backend/lower.h"

void lower_scan(Lower *l, const Op *op) {
    (void)op;
    target_fail(l->t, "scans cannot be lowered yet");
}
