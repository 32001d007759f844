// examples/softmax.fk, both kernels, on every device, type, shape and layout.
//
// Bound. With m the row's maximum (exact), d = x - m, u = 2^-24:
//     x - m errs by u|d|, which changes exp(d) by the factor 1 + u|d|;
//     exp errs by 2 ulps <= 4u of its value (SPEC, section 8);
//     so e = exp(d)(1 + t), |t| <= u(|d| + 4), below the normal numbers plus 2 * 2^-149.
// A sum of n positive terms in any order errs by (n - 1)u of itself beyond the terms' own errors,
// which contribute their mean weighted by the terms. The quotient adds u, or 2u where it is a
// product with a reciprocal. An online form (a running maximum) rescales the sum by a factor exp(m'
// - m) per tile; every rescaling is again a term's factor of error u(|m' - m| + 4) + u, and the
// distances add up to at most the row's range: with at most n / 32 tiles this is u(range + 5n/32)
// more in the sum.
#include "tests/e2e_support.h"

typedef struct Shape {
    int64_t m, n;
} Shape;

static const Shape shapes[] = {
#define SOFTMAX(m, n) {m, n},
#include "tests/e2e_cases.def"
};

static void reference_row(const Buffer *x, int64_t row, Reference r) {
    int64_t n = x->shape[1], at = row * n;
    double max = -INFINITY, min = INFINITY, sum = 0, sum_error = 0;
    for (int64_t j = 0; j < n; j++) {
        max = fmax(max, buffer_get(x, at + j));
        min = fmin(min, buffer_get(x, at + j));
    }
    for (int64_t j = 0; j < n; j++) {
        double d = buffer_get(x, at + j) - max, e = exp(d);
        sum += e;
        sum_error += e * U32 * (fabs(d) + 4);
    }
    double online = n > 32 ? U32 * (max - min + 5.0 * (double)n / 32) : 0;
    double relative = sum_error / sum + (double)(n - 1) * U32 + 2 * U32 + online;
    for (int64_t j = 0; j < n; j++) {
        double d = buffer_get(x, at + j) - max, y = exp(d) / sum;
        r.want[at + j] = y;
        double before = y * (relative + U32 * (fabs(d) + 4)) + 0x1p-148;
        r.bound[at + j] = store_error(x->dtype, y, before);
    }
}

static void check_case(const Loaded *l, int shape, int layout) {
    int64_t m = shapes[shape].m, n = shapes[shape].n;
    Buffer *x = buffer_new(layout_of(shape, layout, 0), l->dtype, 2, m, n);
    Buffer *y = buffer_new(layout_of(shape, layout, 1), l->dtype, 2, m, n);
    buffer_fill(x, 3, 6);
    buffer_fill_nan(y);
    buffer_seal(x);
    buffer_seal(y);
    Reference r = reference_new(m * n);
    for (int64_t i = 0; i < m && n > 0; i++)
        reference_row(x, i, r);
    FuseRtArg args[] = {{.name = "x", .kind = FUSE_RT_TENSOR, .tensor = &x->tensor},
                        {.name = "y", .kind = FUSE_RT_TENSOR, .tensor = &y->tensor}};
    char what[96];
    snprintf(what, sizeof what, "M = %lld, N = %lld, layout %s", (long long)m, (long long)n,
             e2e_layouts[layout].name);
    check_launch(l, what, 2, args, 1, &x, y, r);
    reference_free(r);
    buffer_free(x);
    buffer_free(y);
}

static void check_all(const char *kernel, DType dtype) {
    Loaded l = load_kernel("softmax.fk", kernel, dtype);
    for (int s = 0; s < (int)(sizeof shapes / sizeof *shapes); s++) {
        int layout[E2E_LAYOUTS], n = layouts_of(s, 2 * shapes[s].m * shapes[s].n, layout);
        for (int i = 0; i < n; i++)
            check_case(&l, s, layout[i]);
    }
    unload_kernel(l);
}

Test(e2e_softmax, whole_f16) {
    check_all("softmax_whole", DT_F16);
}

Test(e2e_softmax, whole_bf16) {
    check_all("softmax_whole", DT_BF16);
}

Test(e2e_softmax, whole_f32) {
    check_all("softmax_whole", DT_F32);
}

Test(e2e_softmax, rows_f16) {
    check_all("softmax_rows", DT_F16);
}

Test(e2e_softmax, rows_bf16) {
    check_all("softmax_rows", DT_BF16);
}

Test(e2e_softmax, rows_f32) {
    check_all("softmax_rows", DT_F32);
}
