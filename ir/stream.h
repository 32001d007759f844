// Shared by the files of pass stream.
#ifndef FUSE_IR_STREAM_H
#define FUSE_IR_STREAM_H

#include "ir/pass.h"

// After it no value along the whole axis crosses the border of a region of the nest. False: an
// error was reported.
bool stream_separate(PassCtx *ctx, Kernel *k, Op *par, Axis *whole);
// The op has regions, and something in them or of its results is along the axis.
bool stream_splits(Kernel *k, Op *op, const Axis *whole);

#endif
