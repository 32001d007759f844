// tools/compare.c: made-up inputs are repeatable; differences are found where they are.
#include <criterion/criterion.h>

#include "tools/compare.h"

#include <math.h>
#include <string.h>

static HostTensor make(DType dtype, int64_t m, int64_t n) {
    HostTensor t;
    ToolError error;
    cr_assert(tensor_alloc(&t, dtype, 2, (int64_t[]){m, n}, &error), "%s", error.text);
    return t;
}

Test(tools_compare, random_is_repeatable_and_in_range) {
    static const DType dtypes[] = {DT_F32, DT_BF16, DT_E4M3, DT_I4, DT_U4, DT_BOOL, DT_I64};
    for (size_t d = 0; d < sizeof dtypes / sizeof dtypes[0]; d++) {
        HostTensor a = make(dtypes[d], 20, 30), b = make(dtypes[d], 20, 30);
        tensor_fill_random(&a, 7, "x");
        tensor_fill_random(&b, 7, "x");
        cr_assert_arr_eq(a.data, b.data, a.bytes);
        tensor_fill_random(&b, 7, "y");
        cr_assert_neq(memcmp(a.data, b.data, a.bytes), 0, "the name matters");
        tensor_fill_random(&b, 8, "x");
        cr_assert_neq(memcmp(a.data, b.data, a.bytes), 0, "the seed matters");
        double low = 0, high = 0;
        for (int64_t i = 0; i < tensor_elements(&a); i++) {
            low = fmin(low, scalar_to_f64(tensor_get(&a, i)));
            high = fmax(high, scalar_to_f64(tensor_get(&a, i)));
        }
        if (dtype_is_float(dtypes[d]))
            cr_expect(low >= -1 && low < -0.9 && high <= 1 && high > 0.9);
        else
            cr_expect(low == 0 && high == (dtypes[d] == DT_BOOL ? 1 : 7), "%s: %g .. %g",
                      dtype_name(dtypes[d]), low, high);
        tensor_free(&a);
        tensor_free(&b);
    }
}

Test(tools_compare, finds_the_worst_element) {
    HostTensor want = make(DT_F32, 3, 4), got = make(DT_F32, 3, 4);
    tensor_fill_random(&want, 1, "x");
    memcpy(got.data, want.data, want.bytes);
    CompareResult r = tensor_compare(&got, &want);
    cr_assert(r.differing == 0 && r.worst == -1 && compare_error(&r) == 0);

    ((float *)got.data)[2] += 0.125f;
    ((float *)got.data)[7] -= 0.5f;
    r = tensor_compare(&got, &want);
    cr_assert(r.differing == 2 && r.worst == 7 && fabs(r.max_abs - 0.5) < 1e-6);
    cr_assert(fabs(compare_error(&r) - r.max_abs / r.max_want) < 1e-12);
    char text[32];
    cr_assert_str_eq(tensor_index_text(&want, r.worst, text, sizeof text), "[1, 3]");

    ((float *)got.data)[9] = NAN;
    r = tensor_compare(&got, &want);
    cr_assert(r.mismatched == 1 && r.worst == 9 && isinf(compare_error(&r)));
    ((float *)want.data)[9] = NAN;
    r = tensor_compare(&got, &want);
    cr_assert(r.mismatched == 0 && r.worst == 7, "NaN where NaN is wanted is right");
    cr_assert_eq(r.both_nan, 1);
    ((float *)want.data)[9] = INFINITY;
    r = tensor_compare(&got, &want);
    cr_assert_eq(r.mismatched, 1);
    tensor_free(&got);
    tensor_free(&want);
}
