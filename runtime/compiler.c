// Finding the compiler library, which the runtime opens only to compile source or to run on the
// host.
//
// Searched: the file that FUSE_COMPILER names (that one only), libfusec.so in the folder of this
// library, then where the loader looks. It stays open for the life of the process: LLVM does not
// like to be unloaded.
#include <assert.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/device.h"
#include "runtime/error.h"

static const char *const library_names[] = {"libfusec.so.0", "libfusec.so"};

static void *open_beside(char *path, size_t size) {
    Dl_info info;
    // The address of any object of this library will do.
    if (!dladdr(library_names, &info) || !info.dli_fname)
        return NULL;
    const char *slash = strrchr(info.dli_fname, '/');
    if (!slash)
        return NULL;
    void *library = NULL;
    for (int i = 0; i < 2 && !library; i++) {
        int n = snprintf(path, size, "%.*s/%s", (int)(slash - info.dli_fname), info.dli_fname,
                         library_names[i]);
        library = n > 0 && (size_t)n < size ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    }
    return library;
}

static void *open_library(FuseRtStatus *status) {
    const char *named = getenv("FUSE_COMPILER");
    if (named && *named) {
        void *library = dlopen(named, RTLD_NOW | RTLD_LOCAL);
        if (!library)
            *status =
                rt_fail(FUSE_RT_UNSUPPORTED,
                        "the compiler that FUSE_COMPILER names cannot be opened: %s", dlerror());
        return library;
    }
    char path[4096];
    void *library = open_beside(path, sizeof path);
    for (int i = 0; i < 2 && !library; i++)
        library = dlopen(library_names[i], RTLD_NOW | RTLD_LOCAL);
    if (!library)
        *status = rt_fail(
            FUSE_RT_UNSUPPORTED,
            "there is no compiler: %s (set FUSE_COMPILER to the file libfusec.so, or load PTX)",
            dlerror());
    return library;
}

FuseRtStatus compiler_open(FuseCompilerApi *out) {
    FuseRtStatus status = FUSE_RT_OK;
    void *library = open_library(&status);
    if (!library)
        return status;
    // In the order of the struct, whose members are all pointers to functions.
    static const char *const symbols[] = {
        "fuse_compile",       "fuse_result_free",     "fuse_result_ok",
        "fuse_result_output", "fuse_result_messages", "fuse_result_internal",
        "fuse_result_plan",   "fuse_host_launch",     "fuse_eval_run",
        "fuse_target_at",     "fuse_result_note_use",
    };
    void *found[sizeof symbols / sizeof *symbols];
    static_assert(sizeof found == sizeof *out, "one symbol per function");
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        found[i] = dlsym(library, symbols[i]);
        if (!found[i])
            return rt_fail(FUSE_RT_UNSUPPORTED, "the compiler library lacks %s: another version?",
                           symbols[i]);
    }
    memcpy(out, found, sizeof *out);
    return FUSE_RT_OK;
}
