// Calls the entries of kernels.fk, linked in as an object for this machine, and compares them with
// plain C in double. Each with several shapes: whole vectors, edges, one element. The entries are
// those of the variants for dense, aligned tensors (v0, where rows are whole vectors) and for any
// argument (v1). The order of their parameters: ir/abi.h.
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void Entry(void *const *args, int64_t lo, int64_t hi, const char **message);
Entry rows_v0__0, rows_v1__0, functions_v0__0, functions_v1__0, small_v0__0, small_v1__0,
    product_v0__0, product_v1__0;

enum { ROOM = 4096, GUARD = 64 };
static _Alignas(64) float x[ROOM], w[ROOM], y[ROOM];
static _Alignas(64) uint16_t h[ROOM], b[ROOM], z[ROOM];
static int failures;

// --- 16-bit types ------------------------------------------------------------------------------

static float bf16(uint16_t bits) {
    uint32_t u = (uint32_t)bits << 16;
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

static float f16(uint16_t bits) { // normal numbers and 0 only
    int e = bits >> 10 & 31, m = bits & 1023;
    float f = e ? ldexpf((float)(m + 1024), e - 25) : 0;
    return bits >> 15 ? -f : f;
}

// --- data, comparison --------------------------------------------------------------------------

static uint32_t noise(uint32_t i) {
    i = (i + 1) * 2654435761u;
    return (i ^ i >> 15) * 2246822519u;
}

static void fill(void) {
    for (uint32_t i = 0; i < ROOM; i++) {
        x[i] = (float)(int32_t)noise(i) * 0x1p-30f;
        w[i] = (float)(int32_t)noise(i + ROOM) * 0x1p-31f;
        h[i] = (uint16_t)((noise(i) & 0x83ff) | 15 << 10);
        b[i] = (uint16_t)((noise(i + 7) & 0x807f) | 127 << 7);
        y[i] = 777;
        z[i] = 0x7777;
    }
}

static void expect(const char *what, const char *shape, int i, double got, double want,
                   double allowed) {
    if (fabs(got - want) <= allowed)
        return;
    if (failures++ < 20)
        printf("%s %s, element %d: %.9g, not %.9g\n", what, shape, i, got, want);
}

static void expect_guard(const char *what, const char *shape, int n) {
    for (int i = n; i < n + GUARD; i++)
        if ((y[i] != 777 || z[i] != 0x7777) && failures++ < 20)
            printf("%s %s: wrote element %d, behind the end\n", what, shape, i);
}

// --- kernels -----------------------------------------------------------------------------------

typedef struct Matrix {
    void *data;
    int64_t stride[3];
} Matrix;

// Dense: the innermost stride is known to be 1 in v0 and not among its parameters.
static int add_tensor(void **args, int n, Matrix *m, int rank, int variant) {
    args[n++] = &m->data;
    for (int i = 0; i < rank - (variant == 0); i++)
        args[n++] = &m->stride[i];
    return n;
}

static const char *run(Entry *entry, void **args, int64_t grid) {
    const char *message = NULL;
    entry(args, 0, grid, &message);
    return message;
}

static void check_matrix(const char *what, Entry *entry, int variant, int64_t m, int64_t n) {
    void *args[16];
    char shape[64];
    snprintf(shape, sizeof shape, "v%d %dx%d", variant, (int)m, (int)n);
    fill();
    int is_small = strcmp(what, "small") == 0, count = 0;
    Matrix mx = {is_small ? (void *)h : x, {n, 1}}, mb = {b, {1}},
           my = {is_small ? (void *)z : y, {n, 1}};
    count = add_tensor(args, count, &mx, 2, variant);
    if (is_small)
        count = add_tensor(args, count, &mb, 1, variant);
    count = add_tensor(args, count, &my, 2, variant);
    args[count++] = &m;
    args[count++] = &n;
    if (run(entry, args, m))
        failures++;
    for (int i = 0; i < m * n; i++) {
        double v = x[i];
        if (is_small) {
            double want = (double)f16(h[i]) * bf16(b[i % n]) + 1;
            expect(what, shape, i, bf16(z[i]), want, fabs(want) * 0x1p-8);
        } else if (strcmp(what, "rows") == 0) {
            double sum = 0;
            for (int j = 0; j < n; j++)
                sum += exp((double)x[i / n * n + j]);
            expect(what, shape, i, y[i], exp(v) / sum, 1e-6);
        } else {
            double s = sin((double)(1000000 * x[i]));
            expect(what, shape, i, y[i], erf(v) + s + log(fabs(v) + 1) + tanh(v), 2e-6);
        }
    }
    expect_guard(what, shape, (int)(m * n));
}

static void check_product(Entry *entry, int variant, int64_t batch, int64_t m, int64_t n,
                          int64_t k) {
    void *args[24];
    char shape[64];
    snprintf(shape, sizeof shape, "v%d %dx%dx%dx%d", variant, (int)batch, (int)m, (int)n, (int)k);
    fill();
    Matrix mx = {x, {m * k, k, 1}}, mw = {w, {k * n, n, 1}}, my = {y, {m * n, n, 1}};
    int count = add_tensor(args, 0, &mx, 3, variant);
    count = add_tensor(args, count, &mw, 3, variant);
    count = add_tensor(args, count, &my, 3, variant);
    int64_t *scalars[] = {&batch, &m, &k, &n};
    for (int i = 0; i < 4; i++)
        args[count++] = scalars[i];
    if (run(entry, args, batch))
        failures++;
    for (int i = 0; i < batch * m * n; i++) {
        double want = 0, size = 0;
        int64_t at = i / (m * n), row = i / n % m, col = i % n;
        for (int64_t j = 0; j < k; j++) {
            double p = (double)x[(at * m + row) * k + j] * w[(at * k + j) * n + col];
            want += p;
            size += fabs(p);
        }
        expect("product", shape, i, y[i], want, size * (double)k * 0x1p-24 + 1e-30);
    }
    expect_guard("product", shape, (int)(batch * m * n));
}

int main(void) {
    static const int shapes[][2] = {{1, 1}, {3, 8}, {2, 200}, {5, 77}, {1, 1000}};
    for (int i = 0; i < 5; i++)
        for (int v = 0; v < 2; v++) {
            int m = shapes[i][0], n = shapes[i][1];
            if (v == 0 && n % 8)
                continue; // not this variant's
            check_matrix("rows", v ? rows_v1__0 : rows_v0__0, v, m, n);
            check_matrix("functions", v ? functions_v1__0 : functions_v0__0, v, m, n);
            check_matrix("small", v ? small_v1__0 : small_v0__0, v, m, n);
        }
    check_product(product_v0__0, 0, 2, 16, 32, 24);
    check_product(product_v0__0, 0, 1, 13, 40, 36);
    check_product(product_v1__0, 1, 2, 9, 19, 35);
    check_product(product_v1__0, 1, 1, 1, 1, 1);
    if (failures)
        printf("%d failures\n", failures);
    return failures != 0;
}
