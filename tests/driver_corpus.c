/* What the command line says: the exact standard error and exit code of each case in
 * tests/corpus/driver; and every id of lang/base/diags.def is in some exact text of the tests.
 *
 * A file is a list of cases: a line `=== name`, the script of a shell in a new folder, a line
 * `---`, what it wrote on standard error and `exit N`. With FUSE_UPDATE set the reports are written
 * anew; read the difference before committing it.
 */
#include "tests/command.h"
#include "lang/base/diag.h"

#include <dirent.h>
#include <stdbool.h>

static char *cut(char *text, const char *mark) {
    char *at = strstr(text, mark);
    if (!at)
        return NULL;
    *at = '\0';
    return at + strlen(mark);
}

/* Standard error of a script, and `exit N`; the caller's to free. */
static char *report_of(const char *script) {
    char *folder = folder_make(), path[256], line[512], *text;
    snprintf(path, sizeof path, "%s/.script", folder);
    FILE *f = fopen(path, "w");
    cr_assert(f && fputs(script, f) >= 0 && fputs("\n", f) >= 0 && fclose(f) == 0);
    snprintf(line, sizeof line,
             "cd %s && PATH=$(dirname " FUSEC_PROGRAM "):$PATH sh .script 2>&1 >/dev/null", folder);
    int code = run_command(line, &text);
    size_t n = strlen(text);
    char *report = calloc(1, n + 32);
    cr_assert_not_null(report);
    snprintf(report, n + 32, "%sexit %d\n", text, code);
    free(text);
    folder_free(folder);
    return report;
}

static int check_file(const char *path) {
    bool update = getenv("FUSE_UPDATE") != NULL;
    char *all = file_text(path), *rest = cut(all, "=== ");
    FILE *out = update ? fopen(path, "w") : NULL;
    int count = 0;
    for (; rest; count++) {
        char *title = rest, *script = cut(title, "\n");
        cr_assert_not_null(script, "%s", title);
        rest = cut(script, "\n=== ");
        char *expected = cut(script, "\n---\n"), *report = report_of(script);
        if (out)
            fprintf(out, "%s=== %s\n%s\n---\n%s", count ? "\n" : "", title, script, report);
        else
            cr_expect(expected && !strcmp(report, expected), "%s:\n%s", title, report);
        free(report);
    }
    if (out)
        fclose(out);
    free(all);
    return count;
}

Test(driver_corpus, cases) {
    cr_expect(check_file(FUSE_SOURCE_DIR "/tests/corpus/driver/options.txt") >= 10);
}

/* Whether a file, or a file of a folder, has "[id]: ". */
static bool has_id(const char *path, const char *id) {
    char mark[64], full[512];
    snprintf(mark, sizeof mark, "[%s]: ", id);
    DIR *dir = opendir(path);
    if (!dir) {
        char *text = file_text(path);
        bool found = strstr(text, mark);
        free(text);
        return found;
    }
    bool found = false;
    for (struct dirent *e; !found && (e = readdir(dir));) {
        snprintf(full, sizeof full, "%s/%s", path, e->d_name);
        found = e->d_name[0] != '.' && has_id(full, id);
    }
    closedir(dir);
    return found;
}

/* Where the exact reports are. */
static const char *const places[] = {
    "corpus/diag", "corpus/syntax_errors.txt", "corpus/driver", "driver_checks.c", "explain.c",
    "limits.c",
};

/* Ids without an exact report. */
static const struct {
    DiagId id;
    const char *why;
} without[] = {
    {DIAG_INTERNAL, "no program should give it"},
    {DIAG_FILE_SIZE, "needs a file of gigabytes: tests/explain_error.c gives its length alone"},
};

static bool is_without(DiagId id) {
    for (size_t i = 0; i < sizeof without / sizeof *without; i++)
        if (without[i].id == id)
            return true;
    return false;
}

Test(driver_corpus, ids) {
    if (getenv("FUSE_UPDATE")) // the other test is writing its files
        return;
    for (int id = 0; id < DIAG_COUNT_; id++) {
        bool found = false;
        char path[256];
        for (size_t i = 0; !found && i < sizeof places / sizeof *places; i++) {
            snprintf(path, sizeof path, FUSE_SOURCE_DIR "/tests/%s", places[i]);
            found = has_id(path, diag_id_name((DiagId)id));
        }
        cr_expect(found != is_without((DiagId)id), "[%s] is %s an exact report",
                  diag_id_name((DiagId)id), found ? "in" : "in no test as");
    }
}
