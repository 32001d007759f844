// Made-up inputs, and results compared with a reference.
#ifndef FUSE_TOOLS_COMPARE_H
#define FUSE_TOOLS_COMPARE_H

#include "tools/tensor.h"

// Fills with repeatable elements that depend on the seed and the name: floats evenly from [-1, 1),
// integers from 0 to 7, bools 0 or 1.
void tensor_fill_random(HostTensor *tensor, uint64_t seed, const char *name);

typedef struct CompareResult {
    int64_t elements, differing; // differing: not the same value (NaN is the same as NaN)
    int64_t mismatched;          // NaN or infinity on one side only
    int64_t both_nan;            // NaN on both sides: the same value
    double max_abs;              // largest |got - want| over finite elements
    double max_want;             // largest |want|, finite
    double rms;                  // root of the mean of (got - want)^2, finite
    int64_t worst;               // where: the first mismatched, else that of max_abs; -1: all equal
} CompareResult;

// Same shape; the element types may differ.
CompareResult tensor_compare(const HostTensor *got, const HostTensor *want);
// max_abs / max_want; 0 when all are equal, infinity when some are mismatched.
double compare_error(const CompareResult *result);
// "[3, 17]" of element i.
const char *tensor_index_text(const HostTensor *tensor, int64_t i, char *out, size_t size);

#endif
