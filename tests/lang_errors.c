/* Syntax errors: the exact report of each wrong text in tests/corpus/syntax_errors.txt.
 *
 * The file is a list of cases: a line `=== name`, the text, a line `---`, the report. With
 * FUSE_UPDATE_GOLDENS set the reports are written anew; read the difference before committing it.
 */
#include "lang_support.h"

#define GOLDEN "tests/corpus/syntax_errors.txt"

/* Cuts `text` after `mark`; gives what follows it, or NULL. */
static char *cut(char *text, const char *mark) {
    char *at = strstr(text, mark);
    if (!at)
        return NULL;
    at[0] = '\0';
    return at + strlen(mark);
}

static char *report_of(Arena *arena, const char *name, const char *text) {
    Lang lang = lang_new();
    AstFile *file = lang_parse_text(&lang, text);
    char *report = arena_strdup(arena, diags_text(lang.diags, lang.arena));
    cr_assert(file->has_errors == diags_has_errors(lang.diags), "%s", name);
    ast_print_file(lang.arena, file);
    lang_free(&lang);
    return report;
}

Test(errors, golden) {
    Lang lang = lang_new();
    char *rest = lang_read_file(&lang, GOLDEN, NULL);
    char *updated = arena_strdup(lang.arena, "");
    uint32_t count = 0;
    rest = cut(rest, "=== ");
    while (rest) {
        char *name = rest;
        char *text = cut(name, "\n");
        cr_assert_not_null(text);
        rest = cut(text, "\n=== ");
        char *expected = cut(text, "\n---\n");
        if (!expected)
            expected = (char *)"";
        char *report = report_of(lang.arena, name, text);
        updated = arena_printf(lang.arena, "%s%s=== %s\n%s\n---\n%s", updated, count ? "\n" : "",
                               name, text, report);
        if (!getenv("FUSE_UPDATE_GOLDENS"))
            cr_expect_str_eq(report, expected, "%s:\n%s", name, report);
        count++;
    }
    cr_assert(count >= 30);
    if (getenv("FUSE_UPDATE_GOLDENS")) {
        FILE *file = fopen(FUSE_SOURCE_DIR "/" GOLDEN, "wb");
        cr_assert_not_null(file);
        fputs(updated, file);
        fclose(file);
    }
    lang_free(&lang);
}

Test(errors, too_many_are_cut) {
    Lang lang = lang_new();
    VEC(char) text = {0};
    for (int i = 0; i < 1000; i++)
        for (const char *c = "fn = ;\n"; *c; c++)
            vec_push(lang.arena, &text, *c);
    lang_parse_bytes(&lang, "many.fk", text.data, text.len);
    cr_assert(diags_full(lang.diags));
    cr_assert_eq(diags_count(lang.diags), 50);
    lang_free(&lang);
}
