// sort, topk and histogram of the evaluator against counts: the place of an element is the number
// of elements that stand before it.
#include "eval_support.h"

// Whether element i stands before element k, by value and then by index; NaN above all numbers.
static bool stands_before(const Data *x, int i, int k, bool largest) {
    double a = data_at(x, i), b = data_at(x, k);
    bool greater = (isnan(a) && !isnan(b)) || a > b, less = (isnan(b) && !isnan(a)) || a < b;
    return (largest ? greater : less) || (!greater && !less && i < k);
}

// dtype, op, results' axis: runs `op` on x, places[r] is the index that it gives place r.
static void run_ordered(const Data *x, int places, bool largest, Data *value, Data *index) {
    const char *type = dtype_name(x->t.dtype);
    char text[1024];
    snprintf(text, sizeof text,
             "tir tensor sm_80\nkernel k(dim N, in @x: %s[%%N], out @v: %s[%d], out @i: "
             "index[%d]) {\n  axis j in 0..%d\n  %%x = load @x[N] : %s[N]\n",
             type, type, places, places, places, type);
    size_t len = strlen(text);
    if (largest)
        snprintf(text + len, sizeof text - len,
                 "  %%v, %%i = topk[N, j] %%x : %s[j], index[j]; store @v[j], %%v; store @i[j], "
                 "%%i }\n",
                 type);
    else
        snprintf(text + len, sizeof text - len,
                 "  %%v, %%i = sort[N] %%x : %s[N], index[N]; store @v[N], %%v; store @i[N], %%i "
                 "}\n",
                 type);
    assert_runs(text, ARGS(arg_of(x), arg_of(value), arg_of(index)));
}

static void check(const Data *x, int places, bool largest) {
    Data value = data_new(x->t.dtype, 1, places), index = data_new(DT_INDEX, 1, places);
    run_ordered(x, places, largest, &value, &index);
    for (int i = 0; i < (int)x->count; i++) {
        int place = 0;
        for (int k = 0; k < (int)x->count; k++)
            place += stands_before(x, k, i, largest);
        if (place >= places)
            continue;
        cr_expect_eq(data_int(&index, place), i, "%s, place %d: %lld, not %d",
                     dtype_name(x->t.dtype), place, (long long)data_int(&index, place), i);
        Scalar got = scalar_load(x->t.dtype, value.t.data, place);
        Scalar want = scalar_load(x->t.dtype, x->t.data, i);
        cr_expect(scalar_bits(got) == scalar_bits(want) || isnan(data_at(x, i)),
                  "%s, place %d: another value", dtype_name(x->t.dtype), place);
        cr_expect_eq(isnan(data_at(&value, place)), isnan(data_at(x, i)));
    }
    for (int r = (int)x->count; r < places; r++)
        cr_expect(data_int(&index, r) == -1 && data_at(&value, r) == 0, "place %d", r);
    data_free(&value), data_free(&index);
}

static void check_both(const Data *x) {
    check(x, (int)x->count, false);
    static const int places[] = {1, 3, 8, 30};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        check(x, places[i], true);
}

Test(eval_sort, special_floats) {
    static const double x[] = {3, NAN, -0.0, INFINITY, 0.0, -1, -INFINITY, 3, -0.0, NAN, INFINITY};
    static const DType types[] = {DT_F16, DT_BF16, DT_F32, DT_F64, DT_E5M2, DT_E4M3};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        Data d = data_floats(types[i], sizeof x / sizeof *x, x);
        check_both(&d);
        data_free(&d);
    }
    Data f = data_floats(DT_E5M2, 3, (double[]){1, 1, 1}); // conversions saturate: by its bits
    ((uint8_t *)f.t.data)[1] = 0xfc;
    check_both(&f);
    data_free(&f);
}

Test(eval_sort, integers) {
    static const int64_t x[] = {5, -1, 0, INT64_MIN, 7, INT64_MAX, -1, 5, 1, 0};
    static const DType types[] = {DT_I8,  DT_I16, DT_I32, DT_I64, DT_U8,
                                  DT_U16, DT_U32, DT_U64, DT_BOOL};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        Data d = data_new(types[i], 1, 10);
        for (int j = 0; j < 10; j++)
            scalar_store(d.t.data, j, scalar_int(types[i], types[i] == DT_BOOL ? x[j] > 0 : x[j]));
        if (types[i] != DT_U64 && types[i] != DT_I64) // the reference compares in f64
            check_both(&d);
        data_free(&d);
    }
}

Test(eval_sort, wide_integers) {
    Data x = data_ints(DT_U64, 4, (int64_t[]){-1, 1, INT64_MAX, -2});
    Data v = data_new(DT_U64, 1, 4), i = data_new(DT_INDEX, 1, 4);
    run_ordered(&x, 4, false, &v, &i);
    for (int r = 0; r < 4; r++)
        cr_expect_eq(data_int(&i, r), ((int[]){1, 2, 3, 0}[r]));
    run_ordered(&x, 4, true, &v, &i);
    for (int r = 0; r < 4; r++)
        cr_expect_eq(data_int(&i, r), ((int[]){0, 3, 2, 1}[r]));
    x.t.dtype = v.t.dtype = DT_I64;
    run_ordered(&x, 4, false, &v, &i);
    for (int r = 0; r < 4; r++)
        cr_expect_eq(data_int(&i, r), ((int[]){3, 0, 1, 2}[r]));
    data_free(&x), data_free(&v), data_free(&i);
}

Test(eval_sort, sizes) {
    static const int sizes[] = {0, 1, 2, 7, 64, 100};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        Data x = data_new(DT_I8, 1, sizes[i]);
        for (int j = 0; j < sizes[i]; j++)
            scalar_store(x.t.data, j, scalar_int(DT_I8, j * 37 % 11)); // ties
        check_both(&x);
        data_free(&x);
    }
}

// What lies behind the window's end is neither read nor counted; indices are global.
Test(eval_sort, padding) {
    static const char text[] =
        "tir scheduled sm_80\nkernel k(dim N, in @x: f32[%N], out @v: f32[8], out @i: index[8]) {\n"
        "  axis n of N by 8; axis j in 0..8 by 8; parallel %p in 0..1 {\n  with n in 2..5 {\n"
        "    %x = load @x[n] {check = [0]} : f32[n]\n"
        "    %v, %i = topk[n, j] %x : f32[j], index[j]\n"
        "    store @v[j], %v {det = [j]}; store @i[j], %i {det = [j]} } } }\n";
    Data x = data_new(DT_F32, 1, 100), v = data_new(DT_F32, 1, 8), i = data_new(DT_INDEX, 1, 8);
    for (int j = 0; j < 100; j++)
        scalar_store(x.t.data, j, scalar_float(DT_F32, j == 3 ? -5 : j));
    assert_runs(text, ARGS(arg_of(&x), arg_of(&v), arg_of(&i)));
    for (int j = 0; j < 8; j++) {
        cr_expect_eq(data_int(&i, j), ((int[]){4, 2, 3, -1, -1, -1, -1, -1}[j]));
        cr_expect_eq(data_at(&v, j), ((double[]){4, 2, -5, 0, 0, 0, 0, 0}[j]));
    }
    data_free(&x), data_free(&v), data_free(&i);
}

static void check_histogram(DType dtype, int n, const int64_t *x, int lo, int bins) {
    char text[512];
    snprintf(text, sizeof text,
             "tir tensor sm_80\nkernel k(dim N, in @x: %s[%%N], out @h: index[%d]) {\n"
             "  axis b in %d..%d\n  %%x = load @x[N] : %s[N]; %%h = histogram[N, b] %%x : "
             "index[b]\n  %%at = sub b, %d : index[b]; store @h[%%at], %%h }\n",
             dtype_name(dtype), bins, lo, lo + bins, dtype_name(dtype), lo);
    Data d = data_ints(dtype, n, x), h = data_new(DT_INDEX, 1, bins);
    assert_runs(text, ARGS(arg_of(&d), arg_of(&h)));
    for (int b = 0; b < bins; b++) {
        int count = 0;
        for (int i = 0; i < n; i++)
            count += data_int(&d, i) == lo + b && !(dtype == DT_U64 && data_int(&d, i) < 0);
        cr_expect_eq(data_int(&h, b), count, "%s, bin %d", dtype_name(dtype), lo + b);
    }
    data_free(&d), data_free(&h);
}

Test(eval_sort, histogram) {
    static const int64_t x[] = {0, 3, 3, 255, 4, -1, 1000, 3, 5, -2};
    check_histogram(DT_U8, 10, x, 0, 6);
    check_histogram(DT_I32, 10, x, -2, 4);
    check_histogram(DT_U64, 10, x, -2, 6); // 2^64 - 1 is not -1
    check_histogram(DT_I64, 0, x, 0, 3);
    check_histogram(DT_BOOL, 4, (int64_t[]){1, 0, 1, 1}, 0, 2);
}
