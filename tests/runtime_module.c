// Devices and modules: names, files, PTX heads, the messages of what is wrong, the compiler's side.
#include "tests/runtime_support.h"

#include <pthread.h>
#include <unistd.h>

static const char plan[] = "kernel k(dim N, in @x: f32[%N]) {\n"
                           "  launch %p in 0..%N args(; @x) {entry = \"e\", warps = 1}\n}\n";

static FuseRtStatus load(FuseDevice *d, const char *text) {
    FuseModule *m = (FuseModule *)1;
    FuseRtStatus status = fuse_rt_module_from_ptx(d, "k.ptx", text, strlen(text), &m);
    cr_expect((m == NULL) == (status != FUSE_RT_OK));
    if (status == FUSE_RT_OK)
        fuse_rt_module_close(m);
    return status;
}

Test(runtime_module, device_names) {
    FuseDevice *d = (FuseDevice *)1;
    EXPECT_FAIL(fuse_rt_device_open("tpu", NULL, &d), FUSE_RT_INVALID_ARGUMENT,
                "`tpu` is no device; devices are cuda, cuda:1, cpu, sim, sim:sm_80, eval");
    cr_expect_null(d);
    EXPECT_FAIL(fuse_rt_device_open("cuda:x", NULL, &d), FUSE_RT_INVALID_ARGUMENT,
                "`cuda:x` does not name a GPU; write cuda:0");
    EXPECT_FAIL(fuse_rt_device_open("cuda:", NULL, &d), FUSE_RT_INVALID_ARGUMENT,
                "`cuda:` does not name a GPU; write cuda:0");
    EXPECT_FAIL(fuse_rt_device_open("sim:sm_1", NULL, &d), FUSE_RT_INVALID_ARGUMENT,
                "`sim:sm_1`: there is no simulator of `sm_1`; there are sm_80, sm_90a");
    EXPECT_FAIL(fuse_rt_device_open("cpu:z80", NULL, &d), FUSE_RT_INVALID_ARGUMENT,
                "`cpu:z80`: there is no processor `z80`; there are x86-64, x86-64-v3, x86-64-v4, "
                "aarch64");
    EXPECT_FAIL(fuse_rt_device_open("sim:", NULL, &d), FUSE_RT_INVALID_ARGUMENT,
                "`sim:`: there is no simulator of ``; there are sm_80, sm_90a");
    EXPECT_FAIL(fuse_rt_device_open(NULL, NULL, &d), FUSE_RT_INVALID_ARGUMENT,
                "fuse_rt_device_open: a null pointer");
    struct {
        const char *name, *target;
    } hosts[] = {
        {"cpu", "cpu"},        {"cpu:x86-64-v3", "cpu-x86-64-v3"}, {"cpu:aarch64", "cpu-aarch64"},
        {"sim", "sim-sm_90a"}, {"sim:sm_80", "sim-sm_80"},         {"eval", "cpu"}};
    for (int i = 0; i < 6; i++) {
        EXPECT_OK(fuse_rt_device_open(hosts[i].name, NULL, &d));
        cr_expect_str_eq(fuse_rt_device_name(d), hosts[i].name);
        cr_expect_str_eq(fuse_rt_device_target(d), hosts[i].target);
        cr_expect_eq(fuse_rt_device_dlpack(d).device_type, kDLCPU);
        fuse_rt_device_close(d);
    }
    fuse_rt_device_close(NULL);
}

Test(runtime_module, gpus) {
    CudaDriver driver = fake_driver();
    FuseDevice *d;
    EXPECT_FAIL(device_open_cuda(&driver, 2, NULL, &d), FUSE_RT_NO_DEVICE,
                "there is no cuda:2: this machine has 2 GPUs");
    fake.fail = "cuInit";
    fake.result = CUDA_NO_DEVICE;
    EXPECT_FAIL(device_open_cuda(&driver, 0, NULL, &d), FUSE_RT_NO_DEVICE,
                "cuInit: CUDA error 100");
    fake.fail = "cuDevicePrimaryCtxRetain";
    fake.result = CUDA_OUT_OF_MEMORY;
    EXPECT_FAIL(device_open_cuda(&driver, 0, NULL, &d), FUSE_RT_OUT_OF_MEMORY,
                "cuDevicePrimaryCtxRetain: CUDA_ERROR_OUT_OF_MEMORY: as asked by the test");
    fake.fail = NULL;
    struct {
        int major, minor;
        const char *target;
    } cases[] = {{8, 0, "sm_80"},   {8, 6, "sm_86"},    {8, 7, "sm_86"},  {8, 9, "sm_89"},
                 {9, 0, "sm_90a"},  {10, 0, "sm_100a"}, {10, 3, "sm_89"}, {12, 0, "sm_120"},
                 {12, 1, "sm_120"}, {7, 5, "sm_75"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fake.major = cases[i].major;
        fake.minor = cases[i].minor;
        EXPECT_OK(device_open_cuda(&driver, 1, NULL, &d));
        cr_expect_str_eq(fuse_rt_device_target(d), cases[i].target);
        cr_expect_str_eq(fuse_rt_device_name(d), "cuda:1");
        cr_expect_eq(fuse_rt_device_dlpack(d).device_id, 1);
        fuse_rt_device_close(d);
    }
}

Test(runtime_module, ptx_heads) {
    FuseDevice *d = fake_device();
    EXPECT_FAIL(load(d, ".version 8.0\n"), FUSE_RT_IO,
                "k.ptx: it has no launch plan (comment lines `//! ` at its head): was it compiled "
                "by fusec?");
    EXPECT_FAIL(load(d, ""), FUSE_RT_IO,
                "k.ptx: it has no launch plan (comment lines `//! ` at its head): was it compiled "
                "by fusec?");
    EXPECT_FAIL(load(d, "//! hello\n"), FUSE_RT_IO,
                "k.ptx: its first comment line is not that of fusec");
    EXPECT_FAIL(load(d, "//! fuse 2 sm_90a 00\n"), FUSE_RT_IO,
                "k.ptx: its launch plan has format 2; this run time reads format 1");
    EXPECT_FAIL(load(d, "//! fuse 1"), FUSE_RT_IO, "k.ptx: its first comment line names no target");
    EXPECT_FAIL(load(d, "//! fuse 1 sm_80 00\n//! nonsense\n"), FUSE_RT_IO,
                "k.ptx: the launch plan cannot be read: 1:1: `tir` is expected");
    EXPECT_FAIL(load(d, "//! fuse 1 sm_80 00\n//! tir tensor sm_80\n"), FUSE_RT_IO,
                "k.ptx: the launch plan cannot be read: a plan of stage tensor, not placed");
    EXPECT_FAIL(load(d, "//! fuse 1 sm_120 00\n"), FUSE_RT_UNSUPPORTED,
                "k.ptx: it is compiled for sm_120, but cuda:0 (Fake GPU 100) has compute "
                "capability 9.0: compile it "
                "with --target=sm_90a");
    fake.major = 8;
    fake.minor = 9;
    FuseDevice *ada = fake_device();
    EXPECT_FAIL(load(ada, "//! fuse 1 sm_90a 00\n"), FUSE_RT_UNSUPPORTED,
                "k.ptx: it is compiled for sm_90a, but cuda:0 (Fake GPU 100) has compute "
                "capability 8.9: compile it "
                "with --target=sm_89");
    EXPECT_OK(load(ada, "//! fuse 1 sm_80 00\r\n//! tir placed sm_80\r\n"));
    fuse_rt_device_close(ada);
    fuse_rt_device_close(d);
}

Test(runtime_module, plans) {
    FuseDevice *d = fake_device();
    struct {
        const char *plan, *text;
    } cases[] = {
        {"kernel k(dim N, in @x: f32[%N]) {\n  launch %p in 0..%N args(; @x) {entry = \"e\", warps "
         "= 33}\n}\n",
         "k.ptx: the launch plan cannot be read: kernel `k`: a launch has impossible attributes: "
         "e"},
        {"kernel k(dim N, in @x: f32[%N]) {\n  launch %p in 0..%N args(; @x) {entry = \"e\", warps "
         "= 1}\n"
         "  %c = cmp.eq %N, 1 : bool\n  when %c\n}\n",
         "k.ptx: the launch plan cannot be read: kernel `k`: `when` stands after a launch"},
        {"kernel k(dim N, in @x: f32[%N]) {\n  parallel %p in 0..%N {\n  }\n}\n",
         "k.ptx: the launch plan cannot be read: kernel `k`: an op that a plan cannot have: "
         "parallel"},
        {"kernel k.v0(dim N, in @x: f32[%N]) {\n}\nkernel k.v1(dim N, in @x: f16[%N]) {\n}\n",
         "k.ptx: the launch plan cannot be read: the parameters of `k.v0` are not those of `k.v1`"},
        {"kernel k(dim N, in @x: f32[%N]) {\n  for k in 0..%N {\n  }\n}\n", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *ptx = fake_ptx(cases[i].plan, "");
        FuseRtStatus status = load(d, ptx);
        cr_expect_eq(status, FUSE_RT_IO, "case %zu", i);
        if (cases[i].text)
            cr_expect_str_eq(fuse_rt_last_error(), cases[i].text);
        free(ptx);
    }
    fuse_rt_device_close(d);
}

Test(runtime_module, driver_refuses) {
    FuseDevice *d = fake_device();
    char *ptx = fake_ptx(plan, "");
    fake.fail = "cuModuleLoadDataEx";
    fake.result = CUDA_UNSUPPORTED_PTX_VERSION;
    EXPECT_FAIL(load(d, ptx), FUSE_RT_COMPILE,
                "k.ptx: its PTX has version 8.7, which is newer than this driver (CUDA 12.4) "
                "reads: update the driver");
    fake.result = CUDA_INVALID_PTX;
    EXPECT_FAIL(load(d, ptx), FUSE_RT_COMPILE,
                "k.ptx: cuModuleLoadDataEx: CUDA_ERROR_INVALID_PTX: as asked by the test\nptxas: "
                "line 7: bad");
    fake.result = CUDA_OUT_OF_MEMORY;
    EXPECT_FAIL(load(d, ptx), FUSE_RT_OUT_OF_MEMORY,
                "k.ptx: cuModuleLoadDataEx: CUDA_ERROR_OUT_OF_MEMORY: as asked by the test\nptxas: "
                "line 7: bad");
    free(ptx);
    fuse_rt_device_close(d);
}

Test(runtime_module, files) {
    FuseDevice *d = fake_device(), *cpu;
    FuseModule *m;
    EXPECT_FAIL(fuse_rt_module_from_file(d, "/nowhere/k.ptx", NULL, &m), FUSE_RT_IO,
                "/nowhere/k.ptx: No such file or directory");
    EXPECT_FAIL(fuse_rt_module_from_file(d, "k.cu", NULL, &m), FUSE_RT_IO,
                "k.cu: the name of a module ends in .fk, .ptx or .cubin");
    char path[] = "/tmp/fuse_rt_test_XXXXXX.ptx";
    int file = mkstemps(path, 4);
    char *ptx = fake_ptx(plan, "// entry e 2\n");
    cr_assert_eq(write(file, ptx, strlen(ptx)), (ssize_t)strlen(ptx));
    close(file);
    EXPECT_OK(fuse_rt_module_from_file(d, path, NULL, &m));
    cr_expect_eq(fuse_rt_kernel_count(m), 1);
    cr_expect(strstr(fuse_rt_module_plan(m), "kernel k(dim N") != NULL);
    cr_expect_str_eq(fuse_rt_module_messages(m), "");
    cr_expect_null(fuse_rt_module_diagnostic(m, 0));
    fuse_rt_module_close(m);
    EXPECT_OK(fuse_rt_device_open("cpu", NULL, &cpu));
    EXPECT_FAIL(fuse_rt_module_from_file(cpu, path, NULL, &m), FUSE_RT_UNSUPPORTED,
                (snprintf(fake.image, 256, "%s: PTX runs on a GPU, not on cpu", path), fake.image));
    unlink(path);
    free(ptx);
    fuse_rt_device_close(cpu);
    fuse_rt_device_close(d);
}

// The plan stands behind the ELF file; the driver gets all of it.
Test(runtime_module, cubins) {
    FuseDevice *d = fake_device();
    char *ptx = fake_ptx(plan, ""), data[4096];
    size_t head = (size_t)(strstr(ptx, ".version") - ptx);
    int n = sprintf(data, "\177ELF code\n%.*s//! at %016x\n", (int)head, ptx, 10);
    FuseModule *m;
    EXPECT_OK(fuse_rt_module_from_ptx(d, "k.cubin", data, (size_t)n, &m));
    cr_expect_eq(fuse_rt_kernel_count(m), 1);
    cr_expect(strstr(fuse_rt_module_plan(m), "kernel k(dim N") != NULL);
    cr_expect(strncmp(fake.image, "\177ELF code\n//! fuse 1 sm_90a", 27) == 0);
    fuse_rt_module_close(m);
    // Damaged: no last line, a place outside, a place that is none.
    EXPECT_FAIL(fuse_rt_module_from_ptx(d, "k.cubin", data, (size_t)n - 5, &m), FUSE_RT_IO,
                "k.cubin: this cubin has no launch plan: was it compiled by fusec?");
    EXPECT_FAIL(fuse_rt_module_from_ptx(d, "k.cubin", "\177ELF", 4, &m), FUSE_RT_IO,
                "k.cubin: this cubin has no launch plan: was it compiled by fusec?");
    memset(data + n - 17, 'f', 16);
    EXPECT_FAIL(fuse_rt_module_from_ptx(d, "k.cubin", data, (size_t)n, &m), FUSE_RT_IO,
                "k.cubin: this cubin has no launch plan: was it compiled by fusec?");
    memset(data + n - 17, '0', 16);
    EXPECT_FAIL(fuse_rt_module_from_ptx(d, "k.cubin", data, (size_t)n, &m), FUSE_RT_IO,
                "k.cubin: it has no launch plan (comment lines `//! ` at its head): was it "
                "compiled by fusec?");
    // Unlike PTX it does not run on a later generation.
    n = sprintf(data, "\177ELF code\n//! fuse 1 sm_80 00\n//! tir placed sm_80\n//! at %016x\n",
                10);
    EXPECT_FAIL(fuse_rt_module_from_ptx(d, "k.cubin", data, (size_t)n, &m), FUSE_RT_UNSUPPORTED,
                "k.cubin: it is compiled for sm_80, but cuda:0 (Fake GPU 100) has compute "
                "capability 9.0: compile it with --target=sm_90a");
    free(ptx);
    fuse_rt_device_close(d);
}

// --- the compiler's side, faked ---

static const char *fake_compiler_text;
static FuseOptions seen;

static FuseResult *compile(const FuseOptions *options, const char *name, const char *source,
                           size_t len) {
    (void)name, (void)source, (void)len;
    seen = *options;
    return (FuseResult *)&seen;
}
static void result_free(FuseResult *r) {
    (void)r;
}
static bool result_ok(const FuseResult *r) {
    (void)r;
    return fake_compiler_text != NULL;
}
static const char *result_output(const FuseResult *r, size_t *len) {
    (void)r;
    *len = strlen(fake_compiler_text);
    return fake_compiler_text;
}
static const char *result_messages(const FuseResult *r) {
    (void)r;
    return "k.fk:1:2: warning[unused]: `t` is not used\n   1 | x\nk.fk:3:1: perf[streamed]: N is "
           "streamed\n";
}
static bool result_internal(const FuseResult *r) {
    (void)r;
    return false;
}
static const char *target_at(int i) {
    static const char *const names[] = {"sm_80", "cpu", NULL};
    return names[i];
}

Test(runtime_module, source) {
    const FuseCompilerApi api = {.compile = compile,
                                 .result_free = result_free,
                                 .result_ok = result_ok,
                                 .result_output = result_output,
                                 .result_messages = result_messages,
                                 .result_internal = result_internal,
                                 .target_at = target_at};
    CudaDriver driver = fake_driver();
    FuseRtDeviceOptions options = {.compiler = &api};
    FuseDevice *d;
    EXPECT_OK(device_open_cuda(&driver, 0, &options, &d));
    cr_expect_str_eq(fuse_rt_device_target(d), "sm_80", "the best that the compiler has");
    FuseModule *m;
    EXPECT_FAIL(fuse_rt_module_from_source(d, "k.fk", "", 0, NULL, &m), FUSE_RT_COMPILE,
                result_messages(NULL));
    char *ptx = fake_ptx(plan, "// entry e 2\n");
    fake_compiler_text = ptx;
    const char *const defines[] = {"D=128", NULL};
    EXPECT_OK(fuse_rt_module_from_source(
        d, "k.fk", "", 0, &(FuseRtBuild){.defines = defines, .fast_math = true}, &m));
    cr_expect_eq(seen.emit, FUSE_EMIT_PTX);
    cr_expect_str_eq(seen.target, "sm_80");
    cr_expect_eq(seen.opt_level, 2);
    cr_expect_eq(seen.defines, defines);
    cr_expect(seen.fast_math);
    cr_expect_str_eq(fuse_rt_module_messages(m), result_messages(NULL));
    cr_expect_str_eq(fuse_rt_module_diagnostic(m, 0), "unused");
    cr_expect_str_eq(fuse_rt_module_diagnostic(m, 1), "streamed");
    cr_expect_null(fuse_rt_module_diagnostic(m, 2));
    fuse_rt_module_close(m);
    free(ptx);
    fuse_rt_device_close(d);
}

Test(runtime_module, no_compiler) {
    FuseDevice *d = fake_device();
    FuseModule *m;
    setenv("FUSE_COMPILER", "/nowhere/libfusec.so", 1);
    cr_expect_eq(fuse_rt_module_from_source(d, "k.fk", "", 0, NULL, &m), FUSE_RT_UNSUPPORTED);
    cr_expect(strstr(fuse_rt_last_error(),
                     "the compiler that FUSE_COMPILER names cannot be opened") != NULL,
              "%s", fuse_rt_last_error());
    setenv("FUSE_COMPILER", "libc.so.6", 1);
    EXPECT_FAIL(fuse_rt_module_from_source(d, "k.fk", "", 0, NULL, &m), FUSE_RT_UNSUPPORTED,
                "the compiler library lacks fuse_compile: another version?");
    fuse_rt_device_close(d);
}

// Damaged plans are refused or read, never worse.
Test(runtime_module, damaged_plans) {
    static const char text[] =
        "kernel k.v0(dim N, %a: f32 = 1.5:f32, in opt @x: f32[%N] {align = 16, inner = 0}, out @y: "
        "f32[%N, 8]) of k.v1 {\n"
        "  %r = rem %N, 8 : index\n  %c = cmp.eq %r, 0 : bool\n  when %c\n  require %c {msg = "
        "\"N\"}\n"
        "  @t = temp {zero = true} : f32[%N, 4]\n  %p = present @x : bool\n  %s = stride @y {dim = "
        "1} : index\n"
        "  %z = for %i in 0..%N step 2 carry (%w = %s : index) : index {\n    %w2 = add %w, %i : "
        "index\n"
        "    launch %q in 0..%w2 args(%w, %a; @y, @t) {entry = \"e\", warps = 4, smem = 128}\n"
        "    yield %w2 stop %p\n  }\n"
        "  %u = if %p : index {\n    yield %z\n  } {\n    yield %N\n  }\n"
        "  launch %j in 0..%u args(%u; @x) {entry = \"f\", warps = 1}\n}\n"
        "kernel k.v1(dim N, %a: f32 = 1.5:f32, in opt @x: f32[%N], out @y: f32[%N, 8]) of k.v1 {\n"
        "  launch %j in 0..%N args(%N; @x) {entry = \"g\", warps = 1}\n}\n";
    FuseDevice *d = fake_device();
    char *whole = fake_ptx(text, "");
    EXPECT_OK(load(d, whole));
    size_t head = (size_t)(strstr(whole, "kernel") - whole), len = strlen(whole);
    uint64_t state = 12345;
    int refused = 0;
    for (int round = 0; round < 3000; round++) {
        char *ptx = strdup(whole);
        for (int i = 0; i < 1 + round % 3; i++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            size_t at = head + (size_t)(state >> 33) % (len - head), n = (state >> 20) % 12;
            size_t from = head + (size_t)(state >> 40) % (len - head - 12);
            if (at + n < len)
                memmove(ptx + at, ptx + from, n); // a piece of the text in a wrong place
        }
        refused += load(d, ptx) != FUSE_RT_OK;
        free(ptx);
    }
    cr_expect_gt(refused, 1000);
    free(whole);
    fuse_rt_device_close(d);
}

// --- memory ---

Test(runtime_module, memory_and_events) {
    FuseDevice *devices[2] = {fake_device()};
    EXPECT_OK(fuse_rt_device_open("cpu", NULL, &devices[1]));
    for (int i = 0; i < 2; i++) {
        FuseDevice *d = devices[i];
        void *p = (void *)1, *stream;
        char out[4];
        EXPECT_OK(fuse_rt_alloc(d, 0, &p));
        cr_expect_null(p);
        EXPECT_OK(fuse_rt_free(d, NULL));
        EXPECT_OK(fuse_rt_alloc(d, 1000, &p));
        cr_expect_eq((uintptr_t)p % 256, 0);
        EXPECT_OK(fuse_rt_stream_new(d, &stream));
        cr_expect_eq(stream == NULL, i == 1);
        EXPECT_OK(fuse_rt_fill(d, p, 7, 1000, stream));
        EXPECT_OK(fuse_rt_copy_to_device(d, p, "ab", 2, stream));
        EXPECT_OK(fuse_rt_copy_to_host(d, out, p, 4, stream));
        cr_expect_arr_eq(out, "ab\7\7", 4);
        EXPECT_OK(fuse_rt_copy_to_host(d, NULL, NULL, 0, NULL));
        EXPECT_FAIL(fuse_rt_copy_to_host(d, NULL, p, 1, NULL), FUSE_RT_INVALID_ARGUMENT,
                    "fuse_rt_copy_to_host: a null pointer");
        FuseEvent *from, *to;
        double ms = -1;
        EXPECT_OK(fuse_rt_event_new(d, &from));
        EXPECT_OK(fuse_rt_event_new(d, &to));
        EXPECT_OK(fuse_rt_event_record(from, stream));
        EXPECT_OK(fuse_rt_event_record(to, stream));
        EXPECT_OK(fuse_rt_event_elapsed(from, to, &ms));
        cr_expect(ms >= 0);
        fuse_rt_event_free(from);
        fuse_rt_event_free(to);
        EXPECT_OK(fuse_rt_synchronize(d, NULL));
        EXPECT_OK(fuse_rt_stream_free(d, stream));
        EXPECT_OK(fuse_rt_free(d, p));
        fuse_rt_device_close(d);
    }
    cr_expect_eq(fake.allocs, fake.frees);
}

// --- messages of threads ---

static void *fail_often(void *name) {
    FuseDevice *d;
    char want[128];
    snprintf(want, sizeof want,
             "`%s` is no device; devices are cuda, cuda:1, cpu, sim, sim:sm_80, eval",
             (const char *)name);
    for (int i = 0; i < 2000; i++) {
        fuse_rt_device_open(name, NULL, &d);
        if (strcmp(fuse_rt_last_error(), want) != 0)
            return (void *)1;
    }
    return NULL;
}

Test(runtime_module, messages_belong_to_threads) {
    char names[4][8] = {"a", "bb", "ccc", "dddd"};
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, fail_often, names[i]), 0);
    for (int i = 0; i < 4; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        cr_expect_null(failed);
    }
    cr_expect_str_eq(fuse_rt_last_error(), "", "this thread has not failed");
    for (int s = FUSE_RT_OK; s <= FUSE_RT_INTERNAL; s++)
        cr_expect_str_neq(fuse_rt_status_name((FuseRtStatus)s), "unknown status");
    cr_expect_str_eq(fuse_rt_version(), "0.1.0");
}
