// Which target fits this machine's GPU: asks the CUDA driver, loaded only for the question.
// Invariant: without a driver or a GPU nothing is printed and nothing fails.
#include "tools/commands.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

// From cuda.h, which need not be installed.
enum { COMPUTE_CAPABILITY_MAJOR = 75, COMPUTE_CAPABILITY_MINOR = 76 };
typedef int DriverInit(unsigned flags);
typedef int DriverGetDevice(int *device, int ordinal);
typedef int DriverGetAttribute(int *value, int attribute, int device);

// 10 * major + minor of the first device, or 0.
static int query_capability(void *driver) {
    DriverInit *init = (DriverInit *)dlsym(driver, "cuInit");
    DriverGetDevice *get_device = (DriverGetDevice *)dlsym(driver, "cuDeviceGet");
    DriverGetAttribute *get_attribute = (DriverGetAttribute *)dlsym(driver, "cuDeviceGetAttribute");
    int device, major, minor;
    if (!init || !get_device || !get_attribute || init(0) != 0 || get_device(&device, 0) != 0 ||
        get_attribute(&major, COMPUTE_CAPABILITY_MAJOR, device) != 0 ||
        get_attribute(&minor, COMPUTE_CAPABILITY_MINOR, device) != 0)
        return 0;
    return 10 * major + minor;
}

bool local_gpu_target(char *out, size_t size) {
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!driver)
        return false;
    int capability = query_capability(driver);
    dlclose(driver);

    // "sm_90a" runs on 9.0 only; "sm_80" on that and everything newer.
    int best = 0;
    for (int i = 0; fuse_target_at(i); i++) {
        const char *name = fuse_target_at(i);
        if (strncmp(name, "sm_", 3) != 0)
            continue;
        char *rest;
        int needs = (int)strtol(name + 3, &rest, 10);
        bool fits = *rest ? needs == capability : needs <= capability;
        if (fits && needs >= best) {
            best = needs;
            snprintf(out, size, "%s", name);
        }
    }
    return best > 0;
}
