// Functions and conversions of the nvptx target: hardware approximations made exact enough.
//
// Input: one register per operand. Output: one register. f16 and bf16 are computed in f32.
// Error in ulp of f32 (measured against f64 with an exact ex2; its own error, up to 2, comes on top
// where it is used): exp 1, log 0.9, log2 1.2, tanh 1.9, erf 1.1, sin and cos 1.6 (for |x| >= 2^30
// they are those of f64, rounded), pow 0.6, rcp and sqrt correctly rounded; exp2 and rsqrt are the
// hardware's. With `fast` everything is: exp |x| + 2, log and log2 2^-21 absolute near 1, tanh
// 2^-11 relative, erf 2^-20 absolute, rcp and sqrt 1. erf and log: coefficients by N. Juffa (public
// domain); sin and cos: Cephes.
#include "backend/nvptx/nvptx_impl.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct Math {
    Target *t;
    LLVMBuilderRef b;
    LLVMTypeRef f32, i32;
} Math;

static V num(Math *m, double x) {
    return LLVMConstReal(m->f32, (double)(float)x);
}
static V mul(Math *m, V x, V y) {
    return LLVMBuildFMul(m->b, x, y, "");
}
static V add(Math *m, V x, V y) {
    return LLVMBuildFAdd(m->b, x, y, "");
}
static V sub(Math *m, V x, V y) {
    return LLVMBuildFSub(m->b, x, y, "");
}
static V fma3(Math *m, V x, V y, V z) {
    V args[3] = {x, y, z};
    return arith_intrinsic(m->t, "llvm.fma", LLVMTypeOf(x), 3, args);
}
static V absolute(Math *m, V x) {
    return arith_intrinsic(m->t, "llvm.fabs", LLVMTypeOf(x), 1, &x);
}
static V with_sign(Math *m, V x, V sign) {
    V args[2] = {x, sign};
    return arith_intrinsic(m->t, "llvm.copysign", LLVMTypeOf(x), 2, args);
}
static V less(Math *m, V x, V y) {
    return LLVMBuildFCmp(m->b, LLVMRealOLT, x, y, "");
}
static V choose(Math *m, V c, V x, V y) {
    return LLVMBuildSelect(m->b, c, x, y, "");
}
static V hardware(Math *m, const char *name, V x) {
    return nvptx_call(m->t, name, 1, &x);
}
static V as_int(Math *m, V x) {
    return LLVMBuildBitCast(m->b, x, m->i32, "");
}
static V as_float(Math *m, V x) {
    return LLVMBuildBitCast(m->b, x, m->f32, "");
}
// c[0] + x (c[1] + ...)
static V polynomial(Math *m, V x, const float *c, int n) {
    V r = num(m, c[n - 1]);
    for (int i = n - 2; i >= 0; i--)
        r = fma3(m, r, x, num(m, c[i]));
    return r;
}

static V exp2_f32(Math *m, V x) {
    return arith_intrinsic(m->t, "llvm.nvvm.ex2.approx", m->f32, 1, &x);
}

// The two functions that epilogues are made of are one piece of assembly each: a tile has a hundred
// copies of them, and LLVM takes half of all the time to compile what it cannot improve.
static V one_piece(Math *m, const char *text, V x) {
    return nvptx_asm(m->t, m->f32, text, "=f,f", 1, &x, false);
}

// 2^t (1 + e ln 2), where t + e = x log2(e) to 48 bits. A result below the normal range is 0. Where
// t is infinite e is NaN: max makes it -1, a factor that changes neither 0 nor inf.
static V exp_f32(Math *m, V x, bool fast) {
    if (fast) {
        V t = mul(m, x, num(m, 1.44269504088896341));
        return arith_intrinsic(m->t, "llvm.nvvm.ex2.approx.ftz", m->f32, 1, &t);
    }
    static const char text[] = "{ .reg .f32 t, y, e;\n\t"
                               "mul.rn.f32 t, $1, 0f3FB8AA3B;\n\t"
                               "ex2.approx.ftz.f32 y, t;\n\t"
                               "neg.f32 e, t;\n\t"
                               "fma.rn.f32 e, $1, 0f3FB8AA3B, e;\n\t"
                               "fma.rn.f32 e, $1, 0f32A57060, e;\n\t"
                               "max.f32 e, e, 0fBF800000;\n\t"
                               "min.f32 e, e, 0f3F800000;\n\t"
                               "fma.rn.f32 e, e, 0f3F317218, 0f3F800000;\n\t"
                               "mul.rn.f32 $0, y, e; }";
    return one_piece(m, text, x);
}

// x = 2^whole (1 + f), f in [-1/3, 1/3]: log x = whole ln 2 + f + tail, tail = r f f.
typedef struct LogParts {
    V whole, f, s, r; // s = f f
} LogParts;

static LogParts log_parts(Math *m, V x) {
    LogParts p;
    V tiny = less(m, x, num(m, 1.17549435e-38));
    V a = choose(m, tiny, mul(m, x, num(m, 8388608)), x);
    V i = choose(m, tiny, num(m, -23), num(m, 0));
    V bits = as_int(m, a);
    V e = LLVMBuildSub(m->b, bits, nvptx_const(m->t, 32, 0x3f2aaaab), "");
    e = LLVMBuildAnd(m->b, e, nvptx_const(m->t, 32, 0xff800000), "");
    V f = as_float(m, LLVMBuildSub(m->b, bits, e, ""));
    V exponent = LLVMBuildSIToFP(m->b, e, m->f32, "");
    p.whole = fma3(m, exponent, num(m, 1.1920928955078125e-7), i);
    p.f = f = sub(m, f, num(m, 1));
    V s = p.s = mul(m, f, f);
    V r = num(m, -0.130310059), t = num(m, 0.140869141);
    r = fma3(m, r, s, num(m, -0.121483512));
    t = fma3(m, t, s, num(m, 0.139814854));
    r = fma3(m, r, s, num(m, -0.166846126));
    t = fma3(m, t, s, num(m, 0.200120345));
    r = fma3(m, r, s, num(m, -0.249996200));
    r = fma3(m, t, f, r);
    r = fma3(m, r, f, num(m, 0.333331972));
    p.r = fma3(m, r, f, num(m, -0.5));
    return p;
}

// 0 gives -inf, below 0 NaN, inf and NaN themselves: what the hardware function gives too.
static V log_special(Math *m, V x, V r) {
    V finite = less(m, x, num(m, __builtin_inf()));
    V inside = LLVMBuildAnd(m->b, less(m, num(m, 0), x), finite, "");
    return choose(m, inside, r, hardware(m, "llvm.nvvm.lg2.approx.f", x));
}

// The parts that a product with log2(e) loses are added last.
static V log2_f32(Math *m, V x) {
    LogParts p = log_parts(m, x);
    V log2e = num(m, 1.44269504088896341);
    V product = mul(m, p.f, log2e);
    V rest = fma3(m, p.f, log2e, LLVMBuildFNeg(m->b, product, ""));
    V sum = add(m, p.whole, product);
    V lost = sub(m, product, sub(m, sum, p.whole)); // exact: |whole| >= |product| or whole = 0
    rest = fma3(m, p.f, num(m, 1.925963033500115e-8), rest);
    rest = add(m, fma3(m, mul(m, p.r, p.s), log2e, rest), lost);
    return add(m, sum, rest);
}

static V log_f32(Math *m, V x, bool base2, bool fast) {
    if (fast) {
        V r = hardware(m, "llvm.nvvm.lg2.approx.f", x);
        return base2 ? r : mul(m, r, num(m, 0.693147180559945309));
    }
    if (base2)
        return log_special(m, x, log2_f32(m, x));
    LogParts p = log_parts(m, x);
    V r = fma3(m, p.r, p.s, p.f);
    return log_special(m, x, fma3(m, p.whole, num(m, 0.693147180559945309), r));
}

static V tanh_f32(Math *m, V x, bool fast) {
    if (fast)
        return nvptx_asm(m->t, m->f32, "tanh.approx.f32 $0, $1;", "=f,f", 1, &x, false);
    static const float c[] = {-3.33327681e-1f, 1.33152977e-1f, -5.23039624e-2f, 1.573968682e-2f};
    V a = absolute(m, x), s = mul(m, x, x);
    V small = fma3(m, mul(m, polynomial(m, s, c, 4), s), x, x);
    V e = exp_f32(m, add(m, a, a), false);
    V large = sub(m, num(m, 1), LLVMBuildFDiv(m->b, num(m, 2), add(m, e, num(m, 1)), ""));
    return with_sign(m, choose(m, less(m, a, num(m, 0.55)), small, large), x);
}

// sign(x) (1 - 2^(t q(t))), t = |x|: q fitted to log2(erfc(t)) / t on [0, 4], below 0 after it.
static V erf_fast(Math *m, V x) {
    static const float c[] = {-2.94374907e-3f, 2.95886826e-2f, -1.48664162e-1f, -9.1850996e-1f,
                              -1.62788892f};
    V t = absolute(m, x), q = num(m, (double)c[0]);
    for (int i = 1; i < 5; i++)
        q = fma3(m, q, t, num(m, (double)c[i]));
    q = mul(m, q, t);
    V e = arith_intrinsic(m->t, "llvm.nvvm.ex2.approx.ftz", m->f32, 1, &q);
    return with_sign(m, sub(m, num(m, 1), e), x);
}

// x + x P(x^2) below 0.93; above, 1 - exp(-t + t Q(t)), whose exp is below 0.2 there, so that its
// own error hardly shows. Beyond 4 the polynomial leaves its range (and inf makes NaN): there erf
// is 1.
static V erf_f32(Math *m, V x) {
    static const char text[] = "{ .reg .f32 t, s, p, r, u; .reg .pred q;\n\t"
                               "abs.f32 t, $1;\n\t"
                               "mul.rn.f32 s, $1, $1;\n\t"
                               "fma.rn.f32 p, s, 0fBA1C7000, 0f3BA38D2C;\n\t"
                               "fma.rn.f32 p, p, s, 0fBCDB48D9;\n\t"
                               "fma.rn.f32 p, p, s, 0f3DE70E22;\n\t"
                               "fma.rn.f32 p, p, s, 0fBEC09380;\n\t"
                               "fma.rn.f32 p, p, s, 0f3E0375D4;\n\t"
                               "fma.rn.f32 p, p, $1, $1;\n\t"
                               "fma.rn.f32 r, t, 0fB7910000, 0f39C8E7D9;\n\t"
                               "fma.rn.f32 u, t, 0fBB7E8A1C, 0f3CC6B1A1;\n\t"
                               "fma.rn.f32 r, r, s, u;\n\t"
                               "fma.rn.f32 r, r, t, 0fBDDAAE5C;\n\t"
                               "fma.rn.f32 r, r, t, 0fBF228550;\n\t"
                               "fma.rn.f32 r, r, t, 0fBE03CE86;\n\t"
                               "neg.f32 u, t;\n\t"
                               "fma.rn.f32 r, r, t, u;\n\t"
                               "mul.rn.f32 r, r, 0f3FB8AA3B;\n\t"
                               "ex2.approx.ftz.f32 r, r;\n\t"
                               "sub.rn.f32 r, 0f3F800000, r;\n\t"
                               "setp.lt.f32 q, 0f40800000, t;\n\t"
                               "selp.f32 r, 0f3F800000, r, q;\n\t"
                               "copysign.f32 r, $1, r;\n\t"
                               "setp.lt.f32 q, t, 0f3F6D8000;\n\t"
                               "selp.f32 $0, p, r, q; }";
    return one_piece(m, text, x);
}

// Quadrant and rest by f64: exact enough while x * 2 / pi is below 2^30.
static V sin_cos_near(Math *m, V x, bool cosine) {
    LLVMTypeRef f64 = LLVMDoubleTypeInContext(m->t->llvm);
    V wide = LLVMBuildFPExt(m->b, x, f64, "");
    V turns = LLVMBuildFMul(m->b, wide, LLVMConstReal(f64, 0.63661977236758134308), "");
    V q = arith_intrinsic(m->t, "llvm.rint", f64, 1, &turns);
    V minus = LLVMBuildFNeg(m->b, q, "");
    V args[3] = {minus, LLVMConstReal(f64, 1.57079632679489655800), wide};
    V rest = arith_intrinsic(m->t, "llvm.fma", f64, 3, args);
    V low[3] = {minus, LLVMConstReal(f64, 6.12323399573676603587e-17), rest};
    rest = arith_intrinsic(m->t, "llvm.fma", f64, 3, low);
    V r = LLVMBuildFPTrunc(m->b, rest, m->f32, ""), s = mul(m, r, r);
    LLVMTypeRef types[2] = {m->i32, f64};
    unsigned id = LLVMLookupIntrinsicID("llvm.fptosi.sat", 15);
    V convert = LLVMGetIntrinsicDeclaration(m->t->module, id, types, 2);
    V k = LLVMBuildCall2(m->b, LLVMIntrinsicGetType(m->t->llvm, id, types, 2), convert, &q, 1, "");
    if (cosine)
        k = LLVMBuildAdd(m->b, k, nvptx_const(m->t, 32, 1), "");
    static const float cs[] = {-1.6666654611e-1f, 8.3321608736e-3f, -1.9515295891e-4f};
    static const float cc[] = {4.166664568298827e-2f, -1.388731625493765e-3f,
                               2.443315711809948e-5f};
    V sine = fma3(m, mul(m, polynomial(m, s, cs, 3), s), r, r);
    V cos = fma3(m, mul(m, polynomial(m, s, cc, 3), s), s, fma3(m, s, num(m, -0.5), num(m, 1)));
    V one = nvptx_const(m->t, 32, 1);
    V odd = LLVMBuildICmp(m->b, LLVMIntEQ, LLVMBuildAnd(m->b, k, one, ""), one, "");
    V value = choose(m, odd, cos, sine);
    V flip = LLVMBuildShl(m->b, LLVMBuildAnd(m->b, k, nvptx_const(m->t, 32, 2), ""),
                          nvptx_const(m->t, 32, 30), "");
    value = as_float(m, LLVMBuildXor(m->b, as_int(m, value), flip, ""));
    V zero = LLVMBuildFCmp(m->b, LLVMRealOEQ, x, num(m, 0), ""); // the sign of -0
    return cosine ? value : choose(m, zero, x, value);
}

static void set_attribute(Math *m, V function, const char *name) {
    unsigned kind = LLVMGetEnumAttributeKindForName(name, strlen(name));
    LLVMAddAttributeAtIndex(function, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
                            LLVMCreateEnumAttribute(m->t->llvm, kind, 0));
}

// A function of the module for arguments that are rare, by f64: never in line.
static V sin_cos_far(Math *m, V x, bool cosine) {
    Target *t = m->t;
    LLVMTypeRef type = LLVMFunctionType(m->f32, &m->f32, 1, false);
    char name[64];
    snprintf(name, sizeof name, "fuse.%s.far.%d", cosine ? "cos" : "sin", t->part);
    V f = LLVMGetNamedFunction(t->module, name);
    if (!f) {
        f = LLVMAddFunction(t->module, name, type);
        LLVMSetLinkage(f, LLVMInternalLinkage);
        set_attribute(m, f, "noinline");
        LLVMBasicBlockRef back = LLVMGetInsertBlock(m->b);
        LLVMMetadataRef line = LLVMGetCurrentDebugLocation2(m->b);
        LLVMSetCurrentDebugLocation2(m->b, NULL);
        LLVMPositionBuilderAtEnd(m->b, LLVMAppendBasicBlockInContext(t->llvm, f, "entry"));
        V wide = LLVMBuildFPExt(m->b, LLVMGetParam(f, 0), LLVMDoubleTypeInContext(t->llvm), "");
        wide = math_f64(t, cosine ? OP_COS : OP_SIN, &wide);
        LLVMBuildRet(m->b, LLVMBuildFPTrunc(m->b, wide, m->f32, ""));
        LLVMPositionBuilderAtEnd(m->b, back);
        LLVMSetCurrentDebugLocation2(m->b, line);
    }
    return LLVMBuildCall2(m->b, type, f, &x, 1, "");
}

static V sin_cos_f32(Math *m, V x, bool cosine) {
    V near = sin_cos_near(m, x, cosine);
    V large = LLVMBuildFCmp(m->b, LLVMRealOGE, absolute(m, x), num(m, 0x1p30), "");
    V function = LLVMGetBasicBlockParent(LLVMGetInsertBlock(m->b));
    LLVMBasicBlockRef from[2] = {LLVMGetInsertBlock(m->b),
                                 LLVMAppendBasicBlockInContext(m->t->llvm, function, "far")};
    LLVMBasicBlockRef exit = LLVMAppendBasicBlockInContext(m->t->llvm, function, "near");
    LLVMBuildCondBr(m->b, large, from[1], exit);
    LLVMPositionBuilderAtEnd(m->b, from[1]);
    V far = sin_cos_far(m, x, cosine);
    LLVMBuildBr(m->b, exit);
    LLVMPositionBuilderAtEnd(m->b, exit);
    V y = LLVMBuildPhi(m->b, m->f32, "");
    LLVMAddIncoming(y, (V[]){near, far}, from, 2);
    return y;
}

// |x|^y by 2^(y log2 |x|) with the rounding errors of logarithm and product put back; signs as in
// C.
// By f64, but for `fast`: 24 bits of log x are too few where y is large.
static V pow_f32(Math *m, V x, V y, bool fast) {
    LLVMTypeRef f64 = LLVMDoubleTypeInContext(m->t->llvm);
    if (!fast) {
        V wide[2] = {LLVMBuildFPExt(m->b, x, f64, ""), LLVMBuildFPExt(m->b, y, f64, "")};
        return LLVMBuildFPTrunc(m->b, math_f64(m->t, OP_POW, wide), m->f32, "");
    }
    V r = exp2_f32(m, mul(m, y, log_f32(m, absolute(m, x), true, true)));
    V half = mul(m, y, num(m, 0.5));
    V whole =
        LLVMBuildFCmp(m->b, LLVMRealOEQ, arith_intrinsic(m->t, "llvm.trunc", m->f32, 1, &y), y, "");
    V even = LLVMBuildFCmp(m->b, LLVMRealOEQ, arith_intrinsic(m->t, "llvm.trunc", m->f32, 1, &half),
                           half, "");
    V negative = LLVMBuildICmp(m->b, LLVMIntSLT, as_int(m, x), nvptx_const(m->t, 32, 0), "");
    V odd = LLVMBuildAnd(m->b, whole, LLVMBuildNot(m->b, even, ""), "");
    V flipped = choose(m, LLVMBuildAnd(m->b, negative, odd, ""), LLVMBuildFNeg(m->b, r, ""), r);
    V below = less(m, x, num(m, 0));
    V undefined = LLVMBuildAnd(m->b, below, LLVMBuildNot(m->b, whole, ""), "");
    flipped = choose(m, undefined, num(m, NAN), flipped);
    V zero = LLVMBuildFCmp(m->b, LLVMRealOEQ, y, num(m, 0), "");
    V one = LLVMBuildFCmp(m->b, LLVMRealOEQ, x, num(m, 1), "");
    return choose(m, LLVMBuildOr(m->b, zero, one, ""), num(m, 1), flipped);
}

// x - trunc(x / y) y with the sign of x; exact while the quotient has at most 24 bits.
static V remainder_f32(Math *m, V x, V y) {
    V q = LLVMBuildFDiv(m->b, x, y, "");
    q = arith_intrinsic(m->t, "llvm.trunc", m->f32, 1, &q);
    V r = fma3(m, LLVMBuildFNeg(m->b, q, ""), y, x);
    // the quotient may have been rounded up to the next integer
    V wrong = less(m, mul(m, r, with_sign(m, num(m, 1), x)), num(m, 0));
    r = choose(m, wrong, add(m, r, with_sign(m, y, x)), r);
    V far = LLVMBuildFCmp(m->b, LLVMRealOEQ, absolute(m, y), num(m, __builtin_inf()), "");
    V finite = less(m, absolute(m, x), num(m, __builtin_inf()));
    return choose(m, LLVMBuildAnd(m->b, far, finite, ""), x, r);
}

// NULL when it is no function of f32.
static V function_f32(Math *m, OpKind kind, unsigned flags, V x, V y) {
    bool fast = (flags & ARITH_FAST) != 0;
    if (kind == OP_EXP2)
        return exp2_f32(m, x);
    if (kind == OP_EXP)
        return exp_f32(m, x, fast);
    if (kind == OP_LOG2 || kind == OP_LOG)
        return log_f32(m, x, kind == OP_LOG2, fast);
    if (kind == OP_RSQRT)
        return hardware(m, "llvm.nvvm.rsqrt.approx.f", x);
    if (kind == OP_RCP)
        return fast ? hardware(m, "llvm.nvvm.rcp.approx.ftz.f", x)
                    : LLVMBuildFDiv(m->b, num(m, 1), x, "");
    if (kind == OP_SQRT && fast)
        return hardware(m, "llvm.nvvm.sqrt.approx.f", x);
    if (kind == OP_TANH)
        return tanh_f32(m, x, fast);
    if (kind == OP_ERF)
        return fast ? erf_fast(m, x) : erf_f32(m, x);
    if (kind == OP_SIN || kind == OP_COS) {
        if (fast)
            return hardware(m, kind == OP_SIN ? "llvm.nvvm.sin.approx.f" : "llvm.nvvm.cos.approx.f",
                            x);
        return sin_cos_f32(m, x, kind == OP_COS);
    }
    if (kind == OP_POW)
        return pow_f32(m, x, y, fast);
    if (kind == OP_REM)
        return remainder_f32(m, x, y);
    return NULL;
}

static V function_f64(Math *m, OpKind kind, V x, V y) {
    LLVMTypeRef f64 = LLVMTypeOf(x);
    if (kind == OP_RCP)
        return LLVMBuildFDiv(m->b, LLVMConstReal(f64, 1), x, "");
    if (kind == OP_RSQRT)
        return LLVMBuildFDiv(m->b, LLVMConstReal(f64, 1),
                             arith_intrinsic(m->t, "llvm.sqrt", f64, 1, &x), "");
    if (kind == OP_REM) {
        V q = LLVMBuildFDiv(m->b, x, y, "");
        q = arith_intrinsic(m->t, "llvm.trunc", f64, 1, &q);
        V args[3] = {LLVMBuildFNeg(m->b, q, ""), y, x};
        return arith_intrinsic(m->t, "llvm.fma", f64, 3, args);
    }
    return math_f64(m->t, kind, (V[]){x, y});
}

// What moves, chooses and compares; nothing else computes in 8 bits. Results are operands bit for
// bit: a conversion back would make the largest number of an infinity.
static Lane fp8_arith(Target *t, OpKind kind, uint8_t sub, DType dtype, const Lane *args) {
    LLVMBuilderRef b = t->builder;
    V x = args[0].v, sign = LLVMConstInt(target_int(t, 8), 0x80, false);
    if (kind == OP_NEG)
        return (Lane){LLVMBuildXor(b, x, sign, "")};
    if (kind == OP_ABS)
        return (Lane){LLVMBuildAnd(b, x, LLVMConstNot(sign), "")};
    bool chooses = kind == OP_MIN || kind == OP_MAX || kind == OP_FMIN || kind == OP_FMAX;
    if (!chooses && kind != OP_CMP)
        return (Lane){NULL};
    Lane wide[2];
    nvptx_cast(t, dtype, DT_F32, 2, args, wide);
    V r = nvptx_arith(t, kind, sub, DT_F32, 0, wide).v;
    if (kind == OP_CMP)
        return (Lane){r};
    LLVMTypeRef i32 = target_int(t, 32);
    V same = LLVMBuildICmp(b, LLVMIntEQ, LLVMBuildBitCast(b, r, i32, ""),
                           LLVMBuildBitCast(b, wide[0].v, i32, ""), "");
    V nan = LLVMBuildAnd(b, LLVMBuildFCmp(b, LLVMRealUNO, r, r, ""),
                         LLVMBuildFCmp(b, LLVMRealUNO, wide[0].v, wide[0].v, ""), "");
    return (Lane){LLVMBuildSelect(b, LLVMBuildOr(b, same, nan, ""), x, args[1].v, "")};
}

Lane nvptx_arith(Target *t, OpKind kind, uint8_t sub, DType dtype, unsigned flags,
                 const Lane *args) {
    Math m = {
        .t = t, .b = t->builder, .f32 = LLVMFloatTypeInContext(t->llvm), .i32 = target_int(t, 32)};
    if (!dtype_is_float(dtype))
        return arith_generic(t, kind, sub, dtype, flags, args);
    bool two = op_info(kind)->nin > 1;
    V x = args[0].v, y = two ? args[1].v : NULL;
    if (dtype == DT_F64) {
        V r = function_f64(&m, kind, x, y);
        return r ? (Lane){r} : arith_generic(t, kind, sub, dtype, flags, args);
    }
    if (dtype == DT_F32) {
        V r = function_f32(&m, kind, flags, x, y);
        return r ? (Lane){r} : arith_generic(t, kind, sub, dtype, flags, args);
    }
    if (dtype_is_fp8(dtype))
        return fp8_arith(t, kind, sub, dtype, args);
    if (dtype != DT_F16 && dtype != DT_BF16)
        return (Lane){NULL};
    Lane plain = arith_generic(t, kind, sub, dtype, flags, args);
    if (plain.v)
        return plain;
    LLVMTypeRef narrow = LLVMTypeOf(x);
    x = LLVMBuildFPExt(m.b, x, m.f32, "");
    y = y ? LLVMBuildFPExt(m.b, y, m.f32, "") : NULL;
    V r = function_f32(&m, kind, flags, x, y);
    return (Lane){r ? LLVMBuildFPTrunc(m.b, r, narrow, "") : NULL};
}

// --- conversions ---

// Two f32 to one 32-bit register of 16-bit floats: the first argument lands in the high half.
static void pack_pairs(Target *t, DType to, int n, const Lane *in, Lane *out) {
    const char *name = to == DT_BF16 ? "llvm.nvvm.ff2bf16x2.rn" : "llvm.nvvm.ff2f16x2.rn";
    for (int i = 0; i + 1 < n; i += 2) {
        V pair[2] = {in[i + 1].v, in[i].v};
        V both = nvptx_call(t, name, 2, pair);
        out[i].v = LLVMBuildExtractElement(t->builder, both, nvptx_const(t, 32, 0), "");
        out[i + 1].v = LLVMBuildExtractElement(t->builder, both, nvptx_const(t, 32, 1), "");
    }
    if (n & 1)
        out[n - 1] = arith_cast(t, DT_F32, to, in[n - 1]);
}

// cvt.rn.satfinite on pairs of f32.
static void to_fp8(Target *t, DType to, int n, const Lane *in, Lane *out) {
    const char *name = to == DT_E4M3 ? "llvm.nvvm.ff.to.e4m3x2.rn" : "llvm.nvvm.ff.to.e5m2x2.rn";
    V zero = LLVMConstReal(LLVMFloatTypeInContext(t->llvm), 0);
    for (int i = 0; i < n; i += 2) {
        V pair[2] = {i + 1 < n ? in[i + 1].v : zero, in[i].v};
        V both = nvptx_call(t, name, 2, pair);
        out[i].v = LLVMBuildTrunc(t->builder, both, target_int(t, 8), "");
        if (i + 1 < n) {
            V high = LLVMBuildLShr(t->builder, both, nvptx_const(t, 16, 8), "");
            out[i + 1].v = LLVMBuildTrunc(t->builder, high, target_int(t, 8), "");
        }
    }
}

static void from_fp8(Target *t, DType from, int n, const Lane *in, Lane *out) {
    const char *name =
        from == DT_E4M3 ? "llvm.nvvm.e4m3x2.to.f16x2.rn" : "llvm.nvvm.e5m2x2.to.f16x2.rn";
    LLVMTypeRef f32 = LLVMFloatTypeInContext(t->llvm);
    for (int i = 0; i < n; i += 2) {
        V both = LLVMBuildZExt(t->builder, in[i].v, target_int(t, 16), "");
        if (i + 1 < n) {
            V high = LLVMBuildZExt(t->builder, in[i + 1].v, target_int(t, 16), "");
            high = LLVMBuildShl(t->builder, high, nvptx_const(t, 16, 8), "");
            both = LLVMBuildOr(t->builder, both, high, "");
        }
        V pair = nvptx_call(t, name, 1, &both);
        for (int k = 0; k < 2 && i + k < n; k++) {
            V x = LLVMBuildExtractElement(t->builder, pair, nvptx_const(t, 32, k), "");
            out[i + k].v = LLVMBuildFPExt(t->builder, x, f32, "");
        }
    }
}

static bool is_short_float(DType t) {
    return dtype_is_float(t) && t != DT_F64;
}

void nvptx_cast(Target *t, DType from, DType to, int n, const Lane *in, Lane *out) {
    bool from8 = dtype_is_fp8(from), to8 = dtype_is_fp8(to);
    // There are instructions from sm_89 on, for f32 and f16; what has more bits is rounded once.
    if (((from8 || to8) && t->desc->sm < 89) || (to8 && !is_short_float(from))) {
        for (int i = 0; i < n; i++)
            out[i].v = small_float_cast(t, from, to, in[i].v);
        return;
    }
    if (from8) {
        from_fp8(t, from, n, in, out);
        if (to != DT_F32)
            nvptx_cast(t, DT_F32, to, n, out, out);
        return;
    }
    if (to8) {
        if (from != DT_F32) {
            nvptx_cast(t, from, DT_F32, n, in, out);
            in = out;
        }
        to_fp8(t, to, n, in, out);
        return;
    }
    if (from == DT_F32 && (to == DT_BF16 || to == DT_F16) && n > 1) {
        pack_pairs(t, to, n, in, out);
        return;
    }
    for (int i = 0; i < n; i++)
        out[i] = arith_cast(t, from, to, in[i]);
}
