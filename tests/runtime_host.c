// Source to results on the devices that every machine has: cpu, sim and eval, by the linked
// compiler.
#include <criterion/criterion.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "include/fuse_rt.h"
#include "lang/base/numeric.h"

static const FuseCompilerApi compiler = FUSE_COMPILER_API;

static const char source[] =
    "kernel axpy<T: float>(a: f32, x: T[N]) -> (inout y: T[N]) { y = a * x + y; }\n"
    "kernel rows(x: f32[M, N], b: f32[N]?) -> (y: f32[M, N], s: f32[M]) {\n"
    "    y = x * 2.0 + b;\n"
    "    s = sum[N](x);\n"
    "}\n"
    "kernel halves(x: f32[N]) -> (y: f32[H]) where N % 2 == 0, H == N / 2 {\n"
    "    parallel h in tiles(H) { y[h] = x[2*h] + x[2*h + 1]; }\n"
    "}\n";

static const char *const devices[] = {"cpu", "eval", "sim:sm_80"};
enum { DEVICES = 3 };

typedef struct Opened {
    FuseDevice *device;
    FuseModule *module;
} Opened;

static Opened open_module(const char *device, const char *text) {
    Opened o = {0};
    FuseRtDeviceOptions options = {.compiler = &compiler, .threads = 2};
    cr_assert_eq(fuse_rt_device_open(device, &options, &o.device), FUSE_RT_OK, "%s",
                 fuse_rt_last_error());
    FuseRtStatus status =
        fuse_rt_module_from_source(o.device, "t.fk", text, strlen(text), NULL, &o.module);
    cr_assert_eq(status, FUSE_RT_OK, "%s: %s", device, fuse_rt_last_error());
    return o;
}

static void close_module(Opened o) {
    fuse_rt_module_close(o.module);
    fuse_rt_device_close(o.device);
}

static FuseKernel *find(Opened o, const char *name) {
    FuseKernel *k = NULL;
    cr_assert_eq(fuse_rt_kernel_find(o.module, name, &k), FUSE_RT_OK, "%s", fuse_rt_last_error());
    return k;
}

typedef struct Host {
    DLTensor t;
    int64_t shape[2], stride[2];
} Host;

static void host(Host *h, void *data, DLDataType type, int rank, int64_t m, int64_t n) {
    *h = (Host){.shape = {m, n}};
    h->t = (DLTensor){
        .data = data, .device = {kDLCPU, 0}, .ndim = rank, .dtype = type, .shape = h->shape};
}

#define F32 ((DLDataType){kDLFloat, 32, 1})
#define F16 ((DLDataType){kDLFloat, 16, 1})
#define TENSOR(n, h)                                                                               \
    { .name = n, .kind = FUSE_RT_TENSOR, .tensor = &(h).t }

Test(runtime_host, axpy) {
    enum { N = 1003 };
    static float x[N], y[N];
    static uint16_t xh[N], yh[N];
    for (int d = 0; d < DEVICES; d++) {
        Opened o = open_module(devices[d], source);
        FuseKernel *k = find(o, "axpy");
        for (int i = 0; i < N; i++) {
            x[i] = (float)(i % 17) - 8;
            y[i] = (float)(i % 5);
            xh[i] = f16_from_f64(x[i]);
            yh[i] = f16_from_f64(y[i]);
        }
        Host hx, hy;
        host(&hx, x, F32, 1, N, 0);
        host(&hy, y, F32, 1, N, 0);
        FuseRtArg args[] = {
            {.name = "a", .kind = FUSE_RT_FLOAT, .f = 2.5}, TENSOR("x", hx), TENSOR("y", hy)};
        FuseRtLaunchInfo info = {0};
        cr_assert_eq(fuse_rt_launch(k, NULL, 3, args, &info), FUSE_RT_OK, "%s: %s", devices[d],
                     fuse_rt_last_error());
        cr_expect_str_eq(info.kernel, "axpy.f32");
        cr_expect_eq(info.launches, 1);
        host(&hx, xh, F16, 1, N, 0);
        host(&hy, yh, F16, 1, N, 0);
        cr_assert_eq(fuse_rt_launch(k, NULL, 3, args, &info), FUSE_RT_OK, "%s: %s", devices[d],
                     fuse_rt_last_error());
        cr_expect_str_eq(info.kernel, "axpy.f16");
        for (int i = 0; i < N; i++) {
            float want = 2.5f * ((float)(i % 17) - 8) + (float)(i % 5);
            cr_assert_eq(y[i], want, "%s: y[%d] = %g, not %g", devices[d], i, (double)y[i],
                         (double)want);
            cr_assert_eq(f32_from_f16(yh[i]), want);
        }
        close_module(o);
    }
}

Test(runtime_host, rows_with_an_optional_tensor) {
    enum { M = 7, N = 33 };
    static float x[M * 40], b[N], y[M * N], s[M];
    for (int d = 0; d < DEVICES; d++) {
        Opened o = open_module(devices[d], source);
        FuseKernel *k = find(o, "rows");
        for (int with = 0; with < 2; with++) {
            for (int i = 0; i < M * 40; i++)
                x[i] = (float)(i % 11);
            for (int i = 0; i < N; i++)
                b[i] = (float)i;
            memset(y, 0xff, sizeof y);
            Host hx, hb, hy, hs;
            host(&hx, x, F32, 2, M, N);
            hx.stride[0] = 40; // rows with a gap
            hx.stride[1] = 1;
            hx.t.strides = hx.stride;
            host(&hb, b, F32, 1, N, 0);
            host(&hy, y, F32, 2, M, N);
            host(&hs, s, F32, 1, M, 0);
            FuseRtArg args[] = {TENSOR(NULL, hx), TENSOR(NULL, hb), TENSOR(NULL, hy),
                                TENSOR(NULL, hs)};
            if (!with)
                args[1].kind = FUSE_RT_ABSENT;
            FuseRtStatus status = fuse_rt_launch(k, NULL, 4, args, NULL);
            cr_assert_eq(status, FUSE_RT_OK, "%s: %s", devices[d], fuse_rt_last_error());
            for (int i = 0; i < M; i++) {
                float sum = 0;
                for (int j = 0; j < N; j++) {
                    float in = x[i * 40 + j], want = in * 2 + (with ? (float)j : 0);
                    sum += in;
                    cr_assert_eq(y[i * N + j], want, "%s: y[%d, %d] = %g, not %g", devices[d], i, j,
                                 (double)y[i * N + j], (double)want);
                }
                cr_assert_eq(s[i], sum, "%s", devices[d]);
            }
        }
        close_module(o);
    }
}

Test(runtime_host, shapes_and_conditions) {
    static float x[10], y[5];
    for (int d = 0; d < DEVICES; d++) {
        Opened o = open_module(devices[d], source);
        FuseKernel *k = find(o, "halves");
        Host hx, hy;
        for (int i = 0; i < 10; i++)
            x[i] = (float)i;
        host(&hx, x, F32, 1, 10, 0);
        host(&hy, y, F32, 1, 5, 0);
        FuseRtArg args[] = {TENSOR("x", hx), TENSOR("y", hy)};
        int64_t shape[8] = {0};
        cr_assert_eq(fuse_rt_kernel_shape(k, 1, args, 1, shape), FUSE_RT_OK, "%s",
                     fuse_rt_last_error());
        cr_expect_eq(shape[0], 5);
        cr_assert_eq(fuse_rt_launch(k, NULL, 2, args, NULL), FUSE_RT_OK, "%s: %s", devices[d],
                     fuse_rt_last_error());
        cr_expect_eq(y[4], 17, "%s: %g", devices[d], (double)y[4]);
        hy.shape[0] = 4;
        cr_expect_eq(fuse_rt_launch(k, NULL, 2, args, NULL), FUSE_RT_INVALID_ARGUMENT);
        cr_expect_str_eq(fuse_rt_last_error(),
                         "halves: the arguments do not meet the condition `H == N / 2`");
        hx.t.device.device_type = kDLCUDA;
        cr_expect_eq(fuse_rt_launch(k, NULL, 2, args, NULL), FUSE_RT_INVALID_ARGUMENT);
        close_module(o);
    }
}

Test(runtime_host, empty) {
    static float x[4], y[4], s[4];
    for (int d = 0; d < DEVICES; d++) {
        Opened o = open_module(devices[d], source);
        Host hx, hy, hs;
        host(&hx, NULL, F32, 2, 3, 0);
        host(&hy, NULL, F32, 2, 3, 0);
        host(&hs, s, F32, 1, 3, 0);
        s[0] = s[1] = s[2] = 9;
        FuseRtArg args[] = {TENSOR("x", hx), TENSOR("y", hy), TENSOR("s", hs)};
        cr_assert_eq(fuse_rt_launch(find(o, "rows"), NULL, 3, args, NULL), FUSE_RT_OK, "%s: %s",
                     devices[d], fuse_rt_last_error());
        cr_expect(s[0] == 0 && s[1] == 0 && s[2] == 0, "%s: a sum over nothing is 0", devices[d]);
        host(&hx, x, F32, 1, 0, 0);
        host(&hy, y, F32, 1, 0, 0);
        FuseRtArg none[] = {
            {.name = "a", .kind = FUSE_RT_INT, .i = 1}, TENSOR("x", hx), TENSOR("y", hy)};
        cr_assert_eq(fuse_rt_launch(find(o, "axpy"), NULL, 3, none, NULL), FUSE_RT_OK, "%s: %s",
                     devices[d], fuse_rt_last_error());
        close_module(o);
    }
}

// Statements that are not fused pass their values through workspace.
Test(runtime_host, temporaries) {
    enum { M = 20, N = 50 };
    static const char text[] = "kernel k(x: f32[M, N]) -> (y: f32[M, N]) {\n"
                               "    temp s: f32[M] = sum[N](x);\n"
                               "    temp h: f32[M, N] = x * 2.0;\n"
                               "    y = h + s;\n}\n";
    static float x[M * N], y[M * N];
    for (int d = 0; d < DEVICES; d++) {
        FuseRtDeviceOptions options = {.compiler = &compiler, .threads = 2};
        FuseRtBuild build = {.no_fuse = true};
        Opened o;
        cr_assert_eq(fuse_rt_device_open(devices[d], &options, &o.device), FUSE_RT_OK);
        cr_assert_eq(
            fuse_rt_module_from_source(o.device, "t.fk", text, strlen(text), &build, &o.module),
            FUSE_RT_OK, "%s", fuse_rt_last_error());
        for (int i = 0; i < M * N; i++)
            x[i] = (float)(i % 13);
        Host hx, hy;
        host(&hx, x, F32, 2, M, N);
        host(&hy, y, F32, 2, M, N);
        FuseRtArg args[] = {TENSOR("x", hx), TENSOR("y", hy)};
        for (int round = 0; round < 3; round++) {
            FuseRtLaunchInfo info = {0};
            memset(y, 0xff, sizeof y);
            cr_assert_eq(fuse_rt_launch(find(o, "k"), NULL, 2, args, &info), FUSE_RT_OK, "%s: %s",
                         devices[d], fuse_rt_last_error());
            if (d != 1) { // the evaluator has no launches
                cr_expect_gt(info.launches, 1, "%s: %d", devices[d], info.launches);
                cr_expect_geq(info.workspace, M * N * 4, "%s: %d", devices[d], (int)info.workspace);
            }
            for (int i = 0; i < M; i++) {
                float sum = 0;
                for (int j = 0; j < N; j++)
                    sum += x[i * N + j];
                for (int j = 0; j < N; j++)
                    cr_assert_eq(y[i * N + j], 2 * x[i * N + j] + sum, "%s: y[%d, %d] = %g",
                                 devices[d], i, j, (double)y[i * N + j]);
            }
        }
        close_module(o);
    }
}

Test(runtime_host, errors_of_the_source) {
    FuseDevice *device;
    FuseModule *m;
    FuseRtDeviceOptions options = {.compiler = &compiler};
    cr_assert_eq(fuse_rt_device_open("cpu", &options, &device), FUSE_RT_OK);
    const char *text = "kernel k(x: f32[N]) -> (y: f32[N]) { y = z; }\n";
    cr_expect_eq(fuse_rt_module_from_source(device, "bad.fk", text, strlen(text), NULL, &m),
                 FUSE_RT_COMPILE);
    cr_expect_null(m);
    cr_expect(strstr(fuse_rt_last_error(), "bad.fk:1:42: error[") != NULL, "%s",
              fuse_rt_last_error());
    fuse_rt_device_close(device);
}

// The runtime knows the simulators without a compiler; a compiler is asked for its own.
Test(runtime_host, simulators) {
    FuseDevice *device;
    FuseRtDeviceOptions options = {.compiler = &compiler};
    int simulators = 0;
    for (int i = 0; fuse_target_at(i); i++) {
        char name[64];
        if (strncmp(fuse_target_at(i), "sim-", 4) != 0)
            continue;
        snprintf(name, sizeof name, "sim:%s", fuse_target_at(i) + 4);
        for (int with = 0; with < 2; with++) {
            cr_assert_eq(fuse_rt_device_open(name, with ? &options : NULL, &device), FUSE_RT_OK,
                         "%s", fuse_rt_last_error());
            fuse_rt_device_close(device);
        }
        simulators++;
    }
    cr_expect(simulators >= 2);
    cr_expect_eq(fuse_rt_device_open("sim:sm_1", &options, &device), FUSE_RT_INVALID_ARGUMENT);
    cr_expect_str_eq(fuse_rt_last_error(),
                     "`sim:sm_1`: there is no simulator of `sm_1`; there are sm_80, sm_90a");
}

static FuseRtStatus launch_checked(const char *device, const char *text, bool check,
                                   bool deterministic, uint64_t seed, float *sum) {
    FuseDevice *d;
    FuseModule *m;
    FuseKernel *k;
    FuseRtDeviceOptions options = {.compiler = &compiler, .seed = seed};
    FuseRtBuild build = {.check = check, .deterministic = deterministic};
    cr_assert_eq(fuse_rt_device_open(device, &options, &d), FUSE_RT_OK);
    FuseRtStatus status = fuse_rt_module_from_source(d, "t.fk", text, strlen(text), &build, &m);
    if (status == FUSE_RT_OK) {
        float x[] = {0x1p24f, 1, 1, -0x1p24f};
        int32_t zero[] = {0, 0, 0, 0};
        Host hx, hi, hy;
        host(&hx, x, F32, 1, 4, 0);
        host(&hi, zero, (DLDataType){kDLInt, 32, 1}, 1, 4, 0);
        host(&hy, sum, F32, 1, 1, 0);
        FuseRtArg args[] = {TENSOR("x", hx), TENSOR("i", hi), TENSOR("y", hy)};
        cr_assert_eq(fuse_rt_kernel_find(m, NULL, &k), FUSE_RT_OK);
        status = fuse_rt_launch(k, NULL, 3, args, NULL);
        fuse_rt_module_close(m);
    }
    fuse_rt_device_close(d);
    return status;
}

// `check`, `deterministic` and the seed do what they say, or are refused.
Test(runtime_host, checks) {
    static const char add[] = "kernel k(x: f32[N], i: i32[N]) -> (inout y: f32[M]) {\n"
                              "    axis n in N;\n"
                              "    atomic y[i[n]] += x[n];\n"
                              "}\n";
    static const char divide[] = "kernel k(x: f32[N], i: i32[N]) -> (inout y: f32[M]) {\n"
                                 "    y[0] = sum[N](x) + (1 / i[0]) as f32;\n"
                                 "}\n";
    float sum = 0;
    cr_expect_eq(launch_checked("eval", add, true, false, 0, &sum), FUSE_RT_OK, "%s",
                 fuse_rt_last_error());
    cr_expect_eq(sum, 0, "in order: %g", sum);
    unsigned sums = 0;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        sum = 0;
        cr_expect_eq(launch_checked("eval", add, false, false, seed, &sum), FUSE_RT_OK);
        sums |= 1u << (int)sum;
    }
    cr_expect_eq(sums, 7, "%u", sums);
    cr_expect_eq(launch_checked("eval", divide, true, false, 0, &sum), FUSE_RT_DRIVER);
    cr_expect(strstr(fuse_rt_last_error(), "k: the checks found 1 error\nt.fk:2:5: error["), "%s",
              fuse_rt_last_error());
    cr_expect_eq(launch_checked("cpu", add, true, false, 0, &sum), FUSE_RT_COMPILE);
    cr_expect(strstr(fuse_rt_last_error(), "error[unsupported]: compiled code has no checks"), "%s",
              fuse_rt_last_error());
    cr_expect_eq(launch_checked("cpu", add, false, true, 0, &sum), FUSE_RT_COMPILE);
    cr_expect(strstr(fuse_rt_last_error(), "t.fk:3:5: error[not-deterministic]: "), "%s",
              fuse_rt_last_error());
    cr_expect_eq(launch_checked("cpu", divide, false, true, 0, &sum), FUSE_RT_OK);
}

// Several threads launch kernels of one module.
typedef struct Worker {
    FuseKernel *kernel;
    bool ok;
} Worker;

static void *work(void *user) {
    enum { N = 500 };
    Worker *w = user;
    float x[N], y[N];
    w->ok = true;
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < N; i++) {
            x[i] = (float)i;
            y[i] = 1;
        }
        Host hx, hy;
        host(&hx, x, F32, 1, N, 0);
        host(&hy, y, F32, 1, N, 0);
        FuseRtArg args[] = {
            {.name = "a", .kind = FUSE_RT_FLOAT, .f = round}, TENSOR("x", hx), TENSOR("y", hy)};
        w->ok &= fuse_rt_launch(w->kernel, NULL, 3, args, NULL) == FUSE_RT_OK;
        for (int i = 0; i < N; i++)
            w->ok &= y[i] == (float)(round * i + 1);
    }
    return NULL;
}

Test(runtime_host, threads) {
    Opened o = open_module("cpu", source);
    Worker workers[3];
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) {
        workers[i].kernel = find(o, "axpy");
        cr_assert_eq(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
        cr_expect(workers[i].ok);
    }
    close_module(o);
}
