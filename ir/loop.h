// Rewriting of loops shared by passes.
#ifndef FUSE_IR_LOOP_H
#define FUSE_IR_LOOP_H

#include "ir/ir.h"

// The same loop with one more carried value: a new op in the old one's place, its body moved over,
// all uses rewritten. The body's yield must be given the next value by loop_yield_add.
Op *loop_add_carry(Kernel *k, Arena *scratch, Op *loop, Value *init, const char *name);
// The loop's yield carries `next` for the value added last.
void loop_yield_add(Kernel *k, Op *loop, Value *next);
// acquire, commit, wait or release of a channel at a position.
Op *build_chan_op(Builder *b, OpKind kind, Mem *chan, Value *pos);
// First op after the leading `axis` declarations of a region; a place for buffers.
Op *region_after_axes(const Region *r);

#endif
