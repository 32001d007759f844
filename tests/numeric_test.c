/* numeric.h: every code of the 8- and 16-bit floats against tables built from the definition, and
 * rounding against a search for the nearest table entry. */
#include "lang/base/numeric.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* The value of a code from the definition of the format, with pow: independent of the code's
 * shifts. */
static double code_value(DType type, unsigned code) {
    int mbits = type == DT_F16 ? 10 : type == DT_BF16 ? 7 : type == DT_E4M3 ? 3 : 2;
    int ebits = (int)dtype_bits(type) - 1 - mbits;
    int bias = (1 << (ebits - 1)) - 1;
    unsigned sign = code >> (ebits + mbits) & 1, e = code >> mbits & ((1u << ebits) - 1);
    unsigned m = code & ((1u << mbits) - 1);
    double s = sign ? -1 : 1;
    if (type == DT_E4M3) {
        if (e == 15 && m == 7)
            return NAN;
    } else if (e == (1u << ebits) - 1) {
        return m ? NAN : s * INFINITY;
    }
    if (e == 0)
        return s * m * pow(2, 1 - bias - mbits);
    return s * (1 + m / pow(2, mbits)) * pow(2, (int)e - bias);
}

static double decode(DType type, unsigned code) {
    return scalar_from_bits(type, code).u.f;
}

static unsigned encode(DType type, double x) {
    switch (dtype_bits(type)) {
    case 8:
        return type == DT_E4M3 ? e4m3_from_f64(x) : e5m2_from_f64(x);
    default:
        return type == DT_F16 ? f16_from_f64(x) : bf16_from_f64(x);
    }
}

static const DType smalls[] = {DT_F16, DT_BF16, DT_E4M3, DT_E5M2};

Test(numeric, decode_every_code) {
    for (int t = 0; t < 4; t++) {
        for (unsigned c = 0; c < 1u << dtype_bits(smalls[t]); c++) {
            double want = code_value(smalls[t], c), got = decode(smalls[t], c);
            if (isnan(want))
                cr_assert(isnan(got), "%s %x", dtype_name(smalls[t]), c);
            else
                cr_assert(got == want && signbit(got) == signbit(want), "%s %x: %g, not %g",
                          dtype_name(smalls[t]), c, got, want);
        }
    }
}

Test(numeric, encode_every_code_back) {
    for (int t = 0; t < 4; t++) {
        for (unsigned c = 0; c < 1u << dtype_bits(smalls[t]); c++) {
            double x = code_value(smalls[t], c);
            if (isnan(x) || (isinf(x) && smalls[t] == DT_E5M2))
                continue;
            cr_assert(encode(smalls[t], x) == c, "%s %x", dtype_name(smalls[t]), c);
        }
    }
}

/* Between each two neighbours: the midpoint goes to the even code, a double's least step off it to
 * the nearer one. The step is far below what a float holds: a detour by f32 would fail here. */
Test(numeric, round_between_every_two_codes) {
    for (int t = 0; t < 4; t++) {
        DType type = smalls[t];
        unsigned sign = 1u << (dtype_bits(type) - 1);
        for (unsigned c = 0; c + 1 < sign; c++) {
            double lo = code_value(type, c), hi = code_value(type, c + 1);
            if (isnan(hi) || isinf(hi))
                break;
            double mid = lo / 2 + hi / 2;
            unsigned even = c & 1 ? c + 1 : c;
            for (unsigned s = 0; s <= sign; s += sign) {
                double g = s ? -1 : 1;
                cr_assert(encode(type, g * mid) == (even | s), "%s %x mid", dtype_name(type), c);
                cr_assert(encode(type, g * nextafter(mid, lo)) == (c | s), "%s %x below",
                          dtype_name(type), c);
                cr_assert(encode(type, g * nextafter(mid, hi)) == ((c + 1) | s), "%s %x above",
                          dtype_name(type), c);
            }
        }
    }
}

Test(numeric, overflow) {
    cr_assert(f16_from_f64(65519.999) == 0x7bff && f16_from_f64(65520) == 0x7c00);
    cr_assert(f16_from_f64(-1e300) == 0xfc00 && f16_from_f64(INFINITY) == 0x7c00);
    cr_assert(bf16_from_f64(3.3895314e38) == 0x7f7f && bf16_from_f64(3.4e38) == 0x7f80);
    cr_assert(e4m3_from_f64(1e9) == 0x7e && e4m3_from_f64(-INFINITY) == 0xfe);
    cr_assert(e4m3_from_f64(464) == 0x7e && e4m3_from_f64(500) == 0x7e);
    cr_assert(e5m2_from_f64(1e9) == 0x7b && e5m2_from_f64(-INFINITY) == 0xfb);
    cr_assert(f16_from_f64(NAN) == 0x7fff && bf16_from_f64(NAN) == 0x7fff);
    cr_assert(e4m3_from_f64(NAN) == 0x7f && e5m2_from_f64(-NAN) == 0x7f);
    cr_assert(f16_from_f64(-0.0) == 0x8000 && e5m2_from_f64(-4e-320) == 0x80);
    cr_assert(f16_from_f64(0x1p-25) == 0 && f16_from_f64(0x1.0000000000001p-25) == 1);
    cr_assert(scalar_bits(scalar_from_bits(DT_E5M2, 0x7c)) == 0x7c);
}

Test(numeric, saturate) {
    cr_assert(numeric_saturate(DT_I8, 300) == 127 && numeric_saturate(DT_I8, -300) == -128);
    cr_assert(numeric_saturate(DT_I8, -128.9) == -128 && numeric_saturate(DT_I8, 127.9) == 127);
    cr_assert(numeric_saturate(DT_U8, -1) == 0 && numeric_saturate(DT_U8, 255.5) == 255);
    cr_assert(numeric_saturate(DT_U8, 256) == 255);
    cr_assert(numeric_saturate(DT_I4, 9) == 7 && numeric_saturate(DT_I4, -9) == -8);
    cr_assert(numeric_saturate(DT_U4, 99) == 15);
    cr_assert(numeric_saturate(DT_I32, 1e20) == INT32_MAX && numeric_saturate(DT_I32, NAN) == 0);
    cr_assert(numeric_saturate(DT_I64, 1e30) == INT64_MAX);
    cr_assert(numeric_saturate(DT_I64, -INFINITY) == INT64_MIN);
    cr_assert(numeric_saturate(DT_I64, 0x1p63) == INT64_MAX);
    cr_assert(numeric_saturate(DT_INDEX, 0x1p62) == INT64_C(1) << 62);
    cr_assert((uint64_t)numeric_saturate(DT_U64, 1e30) == UINT64_MAX);
    cr_assert((uint64_t)numeric_saturate(DT_U64, 0x1p63) == UINT64_C(1) << 63);
    cr_assert(numeric_saturate(DT_BOOL, 0.25) == 1 && numeric_saturate(DT_BOOL, -0.0) == 0);
    cr_assert(numeric_saturate(DT_I32, -1.9) == -1 && numeric_saturate(DT_U32, -0.5) == 0);
}

Test(numeric, wrap) {
    cr_assert(numeric_wrap(DT_I8, 200) == -56 && numeric_wrap(DT_U8, -1) == 255);
    cr_assert(numeric_wrap(DT_I4, 8) == -8 && numeric_wrap(DT_U4, 17) == 1);
    cr_assert(numeric_wrap(DT_I32, INT64_C(1) << 31) == INT32_MIN);
    cr_assert(numeric_wrap(DT_BOOL, 4) == 1 && numeric_wrap(DT_I64, -5) == -5);
}

Test(numeric, from_int) {
    /* 2^24 + 1 halves: one rounding to f32. */
    cr_assert(numeric_from_int(DT_F32, DT_I64, (INT64_C(1) << 54) + (INT64_C(1) << 30) + 1) ==
              0x1.000002p54);
    /* Just above the midpoint of two bf16, by less than a double shows. */
    int64_t mid = (INT64_C(1) << 62) + (INT64_C(1) << 54);
    cr_assert(numeric_from_int(DT_BF16, DT_I64, mid) == 0x1p62);
    cr_assert(numeric_from_int(DT_BF16, DT_I64, mid + 1) == 0x1.02p62);
    cr_assert(numeric_from_int(DT_BF16, DT_I64, -mid - 1) == -0x1.02p62);
    cr_assert(numeric_from_int(DT_F64, DT_U64, -1) == 0x1p64);
    cr_assert(numeric_from_int(DT_F16, DT_I32, 65520) == INFINITY);
    cr_assert(numeric_from_int(DT_E4M3, DT_I32, -1000) == -448);
    cr_assert(numeric_from_int(DT_F32, DT_I64, INT64_MIN) == -0x1p63);
}

Test(numeric, cast) {
    Scalar x = scalar_float(DT_F32, 2.5);
    cr_assert(scalar_cast(x, DT_I32).u.i == 2 && scalar_cast(x, DT_BF16).u.f == 2.5);
    cr_assert(scalar_cast(scalar_int(DT_U64, -1), DT_I32).u.i == -1);
    cr_assert(scalar_cast(scalar_int(DT_U32, -1), DT_I64).u.i == 4294967295);
    cr_assert(scalar_cast(scalar_int(DT_BOOL, 1), DT_F32).u.f == 1);
    cr_assert(scalar_cast(scalar_float(DT_F64, 1 + 0x1p-11 + 0x1p-40), DT_F16).u.f == 1 + 0x1p-10);
    cr_assert(scalar_is_nan(scalar_cast(scalar_float(DT_F32, NAN), DT_E4M3)));
    cr_assert(scalar_to_f64(scalar_int(DT_U64, -1)) == 0x1p64);
}

Test(numeric, memory) {
    static const DType all[] = {DT_BOOL, DT_I8,   DT_I16,  DT_I32, DT_I64,  DT_U8,
                                DT_U16,  DT_U32,  DT_U64,  DT_F16, DT_BF16, DT_F32,
                                DT_F64,  DT_E4M3, DT_E5M2, DT_I4,  DT_U4,   DT_INDEX};
    for (size_t t = 0; t < sizeof all / sizeof *all; t++) {
        uint8_t raw[2 + 8 * 5], *base = raw + 1; /* unaligned on purpose */
        memset(raw, 0xa5, sizeof raw);
        for (int i = 0; i < 5; i++)
            scalar_store(base, i, scalar_int(all[t], all[t] == DT_BOOL ? i & 1 : i + 1));
        for (int i = 4; i >= 0; i--) {
            Scalar x = scalar_load(all[t], base, i);
            cr_assert(scalar_to_f64(x) == (all[t] == DT_BOOL ? i & 1 : i + 1), "%s",
                      dtype_name(all[t]));
        }
        cr_assert(raw[0] == 0xa5);
        if (!dtype_is_packed(all[t]))
            cr_assert(raw[1 + dtype_bytes(all[t], 5)] == 0xa5);
    }
    uint8_t pair = 0;
    scalar_store(&pair, 1, scalar_int(DT_I4, -3));
    cr_assert(pair == 0xd0);
    scalar_store(&pair, 0, scalar_int(DT_U4, 7));
    cr_assert(pair == 0xd7);
    cr_assert(scalar_load(DT_I4, &pair, 1).u.i == -3);
}
