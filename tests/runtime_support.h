// A CUDA driver that only records, and short ways to write tensors: what the runtime_*.c tests
// share.
//
// "Device" memory is host memory. The number of parameters of an entry is read from the PTX text: a
// line
// `// entry NAME N`. Criterion runs every test in a process of its own, so the record starts empty.
#ifndef FUSE_TESTS_RUNTIME_SUPPORT_H
#define FUSE_TESTS_RUNTIME_SUPPORT_H

#include <criterion/criterion.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/fuse_rt.h"
#include "runtime/device.h"

enum { FAKE_LAUNCHES = 64, FAKE_PARAMS = 48 };

typedef struct FakeLaunch {
    char entry[64];
    unsigned grid, block, shared;
    CudaStream *stream;
    int nparam, cluster;
    bool pdl;
    uint64_t param[FAKE_PARAMS];
} FakeLaunch;

typedef struct FakeFunction {
    char name[64];
    int nparam, max_shared;
} FakeFunction;

typedef struct FakeMap {
    int type, swizzle;
    unsigned rank, box[5];
    void *base;
    uint64_t dims[5], strides[4];
} FakeMap;

typedef struct Fake {
    FakeMap map[8];
    int nmap;
    FakeLaunch launch[FAKE_LAUNCHES];
    int nlaunch, ncount; // recorded; all
    FakeFunction function[FAKE_LAUNCHES];
    int nfunction;
    char image[1 << 18];
    const void *current; // context
    int depth;           // of pushed contexts
    int allocs, frees, fills, modules, retained, residents;
    size_t alloc_bytes;
    // what to do
    int devices, major, minor;
    const char *fail; // this call fails with `result`
    CudaResult result;
    int streams;                // ids given out
    int registers, local_bytes; // of each function
} Fake;

static Fake fake = {.devices = 2, .major = 9, .minor = 0};

static inline CudaResult fake_result(const char *call) {
    return fake.fail && strcmp(fake.fail, call) == 0 ? fake.result : CUDA_OK;
}

static inline CudaResult fake_init(unsigned flags) {
    (void)flags;
    return fake_result("cuInit");
}
static inline CudaResult fake_driver_version(int *version) {
    *version = 12040;
    return CUDA_OK;
}
static inline CudaResult fake_error_name(CudaResult result, const char **text) {
    *text = result == CUDA_OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY"
            : result == CUDA_INVALID_PTX ? "CUDA_ERROR_INVALID_PTX"
            : result == 719              ? "CUDA_ERROR_LAUNCH_FAILED"
                                         : NULL;
    return CUDA_OK;
}
static inline CudaResult fake_error_string(CudaResult result, const char **text) {
    *text = result == 719 ? "unspecified launch failure" : "as asked by the test";
    return CUDA_OK;
}
static inline CudaResult fake_device_count(int *count) {
    *count = fake.devices;
    return fake_result("cuDeviceGetCount");
}
static inline CudaResult fake_device_get(CudaDevice *device, int ordinal) {
    *device = 100 + ordinal;
    return CUDA_OK;
}
static inline CudaResult fake_device_name(char *name, int size, CudaDevice device) {
    snprintf(name, (size_t)size, "Fake GPU %d", device);
    return CUDA_OK;
}
static inline CudaResult fake_device_attribute(int *value, int attribute, CudaDevice device) {
    (void)device;
    *value = attribute == CUDA_CAPABILITY_MAJOR         ? fake.major
             : attribute == CUDA_CAPABILITY_MINOR       ? fake.minor
             : attribute == CUDA_MULTIPROCESSOR_COUNT   ? 132
             : attribute == CUDA_SHARED_PER_BLOCK_OPTIN ? 232448
                                                        : -1;
    return fake_result("cuDeviceGetAttribute");
}
static inline CudaResult fake_primary_retain(CudaContext **context, CudaDevice device) {
    *context = (CudaContext *)(uintptr_t)(device + 1000);
    fake.retained++;
    return fake_result("cuDevicePrimaryCtxRetain");
}
static inline CudaResult fake_primary_release(CudaDevice device) {
    (void)device;
    fake.retained--;
    return CUDA_OK;
}
static inline CudaResult fake_context_current(CudaContext **context) {
    *context = (CudaContext *)(uintptr_t)fake.current;
    return CUDA_OK;
}
static inline CudaResult fake_context_push(CudaContext *context) {
    cr_assert_eq(fake.depth, 0);
    fake.depth++;
    fake.current = context;
    return CUDA_OK;
}
static inline CudaResult fake_context_pop(CudaContext **context) {
    *context = (CudaContext *)(uintptr_t)fake.current;
    fake.depth--;
    fake.current = NULL;
    return CUDA_OK;
}
static inline CudaResult fake_context_synchronize(void) {
    return fake_result("cuCtxSynchronize");
}
static inline CudaResult fake_module_load(CudaModule **module, const void *image, unsigned n,
                                          int *options, void **values) {
    for (unsigned i = 0; i < n; i++)
        if (options[i] == CUDA_JIT_ERROR_LOG && fake_result("cuModuleLoadDataEx"))
            strcpy(values[i], "ptxas: line 7: bad");
    snprintf(fake.image, sizeof fake.image, "%s", (const char *)image);
    *module = (CudaModule *)fake.image;
    fake.modules += fake_result("cuModuleLoadDataEx") == CUDA_OK;
    return fake_result("cuModuleLoadDataEx");
}
static inline CudaResult fake_module_unload(CudaModule *module) {
    (void)module;
    fake.modules--;
    return CUDA_OK;
}
static inline CudaResult fake_module_function(CudaFunction **function, CudaModule *module,
                                              const char *name) {
    (void)module;
    char line[96];
    snprintf(line, sizeof line, "// entry %s ", name);
    const char *at = strstr(fake.image, line);
    if (!at) { // PTX of the compiler: its parameters are not counted
        snprintf(line, sizeof line, ".entry %s(", name);
        at = strstr(fake.image, line);
    }
    if (!at)
        return 500;
    FakeFunction *f = &fake.function[fake.nfunction++];
    snprintf(f->name, sizeof f->name, "%s", name);
    f->nparam = atoi(at + strlen(line));
    *function = (CudaFunction *)f;
    return CUDA_OK;
}
static inline CudaResult fake_function_set(CudaFunction *function, int attribute, int value) {
    cr_assert_eq(attribute, CUDA_MAX_DYNAMIC_SHARED);
    ((FakeFunction *)function)->max_shared = value;
    return fake_result("cuFuncSetAttribute");
}
static inline CudaResult fake_function_attribute(int *value, int attribute,
                                                 CudaFunction *function) {
    (void)function;
    if (!fake.current)
        cr_assert_fail("a question without a context");
    *value = attribute == CUDA_REGISTERS     ? fake.registers
             : attribute == CUDA_LOCAL_BYTES ? fake.local_bytes
                                             : -1;
    return fake_result("cuFuncGetAttribute");
}
static inline CudaResult fake_resident(int *blocks, CudaFunction *function, int block,
                                       size_t shared) {
    cr_assert_eq(((FakeFunction *)function)->max_shared, (int)shared);
    *blocks = 2048 / block;
    fake.residents++;
    return fake_result("cuOccupancyMaxActiveBlocksPerMultiprocessor");
}
static inline CudaResult fake_record(CudaFunction *function, FakeLaunch launch, void **params) {
    const FakeFunction *f = (const FakeFunction *)function;
    if (!fake.current)
        cr_assert_fail("a launch without a context");
    if (fake.nlaunch == FAKE_LAUNCHES) { // enough: only counted, so that time can be taken
        fake.ncount++;
        return CUDA_OK;
    }
    snprintf(launch.entry, sizeof launch.entry, "%s", f->name);
    launch.nparam = f->nparam;
    for (int i = 0; i < f->nparam && i < FAKE_PARAMS; i++)
        memcpy(&launch.param[i], params[i], sizeof(uint64_t));
    fake.launch[fake.nlaunch++] = launch;
    fake.ncount++;
    return fake_result("cuLaunchKernel");
}
static inline CudaResult fake_launch(CudaFunction *function, unsigned gx, unsigned gy, unsigned gz,
                                     unsigned bx, unsigned by, unsigned bz, unsigned shared,
                                     CudaStream *stream, void **params, void **extra) {
    cr_assert(gy == 1 && gz == 1 && by == 1 && bz == 1 && !extra);
    return fake_record(function,
                       (FakeLaunch){.grid = gx, .block = bx, .shared = shared, .stream = stream},
                       params);
}
static inline CudaResult fake_launch_ex(const CudaLaunchConfig *c, CudaFunction *function,
                                        void **params, void **extra) {
    cr_assert(c->grid_y == 1 && c->grid_z == 1 && c->block_y == 1 && c->block_z == 1 && !extra);
    FakeLaunch l = {
        .grid = c->grid_x, .block = c->block_x, .shared = c->shared_bytes, .stream = c->stream};
    for (unsigned i = 0; i < c->nattributes; i++) {
        if (c->attributes[i].id == CUDA_LAUNCH_CLUSTER)
            l.cluster = (int)c->attributes[i].value.cluster.x;
        if (c->attributes[i].id == CUDA_LAUNCH_PROGRAMMATIC)
            l.pdl = c->attributes[i].value.programmatic != 0;
    }
    return fake_record(function, l, params);
}
// The map's first word is its number.
static inline CudaResult fake_tensor_map(void *map, int type, unsigned rank, void *base,
                                         const uint64_t *dims, const uint64_t *strides,
                                         const unsigned *box, const unsigned *steps, int interleave,
                                         int swizzle, int promotion, int fill) {
    cr_assert(rank >= 1 && rank <= 5 && !interleave && !fill && promotion);
    cr_assert_eq((uintptr_t)map % 64, 0);
    FakeMap *m = &fake.map[fake.nmap % 8];
    *m = (FakeMap){.type = type, .swizzle = swizzle, .rank = rank, .base = base};
    for (unsigned i = 0; i < rank; i++) {
        cr_assert_eq(steps[i], 1);
        m->box[i] = box[i];
        m->dims[i] = dims[i];
        if (i > 0)
            m->strides[i - 1] = strides[i - 1];
    }
    const uint64_t number = 0x7700 + (uint64_t)fake.nmap++;
    memcpy(map, &number, sizeof number);
    return fake_result("cuTensorMapEncodeTiled");
}
static inline CudaResult fake_stream_create(CudaStream **stream, unsigned flags) {
    (void)flags;
    *stream = (CudaStream *)(uintptr_t)(0x5000 + 16 * ++fake.streams);
    return CUDA_OK;
}
static inline CudaResult fake_stream_destroy(CudaStream *stream) {
    (void)stream;
    return CUDA_OK;
}
static inline CudaResult fake_stream_synchronize(CudaStream *stream) {
    (void)stream;
    return fake_result("cuStreamSynchronize");
}
static inline CudaResult fake_stream_id(CudaStream *stream, unsigned long long *id) {
    *id = (uintptr_t)stream;
    return CUDA_OK;
}
static inline CudaResult fake_event_create(CudaEvent **event, unsigned flags) {
    (void)flags;
    *event = malloc(1);
    return CUDA_OK;
}
static inline CudaResult fake_event_record(CudaEvent *event, CudaStream *stream) {
    (void)event, (void)stream;
    return CUDA_OK;
}
static inline CudaResult fake_event_synchronize(CudaEvent *event) {
    (void)event;
    return CUDA_OK;
}
static inline CudaResult fake_event_elapsed(float *milliseconds, CudaEvent *from, CudaEvent *to) {
    (void)from, (void)to;
    *milliseconds = 2.5f;
    return CUDA_OK;
}
static inline CudaResult fake_event_destroy(CudaEvent *event) {
    free(event);
    return CUDA_OK;
}
static inline CudaResult fake_mem_alloc(CudaPointer *out, size_t bytes) {
    if (fake_result("cuMemAlloc"))
        return fake_result("cuMemAlloc");
    fake.allocs++;
    fake.alloc_bytes = bytes;
    *out = (CudaPointer)(uintptr_t)aligned_alloc(256, (bytes + 255) / 256 * 256);
    return CUDA_OK;
}
static inline CudaResult fake_mem_free(CudaPointer memory) {
    fake.frees++;
    free((void *)(uintptr_t)memory);
    return CUDA_OK;
}
static inline CudaResult fake_copy_to_device(CudaPointer to, const void *from, size_t bytes,
                                             CudaStream *stream) {
    (void)stream;
    memcpy((void *)(uintptr_t)to, from, bytes);
    return CUDA_OK;
}
static inline CudaResult fake_copy_to_host(void *to, CudaPointer from, size_t bytes,
                                           CudaStream *stream) {
    (void)stream;
    memcpy(to, (void *)(uintptr_t)from, bytes);
    return CUDA_OK;
}
static inline CudaResult fake_fill(CudaPointer memory, unsigned char byte, size_t bytes,
                                   CudaStream *stream) {
    (void)stream;
    fake.fills++;
    memset((void *)(uintptr_t)memory, byte, bytes);
    return CUDA_OK;
}

static inline CudaDriver fake_driver(void) {
    return (CudaDriver){
#define CUDA(field, symbol, params)          .field = fake_##field,
#define CUDA_OPTIONAL(field, symbol, params) .field = fake_##field,
#include "runtime/cuda_driver.def"
#undef CUDA
#undef CUDA_OPTIONAL
    };
}

// --- modules ---

static inline FuseDevice *fake_device(void) {
    CudaDriver driver = fake_driver();
    FuseDevice *d = NULL;
    cr_assert_eq(device_open_cuda(&driver, 0, NULL, &d), FUSE_RT_OK, "%s", fuse_rt_last_error());
    return d;
}

// A PTX file from the lines of a plan and `// entry NAME N` lines.
static inline char *fake_ptx(const char *plan, const char *entries) {
    char *out = malloc(2 * strlen(plan) + strlen(entries) + 4096);
    char *at = out + sprintf(out, "//! fuse 1 sm_90a 0123456789abcdef\n//! tir placed sm_90a\n");
    for (const char *line = plan; *line;) {
        size_t len = strcspn(line, "\n");
        at += sprintf(at, "//! %.*s\n", (int)len, line);
        line += len + (line[len] == '\n');
    }
    sprintf(at, ".version 8.7\n.target sm_90a\n%s", entries);
    return out;
}

static inline FuseModule *fake_module(FuseDevice *d, const char *plan, const char *entries) {
    char *ptx = fake_ptx(plan, entries);
    FuseModule *m = NULL;
    FuseRtStatus status = fuse_rt_module_from_ptx(d, "test.ptx", ptx, strlen(ptx), &m);
    cr_assert_eq(status, FUSE_RT_OK, "%s", fuse_rt_last_error());
    free(ptx);
    return m;
}

static inline FuseKernel *kernel_named(FuseModule *m, const char *name) {
    FuseKernel *k = NULL;
    cr_assert_eq(fuse_rt_kernel_find(m, name, &k), FUSE_RT_OK, "%s", fuse_rt_last_error());
    return k;
}

// --- tensors ---

typedef struct TestTensor {
    DLTensor t;
    int64_t shape[8], stride[8];
} TestTensor;

static const DLDataType type_f16 = {kDLFloat, 16, 1}, type_bf16 = {kDLBfloat, 16, 1},
                        type_f32 = {kDLFloat, 32, 1}, type_i32 = {kDLInt, 32, 1},
                        type_i4 = {kDLInt, 4, 1};

// Dense, on cuda:0, at a made-up address: nothing reads it.
static inline TestTensor *tensor_at(uint64_t address, DLDataType type, int rank, ...) {
    static TestTensor pool[512];
    static int used;
    TestTensor *x = &pool[used++ % 512];
    *x = (TestTensor){0};
    va_list args;
    va_start(args, rank);
    for (int d = 0; d < rank; d++)
        x->shape[d] = va_arg(args, int);
    va_end(args);
    int64_t step = 1;
    for (int d = rank - 1; d >= 0; d--) {
        x->stride[d] = step;
        step *= x->shape[d] > 0 ? x->shape[d] : 1;
    }
    x->t = (DLTensor){.data = (void *)(uintptr_t)address,
                      .device = {kDLCUDA, 0},
                      .ndim = rank,
                      .dtype = type,
                      .shape = x->shape,
                      .strides = x->stride};
    return x;
}

static inline FuseRtArg arg_tensor(const char *name, const TestTensor *x) {
    return (FuseRtArg){.name = name, .kind = FUSE_RT_TENSOR, .tensor = x ? &x->t : NULL};
}
static inline FuseRtArg arg_int(const char *name, int64_t i) {
    return (FuseRtArg){.name = name, .kind = FUSE_RT_INT, .i = i};
}
static inline FuseRtArg arg_float(const char *name, double f) {
    return (FuseRtArg){.name = name, .kind = FUSE_RT_FLOAT, .f = f};
}
static inline FuseRtArg arg_absent(const char *name) {
    return (FuseRtArg){.name = name, .kind = FUSE_RT_ABSENT};
}

#define LAUNCH(kernel, info, ...)                                                                  \
    fuse_rt_launch(kernel, NULL, (int)(sizeof((FuseRtArg[]){__VA_ARGS__}) / sizeof(FuseRtArg)),    \
                   (FuseRtArg[]){__VA_ARGS__}, info)
#define EXPECT_OK(expression)                                                                      \
    do {                                                                                           \
        FuseRtStatus status_ = (expression);                                                       \
        cr_expect_eq(status_, FUSE_RT_OK, "%s: %s", #expression, fuse_rt_last_error());            \
    } while (0)
#define EXPECT_FAIL(expression, want, text)                                                        \
    do {                                                                                           \
        FuseRtStatus status_ = (expression);                                                       \
        cr_expect_eq(status_, want, "status %s", fuse_rt_status_name(status_));                    \
        cr_expect_str_eq(fuse_rt_last_error(), text);                                              \
    } while (0)

#endif
