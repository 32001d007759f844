// What the evaluator's checks report (FuseOptions.check), and what --deterministic refuses: exact
// texts, by the public interface.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/fusec.h"

enum { TEXT = 1 << 14 };

typedef struct Said {
    char text[TEXT];
} Said;

static void say(void *user, const char *text, size_t length) {
    Said *said = user;
    size_t used = strlen(said->text);
    cr_assert(used + length < TEXT);
    memcpy(said->text + used, text, length);
    said->text[used + length] = 0;
}

// Without the lines of source and their carets.
static void drop_source(char *text) {
    char *to = text;
    for (char *line = text; *line;) {
        size_t n = strcspn(line, "\n") + 1;
        if (*line != ' ') {
            memmove(to, line, n);
            to += n;
        }
        line += n;
    }
    *to = 0;
}

#define F32(...)                                                                                   \
    (FuseTensor) {                                                                                 \
        .data = (float[]){__VA_ARGS__}, .dtype = "f32", .rank = 1,                                 \
        .dims = {sizeof((float[]){__VA_ARGS__}) / sizeof(float)}, .strides = {                     \
            1                                                                                      \
        }                                                                                          \
    }
#define I32(...)                                                                                   \
    (FuseTensor) {                                                                                 \
        .data = (int[]){__VA_ARGS__}, .dtype = "i32", .rank = 1,                                   \
        .dims = {sizeof((int[]){__VA_ARGS__}) / sizeof(int)}, .strides = {                         \
            1                                                                                      \
        }                                                                                          \
    }

// Runs the only kernel `k` on tensors; `expect` are the reports, `errors` how many are errors.
static void check(const char *source, int n, const FuseTensor *tensors, int errors,
                  const char *expect) {
    Said said = {0};
    FuseOptions options = {
        .emit = FUSE_EMIT_EVAL, .target = "cpu", .check = true, .message = say, .user = &said};
    FuseResult *r = fuse_compile(&options, "k.fk", source, strlen(source));
    cr_assert(fuse_result_ok(r), "%s", said.text);
    said.text[0] = 0;
    FuseArg args[8];
    for (int i = 0; i < n; i++)
        args[i] = (FuseArg){.tensor = &tensors[i]};
    const char *answer = fuse_eval_run(r, "k", n, args, 0);
    drop_source(said.text);
    cr_expect_str_eq(said.text, expect, "%s\nsaid\n%s", source, said.text);
    char want[64] = "";
    if (errors)
        snprintf(want, sizeof want, "the checks found %d error%s", errors, errors == 1 ? "" : "s");
    cr_expect_str_eq(answer ? answer : "", want, "%s\nsaid %s", source, answer);
    fuse_result_free(r);
}

#define CHECK(source, errors, expect, ...)                                                         \
    check(source, sizeof((FuseTensor[]){__VA_ARGS__}) / sizeof(FuseTensor),                        \
          (FuseTensor[]){__VA_ARGS__}, errors, expect)

// The second and third segments overlap in 2 and 3.
Test(driver_checks, segments_that_decrease) {
    CHECK("kernel k(x: f32[N], s: i32[E1]) -> (y: f32[N], z: f32[E]) where E1 == E + 1 {\n"
          "    parallel e in 0..E, n in tiles(s[e] .. s[e + 1]) {\n"
          "        y[n] = x[n] * 2;\n"
          "    }\n"
          "    z = 0;\n"
          "}\n",
          2,
          "k.fk:2:25: error[segments]: the segment of `s` is 4 .. 2: `s` decreases, at e = 1\n"
          "k.fk:3:9: error[race]: `y[2]` is written by two iterations: e = 2 and e = 0\n"
          "note: the first of 2\n",
          F32(1, 2, 3, 4, 5, 6), I32(0, 4, 2, 6), F32(0, 0, 0, 0, 0, 0), F32(0, 0, 0));
}

Test(driver_checks, segments_that_do_not) {
    CHECK("kernel k(x: f32[N], s: i32[E1]) -> (z: f32[E]) where E1 == E + 1 {\n"
          "    parallel e in 0..E {\n"
          "        var m = 0.0;\n"
          "        for n in tiles(s[e] .. s[e + 1]) { m += sum[n](x[n]); }\n"
          "        z[e] = m;\n"
          "    }\n"
          "}\n",
          0, "", F32(1, 2, 3, 4), I32(0, 3, 3, 4), F32(0, 0, 0));
}

// What a condition drops did no harm.
Test(driver_checks, memory_that_nothing_wrote) {
    CHECK("kernel k(x: f32[N]) -> (y: f32[N], z: f32[N]) {\n"
          "    temp t: f32[N];\n"
          "    parallel n in 0..N { t[n % 2 == 0 ? n : -1] = x[n]; }\n"
          "    y = t + 1;\n"
          "    parallel n in 0..N { z[n] = n % 2 == 0 ? t[n] : 0; }\n"
          "}\n",
          1,
          "k.fk:4:5: error[undetermined]: `y[1]` depends on what nothing determines\n"
          "note: the first of 2\n"
          "k.fk:4:9: note[never-written]: `t[1]` is read, but nothing has written it, at N = 1\n"
          "note: the first of 2\n"
          "k.fk:5:46: note[never-written]: `t[1]` is read, but nothing has written it, at n = 1\n"
          "note: the first of 2\n",
          F32(1, 2, 3, 4, 5), F32(0, 0, 0, 0, 0), F32(0, 0, 0, 0, 0));
}

// Copies of it, sums of it and indices made of it.
Test(driver_checks, what_it_reaches) {
    CHECK(
        "kernel k(x: i32[N]) -> (y: i32[N], z: i32[1]) {\n"
        "    temp t: i32[N];\n"
        "    parallel n in 0..N { t[n != 1 ? n : -1] = x[n]; }\n"
        "    temp u: i32[N] = t;\n"
        "    scatter y[u[:]] = 7;\n"
        "    z[0] = sum[N](u);\n"
        "}\n",
        2,
        "k.fk:1:25: warning[partly-written]: 1 of 3 elements of `y` are not written, first `y[1]`\n"
        "k.fk:4:22: note[never-written]: `t[1]` is read, but nothing has written it, at N = 1\n"
        "k.fk:5:5: error[undetermined]: an index of what is written depends on what nothing "
        "determines, at N = 1\n"
        "k.fk:5:15: note[never-written]: `u[1]` is read, but nothing has written it, at N = 1\n"
        "k.fk:6:5: error[undetermined]: `z[0]` depends on what nothing determines\n"
        "k.fk:6:19: note[never-written]: `u[1]` is read, but nothing has written it, at N = 1\n",
        I32(0, 1, 2), I32(0, 0, 0), I32(0));
}

Test(driver_checks, arithmetic) {
    CHECK("kernel k(a: i32[N], b: i32[N]) -> (q: i32[N], r: i32[N], s: i32[N], t: i64[N]) {\n"
          "    q = a / b;\n"
          "    r = b != 0 ? a % b : 0;\n"
          "    s = a * a << b;\n"
          "    t = (a as i64 << 32) * 2 + (a as i64);\n"
          "}\n",
          1,
          "k.fk:2:5: error[undetermined]: `q[1]` depends on what nothing determines\n"
          "k.fk:2:9: note[division-by-zero]: `2 / 0`: the result may be anything, at N = 1\n"
          "k.fk:3:18: note[division-by-zero]: `2 % 0`: the result may be anything, at N = 1\n"
          "k.fk:4:9: warning[shift-width]: `605172705 << 40`: i32 has 32 bits, at N = 3\n"
          "k.fk:4:9: warning[wraps]: `70000 * 70000` leaves i32 and wraps, at N = 2\n"
          "note: the first of 2\n",
          I32(1, 2, 70000, -70001), I32(1, 0, 3, 40), I32(0, 0, 0, 0), I32(0, 0, 0, 0),
          I32(0, 0, 0, 0),
          {.data = (int64_t[4]){0}, .dtype = "i64", .rank = 1, .dims = {4}, .strides = {1}});
}

Test(driver_checks, step_of_0) {
    CHECK("kernel k(s: i32[N]) -> (y: i32[N]) {\n"
          "    parallel n in 0..N {\n"
          "        var c: i32 = 0;\n"
          "        for i in 0..4 step s[n] { c += 1; }\n"
          "        y[n] = c;\n"
          "    }\n"
          "}\n",
          0,
          "k.fk:4:9: warning[step-zero]: the range is empty: its step is 0, at n = 1\n"
          "note: the first of 2\n",
          I32(2, 0, 0), I32(0, 0, 0));
}

Test(driver_checks, sums_and_indices) {
    CHECK(
        "kernel k(a: i32[N]) -> (s: i32[1], p: i32[N], d: i32[1], o: i32[N]) {\n"
        "    s[0] = sum[N](a);\n"
        "    p = cumprod[N](a);\n"
        "    d[0] = dot[N](a, a);\n"
        "    scatter o[(a[:] as index << 40) * (1 << 23)] = 1;\n"
        "}\n",
        1,
        "k.fk:1:58: warning[partly-written]: 2 of 3 elements of `o` are not written, first `o[1]`\n"
        "k.fk:2:12: warning[wraps]: the sum leaves i32 and wraps\n"
        "k.fk:3:9: warning[wraps]: the product leaves i32 and wraps\n"
        "k.fk:4:12: warning[wraps]: the product leaves i32 and wraps\n"
        "k.fk:5:5: warning[outside]: index 0 of `o` is -9223372036854775808, outside of 0..3: "
        "nothing is written, at N = 0\n"
        "k.fk:5:15: error[index-overflow]: `1099511627776 * 8388608` leaves index, at N = 0\n"
        "note: the first of 3\n",
        I32(1, 2000000000, 2000000000), I32(0), I32(0, 0, 0), I32(0), I32(0, 0, 0));
}

// Said for a read without `else`, and where it is not the -1 of a condition.
Test(driver_checks, outside) {
    CHECK(
        "kernel k(x: f32[N], f: f32[R]) -> (y: f32[N], z: f32[N], i: i32[N]) {\n"
        "    axis n in N, r in R;\n"
        "    y[n] = sum[r](x[n + r - 1] * f[r]);\n"
        "    z[n - 2] = max[r](x[n + r - 1] else -inf);\n"
        "    i[n % 2 == 0 ? n : -1] = (x[n % 2 == 0 ? n : -1] / 0.0) as i32;\n"
        "}\n",
        0,
        "k.fk:1:47: warning[partly-written]: 2 of 4 elements of `z` are not written, first `z[2]`\n"
        "k.fk:1:58: warning[partly-written]: 2 of 4 elements of `i` are not written, first `i[1]`\n"
        "k.fk:3:19: warning[outside]: index 0 of `x` is -1, outside of 0..4: the read gives 0, at "
        "n "
        "= 0, r = 0\n"
        "note: the first of 2\n"
        "k.fk:4:5: warning[outside]: index 0 of `z` is -2, outside of 0..4: nothing is written, at "
        "n = 0\n"
        "note: the first of 2\n"
        "k.fk:5:30: warning[nan-to-integer]: NaN becomes 0 of i32, at n = 0\n"
        "note: the first of 3\n",
        F32(0, 1, 2, 3), F32(1, 2, 1), F32(0, 0, 0, 0), F32(0, 0, 0, 0), I32(0, 0, 0, 0));
}

// A tile that the text gives a size: the place is the element's.
Test(driver_checks, tiles_with_a_size) {
    CHECK("kernel k(x: f32[N]) -> (y: f32[N]) {\n"
          "    parallel n in tiles(N, 4) { y[n] = x[n + 3]; }\n"
          "}\n",
          0,
          "k.fk:2:40: warning[outside]: index 0 of `x` is 7, outside of 0..7: the read gives 0, at "
          "n = 4\n"
          "note: the first of 3\n",
          F32(0, 1, 2, 3, 4, 5, 6), F32(0, 0, 0, 0, 0, 0, 0));
    CHECK("kernel k(x: f32[N]) -> (y: f32[N]) {\n"
          "    parallel n in tiles(N, 4) { y[n] = x[n + 1]; }\n"
          "}\n",
          0,
          "k.fk:2:40: warning[outside]: index 0 of `x` is 7, outside of 0..7: the read gives 0, at "
          "n = 6\n",
          F32(0, 1, 2, 3, 4, 5, 6), F32(0, 0, 0, 0, 0, 0, 0));
}

Test(driver_checks, assertions) {
    CHECK("kernel k(x: i32[N]) -> (y: i32[N]) {\n"
          "    parallel n in 0..N { assert(x[n] > 0, \"x is positive\"); y[n] = x[n]; }\n"
          "}\n",
          1,
          "k.fk:2:26: error[assert]: x is positive, at n = 1\n"
          "note: the first of 2\n",
          I32(1, 0, -1), I32(0, 0, 0));
}

// Without a callback the answer has the text.
Test(driver_checks, answer) {
    static const char source[] = "kernel k(a: i32[N], b: i32[N]) -> (y: i32[N]) { y = a / b; }\n";
    FuseOptions options = {.emit = FUSE_EMIT_EVAL, .target = "cpu", .check = true};
    FuseResult *r = fuse_compile(&options, "k.fk", source, strlen(source));
    FuseTensor t[] = {I32(1), I32(0), I32(0)};
    FuseArg args[] = {{.tensor = &t[0]}, {.tensor = &t[1]}, {.tensor = &t[2]}};
    cr_expect_str_eq(fuse_eval_run(r, "k", 3, args, 0),
                     "the checks found 1 error\n"
                     "k.fk:1:49: error[undetermined]: `y[0]` depends on what nothing determines\n"
                     "    1 | kernel k(a: i32[N], b: i32[N]) -> (y: i32[N]) { y = a / b; }\n"
                     "      |                                                 ^~~~~~~~~~\n"
                     "k.fk:1:53: note[division-by-zero]: `1 / 0`: the result may be anything, at N "
                     "= 0\n"
                     "    1 | kernel k(a: i32[N], b: i32[N]) -> (y: i32[N]) { y = a / b; }\n"
                     "      |                                                     ^~~~~\n");
    fuse_result_free(r);
}

static void refuses(const char *source, FuseOptions options, const char *expect) {
    FuseResult *r = fuse_compile(&options, "k.fk", source, strlen(source));
    char *got = strdup(fuse_result_messages(r));
    drop_source(got);
    cr_expect_str_eq(got, expect, "%s\nsaid\n%s", source, got);
    cr_expect(fuse_result_ok(r) == !*expect);
    free(got);
    fuse_result_free(r);
}

Test(driver_checks, compiled_code_has_none) {
    static const char source[] = "kernel k(x: f32[N]) -> (y: f32[N]) { y = x; }\n";
    refuses(source, (FuseOptions){.emit = FUSE_EMIT_PTX, .check = true},
            "error[unsupported]: compiled code has no checks: the evaluator makes them\n"
            "hint: run the kernel on the device `eval`\n");
}

// Options that the command line refuses by itself.
Test(driver_checks, wrong_options) {
    static const char source[] = "kernel k(x: f32[N]) -> (y: f32[N]) { y = x; }\n";
    static const char *const flags[] = {"no-overflow", "no-such", NULL};
    refuses(source, (FuseOptions){.emit = FUSE_EMIT_PTX, .target = "cpu"},
            "error[bad-target]: target cpu makes no PTX\n");
    refuses(source, (FuseOptions){.emit = FUSE_EMIT_HOST, .target = "sm_90a"},
            "error[bad-target]: target sm_90a makes no host code\n");
    refuses(source, (FuseOptions){.emit = FUSE_EMIT_TILE, .target = "cpu", .warnings = flags},
            "error[bad-warning]: -Wno-such names no warning or performance note\n");
}

Test(driver_checks, deterministic) {
    FuseOptions options = {.emit = FUSE_EMIT_TILE, .deterministic = true};
    refuses(
        "kernel k(i: i32[N], x: f32[N]) -> (inout h: f32[B], inout c: i32[B], inout o: i32[N],\n"
        "    inout s: i32[B], inout v: f32[B], inout e: i32[B]) {\n"
        "    axis n in N;\n"
        "    atomic h[i[n]] += x[n];\n"
        "    scatter v[i[n]] = x[n];\n"
        "    parallel m in tiles(N) {\n"
        "        atomic c[i[m]] += 1;\n"
        "        atomic c[i[m]] max= 3;\n"
        "        let old = atomic s[i[m]] += 1;\n"
        "        o[m] = old;\n"
        "        atomic e[i[m]] = 1;\n"
        "    }\n"
        "}\n",
        options,
        "k.fk:4:5: error[not-deterministic]: this atomic to `h` depends on the order of "
        "iterations: each order of a sum of floats rounds differently\n"
        "hint: sum along an axis with `sum` or `dot`, or count in integers\n"
        "k.fk:5:5: error[not-deterministic]: this scatter to `v` depends on the order of "
        "iterations: any one of the elements that meet stays\n"
        "k.fk:7:9: error[not-deterministic]: this atomic to `c` depends on the order of "
        "iterations: other accesses of the nest may come before or after it\n"
        "k.fk:8:9: error[not-deterministic]: this atomic to `c` depends on the order of "
        "iterations: other accesses of the nest may come before or after it\n"
        "k.fk:9:13: error[not-deterministic]: this atomic to `s` depends on the order of "
        "iterations: the old value tells which atomics came before\n"
        "k.fk:11:9: error[not-deterministic]: this atomic to `e` depends on the order of "
        "iterations: the last one stays\n");
    refuses("kernel k(i: i32[N], x: f32[N], t: i32) -> (inout h: f32[B], inout c: i32[B],\n"
            "    inout s: i32[B], y: f32[1]) {\n"
            "    axis n in N;\n"
            "    atomic h[i[n]] max= x[n];\n"
            "    atomic c[i[n]] += 1;\n"
            "    atomic c[i[n]] max= 3;\n"
            "    scatter s[i[n]] = t;\n"
            "    scatter s[i[n]] = 1;\n"
            "    y[0] = sum[N](x);\n"
            "}\n",
            options, "");
    refuses("kernel k(x: i32[N]) -> (inout c: i32[1], y: i32[N], inout f: i32[N]) {\n"
            "    parallel n in 0..N { atomic c[0] += 1; y[n] = c[0]; }\n"
            "    parallel n in 0..N { scatter f[x[n]] = 1; y[n] = f[n]; }\n"
            "}\n",
            options,
            "k.fk:2:26: error[not-deterministic]: this atomic to `c` depends on the order of "
            "iterations: other accesses of the nest may come before or after it\n"
            "k.fk:3:26: error[not-deterministic]: this scatter to `f` depends on the order of "
            "iterations: other accesses of the nest may come before or after it\n");
}
