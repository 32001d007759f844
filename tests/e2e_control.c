// Loops that are left early: tests/corpus/frontend/control.fk.
#include "tests/e2e_corpus.h"

enum { M = 13, N = 40 };

static const Corpus control = {.file = "control.fk"};

typedef struct Triangle {
    int sum, i, j;
} Triangle;

static Triangle triangle(const Array *x, int limit) {
    Triangle t = {0, -1, -1};
    for (int i = 0; i < M; i++)
        for (int j = 0; j <= i; j++) {
            int v = (int)array_int(x, i * M + j);
            if (v % 2 == 1)
                continue;
            t = (Triangle){t.sum + v, i, j};
            if (t.sum > limit)
                return t;
        }
    return t;
}

Test(e2e_control, break_leaves_dependent_loops) {
    Array *x = array_new(DT_I32, M, M, -1);
    for (int i = 0; i < M * M; i++)
        array_set_int(x, i, i * 5 % 17);
    static const int limits[] = {-1, 0, 10, 100, 10000};
    FOR_DEVICES(on) {
        for (int l = 0; l < 5; l++) {
            Array *y = array_new(DT_I32, 3, -1, -1);
            Triangle want = triangle(x, limits[l]);
            corpus_run(&control, "triangle", on,
                       ARGS(arg_tensor(x), arg_int(limits[l]), arg_tensor(y)));
            cr_assert_eq(array_int(y, 0), want.sum, "%s, limit %d", on, limits[l]);
            cr_assert_eq(array_int(y, 1), want.i, "%s, limit %d", on, limits[l]);
            cr_assert_eq(array_int(y, 2), want.j, "%s, limit %d", on, limits[l]);
            free(y);
        }
    }
    free(x);
}

Test(e2e_control, break_leaves_three_groups) {
    FOR_DEVICES(on) {
        // 20 triples a <= b <= c below 4, three iterations each
        static const int limits[] = {1, 2, 4, 31, 60, 61};
        for (int l = 0; l < 6; l++) {
            Array *y = array_new(DT_I32, 1, -1, -1);
            corpus_run(&control, "deep", on, ARGS(arg_int(limits[l]), arg_tensor(y)));
            cr_assert_eq(array_int(y, 0), limits[l] < 60 ? limits[l] : 60, "%s: %d", on, limits[l]);
            free(y);
        }
    }
}

Test(e2e_control, break_of_an_inner_loop) {
    Array *x = array_new(DT_I32, M, N, -1);
    for (int i = 0; i < M * N; i++)
        array_set_int(x, i, i * 31 % 57);
    for (int j = 0; j < N; j++)
        array_set_int(x, 5 * N + j, 0);
    FOR_DEVICES(on) {
        Array *y = array_new(DT_I32, M, -1, -1);
        for (int i = 0; i < M; i++)
            array_set_int(y, i, -5);
        corpus_run(&control, "inner", on, ARGS(arg_tensor(x), arg_tensor(y)));
        for (int i = 0; i < M; i++) {
            int first = -5;
            for (int j = N - 1; j >= 0; j--)
                if (array_int(x, i * N + j) == 7)
                    first = j;
            cr_assert_eq(array_int(y, i), first, "%s, %d", on, i);
        }
        free(y);
    }
    free(x);
}

Test(e2e_control, continue_in_while) {
    Array *x = array_new(DT_I32, N, -1, -1);
    for (int i = 0; i < N; i++)
        array_set_int(x, i, i + 1);
    array_set_int(x, 7, 0); // never 1
    FOR_DEVICES(on) {
        Array *y = array_new(DT_I32, N, -1, -1);
        corpus_run(&control, "collatz", on, ARGS(arg_tensor(x), arg_tensor(y)));
        for (int i = 0; i < N; i++) {
            int steps = 0;
            for (int64_t v = array_int(x, i); v != 1 && steps <= 1000; steps++)
                v = v % 2 ? 3 * v + 1 : v / 2;
            cr_assert_eq(array_int(y, i), steps, "%s, %d", on, i);
        }
        free(y);
    }
    free(x);
}

// Chunks of 12, the last of 4; all numbers are negative, so that padding would show.
Test(e2e_control, chunks_of_any_size) {
    Array *x = array_new(DT_F32, M, N, -1);
    for (int i = 0; i < M * N; i++)
        array_set(x, i, -1 - i * 37 % 64);
    FOR_DEVICES(on) {
        Array *y = array_new(DT_F32, M, -1, -1);
        corpus_run(&control, "chunks", on, ARGS(arg_tensor(x), arg_tensor(y)));
        for (int i = 0; i < M; i++) {
            double s = 0;
            for (int lo = 0; lo < N; lo += 12) {
                double most = -INFINITY;
                for (int j = lo; j < lo + 12 && j < N; j++)
                    most = fmax(most, array_get(x, i * N + j));
                s = s * 0.5 + most;
            }
            cr_assert_float_eq(array_get(y, i), s, 1e-4, "%s, %d", on, i);
        }
        free(y);
    }
    free(x);
}

Test(e2e_control, ptx) {
    free(corpus_ptx(&control, NULL));
}
