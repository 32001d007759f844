// What pass schedule asks of its other files.
#ifndef FUSE_IR_SCHEDULE_H
#define FUSE_IR_SCHEDULE_H

#include "ir/nest.h"

// Order, persistence and clusters of the nest's grid, from the schedule's entries `order`,
// `persistent` and `cluster`. False: the target cannot have them; reported.
bool schedule_grid(PassCtx *ctx, Kernel *k, Op *par, const Nest *n);

// Once all loops are there: how often the code generator repeats their bodies (`unroll`): of the
// loop whose last range has that name, or of each loop without loops in it.
void schedule_unroll(PassCtx *ctx, Kernel *k, Region *r);

#endif
