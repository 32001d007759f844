// Elementwise ops: each against values written out or the C library, with the rules for NaN,
// wrapping and poison.
#include "eval_support.h"

#include <stdint.h>

// z = op x [, y [, w]] over N elements; `res` is the result's dtype.
static const char *elementwise(const char *op, int nin, DType in, DType res) {
    static char text[1024];
    const char *a = dtype_name(in), *r = dtype_name(res);
    snprintf(text, sizeof text,
             "tir tensor sm_80\nkernel k(dim N, in @x: %s[%%N], in @y: %s[%%N], in @w: %s[%%N], "
             "out @z: %s[%%N]) {\n"
             "  %%x = load @x[N] : %s[N]; %%y = load @y[N] : %s[N]; %%w = load @w[N] : %s[N]\n"
             "  %%z = %s %%x%s%s : %s[N]; store @z[N], %%z }\n",
             a, a, a, r, a, a, a, op, nin > 1 ? ", %y" : "", nin > 2 ? ", %w" : "", r);
    return text;
}

static void check_f(const char *op, DType dtype, int n, const double *x, const double *y,
                    const double *w, const double *want) {
    Data dx = data_floats(dtype, n, x), dy = data_floats(dtype, n, y ? y : x),
         dw = data_floats(dtype, n, w ? w : x);
    Data z = data_new(dtype, 1, n);
    assert_runs(elementwise(op,
                            w   ? 3
                            : y ? 2
                                : 1,
                            dtype, dtype),
                ARGS(arg_of(&dx), arg_of(&dy), arg_of(&dw), arg_of(&z)));
    for (int i = 0; i < n; i++) {
        double got = data_at(&z, i);
        cr_assert((isnan(got) && isnan(want[i])) ||
                      (got == want[i] && signbit(got) == signbit(want[i])),
                  "%s %s %d: %.17g, not %.17g", op, dtype_name(dtype), i, got, want[i]);
    }
    data_free(&dx), data_free(&dy), data_free(&dw), data_free(&z);
}

static void check_i(const char *op, DType dtype, DType res, int n, const int64_t *x,
                    const int64_t *y, const int64_t *want) {
    Data dx = data_ints(dtype, n, x), dy = data_ints(dtype, n, y ? y : x), z = data_new(res, 1, n);
    assert_runs(elementwise(op, y ? 2 : 1, dtype, res),
                ARGS(arg_of(&dx), arg_of(&dy), arg_of(&dx), arg_of(&z)));
    for (int i = 0; i < n; i++)
        cr_assert(data_int(&z, i) == want[i], "%s %s %d: %lld, not %lld", op, dtype_name(dtype), i,
                  (long long)data_int(&z, i), (long long)want[i]);
    data_free(&dx), data_free(&dy), data_free(&z);
}

#define F(...)                                                                                     \
    sizeof((double[]){__VA_ARGS__}) / sizeof(double), (const double[]) {                           \
        __VA_ARGS__                                                                                \
    }
#define FS(...)                                                                                    \
    (const double[]) {                                                                             \
        __VA_ARGS__                                                                                \
    }
#define I(...)                                                                                     \
    sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), (const int64_t[]) {                        \
        __VA_ARGS__                                                                                \
    }
#define IS(...)                                                                                    \
    (const int64_t[]) {                                                                            \
        __VA_ARGS__                                                                                \
    }

Test(eval_elementwise, float_arithmetic) {
    check_f("add", DT_F32, F(1, 16777216, INFINITY, -0.0), FS(2, 1, -INFINITY, -0.0), NULL,
            FS(3, 16777216, NAN, -0.0));
    check_f("add", DT_F64, F(16777216), FS(1), NULL, FS(16777217));
    check_f("sub", DT_F32, F(1, 0), FS(3, 0), NULL, FS(-2, 0));
    check_f("mul", DT_F32, F(3, 0, 1 + 0x1p-23), FS(0.5, INFINITY, 1 + 0x1p-23), NULL,
            FS(1.5, NAN, 1 + 0x1p-22));
    check_f("div", DT_F32, F(1, 1, 0), FS(3, 0, 0), NULL, FS(1.0f / 3.0f, INFINITY, NAN));
    check_f("rem", DT_F32, F(-7, 7), FS(3, -3), NULL, FS(-1, 1));
    check_f("mod", DT_F32, F(-7, 7, 6), FS(3, -3, 3), NULL, FS(2, -2, 0));
    // The product is not rounded: (1 + e)^2 - (1 + 2e) = e^2.
    check_f("fma", DT_F32, F(1 + 0x1p-23, 2), FS(1 + 0x1p-23, 3), FS(-1 - 0x1p-22, 4),
            FS(0x1p-46, 10));
    check_f("neg", DT_F32, F(1, 0, -INFINITY), NULL, NULL, FS(-1, -0.0, INFINITY));
    check_f("abs", DT_BF16, F(-1.5, -0.0), NULL, NULL, FS(1.5, 0));
}

Test(eval_elementwise, nan_rules) {
    check_f("min", DT_F32, F(1, NAN, 1, 0, 2), FS(NAN, 1, 2, -0.0, -3), NULL,
            FS(NAN, NAN, 1, -0.0, -3));
    check_f("max", DT_F32, F(1, NAN, 1, -0.0, 2), FS(NAN, 1, 2, 0, -3), NULL,
            FS(NAN, NAN, 2, 0, 2));
    check_f("fmin", DT_F32, F(1, NAN, NAN), FS(NAN, 1, NAN), NULL, FS(1, 1, NAN));
    check_f("fmax", DT_F16, F(1, NAN, 5), FS(NAN, 1, 6), NULL, FS(1, 1, 6));
}

Test(eval_elementwise, functions) {
    check_f("sqrt", DT_F32, F(2, -1, 0), NULL, NULL, FS(sqrtf(2), NAN, 0));
    check_f("rsqrt", DT_F32, F(4, 0), NULL, NULL, FS(0.5, INFINITY));
    check_f("rcp", DT_F32, F(3), NULL, NULL, FS(1.0f / 3.0f));
    check_f("exp2", DT_F32, F(10, -INFINITY, 200), NULL, NULL, FS(1024, 0, INFINITY));
    check_f("log2", DT_F32, F(8, 0, -1), NULL, NULL, FS(3, -INFINITY, NAN));
    check_f("exp", DT_F32, F(1, 0), NULL, NULL, FS((float)exp(1), 1));
    check_f("log", DT_F64, F(10), NULL, NULL, FS(log(10)));
    check_f("sin", DT_F32, F(1), NULL, NULL, FS((float)sin(1)));
    check_f("cos", DT_F32, F(1), NULL, NULL, FS((float)cos(1)));
    check_f("tanh", DT_F32, F(0.5, 100), NULL, NULL, FS((float)tanh(0.5), 1));
    check_f("erf", DT_F32, F(0.5, -INFINITY), NULL, NULL, FS((float)erf(0.5), -1));
    check_f("pow", DT_F32, F(2, -8, 0), FS(0.5, 3, 0), NULL, FS((float)sqrt(2), -512, 1));
    check_f("floor", DT_F32, F(-1.5, 2.5), NULL, NULL, FS(-2, 2));
    check_f("ceil", DT_F32, F(-1.5, 2.5), NULL, NULL, FS(-1, 3));
    check_f("trunc", DT_F32, F(-1.5, 2.5), NULL, NULL, FS(-1, 2));
    check_f("round", DT_F32, F(-1.5, 2.5, 0.49), NULL, NULL, FS(-2, 2, 0));
}

Test(eval_elementwise, integers) {
    check_i("add", DT_I32, DT_I32, I(INT32_MAX, 1), IS(1, -2), IS(INT32_MIN, -1));
    check_i("add", DT_I64, DT_I64, I(INT64_MAX), IS(1), IS(INT64_MIN));
    check_i("sub", DT_U32, DT_U32, I(0), IS(1), IS(UINT32_MAX));
    check_i("mul", DT_I8, DT_I8, I(16, 100), IS(16, 2), IS(0, -56));
    check_i("div", DT_I32, DT_I32, I(-7, 7, 5, INT32_MIN), IS(2, -2, 0, -1),
            IS(-3, -3, 0, INT32_MIN));
    check_i("div", DT_I64, DT_I64, I(INT64_MIN), IS(-1), IS(INT64_MIN));
    check_i("div", DT_U64, DT_U64, I(-1), IS(2), IS(INT64_MAX));
    check_i("rem", DT_I32, DT_I32, I(-7, 7, 5, INT32_MIN), IS(2, -2, 0, -1), IS(-1, 1, 0, 0));
    check_i("cdiv", DT_I32, DT_I32, I(7, -7, 6, 7, 3), IS(2, 2, 2, -2, 0), IS(4, -3, 3, -3, 0));
    check_i("floordiv", DT_I32, DT_I32, I(7, -7, 6, 7, 3), IS(2, 2, 2, -2, 0), IS(3, -4, 3, -4, 0));
    check_i("mod", DT_I32, DT_I32, I(7, -7, 6, 7), IS(2, 2, 2, -2), IS(1, 1, 0, -1));
    check_i("neg", DT_I32, DT_I32, I(5, INT32_MIN), NULL, IS(-5, INT32_MIN));
    check_i("abs", DT_I16, DT_I16, I(-5, -32768), NULL, IS(5, -32768));
    check_i("min", DT_U64, DT_U64, I(-1, 3), IS(1, 4), IS(1, 3));
    check_i("max", DT_I64, DT_I64, I(-1, 3), IS(1, 4), IS(1, 4));
    check_i("and", DT_U8, DT_U8, I(0xf0), IS(0x3c), IS(0x30));
    check_i("or", DT_U8, DT_U8, I(0xf0), IS(0x3c), IS(0xfc));
    check_i("xor", DT_I32, DT_I32, I(-1), IS(5), IS(-6));
    check_i("not", DT_U8, DT_U8, I(0xf0), NULL, IS(0x0f));
    check_i("not", DT_BOOL, DT_BOOL, I(0, 1), NULL, IS(1, 0));
    check_i("shl", DT_I32, DT_I32, I(1, 1, 3, 1), IS(4, 32, 31, -1), IS(16, 0, INT32_MIN, 0));
    check_i("shr", DT_I32, DT_I32, I(-8, -8, 8, 8), IS(1, 99, 1, 99), IS(-4, -1, 4, 0));
    check_i("shr", DT_U32, DT_U32, I(-1, -1), IS(28, 32), IS(15, 0));
    check_i("shr", DT_U64, DT_U64, I(-1, -1), IS(60, 64), IS(15, 0));
    check_i("popc", DT_I32, DT_I32, I(-1, 0, 10), NULL, IS(32, 0, 2));
    check_i("clz", DT_U16, DT_U16, I(1, 0, 0x8000), NULL, IS(15, 16, 0));
}

Test(eval_elementwise, compare) {
    check_i("cmp.lt", DT_I32, DT_BOOL, I(-1, 1, 2), IS(1, 1, 1), IS(1, 0, 0));
    check_i("cmp.le", DT_I32, DT_BOOL, I(-1, 1, 2), IS(1, 1, 1), IS(1, 1, 0));
    check_i("cmp.gt", DT_U64, DT_BOOL, I(-1, 1, 0), IS(1, 1, 1), IS(1, 0, 0));
    check_i("cmp.ge", DT_U64, DT_BOOL, I(-1, 1, 0), IS(1, 1, 1), IS(1, 1, 0));
    check_i("cmp.eq", DT_I8, DT_BOOL, I(3, 4), IS(3, 3), IS(1, 0));
    check_i("cmp.ne", DT_I8, DT_BOOL, I(3, 4), IS(3, 3), IS(0, 1));
    static const char *kinds[] = {"eq", "ne", "lt", "le", "gt", "ge"};
    for (int i = 0; i < 6; i++) { // NaN is equal to nothing
        char op[16];
        snprintf(op, sizeof op, "cmp.%s", kinds[i]);
        Data x = data_floats(DT_F32, F(NAN, 1)), y = data_floats(DT_F32, F(NAN, 1)),
             z = data_new(DT_BOOL, 1, 2);
        assert_runs(elementwise(op, 2, DT_F32, DT_BOOL),
                    ARGS(arg_of(&x), arg_of(&y), arg_of(&x), arg_of(&z)));
        cr_assert(data_int(&z, 0) == (i == 1) && data_int(&z, 1) == (i == 0 || i == 3 || i == 5));
        data_free(&x), data_free(&y), data_free(&z);
    }
}

Test(eval_elementwise, casts) {
    check_i("cast", DT_I64, DT_I8, I(300, -129, 5), NULL, IS(44, 127, 5));
    check_i("cast", DT_I32, DT_U64, I(-1), NULL, IS(-1));
    check_i("bitcast", DT_I32, DT_U32, I(-1), NULL, IS(UINT32_MAX));
    Data x = data_floats(DT_F32, F(1e9, NAN, -3.7, 1 + 0x1p-9));
    static const struct {
        DType to;
        double want[4];
    } cast[] = {{DT_I8, {127, 0, -3, 1}},
                {DT_U8, {255, 0, 0, 1}},
                {DT_E4M3, {448, NAN, -3.75, 1}},
                {DT_BF16, {998244352, NAN, -3.703125, 1}}};
    for (int i = 0; i < 4; i++) {
        Data z = data_new(cast[i].to, 1, 4);
        assert_runs(elementwise("cast", 1, DT_F32, cast[i].to),
                    ARGS(arg_of(&x), arg_of(&x), arg_of(&x), arg_of(&z)));
        for (int j = 0; j < 4; j++) {
            double got = data_at(&z, j), want = cast[i].want[j];
            cr_assert(got == want || (isnan(got) && isnan(want)), "%s %d: %g",
                      dtype_name(cast[i].to), j, got);
        }
        data_free(&z);
    }
    Data z = data_new(DT_I32, 1, 4);
    assert_runs(elementwise("bitcast", 1, DT_F32, DT_I32),
                ARGS(arg_of(&x), arg_of(&x), arg_of(&x), arg_of(&z)));
    cr_assert(data_int(&z, 3) == 0x3f804000);
    data_free(&x), data_free(&z);
}

// Float to integer truncates and saturates, NaN is 0; to 8-bit floats it saturates too.
Test(eval_elementwise, casts_at_the_bounds) {
    Data x = data_floats(DT_F64, F(INFINITY, -INFINITY, NAN, 0x1p63, -0.99));
    static const struct {
        DType to;
        double want[5];
    } cast[] = {{DT_I32, {0x1p31 - 1, -0x1p31, 0, 0x1p31 - 1, 0}},
                {DT_U32, {0x1p32 - 1, 0, 0, 0x1p32 - 1, 0}},
                {DT_I64, {0x1p63, -0x1p63, 0, 0x1p63, 0}}, // 2^63 - 1, as a double
                {DT_U64, {0x1p64, 0, 0, 0x1p63, 0}},
                {DT_I4, {7, -8, 0, 7, 0}},
                {DT_U4, {15, 0, 0, 15, 0}},
                {DT_F16, {INFINITY, -INFINITY, NAN, INFINITY, -0.990234375}},
                {DT_E4M3, {448, -448, NAN, 448, -1}},
                {DT_E5M2, {57344, -57344, NAN, 57344, -1}}};
    for (size_t i = 0; i < sizeof cast / sizeof *cast; i++) {
        Data z = data_new(cast[i].to, 1, 5);
        assert_runs(elementwise("cast", 1, DT_F64, cast[i].to),
                    ARGS(arg_of(&x), arg_of(&x), arg_of(&x), arg_of(&z)));
        for (int j = 0; j < 5; j++) {
            double got = data_at(&z, j), want = cast[i].want[j];
            cr_expect(got == want || (isnan(got) && isnan(want)), "%s %d: %.17g",
                      dtype_name(cast[i].to), j, got);
        }
        data_free(&z);
    }
    data_free(&x);
}

// Broadcast of missing axes in both directions, scalars and constants; and an empty dim.
Test(eval_elementwise, broadcast) {
    static const char text[] =
        "tir tensor sm_80\nkernel k(dim M, dim N, in @x: f32[%M], in @y: f32[%N], %c: f32, out @z: "
        "f32[%M, %N]) {\n"
        "  %x = load @x[M] : f32[M]; %y = load @y[N] : f32[N]; %p = mul %x, 10.0:f32 : f32[M]\n"
        "  %s = add %y, %p : f32[M, N]; %t = add %s, %c : f32[M, N]; store @z[M, N], %t }\n";
    Data x = data_floats(DT_F32, F(1, 2)), y = data_floats(DT_F32, F(3, 4, 5)),
         z = data_new(DT_F32, 2, 2, 3);
    assert_runs(text, ARGS(arg_of(&x), arg_of(&y), arg_float(100), arg_of(&z)));
    for (int m = 0; m < 2; m++) {
        for (int n = 0; n < 3; n++)
            cr_assert(data_at(&z, m * 3 + n) == 100 + 10 * (m + 1) + n + 3);
    }
    Data none = data_new(DT_F32, 1, 0), nothing = data_new(DT_F32, 2, 2, 0);
    assert_runs(text, ARGS(arg_of(&x), arg_of(&none), arg_float(100), arg_of(&nothing)));
    data_free(&x), data_free(&y), data_free(&z), data_free(&none), data_free(&nothing);
}

Test(eval_elementwise, select_and_rand) {
    static const char text[] = "tir tensor sm_80\nkernel k(dim N, in @x: f32[%N], %seed: i64, out "
                               "@z: f32[%N], out @r: u32[%N]) {\n"
                               "  %x = load @x[N] : f32[N]; %c = cmp.lt N, 2 : bool[N]; %s = "
                               "select %c, %x, -1.0:f32 : f32[N]\n"
                               "  store @z[N], %s; %i = cast N : i64[N]; %r = rand %seed, %i : "
                               "u32[N]; store @r[N], %r }\n";
    Data x = data_floats(DT_F32, F(5, NAN, 7, 8, 9)), z = data_new(DT_F32, 1, 5),
         r = data_new(DT_U32, 1, 5);
    assert_runs(text, ARGS(arg_of(&x), arg_int(0), arg_of(&z), arg_of(&r)));
    cr_assert(data_at(&z, 0) == 5 && isnan(data_at(&z, 1)) && data_at(&z, 2) == -1);
    // Known answer of Philox 4x32-10 for counter 0 and key 0 (Random123's kat_vectors).
    static const uint32_t known[] = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
    for (int i = 0; i < 4; i++)
        cr_assert((uint32_t)data_int(&r, i) == known[i], "%x", (unsigned)data_int(&r, i));
    cr_assert((uint32_t)data_int(&r, 4) == random_word(0, 4) && data_int(&r, 4) != data_int(&r, 0));
    data_free(&x), data_free(&z), data_free(&r);
}
