// Linear algebra over F2 on 32-bit vectors: an echelon basis that remembers how each of its vectors
// was made. Internal to the layout library.
#ifndef FUSE_IR_LAYOUT_F2_H
#define FUSE_IR_LAYOUT_F2_H

#include <stdbool.h>
#include <stdint.h>

// Zero-initialise. Invariant: vec[b] is 0 or has highest bit b.
typedef struct F2Basis {
    uint8_t rank;
    uint32_t vec[32];
    uint32_t made[32]; // which accepted vectors (by order of acceptance) XOR to vec[b]
} F2Basis;

// Adds v if it is independent of what was accepted before; says whether it was.
bool f2_add(F2Basis *basis, uint32_t v);
// True if v is in the span; *made then names the accepted vectors that XOR to it. made may be NULL.
bool f2_solve(const F2Basis *basis, uint32_t v, uint32_t *made);

#endif
