// Binding: from a caller's list of arguments to tensors, scalars and dims that an instance can run
// with.
//
// A Frame is the memory of one launch; its arrays are sized for the instance. Everything that can
// be checked without running anything is checked here: names, kinds, types, ranks, shared dims,
// devices, null data, overlap.
#ifndef FUSE_RUNTIME_BIND_H
#define FUSE_RUNTIME_BIND_H

#include "runtime/plan.h"

typedef struct TensorBind {
    char *data; // of element [0, ...]
    int64_t shape[FUSE_RT_MAX_RANK], stride[FUSE_RT_MAX_RANK];
    int64_t count; // elements
    bool present;
} TensorBind;

typedef struct BoundBy { // where a dim got its value
    int16_t param, dim;  // param -1: an argument of its own
} BoundBy;

typedef struct Frame {
    const Instance *instance;
    TensorBind *tensor; // parameters, then temporaries
    Reg *scalar;        // by parameter
    int64_t *dim;       // -1: not bound
    BoundBy *bound_by;
    const FuseRtArg **arg; // by parameter; NULL: not given
    Reg *slot;
    uint64_t *value; // of a launch's parameters
    void **pointer;
} Frame;

size_t frame_size(const Instance *k);
// Lays the frame out in `memory` of frame_size bytes, aligned to 16.
void frame_init(Frame *f, const Instance *k, void *memory);

// Which parameter each argument is for. `partial`: required ones may be missing.
FuseRtStatus bind_names(Frame *f, int nargs, const FuseRtArg *args, bool partial);
// Do the tensors that are given have the instance's types?
bool bind_types_match(const Instance *k, const FuseRtArg *const *arg);
// Tensors, scalars, dims; then dims defined by equations. `device` is where tensors have to be,
// `device_name` what messages call it.
FuseRtStatus bind_values(Frame *f, DLDevice device, const char *device_name, bool partial);
// What is written must not share elements with anything.
FuseRtStatus bind_overlap(const Frame *f);
// The value of an expression over bound dims and scalars; false where something in it is unknown,
// or has no exact value (ir/exact.h).
bool bind_evaluate(const Frame *f, const Value *v, int64_t *out);
// Whether the arithmetic of the conditions is exact for what is bound: reports where it leaves its
// type or divides by zero.
FuseRtStatus bind_conditions(const Frame *f);

typedef enum Solution { SOLUTION_UNKNOWN, SOLUTION_FOUND, SOLUTION_NONE } Solution;
// The size of the one dim of an equation that is not bound yet, *dim. UNKNOWN where there is not
// one; NONE where no size makes both sides equal.
Solution bind_solve(const Frame *f, const Equation *e, int *dim, int64_t *value);

#endif
