// Elementwise functions on the devices eval and cpu against MPFR, in ulps of the result's type.
//
// Inputs: all f16 and all bf16 numbers; f32 and f64 numbers of every exponent, subnormal ones,
// around 0, 1 and multiples of pi/2, infinities and NaN, from a fixed seed. FUSE_ULPS=full in the
// environment takes 10^6 of f32 and 10^5 of f64. Functions of two and three numbers get shuffles of
// the same. The largest errors are printed as a table. Of f64 sim has functions of its own,
// a GPU's; of the others it has cpu's.
//
// An ulp of a type is the distance of its neighbouring numbers at the exact value; infinity counts
// as the number after the largest. 16-bit results are those of f32 rounded once.
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/fuse_rt.h"
#include "include/fusec.h"
#include "tests/ulps_functions.h"

typedef struct Format {
    const char *name;
    int bits;
    int precision;    // with the leading 1
    int exponent_min; // of the least normal number
} Format;

static const Format f16 = {"f16", 16, 11, -14}, bf16 = {"bf16", 16, 8, -126},
                    f32 = {"f32", 32, 24, -126}, f64 = {"f64", 64, 53, -1022};

enum { CHUNK = 1 << 14, OPERANDS_MAX = 3, EXACT_BITS = 96 };

// --- numbers of a format, by their definition ---

static double value_of(const Format *t, uint64_t code) {
    int m = t->precision - 1;
    uint64_t field = code >> m & ((UINT64_C(1) << (t->bits - t->precision)) - 1);
    double mantissa = (double)(code & ((UINT64_C(1) << m) - 1)), x;
    if (field == (UINT64_C(1) << (t->bits - t->precision)) - 1)
        x = mantissa != 0 ? (double)NAN : (double)INFINITY;
    else if (field == 0)
        x = ldexp(mantissa, t->exponent_min - m);
    else
        x = ldexp(mantissa + ldexp(1, m), t->exponent_min - m + (int)field - 1);
    return code >> (t->bits - 1) & 1 ? -x : x;
}

static uint64_t load(const Format *t, const void *from, int64_t i) {
    uint64_t code = 0;
    memcpy(&code, (const char *)from + i * t->bits / 8, (size_t)t->bits / 8);
    return code;
}

static void store(const Format *t, void *to, int64_t i, uint64_t code) {
    memcpy((char *)to + i * t->bits / 8, &code, (size_t)t->bits / 8);
}

static long double ulp_at(const Format *t, long double x) {
    int e = x == 0 || isinf(x) ? t->exponent_min : ilogbl(x);
    return ldexpl(1, (e < t->exponent_min ? t->exponent_min : e) - t->precision + 1);
}

// The number that infinity stands for: after the largest.
static long double top_of(const Format *t) {
    return ldexpl(1, 2 - t->exponent_min);
}

// Error of got in ulps at the larger of want and scale; INFINITY where no number would do.
static double ulps(const Format *t, double got, long double want, long double scale) {
    if (isnan(want) || isnan(got))
        return isnan(want) && isnan(got) ? 0 : (double)INFINITY;
    if (want == 0 && got == 0) // the sign of an exact zero is part of it
        return signbit(want) == signbit(got) ? 0 : (double)INFINITY;
    long double top = top_of(t), g = isinf(got) ? copysignl(top, got) : (long double)got;
    long double w = fabsl(want) > top ? copysignl(top, want) : want;
    long double size = fmaxl(fabsl(w), fminl(fabsl(scale), top));
    return (double)(fabsl(g - w) / ulp_at(t, size >= top ? top / 2 : size));
}

// --- inputs ---

static uint64_t next(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    uint64_t x = *state;
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
    return x ^ x >> 32;
}

static uint64_t code_of(const Format *t, double x) {
    uint64_t code = 0;
    if (t->bits == 64) {
        memcpy(&code, &x, 8);
    } else {
        float f = (float)x;
        memcpy(&code, &f, 4);
    }
    return code;
}

// Number i of n in the j-th group of eight neighbours: vectors get numbers of one kind.
static uint64_t input_code(const Format *t, int64_t i, uint64_t *seed) {
    static const double special[] = {
        0,     1,     2,     0.5,      3,     INFINITY,       NAN,
        1e6,   88.7,  89,    87.3,     104,   103.9,          128,
        149,   150,   126,   0.921875, 4.1,   1e30,           16777216,
        1e300, 709.8, 745.2, 1e-310,   1e-45, 1.17549435e-38, 3.4028235e38};
    enum { SPECIALS = sizeof special / sizeof *special };
    int m = t->precision - 1;
    uint64_t random = next(seed), sign = random >> 63 << (t->bits - 1);
    uint64_t last = random >> 40 & 7; // 0..7: some ulps
    double turn = (double)(random >> 8 & 0xffff) * (random >> 61 & 1 ? 1 : 1e-3);
    if (i < 2 * SPECIALS)
        return code_of(t, i % 2 ? -special[i / 2] : special[i / 2]);
    switch (i / 8 % 8) {
    case 0: // around multiples of pi/2
        return (code_of(t, floor(turn) * 1.57079632679489661923) + last - 3) ^ sign;
    case 1: // around 1 and -1
        return (code_of(t, 1) + last * last * last - 60) ^ sign;
    case 2:
        return code_of(t, ((double)(random >> 11) * 0x1p-53 - 0.5) * 2);
    case 3:
        return code_of(t, ((double)(random >> 11) * 0x1p-53 - 0.5) * 20);
    case 4:
        return code_of(t,
                       ((double)(random >> 11) * 0x1p-53 - 0.5) * 2 * (t->bits == 64 ? 750 : 110));
    case 5: // subnormal and the first normal ones
        return (random & ((UINT64_C(2) << m) - 1)) ^ sign;
    default: // every exponent in turn
        break;
    }
    uint64_t exponents = UINT64_C(1) << (t->bits - t->precision);
    uint64_t field = (uint64_t)(i / 8 / 4) % exponents;
    return field << m | (random & ((UINT64_C(1) << m) - 1)) | sign;
}

// Operand `operand` of the numbers from..from+CHUNK-1.
static void fill(const Format *t, int operand, int64_t from, void *to) {
    for (int64_t k = 0; k < CHUNK; k++) {
        int64_t i = from + k;
        uint64_t seed = (uint64_t)i * OPERANDS_MAX + (uint64_t)operand + 1, code;
        next(&seed);
        if (t->bits == 16)
            code = operand == 0 ? (uint64_t)i : next(&seed);
        else if (operand == 0)
            code = input_code(t, i, &seed);
        else
            code = input_code(t, (int64_t)(next(&seed) >> 20), &seed);
        store(t, to, k, code);
    }
}

// --- running ---

static const char *const devices[] = {"eval", "cpu", "sim:sm_90a"};
enum { DEVICES = 3 };

// y[i] is the value of function number i.
static char *kernel_text(const Format *t) {
    char *text = calloc(1, 1 << 14);
    int at = sprintf(text,
                     "import std.math;\nimport std.nn;\n"
                     "kernel all(a: %s[N], b: %s[N], c: %s[N]) -> (out: %s[%d, N]) {\n"
                     "    parallel n in tiles(N) {\n"
                     "        let x = a[n], y = b[n], z = c[n];\n",
                     t->name, t->name, t->name, t->name, FUNCTIONS);
    for (int i = 0; i < FUNCTIONS; i++) {
        at += sprintf(text + at, "        out[%d, n] = ", i);
        for (const char *s = functions[i].text; *s; s++) // T is the type
            at += *s == 'T' ? sprintf(text + at, "%s", t->name) : sprintf(text + at, "%c", *s);
        at += sprintf(text + at, ";\n");
    }
    sprintf(text + at, "    }\n}\n");
    return text;
}

typedef struct Run {
    const Format *type;
    int devices; // the first ones
    FuseDevice *device[DEVICES];
    FuseModule *module[DEVICES];
    FuseKernel *kernel[DEVICES];
    void *in[OPERANDS_MAX], *out[DEVICES];
    double worst[FUNCTIONS][DEVICES];
    int64_t errors; // results outside their bounds
} Run;

static void run_open(Run *r, const Format *t) {
    static const FuseCompilerApi compiler = FUSE_COMPILER_API;
    FuseRtDeviceOptions options = {.compiler = &compiler, .threads = 1};
    FuseRtBuild build = {.no_perf_notes = true};
    char *text = kernel_text(t);
    *r = (Run){.type = t, .devices = t == &f64 ? DEVICES : DEVICES - 1};
    for (int d = 0; d < r->devices; d++) {
        cr_assert_eq(fuse_rt_device_open(devices[d], &options, &r->device[d]), FUSE_RT_OK, "%s",
                     fuse_rt_last_error());
        FuseRtStatus status = fuse_rt_module_from_source(r->device[d], "ulps.fk", text,
                                                         strlen(text), &build, &r->module[d]);
        cr_assert_eq(status, FUSE_RT_OK, "%s: %s", devices[d], fuse_rt_last_error());
        cr_assert_eq(fuse_rt_kernel_find(r->module[d], NULL, &r->kernel[d]), FUSE_RT_OK);
        r->out[d] = malloc((size_t)FUNCTIONS * CHUNK * (size_t)t->bits / 8);
    }
    for (int i = 0; i < OPERANDS_MAX; i++)
        r->in[i] = malloc(CHUNK * (size_t)t->bits / 8);
    free(text);
}

static void run_close(Run *r) {
    for (int d = 0; d < r->devices; d++) {
        fuse_rt_module_close(r->module[d]);
        fuse_rt_device_close(r->device[d]);
        free(r->out[d]);
    }
    for (int i = 0; i < OPERANDS_MAX; i++)
        free(r->in[i]);
}

static void launch(Run *r, int d) {
    const Format *t = r->type;
    uint8_t code = t == &bf16 ? kDLBfloat : kDLFloat;
    int64_t shape[2] = {FUNCTIONS, CHUNK};
    DLTensor tensor[OPERANDS_MAX + 1];
    FuseRtArg args[OPERANDS_MAX + 1];
    for (int i = 0; i <= OPERANDS_MAX; i++) {
        bool out = i == OPERANDS_MAX;
        tensor[i] = (DLTensor){.data = out ? r->out[d] : r->in[i],
                               .device = {kDLCPU, 0},
                               .ndim = out ? 2 : 1,
                               .dtype = {code, (uint8_t)t->bits, 1},
                               .shape = out ? shape : shape + 1};
        args[i] = (FuseRtArg){.kind = FUSE_RT_TENSOR, .tensor = &tensor[i]};
    }
    cr_assert_eq(fuse_rt_launch(r->kernel[d], NULL, OPERANDS_MAX + 1, args, NULL), FUSE_RT_OK, "%s",
                 fuse_rt_last_error());
}

// --- comparing ---

// A 16-bit result has the f32 result's error, in its own ulps, and that of rounding it.
static double bound_of(const Format *t, const Function *f) {
    if (t == &f64)
        return f->f64;
    if (t == &f32 || f->f32 == 0)
        return f->f32;
    return 0.5 + ldexp(f->f32, t->precision - f32.precision);
}

static void compare_one(Run *r, int f, int64_t k, mpfr_t *x, mpfr_ptr y) {
    const Format *t = r->type;
    double in[OPERANDS_MAX];
    for (int i = 0; i < functions[f].operands; i++) {
        in[i] = value_of(t, load(t, r->in[i], k));
        mpfr_set_d(x[i], in[i], MPFR_RNDN);
    }
    functions[f].exact(y, x);
    long double want = mpfr_get_ld(y, MPFR_RNDN);
    long double scale = functions[f].of_operand ? (long double)in[0] : 0;
    long double allowed = functions[f].tiny ? ldexpl(1, functions[f].tiny) : 0;
    for (int d = 0; d < r->devices; d++) {
        double got = value_of(t, load(t, r->out[d], (int64_t)f * CHUNK + k));
        double u = fabsl((long double)got - want) <= allowed ? 0 : ulps(t, got, want, scale);
        if (u > bound_of(t, &functions[f]) && r->errors++ < 60)
            printf("%s %s on %s of %a, %a, %a: %a, not %La (%.4g ulps)\n", t->name,
                   functions[f].text, devices[d], in[0], functions[f].operands > 1 ? in[1] : 0,
                   functions[f].operands > 2 ? in[2] : 0, got, want, u);
        if (u > r->worst[f][d])
            r->worst[f][d] = u;
    }
}

static void compare_chunk(Run *r, mpfr_t *x, mpfr_ptr y) {
    for (int f = 0; f < FUNCTIONS; f++)
        for (int64_t k = 0; k < CHUNK; k++)
            compare_one(r, f, k, x, y);
}

static void print_table(const Run *r) {
    printf("%-20s %8s", r->type->name, "bound");
    for (int d = 0; d < r->devices; d++)
        printf(" %10s", devices[d]);
    for (int f = 0; f < FUNCTIONS; f++) {
        printf("\n%-20s %8.4f", functions[f].text, bound_of(r->type, &functions[f]));
        for (int d = 0; d < r->devices; d++)
            printf(" %10.4f", r->worst[f][d]);
    }
    printf("\n");
}

static void check(const Format *t, int64_t count) {
    Run r;
    run_open(&r, t);
    mpfr_t x[OPERANDS_MAX], y;
    for (int i = 0; i < OPERANDS_MAX; i++)
        mpfr_init2(x[i], 53);
    mpfr_init2(y, EXACT_BITS);
    for (int64_t from = 0; from < count; from += CHUNK) {
        for (int i = 0; i < OPERANDS_MAX; i++)
            fill(t, i, from, r.in[i]);
        for (int d = 0; d < r.devices; d++)
            launch(&r, d);
        compare_chunk(&r, x, y);
    }
    print_table(&r);
    fflush(stdout);
    for (int i = 0; i < OPERANDS_MAX; i++)
        mpfr_clear(x[i]);
    mpfr_clear(y);
    mpfr_free_cache();
    run_close(&r);
    cr_assert_eq(r.errors, 0, "%s: %lld results are outside their bounds", t->name,
                 (long long)r.errors);
}

static bool is_full(void) {
    const char *value = getenv("FUSE_ULPS");
    return value && strcmp(value, "full") == 0;
}

Test(ulps, f16) {
    check(&f16, 1 << 16);
}

Test(ulps, bf16) {
    check(&bf16, 1 << 16);
}

Test(ulps, f32) {
    check(&f32, is_full() ? 1000000 : 2 * CHUNK);
}

Test(ulps, f64) {
    check(&f64, is_full() ? 100000 : CHUNK);
}
