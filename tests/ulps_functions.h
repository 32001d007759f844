// Elementwise functions of the language and of std, each with its exact value by MPFR and its
// bound.
#ifndef FUSE_TESTS_ULPS_FUNCTIONS_H
#define FUSE_TESTS_ULPS_FUNCTIONS_H

#include <mpfr.h>
#include <stdbool.h>

// r = f(x[0], x[1], ...), to the precision of r.
typedef void Exact(mpfr_ptr r, mpfr_t *x);

typedef struct Function {
    const char *text; // an expression of x, y, z; its type is T or f32
    int operands;
    Exact *exact;
    // The bounds of SPEC.md, section 8, in ulps of f32 and of f64; 0.5 is correctly rounded,
    // 0 exact.
    double f32, f64;
    bool of_operand; // they are ulps of the larger of the result and x
    int tiny;        // besides, 2^tiny is no error (0: there is no such allowance)
} Function;

#define EXACT(name) static void name(mpfr_ptr r, mpfr_t *x)
#define MPFR1(name)                                                                                \
    EXACT(exact_##name) {                                                                          \
        mpfr_##name(r, x[0], MPFR_RNDN);                                                           \
    }
#define MPFR2(name)                                                                                \
    EXACT(exact_##name) {                                                                          \
        mpfr_##name(r, x[0], x[1], MPFR_RNDN);                                                     \
    }

MPFR1(exp)
MPFR1(exp2)
MPFR1(expm1)
MPFR1(log)
MPFR1(log2)
MPFR1(log1p)
MPFR1(sqrt)
MPFR1(sin)
MPFR1(cos)
MPFR1(tan)
MPFR1(tanh)
MPFR1(erf)
MPFR1(sinh)
MPFR1(cosh)
MPFR1(sqr)
MPFR1(rint_floor)
MPFR1(rint_ceil)
MPFR1(rint_trunc)
MPFR1(abs)
MPFR1(neg)
MPFR2(add)
MPFR2(sub)
MPFR2(mul)
MPFR2(div)
MPFR2(pow)
MPFR2(min)
MPFR2(max)

EXACT(exact_fma) {
    mpfr_fma(r, x[0], x[1], x[2], MPFR_RNDN);
}

EXACT(exact_rsqrt) {
    // 1/sqrt(-0) is -inf, as sqrt(-0) is -0; mpfr_rec_sqrt has +inf there.
    mpfr_rec_sqrt(r, x[0], MPFR_RNDN);
    if (mpfr_zero_p(x[0]))
        mpfr_set_inf(r, mpfr_signbit(x[0]) ? -1 : 1);
}

EXACT(exact_rcp) {
    mpfr_ui_div(r, 1, x[0], MPFR_RNDN);
}

EXACT(exact_round) { // ties to even
    mpfr_rint(r, x[0], MPFR_RNDN);
}

// min and max of MPFR prefer the operand that is a number; the language's do not.
EXACT(exact_strict_min) {
    mpfr_min(r, x[0], x[1], MPFR_RNDN);
    if (mpfr_nan_p(x[0]) || mpfr_nan_p(x[1]))
        mpfr_set_nan(r);
}

EXACT(exact_strict_max) {
    mpfr_max(r, x[0], x[1], MPFR_RNDN);
    if (mpfr_nan_p(x[0]) || mpfr_nan_p(x[1]))
        mpfr_set_nan(r);
}

EXACT(exact_cube) {
    mpfr_pow_ui(r, x[0], 3, MPFR_RNDN);
}

EXACT(exact_sign) {
    mpfr_set_si(r, mpfr_nan_p(x[0]) || mpfr_zero_p(x[0]) ? 0 : mpfr_sgn(x[0]), MPFR_RNDN);
}

EXACT(exact_isnan) {
    mpfr_set_ui(r, mpfr_nan_p(x[0]) != 0, MPFR_RNDN);
}

EXACT(exact_relu) {
    mpfr_t zero;
    mpfr_init_set_ui(zero, 0, MPFR_RNDN);
    mpfr_t pair[2] = {{*x[0]}, {*zero}};
    exact_strict_max(r, pair);
    mpfr_clear(zero);
}

EXACT(exact_relu6) {
    exact_relu(r, x);
    if (mpfr_cmp_ui(r, 6) > 0)
        mpfr_set_ui(r, 6, MPFR_RNDN);
}

EXACT(exact_clamp) { // to -0.5..0.5
    mpfr_set(r, x[0], MPFR_RNDN);
    if (!mpfr_nan_p(r) && mpfr_cmp_d(r, 0.5) > 0)
        mpfr_set_d(r, 0.5, MPFR_RNDN);
    else if (!mpfr_nan_p(r) && mpfr_cmp_d(r, -0.5) < 0)
        mpfr_set_d(r, -0.5, MPFR_RNDN);
}

EXACT(exact_leaky_relu) {
    if (mpfr_sgn(x[0]) > 0 || mpfr_nan_p(x[0]))
        mpfr_set(r, x[0], MPFR_RNDN);
    else
        mpfr_div_ui(r, x[0], 100, MPFR_RNDN);
}

// max(x, 0) + log1p(exp(-|x|))
EXACT(exact_softplus) {
    mpfr_t e;
    mpfr_init2(e, mpfr_get_prec(r));
    mpfr_abs(e, x[0], MPFR_RNDN);
    mpfr_neg(e, e, MPFR_RNDN);
    mpfr_exp(e, e, MPFR_RNDN);
    mpfr_log1p(e, e, MPFR_RNDN);
    exact_relu(r, x);
    mpfr_add(r, r, e, MPFR_RNDN);
    mpfr_clear(e);
}

EXACT(exact_sigmoid) {
    mpfr_neg(r, x[0], MPFR_RNDN);
    mpfr_exp(r, r, MPFR_RNDN);
    mpfr_add_ui(r, r, 1, MPFR_RNDN);
    mpfr_ui_div(r, 1, r, MPFR_RNDN);
}

EXACT(exact_silu) {
    exact_sigmoid(r, x);
    mpfr_mul(r, x[0], r, MPFR_RNDN);
}

EXACT(exact_mish) {
    exact_softplus(r, x);
    mpfr_tanh(r, r, MPFR_RNDN);
    mpfr_mul(r, x[0], r, MPFR_RNDN);
}

EXACT(exact_elu) {
    if (mpfr_sgn(x[0]) > 0 || mpfr_nan_p(x[0]))
        mpfr_set(r, x[0], MPFR_RNDN);
    else
        mpfr_expm1(r, x[0], MPFR_RNDN);
}

EXACT(exact_hardswish) {
    mpfr_t at[1];
    mpfr_init2(at[0], mpfr_get_prec(r));
    mpfr_add_ui(at[0], x[0], 3, MPFR_RNDN);
    exact_relu6(r, at);
    mpfr_clear(at[0]);
    mpfr_div_ui(r, r, 6, MPFR_RNDN);
    mpfr_mul(r, x[0], r, MPFR_RNDN);
}

// x/2 erfc(-x / sqrt 2)
EXACT(exact_gelu) {
    mpfr_sqrt_ui(r, 2, MPFR_RNDN);
    mpfr_div(r, x[0], r, MPFR_RNDN);
    mpfr_neg(r, r, MPFR_RNDN);
    mpfr_erfc(r, r, MPFR_RNDN);
    mpfr_mul(r, x[0], r, MPFR_RNDN);
    mpfr_div_ui(r, r, 2, MPFR_RNDN);
}

// x/2 (1 + tanh u) = x / (1 + exp(-2 u)), u = sqrt(2/pi) (x + 0.044715 x^3)
EXACT(exact_gelu_tanh) {
    mpfr_t u;
    mpfr_init2(u, mpfr_get_prec(r));
    mpfr_sqr(r, x[0], MPFR_RNDN);
    mpfr_mul_ui(r, r, 44715, MPFR_RNDN);
    mpfr_div_ui(r, r, 1000000, MPFR_RNDN);
    mpfr_add_ui(r, r, 1, MPFR_RNDN);
    mpfr_mul(r, r, x[0], MPFR_RNDN);
    mpfr_const_pi(u, MPFR_RNDN);
    mpfr_ui_div(u, 2, u, MPFR_RNDN);
    mpfr_sqrt(u, u, MPFR_RNDN);
    mpfr_mul(r, r, u, MPFR_RNDN);
    mpfr_mul_si(r, r, -2, MPFR_RNDN);
    mpfr_exp(r, r, MPFR_RNDN);
    mpfr_add_ui(r, r, 1, MPFR_RNDN);
    mpfr_div(r, x[0], r, MPFR_RNDN);
    mpfr_clear(u);
}

// clang-format off
static const Function functions[] = {
    {"exp(x)", 1, exact_exp, 3, 1, false, 0},
    {"exp2(x)", 1, exact_exp2, 2, 1, false, 0},
    {"log(x)", 1, exact_log, 2, 1, false, 0},
    {"log2(x)", 1, exact_log2, 2, 1, false, 0},
    {"sqrt(x)", 1, exact_sqrt, 0.5, 0.5, false, 0},
    {"rsqrt(x)", 1, exact_rsqrt, 2, 2, false, 0},
    {"rcp(x)", 1, exact_rcp, 2, 0.5, false, 0},
    {"sin(x)", 1, exact_sin, 2, 1, false, 0},
    {"cos(x)", 1, exact_cos, 2, 1, false, 0},
    {"tanh(x)", 1, exact_tanh, 4, 3, false, 0},
    {"erf(x)", 1, exact_erf, 4, 3, false, 0},
    {"floor(x)", 1, exact_rint_floor, 0, 0, false, 0},
    {"ceil(x)", 1, exact_rint_ceil, 0, 0, false, 0},
    {"trunc(x)", 1, exact_rint_trunc, 0, 0, false, 0},
    {"round(x)", 1, exact_round, 0, 0, false, 0},
    {"abs(x)", 1, exact_abs, 0, 0, false, 0},
    {"-x", 1, exact_neg, 0, 0, false, 0},
    // std.math
    {"log1p(x)", 1, exact_log1p, 4, 4, false, 0},
    {"expm1(x)", 1, exact_expm1, 4, 4, false, 0},
    {"softplus(x)", 1, exact_softplus, 6, 6, false, -126},
    {"sinh(x)", 1, exact_sinh, 8, 8, false, 0},
    {"cosh(x)", 1, exact_cosh, 8, 8, false, 0},
    {"tan(x)", 1, exact_tan, 5, 5, false, 0},
    {"square(x)", 1, exact_sqr, 0.5, 0.5, false, 0},
    {"cube(x)", 1, exact_cube, 1.5, 1.5, false, 0},
    {"sign(x) as T", 1, exact_sign, 0, 0, false, 0},
    {"isnan(x) as T", 1, exact_isnan, 0, 0, false, 0},
    {"clamp(x, -0.5, 0.5)", 1, exact_clamp, 0, 0, false, 0},
    // std.nn
    {"relu(x)", 1, exact_relu, 0, 0, false, 0},
    {"relu6(x)", 1, exact_relu6, 0, 0, false, 0},
    {"leaky_relu(x)", 1, exact_leaky_relu, 1.5, 1.5, false, 0},
    {"sigmoid(x)", 1, exact_sigmoid, 4, 4, false, -126},
    {"silu(x)", 1, exact_silu, 4, 4, false, -119},
    {"mish(x)", 1, exact_mish, 8, 8, false, -119},
    {"elu(x)", 1, exact_elu, 4, 4, false, 0},
    {"hardswish(x)", 1, exact_hardswish, 2, 2, false, 0},
    {"gelu(x)", 1, exact_gelu, 4, 4, true, 0},
    {"gelu_tanh(x)", 1, exact_gelu_tanh, 4, 4, true, 0},
    // of two and three numbers
    {"x + y", 2, exact_add, 0.5, 0.5, false, 0},
    {"x - y", 2, exact_sub, 0.5, 0.5, false, 0},
    {"x * y", 2, exact_mul, 0.5, 0.5, false, 0},
    {"x / y", 2, exact_div, 0.5, 0.5, false, 0},
    {"pow(x, y)", 2, exact_pow, 2, 1, false, 0},
    {"min(x, y)", 2, exact_strict_min, 0, 0, false, 0},
    {"max(x, y)", 2, exact_strict_max, 0, 0, false, 0},
    {"fmin(x, y)", 2, exact_min, 0, 0, false, 0},
    {"fmax(x, y)", 2, exact_max, 0, 0, false, 0},
    {"fma(x, y, z)", 3, exact_fma, 0.5, 0.5, false, 0},
};
// clang-format on
enum { FUNCTIONS = sizeof functions / sizeof *functions };

#endif
