// Shared by the files of pass fuse: what a whole-tensor statement needs, and which values must be
// kept in memory.
#ifndef FUSE_IR_FUSE_H
#define FUSE_IR_FUSE_H

#include "ir/pass.h"
#include "lang/base/vec.h"

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
// Inserts temps for values whose inputs are overwritten before they are used by what cannot be in
// the launch that overwrites them, and for what hand-written nests take from outside. Comes before
// the regions in `host` are fused: their nests compute again what they use.
bool fuse_keep_order(PassCtx *ctx, Kernel *k, Region *host);
bool fuse_keep_for_nests(PassCtx *ctx, Kernel *k, Region *host);
// Inserts temps so that every root can be one nest: results of products and reductions that another
// product or a reduction over their axes uses, values that several nests would compute again.
bool fuse_keep(PassCtx *ctx, Kernel *k, Region *host);
// Stores the value in a temp behind its definition; every later use loads it. `why` is for
// --explain. False: it has too many axes (reported).
bool fuse_keep_value(PassCtx *ctx, Kernel *k, Value *v, const char *why);
// Why a value is kept whose tensor changes before it is used.
#define FUSE_OVERWRITTEN "its tensor is written before the last use"
// False: the value has too many axes for a temp (reported). Else leaves the remark that it is kept.
bool fuse_may_keep(PassCtx *ctx, const Kernel *k, const Value *v, const char *why);
// A load of a temp or output that a statement of this region has just stored, at the same place =>
// the stored value.
bool fuse_forward(Region *host);
// The store's tensor holds its value from now on: a load of all of it is the value.
bool store_holds_value(const Op *store);

// The load is of elements that `root` writes, each in the program that loads it, and comes first:
// it may share a launch with the root.
bool op_reads_own(const Op *load, const Op *root);
bool op_precedes(const Op *a, const Op *b); // of one region; an op precedes itself

// A value that launches behind a run of statements load: the run overwrites what it is made of, or
// some of them load it anyway.
typedef struct Reload {
    Value *v;
    const Op *store; // the statement of the run that stores it; NULL: a copy is needed
    Mem *copy;
} Reload;
typedef VEC(Reload) ReloadVec;
// Statements that share a launch, in program order.
typedef struct Run {
    int n;
    Op *const *root;
    bool deep; // what it stores costs more to compute again than to load
} Run;
ReloadVec fuse_hand_over(Arena *scratch, const Kernel *k, const Run *run);
// Later ops use a load in the place of the value. The run's own ops have been copied before.
void fuse_reload(Kernel *k, const Reload *r);
// A temp for the value and the store to it, at the builder. Returns the store.
Op *value_store(Builder *b, Value *v);
// The value from a tensor that `value_store` made.
Value *value_load(Builder *b, Mem *t, const Value *v);
// `to` in the place of `from`, in `first` and everything behind it but `except`.
void value_replace(Op *first, Value *from, Value *to, const Op *except);

// Values of the region, and of the regions in it, that depend on `def`, by value id.
uint8_t *values_from(Arena *scratch, const Kernel *k, const Op *def);
// The op, or one in its regions, uses one of the values.
bool op_uses(Op *op, const uint8_t *values);
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
