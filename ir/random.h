// Random numbers that depend only on a seed and an index, and tensor data made of them.
//
// Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC11): word i % 4
// of the block at counter i / 4, key = seed. It is the generator of the language's `rand` too, so
// that every machine gives the same numbers. All functions are pure.
#ifndef FUSE_IR_RANDOM_H
#define FUSE_IR_RANDOM_H

#include <stdint.h>

#include "lang/base/numeric.h"

uint32_t random_word(uint64_t seed, uint64_t index);
double random_unit(uint64_t seed, uint64_t index);                // [0, 1), 53 bits
double random_normal(uint64_t seed, uint64_t index);              // mean 0, deviation 1
uint64_t random_below(uint64_t seed, uint64_t index, uint64_t n); // 0 .. n - 1; 0 for n = 0

typedef enum RandomKind {
    RANDOM_DEFAULT, // floats: uniform in [-1, 1); integers: what fits of -8 .. 8; bool: 0 or 1
    RANDOM_UNIFORM, // [lo, hi); for integers both ends are reached
    RANDOM_NORMAL,  // mean lo, deviation hi
    RANDOM_ZERO,
    RANDOM_IOTA, // lo, lo + 1, ...
} RandomKind;
typedef struct RandomSpec {
    RandomKind kind;
    double lo, hi;
} RandomSpec;

// Element `index` of a tensor of that type.
Scalar random_scalar(DType dtype, RandomSpec spec, uint64_t seed, uint64_t index);
// `count` dense elements.
void random_fill(void *data, DType dtype, int64_t count, RandomSpec spec, uint64_t seed);

#endif
