// What bench/cpu.py compares the target `cpu` with: the loops that one would write by hand,
// compiled with -O3 -march=native -fopenmp and without -ffast-math. All tensors are dense and
// row-major.
//
// `_libm` calls the C library's functions, which stops the compiler from vectorising; the others
// have exp and erf as polynomials of about the accuracy that the language asks for (2 ulp), so that
// every loop is vectors.
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static inline float bits_float(uint32_t u) {
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

// 2^n * p(r), x = n ln 2 + r; in [-87, 88].
static inline float fast_exp(float x) {
    x = x < -87.0f ? -87.0f : x;
    x = x > 88.0f ? 88.0f : x;
    float n = x * 1.44269504f + 12582912.0f;
    uint32_t u;
    memcpy(&u, &n, sizeof u);
    n -= 12582912.0f;
    float r = fmaf(n, -0.693145752f, x);
    r = fmaf(n, -1.42860677e-6f, r);
    float p = 1.98756912e-4f;
    p = fmaf(p, r, 1.39819994e-3f);
    p = fmaf(p, r, 8.33345205e-3f);
    p = fmaf(p, r, 4.16657962e-2f);
    p = fmaf(p, r, 1.66666657e-1f);
    p = fmaf(p, r, 0.5f);
    p = fmaf(p, r * r, r) + 1.0f;
    return p * bits_float((u + 127) << 23);
}

// Abramowitz and Stegun 7.1.26 has an absolute error of 1.5e-7.
static inline float fast_erf(float x) {
    float a = fabsf(x), t = 1.0f / fmaf(0.3275911f, a, 1.0f);
    float p = fmaf(t, 1.061405429f, -1.453152027f);
    p = fmaf(t, p, 1.421413741f);
    p = fmaf(t, p, -0.284496736f);
    p = fmaf(t, p, 0.254829592f);
    float r = 1.0f - p * t * fast_exp(-a * a);
    return x < 0 ? -r : r;
}

static inline float from_bf16(uint16_t x) {
    return bits_float((uint32_t)x << 16);
}
static inline uint16_t to_bf16(float f) {
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    uint32_t nan = (u & 0x7fffffffu) > 0x7f800000u;
    return nan ? 0x7fc0 : (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

static inline float same(float x) {
    return x;
}

// --- rows, in every type -----------------------------------------------------------------------

#define ROWS(T, NAME, LOAD, STORE, EXP)                                                            \
    void softmax_##NAME(const T *x, T *y, long m, long n) {                                        \
        _Pragma("omp parallel for") for (long i = 0; i < m; i++) {                                 \
            const T *a = x + i * n;                                                                \
            T *r = y + i * n;                                                                      \
            float most = -INFINITY, sum = 0, e[n];                                                 \
            _Pragma("omp simd reduction(max : most)") for (long j = 0; j < n; j++) most =          \
                LOAD(a[j]) > most ? LOAD(a[j]) : most;                                             \
            _Pragma("omp simd reduction(+ : sum)") for (long j = 0; j < n; j++) {                  \
                e[j] = EXP(LOAD(a[j]) - most);                                                     \
                sum += e[j];                                                                       \
            }                                                                                      \
            float scale = 1 / sum;                                                                 \
            _Pragma("omp simd") for (long j = 0; j < n; j++) r[j] = STORE(e[j] * scale);           \
        }                                                                                          \
    }
ROWS(float, f32, same, same, fast_exp)
ROWS(float, f32_libm, same, same, expf)
ROWS(uint16_t, bf16, from_bf16, to_bf16, fast_exp)

#define LAYERNORM(T, NAME, LOAD, STORE)                                                            \
    void layernorm_##NAME(const T *x, const T *w, const T *b, T *y, long m, long n, float eps) {   \
        _Pragma("omp parallel for") for (long i = 0; i < m; i++) {                                 \
            const T *a = x + i * n;                                                                \
            T *r = y + i * n;                                                                      \
            float sum = 0, square = 0;                                                             \
            _Pragma("omp simd reduction(+ : sum)") for (long j = 0; j < n; j++) sum += LOAD(a[j]); \
            float mean = sum / (float)n;                                                           \
            _Pragma("omp simd reduction(+ : square)") for (long j = 0; j < n; j++) {               \
                float d = LOAD(a[j]) - mean;                                                       \
                square += d * d;                                                                   \
            }                                                                                      \
            float scale = 1 / sqrtf(square / (float)n + eps);                                      \
            _Pragma("omp simd") for (long j = 0; j < n; j++) r[j] =                                \
                STORE((LOAD(a[j]) - mean) * scale * LOAD(w[j]) + LOAD(b[j]));                      \
        }                                                                                          \
    }
LAYERNORM(float, f32, same, same)
LAYERNORM(uint16_t, bf16, from_bf16, to_bf16)

#define BIAS_GELU(T, NAME, LOAD, STORE, ERF)                                                       \
    void bias_gelu_##NAME(const T *x, const T *b, T *y, long m, long n) {                          \
        _Pragma("omp parallel for") for (long i = 0; i < m; i++) {                                 \
            const T *a = x + i * n;                                                                \
            T *r = y + i * n;                                                                      \
            _Pragma("omp simd") for (long j = 0; j < n; j++) {                                     \
                float z = LOAD(a[j]) + LOAD(b[j]);                                                 \
                r[j] = STORE(0.5f * z * (1 + ERF(z * 0.70710678f)));                               \
            }                                                                                      \
        }                                                                                          \
    }
BIAS_GELU(float, f32, same, same, fast_erf)
BIAS_GELU(float, f32_libm, same, same, erff)
BIAS_GELU(uint16_t, bf16, from_bf16, to_bf16, fast_erf)

// --- convolution, bias, ReLU, 2x2 pool: im2col and a product by the BLAS that the caller has ----

// cblas_sgemm's arguments; 101: row-major, 111: as it is, 112: transposed
typedef void Sgemm(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a,
                   int lda, const float *b, int ldb, float beta, float *c, int ldc);

typedef struct Conv {
    long batch, h, w, c, k, r, s, pad;
} Conv;

static void im2col(const Conv *v, const float *x, long p, long q, float *col) {
#pragma omp parallel for
    for (long i = 0; i < p; i++)
        for (long j = 0; j < q; j++)
            for (long r = 0; r < v->r; r++)
                for (long s = 0; s < v->s; s++) {
                    long y = i + r - v->pad, z = j + s - v->pad;
                    float *to = col + (((i * q + j) * v->r + r) * v->s + s) * v->c;
                    if (y >= 0 && y < v->h && z >= 0 && z < v->w)
                        memcpy(to, x + (y * v->w + z) * v->c, (size_t)v->c * sizeof *to);
                    else
                        memset(to, 0, (size_t)v->c * sizeof *to);
                }
}

static inline float most(float a, float b) {
    return a > b ? a : b;
}

// x[batch, h, w, c], f[k, r, s, c], b[k] -> y[batch, p/2, q/2, k]; false: no memory
int conv_relu_pool(const Conv *v, Sgemm *sgemm, const float *x, const float *f, const float *b,
                   float *y) {
    long p = v->h + 2 * v->pad - v->r + 1, q = v->w + 2 * v->pad - v->s + 1;
    long depth = v->r * v->s * v->c, u = p / 2, w = q / 2;
    static float *col, *out;
    static long room;
    if (room < p * q * (depth + v->k)) { // kept from call to call: its pages are not what is timed
        free(col);
        room = p * q * (depth + v->k);
        col = malloc((size_t)room * sizeof *col);
        out = col ? col + p * q * depth : NULL;
    }
    if (!col)
        return 0;
    for (long n = 0; n < v->batch; n++) {
        im2col(v, x + n * v->h * v->w * v->c, p, q, col);
        sgemm(101, 111, 112, (int)(p * q), (int)v->k, (int)depth, 1, col, (int)depth, f, (int)depth,
              0, out, (int)v->k);
#pragma omp parallel for
        for (long i = 0; i < u; i++)
            for (long j = 0; j < w; j++) {
                const float *a = out + (2 * i * q + 2 * j) * v->k, *c = a + q * v->k;
                float *to = y + ((n * u + i) * w + j) * v->k;
                for (long k = 0; k < v->k; k++)
                    to[k] = most(most(most(a[k], a[v->k + k]), most(c[k], c[v->k + k])) + b[k], 0);
            }
    }
    return 1;
}
