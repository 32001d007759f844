// random.h: known answers, ranges, and that data depends on nothing but seed and index.
#include "ir/random.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

// Random123's kat_vectors: philox 4x32 10, counter 0, key 0.
Test(eval_random, known_answers) {
    static const uint32_t known[] = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
    for (uint64_t i = 0; i < 4; i++)
        cr_assert(random_word(0, i) == known[i]);
    cr_assert(random_word(0, 4) != known[0] && random_word(1, 0) != known[0]);
    cr_assert(random_word(UINT64_C(1) << 32, 0) != random_word(1, 0));
}

Test(eval_random, distributions) {
    double sum = 0, square = 0, normal = 0, normal_square = 0;
    enum { N = 20000 };
    for (uint64_t i = 0; i < N; i++) {
        double u = random_unit(7, i), g = random_normal(7, i);
        cr_assert(u >= 0 && u < 1 && isfinite(g) && random_below(7, i, 3) < 3);
        sum += u, square += u * u, normal += g, normal_square += g * g;
    }
    cr_assert(fabs(sum / N - 0.5) < 0.01 && fabs(square / N - 1.0 / 3) < 0.01);
    cr_assert(fabs(normal / N) < 0.03 && fabs(normal_square / N - 1) < 0.05);
    cr_assert(random_below(7, 0, 0) == 0 && random_below(7, 0, 1) == 0);
}

Test(eval_random, scalars) {
    bool low = false, high = false;
    for (uint64_t i = 0; i < 1000; i++) {
        int64_t x = random_scalar(DT_I32, (RandomSpec){RANDOM_UNIFORM, -2, 2}, 1, i).u.i;
        cr_assert(x >= -2 && x <= 2);
        low = low || x == -2, high = high || x == 2;
        double f = random_scalar(DT_F32, (RandomSpec){RANDOM_UNIFORM, 3, 4}, 1, i).u.f;
        cr_assert(f >= 3 && f <= 4 && f == (float)f);
        int64_t n = random_scalar(DT_I4, (RandomSpec){0}, 1, i).u.i;
        cr_assert(n >= -8 && n <= 7);
        n = random_scalar(DT_U8, (RandomSpec){0}, 1, i).u.i;
        cr_assert(n >= 0 && n <= 8);
        n = random_scalar(DT_BOOL, (RandomSpec){0}, 1, i).u.i;
        cr_assert(n == 0 || n == 1);
        cr_assert(random_scalar(DT_F16, (RandomSpec){RANDOM_IOTA, 5, 0}, 1, i).u.f ==
                  5 + (double)i);
        cr_assert(random_scalar(DT_F16, (RandomSpec){RANDOM_ZERO, 0, 0}, 1, i).u.f == 0);
    }
    cr_assert(low && high);
}

Test(eval_random, fill) {
    uint8_t a[64] = {0}, b[64] = {0}, c[64] = {0};
    random_fill(a, DT_BF16, 20, (RandomSpec){0}, 3);
    random_fill(b, DT_BF16, 10, (RandomSpec){0}, 3);
    random_fill(c, DT_BF16, 20, (RandomSpec){0}, 4);
    cr_assert(memcmp(a, b, 20) == 0 && memcmp(a + 20, b + 20, 20) != 0 && memcmp(a, c, 40) != 0);
    cr_assert(a[40] == 0 && a[38] | a[39]);
    random_fill(a, DT_I4, 3, (RandomSpec){RANDOM_IOTA, 1, 0}, 0);
    cr_assert(a[0] == 0x21 && (a[1] & 15) == 3);
}
