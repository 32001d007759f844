// Overlap of strided tensors, exactly.
//
// Two tensors share a bit when sum(i_k * s_k) - sum(j_l * t_l) lies in an open interval around the
// distance of their addresses. With the signs turned so that all coefficients are positive, that is
// a bounded linear equation
//   lo <= sum(x_k * c_k) <= hi,  0 <= x_k <= n_k
// solved by depth-first search from the largest coefficient: what the rest can still reach bounds
// each x_k, and the rest's greatest common divisor has to hit the interval (after NumPy's
// solve_may_share_memory, whose problem this is). The search is exponential in the worst case, so
// it stops after a number of steps; layouts that people use need few.
#include "runtime/overlap.h"

enum { TERMS_MAX = 20, STEPS_MAX = 20000 };

typedef __int128 Wide;

typedef struct Term {
    Wide c; // > 0
    int64_t n;
} Term;

typedef struct Search {
    int n;
    Term term[TERMS_MAX];                          // largest coefficient first
    Wide reach[TERMS_MAX + 1], gcd[TERMS_MAX + 1]; // of the terms from i on
    int steps;
} Search;

static Wide wide_gcd(Wide a, Wide b) {
    while (b) {
        Wide r = a % b;
        a = b;
        b = r;
    }
    return a;
}

static Wide floor_div(Wide a, Wide b) { // b > 0
    return a / b - (a % b < 0);
}

static Overlap search(Search *s, int i, Wide lo, Wide hi) {
    if (lo < 0)
        lo = 0;
    if (hi > s->reach[i])
        hi = s->reach[i];
    if (lo > hi)
        return OVERLAP_NO;
    if (i == s->n)
        return OVERLAP_YES;
    // A multiple of the gcd has to lie in the interval.
    if (floor_div(hi, s->gcd[i]) * s->gcd[i] < lo)
        return OVERLAP_NO;
    if (++s->steps > STEPS_MAX)
        return OVERLAP_UNKNOWN;
    const Term *t = &s->term[i];
    // The rest adds 0 .. reach[i + 1].
    Wide first = -floor_div(s->reach[i + 1] - lo, t->c), last = floor_div(hi, t->c);
    if (first < 0)
        first = 0;
    if (last > t->n)
        last = t->n;
    Overlap result = OVERLAP_NO;
    for (Wide x = last; x >= first; x--) {
        Overlap found = search(s, i + 1, lo - x * t->c, hi - x * t->c);
        if (found != OVERLAP_NO)
            return found;
    }
    return result;
}

// Adds n steps of size c; equal sizes are one term. A negative size runs from the other end: *lo
// and *hi move.
static void add_term(Search *s, Wide c, int64_t n, Wide *lo, Wide *hi) {
    if (c == 0 || n <= 0)
        return;
    if (c < 0) {
        c = -c;
        *lo += c * n;
        *hi += c * n;
    }
    int at = 0;
    while (at < s->n && s->term[at].c > c)
        at++;
    if (at < s->n && s->term[at].c == c) {
        s->term[at].n += n;
        return;
    }
    for (int i = s->n++; i > at; i--)
        s->term[i] = s->term[i - 1];
    s->term[at] = (Term){c, n};
}

static Overlap solve(Search *s, Wide lo, Wide hi) {
    s->reach[s->n] = 0;
    s->gcd[s->n] = 0;
    for (int i = s->n - 1; i >= 0; i--) {
        s->reach[i] = s->reach[i + 1] + s->term[i].c * s->term[i].n;
        s->gcd[i] = wide_gcd(s->term[i].c, s->gcd[i + 1]);
    }
    return search(s, 0, lo, hi);
}

// First bit, and the bit after the last.
static void interval(const Strided *t, Wide *first, Wide *end) {
    *first = (Wide)t->address * 8;
    *end = *first + t->bits;
    for (int d = 0; d < t->rank; d++) {
        Wide span = (Wide)(t->shape[d] - 1) * t->stride[d] * t->bits;
        *(span < 0 ? first : end) += span;
    }
}

Overlap overlap_between(const Strided *a, const Strided *b) {
    Wide first_a, end_a, first_b, end_b;
    interval(a, &first_a, &end_a);
    interval(b, &first_b, &end_b);
    if (end_a <= first_b || end_b <= first_a)
        return OVERLAP_NO;
    Search s = {0};
    Wide distance = ((Wide)b->address - (Wide)a->address) * 8;
    Wide lo = distance - a->bits + 1, hi = distance + b->bits - 1;
    for (int d = 0; d < a->rank; d++)
        add_term(&s, (Wide)a->stride[d] * a->bits, a->shape[d] - 1, &lo, &hi);
    for (int d = 0; d < b->rank; d++)
        add_term(&s, -(Wide)b->stride[d] * b->bits, b->shape[d] - 1, &lo, &hi);
    return solve(&s, lo, hi);
}

// Sorted by size, each stride has to be past everything that the smaller ones reach.
static bool is_nested(const Strided *a) {
    uint64_t done = 0;
    Wide reach = 0;
    for (int n = 0; n < a->rank; n++) {
        int at = -1;
        Wide least = 0;
        for (int d = 0; d < a->rank; d++) {
            Wide size = a->stride[d] < 0 ? -(Wide)a->stride[d] : a->stride[d];
            if (!(done >> d & 1) && (at < 0 || size < least)) {
                at = d;
                least = size;
            }
        }
        done |= 1u << at;
        if (a->shape[at] <= 1)
            continue;
        if (least <= reach)
            return false;
        reach += least * (a->shape[at] - 1);
    }
    return true;
}

Overlap overlap_within(const Strided *a) {
    if (is_nested(a))
        return OVERLAP_NO;
    // Two indices differ first in dim d, by 1 or more, and anyhow in the later ones: sum(x_k * s_k)
    // = 0.
    Overlap result = OVERLAP_NO;
    for (int d = 0; d < a->rank; d++) {
        if (a->shape[d] <= 1)
            continue;
        Search s = {0};
        Wide lo = -(Wide)a->stride[d], hi = lo;
        add_term(&s, a->stride[d], a->shape[d] - 2, &lo, &hi);
        for (int k = d + 1; k < a->rank; k++) { // from -(n - 1) to n - 1
            Wide most = (Wide)a->stride[k] * (a->shape[k] - 1);
            lo += most;
            hi += most;
            add_term(&s, a->stride[k], 2 * (a->shape[k] - 1), &lo, &hi);
        }
        Overlap found = solve(&s, lo, hi);
        if (found == OVERLAP_YES)
            return found;
        if (found == OVERLAP_UNKNOWN)
            result = found;
    }
    return result;
}
