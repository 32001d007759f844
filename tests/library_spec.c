/* The library's tables in lang/SPEC.md and the .fk files of stdlib/std agree: every function stands
 * there with its signature, every row is a function, every constant of the prelude is named. Every
 * declaration has a doc comment.
 */
#include "tests/command.h"

#include <dirent.h>
#include <stdbool.h>

/* The part of SPEC.md from the heading of the library to the next one. */
static char *library_section(char *spec) {
    char *start = strstr(spec, "\n### The library\n");
    cr_assert_not_null(start);
    char *end = strstr(start + 1, "\n## ");
    cr_assert_not_null(end);
    *end = '\0';
    return start;
}

/* Bytes of "name[axes](parameters)": up to the bracket that closes the parameters. */
static size_t signature_length(const char *text) {
    size_t n = strcspn(text, "(\n");
    int depth = 0;
    for (; text[n] && text[n] != '\n'; n++) {
        depth += text[n] == '(' ? 1 : text[n] == ')' ? -1 : 0;
        if (depth == 0)
            return n + 1;
    }
    return 0;
}

/* What begins at the start of a line behind `word`; NULL at the end. */
static const char *next_line(const char *text, const char *word) {
    for (const char *at = text; (at = strstr(at, word)); at++)
        if (at[-1] == '\n')
            return at + strlen(word);
    return NULL;
}

/* Whether the line above the declaration whose name is at `at` begins with `///`. */
static bool documented(const char *text, const char *at) {
    const char *line = at;
    for (int lines = 0; lines < 2; lines++) // the declaration's start, then that of the line above
        for (line -= lines; line > text && line[-1] != '\n';)
            line--;
    return strncmp(line, "/// ", 4) == 0;
}

/* Counts the functions of a module, all of which the section has in the module's table. */
static int check_module(const char *section, const char *name) {
    char path[1024], heading[320], row[512];
    snprintf(path, sizeof path, FUSE_SOURCE_DIR "/stdlib/std/%s.fk", name);
    snprintf(heading, sizeof heading, "\n| `std.%s`", name);
    char *text = file_text(path);
    const char *table = strstr(section, heading);
    cr_assert_not_null(table, "SPEC.md has no table of std.%s", name);
    const char *end = strstr(table + 1, "\n\n");
    int count = 0;
    for (const char *at = text; (at = next_line(at + 1, "fn ")); count++) {
        int n = (int)signature_length(at);
        snprintf(row, sizeof row, "\n| `%.*s` | ", n, at);
        const char *found = strstr(table, row);
        cr_expect(n > 0 && found && (!end || found < end),
                  "the table of std.%s in SPEC.md lacks `%.*s`", name, n, at);
        cr_expect(documented(text, at), "std.%s: `%.*s` has no `///` comment", name, n, at);
    }
    for (const char *at = text; (at = next_line(at + 1, "const "));) {
        int n = (int)strcspn(at, ":");
        snprintf(row, sizeof row, "%.*s", n, at);
        cr_expect(strstr(section, row), "SPEC.md lacks the constant %s", row);
        cr_expect(documented(text, at), "std.%s: %s has no `///` comment", name, row);
    }
    free(text);
    return count;
}

Test(library_spec, functions) {
    char *spec = file_text(FUSE_SOURCE_DIR "/lang/SPEC.md");
    const char *section = library_section(spec);
    DIR *dir = opendir(FUSE_SOURCE_DIR "/stdlib/std");
    cr_assert_not_null(dir);
    int functions = 0, rows = 0;
    for (struct dirent *e; (e = readdir(dir));) {
        char name[256];
        if (sscanf(e->d_name, "%255[a-z0-9_].fk", name) == 1 && strstr(e->d_name, ".fk"))
            functions += check_module(section, name);
    }
    closedir(dir);
    for (const char *at = section; (at = strstr(at, "\n| `")); at++)
        rows += strncmp(at, "\n| `std.", 8) != 0;
    cr_expect(functions == rows && rows > 30, "%d functions, %d rows", functions, rows);
    free(spec);
}
