// Functions of the host targets, as LLVM functions over vectors of f32: each is built once per
// module and called.
//
// Error: at most 2 ulp (tests/host_math.c). exp and exp2 work in f32, erf in f32 (coefficients by
// N. Juffa, public domain); what would lose bits there (logarithms, pow, tanh, sin, cos) works in
// f64 with about 1e-12 and is rounded once. sin and cos of huge arguments and everything in f64
// call the C library lane by lane; the simulator has the GPU's functions of f64 (math_f64.c).
#include "backend/host/host_impl.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct Math {
    Target *t;
    LLVMBuilderRef b;
    LLVMTypeRef f32, f64, i32, i64; // vectors
} Math;

static V num(Math *m, LLVMTypeRef type, double x) {
    return arith_const_like(m->t, type, x);
}
static V whole(Math *m, LLVMTypeRef type, int64_t x) {
    return arith_int_like(m->t, type, x);
}
static V unary(Math *m, const char *name, V x) {
    return arith_intrinsic(m->t, name, LLVMTypeOf(x), 1, &x);
}
static V add(Math *m, V x, V y) {
    return LLVMBuildFAdd(m->b, x, y, "");
}
static V sub(Math *m, V x, V y) {
    return LLVMBuildFSub(m->b, x, y, "");
}
static V mul(Math *m, V x, V y) {
    return LLVMBuildFMul(m->b, x, y, "");
}
static V mad(Math *m, V x, V y, V z) {
    V args[3] = {x, y, z};
    return arith_intrinsic(m->t, "llvm.fmuladd", LLVMTypeOf(x), 3, args);
}
static V choose(Math *m, V c, V x, V y) {
    return LLVMBuildSelect(m->b, c, x, y, "");
}
static V bits_of(Math *m, V x, LLVMTypeRef type) {
    return LLVMBuildBitCast(m->b, x, type, "");
}
static V widen(Math *m, V x) {
    return LLVMBuildFPExt(m->b, x, m->f64, "");
}
static V narrow(Math *m, V x) {
    return LLVMBuildFPTrunc(m->b, x, m->f32, "");
}

// c[0] + c[1] x + ... by Horner.
static V polynomial(Math *m, V x, const double *c, int n) {
    LLVMTypeRef type = LLVMTypeOf(x);
    V r = num(m, type, c[n - 1]);
    for (int i = n - 2; i >= 0; i--)
        r = mad(m, r, x, num(m, type, c[i]));
    return r;
}

// x held inside lo..hi; NaN stays.
static V clamp(Math *m, V x, double lo, double hi) {
    V l = num(m, LLVMTypeOf(x), lo), h = num(m, LLVMTypeOf(x), hi);
    x = choose(m, LLVMBuildFCmp(m->b, LLVMRealOLT, x, l, ""), l, x);
    return choose(m, LLVMBuildFCmp(m->b, LLVMRealOGT, x, h, ""), h, x);
}

static V copysign_like(Math *m, V x, V sign) {
    V args[2] = {x, sign};
    return arith_intrinsic(m->t, "llvm.copysign", LLVMTypeOf(x), 2, args);
}

// --- exponentials ------------------------------------------------------------------------------

// y * 2^n in two steps, so that subnormal results and 2^128 come out; n within -160..160.
static V scale_f32(Math *m, V y, V n) {
    if (host_has_avx512(m->t)) {
        LLVMTypeRef types[2] = {m->f32, m->i32};
        unsigned id = LLVMLookupIntrinsicID("llvm.ldexp", 10);
        V f = LLVMGetIntrinsicDeclaration(m->t->module, id, types, 2);
        LLVMTypeRef type = LLVMIntrinsicGetType(m->t->llvm, id, types, 2);
        return LLVMBuildCall2(m->b, type, f, (V[]){y, n}, 2, "");
    }
    V half = LLVMBuildAShr(m->b, n, whole(m, m->i32, 1), "");
    V rest = LLVMBuildSub(m->b, n, half, "");
    V part[2] = {half, rest};
    for (int i = 0; i < 2; i++) {
        V e = LLVMBuildAdd(m->b, part[i], whole(m, m->i32, 127), "");
        e = LLVMBuildShl(m->b, e, whole(m, m->i32, 23), "");
        y = mul(m, y, bits_of(m, e, m->f32));
    }
    return y;
}

// Nearest integer of x by adding 1.5 * 2^23: as a number, and as an integer.
static V nearest_f32(Math *m, V x, V *integer) {
    V magic = num(m, m->f32, 12582912.0);
    V t = add(m, x, magic);
    *integer = LLVMBuildSub(m->b, bits_of(m, t, m->i32), bits_of(m, magic, m->i32), "");
    return sub(m, t, magic);
}

static V exp2_f32(Math *m, V x) {
    // ln2^k / k!, |r| <= 1/2
    static const double c[] = {0.69314718055994531,    0.24022650695910071,
                               0.055504108664821580,   0.0096181291076284772,
                               0.0013333558146428443,  0.00015403530393381610,
                               0.000015252733804059840};
    x = clamp(m, x, -160, 129);
    V n, r = sub(m, x, nearest_f32(m, x, &n));
    V p = polynomial(m, r, c, 7);
    return scale_f32(m, mad(m, p, r, num(m, m->f32, 1)), n);
}

static V exp_f32(Math *m, V x) {
    static const double c[] = {1.0 / 2, 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720, 1.0 / 5040};
    x = clamp(m, x, -110, 89.5);
    V n, f = nearest_f32(m, mul(m, x, num(m, m->f32, 1.4426950408889634)), &n);
    // ln2 in two parts, of which the first has 9 bits: n times it is exact.
    V r = mad(m, f, num(m, m->f32, -0.693359375), x);
    r = mad(m, f, num(m, m->f32, 2.12194440054690583e-4), r);
    V p = polynomial(m, r, c, 6);
    V y = mad(m, p, mul(m, r, r), r);
    return scale_f32(m, add(m, y, num(m, m->f32, 1)), n);
}

// 2^x in f64 to about 1e-13, |x| clamped to 1000.
static V exp2_core(Math *m, V x) {
    double c[12], term = 1;
    for (int k = 0; k < 12; k++) {
        c[k] = term;
        term *= 0.69314718055994531 / (k + 1);
    }
    x = clamp(m, x, -1000, 1000);
    V magic = num(m, m->f64, 6755399441055744.0); // 1.5 * 2^52
    V t = add(m, x, magic), r = sub(m, x, sub(m, t, magic));
    V e = LLVMBuildShl(m->b, bits_of(m, t, m->i64), whole(m, m->i64, 52), "");
    e = LLVMBuildAdd(m->b, e, whole(m, m->i64, INT64_C(1023) << 52), "");
    return mul(m, polynomial(m, r, c, 12), bits_of(m, e, m->f64));
}

// --- logarithms --------------------------------------------------------------------------------

// log2 of a normal positive f64 to about 1e-12 (relative near 1); 0, negative, infinite and NaN as
// in C.
static V log2_core(Math *m, V x) {
    double c[9];
    for (int k = 0; k < 9; k++)
        c[k] = 2 * 1.4426950408889634 / (2 * k + 1);
    V bits = bits_of(m, x, m->i64), low = whole(m, m->i64, 0x3fe6a09e667f3bcd); // sqrt(1/2)
    V k = LLVMBuildAShr(m->b, LLVMBuildSub(m->b, bits, low, ""), whole(m, m->i64, 52), "");
    V mantissa = LLVMBuildSub(m->b, bits, LLVMBuildShl(m->b, k, whole(m, m->i64, 52), ""), "");
    V y = bits_of(m, mantissa, m->f64), one = num(m, m->f64, 1);
    V s = LLVMBuildFDiv(m->b, sub(m, y, one), add(m, y, one), "");
    V p = mul(m, s, polynomial(m, mul(m, s, s), c, 9));
    // k fits i32: that conversion is one instruction everywhere.
    V exponent = LLVMBuildSIToFP(m->b, LLVMBuildTrunc(m->b, k, m->i32, ""), m->f64, "");
    V r = add(m, exponent, p), zero = num(m, m->f64, 0), inf = num(m, m->f64, INFINITY);
    r = choose(m, LLVMBuildFCmp(m->b, LLVMRealOEQ, x, zero, ""), num(m, m->f64, -INFINITY), r);
    r = choose(m, LLVMBuildFCmp(m->b, LLVMRealOEQ, x, inf, ""), inf, r);
    V bad = LLVMBuildFCmp(m->b, LLVMRealULT, x, zero, "");
    return choose(m, bad, num(m, m->f64, NAN), r);
}

static V log2_f32(Math *m, V x) {
    return narrow(m, log2_core(m, widen(m, x)));
}

static V log_f32(Math *m, V x) {
    V r = log2_core(m, widen(m, x));
    return narrow(m, mul(m, r, num(m, m->f64, 0.69314718055994531)));
}

static V pow_f32(Math *m, V x, V y) {
    LLVMBuilderRef b = m->b;
    V one = num(m, m->f32, 1), zero = num(m, m->f32, 0), inf = num(m, m->f32, INFINITY);
    V ax = unary(m, "llvm.fabs", x);
    V r = narrow(m, exp2_core(m, mul(m, widen(m, y), log2_core(m, widen(m, ax)))));
    // |x| = 1 with infinite y is 1, not 0 * inf; NaN in y stays.
    V ordered = LLVMBuildFCmp(b, LLVMRealORD, y, y, "");
    V unit = LLVMBuildAnd(b, LLVMBuildFCmp(b, LLVMRealOEQ, ax, one, ""), ordered, "");
    r = choose(m, unit, one, r);
    V whole_y = LLVMBuildFCmp(b, LLVMRealOEQ, unary(m, "llvm.floor", y), y, "");
    V half = mul(m, y, num(m, m->f32, 0.5));
    V even = LLVMBuildFCmp(b, LLVMRealOEQ, unary(m, "llvm.floor", half), half, "");
    V odd = LLVMBuildAnd(b, whole_y, LLVMBuildNot(b, even, ""), "");
    r = choose(m, odd, copysign_like(m, r, x), r);
    V negative = LLVMBuildAnd(b, LLVMBuildFCmp(b, LLVMRealOLT, x, zero, ""),
                              LLVMBuildFCmp(b, LLVMRealOLT, ax, inf, ""), "");
    V bad = LLVMBuildAnd(b, negative, LLVMBuildNot(b, whole_y, ""), "");
    r = choose(m, bad, num(m, m->f32, NAN), r);
    V trivial = LLVMBuildOr(b, LLVMBuildFCmp(b, LLVMRealOEQ, y, zero, ""),
                            LLVMBuildFCmp(b, LLVMRealOEQ, x, one, ""), "");
    return choose(m, trivial, one, r);
}

// --- tanh, erf ---------------------------------------------------------------------------------

static V tanh_f32(Math *m, V x) {
    V a = unary(m, "llvm.fabs", widen(m, x)), one = num(m, m->f64, 1);
    V e = exp2_core(m, mul(m, a, num(m, m->f64, 2 * 1.4426950408889634)));
    V r = LLVMBuildFDiv(m->b, sub(m, e, one), add(m, e, one), "");
    // e overflows nothing: it is at most 2^1000. Close to 0, e - 1 has lost its bits.
    V cubic = mul(m, a, mad(m, mul(m, a, a), num(m, m->f64, -1.0 / 3), one));
    V tiny = LLVMBuildFCmp(m->b, LLVMRealOLT, a, num(m, m->f64, 1.0 / 4096), "");
    return copysign_like(m, narrow(m, choose(m, tiny, cubic, r)), x);
}

static V erf_f32(Math *m, V x) {
    static const double far[] = {-1.28717512e-1, -6.34846687e-1, -1.06777877e-1};
    static const double near[] = {1.28379166e-1,  -3.76125336e-1, 1.12819925e-1,
                                  -2.67681349e-2, 4.99119423e-3,  -5.96761703e-4};
    V t = unary(m, "llvm.fabs", x), s = mul(m, x, x);
    V r = mad(m, num(m, m->f32, -1.72853470e-5), t, num(m, m->f32, 3.83197126e-4));
    V u = mad(m, num(m, m->f32, -3.88396438e-3), t, num(m, m->f32, 2.42546219e-2));
    r = mad(m, r, s, u);
    for (int i = 2; i >= 0; i--)
        r = mad(m, r, t, num(m, m->f32, far[i]));
    r = mad(m, r, t, LLVMBuildFNeg(m->b, t, ""));
    r = copysign_like(m, sub(m, num(m, m->f32, 1), exp_f32(m, r)), x);
    V big = LLVMBuildFCmp(m->b, LLVMRealOGT, t, num(m, m->f32, 0.921875), "");
    // Beyond 4 the result is 1; the polynomial would turn round, and infinity give NaN.
    V one = copysign_like(m, num(m, m->f32, 1), x);
    V huge = LLVMBuildFCmp(m->b, LLVMRealOGT, t, num(m, m->f32, 4), "");
    r = choose(m, huge, one, r);
    V q = polynomial(m, s, near, 6);
    return choose(m, big, r, mad(m, q, x, x));
}

// --- sine, cosine ------------------------------------------------------------------------------

// Calls the C library's f64 function on every lane.
static V by_lane(Math *m, const char *name, int n, const V *x) {
    LLVMTypeRef f64 = target_type(m->t, DT_F64);
    V r = LLVMGetPoison(m->f64);
    for (int i = 0; i < m->t->desc->lanes; i++) {
        V k = LLVMConstInt(target_int(m->t, 32), (unsigned)i, false), args[2] = {0};
        for (int j = 0; j < n; j++)
            args[j] = LLVMBuildExtractElement(m->b, x[j], k, "");
        r = LLVMBuildInsertElement(m->b, r, host_call(m->t, name, f64, n, args), k, "");
    }
    return r;
}

// What a GPU computes, one lane after another.
static V simulated(Math *m, OpKind kind, int n, const V *x) {
    V r = LLVMGetPoison(m->f64);
    for (int i = 0; i < m->t->desc->lanes; i++) {
        V k = LLVMConstInt(target_int(m->t, 32), (unsigned)i, false), args[2] = {0};
        for (int j = 0; j < n; j++)
            args[j] = LLVMBuildExtractElement(m->b, x[j], k, "");
        r = LLVMBuildInsertElement(m->b, r, math_f64(m->t, kind, args), k, "");
    }
    return r;
}

// sin (shift 0) or cos (shift 1) of |x| < 1e6.
static V sine_core(Math *m, V x, int shift) {
    static const double sine[] = {
        1, -1.0 / 6, 1.0 / 120, -1.0 / 5040, 1.0 / 362880, -1.0 / 39916800, 1.0 / 6227020800.0};
    static const double cosine[] = {
        1,           -1.0 / 2,       1.0 / 24,          -1.0 / 720,
        1.0 / 40320, -1.0 / 3628800, 1.0 / 479001600.0, -1.0 / 87178291200.0};
    V magic = num(m, m->f64, 6755399441055744.0);
    V t = add(m, mul(m, x, num(m, m->f64, 0.63661977236758134)), magic), n = sub(m, t, magic);
    // pi/2 in parts of 33, 33 and 53 bits (fdlibm): n times the first two is exact.
    V r = mad(m, n, num(m, m->f64, -1.57079632673412561417e+00), x);
    r = mad(m, n, num(m, m->f64, -6.07710050630396597660e-11), r);
    r = mad(m, n, num(m, m->f64, -2.02226624879595063154e-21), r);
    V s = mul(m, r, r);
    V quadrant = LLVMBuildAdd(m->b, bits_of(m, t, m->i64), whole(m, m->i64, shift), "");
    V odd = LLVMBuildAnd(m->b, quadrant, whole(m, m->i64, 1), "");
    V use_sine = LLVMBuildICmp(m->b, LLVMIntEQ, odd, whole(m, m->i64, 0), "");
    V y = choose(m, use_sine, mul(m, r, polynomial(m, s, sine, 7)), polynomial(m, s, cosine, 8));
    V minus = LLVMBuildAnd(m->b, quadrant, whole(m, m->i64, 2), "");
    V keep = LLVMBuildICmp(m->b, LLVMIntEQ, minus, whole(m, m->i64, 0), "");
    return choose(m, keep, y, LLVMBuildFNeg(m->b, y, ""));
}

static V sine_f32(Math *m, V f, V function, int shift) {
    LLVMContextRef llvm = m->t->llvm;
    LLVMBasicBlockRef slow = LLVMAppendBasicBlockInContext(llvm, function, "slow");
    LLVMBasicBlockRef fast = LLVMAppendBasicBlockInContext(llvm, function, "fast");
    LLVMBasicBlockRef exit = LLVMAppendBasicBlockInContext(llvm, function, "exit");
    V x = widen(m, f), size = unary(m, "llvm.fabs", x);
    V large = LLVMBuildFCmp(m->b, LLVMRealUGE, size, num(m, m->f64, 1e6), "");
    LLVMBuildCondBr(m->b, host_mask_any(m->t, large), slow, fast);
    LLVMPositionBuilderAtEnd(m->b, slow);
    V r[2] = {by_lane(m, shift ? "cos" : "sin", 1, &x), NULL};
    LLVMBuildBr(m->b, exit);
    LLVMPositionBuilderAtEnd(m->b, fast);
    r[1] = sine_core(m, x, shift);
    LLVMBuildBr(m->b, exit);
    LLVMPositionBuilderAtEnd(m->b, exit);
    V phi = LLVMBuildPhi(m->b, m->f64, "");
    LLVMAddIncoming(phi, r, (LLVMBasicBlockRef[]){slow, fast}, 2);
    V y = narrow(m, phi);
    // sin(-0) is -0: the sum with the magic number has lost the sign.
    V zero = LLVMBuildFCmp(m->b, LLVMRealOEQ, f, num(m, m->f32, 0), "");
    return shift ? y : choose(m, zero, f, y);
}

// --- entry -------------------------------------------------------------------------------------

static V build_body(Math *m, OpKind kind, V function, const V *x) {
    if (kind == OP_EXP2)
        return exp2_f32(m, x[0]);
    if (kind == OP_EXP)
        return exp_f32(m, x[0]);
    if (kind == OP_LOG2)
        return log2_f32(m, x[0]);
    if (kind == OP_LOG)
        return log_f32(m, x[0]);
    if (kind == OP_TANH)
        return tanh_f32(m, x[0]);
    if (kind == OP_ERF)
        return erf_f32(m, x[0]);
    if (kind == OP_SIN)
        return sine_f32(m, x[0], function, 0);
    if (kind == OP_COS)
        return sine_f32(m, x[0], function, 1);
    if (kind == OP_POW)
        return pow_f32(m, x[0], x[1]);
    V r = by_lane(m, "fmod", 2, (V[]){widen(m, x[0]), widen(m, x[1])}); // OP_REM; exact in f64
    return narrow(m, r);
}

static Math math_of(Target *t) {
    return (Math){.t = t,
                  .b = t->builder,
                  .f32 = host_vector(t, target_type(t, DT_F32)),
                  .f64 = host_vector(t, target_type(t, DT_F64)),
                  .i32 = host_lanes_int(t, 32),
                  .i64 = host_lanes_int(t, 64)};
}

static V math_function(Target *t, OpKind kind, int n, LLVMTypeRef *type) {
    Math m = math_of(t);
    char name[64];
    snprintf(name, sizeof name, "fuse.%s.f32", op_info(kind)->text);
    LLVMTypeRef params[2] = {m.f32, m.f32};
    *type = LLVMFunctionType(m.f32, params, (unsigned)n, false);
    V f = LLVMGetNamedFunction(t->module, name);
    if (f)
        return f;
    f = LLVMAddFunction(t->module, name, *type);
    LLVMSetLinkage(f, LLVMInternalLinkage);
    LLVMBasicBlockRef back = LLVMGetInsertBlock(t->builder);
    LLVMPositionBuilderAtEnd(t->builder, LLVMAppendBasicBlockInContext(t->llvm, f, "entry"));
    V x[2] = {LLVMGetParam(f, 0), n > 1 ? LLVMGetParam(f, 1) : NULL};
    LLVMBuildRet(t->builder, build_body(&m, kind, f, x));
    LLVMPositionBuilderAtEnd(t->builder, back);
    return f;
}

static const char *library_name(OpKind kind) {
    static const struct {
        OpKind kind;
        const char *name;
    } names[] = {{OP_EXP2, "exp2"}, {OP_EXP, "exp"}, {OP_LOG2, "log2"}, {OP_LOG, "log"},
                 {OP_TANH, "tanh"}, {OP_ERF, "erf"}, {OP_SIN, "sin"},   {OP_COS, "cos"},
                 {OP_POW, "pow"},   {OP_REM, "fmod"}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (names[i].kind == kind)
            return names[i].name;
    return NULL;
}

V host_math(Target *t, OpKind kind, DType dtype, const V *args) {
    if (dtype != DT_F32 && dtype != DT_F64)
        return NULL;
    Math m = math_of(t);
    V one = num(&m, LLVMTypeOf(args[0]), 1);
    if (kind == OP_RCP)
        return LLVMBuildFDiv(t->builder, one, args[0], "");
    if (kind == OP_RSQRT)
        return LLVMBuildFDiv(t->builder, one, unary(&m, "llvm.sqrt", args[0]), "");
    const char *name = library_name(kind);
    if (!name)
        return NULL;
    int n = op_info(kind)->nin;
    if (dtype == DT_F64 && host_is_sim(t) && kind != OP_REM)
        return simulated(&m, kind, n, args);
    if (dtype == DT_F64)
        return by_lane(&m, name, n, args);
    LLVMTypeRef type;
    V f = math_function(t, kind, n, &type);
    return LLVMBuildCall2(t->builder, type, f, (V *)args, (unsigned)n, "");
}
