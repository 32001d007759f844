// The worked examples: every stage of one kernel gives the same result, on full, odd, tiny and
// empty shapes, and planted faults of the late stages are found.
#include "eval_support.h"
#include "ir_examples.h"

#include <time.h>

// y = gelu(x w + b), written directly.
static void linear_gelu_reference(const Data *x, const Data *w, const Data *b, Data *y) {
    int64_t M = x->t.dims[0], K = x->t.dims[1], N = w->t.dims[1];
    for (int64_t m = 0; m < M; m++) {
        for (int64_t n = 0; n < N; n++) {
            double s = 0;
            for (int64_t k = 0; k < K; k++)
                s += data_at(x, m * K + k) * data_at(w, k * N + n);
            double z = s + (b ? data_at(b, n) : 0);
            scalar_store(y->t.data, m * N + n,
                         scalar_float(DT_BF16, 0.5 * z * (1 + erf(z * 0.70710678118654752))));
        }
    }
}

static void linear_gelu_all_stages(int M, int K, int N, bool bias) {
    Data x = data_random(1, DT_BF16, 2, M, K, 0, 0), w = data_random(2, DT_BF16, 2, K, N, 0, 0);
    Data b = data_random(3, DT_BF16, 1, N, 0, 0, 0), want = data_new(DT_BF16, 2, M, N);
    linear_gelu_reference(&x, &w, bias ? &b : NULL, &want);
    const char *texts[] = {example_linear_gelu_tensor, example_linear_gelu_nests,
                           example_linear_gelu_scheduled};
    for (int i = 0; i < 3; i++) {
        Data y = data_new(DT_BF16, 2, M, N);
        data_fill(&y, 77);
        assert_runs(texts[i], ARGS(arg_of(&x), arg_of(&w), arg_of(bias ? &b : NULL), arg_of(&y)));
        assert_near(&y, &want, 0x1p-7);
        data_free(&y);
    }
    data_free(&x), data_free(&w), data_free(&b), data_free(&want);
}

Test(eval_examples, linear_gelu) {
    linear_gelu_all_stages(37, 70, 41, true);
    linear_gelu_all_stages(130, 64, 8, false);
    linear_gelu_all_stages(1, 1, 1, true);
    linear_gelu_all_stages(5, 0, 3, true);
    linear_gelu_all_stages(0, 5, 3, true);
}

Test(eval_examples, linear_mma) {
    for (int i = 0; i < 3; i++) {
        int M = (int[]){3, 130, 16}[i], K = (int[]){100, 32, 1}[i], N = (int[]){5, 131, 1}[i];
        Data x = data_random(1, DT_BF16, 2, M, K, 0, 0), w = data_random(2, DT_BF16, 2, K, N, 0, 0);
        Data y = data_new(DT_F32, 2, M, N);
        data_fill(&y, 77);
        assert_runs(example_linear_mma_placed, ARGS(arg_of(&x), arg_of(&w), arg_of(&y)));
        for (int64_t m = 0; m < M; m++) {
            for (int64_t n = 0; n < N; n++) {
                double s = 0;
                for (int64_t k = 0; k < K; k++)
                    s += data_at(&x, m * K + k) * data_at(&w, k * N + n);
                cr_assert(fabs(data_at(&y, m * N + n) - s) < 1e-4);
            }
        }
        data_free(&x), data_free(&w), data_free(&y);
    }
}

Test(eval_examples, attention) {
    int B = 1, H = 2, G = 1, S = 37, L = 150, D = 128;
    Data q = data_random(1, DT_BF16, 4, B, H, S, D), k = data_random(2, DT_BF16, 4, B, G, L, D);
    Data v = data_random(3, DT_BF16, 4, B, G, L, D), o = data_new(DT_BF16, 4, B, H, S, D);
    double c = 0.125 * 1.4426950408889634;
    EvalArg args[] = {arg_of(&q), arg_of(&k), arg_of(&v), arg_float(c), arg_of(&o)};
    assert_runs(example_attention_scheduled, 5, args);
    for (int h = 0; h < H; h++) {
        for (int i = 0; i < S; i++) {
            double p[256], sum = 0;
            for (int j = 0; j <= i + L - S; j++) {
                double s = 0;
                for (int d = 0; d < D; d++)
                    s += data_at(&q, (h * S + i) * D + d) * data_at(&k, j * D + d);
                sum += p[j] = exp2(s * c);
            }
            for (int d = 0; d < D; d += 7) {
                double x = 0;
                for (int j = 0; j <= i + L - S; j++)
                    x += p[j] / sum * data_at(&v, j * D + d);
                cr_assert(fabs(data_at(&o, (h * S + i) * D + d) - x) < 0.02, "h %d i %d d %d", h, i,
                          d);
            }
        }
    }
    data_free(&q), data_free(&k), data_free(&v), data_free(&o);
}

// A copy of `text` with the first `from` replaced.
static char *replaced(const char *text, const char *from, const char *to) {
    const char *at = strstr(text, from);
    cr_assert(at, "no `%s`", from);
    size_t n = strlen(text) + strlen(to) + 1;
    char *out = malloc(n);
    snprintf(out, n, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    return out;
}

// Each fault in the scheduled linear_gelu must be found on a shape with tails everywhere.
Test(eval_examples, planted_faults) {
    static const struct {
        const char *from, *to, *says;
    } fault[] = {
        {"signal @ab {engine = tma, check = [0, 1]}", "signal @ab {engine = tma, check = [0]}",
         "without a check"},
        {"signal @ab {engine = tma, check = [0, 1]}", "signal @ab {engine = tma, check = [1]}",
         "without a check"},
        {"det = [m, n], check = [0, 1]", "det = [m, n], check = [0]", "without a check"},
        {"{check = [0]}", "", "without a check"},
        {"wait @ab(%p)\n", "\n", "poison"},
        {"commit @ab(%p);", "", "not committed"},
        {"acquire @ab(%p);", "", "holds fill -1"},
        {"get @bb(%p)", "get @bb(1)", "holds fill"},
    };
    Data x = data_random(1, DT_BF16, 2, 37, 70, 0, 0), w = data_random(2, DT_BF16, 2, 70, 41, 0, 0);
    Data y = data_new(DT_BF16, 2, 37, 41);
    for (size_t i = 0; i < sizeof fault / sizeof *fault; i++) {
        char *text = replaced(example_linear_gelu_scheduled, fault[i].from, fault[i].to);
        assert_fails(fault[i].says, text, ARGS(arg_of(&x), arg_of(&w), arg_of(NULL), arg_of(&y)));
        free(text);
    }
    data_free(&x), data_free(&w), data_free(&y);
}

// Causal attention: without its guard, V's rows beyond the window reach the sum as 0 * anything.
Test(eval_examples, missing_guard) {
    Data q = data_random(1, DT_BF16, 4, 1, 1, 200, 128),
         k = data_random(2, DT_BF16, 4, 1, 1, 250, 128);
    Data v = data_random(3, DT_BF16, 4, 1, 1, 250, 128), o = data_new(DT_BF16, 4, 1, 1, 200, 128);
    char *text = replaced(example_attention_scheduled, ", guard = [j]", "");
    EvalArg args[] = {arg_of(&q), arg_of(&k), arg_of(&v), arg_float(0.1), arg_of(&o)};
    assert_runs(example_attention_scheduled, 5, args);
    assert_fails("dot: poison reaches the inside element i = ", text, 5, args);
    free(text);
    data_free(&q), data_free(&k), data_free(&v), data_free(&o);
}

// conv_relu_pool on an odd image: padding all around, the last row and column of the convolution
// dropped by the pool.
Test(eval_examples, conv_relu_pool) {
    int B = 2, H = 7, W = 6, C = 5, K = 3, R = 3, S = 2, pad = 1;
    int P = H + 2 * pad - R + 1, Q = W + 2 * pad - S + 1, U = P / 2, V = Q / 2;
    Data x = data_random(1, DT_F16, 4, B, H, W, C), f = data_random(2, DT_F16, 4, K, R, S, C);
    Data b = data_random(3, DT_F16, 1, K, 0, 0, 0), y = data_new(DT_F16, 4, B, U, V, K);
    EvalDim dims[] = {{"P", P}, {"Q", Q}};
    EvalOptions opts = {.ndims = 2, .dims = dims, .check_races = true};
    EvalArg args[] = {arg_of(&x), arg_of(&f), arg_of(&b), arg_int(pad), arg_of(&y)};
    for (int window = 0; window < 4; window += 3) {
        opts.window = window;
        data_fill(&y, 99);
        const char *said = run_with(example_conv_relu_pool_nests, &opts, 5, args);
        cr_assert(!*said, "%s", said);
        for (int at = 0; at < B * U * V * K; at++) {
            int k = at % K, v = at / K % V, u = at / K / V % U, n = at / K / V / U;
            double best = 0;
            for (int ij = 0; ij < 4; ij++) {
                double sum = data_at(&b, k);
                for (int rs = 0; rs < R * S; rs++) {
                    int h = 2 * u + ij / 2 + rs / S - pad, w = 2 * v + ij % 2 + rs % S - pad;
                    for (int c = 0; c < C && h >= 0 && h < H && w >= 0 && w < W; c++)
                        sum += data_at(&x, ((n * H + h) * W + w) * C + c) *
                               data_at(&f, (k * R * S + rs) * C + c);
                }
                best = sum > best ? sum : best;
            }
            cr_assert(fabs(data_at(&y, at) - best) < 0.004, "%d: %g, not %g", at, data_at(&y, at),
                      best);
        }
    }
    data_free(&x), data_free(&f), data_free(&b), data_free(&y);
}

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// 256^3 in every stage; generous, as the build may be a sanitized one.
Test(eval_examples, fast_enough) {
    double start = seconds();
    linear_gelu_all_stages(256, 256, 256, true);
    cr_assert(seconds() - start < 20);
}
