// What the functions of f64 are built from: scalar LLVM IR, one line per operation.
#ifndef FUSE_BACKEND_MATH_F64_H
#define FUSE_BACKEND_MATH_F64_H

#include "backend/target.h"

typedef LLVMValueRef V;

typedef struct F64 {
    Target *t;
    LLVMBuilderRef b;
    LLVMTypeRef f64, i64, i32;
} F64;

// A number as hi + lo, |lo| at most half an ulp of hi.
typedef struct Pair {
    V hi, lo;
} Pair;

V f64_num(F64 *m, double x);
V f64_int(F64 *m, int64_t x);
V f64_add(F64 *m, V x, V y);
V f64_sub(F64 *m, V x, V y);
V f64_mul(F64 *m, V x, V y);
V f64_neg(F64 *m, V x);
V f64_abs(F64 *m, V x);
V f64_fma(F64 *m, V x, V y, V z); // x y + z, rounded once
V f64_bits(F64 *m, V x);
V f64_of_bits(F64 *m, V bits);
V f64_choose(F64 *m, V c, V x, V y);
V f64_less(F64 *m, V x, V y); // false for NaN
V f64_equal(F64 *m, V x, V y);
V f64_with_sign(F64 *m, V x, V sign);
V f64_polynomial(F64 *m, V x, const double *c, int n); // c[0] + c[1] x + ...
// Nearest integer of x, |x| < 2^51, as a number and as an i64.
V f64_nearest(F64 *m, V x, V *integer);

// math_f64_trig.c: sin, or cos, of x.
V f64_sine(F64 *m, V function, V x, bool cosine);

#endif
