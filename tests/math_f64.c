// The functions of f64 that GPUs have (backend/math_f64.c), executed on this machine, against the C
// library in long double: errors in ulps within the bounds of the language, special values as in C.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/host_build.h"

enum { N = 1 << 14 };
typedef void CpuEntry(void *const *args, int64_t lo, int64_t hi, const char **message);
typedef long double Exact1(long double);

static const double specials[] = {0.0,
                                  -0.0,
                                  1.0,
                                  -1.0,
                                  2.0,
                                  0.5,
                                  INFINITY,
                                  -INFINITY,
                                  NAN,
                                  5e-324,
                                  -5e-324,
                                  0x1p-1022,
                                  1e308,
                                  -1e308,
                                  3.0,
                                  -3.0,
                                  709.78,
                                  709.79,
                                  -708.4,
                                  -745.1,
                                  -745.2,
                                  1023.99,
                                  1024.0,
                                  -1074.0,
                                  -1075.0,
                                  1e22,
                                  6381956970095103.0,
                                  0x1.6ac5b262ca1ffp+849,
                                  0x1p31,
                                  0x1.fffffffffffffp30,
                                  1e-9,
                                  1.5707963267948966,
                                  0.99999999999999989,
                                  1.0000000000000002,
                                  5.9,
                                  6.1,
                                  0x1.6a09e667f3bcdp-1,
                                  0x1.6a09e667f3bccp0,
                                  -2.5,
                                  1e17};
enum { SPECIALS = sizeof specials / sizeof specials[0] };

static uint64_t next(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    uint64_t high = *state >> 32;
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return high << 32 | *state >> 32;
}

// A third any bits, a third of moderate size, a third near 1; the special ones first.
static void fill(double *x, uint64_t seed, double range) {
    for (int i = 0; i < N; i++) {
        uint64_t bits = next(&seed);
        double unit = (double)(bits >> 11) / 0x1p52 - 1;
        if (i % 3 == 0)
            memcpy(&x[i], &bits, 8);
        else
            x[i] = i % 3 == 1 ? unit * range : 1 + unit / 8;
        if (i < SPECIALS)
            x[i] = specials[i];
    }
}

// y[i] = f(x[i], z[i]), every lane by itself
static void body(Build *b) {
    Target *t = &b->t;
    OpKind kind = *(const OpKind *)b->user;
    Access access = {.dtype = DT_F64, .width = 1, .align = 8};
    Lane none = {NULL}, x[2];
    for (int i = 0; i < 2; i++)
        t->ops->load_global(t, &access, build_lane_ptr(b, i, 8), none, NULL, &x[i]);
    Lane y = {LLVMGetPoison(LLVMTypeOf(x[0].v))};
    for (int i = 0; i < t->desc->lanes; i++) {
        LLVMValueRef k = uni_int(t, 32, i).v, args[2];
        for (int j = 0; j < 2; j++)
            args[j] = LLVMBuildExtractElement(t->builder, x[j].v, k, "");
        y.v = LLVMBuildInsertElement(t->builder, y.v, math_f64(t, kind, args), k, "");
    }
    t->ops->store_global(t, &access, build_lane_ptr(b, 2, 8), none, &y);
}

static void run(OpKind kind, const double *x, const double *z, double *y) {
    Built built = build_kernel("cpu", 2, 3, 0, body, &kind);
    const void *const data[3] = {x, z, y};
    void *args[3];
    for (int i = 0; i < 3; i++)
        args[i] = (void *)&data[i];
    const char *message = NULL;
    ((CpuEntry *)(uintptr_t)built.entry)(args, 0, N / target_find("cpu")->lanes, &message);
    built_free(&built);
}

// Distance in units of the last place of the exact result.
static double ulps(double got, long double want) {
    if (isnan(want))
        return isnan(got) ? 0 : INFINITY;
    double rounded = (double)want;
    if (got == rounded && (want != 0 || !signbit(got) == !signbit(want)) &&
        (isinf(got) || want == 0))
        return 0;
    if (isnan(got) || want == 0)
        return INFINITY;
    if (isinf(got) || isinf(rounded))
        return fabsl(want) > 1.79769e308L && fabs(got) > 1.79769e308 ? 1 : INFINITY;
    int e;
    frexpl(want, &e);
    return (double)(fabsl(got - want) / ldexpl(1, (e < -1021 ? -1021 : e) - 53));
}

static void check_unary(OpKind kind, Exact1 *f, double range, double bound) {
    double *x = malloc(N * 8), *y = malloc(N * 8), worst = 0, at = 0;
    fill(x, 1, range);
    run(kind, x, x, y);
    for (int i = 0; i < N; i++) {
        double u = ulps(y[i], f(x[i]));
        cr_expect_leq(u, bound, "%s(%a) = %a, not %La", op_info(kind)->text, x[i], y[i], f(x[i]));
        at = u > worst ? x[i] : at;
        worst = u > worst ? u : worst;
    }
    cr_log_info("%s: %.3f ulp at %a", op_info(kind)->text, worst, at);
    free(x);
    free(y);
}

Test(math_f64, exponentials) {
    check_unary(OP_EXP, expl, 750, 1);
    check_unary(OP_EXP, expl, 2, 1);
    check_unary(OP_EXP2, exp2l, 1080, 1);
    check_unary(OP_EXP2, exp2l, 2, 1);
}
Test(math_f64, logarithms) {
    check_unary(OP_LOG, logl, 4, 1);
    check_unary(OP_LOG2, log2l, 4, 1);
}
Test(math_f64, trigonometric) {
    check_unary(OP_SIN, sinl, 10, 1);
    check_unary(OP_COS, cosl, 10, 1);
    check_unary(OP_SIN, sinl, 1e9, 1);
    check_unary(OP_COS, cosl, 1e12, 1);
}
Test(math_f64, tanh_erf) {
    check_unary(OP_TANH, tanhl, 1, 3);
    check_unary(OP_TANH, tanhl, 25, 3);
    check_unary(OP_ERF, erfl, 1, 3);
    check_unary(OP_ERF, erfl, 7, 3);
}

static void check_pow(double range_x, double range_y) {
    double *x = malloc(N * 8), *z = malloc(N * 8), *y = malloc(N * 8), worst = 0;
    fill(x, 1, range_x);
    fill(z, 2, range_y);
    for (int i = 0; i < SPECIALS * SPECIALS && i < N; i++) {
        x[i] = specials[i / SPECIALS];
        z[i] = specials[i % SPECIALS];
    }
    run(OP_POW, x, z, y);
    for (int i = 0; i < N; i++) {
        double u = ulps(y[i], powl(x[i], z[i]));
        cr_expect_leq(u, 1, "pow(%a, %a) = %a, not %La", x[i], z[i], y[i], powl(x[i], z[i]));
        worst = u > worst ? u : worst;
    }
    cr_log_info("pow: %.3f ulp", worst);
    free(x);
    free(z);
    free(y);
}

Test(math_f64, powers) {
    check_pow(10, 300);
    check_pow(1, 20);
}
