// What passes say of their decisions: remarks for --explain, and performance notes for everybody.
//
// A remark is one line, of severity note, and costs nothing without --explain. A performance note
// is made for the most special variant of a kernel only: what that one cannot do no variant does.
#ifndef FUSE_IR_REMARK_H
#define FUSE_IR_REMARK_H

#include "ir/pass.h"

void remark(PassCtx *ctx, DiagId id, Span span, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void perf_note(PassCtx *ctx, const Kernel *k, DiagId id, Span span, const char *hint,
               const char *format, ...) __attribute__((format(printf, 6, 7)));

// "M, N"; "" of no axes. In the pass's scratch arena, as all texts here.
const char *remark_axes(PassCtx *ctx, const Kernel *k, AxisSet axes);
// "m by 128, n by 64": those that have a size.
const char *remark_sizes(PassCtx *ctx, const Kernel *k, AxisSet axes);
const char *remark_mem(PassCtx *ctx, const Mem *m); // "`x`", "the temporary `h`"
// `text` with `item` added behind a comma.
const char *remark_join(PassCtx *ctx, const char *text, const char *item);

#endif
