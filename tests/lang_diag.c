/* Printing of diagnostics: exact texts. */
#include "lang_support.h"

static FileId add(Lang *lang, const char *name, const char *text) {
    return source_add(lang->sources, name, text, strlen(text));
}

/* The span of `part` in a file. */
static Span span_of(const Lang *lang, FileId file, const char *part) {
    uint32_t len;
    const char *text = source_text(lang->sources, file, &len);
    const char *at = strstr(text, part);
    cr_assert_not_null(at);
    uint32_t begin = source_span(lang->sources, file).begin + (uint32_t)(at - text);
    return (Span){begin, begin + (uint32_t)strlen(part)};
}

static void expect_text(Lang *lang, const char *expected) {
    cr_assert_str_eq(diags_text(lang->diags, lang->arena), expected);
}

Test(diag, caret_note_hint) {
    Lang lang = lang_new();
    FileId a = add(&lang, "a.fk", "let x = 1;\nlet y = foo + x;\n");
    Diag *diag = diag_add(lang.diags, DIAG_SYNTAX, span_of(&lang, a, "foo"), "no %s here", "foo");
    diag_note(lang.diags, diag, span_of(&lang, a, "x"), "x is here");
    diag_note(lang.diags, diag, (Span){0}, "a general remark");
    diag_hint(lang.diags, diag, "write `%s`", "bar");
    expect_text(&lang, "a.fk:2:9: error[syntax]: no foo here\n"
                       "    2 | let y = foo + x;\n"
                       "      |         ^~~\n"
                       "a.fk:1:5: note: x is here\n"
                       "    1 | let x = 1;\n"
                       "      |     ^\n"
                       "note: a general remark\n"
                       "hint: write `bar`\n");
    lang_free(&lang);
}

Test(diag, order_of_position_over_files) {
    Lang lang = lang_new();
    FileId a = add(&lang, "a.fk", "aa bb\n"), b = add(&lang, "b.fk", "cc\n");
    diag_add(lang.diags, DIAG_SYNTAX, span_of(&lang, b, "cc"), "third");
    diag_add(lang.diags, DIAG_SYNTAX, span_of(&lang, a, "bb"), "second");
    diag_add(lang.diags, DIAG_STRAY_DOC, span_of(&lang, a, "aa"), "first");
    diag_add(lang.diags, DIAG_INTERNAL, (Span){0}, "nowhere");
    expect_text(&lang, "error[internal]: nowhere\n"
                       "a.fk:1:1: warning[stray-doc]: first\n"
                       "    1 | aa bb\n"
                       "      | ^~\n"
                       "a.fk:1:4: error[syntax]: second\n"
                       "    1 | aa bb\n"
                       "      |    ^~\n"
                       "b.fk:1:1: error[syntax]: third\n"
                       "    1 | cc\n"
                       "      | ^~\n");
    cr_assert_eq(diags_error_count(lang.diags), 3);
    cr_assert_eq(diags_count(lang.diags), 4);
    lang_free(&lang);
}

Test(diag, tabs_utf8_wide_and_invalid) {
    Lang lang = lang_new();
    FileId a = add(&lang, "t.fk", "\tx\ty\n");
    diag_add(lang.diags, DIAG_SYNTAX, span_of(&lang, a, "x\ty"), "tabs");
    FileId b = add(&lang, "u.fk", "\xc3\xa9\xc3\xa9 \xe4\xb8\xad\xe6\x96\x87 z");
    diag_add(lang.diags, DIAG_SYNTAX, span_of(&lang, b, "\xe4\xb8\xad\xe6\x96\x87 z"), "wide");
    FileId c = add(&lang, "i.fk", "a\xff\x01\xe4 b");
    diag_add(lang.diags, DIAG_SYNTAX, span_of(&lang, c, "b"), "invalid");
    expect_text(&lang, "t.fk:1:2: error[syntax]: tabs\n"
                       "    1 |     x   y\n"
                       "      |     ^~~~~\n"
                       "u.fk:1:4: error[syntax]: wide\n"
                       "    1 | \xc3\xa9\xc3\xa9 \xe4\xb8\xad\xe6\x96\x87 z\n"
                       "      |    ^~~~~~\n"
                       "i.fk:1:6: error[syntax]: invalid\n"
                       "    1 | a??? b\n"
                       "      |      ^\n");
    lang_free(&lang);
}

Test(diag, many_lines_end_of_line_end_of_file) {
    Lang lang = lang_new();
    FileId a = add(&lang, "m.fk", "ab (\n  c\n) d");
    diag_add(lang.diags, DIAG_SYNTAX, span_of(&lang, a, "(\n  c\n)"), "three lines");
    Span whole = source_span(lang.sources, a);
    diag_add(lang.diags, DIAG_SYNTAX, (Span){whole.begin + 4, whole.begin + 4}, "end of line");
    diag_add(lang.diags, DIAG_SYNTAX, (Span){whole.end, whole.end}, "end of file");
    expect_text(&lang, "m.fk:1:4: error[syntax]: three lines\n"
                       "    1 | ab (\n"
                       "      |    ^\n"
                       "m.fk:1:5: error[syntax]: end of line\n"
                       "    1 | ab (\n"
                       "      |     ^\n"
                       "m.fk:3:4: error[syntax]: end of file\n"
                       "    3 | ) d\n"
                       "      |    ^\n");
    lang_free(&lang);
}

Test(diag, long_lines_are_cut_around_the_caret) {
    Lang lang = lang_new();
    char text[1001];
    memset(text, 'a', 1000);
    text[1000] = '\0';
    memcpy(text + 500, "bbb", 3);
    FileId a = add(&lang, "l.fk", text);
    diag_add(lang.diags, DIAG_SYNTAX, span_of(&lang, a, "bbb"), "far");
    char *printed = diags_text(lang.diags, lang.arena);
    char *line = strchr(printed, '\n') + 1, *carets = strchr(line, '\n') + 1;
    cr_assert_eq(strncmp(line, "    1 | ...aaa", 14), 0);
    cr_assert_eq(strncmp(carets - 5, "a...", 4), 0);
    cr_assert_eq(strstr(line, "bbb") - line, strchr(carets, '^') - carets);
    cr_assert_str_eq(strchr(carets, '^'), "^~~\n");
    lang_free(&lang);
}

Test(diag, equal_reports_once) {
    Lang lang = lang_new();
    FileId a = add(&lang, "a.fk", "x");
    Span span = span_of(&lang, a, "x");
    diag_add(lang.diags, DIAG_SYNTAX, span, "same");
    diag_hint(lang.diags, diag_add(lang.diags, DIAG_SYNTAX, span, "same"), "lost");
    diag_add(lang.diags, DIAG_SYNTAX, span, "other");
    cr_assert_eq(diags_count(lang.diags), 2);
    cr_assert_eq(diags_error_count(lang.diags), 2);
    lang_free(&lang);
}

Test(diag, error_limit) {
    Lang lang = lang_new();
    lang.diags = diags_new(lang.arena, lang.sources, &(DiagOptions){.error_limit = 2});
    FileId a = add(&lang, "a.fk", "x");
    Span span = span_of(&lang, a, "x");
    for (int i = 0; i < 5; i++) {
        cr_assert_eq(diags_full(lang.diags), i > 2);
        diag_add(lang.diags, DIAG_SYNTAX, span, "number %d", i);
    }
    cr_assert_eq(diags_error_count(lang.diags), 5);
    expect_text(&lang, "a.fk:1:1: error[syntax]: number 0\n"
                       "    1 | x\n"
                       "      | ^\n"
                       "a.fk:1:1: error[syntax]: number 1\n"
                       "    1 | x\n"
                       "      | ^\n"
                       "error: 3 more errors are not shown\n");
    lang_free(&lang);
}

Test(diag, warning_options) {
    Lang lang = lang_new();
    FileId a = add(&lang, "a.fk", "x");
    Span span = span_of(&lang, a, "x");
    DiagOptions options = {0};
    cr_assert(diag_options_flag(&options, "error"));
    Diags *strict = diags_new(lang.arena, lang.sources, &options);
    diag_add(strict, DIAG_STRAY_DOC, span, "w");
    cr_assert(diags_has_errors(strict));
    cr_assert_eq(diag_severity(diags_at(strict, 0)), DIAG_SEVERITY_ERROR);
    cr_assert(diag_options_flag(&options, "no-stray-doc"));
    Diags *quiet = diags_new(lang.arena, lang.sources, &options);
    diag_add(quiet, DIAG_STRAY_DOC, span, "w");
    cr_assert_eq(diags_count(quiet), 0);
    cr_assert(!diags_has_errors(quiet));
    lang_free(&lang);
}

static void check_flags(const char *const *flags, DiagId id, DiagLevel level) {
    DiagOptions options = {0};
    for (int i = 0; flags[i]; i++)
        cr_expect(diag_options_flag(&options, flags[i]), "%s", flags[i]);
    cr_expect_eq(options.level[id], level, "%s: %d", flags[0], options.level[id]);
}

/* -W: one id, all performance notes, all warnings; the last one counts, off stays off. */
Test(diag, flags) {
    check_flags((const char *const[]){"no-overflow", NULL}, DIAG_OVERFLOW, DIAG_LEVEL_OFF);
    check_flags((const char *const[]){"no-overflow", NULL}, DIAG_UNWRITTEN, DIAG_LEVEL_ON);
    check_flags((const char *const[]){"no-overflow", "error", NULL}, DIAG_OVERFLOW, DIAG_LEVEL_OFF);
    check_flags((const char *const[]){"error", "overflow", NULL}, DIAG_OVERFLOW, DIAG_LEVEL_ON);
    check_flags((const char *const[]){"no-overflow", "error=overflow", NULL}, DIAG_OVERFLOW,
                DIAG_LEVEL_ERROR);
    check_flags((const char *const[]){"error", NULL}, DIAG_UNWRITTEN, DIAG_LEVEL_ERROR);
    check_flags((const char *const[]){"error", NULL}, DIAG_STREAMED, DIAG_LEVEL_ON);
    check_flags((const char *const[]){"error=perf", NULL}, DIAG_STREAMED, DIAG_LEVEL_ERROR);
    check_flags((const char *const[]){"no-perf", NULL}, DIAG_NO_MATRIX_UNIT, DIAG_LEVEL_OFF);
    check_flags((const char *const[]){"no-perf", "no-matrix-unit", NULL}, DIAG_NO_MATRIX_UNIT,
                DIAG_LEVEL_ON);
    check_flags((const char *const[]){"no-no-matrix-unit", NULL}, DIAG_NO_MATRIX_UNIT,
                DIAG_LEVEL_OFF);
    /* Errors and remarks have no levels. */
    static const char *const wrong[] = {"race",   "no-race", "error=fused", "no-such",
                                        "errors", "",        "no-",         "error="};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        cr_expect(!diag_options_flag(&(DiagOptions){0}, wrong[i]), "%s", wrong[i]);
}

Test(diag, ids) {
    for (DiagId id = 0; id < DIAG_COUNT_; id++) {
        DiagId parsed;
        cr_assert(diag_id_parse(diag_id_name(id), &parsed));
        cr_assert_eq(parsed, id, "two rows are named %s", diag_id_name(id));
        cr_assert(strlen(diag_id_title(id)) > 0);
        const char *text = diag_id_explanation(id);
        cr_assert(text, "%s is not explained", diag_id_name(id));
        cr_assert_eq(diag_id_example(id, false) == NULL, diag_id_example(id, true) == NULL);
        cr_assert_eq(text[strlen(text) - 1], '\n');
        for (uint32_t column = 0; *text; text++) {
            column = *text == '\n' ? 0 : column + 1;
            cr_assert(column <= 100, "%s", diag_id_name(id));
        }
        for (const char *c = diag_id_name(id); *c; c++)
            cr_assert((*c >= 'a' && *c <= 'z') || (*c >= '0' && *c <= '9') || *c == '-');
    }
    cr_assert_not_null(strstr(diag_id_explanation(DIAG_RACE), "scatter"));
    DiagId none;
    cr_assert(!diag_id_parse("no-such-id", &none));
}
