// Counter-based random numbers; see random.h.
#include "ir/random.h"

#include <math.h>

uint32_t random_word(uint64_t seed, uint64_t index) {
    uint64_t counter = index / 4;
    uint32_t c[4] = {(uint32_t)counter, (uint32_t)(counter >> 32), 0, 0};
    uint32_t k[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)0xD2511F53u * c[0];
        uint64_t p1 = (uint64_t)0xCD9E8D57u * c[2];
        uint32_t n0 = (uint32_t)(p1 >> 32) ^ c[1] ^ k[0];
        uint32_t n2 = (uint32_t)(p0 >> 32) ^ c[3] ^ k[1];
        c[0] = n0;
        c[1] = (uint32_t)p1;
        c[2] = n2;
        c[3] = (uint32_t)p0;
        k[0] += 0x9E3779B9u;
        k[1] += 0xBB67AE85u;
    }
    return c[index % 4];
}

double random_unit(uint64_t seed, uint64_t index) {
    uint64_t hi = random_word(seed, 2 * index), lo = random_word(seed, 2 * index + 1);
    return (double)((hi << 32 | lo) >> 11) * 0x1p-53;
}

// Box and Muller; one of the pair.
double random_normal(uint64_t seed, uint64_t index) {
    double u = 1 - random_unit(seed, 2 * index), v = random_unit(seed, 2 * index + 1);
    return sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
}

uint64_t random_below(uint64_t seed, uint64_t index, uint64_t n) {
    if (n == 0)
        return 0;
    uint64_t hi = random_word(seed, 2 * index), lo = random_word(seed, 2 * index + 1);
    return (hi << 32 | lo) % n;
}

static Scalar random_default(DType dtype, uint64_t seed, uint64_t index) {
    if (dtype_is_float(dtype))
        return scalar_float(dtype, 2 * random_unit(seed, index) - 1);
    if (dtype == DT_BOOL)
        return scalar_int(dtype, random_word(seed, index) & 1);
    int64_t hi = dtype == DT_I4 ? 7 : 8, lo = dtype_is_signed(dtype) ? -8 : 0;
    return scalar_int(dtype, lo + (int64_t)random_below(seed, index, (uint64_t)(hi - lo + 1)));
}

Scalar random_scalar(DType dtype, RandomSpec spec, uint64_t seed, uint64_t index) {
    switch (spec.kind) {
    case RANDOM_DEFAULT:
        break;
    case RANDOM_UNIFORM:
        if (dtype_is_float(dtype))
            return scalar_float(dtype, spec.lo + (spec.hi - spec.lo) * random_unit(seed, index));
        if (spec.hi < spec.lo)
            return scalar_float(dtype, spec.lo);
        return scalar_float(
            dtype, spec.lo + (double)random_below(seed, index, (uint64_t)(spec.hi - spec.lo) + 1));
    case RANDOM_NORMAL:
        return scalar_float(dtype, spec.lo + spec.hi * random_normal(seed, index));
    case RANDOM_ZERO:
        return scalar_int(dtype, 0);
    case RANDOM_IOTA:
        return scalar_float(dtype, spec.lo + (double)index);
    }
    return random_default(dtype, seed, index);
}

void random_fill(void *data, DType dtype, int64_t count, RandomSpec spec, uint64_t seed) {
    for (int64_t i = 0; i < count; i++)
        scalar_store(data, i, random_scalar(dtype, spec, seed, (uint64_t)i));
}
