// End-to-end tests: kernels of examples/ through libfuse_rt on the devices eval, cpu and sim.
//
// A Buffer is one tensor in a block of memory that is longer on both sides and in every gap; in the
// layouts that begin at an odd element, the block ends with the tensor's last element and a page
// that may not be touched follows: on cpu, a read outside ends the test there. All bytes but the
// elements hold a pattern. After a launch an input has to be as it was, an output has to differ
// from what it was in its elements only, and each of those has to be within its bound of the
// reference that the test computes in f64.
//
// Bounds. u(T) is half the distance between neighbours of 1 in T: 2^-11 (f16), 2^-8 (bf16),
// 2^-24 (f32); e(T) is half the smallest positive T. Rounding x to T errs by at most u(T)|x| +
// e(T). Kernels compute in f32, so a result that errs by d before it is stored errs by at most
// store_error(T, x, d) = d + u(T)(|x| + d) + e(T) after. For f32 the last two terms are not needed
// and are left out (the store is exact). The reference itself, in f64, errs by 2^-53 times
// something of the same size: the factor 1 + 2^-20 on every bound covers it and all products of two
// errors.
#ifndef FUSE_TESTS_E2E_SUPPORT_H
#define FUSE_TESTS_E2E_SUPPORT_H

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "include/fuse_rt.h"
#include "ir/random.h"
#include "lang/base/numeric.h"

static const FuseCompilerApi e2e_compiler = FUSE_COMPILER_API;

// --- layouts ---

typedef struct Layout {
    const char *name;
    int lead, gap, step;
    bool transposed, reversed;
} Layout;

static const Layout e2e_layouts[] = {
#define LAYOUT(name, lead, gap, step, transposed, reversed)                                        \
    {#name, lead, gap, step, transposed, reversed},
#include "tests/e2e_cases.def"
};
enum { E2E_LAYOUTS = sizeof e2e_layouts / sizeof *e2e_layouts, E2E_SMALL = 3000 };

// The layouts that shape number `shape` is run with; at most E2E_LAYOUTS of them.
static inline int layouts_of(int shape, int64_t elements, int out[E2E_LAYOUTS]) {
    int n = 0;
    if (elements <= E2E_SMALL) {
        while (n < E2E_LAYOUTS) {
            out[n] = n;
            n++;
        }
        return n;
    }
    out[n++] = 0;
    out[n++] = 1 + 3 * shape % (E2E_LAYOUTS - 1);
    out[n++] = 1 + (3 * shape + 4) % (E2E_LAYOUTS - 1);
    return n;
}

static inline const Layout *layout_of(int shape, int layout, int tensor) {
    int at = layout == 0 ? 0 : (layout + 3 * tensor * (shape % 2)) % E2E_LAYOUTS;
    return &e2e_layouts[at];
}

// --- buffers ---

enum { BUFFER_GUARD = 256, BUFFER_PATTERN = 0xa5, BUFFER_PAGE = 4096 };

typedef struct Buffer {
    DType dtype;
    int64_t shape[2], stride[2]; // a vector is {1, n}
    size_t size, mapped;
    uint8_t *map, *bytes, *before; // before: what the launch found in `bytes`
    uint8_t *first;                // element 0
    DLTensor tensor;
} Buffer;

// A vector has rank 1 and m = 1.
static inline Buffer *buffer_new(const Layout *l, DType dtype, int rank, int64_t m, int64_t n) {
    Buffer *b = calloc(1, sizeof *b);
    bool columns = l->transposed && rank == 2, exact = l->lead % 8 != 0;
    int64_t lines = columns ? n : m, length = columns ? m : n;
    int64_t line = length * l->step + l->gap;
    int64_t last = lines && length ? (lines - 1) * line + (length - 1) * l->step : 0;
    size_t bytes = dtype_bytes(dtype, 1);
    b->dtype = dtype;
    b->shape[0] = m;
    b->shape[1] = n;
    b->stride[columns ? 0 : 1] = l->step;
    b->stride[columns ? 1 : 0] = line;
    b->size = BUFFER_GUARD + (size_t)(l->lead + last + 1) * bytes + (exact ? 0 : BUFFER_GUARD);
    b->mapped = (b->size + BUFFER_PAGE - 1) / BUFFER_PAGE * BUFFER_PAGE;
    b->map = mmap(NULL, b->mapped + BUFFER_PAGE, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    cr_assert(b->map != MAP_FAILED);
    mprotect(b->map + b->mapped, BUFFER_PAGE, PROT_NONE);
    b->bytes = exact ? b->map + b->mapped - b->size : b->map;
    b->before = malloc(b->size);
    memset(b->bytes, BUFFER_PATTERN, b->size);
    b->first = b->bytes + BUFFER_GUARD + (size_t)l->lead * bytes;
    int from = 2 - rank;
    if (l->reversed && b->shape[from] > 0) {
        b->first += (size_t)((b->shape[from] - 1) * b->stride[from]) * bytes;
        b->stride[from] = -b->stride[from];
    }
    b->tensor = (DLTensor){.data = b->first,
                           .device = {kDLCPU, 0},
                           .ndim = rank,
                           .dtype = {dtype_dlpack_code(dtype), dtype_dlpack_bits(dtype), 1},
                           .shape = b->shape + from,
                           .strides = b->stride + from};
    return b;
}

static inline void buffer_free(Buffer *b) {
    munmap(b->map, b->mapped + BUFFER_PAGE);
    free(b->before);
    free(b);
}

static inline int64_t buffer_count(const Buffer *b) {
    return b->shape[0] * b->shape[1];
}

// Element number i, the last dim fastest.
static inline void *buffer_at(const Buffer *b, uint8_t *first, int64_t i) {
    int64_t at = i / b->shape[1] * b->stride[0] + i % b->shape[1] * b->stride[1];
    return first + at * (int64_t)dtype_bytes(b->dtype, 1);
}

static inline double buffer_get(const Buffer *b, int64_t i) {
    return scalar_to_f64(scalar_load(b->dtype, buffer_at(b, b->first, i), 0));
}

static inline void buffer_set(const Buffer *b, int64_t i, double x) {
    scalar_store(buffer_at(b, b->first, i), 0, scalar_float(b->dtype, x));
}

// Uniform in [-scale, scale), rounded to the type.
static inline void buffer_fill(Buffer *b, uint64_t seed, double scale) {
    for (int64_t i = 0; i < buffer_count(b); i++)
        buffer_set(b, i, scale * (2 * random_unit(seed, (uint64_t)i) - 1));
}

static inline void buffer_fill_nan(Buffer *b) {
    for (int64_t i = 0; i < buffer_count(b); i++)
        buffer_set(b, i, (double)NAN);
}

static inline void buffer_seal(Buffer *b) {
    memcpy(b->before, b->bytes, b->size);
}

static inline void buffer_restore(Buffer *b) {
    memcpy(b->bytes, b->before, b->size);
}

static inline bool buffer_same(const Buffer *b) {
    return memcmp(b->before, b->bytes, b->size) == 0;
}

// Nothing but elements changed.
static inline bool buffer_guarded(const Buffer *b) {
    uint8_t *want = malloc(b->size);
    memcpy(want, b->before, b->size);
    uint8_t *first = want + (b->first - b->bytes);
    for (int64_t i = 0; i < buffer_count(b); i++)
        memcpy(buffer_at(b, first, i), buffer_at(b, b->first, i), dtype_bytes(b->dtype, 1));
    bool same = memcmp(want, b->bytes, b->size) == 0;
    free(want);
    return same;
}

// --- bounds ---

#define U32 0x1p-24

static inline double unit_roundoff(DType t) {
    return t == DT_F16 ? 0x1p-11 : t == DT_BF16 ? 0x1p-8 : U32;
}

static inline double half_smallest(DType t) {
    return t == DT_F16 ? 0x1p-25 : t == DT_BF16 ? 0x1p-134 : 0x1p-150;
}

static inline double store_error(DType t, double x, double before) {
    double stored = t == DT_F32 ? 0 : unit_roundoff(t) * (fabs(x) + before) + half_smallest(t);
    return (before + stored) * (1 + 0x1p-20);
}

typedef struct Reference {
    double *want, *bound;
} Reference;

static inline Reference reference_new(int64_t n) {
    return (Reference){calloc((size_t)n + 1, sizeof(double)),
                       calloc((size_t)n + 1, sizeof(double))};
}

static inline void reference_free(Reference r) {
    free(r.want);
    free(r.bound);
}

// --- devices ---

typedef struct E2eDevice {
    const char *name;
    uint64_t seed; // sim: picks the interleaving of warps and when copies arrive
} E2eDevice;

enum { E2E_DEVICES_MAX = 8 };
static const E2eDevice e2e_devices[] = {{"eval", 0}, {"cpu", 0}, {"sim:sm_90a", 7}};
enum { E2E_DEVICES = sizeof e2e_devices / sizeof *e2e_devices };

typedef struct Loaded {
    int n;
    const E2eDevice *on;
    FuseDevice *device[E2E_DEVICES_MAX];
    FuseModule *module[E2E_DEVICES_MAX];
    FuseKernel *kernel[E2E_DEVICES_MAX];
    DType dtype;
    const char *name;
} Loaded;

static inline char *text_of(const char *path) {
    FILE *f = fopen(path, "rb");
    cr_assert(f, "%s", path);
    char *text = calloc(1, 1 << 16);
    cr_assert(fread(text, 1, (1 << 16) - 1, f) > 0, "%s", path);
    fclose(f);
    return text;
}

// One instance of one kernel of examples/<file>, compiled once for each of `n` devices.
static inline Loaded load_on(int n, const E2eDevice *on, const char *file, const char *name,
                             DType dtype) {
    Loaded l = {.n = n, .on = on, .dtype = dtype, .name = name};
    char path[256], define[32];
    snprintf(path, sizeof path, "%s/examples/%s", FUSE_SOURCE_DIR, file);
    snprintf(define, sizeof define, "T=%s", dtype_name(dtype));
    const char *const defines[] = {define, NULL};
    FuseRtBuild build = {.defines = defines, .kernel = name, .no_perf_notes = true};
    char *text = text_of(path);
    for (int d = 0; d < n; d++) {
        FuseRtDeviceOptions options = {.compiler = &e2e_compiler, .threads = 2, .seed = on[d].seed};
        cr_assert_eq(fuse_rt_device_open(on[d].name, &options, &l.device[d]), FUSE_RT_OK, "%s",
                     fuse_rt_last_error());
        FuseRtStatus status =
            fuse_rt_module_from_source(l.device[d], file, text, strlen(text), &build, &l.module[d]);
        cr_assert_eq(status, FUSE_RT_OK, "%s: %s", on[d].name, fuse_rt_last_error());
        status = fuse_rt_kernel_find(l.module[d], NULL, &l.kernel[d]);
        cr_assert_eq(status, FUSE_RT_OK, "%s: %s", on[d].name, fuse_rt_last_error());
    }
    free(text);
    return l;
}

static inline Loaded load_kernel(const char *file, const char *name, DType dtype) {
    return load_on(E2E_DEVICES, e2e_devices, file, name, dtype);
}

static inline void unload_kernel(Loaded l) {
    for (int d = 0; d < l.n; d++) {
        fuse_rt_module_close(l.module[d]);
        fuse_rt_device_close(l.device[d]);
    }
}

// One launch on one device. `inputs` and the output are as they were sealed: the output is restored
// first.
static inline void check_on(const Loaded *l, int d, const char *what, int nargs,
                            const FuseRtArg *args, int ninput, Buffer *const *inputs, Buffer *out,
                            Reference want) {
    const char *on = l->on[d].name;
    buffer_restore(out);
    FuseRtStatus status = fuse_rt_launch(l->kernel[d], NULL, nargs, args, NULL);
    cr_assert_eq(status, FUSE_RT_OK, "%s.%s, %s on %s: %s", l->name, dtype_name(l->dtype), what, on,
                 fuse_rt_last_error());
    for (int i = 0; i < ninput; i++)
        cr_assert(buffer_same(inputs[i]), "%s.%s, %s on %s: input %d has changed", l->name,
                  dtype_name(l->dtype), what, on, i);
    cr_assert(buffer_guarded(out), "%s.%s, %s on %s: bytes around the output have changed", l->name,
              dtype_name(l->dtype), what, on);
    for (int64_t i = 0; i < buffer_count(out); i++) {
        double got = buffer_get(out, i), error = fabs(got - want.want[i]);
        cr_assert(error <= want.bound[i], // false for a NaN
                  "%s.%s, %s on %s: element %lld is %.9g, not %.9g (error %.3g, bound %.3g)",
                  l->name, dtype_name(l->dtype), what, on, (long long)i, got, want.want[i], error,
                  want.bound[i]);
    }
}

static inline void check_launch(const Loaded *l, const char *what, int nargs, const FuseRtArg *args,
                                int ninput, Buffer *const *inputs, Buffer *out, Reference want) {
    for (int d = 0; d < l->n; d++)
        check_on(l, d, what, nargs, args, ninput, inputs, out, want);
}

#endif
