// The thread's message: the one piece of state that does not belong to an object.
#include "runtime/error.h"

#include <stdarg.h>
#include <stdio.h>

#ifndef FUSE_VERSION
#define FUSE_VERSION "0.1.0"
#endif

enum { MESSAGE_MAX = 8192 }; // a screen of diagnostics; the whole text goes to FuseRtBuild.message

static _Thread_local char last_message[MESSAGE_MAX];

FuseRtStatus rt_fail(FuseRtStatus status, const char *format, ...) {
    // The arguments may point into the old message.
    char text[MESSAGE_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    snprintf(last_message, sizeof last_message, "%s", text);
    return status;
}

const char *fuse_rt_last_error(void) {
    return last_message;
}

const char *fuse_rt_status_name(FuseRtStatus status) {
    switch (status) {
    case FUSE_RT_OK:
        return "ok";
    case FUSE_RT_INVALID_ARGUMENT:
        return "invalid argument";
    case FUSE_RT_NO_DEVICE:
        return "no device";
    case FUSE_RT_COMPILE:
        return "compilation failed";
    case FUSE_RT_IO:
        return "input or output failed";
    case FUSE_RT_OUT_OF_MEMORY:
        return "out of memory";
    case FUSE_RT_DRIVER:
        return "device failed";
    case FUSE_RT_NO_VARIANT:
        return "no variant";
    case FUSE_RT_UNSUPPORTED:
        return "unsupported";
    case FUSE_RT_INTERNAL:
        return "internal error";
    }
    return "unknown status";
}

const char *fuse_rt_version(void) {
    return FUSE_VERSION;
}
