// --deterministic: whether every run of a module gives the same bits.
#ifndef FUSE_IR_DETERMINISTIC_H
#define FUSE_IR_DETERMINISTIC_H

#include "ir/ir.h"
#include "lang/base/diag.h"

// Reports each op whose result depends on the order of iterations; true where there is none.
// Passes add no such op: sums that are split are added up in a fixed order.
bool check_deterministic(const Module *m, Diags *diags);

#endif
