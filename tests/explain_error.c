// `--explain-error`: the wrong program of each id gives that id and no other, the right one
// nothing.
#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "include/fusec.h"
#include "tools/cubin.h"

// Ids that no program alone shows.
static const char *const without[][2] = {
    {"bad-utf8", "its bytes are no text: tests/lang_scan.c"},
    {"file-size", "256 MiB: below"},
    {"too-many", "long lists: tests/limits.c"},
    {"too-large", "code: tests/limits.c, memory: tests/guard.c"},
    {"too-deep", "a thousand brackets: tests/corpus/diag/calls.txt, tests/lang_parse.c"},
    {"ambiguous", "needs modules of one's own: tests/frontend_golden.c"},
    {"bad-define", "needs -D: tests/frontend_golden.c"},
    {"plain-copy", "depends on a target's copies: tests/explain.c"},
    {"narrow-access", "depends on a target's accesses: tests/explain.c"},
    {"layout-conversion", "depends on a target's layouts: tests/explain.c"},
    {"through-memory", "depends on what is fused: tests/explain.c"},
    {"fused", "--explain: tests/explain.c"},
    {"kept", "--explain: tests/explain.c"},
    {"variant", "--explain: tests/explain.c"},
    {"schedule", "--explain: tests/explain.c"},
    {"staged", "--explain: tests/explain.c"},
    {"whole-axis", "--explain: tests/explain.c"},
    {"bad-target", "needs an option: below"},
    {"bad-ir", "text of the IR: below"},
    {"bad-warning", "needs an option: below"},
    {"not-deterministic", "needs an option: tests/driver_checks.c"},
    {"undetermined", "--check: tests/driver_checks.c"},
    {"segments", "--check: tests/driver_checks.c"},
    {"index-overflow", "--check: tests/driver_checks.c"},
    {"never-written", "--check: tests/driver_checks.c"},
    {"division-by-zero", "--check: tests/driver_checks.c"},
    {"wraps", "--check: tests/driver_checks.c"},
    {"shift-width", "--check: tests/driver_checks.c"},
    {"step-zero", "--check: tests/driver_checks.c"},
    {"nan-to-integer", "--check: tests/driver_checks.c"},
    {"outside", "--check: tests/driver_checks.c"},
    {"partly-written", "--check: tests/driver_checks.c"},
    {"internal", "no text should give it"},
    {"unsupported", "what it is about changes"},
};

static bool is_without(const char *id) {
    for (size_t i = 0; i < sizeof without / sizeof *without; i++)
        if (!strcmp(without[i][0], id))
            return true;
    return false;
}

static FuseOptions options_of(void) {
    static const char *const defines[] = {NULL};
    return (FuseOptions){
        .target = "sm_80", .emit = FUSE_EMIT_TILE, .stop_after = "layouts", .defines = defines};
}

// Every id in `text`, messages as they are printed: "severity[id]".
static bool gives_only(const char *text, const char *id) {
    static const char *const severities[] = {"error[", "warning[", "perf[", "note["};
    bool found = false;
    for (size_t s = 0; s < 4; s++)
        for (const char *at = text; (at = strstr(at, severities[s]));) {
            at += strlen(severities[s]);
            size_t n = strcspn(at, "]");
            if (strlen(id) != n || strncmp(at, id, n))
                return false;
            found = true;
        }
    return found;
}

// Spills show when the PTX is assembled. NULL: there is no ptxas.
static FuseResult *compile_and_assemble(FuseOptions options, const char *text) {
    options.emit = FUSE_EMIT_PTX;
    options.stop_after = NULL;
    FuseResult *r = fuse_compile(&options, "k.fk", text, strlen(text));
    size_t len;
    const char *ptx = fuse_result_output(r, &len);
    Cubin cubin = {0};
    cr_assert(fuse_result_ok(r), "%s", fuse_result_messages(r));
    bool ok = cubin_make(ptx, len, options.target, false, &cubin);
    cr_assert(ok || cubin.no_tools, "%s", cubin.error);
    cr_expect(!ok || cubin.nfunction == 2);
    fuse_result_note_use(r, cubin.nfunction, cubin.function);
    cubin_free(&cubin);
    if (ok)
        return r;
    fprintf(stderr, "no ptxas here: PTX is not assembled\n");
    fuse_result_free(r);
    return NULL;
}

static FuseResult *compile_example(const FuseOptions *options, const char *id, const char *text) {
    if (strcmp(id, "spills") == 0)
        return compile_and_assemble(*options, text);
    return fuse_compile(options, "k.fk", text, strlen(text));
}

Test(explain_error, examples) {
    FuseOptions options = options_of();
    for (int i = 0; fuse_diagnostic_at(i); i++) {
        const char *id = fuse_diagnostic_at(i), *wrong = fuse_explain_example(id, false);
        const char *right = fuse_explain_example(id, true);
        cr_expect_eq(wrong == NULL, is_without(id), "%s", id);
        if (!wrong)
            continue;
        // Performance notes count where they are what is explained.
        const char *const flags[] = {"no-perf", fuse_is_warning_flag(id) ? id : NULL, NULL};
        options.warnings = flags;
        FuseResult *r = compile_example(&options, id, wrong);
        if (!r)
            continue;
        cr_expect(gives_only(fuse_result_messages(r), id), "%s, the wrong one:\n%s", id,
                  fuse_result_messages(r));
        fuse_result_free(r);
        r = compile_example(&options, id, right);
        cr_expect(fuse_result_ok(r) && !*fuse_result_messages(r), "%s, the right one:\n%s", id,
                  fuse_result_messages(r));
        fuse_result_free(r);
    }
}

static void check_id(FuseOptions options, const char *source, const char *id) {
    FuseResult *r = fuse_compile(&options, "t.fk", source, strlen(source));
    cr_expect(!fuse_result_ok(r) && gives_only(fuse_result_messages(r), id), "%s:\n%s", id,
              fuse_result_messages(r));
    fuse_result_free(r);
}

// What depends on options.
Test(explain_error, options) {
    static const char source[] = "kernel k(x: f32[N]) -> (y: f32[N]) { y = x; }\n";
    static const char *const flags[] = {"no-overflow", "no-such", NULL};
    FuseOptions options = options_of();
    options.target = "sm_1";
    check_id(options, source, "bad-target");
    options = options_of();
    options.target = "cpu";
    options.emit = FUSE_EMIT_PTX;
    check_id(options, source, "bad-target");
    options = options_of();
    check_id(options, "tir nonsense", "bad-ir");
    check_id(options, "kernel k(x: f32[N]) -> (y: f32[N]) schedule sm_91 { N = 64; } { y = x; }\n",
             "bad-schedule");
    options.warnings = flags;
    check_id(options, source, "bad-warning");
    // Its length alone is looked at.
    options = options_of();
    FuseResult *r = fuse_compile(&options, "t.fk", source, (size_t)1 << 32);
    cr_expect(gives_only(fuse_result_messages(r), "file-size"), "%s", fuse_result_messages(r));
    fuse_result_free(r);
    cr_expect_null(fuse_explain_error("no-such"));
    cr_expect_null(fuse_explain_title("no-such"));
    cr_expect_null(fuse_explain_example("no-such", true));
}
