// Functions and casts of the host target against the C library in double and against
// lang/base/numeric.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lang/base/numeric.h"
#include "tests/host_build.h"

enum { N = 1 << 15 };
typedef void CpuEntry(void *const *args, int64_t lo, int64_t hi, const char **message);

typedef struct Case {
    OpKind kind;
    DType from, to; // OP_CAST
} Case;

static Access plain(DType dtype) {
    int bytes = (int)dtype_bits(dtype) / 8;
    return (Access){.dtype = dtype, .width = 1, .align = bytes};
}

// y[i] = f(x[i], z[i]), or the cast of x[i]
static void unary_body(Build *b) {
    Target *t = &b->t;
    const Case *c = b->user;
    Access in = plain(c->from), to = plain(c->to);
    Lane none = {NULL}, x[3], y;
    for (int i = 0; i < 3; i++)
        t->ops->load_global(t, &in, build_lane_ptr(b, i, (int)dtype_bits(c->from) / 8), none, NULL,
                            &x[i]);
    if (c->kind == OP_CAST)
        t->ops->cast(t, c->from, c->to, 1, x, &y);
    else
        y = t->ops->arith(t, c->kind, 0, c->from, 0, x);
    t->ops->store_global(t, &to, build_lane_ptr(b, 3, (int)dtype_bits(c->to) / 8), none, &y);
}

static void run_case(const Case *c, const void *x, const void *z, void *y, int n) {
    Built built = build_kernel("cpu", 2, 4, 0, unary_body, (void *)c);
    const void *const data[4] = {x, z, z, y};
    void *args[4];
    for (int i = 0; i < 4; i++)
        args[i] = (void *)&data[i];
    const char *message = NULL;
    ((CpuEntry *)(uintptr_t)built.entry)(args, 0, n / target_find("cpu")->lanes, &message);
    built_free(&built);
}

static uint64_t next(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 16;
}

static const float specials[] = {
    0.0f,   -0.0f,   1.0f,    -1.0f,           2.0f,       0.5f,     INFINITY, -INFINITY,
    NAN,    1e-45f,  -1e-45f, 1.17549435e-38f, 3.4e38f,    -3.4e38f, 3.0f,     -3.0f,
    1e6f,   -1e6f,   88.7f,   89.0f,           -87.3f,     -103.9f,  -104.5f,  127.99f,
    128.0f, -149.0f, -150.0f, 0.921875f,       0.9218751f, 4.1f,     1e30f,    16777216.0f};
enum { SPECIALS = sizeof specials / sizeof specials[0] };

// Half of them any bits, half of moderate size, the special ones first.
static void fill(float *x, uint64_t seed, float range) {
    for (int i = 0; i < N; i++) {
        uint32_t bits = (uint32_t)next(&seed);
        if (i % 2)
            x[i] = ((float)(bits >> 8) / (float)(1 << 23) - 1) * range;
        else
            memcpy(&x[i], &bits, 4);
        if (i < SPECIALS)
            x[i] = specials[i];
    }
}

// Distance in units of the last place of the exact result.
static double ulps(float got, double want) {
    if (isnan(want))
        return isnan(got) ? 0 : INFINITY;
    float rounded = (float)want;
    if (got == rounded)
        return signbit(got) == signbit(rounded) || want != 0 ? 0 : INFINITY;
    if (isinf(got) || isinf(rounded) || isnan(got))
        return fabs(want) > 3.4028e38 && fabs((double)got) > 3.4028e38 ? 1 : INFINITY;
    int e;
    frexp(want, &e);
    double ulp = ldexp(1, (e < -125 ? -125 : e) - 24);
    return fabs(got - want) / ulp;
}

static double rsqrt_of(double x) {
    return 1 / sqrt(x);
}
static double rcp_of(double x) {
    return 1 / x;
}

static void check_unary(OpKind kind, double (*f)(double), float range) {
    float *x = malloc(N * 4), *y = malloc(N * 4);
    fill(x, 1, range);
    run_case(&(Case){kind, DT_F32, DT_F32}, x, x, y, N);
    double worst = 0;
    for (int i = 0; i < N; i++) {
        double u = ulps(y[i], f(x[i]));
        cr_assert_leq(u, 2.0, "%s(%a) = %a, not %a", op_info(kind)->text, x[i], y[i], f(x[i]));
        worst = u > worst ? u : worst;
    }
    cr_log_info("%s: %.3f ulp", op_info(kind)->text, worst);
    free(x);
    free(y);
}

Test(host_math, exponentials) {
    check_unary(OP_EXP, exp, 100);
    check_unary(OP_EXP2, exp2, 150);
}
Test(host_math, logarithms) {
    check_unary(OP_LOG, log, 4);
    check_unary(OP_LOG2, log2, 4);
}
Test(host_math, trigonometric) {
    check_unary(OP_SIN, sin, 100);
    check_unary(OP_COS, cos, 1e5f);
}
Test(host_math, tanh_erf) {
    check_unary(OP_TANH, tanh, 10);
    check_unary(OP_ERF, erf, 5);
}
Test(host_math, roots) {
    check_unary(OP_SQRT, sqrt, 100);
    check_unary(OP_RSQRT, rsqrt_of, 100);
    check_unary(OP_RCP, rcp_of, 100);
}

static void check_binary(OpKind kind, double (*f)(double, double), float range_x, float range_y) {
    float *x = malloc(N * 4), *z = malloc(N * 4), *y = malloc(N * 4);
    fill(x, 1, range_x);
    fill(z, 2, range_y);
    for (int i = 0; i < SPECIALS * SPECIALS && i < N; i++) {
        x[i] = specials[i / SPECIALS];
        z[i] = specials[i % SPECIALS];
    }
    run_case(&(Case){kind, DT_F32, DT_F32}, x, z, y, N);
    for (int i = 0; i < N; i++)
        cr_assert_leq(ulps(y[i], f(x[i], z[i])), 2.0, "%s(%a, %a) = %a, not %a",
                      op_info(kind)->text, x[i], z[i], y[i], f(x[i], z[i]));
    free(x);
    free(z);
    free(y);
}

static double max_of(double a, double b) {
    return isnan(a) || isnan(b) ? NAN : a > b || (a == b && !signbit(a)) ? a : b;
}
static double min_of(double a, double b) {
    return isnan(a) || isnan(b) ? NAN : a < b || (a == b && signbit(a)) ? a : b;
}

Test(host_math, binary) {
    check_binary(OP_POW, pow, 10, 20);
    check_binary(OP_MAX, max_of, 10, 10);
    check_binary(OP_MIN, min_of, 10, 10);
    check_binary(OP_REM, fmod, 100, 3);
}

// f64 goes to the C library.
Test(host_math, doubles) {
    double x[16], y[16];
    for (int i = 0; i < 16; i++)
        x[i] = i / 4.0 + 0.1;
    run_case(&(Case){OP_EXP, DT_F64, DT_F64}, x, x, y, 16);
    for (int i = 0; i < 16; i++)
        cr_assert_float_eq(y[i], exp(x[i]), 1e-12);
}

// --- casts -------------------------------------------------------------------------------------

static const DType all[] = {DT_BOOL, DT_I8,  DT_I16,  DT_I32, DT_I64, DT_U8,   DT_U16, DT_U32,
                            DT_U64,  DT_F16, DT_BF16, DT_F32, DT_F64, DT_E4M3, DT_E5M2};
enum { TYPES = sizeof all / sizeof all[0], M = 4096 };

// Random bits, but for wide floats half of them where small floats round.
static void sample(DType type, void *data) {
    uint64_t seed = 7;
    for (int i = 0; i < M; i++) {
        uint64_t bits = next(&seed) ^ next(&seed) << 40;
        Scalar s = scalar_from_bits(
            type, dtype_bits(type) == 64 ? bits : bits & ((UINT64_C(1) << dtype_bits(type)) - 1));
        if (dtype_is_float(type) && dtype_bits(type) >= 32 && i % 2)
            s = scalar_float(type, ldexp((double)(int64_t)(bits >> 20), -(int)(bits % 70)));
        if (dtype_is_float(type) && dtype_bits(type) >= 32 && i % 4 == 3) // halfway between bf16s
            s = scalar_float(type,
                             ldexp((double)((bits & 0x1ff) * 2 + 1), (int)(bits >> 9) % 20 - 24) +
                                 ldexp((double)((int)(bits >> 30) % 3 - 1), -60));
        if (type == DT_BOOL)
            s = scalar_int(DT_BOOL, (int64_t)(bits & 1));
        if (!dtype_is_float(type) && dtype_bits(type) >= 32 && i % 2)
            s = scalar_int(type, (int64_t)(bits >> (bits & 31)));
        scalar_store(data, i, s);
    }
}

// One kernel casts to every type.
static void casts_body(Build *b) {
    Target *t = &b->t;
    DType from = *(const DType *)b->user;
    Access in = plain(from);
    Lane none = {NULL}, x, y;
    t->ops->load_global(t, &in, build_lane_ptr(b, TYPES, (int)dtype_bits(from) / 8), none, NULL,
                        &x);
    for (int i = 0; i < TYPES; i++) {
        Access to = plain(all[i]);
        t->ops->cast(t, from, all[i], 1, &x, &y);
        t->ops->store_global(t, &to, build_lane_ptr(b, i, (int)dtype_bits(all[i]) / 8), none, &y);
    }
}

static void check_casts(DType from) {
    static uint64_t x[M], y[TYPES][M];
    sample(from, x);
    void *data[TYPES + 1], *args[TYPES + 1];
    for (int i = 0; i <= TYPES; i++) {
        data[i] = i < TYPES ? y[i] : x;
        args[i] = &data[i];
    }
    Built built = build_kernel("cpu", 2, TYPES + 1, 0, casts_body, &from);
    const char *message = NULL;
    ((CpuEntry *)(uintptr_t)built.entry)(args, 0, M / target_find("cpu")->lanes, &message);
    built_free(&built);
    for (int b = 0; b < TYPES; b++)
        for (int i = 0; i < M && all[b] != from; i++) {
            Scalar in = scalar_load(from, x, i), want = scalar_cast(in, all[b]);
            Scalar got = scalar_load(all[b], y[b], i);
            bool same =
                scalar_is_nan(want) ? scalar_is_nan(got) : scalar_bits(want) == scalar_bits(got);
            cr_assert(same, "%s to %s: %a (%llx) gives %llx, not %llx", dtype_name(from),
                      dtype_name(all[b]), scalar_to_f64(in), (unsigned long long)scalar_bits(in),
                      (unsigned long long)scalar_bits(got), (unsigned long long)scalar_bits(want));
        }
}

Test(host_math, casts, .timeout = 300) {
    for (int a = 0; a < TYPES; a++)
        check_casts(all[a]);
}

// Arithmetic on f16 and bf16 is rounded once.
Test(host_math, narrow_arithmetic) {
    static const DType types[] = {DT_F16, DT_BF16};
    for (int k = 0; k < 2; k++) {
        uint16_t x[M], z[M], y[M];
        uint64_t seed = 3;
        for (int i = 0; i < M; i++) {
            x[i] = (uint16_t)next(&seed);
            z[i] = (uint16_t)next(&seed);
        }
        run_case(&(Case){OP_MUL, types[k], types[k]}, x, z, y, M);
        for (int i = 0; i < M; i++) {
            float a = (float)scalar_load(types[k], x, i).u.f;
            float b = (float)scalar_load(types[k], z, i).u.f;
            Scalar want = scalar_float(types[k], a * b), got = scalar_load(types[k], y, i);
            cr_assert(scalar_is_nan(want) ? scalar_is_nan(got)
                                          : scalar_bits(want) == scalar_bits(got),
                      "%a * %a", a, b);
        }
    }
}
