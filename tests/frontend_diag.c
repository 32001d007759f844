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

static char *report_of(Arena *arena, const char *text) {
    Front f = front_new();
    front_lower(&f, "t.fk", text, NULL);
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

Test(frontend_diag, corpus) {
    uint32_t count = 0;
    DIR *folder = opendir(FUSE_SOURCE_DIR "/tests/corpus/diag");
    cr_assert_not_null(folder);
    for (struct dirent *e; (e = readdir(folder));)
        if (e->d_name[0] != '.')
            count += check_file(e->d_name);
    closedir(folder);
    cr_expect(count >= 250, "%u cases", count);
}
