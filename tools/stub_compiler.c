// Stands in for libfusec until it is linked: knows its targets, compiles nothing.
#include "include/fusec.h"

#include <stdlib.h>

struct FuseResult {
    char unused;
};

FuseResult *fuse_compile(const FuseOptions *options, const char *name, const char *source,
                         size_t len) {
    static const char text[] = "fusec: error: this build has no compiler\n";
    (void)name, (void)source, (void)len;
    if (options->message)
        options->message(options->user, text, sizeof text - 1);
    return calloc(1, sizeof(FuseResult));
}
void fuse_result_free(FuseResult *r) {
    free(r);
}
bool fuse_result_ok(const FuseResult *r) {
    (void)r;
    return false;
}
const char *fuse_result_output(const FuseResult *r, size_t *len) {
    (void)r;
    *len = 0;
    return "";
}
bool fuse_result_internal(const FuseResult *r) {
    (void)r;
    return true;
}
const char *fuse_version(void) {
    return "0.1.0";
}
const char *fuse_target_at(int i) {
    static const char *const names[] = {"sm_80", "sm_90a", "cpu", "sim-sm_90a"};
    return i >= 0 && i < 4 ? names[i] : NULL;
}
const char *fuse_explain_error(const char *id) {
    (void)id;
    return NULL;
}
