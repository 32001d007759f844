// Opening devices by name; which compiler target is for which GPU; the current context.
#include "runtime/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/error.h"

static const char *const default_sim_target = "sm_90a";

// --- targets ---

// "sm_90a": 90, exact.
static int target_capability(const char *target, bool *exact) {
    if (strncmp(target, "sm_", 3) != 0)
        return 0;
    char *rest;
    long n = strtol(target + 3, &rest, 10);
    *exact = *rest == 'a';
    return *rest && !*exact ? 0 : (int)n;
}

bool device_runs_target(int capability, const char *target) {
    bool exact = false;
    int needs = target_capability(target, &exact);
    return needs > 0 && (exact ? needs == capability : needs <= capability);
}

bool device_choose_target(int capability, const char *(*target_at)(int), char *out, size_t size) {
    int best = 0;
    for (int i = 0; target_at(i); i++) {
        bool exact;
        int needs = target_capability(target_at(i), &exact);
        if (needs < best || !device_runs_target(capability, target_at(i)))
            continue;
        best = needs;
        snprintf(out, size, "%s", target_at(i));
    }
    return best > 0;
}

// What this runtime's compiler has, where it cannot be asked yet.
static const char *known_target(int i) {
    static const char *const names[] = {"sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120"};
    return i < (int)(sizeof names / sizeof *names) ? names[i] : NULL;
}

// --- opening ---

static FuseDevice *device_new(DeviceKind kind, const FuseRtDeviceOptions *options) {
    FuseDevice *d = calloc(1, sizeof *d);
    if (!d)
        return NULL;
    d->kind = kind;
    pthread_mutex_init(&d->lock, NULL);
    if (!options)
        return d;
    d->threads = options->threads;
    d->seed = options->seed;
    if (options->compiler) {
        d->compiler = *options->compiler;
        d->has_compiler = true;
    }
    return d;
}

static int core_count(void) {
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (int)n : 1;
}

static FuseRtStatus query_gpu(FuseDevice *d) {
    const CudaDriver *cuda = &d->cuda;
    int major = 0, minor = 0;
    const struct {
        int attribute, *value;
    } wanted[] = {{CUDA_CAPABILITY_MAJOR, &major},
                  {CUDA_CAPABILITY_MINOR, &minor},
                  {CUDA_MULTIPROCESSOR_COUNT, &d->sms},
                  {CUDA_SHARED_PER_BLOCK_OPTIN, &d->max_shared}};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        FuseRtStatus status = cuda_check(
            cuda, cuda->device_attribute(wanted[i].value, wanted[i].attribute, d->handle),
            "cuDeviceGetAttribute");
        if (status != FUSE_RT_OK)
            return status;
    }
    d->capability = 10 * major + minor;
    return cuda_check(cuda, cuda->device_name(d->gpu_name, (int)sizeof d->gpu_name, d->handle),
                      "cuDeviceGetName");
}

static FuseRtStatus open_gpu(FuseDevice *d, int ordinal) {
    const CudaDriver *cuda = &d->cuda;
    FuseRtStatus status = cuda_check(cuda, cuda->init(0), "cuInit");
    int count = 0;
    if (status == FUSE_RT_OK)
        status = cuda_check(cuda, cuda->device_count(&count), "cuDeviceGetCount");
    if (status != FUSE_RT_OK)
        return status;
    if (ordinal >= count)
        return rt_fail(FUSE_RT_NO_DEVICE, "there is no cuda:%d: this machine has %d GPU%s", ordinal,
                       count, count == 1 ? "" : "s");
    status = cuda_check(cuda, cuda->device_get(&d->handle, ordinal), "cuDeviceGet");
    if (status == FUSE_RT_OK)
        status = query_gpu(d);
    if (status == FUSE_RT_OK)
        status = cuda_check(cuda, cuda->primary_retain(&d->context, d->handle),
                            "cuDevicePrimaryCtxRetain");
    return status;
}

FuseRtStatus device_open_cuda(const CudaDriver *driver, int ordinal,
                              const FuseRtDeviceOptions *options, FuseDevice **out) {
    *out = NULL;
    FuseDevice *d = device_new(DEVICE_CUDA, options);
    if (!d)
        return rt_fail(FUSE_RT_OUT_OF_MEMORY, "out of host memory");
    d->cuda = *driver;
    d->ordinal = ordinal;
    snprintf(d->name, sizeof d->name, "cuda:%d", ordinal);
    FuseRtStatus status = open_gpu(d, ordinal);
    if (status != FUSE_RT_OK) {
        fuse_rt_device_close(d);
        return status;
    }
    const char *(*targets)(int) = d->has_compiler ? d->compiler.target_at : known_target;
    if (!device_choose_target(d->capability, targets, d->target, sizeof d->target))
        snprintf(d->target, sizeof d->target, "sm_%d",
                 d->capability); // too old: the compiler will say so
    *out = d;
    return FUSE_RT_OK;
}

static FuseRtStatus open_host(DeviceKind kind, const char *name, const char *target,
                              const FuseRtDeviceOptions *options, FuseDevice **out) {
    FuseDevice *d = device_new(kind, options);
    if (!d)
        return rt_fail(FUSE_RT_OUT_OF_MEMORY, "out of host memory");
    snprintf(d->name, sizeof d->name, "%s", name);
    snprintf(d->target, sizeof d->target, "%s%s", kind == DEVICE_SIM ? "sim-" : "", target);
    if (d->threads <= 0)
        d->threads = core_count();
    d->sms = kind == DEVICE_CPU ? d->threads : 4; // a simulated GPU is a small one
    *out = d;
    return FUSE_RT_OK;
}

static FuseRtStatus open_cuda(const char *name, const FuseRtDeviceOptions *options,
                              FuseDevice **out) {
    long ordinal = 0;
    if (name[4]) {
        char *rest;
        ordinal = name[5] >= '0' && name[5] <= '9' ? strtol(name + 5, &rest, 10) : -1;
        if (ordinal < 0 || ordinal > 1000 || *rest)
            return rt_fail(FUSE_RT_INVALID_ARGUMENT, "`%s` does not name a GPU; write cuda:0",
                           name);
    }
    CudaDriver driver;
    FuseRtStatus status = cuda_driver_open(&driver);
    return status == FUSE_RT_OK ? device_open_cuda(&driver, (int)ordinal, options, out) : status;
}

static const char *known_host_target(int i) {
    static const char *const names[] = {"cpu-x86-64",  "cpu-x86-64-v3", "cpu-x86-64-v4",
                                        "cpu-aarch64", "sim-sm_80",     "sim-sm_90a"};
    return i < (int)(sizeof names / sizeof *names) ? names[i] : NULL;
}

// "sim:sm_80" is the target "sim-sm_80", "cpu:aarch64" is "cpu-aarch64".
static FuseRtStatus open_named(DeviceKind kind, const char *name,
                               const FuseRtDeviceOptions *options, FuseDevice **out) {
    const char *(*targets)(int) =
        options && options->compiler ? options->compiler->target_at : known_host_target;
    char prefix[] = {name[0], name[1], name[2], '-', 0}, known[128] = "";
    size_t used = 0;
    for (int i = 0; targets(i); i++) {
        if (strncmp(targets(i), prefix, 4) != 0)
            continue;
        const char *target = targets(i) + 4;
        if (strcmp(target, name + 4) == 0)
            return open_host(kind, name, kind == DEVICE_SIM ? target : targets(i), options, out);
        if (used < sizeof known)
            used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", used ? ", " : "",
                                     target);
    }
    return rt_fail(FUSE_RT_INVALID_ARGUMENT, "`%s`: there is no %s `%s`; there are %s", name,
                   kind == DEVICE_SIM ? "simulator of" : "processor", name + 4, known);
}

FuseRtStatus fuse_rt_device_open(const char *name, const FuseRtDeviceOptions *options,
                                 FuseDevice **out) {
    if (!name || !out)
        return rt_fail(FUSE_RT_INVALID_ARGUMENT, "fuse_rt_device_open: a null pointer");
    *out = NULL;
    if (strcmp(name, "cuda") == 0 || strncmp(name, "cuda:", 5) == 0)
        return open_cuda(name, options, out);
    if (strcmp(name, "cpu") == 0)
        return open_host(DEVICE_CPU, name, "cpu", options, out);
    if (strcmp(name, "eval") == 0)
        return open_host(DEVICE_EVAL, name, "cpu", options, out);
    if (strcmp(name, "sim") == 0)
        return open_host(DEVICE_SIM, name, default_sim_target, options, out);
    if (strncmp(name, "sim:", 4) == 0)
        return open_named(DEVICE_SIM, name, options, out);
    if (strncmp(name, "cpu:", 4) == 0)
        return open_named(DEVICE_CPU, name, options, out);
    return rt_fail(FUSE_RT_INVALID_ARGUMENT,
                   "`%s` is no device; devices are cuda, cuda:1, cpu, sim, sim:sm_80, eval", name);
}

void fuse_rt_device_close(FuseDevice *device) {
    if (!device)
        return;
    if (device->context)
        device->cuda.primary_release(device->handle);
    pthread_mutex_destroy(&device->lock);
    free(device);
}

const char *fuse_rt_device_name(const FuseDevice *device) {
    return device->name;
}

const char *fuse_rt_device_target(const FuseDevice *device) {
    return device->target;
}

DLDevice fuse_rt_device_dlpack(const FuseDevice *device) {
    if (device->kind == DEVICE_CUDA)
        return (DLDevice){kDLCUDA, device->ordinal};
    return (DLDevice){kDLCPU, 0};
}

int fuse_rt_cuda_device_count(void) {
    CudaDriver driver;
    int count = 0;
    if (cuda_driver_open(&driver) != FUSE_RT_OK || driver.init(0) != CUDA_OK ||
        driver.device_count(&count) != CUDA_OK)
        return 0;
    return count;
}

// --- the current context ---

FuseRtStatus device_enter(const FuseDevice *device, DeviceScope *scope) {
    const CudaDriver *cuda = &device->cuda;
    CudaContext *current = NULL;
    *scope = (DeviceScope){0};
    if (cuda->context_current(&current) == CUDA_OK && current == device->context)
        return FUSE_RT_OK;
    FuseRtStatus status = cuda_check(cuda, cuda->context_push(device->context), "cuCtxPushCurrent");
    scope->pushed = status == FUSE_RT_OK;
    return status;
}

void device_leave(const FuseDevice *device, DeviceScope scope) {
    CudaContext *old;
    if (scope.pushed)
        device->cuda.context_pop(&old);
}

FuseRtStatus device_done(const FuseDevice *device, DeviceScope scope, CudaResult result,
                         const char *call) {
    device_leave(device, scope);
    return cuda_check(&device->cuda, result, call);
}

// --- the compiler ---

FuseRtStatus device_compiler(FuseDevice *device, const FuseCompilerApi **out) {
    FuseRtStatus status = FUSE_RT_OK;
    pthread_mutex_lock(&device->lock);
    if (!device->has_compiler) {
        status = compiler_open(&device->compiler);
        device->has_compiler = status == FUSE_RT_OK;
    }
    pthread_mutex_unlock(&device->lock);
    *out = &device->compiler;
    return status;
}
