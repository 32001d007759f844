// Launch plans on a driver that records: variants, grids, parameters, temporaries, control flow.
#include "tests/runtime_support.h"

#include <math.h>
#include <time.h>

static const char axpy_plan[] =
    "kernel axpy.f16.v0(dim N, %a: f32, in @x: f16[%N] {align = 16, inner = 0, sdiv = 8}, inout "
    "@y: f16[%N] {align = "
    "16, inner = 0, sdiv = 8}) of axpy.f16.v1 {\n"
    "  %rem = rem %N, 8 : index\n"
    "  %eq = cmp.eq %rem, 0 : bool\n"
    "  when %eq\n"
    "  axis n of N by 4096\n"
    "  %cdiv = cdiv %N, 4096 : index\n"
    "  launch %pid in 0..%cdiv args(%N, %a; @x, @y) {entry = \"axpy_f16_v0__0\", warps = 4}\n"
    "}\n"
    "kernel axpy.f16.v1(dim N, %a: f32, in @x: f16[%N], inout @y: f16[%N]) of axpy.f16.v1 {\n"
    "  axis n of N by 4096\n"
    "  %cdiv = cdiv %N, 4096 : index\n"
    "  launch %pid in 0..%cdiv args(%N, %a; @x, @y) {entry = \"axpy_f16_v1__0\", warps = 8, smem = "
    "49408}\n"
    "}\n"
    "kernel axpy.f32(dim N, %a: f32, in @x: f32[%N], inout @y: f32[%N]) {\n"
    "  axis n of N by 2048\n"
    "  %cdiv = cdiv %N, 2048 : index\n"
    "  launch %pid in 0..%cdiv args(%N, %a; @x, @y) {entry = \"axpy_f32__0\", warps = 4}\n"
    "}\n";
static const char axpy_entries[] =
    "// entry axpy_f16_v0__0 4\n// entry axpy_f16_v1__0 6\n// entry axpy_f32__0 6\n";

static uint32_t float_code(float f) {
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

Test(runtime_launch, special_variant) {
    FuseDevice *d = fake_device();
    FuseModule *m = fake_module(d, axpy_plan, axpy_entries);
    FuseKernel *k = kernel_named(m, "axpy");
    TestTensor *x = tensor_at(0x10000, type_f16, 1, 8200),
               *y = tensor_at(0x20000, type_f16, 1, 8200);
    FuseRtLaunchInfo info = {0};
    EXPECT_OK(LAUNCH(k, &info, arg_float(NULL, 2.5), arg_tensor(NULL, x), arg_tensor(NULL, y)));
    cr_assert_eq(fake.nlaunch, 1);
    const FakeLaunch *l = &fake.launch[0];
    cr_expect_str_eq(l->entry, "axpy_f16_v0__0");
    cr_expect_eq(l->grid, 3);
    cr_expect_eq(l->block, 128);
    cr_expect_eq(l->shared, 0);
    // The innermost stride is not passed where it is known to be 1.
    cr_expect_eq(l->param[0], 0x10000);
    cr_expect_eq(l->param[1], 0x20000);
    cr_expect_eq(l->param[2], 8200);
    cr_expect_eq((uint32_t)l->param[3], float_code(2.5f));
    cr_expect_str_eq(info.kernel, "axpy.f16");
    cr_expect_eq(info.variant, 0);
    cr_expect_eq(info.launches, 1);
    cr_expect_eq(info.workspace, 0);
    cr_expect_null(fake.current, "the context is left as it was");
    fuse_rt_module_close(m);
    fuse_rt_device_close(d);
    cr_expect_eq(fake.modules, 0);
    cr_expect_eq(fake.retained, 0);
}

Test(runtime_launch, guards_choose_the_general_variant) {
    FuseDevice *d = fake_device();
    FuseModule *m = fake_module(d, axpy_plan, axpy_entries);
    FuseKernel *k = kernel_named(m, "axpy.f16");
    struct {
        uint64_t x;
        int n, stride, variant;
    } cases[] = {
        {0x10000, 4096, 1, 0}, {0x10000, 4097, 1, 1}, // N % 8
        {0x10002, 4096, 1, 1},                        // alignment
        {0x10000, 4096, 2, 1},                        // contiguity
        {0x10000, 0, 2, 0},                           // nothing to guard in an empty tensor
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        TestTensor *x = tensor_at(cases[i].x, type_f16, 1, cases[i].n),
                   *y = tensor_at(0x200000, type_f16, 1, cases[i].n);
        x->stride[0] = cases[i].stride;
        FuseRtLaunchInfo info = {.variant = -1};
        EXPECT_OK(LAUNCH(k, &info, arg_tensor("y", y), arg_tensor("x", x), arg_int("a", 3)));
        cr_expect_eq(info.variant, cases[i].variant, "case %zu: %d", i, info.variant);
        cr_expect_eq(info.launches, cases[i].n > 0);
    }
    // The strided one: address, stride, address, stride, N, a.
    const FakeLaunch *l = &fake.launch[3];
    cr_expect_eq(l->param[1], 2);
    cr_expect_eq(l->param[3], 1);
    cr_expect_eq(l->param[4], 4096);
    cr_expect_eq((uint32_t)l->param[5], float_code(3));
    cr_expect_eq(l->block, 256);
    cr_expect_eq(l->shared, 49408);
    cr_expect_eq(fake.function[1].max_shared, 49408);
    fuse_rt_module_close(m);
    fuse_rt_device_close(d);
}

Test(runtime_launch, guard_kinds) {
    static const char plan[] =
        "kernel k.v0(dim M, dim N, in opt @b: f32[%N] {absent = true}, in @x: f32[%M, %N] {inner = "
        "1, sdiv = 4, fits32 "
        "= true}) of k.v1 {\n  launch %p in 0..1 args(; @x) {entry = \"a\", warps = 1}\n}\n"
        "kernel k.v1(dim M, dim N, in opt @b: f32[%N], in @x: f32[%M, %N]) of k.v1 {\n"
        "  launch %p in 0..1 args(; @x) {entry = \"b\", warps = 1}\n}\n";
    FuseDevice *d = fake_device();
    FuseModule *m = fake_module(d, plan, "// entry a 2\n// entry b 3\n");
    FuseKernel *k = kernel_named(m, NULL);
    FuseRtLaunchInfo info;
    TestTensor *b = tensor_at(0x1000, type_f32, 1, 64),
               *x = tensor_at(0x100000, type_f32, 2, 16, 64);
    EXPECT_OK(LAUNCH(k, &info, arg_absent("b"), arg_tensor("x", x)));
    cr_expect_eq(info.variant, 0);
    EXPECT_OK(LAUNCH(k, &info, arg_tensor("x", x)));
    cr_expect_eq(info.variant, 0);
    EXPECT_OK(LAUNCH(k, &info, arg_tensor("b", b), arg_tensor("x", x)));
    cr_expect_eq(info.variant, 1);
    x->stride[0] = 66;
    EXPECT_OK(LAUNCH(k, &info, arg_tensor("x", x)));
    cr_expect_eq(info.variant, 1, "66 is no multiple of 4");
    x->shape[0] = 1;
    EXPECT_OK(LAUNCH(k, &info, arg_tensor("x", x)));
    cr_expect_eq(info.variant, 0, "the stride of an extent of 1 does not matter");
    x->shape[0] = 16;
    x->stride[0] = (((int64_t)1 << 29) - 64) / 15 / 4 * 4;
    EXPECT_OK(LAUNCH(k, &info, arg_tensor("x", x)));
    cr_expect_eq(info.variant, 0);
    x->stride[0] += 4;
    EXPECT_OK(LAUNCH(k, &info, arg_tensor("x", x)));
    cr_expect_eq(info.variant, 1, "2^31 bytes");
    x->stride[0] = -x->stride[0];
    EXPECT_OK(LAUNCH(k, &info, arg_tensor("x", x)));
    cr_expect_eq(info.variant, 1);
    fuse_rt_module_close(m);
    fuse_rt_device_close(d);
}

Test(runtime_launch, no_variant) {
    static const char plan[] =
        "kernel k(dim N, in @x: f32[%N]) {\n  %c = cmp.le %N, 16 : bool\n  when %c\n"
        "  launch %p in 0..%N args(; @x) {entry = \"a\", warps = 1}\n}\n";
    FuseDevice *d = fake_device();
    FuseModule *m = fake_module(d, plan, "// entry a 2\n");
    FuseKernel *k = kernel_named(m, "k");
    TestTensor *x = tensor_at(0x1000, type_f32, 1, 17);
    EXPECT_FAIL(LAUNCH(k, NULL, arg_tensor("x", x)), FUSE_RT_NO_VARIANT,
                "k: none of its 1 variants takes these arguments");
    fuse_rt_module_close(m);
    fuse_rt_device_close(d);
}

Test(runtime_launch, families) {
    FuseDevice *d = fake_device();
    FuseModule *m = fake_module(d, axpy_plan, axpy_entries);
    FuseKernel *k = kernel_named(m, "axpy"), *one = NULL;
    cr_expect_eq(kernel_named(m, NULL), k);
    cr_expect_eq(fuse_rt_kernel_count(m), 2);
    cr_expect_eq(fuse_rt_kernel_instance_count(k), 2);
    cr_expect_str_eq(fuse_rt_kernel_name(fuse_rt_kernel_at(m, 0)), "axpy.f16");
    cr_expect_str_eq(fuse_rt_kernel_name(fuse_rt_kernel_instance_at(k, 1)), "axpy.f32");
    cr_expect_null(fuse_rt_kernel_at(m, 2));
    cr_expect_eq(fuse_rt_kernel_variant_count(fuse_rt_kernel_at(m, 0)), 2);
    cr_expect_eq(fuse_rt_kernel_param_count(k), 3);
    cr_expect_str_eq(fuse_rt_kernel_param(k, 0)->dtype, "f32");
    cr_expect_str_eq(fuse_rt_kernel_param(k, 1)->dtype, "", "the instances differ");
    cr_expect_eq(fuse_rt_kernel_param(k, 2)->mode, FUSE_RT_INOUT);
    cr_expect_str_eq(fuse_rt_kernel_param(k, 2)->dims[0].name, "N");
    cr_expect_null(fuse_rt_kernel_param(k, 3));

    TestTensor *x = tensor_at(0x10000, type_f32, 1, 8), *y = tensor_at(0x20000, type_f32, 1, 8);
    FuseRtArg known[] = {arg_tensor("x", x)};
    EXPECT_OK(fuse_rt_kernel_select(k, 1, known, &one));
    cr_expect_eq(one, fuse_rt_kernel_at(m, 1));
    FuseRtLaunchInfo info;
    EXPECT_OK(LAUNCH(k, &info, arg_float("a", 1), arg_tensor("x", x), arg_tensor("y", y)));
    cr_expect_str_eq(info.kernel, "axpy.f32");
    x->t.dtype = type_bf16;
    EXPECT_FAIL(
        LAUNCH(k, NULL, arg_float("a", 1), arg_tensor("x", x), arg_tensor("y", y)),
        FUSE_RT_NO_VARIANT,
        "`axpy`: no instance has the arguments' types; its instances are axpy.f16, axpy.f32");
    EXPECT_FAIL(
        fuse_rt_kernel_select(k, 0, NULL, &one), FUSE_RT_NO_VARIANT,
        "`axpy`: the arguments' types fit several instances; its instances are axpy.f16, axpy.f32");
    cr_expect_null(one);
    EXPECT_FAIL(fuse_rt_kernel_find(m, "axpi", &one), FUSE_RT_INVALID_ARGUMENT,
                "there is no kernel `axpi`; the module has axpy");
    fuse_rt_module_close(m);
    fuse_rt_device_close(d);
}

// --- temporaries ---

static const char temps_plan[] =
    "kernel two(dim M, dim N, in @x: f32[%M, %N], out @y: f32[%M]) {\n"
    "  @h = temp {zero = true} : f32[%M, %N]\n"
    "  launch %p in 0..%M args(%N; @x, @h) {entry = \"first\", warps = 2}\n"
    "  %n = mul %N, 2 : index\n"
    "  @g = temp : bf16[%n]\n"
    "  launch %q in 2..%M args(%n; @y, @h, @g) {entry = \"second\", warps = 1, smem = 64}\n"
    "}\n";

Test(runtime_launch, workspace_is_kept_and_grown) {
    FuseDevice *d = fake_device();
    FuseModule *m = fake_module(d, temps_plan, "// entry first 6\n// entry second 6\n");
    FuseKernel *k = kernel_named(m, "two");
    FuseRtLaunchInfo info;
    TestTensor *x = tensor_at(0x100000, type_f32, 2, 5, 10),
               *y = tensor_at(0x200000, type_f32, 1, 5);
    EXPECT_OK(LAUNCH(k, &info, arg_tensor("x", x), arg_tensor("y", y)));
    cr_expect_eq(info.launches, 2);
    cr_expect_eq(info.workspace, 256 + 256);
    cr_expect_eq(fake.allocs, 1);
    cr_expect_eq(fake.alloc_bytes, 512);
    cr_expect_eq(fake.fills, 1, "only the zeroed one");
    const FakeLaunch *first = &fake.launch[0], *second = &fake.launch[1];
    cr_expect_eq(first->grid, 5);
    cr_expect_eq(second->grid, 3, "from 2 to M");
    uint64_t h = first->param[3]; // x, 2 strides, h, stride, N
    cr_expect_eq(first->param[4], 10, "a dense temporary");
    cr_expect_eq(first->param[5], 10);
    cr_expect_eq(second->param[2], h); // y, stride, h, stride, g, n
    cr_expect_eq(second->param[4], h + 256);
    cr_expect_eq(second->param[5], 20);
    cr_expect_eq(second->shared, 64);

    EXPECT_OK(LAUNCH(k, &info, arg_tensor("x", x), arg_tensor("y", y)));
    cr_expect_eq(fake.allocs, 1, "kept");
    cr_expect_eq(fake.launch[2].param[3], h);
    FuseRtArg args[] = {arg_tensor("x", x), arg_tensor("y", y)};
    EXPECT_OK(fuse_rt_launch(k, (void *)0x77, 2, args, NULL));
    cr_expect_eq(fake.allocs, 2, "another stream has its own");
    cr_expect_eq(fake.launch[4].stream, (CudaStream *)0x77);
    x = tensor_at(0x100000, type_f32, 2, 5, 100);
    EXPECT_OK(LAUNCH(k, &info, arg_tensor("x", x), arg_tensor("y", y)));
    cr_expect_eq(fake.allocs, 3, "grown");
    cr_expect_eq(fake.frees, 1);
    for (int i = 0; i < 40; i++) {
        FuseRtArg more[] = {arg_tensor("x", x), arg_tensor("y", y)};
        EXPECT_OK(fuse_rt_launch(k, (void *)(uintptr_t)(0x1000 + i), 2, more, NULL));
    }
    cr_expect(fake.allocs - fake.frees <= 16, "streams that are not used any more give theirs up");
    fuse_rt_module_close(m);
    cr_expect_eq(fake.allocs, fake.frees);
    fuse_rt_device_close(d);
}

Test(runtime_launch, out_of_memory) {
    FuseDevice *d = fake_device();
    FuseModule *m = fake_module(d, temps_plan, "// entry first 6\n// entry second 6\n");
    FuseKernel *k = kernel_named(m, "two");
    TestTensor *x = tensor_at(0x100000, type_f32, 2, 5, 10),
               *y = tensor_at(0x200000, type_f32, 1, 5);
    fake.fail = "cuMemAlloc";
    fake.result = CUDA_OUT_OF_MEMORY;
    EXPECT_FAIL(LAUNCH(k, NULL, arg_tensor("x", x), arg_tensor("y", y)), FUSE_RT_OUT_OF_MEMORY,
                "cuda:0 is out of memory (512 bytes asked for)");
    cr_expect_eq(fake.nlaunch, 0, "nothing was started");
    fake.fail = NULL;
    EXPECT_OK(LAUNCH(k, NULL, arg_tensor("x", x), arg_tensor("y", y)));
    fuse_rt_module_close(m);
    fuse_rt_device_close(d);
}

// --- control flow ---

Test(runtime_launch, loops_and_conditions) {
    static const char plan[] =
        "kernel k(dim N, %up: bool, out @y: f32[%N]) {\n"
        "  %s = if %up : index {\n"
        "    %a = add %N, 1 : index\n"
        "    yield %a\n"
        "  } {\n"
        "    yield %N\n"
        "  }\n"
        "  %last, %f = for %i in 0..%s step 2, %j in 0..2 carry (%c = 1 : index, %d = 0 : index) : "
        "index, index {\n"
        "    %c2 = mul %c, 3 : index\n"
        "    %at = mul %i, 10 : index\n"
        "    %id = add %at, %j : index\n"
        "    @t = temp : f32[%s]\n"
        "    launch %p in 0..%c args(%id, %d; @t) {entry = \"body\", warps = 1}\n"
        "    %over = cmp.gt %c2, 20 : bool\n"
        "    yield %c2, %c stop %over\n"
        "  }\n"
        "  launch %q in 0..%last args(%f; @y) {entry = \"end\", warps = 1}\n"
        "  %z = while carry (%w = 5 : index) : index {\n"
        "    %w1 = sub %w, 2 : index\n"
        "    %neg = cmp.lt %w1, 0 : bool\n"
        "    yield %w1 stop %neg\n"
        "  }\n"
        "  %m = neg %z : index\n"
        "  launch %r in 0..%m args(%z; @y) {entry = \"end\", warps = 1}\n"
        "}\n";
    FuseDevice *d = fake_device();
    FuseModule *m = fake_module(d, plan, "// entry body 3\n// entry end 3\n");
    FuseKernel *k = kernel_named(m, "k");
    FuseRtLaunchInfo info;
    TestTensor *y = tensor_at(0x100000, type_f32, 1, 4);
    EXPECT_OK(LAUNCH(k, &info, arg_int("up", 1), arg_tensor("y", y)));
    // s = 5: (0,0) (0,1) (2,0), then 27 > 20 stops.
    cr_assert_eq(fake.nlaunch, 5);
    const unsigned grids[] = {1, 3, 9, 27, 1};
    const uint64_t ids[] = {0, 1, 20}, before[] = {0, 1, 3};
    for (int i = 0; i < 5; i++)
        cr_expect_eq(fake.launch[i].grid, grids[i], "%d: %u", i, fake.launch[i].grid);
    for (int i = 0; i < 3; i++) { // t, then the scalars
        cr_expect(fake.launch[i].param[1] == ids[i] && fake.launch[i].param[2] == before[i]);
        cr_expect_eq(fake.launch[i].param[0], fake.launch[0].param[0],
                     "one temporary after another at one place");
    }
    cr_expect_eq(info.workspace, 256);
    cr_expect_eq((int64_t)fake.launch[4].param[2], -1);
    cr_expect_eq(info.launches, 5);

    fake.nlaunch = 0;
    TestTensor *small = tensor_at(0x100000, type_f32, 1, 1);
    EXPECT_OK(LAUNCH(k, &info, arg_int("up", 0), arg_tensor("y", small)));
    cr_expect_eq(fake.nlaunch, 4, "(0,0) (0,1) end end");
    fuse_rt_module_close(m);
    fuse_rt_device_close(d);
}

Test(runtime_launch, scalars_of_every_kind) {
    static const char plan[] = "kernel k(dim N, %a: i8, %b: f16, %c: bool = true, %d: f64 = "
                               "1.5:f64, %e: u32, %g: f32, in opt @x: f32[%N], out "
                               "@y: f32[%N]) {\n"
                               "  %h = mul %g, 2.0:f32 : f32\n"
                               "  %i = cast %a : i32\n"
                               "  %k = mul %i, 1000000000:i32 : i32\n"
                               "  %p = present @x : bool\n"
                               "  %s = stride @y {dim = 0} : index\n"
                               "  %n = extent @y {dim = 0} : index\n"
                               "  %t = sms : index\n"
                               "  %lo = min %n, %t : index\n"
                               "  launch %q in 0..%lo args(%a, %b, %c, %d, %e, %h, %k, %p, %s, %n; "
                               "@x, @y) {entry = \"e\", warps = 1, cluster "
                               "= 2, pdl = true}\n"
                               "}\n";
    FuseDevice *d = fake_device();
    FuseModule *m = fake_module(d, plan, "// entry e 14\n");
    FuseKernel *k = kernel_named(m, "k");
    TestTensor *y = tensor_at(0x100000, type_f32, 1, 300);
    EXPECT_OK(LAUNCH(k, NULL, arg_int("a", -3), arg_float("b", 1.0), arg_int("e", 4000000000),
                     arg_float("g", 0.1), arg_tensor("y", y)));
    const FakeLaunch *l = &fake.launch[0];
    cr_expect_eq(l->grid, 132);
    cr_expect_eq(l->cluster, 2);
    cr_expect(l->pdl);
    cr_expect_eq(l->param[0], 0, "an absent tensor is a null pointer");
    const uint64_t *s = &l->param[4]; // in the order of the plan's list
    cr_expect_eq((int8_t)s[0], -3);
    cr_expect_eq((uint16_t)s[1], 0x3c00);
    cr_expect_eq((uint8_t)s[2], 1);
    double f;
    memcpy(&f, &s[3], sizeof f);
    cr_expect_eq(f, 1.5);
    cr_expect_eq((uint32_t)s[4], 4000000000u);
    cr_expect_eq((uint32_t)s[5], float_code(0.2f));
    cr_expect_eq((int32_t)s[6], (int32_t)(-3000000000ll), "i32 wraps");
    cr_expect_eq((uint8_t)s[7], 0);
    cr_expect_eq(s[8], 1);
    cr_expect_eq(s[9], 300);
    fuse_rt_module_close(m);
    fuse_rt_device_close(d);
}

// `sms` of a launch: what the driver says of its function, asked once.
Test(runtime_launch, programs_that_fit) {
    static const char plan[] =
        "kernel k(dim N, out @y: f32[%N]) {\n"
        "  %t = sms {entry = \"e\"} : index\n"
        "  %g = min %N, %t : index\n"
        "  launch %q in 0..%g args(%N, %g; @y) {entry = \"e\", warps = 16, smem = 4096}\n"
        "}\n";
    FuseDevice *d = fake_device();
    FuseModule *m = fake_module(d, plan, "// entry e 4\n");
    FuseKernel *k = kernel_named(m, "k");
    EXPECT_OK(LAUNCH(k, NULL, arg_tensor("y", tensor_at(0x100000, type_f32, 1, 1000))));
    EXPECT_OK(LAUNCH(k, NULL, arg_tensor("y", tensor_at(0x100000, type_f32, 1, 300))));
    cr_expect_eq(fake.launch[0].grid, 4 * 132);
    cr_expect_eq(fake.launch[1].grid, 300);
    cr_expect_eq(fake.residents, 1);
    fuse_rt_module_close(m);
    fuse_rt_device_close(d);
}

Test(runtime_launch, programs_of_no_launch) {
    static const char plan[] = "kernel k(dim N, out @y: f32[%N]) {\n"
                               "  %t = sms {entry = \"f\"} : index\n"
                               "  launch %q in 0..%t args(; @y) {entry = \"e\", warps = 1}\n"
                               "}\n";
    FuseDevice *d = fake_device();
    FuseModule *m = NULL;
    char *ptx = fake_ptx(plan, "// entry e 2\n");
    cr_expect_neq(fuse_rt_module_from_ptx(d, "test.ptx", ptx, strlen(ptx), &m), FUSE_RT_OK);
    cr_expect(strstr(fuse_rt_last_error(), "a launch that it does not have: f"), "%s",
              fuse_rt_last_error());
    free(ptx);
    fuse_rt_device_close(d);
}

Test(runtime_launch, grid_too_large) {
    static const char plan[] = "kernel k(%n: index, out @y: f32[8]) {\n"
                               "  launch %p in 0..%n args(; @y) {entry = \"e\", warps = 1}\n}\n";
    FuseDevice *d = fake_device();
    FuseModule *m = fake_module(d, plan, "// entry e 2\n");
    FuseKernel *k = kernel_named(m, "k");
    TestTensor *y = tensor_at(0x1000, type_f32, 1, 8);
    EXPECT_OK(LAUNCH(k, NULL, arg_int("n", 2147483647), arg_tensor("y", y)));
    EXPECT_OK(LAUNCH(k, NULL, arg_int("n", -5), arg_tensor("y", y)));
    cr_expect_eq(fake.nlaunch, 1);
    EXPECT_FAIL(LAUNCH(k, NULL, arg_int("n", 2147483648), arg_tensor("y", y)), FUSE_RT_UNSUPPORTED,
                "k: launch e would need 2147483648 programs; the most is 2147483647");
    fuse_rt_module_close(m);
    fuse_rt_device_close(d);
}

// The product or difference that a grid is made of may leave 64 bits and look like few programs, or
// none; where a range is empty the others do not count.
Test(runtime_launch, grid_beyond_64_bits) {
    static const char plan[] = "kernel k(%n: index, %lo: index, %z: index, out @y: f32[8]) {\n"
                               "  %m = max %n, %lo : index\n"
                               "  %s = sub %m, %lo : index\n"
                               "  %c = cdiv %s, 4 : index\n"
                               "  %a = mul %c, %n : index\n"
                               "  %t = mul %a, %z : index\n"
                               "  launch %p in 0..%t args(; @y) {entry = \"e\", warps = 1}\n}\n";
    FuseDevice *d = fake_device();
    FuseModule *m = fake_module(d, plan, "// entry e 2\n");
    FuseKernel *k = kernel_named(m, "k");
    TestTensor *y = tensor_at(0x1000, type_f32, 1, 8);
    const int64_t big = INT64_C(1) << 33;
    EXPECT_OK(
        LAUNCH(k, NULL, arg_int("n", 8), arg_int("lo", 0), arg_int("z", 3), arg_tensor("y", y)));
    EXPECT_OK(
        LAUNCH(k, NULL, arg_int("n", big), arg_int("lo", 0), arg_int("z", 0), arg_tensor("y", y)));
    EXPECT_OK(LAUNCH(k, NULL, arg_int("n", -5), arg_int("lo", INT64_MAX), arg_int("z", 1),
                     arg_tensor("y", y)));
    cr_expect_eq(fake.nlaunch, 1);
    static const char says[] =
        "k: the number of programs of a launch leaves 64 bits; the most is 2147483647";
    EXPECT_FAIL(
        LAUNCH(k, NULL, arg_int("n", big), arg_int("lo", 0), arg_int("z", 1), arg_tensor("y", y)),
        FUSE_RT_UNSUPPORTED, says);
    EXPECT_FAIL(LAUNCH(k, NULL, arg_int("n", INT64_MAX), arg_int("lo", -9), arg_int("z", 1),
                       arg_tensor("y", y)),
                FUSE_RT_UNSUPPORTED, says);
    fuse_rt_module_close(m);
    fuse_rt_device_close(d);
}

// What fails late fails before anything has started.
Test(runtime_launch, all_or_nothing) {
    static const char plan[] = "kernel k(dim N, %n: index, out @y: f32[%N]) {\n"
                               "  launch %p in 0..%N args(; @y) {entry = \"e\", warps = 1}\n"
                               "  %ok = cmp.lt %n, 9 : bool\n"
                               "  require %ok {msg = \"n < 9\"}\n"
                               "  launch %q in 0..%n args(; @y) {entry = \"e\", warps = 1}\n}\n";
    FuseDevice *d = fake_device();
    FuseModule *m = fake_module(d, plan, "// entry e 2\n");
    FuseKernel *k = kernel_named(m, "k");
    TestTensor *y = tensor_at(0x1000, type_f32, 1, 8);
    EXPECT_FAIL(LAUNCH(k, NULL, arg_int("n", 9), arg_tensor("y", y)), FUSE_RT_INVALID_ARGUMENT,
                "k: the arguments do not meet the condition `n < 9`");
    cr_expect_eq(fake.nlaunch, 0);
    EXPECT_OK(LAUNCH(k, NULL, arg_int("n", 8), arg_tensor("y", y)));
    cr_expect_eq(fake.nlaunch, 2);
    fuse_rt_module_close(m);
    fuse_rt_device_close(d);
}

Test(runtime_launch, driver_errors) {
    FuseDevice *d = fake_device();
    FuseModule *m = fake_module(d, axpy_plan, "// entry axpy_f32__0 6\n");
    FuseKernel *k = kernel_named(m, "axpy.f32"), *half = kernel_named(m, "axpy.f16");
    TestTensor *x = tensor_at(0x10000, type_f32, 1, 8), *y = tensor_at(0x20000, type_f32, 1, 8);
    fake.fail = "cuLaunchKernel";
    fake.result = 719;
    EXPECT_FAIL(LAUNCH(k, NULL, arg_float("a", 1), arg_tensor("x", x), arg_tensor("y", y)),
                FUSE_RT_DRIVER,
                "launch axpy_f32__0: cuLaunchKernel: CUDA_ERROR_LAUNCH_FAILED: unspecified launch "
                "failure (grid 1, 4 "
                "warps, 0 bytes of shared memory)");
    x->t.dtype = y->t.dtype = type_f16;
    EXPECT_FAIL(LAUNCH(half, NULL, arg_float("a", 1), arg_tensor("x", x), arg_tensor("y", y)),
                FUSE_RT_DRIVER, "launch axpy_f16_v0__0: cuModuleGetFunction: CUDA error 500");
    fake.fail = "cuStreamSynchronize";
    EXPECT_FAIL(fuse_rt_synchronize(d, (void *)1), FUSE_RT_DRIVER,
                "cuStreamSynchronize: CUDA_ERROR_LAUNCH_FAILED: unspecified launch failure");
    cr_expect_null(fake.current);
    fuse_rt_module_close(m);
    fuse_rt_device_close(d);
}

Test(runtime_launch, runs_in_a_context_that_is_current) {
    FuseDevice *d = fake_device();
    FuseModule *m = fake_module(d, axpy_plan, axpy_entries);
    FuseKernel *k = kernel_named(m, "axpy.f32");
    TestTensor *x = tensor_at(0x10000, type_f32, 1, 8), *y = tensor_at(0x20000, type_f32, 1, 8);
    fake.current = d->context;
    EXPECT_OK(LAUNCH(k, NULL, arg_float("a", 1), arg_tensor("x", x), arg_tensor("y", y)));
    cr_expect_eq(fake.depth, 0);
    cr_expect_eq(fake.current, d->context);
    fake.current = NULL;
    fuse_rt_module_close(m);
    fuse_rt_device_close(d);
}

// What a launch costs besides the driver's own time. Only a gross regression fails.
Test(runtime_launch, overhead) {
    enum { BATCHES = 20, ROUNDS = 1000 };
    FuseDevice *d = fake_device();
    FuseModule *m = fake_module(d, axpy_plan, axpy_entries);
    FuseKernel *k = kernel_named(m, "axpy");
    TestTensor *x = tensor_at(0x10000, type_f16, 1, 8200),
               *y = tensor_at(0x20000, type_f16, 1, 8200);
    FuseRtArg args[] = {arg_float("a", 2.5), arg_tensor("x", x), arg_tensor("y", y)};
    double best = INFINITY;
    for (int batch = 0; batch < BATCHES; batch++) {
        struct timespec from, to;
        clock_gettime(CLOCK_MONOTONIC, &from);
        for (int i = 0; i < ROUNDS; i++)
            cr_assert_eq(fuse_rt_launch(k, NULL, 3, args, NULL), FUSE_RT_OK);
        clock_gettime(CLOCK_MONOTONIC, &to);
        double ns = 1e9 * (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec);
        best = fmin(best, ns / ROUNDS);
    }
    cr_log_info("%.0f ns a launch", best);
    cr_expect_lt(best, 100000.0);
    cr_expect_eq(fake.ncount, BATCHES * ROUNDS);
    fuse_rt_module_close(m);
    fuse_rt_device_close(d);
}

// --- tensor maps ---

static const char map_plan[] =
    "kernel copy(dim M, dim N, in @x: bf16[%M, %N] {align = 16, inner = 1, sdiv = 8}, out @y: "
    "bf16[%M, %N] {align = 16, inner = 1, sdiv = 8}) {\n"
    "  launch %pid in 0..%M args(%M; @x, @y) {entry = \"copy__0\", maps = [0, 128, 2, 1, 64, 0, "
    "32, "
    "1, 0, 2, 1, 8, 0, 1], warps = 4}\n"
    "}\n";

Test(runtime_launch, tensor_maps) {
    FuseDevice *d = fake_device();
    FuseModule *m = fake_module(d, map_plan, "// entry copy__0 7\n");
    FuseKernel *k = kernel_named(m, "copy");
    TestTensor *x = tensor_at(0x10000, type_bf16, 2, 48, 80),
               *y = tensor_at(0x20000, type_bf16, 2, 48, 80);
    EXPECT_OK(LAUNCH(k, NULL, arg_tensor(NULL, x), arg_tensor(NULL, y)));
    cr_assert_eq(fake.nlaunch, 1);
    cr_assert_eq(fake.nmap, 2);
    const FakeMap *map = fake.map;
    cr_expect_eq(map[0].type, CUDA_MAP_BF16);
    cr_expect_eq(map[0].swizzle, 3);
    cr_expect_eq(map[1].swizzle, 0);
    cr_expect_eq((uintptr_t)map[0].base, 0x10000);
    cr_expect_eq(map[0].rank, 2);
    cr_expect(map[0].dims[0] == 80 && map[0].dims[1] == 48 && map[0].strides[0] == 160);
    cr_expect(map[0].box[0] == 64 && map[0].box[1] == 32);
    cr_expect(map[1].box[0] == 8 && map[1].box[1] == 1);
    // x: map, pointer, stride; y: the same; M
    const uint64_t *param = fake.launch[0].param;
    cr_expect_eq(param[0], 0x7700);
    cr_expect_eq(param[1], 0x10000);
    cr_expect_eq(param[2], 80);
    cr_expect_eq(param[3], 0x7701);
    cr_expect_eq(param[4], 0x20000);
    cr_expect_eq(param[6], 48);
    fuse_rt_module_close(m);
    fuse_rt_device_close(d);
}
