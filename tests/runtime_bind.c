// Every wrong argument, with the whole message; what is right passes.
#include "tests/runtime_support.h"

#include <math.h>

static const char plan[] =
    "kernel lin.bf16(dim M, dim K, dim N, dim D = 64, in @x: bf16[%M, %K], in @w: bf16[%K, 64], in "
    "opt @b: bf16[%N], "
    "%n: i8, %s: f32 = 0.5:f32, out @y: f32[%M, %N]) {\n"
    "  %ok = cmp.le %M, 100 : bool\n"
    "  require %ok {msg = \"M <= 100\"}\n"
    "  %n2 = mul %N, 2 : index\n"
    "  launch %p in 0..%M args(%n2, %s; @x, @w, @b, @y) {entry = \"e\", warps = 1}\n"
    "}\n";

typedef struct Fixture {
    FuseDevice *device;
    FuseModule *module;
    FuseKernel *kernel;
    TestTensor *x, *w, *b, *y;
    FuseRtArg args[8];
    int n;
} Fixture;

static Fixture f;

static void open_fixture(void) {
    f.device = fake_device();
    f.module = fake_module(f.device, plan, "// entry e 11\n");
    f.kernel = kernel_named(f.module, "lin");
    f.x = tensor_at(0x100000, type_bf16, 2, 8, 16);
    f.w = tensor_at(0x200000, type_bf16, 2, 16, 64);
    f.b = tensor_at(0x300000, type_bf16, 1, 32);
    f.y = tensor_at(0x400000, type_f32, 2, 8, 32);
    f.args[0] = arg_tensor("x", f.x);
    f.args[1] = arg_tensor("w", f.w);
    f.args[2] = arg_tensor("b", f.b);
    f.args[3] = arg_int("n", 5);
    f.args[4] = arg_tensor("y", f.y);
    f.n = 5;
}

static void close_fixture(void) {
    fuse_rt_module_close(f.module);
    fuse_rt_device_close(f.device);
}

TestSuite(runtime_bind, .init = open_fixture, .fini = close_fixture);

static FuseRtStatus launch(void) {
    return fuse_rt_launch(f.kernel, NULL, f.n, f.args, NULL);
}
static void bad(const char *text) {
    int before = fake.ncount;
    EXPECT_FAIL(launch(), FUSE_RT_INVALID_ARGUMENT, text);
    cr_expect_eq(fake.ncount, before, "nothing is launched");
}

Test(runtime_bind, right) {
    EXPECT_OK(launch());
    f.args[2] = arg_absent("b");
    EXPECT_OK(launch());
    f.args[2] = arg_tensor("b", NULL);
    EXPECT_OK(launch());
    f.args[f.n++] = arg_float("s", 2);
    EXPECT_OK(launch());
    cr_expect_eq(fake.ncount, 4);
}

Test(runtime_bind, names) {
    f.args[4].name = "z";
    bad("lin.bf16 has no parameter `z`; it has `x`, `w`, `b`, `n`, `s`, `y`");
    f.args[4].name = "x";
    bad("lin.bf16: argument `x` is given twice");
    f.n = 4;
    bad("lin.bf16: argument `y` is missing");
    f.args[4] = arg_tensor(NULL, f.y);
    f.n = 5;
    bad("lin.bf16: argument `y` is missing"); // place 4 is s
    f.n = 7;
    f.args[5] = arg_tensor("y", f.y);
    f.args[6] = arg_int(NULL, 1);
    bad("lin.bf16 takes 6 arguments by position; argument 7 is one too many");
    f.n = -1;
    bad("lin.bf16: a list of -1 arguments that is null or of negative length");
    EXPECT_FAIL(fuse_rt_launch(f.kernel, NULL, 2, NULL, NULL), FUSE_RT_INVALID_ARGUMENT,
                "lin.bf16: a list of 2 arguments that is null or of negative length");
    EXPECT_FAIL(fuse_rt_launch(NULL, NULL, 0, NULL, NULL), FUSE_RT_INVALID_ARGUMENT,
                "fuse_rt_launch: a null pointer");
}

Test(runtime_bind, kinds) {
    f.args[0] = arg_int("x", 1);
    bad("lin.bf16: argument `x` is a tensor, an integer was given");
    f.args[0] = arg_absent("x");
    bad("lin.bf16: argument `x` is absent, but not optional");
    f.args[0] = arg_tensor("x", NULL);
    bad("lin.bf16: argument `x` is a null tensor");
    f.args[0] = arg_tensor("x", f.x);
    f.args[3] = arg_tensor("n", f.x);
    bad("lin.bf16: argument `n` is a scalar (i8), a tensor was given");
    f.args[3] = arg_float("n", 1);
    bad("lin.bf16: argument `n` is of type i8, a floating-point number was given");
    f.args[3] = (FuseRtArg){.name = "n", .kind = (FuseRtArgKind)9};
    bad("lin.bf16: argument `n` is a scalar (i8), an argument of unknown kind was given");
}

Test(runtime_bind, scalar_ranges) {
    f.args[3].i = 127;
    EXPECT_OK(launch());
    f.args[3].i = -128;
    EXPECT_OK(launch());
    f.args[3].i = 128;
    bad("lin.bf16: argument `n`: 128 is no value of type i8");
    f.args[3].i = -129;
    bad("lin.bf16: argument `n`: -129 is no value of type i8");
}

Test(runtime_bind, types_and_ranks) {
    f.x->t.dtype = type_f16;
    bad("lin.bf16: argument `x` is of type f16, bf16 is expected");
    f.x->t.dtype = (DLDataType){kDLComplex, 64, 1};
    bad("lin.bf16: argument `x` is of type DLPack type (code 5, 64 bits, 1 lanes), bf16 is "
        "expected");
    f.x->t.dtype = (DLDataType){kDLBfloat, 16, 2};
    bad("lin.bf16: argument `x` is of type DLPack type (code 4, 16 bits, 2 lanes), bf16 is "
        "expected");
    f.x->t.dtype = type_bf16;
    f.x->t.ndim = 1;
    bad("lin.bf16: argument `x` has 1 dims, 2 are expected: bf16[M, K]");
    f.x->t.ndim = 2;
    f.w->t.ndim = 3;
    bad("lin.bf16: argument `w` has 3 dims, 2 are expected: bf16[K, D]");
    f.w->t.ndim = 2;
    f.x->t.shape = NULL;
    bad("lin.bf16: argument `x` has no shape (a null pointer)");
}

Test(runtime_bind, devices) {
    f.x->t.device = (DLDevice){kDLCPU, 0};
    bad("lin.bf16: argument `x` is in host memory, but the kernel runs on cuda:0");
    f.x->t.device = (DLDevice){kDLCUDA, 1};
    bad("lin.bf16: argument `x` is in memory of cuda:1, but the kernel runs on cuda:0");
    f.x->t.device = (DLDevice){(DLDeviceType)10, 2};
    bad("lin.bf16: argument `x` is in DLPack device (10, 2), but the kernel runs on cuda:0");
    f.x->t.device = (DLDevice){kDLCUDAManaged, 0};
    EXPECT_OK(launch());
    f.x->t.device = (DLDevice){kDLCUDAHost, 0};
    EXPECT_OK(launch());
}

Test(runtime_bind, dims) {
    f.w->shape[0] = 17;
    bad("lin.bf16: argument `w`: dim 0 (K) is 17, but dim 1 of `x` is 16");
    f.w->shape[0] = 16;
    f.w->shape[1] = 63;
    bad("lin.bf16: argument `w`: dim 1 (D) is 63, 64 is expected");
    f.w->shape[1] = 64;
    f.y->shape[1] = 33;
    bad("lin.bf16: argument `y`: dim 1 (N) is 33, but dim 0 of `b` is 32");
    f.y->shape[1] = 32;
    f.x->shape[0] = -1;
    bad("lin.bf16: argument `x`: dim 0 is -1");
    f.x->shape[0] = f.y->shape[0] = INT64_C(1) << 53;
    f.x->stride[0] = f.y->stride[0] = 0;
    bad("lin.bf16: dim `M` is 9007199254740992, more than 2^52");
    f.x->stride[0] = 16;
    f.y->stride[0] = 32;
    f.x->shape[0] = f.y->shape[0] = 101;
    bad("lin.bf16: the arguments do not meet the condition `M <= 100`");
}

Test(runtime_bind, dims_given_by_name) {
    f.args[f.n++] = arg_int("M", 8);
    EXPECT_OK(launch());
    f.args[5].i = 9;
    bad("lin.bf16: argument `x`: dim 0 (M) is 8, but `M` is given as 9");
    f.args[5].i = -9;
    bad("lin.bf16: dim `M` is -9, less than 0");
    f.args[5] = arg_float("M", 8);
    bad("lin.bf16: dim `M` takes an integer, a floating-point number was given");
    f.args[5] = arg_int("D", 64);
    EXPECT_OK(launch());
    f.args[5] = arg_int("D", 65);
    bad("lin.bf16: dim `D` is fixed to 64, 65 was given");
    f.args[5] = f.args[6] = arg_int("M", 8);
    f.n = 7;
    bad("lin.bf16: dim `M` is given twice");
}

Test(runtime_bind, data) {
    f.x->t.data = NULL;
    bad("lin.bf16: argument `x` has 128 elements, but no data (a null pointer)");
    f.x->t.data = (void *)0x100001;
    bad("lin.bf16: argument `x`: address 0x100001 is not a multiple of 2, the size of bf16");
    f.x->t.byte_offset = 1;
    EXPECT_OK(launch());
    cr_expect_eq(fake.launch[0].param[0], 0x100002);
    f.x->t.byte_offset = 0;
    f.x->t.data = (void *)0x100000;
    f.x->stride[0] = INT64_MAX / 4;
    bad("lin.bf16: argument `x`: its strides lead out of the address space");
    f.x->stride[0] = (int64_t)1 << 56;
    bad("lin.bf16: argument `x`: its strides lead out of the address space");
    f.x->stride[0] = 16;
    f.x->shape[0] = f.x->shape[1] = (int64_t)1 << 32;
    bad("lin.bf16: argument `x` has more than 2^63 elements");
}

Test(runtime_bind, strides_may_be_left_out) {
    f.x->t.strides = NULL;
    EXPECT_OK(launch());
    cr_expect_eq(fake.launch[0].param[1], 16);
    cr_expect_eq(fake.launch[0].param[2], 1);
}

Test(runtime_bind, empty_tensors) {
    f.x->shape[0] = f.y->shape[0] = 0;
    f.x->t.data = f.y->t.data = NULL;
    EXPECT_OK(launch());
    cr_expect_eq(fake.ncount, 0, "an empty grid");
    f.x->shape[1] = INT64_MAX; // 0 elements all the same
    f.w->shape[0] = INT64_MAX;
    f.w->shape[1] = 64;
    bad("lin.bf16: argument `w` has more than 2^63 elements");
}

Test(runtime_bind, overlap) {
    f.x->t.data = (void *)0x400000;
    bad("lin.bf16: arguments `x` and `y` share elements, and `y` is written");
    f.x->t.data = (void *)(0x400000 + 8 * 32 * 4); // right behind y
    EXPECT_OK(launch());
    f.x->t.data = (void *)(0x400000 + 8 * 32 * 4 - 2);
    bad("lin.bf16: arguments `x` and `y` share elements, and `y` is written");
    f.x->t.data = f.w->t.data; // both are only read
    EXPECT_OK(launch());
    f.y->stride[1] = 0;
    bad("lin.bf16: argument `y` is written, but several of its elements are at one address");
}

// y and b are the left and the right half of the columns of one buffer.
Test(runtime_bind, column_slices_do_not_overlap) {
    static const char columns[] =
        "kernel k(dim M, dim N, in @x: f32[%M, %N], out @y: f32[%M, %N]) {\n"
        "  launch %p in 0..%M args(; @x, @y) {entry = \"e\", warps = 1}\n}\n";
    FuseModule *m = fake_module(f.device, columns, "// entry e 6\n");
    FuseKernel *k = kernel_named(m, "k");
    TestTensor *x = tensor_at(0x10000, type_f32, 2, 100, 64),
               *y = tensor_at(0x10000 + 256, type_f32, 2, 100, 64);
    x->stride[0] = y->stride[0] = 128;
    EXPECT_OK(LAUNCH(k, NULL, arg_tensor("x", x), arg_tensor("y", y)));
    y->t.data = (void *)(0x10000 + 252);
    EXPECT_FAIL(LAUNCH(k, NULL, arg_tensor("x", x), arg_tensor("y", y)), FUSE_RT_INVALID_ARGUMENT,
                "k: arguments `x` and `y` share elements, and `y` is written");
    fuse_rt_module_close(m);
}

Test(runtime_bind, shapes_of_outputs) {
    int64_t shape[8];
    FuseRtArg known[] = {arg_tensor("x", f.x), arg_tensor("b", f.b)};
    EXPECT_OK(fuse_rt_kernel_shape(f.kernel, 2, known, 5, shape));
    cr_expect_eq(shape[0], 8);
    cr_expect_eq(shape[1], 32);
    EXPECT_FAIL(fuse_rt_kernel_shape(f.kernel, 1, known, 5, shape), FUSE_RT_INVALID_ARGUMENT,
                "lin.bf16: no argument says what dim `N` is; give it as an integer argument `N`");
    known[1] = arg_int("N", 7);
    EXPECT_OK(fuse_rt_kernel_shape(f.kernel, 2, known, 5, shape));
    cr_expect_eq(shape[1], 7);
    EXPECT_FAIL(fuse_rt_kernel_shape(f.kernel, 1, known + 1, 5, shape), FUSE_RT_INVALID_ARGUMENT,
                "lin.bf16: argument `x` is missing, and nothing else says what dim `M` is");
    EXPECT_FAIL(fuse_rt_kernel_shape(f.kernel, 1, known, 3, shape), FUSE_RT_INVALID_ARGUMENT,
                "`lin.bf16` has no tensor parameter number 3");
}

// Dims that conditions define: a pooled convolution's output.
Test(runtime_bind, equations) {
    static const char conv[] =
        "kernel c(dim H, dim U, dim V, in @x: f32[%H], %pad: i32, out @y: f32[%U, %V]) {\n"
        "  %p = cast %pad : index\n"
        "  %p2 = mul %p, 2 : index\n"
        "  %h = add %H, %p2 : index\n"
        "  %u = div %h, 2 : index\n"
        "  %a = cmp.eq %U, %u : bool\n"
        "  %b = cmp.eq %u, %V : bool\n"
        "  %ab = and %a, %b : bool\n"
        "  require %ab {msg = \"U == (H + 2*pad) / 2\"}\n"
        "  launch %q in 0..%U args(%u; @x, @y) {entry = \"e\", warps = 1}\n}\n";
    FuseModule *m = fake_module(f.device, conv, "// entry e 6\n");
    FuseKernel *k = kernel_named(m, "c");
    TestTensor *x = tensor_at(0x10000, type_f32, 1, 9), *y = tensor_at(0x20000, type_f32, 2, 5, 5);
    FuseRtArg known[] = {arg_tensor("x", x), arg_int("pad", 1)};
    int64_t shape[8];
    EXPECT_OK(fuse_rt_kernel_shape(k, 2, known, 2, shape));
    cr_expect_eq(shape[0], 5);
    cr_expect_eq(shape[1], 5);
    EXPECT_FAIL(fuse_rt_kernel_shape(k, 1, known, 2, shape), FUSE_RT_INVALID_ARGUMENT,
                "c: no argument says what dim `U` is; give it as an integer argument `U`");
    EXPECT_OK(LAUNCH(k, NULL, known[0], known[1], arg_tensor("y", y)));
    y->shape[1] = 4;
    EXPECT_FAIL(LAUNCH(k, NULL, known[0], known[1], arg_tensor("y", y)), FUSE_RT_INVALID_ARGUMENT,
                "c: the arguments do not meet the condition `U == (H + 2*pad) / 2`");
    fuse_rt_module_close(m);
}

// A condition that is linear in the one dim that nobody knows.
Test(runtime_bind, linear_equations) {
    static const char segments[] =
        "kernel s(dim E1, dim E, dim P, dim Q, in @s: i32[%E1], out @y: f32[%E], out @z: f32[%P, "
        "%Q]) {\n"
        "  %e = add %E, 1 : index\n"
        "  %a = cmp.eq %E1, %e : bool\n"
        "  require %a {msg = \"E1 == E + 1\"}\n"
        "  %p2 = mul %P, -2 : index\n"
        "  %p = add %p2, %E1 : index\n"
        "  %b = cmp.eq 1, %p : bool\n"
        "  require %b {msg = \"1 == E1 - 2*P\"}\n"
        "  %q2 = mul %Q, %Q : index\n"
        "  %c = cmp.eq %q2, 9 : bool\n"
        "  require %c {msg = \"Q*Q == 9\"}\n"
        "  launch %x in 0..%E args(; @s, @y, @z) {entry = \"e\", warps = 1}\n}\n";
    FuseModule *m = fake_module(f.device, segments, "// entry e 9\n");
    FuseKernel *k = kernel_named(m, "s");
    TestTensor *s = tensor_at(0x10000, type_i32, 1, 7);
    FuseRtArg known[] = {arg_tensor("s", s), arg_int("Q", 3)};
    int64_t shape[8];
    EXPECT_OK(fuse_rt_kernel_shape(k, 1, known, 1, shape));
    cr_expect_eq(shape[0], 6);
    EXPECT_OK(fuse_rt_kernel_shape(k, 2, known, 2, shape));
    cr_expect_eq(shape[0], 3);
    cr_expect_eq(shape[1], 3);
    EXPECT_FAIL(fuse_rt_kernel_shape(k, 1, known, 2, shape), FUSE_RT_INVALID_ARGUMENT,
                "s: no argument says what dim `Q` is; give it as an integer argument `Q`");
    s->shape[0] = 8; // P would be 3.5
    EXPECT_FAIL(
        fuse_rt_kernel_shape(k, 2, known, 2, shape), FUSE_RT_INVALID_ARGUMENT,
        "s: with these arguments no size of the dim `P` meets the condition `1 == E1 - 2*P`");
    s->shape[0] = 0; // E would be -1
    EXPECT_FAIL(fuse_rt_kernel_shape(k, 2, known, 1, shape), FUSE_RT_INVALID_ARGUMENT,
                "s: with these arguments no size of the dim `E` meets the condition `E1 == E + 1`");
    fuse_rt_module_close(m);
}

// Conditions whose arithmetic wraps or divides by zero fail, unless what does is left out.
Test(runtime_bind, exact_conditions) {
    static const char text[] =
        "kernel c(dim N, dim S, in @x: f32[%N], %k: i64, out @y: f32[%S]) {\n"
        "  %i = cast %k : index\n"
        "  %z = cmp.eq %i, 0 : bool\n"
        "  %r = rem %N, %i : index\n"
        "  %e = cmp.eq %r, 0 : bool\n"
        "  %o = or %z, %e : bool\n"
        "  require %o {msg = \"k == 0 || N % k == 0\"}\n"
        "  %d = div %N, %i : index\n"
        "  %q = select %z, %N, %d : index\n"
        "  %m = mul %q, %i : index\n"
        "  %p = add %m, 3 : index\n"
        "  %a = cmp.eq %S, %p : bool\n"
        "  require %a {msg = \"S == (k == 0 ? N : N / k) * k + 3\"}\n"
        "  launch %l in 0..%S args(; @x, @y) {entry = \"e\", warps = 1}\n}\n";
    FuseModule *m = fake_module(f.device, text, "// entry e 4\n");
    FuseKernel *k = kernel_named(m, "c");
    TestTensor *x = tensor_at(0x10000, type_f32, 1, 8);
    int64_t shape[8];
    FuseRtArg known[] = {arg_tensor("x", x), arg_int("k", 4)};
    EXPECT_OK(fuse_rt_kernel_shape(k, 2, known, 2, shape));
    cr_expect_eq(shape[0], 11);
    known[1] = arg_int("k", 0);
    EXPECT_OK(fuse_rt_kernel_shape(k, 2, known, 2, shape));
    cr_expect_eq(shape[0], 3);
    known[1] = arg_int("k", -4);
    EXPECT_OK(fuse_rt_kernel_shape(k, 2, known, 2, shape));
    fuse_rt_module_close(m);
    static const char plain[] =
        "kernel p(dim N, dim S, in @x: f32[%N], %k: i64, out @y: f32[%S]) {\n"
        "  %i = cast %k : index\n"
        "  %m = mul %N, %i : index\n"
        "  %d = div %m, %i : index\n"
        "  %a = cmp.eq %S, %d : bool\n"
        "  require %a {msg = \"S == N * k / k\"}\n"
        "  launch %l in 0..%S args(; @x, @y) {entry = \"e\", warps = 1}\n}\n";
    m = fake_module(f.device, plain, "// entry e 4\n");
    k = kernel_named(m, "p");
    EXPECT_OK(fuse_rt_kernel_shape(k, 2, known, 2, shape));
    cr_expect_eq(shape[0], 8);
    TestTensor *y = tensor_at(0x20000, type_f32, 1, 0);
    known[1] = arg_int("k", INT64_MAX / 2);
    EXPECT_FAIL(fuse_rt_kernel_shape(k, 2, known, 2, shape), FUSE_RT_INVALID_ARGUMENT,
                "p: with these arguments `S == N * k / k` leaves 64 bits");
    EXPECT_FAIL(LAUNCH(k, NULL, known[0], known[1], arg_tensor("y", y)), FUSE_RT_INVALID_ARGUMENT,
                "p: with these arguments `S == N * k / k` leaves 64 bits");
    known[1] = arg_int("k", 0);
    EXPECT_FAIL(LAUNCH(k, NULL, known[0], known[1], arg_tensor("y", y)), FUSE_RT_INVALID_ARGUMENT,
                "p: with these arguments `S == N * k / k` divides by zero");
    fuse_rt_module_close(m);
}

// A dim that only an absent tensor carries is 0.
Test(runtime_bind, dims_of_absent_tensors) {
    static const char text[] =
        "kernel k(dim N, dim Q, in opt @b: f32[%Q], out @y: f32[%N]) {\n"
        "  launch %p in 0..%N args(%Q; @b, @y) {entry = \"e\", warps = 1}\n}\n";
    FuseModule *m = fake_module(f.device, text, "// entry e 5\n");
    FuseKernel *k = kernel_named(m, "k");
    EXPECT_OK(LAUNCH(k, NULL, arg_tensor("y", tensor_at(0x1000, type_f32, 1, 3))));
    cr_expect_eq(fake.launch[0].param[0], 0);
    cr_expect_eq(fake.launch[0].param[4], 0);
    fuse_rt_module_close(m);
}

Test(runtime_bind, unbound_dim) {
    static const char text[] = "kernel k(dim N, dim Q, out @y: f32[%N]) {\n"
                               "  launch %p in 0..%N args(%Q; @y) {entry = \"e\", warps = 1}\n}\n";
    FuseModule *m = fake_module(f.device, text, "// entry e 3\n");
    FuseKernel *k = kernel_named(m, "k");
    TestTensor *y = tensor_at(0x1000, type_f32, 1, 3);
    EXPECT_FAIL(LAUNCH(k, NULL, arg_tensor("y", y)), FUSE_RT_INVALID_ARGUMENT,
                "k: no argument says what dim `Q` is; give it as an integer argument `Q`");
    EXPECT_OK(LAUNCH(k, NULL, arg_tensor("y", y), arg_int("Q", 11)));
    cr_expect_eq(fake.launch[0].param[2], 11);
    fuse_rt_module_close(m);
}

Test(runtime_bind, dims_that_the_plan_computes) {
    static const char text[] =
        "kernel k(dim N, in @x: f32[%N], out @y: f32[%m]) {\n"
        "  %m = mul %N, 2 : index\n"
        "  launch %p in 0..%N args(; @x, @y) {entry = \"e\", warps = 1}\n}\n";
    char *ptx = fake_ptx(text, "// entry e 4\n");
    FuseModule *m = NULL;
    if (fuse_rt_module_from_ptx(f.device, "k.ptx", ptx, strlen(ptx), &m) == FUSE_RT_OK) {
        FuseKernel *k = kernel_named(m, "k");
        TestTensor *x = tensor_at(0x1000, type_f32, 1, 3), *y = tensor_at(0x2000, type_f32, 1, 6);
        EXPECT_OK(LAUNCH(k, NULL, arg_tensor("x", x), arg_tensor("y", y)));
        y->shape[0] = 7;
        EXPECT_FAIL(LAUNCH(k, NULL, arg_tensor("x", x), arg_tensor("y", y)),
                    FUSE_RT_INVALID_ARGUMENT, "k: argument `y`: dim 0 is 7, 6 is expected");
        fuse_rt_module_close(m);
    }
    free(ptx);
}

Test(runtime_bind, packed_elements) {
    static const char text[] =
        "kernel k(dim N, in @x: i4[%N], out @y: i4[%N]) {\n"
        "  launch %p in 0..%N args(; @x, @y) {entry = \"e\", warps = 1}\n}\n";
    FuseModule *m = fake_module(f.device, text, "// entry e 4\n");
    FuseKernel *k = kernel_named(m, "k");
    TestTensor *x = tensor_at(0x1001, type_i4, 1, 6), *y = tensor_at(0x1004, type_i4, 1, 6);
    EXPECT_OK(LAUNCH(k, NULL, arg_tensor("x", x), arg_tensor("y", y)));
    x->shape[0] = y->shape[0] = 7;
    EXPECT_FAIL(LAUNCH(k, NULL, arg_tensor("x", x), arg_tensor("y", y)), FUSE_RT_INVALID_ARGUMENT,
                "k: arguments `x` and `y` share elements, and `y` is written");
    fuse_rt_module_close(m);
}
