// `precision` of products: tests/corpus/frontend/precision.fk.
//
// Bounds. Operands rounded to 10 bits of mantissa err by at most 2^-11 each, a product of two by
// (2^-10 + 2^-22)|a||b|; K additions in f32 err by at most K 2^-24 times the sum of |a||b|.
#include "tests/e2e_corpus.h"

enum { M = 70, N = 50, K = 100 };

static const Corpus precision = {.file = "precision.fk"};

// The largest error in units of the sum of |a||b|.
static double worst_error(const Array *a, const Array *b, const Array *c) {
    double worst = 0;
    for (int i = 0; i < M; i++)
        for (int j = 0; j < N; j++) {
            double sum = 0, size = 0;
            for (int k = 0; k < K; k++) {
                double p = array_get(a, i * K + k) * array_get(b, k * N + j);
                sum += p;
                size += fabs(p);
            }
            worst = fmax(worst, fabs(array_get(c, i * N + j) - sum) / size);
        }
    return worst;
}

Test(e2e_products, precision) {
    static const char *const kernels[] = {"tf32", "tf32_tiled", "tf32x3", "ieee"};
    Array *a = array_new(DT_F32, M, K, -1), *b = array_new(DT_F32, K, N, -1);
    array_fill(a, 1);
    array_fill(b, 2);
    FOR_DEVICES(on) {
        for (int i = 0; i < 4; i++) {
            Array *c = array_new(DT_F32, M, N, -1);
            bool rounds = i < 2;
            corpus_run(&precision, kernels[i], on,
                       ARGS(arg_tensor(a), arg_tensor(b), arg_tensor(c)));
            double error = worst_error(a, b, c), bound = K * 0x1p-24 + (rounds ? 0x1p-10 : 0);
            cr_expect(error <= bound, "%s on %s: %g, not %g", kernels[i], on, error, bound);
            // the CPU has no tf32
            if (rounds && strcmp(on, "cpu") != 0)
                cr_expect(error > 0x1p-16, "%s on %s: %g", kernels[i], on, error);
            free(c);
        }
    }
    free(a), free(b);
}

Test(e2e_products, ptx) {
    char *ptx = corpus_ptx(&precision, "tf32");
    cr_expect(strstr(ptx, "mma.sync.aligned.m16n8k8.row.col.f32.tf32"), "%s", ptx);
    free(ptx);
    ptx = corpus_ptx(&precision, "ieee");
    cr_expect(!strstr(ptx, "mma.sync"));
    free(ptx);
    free(corpus_ptx(&precision, "tf32x3"));
}
