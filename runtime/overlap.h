// Do two strided tensors share bytes? Does one meet itself?
#ifndef FUSE_RUNTIME_OVERLAP_H
#define FUSE_RUNTIME_OVERLAP_H

#include <stdbool.h>
#include <stdint.h>

// A tensor as a set of bits: elements of `bits` bits at address * 8 + sum(index * stride * bits).
// No extent is 0.
typedef struct Strided {
    uint64_t address;
    uint32_t bits;
    int rank;
    const int64_t *shape, *stride; // strides in elements
} Strided;

typedef enum Overlap { OVERLAP_NO, OVERLAP_YES, OVERLAP_UNKNOWN } Overlap; // UNKNOWN: gave up

// Address intervals first, then an exact search of bounded length.
Overlap overlap_between(const Strided *a, const Strided *b);
// Do two different indices name one element?
Overlap overlap_within(const Strided *a);

#endif
