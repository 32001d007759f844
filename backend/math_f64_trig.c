// Sine and cosine of f64.
//
// Input: any number. Output: the function of what is left of it after multiples of pi/2. Below 2^31
// these are subtracted in three parts of pi/2; above, the product with the bits of 2/pi around the
// binary point is formed in integers (Payne and Hanek, Radian reduction for trigonometric
// functions, 1983).
#include "backend/math_f64.h"

#include <math.h>
#include <stdio.h>

#define PI_2      1.5707963267948966
#define PI_2_LOW  6.123233995736766e-17
#define PI_2_LAST -1.4973849048591698e-33

// 64 zeros, then 1216 bits of 2/pi.
static const uint64_t two_over_pi[] = {
    0x0000000000000000, 0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041,
    0xfe5163abdebbc561, 0xb7246e3a424dd2e0, 0x06492eea09d1921c, 0xfe1deb1cb129a73e,
    0xe88235f52ebb4484, 0xe99c7026b45f7e41, 0x3991d639835339f4, 0x9c845f8bbdf9283b,
    0x1ff897ffde05980f, 0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7, 0x4f463f669e5fea2d,
    0x7527bac7ebe5f17b, 0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08, 0x56033046fc7b6bab};
enum { WORDS = sizeof two_over_pi / sizeof two_over_pi[0] };

typedef struct Rest {
    Pair r; // |r.hi| <= pi/4 and a bit
    V quadrant;
} Rest;

// --- below 2^31 --------------------------------------------------------------------------------

static Rest rest_small(F64 *m, V x) {
    Rest rest;
    V n = f64_nearest(m, f64_mul(m, x, f64_num(m, 0.6366197723675814)), &rest.quadrant);
    V minus = f64_neg(m, n);
    V t = f64_fma(m, minus, f64_num(m, PI_2), x); // exact: a multiple of 2^-52 below 1
    // What is left may be far smaller than t and n PI_2_LOW: neither that product nor the
    // difference may lose a bit (T. Dekker's and D. Knuth's exact product and sum).
    V p = f64_mul(m, n, f64_num(m, PI_2_LOW));
    V p_low = f64_fma(m, n, f64_num(m, PI_2_LOW), f64_neg(m, p));
    V hi = f64_sub(m, t, p), back = f64_sub(m, hi, t);
    V lost = f64_sub(m, f64_sub(m, t, f64_sub(m, hi, back)), f64_add(m, p, back));
    V lo = f64_fma(m, minus, f64_num(m, PI_2_LAST), f64_sub(m, lost, p_low));
    rest.r = (Pair){hi, lo};
    return rest;
}

// --- above -------------------------------------------------------------------------------------

static V word_table(F64 *m) {
    char name[64];
    snprintf(name, sizeof name, "fuse.two_over_pi.%d", m->t->part);
    V table = LLVMGetNamedGlobal(m->t->module, name);
    if (table)
        return table;
    V words[WORDS];
    for (int i = 0; i < WORDS; i++)
        words[i] = LLVMConstInt(m->i64, two_over_pi[i], false);
    table = LLVMAddGlobal(m->t->module, LLVMArrayType2(m->i64, WORDS), name);
    LLVMSetInitializer(table, LLVMConstArray2(m->i64, words, WORDS));
    LLVMSetGlobalConstant(table, true);
    LLVMSetLinkage(table, LLVMInternalLinkage);
    return table;
}

// Three words of 2/pi from bit `at` (an i64, at least 0) on, the highest first.
static void window_of(F64 *m, V at, V *w) {
    V table = word_table(m), word[4], off = LLVMBuildAnd(m->b, at, f64_int(m, 63), "");
    V first = LLVMBuildLShr(m->b, at, f64_int(m, 6), "");
    for (int i = 0; i < 4; i++) {
        V k = LLVMBuildAdd(m->b, first, f64_int(m, i), "");
        V p = LLVMBuildGEP2(m->b, m->i64, table, &k, 1, "");
        word[i] = LLVMBuildLoad2(m->b, m->i64, p, "");
    }
    for (int i = 0; i < 3; i++)
        w[i] = arith_intrinsic(m->t, "llvm.fshl", m->i64, 3, (V[]){word[i], word[i + 1], off});
}

static V unsigned_number(F64 *m, V x) {
    return LLVMBuildUIToFP(m->b, x, m->f64, "");
}

// |x| = M 2^e. The bits of 2/pi above place e - 2 make multiples of 4 of the product and are left
// out; of the product of M with the 192 bits below, modulo 2^192, the first two bits are the
// quadrant.
static Rest rest_large(F64 *m, V x) {
    LLVMBuilderRef b = m->b;
    LLVMTypeRef i128 = target_int(m->t, 128);
    V c64 = LLVMConstInt(i128, 64, false), bits = f64_bits(m, f64_abs(m, x)), w[3];
    V exponent = LLVMBuildLShr(b, bits, f64_int(m, 52), "");
    V mantissa = LLVMBuildAnd(b, bits, f64_int(m, (INT64_C(1) << 52) - 1), "");
    mantissa = LLVMBuildOr(b, mantissa, f64_int(m, INT64_C(1) << 52), "");
    window_of(m, LLVMBuildAdd(b, exponent, f64_int(m, 64 - 2 - 1075), ""), w);
    V wide = LLVMBuildZExt(b, mantissa, i128, "");
    V low = LLVMBuildMul(b, wide, LLVMBuildZExt(b, w[2], i128, ""), "");
    V mid = LLVMBuildMul(b, wide, LLVMBuildZExt(b, w[1], i128, ""), "");
    mid = LLVMBuildAdd(b, mid, LLVMBuildLShr(b, low, c64, ""), "");
    V carry = LLVMBuildTrunc(b, LLVMBuildLShr(b, mid, c64, ""), m->i64, "");
    V top = LLVMBuildAdd(b, LLVMBuildMul(b, mantissa, w[0], ""), carry, "");
    V next = LLVMBuildTrunc(b, mid, m->i64, ""), last = LLVMBuildTrunc(b, low, m->i64, "");
    // The fraction as a signed number of 128 bits: from a half on it belongs to the next quadrant.
    V two = f64_int(m, 2);
    V hi = arith_intrinsic(m->t, "llvm.fshl", m->i64, 3, (V[]){top, next, two});
    V lo = arith_intrinsic(m->t, "llvm.fshl", m->i64, 3, (V[]){next, last, two});
    V sign = LLVMBuildAShr(b, hi, f64_int(m, 63), ""); // 0 or -1
    V quadrant = LLVMBuildSub(b, LLVMBuildLShr(b, top, f64_int(m, 62), ""), sign, "");
    V borrow = LLVMBuildAnd(b, LLVMBuildZExt(b, LLVMBuildIsNull(b, lo, ""), m->i64, ""), sign, "");
    borrow = LLVMBuildAnd(b, borrow, f64_int(m, 1), "");
    // absolute value: complement and add 1, which carries where lo is 0
    hi = LLVMBuildAdd(b, LLVMBuildXor(b, hi, sign, ""), borrow, "");
    lo = LLVMBuildSub(b, LLVMBuildXor(b, lo, sign, ""), sign, "");
    // hi has at most 62 zeros in front: no f64 is closer to a multiple of pi/2
    V shift = arith_intrinsic(m->t, "llvm.ctlz", m->i64, 2,
                              (V[]){hi, LLVMConstInt(target_int(m->t, 1), 0, false)});
    hi = arith_intrinsic(m->t, "llvm.fshl", m->i64, 3, (V[]){hi, lo, shift});
    lo = LLVMBuildShl(b, lo, LLVMBuildAnd(b, shift, f64_int(m, 63), ""), "");
    V eleven = f64_int(m, 11);
    V tail = LLVMBuildShl(b, hi, f64_int(m, 53), "");
    tail = LLVMBuildOr(b, tail, LLVMBuildLShr(b, lo, eleven, ""), "");
    V scale = LLVMBuildSub(b, f64_int(m, 1023 - 53), shift, "");
    scale = f64_of_bits(m, LLVMBuildShl(b, scale, f64_int(m, 52), ""));
    V y = f64_mul(m, unsigned_number(m, LLVMBuildLShr(b, hi, eleven, "")), scale);
    V y_low = f64_mul(m, unsigned_number(m, tail), f64_mul(m, scale, f64_num(m, 0x1p-64)));
    Pair r = {f64_mul(m, y, f64_num(m, PI_2)), NULL};
    r.lo = f64_fma(m, y, f64_num(m, PI_2), f64_neg(m, r.hi));
    r.lo = f64_fma(m, y, f64_num(m, PI_2_LOW), r.lo);
    r.lo = f64_fma(m, y_low, f64_num(m, PI_2), r.lo);
    V is_below = LLVMBuildICmp(b, LLVMIntSLT, sign, f64_int(m, 0), "");
    V negative = LLVMBuildICmp(b, LLVMIntSLT, f64_bits(m, x), f64_int(m, 0), "");
    V flip = LLVMBuildXor(b, is_below, negative, "");
    return (Rest){.r = {f64_choose(m, flip, f64_neg(m, r.hi), r.hi),
                        f64_choose(m, flip, f64_neg(m, r.lo), r.lo)},
                  .quadrant = f64_choose(m, negative, LLVMBuildNeg(b, quadrant, ""), quadrant)};
}

// --- the functions -----------------------------------------------------------------------------

// Taylor's series, |r| <= 0.79.
static V sine_near(F64 *m, Pair r, V z) {
    double c[8], factorial = 1; // -1/3!, 1/5!, ...
    for (int k = 0; k < 8; k++)
        c[k] = 1 / (factorial *= -(2 * k + 2) * (2 * k + 3));
    V cube = f64_mul(m, f64_mul(m, z, r.hi), f64_polynomial(m, z, c, 8));
    V low = f64_fma(m, f64_mul(m, z, f64_num(m, -0.5)), r.lo, r.lo);
    return f64_add(m, r.hi, f64_add(m, cube, low));
}

// 1 - z/2 + ..., with what the first subtraction loses.
static V cosine_near(F64 *m, Pair r, V z) {
    double c[8], factorial = -2; // 1/4!, -1/6!, ...
    for (int k = 0; k < 8; k++)
        c[k] = 1 / (factorial *= -(2 * k + 3) * (2 * k + 4));
    V one = f64_num(m, 1), half = f64_mul(m, z, f64_num(m, 0.5)), w = f64_sub(m, one, half);
    V lost = f64_sub(m, f64_sub(m, one, w), half);
    V tail = f64_mul(m, f64_mul(m, z, z), f64_polynomial(m, z, c, 8));
    tail = f64_fma(m, f64_neg(m, r.hi), r.lo, tail);
    return f64_add(m, w, f64_add(m, lost, tail));
}

static V join(F64 *m, LLVMTypeRef type, V *x, LLVMBasicBlockRef *from) {
    V phi = LLVMBuildPhi(m->b, type, "");
    LLVMAddIncoming(phi, x, from, 2);
    return phi;
}

V f64_sine(F64 *m, V function, V x, bool cosine) {
    LLVMBuilderRef b = m->b;
    LLVMBasicBlockRef from[2], exit;
    from[0] = LLVMAppendBasicBlockInContext(m->t->llvm, function, "large");
    from[1] = LLVMAppendBasicBlockInContext(m->t->llvm, function, "small");
    exit = LLVMAppendBasicBlockInContext(m->t->llvm, function, "exit");
    V size = f64_abs(m, x), inf = f64_num(m, INFINITY);
    V large = LLVMBuildFCmp(b, LLVMRealOGE, size, f64_num(m, 0x1p31), "");
    large = LLVMBuildAnd(b, large, f64_less(m, size, inf), "");
    LLVMBuildCondBr(b, large, from[0], from[1]);
    Rest rest[2];
    for (int i = 0; i < 2; i++) {
        LLVMPositionBuilderAtEnd(b, from[i]);
        rest[i] = i ? rest_small(m, x) : rest_large(m, x);
        LLVMBuildBr(b, exit);
    }
    LLVMPositionBuilderAtEnd(b, exit);
    V quadrant = join(m, m->i64, (V[]){rest[0].quadrant, rest[1].quadrant}, from);
    Pair r = {join(m, m->f64, (V[]){rest[0].r.hi, rest[1].r.hi}, from), NULL};
    r.lo = join(m, m->f64, (V[]){rest[0].r.lo, rest[1].r.lo}, from);
    V z = f64_mul(m, r.hi, r.hi), sine = sine_near(m, r, z), cos = cosine_near(m, r, z);
    if (cosine)
        quadrant = LLVMBuildAdd(b, quadrant, f64_int(m, 1), "");
    V odd = LLVMBuildTrunc(b, quadrant, target_int(m->t, 1), "");
    V y = f64_choose(m, odd, cos, sine);
    V second =
        LLVMBuildTrunc(b, LLVMBuildLShr(b, quadrant, f64_int(m, 1), ""), target_int(m->t, 1), "");
    y = f64_choose(m, second, f64_neg(m, y), y);
    if (!cosine) // sin(-0) is -0: the sum that finds the quadrant has lost the sign
        y = f64_choose(m, f64_equal(m, x, f64_num(m, 0)), x, y);
    return f64_choose(m, f64_equal(m, size, inf), f64_num(m, NAN), y);
}
