// Spills of source that is compiled at run time: a driver that only answers, the real compiler.
#include "tests/runtime_support.h"

static const FuseCompilerApi compiler = FUSE_COMPILER_API;

// An instance with two variants.
static const char source[] = "kernel twice(x: f32[M, N]) -> (y: f32[M, N]) { y = x * 2; }\n";

static FuseDevice *device(int registers, int local_bytes) {
    CudaDriver driver = fake_driver();
    FuseRtDeviceOptions options = {.compiler = &compiler};
    FuseDevice *d;
    EXPECT_OK(device_open_cuda(&driver, 0, &options, &d));
    fake.registers = registers;
    fake.local_bytes = local_bytes;
    return d;
}

static const char report[] =
    "k.fk:1:48: %s[spills]: `twice_v0__0` spills: 24 bytes of each thread do not fit in its 128 "
    "registers and go through memory\n"
    "    1 | kernel twice(x: f32[M, N]) -> (y: f32[M, N]) { y = x * 2; }\n"
    "      |                                                ^~~~~~~~~~\n"
    "note: in `twice.v0` for sm_90a\n"
    "hint: smaller tiles or more warps leave a thread less to hold: `schedule { N = 256; warps = "
    "8; "
    "}`, or a smaller size in `tiles(...)`\n";

static void check(FuseDevice *d, const FuseRtBuild *build, const char *expect) {
    FuseModule *m;
    EXPECT_OK(fuse_rt_module_from_source(d, "k.fk", source, strlen(source), build, &m));
    cr_expect_str_eq(fuse_rt_module_messages(m), expect, "%s", fuse_rt_module_messages(m));
    const char *id = fuse_rt_module_diagnostic(m, 0);
    cr_expect(*expect ? id && !strcmp(id, "spills") : !id);
    fuse_rt_module_close(m);
    cr_expect_eq(fake.depth, 0);
    fuse_rt_device_close(d);
}

Test(runtime_spills, note) {
    char expect[1024];
    snprintf(expect, sizeof expect, report, "perf");
    check(device(128, 24), NULL, expect);
}

// The most special variant alone is asked for.
Test(runtime_spills, functions_that_are_asked) {
    check(device(128, 0), NULL, "");
    cr_expect_eq(fake.nfunction, 1);
    cr_expect_str_eq(fake.function[0].name, "twice_v0__0");
}

Test(runtime_spills, silenced) {
    check(device(128, 24), &(FuseRtBuild){.no_perf_notes = true}, "");
    cr_expect_eq(fake.nfunction, 0);
    const char *const flags[] = {"no-spills", NULL};
    check(device(128, 24), &(FuseRtBuild){.warnings = flags}, "");
}

Test(runtime_spills, error) {
    FuseDevice *d = device(128, 24);
    FuseModule *m;
    char expect[1024];
    const char *const flags[] = {"error=perf", NULL};
    snprintf(expect, sizeof expect, report, "error");
    EXPECT_FAIL(fuse_rt_module_from_source(d, "k.fk", source, strlen(source),
                                           &(FuseRtBuild){.warnings = flags}, &m),
                FUSE_RT_COMPILE, expect);
    cr_expect_eq(fake.modules, 0);
    fuse_rt_device_close(d);
}

// Nothing is said where the driver does not answer.
Test(runtime_spills, no_answer) {
    FuseDevice *d = device(128, 24);
    fake.fail = "cuFuncGetAttribute";
    fake.result = 1;
    check(d, NULL, "");
    d = device(128, 24);
    d->cuda.function_attribute = NULL;
    check(d, NULL, "");
}
