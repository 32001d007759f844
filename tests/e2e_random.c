// Random numbers of tests/corpus/frontend/random.fk on every device against a Philox 4x32-10 of
// this file's own, which gives the known answers of Random123 (kat_vectors), and against their
// distributions.
#include "tests/e2e_corpus.h"

enum { N = 4096 };

static const Corpus corpus = {.file = "random.fk"};

// J. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (2011).
static void philox(uint32_t c[4], uint32_t k0, uint32_t k1) {
    for (int round = 0; round < 10; round++) {
        uint64_t a = UINT64_C(0xD2511F53) * c[0], b = UINT64_C(0xCD9E8D57) * c[2];
        uint32_t c1 = c[1], c3 = c[3];
        c[0] = (uint32_t)(b >> 32) ^ c1 ^ k0;
        c[1] = (uint32_t)b;
        c[2] = (uint32_t)(a >> 32) ^ c3 ^ k1;
        c[3] = (uint32_t)a;
        k0 += 0x9E3779B9;
        k1 += 0xBB67AE85;
    }
}

// SPEC.md, section 8: word i % 4 at the counter i / 4.
static uint32_t word(uint64_t seed, uint64_t i) {
    uint32_t c[4] = {(uint32_t)(i / 4), (uint32_t)(i / 4 >> 32), 0, 0};
    philox(c, (uint32_t)seed, (uint32_t)(seed >> 32));
    return c[i % 4];
}

Test(e2e_random, known_answers) {
    static const uint32_t known[3][10] = {
        {0, 0, 0, 0, 0, 0, 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8},
        {~0u, ~0u, ~0u, ~0u, ~0u, ~0u, 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd},
        {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xa4093822, 0x299f31d0, 0xd16cfe09,
         0x94fdcceb, 0x5001e420, 0x24126ea1},
    };
    for (int i = 0; i < 3; i++) {
        uint32_t c[4];
        memcpy(c, known[i], sizeof c);
        philox(c, known[i][4], known[i][5]);
        cr_expect_arr_eq(c, known[i] + 6, sizeof c, "vector %d", i);
    }
}

// Seeds and indices with every bit in use, negative ones too.
Test(e2e_random, words) {
    Array *seed = array_new(DT_I64, N, -1, -1), *at = array_new(DT_I64, N, -1, -1);
    for (int i = 0; i < N; i++) {
        uint64_t a = word(1, (uint64_t)i), b = word(2, (uint64_t)i), c = word(3, (uint64_t)i);
        array_set_int(seed, i, (int64_t)(a << 32 | b) >> i % 64);
        array_set_int(at, i, (int64_t)(c << 32 | (a ^ b)) >> i / 64 % 64);
    }
    FOR_DEVICES(on) {
        Array *y = array_new(DT_U32, N, -1, -1), *u = array_new(DT_F32, N, -1, -1);
        corpus_run(&corpus, "words_at", on,
                   ARGS(arg_tensor(seed), arg_tensor(at), arg_tensor(y), arg_tensor(u)));
        for (int i = 0; i < N; i++) {
            uint32_t want = word((uint64_t)array_int(seed, i), (uint64_t)array_int(at, i));
            cr_assert_eq(array_int(y, i), want, "%s, %d", on, i);
            cr_assert(array_get(u, i) == (want >> 8) * 0x1p-24, "%s, %d", on, i);
        }
        free(y), free(u);
    }
    free(seed), free(at);
}

// Moments and the shares of eight equally probable intervals, within five standard deviations.
Test(e2e_random, normals) {
    static const double octile[] = {
        -1.1503493803760079, -0.6744897501960817, -0.3186393639643752, 0,
        0.3186393639643752,  0.6744897501960817,  1.1503493803760079};
    Array *at = array_new(DT_I64, N, -1, -1);
    for (int i = 0; i < N; i++)
        array_set_int(at, i, INT64_C(1) << 40 | i);
    FOR_DEVICES(on) {
        Array *y = array_new(DT_F32, N, -1, -1);
        corpus_run(&corpus, "normals_at", on, ARGS(arg_int(77), arg_tensor(at), arg_tensor(y)));
        double moment[5] = {0}, neighbours = 0, share[8] = {0};
        for (int i = 0; i < N; i++) {
            double x = array_get(y, i), power = 1;
            for (int k = 0; k < 5; k++, power *= x)
                moment[k] += power / N;
            if (i)
                neighbours += x * array_get(y, i - 1) / N;
            int bin = 0;
            while (bin < 7 && x > octile[bin])
                bin++;
            share[bin]++;
        }
        // The k-th power has the variance E x^2k - (E x^k)^2: 1, 2, 15, 105 - 9.
        double five = 5 / sqrt(N);
        cr_expect(fabs(moment[1]) < five, "%s: mean %g", on, moment[1]);
        cr_expect(fabs(moment[2] - 1) < five * sqrt(2), "%s: variance %g", on, moment[2]);
        cr_expect(fabs(moment[3]) < five * sqrt(15), "%s: third moment %g", on, moment[3]);
        cr_expect(fabs(moment[4] - 3) < five * sqrt(96), "%s: fourth moment %g", on, moment[4]);
        cr_expect(fabs(neighbours) < five, "%s: neighbours %g", on, neighbours);
        for (int b = 0; b < 8; b++)
            cr_expect(fabs(share[b] - N / 8.0) < 5 * sqrt(N * 7 / 64.0), "%s: %g in interval %d",
                      on, share[b], b);
        free(y);
    }
    free(at);
}

typedef struct Range {
    int64_t lo, hi;
} Range;

// lo + (word * (hi - lo) >> 32), by parts of 16 bits of the word. Bounds at both ends of i64 and
// the widest range, 2^32.
Test(e2e_random, integers) {
    static const Range ranges[] = {{0, 1},
                                   {-3, 4},
                                   {0, INT64_C(1) << 32},
                                   {INT64_MIN, INT64_MIN + 1000},
                                   {INT64_MAX - (INT64_C(1) << 32), INT64_MAX},
                                   {-(INT64_C(1) << 31), (INT64_C(1) << 31) - 1}};
    Array *at = array_new(DT_I64, N, -1, -1);
    for (int i = 0; i < N; i++)
        array_set_int(at, i, (int64_t)((uint64_t)i * UINT64_C(0x9e3779b97f4a7c15)) >> i % 32);
    FOR_DEVICES(on) {
        for (size_t r = 0; r < sizeof ranges / sizeof *ranges; r++) {
            Array *y = array_new(DT_I64, N, -1, -1);
            int64_t lo = ranges[r].lo, hi = ranges[r].hi;
            corpus_run(&corpus, "dice_at", on,
                       ARGS(arg_int(5), arg_tensor(at), arg_int(lo), arg_int(hi), arg_tensor(y)));
            for (int i = 0; i < N; i++) {
                uint64_t w = word(5, (uint64_t)array_int(at, i)), n = (uint64_t)hi - (uint64_t)lo;
                uint64_t upper = (w >> 16) * n, lower = (w & 0xffff) * n;
                uint64_t want = (upper + (lower >> 16)) >> 16; // n is at most 2^32: nothing is lost
                int64_t got = array_int(y, i);
                cr_assert(got >= lo && got < hi, "%s: %lld", on, (long long)got);
                cr_assert_eq((uint64_t)got - (uint64_t)lo, want, "%s, range %zu, %d", on, r, i);
            }
            free(y);
        }
    }
    free(at);
}

// No value of a small range is more probable than another: chi squared with six degrees of freedom
// is above 35 once in 200,000 times.
Test(e2e_random, dice_are_fair) {
    Array *at = array_new(DT_I64, N, -1, -1), *y = array_new(DT_I64, N, -1, -1);
    for (int i = 0; i < N; i++)
        array_set_int(at, i, i);
    corpus_run(&corpus, "dice_at", "cpu",
               ARGS(arg_int(6), arg_tensor(at), arg_int(0), arg_int(7), arg_tensor(y)));
    double count[7] = {0}, chi = 0;
    for (int i = 0; i < N; i++)
        count[array_int(y, i)]++;
    for (int k = 0; k < 7; k++)
        chi += (count[k] - N / 7.0) * (count[k] - N / 7.0) / (N / 7.0);
    cr_expect(chi < 35, "%g", chi);
    free(at), free(y);
}

Test(e2e_random, ptx) {
    free(corpus_ptx(&corpus, NULL));
}
