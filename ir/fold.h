// Rewriting of folds and scans shared by passes.
#ifndef FUSE_IR_FOLD_H
#define FUSE_IR_FOLD_H

#include "ir/ir.h"

bool op_is_scan(const Op *op);
// fold[a, b, c] => fold[a, .. axis before `at`](fold[axis `at`, .. c]), in the op's place: elements
// are combined in lexicographic order, so the last axes go first. All uses are rewritten.
void fold_split(Kernel *k, Arena *scratch, Op *op, int at);

// A scan along more than one axis: its first axis alone, then the others, in the op's place; gives
// the scan along these. The prefix of a row is what the rows before it give together:
//   scan[a, n] %x => %t = reduce[n] %x; %u = scan[a] %t; %p = take %u, a = a - 1; %p + scan[n] %x
Op *scan_peel(Kernel *k, Arena *scratch, Op *op);

// --- a scan over the tiles of its slowest axis, one after another ---

// What a loop over the tiles carries: all that came before, op->nres values.
void scan_carry(Kernel *k, const Op *scan, Value **inits, Type *types);
// The scan of one tile, behind `prefix`; results are entered into the map, `next` is the prefix of
// the next tile. The map has the axis's tile, whose windows start at `lo`.
void scan_tile(Builder *b, IrMap *map, Op *scan, Value *lo, Value *const *prefix, Value **next);

#endif
