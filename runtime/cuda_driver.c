// Finding the driver's functions, and its errors as status and message.
#include "runtime/cuda_driver.h"

#include <dlfcn.h>
#include <string.h>

#include "runtime/error.h"

// dlsym gives an object pointer; POSIX lets it hold a function's address, ISO C has no cast for it.
static bool find(void *library, const char *symbol, void *slot, size_t size) {
    void *address = dlsym(library, symbol);
    if (address)
        memcpy(slot, &address, size);
    return address != NULL;
}

FuseRtStatus cuda_driver_open(CudaDriver *out) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return rt_fail(FUSE_RT_NO_DEVICE, "the CUDA driver cannot be opened: %s", dlerror());
    *out = (CudaDriver){0};
    const char *missing = NULL;
#define CUDA(field, symbol, params)                                                                \
    if (!find(library, symbol, &out->field, sizeof out->field) && !missing)                        \
        missing = symbol;
#define CUDA_OPTIONAL(field, symbol, params) find(library, symbol, &out->field, sizeof out->field);
#include "runtime/cuda_driver.def"
#undef CUDA
#undef CUDA_OPTIONAL
    if (missing)
        return rt_fail(FUSE_RT_NO_DEVICE, "the CUDA driver is too old: it lacks %s", missing);
    return FUSE_RT_OK;
}

static FuseRtStatus status_of(CudaResult result) {
    if (result == CUDA_OUT_OF_MEMORY)
        return FUSE_RT_OUT_OF_MEMORY;
    if (result == CUDA_NO_DEVICE || result == CUDA_STUB_LIBRARY)
        return FUSE_RT_NO_DEVICE;
    return FUSE_RT_DRIVER;
}

FuseRtStatus cuda_check(const CudaDriver *driver, CudaResult result, const char *call) {
    if (result == CUDA_OK)
        return FUSE_RT_OK;
    const char *name = NULL, *text = NULL;
    driver->error_name(result, &name);
    driver->error_string(result, &text);
    if (!name)
        return rt_fail(status_of(result), "%s: CUDA error %d", call, result);
    return rt_fail(status_of(result), "%s: %s: %s", call, name, text ? text : "no text");
}
