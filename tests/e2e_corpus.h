// Kernels of tests/corpus/frontend on the devices eval, cpu and sim, each against a reference that
// the test computes, and their PTX through ptxas.
#ifndef FUSE_TESTS_E2E_CORPUS_H
#define FUSE_TESTS_E2E_CORPUS_H

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "include/fuse_rt.h"
#include "include/fusec.h"
#include "ir/random.h"
#include "lang/base/numeric.h"

#define UNUSED __attribute__((unused))

static const FuseCompilerApi corpus_compiler = FUSE_COMPILER_API;
static const char *const corpus_devices[] = {"eval", "cpu", "sim:sm_90a"};
enum { CORPUS_DEVICES = 3, ARRAY_BYTES = 1 << 16 };

// --- tensors ---

typedef struct Array {
    DType dtype;
    int64_t count, dims[4], strides[4];
    _Alignas(64) uint8_t bytes[ARRAY_BYTES];
    DLTensor tensor;
} Array;

// Rank 1 to 3; a dim of -1 ends the list. Elements are 0.
UNUSED static Array *array_new(DType dtype, int64_t a, int64_t b, int64_t c) {
    Array *x = aligned_alloc(64, sizeof *x);
    memset(x, 0, sizeof *x);
    *x = (Array){.dtype = dtype, .dims = {a, b, c}};
    int rank = b < 0 ? 1 : c < 0 ? 2 : 3;
    x->count = 1;
    for (int i = rank - 1; i >= 0; i--) {
        x->strides[i] = x->count;
        x->count *= x->dims[i];
    }
    cr_assert((int64_t)dtype_bytes(dtype, (uint64_t)x->count) <= ARRAY_BYTES);
    x->tensor = (DLTensor){.data = x->bytes,
                           .device = {kDLCPU, 0},
                           .ndim = rank,
                           .dtype = {dtype_dlpack_code(dtype), dtype_dlpack_bits(dtype), 1},
                           .shape = x->dims,
                           .strides = x->strides};
    return x;
}

UNUSED static double array_get(const Array *x, int64_t i) {
    return scalar_to_f64(scalar_load(x->dtype, x->bytes, i));
}

UNUSED static int64_t array_int(const Array *x, int64_t i) {
    return scalar_load(x->dtype, x->bytes, i).u.i;
}

UNUSED static void array_set(Array *x, int64_t i, double f) {
    scalar_store(x->bytes, i,
                 dtype_is_float(x->dtype) ? scalar_float(x->dtype, f)
                                          : scalar_int(x->dtype, (int64_t)f));
}

UNUSED static void array_set_int(Array *x, int64_t i, int64_t v) {
    scalar_store(x->bytes, i, scalar_int(x->dtype, v));
}

UNUSED static void array_fill(Array *x, uint64_t seed) {
    random_fill(x->bytes, x->dtype, x->count, (RandomSpec){0}, seed);
}

UNUSED static FuseRtArg arg_tensor(Array *x) {
    return (FuseRtArg){.kind = FUSE_RT_TENSOR, .tensor = &x->tensor};
}

UNUSED static FuseRtArg arg_int(int64_t i) {
    return (FuseRtArg){.kind = FUSE_RT_INT, .i = i};
}

UNUSED static FuseRtArg arg_f(double f) {
    return (FuseRtArg){.kind = FUSE_RT_FLOAT, .f = f};
}

#define ARGS(...)                                                                                  \
    (int)(sizeof((FuseRtArg[]){__VA_ARGS__}) / sizeof(FuseRtArg)), (FuseRtArg[]) {                 \
        __VA_ARGS__                                                                                \
    }

// --- running ---

typedef struct Corpus {
    const char *file; // in tests/corpus/frontend
    const char *const *defines;
    bool debug;
} Corpus;

UNUSED static char *corpus_text(const char *file) {
    char path[512];
    snprintf(path, sizeof path, "%s/tests/corpus/frontend/%s", FUSE_SOURCE_DIR, file);
    FILE *f = fopen(path, "rb");
    cr_assert(f, "%s", path);
    char *text = calloc(1, 1 << 16);
    cr_assert(fread(text, 1, (1 << 16) - 1, f) > 0);
    fclose(f);
    return text;
}

// One launch; gives its status, with the text in fuse_rt_last_error.
UNUSED static FuseRtStatus corpus_launch(const Corpus *c, const char *kernel, const char *on,
                                         int nargs, const FuseRtArg *args) {
    FuseRtDeviceOptions options = {.compiler = &corpus_compiler, .threads = 2, .seed = 3};
    FuseRtBuild build = {
        .kernel = kernel, .defines = c->defines, .no_perf_notes = true, .debug = c->debug};
    FuseDevice *device;
    FuseModule *module;
    FuseKernel *found;
    char *text = corpus_text(c->file);
    cr_assert_eq(fuse_rt_device_open(on, &options, &device), FUSE_RT_OK, "%s",
                 fuse_rt_last_error());
    FuseRtStatus status =
        fuse_rt_module_from_source(device, c->file, text, strlen(text), &build, &module);
    cr_assert_eq(status, FUSE_RT_OK, "%s on %s: %s", kernel, on, fuse_rt_last_error());
    cr_assert_eq(fuse_rt_kernel_find(module, NULL, &found), FUSE_RT_OK, "%s", fuse_rt_last_error());
    status = fuse_rt_launch(found, NULL, nargs, args, NULL);
    fuse_rt_module_close(module);
    fuse_rt_device_close(device);
    free(text);
    return status;
}

UNUSED static void corpus_run(const Corpus *c, const char *kernel, const char *on, int nargs,
                              const FuseRtArg *args) {
    FuseRtStatus status = corpus_launch(c, kernel, on, nargs, args);
    cr_assert_eq(status, FUSE_RT_OK, "%s on %s: %s", kernel, on, fuse_rt_last_error());
}

#define FOR_DEVICES(on)                                                                            \
    for (const char *const *at_ = corpus_devices, *on = *at_;                                      \
         at_ < corpus_devices + CORPUS_DEVICES;                                                    \
         at_++, on = at_ < corpus_devices + CORPUS_DEVICES ? *at_ : NULL)

// --- PTX ---

// The file compiles for both generations, and ptxas takes it; gives the last one's text, to free.
UNUSED static char *corpus_ptx(const Corpus *c, const char *kernel) {
    static const char *const targets[] = {"sm_80", "sm_90a"};
    const char *ptxas = "/usr/local/cuda/bin/ptxas";
    char *source = corpus_text(c->file), *out = NULL;
    for (int i = 0; i < 2; i++) {
        FuseOptions options = {.target = targets[i],
                               .emit = FUSE_EMIT_PTX,
                               .kernel = kernel,
                               .defines = c->defines,
                               .debug = c->debug,
                               .opt_level = 2,
                               .no_perf_notes = true};
        FuseResult *r = fuse_compile(&options, c->file, source, strlen(source));
        cr_assert(fuse_result_ok(r), "%s", fuse_result_messages(r));
        size_t len;
        const char *text = fuse_result_output(r, &len);
        free(out);
        out = calloc(1, len + 1);
        memcpy(out, text, len);
        fuse_result_free(r);
        if (access(ptxas, X_OK) != 0) {
            fprintf(stderr, "no ptxas here: PTX is not assembled\n");
            continue;
        }
        char name[] = "/tmp/fuse-ptx-XXXXXX", command[256], report[4096];
        int fd = mkstemp(name);
        cr_assert(fd >= 0 && write(fd, out, len) == (ssize_t)len);
        close(fd);
        snprintf(command, sizeof command, "%s -arch=%s %s -o /dev/null 2>&1", ptxas, targets[i],
                 name);
        FILE *pipe = popen(command, "r");
        size_t n = fread(report, 1, sizeof report - 1, pipe);
        report[n] = '\0';
        cr_assert_eq(pclose(pipe), 0, "%s: %s", targets[i], report);
        unlink(name);
    }
    free(source);
    return out;
}

#endif
