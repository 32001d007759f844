// Running textual IR on the evaluator: what the eval_*.c tests share.
#ifndef FUSE_TESTS_EVAL_SUPPORT_H
#define FUSE_TESTS_EVAL_SUPPORT_H

#include <criterion/criterion.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ir/eval.h"
#include "ir/random.h"

// Data of one tensor argument.
typedef struct Data {
    EvalTensor t;
    int64_t count;
} Data;

static inline Data data_new(DType dtype, int rank, ...) {
    int64_t dims[RANK_MAX], count = 1;
    va_list args;
    va_start(args, rank);
    for (int d = 0; d < rank; d++)
        count *= dims[d] = va_arg(args, int);
    va_end(args);
    void *data = calloc(1, (size_t)dtype_bytes(dtype, (uint64_t)count) + 1);
    return (Data){eval_tensor(data, dtype, rank, dims), count};
}

static inline Data data_random(uint64_t seed, DType dtype, int rank, int a, int b, int c, int d) {
    Data x = data_new(dtype, rank, a, b, c, d);
    random_fill(x.t.data, dtype, x.count, (RandomSpec){0}, seed);
    return x;
}

static inline Data data_floats(DType dtype, int n, const double *x) {
    Data out = data_new(dtype, 1, n);
    for (int i = 0; i < n; i++)
        scalar_store(out.t.data, i, scalar_float(dtype, x[i]));
    return out;
}

static inline Data data_ints(DType dtype, int n, const int64_t *x) {
    Data out = data_new(dtype, 1, n);
    for (int i = 0; i < n; i++)
        scalar_store(out.t.data, i, scalar_int(dtype, x[i]));
    return out;
}

static inline double data_at(const Data *x, int64_t i) {
    return scalar_to_f64(scalar_load(x->t.dtype, x->t.data, i));
}

static inline int64_t data_int(const Data *x, int64_t i) {
    return scalar_load(x->t.dtype, x->t.data, i).u.i;
}

static inline void data_fill(Data *x, double v) {
    for (int64_t i = 0; i < x->count; i++)
        scalar_store(x->t.data, i, scalar_float(x->t.dtype, v));
}

static inline void data_free(Data *x) {
    free(x->t.data);
}

static inline EvalArg arg_of(const Data *x) {
    return (EvalArg){.tensor = x ? &x->t : NULL};
}

static inline EvalArg arg_int(int64_t i) {
    return (EvalArg){.scalar = scalar_int(DT_I64, i)};
}

static inline EvalArg arg_float(double f) {
    return (EvalArg){.scalar = scalar_float(DT_F64, f)};
}

// Runs the text's first kernel. Returns "" on success, else the message; both in a static buffer.
static inline const char *run_with(const char *text, const EvalOptions *opts, int nargs,
                                   const EvalArg *args) {
    static char message[1024];
    Arena *arena = arena_new("test");
    const char *error = NULL;
    Module *m = ir_parse(arena, interner_new(arena), text, strlen(text), &error);
    cr_assert(m, "%s\nin\n%s", error, text);
    bool ok = eval_kernel(arena, m, m->kernel[0], nargs, args, opts, &error);
    cr_assert(ok == !error);
    snprintf(message, sizeof message, "%s", error ? error : "");
    arena_free(arena);
    return message;
}

static inline const char *run(const char *text, int nargs, const EvalArg *args) {
    return run_with(text, NULL, nargs, args);
}

#define ARGS(...)                                                                                  \
    (int)(sizeof((EvalArg[]){__VA_ARGS__}) / sizeof(EvalArg)), (EvalArg[]) {                       \
        __VA_ARGS__                                                                                \
    }
#define assert_runs(...)                                                                           \
    do {                                                                                           \
        const char *said_ = run(__VA_ARGS__);                                                      \
        cr_assert(!*said_, "%s", said_);                                                           \
    } while (0)
#define assert_fails(part, ...)                                                                    \
    do {                                                                                           \
        const char *said_ = run(__VA_ARGS__);                                                      \
        cr_assert(strstr(said_, part), "said `%s`, not `%s`", said_, part);                        \
    } while (0)

static inline void assert_near(const Data *x, const Data *y, double tolerance) {
    cr_assert(x->count == y->count);
    for (int64_t i = 0; i < x->count; i++) {
        double a = data_at(x, i), b = data_at(y, i);
        cr_assert((isnan(a) && isnan(b)) || a == b || fabs(a - b) <= tolerance * (1 + fabs(b)),
                  "element %lld: %.9g, not %.9g", (long long)i, a, b);
    }
}

#endif
