// Files of many launches: one text, in order, the same on any number of threads.
#include <criterion/criterion.h>

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/fusec.h"

// Some variants use shared memory and some do not; the first does not.
static const char source[] = "import std.nn;\n"
                             "kernel s(x: f16[M, N]) -> (y: f16[M, N]) { y = softmax[N](x); }\n"
                             "kernel a(x: f16[N]) -> (y: f16[N]) { y = 2 * x; }\n";

static char *compile(FuseOptions options, size_t *len) {
    options.target = "sm_80";
    options.opt_level = 2;
    FuseResult *r = fuse_compile(&options, "k.fk", source, strlen(source));
    cr_assert(fuse_result_ok(r), "%s", fuse_result_messages(r));
    const char *text = fuse_result_output(r, len);
    char *copy = malloc(*len + 1);
    memcpy(copy, text, *len);
    copy[*len] = 0;
    fuse_result_free(r);
    return copy;
}

static int count_of(const char *text, const char *part) {
    int n = 0;
    for (const char *p = strstr(text, part); p; p = strstr(p + 1, part))
        n++;
    return n;
}

// Every launch of the plan is an entry, in the plan's order.
static void check_order(const char *ptx) {
    int launches = 0;
    const char *code = strstr(ptx, "\n.version ");
    cr_assert(code);
    for (const char *at = strstr(ptx, "entry = \""); at && at < code;
         at = strstr(at + 1, "entry = \"")) {
        char mark[160];
        const char *name = at + strlen("entry = \"");
        snprintf(mark, sizeof mark, ".visible .entry %.*s(", (int)strcspn(name, "\""), name);
        code = strstr(code, mark);
        cr_assert(code, "%s is missing or not in order", mark);
        launches++;
        if (strstr(at, "\n.version ") == NULL)
            break;
    }
    cr_expect(launches >= 8, "%d launches", launches);
}

Test(backend_jobs, one_text) {
    size_t len;
    char *ptx = compile((FuseOptions){.emit = FUSE_EMIT_PTX}, &len);
    cr_expect_eq(strlen(ptx), len);
    cr_expect_eq(count_of(ptx, "\n.version "), 1);
    cr_expect_eq(count_of(ptx, "\n.target "), 1);
    cr_expect_eq(count_of(ptx, "\n.address_size "), 1);
    cr_expect_eq(count_of(ptx, "\n.extern .shared "), 1);
    cr_expect(strstr(ptx, "\n.extern .shared ") < strstr(ptx, ".entry"));
    check_order(ptx);
    free(ptx);
}

Test(backend_jobs, same_on_one_thread) {
    size_t len, one_len;
    char *all = compile((FuseOptions){.emit = FUSE_EMIT_PTX}, &len);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    cr_assert_eq(sched_setaffinity(0, sizeof one, &one), 0);
    char *single = compile((FuseOptions){.emit = FUSE_EMIT_PTX}, &one_len);
    cr_expect(len == one_len && memcmp(all, single, len) == 0);
    free(single);
    free(all);
}

// File numbers of line information are a module's: then there is one module.
Test(backend_jobs, line_information) {
    size_t len;
    char *ptx = compile((FuseOptions){.emit = FUSE_EMIT_PTX, .line_info = true}, &len);
    cr_expect_eq(count_of(ptx, "\t.file\t1 "), 1);
    cr_expect(count_of(ptx, "\t.loc\t1 ") > 0);
    check_order(ptx);
    free(ptx);
}

Test(backend_jobs, llvm_ir) {
    size_t len;
    char *text = compile((FuseOptions){.emit = FUSE_EMIT_LLVM}, &len);
    int launches = count_of(text, "\ndefine ");
    cr_expect(launches >= 8);
    cr_expect_eq(count_of(text, "; --- module "), 7);
    free(text);
}

// The product of all variants whose only difference is how the rows of the softmax are held.
Test(backend_jobs, variants_share_code) {
    static const char text[] = "import std.nn;\n"
                               "kernel k(x: f16[M, K], w: f16[K, N]) -> (y: f16[M, N]) {\n"
                               "    y = softmax[N](dot[K](x, w));\n"
                               "}\n";
    FuseOptions options = {.target = "sm_80", .emit = FUSE_EMIT_PTX, .no_perf_notes = true};
    FuseResult *r = fuse_compile(&options, "k.fk", text, strlen(text));
    cr_assert(fuse_result_ok(r), "%s", fuse_result_messages(r));
    size_t len;
    const char *ptx = fuse_result_output(r, &len);
    const char *code = strstr(ptx, "\n.version ");
    cr_assert(code);
    int launches = 0;
    for (const char *p = ptx; (p = strstr(p + 1, "entry = \"")) != NULL && p < code;)
        launches++;
    int entries = count_of(ptx, ".visible .entry ");
    cr_expect(entries < launches, "%d functions of %d launches", entries, launches);
    // The first variant's product is launched by others, and is there once.
    cr_expect(count_of(ptx, "entry = \"k_v0__0\"") > 1, "%s", ptx);
    cr_expect_eq(count_of(ptx, ".visible .entry k_v0__0("), 1);
    fuse_result_free(r);
}
