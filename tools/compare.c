// Made-up inputs, and results compared with a reference.
// Invariant: the same seed and name give the same elements on every machine.
#include "tools/compare.h"

#include <math.h>
#include <stdio.h>

// splitmix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
static uint64_t random_next(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

void tensor_fill_random(HostTensor *tensor, uint64_t seed, const char *name) {
    uint64_t state = seed;
    for (const char *at = name; *at; at++) {
        state ^= (unsigned char)*at;
        state = random_next(&state);
    }
    bool is_float = dtype_is_float(tensor->dtype), is_bool = tensor->dtype == DT_BOOL;
    int64_t n = tensor_elements(tensor);
    for (int64_t i = 0; i < n; i++) {
        uint64_t bits = random_next(&state);
        if (is_float) // 24 bits: exact in f32, so that every narrower type rounds the same value
            tensor_put(tensor, i, scalar_float(DT_F64, (double)(bits >> 40) * 0x1p-23 - 1));
        else
            tensor_put(tensor, i, scalar_int(DT_I64, (int64_t)(bits >> 61) & (is_bool ? 1 : 7)));
    }
}

static bool same_value(Scalar a, Scalar b) {
    double x = scalar_to_f64(a), y = scalar_to_f64(b);
    if (isnan(x) || isnan(y))
        return isnan(x) && isnan(y);
    // 64-bit integers are more exact than their doubles.
    if (!dtype_is_float(a.dtype) && a.dtype == b.dtype)
        return a.u.i == b.u.i;
    return x == y;
}

CompareResult tensor_compare(const HostTensor *got, const HostTensor *want) {
    CompareResult out = {.elements = tensor_elements(want), .worst = -1};
    double squares = 0;
    int64_t finite = 0;
    for (int64_t i = 0; i < out.elements; i++) {
        Scalar g = tensor_get(got, i), w = tensor_get(want, i);
        double x = scalar_to_f64(g), y = scalar_to_f64(w);
        bool is_finite = isfinite(x) && isfinite(y);
        if (isfinite(y))
            out.max_want = fmax(out.max_want, fabs(y));
        if (is_finite) {
            squares += (x - y) * (x - y);
            finite++;
        }
        out.both_nan += isnan(x) && isnan(y);
        if (same_value(g, w))
            continue;
        out.differing++;
        if (!is_finite) {
            if (out.mismatched++ == 0)
                out.worst = i;
        } else if (fabs(x - y) > out.max_abs || out.worst < 0) {
            out.max_abs = fmax(out.max_abs, fabs(x - y));
            if (out.mismatched == 0)
                out.worst = i;
        }
    }
    out.rms = finite ? sqrt(squares / (double)finite) : 0;
    return out;
}

double compare_error(const CompareResult *result) {
    if (result->mismatched)
        return INFINITY;
    if (result->max_abs == 0)
        return 0;
    return result->max_want > 0 ? result->max_abs / result->max_want : INFINITY;
}

const char *tensor_index_text(const HostTensor *tensor, int64_t i, char *out, size_t size) {
    int64_t index[TENSOR_MAX_RANK];
    for (int d = tensor->rank; d-- > 0; i /= tensor->dims[d])
        index[d] = i % tensor->dims[d];
    size_t used = (size_t)snprintf(out, size, "[");
    for (int d = 0; d < tensor->rank && used < size; d++)
        used +=
            (size_t)snprintf(out + used, size - used, d ? ", %lld" : "%lld", (long long)index[d]);
    if (used < size)
        snprintf(out + used, size - used, "]");
    return out;
}
