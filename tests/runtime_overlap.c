// Overlap of strided tensors against counting every bit.
#include "runtime/overlap.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

enum { SPACE = 4096, ORIGIN = 2048 }; // bytes around the addresses

static uint64_t state = 88172645463325252u;

static int below(int n) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (int)(state % (uint64_t)n);
}

typedef struct Array {
    Strided s;
    int64_t shape[4], stride[4];
} Array;

static void random_array(Array *a) {
    static const uint32_t bits[] = {8, 16, 32, 4};
    a->s = (Strided){
        .bits = bits[below(4)], .rank = 1 + below(3), .shape = a->shape, .stride = a->stride};
    a->s.address = (uint64_t)(ORIGIN + below(40));
    for (int d = 0; d < a->s.rank; d++) {
        a->shape[d] = 1 + below(5);
        a->stride[d] = below(25) - 8;
    }
}

// Marks the bits of every element; false where a bit was marked before.
static bool mark(const Array *a, uint8_t *map, bool stop_at_marked) {
    int64_t index[4] = {0}, total = 1;
    for (int d = 0; d < a->s.rank; d++)
        total *= a->shape[d];
    for (int64_t n = 0; n < total; n++) {
        int64_t rest = n, at = (int64_t)a->s.address * 8;
        for (int d = a->s.rank - 1; d >= 0; d--) {
            index[d] = rest % a->shape[d];
            rest /= a->shape[d];
            at += index[d] * a->stride[d] * a->s.bits;
        }
        for (uint32_t b = 0; b < a->s.bits; b++) {
            cr_assert(at + b >= 0 && at + b < SPACE * 8);
            if (stop_at_marked && map[at + b])
                return false;
            map[at + b] = 1;
        }
    }
    return true;
}

Test(runtime_overlap, pairs) {
    static uint8_t map[SPACE * 8];
    int yes = 0, no = 0;
    for (int round = 0; round < 20000; round++) {
        Array a, b;
        random_array(&a);
        random_array(&b);
        memset(map, 0, sizeof map);
        mark(&a, map, false);
        Overlap want = mark(&b, map, true) ? OVERLAP_NO : OVERLAP_YES;
        // mark(b) also stops where b meets itself: count that out.
        if (want == OVERLAP_YES) {
            memset(map, 0, sizeof map);
            if (!mark(&b, map, true))
                continue;
        }
        Overlap got = overlap_between(&a.s, &b.s);
        cr_assert_eq(got, want, "round %d: %d, not %d", round, (int)got, (int)want);
        yes += want == OVERLAP_YES;
        no += want == OVERLAP_NO;
    }
    cr_expect_gt(yes, 1000);
    cr_expect_gt(no, 1000);
}

Test(runtime_overlap, within) {
    static uint8_t map[SPACE * 8];
    int yes = 0, no = 0;
    for (int round = 0; round < 20000; round++) {
        Array a;
        random_array(&a);
        memset(map, 0, sizeof map);
        Overlap want = mark(&a, map, true) ? OVERLAP_NO : OVERLAP_YES;
        Overlap got = overlap_within(&a.s);
        cr_assert_eq(got, want, "round %d: %d, not %d", round, (int)got, (int)want);
        yes += want == OVERLAP_YES;
        no += want == OVERLAP_NO;
    }
    cr_expect_gt(yes, 1000);
    cr_expect_gt(no, 1000);
}

// Layouts of real programs: decided, and at once.
Test(runtime_overlap, large) {
    int64_t shape[3] = {1 << 20, 4096, 128}, stride[3] = {4096 * 384, 384, 1};
    Strided q = {0x7f0000000000, 16, 3, shape, stride}, k = q, v = q;
    k.address += 128 * 2;
    v.address += 256 * 2;
    cr_expect_eq(overlap_between(&q, &k), OVERLAP_NO);
    cr_expect_eq(overlap_between(&q, &v), OVERLAP_NO);
    v.address -= 2;
    cr_expect_eq(overlap_between(&q, &v), OVERLAP_NO);
    cr_expect_eq(overlap_between(&k, &v), OVERLAP_YES);
    // Even and odd elements, and rows of a transposed view.
    int64_t half[2] = {1 << 20, 1 << 10}, step[2] = {2, 1 << 21};
    Strided even = {0x10000, 32, 2, half, step}, odd = {0x10004, 32, 2, half, step};
    cr_expect_eq(overlap_between(&even, &odd), OVERLAP_NO);
    cr_expect_eq(overlap_within(&even), OVERLAP_NO);
    int64_t window[2] = {1000, 3}, slide[2] = {1, 1};
    Strided sliding = {0x10000, 32, 2, window, slide};
    cr_expect_eq(overlap_within(&sliding), OVERLAP_YES);
}
