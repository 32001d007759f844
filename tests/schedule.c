// Entries of schedules that say how a grid or a loop runs: what they become, by the public
// interface. That none of them changes a result: tests/corpus/numeric/schedule.fk.
#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/fusec.h"

static const char product[] = "kernel k(x: f16[M, K], w: f16[K, N]) -> (y: f16[M, N])\n"
                              "    schedule { M = 64; N = 64; K = 32; %s }\n"
                              "{\n"
                              "    y = dot[K](x, w);\n"
                              "}\n";

static FuseResult *compile(const char *text, const char *entry, const char *target, FuseEmit emit) {
    char source[2048];
    snprintf(source, sizeof source, text, entry);
    FuseOptions options = {.target = target, .emit = emit, .stop_after = NULL};
    if (emit == FUSE_EMIT_TILE)
        options.stop_after = "protocol";
    return fuse_compile(&options, "k.fk", source, strlen(source));
}

// The output has `has` and lacks `lacks` (either may be NULL).
static void check(const char *text, const char *entry, const char *target, FuseEmit emit,
                  const char *has, const char *lacks) {
    FuseResult *r = compile(text, entry, target, emit);
    cr_assert(fuse_result_ok(r), "%s", fuse_result_messages(r));
    size_t n;
    const char *out = fuse_result_output(r, &n);
    cr_expect(!has || strstr(out, has), "no `%s` in\n%s", has, out);
    cr_expect(!lacks || !strstr(out, lacks), "`%s` in\n%s", lacks, out);
    fuse_result_free(r);
}

static void check_tile(const char *entry, const char *target, const char *has, const char *lacks) {
    check(product, entry, target, FUSE_EMIT_TILE, has, lacks);
}

static void refuse(const char *text, const char *entry, const char *target, const char *message) {
    FuseResult *r = compile(text, entry, target, FUSE_EMIT_TILE);
    cr_expect(!fuse_result_ok(r), "%s is compiled", entry);
    cr_expect(strstr(fuse_result_messages(r), message), "%s", fuse_result_messages(r));
    fuse_result_free(r);
}

Test(schedule, order) {
    check_tile("", "sm_80", "order.grouped %pid, %cdiv, %cdiv.1 {group = 8}", NULL);
    check_tile("order = grouped(3);", "sm_80", "{group = 3}", NULL);
    check_tile("order = row;", "sm_80", "order.row %pid", NULL);
    check_tile("order = longest;", "cpu", "order.longest %pid", NULL);
}

Test(schedule, persistent) {
    check_tile("persistent = true;", "sm_80", "for %t in %pid..%mul", NULL);
    check_tile("persistent = true;", "cpu", "sms {entry = \"k_v0__1\"}",
               NULL); // 0 copies w into panels
    check_tile("persistent = false;", "sm_80", NULL, "sms");
    check(product, "persistent = true;", "sm_80", FUSE_EMIT_PTX,
          "//!   %sms = sms {entry = ", NULL);
}

Test(schedule, cluster) {
    static const char own[] = "kernel k(x: f16[M, K], w: f16[K, N]) -> (y: f16[M, N])\n"
                              "    schedule sm_90a { cluster = 2; } %s { y = dot[K](x, w); }\n";
    check(product, "cluster = 2;", "sm_90a", FUSE_EMIT_PTX, ".reqnctapercluster 2", NULL);
    check(product, "", "sm_90a", FUSE_EMIT_PTX, NULL, "cluster");
    check(own, "", "sm_90a", FUSE_EMIT_TILE, "cluster = 2", NULL);
    check(own, "", "sim-sm_90a", FUSE_EMIT_TILE, "cluster = 2", NULL);
    check(own, "", "sm_80", FUSE_EMIT_TILE, NULL, "cluster");
    check_tile("cluster = 2;", "cpu", NULL, "cluster");
    refuse(product, "cluster = 2;", "sm_80",
           "k.fk:2:40: error[bad-schedule]: `cluster`: sm_80 has no clusters; sm_90 is the first "
           "that has");
    refuse(product, "cluster = 2;", "sim-sm_80", "sim-sm_80 has no clusters");
}

static int count(const char *text, const char *word) {
    int n = 0;
    for (const char *at = strstr(text, word); at; at = strstr(at + 1, word))
        n++;
    return n;
}

static int products_in(const char *entry) {
    FuseResult *r = compile(product, entry, "sm_80", FUSE_EMIT_PTX);
    cr_assert(fuse_result_ok(r), "%s", fuse_result_messages(r));
    size_t size;
    int n = count(fuse_result_output(r, &size), "mma.sync");
    fuse_result_free(r);
    return n;
}

// Three times the body, and once for what is left.
Test(schedule, unroll) {
    int once = products_in("");
    cr_expect(once > 0);
    cr_expect_eq(products_in("unroll(K) = 3;"), 4 * once);
    cr_expect_eq(products_in("unroll = 2;"), 3 * once);
    cr_expect_eq(products_in("unroll(M) = 2;"), once, "no loop walks it");
}

Test(schedule, split) {
    check_tile("split(K) = 4;", "sm_80", "@part = temp : f32[4, %M, %N]", NULL);
    check_tile("split(K) = 1;", "sm_80", NULL, "temp");
    // parts are whole tiles: their ends need no masks of their own
    check_tile("split(K) = 4;", "sm_80", "engine = cp_async", "select");
    // the nest that adds up has sizes of its own
    check_tile("split(K) = 4;", "sm_80", "axis n.1 of N by 512", NULL);
}

Test(schedule, sizes) {
    static const char rows[] =
        "kernel k(x: f32[M, N]) -> (y: f32[M, N]) schedule { n = 96; %s } {\n"
        "    parallel m in 0..M, n in tiles(N) { y[m, n] = 2 * x[m, n]; }\n"
        "}\n";
    check(rows, "", "sm_80", FUSE_EMIT_TILE, "axis n of N by 96", NULL);
    check(rows, "", "cpu", FUSE_EMIT_TILE, "axis n of N by 64", NULL);
}

// A size that nothing in the nest sees is only a bound on the CPU, where tiles are unrolled.
Test(schedule, given_sizes_on_the_cpu) {
    static const char rows[] = "kernel k(x: f32[M, N]) -> (y: f32[M, N]) {\n"
                               "    parallel m in tiles(M, 24), n in tiles(N, 1024) {\n"
                               "        y[m, n] = 2 * x[m, n]%s;\n"
                               "    }\n"
                               "}\n";
    check(rows, "", "cpu", FUSE_EMIT_TILE, "axis m of M by 1", NULL);
    check(rows, "", "cpu", FUSE_EMIT_TILE, NULL, "axis n of N by 1024");
    check(rows, "", "sm_90a", FUSE_EMIT_TILE, "axis m of M by 24", NULL);
    check(rows, " + (begin(m) as f32)", "cpu", FUSE_EMIT_TILE, "axis m of M by 24", NULL);
    check(rows, " + sum[m](x[m, n])", "cpu", FUSE_EMIT_TILE, "axis m of M by 24", NULL);
    static const char little[] = "kernel k(x: f32[M, N]) -> (y: f32[M, N]) {\n"
                                 "    parallel m in tiles(M), n in tiles(N, 3) {\n"
                                 "        y[m, n] = 2 * x[m, n];%s\n"
                                 "    }\n"
                                 "}\n";
    check(little, "", "cpu", FUSE_EMIT_TILE, "axis n of N by 2", NULL);
    static const char sums[] =
        "kernel k(x: f32[M, K], w: f32[K, N]) -> (y: f32[M, N], z: i32[1]) {\n"
        "    parallel m in tiles(M, 64), n in tiles(N, 64) {\n"
        "        var s: f32[m, n] = 0, c = 0;\n"
        "        for k in tiles(K, 24) { s += dot[k](x[m, k], w[k, n]); %s }\n"
        "        y[m, n] = s;\n"
        "    }\n"
        "}\n";
    check(sums, "", "cpu", FUSE_EMIT_TILE, NULL, "axis m of M by 64");
    check(sums, "", "cpu", FUSE_EMIT_TILE, "axis k of K by 1\n", NULL);
    check(sums, "c += 1; s += c as f32;", "cpu", FUSE_EMIT_TILE, "axis k of K by 24", NULL);
    check(sums, "s += 1;", "cpu", FUSE_EMIT_TILE, "axis k of K by 24", NULL);
    check(sums, "s = 2 * s;", "cpu", FUSE_EMIT_TILE, "axis k of K by 24", NULL);
    check(sums, "atomic z[0] += 1;", "cpu", FUSE_EMIT_TILE, "axis k of K by 24", NULL);
    check(sums, "", "sm_80", FUSE_EMIT_TILE, "axis k of K by 24", NULL);
    // the sum so far, and the new one in a region of its own
    static const char partial[] = "kernel k(x: f32[M, K], f: i32) -> (y: f32[M], r: f32[M, K]) {\n"
                                  "    parallel m in tiles(M) {\n"
                                  "        var s: f32[m] = 0;\n"
                                  "        for k in tiles(K, 24) { %s }\n"
                                  "        y[m] = s;\n"
                                  "    }\n"
                                  "}\n";
    check(partial, "r[m, k] = s; s += dot[k](x[m, k], x[m, k]);", "cpu", FUSE_EMIT_TILE,
          "axis k of K by 24", NULL);
    check(partial, "s += dot[k](x[m, k], x[m, k]); if f > 0 { r[m, k] = s; } else { r[m, k] = 0; }",
          "cpu", FUSE_EMIT_TILE, "axis k of K by 24", NULL);
}

// What the source gives leaves less for the others, in registers and in the sizes that are chosen.
Test(schedule, sizes_beside_given_ones) {
    static const char held[] = "kernel k(x: f32[M, N, E]) -> (y: f32[M, N, E]) {\n"
                               "    parallel m in tiles(M), n in tiles(N, 64) {\n"
                               "        axis e in E;\n"
                               "        y[m, n, e] = x[m, n, e] - max[e](x[m, n, e]);%s\n"
                               "    }\n"
                               "}\n";
    check(held, "", "sm_90a", FUSE_EMIT_TILE, "axis e.1 of e in 0..%E by 256", "in 0..%E by 1024");
    check(held, "", "sm_90a", FUSE_EMIT_TILE, "warps = 8", NULL); // 64 elements a thread
    check(held, "", "sm_90a", FUSE_EMIT_TILE, "axis e.1 of e by 32", NULL);
    static const char spread[] = "kernel k(x: f32[M]) -> (y: f32[M, N, E]) {\n"
                                 "    parallel m in tiles(M, 64), n in tiles(N, 16) {\n"
                                 "        axis e in E;\n"
                                 "        y[m, n, e] = x[m];%s\n"
                                 "    }\n"
                                 "}\n";
    check(spread, "", "sm_90a", FUSE_EMIT_TILE, NULL, "in 0..%E by 1024");
    static const char loop[] = "kernel k(x: f32[M, N, K]) -> (y: f32[M, N, K]) %s {\n"
                               "    parallel m in tiles(M, 4), n in tiles(N) {\n"
                               "        for k in tiles(K) { y[m, n, k] = 2 * x[m, n, k]; }\n"
                               "    }\n"
                               "}\n";
    check(loop, "schedule { n = 64; }", "sm_90a", FUSE_EMIT_TILE, "axis k of K by 8", NULL);
    static const char rows[] = "kernel k(x: f32[M, N]) -> (y: f32[M, N]) {\n"
                               "    parallel m in tiles(M, 64), n in tiles(N) {\n"
                               "        y[m, n] = 2 * x[m, n];%s\n"
                               "    }\n"
                               "}\n";
    check(rows, "", "sm_90a", FUSE_EMIT_TILE, "axis n of N by 32", "axis n of N by 512");
}

#define ROWS "kernel k(x: f32[M, N]) -> (y: f32[M], z: f32[M, N]) schedule { split(i) = 4; } {\n"
#define NEST                                                                                       \
    ROWS "    parallel m in tiles(M) {\n        var a: f32[m] = 0, b: f32[m] = 0;\n        %s\n"
#define END "        y[m] = a + b;\n    }\n}\n"

static void refuse_loop(const char *loop, const char *message) {
    char text[256];
    snprintf(text, sizeof text, "error[bad-schedule]: `split(i)`: %s", message);
    refuse(NEST END, loop, "sm_80", text);
    refuse(NEST END, loop, "cpu", text);
}

Test(schedule, split_of_what_is_no_sum) {
    check(NEST END, "for i in 0..N { a += x[m, i]; if x[0, i] > 1 { b -= x[m, i]; } }", "sm_80",
          FUSE_EMIT_TILE, "temp", NULL);
    refuse_loop("for i in tiles(N) { a = max(a, max[i](x[m, i])); }",
                "only sums can be added up from parts; `a`, which the loop carries, is more than a "
                "sum: it goes through max");
    refuse_loop("for i in 0..N { a += x[m, i]; b += a; }",
                "only sums can be added up from parts; `b`");
    refuse_loop("for i in 0..N { let t = a + x[m, i]; a = b; b = t; }",
                "only sums can be added up from parts; `a`, which the loop carries, is more than a "
                "sum");
    refuse_loop("for i in 0..N { if x[0, i] > 0 { a += x[m, i]; } else { a = 0; } }",
                "only sums can be added up from parts");
    refuse_loop("for i in 0..N { a = 2 * a + x[m, i]; }", "only sums can be added up from parts");
    refuse_loop("for i in 0..N { if i > 7 { break; } a += x[m, i]; }",
                "a `break` may leave the loop");
    refuse_loop("for r in 0..2 { for i in 0..N { a += x[m, i]; } }",
                "the loop is in another loop or condition of its nest");
    refuse_loop("for i in 0..N { a += x[m, i]; z[m, i] = 0; }",
                "the loop, or what its nest does before it, writes to memory");
    refuse_loop("for i in N..0 step -1 { a += x[m, i]; }",
                "the loop's step is not a positive number");
    refuse_loop("axis i in N; a += sum[i](x[m, i]);", "no loop walks `i`");
    refuse(
        "kernel k(x: f32[M, N]) -> (y: f32[N]) schedule { split(i) = 4; } {\n"
        "    parallel n in tiles(N) { var a: f32 = 0; for i in 0..M { a += x[i, 0]; } y[n] = a; }\n"
        "}%s\n",
        "", "sm_80", "what the loop carries does not extend along `n`");
}
