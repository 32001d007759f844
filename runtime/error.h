// Status and message of a failing call.
#ifndef FUSE_RUNTIME_ERROR_H
#define FUSE_RUNTIME_ERROR_H

#include "include/fuse_rt.h"

// Sets the thread's message, cut where it is too long, and returns `status`.
FuseRtStatus rt_fail(FuseRtStatus status, const char *format, ...)
    __attribute__((format(printf, 2, 3), cold));

#endif
