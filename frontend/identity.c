/* Whether the identity of a `reduce` is one: its function is executed on the identity and numbers
 * of every kind, on either side.
 *
 * Input: a fold that is built, which of its values are never negative. Output: true, or a report
 * with a counterexample. What is known at run time only passes. Single values are tried one by one.
 * The values of a tuple belong together (a count with its mean, a flag of 0 and 1), so that tuples
 * are tried in families of the same signs, and only a family without any that the identity leaves
 * alone counts. Sums that round and powers that overflow are no counterexamples.
 */
#include "frontend/builtins.h"

#include "ir/eval.h"

#include <math.h>

enum { COMBINED_MAX = 8, PATTERNS = 3 };

typedef struct Trial {
    Fe *fe;
    const Op *op;
    uint32_t n;
    Scalar id[COMBINED_MAX];
    Span span;
    uint32_t passed;
    bool found; /* a counterexample, kept in the fields below */
    bool kept;  /* something is */
    bool first; /* f(id, x), else f(x, id) */
    Scalar x[COMBINED_MAX], got[COMBINED_MAX];
} Trial;

static const char *scalars_text(Fe *fe, const Scalar *s, uint32_t n) {
    const char *text = "";
    for (uint32_t i = 0; i < n; i++) {
        double x = scalar_to_f64(s[i]);
        const char *one = isnan(x)                     ? "nan"
                          : dtype_is_float(s[i].dtype) ? arena_printf(fe->arena, "%g", x)
                          : s[i].dtype == DT_U64
                              ? arena_printf(fe->arena, "%.0f", x)
                              : arena_printf(fe->arena, "%lld", (long long)s[i].u.i);
        text = arena_printf(fe->arena, "%s%s%s", text, i ? ", " : "", one);
    }
    return n == 1 ? text : arena_printf(fe->arena, "(%s)", text);
}

/* --- one trial ------------------------------------------------------------------------------ */

/* What rounding may cost: a few units in the last place of numbers about 1, of larger ones in
 * proportion. */
static double rounding_of(DType t) {
    switch ((int)t) {
    case DT_F64:
        return 1e-12;
    case DT_F32:
        return 1e-5;
    case DT_F16:
        return 4e-3;
    case DT_BF16:
        return 3e-2;
    default:
        return dtype_is_float(t) ? 0.25 : 0;
    }
}

typedef enum Outcome { OUTCOME_SAME, OUTCOME_OTHER, OUTCOME_NO_NUMBER } Outcome;

static Outcome compare(const Scalar *x, const Scalar *got, uint32_t n) {
    Outcome outcome = OUTCOME_SAME;
    for (uint32_t i = 0; i < n; i++) {
        if (!dtype_is_float(x[i].dtype)) {
            if (x[i].u.i != got[i].u.i && outcome == OUTCOME_SAME)
                outcome = OUTCOME_OTHER;
            continue;
        }
        if (!isfinite(got[i].u.f))
            return OUTCOME_NO_NUMBER;
        double allowed = rounding_of(x[i].dtype) * fmax(1, fabs(x[i].u.f));
        if (fabs(x[i].u.f - got[i].u.f) > allowed)
            outcome = OUTCOME_OTHER;
    }
    return outcome;
}

/* Tries x on both sides; the first counterexample is kept. */
static Outcome try_one(Trial *t, const Scalar *x) {
    Outcome all = OUTCOME_SAME;
    for (int side = 0; side < 2; side++) {
        Scalar got[COMBINED_MAX];
        if (!eval_function(t->fe->arena, t->op, side ? x : t->id, side ? t->id : x, got))
            return OUTCOME_SAME;
        Outcome one = compare(x, got, t->n);
        if (one == OUTCOME_SAME || all == OUTCOME_OTHER)
            continue;
        all = one;
        if (t->found || (t->kept && one != OUTCOME_OTHER))
            continue;
        t->kept = true;
        t->first = !side;
        for (uint32_t i = 0; i < t->n; i++) {
            t->x[i] = x[i];
            t->got[i] = got[i];
        }
    }
    t->passed += all == OUTCOME_SAME;
    return all;
}

/* --- the numbers ---------------------------------------------------------------------------- */

/* Rounded or wrapped to the type; false where it is no number of it. */
static bool number(DType type, double x, Scalar *out) {
    if (dtype_is_float(type)) {
        *out = scalar_float(type, x);
        return isfinite(out->u.f);
    }
    *out = scalar_int(type, (int64_t)x);
    return type != DT_BOOL ? (dtype_is_signed(type) || x >= 0) && out->u.i == (int64_t)x
                           : x == 0 || x == 1;
}

static bool try_single(Trial *t, bool natural) {
    static const double numbers[] = {3, -3, 1, -1, 0, 0.5, -0.25, 40, -40, 1000, -1000, 1e6, -1e6};
    DType type = t->id[0].dtype;
    uint32_t tried = 0;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers && !t->found; i++) {
        Scalar x;
        if ((natural && numbers[i] < 0) || !number(type, numbers[i], &x))
            continue;
        tried++;
        t->found = try_one(t, &x) == OUTCOME_OTHER;
    }
    if (dtype_is_integer(type) && !t->found) {
        unsigned bits = dtype_bits(type) - (dtype_is_signed(type) ? 1 : 0);
        uint64_t largest = bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
        for (int i = 0; i < 2 && !t->found; i++) {
            bool least = i == 1;
            Scalar x = scalar_int(type, least ? (int64_t)~largest : (int64_t)largest);
            if (!(least && natural))
                t->found = try_one(t, &x) == OUTCOME_OTHER;
        }
    }
    /* Only what is no number at all: of an infinite sum, for example. */
    t->found |= tried > 0 && t->passed == 0;
    return !t->found;
}

/* Value i of a pattern: all 1; all different; halves; and 1 at one place alone. */
static double pattern_number(uint32_t pattern, uint32_t i, bool is_float) {
    if (pattern == 0)
        return 1;
    if (pattern == 1)
        return i + 2;
    if (pattern == 2)
        return is_float ? 0.5 : 1;
    return i == pattern - PATTERNS;
}

/* `negative`: the value that is; n: none. */
static bool try_family(Trial *t, uint32_t negative) {
    bool other = false;
    for (uint32_t p = 0; p < PATTERNS + t->n; p++) {
        Scalar x[COMBINED_MAX];
        bool fits = true;
        for (uint32_t i = 0; i < t->n; i++) {
            DType type = t->id[i].dtype;
            double v = pattern_number(p, i, dtype_is_float(type));
            v = type == DT_BOOL ? v != 0 : i == negative ? (v == 0 ? -1 : -v) : v;
            fits &= number(type, v, &x[i]);
        }
        if (!fits)
            continue;
        Outcome one = try_one(t, x);
        if (one == OUTCOME_SAME)
            return true;
        t->found |= one == OUTCOME_OTHER;
        other |= one == OUTCOME_OTHER;
    }
    return !other;
}

static bool try_tuple(Trial *t, uint32_t naturals) {
    for (uint32_t negative = t->n + 1; negative-- > 0;) {
        DType type = negative < t->n ? t->id[negative].dtype : DT_F32;
        bool never = negative < t->n && (naturals >> negative & 1);
        if (never || type == DT_BOOL || !dtype_is_signed(type))
            continue;
        t->found = false;
        if (!try_family(t, negative))
            return false;
    }
    t->found = t->passed == 0;
    return !t->found;
}

/* --- the check ------------------------------------------------------------------------------ */

/* Padding holds the identity, and meets itself: f(id, id) has to be id. */
static bool try_itself(Trial *t) {
    Scalar got[COMBINED_MAX];
    if (!eval_function(t->fe->arena, t->op, t->id, t->id, got))
        return true;
    for (uint32_t i = 0; i < t->n; i++) {
        bool same =
            dtype_is_float(got[i].dtype) ? got[i].u.f == t->id[i].u.f : got[i].u.i == t->id[i].u.i;
        if (same)
            continue;
        fe_error(t->fe, DIAG_BAD_IDENTITY, t->span,
                 "this is no identity: the function makes %s of it and itself",
                 scalars_text(t->fe, got, t->n));
        return false;
    }
    return true;
}

bool identity_check(Fe *fe, const Op *op, uint32_t naturals, Span span) {
    Trial t = {.fe = fe, .op = op, .n = op->nres, .span = span};
    for (uint32_t i = 0; i < t.n; i++) {
        const Value *v = op->in[t.n + i];
        if (v->kind != VALUE_CONST)
            return true;
        DType type = v->type.dtype;
        t.id[i] = dtype_is_float(type) ? (Scalar){.dtype = type, .u.f = v->u.f}
                                       : (Scalar){.dtype = type, .u.i = v->u.i};
        if (scalar_is_nan(t.id[i])) {
            Diag *d = fe_error(fe, DIAG_BAD_IDENTITY, span, "nan is no identity");
            diag_hint(
                fe->diags, d,
                "take the number that the function leaves alone: 0 of a sum, `-inf` of `max`");
            return false;
        }
    }
    if (!try_itself(&t))
        return false;
    if (t.n == 1 ? try_single(&t, naturals & 1) : try_tuple(&t, naturals))
        return true;
    const char *x = scalars_text(fe, t.x, t.n), *got = scalars_text(fe, t.got, t.n);
    fe_error(fe, DIAG_BAD_IDENTITY, span, "this is no identity: the function makes %s of %s and %s",
             got, t.first ? "it" : x, t.first ? x : "it");
    return false;
}
