// Built-in functions that work on bits and random words: tests/corpus/frontend/builtins.fk.
#include "tests/e2e_corpus.h"

enum { N = 517 };

static const Corpus builtins = {.file = "builtins.fk"};

static uint32_t bits_of(double x) {
    float f = (float)x;
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

static float float_of(uint32_t u) {
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

Test(e2e_builtins, bitcast) {
    Array *x = array_new(DT_F32, N, -1, -1), *s = array_new(DT_F32, N, -1, -1);
    array_fill(x, 1);
    array_fill(s, 2);
    array_set(x, 0, -0.0);
    array_set(x, 1, INFINITY);
    FOR_DEVICES(on) {
        Array *u = array_new(DT_U32, N, -1, -1), *y = array_new(DT_F32, N, -1, -1);
        corpus_run(&builtins, "bits_of", on, ARGS(arg_tensor(x), arg_tensor(u)));
        corpus_run(&builtins, "copysigns", on, ARGS(arg_tensor(x), arg_tensor(s), arg_tensor(y)));
        for (int i = 0; i < N; i++) {
            uint32_t a = bits_of(array_get(x, i)), b = bits_of(array_get(s, i));
            cr_assert_eq(array_int(u, i), a, "%s, %d", on, i);
            float want = float_of((a & 0x7fffffff) | (b & 0x80000000));
            cr_assert(bits_of(array_get(y, i)) == bits_of((double)want), "%s, %d", on, i);
        }
        free(u), free(y);
    }
    free(x), free(s);
}

Test(e2e_builtins, bitcast_of_halves) {
    Array *x = array_new(DT_I16, N, -1, -1);
    for (int i = 0; i < N; i++)
        array_set_int(x, i, (int16_t)(i * 127 + 0x7b00));
    FOR_DEVICES(on) {
        Array *y = array_new(DT_F16, N, -1, -1), *z = array_new(DT_BF16, N, -1, -1);
        Array *back = array_new(DT_I16, N, -1, -1);
        corpus_run(&builtins, "halves", on,
                   ARGS(arg_tensor(x), arg_tensor(y), arg_tensor(z), arg_tensor(back)));
        for (int i = 0; i < N; i++) {
            uint16_t code = (uint16_t)array_int(x, i);
            double f = (double)f32_from_f16(code), g = (double)float_of((uint32_t)code << 16);
            cr_assert(isnan(f) ? isnan(array_get(y, i)) : f == array_get(y, i), "%s, %d", on, i);
            cr_assert(isnan(g) ? isnan(array_get(z, i)) : g == array_get(z, i), "%s, %d", on, i);
            cr_assert_eq(array_int(back, i), isnan(f) ? 0 : (int16_t)code, "%s, %d", on, i);
        }
        free(y), free(z), free(back);
    }
    free(x);
}

// Philox 4x32-10 of the published vectors: key 0, counter 0.
Test(e2e_builtins, random_words) {
    static const uint32_t first[4] = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
    FOR_DEVICES(on) {
        Array *y = array_new(DT_U32, N, -1, -1);
        corpus_run(&builtins, "words", on, ARGS(arg_int(0), arg_tensor(y)));
        for (int i = 0; i < 4; i++)
            cr_assert_eq(array_int(y, i), first[i], "%s, %d", on, i);
        corpus_run(&builtins, "words", on, ARGS(arg_int(INT64_C(0x123456789abc)), arg_tensor(y)));
        for (int i = 0; i < N; i++)
            cr_assert_eq(array_int(y, i), random_word(UINT64_C(0x123456789abc), (uint64_t)i),
                         "%s, %d", on, i);
        free(y);
    }
}

// f32 with errors of log, sqrt, cos: 2 ulps each; -2 log(1 - u) is at most 34.
Test(e2e_builtins, randn) {
    enum { MANY = 4096 };
    FOR_DEVICES(on) {
        Array *y = array_new(DT_F32, MANY, -1, -1);
        double sum = 0, squares = 0;
        corpus_run(&builtins, "normals", on, ARGS(arg_int(9), arg_tensor(y)));
        for (int i = 0; i < MANY; i++) {
            double u = (random_word(9, 2 * (uint64_t)i) >> 8) * 0x1p-24;
            double v = (random_word(9, 2 * (uint64_t)i + 1) >> 8) * 0x1p-24;
            double r = sqrt(-2 * log(1 - u)), want = r * cos(2 * 3.14159265358979323846 * v);
            double got = array_get(y, i);
            cr_assert_float_eq(got, want, r * 0x1p-20, "%s, %d: %g, not %g", on, i, got, want);
            sum += got;
            squares += got * got;
        }
        // five standard deviations of the mean and of the variance
        cr_expect(fabs(sum / MANY) < 5 / 64.0, "%s: mean %g", on, sum / MANY);
        cr_expect(fabs(squares / MANY - 1) < 5 * sqrt(2.0) / 64, "%s: variance", on);
        free(y);
    }
}

Test(e2e_builtins, randint) {
    FOR_DEVICES(on) {
        Array *y = array_new(DT_I64, N, -1, -1);
        corpus_run(&builtins, "dice", on, ARGS(arg_int(4), arg_int(-3), arg_int(4), arg_tensor(y)));
        int seen[7] = {0};
        for (int i = 0; i < N; i++) {
            int64_t want = -3 + (int64_t)(((uint64_t)random_word(4, (uint64_t)i) * 7) >> 32);
            cr_assert_eq(array_int(y, i), want, "%s, %d", on, i);
            seen[array_int(y, i) + 3]++;
        }
        for (int i = 0; i < 7; i++)
            cr_expect(seen[i] > N / 14, "%s: %d is rare", on, i - 3);
        // the widest range: the words themselves
        corpus_run(&builtins, "dice", on,
                   ARGS(arg_int(4), arg_int(INT32_MIN), arg_int(INT32_MAX), arg_tensor(y)));
        for (int i = 0; i < N; i++) {
            uint64_t n = UINT32_MAX;
            cr_assert_eq(array_int(y, i),
                         INT32_MIN + (int64_t)((random_word(4, (uint64_t)i) * n) >> 32));
        }
        free(y);
    }
}

// Angles of every size, whose function of the module both launches need.
Test(e2e_builtins, sines) {
    Array *x = array_new(DT_F32, N, -1, -1), *z = array_new(DT_F64, N, -1, -1);
    for (int i = 0; i < N; i++) {
        double unit = random_word(3, (uint64_t)i) * 0x1p-32 + 1;
        array_set(x, i, ldexp(i % 3 ? unit : -unit, i % 148 - 20));
        array_set(z, i, ldexp(i % 5 ? unit : -unit, 2 * i - 10));
    }
    FOR_DEVICES(on) {
        Array *y = array_new(DT_F32, N, -1, -1), *w = array_new(DT_F64, N, -1, -1);
        corpus_run(&builtins, "sines", on,
                   ARGS(arg_tensor(x), arg_tensor(z), arg_tensor(y), arg_tensor(w)));
        for (int i = 0; i < N; i++) {
            double a = array_get(x, i), b = array_get(z, i);
            double want = i % 2 ? cos(a) : sin(a);
            cr_assert_float_eq(array_get(y, i), want, 0x1p-22 * fabs(want), "%s: of %g: %g, not %g",
                               on, a, array_get(y, i), want);
            want = i % 2 ? cos(b) * tanh(b) : sin(b) + sin(a);
            cr_assert_float_eq(array_get(w, i), want, 0x1p-22, "%s: of %g: %g, not %g", on, b,
                               array_get(w, i), want);
        }
        free(y), free(w);
    }
    free(x), free(z);
}

Test(e2e_builtins, ptx) {
    free(corpus_ptx(&builtins, NULL));
}

static const Corpus assembler = {.file = "assembler.fk"};

Test(e2e_builtins, assembler_for_gpus) {
    char *ptx = corpus_ptx(&assembler, NULL);
    cr_expect(strstr(ptx, "cvt.rni.s32.f32 %r"));
    free(ptx);
}

Test(e2e_builtins, assembler_nowhere_else) {
    char *source = corpus_text(assembler.file);
    FuseOptions options = {.target = "cpu", .emit = FUSE_EMIT_LLVM, .no_perf_notes = true};
    FuseResult *r = fuse_compile(&options, assembler.file, source, strlen(source));
    cr_expect(!fuse_result_ok(r));
    cr_expect(strstr(fuse_result_messages(r), "only a GPU runs"), "%s", fuse_result_messages(r));
    fuse_result_free(r);
    free(source);
    Array *x = array_new(DT_F32, N, -1, -1), *h = array_new(DT_F16, N, -1, -1);
    Array *w = array_new(DT_I64, N, -1, -1), *y = array_new(DT_I32, N, -1, -1);
    Array *z = array_new(DT_F16, N, -1, -1), *v = array_new(DT_I64, N, -1, -1);
    Array *u = array_new(DT_U32, N, -1, -1);
    FuseRtStatus status =
        corpus_launch(&assembler, "ptx", "eval",
                      ARGS(arg_tensor(x), arg_tensor(h), arg_tensor(w), arg_tensor(y),
                           arg_tensor(z), arg_tensor(v), arg_tensor(u)));
    cr_expect(status != FUSE_RT_OK && strstr(fuse_rt_last_error(), "only a GPU runs"), "%s",
              fuse_rt_last_error());
    free(x), free(h), free(w), free(y), free(z), free(v), free(u);
}
