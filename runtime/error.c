// The thread's message: the one piece of state that does not belong to an object.
#include "runtime/error.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#ifndef FUSE_VERSION
#define FUSE_VERSION "0.1.0"
#endif

enum { MESSAGE_MAX = 8192 }; // a screen of diagnostics; the whole text goes to FuseRtBuild.message

// Not in thread-local storage: a library that Python opens has little room there.
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static bool has_key;

static void key_make(void) {
    has_key = pthread_key_create(&key, free) == 0;
}

__attribute__((destructor)) static void key_delete(void) {
    if (!has_key)
        return;
    free(pthread_getspecific(key));
    pthread_key_delete(key);
    has_key = false;
}

// The thread's message; NULL: there is none and no room for one.
static char *last_message(void) {
    pthread_once(&once, key_make);
    char *text = has_key ? pthread_getspecific(key) : NULL;
    if (text || !has_key)
        return text;
    text = calloc(1, MESSAGE_MAX);
    if (text && pthread_setspecific(key, text) != 0) {
        free(text);
        text = NULL;
    }
    return text;
}

FuseRtStatus rt_fail(FuseRtStatus status, const char *format, ...) {
    // The arguments may point into the old message.
    char text[MESSAGE_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    char *last = last_message();
    if (last)
        snprintf(last, MESSAGE_MAX, "%s", text);
    return status;
}

const char *fuse_rt_last_error(void) {
    const char *last = last_message();
    return last ? last : "out of host memory";
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
