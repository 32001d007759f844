// examples/linear_gelu.fk, both kernels, on every device, type, shape and layout, with and without
// the optional bias.
//
// Bound. Products of two f16 or bf16 are exact in f32, products of f32 round once (u = 2^-24). A
// matrix unit may truncate where f32 arithmetic rounds, so each of the K additions and the product
// count 2u of the sum of absolute products S, in any order:
//     |acc - exact| <= 2u(K + 1)S.
// The bias adds u|z|, z = acc + b. gelu(z) = z/2 (1 + erf(z / sqrt 2)) has a slope of at most 1.13,
// so what z errs by counts 1.13 times. Of its own: the argument z * SQRT1_2 errs by 2u relatively,
// which moves erf by at most 2u|t erf'(t)| <= 2u * 0.49; erf errs by 4 ulps <= 8u; 1 + erf rounds
// by at most 2u; both factors and the product round by u of the result:
//     |gelu error| <= 1.13 dz + |z|/2 (0.98 + 8 + 2)u + 3u|gelu(z)|.
#include "tests/e2e_support.h"

typedef struct Shape {
    int64_t m, n, k;
} Shape;

static const Shape shapes[] = {
#define LINEAR(m, n, k) {m, n, k},
#include "tests/e2e_cases.def"
};

typedef struct Operands {
    Buffer *x, *w, *b; // b may be NULL
} Operands;

static Reference reference_of(Operands o) {
    int64_t m = o.x->shape[0], k = o.x->shape[1], n = o.w->shape[1];
    Reference r = reference_new(m * n);
    double *x = calloc((size_t)(m * k) + 1, sizeof *x), *w = calloc((size_t)(k * n) + 1, sizeof *w);
    for (int64_t i = 0; i < m * k; i++)
        x[i] = buffer_get(o.x, i);
    for (int64_t i = 0; i < k * n; i++)
        w[i] = buffer_get(o.w, i);
    for (int64_t i = 0; i < m * n; i++) {
        double z = 0, size = 0;
        for (int64_t l = 0; l < k; l++) {
            double product = x[i / n * k + l] * w[l * n + i % n];
            z += product;
            size += fabs(product);
        }
        double error = 2 * U32 * (double)(k + 1) * size;
        if (o.b) {
            z += buffer_get(o.b, i % n);
            error += U32 * (fabs(z) + error);
        }
        double gelu = 0.5 * z * (1 + erf(z * 0.7071067811865476));
        r.want[i] = gelu;
        double before = 1.13 * error + 5.49 * U32 * fabs(z) + 3 * U32 * fabs(gelu);
        r.bound[i] = store_error(o.x->dtype, gelu, before);
    }
    free(x);
    free(w);
    return r;
}

static void check_case(const Loaded *l, int shape, int layout, bool with_bias) {
    int64_t m = shapes[shape].m, n = shapes[shape].n, k = shapes[shape].k;
    Operands o = {buffer_new(layout_of(shape, layout, 0), l->dtype, 2, m, k),
                  buffer_new(layout_of(shape, layout, 1), l->dtype, 2, k, n),
                  buffer_new(layout_of(shape, layout, 2), l->dtype, 1, 1, n)};
    Buffer *y = buffer_new(layout_of(shape, layout, 3), l->dtype, 2, m, n);
    Buffer *inputs[] = {o.x, o.w, o.b};
    buffer_fill(o.x, 4, 1);
    buffer_fill(o.w, 5, 1);
    buffer_fill(o.b, 6, 2);
    buffer_fill_nan(y);
    for (int i = 0; i < 3; i++)
        buffer_seal(inputs[i]);
    buffer_seal(y);
    Reference r = reference_of((Operands){o.x, o.w, with_bias ? o.b : NULL});
    FuseRtArg args[] = {{.name = "x", .kind = FUSE_RT_TENSOR, .tensor = &o.x->tensor},
                        {.name = "w", .kind = FUSE_RT_TENSOR, .tensor = &o.w->tensor},
                        {.name = "b", .kind = FUSE_RT_TENSOR, .tensor = &o.b->tensor},
                        {.name = "y", .kind = FUSE_RT_TENSOR, .tensor = &y->tensor}};
    if (!with_bias)
        args[2] = (FuseRtArg){.name = "b", .kind = FUSE_RT_ABSENT};
    char what[128];
    snprintf(what, sizeof what, "M = %lld, N = %lld, K = %lld, layout %s, %s bias", (long long)m,
             (long long)n, (long long)k, e2e_layouts[layout].name, with_bias ? "with" : "no");
    check_launch(l, what, 4, args, 3, inputs, y, r);
    reference_free(r);
    for (int i = 0; i < 3; i++)
        buffer_free(inputs[i]);
    buffer_free(y);
}

static void check_all(const char *kernel, DType dtype, bool optional_bias) {
    Loaded l = load_kernel("linear_gelu.fk", kernel, dtype);
    for (int s = 0; s < (int)(sizeof shapes / sizeof *shapes); s++) {
        const Shape *p = &shapes[s];
        int64_t elements = p->m * p->k + p->k * p->n + p->n + p->m * p->n;
        int layout[E2E_LAYOUTS], n = layouts_of(s, elements, layout);
        for (int i = 0; i < n; i++)
            check_case(&l, s, layout[i], true);
        if (optional_bias)
            check_case(&l, s, layout[s % n], false);
    }
    unload_kernel(l);
}

Test(e2e_linear, whole_f16) {
    check_all("linear_gelu", DT_F16, true);
}

Test(e2e_linear, whole_bf16) {
    check_all("linear_gelu", DT_BF16, true);
}

Test(e2e_linear, whole_f32) {
    check_all("linear_gelu", DT_F32, true);
}

Test(e2e_linear, tiled_f16) {
    check_all("linear_gelu_tiled", DT_F16, false);
}

Test(e2e_linear, tiled_bf16) {
    check_all("linear_gelu_tiled", DT_BF16, false);
}

Test(e2e_linear, tiled_f32) {
    check_all("linear_gelu_tiled", DT_F32, false);
}

// What is staged in shared memory gives the same whatever the order of warps and copies, on the
// schedules of two architectures.
static void check_seeds(const char *kernel) {
    static const E2eDevice on[] = {{"sim:sm_80", 1},  {"sim:sm_80", 2},  {"sim:sm_80", 3},
                                   {"sim:sm_90a", 4}, {"sim:sm_90a", 5}, {"sim:sm_90a", 6}};
    Loaded l = load_on(6, on, "linear_gelu.fk", kernel, DT_BF16);
    for (int s = 0; s < (int)(sizeof shapes / sizeof *shapes); s++) {
        if (shapes[s].k < 33 || shapes[s].m < 64)
            continue;
        check_case(&l, s, 0, true);
        check_case(&l, s, 2, true);
    }
    unload_kernel(l);
}

Test(e2e_linear, whole_seeds) {
    check_seeds("linear_gelu");
}

Test(e2e_linear, tiled_seeds) {
    check_seeds("linear_gelu_tiled");
}
