// A program outside the source tree: compiles a kernel with libfusec from an install prefix.
#include <fuse_rt.h>
#include <fusec.h>

#include <stdio.h>
#include <string.h>

static const char source[] = "kernel axpy(a: f32, x: f32[N], y: f32[N]) -> (z: f32[N]) {\n"
                             "    z = a * x + y;\n"
                             "}\n";

int main(void) {
    FuseOptions options = {.target = "sm_80", .emit = FUSE_EMIT_PTX, .opt_level = 2};
    FuseResult *result = fuse_compile(&options, "axpy.fk", source, strlen(source));
    if (!result || !fuse_result_ok(result)) {
        fprintf(stderr, "%s", result ? fuse_result_messages(result) : "out of memory\n");
        fuse_result_free(result);
        return 1;
    }
    size_t length;
    const char *ptx = fuse_result_output(result, &length);
    int ok = length > 0 && strstr(ptx, ".entry") != NULL;
    printf("fusec %s: %zu bytes of PTX\n", fuse_version(), length);
    fuse_result_free(result);
    return ok ? 0 : 1;
}
