// Functions of f64 in arithmetic of f64 and integers, as LLVM functions of one number: for targets
// without a C library, and for the simulator, which computes as they do.
//
// Input: numbers of any value. Output: exp, exp2, log, log2, sin, cos, tanh, erf, pow within the
// bounds of the language (tests/math_f64.c measures them); special values as in C. Each function is
// built once per module. Logarithms and powers carry hi + lo through an atanh series; the
// polynomials are Taylor's where the argument is small enough, for erf Chebyshev approximations of
// (erf(x) / x - 1)(x^2) and of erfc(x) exp(x^2) over 3 / (x + 3).
#include "backend/math_f64.h"

#include <math.h>
#include <stdio.h>

#define LN2       0.6931471805599453
#define LN2_LOW   2.3190468138462996e-17
#define LOG2E     1.4426950408889634
#define LOG2E_LOW 2.0355273740931033e-17

V f64_num(F64 *m, double x) {
    return LLVMConstReal(m->f64, x);
}
V f64_int(F64 *m, int64_t x) {
    return LLVMConstInt(m->i64, (unsigned long long)x, true);
}
V f64_add(F64 *m, V x, V y) {
    return LLVMBuildFAdd(m->b, x, y, "");
}
V f64_sub(F64 *m, V x, V y) {
    return LLVMBuildFSub(m->b, x, y, "");
}
V f64_mul(F64 *m, V x, V y) {
    return LLVMBuildFMul(m->b, x, y, "");
}
V f64_neg(F64 *m, V x) {
    return LLVMBuildFNeg(m->b, x, "");
}
V f64_abs(F64 *m, V x) {
    return arith_intrinsic(m->t, "llvm.fabs", m->f64, 1, &x);
}
V f64_fma(F64 *m, V x, V y, V z) {
    V args[3] = {x, y, z};
    return arith_intrinsic(m->t, "llvm.fma", m->f64, 3, args);
}
V f64_bits(F64 *m, V x) {
    return LLVMBuildBitCast(m->b, x, m->i64, "");
}
V f64_of_bits(F64 *m, V bits) {
    return LLVMBuildBitCast(m->b, bits, m->f64, "");
}
V f64_choose(F64 *m, V c, V x, V y) {
    return LLVMBuildSelect(m->b, c, x, y, "");
}
V f64_less(F64 *m, V x, V y) {
    return LLVMBuildFCmp(m->b, LLVMRealOLT, x, y, "");
}
V f64_equal(F64 *m, V x, V y) {
    return LLVMBuildFCmp(m->b, LLVMRealOEQ, x, y, "");
}
V f64_with_sign(F64 *m, V x, V sign) {
    V args[2] = {x, sign};
    return arith_intrinsic(m->t, "llvm.copysign", m->f64, 2, args);
}

V f64_polynomial(F64 *m, V x, const double *c, int n) {
    V r = f64_num(m, c[n - 1]);
    for (int i = n - 2; i >= 0; i--)
        r = f64_fma(m, r, x, f64_num(m, c[i]));
    return r;
}

// By adding 1.5 * 2^52. NaN stays, with some integer.
V f64_nearest(F64 *m, V x, V *integer) {
    V magic = f64_num(m, 6755399441055744.0), t = f64_add(m, x, magic);
    *integer = LLVMBuildSub(m->b, f64_bits(m, t), f64_bits(m, magic), "");
    return f64_sub(m, t, magic);
}

// x held inside lo..hi; NaN stays.
static V clamp(F64 *m, V x, double lo, double hi) {
    x = f64_choose(m, f64_less(m, x, f64_num(m, lo)), f64_num(m, lo), x);
    return f64_choose(m, f64_less(m, f64_num(m, hi), x), f64_num(m, hi), x);
}

// a + b, |a| >= |b| or a = 0, with what rounding loses.
static Pair sum_of(F64 *m, V a, V b) {
    V hi = f64_add(m, a, b);
    return (Pair){hi, f64_add(m, f64_sub(m, a, hi), b)};
}

static Pair product_of(F64 *m, V a, V b) {
    V hi = f64_mul(m, a, b);
    return (Pair){hi, f64_fma(m, a, b, f64_neg(m, hi))};
}

static Pair pair_times(F64 *m, Pair x, Pair y) {
    Pair p = product_of(m, x.hi, y.hi);
    p.lo = f64_fma(m, x.hi, y.lo, p.lo);
    p.lo = f64_fma(m, x.lo, y.hi, p.lo);
    return p;
}

// --- exponentials ------------------------------------------------------------------------------

// 2^n for an i64 n within -1022..1023.
static V power_of_two(F64 *m, V n) {
    V e = LLVMBuildAdd(m->b, n, f64_int(m, 1023), "");
    return f64_of_bits(m, LLVMBuildShl(m->b, e, f64_int(m, 52), ""));
}

// y 2^n in two steps, so that subnormal results and 2^1024 come out.
static V scaled(F64 *m, V y, V n) {
    V half = LLVMBuildAShr(m->b, n, f64_int(m, 1), "");
    y = f64_mul(m, y, power_of_two(m, half));
    return f64_mul(m, y, power_of_two(m, LLVMBuildSub(m->b, n, half, "")));
}

// exp(r + low) - 1 for |r| <= 0.35 and `low` below 1e-12.
static V exp_minus_1(F64 *m, V r, V low) {
    Pair p = sum_of(m, r, low);
    r = p.hi;
    double c[12], factorial = 1;
    for (int k = 0; k < 12; k++)
        c[k] = 1 / (factorial *= k + 2);
    V tail = f64_polynomial(m, r, c, 12);
    return f64_add(m, r, f64_fma(m, f64_mul(m, r, r), tail, p.lo));
}

// x = n ln2 + r + low, |r| <= ln2 / 2.
static V reduced(F64 *m, V x, V *n, V *low) {
    V k = f64_nearest(m, f64_mul(m, x, f64_num(m, LOG2E)), n);
    V r = f64_fma(m, k, f64_num(m, -LN2), x);
    *low = f64_mul(m, k, f64_num(m, -LN2_LOW));
    return r;
}

static V exp_f64(F64 *m, V x) {
    V n, low;
    V r = reduced(m, clamp(m, x, -746, 710), &n, &low);
    return scaled(m, f64_add(m, f64_num(m, 1), exp_minus_1(m, r, low)), n);
}

// 2^(x + low)
static V exp2_of(F64 *m, V x, V low) {
    V n, k = f64_nearest(m, x, &n), r = f64_sub(m, x, k);
    Pair p = product_of(m, r, f64_num(m, LN2));
    p.lo = f64_fma(m, r, f64_num(m, LN2_LOW), p.lo);
    if (low)
        p.lo = f64_fma(m, low, f64_num(m, LN2), p.lo);
    return scaled(m, f64_add(m, f64_num(m, 1), exp_minus_1(m, p.hi, p.lo)), n);
}

// --- logarithms --------------------------------------------------------------------------------

// x = 2^whole f, f in [sqrt(1/2), sqrt(2)); log f = 2 atanh(s), s = (f - 1) / (f + 1), to about
// 2^-62 of itself. For x positive and finite.
static Pair log_parts(F64 *m, V x, V *whole) {
    V tiny = f64_less(m, x, f64_num(m, 0x1p-1022));
    V a = f64_choose(m, tiny, f64_mul(m, x, f64_num(m, 0x1p54)), x), bits = f64_bits(m, a);
    V k = LLVMBuildSub(m->b, bits, f64_int(m, 0x3fe6a09e667f3bcd), "");
    k = LLVMBuildAShr(m->b, k, f64_int(m, 52), "");
    V f = LLVMBuildSub(m->b, bits, LLVMBuildShl(m->b, k, f64_int(m, 52), ""), "");
    f = f64_of_bits(m, f);
    k = LLVMBuildSub(m->b, k, f64_choose(m, tiny, f64_int(m, 54), f64_int(m, 0)), "");
    *whole = LLVMBuildSIToFP(m->b, LLVMBuildTrunc(m->b, k, m->i32, ""), m->f64, "");
    V one = f64_num(m, 1), top = f64_sub(m, f, one); // exact
    V bottom = f64_add(m, f, one), lost = f64_add(m, f64_sub(m, one, bottom), f);
    // f + 1 > 1: which of the two is larger matters for what is lost
    V larger = f64_less(m, one, f);
    lost = f64_choose(m, larger, f64_add(m, f64_sub(m, f, bottom), one), lost);
    Pair s = {LLVMBuildFDiv(m->b, top, bottom, ""), NULL};
    V rest = f64_fma(m, f64_neg(m, s.hi), bottom, top);
    rest = f64_fma(m, f64_neg(m, s.hi), lost, rest);
    s.lo = LLVMBuildFDiv(m->b, rest, bottom, "");
    // 2 atanh(s) = 2 s + s (2/3 z + 2/5 z^2 + ...), z = s^2 <= 0.0295
    double c[10];
    for (int i = 0; i < 10; i++)
        c[i] = 2.0 / (2 * i + 5);
    Pair z = pair_times(m, s, s);
    Pair r = pair_times(m, z, (Pair){f64_num(m, 2.0 / 3), f64_num(m, 3.700743415417188e-17)});
    V tail = f64_mul(m, f64_mul(m, z.hi, z.hi), f64_polynomial(m, z.hi, c, 10));
    r = sum_of(m, r.hi, f64_add(m, tail, r.lo));
    Pair p = pair_times(m, s, r), two = {f64_add(m, s.hi, s.hi), f64_add(m, s.lo, s.lo)};
    Pair sum = sum_of(m, two.hi, p.hi);
    return sum_of(m, sum.hi, f64_add(m, sum.lo, f64_add(m, two.lo, p.lo)));
}

// 0 gives -inf, below 0 NaN, inf and NaN themselves; else r.
static V log_special(F64 *m, V x, V r) {
    V inf = f64_num(m, INFINITY), zero = f64_num(m, 0);
    V other = f64_choose(m, f64_less(m, x, zero), f64_num(m, NAN), x);
    other = f64_choose(m, f64_equal(m, x, zero), f64_num(m, -INFINITY), other);
    V inside = LLVMBuildAnd(m->b, f64_less(m, zero, x), f64_less(m, x, inf), "");
    return f64_choose(m, inside, r, other);
}

static V log_f64(F64 *m, V x) {
    V k;
    Pair f = log_parts(m, x, &k);
    // 32 bits of ln2, so that k times it is exact
    Pair sum = sum_of(m, f64_mul(m, k, f64_num(m, 0.6931471803691238)), f.hi);
    V low = f64_fma(m, k, f64_num(m, 1.9082149292705877e-10), f64_add(m, sum.lo, f.lo));
    return log_special(m, x, f64_add(m, sum.hi, low));
}

static Pair log2_pair(F64 *m, V x) {
    V k;
    Pair f = log_parts(m, x, &k);
    Pair p = pair_times(m, f, (Pair){f64_num(m, LOG2E), f64_num(m, LOG2E_LOW)});
    Pair sum = sum_of(m, k, p.hi);
    return sum_of(m, sum.hi, f64_add(m, sum.lo, p.lo));
}

static V log2_f64(F64 *m, V x) {
    return log_special(m, x, log2_pair(m, x).hi);
}

// |x|^y = 2^(y log2 |x|), signs and special values as in C.
static V pow_f64(F64 *m, V x, V y) {
    LLVMBuilderRef b = m->b;
    V a = f64_abs(m, x), zero = f64_num(m, 0), one = f64_num(m, 1);
    Pair lg = log2_pair(m, a), t;
    lg.hi = log_special(m, a, lg.hi);
    t = product_of(m, y, lg.hi);
    t.lo = f64_fma(m, y, lg.lo, t.lo);
    V near = f64_less(m, f64_abs(m, t.hi), f64_num(m, 1100));
    V r = exp2_of(m, clamp(m, t.hi, -1100, 1100), f64_choose(m, near, t.lo, zero));
    V half = f64_mul(m, y, f64_num(m, 0.5));
    V whole = f64_equal(m, arith_intrinsic(m->t, "llvm.trunc", m->f64, 1, &y), y);
    V even = f64_equal(m, arith_intrinsic(m->t, "llvm.trunc", m->f64, 1, &half), half);
    V odd = LLVMBuildAnd(b, whole, LLVMBuildNot(b, even, ""), "");
    // |x| = 1 with infinite y is 1, not 0 * inf; NaN in y stays.
    V ordered = LLVMBuildFCmp(b, LLVMRealORD, y, y, "");
    r = f64_choose(m, LLVMBuildAnd(b, f64_equal(m, a, one), ordered, ""), one, r);
    r = f64_choose(m, odd, f64_with_sign(m, r, x), r);
    V below = LLVMBuildAnd(b, f64_less(m, x, zero), f64_less(m, a, f64_num(m, INFINITY)), "");
    V undefined = LLVMBuildAnd(b, below, LLVMBuildNot(b, whole, ""), "");
    r = f64_choose(m, undefined, f64_num(m, NAN), r);
    V trivial = LLVMBuildOr(b, f64_equal(m, y, zero), f64_equal(m, x, one), "");
    return f64_choose(m, trivial, one, r);
}

// --- tanh, erf ---------------------------------------------------------------------------------

// e / (e + 2), e = exp(2 |x|) - 1
static V tanh_f64(F64 *m, V x) {
    V a = clamp(m, f64_abs(m, x), 0, 22), n, low;
    V r = reduced(m, f64_add(m, a, a), &n, &low);
    V p = exp_minus_1(m, r, low), scale = power_of_two(m, n);
    V e = f64_fma(m, scale, p, f64_sub(m, scale, f64_num(m, 1)));
    V y = LLVMBuildFDiv(m->b, e, f64_add(m, e, f64_num(m, 2)), "");
    return f64_with_sign(m, y, x);
}

static V erf_f64(F64 *m, V x) {
    static const double near[] = {
        0.12837916709551256,     -0.37612638903183543,   0.11283791670945006,
        -0.02686617064323777,    0.0052239776071164225,  -0.0008548325975389692,
        0.00012055294904839707,  -1.492473690741966e-05, 1.6447424703317362e-06,
        -1.6208483801871705e-07, 1.3720064546777686e-08, -7.795898827002142e-10};
    static const double far[] = {
        0.20798329133342883,  0.740933636612972,     1.1450521820942008,  1.4059724299619605,
        1.3161233807047819,   0.844937501561491,     0.23927417410046,    -0.14239680118295897,
        -0.1561490885629948,  0.006122882169379647,  0.07362070766143666, 0.008220310733701643,
        -0.03844455682144014, -0.004323719877806444, 0.02082988361375571, -0.00011080024529446188};
    V a = clamp(m, f64_abs(m, x), 0, 6), three = f64_num(m, 3);
    V inner = f64_fma(m, x, f64_polynomial(m, f64_mul(m, x, x), near, 12), x);
    V u = LLVMBuildFDiv(m->b, three, f64_add(m, a, three), "");
    u = f64_sub(m, u, f64_num(m, 0.5416666666666666));
    V g = f64_polynomial(m, u, far, 16), e = exp_f64(m, f64_neg(m, f64_mul(m, a, a)));
    V outer = f64_sub(m, f64_num(m, 1), f64_mul(m, g, e));
    return f64_choose(m, f64_less(m, a, f64_num(m, 1)), inner, f64_with_sign(m, outer, x));
}

// --- entry -------------------------------------------------------------------------------------

static bool is_function(OpKind kind) {
    static const OpKind kinds[] = {OP_EXP, OP_EXP2, OP_LOG, OP_LOG2, OP_SIN,
                                   OP_COS, OP_TANH, OP_ERF, OP_POW};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (kinds[i] == kind)
            return true;
    return false;
}

static V build_body(F64 *m, OpKind kind, V function, V x, V y) {
    if (kind == OP_EXP)
        return exp_f64(m, x);
    if (kind == OP_EXP2)
        return exp2_of(m, clamp(m, x, -1100, 1100), NULL);
    if (kind == OP_LOG)
        return log_f64(m, x);
    if (kind == OP_LOG2)
        return log2_f64(m, x);
    if (kind == OP_TANH)
        return tanh_f64(m, x);
    if (kind == OP_ERF)
        return erf_f64(m, x);
    if (kind == OP_POW)
        return pow_f64(m, x, y);
    return f64_sine(m, function, x, kind == OP_COS);
}

V math_f64(Target *t, OpKind kind, const V *x) {
    if (!is_function(kind))
        return NULL;
    unsigned n = (unsigned)op_info(kind)->nin;
    LLVMTypeRef f64 = LLVMDoubleTypeInContext(t->llvm), params[2] = {f64, f64};
    LLVMTypeRef type = LLVMFunctionType(f64, params, n, false);
    char name[64];
    snprintf(name, sizeof name, "fuse.%s.f64.%d", op_info(kind)->text, t->part);
    V f = LLVMGetNamedFunction(t->module, name);
    if (!f) {
        f = LLVMAddFunction(t->module, name, type);
        LLVMSetLinkage(f, LLVMInternalLinkage);
        LLVMBasicBlockRef back = LLVMGetInsertBlock(t->builder);
        LLVMMetadataRef line = LLVMGetCurrentDebugLocation2(t->builder);
        LLVMSetCurrentDebugLocation2(t->builder, NULL);
        LLVMPositionBuilderAtEnd(t->builder, LLVMAppendBasicBlockInContext(t->llvm, f, "entry"));
        F64 m = {t, t->builder, f64, target_int(t, 64), target_int(t, 32)};
        V y = n > 1 ? LLVMGetParam(f, 1) : NULL;
        LLVMBuildRet(t->builder, build_body(&m, kind, f, LLVMGetParam(f, 0), y));
        LLVMPositionBuilderAtEnd(t->builder, back);
        LLVMSetCurrentDebugLocation2(t->builder, line);
    }
    return LLVMBuildCall2(t->builder, type, f, (V *)x, n, "");
}
