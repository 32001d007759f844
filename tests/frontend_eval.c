/* The examples on the evaluator, against plain loops in double. */
#include "eval_support.h"
#include "frontend_support.h"

#include <math.h>

/* Lowers a file and runs `kernel`. */
static void run_file(const char *file, const char *kernel, const char *const *defines, int nargs,
                     const EvalArg *args) {
    Front f = front_new();
    char *text = front_read(f.arena, file);
    cr_assert_not_null(text, "%s", file);
    front_lower(&f, file, text, &(FrontendOptions){.defines = defines});
    cr_assert(!diags_has_errors(f.diags), "%s", diags_text(f.diags, f.arena));
    const char *error = NULL;
    for (int i = 0; i < f.module->nkernel; i++)
        if (!strcmp(f.module->kernel[i]->name, kernel)) {
            bool ok = eval_kernel(f.arena, f.module, f.module->kernel[i], nargs, args,
                                  &(EvalOptions){.window = 4, .check_guards = true}, &error);
            cr_assert(ok, "%s: %s", kernel, ok ? "" : error);
            front_free(&f);
            return;
        }
    cr_assert(false, "no kernel %s", kernel);
}

static void run_example(const char *name, const char *kernel, const char *const *defines, int nargs,
                        const EvalArg *args) {
    char path[100];
    snprintf(path, sizeof path, "examples/%s.fk", name);
    run_file(path, kernel, defines, nargs, args);
}

static void run_rule(const char *kernel, int nargs, const EvalArg *args) {
    run_file("tests/corpus/frontend/semantics.fk", kernel, NULL, nargs, args);
}

static const char *const f32_only[] = {"T=f32", NULL};

static Data matrix(uint64_t seed, int m, int n) {
    return data_random(seed, DT_F32, 2, m, n, 0, 0);
}

Test(frontend_eval, axpy) {
    Data x = data_random(1, DT_BF16, 1, 13, 0, 0, 0), y = data_random(2, DT_BF16, 1, 13, 0, 0, 0);
    Data want = data_new(DT_BF16, 1, 13);
    for (int i = 0; i < 13; i++) {
        float p = (float)(2.5 * data_at(&x, i));
        scalar_store(want.t.data, i, scalar_float(DT_BF16, (float)(data_at(&y, i) + p)));
    }
    static const char *const bf16[] = {"T=bf16", NULL};
    run_example("axpy", "axpy.bf16", bf16, ARGS(arg_float(2.5), arg_of(&x), arg_of(&y)));
    assert_near(&y, &want, 0);
    data_free(&x), data_free(&y), data_free(&want);
}

static Data softmax_of(const Data *x, int m, int n) {
    Data y = data_new(DT_F32, 2, m, n);
    for (int i = 0; i < m; i++) {
        double top = -INFINITY, sum = 0;
        for (int j = 0; j < n; j++)
            top = fmax(top, data_at(x, i * n + j));
        for (int j = 0; j < n; j++)
            sum += exp(data_at(x, i * n + j) - top);
        for (int j = 0; j < n; j++)
            scalar_store(y.t.data, i * n + j,
                         scalar_float(DT_F32, exp(data_at(x, i * n + j) - top) / sum));
    }
    return y;
}

Test(frontend_eval, softmax_both_forms) {
    Data x = matrix(3, 7, 11), want = softmax_of(&x, 7, 11);
    static const char *const kernels[] = {"softmax_whole.f32", "softmax_rows.f32"};
    for (int i = 0; i < 2; i++) {
        Data y = data_new(DT_F32, 2, 7, 11);
        run_example("softmax", kernels[i], f32_only, ARGS(arg_of(&x), arg_of(&y)));
        assert_near(&y, &want, 1e-6);
        data_free(&y);
    }
    data_free(&x), data_free(&want);
}

static double gelu(double x) {
    return 0.5 * x * (1 + erf(x * sqrt(0.5)));
}

Test(frontend_eval, linear_gelu_both_forms) {
    enum { M = 9, K = 6, N = 5 };
    Data x = matrix(4, M, K), w = matrix(5, K, N), b = data_random(6, DT_F32, 1, N, 0, 0, 0);
    Data want = data_new(DT_F32, 2, M, N);
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++) {
            double sum = data_at(&b, j);
            for (int k = 0; k < K; k++)
                sum += data_at(&x, i * K + k) * data_at(&w, k * N + j);
            scalar_store(want.t.data, i * N + j, scalar_float(DT_F32, gelu(sum)));
        }
    static const char *const kernels[] = {"linear_gelu.f32", "linear_gelu_tiled.f32"};
    for (int i = 0; i < 2; i++) {
        Data y = data_new(DT_F32, 2, M, N);
        run_example("linear_gelu", kernels[i], f32_only,
                    ARGS(arg_of(&x), arg_of(&w), arg_of(&b), arg_of(&y)));
        assert_near(&y, &want, 1e-5);
        data_free(&y);
    }
    data_free(&x), data_free(&w), data_free(&b), data_free(&want);
}

Test(frontend_eval, layernorm_without_weights) {
    enum { M = 3, N = 10 };
    Data x = matrix(7, M, N), y = data_new(DT_F32, 2, M, N), mu = data_new(DT_F32, 1, M);
    Data want = data_new(DT_F32, 2, M, N);
    for (int i = 0; i < M; i++) {
        double mean = 0, var = 0;
        for (int j = 0; j < N; j++)
            mean += data_at(&x, i * N + j) / N;
        for (int j = 0; j < N; j++)
            var += pow(data_at(&x, i * N + j) - mean, 2) / N;
        for (int j = 0; j < N; j++)
            scalar_store(want.t.data, i * N + j,
                         scalar_float(DT_F32, (data_at(&x, i * N + j) - mean) / sqrt(var + 1e-5)));
    }
    run_example("layernorm", "layernorm.f32", f32_only,
                ARGS(arg_of(&x), arg_of(NULL), arg_of(NULL), arg_float(1e-5), arg_of(&y),
                     arg_of(&mu), arg_of(NULL)));
    assert_near(&y, &want, 1e-5);
    data_free(&x), data_free(&y), data_free(&mu), data_free(&want);
}

/* The flash form agrees with the naive one, which is checked against loops. */
Test(frontend_eval, attention_both_forms) {
    enum { S = 6, L = 9, D = 4 };
    static const char *const defines[] = {"T=f32", "D=4", NULL};
    Data q = data_random(8, DT_F32, 4, 1, 2, S, D), k = data_random(9, DT_F32, 4, 1, 2, L, D);
    Data v = data_random(10, DT_F32, 4, 1, 2, L, D);
    Data want = data_new(DT_F32, 4, 1, 2, S, D), y = data_new(DT_F32, 4, 1, 2, S, D);
    Data lse = data_new(DT_F32, 3, 1, 2, S);
    for (int h = 0; h < 2; h++)
        for (int i = 0; i < S; i++) {
            double p[L], sum = 0;
            for (int j = 0; j < L; j++) {
                double dot = 0;
                for (int d = 0; d < D; d++)
                    dot += data_at(&q, (h * S + i) * D + d) * data_at(&k, (h * L + j) * D + d);
                sum += p[j] = exp(0.5 * dot);
            }
            for (int d = 0; d < D; d++) {
                double o = 0;
                for (int j = 0; j < L; j++)
                    o += p[j] / sum * data_at(&v, (h * L + j) * D + d);
                scalar_store(want.t.data, (h * S + i) * D + d, scalar_float(DT_F32, o));
            }
        }
    run_example("attention", "attention_naive.f32", defines,
                ARGS(arg_of(&q), arg_of(&k), arg_of(&v), arg_float(0.5), arg_of(&y)));
    assert_near(&y, &want, 1e-5);
    data_fill(&y, 0);
    run_example("attention", "attention.f32", defines,
                ARGS(arg_of(&q), arg_of(&k), arg_of(&v), arg_float(0.5), arg_of(&y), arg_of(&lse)));
    assert_near(&y, &want, 1e-5);
    data_free(&q), data_free(&k), data_free(&v), data_free(&want), data_free(&y), data_free(&lse);
}

Test(frontend_eval, conv_relu_pool) {
    enum { H = 6, W = 7, C = 3, K = 2, R = 3, U = 3, V = 3 };
    Data x = data_random(11, DT_F32, 4, 1, H, W, C), f = data_random(12, DT_F32, 4, K, R, R, C);
    Data b = data_random(13, DT_F32, 1, K, 0, 0, 0), y = data_new(DT_F32, 4, 1, U, V, K);
    Data want = data_new(DT_F32, 4, 1, U, V, K);
    for (int u = 0; u < U; u++)
        for (int v = 0; v < V; v++)
            for (int k = 0; k < K; k++) {
                double best = 0;
                for (int e = 0; e < 4; e++) {
                    double sum = data_at(&b, k);
                    for (int r = 0; r < R * R * C; r++) {
                        int h = 2 * u + e / 2 + r / (R * C) - 1, w = 2 * v + e % 2 + r / C % R - 1;
                        if (h >= 0 && h < H && w >= 0 && w < W)
                            sum += data_at(&x, (h * W + w) * C + r % C) *
                                   data_at(&f, k * R * R * C + r);
                    }
                    best = fmax(best, sum);
                }
                scalar_store(want.t.data, (u * V + v) * K + k, scalar_float(DT_F32, best));
            }
    run_example("conv_relu_pool", "conv_relu_pool.f32", f32_only,
                ARGS(arg_of(&x), arg_of(&f), arg_of(&b), arg_int(1), arg_of(&y)));
    assert_near(&y, &want, 1e-5);
    data_free(&x), data_free(&f), data_free(&b), data_free(&y), data_free(&want);
}

Test(frontend_eval, segments_and_nonzero) {
    Data x = matrix(14, 8, 2), y = data_new(DT_F32, 2, 3, 2), want = data_new(DT_F32, 2, 3, 2);
    static const int64_t starts[] = {0, 3, 3, 8};
    Data s = data_ints(DT_I32, 4, starts);
    data_fill(&want, -INFINITY);
    for (int e = 0; e < 3; e++)
        for (int64_t n = starts[e]; n < starts[e + 1]; n++)
            for (int d = 0; d < 2; d++)
                scalar_store(
                    want.t.data, e * 2 + d,
                    scalar_float(DT_F32, fmax(data_at(&want, e * 2 + d), data_at(&x, n * 2 + d))));
    run_file("tests/corpus/frontend/segments.fk", "segment_max", f32_only,
             ARGS(arg_of(&x), arg_of(&s), arg_of(&y)));
    assert_near(&y, &want, 0);
    static const double hits[] = {0, 2, 0, 0, 3, 4, 0};
    Data h = data_floats(DT_F32, 7, hits);
    Data at = data_new(DT_I64, 1, 4), count = data_new(DT_I64, 1, 1);
    run_file("tests/corpus/frontend/segments.fk", "nonzero.f32", f32_only,
             ARGS(arg_of(&h), arg_of(&at), arg_of(&count)));
    cr_expect_eq(data_int(&count, 0), 3);
    cr_expect_eq(data_int(&at, 0), 1);
    cr_expect_eq(data_int(&at, 1), 4);
    cr_expect_eq(data_int(&at, 2), 5);
    data_free(&x), data_free(&y), data_free(&want), data_free(&s);
    data_free(&h), data_free(&at), data_free(&count);
}

/* --- one rule of the language each --------------------------------------------------------- */

static void expect_floats(const Data *x, int n, const double *want) {
    for (int i = 0; i < n; i++)
        cr_expect(data_at(x, i) == want[i], "element %d: %g, not %g", i, data_at(x, i), want[i]);
}

static void expect_ints(const Data *x, int n, const int64_t *want) {
    for (int i = 0; i < n; i++)
        cr_expect(data_int(x, i) == want[i], "element %d: %lld, not %lld", i,
                  (long long)data_int(x, i), (long long)want[i]);
}

Test(frontend_eval, loops_that_leave_early) {
    static const double values[] = {1, -5, 2, 3, 4, 1, 1, 1, 1, 1};
    Data x = data_new(DT_F32, 2, 2, 5), y = data_new(DT_F32, 1, 2), n = data_new(DT_I64, 1, 2);
    for (int i = 0; i < 10; i++)
        scalar_store(x.t.data, i, scalar_float(DT_F32, values[i]));
    run_rule("early", ARGS(arg_of(&x), arg_float(5), arg_of(&y), arg_of(&n)));
    expect_floats(&y, 2, (double[]){6, 5});
    expect_ints(&n, 2, (int64_t[]){23, 55});
    Data a = data_ints(DT_I64, 4, (int64_t[]){1, 6, 7, 27}), c = data_new(DT_I64, 1, 4);
    run_rule("collatz", ARGS(arg_of(&a), arg_of(&c)));
    expect_ints(&c, 4, (int64_t[]){0, 8, 16, 21});
    data_free(&x), data_free(&y), data_free(&n), data_free(&a), data_free(&c);
}

Test(frontend_eval, ragged_grid) {
    Data x = data_floats(DT_F32, 6, (double[]){0, 10, 20, 30, 40, 50}), y = data_new(DT_F32, 1, 6);
    Data s = data_ints(DT_I32, 4, (int64_t[]){0, 2, 2, 6});
    run_rule("ragged", ARGS(arg_of(&x), arg_of(&s), arg_of(&y)));
    expect_floats(&y, 6, (double[]){0, 10, 22, 32, 42, 52});
    data_free(&x), data_free(&y), data_free(&s);
}

// A sum of f16 is f32 and of i8 i32, also by a function; what only chooses stays what it is.
Test(frontend_eval, functions_of_elements) {
    enum { N = 4097 };
    Data h = data_new(DT_F16, 1, N), i = data_new(DT_I8, 1, N), s = data_new(DT_F32, 1, 1),
         c = data_new(DT_I32, 1, N), top = data_new(DT_F16, 1, N), n = data_new(DT_I64, 1, 1);
    data_fill(&h, 1);
    for (int k = 0; k < N; k++)
        scalar_store(i.t.data, k, scalar_int(DT_I8, 100));
    run_rule("combined_types",
             ARGS(arg_of(&h), arg_of(&i), arg_of(&s), arg_of(&c), arg_of(&top), arg_of(&n)));
    cr_expect_eq(data_at(&s, 0), N);
    for (int k = 0; k < N; k++)
        cr_expect(data_int(&c, k) == 100 * (k + 1) && data_at(&top, k) == 1);
    cr_expect_eq(data_int(&n, 0), N);
    data_free(&h), data_free(&i), data_free(&s), data_free(&c), data_free(&top), data_free(&n);
}

Test(frontend_eval, builtins_by_name) {
    Data x = data_floats(DT_F32, 4, (double[]){1, -2, 9, 3}), y = data_new(DT_F32, 1, 3),
         c = data_new(DT_F32, 1, 4);
    run_rule("by_name", ARGS(arg_of(&x), arg_of(&y), arg_of(&c)));
    const double largest[] = {1, 1, 9, 9};
    cr_expect(data_at(&y, 0) == 9 && data_at(&y, 1) == -2 && data_at(&y, 2) == 5);
    for (int k = 0; k < 4; k++)
        cr_expect_eq(data_at(&c, k), largest[k]);
    data_free(&x), data_free(&y), data_free(&c);
}

Test(frontend_eval, narrow_integers) {
    Data a = data_ints(DT_U8, 3, (int64_t[]){200, 1, 255}),
         b = data_ints(DT_U8, 3, (int64_t[]){100, 2, 255});
    Data sum = data_new(DT_I32, 1, 3), w = data_new(DT_U8, 1, 3), less = data_new(DT_BOOL, 1, 3);
    run_rule("narrow", ARGS(arg_of(&a), arg_of(&b), arg_of(&sum), arg_of(&w), arg_of(&less)));
    expect_ints(&sum, 3, (int64_t[]){300, 3, 510});
    expect_ints(&w, 3, (int64_t[]){44, 3, 254});
    expect_ints(&less, 3, (int64_t[]){0, 1, 0});
    data_free(&a), data_free(&b), data_free(&sum), data_free(&w), data_free(&less);
}

Test(frontend_eval, reductions) {
    Data x = data_floats(DT_F32, 6, (double[]){1, -2, 9, 0, 9, 3}), y = data_new(DT_I64, 1, 3);
    run_rule("counts", ARGS(arg_of(&x), arg_of(&y)));
    expect_ints(&y, 3, (int64_t[]){4, 2, 0});
    Data p = data_new(DT_F32, 1, 6), one = data_new(DT_F32, 1, 1);
    run_rule("prefix", ARGS(arg_of(&x), arg_of(&p)));
    expect_floats(&p, 6, (double[]){1, -1, 8, 8, 9, 12});
    run_rule("constants", ARGS(arg_of(&x), arg_of(&one)));
    expect_floats(&one, 1, (double[]){6});
    data_free(&x), data_free(&y), data_free(&p), data_free(&one);
}

Test(frontend_eval, reads_outside) {
    Data x = data_floats(DT_F32, 4, (double[]){1, 2, 3, 4});
    Data l = data_new(DT_F32, 1, 4), f = data_new(DT_F32, 1, 4), t = data_new(DT_F32, 1, 4);
    run_rule("neighbours", ARGS(arg_of(&x), arg_of(&l), arg_of(&f), arg_of(&t)));
    expect_floats(&l, 4, (double[]){0, 1, 2, 3});
    expect_floats(&f, 4, (double[]){2, 3, 4, -7});
    expect_floats(&t, 4, (double[]){1, 3, 3, 4});
    data_free(&x), data_free(&l), data_free(&f), data_free(&t);
}

Test(frontend_eval, optional_tensors) {
    Data x = data_floats(DT_F32, 2, (double[]){1, 2}), b = data_floats(DT_F32, 2, (double[]){5, 6});
    Data y = data_new(DT_F32, 1, 2), z = data_new(DT_F32, 1, 2);
    run_rule("optional", ARGS(arg_of(&x), arg_of(NULL), arg_of(&y), arg_of(NULL)));
    expect_floats(&y, 2, (double[]){1, 2});
    run_rule("optional", ARGS(arg_of(&x), arg_of(&b), arg_of(&y), arg_of(&z)));
    expect_floats(&y, 2, (double[]){5, 6});
    expect_floats(&z, 2, (double[]){1, 2});
    data_free(&x), data_free(&b), data_free(&y), data_free(&z);
}

Test(frontend_eval, pool_does_not_count_padding) {
    Data x = data_new(DT_F32, 4, 1, 2, 2, 1), y = data_new(DT_F32, 4, 1, 1, 1, 1);
    for (int i = 0; i < 4; i++)
        scalar_store(x.t.data, i, scalar_float(DT_F32, i + 1));
    run_rule("pool", ARGS(arg_of(&x), arg_of(&y)));
    expect_floats(&y, 1, (double[]){2.5});
    data_free(&x), data_free(&y);
}

Test(frontend_eval, atomics_and_temporaries) {
    Data i = data_ints(DT_I32, 4, (int64_t[]){1, 1, 0, 1}),
         c = data_ints(DT_I32, 2, (int64_t[]){10, 20});
    Data old = data_new(DT_I32, 1, 4);
    run_rule("add_old", ARGS(arg_of(&i), arg_of(&c), arg_of(&old)));
    expect_ints(&c, 2, (int64_t[]){11, 23});
    expect_ints(&old, 4, (int64_t[]){20, 21, 10, 22});
    Data x = data_new(DT_F32, 2, 1, 2), y = data_new(DT_F32, 1, 1);
    scalar_store(x.t.data, 0, scalar_float(DT_F32, 1000.3));
    scalar_store(x.t.data, 1, scalar_float(DT_F32, -1000));
    run_rule("through_temp", ARGS(arg_of(&x), arg_of(&y)));
    expect_floats(&y, 1, (double[]){0}); /* 3000.9 is 3000 in f16 */
    data_free(&i), data_free(&c), data_free(&old), data_free(&x), data_free(&y);
}

Test(frontend_eval, functions_and_integers) {
    Data a = data_floats(DT_F32, 2, (double[]){3, 4}), x = data_floats(DT_F32, 2, (double[]){5, 6});
    Data p = data_new(DT_F32, 1, 2), q = data_new(DT_F32, 1, 2);
    run_rule("tuples", ARGS(arg_of(&a), arg_of(&x), arg_of(&p), arg_of(&q)));
    expect_floats(&p, 2, (double[]){6, 8});
    expect_floats(&q, 2, (double[]){11, 13});
    Data i = data_ints(DT_I32, 3, (int64_t[]){7, -7, 7}),
         j = data_ints(DT_I32, 3, (int64_t[]){2, 2, -2});
    Data d = data_new(DT_I32, 1, 3), f = data_new(DT_I32, 1, 3), m = data_new(DT_I32, 1, 3);
    Data s = data_new(DT_I32, 1, 3);
    run_rule("integers",
             ARGS(arg_of(&i), arg_of(&j), arg_of(&d), arg_of(&f), arg_of(&m), arg_of(&s)));
    expect_ints(&d, 3, (int64_t[]){3, -3, -3});
    expect_ints(&f, 3, (int64_t[]){3, -4, -4});
    expect_ints(&m, 3, (int64_t[]){401, -299, -301});
    expect_ints(&s, 3, (int64_t[]){(7 << 2 | 1) ^ 2, (-28 | 1) ^ 2, (28 | 1) ^ (-2 & 3)});
    data_free(&a), data_free(&x), data_free(&p), data_free(&q), data_free(&i), data_free(&j);
    data_free(&d), data_free(&f), data_free(&m), data_free(&s);
}

Test(frontend_eval, choices_of_literals) {
    Data x = data_floats(DT_F32, 3, (double[]){2, -3, 0});
    Data y = data_new(DT_F32, 1, 3), i = data_new(DT_I32, 1, 3), h = data_new(DT_F16, 1, 3);
    run_rule("choices", ARGS(arg_of(&x), arg_of(&y), arg_of(&i), arg_of(&h)));
    expect_floats(&y, 3, (double[]){1, -1, 0});
    expect_ints(&i, 3, (int64_t[]){3, 0, 0});
    expect_floats(&h, 3, (double[]){3, -2.5, 0.5});
    data_free(&x), data_free(&y), data_free(&i), data_free(&h);
}

/* --- the library ---------------------------------------------------------------------------- */

static double activation(int row, double x) {
    switch (row) {
    case 0:
        return fmax(x, 0);
    case 1:
        return x > 0 ? x : 0.01 * x;
    case 2:
        return fmin(fmax(x, 0), 6);
    case 3:
        return 1 / (1 + exp(-x));
    case 4:
        return x / (1 + exp(-x));
    case 5:
        return x * tanh(log1p(exp(x)));
    case 6:
        return x > 0 ? x : expm1(x);
    case 7:
        return x * fmin(fmax(x + 3, 0), 6) / 6;
    case 8:
        return gelu(x);
    case 9:
        return 0.5 * x * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    case 10:
        return log1p(exp(x));
    case 11:
        return exp(x);
    case 12:
        return tan(x);
    case 13:
        return x * x + x * x * x;
    case 14:
        return fmin(fmax(x, -0.5), 0.5);
    case 15:
        return x + 0.25 * (2 - x);
    case 16:
        return 0;
    case 17:
        return (x > 0) - (x < 0);
    case 18:
        return log1p(x * x);
    }
    return expm1(x);
}

Test(frontend_eval, library_activations) {
    enum { N = 9, ROWS = 20 };
    Data x = data_floats(DT_F32, N, (double[]){-4, -1.25, -0.5, -0.1, 0, 0.2, 0.75, 1.4, 7}),
         y = data_new(DT_F32, 2, ROWS, N), want = data_new(DT_F32, 2, ROWS, N);
    for (int i = 0; i < ROWS * N; i++)
        scalar_store(want.t.data, i, scalar_float(DT_F32, activation(i / N, data_at(&x, i % N))));
    run_file("tests/corpus/frontend/library.fk", "activations.f32", f32_only,
             ARGS(arg_of(&x), arg_of(&y)));
    assert_near(&y, &want, 2e-6);
    data_free(&x), data_free(&y), data_free(&want);
}

Test(frontend_eval, library_unit_inverse) {
    enum { K = 6 };
    Data a = data_random(21, DT_F32, 1, K * K, 0, 0, 0), y = data_new(DT_F32, 2, K, K);
    run_file("tests/corpus/frontend/library.fk", "inverse", f32_only, ARGS(arg_of(&a), arg_of(&y)));
    for (int i = 0; i < K; i++)
        for (int j = 0; j < K; j++) {
            double sum = data_at(&y, i * K + j); /* (I + strict) times the result */
            for (int k = 0; k < i; k++)
                sum += data_at(&a, i * K + k) * data_at(&y, k * K + j);
            cr_expect(fabs(sum - (i == j)) < 1e-4, "%d %d: %g", i, j, sum);
        }
    data_free(&a), data_free(&y);
}
