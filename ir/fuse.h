// Shared by the files of pass fuse: what a whole-tensor statement needs, and which values must be
// kept in memory.
#ifndef FUSE_IR_FUSE_H
#define FUSE_IR_FUSE_H

#include "ir/pass.h"

// The ops of one host region that make a value, in program order, without the roots (stores)
// themselves.
typedef struct Cone {
    int n;
    Op **op;
} Cone;
// Every pure op and load of `host` that `root` needs, transitively. Ops with scalar results stay in
// the host region and are not part of it.
Cone cone_of(Arena *scratch, const Kernel *k, const Region *host, const Op *root);
// Values that the host region cannot compute, by value id: tiles, loads, and what depends on them.
uint8_t *nest_values(Arena *scratch, const Kernel *k, const Region *host);
bool op_is_tile(const Op *op);     // a result with axes
AxisSet root_axes(const Op *op);   // of the value that a root stores and of its index
bool axis_is_short(const Axis *a); // of a small known extent: held in any nest
// A store, scatter or atomic of a host region. An atomic whose old values are used is none: it
// belongs to the store of them.
bool op_is_root(const Op *op);

// Inserts temps for the old values of atomics, so that each atomic is in one nest only.
bool fuse_keep_old(PassCtx *ctx, Kernel *k, Region *host);
// Inserts temps for values whose inputs are overwritten before they are used, and for what
// hand-written nests take from outside. Comes before the regions in `host` are fused: their nests
// compute again what they use.
bool fuse_keep_order(PassCtx *ctx, Kernel *k, Region *host);
// Inserts temps so that every root can be one nest: results of products and reductions that another
// product or a reduction over their axes uses, values that several nests would compute again.
bool fuse_keep(PassCtx *ctx, Kernel *k, Region *host);
// Stores the value in a temp behind its definition; every later use loads it. `why` is for
// --explain. False: it has too many axes (reported).
bool fuse_keep_value(PassCtx *ctx, Kernel *k, Value *v, const char *why);
// A load of a temp or output that a statement of this region has just stored, at the same place =>
// the stored value.
bool fuse_forward(PassCtx *ctx, Kernel *k, Region *host);
// The op, or one in its regions, writes the tensor.
bool op_writes(Op *op, const Mem *mem);
// A product whose result is one number => a sum of elementwise products: no tile, no matrix unit.
void fuse_inner_products(PassCtx *ctx, Kernel *k);
// Whole axes of the nest that nothing in it needs as a whole become axes of its grid where they
// could not be streamed. Returns the nest, or the one in its place.
Op *fuse_spread_whole(PassCtx *ctx, Kernel *k, Op *par);
// histogram[n, b] => a sum along n of comparisons with b.
void fuse_histograms(PassCtx *ctx, Kernel *k);
// dot[K] over an axis that is neither bound nor small => a loop over tiles of K that carries the
// sum. Where more than elementwise work on loads makes an operand the product stays for pass
// stream.
void fuse_dot_loops(PassCtx *ctx, Kernel *k, Region *region);

#endif
