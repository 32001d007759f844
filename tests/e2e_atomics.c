// Atomics with results: tests/corpus/frontend/atomics.fk.
#include "tests/e2e_corpus.h"

enum { N = 517, M = 70, K = 37 };

static const Corpus atomics = {.file = "atomics.fk"};

Test(e2e_atomics, old_values_are_a_permutation) {
    FOR_DEVICES(on) {
        Array *next = array_new(DT_I32, 1, -1, -1), *y = array_new(DT_I32, N, -1, -1);
        bool seen[N] = {false};
        array_set_int(next, 0, 3);
        corpus_run(&atomics, "ticket", on, ARGS(arg_tensor(next), arg_tensor(y)));
        cr_assert_eq(array_int(next, 0), 3 + N, "%s", on);
        for (int i = 0; i < N; i++) {
            int64_t old = array_int(y, i) - 3;
            cr_assert(old >= 0 && old < N && !seen[old], "%s, %d", on, i);
            seen[old] = true;
        }
        free(next), free(y);
    }
}

Test(e2e_atomics, copies_execute_once) {
    Array *x = array_new(DT_F32, M, K, -1);
    array_fill(x, 1);
    FOR_DEVICES(on) {
        Array *s = array_new(DT_F32, M, -1, -1), *y = array_new(DT_F32, M, K, -1);
        for (int i = 0; i < M; i++)
            array_set(s, i, i);
        corpus_run(&atomics, "once", on, ARGS(arg_tensor(x), arg_tensor(s), arg_tensor(y)));
        for (int i = 0; i < M; i++)
            cr_assert_eq(array_get(s, i), i + 1, "%s, %d", on, i);
        for (int i = 0; i < M * K; i++)
            cr_assert_float_eq(array_get(y, i), array_get(x, i) + i / K, 1e-4, "%s, %d", on, i);
        free(s), free(y);
    }
    free(x);
}

Test(e2e_atomics, exchange) {
    Array *x = array_new(DT_I64, N, -1, -1);
    array_fill(x, 2);
    FOR_DEVICES(on) {
        Array *s = array_new(DT_I64, N, -1, -1), *y = array_new(DT_I64, N, -1, -1);
        for (int i = 0; i < N; i++)
            array_set_int(s, i, INT64_C(1000000007) * i);
        corpus_run(&atomics, "swap", on, ARGS(arg_tensor(x), arg_tensor(s), arg_tensor(y)));
        for (int i = 0; i < N; i++) {
            cr_assert_eq(array_int(s, i), array_int(x, i), "%s, %d", on, i);
            cr_assert_eq(array_int(y, i), INT64_C(1000000007) * i, "%s, %d", on, i);
        }
        free(s), free(y);
    }
    free(x);
}

// One of those that want a slot gets it, and the slot has its number.
Test(e2e_atomics, compare_and_swap_claims) {
    enum { SLOTS = 11 };
    Array *key = array_new(DT_I32, N, -1, -1);
    for (int i = 0; i < N; i++)
        array_set_int(key, i, i * 7 % 10); // the last slot stays free
    FOR_DEVICES(on) {
        Array *slot = array_new(DT_I32, SLOTS, -1, -1), *won = array_new(DT_I32, N, -1, -1);
        int winners[SLOTS] = {0};
        for (int i = 0; i < SLOTS; i++)
            array_set_int(slot, i, -1);
        corpus_run(&atomics, "claim", on, ARGS(arg_tensor(key), arg_tensor(slot), arg_tensor(won)));
        for (int i = 0; i < N; i++)
            if (array_int(won, i)) {
                winners[array_int(key, i)]++;
                cr_assert_eq(array_int(slot, array_int(key, i)), i, "%s, %d", on, i);
            }
        for (int i = 0; i < SLOTS; i++)
            cr_assert_eq(winners[i], i < 10, "%s, slot %d", on, i);
        cr_assert_eq(array_int(slot, 10), -1, "%s", on);
        free(slot), free(won);
    }
    free(key);
}

// Bits are compared: -0 is not 0, a NaN is itself.
Test(e2e_atomics, compare_and_swap_of_floats) {
    Array *a = array_new(DT_F32, N, -1, -1), *b = array_new(DT_F32, N, -1, -1);
    array_fill(a, 3);
    array_fill(b, 4);
    array_set(a, 0, 0.0);
    array_set(a, 1, (double)NAN);
    FOR_DEVICES(on) {
        Array *s = array_new(DT_F32, N, -1, -1), *y = array_new(DT_F32, N, -1, -1);
        for (int i = 0; i < N; i++)
            array_set(s, i, i % 2 ? array_get(a, i) : i);
        array_set(s, 0, -0.0);
        corpus_run(&atomics, "replace", on,
                   ARGS(arg_tensor(a), arg_tensor(b), arg_tensor(s), arg_tensor(y)));
        for (int i = 0; i < N; i++) {
            double before = i == 0 ? -0.0 : i % 2 ? array_get(a, i) : i;
            double after = i % 2 ? array_get(b, i) : before;
            cr_assert(isnan(before) ? isnan(array_get(y, i)) : array_get(y, i) == before, "%s, %d",
                      on, i);
            cr_assert(array_get(s, i) == after, "%s, %d", on, i);
        }
        cr_assert(signbit(array_get(s, 0)) && signbit(array_get(y, 0)), "%s", on);
        free(s), free(y);
    }
    free(a), free(b);
}

Test(e2e_atomics, outside_is_nothing) {
    enum { INSIDE = 57 };
    Array *x = array_new(DT_I32, N, -1, -1);
    array_fill(x, 5);
    FOR_DEVICES(on) {
        Array *s = array_new(DT_I32, INSIDE, -1, -1), *y = array_new(DT_I32, N, -1, -1);
        for (int i = 0; i < INSIDE; i++)
            array_set_int(s, i, i % 3);
        corpus_run(&atomics, "beyond", on, ARGS(arg_tensor(x), arg_tensor(s), arg_tensor(y)));
        for (int i = 0; i < N; i++)
            cr_assert_eq(array_int(y, i), i < INSIDE ? i % 3 + 1 : 1, "%s, %d", on, i);
        for (int i = 0; i < INSIDE; i++)
            cr_assert_eq(array_int(s, i), i % 3 ? i % 3 : array_int(x, i), "%s, %d", on, i);
        free(s), free(y);
    }
    free(x);
}

// exp of padding would be 1: what is added is what lies inside. Bound: K rounded additions to f16.
Test(e2e_atomics, sums_count_no_padding) {
    Array *x = array_new(DT_F16, M, K, -1);
    array_fill(x, 6);
    FOR_DEVICES(on) {
        Array *s = array_new(DT_F16, M, -1, -1), *top = array_new(DT_F32, 1, -1, -1);
        double most = -INFINITY;
        array_set(top, 0, -100);
        corpus_run(&atomics, "sums", on, ARGS(arg_tensor(x), arg_tensor(s), arg_tensor(top)));
        for (int i = 0; i < M; i++) {
            double want = 0;
            for (int j = 0; j < K; j++) {
                want += exp(array_get(x, i * K + j));
                most = fmax(most, array_get(x, i * K + j) - 10);
            }
            cr_assert_float_eq(array_get(s, i), want, K * 0x1p-11 * want, "%s, %d: %g, not %g", on,
                               i, array_get(s, i), want);
        }
        cr_assert_float_eq(array_get(top, 0), most, 1e-5, "%s", on);
        free(s), free(top);
    }
    free(x);
}

Test(e2e_atomics, ptx) {
    char *ptx = corpus_ptx(&atomics, NULL);
    cr_expect(strstr(ptx, "atom.relaxed.gpu.global.cas.b32"));
    free(ptx);
}
