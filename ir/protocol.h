// The part of pass protocol that stands in a file of its own.
#ifndef FUSE_IR_PROTOCOL_H
#define FUSE_IR_PROTOCOL_H

#include "ir/pass.h"

// Rules F1 to F3 on the body of a launch; false when one is broken, which is reported.
bool protocol_fences(PassCtx *ctx, Kernel *k, const Op *launch);

#endif
