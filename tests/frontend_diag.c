/* Wrong programs: the exact report of each one in tests/corpus/diag.
 *
 * A file is a list of cases: a line `=== name`, the text, a line `---`, the report. With
 * FUSE_UPDATE set the reports are written anew; read the difference before committing it.
 */
#include "frontend_support.h"

#include <dirent.h>

/* Cuts `text` before `mark`; gives what follows it, or NULL. */
static char *cut(char *text, const char *mark) {
    char *at = strstr(text, mark);
    if (!at)
        return NULL;
    at[0] = '\0';
    return at + strlen(mark);
}

static bool seen[DIAG_COUNT_];

static char *report_of(Arena *arena, const char *text) {
    Front f = front_new();
    front_lower(&f, "t.fk", text, NULL);
    for (uint32_t i = 0; i < diags_count(f.diags); i++)
        seen[diag_id(diags_at(f.diags, i))] = true;
    char *report = arena_strdup(arena, diags_text(f.diags, f.arena));
    front_free(&f);
    return report;
}

static uint32_t check_file(const char *name) {
    Arena *arena = arena_new("cases");
    char *path = arena_printf(arena, "tests/corpus/diag/%s", name);
    char *rest = front_read(arena, path), *updated = arena_strdup(arena, "");
    cr_assert_not_null(rest, "%s", path);
    rest = cut(rest, "=== ");
    uint32_t count = 0;
    while (rest) {
        char *title = rest, *text = cut(title, "\n");
        cr_assert_not_null(text);
        rest = cut(text, "\n=== ");
        char *expected = cut(text, "\n---\n");
        char *report = report_of(arena, text);
        cr_expect(*report, "%s/%s is accepted", name, title);
        if (!front_updates())
            cr_expect(expected && !strcmp(report, expected), "%s/%s:\n%s", name, title, report);
        updated = arena_printf(arena, "%s%s=== %s\n%s\n---\n%s", updated, count ? "\n" : "", title,
                               text, report);
        count++;
    }
    if (front_updates())
        front_write(arena, path, updated);
    arena_free(arena);
    return count;
}

/* The ids of syntax errors, from their goldens, which tests/lang_errors.c checks. */
static void see_syntax_errors(Arena *arena) {
    const char *text = front_read(arena, "tests/corpus/syntax_errors.txt");
    cr_assert_not_null(text);
    for (uint32_t id = 0; id < DIAG_COUNT_; id++)
        seen[id] |= strstr(text, arena_printf(arena, "[%s]: ", diag_id_name((DiagId)id))) != NULL;
}

/* Ids that no text alone gives, and where they are tested. */
static const struct {
    DiagId id;
    const char *where;
} elsewhere[] = {
    {DIAG_BAD_UTF8, "bytes that are no text: tests/lang_scan.c"},
    {DIAG_FILE_SIZE, "a file of 256 MiB: tests/explain_error.c"},
    {DIAG_AMBIGUOUS, "two modules of one's own: tests/frontend_golden.c"},
    {DIAG_BAD_DEFINE, "-D: tests/frontend_golden.c"},
    {DIAG_BAD_TARGET, "--target: tests/explain_error.c"},
    {DIAG_BAD_IR, "text of the IR: tests/explain_error.c"},
    {DIAG_BAD_WARNING, "-W: tests/explain_error.c"},
    {DIAG_NO_KERNEL, "the driver: tests/explain_error.c"},
    {DIAG_NOT_DETERMINISTIC, "--deterministic: tests/driver_checks.c"},
    {DIAG_UNDETERMINED, "--check: tests/driver_checks.c"},
    {DIAG_SEGMENTS, "--check: tests/driver_checks.c"},
    {DIAG_INDEX_OVERFLOW, "--check: tests/driver_checks.c"},
    {DIAG_WRAPS, "--check: tests/driver_checks.c"},
    {DIAG_SHIFT_WIDTH, "--check: tests/driver_checks.c"},
    {DIAG_STEP_ZERO, "--check: tests/driver_checks.c"},
    {DIAG_NAN_TO_INTEGER, "--check: tests/driver_checks.c"},
    {DIAG_OUTSIDE, "--check: tests/driver_checks.c"},
    {DIAG_PARTLY_WRITTEN, "--check: tests/driver_checks.c"},
    {DIAG_TOO_LARGE, "tests/limits.c, tests/guard.c"},
    {DIAG_INTERNAL, "no text should give it"},
    {DIAG_UNSUPPORTED, "what it is about changes"},
};

static bool is_elsewhere(DiagId id) {
    for (size_t i = 0; i < sizeof elsewhere / sizeof *elsewhere; i++)
        if (elsewhere[i].id == id)
            return true;
    DiagSeverity severity = diag_id_severity(id);
    return severity == DIAG_SEVERITY_PERF || severity == DIAG_SEVERITY_NOTE; /* tests/explain.c */
}

Test(frontend_diag, corpus) {
    uint32_t count = 0;
    DIR *folder = opendir(FUSE_SOURCE_DIR "/tests/corpus/diag");
    cr_assert_not_null(folder);
    for (struct dirent *e; (e = readdir(folder));)
        if (e->d_name[0] != '.')
            count += check_file(e->d_name);
    closedir(folder);
    cr_expect(count >= 350, "%u cases", count);
    Arena *arena = arena_new("ids");
    see_syntax_errors(arena);
    for (uint32_t id = 0; id < DIAG_COUNT_; id++)
        cr_expect(seen[id] || is_elsewhere((DiagId)id), "no program gives %s",
                  diag_id_name((DiagId)id));
    arena_free(arena);
}
