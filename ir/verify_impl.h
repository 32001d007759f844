// What verify.c (scopes, regions, control) and verify_op.c (the rules of single ops) share.
#ifndef FUSE_IR_VERIFY_IMPL_H
#define FUSE_IR_VERIFY_IMPL_H

#include "ir/ir_impl.h"
#include "lang/base/vec.h"

typedef VEC(uint32_t) IdVec;

typedef struct Verify {
    Arena *scratch;
    const Module *module;
    const Kernel *kernel;
    const Op *op; // that is being checked
    const char *error;
    bool *defined;            // values by id
    bool *declared;           // axes by id
    bool *mem_declared;       // memories by id
    uint16_t *bound;          // axes by id: bindings around
    IdVec values, axes, mems; // definitions in order, undone at the end of their region
    bool inside;              // a parallel or launch
    int depth;
} Verify;

// Reports the first error; always false.
bool verify_fail(Verify *v, const char *format, ...) __attribute__((format(printf, 2, 3)));
// The axis has a window here: a dim, a fixed window, a binding around, or one that it is like.
bool verify_axis_usable(const Verify *v, const Axis *axis);
bool verify_type(Verify *v, Type t);
// Operands, memory references, attributes, types of one op. Its regions are not looked at.
bool verify_op(Verify *v);

#endif
