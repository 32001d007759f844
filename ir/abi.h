// The order of a launch's entry parameters: the one list that code generation, the host targets and
// the runtime share.
//
// A `launch` op names what its region uses from outside (filled in by pass `place`):
//   mem[]  every tensor it touches, in kernel order (params in declaration order, then temps)
//   in[]   lo, hi of the program id, then every scalar it captures (dims, scalar parameters,
//   host-region values),
//          extents of its tensors included, in order of value id
//   maps    for each different way in which its copies by TMA see a tensor (filled in by the back
//   end): number of the tensor in mem[], bytes of the swizzle, number of dims, and for each dim,
//   the one of stride 1 first, its number in the tensor and its elements in a box
// Entry parameters, in order, for each tensor: its maps (128 bytes each, at multiples of 64), its
// pointer (64 bit), then the stride in elements
// (i64) of every dim but the one whose stride is known to be 1 (Mem.inner); after the tensors every
// captured scalar in its own dtype (index as i64, bool as i8). An absent tensor is a null pointer
// with extents 0.
#ifndef FUSE_IR_ABI_H
#define FUSE_IR_ABI_H

#include <assert.h>

#include "ir/ir.h"

// No dim of a launch is more than 2^ABI_DIM_BITS, none of its programs' numbers 2^31 or more.
enum { ABI_DIM_BITS = 52 };

enum { ABI_MAP_RANK = 5, ABI_MAP_BYTES = 128 };
typedef struct AbiMap { // a box of a tensor's elements in shared memory
    Mem *mem;
    int rank;
    int dim[ABI_MAP_RANK], box[ABI_MAP_RANK]; // innermost first
    int swizzle;                              // bytes: 0, 32, 64, 128
} AbiMap;

// A tensor map in memory of the host: what its targets get where a GPU gets the driver's.
enum { ABI_HOST_MAP = 0x50414d48 };
typedef struct AbiHostMap {
    uint32_t magic;      // ABI_HOST_MAP
    uint8_t rank, bytes; // of an element
    uint16_t swizzle;    // bytes: 0, 32, 64, 128
    const void *base;
    uint64_t dim[ABI_MAP_RANK];   // innermost first, elements
    int64_t stride[ABI_MAP_RANK]; // bytes
    uint32_t box[ABI_MAP_RANK];
} AbiHostMap;
static_assert(sizeof(AbiHostMap) <= ABI_MAP_BYTES, "a parameter holds a map");

typedef enum AbiKind { ABI_MAP, ABI_POINTER, ABI_STRIDE, ABI_SCALAR } AbiKind;
typedef struct AbiParam {
    AbiKind kind;
    Mem *mem;     // MAP, POINTER, STRIDE
    AbiMap map;   // MAP
    int dim;      // STRIDE
    Value *value; // SCALAR
    DType dtype;  // SCALAR; index for POINTER and STRIDE
    int bytes;    // size of the parameter: 128, 8, 4, 2 or 1
} AbiParam;

// The launch's tensor maps; a damaged list ends where it makes no sense.
AbiMap *abi_launch_maps(Arena *arena, const Op *launch, int *n);
void abi_set_launch_maps(Kernel *k, Op *launch, int n, const AbiMap *maps);

// Allocates the list in `arena`; *n = its length.
AbiParam *abi_launch_params(Arena *arena, const Op *launch, int *n);

#endif
