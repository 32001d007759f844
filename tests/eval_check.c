// Checks on textual IR: races that the front end never lets through, and the order of atomics.
#include "eval_support.h"

// Runs with checks; gives the reports.
static const char *reports(const char *text, int nargs, const EvalArg *args) {
    static char out[4096];
    Arena *arena = arena_new("test");
    Diags *found = diags_new(arena, source_map_new(arena), NULL);
    const char *said = run_with(text, &(EvalOptions){.check = found}, nargs, args);
    snprintf(out, sizeof out, "%s%s", said, diags_text(found, arena));
    arena_free(arena);
    return out;
}

static void check_reports(const char *body, const char *expect) {
    char text[2048];
    snprintf(text, sizeof text,
             "tir tensor sm_80\nkernel k(dim N, in @x: i32[%%N], inout @y: i32[%%N]) {\n"
             "  axis n of N\n%s\n}\n",
             body);
    Data x = data_ints(DT_I32, 4, (int64_t[]){0, 1, 2, 3}), y = data_new(DT_I32, 1, 4);
    const char *got = reports(text, ARGS(arg_of(&x), arg_of(&y)));
    cr_expect_str_eq(got, expect, "%s\nsaid\n%s", body, got);
    data_free(&x), data_free(&y);
}

Test(eval_check, races) {
    check_reports("  parallel %i in 0..%N {\n    %h = div %i, 2 : index; store @y[%h], 1:i32 }",
                  "error[race]: `y[0]` is written by two iterations: i = 1 and i = 0\n"
                  "note: the first of 2\n");
    check_reports(
        "  parallel n in 0..%N {\n    %z = load @y[0] : i32; store @y[n], %z }",
        "error[race]: `y[0]` is read here and written by another iteration: n = 1 and n = 0\n"
        "note: the first of 3\n");
    check_reports(
        "  parallel n in 0..%N {\n    %v = load @x[n] : i32[n]; %j = sub n, 1 : index[n]\n"
        "    store @y[n], %v; %w = load @y[%j] else 9:i32 : i32[n]; store @y[n], %w }",
        "error[race]: `y[0]` is read here and written by another iteration: n = 1 and n = 0\n"
        "note: the first of 3\n");
    check_reports("  %h = div N, 2 : index[N]; store @y[%h], 1:i32",
                  "error[race]: `y[0]` is written twice by one store\n"
                  "note: the first of 2\n");
    check_reports(
        "  axis m of N; parallel m in 0..%N {\n  parallel n in 0..%N {\n"
        "    %v = load @x[m] : i32[m]; store @y[n], %v } }",
        "error[race]: `y[0]` is written by two iterations: m = 1, n = 0 and m = 0, n = 0\n"
        "note: the first of 12\n");
}

// Within one iteration, by scatter, by atomics, in one grid after the other: no race.
Test(eval_check, no_races) {
    check_reports(
        "  parallel %i in 0..%N {\n    store @y[%i], 1:i32; %v = load @y[%i] : i32\n"
        "    store @y[%i], %v }\n"
        "  parallel %i.1 in 0..%N {\n    %j = sub 3, %i.1 : index; store @y[%j], 1:i32 }\n"
        "  parallel %i.2 in 0..%N {\n    scatter @y[0], 1:i32; atomic.add @y[1], 1:i32 }",
        "");
}

Test(eval_check, nothing_is_decided) {
    check_reports(
        "  @t = temp : i32[%N]\n"
        "  parallel %i in 0..%N {\n    %v = load @t[%i] : i32; %c = cmp.ne %v, 0:i32 : bool\n"
        "    if %c {\n store @y[%i], 1:i32 } }",
        "error[undetermined]: a condition or bound depends on what nothing determines, at i = 0\n"
        "note: the first of 4\n"
        "note[never-written]: `t[0]` is read, but nothing has written it, at i = 0\n"
        "note: the first of 4\n");
    check_reports("  @t = temp : i32[%N]; atomic.add @t[N], 1:i32; %v = load @t[N] : i32[N]\n"
                  "  store @y[N], %v",
                  "error[undetermined]: `y[0]` depends on what nothing determines\n"
                  "note: the first of 4\n"
                  "note[never-written]: `t[0]` is read, but nothing has written it, at N = 0\n"
                  "note: the first of 4\n");
    check_reports("  @t = temp : i32[%N]; %o = atomic.cas @t[N], 1:i32, 2:i32 : i32[N]\n"
                  "  store @y[N], %o",
                  "error[undetermined]: `y[0]` depends on what nothing determines\n"
                  "note: the first of 4\n"
                  "note[never-written]: `t[0]` is read, but nothing has written it, at N = 0\n"
                  "note: the first of 4\n");
}

Test(eval_check, late_stages_have_none) {
    static const char text[] =
        "tir scheduled sm_80\nkernel k(dim N, out @y: i32[%N]) {\n  axis n of N by 4\n"
        "  parallel n in 0..%N {\n    store @y[n], 1:i32 {det = [n], check = [0]} } }\n";
    Data y = data_new(DT_I32, 1, 6);
    cr_expect_str_eq(reports(text, ARGS(arg_of(&y))),
                     "kernel k: checks are of all of a kernel at stage tensor or nests");
    data_free(&y);
}

static double atomic_sum(const char *op, uint64_t seed) {
    char text[512];
    snprintf(text, sizeof text,
             "tir tensor sm_80\nkernel k(dim N, in @x: f32[%%N], inout @y: f32[1]) {\n"
             "  %%z = sub N, N : index[N]; %%v = load @x[N] : f32[N]; %s @y[%%z], %%v\n}\n",
             op);
    Data x = data_floats(DT_F32, 4, (double[]){16777216, 1, 1, -16777216}),
         y = data_new(DT_F32, 1, 1);
    const char *said = run_with(text, &(EvalOptions){.seed = seed}, ARGS(arg_of(&x), arg_of(&y)));
    cr_assert_str_empty(said);
    double sum = data_at(&y, 0);
    data_free(&x), data_free(&y);
    return sum;
}

// 2^24 + 1 is 2^24 in f32, so a sum of floats tells its order; so does a scatter.
Test(eval_check, seeds_order_atomics_and_scatters) {
    cr_expect(atomic_sum("atomic.add", 0) == 0 && atomic_sum("scatter", 0) == -16777216);
    unsigned sums = 0, kept = 0;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        double sum = atomic_sum("atomic.add", seed), last = atomic_sum("scatter", seed);
        cr_assert(sum == 0 || sum == 1 || sum == 2, "%g", sum);
        cr_expect(sum == atomic_sum("atomic.add", seed), "a seed repeats");
        sums |= 1u << (int)sum;
        kept |= last == 1 ? 1 : last > 0 ? 2 : 4;
    }
    cr_expect(sums == 7 && kept == 7, "%u %u", sums, kept);
}

// Of those that swap at one element the first succeeds: a seed decides who is.
Test(eval_check, seeds_order_swaps) {
    static const char text[] =
        "tir tensor sm_80\nkernel k(dim N, inout @y: i32[1], out @o: i32[%N]) {\n"
        "  %z = sub N, N : index[N]; %v = cast N : i32[N]; %w = add %v, 5:i32 : i32[N]\n"
        "  %old = atomic.cas @y[%z], 0:i32, %w : i32[N]; store @o[N], %old\n}\n";
    unsigned first = 0;
    for (uint64_t seed = 0; seed < 40; seed++) {
        Data y = data_new(DT_I32, 1, 1), o = data_new(DT_I32, 1, 3);
        const char *said =
            run_with(text, &(EvalOptions){.seed = seed}, ARGS(arg_of(&y), arg_of(&o)));
        cr_assert_str_empty(said);
        int64_t winner = data_int(&y, 0) - 5;
        cr_assert(winner >= 0 && winner < 3 && (seed || winner == 0));
        for (int i = 0; i < 3; i++)
            cr_expect(data_int(&o, i) == (i == winner ? 0 : winner + 5));
        first |= 1u << winner;
        data_free(&y), data_free(&o);
    }
    cr_expect(first == 7);
}
