// Arithmetic that reads the same on scalars and vectors: integers, comparisons, simple float ops.
//
// Input: Lanes (any LLVM scalar or vector type). Output: a Lane, or NULL where the op is a function
// that each target has its own way for. Invariant: no operation here is undefined behaviour for any
// operand: divisors are guarded, shift counts clamped.
#include "backend/target.h"

#include <string.h>

typedef LLVMValueRef V;

LLVMTypeRef arith_type_like(V shape, LLVMTypeRef element) {
    LLVMTypeRef type = LLVMTypeOf(shape);
    if (LLVMGetTypeKind(type) == LLVMVectorTypeKind)
        return LLVMVectorType(element, LLVMGetVectorSize(type));
    return element;
}

static V const_splat(LLVMTypeRef type, V scalar) {
    if (LLVMGetTypeKind(type) != LLVMVectorTypeKind)
        return scalar;
    unsigned n = LLVMGetVectorSize(type);
    V lanes[64];
    for (unsigned i = 0; i < n && i < 64; i++)
        lanes[i] = scalar;
    return LLVMConstVector(lanes, n);
}

static LLVMTypeRef element_type(LLVMTypeRef type) {
    return LLVMGetTypeKind(type) == LLVMVectorTypeKind ? LLVMGetElementType(type) : type;
}

V arith_const_like(Target *t, LLVMTypeRef type, double f) {
    (void)t;
    return const_splat(type, LLVMConstReal(element_type(type), f));
}

V arith_int_like(Target *t, LLVMTypeRef type, int64_t i) {
    (void)t;
    // LLVM wants constants that fit the type, with its sign.
    unsigned unused = 64 - LLVMGetIntTypeWidth(element_type(type));
    int64_t fit = (int64_t)((uint64_t)i << unused) >> unused;
    return const_splat(type, LLVMConstInt(element_type(type), (unsigned long long)fit, true));
}

V arith_intrinsic(Target *t, const char *name, LLVMTypeRef overload, int n, V *args) {
    unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
    if (!id) {
        target_fail(t, "intrinsic %s is unknown", name);
        return LLVMGetUndef(overload ? overload : target_int(t, 32));
    }
    LLVMTypeRef types[1] = {overload};
    size_t ntypes = overload ? 1 : 0;
    V f = LLVMGetIntrinsicDeclaration(t->module, id, types, ntypes);
    LLVMTypeRef type = LLVMIntrinsicGetType(t->llvm, id, types, ntypes);
    return LLVMBuildCall2(t->builder, type, f, args, (unsigned)n, "");
}

static V unary(Target *t, const char *name, V x) {
    return arith_intrinsic(t, name, LLVMTypeOf(x), 1, &x);
}

static V binary(Target *t, const char *name, V x, V y) {
    V args[2] = {x, y};
    return arith_intrinsic(t, name, LLVMTypeOf(x), 2, args);
}

static V allow_contract(V v, unsigned flags) {
    if ((flags & ARITH_CONTRACT) && LLVMIsAInstruction(v) && LLVMCanValueUseFastMathFlags(v))
        LLVMSetFastMathFlags(v, LLVMGetFastMathFlags(v) | LLVMFastMathAllowContract);
    return v;
}

// f16 and bf16 are computed in f32 and rounded once.
static bool is_narrow_float(DType dtype) {
    return dtype == DT_F16 || dtype == DT_BF16;
}

static V float_cmp(Target *t, uint8_t sub, V a, V b) {
    static const LLVMRealPredicate predicate[CMP_COUNT] = {
        [CMP_EQ] = LLVMRealOEQ, [CMP_NE] = LLVMRealUNE, [CMP_LT] = LLVMRealOLT,
        [CMP_LE] = LLVMRealOLE, [CMP_GT] = LLVMRealOGT, [CMP_GE] = LLVMRealOGE,
    };
    return LLVMBuildFCmp(t->builder, predicate[sub], a, b, "");
}

static V int_cmp(Target *t, uint8_t sub, bool is_signed, V a, V b) {
    static const LLVMIntPredicate predicate[2][CMP_COUNT] = {
        {LLVMIntEQ, LLVMIntNE, LLVMIntULT, LLVMIntULE, LLVMIntUGT, LLVMIntUGE},
        {LLVMIntEQ, LLVMIntNE, LLVMIntSLT, LLVMIntSLE, LLVMIntSGT, LLVMIntSGE},
    };
    return LLVMBuildICmp(t->builder, predicate[is_signed][sub], a, b, "");
}

static V float_arith(Target *t, OpKind kind, uint8_t sub, unsigned flags, const V *x) {
    LLVMBuilderRef b = t->builder;
    // A list of what is generic, not of all ops: everything else goes to the target.
    if (kind == OP_ADD)
        return allow_contract(LLVMBuildFAdd(b, x[0], x[1], ""), flags);
    if (kind == OP_SUB)
        return allow_contract(LLVMBuildFSub(b, x[0], x[1], ""), flags);
    if (kind == OP_MUL)
        return allow_contract(LLVMBuildFMul(b, x[0], x[1], ""), flags);
    if (kind == OP_FMA) {
        V args[3] = {x[0], x[1], x[2]};
        return arith_intrinsic(t, "llvm.fma", LLVMTypeOf(x[0]), 3, args);
    }
    if (kind == OP_DIV) {
        V q = LLVMBuildFDiv(b, x[0], x[1], "");
        if ((flags & ARITH_FAST) && LLVMIsAInstruction(q))
            LLVMSetFastMathFlags(q, LLVMFastMathApproxFunc | LLVMFastMathAllowReciprocal);
        return q;
    }
    if (kind == OP_REM)
        return NULL;
    if (kind == OP_NEG)
        return LLVMBuildFNeg(b, x[0], "");
    if (kind == OP_ABS)
        return unary(t, "llvm.fabs", x[0]);
    if (kind == OP_MIN)
        return binary(t, "llvm.minimum", x[0], x[1]);
    if (kind == OP_MAX)
        return binary(t, "llvm.maximum", x[0], x[1]);
    if (kind == OP_FMIN)
        return binary(t, "llvm.minnum", x[0], x[1]);
    if (kind == OP_FMAX)
        return binary(t, "llvm.maxnum", x[0], x[1]);
    if (kind == OP_SQRT)
        return unary(t, "llvm.sqrt", x[0]);
    if (kind == OP_FLOOR)
        return unary(t, "llvm.floor", x[0]);
    if (kind == OP_CEIL)
        return unary(t, "llvm.ceil", x[0]);
    if (kind == OP_TRUNC)
        return unary(t, "llvm.trunc", x[0]);
    if (kind == OP_ROUND)
        return unary(t, "llvm.roundeven", x[0]);
    if (kind == OP_CMP)
        return float_cmp(t, sub, x[0], x[1]);
    return NULL;
}

// A divisor that cannot trap: 1 for 0, and 1 (with the quotient negated by wrapping) for -1.
static V safe_divisor(Target *t, bool is_signed, V a, V d) {
    LLVMTypeRef type = LLVMTypeOf(d);
    if (LLVMIsAConstantInt(d) && !LLVMIsNull(d) && LLVMConstIntGetSExtValue(d) != -1)
        return d;
    V zero = arith_int_like(t, type, 0), one = arith_int_like(t, type, 1);
    V bad = LLVMBuildICmp(t->builder, LLVMIntEQ, d, zero, "");
    if (is_signed) {
        // most negative / -1 overflows
        unsigned bits = LLVMGetIntTypeWidth(element_type(type));
        V least = arith_int_like(t, type, (int64_t)(UINT64_C(1) << (bits - 1)));
        V minus = LLVMBuildICmp(t->builder, LLVMIntEQ, d, arith_int_like(t, type, -1), "");
        V over = LLVMBuildICmp(t->builder, LLVMIntEQ, a, least, "");
        bad = LLVMBuildOr(t->builder, bad, LLVMBuildAnd(t->builder, minus, over, ""), "");
    }
    return LLVMBuildSelect(t->builder, bad, one, d, "");
}

// Quotient and remainder, rounded to zero.
static V int_div(Target *t, bool is_signed, V a, V d) {
    d = safe_divisor(t, is_signed, a, d);
    return is_signed ? LLVMBuildSDiv(t->builder, a, d, "") : LLVMBuildUDiv(t->builder, a, d, "");
}

static V int_rem(Target *t, bool is_signed, V a, V d) {
    d = safe_divisor(t, is_signed, a, d);
    return is_signed ? LLVMBuildSRem(t->builder, a, d, "") : LLVMBuildURem(t->builder, a, d, "");
}

// floordiv, mod (sign of the divisor) and cdiv from the truncated ones.
static V int_round_div(Target *t, OpKind kind, bool is_signed, V a, V d) {
    LLVMBuilderRef b = t->builder;
    LLVMTypeRef type = LLVMTypeOf(a);
    V zero = arith_int_like(t, type, 0), one = arith_int_like(t, type, 1);
    d = safe_divisor(t, is_signed, a, d);
    V q = is_signed ? LLVMBuildSDiv(b, a, d, "") : LLVMBuildUDiv(b, a, d, "");
    V r = LLVMBuildSub(b, a, LLVMBuildMul(b, q, d, ""), "");
    V rest = LLVMBuildICmp(b, LLVMIntNE, r, zero, "");
    if (!is_signed) {
        if (kind == OP_CDIV)
            return LLVMBuildAdd(b, q, LLVMBuildZExt(b, rest, type, ""), "");
        return kind == OP_MOD ? r : q;
    }
    V differ = LLVMBuildICmp(b, LLVMIntSLT, LLVMBuildXor(b, r, d, ""), zero, "");
    if (kind == OP_CDIV) {
        V up = LLVMBuildAnd(b, rest, LLVMBuildNot(b, differ, ""), "");
        return LLVMBuildSelect(b, up, LLVMBuildAdd(b, q, one, ""), q, "");
    }
    V down = LLVMBuildAnd(b, rest, differ, "");
    if (kind == OP_MOD)
        return LLVMBuildSelect(b, down, LLVMBuildAdd(b, r, d, ""), r, "");
    return LLVMBuildSelect(b, down, LLVMBuildSub(b, q, one, ""), q, "");
}

static V int_shift(Target *t, OpKind kind, bool is_signed, V a, V count) {
    LLVMBuilderRef b = t->builder;
    LLVMTypeRef type = LLVMTypeOf(a), from = LLVMTypeOf(count);
    unsigned bits = LLVMGetIntTypeWidth(element_type(type));
    // Compare in the count's own type: a wide count must not be cut before.
    V limit = arith_int_like(t, from, (int64_t)bits);
    unsigned from_bits = LLVMGetIntTypeWidth(element_type(from));
    V inside = from_bits < 8 ? NULL : LLVMBuildICmp(b, LLVMIntULT, count, limit, "");
    V last = arith_int_like(t, type, (int64_t)bits - 1);
    V n = LLVMBuildIntCast2(b, count, type, false, "");
    V clamped = inside ? LLVMBuildSelect(b, inside, n, last, "") : n;
    if (kind == OP_SHR && is_signed)
        return LLVMBuildAShr(b, a, clamped, "");
    V shifted = kind == OP_SHL ? LLVMBuildShl(b, a, clamped, "") : LLVMBuildLShr(b, a, clamped, "");
    return inside ? LLVMBuildSelect(b, inside, shifted, arith_int_like(t, type, 0), "") : shifted;
}

static V int_arith(Target *t, OpKind kind, uint8_t sub, DType dtype, const V *x) {
    LLVMBuilderRef b = t->builder;
    bool is_signed = dtype != DT_BOOL && dtype_is_signed(dtype);
    if (kind == OP_ADD)
        return LLVMBuildAdd(b, x[0], x[1], "");
    if (kind == OP_SUB)
        return LLVMBuildSub(b, x[0], x[1], "");
    if (kind == OP_MUL)
        return LLVMBuildMul(b, x[0], x[1], "");
    if (kind == OP_FMA)
        return LLVMBuildAdd(b, LLVMBuildMul(b, x[0], x[1], ""), x[2], "");
    if (kind == OP_DIV)
        return int_div(t, is_signed, x[0], x[1]);
    if (kind == OP_REM)
        return int_rem(t, is_signed, x[0], x[1]);
    if (kind == OP_CDIV || kind == OP_FLOORDIV || kind == OP_MOD)
        return int_round_div(t, kind, is_signed, x[0], x[1]);
    if (kind == OP_NEG)
        return LLVMBuildNeg(b, x[0], "");
    if (kind == OP_ABS) {
        V negative = LLVMBuildICmp(b, LLVMIntSLT, x[0], arith_int_like(t, LLVMTypeOf(x[0]), 0), "");
        return is_signed ? LLVMBuildSelect(b, negative, LLVMBuildNeg(b, x[0], ""), x[0], "") : x[0];
    }
    if (kind == OP_MIN || kind == OP_FMIN)
        return binary(t, is_signed ? "llvm.smin" : "llvm.umin", x[0], x[1]);
    if (kind == OP_MAX || kind == OP_FMAX)
        return binary(t, is_signed ? "llvm.smax" : "llvm.umax", x[0], x[1]);
    if (kind == OP_AND)
        return LLVMBuildAnd(b, x[0], x[1], "");
    if (kind == OP_OR)
        return LLVMBuildOr(b, x[0], x[1], "");
    if (kind == OP_XOR)
        return LLVMBuildXor(b, x[0], x[1], "");
    if (kind == OP_NOT)
        return LLVMBuildNot(b, x[0], "");
    if (kind == OP_SHL || kind == OP_SHR)
        return int_shift(t, kind, is_signed, x[0], x[1]);
    if (kind == OP_POPC)
        return unary(t, "llvm.ctpop", x[0]);
    if (kind == OP_CLZ) {
        V args[2] = {x[0], LLVMConstInt(target_int(t, 1), 0, false)};
        return arith_intrinsic(t, "llvm.ctlz", LLVMTypeOf(x[0]), 2, args);
    }
    if (kind == OP_CMP)
        return int_cmp(t, sub, is_signed, x[0], x[1]);
    return NULL;
}

static int int_bits(DType dtype) {
    return dtype == DT_BOOL ? 1 : (int)dtype_bits(dtype);
}

// i4 and u4 live in i8: after an operation their value is brought back into range.
static V wrap_packed(Target *t, DType dtype, V v) {
    if (dtype != DT_I4 && dtype != DT_U4)
        return v;
    V four = arith_int_like(t, LLVMTypeOf(v), 4);
    v = LLVMBuildShl(t->builder, v, four, "");
    return dtype == DT_I4 ? LLVMBuildAShr(t->builder, v, four, "")
                          : LLVMBuildLShr(t->builder, v, four, "");
}

Lane arith_generic(Target *t, OpKind kind, uint8_t sub, DType dtype, unsigned flags,
                   const Lane *args) {
    V x[3] = {NULL, NULL, NULL};
    int n = op_info(kind)->nin;
    if (kind == OP_RAND)
        return arith_random(t, args[0], args[1]);
    for (int i = 0; i < n && i < 3; i++)
        x[i] = args[i].v;
    if (!dtype_is_float(dtype)) {
        V v = int_arith(t, kind, sub, dtype, x);
        return (Lane){v && kind != OP_CMP ? wrap_packed(t, dtype, v) : v};
    }
    if (kind == OP_NEG || kind == OP_ABS || !is_narrow_float(dtype))
        return (Lane){float_arith(t, kind, sub, flags, x)};
    LLVMTypeRef narrow = LLVMTypeOf(x[0]);
    LLVMTypeRef wide = arith_type_like(x[0], target_type(t, DT_F32));
    for (int i = 0; i < n && i < 3; i++)
        x[i] = LLVMBuildFPExt(t->builder, x[i], wide, "");
    V r = float_arith(t, kind, sub, flags, x);
    if (!r || kind == OP_CMP)
        return (Lane){r};
    return (Lane){LLVMBuildFPTrunc(t->builder, r, narrow, "")};
}

Lane arith_select(Target *t, Lane cond, Lane a, Lane b) {
    return (Lane){LLVMBuildSelect(t->builder, cond.v, a.v, b.v, "")};
}

Lane arith_cast(Target *t, DType from, DType to, Lane x) {
    LLVMBuilderRef b = t->builder;
    if (dtype_is_fp8(from) || dtype_is_fp8(to))
        return (Lane){NULL};
    if (from == to)
        return x;
    LLVMTypeRef type = arith_type_like(x.v, target_type(t, to));
    bool from_float = dtype_is_float(from), to_float = dtype_is_float(to);
    bool from_signed = from != DT_BOOL && dtype_is_signed(from);
    if (from_float && to_float) {
        int wide = (int)dtype_bits(to), narrow = (int)dtype_bits(from);
        if (wide > narrow)
            return (Lane){LLVMBuildFPExt(b, x.v, type, "")};
        if (wide < narrow) {
            return (Lane){LLVMBuildFPTrunc(b, x.v, type, "")};
        }
        V middle = LLVMBuildFPExt(b, x.v, arith_type_like(x.v, target_type(t, DT_F32)), "");
        return (Lane){LLVMBuildFPTrunc(b, middle, type, "")};
    }
    if (from_float) {
        if (to == DT_BOOL) {
            V zero = LLVMConstNull(LLVMTypeOf(x.v));
            return (Lane){LLVMBuildFCmp(b, LLVMRealUNE, x.v, zero, "")};
        }
        bool is_signed = dtype_is_signed(to);
        V v = x.v;
        if (is_narrow_float(from))
            v = LLVMBuildFPExt(b, v, arith_type_like(v, target_type(t, DT_F32)), "");
        const char *name = is_signed ? "llvm.fptosi.sat" : "llvm.fptoui.sat";
        unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
        // Saturation happens at the integer's own width.
        LLVMTypeRef exact = arith_type_like(x.v, target_int(t, int_bits(to)));
        LLVMTypeRef types[2] = {exact, LLVMTypeOf(v)};
        V f = LLVMGetIntrinsicDeclaration(t->module, id, types, 2);
        LLVMTypeRef ftype = LLVMIntrinsicGetType(t->llvm, id, types, 2);
        V r = LLVMBuildCall2(b, ftype, f, &v, 1, "");
        return (Lane){LLVMBuildIntCast2(b, r, type, is_signed, "")};
    }
    if (to_float) {
        // Through f32: LLVM has no conversions from integers to bfloat everywhere. Wide integers go
        // to f64 first, so that only the last step rounds to 16 bits after a 53-bit one.
        DType middle = to;
        if (is_narrow_float(to))
            middle = int_bits(from) > 16 ? DT_F64 : DT_F32;
        LLVMTypeRef mid = arith_type_like(x.v, target_type(t, middle));
        V v = from_signed ? LLVMBuildSIToFP(b, x.v, mid, "") : LLVMBuildUIToFP(b, x.v, mid, "");
        return (Lane){middle == to ? v : LLVMBuildFPTrunc(b, v, type, "")};
    }
    if (to == DT_BOOL) {
        V zero = LLVMConstNull(LLVMTypeOf(x.v));
        return (Lane){LLVMBuildICmp(b, LLVMIntNE, x.v, zero, "")};
    }
    return (Lane){wrap_packed(t, to, LLVMBuildIntCast2(b, x.v, type, from_signed, ""))};
}
