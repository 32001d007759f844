// Ops along axes: take, reduce, argreduce, scan, dot, with empty and padded axes.
#include "eval_support.h"

#define F(...)                                                                                     \
    sizeof((double[]){__VA_ARGS__}) / sizeof(double), (const double[]) {                           \
        __VA_ARGS__                                                                                \
    }
#define I(...)                                                                                     \
    sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), (const int64_t[]) {                        \
        __VA_ARGS__                                                                                \
    }

static const char *reduction(const char *op, DType in, DType out) {
    static char text[512];
    snprintf(text, sizeof text,
             "tir tensor sm_80\nkernel k(dim N, in @x: %s[%%N], out @z: %s[1]) {\n"
             "  %%x = load @x[N] : %s[N]; %%r = %s[N] %%x : %s; store @z[0], %%r }\n",
             dtype_name(in), dtype_name(out), dtype_name(in), op, dtype_name(out));
    return text;
}

static void check_f(const char *op, DType dtype, int n, const double *x, double want) {
    Data d = data_floats(dtype, n, x), z = data_new(dtype, 1, 1);
    assert_runs(reduction(op, dtype, dtype), ARGS(arg_of(&d), arg_of(&z)));
    double got = data_at(&z, 0);
    cr_assert(got == want || (isnan(got) && isnan(want)), "%s: %.9g, not %.9g", op, got, want);
    data_free(&d), data_free(&z);
}

static void check_i(const char *op, DType dtype, DType out, int n, const int64_t *x, int64_t want) {
    Data d = data_ints(dtype, n, x), z = data_new(out, 1, 1);
    assert_runs(reduction(op, dtype, out), ARGS(arg_of(&d), arg_of(&z)));
    cr_assert(data_int(&z, 0) == want, "%s: %lld, not %lld", op, (long long)data_int(&z, 0),
              (long long)want);
    data_free(&d), data_free(&z);
}

Test(eval_along, reduce) {
    check_f("reduce.sum", DT_F32, F(1, 0x1p-30, 0x1p-30, -1), 0x1p-29); // accumulated in double
    check_f("reduce.prod", DT_F32, F(2, 3, 0.5), 3);
    check_f("reduce.max", DT_F32, F(1, 7, -3), 7);
    check_f("reduce.max", DT_BF16, F(1, NAN, -3), NAN);
    check_f("reduce.min", DT_F32, F(1, 7, -3), -3);
    check_i("reduce.sum", DT_I32, DT_I32, I(INT32_MAX, 1), INT32_MIN);
    check_i("reduce.max", DT_U64, DT_U64, I(-1, 5), -1);
    check_i("reduce.any", DT_BOOL, DT_BOOL, I(0, 0, 1), 1);
    check_i("reduce.any", DT_BOOL, DT_BOOL, I(0, 0), 0);
    check_i("reduce.all", DT_BOOL, DT_BOOL, I(1, 0, 1), 0);
    check_i("reduce.all", DT_BOOL, DT_BOOL, I(1, 1), 1);
}

Test(eval_along, reduce_nothing) {
    check_f("reduce.sum", DT_F32, 0, NULL, 0);
    check_f("reduce.prod", DT_F32, 0, NULL, 1);
    check_f("reduce.max", DT_F32, 0, NULL, -INFINITY);
    check_f("reduce.min", DT_F16, 0, NULL, INFINITY);
    check_f("reduce.max", DT_E4M3, 0, NULL, -448);
    check_i("reduce.max", DT_I32, DT_I32, 0, NULL, INT32_MIN);
    check_i("reduce.min", DT_I64, DT_I64, 0, NULL, INT64_MAX);
    check_i("reduce.min", DT_U64, DT_U64, 0, NULL, -1);
    check_i("reduce.all", DT_BOOL, DT_BOOL, 0, NULL, 1);
    check_i("argreduce.max", DT_I32, DT_INDEX, 0, NULL, -1);
}

static void check_arg(const char *op, int n, const double *x, int64_t want) {
    Data d = data_floats(DT_F32, n, x), z = data_new(DT_INDEX, 1, 1);
    assert_runs(reduction(op, DT_F32, DT_INDEX), ARGS(arg_of(&d), arg_of(&z)));
    cr_assert(data_int(&z, 0) == want, "%s: %lld", op, (long long)data_int(&z, 0));
    data_free(&d), data_free(&z);
}

Test(eval_along, argreduce) {
    check_arg("argreduce.max", F(1, 5, 5, 2), 1);
    check_arg("argreduce.min", F(3, 1, 1), 1);
    check_arg("argreduce.max", F(1, NAN, 9, NAN), 1);
    check_arg("argreduce.min", F(-INFINITY, 0, NAN), 2);
    check_arg("argreduce.max", F(-INFINITY, -INFINITY), 0);
}

Test(eval_along, argreduce_two_axes) {
    static const char text[] =
        "tir tensor sm_80\nkernel k(dim M, dim N, in @x: f32[%M, %N], out @z: index[2]) {\n"
        "  %x = load @x[M, N] : f32[M, N]; %i, %j = argreduce.max[M, N] %x : index, index\n"
        "  store @z[0], %i; store @z[1], %j }\n";
    Data x = data_new(DT_F32, 2, 3, 5), z = data_new(DT_INDEX, 1, 2);
    scalar_store(x.t.data, 8, scalar_float(DT_F32, 4));
    scalar_store(x.t.data, 10, scalar_float(DT_F32, 4));
    assert_runs(text, ARGS(arg_of(&x), arg_of(&z)));
    cr_assert(data_int(&z, 0) == 1 && data_int(&z, 1) == 3);
    data_free(&x), data_free(&z);
}

Test(eval_along, scan) {
    static const char text[] =
        "tir tensor sm_80\nkernel k(dim M, dim N, in @x: i32[%M, %N], out @a: i32[%M, %N], out @b: "
        "i32[%M, %N], "
        "out @c: i32[%M, %N]) {\n"
        "  %x = load @x[M, N] : i32[M, N]; %a = scan.sum[N] %x : i32[M, N]; store @a[M, N], %a\n"
        "  %b = scan.sum[N, M] %x : i32[M, N]; store @b[M, N], %b; %c = scan.max[M] %x : i32[M, "
        "N]\n"
        "  store @c[M, N], %c }\n";
    Data x = data_new(DT_I32, 2, 2, 3), a = data_new(DT_I32, 2, 2, 3),
         b = data_new(DT_I32, 2, 2, 3);
    Data c = data_new(DT_I32, 2, 2, 3);
    for (int i = 0; i < 6; i++)
        scalar_store(x.t.data, i, scalar_int(DT_I32, (int[]){1, 5, 3, 4, 2, 6}[i]));
    assert_runs(text, ARGS(arg_of(&x), arg_of(&a), arg_of(&b), arg_of(&c)));
    for (int i = 0; i < 6; i++) {
        cr_assert(data_int(&a, i) == ((int[]){1, 6, 9, 4, 6, 12}[i]));
        cr_assert(data_int(&b, i) == ((int[]){1, 10, 15, 5, 12, 21}[i])); // M is the fastest
        cr_assert(data_int(&c, i) == ((int[]){1, 5, 3, 4, 5, 6}[i]));
    }
    data_free(&x), data_free(&a), data_free(&b), data_free(&c);
}

// Pick, shift with fill, rename, xor, a window in two axes.
Test(eval_along, take) {
    static const char text[] =
        "tir tensor sm_80\nkernel k(dim N, dim P, in @x: i32[%N], out @a: i32[1], out @b: i32[%N], "
        "out @c: i32[%N], "
        "out @d: i32[%P, 2]) {\n"
        "  axis j in 0..2; %x = load @x[N] : i32[N]; %a = take %x, N = 2 : i32; store @a[0], %a\n"
        "  %i = sub N, 1 : index[N]; %b = take %x, N = %i else 7:i32 : i32[N]; store @b[N], %b\n"
        "  %n = xor N, 1 : index[N]; %c = take %x, N = %n : i32[N]; store @c[N], %c\n"
        "  %p = mul P, 2 : index[P]; %q = add %p, j : index[P, j]; %d = take %x, N = %q : i32[P, "
        "j]\n"
        "  store @d[P, j], %d }\n";
    Data x = data_ints(DT_I32, I(10, 11, 12, 13, 14)), a = data_new(DT_I32, 1, 1),
         b = data_new(DT_I32, 1, 5);
    Data c = data_new(DT_I32, 1, 5), d = data_new(DT_I32, 2, 4, 2);
    assert_runs(text, ARGS(arg_of(&x), arg_of(&a), arg_of(&b), arg_of(&c), arg_of(&d)));
    cr_assert(data_int(&a, 0) == 12);
    for (int i = 0; i < 5; i++) {
        cr_assert(data_int(&b, i) == ((int[]){7, 10, 11, 12, 13}[i]));
        cr_assert(data_int(&c, i) == ((int[]){11, 10, 13, 12, 0}[i]));
    }
    for (int i = 0; i < 8; i++)
        cr_assert(data_int(&d, i) == (i < 5 ? 10 + i : 0));
    data_free(&x), data_free(&a), data_free(&b), data_free(&c), data_free(&d);
}

Test(eval_along, take_transposes_two_axes_at_once) {
    static const char text[] =
        "tir tensor sm_80\nkernel k(dim N, in @x: i32[%N, %N], out @y: i32[%N, %N]) {\n"
        "  axis i in 0..%N; axis j in 0..%N; %x = load @x[i, j] : i32[i, j]\n"
        "  %t = take %x, i = j, j = i : i32[i, j]; store @y[i, j], %t }\n";
    Data x = data_random(5, DT_I32, 2, 3, 3, 0, 0), y = data_new(DT_I32, 2, 3, 3);
    assert_runs(text, ARGS(arg_of(&x), arg_of(&y)));
    for (int i = 0; i < 9; i++)
        cr_assert(data_int(&y, i) == data_int(&x, i % 3 * 3 + i / 3));
    data_free(&x), data_free(&y);
}

// Batch axis, two contracted axes, an accumulator, and the contraction of what has no last axis in
// common.
Test(eval_along, dot) {
    static const char text[] =
        "tir tensor sm_80\nkernel k(dim B, dim M, dim N, dim K, dim L, in @x: f16[%B, %M, %K, %L], "
        "in @y: "
        "f16[%K, %B, %L, %N], in @c: f32[%N], out @z: f32[%B, %M, %N], out @v: f32[%B, %M]) {\n"
        "  %x = load @x[B, M, K, L] : f16[B, M, K, L]; %y = load @y[K, B, L, N] : f16[B, N, K, L]\n"
        "  %c = load @c[N] : f32[N]; %z = dot[K, L] %x, %y, %c : f32[B, M, N]; store @z[B, M, N], "
        "%z\n"
        "  %w = load @y[K, B, L, 1] : f16[B, K, L]; %v = dot[K, L] %x, %w : f32[B, M]; store @v[B, "
        "M], %v }\n";
    int B = 2, M = 3, N = 5, K = 7, L = 2;
    Data x = data_random(1, DT_F16, 4, B, M, K, L), y = data_random(2, DT_F16, 4, K, B, L, N);
    Data c = data_random(3, DT_F32, 1, N, 0, 0, 0), z = data_new(DT_F32, 3, B, M, N),
         v = data_new(DT_F32, 2, B, M);
    assert_runs(text, ARGS(arg_of(&x), arg_of(&y), arg_of(&c), arg_of(&z), arg_of(&v)));
    for (int b = 0; b < B; b++) {
        for (int m = 0; m < M; m++) {
            for (int n = 0; n < N; n++) {
                double s = 0;
                for (int k = 0; k < K; k++) {
                    for (int l = 0; l < L; l++)
                        s += data_at(&x, ((b * M + m) * K + k) * L + l) *
                             data_at(&y, ((k * B + b) * L + l) * N + n);
                }
                if (n == 1)
                    cr_assert(data_at(&v, b * M + m) == (float)s);
                cr_assert(fabs(data_at(&z, (b * M + m) * N + n) - (s + data_at(&c, n))) < 1e-6);
            }
        }
    }
    data_free(&x), data_free(&y), data_free(&c), data_free(&z), data_free(&v);
}

Test(eval_along, dot_integers_wrap) {
    static const char text[] = "tir tensor sm_80\nkernel k(dim N, in @x: i8[%N], in @y: i8[%N], "
                               "out @z: i32[1], out @w: i32[1]) {\n"
                               "  %x = load @x[N] : i8[N]; %y = load @y[N] : i8[N]; %z = dot[N] "
                               "%x, %y : i32; store @z[0], %z\n"
                               "  %w = dot[N] %x, %y, 2147483647:i32 : i32; store @w[0], %w }\n";
    Data x = data_ints(DT_I8, I(-128, 3)), y = data_ints(DT_I8, I(-128, 2)),
         z = data_new(DT_I32, 1, 1);
    Data w = data_new(DT_I32, 1, 1);
    assert_runs(text, ARGS(arg_of(&x), arg_of(&y), arg_of(&z), arg_of(&w)));
    cr_assert(data_int(&z, 0) == 16390 && data_int(&w, 0) == INT32_MIN + 16389);
    data_free(&x), data_free(&y), data_free(&z), data_free(&w);
}

// --- padding at the late stages: N elements in windows of 8 ---

static const char *padded(const char *load, const char *body) {
    static char text[1024];
    snprintf(text, sizeof text,
             "tir scheduled sm_80\nkernel k(dim N, dim T, in @x: f32[%%N], out @z: f32[%%T]) {\n"
             "  axis n of N by 8; %%t = cdiv %%N, 8 : index; parallel %%p in 0..%%t {\n"
             "    %%lo = mul %%p, 8 : index; with n in %%lo..%%N {\n"
             "      %%x = load @x[n] %s : f32[n]\n"
             "      %s\n"
             "      store @z[%%p], %%r {det = [p], check = [0]} } } }\n",
             load, body);
    return text;
}

Test(eval_along, padding) {
    Data x = data_new(DT_F32, 1, 13), z = data_new(DT_F32, 1, 2);
    data_fill(&x, 1);
    EvalArg args[] = {arg_of(&x), arg_of(&z)};
    // The checked load gives 0 beyond the tensor: neutral for the sum, not for the sum of
    // exponentials.
    assert_runs(padded("{check = [0]}", "%r = reduce.sum[n] %x : f32"), 2, args);
    cr_assert(data_at(&z, 0) == 8 && data_at(&z, 1) == 5);
    assert_runs(padded("{check = [0]}", "%e = exp2 %x : f32[n]; %r = reduce.sum[n] %e : f32"), 2,
                args);
    cr_assert(data_at(&z, 0) == 16 && data_at(&z, 1) == 13); // 3 too much: as a machine would
    assert_runs(
        padded(
            "{check = [0]}",
            "%e = exp2 %x : f32[n]; %i = inside n : bool[n]; %s = select %i, %e, 0.0:f32 : f32[n]; "
            "%r = reduce.sum[n] %s : f32"),
        2, args);
    cr_assert(data_at(&z, 1) == 10);
    assert_runs(padded("else -inf:f32 {check = [0]}", "%r = reduce.max[n] %x : f32"), 2, args);
    cr_assert(data_at(&z, 1) == 1);
    assert_fails("without a check", padded("", "%r = reduce.sum[n] %x : f32"), 2, args);
    data_free(&x), data_free(&z);
}

// Windows that end inside the tensor: padding is poison there until a guard or a select deals with
// it.
Test(eval_along, padding_inside_the_tensor) {
    static const char text[] =
        "tir scheduled sm_80\nkernel k(dim N, in @x: f32[%%N], out @z: f32[1]) {\n"
        "  axis n of N by 8; parallel %%p in 0..1 {\n with n in 2..5 {\n"
        "      %%x = load @x[n] {check = [0]%s} : f32[n]; %s\n"
        "      store @z[%%p], %%r {det = [p]} } } }\n";
    static const struct {
        const char *guard, *body, *says;
    } c[] = {
        {"", "%r = reduce.sum[n] %x : f32", "%r = reduce.sum: poison reaches the inside element"},
        {"", "%r = dot[n] %x, %x : f32", "poison"},
        {"", "%i = argreduce.max[n] %x : index; %r = cast %i : f32", "poison"},
        {", guard = [n]", "%r = reduce.sum[n] %x : f32", ""},
        {"",
         "%i = inside n : bool[n]; %s = select %i, %x, 0.0:f32 : f32[n]; %r = reduce.sum[n] %s : "
         "f32",
         ""},
        {"", "%s = scan.sum[n] %x : f32[n]; %r = take %s, n = 4 : f32", ""},
    };
    Data x = data_new(DT_F32, 1, 100), z = data_new(DT_F32, 1, 1);
    data_fill(&x, 1);
    for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
        char with[1024];
        data_fill(&z, 0);
        snprintf(with, sizeof with, text, c[i].guard, c[i].body);
        const char *said = run(with, ARGS(arg_of(&x), arg_of(&z)));
        cr_assert(*c[i].says ? strstr(said, c[i].says) != NULL : !*said, "%d: %s", (int)i, said);
        if (!*said)
            cr_assert(data_at(&z, 0) == 3);
    }
    data_free(&x), data_free(&z);
}
