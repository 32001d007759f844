// The exact value of a scalar of the host region, where it has one.
//
// The language's arithmetic never traps: integers wrap, a division by zero gives anything. What a
// condition of `where` says of a launch must not rest on that, so here such a step is a fault. What
// `?:`, `&&` and `||` leave out does no harm: `k == 0 || N % k == 0` is true where k is 0.
#ifndef FUSE_IR_EXACT_H
#define FUSE_IR_EXACT_H

#include "ir/ir.h"
#include "lang/base/numeric.h"

typedef enum ExactKind {
    EXACT_VALUE,
    EXACT_UNKNOWN,  // something in it is not known, or no scalar op
    EXACT_OVERFLOW, // a step leaves its type
    EXACT_DIVISION, // a step divides by zero
} ExactKind;

// Knows parameters (VALUE_PARAM) and facts of tensors (present, extent, stride); false: unknown.
typedef bool (*ExactKnown)(void *user, const Value *v, Scalar *out);

// *out is set for EXACT_VALUE. `known` may be NULL.
ExactKind value_exact(const Value *v, ExactKnown known, void *user, Scalar *out);
bool exact_is_fault(ExactKind kind);
// "divides by zero", "leaves 64 bits": of a fault.
const char *exact_text(ExactKind kind);
// Whether a step of it may be a fault at all.
bool value_may_fault(const Value *v);

#endif
