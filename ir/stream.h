// Shared by the files of pass stream.
#ifndef FUSE_IR_STREAM_H
#define FUSE_IR_STREAM_H

#include "ir/pass.h"
#include "lang/base/vec.h"

// Borders that the pass has put between segments of a region: barriers, for as long as it works.
typedef VEC(Op *) Borders;
void stream_border(PassCtx *ctx, Kernel *k, Borders *borders, Op *before);

// A border behind each atomic in the region and those in it that has old values along the whole
// axis: what uses them reads what its loop has kept.
void stream_old_values(PassCtx *ctx, Kernel *k, Region *region, const Axis *whole,
                       Borders *borders);

// After it no value along the whole axis crosses the border of a region of the nest, or one that
// was put in, and none is indexed along it. False: an error was reported.
bool stream_separate(PassCtx *ctx, Kernel *k, Op *par, Axis *whole, Borders *borders);
// A border, or the op has regions, and something in them or of its results is along the axis.
bool stream_splits(Kernel *k, Op *op, const Axis *whole);

// --- reductions along an axis: reduce, fold, argreduce, dot (stream_reduce.c) ---

bool stream_reduces(const Op *op, const Axis *whole);
// How many values a loop over its tiles carries.
int reduction_values(const Op *red);
void reduction_start(Kernel *k, const Op *red, Value **inits, Type *types);
// Result number i after the loop, of which the reduction's values are those from `at` on.
Value *reduction_result(Builder *b, const Op *red, const Op *loop, int at, int i);
// One more tile: the map has the axis's tile.
void reduction_tile(Builder *b, IrMap *map, Op *red, Value *const *acc, Value **next);

#endif
