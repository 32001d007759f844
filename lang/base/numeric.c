/* Conversions between element types and memory; see numeric.h.
 *
 * One encoder and one decoder serve all small floats: a format is its number of mantissa bits, its
 * smallest exponent and the codes at its upper end.
 */
#include "lang/base/numeric.h"

#include <math.h>
#include <string.h>

typedef struct Format {
    int mantissa;      /* bits */
    int exponent_min;  /* of the smallest normal number */
    uint32_t max;      /* code of the largest finite number */
    uint32_t overflow; /* code of what is larger */
    uint32_t nan;
    uint32_t sign;
} Format;

static const Format format_f16 = {10, -14, 0x7bff, 0x7c00, 0x7fff, 0x8000};
static const Format format_bf16 = {7, -126, 0x7f7f, 0x7f80, 0x7fff, 0x8000};
static const Format format_e4m3 = {3, -6, 0x7e, 0x7e, 0x7f, 0x80};
static const Format format_e5m2 = {2, -14, 0x7b, 0x7b, 0x7f, 0x80};

static uint32_t format_encode(const Format *format, double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    uint32_t sign = bits >> 63 ? format->sign : 0;
    int exponent = (int)(bits >> 52 & 0x7ff) - 1023;
    uint64_t mantissa = bits & ((UINT64_C(1) << 52) - 1);
    if (exponent == 1024)
        return mantissa ? format->nan : sign | format->overflow;
    if (exponent == -1023)
        return sign; /* zero, or a subnormal double: far below half of any format's least */
    mantissa |= UINT64_C(1) << 52;
    int below = exponent < format->exponent_min ? format->exponent_min - exponent : 0;
    int shift = 52 - format->mantissa + below;
    if (shift > 54)
        return sign;
    uint64_t kept = mantissa >> shift, rest = mantissa & ((UINT64_C(1) << shift) - 1);
    uint64_t half = UINT64_C(1) << (shift - 1);
    if (rest > half || (rest == half && (kept & 1)))
        kept++;
    /* The leading 1 of `kept` carries into the exponent field, as does rounding up. */
    uint64_t above = below ? 0 : (uint64_t)(exponent - format->exponent_min);
    uint64_t code = kept + (above << format->mantissa);
    return sign | (code > format->max ? format->overflow : (uint32_t)code);
}

/* Infinities and NaNs of the format have been dealt with. */
static float format_decode(const Format *format, uint32_t code) {
    uint32_t magnitude = code & (format->sign - 1);
    uint32_t field = magnitude >> format->mantissa;
    uint32_t mantissa = magnitude & ((1u << format->mantissa) - 1);
    float x;
    if (field) {
        uint32_t bits = (uint32_t)(format->exponent_min + (int)field - 1 + 127) << 23;
        bits |= mantissa << (23 - format->mantissa);
        memcpy(&x, &bits, sizeof x);
    } else {
        x = mantissa ? ldexpf((float)mantissa, format->exponent_min - format->mantissa) : 0;
    }
    return code & format->sign ? -x : x;
}

float f32_from_f16(uint16_t code) {
    if ((code & 0x7c00) == 0x7c00) {
        if (code & 0x03ff)
            return NAN;
        return code & 0x8000 ? -INFINITY : INFINITY;
    }
    return format_decode(&format_f16, code);
}

float f32_from_bf16(uint16_t code) {
    uint32_t bits = (uint32_t)code << 16;
    float x;
    memcpy(&x, &bits, sizeof x);
    return isnan(x) ? NAN : x;
}

float f32_from_e4m3(uint8_t code) {
    return (code & 0x7f) == 0x7f ? NAN : format_decode(&format_e4m3, code);
}

float f32_from_e5m2(uint8_t code) {
    if ((code & 0x7c) == 0x7c) {
        if (code & 3)
            return NAN;
        return code & 0x80 ? -INFINITY : INFINITY;
    }
    return format_decode(&format_e5m2, code);
}

uint16_t f16_from_f64(double x) {
    return (uint16_t)format_encode(&format_f16, x);
}

uint16_t bf16_from_f64(double x) {
    return (uint16_t)format_encode(&format_bf16, x);
}

uint8_t e4m3_from_f64(double x) {
    return (uint8_t)format_encode(&format_e4m3, x);
}

uint8_t e5m2_from_f64(double x) {
    return (uint8_t)format_encode(&format_e5m2, x);
}

double numeric_round(DType type, double x) {
    switch (type) {
    case DT_F16:
        return f32_from_f16(f16_from_f64(x));
    case DT_BF16:
        return f32_from_bf16(bf16_from_f64(x));
    case DT_E4M3:
        return f32_from_e4m3(e4m3_from_f64(x));
    case DT_E5M2:
        return f32_from_e5m2(e5m2_from_f64(x));
    case DT_F32:
        return (float)x;
    case DT_NONE:
    case DT_BOOL:
    case DT_I8:
    case DT_I16:
    case DT_I32:
    case DT_I64:
    case DT_U8:
    case DT_U16:
    case DT_U32:
    case DT_U64:
    case DT_F64:
    case DT_I4:
    case DT_U4:
    case DT_INDEX:
    case DT_COUNT_:
        break;
    }
    return x;
}

int64_t numeric_wrap(DType type, int64_t x) {
    if (type == DT_BOOL)
        return x != 0;
    uint32_t bits = dtype_bits(type);
    if (bits >= 64 || bits == 0)
        return x;
    uint64_t low = (uint64_t)x & ((UINT64_C(1) << bits) - 1);
    bool negative = dtype_kind(type) == DTYPE_KIND_INT && low >> (bits - 1);
    return negative ? (int64_t)(low | ~UINT64_C(0) << bits) : (int64_t)low;
}

int64_t numeric_saturate(DType type, double x) {
    if (type == DT_BOOL)
        return x != 0;
    if (isnan(x))
        return 0;
    x = trunc(x);
    int bits = (int)dtype_bits(type);
    if (dtype_kind(type) == DTYPE_KIND_INT) {
        double end = ldexp(1, bits - 1); /* one past the largest */
        if (x >= end)
            return (int64_t)((UINT64_C(1) << (bits - 1)) - 1);
        return x < -end ? -(int64_t)((UINT64_C(1) << (bits - 1)) - 1) - 1 : (int64_t)x;
    }
    if (x <= 0)
        return 0;
    if (x >= ldexp(1, bits))
        return (int64_t)(~UINT64_C(0) >> (64 - bits));
    return (int64_t)(uint64_t)x;
}

double numeric_from_int(DType to, DType from, int64_t x) {
    bool negative = from != DT_U64 && x < 0;
    uint64_t magnitude = negative ? -(uint64_t)x : (uint64_t)x;
    double exact;
    if (to == DT_F32)
        exact = (float)magnitude;
    else if (to == DT_F64 || magnitude < UINT64_C(1) << 53)
        exact = (double)magnitude;
    else /* too long for a double: round to odd there, which cannot spoil the second rounding */
        exact = ldexp((double)(magnitude >> 11 | ((magnitude & 0x7ff) != 0)), 11);
    return numeric_round(to, negative ? -exact : exact);
}

Scalar scalar_int(DType type, int64_t x) {
    Scalar out = {.dtype = type};
    if (dtype_is_float(type))
        out.u.f = numeric_from_int(type, DT_I64, x);
    else
        out.u.i = numeric_wrap(type, x);
    return out;
}

Scalar scalar_float(DType type, double x) {
    Scalar out = {.dtype = type};
    if (dtype_is_float(type))
        out.u.f = numeric_round(type, x);
    else
        out.u.i = numeric_saturate(type, x);
    return out;
}

Scalar scalar_cast(Scalar x, DType to) {
    if (dtype_is_float(x.dtype))
        return scalar_float(to, x.u.f);
    if (dtype_is_float(to))
        return (Scalar){.dtype = to, .u.f = numeric_from_int(to, x.dtype, x.u.i)};
    return scalar_int(to, x.u.i);
}

uint64_t scalar_bits(Scalar x) {
    switch (x.dtype) {
    case DT_F16:
        return f16_from_f64(x.u.f);
    case DT_BF16:
        return bf16_from_f64(x.u.f);
    case DT_E4M3:
        return e4m3_from_f64(x.u.f);
    case DT_E5M2:
        /* Its infinities exist as codes, though no conversion makes one. */
        if (isinf(x.u.f))
            return x.u.f < 0 ? 0xfc : 0x7c;
        return e5m2_from_f64(x.u.f);
    case DT_F32: {
        float f = (float)x.u.f;
        uint32_t bits;
        memcpy(&bits, &f, sizeof bits);
        return bits;
    }
    case DT_F64: {
        uint64_t bits;
        memcpy(&bits, &x.u.f, sizeof bits);
        return bits;
    }
    case DT_NONE:
    case DT_BOOL:
    case DT_I8:
    case DT_I16:
    case DT_I32:
    case DT_I64:
    case DT_U8:
    case DT_U16:
    case DT_U32:
    case DT_U64:
    case DT_I4:
    case DT_U4:
    case DT_INDEX:
    case DT_COUNT_:
        break;
    }
    uint32_t bits = dtype_bits(x.dtype);
    return bits >= 64 ? (uint64_t)x.u.i : (uint64_t)x.u.i & ((UINT64_C(1) << bits) - 1);
}

Scalar scalar_from_bits(DType type, uint64_t bits) {
    Scalar out = {.dtype = type};
    switch (type) {
    case DT_F16:
        out.u.f = f32_from_f16((uint16_t)bits);
        return out;
    case DT_BF16:
        out.u.f = f32_from_bf16((uint16_t)bits);
        return out;
    case DT_E4M3:
        out.u.f = f32_from_e4m3((uint8_t)bits);
        return out;
    case DT_E5M2:
        out.u.f = f32_from_e5m2((uint8_t)bits);
        return out;
    case DT_F32: {
        uint32_t low = (uint32_t)bits;
        float f;
        memcpy(&f, &low, sizeof f);
        out.u.f = f;
        return out;
    }
    case DT_F64:
        memcpy(&out.u.f, &bits, sizeof bits);
        return out;
    case DT_NONE:
    case DT_BOOL:
    case DT_I8:
    case DT_I16:
    case DT_I32:
    case DT_I64:
    case DT_U8:
    case DT_U16:
    case DT_U32:
    case DT_U64:
    case DT_I4:
    case DT_U4:
    case DT_INDEX:
    case DT_COUNT_:
        break;
    }
    out.u.i = numeric_wrap(type, (int64_t)bits);
    return out;
}

bool scalar_is_nan(Scalar x) {
    return dtype_is_float(x.dtype) && isnan(x.u.f);
}

double scalar_to_f64(Scalar x) {
    if (dtype_is_float(x.dtype))
        return x.u.f;
    return x.dtype == DT_U64 ? (double)(uint64_t)x.u.i : (double)x.u.i;
}

Scalar scalar_load(DType type, const void *base, int64_t index) {
    const uint8_t *bytes = base;
    switch (dtype_bits(type)) {
    case 4: {
        uint8_t pair = bytes[index >> 1];
        return scalar_from_bits(type, index & 1 ? pair >> 4 : pair & 15);
    }
    case 8:
        return scalar_from_bits(type, bytes[index]);
    case 16: {
        uint16_t x;
        memcpy(&x, bytes + 2 * index, sizeof x);
        return scalar_from_bits(type, x);
    }
    case 32: {
        uint32_t x;
        memcpy(&x, bytes + 4 * index, sizeof x);
        return scalar_from_bits(type, x);
    }
    case 64: {
        uint64_t x;
        memcpy(&x, bytes + 8 * index, sizeof x);
        return scalar_from_bits(type, x);
    }
    }
    return (Scalar){.dtype = type};
}

void scalar_store(void *base, int64_t index, Scalar x) {
    uint8_t *bytes = base;
    uint64_t bits = scalar_bits(x);
    switch (dtype_bits(x.dtype)) {
    case 4: {
        int shift = index & 1 ? 4 : 0;
        uint8_t *pair = &bytes[index >> 1];
        *pair = (uint8_t)((*pair & ~(15 << shift)) | (int)bits << shift);
        return;
    }
    case 8:
        bytes[index] = (uint8_t)bits;
        return;
    case 16: {
        uint16_t y = (uint16_t)bits;
        memcpy(bytes + 2 * index, &y, sizeof y);
        return;
    }
    case 32: {
        uint32_t y = (uint32_t)bits;
        memcpy(bytes + 4 * index, &y, sizeof y);
        return;
    }
    case 64:
        memcpy(bytes + 8 * index, &bits, sizeof bits);
        return;
    }
}
