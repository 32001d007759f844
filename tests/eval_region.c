// Regions: loops with carried values and stop, if, while, with, orders, launch, permuted and
// sampled grids.
#include "eval_support.h"

#define I(...)                                                                                     \
    sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), (const int64_t[]) {                        \
        __VA_ARGS__                                                                                \
    }

// Runs a body that computes %r: index, with a scalar parameter %n.
static int64_t result_of(const char *body, int64_t n) {
    char text[2048];
    snprintf(text, sizeof text,
             "tir tensor sm_80\nkernel k(%%n: index, out @y: index[1]) {\n%s\nstore @y[0], %%r }\n",
             body);
    Data y = data_new(DT_INDEX, 1, 1);
    assert_runs(text, ARGS(arg_int(n), arg_of(&y)));
    int64_t r = data_int(&y, 0);
    data_free(&y);
    return r;
}

Test(eval_region, for_scalars) {
    static const char sum[] = "%r = for %i in 0..%n carry (%s = 100 : index) : index {\n"
                              "  %t = mul %s, 10 : index; %u = add %t, %i : index; yield %u }";
    cr_assert(result_of(sum, 3) == 100012 && result_of(sum, 0) == 100 && result_of(sum, -5) == 100);
    static const char down[] = "%r = for %i in 5..%n step -2 carry (%s = 0 : index) : index {\n"
                               "  %t = mul %s, 10 : index; %u = add %t, %i : index; yield %u }";
    cr_assert(result_of(down, 0) == 531 && result_of(down, 1) == 53 && result_of(down, 7) == 0);
    static const char two[] =
        "%r = for %i in 0..2, %j in 0..%n carry (%s = 0 : index) : index {\n"
        "  %p = mul %i, 4 : index; %q = add %p, %j : index; %t = mul %s, 10 : index\n"
        "  %u = add %t, %q : index; yield %u }";
    cr_assert(result_of(two, 2) == 145 && result_of(two, 0) == 0);
}

// Next to the ends of 64 bits nothing wraps; a step of 0 has no iteration.
Test(eval_region, ranges_at_the_ends) {
    static const struct {
        const char *range;
        int64_t count, last;
    } cases[] = {
        {"0..9 step %n", 0, 7},
        {"9223372036854775800..9223372036854775807 step 4", 2, 9223372036854775804},
        {"9223372036854775800..9223372036854775807", 7, 9223372036854775806},
        {"-9223372036854775800..-9223372036854775807 step -3", 3, -9223372036854775806},
        {"-9223372036854775800..9223372036854775807 step 9223372036854775807", 2, 7},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[512];
        snprintf(text, sizeof text,
                 "%%c, %%l = for %%i in %s carry (%%k = 0 : index, %%x = 7 : index) : index, "
                 "index {\n  %%d = add %%k, 1 : index; yield %%d, %%i }\n"
                 "%%far = cmp.eq %%l, %lld : bool; %%r = select %%far, %%c, -1 : index",
                 cases[i].range, (long long)cases[i].last);
        cr_expect_eq(result_of(text, 0), cases[i].count, "%s: %lld", cases[i].range,
                     (long long)result_of(text, 0));
    }
}

Test(eval_region, stop) {
    static const char text[] =
        "%r = for %i in 0..9, %j in 0..9 carry (%s = 0 : index) : index {\n"
        "  %t = add %s, 1 : index; %c = cmp.ge %t, %n : bool; yield %t stop %c }";
    cr_assert(result_of(text, 13) == 13 && result_of(text, 1000) == 81 && result_of(text, 0) == 1);
}

Test(eval_region, while_loop) {
    static const char collatz[] =
        "%z, %r = while carry (%x = %n : index, %c = 0 : index) : index, index {\n"
        "  %one = cmp.le %x, 1 : bool; %odd = rem %x, 2 : index; %o = cmp.eq %odd, 1 : bool\n"
        "  %h = div %x, 2 : index; %t = mul %x, 3 : index; %t1 = add %t, 1 : index; %s = select "
        "%o, %t1, %h : index\n"
        "  %e = select %one, %x, %s : index; %c1 = add %c, 1 : index; %d = select %one, %c, %c1 : "
        "index\n"
        "  yield %e, %d stop %one }";
    cr_assert(result_of(collatz, 6) == 8 && result_of(collatz, 1) == 0);
    static const char forever[] =
        "tir tensor sm_80\nkernel k(%n: index) {\n%r = while carry (%x = 0 : index) : index {\n"
        "  yield %x } }\n";
    EvalOptions opts = {.max_steps = 1000};
    cr_assert(strstr(run_with(forever, &opts, ARGS(arg_int(1))), "gave up after 1000"));
}

Test(eval_region, if_else) {
    static const char text[] =
        "%c = cmp.lt %n, 0 : bool; %r = if %c : index {\n %m = neg %n : index; yield %m } {\n"
        " %d = add %n, 1000 : index; yield %d }";
    cr_assert(result_of(text, -4) == 4 && result_of(text, 4) == 1004);
}

// A sum in windows of every size is the whole sum; carried tiles, a constant start that broadcasts.
Test(eval_region, for_windows) {
    static const char text[] =
        "tir nests sm_80\nkernel k(dim M, dim N, in @x: i32[%%M, %%N], out @y: i32[%%M]) {\n"
        "  axis m of M; axis n of N%s; parallel m in 0..%%M {\n"
        "    %%s = for n in 0..%%N carry (%%a = 0:i32 : i32[m]) : i32[m] {\n"
        "      %%x = load @x[m, n] : i32[m, n]; %%p = reduce.sum[n] %%x : i32[m]\n"
        "      %%b = add %%a, %%p : i32[m]; yield %%b }\n"
        "    store @y[m], %%s {det = [m]} } }\n";
    for (int N = 0; N < 20; N += 7) {
        Data x = data_random(1, DT_I32, 2, 5, N, 0, 0);
        for (int size = 0; size < 9; size += 4) {
            char with[1024], by[16] = "";
            if (size)
                snprintf(by, sizeof by, " by %d", size);
            snprintf(with, sizeof with, text, by);
            for (int window = 0; window < 4; window++) {
                Data y = data_new(DT_I32, 1, 5);
                data_fill(&y, 99);
                EvalOptions opts = {.seed = (uint64_t)window, .window = window};
                const char *said = run_with(with, &opts, ARGS(arg_of(&x), arg_of(&y)));
                cr_assert(!*said, "%s", said);
                for (int m = 0; m < 5; m++) {
                    int64_t s = 0;
                    for (int n = 0; n < N; n++)
                        s += data_int(&x, m * N + n);
                    cr_assert(data_int(&y, m) == s);
                }
                data_free(&y);
            }
        }
        data_free(&x);
    }
}

// begin, end, iota, inside at every stage.
Test(eval_region, windows) {
    static const char text[] =
        "tir %s sm_80\nkernel k(dim N, out @b: index[%%N], out @e: index[%%N], out @i: index[%%N]) "
        "{\n"
        "  axis n of N by 4; parallel n in 0..%%N {\n"
        "    %%b = begin n : index; %%e = end n : index\n"
        "    store @b[n], %%b {det = [n], check = [0]}; store @e[n], %%e {det = [n], check = [0]}\n"
        "    store @i[n], n {det = [n], check = [0]} } }\n";
    static const char *stages[] = {"nests", "scheduled"};
    for (int s = 0; s < 2; s++) {
        char with[1024];
        snprintf(with, sizeof with, text, stages[s]);
        Data b = data_new(DT_INDEX, 1, 6), e = data_new(DT_INDEX, 1, 6),
             i = data_new(DT_INDEX, 1, 6);
        assert_runs(with, ARGS(arg_of(&b), arg_of(&e), arg_of(&i)));
        for (int n = 0; n < 6; n++)
            cr_assert(data_int(&b, n) == n / 4 * 4 && data_int(&e, n) == (n < 4 ? 4 : 6) &&
                      data_int(&i, n) == n);
        data_free(&b), data_free(&e), data_free(&i);
    }
}

// Every order visits every tile once.
Test(eval_region, orders) {
    static const char text[] =
        "tir placed sm_80\nkernel k(dim M, dim N, inout @y: i32[%%M, %%N], out @t: i32[%%M, %%N]) "
        "{\n"
        "  %%c = mul %%M, %%N : index; launch %%p in 0..%%c {\n"
        "    %%m, %%n = order.%s %%p, %%M, %%N {group = 3} : index, index; %%q = cast %%p : i32\n"
        "    atomic.add @y[%%m, %%n], 1:i32; store @t[%%m, %%n], %%q {check = [0, 1]} } }\n";
    static const char *kinds[] = {"row", "grouped", "longest", "hilbert"};
    for (int k = 0; k < 4; k++) {
        char with[1024];
        snprintf(with, sizeof with, text, kinds[k]);
        Data y = data_new(DT_I32, 2, 7, 5), t = data_new(DT_I32, 2, 7, 5);
        assert_runs(with, ARGS(arg_of(&y), arg_of(&t)));
        for (int i = 0; i < 35; i++)
            cr_assert(data_int(&y, i) == 1, "%s %d", kinds[k], i);
        if (k == 1) // down a group of 3 rows, then the next column; the last group has 1 row
            cr_assert(data_int(&t, 5) == 1 && data_int(&t, 1) == 3 && data_int(&t, 15) == 15 &&
                      data_int(&t, 31) == 31);
        data_free(&y), data_free(&t);
    }
}

// A persistent grid: `sms` programs walk all tiles.
Test(eval_region, persistent) {
    static const char text[] =
        "tir placed sm_80\nkernel k(dim N, out @y: i32[%N]) {\n"
        "  axis n of N by 4; %t = cdiv %N, 4 : index; %s = sms : index; %g = min %t, %s : index\n"
        "  launch %p in 0..%g {\n    for %i in %p..%t step %g {\n"
        "      %lo = mul %i, 4 : index; with n in %lo..%N {\n        %q = cast %p : i32\n"
        "        store @y[n], %q {check = [0]} } } } }\n";
    Data y = data_new(DT_I32, 1, 27);
    assert_runs(text, ARGS(arg_of(&y)));
    for (int i = 0; i < 27; i++)
        cr_assert(data_int(&y, i) == i / 4 % 4);
    data_free(&y);
}

Test(eval_region, seeds_permute) {
    static const char text[] =
        "tir nests sm_80\nkernel k(dim N, inout @c: i32[1], out @y: i32[%N]) {\n"
        "  parallel %i in 0..%N {\n    %o = atomic.add @c[0], 1:i32 : i32\n"
        "    store @y[%i], %o {det = [i]} } }\n";
    for (uint64_t seed = 0; seed < 3; seed++) {
        Data c = data_new(DT_I32, 1, 1), y = data_new(DT_I32, 1, 50);
        EvalOptions opts = {.seed = seed};
        const char *said = run_with(text, &opts, ARGS(arg_of(&c), arg_of(&y)));
        cr_assert(!*said, "%s", said);
        bool sorted = true;
        int64_t sum = 0;
        for (int i = 0; i < 50; i++) {
            sum += data_int(&y, i);
            sorted = sorted && data_int(&y, i) == i;
        }
        cr_assert(sum == 49 * 25 && sorted == (seed == 0));
        data_free(&c), data_free(&y);
    }
}

// Sampling: what was written is right, the rest is neither written nor an error, temps included.
Test(eval_region, sampled) {
    static const char text[] =
        "tir nests sm_80\nkernel k(dim N, in @x: i32[%N], out @y: i32[%N], inout @s: i32[1]) {\n"
        "  axis n of N by 8; axis m of N by 8; @t = temp : i32[%N]; parallel n in 0..%N {\n"
        "    %x = load @x[n] : i32[n]; %d = add %x, %x : i32[n]; store @t[n], %d {det = [n]}\n"
        "    atomic.add @s[0], %x }\n"
        "  parallel m in 0..%N {\n    %t = load @t[m] : i32[m]; %u = add %t, 1:i32 : i32[m]\n"
        "    store @y[m], %u {det = [m]} } }\n";
    Data x = data_random(1, DT_I32, 1, 1000, 0, 0, 0), y = data_new(DT_I32, 1, 1000),
         s = data_new(DT_I32, 1, 1);
    Arena *arena = arena_new("test");
    const char *error;
    Module *m = ir_parse(arena, interner_new(arena), text, strlen(text), &error);
    cr_assert(m, "%s", error);
    EvalReport report;
    EvalOptions opts = {.max_programs = 40, .seed = 3, .report = &report};
    EvalArg args[] = {arg_of(&x), arg_of(&y), arg_of(&s)};
    cr_assert(eval_kernel(arena, m, m->kernel[0], 3, args, &opts, &error), "%s", error);
    cr_assert(report.programs == 250 && report.programs_run == 80 && report.nwritten == 2);
    int written = 0;
    for (int i = 0; i < 1000; i++) {
        if (!report.written[0].map[i])
            continue;
        written++;
        cr_assert(data_int(&y, i) == 2 * data_int(&x, i) + 1);
    }
    cr_assert(report.written[0].map[0] && report.written[0].map[999]); // the ends are always run
    cr_assert(written >= 16 && written < 40 * 8);
    cr_assert(!report.written[1].map[0]); // a partial sum is no result
    opts.max_programs = 0;
    cr_assert(eval_kernel(arena, m, m->kernel[0], 3, args, &opts, &error), "%s", error);
    cr_assert(report.programs_run == 250 && report.written[1].map[0]);
    arena_free(arena);
    data_free(&x), data_free(&y), data_free(&s);
}

Test(eval_region, failures_name_the_op) {
    static const char text[] =
        "tir scheduled sm_80\nkernel k(dim N, in @x: i32[%N]) {\n"
        "  axis n of N by 8; parallel n in 0..%N {\n    %v = load @x[n] : i32[n] } }\n";
    Data x = data_new(DT_I32, 1, 9);
    Arena *arena = arena_new("test");
    const char *error;
    Module *m = ir_parse(arena, interner_new(arena), text, strlen(text), &error);
    EvalReport report;
    EvalOptions opts = {.report = &report};
    EvalArg args[] = {arg_of(&x)};
    cr_assert(!eval_kernel(arena, m, m->kernel[0], 1, args, &opts, &error));
    cr_assert(strcmp(error, "kernel k: %v = load: index 0 of @x is 9, outside its extent 9, "
                            "without a check, at n = 9") == 0,
              "%s", error);
    cr_assert(report.op && report.op->kind == OP_LOAD);
    arena_free(arena);
    data_free(&x);
}

Test(eval_region, races) {
    static const char text[] =
        "tir nests sm_80\nkernel k(dim N, in @x: i32[%%N], inout @y: i32[%%N]) {\n"
        "  axis n of N by 4; axis j in 0..2; @t = temp {zero = true} : i32[%%N]; parallel n in "
        "0..%%N {\n"
        "    %%x = load @x[n] : i32[n]; %%i = div n, 2 : index[n]; %%z = mul n, 0 : index[n]\n"
        "    %%b = begin n : index; %%j = add j, %%b : index[j]; %%v = cast j : i32[j]\n    %s } "
        "}\n";
    static const struct {
        const char *body, *says;
    } c[] = {
        {"store @y[n], %x", ""},
        {"%o = load @y[n] : i32[n]; store @y[n], %o", ""},
        {"store @y[n], %x; store @y[n], %x", ""},
        {"store @y[%i], %x", "written twice by one store"},
        {"store @y[1], 3:i32", "written by two iterations"},
        {"store @t[%j], %v; %o = load @t[0] : i32",
         "is read here and written by another iteration"},
        {"%o = load @y[0] : i32; store @y[n], %x", "by another iteration"},
        {"%o = load @y[9] : i32; store @y[n], %x", "read by another iteration"},
        {"scatter @y[%z], %x", ""},
        {"atomic.add @y[%z], %x", ""},
    };
    Data x = data_random(1, DT_I32, 1, 10, 0, 0, 0), y = data_new(DT_I32, 1, 10);
    for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
        char with[1024];
        snprintf(with, sizeof with, text, c[i].body);
        EvalOptions opts = {.check_races = true};
        const char *said = run_with(with, &opts, ARGS(arg_of(&x), arg_of(&y)));
        cr_assert(*c[i].says ? strstr(said, c[i].says) != NULL : !*said, "%s: `%s`", c[i].body,
                  said);
        cr_assert(!*run(with, ARGS(arg_of(&x), arg_of(&y)))); // not looked for otherwise
    }
    data_free(&x), data_free(&y);
}

// Some rows of whole-tensor statements: rows right, column sums left out.
Test(eval_region, sliced) {
    static const char text[] =
        "tir tensor sm_80\nkernel k(dim M, dim N, in @x: i32[%M, %N], out @y: i32[%M, %N], out @r: "
        "i32[%M], "
        "out @c: i32[%N], out @d: i32[%N, %N]) {\n"
        "  @t = temp : i32[%M]; %x = load @x[M, N] : i32[M, N]; %s = reduce.sum[N] %x : i32[M]; "
        "store @t[M], %s\n"
        "  %i = sub M, 1 : index[M]; %p = load @t[%i] : i32[M]; store @r[M], %p\n"
        "  %u = add %x, %s : i32[M, N]; store @y[M, N], %u; %q = reduce.sum[M] %x : i32[N]; store "
        "@c[N], %q\n"
        "  axis n in 0..%N; %xn = take %x, N = n : i32[M, n]; %d = dot[M] %x, %xn : i32[N, n]; "
        "store @d[N, n], %d\n"
        "  %f = take %x, M = 0 : i32[N]; store @c[N], %f }\n";
    Data x = data_random(1, DT_I32, 2, 9, 4, 0, 0), y = data_new(DT_I32, 2, 9, 4),
         r = data_new(DT_I32, 1, 9);
    Data c = data_new(DT_I32, 1, 4), d = data_new(DT_I32, 2, 4, 4);
    Arena *arena = arena_new("test");
    const char *error;
    Module *m = ir_parse(arena, interner_new(arena), text, strlen(text), &error);
    cr_assert(m, "%s", error);
    EvalReport report;
    EvalSlice slice = {"M", 3, 6};
    EvalOptions opts = {.nslices = 1, .slices = &slice, .report = &report};
    EvalArg args[] = {arg_of(&x), arg_of(&y), arg_of(&r), arg_of(&c), arg_of(&d)};
    cr_assert(eval_kernel(arena, m, m->kernel[0], 5, args, &opts, &error), "%s", error);
    for (int i = 0; i < 9; i++) {
        int64_t s = 0, before = 0;
        for (int n = 0; n < 4; n++) {
            s += data_int(&x, i * 4 + n);
            before += i ? data_int(&x, i * 4 - 4 + n) : 0;
        }
        for (int n = 0; n < 4; n++) {
            cr_assert(report.written[0].map[i * 4 + n] == (i >= 3 && i < 6));
            cr_assert(i < 3 || i >= 6 || data_int(&y, i * 4 + n) == data_int(&x, i * 4 + n) + s);
        }
        cr_assert(report.written[1].map[i] == (i == 4 || i == 5)); // the row before 3 is left out
        cr_assert(!report.written[1].map[i] || data_int(&r, i) == before);
    }
    cr_assert(!memchr(report.written[2].map, 1, 4) && !memchr(report.written[3].map, 1, 16));
    opts.nslices = 0;
    cr_assert(eval_kernel(arena, m, m->kernel[0], 5, args, &opts, &error), "%s", error);
    cr_assert(!memchr(report.written[3].map, 0, 16) && data_int(&c, 2) == data_int(&x, 2));
    arena_free(arena);
    data_free(&x), data_free(&y), data_free(&r), data_free(&c), data_free(&d);
}
