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
    check_tile("persistent = true;", "cpu", "sms {entry = \"k_v0__0\"}", NULL);
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
