// Casts from and to f16, bf16, e4m3 and e5m2 by integer operations, on scalars and vectors: for
// targets without instructions for them.
//
// Rounding is to nearest even in one step: a wider source is first rounded to f32 "to odd" (the
// last bit set where anything was lost), which leaves the second rounding the right information
// (Boldo and Melquiond, "When double rounding is odd").
#include "backend/target.h"

typedef LLVMValueRef V;

typedef struct Format {
    int exponent, mantissa; // bits
    uint32_t nan;           // canonical code without the sign
    uint32_t max;           // largest finite code
    bool saturates;
    float max_value;
} Format;

static const Format *format_of(DType dtype) {
    static const Format f16 = {5, 10, 0x7fff, 0x7bff, false, 65504.0f};
    static const Format e4m3 = {4, 3, 0x7f, 0x7e, true, 448.0f};
    static const Format e5m2 = {5, 2, 0x7f, 0x7b, true, 57344.0f};
    return dtype == DT_F16 ? &f16 : dtype == DT_E4M3 ? &e4m3 : dtype == DT_E5M2 ? &e5m2 : NULL;
}

static bool is_small(DType dtype) {
    return dtype == DT_F16 || dtype == DT_BF16 || dtype_is_fp8(dtype);
}

// Integers of `bits` bits, floats: as many as `shape` has elements.
static LLVMTypeRef ints(Target *t, V shape, int bits) {
    return arith_type_like(shape, target_int(t, bits));
}

static LLVMTypeRef floats(Target *t, V shape, DType dtype) {
    return arith_type_like(shape, target_type(t, dtype));
}

// A constant of x's integer type.
static V like(Target *t, V x, int64_t value) {
    return arith_int_like(t, LLVMTypeOf(x), value);
}

static V as_float(Target *t, V bits) {
    return LLVMBuildBitCast(t->builder, bits, floats(t, bits, DT_F32), "");
}

static V as_int(Target *t, V x) {
    return LLVMBuildBitCast(t->builder, x, ints(t, x, 32), "");
}

static float power_of_two(int e) {
    float r = 1;
    for (; e > 0; e--)
        r *= 2;
    for (; e < 0; e++)
        r /= 2;
    return r;
}

// --- to f32: exact -----------------------------------------------------------------------------

static V decode(Target *t, DType dtype, V x) {
    LLVMBuilderRef b = t->builder;
    int width = (int)dtype_bits(dtype);
    V code = LLVMBuildBitCast(b, x, ints(t, x, width), "");
    code = LLVMBuildZExt(b, code, ints(t, x, 32), "");
    if (dtype == DT_BF16)
        return as_float(t, LLVMBuildShl(b, code, like(t, code, 16), ""));
    const Format *f = format_of(dtype);
    int bias = (1 << (f->exponent - 1)) - 1, shift = 23 - f->mantissa;
    uint32_t sign_bit = 1u << (width - 1);
    V magnitude = LLVMBuildAnd(b, code, like(t, code, sign_bit - 1), "");
    V sign = LLVMBuildAnd(b, code, like(t, code, sign_bit), "");
    sign = LLVMBuildShl(b, sign, like(t, code, 32 - width), "");
    // The exponent is off by the difference of the biases; a multiplication puts it right,
    // subnormals too.
    V scaled = as_float(t, LLVMBuildShl(b, magnitude, like(t, code, shift), ""));
    V scale = arith_const_like(t, LLVMTypeOf(scaled), power_of_two(127 - bias));
    V bits = as_int(t, LLVMBuildFMul(b, scaled, scale, ""));
    V special = LLVMBuildICmp(b, LLVMIntUGT, magnitude, like(t, code, f->max), "");
    V top = like(t, code, 0x7f800000);
    if (dtype == DT_E4M3)
        top = like(t, code, 0x7fc00000);
    bits = LLVMBuildSelect(b, special, LLVMBuildOr(b, bits, top, ""), bits, "");
    return as_float(t, LLVMBuildOr(b, bits, sign, ""));
}

// --- from f32 ----------------------------------------------------------------------------------

static V encode_bf16(Target *t, V bits) {
    LLVMBuilderRef b = t->builder;
    V odd = LLVMBuildLShr(b, bits, like(t, bits, 16), "");
    odd = LLVMBuildAnd(b, odd, like(t, bits, 1), "");
    V r = LLVMBuildAdd(b, bits, LLVMBuildAdd(b, odd, like(t, bits, 0x7fff), ""), "");
    r = LLVMBuildLShr(b, r, like(t, bits, 16), "");
    V magnitude = LLVMBuildAnd(b, bits, like(t, bits, 0x7fffffff), "");
    V nan = LLVMBuildICmp(b, LLVMIntUGT, magnitude, like(t, bits, 0x7f800000), "");
    return LLVMBuildSelect(b, nan, like(t, bits, 0x7fff), r, "");
}

// F. Giesen's float_to_half_fast3_rtne, for any small format.
static V encode_format(Target *t, const Format *f, int width, V bits) {
    LLVMBuilderRef b = t->builder;
    int bias = (1 << (f->exponent - 1)) - 1, shift = 23 - f->mantissa;
    V sign = LLVMBuildLShr(b, bits, like(t, bits, 32 - width), "");
    sign = LLVMBuildAnd(b, sign, like(t, bits, 1 << (width - 1)), "");
    V u = LLVMBuildAnd(b, bits, like(t, bits, 0x7fffffff), "");
    V nan = LLVMBuildICmp(b, LLVMIntUGT, u, like(t, bits, 0x7f800000), "");
    // Subnormals: adding a number whose last bit is theirs rounds them.
    V magic =
        arith_const_like(t, floats(t, bits, DT_F32), power_of_two(1 - bias - f->mantissa + 23));
    V low = as_int(t, LLVMBuildFAdd(b, as_float(t, u), magic, ""));
    low = LLVMBuildSub(b, low, as_int(t, magic), "");
    V odd = LLVMBuildLShr(b, u, like(t, bits, shift), "");
    odd = LLVMBuildAnd(b, odd, like(t, bits, 1), "");
    int64_t rebias = (int64_t)(bias - 127) * (1 << 23) + (1 << (shift - 1)) - 1;
    V high = LLVMBuildAdd(b, LLVMBuildAdd(b, u, like(t, bits, rebias), ""), odd, "");
    high = LLVMBuildLShr(b, high, like(t, bits, shift), "");
    V small = LLVMBuildICmp(b, LLVMIntULT, u, like(t, bits, (int64_t)(127 + 1 - bias) << 23), "");
    V code = LLVMBuildSelect(b, small, low, high, "");
    // Beyond the largest number: that, or infinity, which follows it.
    V limit = arith_const_like(t, LLVMTypeOf(magic), f->max_value * 2);
    V over = LLVMBuildICmp(b, LLVMIntUGE, u, as_int(t, limit), "");
    uint32_t end = f->saturates ? f->max : f->max + 1;
    V huge = LLVMBuildICmp(b, LLVMIntUGT, code, like(t, bits, end), "");
    code = LLVMBuildSelect(b, LLVMBuildOr(b, over, huge, ""), like(t, bits, end), code, "");
    code = LLVMBuildSelect(b, nan, like(t, bits, f->nan), code, "");
    V keep = LLVMBuildSelect(b, nan, like(t, bits, 0), sign, "");
    return LLVMBuildOr(b, code, keep, "");
}

static V encode(Target *t, DType dtype, V x) {
    int width = (int)dtype_bits(dtype);
    V bits = as_int(t, x);
    V code =
        dtype == DT_BF16 ? encode_bf16(t, bits) : encode_format(t, format_of(dtype), width, bits);
    code = LLVMBuildTrunc(t->builder, code, ints(t, x, width), "");
    return LLVMBuildBitCast(t->builder, code, floats(t, x, dtype), "");
}

// f64 to f32, rounded to odd.
static V narrow_odd(Target *t, V x) {
    LLVMBuilderRef b = t->builder;
    LLVMTypeRef f32 = floats(t, x, DT_F32), f64 = LLVMTypeOf(x);
    V y = LLVMBuildFPTrunc(b, x, f32, ""), back = LLVMBuildFPExt(b, y, f64, "");
    V ax = arith_intrinsic(t, "llvm.fabs", f64, 1, &x),
      ab = arith_intrinsic(t, "llvm.fabs", f64, 1, &back);
    V lost = LLVMBuildFCmp(b, LLVMRealONE, back, x, "");
    V above = LLVMBuildFCmp(b, LLVMRealOGT, ab, ax, "");
    V bits = as_int(t, y), one = like(t, bits, 1);
    // Infinity that stands for a finite number comes down to the largest one, which is odd.
    V down = LLVMBuildSelect(b, above, LLVMBuildSub(b, bits, one, ""), bits, "");
    V odd = LLVMBuildOr(b, down, one, "");
    V inf = LLVMBuildFCmp(b, LLVMRealOEQ, ax, arith_const_like(t, f64, __builtin_inf()), "");
    V use = LLVMBuildAnd(b, lost, LLVMBuildNot(b, inf, ""), "");
    return as_float(t, LLVMBuildSelect(b, use, odd, bits, ""));
}

// 64-bit integers to f64, rounded to odd: bits that do not fit are gathered in one.
static V int_to_f64_odd(Target *t, V x, bool is_signed) {
    LLVMBuilderRef b = t->builder;
    LLVMTypeRef i64 = LLVMTypeOf(x), f64 = floats(t, x, DT_F64);
    V zero = LLVMConstNull(i64);
    V negative = LLVMBuildICmp(b, LLVMIntSLT, x, zero, "");
    V u = is_signed ? LLVMBuildSelect(b, negative, LLVMBuildNeg(b, x, ""), x, "") : x;
    V tail = LLVMBuildAnd(b, u, like(t, x, 0xfff), "");
    V sticky = LLVMBuildICmp(b, LLVMIntNE, tail, zero, "");
    V cut = LLVMBuildAnd(b, u, like(t, x, ~INT64_C(0xfff)), "");
    cut = LLVMBuildOr(b, cut, LLVMBuildSelect(b, sticky, like(t, x, 0x1000), zero, ""), "");
    V big = LLVMBuildICmp(b, LLVMIntUGE, u, like(t, x, INT64_C(1) << 53), "");
    V f = LLVMBuildUIToFP(b, LLVMBuildSelect(b, big, cut, u, ""), f64, "");
    return is_signed ? LLVMBuildSelect(b, negative, LLVMBuildFNeg(b, f, ""), f, "") : f;
}

static V int_to_small(Target *t, DType from, DType to, V x) {
    bool is_signed = from != DT_BOOL && dtype_is_signed(from);
    int bits = from == DT_BOOL ? 1 : (int)dtype_bits(from);
    LLVMTypeRef f32 = floats(t, x, DT_F32);
    LLVMTypeRef f64 = floats(t, x, DT_F64);
    LLVMTypeRef mid = bits <= 16 ? f32 : f64;
    V v = bits == 64  ? int_to_f64_odd(t, x, is_signed)
          : is_signed ? LLVMBuildSIToFP(t->builder, x, mid, "")
                      : LLVMBuildUIToFP(t->builder, x, mid, "");
    return encode(t, to, bits <= 16 ? v : narrow_odd(t, v));
}

V small_float_cast(Target *t, DType from, DType to, V x) {
    if (from == to)
        return x;
    if (!is_small(from) && !is_small(to))
        return arith_cast(t, from, to, (Lane){x}).v;
    if (!dtype_is_float(from))
        return int_to_small(t, from, to, x);
    V wide = is_small(from) ? decode(t, from, x) : from == DT_F64 ? narrow_odd(t, x) : x;
    if (is_small(to))
        return encode(t, to, wide);
    return small_float_cast(t, DT_F32, to, wide);
}
