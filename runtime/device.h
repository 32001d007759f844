// Devices: a GPU behind a table of driver functions, or this machine through the compiler library.
#ifndef FUSE_RUNTIME_DEVICE_H
#define FUSE_RUNTIME_DEVICE_H

#include <pthread.h>
#include <stdbool.h>

#include "include/fuse_rt.h"
#include "runtime/cuda_driver.h"

typedef enum DeviceKind { DEVICE_CUDA, DEVICE_CPU, DEVICE_SIM, DEVICE_EVAL } DeviceKind;

struct FuseDevice {
    DeviceKind kind;
    char name[64], target[64];
    int sms; // programs that fit at once, for the plan's `sms`
    int threads;
    uint64_t seed;
    // GPU
    CudaDriver cuda;
    CudaDevice handle;
    CudaContext *context;
    int ordinal, capability; // 90 for 9.0
    int max_shared;          // bytes of shared memory that a program may have
    char gpu_name[128];
    // the compiler, looked up when first needed
    pthread_mutex_t lock;
    FuseCompilerApi compiler;
    bool has_compiler;
};

// Opens GPU `ordinal` of a driver; cuInit is called.
FuseRtStatus device_open_cuda(const CudaDriver *driver, int ordinal,
                              const FuseRtDeviceOptions *options, FuseDevice **out);

// Makes the device's context current; device_leave restores what was. Only for GPUs.
typedef struct DeviceScope {
    bool pushed;
} DeviceScope;
FuseRtStatus device_enter(const FuseDevice *device, DeviceScope *scope);
void device_leave(const FuseDevice *device, DeviceScope scope);
// Leaves, and turns the result of `call` into a status.
FuseRtStatus device_done(const FuseDevice *device, DeviceScope scope, CudaResult result,
                         const char *call);

// The compiler's functions; FUSE_RT_UNSUPPORTED with a message where there is no compiler.
FuseRtStatus device_compiler(FuseDevice *device, const FuseCompilerApi **out);
// Opens the compiler library (compiler.c).
FuseRtStatus compiler_open(FuseCompilerApi *out);

// The best target for a GPU of this compute capability among `target_at`: "sm_90a" fits 9.0 only,
// "sm_80" fits 8.0 and everything after it. False when none fits.
bool device_choose_target(int capability, const char *(*target_at)(int), char *out, size_t size);
// Whether code for `target` runs on that capability.
bool device_runs_target(int capability, const char *target);

#endif
