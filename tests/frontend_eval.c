/* The examples on the evaluator, against plain loops in double. */
#include "eval_support.h"
#include "frontend_support.h"

#include <math.h>

/* Lowers examples/<file>.fk and runs `kernel`. */
static void run_example(const char *file, const char *kernel, const char *const *defines, int nargs,
                        const EvalArg *args) {
    Front f = front_new();
    char *text = front_read(f.arena, arena_printf(f.arena, "examples/%s.fk", file));
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
    run_example("gather", "segment_max", f32_only, ARGS(arg_of(&x), arg_of(&s), arg_of(&y)));
    assert_near(&y, &want, 0);
    static const double hits[] = {0, 2, 0, 0, 3, 4, 0};
    Data h = data_floats(DT_F32, 7, hits);
    Data at = data_new(DT_I64, 1, 4), count = data_new(DT_I64, 1, 1);
    run_example("gather", "nonzero.f32", f32_only, ARGS(arg_of(&h), arg_of(&at), arg_of(&count)));
    cr_expect_eq(data_int(&count, 0), 3);
    cr_expect_eq(data_int(&at, 0), 1);
    cr_expect_eq(data_int(&at, 1), 4);
    cr_expect_eq(data_int(&at, 2), 5);
    data_free(&x), data_free(&y), data_free(&want), data_free(&s);
    data_free(&h), data_free(&at), data_free(&count);
}
