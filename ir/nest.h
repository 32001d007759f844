// What passes ask about a nest (one `parallel`): its axes and their windows, its products, the axis
// that is contiguous in memory. Recomputed by whoever needs it; valid until the nest is changed.
#ifndef FUSE_IR_NEST_H
#define FUSE_IR_NEST_H

#include "ir/layout.h"
#include "ir/pass.h"

// A held row of up to this many elements belongs to one warp: reductions need no shared memory.
enum { ROW_OF_A_WARP = 1024 };

typedef struct AxisWindow {
    Value *lo, *hi; // NULL: not bound here
    const Op *binder;
} AxisWindow;

typedef struct Nest {
    Op *op; // the `parallel`
    int ndots;
    Op *dot;        // the first product, NULL if there is none
    AxisSet axes;   // every axis of a value in it
    AxisSet whole;  // those that nothing binds: held or streamed
    AxisSet sorted; // those that some op needs held: no part of them has a result
    uint64_t given; // elements of a program's tile along the bound axes that have a size
    int elem_bytes; // widest access: bytes of the widest element that it loads or stores
    uint32_t words; // 32-bit registers of what one fold or scan combines; 1 where there is none
    int contiguous; // axis id that walks the innermost dim of most accesses, -1 = none
    bool strided;   // nothing is known of the strides: each element has an address of its own
} Nest;

Nest nest_of(Op *parallel);
// Window of every axis id: from the kernel's dims, fixed windows, and the ops that bind it (the
// outermost one).
AxisWindow *axis_windows(Arena *scratch, const Kernel *k);
bool region_has_loop(const Region *r); // a `for` or `while`, however deep
// Calls fn for every `parallel` of the kernel, host loops and ifs included.
typedef bool (*NestFn)(PassCtx *ctx, Kernel *k, Op *parallel);
bool each_nest(PassCtx *ctx, Kernel *k, NestFn fn);

// Elements of a tile of an axis that is streamed, or that a store walks: along the contiguous axis
// one vector per thread (a few vectors on the CPU; one element where nothing is known of strides),
// across it a few rows in registers.
uint32_t stream_tile(const TargetDesc *target, const Nest *nest, const Axis *axis);

// Elements of a tile over these axes; an axis without a size counts as 1.
uint64_t tile_elements(const Kernel *k, AxisSet axes);

// *n = the extent of the axis, where its ends are constants; else false.
bool axis_const_extent(const Axis *a, int64_t *n);

// 32-bit registers that the tiles of a region ask for (pressure.c); at least 1. For each element
// along the axes, times their elements along other axes that have a size, or that are in `held` and
// have a known extent; without axes, once tiles have layouts, of a thread.
uint32_t live_words(Arena *scratch, const Kernel *k, const Region *r, AxisSet along, AxisSet held);

// What the axis that walks tiles of `whole` is called: its name in small letters.
char *tile_name(Arena *arena, const Axis *whole);

uint32_t pow2_ceil(uint64_t n);  // at least 1
uint32_t pow2_floor(uint64_t n); // n at least 1

// The first schedule entry of this kernel with that name (and `of`), or NULL.
const ScheduleEntry *schedule_find(const PassCtx *ctx, const Kernel *k, const char *name,
                                   const char *of);
const ScheduleEntry *schedule_find_axis(const PassCtx *ctx, const Kernel *k, const Axis *axis);

// The value of a `take` of an axis itself along that axis: the index, where it lies in the window.
// NULL: it takes from something else.
Value *take_of_axis(Builder *b, const Op *take);

// An operand is along the axis.
bool op_takes_axis(const Op *op, const Axis *axis);
// The first references of two accesses have the same indices.
bool op_same_place(const Op *a, const Op *b);

// What a reduction over nothing gives.
Value *reduce_identity(Kernel *k, ReduceKind kind, DType dtype);

// Axes of a product: rows are only in a, columns only in b, batch in both (and in the result).
typedef struct DotAxes {
    AxisSet rows, cols, batch, along;
} DotAxes;
DotAxes dot_axes(const Op *dot);
// A matrix unit: what it is called, and the rows and k of one instruction (columns are 8).
typedef struct DotUnit {
    MmaUnit unit;
    const char *name;
    uint32_t rows, k;
} DotUnit;
// The target's matrix unit for the product's types and precision, the widest whose k is at most
// `k` (ANY_K: the widest there is). False: multiply-add.
#define ANY_K UINT32_MAX
bool dot_unit(const TargetDesc *target, const Op *dot, uint32_t k, DotUnit *unit);

#endif
