// What the files of pass protocol share.
#ifndef FUSE_IR_PROTOCOL_H
#define FUSE_IR_PROTOCOL_H

#include "ir/pass.h"

// Rules F1 to F3 on the body of a launch; false when one is broken, which is reported.
bool protocol_fences(PassCtx *ctx, Kernel *k, const Op *launch);
// Rules that the text of a launch shows by itself: C3, B2, R2.
bool protocol_static(PassCtx *ctx, const Kernel *k, const Op *launch);
// The copy is done by the engine for bulk copies, not by threads.
bool protocol_is_bulk(const Op *copy);

// A broken rule at an op of kernel k, about a memory (NULL: none). In a text that may have had
// rings, of stage scheduled or placed, it is the text's error, else the compiler's own.
void protocol_report(const PassCtx *ctx, const Kernel *k, const Op *op, const Mem *m,
                     const char *rule, const char *what);

#endif
