// Roles on the evaluator: a persistent product that warp groups share out, and deadlocks.
#include "eval_support.h"

static const char *corpus(const char *name) {
    static char text[65536];
    char path[512];
    snprintf(path, sizeof path, "%s/tests/corpus/placed/%s", FUSE_SOURCE_DIR, name);
    FILE *f = fopen(path, "rb");
    cr_assert(f, "%s", path);
    text[fread(text, 1, sizeof text - 1, f)] = 0;
    fclose(f);
    return text;
}

static const char *replaced(const char *text, const char *from, const char *to) {
    static char out[65536];
    const char *at = strstr(text, from);
    cr_assert(at, "%s", from);
    snprintf(out, sizeof out, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    return out;
}

typedef struct Problem {
    Data x, w, b, y;
} Problem;

static Problem problem(int M, int K, int N) {
    return (Problem){.x = data_random(1, DT_BF16, 2, M, K, 0, 0),
                     .w = data_random(2, DT_BF16, 2, K, N, 0, 0),
                     .b = data_random(3, DT_BF16, 1, N, 0, 0, 0),
                     .y = data_new(DT_BF16, 2, M, N)};
}

static void problem_free(Problem *p) {
    data_free(&p->x), data_free(&p->w), data_free(&p->b), data_free(&p->y);
}

static void check(int M, int K, int N, bool bias, int sms) {
    Problem p = problem(M, K, N);
    EvalOptions options = {.sms = sms};
    const char *said =
        run_with(corpus("linear_gelu_sm90a.tir"), &options,
                 ARGS(arg_of(&p.x), arg_of(&p.w), arg_of(bias ? &p.b : NULL), arg_of(&p.y)));
    cr_assert(!*said, "%s", said);
    for (int m = 0; m < M; m += 3) {
        for (int n = 0; n < N; n += 5) {
            double z = bias ? data_at(&p.b, n) : 0;
            for (int k = 0; k < K; k++)
                z += data_at(&p.x, m * K + k) * data_at(&p.w, k * N + n);
            double want = 0.5 * z * (1 + erf(z * 0.70710678)), have = data_at(&p.y, m * N + n);
            cr_assert(fabs(have - want) <= 1e-2 * (0.01 + fabs(want)), "%d, %d: %g, not %g", m, n,
                      have, want);
        }
    }
    problem_free(&p);
}

Test(eval_roles, linear_gelu) {
    check(130, 200, 264, true, 2); // two tiles a program, more steps than stages
    check(128, 64, 256, false, 4);
    check(1, 8, 8, true, 1);
}

Test(eval_roles, deadlocks) {
    static const struct {
        const char *from, *to, *says;
    } cases[] = {
        {"              release @ab(%q.1)\n", "", "waits for ever"},
        {"              commit @ab(%q)\n", "", "waits for ever"},
        {"              wait @ab(%q.1)\n", "", "poison reaches"},
        {"stages = 3, tx", "stages = 4, tx", "slots"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Problem p = problem(16, 264, 16);
        assert_fails(cases[i].says,
                     replaced(corpus("linear_gelu_sm90a.tir"), cases[i].from, cases[i].to),
                     ARGS(arg_of(&p.x), arg_of(&p.w), arg_of(&p.b), arg_of(&p.y)));
        problem_free(&p);
    }
}
