// examples/scan.fk on every device, type, shape and layout.
//
// Bounds, u = 2^-24, in any order of combining:
//   recurrence   h[n] is a sum of products of at most n + 1 factors; each takes part in at most
//                n + log2 n + 2 roundings on its way, so it errs by (2n + 4)u of itself, whatever
//                the grouping: the bound is that of the sum of their sizes, carried along beside h.
//   best         chooses: no error but the rounding of the type that x has already.
//   moments      a merge errs by at most 8u of the mean's and distances' sizes; there are at most
//                n - 1 merges over a value: 8nu of the largest size (squared, n times, for the
//                sum).
//   softmax      a term goes through at most n rescalings, each exp(d)(1 + u(|d| + 4)) and a
//   product;
//                distances add up to the row's range, so (range + 6n)u of a term and of the sum.
// Real errors are far below; a wrong order, a missing mask or a lost prefix is far above.
#include "tests/e2e_support.h"

typedef struct Shape {
    int64_t m, n;
} Shape;

static const Shape shapes[] = {
#define SCAN(m, n) {m, n},
#include "tests/e2e_cases.def"
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

typedef Reference (*ReferenceFn)(const Buffer *const *in, DType out);

// Kernel with inputs [m, n] of T, one output under test; `out` is its name.
typedef struct Case {
    const char *kernel, *in[2], *out, *other; // other: an output that is not looked at
    int rank;                                 // of the outputs; 1: one element a row
    DType type, other_type;                   // DT_NONE: T
    double scale;
    ReferenceFn reference;
} Case;

static Reference recurrence(const Buffer *const *in, DType out) {
    int64_t m = in[0]->shape[0], n = in[0]->shape[1];
    Reference r = reference_new(m * n);
    for (int64_t i = 0; i < m; i++) {
        double h = 0, size = 0;
        for (int64_t j = 0; j < n; j++) {
            double a = buffer_get(in[0], i * n + j), x = buffer_get(in[1], i * n + j);
            h = j ? a * h + x : x;
            size = j ? fabs(a) * size + fabs(x) : fabs(x);
            r.want[i * n + j] = h;
            r.bound[i * n + j] = store_error(out, h, (double)(2 * j + 4) * U32 * size + 0x1p-126);
        }
    }
    return r;
}

static int64_t best_of(const Buffer *x, int64_t row) {
    int64_t n = x->shape[1], at = -1;
    for (int64_t j = 0; j < n; j++)
        if (at < 0 || buffer_get(x, row * n + j) > buffer_get(x, row * n + at))
            at = j;
    return at;
}

static Reference best_value(const Buffer *const *in, DType out) {
    (void)out;
    int64_t m = in[0]->shape[0], n = in[0]->shape[1];
    Reference r = reference_new(m);
    for (int64_t i = 0; i < m; i++) {
        int64_t at = best_of(in[0], i);
        r.want[i] = at < 0 ? -(double)INFINITY : buffer_get(in[0], i * n + at);
    }
    return r;
}

static Reference best_place(const Buffer *const *in, DType out) {
    (void)out;
    Reference r = reference_new(in[0]->shape[0]);
    for (int64_t i = 0; i < in[0]->shape[0]; i++)
        r.want[i] = (double)best_of(in[0], i);
    return r;
}

static Reference moment(const Buffer *x, bool spread) {
    int64_t m = x->shape[0], n = x->shape[1];
    Reference r = reference_new(m);
    for (int64_t i = 0; i < m; i++) {
        double sum = 0, size = 0, squares = 0;
        for (int64_t j = 0; j < n; j++) {
            sum += buffer_get(x, i * n + j);
            size = fmax(size, fabs(buffer_get(x, i * n + j)));
        }
        double mean = n ? sum / (double)n : 0;
        for (int64_t j = 0; j < n; j++)
            squares += (buffer_get(x, i * n + j) - mean) * (buffer_get(x, i * n + j) - mean);
        r.want[i] = spread ? squares / (double)n : mean;
        r.bound[i] = (double)(8 * n + 8) * U32 * (spread ? 4 * size * size : size);
    }
    return r;
}

static Reference mean_of(const Buffer *const *in, DType out) {
    (void)out;
    return moment(in[0], false);
}

static Reference spread_of(const Buffer *const *in, DType out) {
    (void)out;
    return moment(in[0], true);
}

static Reference softmax(const Buffer *const *in, DType out) {
    int64_t m = in[0]->shape[0], n = in[0]->shape[1];
    Reference r = reference_new(m * n);
    for (int64_t i = 0; i < m; i++) {
        double max = -INFINITY, min = INFINITY, sum = 0;
        for (int64_t j = 0; j < n; j++) {
            max = fmax(max, buffer_get(in[0], i * n + j));
            min = fmin(min, buffer_get(in[0], i * n + j));
        }
        for (int64_t j = 0; j < n; j++)
            sum += exp(buffer_get(in[0], i * n + j) - max);
        for (int64_t j = 0; j < n; j++) {
            double y = exp(buffer_get(in[0], i * n + j) - max) / sum;
            r.want[i * n + j] = y;
            double before = y * (2 * (max - min) + 6.0 * (double)n + 12) * U32 + 0x1p-148;
            r.bound[i * n + j] = store_error(out, y, before);
        }
    }
    return r;
}

static void check_case(const Loaded *l, const Case *c, int shape, int layout) {
    int64_t m = shapes[shape].m, n = shapes[shape].n;
    DType type = c->type == DT_NONE ? l->dtype : c->type;
    DType other_type = c->other_type == DT_NONE ? l->dtype : c->other_type;
    int nin = c->in[1] ? 2 : 1, nargs = 0;
    Buffer *in[2] = {NULL, NULL}, *other = NULL;
    FuseRtArg args[4];
    for (int i = 0; i < nin; i++) {
        in[i] = buffer_new(layout_of(shape, layout, i), l->dtype, 2, m, n);
        buffer_fill(in[i], (uint64_t)(3 + i), c->scale);
        buffer_seal(in[i]);
        args[nargs++] =
            (FuseRtArg){.name = c->in[i], .kind = FUSE_RT_TENSOR, .tensor = &in[i]->tensor};
    }
    int64_t rows = c->rank == 1 ? 1 : m, length = c->rank == 1 ? m : n;
    Buffer *out = buffer_new(layout_of(shape, layout, nin), type, c->rank, rows, length);
    buffer_fill(out, 9, 100);
    buffer_seal(out);
    args[nargs++] = (FuseRtArg){.name = c->out, .kind = FUSE_RT_TENSOR, .tensor = &out->tensor};
    if (c->other) {
        other = buffer_new(layout_of(shape, layout, nin), other_type, c->rank, rows, length);
        args[nargs++] =
            (FuseRtArg){.name = c->other, .kind = FUSE_RT_TENSOR, .tensor = &other->tensor};
    }
    Reference r = c->reference((const Buffer *const *)in, type);
    char what[96];
    snprintf(what, sizeof what, "M = %lld, N = %lld, layout %s, %s", (long long)m, (long long)n,
             e2e_layouts[layout].name, c->out);
    check_launch(l, what, nargs, args, nin, in, out, r);
    reference_free(r);
    buffer_free(out);
    if (other)
        buffer_free(other);
    for (int i = 0; i < nin; i++)
        buffer_free(in[i]);
}

static const Case cases[] = {
    {"recurrence", {"a", "x"}, "h", NULL, 2, DT_NONE, DT_NONE, 1.05, recurrence},
    {"best", {"x"}, "v", "at", 1, DT_NONE, DT_I64, 6, best_value},
    {"best", {"x"}, "at", "v", 1, DT_I64, DT_NONE, 0.01, best_place},
    {"moments", {"x"}, "mean", "spread", 1, DT_F32, DT_F32, 3, mean_of},
    {"moments", {"x"}, "spread", "mean", 1, DT_F32, DT_F32, 3, spread_of},
    {"softmax_online", {"x"}, "y", NULL, 2, DT_NONE, DT_NONE, 6, softmax},
};

static void check_all(DType dtype, const char *kernel) {
    Loaded l = load_kernel("scan.fk", kernel, dtype);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const Case *c = &cases[i];
        if (strcmp(c->kernel, kernel) != 0)
            continue;
        for (int s = 0; s < SHAPES; s++) {
            // infinities and nan over nothing are not compared
            if (shapes[s].n == 0 && c->rank == 1 && c->reference != best_place &&
                c->reference != mean_of)
                continue;
            int layout[E2E_LAYOUTS], n = layouts_of(s, 2 * shapes[s].m * shapes[s].n, layout);
            for (int j = 0; j < n; j++)
                check_case(&l, c, s, layout[j]);
        }
    }
    unload_kernel(l);
}

#define TYPES(kernel)                                                                              \
    Test(e2e_scan, kernel##_f32, .timeout = 300) {                                                 \
        check_all(DT_F32, #kernel);                                                                \
    }                                                                                              \
    Test(e2e_scan, kernel##_f16, .timeout = 300) {                                                 \
        check_all(DT_F16, #kernel);                                                                \
    }                                                                                              \
    Test(e2e_scan, kernel##_bf16, .timeout = 300) {                                                \
        check_all(DT_BF16, #kernel);                                                               \
    }
TYPES(recurrence)
TYPES(best)
TYPES(moments)
TYPES(softmax_online)

// --- compaction ---

static void check_nonzero(const Loaded *l, int64_t n) {
    Buffer *x = buffer_new(&e2e_layouts[0], l->dtype, 1, 1, n);
    Buffer *idx = buffer_new(&e2e_layouts[1], DT_I64, 1, 1, n);
    Buffer *count = buffer_new(&e2e_layouts[0], DT_I64, 1, 1, 1);
    Reference at = reference_new(n), hits = reference_new(1);
    for (int64_t i = 0; i < n; i++) {
        bool hit = random_unit(5, (uint64_t)i) < 0.3;
        buffer_set(x, i, hit ? 1.5 : 0);
        buffer_set(idx, i, -7);
        at.want[i] = -7;
        if (hit)
            at.want[(int64_t)hits.want[0]++] = (double)i;
    }
    buffer_seal(x);
    buffer_seal(idx);
    buffer_seal(count);
    FuseRtArg args[] = {{.name = "x", .kind = FUSE_RT_TENSOR, .tensor = &x->tensor},
                        {.name = "idx", .kind = FUSE_RT_TENSOR, .tensor = &idx->tensor},
                        {.name = "count", .kind = FUSE_RT_TENSOR, .tensor = &count->tensor}};
    char what[32];
    snprintf(what, sizeof what, "N = %lld", (long long)n);
    for (int d = 0; d < l->n; d++) {
        check_on(l, d, what, 3, args, 1, &x, idx, at);
        check_on(l, d, what, 3, args, 1, &x, count, hits);
    }
    reference_free(at);
    reference_free(hits);
    buffer_free(x);
    buffer_free(idx);
    buffer_free(count);
}

Test(e2e_scan, nonzero, .timeout = 300) {
    static const int64_t sizes[] = {0, 1, 7, 64, 257, 1000, 5003, 20000};
    Loaded l = load_kernel("scan.fk", "nonzero", DT_F16);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        check_nonzero(&l, sizes[i]);
    unload_kernel(l);
}
