// The reference evaluator: runs a kernel of any stage on the CPU, with the one meaning that all
// stages share.
//
// A value is a function from the points inside its axes' windows to its dtype. At `tensor` and
// `nests` a tile has exactly those points, a load outside its tensor gives the fill and a store
// there is dropped. At `scheduled` and `placed` a tile has as many positions as its axes' sizes say
// and is computed as the machine would: the positions beyond a window's end are padding, there
// iotas count on, a `check`ed index outside its tensor or a `guard`ed axis beyond its end gives the
// fill (drops the store), anything else that is loaded there is poison. Poison goes through
// arithmetic; a `select` and the logic of bools ignore the side that does not decide. It is an
// error, named after the op,
//   - where an inside element of a reduction or dot, memory, a condition, a bound or an address
//   becomes poison;
//   - where a padding position is stored, or an index without `check` is outside its tensor.
//
// Numbers: f32 ops round to f32 once, f64 ops are double's; transcendental functions are libm's in
// double, rounded. `reduce.sum`, `reduce.prod`, `scan` and `dot` of floats accumulate in double and
// round once, at the end: the most exact result, which no machine gives; what compares with it
// needs a bound. `fold` and `scanfn` combine one element after another, each op of their function
// rounding. `round` is to nearest even. Integers wrap, dividing by 0 gives 0,
// a shift past the width gives 0 (or the sign).
//
// Order: iterations of a `parallel` or `launch` run one after another, permuted by the seed, and so
// do the elements of an `atomic` and a `scatter`. A copy
// into a channel's buffer arrives at `wait`, an outgoing copy whose buffer has a `copy.wait` leaves
// there, a slot is poison from `acquire`.
//
// Thread-safety: the module is only read; calls with different scratch arenas and tensors may run
// at once.
#ifndef FUSE_IR_EVAL_H
#define FUSE_IR_EVAL_H

#include <stdbool.h>
#include <stdint.h>

#include "ir/ir.h"
#include "lang/base/diag.h"
#include "lang/base/numeric.h"

// A tensor in host memory; strides in elements.
typedef struct EvalTensor {
    void *data; // NULL: absent (of an `opt` parameter), or without elements
    DType dtype;
    int rank;
    int64_t dims[RANK_MAX], strides[RANK_MAX];
} EvalTensor;

// An argument; `tensor` NULL is a scalar (converted to the parameter's dtype) or an absent tensor.
typedef struct EvalArg {
    const EvalTensor *tensor;
    Scalar scalar;
} EvalArg;

// The value of a dim that no argument carries, or a value to check.
typedef struct EvalDim {
    const char *name;
    int64_t value;
} EvalDim;

// The size of the windows of the axes of that name.
typedef struct EvalWindow {
    const char *axis;
    int64_t size;
} EvalWindow;

// Evaluate only these indices of a dim's own axis: some rows of a large result. What needs the
// others (a reduction along it, a temp's other elements) is neither written nor an error.
typedef struct EvalSlice {
    const char *dim;
    int64_t begin, end;
} EvalSlice;

// Which elements of a parameter were written: one byte each, in row-major order of its dims.
typedef struct EvalWritten {
    const Mem *mem;
    int64_t count;
    uint8_t *map;
} EvalWritten;

typedef struct EvalReport {
    Span span;       // of the op that failed
    const Op *op;    // it, or NULL
    bool no_variant; // a `when` or a tensor's guard did not hold
    int nwritten;
    EvalWritten *written; // of each out and inout parameter, in order
    int64_t programs, programs_run;
} EvalReport;

// All zero is a sensible default.
typedef struct EvalOptions {
    uint64_t seed;        // 0: iterations in order, else a permutation
    int64_t window;       // size of the windows of axes without a size; 0: their whole range
    int64_t max_programs; // at most so many iterations of each `parallel`, its first and last among
                          // them; 0: all. What depends on a skipped iteration is neither written
                          // nor an error.
    int sms;              // result of `sms`; 0: 4
    int64_t max_steps;    // iterations of all loops together before giving up; 0: 2^40
    int64_t max_cells; // elements allocated and terms of products, of the whole run, before giving
                       // up; 0: no limit
    bool check_guards; // fail where the arguments do not meet the variant's guards (align, inner,
                       // sdiv, fits32)
    bool check_races;  // fail where two iterations of a `parallel` meet in an element, one of them
                       // writing, or one `store` writes an element twice; atomics are exempt
    // Stages tensor and nests, without sampling and slices: reports what the language lets a
    // compiler rely on and what no meaning gives a value (SPEC.md, section 16), and goes on. What
    // was a failure because of poison is then an error in here; a `parallel` takes its axes one
    // index at a time. NULL: no checks.
    Diags *check;
    int nwindows; // these come before `window`; an axis that has a size keeps it
    const EvalWindow *windows;
    int ndims;
    const EvalDim *dims;
    int nslices;
    const EvalSlice *slices;
    EvalReport *report; // filled when not NULL
} EvalOptions;

// Runs kernel `k`. `args` are its scalar and tensor parameters in order (dims are not among them);
// NULL `opts` is all zero. On false, *error is a message in `scratch`; outputs may have been
// written in part.
bool eval_kernel(Arena *scratch, const Module *m, const Kernel *k, int nargs, const EvalArg *args,
                 const EvalOptions *opts, const char **error);

// One elementwise op on scalars, in the numerics above: for those who run the host region
// themselves. `in` are its operands. False where the op is not elementwise or not defined on their
// type.
bool eval_scalar_op(const Op *op, const Scalar *in, Scalar *out);

// The function of a `fold` or `scanfn` for one pair of elements: x, y and out of op->nres. False
// where an op of it is not defined on its type.
bool eval_function(Arena *scratch, const Op *op, const Scalar *x, const Scalar *y, Scalar *out);

// A dense row-major tensor over `data`.
EvalTensor eval_tensor(void *data, DType dtype, int rank, const int64_t *dims);

#endif
