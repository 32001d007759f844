// What passes say of their decisions: remarks for --explain, and performance notes for everybody.
//
// A remark is one line, of severity note, and costs nothing without --explain. A performance note
// is made for the most special variant of a kernel only: what that one cannot do no variant does.
// It is made once for a place, and names the instance and the target that it is about. Texts use
// the names of the source.
#ifndef FUSE_IR_REMARK_H
#define FUSE_IR_REMARK_H

#include "ir/pass.h"

void remark(PassCtx *ctx, DiagId id, Span span, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void perf_note(PassCtx *ctx, const Kernel *k, DiagId id, Span span, const char *hint,
               const char *format, ...) __attribute__((format(printf, 6, 7)));

// What every performance note ends with: "in `gelu.f16` for sm_90a", and the kernel's place where
// `span` is in a function that it calls.
void perf_place(Diags *diags, Diag *d, const Kernel *k, Span span, const char *target);
// Whether the place is told of already: in a function, for this kernel.
bool perf_is_told(const Diags *diags, DiagId id, const Kernel *k, Span span);

// The name in the source: `m` of `m.1`, which is a second axis of that name. NULL: the compiler has
// made it (`cast`, `mul.2`).
const char *remark_name(Arena *scratch, const char *name);
const char *written_axis(Arena *scratch, const Axis *axis); // never NULL
// "M, N"; "" of no axes. In the pass's scratch arena, as all texts here.
const char *remark_axes(PassCtx *ctx, const Kernel *k, AxisSet axes);
// "m by 128, n by 64": those that have a size.
const char *remark_sizes(PassCtx *ctx, const Kernel *k, AxisSet axes);
// The most elements of the tile of a program of so many warps, whatever a schedule asks for; and
// the error where a tile has more.
uint64_t tile_most(const TargetDesc *target, int warps);
void tile_too_large(PassCtx *ctx, const Kernel *k, Span span, AxisSet axes, int warps);
const char *remark_mem(PassCtx *ctx, const Mem *m); // "`x`", "the temporary `h`"
// `text` with `item` added behind a comma.
const char *remark_join(PassCtx *ctx, const char *text, const char *item);

#endif
