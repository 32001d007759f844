// Device memory, copies, streams and events. On the host they are the C library's.
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/device.h"
#include "runtime/error.h"

struct FuseEvent {
    FuseDevice *device;
    CudaEvent *cuda;
    struct timespec time; // host
};

enum { ALIGNMENT = 256 };

static FuseRtStatus null_pointer(const char *function) {
    return rt_fail(FUSE_RT_INVALID_ARGUMENT, "%s: a null pointer", function);
}

FuseRtStatus fuse_rt_alloc(FuseDevice *device, size_t bytes, void **out) {
    if (!device || !out)
        return null_pointer("fuse_rt_alloc");
    *out = NULL;
    if (bytes == 0)
        return FUSE_RT_OK;
    if (device->kind != DEVICE_CUDA) {
        if (bytes > SIZE_MAX - ALIGNMENT)
            return rt_fail(FUSE_RT_OUT_OF_MEMORY, "out of host memory (%zu bytes)", bytes);
        *out = aligned_alloc(ALIGNMENT, (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
        return *out ? FUSE_RT_OK
                    : rt_fail(FUSE_RT_OUT_OF_MEMORY, "out of host memory (%zu bytes)", bytes);
    }
    CudaPointer p = 0;
    DeviceScope scope;
    FuseRtStatus status = device_enter(device, &scope);
    if (status == FUSE_RT_OK)
        status = device_done(device, scope, device->cuda.mem_alloc(&p, bytes), "cuMemAlloc");
    if (status == FUSE_RT_OUT_OF_MEMORY)
        return rt_fail(status, "%s is out of memory (%zu bytes asked for)", device->name, bytes);
    *out = (void *)(uintptr_t)p;
    return status;
}

FuseRtStatus fuse_rt_free(FuseDevice *device, void *memory) {
    if (!device)
        return null_pointer("fuse_rt_free");
    if (!memory)
        return FUSE_RT_OK;
    if (device->kind != DEVICE_CUDA) {
        free(memory);
        return FUSE_RT_OK;
    }
    DeviceScope scope;
    FuseRtStatus status = device_enter(device, &scope);
    if (status == FUSE_RT_OK)
        status = device_done(device, scope, device->cuda.mem_free((CudaPointer)(uintptr_t)memory),
                             "cuMemFree");
    return status;
}

FuseRtStatus fuse_rt_copy_to_device(FuseDevice *device, void *to, const void *from, size_t bytes,
                                    void *stream) {
    if (!device || (bytes > 0 && (!to || !from)))
        return null_pointer("fuse_rt_copy_to_device");
    if (bytes == 0)
        return FUSE_RT_OK;
    if (device->kind != DEVICE_CUDA) {
        memcpy(to, from, bytes);
        return FUSE_RT_OK;
    }
    CudaPointer p = (CudaPointer)(uintptr_t)to;
    DeviceScope scope;
    FuseRtStatus status = device_enter(device, &scope);
    if (status == FUSE_RT_OK)
        status = device_done(device, scope, device->cuda.copy_to_device(p, from, bytes, stream),
                             "cuMemcpyHtoDAsync");
    // Page-locked memory is read later: the caller may only reuse it when the copy is done.
    return status == FUSE_RT_OK ? fuse_rt_synchronize(device, stream) : status;
}

FuseRtStatus fuse_rt_copy_to_host(FuseDevice *device, void *to, const void *from, size_t bytes,
                                  void *stream) {
    if (!device || (bytes > 0 && (!to || !from)))
        return null_pointer("fuse_rt_copy_to_host");
    if (bytes == 0)
        return FUSE_RT_OK;
    if (device->kind != DEVICE_CUDA) {
        memcpy(to, from, bytes);
        return FUSE_RT_OK;
    }
    CudaPointer p = (CudaPointer)(uintptr_t)from;
    DeviceScope scope;
    FuseRtStatus status = device_enter(device, &scope);
    if (status == FUSE_RT_OK)
        status = device_done(device, scope, device->cuda.copy_to_host(to, p, bytes, stream),
                             "cuMemcpyDtoHAsync");
    return status == FUSE_RT_OK ? fuse_rt_synchronize(device, stream) : status;
}

FuseRtStatus fuse_rt_fill(FuseDevice *device, void *memory, uint8_t byte, size_t bytes,
                          void *stream) {
    if (!device || (bytes > 0 && !memory))
        return null_pointer("fuse_rt_fill");
    if (bytes == 0)
        return FUSE_RT_OK;
    if (device->kind != DEVICE_CUDA) {
        memset(memory, byte, bytes);
        return FUSE_RT_OK;
    }
    CudaPointer p = (CudaPointer)(uintptr_t)memory;
    DeviceScope scope;
    FuseRtStatus status = device_enter(device, &scope);
    if (status == FUSE_RT_OK)
        status = device_done(device, scope, device->cuda.fill(p, byte, bytes, stream),
                             "cuMemsetD8Async");
    return status;
}

// --- streams ---

FuseRtStatus fuse_rt_stream_new(FuseDevice *device, void **out) {
    if (!device || !out)
        return null_pointer("fuse_rt_stream_new");
    *out = NULL;
    if (device->kind != DEVICE_CUDA)
        return FUSE_RT_OK;
    CudaStream *stream = NULL;
    DeviceScope scope;
    FuseRtStatus status = device_enter(device, &scope);
    if (status == FUSE_RT_OK)
        status = device_done(device, scope,
                             device->cuda.stream_create(&stream, CUDA_STREAM_NON_BLOCKING),
                             "cuStreamCreate");
    *out = stream;
    return status;
}

FuseRtStatus fuse_rt_stream_free(FuseDevice *device, void *stream) {
    if (!device)
        return null_pointer("fuse_rt_stream_free");
    if (!stream || device->kind != DEVICE_CUDA)
        return FUSE_RT_OK;
    DeviceScope scope;
    FuseRtStatus status = device_enter(device, &scope);
    if (status == FUSE_RT_OK)
        status = device_done(device, scope, device->cuda.stream_destroy(stream), "cuStreamDestroy");
    return status;
}

FuseRtStatus fuse_rt_synchronize(FuseDevice *device, void *stream) {
    if (!device)
        return null_pointer("fuse_rt_synchronize");
    if (device->kind != DEVICE_CUDA)
        return FUSE_RT_OK;
    DeviceScope scope;
    FuseRtStatus status = device_enter(device, &scope);
    if (status == FUSE_RT_OK)
        status = device_done(device, scope,
                             stream ? device->cuda.stream_synchronize(stream)
                                    : device->cuda.context_synchronize(),
                             stream ? "cuStreamSynchronize" : "cuCtxSynchronize");
    return status;
}

// --- events ---

FuseRtStatus fuse_rt_event_new(FuseDevice *device, FuseEvent **out) {
    if (!device || !out)
        return null_pointer("fuse_rt_event_new");
    *out = NULL;
    FuseEvent *e = calloc(1, sizeof *e);
    if (!e)
        return rt_fail(FUSE_RT_OUT_OF_MEMORY, "out of host memory");
    e->device = device;
    if (device->kind == DEVICE_CUDA) {
        DeviceScope scope;
        FuseRtStatus status = device_enter(device, &scope);
        if (status == FUSE_RT_OK)
            status =
                device_done(device, scope, device->cuda.event_create(&e->cuda, 0), "cuEventCreate");
        if (status != FUSE_RT_OK) {
            free(e);
            return status;
        }
    }
    *out = e;
    return FUSE_RT_OK;
}

FuseRtStatus fuse_rt_event_record(FuseEvent *event, void *stream) {
    if (!event)
        return null_pointer("fuse_rt_event_record");
    FuseDevice *device = event->device;
    if (device->kind != DEVICE_CUDA) {
        clock_gettime(CLOCK_MONOTONIC, &event->time);
        return FUSE_RT_OK;
    }
    DeviceScope scope;
    FuseRtStatus status = device_enter(device, &scope);
    if (status == FUSE_RT_OK)
        status = device_done(device, scope, device->cuda.event_record(event->cuda, stream),
                             "cuEventRecord");
    return status;
}

FuseRtStatus fuse_rt_event_elapsed(FuseEvent *from, FuseEvent *to, double *milliseconds) {
    if (!from || !to || !milliseconds)
        return null_pointer("fuse_rt_event_elapsed");
    FuseDevice *device = to->device;
    if (device->kind != DEVICE_CUDA) {
        *milliseconds = 1e3 * (double)(to->time.tv_sec - from->time.tv_sec) +
                        1e-6 * (double)(to->time.tv_nsec - from->time.tv_nsec);
        return FUSE_RT_OK;
    }
    float elapsed = 0;
    DeviceScope scope;
    FuseRtStatus status = device_enter(device, &scope);
    if (status == FUSE_RT_OK)
        status = device_done(device, scope, device->cuda.event_synchronize(to->cuda),
                             "cuEventSynchronize");
    if (status == FUSE_RT_OK)
        status =
            cuda_check(&device->cuda, device->cuda.event_elapsed(&elapsed, from->cuda, to->cuda),
                       "cuEventElapsedTime");
    *milliseconds = (double)elapsed;
    return status;
}

void fuse_rt_event_free(FuseEvent *event) {
    if (!event)
        return;
    DeviceScope scope;
    if (event->cuda && device_enter(event->device, &scope) == FUSE_RT_OK) {
        event->device->cuda.event_destroy(event->cuda);
        device_leave(event->device, scope);
    }
    free(event);
}
