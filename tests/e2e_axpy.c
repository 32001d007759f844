// examples/axpy.fk on every device, type, length and layout: y += a * x.
//
// Bound. a is an f32; a*x and the sum are f32, with one rounding (fused) or two. With two,
//     |error| <= u|ax| + u|ax(1+u) + y| <= u(|ax| + |r|) + O(u^2),   u = 2^-24, r = y + ax,
// and one rounding errs by less. The product of two f32 is exact in f64.
#include "tests/e2e_support.h"

static const int64_t lengths[] = {
#define AXPY(n) n,
#include "tests/e2e_cases.def"
};

static void check_case(const Loaded *l, int shape, int layout) {
    int64_t n = lengths[shape];
    const double a = 1.700000047683716; // 1.7 as f32
    Buffer *x = buffer_new(layout_of(shape, layout, 0), l->dtype, 1, 1, n);
    Buffer *y = buffer_new(layout_of(shape, layout, 1), l->dtype, 1, 1, n);
    buffer_fill(x, 1, 4);
    buffer_fill(y, 2, 4);
    buffer_seal(x);
    buffer_seal(y);
    Reference r = reference_new(n);
    for (int64_t i = 0; i < n; i++) {
        double ax = a * buffer_get(x, i);
        r.want[i] = ax + buffer_get(y, i);
        r.bound[i] = store_error(l->dtype, r.want[i], U32 * (fabs(ax) + fabs(r.want[i])));
    }
    FuseRtArg args[] = {{.name = "a", .kind = FUSE_RT_FLOAT, .f = a},
                        {.name = "x", .kind = FUSE_RT_TENSOR, .tensor = &x->tensor},
                        {.name = "y", .kind = FUSE_RT_TENSOR, .tensor = &y->tensor}};
    char what[64];
    snprintf(what, sizeof what, "N = %lld, layout %s", (long long)n, e2e_layouts[layout].name);
    check_launch(l, what, 3, args, 1, &x, y, r);
    reference_free(r);
    buffer_free(x);
    buffer_free(y);
}

static void check_all(DType dtype) {
    Loaded l = load_kernel("axpy.fk", "axpy", dtype);
    for (int s = 0; s < (int)(sizeof lengths / sizeof *lengths); s++) {
        int layout[E2E_LAYOUTS], n = layouts_of(s, 2 * lengths[s], layout);
        for (int i = 0; i < n; i++)
            check_case(&l, s, layout[i]);
    }
    unload_kernel(l);
}

Test(e2e_axpy, f16) {
    check_all(DT_F16);
}

Test(e2e_axpy, bf16) {
    check_all(DT_BF16);
}

Test(e2e_axpy, f32) {
    check_all(DT_F32);
}
