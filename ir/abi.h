// The order of a launch's entry parameters: the one list that code generation, the host targets and
// the runtime share.
//
// A `launch` op names what its region uses from outside (filled in by pass `place`):
//   mem[]  every tensor it touches, in kernel order (params in declaration order, then temps)
//   in[]   lo, hi of the program id, then every scalar it captures (dims, scalar parameters,
//   host-region values),
//          extents of its tensors included, in order of value id
// Entry parameters, in order, for each tensor: its pointer (64 bit), then the stride in elements
// (i64) of every dim but the one whose stride is known to be 1 (Mem.inner); after the tensors every
// captured scalar in its own dtype (index as i64, bool as i8). An absent tensor is a null pointer
// with extents 0.
#ifndef FUSE_IR_ABI_H
#define FUSE_IR_ABI_H

#include "ir/ir.h"

typedef enum AbiKind { ABI_POINTER, ABI_STRIDE, ABI_SCALAR } AbiKind;
typedef struct AbiParam {
    AbiKind kind;
    Mem *mem;     // POINTER, STRIDE
    int dim;      // STRIDE
    Value *value; // SCALAR
    DType dtype;  // SCALAR; index for POINTER and STRIDE
    int bytes;    // size of the parameter: 8, 4, 2 or 1
} AbiParam;

// Allocates the list in `arena`; *n = its length.
AbiParam *abi_launch_params(Arena *arena, const Op *launch, int *n);

#endif
